"""Which subspace: the directions in which people differ more than noise and more than a little.

The rank r is the least for which no direction beyond the first r stands out: the next eigenvalue of
the noisy covariance is either a small share of all variance, or no more above the mean of those
beyond than the spectrum of the noise reaches, 2 s sqrt(d). The r directions are a subspace if r is
small, if they hold most of the variance, and if what the noise may hide is worth missing: a hidden
direction has up to 2 s sqrt(d) of variance, which is lost, while gradients in all d features cost
noise that grows with d^2. What is outside is released as a variance per feature,

    outside = diag( (1 - A A') C (1 - A A') ),    A (d, r) the axes, C the covariance,

shrunk, by the share of its deviations that is noise, to that of people who are as wide in all
directions outside, v diag( 1 - A A' ).
All of it is post-processing, and so is what follows from it: what is measured, and how.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.measures.subspace.constants import (
    AS_COSTLY,
    EDGE,
    FEATURES_PER_AXIS,
    LEAST_INSIDE,
    MOST_LOOKED,
    MOST_RANK,
    REACH,
    SMALL,
)
from privtraj.measures.subspace.moments import Spread
from privtraj.privacy.rows import Projection


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
        d = len(self.values)
        hides_little = self.edge <= (d / AS_COSTLY) ** 2 * float(self.values.sum())
        few = 1 <= self.rank <= min(MOST_RANK, d // FEATURES_PER_AXIS)
        return few and hides_little and self.inside(self.rank) >= LEAST_INSIDE

    def subspace(self, rank: int) -> Subspace:
        """That of the first axes."""
        beyond = self.axes[:, rank:] ** 2  # its rows add up to the diagonal of 1 - A A'
        outside, free = beyond @ self.values[rank:], beyond.sum(axis=1)
        even = max(float(self.values[rank:].mean()), 0.0) * free
        noise = 2 * self.noise**2 * float((free**2).mean())
        varies = max(float(((outside - even) ** 2).mean()), 1e-300)
        outside = np.maximum(even + max(0.0, 1 - noise / varies) * (outside - even), 0.0)
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
