"""How a CSV file is written: delimiter, encoding, decimal sign, thousands, dates, missing values.

A dialect is declared, never found, where a model is fitted: whatever is decided by looking at cells
lets one person's cell change how the records of all others are read, and then a count moves by more
than it pays for. Only the first line of a file, which names the columns and is public, may decide
something: the delimiter, and by a byte order mark the encoding. `detection` guesses the rest for a
steward to declare. Each cell is then read by itself, by the kind of its column and the dialect:

    cell, kind, dialect  ->  a value, missing, or unreadable

A column does not become text because of one of its cells, nor a date American because of another.
What is unreadable is counted, over all cells, and the table refused with the count and what may be
the reason, or taken as missing if that was declared. The reason is looked for among the first
unreadable cells, and never quotes one.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from privtraj.base.errors import Arg, InputError, Said, either, listed
from privtraj.columns.cells import MISSING, spellings
from privtraj.columns.kinds import Category, Column, Date

ISO = "YYYY-MM-DD"
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
THOUSANDS = {"none": "", "point": ".", "comma": ",", "space": " ", "apostrophe": "'"}
_CHOICES = {
    "delimiter": DELIMITERS,
    "decimal": {"point": ".", "comma": ","},
    "thousands": THOUSANDS,
    "unreadable": {word: word for word in ("refuse", "missing")},
    "newlines": {word: word for word in ("refuse", "quoted")},
}
"""What settings may be, by name and as it is: a shell and a configuration make some signs hard to
write."""

BLANKS = " \t\r\n\u00a0\u2009\u202f"
"""Around cells: no part of them. The last three are what programs put between thousands."""
_GROUPING = {" ": "[ \u00a0\u2009\u202f]", "'": "['\u2019]", ",": ",", ".": "[.]", "": ""}
_DATE_FORM = re.compile(r"(DD|MM|YYYY)([./ -]?)(?!\1)(DD|MM|YYYY)\2(?!\1|\3)(DD|MM|YYYY)")
_DIGITS = {"DD": "0?[1-9]|[12][0-9]|3[01]", "MM": "0?[1-9]|1[0-2]", "YYYY": "[1-9][0-9]{3}"}
_CLOCK = (
    "(?:[T ] ?(?P<h>[01]?[0-9]|2[0-3])(?::(?P<m>[0-5][0-9])(?::(?P<s>[0-5][0-9])"
    "(?:[.,](?P<f>[0-9]+))?)?)? ?(?P<z>Z|[+-][0-9]{2}:?[0-9]{2}|[+-][0-9]{2})?)?"
)


def _wrong(what: str) -> InputError:
    return InputError(Arg("csv"), f" {what}")


@dataclass(frozen=True)
class Dialect:
    """How the cells of a CSV file are written.

    delimiter: between cells; None: whichever of , ; tab | the first line has most of.
    encoding: a name that Python knows; None: UTF-8, or UTF-16 where a byte order mark says so.
    decimal: "." or ",".  thousands: "", ".", ",", " " (any blank) or "'" between groups of three.
    dates: forms of DD, MM and YYYY, such as DD.MM.YYYY; a time such as 14:30 may follow.
    missing: texts that mean a missing value in all columns, beside `cells.MISSING`.
    unreadable: "refuse" cells that are not what their column is, or take them as "missing".
    newlines: "refuse" line breaks inside of cells, or take those that are "quoted". One quotation
        mark too many then hides the records behind it, so who declares it answers for that.

    Signs may be given by name, dates and missing also as one text.
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str = "."
    thousands: str = ""
    dates: tuple[str, ...] = (ISO,)
    missing: tuple[str, ...] = ()
    unreadable: str = "refuse"
    newlines: str = "refuse"

    @classmethod
    def of(cls, declared: Any) -> Dialect:
        """A dialect from what a user declares: None, a dialect, or {setting: value}."""
        if declared is None or isinstance(declared, Dialect):
            return declared or PLAIN
        if not isinstance(declared, Mapping):
            raise InputError(
                Arg("csv"), " must be settings of a CSV file, such as {'decimal': ','}"
            )
        known = [one.name for one in fields(cls)]
        unknown = [str(word) for word in declared if word not in known]
        if unknown:
            raise _wrong(f"has no '{unknown[0]}': its settings are {either(known)}")
        return cls(**declared)

    def __post_init__(self) -> None:
        """Settings of one form each; refuses what cannot be one."""
        made: dict[str, Any] = {}
        for word, names in _CHOICES.items():
            value = made[word] = getattr(self, word)
            if not (word == "delimiter" and value is None):
                if not isinstance(value, str) or value not in (*names, *names.values()):
                    sign = ", or the sign itself" if {*names} != {*names.values()} else ""
                    raise _wrong(f"cannot have this {word}: it must be {either(names)}{sign}")
                made[word] = names.get(value, value)
        if made["decimal"] == made["thousands"]:
            raise _wrong("has one sign for decimals and thousands: they must differ")
        if self.encoding is not None:
            try:
                known = codecs.lookup(self.encoding)
                if not known._is_text_encoding:
                    raise LookupError
            except (LookupError, TypeError):
                raise _wrong(
                    "has an encoding that is not known: use utf-8, windows-1252, latin-1 or utf-16"
                ) from None
            made["encoding"] = "utf-8" if known.name == "utf-8" else self.encoding
        for word in ("dates", "missing"):
            value = getattr(self, word)
            texts = (value,) if isinstance(value, str) else value
            if not (isinstance(texts, Sequence) and all(isinstance(x, str) for x in texts)):
                raise _wrong(f"must give {word} as a text or a list of texts")
            if word == "dates":
                for strptime, form in (("%D", "DD"), ("%M", "MM"), ("%Y", "YYYY")):
                    texts = [text.upper().replace(strptime, form) for text in texts]
            made[word] = tuple(dict.fromkeys(text.strip(BLANKS) for text in texts))
        orders: dict[tuple[str, bool], str] = {}
        for form in made["dates"]:
            found = _DATE_FORM.fullmatch(form)
            if found is None:
                raise _wrong("has dates in no form that is known: write them as in DD.MM.YYYY")
            shape = (found[2], found[2] != "" and found[1] == "YYYY")
            if orders.setdefault(shape, form) != form:
                raise _wrong(
                    f"has dates as {orders[shape]} and as {form}, which no cell tells apart: "
                    "keep one of them"
                )
        for word, value in made.items():
            object.__setattr__(self, word, value)

    def settings(self) -> dict[str, Any]:
        """What is not as in plain CSV, as a configuration has it."""
        changed = {k: v for k, v in asdict(self).items() if v != getattr(PLAIN, k)}
        for word, value in changed.items():
            if isinstance(value, tuple):
                changed[word] = value[0] if len(value) == 1 else list(value)
        return changed

    def __str__(self) -> str:
        """In words: what is between cells, and how numbers and dates are written."""
        names = {sign: word for word, sign in (*DELIMITERS.items(), *THOUSANDS.items()) if sign}
        delimiter = "commas" if self.delimiter is None else f"{names[self.delimiter]}s"
        parts = [f"{delimiter} between cells", f"decimal {names[self.decimal]}s"]
        if self.thousands:
            parts.append(f"{names[self.thousands]}s between thousands")
        parts += [f"dates as {' and '.join(self.dates)}", f"text in {self.encoding or 'utf-8'}"]
        if self.missing:
            parts.append(f"{listed(self.missing)} for missing values")
        return ", ".join(parts)

    @cached_property
    def number(self) -> str:
        """Pattern of a whole cell that is a number."""
        whole, point = "[0-9]+", f"[{self.decimal}]"
        if self.thousands:
            whole = f"(?:[0-9]+|[0-9]{{1,3}}(?:{_GROUPING[self.thousands]}[0-9]{{3}})+)"
        digits = f"(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
        return f"^[+-]?(?:{digits}|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)$"

    @cached_property
    def moments(self) -> tuple[str, ...]:
        """Patterns of a whole cell that is a date: groups Y, M and D, and h, m, s, f and z of a
        time and its zone, which may be empty.

        ISO is always read, as nothing else begins with a year and a hyphen.
        """
        begun = any(form.startswith("YYYY-") for form in self.dates)
        made = []
        for form in self.dates if begun else (*self.dates, ISO):
            date = form.replace(".", "[.]")
            for part, digits in _DIGITS.items():
                exact = digits if re.search(r"\W", form) else digits.replace("0?", "0")
                date = date.replace(part, f"(?P<{part[0]}>{exact})")
            made.append(f"^{date}{_CLOCK}$")
        return tuple(made)


PLAIN = Dialect()


# Cells ------------------------------------------------------------------------------------------


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
    exact = kind.word == EXACT.word
    signs = set(dialect.missing) - kind.values if exact else MISSING | set(dialect.missing)
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
    cells = compute.replace_substring(cells, "\u2212", "-")  # the minus of typesetters
    small = compute.utf8_lower(cells)
    for word, number in (("true", "1"), ("false", "0")):
        cells = compute.if_else(compute.equal(small, word), number, cells)
    fits = compute.match_substring_regex(cells, dialect.number)
    cells = compute.if_else(fits, cells, pa.scalar(None, pa.string()))
    if dialect.thousands:
        cells = compute.replace_substring_regex(cells, _GROUPING[dialect.thousands], "")
    if dialect.decimal != ".":
        cells = compute.replace_substring(cells, dialect.decimal, ".")
    return cells.cast(pa.float64())


def _moments(cells: pa.Array, dialect: Dialect) -> pa.Array:
    """Microseconds in UTC, null for what is no date; a time without a zone is taken as UTC."""

    def digits(texts: pa.Array) -> NDArray[np.int64]:
        present = compute.if_else(compute.equal(texts, ""), "0", texts)
        return np.asarray(compute.fill_null(present, "0").cast("int64"))

    micros = np.zeros(len(cells), dtype=np.int64)
    known = np.zeros(len(cells), dtype=bool)
    for pattern in dialect.moments:
        parts = compute.extract_regex(cells, pattern)
        part = {name: compute.struct_field(parts, name) for name in "YMDhmsfz"}
        year, month, day, hour, minute, second = (digits(part[name]) for name in "YMDhms")
        matched = np.asarray(compute.is_valid(parts))
        months = np.where(matched, 12 * (year - 1970) + month - 1, 0).astype("datetime64[M]")
        first, after = (m.astype("datetime64[D]").astype(np.int64) for m in (months, months + 1))
        right = matched & (day <= after - first)  # no 31st of April
        fraction = compute.utf8_rpad(compute.utf8_slice_codeunits(part["f"], 0, 6), 6, "0")
        zone = compute.replace_substring_regex(part["z"], "[Z:]", "")
        behind = np.asarray(compute.fill_null(compute.starts_with(zone, "-"), False))
        offset = 60 * digits(compute.utf8_slice_codeunits(zone, 1, 3))
        offset += digits(compute.utf8_slice_codeunits(zone, 3, 5))
        minutes = 60 * hour + minute - np.where(behind, -offset, offset)
        seconds = 86_400 * (first + day - 1) + 60 * minutes + second
        micros[right] = (1_000_000 * seconds + digits(fraction))[right]
        known |= right
    return pa.array(micros, mask=~known).cast(pa.timestamp("us"))


# What is unreadable ---------------------------------------------------------------------------

LOOKED_AT = 10_000  # unreadable cells in which a reason is looked for: a share of them is enough

NUMBER_SIGNS = [
    (".", ""), (",", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'")
]  # fmt: skip
"""Decimal and thousands, the simplest first: the first that reads most cells is suggested."""
DATE_FORMS = ["DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY", "DD-MM-YYYY", "MM-DD-YYYY", "YYYY/MM/DD"]
RIVALS: dict[Any, Any] = {
    "DD/MM/YYYY": "MM/DD/YYYY",
    "DD-MM-YYYY": "MM-DD-YYYY",
    (",", ""): (".", ","),
}

Reading = tuple["CellKind", Any]
"""A kind of cells, and the signs or the form in which they would be written."""


def readable(texts: pa.Array, dialect: Dialect) -> Counter[Reading]:
    """How many cells every reading reads, the simplest first."""
    ways: dict[Reading, dict[str, Any]] = {}
    for decimal, thousands in NUMBER_SIGNS:
        ways[NUMBER, (decimal, thousands)] = {"decimal": decimal, "thousands": thousands}
    ways |= {(DATE, form): {"dates": (form,)} for form in (ISO, *DATE_FORMS)}
    read = {way: read_cells(texts, way[0], replace(dialect, **how)) for way, how in ways.items()}
    return Counter({way: len(texts) - values.null_count for way, (values, _) in read.items()})


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
        values, odd = read_cells(cells, self.kind, self.dialect)
        count = compute.sum(odd).as_py() or 0
        self.cells += len(cells)
        self.missing += values.null_count - count
        self.unreadable += count
        room = LOOKED_AT - sum(map(len, self._odd))
        if count and room > 0:
            self._odd.append(cells.filter(odd)[:room])
        return values

    def check(self) -> None:
        """Refuse what is unreadable, unless it was declared to be missing."""
        if self.unreadable and self.dialect.unreadable == "refuse":
            raise self.error()

    def error(self) -> UnreadableCells:
        """How many cells are unreadable, and what to do about it, for whoever may see the data."""
        why, likely = "", self._likely()
        do: tuple[str | Said, ...] = ("correct them, declare another kind or column",)
        if likely:
            (verb, why, do), *rivals = map(self._explained, likely)
            why = verb + why
            for _, other, instead in rivals:
                why += f" or {other}, which only you can tell"
                do = (*do, " or ", *instead[1:])
        elif self.kind == DATE:
            why, do = f"they should be as {' or '.join(self.dialect.dates)}", ("correct them",)
        error = UnreadableCells(
            f"{self.unreadable} of {self.cells} cells of column '{self.name}' are not "
            f"{self.kind.word}s: " + (f"{why}, so " if why else ""),
            *do,
            ", or count them as missing with ",
            Said("csv={'unreadable': 'missing'}", "--csv unreadable=missing"),
        )
        error.name = self.name
        error.reads_as = next((kind for kind, _ in likely if kind != self.kind), None)
        return error

    def _likely(self) -> list[Reading]:
        """What most of the unreadable cells looked at are; two that these cells do not tell apart,
        and none that explains fewer than half of them."""
        odd = pa.concat_arrays(self._odd) if self._odd else pa.array([], pa.string())
        found = readable(odd, self.dialect)
        kind, sign = min(found, key=lambda way: (-found[way], way[0] != self.kind))
        if 2 * found[kind, sign] <= len(odd):
            return []
        rival = (kind, RIVALS.get(sign))
        tied = kind == self.kind and rival in found and found[rival] == found[kind, sign]
        return [(kind, sign), rival] if tied else [(kind, sign)]

    def _explained(self, reading: Reading) -> tuple[str, str, tuple[str | Said, ...]]:
        """What is said of most cells if they are such, and what to do about it."""
        kind, sign = reading
        if kind != self.kind:
            do = "declare numbers" if kind == NUMBER else "declare the column as a date"
            return "most are ", f"{kind.word}s", (do,)
        names = {sign: word for word, sign in THOUSANDS.items()}
        if kind == DATE:
            changed, verb, why = {"dates": sign}, "most are as ", sign
        else:
            settings = dict(zip(("decimal", "thousands"), sign, strict=True))
            changed = {k: v for k, v in settings.items() if v != getattr(self.dialect, k)}
            parts = [f"a decimal {names[changed['decimal']]}"] if "decimal" in changed else []
            if changed.get("thousands"):
                article = "an" if changed["thousands"] == "'" else "a"
                parts.append(f"thousands set off by {article} {names[changed['thousands']]}")
            verb, why = "most have ", " and ".join(parts)
        typed = " ".join(f"{word}={names.get(value, value)}" for word, value in changed.items())
        return verb, why, ("declare ", Said(f"csv={changed!r}", f"--csv {typed}"))
