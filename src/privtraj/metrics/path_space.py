"""Whole paths against true paths: is it the marginals, or who becomes whom?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.metrics.clouds import as_points, halves, partial_paths, path_pair
from privtraj.metrics.registry import MOST, path_metric
from privtraj.metrics.transport import average_squared_w2, wasserstein2


@path_metric("path_w2", "path W2", place=10, most=MOST, coupled=True)
def path_wasserstein2(a: Any, b: Any) -> float:
    """W2 between paths (n, T, d), (k, T, d) as clouds in R^(T d), divided by sqrt(T).

    In units of the data: the root mean square over people and times of the distance between
    partners, at best. 0 for equal sets of paths, lower is better; never below the root of the
    average squared W2 of the marginals.
    """
    x, y = path_pair(a, b)
    return wasserstein2(as_points(x), as_points(y))


def randomly_coupled(paths: Any, *, seed: int = 0) -> Floats:
    """Paths (n, T, d) with the same marginals and no memory: each time is shuffled by itself.

    Who is absent, where a path is nan, stays so.
    """
    array = partial_paths(paths).copy()
    rng = np.random.default_rng(seed)
    for i in range(array.shape[1]):
        there = np.flatnonzero(np.isfinite(array[:, i, 0]))
        array[there, i] = array[rng.permutation(there), i]
    return array


@dataclass(frozen=True)
class PathScore:
    """Path-space W2 with what it must be read against, all of the same number of paths.

    floor: other true paths.  ceiling: true marginals, coupled at random.  marginal: the least that
    any coupling of the synthetic marginals could score.
    """

    value: float
    floor: float
    ceiling: float
    marginal: float

    @property
    def coupling(self) -> float:
        """(ceiling - value) / (ceiling - floor): 1 like true paths, 0 like a random coupling of
        the true marginals, below 0 worse than that; not a number where the two are the same."""
        room = self.ceiling - self.floor
        return (self.ceiling - self.value) / room if room > 0 else float("nan")

    def to_dict(self) -> dict[str, float]:
        return {**asdict(self), "coupling": self.coupling}


def path_score(synthetic: Any, truth: Any, *, fresh: Any = None, seed: int = 0) -> PathScore:
    """Score synthetic paths (n, T, d) against true paths (k, T, d).

    fresh: further true paths, for floor and ceiling; without them one random half of the truth
    stands in, and the other half is what everything is compared with.
    """
    x, y = path_pair(synthetic, truth)
    rng = np.random.default_rng(seed)
    if fresh is None:
        some, others = halves(len(y), rng)
        z, y = y[some], y[others]
    else:
        z, y = path_pair(fresh, y)
    size = min(len(x), len(z))
    x, z = (paths[rng.permutation(len(paths))[:size]] for paths in (x, z))
    return PathScore(
        value=path_wasserstein2(x, y),
        floor=path_wasserstein2(z, y),
        ceiling=path_wasserstein2(randomly_coupled(z, seed=seed), y),
        marginal=float(np.sqrt(average_squared_w2(x.swapaxes(0, 1), y.swapaxes(0, 1)))),
    )
