"""Paths that never leave a domain: from knot to knot by the shortest way, at constant speed.

A person is a chain of particles over the couplings and an offset of their own, as everywhere. At a
knot they are at their particle moved by the offset, which walls turn back; between knots they walk.
Features beside the two of the domain go straight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privtraj.arrays import Floats, Ints
from privtraj.domain.domain import Plot
from privtraj.paths import fill_in_blocks
from privtraj.space import fold, from_unit, unit_time

if TYPE_CHECKING:
    from privtraj.model import TrajectoryModel


def sample_inside(
    model: TrajectoryModel, n: int, times: Floats, rng: np.random.Generator, noise: bool
) -> Floats:
    """n people at times (q,): (n, q, d) in data units, every place inside the model's domain."""
    plot = model.plot
    assert plot is not None
    particles = plot.snapped(model.particles)
    chain = model.couplings("exact").walk(n, rng)
    clock, where = (unit_time(t, model.knots) for t in (model.knots, times))
    width = model.bandwidth if noise else np.zeros_like(model.bandwidth)
    values = np.empty((n, len(times), particles.shape[2]))

    def fill(people: slice, rng: np.random.Generator) -> None:
        offset = rng.standard_normal((len(chain[people]), particles.shape[2]))
        knots = _at_knots(plot, particles, chain[people], width, offset)
        unit = walked(plot, knots, clock, where)
        data = np.clip(from_unit(unit, model.bounds), *model.bounds.T)
        places = unit[..., plot.axes].reshape(-1, 2)
        data[..., plot.axes] = plot.in_data_units(places).reshape(*unit.shape[:2], 2)
        values[people] = data

    fill_in_blocks(fill, n, max(len(times), len(clock)) * particles.shape[2], rng)
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
