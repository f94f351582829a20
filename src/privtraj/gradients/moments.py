"""Moments of the people of each time from private gradients: one noisy release per step."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from privtraj.arrays import Floats
from privtraj.gradients.constants import CLIP_QUANTILE
from privtraj.gradients.likelihood import (
    Mixture,
    Moments,
    mass_weight,
    moments,
    typical_norm,
    weights_and_residual,
)
from privtraj.privacy.sums import KernelSum

STEP = "clipped sums of a step"


class PrivateGradients:
    """Moments from noisy clipped sums over people: one release per step, paid for in the ledger.

    kernel_sums: the guard's.  people: (T,) whose sums these are, public or released.
    noise_multiplier: z of every step.  The clip c is the CLIP_QUANTILE of the vectors of people
    whom the released mixture would itself produce.
    """

    def __init__(
        self,
        kernel_sums: Callable[..., Floats],
        people: Floats,
        noise_multiplier: float,
        rng: np.random.Generator,
    ) -> None:
        self._kernel_sums = kernel_sums
        self._people = np.asarray(people, dtype=np.float64)
        self._noise_multiplier = noise_multiplier
        self._rng = rng

    def __call__(self, mixture: Mixture) -> tuple[Moments, jax.Array]:
        clip = typical_norm(mixture, self._rng, CLIP_QUANTILE)
        kernel = KernelSum(mixture.particles, mass_weight(mixture), mixture)
        sums = self._kernel_sums(weights_and_residual, kernel, clip, self._noise_multiplier, STEP)
        m = mixture.particles.shape[1]
        noise = jnp.asarray((m * clip * self._noise_multiplier / self._people).astype(np.float32))
        return moments(np.float32(sums), np.float32(self._people), mixture), noise
