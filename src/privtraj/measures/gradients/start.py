"""Where the particles begin: in the middle of the box, and with all levels alike."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from privtraj.base.arrays import Floats
from privtraj.measures.gradients.constants import CLUSTER_WIDTH, FIRST_BANDWIDTH
from privtraj.measures.gradients.langevin import State
from privtraj.measures.gradients.likelihood import Mixture
from privtraj.motion import sinkhorn


def middle(times: int, m: int, centre: Floats, rng: np.random.Generator) -> State:
    """A small cluster around the centre (d,), of the bandwidth of people anywhere in the unit cube.

    The first step carries it to the people's mean, the annealing splits it as clusters split: no
    particle starts where nobody is, so none is left behind.
    """
    offsets = 2 * centre * CLUSTER_WIDTH * (rng.uniform(size=(times, m, len(centre))) - 0.5)
    return state(centre + offsets, np.full(times, FIRST_BANDWIDTH), 3 * (times - 1))


def state(particles: Floats, bandwidth: Floats, problems: int) -> State:
    """Particles (T, m, d) of equal masses, bandwidths (T,), and so many problems of transport."""
    times, m, _ = particles.shape
    mixture = Mixture(
        jnp.asarray(particles.astype(np.float32)),
        jnp.asarray(np.zeros((times, m), np.float32)),
        jnp.asarray(bandwidth.astype(np.float32)),
    )
    return State(mixture, jnp.ones((times, m), jnp.float32), sinkhorn.cold(problems, m))
