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
from typing import Any, Literal

import numpy as np

from privtraj.arrays import Floats
from privtraj.errors import InputError
from privtraj.metrics import mobility, trips
from privtraj.metrics.cells import MOST_CELLS, usual_cells
from privtraj.metrics.classifier import two_sample_auc
from privtraj.metrics.clouds import as_points, cloud, halves, path_cloud
from privtraj.metrics.energy import energy_distance
from privtraj.metrics.path_space import path_wasserstein2, randomly_coupled
from privtraj.metrics.sliced import sliced_wasserstein2
from privtraj.metrics.transport import squared_wasserstein2, wasserstein1
from privtraj.space import from_unit

Better = Literal["lower", "higher", "0.5"]

MOST = 1000  # people per cloud in exact transport, which grows with their square and more
_MANY = 10 * MOST  # in everything else
_FOLDS = 5


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
        """(value - floor) / (ceiling - floor): 0 like fresh real people, 1 like no knowledge."""
        room = self.ceiling - self.floor
        return (self.value - self.floor) / room if room else float("nan")

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "per_time": list(self.per_time), "gap": self.gap}


@dataclass(frozen=True)
class _Metric:
    name: str
    label: str
    better: Better
    compare: Callable[[Any, Any], float]
    most: int = _MANY  # people per cloud that are compared


@dataclass(frozen=True)
class Candidates:
    """Clouds that stand the test: T of each, equally many people in each at a time."""

    value: list[Floats]
    floor: list[Floats]
    ceiling: list[Floats]

    def scored(
        self, compare: Callable[[Any, Any], float], reference: list[Floats], most: int
    ) -> dict[str, Floats]:
        """(T,) scores of each candidate."""
        return {
            role: np.array(
                [compare(x[:most], y[:most]) for x, y in zip(clouds, reference, strict=True)]
            )
            for role, clouds in vars(self).items()
        }


def cloud_scores(
    synthetic: Sequence[Any],
    real: Sequence[Any],
    *,
    fresh: Sequence[Any] | None = None,
    bounds: Any = None,
    seed: int = 0,
) -> list[Score]:
    """Scores of T clouds of synthetic people against T clouds of real people.

    fresh: T clouds of other real people, for the floor; without them a random half of the real
    people at each time stands in, and the other half is the reference.  bounds: (d, 2) the public
    box, the unit cube unless given; scores of distance are in units of the data.  Of large clouds a
    random part is compared: 1,000 people in exact transport, 2,000 in the energy distance, 10,000
    elsewhere.
    """
    rng = np.random.default_rng(seed)
    clouds = [[_shuffled(cloud(x), rng) for x in side] for side in (synthetic, real)]
    if fresh is None:
        splits = [halves(len(y), rng) for y in clouds[1]]
        others = [y[some] for y, (some, _) in zip(clouds[1], splits, strict=True)]
        clouds[1] = [y[rest] for y, (_, rest) in zip(clouds[1], splits, strict=True)]
    else:
        others = [_shuffled(cloud(x), rng) for x in fresh]
    _check_times(*clouds, others)
    candidates = _candidates(clouds[0], others, bounds, rng)
    metrics = _cloud_metrics(clouds[1][0].shape[1], bounds, seed, candidates, clouds[1])
    squared = candidates.scored(squared_wasserstein2, clouds[1], MOST)
    rows = [
        _row("w2", "W2", "lower", {role: np.sqrt(v) for role, v in squared.items()}),
        _row("squared_w2", "squared W2", "lower", squared),
    ]
    for metric in metrics:
        values = candidates.scored(metric.compare, clouds[1], metric.most)
        rows.append(_row(metric.name, metric.label, metric.better, values))
    return rows


def path_scores(
    synthetic: Any, real: Any, *, fresh: Any = None, bounds: Any = None, seed: int = 0
) -> list[Score]:
    """Scores of synthetic paths (n, T, d) against true paths (k, T, d).

    fresh: as for `cloud_scores`.  The ceiling of the path-space W2 is the true marginals coupled at
    random, so that it shows the coupling; all others have paths of uniform points.
    """
    rng = np.random.default_rng(seed)
    x, y = (_shuffled(path_cloud(paths), rng) for paths in (synthetic, real))
    if fresh is None:
        some, rest = halves(len(y), rng)
        z, y = y[some], y[rest]
    else:
        z = _shuffled(path_cloud(fresh), rng)
    if not x.shape[1:] == y.shape[1:] == z.shape[1:]:
        raise InputError("all paths must have the same times and features")
    candidates = _candidates([x], [z], bounds, rng)
    coupled = Candidates(
        candidates.value, candidates.floor, [randomly_coupled(candidates.floor[0], seed=seed)]
    )
    distance = coupled.scored(path_wasserstein2, [y], MOST)
    rows = [_row("path_w2", "path W2", "lower", distance)]
    for metric in _path_metrics(y.shape[2], bounds, seed, min(len(candidates.value[0]), len(y))):
        values = candidates.scored(metric.compare, [y], metric.most)
        rows.append(_row(metric.name, metric.label, metric.better, values))
    return [replace(row, per_time=()) for row in rows]


def layout(rows: Sequence[tuple[str, float, float, float, str]]) -> str:
    """The table as text: label, value, floor, ceiling, what is better."""
    heads = ("score", "model", "floor", "ceiling", "better")
    cells = [heads, *((label, *map(_short, numbers), best) for label, *numbers, best in rows)]
    width = max(len(line[0]) for line in cells)
    return "\n".join(
        f"{line[0]:<{width}}  {line[1]:>9}  {line[2]:>9}  {line[3]:>9}  {line[4]}" for line in cells
    )


def _cloud_metrics(
    d: int, bounds: Any, seed: int, candidates: Candidates, reference: list[Floats]
) -> list[_Metric]:
    box = partial(_with_options, bounds=bounds)
    metrics = [
        _Metric("w1", "W1", "lower", wasserstein1, MOST),
        _Metric("sliced_w2", "sliced W2", "lower", partial(sliced_wasserstein2, seed=seed)),
        _Metric("energy", "energy distance", "lower", energy_distance, 2 * MOST),
        _Metric(
            "query_error",
            "range-query error",
            "lower",
            partial(mobility.range_query_error, bounds=bounds, seed=seed),
        ),
    ]
    if usual_cells(d) ** d <= MOST_CELLS:
        metrics += [
            _Metric("density_jsd", "density JSD", "lower", box(mobility.density_jsd)),
            _Metric("hotspot_ndcg", "hotspot NDCG@5", "higher", box(mobility.hotspot_ndcg)),
            _Metric("kendall_tau", "Kendall tau of cells", "higher", box(mobility.kendall_tau)),
        ]
    smallest = min(len(x) for x in [*candidates.value, *reference])
    if smallest >= _FOLDS:
        auc = partial(two_sample_auc, folds=_FOLDS, most=MOST, seed=seed)
        metrics.append(_Metric("auc", "classifier AUC", "0.5", auc))
    return metrics


def _path_metrics(d: int, bounds: Any, seed: int, smallest: int) -> list[_Metric]:
    box = partial(_with_options, bounds=bounds)
    metrics = [
        _Metric("length_jsd", "length JSD", "lower", box(trips.length_jsd)),
        _Metric("diameter_jsd", "diameter JSD", "lower", box(trips.diameter_jsd)),
    ]
    if usual_cells(d) ** d <= MOST_CELLS:
        metrics += [
            _Metric("trip_jsd", "trip JSD", "lower", box(trips.trip_jsd)),
            _Metric("pattern_f1", "frequent-pattern F1", "higher", box(trips.pattern_f1)),
        ]
    if smallest >= _FOLDS:

        def auc(a: Floats, b: Floats) -> float:
            return two_sample_auc(as_points(a), as_points(b), folds=_FOLDS, most=MOST, seed=seed)

        metrics.append(_Metric("path_auc", "classifier AUC of paths", "0.5", auc))
    return metrics


def _with_options(compare: Callable[..., float], **options: Any) -> Callable[[Any, Any], float]:
    return partial(compare, **options)


def _candidates(
    synthetic: list[Floats], fresh: list[Floats], bounds: Any, rng: np.random.Generator
) -> Candidates:
    """Cut to equally many people at each time, with as many uniform ones."""
    sizes = [min(len(x), len(z)) for x, z in zip(synthetic, fresh, strict=True)]
    value = [x[:size] for x, size in zip(synthetic, sizes, strict=True)]
    floor = [z[:size] for z, size in zip(fresh, sizes, strict=True)]
    return Candidates(value, floor, [uniform_like(x, bounds, rng) for x in value])


def uniform_like(points: Floats, bounds: Any, rng: np.random.Generator) -> Floats:
    """As many points (..., d), uniform on the box."""
    unit = rng.random(points.shape)
    return unit if bounds is None else from_unit(unit, bounds)


def _row(name: str, label: str, better: Better, values: dict[str, Floats]) -> Score:
    means = {role: float(np.mean(v)) for role, v in values.items()}
    return Score(name, label, **means, better=better, per_time=tuple(values["value"].tolist()))


def _shuffled(points: Floats, rng: np.random.Generator) -> Floats:
    """In random order, so that the first few are a fair sample."""
    return rng.permutation(points)


def _check_times(*sides: Sequence[Floats]) -> None:
    if len({len(side) for side in sides}) > 1 or not sides[0]:
        raise InputError("synthetic, real and fresh people must be given at the same times")


def _short(value: float) -> str:
    return "-" if not np.isfinite(value) else f"{value:.3g}"
