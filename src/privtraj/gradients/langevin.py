"""The step and the loop of private mean-field Langevin dynamics.

One step moves the particles of all times at once:

    x <- x - alpha m E[w (x - y)]                        to the people (an EM step at alpha = 1)
           + kappa sum_j (dt / dt_ij) (bar_ij(x) - bar_ii(x))   to neighbouring times, debiased
           + Langevin noise: what the privacy noise leaves of `temperature`

kappa is `time_coupling`. bar_ij is the barycentric projection under the entropic coupling between
times i and j, bar_ii that between a time and itself: their difference vanishes where neighbours
agree, so the transport drift moves marginals but never shrinks them. The same moments then update,
free of further cost, the biases that balance the masses, the running masses, and the bandwidth (the
maximum-likelihood one, reached from above by annealing). A particle that stands for hardly anybody
moves next to a heavy one.

The loop asks a `MomentSource` for moments; it does not know whether they come from the guard, noisy
and paid for, or from a released histogram, for free.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from privtraj.gradients.constants import (
    BIAS_LIMIT,
    HEAVY,
    LARGEST_BANDWIDTH,
    LEAST_SPREAD,
    LIGHT,
    MOVED_AT_ONCE,
    SINKHORN_SWEEPS,
    SPLIT_APART,
)
from privtraj.gradients.likelihood import Mixture, Moments
from privtraj.gradients.schedule import Schedule
from privtraj.transport import sinkhorn
from privtraj.transport.sinkhorn import Potentials


class State(NamedTuple):
    """All that moves. T times, m particles, d dimensions, E = T - 1 edges between times."""

    mixture: Mixture
    mass: jax.Array  # (T, m) running average of the moments' mass
    coupling: Potentials  # potentials of 3 E problems: i to i+1, i to itself, i+1 to itself


class Stride(NamedTuple):
    """The numbers that change from step to step; arrays, so nothing is compiled again."""

    step_size: jax.Array  # () alpha
    time_coupling: jax.Array  # () weight of the neighbours
    debias: jax.Array  # () 1 to measure their drift against a time's transport to itself, else 0
    balance: jax.Array  # () 1 to balance the masses of the particles, else 0
    temperature: jax.Array  # () standard deviation of a unit step's noise, in bandwidths
    noise_limit: jax.Array  # () largest noise of one step, in bandwidths over all coordinates
    mass_rate: jax.Array  # () gain of the running masses
    relocate: jax.Array  # () 1 while light particles may move, else 0
    learn: jax.Array  # () exponent of the bandwidth's move to its estimate
    shrink: jax.Array  # () smallest factor of the bandwidth in one step
    grow: jax.Array  # () largest


class Fixed(NamedTuple):
    """What stays the same during a run."""

    gaps: jax.Array  # (E,) time gaps, mean 1
    target: jax.Array  # (T,) a bandwidth set by hand, or 0 where it is learned
    floor: jax.Array  # () smallest bandwidth
    reg: jax.Array  # (E,) regularisation of the transport, or 0 where the bandwidth sets it


class Trace(NamedTuple):
    """What a step did, for the diagnostics."""

    alpha: jax.Array  # (T,) step size after the noise limit
    noise: jax.Array  # (T,) standard deviation of a move's privacy noise, in bandwidths
    bandwidth: jax.Array  # (T,)
    marginal_error: jax.Array  # () largest L1 error of the plans


class MomentSource(Protocol):
    """Where moments come from."""

    def __call__(self, mixture: Mixture) -> tuple[Moments, jax.Array]:
        """Moments at the mixture, and the standard deviation (T,) of the noise in `drift`."""


def run(
    state: State,
    measure: MomentSource,
    schedule: Schedule,
    fixed: Fixed,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[State, Trace]:
    """The loop: measure, move, repeat. The trace is stacked over steps.

    rng: public randomness for the Langevin noise; the noise that protects is the guard's.
    """
    traces = []
    for index in range(schedule.steps):
        moments, noise = measure(state.mixture)
        kicks = rng.standard_normal((2, *state.mixture.particles.shape), dtype=np.float32)
        state, trace = step(state, moments, noise, kicks, _stride(schedule, index), fixed)
        traces.append(trace)
        if progress is not None:
            progress(index + 1, schedule.steps)
    return state, jax.tree.map(lambda *rows: np.stack(rows), *traces)


@jax.jit
def step(
    state: State,
    moments: Moments,
    noise: jax.Array,
    kicks: jax.Array,
    stride: Stride,
    fixed: Fixed,
) -> tuple[State, Trace]:
    """One move of everything.

    noise: (T,) standard deviation already inside the drift.  kicks: (2, T, m, d) standard normal.
    """
    mixture = state.mixture
    sigma = mixture.bandwidth
    dimensions = mixture.particles.shape[-1]

    relative = noise / sigma * jnp.sqrt(dimensions)
    alpha = jnp.minimum(stride.step_size, stride.noise_limit / jnp.maximum(relative, 1e-9))
    drawn, coupling = _transport_drift(mixture, state.coupling, stride.debias, fixed)
    wanted = stride.temperature * sigma
    missing = alpha * jnp.sqrt(jnp.maximum(wanted**2 - noise**2, 0.0))
    particles = (
        mixture.particles
        - alpha[:, None, None] * moments.drift
        + stride.time_coupling * drawn
        + missing[:, None, None] * kicks[0]
    )
    bias = mixture.bias - stride.balance * alpha[:, None] * (moments.mass - 1)
    bias = bias - bias.mean(axis=1, keepdims=True)
    moved = Mixture(particles, jnp.clip(bias, -BIAS_LIMIT, BIAS_LIMIT), sigma)
    mass = state.mass + stride.mass_rate * (moments.mass - state.mass)
    moved, mass = _relocate(moved, mass, kicks[1], stride.relocate)
    moved = moved._replace(bandwidth=_bandwidth(sigma, moments.spread, stride, fixed))
    trace = Trace(alpha, alpha * noise / sigma, moved.bandwidth, coupling.error.max())
    return State(moved, mass, coupling), trace


def _transport_drift(
    mixture: Mixture, coupling: Potentials, debias: jax.Array, fixed: Fixed
) -> tuple[jax.Array, Potentials]:
    """sum_j (bar_ij - bar_ii) / gap_ij at every particle, (T, m, d).

    Unless it is fixed, the regularisation of edge i is sigma^2 gap_i: diffusion that spreads as far
    over a mean gap as one person's noise.
    """
    x, gaps = mixture.particles, fixed.gaps
    variance = mixture.bandwidth**2
    left, right = x[:-1], x[1:]
    reg = jnp.where(fixed.reg > 0, fixed.reg, (variance[:-1] + variance[1:]) / 2 * gaps)
    a = jnp.concatenate([left, left, right])
    b = jnp.concatenate([right, left, right])
    reg3 = jnp.concatenate([reg, reg, reg])
    coupling, forth, back = sinkhorn.project(a, b, reg3, coupling, iterations=SINKHORN_SWEEPS)
    ahead, own_left, own_right = jnp.split(forth, 3)
    behind = back[: len(gaps)]
    weight = (1 / gaps)[:, None, None]
    from_left = jnp.where(debias > 0, own_left, left)
    from_right = jnp.where(debias > 0, own_right, right)
    drift = jnp.zeros_like(x).at[:-1].add(weight * (ahead - from_left))
    return drift.at[1:].add(weight * (behind - from_right)), coupling


def _relocate(
    mixture: Mixture, mass: jax.Array, kicks: jax.Array, allowed: jax.Array
) -> tuple[Mixture, jax.Array]:
    """Pair the lightest with the heaviest; where both are extreme, split the heavy one."""
    times, m = mass.shape
    pairs = max(1, m // MOVED_AT_ONCE)
    row = jnp.arange(times)[:, None]
    rank = mass + 1e-5 * jnp.arange(m)  # equal masses must not make a particle light and heavy
    light, heavy = jax.lax.top_k(-rank, pairs)[1], jax.lax.top_k(rank, pairs)[1]
    from_mass, to_mass = mass[row, light], mass[row, heavy]
    go = (from_mass < LIGHT) & (to_mass > HEAVY) & (allowed > 0)
    x, b = mixture.particles, mixture.bias
    place = x[row, heavy]
    apart = SPLIT_APART * mixture.bandwidth[:, None, None] * kicks[:, :pairs]
    x = x.at[row, light].set(jnp.where(go[..., None], place + apart, x[row, light]))
    x = x.at[row, heavy].set(jnp.where(go[..., None], place - apart, place))
    b = b.at[row, light].set(jnp.where(go, b[row, heavy], b[row, light]))
    mass = mass.at[row, light].set(jnp.where(go, to_mass / 2, from_mass))
    mass = mass.at[row, heavy].set(jnp.where(go, to_mass / 2, to_mass))
    return mixture._replace(particles=jnp.clip(x, 0.0, 1.0), bias=b), mass


def _bandwidth(sigma: jax.Array, spread: jax.Array, stride: Stride, fixed: Fixed) -> jax.Array:
    """sigma <- sigma (estimate / sigma)^learn within the step's limits.

    The estimate is the maximum-likelihood bandwidth sigma sqrt(spread), or the one set by hand.
    """
    estimate = sigma * jnp.sqrt(jnp.maximum(spread, LEAST_SPREAD))
    ratio = jnp.where(fixed.target > 0, fixed.target, estimate) / sigma
    moved = sigma * jnp.clip(ratio**stride.learn, stride.shrink, stride.grow)
    return jnp.clip(moved, fixed.floor, LARGEST_BANDWIDTH)


def _stride(schedule: Schedule, index: int) -> Stride:
    return Stride(*(np.float32(getattr(schedule, name)[index]) for name in Stride._fields))  # type: ignore[arg-type]
