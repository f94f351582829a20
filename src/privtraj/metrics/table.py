"""A table of scores, each with its floor and its ceiling.

No score means much alone: all of them depend on how many people are compared. So three candidates
stand the same test, in the same number, against the same reference people: the synthetic people,
fresh real people (the floor: nothing can be expected to do better), and people spread uniformly
over the box (the ceiling: no knowledge of the data at all).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from inspect import signature
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError, aligned
from privtraj.base.space import from_unit
from privtraj.columns.axes import Axes
from privtraj.columns.kinds import Column
from privtraj.metrics.columns import numbers_alone
from privtraj.metrics.distances import randomly_coupled
from privtraj.metrics.registry import (
    Better,
    Metric,
    cloud,
    cloud_metrics,
    halves,
    on_all_cores,
    partial_paths,
    path_metrics,
    reading_times,
)

Progress = Callable[[float], None]
"""Is told which share of the work is done."""


@dataclass(frozen=True)
class Score:
    """One line of the table; value, floor and ceiling are means over times.

    per_time: (T,) of the value, empty for scores of whole paths.
    """

    name: str
    label: str
    value: float
    floor: float
    ceiling: float
    better: Better
    per_time: tuple[float, ...] = ()

    @property
    def gap(self) -> float:
        """(value - floor) / (ceiling - floor): 0 like fresh real people, 1 like no knowledge.

        Of ratios, where 1 is best, with |log| of all three.
        """
        numbers = np.array([self.value, self.floor, self.ceiling])
        value, floor, ceiling = np.abs(np.log(numbers)) if self.better == "1" else numbers
        room = ceiling - floor
        return float((value - floor) / room) if room else float("nan")

    @property
    def line(self) -> tuple[str, float, float, float, str]:
        """For `layout`."""
        return self.label, self.value, self.floor, self.ceiling, self.better

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "per_time": list(self.per_time), "gap": self.gap}


def cloud_scores(
    synthetic: Sequence[Any],
    real: Sequence[Any],
    *,
    fresh: Sequence[Any] | None = None,
    bounds: Any = None,
    columns: Sequence[Column] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Score]:
    """Scores of T clouds of synthetic people against T clouds of real people.

    fresh: T clouds of other real people, for the floor; without them a random half of the real
    people at each time stands in, and the other half is the reference.  bounds: (d, 2) the public
    box, the unit cube unless given; scores of distance are in units of the data.  columns: what the
    d coordinates of points in the unit cube mean, where some are categories: these have scores of
    their own, and distances are those of the numbers.  Of large clouds a random part is compared:
    1,000 people in exact transport, 10,000 elsewhere.
    """
    mixed = _mixed(columns, bounds)
    rng = np.random.default_rng(seed)
    people, reference, others = _sides(cloud, synthetic, real, fresh, rng)
    if not len(people) == len(reference) == len(others) > 0:
        raise InputError("synthetic, real and fresh people must be given at the same times")
    candidates = _candidates(people, others, bounds, rng)
    options = {"columns": mixed, "bounds": bounds, "seed": seed}
    return _scores(cloud_metrics(), lambda _: candidates, reference, options, progress)


def path_scores(
    synthetic: Any,
    real: Any,
    *,
    fresh: Any = None,
    times: Any = None,
    bounds: Any = None,
    columns: Sequence[Column] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Score]:
    """Scores of synthetic paths (n, T, d) against true paths (k, T, d).

    fresh, columns: as for `cloud_scores`.  times: (T,) of the readings, even unless given.
    The ceiling of the path-space W2 and of all scores of movement, changes and persistence is the
    true marginals coupled at random, so that it shows the coupling; the others have paths of
    uniform points. Paths may be nan where people are absent: then only scores that know about
    absence are there.
    """
    mixed = _mixed(columns, bounds)
    rng = np.random.default_rng(seed)
    more = None if fresh is None else [fresh]
    people, reference, others = _sides(partial_paths, [synthetic], [real], more, rng)
    if len({side[0].shape[1:] for side in (people, reference, others)}) > 1:
        raise InputError("all paths must have the same times and features")
    value, floor, uniform = _candidates(people, others, bounds, rng)
    coupled = [randomly_coupled(floor[0], seed=seed)]
    at = reading_times(times, reference[0].shape[1])
    options = {"columns": mixed, "times": at, "bounds": bounds, "seed": seed}

    def candidates(metric: Metric) -> _Candidates:
        return value, floor, coupled if metric.coupled else uniform

    scores = _scores(path_metrics(), candidates, reference, options, progress)
    return [replace(score, per_time=()) for score in scores]


def layout(rows: Sequence[tuple[str, float, float, float, str]]) -> str:
    """The table as text: label, value, floor, ceiling, what is better."""

    def short(value: float) -> str:
        return "-" if not np.isfinite(value) else f"{value:.3g}"

    heads = ("score", "model", "floor", "ceiling", "better")
    cells = [heads, *((label, *map(short, numbers), best) for label, *numbers, best in rows)]
    return "\n".join(aligned(cells, right=(1, 2, 3)))


def uniform_like(points: Floats, bounds: Any, rng: np.random.Generator) -> Floats:
    """As many points (..., d), uniform on the box, and nan where they are."""
    unit = np.where(np.isnan(points), np.nan, rng.random(points.shape))
    return unit if bounds is None else from_unit(unit, bounds)


_Candidates = tuple[list[Floats], list[Floats], list[Floats]]  # of value, floor and ceiling


def _scores(
    metrics: Sequence[Metric],
    candidates_for: Callable[[Metric], _Candidates],
    reference: list[Floats],
    options: dict[str, Any],
    progress: Progress | None,
) -> list[Score]:
    """A line for each metric that makes sense of so many people, times and features."""
    columns, scores = options["columns"], []
    for number, metric in enumerate(metrics, start=1):
        few = metric.least_times > len(options.get("times", [0]))
        if few or (metric.mixed and columns is None):
            continue
        cases = [
            (x[: metric.most], y[: metric.most])
            for clouds in candidates_for(metric)
            for x, y in zip(clouds, reference, strict=True)
        ]
        if columns is not None and "columns" not in signature(metric.compare).parameters:
            cases = [(numbers_alone(x, columns), numbers_alone(y, columns)) for x, y in cases]
        try:
            found = list(on_all_cores(metric.with_options(**options), cases))
        except InputError:  # too few people, too many cells, absence
            continue
        if progress is not None:
            progress(number / len(metrics))
        of = np.array(found).reshape(3, -1)
        if not np.isnan(of[0]).all():
            value, floor, ceiling = of.mean(axis=1).tolist()
            line = (metric.name, metric.label, value, floor, ceiling, metric.better)
            scores.append(Score(*line, tuple(of[0].tolist())))
    return scores


def _sides(
    checked: Callable[[Any], Floats],
    synthetic: Sequence[Any],
    real: Sequence[Any],
    fresh: Sequence[Any] | None,
    rng: np.random.Generator,
) -> tuple[list[Floats], ...]:
    """Synthetic, reference and fresh people at each time, in random order."""
    given = [side for side in (synthetic, real, fresh) if side is not None]
    sides = [[rng.permutation(checked(x)) for x in side] for side in given]
    if fresh is None:
        splits = [halves(len(y), rng) for y in sides[1]]
        pairs = list(zip(sides[1], splits, strict=True))
        sides[1:] = [[y[split[half]] for y, split in pairs] for half in (1, 0)]
    return tuple(sides)


def _candidates(
    synthetic: list[Floats], fresh: list[Floats], bounds: Any, rng: np.random.Generator
) -> _Candidates:
    """Cut to equally many people at each time, with as many uniform ones."""
    sizes = [min(len(x), len(z)) for x, z in zip(synthetic, fresh, strict=True)]
    value = [x[:size] for x, size in zip(synthetic, sizes, strict=True)]
    floor = [z[:size] for z, size in zip(fresh, sizes, strict=True)]
    return value, floor, [uniform_like(x, bounds, rng) for x in value]


def _mixed(columns: Sequence[Column] | None, bounds: Any) -> Sequence[Column] | None:
    """The columns, if they are not all numbers."""
    if columns is None or not Axes.of(columns).mixed:
        return None
    if bounds is not None:
        raise InputError(
            "bounds and mixed columns do not go together: give points of the unit cube, and columns"
            " alone"
        )
    return columns
