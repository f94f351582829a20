"""Snapshots: time-stamped records of people, inside a public box, each at a time of its own.

One record per person, or up to a public number of them.

This is where a table becomes what the guard holds. The privacy proof relies on one property of how
rows are made, by `records` in memory and by `sql_rows` in a database: what a person contributes, y
clamped to the box and its time, is a function of that person's own records and of public inputs
(bounds, time range, bins, options) alone. Nothing is measured on the data, which is why bounds and
time range are required and never inferred.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, frozen
from privtraj.base.errors import Arg, InputError
from privtraj.base.space import TimeAxis, as_user_times, written_times
from privtraj.columns.kinds import Axes, Column, of_tables
from privtraj.data import sql, tables
from privtraj.data.arrow import to_column
from privtraj.data.dialect import DATE, UnreadableCells
from privtraj.data.public import PublicInputs, declaring
from privtraj.data.records import (
    RangeCounts,
    Records,
    cells_of,
    check_same_kind,
    moments_of,
    rows_of,
)
from privtraj.domain.domain import Domain, Plot
from privtraj.privacy.certificate import (
    BY_PERSON,
    CHECKED,
    COMPARED,
    DOMAIN,
    EVERY_ROW,
    MOST_RECORDS,
    SHARED_BINS,
    STATED,
)
from privtraj.privacy.events import Person
from privtraj.privacy.guard import MemoryRows, PublicShape, Rows, WithPast

G = TypeVar("G")  # a kind of guard
QUOTED = "line breaks inside of quoted cells are meant, and every quotation mark is closed"
ROW_BY_ROW = "each row of the query is computed from one row, which is one person's"


@dataclass(frozen=True, eq=False, repr=False)
class Snapshots:
    """Validated and bounded records, each at its own time; `from_table` or `from_arrays` make them.

    axis: public times of interest and range of time; seconds since 1970-01-01 UTC when `datetime`.
    columns: d features, each with its public domain; a number that may be missing has a flag, too.
    time_name: name of the time column.
    records_per_person: the most records any person has here, all of them in different bins unless
    they may be `together`.
    domain: public, where people can be at all; it decides nothing about records.
    stated: what the guarantee takes on the steward's word, for the certificate.
    checked: what was seen to be true of the records before anything is released.
    zone: {column: time zone} of those whose type has one.
    features: d names.  bounds: (d, 2) low and high of each, in data units.  axes: which of them are
    numbers, and which categories.  shape: what a guard has to know of the records.

    All of these are public. `_rows`, the records themselves, are for the guard alone; `_digest`
    lets a ledger on disk recognise them, whatever the order of rows, the bins or the bounds; and
    `range_counts`, how many lie outside of what is declared, is for their steward alone.
    """

    axis: TimeAxis
    columns: tuple[Column, ...]
    time_name: str
    _rows: Rows = field(repr=False)
    records_per_person: int = 1
    together: bool = False
    stated: tuple[str, ...] = ()
    domain: Domain | None = None
    checked: tuple[str, ...] = ()
    zone: Mapping[str, str] = field(default_factory=dict)
    range_counts: RangeCounts | None = field(default=None, repr=False)
    features: tuple[str, ...] = field(init=False)
    bounds: Floats = field(init=False)
    axes: Axes = field(init=False)
    shape: PublicShape = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(column.name for column in self.columns))
        bounds = frozen(np.array([column.domain for column in self.columns]))
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "axes", Axes.of(self.columns))
        person = Person(self.records_per_person, self.together)
        object.__setattr__(self, "shape", PublicShape(self.axis.bins, self.axes, person))

    @classmethod
    @declaring
    def from_table(
        cls,
        source: Any,
        *,
        query: str | None = None,
        row_by_row: bool = False,
        **declared: Any,
    ) -> Snapshots:
        """Snapshots from a file, a table or a database.

        source: what `data.tables.read_columns` reads into memory, or records that stay where they
            are (`pip install 'privtraj[sql]'`): an Ibis table; a connection string such as
            "postgresql://host/database" with `query`; a folder of CSV or Parquet files or a pattern
            such as "visits/*.parquet"; a CSV or Parquet file of more than 512 MB. They are checked
            and counted by the database that holds them, and must not change before the fit is done.
            They are read into memory after all if some of a person's records must be chosen.
        query: a SELECT, or the name of a table, for a connection string. It must compute each row
            from one row of one table, as must the expression of an Ibis table: windows, aggregates,
            joins, LIMIT, random() and the like are refused (`data.row_local`).
        row_by_row: your statement that each row is computed from one row all the same, for a query
            that cannot be read so. Nothing checks it; the certificate says that you stated it.
        csv: how a CSV file is written, where it is not plain (comma, decimal point, 2024-01-31,
            UTF-8): {"delimiter": ";", "encoding": "windows-1252", "decimal": ",", "thousands": ".",
            "dates": "DD.MM.YYYY", "missing": ["k.A."], "unreadable": "missing"}, any of them. It is
            never found by looking at records (`data.dialect`); `privtraj init` suggests it.
        time: column of numbers, dates or timestamps. Names of columns may leave out the unit that
            they have in the table: Weight is "Weight [kg]".
        features: columns; by default the keys of `bounds`, then of `columns`, in their order.
        person: column that says whose record it is. Without it every row is taken to be a
            different person, and the guarantee holds only if that is true.

        The other arguments are those of `from_arrays`.
        """
        public = PublicInputs.declared(**declared)
        rows, counted, schema = _rows_of_source(source, query, public, row_by_row)
        stated = (ROW_BY_ROW,) if row_by_row else ()
        if public.dialect.newlines == "quoted":
            stated = (*stated, QUOTED)
        zone = {x.name: str(x.type.tz) for x in schema if getattr(x.type, "tz", None)}
        return replace(cls._build(rows, public, counted, stated), zone=zone)

    @classmethod
    @declaring
    def from_arrays(
        cls, times: Any, points: Any, *, person: Any = None, **declared: Any
    ) -> Snapshots:
        """Snapshots from times (n,) and points (n, d), or (n,) when d = 1.

        points: an array; with `columns` also one of objects, a structured array, a table or a
            dictionary. A table that has the names of all columns is read by name, else by place.
        bounds: public limits, {feature: (low, high)} or d pairs; values outside are clamped.
        columns: features of any kind, {feature: what it is}, beside `bounds` or in its place:
            `Number`, `Integer`, `Date`, `Category`, `Ordered`, `Boolean`, two numbers or dates, a
            list of values, `bool`, a category type of pandas or polars, or a dictionary such as
            {"kind": "category", "values": ["F", "M"], "fixed": True}. All of it is public. Cells
            and values are compared as text, 1.0 and true as 1; null, NaN, "" and "NA" are missing.
        time_range: public (start, end); may be left out when `bins` lists times. A record outside
            it counts as one at its nearer end.
        bins: public times of interest, increasing, or their number, spread evenly over
            `time_range`: when the model is read. They are no resolution, which is found by the fit:
            every record keeps its own time. Where all records are at these times, as with cells
            sequenced on five days, the fit finds that too.
        person: (n,) whose record each is.
        same_person: when two texts name one person: "exact" compares them as they are written,
            "trimmed" without the blanks around them, "folded" with capitals as small letters, too.
        one_per_person: "error" refuses a second record of a person, "random" keeps one of a
            person's records, each with the same chance, without looking at anybody else's.
        records_per_person: public. Above 1, that many records of a person are kept, by chance where
            there are more, and every release pays for all of them.
        one_per_bin: of these, one per bin (all that is nearest to a time of `bins`) at most.
        missing: "refuse" or "drop" records with missing values in columns that do not say that
            they may be missing; dropping comes before the choice of one record per person.
        seed: makes that choice repeatable; by default it comes from the operating system.
        domain: public, where people can be at all: a `Domain`, or a file that has one. Records are
            kept as they are, wherever they are: what is released is the same as without it, and
            cells outside are left out of what is made of that.
        """
        names = declared.get("features")
        if names is None:
            forms = (declared.get("bounds"), declared.get("columns"))
            names = [name for form in forms if isinstance(form, Mapping) for name in form]
        cells = cells_of(points, [names] if isinstance(names, str) else list(names))
        who = None if person is None else "person"
        public = PublicInputs.declared(time="time", person=who, n_features=len(cells), **declared)
        whose = None if person is None else to_column(person, "person")
        given = Records.of(moments_of(times), cells, whose, public)
        rows, counted = rows_of(given, public)
        return cls._build(rows, public, counted)

    @classmethod
    def _build(
        cls, rows: Rows, public: PublicInputs, counted: RangeCounts, stated: tuple[str, ...] = ()
    ) -> Snapshots:
        whose = public.person is not None
        return cls(
            public.axis,
            public.columns,
            public.time_name,
            rows,
            public.most_records,
            public.together,
            stated if whose else (EVERY_ROW, *stated),
            public.domain,
            (BY_PERSON, COMPARED[public.same_person]) if whose else (),
            range_counts=counted,
        )

    @property
    def times(self) -> Floats:
        """(T,) times of interest in data units; seconds since 1970-01-01 UTC when `datetime`."""
        return self.axis.times

    @property
    def datetime(self) -> bool:
        """Whether times are dates."""
        return self.axis.datetime

    @property
    def declared(self) -> tuple[Column, ...]:
        """The columns as the user has them: without flags, which are made of what is missing."""
        return of_tables(self.columns)

    @cached_property
    def plot(self) -> Plot | None:
        """The domain in the unit cube, if there is one."""
        return None if self.domain is None else self.domain.ground(self.features, self.bounds)

    @property
    def _digest(self) -> bytes:
        """What a ledger recognises the data by; as sensitive as they are."""
        return self._rows.digest

    @property
    def span(self) -> tuple[float, float]:
        """From when to when people are recorded, in days of the calendar, or in the unit of
        times that are numbers."""
        first, last = self.axis.range / (86400.0 if self.datetime else 1.0)
        return float(first), float(last)

    def hashed_people(self, hashed: Callable[[bytes], bytes]) -> Iterator[list[bytes]]:
        """Hashes of the identifiers of all who have a record here, so many at a time."""
        rows: Any = self._rows
        for some in rows.identifiers():
            yield list(map(hashed, some))

    def without_people(self, hashed: Callable[[bytes], bytes], gone: Container[bytes]) -> Snapshots:
        """Without the records of people with these hashes."""
        rows: Any = self._rows
        return replace(self, _rows=rows.without(lambda one: hashed(one) in gone))

    def beside(self, points: NDArray[np.float32], times: Floats) -> Snapshots:
        """These records and those of public people, points (n, d) of the unit cube at times."""
        return replace(self, _rows=WithPast(self._rows, MemoryRows(points, times)))

    @property
    def n_times(self) -> int:
        """T, the number of times of interest."""
        return len(self.times)

    @property
    def n_features(self) -> int:
        """d, the number of features."""
        return len(self.columns)

    def guarded(self, make: Callable[..., G], *args: Any, **options: Any) -> G:
        """The guard make(rows, shape, ...) over these records: nobody else is given them."""
        return make(self._rows, self.shape, *args, **options)

    def check_bins(self, what: str | Arg, does: str = "measures") -> None:
        """Refuse, for what needs time bins, snapshots without any."""
        if not self.axis.declared:
            raise InputError(what, f" {does} time bins, and there are none: give ", Arg("bins"))

    @property
    def gaps(self) -> Floats:
        """(T - 1,) from time to time of interest, as shares of their range."""
        shares: Floats = np.diff(self.times) / (self.times[-1] - self.times[0])
        return shares

    @property
    def bin_times(self) -> NDArray[Any]:
        """(T,) times of interest as the user gave them: numbers, or datetime64[us] in UTC."""
        return as_user_times(self.times, self.datetime)

    def public_inputs(self) -> dict[str, Any]:
        """What a guarantee about these records takes as known to everybody, for a certificate."""
        axis, bounds = self.axis, {}
        for column in of_tables(self.columns):
            bounds[column.name] = column.public_inputs()
        public: dict[str, Any] = {
            "bounds": bounds,
            "time range": list(map(str, written_times(axis.range, axis.datetime))),
            MOST_RECORDS: self.records_per_person,
        }
        if axis.declared:
            public["bin times"] = list(map(str, written_times(axis.times, axis.datetime)))
        if self.together:
            public[SHARED_BINS] = True
        if self.domain is not None:
            public[DOMAIN] = self.domain.public_inputs()
        if self.stated:
            public[STATED] = list(self.stated)
        if self.checked:
            public[CHECKED] = list(self.checked)
        return public

    def __repr__(self) -> str:
        first, last = written_times(self.axis.range, self.datetime)
        box = ", ".join(map(str, self.declared))
        return f"Snapshots({self.time_name} from {first} to {last}; {box})"


def _rows_of_source(
    source: Any, query: str | None, public: PublicInputs, row_by_row: bool
) -> tuple[Rows, RangeCounts, Any]:
    """The records, left in the database that holds them where that is possible, what of them lies
    outside of what is declared, and the Arrow schema of their table."""
    kinds, dialect, columns = public.cell_kinds, public.dialect, list(public.cell_kinds)
    unread: UnreadableCells | None = None
    try:
        remote = sql.remote_table(source, query, columns, kinds, dialect, row_by_row=row_by_row)
        if remote is None:
            table = tables.read_columns(source, columns, kinds, dialect)
    except UnreadableCells as error:
        unread = error
    if unread is not None:  # outside the handler, so that a user sees one sentence and not two
        if unread.name == public.time_name and unread.reads_as is not None:
            check_same_kind(unread.reads_as == DATE, public.axis.datetime, unread.name)
        raise unread
    if remote is not None:
        from privtraj.data import sql_rows  # which needs Ibis

        found = sql_rows.rows_of(remote, public)
        if found is not None:
            return *found, remote.table.schema().to_pyarrow()
        table = remote.read()
    return *rows_of(Records.of_table(table, public), public), table.schema
