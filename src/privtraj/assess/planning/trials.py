"""Fits that cost nobody anything: the real pipeline on stand-ins, and what they say together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from privtraj.assess.planning.forecast import GOOD, Forecast, Level, Remedies, level_of
from privtraj.assess.planning.question import STAND_INS, Question
from privtraj.assess.planning.standins import Yardstick, people_at
from privtraj.base.arrays import Floats, Ints
from privtraj.data.snapshots import Snapshots
from privtraj.model.model import TrajectoryModel
from privtraj.recipe import LARGEST_EPSILON, SMALLEST_EPSILON

Progress = Callable[[int, int], None]

# Gradients and marginals take seconds for each fit, so there are fewer of them.
_SEEDS = {"counts": (1,), "gradients": (1,), "marginals": (1,)}
_FEW_STEPS = (-3, -1.5, 0, 1.5, 3)
_STEPS = {  # powers of two
    "counts": (-3, -2, -1, 0, 1, 2, 3),
    "gradients": _FEW_STEPS,
    "marginals": _FEW_STEPS,
}
_MORE_PEOPLE = (2, 4, 8, 16, 32, 64)
# Set by hand: few times are scored, as each takes an optimal transport.
_SCORED_TIMES = 3  # at which a fit is compared with the truth
_VISITS = 256  # moments at which people come who come at any time
READ_TIMES = 25  # bins whose numbers of people are public, if people come at any time
RELEASED = 500  # synthetic people that are compared
READ_AT = np.array([0.12, 0.45, 0.83])  # where they are compared then


class _Counter:
    """Tells how many of the expected fits are done, first that none is."""

    def __init__(self, total: int, tell: Progress | None) -> None:
        self._done, self._total, self._tell = -1, total, tell
        self()

    def __call__(self) -> None:
        self._done += 1
        if self._tell is not None:
            self._tell(self._done, self._total)


def simulated(question: Question, progress: Progress | None = None) -> Forecast:
    """The forecast, by fits to all stand-ins over epsilon."""
    measure = question.chosen_measure
    seeds = _SEEDS[measure]
    epsilons = _epsilons(question, _STEPS[measure])
    fits = len(STAND_INS) * len(seeds)
    count = _Counter(fits * len(epsilons) + 1, progress)
    curve, settings = _curve(question, epsilons, seeds, count)
    levels = [
        level_of(worths, measure, question.records * epsilon)
        for worths, epsilon in zip(curve.T, epsilons.tolist(), strict=True)
    ]
    asked = levels[epsilons.tolist().index(question.epsilon)]
    bad = asked.worth < GOOD
    remedies = _remedies(question, epsilons, levels) if bad else None
    count()
    return Forecast(
        question,
        epsilons,
        tuple(levels),
        settings=settings,
        remedies=remedies,
        simulated=question.simulated().people,
        fits=fits,
    )


def _epsilons(question: Question, steps: Iterable[float]) -> Floats:
    """(k,) around the one asked for, which is among them."""
    wanted = [question.epsilon * 2.0**step for step in steps]
    return np.array([e for e in wanted if SMALLEST_EPSILON <= e <= LARGEST_EPSILON])


def _curve(
    question: Question, epsilons: Floats, seeds: Iterable[int], count: _Counter
) -> tuple[Floats, dict[str, Any]]:
    """Worth (fits, k), and what the fits at the asked epsilon chose."""
    asked = [replace(question, epsilon=float(epsilon)).simulated() for epsilon in epsilons]
    times = scored_times(question)
    worths, chosen = [], []
    for name in STAND_INS:
        yardstick = Yardstick.of(name, times, question.features)
        for seed in seeds:
            records = records_of(asked[0], name, seed)
            row = []
            for epsilon, each in zip(epsilons, asked, strict=True):
                model = fit(each, records, seed)
                row.append(worth_at(model, times, yardstick, seed))
                if epsilon == question.epsilon:
                    chosen.append(model.settings)
                count()
            worths.append(row)
    return np.array(worths), _ranges(chosen)


def _ranges(chosen: list[dict[str, Any]]) -> dict[str, Any]:
    """What the fits did: (least, most) of every number."""
    ranges: dict[str, Any] = {"measure": chosen[0]["measure"]}
    for key in ("cells_per_side", "particles", "steps", "slabs"):
        values = [settings.get(key) or 0 for settings in chosen]
        ranges[key] = [min(values), max(values)]
    return ranges


# What would help ------------------------------------------------------------------------------


def _remedies(question: Question, epsilons: Floats, levels: list[Level]) -> Remedies:
    enough = [float(e) for e, level in zip(epsilons, levels, strict=True) if level.worth >= GOOD]
    larger = [epsilon for epsilon in enough if epsilon > question.epsilon]
    return Remedies(
        epsilon=min(larger, default=None),
        people=_first(question, "people", [question.people * k for k in _MORE_PEOPLE]),
        features=_first(question, "features", _fewer_features(question.features)),
    )


def _fewer_features(features: int) -> list[int]:
    candidates = {features - 1, round(features * 0.7), features // 2, features // 4, 2, 1}
    return sorted((n for n in candidates if 1 <= n < features), reverse=True)


def _first(question: Question, name: str, values: Iterable[int]) -> int | None:
    """The first of these values, in place of the asked one, that reaches a good forecast."""
    for value in values:
        other = replace(question, **{name: value})  # type: ignore[arg-type]
        if worth_once(other) >= GOOD:
            return value
    return None


def worth_once(question: Question) -> float:
    """Worth at the asked epsilon alone."""
    measure = question.chosen_measure
    epsilons = np.array([question.epsilon])
    curve, _ = _curve(question, epsilons, _SEEDS[measure], _Counter(0, None))
    return level_of(curve[:, 0], measure, question.records * question.epsilon).worth


# One fit -------------------------------------------------------------------------------------


class Records(NamedTuple):
    """Stand-in people: moments (n,) in order, points (n, d) in the unit cube, whose they are."""

    moments: Floats
    points: Floats
    person: Ints


def records_of(question: Question, name: str, seed: int) -> Records:
    """People of a stand-in: as many at every time, or each at a random moment of the range."""
    if question.times is not None:
        moments = np.repeat(even_times(question.times), question.records // question.times)
    else:
        visits = np.random.default_rng(seed).integers(_VISITS, size=question.records)
        moments = (np.sort(visits) + 0.5) / _VISITS
    # in order of time, so that records of one person are far apart and hardly ever in one slab
    person = np.arange(len(moments)) % question.people
    return Records(moments, people_at(name, moments, question.features, seed), person)


def even_times(times: int) -> Floats:
    return np.linspace(0.0, 1.0, times)


def scored_times(question: Question) -> Floats:
    """When a fit is compared with the truth: the middle time of each third."""
    if question.times is None:
        return READ_AT
    parts = np.array_split(even_times(question.times), min(question.times, _SCORED_TIMES))
    return np.array([part[len(part) // 2] for part in parts])


def fit(question: Question, records: Records, seed: int) -> TrajectoryModel:
    """The real thing, on people who do not exist."""
    several = question.records_per_person > 1
    bins = READ_TIMES if question.public_counts else None
    snapshots = Snapshots.from_arrays(
        records.moments,
        records.points,
        bounds=[(0.0, 1.0)] * question.features,
        bins=bins if question.times is None else even_times(question.times),
        time_range=(0.0, 1.0),
        person=records.person if several else None,
        records_per_person=question.records_per_person,
        seed=0,
    )
    with warnings.catch_warnings():  # that the budget buys little is what the forecast says
        warnings.simplefilter("ignore")
        return question.synthesizer(seed, _bin_counts(question, snapshots, records)).fit(snapshots)


def _bin_counts(question: Question, snapshots: Snapshots, records: Records) -> list[int] | None:
    """Stand-in people in each time bin, where these numbers are public."""
    if not question.public_counts:
        return None
    numbers = snapshots.axis.bins.of(records.moments)
    return np.bincount(numbers, minlength=snapshots.n_times).tolist()


def worth_at(model: TrajectoryModel, times: Floats, yardstick: Yardstick, seed: int) -> float:
    """People per time that sampled paths are worth where they are read."""
    paths = model.sample(RELEASED, times=times, seed=seed).values
    return yardstick.worth(yardstick.error(list(paths.swapaxes(0, 1))))
