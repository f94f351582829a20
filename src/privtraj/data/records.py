"""Records in memory: read from columns or arrays, checked, and at most so many kept of a person.

The checks are by counts and names of columns, with the same sentences wherever the records live: in
memory the counts come from masks, in a database from one query each. The domain of the guarantee is
the tables that pass. Whether one does is told exactly and for nothing, and a message may count
records, so it is for the steward alone: an exception while `Snapshots` are made, before there is a
ledger to pay from, a model or a certificate. Neighbours are tables that both pass; of one that does
not, nothing is ever released. Behind these checks a fit must not stop for anything that depends on
records, as that would be seen (`guard`).
"""

from __future__ import annotations

import secrets
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import blake2b, sha256
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from privtraj.base.arrays import Floats, Ints, Mask, frozen
from privtraj.base.errors import Arg, InputError, Said, listed
from privtraj.base.space import Slabs
from privtraj.columns import cells as spelling
from privtraj.columns.cells import MISSING, fingerprint
from privtraj.columns.kinds import (
    Angle,
    Boolean,
    Category,
    Column,
    Date,
    Integer,
    encoded,
    to_unit,
)
from privtraj.data import arrow
from privtraj.data.public import PublicInputs
from privtraj.privacy.guard import BLOCK, MemoryRows

MIN_RECORDS = 10


class FaultCount(NamedTuple):
    """How many of all records have a fault, such as a missing value, and in which columns."""

    columns: list[str]
    records: int
    total: int

    @classmethod
    def of(cls, faults: Mask, columns: Sequence[str]) -> FaultCount:
        """From the faults (n, c) of n records in c columns."""
        where = [name for name, bad in zip(columns, np.any(faults, axis=0), strict=True) if bad]
        return cls(where, int(faults.any(axis=1).sum()), len(faults))


class RangeCounts(NamedTuple):
    """On which side of what is declared records lie, for their steward alone.

    records: all of them.  columns: {name: {word: count}} of the time and the declared columns: how
    many are missing, below and above a range, and of a category not declared.
    nearest: (T,) how many are nearest to each time of interest.
    """

    records: int
    columns: dict[str, dict[str, int]]
    nearest: Ints


_FAULTS: dict[str, tuple[str | Arg | Said, ...]] = {
    "infinite": ("have infinite values in {}: correct or remove them",),
    "undeclared": (
        "have values in {} that are not declared: declare them, or an other that stands for them, "
        "or correct them",
    ),
    "no answer": (
        "have values in {} that are not true or false, yes or no, 1 or 0: declare a category with "
        "its public values, or correct them",
    ),
    "broken": ("have values in {} that are not whole: round them, or declare numbers",),
    "missing": (
        "have missing values in {}: say that people may lack it with ",
        Said("missing=True in its column", "missing in its --column"),
        ", fill them in, or lose these people with ",
        Arg("missing", "drop"),
    ),
    "invisible": (
        "have control or invisible characters in the person column {}, which make two people of "
        "one: remove them",
    ),
    "rounded": (
        "have numbers in the person column {} that were rounded: write whole ones, or text, as "
        "they were before",
    ),
    "unidentified": (
        "do not say whose they are (",
        Arg("person="),
        "): fill it in, or remove these records",
    ),
}


def check(fault: str, found: FaultCount) -> None:
    """Refuse records that have a fault."""
    if found.records:
        what, *more = _FAULTS[fault]
        words = str(what).format(listed(found.columns))
        raise InputError(f"{found.records} of {found.total} records {words}", *more)


def undeclared_in(column: Category) -> str:
    """The fault of values that are not declared: a new one would be somebody's."""
    return "no answer" if isinstance(column, Boolean) else "undeclared"


def check_same_kind(column: bool, axis: bool, time_name: str) -> None:
    """Dates with dates, numbers with numbers."""
    if column != axis:
        held, given = ("dates", "numbers") if column else ("numbers", "dates")
        raise InputError(
            f"the time column '{time_name}' holds {held} but ",
            Arg("time_range"),
            f" and bins are {given}: write them as {held}" + " such as '2024-01-31'" * column,
        )


def refuse_several(several: int, people: int) -> None:
    """Somebody has several records, and the user has not said what to do about it."""
    raise InputError(
        f"{several} of {people} people have more than one record: keep one record per person, or "
        "let ",
        Arg("one_per_person", "random"),
        " choose it, or keep several of each with ",
        Arg("records_per_person="),
    )


def check_enough(usable: int) -> None:
    if usable < MIN_RECORDS:
        raise InputError(
            f"{usable} usable records are too few: the table must have at least {MIN_RECORDS}"
        )


# Cells of declared columns ------------------------------------------------------------------------


class Cells(NamedTuple):
    """Cells of a declared column (n,).

    values: numbers, or levels of a category; NaN where missing, unless that is a level of its own.
    content: what a digest knows of them: numbers, or fingerprints of a category's texts.
    undeclared: how many have a value of a category that is not declared.
    """

    values: Floats
    content: Floats
    undeclared: int = 0

    @classmethod
    def read(cls, cells: pa.ChunkedArray, column: Column) -> Cells:
        """Refuses values that a declared column cannot have."""
        if isinstance(column, Category):
            codes, known = arrow.coded_keys(cells, column.name)
            keys = [*known, None]  # the last for null
            strange = [not (key in column.keys or key in (None, *MISSING)) for key in keys]
            undeclared = int(np.sum(np.array(strange)[codes]))
            if column.other is None:
                check(undeclared_in(column), FaultCount([column.name], undeclared, len(codes)))
            levels = np.array([column.level_of(key) for key in keys])[codes]
            prints = np.array([fingerprint(key) for key in keys])[codes]
            return cls(levels, prints, undeclared)
        if isinstance(column, Date):
            found = arrow.dates(cells, column.name)
        else:
            found = column.without_codes(arrow.numbers(cells, column.name))
        if isinstance(column, Integer):
            broken = int(np.sum(np.isfinite(found) & (found != np.rint(found))))
            check("broken", FaultCount([column.name], broken, len(found)))
        return cls(found, found)


# Whose a record is ------------------------------------------------------------------------------

_UNSEEN = "0-1f 7f-9f ad-ad 200b-200f 2028-202e 2060-2064 feff-feff"


def invisible(database: str = "") -> str:
    """Pattern of control characters and of those without width, for RE2, Java or PostgreSQL."""
    form = "\\u{:04x}" if database == "postgres" else "\\x{{{:x}}}"
    first = int(database == "postgres")  # which has no 0 in texts
    ends = [[max(int(end, 16), first) for end in one.split("-")] for one in _UNSEEN.split()]
    return "[" + "".join(f"{form.format(low)}-{form.format(high)}" for low, high in ends) + "]"


ROUNDED = {16: 2.0**11, 32: 2.0**24, 64: 2.0**53}  # from where floats lack whole numbers, by bits


def identities(
    column: pa.ChunkedArray, name: str, same: str = "exact"
) -> tuple[NDArray[np.int64], pa.Array]:
    """A column of identifiers as codes (n,), -1 for missing, and the identifier of each code.

    One person has one code, however the identifier is written (`identifier`): a number, text, or
    bytes, which are text or digits of a UUID.
    same: of texts, "exact", "trimmed" without the blanks around, or "folded" to small letters too.
    """
    uuid = isinstance(column.type, pa.UuidType)
    column = arrow.plain(column)
    arrow.check_type(column.type, name, "person")
    codes, ids = arrow.encoded(column)

    def refuse(fault: str, people: Any) -> None:
        count = int(np.append(people, False)[codes].sum())
        check(fault, FaultCount([name], count, len(codes)))

    if pa.types.is_floating(ids.type):
        numbers = np.asarray(ids)
        large = np.abs(numbers) >= ROUNDED[column.type.bit_width]
        refuse("rounded", large | (numbers != np.floor(numbers)))
    if "binary" in str(ids.type):  # all of a column are text, or none is
        texts = [one.hex() for one in ids.to_pylist()]
        if not uuid:
            with suppress(UnicodeDecodeError):
                texts = [one.decode() for one in ids.to_pylist()]
        ids = pa.array(texts, pa.string())
    if not arrow.is_text(ids.type):
        return codes, ids
    ids = ids.cast(pa.large_string())
    refuse("invisible", compute.match_substring_regex(ids, invisible()))
    if same == "exact":
        odd = compute.match_substring_regex(ids, f"{spelling.NUMBER_LIKE}|{spelling.HEX_LIKE}")
        odd = compute.and_not(odd, compute.match_substring_regex(ids, spelling.AS_IT_IS))
        if not odd.true_count:
            return codes, ids
    texts = ids.to_pylist() if same == "exact" else [text.strip() for text in ids.to_pylist()]
    if same == "folded":
        texts = [unicodedata.normalize("NFKC", text).casefold() for text in texts]
    forms = [spelling.identifier(text) for text in texts]
    refuse("rounded", [form is None for form in forms])
    people = {form: k for k, form in enumerate(dict.fromkeys(forms))}
    merged = [people[form] for form in forms]
    return np.array([*merged, -1])[codes], pa.array(list(people), pa.string())


def written(ids: pa.Array) -> list[bytes]:
    """Identifiers as bytes that are the same wherever a person is: 7 is 7.0 and the text "7"."""
    texts: Iterable[Any] = ids.to_pylist()
    if not arrow.is_text(ids.type):
        texts = (
            spelling.plain_number(str(x)) if isinstance(x, Decimal) else str(int(x)) for x in texts
        )
    return [text.encode("utf-8", "surrogatepass") for text in texts]


@dataclass(frozen=True, eq=False, repr=False)
class IdentifiedRows(MemoryRows):
    """Rows of which it is known whose they are. whose: codes (n,), and the identifier of each."""

    whose: tuple[Ints, Any] = field(kw_only=True)

    def identifiers(self) -> Iterator[list[bytes]]:
        """Of all who have a row, so many at a time."""
        codes, ids = self.whose
        present = np.unique(codes)
        for start in range(0, len(present), BLOCK):
            yield written(ids.take(pa.array(present[start : start + BLOCK])))

    def without(self, gone: Callable[[bytes], bool]) -> IdentifiedRows:
        """Without the rows of some people; the digest is still that of the table."""
        codes, ids = self.whose
        stay = np.zeros(len(ids), dtype=np.bool_)
        stay[np.unique(codes)] = [not gone(one) for some in self.identifiers() for one in some]
        kept = stay[codes]
        points, times = frozen(self.points[kept]), frozen(self.times[kept])
        people = None if self.people is None else frozen(self.people[kept])
        check_enough(len(times))
        return IdentifiedRows(points, times, self.digest, people, whose=(codes[kept], ids))


@dataclass(frozen=True, repr=False)
class Records:
    """n records in data units, as they were given."""

    times: Floats  # (n,)
    datetime: bool
    cells: Sequence[Cells]  # of the e declared columns
    people: tuple[Ints, Any] | None  # codes (n,) and the identifier of each code

    @classmethod
    def of(
        cls,
        times: pa.ChunkedArray,
        cells: Sequence[pa.ChunkedArray],
        person: pa.ChunkedArray | None,
        public: PublicInputs,
    ) -> Records:
        """From columns: the time, e features and, unless nobody says, whose each record is."""
        moments, datetime = arrow.moments(times, public.time_name)
        read = [Cells.read(*pair) for pair in zip(cells, public.asked, strict=True)]
        people = None
        if person is not None:
            people = identities(person, public.person or "person", public.same_person)
        return cls(moments, datetime, read, people)

    @classmethod
    def of_table(cls, table: pa.Table, public: PublicInputs) -> Records:
        """From the time column, the features and, if named, the person of a table."""
        cells = [table.column(column.name) for column in public.asked]
        person = None if public.person is None else table.column(public.person)
        return cls.of(table.column(public.time_name), cells, person, public)

    @property
    def values(self) -> Floats:
        """(n, e) numbers, and levels of categories."""
        return np.column_stack([one.values for one in self.cells])


def moments_of(times: Any) -> pa.ChunkedArray:
    """Times (n,) of any kind of array as a column."""
    try:
        array = np.asarray(times)
    except ValueError:
        raise InputError("times must be a list with one time per record") from None
    if array.ndim != 1:
        raise InputError(f"times must have shape (n,), not {array.ndim} dimensions")
    if array.dtype.kind == "M":  # of any unit, of which Arrow has some
        array = array.astype("datetime64[us]")
    return arrow.to_column(array if array.dtype.kind in "Mbiuf" else times, "time")


def cells_of(points: Any, names: Sequence[str]) -> list[pa.ChunkedArray]:
    """Points (n, e) or (n,), an array or a table, as e columns of cells.

    A table that has all names of the declared columns is read by name, any other one by place.
    """
    fields = getattr(getattr(points, "dtype", None), "names", None)  # of a structured array
    if fields:
        points = {name: points[name] for name in fields}
    if isinstance(points, Mapping) or hasattr(points, "columns") or hasattr(points, "schema"):
        given = arrow.object_names(points)
        by_name = len(names) > 0 and set(names) <= set(given)
        return list(arrow.read_object(points, list(names) if by_name else given).columns)
    try:
        array = np.asarray(points)
        if array.dtype.kind not in "biuf":
            array = np.asarray(points, dtype=object)
    except ValueError:
        raise InputError("points must be a table (n, d) with rows of equal length") from None
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise InputError(f"points must have shape (n, d), not {array.ndim} dimensions")
    called = [*names, *(f"x{k + 1}" for k in range(len(names), array.shape[1]))]
    return [arrow.to_column(column, name) for name, column in zip(called, array.T, strict=False)]


def rows_of(records: Records, public: PublicInputs) -> tuple[MemoryRows, RangeCounts]:
    """Checked and clamped rows, and what lies outside; `sql_rows.rows_of` makes the same in a
    database."""
    given = {"points": len(records.cells[0].values)}
    if records.people is not None:
        given["person ids"] = len(records.people[0])
    for what, count in given.items():
        if count != len(records.times):
            raise InputError(
                f"there are {len(records.times)} times and {count} {what}: give one of each per "
                "record"
            )
    check_same_kind(records.datetime, public.axis.datetime, public.time_name)
    times, values = records.times, records.values
    names = [public.time_name, *(column.name for column in public.asked)]
    cells = np.column_stack([times, values])
    check("infinite", FaultCount.of(np.isinf(cells), names))
    counted = _range_counts(records, public)
    lacking = np.isnan(cells) & ~np.array([False, *(column.missing for column in public.asked)])
    if public.missing == "refuse":
        check("missing", FaultCount.of(lacking, names))
    # In a digest fingerprints stand in place of levels: those who declare other values, or the
    # same in another order, have the same people.
    content = [times, *(one.content for one in records.cells)]
    codes, ids = (None, None) if records.people is None else records.people
    kept = np.flatnonzero(~lacking.any(axis=1))
    some = (kept[start : start + BLOCK] for start in range(0, len(kept), BLOCK))
    blocks = (np.column_stack([one[rows] for one in content]) for rows in some)
    digest = digest_of(names[1:], blocks)
    if codes is not None:
        kept = kept[_limited_per_person(times[kept], codes[kept], ids, public)]
    check_enough(len(kept))
    # A float64 in [0, 1] rounds to a float32 in [0, 1]: both ends are float32 numbers.
    points = to_unit(public.columns, encoded(public.columns, values[kept])).astype(np.float32)
    points, times = frozen(points), frozen(times[kept])
    if codes is None:
        return MemoryRows(points, times, digest), counted
    codes = frozen(codes[kept])
    people = codes if public.most_records > 1 else None
    return IdentifiedRows(points, times, digest, people, whose=(codes, ids)), counted


def _range_counts(records: Records, public: PublicInputs) -> RangeCounts:
    found: dict[str, dict[str, int]] = {}
    times = records.times
    columns = [(public.time_name, times, *public.axis.range)]
    for column, cells in zip(public.asked, records.cells, strict=True):
        if isinstance(column, Category):
            absent = np.isnan(cells.values) | (cells.values == column.level_of(None))
            found[column.name] = {"undeclared": cells.undeclared, "missing": int(absent.sum())}
        else:  # beyond its period an angle comes again
            ends = (-np.inf, np.inf) if isinstance(column, Angle) else (column.low, column.high)
            columns.append((column.name, cells.values, *ends))
    for name, values, low, high in columns:
        counts = {"missing": np.isnan(values), "below": values < low, "above": values > high}
        found[name] = {word: int(which.sum()) for word, which in counts.items()}
    near = Slabs.around(public.axis.times).of(times[~np.isnan(times)])
    count = np.bincount(near, minlength=len(public.axis.times))
    return RangeCounts(len(times), found, count)


def _limited_per_person(times: Floats, codes: Ints, ids: Any, public: PublicInputs) -> Ints:
    """Which records are kept: at most `records_per_person` of each person, chosen by chance."""
    check("unidentified", FaultCount([], int((codes < 0).sum()), len(codes)))
    counts = np.bincount(codes, minlength=1)
    repeated = np.count_nonzero(counts > 1)
    if repeated == 0:
        return np.arange(len(codes))
    if public.one_each:
        refuse_several(int(repeated), int(np.count_nonzero(counts)))
    order = np.lexsort((_random_keys(codes, counts, ids, public.seed), codes))
    if not public.together:  # the first of each person in each bin
        bins = public.axis.bins.of(times)
        place = codes[order] * (int(bins.max()) + 1) + bins[order]
        order = order[np.sort(np.unique(place, return_index=True)[1])]
    who = codes[order]
    rank = np.arange(len(who)) - np.searchsorted(who, who)
    return np.sort(order[rank < public.records_per_person])


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


_LANES = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03))


def digest_of(names: Sequence[str], batches: Iterable[NDArray[np.float64]]) -> bytes:
    """Digest of records (n, 1 + e), time and named features, in any order of rows and features.

    A feature is a number in data units, NaN where it is missing, or the fingerprint of a category's
    text: nothing that depends on what is declared of it.

    sha256 of the names and of the sum over records of two 64-bit hashes, by the finaliser of
    SplitMix64. It has to tell tables apart, not to withstand somebody who builds two alike.
    """
    order = [0, *(1 + k for k in sorted(range(len(names)), key=lambda k: names[k]))]
    totals = np.zeros(len(_LANES), dtype=np.uint64)
    count = 0
    for batch in batches:
        count += len(batch)
        # a zero has one sign only, and what is missing one NaN
        words = np.where(np.isnan(batch), np.nan, batch + 0.0).view(np.uint64)
        for lane, key in enumerate(_LANES):
            hashed = np.full(len(batch), key)
            for k in order:
                hashed = hashed ^ words[:, k]
                hashed = (hashed ^ (hashed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                hashed = (hashed ^ (hashed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                hashed = (hashed ^ (hashed >> np.uint64(31))) + key
            totals[lane : lane + 1] += hashed.sum(dtype=np.uint64)  # an array wraps around silently
    text = repr((sorted(names), count, totals.tolist()))
    return sha256(text.encode()).digest()
