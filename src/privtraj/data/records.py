"""Records in memory: read from columns or arrays, checked, and at most so many kept of a person."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base import processes
from privtraj.base.arrays import Floats, Ints, frozen
from privtraj.base.errors import InputError
from privtraj.base.space import utc_seconds
from privtraj.columns.axes import encoded, to_unit
from privtraj.columns.kinds import Category, Column
from privtraj.data import arrow, checks
from privtraj.data.public import PublicInputs
from privtraj.privacy.rows import BLOCK, MemoryRows, digest_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, repr=False)
class Records:
    """n records in data units, as they were given."""

    times: Floats  # (n,)
    datetime: bool
    points: Floats  # (n, e) numbers, and levels of categories
    texts: Floats  # (n, c) what a digest knows of the cells of the c categories among them
    people: tuple[Ints, Any] | None  # codes (n,) and the identifier of each code

    @classmethod
    def of_table(cls, table: pa.Table, public: PublicInputs, person: str | None) -> Records:
        """From the time column, the features and, if named, the person of a table."""
        times, datetime = arrow.moments(table.column(public.time_name), public.time_name)
        cells = [table.column(column.name) for column in public.asked]
        people = None if person is None else arrow.identities(table.column(person), person)
        return cls(times, datetime, *_read(cells, public.asked), people)

    @classmethod
    def of_arrays(cls, times: Any, points: Any, person: Any, columns: Sequence[Column]) -> Records:
        """From times (n,), points (n, e) as `table_of` gives them, and people (n,) or None."""
        values, datetime = _times(times)
        people = None
        if person is not None:
            people = arrow.identities(arrow.to_column(person, "person"), "person")
        if isinstance(points, np.ndarray):
            return cls(values, datetime, points, points[:, :0], people)
        return cls(values, datetime, *_read(points, columns), people)

    def keep(self, rows: NDArray[Any]) -> Records:
        """Some of them, by number or mask."""
        people = None if self.people is None else (self.people[0][rows], self.people[1])
        points, texts = self.points[rows], self.texts[rows]
        return Records(self.times[rows], self.datetime, points, texts, people)


def _read(cells: Sequence[pa.ChunkedArray], columns: Sequence[Column]) -> tuple[Floats, Floats]:
    """Values (n, e) of cells, and fingerprints (n, c) of those of categories."""
    pairs = list(zip(cells, columns, strict=True))
    values = np.column_stack([arrow.values(*pair) for pair in pairs])
    texts = [arrow.fingerprints(cell, one.name) for cell, one in pairs if isinstance(one, Category)]
    return values, np.column_stack(texts) if texts else values[:, :0]


def table_of(points: Any) -> NDArray[np.float64]:
    """Points of any kind of array as (n, d) float64."""
    array = _two_dimensional(points, None)
    if array.dtype.kind not in "biuf":
        raise InputError(f"points must be numbers, not {array.dtype.name}")
    return array.astype(np.float64)


def cells_of(points: Any, names: Sequence[str]) -> list[pa.ChunkedArray]:
    """Points whose columns are of different kinds, (n, e) or (n,), as e columns of cells.

    A table that has all names of the declared columns is read by name, any other one by place.
    """
    fields = getattr(getattr(points, "dtype", None), "names", None)  # of a structured array
    if fields:
        points = {name: points[name] for name in fields}
    if isinstance(points, Mapping) or hasattr(points, "columns") or hasattr(points, "schema"):
        given = arrow.object_names(points)
        by_name = set(names) <= set(given)
        return list(arrow.read_object(points, list(names) if by_name else given).columns)
    array = _two_dimensional(points, object)
    called = dict(enumerate(names))
    return [arrow.to_column(column, called.get(k, "")) for k, column in enumerate(array.T)]


def _two_dimensional(points: Any, kind: Any) -> NDArray[Any]:
    try:
        array = np.asarray(points, dtype=kind)
    except ValueError:
        raise InputError("points must be a table (n, d) with rows of equal length") from None
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise InputError(f"points must have shape (n, d), not {array.ndim} dimensions")
    return array


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


def rows_of(records: Records, public: PublicInputs) -> MemoryRows:
    """Checked and clamped rows; `sql_rows.rows_of` makes the same in a database."""
    names = [column.name for column in public.asked]
    _check_lengths(records)
    checks.check_same_kind(records.datetime, public.axis.datetime, public.time_name)
    records = _complete(records, public)
    digest = digest_of(names, _in_blocks(_digested(records, public.asked)))
    records = _limited_per_person(records, public)
    checks.check_enough(len(records.times))
    # A float64 in [0, 1] rounds to a float32 in [0, 1]: both ends are float32 numbers.
    points = to_unit(public.columns, encoded(public.columns, records.points)).astype(np.float32)
    people = _people(records) if public.most_records > 1 else None
    return MemoryRows(frozen(points), frozen(records.times.copy()), digest, people)


def _people(records: Records) -> Ints | None:
    """(n,) whose, from 0, where that is known."""
    return None if records.people is None else frozen(records.people[0].copy())


def _check_lengths(records: Records) -> None:
    n = len(records.times)
    if len(records.points) != n:
        raise InputError(
            f"there are {n} times and {len(records.points)} points: give one of each per record"
        )
    if records.people is not None and len(records.people[0]) != n:
        raise InputError(
            f"there are {n} times and {len(records.people[0])} person ids: give one per record"
        )


def _complete(records: Records, public: PublicInputs) -> Records:
    """Records without missing values where there may be none; infinite ones are refused."""
    columns = (public.time_name, *(column.name for column in public.asked))
    cells = _cells(records)
    allowed = np.array([False, *(column.missing for column in public.asked)])
    checks.check_infinite(checks.FaultCount.of(np.isinf(cells), columns))
    absent = np.isnan(cells) & ~allowed
    checks.check_missing(checks.FaultCount.of(absent, columns), public.options.missing)
    return records.keep(~np.any(absent, axis=1)) if absent.any() else records


def _cells(records: Records) -> Floats:
    """(n, 1 + d) time and features."""
    return np.column_stack([records.times, records.points])


def _digested(records: Records, columns: Sequence[Column]) -> Floats:
    """(n, 1 + e) time and features, with fingerprints in place of levels: those who declare other
    values, or the same in another order, have the same people."""
    cells = _cells(records)
    cells[:, [1 + k for k, one in enumerate(columns) if isinstance(one, Category)]] = records.texts
    return cells


def _in_blocks(rows: Floats) -> Iterator[Floats]:
    for start in range(0, len(rows), BLOCK):
        yield rows[start : start + BLOCK]


def _limited_per_person(records: Records, public: PublicInputs) -> Records:
    """At most `records_per_person` records of each person, chosen by chance."""
    options = public.options
    if records.people is None:
        return records
    codes, ids = records.people
    checks.check_identified(int((codes < 0).sum()), len(codes))
    counts = np.bincount(codes, minlength=1)
    if processes.several():
        present = np.flatnonzero(counts)
        processes.refuse_shared_people(np.array([str(ids[int(k)]) for k in present], dtype=object))
    repeated = np.count_nonzero(counts > 1)
    if repeated == 0:
        return records
    if options.one_each:
        checks.refuse_several(int(repeated), int(np.count_nonzero(counts)))
    order = np.lexsort((_random_keys(codes, counts, ids, options.seed), codes))
    if not public.together:
        order = _first_in_bin(order, codes, public.axis.bins.of(records.times))
    return records.keep(_first_of_each(order, codes, options.records_per_person))


def _random_keys(codes: Ints, counts: Ints, ids: Any, seed: int | None) -> NDArray[np.uint64]:
    """(n,) keys to sort by, for each record of whoever has several: hash(seed, person, record).

    A key depends on the person's own records and the seed alone. A shuffle of all rows would let
    one person's presence change which record of another is kept, once the seed is known.
    """
    secret = (secrets.token_bytes(32) if seed is None else str(seed).encode())[:64]
    keys = np.zeros(len(codes), dtype=np.uint64)
    seen = np.zeros(len(counts), dtype=np.int64)
    for row in np.flatnonzero(counts[codes] > 1):
        who = codes[row]
        record = f"{seen[who]} {ids[int(who)].as_py()}".encode()
        keys[row] = int.from_bytes(blake2b(record, key=secret, digest_size=8).digest())
        seen[who] += 1
    return keys


def _first_in_bin(order: Ints, codes: Ints, bins: Ints) -> Ints:
    """Of rows in an order, the first of each person in each bin."""
    place = codes[order] * (int(bins.max()) + 1) + bins[order]
    return order[np.sort(np.unique(place, return_index=True)[1])]


def _first_of_each(order: Ints, codes: Ints, most: int) -> Ints:
    """Of rows ordered by person, the first `most` of each, back in the order of the table."""
    who = codes[order]
    rank = np.arange(len(who)) - np.searchsorted(who, who)
    return np.sort(order[rank < most])
