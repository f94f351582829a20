"""Numbers within groups: are the people of one sex, or of one diagnosis, in the right place?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.columns.axes import Axes
from privtraj.columns.kinds import Category, Column
from privtraj.metrics.clouds import pair
from privtraj.metrics.encoding import known_columns, numbers_alone, of_table
from privtraj.metrics.registry import MOST, cloud_metric
from privtraj.metrics.transport import squared_wasserstein2

LEAST_GROUP = 8
"""Real people of a level, below which it is left out: as for a time of an evaluation."""


@cloud_metric(
    "group_squared_w2", "squared W2 of numbers in groups", place=25, most=MOST, mixed=True
)
def group_squared_w2(
    synthetic: Any, real: Any, *, columns: Sequence[Column] | None = None
) -> float:
    """Mean over categories of sum_c q_c W2(numbers of c, numbers of c)^2, q_c real shares.

    Of points (n, d), (k, d) in the unit cube; lower is better. Levels of fewer than 8 real people
    are left out. Where nobody synthetic has a level, all synthetic people stand in for it. nan
    without numbers, or without a level of so many people.
    """
    x, y = pair(synthetic, real)
    known = known_columns(columns, x.shape[1])
    axes = Axes.of(known)
    ours, theirs = axes.level_of(x), axes.level_of(y)
    a, b = numbers_alone(x, known), numbers_alone(y, known)
    if a.shape[1] == 0:
        return float("nan")
    groupings = [k for k in of_table(known) if isinstance(known[k], Category)]
    found = [_within(a, b, ours[:, k], theirs[:, k]) for k in groupings]
    finite = [value for value in found if np.isfinite(value)]
    return float(np.mean(finite)) if finite else float("nan")


def _within(a: Floats, b: Floats, ours: Ints, theirs: Ints) -> float:
    levels, counts = np.unique(theirs, return_counts=True)
    total = weight = 0.0
    for level, count in zip(levels, counts, strict=True):
        if count < LEAST_GROUP:
            continue
        mine = a[ours == level]
        total += count * squared_wasserstein2(mine if len(mine) else a, b[theirs == level])
        weight += count
    return total / weight if weight else float("nan")
