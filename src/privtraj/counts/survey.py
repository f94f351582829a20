"""How concentrated people are: one released number, from coarse noisy counts of all times together.

If a share p_j of the people of a time is in cell j of M equal cells, then people effectively occupy
    area = 1 / (M sum_j p_j^2)
of the box: 1 when they are spread evenly, 1/M when all are in one cell. From noisy counts c_j of
variance v the sum of n_j (n_j - 1) is estimated without bias by sum_j c_j^2 - M v - N; added up
over the times, as N^2 is, and lowered by DOUBT standard errors, because cells too small for people
who turn out to be spread out cost more than cells too large. People look wider in cells of side h
than they are: a group of width L looks about sqrt(L^2 + WIDENING h^2) wide in every direction,
which is undone.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privtraj.arrays import Floats
from privtraj.privacy.noise import laplace_variance

SIDES = {1: 32, 2: 16, 3: 5, 4: 4}  # cells per side of the survey, by the number of features
WIDENING = 0.8
DOUBT = 1.0


def occupied_area(
    counts: NDArray[np.int64], epsilon: float, people: Floats, dimensions: int
) -> float:
    """Share of the box, in (0, 1], from counts (T, M) noisy at epsilon of people (T,)."""
    times, cells = counts.shape
    variance = laplace_variance(epsilon)
    together = float((counts.astype(np.float64) ** 2).sum())
    together -= times * cells * variance + float(people.sum())
    error = math.sqrt(5 * times * cells * variance**2 + 4 * variance * max(together, 0.0))
    squares = float((people**2).sum())
    area = float(squares / np.clip(together - DOUBT * error, squares / cells, squares) / cells)
    widened, squared_side = area ** (2 / dimensions), cells ** (-2 / dimensions)
    width = max(widened - WIDENING * squared_side, (1 - WIDENING) * squared_side)
    return area if area == 1 else float(width ** (dimensions / 2))
