"""Who stays who: does a person's later value follow from the earlier one, as for real people?

All of it is about the coupling of times, and none about the values at single times: correlations
are over people, after each time was brought to mean 0 and deviation 1, or to ranks. Synthetic
people go first, real ones second. A point that is nan marks absence: each pair of times is judged
by the people who are there at both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import Arg, InputError
from privtraj.metrics.clouds import partial_path_pair, partial_paths, reading_times
from privtraj.metrics.registry import path_metric

_SAME = 1e-12  # people do not differ whose spread is at most this share of their values


def autocorrelation(paths: Any, *, times: Any = None) -> Floats:
    """Correlation (T - 1, d) of a person's values, by the lag between two readings of it.

        r_h = mean of corr(x_i, x_j) over pairs of times i < j of lag h, weighted by the people
              who are there at both

    Row h - 1 has lag h: for even times j = i + h, else (t_j - t_i) / mean gap rounded to h, at
    least 1; nan where no pair of times has this lag. Between -1 and 1: 1 if everybody keeps their
    place among the others, 0 without memory, and by definition where people do not differ.
    times: (T,) of the readings, even unless given.
    """
    points = partial_paths(paths)
    return _by_lag(points, reading_times(times, points.shape[1]))


def rank_persistence(paths: Any, *, times: Any = None) -> Floats:
    """`autocorrelation` of ranks among the people of a time, (T - 1, d): Spearman's correlation.

    The last row is that of the first and the last time.
    """
    points = partial_paths(paths)
    return _by_lag(_ranks(points), reading_times(times, points.shape[1]))


@path_metric(
    "autocorrelation_error",
    "autocorrelation, largest error",
    place=110,
    coupled=True,
    least_times=2,
    absence=True,
)
def autocorrelation_error(synthetic: Any, real: Any, *, times: Any = None) -> float:
    """Largest difference of `autocorrelation` over lags and features; 0 to 2, lower is better."""
    return float(_differences(synthetic, real, times).max())


@path_metric(
    "mean_autocorrelation_error",
    "autocorrelation, mean error",
    place=120,
    coupled=True,
    least_times=2,
    absence=True,
)
def mean_autocorrelation_error(synthetic: Any, real: Any, *, times: Any = None) -> float:
    """Mean absolute difference of `autocorrelation` over lags and features; lower is better."""
    return float(_differences(synthetic, real, times).mean())


@path_metric(
    "rank_persistence_error",
    "rank persistence error",
    place=130,
    coupled=True,
    least_times=2,
    absence=True,
)
def rank_persistence_error(synthetic: Any, real: Any) -> float:
    """Largest difference over features of Spearman's correlation of the first and the last time.

    From 0 to 2, lower is better: are the tall ones of the beginning the tall ones of the end?
    """
    ends = (paths[:, [0, -1]] for paths in partial_path_pair(synthetic, real))
    ours, theirs = (np.nan_to_num(rank_persistence(side)[0]) for side in ends)
    return float(np.abs(ours - theirs).max())


def falling_share(paths: Any, feature: int, by: float, over: float, *, times: Any = None) -> float:
    """Share of people whose feature falls by more than `by` within any `over` units of time.

    Such as children who shrink. A person counts who has two readings that near each other:
    x_i - x_j > by for some t_i < t_j <= t_i + over.
    """
    points = partial_paths(paths)
    values, at = points[:, :, feature], reading_times(times, points.shape[1])
    compared, falls = np.zeros((2, len(values)), dtype=bool)
    for j in range(1, len(at)):
        before = values[:, np.searchsorted(at, at[j] - over) : j]
        drops = before - values[:, j : j + 1]
        compared |= np.isfinite(drops).any(axis=1)
        falls |= (drops > by).any(axis=1)
    if not compared.any():
        raise InputError("nobody has two readings within ", Arg("over"), ": give a longer time")
    return float(falls.sum() / compared.sum())


def _differences(synthetic: Any, real: Any, times: Any) -> Floats:
    """|difference| of autocorrelations wherever both sides have a pair of times; 0 if nowhere."""
    ours, theirs = (
        autocorrelation(side, times=times) for side in partial_path_pair(synthetic, real)
    )
    gaps = np.abs(ours - theirs)
    known = np.isfinite(gaps)
    return gaps[known] if known.any() else np.zeros(1)


def _by_lag(points: Floats, times: Floats) -> Floats:
    """Means (T - 1, d) over pairs of times of equal lag."""
    count = len(times)
    i, j = np.triu_indices(count, 1)
    gap = (times[-1] - times[0]) / max(count - 1, 1)
    lag: Ints = np.maximum(np.rint((times[j] - times[i]) / gap), 1).astype(np.int64) - 1
    together, found = _correlations(points)
    weight = np.bincount(lag, together[i, j], minlength=count - 1)
    total = [np.bincount(lag, (together * r)[i, j], minlength=count - 1) for r in found]
    with np.errstate(invalid="ignore"):
        return np.stack(total, axis=1) / weight[:, None]


def _correlations(points: Floats) -> tuple[Floats, Floats]:
    """People (T, T) who are there at both times, 0 if only one, and d correlations (T, T)."""
    there = np.isfinite(points[..., 0]).astype(np.float64)
    together = there.T @ there
    together[together < 2] = 0.0
    return together, np.stack(
        [_correlation(x, there, np.maximum(together, 1.0)) for x in np.moveaxis(points, 2, 0)]
    )


def _correlation(values: Floats, there: Floats, together: Floats) -> Floats:
    """Pearson's (T, T) of values (n, T), each over the people who are there at both times."""
    x = np.where(there > 0, values, 0.0)
    rounding = (_SAME * np.abs(x).max()) ** 2
    x = (x - x.sum(axis=0) / np.maximum(there.sum(axis=0), 1.0)) * there
    mean = x.T @ there / together  # at time i, of those who are there at i and j
    square = (x**2).T @ there / together
    variance = square - mean**2
    differ = variance > np.maximum(_SAME * square.max(axis=1, keepdims=True), rounding)
    both = differ & differ.T
    covariance = x.T @ x / together - mean * mean.T
    scale = np.sqrt(np.where(both, variance * variance.T, 1.0))
    return np.where(both, np.clip(covariance / scale, -1.0, 1.0), 0.0)


def _ranks(points: Floats) -> Floats:
    """Ranks (n, T, d) among the people of each time, ties shared; nan stays."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(points, axis=0, nan_policy="omit"), dtype=np.float64)
