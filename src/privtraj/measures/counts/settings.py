"""How finely to count: the side of the cells with the least estimated error.

With G cells a side, squared W2 to expect from N people at epsilon, if they occupy a part of the box
of width s (in units of `USUAL_WIDTH`, at most 1; see `survey`), is
    E(G) = d / (24 G^2)  +  c_d s^2 sqrt((s G)^d) / (N epsilon).
The first term is what cells hide. The second is noise: the cells around people draw noise of
sqrt((s G)^d) / epsilon people together, a share of all people that is carried over a squared
distance c_d s^2. Concentrated people in a large box are as others in a small one, hence the s. E is
smooth in N epsilon, so more people or more budget never cross a jump of the rule.

Cells are crossed with L combinations of levels of the categories, G^p L cells for p numbers. People
who are split among l combinations have l times the noise in each of them, and E is that of N / l
people. How many of the L combinations people have is not known: l = sqrt(L) is between one and all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from privtraj.measures.counts.constants import (
    MOST_CELLS_PER_TIME,
    NOISE_COST,
    NOISE_COST_BEYOND,
    RELEASED_PARTICLES,
    TIME_COUPLING,
    USUAL_WIDTH,
)

_SIDES = (*range(2, 12, 2), *range(12, 64, 4), *range(64, 513, 16))  # even, so that counts pool


@dataclass(frozen=True)
class CountsSettings:
    """What a fit by counts will do.

    epsilon: of the noise of the counts.  head_epsilon: of the noise of the head count before them;
    None if that is public.  time_coupling: weight of transport between times, 0 for none.
    bandwidth: None follows the cells.  worth: rough number of people per time that this buys.
    released: of the particles, how many the model keeps, as curves; None for all.
    """

    cells_per_side: int
    epsilon: float
    worth: float
    head_epsilon: float | None = None
    particles: int = RELEASED_PARTICLES
    time_coupling: float = TIME_COUPLING
    bandwidth: float | None = None
    released: int | None = None

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
    levels: int = 1,
    area: float = 1.0,
    cells: int | None = None,
    particles: int | None = None,
    time_coupling: float | None = None,
    **rest: Any,
) -> CountsSettings:
    """The settings for `people` at each time and counts of noise epsilon; None is chosen here.

    features: p, numbers alone.  levels: L, combinations of those of categories.
    area: share of the box that people occupy, released.
    """
    side = cells or cells_per_side(people, features, epsilon, area, levels)
    return CountsSettings(
        cells_per_side=side,
        epsilon=epsilon,
        worth=people * epsilon / (2 * math.log(side**features * levels)),
        particles=particles or RELEASED_PARTICLES,
        time_coupling=TIME_COUPLING if time_coupling is None else time_coupling,
        **rest,
    )


def cells_per_side(
    people: float, features: int, epsilon: float, area: float = 1.0, levels: int = 1
) -> int:
    """The G with the least E within the number of cells allowed, an even number."""
    if features == 0:
        return 2  # no axis is cut
    most = MOST_CELLS_PER_TIME / levels
    allowed = [side for side in _SIDES if side**features <= most] or [2]
    each = people / occupied(levels)
    return min(allowed, key=lambda side: expected_error(side, each, features, epsilon, area))


def occupied(levels: int) -> float:
    """l, combinations of levels that people are split among, of L that there are: sqrt(L)."""
    return math.sqrt(levels)


def expected_error(
    side: int, people: float, features: int, epsilon: float, area: float = 1.0
) -> float:
    """E, squared W2 in squared shares of the box."""
    width = min(1.0, area ** (1 / features) / USUAL_WIDTH)
    cost = NOISE_COST.get(features, NOISE_COST_BEYOND) * width**2
    noise = cost * (width * side) ** (features / 2) / (people * epsilon)
    return features / (24 * side**2) + noise
