"""What a released model says of its ranges: free, as it is made of released numbers alone.

It can tell less than a look at the records, and later: the budget is gone by then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from privtraj.columns.kinds import Integer, Number

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

# Set by hand.
NEARLY_ALL = 0.9
"""Share of people near one bound, or in one slab, from which on a range is plainly wrong. Below the
share of records that were moved there, as noise and the method spread people."""
WALL = 0.02
"""How near is near, as a share of the range, where the model resolves so much."""
COARSEST = 0.1
"""Where it resolves less than this, nothing is said: a range may be that much too wide."""
CLEAR = 5.0
"""How many deviations of its noise a number of people must have to say anything."""


def doubts(model: TrajectoryModel) -> tuple[str, ...]:
    """Sentences about ranges that the released numbers say are plainly wrong; mostly none."""
    return (*_at_bounds(model), *_in_one_slab(model))


def _at_bounds(model: TrajectoryModel) -> Iterator[str]:
    """People within the wall of a bound, mean over times."""
    wall = max(WALL, _resolution(model))
    if wall > COARSEST:
        return
    weights = model.weights / model.weights.sum(axis=1, keepdims=True)
    for k, column in enumerate(model.columns):
        if not isinstance(column, Number) or isinstance(column, Integer):
            continue
        x = model.particles[..., k]
        for end, near in (("lower", x <= wall), ("upper", x >= 1 - wall)):
            share = float((weights * near).sum(axis=1).mean())
            if share >= NEARLY_ALL:
                yield (
                    f"{100 * share:.0f} % of the released people are at the {end} bound of "
                    f"'{column.name}': its bounds, or its unit, are plainly wrong"
                )


def _resolution(model: TrajectoryModel) -> float:
    """As a share of the box: a cell, or twice the bandwidth."""
    cells = model.settings.get("cells_per_side")
    return 1 / cells if cells else 2 * float(np.mean(model.bandwidth))


def _in_one_slab(model: TrajectoryModel) -> Iterator[str]:
    people = np.array(model.diagnostics.get("people_per_time") or [], dtype=np.float64)
    noise = float(model.diagnostics.get("people_noise") or 0.0)
    if len(people) < 2 or people.sum() < CLEAR * noise * len(people) ** 0.5:
        return
    share = people.max() / people.sum()
    if share >= NEARLY_ALL and not model.certificate.counts_are_public:
        yield (
            f"{100 * share:.0f} % of the released people are in one of {len(people)} slabs of "
            "time: the time range, or the unit of the times, is plainly wrong"
        )
