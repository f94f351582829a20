"""A population that changes, made of a model's clouds and of what is said about its growth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError
from privtraj.base.space import from_unit, to_unit
from privtraj.columns.axes import Axes
from privtraj.motion.growth.branching import family, moments, roots
from privtraj.motion.growth.declared import Growth, Rate
from privtraj.motion.growth.lives import Lives, even_lives, lives_of
from privtraj.motion.growth.sizes import Sizes
from privtraj.motion.growth.unbalanced import Pedigree, UnitRate, pedigree
from privtraj.motion.reference.base import Reference, Scale


class Population(NamedTuple):
    """sizes: N(t).  pedigree: of those who are born and leave by place, instead.

    turnover: over the whole range of time.
    """

    sizes: Sizes | None
    pedigree: Pedigree | None
    turnover: float

    @classmethod
    def of(
        cls,
        growth: Growth,
        scale: Scale,
        told: dict[str, Any],
        particles: Floats,
        weights: Floats,
        clock: Floats,
        reference: Reference,
    ) -> Population:
        """Of clouds (K, m, d), weights (K, m), at times (K,) in the unit range; told: diagnostics.

        reference: by which people move, in the unit cube.
        """
        sizes = growth.sizes(scale.start, scale.length, told)
        turnover = growth.turnover * scale.length
        if growth.by_place is None:
            return cls(sizes, None, turnover)
        rate = unit_rate(growth.by_place, scale) if callable(growth.by_place) else None
        people = pedigree(particles, weights, clock, reference, sizes, rate)
        return cls(sizes, people, turnover)

    def lives(self, n: int, rng: np.random.Generator) -> tuple[Lives, Floats | None]:
        """Of n people, and the knots (n, K, d) of each where they depend on it."""
        if self.pedigree is not None:
            lives, who = lives_of(self.pedigree, n, self.turnover, rng)
            return lives, self.pedigree.knots[who]
        assert self.sizes is not None
        return even_lives(n, self.sizes, self.turnover, rng), None


def read_at(at: Floats, knots: Floats, branching: bool) -> Floats:
    """Times at which people must be known to be read at times (q,): at births as well."""
    first, last = knots[[0, -1]]
    return np.append(at, first + moments() * (last - first)) if branching else at


def settled(
    values: Floats,
    clock: Floats,
    lives: Lives,
    scale: Scale,
    directions: Floats,
    branching: bool,
    axes: Axes,
) -> tuple[Floats, dict[str, Any]]:
    """Values (n, q, d) at times of the clock (q,), NaN where nobody is, and what `Paths` says of
    them.

    values: (n, q, d) in data units, with branching also at the moments of births.
    directions: (d,) in which features go.  axes: which of them are levels, or fixed.
    """
    born, parent = lives.begin, None
    if branching:
        people = family(to_unit(values, scale.bounds), clock, lives, directions != 0, axes)
        lives, parent = people.lives, people.parent
        values = np.clip(from_unit(people.values, scale.bounds), *scale.bounds.T)
        born = roots(parent, lives.begin)
    known = Lives(born, lives.end).at(clock)
    values[~known] = np.nan
    when = scale.start + np.stack([lives.begin, lives.end], axis=1) * scale.length
    return values, {"present": lives.at(clock), "lives": when, "parent": parent}


def unit_rate(rate: Rate, scale: Scale) -> UnitRate:
    """g of places in the unit cube, per range of time."""

    def unit(u: Floats, t: float) -> Floats:
        places = from_unit(u, scale.bounds)
        g = np.asarray(rate(places, scale.start + t * scale.length), dtype=np.float64)
        if g.shape != (len(u),):
            raise InputError(
                Arg("growth"), f" must return an array ({len(u)},) for places {u.shape}"
            )
        if not np.isfinite(g).all():
            raise InputError(Arg("growth"), " must be finite everywhere in the box")
        return g * scale.length

    return unit
