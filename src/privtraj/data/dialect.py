"""How a CSV file is written: delimiter, encoding, decimal sign, thousands, dates, missing values.

A dialect is declared, never found, where a model is fitted: whatever is decided by looking at cells
lets one person's cell change how the records of all others are read, and then a count moves by more
than it pays for. Only the first line of a file, which names the columns and is public, may decide
something: the delimiter, and by a byte order mark the encoding. `detection` guesses the rest for a
steward to declare. A cell is then read by the kind of its column and the dialect alone
(`text_cells`).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from privtraj.base.errors import Arg, InputError, either, listed
from privtraj.columns.cells import MISSING

ISO = "YYYY-MM-DD"
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
"""By name and as they are: a shell and a configuration make some of them hard to write."""
DECIMALS = {"point": ".", "comma": ","}
THOUSANDS = {"none": "", "point": ".", "comma": ",", "space": " ", "apostrophe": "'"}
UNREADABLE = ("refuse", "missing")

BLANKS = " \t\r\n\u00a0\u2009\u202f"
"""Around cells: no part of them. The last three are what programs put between thousands."""
_GROUPING = {" ": "[ \u00a0\u2009\u202f]", "'": "['\u2019]", ",": ",", ".": "[.]", "": ""}
_DATE_FORM = re.compile(r"(DD|MM|YYYY)([./ -]?)(DD|MM|YYYY)\2(DD|MM|YYYY)")
_LOOSE = {"DD": "0?[1-9]|[12][0-9]|3[01]", "MM": "0?[1-9]|1[0-2]", "YYYY": "[1-9][0-9]{3}"}
_TIGHT = {**_LOOSE, "DD": "0[1-9]|[12][0-9]|3[01]", "MM": "0[1-9]|1[0-2]"}
_CLOCK = (
    "(?:[T ] ?([01]?[0-9]|2[0-3])(?::([0-5][0-9])(?::([0-5][0-9])(?:[.,]([0-9]+))?)?)?"
    " ?(Z|[+-][0-9]{2}:?[0-9]{2}|[+-][0-9]{2})?)?"
)


@dataclass(frozen=True)
class Dialect:
    """How the cells of a CSV file are written.

    delimiter: between cells; None: whichever of , ; tab | the first line has most of.
    encoding: a name that Python knows; None: UTF-8, or UTF-16 where a byte order mark says so.
    decimal: "." or ",".  thousands: "", ".", ",", " " (any blank) or "'" between groups of three.
    dates: forms of DD, MM and YYYY, such as DD.MM.YYYY; a time such as 14:30 may follow.
    missing: texts that mean a missing value in all columns, beside `cells.MISSING`.
    unreadable: "refuse" cells that are not what their column is, or take them as "missing".
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str = "."
    thousands: str = ""
    dates: tuple[str, ...] = (ISO,)
    missing: tuple[str, ...] = ()
    unreadable: str = "refuse"

    @classmethod
    def of(cls, declared: Any) -> Dialect:
        """A dialect from what a user declares: None, a dialect, or {setting: value}."""
        if declared is None or isinstance(declared, Dialect):
            return declared or PLAIN
        if not isinstance(declared, Mapping):
            raise InputError(
                Arg("csv"), " must be settings of a CSV file, such as {'decimal': ','}"
            )
        known = [field.name for field in fields(cls)]
        unknown = [str(word) for word in declared if word not in known]
        if unknown:
            raise _wrong(f"has no '{unknown[0]}': its settings are {either(known)}")
        read = {word: _READ[word](value) for word, value in declared.items()}
        return replace(PLAIN, **read)._checked()

    def settings(self) -> dict[str, Any]:
        """What is not as in plain CSV, as a configuration has it."""
        told = {field.name: getattr(self, field.name) for field in fields(self)}
        changed = {word: value for word, value in told.items() if value != getattr(PLAIN, word)}
        return {word: _written(value) for word, value in changed.items()}

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

    def _checked(self) -> Dialect:
        if self.decimal == self.thousands:
            raise _wrong("has one sign for decimals and thousands: they must differ")
        orders: dict[tuple[str, bool], str] = {}
        for form in self.dates:
            first, sign, *_ = _parts_of(form)
            shape = (sign, sign != "" and first == "YYYY")
            if orders.setdefault(shape, form) != form:
                raise _wrong(
                    f"has dates as {orders[shape]} and as {form}, which no cell tells apart: "
                    "keep one of them"
                )
        return self

    @cached_property
    def signs(self) -> frozenset[str]:
        """All texts that mean a missing value."""
        return MISSING | frozenset(self.missing)

    @cached_property
    def number(self) -> str:
        """Pattern of a whole cell that is a number; RE2, as in Arrow and DuckDB, and Python."""
        whole, point = "[0-9]+", f"[{self.decimal}]"
        if self.thousands:
            whole = f"(?:[0-9]+|[0-9]{{1,3}}(?:{self.grouping}[0-9]{{3}})+)"
        digits = f"(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
        return f"^[+-]?(?:{digits}|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)$"

    @property
    def grouping(self) -> str:
        """Pattern of what stands between thousands."""
        return _GROUPING[self.thousands]

    @cached_property
    def moments(self) -> tuple[tuple[str, tuple[int, int, int]], ...]:
        """Patterns of a whole cell that is a date, and which groups are year, month and day.

        The groups: three of the date, then hour, minute, second, fraction and zone, which may be
        empty. ISO is always read, as nothing else begins with a year and a hyphen.
        """
        forms = dict.fromkeys(self.dates)
        if not any(form.startswith("YYYY-") for form in forms):
            forms[ISO] = None
        return tuple(_moment_pattern(form) for form in forms)


PLAIN = Dialect()


def _moment_pattern(form: str) -> tuple[str, tuple[int, int, int]]:
    first, sign, second, third = _parts_of(form)
    parts = (first, second, third)
    digits = _LOOSE if sign else _TIGHT
    date = (f"[{sign}]" if sign else "").join(f"({digits[part]})" for part in parts)
    year, month, day = (parts.index(part) for part in ("YYYY", "MM", "DD"))
    return f"^{date}{_CLOCK}$", (year, month, day)


def _parts_of(form: str) -> tuple[str, str, str, str]:
    """First part, sign between, second and third part of a form of dates."""
    found = _DATE_FORM.fullmatch(form)
    if found is None or len({found[1], found[3], found[4]}) < 3:
        raise _wrong("has dates in no form that is known: write them as in DD.MM.YYYY")
    return found[1], found[2], found[3], found[4]


# What a user may write ------------------------------------------------------------------------


def _wrong(what: str) -> InputError:
    return InputError(Arg("csv"), f" {what}")


def _sign(word: str, names: Mapping[str, str]) -> Any:
    """Reads one of these signs, or its name."""

    def read(value: Any) -> str:
        if isinstance(value, str) and value in (*names, *names.values()):
            return names.get(value, value)
        raise _wrong(f"has no such {word}: it must be {either(names)}, or the sign itself")

    return read


def _encoding(value: Any) -> str:
    try:
        known = codecs.lookup(value)
        if not known._is_text_encoding:
            raise LookupError
    except (LookupError, TypeError):
        raise _wrong(
            "has an encoding that is not known: use utf-8, windows-1252, latin-1 or utf-16"
        ) from None
    return known.name


def _dates(value: Any) -> tuple[str, ...]:
    forms = (value,) if isinstance(value, str) else _texts("dates", value)
    plain = {"%D": "DD", "%M": "MM", "%Y": "YYYY"}  # as strptime has them
    read = []
    for form in forms:
        form = form.upper()
        for word, meaning in plain.items():
            form = form.replace(word, meaning)
        _parts_of(form)
        read.append(form)
    return tuple(dict.fromkeys(read))


def _missing(value: Any) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else _texts("missing", value)
    return tuple(dict.fromkeys(text.strip(BLANKS) for text in texts))


def _texts(word: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or not value or not all(isinstance(x, str) for x in value):
        raise _wrong(f"must give {word} as a text or a list of texts")
    return tuple(value)


def _unreadable(value: Any) -> str:
    if value not in UNREADABLE:
        raise _wrong("must say of unreadable cells to refuse them, or that they are missing")
    return str(value)


def _written(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    return value[0] if len(value) == 1 else list(value)


_READ = {
    "delimiter": _sign("delimiter", DELIMITERS),
    "encoding": _encoding,
    "decimal": _sign("decimal", DECIMALS),
    "thousands": _sign("thousands", THOUSANDS),
    "dates": _dates,
    "missing": _missing,
    "unreadable": _unreadable,
}
