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
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

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
"""Of time; 5 are as good, 12 lose 5 %."""
MOST_WINDOWS = 16
"""Where people are at listed times, each of these is a window of its own up to so many."""
PER_CELL, FEWEST_GROUPS, MOST_GROUPS = 3.0, 3, 16
"""People in a cell of two numbers, in standard deviations of its noise, that set how many groups a
number has there, about 9: 2.5 and 5 lose 3 % in answers, 10 loses 9 %."""
MORE = 0.3, 0.7
"""The same for a batch of further people, whose tables are those that are there: after 24 batches
of 300 people of a mixed clinic .15 and .85 lose 4 %; so does counting columns over time as pairs
against `pairs.OVER_TIME`."""
MOST_PARTS = 4
"""Of time, of all batches together, as of a fit whose groups are many; 1 is as good."""
WIDER = 1.25
"""Times as often as in new bands two people may be in one of the old: where all people of a second
month are beyond those of the first, it is 1.5; chance alone makes it 1.05."""
TOO_COARSE = 3.0
"""Times as many groups as there are, at which all is measured anew."""
PEOPLE = 8192
"""Who are drawn from the particles and released: against 16,384, 4,096 lose 9 % in
means and 7 % in shares."""

_ALWAYS = Slabs.between(np.empty(0))
_KINDS = pairs.BANDS, pairs.GROUPS, pairs.PARTS


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
        groups = int(np.clip(math.sqrt(people / (PER_CELL * noise)), FEWEST_GROUPS, MOST_GROUPS))
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
        axes = guard.shape.axes
        done = task.progress or (lambda step, of: None)
        windows = _windows(guard, task)
        guard = guard.in_slabs(windows)
        mu, names = left(guard, calibrate_gaussian), _names(task.public)
        asked = _Asked(guard, mu, names)
        alone = _alone(asked, axes)
        known = _known(alone, axes)
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
        ends = np.concatenate([windows.moments[:1], windows.edges, windows.moments[-1:]])
        told = Told(ends, part, detail, cuts[:-1], alone, tables).by_part()
        return self.read(told, tables, windows, task)

    def read(self, told: Told, tables: pairs.Noisy, windows: Resolution, task: Task) -> Fit:
        """Curves of people that explain tables, which are released."""
        axes, recipe, rng, part = task.public.axes, task.recipe, task.rng, told.part
        done, cuts = task.progress or (lambda step, of: None), told.cuts_with_time
        known, ends = _known(told.alone, axes), Ends.of(windows)
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
            told=told.packed(),
        )

    def more(
        self, guard: Guard, task: Task, told: Told, first: int, last: int, anew: Callable[[], Guard]
    ) -> Told:
        """What was told, and what a batch of further people says of the windows from `first` to
        before `last`: the same columns and pairs, in the same groups and bands. These are released,
        so a record is in one cell of each table, as in a fit, and both rounds together tell mu.

        anew: a guard of the same ledger, of the batch beside people who are public and stand for
        the past. Where single columns say that people went where groups are wide, groups are made
        anew, and pairs counted in them of all.
        """
        axes, time = guard.shape.axes, len(told.cuts)
        mu, names = left(guard, calibrate_gaussian), _names(task.public)
        windows, part = Slabs.between(told.ends[first + 1 : last]), told.part[first:last]
        asked = _Asked(guard.in_slabs(windows), mu, names, rounds=MORE)
        both = zip(told.alone, _alone(asked, axes), strict=True)
        told = told._replace(alone=[(x + own, v + more) for (x, v), (own, more) in both])
        known = _known(told.alone, axes)
        cuts = _cuts(asked, axes, known, told.detail)[:-1]
        if any(map(_wider, told.cuts, cuts, known)):
            told, first, last, part = told.begun(cuts), 0, len(told.part), told.part
            windows = Slabs.between(told.ends[1:-1])
            asked = asked._replace(guard=anew().in_slabs(windows))
        part = part - (start := int(part[0]))
        asked = asked._replace(windows=windows, cuts=told.cuts_with_time, part=part)
        wanted: dict[pairs.Key, float] = {}
        for i, j, kind in told.tables:
            cells = math.prod(told.tables[i, j, kind][0].shape[1:])
            weight = pairs.OVER_TIME * math.sqrt(windows.count / len(told.part)) if j == time else 1
            wanted[i, j, kind] = weight * math.sqrt(cells)
        tables = dict(told.tables)
        for key, own in asked.more({}, 1, wanted).items():
            place: tuple[slice, ...] = ()
            if key[1] == time:
                place = slice(None), slice(None), slice(first, last)
            elif key[2] == pairs.PARTS:
                place = (slice(start, start + int(part[-1]) + 1),)
            counts, spread = tables[key][0].copy(), tables[key][1].copy()
            counts[place] += own[0]
            spread[place] += own[1]
            tables[key] = counts, spread
        return told._replace(tables=tables)


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
        wanted = most if listed and len(axis.times) <= MOST_WINDOWS else WINDOWS
    return Resolution(moments, listed, even_windows(len(moments), min(wanted, most)))


def _each(axes: Axes) -> list[tuple[int, int]]:
    """Columns that are counted by themselves, and in how many cells."""
    finely = [(levels,) if levels else VALUES for levels in axes.levels]
    return [(j, side) for j, sides in enumerate(finely) for side in sides]


def _alone(asked: _Asked, axes: Axes) -> list[tuple[Floats, float]]:
    """Every column by itself; a number that may be missing together with its flag, as whoever lacks
    it stands at its middle."""
    flag, wanted = dict(axes.flags), _each(axes)
    asking = [((j, flag[j]) if j in flag else (j,), _ALWAYS) for j, _ in wanted]
    sides = [axes.sides(side) for _, side in wanted]
    budgets = [math.sqrt(axes.levels[j] or VALUES[0]) for j, _ in wanted]
    return asked.tables(0, asking, sides, budgets)


def _known(answers: list[tuple[Floats, float]], axes: Axes) -> list[pairs.Known]:
    """People of every value of each column, of what is told of columns by themselves."""
    flag = dict(axes.flags)
    counts: list[list[Floats]] = [[] for _ in axes.levels]
    noise = np.ones(len(counts))  # of a cell of each column
    for (j, side), (table, of_a_cell) in zip(_each(axes), answers, strict=True):
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
    rounds: tuple[float, ...] = ROUNDS

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
        z = 1 / (self.mu * math.sqrt(self.rounds[turn]))
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
            own = counts, np.full(counts.shape, variance)
            told[i, j, kind] = _averaged(told[i, j, kind], own) if (i, j, kind) in told else own
        return told


def _averaged(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Two tables of the same people, by the variance of each."""
    share = one[1] / (one[1] + other[1])
    return one[0] + share * (other[0] - one[0]), share * other[1]


# What later batches are added to ------------------------------------------------------------------


class Told(NamedTuple):
    """All that batches of different people have told: counts and variances are sums of theirs.

    ends: (S + 1,) of windows.  part: (S,) of each window.  detail, cuts: of the columns.
    alone: of each column by itself, counts (1, cells) and the variance of a cell.  tables: of pairs
    by part, BANDS being all parts together.
    """

    ends: Floats
    part: Ints
    detail: Detail
    cuts: list[pairs.Cut]
    alone: list[tuple[Floats, float]]
    tables: pairs.Noisy

    @property
    def cuts_with_time(self) -> list[pairs.Cut]:
        """Each window is a group and a band of time."""
        turns = np.arange(len(self.part))
        return [*self.cuts, pairs.Cut(turns, turns, turns, True)]

    def too_coarse(self, people: float) -> bool:
        """Whether so many people would be in far more groups by now, as `Detail` has it."""
        numbers = [pairs.count(cut.groups) for cut in self.cuts if len(cut.cells) == VALUES[-1]]
        least = min(variance.sum(axis=0).min() for _, variance in self.tables.values())
        groups = math.sqrt(people / (PER_CELL * math.sqrt(least)))
        return min(groups, MOST_GROUPS) >= TOO_COARSE * max(numbers, default=MOST_GROUPS)

    def by_part(self) -> Told:
        """With bands of every pair in each part: those that were told of all parts together are
        spread over them by their people, as nothing else is known of them."""
        time, made = len(self.cuts), dict(self.tables)
        people = np.sum([t.sum(axis=(0, 1)) for (_, j, _), (t, _) in made.items() if j == time], 0)
        held = np.bincount(self.part, np.maximum(people, 1.0))
        shares = (held / held.sum())[:, None, None]
        for i, j in combinations(range(time), 2):
            of_all = made.pop((i, j, pairs.BANDS))
            by_part = shares * of_all[0], shares * of_all[1]
            if (i, j, pairs.PARTS) in made:
                by_part = made[i, j, pairs.PARTS]
                told = [one.sum(axis=0) for one in by_part]
                both = _averaged(of_all, (told[0][None], told[1][None]))
                by_part = by_part[0] + shares * (both[0] - told[0]), by_part[1]
            made[i, j, pairs.PARTS] = by_part
        return self._replace(tables=made)

    def begun(self, cuts: list[pairs.Cut]) -> Told:
        """Nothing of pairs, in other groups."""
        made, time = self._replace(cuts=cuts, tables={}), len(cuts)
        sides = [pairs.count(cut.bands) for cut in made.cuts_with_time]
        for i, j in combinations(range(time + 1), 2):
            kind, of = (pairs.BANDS, 1) if j == time else (pairs.PARTS, int(self.part[-1]) + 1)
            nothing = np.zeros((of, sides[i], sides[j]))
            made.tables[i, j, kind] = nothing, nothing
        return made

    def with_windows(self, ends: Floats) -> Told:
        """And windows up to these ends, one part of time, where nobody was so far. Parts and
        windows that are shortest together become one, until few are left."""
        part = np.append(self.part, np.full(len(ends), self.part[-1] + 1))
        every = np.append(self.ends, ends)
        starts = every[:-1][np.diff(part, prepend=-1) > 0]
        of_parts = _shortest_joined(np.append(starts, every[-1]), every[:0], MOST_PARTS)
        kept = _shortest_joined(every, of_parts, WINDOWS)
        of_part = np.searchsorted(of_parts, starts, side="right") - 1
        of_window = np.searchsorted(kept, every[:-1], side="right") - 1
        windows, parts = pairs.indicator(of_window), pairs.indicator(of_part)
        tables: pairs.Noisy = {}
        for (i, j, kind), (counts, spread) in self.tables.items():
            if j == len(self.cuts):
                counts, spread = (one @ windows[: one.shape[2]] for one in (counts, spread))
            elif kind == pairs.PARTS:
                into = parts[: len(counts)].T
                counts, spread = (np.tensordot(into, one, 1) for one in (counts, spread))
            tables[i, j, kind] = counts, spread
        part = np.searchsorted(of_parts, kept[:-1], side="right") - 1
        return self._replace(ends=kept, part=part, tables=tables)

    def packed(self) -> Floats:
        """As one row of numbers, each array after its shape."""
        arrays = [
            self.ends,
            self.part,
            np.array(self.detail),
            *(np.stack(one[:3]) for one in self.cuts),
        ]
        arrays += [np.append(*one) for one in self.alone]
        for (*pair, kind), both in self.tables.items():
            arrays += [np.array([*pair, _KINDS.index(kind)]), np.stack(both)]
        return np.concatenate([[one.ndim, *one.shape, *one.ravel()] for one in arrays])

    @classmethod
    def unpacked(cls, values: Floats, axes: Axes) -> Told:
        """The inverse of `packed`; a `ValueError` for other numbers."""
        arrays: list[Floats] = []
        while len(values):
            start = 2 + int(np.clip(values[0] - 1, 0, 3))
            shape = np.clip(values[1:start], 1, 1e9).astype(np.int64)
            arrays.append(values[start : start + math.prod(shape.tolist())].reshape(shape))
            values = values[start + arrays[-1].size :]
        ends, part, detail, *rest = arrays
        _require(len(detail) == 3 and detail.min() >= 1 and detail.max() <= MOST_GROUPS)
        may_lack, cuts, each = {number for number, _ in axes.flags}, [], _each(axes)
        for j, (levels, three) in enumerate(zip(axes.levels, rest, strict=False)):
            lacks = VALUES[-1] // 2 if j in may_lack else None
            cut = three.astype(np.int64)
            _require(cut.shape == (3, levels or VALUES[-1]) and cut.min() >= 0)
            _require(all(len(np.unique(one)) == pairs.count(one) for one in cut))
            near = axes.ordered[j] or not levels
            cuts.append(pairs.Cut(cut[0], cut[1], cut[2], near, lacks))
        alone = [(one[None, :-1], float(one[-1])) for one in rest[len(cuts) :][: len(each)]]
        for (j, side), (counts, spread) in zip(each, alone, strict=True):
            _require(counts.size == side * (1 + (j in may_lack)) and spread > 0)
        few = Detail(*detail.astype(int).tolist())
        told = cls(ends, part.astype(np.int64), few, cuts, alone, {})
        _require(ends.shape == (len(part) + 1,) and (np.diff(ends) > 0).all())
        _require(part[0] == 0 and np.isin(np.diff(part), (0, 1)).all())
        of, rest = told.cuts_with_time, rest[len(cuts) + len(each) :]
        for key, both in zip(rest[::2], rest[1::2], strict=True):
            i, j, kind = key.astype(int).tolist()
            sides = [pairs.count(of[k][1 if _KINDS[kind] == pairs.GROUPS else 2]) for k in (i, j)]
            count = int(part[-1]) + 1 if _KINDS[kind] == pairs.PARTS else 1
            _require(both.shape == (2, count, *sides) and both[1].min() > 0)
            told.tables[i, j, _KINDS[kind]] = both[0], both[1]
        needed = [(i, j) for i, j, kind in told.tables if kind != pairs.GROUPS]
        _require(sorted(needed) == list(combinations(range(len(of)), 2)))
        return told


def _require(holds: Any) -> None:
    if not holds:
        raise ValueError("tables that do not fit each other")


def _wider(one: pairs.Cut, other: pairs.Cut, known: pairs.Known) -> bool:
    """Whether two people are in one band of a cut far more often than in one of the other."""
    same, there = (float(np.sum(np.bincount(cut.bands, known.shares) ** 2)) for cut in (one, other))
    return same > WIDER * there


def _shortest_joined(ends: Floats, stay: Floats, most: int) -> Floats:
    """Ends of at most so many runs of windows, of which those that are shortest together become
    one first; these ends stay."""
    while len(ends) - 1 > most:
        joint = np.where(np.isin(ends[1:-1], stay), np.inf, ends[2:] - ends[:-2])
        ends = np.delete(ends, 1 + int(joint.argmin()))
    return ends
