"""Columns of every kind: points as scores can use them, single columns, and pairs of columns.

Points (..., d) are in the unit cube, where a category is the middle of its cell, an angle has two
axes, and a number that may be missing has a flag of its own (`columns.kinds`). What is made of
another column belongs to it here: e is the number of the columns that a table has. Scores are
those that users of SDMetrics expect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError, aligned
from privtraj.columns import kinds
from privtraj.columns.kinds import Angle, Axes, Category, Column, Number, of_tables
from privtraj.metrics.registry import cloud_metric, pair

Meaning = Sequence[Column] | None
"""What the coordinates of points mean; numbers, if nobody says."""
CELLS = 8
"""Of a number's public range, in tables of two columns; set by hand: two groups that are a quarter
of the range apart have an empty cell between them, and a table of two numbers has 64 cells."""

_SAME = 1e-12  # people do not differ whose spread is at most this share of their values
_SHOWN = 12  # worst pairs in a text
_WIDEST = 30  # letters of a name in a text

# Points of mixed columns ----------------------------------------------------------------------


def known_columns(columns: Meaning, d: int) -> tuple[Column, ...]:
    """What each of d coordinates means; numbers, if nobody says."""
    if columns is None:
        return tuple(Number(0.0, 1.0, f"x{k + 1}") for k in range(d))
    if len(columns) != d:
        raise InputError(f"there are {len(columns)} columns for points of {d} coordinates")
    return tuple(columns)


def unit_points(values: Floats, columns: Sequence[Column]) -> Floats:
    """Points (..., d) of values (..., e) as tables and paths have them, NaN where missing."""
    flat = kinds.encoded(columns, values.reshape(-1, values.shape[-1]))
    return kinds.to_unit(columns, flat).reshape(*values.shape[:-1], len(columns))


def numbers_alone(points: Floats, columns: Sequence[Column]) -> Floats:
    """The coordinates of numbers; one that is missing is in the middle of its range."""
    return points[..., Axes.of(columns).numbers]


def table_values(points: Floats, columns: Sequence[Column]) -> Floats:
    """Values (..., e): numbers in shares of their range, angles in turns, NaN where these are
    missing; the levels of categories, of which the last may be missing."""
    axes = Axes.of(columns)
    values = np.where(axes.numbers, points, axes.level_of(points))
    for place, flag in axes.flags:
        values[..., place] = np.where(points[..., flag] >= 0.5, np.nan, values[..., place])
    for place, column in enumerate(columns):
        if isinstance(column, kinds.Sine):
            angle = next(k for k, other in enumerate(columns) if other.name == column.of)
            cosine, sine = (2 * values[..., k] - 1 for k in (angle, place))
            values[..., angle] = np.mod(np.arctan2(sine, cosine) / (2 * np.pi), 1.0)
    return values[..., : len(of_tables(columns))]


def cells_of(points: Floats, columns: Sequence[Column]) -> tuple[Ints, Ints]:
    """Cells (..., e) of each column, and how many it has, (e,).

    A category has its levels; a number CELLS equal parts of its range, and one more for missing.
    """
    known, values = of_tables(columns), table_values(points, columns)
    within = np.clip(np.floor(values * CELLS), 0, CELLS - 1)
    cells = np.where([column.levels > 0 for column in known], values, within)
    sizes = [column.levels or CELLS + column.missing for column in known]
    return np.where(np.isnan(values), CELLS, cells).astype(np.int64), np.array(sizes)


def one_hot(points: Floats, columns: Sequence[Column]) -> Floats:
    """Points (..., p) among which two levels of a category are at distance 1, whichever they are:
    0 or 1 for two levels, else C coordinates of which one is 1 / sqrt(2)."""
    axes, parts = Axes.of(columns), []
    for place, count in enumerate(axes.levels):
        own = points[..., [place]] if count == 0 else axes.level_of(points)[..., [place]]
        parts.append((own == np.arange(count)) / np.sqrt(2) if count > 2 else own)
    return np.concatenate(parts, axis=-1).astype(np.float64)


# Single columns -------------------------------------------------------------------------------


@cloud_metric("column_error", "columns, mean error", mixed=True)
def mean_column_error(synthetic: Any, real: Any, *, columns: Meaning = None) -> float:
    """Difference of shares of values, and of numbers' distributions: mean of `column_errors`."""
    return float(column_errors(synthetic, real, columns=columns).mean())


def column_errors(synthetic: Any, real: Any, *, columns: Meaning = None) -> Floats:
    """(e,) of points (n, d), (k, d) in the unit cube, each from 0 to 1.

    A category: total variation of the shares of its levels, sum_c |p_c - q_c| / 2, missing among
    them. A number: Kolmogorov and Smirnov's sup_y |F(y) - G(y)| of those who have it. One less
    these are TVComplement and KSComplement of SDMetrics. An angle: Kuiper's sup (F - G) +
    sup (G - F), which does not depend on where the circle begins.
    """
    known, ours, theirs = _sides(synthetic, real, columns)
    errors = []
    for column, a, b in zip(known, ours.T, theirs.T, strict=True):
        if isinstance(column, Category):
            errors.append(total_variation(a.astype(np.int64), b.astype(np.int64), column.levels))
            continue
        a, b = np.sort(a[~np.isnan(a)]), np.sort(b[~np.isnan(b)])
        if len(a) == 0 or len(b) == 0:  # nobody has it, or one side alone
            errors.append(float(len(a) != len(b)))
            continue
        f, g = (np.searchsorted(v, np.concatenate([a, b]), "right") / len(v) for v in (a, b))
        above, below = float((f - g).max()), float((g - f).max())
        errors.append(above + below if isinstance(column, Angle) else max(above, below))
    return np.array(errors)


def missing_errors(synthetic: Any, real: Any, *, columns: Meaning = None) -> Floats:
    """(e,) difference of the shares of people who lack a column; nan where nobody may."""
    known, *sides = _sides(synthetic, real, columns)
    last = np.array([column.levels - 1 for column in known])  # -1 of numbers
    ours, theirs = ((np.isnan(side) | (side == last)).mean(axis=0) for side in sides)
    return np.where([column.missing for column in known], np.abs(ours - theirs), np.nan)


def _sides(a: Any, b: Any, columns: Meaning) -> tuple[tuple[Column, ...], Floats, Floats]:
    """The columns of a table, and their `table_values` (n, e), (k, e) for two clouds."""
    x, y = pair(a, b)
    known = known_columns(columns, x.shape[1])
    return of_tables(known), table_values(x, known), table_values(y, known)


def total_variation(a: Any, b: Any, size: int) -> float:
    """sum_c |p_c - q_c| / 2 of the shares of cells 0 .. size - 1 among a (n,) and b (k,)."""
    p, q = (np.bincount(cells, minlength=size) / len(cells) for cells in (a, b))
    return float(np.abs(p - q).sum() / 2)


# Pairs ----------------------------------------------------------------------------------------


@cloud_metric("pair_tv", "total variation of pairs", mixed=True)
def pair_tv(synthetic: Any, real: Any, *, columns: Meaning = None) -> float:
    """Difference of the tables of two columns: mean of `pair_errors`; nan where there is one."""
    errors = pair_errors(synthetic, real, columns=columns)
    return float(errors.mean()) if len(errors) else float("nan")


@cloud_metric("correlation_error", "correlations of numbers, mean error", mixed=True)
def correlation_error(synthetic: Any, real: Any, *, columns: Meaning = None) -> float:
    """Difference of correlations: mean of `correlation_errors`; nan without pairs of numbers."""
    errors = correlation_errors(synthetic, real, columns=columns)
    known = errors[np.isfinite(errors)]
    return float(known.mean()) if len(known) else float("nan")


def pair_errors(synthetic: Any, real: Any, *, columns: Meaning = None) -> Floats:
    """(P,) total variation of the tables of two columns, from 0 to 1, of `cells_of` points (n, d),
    (k, d). One less it is ContingencySimilarity of SDMetrics, but for the cells of numbers."""
    x, y = pair(synthetic, real)
    known = known_columns(columns, x.shape[1])
    (a, sizes), (b, _) = cells_of(x, known), cells_of(y, known)
    errors = []
    for i, j in combinations(range(len(sizes)), 2):
        ours, theirs = (side[:, i] * sizes[j] + side[:, j] for side in (a, b))
        errors.append(total_variation(ours, theirs, int(sizes[i] * sizes[j])))
    return np.array(errors)


def correlation_errors(synthetic: Any, real: Any, *, columns: Meaning = None) -> Floats:
    """(P,) |r - s| of Pearson's correlations of two numbers, from 0 to 2; nan for other pairs.

    Over the people who have both; 0 by definition where they do not differ. One less half of it is
    CorrelationSimilarity of SDMetrics.
    """
    known, *sides = _sides(synthetic, real, columns)
    errors = []
    for i, j in combinations(range(len(known)), 2):
        if any(not isinstance(known[k], Number) or isinstance(known[k], Angle) for k in (i, j)):
            errors.append(np.nan)  # angles have no direction to rise in
            continue
        there = (side[np.isfinite(side[:, [i, j]]).all(axis=1)] for side in sides)
        r, s = (float(correlation(both[:, [i]], both[:, [j]])[0]) for both in there)
        errors.append(abs(r - s))
    return np.array(errors)


def correlation(a: Floats, b: Floats) -> Floats:
    """(d,) Pearson's of values (n, d) of the same people; 0 where they do not differ."""
    if len(a) < 2:
        return np.zeros(a.shape[1])
    x, y = a - a.mean(axis=0), b - b.mean(axis=0)
    differ = np.ones(a.shape[1], dtype=bool)
    for values, off in ((a, x), (b, y)):
        differ &= np.sqrt((off**2).mean(axis=0)) > _SAME * np.abs(values).max(axis=0)
    spread = np.sqrt((x**2).mean(axis=0) * (y**2).mean(axis=0))
    found = (x * y).mean(axis=0) / np.where(differ, spread, 1.0)
    return np.where(differ, np.clip(found, -1.0, 1.0), 0.0)


@dataclass(frozen=True, eq=False)
class ColumnScores:
    """All columns, and all pairs, the worst first, as pandas frames; means over times.

    columns: name, kind, error (`column_errors`), floor (of other real people), worst and worst_time
    (the largest error, and when), missing (error of that share, nan if none may), similarity
    (1 - error: TVComplement or KSComplement of SDMetrics).
    pairs: first, second, total_variation (of their table), floor, correlation (error, nan but for
    two numbers), similarity (ContingencySimilarity, or of two numbers CorrelationSimilarity).
    """

    columns: Any
    pairs: Any

    @property
    def summary(self) -> dict[str, Any]:
        """Means over columns and over pairs, and the worst pair; nan and None without pairs."""
        worst = self.pairs[["first", "second", "total_variation"]].values.tolist()
        return {
            "column_similarity": float(self.columns.similarity.mean()),
            "pair_similarity": float(self.pairs.similarity.mean()),
            "pair_total_variation": float(self.pairs.total_variation.mean()),
            "worst_pair": worst[0] if worst else None,
        }

    def to_dict(self) -> dict[str, Any]:
        columns, pairs = (frame.to_dict("records") for frame in (self.columns, self.pairs))
        return {"summary": self.summary, "columns": columns, "pairs": pairs}

    def __str__(self) -> str:
        def cell(value: Any) -> str:
            if isinstance(value, str):
                return value if len(value) <= _WIDEST else f"{value[: _WIDEST - 1]}…"
            return "-" if np.isnan(value) else f"{value:.3f}"

        def lines(heads: tuple[str, ...], frame: Any, right: tuple[int, ...]) -> str:
            rows = [list(map(cell, row[: len(heads)])) for row in frame.values.tolist()]
            return "\n".join(aligned([heads, *rows], right=right))

        heads: tuple[str, ...] = ("column", "kind", "error", "floor", "worst", "at", "missing")
        parts = [lines(heads, self.columns, (2, 3, 4, 6))]
        if len(self.pairs):
            named = "worst pairs" if len(self.pairs) > _SHOWN else "pairs"
            heads = (named, "", "total variation", "floor", "correlation error")
            parts.append(lines(heads, self.pairs[:_SHOWN], (2, 3, 4)))
        return "\n\n".join(parts)


def column_scores(
    synthetic: Sequence[Floats],
    real: Sequence[Floats],
    fresh: Sequence[Floats],
    columns: Sequence[Column],
    times: Sequence[str],
) -> ColumnScores:
    """Of T clouds (n, d) of points in the unit cube, against T of real people.

    fresh: T clouds of other real people, for the floor; as many of both are compared.
    times: (T,) what they are called.
    """
    import pandas as pd

    sizes = [min(len(x), len(z)) for x, z in zip(synthetic, fresh, strict=True)]

    def at_times(errors: Callable[..., Floats], people: Sequence[Floats]) -> Floats:
        """(T, ...)"""
        sides = zip(people, real, sizes, strict=True)
        return np.array([errors(x[:size], y, columns=columns) for x, y, size in sides])

    known, single = of_tables(columns), at_times(column_errors, synthetic)
    both = list(combinations((column.name for column in known), 2))
    rows = pd.DataFrame({
        "name": [column.name for column in known],
        "kind": [column.kind for column in known],
        "error": single.mean(axis=0),
        "floor": at_times(column_errors, fresh).mean(axis=0),
        "worst": single.max(axis=0),
        "worst_time": [times[k] for k in single.argmax(axis=0)],
        "missing": at_times(missing_errors, synthetic).mean(axis=0),
    })  # fmt: skip
    pairs = pd.DataFrame({
        "first": [first for first, _ in both],
        "second": [second for _, second in both],
        "total_variation": at_times(pair_errors, synthetic).mean(axis=0),
        "floor": at_times(pair_errors, fresh).mean(axis=0),
        "correlation": at_times(correlation_errors, synthetic).mean(axis=0),
    })  # fmt: skip
    rows["similarity"] = 1 - rows.error
    pairs["similarity"] = 1 - (pairs.correlation / 2).fillna(pairs.total_variation)
    ranked = pairs.sort_values("total_variation", ascending=False, kind="stable", ignore_index=True)
    return ColumnScores(rows, ranked)
