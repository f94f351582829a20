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
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints

PER_GROUP = 4
"""Cells of a number in each of its groups: correlations within groups are seen by covariances."""
SIZES = 4.0 ** np.arange(-2, 7)
"""t^2 of a dependence that is possible, over the median variance of its contrasts: from what cannot
be seen to what cannot be missed."""
MANY = np.array([1.0, 0.3, 0.1, 0.03])
"""Of the contrasts of an order, that are not 0: 1 alone loses 7 % in means."""
REST = 0.2
"""Prior of no dependence; .02 and .5 are as good to 1 %."""
RAKINGS = 10
SHAPES = 64, 14, 10
"""Places of the middle of a number that are tried, and widths of normal and log-normal ones."""

Pair = tuple[int, int]
Noisy = tuple[Floats, float]
"""A noisy table, and the standard deviation of a cell."""
Ask = Callable[[Sequence[Pair]], tuple[list[Noisy], list[Noisy]]]
"""Tables of groups (A_i, A_j) for pairs, and of bands (P, B_i, B_j) in P parts of time."""


# How a column is cut ------------------------------------------------------------------------------


class Cut(NamedTuple):
    """cells: (F,) the cell of each of the F values that are counted.  groups, bands: (F,) its own.

    Numbers of cells, groups and bands begin with 0. near: whether neighbours are alike; then they
    are runs. lacks: the value of those who lack a number: a cell, a group and a band of its own.
    """

    cells: Ints
    groups: Ints
    bands: Ints
    near: bool
    lacks: int | None = None

    @property
    def of_cell(self) -> Ints:
        """(L,) the group of each cell."""
        return self.groups[np.unique(self.cells, return_index=True)[1]]

    @property
    def of_group(self) -> Ints:
        """(A,) the band of each group."""
        return self.bands[np.unique(self.groups, return_index=True)[1]]


def cut_number(shares: Floats, groups: int, bands: int, lacks: int | None) -> Cut:
    """Runs of values (F,) with about as many people and as much of the mean distance from their
    mean: tails, where a mean is decided, are cut nearly as the least squared error would."""
    known, parts = shares.copy(), np.zeros(len(shares), np.int64)
    if lacks is not None:
        known[lacks] = 0.0
        parts[lacks:] += 1
        parts[lacks + 1 :] += 1
    people, places = max(float(known.sum()), 1e-300), np.arange(len(known)) / len(known)
    far = np.abs(places - known @ places / people)
    known *= (1 + far / max(float(known @ far) / people, 1e-12)) / 2
    of_band = _split(known, parts, people / bands)
    of_group = _split(known, of_band, people / groups)
    mean = float(np.mean(np.bincount(of_group, known)))
    return Cut(_split(known, of_group, mean / PER_GROUP), of_group, of_band, True, lacks)


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
        usual, (share, _, _) = max(tried, key=lambda one: one[1][1])
        made = np.clip(usual + share * (apart - usual), -masses, masses)
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
    -1 for the constant, which says nothing about a dependence.
    """

    fine: Functions
    coarse: Functions
    order: Ints

    @classmethod
    def of(cls, shares: Floats, near: bool, bands: Ints | None = None) -> Basis:
        """Polynomials of the rank where neighbours are near, else single levels. bands: (A,)."""
        floor = (0.1 if near else 1e-3) / len(shares)
        shares = (shares + floor) / (shares + floor).sum()
        roots, order = np.sqrt(shares), np.zeros(len(shares), np.int64)
        values = np.diag(1 / roots)
        if near:
            rank = 2 * (np.cumsum(shares) - shares / 2) - 1
            powers = np.polynomial.legendre.legvander(rank, len(shares) - 1)
            values = np.linalg.qr(roots[:, None] * powers)[0] / roots[:, None]
            order = np.append(-1, np.arange(1, len(shares)))
        fine = coarse = Functions(shares, values, (values**2).sum(axis=0))
        if bands is not None and count(bands) < len(shares):
            inside = indicator(bands)
            wide = shares @ inside
            means = inside.T @ (shares[:, None] * values) / wide[:, None]
            means = means / np.maximum(wide @ means**2, 1e-12)
            scale = np.where(order < len(wide), (means**2).sum(axis=0), np.inf)
            coarse = Functions(wide, np.where(order < len(wide), means, 0.0), scale)
        return cls(fine, coarse, order)


class Contrasts(NamedTuple):
    """theta: (P, A, B) of P tables.  variance: infinite where nothing was measured."""

    theta: Floats
    variance: Floats

    @classmethod
    def of(
        cls, table: Floats, expected: Floats, noise: float, rows: Functions, columns: Functions
    ) -> Contrasts:
        """Of (P, n, k) people beyond those that were expected."""
        people = np.maximum(expected.sum(axis=(1, 2)), 1.0)[:, None, None]
        rest = table - expected
        rest = rest - rows.shares[:, None] * rest.sum(axis=1, keepdims=True)
        rest = rest - columns.shares * rest.sum(axis=2, keepdims=True)
        theta = rows.values.T @ rest @ columns.values / people
        return cls(theta, (noise / people) ** 2 * np.outer(rows.scale, columns.scale))

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

    def denoised(self, rows: Basis, columns: Basis) -> tuple[Floats, float]:
        """What of N people in groups, (P, A, B) / N, is away from what was expected, as far as it
        stands out from noise, and the log odds that there is anything."""
        order = np.maximum(rows.order[:, None], columns.order)
        order = np.where(np.minimum(rows.order[:, None], columns.order) < 0, -1, order)
        level = np.outer(*(np.where(one.order, 1.0, one.fine.shares) for one in (rows, columns)))
        level = np.broadcast_to(level, self.theta.shape)
        kept, evidence = np.zeros_like(self.theta), 0.0
        for k in range(int(order.max()) + 1):
            mine = (order == k) & np.isfinite(self.variance)
            if mine.any():
                values, variance = self.theta[mine], self.variance[mine]
                share, likelihood, rest_alone = _kept(values, variance, level[mine])
                kept[mine] = share * values
                evidence += likelihood - rest_alone
        away = rows.fine.values @ kept @ columns.fine.values.T
        return away * np.outer(rows.fine.shares, columns.fine.shares), evidence


def _kept(values: Floats, variance: Floats, level: Floats) -> tuple[Floats, float, float]:
    """What share (n,) of values with this noise is kept, the log likelihood, and that of rest."""
    spreads = np.concatenate(
        [SIZES[:, None] * np.median(variance / w) * w for w in (np.ones_like(level), level)]
    )
    total, many = variance + spreads, MANY[:, None, None]
    rest = -0.5 * (np.log(variance) + values**2 / variance)
    some = -0.5 * (np.log(total) + values**2 / total) + np.log(many)
    with np.errstate(divide="ignore"):
        mixed = np.logaddexp(some, np.log1p(-many) + rest)  # (shares, sizes, n)
    alone = float(rest.sum())
    logs = mixed.sum(axis=2) + math.log((1 - REST) / (len(MANY) * len(spreads)))
    top = max(float(logs.max()), alone)
    chances = np.exp(logs - top)
    whole = float(chances.sum()) + REST * math.exp(alone - top)
    share = np.einsum("mk,mkn,kn->n", chances / whole, np.exp(some - mixed), spreads / total)
    return share, top + math.log(whole), alone


class Pairs(NamedTuple):
    """always: (C, C) people of all times.  parts: (P, C, C) of each part of time.

    Tables stand as blocks of one matrix, C groups of all columns in a row, above its diagonal.
    precision: of both, 1 / variance of a cell, 0 where nothing was measured.
    """

    always: Floats
    parts: Floats
    precision: tuple[Floats, Floats]


def measured_pairs(
    by_part: list[Floats], cuts: list[Cut], tables: dict[Pair, Noisy], again: Ask
) -> Pairs:
    """All pairs, of which there are tables of bands, and those that depend on each other again.

    by_part: (P, A_j) people of the groups of each column in P parts of time.
    """
    blocks = _blocks([one.shape[1] for one in by_part])
    parts, width = len(by_part[0]), blocks[-1].stop
    always, some = (width, width), (parts, width, width)
    found = Pairs(np.zeros(always), np.zeros(some), (np.zeros(always), np.zeros(some)))
    sizes = np.maximum(by_part[0].sum(axis=1), 1e-12)[:, None, None]
    people = max(float(sizes.sum()), 1.0)
    when = Basis.of(sizes[:, 0, 0] / people, True).fine
    bands = [indicator(cut.of_group) for cut in cuts]
    bases = []
    for one, cut in zip(by_part, cuts, strict=True):
        shares = one.sum(axis=0) / max(float(one.sum()), 1e-12)
        bases.append(Basis.of(shares, cut.near, cut.of_group))

    def contrasts(pair: Pair, noisy: Noisy, expected: Floats, fine: bool) -> Contrasts:
        i, j = pair
        one, other = ((b.fine if fine else b.coarse) for b in (bases[i], bases[j]))
        if not fine:
            expected = bands[i].T @ expected @ bands[j]
        counts = noisy[0].reshape(-1, *expected.shape[-2:])
        return Contrasts.of(counts, np.broadcast_to(expected, counts.shape), noisy[1], one, other)

    def keep(pair: Pair, seen: Contrasts) -> tuple[Floats, float]:
        i, j = pair
        (away,), odds = seen.denoised(bases[i], bases[j])
        found.always[blocks[i], blocks[j]] = _independent(by_part, i, j) + people * away
        found.precision[0][blocks[i], blocks[j]] = _of_a_cell(seen, bases[i], bases[j]) / people**2
        return away, odds

    seen, odds = {}, {}
    for (i, j), noisy in tables.items():
        seen[i, j] = contrasts((i, j), noisy, _independent(by_part, i, j), False)
        odds[i, j] = keep((i, j), seen[i, j])[1]
    chosen = [pair for pair in tables if odds[pair] > 0] or list(tables)
    finer, later = again(chosen) if chosen else ([], [])
    for (i, j), whole, (counts, noise) in zip(chosen, finer, later, strict=True):
        expected = _independent(by_part, i, j)
        both = seen[i, j].and_also(contrasts((i, j), whole, expected, True))
        total = counts.sum(axis=0), math.sqrt(parts) * noise
        away, _ = keep((i, j), both.and_also(contrasts((i, j), total, expected, False)))
        same = _raked(expected / people + away, by_part[i], by_part[j])
        moves = contrasts((i, j), (counts, noise), same, False)
        for k, trend in enumerate(moves.over_time(when), 1):
            (away,), _ = trend.denoised(bases[i], bases[j])
            same = same + sizes * when.values[:, k, None, None] * away
        found.parts[:, blocks[i], blocks[j]] = same
        precision = _of_a_cell(moves, bases[i], bases[j]) / people**2
        found.precision[1][:, blocks[i], blocks[j]] = precision * (people / sizes) ** 2
    return found


def _of_a_cell(seen: Contrasts, rows: Basis, columns: Basis) -> float:
    """The precision of cells, as shares, with which the best known contrast has its variance."""
    return float((np.outer(rows.fine.scale, columns.fine.scale) / seen.variance).max())


def places_of(shares: Floats, of: Ints) -> Floats:
    """(L,) mean place, in the unit interval, of the values (F,) of each cell."""
    middles = (np.arange(len(shares)) + 0.5) / len(shares)
    even = shares + 1e-12
    return np.asarray(np.bincount(of, even * middles) / np.bincount(of, even))


def covariances(
    found: Pairs, cuts: list[Cut], shares: list[Floats], numbers: Sequence[int]
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
        share, of = shares[j], cuts[j].groups
        places = places_of(share, np.arange(len(share)))
        mean, held = share @ places, np.bincount(of, share)
        middles = places_of(share, of) - mean
        between = float(held @ middles**2) / max(float(share @ (places - mean) ** 2), 1e-12)
        means.append((middles, max(between, 0.5)))
    for (a, i), (b, j) in combinations(enumerate(numbers), 2):
        table = found.always[blocks[i], blocks[j]]
        people, (here, one), (there, other) = max(table.sum(), 1.0), means[a], means[b]
        whole = people * one * other
        made[a, b] = here @ table @ there / whole
        noise = (here @ here) * (there @ there) / found.precision[0][blocks[i], blocks[j]].max()
        if len(here) > 1 and len(there) > 1:  # what is constant goes with nothing
            precision[a, b] = whole**2 / noise
    return made, precision


def noise_of(found: Pairs) -> float:
    """Largest summed variance of a table; N people by chance have about N."""
    measured = found.precision[0] > 0
    least = found.precision[0].min(where=measured, initial=np.inf)
    return float(np.count_nonzero(measured, axis=1).max() / least)


def _blocks(widths: list[int]) -> list[slice]:
    ends = np.cumsum(widths)
    return [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]


def _raked(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """(P, A, B) with rows (P, A) and columns (P, B) in all, and the odds ratios of a table (A, B):
    what a group is like stays as it is where more or fewer people are in it."""
    made = np.repeat(np.maximum(table, 1e-3 * np.outer(table.sum(1), table.sum(0)))[None], len(rows), 0)
    for _ in range(RAKINGS):
        made *= (rows / made.sum(axis=2))[:, :, None]
        made *= (columns / made.sum(axis=1))[:, None]
    return made


def _independent(by_part: list[Floats], i: int, j: int) -> Floats:
    """(A_i, A_j) people, if the columns were independent at all times."""
    people = np.maximum(by_part[i].sum(axis=1), 1e-12)
    table: Floats = by_part[i].T @ (by_part[j] / people[:, None])
    return table
