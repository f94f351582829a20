"""A fit by tables: noisy tables of one and two columns, and particles that explain them.

    alone     each column, all times together, a number finely and coarsely: cells, groups of cells
              and bands of groups follow from it (`pairs.Cut`)
    pairs     bands of every two columns, of which time is one: its bands are windows
    chosen    three times the tables that leave the least in doubt for their price, by all tables
              so far (`pairs.most_telling`): groups, bands, or bands in parts of time

Every round is one release of several tables. Cells and groups are functions of released numbers, so
a record is in one cell of each table: whoever comes or goes moves round k, whatever its tables and
their weights, by at most 1 / z_k of its noise in L2 norm (`guard.Tables`). Which they are is
decided by the answers of earlier rounds alone. Gaussian mechanisms that are chosen one after the
other tell together mu, with  mu^2 = sum 1 / z_k^2  (Dong, Roth and Su 2022), and this sum was set
and charged before the first of them: the choice costs nothing.

A person of any time tells about every pair, and particles carry what is known from window to window
(`products`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

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
from privtraj.measures.products import Problem, Product, Target, drawn, fitted, of_axes
from privtraj.measures.windows import (
    LISTED,
    LISTED_SHARE,
    Ends,
    Resolution,
    even_windows,
    may_be_listed,
    moments_of,
)
from privtraj.privacy import noise
from privtraj.privacy.events import GaussianSum
from privtraj.privacy.guard import Gaussian, Guard, Release, Table
from privtraj.privacy.guard import Tables as TablesQuestion
from privtraj.privacy.ledger import BudgetPlan, Planned, calibrate_gaussian
from privtraj.recipe import Recipe

TABLES = "marginal tables"
ROUNDS = (0.15, 0.4, 0.15, 0.15, 0.15)
"""Shares of what is paid, as squared 1/z: each column by itself, every two, and three times what is
chosen. With (.15, .25, .3, .3) for fixed rounds answers had 5 % larger errors (geometric mean)."""
VALUES = (16, 64, 1024)
"""Of a number that are counted: the finer show where most people of a skewed one are, the coarser
how many are in each half, which sums of the finer would hide in their noise. 16 and 1,024 alone,
or 128 in the middle, are as good to 2 %."""
WINDOWS = 8
"""Of time; 5 are as good, 12 lose 5 %. Where people are at listed times, each of these is a window
of its own up to twice as many."""
PER_CELL = 3.0
"""People in a cell of two numbers, in standard deviations of its noise, that set how many groups a
number has there, about 9, and no more than its coarsest counts: 2.5 and 5 lose 3 % in answers, 10
loses 9 %."""
PEOPLE = 8192
"""Who are drawn from the particles and released: against 16,384, 4,096 lose 9 % in
means and 7 % in shares."""

_ALWAYS = Slabs.between(np.empty(0))


def deviation(mu: float, turn: int, tables: int) -> float:
    """Standard deviation of a cell in a round of so many tables of one size, in people."""
    return math.sqrt(tables / ROUNDS[turn]) / mu


class Detail(NamedTuple):
    """Into how many groups and bands a number is cut, and time into parts, in which pairs that
    depend on each other are measured again.

    Few bands in few parts tell a trend in a group best; more show what is not a line. Bands are
    half as many as groups, parts a quarter, but 4 and 3 where noise is large: always 4 lose 8 % in
    periods of random tables (`benchmarks/random_tables.py`). Two parts gain 2 % in their trends,
    and lose a fourth in shares where few people come late (light chains).
    """

    groups: int
    bands: int
    parts: int

    @classmethod
    def of(cls, mu: float, columns: int, people: float) -> Detail:
        """Of so many columns, and people, where mu (as 1/z) is told of them."""
        noise = deviation(mu, 1, max(math.comb(columns, 2), 1))
        groups = int(np.clip(math.sqrt(people / (PER_CELL * noise)), 2, VALUES[0]))
        return cls(groups, min(max(groups // 2, 4), groups), max(groups // 4, 3))


class Tables(Measure):
    """Private tables of two columns at a time, with Gaussian noise: columns of any kind."""

    name = "tables"
    words = "private tables of two columns at a time"
    needs_delta = True
    takes_categories = True

    def refuses(self, public: Public, recipe: Recipe) -> None:
        if recipe.delta == 0:
            raise InputError("tables of columns need a delta above 0: set ", Arg("delta="))
        given = {"public_counts": recipe.public_counts, "subspace": recipe.subspace}
        for name, value in given.items():
            if not (value is None or isinstance(value, str)):
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
        names = ", ".join(_names(public))
        about = f"{TABLES}: {names}; each by itself and over time, every two, some over time"
        tables = GaussianSum(1 / mu, about, 0.0, *person)
        return BudgetPlan((*map(Planned, first), Planned(tables, len(ROUNDS), shared=True)))

    def most_releases(self, steps: int) -> dict[str, int]:
        return {LISTED: 1, TABLES: 1 + len(ROUNDS)}  # one more in version 0.2

    def fit(self, guard: Guard, task: Task) -> Fit:
        """Curves of people through S windows: particle i of all knots is one person."""
        axes, recipe, rng = guard.shape.axes, task.recipe, task.rng
        done = task.progress or (lambda step, of: None)
        windows = _windows(guard, task)
        guard = guard.in_slabs(windows)
        asked = _Asked(guard, left(guard, calibrate_gaussian), _names(task.public))
        mu, ends, known = asked.mu, Ends.of(windows), _alone(asked)
        done(1, len(ROUNDS) + 1)
        detail = Detail.of(mu, len(known), float(known[0].people.sum()))
        cuts = _cuts(asked, known, detail)
        part = np.arange(windows.count) * min(detail.parts, windows.count) // windows.count
        asked = asked._replace(cuts=cuts, windows=windows, part=part)
        tables = asked.more({}, 1, pairs.every_two(cuts))
        for turn in range(2, len(ROUNDS)):
            done(turn, len(ROUNDS) + 1)
            found = pairs.explained(tables, known, cuts, part)
            tables = asked.more(tables, turn, pairs.most_telling(found, mu**2 * ROUNDS[turn]))
        found = pairs.explained(tables, known, cuts, part)
        sizes, people = found.sizes, float(found.sizes.sum())
        shares = [one.shares for one in found.known]
        numbers = np.flatnonzero(axes.numbers[axes.counted]).tolist()
        alone, places = [], {}
        for j, (one, cut) in enumerate(zip(found.known, cuts, strict=False)):
            held: Floats = np.bincount(cut.cells, one.shares).astype(np.float64)
            alone.append(Target.of(held * people, 1 / np.bincount(cut.cells, one.variance), people))
            if j in numbers:
                at = pairs.places_of(one.shares, cut.cells, cut.lacks)
                places[j] = at.astype(np.float32)
        of_windows, of_pairs, of_parts = found.precision
        problem = Problem(
            (sizes / people).astype(np.float32),
            people,
            cuts[:-1],
            alone,
            [
                Target.of(table, np.full(table.shape, precision), people)
                for table, precision in zip(found.over_time, of_windows, strict=True)
            ],
            Target.of(found.always, of_pairs, people),
            Target.of(found.parts, of_parts, people),
            part,
            places,
            Target.of(*pairs.covariances(found, cuts[:-1], shares, numbers), 1.0),
        )
        products = [Product(*one) for one in zip(fitted(problem, rng), cuts, shares, strict=False)]
        count = recipe.particles or PEOPLE
        by_axis = of_axes(dict(zip(axes.counted, products, strict=True)), axes)
        particles, weights = drawn(by_axis, axes, ends, sizes, count, rng)
        done(len(ROUNDS) + 1, len(ROUNDS) + 1)
        width = np.full(len(particles), 1 / (VALUES[-1] * math.sqrt(12)))
        said = {"people_noise": found.sizes_noise}
        return Fit(
            Marginals(particles, weights, width / 2, width, said),
            ends.knots,
            windows,
            sizes,
            width,
            reference_of(recipe),
            min(people**2 / max(pairs.noise_of(found), 1.0), people / windows.count),
            {"measure": self.name, "steps": len(ROUNDS), "cells_per_side": None},
            {},
        )


def _names(public: Public) -> list[str]:
    """Of the columns that are counted, as one line can show them."""
    names = [public.columns[axis].name for axis in Axes.of(public.columns).counted]
    return [name if name.isprintable() else repr(name) for name in names]


def _windows(guard: Guard, task: Task) -> Resolution:
    """As many as somebody set, of equal length; by itself each listed time, if people are at a few,
    or `WINDOWS`. More cost little: particles carry what is known from one to the next."""
    axis, wanted = task.public.axis, task.recipe.windows
    if wanted == "bins":
        return Resolution(axis.times, True, np.arange(len(axis.times)))
    asked = planned_event(task.plan, LISTED)
    moments, listed, most = moments_of(guard, axis, asked, False)
    if wanted == "auto":
        wanted = most if listed and len(axis.times) <= 2 * WINDOWS else WINDOWS
    return Resolution(moments, listed, even_windows(len(moments), min(wanted, most)))


def _alone(asked: _Asked) -> list[pairs.Known]:
    """Every column by itself, and behind the values of a number who lacks it."""
    levels = [asked.axes.levels[axis] for axis in asked.counted]
    wanted = [(j, side) for j, n in enumerate(levels) for side in ((n,) if n else VALUES)]
    asking = [((j,), _ALWAYS, (np.arange(side),)) for j, side in wanted]
    budgets = [math.sqrt(levels[j] or VALUES[0]) for j, _ in wanted]
    counts: list[list[Floats]] = [[] for _ in levels]
    noise = np.ones(len(counts))  # of a cell of each column
    for (j, _), (table, of_a_cell) in zip(wanted, asked.tables(0, asking, budgets), strict=True):
        counts[j].append(table[0])
        noise[j] = math.sqrt(of_a_cell)
    fewest = [one[0] for one in counts]
    weights = 1 / (np.array([one.size for one in fewest]) * noise**2)  # as sums of so many
    people = max(float(weights @ [one.sum() for one in fewest] / weights.sum()), 1.0)
    known = []
    for j, n in enumerate(levels):
        if n:
            held = people * pairs.on_simplex(counts[j][0] / people)
            variance = np.full(n, noise[j] ** 2)
        else:
            cut = [np.split(one, [side]) for one, side in zip(counts[j], VALUES, strict=True)]
            lack = np.clip(np.mean([one for _, one in cut], axis=0), 0.0, people)  # (1,), or none
            held = pairs.smoothed([one for one, _ in cut], people - float(lack.sum()), noise[j])
            spread = (held / people + 1 / len(held)) / 2  # a run of 1/16 has the noise of a count
            share = np.append(VALUES[0] * spread, np.full(len(lack), 1 / len(VALUES)))
            held, variance = np.append(held, lack), noise[j] ** 2 * share
        known.append(pairs.Known(held, variance))
    return known


def _cuts(asked: _Asked, known: list[pairs.Known], detail: Detail) -> list[pairs.Cut]:
    """At most so many groups of a number that cells of two stand out from noise; of a category,
    the levels that a table of it shows at all."""
    least = deviation(asked.mu, 1, max(math.comb(len(known), 2), 1)) / known[0].people.sum()
    axes, flag, made = asked.axes, dict(asked.axes.flags), []
    for one, axis in zip(known, asked.counted, strict=True):
        if axes.levels[axis]:
            cut = pairs.cut_levels(one.shares, least, axes.ordered[axis], detail.bands)
        else:
            cut = pairs.cut_number(one.shares, detail.groups, detail.bands, axis in flag)
        made.append(cut)
    windows = np.arange(asked.guard.n_times)
    return [*made, pairs.Cut(windows, windows, windows, True)]


class _Asked(NamedTuple):
    """Questions to a guard, each round at its share of mu, 1/z of all of them together.

    names: of the columns that are counted.  cuts: of these, and of time.  part: (S,) of each
    window.
    """

    guard: Guard
    mu: float
    names: list[str]
    windows: Slabs = _ALWAYS
    cuts: Sequence[pairs.Cut] = ()
    part: Ints = np.zeros(1, np.int64)

    @property
    def axes(self) -> Axes:
        return self.guard.shape.axes

    @property
    def counted(self) -> list[int]:
        return self.axes.counted

    def tables(
        self,
        turn: int,
        wanted: Sequence[tuple[tuple[int, ...], Slabs, Sequence[Ints]]],
        budgets: Sequence[float],
    ) -> list[tuple[Floats, float]]:
        """Noisy tables (K, groups of each column) of these columns, windows, and groups of the
        cells of each column, and the variance of a cell. Behind the groups of a number stands who
        lacks it: its flag tells them from those who are at its middle.

        budgets: in proportion, as 1 / variance.
        """
        flag, d = dict(self.axes.flags), len(self.axes.levels)
        questions, weights = [], np.sqrt(np.array(budgets, np.float64) / np.max(budgets))
        for weight, (columns, windows, groups) in zip(weights.tolist(), wanted, strict=True):
            along, few = [1] * d, dict[int, Ints]()
            for j, of in zip(columns, groups, strict=True):
                axis = self.counted[j]
                along[axis], few[axis] = len(of), of
                if axis in flag:
                    along[flag[axis]] = 2
            by_axis = tuple(few.get(axis) for axis in range(d))
            questions.append(Table(windows, tuple(along), weight, by_axis))
        z = 1 / (self.mu * math.sqrt(ROUNDS[turn]))
        asking = dict.fromkeys(columns for columns, *_ in wanted)
        about = ", ".join(" x ".join(self.names[j] for j in columns) for columns in asking)
        if turn > 0 and len(asking) == math.comb(len(self.names) + 1, 2) > 1:
            about = f"every two of {', '.join(self.names)}, and each"
        about += " over time" * any(windows.count > 1 for _, windows, _ in wanted)
        release = Release(TablesQuestion(questions), Gaussian(z), f"{TABLES}: {about}")
        noise = z**2 * (weights**2).sum() / weights**2
        answers = zip(wanted, self.guard.ask(release), noise.tolist(), strict=True)
        return [(self._with_who_lacks(*one[::2], table), v) for one, table, v in answers]

    def _with_who_lacks(
        self, columns: tuple[int, ...], groups: Sequence[Ints], table: Floats
    ) -> Floats:
        """(K, groups of each column), behind which stands who lacks the number, of counts
        (K, cells) where these are in the group of its middle and their flag is 1."""
        flag, together = dict(self.axes.flags), np.ones((), bool)
        at, sizes = dict[int, Ints](), dict[int, int]()  # of each axis, the cell of every group
        for k, (j, of) in enumerate(zip(columns, groups, strict=True)):
            axis, shape = self.counted[j], [-1 if k == one else 1 for one in range(len(columns))]
            sizes[axis], middle = pairs.count(of), of[[len(of) // 2]]
            at[axis] = np.arange(sizes[axis]).reshape(shape)
            if axis in flag:
                lacks = np.append(np.zeros(sizes[axis], np.int64), 1).reshape(shape)
                at[axis] = np.append(at[axis], middle).reshape(shape)
                together = together & (at.setdefault(flag[axis], lacks) == lacks)
                sizes[flag[axis]] = 2
        table = table.reshape(-1, *(sizes[axis] for axis in sorted(sizes)))
        cells = tuple(at[axis] for axis in sorted(at))
        return np.stack([one[cells] for one in table]) * together

    def more(self, told: pairs.Noisy, turn: int, wanted: dict[pairs.Key, float]) -> pairs.Noisy:
        """Tables that were told before, and these of two columns, at budgets in proportion; those
        that were asked before are averaged."""
        time, asking = len(self.counted), []
        parts = Slabs(self.windows.edges, self.part[self.windows.slab_of_piece])
        for i, j, kind in wanted:
            columns = (i, j) if j < time else (i,)
            slabs = self.windows if j == time else parts if kind == pairs.PARTS else _ALWAYS
            cuts = [self.cuts[k] for k in columns]
            of = [cut.groups if kind == pairs.GROUPS else cut.bands for cut in cuts]
            has = [one[: len(one) - cut.lacks] for one, cut in zip(of, cuts, strict=True)]
            asking.append((columns, slabs, has))
        told = dict(told)
        answers = self.tables(turn, asking, list(wanted.values()))
        for (i, j, kind), (counts, variance) in zip(wanted, answers, strict=True):
            if j == time:
                counts = counts.T[None]
            if (i, j, kind) in told:
                before, known = told[i, j, kind]
                share = known / (known + variance)
                counts, variance = before + share * (counts - before), share * variance
            told[i, j, kind] = counts, variance
        return told
