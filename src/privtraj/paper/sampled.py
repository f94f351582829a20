"""Private gradients over sampled people, as the paper has them, in our own dynamics.

Every record takes part in a step by a coin of its own (Poisson sampling of rate q). Sums are
divided by q N with N public or released, never by how many took part. Everybody in every step costs
less for what it gives, so `TrajectorySynthesizer` does not sample.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Literal

from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError, is_number
from privtraj.columns.kinds import Axes
from privtraj.measures.base import Measure, Task, left, planned_event
from privtraj.measures.gradients import Gradients, GradientSettings, gradient_settings
from privtraj.measures.persistence import PERSISTENCE
from privtraj.privacy.certificate import SAMPLING_RATE, Certificate
from privtraj.privacy.guard import Guard
from privtraj.privacy.ledger import calibrate_noise
from privtraj.recipe import Recipe
from privtraj.synthesizer import TrajectorySynthesizer

SAMPLED_STEPS = 30  # whatever the number of people: it must be known in advance; by hand, 2026-11


class SampledGradients(Gradients):
    """Gradients in which each record takes part in a step with probability `rate`."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def steps(self, recipe: Recipe) -> int:
        return recipe.steps or SAMPLED_STEPS

    def nothing_left(self) -> InputError:
        return InputError(
            "sampled steps cannot be accounted for at so small a delta: raise ",
            Arg("delta="),
            ", or use ",
            Arg("rate", 1),
        )

    def settings(self, guard: Guard, people: Floats, task: Task) -> GradientSettings:
        steps = self.steps(task.recipe)
        later = planned_event(task.plan, PERSISTENCE)
        z = left(guard, partial(calibrate_noise, steps=steps, rate=self.rate), later)
        # as much noise, against the sum over everybody, as full steps of this mu would have
        mu = self.rate * math.sqrt(steps) / z
        settings = gradient_settings(people, guard.n_features, mu, steps, task.recipe)
        return replace(settings, noise_multiplier=z)


@dataclass(frozen=True, repr=False)
class SampledSynthesizer(TrajectorySynthesizer):
    """A fit by private gradients in which each record takes part in a step with probability `rate`.

    steps: their number, which must not follow from the data: steps of different numbers have loss
        curves of different shapes.  Other settings: as of `TrajectorySynthesizer`.
    """

    _: KW_ONLY
    measure: Literal["gradients"] = "gradients"
    windows: Literal["bins"] = "bins"
    rate: float

    def check(self) -> None:
        """Refuse settings that cannot be used."""
        super().check()
        if not (is_number(self.rate) and 1e-4 <= self.rate <= 1):
            raise InputError(Arg("rate"), " must be between 0.0001 and 1")

    def measure_for(self, axes: Axes | int) -> Measure:
        return SampledGradients(self.rate)

    def certified(self, *fit: Any, **more: Any) -> Certificate:
        """As `TrajectorySynthesizer.certified`."""
        more[SAMPLING_RATE] = self.rate
        return super().certified(*fit, **more)
