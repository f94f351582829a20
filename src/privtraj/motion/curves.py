"""Curves that carry people: who goes along which, and where they are at any time.

People on curves c_p(t) of least action have the right law at every time, and never forget where
they are among the others. Mixed with deviations xi of an inertial process (`reference`) of the same
spread,
    y_p(t) = m(t) + sqrt(lasting) (c_p(t) - m(t)) + s(t) L(t) xi_p(t),      L L' = correlations,
they forget as they should and have the right means and covariances, and nearly the right law. The
rest is transport at each time, from the cloud of y to that of c, along random axes, one coordinate
at a time by sorting: the same axes at all times, so that what is carried where changes smoothly.
What each person is moved by is smoothed over time: the jumps of sorting are no motion.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints, Singles, systematic
from privtraj.base.space import fold, hat_functions, nearest_bin
from privtraj.columns.conditions import Conditions, in_order, within_reach
from privtraj.motion.process import Interpolation, Points, Reference, between
from privtraj.motion.reference import Inertia
from privtraj.motion.states import Parts, filled, jumped

GRID = np.linspace(0, 1, 129)  # times at which people who forget are computed; smooth in between
AT_LEAST = 2048  # people who are carried together; of fewer, the cloud is too coarse to carry
ROUNDS = 12
"""Of carrying; 20 change squared W2 by less than a tenth of what 2,048 people have by chance."""
SMOOTHING = 0.03
"""Standard deviation in time of the smoothing, in shares of the range, and at most a third of the
shortest memory. .015 leaves paths of a smooth process 5 % too long at 200 readings, .06 blurs."""

_APART = 1e3  # boxes between groups, many times what anybody is moved by

Places = Callable[[slice, np.random.Generator], NDArray[Any]]
"""What gives a block of people their points (b, q, d)."""


class Carrier(ABC):
    """A way in which people are carried from knot to knot."""

    @abstractmethod
    def people(
        self,
        n: int,
        where: Floats,
        width: Floats,
        interpolation: Interpolation | None,
        rng: np.random.Generator,
    ) -> Places:
        """What gives a block of n people their points (b, q, d) in the unit cube, at times where
        (q,) in [0, 1].  width: (K,) of a person's own offset.  interpolation: between knots, if not
        as usual."""

    def possible(self, asked: Conditions, where: Floats) -> Possible:
        """Those who can be as they must at times where (q,): all, where nothing is known."""
        return Possible(self)


class Possible(NamedTuple):
    """carrier: of people who can be as they must.  people: how many of them, where everybody is
    carried by themselves.  particles: through how many they go at first, if that is known."""

    carrier: Carrier
    people: int | None = None
    particles: int | None = None


@dataclass(frozen=True, eq=False)
class Curves(Carrier):
    """Along N curves of equal weight: of least action, of a pedigree, or of chains over couplings.

    knots: (N, K, d) in the unit cube.  clock: (K,) from 0 to 1.  parts: what their columns do.
    process: by which numbers move between the knots.  directions: (d,) in which these go.
    rates: (d,) of those that go by themselves, per range of time.
    usual: how they go between knots unless somebody says; None: as the process does.
    alone: whether everybody has a curve of their own.
    weights: (N, K) of the curves where they are not of equal weight: who comes changes.
    """

    knots: Points
    clock: Floats
    parts: Parts
    process: Reference = field(default_factory=Reference)
    directions: Floats = field(default_factory=lambda: np.zeros(1))
    rates: Floats = field(default_factory=lambda: np.zeros(1))
    usual: Interpolation | None = None
    alone: bool = False
    weights: Floats | None = None

    def people(
        self,
        n: int,
        where: Floats,
        width: Floats,
        interpolation: Interpolation | None,
        rng: np.random.Generator,
    ) -> Places:
        """Every curve has as many of the n as its weight says, up to one, in the mean over the
        times; of equal weight, person i is on curve i where there are n of them."""
        parts, chosen, weights = self.parts, np.arange(n), np.ones(len(self.knots))
        if self.weights is not None:
            weights = self.weights @ hat_functions(where, self.clock).mean(axis=0)
        if len(self.knots) != n or self.weights is not None:
            chosen = rng.permutation(systematic(weights, n, rng))
        numbers = None
        if parts.moving.any():
            if isinstance(self.process, Inertia) and self.process.forgets:
                numbers = self._forgetful(chosen, where, width)
            else:
                numbers = self._numbers(chosen, where, width, interpolation, rng)
            if parts.plain:
                return numbers
        others = self.others(where, float(width.mean()))

        def places(people: slice, rng: np.random.Generator) -> NDArray[Any]:
            unit = others(chosen[people], rng)
            if numbers is not None:
                unit[..., parts.moving] = numbers(people, rng)
            return unit

        return places

    def possible(self, asked: Conditions, where: Floats) -> Possible:
        """By their categories; where people change places, on any curve.

        Numbers are not looked at: who is where is known only when people are drawn.
        """
        parts = self.parts
        if parts.plain:
            return Possible(self)
        held = np.ones(len(self.knots), bool)  # curves (N,) along which it can be
        levels = parts.axes.level_of(self.knots)
        shown = np.flatnonzero([not column.of for column in parts.columns])  # all but flags
        last = len(self.clock) - 2
        knot = np.clip(np.searchsorted(self.clock, where, side="right") - 1, 0, last)
        first = knot[[int(np.argmin(where))]]
        for one, knots in [(c, knot) for c in asked.always] + [(c, first) for c in asked.first]:
            axis = int(shown[one.axis])
            if not one.levels:
                continue
            if parts.fixed[axis]:
                held &= np.isin(levels[:, :, axis], one.levels).any(axis=1)
                continue
            for k in np.unique(knots):
                pair = levels[:, k, axis], levels[:, k + 1, axis]
                held &= within_reach(one, *pair, int(parts.ladder[axis]))
        begin = int(np.searchsorted(self.clock, where.min(), side="right")) - 1
        particles = len(np.unique(self.knots[held, begin], axis=0))
        weights = None if self.weights is None else self.weights[held]
        held_alone = replace(self, knots=self.knots[held], weights=weights)
        curves = self if self.process.forgets else held_alone
        return Possible(curves, len(curves.knots) if self.alone else None, particles)

    def _moving(self) -> Points:
        """(N, K, dm) knots of the numbers that move."""
        if self.parts.plain:
            return self.knots
        return filled(self.knots, self.clock, self.parts)[..., self.parts.moving]

    def _numbers(
        self,
        chosen: Ints,
        where: Floats,
        width: Floats,
        interpolation: Interpolation | None,
        rng: np.random.Generator,
    ) -> Places:
        """Numbers that move, of people on these curves (n,), who stay on them."""
        process, ordered, knots = self.process, self.directions.any(), self._moving()
        if ordered:
            knots = in_order(knots, self.directions, self.clock, self.rates)
        offset = _Offset.at(where, self.clock, width, self.directions)
        smooth = "spline" if ordered else interpolation or self.usual
        in_time = np.argsort(where, kind="stable")

        def read(some: Points, rng: np.random.Generator) -> Points:
            if smooth is None:
                return process.through(some, self.clock, where, rng)
            values = between(some, self.clock, where, process, smooth, rng)
            for k in np.flatnonzero(self.directions):  # nobody falls, by no last digit either
                along = self.directions[k] * values[:, in_time, k]
                values[:, in_time, k] = self.directions[k] * np.maximum.accumulate(along, axis=1)
            return values

        alike = not process.variance(np.ones(1)).any()  # nobody's own chance between the knots
        known = read(knots, rng) if alike and len(knots) < len(chosen) else None

        def places(people: slice, rng: np.random.Generator) -> NDArray[Any]:
            mine = chosen[people]
            part = read(knots[mine], rng) if known is None else known[mine]
            return offset.added(part, rng)

        return places

    def _forgetful(self, chosen: Ints, where: Floats, width: Floats) -> Places:
        """Numbers that move, of people who change places. They are drawn in crowds, as many as it
        takes to be a cloud."""
        process, directions = self.process, self.directions
        assert isinstance(process, Inertia)
        on_grid = process.through(self._moving(), self.clock, GRID, np.random.default_rng(0))
        offset = _Offset.at(GRID, self.clock, width, directions)
        groups = None
        if not self.parts.plain:
            groups = self.parts.alike(self.knots)[:, nearest_bin(GRID, self.clock)]

        def places(people: slice, rng: np.random.Generator) -> NDArray[Any]:
            crowd = mine = chosen[people]
            if len(mine) < AT_LEAST:
                others = systematic(np.ones(len(self.knots)), AT_LEAST - len(mine), rng)
                crowd = np.append(mine, others)
            of_crowd = None if groups is None else groups[crowd]
            drawn = forgetful(offset.added(on_grid[crowd], rng), process, rng, of_crowd)
            paths = offset.inside(drawn)
            paths = in_order(paths, directions, GRID, self.rates) if directions.any() else paths
            return process.through(paths[: len(mine)], GRID, where, rng)

        return places

    def others(self, where: Floats, width: float) -> Callable[[Ints, np.random.Generator], Singles]:
        """What gives people on curves (b,) all but the numbers that move, as (b, q, d) at times
        where (q,).  width: of a person's own offset."""
        parts = self.parts
        counts = np.array(parts.axes.levels)[parts.jumping]
        own = np.where(parts.axes.numbers[parts.fixed], width, 0.0)

        def states(mine: Ints, rng: np.random.Generator) -> Singles:
            unit = np.zeros((len(mine), len(where), len(parts.columns)), np.float32)
            if parts.jumping.any():
                levels = parts.axes.level_of(self.knots[mine])[..., parts.jumping]
                ladder = parts.ladder[parts.jumping]
                now = jumped(levels, self.clock, ladder, where, rng)
                unit[..., parts.jumping] = (now + 0.5) / counts
            if parts.fixed.any():
                at = self.knots[mine, rng.integers(len(self.clock), size=len(mine))]
                offset = own * rng.standard_normal((len(mine), len(own)))
                unit[..., parts.fixed] = fold(at[:, parts.fixed] + offset)[:, None]
            return unit

        return states


class _Offset(NamedTuple):
    """What people have of their own. width: (q, d).  ordered: (d,) features that must not be
    reflected at the walls, as they have a direction."""

    width: NDArray[np.float32]
    ordered: NDArray[np.bool_]

    @classmethod
    def at(cls, times: Floats, clock: Floats, width: Floats, directions: Floats) -> _Offset:
        """A width that changes would move people against their direction: there it is the mean."""
        ordered = directions != 0
        own = np.interp(times, clock, width)[:, None]
        return cls(np.where(ordered, width.mean(), own).astype(np.float32), ordered)

    def added(self, part: Points, rng: np.random.Generator) -> Points:
        """Places (b, q, d) with one offset for each person, inside the box."""
        offset = rng.standard_normal(part[:, 0].shape, dtype=np.float32)
        return self.inside(part + self.width * offset[:, None])

    def inside(self, places: Points) -> Points:
        """Reflected at the walls; those that have a direction end there."""
        return np.where(self.ordered, np.clip(places, 0, 1), fold(places))


def forgetful(
    curves: NDArray[Any], process: Inertia, rng: np.random.Generator, groups: Ints | None = None
) -> Floats:
    """Paths (n, G, d) at the times of `GRID`, with the law of the curves (n, G, d).

    groups: (n, G) of people who have levels; each then has the law of its own curves.
    """
    from scipy.ndimage import gaussian_filter1d

    n, _, d = curves.shape
    centre, spread = curves.mean(axis=0), np.maximum(curves.std(axis=0), 1e-9)
    shares = process.shares(d)
    lasting = np.sqrt(np.maximum(1 - shares.sum(axis=1), 0.0))
    scores = (curves - centre) / spread
    together = np.einsum("ngi,ngj->gij", scores, scores) / n
    root = np.linalg.cholesky(together + 1e-6 * np.eye(d))
    forgotten = np.einsum("gij,ngj->ngi", root, process.deviations(n, GRID, d, rng))
    start = centre + spread * (lasting * scores + forgotten)
    far = np.zeros((1, 1)) if groups is None else _APART * groups.T
    apart = np.asarray(far, np.float64)[:, :, None]  # groups are sorted apart
    points, clouds = start.swapaxes(0, 1), curves.swapaxes(0, 1)
    for _ in range(ROUNDS):
        axes, _ = np.linalg.qr(rng.standard_normal((d, d)))
        along, wanted = points @ axes + apart, np.sort(clouds @ axes + apart, axis=1)
        reached = np.empty_like(along)
        np.put_along_axis(reached, np.argsort(along, axis=1), wanted, axis=1)
        points = points + (reached - along) @ axes.T
    moved = points.swapaxes(0, 1) - start
    shortest = process.memories[shares.max(axis=0) > 0.1].min(initial=1.0)
    width = min(SMOOTHING, shortest / 3) / (GRID[1] - GRID[0])
    if width:
        moved = gaussian_filter1d(moved, width, axis=1, mode="nearest")
    return np.asarray(start + moved)


class Carried(NamedTuple):
    """Curves from which another sampler can draw people without the model, as `sample` does.

    A person goes along one of N curves of equal weight, through places at S stops, with an offset
    of their own. Where the model's own curves are smooth or Brownian between its knots, the stops
    are the knots. Any other process is drawn beforehand, people without an offset at stops so close
    that the way between two of them is straight but for chance.

    places: (N, S, d) in the unit cube; what is missing is filled in, and its flag says so.
    stops: (S,) from 0 to 1.  width: (S,) of a person's own offset.
    steady: width of the offset of what is fixed or goes one way, the same at all times.
    spline: whether they go from stop to stop by a monotone cubic; else straight, plus a Brownian
    bridge of this diffusivity.
    whole: whether these are all curves of the model; else some of them, or people drawn from it.
    lives: (M, 2) begins and ends on the clock, None where everybody is there all the time.
    own_lives: whether life i is that of curve i; else anybody has any life.
    """

    places: Floats
    stops: Floats
    width: Floats
    steady: float
    spline: bool
    diffusivity: float
    whole: bool
    lives: Floats | None = None
    own_lives: bool = False


def fine_stops(knots: Floats, most: int) -> Floats:
    """(S,) in [0, 1], the knots (K,) and evenly many between each two of them: at most so many, but
    all knots."""
    parts = max(1, (most - 1) // (len(knots) - 1))
    place = np.arange((len(knots) - 1) * parts + 1) / parts
    return np.interp(place, np.arange(len(knots)), knots)
