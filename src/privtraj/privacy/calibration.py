"""How much noise a budget buys: the inverse of `accounting`.

Never beyond the target: what is returned was found to fit. Where a grid of privacy losses is needed
the search is on the coarse one, and the result certified on the fine one. Results are remembered:
every fit of an audit asks the same questions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from privtraj.privacy.accounting import COARSE, FINE, Events, Tally, bisect, tally
from privtraj.privacy.events import (
    Adjacency,
    Event,
    GaussianSum,
    LaplaceCounts,
    Person,
    check_budget,
    check_slack,
)
from privtraj.privacy.sampled_events import sum_at_rate

CALIBRATION_MARGIN = 1e-9
"""Relative amount by which calibrated values stay inside the budget: more than the rounding of
thousands of added steps, far less than anyone could notice."""

ONE_RECORD = Person()

_SMALLEST, _LARGEST = 2.0**-40, 2.0**40
_LEAST_NOISE = 0.05  # sampled sums of less noise have losses of hundreds, and grids of millions
_QUIET = 4.0  # noise at which the grids of sampled sums are still short
_ON_GRIDS = 1e-6  # precision beside sampled sums


def calibrate_gaussian(
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    others: Events = (),
    *,
    slack: float = 0.0,
    person: Person = ONE_RECORD,
) -> float:
    """The largest 1/z for which GaussianSum(z) fits into (epsilon, delta) beside the others.

    K equal steps may share it: each of noise multiplier z sqrt(K). slack: what the new noise will
    add, here and below. 0.0 if nothing fits.
    """
    spent = _spent(epsilon, delta, adjacency, others, slack)
    return _largest_release(_sum_of, spent, epsilon, delta, person)


def calibrate_laplace(
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    others: Events = (),
    *,
    slack: float = 0.0,
    person: Person = ONE_RECORD,
) -> float:
    """The largest e for which LaplaceCounts(e) fits beside the others. 0.0 if nothing fits."""
    spent = _spent(epsilon, delta, adjacency, others, slack)
    return _largest_release(_counts_of, spent, epsilon, delta, person)


def calibrate_noise(
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    *,
    steps: int,
    rate: float = 1.0,
    person: Person = ONE_RECORD,
    others: Events = (),
    slack: float = 0.0,
) -> float:
    """The smallest z for which `steps` sampled sums fit beside the others. inf if nothing fits."""
    spent = _spent(epsilon, delta, adjacency, others, slack)
    return _least_noise(spent, epsilon, delta, steps, rate, person)


def _sum_of(inverse: float, person: Person) -> GaussianSum:
    return GaussianSum(1 / inverse, "", 0.0, *person)


def _counts_of(epsilon: float, person: Person) -> LaplaceCounts:
    return LaplaceCounts(epsilon, "", 0.0, *person)


@lru_cache(maxsize=256)
def _largest_release(
    release: Callable[[float, Person], Event],
    spent: Tally,
    epsilon: float,
    delta: float,
    person: Person,
) -> float:
    """The largest size that fits, less the margin, where all smaller ones fit too; 0.0 if none."""

    def fits(size: float) -> bool:
        return spent.add(release(size, person)).delta(epsilon) <= delta

    most, precision = _LARGEST, 1e-13
    if spent.sampled:  # no more than without them, which needs no grid
        alone = _largest_release(release, replace(spent, sampled=()), epsilon, delta, person)
        most, precision = min(alone, 1 / _LEAST_NOISE), _ON_GRIDS
    good = _halved_until(fits, most) if most else 0.0
    if 0 < good < most:
        good = bisect(fits, good=good, bad=2 * good, precision=precision)
    return good * (1 - CALIBRATION_MARGIN)


def _halved_until(fits: Callable[[float], bool], x: float) -> float:
    """The first of x, x / 2, x / 4, ... that fits; 0.0 if none does."""
    while not fits(x):
        x /= 2
        if x < _SMALLEST:
            return 0.0
    return x


@lru_cache(maxsize=64)
def _least_noise(
    spent: Tally, epsilon: float, delta: float, steps: int, rate: float, person: Person
) -> float:
    start = _largest_release(_sum_of, spent, epsilon, delta, person) / math.sqrt(steps)
    if start == 0 or rate == 1:
        return 1 / start if start else math.inf

    def fits(inverse: float, interval: float) -> bool:
        event = sum_at_rate(_sum_of(inverse, person), rate)
        return spent.add(event, steps).delta(epsilon, interval) <= delta

    if not fits(_SMALLEST, FINE):  # the error of the grid alone may be more than delta
        return math.inf
    # Sampling never costs more than taking everybody, but for the error of the grid.
    start = min(start * (1 - 1e-3), 1 / _LEAST_NOISE)
    return 1 / _largest_on_grids(fits, start, 1 / _LEAST_NOISE)


def calibrate_scale(
    epsilon: float, delta: float, adjacency: Adjacency, events: Events, others: Events = ()
) -> float:
    """The largest factor by which the noise of all the events may be divided, beside the others.
    0.0 if nothing fits."""
    check_budget(epsilon, delta)
    base, others = tally(events, adjacency), tuple(others)

    def fits(factor: float, interval: float) -> bool:
        total = tally(others, adjacency, base.scaled(factor))
        return total.delta(epsilon, interval) <= delta

    least = min((pair.noise_multiplier for pair, _ in base.sampled), default=_LARGEST)
    start = _halved_until(lambda factor: fits(factor, FINE), min(1.0, least / _QUIET))
    if start == 0:
        return 0.0
    return _largest_on_grids(fits, start, least / _LEAST_NOISE) * (1 - CALIBRATION_MARGIN)


def _largest_on_grids(fits: Callable[[float, float], bool], good: float, most: float) -> float:
    """The largest x up to `most` that fits, from a good one; fits(x, grid)."""
    while good < most and fits(min(2 * good, most), COARSE):
        good = min(2 * good, most)
    good = bisect(lambda x: fits(x, COARSE), good, min(2 * good, most), 5e-4)
    while not fits(good, FINE):
        good *= 1 - 1e-3
    return bisect(lambda x: fits(x, FINE), good, good * (1 + 1e-3), 2e-4)


def _spent(
    epsilon: float, delta: float, adjacency: Adjacency, others: Events, slack: float
) -> Tally:
    check_budget(epsilon, delta)
    check_slack(slack)
    spent = tally(others, adjacency)
    return replace(spent, slack=spent.slack + slack)
