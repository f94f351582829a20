"""How concentrated people are: one released number, from coarse noisy counts of all times together.

If a share p_j of the people of a time is in cell j of M equal cells, then people effectively occupy
    area = 1 / (M sum_j p_j^2)
of the box: 1 when they are spread evenly, 1/M when all are in one cell. From noisy counts c_j of
variance v the sum of n_j (n_j - 1) is estimated without bias by sum_j c_j^2 - M v - N; added up
over the times, as N^2 is, and lowered by STANDARD_ERRORS_BELOW of its standard errors, because
cells too small for people who turn out to be spread out cost more than cells too large. People look
wider in cells of side h than they are: a group of width L looks about sqrt(L^2 + WIDENING h^2) wide
in every direction, which is undone.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Mask
from privtraj.columns.axes import Axes
from privtraj.domain.domain import Plot
from privtraj.measures.counts.constants import (
    STANDARD_ERRORS_BELOW,
    SURVEY_SHARE,
    SURVEY_SIDES,
    SURVEY_SIDES_BEYOND,
    WIDENING,
)
from privtraj.measures.head_count import count_epsilon
from privtraj.privacy.guard import Guard
from privtraj.privacy.noise import EPSILON_RANGE, laplace_variance
from privtraj.privacy.questions import CellCounts, Laplace, Release

SURVEY = "how concentrated people are"


def surveyed_area(guard: Guard, people: Floats, plot: Plot | None = None) -> float:
    """Share of the box that people (T,) occupy, from counts that are released and paid for.

    The box is that of the numbers; levels of categories are counted together.
    plot: the public domain; cells outside it are left out.
    """
    epsilon = count_epsilon(guard, SURVEY_SHARE)
    features = guard.axes.n_numbers
    if epsilon == EPSILON_RANGE[0] or features == 0:  # too small a budget to look, or nothing to
        return 1.0
    side = survey_side(features)
    counts = guard.ask(Release(CellCounts(guard.axes.only_numbers(side)), Laplace(epsilon), SURVEY))
    cells = counts.shape[1]
    if plot is not None:
        counts = counts[:, cells_inside(plot, side, guard.axes).ravel()]
    return occupied_area(counts, epsilon, people, features, cells)


def cells_inside(plot: Plot, side: int, axes: Axes) -> Mask:
    """Which cells (side, ...) of the numbers hold any place of the domain."""
    inside = plot.cells(side, len(axes.levels))
    numbers: Mask = inside[tuple(slice(None) if number else 0 for number in axes.numbers)]
    return numbers


def survey_side(features: int) -> int:
    """Cells per side of the survey."""
    return SURVEY_SIDES.get(features, SURVEY_SIDES_BEYOND)


def occupied_area(
    counts: NDArray[np.int64],
    epsilon: float,
    people: Floats,
    dimensions: int,
    in_box: int | None = None,
) -> float:
    """Share of the box, in (0, 1], from counts (T, M) noisy at epsilon of people (T,).

    in_box: cells of the box, if the M that hold people are fewer.
    """
    times, cells = counts.shape
    in_box = in_box or cells
    variance = laplace_variance(epsilon)
    together = float((counts.astype(np.float64) ** 2).sum())
    together -= times * cells * variance + float(people.sum())
    error = math.sqrt(5 * times * cells * variance**2 + 4 * variance * max(together, 0.0))
    squares = float((people**2).sum())
    lower = np.clip(together - STANDARD_ERRORS_BELOW * error, squares / cells, squares)
    area = float(squares / lower / in_box)
    widened, squared_side = area ** (2 / dimensions), in_box ** (-2 / dimensions)
    width = max(widened - WIDENING * squared_side, (1 - WIDENING) * squared_side)
    return area if area == 1 else float(width ** (dimensions / 2))
