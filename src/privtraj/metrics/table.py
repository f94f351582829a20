"""A table of scores, each with its floor and its ceiling.

No score means much alone: all of them depend on how many people are compared. So three candidates
stand the same test, in the same number, against the same reference people: the synthetic people,
fresh real people (the floor: nothing can be expected to do better), and people spread uniformly
over the box (the ceiling: no knowledge of the data at all).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError, aligned
from privtraj.base.space import from_unit
from privtraj.columns.axes import Axes
from privtraj.columns.kinds import Column
from privtraj.metrics.clouds import cloud, halves, partial_paths, reading_times
from privtraj.metrics.cores import on_all_cores
from privtraj.metrics.encoding import numbers_alone
from privtraj.metrics.mobility import MOST_CELLS, usual_cells
from privtraj.metrics.path_space import randomly_coupled
from privtraj.metrics.registry import Better, Compare, Metric, cloud_metrics, path_metrics

Told = Callable[[float], None]
"""Is told which share of the work is done."""


def _nobody(share: float) -> None:
    """Who does not want to know."""


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


@dataclass(frozen=True)
class Candidates:
    """Clouds that stand the test: T of each, equally many people in each at a time."""

    value: list[Floats]
    floor: list[Floats]
    ceiling: list[Floats]

    def scored(
        self, compare: Compare, reference: list[Floats], most: int, told: Told = _nobody
    ) -> dict[str, Floats]:
        """(T,) scores of each candidate."""
        roles = vars(self)
        cases = [
            (x[:most], y[:most])
            for clouds in roles.values()
            for x, y in zip(clouds, reference, strict=True)
        ]
        scores = []
        for score in on_all_cores(compare, cases):
            scores.append(score)
            told(len(scores) / len(cases))
        return dict(zip(roles, np.array(scores).reshape(len(roles), -1), strict=True))

    def of_numbers(self, columns: Sequence[Column]) -> Candidates:
        """The same people, without their categories."""
        return Candidates(*(_of_numbers(clouds, columns) for clouds in vars(self).values()))


def cloud_scores(
    synthetic: Sequence[Any],
    real: Sequence[Any],
    *,
    fresh: Sequence[Any] | None = None,
    bounds: Any = None,
    columns: Sequence[Column] | None = None,
    seed: int = 0,
    told: Told = _nobody,
) -> list[Score]:
    """Scores of T clouds of synthetic people against T clouds of real people.

    fresh: T clouds of other real people, for the floor; without them a random half of the real
    people at each time stands in, and the other half is the reference.  bounds: (d, 2) the public
    box, the unit cube unless given; scores of distance are in units of the data.  columns: what the
    d coordinates of points in the unit cube mean, where some are categories: these have scores of
    their own, and distances are those of the numbers.  Of large clouds a random part is compared:
    1,000 people in exact transport, 2,000 in the energy distance, 10,000 elsewhere.
    told: is told which share of the work is done.
    """
    mixed = _mixed(columns, bounds)
    rng = np.random.default_rng(seed)
    people, reference, others = _sides(cloud, synthetic, real, fresh, rng)
    if not len(people) == len(reference) == len(others) > 0:
        raise InputError("synthetic, real and fresh people must be given at the same times")
    candidates = _candidates(people, others, bounds, rng)
    options = {"bounds": bounds, "seed": seed}
    return _scores(cloud_metrics(), lambda _: candidates, reference, mixed, told, **options)


def path_scores(
    synthetic: Any,
    real: Any,
    *,
    fresh: Any = None,
    times: Any = None,
    bounds: Any = None,
    columns: Sequence[Column] | None = None,
    seed: int = 0,
    told: Told = _nobody,
) -> list[Score]:
    """Scores of synthetic paths (n, T, d) against true paths (k, T, d).

    fresh, columns, told: as for `cloud_scores`.  times: (T,) of the readings, even unless given.
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
    uniform = _candidates(people, others, bounds, rng)
    coupled = replace(uniform, ceiling=[randomly_coupled(uniform.floor[0], seed=seed)])

    def candidates(metric: Metric) -> Candidates:
        return coupled if metric.coupled else uniform

    count = reference[0].shape[1]
    absence = any(np.isnan(side[0]).any() for side in (people, reference, others))
    metrics = [m for m in path_metrics() if m.least_times <= count and m.absence >= absence]
    options = {"times": reading_times(times, count), "bounds": bounds, "seed": seed}
    scores = _scores(metrics, candidates, reference, mixed, told, **options)
    return [replace(score, per_time=()) for score in scores]


def layout(rows: Sequence[tuple[str, float, float, float, str]]) -> str:
    """The table as text: label, value, floor, ceiling, what is better."""
    heads = ("score", "model", "floor", "ceiling", "better")
    cells = [heads, *((label, *map(_short, numbers), best) for label, *numbers, best in rows)]
    return "\n".join(aligned(cells, right=(1, 2, 3)))


def uniform_like(points: Floats, bounds: Any, rng: np.random.Generator) -> Floats:
    """As many points (..., d), uniform on the box, and nan where they are."""
    unit = np.where(np.isnan(points), np.nan, rng.random(points.shape))
    return unit if bounds is None else from_unit(unit, bounds)


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
) -> Candidates:
    """Cut to equally many people at each time, with as many uniform ones."""
    sizes = [min(len(x), len(z)) for x, z in zip(synthetic, fresh, strict=True)]
    value = [x[:size] for x, size in zip(synthetic, sizes, strict=True)]
    floor = [z[:size] for z, size in zip(fresh, sizes, strict=True)]
    return Candidates(value, floor, [uniform_like(x, bounds, rng) for x in value])


def _scores(
    metrics: Sequence[Metric],
    candidates_for: Callable[[Metric], Candidates],
    reference: list[Floats],
    mixed: Sequence[Column] | None,
    told: Told,
    **options: Any,
) -> list[Score]:
    """A line for each metric that makes sense of so many people and features.

    mixed: the columns, where some are categories.
    """
    known: dict[Any, dict[str, Floats]] = {}  # two lines of the same comparison cost one
    scores = []
    for number, metric in enumerate(metrics):
        candidates, truth = candidates_for(metric), reference
        if mixed is not None and not metric.takes_columns:
            candidates, truth = candidates.of_numbers(mixed), _of_numbers(reference, mixed)
        smallest, d = min(len(x) for x in [*candidates.value, *truth]), truth[0].shape[-1]
        if d == 0 or (metric.mixed and mixed is None):
            continue
        if smallest < metric.least or (metric.on_grid and usual_cells(d) ** d > MOST_CELLS):
            continue
        key = metric.compare, metric.most, metric.coupled
        if key not in known:
            compare = metric.with_options(columns=mixed, **options)
            known[key] = candidates.scored(
                compare, truth, metric.most, partial(_within, told, number, len(metrics))
            )
        if not (metric.mixed and np.isnan(known[key]["value"]).all()):
            scores.append(_score(metric, known[key]))
    return scores


def _within(told: Told, number: int, steps: int, share: float) -> None:
    """Tell the share of the whole, from that of one step."""
    told((number + share) / steps)


def _mixed(columns: Sequence[Column] | None, bounds: Any) -> Sequence[Column] | None:
    """The columns, if they are not all numbers."""
    if columns is None or not Axes.of(columns).mixed:
        return None
    if bounds is not None:
        raise InputError(
            Arg("bounds"),
            " and mixed ",
            Arg("columns"),
            " do not go together: give points of the unit cube, and ",
            Arg("columns"),
            " alone",
        )
    return columns


def _of_numbers(clouds: list[Floats], columns: Sequence[Column]) -> list[Floats]:
    return [numbers_alone(cloud, columns) for cloud in clouds]


def _score(metric: Metric, compared: dict[str, Floats]) -> Score:
    values = {role: metric.finish(v) if metric.finish else v for role, v in compared.items()}
    means = {role: float(np.mean(v)) for role, v in values.items()}
    per_time = tuple(values["value"].tolist())
    return Score(metric.name, metric.label, **means, better=metric.better, per_time=per_time)


def _short(value: float) -> str:
    return "-" if not np.isfinite(value) else f"{value:.3g}"
