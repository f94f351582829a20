"""What is counted of a table in one pass: of each column, of the time, of people and whole rows.

All of it are exact numbers of records, for the steward alone. None is for a model, a certificate or
a ledger, none of which knows this folder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.assess.checking.cells import (
    CellValues,
    known_levels,
    level_cells,
    number_cells,
    time_cells,
)
from privtraj.assess.checking.repeats import Repeats, row_hashes, text_hashes
from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError
from privtraj.base.space import Slabs, to_unit
from privtraj.columns.kinds import Category, Column, Date, Integer, Number
from privtraj.data import arrow
from privtraj.data.dialect import DATE, NUMBER, CellKind, Dialect, Readings
from privtraj.data.public import PublicInputs
from privtraj.data.records import FaultCount, check_same_kind
from privtraj.domain.domain import Domain

if TYPE_CHECKING:
    import pyarrow as pa

PARTS = 50
"""Equal parts of a range, to see whether nearly all records are in one of them."""

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


@dataclass
class RangeTally:
    """Values against a public range [low, high].

    rescaled: (u,) how many would be inside in each of the other units.
    parts: (PARTS,) or (bins,) how many are in each part of the range, those outside at its ends.
    """

    low: float
    high: float
    units: tuple[tuple[float, str], ...] = ()
    known: int = 0
    missing: int = 0
    infinite: int = 0
    below: int = 0
    above: int = 0
    at_low: int = 0
    at_high: int = 0
    stored_as_text: bool = False
    unreadable: int = 0
    rescaled: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    parts: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        self.rescaled = np.zeros(len(self.units), np.int64)

    @property
    def outside(self) -> int:
        return self.below + self.above

    def add(self, cells: CellValues, slabs: Slabs | None = None) -> None:
        """More values; slabs: the parts of the range, if not equal ones."""
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
        for k, (factor, _) in enumerate(self.units):
            other = known * factor
            self.rescaled[k] += int(((self.low <= other) & (other <= self.high)).sum())
        self._add_parts(known, slabs)

    def _add_parts(self, known: Floats, slabs: Slabs | None) -> None:
        inside = np.clip(known, self.low, self.high)
        if slabs is None:
            count = PARTS
            unit = to_unit(inside, [self.low, self.high])
            part = np.minimum((unit * count).astype(np.int64), count - 1)
        else:
            count, part = slabs.count, slabs.of(inside)
        found = np.bincount(part, minlength=count)
        self.parts = found if len(self.parts) == 0 else self.parts + found


@dataclass
class NumberTally(RangeTally):
    """A declared number, whole number or date. broken: how many are not whole."""

    broken: int = 0

    @classmethod
    def of(cls, column: Number) -> NumberTally:
        return cls(float(column.low), float(column.high), () if isinstance(column, Date) else UNITS)

    def read(self, cells: pa.ChunkedArray, column: Number, readings: Readings) -> CellValues:
        """More cells; their values, in data units."""
        found = number_cells(cells, column, readings)
        self.add(found)
        if isinstance(column, Integer):
            whole = found.values[np.isfinite(found.values)]
            self.broken += int((whole != np.rint(whole)).sum())
        return found


@dataclass
class LevelTally:
    """A declared category.

    levels: (C,) records of each.  undeclared: of values that are not declared; misspelt: of these,
    those that differ by blanks, capitals and small letters from one that is.
    """

    levels: Ints
    known: int = 0
    missing: int = 0
    undeclared: int = 0
    misspelt: int = 0

    @classmethod
    def of(cls, column: Category) -> LevelTally:
        return cls(np.zeros(column.levels, np.int64))

    def read(self, cells: pa.ChunkedArray, column: Category) -> CellValues:
        """More cells; their levels."""
        found = level_cells(cells, column)
        known = known_levels(found.values)
        absent = np.isnan(found.values)
        if None in column.keys:
            absent |= found.values == column.keys[None]
        self.levels += np.bincount(found.values[known].astype(np.int64), minlength=column.levels)
        self.missing += int(absent.sum())
        self.known += len(absent) - int(absent.sum())
        self.undeclared += found.undeclared
        self.misspelt += found.misspelt
        return CellValues(found.values, np.zeros(len(known), np.bool_))


@dataclass
class PeopleTally:
    """Whose records they are. unidentified: records that do not say."""

    repeats: Repeats = field(default_factory=Repeats)
    unidentified: int = 0

    def read(self, cells: pa.ChunkedArray, name: str) -> Any:
        """More cells; a hash (n,) of whose each is."""
        codes, ids = arrow.identities(cells, name)
        known = codes >= 0
        self.unidentified += int((~known).sum())
        found = np.append(text_hashes(ids.to_pylist()), np.uint64(0))[codes]
        hashes = row_hashes(len(codes), [found])
        self.repeats.add(hashes[known])
        return hashes

    @property
    def people(self) -> int:
        return len(self.repeats.counts) * self.repeats.scale

    def with_more_than(self, records: int) -> int:
        """People who have more records than that."""
        return int((self.repeats.counts > records).sum()) * self.repeats.scale

    @property
    def most(self) -> int:
        """Records of whoever has most."""
        return int(self.repeats.counts.max(initial=0))


class TableTally:
    """All that is counted of a table, block by block.

    refused: sentences about columns of which nothing can be counted, as a fit says them.
    """

    def __init__(
        self, public: PublicInputs, person: str | None, domain: Domain | None, dialect: Dialect
    ) -> None:
        self.public, self.person, self.domain = public, person, domain
        low, high = public.axis.range.tolist()
        units = () if public.axis.datetime else TIME_UNITS
        self.time = RangeTally(low, high, units)
        self.columns: dict[str, NumberTally | LevelTally] = {
            one.name: LevelTally.of(one) if isinstance(one, Category) else NumberTally.of(one)
            for one in public.asked
        }
        when = DATE if public.axis.datetime else NUMBER
        kinds = {public.time_name: when, **{one.name: CellKind.of(one) for one in public.asked}}
        self.readings = {name: Readings(name, kind, dialect) for name, kind in kinds.items()}
        self.people = None if person is None else PeopleTally()
        self.rows = Repeats()
        self.records = self.incomplete = self.outside_domain = self.placed = 0
        self._infinite = self._absent = 0
        self.refused: dict[str, InputError] = {}
        self._slabs = Slabs.around(public.axis.times)

    def add(self, table: pa.Table) -> None:
        """More records."""
        n = len(table)
        self.records += n
        found: dict[str, CellValues] = {}
        time = self.public.time_name
        self._try(time, found, lambda: self._read_time(table.column(time)))
        for column in self.public.asked:
            cells = table.column(column.name)
            self._try(column.name, found, lambda c=cells, o=column: self._read(c, o))
        who: list[Any] = []
        if self.people is not None and self.person not in self.refused:
            try:
                who = [self.people.read(table.column(self.person), str(self.person))]
            except InputError as error:
                self.refused[str(self.person)] = error
        self._add_rows(found, n)
        self.rows.add(row_hashes(n, [*(one.values for one in found.values()), *who]))

    def _try(self, name: str, found: dict[str, CellValues], read: Any) -> None:
        """Read a column, unless its type is refused."""
        if name in self.refused:
            return
        try:
            found[name] = read()
        except InputError as error:
            self.refused[name] = error

    def _read(self, cells: pa.ChunkedArray, column: Column) -> CellValues:
        tally = self.columns[column.name]
        if isinstance(tally, LevelTally) and isinstance(column, Category):
            return tally.read(cells, column)
        assert isinstance(tally, NumberTally)
        assert isinstance(column, Number)
        return tally.read(cells, column, self.readings[column.name])

    def _read_time(self, cells: pa.ChunkedArray) -> CellValues:
        axis = self.public.axis
        found = time_cells(cells, self.readings[self.public.time_name])
        check_same_kind(found.dates, axis.datetime, self.public.time_name)
        self.time.add(found, self._slabs)
        return found

    def _add_rows(self, found: dict[str, CellValues], n: int) -> None:
        """What is wrong with whole records: some lack what they must have, some are infinite."""
        absent, infinite = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        required = {self.public.time_name, *(c.name for c in self.public.asked if not c.missing)}
        for name, one in found.items():
            infinite |= np.isinf(one.values)
            if name in required:
                absent |= np.isnan(one.values) & ~one.unreadable
        self._absent += int(absent.sum())
        self._infinite += int(infinite.sum())
        if self.domain is not None and {self.domain.x, self.domain.y} <= found.keys():
            places = np.column_stack([found[str(k)].values for k in (self.domain.x, self.domain.y)])
            places = places[np.isfinite(places).all(axis=1)]
            self.placed += len(places)
            self.outside_domain += int((~self.domain.inside(places)).sum())

    @property
    def absent(self) -> FaultCount:
        """Records that lack what they must have."""
        allowed = {column.name for column in self.public.asked if column.missing}
        names = [name for name, one in self._each.items() if one.missing and name not in allowed]
        return FaultCount(names, self._absent, self.records)

    @property
    def infinite(self) -> FaultCount:
        """Records that have infinite values."""
        ranges = {name: one for name, one in self._each.items() if isinstance(one, RangeTally)}
        names = [name for name, one in ranges.items() if one.infinite]
        return FaultCount(names, self._infinite, self.records)

    @property
    def _each(self) -> dict[str, RangeTally | LevelTally]:
        """The counts of the time, and of each column."""
        return {self.public.time_name: self.time, **self.columns}

    @property
    def repeated_rows(self) -> int:
        """Records that are equal to an earlier one, in time, columns and person."""
        counts = self.rows.counts
        return int(counts.sum() - len(counts)) * self.rows.scale

    @property
    def exact(self) -> bool:
        """Whether numbers of people and of equal rows are exact, not estimates."""
        return self.rows.scale == 1 and (self.people is None or self.people.repeats.scale == 1)
