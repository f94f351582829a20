"""Fits that cost nobody anything: people drawn from a known crowd, fitted by a recipe, and scored.

A plan draws them from public stand-ins, before anything is spent; a released model is a crowd of
its own (`quality`). Either way `simulate` makes the real fit, with as much noise for each person,
and a `Yardstick` of the same crowd says how many real people would be as far from it as the fit is.

Stand-ins are simulated, so their whole population is known. Six of them, of different difficulty,
in the unit cube of any number of features (`common.STAND_INS`). Their groups move, the shares of
these change, and features hang together through two hidden factors, as columns of real tables do.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from privtraj.assess.common import STAND_INS
from privtraj.base.arrays import Floats
from privtraj.base.space import as_user_times
from privtraj.measures.base import Measure
from privtraj.metrics.columns import unit_points
from privtraj.metrics.distances import weighted_cost
from privtraj.metrics.people import LADDER, MOST_TOLD, meeting, panel
from privtraj.model.model import TrajectoryModel
from privtraj.privacy.accounting import epsilon_at
from privtraj.privacy.events import GaussianSum
from privtraj.privacy.ledger import calibrate_gaussian
from privtraj.recipe import Recipe

if TYPE_CHECKING:
    from privtraj.data.snapshots import Snapshots

# Set by hand, so that a simulation takes seconds, and the error of a yardstick is small beside what
# it measures.
ENOUGH = {True: 20_000, False: 10_000}
"""Records beyond which fewer are simulated, where fits are quick, and where they are not."""
LARGEST_SIMULATED_EPSILON = 60.0  # with so little noise the error is that of the method alone
RELEASED = 500  # synthetic people that are compared
POPULATION, POINTS = 8000, 500  # people of a population, and points that represent them
PANELS, DRAWN = 4, 200  # draws of real people; fewer where they would be more than so many
VISITS = 256  # moments at which people of a stand-in come who come at any time
READ_TIMES = 25  # bins whose numbers of people are public, if people come at any time
_POPULATION_SEED = 900_001
_FACTORS = 2
_SWINGS, _JUMPS = 2.5, (0.3, 0.65)  # how often groups swing, and when they jump


class Crowd(Protocol):
    """People who can be drawn at will."""

    def places(self, moments: Floats, seed: int) -> Floats:
        """(n, d) in the unit cube: where n people are, each at one of the moments (n,)."""

    def recorded(self, people: int, seed: int) -> tuple[Floats, Snapshots]:
        """So many of them, with all their records: moments (n,) in order, and the snapshots."""


def simulate(
    recipe: Recipe,
    crowd: Crowd,
    people: int,
    *,
    seed: int,
    public_counts: bool = False,
) -> TrajectoryModel:
    """Draw people from a crowd, and fit them by the recipe.

    public_counts: whether the fit is told how many of them are in each time bin.
    """
    from privtraj.synthesizer import TrajectorySynthesizer

    moments, snapshots = crowd.recorded(people, seed)
    counts = None
    if public_counts:
        counts = np.bincount(snapshots.axis.bins.of(moments), minlength=snapshots.n_times).tolist()
    again = recipe.again(seed=seed, public_counts=counts)
    with warnings.catch_warnings():  # that the budget buys little is what is found out here
        warnings.simplefilter("ignore")
        return TrajectorySynthesizer.of(again).fit(snapshots)


def drawn(model: TrajectoryModel, times: Floats, n: int, seed: int) -> Floats:
    """(n, Q, d) people of a model in the unit cube, all of them there at all times (Q,)."""
    everybody = model if model.growth is None else model.with_growth(None)
    values = everybody.sample(n, times=as_user_times(times, model.datetime), seed=seed).values
    return unit_points(values, model.columns)


def fewer(recipe: Recipe, measure: Measure, people: int, records_each: int) -> tuple[Recipe, int]:
    """The recipe and the people that are simulated instead, with the same noise for each person.

    Noise per person is that of N mu where it is Gaussian, else that of N epsilon.
    """
    factor = max(people * records_each / ENOUGH[measure.quick], 1.0)  # so many times fewer people
    if factor == 1:
        return recipe, people
    epsilon = recipe.epsilon * factor
    if measure.needs_delta:
        mu = calibrate_gaussian(recipe.epsilon, recipe.delta, recipe.adjacency)
        event = GaussianSum(1 / (mu * factor), "")
        epsilon = epsilon_at([event], recipe.delta, recipe.adjacency)
    return recipe.again(epsilon=min(epsilon, LARGEST_SIMULATED_EPSILON)), round(people / factor)


@dataclass(frozen=True)
class StandIn:
    """A public crowd over [0, 1], by name. times: at which all its records are; None: at any.

    binned: whether numbers of people in time bins are to be known where records are at any time.
    """

    name: str
    features: int
    times: int | None = None
    records_per_person: int = 1
    binned: bool = False

    def places(self, moments: Floats, seed: int) -> Floats:
        """y = c_g + m(t) v_g + spread s(z),  s(z) = (exp(skew z) - 1) / skew,
        z = (A f + e) / sqrt(2),  of people in groups g, with hidden factors f and deviations e of
        their own; those of a line have z = f (cos(pi t) a + sin(pi t) b) + e / 20."""
        shape, d, n = STAND_INS[self.name], self.features, len(moments)
        rng = np.random.default_rng((list(STAND_INS).index(self.name), d))
        start = rng.uniform(0.3, 0.7, (shape.groups, d))
        ways = rng.standard_normal((shape.groups, d))
        ways *= shape.motion / np.linalg.norm(ways, axis=1, keepdims=True)
        loads = rng.standard_normal((_FACTORS, d))
        loads /= np.linalg.norm(loads, axis=0)
        first, last = rng.dirichlet(np.full(shape.groups, 3.0), 2)
        rng, t, gone = np.random.default_rng((seed, d)), moments[:, None], moments - 0.5
        shares = first + t * (last - first)
        if shape.way == "exchange":
            phases = 2 * np.pi * np.arange(shape.groups) / shape.groups
            shares = (1.05 + np.sin(2 * np.pi * t + phases)) / (1.05 * shape.groups)
        elif shape.way == "swing":
            gone = np.sin(_SWINGS * 2 * np.pi * moments) / 2
        elif shape.way == "jump":
            gone = np.array([-0.5, 0.5, 0.0])[np.searchsorted(_JUMPS, moments)]
        edges = np.cumsum(shares, axis=1)
        group = np.minimum((rng.random(n)[:, None] > edges).sum(axis=1), shape.groups - 1)
        hidden, own = rng.standard_normal((n, _FACTORS)), rng.standard_normal((n, d))
        z = (hidden @ loads + own) / np.sqrt(2)
        if shape.way == "turn":
            z = hidden[:, :1] * (np.cos(np.pi * t) * loads[0] + np.sin(np.pi * t) * loads[1])
            z = z + own / 20
        if shape.skew:
            z = np.expm1(shape.skew * z) / shape.skew
        return np.clip(start[group] + gone[:, None] * ways[group] + shape.spread * z, 0.0, 1.0)

    def recorded(self, people: int, seed: int) -> tuple[Floats, Snapshots]:
        """As many at every time, or each record at a random moment of the range."""
        from privtraj.data.snapshots import Snapshots

        records, each = people * self.records_per_person, self.records_per_person
        if self.times is not None:
            moments = np.repeat(np.linspace(0.0, 1.0, self.times), records // self.times)
        else:
            visits = np.random.default_rng(seed).integers(VISITS, size=records)
            moments = (np.sort(visits) + 0.5) / VISITS
        bins = READ_TIMES if self.binned else None
        snapshots = Snapshots.from_arrays(
            moments,
            self.places(moments, seed),
            bounds=[(0.0, 1.0)] * self.features,
            bins=bins if self.times is None else np.linspace(0.0, 1.0, self.times),
            time_range=(0.0, 1.0),
            # in order of time, so that records of one person are far apart, hardly ever in one bin
            person=np.arange(len(moments)) % people if each > 1 else None,
            records_per_person=each,
            seed=0,
        )
        return moments, snapshots


class Yardstick:
    """Worth n people, for a population of k clouds (n_i, d): the error of n real people per cloud.

    An error is the mean over the clouds of squared W2 to the population, whose people are gathered
    into weighted points. Panels of real people are held against the same points as synthetic
    people are.
    """

    def __init__(self, population: Sequence[Floats]) -> None:
        most = max(min(map(len, population)) // 2, 1)
        self.rungs = [n for n in LADDER if n <= min(most, MOST_TOLD)]
        self._population, self._known = population, dict[int, float]()
        self._gathered = [_gathered(cloud) for cloud in population]

    @classmethod
    def of(cls, crowd: Crowd, times: Floats, seed: int = _POPULATION_SEED) -> Yardstick:
        """For a crowd at times (k,)."""
        everybody = crowd.places(np.repeat(times, POPULATION), seed)
        return cls(list(everybody.reshape(len(times), POPULATION, -1)))

    def error(self, clouds: Any) -> float:
        """Of k clouds (n, d)."""
        costs = [
            weighted_cost(x, np.full(len(x), 1 / len(x)), *points, "sqeuclidean")
            for x, points in zip(clouds, self._gathered, strict=True)
        ]
        return float(np.mean(costs))

    def error_of(self, n: int) -> float:
        """Of panels of n people, on average, measured once."""
        if n not in self._known:
            rng, draws = np.random.default_rng(n), min(PANELS, max(DRAWN // n, 1))
            errors = [self.error(panel(self._population, n, rng)) for _ in range(draws)]
            self._known[n] = float(np.mean(errors))
        return self._known[n]

    def worth(self, error: float) -> float:
        """The number of people whose mean error is this one."""
        return meeting(self.rungs, self.error_of, error)


def _gathered(people: Floats) -> tuple[Floats, Floats]:
    """Points (k, d) and weights (k,) that stand for people (n, d): two rounds of Lloyd's."""
    from scipy.spatial import cKDTree

    centres = people[:POINTS]
    for _ in range(2):
        nearest = cKDTree(centres).query(people)[1]
        held = np.bincount(nearest, minlength=len(centres))
        sums = [np.bincount(nearest, axis, minlength=len(centres)) for axis in people.T]
        centres = (np.stack(sums) / np.maximum(held, 1)).T[held > 0]
    return centres, held[held > 0] / len(people)
