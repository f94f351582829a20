"""Which subspace: the directions in which people differ more than noise and more than a little.

The eigenvalues of a noisy covariance are compared with the end of the spectrum of the noise alone,
2 s sqrt(d), and with a small share of all variance. The r directions above both are a subspace, if
these are few and hold most of the variance; what is outside is released as a variance per feature,

    outside = diag( (1 - A A') C (1 - A A') ),    A (d, r) the axes, C the covariance.

All of it is post-processing, and so is what follows from it: what is measured, and how.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privtraj.arrays import Floats
from privtraj.privacy.projection import Projection
from privtraj.subspace.constants import (
    EDGE,
    LEAST_INSIDE,
    MOST_LOOKED,
    MOST_RANK,
    REACH,
    SMALL,
)
from privtraj.subspace.moments import Spread


@dataclass(frozen=True, eq=False)
class Subspace:
    """r axes along which people differ, and what is outside them.

    projection: onto the axes.  outside: (d,) variance per feature.
    """

    projection: Projection
    outside: Floats


@dataclass(frozen=True, eq=False)
class Spectrum:
    """mean: (d,).  values: (d,) eigenvalues, falling.  axes: (d, d), a column for each.
    edge: where the spectrum of the noise ends.
    """

    mean: Floats
    values: Floats
    axes: Floats
    edge: float

    @classmethod
    def of(cls, spread: Spread) -> Spectrum:
        """That of a noisy covariance."""
        values, axes = np.linalg.eigh(spread.covariance)
        edge = EDGE * 2 * spread.noise * math.sqrt(len(values))
        return cls(spread.mean, values[::-1], axes[:, ::-1], edge)

    @property
    def total(self) -> float:
        """All variance. Noise has mean 0 in the trace, and is smaller there than in a value."""
        return max(float(self.values.sum()), self.edge)

    @property
    def rank(self) -> int:
        """How many directions are above noise and above a small share of all variance."""
        return int(np.count_nonzero(self.values > max(self.edge, SMALL * self.total)))

    def inside(self, rank: int) -> float:
        """Share of the variance along the first axes."""
        return float(min(np.maximum(self.values[:rank], 0.0).sum() / self.total, 1.0))

    @property
    def is_low(self) -> bool:
        """Whether a subspace holds people well enough to measure them there."""
        most = min(MOST_RANK, len(self.values) // 2)
        return 1 <= self.rank <= most and self.inside(self.rank) >= LEAST_INSIDE

    def subspace(self, rank: int) -> Subspace:
        """That of the first axes."""
        axes = self.axes[:, :rank]
        rest = self.axes[:, rank:]
        outside = (rest**2) @ self.values[rank:]
        widest = math.sqrt(max(float(self.values[0]), self.edge, 1e-8))
        return Subspace(Projection(self.mean, axes, REACH * widest), np.maximum(outside, 0.0))

    @property
    def looked_along(self) -> Projection:
        """The axes along which people's motion is looked at."""
        return self.subspace(min(max(self.rank, 1), MOST_LOOKED)).projection

    def describe(self, chosen: Subspace | None) -> dict[str, Any]:
        """For the diagnostics of a model."""
        rank = self.rank if chosen is None else chosen.projection.rank
        return {
            "rank": None if chosen is None else rank,
            "above_noise": self.rank,
            "inside": self.inside(rank),
            "spectrum": self.values.tolist(),
            "noise_edge": self.edge,
            "outside": None if chosen is None else chosen.outside.tolist(),
        }
