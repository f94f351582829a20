"""The paper's objective, to be looked at on public or simulated data: it reads every data point.

    F(mu) = sum_i (dt_i / lambda) DF_i  +  sum_i T_i / dt_i  +  tau sum_i H_i
    DF_i  = mean over people y of -log mean_k exp(-|x_k - y|^2 / (2 sigma^2))           data fit
    T_i   = min over plans of E|x - y|^2 / 2 + tau dt_i KL(plan | product)              transport
    H_i   = integral of log density, negative entropy                                   entropy

Transport is divided by dt, as the first variation of Proposition C.2 has it. The entropy of m
particles is estimated from the distance to the nearest other one (Kozachenko and Leonenko): it is
noisy for few particles, and the same particle twice has none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.spatial import cKDTree
from scipy.special import digamma, gammaln, logsumexp

from privtraj.base.arrays import Floats
from privtraj.motion import sinkhorn

OBJECTIVE_SWEEPS = 200  # of Sinkhorn's algorithm, from nothing
_CLOSEST = 1e-9  # particles nearer than this count as that far apart: a logarithm is taken


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
    """F of particles (T, m, d) for T clouds (n_i, d) of public data and gaps (T - 1,) in time."""
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
