"""People drawn from particles: in every slab of time one value of each column, and few changes.

A number is read at one quantile of its particle's distribution all the time, so it moves as the
distribution does. A level stays as it is with the chance min(1, q'(c) / q(c)), and otherwise goes
where shares grow: no coupling of q with q' has fewer changes.
"""

from __future__ import annotations

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.columns.axes import Axes
from privtraj.measures.tables.slabs import Ends


def drawn(q: list[Floats], axes: Axes, ends: Ends, count: int, rng: np.random.Generator) -> Floats:
    """(K, count, d) at K knots in the unit cube, of products q_j (S, M, L_j) in S slabs.

    S is 1 for a fixed column. Beyond the middles of the first and the last slab shares of levels,
    and numbers, go on as they went.
    """
    particles, may_lack = q[0].shape[1], {number for number, _ in axes.flags}
    particle = np.repeat(np.arange(particles), -(-count // particles))
    columns = []
    for j, shares in enumerate(q):
        rank = _spread(particles, len(particle) // particles, rng)
        levels = axes.levels[j]
        if j in may_lack:
            shares = _of_those_who_have_it(shares)
        if levels and not axes.fixed[j]:
            shares = _shares(ends.reached(shares))
        one = _levels if levels and not axes.ordered[j] else _quantiles
        made = one(shares, particle, rank, rng)
        if levels:
            made = (np.minimum(np.floor(made * levels), levels - 1) + 0.5) / levels
        elif not axes.fixed[j]:
            made = np.clip(ends.reached(made), 0.0, 1.0)
        columns.append(np.broadcast_to(made, (len(ends.knots), len(particle))))
    return np.stack(columns, axis=2)


def _of_those_who_have_it(shares: Floats) -> Floats:
    """(S, M, L) shares of the cells of a number, of people who have it.

    Whoever lacks it is counted in the middle cell, which gets the mean of its neighbours instead.
    """
    middle, present = shares.shape[-1] // 2, shares.copy()
    present[..., middle] = (shares[..., middle - 1] + shares[..., middle + 1]) / 2
    return _shares(present)


def _shares(values: Floats) -> Floats:
    """Not negative, and 1 in all."""
    positive = np.maximum(values, 1e-12)
    shares: Floats = positive / positive.sum(axis=-1, keepdims=True)
    return shares


def _spread(particles: int, each: int, rng: np.random.Generator) -> Floats:
    """(particles * each,) in [0, 1], those of one particle one in each of equal parts."""
    parts = (np.arange(each) + rng.random((particles, each))) / each
    return rng.permuted(parts, axis=1).ravel()


def _quantiles(q: Floats, particle: Ints, rank: Floats, rng: np.random.Generator) -> Floats:
    """(S, n) places in [0, 1] at the rank (n,) of distributions q (S, M, L), even inside cells."""
    cells = q.shape[2]
    places = np.empty((len(q), len(particle)))
    for slab, shares in enumerate(q):
        edges = np.cumsum(shares, axis=1)
        edges /= edges[:, -1:]
        cell = np.minimum((edges[particle] < rank[:, None]).sum(axis=1), cells - 1)
        upper, inside = edges[particle, cell], shares[particle, cell]
        within = np.clip(1 - (upper - rank) / np.maximum(inside, 1e-12), 0.0, 1.0)
        places[slab] = (cell + within) / cells
    return places


def _levels(q: Floats, particle: Ints, rank: Floats, rng: np.random.Generator) -> Floats:
    """(S, n) middles of the cells of levels, which change as seldom as their shares allow."""
    count = q.shape[2]
    places = np.empty((len(q), len(particle)))
    level = np.minimum((_quantiles(q[:1], particle, rank, rng)[0] * count).astype(int), count - 1)
    places[0] = (level + 0.5) / count
    for slab in range(1, len(q)):
        before, after = q[slab - 1], q[slab]
        stay = after[particle, level] / np.maximum(before[particle, level], 1e-12)
        leaves = np.flatnonzero(rng.random(len(particle)) >= stay)
        grown = np.cumsum(np.maximum(after - before, 0.0) + 1e-12, axis=1)
        edges = (grown / grown[:, -1:])[particle[leaves]]
        level[leaves] = np.minimum(
            (edges < rng.random(len(leaves))[:, None]).sum(axis=1), count - 1
        )
        places[slab] = (level + 0.5) / count
    return places
