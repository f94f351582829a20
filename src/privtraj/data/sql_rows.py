"""Rows in the database that holds them: checked and counted there, through Ibis.

What comes back to this process is how many records fail a check, how many are in each cell, and,
where the budget buys gradients, one slab and d coordinates in float32 for each record. Of people
with several records, who are those that pairs are counted of, the records come back too: pairs are
then counted by the very code that counts them in memory, rather than by a join whose rounding of
times would be each database's own.

The database computes the very numbers that `records` computes in memory, so that a seed gives the
same model:

    unit   u = (y - low) / (high - low) in double, 0 below the box and 1 above it, then as real
    cell   min(floor(k u), k - 1) with the real as double again, so that the product is exact
    slab   of the piece of time after as many edges as are below the time, found by halving
    level  of a category, by comparing its cells with all texts or numbers that mean a value

Numbers and times go to the database as text to be cast: as literals, some are read as decimals.
"""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Mask
from privtraj.base.errors import InputError
from privtraj.base.space import Slabs, largest
from privtraj.columns.cells import MISSING, is_whole, key_of, spellings
from privtraj.columns.kinds import (
    UNDECLARED,
    Angle,
    Category,
    Column,
    Date,
    Flag,
    Integer,
    of_tables,
)
from privtraj.data import arrow, records
from privtraj.data.public import PublicInputs
from privtraj.data.records import digest_of
from privtraj.data.sql import RemoteTable
from privtraj.privacy.guard import RepeatedRows, SlabRows


@dataclass(frozen=True, eq=False, repr=False)
class SqlRows:
    """Rows in a database; only counts come back until the rows themselves are asked for.

    records: complete records, time t and cells c0, c1, ... of the columns that a table has.
    unit: the same as (t, u0, u1, ...), u in float32, of the columns asked for: Ibis and the
        database work on every column of a table, also on those that nobody looks at.
    count: how many there are.
    people: as unit of all columns, with who, where people may have several; else None.
    """

    records: RemoteTable
    unit: Callable[[Sequence[int]], RemoteTable]
    columns: tuple[Column, ...]
    datetime: bool
    count: int
    people: RemoteTable | None = None
    repeated_count: int = 0

    def cell_counts(self, slabs: Slabs, sides: Sequence[int]) -> NDArray[np.int64]:
        """One group-by; the numbers of the cells and the counts come back."""
        cells = math.prod(sides)
        unit = self.unit([k for k, along in enumerate(sides) if along > 1])
        table = unit.table
        place = _slab(table["t"], slabs, self.datetime).cast("int64")
        for k, along in enumerate(sides):
            if along > 1:
                side = (table[f"u{k}"].cast("float64") * along).floor().cast("int64")
                place = place * along + ibis.least(side, along - 1)
        counted = table.group_by(place=place).aggregate(n=table.count())
        counts = np.zeros((slabs.count + 1) * cells, dtype=np.int64)  # the last for no slab, -1
        for places, n in _batches(unit.with_table(counted)):
            counts[places] = n
        if counts.sum() != self.count:
            raise _changed()
        return counts.reshape(-1, cells)[:-1]

    def in_slabs(self, slabs: Slabs) -> SlabRows:
        """Each record is put where its slab begins, behind those that came before it."""
        sizes = self.cell_counts(slabs, (1,) * len(self.columns))[:, 0]
        ends = np.cumsum(sizes)
        free = ends - sizes
        points = np.empty((sizes.sum(), len(self.columns)), dtype=np.float32)
        unit = self.unit(range(len(self.columns)))
        table = unit.table
        columns = [name for name in table.columns if name != "t"]
        slab = _slab(table["t"], slabs, self.datetime).cast("int32")
        wanted = unit.with_table(table.select(slab=slab, **{name: table[name] for name in columns}))
        for numbers, *values in _batches(wanted):
            order = np.argsort(numbers, kind="stable")[np.count_nonzero(numbers < 0) :]
            numbers = numbers[order]
            place = free[numbers] + np.arange(len(numbers)) - np.searchsorted(numbers, numbers)
            free = free + np.bincount(numbers, minlength=len(sizes))
            if (free > ends).any():
                raise _changed()
            points[place] = np.column_stack(values)[order]
        if (free < ends).any():
            raise _changed()
        return SlabRows(points, np.repeat(np.arange(len(sizes), dtype=np.int32), sizes))

    def repeated(self) -> RepeatedRows:
        """Those of all who have several, found and numbered by the database."""
        if self.people is None or self.repeated_count == 0:
            none = np.empty((0, len(self.columns)), np.float32)
            return RepeatedRows(np.empty(0, np.int64), np.empty(0), none)
        table = self.people.table
        each = table.group_by("who").aggregate(n=table.count())
        several = table.semi_join(each.filter(each["n"] > 1), "who")
        number = ibis.dense_rank().over(ibis.window(order_by=several["who"]))
        mine = [name for name in several.columns if name != "who"]
        wanted = several.select(*mine, person=number.cast("int64"))
        found = self.people.with_table(wanted).read()
        if found.num_rows != self.repeated_count:
            raise _changed()
        times, *values, people = (_array(column) for column in found.columns)
        return RepeatedRows(people, times, np.column_stack(values))

    @cached_property
    def digest(self) -> bytes:
        asked = of_tables(self.columns)
        batches = (_digested(batch, asked) for batch in self.records.batches())
        return digest_of([column.name for column in asked], batches)


def rows_of(remote: RemoteTable, public: PublicInputs) -> SqlRows | None:
    """Rows in the database, after the same checks as in memory, two passes over the records.

    None where the records are needed in memory: somebody has so many that some are to be chosen,
    which takes a random key for each, or there are dates that databases read in different ways.
    """
    time, axis, person = public.time_name, public.axis, public.person
    datetime = _check_kinds(remote, public)
    records.check_same_kind(datetime, axis.datetime, time)
    if person is not None:
        arrow.check_identifier(_arrow_type(remote.table[person]), person)
    if not all(_reads_dates(remote.table, column) for column in public.asked):
        return None
    if person is not None and not _tells_apart(remote.table[person], public.same_person):
        return None
    values = _values_of(remote.table, public, datetime)
    missing = _checked(remote.with_table(remote.table.select(**values)), public)
    dropping = _required(public) if missing.records else []

    def complete(names: Sequence[str]) -> Any:
        table = remote.table.select(**{name: values[name] for name in [*names, *dropping]})
        return table.filter(~_any(_missing, table, dropping)) if dropping else table

    count = missing.total - missing.records
    repeated = 0
    if person is not None:
        people = remote.with_table(complete(["t", "who"]))
        too_many, repeated = _counted_people(people, count, public, datetime)
        if too_many:
            return None
    records.check_enough(count)

    asked = [column.name for column in public.asked]
    about = [c.of if isinstance(c, Flag) else c.name for c in public.columns]  # flags, of others

    def unit(wanted: Sequence[int], *more: str) -> RemoteTable:
        places = {k: f"y{asked.index(about[k])}" for k in wanted}
        table = complete(["t", *more, *places.values()])
        points = {f"u{k}": _point(table[y], public.columns[k]) for k, y in places.items()}
        return remote.with_table(table.select(*more, "t", **points))

    everything = range(len(public.columns))
    people_of = unit(everything, "who") if public.most_records > 1 else None
    cells = [name for name in values if name[0] in "tc"]
    kept = remote.with_table(complete(cells).select(*cells))
    return SqlRows(kept, unit, public.columns, datetime, count, people_of, repeated)


# Checks ---------------------------------------------------------------------------------------


def _check_kinds(remote: RemoteTable, public: PublicInputs) -> bool:
    """Refuse columns of a wrong kind; whether the time is dates."""

    def cells(name: str) -> Iterator[Any]:
        for batch in remote.with_table(remote.table.select(name)).batches():
            yield from batch.column(0)

    def kind(name: str) -> Any:
        return remote.table[name].type().to_pyarrow()

    time = public.time_name
    datetime = arrow.is_moment(kind(time), time, cells(time))
    for column in public.asked:
        if isinstance(column, Category):
            arrow.check_category(_arrow_type(remote.table[column.name]), column.name)
        elif isinstance(column, Date):
            arrow.check_dates(kind(column.name), column.name)
        else:
            arrow.check_numeric(kind(column.name), column.name, cells(column.name))
    return datetime


def _arrow_type(column: Any) -> Any:
    """None where Arrow, or Ibis, has no such type."""
    kind = column.type()
    try:
        return None if kind.is_unknown() else kind.to_pyarrow()
    except Exception:
        return None


def _checked(remote: RemoteTable, public: PublicInputs) -> records.FaultCount:
    """Records without what they must have, after all checks of values, in one pass."""
    table, names = remote.table, {f"y{k}": column for k, column in enumerate(public.asked)}
    required = _required(public)
    counts = {"total": table.count()}
    for y, column in names.items():
        if isinstance(column, Category | Integer):
            strange = table[y] == _double(UNDECLARED)
            wrong = strange if isinstance(column, Category) else _broken(table[y])
            counts[f"wrong {y}"] = table.count(where=wrong)
    tests = {"infinite": (_infinite, ["t", *names]), "missing": (_missing, required)}
    for what, (test, places) in tests.items():
        counts[what] = table.count(where=_any(test, table, places))
        counts |= {f"{what} {y}": table.count(where=test(table[y])) for y in places}
    counted = _one(remote.with_table(table.aggregate(**counts)))
    for y, column in names.items():
        faults = records.FaultCount([column.name], counted.get(f"wrong {y}", 0), counted["total"])
        if isinstance(column, Category):
            records.check_declared(faults, column)
        else:
            records.check_whole(faults)
    called = {"t": public.time_name} | {y: column.name for y, column in names.items()}
    infinite, missing = (
        records.FaultCount(
            [called[y] for y in places if counted[f"{what} {y}"]], counted[what], counted["total"]
        )
        for what, (_, places) in tests.items()
    )
    records.check_infinite(infinite)
    records.check_missing(missing, public.missing)
    return missing


def _counted_people(
    remote: RemoteTable, count: int, public: PublicInputs, datetime: bool
) -> tuple[bool, int]:
    """Whether somebody has more records than are kept, and the records of all who have several,
    unless these are refused; one pass, or two."""
    most = public.most_records
    each = remote.table.group_by("who").aggregate(n=remote.table.count())
    known = ~_missing(each["who"])
    odd = ibis.literal(False)
    if each["who"].type().is_string():
        odd = each["who"].re_search(arrow.invisible(each.get_backend().name))
    counted = each.aggregate(
        invisible=each["n"].sum(where=known & odd),
        unidentified=each["n"].sum(where=~known),
        people=each.count(where=known),
        several=each.count(where=known & (each["n"] > 1)),
        repeated=each["n"].sum(where=known & (each["n"] > 1)),
        most=each["n"].max(where=known),
    )
    counts = _one(remote.with_table(counted))
    arrow.check_visible(counts["invisible"], count, str(public.person))
    records.check_identified(counts["unidentified"], count)
    if counts["several"] and public.one_each:
        records.refuse_several(counts["several"], counts["people"])
    too_many = counts["most"] > most
    if counts["several"] and not (too_many or public.together):  # has somebody two in one bin?
        table = remote.table
        own = table.select(who=table["who"], bin=_slab(table["t"], public.axis.bins, datetime))
        each = own.group_by("who", "bin").aggregate(n=own.count())
        too_many = _one(remote.with_table(each.aggregate(most=each["n"].max())))["most"] > 1
    return too_many, counts["repeated"]


def _one(counts: RemoteTable) -> dict[str, int]:
    """The only row of a table of counts; a sum over nothing is 0."""
    (row,) = counts.read().to_pylist()
    return {name: int(value or 0) for name, value in row.items()}


def _required(public: PublicInputs) -> list[str]:
    """The names here of the time and of the columns that may not be missing."""
    return ["t", *(f"y{k}" for k, column in enumerate(public.asked) if not column.missing)]


def _any(test: Callable[[Any], Any], table: Any, names: Sequence[str]) -> Any:
    return reduce(or_, (test(table[name]) for name in names))


def _broken(column: Any) -> Any:
    """Whether a number is not whole; those that doubles have no fractions for are, as is NaN."""
    large = (column >= _double(2.0**53)) | (column <= _double(-(2.0**53)))
    small = ibis.ifelse(large, _double(0), column)
    return small != small.floor().cast("float64")


def _infinite(column: Any) -> Any:
    if not column.type().is_floating():
        return ibis.literal(False)
    # Ibis 12 has a test of its own, which is never true on Spark.
    return (column == _double("Infinity")) | (column == _double("-Infinity"))


def _missing(column: Any) -> Any:
    absent = column.isnull()
    return absent | column.isnan() if column.type().is_floating() else absent


# What becomes of a record ---------------------------------------------------------------------


def _values_of(table: Any, public: PublicInputs, datetime: bool) -> dict[str, Any]:
    """Of a record the time t, cells c0, c1, ..., these as values y0, y1, ... in double, and who."""
    moment = table[public.time_name]
    if not datetime:
        moment = _number(moment)
    elif moment.type().is_date():
        moment = moment.cast("timestamp")
    columns = {"t": moment}
    for k, column in enumerate(public.asked):
        cell = table[column.name]
        if isinstance(column, Category):
            cell = _comparable(cell)
            columns |= {f"c{k}": cell, f"y{k}": _level(cell, column)}
        elif isinstance(column, Date):
            columns |= {f"c{k}": cell, f"y{k}": _seconds(cell)}
        else:
            columns |= {f"c{k}": _number(cell), f"y{k}": _number(cell)}
    if public.person is not None:
        columns["who"] = table[public.person]
    return columns


def _comparable(cell: Any) -> Any:
    """A cell of a category as text, a whole number or a double."""
    kind = cell.type()
    if kind.is_string():
        return cell
    if kind.is_boolean() or kind.is_null():
        return cell.cast("int32")
    return cell if kind.is_integer() else cell.cast("float64")


def _level(cell: Any, column: Category) -> Any:
    """`Category.level_of` as double; null for NaN."""
    pairs = {text: level for key, level in column.keys.items() for text in _written(cell, key)}
    absent = _missing(cell)
    if cell.type().is_string():
        absent |= cell.isin(sorted(MISSING - column.keys.keys()))
    found = ((text, _double(level)) for text, level in pairs.items())
    known = cell.cases(*found, else_=_double(column.rest))
    missing = _double(column.level_of(None)) if column.missing else ibis.null("float64")
    return ibis.ifelse(absent, missing, known)


def _written(cell: Any, key: str | None) -> list[Any]:
    """All values of a cell of this type that have this key."""
    kind = cell.type()
    if key is None:
        return []
    if kind.is_string():
        return spellings(key)
    if kind.is_integer():
        low, high = (0, 2**64) if kind.is_unsigned_integer() else (-(2**63), 2**63)
        return [int(key)] if is_whole(key) and low <= int(key) < high else []
    try:
        number = float(key)
    except ValueError:
        return []
    return [number] if key_of(number) == key else []


def _seconds(moment: Any) -> Any:
    """A date or a timestamp as seconds since 1970-01-01 UTC, in double."""
    if moment.type().is_date():
        moment = moment.cast("timestamp")
    if moment.get_backend().name == "pyspark":
        return moment.cast("float64")
    return moment.epoch_seconds().cast("float64")  # with its fraction, whatever Ibis says


def _reads_dates(table: Any, column: Column) -> bool:
    """Whether a database is known to compute `_seconds` as it is done in memory.

    Ibis takes time zones of DuckDB for those of the session, and does not tell whether Spark's
    timestamps have any; text is read by each database in its own way.
    """
    if isinstance(column, Angle):  # whose cosine is each database's own
        return False
    if not isinstance(column, Date):
        return True
    kind, database = table[column.name].type(), table.get_backend().name
    if kind.is_date():
        return database in ("duckdb", "postgres", "pyspark")
    if not kind.is_timestamp() or (kind.scale or 6) > 6:
        return False
    return database == "postgres" or (database == "duckdb" and kind.timezone is None)


def _tells_apart(cell: Any, same: str) -> bool:
    """Whether a database is known to compare identifiers as it is done in memory."""
    known = cell.get_backend().name in ("duckdb", "postgres", "pyspark")
    return not cell.type().is_string() or (known and same == "exact")


def _number(column: Any) -> Any:
    if column.type().is_boolean():
        column = column.cast("int32")
    return column.cast("float64")


def _point(value: Any, column: Column) -> Any:
    """Coordinate in the unit cube, of flags too, in float32: `Column.to_unit`, and 0 at once where
    it would round to 0, which is an error in some databases."""
    absent, (low, high) = _missing(value), column.domain
    if isinstance(column, Flag):
        yes, no = (_double(float(unit)) for unit in column.to_unit([1, 0]))
        return ibis.ifelse(absent, yes, no).cast("float32")
    if isinstance(column, Integer):
        first, last = _double(column.low), _double(column.high)
        below = ibis.ifelse(value >= last, last, value)
        value = ibis.ifelse(value <= first, first, below)

    def rounds_to_zero(y: Floats) -> Mask:
        return ((y - low) / (high - low)).astype(np.float32) == 0

    (zero,) = largest(rounds_to_zero, np.array([low]), np.array([high]))
    inside = (value - _double(low)) / _double(high - low)
    upper = ibis.ifelse(value >= _double(high), _double(1), inside)
    point = ibis.ifelse(value <= _double(zero), _double(0), upper).cast("float32")
    if column.missing and not isinstance(column, Category):
        point = ibis.ifelse(absent, _double(0.5).cast("float32"), point)
    return point


def _slab(moment: Any, slabs: Slabs, datetime: bool) -> Any:
    edges = slabs.edges.tolist()
    past = [_later(moment, e) if datetime else moment > _double(e) for e in edges]
    return _number_of(past, slabs.slab_of_piece.tolist(), 0, len(past))


def _number_of(past: list[Any], numbers: list[int], first: int, last: int) -> Any:
    """numbers[i], i edges being past: all before `first` are, and none from `last` on is."""
    if first == last:
        return ibis.literal(numbers[first])
    middle = (first + last) // 2
    fewer = _number_of(past, numbers, first, middle)
    more = _number_of(past, numbers, middle + 1, last)
    return ibis.ifelse(past[middle], more, fewer)


def _later(moment: Any, edge: float) -> Any:
    """Whether a timestamp is later than an edge, which is one number of seconds for all databases.

    In memory a time is m / 10^6 with m whole microseconds, rounded towards 1970.
    """
    near = range(int(edge * 1e6) - 1000, int(edge * 1e6) + 1000)
    last = near[bisect_right(near, edge, key=lambda micros: micros / 1e6) - 1]
    return moment > _moment(last, moment) if last < 0 else moment >= _moment(last + 1, moment)


def _moment(micros: int, like: Any) -> Any:
    zone = like.type().timezone
    start = dt.datetime(1970, 1, 1, tzinfo=None if zone is None else dt.UTC)
    text = (start + dt.timedelta(microseconds=micros)).isoformat(" ")
    return ibis.literal(text).cast("timestamp" if zone is None else "timestamp('UTC')")


def _double(value: float | str) -> Any:
    text = value if isinstance(value, str) else repr(float(value))
    return ibis.literal(text).cast("float64")


# What comes back ------------------------------------------------------------------------------


def _batches(remote: RemoteTable) -> Iterator[list[NDArray[Any]]]:
    """The columns of a table as arrays, so many rows at a time; times in seconds."""
    for batch in remote.batches():
        yield [_array(pa.chunked_array([column])) for column in batch.columns]


def _digested(batch: Any, columns: Sequence[Column]) -> Floats:
    """(n, 1 + e) time and features of a batch of cells, as `records` has them in memory."""
    time, *cells = (pa.chunked_array([column]) for column in batch.columns)
    words = [
        records.fingerprints(cell, column.name) if isinstance(column, Category) else _array(cell)
        for cell, column in zip(cells, columns, strict=True)
    ]
    return np.column_stack([_array(time), *words])


def _array(column: Any) -> NDArray[Any]:
    temporal = pa.types.is_temporal(column.type)
    array: NDArray[Any] = arrow.moments(column, "")[0] if temporal else column.to_numpy()
    return array


def _changed() -> InputError:
    return InputError(
        "the records have changed since they were checked: fit a copy that stays as it is"
    )
