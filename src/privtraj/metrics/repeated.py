"""Repeated records at times of their own: who stays who, without whole paths.

Few people have a record at every time, but many may have two. Every pair of records of a person is
one point of a correlation: of the values, after they were brought to mean 0 and deviation 1 of
their time, as in `persistence`. Pairs are put together by the time between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats, Ints, Mask
from privtraj.base.errors import InputError, aligned
from privtraj.base.space import hat_functions
from privtraj.metrics.clouds import cloud
from privtraj.metrics.records import Records
from privtraj.metrics.table import Score

LEAST_PEOPLE = 20  # with two records, on each side
LEAST_PAIRS = 20  # in a class of lags, on each side
_CLASSES = 4  # of lags, equally full
_KNOTS = 16  # of the mean over time, at most, between which it is linear
_PER_KNOT = 50  # records, at least, so that a knot does not follow single people
_DAY = 86400.0

_Rows = tuple[tuple[float, ...], ...]  # (L, d)


@dataclass(frozen=True)
class Repeated:
    """Correlations (L, d) of a person's values by the time between two records.

    lags: (L,) mean time between them.  model: of synthetic people, who were read when the people of
    the floor were seen.  real: of the reference.  floor: of other real people.  people, pairs: of
    the reference.
    """

    lags: tuple[float, ...]
    features: tuple[str, ...]
    model: _Rows
    real: _Rows
    floor: _Rows
    people: int
    pairs: int
    datetime: bool = False

    @property
    def score(self) -> Score:
        """Largest difference over lags and features; the ceiling is that of no memory at all."""
        real = np.array(self.real)
        value, floor, ceiling = (
            float(np.abs(np.array(side) - real).max())
            for side in (self.model, self.floor, np.zeros_like(real))
        )
        label = "autocorrelation of pairs, largest error"
        return Score("pair_autocorrelation", label, value, floor, ceiling, "lower")

    def to_dict(self) -> dict[str, Any]:
        names = ("lags", "features", "model", "real", "floor", "people", "pairs")
        return {**{name: getattr(self, name) for name in names}, "score": self.score.to_dict()}

    def __str__(self) -> str:
        sides = (self.model, self.real, self.floor)
        heads = ("time between records", "feature", "model", "real", "floor")
        rows = [
            (self._time(lag), name, *(f"{side[i][k]:.2f}" for side in sides))
            for i, lag in enumerate(self.lags)
            for k, name in enumerate(self.features)
        ]
        return "\n".join(aligned([heads, *rows], right=(2, 3, 4)))

    def _time(self, lag: float) -> str:
        return f"{lag / _DAY:.3g} days" if self.datetime else f"{lag:.3g}"


def pair_autocorrelation(moments: Any, points: Any, people: Any, cuts: Sequence[float]) -> Floats:
    """Correlations (L, d) of values at two records of a person, by the time between them.

    moments: (N,) of the records.  points: (N, d).  people: (N,) numbers that say whose they are.
    cuts: (L - 1,) increasing; class i holds times between records from cuts[i - 1], exclusive, to
    cuts[i].  Pairs are 1, 2, 4, 8, .. records of a person apart. nan for a class of fewer than two
    pairs; 0 by definition where people do not differ.
    """
    at, values, who = np.asarray(moments, dtype=np.float64), cloud(points), np.asarray(people)
    if at.shape != who.shape or at.shape != (len(values),):
        raise InputError("give one moment, one point and one person for each record")
    pairs = _pairs(who, at)
    return _by_class(at, values, pairs, _classes(at, pairs, np.asarray(cuts)), len(cuts) + 1)


def compare_repeated(
    drawn: Floats,
    readings: Floats,
    reference: Records,
    fresh: Records,
    features: tuple[str, ...],
    datetime: bool,
) -> Repeated | None:
    """Synthetic people (n, q, d), read at these times (q,), beside both sides of real ones.

    Pairs whose nearest reading is the same are left out, on all sides. None where too few people
    have two records.
    """
    at, first = np.unique(readings, return_index=True)
    real, other = (_Side.of(records, at) for records in (reference, fresh))
    if min(real.people, other.people) < LEAST_PEOPLE:
        return None
    cuts = np.unique(np.quantile(real.lags, np.arange(1, _CLASSES) / _CLASSES))
    classes, others = real.classes(cuts), other.classes(cuts)
    counts = np.bincount(classes, minlength=len(cuts) + 1)
    fewest = np.minimum(counts, np.bincount(others, minlength=len(cuts) + 1))
    kept = np.flatnonzero(fewest >= LEAST_PAIRS)
    if len(kept) == 0:
        return None

    def correlations(moments: Floats, points: Floats, pairs: Ints, kinds: Ints) -> _Rows:
        found = _by_class(moments, points, pairs, kinds, len(cuts) + 1)[kept]
        return tuple(tuple(row) for row in found.tolist())

    stand_in = np.unique(other.codes, return_inverse=True)[1] % len(drawn)
    synthetic = drawn[stand_in, first[other.nearest]]
    return Repeated(
        lags=tuple(float(real.lags[classes == i].mean()) for i in kept),
        features=features,
        model=correlations(at[other.nearest], synthetic, other.pairs, others),
        real=correlations(real.moments, real.points, real.pairs, classes),
        floor=correlations(other.moments, other.points, other.pairs, others),
        people=real.people,
        pairs=int(counts[kept].sum()),
        datetime=datetime,
    )


@dataclass(frozen=True, eq=False)
class _Side:
    """The N records of people who have two or more, and pairs of them.

    moments: (N,).  points: (N, d).  codes: (N,) whose they are.  nearest: (N,) number of the
    nearest reading.  pairs: (P, 2).
    """

    moments: Floats
    points: Floats
    codes: Ints
    nearest: Ints
    pairs: Ints

    @classmethod
    def of(cls, records: Records, readings: Floats) -> _Side:
        nearest = np.searchsorted((readings[1:] + readings[:-1]) / 2, records.moments)
        pairs = _pairs(records.people, records.moments)
        pairs = pairs[nearest[pairs[:, 0]] < nearest[pairs[:, 1]]]
        rows, renumbered = np.unique(pairs, return_inverse=True)
        return cls(
            records.moments[rows],
            records.points[rows],
            records.people[rows],
            nearest[rows].astype(np.int64),
            renumbered.reshape(-1, 2),
        )

    @property
    def people(self) -> int:
        return len(np.unique(self.codes))

    @property
    def lags(self) -> Floats:
        return _lags(self.moments, self.pairs)

    def classes(self, cuts: Floats) -> Ints:
        return _classes(self.moments, self.pairs, cuts)


def _pairs(people: Ints, moments: Floats) -> Ints:
    """Rows (P, 2) of two records of a person, the earlier first, 1, 2, 4, 8, .. records apart."""
    order = np.lexsort((moments, people))
    found, apart = [np.empty((0, 2), dtype=np.int64)], 1
    while apart < len(order):
        before, after = order[:-apart], order[apart:]
        mine: Mask = people[before] == people[after]
        if not mine.any():
            break
        found.append(np.column_stack([before, after])[mine & (moments[before] < moments[after])])
        apart *= 2
    return np.concatenate(found)


def _lags(moments: Floats, pairs: Ints) -> Floats:
    return moments[pairs[:, 1]] - moments[pairs[:, 0]]


def _classes(moments: Floats, pairs: Ints, cuts: Floats) -> Ints:
    """Class (P,) of lags of each pair, 0 to L - 1."""
    return np.searchsorted(cuts, _lags(moments, pairs)).astype(np.int64)


def _by_class(moments: Floats, points: Floats, pairs: Ints, classes: Ints, count: int) -> Floats:
    """Pearson's correlation (L, d) of standardised values over the pairs of each class."""
    if len(pairs) == 0:
        return np.full((count, points.shape[1]), np.nan)
    z = _standardised(moments, points)
    return np.stack([_correlation(z[pairs[classes == i]]) for i in range(count)])


def _correlation(z: Floats) -> Floats:
    """(d,) of pairs (P, 2, d)."""
    if len(z) < 2:
        return np.full(z.shape[2], np.nan)
    off = z - z.mean(axis=0)
    spread = np.sqrt((off**2).mean(axis=0)).prod(axis=0)
    known = spread > 1e-12
    found = off.prod(axis=1).mean(axis=0) / np.where(known, spread, 1.0)
    return np.where(known, np.clip(found, -1.0, 1.0), 0.0)


def _standardised(moments: Floats, points: Floats) -> Floats:
    """(points - mean(t)) / deviation(t), (N, d): the mean by least squares, linear between knots;
    the variance from means of squares weighted by the same hat functions."""
    distinct = np.unique(moments)
    most = int(np.clip(len(moments) // _PER_KNOT, 1, _KNOTS))
    shares = np.linspace(0, 1, most + 1)
    knots = distinct if len(distinct) <= most + 1 else np.unique(np.quantile(moments, shares))
    hats = hat_functions(moments, knots)
    off = points - hats @ np.linalg.lstsq(hats, points, rcond=None)[0]
    variance = hats @ (hats.T @ off**2 / np.maximum(hats.sum(axis=0), 1e-12)[:, None])
    rounding = (1e-12 * np.abs(points).max(axis=0)) ** 2
    return np.where(variance > rounding, off / np.sqrt(np.maximum(variance, 1e-300)), 0.0)
