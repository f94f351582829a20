"""Questions to a released model, each answer with the interval that holds the truth in nine of ten.

    mean hba1c by diagnosis, year            median, p90, trend (per unit of time) likewise
    share smoker=true by sex                 share diagnosis: of every value
    count by diagnosis where age=40..60 and sex=F
    correlation hba1c, weight by 4 periods

Nothing is read but the model, and it costs no privacy. People are drawn at times that are weighted
by the released numbers of people. How sure an answer is, the report says by the same numbers:

    tables       of n people, N of whom have the value of the category that is asked for, whose
                 noise is s people (`groups`), a mean is off by  s / sqrt(N n)  standard deviations,
                 as noise adds up over what n is a part of. So they tell as much as

                     n' = 1 / (s^2 / (N n) + 1 / n)   people,  of whom n came by chance,

                 and every statistic has the error that it has in n' people.
    all else     by the refits to people who may be the truth (`quality`), and the chance of n.

A group whose noise may be `groups.APART` standard deviations is lost: it has no number.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from privtraj.assess.common import SURE
from privtraj.assess.groups import (
    APART,
    group_noise,
    people_between,
    released_people,
    told_by_tables,
)
from privtraj.assess.quality import DOUBT, REFITS, PossibleCrowd, can_be_refitted, refitted
from privtraj.base.arrays import Floats, Ints, Mask
from privtraj.base.errors import InputError, about, aligned, either, first_few
from privtraj.base.files import write_text
from privtraj.base.space import as_user_times
from privtraj.columns.conditions import Condition, Conditions
from privtraj.columns.kinds import (
    Angle,
    Category,
    Column,
    Date,
    Number,
    decoded,
    of_tables,
    text_of,
)
from privtraj.export.tables import write_table

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

Progress = Callable[[int, int], None]

PEOPLE = 3000  # drawn at each moment
MOMENTS, EACH = 24, 4  # over the range, and in each period at least
MOST_ROWS, MOST_KEYS = 2000, 2
PERIODS = 8  # of a time whose name alone is given, unless it is a few whole numbers long
FEWEST = 10  # synthetic people of whom a statistic is taken
UNITS = {"year": "Y", "month": "M", "week": "W", "day": "D", "hour": "h"}
YEAR = 365.2425 * 86400
BOUNDS = {"share": (0.0, 1.0), "correlation": (-1.0, 1.0), "count": (0.0, math.inf)}
NAMES = {"mean": 1, "quantile": 1, "trend": 1, "correlation": 2, "share": 1, "count": 0}
GRAMMAR = (
    "ask for mean, median, p90, trend, share, correlation or count, then 'by' up to two columns or "
    "periods, and 'where COL=VALUE'"
)


@dataclass(frozen=True)
class Answer:
    """What was asked, and a row for each group: its keys, about how many people it is of, then
    value, low and high; None in all three of a group that is lost, which says why in `lost`."""

    question: str
    unit: str
    rows: tuple[dict[str, Any], ...]

    def to_arrow(self) -> Any:
        import pyarrow as pa

        return pa.Table.from_pylist(list(self.rows))

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()

    def to_dict(self) -> dict[str, Any]:
        return {"question": self.question, "unit": self.unit, "rows": list(self.rows)}

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the rows as .csv, .parquet, .arrow or .json, whole or not at all."""
        if str(path).lower().endswith(".json"):
            text = json.dumps(self.to_dict(), indent=1, allow_nan=False)
            return write_text(f"{text}\n", path, force)
        return write_table(self.to_arrow(), path, force)

    def __repr__(self) -> str:
        names = [name for name in self.rows[0] if name not in ("low", "high", "lost")]
        heads = [*names[:-1], f"{names[-1]}{f' ({self.unit})' * bool(self.unit)}", "90 % interval"]
        lines = [heads]
        for row in self.rows:
            keys = [str(row[name]) for name in names[:-2]]
            value, interval = "lost", row["lost"]
            if row["value"] is not None:
                digits, interval = 4, "not known"
                if row["low"] is not None:
                    width = max(row["high"] - row["low"], 1e-9 * abs(row["value"]), 1e-300)
                    digits = max(math.ceil(math.log10(max(abs(row["value"]) / width, 1))) + 2, 2)
                    interval = f"{row['low']:,.{digits}g} to {row['high']:,.{digits}g}"
                value = f"{row['value']:,.{digits}g}"
            lines.append([*keys, about(row["people"]), value, interval])
        right = range(len(names) - 2, len(names))
        return "\n".join(aligned(lines, right))


# What is asked --------------------------------------------------------------------------------


class Doubt(NamedTuple):
    """Of an answer. half: width of its interval, None if not known.  lost: why it has no number."""

    half: float | None
    lost: str


@dataclass(frozen=True)
class Key:
    """What people are told apart by. of: the group of each row of values, -1 for none.
    axis: of a category, whose levels are the groups."""

    name: str
    labels: tuple[str, ...]
    of: Callable[[Floats], Ints]
    axis: int | None = None


@dataclass(frozen=True)
class Asked:
    """verb: "mean", "quantile", ...  axes: columns of numbers that it is of.  level: of a quantile.
    share: conditions that a share is of.  edges: of periods of time, if they are asked for."""

    verb: str
    axes: tuple[int, ...]
    level: float
    share: tuple[Condition, ...]
    keys: tuple[Key, ...]
    where: tuple[Condition, ...]
    edges: Floats

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
            key, cut = self._key(part.strip())
            keys, edges = [*keys, key], cut if len(cut) else edges
        if len(by) > MOST_KEYS or len({key.name for key in keys}) < len(keys):
            raise self._not_understood(f"by {found['by']}")
        if verb == "share" and not share:
            keys.append(self._category(what))
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
        names, bare = [column.name for column in self.known], name.strip("'\"")
        small = [one.lower() for one in names]
        if bare not in names and small.count(bare.lower()) == 1:
            return small.index(bare.lower())
        return names.index(bare) if bare in names else None

    def _number(self, name: str) -> int:
        axis = self._find(name)
        numbers = [k for k, one in enumerate(self.known[:-1])
                   if isinstance(one, Number) and not isinstance(one, Angle | Date)]  # fmt: skip
        if axis not in numbers:
            some = first_few([self.known[k].name for k in numbers]) or "none"
            raise InputError(f"'{name}' is not among the columns of numbers: these are {some}")
        return axis

    def _category(self, name: str) -> Key:
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
        return Key(column.name, labels, lambda values: values[:, axis].astype(int), axis)

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
                raise InputError(str(error)) from None  # not in the words of an option
        return tuple(made)

    def _key(self, text: str) -> tuple[Key, Floats]:
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
            return self._category(text), np.empty(0)
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
    at = [str(one)[:10] if dates else f"{one:.6g}" for one in as_user_times(edges, dates)]
    return tuple(f"{a}..{b}" for a, b in pairwise(at))


# People, and statistics of them ---------------------------------------------------------------


def _moments(model: TrajectoryModel, edges: Floats) -> tuple[Floats, Floats]:
    """Times (Q,), and how many people there were around each, by the released numbers."""
    if model.diagnostics.get("listed_times"):
        counts, lengths = released_people(model)
        return model.numeric_times, np.repeat(counts / lengths, lengths.astype(int))
    edges = edges if len(edges) else model.knots[[0, -1]]
    each = max(EACH, math.ceil(MOMENTS / (len(edges) - 1)))
    parts = np.interp(np.arange((len(edges) - 1) * each + 1) / each, np.arange(len(edges)), edges)
    return (parts[1:] + parts[:-1]) / 2, people_between(model, parts)


@dataclass(frozen=True)
class Crowd:
    """Rows of people: values (r, e + 1), the last of them time, and how many each stands for."""

    values: Floats
    weights: Floats

    @classmethod
    def of(cls, values: Floats, times: Floats, people: Floats) -> Crowd:
        """Of values (n, Q, e) at times (Q,), around which there were so many people (Q,)."""
        n, q, _ = values.shape
        rows = np.concatenate([values, np.broadcast_to(times[:, None], (n, q, 1))], axis=2)
        return cls(rows.reshape(n * q, -1), np.tile(people / n, n))

    def people(self, axis: int, levels: Sequence[int]) -> float:
        """How many have one of these levels of a category."""
        return float(self.weights[np.isin(self.values[:, axis], levels)].sum())

    def hold(self, conditions: Sequence[Condition]) -> Mask:
        """(r,) who is as all conditions say."""
        held = np.ones(len(self.values), bool)
        for one in conditions:
            held &= one.hold(self.values[:, one.axis])
        return held


def _statistics(asked: Asked, crowd: Crowd, spread: Floats) -> Floats:
    """(R, 3) of every group, in the order of keys: people, the statistic, and its standard
    deviation if one person told it. spread: of every column in everybody."""
    inside, group = crowd.hold(asked.where), np.zeros(len(crowd.values), int)
    for axis in asked.axes:
        inside &= ~np.isnan(crowd.values[:, axis])
    for key in asked.keys:
        level = key.of(crowd.values)
        inside, group = inside & (level >= 0), group * len(key.labels) + level
    order = np.flatnonzero(inside)
    order = order[np.argsort(group[order], kind="stable")]
    cuts = np.searchsorted(group[order], np.arange(1, math.prod(asked.shape)))
    made, wanted = [], crowd.hold(asked.share)
    for rows in np.split(order, cuts):
        weights = crowd.weights[rows]
        people = float(weights.sum())
        if asked.verb == "count":
            made.append((people, people, 0.0))
        elif asked.verb == "share":
            part = float(weights[wanted[rows]].sum())
            made.append((people, part / people if people else math.nan, 0.5))
        elif len(rows) < FEWEST or not people:
            made.append((people, math.nan, math.nan))
        else:
            numbers = [crowd.values[rows, axis] for axis in (*asked.axes, -1)]
            wide = float(spread[asked.axes[0]])
            made.append((people, *_statistic(asked, numbers, weights / people, wide)))
    found = np.array(made)
    if asked.of_values:  # a share of each value is of all values together
        whole = found.reshape(-1, len(asked.keys[-1].labels), 3)
        whole[..., 1] = whole[..., 0]
        whole[..., 0] = whole[..., 0].sum(axis=1, keepdims=True)
        whole[..., 1] /= np.maximum(whole[..., 0], 1e-9)
    return found


def _statistic(asked: Asked, x: list[Floats], share: Floats, wide: float) -> tuple[float, float]:
    """Of numbers x, time behind them, each (r,), of people with shares (r,)."""
    mean = float(share @ x[0])
    if asked.verb == "mean":
        return mean, wide
    if asked.verb == "quantile":
        order, p = np.argsort(x[0]), asked.level
        ranks = np.cumsum(share[order]) - share[order] / 2
        low, value, high = np.interp([p - 0.1, p, p + 0.1], ranks, x[0][order])
        slope = float(high - low) / (min(p + 0.1, 1) - max(p - 0.1, 0))
        return float(value), max(math.sqrt(p * (1 - p)) * slope, wide)
    a, b = x[0] - mean, x[1] - float(share @ x[1])
    aa, bb, ab = (float(share @ (one * other)) for one, other in ((a, a), (b, b), (a, b)))
    if min(aa, bb) <= 0:
        return math.nan, math.nan
    return (ab / bb, wide / math.sqrt(bb)) if asked.verb == "trend" else (ab / (aa * bb) ** 0.5, 1)


# How sure ---------------------------------------------------------------------------------------


def _by_noise(asked: Asked, model: TrajectoryModel, crowd: Crowd, own: Floats) -> list[Doubt]:
    """By the noise of tables."""
    mu, total = told_by_tables(model) or (1.0, 1.0)
    columns, noises = of_tables(model.columns), group_noise(mu, model.columns, total)
    shared = len(asked.keys) - asked.of_values
    of = [*asked.axes[:1], *(one.axis for one in asked.share if one.axis < len(columns))]
    of += [key.axis for key in asked.keys[shared:] if key.axis is not None]
    made = []
    for k, (people, _, error) in enumerate(own):
        n, places = max(people, 1.0), np.unravel_index(k, asked.shape)
        here = [(one.axis, one.levels) for one in asked.where if one.levels]
        for key, level in zip(asked.keys[:shared], places, strict=False):
            here += [] if key.axis is None else [(key.axis, (int(level),))]
        sources, lost = [], ""  # noise in people, and the people it is over
        for axis, levels in here:
            noise, among = noises[columns[axis].name], crowd.people(axis, levels)
            if among <= SURE * noise.count * len(levels) ** 0.5:
                lost = "too few people for the noise"
            alone = asked.verb == "count" and len(here) == 1
            people_off = noise.count if alone else noise.mean / 2
            size = people_off if asked.verb == "count" else noise.mean
            sources.append((size * len(levels) ** 0.5, among))
        if not here:
            known = [noises[columns[axis].name] for axis in of] or list(noises.values())
            sources = [(max(2 * one.count, one.mean * (not one.count)), total) for one in known]
        off = math.sqrt(max(size**2 / (max(among, 1.0) * n) for size, among in sources))
        if asked.verb == "count":
            made.append(Doubt(SURE * off * n, lost))
            continue
        if not lost and asked.axes and off > APART:
            lost = "the noise hides its numbers"
        made.append(Doubt(SURE * error * math.hypot(off, n**-0.5), lost))
    return made


def _by_refits(
    asked: Asked, model: TrajectoryModel, spread: Floats, own: Floats, progress: Progress | None
) -> list[Doubt]:
    """By what fits to people who may be the truth make of them."""
    times, people = _moments(model, asked.edges)
    possible, known = PossibleCrowd(model), model.columns
    unit = possible.places(np.repeat(times, PEOPLE), 101).reshape(len(times), PEOPLE, -1)
    values = np.stack([one.from_unit(unit[..., k]) for k, one in enumerate(known)], axis=-1)
    truth = Crowd.of(decoded(known, values).swapaxes(0, 1), times, people)
    wanted, squares = _statistics(asked, truth, spread)[:, 1], []
    for k in range(1, REFITS + 1):
        refit, drawn = refitted(model, k, possible)
        scale = possible.people / drawn
        found = _statistics(asked, _crowd(refit, asked, scale), spread)[:, 1]
        squares.append((found - wanted) ** 2)
        if progress:
            progress(k, REFITS)
    off = np.nanmean(np.array(squares), axis=0)
    off = DOUBT * np.sqrt((off + np.nanmean(off)) / 2)
    half = np.hypot(off, SURE * own[:, 2] / np.sqrt(np.maximum(own[:, 0], 1.0)))
    most = math.inf
    if asked.verb in ("mean", "quantile"):
        most = SURE * APART * float(spread[asked.axes[0]])
    return [Doubt(h, "" if h <= most else "the noise hides its numbers") for h in half.tolist()]


# The answer -------------------------------------------------------------------------------------


def _crowd(model: TrajectoryModel, asked: Asked, scale: float = 1.0) -> Crowd:
    times, people = _moments(model, asked.edges)
    everybody = model if model.growth is None else model.with_growth(None)
    at = as_user_times(times, model.datetime)
    return Crowd.of(everybody.sample(PEOPLE, at, seed=0).values, times, scale * people)


def ask(model: TrajectoryModel, question: str, progress: Progress | None = None) -> Answer:
    """The answer of a model to a question in words: see `TrajectoryModel.ask`."""
    asked = Columns(model).asked(question)
    crowd = _crowd(model, asked)
    spread = np.nanstd(crowd.values, axis=0)
    own = _statistics(asked, crowd, spread)
    if told_by_tables(model) is not None:
        doubts = _by_noise(asked, model, crowd, own)
    elif can_be_refitted(model):
        doubts = _by_refits(asked, model, spread, own, progress)
    else:
        doubts = [Doubt(None, "")] * len(own)
    unit, bounds, per = 1.0, BOUNDS.get(asked.verb, (-math.inf, math.inf)), ""
    if asked.verb in ("mean", "quantile"):
        bounds = of_tables(model.columns)[asked.axes[0]].span
    if asked.verb == "trend":
        unit = YEAR if model.datetime else 1.0
        per = "per year" if model.datetime else f"per unit of {model.time_name}"
    rows = []
    for labels, (people, value, _), (half, lost) in zip(
        product(*(key.labels for key in asked.keys)), own.tolist(), doubts, strict=True
    ):
        row: dict[str, Any] = {key.name: x for key, x in zip(asked.keys, labels, strict=True)}
        row |= {"people": round(people), "value": None, "low": None, "high": None, "lost": lost}
        if not lost and not math.isfinite(value):
            row["lost"] = "hardly anybody is in it"
        elif not lost:
            row["value"] = unit * value
            if half is not None:
                ends = np.clip([value - half, value + half], *bounds)
                row["low"], row["high"] = (unit * ends).tolist()
        rows.append(row)
    return Answer(question, per, tuple(rows))
