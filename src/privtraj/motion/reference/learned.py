"""Learned: a drift that is fitted to the model's own people, and refined.

Marginals alone do not tell a turn from a trade of places: least action pairs everybody with who is
nearest. One field for all times does. It is fitted to the paths of least action, people are coupled
again against it, and so on (as in the iterative refinement of reference processes, Shen et al.
2024): each round can only lower the action that is left,
    sum over neighbouring times and people of  |y - flow(x)|^2 / dt.
The field is affine and the same at all times: turning, growing, shifting, and little else, so that
it cannot follow noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import check_range, check_whole
from privtraj.motion.reference.base import Reference
from privtraj.motion.reference.drift import Affine, Drift
from privtraj.motion.reference.least_action import follow

ROUNDS = 4
"""Of fitting and coupling; on a turning cloud the third no longer changes who is who."""
RIDGE = 0.01
"""Of the fit, in shares of the mean variance of the people: settles what they do not tell. A turn
is learned 6 % too slow with .03."""


@dataclass(frozen=True)
class Learned(Reference):
    """The drift v(x) = A x + b, fitted to the released model; `fitted` makes it.

    rounds: how often it is refined.
    diffusivity: of the noise beside the drift, as for `Drift`.
    """

    kind: ClassVar[str] = "learned"
    rounds: int = ROUNDS
    diffusivity: float = 0.0

    def __post_init__(self) -> None:
        check_whole("rounds", self.rounds, 1, 100)
        check_range("diffusivity", self.diffusivity, 0.0, 1e6)

    def fitted(self, clouds: Floats, clock: Floats) -> Drift:
        field = Affine(np.zeros((clouds.shape[2],) * 2), np.zeros(clouds.shape[2]))
        for _ in range(self.rounds):
            field = fitted_field(follow(clouds, clock, Drift(field)), clock)
        return Drift(field, self.diffusivity)

    @property
    def couples(self) -> bool:
        return True

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "rounds": self.rounds, "diffusivity": self.diffusivity}


def fitted_field(paths: Floats, clock: Floats) -> Affine:
    """The affine field of paths (n, K, d) at times (K,), by ridge regression of their velocities on
    the middles between their knots, weighed by the gaps."""
    gaps = np.diff(clock)
    places = (paths[:, 1:] + paths[:, :-1]) / 2
    velocities = np.diff(paths, axis=1) / gaps[:, None]
    weights = np.tile(gaps, len(paths)) / (len(paths) * gaps.sum())
    x, v = (array.reshape(-1, paths.shape[2]) for array in (places, velocities))
    centre, mean = weights @ x, weights @ v
    spread = (x - centre) * weights[:, None]
    moments = spread.T @ (x - centre)
    ridge = RIDGE * np.trace(moments) / len(moments) + 1e-12
    matrix = np.linalg.solve(moments + ridge * np.eye(len(moments)), spread.T @ (v - mean)).T
    return Affine(matrix, mean - matrix @ centre)
