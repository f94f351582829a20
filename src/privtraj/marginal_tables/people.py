"""People drawn from particles: in every slab of time one value of each column, and few changes.

A number is read at one quantile of its particle's distribution all the time, so it moves as the
distribution does. A level stays as it is with the chance min(1, q'(c) / q(c)), and otherwise goes
where shares grow: no coupling of q with q' has fewer changes.
"""

from __future__ import annotations

import numpy as np

from privtraj.arrays import Floats, Ints
from privtraj.columns.axes import Axes


def drawn(q: list[Floats], axes: Axes, count: int, slabs: int, rng: np.random.Generator) -> Floats:
    """(S, count, d) in the unit cube, of products q_j (S, M, L_j); S is 1 for a fixed column."""
    each = -(-count // q[0].shape[1])
    particle = np.repeat(np.arange(q[0].shape[1]), each)
    columns = []
    for j, shares in enumerate(q):
        rank = _spread(q[0].shape[1], each, rng)
        one = _levels if axes.levels[j] and not axes.ordered[j] else _quantiles
        made = one(shares, particle, rank, rng)
        if axes.levels[j]:
            made = (np.floor(made * axes.levels[j]).clip(0, axes.levels[j] - 1) + 0.5) / (
                axes.levels[j]
            )
        columns.append(np.broadcast_to(made, (slabs, len(particle))))
    return np.stack(columns, axis=2)


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
