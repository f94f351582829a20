"""Sliced W2: the distance of what clouds look like from random sides, for large sets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.arrays import Floats
from privtraj.errors import InputError
from privtraj.metrics.clouds import ENTRIES, pair
from privtraj.metrics.registry import cloud_metric


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


def quantile_partners(n: int, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Who meets whom when n sorted points are matched with k: indices into both, and masses.

    Both have the quantile functions of equal weights, constant between the cuts i/n and j/k; there
    are at most n + k - 1 pieces, whatever the points are.
    """
    cuts = np.union1d(np.arange(1, n + 1) * k, np.arange(1, k + 1) * n)  # in units of 1 / (n k)
    start = np.concatenate([[0], cuts[:-1]])
    return start // k, start // n, (cuts - start) / (n * k)


def _directions(d: int, count: int, rng: np.random.Generator) -> Floats:
    """(L, d) unit vectors, L the multiple of d that reaches `count`; one is all a line has."""
    if d == 1:
        return np.ones((1, 1))
    sets = -(-count // d)
    frames, _ = np.linalg.qr(rng.standard_normal((sets, d, d)))
    return frames.reshape(-1, d)
