"""Weighted clouds: how wide they are, and equal-weight ones with as little chance as possible."""

from __future__ import annotations

import numpy as np

from privtraj.arrays import Floats, Ints


def total_variance(points: Floats, weights: Floats) -> float:
    """Trace of the covariance of points (n, d) with weights (n,) that sum to 1."""
    centre = weights @ points
    return float(weights @ ((points - centre) ** 2).sum(axis=1))


def systematic(weights: Floats, count: int, rng: np.random.Generator | None = None) -> Ints:
    """`count` indices, index k drawn count * weights[k] times up to one; weights (n,), any scale.

    Without a generator the offset of the grid is 1/2 and the answer always the same.
    """
    edges = np.cumsum(weights / np.sum(weights))
    offset = 0.5 if rng is None else rng.uniform()
    grid = (np.arange(count) + offset) / count
    return np.minimum(np.searchsorted(edges, grid, side="right"), len(weights) - 1)


def equal_weight(particles: Floats, weights: Floats, count: int) -> Floats:
    """(T, count, d): each particle of (T, m, d) repeated in proportion to its weight (T, m)."""
    clouds = zip(particles, weights, strict=True)
    return np.stack([cloud[systematic(share, count)] for cloud, share in clouds])


def along_z_curve(places: Ints) -> Ints:
    """Order (n,) of cells (n, d), whole numbers from 0, along a curve that keeps neighbours close.

    By the bits of all coordinates in turn (Morton's code), from the highest.
    """
    bits = range(int(places.max(initial=0)).bit_length())[::-1]
    keys = [(places[:, axis] >> bit) & 1 for bit in bits for axis in range(places.shape[1])]
    return np.lexsort(keys[::-1]) if keys else np.arange(len(places))


def along_main_axis(particles: Floats) -> Ints:
    """Order (T, m) of the particles (T, m, d) of each time along their cloud's main axis."""
    centred = particles - particles.mean(axis=1, keepdims=True)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:, 0]
    return np.argsort(np.einsum("tmd,td->tm", centred, axes), axis=1)
