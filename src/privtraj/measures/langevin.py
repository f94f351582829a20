"""The step and the loop of private mean-field Langevin dynamics.

One step moves the particles of all times at once:

    x <- x - alpha m E[w (x - y)]                        to the people (an EM step at alpha = 1)
           + kappa sum_j (dt / dt_ij) (bar_ij(x) - bar_ii(x))   to neighbouring times, debiased
           + Langevin noise: what the privacy noise leaves of `temperature`

kappa is `time_coupling`. bar_ij is the barycentric projection under the entropic coupling between
times i and j, bar_ii that between a time and itself: their difference vanishes where neighbours
agree, so the transport drift moves marginals but never shrinks them. The same moments then update,
free of further cost, the biases that balance the masses, and the bandwidth (the maximum-likelihood
one, reached from above by annealing). A particle that stands for hardly anybody moves to a heavy
one.

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

from privtraj.base.arrays import WIDE, Floats
from privtraj.measures.base import Progress
from privtraj.measures.likelihood import KAPPA_SPREAD, Mixture, Moments
from privtraj.motion import sinkhorn
from privtraj.motion.sinkhorn import Potentials
from privtraj.recipe import LARGEST_BANDWIDTH, SMALLEST_BANDWIDTH

# The schedule
SEARCH_STEPS = 2  # first steps, which find the people's place and scale; none: 1.21 (.06) times
# the error, of 3,000 people 1.46 (.09)
SETTLING_SHARE = 0.4  # of the steps, at the end; .57 has 1.17 (.10) times the error, .25 1.04
STEP_NOISE = 0.35  # of a step, in bandwidths over all coordinates: privacy noise at most, and in
# all with Langevin noise; half or twice as much has 1.2 times the error
# The step
SINKHORN_SWEEPS = 8  # warm-started: L1 marginal errors of 2e-3 to 2e-2, measured, 2026-11
OWN_SWEEPS = 4  # of a time with itself, which settle faster
BIAS_LIMIT = 4.0  # of log weights; keeps responsibilities finite: 20 gives the same to 1 %
LIGHT = 0.4  # mass in 1/m, 1 being usual, of those who move; as far above it particles split. None
# move: 1.07 (.05) times the error, 2.8 at worst
FIRST_BANDWIDTH = 12**-0.5  # standard deviation of somebody anywhere in the box
ANNEALED_TO = (SMALLEST_BANDWIDTH / FIRST_BANDWIDTH) ** 0.5  # of the bandwidth, at least, over the
# search, and over the annealing: together from the first to the smallest

S = TypeVar("S", bound=tuple[Any, ...])  # a schedule


class State(NamedTuple):
    """All that moves. T times, m particles, d dimensions, E = T - 1 edges between times."""

    mixture: Mixture
    mass: jax.Array  # (T, m) the moments' mass, and while steps settle its average
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

    alpha: jax.Array  # (T,) step size after the noise limit
    noise: jax.Array  # (T,) standard deviation of a move's privacy noise, in bandwidths
    bandwidth: jax.Array  # (T,)
    marginal_error: jax.Array  # () largest L1 error of the couplings


class Schedule(NamedTuple):
    """Numbers (K,) of all steps; those of one step (`stride`) are arrays too, compiled once."""

    step_size: Floats  # alpha, gain of the masses, exponent of the bandwidth's move to its estimate
    time_coupling: Floats  # weight of the neighbours
    temperature: Floats  # standard deviation of a unit step's noise, in bandwidths
    noise_limit: Floats  # largest noise of one step, in bandwidths over all coordinates
    relocate: Floats  # 1 while light particles may move, else 0
    shrink: Floats  # smallest factor of the bandwidth in one step
    grow: Floats  # largest


def gradient_schedule(steps: int, time_coupling: float, features: int = 2) -> Schedule:
    """Find the people's place and scale, anneal the bandwidth, then settle with smaller steps.

    Steps are those of EM, k = 1, 2, .. of settling has the size 1 / (k + 1), and so have the gains
    of the masses: all become averages. No step of settling changes the bandwidth by more than one
    of the annealing does, and none has Langevin noise or moves light particles to heavy ones.

    Noise moves a particle by as many bandwidths in all d coordinates together as in one:
    responsibilities follow the distance, and a particle that is kicked further each time the more
    coordinates there are loses its people, and then its way.
    """
    s = np.arange(steps)
    annealed = round((1 - SETTLING_SHARE) * steps)
    searching, settling = s < SEARCH_STEPS, s >= annealed
    step_size = 1 / (np.maximum(s - annealed + 1, 0) + 1)
    shrink = ANNEALED_TO ** (1 / np.where(searching, SEARCH_STEPS, max(annealed - SEARCH_STEPS, 1)))
    return Schedule(
        step_size=step_size,
        time_coupling=np.where(searching, 0.0, time_coupling * step_size),
        temperature=np.where(settling, 0.0, STEP_NOISE / math.sqrt(features)),
        noise_limit=np.full(steps, STEP_NOISE),
        relocate=(~searching & ~settling).astype(float),
        shrink=shrink,
        grow=np.where(settling, 1 / shrink, 1.0),
    )


def middle(times: int, m: int, features: int) -> State:
    """All in the middle of the unit cube, of the bandwidth of people anywhere in it.

    The first step carries them to the people's mean, and its noise apart; the annealing splits them
    as clusters split: no particle starts where nobody is, so none is left behind.
    """
    together = np.full((times, m, features), 0.5)
    return state(together, np.full(times, FIRST_BANDWIDTH), 3 * (times - 1))


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
    dimensions = mixture.particles.shape[-1]

    relative = noise / sigma * jnp.sqrt(jnp.float32(dimensions))
    alpha = jnp.minimum(stride.step_size, stride.noise_limit / jnp.maximum(relative, 1e-9))
    drawn, coupling = pull or transport_drift(mixture, state.coupling, fixed.gaps)
    wanted = stride.temperature * sigma
    missing = alpha * jnp.sqrt(jnp.maximum(wanted**2 - noise**2, 0.0))
    particles = (
        mixture.particles
        - alpha[:, None, None] * moments.drift
        + stride.time_coupling * drawn
        + missing[:, None, None] * kicks
    )
    bias = mixture.bias - alpha[:, None] * (moments.mass - 1)
    bias = bias - bias.mean(axis=1, keepdims=True)
    moved = Mixture(particles, jnp.clip(bias, -BIAS_LIMIT, BIAS_LIMIT), sigma)
    mass = state.mass + stride.step_size * (moments.mass - state.mass)
    moved, mass = _relocate(moved, mass, stride.relocate)
    relative_noise = noise / (mass.shape[1] * KAPPA_SPREAD * sigma)
    moved = moved._replace(
        bandwidth=_bandwidth(sigma, moments.spread, relative_noise, stride, fixed.target)
    )
    trace = Trace(alpha, alpha * noise / sigma, moved.bandwidth, coupling.error.max())
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


_transport = jax.jit(transport_drift, compiler_options=WIDE)


def between_times(ahead: jax.Array, behind: jax.Array, gaps: jax.Array) -> jax.Array:
    """Moves (T, m, d) from those (E, m, d) along every edge, ahead and back, over its gap."""
    weight = (1 / gaps)[:, None, None]
    still = jnp.zeros((len(gaps) + 1, *ahead.shape[1:]), ahead.dtype)
    return still.at[:-1].add(weight * ahead).at[1:].add(weight * behind)


def _relocate(mixture: Mixture, mass: jax.Array, allowed: Floats) -> tuple[Mixture, jax.Array]:
    """Pair the lightest with the heaviest; where both are extreme, the light one goes where the
    heavy one is, and the noise of the next step parts them."""
    times, m = mass.shape
    pairs = max(1, m // 2)
    row = jnp.arange(times, dtype=jnp.int32)[:, None]
    # equal masses must not make a particle light and heavy
    rank = mass + 1e-5 * jnp.arange(m, dtype=jnp.float32)
    light, heavy = jax.lax.top_k(-rank, pairs)[1], jax.lax.top_k(rank, pairs)[1]
    from_mass, to_mass = mass[row, light], mass[row, heavy]
    go = (from_mass < LIGHT) & (to_mass > 2 - LIGHT) & (allowed > 0)
    x, b = mixture.particles, mixture.bias
    x = x.at[row, light].set(jnp.where(go[..., None], x[row, heavy], x[row, light]))
    b = b.at[row, light].set(jnp.where(go, b[row, heavy], b[row, light]))
    mass = mass.at[row, light].set(jnp.where(go, to_mass / 2, from_mass))
    mass = mass.at[row, heavy].set(jnp.where(go, to_mass / 2, to_mass))
    return mixture._replace(particles=jnp.clip(x, 0.0, 1.0), bias=b), mass


def _bandwidth(
    sigma: jax.Array, spread: jax.Array, noise: jax.Array, stride: Schedule, target: jax.Array
) -> jax.Array:
    """sigma <- sigma (estimate / sigma)^step_size within the step's limits.

    The estimate is the target (T,) set by hand where that is not 0, or the maximum-likelihood
    bandwidth sigma sqrt(spread), the spread (T,) shrunk to 1 by its noise (T,): the posterior mean
    1 + (spread - 1) / (1 + noise^2) of a prior of mean and deviation 1, since a bandwidth that took
    noise at its word would fall in one step, and its people would be lost.
    """
    spread = 1 + (spread - 1) / (1 + noise**2)
    estimate = sigma * jnp.sqrt(jnp.maximum(spread, 0.0))  # noise may be below
    ratio = jnp.where(target > 0, target, estimate) / sigma
    moved = sigma * jnp.clip(ratio**stride.step_size, stride.shrink, stride.grow)
    return jnp.clip(moved, SMALLEST_BANDWIDTH, LARGEST_BANDWIDTH)
