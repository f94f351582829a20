"""Questions to a released model, each answer with the interval that holds the truth in nine of ten.

    mean hba1c by diagnosis, year            median, p90, trend (per unit of time) likewise
    share smoker=true by sex                 share diagnosis: of every value
    count by diagnosis where age=40..60 and sex=F
    correlation hba1c, weight by 4 periods

Nothing is read but the model, and it costs no privacy. People are drawn at times that are weighted
by the released numbers of people. How sure an answer is, the report says by the same numbers:

    tables       by the noise of the tables and the chance of n people, shrunk as contrasts are:
                 the formula of `groups`, once for each category that is named, in units of what
                 the statistic has if one person told it
    all else     by the refits to people who may be the truth (`quality`), and the chance of n.

A group whose noise may be `groups.APART` standard deviations is lost: it has no number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from privtraj.assess import groups
from privtraj.assess.common import SURE
from privtraj.assess.quality import REFITS, PossibleCrowd, can_be_refitted, refitted
from privtraj.assess.questions import Asked, Columns
from privtraj.base.arrays import Floats, Ints, Mask
from privtraj.base.errors import BudgetError, InputError, about, aligned
from privtraj.base.files import write_text
from privtraj.base.space import as_user_times
from privtraj.columns.conditions import Condition
from privtraj.columns.kinds import YEAR, decoded, of_tables
from privtraj.export.tables import write_table

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

Progress = Callable[[int, int], None]

PEOPLE = 3000  # drawn at each moment
MOMENTS, EACH = 24, 4  # over the range, and in each period at least
FEWEST = 10  # synthetic people of whom a statistic is taken
REFITS_OFF = 2.0
"""Root mean squared errors of refits in half an interval: with 2, 92 % of the answers about even
populations of experiments/quality.py held, and 94 % about odd ones; with 4, 99 %. It was set when
both had been seen."""
BOUNDS = {"share": (0.0, 1.0), "correlation": (-1.0, 1.0), "count": (0.0, math.inf)}


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
                    interval = " to ".join(written(row[end], digits) for end in ("low", "high"))
                value = written(row["value"], digits)
            lines.append([*keys, about(row["people"]), value, interval])
        right = range(len(names) - 2, len(names))
        return "\n".join(aligned(lines, right))


def written(value: float, digits: int) -> str:
    """With so many digits that count."""
    decimals = digits - 1 - math.floor(math.log10(abs(value) or 1))
    return f"{round(value, decimals):,.{max(decimals, 0)}f}"


class Doubt(NamedTuple):
    """Of an answer. half: width of its interval, None if not known.  lost: why it has no number."""

    half: float | None
    lost: str


# People, and statistics of them ---------------------------------------------------------------


def _moments(model: TrajectoryModel, edges: Floats) -> tuple[Floats, Floats]:
    """Times (Q,), and how many people there were around each, by the released numbers."""
    if model.diagnostics.get("listed_times"):
        counts, lengths = groups.released_people(model)
        return model.numeric_times, np.repeat(counts / lengths, lengths.astype(int))
    edges = edges if len(edges) else model.knots[[0, -1]]
    each = max(EACH, math.ceil(MOMENTS / (len(edges) - 1)))
    parts = np.interp(np.arange((len(edges) - 1) * each + 1) / each, np.arange(len(edges)), edges)
    return (parts[1:] + parts[:-1]) / 2, groups.people_between(model, parts)


@dataclass(frozen=True)
class Crowd:
    """Rows of people: values (r, e + 1), the last of them time, and how many each stands for."""

    values: Floats
    weights: Floats
    _known: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Floats, times: Floats, people: Floats) -> Crowd:
        """Of values (n, Q, e) at times (Q,), around which there were so many people (Q,)."""
        n, q, _ = values.shape
        rows = np.concatenate([values, np.broadcast_to(times[:, None], (n, q, 1))], axis=2)
        return cls(np.asfortranarray(rows.reshape(n * q, -1)), np.tile(people / n, n))

    @cached_property
    def spread(self) -> Floats:
        """(e + 1,) standard deviations of all columns."""
        return np.asarray(np.nanstd(self.values, axis=0))

    def people(self, axis: int, levels: Sequence[int]) -> float:
        """How many have one of these levels of a category."""
        if axis not in self._known:
            self._known[axis] = np.bincount(self.values[:, axis].astype(int), self.weights)
        counts = self._known[axis]
        return float(sum(counts[level] for level in levels if level < len(counts)))

    def groups(self, asked: Asked) -> list[Ints]:
        """Rows of every group who have the numbers that are asked about, in the order of the first
        of these; groups in the order of keys. Many questions share them."""
        asking = asked.where, asked.keys, asked.axes
        if asking not in self._known and asked.axes:
            numbers = self.values[:, asked.axes]
            told = ~np.any(np.isnan(numbers), axis=1)
            every = [rows[told[rows]] for rows in self.groups(replace(asked, axes=()))]
            self._known[asking] = [rows[np.argsort(numbers[rows, 0])] for rows in every]
        elif asking not in self._known:
            inside, group = self.hold(asked.where), np.zeros(len(self.values), int)
            for key in asked.keys:
                level = key.of(self.values)
                inside, group = inside & (level >= 0), group * len(key.labels) + level
            order = np.flatnonzero(inside)
            order = order[np.argsort(group[order], kind="stable")]
            cuts = np.searchsorted(group[order], np.arange(1, math.prod(asked.shape)))
            self._known[asking] = np.split(order, cuts)
        return self._known[asking]

    def hold(self, conditions: Sequence[Condition]) -> Mask:
        """(r,) who is as all conditions say."""
        held = np.ones(len(self.values), bool)
        for one in conditions:
            held &= one.hold(self.values[:, one.axis])
        return held


def statistics(asked: Asked, crowd: Crowd, spread: Floats) -> Floats:
    """(R, 3) of every group, in the order of keys: people, the statistic, and its standard
    deviation if one person told it. spread: of every column in everybody."""
    made, wanted = [], crowd.hold(asked.share)
    for rows in crowd.groups(asked):
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
    """Of numbers x, the first in order, time behind them, each (r,), of people with shares (r,)."""
    mean = float(share @ x[0])
    if asked.verb == "mean":
        return mean, wide
    if asked.verb == "quantile":
        p = asked.level
        ranks = np.cumsum(share) - share / 2
        near = min(0.1, p / 2, (1 - p) / 2)
        low, value, high = np.interp([p - near, p, p + near], ranks, x[0])
        slope = float(high - low) / (2 * near)
        return float(value), max(math.sqrt(p * (1 - p)) * slope, wide)
    a, b = x[0] - mean, x[1] - float(share @ x[1])
    aa, bb, ab = (float(share @ (one * other)) for one, other in ((a, a), (b, b), (a, b)))
    if min(aa, bb) <= 0:
        return math.nan, math.nan
    return (ab / bb, wide / math.sqrt(bb)) if asked.verb == "trend" else (ab / (aa * bb) ** 0.5, 1)


# Answers ----------------------------------------------------------------------------------------


class Answers:
    """Of one model, whose people are drawn once for all questions about the same periods, and about
    none."""

    def __init__(self, model: TrajectoryModel, progress: Progress | None = None) -> None:
        self.model, self.progress = model, progress
        self.columns, self._edges = Columns(model), np.empty(0)
        self._crowd, self._drawn = PossibleCrowd(model), dict[Any, Crowd]()

    def ask(self, question: str | Asked) -> Answer:
        """The answer to a question, in words or not: see `TrajectoryModel.ask`."""
        model, words, asked = self.model, "", question
        if not isinstance(asked, Asked):
            words, asked = asked, self.columns.asked(asked)
        crowd = self._people(asked)
        spread = crowd.spread
        own = statistics(asked, crowd, spread)
        if groups.told_by_tables(model) is not None:
            doubts = self._by_noise(asked, crowd, own)
        elif can_be_refitted(model):
            doubts = self._by_refits(asked, spread, own)
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
        return Answer(words, per, tuple(rows))

    def _people(self, asked: Asked, refit: int = 0) -> Crowd:
        """Of the model, or of a refit of it."""
        self._edges = asked.edges if len(asked.edges) else self._edges
        key = refit, self._edges.tobytes()
        if key not in self._drawn:
            model, scale = self.model, 1.0
            if refit:
                model, drawn = refitted(model, refit, self._crowd)
                scale = self._crowd.people / drawn  # people that one of it stands for
            times, people = _moments(model, self._edges)
            # as they are at each time: not with those who come and go, nor as they would age
            public = replace(model.constraints, monotone={})
            everybody = model
            if model.growth is not None or model.constraints.monotone:
                everybody = replace(model, growth=None, constraints=public)
            at = as_user_times(times, model.datetime)
            most = max(PEOPLE, model.particles.shape[1])  # each curve as often as any other
            values = everybody.sample(most, at, seed=0).values
            self._drawn[key] = Crowd.of(values, times, scale * people)
        return self._drawn[key]

    def _possible(self) -> Crowd:
        """Of people who may be the truth."""
        key = "possible", self._edges.tobytes()
        if key not in self._drawn:
            known, (times, people) = self.model.columns, _moments(self.model, self._edges)
            unit = self._crowd.places(np.repeat(times, PEOPLE), 101).reshape(len(times), PEOPLE, -1)
            values = np.stack([one.from_unit(unit[..., k]) for k, one in enumerate(known)], axis=-1)
            self._drawn[key] = Crowd.of(decoded(known, values).swapaxes(0, 1), times, people)
        return self._drawn[key]

    def _by_noise(self, asked: Asked, crowd: Crowd, own: Floats) -> list[Doubt]:
        """By the noise of tables."""
        model, verb = self.model, asked.verb
        mu, total = groups.told_by_tables(model) or (1.0, 1.0)
        columns, by_name = of_tables(model.columns), groups.group_noise(mu, model.columns, total)
        noises = [by_name[one.name] for one in columns]
        shared = len(asked.keys) - asked.of_values
        of = [*asked.axes[:1], *(one.axis for one in asked.share if one.axis < len(columns))]
        of += [key.axis for key in asked.keys[shared:] if key.axis is not None]
        whole = max(2 * one.count or one.mean for one in [noises[k] for k in of] or noises)
        periods, span = max(len(asked.edges) - 1, 1), float(np.ptp(model.knots))
        each = total / model.particles.shape[1] / periods  # people for whom one is drawn
        made, beside = list[Doubt](), groups.BESIDE if asked.axes else 0.0
        for k, (people, value, error) in enumerate(own.tolist()):
            n, places = max(people, 1.0), np.unravel_index(k, asked.shape)
            here = [(one.axis, one.levels) for one in asked.where if one.levels]
            for key, level in zip(asked.keys[:shared], places, strict=False):
                here += [] if key.axis is None else [(key.axis, key.levels[int(level)])]
            # what noise does to a mean, and among how many people it is spread
            known, lost = [] if here else [(groups.off_by(whole, n, total), total)], ""
            for axis, levels in here:
                noise, among = noises[axis], max(crowd.people(axis, levels), 1.0)
                if noise.lost(among, len(levels)) == "share":
                    lost = "too few people for the noise"
                size = noise.mean
                if verb == "count":
                    size = noise.count if len(here) == 1 else noise.mean / 2**0.5
                known.append((groups.off_by(size, n, among, len(levels)), among))
            if verb == "count":
                off = sum(off**2 for off, _ in known) + bool(here) * each / n
                made.append(Doubt(SURE * n * math.sqrt(off), lost))
                continue
            if not lost and asked.axes and max(known)[0] > groups.APART:
                lost = "the noise hides its numbers"
            usual = groups.USUAL * (2 / 3 if verb == "correlation" else 1)
            variance = sum(
                off**2 * (1 + beside * n / among + groups.HIDDEN * (1 - n / among))
                for off, among in known
            )
            if verb == "share":  # noise is that of a cell
                error = max(value * (1 - value), 1 / n) ** 0.5
                variance /= 4 * error**2
            elif verb == "trend":  # over half of the range
                variance *= 1 + groups.HIDDEN
                usual *= 2 * float(crowd.spread[asked.axes[0]]) / max(span * error, 1e-300)
            elif verb == "correlation" and here:  # in no table of two columns
                variance += (groups.USUAL / 2) ** 2
            made.append(Doubt(error * groups.half_width(variance + 1 / n, each / n, usual), lost))
        return made

    def _by_refits(self, asked: Asked, spread: Floats, own: Floats) -> list[Doubt]:
        """By what fits to people who may be the truth make of them."""
        squares, wanted = [], statistics(asked, self._possible(), spread)[:, 1]
        for k in range(1, REFITS + 1):
            try:
                crowd = self._people(asked, k)
            except (InputError, BudgetError):  # by settings that a model does not tell
                return [Doubt(None, "")] * len(own)
            squares.append((statistics(asked, crowd, spread)[:, 1] - wanted) ** 2)
            if self.progress:
                self.progress(k, REFITS)
        off = np.nanmean(np.array(squares), axis=0)
        off = REFITS_OFF * np.sqrt((off + np.nanmean(off)) / 2)
        half = np.hypot(off, SURE * own[:, 2] / np.sqrt(np.maximum(own[:, 0], 1.0)))
        most = math.inf
        if asked.verb in ("mean", "quantile"):
            most = SURE * groups.APART * float(spread[asked.axes[0]])
        return [Doubt(h, "" if h <= most else "the noise hides its numbers") for h in half.tolist()]


def ask(model: TrajectoryModel, question: str, progress: Progress | None = None) -> Answer:
    """The answer of a model to a question in words: see `TrajectoryModel.ask`."""
    return Answers(model, progress).ask(question)
