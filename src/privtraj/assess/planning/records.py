"""People with several records: pay for all of them, or keep one of each at random?

Kept at random, a person is one record and moves a sum by c. With up to g records in different bins
a person moves it by sqrt(g) c, and counts by g, so the same guarantee needs more noise: `price`
times as much. But the sums then hold all records. With r records per person on average, noise per
record is price / r times that of one at random: paying for all is better where r > price.

For full Gaussian sums price = sqrt(g), or g where records may be together in a bin; for counts it
is g, or a little less where delta helps. For sampled sums it follows from `pld`.
"""

from __future__ import annotations

import math
from typing import Literal

from privtraj.privacy.calibration import calibrate_laplace, calibrate_noise
from privtraj.privacy.events import Adjacency, Person


def price(
    records: int,
    measure: Literal["gradients", "counts", "marginals"],
    *,
    epsilon: float,
    delta: float,
    adjacency: Adjacency = "add-remove",
    together: bool = False,
    rate: float = 1.0,
    steps: int = 1,
) -> float:
    """Noise that `records` records per person need, over the noise that one needs."""
    if measure == "counts":
        budget = (epsilon, delta, adjacency)
        several = calibrate_laplace(*budget, person=Person(records, together))
        return calibrate_laplace(*budget) / several
    if rate == 1:
        return float(records) if together else math.sqrt(records)
    needed = [
        calibrate_noise(
            epsilon, delta, adjacency, steps=steps, rate=rate, person=Person(g, together)
        )
        for g in (records, 1)
    ]
    return needed[0] / needed[1]
