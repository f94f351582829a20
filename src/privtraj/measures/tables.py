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
from privtraj.measures.products import Problem, Target, drawn, fitted
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
PER_CELL, FEWEST_GROUPS = 3.0, 3
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
        groups = int(np.clip(math.sqrt(people / (PER_CELL * noise)), FEWEST_GROUPS, VALUES[0]))
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
        mu, names = left(guard, calibrate_gaussian), _names(task.public)
        asked, ends = _Asked(guard, mu, names), Ends.of(windows)
        known = _alone(asked, axes)
        done(1, len(ROUNDS) + 1)
        detail = Detail.of(mu, len(known), float(known[0].people.sum()))
        cuts = _cuts(asked, axes, known, detail)
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
        numbers = np.flatnonzero(axes.numbers).tolist()
        alone, places = [], {}
        for j, (one, cut) in enumerate(zip(found.known, cuts, strict=False)):
            held: Floats = np.bincount(cut.cells, one.shares).astype(np.float64)
            alone.append(Target.of(held * people, 1 / np.bincount(cut.cells, one.variance), people))
            if j in numbers:
                at = pairs.places_of(one.shares, cut.cells)
                places[j] = (at - at @ held).astype(np.float32)
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
        products = fitted(problem, rng)
        count = recipe.particles or PEOPLE
        particles, weights = drawn(products, cuts[:-1], shares, axes, ends, sizes, count, rng)
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
    """Of columns, as one line can show them."""
    return [one.name if one.name.isprintable() else repr(one.name) for one in public.columns]


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


def _alone(asked: _Asked, axes: Axes) -> list[pairs.Known]:
    """Every column by itself; a number that may be missing together with its flag, as whoever lacks
    it stands at its middle."""
    flag = dict(axes.flags)
    wanted = [
        (j, side)
        for j, levels in enumerate(axes.levels)
        for side in ((levels,) if levels else VALUES)
    ]
    asking = [((j, flag[j]) if j in flag else (j,), _ALWAYS) for j, _ in wanted]
    sides = [axes.sides(side) for _, side in wanted]
    budgets = [math.sqrt(axes.levels[j] or VALUES[0]) for j, _ in wanted]
    counts: list[list[Floats]] = [[] for _ in axes.levels]
    noise = np.ones(len(counts))  # of a cell of each column
    answers = asked.tables(0, asking, sides, budgets)
    for (j, side), (table, of_a_cell) in zip(wanted, answers, strict=True):
        counts[j].append(table.reshape(side, -1))
        noise[j] = math.sqrt(of_a_cell)
    fewest = [one[0] for one in counts]
    weights = 1 / (np.array([one.size for one in fewest]) * noise**2)  # as sums of so many
    people = max(float(weights @ [one.sum() for one in fewest] / weights.sum()), 1.0)
    known = []
    for j, levels in enumerate(axes.levels):
        if levels:
            held = people * pairs.on_simplex(counts[j][0][:, 0] / people)
            variance = np.full(levels, noise[j] ** 2)
        else:
            middles = [one[len(one) // 2, 1] for one in counts[j] if j in flag]
            lack = float(np.clip(np.mean(middles or [0.0]), 0.0, people))
            held = pairs.smoothed([one[:, 0] for one in counts[j]], people - lack, noise[j])
            held[len(held) // 2] += lack
            spread = (held / people + 1 / len(held)) / 2  # a run of 1/16 has the noise of a count
            variance = noise[j] ** 2 * VALUES[0] * spread
        known.append(pairs.Known(held, variance))
    return known


def _cuts(asked: _Asked, axes: Axes, known: list[pairs.Known], detail: Detail) -> list[pairs.Cut]:
    """At most so many groups of a number that cells of two stand out from noise; of a category,
    the levels that a table of it shows at all."""
    least = deviation(asked.mu, 1, max(math.comb(len(known), 2), 1)) / known[0].people.sum()
    may_lack = {number for number, _ in axes.flags}
    made = []
    for j, (one, levels, ordered) in enumerate(zip(known, axes.levels, axes.ordered, strict=True)):
        if levels:
            made.append(pairs.cut_levels(one.shares, least, ordered, detail.bands))
        else:
            lacks = VALUES[-1] // 2 if j in may_lack else None
            made.append(pairs.cut_number(one.shares, detail.groups, detail.bands, lacks))
    windows = np.arange(asked.guard.n_times)
    return [*made, pairs.Cut(windows, windows, windows, True)]


class _Asked(NamedTuple):
    """Questions to a guard, each round at its share of mu, 1/z of all of them together.

    cuts: of the columns, and of time.  part: (S,) of each window.
    """

    guard: Guard
    mu: float
    names: list[str]  # of the columns
    windows: Slabs = _ALWAYS
    cuts: Sequence[pairs.Cut] = ()
    part: Ints = np.zeros(1, np.int64)

    def tables(
        self,
        turn: int,
        wanted: Sequence[tuple[tuple[int, ...], Slabs]],
        sides: Sequence[tuple[int, ...]],
        budgets: Sequence[float],
        groups: Sequence[list[Ints]] | None = None,
    ) -> list[tuple[Floats, float]]:
        """Noisy tables (K, cells) of these columns and windows, and the variance of a cell.

        budgets: in proportion, as 1 / variance.
        """
        questions, weights = [], np.sqrt(np.array(budgets, np.float64) / np.max(budgets))
        for k, ((columns, windows), mine) in enumerate(zip(wanted, sides, strict=True)):
            few = None
            if groups is not None:
                few = tuple(one if j in columns else None for j, one in enumerate(groups[k]))
            along = tuple(side if j in columns else 1 for j, side in enumerate(mine))
            questions.append(Table(windows, along, float(weights[k]), few))
        z = 1 / (self.mu * math.sqrt(ROUNDS[turn]))
        asking = dict.fromkeys(columns for columns, _ in wanted)
        about = ", ".join(" x ".join(self.names[j] for j in columns) for columns in asking)
        if turn > 0 and len(asking) == math.comb(len(self.names) + 1, 2) > 1:
            about = f"every two of {', '.join(self.names)}, and each"
        about += " over time" * any(windows.count > 1 for _, windows in wanted)
        release = Release(TablesQuestion(questions), Gaussian(z), f"{TABLES}: {about}")
        noise = z**2 * (weights**2).sum() / weights**2
        return list(zip(self.guard.ask(release), noise.tolist(), strict=True))

    def more(self, told: pairs.Noisy, turn: int, wanted: dict[pairs.Key, float]) -> pairs.Noisy:
        """Tables that were told before, and these of two columns, at budgets in proportion; those
        that were asked before are averaged."""
        time, asking, sides, groups = len(self.names), [], [], []
        parts = Slabs(self.windows.edges, self.part[self.windows.slab_of_piece])
        for i, j, kind in wanted:
            of = [cut.groups if kind == pairs.GROUPS else cut.bands for cut in self.cuts[:time]]
            slabs = self.windows if j == time else parts if kind == pairs.PARTS else _ALWAYS
            asking.append(((i, j) if j < time else (i,), slabs))
            sides.append(tuple(map(len, of)))
            groups.append(of)
        answers = self.tables(turn, asking, sides, list(wanted.values()), groups)
        told = dict(told)
        for (i, j, kind), of, (table, variance) in zip(wanted, groups, answers, strict=True):
            counts = table.T[None]
            if j < time:
                counts = table.reshape(len(table), pairs.count(of[i]), pairs.count(of[j]))
            if (i, j, kind) in told:
                before, known = told[i, j, kind]
                share = known / (known + variance)
                counts, variance = before + share * (counts - before), share * variance
            told[i, j, kind] = counts, variance
        return told
