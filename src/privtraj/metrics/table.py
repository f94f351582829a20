"""A table of scores, each with its floor and its ceiling.

No score means much alone: all of them depend on how many people are compared. So three candidates
stand the same test, in the same number, against the same reference people: the synthetic people,
fresh real people (the floor: nothing can be expected to do better), and people spread uniformly
over the box (the ceiling: no knowledge of the data at all).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError, aligned
from privtraj.base.space import from_unit
from privtraj.columns.kinds import Axes, Column
from privtraj.metrics import registry
from privtraj.metrics.columns import numbers_alone
from privtraj.metrics.distances import randomly_coupled
from privtraj.metrics.registry import Better, cloud, halves, partial_paths

Progress = Callable[[float], None]
"""Is told which share of the work is done."""


@dataclass(frozen=True)
class Score:
    """One line of the table; value, floor and ceiling are means over times.

    per_time: (T,) of the value, empty for scores of whole paths.  words: what it says.
    """

    name: str
    label: str
    value: float
    floor: float
    ceiling: float
    better: Better
    per_time: tuple[float, ...] = ()
    words: str = ""

    @property
    def gap(self) -> float:
        """(value - floor) / (ceiling - floor): 0 like fresh real people, 1 like no knowledge.

        Of ratios, where 1 is best, with |log| of all three.
        """
        numbers = np.array([self.value, self.floor, self.ceiling])
        value, floor, ceiling = np.abs(np.log(numbers)) if self.better == "1" else numbers
        room = ceiling - floor
        return float((value - floor) / room) if room else float("nan")

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
    box, the unit cube unless given.  columns: what the coordinates of points in the unit cube mean,
    where some are categories.  Of large clouds a random part is compared (`Metric.most`).
    """
    rng = np.random.default_rng(seed)
    sides = _sides(cloud, synthetic, real, fresh, rng)
    if not len(sides[0]) == len(sides[1]) == len(sides[2]) > 0:
        raise InputError("synthetic, real and fresh people must be given at the same times")
    options = {"columns": columns, "bounds": bounds, "seed": seed}
    return _scores(sides, options, rng, progress)


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
    Where people are absent, and their paths nan, only scores that know about absence are there.
    """
    rng = np.random.default_rng(seed)
    more = None if fresh is None else [fresh]
    sides = _sides(partial_paths, [synthetic], [real], more, rng)
    if len({side[0].shape[1:] for side in sides}) > 1:
        raise InputError("all paths must have the same times and features")
    at = registry.reading_times(times, sides[1][0].shape[1])
    options = {"columns": columns, "times": at, "bounds": bounds, "seed": seed}
    return _scores(sides, options, rng, progress)


def layout(scores: Sequence[Score]) -> str:
    """The table as text."""

    def short(value: float) -> str:
        return "-" if not np.isfinite(value) else f"{value:.3g}"

    heads = ("score", "model", "floor", "ceiling", "better")
    rows = [
        (one.label, *map(short, (one.value, one.floor, one.ceiling)), one.better) for one in scores
    ]
    return "\n".join(aligned([heads, *rows], right=(1, 2, 3)))


def uniform_like(points: Floats, bounds: Any, rng: np.random.Generator) -> Floats:
    """As many points (..., d), uniform on the box, and nan where they are."""
    unit = np.where(np.isnan(points), np.nan, rng.random(points.shape))
    return unit if bounds is None else from_unit(unit, bounds)


_Sides = tuple[list[Floats], ...]  # synthetic, reference and fresh people at each time


def _sides(
    checked: Callable[[Any], Floats],
    synthetic: Sequence[Any],
    real: Sequence[Any],
    fresh: Sequence[Any] | None,
    rng: np.random.Generator,
) -> _Sides:
    """All in random order; without fresh people, halves of the real ones stand in."""
    given = [side for side in (synthetic, real, fresh) if side is not None]
    sides = [[rng.permutation(checked(x)) for x in side] for side in given]
    if fresh is None:
        splits = [halves(len(y), rng) for y in sides[1]]
        pairs = list(zip(sides[1], splits, strict=True))
        sides[1:] = [[y[split[half]] for y, split in pairs] for half in (1, 0)]
    return tuple(sides)


def _scores(
    sides: _Sides, options: dict[str, Any], rng: np.random.Generator, progress: Progress | None
) -> list[Score]:
    """A line for each metric that makes sense of so many people, times and features."""
    synthetic, reference, fresh = sides
    columns, bounds, paths = options["columns"], options["bounds"], "times" in options
    if columns is None or not Axes.of(columns).mixed:
        columns = options["columns"] = None
    elif bounds is not None:
        raise InputError(
            "bounds and mixed columns do not go together: give points of the unit cube, and columns"
            " alone"
        )
    cut = [min(len(x), len(z)) for x, z in zip(synthetic, fresh, strict=True)]
    value, floor = ([x[:size] for x, size in zip(s, cut, strict=True)] for s in (synthetic, fresh))
    uniform = [uniform_like(x, bounds, rng) for x in value]
    coupled = [randomly_coupled(x, seed=options["seed"]) for x in floor if paths]
    metrics, scores = registry.all_metrics(paths=paths), []
    for number, metric in enumerate(metrics, start=1):
        few = metric.least_times > len(options.get("times", [0]))
        if few or (metric.mixed and columns is None):
            continue
        cases = [
            (x[: metric.most], y[: metric.most])
            for people in (value, floor, coupled if metric.coupled else uniform)
            for x, y in zip(people, reference, strict=True)
        ]
        compare = metric.with_options(**options)
        if columns is not None and "columns" not in compare.keywords:
            cases = [(numbers_alone(x, columns), numbers_alone(y, columns)) for x, y in cases]
        try:
            found = list(registry.on_all_cores(compare, cases))
        except InputError:  # too few people, too many cells, absence
            continue
        if progress is not None:
            progress(number / len(metrics))
        of = np.array(found).reshape(3, -1)
        if not np.isnan(of[0]).all():
            per_time = () if paths else tuple(of[0].tolist())
            ours, best, worst = of.mean(axis=1).tolist()
            read = (ours, best, worst, metric.better, per_time, metric.words)
            scores.append(Score(metric.name, metric.label, *read))
    return scores
