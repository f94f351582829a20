"""A process on a line whose law is known at every time, and how far an estimate is from it.

    dX = [ M'(t) - theta (X - M(t)) ] dt + sqrt(tau) dB,          X_0 ~ N(M(0), V_0),
    X_t ~ N(M(t), V(t)),    M(t) = 1/2 + a sin(2 pi t),    V(t) = V + (V_0 - V) exp(-2 theta t),

with V = tau / (2 theta): an Ornstein-Uhlenbeck process whose centre moves, for times in [0, 1]. Its
drift is a gradient, as the paper's equation (sde) has it. People are seen with observation noise,
Y = X_t + sigma Z, which is what the paper's data fit is the likelihood of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats
from privtraj.motion.couplings import CouplingName, Couplings, couple
from privtraj.motion.diffusions import Brownian

GRID = np.linspace(-0.25, 1.25, 301)
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of a gap: where the error is read, trapezoidal rule
_RULE = (0.125, 0.25, 0.25, 0.25, 0.125)


@dataclass(frozen=True)
class Process:
    """tau: diffusivity.  theta: pull to the centre.  swing: a above.  first: V_0."""

    tau: float = 0.04
    theta: float = 2.5
    swing: float = 0.15
    first: float = 0.04**2

    def mean(self, t: Floats) -> Floats:
        """M(t)."""
        return 0.5 + self.swing * np.sin(2 * np.pi * t)

    def variance(self, t: Floats) -> Floats:
        """V(t)."""
        limit = self.tau / (2 * self.theta)
        return limit + (self.first - limit) * np.exp(-2 * self.theta * t)

    def people(self, times: Floats, count: int, noise: float, rng: np.random.Generator) -> Floats:
        """(T, count, 1): so many at each time, seen with noise of this standard deviation."""
        width = np.sqrt(self.variance(times) + noise**2)
        drawn = rng.standard_normal((len(times), count))
        return (self.mean(times)[:, None] + width[:, None] * drawn)[..., None]

    def density(self, t: float, sigma: float) -> Floats:
        """P_t * g_sigma on the grid."""
        at = np.array(t)
        return normal(GRID - float(self.mean(at)), float(self.variance(at)) + sigma**2)

    def energy(self) -> float:
        """Half the integral of E|drift|^2: tau times the entropy of the process relative to
        Brownian motion, but for that of its first law."""
        t = np.linspace(0, 1, 2001)
        velocity = 2 * np.pi * self.swing * np.cos(2 * np.pi * t)
        return float(np.trapezoid(velocity**2 + self.theta**2 * self.variance(t), t) / 2)


def normal(x: Floats, variance: float) -> Floats:
    """Density of N(0, variance)."""
    return np.exp(-(x**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def squared_hellinger(p: Floats, q: Floats) -> float:
    """d_H^2 = integral of (sqrt p - sqrt q)^2, of densities on the grid."""
    return float(((np.sqrt(p) - np.sqrt(q)) ** 2).sum() * (GRID[1] - GRID[0]))


def estimate(
    clouds: Sequence[tuple[Floats, Floats]],
    couplings: Sequence[NDArray[np.floating[Any]]],
    share: float,
    variance: float,
) -> Floats:
    """R_t * g_sigma on the grid, a share of the way along one gap, averaged over iterates.

    clouds: iterates of (x (m,), y (m,)) at both ends.  couplings: row-stochastic (m, m).
    A pair (k, l) is a Brownian bridge: N((1 - share) x_k + share y_l, variance), where variance is
    sigma^2 plus that of the bridge. Places are rounded to the grid linearly, then smoothed.
    """
    places = np.stack([(1 - share) * x[:, None] + share * y[None] for x, y in clouds]).ravel()
    weights = (np.stack(couplings) / (len(clouds) * len(couplings[0]))).ravel().astype(np.float64)
    position = (places - GRID[0]) / (GRID[1] - GRID[0])
    cell = position.astype(np.int64)
    right = weights * (position - cell)
    mass = np.bincount(cell, weights - right, len(GRID)) + np.bincount(cell + 1, right, len(GRID))
    return normal(GRID[:, None] - GRID[None], variance) @ mass


def path_error(
    process: Process, times: Floats, iterates: Sequence[Floats], sigma: float
) -> tuple[float, float]:
    """The integral over time of d_H^2(R_t * g_sigma, P_t * g_sigma), and the particles' part in it.

    iterates: particles (T, m, 1) of several steps, whose average stands for infinitely many. If the
    halves of the iterates had errors independent of each other, the mean of both would be off by a
    quarter of the distance between them: that is the second value.
    """
    gaps = np.diff(times)
    couplings = [coupled(x, gaps, process.tau, "entropic").matrices for x in iterates]
    total, floor = 0.0, 0.0
    middle = len(iterates) // 2
    for edge, gap in enumerate(gaps):
        clouds = [(x[edge, :, 0], x[edge + 1, :, 0]) for x in iterates]
        steps = [plan[edge] for plan in couplings]
        for share, weight in zip(SHARES, _RULE, strict=True):
            variance = sigma**2 + process.tau * share * (1 - share) * gap
            first = estimate(clouds[:middle], steps[:middle], share, variance)
            second = estimate(clouds[middle:], steps[middle:], share, variance)
            truth = process.density(times[edge] + share * gap, sigma)
            total += weight * gap * squared_hellinger((first + second) / 2, truth)
            floor += weight * gap * squared_hellinger(first, second) / 4
    return float(total), float(floor)


def mismatch(process: Process, sigma: float) -> float:
    """The integral of d_H^2(P_t, P_t * g_sigma): what people seen without noise leave as error."""
    t = np.linspace(0, 1, 101)
    each = [squared_hellinger(process.density(at, 0.0), process.density(at, sigma)) for at in t]
    return float(np.trapezoid(each, t))


def coupled(particles: Floats, gaps: Floats, tau: float, name: CouplingName) -> Couplings:
    """Couplings between neighbouring times of equally weighted particles (T, m, 1)."""
    equal = np.full(particles.shape[:2], 1 / particles.shape[1])
    return couple(particles, equal, gaps, Brownian(tau), name)
