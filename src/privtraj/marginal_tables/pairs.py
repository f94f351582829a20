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

from privtraj.arrays import Floats, Ints
from privtraj.marginal_tables import groups
from privtraj.marginal_tables.constants import SIGNIFICANT
from privtraj.marginal_tables.denoising import denoised

Pair = tuple[int, int]
Ask = Callable[[Sequence[Pair]], tuple[list[Floats], float]]
"""Noisy tables (K, cells) of pairs, and the standard deviation of a cell."""


class Pairs(NamedTuple):
    """always: (C, C) people of all times.  parts: (P, C, C) of each part of time.

    precision: of both, 1 / variance of a cell, 0 where nothing was measured.
    """

    always: Floats
    parts: Floats
    precision: tuple[Floats, Floats]


def measured_pairs(
    in_groups: list[Ints],
    near: Sequence[bool],
    by_part: list[Floats],
    ask: Ask,
    again: Ask,
) -> Pairs:
    """All pairs once, and those that depend on each other again, in P parts of time.

    in_groups: (L_j,) of each column.  near: whether neighbouring groups are alike.
    by_part: (P, A_j) people of its groups in each part.
    """
    scores = [
        groups.scores(of) if alike else None for of, alike in zip(in_groups, near, strict=True)
    ]
    blocks = _blocks(in_groups)
    parts, width = len(by_part[0]), sum(one.shape[1] for one in by_part)
    found = Pairs(
        np.zeros((width, width)),
        np.zeros((parts, width, width)),
        (np.zeros((width, width)), np.zeros((parts, width, width))),
    )
    every = list(combinations(range(len(in_groups)), 2))
    if not every:
        return found
    answers, deviation = ask(every)
    dependent = []
    for (i, j), answer in zip(every, answers, strict=True):
        table, alone = answer.reshape(by_part[i].shape[1], -1), _independent(by_part, i, j)
        if _stands_out(table - alone, deviation):
            dependent.append((i, j))
        found.always[blocks[i], blocks[j]] = denoised(table, alone, deviation, scores[i], scores[j])
        found.precision[0][blocks[i], blocks[j]] = deviation**-2
    chosen = dependent or every
    answers, deviation = again(chosen)
    for (i, j), answer in zip(chosen, answers, strict=True):
        always = found.always[blocks[i], blocks[j]]
        away = (always - _independent(by_part, i, j)) / max(by_part[i].sum(), 1e-12)
        for part, counts in enumerate(answer):
            here, there = by_part[i][part], by_part[j][part]
            same = np.outer(here, there) / max(here.sum(), 1e-12) + away * here.sum()
            table = denoised(counts.reshape(same.shape), same, deviation, scores[i], scores[j])
            found.parts[part, blocks[i], blocks[j]] = table
            found.precision[1][part, blocks[i], blocks[j]] = deviation**-2
    return found


def covariances(
    found: Pairs, in_groups: list[Ints], shares: list[Floats], numbers: Sequence[int]
) -> tuple[Floats, Floats]:
    """(p, p) covariances of the numbers, as shares of the cube, and their precision, 0 below the
    diagonal and on it.

    Means g of groups have the covariance  cov(g, g') = b b' cov(x, x')  where one number follows
    the other in a line, b being the share of a number's variance that is between its groups.
    """
    blocks, count = _blocks(in_groups), len(numbers)
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
    places = (np.arange(len(share)) + 0.5) / len(share)
    places = places - share @ places
    held = np.maximum(np.bincount(of, share), 1e-12)
    means = np.bincount(of, share * places) / held
    between = float(held @ means**2) / max(float(share @ places**2), 1e-12)
    return means, max(between, 0.5)


def noise_of(found: Pairs, pairs: int) -> float:
    """Mean over the pairs of the summed variance of a table; N people by chance have about N."""
    precision = found.precision[0]
    measured = precision > 0
    return float((1 / precision[measured]).sum() / max(pairs, 1))


def _blocks(in_groups: list[Ints]) -> list[slice]:
    ends = np.cumsum([groups.count(of) for of in in_groups])
    return [slice(end - groups.count(of), end) for end, of in zip(ends, in_groups, strict=True)]


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
