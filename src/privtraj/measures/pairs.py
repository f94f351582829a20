"""Noisy tables of one and two columns: how columns are cut, and what of a table is more than noise.

A column is cut three times, by released shares of all times together: into cells, over which
particles have distributions, groups of cells, and bands of groups, which tables of two columns
count. Whether a record is in a band is then a function of that record and of released numbers. All
else here is post-processing.

A table of two columns is that of independent ones plus a dependence. Tables are of N people, with
noise of deviation s in each of their cells, and shares r, c of their rows and columns. So is

    table[a, b] = N r_a c_b (1 + sum_kl theta_kl f_k(a) g_l(b))

with functions f that are orthonormal under r, and g under c: polynomials of the rank for numbers
and ordered categories, 1 / sqrt(r_a) at one level for others. theta_kl has noise of deviation
s |f_k| |g_l| / N: that of a mean in a group, not of a cell. A contrast that somebody asks for, such
as the mean of a number (k = 1) among those of one level, is one of them. Its variance grows with
the cells of a table: four bands tell a mean twice as well as nine groups, which tell what bands
cannot. A function f has in bands the mean h, of squared norm rho; there the noise of theta is
s |h| / (rho N), and tables of one pair are put together by their noise. How a dependence changes is
told by polynomials of time in the same way: a trend in a group is a contrast of its own.

Contrasts are independent of each other. Of those of one order (the larger of both) a share m is
drawn from N(0, t^2 w), and the others are 0; w = 1, or the share of a level: then contrasts of rare
levels are as large as others. What is kept of theta is its mean over all t and m by what they
explain: of each by its own evidence, and more where others stand out too. Nothing is cut off.

Counts of a number by itself are halved again and again (`smoothed`), by the same average.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints

PER_GROUP = 4
"""Cells of a number in each of its groups: correlations within groups are seen by covariances."""
SIZES = 4.0 ** np.arange(-2, 7)
"""t^2 of a dependence that is possible, over the median variance of its contrasts: from what cannot
be seen to what cannot be missed."""
RAKINGS, DESIGN_STEPS = 10, 40
LEAST_PART = 0.1
"""Tables with less than this share of the mean budget are not asked."""
SHAPES = 64, 14, 10
"""Places of the middle of a number that are tried, and widths of normal and log-normal ones."""

BANDS, GROUPS, PARTS = "bands", "groups", "parts"
"""What a table of two columns counts: bands, groups, or bands in P parts of time."""
Pair = tuple[int, int]
Key = tuple[int, int, str]
Noisy = dict[Key, tuple[Floats, float]]
"""Noisy tables (1, B_i, B_j), (1, A_i, A_j) or (P, B_i, B_j), and the variance of a cell. Time is
the last column; each of its windows is a group and a band."""


# How a column is cut ------------------------------------------------------------------------------


class Cut(NamedTuple):
    """cells: (F,) the cell of each of the F values that are counted.  groups, bands: (F,) its own.

    Numbers of cells, groups and bands begin with 0. near: whether neighbours are alike; then they
    are runs. lacks: whether the last value is of those who lack the number: a cell, a group and a
    band of its own.
    """

    cells: Ints
    groups: Ints
    bands: Ints
    near: bool
    lacks: bool = False

    @property
    def of_cell(self) -> Ints:
        """(L,) the group of each cell."""
        return self.groups[np.unique(self.cells, return_index=True)[1]]

    @property
    def of_group(self) -> Ints:
        """(A,) the band of each group."""
        return self.bands[np.unique(self.groups, return_index=True)[1]]


def cut_number(shares: Floats, groups: int, bands: int, lacks: bool) -> Cut:
    """Runs of values (F,) with about as many people and as much of the mean distance from their
    mean: tails, where a mean is decided, are cut nearly as the least squared error would."""
    known = shares[: len(shares) - lacks].copy()
    people, places = max(float(known.sum()), 1e-300), np.arange(len(known)) / len(known)
    far = np.abs(places - known @ places / people)
    known *= (1 + far / max(float(known @ far) / people, 1e-12)) / 2
    of_band = _runs(known, people / bands)
    of_group = _split(known, of_band, people / groups)
    of_cell = _split(known, of_group, float(np.mean(np.bincount(of_group, known))) / PER_GROUP)
    every = [np.append(of, np.repeat(count(of), lacks)) for of in (of_cell, of_group, of_band)]
    return Cut(every[0], every[1], every[2], True, lacks)


def cut_levels(shares: Floats, least: float, ordered: bool, bands: int) -> Cut:
    """A cell for each level of `least` people; the others are one, or neighbours together."""
    own = np.where(shares < least, len(shares), np.arange(len(shares)))
    of = _runs(shares, least) if ordered else _numbered(own)
    held: Floats = np.bincount(of, shares).astype(np.float64)
    return Cut(of, of, _runs(held, 1 / bands)[of] if ordered else of, ordered)


def _split(shares: Floats, of: Ints, least: float) -> Ints:
    """(F,) runs inside runs (F,)."""
    inside = [_runs(shares[of == k], least) for k in range(count(of))]
    return _numbered(of * len(of) + np.concatenate(inside))


def _runs(shares: Floats, least: float) -> Ints:
    """(n,) the run of each value: neighbours together until they have about `least`."""
    of, held, run = np.zeros(len(shares), np.int64), 0.0, 0
    for value, here in enumerate(shares.tolist()):
        if held > least / 2 and held + here / 2 > least:
            held, run = 0.0, run + 1
        of[value] = run
        held += here
    if held <= least / 2 and run:
        of[of == run] = run - 1
    return of


def _numbered(runs: Ints) -> Ints:
    return np.unique(runs, return_inverse=True)[1].astype(np.int64)


def count(of: Ints) -> int:
    """How many cells, or groups, there are."""
    return int(of.max()) + 1


def indicator(of: Ints) -> Floats:
    """(L, A) 1 where a cell is in a group."""
    return np.eye(count(of))[of]


# One column ---------------------------------------------------------------------------------------


def on_simplex(shares: Floats) -> Floats:
    """The nearest shares (n,) that are not negative and add up to 1."""
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(shares) + 1)
    return np.maximum(shares - excess[np.flatnonzero(falling > excess)[-1]], 0.0)


class Known(NamedTuple):
    """people: (F,) of each value, not negative.  variance: (F,) of these numbers."""

    people: Floats
    variance: Floats

    @property
    def shares(self) -> Floats:
        """(F,) that add up to 1."""
        shares: Floats = self.people / max(float(self.people.sum()), 1e-12)
        return shares

    def updated(self, of: Ints, counts: Floats, variance: float) -> Known:
        """With noisy counts (A,) of groups of the values too, each by its variance.

        Values of one group are multiplied by one number. All counts have their noise, and so does
        their sum, of which nothing is taken. However few there are, somebody is in some group.
        """
        held, known = np.bincount(of, self.people), np.bincount(of, self.variance)
        total = max(float(held.sum()), 1.0)
        counts = counts + (total - counts.sum()) / len(counts)
        weight = known / (known + variance)
        wanted = total * on_simplex((held + weight * (counts - held)) / total)
        inside = np.where((held > 0)[of], self.people, 1.0)  # of an empty group, evenly
        people = inside * (wanted / np.bincount(of, inside))[of]
        return Known(people, self.variance * (1 - weight)[of])


def smoothed(counts: Sequence[Floats], people: float, deviation: float) -> Floats:
    """People (F,) of neighbouring values, from noisy counts of them and of runs of them (the
    coarsest first, all powers of two).

    Halves of the range, halves of these, and so on: how far two halves differ is known with the
    noise of the coarsest counts that tell them apart. Either one of them is empty, or they differ
    as their neighbours do (a line through these, or not at all) or as halves of a normal or
    log-normal number, by what explains more of them, and of what is left that part is kept which
    stands out of the noise of all halves of this size.
    """
    masses, size = np.array([people]), len(counts[-1])
    shape = _usual_shape(counts, people, deviation)
    while len(masses) < size:
        halves = next(table for table in counts if len(table) >= 2 * len(masses))
        variance = np.full(len(masses), len(halves) / len(masses) * deviation**2)
        apart = np.diff(halves.reshape(len(masses), 2, -1).sum(axis=2))[:, 0]
        beside = np.pad(masses, 1)
        line = np.clip((beside[2:] - beside[:-2]) / 8, -masses, masses)
        two = shape.reshape(len(masses), 2, -1).sum(axis=2)
        alike = masses * np.diff(two)[:, 0] / (two.sum(axis=1) + 1e-30)
        tried = [
            (p, _kept(apart - p, variance, (masses + 1) ** 2)) for p in (line, 0 * line, alike)
        ]
        usual, (away, *_) = max(tried, key=lambda one: one[1][2])
        made = np.clip(usual + away, -masses, masses)
        chance = [np.exp(-((apart - end) ** 2) / (2 * variance)) / 4 for end in (-masses, masses)]
        either = np.sqrt(2 * np.pi * variance) / (2 * masses + 1) / 2
        total = chance[0] + chance[1] + either + 1e-300
        made = (either * made + masses * (chance[1] - chance[0])) / total
        masses = np.maximum(np.column_stack([masses - made, masses + made]).ravel() / 2, 0.0)
    return masses


def _usual_shape(counts: Sequence[Floats], people: float, deviation: float) -> Floats:
    """(F,) shares of values that are normal or log-normal, averaged by what they explain of noisy
    counts: where people are few beside the noise, nobody is far from all others."""
    size, (middles, *widths) = len(counts[-1]), SHAPES
    at = (np.arange(size) + 0.5) / size
    shapes = []
    for scale, ends in (
        (at, np.geomspace(1 / size, 0.5, widths[0])),
        (np.log(at), np.geomspace(0.1, 2.0, widths[1])),
    ):
        centres = np.linspace(scale[0], scale[-1], middles)[:, None, None]
        density = np.exp(-0.5 * ((scale - centres) / ends[:, None]) ** 2) * np.gradient(scale)
        shapes.append(density.reshape(-1, size))
    every = np.concatenate(shapes)
    every /= every.sum(axis=1, keepdims=True) + 1e-300
    logs = np.zeros(len(every))
    for table in counts:
        expected = people * every.reshape(len(every), len(table), -1).sum(axis=2)
        logs -= ((expected - table) ** 2).sum(axis=1) / (2 * deviation**2)
    chances = np.exp(logs - logs.max())
    mean: Floats = chances @ every / chances.sum()
    return mean


# Two columns --------------------------------------------------------------------------------------


class Functions(NamedTuple):
    """Of n groups or bands. shares: (n,) of people.  values: (n, A), a column for each function.

    scale: (A,) squared norms of the columns, by which noise is multiplied; infinite for functions
    that are not seen.
    """

    shares: Floats
    values: Floats
    scale: Floats


class Basis(NamedTuple):
    """A functions of the A groups of a column that are orthonormal under their shares (A,).

    fine: on groups.  coarse: on bands, h / rho.  order: (A,) of each; 0 for levels of a category,
    and for who lacks a number, -1 for the constant, which says nothing about a dependence.
    """

    fine: Functions
    coarse: Functions
    order: Ints

    @classmethod
    def of(
        cls, shares: Floats, near: bool, bands: Ints | None = None, lacks: bool = False
    ) -> Basis:
        """Polynomials of the rank where neighbours are near, else single levels. bands: (A,).

        lacks: whether the last group lacks the number: then the last function says who does, and
        the others are of those who have it.
        """
        floor = (0.1 if near else 1e-3) / len(shares)
        shares = (shares + floor) / (shares + floor).sum()
        roots, order = np.sqrt(shares), np.zeros(len(shares), np.int64)
        values = np.diag(1 / roots)
        if near:
            known = len(shares) - lacks
            rank = 2 * (np.cumsum(shares) - shares / 2)[:known] / shares[:known].sum() - 1
            powers = np.zeros((len(shares), len(shares)))
            powers[:known, :known] = np.polynomial.legendre.legvander(rank, known - 1)
            powers[known:, [0, -1]] = 1.0
            order[:known] = np.append(-1, np.arange(1, known))
            turn = np.argsort(order)  # the constant, who lacks it, then each power
            values[:, turn] = np.linalg.qr(roots[:, None] * powers[:, turn])[0] / roots[:, None]
        fine = coarse = Functions(shares, values, (values**2).sum(axis=0))
        if bands is not None and count(bands) < len(shares):
            inside = indicator(bands)
            wide = shares @ inside
            means = inside.T @ (shares[:, None] * values) / wide[:, None]
            means = means / np.maximum(wide @ means**2, 1e-12)
            seen = order < len(wide) - lacks
            scale = np.where(seen, (means**2).sum(axis=0), np.inf)
            coarse = Functions(wide, np.where(seen, means, 0.0), scale)
        return cls(fine, coarse, order)


class Contrasts(NamedTuple):
    """theta: (P, A, B) of P tables.  variance: infinite where nothing was measured."""

    theta: Floats
    variance: Floats

    @classmethod
    def of(
        cls, table: Floats, expected: Floats, variance: float, rows: Functions, columns: Functions
    ) -> Contrasts:
        """Of (P, n, k) people beyond those that were expected.  variance: of a cell."""
        people = np.maximum(expected.sum(axis=(1, 2)), 1.0)[:, None, None]
        rest = table - expected
        rest = rest - rows.shares[:, None] * rest.sum(axis=1, keepdims=True)
        rest = rest - columns.shares * rest.sum(axis=2, keepdims=True)
        theta = rows.values.T @ rest @ columns.values / people
        return cls(theta, variance / people**2 * np.outer(rows.scale, columns.scale))

    def and_also(self, other: Contrasts) -> Contrasts:
        """What both say, by their variance."""
        precision = 1 / self.variance + 1 / other.variance
        share = 1 / other.variance / np.maximum(precision, 1e-300)
        variance = np.divide(1, precision, out=np.full_like(precision, np.inf), where=precision > 0)
        return Contrasts(self.theta + share * (other.theta - self.theta), variance)

    def over_time(self, when: Functions) -> list[Contrasts]:
        """Of P tables, one of each part of time, those of the polynomials of time but the first."""
        weights, seen = when.shares[:, None] * when.values, np.isfinite(self.variance)
        theta = np.einsum("pk,pab->kab", weights, self.theta)
        variance = np.einsum("pk,pab->kab", weights**2, np.where(seen, self.variance, 0.0))
        variance = np.where(seen.all(axis=0), variance, np.inf)
        return [Contrasts(*one) for one in zip(theta[1:, None], variance[1:, None], strict=True)]

    def denoised(self, rows: Basis, columns: Basis) -> Denoised:
        """As far as they stand out from noise; those of one order together."""
        order = np.maximum(rows.order[:, None], columns.order)
        order = np.where(np.minimum(rows.order[:, None], columns.order) < 0, -1, order)
        level = np.outer(*(np.where(one.order, 1.0, one.fine.shares) for one in (rows, columns)))
        level = np.broadcast_to(level, self.theta.shape)
        kept, square, last = np.zeros_like(self.theta), np.zeros_like(self.theta), 0.0
        for k in range(int(order.max()) + 1):
            mine = np.broadcast_to(order == k, kept.shape)
            seen = mine & np.isfinite(self.variance)
            if seen.any():
                found = _kept(self.theta[seen], self.variance[seen], level[seen])
                kept[seen], square[seen] = found[:2]
                last = float(square[seen].mean())
            square[mine & ~seen] = last
        away = rows.fine.values @ kept @ columns.fine.values.T
        return Denoised(away * np.outer(rows.fine.shares, columns.fine.shares), kept, square)


class Denoised(NamedTuple):
    """away: people in groups, (P, A, B) / N, beyond what was expected.  kept: theta.

    square: mean of theta^2; of those that no table tells, as large as the last that are told.
    """

    away: Floats
    kept: Floats
    square: Floats

    @property
    def doubt(self) -> Floats:
        """Variance of theta."""
        return np.maximum(self.square - self.kept**2, 0.0)


def _kept(values: Floats, variance: Floats, level: Floats) -> tuple[Floats, Floats, float]:
    """Means of theta and of theta^2, of contrasts (n,) that are seen with this noise, and the log
    likelihood."""
    spreads = np.concatenate(
        [SIZES[:, None] * np.median(variance / w) * w for w in (np.ones_like(level), level)]
    )
    many = np.array([1.0, 1 / max(len(level), 2)])[:, None, None]  # all are not 0, or one is
    total = variance + spreads
    rest = -0.5 * (np.log(variance) + values**2 / variance)
    some = -0.5 * (np.log(total) + values**2 / total) + np.log(many)
    with np.errstate(divide="ignore"):
        mixed = np.logaddexp(some, np.log1p(-many) + rest)  # (shares, sizes, n)
    alone = float(rest.sum())
    logs = mixed.sum(axis=2) + math.log(0.5 / (len(many) * len(spreads)))
    top = max(float(logs.max()), alone)
    chances = np.exp(logs - top)
    whole = float(chances.sum()) + 0.5 * math.exp(alone - top)
    there = np.einsum("mk,mkn->kn", chances / whole, np.exp(some - mixed))  # chances of sizes
    share = spreads / total
    mean = values * share
    square = (there * (mean**2 + share * variance)).sum(axis=0)
    return (there * mean).sum(axis=0), square, top + math.log(whole)


# All tables together ------------------------------------------------------------------------------


class Explained(NamedTuple):
    """What noisy tables say of N people in d columns and S windows.

    known: each column by itself.  sizes: (S,) people, with this standard deviation.
    over_time: (S, A_j) people in groups.  always: (C, C) people of all times.  parts: (P, C, C) of
    each part of time. Tables stand as blocks of one matrix, C groups of all columns in a row, above
    its diagonal.
    precision: 1 / variance of a cell: (d,) of over_time, (C, C) of always, (P, C, C) of parts, 0
    where nothing was measured.
    bases: of the columns, and of time.  when: of the parts of time.
    doubts: of every two columns, time being the last, the variance of each contrast: at all times
    (A, B), then of the polynomials of time (P - 1, A, B).
    """

    known: list[Known]
    sizes: Floats
    sizes_noise: float
    over_time: list[Floats]
    always: Floats
    parts: Floats
    precision: tuple[Floats, Floats, Floats]
    bases: list[Basis]
    when: Functions
    doubts: dict[Pair, list[Floats]]


def explained(tables: Noisy, known: list[Known], cuts: list[Cut], part: Ints) -> Explained:
    """All tables together. cuts: of the columns, and of time.  part: (S,) of each window."""
    time, known = len(cuts) - 1, list(known)
    sums, weights = [], []
    for (*pair, kind), (counts, variance) in tables.items():  # what they say of single columns
        total, noise = counts.sum(axis=0), len(counts) * variance
        for axis, column in enumerate(pair):
            margin, spread = total.sum(axis=1 - axis), total.shape[1 - axis] * noise
            if column == time:
                sums.append(margin)
                weights.append(1 / spread)
            else:
                of = cuts[column].groups if kind == GROUPS else cuts[column].bands
                known[column] = known[column].updated(of, margin, spread)
    sizes: Floats = np.maximum(np.average(sums, axis=0, weights=weights), 1.0)
    people = float(sizes.sum())
    shares = [
        np.bincount(cut.groups, one.shares).astype(np.float64)
        for cut, one in zip(cuts, known, strict=False)
    ]
    bases = [
        Basis.of(one, cut.near, cut.of_group, cut.lacks)
        for cut, one in zip(cuts, [*shares, sizes / people], strict=True)
    ]
    bands = [indicator(cut.of_group) for cut in cuts]

    def contrasts(pair: Pair, expected: Floats, rows: Basis, columns: Basis) -> Contrasts:
        """By all tables of a pair, each by its noise."""
        made: list[Contrasts] = []
        coarse = bands[pair[0]].T @ expected @ bands[pair[1]]
        for kind in (BANDS, GROUPS, PARTS):
            if (*pair, kind) in tables:
                counts, variance = tables[*pair, kind]
                here, *of = (coarse, rows.coarse, columns.coarse)
                if kind == GROUPS:
                    here, *of = (expected, rows.fine, columns.fine)
                total = counts.sum(axis=0)[None], here[None], len(counts) * variance
                one = Contrasts.of(*total, *of)
                made = [made[0].and_also(one) if made else one]
        return made[0]

    doubts: dict[Pair, list[Floats]] = {}
    over_time, by_part, precise = [], [], []
    for j, share in enumerate(shares):
        table = np.outer(share, sizes)
        for basis in (bases[time], Basis.of(sizes / people, False)):
            # what changes evenly, then what one window has alone
            seen = contrasts((j, time), table, bases[j], basis)
            found = seen.denoised(bases[j], basis)
            table = table + people * found.away[0]
            doubts.setdefault((j, time), [found.doubt[0]])
        over_time.append(table.T)
        precise.append(float(_of_a_cell(seen, bases[j], basis).max()) / people**2)
        inside = np.maximum(table, 1e-3 * np.outer(table.sum(axis=1), sizes / people))
        inside *= (share * people / np.maximum(inside.sum(axis=1), 1e-9))[:, None]
        by_part.append(np.transpose(inside @ indicator(part)))
    held = np.maximum(np.bincount(part, sizes), 1e-12)[:, None, None]
    when = Basis.of(held[:, 0, 0] / people, True).fine
    blocks = _blocks([len(one) for one in shares])
    width = blocks[-1].stop
    always, always_precision = np.zeros((2, width, width))
    parts, parts_precision = np.zeros((2, len(held), width, width))
    for i, j in combinations(range(time), 2):
        at, (rows, columns) = (blocks[i], blocks[j]), (bases[i], bases[j])
        expected = by_part[i].T @ (by_part[j] / np.maximum(by_part[i].sum(axis=1), 1e-12)[:, None])
        seen = contrasts((i, j), expected, rows, columns)
        found = seen.denoised(rows, columns)
        always[at] = expected + people * found.away[0]
        always_precision[at] = _of_a_cell(seen, rows, columns) / people**2
        doubts[i, j] = [found.doubt[0]]
        if (i, j, PARTS) not in tables:
            # what changes with polynomial k of time falls as its slope grows
            doubts[i, j] += [found.square[0] / (k + 1) ** 2 for k in range(1, len(held))]
            continue
        counts, variance = tables[i, j, PARTS]
        same = _raked(always[at] / people, by_part[i], by_part[j])
        expected = bands[i].T @ same @ bands[j]
        moves = Contrasts.of(counts, expected, variance, rows.coarse, columns.coarse)
        for k, trend in enumerate(moves.over_time(when), 1):
            found = trend.denoised(rows, columns)
            same = same + held * when.values[:, k, None, None] * found.away
            doubts[i, j].append(found.doubt[0])
        parts[:, *at] = same
        parts_precision[:, *at] = _of_a_cell(moves, rows, columns) / held**2
    precision = np.array(precise), always_precision, parts_precision
    noise = float(np.sum(weights)) ** -0.5
    return Explained(known, sizes, noise, over_time, always, parts, precision, bases, when, doubts)


def every_two(cuts: list[Cut]) -> dict[Key, float]:
    """Bands of every two columns, and of each over time, with budgets in proportion to the root of
    their cells (the least variance, summed over the cells of all tables)."""
    sides = [count(cut.bands) for cut in cuts]
    every = combinations(range(len(cuts)), 2)
    return {(i, j, BANDS): math.sqrt(sides[i] * sides[j]) for i, j in every}


def most_telling(found: Explained, budget: float) -> dict[Key, float]:
    """Budgets, as 1 / variance of a cell, of the tables that leave the least in doubt, which is

        sum of  V / (1 + V sum_t b_t g_t)  over all contrasts of all pairs,

    V being what is in doubt of one now, b_t the budget of a table and g_t = N^2 / (scale of noise)
    where table t tells it. Budgets are multiplied with the root of the slope, as designs are made
    optimal (Silvey, Titterington and Torsney 1978).
    """
    people, time = float(found.sizes.sum()), len(found.known)
    doubts: dict[Pair, Floats] = {}
    gains: dict[Key, Floats] = {}
    for pair, doubt in found.doubts.items():
        rows, columns = (found.bases[j] for j in pair)
        doubts[pair] = variance = np.stack(doubt).reshape(len(doubt), -1)
        kinds = {BANDS: np.outer(rows.coarse.scale, columns.coarse.scale)}
        if rows.coarse is not rows.fine or columns.coarse is not columns.fine:
            kinds[GROUPS] = np.outer(rows.fine.scale, columns.fine.scale)
        for kind, scale in kinds.items():
            gains[*pair, kind] = np.zeros_like(variance)
            gains[*pair, kind][0] = people**2 / scale.ravel()
        if pair[1] < time and len(variance) > 1:
            gains[*pair, PARTS] = gains[*pair, BANDS][0] / found.when.scale[:, None]
    budgets = dict.fromkeys(gains, 1.0)
    for _ in range(DESIGN_STEPS):
        unit = budget / sum(budgets.values())
        told = {pair: np.zeros_like(v) for pair, v in doubts.items()}
        for (i, j, kind), b in budgets.items():
            told[i, j] += b * unit * gains[i, j, kind]
        left = {pair: v / (1 + v * told[pair]) for pair, v in doubts.items()}
        budgets = {
            (i, j, kind): b * unit * math.sqrt(float((left[i, j] ** 2 * gains[i, j, kind]).sum()))
            for (i, j, kind), b in budgets.items()
        }
    least = LEAST_PART * sum(budgets.values()) / len(budgets)
    return {key: b for key, b in budgets.items() if b >= least}


def _raked(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """(P, A, B) with rows (P, A) and columns (P, B) in all, and the odds ratios of a table (A, B):
    what a group is like stays as it is where more or fewer people are in it."""
    least = np.maximum(1e-3 * np.outer(table.sum(axis=1), table.sum(axis=0)), 1e-12)
    made = np.repeat(np.maximum(table, least)[None], len(rows), axis=0)
    for _ in range(RAKINGS):  # a group may be empty
        made *= (rows / np.maximum(made.sum(axis=2), 1e-12))[:, :, None]
        made *= (columns / np.maximum(made.sum(axis=1), 1e-12))[:, None]
    return made


def _of_a_cell(seen: Contrasts, rows: Basis, columns: Basis) -> Floats:
    """(P, 1, 1) precision of cells, as shares, with which the best known contrast has its
    variance."""
    scale = np.outer(rows.fine.scale, columns.fine.scale)
    return (scale / seen.variance).max(axis=(1, 2), keepdims=True)


def places_of(shares: Floats, of: Ints, lacks: bool) -> Floats:
    """(L,) mean place, in the unit interval, of the values (F,) of each cell, less that of all, at
    which whoever lacks the number is put."""
    known, even = len(shares) - lacks, shares + 1e-12
    middles = np.append((np.arange(known) + 0.5) / known, [0.0] * lacks)
    middles[:known] -= np.average(middles[:known], weights=even[:known])
    return np.asarray(np.bincount(of, even * middles) / np.bincount(of, even))


def covariances(
    found: Explained, cuts: list[Cut], shares: list[Floats], numbers: Sequence[int]
) -> tuple[Floats, Floats]:
    """(p, p) covariances of the numbers, as shares of the cube, and their precision, 0 below the
    diagonal and on it.

    Means g of groups have the covariance  cov(g, g') = b b' cov(x, x')  where one number follows
    the other in a line, b being the share of a number's variance that is between its groups.
    """
    blocks, size = _blocks([count(cut.groups) for cut in cuts]), len(numbers)
    made, precision = np.zeros((size, size)), np.zeros((size, size))
    means = []  # (A,) of the groups, less the mean of all, and the share of variance between them
    for j in numbers:
        share, (_, of, *_, lacks) = shares[j], cuts[j]
        places = places_of(share, np.arange(len(share)), lacks)
        middles, held = places_of(share, of, lacks), np.bincount(of, share)
        between = float(held @ middles**2) / max(float(share @ places**2), 1e-12)
        means.append((middles, max(between, 0.5)))
    for (a, i), (b, j) in combinations(enumerate(numbers), 2):
        table = found.always[blocks[i], blocks[j]]
        people, (here, one), (there, other) = max(table.sum(), 1.0), means[a], means[b]
        whole = people * one * other
        made[a, b] = here @ table @ there / whole
        noise = (here @ here) * (there @ there) / found.precision[1][blocks[i], blocks[j]].max()
        if min(np.ptp(here), np.ptp(there)) > 1e-9:  # what is constant goes with nothing
            precision[a, b] = whole**2 / noise
    return made, precision


def noise_of(found: Explained) -> float:
    """Largest summed variance of a table; N people by chance have about N."""
    measured = found.precision[1] > 0
    least = found.precision[1].min(where=measured, initial=np.inf)
    return float(np.count_nonzero(measured, axis=1).max() / least)


def _blocks(widths: list[int]) -> list[slice]:
    ends = np.cumsum(widths)
    return [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]
