"""Unbalanced least action: who becomes whom if people multiply in some places and vanish in others.

Between two knots everybody at x has e^(g(x) dt) descendants on average: none, one or several, as
many together as there are people at the next knot, with whom they are matched as in
`reference.least_action`. Mass that grew need not be transported.

Where g is not known it is learned from the clouds a and b of neighbouring knots: those who go from
one to the other, P, end as b says and begin nearly as a says,
    min over P   sum P |ahead(x) - y|^2 / 2  +  APART^2 KL(P 1 | a),       P' 1 = b,
so that x has r(x) = (P 1)(x) / a(x) descendants more or less than the mean: growth is likelier than
motion over distances beyond APART. It is solved by Sinkhorn's algorithm with a little entropy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints, systematic
from privtraj.motion.growth.sizes import Sizes
from privtraj.motion.reference.base import Reference
from privtraj.motion.reference.least_action import FITTED, MOST_MATCHED, matched

APART = 0.2
"""Distance, in shares of the box, beyond which masses change by growth rather than by motion."""
BLUR = 0.05
"""Of Sinkhorn's entropy, in shares of APART^2: .04 of the box, less than groups are apart."""
ITERATIONS = 200
"""Of Sinkhorn's algorithm, each of which leaves 1 / (1 + BLUR) of an error in the masses."""

UnitRate = Callable[[Floats, float], Floats]
"""g(x, t) (n,) of places (n, d) in the unit cube, per range of time."""


class Pedigree(NamedTuple):
    """Everybody who ever lived. knots: (S, K, d), before they are born those of their mother.

    born, died: (S,) number of the knot after which they are born, -1 for those who are there from
    the start, and after which they are no more, K - 1 for those who stay.
    mother: (S,) -1 for those who are there from the start.  clock: (K,).  alive: (K,) how many.
    """

    knots: Floats
    born: Ints
    died: Ints
    mother: Ints
    clock: Floats
    alive: Ints

    def moment(self, side: int, share: Floats, who: Ints | slice = slice(None)) -> Floats:
        """Births (side 0) or ends (1) of some of them: where the number between two knots has gone
        this share (n,) of its way, as it grows exponentially."""
        knot = (self.born if side == 0 else self.died)[who]
        here = np.clip(knot, 0, len(self.clock) - 2)
        ratio = np.log(self.alive[here + 1] / self.alive[here])
        flat = np.abs(ratio) < 1e-9
        way = np.log1p(share * np.expm1(ratio)) / np.where(flat, 1.0, ratio)
        times = self.clock[here] + np.diff(self.clock)[here] * np.where(flat, share, way)
        return np.where(knot < 0, 0.0, np.where(knot == len(self.clock) - 1, 1.0, times))


def pedigree(
    particles: Floats,
    weights: Floats,
    clock: Floats,
    reference: Reference,
    sizes: Sizes | None,
    rate: UnitRate | None,
) -> Pedigree:
    """Through weighted clouds (K, m, d), with weights (K, m), at times (K,).

    sizes: N(t); None if it follows from the rate.  rate: None if it is to be learned.
    """
    alive = _numbers(particles, weights, clock, sizes, rate)
    clouds = [
        cloud[systematic(share, count)]
        for cloud, share, count in zip(particles, weights, alive, strict=True)
    ]
    past, here = clouds[0][:, None], np.arange(alive[0])  # everybody so far (S, k + 1, d)
    born, died, mother = (np.full(alive[0], value) for value in (-1, len(clock) - 1, -1))
    for k, (t, dt) in enumerate(zip(clock, np.diff(clock), strict=False)):
        cloud = clouds[k]
        onward = np.asarray(reference.ahead(cloud, t, dt))
        grown = _grown(cloud, onward, clouds[k + 1], t, dt, rate)
        mothers = systematic(grown, alive[k + 1])  # in order, so that twins are neighbours
        to = matched(onward[mothers], clouds[k + 1])
        if rate is None:
            mothers, to = _nearby(onward, clouds[k + 1], mothers, to)
        first = np.append(True, mothers[1:] != mothers[:-1])
        gone = np.setdiff1d(np.arange(alive[k]), mothers)
        daughters = here[mothers[~first]]  # numbered as their mothers, for now
        died[here[gone]] = k
        born = np.append(born, np.full(len(daughters), k))
        died = np.append(died, np.full(len(daughters), len(clock) - 1))
        mother = np.append(mother, daughters)
        who = here[mothers]
        who[~first] = len(past) + np.arange(len(daughters))
        past = np.concatenate([past, past[daughters]])
        now = past[:, -1].copy()  # the dead stay where they were
        now[here[gone]] = onward[gone]
        now[who] = clouds[k + 1][to]
        past = np.concatenate([past, now[:, None]], axis=1)
        here = who[np.argsort(to)]
    return Pedigree(past, born, died, mother, clock, alive)


def _grown(
    cloud: Floats, onward: Floats, later: Floats, t: float, dt: float, rate: UnitRate | None
) -> Floats:
    """Descendants (n,) of people at x (n, d), up to a factor."""
    if rate is not None:
        logs = dt * (rate(cloud, t) + rate(onward, t + dt)) / 2
        return np.asarray(np.exp(logs - logs.max()))
    some = max(1, -(-len(onward) // FITTED)), max(1, -(-len(later) // FITTED))
    return descendants(onward[:: some[0]], later[:: some[1]], onward)


def _nearby(x: Floats, y: Floats, mothers: Ints, to: Ints) -> tuple[Ints, Ints]:
    """Mothers (m,), in order, and places y_to (m, d) of their descendants, of whom none goes APART
    farther than most: numbers are whole, and one too few here would come from over there."""
    from scipy.spatial import cKDTree

    way = np.linalg.norm(x[mothers] - y[to], axis=1)
    far = way > np.median(way) + APART
    mothers = mothers.copy()
    mothers[far] = cKDTree(x).query(y[to[far]])[1]
    order = np.argsort(mothers, kind="stable")
    return mothers[order], to[order]


def descendants(x: Floats, y: Floats, places: Floats) -> Floats:
    """r (k,) of places (k, d), from people at x (n, d), carried on, and at y (m, d), learned.

    With f and g the potentials of x and y,  r = exp(-f / APART^2)  and  f is, at any place,
        f = -soft min over y of |place - y|^2 / 2 - g(y),  times 1 / (1 + BLUR).
    """
    from scipy.spatial.distance import cdist

    keep, blur = APART**2, BLUR * APART**2
    cost = cdist(x, y, "sqeuclidean") / 2
    f, g = np.zeros(len(x)), np.zeros(len(y))
    for _ in range(ITERATIONS):
        g = -_soft_max(f[:, None] - cost, blur, axis=0)
        f = -_soft_max(g - cost, blur, axis=1) / (1 + BLUR)
    anywhere = -_soft_max(g - cdist(places, y, "sqeuclidean") / 2, blur, axis=1) / (1 + BLUR)
    return np.asarray(np.exp((anywhere.min() - anywhere) / keep))


def _soft_max(values: Floats, blur: float, axis: int) -> Floats:
    """blur log mean exp(values / blur)."""
    top = values.max(axis=axis, keepdims=True)
    means = np.exp((values - top) / blur).mean(axis=axis)
    return np.asarray(np.squeeze(top, axis) + blur * np.log(means))


def _numbers(
    particles: Floats, weights: Floats, clock: Floats, sizes: Sizes | None, rate: UnitRate | None
) -> Ints:
    """(K,) people at the knots: MOST_MATCHED on average, twice as many at most, one at least."""
    if sizes is not None:
        size = sizes.at(clock)
    else:
        assert rate is not None
        clouds = zip(particles, weights, clock, strict=True)
        means = np.array([share @ rate(cloud, t) for cloud, share, t in clouds])
        logs = np.append(0.0, np.cumsum(np.diff(clock) * (means[1:] + means[:-1]) / 2))
        size = np.exp(logs - logs.max())
    most = MOST_MATCHED * min(2.0, 1 / float(size.mean()))
    return np.maximum(np.rint(most * size), 1).astype(np.int64)
