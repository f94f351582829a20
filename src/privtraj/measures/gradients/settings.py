"""How many particles and steps: chosen from public and released numbers alone.

A full step moves a particle by privacy noise of standard deviation m c z / N in every coordinate,
with z = sqrt(K) / mu for K equal steps and c of about CLIP(d) sigma. Summed over the d coordinates
and in units of sigma the noise is
    nu = m CLIP(d) sqrt(d K) / (N mu),
and the fit collapses when nu is much above NOISE_PER_BANDWIDTH. So
    m = NOISE_PER_BANDWIDTH N mu / (CLIP(d) sqrt(d K)).
K is the same for everybody: whatever a step tells is kept (`reweighting`), so that nothing is lost
with steps that are noisier, and nothing jumps with the budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privtraj.columns.axes import Axes
from privtraj.measures.gradients.constants import (
    CLIP_GROWTH,
    CLIP_PER_ROOT,
    LEAST_AFFORDED,
    LEAST_PARTICLES,
    MAX_PARTICLES,
    MOST_WORK,
    NOISE_PER_BANDWIDTH,
    STEPS,
    TIME_COUPLING,
)


@dataclass(frozen=True)
class GradientSettings:
    """What a fit by private gradients will do.

    noise_multiplier: z of every step.  time_coupling: weight of neighbouring times in a unit step.
    bandwidth: None is learned.  worth: rough number of people per time that this buys.
    by_hand: particles or bandwidth are as asked for, and the model has just these.
    """

    particles: int
    steps: int
    noise_multiplier: float
    worth: float
    time_coupling: float = TIME_COUPLING
    bandwidth: float | None = None
    by_hand: bool = False

    def summary(self) -> dict[str, Any]:
        """What the model says about them."""
        return {
            "measure": "gradients",
            "particles": self.particles,
            "steps": self.steps,
            "cells_per_side": None,
        }


def gradient_settings(
    people: float,
    features: int,
    times: int,
    mu: float,
    *,
    particles: int | None = None,
    steps: int | None = None,
    time_coupling: float | None = None,
    bandwidth: float | None = None,
) -> GradientSettings:
    """The settings for `people` at each of `times`; None is chosen here.

    mu: 1/z of all steps together, sqrt(K) / z.
    """
    k = steps or STEPS
    bought = _bought(people, features, mu, k)
    affordable = max(MOST_WORK / (people * times * k * (features + 1)), LEAST_AFFORDED)
    return GradientSettings(
        particles=particles or int(min(_rung(bought), affordable)),
        steps=k,
        noise_multiplier=math.sqrt(k) / mu,
        worth=bought,
        time_coupling=TIME_COUPLING if time_coupling is None else time_coupling,
        bandwidth=bandwidth,
        by_hand=particles is not None or bandwidth is not None,
    )


def free_features(axes: Axes) -> int:
    """d of tables that have categories: two for each of these, whatever its number of levels.

    A person's block of levels varies less than that many coordinates of numbers do.
    """
    return axes.n_numbers + 2 * int(axes.categories.sum())


def clip_per_bandwidth(features: int) -> float:
    """CLIP(d): norm of a typical person's vector in bandwidths, 0.75 at d = 2 and 2.3 at d = 8."""
    return CLIP_PER_ROOT * math.sqrt(features) * (1 + CLIP_GROWTH * max(features - 2, 0))


def _bought(people: float, features: int, mu: float, steps: int) -> float:
    """m = NOISE_PER_BANDWIDTH N mu / (CLIP(d) sqrt(d K))."""
    noise = clip_per_bandwidth(features) * math.sqrt(features * steps)
    return NOISE_PER_BANDWIDTH * people * mu / noise


def _rung(count: float) -> int:
    """Within limits, down to three leading binary digits (4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ...):
    noise in the number of people then hardly ever means another compilation."""
    count = float(np.clip(count, LEAST_PARTICLES, MAX_PARTICLES))
    power = 2 ** math.floor(math.log2(count))
    return int(power * (1 + 0.25 * math.floor(4 * (count / power - 1))))
