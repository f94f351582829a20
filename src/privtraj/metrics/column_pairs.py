"""Two columns together: are their tables right, and their correlations?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.columns.kinds import Column, Number
from privtraj.metrics.clouds import pair
from privtraj.metrics.encoding import cells_of, is_missing, known_columns, of_table
from privtraj.metrics.registry import cloud_metric
from privtraj.metrics.single_columns import total_variation

_CONSTANT = 1e-12  # a deviation below which a correlation is 0 by definition


@cloud_metric("pair_tv", "total variation of pairs", place=4, mixed=True)
def pair_tv(synthetic: Any, real: Any, *, columns: Sequence[Column] | None = None) -> float:
    """Mean of `pair_errors` over the pairs of columns; nan where there is one column."""
    errors = pair_errors(synthetic, real, columns=columns)
    return float(errors.mean()) if len(errors) else float("nan")


@cloud_metric("worst_pair_tv", "total variation of the worst pair", place=5, mixed=True)
def worst_pair_tv(synthetic: Any, real: Any, *, columns: Sequence[Column] | None = None) -> float:
    """The largest of `pair_errors`; nan where there is one column."""
    errors = pair_errors(synthetic, real, columns=columns)
    return float(errors.max()) if len(errors) else float("nan")


@cloud_metric("correlation_error", "correlations of numbers, mean error", place=6, mixed=True)
def correlation_error(
    synthetic: Any, real: Any, *, columns: Sequence[Column] | None = None
) -> float:
    """Mean of `correlation_errors` over the pairs of numbers; nan where there is none."""
    errors = correlation_errors(synthetic, real, columns=columns)
    between = errors[np.isfinite(errors)]
    return float(between.mean()) if len(between) else float("nan")


def pairs_of(columns: Sequence[Column]) -> list[tuple[int, int]]:
    """Places (P, 2) of all pairs of columns that a table has."""
    return list(combinations(of_table(columns), 2))


def pair_errors(synthetic: Any, real: Any, *, columns: Sequence[Column] | None = None) -> Floats:
    """(P,) total variation of the tables of two columns, from 0 to 1; lower is better.

    Of points (n, d), (k, d) in the unit cube. Categories have their levels, numbers 8 equal cells
    of the public range; missing is a cell of its own. One less it is ContingencySimilarity of
    SDMetrics, but for the cells of numbers.
    """
    x, y = pair(synthetic, real)
    known = known_columns(columns, x.shape[1])
    (a, sizes), (b, _) = cells_of(x, known), cells_of(y, known)

    def error(i: int, j: int) -> float:
        ours, theirs = (side[:, i] * sizes[j] + side[:, j] for side in (a, b))
        return total_variation(ours, theirs, int(sizes[i] * sizes[j]))

    return np.array([error(i, j) for i, j in combinations(range(len(sizes)), 2)])


def correlation_errors(
    synthetic: Any, real: Any, *, columns: Sequence[Column] | None = None
) -> Floats:
    """(P,) |r - s| of Pearson's correlations of two numbers, from 0 to 2; nan for other pairs.

    Over the people who have both; 0 by definition where they do not differ. One less half of it is
    CorrelationSimilarity of SDMetrics.
    """
    x, y = pair(synthetic, real)
    known = known_columns(columns, x.shape[1])
    errors = []
    for i, j in pairs_of(known):
        numbers = isinstance(known[i], Number) and isinstance(known[j], Number)
        ours, theirs = (_correlation(side, known, i, j) if numbers else np.nan for side in (x, y))
        errors.append(abs(ours - theirs))
    return np.array(errors)


def _correlation(points: Floats, columns: Sequence[Column], i: int, j: int) -> float:
    absent = is_missing(points, columns, i) | is_missing(points, columns, j)
    x, y = points[~absent, i], points[~absent, j]
    if len(x) < 2 or min(x.std(), y.std()) < _CONSTANT:
        return 0.0
    return float(((x - x.mean()) * (y - y.mean())).mean() / (x.std() * y.std()))
