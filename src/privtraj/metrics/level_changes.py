"""Categories along paths: how often people change, between which values, and how long they stay.

Paths (n, T, d) and (k, T, d) are in the unit cube, synthetic people first. Fixed columns and flags
of missing numbers do not count. All scores are nan where no category changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.columns.axes import Axes
from privtraj.columns.kinds import Category, Column, Flag
from privtraj.metrics.clouds import path_pair, reading_times
from privtraj.metrics.encoding import known_columns
from privtraj.metrics.mobility import jensen_shannon
from privtraj.metrics.movement import ratio
from privtraj.metrics.registry import path_metric
from privtraj.metrics.single_columns import total_variation
from privtraj.metrics.visits import STAY_BINS, lasting

_LIKE = {"coupled": True, "least_times": 2, "mixed": True}


@path_metric("change_ratio", "changes of categories, ratio", place=170, better="1", **_LIKE)
def change_ratio(synthetic: Any, real: Any, *, columns: Sequence[Column] | None = None) -> float:
    """Changes per person from reading to reading, synthetic over real, all categories together.

    1 is best, and what is said where nobody changes on either side; cut at 1/1000 and 1000.
    """
    x, y, changing = _changing(synthetic, real, columns)
    if not changing:
        return float("nan")
    return ratio(*(changes(side, columns=changing).mean() for side in (x, y)))


@path_metric("change_tv", "changes of categories, total variation", place=180, **_LIKE)
def change_tv(synthetic: Any, real: Any, *, columns: Sequence[Column] | None = None) -> float:
    """Total variation of the tables (level now, level at the next reading), from 0 to 1: mean over
    readings and categories; lower is better."""

    def error(ours: Ints, theirs: Ints, count: int, _: Floats) -> float:
        steps = ours.shape[1] - 1
        moves = ([side[:, k] * count + side[:, k + 1] for k in range(steps)]
                 for side in (ours, theirs))  # fmt: skip
        tables = [total_variation(a, b, count**2) for a, b in zip(*moves, strict=True)]
        return float(np.mean(tables))

    return _mean_over_categories(synthetic, real, columns, None, error)


@path_metric("level_dwell_jsd", "stays in a value JSD", place=190, **_LIKE)
def level_dwell_jsd(
    synthetic: Any,
    real: Any,
    *,
    columns: Sequence[Column] | None = None,
    times: Any = None,
) -> float:
    """JSD of (level, time that a person stays in it), mean over categories; 0 to ln 2, lower is
    better. Times of stays as in `dwell_jsd`: the last one ends with the last reading."""

    def error(ours: Ints, theirs: Ints, count: int, at: Floats) -> float:
        cuts = np.geomspace(0.01, 1.0, STAY_BINS)[:-1] * (at[-1] - at[0])
        tables = []
        for side in (ours, theirs):
            level, length = lasting(side, at)
            cell = level * STAY_BINS + np.searchsorted(cuts, length, "right")
            tables.append(np.bincount(cell, minlength=count * STAY_BINS))
        return jensen_shannon(*tables)

    return _mean_over_categories(synthetic, real, columns, times, error)


def changes(paths: Floats, *, columns: Sequence[Column]) -> Ints:
    """(n,) how often each person's categories change from reading to reading, all together."""
    changing = [k for k, column in enumerate(columns) if _may_change(column)]
    levels = Axes.of(columns).level_of(paths)[..., changing]
    return np.count_nonzero(levels[:, 1:] != levels[:, :-1], axis=(1, 2))


def _may_change(column: Column) -> bool:
    return isinstance(column, Category) and not (column.fixed or isinstance(column, Flag))


def _changing(
    synthetic: Any, real: Any, columns: Sequence[Column] | None
) -> tuple[Floats, Floats, tuple[Column, ...]]:
    """Both sides with those coordinates alone that are categories and may change."""
    x, y = path_pair(synthetic, real)
    known = known_columns(columns, x.shape[2])
    places = [k for k, column in enumerate(known) if _may_change(column)]
    return x[..., places], y[..., places], tuple(known[k] for k in places)


def _mean_over_categories(
    synthetic: Any,
    real: Any,
    columns: Sequence[Column] | None,
    times: Any,
    error: Callable[[Ints, Ints, int, Floats], float],
) -> float:
    """Mean of error(levels (n, T), levels (k, T), C, times (T,))."""
    x, y, changing = _changing(synthetic, real, columns)
    if not changing:
        return float("nan")
    at = reading_times(times, x.shape[1])
    axes = Axes.of(changing)
    a, b = axes.level_of(x), axes.level_of(y)
    each = [error(a[..., k], b[..., k], axes.levels[k], at) for k in range(len(changing))]
    return float(np.mean(each))
