"""Slabs of time for marginal tables, and curves through them from the first time to the last."""

from __future__ import annotations

from typing import Literal

import numpy as np

from privtraj.arrays import Floats
from privtraj.columns.axes import Axes
from privtraj.data.public import TimeAxis
from privtraj.marginal_tables.constants import MOST_SLABS, SLABS
from privtraj.marginals import Marginals
from privtraj.privacy.guard import Guard
from privtraj.slabs.choice import even_slabs
from privtraj.slabs.fit import Resolution
from privtraj.slabs.timeline import are_at_listed_times, timeline_of


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


def to_the_ends(
    marginals: Marginals, resolution: Resolution, axes: Axes
) -> tuple[Marginals, Floats]:
    """The curves at knots, in data units: the middles of the slabs, and both ends of time.

    Numbers go on as they went between the last two middles; levels stay.
    """
    knots = resolution.middles
    first, last = resolution.timeline.moments[[0, -1]]
    before, after = knots[0] > first, knots[-1] < last
    particles, bandwidth = marginals.particles, marginals.bandwidth
    parts, widths, times = [particles], [bandwidth], [knots]
    if before:
        reach = (knots[0] - first) / (knots[1] - knots[0])
        parts.insert(0, _beyond(particles[1], particles[0], reach, axes)[None])
        widths.insert(0, bandwidth[:1])
        times.insert(0, np.array([first]))
    if after:
        reach = (last - knots[-1]) / (knots[-1] - knots[-2])
        parts.append(_beyond(particles[-2], particles[-1], reach, axes)[None])
        widths.append(bandwidth[-1:])
        times.append(np.array([last]))
    longer = np.concatenate(parts)
    weights = np.full(longer.shape[:2], 1 / longer.shape[1])
    made = marginals._replace(particles=longer, weights=weights, bandwidth=np.concatenate(widths))
    return made, np.concatenate(times)


def _beyond(inner: Floats, outer: Floats, reach: float, axes: Axes) -> Floats:
    """(m, d) the same way once more, `reach` of it, inside the box."""
    further = np.clip(outer + reach * (outer - inner), 0.0, 1.0)
    return np.where(axes.numbers, further, outer)
