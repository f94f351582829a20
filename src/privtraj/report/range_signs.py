"""Signs, in released numbers alone, that a declared range misses the data.

Whatever lies beyond a range counts at its nearer end: values at a bound, records in the first or
last slab of time. So a range in the wrong unit shows as nearly everybody at one end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats

WALL = 0.02
"""How near to a bound is at it, as a share of the box, where the model resolves so much."""
WIDEST = 0.25
"""How near is at it where it resolves less: two such strips at each end are the whole box."""
CLEAR = 2.0
"""Deviations of its noise below which a number of people may as well be none."""
THIN = 0.1
"""Of an even share of people, below which a slab counts as empty; by hand, 2026-11."""


class PileUp(NamedTuple):
    """The worst pile of people at a bound. feature: its place.  upper: at which bound.
    share: of people within `wall` of it.  excess: over those in the next strip as wide."""

    feature: int
    upper: bool
    share: float
    excess: float
    wall: float


def pile_up(people: Floats, resolution: float) -> PileUp:
    """Of people (n, Q, k) in shares of the box, k > 0, that were measured at this resolution.

    A smooth density has about as many people in the strip at a bound as in the next one, so their
    difference is what was moved there, or stands there for another reason.
    """
    wall = float(np.clip(resolution, WALL, WIDEST))
    depth = np.stack([people, 1 - people])  # (2, n, Q, k) from the lower and the upper bound
    at = (depth <= wall).mean(axis=(1, 2))
    excess = at - ((depth > wall) & (depth <= 2 * wall)).mean(axis=(1, 2))
    upper, feature = np.unravel_index(np.argmax(excess), excess.shape)
    worst = float(at[upper, feature]), float(max(excess[upper, feature], 0.0))
    return PileUp(int(feature), bool(upper), *worst, wall)


class Timing(NamedTuple):
    """How people fill the range of time. end: the slab with most people beyond their even share,
    0 or -1 at an end, None inside.  share: of people in it.  crowded: that excess, 1 if everybody
    is there.  empty: share of the range in which there is next to nobody."""

    end: int | None
    share: float
    crowded: float
    empty: float

    @property
    def off(self) -> float:
        """0 for an even range, 1 where all of it but one end is empty."""
        return max(self.crowded if self.end is not None else 0.0, self.empty)


def timing(people: Floats, lengths: Floats, noise: float) -> Timing:
    """Of released numbers of people (K,) in slabs of these lengths (K,), with noise of a standard
    deviation; K > 1."""
    clear = np.where(people > CLEAR * noise, people, 0.0)
    counted = clear if clear.any() else people
    share, even = counted / counted.sum(), lengths / lengths.sum()
    excess = (share - even) / np.maximum(1 - even, 1e-12)
    worst = int(np.argmax(excess))
    ends = {0: 0, len(people) - 1: -1}
    empty = float(even[share < THIN * even].sum())
    crowded = float(max(excess[worst], 0.0))
    return Timing(ends.get(worst), float(share[worst]), crowded, empty)
