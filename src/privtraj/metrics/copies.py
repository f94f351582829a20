"""Does the model repeat people? Distances to the nearest real record, against fresh people's."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.metrics.clouds import as_points, each_time, pair, path_pair

CLOSE = 0.05  # the quantile of the hold-out's distances that counts as close


@dataclass(frozen=True)
class Memorisation:
    """Distances to the nearest training record, of synthetic people and of a hold-out.

    ratio: median of the synthetic over median of the hold-out; about 1 or more when nothing is
    memorised, well below 1 when training records come back.
    share_close: share of synthetic people within `close`, the 5 % quantile of the hold-out's
    distances.  share_expected: the same of the hold-out itself, 0.05 or a little more where records
    repeat. A larger share of synthetic people means copies; it sees a few among many, which the
    ratio does not.
    """

    ratio: float
    share_close: float
    share_expected: float
    median_synthetic: float
    median_holdout: float
    close: float

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


def nearest_distances(points: Any, training: Any) -> Floats:
    """(n,) distance of each point (n, d) to the nearest of training (k, d)."""
    from scipy.spatial import KDTree

    x, y = pair(points, training)
    return KDTree(y).query(x)[0]


def memorisation(synthetic: Any, training: Any, holdout: Any) -> Memorisation:
    """Compare T clouds of synthetic people with T of training records, and T of a hold-out.

    Every list holds clouds (n, d), one per time; records are compared at the same time, and all
    distances are pooled. It is a check for copies and no privacy guarantee.
    """
    ours, theirs = (
        np.concatenate([nearest_distances(x, y) for x, y in each_time(people, training)])
        for people in (synthetic, holdout)
    )
    median, other = float(np.median(ours)), float(np.median(theirs))
    close = float(np.quantile(theirs, CLOSE))
    return Memorisation(
        ratio=median / other if other > 0 else float("nan"),
        share_close=float(np.mean(ours <= close)),
        share_expected=float(np.mean(theirs <= close)),
        median_synthetic=median,
        median_holdout=other,
        close=close,
    )


def path_memorisation(synthetic: Any, training: Any, holdout: Any) -> Memorisation:
    """The same of whole paths (n, T, d): root mean square distance over times."""
    x, y = path_pair(synthetic, training)
    z, y = path_pair(holdout, y)
    return memorisation([as_points(x)], [as_points(y)], [as_points(z)])
