"""Our dynamics without noise, on records or on a private sample that stands in for them.

The same start in the middle of the box, the same annealing and the same coupling of times as in a
fit by private gradients; the moments are exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError, check_whole
from privtraj.baselines.base import Baseline, Release
from privtraj.baselines.counted import Counted, PrivateMeasure, ThresholdedHistogram
from privtraj.baselines.unguarded import unguarded
from privtraj.data.snapshots import Snapshots
from privtraj.measures.langevin import TIME_COUPLING, Fixed, gradient_schedule, middle, run
from privtraj.measures.likelihood import Mixture, Moments, moments, person_vectors
from privtraj.measures.pooling import GridMeasure
from privtraj.privacy.certificate import Certificate
from privtraj.privacy.events import Opaque
from privtraj.privacy.guard import Guard
from privtraj.privacy.ledger import Ledger
from privtraj.recipe import MOST_PARTICLES

CELL_CHUNK = 256  # points whose vectors are held at a time
NOTHING_PROMISED = (1e6, math.nextafter(1.0, 0.0))
NO_NOISE = "none: NOT PRIVATE, the records were used as they are"

_MEASURES = {"histogram": ThresholdedHistogram, "hierarchy": PrivateMeasure}


@dataclass(kw_only=True)
class NonPrivate(Baseline):
    """Mean-field Langevin dynamics on the records as they are. NOT PRIVATE.

    What our method would do if privacy cost nothing. The records do not go through the guard, and
    the certificate promises nothing: epsilon 10^6 at a delta of 1 - 2^-53, `private` False; such a
    model is saved only with not_private=True. epsilon and delta are accepted, because all baselines
    are called alike, and ignored.
    """

    particles: int = 256
    steps: int = 60

    def _release(self, snapshots: Snapshots, guard: Guard, rng: np.random.Generator) -> Release:
        everything = Opaque(*NOTHING_PROMISED, "all records, as they are", self.adjacency)
        guard.ledger.spend(everything)
        return inferred(unguarded(snapshots), snapshots.gaps, self.particles, self.steps, rng)

    def _ledger(self) -> Ledger:
        return Ledger(*NOTHING_PROMISED, self.adjacency)

    def _certificate(self, exact: Certificate) -> Certificate:
        return replace(exact, private=False, noise=NO_NOISE)

    def check(self) -> None:
        super().check()
        check_inference(self.particles, self.steps)


@dataclass(kw_only=True)
class MeasureThenInference(Counted):
    """A private measure, then ordinary inference that takes its sample for data.

    Mechanism, sensitivity and cost are those of `measure`: "histogram" (`ThresholdedHistogram`) or
    "hierarchy" (`PrivateMeasure`), with these cells. Its `points` points per time are then the
    people of the same dynamics as in `NonPrivate`: post-processing, which costs nothing.
    """

    measure: Literal["histogram", "hierarchy"] = "histogram"
    particles: int = 256
    steps: int = 60

    def _release(self, snapshots: Snapshots, guard: Guard, rng: np.random.Generator) -> Release:
        sample = self._measured()._release(snapshots, guard, rng).particles
        return inferred(list(sample), snapshots.gaps, self.particles, self.steps, rng)

    def _measured(self) -> Counted:
        kind = _MEASURES[self.measure]
        return kind(**{part.name: getattr(self, part.name) for part in fields(kind)})

    def _accounted(self, ledger: Ledger) -> Ledger:
        return self._measured()._accounted(ledger)

    def check(self) -> None:
        super().check()
        check_inference(self.particles, self.steps)
        if self.measure not in _MEASURES:
            raise InputError(f"measure must be 'histogram' or 'hierarchy', not '{self.measure}'")
        self._measured().check()


def inferred(
    clouds: Sequence[Floats], gaps: Floats, particles: int, steps: int, rng: np.random.Generator
) -> Release:
    """Mean-field Langevin dynamics on T clouds (n_i, d) of the unit cube, gaps (T - 1,) apart."""
    times, dimensions = len(clouds), clouds[0].shape[1]
    state, _ = run(
        middle(times, particles, dimensions, rng),
        HistogramMoments(_as_measure(clouds)),
        gradient_schedule(steps, TIME_COUPLING, dimensions),
        Fixed.between(gaps),
        rng,
    )
    mixture = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), state.mixture)
    mass = np.asarray(state.mass, np.float64)
    weights = mass / mass.sum(axis=1, keepdims=True)
    return Release(mixture.particles, mixture.bandwidth, mixture.bandwidth, weights)


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
        chunks = centres, weights
        return jax.lax.map(lambda c: c[1] @ person_vectors(c[0], mixture), chunks).sum(axis=0)

    sums = jax.lax.map(lambda args: one(*args), (centres, weights, mixture))
    ones = jnp.ones(len(centres), jnp.float32)
    return moments(sums, ones, mixture), jnp.zeros_like(ones)


def check_inference(particles: int, steps: int) -> None:
    """Refuse settings that the dynamics cannot use."""
    check_whole("particles", particles, 2, MOST_PARTICLES)
    check_whole("steps", steps, 2, 10_000)


def _as_measure(clouds: Sequence[Floats]) -> GridMeasure:
    """Equal weights on the points of each time; a time without any has one in the middle."""
    times, most = len(clouds), max(1, *(len(cloud) for cloud in clouds))
    centres = np.full((times, most, clouds[0].shape[1]), 0.5)
    weights = np.zeros((times, most))
    for i, cloud in enumerate(clouds):
        centres[i, : len(cloud)] = cloud
        weights[i, : max(len(cloud), 1)] = 1 / max(len(cloud), 1)
    return GridMeasure(centres, weights, np.zeros(times), np.ones(times))
