"""Places as cells of the public grid: how long people stay, and how many places they see.

For coordinates that are places. Trips from origin to destination are `trip_jsd`, lengths and
diameters are beside it, in `mobility`. Synthetic people go first, real ones second, as paths
(n, T, d); a point that is nan marks absence, which ends a stay and is no visit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privtraj.base.arrays import Floats, Ints, Mask
from privtraj.metrics.clouds import partial_path_pair, partial_paths, reading_times
from privtraj.metrics.mobility import grid_cells, histogram_jsd, jensen_shannon
from privtraj.metrics.registry import path_metric

STAY_BINS = 20  # of the time of a stay, as many as of lengths


def stays(paths: Any, *, times: Any = None, bounds: Any = None, cells: int | None = None) -> Floats:
    """Times (S,) that people spent in a cell before they left it, or were no longer seen.

    A reading stands for the time that is nearer to it than to its neighbours, and a stay is as long
    as its readings in a row together: the stays of a person who is always there add up to all of
    it. times: (T,) of the readings; 0, 1, .., T - 1 unless given.
    """
    place, _ = _places(paths, bounds, cells)
    at = reading_times(times, place.shape[1])
    where, length = lasting(place, at)
    return length[where >= 0]


def lasting(place: Ints, at: Floats) -> tuple[Ints, Floats]:
    """Where (S,) and how long (S,) people stay, whose readings (n, T) are at times (T,)."""
    edges = np.concatenate([at[:1], (at[1:] + at[:-1]) / 2, at[-1:]])
    begins = np.ones(place.shape, dtype=bool)
    begins[:, 1:] = place[:, 1:] != place[:, :-1]
    number = np.cumsum(begins) - 1
    length = np.bincount(number, np.tile(np.diff(edges), len(place))).astype(np.float64)
    return place[begins], length


@path_metric(
    "dwell_jsd", "dwell JSD", place=140, on_grid=True, coupled=True, least_times=2, absence=True
)
def dwell_jsd(
    synthetic: Any,
    real: Any,
    *,
    times: Any = None,
    bounds: Any = None,
    cells: int | None = None,
) -> float:
    """JSD of histograms of `stays`; 0 to ln 2, lower is better.

    20 bins of equal ratio from 1 % of the time between first and last reading to all of it, of
    which the first reaches down to 0.
    """
    x, y = partial_path_pair(synthetic, real)
    at = reading_times(times, x.shape[1])
    edges = np.concatenate([[0.0], np.geomspace(0.01, 1.0, STAY_BINS)]) * (at[-1] - at[0])
    ours, theirs = (stays(side, times=at, bounds=bounds, cells=cells) for side in (x, y))
    return histogram_jsd(ours, theirs, edges)


@path_metric("visits_jsd", "visits JSD", place=150, on_grid=True, absence=True)
def visits_jsd(synthetic: Any, real: Any, *, bounds: Any = None, cells: int | None = None) -> float:
    """JSD of the cells' shares of visitors, who count once per cell; 0 to ln 2, lower is better."""
    sides = (_visited(paths, bounds, cells) for paths in partial_path_pair(synthetic, real))
    return jensen_shannon(*(visited.sum(axis=0) for visited in sides))


@path_metric(
    "range_jsd", "cells per person JSD", place=160, on_grid=True, coupled=True, absence=True
)
def range_jsd(synthetic: Any, real: Any, *, bounds: Any = None, cells: int | None = None) -> float:
    """JSD of the number of different cells that a person visits; 0 to ln 2, lower is better."""
    sides = partial_path_pair(synthetic, real)
    most = sides[0].shape[1]
    seen = (_visited(paths, bounds, cells).sum(axis=1) for paths in sides)
    return jensen_shannon(*(np.bincount(count[count > 0], minlength=most + 1) for count in seen))


def _places(paths: Any, bounds: Any, cells: int | None) -> tuple[Ints, int]:
    """Cell (n, T) of each reading, -1 for an absence, and the number of cells."""
    points = partial_paths(paths)
    away = np.isnan(points[..., 0])
    place, total = grid_cells(np.where(away[..., None], 0.0, points), bounds, cells)
    return np.where(away, -1, place), total


def _visited(paths: Any, bounds: Any, cells: int | None) -> Mask:
    """(n, C) who has a reading in which cell."""
    place, total = _places(paths, bounds, cells)
    who, when = np.nonzero(place >= 0)
    visited = np.zeros((len(place), total), dtype=bool)
    visited[who, place[who, when]] = True
    return visited
