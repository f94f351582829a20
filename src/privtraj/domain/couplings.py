"""Couplings inside a domain: exact optimal transport, as far as people have to walk.

The cost of a pair is the squared length of the shortest way, plus the squared differences of the
other features. Nobody leaves a connected part, as there is no way: each part is coupled by itself,
and has the same share of the people at all times.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array

from privtraj.base.arrays import LEAST_WEIGHT, Floats, Ints, steadied, total_variance
from privtraj.domain.domain import Plot
from privtraj.measures.base import Marginals
from privtraj.motion.couplings import Couplings, Discrete, Transition

_PIVOTS = 5_000_000


def parts_of(plot: Plot, particles: Floats) -> Ints:
    """Connected part (K, m) of every particle (K, m, d)."""
    places = particles[..., plot.axes].reshape(-1, 2)
    return plot.ground.part(places).reshape(particles.shape[:2])


def steadied_parts(plot: Plot, particles: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Particles (K, m, d) and weights (K, m) with the same share of people in a part at all times.

    The share is the mean over time, see `clouds.steadied`.
    """
    return steadied(particles, weights, parts_of(plot, particles))[:2]


def within(plot: Plot, marginals: Marginals) -> Marginals:
    """Marginals of which no mass is outside, and as much is in a part at all times."""
    particles, weights = steadied_parts(plot, plot.snapped(marginals.particles), marginals.weights)
    return marginals._replace(particles=particles, weights=weights)


def couplings_inside(
    plot: Plot, particles: Floats, weights: Floats, discrete: Discrete | None = None
) -> Couplings:
    """Couplings of particles (K, m, d), all inside, with weights (K, m).

    discrete: of particles that also have levels; its groups are within the parts.
    """
    weights = np.maximum(weights / weights.sum(axis=1, keepdims=True), LEAST_WEIGHT)
    part = parts_of(plot, particles) if discrete is None else discrete.groups
    codes = particles[..., :0] if discrete is None else discrete.codes
    transitions = []
    for k in range(len(particles) - 1):
        pair = slice(k, k + 2)
        joint = _joint(plot, particles[pair], weights[pair], part[pair], codes[pair])
        transitions.append(Transition(joint))
    widest = int(np.argmax(list(map(total_variance, particles, weights))))
    return Couplings(weights, transitions, 0.0, widest)


def _joint(plot: Plot, pair: Floats, weights: Floats, part: Ints, codes: Floats) -> coo_array:
    """The coupling (m, m) of two clouds (2, m, d), sparse; parts by themselves.

    codes: (2, m, e), whose squared distances add to the cost.
    """
    import ot
    from scipy.spatial.distance import cdist

    rows, columns, masses = [], [], []
    for p in np.unique(part[0]):
        i, j = np.flatnonzero(part[0] == p), np.flatnonzero(part[1] == p)
        if len(j) == 0:  # of a model that somebody made by hand: to the nearest there is
            away = np.linalg.norm(pair[0, i, None] - pair[1], axis=-1)
            rows.append(i)
            columns.append(away.argmin(axis=1))
            masses.append(weights[0, i])
            continue
        a, b = weights[0, i], weights[1, j]
        cost = _cost(plot, pair[0, i], pair[1, j])
        if codes.shape[-1]:
            cost = cost + cdist(codes[0, i], codes[1, j], "sqeuclidean")
        carried = coo_array(ot.emd(a / a.sum(), b / b.sum(), cost, _PIVOTS))
        rows.append(i[carried.row])
        columns.append(j[carried.col])
        masses.append(a.sum() * carried.data)
    flat = [np.concatenate(each) for each in (rows, columns, masses)]
    return coo_array((flat[2], (flat[0], flat[1])), shape=(len(pair[0]), len(pair[1])))


def _cost(plot: Plot, x: Floats, y: Floats) -> Floats:
    """Squared ways and squared differences of the other features (n, m)."""
    ways = plot.ground.distances(x[:, plot.axes], y[:, plot.axes])
    known = np.isfinite(ways)
    if not known.all():  # too narrow for the nodes
        ways = np.where(known, ways, 4.0 + ways[known].max(initial=0.0))
    others = np.setdiff1d(np.arange(x.shape[1]), plot.axes)
    squares = ((x[:, None, others] - y[None][:, :, others]) ** 2).sum(axis=-1)
    cost: Floats = ways**2 + squares
    return cost
