"""How far, how fast, and how straight: lengths, speeds and turns of paths (n, T, d).

Synthetic people go first, real ones second. Distances are in shares of the box where `bounds` are
given, so that features of different units count alike, in kilometres where `globe` says which of
them are longitude and latitude, and in the data's units otherwise. A point
that is nan marks absence: steps from or to it do not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError
from privtraj.columns.precision import kilometres
from privtraj.metrics.clouds import partial_path_pair, partial_paths, reading_times
from privtraj.metrics.mobility import in_box
from privtraj.metrics.registry import path_metric

Globe = tuple[int, int]  # which features are longitude and latitude, in degrees

FAST = 0.95  # the quantile of speeds that counts as fast: few steps, yet not the single fastest
_MOST_RATIO = 1000.0  # ratios are cut at this and its inverse, so that tables hold numbers
_STILL = 1e-12  # a step of at most this length has no direction


def path_lengths(paths: Any, *, bounds: Any = None, globe: Globe | None = None) -> Floats:
    """(n,) length sum_i |x_{i+1} - x_i| of each path; nan for people never seen twice in a row.

    globe: which features are longitude and latitude in degrees; lengths are then in kilometres, on
    great circles, and of these features alone.
    """
    steps = _ways(paths, bounds, globe)
    seen = np.isfinite(steps)
    return np.where(seen.any(axis=1), np.where(seen, steps, 0.0).sum(axis=1), np.nan)


def speeds(
    paths: Any, *, times: Any = None, bounds: Any = None, globe: Globe | None = None
) -> Floats:
    """Speeds |x_{i+1} - x_i| / (t_{i+1} - t_i) of all steps of all people, at most n (T - 1).

    times: (T,) of the readings; 0, 1, .., T - 1 unless given.  globe: as for `path_lengths`.
    """
    steps = _ways(paths, bounds, globe)
    found = steps / np.diff(reading_times(times, steps.shape[1] + 1))
    return found[np.isfinite(found)]


def turning_angles(paths: Any, *, bounds: Any = None) -> Floats:
    """Angles between one step and the next, 0 (straight on) to pi (back), at most n (T - 2).

    Who stands still has no direction: the turns before and after a step of no length are left out.
    With one feature the angles are 0 and pi.
    """
    steps = _steps(paths, bounds)
    length = np.linalg.norm(steps, axis=2, keepdims=True)
    moves = length > _STILL
    ways = np.where(moves, steps, np.nan) / np.where(moves, length, 1.0)
    before, after = ways[:, :-1], ways[:, 1:]
    # Unlike the arccosine of their product this is exact for small angles.
    apart, along = (np.linalg.norm(v, axis=2) for v in (after - before, after + before))
    angles = 2 * np.arctan2(apart, along)
    return angles[np.isfinite(angles)]


@path_metric(
    "length_ratio", "length ratio", place=70, better="1", coupled=True, least_times=2, absence=True
)
def length_ratio(synthetic: Any, real: Any, *, bounds: Any = None) -> float:
    """Mean length of synthetic paths over that of real ones; 2 means that they travel twice as far.

    1 is best, and what is said where nobody moves on either side; cut at 1/1000 and 1000.
    """
    x, y = partial_path_pair(synthetic, real)
    lengths = (path_lengths(paths, bounds=bounds) for paths in (x, y))
    return ratio(*(_mean(side[np.isfinite(side)]) for side in lengths))


@path_metric(
    "speed_ratio",
    "median speed ratio",
    place=80,
    better="1",
    coupled=True,
    least_times=2,
    absence=True,
)
def speed_ratio(
    synthetic: Any, real: Any, *, times: Any = None, bounds: Any = None, quantile: float = 0.5
) -> float:
    """A quantile of the speeds of synthetic people, all steps pooled, over that of real ones.

    1 is best; still people and limits as for `length_ratio`.
    """
    sides = partial_path_pair(synthetic, real)
    found = (speeds(paths, times=times, bounds=bounds) for paths in sides)
    return ratio(*(float(np.quantile(side, quantile)) if len(side) else 0.0 for side in found))


@path_metric(
    "fast_speed_ratio",
    "95 % speed ratio",
    place=90,
    better="1",
    coupled=True,
    least_times=2,
    absence=True,
)
def fast_speed_ratio(synthetic: Any, real: Any, *, times: Any = None, bounds: Any = None) -> float:
    """`speed_ratio` of the 95 % quantiles: of the fast steps."""
    return speed_ratio(synthetic, real, times=times, bounds=bounds, quantile=FAST)


@path_metric("turning_w1", "turning W1", place=100, coupled=True, least_times=3, absence=True)
def turning_w1(synthetic: Any, real: Any, *, bounds: Any = None) -> float:
    """W1 between the distributions of turning angles, divided by pi.

    From 0 to 1, lower is better: 1 if all go straight on one side and back on the other, or if
    only one side turns at all because the other one is still.
    """
    from scipy.stats import wasserstein_distance

    sides = partial_path_pair(synthetic, real)
    ours, theirs = (turning_angles(paths, bounds=bounds) for paths in sides)
    if len(ours) == 0 or len(theirs) == 0:
        return float(len(ours) != len(theirs))
    return float(wasserstein_distance(ours, theirs) / np.pi)


def _steps(paths: Any, bounds: Any) -> Floats:
    """(n, T - 1, d) x_{i+1} - x_i, nan from or to an absence."""
    points = partial_paths(paths)
    return np.diff(points if bounds is None else in_box(points, bounds), axis=1)


def _ways(paths: Any, bounds: Any, globe: Globe | None) -> Floats:
    """(n, T - 1) how far each step goes."""
    if globe is None:
        return np.linalg.norm(_steps(paths, bounds), axis=2)
    if bounds is not None:
        raise InputError(
            Arg("globe"),
            " and ",
            Arg("bounds"),
            " do not go together: kilometres are no shares of a box",
        )
    places = partial_paths(paths)[..., list(globe)]
    return kilometres(places[:, :-1], places[:, 1:])


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0


def ratio(ours: float, theirs: float) -> float:
    """ours / theirs, 1 where both are nothing."""
    if ours <= _STILL and theirs <= _STILL:
        return 1.0
    return float(np.clip(ours / max(theirs, ours / _MOST_RATIO), 1 / _MOST_RATIO, _MOST_RATIO))
