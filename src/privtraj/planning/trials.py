"""Which fits to simulate for a question, and what they say together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from privtraj.arrays import Floats
from privtraj.planning import simulation
from privtraj.planning.forecast import GOOD, Forecast, Level, Remedies, level_of
from privtraj.planning.question import LARGEST_TIMES, STAND_INS, Question
from privtraj.planning.standins import Yardstick
from privtraj.synthesizer import LARGEST_EPSILON, SMALLEST_EPSILON

Progress = Callable[[int, int], None]

# Gradients take seconds for each fit of another size, so there are fewer of them.
_SEEDS = {"counts": (1, 2), "gradients": (1,)}
_STEPS = {"counts": (-3, -2, -1, 0, 1, 2, 3), "gradients": (-3, -1.5, 0, 1.5, 3)}  # powers of two
_BINS = {"counts": (0.5, 0.7, 1, 1.5, 2), "gradients": (0.5, 1, 2)}  # times the asked number
_MORE_PEOPLE = (2, 4, 8, 16, 32, 64)


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
    """The forecast, by fits to all stand-ins over epsilon and over numbers of bins."""
    measure = question.chosen_measure
    seeds = _SEEDS[measure]
    epsilons, bins = _epsilons(question, _STEPS[measure]), _numbers_of_bins(question, measure)
    fits = len(STAND_INS) * len(seeds)
    count = _Counter(fits * len(epsilons) + len(STAND_INS) * len(bins) + 1, progress)
    curve, settings = _curve(question, epsilons, seeds, count)
    by_bins = _by_bins(question, bins, count)
    levels = [level_of(worths) for worths in curve.T]
    asked = levels[epsilons.tolist().index(question.epsilon)]
    remedies = None
    if asked.worth < GOOD:
        remedies = _remedies(question, epsilons, levels, by_bins)
    count()
    return Forecast(
        question,
        epsilons,
        tuple(levels),
        bins=by_bins,
        settings=settings,
        remedies=remedies,
        simulated=question.simulated().people,
        fits=fits,
    )


def _epsilons(question: Question, steps: Iterable[float]) -> Floats:
    """(k,) around the one asked for, which is among them."""
    wanted = [question.epsilon * 2.0**step for step in steps]
    return np.array([e for e in wanted if SMALLEST_EPSILON <= e <= LARGEST_EPSILON])


def _numbers_of_bins(question: Question, measure: str) -> list[int]:
    least = max(2, question.records_per_person)
    most = min(LARGEST_TIMES, question.simulated().people)
    wanted = {round(question.times * factor) for factor in _BINS[measure]}
    return sorted({question.times, *(n for n in wanted if least <= n <= most)})


def _curve(
    question: Question, epsilons: Floats, seeds: Iterable[int], count: _Counter
) -> tuple[Floats, dict[str, Any]]:
    """Worth (fits, k), and what the fits at the asked epsilon chose."""
    asked = [replace(question, epsilon=float(epsilon)).simulated() for epsilon in epsilons]
    bins = simulation.scored_bins(question)
    worths, chosen = [], []
    for name in STAND_INS:
        yardstick = Yardstick.of(name, simulation.bin_times(question)[bins], question.features)
        for seed in seeds:
            records = simulation.snapshots_of(asked[0], name, seed)
            row = []
            for epsilon, each in zip(epsilons, asked, strict=True):
                model = simulation.fit(each, records, seed)
                row.append(simulation.worth_at_bins(model, yardstick, bins, seed))
                if epsilon == question.epsilon:
                    chosen.append(model.settings)
                count()
            worths.append(row)
    return np.array(worths), _ranges(chosen)


def _ranges(chosen: list[dict[str, Any]]) -> dict[str, Any]:
    """What the fits did: (least, most) of every number."""
    ranges: dict[str, Any] = {"measure": chosen[0]["measure"]}
    for key in ("cells_per_side", "particles", "steps"):
        values = [settings[key] or 0 for settings in chosen]
        ranges[key] = [min(values), max(values)]
    return ranges


def _by_bins(question: Question, numbers: list[int], count: _Counter) -> dict[int, Level]:
    """Worth at any time, of the same people put into other numbers of bins."""
    simulated, seed = question.simulated(), 1
    worths: dict[int, list[float]] = {n: [] for n in numbers}
    for name in STAND_INS:
        yardstick = Yardstick.of(name, simulation.READ_AT, question.features)
        records = simulation.visitors(simulated, name, seed)
        for n in numbers:
            model = simulation.fit(replace(simulated, times=n), records, seed)
            worths[n].append(simulation.worth_at_any_time(model, yardstick, seed))
            count()
    return {n: level_of(each) for n, each in worths.items()}


# What would help ------------------------------------------------------------------------------


def _remedies(
    question: Question, epsilons: Floats, levels: list[Level], by_bins: dict[int, Level]
) -> Remedies:
    enough = [float(e) for e, level in zip(epsilons, levels, strict=True) if level.worth >= GOOD]
    larger = [epsilon for epsilon in enough if epsilon > question.epsilon]
    fewer = [n for n, level in by_bins.items() if level.worth >= GOOD and n < question.times]
    return Remedies(
        epsilon=min(larger, default=None),
        people=_first(question, "people", [question.people * k for k in _MORE_PEOPLE]),
        times=max(fewer, default=None),
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
    seeds = _SEEDS[question.chosen_measure]
    curve, _ = _curve(question, np.array([question.epsilon]), seeds, _Counter(0, None))
    return level_of(curve[:, 0]).worth
