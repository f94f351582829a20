"""Nothing at all: the box."""

from __future__ import annotations

import numpy as np

from privtraj.baselines.base import Baseline, Release
from privtraj.data.snapshots import Snapshots
from privtraj.privacy.guard import Guard


class Uniform(Baseline):
    """Uniform on the box at every time, which asks nobody anything: epsilon 0, delta 0."""

    def _release(self, snapshots: Snapshots, guard: Guard, rng: np.random.Generator) -> Release:
        shape = (guard.n_times, self.points, guard.n_features)
        return Release(rng.uniform(size=shape), np.full(guard.n_times, 12**-0.5))
