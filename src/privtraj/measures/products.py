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
    + MOTION N sum_s mean_i D( q_ij(s), q_ij(s + 1) ) (S - 1),
D being squared transport: of cumulative shares for numbers and ordered categories, |q - q'|^2 / 2
for others. So what is known of one window helps its neighbours, and people are still unless tables
say otherwise.

Shapes.  How many groups a column has depends on released numbers, and every other shape is compiled
again. So empty groups fill them up: no cell is in them, and their tables have precision 0.

People are drawn from particles: in every window one value of each column, and few changes. A number
is read at one quantile of its particle's distribution all the time, so it moves as the distribution
does. A level stays as it is with the chance min(1, q'(c) / q(c)), and otherwise goes where shares
grow: no coupling of q with q' has fewer changes. Everything here is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.columns.kinds import Axes
from privtraj.measures.windows import Ends

PARTICLES = 512
"""Products of distributions that are fitted; 1,024 and 2,048 are as good."""
STEPS = 300
"""Of Adam: 200 lose 5 % in total variation, 600 follow the noise and lose 3 to 8 %."""
LEARNING_RATE = 0.1
"""Of Adam."""
MOTION = 0.003
"""Price of motion, per person, in units of the log likelihood: .01 is as good, .1 hides a third of
a drift of shares from 20 to 70 % of 8,000 people, and 0 loses 5 % in total variation; above 0 it
settles what tables cannot tell."""
LEAST_SHARE = 1e-4
"""Of a cell to begin with."""
WIDEST = 1 / 8
"""Width of a particle to begin with, along a number; 1/20 loses 5 %."""
MULTIPLE = 8
"""Of groups of a category with many levels."""


class Target(NamedTuple):
    """A noisy table, in shares of all people, and the inverse of its variance."""

    shares: jax.Array
    precision: jax.Array


class Problem(NamedTuple):
    """All that was measured of d columns in S windows.

    sizes: (S,) shares of people.  people: N.
    alone: (L_j,) of each column.  over_time: (S, A_j) of groups of its cells.
    pairs: (C, C), blocks of groups of all columns; precision 0 where nothing was measured.
    parts: (P, C, C) the same in parts of time.  part_of_window: (P, S) 1 where it is in a part.
    covariances: (p, p) of the p numbers.  means: (p,) of them.
    time_groups, pair_groups: (L_j, A_j) 1 where a cell is in a group.
    """

    sizes: jax.Array
    people: jax.Array
    alone: tuple[Target, ...]
    over_time: tuple[Target, ...]
    pairs: Target
    parts: Target
    part_of_window: jax.Array
    covariances: Target
    means: jax.Array
    time_groups: tuple[jax.Array, ...]
    pair_groups: tuple[jax.Array, ...]


Logits = tuple[jax.Array, ...]


def fitted(problem: Problem, axes: Axes, rng: np.random.Generator) -> list[Floats]:
    """q_j (S, M, L_j) of each column; S is 1 for a fixed one."""
    start = []  # (M, L) logits: the shares of all people, times what makes each particle another
    for target, levels, fixed in zip(problem.alone, axes.levels, axes.fixed, strict=True):
        shares = np.maximum(np.asarray(target.shares, np.float64), 0) + LEAST_SHARE
        own = rng.standard_normal((PARTICLES, len(shares)))
        if not levels:
            places = np.arange(len(shares)) / len(shares)
            centre = places[rng.choice(len(shares), PARTICLES, p=shares / shares.sum())]
            own = -0.5 * ((places - centre[:, None]) / WIDEST) ** 2
        windows = 1 if fixed else len(problem.sizes)
        start.append(jnp.asarray(np.repeat((np.log(shares) + own)[None], windows, 0), jnp.float32))
    logits = _descended(problem, tuple(start), axes)
    return [np.asarray(jax.nn.softmax(one), np.float64) for one in logits]


@partial(jax.jit, static_argnums=2)
def _descended(problem: Problem, start: Logits, axes: Axes) -> Logits:
    """Adam, whose steps become shorter in the second half."""
    slope = jax.grad(partial(_misfit, axes=axes))
    zeros = jax.tree.map(jnp.zeros_like, start)

    def step(
        state: tuple[Logits, Logits, Logits], k: jax.Array
    ) -> tuple[tuple[Logits, Logits, Logits], None]:
        logits, mean, square = state
        found = slope(logits, problem)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, found)
        square = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, square, found)
        rate = LEARNING_RATE * jnp.minimum(1.0, 2 * (1 - k / STEPS) + 0.02)
        first, second = 1 - 0.9 ** (k + 1), 1 - 0.99 ** (k + 1)
        logits = jax.tree.map(
            lambda x, m, v: x - rate * (m / first) / (jnp.sqrt(v / second) + 1e-12),
            logits,
            mean,
            square,
        )
        return (logits, mean, square), None

    (logits, _, _), _ = jax.lax.scan(
        step, (start, zeros, zeros), jnp.arange(STEPS, dtype=jnp.float32)
    )
    return logits


def _misfit(logits: Logits, problem: Problem, axes: Axes) -> jax.Array:
    windows = len(problem.sizes)
    grouped, places, misfit = [], [], jnp.zeros((), jnp.float32)
    for j, free in enumerate(logits):
        q = jax.nn.softmax(free)
        if not axes.fixed[j]:
            misfit += MOTION * problem.people * _moved(q, axes, j) * max(windows - 1, 1)
        q = jnp.broadcast_to(q, (windows, *q.shape[1:]))
        mean = problem.sizes[:, None] * q.mean(axis=1)
        misfit += _distance(mean.sum(axis=0), problem.alone[j])
        misfit += _distance(mean @ problem.time_groups[j], problem.over_time[j])
        grouped.append(q @ problem.pair_groups[j])
        if not axes.levels[j]:
            places.append(q @ ((jnp.arange(q.shape[-1], dtype=q.dtype) + 0.5) / q.shape[-1]))
    together = jnp.concatenate(grouped, axis=-1)
    weighed = together * problem.sizes[:, None, None] / together.shape[1]
    tables = jnp.einsum("sma,smb->sab", weighed, together)
    parts = jnp.einsum("ps,sab->pab", problem.part_of_window, tables)
    misfit += _distance(tables.sum(axis=0), problem.pairs)
    if len(places) > 1:
        away = jnp.stack(places, axis=-1) - problem.means
        together = problem.sizes[:, None, None] * away / away.shape[1]
        misfit += _distance(jnp.einsum("sma,smb->ab", together, away), problem.covariances)
    return misfit + _distance(parts, problem.parts)


def _distance(shares: jax.Array, target: Target) -> jax.Array:
    return (target.precision * (shares - target.shares) ** 2).sum() / 2


def _moved(q: jax.Array, axes: Axes, j: int) -> jax.Array:
    """Sum over windows of the mean of D."""
    near = axes.levels[j] == 0 or axes.ordered[j]
    change = jnp.diff(q, axis=0)
    if near:  # cumulative shares: a product with 0 and 1 is faster here than jnp.cumsum
        change = change @ jnp.triu(jnp.ones((q.shape[-1],) * 2, q.dtype))
    squares = (change**2).sum(axis=-1)
    return squares.mean(axis=1).sum() * (1 / q.shape[-1] if near else 0.5)


def evened(problem: Problem, axes: Axes) -> Problem:
    """The same problem with empty groups."""
    in_time, in_pairs = (_widths(of, axes) for of in (problem.time_groups, problem.pair_groups))
    places = np.concatenate(
        [
            start + np.arange(of.shape[1])
            for start, of in zip(np.cumsum([0, *in_pairs]), problem.pair_groups, strict=False)
        ]
    )
    return problem._replace(
        over_time=tuple(
            Target(*(_filled(part, width) for part in target))
            for target, width in zip(problem.over_time, in_time, strict=True)
        ),
        pairs=_moved_apart(problem.pairs, places, sum(in_pairs)),
        parts=_moved_apart(problem.parts, places, sum(in_pairs)),
        time_groups=tuple(map(_filled, problem.time_groups, in_time)),
        pair_groups=tuple(map(_filled, problem.pair_groups, in_pairs)),
    )


def _widths(groups: Sequence[Any], axes: Axes) -> list[int]:
    """How many groups each column has then, from indicators (L_j, A_j): all numbers as many, which
    is nearly always the most that they may have."""
    most = max((of.shape[1] for of, n in zip(groups, axes.levels, strict=True) if not n), default=0)
    return [
        min(of.shape[0], -(-of.shape[1] // MULTIPLE) * MULTIPLE) if levels else most
        for of, levels in zip(groups, axes.levels, strict=True)
    ]


def _filled(table: Any, width: int) -> Any:
    """(n, A) -> (n, width), 0 in what is new."""
    return np.pad(np.asarray(table), ((0, 0), (0, width - table.shape[1])))


def _moved_apart(target: Target, places: Ints, width: int) -> Target:
    """Tables (..., C, C) -> (..., width, width): groups stand at these places (C,)."""

    def apart(table: Any) -> Any:
        made = np.zeros((*table.shape[:-2], width, width), np.float32)
        made[..., places[:, None], places] = table
        return made

    return Target(*map(apart, target))


def drawn(q: list[Floats], axes: Axes, ends: Ends, count: int, rng: np.random.Generator) -> Floats:
    """(K, count, d) at K knots in the unit cube, of products q_j (S, M, L_j) in S windows.

    S is 1 for a fixed column. Beyond the middles of the first and the last window shares of levels,
    and numbers, go on as they went.
    """
    particles, may_lack = q[0].shape[1], {number for number, _ in axes.flags}
    each = -(-count // particles)
    particle = np.repeat(np.arange(particles), each)
    columns = []
    for j, shares in enumerate(q):
        # of one particle a rank in each of equal parts
        parts = (np.arange(each) + rng.random((particles, each))) / each
        rank = rng.permuted(parts, axis=1).ravel()
        levels = axes.levels[j]
        if j in may_lack:  # whoever lacks it is counted in the middle cell: as its neighbours then
            middle, present = shares.shape[-1] // 2, shares.copy()
            present[..., middle] = (shares[..., middle - 1] + shares[..., middle + 1]) / 2
            shares = _shares(present)
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


def _shares(values: Floats) -> Floats:
    """Not negative, and 1 in all."""
    positive = np.maximum(values, 1e-12)
    shares: Floats = positive / positive.sum(axis=-1, keepdims=True)
    return shares


def _quantiles(q: Floats, particle: Ints, rank: Floats, rng: np.random.Generator) -> Floats:
    """(S, n) places in [0, 1] at the rank (n,) of distributions q (S, M, L), even inside cells."""
    cells = q.shape[2]
    places = np.empty((len(q), len(particle)))
    for window, shares in enumerate(q):
        edges = np.cumsum(shares, axis=1)
        edges /= edges[:, -1:]
        cell = np.minimum((edges[particle] < rank[:, None]).sum(axis=1), cells - 1)
        upper, inside = edges[particle, cell], shares[particle, cell]
        within = np.clip(1 - (upper - rank) / np.maximum(inside, 1e-12), 0.0, 1.0)
        places[window] = (cell + within) / cells
    return places


def _levels(q: Floats, particle: Ints, rank: Floats, rng: np.random.Generator) -> Floats:
    """(S, n) middles of the cells of levels, which change as seldom as their shares allow."""
    count = q.shape[2]
    places = np.empty((len(q), len(particle)))
    level = np.minimum((_quantiles(q[:1], particle, rank, rng)[0] * count).astype(int), count - 1)
    places[0] = (level + 0.5) / count
    for window in range(1, len(q)):
        before, after = q[window - 1], q[window]
        stay = after[particle, level] / np.maximum(before[particle, level], 1e-12)
        leaves = np.flatnonzero(rng.random(len(particle)) >= stay)
        grown = np.cumsum(np.maximum(after - before, 0.0) + 1e-12, axis=1)
        edges = (grown / grown[:, -1:])[particle[leaves]]
        level[leaves] = np.minimum(
            (edges < rng.random(len(leaves))[:, None]).sum(axis=1), count - 1
        )
        places[window] = (level + 0.5) / count
    return places
