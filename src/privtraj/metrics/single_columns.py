"""Single columns: are the shares of values right, is the spread of numbers, are the gaps?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.columns.kinds import Category, Column
from privtraj.metrics.clouds import pair
from privtraj.metrics.encoding import cells_of, is_missing, known_columns, of_table
from privtraj.metrics.registry import cloud_metric


@cloud_metric("column_error", "columns, mean error", place=2, mixed=True)
def mean_column_error(
    synthetic: Any, real: Any, *, columns: Sequence[Column] | None = None
) -> float:
    """Mean of `column_errors`."""
    return float(column_errors(synthetic, real, columns=columns).mean())


def column_errors(synthetic: Any, real: Any, *, columns: Sequence[Column] | None = None) -> Floats:
    """(e,) of points (n, d), (k, d) in the unit cube, each from 0 to 1; lower is better.

    A category: total variation of the shares of its levels, sum_c |p_c - q_c| / 2, missing among
    them. A number: Kolmogorov and Smirnov's sup_y |F(y) - G(y)| of those who have it. One less
    these are TVComplement and KSComplement of SDMetrics.
    """
    x, y = pair(synthetic, real)
    known = known_columns(columns, x.shape[1])
    (a, sizes), (b, _) = cells_of(x, known), cells_of(y, known)
    errors = []
    for k, place in enumerate(of_table(known)):
        if isinstance(known[place], Category):
            errors.append(total_variation(a[:, k], b[:, k], int(sizes[k])))
        else:
            there = (side[~is_missing(side, known, place), place] for side in (x, y))
            errors.append(_farthest(*there))
    return np.array(errors)


def missing_errors(synthetic: Any, real: Any, *, columns: Sequence[Column] | None = None) -> Floats:
    """(e,) difference of the shares of people who lack a column; nan where nobody may."""
    x, y = pair(synthetic, real)
    known = known_columns(columns, x.shape[1])
    errors = []
    for place in of_table(known):
        ours, theirs = (is_missing(side, known, place).mean() for side in (x, y))
        errors.append(abs(ours - theirs) if known[place].missing else np.nan)
    return np.array(errors)


def total_variation(a: Any, b: Any, size: int) -> float:
    """sum_c |p_c - q_c| / 2 of the shares of cells 0 .. size - 1 among a (n,) and b (k,)."""
    p, q = (np.bincount(cells, minlength=size) / len(cells) for cells in (a, b))
    return float(np.abs(p - q).sum() / 2)


def _farthest(a: Floats, b: Floats) -> float:
    """sup |F - G|; 1 if only one of them has anybody."""
    if len(a) == 0 or len(b) == 0:
        return float(len(a) != len(b))
    at = np.concatenate([a, b])
    below = [np.searchsorted(np.sort(side), at, "right") / len(side) for side in (a, b)]
    return float(np.abs(below[0] - below[1]).max())
