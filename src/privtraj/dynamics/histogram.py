"""From noisy counts to a measure that can stand in for the people. All of it is post-processing.

A cell is believed when its noisy count is one that noise alone would hardly produce anywhere,
    count > STRONG log(cells) / epsilon,
or when it touches a believed cell and its count is one that noise would hardly produce among the
3^d neighbours of a cell,
    count > WEAK log(3^d) / epsilon,
because a false cell next to a true one costs little in transport distance and a missing one more.
The same noisy counts pooled into blocks of 2 and 4 cells a side give two coarser readings; each
time takes the reading with the least estimated squared error
    (share of people not in believed cells)^2 * spread^2 + d h^2 / 24,      h = side of a cell,
so that fine cells serve concentrated people and coarse ones serve people who are spread out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STRONG = 1.6
WEAK = 0.85
GROWTH_ROUNDS = 2
MAX_POOLINGS = 2


@dataclass(frozen=True)
class Measure:
    """A private measure at each time: cells that hold people, padded to equal length J.

    centres: (T, J, d) in the unit cube.  weights: (T, J), rows sum to 1, padding has weight 0.
    sides: (T,) side of the cells read at that time.  believed: (T,) share of people in them.
    """

    centres: Floats
    weights: Floats
    sides: Floats
    believed: Floats


def estimate(
    counts: NDArray[np.int64], cells_per_side: int, epsilon: float, people: Floats, dimensions: int
) -> Measure:
    """The measure behind noisy counts (T, cells_per_side ** d); people (T,): released totals."""
    shape = (cells_per_side,) * dimensions
    readings = [
        _best_reading(row.reshape(shape).astype(np.float64), epsilon, total)
        for row, total in zip(counts, people, strict=True)
    ]
    most = max(len(weights) for _, weights, _, _ in readings)
    centres = np.full((len(readings), most, dimensions), 0.5)
    padded = np.zeros((len(readings), most))
    for i, (places, weights, _, _) in enumerate(readings):
        centres[i, : len(places)] = places
        padded[i, : len(weights)] = weights / weights.sum()
    sides = np.array([side for _, _, side, _ in readings])
    believed = np.array([share for _, _, _, share in readings])
    return Measure(centres, padded, sides, believed)


def believed_counts(counts: Floats, noise_std: float, epsilon: float) -> Floats:
    """The counts of believed cells, zero elsewhere; counts has one axis per dimension.

    Pooled counts have noise of standard deviation noise_std; a sum of Laplace variables has tails
    between exponential and Gaussian, so its epsilon is taken as sqrt(2) / noise_std.
    """
    from scipy.ndimage import maximum_filter

    dimensions = counts.ndim
    scale = min(epsilon, math.sqrt(2) / noise_std)
    keep = counts > STRONG * math.log(counts.size) / scale
    weak = counts > WEAK * math.log(3**dimensions) / scale
    for _ in range(GROWTH_ROUNDS):
        keep |= weak & maximum_filter(keep, size=3, mode="constant")
    return np.where(keep, counts, 0.0)


def pooled(counts: Floats) -> Floats:
    """Sums over blocks of two cells a side; every axis has even length."""
    for axis in range(counts.ndim):
        shape = counts.shape
        split = (*shape[:axis], shape[axis] // 2, 2, *shape[axis + 1 :])
        counts = counts.reshape(split).sum(axis=axis + 1)
    return counts


def _best_reading(
    counts: Floats, epsilon: float, people: float
) -> tuple[Floats, Floats, float, float]:
    """(centres, weights, side, believed share) of the reading with the least estimated error."""
    noise_std = math.sqrt(2 * math.exp(-epsilon)) / -math.expm1(-epsilon)
    readings = []
    for _ in range(MAX_POOLINGS + 1):
        kept = believed_counts(counts, noise_std, epsilon)
        side = 1 / counts.shape[0]
        places = np.argwhere(kept > 0)
        readings.append((side * (places + 0.5), kept[kept > 0], side))
        if counts.shape[0] % 2 or counts.shape[0] < 4:
            break
        counts, noise_std = pooled(counts), noise_std * 2 ** (counts.ndim / 2)
    spread = max(_variance(places, weights) for places, weights, _ in readings)
    errors, shares = [], []
    for _, weights, side in readings:
        share = float(np.clip(weights.sum() / people, 0.0, 1.0))
        errors.append((1 - share) ** 2 * max(spread, side**2) + counts.ndim * side**2 / 24)
        shares.append(share)
    best = int(np.argmin([e if s > 0 else math.inf for e, s in zip(errors, shares, strict=True)]))
    centres, weights, side = readings[best]
    if len(weights) == 0:  # nothing stands out from the noise: all that is left is the box
        return np.full((1, counts.ndim), 0.5), np.ones(1), 1.0, 0.0
    return centres, weights, side, shares[best]


def _variance(places: Floats, weights: Floats) -> float:
    """Trace of the covariance of a weighted cloud."""
    if len(weights) == 0:
        return 0.0
    share = weights / weights.sum()
    centre = share @ places
    return float(share @ ((places - centre) ** 2).sum(axis=1))
