"""Paths that never leave a domain: from knot to knot by the shortest way, at constant speed.

A person is a chain of particles over the couplings and an offset of their own, as everywhere. At a
knot they are at their particle moved by the offset, which walls turn back; between knots they walk.
Features beside the two of the domain go straight.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.space import fold
from privtraj.domain.domain import Plot


def walkers(
    plot: Plot, particles: Floats, chain: Ints, width: Floats, clock: Floats, times: Floats
) -> Callable[[slice, np.random.Generator], Floats]:
    """What gives a block of people their points (b, q, d) at times (q,), inside the domain.

    particles: (K, m, d) inside, at times clock (K,).  chain: (n, K) whose particle a person is.
    width: (K,) of their own offset.
    """

    def places(people: slice, rng: np.random.Generator) -> Floats:
        offset = rng.standard_normal((len(chain[people]), particles.shape[2]))
        start = particles[np.arange(len(particles)), chain[people]]
        knots = np.asarray(fold(start + width[:, None] * offset[:, None]), np.float64)
        for k, w in enumerate(width):
            step = w * offset[:, plot.axes]
            knots[:, k, plot.axes] = plot.ground.moved(start[:, k, plot.axes], step)
        return walked(plot, knots, clock, times)

    return places


def walked(plot: Plot, knots: Floats, clock: Floats, times: Floats) -> Floats:
    """Places (n, q, d) at times (q,) of people who are at knots (n, K, d) at the times `clock`."""
    left = np.clip(np.searchsorted(clock, times, side="right") - 1, 0, len(clock) - 2)
    values = np.empty((len(knots), len(times), knots.shape[2]))
    for k in np.unique(left):
        now = np.flatnonzero(left == k)
        shares = (times[now] - clock[k]) / (clock[k + 1] - clock[k])
        start, end = knots[:, k], knots[:, k + 1]
        values[:, now] = (1 - shares[:, None]) * start[:, None] + shares[:, None] * end[:, None]
        ways = plot.ground.ways(start[:, plot.axes], end[:, plot.axes])
        for axis, places in zip(plot.axes, np.moveaxis(ways.at(shares), -1, 0), strict=True):
            values[:, now, axis] = places
    return values
