"""The paper's algorithm with the settings that it leaves open, the same in every reproduction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from privtraj.paper.synthesizer import PaperSynthesizer, Phase

UNSTATED: dict[str, Any] = {"lam": 1.0, "sigma": 0.1}  # the paper does not say: lambda, sigma


def recipe(phases: Sequence[Phase], people: int, **settings: Any) -> PaperSynthesizer:
    """A run of the paper. People per time are public, as in the paper, and equally many."""
    return PaperSynthesizer(phases, public_counts=people, **settings, **UNSTATED)


def means_noise(epsilon: float, delta: float) -> float:
    """Noise multiplier of the paper's Proposition 4.1: sqrt(8 log(1 / delta)) / epsilon.

    It adds a standard deviation of sqrt(8 log(1 / delta)) R / (epsilon N) to means of points in a
    ball of radius R, so that much without R / N to sums.
    """
    return math.sqrt(8 * math.log(1 / delta)) / epsilon
