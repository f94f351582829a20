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
from contextlib import suppress
from dataclasses import dataclass, replace
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
    Number,
    of_tables,
)
from privtraj.data import arrow, records
from privtraj.data.dialect import CellKind
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
    whose: who, once each, as codes and identifiers; in_memory: the same rows there.
    """

    records: RemoteTable
    unit: Callable[[Sequence[int]], RemoteTable]
    columns: tuple[Column, ...]
    datetime: bool
    count: int
    people: RemoteTable | None = None
    repeated_count: int = 0
    whose: Any = None
    in_memory: Any = None

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

    def identifiers(self) -> Iterator[list[bytes]]:
        """`IdentifiedRows.identifiers`, as they come from the database."""
        for batch in self.whose.batches():
            yield records.written(records.identities(pa.chunked_array([batch.column(0)]), "")[1])

    def without(self, gone: Callable[[bytes], bool]) -> Any:
        """Keyed hashes are not computed in a database, so the rows come here."""
        return self.in_memory().without(gone)

    @cached_property
    def digest(self) -> bytes:
        asked = of_tables(self.columns)

        def blocks() -> Iterator[Floats]:
            """(n, 1 + e) time and features, as `records` has them in memory."""
            for batch in self.records.batches():
                time, *cells = (pa.chunked_array([column]) for column in batch.columns)
                words = [
                    records.fingerprints(cell, column.name)
                    if isinstance(column, Category)
                    else _array(cell)
                    for cell, column in zip(cells, asked, strict=True)
                ]
                yield np.column_stack([_array(time), *words])

        return digest_of([column.name for column in asked], blocks())


def rows_of(remote: RemoteTable, public: PublicInputs) -> SqlRows | None:
    """Rows in the database, after the same checks as in memory, two passes over the records.

    None where the records are needed in memory: somebody has so many that some are to be chosen,
    which takes a random key for each, or there are dates that databases read in different ways.
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
    datetime = table[time].type().is_date() or table[time].type().is_timestamp()
    records.check_same_kind(datetime, public.axis.datetime, time)
    if not all(_reads_dates(table, column) for column in public.asked):
        return None
    as_written = public.same_person == "exact" and table.get_backend().name in _KNOWN
    kind = None if person is None else table[person].type()
    if kind is not None and (kind.is_binary() or (kind.is_string() and not as_written)):
        return None
    values = _values_of(table, public, datetime)
    missing = _checked(remote.with_table(table.select(**values)), public)
    dropping = _required(public) if missing.records else []

    def complete(names: Sequence[str]) -> Any:
        kept = table.select(**{name: values[name] for name in [*names, *dropping]})
        return kept.filter(~_any(_missing, kept, dropping)) if dropping else kept

    count = missing.total - missing.records
    repeated, whose = 0, None
    if person is not None:
        people = remote.with_table(complete(["t", "who"]))
        too_many, repeated = _counted_people(people, count, public, datetime)
        if too_many:
            return None
        whose = remote.with_table(people.table.select("who").distinct())
    records.check_enough(count)

    asked = [column.name for column in public.asked]
    about = [c.of if isinstance(c, Flag) else c.name for c in public.columns]  # flags, of others

    def unit(wanted: Sequence[int], *more: str) -> RemoteTable:
        places = {k: f"y{asked.index(about[k])}" for k in wanted}
        kept = complete(["t", *more, *places.values()])
        points = {f"u{k}": _point(kept[y], public.columns[k]) for k, y in places.items()}
        return remote.with_table(kept.select(*more, "t", **points))

    everything = range(len(public.columns))
    people_of = unit(everything, "who") if public.most_records > 1 else None
    given = [name for name in values if name[0] in "tc"]
    kept = remote.with_table(complete(given).select(*given))

    def in_memory() -> Any:
        return records.rows_of(records.Records.of_table(remote.read(), public), public)

    several = (people_of, repeated, whose, in_memory)
    return SqlRows(kept, unit, public.columns, datetime, count, *several)


def range_counts(remote: RemoteTable, public: PublicInputs) -> dict[str, dict[str, int]] | None:
    """How many records are known and on which side of what is declared, by the name of a column,
    and of the time also how many are nearest to each time of interest; nothing else comes back.

    None where a database is not known to count as it is done in memory.
    """
    table, axis, asked = remote.table, public.axis, public.asked
    if not all(_reads_dates(table, column) for column in asked):
        return None
    values = _values_of(table, public, axis.datetime)
    for k, column in enumerate(asked):
        if isinstance(column, Category):  # as if nothing stood for what is missing or undeclared
            values[f"y{k}"] = _level(values[f"c{k}"], replace(column, other=None, missing=False))
    kept = table.select(**{name: values[name] for name in values if name[0] in "ty"})
    t, (first, last) = kept["t"], axis.range.tolist()
    sides = (
        {"below": t < _double(first), "above": t > _double(last)}
        if not axis.datetime
        else {
            "below": ~_later(t, math.nextafter(first, -math.inf)),
            "above": _later(t, last),
        }
    )
    tests = {
        public.time_name: {"records": t.isnull() | t.notnull(), "known": ~_missing(t), **sides}
    }
    for k, column in enumerate(asked):
        y = kept[f"y{k}"]
        tests[column.name] = {"known": ~_missing(y)}
        if isinstance(column, Category):
            tests[column.name]["undeclared"] = _undeclared(y)
        elif isinstance(column, Number):
            tests[column.name] |= {
                "below": y < _double(column.low),
                "above": y > _double(column.high),
            }
    called = [(name, fault) for name in tests for fault in tests[name]]
    asking = {f"n{k}": kept.count(where=tests[n][f]) for k, (n, f) in enumerate(called)}
    found: dict[str, dict[str, int]] = {name: {} for name in tests}
    for (name, fault), many in zip(
        called, _one(remote.with_table(kept.aggregate(**asking))).values(), strict=True
    ):
        found[name][fault] = many
    place = _slab(t, Slabs.around(axis.times), axis.datetime)
    nearest = kept.filter(~_missing(t)).group_by(place=place).aggregate(n=lambda rows: rows.count())
    for places, n in _batches(remote.with_table(nearest)):
        found[public.time_name] |= dict(zip(map(str, places), n.tolist(), strict=True))
    return found


# Checks ---------------------------------------------------------------------------------------

_KNOWN = ("duckdb", "postgres", "pyspark")  # to compare texts and days as it is done in memory


def _checked(remote: RemoteTable, public: PublicInputs) -> records.FaultCount:
    """Records without what they must have, after all checks of values: one pass, and one for each
    fault that there is."""
    table, called = remote.table, {"t": public.time_name}
    rules: list[tuple[str, list[str], Callable[[Any], Any]]] = []
    for k, column in enumerate(public.asked):
        called[f"y{k}"] = column.name
        if isinstance(column, Category):
            rules.append((records.undeclared_in(column), [f"y{k}"], _undeclared))
        elif isinstance(column, Integer):
            rules.append(("broken", [f"y{k}"], _broken))
    rules += [("infinite", list(called), _infinite), ("missing", _required(public), _missing)]
    counts = {f"{k}": _any(test, table, places) for k, (_, places, test) in enumerate(rules)}
    asking = {name: table.count(where=test) for name, test in counts.items()}
    counted = _one(remote.with_table(table.aggregate(total=table.count(), **asking)))
    for k, (fault, places, test) in enumerate(rules):
        where: list[str] = []
        if counted[f"{k}"]:  # which of them, in a pass that nobody needs whose records are whole
            each = table.aggregate(**{y: table.count(where=test(table[y])) for y in places})
            where = [called[y] for y, n in _one(remote.with_table(each)).items() if n]
        found = records.FaultCount(where, counted[f"{k}"], counted["total"])
        if fault != "missing" or public.missing == "refuse":
            records.check(fault, found)
    return found


def _counted_people(
    remote: RemoteTable, count: int, public: PublicInputs, datetime: bool
) -> tuple[bool, int]:
    """Whether records are to be chosen, as somebody has more than are kept, or identifiers read,
    as some have a form that is not known here; and the records of all who have several, unless
    these are refused; one pass, or two."""
    table = remote.table
    each = table.group_by("who").aggregate(n=table.count())
    who, known = each["who"], ~_missing(each["who"])
    odd = unread = ibis.literal(False)
    if who.type().is_string():
        odd = who.re_search(records.invisible(each.get_backend().name))
        unread = who.re_search(spelling.NUMBER_LIKE) & ~who.re_search(spelling.AS_IT_IS)
    elif who.type().is_floating():
        unread = _broken(who) | (who.abs() >= _double(records.ROUNDED[8 * who.type().nbytes]))
    several = known & (each["n"] > 1)
    counted = each.aggregate(
        unread=each.count(where=known & unread),
        invisible=each["n"].sum(where=known & odd),
        unidentified=each["n"].sum(where=~known),
        people=each.count(where=known),
        several=each.count(where=several),
        repeated=each["n"].sum(where=several),
        most=each["n"].max(where=known),
    )
    counts = _one(remote.with_table(counted))
    for fault in ("invisible", "unidentified"):
        records.check(fault, records.FaultCount([str(public.person)], counts[fault], count))
    if counts["unread"]:
        return True, 0
    if counts["several"] and public.one_each:
        records.refuse_several(counts["several"], counts["people"])
    too_many = counts["most"] > public.most_records
    if counts["several"] and not (too_many or public.together):  # has somebody two in one bin?
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


def _undeclared(level: Any) -> Any:
    return level == _double(UNDECLARED)


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
        kind = cell.type()
        if isinstance(column, Date):
            value = _seconds(cell)
        elif not isinstance(column, Category):
            value = cell = _number(cell)
            if column.missing_codes:
                coded = cell.isin([_double(code) for code in column.missing_codes])
                value = cell = ibis.ifelse(coded, ibis.null("float64"), cell)
        else:  # text, a whole number or a double
            if not (kind.is_string() or kind.is_integer()):
                whole = kind.is_boolean() or kind.is_null()
                cell = cell.cast("int32" if whole else "float64")
            value = _level(cell, column)
        columns |= {f"c{k}": cell, f"y{k}": value}
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
    """`Category.level_of` as double; null for NaN."""
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
    known = cell.cases(*cases, else_=_double(column.rest))
    missing = _double(column.level_of(None)) if column.missing else ibis.null("float64")
    return ibis.ifelse(absent, missing, known)


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
    """The slab of the piece of time after as many edges as are below the time."""
    edges, numbers = slabs.edges.tolist(), slabs.slab_of_piece.tolist()
    past = [_later(moment, e) if datetime else moment > _double(e) for e in edges]

    def halved(first: int, last: int) -> Any:
        """All edges before `first` are past, and none from `last` on is."""
        if first == last:
            return ibis.literal(numbers[first])
        middle = (first + last) // 2
        return ibis.ifelse(past[middle], halved(middle + 1, last), halved(first, middle))

    return halved(0, len(past))


def _later(moment: Any, edge: float) -> Any:
    """Whether a timestamp is later than an edge, which is one number of seconds for all databases.

    In memory a time is m / 10^6 with m whole microseconds, rounded towards 1970.
    """
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
    """The columns of a table as arrays, so many rows at a time; times in seconds."""
    for batch in remote.batches():
        yield [_array(pa.chunked_array([column])) for column in batch.columns]


def _array(column: Any) -> NDArray[Any]:
    temporal = pa.types.is_temporal(column.type)
    array: NDArray[Any] = arrow.moments(column, "")[0] if temporal else column.to_numpy()
    return array


def _changed() -> InputError:
    return InputError(
        "the records have changed since they were checked: fit a copy that stays as it is"
    )
