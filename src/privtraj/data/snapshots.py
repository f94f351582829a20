"""Snapshots: time-stamped records of people, inside a public box, in public time bins.

One record per person, or up to a public number of them, each in a bin of its own.

This is where a table becomes what the guard holds. The privacy proof relies on one property of
this module: what a person contributes, y clamped to the box and its bin i, is a function of that
person's own records and of public inputs (bounds, time range, bins, options) alone. Nothing is
measured on the data, which is why bounds and time range are required and never inferred.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privtraj import display, processes
from privtraj.arrays import Floats, frozen
from privtraj.data import arrow, tables
from privtraj.data import sql as sources
from privtraj.data import sql_rows as engine
from privtraj.data.checks import (
    Affected,
    check_enough,
    check_identified,
    check_infinite,
    check_missing,
    check_same_kind,
    refuse_several,
)
from privtraj.data.public import (
    Options,
    PublicInputs,
    TimeAxis,
    check_roles,
    declared_axis,
    declared_box,
)
from privtraj.errors import InputError
from privtraj.privacy.events import Person
from privtraj.privacy.rows import BLOCK, MemoryRows, PublicShape, Rows, digest_of
from privtraj.space import as_user_times, nearest_bin, to_unit, utc_seconds

G = TypeVar("G")  # a kind of guard


@dataclass(frozen=True, eq=False, repr=False)
class Snapshots:
    """Validated, bounded and binned records; build it with `from_table` or `from_arrays`.

    times: (T,) bin times in data units; seconds since 1970-01-01 UTC when `datetime`.
    bounds: (d, 2) low and high of each feature, in data units.
    features: d names.  time_name: name of the time column.  datetime: whether times are dates.
    records_per_person: the most records any person has here, all of them in different bins unless
    they may be `together`.

    All of these are public. `_rows`, the records themselves, are for the guard alone; `_digest`
    lets a ledger on disk recognise them, whatever the order of rows, the bins or the bounds.
    """

    times: Floats
    bounds: Floats
    features: tuple[str, ...]
    time_name: str
    datetime: bool
    _rows: Rows = field(repr=False)
    records_per_person: int = 1
    together: bool = False

    @classmethod
    def from_table(
        cls,
        source: Any,
        *,
        time: str,
        query: str | None = None,
        features: Sequence[str] | None = None,
        bounds: Any = None,
        time_range: Any = None,
        bins: Any = None,
        person: str | None = None,
        one_per_person: str = "error",
        records_per_person: int = 1,
        one_per_bin: bool = True,
        missing: str = "refuse",
        seed: int | None = None,
    ) -> Snapshots:
        """Snapshots from a file, a table or a database.

        source: what `privtraj.data.tables.read_columns` reads into memory, or records that stay where
            they are (`pip install 'privtraj[sql]'`): an Ibis table; a connection string such as
            "postgresql://host/database" with `query`; a folder of CSV or Parquet files or a pattern
            such as "visits/*.parquet"; a CSV or Parquet file of more than 512 MB. They are checked
            and counted by the engine that holds them, and must not change before the fit is done.
            They are read into memory after all if some of a person's records must be chosen.
        query: a SELECT, or the name of a table, for a connection string.
        time: column of numbers, dates or timestamps.
        features: columns of numbers; by default the keys of `bounds`, in their order.
        person: column that says whose record it is. Without it every row is taken to be a
            different person, and the guarantee holds only if that is true.

        The other arguments are those of `from_arrays`.
        """
        names, box = declared_box(bounds, features)
        axis = declared_axis(bins, time_range)
        check_roles(time, names, person)
        options = Options(
            one_per_person, records_per_person, one_per_bin, missing, seed, person is not None
        )
        public = PublicInputs(names, box, axis, time, options)
        people = [] if person is None else [person]
        columns = [time, *names, *people]
        held = sources.held(source, query, columns, people)
        if held is None:
            table = tables.read_columns(source, columns, text=people)
        else:
            rows = None
            if not processes.several():  # several processes compare their people, and so need them
                rows = engine.rows_of(held, public, person)
            if rows is not None:
                return cls._of(rows, public)
            table = held.read()
        values, datetime = arrow.moments(table.column(time), time)
        records = _Records(
            values,
            datetime,
            np.column_stack([arrow.numbers(table.column(name), name) for name in names]),
            None if person is None else arrow.identities(table.column(person)),
        )
        return cls._build(records, public)

    @classmethod
    def from_arrays(
        cls,
        times: Any,
        points: Any,
        *,
        bounds: Any = None,
        bins: Any = None,
        time_range: Any = None,
        features: Sequence[str] | None = None,
        person: Any = None,
        one_per_person: str = "error",
        records_per_person: int = 1,
        one_per_bin: bool = True,
        missing: str = "refuse",
        seed: int | None = None,
    ) -> Snapshots:
        """Snapshots from times (n,) and points (n, d), or (n,) when d = 1.

        bounds: public limits, {feature: (low, high)} or d pairs; values outside are clamped.
        bins: public bin times, increasing, or their number, spread evenly over `time_range`.
            Each record goes to the nearest bin time, at equal distance to the earlier one; a
            record outside the range therefore goes to the first or the last bin.
        time_range: public (start, end); may be left out when `bins` lists the bin times.
        person: (n,) whose record each is.
        one_per_person: "error" refuses a second record of a person, "random" keeps one of a
            person's records, each with the same chance, without looking at anybody else's.
        records_per_person: public. Above 1, that many records of a person are kept, by chance where
            there are more, and every release pays for all of them.
        one_per_bin: of these, one per bin at most; it makes them much cheaper.
        missing: "refuse" or "drop" records with missing values; dropping comes before the choice
            of one record per person.
        seed: makes that choice repeatable; by default it comes from the operating system.
        """
        points = _points(points)
        names, box = declared_box(bounds, features, n_features=points.shape[1])
        axis = declared_axis(bins, time_range)
        options = Options(
            one_per_person, records_per_person, one_per_bin, missing, seed, person is not None
        )
        values, datetime = _times(times)
        who = None if person is None else arrow.identities(arrow.to_column(person, "person"))
        records = _Records(values, datetime, points, who)
        return cls._build(records, PublicInputs(names, box, axis, "time", options))

    @classmethod
    def _build(cls, records: _Records, public: PublicInputs) -> Snapshots:
        names, axis, time_name = public.names, public.axis, public.time_name
        _check_lengths(records)
        check_same_kind(records.datetime, axis.datetime, time_name)
        check_infinite(_affected(records, names, time_name, np.isinf)[0])
        records = _complete(records, names, time_name, public.options.missing)
        columns = np.column_stack([records.times, records.points])
        digest = digest_of(names, _in_blocks(columns))
        records = _few_each(records, axis, public.options)
        check_enough(len(records.times))
        # A float64 in [0, 1] rounds to a float32 in [0, 1]: both ends are float32 numbers.
        points = to_unit(records.points, public.box).astype(np.float32)
        bins = nearest_bin(records.times, axis.times)
        order = np.argsort(bins, kind="stable")
        rows = MemoryRows(frozen(points[order]), frozen(bins[order]), digest)
        return cls._of(rows, public)

    @classmethod
    def _of(cls, rows: Rows, public: PublicInputs) -> Snapshots:
        return cls(
            frozen(public.axis.times),
            frozen(public.box),
            public.names,
            public.time_name,
            public.axis.datetime,
            rows,
            public.options.most(len(public.axis.times)),
            public.options.together,
        )

    @property
    def _digest(self) -> bytes:
        """What a ledger recognises the data by; as sensitive as they are."""
        return self._rows.digest

    @property
    def n_times(self) -> int:
        """T, the number of bins."""
        return len(self.times)

    @property
    def n_features(self) -> int:
        """d, the number of features."""
        return len(self.features)

    @property
    def shape(self) -> PublicShape:
        """What a guard has to know of the records, all of it public."""
        person = Person(self.records_per_person, self.together)
        return PublicShape(self.n_times, self.n_features, person)

    def guarded(self, make: Callable[..., G], *args: Any, **options: Any) -> G:
        """The guard make(rows, shape, ...) over these records: nobody else is given them."""
        return make(self._rows, self.shape, *args, **options)

    @property
    def gaps(self) -> Floats:
        """(T - 1,) from bin time to bin time, as shares of the range."""
        shares: Floats = np.diff(self.times) / (self.times[-1] - self.times[0])
        return shares

    @property
    def bin_times(self) -> NDArray[Any]:
        """(T,) bin times as the user gave them: numbers, or datetime64[us] in UTC."""
        return as_user_times(self.times, self.datetime)

    def public_inputs(self) -> dict[str, Any]:
        """What a guarantee about these records takes as known to everybody, for a certificate."""
        public: dict[str, Any] = {
            "bounds": dict(zip(self.features, self.bounds.tolist(), strict=True)),
            "bin times": [str(t) for t in self.bin_times],
            "most records of one person": self.records_per_person,
        }
        if self.together:
            public["records of one person may share a bin"] = True
        return public

    def __repr__(self) -> str:
        first, last = self.bin_times[[0, -1]]
        box = ", ".join(
            f"{name} in [{low:g}, {high:g}]"
            for name, (low, high) in zip(self.features, self.bounds, strict=True)
        )
        return f"Snapshots({self.time_name}: {self.n_times} bins from {first} to {last}; {box})"

    def _repr_html_(self) -> str:
        return display.card(self)


# Public inputs --------------------------------------------------------------------------------


# Records --------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class _Records:
    times: Floats  # (n,)
    datetime: bool
    points: Floats  # (n, d)
    people: tuple[NDArray[np.int64], Any] | None  # codes (n,) and the identifier of each code

    def keep(self, rows: NDArray[Any]) -> _Records:
        people = None if self.people is None else (self.people[0][rows], self.people[1])
        return _Records(self.times[rows], self.datetime, self.points[rows], people)


def _points(points: Any) -> Floats:
    try:
        array = np.asarray(points)
    except ValueError:
        raise InputError("points must be a table (n, d) with rows of equal length") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"points must be numbers, not {array.dtype.name}")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise InputError(f"points must have shape (n, d), not {array.ndim} dimensions")
    return array.astype(np.float64)


def _times(times: Any) -> tuple[Floats, bool]:
    """Times as (n,) float64 and whether they are dates."""
    try:
        array = np.asarray(times)
    except ValueError:
        raise InputError("times must be a list with one time per record") from None
    if array.ndim != 1:
        raise InputError(f"times must have shape (n,), not {array.ndim} dimensions")
    if array.dtype.kind == "M":
        return utc_seconds(array), True
    if array.dtype.kind in "biuf":
        return array.astype(np.float64), False
    return arrow.moments(arrow.to_column(times, "time"), "time")


def _check_lengths(records: _Records) -> None:
    n = len(records.times)
    if len(records.points) != n:
        raise InputError(
            f"there are {n} times and {len(records.points)} points: give one of each per record"
        )
    if records.people is not None and len(records.people[0]) != n:
        raise InputError(
            f"there are {n} times and {len(records.people[0])} person ids: give one per record"
        )


def _complete(records: _Records, names: tuple[str, ...], time_name: str, missing: str) -> _Records:
    found, rows = _affected(records, names, time_name, np.isnan)
    check_missing(found, missing)
    return records.keep(~rows) if found.records else records


def _affected(
    records: _Records, names: tuple[str, ...], time_name: str, test: Callable[..., Any]
) -> tuple[Affected, NDArray[np.bool_]]:
    """Columns in which some record passes the test, and the records (n,) that do in any."""
    cells = np.column_stack([test(records.times), test(records.points)])
    columns, rows = (time_name, *names), np.any(cells, axis=1)
    where = [columns[k] for k in np.flatnonzero(cells.any(axis=0))]
    return Affected(where, int(rows.sum()), len(rows)), rows


def _in_blocks(rows: Floats) -> Iterator[Floats]:
    for start in range(0, len(rows), BLOCK):
        yield rows[start : start + BLOCK]


def _few_each(records: _Records, axis: TimeAxis, options: Options) -> _Records:
    """At most `records_per_person` records of each person, in different bins."""
    if records.people is None:
        return records
    codes, ids = records.people
    check_identified(int((codes < 0).sum()), len(codes))
    counts = np.bincount(codes, minlength=1)
    if processes.several():
        present = np.flatnonzero(counts)
        processes.refuse_shared_people(np.array([str(ids[int(k)]) for k in present], dtype=object))
    repeated = np.count_nonzero(counts > 1)
    if repeated == 0:
        return records
    if options.one_each:
        refuse_several(int(repeated), int(np.count_nonzero(counts)))
    lots = _lots(codes, counts, ids, options.seed)
    bins = nearest_bin(records.times, axis.times)
    order = np.lexsort((lots, codes))
    if not options.together:
        order = _first_in_bin(order, codes, bins)
    return records.keep(_first(order, codes, options.records_per_person))


def _lots(
    codes: NDArray[np.int64], counts: NDArray[np.int64], ids: Any, seed: int | None
) -> NDArray[np.uint64]:
    """(n,) a lot for each record of whoever has several: hash(seed, person, which record).

    It depends on the person's own records and the seed alone. A shuffle of all rows would let one
    person's presence change which record of another is kept, once the seed is known.
    """
    key = (secrets.token_bytes(32) if seed is None else str(seed).encode())[:64]
    lots = np.zeros(len(codes), dtype=np.uint64)
    seen = np.zeros(len(counts), dtype=np.int64)
    for row in np.flatnonzero(counts[codes] > 1):
        who = codes[row]
        record = f"{seen[who]} {ids[int(who)].as_py()}".encode()
        lots[row] = int.from_bytes(blake2b(record, key=key, digest_size=8).digest())
        seen[who] += 1
    return lots


def _first_in_bin(
    order: NDArray[np.int64], codes: NDArray[np.int64], bins: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Of rows in an order, the first of each person in each bin."""
    place = codes[order] * (int(bins.max()) + 1) + bins[order]
    return order[np.sort(np.unique(place, return_index=True)[1])]


def _first(order: NDArray[np.int64], codes: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Of rows ordered by person, the first `most` of each, back in the order of the table."""
    who = codes[order]
    rank = np.arange(len(who)) - np.searchsorted(who, who)
    return np.sort(order[rank < most])
