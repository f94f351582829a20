"""What all baselines share: settings, the way through the guard, the head count, the model.

Two that need no more stand here: `Uniform` and `ClusterMixture`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError, check_range, check_whole
from privtraj.data.snapshots import Snapshots
from privtraj.measures.base import HEAD_COUNT, counts_event, head_count, left, public_people
from privtraj.model.model import TrajectoryModel, assemble, diffusivity_or
from privtraj.paper import warm_starts as warm
from privtraj.privacy import noise
from privtraj.privacy.certificate import PUBLIC_COUNTS, Certificate, certify
from privtraj.privacy.events import Adjacency, check_adjacency, check_budget
from privtraj.privacy.guard import Guard, Watcher
from privtraj.privacy.ledger import Ledger, calibrate_gaussian
from privtraj.recipe import SMALLEST_EPSILON, PublicCounts, check_public_counts


class Release(NamedTuple):
    """What a baseline makes of its noisy answers.

    particles: (T, m, d) in the unit cube.
    spread: (T,) standard deviation, per coordinate, of a person around the place that stands for
        them; a person may move as far over a mean time gap, which sets the diffusivity.
    bandwidth: (T,) what of the spread is not in the particles yet; None for nothing.
    weights: (T, m), rows sum to 1; None for equal ones.
    """

    particles: Floats
    spread: Floats
    bandwidth: Floats | None = None
    weights: Floats | None = None


@dataclass
class Baseline(ABC):
    """Settings of a fit. The constructor only stores them; `fit` spends the budget.

    epsilon, delta: the guarantee. Baselines that are `pure` spend nothing of delta.
    adjacency: "add-remove" or "replace-one".
    seed: None for private noise; a number makes the run repeatable and the model NOT PRIVATE.
    public_counts: the number of people in each bin, as numbers, if they are public knowledge; only
        with "replace-one".
    count_share: share of epsilon for the private number of people per bin, where it is needed.
    points: particles per time.
    diffusivity: variance, in squared shares of the box, per time range; None follows the spread.
    """

    pure: ClassVar[bool] = True
    mixed: ClassVar[bool] = False
    """Whether it takes categories."""

    epsilon: float = 1.0
    delta: float = 1e-5
    _: KW_ONLY
    adjacency: Adjacency = "add-remove"
    seed: int | None = None
    public_counts: PublicCounts = None
    count_share: float = 0.05
    points: int = 600
    diffusivity: float | None = None

    def fit(self, snapshots: Snapshots, *, watcher: Watcher | None = None) -> TrajectoryModel:
        """Spend the budget on these snapshots and return the model that may be released.

        watcher: told of every noisy answer; it sees only what leaves the guard.
        """
        if not isinstance(snapshots, Snapshots):
            raise InputError("fit takes Snapshots, from Snapshots.from_table or from_arrays")
        self.check()
        snapshots.check_bins(type(self).__name__)
        if snapshots.axes.mixed and not self.mixed:
            raise InputError(f"{type(self).__name__} takes numbers only: leave the categories out")
        check_public_counts(self.public_counts, self.adjacency, snapshots.n_times)
        ledger, source = self._ledger(), noise.source_for(self.seed)
        guard = self._guard(snapshots, ledger, source, watcher)
        public: dict[str, Any] = snapshots.public_inputs()
        if self.public_counts is not None:
            public[PUBLIC_COUNTS] = list(self.public_counts)
        made = self._release(snapshots, guard, np.random.default_rng(self.seed))
        accounted = self._accounted(ledger)
        certificate = certify(accounted, public_inputs=public, private_noise=source.private)
        times, m, _ = made.particles.shape
        return assemble(
            snapshots,
            snapshots.axes.centred(made.particles),
            np.full((times, m), 1 / m) if made.weights is None else made.weights,
            bandwidth=np.zeros(times) if made.bandwidth is None else made.bandwidth,
            diffusivity=diffusivity_or(self.diffusivity, made.spread, snapshots.gaps),
            certificate=self._certificate(certificate),
            cloud_size=m,
            settings={"baseline": type(self).__name__},
            diagnostics={"spread": made.spread.tolist()},
        )

    @abstractmethod
    def _release(self, snapshots: Snapshots, guard: Guard, rng: np.random.Generator) -> Release:
        """Ask the guard, then post-process. Of the snapshots, only what is public may be used."""

    def check(self) -> None:
        """Refuse settings that cannot be used; needs no data."""
        check_budget(self.epsilon, self.delta)
        check_adjacency(self.adjacency)
        check_public_counts(self.public_counts, self.adjacency)
        check_range("epsilon", self.epsilon, SMALLEST_EPSILON)
        check_range("count_share", self.count_share, 0.01, 0.9)
        check_whole("points", self.points, 2, 4096)
        if self.diffusivity is not None:
            check_range("diffusivity", self.diffusivity, 1e-9, 100.0)

    def _ledger(self) -> Ledger:
        return Ledger(self.epsilon, 0.0 if self.pure else self.delta, self.adjacency)

    def _guard(
        self, snapshots: Snapshots, ledger: Ledger, source: noise.Source, watcher: Watcher | None
    ) -> Guard:
        """The only holder of rows."""
        return snapshots.guarded(Guard, ledger, source, watcher=watcher)

    def _people(self, guard: Guard) -> Floats:
        """People per bin (T,): public, or released for count_share of epsilon."""
        if self.public_counts is not None:
            return public_people(self.public_counts)
        head = counts_event(guard.ledger, self.count_share, HEAD_COUNT, guard.person)
        return head_count(guard, head.epsilon)

    def _accounted(self, ledger: Ledger) -> Ledger:
        """What is certified of what was spent: at least as much."""
        return ledger

    def _certificate(self, exact: Certificate) -> Certificate:
        """What is said of a fit that the ledger alone does not tell."""
        return exact


class Uniform(Baseline):
    """Uniform on the box at every time, which asks nobody anything: epsilon 0, delta 0."""

    mixed: ClassVar[bool] = True

    def _release(self, snapshots: Snapshots, guard: Guard, rng: np.random.Generator) -> Release:
        shape = (guard.n_times, self.points, guard.n_features)
        return Release(rng.uniform(size=shape), np.full(guard.n_times, 12**-0.5))


@dataclass(kw_only=True)
class ClusterMixture(Baseline):
    """k clusters per time by noisy Lloyd steps; people are drawn from the mixture of normals.

    Mechanism: the head count at count_share of epsilon (or public), then `steps` Gaussian sums of
    one noise multiplier z (`warm.private_clusters`). Sensitivity: a record's vector has norm at
    most c over all clusters and is in one time, so the stacked sums of a step move by at most c if
    a person with one record is added or removed, by 2 c if one is replaced; K steps are exactly
    (sqrt(K) / z)-GDP, or twice that. Needs a delta.
    """

    pure: ClassVar[bool] = False

    k: int = 6
    steps: int = 12

    def _release(self, snapshots: Snapshots, guard: Guard, rng: np.random.Generator) -> Release:
        people = self._people(guard)
        z = math.sqrt(self.steps) / left(guard, calibrate_gaussian)
        clusters = warm.private_clusters(guard, people, self.k, z, self.steps)
        particles = warm.mixture_particles(clusters, self.points, clusters.spread, rng)
        return Release(particles, clusters.spread)

    def check(self) -> None:
        super().check()
        check_whole("k", self.k, 1, 256)
        check_whole("steps", self.steps, 1, 1000)
        if self.delta == 0:
            raise InputError("private clusters need a delta above 0: set one, or count cells")


# Outside the guard ---------------------------------------------------------------------------


def unguarded(snapshots: Snapshots) -> list[Floats]:
    """T clouds (n_i, d) of raw records: the one place besides the guard where they are read.

    Whoever asks has left the guard, and has to say so. `NonPrivate` promises nothing, and its
    certificate says NOT PRIVATE. `MarginalSynthesizer` brings a mechanism of its own, whose
    guarantee its certificate states as another's word.
    """
    points, bins = snapshots._rows.in_slabs(snapshots.axis.bins)
    return [points[bins == i].astype(np.float64) for i in range(snapshots.n_times)]
