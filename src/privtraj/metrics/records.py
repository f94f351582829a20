"""Raw records for an evaluation, which is never a release, grouped by a model's times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError
from privtraj.base.space import nearest_bin
from privtraj.data import arrow, sql
from privtraj.data.dialect import DATE, NUMBER, TEXT, CellKind, Dialect, UnreadableCells
from privtraj.data.records import FaultCount, check_infinite, values_of
from privtraj.metrics.clouds import halves
from privtraj.metrics.encoding import unit_points

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel


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
        mine = np.isin(self.people, codes[some])
        return self._keep(mine), self._keep(~mine)

    def paths(self, times: Ints) -> Floats:
        """(k, len(times), d) of the people who have a record at each of these times.

        Of several records at a time the first in the table counts.
        """
        rows = self._rows()[:, times]
        return self.points[rows[(rows >= 0).all(axis=1)]]

    def seen(self) -> NDArray[np.bool_]:
        """(people, T) who has a record when."""
        return self._rows() >= 0

    def _rows(self) -> Ints:
        """(people, T) the first record of each person at each time, -1 where there is none."""
        codes, who = np.unique(self.people, return_inverse=True)
        rows = np.full((len(codes), self.times), -1, dtype=np.int64)
        backwards = np.arange(len(self.bins))[::-1]  # what is written last stays: the first record
        rows[who[backwards], self.bins[backwards]] = backwards
        return rows

    def _keep(self, mine: NDArray[np.bool_]) -> Records:
        kept = (self.bins[mine], self.moments[mine], self.points[mine], self.people[mine])
        return Records(*kept, self.names, self.times, 0)


def read_records(
    source: Any, model: TrajectoryModel, person: str | None = None, csv: Any = None
) -> Records:
    """The records of a table, file or dictionary of arrays (see `sql.read_columns`).

    csv: how a CSV file is written, as `Snapshots.from_table` has it.

    As in a fit, values outside the box and times outside the range are clamped. Incomplete records
    are left out, but for what the model's columns say may be missing.
    """
    columns = [column for column in model.columns if not column.of]
    names, time = [column.name for column in columns], model.time_name
    if person is not None and person in (time, *names):
        raise InputError(f"column '{person}' is the person and also time or feature: use another")
    kinds = {
        time: DATE if model.datetime else NUMBER,
        **{column.name: CellKind.of(column) for column in columns},
        **({} if person is None else {person: TEXT}),
    }
    table = _read(source, kinds, Dialect.of(csv), model)
    moments, datetime = arrow.moments(table.column(time), time)
    if len(moments):
        _check_times(datetime, model)
    points = np.column_stack([values_of(table.column(each.name), each) for each in columns])
    cells = np.column_stack([moments, points])
    check_infinite(FaultCount.of(np.isinf(cells), (time, *names)))
    codes, ids = np.arange(len(cells)), ()
    if person is not None:
        codes, dictionary = arrow.identities(table.column(person), person)
        ids = tuple(dictionary.to_pylist())
    needed = [True, *(not column.missing for column in columns)]
    whole = ~np.isnan(cells[:, needed]).any(axis=1) & (codes >= 0)
    return Records(
        nearest_bin(moments[whole], model.numeric_times).astype(np.int64),
        np.clip(moments[whole], model.knots[0], model.knots[-1]),
        unit_points(points[whole], model.columns),
        codes[whole],
        ids,
        len(model.numeric_times),
        int((~whole).sum()),
    )


def _read(source: Any, kinds: dict[str, CellKind], dialect: Dialect, model: TrajectoryModel) -> Any:
    try:
        return sql.read_columns(source, list(kinds), kinds, dialect)
    except UnreadableCells as error:
        unread = error
    if unread.name == model.time_name and unread.reads_as is not None:
        _check_times(unread.reads_as == DATE, model)
    raise unread


def _check_times(datetime: bool, model: TrajectoryModel) -> None:
    if datetime != model.datetime:
        kind = "dates" if model.datetime else "numbers"
        raise InputError(
            f"the time column '{model.time_name}' must hold {kind}, as the model's times are"
        )


def shared_people(a: Records, b: Records) -> int:
    """How many people have records in both."""
    mine, theirs = ({r.names[i] for i in np.unique(r.people)} if r.names else set() for r in (a, b))
    return len(mine & theirs)
