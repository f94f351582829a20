"""The step and the loop of private mean-field Langevin dynamics.

One step moves the particles of all times at once:

    x <- x - alpha m E[w (x - y)]                        to the people (an EM step at alpha = 1)
           + kappa sum_j (dt / dt_ij) (bar_ij(x) - bar_ii(x))   to neighbouring times, debiased
           + Langevin noise: what the privacy noise leaves of `temperature`

kappa is `time_coupling`. bar_ij is the barycentric projection under the entropic coupling between
times i and j, bar_ii that between a time and itself: their difference vanishes where neighbours
agree, so the transport drift moves marginals but never shrinks them. The same moments then update,
free of further cost, the biases that balance the masses, the running masses, and the bandwidth (the
maximum-likelihood one, reached from above by annealing).

The loop asks a `MomentSource` for moments; it does not know whether they come from the guard, noisy
and paid for, or from a released histogram, for free. Its schedule has three phases: search, anneal
the bandwidth, settle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from privtraj.base.arrays import Floats
from privtraj.measures.base import Progress
from privtraj.measures.likelihood import KAPPA_SPREAD, Mixture, Moments
from privtraj.motion import sinkhorn
from privtraj.motion.sinkhorn import Potentials
from privtraj.recipe import LARGEST_BANDWIDTH, SMALLEST_BANDWIDTH

# The schedule
SETTLING_SHARE = 0.4  # of the steps, at the end
STEP_SIZE = 0.8  # of an EM step, before settling
ANNEALED_TO = 0.1  # of the bandwidth, at least, over the annealing, and in any step besides
TEMPERATURE = 0.25  # of a unit step in bandwidths at d = 2, before settling
# The step
TIME_COUPLING = 0.1  # weight of the neighbours in a unit step; set by hand on stand-ins, 2026-11
SINKHORN_SWEEPS = 8  # warm-started: L1 marginal errors of 2e-3 to 2e-2, measured, 2026-11
OWN_SWEEPS = 4  # of a time with itself, which settle faster
BIAS_LIMIT = 20.0  # of log weights; keeps responsibilities finite: 4 gives the same
FIRST_BANDWIDTH = 12**-0.5  # standard deviation of somebody anywhere in the box

S = TypeVar("S", bound=tuple[Any, ...])  # a schedule


class State(NamedTuple):
    """All that moves. T times, m particles, d dimensions, E = T - 1 edges between times."""

    mixture: Mixture
    mass: jax.Array  # (T, m) running average of the moments' mass
    coupling: Potentials  # potentials of 3 E problems: i to i+1, i to itself, i+1 to itself


class Fixed(NamedTuple):
    """What stays the same during a run."""

    gaps: jax.Array  # (E,) time gaps, mean 1
    target: jax.Array  # (T,) a bandwidth set by hand, or 0 where it is learned

    @classmethod
    def between(cls, gaps: Floats, bandwidth: float | None = None) -> Fixed:
        """That of times `gaps` (T - 1,) apart, with a bandwidth by hand or a learned one."""
        return cls(
            jnp.asarray(np.float32(gaps / gaps.mean())),
            jnp.asarray(np.full(len(gaps) + 1, bandwidth or 0.0, np.float32)),
        )


class Trace(NamedTuple):
    """What a step did, for the diagnostics."""

    noise: jax.Array  # (T,) standard deviation of a move's privacy noise, in bandwidths
    bandwidth: jax.Array  # (T,)
    marginal_error: jax.Array  # () largest L1 error of the couplings


class Schedule(NamedTuple):
    """Numbers (K,) of all steps; those of one step (`stride`) are arrays too, compiled once."""

    step_size: Floats  # alpha, and the gain of the running masses
    time_coupling: Floats  # weight of the neighbours
    temperature: Floats  # standard deviation of a unit step's noise, in bandwidths
    learn: Floats  # exponent of the bandwidth's move to its estimate
    shrink: Floats  # smallest factor of the bandwidth in one step
    grow: Floats  # largest


def gradient_schedule(steps: int, time_coupling: float, features: int = 2) -> Schedule:
    """Find the people's scale in one step, anneal the bandwidth, then settle: average what is left.

    Steps k = 1, 2, .. of settling have the size 1 / (k + 1 / STEP_SIZE), so that particles, masses
    and bandwidth become means over all of them.

    Langevin noise moves a particle by as many bandwidths in all d coordinates together as in two:
    responsibilities follow the distance, and a particle that is kicked further each time the more
    coordinates there are loses its people, and then its way.
    """
    s, annealed = np.arange(steps), round((1 - SETTLING_SHARE) * steps)
    settling = s >= annealed
    step_size = 1 / (np.maximum(s - annealed + 1, 0) + 1 / STEP_SIZE)
    annealing = ANNEALED_TO ** (1 / max(annealed - 1, 1))
    return Schedule(
        step_size=step_size,
        time_coupling=time_coupling * step_size,
        temperature=np.where(settling, 0.0, TEMPERATURE * math.sqrt(2 / max(features, 2))),
        learn=np.where(settling, step_size, 1.0),
        shrink=np.where((s == 0) | settling, ANNEALED_TO, annealing),
        grow=np.where(settling, 1 / ANNEALED_TO, 1.0),
    )


def middle(times: int, m: int, features: int) -> State:
    """All in the middle of the unit cube, with the bandwidth of people anywhere in it.

    The first step carries them to the people's mean, noise and annealing split them as clusters
    split: no particle starts where nobody is, so none is left behind.
    """
    middle = np.full((times, m, features), 0.5)
    return state(middle, np.full(times, FIRST_BANDWIDTH), 3 * (times - 1))


def state(particles: Floats, bandwidth: Floats, problems: int) -> State:
    """Particles (T, m, d) of equal masses, bandwidths (T,), and so many problems of transport."""
    times, m, _ = particles.shape
    mixture = Mixture(
        jnp.asarray(particles.astype(np.float32)),
        jnp.asarray(np.zeros((times, m), np.float32)),
        jnp.asarray(bandwidth.astype(np.float32)),
    )
    return State(mixture, jnp.ones((times, m), jnp.float32), sinkhorn.cold(problems, m))


class MomentSource(Protocol):
    """Where moments come from."""

    def __call__(self, mixture: Mixture) -> tuple[Moments, jax.Array]:
        """Moments at the mixture, and the standard deviation (T,) of the noise in `drift`."""


def run(
    state: State,
    measure: MomentSource,
    schedule: S,
    fixed: Any,
    rng: np.random.Generator,
    progress: Progress | None = None,
    step: Callable[..., tuple[State, Trace]] | None = None,
) -> tuple[State, Trace]:
    """The loop: measure, move, repeat. The trace is stacked over steps.

    rng: public randomness for the Langevin noise; the noise that protects is the guard's.
    step: another move than `langevin_step`, with its own schedule and what it keeps fixed.
    """
    steps, traces = len(schedule[0]), []
    for index in range(steps):
        # needs no moments: JAX computes it while people are summed
        pull = () if step else (_transport(state.mixture, state.coupling, fixed.gaps),)
        moments, noise = measure(state.mixture)
        kicks = rng.standard_normal(state.mixture.particles.shape, dtype=np.float32)
        given = moments, noise, kicks, stride(schedule, index), fixed
        state, trace = (step or langevin_step)(state, *given, *pull)
        traces.append(trace)
        if progress is not None:
            progress(index + 1, steps)
    return state, jax.tree.map(lambda *rows: np.stack(rows), *traces)


def stride(schedule: S, index: int) -> S:
    """The numbers of one step."""
    return jax.tree.map(lambda row: np.float32(row[index]), schedule)


@jax.jit
def langevin_step(
    state: State,
    moments: Moments,
    noise: jax.Array,
    kicks: jax.Array,
    stride: Schedule,
    fixed: Fixed,
    pull: tuple[jax.Array, Potentials] | None = None,
) -> tuple[State, Trace]:
    """One move of everything.

    noise: (T,) standard deviation already inside the drift.  kicks: (T, m, d) standard normal.
    pull: the `transport_drift` of the state, if it is known.
    """
    mixture = state.mixture
    sigma = mixture.bandwidth
    alpha = stride.step_size
    drawn, coupling = pull or transport_drift(mixture, state.coupling, fixed.gaps)
    wanted = stride.temperature * sigma
    missing = alpha * jnp.sqrt(jnp.maximum(wanted**2 - noise**2, 0.0))
    particles = (
        mixture.particles
        - alpha * moments.drift
        + stride.time_coupling * drawn
        + missing[:, None, None] * kicks
    )
    bias = mixture.bias - alpha * (moments.mass - 1)
    bias = bias - bias.mean(axis=1, keepdims=True)
    mass = state.mass + alpha * (moments.mass - state.mass)
    relative_noise = noise / (mass.shape[1] * KAPPA_SPREAD * sigma)
    bandwidth = _bandwidth(sigma, moments.spread, relative_noise, stride, fixed.target)
    bias = jnp.clip(bias, -BIAS_LIMIT, BIAS_LIMIT)
    moved = Mixture(jnp.clip(particles, 0.0, 1.0), bias, bandwidth)
    trace = Trace(alpha * noise / sigma, moved.bandwidth, coupling.error.max())
    return State(moved, mass, coupling), trace


def transport_drift(
    mixture: Mixture, coupling: Potentials, gaps: jax.Array
) -> tuple[jax.Array, Potentials]:
    """sum_j (bar_ij - bar_ii) / gap_ij at every particle, (T, m, d).

    The regularisation of edge i is sigma^2 gap_i: diffusion that spreads as far over a mean gap as
    one person's noise.
    """
    x, variance, edges = mixture.particles, mixture.bandwidth**2, len(gaps)
    left, right = x[:-1], x[1:]
    reg = (variance[:-1] + variance[1:]) / 2 * gaps
    known = jax.tree.map(lambda leaf: leaf[:edges], coupling)
    between, ahead, behind = sinkhorn.project(left, right, reg, known, iterations=SINKHORN_SWEEPS)
    both, twice = jnp.concatenate([left, right]), jnp.concatenate([reg, reg])
    within, own = sinkhorn.project_itself(both, twice, coupling.f[edges:], iterations=OWN_SWEEPS)
    coupling = jax.tree.map(lambda *parts: jnp.concatenate(parts), between, within)
    return between_times(ahead - own[:edges], behind - own[edges:], gaps), coupling


_transport = jax.jit(transport_drift)


def between_times(ahead: jax.Array, behind: jax.Array, gaps: jax.Array) -> jax.Array:
    """Moves (T, m, d) from those (E, m, d) along every edge, ahead and back, over its gap."""
    weight = (1 / gaps)[:, None, None]
    still = jnp.zeros((len(gaps) + 1, *ahead.shape[1:]), ahead.dtype)
    return still.at[:-1].add(weight * ahead).at[1:].add(weight * behind)


def _bandwidth(
    sigma: jax.Array, spread: jax.Array, noise: jax.Array, stride: Schedule, target: jax.Array
) -> jax.Array:
    """sigma <- sigma (estimate / sigma)^learn within the step's limits.

    The estimate is the target (T,) set by hand where that is not 0, or the maximum-likelihood
    bandwidth sigma sqrt(spread), where the spread (T,) with noise of deviation n (T,) is replaced
    by its posterior mean: before, it is above 0, has the mean 1 and the density exp(-s), so that
    after it is normal around spread - n^2 with deviation n, cut at 0. A bandwidth that took noise
    at its word would fall in one step, and its people would be lost.
    """
    n = jnp.clip(noise, 1e-3, 30.0)  # as good as all, and nothing
    z = jnp.maximum(spread / n, -30.0) - n
    mean = n * (z + jnp.exp(norm.logpdf(z) - norm.logcdf(z)))
    ratio = jnp.where(target > 0, target, sigma * jnp.sqrt(mean)) / sigma
    moved = sigma * jnp.clip(ratio**stride.learn, stride.shrink, stride.grow)
    return jnp.clip(moved, SMALLEST_BANDWIDTH, LARGEST_BANDWIDTH)
