"""Noisy tables without the part that noise alone would show.

A table of two columns is that of independent ones plus a matrix of low rank: one direction for a
correlation, one for each way in which groups differ. Noise of deviation s in each cell has singular
values up to s (sqrt(a) + sqrt(b)) in a matrix (a, b), so those below say nothing, and those above
are too large by a known amount. With y = value / (s sqrt(a)) and beta = b / a <= 1,
    y  becomes  sqrt( (y^2 - beta - 1)^2 - 4 beta ) / y,     0 below y = 1 + sqrt(beta),
has the least squared error of all such rules (Gavish and Donoho, "Optimal shrinkage of singular
values", 2017). Nothing is set by hand.
"""

from __future__ import annotations

import math

import numpy as np

from privtraj.arrays import Floats


def denoised(table: Floats, expected: Floats, deviation: float) -> Floats:
    """expected + what of table - expected, (a, b) each, stands out from noise."""
    left, values, right = np.linalg.svd(table - expected, full_matrices=False)
    short, long = sorted(table.shape)
    unit, beta = deviation * math.sqrt(long), short / long
    y = np.maximum(values / unit, 1e-12)
    inside = np.maximum((y**2 - beta - 1) ** 2 - 4 * beta, 0.0)
    kept = np.where(y > 1 + math.sqrt(beta), np.sqrt(inside) / y, 0.0) * unit
    clean: Floats = expected + (left * kept) @ right
    return clean
