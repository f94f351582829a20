"""When people are recorded: at any time, or at the times that were listed. Slabs are runs of both.

A list of times may mean "read the model then", or that people were recorded at these times only, as
cells that are sequenced on five days. One small private count tells: how many records are close to
a listed time, within `CLOSE` of the gap, and how many are not. Two integers, and a record is in one
of them (`guard`: a slab may have many pieces).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.space import Slabs, bin_edges
from privtraj.data.public import TimeAxis
from privtraj.measures.head_count import count_epsilon
from privtraj.measures.windows.constants import CLOSE, LISTED_SHARE, MOMENTS, MOST_READ, MOST_SLABS
from privtraj.privacy.guard import Guard
from privtraj.privacy.noise import EPSILON_RANGE
from privtraj.privacy.questions import CellCounts, Laplace, Release

LISTED = "people at the listed times"


@dataclass(frozen=True, eq=False)
class Timeline:
    """M moments in data units; slabs are runs of neighbouring ones.

    listed: people are at the moments alone. Otherwise they are at any time, and the moments, even
    and close together, stand for all of it.
    """

    moments: Floats
    listed: bool

    @property
    def most_slabs(self) -> int:
        """One for each moment; of continuous time so many that more gain nothing."""
        return min(len(self.moments), MOST_SLABS) if not self.listed else len(self.moments)

    def slabs(self, slab_of_moment: Ints) -> Slabs:
        """Time cut half way between the last moment of a slab and the first of the next."""
        return Slabs.between(bin_edges(self.moments)[np.flatnonzero(np.diff(slab_of_moment))])

    def knots(self, slab_of_moment: Ints, times: Floats) -> Floats:
        """Times of a model's curves: the ends, the edges of slabs, and those of interest (T,).

        Between the edges of slabs curves are straight, so of many times of interest a part will do.
        Few listed times, if people are at these alone, are all there is.
        """
        if self.listed and len(times) <= MOST_READ:
            return times
        ends, edges = self.moments[[0, -1]], self.slabs(slab_of_moment).edges
        some = np.linspace(0, len(times) - 1, min(len(times), MOST_READ)).round().astype(int)
        made, read = np.sort(np.append(edges, ends)), times[some]
        apart = np.abs(made[:, None] - read).min(axis=1) > 1e-6 * np.ptp(ends)
        return np.sort(np.append(made[apart], read))


def timeline_of(axis: TimeAxis, listed: bool, whole_bins: bool) -> Timeline:
    """The listed times, or all of the range; whole_bins: slabs must be made of whole bins."""
    start, end = axis.range
    even = np.linspace(start, end, MOMENTS)
    return Timeline(axis.times if listed or whole_bins else even, listed)


def may_be_listed(axis: TimeAxis) -> bool:
    """Whether it is asked: times are listed, and fewer than those that stand for any time."""
    return axis.declared and len(axis.times) <= MOMENTS


def are_at_listed_times(guard: Guard, axis: TimeAxis) -> bool:
    """Whether most people are close to a listed time, by counts that are released and paid for.

    A budget too small to ask leaves people at any time.
    """
    epsilon = count_epsilon(guard, LISTED_SHARE)
    if not may_be_listed(axis) or epsilon == EPSILON_RANGE[0]:
        return False
    between, close = guard.in_slabs(close_to(axis.times)).ask(
        Release(CellCounts(1), Laplace(epsilon), LISTED)
    )[:, 0]
    return bool(close > between)


def close_to(times: Floats) -> Slabs:
    """Slab 1: all that is close to one of the times (T,); slab 0: the rest."""
    gaps = np.diff(times)
    near = CLOSE * np.minimum(np.append(gaps[0], gaps), np.append(gaps, gaps[-1]))
    edges = np.stack([times - near, times + near], axis=1).ravel()
    return Slabs(edges, np.arange(len(edges) + 1) % 2)
