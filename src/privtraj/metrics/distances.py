"""Distances between clouds of people and between their paths: exact optimal transport."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.columns.kinds import Axes, Category, of_tables
from privtraj.metrics.columns import Meaning, known_columns, numbers_alone
from privtraj.metrics.registry import (
    MOST,
    cloud_metric,
    each_time,
    on_all_cores,
    pair,
    partial_paths,
    path_metric,
)

Cost = Literal["euclidean", "sqeuclidean"]

LEAST_GROUP = 8  # real people of a level, below which it is left out: as for an evaluation's time

# Clouds ---------------------------------------------------------------------------------------


@cloud_metric("w2", "W2", most=MOST)
def wasserstein2(a: Any, b: Any) -> float:
    """How far people must move to become the others, far moves count more: W2(a, b) = (min over
    couplings of E|x - y|^2)^(1/2) of equal-weight clouds (n, d), (k, d), in units of the data."""
    return float(np.sqrt(squared_wasserstein2(a, b)))


def squared_wasserstein2(a: Any, b: Any) -> float:
    """W2(a, b)^2, by exact optimal transport."""
    return _least_cost(a, b, "sqeuclidean")


def wasserstein1(a: Any, b: Any) -> float:
    """W1(a, b) = min over couplings of E|x - y|, of equal-weight clouds (n, d), (k, d)."""
    return _least_cost(a, b, "euclidean")


def squared_w2_per_time(clouds: Any, truth: Any) -> Floats:
    """(T,) W2^2 between clouds[i] (n, d) and truth[i] (k, d)."""
    return np.array(list(on_all_cores(squared_wasserstein2, each_time(clouds, truth))))


def average_squared_w2(clouds: Any, truth: Any) -> float:
    """Mean over times of W2^2 between clouds[i] (n, d) and truth[i] (k, d)."""
    return float(np.mean(squared_w2_per_time(clouds, truth)))


def weighted_cost(x: Floats, a: Floats, y: Floats, b: Floats, cost: Cost) -> float:
    """Least mean cost of carrying masses a (n,) at x (n, d) to masses b (k,) at y (k, d)."""
    import ot

    return max(float(ot.emd2(a, b, ot.dist(x, y, metric=cost), numItermax=5_000_000)), 0.0)


def cost_and_potential(x: Floats, y: Floats) -> tuple[float, Floats]:
    """W2^2 of equal-weight clouds (n, d) and (k, d), and the dual potential (k,) of the second:
    the derivative of the cost by the weights of y."""
    import ot

    a, b = np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y))
    distances = ot.dist(x, y, metric="sqeuclidean")
    cost, log = ot.emd2(a, b, distances, log=True, numItermax=5_000_000)
    return max(float(cost), 0.0), np.asarray(log["v"])


def distinct(points: Floats) -> tuple[Floats, Floats]:
    """Points that differ, and their shares: people on a grid make a much smaller problem."""
    places, counts = np.unique(points, axis=0, return_counts=True)
    return places, counts / len(points)


def _least_cost(a: Any, b: Any, cost: Cost) -> float:
    import ot

    x, y = pair(a, b)
    if x.shape[1] == 1:  # on a line the optimal coupling is the sorted one
        return max(float(ot.emd2_1d(x[:, 0], y[:, 0], metric=cost)), 0.0)
    return weighted_cost(*distinct(x), *distinct(y), cost)


@cloud_metric("group_squared_w2", "squared W2 of numbers in groups", most=MOST, mixed=True)
def group_squared_w2(synthetic: Any, real: Any, *, columns: Meaning = None) -> float:
    """Squared W2 among the people of each value: mean over categories of sum_c q_c W2(numbers of c,
    numbers of c)^2, q_c real shares.

    Of points in the unit cube. Levels of fewer than 8 real people are left out. Where nobody
    synthetic has a level, all synthetic people stand in for it. nan without numbers, or without a
    level of so many people.
    """
    known = known_columns(columns, real.shape[1])
    a, b = numbers_alone(synthetic, known), numbers_alone(real, known)
    categories = [k for k, c in enumerate(of_tables(known)) if isinstance(c, Category)]
    means = []
    for k in categories if a.shape[1] else ():
        ours, theirs = (Axes.of(known).level_of(side)[:, k] for side in (synthetic, real))
        levels, counts = np.unique(theirs, return_counts=True)
        many, errors = counts >= LEAST_GROUP, []
        for level in levels[many]:
            mine = a[ours == level]
            errors.append(squared_wasserstein2(mine if len(mine) else a, b[theirs == level]))
        if errors:
            means.append(np.average(errors, weights=counts[many]))
    return float(np.mean(means)) if means else float("nan")


# Paths ----------------------------------------------------------------------------------------


@path_metric("path_w2", "path W2", most=MOST, coupled=True)
def path_wasserstein2(a: Any, b: Any) -> float:
    """How far whole paths must move to become the others: W2 between paths (n, T, d), (k, T, d) as
    clouds in R^(T d), divided by sqrt(T).

    The root mean square over people and times of the distance between partners, at best; never
    below the root of the average squared W2 of the marginals.
    """
    return wasserstein2(as_points(a), as_points(b))


def as_points(paths: Floats) -> Floats:
    """Paths (n, T, d) as points (n, T d) scaled by 1 / sqrt(T): |x - y| is the root mean square
    over times of the distance between two people."""
    return paths.reshape(len(paths), -1) / np.sqrt(paths.shape[1])


def randomly_coupled(paths: Any, *, seed: int = 0) -> Floats:
    """Paths (n, T, d) with the same marginals and no memory: each time is shuffled by itself, and
    who is absent, where a path is nan, stays so."""
    array = partial_paths(paths).copy()
    rng = np.random.default_rng(seed)
    for i in range(array.shape[1]):
        there = np.flatnonzero(np.isfinite(array[:, i, 0]))
        array[there, i] = array[rng.permutation(there), i]
    return array
