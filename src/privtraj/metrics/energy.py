"""Energy distance: a distance between large sets that needs no transport."""

from __future__ import annotations

from typing import Any

import numpy as np

from privtraj.arrays import Floats
from privtraj.metrics.clouds import ENTRIES, pair
from privtraj.metrics.registry import MOST, cloud_metric


@cloud_metric("energy", "energy distance", place=50, most=2 * MOST)
def energy_distance(a: Any, b: Any) -> float:
    """D(a, b) = (2 E|x - y| - E|x - x'| - E|y - y'|)^(1/2) of clouds (n, d) and (k, d).

    x, x' are independent draws from a, y, y' from b, a point's distance to itself included. Its
    unit is the square root of the data's; 0 for equal clouds only, lower is better. Time is
    (n + k)^2, memory bounded.
    """
    x, y = pair(a, b)
    square = 2 * _mean_distance(x, y) - _mean_distance(x, x) - _mean_distance(y, y)
    return float(np.sqrt(max(square, 0.0)))


def _mean_distance(x: Floats, y: Floats) -> float:
    from scipy.spatial.distance import cdist

    rows = max(1, ENTRIES // len(y))
    sums = [cdist(x[i : i + rows], y).sum() for i in range(0, len(x), rows)]
    return float(np.sum(sums) / (len(x) * len(y)))
