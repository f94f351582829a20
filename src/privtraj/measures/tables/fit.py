"""A fit by marginal tables: noisy tables of one and two columns, and particles that explain them.

    people      how many are in every slab of time, from which the number of cells follows
    alone       cells of each column, all times together: groups of cells follow from it
    over time   groups of each column in every slab of time
    pairs       groups of every two columns, all times together
    parts       the pairs that turned out to depend on each other, in parts of time

Every round is one release of several tables (`Guard.tables`), and the rounds share what the main
release may tell. Which pairs are measured again is decided by released tables alone: the choice
costs nothing. Time is a column like others, so a person of any time tells about every pair, and
particles carry what is known from slab to slab (`particles`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.space import Slabs
from privtraj.columns.axes import Axes
from privtraj.measures.marginals import Marginals, Progress
from privtraj.measures.tables import groups
from privtraj.measures.tables.constants import (
    CELL_PEOPLE,
    CELLS,
    FEWEST_GROUPS,
    MOST_GROUPS,
    PARTS,
    PEOPLE,
    PER_CELL,
    ROUNDS,
)
from privtraj.measures.tables.denoising import denoised, smoothed
from privtraj.measures.tables.known import Known
from privtraj.measures.tables.pairs import (
    Pair,
    Pairs,
    covariances,
    measured_pairs,
    noise_of,
    with_margins,
)
from privtraj.measures.tables.particles import Problem, Target, fitted
from privtraj.measures.tables.people import drawn
from privtraj.measures.tables.shapes import evened
from privtraj.measures.tables.slabs import Ends
from privtraj.measures.windows.fit import Resolution
from privtraj.privacy.guard import Guard
from privtraj.privacy.questions import Gaussian, Release, Table, Tables

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


def fit_tables(
    guard: Guard,
    resolution: Resolution,
    settings: TablesSettings,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> tuple[Marginals, Floats]:
    """Curves of people through S slabs, particle i of all knots is one person, and the knots."""
    told = progress or (lambda done, of: None)
    slabs = resolution.timeline.slabs(resolution.slab_of_moment)
    asked, axes, ends = _Asked(guard, settings.mu), guard.axes, Ends.of(resolution)
    (first,), _ = asked.tables(0, [((), slabs)], (1,) * guard.n_features)
    told(1, len(ROUNDS) + 1)
    people = max(float(first.sum()), 1.0)
    cells = cells_of_number(people, asked.deviation(1, guard.n_features))
    sides = axes.sides(cells)
    known = _alone(asked, axes, sides)
    told(2, len(ROUNDS) + 1)
    moving, known = _over_time(asked, axes, sides, known, slabs, resolution.centres)
    told(3, len(ROUNDS) + 1)
    found, in_pairs, known = _pairs(asked, axes, sides, known, slabs, moving)
    told(len(ROUNDS), len(ROUNDS) + 1)
    problem = _problem(axes, known, moving, found, in_pairs)
    products = fitted(evened(problem, axes), axes, rng)
    particles = drawn(products, axes, ends, settings.people, rng)
    told(len(ROUNDS) + 1, len(ROUNDS) + 1)
    people = float(moving.sizes.sum())
    width = np.full(len(particles), 1 / (cells * math.sqrt(12)))
    marginals = Marginals(
        particles,
        np.full(particles.shape[:2], 1 / particles.shape[1]),
        bandwidth=width / 2,
        resolution=width,
        diagnostics={
            "people_per_time": moving.sizes.tolist(),
            "people_noise": moving.noise_of_sizes,
            "worth": min(people**2 / max(noise_of(found), 1.0), people / slabs.count),
        },
    )
    return marginals, ends.knots


class _Moving(NamedTuple):
    """Columns over time. sizes: (S,) people.  groups: (L_j,).  tables: (S, A_j) without noise.

    noise: deviation of a cell.
    """

    sizes: Floats
    groups: list[Ints]
    tables: list[Floats]
    noise: float

    @property
    def noise_of_sizes(self) -> float:
        """Deviation of a number of people, the mean over the columns of sums over groups."""
        cells = sum(map(groups.count, self.groups))
        return self.noise * math.sqrt(cells) / len(self.groups)


def _alone(asked: _Asked, axes: Axes, sides: Sequence[int]) -> list[Known]:
    """Every column by itself."""
    wanted = [((j,), _ALWAYS) for j in range(len(sides))]
    tables, noise = asked.tables(1, wanted, sides)
    found = []
    for (counts,), levels in zip(tables, axes.levels, strict=True):
        clean = counts if levels else smoothed(counts, noise)
        total = max(float(counts.sum()), 1.0)
        found.append(Known(total * on_simplex(clean / total), np.full(len(counts), noise**2)))
    return found


def _over_time(
    asked: _Asked,
    axes: Axes,
    sides: Sequence[int],
    known: list[Known],
    slabs: Slabs,
    moments: Floats,
) -> tuple[_Moving, list[Known]]:
    """Every column in S slabs, whose middles are moments (S,), and what is known then."""
    noise = asked.deviation(2, len(sides))
    people = float(np.mean([one.people.sum() for one in known]))
    of = _grouped(axes, known, people, people / slabs.count / (PER_CELL * noise), noise)
    tables, _ = asked.tables(2, [((j,), slabs) for j in range(len(sides))], sides, of)
    sizes = np.maximum(np.mean([table.sum(axis=1) for table in tables], axis=0), 1.0)
    better = [
        one.told(mine, table.sum(axis=0), slabs.count * noise**2)
        for one, mine, table in zip(known, of, tables, strict=True)
    ]
    clean = []
    for j, (one, mine, table) in enumerate(zip(better, of, tables, strict=True)):
        still = np.outer(sizes, one.shares @ groups.indicator(mine))
        scores = groups.scores(mine) if near(axes, j) else None
        clean.append(still if axes.fixed[j] else denoised(table, still, noise, moments, scores))
    return _Moving(sizes, of, clean, noise), better


def _pairs(
    asked: _Asked,
    axes: Axes,
    sides: Sequence[int],
    known: list[Known],
    slabs: Slabs,
    moving: _Moving,
) -> tuple[Pairs, list[Ints], list[Known]]:
    """Tables of two columns, their groups, and what is known of single columns then."""
    people, d = float(moving.sizes.sum()), len(sides)
    noise = asked.deviation(3, max(d * (d - 1) // 2, 1))
    of = _grouped(axes, known, people, math.sqrt(people / (PER_CELL * noise)), noise)
    part = part_of_slab(slabs.count)
    parts = Slabs(slabs.edges, part[slabs.slab_of_piece])
    every = list(combinations(range(d), 2))
    asking = [(pair, _ALWAYS) for pair in every]
    tables, deviation = asked.tables(3, asking, sides, of) if every else ([], noise)
    first = [
        table.reshape(groups.count(of[i]), -1) for (i, j), table in zip(every, tables, strict=True)
    ]
    better = with_margins(known, of, every, first, deviation)
    by_part = [
        groups.indicator(part).T @ _in_cells(one.shares, table, mine) @ groups.indicator(together)
        for one, table, mine, together in zip(better, moving.tables, moving.groups, of, strict=True)
    ]
    scores = [groups.scores(mine) if near(axes, j) else None for j, mine in enumerate(of)]

    def again(chosen: Sequence[Pair]) -> tuple[list[Floats], float]:
        return asked.tables(4, [(pair, parts) for pair in chosen], sides, of)

    found = measured_pairs(by_part, scores, dict(zip(every, first, strict=True)), deviation, again)
    return found, of, better


def _problem(
    axes: Axes, known: list[Known], moving: _Moving, found: Pairs, in_pairs: list[Ints]
) -> Problem:
    people = float(moving.sizes.sum())
    shares = [one.shares for one in known]
    numbers = np.flatnonzero(axes.numbers).tolist()
    together, precision = covariances(found, in_pairs, shares, numbers)
    part = part_of_slab(len(moving.sizes))
    return Problem(
        sizes=_single(moving.sizes / people),
        people=_single(people),
        alone=tuple(_target(one.shares * people, 1 / one.variance, people) for one in known),
        over_time=tuple(
            _target(table, np.full(table.shape, moving.noise**-2), people)
            for table in moving.tables
        ),
        pairs=_target(found.always, found.precision[0], people),
        parts=_target(found.parts, found.precision[1], people),
        part_of_slab=_single(groups.indicator(part).T),
        covariances=Target(_single(together), _single(precision)),
        means=_single([shares[j] @ groups.middles(len(shares[j])) for j in numbers]),
        time_groups=tuple(_single(groups.indicator(one)) for one in moving.groups),
        pair_groups=tuple(_single(groups.indicator(one)) for one in in_pairs),
    )


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
        return self._guard.ask(Release(Tables(questions), Gaussian(z), TABLES)), self.deviation(
            turn, len(questions)
        )


def _grouped(
    axes: Axes, known: list[Known], people: float, count: float, noise: float
) -> list[Ints]:
    """(L_j,) of each column: at most `count` groups of a number, and of a category those levels
    that stand out where they are spread over so many cells."""
    most = int(np.clip(count, FEWEST_GROUPS, MOST_GROUPS))
    least = PER_CELL * noise * math.sqrt(most) / people
    made = []
    for one, levels, ordered in zip(known, axes.levels, axes.ordered, strict=True):
        if not levels:
            made.append(groups.of_number(one.shares, most))
        else:
            made.append((groups.of_ordered if ordered else groups.of_category)(one.shares, least))
    return made


def near(axes: Axes, j: int) -> bool:
    """Whether neighbouring cells of a column are alike."""
    return axes.levels[j] == 0 or axes.ordered[j]


def part_of_slab(slabs: int) -> Ints:
    """(S,) which part of time each slab is in."""
    return np.arange(slabs) * min(PARTS, slabs) // slabs


def cells_of_number(people: float, noise: float) -> int:
    """The power of two next to N / (CELL_PEOPLE noise), within limits."""
    wanted = math.log2(max(people / (CELL_PEOPLE * noise), 1.0))
    return int(2 ** np.clip(round(wanted), *np.log2(CELLS)))


def _in_cells(share: Floats, over_time: Floats, in_time: Ints) -> Floats:
    """(S, L) people in the cells of a column, from their shares (L,) and their groups over time."""
    of_group = np.bincount(in_time, share)
    grown = np.maximum(over_time, 0.0) / np.maximum(of_group, 1e-12)
    cells: Floats = share * grown[:, in_time]
    return cells


def on_simplex(shares: Floats) -> Floats:
    """The nearest shares (n,) that are not negative and add up to 1."""
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(shares) + 1)
    return np.maximum(shares - excess[np.flatnonzero(falling > excess)[-1]], 0.0)


def _target(counts: Floats, precision: Floats, people: float) -> Target:
    """In shares, of counts whose precision is 1 / variance."""
    return Target(_single(counts / people), _single(precision * people**2))


def _single(values: Any) -> Any:
    return jnp.asarray(values, jnp.float32)
