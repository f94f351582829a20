"""From noisy counts to a measure that can stand in for the people. All of it is post-processing.

A cell is significant when noise alone would produce its count, or a larger one, with a chance below
    cells^-SIGNIFICANCE_EXPONENT / 2,
or when it touches a significant cell and the chance is below 3^(-d NEIGHBOUR_EXPONENT) / 2, a level
for the 3^d cells of a neighbourhood: a false cell next to a true one costs little in transport
distance and a missing one more. What is left is asked again in blocks of 2 and 4 cells a side:
people too thinly spread for a cell stand out in a block, and a significant block shares its people
among its cells as their own counts suggest.

Counts are averaged over time first, as far as people stay (`pooling`): a cell that is
supported by its own past and future stands out, one that noise has filled once does not.

The same noisy counts pooled into cells of 2 and 4 times the side give two coarser readings; each
time takes the reading with the least estimated squared error
    (share of people not in significant cells)^2 * spread^2 + d h^2 / 24,      h = side of a cell,
so that fine cells serve concentrated people and coarse ones serve people who are spread out.

The others are below every threshold one by one. Those in cells that touch a significant one are
taken to be as these. Those farther away, thin tails above all, may be clear together: their number
over all times is a sum of noisy counts of known variance. Squared W2 is linear in mass that is
misplaced, so that it is the median that counts: none of them where the sum may be noise (TOGETHER
standard deviations), else all, at every time in proportion. Each cell at a distance r from the
nearest significant one has r^-(d + 1) of them. Where the significant people are no majority, all
others are around them in this way. A time at which nothing is significant is read as the nearest
one at which a majority is.

Cells outside a public domain hold nobody, whatever their noisy counts say: they are left out before
anything else, so that thresholds are for fewer cells and blocks have the noise of fewer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints, Mask, along_z_curve, total_variance
from privtraj.measures.pooling import GridMeasure, TimeAverage, time_average
from privtraj.privacy.noise import laplace_variance

SIGNIFICANCE_EXPONENT = 1.6  # chance of a false cell: cells^-1.6 / 2; by hand on stand-ins, 2026-11
NEIGHBOUR_EXPONENT = 0.85  # beside one: chance 3^(-0.85 d) / 2; set by hand on stand-ins, 2026-11
BLOCK_EXPONENT = 1.5  # the same for blocks, larger if false; set by hand on stand-ins, 2026-11
MAX_POOLINGS = 2  # of counts, to cells of 2 and 4 times the side; set by hand, 2026-11
GROWTH_ROUNDS = 2  # of neighbours; set by hand on stand-ins, 2026-11
MAJORITY = 0.5  # of the people: a reading with more may stand in for times without any
TOGETHER = 2.0  # standard deviations of people clear only together: tails lost, or made of noise
FALSE_ISLANDS = 0.05  # expected in a fit: groups of cells that are noise alone; by convention
OWN_NOISE_SHARE = 0.2  # of its noise that a cell of a block gets beside its count; by hand, 2026-11

_WHOLE_DRAWS: Floats = np.unique(np.geomspace(1, 2**40, 240).round())


class Reading(NamedTuple):
    """One time's people in cells of one size: centres (J, d), counts (J,) above 0."""

    centres: Floats
    counts: Floats
    side: float


def estimate(
    counts: NDArray[np.int64],
    cells_per_side: int,
    epsilon: float,
    people: Floats,
    dimensions: int,
    gaps: Floats | None = None,
    inside: Mask | None = None,
) -> GridMeasure:
    """The measure behind noisy counts (T, cells_per_side ** d); people (T,): released totals.

    gaps: (T - 1,) between the times, any unit, to average counts over time; None for not at all.
    inside: (cells_per_side, ...) which cells are in the domain; None for all.
    """
    fine = counts.astype(np.float64).reshape(-1, *(cells_per_side,) * dimensions)
    levels = levels_of(fine, epsilon, people, gaps, inside)
    read, cells = [], []
    for k, level in enumerate(levels):
        cells.append(level.cells)
        read.append(without_islands(reading(levels[k:], epsilon), level.cells, epsilon))
    chosen, shares = [], np.zeros(len(people))
    for t, grids in enumerate(zip(*read, strict=True)):
        best, shares[t] = _best_reading(grids, people[t])
        level = levels[best]
        counted = level.average.matrix[t] @ level.counts.reshape(len(people), -1)
        variance = laplace_variance(epsilon) / level.average.draws[t]
        counted = counted.reshape(level.cells.shape)
        chosen.append(_Time(grids[best], counted, level.cells, float(variance)))
    readings = list(map(as_reading, completed(chosen, people)))
    trusted = np.flatnonzero(shares > MAJORITY)
    for silent in np.flatnonzero(shares == 0):
        if len(trusted):
            readings[silent] = readings[trusted[np.abs(trusted - silent).argmin()]]
        elif inside is not None:  # nothing stands out from the noise: people are anywhere
            readings[silent] = as_reading(cells[-1])
        elif not len(readings[silent].counts):  # all that is left is the box
            readings[silent] = Reading(np.full((1, dimensions), 0.5), np.ones(1), 1.0)
    return stacked(readings, shares)


def stacked(readings: list[Reading], significant: Floats) -> GridMeasure:
    """The readings of all times."""
    every, counts, sides = zip(*readings, strict=True)
    most = max(map(len, counts))
    centres = np.full((len(readings), most, every[0].shape[1]), 0.5)
    weights = np.zeros((len(readings), most))
    for i, held in enumerate(counts):
        centres[i, : len(held)] = every[i]
        weights[i, : len(held)] = held / held.sum()
    return GridMeasure(centres, weights, np.array(sides), significant)


def _best_reading(grids: Sequence[Floats], people: float) -> tuple[int, float]:
    """Which of people in cells of every size has the least estimated error at one time, and the
    share of all people in it."""
    readings = list(map(as_reading, grids))
    spread, shares = 0.0, []  # spread: total variance of the people, as the widest reading has it
    for one in readings:
        total = one.counts.sum()
        shares.append(min(total / people, 1.0))
        if len(one.counts):
            spread = max(spread, total_variance(one.centres, one.counts / total))
    errors = []
    for one, share in zip(readings, shares, strict=True):
        missed = (1 - share) ** 2 * max(spread, one.side**2)
        errors.append(missed + grids[0].ndim * one.side**2 / 24 if share > 0 else math.inf)
    best = int(np.argmin(errors))
    return best, float(shares[best])


def as_reading(grid: Floats, per_side: int | None = None, corner: Ints | int = 0) -> Reading:
    """The people of a grid (side, ...), or of a window at the corner (d,) of one of per_side."""
    places = np.argwhere(grid > 0)
    places = places[along_z_curve(places)]  # so that a systematic sample of them is spread evenly
    cells = per_side or len(grid)
    return Reading((corner + places + 0.5) / cells, grid[tuple(places.T)], 1 / cells)


class _Time(NamedTuple):
    """Of one time, in cells (side, ...): significant people, averages, how many counted cells.

    variance: of the noise of a counted cell in the averages.
    """

    people: Floats
    counts: Floats
    cells: Floats
    variance: float


def completed(chosen: list[_Time], people: Floats) -> list[Floats]:
    """Significant people of T times, and those farther away who are clear only together.

    people: (T,) in all.
    """
    from scipy.ndimage import distance_transform_edt

    total, noise, places, missed = 0.0, 0.0, [], np.full(len(people), np.nan)
    for t, one in enumerate(chosen):
        found, least = float(one.people.sum()), 1.5
        if 0 < found < MAJORITY * people[t]:
            missed[t], least = people[t] - found, 0.5
        distance = np.full(one.cells.shape, 2.0)
        if found > 0:
            distance = distance_transform_edt(one.people == 0)
        away = distance > least
        if np.isnan(missed[t]):
            total += one.counts[away].sum()
            noise += one.variance * one.cells[away].sum()
        place = np.where(away, one.cells / np.maximum(distance, 1.0) ** (distance.ndim + 1), 0.0)
        places.append(place / max(place.sum(), 1e-300))
    together = total / people.sum() if total > TOGETHER * noise**0.5 else 0.0
    amounts = np.where(np.isnan(missed), together * people, missed)
    return [one.people + n * place for one, n, place in zip(chosen, amounts, places, strict=True)]


class Level(NamedTuple):
    """Noisy counts (T, side, ...), each of so many counted cells, and how to average over time.

    cells: (side, ...), 0 outside the domain.
    """

    counts: Floats
    cells: Floats
    average: TimeAverage


def levels_of(
    counts: Floats,
    epsilon: float,
    people: Floats,
    gaps: Floats | None = None,
    inside: Mask | None = None,
) -> list[Level]:
    """The counts (T, side, ...) in cells as counted, and of 2 and 4 times the side if they fit.

    Larger ones still, as far as they fit, only tell how people move. Outside the domain there are
    no cells, and no counts.
    """
    held = np.ones((1, *counts.shape[1:])) if inside is None else inside[None].astype(np.float64)
    grids, cells = [counts * held], [held]
    while grids[-1].shape[1] % 2 == 0 and grids[-1].shape[1] >= 4:
        grids.append(blocks(grids[-1], 1))
        cells.append(blocks(cells[-1], 1))
    doubled = 2 ** (counts.ndim - 1)
    levels: list[Level] = []
    moved = 0.0
    for k in reversed(range(len(grids))):
        flat, noise = grids[k].reshape(len(counts), -1), doubled**k * laplace_variance(epsilon)
        average = time_average(flat, noise, people, gaps, moved / doubled)
        moved = average.amplitude
        levels.append(Level(grids[k], cells[k][0], average))
    return levels[::-1][: MAX_POOLINGS + 1]


def reading(levels: list[Level], epsilon: float) -> Floats:
    """People (T, side, ...) in significant cells of the first level, then in significant blocks.

    The blocks are the cells of the other levels, less those that are significant by themselves.
    """
    first, *others = levels
    counts, at_times = first.average(first.counts), (-1, *(1,) * first.cells.ndim)
    draws = first.average.draws.reshape(at_times)
    free, places = np.broadcast_to(first.cells, counts.shape), int((first.cells > 0).sum())
    kept = significant(counts, free, draws, epsilon, NEIGHBOUR_EXPONENT, places=places)
    people = np.where(kept, counts, 0.0)
    noise = OWN_NOISE_SHARE * np.sqrt(2 * first.cells / draws) / epsilon
    for k, level in enumerate(others, start=1):
        cells = blocks(np.where(kept, 0.0, free), k)
        left = level.average(blocks(np.where(kept, 0.0, first.counts), k))
        known = blocks(kept.astype(np.int64), k) > 0
        draws, places = level.average.draws.reshape(at_times), int((level.cells > 0).sum())
        crowded = significant(left, cells, draws, epsilon, BLOCK_EXPONENT, known, places)
        added = spread_out(crowded, k) & ~kept & (free > 0)
        own = np.where(added, np.maximum(counts, 0.0) + noise, 0.0)
        share = own / np.maximum(spread_out(blocks(own, k), k), 1e-300)
        people += share * spread_out(left, k)
        kept |= added
    return people


def without_islands(people: Floats, cells: Floats, epsilon: float) -> Floats:
    """People (T, side, ...) less those of islands that noise may have made.

    cells: (side, ...) how many noisy cells each is the sum of.
    """
    from scipy.ndimage import label, sum_labels

    island, count = label(people > 0, np.ones((3,) * people.ndim))
    if count == 0:
        return people
    numbers = np.arange(1, count + 1)
    held = sum_labels(people, island, numbers)
    noisy = sum_labels(np.broadcast_to(cells, people.shape), island, numbers)
    chance = math.log(FALSE_ISLANDS / (len(people) * np.count_nonzero(cells)))
    real = np.append(False, held > _quantiles(noisy, epsilon, chance))
    return np.where(real[island], people, 0.0)


def significant(
    counts: Floats,
    cells: Floats,
    draws: Floats,
    epsilon: float,
    neighbour_exponent: float,
    known: Mask | None = None,
    places: int | None = None,
) -> Mask:
    """Which counts (T, side, ...) noise would hardly produce.

    cells: how many noisy cells each is the sum of (0: none).  draws: (T, 1, ...) how many draws of
    noise were averaged in each cell.
    neighbour_exponent: level 3^(-d exponent) / 2 of neighbours of significant ones, over
    GROWTH_ROUNDS rounds.  known: places that hold significant cells already; then one round, around
    these as well.  places: how many there are in the domain; all of them by default.
    """
    anywhere = -SIGNIFICANCE_EXPONENT * math.log(places or counts[0].size) - math.log(2)
    nearby = -neighbour_exponent * (counts.ndim - 1) * math.log(3) - math.log(2)
    total = draws * counts
    keep: Mask = (cells > 0) & (total > _quantiles(cells * draws, epsilon, anywhere))
    likely = (cells > 0) & (total > _quantiles(cells * draws, epsilon, nearby))
    rounds = GROWTH_ROUNDS if known is None else 1
    for _ in range(rounds):
        keep |= likely & _dilated(keep if known is None else keep | known)
    return keep


def _dilated(mask: Mask) -> Mask:
    """Where a cell (T, side, ...) or one that it touches at the same time is in the mask."""
    from scipy.ndimage import maximum_filter

    wide: Mask = maximum_filter(mask, size=(1,) + (3,) * (mask.ndim - 1), mode="constant")
    return wide


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


def _quantiles(draws: Floats, epsilon: float, log_chance: float) -> Floats:
    """Quantiles of sums of so many draws, linear between whole numbers of them."""
    known = _WHOLE_DRAWS[: np.searchsorted(_WHOLE_DRAWS, draws.max()) + 1]
    values = list(map(noise_quantile, map(int, known), repeat(epsilon), repeat(log_chance)))
    quantiles: Floats = np.interp(draws, known, values)
    return quantiles


def blocks(counts: NDArray[Any], level: int) -> NDArray[Any]:
    """Sums over blocks of 2^level cells a side of every time; (T, side, ...)."""
    width = 2**level
    for axis in range(1, counts.ndim):
        shape = counts.shape
        split = (*shape[:axis], shape[axis] // width, width, *shape[axis + 1 :])
        counts = counts.reshape(split).sum(axis=axis + 1)
    return counts


def spread_out(values: NDArray[Any], level: int) -> NDArray[Any]:
    """Every value (T, side, ...) repeated over the cells of its block of 2^level a side."""
    for axis in range(1, values.ndim):
        values = np.repeat(values, 2**level, axis=axis)
    return values
