"""Distances between clouds: exact optimal transport, and two that large sets can afford.

Sliced W2 compares what clouds look like from random sides; the energy distance needs no transport.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError
from privtraj.metrics.clouds import ENTRIES, distinct, each_time, pair
from privtraj.metrics.cores import on_all_cores
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
    cost, told = ot.emd2(a, b, distances, log=True, numItermax=5_000_000)
    return max(float(cost), 0.0), np.asarray(told["v"])


@cloud_metric("sliced_w2", "sliced W2", place=40)
def sliced_wasserstein2(a: Any, b: Any, *, directions: int = 128, seed: int = 0) -> float:
    """SW2(a, b) = (mean over directions u of W2(u.a, u.b)^2)^(1/2), clouds (n, d) and (k, d).

    In units of the data; between 0, for equal clouds, and W2 / sqrt(d); a shift by s scores
    |s| / sqrt(d). Lower is better. Directions come in orthonormal sets of d, as many sets as it
    takes; the same seed compares from the same sides. Time is (n + k) log(n + k) per direction.
    """
    x, y = pair(a, b)
    if directions < 1:
        raise InputError("sliced W2 needs at least one direction")
    sides = _directions(x.shape[1], directions, np.random.default_rng(seed))
    i, j, mass = quantile_partners(len(x), len(y))
    chunk = max(1, ENTRIES // (len(x) + len(y)))
    total = 0.0
    for start in range(0, len(sides), chunk):
        u = sides[start : start + chunk].T
        gap = np.sort(x @ u, axis=0)[i] - np.sort(y @ u, axis=0)[j]
        total += float((mass @ gap**2).sum())
    return float(np.sqrt(total / len(sides)))


def quantile_partners(n: int, k: int) -> tuple[Ints, Ints, Floats]:
    """Who meets whom when n sorted points are matched with k: indices into both, and masses.

    Both have the quantile functions of equal weights, constant between the cuts i/n and j/k; there
    are at most n + k - 1 pieces, whatever the points are.
    """
    cuts = np.union1d(np.arange(1, n + 1) * k, np.arange(1, k + 1) * n)  # in units of 1 / (n k)
    start = np.concatenate([[0], cuts[:-1]])
    return start // k, start // n, (cuts - start) / (n * k)


@cloud_metric("energy", "energy distance", place=50, most=2 * MOST)
def energy_distance(a: Any, b: Any) -> float:
    """D(a, b) = (2 E|x - y| - E|x - x'| - E|y - y'|)^(1/2) of clouds (n, d) and (k, d).

    x, x' are independent draws from a, y, y' from b, a point's distance to itself included. Its
    unit is the square root of the data's; 0 for equal clouds only, lower is better. Time is
    (n + k)^2, memory bounded.
    """
    x, y = pair(a, b)
    square = 2 * _mean_distance(x, y) - _mean_distance(x, x) - _mean_distance(y, y)
    return float(np.sqrt(max(square, 0.0)))


def _least_cost(a: Any, b: Any, cost: Cost) -> float:
    import ot

    x, y = pair(a, b)
    if x.shape[1] == 1:  # on a line the optimal coupling is the sorted one
        return max(float(ot.emd2_1d(x[:, 0], y[:, 0], metric=cost)), 0.0)
    return weighted_cost(*distinct(x), *distinct(y), cost)


def _directions(d: int, count: int, rng: np.random.Generator) -> Floats:
    """(L, d) unit vectors, L the multiple of d that reaches `count`; one is all a line has."""
    if d == 1:
        return np.ones((1, 1))
    sets = -(-count // d)
    frames, _ = np.linalg.qr(rng.standard_normal((sets, d, d)))
    return frames.reshape(-1, d)


def _mean_distance(x: Floats, y: Floats) -> float:
    from scipy.spatial.distance import cdist

    rows = max(1, ENTRIES // len(y))
    sums = [cdist(x[i : i + rows], y).sum() for i in range(0, len(x), rows)]
    return float(np.sum(sums) / (len(x) * len(y)))
