"""Curves that carry people: who goes along which, and where they are at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints, systematic
from privtraj.base.space import fold, nearest_bin
from privtraj.columns.conditions import in_order
from privtraj.motion.reference.base import Interpolation, Points, Reference, between
from privtraj.motion.reference.inertia import Inertia
from privtraj.motion.transport.forgetting import AT_LEAST, GRID, forgetful

Places = Callable[[slice, np.random.Generator], NDArray[Any]]


def chosen_curves(count: int, n: int, rng: np.random.Generator) -> Ints:
    """Which of `count` curves each of n people is on (n,): as many on each, up to one."""
    if count == n:
        return np.arange(n)
    return rng.permutation(systematic(np.ones(count), n, rng))


class Curves(NamedTuple):
    """N curves of equal weight. knots: (N, K, d) in the unit cube.  clock: (K,) from 0 to 1."""

    knots: Points
    clock: Floats

    def people(
        self,
        n: int,
        where: Floats,
        width: Floats,
        reference: Reference,
        directions: Floats,
        interpolation: Interpolation | None,
        rng: np.random.Generator,
        chosen: Ints | None = None,
        groups: Ints | None = None,
    ) -> Places:
        """What gives a block of n people their places (b, q, d) at times where (q,) in [0, 1].

        Every curve has as many of the n as any other, up to one, and person i is on curve i where
        there are n of them.  width: (K,) of a person's own offset.  directions: (d,) in which
        features go.  chosen: (n,) whose curve each is on, if that is decided.
        groups: (N, K) of curves at the knots, within which people change places if they do.
        """
        if chosen is None:
            chosen = chosen_curves(len(self.knots), n, rng)
        if isinstance(reference, Inertia) and reference.forgets:
            return self._forgetful(chosen, where, width, reference, directions, groups)
        knots = in_order(self.knots, directions) if directions.any() else self.knots
        offset = _Offset.at(where, self.clock, width, directions)
        smooth: Interpolation | None = "spline" if directions.any() else interpolation

        def read(some: Points, rng: np.random.Generator) -> Points:
            if smooth is None:
                return reference.through(some, self.clock, where, rng)
            return between(some, self.clock, where, reference, smooth, rng)

        alike = not reference.variance(np.ones(1)).any()  # nobody's own chance between the knots
        known = read(knots, rng) if alike and len(knots) < n else None

        def places(people: slice, rng: np.random.Generator) -> NDArray[Any]:
            mine = chosen[people]
            part = read(knots[mine], rng) if known is None else known[mine]
            return offset.added(part, rng)

        return places

    def _forgetful(
        self,
        chosen: Ints,
        where: Floats,
        width: Floats,
        process: Inertia,
        directions: Floats,
        groups: Ints | None,
    ) -> Places:
        """People who change places. They are drawn in crowds, as many as it takes to be a cloud."""
        grid = np.linspace(0, 1, GRID)
        on_grid = process.through(self.knots, self.clock, grid, np.random.default_rng(0))
        offset = _Offset.at(grid, self.clock, width, directions)
        nearest = nearest_bin(grid, self.clock)
        alike = None if groups is None else groups[:, nearest]

        def places(people: slice, rng: np.random.Generator) -> NDArray[Any]:
            mine = chosen[people]
            crowd = mine
            if len(mine) < AT_LEAST:
                others = systematic(np.ones(len(self.knots)), AT_LEAST - len(mine), rng)
                crowd = np.append(mine, others)
            of_crowd = None if alike is None else alike[crowd]
            drawn = forgetful(offset.added(on_grid[crowd], rng), grid, process, rng, of_crowd)
            paths = offset.inside(drawn)
            if directions.any():
                paths = in_order(paths, directions)
            return process.through(paths[: len(mine)], grid, where, rng)

        return places


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
        widths = np.where(ordered, width.mean(), own).astype(np.float32)
        return cls(widths, ordered)

    def added(self, part: Points, rng: np.random.Generator) -> Points:
        """Places (b, q, d) with one offset for each person, inside the box."""
        offset = rng.standard_normal(part[:, 0].shape, dtype=np.float32)
        return self.inside(part + self.width * offset[:, None])

    def inside(self, places: Points) -> Points:
        """Reflected at the walls; those that have a direction end there."""
        return np.where(self.ordered, np.clip(places, 0, 1), fold(places))
