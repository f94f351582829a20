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
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Mask
from privtraj.base.errors import InputError
from privtraj.base.space import Slabs, to_unit
from privtraj.columns.cells import MISSING
from privtraj.columns.kinds import Angle, Category, Column, Date, Integer, LogNumber, Number
from privtraj.data import arrow
from privtraj.data.dialect import DATE, NUMBER, CellKind, Dialect, Readings, read_cells
from privtraj.data.public import PublicInputs
from privtraj.data.records import FaultCount, RangeCounts, check_same_kind, identities
from privtraj.domain.domain import Domain

if TYPE_CHECKING:
    import pyarrow as pa

Hashes = NDArray[np.uint64]
Read = TypeVar("Read")

PARTS = 50  # equal ones of a range, to see whether nearly all records are in one of them
SAMPLED = 100_000  # values of a number by which its kind is guessed
MOST = 1 << 21
"""Different hashes that are counted: 32 MB, and a few times that while they are put in order."""


class CellValues(NamedTuple):
    """Values (n,), NaN where missing.  unreadable: (n,) which are."""

    values: Floats
    unreadable: Mask


class ColumnTally:
    """Records of one declared column, or of the time, against what is public of it.

    counts: of known and missing ones; of a category those with a value that is not declared, and
    of these the misspelt, which differ from a declared one by blanks, capitals and small letters
    alone; of a range all others that `_RANGE` names, `broken` being those that are not whole.
    parts: (PARTS,) or (bins,) how many are in each part of the range, those outside at its ends.
    sample: (k,) the first values of a number.
    """

    _RANGE = ("unreadable", "infinite", "below", "above", "at_low", "at_high", "broken")

    def __init__(self, column: Column | None, public: PublicInputs, dialect: Dialect) -> None:
        """column: None for the time."""
        self.column, self.dated = column, public.axis.datetime
        kind = DATE if self.dated else NUMBER
        self.windows = Slabs.around(public.axis.times) if column is None else None
        self.low, self.high = public.axis.range.tolist()
        if column is not None:
            kind = CellKind.of(column)
        if isinstance(column, Number):
            self.low, self.high = float(column.low), float(column.high)
        self.name = public.time_name if column is None else column.name
        self.readings, self.stored_as_text = Readings(self.name, kind, dialect), False
        own = ("undeclared", "misspelt") if isinstance(column, Category) else self._RANGE
        self.counts = dict.fromkeys(("known", "missing", *own), 0)
        self.parts = np.zeros(1, np.int64)
        self.sample: Floats = np.empty(0)

    @property
    def outside(self) -> int:
        return self.counts["below"] + self.counts["above"]

    def add(self, cells: pa.ChunkedArray) -> CellValues:
        """More cells; their values. An `InputError` where the type of the column is another."""
        if isinstance(self.column, Category):
            return self._add_levels(cells, self.column)
        values, unreadable = self._read(cells)
        infinite, known = np.isinf(values), values[np.isfinite(values)]
        self.sample = np.append(self.sample, known[: SAMPLED - len(self.sample)])
        self._count(
            known=np.ones(len(known)),
            missing=np.isnan(values) & ~unreadable,
            unreadable=unreadable,
            infinite=infinite,
            below=known < self.low,
            above=known > self.high,
            at_low=known == self.low,
            at_high=known == self.high,
            broken=(known != np.rint(known)) & isinstance(self.column, Integer),
        )
        clipped = np.clip(known, self.low, self.high)
        if self.windows is not None:
            bins, part = self.windows.count, self.windows.of(clipped)
        else:
            unit, bins = to_unit(clipped, [self.low, self.high]), PARTS
            if isinstance(self.column, LogNumber):
                unit = self.column.to_unit(self.column.coordinates(clipped)[0])
            part = np.minimum((unit * bins).astype(np.int64), bins - 1)
        self.parts = self.parts + np.bincount(part, minlength=bins)
        return CellValues(values, unreadable)

    def _count(self, **masks: NDArray[Any]) -> None:
        for name, mask in masks.items():
            self.counts[name] += int(mask.sum())

    def _read(self, cells: pa.ChunkedArray) -> CellValues:
        """Numbers, dates or times. Text is read by itself, and what of it cannot be read is kept in
        mind for its reason."""
        import pyarrow as pa

        cells, readings = arrow.plain(cells), self.readings
        unreadable: Mask = np.zeros(len(cells), np.bool_)
        if arrow.is_text(cells.type):
            self.stored_as_text, dates = True, readings.kind == DATE
            texts = cells.cast(pa.string()).combine_chunks()
            read, odd = read_cells(texts, readings.kind, readings.dialect)
            unreadable = np.asarray(odd.fill_null(False), dtype=np.bool_)
            readings.read(texts.filter(odd))
            readings.cells += int((~unreadable).sum())
            values = arrow.moments(pa.chunked_array([read]), self.name)[0]
        elif self.column is None:
            values, dates = arrow.moments(cells, self.name)
        else:
            dates = isinstance(self.column, Date)
            values = (arrow.dates if dates else arrow.numbers)(cells, self.name)
        if self.column is None:
            check_same_kind(dates, self.dated, self.name)
        if isinstance(self.column, Number):
            values = self.column.without_codes(values)
        if isinstance(self.column, Angle):  # beyond its period it comes again
            known = np.isfinite(values)
            values[known] = self.column.wrapped(values[known])
        return CellValues(values, unreadable)

    def _add_levels(self, cells: pa.ChunkedArray, column: Category) -> CellValues:
        """Levels (n,), NaN where missing, -1 where nothing stands for the value."""
        codes, coded = arrow.coded_keys(cells, column.name)
        keys = [*coded, None]  # the last for null
        near = {str(key).strip().lower() for key in column.keys if key is not None}
        strange = np.array([not (k is None or k in column.keys or k in MISSING) for k in keys])
        misspelt = np.array([str(key).strip().lower() in near for key in keys]) & strange
        levels = np.array([column.level_of(key) for key in keys])[codes]
        absent = np.isnan(levels)
        if None in column.keys:
            absent |= levels == column.keys[None]
        counted = {"undeclared": strange[codes], "misspelt": misspelt[codes]}
        self._count(known=~absent, missing=absent, **counted)
        return CellValues(levels, np.zeros(len(levels), np.bool_))


class Repeats:
    """Counts of hashes that are spread evenly over 64 bits."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._halvings = 0
        self._hashes: Hashes = np.empty(0, np.uint64)
        self._counts = np.empty(0, np.int64)
        self._waiting: list[Hashes] = []

    def add(self, hashes: Hashes) -> None:
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

    A zero has one sign only, and what is missing one NaN.
    """
    import pandas as pd

    made = {k: x if x.dtype == np.uint64 else x + 0.0 for k, x in enumerate(columns)}
    frame = pd.DataFrame(made or {0: np.zeros(rows)}, index=range(rows))
    frame = frame.where(frame.notna(), np.nan)
    hashes: Hashes = pd.util.hash_pandas_object(frame, index=False).to_numpy()
    return hashes


def text_hashes(texts: Iterable[object]) -> Hashes:
    """(k,) of things that differ if they read differently."""
    import pandas as pd

    hashes: Hashes = pd.util.hash_array(np.array([str(text) for text in texts], dtype=object))
    return hashes


class TableTally:
    """All that is counted of a table, block by block.

    time, columns: counts of the time, and of the declared columns by name.  people: how often each
    has a record; unidentified: records that do not say whose they are.
    refused: sentences about columns of which nothing can be counted, as a fit says them.
    """

    def __init__(
        self,
        public: PublicInputs,
        person: str | None,
        domain: Domain | None,
        dialect: Dialect,
    ) -> None:
        self.public, self.person, self.domain = public, person, domain
        self.time = ColumnTally(None, public, dialect)
        self.columns = {one.name: ColumnTally(one, public, dialect) for one in public.asked}
        self.people = None if person is None else Repeats()
        self.rows = Repeats()
        self.records = self.unidentified = self.outside_domain = self.placed = 0
        self._infinite = self._absent = 0
        self.refused: dict[str, InputError] = {}

    def add(self, table: pa.Table) -> None:
        n, found = len(table), {}
        self.records += n
        for one in (self.time, *self.columns.values()):
            cells = self._unless_refused(one.name, partial(one.add, table.column(one.name)))
            if cells is not None:
                found[one.name] = cells
        who: Hashes | None = None
        if self.person is not None:
            whose = table.column(self.person)
            who = self._unless_refused(self.person, partial(self._identified, whose))
        hashed = [cells.values for cells in found.values()]
        self.rows.add(row_hashes(n, hashed if who is None else [*hashed, who]))
        absent, infinite = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        for name, cells in found.items():
            infinite |= np.isinf(cells.values)
            if name not in self._may_be_missing:
                absent |= np.isnan(cells.values) & ~cells.unreadable
        self._absent += int(absent.sum())
        self._infinite += int(infinite.sum())
        if self.domain is not None and {self.domain.x, self.domain.y} <= found.keys():
            places = np.column_stack([found[str(k)].values for k in (self.domain.x, self.domain.y)])
            places = places[np.isfinite(places).all(axis=1)]
            self.placed += len(places)
            self.outside_domain += int((~self.domain.inside(places)).sum())

    def take(self, counted: RangeCounts) -> None:
        """Counts of a fit in place of the records, which say nothing of people."""
        self.people = None
        self.records, self.time.parts = counted.records, counted.nearest
        for one in (self.time, *self.columns.values()):
            counts = counted.columns[one.name]
            one.counts |= {word: counts[word] for word in counts.keys() & one.counts.keys()}
            one.counts["known"] = counted.records - counts["missing"]

    def _unless_refused(self, name: str, read: Callable[[], Read]) -> Read | None:
        """What is read of a column; None, now and from now on, where its type is refused."""
        if name in self.refused:
            return None
        try:
            return read()
        except InputError as error:
            self.refused[name] = error
            return None

    def _identified(self, cells: pa.ChunkedArray) -> Hashes:
        """A hash (n,) of whose each record is."""
        codes, ids = identities(cells, str(self.person), self.public.same_person)
        hashes = np.append(text_hashes(ids.to_pylist()), np.uint64(0))[codes]
        whose = row_hashes(len(codes), [hashes])
        self.unidentified += int((codes < 0).sum())
        assert self.people is not None
        self.people.add(whose[codes >= 0])
        return whose

    @property
    def _may_be_missing(self) -> set[str]:
        return {column.name for column in self.public.asked if column.missing}

    def _columns_with(self, fault: str) -> list[str]:
        return [k.name for k in (self.time, *self.columns.values()) if k.counts.get(fault)]

    @property
    def absent(self) -> FaultCount:
        """Records that lack what they must have."""
        lacking = [k for k in self._columns_with("missing") if k not in self._may_be_missing]
        return FaultCount(lacking, self._absent, self.records)

    @property
    def infinite(self) -> FaultCount:
        """Records that have infinite values."""
        return FaultCount(self._columns_with("infinite"), self._infinite, self.records)

    @property
    def repeated_rows(self) -> int:
        """Records that are equal to an earlier one, in time, columns and person."""
        counts = self.rows.counts
        return int(counts.sum() - len(counts)) * self.rows.scale

    @property
    def exact(self) -> bool:
        """Whether numbers of people and of equal rows are exact, not estimates."""
        return self.rows.scale == 1 and (self.people is None or self.people.scale == 1)
