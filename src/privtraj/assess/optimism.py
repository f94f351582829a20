"""From the worth of simulated fits to that of the real one, which is less.

People of stand-ins, or of a released model, are easier to describe than those of a real table: what
no simulation knows of (thin tails, narrow groups, sudden moves) is lost without a trace. How much
less, and how much that varies, was measured once on random populations that are neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from privtraj.metrics.people import MOST_TOLD


class Optimism(NamedTuple):
    """Simulated worth over true worth, middle (10^4 / (N epsilon))^power in the median of
    populations; in 5 % of them it is below `least` times that, in 5 % above `most` times."""

    middle: float
    power: float
    least: float
    most: float


OPTIMISM = {
    "counts": Optimism(1.4, 0.0, 0.42, 5.0),
    "gradients": Optimism(1.8, 0.45, 0.3, 2.4),
    "marginals": Optimism(1.8, 0.45, 0.3, 2.4),
}
"""Measured by experiments/quality.py on 334 populations of nine families; plans and refits came out
alike. Marginals, which it has no cases of, are taken to be as gradients are."""


@dataclass(frozen=True)
class Estimate:
    """Worth in people per time, and the numbers between which it is in nine cases of ten.

    or_more: simulated people were as good as can be told, so that it may be any number above.
    """

    people: float
    low: float
    high: float
    or_more: bool = False


def estimated(simulated: float, measure: str, budget: float) -> Estimate:
    """The worth to expect where simulated fits of this measure reach that many people.

    budget: N epsilon, of all people together.
    """
    optimism, most = OPTIMISM[measure], float(MOST_TOLD)
    people = simulated / (optimism.middle * (1e4 / budget) ** optimism.power)
    people, low = min(people, most), min(people, most) / optimism.most
    return Estimate(people, low, min(people / optimism.least, most), simulated >= 0.98 * most)
