"""A fit by private gradients: noisy sums over people at every step of mean-field Langevin dynamics.

    measure   clipped sums of a step, paid for in equal parts
    infer     the particles move to the people, and the bandwidth is learned (`langevin`)
    couple    in the same step, neighbouring times draw each other by debiased transport
    weigh     points of the last mixture, so that they explain every release (`reweighting`)

How many particles and steps is chosen from public and released numbers alone. A full step moves a
particle by privacy noise of standard deviation m c z / N in every coordinate, with z = sqrt(K) / mu
for K equal steps and c of about sqrt(d) sigma at most. Summed over the d coordinates and in units
of sigma the noise is
    nu = m d sqrt(K) / (N mu),
and the fit collapses when it is much above 1. So
    m = N mu / (d sqrt(K)).
K is the same for everybody: whatever a step tells is kept (`reweighting`), so that nothing is lost
with steps that are noisier, and nothing jumps with the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from privtraj.base.arrays import Floats
from privtraj.measures.base import (
    CLIPPED,
    Marginals,
    Progress,
    Task,
    left,
    planned_event,
    slack_reserve,
)
from privtraj.measures.langevin import Fixed, gradient_schedule, middle, run
from privtraj.measures.likelihood import (
    Mixture,
    Moments,
    mass_weight,
    moments,
    typical_norm,
    weights_and_residual,
)
from privtraj.measures.numbers import Measured, Numbers, View
from privtraj.measures.persistence import PERSISTENCE
from privtraj.measures.reweighting import StepRelease, reweighted
from privtraj.privacy.events import GaussianSum, Person
from privtraj.privacy.guard import Gaussian, Guard, Release
from privtraj.privacy.ledger import Planned, calibrate_gaussian, calibrate_noise
from privtraj.privacy.sums import KernelSum, KernelSums
from privtraj.recipe import Recipe

STEP = "clipped sums of a step"
STEPS = 20  # K; 16, 24 and 40 differ little, since all releases are explained; 2026-11-16
MAX_PARTICLES = 512  # chosen for a user; bounds the work; set by hand, 2026-11
LEAST_PARTICLES = 4  # two miss groups: 1.7 times the error in eight features, 2026-11-16
LEAST_AFFORDED = 16  # particles that are kept however long a fit then takes; set by hand, 2026-11
MOST_WORK = 1e11  # numbers summed over people in one fit: some five minutes on two cores, measured


class Gradients(Numbers):
    """Private gradients of the paper's data fit, with Gaussian noise."""

    name = "gradients"
    words = "private gradients of particles"
    needs_delta = True
    sums_every_step = True
    seeks_subspace = True
    rate = 1.0  # at which records take part in a step

    def steps(self, recipe: Recipe) -> int:
        """K."""
        return recipe.steps or STEPS

    def main(self, recipe: Recipe, person: Person, others: list[Any]) -> Planned | None:
        steps, slack = self.steps(recipe), slack_reserve(recipe.delta)
        z = calibrate_noise(
            recipe.epsilon,
            recipe.delta,
            recipe.adjacency,
            steps=steps,
            rate=self.rate,
            others=others,
            slack=slack,
            person=person,
        )
        if z == math.inf:
            return None
        whole = GaussianSum(z / math.sqrt(steps), STEP, 0.0, *person, self.rate)
        return Planned(whole, steps, shared=True)

    def main_releases(self, steps: int) -> dict[str, int]:
        return {STEP: steps}

    def measured(self, view: View, people: Floats, task: Task) -> Measured:
        settings = self.settings(view.guard, people, task)
        gaps = np.diff(view.windows.centres)
        gradients = self.gradients(view.guard, people, settings, task.rng)
        marginals = descend(
            gradients, settings, view.guard.n_features, task.rng, gaps, task.progress
        )
        return Measured(marginals, settings.worth, settings.steps)

    def settings(self, guard: Guard, people: Floats, task: Task) -> GradientSettings:
        """For people (K,) and all that is left but for what comes later."""
        mu = left(guard, calibrate_gaussian, planned_event(task.plan, PERSISTENCE))
        steps = self.steps(task.recipe)
        return gradient_settings(people, guard.n_features, mu, steps, task.recipe)

    def gradients(
        self, guard: Guard, people: Floats, settings: GradientSettings, rng: np.random.Generator
    ) -> PrivateGradients:
        """The source of moments, whose steps are all paid for now."""
        z, width = settings.noise_multiplier, settings.particles * (guard.n_features + 1) + 1
        sampled = guard.at_rate(self.rate)
        paid = sampled.reserve(sampled.sum_event(width, z, STEP), settings.steps)
        return PrivateGradients(paid.ask, self.rate * people, z, rng)


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
    time_coupling: float = 1 / STEPS
    bandwidth: float | None = None
    by_hand: bool = False


def gradient_settings(
    people: Floats, features: int, mu: float, steps: int, recipe: Recipe
) -> GradientSettings:
    """The settings for people (K,) in the windows; what the recipe leaves open is chosen here.

    mu: 1/z of all steps together, sqrt(K) / z.
    """
    typical = float(np.median(people))
    bought = typical * mu / (features * math.sqrt(steps))
    work = typical * len(people) * steps * (features + 1)
    affordable = max(MOST_WORK / work, LEAST_AFFORDED)
    # down to three leading binary digits (4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ...): noise in the
    # number of people then hardly ever means another compilation
    count = float(np.clip(bought, LEAST_PARTICLES, MAX_PARTICLES))
    power = 2 ** math.floor(math.log2(count))
    rung = int(power * (1 + 0.25 * math.floor(4 * (count / power - 1))))
    coupling = recipe.time_coupling
    return GradientSettings(
        particles=recipe.particles or int(min(rung, affordable)),
        steps=steps,
        noise_multiplier=math.sqrt(steps) / mu,
        worth=bought,
        time_coupling=1 / steps if coupling is None else coupling,
        bandwidth=recipe.bandwidth,
        by_hand=recipe.particles is not None or recipe.bandwidth is not None,
    )


class PrivateGradients:
    """Moments from noisy clipped sums over people: one release per step, paid for in the ledger.

    ask: the guard's door.  people: (T,) whose sums these are, public or released.
    noise_multiplier: z of every step.  The clip c is one below which are all but CLIPPED of the
    vectors of people whom the released mixture would itself produce.  releases: all so far.
    """

    def __init__(
        self,
        ask: Callable[[Release], Floats],
        people: Floats,
        noise_multiplier: float,
        rng: np.random.Generator,
    ) -> None:
        self._ask = ask
        self.people = np.asarray(people, dtype=np.float64)
        self._noise_multiplier = noise_multiplier
        self._rng = rng
        self.releases: list[StepRelease] = []

    def __call__(self, mixture: Mixture) -> tuple[Moments, Any]:
        mixture = Mixture._make(map(np.asarray, mixture))  # once, for all on the host
        clip = typical_norm(mixture, self._rng, 1 - CLIPPED)
        kernel = KernelSum(mixture.particles, mass_weight(mixture), mixture)
        question = KernelSums(weights_and_residual, kernel, clip)
        sums = self._ask(Release(question, Gaussian(self._noise_multiplier), STEP))
        noise = clip * self._noise_multiplier / self.people
        self.releases.append(StepRelease(mixture, clip, sums, noise))
        drift_noise = np.float32(mixture.particles.shape[1] * noise)
        return moments(np.float32(sums), np.float32(self.people), mixture), drift_noise


def descend(
    gradients: PrivateGradients,
    settings: GradientSettings,
    features: int,
    rng: np.random.Generator,
    gaps: Floats,
    progress: Progress | None = None,
) -> Marginals:
    """The dynamics from the middle of the box, then the weights that explain every release."""
    state = middle(len(gaps) + 1, settings.particles, features)
    schedule = gradient_schedule(settings.steps, settings.time_coupling, features)
    fixed = Fixed.between(gaps, settings.bandwidth)
    state, trace = run(state, gradients, schedule, fixed, rng, progress)
    mixture = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), state.mixture)
    # temperature of the dynamics over the one asked for, which is a variance: mean over steps of
    # max(1, (privacy noise / Langevin noise)^2); above 1, privacy noise is the larger
    hot = schedule.temperature > 0
    ratio = np.asarray(trace.noise / trace.alpha)[hot] / schedule.temperature[hot, None]
    clouds = Marginals(
        mixture.particles,
        np.full(mixture.particles.shape[:2], 1 / settings.particles),
        mixture.bandwidth,
        resolution=mixture.bandwidth,
        diagnostics={
            "marginal_error": float(trace.marginal_error[-1]),
            "noise_over_bandwidth": float(trace.noise[-1].max()),
            "effective_temperature": float(np.maximum(ratio**2, 1.0).mean()),
        },
    )
    return reweighted(clouds, gradients.releases, gradients.people, rng, whole=settings.by_hand)
