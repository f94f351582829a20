"""Worth n people: quality in a unit that everybody understands.

A release is worth n people if the raw records of n real people at each time would be as far from
the population as it is, in average squared W2 over times; docs/metrics.md says what it leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError
from privtraj.metrics.distances import average_squared_w2, cost_and_potential
from privtraj.metrics.registry import cloud

LADDER = (1, 2, 5, 10, 20, 50, 100, 200, 500)  # real people whose error is measured
MOST_TOLD = 500
"""Real people per time beyond which nothing is told apart: as many synthetic ones are looked at."""
_REFERENCE = 250  # of the truth at each time, with which both sides are compared
_COMPARED = 24  # times and splits of each together; more cost time and hardly narrow the interval
_NARROW = 1.25
"""How many times wider an interval has to be than its known luck says: the rest is the luck of what
is scored, 90 % of 140 simulated releases of experiments/quality.py."""


def real_people_error(truth: Any, n: int, *, repeats: int = 4, seed: int = 0) -> float:
    """What n real people per time score: mean over `repeats` draws from the truth, without
    replacement, of the average squared W2."""
    if repeats < 1:
        raise InputError("worth needs at least one draw of real people")
    clouds, rng = [cloud(y) for y in truth], np.random.default_rng(seed)
    draws = [panel(clouds, n, rng) for _ in range(repeats)]
    return float(np.mean([average_squared_w2(draw, clouds) for draw in draws]))


def panel(truth: Sequence[Floats], n: int, rng: np.random.Generator) -> list[Floats]:
    """n real people of each of T clouds, or all where there are fewer."""
    return [y[rng.choice(len(y), min(n, len(y)), replace=False)] for y in truth]


def worth(marginals: Any, truth: Any, *, seed: int = 0) -> float:
    """Worth n people: the number of real people per time whose raw records would score the same.

    marginals: T clouds (n, d).  truth: T clouds of real people, who stand for all.
    0.0 means worse than one person; MOST_TOLD is reported where even that many are beaten.
    """
    return worth_interval(marginals, truth, seed=seed).people


def worth_interval(marginals: Any, truth: Any, *, level: float = 0.9, seed: int = 0) -> Worth:
    """Worth n people, and the numbers of people that cannot be ruled out.

    At each time the truth is split at random: one half R is what everything is compared with, n of
    the other half are a panel of n real people. Both the marginals S and the panels P_n miss R by
    the same luck of R, so worth is the n at which the mean of W2^2(P_n, R) over times and splits is
    that of W2^2(S, R). Panels of more people than there are in a half are drawn from S itself and
    compared with others of it: how the error falls with n hardly depends on the population.

    low, high: n for which the difference is within its standard error times the normal quantile.
    Its variance over people of R is that of the difference of dual potentials, divided by |R|.
    """
    from scipy.special import ndtri

    if not 0 < level < 1:
        raise InputError("the level of an interval must be between 0 and 1")
    rng = np.random.default_rng(seed)
    pairs = list(zip(map(cloud, marginals), map(cloud, truth), strict=True))
    if min(min(len(s), len(y)) for s, y in pairs) < 2:
        raise InputError("worth needs at least two people at each time, on both sides")
    times = np.linspace(0, len(pairs) - 1, min(_COMPARED, len(pairs))).round().astype(int)
    splits = [
        [_split(pairs[i][0], pairs[i][1], rng) for i in times]
        for _ in range(max(1, _COMPARED // len(times)))
    ]
    every = [one for row in splits for one in row]
    error = float(np.mean([one.error for one in every]))
    real = min(len(one.pool) for one in every)
    rungs = [n for n in LADDER if n <= max(real, min(len(one.drawn) for one in every))]

    @cache
    def rung(n: int) -> tuple[float, float]:
        """Mean error of panels of n people, and the standard error of its difference from ours."""
        if n > real:
            known = max(k for k in rungs if k <= real)
            more, fewer = (
                float(np.mean([cost_and_potential(one.drawn[:k], one.twin)[0] for one in every]))
                for k in (n, known)
            )
            return rung(known)[0] * more / max(fewer, 1e-300), rung(known)[1]
        means, doubts = [], []
        for row in splits:
            found = [cost_and_potential(one.pool[:n], one.reference) for one in row]
            means.append(np.mean([cost for cost, _ in found]))
            spread = [
                np.var(one.potential - potential) / len(one.reference)
                for one, (_, potential) in zip(row, found, strict=True)
            ]
            doubts.append(np.mean(spread) / len(row))
        luck = np.var(means) / len(means)
        return float(np.mean(means)), float(np.sqrt(np.mean(doubts) + luck))

    def people(side: float) -> float:
        return meeting(rungs, lambda n: rung(n)[0] + side * rung(n)[1], error)

    wide = _NARROW * float(ndtri((1 + level) / 2))
    low, middle, high = people(-wide), people(0), people(wide)
    return Worth(middle, min(low, middle), max(high, middle), level, error, rungs[-1])


@dataclass(frozen=True)
class Worth:
    """people: as `worth` says.  low, high: see `worth_interval`.  error: average squared W2.

    most: the largest number of people that can be told; `people` or `high` equal to it means that
    many or more.
    """

    people: float
    low: float
    high: float
    level: float
    error: float
    most: int

    def __float__(self) -> float:
        return self.people


class _Split(NamedTuple):
    """One time, once. reference: (m, d) real people.  pool: (k, d) others.  error: of all of the
    synthetic people.  potential: (m,) of the reference then.  twin, drawn: synthetic people (m, d)
    in place of the reference, and others."""

    reference: Floats
    pool: Floats
    error: float
    potential: Floats
    twin: Floats
    drawn: Floats


def _split(synthetic: Floats, real: Floats, rng: np.random.Generator) -> _Split:
    real, synthetic = rng.permutation(real), rng.permutation(synthetic)
    half = min(len(real) // 2, _REFERENCE)
    twin = min(half, len(synthetic) // 2)
    reference = real[:half]
    error, potential = cost_and_potential(synthetic[: 2 * MOST_TOLD], reference)
    return _Split(reference, real[half:], error, potential, synthetic[:twin], synthetic[twin:])


def meeting(rungs: Sequence[int], curve: Callable[[int], float], target: float) -> float:
    """n at which a curve over these rungs, taken as falling, first meets the target.

    Between two rungs it is a straight line in logarithms; 0 where even the first is below.
    """
    above: tuple[int, float] | None = None
    for n in rungs:
        error = curve(n) if above is None else min(curve(n), above[1])
        if error > target:
            above = (n, error)
        elif above is None:
            return 0.0 if target > error else float(n)
        elif target <= 0:
            return float(n)
        else:
            before, more = above
            share = np.log(more / target) / np.log(more / max(error, 1e-300))
            return float(before * (n / before) ** np.clip(share, 0, 1))
    return float(rungs[-1])
