"""Tables of two columns: all pairs of all times together, then those that depend, in parts of time.

Tables stand as blocks of one matrix (C, C), C groups of all columns in a row, of which the blocks
above the diagonal are measured. What was measured is freed of noise before it is explained: of all
times, what is left of the table of independent columns; of a part of time, what is left of the same
dependence with the shares of that part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.measures.tables import groups
from privtraj.measures.tables.constants import SIGNIFICANT
from privtraj.measures.tables.denoising import denoised
from privtraj.measures.tables.known import Known

Pair = tuple[int, int]
Ask = Callable[[Sequence[Pair]], tuple[list[Floats], float]]
"""Noisy tables (P, cells) of pairs in parts of time, and the standard deviation of a cell."""


class Pairs(NamedTuple):
    """always: (C, C) people of all times.  parts: (P, C, C) of each part of time.

    precision: of both, 1 / variance of a cell, 0 where nothing was measured.
    """

    always: Floats
    parts: Floats
    precision: tuple[Floats, Floats]


def with_margins(
    known: list[Known],
    in_groups: list[Ints],
    every: list[Pair],
    tables: list[Floats],
    deviation: float,
) -> list[Known]:
    """What is known of single columns, with what tables of two of them say about each."""
    better = list(known)
    for pair, table in zip(every, tables, strict=True):
        for axis, j in enumerate(pair):
            summed = table.sum(axis=1 - axis)
            variance = table.shape[1 - axis] * deviation**2
            better[j] = better[j].told(in_groups[j], summed, variance)
    return better


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
    for (i, j), table in tables.items():
        clean = denoised(table, _independent(by_part, i, j), deviation, scores[i], scores[j])
        found.always[blocks[i], blocks[j]] = clean
        found.precision[0][blocks[i], blocks[j]] = deviation**-2
    depend = [
        pair
        for pair, table in tables.items()
        if _stands_out(table - _independent(by_part, *pair), deviation)
    ]
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
    blocks, count = _blocks([groups.count(of) for of in in_groups]), len(numbers)
    made, precision = np.zeros((count, count)), np.zeros((count, count))
    means = [_group_means(shares[j], in_groups[j]) for j in numbers]
    for (a, i), (b, j) in combinations(enumerate(numbers), 2):
        table = found.always[blocks[i], blocks[j]]
        people, (here, one), (there, other) = max(table.sum(), 1.0), means[a], means[b]
        whole = people * one * other
        made[a, b] = here @ table @ there / whole
        noise = (here @ here) * (there @ there) / found.precision[0][blocks[i], blocks[j]].max()
        precision[a, b] = whole**2 / noise
    return made, precision


def _group_means(share: Floats, of: Ints) -> tuple[Floats, float]:
    """(A,) of the groups, less the mean of all, and the share of the variance between them."""
    places = groups.middles(len(share))
    places = places - share @ places
    held = np.maximum(np.bincount(of, share), 1e-12)
    means = np.bincount(of, share * places) / held
    between = float(held @ means**2) / max(float(share @ places**2), 1e-12)
    return means, max(between, 0.5)


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


def _stands_out(away: Floats, deviation: float) -> bool:
    """Whether a table is farther from that of independent columns than noise would carry it.

    The squared distance of n cells with noise of variance v has mean n v and variance 2 n v^2.
    """
    excess = float((away**2).sum()) / deviation**2 - away.size
    return excess > SIGNIFICANT * math.sqrt(2 * away.size)
