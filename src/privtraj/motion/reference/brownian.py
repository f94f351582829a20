"""Brownian motion, the reference of the paper: rough paths that wander."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import check_range
from privtraj.motion.reference.base import Ends, Points, Reference, straight


@dataclass(frozen=True)
class Brownian(Reference):
    """Brownian motion: X_(t + dt) given X_t = x is N(x, D dt I).

    diffusivity: D, variance per time range and coordinate, in squared shares of the box.
    """

    kind: ClassVar[str] = "brownian"
    diffusivity: float

    def __post_init__(self) -> None:
        check_range("diffusivity", self.diffusivity, 0.0, 1e6)

    def variance(self, dt: Floats) -> Floats:
        """D dt."""
        return self.diffusivity * dt

    def bridge(
        self, x: Points, y: Points, ends: Ends, times: Floats, rng: np.random.Generator
    ) -> Points:
        """The straight line from x to y plus a bridge from 0 to 0."""
        values = straight(x, y, ends, times)
        return add_bridge(values, self.diffusivity, ends, times, rng)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "diffusivity": self.diffusivity}


def add_bridge(
    values: Points, diffusivity: float, ends: Ends, times: Floats, rng: np.random.Generator
) -> Points:
    """Values (q, n, d) plus B with B_a = B_b = 0, walked from time to time, in place.

    Given B_s = v and s < t < b, B_t is normal with mean v (b - t) / (b - s) and variance
    D (t - s)(b - t) / (b - s); so the variance of B_t alone is D (t - a)(b - t) / (b - a).
    """
    number, (before, b) = values.dtype.type, ends
    away = np.zeros_like(values[0]) if len(values) else values
    for q in np.flatnonzero(times < b):
        t = times[q]
        std = np.sqrt(diffusivity * (t - before) * (b - t) / (b - before))
        away *= number((b - t) / (b - before))
        if std > 0:
            away += number(std) * rng.standard_normal(away.shape, dtype=values.dtype)
        values[q] += away
        before = t
    return values
