"""How finely to count: chosen from public and released numbers alone.

Cells must be few enough to stand out and small enough to matter. A cell where people are should
hold `PEOPLE_EPSILON_PER_CELL` / epsilon of them or more, and at least `PEOPLE_PER_CELL` whatever
the budget. If people occupy a share `area` of the box (see `survey`), that is
    G = (min(N epsilon / PEOPLE_EPSILON_PER_CELL, N / PEOPLE_PER_CELL) / area)^(1/d)
cells per side, but no more than FINEST (N epsilon / FINEST_PEOPLE)^(1 / (1 + d/2)), which is fine
enough for people spread over a part of the box only: concentration at some times must not starve
the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privtraj.counts.constants import (
    AMPLE_BUDGET,
    AMPLE_PER_SIDE,
    FINEST,
    FINEST_PEOPLE,
    LEAST_BUDGET,
    LEAST_PER_SIDE,
    MAX_POOLINGS,
    MOST_CELLS_PER_TIME,
    MOST_PER_SIDE,
    MOST_PER_SIDE_BEYOND,
    PEOPLE_EPSILON_PER_CELL,
    PEOPLE_EPSILON_PER_CELL_BEYOND,
    PEOPLE_PER_CELL,
    PEOPLE_PER_CELL_BEYOND,
    RELEASED_PARTICLES,
    TIME_COUPLING,
)

_MULTIPLE = 2**MAX_POOLINGS  # of every side, so that counts can be pooled


@dataclass(frozen=True)
class CountsSettings:
    """What a fit by counts will do.

    epsilon: of the noise of the counts.  head_epsilon: of the noise of the head count before them;
    None if that is public.  time_coupling: weight of transport between times, 0 for none.
    bandwidth: None follows the cells.  worth: rough number of people per time that this buys.
    """

    cells_per_side: int
    epsilon: float
    worth: float
    head_epsilon: float | None = None
    particles: int = RELEASED_PARTICLES
    time_coupling: float = TIME_COUPLING
    bandwidth: float | None = None

    def summary(self) -> dict[str, Any]:
        """What the model says about them."""
        return {
            "measure": "counts",
            "particles": self.particles,
            "steps": 0,
            "cells_per_side": self.cells_per_side,
        }


def counts_settings(
    people: float,
    features: int,
    epsilon: float,
    *,
    area: float = 1.0,
    cells: int | None = None,
    particles: int | None = None,
    time_coupling: float | None = None,
    **rest: Any,
) -> CountsSettings:
    """The settings for `people` at each time and counts of noise epsilon; None is chosen here.

    area: share of the box that people occupy, released.
    """
    side = cells or cells_per_side(people, features, epsilon, area)
    return CountsSettings(
        cells_per_side=side,
        epsilon=epsilon,
        worth=people * epsilon / (2 * math.log(side**features)),
        particles=particles or RELEASED_PARTICLES,
        time_coupling=TIME_COUPLING if time_coupling is None else time_coupling,
        **rest,
    )


def cells_per_side(people: float, features: int, epsilon: float, area: float = 1.0) -> int:
    """G, a multiple of 4 so that counts can be pooled twice, within the number of cells allowed."""
    needed = max(
        PEOPLE_EPSILON_PER_CELL.get(features, PEOPLE_EPSILON_PER_CELL_BEYOND) / epsilon,
        PEOPLE_PER_CELL.get(features, PEOPLE_PER_CELL_BEYOND),
    )
    wanted = _multiple(max(people / needed / area, 1.0) ** (1 / features))
    spread = max(people * epsilon / FINEST_PEOPLE, 1.0) ** (1 / (1 + features / 2))
    least = _least_per_side(people * epsilon, features)
    most = min(_multiple(FINEST * spread), MOST_PER_SIDE.get(features, MOST_PER_SIDE_BEYOND))
    wanted = int(np.clip(wanted, least, max(least, most)))
    allowed = MOST_CELLS_PER_TIME ** (1 / features) * (1 + 1e-9)
    if wanted > allowed:
        wanted = int(allowed) // _MULTIPLE * _MULTIPLE or 2
    return wanted


def _least_per_side(people_epsilon: float, features: int) -> int:
    if features <= 2 and people_epsilon >= AMPLE_BUDGET:
        return AMPLE_PER_SIDE
    return LEAST_PER_SIDE.get(features, _MULTIPLE) if people_epsilon >= LEAST_BUDGET else _MULTIPLE


def _multiple(side: float) -> int:
    return _MULTIPLE * round(side / _MULTIPLE)
