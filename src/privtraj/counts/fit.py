"""A fit by counts: one private histogram per time, and inference from it at no further cost.

    measure   noisy counts of the cells of every time (`guard.counts`): all that is paid for
    average   counts over time, as far as people stay (`time_average`)
    infer     the cells that noise would hardly have produced (`cells`)
    couple    masses that agree with the counts and travel little between times (`pooling`)

Particles then fill the cells, with their masses.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privtraj.arrays import Floats
from privtraj.counts.cells import GridMeasure, estimate, placed
from privtraj.counts.pooling import pooled_over_time
from privtraj.counts.settings import CountsSettings
from privtraj.domain.domain import Plot
from privtraj.head_count import steadied_counts
from privtraj.marginals import Marginals, Progress
from privtraj.privacy.guard import Guard
from privtraj.privacy.noise import laplace_variance

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
    counts = guard.counts(side, epsilon, CELLS)
    inside = None if plot is None else plot.cells(side, guard.n_features)
    held = counts if inside is None else counts[:, inside.ravel()]
    total, variance = _combined(people, held, settings)
    together = gaps if settings.time_coupling > 0 else None
    measure = estimate(counts, side, epsilon, total, guard.n_features, together, inside)
    effective = _effective_people(float(total.mean()), measure, epsilon)
    measure = pooled_over_time(measure, gaps, effective, settings.time_coupling, reach)
    return Marginals(
        *placed(measure, settings.particles, rng, settings.bandwidth, plot),
        resolution=measure.sides / math.sqrt(12),
        diagnostics={
            "significant_share": measure.significant.tolist(),
            "cell_side": measure.sides.tolist(),
            "people_counted": total.tolist(),
            "people_noise": math.sqrt(variance),
        },
    )


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
