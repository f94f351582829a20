"""How people move: lengths and speeds, changes of categories, who stays who, and, where
coordinates are places, who is in which cell of a grid and for how long.

Of paths (n, T, d), synthetic people first, real ones second. Distances are in shares of the box
where `bounds` are given, so that features of different units count alike, in kilometres where
`globe` says which of them are longitude and latitude, and in the data's units otherwise. A point
that is nan marks absence: steps from or to it do not count, it ends a stay, and a
pair of times is judged by the people who are there at both. times: (T,) of the readings; 0, 1, ..,
T - 1 unless given.

Grids lie on the public bounds, not on the data's range; apart from that their definitions follow
LDPTrace (Du et al. 2023) and PrivTrace (Wang et al. 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError
from privtraj.base.space import from_unit, to_unit
from privtraj.columns.kinds import Axes, Category, Column, Flag
from privtraj.columns.precision import degrees, kilometres, speed_unit
from privtraj.metrics.columns import correlation, known_columns, numbers_alone, total_variation
from privtraj.metrics.registry import cloud_metric, partial_paths, path_metric, reading_times

Globe = tuple[int, int]  # which features are longitude and latitude, in degrees

FAST = 0.95  # the quantile of speeds that counts as fast: few steps, yet not the single fastest
_MOST_RATIO = 1000.0  # ratios are cut at this and its inverse, so that tables hold numbers
_STILL = 1e-12  # a step of at most this length has no direction
_MOST_CELLS = 4096
_CELLS = 36  # about so many unless told otherwise: six by six in two dimensions
_STAY_BINS = 20  # of the time of a stay

_MOVES: dict[str, Any] = {"coupled": True, "least_times": 2}
_WITH_ABSENCE: dict[str, Any] = {**_MOVES, "absence": True}

# Lengths and speeds ----------------------------------------------------------------------------


def path_lengths(paths: Any, *, bounds: Any = None, globe: Globe | None = None) -> Floats:
    """(n,) length sum_i |x_{i+1} - x_i| of each path; nan for people never seen twice in a row.

    globe: which features are longitude and latitude in degrees; lengths are then in kilometres, on
    great circles, and of these features alone.
    """
    steps = _step_lengths(paths, bounds, globe)
    return np.where(np.isfinite(steps).any(axis=1), np.nansum(steps, axis=1), np.nan)


def speeds(
    paths: Any, *, times: Any = None, bounds: Any = None, globe: Globe | None = None
) -> Floats:
    """Speeds |x_{i+1} - x_i| / (t_{i+1} - t_i) of all steps of all people, at most n (T - 1), per
    unit of times, per hour where these are dates; globe: as for `path_lengths`, in kilometres."""
    steps = _step_lengths(paths, bounds, globe)
    hours = 3600.0 if np.asarray(times).dtype.kind == "M" else 1.0
    found = steps / (np.diff(reading_times(times, steps.shape[1] + 1)) / hours)
    return found[np.isfinite(found)]


def _step_lengths(paths: Any, bounds: Any, globe: Globe | None) -> Floats:
    """(n, T - 1) how far each step goes, nan from or to an absence."""
    points = partial_paths(paths)
    if globe is None:
        points = points if bounds is None else to_unit(points, bounds)
        return np.linalg.norm(np.diff(points, axis=1), axis=2)
    if bounds is not None:
        raise InputError("globe and bounds do not go together: kilometres are no shares of a box")
    places = points[..., list(globe)]
    return kilometres(places[:, :-1], places[:, 1:])


@path_metric("length_ratio", "length ratio", better="1", **_WITH_ABSENCE)
def length_ratio(synthetic: Any, real: Any, *, bounds: Any = None) -> float:
    """How many times as far people travel: mean length of synthetic paths over that of real ones.

    1 is best, and what is said where nobody moves on either side; cut at 1/1000 and 1000.
    """
    lengths = (path_lengths(paths, bounds=bounds) for paths in (synthetic, real))
    known = (side[np.isfinite(side)] for side in lengths)
    return _ratio(*(float(side.mean()) if len(side) else 0.0 for side in known))


@path_metric("speed_ratio", "median speed ratio", better="1", **_WITH_ABSENCE)
def speed_ratio(
    synthetic: Any, real: Any, *, times: Any = None, bounds: Any = None, quantile: float = 0.5
) -> float:
    """How many times as fast they are, usually: a quantile of the speeds of synthetic people, all
    steps pooled, over that of real ones; still people and limits as for `length_ratio`."""
    found = (speeds(paths, times=times, bounds=bounds) for paths in (synthetic, real))
    return _ratio(*(np.quantile(side, quantile) if len(side) else 0.0 for side in found))


@path_metric("fast_speed_ratio", "95 % speed ratio", better="1", **_WITH_ABSENCE)
def fast_speed_ratio(synthetic: Any, real: Any, *, times: Any = None, bounds: Any = None) -> float:
    """How many times as fast they are when fast: `speed_ratio` of the 95 % quantiles."""
    return speed_ratio(synthetic, real, times=times, bounds=bounds, quantile=FAST)


def _ratio(ours: float, theirs: float) -> float:
    """ours / theirs, 1 where both are nothing."""
    if ours <= _STILL and theirs <= _STILL:
        return 1.0
    return float(np.clip(ours / max(theirs, ours / _MOST_RATIO), 1 / _MOST_RATIO, _MOST_RATIO))


@dataclass(frozen=True)
class Ground:
    """Of synthetic people and of real ones: median length of a path, median and 95 % speed."""

    length: tuple[float, float]  # km
    speed: tuple[float, float]
    fast: tuple[float, float]
    unit: str  # of speeds

    def __str__(self) -> str:
        parts = [
            f"{what} {ours:.2g} {unit} ({theirs:.2g} of real people)"
            for what, (ours, theirs), unit in (
                ("a path has", self.length, "km"),
                ("usual speed", self.speed, self.unit),
                ("fast, at 95 %", self.fast, self.unit),
            )
        ]
        return f"On the ground: {', '.join(parts)}."


def ground(
    synthetic: Floats,
    real: Floats,
    columns: Sequence[Column],
    times: Floats,
    time_name: str,
    datetime: bool,
) -> Ground | None:
    """Of paths (n, T, d), (k, T, d) in the unit cube of the columns; None if those are no places
    on the globe, or some are missing.  times: (T,) of the readings, as numbers."""
    pairs = zip(columns, Axes.of(columns).numbers, strict=True)
    numbers = [column for column, number in pairs if number]
    bounds = np.array([column.domain for column in numbers]).reshape(-1, 2)
    globe = degrees(tuple(column.name for column in numbers), bounds)
    if globe is None or any(numbers[k].missing for k in globe):
        return None
    hours, found = times / 3600 if datetime else times, []
    for side in (synthetic, real):
        places = from_unit(numbers_alone(side, columns), bounds)
        fast = np.quantile(speeds(places, times=hours, globe=globe), (0.5, FAST)).tolist()
        found.append((float(np.nanmedian(path_lengths(places, globe=globe))), *fast))
    length, speed, fast = zip(*found, strict=True)
    return Ground(length, speed, fast, speed_unit(time_name, datetime))


# Categories -----------------------------------------------------------------------------------


@path_metric("change_ratio", "changes of categories, ratio", better="1", mixed=True, **_MOVES)
def change_ratio(synthetic: Any, real: Any, *, columns: Sequence[Column] | None = None) -> float:
    """How many times as often people change: changes per person from reading to reading, synthetic
    over real, all categories together.

    Of paths in the unit cube; fixed columns and flags of missing numbers do not count. 1 where
    nobody changes on either side; cut at 1/1000 and 1000; nan where no category may change.
    """
    known = known_columns(columns, real.shape[2])
    if not _changing(known):
        return float("nan")
    return _ratio(*(changes(side, columns=known).mean() for side in (synthetic, real)))


@path_metric("change_tv", "changes of categories, total variation", mixed=True, **_MOVES)
def change_tv(synthetic: Any, real: Any, *, columns: Sequence[Column] | None = None) -> float:
    """Difference of who becomes what from time to time: total variation of the tables (level now,
    level at the next reading), mean over readings and categories."""
    axes = Axes.of(known := known_columns(columns, real.shape[2]))
    ours, theirs = axes.level_of(synthetic), axes.level_of(real)
    errors = []
    for k in _changing(known):
        count = axes.levels[k]
        for i, j in pairwise(range(ours.shape[1])):
            now, then = (side[:, i, k] * count + side[:, j, k] for side in (ours, theirs))
            errors.append(total_variation(now, then, count**2))
    return float(np.mean(errors)) if errors else float("nan")


def changes(paths: Floats, *, columns: Sequence[Column]) -> Ints:
    """(n,) how often each person's categories change from reading to reading, all together."""
    levels = Axes.of(columns).level_of(paths)[..., _changing(columns)]
    return np.count_nonzero(levels[:, 1:] != levels[:, :-1], axis=(1, 2))


def _changing(columns: Sequence[Column]) -> list[int]:
    """Places of the categories that may change."""
    kinds = enumerate(columns)
    return [k for k, c in kinds if isinstance(c, Category) and not (c.fixed or isinstance(c, Flag))]


# Who stays who --------------------------------------------------------------------------------


def autocorrelation(paths: Any, *, times: Any = None) -> Floats:
    """Correlation (T - 1, d) of a person's values, by the lag between two readings of it.

        r_h = mean of corr(x_i, x_j) over pairs of times i < j of lag h, weighted by the people
              who are there at both

    Correlations are over people: of the coupling of times, and not of the values at single times.
    Row h - 1 has lag h: for even times j = i + h, else (t_j - t_i) / mean gap rounded to h, at
    least 1; nan where no pair of times has this lag. Between -1 and 1: 1 if everybody keeps their
    place among the others, 0 without memory, and by definition where people do not differ.
    """
    points = partial_paths(paths)
    count, d = points.shape[1:]
    at = reading_times(times, count)
    gap = (at[-1] - at[0]) / max(count - 1, 1)
    total, weight = np.zeros((count - 1, d)), np.zeros((count - 1, 1))
    there = np.isfinite(points[..., 0])
    for i, j in combinations(range(count), 2):
        both = there[:, i] & there[:, j]
        if (people := both.sum()) >= 2:
            lag = max(round((at[j] - at[i]) / gap), 1) - 1
            weight[lag] += people
            total[lag] += people * correlation(points[both, i], points[both, j])
    with np.errstate(invalid="ignore"):
        return total / weight


@path_metric("autocorrelation_error", "autocorrelation, largest error", **_WITH_ABSENCE)
def autocorrelation_error(synthetic: Any, real: Any, *, times: Any = None) -> float:
    """Does a value last as long as for real people, at the worst lag: largest difference of
    `autocorrelation` over lags and features; 0 to 2."""
    gaps = np.abs(autocorrelation(synthetic, times=times) - autocorrelation(real, times=times))
    return float(np.nanmax(gaps)) if np.isfinite(gaps).any() else 0.0


# Places ---------------------------------------------------------------------------------------


@cloud_metric("density_jsd", "density JSD")
def density_jsd(
    synthetic: Any, real: Any, *, bounds: Any = None, cells: int | None = None
) -> float:
    """Difference of shares in a grid of cells: JSD of the shares of people per cell, `cells` per
    feature; 0 to ln 2."""
    sides = [grid_cells(points, bounds, cells) for points in (synthetic, real)]
    return jensen_shannon(*(np.bincount(place, minlength=total) for place, total in sides))


@path_metric("trip_jsd", "trip JSD")
def trip_jsd(synthetic: Any, real: Any, *, bounds: Any = None, cells: int | None = None) -> float:
    """Difference of where paths begin and end: JSD of the pairs (cell of the first point, cell of
    the last) of people who are always there; 0 to ln 2."""
    trips = []
    for paths in (synthetic, real):
        place, total = grid_cells(paths[:, [0, -1]], bounds, cells)
        trips.append(place[:, 0] * total + place[:, 1])
    seen, code = np.unique(np.concatenate(trips), return_inverse=True)
    sides = np.split(code, [len(trips[0])])
    return jensen_shannon(*(np.bincount(side, minlength=len(seen)) for side in sides))


@path_metric("dwell_jsd", "dwell JSD", **_WITH_ABSENCE)
def dwell_jsd(
    synthetic: Any, real: Any, *, times: Any = None, bounds: Any = None, cells: int | None = None
) -> float:
    """Difference of how long people stay in a cell: JSD of histograms of `stays`, 0 to ln 2.

    20 bins of equal ratio from 1 % of the time between first and last reading to all of it, of
    which the first reaches down to 0.
    """
    at = reading_times(times, real.shape[1])
    cuts = np.geomspace(0.01, 1.0, _STAY_BINS)[:-1] * (at[-1] - at[0])
    lengths = (stays(side, times=at, bounds=bounds, cells=cells) for side in (synthetic, real))
    bins = (np.searchsorted(cuts, length, "right") for length in lengths)
    return jensen_shannon(*(np.bincount(each, minlength=_STAY_BINS) for each in bins))


def stays(paths: Any, *, times: Any = None, bounds: Any = None, cells: int | None = None) -> Floats:
    """Times (S,) that people spent in a cell before they left it, or were no longer seen.

    A reading stands for the time that is nearer to it than to its neighbours, and a stay is as long
    as its readings in a row together: the stays of a person who is always there add up to all of
    it.
    """
    place, _ = grid_cells(partial_paths(paths), bounds, cells)
    at = reading_times(times, place.shape[1])
    edges = np.concatenate([at[:1], (at[1:] + at[:-1]) / 2, at[-1:]])
    begins = np.ones(place.shape, dtype=bool)
    begins[:, 1:] = place[:, 1:] != place[:, :-1]
    number = np.cumsum(begins) - 1
    length = np.bincount(number, np.tile(np.diff(edges), len(place))).astype(np.float64)
    return length[place[begins] >= 0]


def jensen_shannon(p: Any, q: Any) -> float:
    """JSD(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2 of counts or shares (C,), H in nats.

    Between 0, for equal shares, and ln 2 = 0.693, for shares that do not overlap.
    """
    from scipy.special import entr

    p, q = (np.asarray(v, dtype=np.float64) for v in (p, q))
    if p.shape != q.shape or p.ndim != 1 or p.sum() <= 0 or q.sum() <= 0:
        raise InputError("two histograms over the same cells are needed, neither of them empty")
    p, q = p / p.sum(), q / q.sum()
    gap = entr((p + q) / 2).sum() - (entr(p).sum() + entr(q).sum()) / 2
    return float(np.clip(gap, 0.0, np.log(2)))


def grid_cells(points: Floats, bounds: Any, per_feature: int | None) -> tuple[Ints, int]:
    """The cell (...) of points (..., d), numbered 0 to C - 1, -1 for an absence, and C.

    Each feature's range (unit interval unless `bounds` (d, 2) are given) is cut in `per_feature`
    equal parts, by default 36, 6, 3, then 2 for one, two, three and more features; what lies
    outside counts at the wall.
    """
    d = points.shape[-1]
    parts = max(2, int(_CELLS ** (1 / d) + 1e-9)) if per_feature is None else per_feature
    if parts < 1 or parts**d > _MOST_CELLS:
        raise InputError(
            f"{parts} cells for each of {d} features are too many or none: at most {_MOST_CELLS} "
            "in all can be compared"
        )
    away = np.isnan(points[..., 0])
    box = np.tile([0.0, 1.0], (d, 1)) if bounds is None else bounds
    within = to_unit(np.where(away[..., None], 0.0, points), box)
    place = np.minimum((within * parts).astype(np.int64), parts - 1)
    return np.where(away, -1, place @ (parts ** np.arange(d))), parts**d
