"""People who walk in a domain: who becomes whom, and the ways they go.

Couplings are exact optimal transport, as far as people have to walk: the cost of a pair is the
squared length of the shortest way, plus the squared differences of the other features. Nobody
leaves a connected part, as there is no way: each part is coupled by itself, and has the same share
of the people at all times.

A person is a chain of particles over the couplings and an offset of their own, as everywhere. At a
knot they are at their particle moved by the offset, which walls turn back; between knots they walk
the shortest way at constant speed. Features beside the two of the domain go straight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.base.arrays import LEAST_WEIGHT, Floats, Ints, total_variance, with_constant_shares
from privtraj.base.space import fold
from privtraj.domain.domain import Plot
from privtraj.motion.couplings import Couplings, Discrete, Transition, least_cost, sparse
from privtraj.motion.curves import Carrier, Curves, Places
from privtraj.motion.process import Interpolation
from privtraj.motion.states import Parts

if TYPE_CHECKING:
    from scipy.sparse import coo_array

BESIDE = 32  # people around somebody who would go through a wall whose ways are computed as well
PRICED, SWEEPS = 40.0, 32  # mean cost in units of the prices' blur, and sweeps: least time


def parts_of(plot: Plot, particles: Floats) -> Ints:
    """Connected part (K, m) of every particle (K, m, d)."""
    places = particles[..., plot.axes].reshape(-1, 2)
    return plot.ground.part(places).reshape(particles.shape[:2])


def within(plot: Plot, marginals: Any) -> Any:
    """Marginals (`measures.marginals`) of which no mass is outside, and as much is in a part at all
    times: the mean over time, see `with_constant_shares`."""
    particles = plot.snapped(marginals.particles)
    particles, weights, _ = with_constant_shares(
        particles, marginals.weights, parts_of(plot, particles)
    )
    return marginals._replace(particles=particles, weights=weights)


def couplings_inside(
    plot: Plot, particles: Floats, weights: Floats, discrete: Discrete | None = None
) -> Couplings:
    """Couplings of particles (K, m, d), all inside, with weights (K, m).

    discrete: of particles that also have levels; its groups are within the parts.
    """
    weights = np.maximum(weights / weights.sum(axis=1, keepdims=True), LEAST_WEIGHT)
    part = parts_of(plot, particles) if discrete is None else discrete.groups
    others = particles[..., np.setdiff1d(np.arange(particles.shape[2]), plot.axes)]
    if discrete is not None:
        others = np.concatenate([others, discrete.codes], axis=-1)
    places = particles[..., plot.axes]
    transitions = []
    for k in range(len(particles) - 1):
        rows, columns, masses = [], [], []
        for p in np.unique(part[k]):
            i, j = np.flatnonzero(part[k] == p), np.flatnonzero(part[k + 1] == p)
            if len(j) == 0:  # of a model that somebody made by hand: to the nearest there is
                away = np.linalg.norm(particles[k, i, None] - particles[k + 1], axis=-1)
                rows.append(i)
                columns.append(away.argmin(axis=1))
                masses.append(weights[k, i])
                continue
            pair = places[k, i], places[k + 1, j]
            rest = ((others[k, i, None] - others[k + 1, j]) ** 2).sum(axis=-1)
            plan = _shortest(plot, *pair, weights[k, i], weights[k + 1, j], rest)
            rows.append(i[plan.row])
            columns.append(j[plan.col])
            masses.append(weights[k, i].sum() * plan.data)
        row, column, mass = (np.concatenate(each) for each in (rows, columns, masses))
        transitions.append(Transition(sparse((mass, (row, column)), shape=2 * part[k].shape)))
    widest = int(np.argmax(list(map(total_variance, particles, weights))))
    return Couplings(weights, transitions, 0.0, widest)


def _shortest(plot: Plot, x: Floats, y: Floats, a: Floats, b: Floats, rest: Floats) -> coo_array:
    """The coupling (n, m) of weights a (n,) at x (n, 2) and b (m,) at y (m, 2), with total mass 1,
    of least squared ways, and what is beside them, rest (n, m).

    No way is shorter than the straight one, so that a coupling in which nobody would go straight
    through a wall is the right one. Ways are computed of those who would, and of who is next to
    them; if others would then, of everybody.
    """
    from scipy.spatial.distance import cdist

    cost, known = cdist(x, y) ** 2 + rest, np.zeros(len(x), bool)
    while True:
        plan = _plan(a, b, cost)
        straight = np.flatnonzero(~known[plan.row])
        row, column = plan.row[straight], plan.col[straight]
        through = np.unique(row[~plot.ground.sees(x[row], y[column])])
        if len(through) == 0:
            return plan
        if known.any():
            through = np.flatnonzero(~known)
        else:
            through = np.unique(np.argsort(cdist(x[through], x), axis=1)[:, :BESIDE])
        known[through] = True
        ways = plot.ground.distances(x[through], y)
        finite = np.isfinite(ways)  # else too narrow for the nodes
        ways = np.where(finite, ways, 4.0 + ways[finite].max(initial=0.0))
        cost[through] = ways**2 + rest[through]


def _plan(a: Floats, b: Floats, cost: Floats) -> coo_array:
    """The coupling of least cost (n, m); of equal weights a matching, which is found faster: prices
    of columns, by sweeps of entropic transport, leave its time a third, and the best the best."""
    if len(a) != len(b) or np.ptp(a) != 0 or np.ptp(b) != 0:
        return least_cost(a / a.sum(), b / b.sum(), cost)
    from scipy.optimize import linear_sum_assignment

    left = cost - cost.min(axis=1, keepdims=True)
    blur = max(left.mean() / PRICED, 1e-300)
    kernel = np.exp(np.maximum(-left / blur, -40).astype(np.float32))
    v = np.ones(len(left), np.float32)
    for _ in range(SWEEPS):
        v = 1 / (1 / (kernel @ v) @ kernel)
    left -= blur * np.log(v)
    row, column = linear_sum_assignment(left - left.min(axis=1, keepdims=True))
    return sparse((np.full(len(a), 1 / len(a)), (row, column)), shape=cost.shape)


@dataclass(frozen=True)
class OnFoot(Carrier):
    """Inside a domain: chains over its couplings, and from knot to knot by the shortest way.

    numbers: (K, m, dm) particles inside.  states: of everything beside the numbers that move, for
    chains (n, K).
    """

    plot: Plot
    couplings: Couplings
    numbers: Floats
    clock: Floats
    states: Callable[[Ints], Curves]
    parts: Parts

    def people(
        self,
        n: int,
        where: Floats,
        width: Floats,
        interpolation: Interpolation | None,
        rng: np.random.Generator,
    ) -> Places:
        chain, parts, plot = self.couplings.walk(n, rng), self.parts, self.plot

        def numbers(people: slice, rng: np.random.Generator) -> Floats:
            start = self.numbers[np.arange(len(self.clock)), chain[people]]
            offset = rng.standard_normal(start[:, 0].shape)
            knots = np.asarray(fold(start + width[:, None] * offset[:, None]), np.float64)
            left = np.clip(np.searchsorted(self.clock, where, side="right") - 1, 0, len(width) - 2)
            for k in np.union1d(left, left + 1):  # the others are not walked by
                step = width[k] * offset[:, plot.axes]
                knots[:, k, plot.axes] = plot.ground.moved(start[:, k, plot.axes], step)
            return walked(plot, knots, self.clock, where)

        if parts.plain:
            return numbers
        others = self.states(chain).others(where, float(width.mean()))

        def places(people: slice, rng: np.random.Generator) -> Any:
            unit = others(np.arange(n)[people], rng).astype(np.float64)
            unit[..., parts.moving] = numbers(people, rng)
            return unit

        return places


def walked(plot: Plot, knots: Floats, clock: Floats, times: Floats) -> Floats:
    """Places (n, q, d) at times (q,) of people who are at knots (n, K, d) at the times `clock`."""
    left = np.clip(np.searchsorted(clock, times, side="right") - 1, 0, len(clock) - 2)
    values = np.empty((len(knots), len(times), knots.shape[2]))
    for k in np.unique(left):
        now = np.flatnonzero(left == k)
        shares = (times[now] - clock[k]) / (clock[k + 1] - clock[k])
        start, end = knots[:, k], knots[:, k + 1]
        values[:, now] = (1 - shares[:, None]) * start[:, None] + shares[:, None] * end[:, None]
        ways = plot.ground.ways(start[:, plot.axes], end[:, plot.axes])
        for axis, places in zip(plot.axes, np.moveaxis(ways.at(shares), -1, 0), strict=True):
            values[:, now, axis] = places
    return values
