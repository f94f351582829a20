"""What a sceptic would try instead: simple measures, planned, paid and certified as all others.

Every baseline is a recipe with one verb, and what it returns is an ordinary model:

    Name(epsilon, delta, adjacency="add-remove", seed=None, ...).fit(snapshots) -> TrajectoryModel

It is a `TrajectorySynthesizer` with a `Measure` of its own: nothing at all, private clusters, noisy
counts of cells. `NonPrivate` is our dynamics without noise on the records, from the same start in
the middle of the box, with the same annealing and the same coupling of times as a fit by private
gradients; its moments are exact: NOT PRIVATE. `methods` has what others published.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from privtraj.base.arrays import Floats, Ints, systematic
from privtraj.base.errors import InputError, check_whole
from privtraj.base.space import unit_time
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
from privtraj.measures.cells import MOST_CELLS_PER_TIME
from privtraj.measures.langevin import (
    Fixed,
    MomentSource,
    gradient_schedule,
    middle,
    run,
)
from privtraj.measures.likelihood import Mixture, Moments, moments, person_vectors
from privtraj.measures.windows import Resolution
from privtraj.motion.process import Reference
from privtraj.paper import warm_starts as warm
from privtraj.privacy import noise
from privtraj.privacy.certificate import Certificate
from privtraj.privacy.events import Event, GaussianSum, LaplaceCounts, Opaque, Person
from privtraj.privacy.guard import CellCounts, Guard, Laplace, Release
from privtraj.privacy.ledger import BudgetPlan, Planned, calibrate_gaussian, calibrate_laplace
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


# Counts of cells -------------------------------------------------------------------------------

CELLS = "people per cell"
CROWD = 5.0  # people times epsilon that a cell should hold


@dataclass(frozen=True, repr=False)
class Counted(Baseline):
    """A baseline that counts cells. cells: per side; None chooses it from the head count.

    Pure: with Laplace noise nothing of delta is used.
    """

    releases: ClassVar[int] = 1
    """Counts of everybody at most."""

    @property
    def counts_people(self) -> bool:
        return self.cells is None

    def main(self, public: Public, others: list[Event]) -> Planned:
        person = public.shape.person
        epsilon = calibrate_laplace(*self.budget, others=others, person=person)
        epsilon = min(epsilon, noise.EPSILON_RANGE[1])
        cells = LaplaceCounts(epsilon, CELLS, 0.0, *person, person.weight)
        return Planned(cells, self.releases, shared=True)

    def _left(self, guard: Guard) -> float:
        """The epsilon of one more noisy count of everybody, in the noise's own units."""
        return min(left(guard, calibrate_laplace), noise.EPSILON_RANGE[1])


@dataclass(frozen=True, repr=False)
class ThresholdedHistogram(Counted):
    """Per time a histogram on G^d cells with discrete Laplace noise; keep what stands out.

    Mechanism: noise P(x) ~ exp(-e |x|) on every count; cells with a noisy count above
    log(G^d) / e are kept, on average fewer than one of those without anybody; people are uniform
    inside the kept cells, in proportion to the noisy counts. Nothing kept: uniform on the box.
    Sensitivity: a record is in one cell of one time, so a person with one record added or removed
    moves one count by 1 (e = epsilon), a person replaced two (e = epsilon / 2). G by hand costs
    nothing; otherwise `grid`, from a head count that is paid for.
    """

    def made(self, guard: Guard, task: Task, people: Floats) -> Marginals:
        epsilon = self._left(guard)
        side = self.cells or grid(float(np.median(people)), guard.n_features, epsilon)
        counts = guard.ask(Release(CellCounts(side), Laplace(epsilon), CELLS))
        threshold = math.log(counts.shape[1]) / epsilon
        kept = np.where(counts > threshold, counts, 0).astype(np.float64)
        return in_cells(occupied(kept, side, guard.n_features), side, self.points, task.rng)


def grid(people: float, dimensions: int, epsilon: float) -> int:
    """G = (N e / CROWD)^(1 / (1 + d/2)), at least 2, with at most 2^18 cells.

    Cells of CROWD / e people, if people fill a set of dimension 1 + d/2 of the box: a curve and a
    little more on a line, all of a plane, about half of the directions beyond.
    """
    wanted = (people * epsilon / CROWD) ** (1 / (1 + dimensions / 2))
    return max(2, round(min(wanted, MOST_CELLS_PER_TIME ** (1 / dimensions))))


def in_cells(
    cells: Sequence[tuple[Ints, Floats]],
    side: int,
    points: int,
    rng: np.random.Generator,
    axes: Axes | None = None,
) -> Marginals:
    """Points uniform inside cells drawn in proportion to their weights.

    cells: for each time, whole coordinates (J, d) and weights (J,); none: uniform on the box.
    side: cells per axis of a number; axes: by default all are numbers.
    """
    dimensions = cells[0][0].shape[1]
    sides = np.array((axes or Axes.numeric(dimensions)).sides(side))
    clouds, widths = [], []
    for places, weights in cells:
        corner, width = np.zeros((points, dimensions)), np.ones(dimensions)
        if len(places):
            corner, width = places[systematic(weights, points, rng)] / sides, 1 / sides
        clouds.append(corner + width * rng.uniform(size=corner.shape))
        widths.append(1 / side if len(places) else 1.0)
    return of_equal_weight(np.stack(clouds), np.array(widths) / math.sqrt(12))


def occupied(weights: Floats, side: int, dimensions: int) -> list[tuple[Ints, Floats]]:
    """The cells of positive weight, for `in_cells`; weights (T, side ** d), last axis fastest."""
    shape = (side,) * dimensions
    cells = []
    for row in weights:
        index = np.flatnonzero(row > 0)
        cells.append((np.stack(np.unravel_index(index, shape), axis=-1), row[index]))
    return cells


# Dynamics without noise -----------------------------------------------------------------------

CELL_CHUNK = 256  # points whose vectors are held at a time
NOTHING_PROMISED = (1e6, math.nextafter(1.0, 0.0))
NO_NOISE = "none: NOT PRIVATE, the records were used as they are"


@dataclass(frozen=True, repr=False)
class NonPrivate(Baseline):
    """Mean-field Langevin dynamics on the records as they are. NOT PRIVATE.

    What our method would do if privacy cost nothing. The records do not go through the guard, and
    the certificate promises nothing: epsilon 10^6 at a delta of 1 - 2^-53, `private` False; such a
    model is saved only with not_private=True. epsilon and delta are accepted, because all baselines
    are called alike, and ignored.
    """

    _: KW_ONLY
    particles: int = 256
    steps: int = 60

    def main(self, public: Public, others: list[Event]) -> Planned:
        return Planned(Opaque(*NOTHING_PROMISED, "all records, as they are", self.adjacency))

    def made(self, guard: Guard, task: Task, people: Floats) -> Marginals:
        guard.ledger.spend(task.plan.releases[0].event)
        clouds, rng = unguarded(task.public), task.rng  # type: ignore[arg-type]
        when, times, d = task.public.axis.times, len(clouds), guard.n_features
        most = max(1, *map(len, clouds))
        # people of a time have equal weights; a time without any has one in the middle
        centres, parts = np.full((times, most, d), 0.5), np.zeros((times, most))
        for i, cloud in enumerate(clouds):
            centres[i, : len(cloud)] = cloud
            parts[i, : max(len(cloud), 1)] = 1 / max(len(cloud), 1)
        state, _ = run(
            middle(times, self.particles, d),
            exact_moments(centres, parts),
            gradient_schedule(self.steps, 1 / self.steps, d),
            Fixed.between(np.diff(unit_time(when, when))),
            rng,
        )
        mixture = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), state.mixture)
        mass = np.asarray(state.mass, np.float64)
        weights = mass / mass.sum(axis=1, keepdims=True)
        return Marginals(mixture.particles, weights, mixture.bandwidth, mixture.bandwidth, {})

    @property
    def budget(self) -> Budget:
        return (*NOTHING_PROMISED, self.adjacency)

    def certified(self, *fit: Any, **more: Any) -> Certificate:
        exact = super().certified(*fit, **more)
        return replace(exact, private=False, noise=NO_NOISE)


def exact_moments(centres: Floats, weights: Floats) -> MomentSource:
    """Moments of points (T, n, d) of weights (T, n) that stand in for the people, without noise."""
    times, count, dimensions = centres.shape
    room = (0, -count % CELL_CHUNK)
    padded = np.pad(centres, ((0, 0), room, (0, 0))).astype(np.float32)
    chunks = padded.reshape(times, -1, CELL_CHUNK, dimensions)
    parts = np.pad(weights, ((0, 0), room)).astype(np.float32).reshape(times, -1, CELL_CHUNK)
    return lambda mixture: _weighted_moments(chunks, parts, mixture)


@jax.jit
def _weighted_moments(
    centres: jax.Array, weights: jax.Array, mixture: Mixture
) -> tuple[Moments, jax.Array]:
    """Moments of weighted points: centres (T, n, CELL_CHUNK, d), weights (T, n, CELL_CHUNK)."""

    def one(given: tuple[jax.Array, jax.Array, Mixture]) -> jax.Array:
        *chunks, mixture = given
        return jax.lax.map(lambda c: c[1] @ person_vectors(c[0], mixture), chunks).sum(axis=0)

    sums = jax.lax.map(one, (centres, weights, mixture))
    ones = jnp.ones(len(centres), jnp.float32)
    return moments(sums, ones, mixture), jnp.zeros_like(ones)
