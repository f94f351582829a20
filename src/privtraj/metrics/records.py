"""Raw records for an evaluation, which is never a release: read, looked through for copies, and
paired where a person has several.

Few people have a record at every time, but many may have two. Every pair of records of a person is
one point of a correlation: of the values, after they were brought to mean 0 and deviation 1 of
their time. Pairs are put together by the time between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.base.arrays import Floats, Ints, Mask
from privtraj.base.errors import InputError, aligned
from privtraj.base.space import TimeAxis, hat_functions, nearest_bin
from privtraj.data import sql
from privtraj.data.dialect import DATE, Dialect, UnreadableCells
from privtraj.data.public import PublicInputs
from privtraj.data.records import FaultCount, check
from privtraj.data.records import Records as TableRecords
from privtraj.metrics.columns import correlation, unit_points
from privtraj.metrics.distances import as_points
from privtraj.metrics.registry import cloud, each_time, halves, pair, path_pair
from privtraj.metrics.table import Score

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

_CLOSE = 0.05  # the quantile of the hold-out's distances that counts as close

# Of repeated records; set by hand
_LEAST_PEOPLE = 20  # with two records, on each side
_LEAST_PAIRS = 20  # in a class of lags, on each side
_CLASSES = 4  # of lags, equally full
_KNOTS = 16  # of the mean over time, at most, between which it is linear
_PER_KNOT = 50  # records, at least, so that a knot does not follow single people
_DAY = 86400.0


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """Records of people in a model's box, each at its own time.

    bins: (n,) the nearest of the model's times, 0 to T - 1.  moments: (n,) their own, within the
    model's range.  points: (n, d) in the unit cube.  people: (n,) whose record it is,
    numbered from 0.  names: the identifier of each, empty where every record is a person.
    incomplete: records that were left out because something is missing in them.
    """

    bins: Ints
    moments: Floats
    points: Floats
    people: Ints
    names: tuple[Any, ...]
    times: int
    incomplete: int

    @property
    def n_people(self) -> int:
        return len(np.unique(self.people))

    def clouds(self) -> list[Floats]:
        """T clouds (n_i, d), some of them perhaps empty."""
        return [self.points[self.bins == i] for i in range(self.times)]

    def counts(self) -> Ints:
        """(T,) records per time."""
        return np.bincount(self.bins, minlength=self.times)

    def halves(self, rng: np.random.Generator) -> tuple[Records, Records]:
        """Two random halves of the people, each with all of their records."""
        codes = np.unique(self.people)
        some, _ = halves(len(codes), rng)
        mine, names = np.isin(self.people, codes[some]), ("bins", "moments", "points", "people")
        first, second = (
            replace(self, incomplete=0, **{name: getattr(self, name)[kept] for name in names})
            for kept in (mine, ~mine)
        )
        return first, second

    def paths(self, times: Ints) -> Floats:
        """(k, len(times), d) of the people who have a record at each of these times.

        Of several records at a time the first in the table counts.
        """
        rows = self.rows()[:, times]
        return self.points[rows[(rows >= 0).all(axis=1)]]

    def rows(self) -> Ints:
        """(people, T) the first record of each person at each time, -1 where there is none."""
        codes, who = np.unique(self.people, return_inverse=True)
        rows = np.full((len(codes), self.times), -1, dtype=np.int64)
        backwards = np.arange(len(self.bins))[::-1]  # what is written last stays: the first record
        rows[who[backwards], self.bins[backwards]] = backwards
        return rows


def read_records(
    source: Any, model: TrajectoryModel, person: str | None = None, csv: Any = None
) -> Records:
    """The records of a table, file or dictionary of arrays (see `sql.read_columns`).

    csv: how a CSV file is written, as `Snapshots.from_table` has it.  As in a fit, values outside
    the box and times outside the range are clamped. Incomplete records are left out, but for what
    the model's columns say may be missing.
    """
    axis = TimeAxis(model.numeric_times, model.datetime, model.knots[[0, -1]])
    public = PublicInputs(model.columns, axis, model.time_name, person, dialect=Dialect.of(csv))
    names = (model.time_name, *(column.name for column in public.asked))
    if person in names:
        raise InputError(f"column '{person}' is the person and also time or feature: use another")

    def check_times(datetime: bool) -> None:
        if datetime != model.datetime:
            kind = "dates" if model.datetime else "numbers"
            raise InputError(
                f"the time column '{model.time_name}' must hold {kind}, as the model's times are"
            )

    try:
        kinds = public.cell_kinds
        table = sql.read_columns(source, list(kinds), kinds, public.dialect)
    except UnreadableCells as error:
        if error.name == model.time_name and error.reads_as is not None:
            check_times(error.reads_as == DATE)
        raise
    read = TableRecords.of_table(table, public)
    if len(read.times):
        check_times(read.datetime)
    cells = np.column_stack([read.times, read.points])
    check("infinite", FaultCount.of(np.isinf(cells), names))
    codes, ids = read.people or (np.arange(len(cells)), None)
    needed = [True, *(not column.missing for column in public.asked)]
    whole = ~np.isnan(cells[:, needed]).any(axis=1) & (codes >= 0)
    return Records(
        nearest_bin(read.times[whole], model.numeric_times).astype(np.int64),
        np.clip(read.times[whole], *axis.range),
        unit_points(read.points[whole], model.columns),
        codes[whole],
        () if ids is None else tuple(ids.to_pylist()),
        len(model.numeric_times),
        int((~whole).sum()),
    )


def shared_people(a: Records, b: Records) -> int:
    """How many people have records in both."""
    mine, theirs = ({r.names[i] for i in np.unique(r.people)} if r.names else set() for r in (a, b))
    return len(mine & theirs)


# Copies ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Memorisation:
    """Distances to the nearest training record, of synthetic people and of a hold-out.

    ratio: median of the synthetic over median of the hold-out, below 1 when records come back.
    share_close: share of synthetic people within `close`, the 5 % quantile of the hold-out's
    distances.  share_expected: the same of the hold-out itself, 0.05 or a little more where records
    repeat. A larger share means copies; it sees a few among many, which the ratio does not.
    """

    ratio: float
    share_close: float
    share_expected: float
    median_synthetic: float
    median_holdout: float
    close: float


def nearest_distances(points: Any, training: Any) -> Floats:
    """(n,) distance of each point (n, d) to the nearest of training (k, d)."""
    from scipy.spatial import KDTree

    x, y = pair(points, training)
    return KDTree(y).query(x)[0]


def memorisation(synthetic: Any, training: Any, holdout: Any) -> Memorisation:
    """Compare T clouds (n, d) of synthetic people with T of training records, and T of a hold-out,
    at the same times, all distances pooled: a check for copies, and no privacy guarantee."""
    ours, theirs = (
        np.concatenate([nearest_distances(x, y) for x, y in each_time(people, training)])
        for people in (synthetic, holdout)
    )
    median, other = float(np.median(ours)), float(np.median(theirs))
    close = float(np.quantile(theirs, _CLOSE))
    return Memorisation(
        ratio=median / other if other > 0 else float("nan"),
        share_close=float(np.mean(ours <= close)),
        share_expected=float(np.mean(theirs <= close)),
        median_synthetic=median,
        median_holdout=other,
        close=close,
    )


def path_memorisation(synthetic: Any, training: Any, holdout: Any) -> Memorisation:
    """`memorisation` of whole paths (n, T, d): root mean square distance over times."""
    x, y = path_pair(synthetic, training)
    z, y = path_pair(holdout, y)
    return memorisation([as_points(x)], [as_points(y)], [as_points(z)])


@dataclass(frozen=True, eq=False)
class Repeated:
    """Correlations (L, d) of a person's values by the time between two records.

    lags: (L,) mean time between them.  model: of synthetic people, who were read when the people of
    the floor were seen.  real: of the reference.  floor: of other real people.  people, pairs: of
    the reference.
    """

    lags: tuple[float, ...]
    features: tuple[str, ...]
    model: Floats
    real: Floats
    floor: Floats
    people: int
    pairs: int
    datetime: bool = False

    @property
    def score(self) -> Score:
        """Largest difference over lags and features; the ceiling is that of no memory at all."""
        sides = (self.model, self.floor, np.zeros_like(self.real))
        value, floor, ceiling = (float(np.abs(side - self.real).max()) for side in sides)
        label = "autocorrelation of pairs, largest error"
        words = "does a value last as long as for real people, from record to record"
        return Score("pair_autocorrelation", label, value, floor, ceiling, "lower", (), words)

    def to_dict(self) -> dict[str, Any]:
        sides = {name: getattr(self, name).tolist() for name in ("model", "real", "floor")}
        names = ("lags", "features", "people", "pairs", "score")
        return {**{name: getattr(self, name) for name in names}, **sides}

    def __str__(self) -> str:
        heads = ("time between records", "feature", "model", "real", "floor")
        rows = [
            (
                f"{lag / _DAY:.3g} days" if self.datetime else f"{lag:.3g}",
                name,
                *(f"{side[i, k]:.2f}" for side in (self.model, self.real, self.floor)),
            )
            for i, lag in enumerate(self.lags)
            for k, name in enumerate(self.features)
        ]
        return "\n".join(aligned([heads, *rows], right=(2, 3, 4)))


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
    lags = at[pairs[:, 1]] - at[pairs[:, 0]]
    return _by_class(at, values, pairs, np.searchsorted(cuts, lags), len(cuts) + 1)


def compare_repeated(
    drawn: Floats,
    readings: Floats,
    sides: Sequence[Records],
    features: Sequence[str],
    datetime: bool,
) -> Repeated | None:
    """Synthetic people (n, q, d), read at these times (q,), beside reference and fresh people.

    Pairs whose nearest reading is the same are left out, on all sides. None where too few people
    have two records.
    """
    at, first = np.unique(readings, return_index=True)
    near, pairs, lags = [], [], []
    for side in sides:
        near.append(np.searchsorted((at[1:] + at[:-1]) / 2, side.moments))
        found = _pairs(side.people, side.moments)
        pairs.append(found[near[-1][found[:, 0]] < near[-1][found[:, 1]]])
        lags.append(np.diff(side.moments[pairs[-1]], axis=1)[:, 0])
        if len(np.unique(side.people[pairs[-1]])) < _LEAST_PEOPLE:
            return None
    reference, fresh = sides
    cuts = np.unique(np.quantile(lags[0], np.arange(1, _CLASSES) / _CLASSES))
    count = len(cuts) + 1
    classes, others = (np.searchsorted(cuts, each) for each in lags)
    counts, fresh_counts = (np.bincount(each, minlength=count) for each in (classes, others))
    kept = np.flatnonzero(np.minimum(counts, fresh_counts) >= _LEAST_PAIRS)
    if len(kept) == 0:
        return None

    def correlations(moments: Floats, points: Floats, which: Ints, kinds: Ints) -> Floats:
        rows, numbered = np.unique(which, return_inverse=True)  # records of people with several
        return _by_class(moments[rows], points[rows], numbered.reshape(-1, 2), kinds, count)[kept]

    several = np.unique(fresh.people[pairs[1]])
    stand_in = np.searchsorted(several, fresh.people) % len(drawn)
    synthetic = drawn[stand_in, first[near[1]]]
    return Repeated(
        lags=tuple(float(lags[0][classes == i].mean()) for i in kept),
        features=tuple(features),
        model=correlations(at[near[1]], synthetic, pairs[1], others),
        real=correlations(reference.moments, reference.points, pairs[0], classes),
        floor=correlations(fresh.moments, fresh.points, pairs[1], others),
        people=len(np.unique(reference.people[pairs[0]])),
        pairs=int(counts[kept].sum()),
        datetime=datetime,
    )


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


def _by_class(moments: Floats, points: Floats, pairs: Ints, classes: Ints, count: int) -> Floats:
    """Pearson's correlation (L, d) over the pairs of each class of (points - mean(t)) /
    deviation(t): the mean by least squares, linear between knots; the variance from means of
    squares weighted by the same hat functions."""
    if len(pairs) == 0:
        return np.full((count, points.shape[1]), np.nan)
    distinct = np.unique(moments)
    most = int(np.clip(len(moments) // _PER_KNOT, 1, _KNOTS))
    shares = np.linspace(0, 1, most + 1)
    knots = distinct if len(distinct) <= most + 1 else np.unique(np.quantile(moments, shares))
    hats = hat_functions(moments, knots)
    off = points - hats @ np.linalg.lstsq(hats, points, rcond=None)[0]
    variance = hats @ (hats.T @ off**2 / np.maximum(hats.sum(axis=0), 1e-12)[:, None])
    rounding = (1e-12 * np.abs(points).max(axis=0)) ** 2
    z = np.where(variance > rounding, off / np.sqrt(np.maximum(variance, 1e-300)), 0.0)
    rows = []
    for i in range(count):
        mine = pairs[classes == i]
        few = np.full(points.shape[1], np.nan)
        rows.append(few if len(mine) < 2 else correlation(z[mine[:, 0]], z[mine[:, 1]]))
    return np.stack(rows)
