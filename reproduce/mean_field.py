"""The paper's mean-field Langevin dynamics without privacy, on simulated people.

    x <- x - eta [ m (dt / (lambda sigma^2)) mean_y w_k(y) (x_k - y) + sum_j (x - bar_ij) / dt_ij ]
           + sqrt(2 eta tau) xi,          xi standard normal,

its equation (10) with everybody in the batch, nothing clipped, and the Langevin noise that belongs
to the objective F = G + tau H: the paper prints sqrt(eta tau), but its Fokker-Planck equation and
its minimiser exp(-V / tau) ask for sqrt(2 eta tau). The loop is that of private runs,
`privtraj.measures.langevin.run`, with moments that read the people.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from privtraj.base.arrays import Floats
from privtraj.measures.langevin import run
from privtraj.measures.likelihood import Mixture, Moments
from privtraj.motion import sinkhorn
from privtraj.paper import dynamics
from privtraj.paper.dynamics import (
    OBJECTIVE_SWEEPS,
    PlainFixed,
    Weighted,
    at,
    mean_vectors,
    plain_step,
)
from privtraj.paper.synthesizer import Phase, plain_schedule


@dataclass(frozen=True)
class Problem:
    """What is minimised.

    people: (T, N, d) in the unit cube or near it.  gaps: (T - 1,) in time.  lam: weight of
    transport against fit.  sigma: kernel of the fit.  tau: diffusivity, and weight of the entropy.
    """

    people: Floats
    gaps: Floats
    lam: float
    sigma: float
    tau: float

    def objective(self, particles: Floats) -> dynamics.Objective:
        """F of particles (T, m, d), and its parts."""
        weights = {"lam": self.lam, "sigma": self.sigma, "tau": self.tau}
        return dynamics.objective(particles, list(self.people), self.gaps, **weights)


class FullBatch:
    """Gradients of the data fit, exact: a measurement of the loop.

    seen: the particles (T, m, d) before every step.
    """

    def __init__(self, problem: Problem, m: int) -> None:
        dt = np.append(problem.gaps, problem.gaps[-1])
        weight = m * dt / (problem.lam * problem.sigma**2)
        self._people = jnp.asarray(problem.people, jnp.float32)
        self._weight = jnp.asarray(weight, jnp.float32)
        self.seen: list[Floats] = []

    def __call__(self, mixture: Mixture) -> tuple[Moments, jax.Array]:
        """Drift (T, m, d), without noise."""
        self.seen.append(np.asarray(mixture.particles, dtype=np.float64))
        drift = mean_vectors(self._people, Weighted(mixture, self._weight))
        ones = jnp.ones(drift.shape[:2], jnp.float32)
        return Moments(drift, ones, ones[:, 0]), jnp.zeros_like(ones[:, 0])


class Descent(NamedTuple):
    """Particles (T, m, d) before every step and after the last; how far the plans of a typical step
    are from their marginals: the median over steps of the largest L1 error."""

    seen: list[Floats]
    particles: Floats
    plan_error: float


def descend(
    problem: Problem, start: Floats, *, eta: float, steps: int, rng: np.random.Generator
) -> Descent:
    """`steps` steps of size eta from particles `start` (T, m, d) in the unit cube.

    The loop moves particles that leave the cube back to its wall.
    """
    gap = float(problem.gaps.mean())
    fixed = PlainFixed(
        jnp.asarray(problem.gaps / gap, jnp.float32),
        jnp.asarray(problem.tau * problem.gaps, jnp.float32),
    )
    # the loop's noise is its step size times temperature times bandwidth
    temperature = math.sqrt(2 * problem.tau / eta) / problem.sigma
    schedule = plain_schedule(Phase(steps, eta), gap)
    schedule = schedule._replace(temperature=np.full(steps, temperature))
    measure = FullBatch(problem, start.shape[1])
    state, trace = run(at(start, problem.sigma), measure, schedule, fixed, rng, step=plain_step)
    error = float(np.median(trace.marginal_error))
    return Descent(measure.seen, np.asarray(state.mixture.particles, dtype=np.float64), error)


def potential_gradient(problem: Problem, particles: Floats, places: Floats) -> Floats:
    """Gradient of V[mu], the first variation of G, at any places (n, d): (T, n, d).

    Where a place is a particle of time i, it is the drift of that particle.
    """
    gaps, reg = problem.gaps, jnp.asarray(problem.tau * problem.gaps, jnp.float32)
    x = jnp.asarray(particles, jnp.float32)
    cold = sinkhorn.cold(len(gaps), x.shape[1])
    ahead = sinkhorn.solve(x[:-1], x[1:], reg, cold, iterations=OBJECTIVE_SWEEPS)
    z = jnp.broadcast_to(jnp.asarray(places, jnp.float32), (len(gaps), *places.shape))
    next_ones = np.asarray(sinkhorn.barycentres(z, x[1:], reg, ahead))
    back = ahead._replace(f=ahead.g, g=ahead.f)
    ones_before = np.asarray(sinkhorn.barycentres(z, x[:-1], reg, back))
    slope = np.stack([_fit_gradient(problem, i, particles[i], places) for i in range(len(x))])
    slope[:-1] += (places - next_ones) / gaps[:, None, None]
    slope[1:] += (places - ones_before) / gaps[:, None, None]
    return slope


def _fit_gradient(problem: Problem, i: int, particles: Floats, places: Floats) -> Floats:
    """(dt / (lambda sigma^2)) mean_y (z - y) g(z - y) / mean_k g(x_k - y) at places z (n, d)."""
    y = problem.people[i]
    dt = problem.gaps[min(i, len(problem.gaps) - 1)]

    def exponent(points: Floats) -> Floats:
        apart: Floats = ((points[:, None] - y[None]) ** 2).sum(axis=-1)
        return -apart / (2 * problem.sigma**2)

    likelihood = logsumexp(exponent(particles), axis=0) - math.log(len(particles))
    ratio = np.exp(exponent(places) - likelihood)
    away = places[:, None] - y[None]
    return dt / (problem.lam * problem.sigma**2) * (ratio[..., None] * away).mean(axis=1)
