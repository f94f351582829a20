"""From noisy counts to a measure that can stand in for the people. All of it is post-processing.

A cell is significant when noise alone would produce its count, or a larger one, with a chance below
    cells^-SIGNIFICANCE_EXPONENT / 2,
or when it touches a significant cell and the chance is below 3^(-d NEIGHBOUR_EXPONENT) / 2, a level
for the 3^d cells of a neighbourhood: a false cell next to a true one costs little in transport
distance and a missing one more. What is left is asked again in blocks of 2 and 4 cells a side:
people too thinly spread for a cell stand out in a block, and a significant block shares its people
among its cells as their own counts suggest.

The same noisy counts pooled into cells of 2 and 4 times the side give two coarser readings; each
time takes the reading with the least estimated squared error
    (share of people not in significant cells)^2 * spread^2 + d h^2 / 24,      h = side of a cell,
so that fine cells serve concentrated people and coarse ones serve people who are spread out. If
it holds less than MAJORITY of the people, the others are spread around as the coarsest counts say;
a time at which nothing is significant is read as the nearest one at which a majority is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privtraj.arrays import Floats, Mask
from privtraj.clouds import systematic, total_variance
from privtraj.counts.constants import (
    BLOCK_EXPONENT,
    GROWTH_ROUNDS,
    MAJORITY,
    MAX_POOLINGS,
    NEIGHBOUR_EXPONENT,
    OWN_NOISE_SHARE,
    SIGNIFICANCE_EXPONENT,
)
from privtraj.head_count import continuous_laplace_deviation


@dataclass(frozen=True)
class GridMeasure:
    """A private measure at each time: cells that hold people, padded to equal length J.

    centres: (T, J, d) in the unit cube.  weights: (T, J), rows sum to 1, padding has weight 0.
    sides: (T,) side of the cells read at that time.  significant: (T,) share of people in them.
    """

    centres: Floats
    weights: Floats
    sides: Floats
    significant: Floats


class Reading(NamedTuple):
    """One time's people in cells of one size: centres (J, d), counts (J,) above 0."""

    centres: Floats
    counts: Floats
    side: float


def estimate(
    counts: NDArray[np.int64], cells_per_side: int, epsilon: float, people: Floats, dimensions: int
) -> GridMeasure:
    """The measure behind noisy counts (T, cells_per_side ** d); people (T,): released totals."""
    shape = (cells_per_side,) * dimensions
    chosen = [
        _best_reading(row.reshape(shape).astype(np.float64), epsilon, total)
        for row, total in zip(counts, people, strict=True)
    ]
    chosen = [_nearest_significant(chosen, i) for i in range(len(chosen))]
    most = max(len(reading.counts) for reading, _ in chosen)
    centres = np.full((len(chosen), most, dimensions), 0.5)
    weights = np.zeros((len(chosen), most))
    for i, (reading, _) in enumerate(chosen):
        centres[i, : len(reading.counts)] = reading.centres
        weights[i, : len(reading.counts)] = reading.counts / reading.counts.sum()
    sides = np.array([reading.side for reading, _ in chosen])
    return GridMeasure(centres, weights, sides, np.array([share for _, share in chosen]))


def _nearest_significant(chosen: list[tuple[Reading, float]], i: int) -> tuple[Reading, float]:
    """Time i's reading; if nothing is significant, that of the nearest time with a majority."""
    if chosen[i][1] > 0:
        return chosen[i]
    others = [j for j, (_, share) in enumerate(chosen) if share > MAJORITY]
    return (chosen[min(others, key=lambda j: abs(j - i))][0], 0.0) if others else chosen[i]


def _best_reading(counts: Floats, epsilon: float, people: float) -> tuple[Reading, float]:
    """The reading with the least estimated error, and the share of the people in it."""
    levels = [counts]
    while len(levels) <= MAX_POOLINGS and len(levels[-1]) % 2 == 0 and len(levels[-1]) >= 4:
        levels.append(pooled(levels[-1]))
    readings = [
        reading(level, 2 ** (counts.ndim * i), epsilon, len(levels) - 1 - i)
        for i, level in enumerate(levels)
    ]
    spread = max(_spread(one) for one in readings)
    shares = [min(one.counts.sum() / people, 1.0) for one in readings]
    errors = [
        (1 - share) ** 2 * max(spread, one.side**2) + counts.ndim * one.side**2 / 24
        if share > 0
        else math.inf
        for one, share in zip(readings, shares, strict=True)
    ]
    best = int(np.argmin(errors))
    if shares[best] == 0:  # nothing stands out from the noise: all that is left is the box
        return Reading(np.full((1, counts.ndim), 0.5), np.ones(1), 1.0), 0.0
    chosen = readings[best]
    if shares[best] < MAJORITY:
        chosen = _completed(chosen, people, levels[-1])
    return chosen, float(shares[best])


def _completed(seen: Reading, people: float, coarse: Floats) -> Reading:
    """The reading with the people it misses, in the blocks around it as the coarsest counts say."""
    from scipy.ndimage import maximum_filter

    per_side = round(1 / seen.side)
    level = round(math.log2(per_side / len(coarse)))
    counts = np.zeros((per_side,) * coarse.ndim)
    np.add.at(counts, tuple((seen.centres * per_side).astype(np.int64).T), seen.counts)
    near = maximum_filter(blocks(counts, level) > 0, size=3, mode="constant")
    share = np.where(near, np.maximum(coarse, 0.0) + 1e-9, 0.0)
    spread = spread_out(share / share.sum(), level) / 2 ** (level * coarse.ndim)
    counts += (people - seen.counts.sum()) * spread
    return Reading((np.argwhere(counts > 0) + 0.5) / per_side, counts[counts > 0], seen.side)


def reading(counts: Floats, cells: int, epsilon: float, poolings: int) -> Reading:
    """People in significant cells, then in significant blocks of what is left.

    counts: one axis per dimension.
    cells: how many counted cells each entry adds up.  poolings: how many sizes of blocks to ask.
    """
    kept = significant(counts, np.full(counts.shape, cells), epsilon, NEIGHBOUR_EXPONENT)
    people = np.where(kept, counts, 0.0)
    noise = OWN_NOISE_SHARE * continuous_laplace_deviation(epsilon, cells)
    for level in range(1, poolings + 1):
        left = np.where(kept, 0.0, counts)
        free = blocks(np.where(kept, 0, cells), level)
        known = blocks(kept.astype(np.int64), level) > 0
        crowded = significant(blocks(left, level), free, epsilon, BLOCK_EXPONENT, known)
        added = spread_out(crowded, level) & ~kept
        own = np.where(added, np.maximum(counts, 0.0) + noise, 0.0)
        share = own / np.maximum(spread_out(blocks(own, level), level), 1e-300)
        people += share * spread_out(blocks(left, level), level)
        kept |= added
    held = people > 0
    return Reading((np.argwhere(held) + 0.5) / len(counts), people[held], 1 / len(counts))


def significant(
    counts: Floats,
    cells: NDArray[np.int64],
    epsilon: float,
    neighbour_exponent: float,
    known: Mask | None = None,
) -> Mask:
    """Which counts noise would hardly produce, each the sum of so many noisy cells (0: none).

    neighbour_exponent: level 3^(-d exponent) / 2 of neighbours of significant ones, over
    GROWTH_ROUNDS rounds.  known: places that hold significant cells already; then one round, around
    these as well.
    """
    from scipy.ndimage import maximum_filter

    anywhere = -SIGNIFICANCE_EXPONENT * math.log(counts.size) - math.log(2)
    nearby = -neighbour_exponent * counts.ndim * math.log(3) - math.log(2)
    keep: Mask = (cells > 0) & (counts > _quantiles(cells, epsilon, anywhere))
    likely = (cells > 0) & (counts > _quantiles(cells, epsilon, nearby))
    rounds = GROWTH_ROUNDS if known is None else 1
    for _ in range(rounds):
        around = keep if known is None else keep | known
        keep |= likely & maximum_filter(around, size=3, mode="constant")
    return keep


@lru_cache(maxsize=4096)
def noise_quantile(cells: int, epsilon: float, log_chance: float) -> float:
    """x that a sum of `cells` Laplace variables exceeds with chance e^log_chance at most.

    Their scale is 1 / epsilon. Exact for one; for more Chernoff's bound,
        P(S > x) <= exp(-s x) / (1 - s^2 / epsilon^2)^cells,
    which is least at s = (sqrt(cells^2 + (epsilon x)^2) - cells) / x.
    """
    if cells == 1:
        return max(0.0, -(log_chance + math.log(2)) / epsilon)
    low, high = 0.0, (cells - 2 * log_chance) * 2 / epsilon  # the bound at high is below the chance
    for _ in range(50):
        x = (low + high) / 2
        s = (math.sqrt(cells**2 + (epsilon * x) ** 2) - cells) / x
        bound = -s * x - cells * math.log1p(-((s / epsilon) ** 2))
        low, high = (x, high) if bound > log_chance else (low, x)
    return high


def _quantiles(cells: NDArray[np.int64], epsilon: float, log_chance: float) -> Floats:
    different, place = np.unique(cells, return_inverse=True)
    values = [noise_quantile(int(n), epsilon, log_chance) if n else 0.0 for n in different]
    quantiles: Floats = np.array(values)[place.reshape(cells.shape)]
    return quantiles


def pooled(counts: Floats) -> Floats:
    """Sums over blocks of two cells a side; every axis has even length."""
    for axis in range(counts.ndim):
        shape = counts.shape
        split = (*shape[:axis], shape[axis] // 2, 2, *shape[axis + 1 :])
        counts = counts.reshape(split).sum(axis=axis + 1)
    return counts


def blocks(counts: NDArray[Any], level: int) -> NDArray[Any]:
    """Sums over blocks of 2^level cells a side."""
    for _ in range(level):
        counts = pooled(counts)
    return counts


def spread_out(values: NDArray[Any], level: int) -> NDArray[Any]:
    """Every value repeated over the cells of its block of 2^level a side."""
    for axis in range(values.ndim):
        values = np.repeat(values, 2**level, axis=axis)
    return values


def placed(
    measure: GridMeasure, m: int, rng: np.random.Generator, bandwidth: float | None = None
) -> tuple[Floats, Floats, Floats]:
    """Particles (T, m, d), weights (T, m) and bandwidths (T,) whose noisy sum fills the cells.

    A uniform place in a cell of side h has variance h^2 / 12 in every direction. The bandwidth is
    r h / sqrt(12), r^d = cells per particle, so that particles' clouds just touch, and the
    particles themselves spread over the part sqrt(1 - r^2) of the cell that this leaves. A
    bandwidth set by hand is added to particles that fill their cells.
    """
    clouds, shares, widths = [], [], []
    for places, weights, side in zip(measure.centres, measure.weights, measure.sides, strict=True):
        index, share = _shared_out(weights, m, rng)
        effective = 1 / np.sum(weights**2)
        overlap = min(1.0, effective / m) ** (1 / places.shape[1])
        fill = math.sqrt(1 - overlap**2) if bandwidth is None else 1.0
        inside = rng.uniform(-0.5, 0.5, size=(m, places.shape[1]))
        clouds.append(np.clip(places[index] + fill * side * inside, 0, 1))
        shares.append(share)
        widths.append(overlap * side / math.sqrt(12) if bandwidth is None else bandwidth)
    return np.stack(clouds), np.stack(shares), np.array(widths)


def _shared_out(
    weights: Floats, m: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], Floats]:
    """Cells (m,) of m particles and their weights (m,), which add up to the cells' where they can.

    Every cell with people has one particle and more in proportion, all of a cell of equal weight;
    if there are more cells than particles, a systematic sample of them has equal weights.
    """
    held = np.flatnonzero(weights)
    if len(held) > m:
        return systematic(weights, m, rng), np.full(m, 1 / m)
    more = systematic(weights, m - len(held), rng) if m > len(held) else held[:0]
    index = np.sort(np.concatenate([held, more]))
    return index, weights[index] / np.bincount(index)[index]


def _spread(reading: Reading) -> float:
    """Total variance of the people in a reading, 0 if there are none."""
    if len(reading.counts) == 0:
        return 0.0
    return total_variance(reading.centres, reading.counts / reading.counts.sum())
