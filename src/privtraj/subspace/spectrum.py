"""Which subspace: the directions in which people differ more than noise and more than a little.

The rank r is the least for which no direction beyond the first r stands out: the next eigenvalue of
the noisy covariance is either a small share of all variance, or no more above the mean of those
beyond than the spectrum of the noise reaches, 2 s sqrt(d). If r is small and the r directions hold
most of the variance, they are a subspace. What is outside is released as a variance per feature,

    outside = diag( (1 - A A') C (1 - A A') ),    A (d, r) the axes, C the covariance,

shrunk to its mean by the share of its variance that is noise.
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
    noise: standard deviation of a number beside the diagonal of the covariance.
    """

    mean: Floats
    values: Floats
    axes: Floats
    noise: float

    @classmethod
    def of(cls, spread: Spread) -> Spectrum:
        """That of a noisy covariance."""
        values, axes = np.linalg.eigh(spread.covariance)
        return cls(spread.mean, values[::-1], axes[:, ::-1], spread.noise)

    @property
    def edge(self) -> float:
        """Where the spectrum of the noise ends."""
        return EDGE * 2 * self.noise * math.sqrt(len(self.values))

    @property
    def total(self) -> float:
        """All variance. Noise has mean 0 in the trace, and is smaller there than in a value."""
        return max(float(self.values.sum()), self.edge)

    @property
    def rank(self) -> int:
        """r: how many directions stand out."""
        d = len(self.values)
        beyond = self.values[::-1].cumsum()[::-1] / np.arange(d, 0, -1)  # means from each on
        level = self.values <= np.maximum(SMALL * self.total, beyond + self.edge)
        return int(np.argmax(level)) if level[:-1].any() else d  # of one direction nothing is told

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
        outside = self.axes[:, rank:] ** 2 @ self.values[rank:]
        middle, varies = outside.mean(), max(float(outside.var()), 1e-300)
        kept = max(0.0, 1 - 2 * self.noise**2 / varies)
        outside = np.maximum(middle + kept * (outside - middle), 0.0)
        widest = math.sqrt(max(float(self.values[0]), self.edge, 1e-8))
        return Subspace(Projection(self.mean, self.axes[:, :rank], REACH * widest), outside)

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
