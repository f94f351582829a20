"""Scores of every column and of every pair of columns, as users of SDMetrics expect them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import aligned
from privtraj.columns.kinds import Column
from privtraj.metrics.column_pairs import correlation_errors, pair_errors, pairs_of
from privtraj.metrics.encoding import of_table
from privtraj.metrics.single_columns import column_errors, missing_errors

_SHOWN = 12  # worst pairs in a text
_WIDEST = 30  # letters of a name in a text


@dataclass(frozen=True)
class ColumnScore:
    """Of one column: errors as in `column_errors`, means over times, and at the worst time.

    floor: of other real people.  missing: error of the share that is missing, None if none may.
    """

    name: str
    kind: str
    error: float
    floor: float
    worst: float
    worst_time: str
    missing: float | None

    @property
    def similarity(self) -> float:
        """1 - error: TVComplement or KSComplement."""
        return 1 - self.error


@dataclass(frozen=True)
class PairScore:
    """Of two columns: total variation of their table, and error of the correlation of numbers,
    means over times.  floor: of the total variation, for other real people."""

    first: str
    second: str
    total_variation: float
    floor: float
    correlation: float | None

    @property
    def similarity(self) -> float:
        """1 - error: ContingencySimilarity, and of two numbers CorrelationSimilarity."""
        return 1 - (self.total_variation if self.correlation is None else self.correlation / 2)


@dataclass(frozen=True)
class ColumnScores:
    """All columns, and all pairs, the worst first."""

    columns: tuple[ColumnScore, ...]
    pairs: tuple[PairScore, ...]

    @property
    def summary(self) -> dict[str, Any]:
        """Means over columns and over pairs, and the worst pair; nan and None without pairs."""
        worst = self.pairs[0] if self.pairs else None
        return {
            "column_similarity": _mean(score.similarity for score in self.columns),
            "pair_similarity": _mean(score.similarity for score in self.pairs),
            "pair_total_variation": _mean(score.total_variation for score in self.pairs),
            "worst_pair": worst and [worst.first, worst.second, worst.total_variation],
        }

    def to_dict(self) -> dict[str, Any]:
        columns, pairs = (
            [{**asdict(score), "similarity": score.similarity} for score in scores]
            for scores in (self.columns, self.pairs)
        )
        return {"summary": self.summary, "columns": columns, "pairs": pairs}

    def __str__(self) -> str:
        heads = ("column", "kind", "error", "floor", "worst", "at", "missing")
        rows = [
            (_cut(one.name), one.kind, f"{one.error:.3f}", f"{one.floor:.3f}", f"{one.worst:.3f}",
             one.worst_time, "-" if one.missing is None else f"{one.missing:.3f}")
            for one in self.columns
        ]  # fmt: skip
        parts = ["\n".join(aligned([heads, *rows], right=(2, 3, 4, 6)))]
        if self.pairs:
            shown = self.pairs[:_SHOWN]
            named = "worst pairs" if len(shown) < len(self.pairs) else "pairs"
            pairs = [
                (_cut(one.first), _cut(one.second), f"{one.total_variation:.3f}",
                 f"{one.floor:.3f}",
                 "-" if one.correlation is None else f"{one.correlation:.3f}")
                for one in shown
            ]  # fmt: skip
            above = (named, "", "total variation", "floor", "correlation error")
            parts.append("\n".join(aligned([above, *pairs], right=(2, 3, 4))))
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
    sizes = [min(len(x), len(z)) for x, z in zip(synthetic, fresh, strict=True)]

    def each_time(errors: Callable[..., Floats], people: Sequence[Floats]) -> Floats:
        """(T, ...)"""
        sides = zip(people, real, sizes, strict=True)
        return np.array([errors(x[:size], y, columns=columns) for x, y, size in sides])

    single, floor = (each_time(column_errors, side) for side in (synthetic, fresh))
    absent = each_time(missing_errors, synthetic)
    tables, tables_floor = (each_time(pair_errors, side) for side in (synthetic, fresh))
    between = each_time(correlation_errors, synthetic)
    scores = [
        ColumnScore(
            columns[place].name,
            columns[place].kind,
            float(single[:, k].mean()),
            float(floor[:, k].mean()),
            float(single[:, k].max()),
            times[int(single[:, k].argmax())],
            _or_none(absent[:, k].mean()),
        )
        for k, place in enumerate(of_table(columns))
    ]
    pairs = [
        PairScore(
            columns[i].name,
            columns[j].name,
            float(tables[:, k].mean()),
            float(tables_floor[:, k].mean()),
            _or_none(between[:, k].mean()),
        )
        for k, (i, j) in enumerate(pairs_of(columns))
    ]
    return ColumnScores(tuple(scores), tuple(sorted(pairs, key=lambda one: -one.total_variation)))


def _or_none(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)


def _mean(values: Any) -> float:
    each = list(values)
    return float(np.mean(each)) if each else float("nan")


def _cut(name: str) -> str:
    return name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}…"
