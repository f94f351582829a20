"""Rows in the database that holds them: checked and counted there, through Ibis.

What comes back to this process is how many records fail a check or lie outside of what is declared,
how many are in each cell, and, where the budget buys gradients, one window of time and d
coordinates in float32 for each record. A default fit takes a pass for all checks, one for who has
several records, and one for each question.

The database computes the very numbers that `records` computes in memory, so that a seed gives the
same model:

    unit   u = (y - low) / (high - low) in double, 0 below the box and 1 above it, then as real
    cell   min(floor(k u), k - 1) with the real as double again, so that the product is exact
    slab   of the piece of time after as many edges as are below the time (`_slab`)
    level  of a category, by comparing its cells with all texts or numbers that mean a value

Numbers and times go to the database as text to be cast: as literals, some are read as decimals.
"""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_, or_
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Mask
from privtraj.base.errors import InputError
from privtraj.base.space import Slabs, largest
from privtraj.columns import cells as spelling
from privtraj.columns.kinds import (
    UNDECLARED,
    Angle,
    Category,
    Column,
    Date,
    Flag,
    Integer,
    LogNumber,
)
from privtraj.data import arrow, records
from privtraj.data.dialect import CellKind
from privtraj.data.public import PublicInputs
from privtraj.data.records import RangeCounts, digest_of
from privtraj.data.sql import RemoteTable
from privtraj.privacy.guard import RepeatedRows, SlabRows


@dataclass(frozen=True, eq=False, repr=False)
class SqlRows:
    """Rows in a database; only counts come back until the rows themselves are asked for.

    remote: the wanted columns.  values: of each record, as `_values_of` has them, but its cells.
    required: names of values without which a record is left out.  count: records that are left.
    """

    remote: RemoteTable
    public: PublicInputs
    values: RemoteTable
    required: Sequence[str]
    count: int

    def complete(self, names: Sequence[str], table: Any = None) -> RemoteTable:
        """These values of the records that are not left out, or columns of another table of them.
        Ibis and the database work on every column, also on those that nobody looks at."""
        table = self.values.table if table is None else table
        kept = table.select(*dict.fromkeys((*names, *self.required)))
        if self.required:
            kept = kept.filter(*(~_missing(kept[name]) for name in self.required)).select(*names)
        return self.values.with_table(kept)

    def unit(self, axes: Sequence[int]) -> RemoteTable:
        """The time t and, of these axes, the coordinates u0, u1, ... in the unit cube."""
        columns, asked = self.public.columns, [column.name for column in self.public.asked]
        place = {k: f"y{asked.index(columns[k].of or columns[k].name)}" for k in axes}
        kept = self.complete(["t", *dict.fromkeys(place.values())]).table
        points = {f"u{k}": _point(kept[y], columns[k]) for k, y in place.items()}
        return self.values.with_table(kept.select("t", **points))

    def cell_counts(self, slabs: Slabs, sides: Sequence[int]) -> NDArray[np.int64]:
        """One group-by; the numbers of the cells and the counts come back."""
        cells = math.prod(sides)
        unit = self.unit([k for k, along in enumerate(sides) if along > 1])
        table = unit.table
        place = _slab(table["t"], slabs)
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
        d = len(self.public.columns)
        sizes = self.cell_counts(slabs, (1,) * d)[:, 0]
        ends = np.cumsum(sizes)
        free = ends - sizes
        points = np.empty((sizes.sum(), d), dtype=np.float32)
        unit = self.unit(range(d))
        table = unit.table
        slab = _slab(table["t"], slabs).cast("int32")
        wanted = table.select(*(table[f"u{k}"] for k in range(d)), slab=slab)
        for *values, numbers in _batches(unit.with_table(wanted)):
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
        """None: where somebody has several records, all are in memory."""
        none = np.empty((0, len(self.public.columns)), np.float32)
        return RepeatedRows(np.empty(0, np.int64), np.empty(0), none)

    def identifiers(self) -> Iterator[list[bytes]]:
        """`IdentifiedRows.identifiers`, as they come from the database."""
        for batch in self.complete(["who"]).batches():
            yield records.written(records.identities(pa.chunked_array([batch.column(0)]), "")[1])

    def without(self, gone: Callable[[bytes], bool]) -> Any:
        """Keyed hashes are not computed in a database, so the rows come here."""
        table = records.Records.of_table(self.remote.read(), self.public)
        rows: Any = records.rows_of(table, self.public)[0]
        return rows.without(gone)

    @cached_property
    def digest(self) -> bytes:
        asked, table = self.public.asked, self.remote.table
        read = table.select(**_values_of(table, self.public))
        names = [f"{'c' if isinstance(one, Category) else 'y'}{k}" for k, one in enumerate(asked)]

        def blocks() -> Iterator[Floats]:
            """(n, 1 + e) time and features, as `records` has them in memory."""
            for batch in self.complete(["t", *names], read).batches():
                time, *cells = (pa.chunked_array([column]) for column in batch.columns)
                words = [
                    records.Cells.read(cell, column).content
                    if isinstance(column, Category)
                    else arrow.numbers(cell, column.name)
                    for cell, column in zip(cells, asked, strict=True)
                ]
                yield np.column_stack([arrow.moments(time, "")[0], *words])

        return digest_of([column.name for column in asked], blocks())


def rows_of(remote: RemoteTable, public: PublicInputs) -> tuple[SqlRows, RangeCounts] | None:
    """Rows in the database, after the same checks as in memory, and what lies outside.

    None where the records are needed in memory: somebody has several of which some may have to be
    chosen or matched, identifiers have a form that is only known there, or there are dates that
    databases read in different ways.
    """
    time, person, table = public.time_name, public.person, remote.table

    def cells(name: str) -> Iterator[Any]:
        for batch in remote.with_table(table.select(name)).batches():
            yield from batch.column(0)

    roles = {time: "time"} | {one.name: CellKind.of(one).word for one in public.asked}
    for name, role in (roles if person is None else roles | {person: "person"}).items():
        kind = table[name].type()
        try:
            stored = None if kind.is_unknown() else kind.to_pyarrow()
        except Exception:  # Arrow, or Ibis, has no such type
            stored = None
        arrow.check_type(stored, name, role, cells(name))
    kind = table[time].type()
    records.check_same_kind(kind.is_date() or kind.is_timestamp(), public.axis.datetime, time)
    if not all(_reads_dates(table, column) for column in public.asked):
        return None
    as_written = public.same_person == "exact" and table.get_backend().name in _KNOWN
    kind = None if person is None else table[person].type()
    if kind is not None and (kind.is_binary() or (kind.is_string() and not as_written)):
        return None
    values = {k: value for k, value in _values_of(table, public).items() if k[0] != "c"}
    kept = remote.with_table(table.select(**values))
    if remote.ours:  # what is read of text and of compressed files is read once, if there is room
        all_of_them = _one(remote.with_table(table.aggregate(n=table.count())))["n"]
        kept = kept.stored() if 8 * len(values) * all_of_them <= MOST_STORED else kept
    counted, missing = _checked(kept, public)
    count = missing.total - missing.records
    rows = SqlRows(remote, public, kept, _required(public) if missing.records else (), count)
    if person is not None and not _one_each(rows):
        return None
    records.check_enough(count)
    return rows, counted


# Checks ---------------------------------------------------------------------------------------

_KNOWN = ("duckdb", "postgres", "pyspark")  # to compare texts and days as it is done in memory
MOST_STORED = 2**29  # bytes, half of `sql.MEMORY_LIMIT`
SPARSE = 64  # whole numbers from the least to the largest identifier, for each: a bit for everyone


def _checked(values: RemoteTable, public: PublicInputs) -> tuple[RangeCounts, records.FaultCount]:
    """What lies outside of what is declared, and the records without what they must have, after all
    checks of values: whether there is anything odd, if so what, and when people are recorded."""
    table, times = values.table, public.axis
    columns = {"t": None} | {f"y{k}": column for k, column in enumerate(public.asked)}
    names = dict(zip(columns, [public.time_name, *(one.name for one in public.asked)], strict=True))
    tests: dict[tuple[str, str], Any] = {}
    fine: list[Any] = []  # null for what is missing, and false for NaN
    for at, column in columns.items():
        tests["missing", at] = _missing(table[at])
        if isinstance(column, Category):
            tests["undeclared", at] = table[at] == _double(UNDECLARED)
            fine.append(~tests["undeclared", at])
            continue
        low, high = times.range if column is None else (column.low, column.high)
        from_low, beyond = _later(table[at], np.nextafter(low, -np.inf)), _later(table[at], high)
        tests["below", at] = ~from_low
        tests["above", at] = beyond & ~tests["missing", at]
        tests["infinite", at] = _infinite(table[at])
        fine += [from_low, ~beyond]
        if isinstance(column, Integer):
            tests["broken", at] = _broken(table[at])
            fine.append(~tests["broken", at])
    some = {"infinite": [at for fault, at in tests if fault == "infinite"]}
    some["missing"] = _required(public)
    for fault, places in some.items():
        tests[fault, ""] = reduce(or_, (tests[fault, at] for at in places))

    def counted(tests: Sequence[Any]) -> list[int]:
        asked = {f"n{k}": table.count(where=test) for k, test in enumerate(tests)}
        return [*_one(values.with_table(table.aggregate(**asked))).values()]

    total, good = counted([ibis.literal(True), reduce(and_, fine)])
    n = dict.fromkeys(tests, 0)
    if good < total:
        n = dict(zip(tests, counted([*tests.values()]), strict=True))

    def having(fault: str, at: str = "") -> records.FaultCount:
        where = [at] if at else [place for place in some[fault] if n[fault, place]]
        return records.FaultCount([names[place] for place in where], n[fault, at], total)

    for at, column in columns.items():
        if isinstance(column, Category) and column.other is None:
            records.check(records.undeclared_in(column), having("undeclared", at))
        elif isinstance(column, Integer):
            records.check("broken", having("broken", at))
    records.check("infinite", having("infinite"))
    missing = having("missing")
    if public.missing == "refuse":
        records.check("missing", missing)
    near, known = np.zeros(len(times.times), np.int64), table.filter(~_missing(table["t"]))
    each = known.group_by(place=_slab(known["t"], Slabs.around(times.times)))
    for nearest, many in _batches(values.with_table(each.aggregate(n=known.count()))):
        near[nearest] = many
    found: dict[str, dict[str, int]] = {name: {} for name in names.values()}
    for fault, at in tests:
        if at:
            found[names[at]][fault] = n[fault, at]
    return RangeCounts(total, found, near), missing


def _required(public: PublicInputs) -> list[str]:
    """The names here of the time and of the columns that may not be missing."""
    return ["t", *(f"y{k}" for k, column in enumerate(public.asked) if not column.missing)]


def _one_each(rows: SqlRows) -> bool:
    """Whether everybody has one record; refuses what memory would refuse.

    False where memory has to tell: who it is, of identifiers in a form that is not known here, or
    which of a person's records are kept. Whole numbers that lie close together are counted by a bit
    for each, in a tenth of the time.
    """
    public, people = rows.public, rows.complete(["who"])
    table, database = people.table, people.table.get_backend().name
    if database == "duckdb" and table["who"].type().is_integer() and rows.count:
        ends = table.aggregate(low=table["who"].min(), high=table["who"].max())
        low, high = _one(people.with_table(ends)).values()
        if high - low < SPARSE * rows.count and people.different(low, high) == rows.count:
            return True
    each = table.group_by("who").aggregate(n=table.count())
    who, known = each["who"], ~_missing(each["who"])
    odd = unread = ibis.literal(False)
    if who.type().is_string():
        odd = who.re_search(records.invisible(database))
        unread = who.re_search(spelling.NUMBER_LIKE) & ~who.re_search(spelling.AS_IT_IS)
    elif who.type().is_floating():
        unread = _broken(who) | (who.abs() >= _double(records.ROUNDED[8 * who.type().nbytes]))
    counted = each.aggregate(
        invisible=each["n"].sum(where=known & odd),
        unidentified=each["n"].sum(where=~known),
        unread=each.count(where=known & unread),
        several=each.count(where=known & (each["n"] > 1)),
        people=each.count(where=known),
    )
    counts = _one(people.with_table(counted))
    for fault in ("invisible", "unidentified"):
        found = records.FaultCount([str(public.person)], counts[fault], rows.count)
        records.check(fault, found)
    if counts["several"] and not counts["unread"] and public.one_each:
        records.refuse_several(counts["several"], counts["people"])
    return not (counts["unread"] or counts["several"])


def _one(counts: RemoteTable) -> dict[str, int]:
    """The only row of a table of counts; a sum over nothing is 0."""
    (row,) = counts.read().to_pylist()
    return {name: int(value or 0) for name, value in row.items()}


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


def _values_of(table: Any, public: PublicInputs) -> dict[str, Any]:
    """Of a record the time t, values y0, y1, ... in double, of a category also the cells c0, c1,
    ... that they are made of, and who."""
    moment = table[public.time_name]
    kind = moment.type()
    if kind.is_date():
        moment = moment.cast("timestamp")
    elif not kind.is_timestamp():
        moment = _number(moment)
    columns = {"t": moment}
    for k, column in enumerate(public.asked):
        cell = table[column.name]
        kind = cell.type()
        if isinstance(column, Category):  # text, a whole number or a double
            if not (kind.is_string() or kind.is_integer()):
                whole = kind.is_boolean() or kind.is_null()
                cell = cell.cast("int32" if whole else "float64")
            columns |= {f"c{k}": cell, f"y{k}": _level(cell, column)}
            continue
        value = _seconds(cell) if isinstance(column, Date) else _number(cell)
        if column.missing_codes:
            coded = value.isin([_double(code) for code in column.missing_codes])
            value = ibis.ifelse(coded, ibis.null("float64"), value)
        columns[f"y{k}"] = value
    if public.person is not None:
        columns["who"] = who = table[public.person]
        if who.type().is_string():  # `identifier` of most; others are read in memory
            number = who.strip().re_replace("[.,]0*$", "").re_replace("^[+]?0*", "")
            whole = who.re_search("^ *[+]?([0-9]+|0*[0-9]{1,15}[.,]0*) *$")
            form = ibis.ifelse(whole, ibis.ifelse(number == "", "0", number), who)
            digits = who.strip().replace("-", "").lower()
            columns["who"] = ibis.ifelse(who.re_search(spelling.HEX_LIKE), digits, form)
    return columns


def _level(cell: Any, column: Category) -> Any:
    """`Category.level_of` as double, but null for what is missing, and `UNDECLARED` for what is not
    declared, whatever stands for these."""
    kind, absent, cases = cell.type(), _missing(cell), []
    for key, level in column.keys.items():
        written: list[Any] = []  # all values of a cell of this type that have this key
        if key is not None and kind.is_string():
            written = spelling.spellings(key)
        elif key is not None and kind.is_integer():
            low, high = (0, 2**64) if kind.is_unsigned_integer() else (-(2**63), 2**63)
            written = [int(key)] if spelling.is_whole(key) and low <= int(key) < high else []
        elif key is not None:
            with suppress(ValueError):
                written = [float(key)] if spelling.key_of(float(key)) == key else []
        cases += [(value, _double(level)) for value in written]
    if kind.is_string():
        absent |= cell.isin(sorted(spelling.MISSING - column.keys.keys()))
    known = cell.cases(*cases, else_=_double(UNDECLARED))
    return ibis.ifelse(absent, ibis.null("float64"), known)


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
    if isinstance(column, Angle | LogNumber):  # cosines and logarithms are each database's own
        return False
    if not isinstance(column, Date):
        return True
    kind, database = table[column.name].type(), table.get_backend().name
    if kind.is_date():
        return database in _KNOWN
    if not kind.is_timestamp() or (kind.scale or 6) > 6:
        return False
    return database == "postgres" or (database == "duckdb" and kind.timezone is None)


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
    if isinstance(column, Category):
        value = ibis.ifelse(value == _double(UNDECLARED), _double(column.rest), value)
        if column.missing:
            value = ibis.ifelse(absent, _double(column.level_of(None)), value)
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


def _slab(moment: Any, slabs: Slabs) -> Any:
    """The slab of the piece of time after as many edges as are below the time, found by halving; by
    DuckDB, which has the very same seconds as memory, in half the time by looking it up.

    Then time between the first edge and the last is cut into buckets of equal length, about as many
    as there are edges. A table has how many edges are in buckets before that of a time; with those
    in its own, mostly one, it is compared.
    """
    edges, numbers = slabs.edges, slabs.slab_of_piece.tolist()
    kind = moment.type()
    exact = kind.is_floating() or (kind.scale or 6) <= 6
    if len(edges) < 2 or not exact or moment.get_backend().name != "duckdb":

        def halved(first: int, last: int) -> Any:
            """All edges before `first` are past, and none from `last` on is."""
            if first == last:
                return ibis.literal(numbers[first], "int64")
            middle = (first + last) // 2
            past = _later(moment, edges[middle])
            return ibis.ifelse(past, halved(middle + 1, last), halved(first, middle))

        return halved(0, len(edges))

    def looked_up(values: Any, place: Any) -> Any:
        if np.array_equal(values, np.arange(len(values))):
            return place
        texts = ibis.literal(",".join(map(str, values)))
        return texts.split(",").cast("array<float64>")[place]

    seconds = moment if kind.is_floating() else _seconds(moment)
    first, last = edges[[0, -1]].tolist()
    length = max(float(np.diff(edges).min()), (last - first) / (4 * len(edges)))
    start = first - length / 2
    at = np.floor((edges - start) / length)
    before = np.searchsorted(at, np.arange(at[-1] + 1))
    inside = ibis.greatest(ibis.least(seconds, _double(last)), _double(first))
    bucket = ((inside - _double(start)) / _double(length)).floor().cast("int64")
    piece = looked_up(before, bucket)
    most = int(np.bincount(at.astype(np.int64)).max())
    beyond = np.append(edges, [np.inf] * most)
    for k in range(most):
        piece += (seconds > looked_up(beyond[before + k], bucket)).cast("int64")
    return looked_up(numbers, piece.cast("int64")).cast("int64")


def _later(moment: Any, edge: float) -> Any:
    """Whether a time is later than an edge, which is one number of seconds for all databases.

    In memory a time is m / 10^6 with m whole microseconds, rounded towards 1970.
    """
    if moment.type().is_floating():
        return moment > _double(edge)
    near = range(int(edge * 1e6) - 1000, int(edge * 1e6) + 1000)
    last = near[bisect_right(near, edge, key=lambda micros: micros / 1e6) - 1]
    zone = moment.type().timezone
    start = dt.datetime(1970, 1, 1, tzinfo=None if zone is None else dt.UTC)
    at = start + dt.timedelta(microseconds=last if last < 0 else last + 1)
    kind = "timestamp" if zone is None else "timestamp('UTC')"
    edge_of = ibis.literal(at.isoformat(" ")).cast(kind)
    return moment > edge_of if last < 0 else moment >= edge_of


def _double(value: float | str) -> Any:
    text = value if isinstance(value, str) else repr(float(value))
    return ibis.literal(text).cast("float64")


# What comes back ------------------------------------------------------------------------------


def _batches(remote: RemoteTable) -> Iterator[list[NDArray[Any]]]:
    """The columns of a table of numbers as arrays, so many rows at a time."""
    for batch in remote.batches():
        yield [np.from_dlpack(column) for column in batch.columns]


def _changed() -> InputError:
    return InputError(
        "the records have changed since they were checked: fit a copy that stays as it is"
    )
