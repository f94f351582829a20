"""Curves of people who have levels beside their numbers. All of it is post-processing.

People are grouped by the levels that never change. A group has the same share of the people at all
times, the mean over the slabs, and as many curves; its numbers are those of its own particles, so
that curves never leave their group (`curves`).

Levels that change are given to curves at the K + 1 edges of the slabs, as curves of numbers have
their control points there. Shares c of levels at the edges are those that slabs show blurred,
    min over c   |A c - s|^2 + bending |second differences of c|^2,
s (K, C) the shares of C levels in the slabs and A (K, K + 1) the mean of hat functions over a slab.
From edge to edge curves are then matched with people that have these levels: particles of the slabs
on both sides of the edge, weighted so that levels have their shares; the match is the one of
    least  |x - x'|^2 + `JUMP_PRICE` (number of levels that change),
so that the levels of people who stay where they are stay too. Who has different levels at two edges
changes at a uniformly random time between them, one for all levels: shares between the edges are
straight lines, as hat functions are. Their numbers change with their levels, from those of who was
matched at one edge to those at the other: nobody lingers half way between the numbers of two
levels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from privtraj.base.arrays import Floats, Ints, Mask, systematic
from privtraj.base.space import hat_functions
from privtraj.columns.axes import Axes
from privtraj.measures.marginals import Marginals
from privtraj.measures.windows.constants import ACTION, JUMP_PRICE, SHARE_BENDING
from privtraj.measures.windows.curves import penalty

NumericCurves = Callable[[Marginals, int], Floats]
"""Marginals (K, n, p) of numbers and a count m -> control points (m, K + 1, p)."""


def curves_of_groups(
    marginals: Marginals,
    axes: Axes,
    m: int,
    numeric: NumericCurves,
    in_slab: Floats,
    at: Floats,
    edges: Floats,
    rng: np.random.Generator,
) -> Floats:
    """(Q, m, d) of m curves at times `at` (Q,), through marginals of K slabs between the edges.

    in_slab: A (K, K + 1).  at, edges: (Q,), (K + 1,) in shares of the range.
    """
    levels = axes.level_of(marginals.particles)
    groups, group = _grouped(levels, np.array(axes.fixed) & axes.categories)
    share = np.array([_masses(marginals.weights, group == g).mean() for g in range(groups)])
    sizes = np.bincount(systematic(share, m), minlength=groups)
    made = []
    for g in np.flatnonzero(sizes):
        own = _restricted(marginals, group == g)
        made.append(_one_group(own, axes, int(sizes[g]), numeric, in_slab, at, edges, rng))
    return np.concatenate(made, axis=1)


def _one_group(
    marginals: Marginals,
    axes: Axes,
    m: int,
    numeric: NumericCurves,
    in_slab: Floats,
    at: Floats,
    edges: Floats,
    rng: np.random.Generator,
) -> Floats:
    """(Q, m, d) of people whose levels of fixed categories are the same."""
    numbers = axes.numbers
    control = np.zeros((m, len(edges), 0))
    if numbers.any():
        control = numeric(marginals._replace(particles=marginals.particles[:, :, numbers]), m)
    matched = _matched_at_edges(marginals, axes, control, in_slab, rng)
    levels = matched[:, :, ~numbers]
    change = (levels[:, 1:] != levels[:, :-1]).any(axis=2)  # (m, K)
    beside = np.pad(change, ((0, 0), (1, 0))) | np.pad(change, ((0, 0), (0, 1)))
    moving = beside[:, :, None] & ~axes.still_numbers
    control = np.where(moving, matched[:, :, numbers], control)
    piece = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, len(edges) - 2)
    gone = (at - edges[piece]) / np.diff(edges)[piece]
    later = gone > rng.uniform(size=(m, len(edges) - 1))[:, piece]  # (m, Q)
    jumped = np.where(later[:, :, None], control[:, piece + 1], control[:, piece])
    points = np.empty((m, len(at), len(numbers)))
    straight = np.einsum("qk,mkd->mqd", hat_functions(at, edges), control)
    points[:, :, numbers] = np.where(change[:, piece, None], jumped, straight)
    points[:, :, ~numbers] = np.where(later[:, :, None], levels[:, piece + 1], levels[:, piece])
    return points.swapaxes(0, 1)


def _matched_at_edges(
    marginals: Marginals, axes: Axes, control: Floats, in_slab: Floats, rng: np.random.Generator
) -> Floats:
    """People (m, K + 1, d) whom curves of control points (m, K + 1, p) are matched with."""
    numbers, (m, count, _) = axes.numbers, control.shape
    kinds, kind = _grouped(axes.level_of(marginals.particles), axes.categories)
    in_slabs = [_masses(marginals.weights, kind == k) for k in range(kinds)]
    shares = edge_shares(np.stack(in_slabs, axis=1), in_slab)
    before: Floats | None = None
    made = []
    for k in range(count):
        sides = sorted({max(k - 1, 0), min(k, count - 2)})
        weights = np.concatenate([marginals.weights[side] for side in sides])
        mine = np.concatenate([kind[side] for side in sides])
        cloud = np.concatenate([marginals.particles[side] for side in sides])
        held = np.bincount(mine, weights, kinds)
        weights = weights * (shares[k] / np.maximum(held, 1e-300))[mine]
        order = np.argsort(mine, kind="stable")
        people = cloud[order][systematic(weights[order], m, rng)]
        cost = _squared(control[:, k], people[:, numbers])
        if before is not None:
            changed = before[:, None, ~numbers] != people[None][:, :, ~numbers]
            cost = cost + JUMP_PRICE * changed.sum(axis=2)
        before = people[_matched(cost)]
        made.append(before)
    return np.stack(made, axis=1)


def edge_shares(shares: Floats, in_slab: Floats) -> Floats:
    """Shares c (K + 1, C) at the edges, rows of sum 1, from those of the slabs (K, C)."""
    rigid = penalty(in_slab.shape[1], SHARE_BENDING, ACTION)
    found = np.linalg.solve(in_slab.T @ in_slab + rigid, in_slab.T @ shares)
    near = np.maximum(shares[:-1], shares[1:]) > 0  # only what a slab beside the edge has
    near = np.concatenate([shares[:1] > 0, near, shares[-1:] > 0])
    kept = np.where(near, np.maximum(found, 0.0), 0.0)
    kept += 1e-12 * near  # never nobody
    total: Floats = kept / kept.sum(axis=1, keepdims=True)
    return total


def _grouped(levels: Ints, mask: Mask) -> tuple[int, Ints]:
    """How many combinations of the levels (K, n, d) in the mask there are, and which each has."""
    if not mask.any():
        return 1, np.zeros(levels.shape[:2], np.int64)
    flat = np.concatenate(levels[:, :, mask])
    names, which = np.unique(flat, axis=0, return_inverse=True)
    return len(names), which.reshape(levels.shape[:2])


def _masses(weights: Floats, mine: Mask) -> Floats:
    """(K,) of the particles in the mask (K, n)."""
    masses: Floats = np.where(mine, weights, 0.0).sum(axis=1)
    return masses


def _restricted(marginals: Marginals, mine: Mask) -> Marginals:
    """Those in the mask (K, n) alone; a slab without any is as the nearest that has some."""
    particles, weights = marginals.particles, np.where(mine, marginals.weights, 0.0)
    held = np.flatnonzero(weights.sum(axis=1) > 0)
    nearest = held[np.abs(np.arange(len(weights))[:, None] - held).argmin(axis=1)]
    particles, weights = particles[nearest], weights[nearest]
    return marginals._replace(
        particles=particles, weights=weights / weights.sum(axis=1, keepdims=True)
    )


def _squared(x: Floats, y: Floats) -> Floats:
    """|x_i - y_j|^2 (n, m)."""
    squares: Floats = ((x[:, None] - y[None]) ** 2).sum(axis=2)
    return squares


def _matched(cost: Floats) -> Ints:
    """(n,) the column of each row, all different, of least total cost."""
    from scipy.optimize import linear_sum_assignment

    return np.asarray(linear_sum_assignment(cost)[1])
