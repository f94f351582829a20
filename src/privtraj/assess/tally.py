"""What is counted of a table in one pass: of each column, of the time, of people and whole rows.

All of it are exact numbers of records, for the steward alone; none is for a model, a certificate or
a ledger, none of which knows this file. A fit stops at cells that it cannot read; a look goes on,
and says of them what the fit would. Only what comes back (people, equal rows) needs memory, which
is bounded: things are known by 64-bit hashes, of which all below a limit are counted exactly, and
whenever more than `MOST` are, the limit is halved. What comes back has the same hash, so a share of
those that are counted is that of all, and numbers are scaled by the share below the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints, Mask
from privtraj.base.errors import InputError
from privtraj.base.space import Slabs, to_unit
from privtraj.columns.cells import MISSING
from privtraj.columns.kinds import Angle, Category, Column, Date, Integer, Number
from privtraj.data import arrow
from privtraj.data.dialect import DATE, NUMBER, CellKind, Dialect, Readings, read_cells
from privtraj.data.public import PublicInputs
from privtraj.data.records import FaultCount, check_same_kind
from privtraj.domain.domain import Domain

if TYPE_CHECKING:
    import pyarrow as pa

Hashes = NDArray[np.uint64]
Read = TypeVar("Read")

PARTS = 50
"""Equal parts of a range, to see whether nearly all records are in one of them."""
MOST = 1 << 21
"""Different hashes that are counted: 32 MB, and a few times that while they are put in order."""
_KEY = np.uint64(0x9E3779B97F4A7C15)

UNITS = (
    (0.1, "millimetres for centimetres"),
    (0.01, "centimetres for metres"),
    (0.001, "grams for kilograms, or metres for kilometres"),
    (10.0, "centimetres for millimetres"),
    (100.0, "metres for centimetres, or shares for per cent"),
    (1000.0, "kilograms for grams, or kilometres for metres"),
    (2.54, "inches for centimetres"),
    (0.45359237, "pounds for kilograms"),
    (30.48, "feet for centimetres"),
    (18.0, "mmol/l for mg/dl of glucose"),
    (1 / 18.0, "mg/dl for mmol/l of glucose"),
    (1e-6, "millionths of a unit for units"),
)
"""By what a column may have to be multiplied, and what it is then: the usual mistakes, from general
knowledge, the most usual first."""
TIME_UNITS = (
    (1 / 12, "months for years"),
    (12.0, "years for months"),
    (1 / 365.25, "days for years"),
    (365.25, "years for days"),
    (1 / 7, "days for weeks"),
    (7.0, "weeks for days"),
    (1 / 30.4375, "days for months"),
    (30.4375, "months for days"),
    (24.0, "days for hours"),
    (1 / 24, "hours for days"),
    (60.0, "hours for minutes, or minutes for seconds"),
    (1 / 60, "minutes for hours, or seconds for minutes"),
    (1 / 3600, "seconds for hours"),
    (0.001, "milliseconds for seconds"),
)
"""The same of times that are numbers."""


class CellValues(NamedTuple):
    """Values (n,), NaN where missing.  unreadable: (n,) which are."""

    values: Floats
    unreadable: Mask
    dates: bool = False  # whether values are seconds since 1970-01-01 UTC
    stored_as_text: bool = False


@dataclass
class RangeTally:
    """Values of the time, or of a declared number or date, against a public range [low, high].

    rescaled: (u,) how many would be inside in each of the other units.  broken: not whole.
    parts: (PARTS,) or (bins,) how many are in each part of the range, those outside at its ends.
    """

    low: float
    high: float
    units: tuple[tuple[float, str], ...] = ()
    known: int = 0
    missing: int = 0
    unreadable: int = 0
    infinite: int = 0
    below: int = 0
    above: int = 0
    at_low: int = 0
    at_high: int = 0
    broken: int = 0
    stored_as_text: bool = False
    rescaled: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    parts: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def outside(self) -> int:
        return self.below + self.above

    def read(self, cells: pa.ChunkedArray, column: Number | None, readings: Readings) -> CellValues:
        """Values of cells, in data units; an `InputError` where the column has another type.

        column: None for the time.  readings: of text, of which those that cannot be read are kept
        in mind for their reason.
        """
        import pyarrow as pa

        cells, name = arrow.plain(cells), readings.name
        if arrow.is_text(cells.type):
            texts = cells.cast(pa.string()).combine_chunks()
            values, odd = read_cells(texts, readings.kind, readings.dialect)
            unreadable: Mask = np.asarray(odd.fill_null(False), dtype=np.bool_)
            readings.read(texts.filter(odd))
            readings.cells += int((~unreadable).sum())
            found = arrow.moments(pa.chunked_array([values]), name)[0]
            return CellValues(found, unreadable, readings.kind == DATE, stored_as_text=True)
        dates = isinstance(column, Date)
        if column is None:
            found, dates = arrow.moments(cells, name)
        else:
            found = arrow.dates(cells, name) if dates else arrow.numbers(cells, name)
        return CellValues(found, np.zeros(len(found), np.bool_), dates)

    def add(self, cells: CellValues, windows: Slabs | None, whole: bool) -> None:
        """More values. windows: the parts of the range, if not equal ones.  whole: they are to
        be."""
        values, readable = cells.values, ~cells.unreadable
        self.stored_as_text |= cells.stored_as_text
        self.unreadable += int(cells.unreadable.sum())
        self.missing += int((np.isnan(values) & readable).sum())
        self.infinite += int(np.isinf(values).sum())
        known = values[np.isfinite(values)]
        self.known += len(known)
        self.below += int((known < self.low).sum())
        self.above += int((known > self.high).sum())
        self.at_low += int((known == self.low).sum())
        self.at_high += int((known == self.high).sum())
        self.broken += int((known != np.rint(known)).sum()) if whole else 0
        others = [known * factor for factor, _ in self.units]
        inside = [int(((self.low <= x) & (x <= self.high)).sum()) for x in others]
        self.rescaled = np.array(inside, np.int64) + (self.rescaled if len(self.rescaled) else 0)
        count, clipped = PARTS, np.clip(known, self.low, self.high)
        if windows is None:
            unit = to_unit(clipped, [self.low, self.high])
            part = np.minimum((unit * count).astype(np.int64), count - 1)
        else:
            count, part = windows.count, windows.of(clipped)
        self.parts = np.bincount(part, minlength=count) + (self.parts if len(self.parts) else 0)


@dataclass
class LevelTally:
    """A declared category. undeclared: cells with values that are not declared; misspelt: of these,
    those that differ by blanks, capitals and small letters from one that is."""

    known: int = 0
    missing: int = 0
    undeclared: int = 0
    misspelt: int = 0

    def add(self, cells: pa.ChunkedArray, column: Category) -> CellValues:
        """More cells; their levels (n,), NaN where missing, -1 where nothing stands for the
        value. An `InputError` where the type of the column is another."""
        codes, coded = arrow.coded_keys(cells, column.name)
        keys = [*coded, None]  # the last for null
        near = {str(key).strip().lower() for key in column.keys if key is not None}
        strange = np.array([not (k is None or k in column.keys or k in MISSING) for k in keys])
        misspelt = np.array([str(key).strip().lower() in near for key in keys]) & strange
        levels = np.array([column.level_of(key) for key in keys])[codes]
        absent = np.isnan(levels)
        if None in column.keys:
            absent |= levels == column.keys[None]
        self.missing += int(absent.sum())
        self.known += len(absent) - int(absent.sum())
        self.undeclared += int(strange[codes].sum())
        self.misspelt += int(misspelt[codes].sum())
        return CellValues(levels, np.zeros(len(levels), np.bool_))


# What comes back ------------------------------------------------------------------------------


class Repeats:
    """Counts of hashes that are spread evenly over 64 bits."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._halvings = 0
        self._hashes: Hashes = np.empty(0, np.uint64)
        self._counts = np.empty(0, np.int64)
        self._waiting: list[Hashes] = []

    def add(self, hashes: Hashes) -> None:
        """Some more of them (n,)."""
        self._waiting.append(self._below(hashes))
        if sum(map(len, self._waiting)) > self._most:
            self._compact()

    @property
    def counts(self) -> NDArray[np.int64]:
        """(k,) how often each of those that are counted came."""
        self._compact()
        return self._counts

    @property
    def scale(self) -> int:
        """How many things one that is counted stands for; 1 if all are counted."""
        self._compact()
        return 1 << self._halvings

    def more_than(self, times: int) -> int:
        """Things that came more often."""
        return int((self.counts > times).sum()) * self.scale

    def _below(self, hashes: Hashes) -> Hashes:
        limit = np.uint64(2**64 - 1) >> np.uint64(self._halvings)
        return hashes[hashes <= limit]

    def _compact(self) -> None:
        if not self._waiting:
            return
        every = np.concatenate([self._hashes, *self._waiting])
        each = np.concatenate([self._counts, np.ones(len(every) - len(self._counts), np.int64)])
        self._waiting = []
        self._hashes, place = np.unique(every, return_inverse=True)
        self._counts = np.bincount(place, each, len(self._hashes)).astype(np.int64)
        while len(self._hashes) > self._most:
            self._halvings += 1
            kept = len(self._below(self._hashes))  # they are sorted
            self._hashes, self._counts = self._hashes[:kept], self._counts[:kept]


def row_hashes(rows: int, columns: Iterable[NDArray[np.float64] | Hashes]) -> Hashes:
    """(n,) of n rows, given as columns (n,): numbers, NaN where missing, or hashes.

    A zero has one sign only, and what is missing one NaN. Words are mixed by the finaliser of
    SplitMix64: every bit of the result depends on every bit of the word.
    """
    found: Hashes = np.full(rows, _KEY)
    for column in columns:
        words: Any = column
        if column.dtype != np.uint64:
            words = np.where(np.isnan(column), np.nan, column + 0.0).view(np.uint64)
        words = found ^ words
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        found = (words ^ (words >> np.uint64(31))) + _KEY
    return found


def text_hashes(texts: Iterable[object]) -> Hashes:
    """(k,) of things that differ if they read differently; other ones in every process."""
    return np.array([hash(str(text)) % 2**64 for text in texts], dtype=np.uint64)


# The table ------------------------------------------------------------------------------------


class TableTally:
    """All that is counted of a table, block by block.

    columns: counts of the declared ones, those of the time in `time`.  people: how often each has
    a record; unidentified: records that do not say whose they are.
    refused: sentences about columns of which nothing can be counted, as a fit says them.
    """

    def __init__(
        self, public: PublicInputs, person: str | None, domain: Domain | None, dialect: Dialect
    ) -> None:
        self.public, self.person, self.domain = public, person, domain
        dated, (low, high) = public.axis.datetime, public.axis.range.tolist()
        self.time = RangeTally(low, high, () if dated else TIME_UNITS)
        self.columns: dict[str, RangeTally | LevelTally] = {}
        kinds = {public.time_name: DATE if dated else NUMBER}
        for column in public.asked:
            kinds[column.name] = CellKind.of(column)
            if isinstance(column, Number):
                units = () if isinstance(column, Date | Angle) else UNITS
                ends = float(column.low), float(column.high)
                self.columns[column.name] = RangeTally(*ends, units)
            else:
                self.columns[column.name] = LevelTally()
        self.readings = {name: Readings(name, kind, dialect) for name, kind in kinds.items()}
        self.people = None if person is None else Repeats()
        self.rows = Repeats()
        self.records = self.unidentified = self.outside_domain = self.placed = 0
        self._infinite = self._absent = 0
        self.refused: dict[str, InputError] = {}
        self._windows = Slabs.around(public.axis.times)

    def add(self, table: pa.Table) -> None:
        """More records."""
        n, found, who = len(table), {}, None
        self.records += n
        time: list[Column | None] = [None]
        for column in (*time, *self.public.asked):
            name = self.public.time_name if column is None else column.name
            cells = table.column(name)
            values = self._unless_refused(name, partial(self._counted, column, cells))
            if values is not None:
                found[name] = values
        if self.person is not None:
            whose = table.column(self.person)
            who = self._unless_refused(self.person, partial(self._identified, whose))
        hashed = [one.values for one in found.values()]
        self.rows.add(row_hashes(n, hashed if who is None else [*hashed, who]))
        absent, infinite = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        for name, one in found.items():
            infinite |= np.isinf(one.values)
            if name not in self._may_be_missing:
                absent |= np.isnan(one.values) & ~one.unreadable
        self._absent += int(absent.sum())
        self._infinite += int(infinite.sum())
        if self.domain is not None and {self.domain.x, self.domain.y} <= found.keys():
            places = np.column_stack([found[str(k)].values for k in (self.domain.x, self.domain.y)])
            places = places[np.isfinite(places).all(axis=1)]
            self.placed += len(places)
            self.outside_domain += int((~self.domain.inside(places)).sum())

    def _unless_refused(self, name: str, read: Callable[[], Read]) -> Read | None:
        """What is read of a column; None, now and from now on, where its type is refused."""
        if name in self.refused:
            return None
        try:
            return read()
        except InputError as error:
            self.refused[name] = error
            return None

    def _counted(self, column: Column | None, cells: pa.ChunkedArray) -> CellValues:
        """More cells of a column, or of the time: their values."""
        if column is None:
            name, dated = self.public.time_name, self.public.axis.datetime
            found = self.time.read(cells, None, self.readings[name])
            check_same_kind(found.dates, dated, name)
            self.time.add(found, self._windows, whole=False)
            return found
        tally = self.columns[column.name]
        if isinstance(tally, LevelTally):
            assert isinstance(column, Category)
            return tally.add(cells, column)
        assert isinstance(column, Number)
        found = tally.read(cells, column, self.readings[column.name])
        if isinstance(column, Angle):  # beyond its period it comes again
            known = np.isfinite(found.values)
            found.values[known] = column.wrapped(found.values[known])
        tally.add(found, None, isinstance(column, Integer))
        return found

    def _identified(self, cells: pa.ChunkedArray) -> Hashes:
        """A hash (n,) of whose each record is."""
        codes, ids = arrow.identities(cells, str(self.person))
        hashes = np.append(text_hashes(ids.to_pylist()), np.uint64(0))[codes]
        whose = row_hashes(len(codes), [hashes])
        self.unidentified += int((codes < 0).sum())
        assert self.people is not None
        self.people.add(whose[codes >= 0])
        return whose

    @property
    def _may_be_missing(self) -> set[str]:
        return {column.name for column in self.public.asked if column.missing}

    @property
    def absent(self) -> FaultCount:
        """Records that lack what they must have."""
        each = {self.public.time_name: self.time, **self.columns}
        lacking = [k for k, one in each.items() if one.missing and k not in self._may_be_missing]
        return FaultCount(lacking, self._absent, self.records)

    @property
    def infinite(self) -> FaultCount:
        """Records that have infinite values."""
        each = {self.public.time_name: self.time, **self.columns}
        names = [k for k, one in each.items() if isinstance(one, RangeTally) and one.infinite]
        return FaultCount(names, self._infinite, self.records)

    @property
    def repeated_rows(self) -> int:
        """Records that are equal to an earlier one, in time, columns and person."""
        counts = self.rows.counts
        return int(counts.sum() - len(counts)) * self.rows.scale

    @property
    def exact(self) -> bool:
        """Whether numbers of people and of equal rows are exact, not estimates."""
        return self.rows.scale == 1 and (self.people is None or self.people.scale == 1)
