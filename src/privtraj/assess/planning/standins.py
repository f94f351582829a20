"""Stand-ins: public, simulated crowds which a forecast is made on, and the yardstick for them.

A stand-in says where people are at any time of the range; it is simulated, so its whole population
is known. Six crowds of different difficulty, in the unit cube of any number of features: one wide
group, a skewed one, a narrow one, two that part, three, and five. Groups move along straight lines,
their shares change, and features hang together through two hidden factors, as columns of real
tables do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from privtraj.assess.planning.question import LARGEST_WORTH
from privtraj.base.arrays import Floats
from privtraj.metrics.distances import weighted_cost
from privtraj.metrics.people import Panels

# Set by hand, so that the error of a yardstick is small beside what it measures.
_POPULATION, _POINTS = 8000, 500  # people of a population, and points that represent them
_PANELS = 4  # draws of real people at each number of them
_POPULATION_SEED = 900_001
_FACTORS = 2


class Crowd(NamedTuple):
    """groups: their number.  spread: standard deviation of a group.  motion: how far one goes.
    skew: of features, as of exp(skew z); all in shares of the box."""

    groups: int
    spread: float
    motion: float
    skew: float = 0.0


CROWDS = {
    "one wide group": Crowd(1, 0.12, 0.2),
    "one skewed group": Crowd(1, 0.09, 0.2, 0.6),
    "one narrow group": Crowd(1, 0.04, 0.3),
    "two groups that part": Crowd(2, 0.06, 0.3),
    "three groups": Crowd(3, 0.05, 0.2, 0.3),
    "five groups": Crowd(5, 0.05, 0.2),
}
"""Set by hand, so that their spreads and motions span those of ordinary tables with sensible
bounds; docs/planning.md says how well they foretell others."""


def people_at(name: str, moments: Floats, features: int, seed: int) -> Floats:
    """(n, d) in the unit cube: where n people are, each seen once, at moments (n,) in [0, 1].

    y = c_g + t v_g + spread s(z),  z = (A f + e) / sqrt(2),  s(z) = (exp(skew z) - 1) / skew
    """
    crowd, n = CROWDS[name], len(moments)
    shape = np.random.default_rng((list(CROWDS).index(name), features))
    start = shape.uniform(0.3, 0.7, (crowd.groups, features))
    ways = shape.standard_normal((crowd.groups, features))
    ways *= crowd.motion / np.linalg.norm(ways, axis=1, keepdims=True)
    loads = shape.standard_normal((_FACTORS, features))
    loads /= np.linalg.norm(loads, axis=0)
    first, last = shape.dirichlet(np.full(crowd.groups, 3.0), 2)
    rng = np.random.default_rng((seed, features))
    shares = np.cumsum(first + moments[:, None] * (last - first), axis=1)
    group = np.minimum((rng.random(n)[:, None] > shares).sum(axis=1), crowd.groups - 1)
    hidden, own = rng.standard_normal((n, _FACTORS)), rng.standard_normal((n, features))
    z = (hidden @ loads + own) / np.sqrt(2)
    if crowd.skew:
        z = np.expm1(crowd.skew * z) / crowd.skew
    centres = start[group] + (moments[:, None] - 0.5) * ways[group]
    return np.clip(centres + crowd.spread * z, 0.0, 1.0)


class Yardstick(Panels):
    """Worth n people, for a population of k clouds (n_i, d): the error of n real people per cloud.

    An error is the mean over the clouds of squared W2 to the population, whose people are gathered
    into weighted points. Panels of real people are held against the same points as synthetic
    people are; they come from the population, or from `others` of the same kind where it is small.
    """

    def __init__(self, population: Sequence[Floats], others: Sequence[Floats] = ()) -> None:
        super().__init__(others or population, _PANELS, seed=0)
        self.rungs = [n for n in self.rungs if n <= LARGEST_WORTH]
        self._gathered = [_gathered(cloud) for cloud in population]

    @classmethod
    def of(cls, name: str, moments: Floats, features: int) -> Yardstick:
        """For a stand-in at moments (k,)."""
        at = np.repeat(moments, _POPULATION)
        everybody = people_at(name, at, features, _POPULATION_SEED)
        return cls(list(everybody.reshape(len(moments), _POPULATION, features)))

    def error(self, clouds: Any) -> float:
        """Of k clouds (n, d)."""
        costs = [
            weighted_cost(x, np.full(len(x), 1 / len(x)), *points, "sqeuclidean")
            for x, points in zip(clouds, self._gathered, strict=True)
        ]
        return float(np.mean(costs))

    def _generator(self, n: int) -> np.random.Generator:
        return np.random.default_rng(n)


def _gathered(people: Floats) -> tuple[Floats, Floats]:
    """Points (k, d) and weights (k,) that stand for people (n, d): two rounds of Lloyd's."""
    from scipy.spatial import cKDTree

    centres = people[:_POINTS]
    for _ in range(2):
        nearest = cKDTree(centres).query(people)[1]
        held = np.bincount(nearest, minlength=len(centres))
        sums = [np.bincount(nearest, axis, minlength=len(centres)) for axis in people.T]
        centres = (np.stack(sums) / np.maximum(held, 1)).T[held > 0]
    return centres, held[held > 0] / len(people)
