"""What a column is: its public domain, and its place in the unit interval.

    Number, Integer, Date         values in [low, high]; values outside are clamped
    LogNumber                     the same by ratios: its axis is the logarithm
    Angle                         values on a circle; what is beyond the period begins again
    Category, Ordered, Boolean    one of the declared values

A column maps its values to [0, 1] and back. A category of C levels has C cells there, and level c
is the middle of cell c:  u = (c + 1/2) / C. So a record of any columns is a point of the unit cube,
which is all that the guard ever sees. Some columns take more than one axis of it, and those behind
the first are columns too, made of it (`of`) and never seen in a table:

    a number that may be missing    the number, and a `Flag`, whether it is missing
    an angle                        its cosine, and a `Sine`

so that nobody but these classes knows how values of a column lie to each other: all else measures
distances in the cube. Another kind of column is another class here, and one more name in `KINDS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import filterfalse
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtraj.base import space
from privtraj.base.arrays import Floats, Ints, Mask
from privtraj.base.errors import InputError, first_few, is_number
from privtraj.columns.cells import MISSING, cases, key_of
from privtraj.columns.precision import DEGREES, SHARE, in_steps, is_degrees, usual_step

LONGEST_NAME = 1000  # letters of a column's name in a model, and of a value of a category
MOST_LEVELS = 10_000  # of a category: a table of two such columns is more than anybody counts
UNDECLARED = -1  # the level of a value that is not declared, where no other stands for it
SHOWN = 5  # values of a category that are shown where there is no place for all
DAY = 86_400.0  # seconds
YEAR = 365.2425 * DAY

Label = str | int | bool


class Axis:
    """The geometry of a column, for values of any shape in the units of a table, or in levels.

    name: of the column.  missing: whether records may lack it.  fixed: whether it never changes
    along a path.  missing_codes: numbers that stand for a missing value, such as -99.
    of: the column that this one is made of, if it is in no table.  levels: C of a
    category, 0 of a number.  ordered: whether neighbouring levels are near each other.
    domain: the ends of the unit interval, in the units of a coordinate.  span: the ends of the
    values that a table has.  facts: the domain as a certificate writes it.
    """

    kind: ClassVar[str]
    name: str
    missing: bool
    fixed: bool
    missing_codes: tuple[float, ...] = ()
    of = ""
    levels: int = 0
    ordered = False
    domain: tuple[float, float]
    span: tuple[float, float]
    facts: dict[str, Any]

    def to_unit(self, values: ArrayLike) -> Floats:
        """u = (y - low) / (high - low) of coordinates y, clamped to [0, 1]."""
        return space.to_unit(values, self.domain)

    def from_unit(self, unit: ArrayLike) -> Floats:
        """y = low + u (high - low), or the value nearest to it that can be."""
        return self.rounded(space.from_unit(unit, self.domain))

    def rounded(self, values: Floats) -> Floats:
        """The coordinates that can be, nearest to these."""
        return values

    def coordinates(self, values: Floats) -> tuple[Floats, ...]:
        """Of values of a table (n,), NaN where missing: on this axis, and on those of `more`."""
        return (values,)

    def value(self, *coordinates: Floats) -> Floats:
        """The values of a table that have these coordinates."""
        return self.in_table(coordinates[0])

    def in_table(self, coordinate: Floats) -> Floats:
        """The value that has this coordinate, where one axis is enough."""
        return coordinate

    @property
    def more(self) -> tuple[Column, ...]:
        """The columns that are made of this one."""
        return ()

    def __post_init__(self) -> None:
        for word in ("missing", "fixed"):
            if not isinstance(getattr(self, word), bool):
                raise InputError(f"{word} of {self._called} must be true or false")
        codes: Any = self.missing_codes
        if not (isinstance(codes, list | tuple) and all(map(is_number, codes))):
            raise InputError(f"missing_codes of {self._called} must be a list such as [-99, 999]")
        if codes:
            object.__setattr__(self, "missing_codes", tuple(map(float, codes)))

    def _lie(self, low: float, high: float, **otherwise: Any) -> None:
        """Between these ends, as are all values unless somebody says otherwise."""
        for word, value in {"domain": (low, high), "span": (low, high), **otherwise}.items():
            object.__setattr__(self, word, value)

    @property
    def _called(self) -> str:
        """In a sentence; one that has no name yet is a kind of column."""
        if self.name:
            return f"'{self.name}'"
        kind = "ordered category" if self.ordered else self.kind
        return f"an {kind}" if kind[0] in "aio" else f"a {kind}"

    def public_inputs(self) -> Any:
        """All that is declared, as a certificate has it; of a plain number its bounds."""
        if type(self) is Number and not (self.missing or self.fixed or self.missing_codes):
            return list(self.facts.values())
        public = {"kind": self.kind, **self.facts}
        if self.missing:
            public["missing"] = True
        if self.fixed:
            public["fixed"] = True
        if self.missing_codes:
            public["missing_codes"] = list(self.missing_codes)
        return public

    def __str__(self) -> str:
        more = " or missing" * self.missing + " (fixed)" * self.fixed
        return f"{self.name} {self._shown}{more}"

    @property
    def _shown(self) -> str:
        """The domain in few words."""
        return f"in [{', '.join(f'{end:g}' for end in self.facts.values())}]"


@dataclass(frozen=True)
class Number(Axis):
    """Numbers in [low, high], in data units; values outside are clamped."""

    kind: ClassVar[str] = "number"
    low: float
    high: float
    name: str = ""
    missing: bool = False
    fixed: bool = False
    missing_codes: tuple[float, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high, start = self.low, self.high, f"the bounds of {self._called}"
        if not (is_number(low) and is_number(high)):
            raise InputError(f"{start} must be two numbers (low, high)")
        if not np.isfinite([low, high]).all() or high - low == np.inf:
            raise InputError(f"{start} must be finite: ({low:g}, {high:g}) are not")
        if low == high:
            raise InputError(
                f"{start} are both {low:g}: a feature that cannot vary must be left out"
            )
        if low > high:
            raise InputError(f"{start} are reversed: ({low:g}, {high:g}), low goes first")
        self._lie(float(low), float(high), facts={"low": low, "high": high})

    @property
    def more(self) -> tuple[Column, ...]:
        lacks = Flag(name=f"{self.name} missing", of=self.name, fixed=self.fixed)
        return (lacks,) if self.missing else ()

    def without_codes(self, values: Floats) -> Floats:
        """Values (n,) of a table, NaN where a code says that they are missing."""
        if not self.missing_codes:
            return values
        return np.where(np.isin(values, self.missing_codes), np.nan, values)

    def coordinates(self, values: Floats) -> tuple[Floats, ...]:
        return (values, np.isnan(values).astype(np.float64)) if self.missing else (values,)

    def value(self, *coordinates: Floats) -> Floats:
        values = self.in_table(coordinates[0])
        return np.where(coordinates[-1] == 1, np.nan, values) if self.missing else values

    @property
    def step(self) -> float:
        """In which tables have it unless somebody says: by the public bounds, or as a place."""
        usual = usual_step(self.low, self.high)
        return min(usual, DEGREES) if is_degrees(self.name) else usual

    def written(self, values: Floats, step: float | None = None) -> Floats:
        """Values as tables have them, in steps and inside the bounds; any shape."""
        return in_steps(values, self.step if step is None else step, self.low, self.high)


@dataclass(frozen=True)
class LogNumber(Number):
    """Numbers of which ratios matter: 1 and 10 are as far apart as 10 and 100.

    The axis is y = log(v + offset), from log(low + offset) to log(high + offset). A cell is then so
    many per cent wide, where equal cells of a skewed number would have nearly everybody in one.
    offset: what is added, above -low; for numbers that may be 0, about the least that matters.
    """

    offset: float = 0.0
    scale: str = "log"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale != "log":
            raise InputError(f"the scale of {self._called} must be 'log', or be left out")
        if not (is_number(self.offset) and abs(self.offset) < np.inf):
            raise InputError(f"the offset of {self._called} must be a number")
        if not (0 < self.low + self.offset < self.high + self.offset < np.inf):
            raise InputError(
                f"{self._called} on a log scale must have bounds above 0: raise the lower one, or "
                "declare an offset that is added first"
            )
        ends = np.log([self.low + self.offset, self.high + self.offset]).tolist()
        facts = {**self.facts, "scale": self.scale} | (
            {"offset": self.offset} if self.offset else {}
        )
        self._lie(*ends, span=(float(self.low), float(self.high)), facts=facts)

    def coordinates(self, values: Floats) -> tuple[Floats, ...]:
        _, *missing = super().coordinates(values)
        return np.log(np.clip(values, self.low, self.high) + self.offset), *missing

    def in_table(self, coordinate: Floats) -> Floats:
        return np.clip(np.exp(coordinate) - self.offset, self.low, self.high)

    @property
    def step(self) -> float:
        """About a per cent of the least value."""
        return usual_step(0.0, (self.low + self.offset) / (100 * SHARE))

    @property
    def _shown(self) -> str:
        more = f", offset {self.offset:g}" if self.offset else ""
        return f"in [{self.low:g}, {self.high:g}] (log scale{more})"


@dataclass(frozen=True)
class Integer(Number):
    """Whole numbers from low to high. The unit interval has a cell of equal size for each."""

    kind: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low != int(self.low) or self.high != int(self.high):
            raise InputError(
                f"the bounds of {self._called} must be whole numbers, as its values are"
            )
        self._lie(self.low - 0.5, self.high + 0.5)

    def to_unit(self, values: ArrayLike) -> Floats:
        return space.to_unit(np.clip(values, self.low, self.high), self.domain)

    def rounded(self, values: Floats) -> Floats:
        return np.asarray(np.clip(np.rint(values), self.low, self.high))

    @property
    def _shown(self) -> str:
        return f"in {{{self.low:g}, ..., {self.high:g}}}"


@dataclass(frozen=True)
class Date(Number):
    """Days or moments between two of them: numbers are seconds since 1970-01-01 UTC.

    days: whether values are days, without a time of day.
    """

    kind: ClassVar[str] = "date"
    days: bool = False

    def __post_init__(self) -> None:
        if self.missing_codes:
            raise InputError(f"{self._called} has no missing_codes, which are numbers: remove them")
        for end in ("low", "high"):
            value = getattr(self, end)
            if not is_number(value):
                bounds = f"the bounds of {self._called}"
                seconds, dates = space.moment(value, bounds)
                if not dates:
                    raise InputError(f"{bounds} must be two dates (low, high)")
                object.__setattr__(self, end, seconds)
                midnight = seconds % DAY == 0 and "T" not in str(value)
                object.__setattr__(self, "days", midnight and (end == "low" or self.days))
        super().__post_init__()
        # days as days, moments to the second where they have no fraction
        whole = self.low == int(self.low) and self.high == int(self.high)
        unit = "D" if self.days else "s" if whole else "us"
        with np.errstate(invalid="ignore"):  # of a file that has centuries beyond all calendars
            times = space.as_user_times([self.low, self.high], True).astype(f"datetime64[{unit}]")
        facts = dict(zip(("low", "high"), map(str, times), strict=True))
        self._lie(float(self.low), float(self.high), facts=facts)

    def rounded(self, values: Floats) -> Floats:
        """Days begin at midnight."""
        days = np.clip(np.floor(values / DAY) * DAY, self.low, self.high)
        return np.asarray(days) if self.days else values

    @property
    def _shown(self) -> str:
        return f"in [{', '.join(self.facts.values())}]"


@dataclass(frozen=True, init=False)
class Angle(Number):
    """Hours of the day, days of the year, degrees: from 0 to a period, where 0 comes again.

    A value v is the point (cos, sin)(2 pi v / period) on two axes, so that whoever goes straight
    between two of them goes the short way round, and values from beyond the period are right too.
    A point inside the circle is read as the angle that it is seen under from the middle.
    """

    kind: ClassVar[str] = "angle"
    low: float = field(default=0.0, init=False)
    high: float = field(default=0.0, init=False)
    period: float = field(kw_only=True)

    def __init__(
        self,
        period: float,
        name: str = "",
        missing: bool = False,
        fixed: bool = False,
        missing_codes: tuple[float, ...] = (),
    ) -> None:
        object.__setattr__(self, "period", period)
        super().__init__(0.0, period, name, missing, fixed, missing_codes=missing_codes)

    def __post_init__(self) -> None:
        Axis.__post_init__(self)
        if not (is_number(self.period) and 0 < self.period < np.inf):
            raise InputError(f"the period of {self._called} must be a number above 0, such as 360")
        # the domain is of cosines
        span, facts = (0.0, float(self.period)), {"period": self.period}
        self._lie(-1.0, 1.0, span=span, facts=facts)

    @property
    def _shown(self) -> str:
        return f"around {self.period:g}"

    @property
    def more(self) -> tuple[Column, ...]:
        return Sine(-1.0, 1.0, f"{self.name} sine", False, self.fixed, self.name), *super().more

    def wrapped(self, values: ArrayLike) -> Floats:
        """The same angles, from 0 to below the period."""
        inside = np.mod(values, self.period)
        return np.where(inside == self.period, 0.0, inside)

    def coordinates(self, values: Floats) -> tuple[Floats, ...]:
        _, *missing = super().coordinates(values)
        turns = 2 * np.pi * self.wrapped(values) / self.period
        return np.cos(turns), np.sin(turns), *missing

    def value(self, *coordinates: Floats) -> Floats:
        cosine, sine, *missing = coordinates
        seen = self.wrapped(np.arctan2(sine, cosine) * (self.period / (2 * np.pi)))
        return super().value(seen, *missing)

    def written(self, values: Floats, step: float | None = None) -> Floats:
        return self.wrapped(super().written(values, step))


@dataclass(frozen=True)
class Sine(Number):
    """The second axis of the angle `of`."""

    kind: ClassVar[str] = "sine"
    of: str = ""


@dataclass(frozen=True)
class Category(Axis):
    """One of the declared values, which are public; their order means nothing.

    other: what stands for every value that is not declared; None refuses such records.
    """

    kind: ClassVar[str] = "category"
    answers: ClassVar[dict[str, int]] = {}
    """Levels of other texts that mean a value, in capitals or small letters."""
    values: tuple[Label, ...]
    name: str = ""
    other: str | None = None
    missing: bool = False
    fixed: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        start = f"the values of {self._called}"
        given: Any = self.values
        if isinstance(given, str) or not np.iterable(given):
            raise InputError(f"{start} must be a list of them")
        plain = (value.item() if isinstance(value, np.generic) else value for value in given)
        values = tuple(int(x) if isinstance(x, float) and x.is_integer() else x for x in plain)
        object.__setattr__(self, "values", values)
        if any(not isinstance(value, str | int | bool) for value in values):
            raise InputError(f"{start} must be texts, whole numbers, true or false")
        if not isinstance(self.other, str | None):
            raise InputError(f"the other of {self._called} must be a text")
        if "" in (*values, self.other):
            raise InputError(
                f"{start} have an empty text, which means a missing one: declare that it may be "
                "missing"
            )
        keys = Counter(map(key_of, values))
        twice = [text_of(value) for value in values if keys[key_of(value)] > 1]
        if twice:
            raise InputError(f"{start} name the same value twice: {first_few(twice)}")
        levels = len(self.labels)
        if levels < 2:
            raise InputError(
                f"{self._called} has fewer than two values: a feature that cannot vary must be "
                "left out"
            )
        if levels > MOST_LEVELS or max(map(len, map(text_of, self.labels))) > LONGEST_NAME:
            raise InputError(
                f"{self._called} has more than {MOST_LEVELS} values, or one of more than "
                f"{LONGEST_NAME} letters: declare fewer, and an other for the rest"
            )
        # in levels, with those for other and missing: level c is the middle of cell c
        facts = {"values": list(values)} | ({} if self.other is None else {"other": self.other})
        self._lie(-0.5, levels - 0.5, levels=levels, facts=facts)

    @cached_property
    def labels(self) -> tuple[Label | None, ...]:
        """What level 0, 1, ... means: the values, the other, and None for missing."""
        apart = self.other is not None and key_of(self.other) not in map(key_of, self.values)
        return (*self.values, *([self.other] * apart), *([None] * self.missing))

    @cached_property
    def keys(self) -> dict[str | None, int]:
        """Levels by the keys of their labels (see `cells`), and by other answers."""
        found = {key_of(label): level for level, label in enumerate(self.labels)}
        return found | {case: level for word, level in self.answers.items() for case in cases(word)}

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

    def rounded(self, values: Floats) -> Floats:
        return np.asarray(np.clip(np.rint(values), 0, self.levels - 1))

    @property
    def _shown(self) -> str:
        texts = [text_of(value) for value in self.values[:SHOWN]]
        if len(self.values) > SHOWN:
            texts.append(f"{len(self.values) - SHOWN} more")
        if self.other is not None and self.other not in self.values:
            texts.append(self.other)
        return f"in {{{(' < ' if self.ordered else ', ').join(texts)}}}"


@dataclass(frozen=True)
class Ordered(Category):
    """One of the declared values, lowest first: a step to a neighbour is the smallest change."""

    kind: ClassVar[str] = "ordered"
    ordered = True


@dataclass(frozen=True)
class Boolean(Category):
    """True or false; cells may say yes and no, y and n, t and f as well."""

    kind: ClassVar[str] = "boolean"
    answers: ClassVar[dict[str, int]] = {"no": 0, "n": 0, "f": 0, "yes": 1, "y": 1, "t": 1}
    values: tuple[Label, ...] = (False, True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values != (False, True) or self.other is not None:
            raise InputError(f"{self._called} is true or false: it has no other values")

    @property
    def _shown(self) -> str:
        return "true or false"


@dataclass(frozen=True)
class Flag(Boolean):
    """Whether the number `of` is missing; its level 1 says so."""

    kind: ClassVar[str] = "flag"
    of: str = ""


Column = Number | Category
"""All other kinds are such."""

KINDS: dict[str, type[Number] | type[Category]] = {
    kind.kind: kind for kind in (Number, Integer, Date, Angle, Category, Ordered, Boolean)
}
"""By the name that files and the command line know them by."""


def kind_of(word: str, settings: Collection[str]) -> type[Number] | type[Category]:
    """The class of a column of this kind that has these settings."""
    return LogNumber if word == Number.kind and "scale" in settings else KINDS[word]


def of_tables(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns that a table has: all but those that are made of others."""
    return tuple(filterfalse(attrgetter("of"), columns))


def to_dict(column: Column) -> dict[str, Any]:
    """All of a column, as a model file has it."""
    settings = {one.name: getattr(column, one.name) for one in fields(column) if one.init}
    if isinstance(column, Category):
        settings["values"] = list(column.values)
    elif not column.missing_codes:
        del settings["missing_codes"]
    return {"kind": column.kind, **settings}


def from_dict(written: dict[str, Any]) -> Column:
    """The column of a model file; refuses what is none."""
    settings = dict(written)
    word = settings.pop("kind")
    kind = {Flag.kind: Flag, Sine.kind: Sine}.get(word) or kind_of(word, settings)
    types: dict[str, Any] = {"missing": bool, "fixed": bool, "days": bool, "name": str, "of": str}
    types["other"] = str | None
    if not all(isinstance(settings[word], types.get(word, object)) for word in settings):
        raise ValueError("no column")
    return kind(**settings)


def plain_numbers(names: Sequence[str], bounds: Any) -> tuple[Column, ...]:
    """Columns of which nothing but the bounds (d, 2) is known."""
    pairs = zip(names, bounds.tolist(), strict=True)
    return tuple(Number(low, high, name) for name, (low, high) in pairs)


def text_of(label: Label | None) -> str:
    """A value as text, by which values of tables of any type are compared with declared ones."""
    if isinstance(label, bool):
        return "true" if label else "false"
    return "" if label is None else str(label)


# The unit cube ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axes:
    """d axes, one for each column, all of it public.

    levels: (d,) of a category, 0 for numbers.  ordered, fixed: (d,) as the columns say.
    flags: pairs (axis of a number, axis of its flag), of numbers that may be missing.
    numbers, categories: (d,) which are such.  mixed: whether any is a category.
    """

    levels: tuple[int, ...]
    ordered: tuple[bool, ...]
    fixed: tuple[bool, ...]
    flags: tuple[tuple[int, int], ...] = ()
    numbers: Mask = field(init=False, repr=False, compare=False)
    categories: Mask = field(init=False, repr=False, compare=False)
    mixed: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        numbers = np.array(self.levels) == 0
        object.__setattr__(self, "numbers", numbers)
        object.__setattr__(self, "categories", ~numbers)
        object.__setattr__(self, "mixed", any(self.levels))

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Axes:
        """Those of declared columns."""
        flag_of, flags = {}, []
        for k, one in enumerate(columns):
            if isinstance(one, Flag):
                flag_of[one.of] = k
        for k, one in enumerate(columns):
            if not one.levels and (one.of or one.name) in flag_of:
                flags.append((k, flag_of[one.of or one.name]))
        facts = map(attrgetter("levels", "ordered", "fixed"), columns)
        levels, ordered, fixed = zip(*facts, strict=True)
        return cls(levels, ordered, fixed, tuple(flags))

    @classmethod
    def numeric(cls, d: int) -> Axes:
        """d numbers."""
        return cls((0,) * d, (False,) * d, (False,) * d)

    @property
    def counted(self) -> list[int]:
        """All axes but flags: whoever lacks a number is counted with those who have it."""
        flags = {flag for _, flag in self.flags}
        return [axis for axis in range(len(self.levels)) if axis not in flags]

    def sides(self, cells_per_side: int) -> tuple[int, ...]:
        """(d,) cells along each axis: so many of a number, and all levels of a category."""
        return tuple(levels or cells_per_side for levels in self.levels)

    def level_of(self, unit: NDArray[Any]) -> Ints:
        """Levels (..., d) of points (..., d); 0 for numbers."""
        levels = np.array(self.levels)
        return np.clip((unit * levels).astype(np.int64), 0, np.maximum(levels - 1, 0))

    def centred(self, unit: NDArray[Any]) -> NDArray[Any]:
        """Points (..., d) whose categories are in the middle of the cell that they are in."""
        levels = np.maximum(np.array(self.levels), 1)
        middle = (self.level_of(unit) + 0.5) / levels
        return np.where(self.numbers, unit, middle)


def to_unit(columns: Sequence[Column], values: ArrayLike) -> Floats:
    """Coordinates (n, d), in data units or in levels, as points of the unit cube.

    A number that is missing, NaN, is in the middle, and its flag says so.
    """
    values = np.asarray(values, dtype=np.float64)
    parts = [column.to_unit(values[:, k]) for k, column in enumerate(columns)]
    return np.nan_to_num(np.column_stack(parts), nan=0.5)


def encoded(columns: Sequence[Column], values: Floats) -> Floats:
    """Coordinates (..., d) of values (..., e) of a table, NaN where missing."""
    known = of_tables(columns)
    parts = [column.coordinates(values[..., k]) for k, column in enumerate(known)]
    return np.stack([*(p[0] for p in parts), *(x for p in parts for x in p[1:])], axis=-1)


def decoded(columns: Sequence[Column], coordinates: Floats) -> Floats:
    """The values (..., e) of a table that have coordinates (..., d), NaN where missing."""
    known = of_tables(columns)
    if len(known) == len(columns) and all(one.domain == one.span for one in known):
        return coordinates
    behind, values = len(known), []
    for k, column in enumerate(known):
        more = range(behind, behind := behind + len(column.more))
        values.append(column.value(*(coordinates[..., j] for j in (k, *more))))
    return np.stack(values, axis=-1)
