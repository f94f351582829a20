"""From the worth of simulated fits to that of the real one, which is less.

People of stand-ins, or of a released model, are easier to describe than those of a real table: what
no simulation knows of (thin tails, narrow groups, sudden moves) is lost without a trace. How much
less, and how much that varies, was measured once on random populations that are neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from privtraj.planning.question import LARGEST_WORTH


class Optimism(NamedTuple):
    """Simulated worth over true worth: its median, and 95 and 5 % of populations."""

    middle: float
    most: float
    least: float


OPTIMISM = {
    "counts": Optimism(1.2, 5.5, 0.65),
    "gradients": Optimism(2.5, 13.0, 0.75),
    "marginals": Optimism(2.5, 13.0, 0.75),
}
"""Measured by experiments/quality.py on 140 populations (mixtures, skewed factors, rings); plans and
refits came out alike. Marginals, of which there are few cases, are taken to be as gradients are."""


@dataclass(frozen=True)
class Estimate:
    """Worth in people per time, and the numbers between which it is in nine cases of ten.

    or_more: simulated people were as good as can be told, so that it may be any number above.
    """

    people: float
    low: float
    high: float
    or_more: bool = False


def estimated(simulated: float, measure: str) -> Estimate:
    """The worth to expect where simulated fits of this measure reach that many people."""
    optimism, most = OPTIMISM[measure], float(LARGEST_WORTH)
    return Estimate(
        simulated / optimism.middle,
        simulated / optimism.most,
        min(simulated / optimism.least, most),
        simulated >= 0.98 * most,
    )
