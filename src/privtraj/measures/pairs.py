"""Noisy tables of one and two columns: groups of cells, and what of a table is more than noise.

Cells of a column are put together so that what is counted stands out from its noise. Groups follow
from released shares of all times together: whether a record is in a group is then a function of
that record and of released numbers. All else here is post-processing.

Tables stand as blocks of one matrix (C, C), C groups of all columns in a row, of which the blocks
above the diagonal are measured. What was measured is freed of noise before it is explained: of all
times, what is left of the table of independent columns; of a part of time, what is left of the same
dependence with the shares of that part.

A table of two columns is that of independent ones plus a dependence, a matrix R with noise of
deviation s in each cell. Most of a dependence between numbers is linear: along the scores u, v of
their groups, unit vectors, it is one number u'Rv with noise s, however many cells there are. So R
is turned into the axes (u, rest) and (v, rest), where noise is as it was, and

    a vector of k numbers r   becomes  max(0, 1 - k s^2 / |r|^2) r     (James and Stein)
    the matrix of the rest    keeps the singular values above s (sqrt(a) + sqrt(b)), the largest
                              that noise shows, less a known amount (Gavish and Donoho, "Optimal
                              shrinkage of singular values", 2017).

Categories have no scores, and their axes are all rest. Counts of a number by itself are smooth but
for jumps: of their Haar coefficients those above s sqrt(2 log n) are kept, for every shift of the
cells, and the mean over the shifts is taken (Coifman and Donoho, "Translation-invariant
de-noising", 1995). Without it the noise of many empty cells puts people far out, who widen every
number and hide how two of them go together. Nothing is set by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints

SIGNIFICANT = 2.0
"""Standard errors by which two columns must depend on each other to be measured together again."""

Pair = tuple[int, int]
Ask = Callable[[Sequence[Pair]], tuple[list[Floats], float]]
"""Noisy tables (P, cells) of pairs in parts of time, and the standard deviation of a cell."""


def groups_of_number(people: Floats, count: int) -> Ints:
    """(L,) the group of each cell: at most `count` runs of cells with about as many people (L,)."""
    share = people / people.sum()
    middle = np.cumsum(share) - share / 2
    numbers = np.minimum((middle * count).astype(np.int64), count - 1)
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def groups_of_category(people: Floats, least: float) -> Ints:
    """(L,) the group of each level: one of its own for `least` people, all others are one."""
    rare = people < least
    if np.count_nonzero(rare) < 2:
        return np.arange(len(people))
    numbers = np.cumsum(~rare) - 1
    return np.where(rare, numbers[-1] + 1, numbers)


def groups_of_ordered(people: Floats, least: float) -> Ints:
    """(L,) the group of each level: neighbours together until they have `least` people."""
    groups, held, number = np.zeros(len(people), np.int64), 0.0, 0
    for level, here in enumerate(people.tolist()):
        if held >= least:
            held, number = 0.0, number + 1
        groups[level] = number
        held += here
    return groups


def cell_middles(cells: int) -> Floats:
    """(L,) of cells of equal size in the unit interval."""
    middle: Floats = (np.arange(cells) + 0.5) / cells
    return middle


def group_scores(grouped: Ints) -> Floats:
    """(A,) mean number of the cells of each group."""
    return np.bincount(grouped, np.arange(len(grouped))) / np.bincount(grouped)


def group_count(grouped: Ints) -> int:
    """A, how many groups there are."""
    return int(grouped.max()) + 1


def indicator(grouped: Ints) -> Floats:
    """(L, A) 1 where a cell is in a group."""
    return np.eye(group_count(grouped))[grouped]


def on_simplex(shares: Floats) -> Floats:
    """The nearest shares (n,) that are not negative and add up to 1."""
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(shares) + 1)
    return np.maximum(shares - excess[np.flatnonzero(falling > excess)[-1]], 0.0)


class Known(NamedTuple):
    """people: (L,) in each cell, not negative.  variance: (L,) of these numbers."""

    people: Floats
    variance: Floats

    @property
    def shares(self) -> Floats:
        """(L,) that add up to 1."""
        shares: Floats = self.people / max(float(self.people.sum()), 1e-12)
        return shares

    def updated(self, of: Ints, counts: Floats, variance: float) -> Known:
        """With noisy counts (A,) of groups of the cells too, each by its variance.

        Cells of one group are multiplied by one number. All counts have their noise, and so does
        their sum, of which nothing is taken. However few there are, somebody is in some cell.
        """
        held, known = np.bincount(of, self.people), np.bincount(of, self.variance)
        total = max(float(held.sum()), 1.0)
        counts = counts + (total - counts.sum()) / len(counts)
        weight = known / (known + variance)
        wanted = total * on_simplex((held + weight * (counts - held)) / total)
        inside = np.where((held > 0)[of], self.people, 1.0)  # of an empty group, evenly
        people = inside * (wanted / np.bincount(of, inside))[of]
        return Known(people, self.variance * (1 - weight)[of])


class Pairs(NamedTuple):
    """always: (C, C) people of all times.  parts: (P, C, C) of each part of time.

    precision: of both, 1 / variance of a cell, 0 where nothing was measured.
    """

    always: Floats
    parts: Floats
    precision: tuple[Floats, Floats]


def measured_pairs(
    by_part: list[Floats],
    scores: list[Floats | None],
    tables: dict[Pair, Floats],
    deviation: float,
    again: Ask,
) -> Pairs:
    """All pairs, of which there are tables (A_i, A_j), and those that depend on each other again.

    by_part: (P, A_j) people of the groups of each column in P parts of time.
    scores: (A_j,) of the groups of numbers, None for categories.
    """
    blocks = _blocks([one.shape[1] for one in by_part])
    parts, width = len(by_part[0]), sum(one.shape[1] for one in by_part)
    found = Pairs(
        np.zeros((width, width)),
        np.zeros((parts, width, width)),
        (np.zeros((width, width)), np.zeros((parts, width, width))),
    )
    depend = []
    for (i, j), table in tables.items():
        expected = _independent(by_part, i, j)
        clean = denoised(table, expected, deviation, scores[i], scores[j])
        found.always[blocks[i], blocks[j]] = clean
        found.precision[0][blocks[i], blocks[j]] = deviation**-2
        # the squared distance of n cells with noise of variance v has mean n v, variance 2 n v^2
        excess = float(((table - expected) ** 2).sum()) / deviation**2 - table.size
        if excess > SIGNIFICANT * math.sqrt(2 * table.size):
            depend.append((i, j))
    chosen = depend or list(tables)
    answers, noise = again(chosen) if chosen else ([], deviation)
    for (i, j), answer in zip(chosen, answers, strict=True):
        always = found.always[blocks[i], blocks[j]]
        away = (always - _independent(by_part, i, j)) / max(by_part[i].sum(), 1e-12)
        for part, counts in enumerate(answer):
            here, there = by_part[i][part], by_part[j][part]
            same = np.outer(here, there) / max(here.sum(), 1e-12) + away * here.sum()
            clean = denoised(counts.reshape(same.shape), same, noise, scores[i], scores[j])
            found.parts[part, blocks[i], blocks[j]] = clean
            found.precision[1][part, blocks[i], blocks[j]] = noise**-2
    return found


def covariances(
    found: Pairs, in_groups: list[Ints], shares: list[Floats], numbers: Sequence[int]
) -> tuple[Floats, Floats]:
    """(p, p) covariances of the numbers, as shares of the cube, and their precision, 0 below the
    diagonal and on it.

    Means g of groups have the covariance  cov(g, g') = b b' cov(x, x')  where one number follows
    the other in a line, b being the share of a number's variance that is between its groups.
    """
    blocks, count = _blocks([group_count(of) for of in in_groups]), len(numbers)
    made, precision = np.zeros((count, count)), np.zeros((count, count))
    means = []  # (A,) of the groups, less the mean of all, and the share of variance between them
    for j in numbers:
        share, of = shares[j], in_groups[j]
        places = cell_middles(len(share))
        places = places - share @ places
        held = np.maximum(np.bincount(of, share), 1e-12)
        middles = np.bincount(of, share * places) / held
        between = float(held @ middles**2) / max(float(share @ places**2), 1e-12)
        means.append((middles, max(between, 0.5)))
    for (a, i), (b, j) in combinations(enumerate(numbers), 2):
        table = found.always[blocks[i], blocks[j]]
        people, (here, one), (there, other) = max(table.sum(), 1.0), means[a], means[b]
        whole = people * one * other
        made[a, b] = here @ table @ there / whole
        noise = (here @ here) * (there @ there) / found.precision[0][blocks[i], blocks[j]].max()
        precision[a, b] = whole**2 / noise if noise > 0 else 0.0
    return made, precision


def noise_of(found: Pairs) -> float:
    """Largest summed variance of a table; N people by chance have about N."""
    precision = found.precision[0]
    measured = precision > 0
    if not measured.any():
        return 0.0
    return float(np.count_nonzero(measured, axis=1).max() / precision[measured].min())


def _blocks(widths: list[int]) -> list[slice]:
    ends = np.cumsum(widths)
    return [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]


def _independent(by_part: list[Floats], i: int, j: int) -> Floats:
    """(A_i, A_j) people, if the columns were independent at all times."""
    people = np.maximum(by_part[i].sum(axis=1), 1e-12)
    table: Floats = by_part[i].T @ (by_part[j] / people[:, None])
    return table


def denoised(
    table: Floats,
    expected: Floats,
    deviation: float,
    rows: Floats | None = None,
    columns: Floats | None = None,
) -> Floats:
    """expected + what of table - expected, (a, b) each, stands out from noise.

    rows, columns: scores (a,), (b,) of their groups; None for categories.
    """
    left, right = _axes(rows, len(table)), _axes(columns, table.shape[1])
    turned = left.T @ (table - expected) @ right
    first, second = int(rows is not None), int(columns is not None)
    turned[:first, :second] = _shrunk(turned[:first, :second], deviation)
    turned[:first, second:] = _shrunk(turned[:first, second:], deviation)
    turned[first:, :second] = _shrunk(turned[first:, :second], deviation)
    turned[first:, second:] = _thinned(turned[first:, second:], deviation)
    clean: Floats = expected + left @ turned @ right.T
    return clean


def smoothed(counts: Floats, deviation: float) -> Floats:
    """Counts (n,) of neighbouring cells, n a power of two, without noise; nobody is beyond them."""
    size = len(counts)
    least = deviation * math.sqrt(2 * math.log(max(size, 2)))
    padded = np.concatenate([np.zeros(size), counts, np.zeros(size)])
    total = np.zeros_like(padded)
    for shift in range(size):
        means, kept = np.roll(padded, shift).reshape(3, size), []
        while means.shape[1] > 1:
            even, odd = means[:, ::2], means[:, 1::2]
            differences = (even - odd) / math.sqrt(2)
            kept.append(np.where(np.abs(differences) > least, differences, 0.0))
            means = (even + odd) / math.sqrt(2)
        for differences in reversed(kept):
            pairs = np.stack([means + differences, means - differences], axis=2) / math.sqrt(2)
            means = pairs.reshape(3, -1)
        total += np.roll(means.ravel(), -shift)
    mean: Floats = total[size:-size] / size
    return mean


def _axes(scores: Floats | None, size: int) -> Floats:
    """(size, size) orthonormal axes, the first along the scores."""
    if scores is None or size == 1:
        return np.eye(size)
    centred = scores - scores.mean()
    if not centred.any():
        return np.eye(size)
    axes, _ = np.linalg.qr(np.column_stack([centred, np.eye(size)[:, : size - 1]]))
    return axes


def _shrunk(values: Floats, deviation: float) -> Floats:
    """All of them nearer to 0, by what noise adds to their squares."""
    squares = float((values**2).sum())
    noise = values.size * deviation**2
    return values * max(0.0, 1 - noise / squares) if squares > 0 else values


def _thinned(matrix: Floats, deviation: float) -> Floats:
    """With y = value / (s sqrt(a)) and beta = b / a <= 1 singular values become
    s sqrt(a) sqrt((y^2 - beta - 1)^2 - 4 beta) / y, 0 below y = 1 + sqrt(beta)."""
    if 0 in matrix.shape:
        return matrix
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    short, long = sorted(matrix.shape)
    unit, beta = deviation * math.sqrt(long), short / long
    y = np.maximum(values / max(unit, 1e-300), 1e-12)
    inside = np.maximum((y**2 - beta - 1) ** 2 - 4 * beta, 0.0)
    kept = np.where(y > 1 + math.sqrt(beta), np.sqrt(inside) / y, 0.0) * unit
    return (left * kept) @ right
