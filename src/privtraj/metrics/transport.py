"""Wasserstein distances by exact optimal transport, at one time and at all."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from privtraj.arrays import Floats
from privtraj.metrics.clouds import distinct, each_time, pair
from privtraj.metrics.registry import MOST, cloud_metric

Cost = Literal["euclidean", "sqeuclidean"]


@cloud_metric("w1", "W1", place=30, most=MOST)
def wasserstein1(a: Any, b: Any) -> float:
    """W1(a, b) = min over couplings of E|x - y|, of equal-weight clouds (n, d), (k, d).

    In units of the data; 0 for equal clouds, lower is better.
    """
    return _least_cost(a, b, "euclidean")


def wasserstein2(a: Any, b: Any) -> float:
    """W2(a, b) = (min over couplings of E|x - y|^2)^(1/2) of equal-weight clouds (n, d), (k, d)."""
    return float(np.sqrt(squared_wasserstein2(a, b)))


@cloud_metric("w2", "W2", place=10, most=MOST, finish=np.sqrt)
@cloud_metric("squared_w2", "squared W2", place=20, most=MOST)
def squared_wasserstein2(a: Any, b: Any) -> float:
    """W2(a, b)^2, by exact optimal transport."""
    return _least_cost(a, b, "sqeuclidean")


def squared_w2_per_time(clouds: Any, truth: Any) -> Floats:
    """(T,) W2^2 between clouds[i] (n, d) and truth[i] (k, d)."""
    return np.array([squared_wasserstein2(x, y) for x, y in each_time(clouds, truth)])


def average_squared_w2(clouds: Any, truth: Any) -> float:
    """Mean over times of W2^2 between clouds[i] (n, d) and truth[i] (k, d)."""
    return float(np.mean(squared_w2_per_time(clouds, truth)))


def weighted_cost(x: Floats, a: Floats, y: Floats, b: Floats, cost: Cost) -> float:
    """Least mean cost of carrying masses a (n,) at x (n, d) to masses b (k,) at y (k, d)."""
    import ot

    return max(float(ot.emd2(a, b, ot.dist(x, y, metric=cost), numItermax=5_000_000)), 0.0)


def _least_cost(a: Any, b: Any, cost: Cost) -> float:
    import ot

    x, y = pair(a, b)
    if x.shape[1] == 1:  # on a line the optimal coupling is the sorted one
        return max(float(ot.emd2_1d(x[:, 0], y[:, 0], metric=cost)), 0.0)
    return weighted_cost(*distinct(x), *distinct(y), cost)
