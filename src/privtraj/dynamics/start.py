"""Where the particles begin: in the middle of the box, or on a released histogram."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from privtraj.dynamics.histogram import Measure
from privtraj.dynamics.langevin import State
from privtraj.dynamics.likelihood import Mixture
from privtraj.resample import systematic
from privtraj.transport import sinkhorn

CLUSTER = 0.1
CELL_BANDWIDTH = 0.4


def middle(times: int, m: int, dimensions: int, rng: np.random.Generator) -> State:
    """A small cluster in the middle of the unit cube, bandwidth half its width.

    The first step carries it to the people's mean, the annealing splits it as clusters split: no
    particle starts where nobody is, so none is left behind.
    """
    offsets = CLUSTER * (rng.uniform(size=(times, m, dimensions)) - 0.5)
    return _state(0.5 + offsets, np.full(times, 0.5), rng)


def on_histogram(measure: Measure, m: int, rng: np.random.Generator) -> State:
    """A systematic sample of the cells, spread inside each; bandwidth of the order of the cell.

    Cell side h: uniform in a cell has variance h^2 / 12. Half of it is in the particles' places and
    half is left to the observation noise of standard deviation 0.4 h that released people get, so
    that together they are about as wide as what was counted.
    """
    clouds = []
    for places, weights, side in zip(measure.centres, measure.weights, measure.sides, strict=True):
        index = systematic(weights, m, rng)
        inside = rng.uniform(-0.5, 0.5, size=(m, places.shape[1]))
        clouds.append(places[index] + side * inside)
    return _state(np.clip(np.stack(clouds), 0, 1), CELL_BANDWIDTH * measure.sides, rng)


def _state(particles: np.ndarray, bandwidth: np.ndarray, rng: np.random.Generator) -> State:
    times, m, _ = particles.shape
    mixture = Mixture(
        jnp.asarray(particles, jnp.float32),
        jnp.zeros((times, m), jnp.float32),
        jnp.asarray(bandwidth, jnp.float32),
    )
    key = jax.random.key(int(rng.integers(2**63)))
    mass = jnp.ones((times, m), jnp.float32)
    return State(mixture, mass, sinkhorn.cold(3 * (times - 1), m), key)
