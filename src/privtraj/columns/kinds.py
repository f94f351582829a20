"""What a column is: its public domain, and its place in the unit interval.

    Number, Integer, Date         values in [low, high]; values outside are clamped
    Category, Ordered, Boolean    one of the declared values

A column maps its values to [0, 1] and back. A category of C levels has C cells there, and level c
is the middle of cell c:  u = (c + 1/2) / C. So a record of any columns is a point of the unit cube,
which is all that the guard ever sees. A number that may be missing is two columns, the number and a
`Flag`, whether it is missing; a category that may be missing has a level for that.
Another kind of column is another class here, and one more name in `KINDS`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privtraj import space
from privtraj.arguments import is_number, is_whole
from privtraj.arrays import Floats
from privtraj.errors import InputError
from privtraj.text import first_few

LONGEST_NAME = 1000
"""Letters of a column's name in a model, and of a value of a category."""
MOST_LEVELS = 10_000
"""Of a category: a table of two such columns is more than anybody counts."""

DAY = 86_400.0  # seconds

Label = str | int | bool


@dataclass(frozen=True)
class Number:
    """Numbers in [low, high], in data units; values outside are clamped.

    missing: whether records may lack it.  fixed: whether it never changes along a path.
    """

    kind: ClassVar[str] = "number"
    low: float
    high: float
    name: str = ""
    missing: bool = False
    fixed: bool = False

    def __post_init__(self) -> None:
        name, low, high = self.name, self.low, self.high
        if not (is_number(low) and is_number(high)):
            raise InputError(f"the bounds of '{name}' must be two numbers (low, high)")
        if not np.isfinite([low, high]).all() or high - low == np.inf:
            raise InputError(f"the bounds of '{name}' must be finite: ({low:g}, {high:g}) are not")
        start = f"the bounds of '{name}' are"
        if low == high:
            raise InputError(f"{start} both {low:g}: a feature that cannot vary must be left out")
        if low > high:
            raise InputError(f"{start} reversed: ({low:g}, {high:g}), low goes first")

    @property
    def domain(self) -> tuple[float, float]:
        """(low, high) of the unit interval, in data units."""
        return float(self.low), float(self.high)

    @property
    def levels(self) -> int:
        """0: no category."""
        return 0

    def to_unit(self, values: ArrayLike) -> Floats:
        """u = (y - low) / (high - low), clamped to [0, 1]; any shape."""
        return space.to_unit(values, self.domain)

    def from_unit(self, unit: ArrayLike) -> Floats:
        """y = low + u (high - low); any shape."""
        return space.from_unit(unit, self.domain)

    def rounded(self, values: Floats) -> Floats:
        """The values that can be, nearest to numbers in data units; any shape."""
        return values

    def public_inputs(self) -> Any:
        """The domain as a certificate writes it."""
        plain = self.kind == "number" and not (self.missing or self.fixed)
        return [self.low, self.high] if plain else _said(self, low=self.low, high=self.high)

    def __str__(self) -> str:
        return f"{self.name} in [{self.low:g}, {self.high:g}]"


@dataclass(frozen=True)
class Integer(Number):
    """Whole numbers from low to high. The unit interval has a cell of equal size for each."""

    kind: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low != int(self.low) or self.high != int(self.high):
            raise InputError(f"the bounds of '{self.name}' must be whole numbers, as its values")

    @property
    def domain(self) -> tuple[float, float]:
        return self.low - 0.5, self.high + 0.5

    def to_unit(self, values: ArrayLike) -> Floats:
        return space.to_unit(np.clip(values, self.low, self.high), self.domain)

    def from_unit(self, unit: ArrayLike) -> Floats:
        """The whole number in whose cell u is."""
        return self.rounded(super().from_unit(unit))

    def rounded(self, values: Floats) -> Floats:
        whole: Floats = np.clip(np.rint(values), self.low, self.high)
        return whole


@dataclass(frozen=True)
class Date(Number):
    """Days or moments between two of them: numbers are seconds since 1970-01-01 UTC.

    days: whether values are days, without a time of day.
    """

    kind: ClassVar[str] = "date"
    days: bool = False

    def __post_init__(self) -> None:
        for end in ("low", "high"):
            value = getattr(self, end)
            if not is_number(value):
                seconds, dates = space.moment(value, f"the bounds of '{self.name}'")
                if not dates:
                    raise InputError(f"the bounds of '{self.name}' must be two dates (low, high)")
                object.__setattr__(self, end, seconds)
                midnight = seconds % DAY == 0 and "T" not in str(value)
                object.__setattr__(self, "days", midnight and (end == "low" or self.days))
        super().__post_init__()

    def from_unit(self, unit: ArrayLike) -> Floats:
        return self.rounded(super().from_unit(unit))

    def rounded(self, values: Floats) -> Floats:
        """Days begin at midnight."""
        if not self.days:
            return values
        days: Floats = np.clip(np.floor(values / DAY) * DAY, self.low, self.high)
        return days

    def public_inputs(self) -> Any:
        low, high = (str(t) for t in space.as_user_times([self.low, self.high], True))
        return _said(self, low=low, high=high)

    def __str__(self) -> str:
        low, high = space.as_user_times([self.low, self.high], True).astype("datetime64[D]")
        return f"{self.name} in [{low}, {high}]"


@dataclass(frozen=True)
class Category:
    """One of the declared values, which are public; their order means nothing.

    other: what stands for every value that is not declared; None refuses such records.
    missing: whether records may lack it.  fixed: whether it never changes along a path.
    """

    kind: ClassVar[str] = "category"
    values: tuple[Label, ...]
    name: str = ""
    other: str | None = None
    missing: bool = False
    fixed: bool = False

    def __post_init__(self) -> None:
        given: Any = self.values
        if isinstance(given, str) or not np.iterable(given):
            raise InputError(f"the values of '{self.name}' must be a list of them")
        values = tuple(map(_label, self.values))
        object.__setattr__(self, "values", values)
        if any(not isinstance(value, str | int | bool) for value in values):
            raise InputError(
                f"the values of '{self.name}' must be texts, whole numbers, true or false"
            )
        texts = [text_of(value) for value in values]
        twice = sorted({text for text, count in Counter(texts).items() if count > 1})
        if twice:
            raise InputError(f"the values of '{self.name}' name {first_few(twice)} twice")
        if len(self.labels) < 2:
            raise InputError(
                f"'{self.name}' has fewer than two values: a feature that cannot vary must be left "
                "out"
            )
        if len(self.labels) > MOST_LEVELS or max(map(len, texts)) > LONGEST_NAME:
            raise InputError(
                f"'{self.name}' has more than {MOST_LEVELS} values, or one of more than "
                f"{LONGEST_NAME} letters: declare fewer, and an other for the rest"
            )

    @property
    def labels(self) -> tuple[Label | None, ...]:
        """What level 0, 1, ... means: the values, the other, and None for missing."""
        rest = () if self.other is None or self.other in self.values else (self.other,)
        return (*self.values, *rest, *((None,) if self.missing else ()))

    @property
    def ordered(self) -> bool:
        """Whether neighbouring levels are near each other."""
        return self.kind == "ordered"

    @property
    def levels(self) -> int:
        """C, with those for other and missing."""
        return len(self.labels)

    @property
    def domain(self) -> tuple[float, float]:
        """In levels: level c is the middle of cell c."""
        return -0.5, self.levels - 0.5

    def to_unit(self, values: ArrayLike) -> Floats:
        """u = (c + 1/2) / C of levels c; any shape."""
        return space.to_unit(values, self.domain)

    def from_unit(self, unit: ArrayLike) -> Floats:
        """The level in whose cell u is."""
        return self.rounded(space.from_unit(unit, self.domain))

    def rounded(self, values: Floats) -> Floats:
        """The level nearest to numbers in levels; any shape."""
        level: Floats = np.clip(np.rint(values), 0, self.levels - 1)
        return level

    def public_inputs(self) -> Any:
        """The domain as a certificate writes it."""
        more = {} if self.other is None else {"other": self.other}
        return _said(self, values=list(self.values), **more)

    def __str__(self) -> str:
        return f"{self.name}, {self.kind} of {self.levels}"


@dataclass(frozen=True)
class Ordered(Category):
    """One of the declared values, lowest first: a step to a neighbour is the smallest change."""

    kind: ClassVar[str] = "ordered"


@dataclass(frozen=True)
class Boolean(Category):
    """True or false."""

    kind: ClassVar[str] = "boolean"
    values: tuple[Label, ...] = (False, True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values != (False, True) or self.other is not None:
            raise InputError(f"'{self.name}' is true or false: it has no other values")


@dataclass(frozen=True)
class Flag(Boolean):
    """Whether the number `of` is missing; its level 1 says so."""

    kind: ClassVar[str] = "flag"
    of: str = ""


Column = Number | Category
"""Integer, Date, Ordered, Boolean and Flag are such."""

KINDS: dict[str, type[Number] | type[Category]] = {
    kind.kind: kind for kind in (Number, Integer, Date, Category, Ordered, Boolean)
}
"""By the name that files and the command line know them by."""


def to_dict(column: Column) -> dict[str, Any]:
    """All of a column, as a model file has it."""
    said = {field.name: getattr(column, field.name) for field in fields(column)}
    if isinstance(column, Category):
        said["values"] = list(column.values)
    return {"kind": column.kind, **said}


def from_dict(said: dict[str, Any]) -> Column:
    """The column of a model file; refuses what is none."""
    said = dict(said)
    kind = said.pop("kind")
    words = {"missing": bool, "fixed": bool, "days": bool, "name": str, "of": str}
    if not all(isinstance(said[word], type_) for word, type_ in words.items() if word in said):
        raise ValueError("no column")
    if not isinstance(said.get("other"), str | None):
        raise ValueError("no column")
    made: Column = (Flag if kind == Flag.kind else KINDS[kind])(**said)
    return made


def text_of(label: Label | None) -> str:
    """A value as text, by which values of tables of any type are compared with declared ones."""
    if isinstance(label, bool):
        return "true" if label else "false"
    return "" if label is None else str(label)


def _label(value: Any) -> Any:
    """Plain Python for what NumPy has."""
    if isinstance(value, np.generic):
        value = value.item()
    return int(value) if isinstance(value, float) and value == int(value) else value


def _said(column: Column, **domain: Any) -> dict[str, Any]:
    yes = {name: True for name in ("missing", "fixed") if getattr(column, name)}
    return {"kind": column.kind, **domain, **yes}


def is_level(value: Any) -> bool:
    """Whether a value may be one of a category's."""
    return isinstance(value, str | bool) or is_whole(value)
