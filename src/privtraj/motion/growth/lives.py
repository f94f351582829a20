"""Lives: when each of n people is there, so that as many are there at t as N(t) says.

Where people come and go alike everywhere, lives begin with N(0) at once and then at the rate
(dN/dt)+, and end at the rate (dN/dt)- / N each; turnover w adds w N to the former, w to the latter.
It does not matter who it is, so those who are there have the model's marginals. Begins and ends are
spread evenly, by multiples of the golden ratio: the number who are there follows N(t) closer than
chance would have it, while every life alone is an exact draw.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints, systematic
from privtraj.motion.growth.sizes import GRID, Sizes
from privtraj.motion.growth.unbalanced import Pedigree

_GOLDEN = (5**0.5 - 1) / 2


class Lives(NamedTuple):
    """From begin (n,) to end (n,), both included, on the clock from 0 to 1."""

    begin: Floats
    end: Floats

    def at(self, times: Floats) -> np.ndarray:
        """Whether they are there (n, q) at times (q,)."""
        return np.asarray((self.begin[:, None] <= times) & (times <= self.end[:, None]))


def even_lives(n: int, sizes: Sizes, turnover: float, rng: np.random.Generator) -> Lives:
    """Lives that have nothing to do with where people are; turnover: w, over the whole range."""
    grid = np.linspace(0, 1, GRID)
    size = sizes.at(grid)
    between = (size[1:] + size[:-1]) / 2 * np.diff(grid)
    births = np.maximum(np.diff(size), 0.0) + turnover * between
    hazard = np.maximum(-np.diff(np.log(size)), 0.0) + turnover * np.diff(grid)
    begun = np.append(size[0], births).cumsum()
    passed = np.append(0.0, hazard).cumsum()
    ranks, shift = rng.permutation(n), rng.uniform(size=2)
    begin = np.interp((ranks + shift[0]) / n * begun[-1], begun, grid)
    waiting = -np.log1p(-np.mod(ranks * _GOLDEN + shift[1], 1.0))
    end = np.interp(np.interp(begin, grid, passed) + waiting, passed, grid)
    return Lives(begin, end)


def lives_of(
    pedigree: Pedigree, n: int, turnover: float, rng: np.random.Generator
) -> tuple[Lives, Ints]:
    """n lives, and of whom of a pedigree (n,): begins and ends are anywhere between its knots.

    With turnover somebody's life becomes several, one after the other: it begins where theirs does,
    or at the rate w while it lasts, and ends at the rate w if not before.
    """
    first, last = (pedigree.moment(side, np.full(len(pedigree.born), 0.5)) for side in (0, 1))
    weights = 1 + turnover * (last - first)
    chosen = rng.permutation(systematic(weights, n, rng))
    ranks, shift = rng.permutation(n), rng.uniform(size=2)
    spread = np.mod(ranks[:, None] * np.array([_GOLDEN, _GOLDEN**2]) + shift, 1.0)
    begin, end = (pedigree.moment(side, spread[:, side], chosen) for side in (0, 1))
    if turnover > 0:
        later = rng.uniform(size=n) * weights[chosen] > 1
        begin = np.where(later, begin + rng.uniform(size=n) * (end - begin), begin)
        end = np.minimum(end, begin + rng.exponential(1 / turnover, n))
    return Lives(begin, np.maximum(begin, end)), chosen
