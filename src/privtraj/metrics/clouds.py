"""Clouds of people: equal-weight points (n, d), checked before anything is compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError
from privtraj.base.space import utc_seconds

ENTRIES = 2**22  # of an intermediate array: 32 MiB of float64


def cloud(points: Any) -> Floats:
    """Points as (n, d) float64; a list of n numbers has one feature."""
    return _checked(points, "a cloud of people", ("n", "d"))


def pair(a: Any, b: Any) -> tuple[Floats, Floats]:
    """Two clouds with the same features."""
    x, y = cloud(a), cloud(b)
    if x.shape[1] != y.shape[1]:
        raise InputError(f"clouds of {x.shape[1]} and {y.shape[1]} features cannot be compared")
    return x, y


def each_time(clouds: Any, truth: Any) -> list[tuple[Any, Any]]:
    """The clouds of each time, side by side."""
    if len(clouds) != len(truth):
        raise InputError(f"{len(clouds)} times cannot be compared with {len(truth)}")
    return list(zip(clouds, truth, strict=True))


def path_cloud(paths: Any) -> Floats:
    """Paths as (n, T, d) float64; (n, T) has one feature."""
    return _checked(paths, "paths", ("n", "T", "d"))


def path_pair(a: Any, b: Any) -> tuple[Floats, Floats]:
    """Two sets of paths with the same times and features."""
    return _alike(path_cloud(a), path_cloud(b))


def partial_paths(paths: Any) -> Floats:
    """Paths (n, T, d) of people who may be absent: there all features are nan."""
    array = _checked(paths, "paths", ("n", "T", "d"), absence=True)
    return np.where(np.isnan(array).any(axis=2, keepdims=True), np.nan, array)


def partial_path_pair(a: Any, b: Any) -> tuple[Floats, Floats]:
    """Two sets of such paths with the same times and features."""
    return _alike(partial_paths(a), partial_paths(b))


def reading_times(times: Any, count: int, of: str = "reading") -> Floats:
    """Times (T,) as numbers, 0, 1, .., T - 1 unless given; dates count in seconds."""
    given = np.arange(count) if times is None else np.asarray(times)
    at: Floats = utc_seconds(given) if given.dtype.kind == "M" else given.astype(np.float64)
    if at.shape != (count,) or not (np.diff(at) > 0).all():
        raise InputError(f"give one time per {of}, in increasing order")
    return at


def as_points(paths: Floats) -> Floats:
    """Paths (n, T, d) as points (n, T d) scaled by 1 / sqrt(T): |x - y| is the root mean square
    over times of the distance between two people."""
    return paths.reshape(len(paths), -1) / np.sqrt(paths.shape[1])


def halves(n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """The indices 0..n-1 in two random halves."""
    if n < 2:
        raise InputError("one person alone cannot be split in halves: give at least two")
    order = rng.permutation(n)
    return order[: n // 2], order[n // 2 :]


def distinct(points: Floats) -> tuple[Floats, Floats]:
    """Points that differ, and their shares: people on a grid make a much smaller problem."""
    places, counts = np.unique(points, axis=0, return_counts=True)
    return places, counts / len(points)


def _checked(values: Any, what: str, axes: tuple[str, ...], absence: bool = False) -> Floats:
    """Finite float64 with these axes; the last, of features, may be left out if there is one.

    absence: nan is allowed too.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == len(axes) - 1:
        array = array[..., None]
    if array.ndim != len(axes) or 0 in array.shape:
        raise InputError(f"{what} must have shape ({', '.join(axes)}) with at least one person")
    if not (np.isfinite(array) | (absence & np.isnan(array))).all():
        raise InputError(f"{what} must be finite")
    return array


def _alike(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    if x.shape[1:] != y.shape[1:]:
        raise InputError(
            f"paths of {x.shape[1]} times and {x.shape[2]} features cannot be compared with paths "
            f"of {y.shape[1]} times and {y.shape[2]} features"
        )
    return x, y
