"""Noisy tables without the part that noise alone would show.

A table of two columns is that of independent ones plus a dependence, a matrix R with noise of
deviation s in each cell. Most of a dependence between numbers is linear: along the scores u, v of
their groups, unit vectors, it is one number u'Rv with noise s, however many cells there are. So R
is turned into the axes (u, rest) and (v, rest), where noise is as it was, and

    a vector of k numbers r   becomes  max(0, 1 - k s^2 / |r|^2) r     (James and Stein)
    the matrix of the rest    keeps the singular values above s (sqrt(a) + sqrt(b)), the largest
                              that noise shows, less a known amount (Gavish and Donoho, "Optimal
                              shrinkage of singular values", 2017).

Categories have no scores, and their axes are all rest. Counts of a number by itself are smooth but
for jumps: of their Haar coefficients those above s sqrt(2 log n) are kept, for every shift of the
cells, and the mean over the shifts is taken (Coifman and Donoho, "Translation-invariant
de-noising", 1995). Without it the noise of many empty cells puts people far out, who widen every
number and hide how two of them go together. Nothing is set by hand.
"""

from __future__ import annotations

import math

import numpy as np

from privtraj.base.arrays import Floats


def denoised(
    table: Floats,
    expected: Floats,
    deviation: float,
    rows: Floats | None = None,
    columns: Floats | None = None,
) -> Floats:
    """expected + what of table - expected, (a, b) each, stands out from noise.

    rows, columns: scores (a,), (b,) of their groups; None for categories.
    """
    left, right = _axes(rows, len(table)), _axes(columns, table.shape[1])
    turned = left.T @ (table - expected) @ right
    first, second = int(rows is not None), int(columns is not None)
    turned[:first, :second] = _shrunk(turned[:first, :second], deviation)
    turned[:first, second:] = _shrunk(turned[:first, second:], deviation)
    turned[first:, :second] = _shrunk(turned[first:, :second], deviation)
    turned[first:, second:] = _thinned(turned[first:, second:], deviation)
    clean: Floats = expected + left @ turned @ right.T
    return clean


def smoothed(counts: Floats, deviation: float) -> Floats:
    """Counts (n,) of neighbouring cells, n a power of two, without noise; nobody is beyond them."""
    size = len(counts)
    padded = np.concatenate([np.zeros(size), counts, np.zeros(size)])
    total = np.zeros_like(padded)
    for shift in range(size):
        blocks = np.roll(padded, shift).reshape(3, size)
        total += np.roll(_thresholded(blocks, deviation).ravel(), -shift)
    mean: Floats = total[size:-size] / size
    return mean


def _thresholded(blocks: Floats, deviation: float) -> Floats:
    """Blocks (k, n) of n cells each, of whose Haar coefficients only those above noise are left."""
    means, kept = blocks, []
    least = deviation * math.sqrt(2 * math.log(max(blocks.shape[1], 2)))
    while means.shape[1] > 1:
        even, odd = means[:, ::2], means[:, 1::2]
        differences = (even - odd) / math.sqrt(2)
        kept.append(np.where(np.abs(differences) > least, differences, 0.0))
        means = (even + odd) / math.sqrt(2)
    for differences in reversed(kept):
        pairs = np.stack([means + differences, means - differences], axis=2) / math.sqrt(2)
        means = pairs.reshape(len(means), -1)
    return means


def _axes(scores: Floats | None, size: int) -> Floats:
    """(size, size) orthonormal axes, the first along the scores."""
    if scores is None or size == 1:
        return np.eye(size)
    centred = scores - scores.mean()
    if not centred.any():
        return np.eye(size)
    axes, _ = np.linalg.qr(np.column_stack([centred, np.eye(size)[:, : size - 1]]))
    return axes


def _shrunk(values: Floats, deviation: float) -> Floats:
    """All of them nearer to 0, by what noise adds to their squares."""
    squares = float((values**2).sum())
    noise = values.size * deviation**2
    return values * max(0.0, 1 - noise / squares) if squares > 0 else values


def _thinned(matrix: Floats, deviation: float) -> Floats:
    """With y = value / (s sqrt(a)) and beta = b / a <= 1 singular values become
    s sqrt(a) sqrt((y^2 - beta - 1)^2 - 4 beta) / y, 0 below y = 1 + sqrt(beta)."""
    if 0 in matrix.shape:
        return matrix
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    short, long = sorted(matrix.shape)
    unit, beta = deviation * math.sqrt(long), short / long
    y = np.maximum(values / max(unit, 1e-300), 1e-12)
    inside = np.maximum((y**2 - beta - 1) ** 2 - 4 * beta, 0.0)
    kept = np.where(y > 1 + math.sqrt(beta), np.sqrt(inside) / y, 0.0) * unit
    return (left * kept) @ right
