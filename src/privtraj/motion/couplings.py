"""Couplings between neighbouring times, and walks along them.

The composed coupling of the representer theorem is a Markov chain: from particle k at time i to
particle l at time i+1 with probability P_i[k, l] / sum_l P_i[k, l]: its transition matrix. Entropic
couplings are those of the Schroedinger bridge, exact ones those of optimal transport.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from privtraj.base.arrays import LEAST_WEIGHT, Floats, Ints, Singles, systematic, total_variance
from privtraj.motion.process import Reference

if TYPE_CHECKING:
    from scipy.sparse import coo_array

CouplingName = Literal["entropic", "exact"]

RARE = 9.2
"""-log of the chance of a jump over a gap that nothing asks for, one in 10^4: few jumps, and
potentials that Sinkhorn still finds."""

_REPAIR = 1e-4  # one person in 10,000: with less mass amiss it does not matter who is matched
_TOLERANCE = 2 * _REPAIR  # of Sinkhorn's L1 error, which counts too much here and too little there
_GOLDEN = (5**0.5 - 1) / 2  # its multiples mod 1 are spread most evenly, however many there are
_PIVOTS = 5_000_000  # of exact transport; POT's 100,000 end too early for large clouds
_SMALLEST = 1e-30  # of a divisor: far below any mass, far above what float32 rounds to zero
# Memory: 2^27 entries of float32 are 512 MB, 2^20 of float64 8 MB
_KEPT = 2**27  # entries of all matrices up to which they are kept rather than made for every walk
_BLOCK = 2**20  # entries of the rows of a matrix searched at once


class Discrete(NamedTuple):
    """What particles have beside numbers. codes: (T, m, e), whose squared distance is the number of
    jumps between two of them.  groups: (T, m) of those who may become each other."""

    codes: Floats
    groups: Ints


@dataclass(frozen=True)
class Couplings:
    """Couplings of weighted clouds at T times.

    weights: (T, m).  transitions: T-1 row-stochastic matrices (m, m), or what makes them.
    error: the largest L1 distance from the right marginals that had to be repaired.
    begin: the time where walks begin.
    """

    weights: Floats
    transitions: Singles | list[Transition]
    error: float
    begin: int = 0

    @property
    def matrices(self) -> Singles:
        """(T-1, m, m) row-stochastic, all at once."""
        return np.stack([self._matrix(i) for i in range(len(self.transitions))])

    def walk(self, count: int, rng: np.random.Generator) -> Ints:
        """Particle indices (count, T) of `count` chains, spread as evenly as chance allows.

        Every chain alone is an exact draw of the Markov chain. Together they are stratified: over
        the particles at the time where they begin, and over the rows of the matrix at each step, in
        an order shuffled afresh so that the past does not matter. From there they go on to the last
        time and back to the first, which has the same law as going forward only.
        """
        walk = [rng.permutation(systematic(self.weights[self.begin], count, rng))]
        for i in range(self.begin, len(self.transitions)):
            walk.append(_stratified(self._step(i), walk[-1], rng))
        for i in reversed(range(self.begin)):
            walk.insert(0, _stratified(self._step(i, back=True), walk[0], rng))
        return np.stack(walk, axis=1)

    def _step(self, i: int, back: bool = False) -> Any:
        """A row-stochastic matrix (m, m), or, as somebody is in every row, one of few entries."""
        if (i, back) in self._few:
            return self._few[i, back]
        one, weights = self.transitions[i], self.weights[i].astype(np.float32)
        if isinstance(one, Transition) and not one.soft:
            few = one.extra.tocsr()
            if back:
                few = few.multiply((weights / few.sum(axis=1))[:, None]).T.tocsr()
            few.sort_indices()
            if (sums := few.sum(axis=1)).min() > 0:
                few.data = few.data / np.repeat(sums, np.diff(few.indptr))
                return self._few.setdefault((i, back), few)
        matrix = self._matrix(i)
        return _row_stochastic(np.multiply(matrix.T, weights, order="C")) if back else matrix

    @cached_property
    def _few(self) -> dict[tuple[int, bool], Any]:
        """Steps of few entries, by their number and whether back."""
        return {}

    def _matrix(self, i: int) -> Singles:
        transition = self.transitions[i]
        return transition.matrix() if isinstance(transition, Transition) else transition


@dataclass(frozen=True)
class Transition:
    """The matrix from a cloud x to a cloud y in few numbers, made when a walk crosses it.

    extra_ij + scale_j softmax_j(g_j - |x_i - y_j|^2 / (2 reg)), the latter if it is entropic.
    extra: sparse (m, m).  soft: x, y (m, d), reg (), g (m,).  scale: (m,).
    groups: of x and of y (m,) each, if only those of a group become each other.
    """

    extra: coo_array
    soft: tuple[Singles, ...] = ()
    scale: Floats | float = 1.0
    groups: tuple[Ints, ...] = ()

    def matrix(self) -> Singles:
        """Row-stochastic (m, m)."""
        if self.soft:
            joint = np.multiply(_rows(self.soft, self.groups), np.float32(self.scale))
        else:
            joint = np.zeros(self.extra.shape, np.float32)
        np.add.at(joint, (self.extra.row, self.extra.col), self.extra.data)
        return _row_stochastic(joint)


def _rows(soft: tuple[Any, ...], groups: tuple[Ints, ...]) -> Any:
    """Row-stochastic (m, m) of an entropic coupling, within groups if there are any."""
    alone, within = _softmax()
    return within(*soft, *groups) if groups else alone(*soft)


@cache
def _softmax() -> tuple[Any, Any]:
    """Rows of an entropic coupling, of all particles and within groups, compiled."""
    import jax

    from privtraj.motion import sinkhorn

    return jax.jit(sinkhorn.transition), jax.jit(sinkhorn.transition_within)


def couple(
    particles: Floats,
    weights: Floats,
    gaps: Floats,
    reference: Reference,
    coupling: CouplingName,
    discrete: Discrete | None = None,
) -> Couplings:
    """Couplings between neighbouring clouds under a reference process.

    particles: (T, m, d) of numbers.  weights: (T, m).  gaps: (T-1,) in time, which begins at 0.
    discrete: of particles that also have levels. A jump adds 1 to the squared distance of an exact
        coupling, the whole width of a number, and `RARE` to the -log density of an entropic one.
    Walks begin where the cloud is widest: groups that are apart there get their exact shares, and
    keep them at times at which they cannot be told apart.
    """
    weights = np.maximum(weights / weights.sum(axis=1, keepdims=True), LEAST_WEIGHT)
    weights /= weights.sum(axis=1, keepdims=True)
    legs = zip(particles[:-1], np.cumsum(gaps) - gaps, gaps, strict=True)
    x, y = np.stack([reference.ahead(*leg) for leg in legs]), particles[1:]
    variance = reference.variance(gaps)
    groups: list[tuple[Ints, ...]] = [()] * len(gaps)
    if discrete is not None:
        jump = np.sqrt(2 * RARE * variance) if coupling == "entropic" else np.ones_like(gaps)
        codes = (jump[:, None, None] * side for side in (discrete.codes[:-1], discrete.codes[1:]))
        x, y = (np.concatenate(pair, axis=-1) for pair in zip((x, y), codes, strict=True))
        groups = list(zip(discrete.groups[:-1], discrete.groups[1:], strict=True))
        particles = np.concatenate([particles, discrete.codes], axis=-1)
    problems = x, y, weights[:-1], weights[1:]
    if coupling == "exact":
        masses = zip(*problems, groups, strict=True)
        transitions, error = [Transition(_exact(*each)) for each in masses], 0.0
    else:
        from privtraj.motion import sinkhorn

        singles = (array.astype(np.float32) for array in (*problems, variance))
        x32, y32, a32, b32, reg = singles
        g = np.asarray(sinkhorn.settle(x32, y32, reg, (a32, b32), _TOLERANCE).g)
        repaired = [_repaired(*each) for each in zip(*problems, reg, g, groups, strict=True)]
        transitions, error = [each for each, _ in repaired], max(error for _, error in repaired)
    widest = int(np.argmax(list(map(total_variance, particles, weights))))
    couplings = Couplings(weights, transitions, error, widest)
    few = len(transitions) * weights.shape[1] ** 2 <= _KEPT
    return replace(couplings, transitions=couplings.matrices) if few else couplings


def sparse(*entries: Any, **shape: Any) -> coo_array:
    """A matrix of few entries; SciPy is loaded where one is made."""
    from scipy.sparse import coo_array

    return coo_array(*entries, **shape)


def least_cost(a: Floats, b: Floats, cost: Floats) -> coo_array:
    """The coupling of a (m,) and b (n,) of least cost (m, n): at most m + n - 1 of its entries are
    not zero."""
    import ot

    return sparse(ot.emd(a, b, cost, numItermax=_PIVOTS))


def _exact(x: Floats, y: Floats, a: Floats, b: Floats, groups: tuple[Ints, ...] = ()) -> coo_array:
    """The coupling of least squared distance from x (m, d) to y (n, d), group by group if there are
    any, which have the same mass in a (m,) and b (n,)."""
    if not groups:
        import ot

        return least_cost(a, b, ot.dist(x, y))
    rows, columns, masses = [], [], []
    for group in np.unique(groups[0][a > 0]):
        i, j = (np.flatnonzero(side == group) for side in groups)
        i, j = i[a[i] > 0], j[b[j] > 0]
        if len(j):
            part = _exact(x[i], y[j], a[i] / a[i].sum(), b[j] / b[j].sum())
            rows.append(i[part.row])
            columns.append(j[part.col])
            masses.append(a[i].sum() * part.data)
    if not rows:
        return sparse((len(a), len(b)))
    row, column, mass = (np.concatenate(each) for each in (rows, columns, masses))
    return sparse((mass, (row, column)), shape=(len(a), len(b)))


def _repaired(
    x: Floats,
    y: Floats,
    a: Floats,
    b: Floats,
    reg: np.float32,
    g: Singles,
    groups: tuple[Ints, ...],
) -> tuple[Transition, float]:
    """The transition of potential g (m,) with the right columns, and their L1 error before.

    Sinkhorn cannot carry mass between far clusters whose weights differ a little. Columns that get
    too much are scaled down, and what is then missing in rows and columns is matched.
    """
    soft = (x.astype(np.float32), y.astype(np.float32), np.asarray(reg), g)
    matrix = np.asarray(_rows(soft, groups))
    columns = a.astype(np.float32) @ matrix
    scale = np.minimum(1.0, b / np.maximum(columns, _SMALLEST))
    rows = np.maximum(a - a * (matrix @ scale.astype(np.float32)), 0.0)
    missing = np.maximum(b - columns * scale, 0.0)
    matched = _matched(rows, missing, x, y, groups)
    shares = matched.data / a[matched.row]
    extra = sparse((shares, (matched.row, matched.col)), shape=matrix.shape)
    return Transition(extra, soft, scale, groups), float(np.abs(columns - b).sum())


def _matched(
    rows: Floats, columns: Floats, x: Floats, y: Floats, groups: tuple[Ints, ...]
) -> coo_array:
    """Masses (m, m) that send what `rows` (m,) have at x to where `columns` (m,) miss it at y.

    By optimal transport, or in the order of the particles where it is too little to matter.
    """
    total, missed = rows.sum(), columns.sum()
    shape = len(rows), len(columns)
    if total == 0 or missed == 0:
        return sparse(shape)
    columns = columns * (total / missed)
    if groups:
        part = _exact(x, y, rows / total, columns / total, groups)
        return sparse((total * part.data, (part.row, part.col)), shape=shape)
    if total <= _REPAIR:
        return _in_order(rows, columns)
    i, j = np.flatnonzero(rows), np.flatnonzero(columns)
    part = _exact(x[i], y[j], rows[i] / total, columns[j] / total)
    return sparse((total * part.data, (i[part.row], j[part.col])), shape=shape)


def _in_order(rows: Floats, columns: Floats) -> coo_array:
    """The coupling (m, m) of equal masses that matches quantile with quantile."""
    ends = np.cumsum(rows), np.cumsum(columns)
    cuts = np.sort(np.concatenate(ends))
    mass = np.diff(cuts, prepend=0.0)
    i, j = (np.minimum(np.searchsorted(end, cuts - mass / 2), len(end) - 1) for end in ends)
    return sparse((mass, (i, j)), shape=(len(rows), len(columns)))


def _row_stochastic(joint: Singles) -> Singles:
    """Rows (m, m) over their sums, in place; even ones for a particle that nobody visits."""
    sums = joint.sum(axis=1)
    joint[sums == 0] = 1.0
    joint /= np.where(sums == 0, len(joint), sums)[:, None].astype(np.float32)
    return joint


def _stratified(matrix: Any, here: Ints, rng: np.random.Generator) -> Ints:
    """One step of every chain, from quantiles frac(u + rank * golden ratio) of its row.

    Ranks follow the rows. Particles are numbered along their cloud's main axis, so chains of like
    rows get evenly spaced quantiles and go to the places of the next cloud in even shares.
    """
    m = matrix.shape[0]
    shuffled = rng.permutation(len(here))
    numbers = here[shuffled].astype(np.min_scalar_type(m))  # small ones are sorted by radix
    order = shuffled[np.argsort(numbers, kind="stable")]
    at = here[order]
    quantile = np.mod(rng.uniform() + np.arange(len(at)) * _GOLDEN, 1.0)
    there = np.empty_like(here)
    if not isinstance(matrix, np.ndarray):
        starts = matrix.indptr
        entry = np.searchsorted(np.cumsum(matrix.data), at + quantile, side="right")
        there[order] = matrix.indices[np.clip(entry, starts[at], starts[at + 1] - 1)]
        return there
    height = max(1, _BLOCK // m)
    for first in range(0, m, height):
        mine = slice(*np.searchsorted(at, (first, first + height)))
        row = at[mine] - first
        edges = np.cumsum(matrix[first : first + height], axis=1, dtype=np.float64)
        edges /= edges[:, -1:]
        # laid end to end, all rows are searched at once; float64 leaves 2^-40 of resolution to one
        laid = (edges + np.arange(len(edges))[:, None]).ravel()
        columns = np.searchsorted(laid, row + quantile[mine], side="right") - row * m
        there[order[mine]] = np.clip(columns, 0, m - 1)
    return there
