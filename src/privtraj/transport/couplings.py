"""Couplings between neighbouring times, and walks along them.

The composed coupling of the representer theorem is a Markov chain: from particle k at time i to
particle l at time i+1 with probability P_i[k, l] / sum_l P_i[k, l]. Entropic plans are those of the
Schroedinger bridge, exact plans those of optimal transport.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from privtraj.arrays import Floats, Singles
from privtraj.clouds import systematic, total_variance
from privtraj.transport import sinkhorn

CouplingName = Literal["entropic", "exact"]

_REPAIR = 1e-4  # share of mass from which what Sinkhorn left is matched exactly
_TOLERANCE = 2 * _REPAIR  # of its L1 error, which counts too much here and too little there
_GOLDEN = (5**0.5 - 1) / 2
_KEPT = 2**27  # entries of all plans up to which they are kept rather than made for every walk
_BLOCK = 2**20  # entries of the rows of a plan searched at once


@dataclass(frozen=True)
class Couplings:
    """Couplings of weighted clouds at T times.

    weights: (T, m).  edges: T-1 plans, row-stochastic (m, m), or what makes them.
    error: the largest L1 distance from the right marginals that had to be repaired.
    begin: the time where walks begin.
    """

    weights: Floats
    edges: Singles | list[Edge]
    error: float
    begin: int = 0

    @property
    def steps(self) -> Singles:
        """(T-1, m, m) row-stochastic, all at once."""
        return np.stack([self._step(i) for i in range(len(self.edges))])

    def walk(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Particle indices (count, T) of `count` chains, spread as evenly as chance allows.

        Every chain alone is an exact draw of the Markov chain. Together they are stratified: over
        the particles at the time where they begin, and over the rows of the plan at each step, in
        an order shuffled afresh so that the past does not matter. From there they go on to the last
        time and back to the first, which has the same law as going forward only.
        """
        walk = [rng.permutation(systematic(self.weights[self.begin], count, rng))]
        for i in range(self.begin, len(self.edges)):
            walk.append(_stratified(self._step(i), walk[-1], rng))
        for i in reversed(range(self.begin)):
            back = _reversed(self._step(i), self.weights[i])
            walk.insert(0, _stratified(back, walk[0], rng))
        return np.stack(walk, axis=1)

    def _step(self, i: int) -> Singles:
        edge = self.edges[i]
        return edge.matrix() if isinstance(edge, Edge) else edge


@dataclass(frozen=True)
class Edge:
    """The plan between two clouds x and y in few numbers, made when a walk crosses it.

    extra_ij + scale_j softmax_j(g_j - |x_i - y_j|^2 / (2 reg)), the latter if it is entropic.
    extra: sparse (m, m).  soft: x, y (m, d), reg (), g (m,).  scale: (m,).
    """

    extra: coo_array
    soft: tuple[Singles, ...] = ()
    scale: Floats | float = 1.0

    def matrix(self) -> Singles:
        """Row-stochastic (m, m)."""
        if self.soft:
            joint = np.multiply(_softmax(*self.soft), np.float32(self.scale))
        else:
            joint = np.zeros(self.extra.shape, np.float32)
        np.add.at(joint, (self.extra.row, self.extra.col), self.extra.data)
        return _row_stochastic(joint)


def couple(
    particles: Floats, weights: Floats, regularisation: Floats, coupling: CouplingName
) -> Couplings:
    """Couplings between neighbouring clouds.

    particles: (T, m, d).  weights: (T, m).  regularisation: (T-1,), ignored by exact plans.
    Walks begin where the cloud is widest: groups that are apart there get their exact shares, and
    keep them at times at which they cannot be told apart.
    """
    weights = weights / weights.sum(axis=1, keepdims=True)
    pairs = list(zip(particles[:-1], particles[1:], weights[:-1], weights[1:], strict=True))
    amiss = [0.0]
    if coupling == "exact":
        edges = [Edge(_exact(*pair)) for pair in pairs]
    else:
        x, w, reg = (array.astype(np.float32) for array in (particles, weights, regularisation))
        g = sinkhorn.settle(x[:-1], x[1:], reg, (w[:-1], w[1:]), _TOLERANCE).g
        found = [_repaired(*each) for each in zip(pairs, reg, np.asarray(g), strict=True)]
        edges, amiss = [edge for edge, _ in found], [error for _, error in found]
    widest = int(np.argmax(list(map(total_variance, particles, weights))))
    plans = Couplings(weights, edges, max(amiss), widest)
    few = len(edges) * weights.shape[1] ** 2 <= _KEPT
    return replace(plans, edges=plans.steps) if few else plans


def _exact(x: Floats, y: Floats, a: Floats, b: Floats) -> coo_array:
    """The plan (m, n) of least cost: at most m + n - 1 of its entries are not zero."""
    import ot

    return coo_array(ot.emd(a, b, ot.dist(x, y), numItermax=5_000_000))


@jax.jit
def _softmax(x: jax.Array, y: jax.Array, reg: jax.Array, g: jax.Array) -> jax.Array:
    return jax.nn.softmax(g[None, :] - sinkhorn.scaled_cost(x, y, reg), axis=1)


def _repaired(
    pair: tuple[Floats, Floats, Floats, Floats], reg: float, g: Singles
) -> tuple[Edge, float]:
    """The plan of potential g (m,) with the columns it should have, and the L1 distance amiss.

    Sinkhorn cannot carry mass between far clusters whose weights differ a little. Columns that get
    too much are scaled down, and what is then missing in rows and columns is matched.
    """
    x, y, a, b = pair
    soft = (x.astype(np.float32), y.astype(np.float32), np.asarray(reg, np.float32), g)
    plan = np.asarray(_softmax(*soft))
    columns = a.astype(np.float32) @ plan
    scale = np.minimum(1.0, b / np.maximum(columns, 1e-30))
    rows = np.maximum(a - a * (plan @ scale.astype(np.float32)), 0.0)
    left = np.maximum(b - columns * scale, 0.0)
    matched = _matched(rows, left, x, y)
    shares = matched.data / a[matched.row]
    extra = coo_array((shares, (matched.row, matched.col)), shape=plan.shape)
    return Edge(extra, soft, scale), float(np.abs(columns - b).sum())


def _matched(rows: Floats, columns: Floats, x: Floats, y: Floats) -> coo_array:
    """Masses (m, m) that send what `rows` (m,) have at x to where `columns` (m,) miss it at y.

    By optimal transport, or in the order of the particles where it is too little to matter.
    """
    total, missed = rows.sum(), columns.sum()
    shape = len(rows), len(columns)
    if total == 0 or missed == 0:
        return coo_array(shape)
    columns = columns * (total / missed)
    if total <= _REPAIR:
        return _in_order(rows, columns)
    i, j = np.flatnonzero(rows), np.flatnonzero(columns)
    found = _exact(x[i], y[j], rows[i] / total, columns[j] / total)
    return coo_array((total * found.data, (i[found.row], j[found.col])), shape=shape)


def _in_order(rows: Floats, columns: Floats) -> coo_array:
    """The coupling (m, m) of equal masses that matches quantile with quantile."""
    ends = np.cumsum(rows), np.cumsum(columns)
    cuts = np.sort(np.concatenate(ends))
    mass = np.diff(cuts, prepend=0.0)
    i, j = (np.minimum(np.searchsorted(end, cuts - mass / 2), len(end) - 1) for end in ends)
    return coo_array((mass, (i, j)), shape=(len(rows), len(columns)))


def _reversed(plan: Singles, weights: Floats) -> Singles:
    """Row-stochastic plan (m, m) from the later cloud to the earlier one, of these weights (m,)."""
    return _row_stochastic(np.multiply(plan.T, weights.astype(np.float32), order="C"))


def _row_stochastic(joint: Singles) -> Singles:
    """Rows (m, m) over their sums, in place; even ones for a particle that nobody visits."""
    sums = joint.sum(axis=1)
    joint[sums == 0] = 1.0
    joint /= np.where(sums == 0, len(joint), sums)[:, None].astype(np.float32)
    return joint


def _stratified(
    plan: Singles, here: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """One step of every chain, from quantiles frac(u + rank * golden ratio) of its row.

    Ranks follow the rows. Particles are numbered along their cloud's main axis, so chains of like
    rows get evenly spaced quantiles and go to the places of the next cloud in even shares.
    """
    m = plan.shape[0]
    shuffled = rng.permutation(len(here))
    numbers = here[shuffled].astype(np.min_scalar_type(m))  # small ones are sorted by radix
    order = shuffled[np.argsort(numbers, kind="stable")]
    at = here[order]
    quantile = np.mod(rng.uniform() + np.arange(len(at)) * _GOLDEN, 1.0)
    there = np.empty_like(here)
    height = max(1, _BLOCK // m)
    for first in range(0, m, height):
        mine = slice(*np.searchsorted(at, (first, first + height)))
        edges = np.cumsum(plan[first : first + height], axis=1, dtype=np.float64)
        edges /= edges[:, -1:]
        # laid end to end, all rows are searched at once; float64 leaves 2^-40 of resolution to one
        laid = (edges + np.arange(len(edges))[:, None]).ravel()
        row = at[mine] - first
        found = np.searchsorted(laid, row + quantile[mine], side="right") - row * m
        there[order[mine]] = np.clip(found, 0, m - 1)
    return there
