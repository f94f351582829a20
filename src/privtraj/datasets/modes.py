"""Three modes that part and meet again: the example of the paper."""

from __future__ import annotations

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError
from privtraj.datasets.times import When, unit_times

THREE_MODES_BOUNDS = ((-1.5, 1.5), (-1.5, 1.5))
THREE_MODES_VARIANCE = 0.005


def three_modes(
    n_per_time: int, times: When = 10, seed: int = 0, *, dimensions: int = 2, rotation_seed: int = 0
) -> tuple[Floats, Floats]:
    """Times (n,) and points (n, D), n = n_per_time T: independent people at each time u.

        upper (-cos pi u, sin pi u)    line (2u - 1, 0)    lower (-cos pi u, -sin pi u)

    One third of the people are on each mode, with N(0, .005 I) noise. times: T times spread over
    [0, 1], or the times themselves. dimensions: D > 2 places the plane in R^D by a random
    orthonormal map, which depends on `rotation_seed` alone, and the noise fills all D dimensions;
    every coordinate has the bounds (-1.5, 1.5) in any D.
    """
    u = unit_times(times)
    # Shifting the modes by one at each time spreads the remainder of n_per_time / 3.
    modes = (np.arange(n_per_time)[None, :] + np.arange(len(u))[:, None]) % 3
    centres = three_modes_centres(u)[np.arange(len(u))[:, None], modes]
    points = _noisy(centres, seed, dimensions, rotation_seed)
    return np.repeat(u, n_per_time), points.reshape(-1, dimensions)


def three_modes_paths(
    n: int, times: When = 10, seed: int = 0, *, dimensions: int = 2, rotation_seed: int = 0
) -> Floats:
    """Paths (n, T, D) of the people of `three_modes`: each stays on its mode, with fresh noise."""
    centres = three_modes_centres(unit_times(times))[:, np.arange(n) % 3].swapaxes(0, 1)
    return _noisy(centres, seed, dimensions, rotation_seed)


def three_modes_centres(u: Floats) -> Floats:
    """Centres (T, 3, 2) of the three modes."""
    x, y, zero = -np.cos(np.pi * u), np.sin(np.pi * u), np.zeros_like(u)
    return np.stack([[x, y], [2 * u - 1, zero], [x, -y]]).transpose(2, 0, 1)


def _noisy(centres: Floats, seed: int, dimensions: int, rotation_seed: int) -> Floats:
    """Centres (..., 2) mapped to R^D, plus noise."""
    placed = centres @ _frame(dimensions, rotation_seed)
    noise = np.random.default_rng(seed).standard_normal(placed.shape)
    return placed + np.sqrt(THREE_MODES_VARIANCE) * noise


def _frame(dimensions: int, seed: int) -> Floats:
    """Two orthonormal rows (2, D); the identity when D = 2."""
    if dimensions < 2:
        raise InputError(f"dimensions is {dimensions}: the three modes need at least two")
    if dimensions == 2:
        return np.eye(2)
    columns, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((dimensions, 2)))
    return columns.T
