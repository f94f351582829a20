"""The mistakes privtraj explains instead of crashing on; the command line exits with 2 on each.

Messages are one sentence: what is wrong, where (a column, a count of rows, never a raw value),
and what to do about it. They are made of parts: what they say about an argument is data, so that
Python's users read `missing='drop'` and those of the command line `--missing drop`.

Below the errors: checks of numbers that users give, and names and numbers as sentences have them.
Standard library only, because `privtraj --help` reads it.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any
from unicodedata import category


@dataclass(frozen=True)
class Arg:
    """An argument that a message names, with the value that it should have, if any.

    name: as Python shows it, `person` or `person=`.  option: the option, if named otherwise.
    """

    name: str
    value: object = None
    option: str | None = None

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value!r}"

    @property
    def typed(self) -> str:
        """The same on the command line."""
        option = "--" + (self.option or self.name).removesuffix("=").replace("_", "-")
        return option if self.value is None or self.value is True else f"{option} {self.value}"


@dataclass(frozen=True)
class Said:
    """Words for Python's users, and others for those of the command line."""

    python: str
    typed: str

    def __str__(self) -> str:
        return self.python


class PrivtrajError(Exception):
    """Base of every error that a user can put right; its arguments are the parts of a sentence."""

    def __init__(self, *parts: str | Arg | Said) -> None:
        super().__init__(*parts)

    def __str__(self) -> str:
        return "".join(map(str, self.args))

    def typed(self) -> str:
        """The sentence in the words of the command line."""
        return "".join(part if isinstance(part, str) else part.typed for part in self.args)


class InputError(PrivtrajError, ValueError):
    """A table, an option or a file that cannot be used as given."""


class BudgetError(PrivtrajError):
    """A release that the privacy budget does not cover; nothing was released."""


# Numbers that users give ----------------------------------------------------------------------


def is_number(value: object) -> bool:
    """A real number, and not True or False."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> bool:
    """A whole number by its type, and not True or False."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_range(name: str, value: Any, low: float, high: float = math.inf) -> None:
    """Refuse what is not a number from low to high."""
    if not (is_number(value) and low <= value <= high):
        limits = f"between {low:g} and {high:g}" if high < math.inf else f"at least {low:g}"
        raise InputError(f"{name} must be {limits}")


def check_whole(name: str, value: Any, low: int, high: float = math.inf) -> None:
    """Refuse what is not a whole number from low to high."""
    if not (is_whole(value) and low <= value <= high):
        limits = f"between {low} and {high}" if high < math.inf else f"of at least {low}"
        raise InputError(f"{name} must be a whole number {limits}")


# Names and numbers in sentences -----------------------------------------------------------------

MOST_LISTED = 12  # names in a message


def listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def first_few(names: Sequence[str]) -> str:
    """The first of perhaps many names."""
    more = len(names) - MOST_LISTED
    return listed(names[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def either(names: Iterable[str]) -> str:
    """ "a, b or c"."""
    *rest, last = names
    return f"{', '.join(rest)} or {last}" if rest else last


def free_name(name: str, taken: Container[str]) -> str:
    """The name, with as many underscores behind it as it takes to be the only one."""
    while name in taken:
        name += "_"
    return name


def masked(word: str) -> str:
    """The word; of a connection string, which may hold a password, its beginning."""
    scheme, sign, _ = word.partition("://")
    return f"{scheme}://..." if sign else word


def printable(text: str) -> str:
    """Without what would steer a terminal: names in a file may be somebody else's."""
    return "".join("?" if c != "\n" and category(c)[0] == "C" else c for c in text)


def short(value: float) -> str:
    """1e-5, not 1e-05."""
    return f"{value:g}".replace("e-0", "e-")


def about(people: float) -> str:
    """A number of people that is known within a factor of two or so, without false precision."""
    if people < 1:
        return "0"
    if people < 10:
        return f"{people:.0f}"
    power = 10 ** (len(f"{people:.0f}") - 1)
    digits = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
    return f"{min(digits, key=lambda r: abs(r * power / people - 1)) * power:,.0f}"


def aligned(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """Lines of a table: columns as wide as their widest cell, those named in `right` to the right.

    All rows have the same number of cells; two blanks stand between columns, none at the end.
    """
    padded = []
    for k, column in enumerate(zip(*rows, strict=True)):
        width = max(map(len, column))
        padded.append([cell.rjust(width) if k in right else cell.ljust(width) for cell in column])
    return ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]
