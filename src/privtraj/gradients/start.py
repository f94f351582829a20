"""Where the particles begin: in the middle of the box, or where they are put."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from privtraj.arrays import Floats
from privtraj.gradients.constants import CLUSTER_WIDTH, LARGEST_BANDWIDTH
from privtraj.gradients.langevin import State
from privtraj.gradients.likelihood import Mixture
from privtraj.transport import sinkhorn


def middle(times: int, m: int, dimensions: int, rng: np.random.Generator) -> State:
    """A small cluster in the middle of the unit cube, bandwidth half its width.

    The first step carries it to the people's mean, the annealing splits it as clusters split: no
    particle starts where nobody is, so none is left behind.
    """
    offsets = CLUSTER_WIDTH * (rng.uniform(size=(times, m, dimensions)) - 0.5)
    return _state(0.5 + offsets, np.full(times, LARGEST_BANDWIDTH))


def at(particles: Floats, bandwidth: float) -> State:
    """Given particles (T, m, d) in the unit cube, at one bandwidth for all times."""
    return _state(particles, np.full(len(particles), bandwidth))


def _state(particles: Floats, bandwidth: Floats) -> State:
    times, m, _ = particles.shape
    mixture = Mixture(
        jnp.asarray(particles.astype(np.float32)),
        jnp.asarray(np.zeros((times, m), np.float32)),
        jnp.asarray(bandwidth.astype(np.float32)),
    )
    return State(mixture, jnp.ones((times, m), jnp.float32), sinkhorn.cold(3 * (times - 1), m))
