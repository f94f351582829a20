"""Cells of numbers crossed with the levels of categories: one table of numbers per combination.

Each of L combinations of levels has noisy counts of its own. What is inferred of it is what counts
of numbers alone say (`cells`, `pooling`), with its own number of people. That number is

    summed      over the cells that hold anybody, by the counts of all combinations and all times
                together: less noise than that of all cells
    steadied    averaged over time, as far as it stays (`time_average`)
    noticed     0, unless it is above sqrt(2 log n) standard deviations of its noise, which the
                largest of n numbers that are noise alone hardly reaches: over all time together
                (n = L), or at any time (n = L T)
    projected   the nearest numbers >= 0 that add up to the people of the time: maximum likelihood,
                which takes from every combination what noise adds to those that have nobody

so that rare combinations are not filled by noise. Where a combination's counts do not say where its
people are, they are where those of all the others are. All of it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints, Mask
from privtraj.columns.axes import Axes
from privtraj.measures.counts.cells import GridMeasure
from privtraj.measures.counts.constants import MAJORITY
from privtraj.measures.counts.time_average import no_average, time_average
from privtraj.privacy.noise import laplace_variance


@dataclass(frozen=True)
class CrossedMeasure:
    """A private measure at each time: cells that hold people, each of one combination of levels.

    numbers: (T, J, p) centres.  levels: (T, J, c) of the categories.  weights: (T, J), rows sum to
    1, padding has weight 0.  sides: (T, J) of the cells.  significant: (T,) share of people in
    significant ones.
    """

    numbers: Floats
    levels: Ints
    weights: Floats
    sides: Floats
    significant: Floats

    def points(self, t: int, numbers: Floats, cell: Ints, axes: Axes) -> Floats:
        """(m, d) of particles at numbers (m, p) in these cells (m,) of time t."""
        made = np.empty((len(cell), len(axes.levels)))
        made[:, axes.numbers] = numbers
        count = np.array(axes.levels)[axes.categories]
        made[:, axes.categories] = (self.levels[t, cell] + 0.5) / count
        return made


def by_combination(
    counts: NDArray[np.int64], axes: Axes, side: int
) -> tuple[NDArray[np.int64], Ints]:
    """Counts (L, T, side^p) of every combination of levels, and the levels (L, c) of each."""
    grid = counts.reshape(-1, *axes.sides(side))
    kinds = np.flatnonzero(axes.categories), np.flatnonzero(axes.numbers)
    order = [*(1 + kinds[0]), 0, *(1 + kinds[1])]
    shape = [axes.levels[k] for k in kinds[0]]
    levels = np.stack(np.unravel_index(np.arange(axes.combinations), shape), axis=1)
    return grid.transpose(order).reshape(len(levels), len(grid), -1), levels


def held_cells(tables: NDArray[np.int64], side: int, epsilon: float) -> Mask:
    """Which cells (side^p,) of counts (L, T, side^p) hold anybody, or touch one that does.

    All of them, where most people are in cells that do not stand out.
    """
    from scipy.ndimage import maximum_filter

    combinations, times, cells = tables.shape
    together = tables.sum(axis=(0, 1))
    deviation = math.sqrt(combinations * times * laplace_variance(epsilon))
    sure = together > deviation * math.sqrt(2 * math.log(max(cells, 2)))
    if not sure.any() or together[sure].sum() < MAJORITY * together.sum():
        return np.ones(cells, np.bool_)
    grid = sure.reshape((side,) * round(math.log(cells, side)))
    held: Mask = maximum_filter(grid, size=3, mode="constant").ravel()
    return held


def people_of(totals: Floats, noise: float, people: Floats, gaps: Floats | None) -> Floats:
    """Numbers of people (T, L) of each combination, from noisy ones of this variance.

    people: (T,) of all together.  gaps: (T - 1,) between times; None averages nothing.
    """
    times, combinations = totals.shape
    average = no_average(times)
    if gaps is not None:
        average = time_average(totals, noise, people, gaps)
    steady = average(totals)
    deviation = np.sqrt(noise / average.draws)[:, None]
    once = steady > deviation * math.sqrt(2 * math.log(times * combinations))
    always = totals.sum(axis=0) > math.sqrt(times * noise * 2 * math.log(combinations))
    noticed = once.any(axis=0) | always
    if not noticed.any():
        noticed[:] = True
    found = np.zeros_like(steady)
    found[:, noticed] = projected(steady[:, noticed], people)
    return found


def projected(values: Floats, totals: Floats) -> Floats:
    """The nearest numbers (T, L) >= 0 whose rows add up to the totals (T,), above 0."""
    falling = -np.sort(-values, axis=1)
    excess = (np.cumsum(falling, axis=1) - totals[:, None]) / np.arange(1, values.shape[1] + 1)
    last = np.count_nonzero(falling > excess, axis=1) - 1
    taken = np.take_along_axis(excess, last[:, None], axis=1)
    return np.maximum(values - taken, 0.0)


def crossed(measures: list[GridMeasure], levels: Ints, people: Floats) -> CrossedMeasure:
    """All combinations together: measures of each, their levels (L, c), their people (T, L)."""
    share = people / people.sum(axis=1, keepdims=True)
    significant = np.stack([one.significant for one in measures], axis=1)
    # what nothing is significant of is read as the nearest time that has a majority (`cells`)
    known = (significant > 0) | (significant > MAJORITY).any(axis=0)
    rows = [_at_one_time(measures, levels, share[t], known[t], t) for t in range(len(share))]
    most = max(len(weights) for _, _, weights, _ in rows)
    numbers, level, weights, sides = (
        np.stack([_padded(row[k], most) for row in rows]) for k in range(4)
    )
    known_share = (share * significant).sum(axis=1)
    return CrossedMeasure(numbers, level, weights, sides, known_share)


def _at_one_time(
    measures: list[GridMeasure], levels: Ints, share: Floats, known: Mask, t: int
) -> tuple[Floats, Ints, Floats, Floats]:
    """Centres (J, p), levels (J, c), weights and sides (J,) of one time."""
    everybody = np.flatnonzero(known & (share > 0))
    parts = []
    for k in np.flatnonzero(share > 0):
        own = [k] if known[k] or len(everybody) == 0 else everybody
        for j in own:
            cells = measures[j].weights[t] > 0
            part = share[k] * (share[j] / share[own].sum())
            weights = part * measures[j].weights[t, cells]
            level = np.tile(levels[k], (len(weights), 1))
            side = np.full(len(weights), measures[j].sides[t])
            parts.append((measures[j].centres[t, cells], level, weights, side))
    numbers, level, weights, sides = map(np.concatenate, zip(*parts, strict=True))
    return numbers, level, weights / weights.sum(), sides


def _padded(values: NDArray[Any], length: int) -> NDArray[Any]:
    widths = [(0, length - len(values))] + [(0, 0)] * (values.ndim - 1)
    return np.pad(values, widths)


def nowhere(times: int) -> GridMeasure:
    """The one cell of a table without numbers."""
    one = np.ones(times)
    return GridMeasure(np.zeros((times, 1, 0)), one[:, None], one, one)
