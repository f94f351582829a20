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
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privtraj.base import space
from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError, first_few, is_number, is_whole
from privtraj.columns.cells import MISSING, cases, key_of
from privtraj.columns.precision import DEGREES, in_steps, is_degrees, usual_step

LONGEST_NAME = 1000
"""Letters of a column's name in a model, and of a value of a category."""
MOST_LEVELS = 10_000
"""Of a category: a table of two such columns is more than anybody counts."""
UNDECLARED = -1
"""The level of a value that is not declared, where no other stands for it."""
SHOWN = 5
"""Values of a category that are shown where there is no place for all."""

DAY = 86_400.0  # seconds

Label = str | int | bool


@dataclass(frozen=True)
class Number:
    """Numbers in [low, high], in data units; values outside are clamped.

    missing: whether records may lack it.  fixed: whether it never changes along a path.
    """

    kind: ClassVar[str] = "number"
    of = ""
    low: float
    high: float
    name: str = ""
    missing: bool = False
    fixed: bool = False

    def __post_init__(self) -> None:
        _check_words(self)
        low, high, start = self.low, self.high, f"the bounds of {_called(self)}"
        if not (is_number(low) and is_number(high)):
            raise InputError(f"{start} must be two numbers (low, high)")
        if not np.isfinite([low, high]).all() or high - low == np.inf:
            raise InputError(f"{start} must be finite: ({low:g}, {high:g}) are not")
        start += " are"
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

    @property
    def step(self) -> float:
        """In which tables have it unless somebody says: by the public bounds, or as a place."""
        usual = usual_step(self.low, self.high)
        return min(usual, DEGREES) if is_degrees(self.name) else usual

    def written(self, values: Floats, step: float | None = None) -> Floats:
        """Values as tables have them, in steps and inside the bounds; any shape."""
        return in_steps(values, self.step if step is None else step, self.low, self.high)

    def public_inputs(self) -> Any:
        """The domain as a certificate writes it."""
        plain = self.kind == "number" and not (self.missing or self.fixed)
        return [self.low, self.high] if plain else _said(self, low=self.low, high=self.high)

    def __str__(self) -> str:
        return f"{self.name} in [{self.low:g}, {self.high:g}]{_more(self)}"


@dataclass(frozen=True)
class Integer(Number):
    """Whole numbers from low to high. The unit interval has a cell of equal size for each."""

    kind: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low != int(self.low) or self.high != int(self.high):
            raise InputError(
                f"the bounds of {_called(self)} must be whole numbers, as its values are"
            )

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

    def __str__(self) -> str:
        return f"{self.name} in {{{self.low:g}, ..., {self.high:g}}}{_more(self)}"


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
                bounds = f"the bounds of {_called(self)}"
                seconds, dates = space.moment(value, bounds)
                if not dates:
                    raise InputError(f"{bounds} must be two dates (low, high)")
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
        low, high = self._ends()
        return _said(self, low=low, high=high)

    def __str__(self) -> str:
        low, high = self._ends()
        return f"{self.name} in [{low}, {high}]{_more(self)}"

    def _ends(self) -> list[str]:
        """Days as days, moments to the second where they have no fraction."""
        times = space.as_user_times([self.low, self.high], True)
        whole = self.low == int(self.low) and self.high == int(self.high)
        unit = "D" if self.days else "s" if whole else "us"
        return [str(time) for time in times.astype(f"datetime64[{unit}]")]


@dataclass(frozen=True)
class Category:
    """One of the declared values, which are public; their order means nothing.

    other: what stands for every value that is not declared; None refuses such records.
    missing: whether records may lack it.  fixed: whether it never changes along a path.
    """

    kind: ClassVar[str] = "category"
    of = ""
    values: tuple[Label, ...]
    name: str = ""
    other: str | None = None
    missing: bool = False
    fixed: bool = False

    def __post_init__(self) -> None:
        _check_words(self)
        start = f"the values of {_called(self)}"
        given: Any = self.values
        if isinstance(given, str) or not np.iterable(given):
            raise InputError(f"{start} must be a list of them")
        values = tuple(map(_label, given))
        object.__setattr__(self, "values", values)
        _check_labels(self, start)
        if len(self.labels) < 2:
            raise InputError(
                f"{_called(self)} has fewer than two values: a feature that cannot vary must be "
                "left out"
            )
        texts = map(text_of, self.labels)
        if len(self.labels) > MOST_LEVELS or max(map(len, texts)) > LONGEST_NAME:
            raise InputError(
                f"{_called(self)} has more than {MOST_LEVELS} values, or one of more than "
                f"{LONGEST_NAME} letters: declare fewer, and an other for the rest"
            )

    @cached_property
    def labels(self) -> tuple[Label | None, ...]:
        """What level 0, 1, ... means: the values, the other, and None for missing."""
        told = key_of(self.other) in map(key_of, self.values)
        rest = () if self.other is None or told else (self.other,)
        return (*self.values, *rest, *((None,) if self.missing else ()))

    @cached_property
    def keys(self) -> dict[str | None, int]:
        """Levels by the keys of their labels (see `cells`)."""
        return {key_of(label): level for level, label in enumerate(self.labels)}

    def level_of(self, key: str | None) -> float:
        """Level of a cell with this key; NaN where it is missing and may not be, and
        `UNDECLARED` where it has a value that is not declared."""
        if key not in self.keys and (key is None or key in MISSING):
            return float(self.keys.get(None, np.nan))
        return float(self.keys.get(key, self.rest))

    @property
    def rest(self) -> int:
        """The level of values that are not declared."""
        return UNDECLARED if self.other is None else self.keys[key_of(self.other)]

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
        texts = [text_of(value) for value in self.values[:SHOWN]]
        more = [] if len(self.values) <= SHOWN else [f"{len(self.values) - SHOWN} more"]
        rest = [] if self.other is None or self.other in self.values else [self.other]
        shown = (" < " if self.ordered else ", ").join([*texts, *more, *rest])
        return f"{self.name} in {{{shown}}}{_more(self)}"


@dataclass(frozen=True)
class Ordered(Category):
    """One of the declared values, lowest first: a step to a neighbour is the smallest change."""

    kind: ClassVar[str] = "ordered"


_ANSWERS = {"no": 0, "n": 0, "f": 0, "yes": 1, "y": 1, "t": 1}


@dataclass(frozen=True)
class Boolean(Category):
    """True or false; cells may say yes and no, y and n, t and f as well."""

    kind: ClassVar[str] = "boolean"
    values: tuple[Label, ...] = (False, True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values != (False, True) or self.other is not None:
            raise InputError(f"{_called(self)} is true or false: it has no other values")

    @cached_property
    def keys(self) -> dict[str | None, int]:
        """Levels by the keys of their labels, and by answers in capitals and small letters."""
        found = {key_of(label): level for level, label in enumerate(self.labels)}
        found.update((case, level) for word, level in _ANSWERS.items() for case in cases(word))
        return found

    def __str__(self) -> str:
        return f"{self.name} true or false{_more(self)}"


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


def without_flags(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Columns as a table has them: flags are made of what is missing there."""
    return tuple(column for column in columns if not isinstance(column, Flag))


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


def plain_numbers(names: Sequence[str], bounds: Any) -> tuple[Column, ...]:
    """Columns of which nothing but the bounds (d, 2) is known."""
    pairs = zip(names, bounds.tolist(), strict=True)
    return tuple(Number(low, high, name) for name, (low, high) in pairs)


def text_of(label: Label | None) -> str:
    """A value as text, by which values of tables of any type are compared with declared ones."""
    if isinstance(label, bool):
        return "true" if label else "false"
    return "" if label is None else str(label)


def _label(value: Any) -> Any:
    """Plain Python for what NumPy has."""
    if isinstance(value, np.generic):
        value = value.item()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _called(column: Column) -> str:
    """A column in a sentence; one that has no name yet is a kind of column."""
    if column.name:
        return f"'{column.name}'"
    kind = "ordered category" if column.kind == Ordered.kind else column.kind
    return f"an {kind}" if kind[0] in "io" else f"a {kind}"


def _check_words(column: Column) -> None:
    for word in ("missing", "fixed"):
        if not isinstance(getattr(column, word), bool):
            raise InputError(f"{word} of {_called(column)} must be true or false")


def _check_labels(column: Category, start: str) -> None:
    """Refuse values that no category has, or that it has twice."""
    values = column.values
    if any(not isinstance(value, str | int | bool) for value in values):
        raise InputError(f"{start} must be texts, whole numbers, true or false")
    if not isinstance(column.other, str | None):
        raise InputError(f"the other of {_called(column)} must be a text")
    if "" in (*values, column.other):
        raise InputError(
            f"{start} have an empty text, which means a missing one: declare that it may be missing"
        )
    keys = Counter(map(key_of, values))
    twice = [text_of(value) for value in values if keys[key_of(value)] > 1]
    if twice:
        raise InputError(f"{start} name the same value twice: {first_few(twice)}")


def _more(column: Column) -> str:
    """What else is declared, in few words."""
    return " or missing" * column.missing + " (fixed)" * column.fixed


def _said(column: Column, **domain: Any) -> dict[str, Any]:
    yes = {name: True for name in ("missing", "fixed") if getattr(column, name)}
    return {"kind": column.kind, **domain, **yes}


def is_level(value: Any) -> bool:
    """Whether a value may be one of a category's."""
    return isinstance(value, str | bool) or is_whole(value)
