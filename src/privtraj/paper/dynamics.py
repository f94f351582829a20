"""The paper's step: drift to the people, plain transport to neighbouring times, Langevin noise.

    x <- x - eta drift + kappa sum_j (dt / dt_ij) (bar_ij(x) - x) + eta temperature sigma xi,

bar_ij the mean partner under the entropic coupling of times i and j. Bandwidth and masses stay, and
what leaves the unit cube is put back on its wall. The loop is `langevin.run`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from privtraj.base.arrays import Floats
from privtraj.measures.langevin import SINKHORN_SWEEPS, State, Trace, between_times, state
from privtraj.measures.likelihood import Moments
from privtraj.motion.transport import sinkhorn
from privtraj.motion.transport.sinkhorn import Potentials


class PlainSchedule(NamedTuple):
    """Numbers (K,) of all steps."""

    step_size: Floats  # eta
    time_coupling: Floats  # kappa: eta over the mean gap
    temperature: Floats  # standard deviation of a unit step's noise, in bandwidths


class PlainFixed(NamedTuple):
    """What stays the same during a run."""

    gaps: jax.Array  # (E,) time gaps, mean 1
    reg: jax.Array  # (E,) regularisation of the transport


def at(particles: Floats, bandwidth: float) -> State:
    """Given particles (T, m, d) in the unit cube, at one bandwidth for all times."""
    times = len(particles)
    return state(particles, np.full(times, bandwidth), times - 1)


@jax.jit
def plain_step(
    state: State,
    moments: Moments,
    noise: jax.Array,
    kicks: jax.Array,
    stride: PlainSchedule,
    fixed: PlainFixed,
) -> tuple[State, Trace]:
    """One move of the particles; noise (T,) is the deviation already inside the drift."""
    mixture, sigma = state.mixture, state.mixture.bandwidth
    drawn, coupling = plain_drift(mixture.particles, state.coupling, fixed)
    eta = jnp.full_like(sigma, stride.step_size)
    missing = eta * jnp.sqrt(jnp.maximum((stride.temperature * sigma) ** 2 - noise**2, 0.0))
    particles = (
        mixture.particles
        - eta[:, None, None] * moments.drift
        + stride.time_coupling * drawn
        + missing[:, None, None] * kicks[0]
    )
    moved = mixture._replace(particles=jnp.clip(particles, 0.0, 1.0))
    trace = Trace(eta, eta * noise / sigma, sigma, coupling.error.max())
    return State(moved, state.mass, coupling), trace


def plain_drift(
    x: jax.Array, coupling: Potentials, fixed: PlainFixed
) -> tuple[jax.Array, Potentials]:
    """sum_j (bar_ij - x) / gap_ij at every particle of x (T, m, d): the gradient of transport."""
    left, right = x[:-1], x[1:]
    coupling, ahead, behind = sinkhorn.project(
        left, right, fixed.reg, coupling, iterations=SINKHORN_SWEEPS
    )
    return between_times(ahead - left, behind - right, fixed.gaps), coupling
