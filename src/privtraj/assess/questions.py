"""A question in words, such as "mean hba1c by diagnosis, year": what is asked of whom.

`assess.ask` answers it, and says what can be asked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError, either, first_few
from privtraj.base.space import as_user_times
from privtraj.columns.conditions import Condition, Conditions
from privtraj.columns.kinds import Angle, Category, Column, Date, Number, of_tables, text_of

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

MOST_ROWS, MOST_KEYS = 2000, 2
PERIODS = 8  # of a time whose name alone is given, unless it is a few whole numbers long
UNITS = {"year": "Y", "month": "M", "week": "W", "day": "D", "hour": "h"}
NAMES = {"mean": 1, "quantile": 1, "trend": 1, "correlation": 2, "share": 1, "count": 0}
GRAMMAR = (
    "ask for mean, median, p90, trend, share, correlation or count, then 'by' up to two columns or "
    "periods, and 'where COL=VALUE'"
)


@dataclass(frozen=True)
class Key:
    """What people are told apart by. of: the group of each row of values, -1 for none.
    axis: of a category.  levels: those of each group."""

    name: str
    labels: tuple[str, ...]
    of: Callable[[Floats], Ints]
    axis: int | None = None
    levels: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Asked:
    """verb: "mean", "quantile", ...  axes: columns of numbers that it is of.  level: of a quantile.
    share: conditions that a share is of.  edges: of periods of time, if they are asked for."""

    verb: str
    axes: tuple[int, ...] = ()
    level: float = 0.5
    share: tuple[Condition, ...] = ()
    keys: tuple[Key, ...] = ()
    where: tuple[Condition, ...] = ()
    edges: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def of_values(self) -> bool:
        """Whether it asks for shares of all values of a category, the last key."""
        return self.verb == "share" and not self.share

    @property
    def shape(self) -> tuple[int, ...]:
        """Groups of each key."""
        return tuple(len(key.labels) for key in self.keys) or (1,)


class Columns:
    """What can be asked of a model: the columns of its table, and time behind them."""

    def __init__(self, model: TrajectoryModel) -> None:
        self.low, self.high = model.knots[[0, -1]].tolist()
        self.dates, time = model.datetime, Number(self.low, self.high, name=model.time_name)
        if self.dates:
            time = Date(self.low, self.high, name=model.time_name)
        self.known: tuple[Column, ...] = (*of_tables(model.columns), time)
        self.numbers = [
            k
            for k, one in enumerate(self.known[:-1])
            if isinstance(one, Number) and not isinstance(one, Angle | Date)
        ]

    def asked(self, text: str) -> Asked:
        """A question in words."""
        form = r"(?P<verb>\w[\w.]*)( of)?(?P<what>.*?)( by (?P<by>.*?))?( where (?P<where>.*))?"
        found = re.fullmatch(form, " ".join(str(text).split()))
        if found is None:
            raise self._not_understood(text)
        verb, what, level = found["verb"].lower(), found["what"].strip(), 0.5
        if quantile := re.fullmatch(r"p(\d\d?(\.\d+)?)", verb):
            verb, level = "quantile", float(quantile[1]) / 100
        verb = {"median": "quantile", "average": "mean"}.get(verb, verb)
        names = [part.strip() for part in what.split(",")] if what else []
        if len(names) != NAMES.get(verb, -1) and not (verb == "share" and "=" in what):
            raise self._not_understood(f"{found['verb']} {what}".strip())
        share: tuple[Condition, ...] = ()
        axes: tuple[int, ...] = ()
        keys, edges = list[Key](), np.empty(0)
        if verb == "share" and "=" in what:
            share = self._conditions(what)
        elif verb != "share":
            axes = tuple(map(self._number, names))
        by = found["by"].split(",") if found["by"] is not None else []
        for part in by[:MOST_KEYS]:
            key, cut = self.key(part.strip())
            keys, edges = [*keys, key], cut if len(cut) else edges
        if len(by) > MOST_KEYS or len({key.name for key in keys}) < len(keys):
            raise self._not_understood(f"by {found['by']}")
        if verb == "share" and not share:
            keys.append(self.category(what))
        where = self._conditions(found["where"]) if found["where"] is not None else ()
        asked = Asked(verb, axes, level, share, tuple(keys), where, edges)
        if math.prod(asked.shape) > MOST_ROWS:
            raise InputError(
                f"'{text}' asks for {math.prod(asked.shape):,} answers, and {MOST_ROWS:,} are the "
                "most: use longer periods, or 'where' for fewer groups"
            )
        return asked

    def _not_understood(self, part: str) -> InputError:
        names = first_few([column.name for column in self.known])
        return InputError(f"'{part}' is not understood: {GRAMMAR}, of the columns {names}")

    def _find(self, name: str) -> int | None:
        """The place of a column, in small or capital letters."""
        names = [column.name for column in self.known]
        bare = name if name in names else name.strip("'\"")
        small = [one.lower() for one in names]
        if bare not in names and small.count(bare.lower()) == 1:
            return small.index(bare.lower())
        return names.index(bare) if bare in names else None

    def _number(self, name: str) -> int:
        axis = self._find(name)
        if axis is None or axis not in self.numbers:
            some = first_few([self.known[k].name for k in self.numbers]) or "none"
            raise InputError(f"'{name}' is not among the columns of numbers: these are {some}")
        return axis

    def category(self, name: str) -> Key:
        """The values of a category."""
        axis = self._find(name)
        column = None if axis is None else self.known[axis]
        if axis is None or not isinstance(column, Category):
            some = first_few([one.name for one in self.known if isinstance(one, Category)])
            periods = either(UNITS) if self.dates else f"'{self.known[-1].name}'"
            raise InputError(
                f"'{name}' is neither a category nor a period: the categories are {some or 'none'},"
                f" the periods {periods}, and '4 periods' or '4 parts of' a number cut evenly"
            )
        labels = tuple("missing" if one is None else text_of(one) for one in column.labels)
        each = tuple((level,) for level in range(len(labels)))
        return Key(column.name, labels, lambda values: values[:, axis].astype(int), axis, each)

    def _conditions(self, text: str) -> tuple[Condition, ...]:
        """Of "sex=F and age=40..60"."""
        made: list[Condition] = []
        for part in text.split(" and "):
            name, sign, value = part.partition("=")
            axis = self._find(name.strip())
            if not sign or axis is None:
                raise self._not_understood(name.strip())
            given = {self.known[axis].name: value.strip().strip("'\"")}
            try:
                made += Conditions.declared(self.known, given, None).always
            except InputError as error:
                raise InputError(error.typed().removeprefix("--")) from None  # typed, no option
        return tuple(made)

    def key(self, text: str) -> tuple[Key, Floats]:
        """What 'by' names, and the edges of periods, if it is time."""
        time, low, high = len(self.known) - 1, self.low, self.high
        unit = UNITS.get(text.lower().removesuffix("s")) if self.dates else None
        cut = re.fullmatch(r"([1-9]\d{0,2}) (periods|parts of (.*))", text)
        if unit:
            first, last = as_user_times([low, high], True).astype(f"datetime64[{unit}]")
            starts = np.arange(first, last + 1)
            edges = np.append(starts, last + 1).astype("datetime64[s]").astype(float)
            if len(starts) > 1 and edges[-2] >= high:  # the range ends where this one begins
                starts, edges = starts[:-1], edges[:-1]
            edges[[0, -1]] = low, high
            return Key(text, tuple(map(str, starts)), _cut(time, edges)), edges
        if cut and cut[3]:
            axis = self._number(cut[3])
            edges = np.linspace(*self.known[axis].span, int(cut[1]) + 1)
            return Key(self.known[axis].name, _spans(edges, False), _cut(axis, edges)), np.empty(0)
        if cut is None and self._find(text) != time:
            return self.category(text), np.empty(0)
        count = int(cut[1]) if cut else PERIODS
        if cut is None and not self.dates and high - low in range(2, 41):
            count = int(high - low)
        edges = np.linspace(low, high, count + 1)
        return Key(self.known[time].name, _spans(edges, self.dates), _cut(time, edges)), edges


def _cut(axis: int, edges: Floats) -> Callable[[Floats], Ints]:
    """The part of each row, -1 for what is missing."""

    def part(values: Floats) -> Ints:
        x = values[:, axis]
        return np.where(np.isnan(x), -1, np.searchsorted(edges[1:-1], x, side="right"))

    return part


def _spans(edges: Floats, dates: bool) -> tuple[str, ...]:
    """With as much of a date, or as many digits, as tell the edges well apart."""
    if dates:
        whole = [str(one) for one in as_user_times(edges, True)]
        day, minute, second = ([one[:size] for one in whole] for size in (10, 16, 19))
        at = next((some for some in (day, minute) if len(set(some)) == len(whole)), second)
    else:
        digits = 2 - math.floor(math.log10(edges[1] - edges[0]))
        at = [f"{round(one, digits):.15g}" for one in edges.tolist()]
    return tuple(f"{a}..{b}" for a, b in pairwise(at))
