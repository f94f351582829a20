"""Paths that never leave a domain: from knot to knot by the shortest way, at constant speed.

A person is a chain of particles over the couplings and an offset of their own, as everywhere. At a
knot they are at their particle moved by the offset, which walls turn back; between knots they walk.
Features beside the two of the domain go straight.
"""

from __future__ import annotations

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.space import fold, from_unit
from privtraj.domain.domain import Plot
from privtraj.model.paths import fill_in_blocks


def sample_inside(
    plot: Plot,
    bounds: Floats,
    particles: Floats,
    chain: Ints,
    width: Floats,
    clock: Floats,
    times: Floats,
    rng: np.random.Generator,
) -> Floats:
    """n people at times (q,): (n, q, d) in data units, every place inside the domain.

    bounds: (d, 2).  particles: (K, m, d) inside, at times clock (K,).  chain: (n, K) whose particle
    a person is.  width: (K,) of their own offset.
    """
    n, d = len(chain), particles.shape[2]
    values = np.empty((n, len(times), d))

    def fill(people: slice, rng: np.random.Generator) -> None:
        offset = rng.standard_normal((len(chain[people]), d))
        knots = _at_knots(plot, particles, chain[people], width, offset)
        unit = walked(plot, knots, clock, times)
        data = np.clip(from_unit(unit, bounds), *bounds.T)
        places = unit[..., plot.axes].reshape(-1, 2)
        data[..., plot.axes] = plot.in_data_units(places).reshape(*unit.shape[:2], 2)
        values[people] = data

    fill_in_blocks(fill, n, max(len(times), len(clock)) * d, rng)
    return values


def _at_knots(plot: Plot, particles: Floats, chain: Ints, width: Floats, offset: Floats) -> Floats:
    """Places (n, K, d) of people at the knots: particles (K, m, d) of their chains (n, K), moved.

    width: (K,).  offset: (n, d).
    """
    places = particles[np.arange(len(particles)), chain]
    moved = fold(places + width[:, None] * offset[:, None])
    for k, w in enumerate(width):
        step = w * offset[:, plot.axes]
        moved[:, k, plot.axes] = plot.ground.moved(places[:, k, plot.axes], step)
    return np.asarray(moved)


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
