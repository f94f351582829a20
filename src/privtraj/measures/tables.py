"""A fit by tables: noisy tables of one and two columns, and particles that explain them.

    people      how many are in every window of time, from which the number of cells follows
    alone       cells of each column, all times together: groups of cells follow from it
    over time   groups of each column in every window of time
    pairs       groups of every two columns, all times together
    parts       the pairs that turned out to depend on each other, in parts of time

Every round is one release of several tables, and the rounds share what the main release may tell.
Which pairs are measured again is decided by released tables alone: the choice costs nothing. Time
is a column like others, so a person of any time tells about every pair, and particles carry what is
known from window to window (`products`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import Arg, InputError
from privtraj.base.space import Slabs
from privtraj.columns.kinds import Axes
from privtraj.measures import pairs
from privtraj.measures.base import (
    Fit,
    Marginals,
    Measure,
    Public,
    Task,
    counts_event,
    left,
    planned_event,
    reference_of,
    slack_reserve,
)
from privtraj.measures.products import Problem, Target, drawn, evened, fitted
from privtraj.measures.windows import (
    LISTED,
    LISTED_SHARE,
    Ends,
    Windows,
    even_windows,
    may_be_listed,
    moments_of,
    most_windows,
)
from privtraj.privacy import noise
from privtraj.privacy.events import GaussianSum
from privtraj.privacy.guard import Gaussian, Guard, Release, Table
from privtraj.privacy.guard import Tables as TablesQuestion
from privtraj.privacy.ledger import BudgetPlan, Planned, calibrate_gaussian
from privtraj.recipe import Recipe

# "stand-ins": a clinic of 6,000 (sex, 12 codes, smoker, 3 numbers) and 12 columns of 20,000 people
# (6 categories, 4 hidden groups that people change), epsilon 1, three seeds, 2026-11-16.
TABLES = "marginal tables"
ROUNDS = (0.02, 0.15, 0.3, 0.33, 0.2)
"""Shares of what is paid, as squared 1/z: how many people, each column by itself, each over time,
all pairs, and the pairs that depend on each other in parts of time. The optimum is flat: .1 more
for any of them, and none for the last, change total variation of pairs by 5 % at most."""
CELL_PEOPLE = 8.0
"""People in a cell of one number, in standard deviations of its noise, if all cells had as many:
32 cells for 6,000 people, where 64 lose 10 % in total variation of pairs and 16 lose 30 %."""
CELLS = (16, 256)
"""Fewest and most cells of a number."""
WINDOWS = 8
"""Of time; 5 is as good on the stand-ins, 12 lose 5 %."""
MOST_WINDOWS = 16
"""Where people are at listed times, each of these is a window of its own up to so many."""
PER_CELL = 5.0
"""People in a cell of two numbers, in standard deviations of its noise, that set how many groups of
cells a number has there, about 8: 1.5 loses a third in correlations, 3 a tenth."""
FEWEST_GROUPS, MOST_GROUPS = 3, 16
"""Of a number."""
PARTS = 3
"""Of time, in which pairs that depend on each other are measured again: where a population parts,
squared W2 is .006 and .011 without; the stand-ins, whose pairs hardly change, lose 2 %."""
PEOPLE = 4096
"""Who are drawn from the particles and released."""

_ALWAYS = Slabs.between(np.empty(0))


class Tables(Measure):
    """Private tables of two columns at a time, with Gaussian noise: columns of any kind."""

    name = "tables"
    words = "private tables of two columns at a time"
    needs_delta = True
    takes_categories = True

    def refuses(self, public: Public, recipe: Recipe) -> None:
        if recipe.delta == 0:
            raise InputError("tables of columns need a delta above 0: set ", Arg("delta="))
        for name, used in (
            ("public_counts", recipe.public_counts is not None),
            ("subspace", not isinstance(recipe.subspace, str)),
        ):
            if used:
                instead = Arg("measure", self.name)
                raise InputError(Arg(name), " is not used by ", instead, ": remove it")

    def plan(self, public: Public, recipe: Recipe) -> BudgetPlan:
        person, first = public.shape.person.in_slabs(), []  # a person's records may meet in tables
        if recipe.windows != "bins" and may_be_listed(public.axis):
            look = counts_event(recipe, LISTED_SHARE, LISTED, person)
            first = [look] if look.epsilon > noise.EPSILON_RANGE[0] else []
        budget = recipe.epsilon, recipe.delta, recipe.adjacency
        slack = slack_reserve(recipe.delta)
        mu = calibrate_gaussian(*budget, others=first, slack=slack, person=person)
        if mu == 0:
            raise self.nothing_left()
        tables = GaussianSum(1 / mu, TABLES, 0.0, *person)
        return BudgetPlan((*map(Planned, first), Planned(tables, len(ROUNDS), shared=True)))

    def most_releases(self, steps: int) -> dict[str, int]:
        return {LISTED: 1, TABLES: len(ROUNDS)}

    def fit(self, guard: Guard, task: Task) -> Fit:
        """Curves of people through S windows: particle i of all knots is one person."""
        axes, recipe, rng = guard.shape.axes, task.recipe, task.rng
        done = task.progress or (lambda step, of: None)
        windows = _windows(guard, task)
        guard = guard.in_slabs(windows.cuts)
        asked, ends = _Asked(guard, left(guard, calibrate_gaussian)), Ends.of(windows)
        (first,), _ = asked.tables(0, [((), windows.cuts)], (1,) * guard.n_features)
        done(1, len(ROUNDS) + 1)
        people = max(float(first.sum()), 1.0)
        cells = cells_of_number(people, asked.deviation(1, guard.n_features))
        sides = axes.sides(cells)
        known = []  # of every column by itself
        tables, noise_of_cell = asked.tables(1, [((j,), _ALWAYS) for j in range(len(sides))], sides)
        for (counts,), levels in zip(tables, axes.levels, strict=True):
            clean = counts if levels else pairs.smoothed(counts, noise_of_cell)
            total = max(float(counts.sum()), 1.0)
            variance = np.full(len(counts), noise_of_cell**2)
            known.append(pairs.Known(total * pairs.on_simplex(clean / total), variance))
        done(2, len(ROUNDS) + 1)
        moving, known = _over_time(asked, axes, sides, known, windows)
        done(3, len(ROUNDS) + 1)
        found, in_pairs, known = _pairs(asked, axes, sides, known, windows.cuts, moving)
        done(len(ROUNDS), len(ROUNDS) + 1)
        problem = _problem(axes, known, moving, found, in_pairs)
        products = fitted(evened(problem, axes), axes, rng)
        particles = drawn(products, axes, ends, recipe.particles or PEOPLE, rng)
        done(len(ROUNDS) + 1, len(ROUNDS) + 1)
        people = float(moving.sizes.sum())
        width = np.full(len(particles), 1 / (cells * math.sqrt(12)))
        # of a number of people, the mean over the columns of sums over groups
        of_groups = math.sqrt(sum(map(pairs.group_count, moving.groups)))
        told = {"people_noise": moving.noise * of_groups / len(moving.groups)}
        weights = np.full(particles.shape[:2], 1 / particles.shape[1])
        return Fit(
            Marginals(particles, weights, width / 2, width, told),
            ends.knots,
            windows,
            moving.sizes,
            width,
            reference_of(recipe),
            min(people**2 / max(pairs.noise_of(found), 1.0), people / windows.count),
            {"measure": self.name, "steps": len(ROUNDS), "cells_per_side": None},
            {},
        )


def _windows(guard: Guard, task: Task) -> Windows:
    """As many as somebody set, of equal length; by itself each listed time, if people are at a few,
    or `WINDOWS`. More cost little: particles carry what is known from one to the next."""
    axis, wanted = task.public.axis, task.recipe.windows
    if wanted == "bins":
        return Windows(axis.times, True, np.arange(len(axis.times)))
    moments, listed = moments_of(guard, axis, planned_event(task.plan, LISTED), False)
    most = most_windows(moments, listed)
    if wanted == "auto":
        wanted = most if listed and len(axis.times) <= MOST_WINDOWS else WINDOWS
    return Windows(moments, listed, even_windows(len(moments), min(wanted, most)))


class _Moving(NamedTuple):
    """Columns over time. sizes: (S,) people.  groups: (L_j,).  tables: (S, A_j) without noise.

    noise: deviation of a cell.
    """

    sizes: Floats
    groups: list[Ints]
    tables: list[Floats]
    noise: float


def _over_time(
    asked: _Asked,
    axes: Axes,
    sides: Sequence[int],
    known: list[pairs.Known],
    windows: Windows,
) -> tuple[_Moving, list[pairs.Known]]:
    """Every column in S windows, and what is known then."""
    noise = asked.deviation(2, len(sides))
    people = float(np.mean([one.people.sum() for one in known]))
    of = _grouped(axes, known, people, people / windows.count / (PER_CELL * noise), noise)
    tables, _ = asked.tables(2, [((j,), windows.cuts) for j in range(len(sides))], sides, of)
    sizes = np.maximum(np.mean([table.sum(axis=1) for table in tables], axis=0), 1.0)
    better = [
        one.updated(mine, table.sum(axis=0), windows.count * noise**2)
        for one, mine, table in zip(known, of, tables, strict=True)
    ]
    clean = []
    for j, (one, mine, table) in enumerate(zip(better, of, tables, strict=True)):
        still = np.outer(sizes, one.shares @ pairs.indicator(mine))
        scores = pairs.group_scores(mine) if near(axes, j) else None
        if not axes.fixed[j]:
            still = pairs.denoised(table, still, noise, windows.centres, scores)
        clean.append(still)
    return _Moving(sizes, of, clean, noise), better


def _pairs(
    asked: _Asked,
    axes: Axes,
    sides: Sequence[int],
    known: list[pairs.Known],
    windows: Slabs,
    moving: _Moving,
) -> tuple[pairs.Pairs, list[Ints], list[pairs.Known]]:
    """Tables of two columns, their groups, and what is known of single columns then."""
    people, d = float(moving.sizes.sum()), len(sides)
    noise = asked.deviation(3, max(d * (d - 1) // 2, 1))
    of = _grouped(axes, known, people, math.sqrt(people / (PER_CELL * noise)), noise)
    part = part_of_window(windows.count)
    parts = Slabs(windows.edges, part[windows.slab_of_piece])
    every = list(combinations(range(d), 2))
    asking = [(pair, _ALWAYS) for pair in every]
    tables, deviation = asked.tables(3, asking, sides, of) if every else ([], noise)
    first = [
        table.reshape(pairs.group_count(of[i]), -1)
        for (i, j), table in zip(every, tables, strict=True)
    ]
    better = list(known)
    for pair, table in zip(every, first, strict=True):  # which say something of single columns too
        for axis, j in enumerate(pair):
            variance = table.shape[1 - axis] * deviation**2
            better[j] = better[j].updated(of[j], table.sum(axis=1 - axis), variance)
    by_part = []
    columns = zip(better, moving.tables, moving.groups, of, strict=True)
    for one, table, mine, together in columns:
        grown = np.maximum(table, 0.0) / np.maximum(np.bincount(mine, one.shares), 1e-12)
        cells = one.shares * grown[:, mine]  # (S, L) people
        by_part.append(pairs.indicator(part).T @ cells @ pairs.indicator(together))
    scores = [pairs.group_scores(mine) if near(axes, j) else None for j, mine in enumerate(of)]

    def again(chosen: Sequence[pairs.Pair]) -> tuple[list[Floats], float]:
        return asked.tables(4, [(pair, parts) for pair in chosen], sides, of)

    found = pairs.measured_pairs(
        by_part, scores, dict(zip(every, first, strict=True)), deviation, again
    )
    return found, of, better


def _problem(
    axes: Axes, known: list[pairs.Known], moving: _Moving, found: pairs.Pairs, in_pairs: list[Ints]
) -> Problem:
    people = float(moving.sizes.sum())
    shares = [one.shares for one in known]
    numbers = np.flatnonzero(axes.numbers).tolist()
    together, precision = pairs.covariances(found, in_pairs, shares, numbers)
    part = part_of_window(len(moving.sizes))
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
        part_of_window=_single(pairs.indicator(part).T),
        covariances=Target(_single(together), _single(precision)),
        means=_single([shares[j] @ pairs.cell_middles(len(shares[j])) for j in numbers]),
        time_groups=tuple(_single(pairs.indicator(one)) for one in moving.groups),
        pair_groups=tuple(_single(pairs.indicator(one)) for one in in_pairs),
    )


class _Asked(NamedTuple):
    """Questions to a guard, each round at its share of mu, 1/z of all of them together."""

    guard: Guard
    mu: float

    def deviation(self, turn: int, tables: int) -> float:
        """Standard deviation of a cell in a round of so many tables, in people."""
        return math.sqrt(tables / ROUNDS[turn]) / self.mu

    def tables(
        self,
        turn: int,
        wanted: Sequence[tuple[tuple[int, ...], Slabs]],
        sides: Sequence[int],
        grouped: Sequence[Ints] | None = None,
    ) -> tuple[list[Floats], float]:
        """Noisy tables (K, cells) of these columns and windows, and the deviation of a cell."""
        questions = []
        for columns, windows in wanted:
            mine = tuple(side if j in columns else 1 for j, side in enumerate(sides))
            few = None
            if grouped is not None:
                few = tuple(one if j in columns else None for j, one in enumerate(grouped))
            questions.append(Table(windows, mine, groups=few))
        z = 1 / (self.mu * math.sqrt(ROUNDS[turn]))
        release = Release(TablesQuestion(questions), Gaussian(z), TABLES)
        return self.guard.ask(release), self.deviation(turn, len(questions))


def _grouped(
    axes: Axes, known: list[pairs.Known], people: float, count: float, noise: float
) -> list[Ints]:
    """(L_j,) of each column: at most `count` groups of a number, and of a category those levels
    that stand out where they are spread over so many cells."""
    most = int(np.clip(count, FEWEST_GROUPS, MOST_GROUPS))
    least = PER_CELL * noise * math.sqrt(most) / people
    made = []
    for one, levels, ordered in zip(known, axes.levels, axes.ordered, strict=True):
        if not levels:
            made.append(pairs.groups_of_number(one.shares, most))
        elif ordered:
            made.append(pairs.groups_of_ordered(one.shares, least))
        else:
            made.append(pairs.groups_of_category(one.shares, least))
    return made


def near(axes: Axes, j: int) -> bool:
    """Whether neighbouring cells of a column are alike."""
    return axes.levels[j] == 0 or axes.ordered[j]


def part_of_window(windows: int) -> Ints:
    """(S,) which part of time each window is in."""
    return np.arange(windows) * min(PARTS, windows) // windows


def cells_of_number(people: float, noise: float) -> int:
    """The power of two next to N / (CELL_PEOPLE noise), within limits."""
    wanted = math.log2(max(people / (CELL_PEOPLE * noise), 1.0))
    return int(2 ** np.clip(round(wanted), *np.log2(CELLS)))


def _target(counts: Floats, precision: Floats, people: float) -> Target:
    """In shares, of counts whose precision is 1 / variance."""
    return Target(_single(counts / people), _single(precision * people**2))


def _single(values: Any) -> Any:
    return jnp.asarray(values, jnp.float32)
