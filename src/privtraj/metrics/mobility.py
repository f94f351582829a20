"""The scores of private mobility data, of where people are: for comparison with that field.

Definitions follow LDPTrace (Du et al. 2023) and PrivTrace (Wang et al. 2023), which have them from
AdaTrace (Gursoy et al. 2018), with two changes: grids and boxes lie on the public bounds instead of
the data's range, and any number of features is allowed. Synthetic people go first, real ones
second; both are clouds (n, d), or paths (n, T, d), whose points are pooled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privtraj.arrays import Floats, Ints
from privtraj.errors import InputError
from privtraj.metrics.cells import grid_cells, in_box, jensen_shannon
from privtraj.metrics.clouds import ENTRIES, pair, path_pair
from privtraj.metrics.registry import cloud_metric


@cloud_metric("query_error", "range-query error", place=60)
def range_query_error(
    synthetic: Any,
    real: Any,
    *,
    bounds: Any = None,
    queries: int = 200,
    volume: float = 1 / 9,
    sanity: float = 0.01,
    seed: int = 0,
) -> float:
    """Mean over random boxes of |p - q| / max(p, sanity), p and q the shares of real and synthetic
    people inside.

    A box has the public box's shape and `volume` of its volume, and its centre is uniform in it.
    From 0, for equal clouds, to at most 1 / sanity; lower is better.
    """
    x, y = (in_box(points, bounds) for points in _points(synthetic, real))
    d = x.shape[1]
    centre = np.random.default_rng(seed).random((queries, d))
    half = volume ** (1 / d) / 2
    q, p = (_shares(points, centre, half) for points in (x, y))
    return float(np.mean(np.abs(p - q) / np.maximum(p, sanity)))


@cloud_metric("density_jsd", "density JSD", place=70, on_grid=True)
def density_jsd(
    synthetic: Any, real: Any, *, bounds: Any = None, cells: int | None = None
) -> float:
    """JSD of the shares of people per cell; 0 to ln 2, lower is better. cells: per feature."""
    x, y = _points(synthetic, real)
    return jensen_shannon(_counts(x, bounds, cells), _counts(y, bounds, cells))


@cloud_metric("hotspot_ndcg", "hotspot NDCG@5", place=80, better="higher", on_grid=True)
def hotspot_ndcg(
    synthetic: Any, real: Any, *, bounds: Any = None, cells: int | None = None, k: int = 5
) -> float:
    """NDCG@k: are the k fullest cells the right ones, in the right order?

    Sum over i of r_i / log2(i + 1), r_i = 1 / rank among the real top k of the synthetic i-th cell
    and 0 if it is not among them, divided by its value for the true order. Empty cells never
    count. 1 is best, 0 means no hotspot found.
    """
    x, y = _points(synthetic, real)
    ours, true = (_fullest(_counts(points, bounds, cells), k) for points in (x, y))
    rank = {cell: place for place, cell in enumerate(true, start=1)}
    gains = np.array([1 / rank[cell] if cell in rank else 0.0 for cell in ours])
    ideal = 1 / np.arange(1, len(true) + 1)
    return float(_discounted(gains) / _discounted(ideal))


@cloud_metric("kendall_tau", "Kendall tau of cells", place=90, better="higher", on_grid=True)
def kendall_tau(
    synthetic: Any, real: Any, *, bounds: Any = None, cells: int | None = None
) -> float:
    """Kendall's tau of the popularity of cells: (concordant - discordant pairs) / all pairs.

    Popularity is the number of people with a point in the cell; paths count once per cell. Pairs
    that tie on either side, such as two empty cells, are neither, as in the papers, so that even
    equal clouds score less than 1 where cells tie: read it against its floor. Higher is better.
    """
    (p, q), total = _visitors(synthetic, real, bounds, cells)
    if total < 2:
        raise InputError("ranks need at least two cells")
    order_p, order_q = (np.sign(np.subtract.outer(v, v)).astype(np.int8) for v in (p, q))
    return float((order_p * order_q).sum() / (total * (total - 1)))


def _paths(synthetic: Any, real: Any) -> tuple[Floats, Floats]:
    """Both sides as paths (n, T, d), (k, T, d); clouds have one time."""
    if np.ndim(synthetic) == np.ndim(real) == 3:
        return path_pair(synthetic, real)
    x, y = pair(synthetic, real)
    return x[:, None], y[:, None]


def _points(synthetic: Any, real: Any) -> tuple[Floats, Floats]:
    """Both sides as points (n T, d), (k T, d)."""
    x, y = _paths(synthetic, real)
    return x.reshape(-1, x.shape[2]), y.reshape(-1, y.shape[2])


def _shares(points: Floats, centre: Floats, half: float) -> Floats:
    """(Q,) share of points (n, d) in the boxes centre (Q, d) +- half."""
    chunk = max(1, ENTRIES // points.size)
    parts = [
        (np.abs(points[None] - centre[i : i + chunk, None]) <= half).all(axis=2).mean(axis=1)
        for i in range(0, len(centre), chunk)
    ]
    return np.concatenate(parts)


def _counts(points: Floats, bounds: Any, cells: int | None) -> Ints:
    place, total = grid_cells(points, bounds, cells)
    return np.bincount(place, minlength=total)


def _visitors(
    synthetic: Any, real: Any, bounds: Any, cells: int | None
) -> tuple[tuple[Ints, Ints], int]:
    """People per cell (C,) on both sides, and C."""
    counts = []
    for paths in _paths(synthetic, real):
        place, total = grid_cells(paths, bounds, cells)
        visits = np.unique(place + total * np.arange(len(paths))[:, None])
        counts.append(np.bincount(visits % total, minlength=total))
    return (counts[0], counts[1]), total


def _fullest(counts: Ints, k: int) -> list[int]:
    """Up to k cells that hold somebody, the fullest first."""
    order = np.argsort(-counts, kind="stable")[:k]
    return [int(cell) for cell in order if counts[cell] > 0]


def _discounted(gains: Floats) -> float:
    return float((gains / np.log2(np.arange(2, len(gains) + 2))).sum())
