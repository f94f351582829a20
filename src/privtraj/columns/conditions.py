"""What synthetic people must be like: constraints that everybody knows, conditions that are asked.

Both are free, as nothing but a model is asked, and constraints are public.

    "F", True, 2                 a value of a category, or a whole number
    ["II", "III"]                one of several
    (40, 60), (40, None)         a number or a date from low to high, both included, or open
    (22, 2)                      an angle, here an hour of the day, through 0
    None                         missing

As text, on the command line: F, II,III, 40..60, 40.. and nothing at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from operator import attrgetter
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from privtraj.base import space
from privtraj.base.arrays import Floats, Mask
from privtraj.base.errors import Arg, InputError, Said, first_few, is_number, listed
from privtraj.columns.kinds import (
    YEAR,
    Angle,
    Category,
    Column,
    Date,
    Integer,
    LogNumber,
    Number,
    of_tables,
    text_of,
)

RANGE = ".."  # between low and high, as text


@dataclass(frozen=True)
class Condition:
    """On column number `axis`: levels that may be, or a range in data units, or missing."""

    axis: int
    levels: tuple[int, ...] = ()
    range: tuple[float, float] | None = None
    missing: bool = False

    def hold(self, values: Floats) -> Mask:
        """Where values (...) of the column, numbers in data units or levels, are as they must."""
        if self.levels:
            return np.isin(values, self.levels)
        if self.missing:
            return np.isnan(values)
        assert self.range is not None
        low, high = self.range
        if low > high:  # of an angle, through 0
            return np.asarray((values >= low) | (values <= high))
        return np.asarray((values >= low) & (values <= high))


@dataclass(frozen=True)
class Conditions:
    """always: at all times that are asked for.  first: at the first of them."""

    always: tuple[Condition, ...]
    first: tuple[Condition, ...]

    @classmethod
    def declared(cls, columns: Sequence[Column], where: Any, at_start: Any) -> Conditions:
        """As users give them, {column: value}, of the columns of a table."""
        given = (("where", where), ("at_start", at_start))
        return cls(*(_declared(columns, asked or {}, Arg(name)) for name, asked in given))

    def __bool__(self) -> bool:
        return bool(self.always or self.first)

    def hold(self, values: Floats, times: Floats) -> Mask:
        """Which paths (n,) are as they must, of values (n, q, e) at times (q,), in any order."""
        first = int(np.argmin(times))
        held = np.ones(len(values), bool)
        for one in self.always:
            held &= one.hold(values[:, :, one.axis]).all(axis=1)
        for one in self.first:
            held &= one.hold(values[:, first, one.axis])
        return held


def _declared(columns: Sequence[Column], given: Any, what: Arg) -> tuple[Condition, ...]:
    if not isinstance(given, Mapping):
        raise InputError(what, " must be {column: value}, such as {'sex': 'F'}")
    names = [column.name for column in columns]
    unknown = [str(name) for name in given if name not in names]
    if unknown:
        raise InputError(
            what, f" names {listed(unknown)}, not among the columns {first_few(names)}"
        )
    made = []
    for name, value in given.items():
        axis = names.index(name)
        column = columns[axis]
        if isinstance(column, Category):
            made.append(Condition(axis, levels=_levels(column, value, what)))
        elif value is not None and not (isinstance(value, str) and not value):
            made.append(Condition(axis, range=_range(column, value, what)))
        elif column.missing:
            made.append(Condition(axis, missing=True))
        else:
            raise InputError(what, f" asks for '{name}' to be missing, which it never is")
    return tuple(made)


def _levels(column: Category, value: Any, what: Arg) -> tuple[int, ...]:
    texts = [text_of(label) for label in column.labels]
    asked = list(value) if isinstance(value, list | tuple | set | np.ndarray) else [value]
    if isinstance(value, str) and value not in texts:
        asked = value.split(",")
    wanted = [text_of(one.item() if isinstance(one, np.generic) else one) for one in asked]
    if not wanted or any(text not in texts for text in wanted):
        known = first_few([text for text in texts if text])
        raise InputError(
            what, f" asks for a value that '{column.name}' does not have: it has {known}"
        )
    return tuple(sorted({texts.index(text) for text in wanted}))


def _range(column: Number, value: Any, what: Arg) -> tuple[float, float]:
    ends = value.split(RANGE) if isinstance(value, str) and RANGE in value else value
    if isinstance(column, Integer) and (isinstance(ends, str) or np.ndim(ends) == 0):
        ends = (ends, ends)
    limits = [-np.inf, np.inf]  # where an end is open
    try:
        if isinstance(ends, str) or len(ends) != 2:
            raise TypeError
        for k, end in enumerate(ends):
            if end is not None and end != "":
                limits[k], dated = space.moment(end)
                if dated != isinstance(column, Date):
                    raise ValueError
    except (TypeError, ValueError):
        raise InputError(
            what,
            f" of '{column.name}' must be ",
            Said("a pair (low, high), or None for missing", "low..high, or nothing for missing"),
        ) from None
    low, high = limits
    if low > high and not isinstance(column, Angle):
        raise InputError(what, f" of '{column.name}' is a reversed range: low goes first")
    return low, high


def within_reach(one: Condition, before: NDArray[Any], after: NDArray[Any], ladder: int) -> Mask:
    """Whether a category can be as it must between two knots of levels before and after (n,).

    ladder: levels from 0 that are in order, through which people climb.
    """
    low, high = np.minimum(before, after), np.maximum(before, after)
    can = np.isin(before, one.levels) | np.isin(after, one.levels)
    for level in one.levels:
        can |= (high < ladder) & (low <= level) & (level <= high)
    return can


# Constraints ------------------------------------------------------------------------------------

RISING, FALLING, AGEING = "rising", "falling", "ageing"
_OFFSET = re.compile(r"[+-]\d\d:?\d\d")  # a time zone without a name
ROUNDS = 8  # of putting paths in order and restoring the marginals; set by hand, as more do nothing


@dataclass(frozen=True)
class Constraints:
    """What is public about features, and how tables write them.

    monotone: {feature: "rising", "falling" or "ageing"}.  precision: {feature: step}, 1 for
    integers.  constant: {column: value} that tables have in every row, and nobody measures.
    zone: {column: time zone} in which tables have moments; the others are in UTC.
    """

    monotone: Mapping[str, str]
    precision: Mapping[str, float]
    constant: Mapping[str, Any] = field(default_factory=dict)
    zone: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def declared(
        cls,
        monotone: Any,
        precision: Any,
        constant: Any = None,
        zone: Any = None,
        ageing: Any = None,
    ) -> Constraints:
        """As users give them: monotone may be a list of features that never fall; ageing is one."""
        rules: dict[str, tuple[Any, Callable[[Any], object], str]] = {
            "ageing": (ageing, AGEING.__eq__, "must list features"),
            "monotone": (monotone, (RISING, FALLING, AGEING).__contains__,
                f"must list features, or say '{RISING}', '{FALLING}' or '{AGEING}' of each"),
            "precision": (precision, lambda step: is_number(step) and 0 < step < np.inf,
                "must be a step above 0 for each feature, such as 1 for integers"),
            "constant": (constant, lambda value: isinstance(value, str | bool) or is_number(value),
                "must be a value for each column"),
            "zone": (zone, lambda place: _OFFSET.fullmatch(place) or ZoneInfo(place),
                "must be a time zone such as 'Europe/Berlin' for each column"),
        }  # fmt: skip
        made: dict[str, Any] = {}
        for word, (given, fits, must) in rules.items():
            way = {"ageing": AGEING, "monotone": RISING}.get(word)
            try:
                names: Any = [given] if isinstance(given, str) else given or ()
                alone = way and not isinstance(names, Mapping)
                made[word] = dict.fromkeys(names, way) if alone else dict(names)
                known = all(map(fits, made[word].values()))
            except (TypeError, ValueError, KeyError, OSError):
                known = False
            if not known:
                raise InputError(Arg(word), f" {must}")
        made["monotone"] |= made.pop("ageing")
        return cls(**made)

    @classmethod
    def of(cls, recipe: Any, zone: Mapping[str, str] = MappingProxyType({})) -> Constraints:
        """Those of a recipe.  zone: of columns for which it has none."""
        made = cls.declared(*attrgetter(*signature(cls.declared).parameters)(recipe))
        return replace(made, zone={**zone, **made.zone})

    def check(self, columns: Sequence[Column]) -> None:
        """Refuse what is said of other columns than these, or of kinds that have no such thing."""
        known = {column.name: column for column in of_tables(columns)}
        for name, given in (("monotone", self.monotone), ("precision", self.precision)):
            for feature in given:
                start = f" names '{feature}', which is "
                if feature not in known:
                    raise InputError(Arg(name), start + "not among the features")
                if not isinstance(known[feature], Number):
                    raise InputError(Arg(name), start + "not among the features that are numbers")
                if name == "monotone" and isinstance(known[feature], Angle):
                    raise InputError(Arg(name), start + "an angle, and goes round")
                if self.monotone.get(feature) == AGEING and isinstance(known[feature], LogNumber):
                    raise InputError(Arg("ageing"), start + "on a log scale: declare it without")
        for feature in known:
            if feature in self.constant:
                raise InputError(Arg("constant"), f" names '{feature}', which is a feature")

    def directions(self, features: tuple[str, ...]) -> Floats:
        """(d,) 1 for features that rise, -1 for those that fall, 0 for others."""
        signs = {RISING: 1.0, AGEING: 1.0, FALLING: -1.0}
        return np.array([signs.get(self.monotone.get(name, ""), 0.0) for name in features])

    def rates(self, features: tuple[str, ...], length: float, datetime: bool) -> Floats:
        """(d,) how far features go by themselves in a range of time of this length, with dates in
        years; 0 for those that do not."""
        ageing = np.array([self.monotone.get(name) == AGEING for name in features], float)
        return ageing * (length / YEAR if datetime else length)

    def rounded(self, values: Floats, columns: Sequence[Column]) -> Floats:
        """Values (..., e) of the columns of a table in steps of the precision."""
        for k, column in enumerate(columns):
            if column.name in self.precision:
                assert isinstance(column, Number)
                values[..., k] = column.written(values[..., k], self.precision[column.name])
        return values


NONE = Constraints({}, {})


def in_order(
    paths: NDArray[Any], directions: Floats, clock: Floats | None = None, rates: Any = ()
) -> NDArray[Any]:
    """Paths (n, K, d) whose features rise (1), fall (-1) or do as they like (0), by directions.

    A rising feature of paths (n, K) is put in order by alternating two steps: each path becomes
    the middle of its running maximum and its running minimum from behind, the nearest that never
    falls; and at each time the people, in their order, get the values that there were, which are
    the marginal's. The first step is last, so that nobody falls, and what it still moves is what
    the marginals, which are noisy, contradict themselves.

    A feature with a rate goes so far between two times of the clock (K,), whoever it is: a path is
    moved as a whole to where it was on average. The marginals follow, as far as these people age
    together: those of a population that is renewed would not.
    """

    def rising(values: NDArray[Any]) -> Any:
        """(n, K) the middle of the largest so far and the smallest to come."""
        below = np.minimum.accumulate(values[:, ::-1], axis=1)[:, ::-1]
        return (np.maximum.accumulate(values, axis=1) + below) / 2

    paths = paths.copy()
    for k in np.flatnonzero(directions):
        values = directions[k] * paths[:, :, k]
        wanted = np.sort(values, axis=0)
        for _ in range(ROUNDS):
            np.put_along_axis(values, np.argsort(rising(values), axis=0), wanted, axis=0)
        paths[:, :, k] = directions[k] * rising(values)
    for k in np.flatnonzero(rates):
        way = rates[k] * clock
        paths[:, :, k] = way + (paths[:, :, k] - way).mean(axis=1, keepdims=True)
    return paths
