"""Particles that explain noisy tables: products of distributions that move in time.

Particle i of M is a product kernel: at window s it has a distribution q_ij(s, .) over the cells of
each column j, softmax of free numbers; that of a fixed column is the same in all windows. A mixture
of such products has simple tables,
    column over time   N_s / M  sum_i q_ij(s, a)
    two columns        sum_s N_s / M  sum_i q_ij(s, a) q_ik(s, b),
all pairs of columns at once being one product of matrices. So are the covariances of numbers, which
say what groups of cells hide: that two numbers go together within a group too. The particles
minimise
    sum over tables of |table of the particles - noisy table|^2 / (2 deviation^2)
    + MOTION N sum_s n_s mean_i D( q_ij(s), q_ij(s + 1) ) (S - 1),
n_s being the harmonic mean of the people of both windows, 1 where all have as many, and D squared
transport: of cumulative shares for numbers and ordered categories, |q - q'|^2 / 2 for others. So
what is known of one window helps its neighbours, and people are still unless tables say otherwise.

People are drawn from particles: in every window one value of each column, and few changes. A number
is read at one quantile of its particle's distribution all the time, so it moves as the distribution
does; inside a cell it lies as all people of the cell do. A level stays as it is with the chance
min(1, q'(c) / q(c)), and otherwise goes where shares grow: no coupling of q with q' has fewer
changes. Everything here is post-processing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints
from privtraj.columns.kinds import Axes
from privtraj.measures.pairs import Cut, indicator
from privtraj.measures.windows import Ends

PARTICLES = 256
"""Products of distributions that are fitted; 512 are as good and take twice as long."""
STEPS, LEARNING_RATE = 300, 0.2
"""Of Adam: 150 steps bring a drift of shares from 20 to 70 % of 8,000 people back as one from 28 to
60 %, and 300 as one from 24 to 65 %."""
MOTION = 0.003
"""Price of motion, per person, in units of the log likelihood: .01 is as good, .1 hides a third of
a drift of shares from 20 to 70 % of 8,000 people, and 0 loses 5 % in total variation; above 0 it
settles what tables cannot tell."""
LEAST_SHARE = 1e-4
"""Of a cell to begin with."""

Singles = NDArray[np.float32]


class Target(NamedTuple):
    """A noisy table, in shares of all people, and the inverse of its variance."""

    shares: Singles
    precision: Singles

    @classmethod
    def of(cls, counts: Floats, precision: Floats, people: float) -> Target:
        """Of counts whose precision is 1 / variance."""
        return cls((counts / people).astype(np.float32), (precision * people**2).astype(np.float32))

    def slope(self, shares: Singles) -> Singles:
        """Of |shares - target|^2 / (2 variance)."""
        return self.precision * (shares - self.shares)

    def misfit(self, shares: Singles) -> float:
        """|shares - target|^2 / (2 variance)."""
        return float((self.precision * (shares - self.shares) ** 2).sum() / 2)


class Problem(NamedTuple):
    """All that was measured of d columns in S windows.

    sizes: (S,) shares of people.  people: N.  cuts: of each column.
    alone: (L_j,) of its cells.  over_time: (S, A_j) of its groups.
    pairs: (C, C), blocks of groups of all columns; precision 0 where nothing was measured.
    parts: (P, C, C) the same in parts of time.  part_of_window: (S,).
    places: (L_j,) of the cells of numbers, less their mean.  covariances: (p, p) of them.
    """

    sizes: Singles
    people: float
    cuts: list[Cut]
    alone: list[Target]
    over_time: list[Target]
    pairs: Target
    parts: Target
    part_of_window: Ints
    places: dict[int, Singles]
    covariances: Target

    @property
    def members(self) -> list[Singles]:
        """(L_j, A_j) of each column: 1 where a cell is in a group of the tables of pairs; and of a
        number, as one more, the places of its cells."""
        made = [indicator(cut.of_cell).astype(np.float32) for cut in self.cuts]
        for j, at in self.places.items():
            made[j] = np.column_stack([made[j], at])
        return made


def fitted(problem: Problem, rng: np.random.Generator) -> list[Singles]:
    """q_j (S, M, L_j) of each column. By Adam, with shorter steps in the second half."""
    logits = []  # the shares of a window, times what makes each particle another
    for target, over_time, cut in zip(problem.alone, problem.over_time, problem.cuts, strict=True):
        shares = np.maximum(target.shares.astype(np.float64), 0) + LEAST_SHARE
        own = rng.standard_normal((PARTICLES, len(shares)))
        there = np.maximum(over_time.shares / problem.sizes[:, None], LEAST_SHARE)
        change = np.log(there / (problem.sizes @ there))[:, cut.of_cell]
        begin = np.log(shares) + change[:, None] + own
        logits.append(begin.astype(np.float32, order="C"))  # another order takes a third longer
    means, squares = ([np.zeros_like(one) for one in logits] for _ in range(2))
    members, q = problem.members, [_softmax(one) for one in logits]
    for k in range(STEPS):
        rate = LEARNING_RATE * min(1.0, 2 * (1 - k / STEPS) + 0.02)
        first, second = 1 - 0.9 ** (k + 1), 1 - 0.99 ** (k + 1)
        for j, slope in enumerate(slopes(q, problem, members)):
            x, m, v, p = logits[j], means[j], squares[j], q[j]  # in place, while they are at hand
            slope -= np.einsum("sml,sml->sm", p, slope)[..., None]
            slope *= p
            m *= np.float32(0.9)
            m += np.float32(0.1) * slope
            slope *= slope
            v *= np.float32(0.99)
            v += np.float32(0.01) * slope
            step = np.sqrt(v, out=slope)
            step += np.float32(1e-12)
            np.divide(m, step, out=step)
            step *= np.float32(rate * second**0.5 / first)
            x -= step
            q[j] = _softmax(x, out=p)
    return q


def slopes(q: list[Singles], problem: Problem, members: list[Singles]) -> Iterator[Singles]:
    """Of the misfit, with respect to each q_j (S, M, L_j), which may then be changed. members: as
    of the problem."""
    windows, particles = len(problem.sizes), q[0].shape[1]
    each = (problem.sizes / particles)[:, None, None]  # people of a particle, as a share
    ends = np.cumsum([of.shape[1] for of in members])
    numbers = ends[list(problem.places)] - 1
    groups = np.delete(np.arange(ends[-1]), numbers)
    together = np.concatenate([p @ of for p, of in zip(q, members, strict=True)], axis=-1)
    both = (np.swapaxes(together, 1, 2) @ together) * each
    tables, slope = both[:, groups[:, None], groups], np.zeros_like(both)
    by_part = np.zeros(problem.parts.shares.shape, np.float32)
    for part, table in zip(problem.part_of_window, tables, strict=True):
        by_part[part] += table
    of_tables = problem.parts.slope(by_part)[problem.part_of_window]
    slope[:, groups[:, None], groups] = of_tables + problem.pairs.slope(tables.sum(axis=0))
    moments = both[:, numbers[:, None], numbers].sum(axis=0)
    slope[:, numbers[:, None], numbers] = problem.covariances.slope(moments)
    found = together @ ((slope + np.swapaxes(slope, 1, 2)) * each)
    there = 2 * windows / (1 / problem.sizes[1:] + 1 / problem.sizes[:-1])  # around an edge
    moving = (MOTION * problem.people * (windows - 1) / particles * there).astype(np.float32)
    start = 0
    for j, (p, of) in enumerate(zip(q, members, strict=True)):
        shares = (np.ones((1, particles), np.float32) @ p)[:, 0] * each[:, 0]
        over_time = problem.over_time[j]
        known = over_time.shares.shape[1]
        alone = problem.alone[j].slope(shares.sum(axis=0))
        alone = alone + over_time.slope(shares @ of[:, :known]) @ of[:, :known].T
        mine = found[..., start : start + of.shape[1]] @ of.T
        mine += alone[:, None] * each
        mine += _slope_of_motion(p, problem.cuts[j], moving)
        start += of.shape[1]
        yield mine


def _softmax(logits: Singles, out: Singles | None = None) -> Singles:
    """Logits stay between -80 and 80: they begin below 15, each row with one above -10, and no step
    is longer than LEARNING_RATE by much."""
    q: Singles = np.exp(logits, out=out)
    q /= np.einsum("sml->sm", q)[..., None]  # faster along short axes than q.sum
    return q


def _slope_of_motion(q: Singles, cut: Cut, price: Singles) -> Singles:
    """Of the price times M times the sum over windows of the mean of D: of changes D' D q, and of
    cumulative ones, whose sums from both ends are C C' with entries L - max(a, b). Who lacks a
    number is as far from each cell as its ends are from each other."""
    windows, _, cells = q.shape
    change = np.diff(np.eye(windows, dtype=np.float32), axis=0)
    both = np.asarray(change.T @ (price[:, None] * change), np.float32)
    slope: Singles = (both @ q.reshape(windows, -1)).reshape(q.shape)
    if not cut.near:
        return slope
    known = cells - cut.lacks
    rank = np.arange(cells, dtype=np.float32)
    far = np.abs(rank[:, None] - rank)
    far[known:], far[:, known:], far[known:, known:] = known, known, 0
    return slope @ (1 - far / np.float32(known))


class Product(NamedTuple):
    """What particles have of a column. q: (S, M, L) over its cells.  shares: (F,) of its values."""

    q: Singles
    cut: Cut
    shares: Floats


def of_axes(counted: dict[int, Product], axes: Axes) -> list[Product]:
    """Of all axes, from those that are counted: a number of those who have it, and its flag."""
    every, flag = dict(counted), dict(axes.flags)
    for axis, (q, cut, shares) in counted.items():
        if cut.lacks:
            lacks, flags = q[..., -1:], np.arange(2)
            at = cut.cells[:-1], cut.groups[:-1], cut.bands[:-1]
            every[axis] = Product(q[..., :-1], Cut(*at, True), shares[:-1])
            own = Cut(flags, flags, flags, False)
            every[flag[axis]] = Product(np.concatenate([1 - lacks, lacks], -1), own, np.ones(2))
    return [every[axis] for axis in range(len(axes.levels))]


def drawn(
    products: list[Product],
    axes: Axes,
    ends: Ends,
    sizes: Floats,
    count: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """(K, count, d) at K knots in the unit cube, of products in S windows, one for each axis, and
    weights (K, count).

    sizes: (S,) of people. Beyond the middles of the first and the last window shares of levels, and
    numbers, go on as they went. Nobody changes what is fixed: who has it is drawn by its shares of
    all times, and comes as often as those of a window say.
    """
    particles = products[0].q.shape[1]
    each = -(-count // particles)
    particle = np.repeat(np.arange(particles), each)
    columns, comes = [], np.ones((len(ends.knots), len(particle)))
    for j, (q, cut, share) in enumerate(products):
        # of one particle a rank in each of equal parts
        parts = (np.arange(each) + rng.random((particles, each))) / each
        rank = rng.permuted(parts, axis=1).ravel()
        levels, of_cells = axes.levels[j], _shares(q.astype(np.float64))
        if levels or axes.fixed[j]:
            of_cells = _shares(ends.reached(of_cells))
        then = of_cells
        if axes.fixed[j]:
            of_cells = np.tensordot(_shares(ends.reached(sizes)), of_cells, 1)[None]
        if cut.near:
            places = _quantiles(of_cells, particle, rank)
        else:
            places = _levels(of_cells, particle, rank, rng) + rng.random(len(particle))
        made = _inside(places, cut.cells, share)
        if axes.fixed[j]:
            cell = np.minimum(places[0].astype(int), of_cells.shape[2] - 1)
            comes *= then[:, particle, cell] / of_cells[0, particle, cell]
        if levels:
            made = (np.minimum(np.floor(made * levels), levels - 1) + 0.5) / levels
        elif not axes.fixed[j]:
            made = np.clip(ends.reached(made), 0.0, 1.0)
        columns.append(np.broadcast_to(made, (len(ends.knots), len(particle))))
    comes = _shares(comes.reshape(len(comes), particles, each)).reshape(len(comes), -1)
    return np.stack(columns, axis=2), comes / particles


def _shares(values: Floats) -> Floats:
    """Not negative, and 1 in all."""
    positive = np.maximum(values, 1e-12)
    shares: Floats = positive / positive.sum(axis=-1, keepdims=True)
    return shares


def _inside(places: Floats, of: Ints, shares: Floats) -> Floats:
    """In the unit interval, of places (..., n) in cells: inside cell c from c to c + 1, where its
    values are in proportion to their shares (F,)."""
    order = np.argsort(of, kind="stable")
    held = shares[order] + 1e-12
    wide = held / np.bincount(of[order], held)[of[order]]
    starts = np.cumsum(wide) - wide
    value = np.clip(np.searchsorted(starts, places, side="right") - 1, 0, len(of) - 1)
    within = np.clip((places - starts[value]) / wide[value], 0.0, 1.0)
    inside: Floats = (order[value] + within) / len(of)
    return inside


def _quantiles(q: Floats, particle: Ints, rank: Floats) -> Floats:
    """(S, n) places in cells at the rank (n,) of distributions q (S, M, L), even inside cells."""
    places = np.empty((len(q), len(particle)))
    for window, shares in enumerate(q):
        edges = np.cumsum(shares, axis=1)
        edges /= edges[:, -1:]
        cell = np.minimum((edges[particle] < rank[:, None]).sum(axis=1), q.shape[2] - 1)
        upper, inside = edges[particle, cell], shares[particle, cell]
        places[window] = cell + np.clip(1 - (upper - rank) / np.maximum(inside, 1e-12), 0.0, 1.0)
    return places


def _levels(q: Floats, particle: Ints, rank: Floats, rng: np.random.Generator) -> Ints:
    """(S, n) cells that change as seldom as their shares allow."""
    last = q.shape[2] - 1
    cells = np.empty((len(q), len(particle)), np.int64)
    cells[0] = np.minimum(_quantiles(q[:1], particle, rank)[0].astype(int), last)
    for window in range(1, len(q)):
        before, after, cell = q[window - 1], q[window], cells[window - 1].copy()
        stay = after[particle, cell] / np.maximum(before[particle, cell], 1e-12)
        leaves = np.flatnonzero(rng.random(len(particle)) >= stay)
        grown = np.cumsum(np.maximum(after - before, 0.0) + 1e-12, axis=1)
        edges = (grown / grown[:, -1:])[particle[leaves]]
        cell[leaves] = np.minimum((edges < rng.random(len(leaves))[:, None]).sum(axis=1), last)
        cells[window] = cell
    return cells
