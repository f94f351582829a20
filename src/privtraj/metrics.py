"""Distances between clouds of people, and quality in a unit that everybody understands."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.errors import InputError

Floats = NDArray[np.float64]

_LADDER = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def wasserstein2(a: Any, b: Any) -> float:
    """W2(a, b) = (min over couplings of E|x - y|^2)^(1/2) of equal-weight clouds (n, d), (k, d)."""
    return float(np.sqrt(squared_wasserstein2(a, b)))


def squared_wasserstein2(a: Any, b: Any) -> float:
    """W2(a, b)^2, by exact optimal transport."""
    import ot

    x, y = _cloud(a), _cloud(b)
    if x.shape[1] != y.shape[1]:
        raise InputError(f"clouds of {x.shape[1]} and {y.shape[1]} features cannot be compared")
    if x.shape[1] == 1:  # on a line the optimal coupling is the sorted one
        return max(float(ot.emd2_1d(x[:, 0], y[:, 0], metric="sqeuclidean")), 0.0)
    cost = ot.dist(x, y)
    value = ot.emd2(_uniform(len(x)), _uniform(len(y)), cost, numItermax=5_000_000)
    return max(float(value), 0.0)


def average_squared_w2(clouds: Any, truth: Any) -> float:
    """Mean over times of W2^2 between clouds[i] (n, d) and truth[i] (k, d)."""
    if len(clouds) != len(truth):
        raise InputError(f"{len(clouds)} times cannot be compared with {len(truth)}")
    return float(np.mean([squared_wasserstein2(x, y) for x, y in zip(clouds, truth, strict=True)]))


def real_people_error(truth: Any, n: int, *, repeats: int = 4, seed: int = 0) -> float:
    """What n real people per time score: mean over `repeats` draws from the truth, without
    replacement, of the average squared W2."""
    rng = np.random.default_rng(seed)
    errors = []
    for _ in range(repeats):
        draw = [_cloud(y)[rng.choice(len(y), size=min(n, len(y)), replace=False)] for y in truth]
        errors.append(average_squared_w2(draw, truth))
    return float(np.mean(errors))


def worth(marginals: Any, truth: Any, *, repeats: int = 4, seed: int = 0) -> float:
    """Worth n people: the number of real people per time whose raw records would score the same.

    marginals: T clouds (n, d), such as (T, m, d); truth: T clouds of many real people. The error of
    n real people is measured on a ladder of n and interpolated between rungs, both in logarithms.
    0.0 means worse than one person; the largest rung is reported where even that is beaten.
    """
    target = average_squared_w2(marginals, truth)
    most = min(len(y) for y in truth) // 2
    rungs = [n for n in _LADDER if n <= max(most, 1)]
    above: tuple[int, float] | None = None
    for n in rungs:
        error = real_people_error(truth, n, repeats=repeats, seed=seed)
        if error <= target:
            return _between(above, (n, error), target)
        above = (n, error)
    return float(rungs[-1])


def _between(above: tuple[int, float] | None, below: tuple[int, float], target: float) -> float:
    """n at which the straight line through two (n, error) points, in logarithms, meets target."""
    if above is None:
        return 0.0 if target > below[1] else float(below[0])
    (n0, e0), (n1, e1) = above, below
    share = (np.log(e0) - np.log(max(target, 1e-300))) / (np.log(e0) - np.log(max(e1, 1e-300)))
    return float(np.exp(np.log(n0) + np.clip(share, 0, 1) * (np.log(n1) - np.log(n0))))


def _cloud(points: Any) -> Floats:
    array = np.asarray(points, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or len(array) == 0:
        raise InputError("a cloud of people must have shape (n, d) with at least one person")
    if not np.isfinite(array).all():
        raise InputError("a cloud of people must be finite")
    return array


def _uniform(n: int) -> Floats:
    return np.full(n, 1 / n)
