"""Stand-ins: public, simulated people whom a forecast is made on, and the yardstick for them.

A stand-in says where people are at any time of the range; it is simulated, so its whole population
is known. Four of different difficulty: groups that keep apart (three modes), a crowd that divides
(bifurcation), one round crowd that moves (ornstein-uhlenbeck), and a crowd that is narrow, skewed
and first small (growth). In higher dimension the first and the last lie in a plane, with noise
around it: columns of real tables are seldom independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privtraj import datasets
from privtraj.arrays import Floats
from privtraj.metrics.people import Panels
from privtraj.metrics.transport import weighted_cost
from privtraj.planning.question import LARGEST_WORTH
from privtraj.space import to_unit

# Set by hand, so that the error of a yardstick is small beside what it measures.
_POPULATION, _POINTS = 8000, 500  # people of a population, and points that represent them
_PANELS = 4  # draws of real people at each number of them
_ALONE = {"three modes": 1, "bifurcation": 1, "ornstein-uhlenbeck": 0, "growth": 0}  # feature
_AROUND_PLANE = 0.02  # standard deviation
_BLOCK = 2048  # people simulated at once
_POPULATION_SEED = 900_001


def people_at(name: str, moments: Floats, features: int, seed: int) -> Floats:
    """(n, d) in the unit cube: where n people are, each seen once, at moments (n,) in [0, 1]."""
    d = max(features, 2)
    if name == "three modes":
        points = datasets.three_modes(1, moments, seed, dimensions=d)[1]
        unit = to_unit(points, [datasets.PROCESS_BOUNDS] * d)
    elif name == "growth":
        unit = _growth(moments, d, seed)
    else:
        unit = _process(name, moments, d, seed)
    return unit if features > 1 else unit[:, [_ALONE[name]]]


def _growth(moments: Floats, d: int, seed: int) -> Floats:
    """Heights and weights of boys, whose ages fill the range."""
    boys = datasets.growth_at(moments * datasets.GROWTH_TIME_RANGE[1], seed)
    unit = to_unit(boys, list(datasets.GROWTH_BOUNDS.values()))
    if d == 2:
        return unit
    plane = np.linalg.qr(np.random.default_rng(0).standard_normal((d, 2)))[0]
    noise = _AROUND_PLANE * np.random.default_rng((seed, d)).standard_normal((len(unit), d))
    return np.clip(0.5 + (unit - 0.5) @ plane.T + noise, 0.0, 1.0)


def _process(name: str, moments: Floats, d: int, seed: int) -> Floats:
    parts = []
    for k, start in enumerate(range(0, len(moments), _BLOCK)):
        grid, which = np.unique(moments[start : start + _BLOCK], return_inverse=True)
        n = len(which)
        paths = datasets.process_paths(name, n, grid, 1000 * seed + k, dimensions=d)
        parts.append(paths[np.arange(n), which])
    return to_unit(np.concatenate(parts), [datasets.PROCESS_BOUNDS] * d)


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
