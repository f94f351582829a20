"""Private k-means at every time, and a round normal cloud around each centre."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privtraj.base.errors import InputError, check_whole
from privtraj.baselines.base import Baseline, Release
from privtraj.data.snapshots import Snapshots
from privtraj.measures.base import left
from privtraj.paper import warm_starts as warm
from privtraj.privacy.calibration import calibrate_gaussian
from privtraj.privacy.guard import Guard


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
        mu = left(guard, calibrate_gaussian)
        z = math.sqrt(self.steps) / mu
        clusters = warm.private_clusters(guard, people, self.k, z, self.steps)
        particles = warm.mixture_particles(clusters, self.points, clusters.spread, rng)
        return Release(particles, clusters.spread)

    def check(self) -> None:
        super().check()
        check_whole("k", self.k, 1, 256)
        check_whole("steps", self.steps, 1, 1000)
        if self.delta == 0:
            raise InputError("private clusters need a delta above 0: set one, or count cells")
