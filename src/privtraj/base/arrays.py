"""Arrays that pass between modules, and weighted clouds of points: how wide they are, their order,
and clouds of equal weight with as little chance as possible."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

WIDE = {"xla_cpu_prefer_vector_width": 512}
"""Options for what XLA compiles: with all of a CPU's lanes, exponentials take half as long."""


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The array, which nobody can change from now on."""
    array.setflags(write=False)
    return array


def plain_json(value: Any) -> Any:
    """The value in JSON's own types: arrays and numbers of numpy, and whatever has a `to_dict`."""

    def known(other: Any) -> Any:
        if isinstance(other, Mapping):
            return dict(other)
        plain = getattr(other, "to_dict", None) or getattr(other, "tolist", None)
        return str(other) if plain is None else plain()

    return json.loads(json.dumps(value, default=known))


LEAST_WEIGHT = 1e-12  # of a particle: potentials of lighter ones leave the range of float32


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


def equal_weight(
    particles: Floats, weights: Floats, count: int, rng: np.random.Generator | None = None
) -> Floats:
    """(T, count, d): each particle of (T, m, d) repeated in proportion to its weight (T, m)."""
    clouds = np.empty((len(particles), count, particles.shape[2]), particles.dtype)
    for t, share in enumerate(weights):
        clouds[t] = particles[t, systematic(share, count, rng)]
    return clouds


def along_z_curve(places: Ints) -> Ints:
    """Order (n,) of cells (n, d), whole numbers from 0, along a curve that keeps neighbours close.

    By the bits of all coordinates in turn (Morton's code), from the highest.
    """
    bits = np.arange(max(1, int(places.max(initial=0)).bit_length()))
    keys = (places.T[::-1] >> bits[:, None, None]) & 1  # of which the last decides first
    flat = keys.astype(np.uint8).reshape(len(bits) * places.shape[1], -1)
    return np.lexsort(np.packbits(flat, axis=0, bitorder="little"))


def along_main_axis(particles: Floats) -> Ints:
    """Order (T, m) of the particles (T, m, d) of each time along their cloud's main axis."""
    centred = particles - particles.mean(axis=1, keepdims=True)
    axes = np.linalg.eigh(centred.swapaxes(1, 2) @ centred)[1][..., -1:]
    return np.argsort((centred @ axes)[..., 0], axis=1)


def with_constant_shares(
    particles: Floats, weights: Floats, part: Ints
) -> tuple[Floats, Floats, Ints]:
    """Particles (K, m, d), weights (K, m) and parts (K, m) with the same share of a part at all
    times, for people who cannot leave it.

    The share is the mean over time. A part that has nobody at some time gets the particle of least
    weight, at the place of its heaviest one at the nearest time that has any.
    """
    part, particles, weights = part.copy(), particles.copy(), weights.copy()
    numbers = np.unique(part)
    if len(numbers) == 1:
        return particles, weights, part
    shares = np.stack([np.where(part == p, weights, 0.0).sum(axis=1) for p in numbers], axis=1)
    mean = shares.mean(axis=0)
    for p in numbers[mean > 0]:
        held = np.flatnonzero((part == p).any(axis=1))
        for k in np.setdiff1d(np.arange(len(part)), held):
            from_time = held[np.abs(held - k).argmin()]
            heaviest = np.where(part[from_time] == p, weights[from_time], -1.0).argmax()
            crowd = np.bincount(np.searchsorted(numbers, part[k]), minlength=len(numbers))
            spare = crowd[np.searchsorted(numbers, part[k])] > 1  # no part may lose its last one
            if not spare.any():
                continue
            lightest = np.where(spare, weights[k], np.inf).argmin()
            particles[k, lightest], part[k, lightest] = particles[from_time, heaviest], p
    for p, share in zip(numbers, mean, strict=True):
        mine = part == p
        held = np.where(mine, np.maximum(weights, LEAST_WEIGHT), 0.0)
        scale = share / np.maximum(held.sum(axis=1, keepdims=True), 1e-300)
        weights = np.where(mine, held * scale, weights)
    return particles, weights / weights.sum(axis=1, keepdims=True), part
