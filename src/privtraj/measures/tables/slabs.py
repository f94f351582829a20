"""Slabs of time for marginal tables, and the knots of curves through them."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.data.public import TimeAxis
from privtraj.measures.tables.constants import MOST_SLABS, SLABS
from privtraj.measures.windows.choice import even_slabs
from privtraj.measures.windows.fit import Resolution
from privtraj.measures.windows.timeline import are_at_listed_times, timeline_of
from privtraj.privacy.guard import Guard


def even_resolution(
    guard: Guard, axis: TimeAxis, slabs: int | Literal["auto", "bins"]
) -> Resolution:
    """So many slabs of equal length; "auto": each listed time, if people are at a few, else SLABS.

    More slabs cost little: particles carry what is known from one to the next.
    """
    listed = slabs == "bins" or are_at_listed_times(guard, axis)
    timeline = timeline_of(axis, listed, False)
    wanted = slabs
    if wanted == "bins" or (wanted == "auto" and listed and len(axis.times) <= MOST_SLABS):
        wanted = timeline.most_slabs
    count = SLABS if wanted == "auto" else int(wanted)
    return Resolution(timeline, even_slabs(len(timeline.moments), min(count, timeline.most_slabs)))


class Ends(NamedTuple):
    """Knots of curves: the middles of slabs, and both ends of time where these are farther.

    before, after: how far an end is from the nearest middle, in gaps between middles; 0 for none.
    """

    knots: Floats
    before: float
    after: float

    @classmethod
    def of(cls, resolution: Resolution) -> Ends:
        """In data units."""
        middles = resolution.middles
        first, last = resolution.timeline.moments[[0, -1]]
        before = float((middles[0] - first) / (middles[1] - middles[0]))
        after = float((last - middles[-1]) / (middles[-1] - middles[-2]))
        knots = [*([first] if before > 0 else []), *middles, *([last] if after > 0 else [])]
        return cls(np.array(knots), before, after)

    def reached(self, values: Floats) -> Floats:
        """Values (S, ...) at the middles, at all knots: they go on as between the last two."""
        parts = [values]
        if self.before > 0:
            parts.insert(0, values[:1] + self.before * (values[:1] - values[1:2]))
        if self.after > 0:
            parts.append(values[-1:] + self.after * (values[-1:] - values[-2:-1]))
        return np.concatenate(parts)
