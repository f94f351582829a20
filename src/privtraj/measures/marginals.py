"""The one answer that every way to pay for a measurement gives: weighted particles at each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from privtraj.base.arrays import Floats

Progress = Callable[[int, int], None]  # told how many steps are done, and of how many


class Marginals(NamedTuple):
    """A cloud at each of T times, in the unit cube, made of released numbers only.

    particles: (T, m, d).  weights: (T, m), rows sum to 1.
    bandwidth: (T,) standard deviation, per coordinate, of a person around their particle.
    resolution: (T,) how finely the measurement sees, as a standard deviation per coordinate.
    """

    particles: Floats
    weights: Floats
    bandwidth: Floats
    resolution: Floats
    diagnostics: dict[str, Any]
