"""The two ways to pay for moments: private gradients step by step, or private counts once."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from privtraj.counts.cells import GridMeasure
from privtraj.gradients.likelihood import (
    Mixture,
    Moments,
    mass_weight,
    moments,
    person_vectors,
    typical_norm,
    weights_and_residual,
)
from privtraj.privacy.guard import Guard
from privtraj.privacy.sums import KernelSum

STEP = "clipped sums of a step"
CLIP_QUANTILE = 0.97
CELL_CHUNK = 256


class PrivateGradients:
    """Moments from noisy clipped sums over people: one release per step, paid for in the ledger.

    people: (T,) public or released. noise_multiplier: z of every step. rate: share of the people
    who take part in a step, by coins of their own; sums are divided by rate * people, never by how
    many did. The clip c is the 0.97-quantile of the vectors of people whom the released mixture
    would itself produce.
    """

    def __init__(
        self,
        guard: Guard,
        people: NDArray[np.float64],
        noise_multiplier: float,
        rng: np.random.Generator,
        rate: float = 1.0,
    ) -> None:
        self._guard = guard
        self._people = rate * np.asarray(people, dtype=np.float64)
        self._noise_multiplier = noise_multiplier
        self._rng = rng

    def __call__(self, mixture: Mixture) -> tuple[Moments, jax.Array]:
        clip = typical_norm(mixture, self._rng, CLIP_QUANTILE)
        pull = KernelSum(mixture.particles, mass_weight(mixture), mixture)
        sums = self._guard.kernel_sums(
            weights_and_residual, pull, clip, self._noise_multiplier, STEP
        )
        m = mixture.particles.shape[1]
        noise = jnp.asarray((m * clip * self._noise_multiplier / self._people).astype(np.float32))
        return moments(np.float32(sums), np.float32(self._people), mixture), noise


class HistogramMoments:
    """Moments of a released measure that stands in for the people: free, as often as wanted."""

    def __init__(self, measure: GridMeasure) -> None:
        times, cells, dimensions = measure.centres.shape
        pad = -cells % CELL_CHUNK
        centres = np.pad(measure.centres, ((0, 0), (0, pad), (0, 0)))
        weights = np.pad(measure.weights, ((0, 0), (0, pad)))
        self._centres = np.float32(centres).reshape(times, -1, CELL_CHUNK, dimensions)
        self._weights = np.float32(weights).reshape(times, -1, CELL_CHUNK)

    def __call__(self, mixture: Mixture) -> tuple[Moments, jax.Array]:
        return _weighted_moments(self._centres, self._weights, mixture)


@jax.jit
def _weighted_moments(
    centres: jax.Array, weights: jax.Array, mixture: Mixture
) -> tuple[Moments, jax.Array]:
    """Moments of weighted points: centres (T, n, CELL_CHUNK, d), weights (T, n, CELL_CHUNK)."""

    def one(centres: jax.Array, weights: jax.Array, mixture: Mixture) -> jax.Array:
        sums = jax.lax.map(
            lambda chunk: chunk[1] @ person_vectors(chunk[0], mixture), (centres, weights)
        )
        return sums.sum(axis=0)

    sums = jax.lax.map(lambda args: one(*args), (centres, weights, mixture))
    ones = jnp.ones(len(centres), jnp.float32)
    return moments(sums, ones, mixture), jnp.zeros_like(ones)
