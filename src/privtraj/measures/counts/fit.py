"""A fit by counts: one private histogram per time, and inference from it at no further cost.

    measure   noisy counts of the cells of every time (`CellCounts`): all that is paid for
    average   counts over time, as far as people stay (`time_average`)
    infer     the cells that noise would hardly have produced (`cells`)
    couple    masses that agree with the counts and travel little between times (`pooling`)

Particles then fill the cells, with their masses. Cells are crossed with the levels of categories,
where there are such, and every combination of levels is read by itself (`crossed`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats
from privtraj.columns.axes import Axes
from privtraj.domain.domain import Plot
from privtraj.measures.counts.cells import GridMeasure, estimate
from privtraj.measures.counts.crossed import (
    CrossedMeasure,
    by_combination,
    crossed,
    held_cells,
    nowhere,
    people_of,
)
from privtraj.measures.counts.placing import filled, placed
from privtraj.measures.counts.pooling import pooled_over_time
from privtraj.measures.counts.settings import CountsSettings
from privtraj.measures.counts.smoothing import bandwidths, smoothed
from privtraj.measures.counts.survey import cells_inside
from privtraj.measures.head_count import steadied_counts
from privtraj.measures.marginals import Marginals, Progress
from privtraj.privacy.guard import Guard
from privtraj.privacy.noise import laplace_variance
from privtraj.privacy.questions import CellCounts, Laplace, Release

CELLS = "people per cell"


def fit_counts(
    guard: Guard,
    people: Floats,
    settings: CountsSettings,
    rng: np.random.Generator,
    gaps: Floats,
    progress: Progress | None = None,
    plot: Plot | None = None,
    reach: float = math.inf,
) -> Marginals:
    """Marginals of people (T,), public or released, at times `gaps` (T - 1,) apart.

    plot: the public domain; cells outside it are counted, paid for, and left out.
    reach: of transport between times, in shares of the box, where people come and go.
    """
    side, epsilon = settings.cells_per_side, settings.epsilon
    counts = guard.ask(Release(CellCounts(guard.axes.sides(side)), Laplace(epsilon), CELLS))
    if guard.axes.mixed:
        return _fit_crossed(counts, guard.axes, people, settings, rng, gaps, plot, reach)
    inside = None if plot is None else plot.cells(side, guard.n_features)
    held = counts if inside is None else counts[:, inside.ravel()]
    total, variance = _combined(people, held, settings)
    together = gaps if settings.time_coupling > 0 else None
    measure = estimate(counts, side, epsilon, total, guard.n_features, together, inside)
    effective = _effective_people(float(total.mean()), measure, epsilon)
    measure = pooled_over_time(measure, gaps, effective, settings.time_coupling, reach)
    own, added = _bandwidths([measure], total[:, None], settings)
    at = None if plot is None else lambda per_side: plot.cells(per_side, guard.n_features)
    fine = smoothed(measure, own, at)
    return Marginals(
        *placed(fine, settings.particles, rng, plot),
        bandwidth=added,
        resolution=measure.sides / math.sqrt(12),
        diagnostics={
            "significant_share": measure.significant.tolist(),
            "cell_side": measure.sides.tolist(),
            "people_per_time": total.tolist(),
            "people_noise": math.sqrt(variance),
        },
    )


def _fit_crossed(
    counts: NDArray[np.int64],
    axes: Axes,
    people: Floats,
    settings: CountsSettings,
    rng: np.random.Generator,
    gaps: Floats,
    plot: Plot | None,
    reach: float,
) -> Marginals:
    """Marginals from noisy counts (T, cells) of cells crossed with levels."""
    side, epsilon = settings.cells_per_side, settings.epsilon
    together = gaps if settings.time_coupling > 0 else None
    tables, levels = by_combination(counts, axes, side)
    inside = None if plot is None else cells_inside(plot, side, axes)
    held = tables if inside is None else tables[:, :, inside.ravel()]
    total, variance = _combined(people, np.hstack(list(held)), settings)
    in_domain = True if inside is None else inside.ravel()
    cells = held_cells(tables * in_domain, side, epsilon) & in_domain
    noise = np.count_nonzero(cells) * laplace_variance(epsilon)
    own = people_of(tables[:, :, cells].sum(axis=2).T * 1.0, noise, total, together)
    some = np.flatnonzero(own.any(axis=0))
    measures = []
    for k in some:
        if axes.n_numbers == 0:
            measures.append(nowhere(len(total)))
            continue
        mine = np.maximum(own[:, k], 1.0)
        one = estimate(tables[k], side, epsilon, mine, axes.n_numbers, together, inside)
        effective = _effective_people(float(mine.mean()), one, epsilon)
        measures.append(pooled_over_time(one, gaps, effective, settings.time_coupling, reach))
    coarse = crossed(measures, levels[some], own[:, some])
    width = (coarse.weights * coarse.sides).sum(axis=1)
    taken, added = _bandwidths(measures, own[:, some], settings)
    if axes.n_numbers:
        at = None if plot is None else lambda per_side: cells_inside(plot, per_side, axes)
        measures = [smoothed(one, taken, at) for one in measures]
    measure = crossed(measures, levels[some], own[:, some])
    return Marginals(
        *_placed_crossed(measure, axes, settings, rng, plot),
        bandwidth=added,
        resolution=width / math.sqrt(12),
        diagnostics={
            "significant_share": measure.significant.tolist(),
            "cell_side": width.tolist(),
            "people_per_time": total.tolist(),
            "people_noise": math.sqrt(variance),
        },
    )


def _bandwidths(
    measures: list[GridMeasure], people: Floats, settings: CountsSettings
) -> tuple[Floats, Floats]:
    """(T,) of the smooth density that particles leave to the model's noise, and of that noise.

    A bandwidth that is set by hand is added to particles that have all of the density.
    """
    released = settings.released or settings.particles
    if settings.bandwidth is None:
        chosen = bandwidths(measures, people, released)
        return chosen, chosen
    return np.zeros(len(people)), np.full(len(people), settings.bandwidth)


def _placed_crossed(
    measure: CrossedMeasure,
    axes: Axes,
    settings: CountsSettings,
    rng: np.random.Generator,
    plot: Plot | None,
) -> tuple[Floats, Floats]:
    """Particles (T, m, d) and weights (T, m), as `placed` has them."""
    clouds, shares = [], []
    cells = zip(measure.numbers, measure.weights, measure.sides, strict=True)
    for t, (centres, weights, sides) in enumerate(cells):
        put = filled(centres, weights, sides, settings.particles, rng)
        cloud = measure.points(t, put.places, put.cell, axes)
        if plot is not None:
            middle = measure.points(t, centres[put.cell], put.cell, axes)
            for side in np.unique(sides[put.cell]):
                mine = sides[put.cell] == side
                cloud[mine] = plot.settled(cloud[mine], middle[mine], float(side), rng)
        clouds.append(cloud)
        shares.append(put.weights)
    return np.stack(clouds), np.stack(shares)


def _combined(
    people: Floats, counts: NDArray[np.int64], settings: CountsSettings
) -> tuple[Floats, float]:
    """People per time (T,): the head count and the sum of all cells, weighted by their noise, and
    the variance that is left."""
    if settings.head_epsilon is None:
        return people, 0.0
    in_cells = counts.shape[1] * laplace_variance(settings.epsilon)
    in_head = laplace_variance(settings.head_epsilon)
    summed = steadied_counts(counts.sum(axis=1).astype(np.float64), in_cells)
    both = in_cells + in_head
    return (people * in_cells + summed * in_head) / both, in_cells * in_head / both


def _effective_people(people: float, measure: GridMeasure, epsilon: float) -> float:
    """People whose shares chance alone would make as uncertain: N / (1 + cells variance / N)."""
    held = float(np.count_nonzero(measure.weights, axis=1).mean())
    return people / (1 + held * laplace_variance(epsilon) / people)
