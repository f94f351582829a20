"""The scores of private mobility data, of where people are and how they move, as in that field.

Definitions follow LDPTrace (Du et al. 2023) and PrivTrace (Wang et al. 2023), which have them from
AdaTrace (Gursoy et al. 2018), with two changes: grids, boxes and bins lie on the public bounds
instead of the data's range, and any number of features is allowed. Synthetic people go first, real
ones second. Where people are: clouds (n, d), or paths (n, T, d), whose points are pooled; how they
move: paths. Distances are in shares of the box, so that features of different units count alike.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError
from privtraj.base.space import to_unit
from privtraj.metrics.clouds import ENTRIES, pair, path_pair
from privtraj.metrics.registry import cloud_metric, path_metric

MOST_CELLS = 4096
_CELLS = 36  # about so many unless told otherwise: six by six in two dimensions
_BINS = 20  # of lengths and diameters


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
    p, q = (_counts(points, bounds, cells) for points in _points(synthetic, real))
    return jensen_shannon(p, q)


@cloud_metric("hotspot_ndcg", "hotspot NDCG@5", place=80, better="higher", on_grid=True)
def hotspot_ndcg(
    synthetic: Any, real: Any, *, bounds: Any = None, cells: int | None = None, k: int = 5
) -> float:
    """NDCG@k: are the k fullest cells the right ones, in the right order?

    Sum over i of r_i / log2(i + 1), r_i = 1 / rank among the real top k of the synthetic i-th cell
    and 0 if it is not among them, divided by its value for the true order. Empty cells never
    count. 1 is best, 0 means no hotspot found.
    """
    sides = _points(synthetic, real)
    ours, true = (_fullest(_counts(points, bounds, cells), k) for points in sides)
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
    p, q = (_visitors(paths, bounds, cells) for paths in _paths(synthetic, real))
    total = len(p)
    if total < 2:
        raise InputError("ranks need at least two cells")
    order_p, order_q = (np.sign(np.subtract.outer(v, v)).astype(np.int8) for v in (p, q))
    return float((order_p * order_q).sum() / (total * (total - 1)))


@path_metric("trip_jsd", "trip JSD", place=40, on_grid=True)
def trip_jsd(synthetic: Any, real: Any, *, bounds: Any = None, cells: int | None = None) -> float:
    """JSD of the pairs (cell of the first point, cell of the last); 0 to ln 2, lower is better."""
    trips = []
    for paths in path_pair(synthetic, real):
        place, total = grid_cells(paths[:, [0, -1]], bounds, cells)
        trips.append(place[:, 0] * total + place[:, 1])
    seen, code = np.unique(np.concatenate(trips), return_inverse=True)
    sides = np.split(code, [len(trips[0])])
    return jensen_shannon(*(np.bincount(side, minlength=len(seen)) for side in sides))


@path_metric("length_jsd", "length JSD", place=20)
def length_jsd(synthetic: Any, real: Any, *, bounds: Any = None, edges: Any = None) -> float:
    """JSD of histograms of the length sum_i |x_{i+1} - x_i|; 0 to ln 2, lower is better.

    edges: of the bins, by default 20 of equal ratio from 1 % of the greatest possible length,
    (T - 1) sqrt(d), to all of it, where the first reaches down to 0.
    """
    x, y = (in_box(paths, bounds) for paths in path_pair(synthetic, real))
    if edges is None:
        most = max(x.shape[1] - 1, 1) * np.sqrt(x.shape[2])
        edges = np.concatenate([[0.0], np.geomspace(0.01, 1.0, _BINS)]) * most
    ours, theirs = (np.linalg.norm(np.diff(v, axis=1), axis=2).sum(axis=1) for v in (x, y))
    return histogram_jsd(ours, theirs, edges)


@path_metric("diameter_jsd", "diameter JSD", place=30)
def diameter_jsd(synthetic: Any, real: Any, *, bounds: Any = None, edges: Any = None) -> float:
    """JSD of histograms of the diameter max_ij |x_i - x_j|; 0 to ln 2, lower is better.

    edges: of the bins, by default 20 of equal width from 0 to the box's diagonal, sqrt(d).
    """
    x, y = (in_box(paths, bounds) for paths in path_pair(synthetic, real))
    if edges is None:
        edges = np.linspace(0.0, np.sqrt(x.shape[2]), _BINS + 1)
    return histogram_jsd(_diameters(x), _diameters(y), edges)


@path_metric("pattern_f1", "frequent-pattern F1", place=50, better="higher", on_grid=True)
def pattern_f1(
    synthetic: Any,
    real: Any,
    *,
    bounds: Any = None,
    cells: int | None = None,
    k: int = 100,
    longest: int = 8,
) -> float:
    """F1 of the k most frequent patterns: 2 |A and B| / (|A| + |B|), A and B the top k.

    A pattern is 2 to `longest` cells visited one after the other; staying in a cell is no move.
    Ties at rank k are cut in the order of the cells. Between 0 and 1, higher is better; 1 where
    nobody moves on either side.
    """
    sides = path_pair(synthetic, real)
    ours, true = (_top_patterns(grid_cells(x, bounds, cells)[0], k, longest) for x in sides)
    if not ours and not true:
        return 1.0
    return 2 * len(ours & true) / (len(ours) + len(true))


def usual_cells(d: int) -> int:
    """Cells per feature unless told otherwise: 36, 6, 3, then 2 for one, two, three and more."""
    return max(2, int(_CELLS ** (1 / d) + 1e-9))


def grid_cells(points: Floats, bounds: Any, per_feature: int | None) -> tuple[Ints, int]:
    """The cell (...) of points (..., d), numbered 0 to C - 1, and C.

    Each feature's range (unit interval unless `bounds` (d, 2) are given) is cut in `per_feature`
    equal parts; what lies outside counts at the wall.
    """
    d = points.shape[-1]
    parts = usual_cells(d) if per_feature is None else per_feature
    if parts < 1 or parts**d > MOST_CELLS:
        raise InputError(
            f"{parts} cells for each of {d} features are too many or none: at most {MOST_CELLS} "
            "in all can be compared"
        )
    place = np.minimum((in_box(points, bounds) * parts).astype(np.int64), parts - 1)
    return place @ (parts ** np.arange(d)), parts**d


def in_box(points: Floats, bounds: Any) -> Floats:
    """Points (..., d) in shares of the box, clamped to it; without bounds it is the unit cube."""
    return to_unit(points, np.tile([0.0, 1.0], (points.shape[-1], 1)) if bounds is None else bounds)


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


def histogram_jsd(a: Floats, b: Floats, edges: Any) -> float:
    """JSD over bins; what lies outside counts in the first or the last."""
    cuts = np.asarray(edges, dtype=np.float64)[1:-1]
    p, q = (np.bincount(np.searchsorted(cuts, v, "right"), minlength=len(cuts) + 1) for v in (a, b))
    return jensen_shannon(p, q)


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


def _visitors(paths: Floats, bounds: Any, cells: int | None) -> Ints:
    """(C,) people of paths (n, T, d) with a point in each cell."""
    place, total = grid_cells(paths, bounds, cells)
    visits = np.unique(place + total * np.arange(len(paths))[:, None])
    return np.bincount(visits % total, minlength=total)


def _fullest(counts: Ints, k: int) -> list[int]:
    """Up to k cells that hold somebody, the fullest first."""
    order = np.argsort(-counts, kind="stable")[:k]
    return [int(cell) for cell in order if counts[cell] > 0]


def _discounted(gains: Floats) -> float:
    return float((gains / np.log2(np.arange(2, len(gains) + 2))).sum())


def _diameters(paths: Floats) -> Floats:
    """(n,) of paths (n, T, d)."""
    _, times, d = paths.shape
    rows = max(1, ENTRIES // (times * times * d))
    parts = []
    for i in range(0, len(paths), rows):
        some = paths[i : i + rows]
        gaps = np.linalg.norm(some[:, :, None] - some[:, None, :], axis=3)
        parts.append(gaps.max(axis=(1, 2)))
    return np.concatenate(parts)


def _top_patterns(places: Ints, k: int, longest: int) -> set[tuple[int, ...]]:
    """The k most frequent patterns of walks (n, T) over cells."""
    counts: Counter[tuple[int, ...]] = Counter()
    for walk in places:
        moves = walk[np.append(True, walk[1:] != walk[:-1])].tolist()
        for size in range(2, min(longest, len(moves)) + 1):
            counts.update(tuple(moves[i : i + size]) for i in range(len(moves) - size + 1))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {pattern for pattern, _ in ranked[:k]}
