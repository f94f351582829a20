"""Cells of a CSV file as numbers and moments: each by itself, by its column's kind and the dialect.

    cell, kind, dialect  ->  a value, missing, or unreadable

No cell has a say in how another one is read: a column does not become text because of one of its
cells, nor a date American because of another. What is unreadable is counted, over all cells, and
the table refused with the count and what may be the reason, or taken as missing if that was
declared. The reason is looked for among the first unreadable cells, and never quotes one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.errors import InputError, Said
from privtraj.columns.cells import spellings
from privtraj.columns.kinds import Category, Column, Date
from privtraj.data.dialect import BLANKS, Dialect

if TYPE_CHECKING:
    import pyarrow as pa

LOOKED_AT = 10_000  # unreadable cells in which a reason is looked for: a share of them is enough

NUMBER_SIGNS = [(",", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'")]
"""Decimal and thousands, the simplest first: the first that reads most cells is suggested."""
DATE_FORMS = ["DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY", "DD-MM-YYYY", "MM-DD-YYYY", "YYYY/MM/DD"]
_WORDS = {"true": "1", "false": "0"}


@dataclass(frozen=True)
class CellKind:
    """What the cells of a column are.

    values: texts that are values of a category, even if they mean a missing value elsewhere.
    """

    word: str
    values: frozenset[str] = frozenset()

    @classmethod
    def of(cls, column: Column) -> CellKind:
        """Of a declared column."""
        if isinstance(column, Category):
            keys = (key for key in column.keys if key is not None)
            return CellKind(EXACT.word, frozenset(text for key in keys for text in spellings(key)))
        return DATE if isinstance(column, Date) else NUMBER


NUMBER, DATE, TEXT = CellKind("number"), CellKind("date"), CellKind("text")
EXACT = CellKind("category")  # texts such as "NA" are kept, as they may be values of it


def read_cells(cells: pa.Array, kind: CellKind, dialect: Dialect) -> tuple[pa.Array, pa.Array]:
    """Cells (n,) of text as values of a kind, null where missing or unreadable; and which are
    unreadable."""
    import pyarrow as pa
    from pyarrow import compute

    exact = kind.word == EXACT.word
    signs = set(dialect.missing) - kind.values if exact else dialect.signs
    trimmed = cells if exact else compute.utf8_trim(cells, BLANKS)
    absent = compute.is_in(trimmed, value_set=pa.array(sorted(signs), pa.string()))
    present = compute.if_else(absent, pa.scalar(None, pa.string()), cells)
    if exact or kind == TEXT:
        return present, pa.array(np.zeros(len(cells), dtype=bool))
    present = compute.utf8_trim(present, BLANKS)
    values = (_numbers if kind == NUMBER else _moments)(present, dialect)
    return values, compute.and_(compute.is_valid(present), compute.is_null(values))


def _numbers(cells: pa.Array, dialect: Dialect) -> pa.Array:
    """float64, null for what is no number; true and false count as 1 and 0."""
    import pyarrow as pa
    from pyarrow import compute

    cells = compute.replace_substring(cells, "\u2212", "-")  # the minus of typesetters
    small = compute.utf8_lower(cells)
    plain = cells
    for word, number in _WORDS.items():
        plain = compute.if_else(compute.equal(small, word), number, plain)
    plain = compute.if_else(
        compute.match_substring_regex(plain, dialect.number), plain, pa.scalar(None, pa.string())
    )
    if dialect.thousands:
        plain = compute.replace_substring_regex(plain, dialect.grouping, "")
    if dialect.decimal != ".":
        plain = compute.replace_substring(plain, dialect.decimal, ".")
    return plain.cast(pa.float64())


def _moments(cells: pa.Array, dialect: Dialect) -> pa.Array:
    """Microseconds in UTC, null for what is no date; a time without a zone is taken as UTC."""
    import pyarrow as pa

    micros = np.zeros(len(cells), dtype=np.int64)
    known = np.zeros(len(cells), dtype=bool)
    for pattern, places in dialect.moments:
        found, right = _micros(cells, pattern, places)
        micros[right], known = found[right], known | right
    return pa.array(micros, mask=~known).cast(pa.timestamp("us"))


def _micros(
    cells: pa.Array, pattern: str, places: tuple[int, int, int]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Microseconds since 1970-01-01 UTC (n,) of cells of a form, and which are of it."""
    from pyarrow import compute

    letters = iter(ascii_lowercase)
    named = re.sub(r"\((?!\?)", lambda _: f"(?P<{next(letters)}>", pattern)
    parts = compute.extract_regex(cells, named)
    matched = np.asarray(compute.is_valid(parts))

    def digits(texts: pa.Array) -> NDArray[np.int64]:
        present = compute.if_else(compute.equal(texts, ""), "0", texts)
        return np.asarray(compute.fill_null(present, "0").cast("int64"))

    def part(k: int) -> pa.Array:
        return compute.struct_field(parts, [k])

    year, month, day = (digits(part(k)) for k in places)
    months = np.where(matched, 12 * (year - 1970) + month - 1, 0).astype("datetime64[M]")
    first, after = (m.astype("datetime64[D]").astype(np.int64) for m in (months, months + 1))
    right = matched & (day <= after - first)  # no 31st of April
    hour, minute, second = (digits(part(k)) for k in (3, 4, 5))
    fraction = compute.utf8_rpad(compute.utf8_slice_codeunits(part(6), 0, 6), 6, "0")
    minutes = 60 * hour + minute - _offsets(part(7), digits)
    seconds = 86_400 * (first + day - 1) + 60 * minutes + second
    return 1_000_000 * seconds + digits(fraction), right


def _offsets(zones: pa.Array, digits: Any) -> NDArray[np.int64]:
    """Minutes (n,) by which clocks of these zones are ahead of UTC."""
    from pyarrow import compute

    plain = compute.replace_substring(zones, ":", "")
    ahead = compute.if_else(compute.equal(plain, "Z"), "", plain)
    behind = np.asarray(compute.fill_null(compute.starts_with(ahead, "-"), False))
    hours = digits(compute.utf8_slice_codeunits(ahead, 1, 3))
    minutes = hours * 60 + digits(compute.utf8_slice_codeunits(ahead, 3, 5))
    return np.where(behind, -minutes, minutes)


# What is unreadable ---------------------------------------------------------------------------


class UnreadableCells(InputError):
    """A column that has cells of another kind than its own.  reads_as: the kind of most of them."""

    name: str = ""
    reads_as: CellKind | None = None


@dataclass
class Readings:
    """How the cells of one column are read: how many, how many missing, how many unreadable."""

    name: str
    kind: CellKind
    dialect: Dialect
    cells: int = 0
    missing: int = 0
    unreadable: int = 0
    _odd: list[pa.Array] = field(default_factory=list, repr=False)

    def read(self, cells: pa.Array) -> pa.Array:
        """The values of cells, which are counted."""
        from pyarrow import compute

        values, odd = read_cells(cells, self.kind, self.dialect)
        count = compute.sum(odd).as_py() or 0
        self.cells += len(cells)
        self.missing += values.null_count - count
        self.unreadable += count
        room = LOOKED_AT - sum(map(len, self._odd))
        if count and room > 0:
            self._odd.append(cells.filter(odd)[:room])
        return values

    def error(self) -> UnreadableCells:
        """How many cells are unreadable, and what to do about it, for whoever may see the data."""
        likely = self.reason()
        error = UnreadableCells(
            f"{self.unreadable} of {self.cells} cells of column '{self.name}' are not "
            f"{self.kind.word}s: " + (f"{likely.why}, so " if likely.why else ""),
            *likely.do,
            ", or count them as missing with ",
            Said("csv={'unreadable': 'missing'}", "--csv unreadable=missing"),
        )
        error.name, error.reads_as = self.name, likely.reads_as
        return error

    def check(self) -> None:
        """Refuse what is unreadable, unless it was declared to be missing."""
        if self.unreadable and self.dialect.unreadable == "refuse":
            raise self.error()

    def reason(self) -> Reason:
        """What most of the unreadable cells looked at are, and what to do about it."""
        import pyarrow as pa

        odd = pa.concat_arrays(self._odd) if self._odd else pa.array([], pa.string())
        suspects = list(self._suspects())
        left = [read_cells(odd, kind, dialect)[1].true_count for _, dialect, kind in suspects]
        if suspects and 2 * min(left) < len(odd):
            equal = [suspects[k][0] for k, count in enumerate(left) if count == min(left)]
            first = equal[0]
            rivals = [other for other in equal[1:] if other.rival_of == first.why]
            return first.or_else(rivals[0]) if rivals else first
        if self.kind == DATE:
            forms = " or ".join(self.dialect.dates)
            return Reason(f"they should be as {forms}", ("correct them",))
        return Reason("", ("correct them, declare another kind or column",))

    def _suspects(self) -> Iterator[tuple[Reason, Dialect, CellKind]]:
        """Explanations, with how cells would be read if they were true; the likeliest first."""
        if self.kind == DATE:
            for form in DATE_FORMS:
                other = replace(self.dialect, dates=(form,))
                rival = form.replace("MM", "x").replace("DD", "MM").replace("x", "DD")
                why = f"most are as {form}"
                yield (
                    Reason(why, _declaring(dates=form), rival_of=f"most are as {rival}"),
                    other,
                    DATE,
                )
            yield Reason("most are numbers", ("declare numbers",), NUMBER), self.dialect, NUMBER
            return
        for decimal, thousands in NUMBER_SIGNS:
            other = replace(self.dialect, decimal=decimal, thousands=thousands)
            settings = {"decimal": decimal, "thousands": thousands}
            told = {k: v for k, v in settings.items() if v != getattr(self.dialect, k)}
            if told:
                rival = f"most have {_called(decimal=',')}" if thousands == "," else ""
                why = f"most have {_called(**told)}"
                yield Reason(why, _declaring(**told), rival_of=rival), other, NUMBER
        for forms in (DATE_FORMS[:2], DATE_FORMS[2:4], DATE_FORMS[4:]):
            do = ("declare the column as a date",)
            dialect = replace(self.dialect, dates=tuple(forms))
            yield Reason("most are dates", do, DATE), dialect, DATE


@dataclass(frozen=True)
class Reason:
    """Why cells may be unreadable, and what to do about it.

    reads_as: the kind they may be.  rival_of: the reason, in words, that nobody can tell from this
    one where both explain the same cells.
    """

    why: str
    do: tuple[str | Said, ...]
    reads_as: CellKind | None = None
    rival_of: str = ""

    def or_else(self, other: Reason) -> Reason:
        """Either of them: which, the cells do not tell."""
        why = f"{self.why} or {other.why.removeprefix('most are as ').removeprefix('most have ')}"
        return Reason(f"{why}, which only you can tell", (*self.do, " or ", *other.do[1:]))


def _called(decimal: str = "", thousands: str = "") -> str:
    names = {".": "point", ",": "comma", " ": "space", "'": "apostrophe"}
    parts = [f"a decimal {names[decimal]}"] if decimal else []
    parts += [f"thousands set off by a {names[thousands]}"] if thousands else []
    return " and ".join(parts).replace("a apostrophe", "an apostrophe")


def _declaring(**settings: str) -> tuple[str | Said, ...]:
    typed = " ".join(f"{word}={_word(value)}" for word, value in settings.items())
    return "declare ", Said(f"csv={settings!r}", f"--csv {typed}")


def _word(value: str) -> str:
    """A sign by its name, as shells take some of them for their own."""
    names = {".": "point", ",": "comma", " ": "space", "'": "apostrophe", "": "none"}
    return names.get(value, value)
