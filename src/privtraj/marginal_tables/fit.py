"""A fit by marginal tables: noisy tables of one and two columns, and particles that explain them.

    people      how many are in every slab of time, from which the number of cells follows
    alone       cells of each column, all times together: groups of cells follow from it
    over time   groups of each column in every slab of time
    pairs       groups of every two columns, all times together
    again       the pairs that turned out to depend on each other

Every round is one release of several tables (`Guard.tables`), and the rounds share what the main
release may tell. Which pairs are measured again is decided by released tables alone: the choice
costs nothing. Time is a column like others, so a person of any time tells about every pair, and
particles carry what is known from slab to slab (`particles`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from privtraj.arrays import Floats, Ints
from privtraj.columns.axes import Axes
from privtraj.marginal_tables import groups
from privtraj.marginal_tables.constants import (
    CELL_PEOPLE,
    CELLS,
    FEWEST_GROUPS,
    MOST_GROUPS,
    PEOPLE,
    PER_CELL,
    ROUNDS,
    SIGNIFICANT,
)
from privtraj.marginal_tables.denoising import denoised
from privtraj.marginal_tables.particles import Problem, Target, fitted
from privtraj.marginal_tables.people import drawn
from privtraj.marginal_tables.slabs import Ends
from privtraj.marginals import Marginals, Progress
from privtraj.privacy.guard import Guard
from privtraj.privacy.watching import Table
from privtraj.slabs.fit import Resolution
from privtraj.space import Slabs

TABLES = "marginal tables"

_ALWAYS = Slabs.between(np.empty(0))


class TablesSettings(NamedTuple):
    """What a fit by marginal tables will do. mu: 1/z of all rounds together."""

    mu: float
    people: int = PEOPLE
    worth: float = math.inf

    def summary(self) -> dict[str, Any]:
        """What the model says about them."""
        return {
            "measure": "marginals",
            "particles": self.people,
            "steps": len(ROUNDS),
            "cells_per_side": None,
        }


class Pairs(NamedTuple):
    """Tables of two columns, in blocks of (C, C) people, and their precision, 1 / variance."""

    people: Floats
    precision: Floats

    def with_table(self, rows: slice, columns: slice, counts: Floats, deviation: float) -> None:
        """Average one more noisy table in, by its precision."""
        old, new = self.precision[rows, columns], 1 / deviation**2
        sums = self.people[rows, columns] * old + counts * new
        self.people[rows, columns] = sums / (old + new)
        self.precision[rows, columns] = old + new


def fit_tables(
    guard: Guard,
    resolution: Resolution,
    settings: TablesSettings,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> tuple[Marginals, Floats]:
    """Curves of people through S slabs, particle i of all knots is one person, and the knots."""
    slabs = resolution.timeline.slabs(resolution.slab_of_moment)
    ends = Ends.of(resolution)
    asked, axes = _Asked(guard, settings.mu), guard.axes
    told = progress or (lambda done, of: None)
    told(0, len(ROUNDS) + 1)
    (first,), _ = asked.tables(0, [((), slabs)], (1,) * guard.n_features)
    people = max(float(first.sum()), 1.0)
    told(1, len(ROUNDS) + 1)
    sides = axes.sides(cells_of_number(people, asked.deviation(1, guard.n_features)))
    every = [(j,) for j in range(guard.n_features)]
    alone, noise_alone = asked.tables(1, [(one, _ALWAYS) for one in every], sides)
    shares = [on_simplex(table[0] / max(table.sum(), 1.0)) for table in alone]
    told(2, len(ROUNDS) + 1)
    noise = asked.deviation(2, len(every))
    count = people / slabs.count / (PER_CELL * noise)
    in_time = _grouped(axes, shares, people, count, noise)
    timed, _ = asked.tables(2, [(one, slabs) for one in every], sides, in_time)
    sizes = np.maximum(np.mean([table.sum(axis=1) for table in timed], axis=0), 1.0)
    people = float(sizes.sum())
    told(3, len(ROUNDS) + 1)
    found, in_pairs = _measured_pairs(asked, axes, shares, people, sides)
    told(len(ROUNDS), len(ROUNDS) + 1)
    still = [np.outer(sizes, share @ groups.indicator(of)) for share, of in _each(shares, in_time)]
    over_time = [
        mean if fixed else denoised(table, mean, noise)
        for table, mean, fixed in zip(timed, still, axes.fixed, strict=True)
    ]
    problem = Problem(
        sizes=_single(sizes / people),
        people=_single(people),
        alone=tuple(_target(share * people, noise_alone, people) for share in shares),
        over_time=tuple(_target(table, noise, people) for table in over_time),
        pairs=Target(_single(found.people / people), _single(found.precision * people**2)),
        time_groups=tuple(_single(groups.indicator(one)) for one in in_time),
        pair_groups=tuple(_single(groups.indicator(one)) for one in in_pairs),
    )
    particles = drawn(fitted(problem, axes, rng), axes, ends, settings.people, rng)
    told(len(ROUNDS) + 1, len(ROUNDS) + 1)
    cell = np.full(len(particles), 1 / (max(sides) * math.sqrt(12)))
    marginals = Marginals(
        particles,
        np.full(particles.shape[:2], 1 / particles.shape[1]),
        bandwidth=cell / 2,
        resolution=cell,
        diagnostics={
            "people_counted": sizes.tolist(),
            "people_noise": noise * math.sqrt(sum(map(_count, in_time))) / len(every),
            "worth": min(people**2 / max(_noise_of_pairs(found), 1e-12), people),
        },
    )
    return marginals, ends.knots


class _Asked:
    """Questions to a guard, each round at its share of 1/z."""

    def __init__(self, guard: Guard, mu: float) -> None:
        self._guard = guard
        self._mu = mu

    def deviation(self, turn: int, tables: int) -> float:
        """Standard deviation of a cell in a round of so many tables, in people."""
        return math.sqrt(tables / ROUNDS[turn]) / self._mu

    def tables(
        self,
        turn: int,
        wanted: Sequence[tuple[tuple[int, ...], Slabs]],
        sides: Sequence[int],
        grouped: Sequence[Ints] | None = None,
    ) -> tuple[list[Floats], float]:
        """Noisy tables (K, cells) of these columns and slabs, and the deviation of their cells."""
        questions = []
        for columns, slabs in wanted:
            mine = tuple(side if j in columns else 1 for j, side in enumerate(sides))
            few = None
            if grouped is not None:
                few = tuple(one if j in columns else None for j, one in enumerate(grouped))
            questions.append(Table(slabs, mine, groups=few))
        z = 1 / (self._mu * math.sqrt(ROUNDS[turn]))
        return self._guard.tables(questions, z, TABLES), self.deviation(turn, len(questions))


def _measured_pairs(
    asked: _Asked, axes: Axes, shares: list[Floats], people: float, sides: Sequence[int]
) -> tuple[Pairs, list[Ints]]:
    """Tables of all pairs, and again of those that depend on each other, without their noise."""
    every = list(combinations(range(len(sides)), 2))
    if not every:
        return Pairs(np.zeros((1, 1)), np.zeros((1, 1))), [np.zeros(side, int) for side in sides]
    noise = asked.deviation(3, len(every))
    in_pairs = _grouped(axes, shares, people, math.sqrt(people / (PER_CELL * noise)), noise)
    ends = np.cumsum(list(map(_count, in_pairs)))
    blocks = [slice(end - _count(of), end) for end, of in zip(ends, in_pairs, strict=True)]
    found = Pairs(np.zeros((ends[-1], ends[-1])), np.zeros((ends[-1], ends[-1])))
    alone = [share @ groups.indicator(of) for share, of in _each(shares, in_pairs)]
    wanted = every
    for turn in (3, 4):
        questions = [(pair, _ALWAYS) for pair in wanted]
        answers, deviation = asked.tables(turn, questions, sides, in_pairs)
        for (i, j), answer in zip(wanted, answers, strict=True):
            table = answer.reshape(len(alone[i]), len(alone[j]))
            found.with_table(blocks[i], blocks[j], table, deviation)
        wanted = _dependent(found, every, blocks, alone, people)
    for i, j in every:
        block, expected = (blocks[i], blocks[j]), people * np.outer(alone[i], alone[j])
        deviation = float(found.precision[block].max()) ** -0.5
        found.people[block] = denoised(found.people[block], expected, deviation)
    return found, in_pairs


def _dependent(
    found: Pairs,
    every: list[tuple[int, int]],
    blocks: list[slice],
    expected: list[Floats],
    people: float,
) -> list[tuple[int, int]]:
    """The pairs whose table is farther from that of independent columns than noise; else all.

    The squared distance of n cells with noise of variance v has mean n v and variance 2 n v^2.
    """
    chosen = []
    for i, j in every:
        table, precision = found.people[blocks[i], blocks[j]], found.precision[blocks[i], blocks[j]]
        away = table - people * np.outer(expected[i], expected[j])
        excess = float((precision * away**2).sum()) - table.size
        if excess > SIGNIFICANT * math.sqrt(2 * table.size):
            chosen.append((i, j))
    return chosen or every


def _grouped(
    axes: Axes, shares: list[Floats], people: float, count: float, noise: float
) -> list[Ints]:
    """(L_j,) of each column: at most `count` groups of a number, and of a category those levels
    that stand out where they are spread over so many cells."""
    most = int(np.clip(count, FEWEST_GROUPS, MOST_GROUPS))
    least = PER_CELL * noise * math.sqrt(most) / people
    made = []
    for share, levels, ordered in zip(shares, axes.levels, axes.ordered, strict=True):
        if not levels:
            made.append(groups.of_number(share, most))
        else:
            made.append((groups.of_ordered if ordered else groups.of_category)(share, least))
    return made


def cells_of_number(people: float, noise: float) -> int:
    """The power of two next to N / (CELL_PEOPLE noise), within limits."""
    wanted = math.log2(max(people / (CELL_PEOPLE * noise), 1.0))
    return int(2 ** np.clip(round(wanted), *np.log2(CELLS)))


def _each(shares: list[Floats], grouped: list[Ints]) -> Iterable[tuple[Floats, Ints]]:
    return zip(shares, grouped, strict=True)


def _count(grouped: Ints) -> int:
    return int(grouped.max()) + 1


def _noise_of_pairs(found: Pairs) -> float:
    """Mean over the pairs of the summed variance of a table: N people by chance have about N."""
    measured = found.precision > 0
    tables = max(np.count_nonzero(measured) / max(measured.any(axis=1).sum(), 1), 1.0)
    return float((1 / found.precision[measured]).sum() / tables)


def on_simplex(shares: Floats) -> Floats:
    """The nearest shares (n,) that are not negative and add up to 1."""
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(shares) + 1)
    return np.maximum(shares - excess[np.flatnonzero(falling > excess)[-1]], 0.0)


def _target(counts: Floats, deviation: float, people: float) -> Target:
    precision = np.full(counts.shape, (people / deviation) ** 2)
    return Target(_single(counts / people), _single(precision))


def _single(values: Any) -> Any:
    return jnp.asarray(values, jnp.float32)
