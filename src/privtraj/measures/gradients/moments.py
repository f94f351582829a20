"""Moments of the people of each time from private gradients: one noisy release per step."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from privtraj.base.arrays import Floats
from privtraj.columns.axes import Embedding
from privtraj.measures.gradients.constants import CLIP_QUANTILE
from privtraj.measures.gradients.likelihood import (
    Mixture,
    Moments,
    free_dimensions,
    mass_weight,
    moments,
    typical_norm,
    weights_and_residual,
)
from privtraj.privacy import questions
from privtraj.privacy.questions import Gaussian
from privtraj.privacy.sums import KernelSum, KernelSums

STEP = "clipped sums of a step"


class Release(NamedTuple):
    """What one step told about D = m d + m + 1 numbers at each of T times."""

    mixture: Mixture  # at which people were asked
    clip: Floats  # (T,)
    sums: Floats  # (T, D)
    noise: Floats  # (T,) standard deviation of each number over the people: clip z / N


class PrivateGradients:
    """Moments from noisy clipped sums over people: one release per step, paid for in the ledger.

    ask: the guard's door.  people: (T,) whose sums these are, public or released.
    noise_multiplier: z of every step.  The clip c is the CLIP_QUANTILE of the vectors of people
    whom the released mixture would itself produce.  embedding: of levels, where there are such.
    releases: all that were made so far.
    """

    def __init__(
        self,
        ask: Callable[[questions.Release], Floats],
        people: Floats,
        noise_multiplier: float,
        rng: np.random.Generator,
        embedding: Embedding | None = None,
    ) -> None:
        self._ask = ask
        self.people = np.asarray(people, dtype=np.float64)
        self._noise_multiplier = noise_multiplier
        self._rng = rng
        self._embedding = embedding
        self.releases: list[Release] = []

    def __call__(self, mixture: Mixture) -> tuple[Moments, jax.Array]:
        if self._embedding is not None:
            mixture = free_dimensions(mixture, self._embedding)
        clip = typical_norm(mixture, self._rng, CLIP_QUANTILE, embedding=self._embedding)
        kernel = KernelSum(mixture.particles, mass_weight(mixture), mixture)
        question = KernelSums(weights_and_residual, kernel, clip)
        sums = self._ask(questions.Release(question, Gaussian(self._noise_multiplier), STEP))
        noise = clip * self._noise_multiplier / self.people
        self.releases.append(Release(jax.tree.map(np.asarray, mixture), clip, sums, noise))
        drift_noise = jnp.asarray((mixture.particles.shape[1] * noise).astype(np.float32))
        return moments(np.float32(sums), np.float32(self.people), mixture), drift_noise
