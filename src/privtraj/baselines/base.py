"""What all baselines share: a `Measure` of their own, fitted and certified as every other.

Two that need no more stand here: `Uniform` and `ClusterMixture`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError, check_whole
from privtraj.columns.kinds import Axes
from privtraj.data.snapshots import Snapshots
from privtraj.measures.base import (
    HEAD_COUNT,
    Fit,
    Marginals,
    Measure,
    Public,
    Task,
    counts_event,
    head_count,
    left,
    planned_event,
    public_people,
    slack_reserve,
)
from privtraj.measures.windows import Resolution
from privtraj.motion.process import Reference
from privtraj.paper import warm_starts as warm
from privtraj.privacy.events import Event, GaussianSum, Person
from privtraj.privacy.guard import Guard
from privtraj.privacy.ledger import BudgetPlan, Planned, calibrate_gaussian
from privtraj.recipe import MOST_PARTICLES, Recipe
from privtraj.synthesizer import Budget, TrajectorySynthesizer


@dataclass(frozen=True, repr=False)
class Baseline(TrajectorySynthesizer):
    """A recipe that is measured in a way of its own; settings that it has no use for are ignored.

    points: particles per time.  diffusivity: by default, what makes people move as far over a mean
    time gap as they are known exactly.
    """

    pure: ClassVar[bool] = True
    """Whether it spends nothing of delta."""
    mixed: ClassVar[bool] = False
    """Whether it takes categories."""
    without_delta: ClassVar[str | None] = None
    """Why it needs a delta, if it does."""

    _: KW_ONLY
    windows: Literal["bins"] = "bins"
    points: int = 600

    @property
    def counts_people(self) -> bool:
        """Whether it asks how many people there are, unless that is public."""
        return False

    @abstractmethod
    def main(self, public: Public, others: list[Event]) -> Planned | None:
        """What it may release beside the head count; None for nothing."""

    @abstractmethod
    def made(self, guard: Guard, task: Task, people: Floats) -> Marginals:
        """Ask the guard, then post-process: particles in the unit cube.

        people: (T,), empty if nobody counted them.  The resolution is how far, per coordinate, a
        person is from the place that stands for them; the bandwidth, what of it the particles lack.
        """

    def check(self) -> None:
        """Refuse settings that cannot be used; needs no data."""
        Recipe.check(self)
        check_whole("points", self.points, 2, MOST_PARTICLES)
        if self.without_delta is not None and self.delta == 0:
            raise InputError(self.without_delta)

    @property
    def budget(self) -> Budget:
        return self.epsilon, 0.0 if self.pure else self.delta, self.adjacency

    def measure_for(self, axes: Axes | int) -> Measure:
        return BaselineMeasure(self)


class BaselineMeasure(Measure):
    """A baseline as a way to pay: the head count, if it needs one, and its main release."""

    needs_delta = False

    def __init__(self, baseline: Baseline) -> None:
        self.baseline = baseline
        self.takes_categories = baseline.mixed  # type: ignore[misc]

    def refuses(self, public: Public, recipe: Recipe) -> None:
        if public.axes.mixed and not self.takes_categories:
            name = type(self.baseline).__name__
            raise InputError(f"{name} takes numbers only: leave the categories out")

    def plan(self, public: Public, recipe: Recipe) -> BudgetPlan:
        first, person = [], public.shape.person
        if self.baseline.counts_people and recipe.public_counts is None:
            first = [counts_event(recipe, recipe.count_share, HEAD_COUNT, person)]
        main = self.baseline.main(public, list(first))
        return BudgetPlan((*map(Planned, first), *([] if main is None else [main])))

    def most_releases(self, steps: int) -> dict[str, int]:
        return {}

    def fit(self, guard: Guard, task: Task) -> Fit:
        people, axis = np.empty(0), task.public.axis
        head = planned_event(task.plan, HEAD_COUNT)
        if head is not None:
            people = head_count(guard, head.epsilon)
        elif self.baseline.counts_people:
            people = public_people(task.recipe.public_counts or ())
        made = self.baseline.made(guard, task, people)
        made = made._replace(particles=task.public.axes.centred(made.particles))
        return Fit(
            made,
            None,
            Resolution(axis.times, True, np.arange(len(axis.times))),
            people,
            made.resolution,
            Reference(),
            math.inf,
            {"baseline": type(self.baseline).__name__},
            {"spread": made.resolution.tolist()},
        )


def of_equal_weight(particles: Floats, resolution: Floats) -> Marginals:
    """Particles (T, m, d) that are people already."""
    times, m, _ = particles.shape
    return Marginals(particles, np.full((times, m), 1 / m), np.zeros(times), resolution, {})


def gaussian_sums(
    baseline: Baseline, what: str, times: int, person: Person, others: list[Event]
) -> Planned:
    """Up to so many sums that spend what the others leave."""
    slack = slack_reserve(baseline.delta)
    mu = calibrate_gaussian(*baseline.budget, others=others, slack=slack, person=person)
    if mu == 0:
        raise BaselineMeasure(baseline).nothing_left()
    return Planned(GaussianSum(1 / mu, what, 0.0, *person), times, shared=True)


@dataclass(frozen=True, repr=False)
class Uniform(Baseline):
    """Uniform on the box at every time, which asks nobody anything: epsilon 0, delta 0."""

    mixed: ClassVar[bool] = True

    def main(self, public: Public, others: list[Event]) -> None:
        return None

    def made(self, guard: Guard, task: Task, people: Floats) -> Marginals:
        shape = (guard.n_times, self.points, guard.n_features)
        return of_equal_weight(task.rng.uniform(size=shape), np.full(guard.n_times, 12**-0.5))


@dataclass(frozen=True, repr=False)
class ClusterMixture(Baseline):
    """k clusters per time by noisy Lloyd steps; people are drawn from the mixture of normals.

    Mechanism: the head count at count_share of epsilon (or public), then `steps` Gaussian sums of
    one noise multiplier z (`warm.private_clusters`). Sensitivity: a record's vector has norm at
    most c over all clusters and is in one time, so the stacked sums of a step move by at most c if
    a person with one record is added or removed, by 2 c if one is replaced; K steps are exactly
    (sqrt(K) / z)-GDP, or twice that. Needs a delta.
    """

    pure: ClassVar[bool] = False
    counts_people: ClassVar[bool] = True
    without_delta = "private clusters need a delta above 0: set one, or count cells"

    _: KW_ONLY
    k: int = 6
    steps: int = 12

    def main(self, public: Public, others: list[Event]) -> Planned:
        return gaussian_sums(self, warm.CLUSTERS, self.steps, public.shape.person, others)

    def made(self, guard: Guard, task: Task, people: Floats) -> Marginals:
        z = math.sqrt(self.steps) / left(guard, calibrate_gaussian)
        clusters = warm.private_clusters(guard, people, self.k, z, self.steps)
        particles = warm.mixture_particles(clusters, self.points, clusters.spread, task.rng)
        return of_equal_weight(particles, clusters.spread)

    def check(self) -> None:
        super().check()
        check_whole("k", self.k, 1, 256)


# Outside the guard ---------------------------------------------------------------------------


def unguarded(snapshots: Snapshots) -> list[Floats]:
    """T clouds (n_i, d) of raw records: the one place besides the guard where they are read.

    Whoever asks has left the guard, and has to say so. `NonPrivate` promises nothing, and its
    certificate says NOT PRIVATE. `MarginalSynthesizer` brings a mechanism of its own, whose
    guarantee its certificate states as another's word.
    """
    points, bins = snapshots._rows.in_slabs(snapshots.axis.bins)
    return [points[bins == i].astype(np.float64) for i in range(snapshots.n_times)]
