"""The scores of private mobility data, of how people move: for comparison with that field.

Definitions follow LDPTrace (Du et al. 2023), PrivTrace (Wang et al. 2023) and AdaTrace (Gursoy et
al. 2018), on public bounds and public histogram bins. Synthetic paths (n, T, d) go first, real ones
(k, T, d) second. Distances are in shares of the box, so that features of different units count
alike.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from privtraj.arrays import Floats, Ints
from privtraj.metrics.cells import grid_cells, in_box, jensen_shannon, jensen_shannon_of
from privtraj.metrics.clouds import ENTRIES, path_pair
from privtraj.metrics.registry import path_metric

_BINS = 20


@path_metric("trip_jsd", "trip JSD", place=40, on_grid=True)
def trip_jsd(synthetic: Any, real: Any, *, bounds: Any = None, cells: int | None = None) -> float:
    """JSD of the pairs (cell of the first point, cell of the last); 0 to ln 2, lower is better."""
    trips = []
    for paths in path_pair(synthetic, real):
        place, total = grid_cells(paths[:, [0, -1]], bounds, cells)
        trips.append(place[:, 0] * total + place[:, 1])
    return jensen_shannon_of(*trips)


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
    return _histogram_jsd(ours, theirs, edges)


@path_metric("diameter_jsd", "diameter JSD", place=30)
def diameter_jsd(synthetic: Any, real: Any, *, bounds: Any = None, edges: Any = None) -> float:
    """JSD of histograms of the diameter max_ij |x_i - x_j|; 0 to ln 2, lower is better.

    edges: of the bins, by default 20 of equal width from 0 to the box's diagonal, sqrt(d).
    """
    x, y = (in_box(paths, bounds) for paths in path_pair(synthetic, real))
    if edges is None:
        edges = np.linspace(0.0, np.sqrt(x.shape[2]), _BINS + 1)
    return _histogram_jsd(_diameters(x), _diameters(y), edges)


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
    x, y = path_pair(synthetic, real)
    ours, true = (_top_patterns(grid_cells(p, bounds, cells)[0], k, longest) for p in (x, y))
    if not ours and not true:
        return 1.0
    return 2 * len(ours & true) / (len(ours) + len(true))


def _histogram_jsd(a: Floats, b: Floats, edges: Any) -> float:
    """JSD over bins; what lies outside counts in the first or the last."""
    cuts = np.asarray(edges, dtype=np.float64)[1:-1]
    p, q = (np.bincount(np.searchsorted(cuts, v, "right"), minlength=len(cuts) + 1) for v in (a, b))
    return jensen_shannon(p, q)


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
