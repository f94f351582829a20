"""The paper's objective, and the dynamics that go down it by sampled, clipped, noisy gradients.

    F(mu) = sum_i (dt_i / lambda) DF_i  +  sum_i T_i / dt_i  +  tau sum_i H_i
    DF_i  = mean over people y of -log mean_k exp(-|x_k - y|^2 / (2 sigma^2))           data fit
    T_i   = min over plans of E|x - y|^2 / 2 + tau dt_i KL(plan | product)              transport
    H_i   = integral of log density, negative entropy                                   entropy

Transport is divided by dt, as the first variation of Proposition C.2 has it. To the gradient of the
fit a person at y adds

    v(y)_k = (m dt / (lambda sigma^2)) w_k(y) (x_k - y),    w the responsibilities,

which the guard clips jointly over all particles. The sum over a Poisson batch of rate rho, divided
by rho N with N public or released, never by the batch that happened, is the drift to the people. A
step adds plain transport to neighbouring times and Langevin noise:

    x <- x - eta drift + kappa sum_j (dt / dt_ij) (bar_ij(x) - x) + eta temperature sigma xi,

bar_ij the mean partner under the entropic coupling of times i and j. Bandwidth and masses stay, and
what leaves the unit cube is put back on its wall. The loop is `langevin.run`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial import cKDTree
from scipy.special import digamma, gammaln, logsumexp

from privtraj.base.arrays import Floats
from privtraj.measures.langevin import SINKHORN_SWEEPS, State, Trace, between_times, state
from privtraj.measures.likelihood import Mixture, Moments, squared_distances, weights
from privtraj.motion import sinkhorn
from privtraj.motion.sinkhorn import Potentials
from privtraj.privacy.guard import Gaussian, Guard, Release
from privtraj.privacy.sums import ClippedSums

STEP = "clipped batch sums of a step"
OBJECTIVE_SWEEPS = 200  # of Sinkhorn's algorithm, from nothing
_CLOSEST = 1e-9  # particles nearer than this count as that far apart: a logarithm is taken

# The objective -------------------------------------------------------------------------------


class Objective(NamedTuple):
    """F and its three parts."""

    fit: float
    transport: float
    entropy: float

    @property
    def total(self) -> float:
        """F."""
        return self.fit + self.transport + self.entropy


def objective(
    particles: Floats, data: Sequence[Floats], gaps: Floats, *, lam: float, sigma: float, tau: float
) -> Objective:
    """F of particles (T, m, d) for T clouds (n_i, d) of public data and gaps (T - 1,) in time.

    To be looked at on public or simulated data: it reads every data point. The entropy of m
    particles is estimated from the distance to the nearest other one (Kozachenko and Leonenko): it
    is noisy for few particles, and the same particle twice has none.
    """
    dt = np.append(gaps, gaps[-1])
    fits = [_misfit(x, y, sigma) for x, y in zip(particles, data, strict=True)]
    return Objective(
        fit=float(dt @ fits / lam),
        transport=float(np.sum(_transport(particles, tau * gaps) / gaps)),
        entropy=tau * sum(map(_negative_entropy, particles)),
    )


def _misfit(x: Floats, y: Floats, sigma: float) -> float:
    """DF of one time."""
    squared = ((y[:, None] - x[None]) ** 2).sum(axis=-1)
    likelihood = logsumexp(-squared / (2 * sigma**2), axis=1) - math.log(len(x))
    return float(-likelihood.mean())


def _transport(particles: Floats, reg: Floats) -> Floats:
    """(T - 1,) entropic costs: reg (mean f + mean g + 2 log m), from the potentials over reg."""
    x, y = (jnp.asarray(part, jnp.float32) for part in (particles[:-1], particles[1:]))
    edges, m = x.shape[:2]
    solved = sinkhorn.solve(
        x, y, jnp.asarray(reg, jnp.float32), sinkhorn.cold(edges, m), iterations=OBJECTIVE_SWEEPS
    )
    duals = np.asarray(solved.f, np.float64).mean(axis=1) + np.asarray(solved.g).mean(axis=1)
    return reg * (duals + 2 * math.log(m))


def _negative_entropy(x: Floats) -> float:
    """-( psi(m) - psi(1) + log V_d + d mean log r ), r to the nearest other particle."""
    m, d = x.shape
    nearest = cKDTree(x).query(x, k=2)[0][:, 1]
    log_ball = d / 2 * math.log(math.pi) - gammaln(d / 2 + 1)
    mean = float(np.log(np.maximum(nearest, _CLOSEST)).mean())
    return -float(digamma(m) - digamma(1) + log_ball + d * mean)


# Gradients -----------------------------------------------------------------------------------


class Weighted(NamedTuple):
    """Particles, and the weight (T,) of the data fit: m dt / (lambda sigma^2)."""

    mixture: Mixture
    weight: jax.Array


def batch_vectors(points: jax.Array, parameters: Weighted) -> jax.Array:
    """v(y) of each point, flattened: (n, m d). A function of each point alone."""
    mixture = parameters.mixture
    w = weights(squared_distances(points, mixture.particles), mixture)
    away = mixture.particles[None] - points[:, None, :]
    return (parameters.weight * w[:, :, None] * away).reshape(len(points), -1)


@jax.jit
def mean_vectors(points: jax.Array, parameters: Weighted) -> jax.Array:
    """Mean of v over points (T, n, d) that anybody may see: (T, m, d)."""
    means = jax.vmap(lambda y, here: batch_vectors(y, here).mean(axis=0))(points, parameters)
    return means.reshape(parameters.mixture.particles.shape)


class Batch(NamedTuple):
    """What a batch sum is: its clip C, noise multiplier tau, and sampling rate rho."""

    clip: float
    noise: float
    rate: float


class BatchGradients:
    """Drifts from a guard over some of the times; where `ends` are given, the first and the last
    time follow those released points (2, n, d) instead, which costs nothing more.

    people: (T',) of the guard's times.  weight: (T,) of all times, m dt / (lambda sigma^2).
    watch: called with the particles (T, m, d) before every step.
    """

    def __init__(
        self,
        guard: Guard,
        people: Floats,
        weight: Floats,
        batch: Batch,
        ends: Floats | None = None,
        watch: Callable[[Floats], None] | None = None,
    ) -> None:
        self._guard = guard
        self._expected = batch.rate * people
        self._weight = jnp.asarray(np.float32(weight))
        self._clip = np.full(guard.n_times, float(batch.clip))
        self._batch = batch
        self._ends = None if ends is None else jnp.asarray(np.float32(ends))
        self._watch = watch

    def __call__(self, mixture: Mixture) -> tuple[Moments, jax.Array]:
        """Drift (T, m, d), and the standard deviation (T,) of the noise in it."""
        if self._watch is not None:
            self._watch(np.asarray(mixture.particles, dtype=np.float64))
        parameters = Weighted(mixture, self._weight)
        if self._ends is None:
            drift, deviation = self._private(parameters)
        else:
            inside, quiet = self._private(jax.tree.map(lambda leaf: leaf[1:-1], parameters))
            outside = jax.tree.map(lambda leaf: leaf[jnp.array([0, -1])], parameters)
            first, last = mean_vectors(self._ends, outside)
            drift = jnp.concatenate([first[None], inside, last[None]])
            deviation = jnp.pad(quiet, 1)
        ones = jnp.ones(drift.shape[:2], jnp.float32)
        return Moments(drift, ones, ones[:, 0]), deviation

    def _private(self, parameters: Weighted) -> tuple[jax.Array, jax.Array]:
        noise = self._batch.noise
        question = ClippedSums(batch_vectors, parameters, self._clip)
        sums = self._guard.ask(Release(question, Gaussian(noise), STEP))
        drift = np.float32(sums / self._expected[:, None])
        deviation = np.float32(self._clip * noise / self._expected)
        shape = parameters.mixture.particles.shape
        return jnp.asarray(drift.reshape(shape)), jnp.asarray(deviation)


# Steps ---------------------------------------------------------------------------------------


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
        + missing[:, None, None] * kicks
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
