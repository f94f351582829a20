"""Couplings between neighbouring times, and walks along them.

The composed coupling of the representer theorem is a Markov chain: from particle k at time i to
particle l at time i+1 with probability P_i[k, l] / sum_l P_i[k, l]. Entropic plans are those of the
Schroedinger bridge, exact plans those of optimal transport.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from privtraj.resample import systematic, total_variance
from privtraj.transport import sinkhorn

CouplingName = Literal["entropic", "exact"]
Floats = NDArray[np.float64]

_SWEEPS = 100
_ROUNDS = 20
_BLURS = (256.0, 64.0, 16.0, 4.0)
_TOLERANCE = 1e-3
_STALLED = 0.9  # a round of sweeps that gains less than this is the last
_GOLDEN = (5**0.5 - 1) / 2
_REPAIR = 1e-4  # share of mass from which what Sinkhorn left is matched exactly


@dataclass(frozen=True)
class Plans:
    """Couplings of weighted clouds at T times.

    weights: (m,) of the first cloud.  steps: (T-1, m, m) row-stochastic.  error: the largest L1
    distance from the right marginals that had to be repaired.  begin: the time where walks begin.
    """

    weights: Floats
    steps: NDArray[np.float32]
    error: float
    begin: int = 0

    def walk(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Particle indices (count, T) of `count` chains, spread as evenly as chance allows.

        Every chain alone is an exact draw of the Markov chain. Together they are stratified: over
        the particles at the time where they begin, and over the rows of the plan at each step, in
        an order shuffled afresh so that the past does not matter. From there they go on to the last
        time and back to the first, which has the same law as going forward only.
        """
        weights = [self.weights]
        for plan in self.steps[: self.begin]:
            weights.append(weights[-1] @ plan)
        walk = [rng.permutation(systematic(weights[-1], count, rng))]
        for plan in self.steps[self.begin :]:
            walk.append(_stratified(plan, walk[-1], rng))
        for plan, before in zip(self.steps[: self.begin][::-1], weights[:-1][::-1], strict=True):
            walk.insert(0, _stratified(_reversed(plan, before), walk[0], rng))
        return np.stack(walk, axis=1)


def couple(
    particles: Floats, weights: Floats, regularisation: Floats, coupling: CouplingName
) -> Plans:
    """Plans between neighbouring clouds.

    particles: (T, m, d).  weights: (T, m).  regularisation: (T-1,), ignored by exact plans.
    Walks begin where the cloud is widest: groups that are apart there get their exact shares, and
    keep them at times at which they cannot be told apart.
    """
    weights = weights / weights.sum(axis=1, keepdims=True)
    widest = _widest(particles, weights)
    if coupling == "exact":
        steps = [_exact(*pair) for pair in _neighbours(particles, weights)]
        return Plans(weights[0], np.stack(steps).astype(np.float32), 0.0, widest)
    rows = _entropic(particles, weights, regularisation)
    amiss = [
        _repair(plan, *pair)
        for plan, pair in zip(rows, _neighbours(particles, weights), strict=True)
    ]
    return Plans(weights[0], rows.astype(np.float32), max(amiss), widest)


def _widest(particles: Floats, weights: Floats) -> int:
    """The time of the largest total variance."""
    return int(np.argmax(list(map(total_variance, particles, weights))))


def _neighbours(particles: Floats, weights: Floats) -> list[tuple[Floats, Floats, Floats, Floats]]:
    """(x, y, a, b) of every edge."""
    return list(zip(particles[:-1], particles[1:], weights[:-1], weights[1:], strict=True))


def _exact(x: Floats, y: Floats, a: Floats, b: Floats) -> Floats:
    import ot

    plan = ot.emd(a, b, ot.dist(x, y), numItermax=5_000_000)
    rows: Floats = plan / plan.sum(axis=1, keepdims=True)
    return rows


def _entropic(particles: Floats, weights: Floats, regularisation: Floats) -> Floats:
    """Row-stochastic plans (T-1, m, m), as close to the right columns as Sinkhorn gets."""
    x = jnp.asarray(particles, jnp.float32)
    w = jnp.asarray(weights, jnp.float32)
    reg = jnp.asarray(regularisation, jnp.float32)
    state = sinkhorn.cold(x.shape[0] - 1, x.shape[1])

    def swept(factor: float, start: sinkhorn.Coupling) -> sinkhorn.Coupling:
        scale, pair = reg * factor, (w[:-1], w[1:])
        return sinkhorn.solve(x[:-1], x[1:], scale, start, pair, iterations=_SWEEPS)

    for factor in _BLURS:  # from blurred plans, which settle at once, to the wanted ones
        state = swept(factor, state)
        state = state._replace(g=4 * state.g)  # potentials are in units of the regularisation
    best = state = swept(1.0, state)
    for _ in range(_ROUNDS):
        before = float(best.error.max())
        if before < _TOLERANCE:
            break
        state = swept(1.0, state)
        best = _better(best, state)
        if float(best.error.max()) > _STALLED * before:
            break
    return np.asarray(_row_plans(x[:-1], x[1:], reg, best.g), dtype=np.float64)


def _better(one: sinkhorn.Coupling, other: sinkhorn.Coupling) -> sinkhorn.Coupling:
    """Of every problem, the potentials with the smaller error."""
    first = one.error <= other.error
    return sinkhorn.Coupling(
        jnp.where(first[:, None], one.f, other.f),
        jnp.where(first[:, None], one.g, other.g),
        jnp.minimum(one.error, other.error),
    )


@jax.jit
def _row_plans(x: jax.Array, y: jax.Array, reg: jax.Array, g: jax.Array) -> jax.Array:
    def one(problem: tuple[jax.Array, ...]) -> jax.Array:
        x, y, reg, g = problem
        return jax.nn.softmax(g[None, :] - sinkhorn.scaled_cost(x, y, reg), axis=1)

    return jax.lax.map(one, (x, y, reg, g))


def _repair(plan: Floats, x: Floats, y: Floats, a: Floats, b: Floats) -> float:
    """Give a row-stochastic plan (m, m), in place, the columns it should have: a @ plan = b.

    Sinkhorn cannot carry mass between far clusters whose weights differ a little. Columns that get
    too much are scaled down, and what is then missing in rows and columns is matched exactly.
    Returns the L1 distance that was amiss.
    """
    import ot

    joint = a[:, None] * plan
    columns = joint.sum(axis=0)
    amiss = float(np.abs(columns - b).sum())
    joint *= np.minimum(1.0, b / np.maximum(columns, 1e-30))
    rows = np.maximum(a - joint.sum(axis=1), 0.0)
    columns = np.maximum(b - joint.sum(axis=0), 0.0)
    total = rows.sum()
    if total > _REPAIR and columns.sum() > 0:
        some, others = np.flatnonzero(rows > 0), np.flatnonzero(columns > 0)
        supply, demand = rows[some] / total, columns[others] / columns[others].sum()
        joint[np.ix_(some, others)] += total * ot.emd(supply, demand, ot.dist(x[some], y[others]))
    elif total > 0 and columns.sum() > 0:
        joint += np.outer(rows, columns / columns.sum())
    plan[:] = joint / joint.sum(axis=1, keepdims=True)
    return amiss


def _reversed(plan: NDArray[np.float32], weights: Floats) -> NDArray[np.float32]:
    """Row-stochastic plan (m, m) from the later cloud to the earlier one, of these weights (m,)."""
    joint = (weights[:, None] * plan).T
    share = joint.sum(axis=1, keepdims=True)
    even = np.full_like(joint, 1 / len(joint))  # of a particle that nobody visits
    rows = np.divide(joint, share, out=even, where=share > 0)
    return rows.astype(np.float32)


def _stratified(
    plan: NDArray[np.float32], here: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """One step of every chain, from quantiles frac(u + rank * golden ratio) of its row.

    Ranks follow the rows. Particles are numbered along their cloud's main axis, so chains of like
    rows get evenly spaced quantiles and go to the places of the next cloud in even shares.
    """
    m = plan.shape[0]
    shuffled = rng.permutation(len(here))
    order = shuffled[np.argsort(here[shuffled], kind="stable")]
    at = here[order]
    quantile = np.mod(rng.uniform() + np.arange(len(at)) * _GOLDEN, 1.0)
    edges = np.cumsum(plan, axis=1, dtype=np.float64)
    edges /= edges[:, -1:]
    # laid end to end, all rows are searched at once; float64 leaves 2^-40 of resolution to a row
    laid = (edges + np.arange(m)[:, None]).ravel()
    found = np.searchsorted(laid, at + quantile, side="right") - at * m
    there = np.empty_like(here)
    there[order] = np.clip(found, 0, m - 1)
    return there
