"""Coordinates that are places: who is where, on trips from where to where, and for how long.

Grids lie on the public bounds, not on the data's range; apart from that definitions
follow LDPTrace (Du et al. 2023) and PrivTrace (Wang et al. 2023). Clouds are (n, d), paths
(n, T, d), synthetic people first. In paths a point that is nan marks absence, which ends a stay
and is no visit; trips need everybody at both ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError
from privtraj.base.space import to_unit
from privtraj.metrics.registry import (
    cloud_metric,
    pair,
    partial_paths,
    path_metric,
    path_pair,
    reading_times,
)

_MOST_CELLS = 4096
_CELLS = 36  # about so many unless told otherwise: six by six in two dimensions
_STAY_BINS = 20  # of the time of a stay


@cloud_metric("density_jsd", "density JSD")
def density_jsd(
    synthetic: Any, real: Any, *, bounds: Any = None, cells: int | None = None
) -> float:
    """Difference of shares in a grid of cells: JSD of the shares of people per cell; 0 to ln 2,
    lower is better. cells: per feature."""
    sides = [grid_cells(points, bounds, cells) for points in pair(synthetic, real)]
    return jensen_shannon(*(np.bincount(place, minlength=total) for place, total in sides))


@path_metric("trip_jsd", "trip JSD")
def trip_jsd(synthetic: Any, real: Any, *, bounds: Any = None, cells: int | None = None) -> float:
    """Difference of where paths begin and end: JSD of the pairs (cell of the first point, cell of
    the last); 0 to ln 2, lower is better."""
    trips = []
    for paths in path_pair(synthetic, real):
        place, total = grid_cells(paths[:, [0, -1]], bounds, cells)
        trips.append(place[:, 0] * total + place[:, 1])
    seen, code = np.unique(np.concatenate(trips), return_inverse=True)
    sides = np.split(code, [len(trips[0])])
    return jensen_shannon(*(np.bincount(side, minlength=len(seen)) for side in sides))


@path_metric("dwell_jsd", "dwell JSD", coupled=True, least_times=2)
def dwell_jsd(
    synthetic: Any, real: Any, *, times: Any = None, bounds: Any = None, cells: int | None = None
) -> float:
    """Difference of how long people stay in a cell: JSD of histograms of `stays`, 0 to ln 2.

    20 bins of equal ratio from 1 % of the time between first and last reading to all of it, of
    which the first reaches down to 0.
    """
    x, y = path_pair(synthetic, real, absence=True)
    at = reading_times(times, x.shape[1])
    cuts = np.geomspace(0.01, 1.0, _STAY_BINS)[:-1] * (at[-1] - at[0])
    lengths = (stays(side, times=at, bounds=bounds, cells=cells) for side in (x, y))
    bins = (np.searchsorted(cuts, length, "right") for length in lengths)
    return jensen_shannon(*(np.bincount(each, minlength=_STAY_BINS) for each in bins))


def stays(paths: Any, *, times: Any = None, bounds: Any = None, cells: int | None = None) -> Floats:
    """Times (S,) that people spent in a cell before they left it, or were no longer seen.

    A reading stands for the time that is nearer to it than to its neighbours, and a stay is as long
    as its readings in a row together: the stays of a person who is always there add up to all of
    it. times: (T,) of the readings; 0, 1, .., T - 1 unless given.
    """
    place, _ = grid_cells(partial_paths(paths), bounds, cells)
    at = reading_times(times, place.shape[1])
    edges = np.concatenate([at[:1], (at[1:] + at[:-1]) / 2, at[-1:]])
    begins = np.ones(place.shape, dtype=bool)
    begins[:, 1:] = place[:, 1:] != place[:, :-1]
    number = np.cumsum(begins) - 1
    length = np.bincount(number, np.tile(np.diff(edges), len(place))).astype(np.float64)
    return length[place[begins] >= 0]


@path_metric("visits_jsd", "visits JSD")
def visits_jsd(synthetic: Any, real: Any, *, bounds: Any = None, cells: int | None = None) -> float:
    """Difference of which cells people visit: JSD of the cells' shares of visitors, who count once
    per cell; 0 to ln 2, lower is better."""
    visitors = []
    for paths in path_pair(synthetic, real, absence=True):
        place, total = grid_cells(paths, bounds, cells)
        who, when = np.nonzero(place >= 0)
        visits = np.unique(place[who, when] + total * who)
        visitors.append(np.bincount(visits % total, minlength=total))
    return jensen_shannon(*visitors)


def jensen_shannon(p: Any, q: Any) -> float:
    """JSD(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2 of counts or shares (C,), H in nats.

    Between 0, for equal shares, and ln 2 = 0.693, for shares that do not overlap; lower is better.
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
    within = in_box(np.where(away[..., None], 0.0, points), bounds)
    place = np.minimum((within * parts).astype(np.int64), parts - 1)
    return np.where(away, -1, place @ (parts ** np.arange(d))), parts**d


def in_box(points: Floats, bounds: Any) -> Floats:
    """Points (..., d) in shares of the box, clamped to it; without bounds it is the unit cube."""
    return to_unit(points, np.tile([0.0, 1.0], (points.shape[-1], 1)) if bounds is None else bounds)
