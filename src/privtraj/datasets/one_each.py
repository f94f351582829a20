"""From paths to snapshots: every person is seen once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError


def one_snapshot_each(
    paths: ArrayLike, seed: int = 0, times: ArrayLike | None = None
) -> tuple[Floats, NDArray[Any]]:
    """Times (n,) and points (n, d) in which every path (.., T, d) is seen at most once.

    The paths are shuffled once and cut into T groups of floor(n / T), and of group i only the
    points at time i are kept. times: (T,), by default 0, 1, .., T - 1.
    """
    paths = np.asarray(paths)
    if paths.ndim != 3 or paths.shape[1] > len(paths):
        raise InputError("paths must have shape (n, T, d) with at least as many paths as times")
    n, n_times, _ = paths.shape
    at = np.arange(n_times) if times is None else np.asarray(times)
    if at.shape != (n_times,):
        raise InputError(f"times must list {n_times} times, as many as each path has")
    size = n // n_times
    groups = np.random.default_rng(seed).permutation(n)[: size * n_times].reshape(n_times, size)
    points = paths[groups, np.arange(n_times)[:, None]]
    return np.repeat(at.astype(np.float64), size), points.reshape(n_times * size, -1)
