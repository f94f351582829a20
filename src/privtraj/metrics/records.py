"""Raw records for an evaluation, which is never a release: read, and looked through for copies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError
from privtraj.base.space import TimeAxis, nearest_bin
from privtraj.data import sql
from privtraj.data.dialect import DATE, Dialect, UnreadableCells
from privtraj.data.public import PublicInputs
from privtraj.data.records import FaultCount, check
from privtraj.data.records import Records as TableRecords
from privtraj.metrics.columns import unit_points
from privtraj.metrics.registry import each_time, halves, pair

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

_CLOSE = 0.05  # the quantile of the hold-out's distances that counts as close


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
    values = read.values
    cells = np.column_stack([read.times, values])
    check("infinite", FaultCount.of(np.isinf(cells), names))
    codes, ids = read.people or (np.arange(len(cells)), None)
    needed = [True, *(not column.missing for column in public.asked)]
    whole = ~np.isnan(cells[:, needed]).any(axis=1) & (codes >= 0)
    return Records(
        nearest_bin(read.times[whole], model.numeric_times).astype(np.int64),
        np.clip(read.times[whole], *axis.range),
        unit_points(values[whole], model.columns),
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
