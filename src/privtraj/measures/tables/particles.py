"""Particles that explain noisy tables: products of distributions that move in time.

Particle i of M is a product kernel: at slab s it has a distribution q_ij(s, .) over the cells of
each column j, softmax of free numbers; that of a fixed column is the same in all slabs. A mixture
of such products has simple tables,
    column over time   N_s / M  sum_i q_ij(s, a)
    two columns        sum_s N_s / M  sum_i q_ij(s, a) q_ik(s, b),
all pairs of columns at once being one product of matrices. So are the covariances of numbers, which
say what groups of cells hide: that two numbers go together within a group too. The particles
minimise
    sum over tables of |table of the particles - noisy table|^2 / (2 deviation^2)
    + MOTION N sum_s mean_i D( q_ij(s), q_ij(s + 1) ) (S - 1),
D being squared transport: of cumulative shares for numbers and ordered categories, |q - q'|^2 / 2
for others. So what is known of one slab helps its neighbours, and people are still unless tables
say otherwise. Everything here is post-processing.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from privtraj.base.arrays import Floats
from privtraj.columns.axes import Axes
from privtraj.measures.tables.constants import (
    LEARNING_RATE,
    LEAST_SHARE,
    MOTION,
    PARTICLES,
    STEPS,
    WIDEST,
)


class Target(NamedTuple):
    """A noisy table, in shares of all people, and the inverse of its variance."""

    shares: jax.Array
    precision: jax.Array


class Problem(NamedTuple):
    """All that was measured of d columns in S slabs.

    sizes: (S,) shares of people.  people: N.
    alone: (L_j,) of each column.  over_time: (S, A_j) of groups of its cells.
    pairs: (C, C), blocks of groups of all columns; precision 0 where nothing was measured.
    parts: (P, C, C) the same in parts of time.  part_of_slab: (P, S) 1 where a slab is in a part.
    covariances: (p, p) of the p numbers.  means: (p,) of them.
    time_groups, pair_groups: (L_j, A_j) 1 where a cell is in a group.
    """

    sizes: jax.Array
    people: jax.Array
    alone: tuple[Target, ...]
    over_time: tuple[Target, ...]
    pairs: Target
    parts: Target
    part_of_slab: jax.Array
    covariances: Target
    means: jax.Array
    time_groups: tuple[jax.Array, ...]
    pair_groups: tuple[jax.Array, ...]


Logits = tuple[jax.Array, ...]


def fitted(problem: Problem, axes: Axes, rng: np.random.Generator) -> list[Floats]:
    """q_j (S, M, L_j) of each column; S is 1 for a fixed one."""
    start = tuple(
        _start(np.asarray(target.shares, np.float64), levels, rng)
        for target, levels in zip(problem.alone, axes.levels, strict=True)
    )
    slabs = len(problem.sizes)
    spread = tuple(
        jnp.asarray(np.repeat(one[None], 1 if fixed else slabs, axis=0), jnp.float32)
        for one, fixed in zip(start, axes.fixed, strict=True)
    )
    logits = _descended(problem, spread, axes)
    return [np.asarray(jax.nn.softmax(one), np.float64) for one in logits]


def _start(shares: Floats, levels: int, rng: np.random.Generator) -> Floats:
    """(M, L) logits: the shares of all people, times what makes every particle another one."""
    shares = np.maximum(shares, 0) + LEAST_SHARE
    own = rng.standard_normal((PARTICLES, len(shares)))
    if not levels:
        places = np.arange(len(shares)) / len(shares)
        centre = places[rng.choice(len(shares), PARTICLES, p=shares / shares.sum())]
        own = -0.5 * ((places - centre[:, None]) / WIDEST) ** 2
    return np.log(shares) + own


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
    slabs = len(problem.sizes)
    grouped, places, misfit = [], [], jnp.zeros((), jnp.float32)
    for j, free in enumerate(logits):
        q = jax.nn.softmax(free)
        if not axes.fixed[j]:
            misfit += MOTION * problem.people * _moved(q, axes, j) * max(slabs - 1, 1)
        q = jnp.broadcast_to(q, (slabs, *q.shape[1:]))
        mean = problem.sizes[:, None] * q.mean(axis=1)
        misfit += _distance(mean.sum(axis=0), problem.alone[j])
        misfit += _distance(mean @ problem.time_groups[j], problem.over_time[j])
        grouped.append(q @ problem.pair_groups[j])
        if not axes.levels[j]:
            places.append(q @ ((jnp.arange(q.shape[-1], dtype=q.dtype) + 0.5) / q.shape[-1]))
    together = jnp.concatenate(grouped, axis=-1)
    weighed = together * problem.sizes[:, None, None] / together.shape[1]
    tables = jnp.einsum("sma,smb->sab", weighed, together)
    parts = jnp.einsum("ps,sab->pab", problem.part_of_slab, tables)
    misfit += _distance(tables.sum(axis=0), problem.pairs)
    if len(places) > 1:
        away = jnp.stack(places, axis=-1) - problem.means
        together = problem.sizes[:, None, None] * away / away.shape[1]
        misfit += _distance(jnp.einsum("sma,smb->ab", together, away), problem.covariances)
    return misfit + _distance(parts, problem.parts)


def _distance(shares: jax.Array, target: Target) -> jax.Array:
    return (target.precision * (shares - target.shares) ** 2).sum() / 2


def _moved(q: jax.Array, axes: Axes, j: int) -> jax.Array:
    """Sum over slabs of the mean of D."""
    near = axes.levels[j] == 0 or axes.ordered[j]
    change = jnp.diff(q, axis=0)
    if near:  # cumulative shares: a product with 0 and 1 is faster here than jnp.cumsum
        change = change @ jnp.triu(jnp.ones((q.shape[-1],) * 2, q.dtype))
    squares = (change**2).sum(axis=-1)
    return squares.mean(axis=1).sum() * (1 / q.shape[-1] if near else 0.5)
