"""The two ways to pay for moments: private gradients step by step, or private counts once."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from privtraj.dynamics.histogram import Measure
from privtraj.dynamics.likelihood import Mixture, Moments, moments, person_vectors, typical_norm
from privtraj.privacy.guard import Guard

CLIP_QUANTILE = 0.9
CELL_CHUNK = 256


class PrivateGradients:
    """Moments from noisy clipped sums over people: one release per step, paid for in the ledger.

    people: (T,) public or released. noise_multiplier: z of every step. The clip c is the 0.9-quantile
    of the vectors of people whom the released mixture would itself produce.
    """

    def __init__(
        self,
        guard: Guard,
        people: NDArray[np.float64],
        noise_multiplier: float,
        key: jax.Array,
    ) -> None:
        self._guard = guard
        self._people = np.asarray(people, dtype=np.float64)
        self._noise_multiplier = noise_multiplier
        self._key = key

    def __call__(self, mixture: Mixture, step: int) -> tuple[Moments, jax.Array]:
        key = jax.random.fold_in(self._key, step)
        clip = np.asarray(_typical_norm(mixture, key), dtype=np.float64)
        sums = self._guard.sums(
            person_vectors, mixture, clip, self._noise_multiplier, "clipped sums of a step"
        )
        m = mixture.particles.shape[1]
        noise = m * clip * self._noise_multiplier / self._people
        return (
            moments(
                jnp.asarray(sums, jnp.float32), jnp.asarray(self._people, jnp.float32), mixture
            ),
            jnp.asarray(noise, jnp.float32),
        )


class HistogramMoments:
    """Moments of a released measure that stands in for the people: exact, free, any number of times."""

    def __init__(self, measure: Measure) -> None:
        times, cells, dimensions = measure.centres.shape
        pad = -cells % CELL_CHUNK
        centres = np.pad(measure.centres, ((0, 0), (0, pad), (0, 0)))
        weights = np.pad(measure.weights, ((0, 0), (0, pad)))
        self._centres = jnp.asarray(centres, jnp.float32).reshape(times, -1, CELL_CHUNK, dimensions)
        self._weights = jnp.asarray(weights, jnp.float32).reshape(times, -1, CELL_CHUNK)

    def __call__(self, mixture: Mixture, step: int) -> tuple[Moments, jax.Array]:
        return _weighted_moments(self._centres, self._weights, mixture)


_typical_norm = jax.jit(partial(typical_norm, quantile=CLIP_QUANTILE))


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
    times = centres.shape[0]
    return moments(sums, jnp.ones(times), mixture), jnp.zeros(times)
