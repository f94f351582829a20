"""A run of the published algorithm as a researcher looks at it: step by step, and over epsilon.

Both compare with people whom anybody may see, simulated ones for example: every point that is given
here is read as it is. The numbers that come out are no part of a guarantee and not for release.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError
from privtraj.base.space import to_unit
from privtraj.columns.kinds import encoded
from privtraj.data.snapshots import Snapshots
from privtraj.measures.langevin import run
from privtraj.measures.likelihood import Mixture, Moments
from privtraj.metrics.distances import average_squared_w2
from privtraj.paper.dynamics import (
    PlainFixed,
    Weighted,
    at,
    batch_vectors,
    objective,
    plain_step,
)
from privtraj.paper.synthesizer import PaperSynthesizer, plain_schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUDGETS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
NOT_PRIVATE = math.inf  # the epsilon of the run that reads everybody exactly


class Step(NamedTuple):
    """Before a step: the objective F, the share of people whose gradient is clipped, the
    temperature that the noise of privacy amounts to, and the distance to the people given.

    A step of size eta with noise of deviation s moves particles as Langevin dynamics of temperature
    eta s^2 / 2 would. All lengths but that of w2 are in units of `side`; w2 is the root of the mean
    squared W2, in sides of the box.
    """

    step: int
    objective: float
    clipped: float
    temperature: float
    w2: float


class Trace:
    """What `PaperSynthesizer.fit(..., trace=Trace(people))` writes down in `steps`.

    people: T arrays (n_i, d) in the units of the table.  every: so many steps, one is looked at.
    """

    def __init__(self, people: Sequence[Floats], every: int = 1) -> None:
        self.people, self.every, self.steps = people, every, list[Step]()

    people_per_time: Floats  # that the run divides by, set once they are released

    def begin(self, recipe: PaperSynthesizer, snapshots: Snapshots) -> None:
        """Of which run it is; refuses what does not suit it before anything is paid for."""
        if recipe.times is not None:
            raise InputError("a trace is of all times: leave out the sample of times")
        self._recipe, self._gaps = recipe, snapshots.gaps
        self._clouds = in_box(self.people, snapshots)
        self._phases = [phase for phase in recipe.phases for _ in range(phase.iterations)]
        self._seen = 0

    def __call__(self, particles: Floats) -> None:
        """Look at particles (T, m, d) in the unit cube."""
        step, self._seen = self._seen, self._seen + 1
        if step % self.every:
            return
        recipe, phase = self._recipe, self._phases[step]
        weights = {"lam": recipe.lam, "sigma": recipe.sigma, "tau": phase.tau}
        clouds = [cloud * recipe.side for cloud in self._clouds]
        noise = recipe.C * phase.tau / (phase.rho * self.people_per_time)
        self.steps.append(
            Step(
                step,
                objective(particles * recipe.side, clouds, self._gaps, **weights).total,
                self._clipped(particles),
                float(phase.eta * np.mean(noise**2) / 2),
                math.sqrt(average_squared_w2(list(particles), self._clouds)),
            )
        )

    def _clipped(self, particles: Floats) -> float:
        limit = self._recipe.C / self._recipe.side
        everybody = vectors(self._recipe, particles, self._clouds, self._gaps)
        return float(np.mean(np.linalg.norm(np.concatenate(everybody), axis=1) > limit))


def vectors(
    recipe: PaperSynthesizer, particles: Floats, clouds: Sequence[Floats], gaps: Floats
) -> list[Floats]:
    """v(y) of everybody (n_i, m d) at each time, before clipping."""
    gaps = np.append(gaps, gaps[-1])
    state = at(particles, recipe.sigma / recipe.side).mixture
    found = []
    for i, cloud in enumerate(clouds):
        here = Mixture(state.particles[i], state.bias[i], state.bandwidth[i])
        weight = jnp.float32(recipe.m * gaps[i] / (recipe.lam * recipe.sigma**2))
        found.append(np.asarray(batch_vectors(jnp.float32(cloud), Weighted(here, weight))))
    return found


class Exact:
    """Gradients that read everybody, clip nobody and add no noise."""

    def __init__(self, recipe: PaperSynthesizer, clouds: list[Floats], gaps: Floats) -> None:
        self._recipe, self._clouds, self._gaps = recipe, clouds, gaps

    def __call__(self, mixture: Mixture) -> tuple[Moments, Any]:
        """Drift (T, m, d), and that no noise is in it."""
        particles = np.asarray(mixture.particles)
        everybody = vectors(self._recipe, particles, self._clouds, self._gaps)
        means = [each.mean(axis=0) for each in everybody]
        drift = jnp.asarray(np.reshape(means, particles.shape), jnp.float32)
        ones = jnp.ones(particles.shape[:2], jnp.float32)
        return Moments(drift, ones, ones[:, 0]), jnp.zeros(len(particles))


def without_privacy(recipe: PaperSynthesizer, snapshots: Snapshots, people: Any) -> Floats:
    """Particles (T, m, d) in the unit cube after the same phases on people who may be seen.

    Mean-field Langevin dynamics: exact gradients, and noise of deviation sqrt(2 eta tau) in a step.
    """
    clouds, gaps = in_box(people, snapshots), snapshots.gaps
    rng = np.random.default_rng(recipe.seed)
    state = at(recipe.public_start(snapshots, rng), recipe.sigma / recipe.side)
    for phase in recipe.phases:
        reg = jnp.asarray(np.float32(phase.tau / recipe.side**2 * gaps))
        fixed = PlainFixed(jnp.asarray(np.float32(gaps / gaps.mean())), reg)
        steps = plain_schedule(phase, float(gaps.mean()))
        warmth = np.full(phase.iterations, math.sqrt(2 * phase.tau / phase.eta) / recipe.sigma)
        steps = steps._replace(temperature=warmth)
        state = run(state, Exact(recipe, clouds, gaps), steps, fixed, rng, None, plain_step)[0]
    return np.asarray(state.mixture.particles, np.float64)


def in_box(people: Sequence[Floats], snapshots: Snapshots) -> list[Floats]:
    """Clouds in the unit cube, one for each time."""
    if len(people) != snapshots.n_times:
        raise InputError(f"people of {snapshots.n_times} times are needed, not of {len(people)}")
    return [to_unit(encoded(snapshots.columns, np.asarray(p)), snapshots.bounds) for p in people]


class Budget(NamedTuple):
    """The distance to people over seeds at one epsilon, in sides of the box."""

    epsilon: float
    mean: float
    spread: float


class AgainstEpsilon(NamedTuple):
    """Rows of `w2_against_epsilon`; the last is the same algorithm without privacy."""

    rows: tuple[Budget, ...]

    def __str__(self) -> str:
        lines = [f"{'epsilon':>11}  W2 (spread over seeds)"]
        for epsilon, mean, spread in self.rows:
            name = "not private" if epsilon == NOT_PRIVATE else f"{epsilon:g}"
            lines.append(f"{name:>11}  {mean:.4f} ({spread:.4f})")
        return "\n".join(lines)

    def figure(self) -> Figure:
        """W2 against epsilon, with the run without privacy as a line below."""
        from matplotlib.figure import Figure

        figure = Figure(layout="constrained")
        axes = figure.subplots()
        *private, exact = self.rows
        epsilons, means, spreads = np.transpose(private)
        axes.errorbar(epsilons, means, spreads, marker="o", capsize=3, label="private")
        axes.axhline(exact.mean, color="black", linestyle="--", label="without privacy")
        axes.set(xscale="log", xlabel="epsilon", ylabel="W2", ylim=(0, None))
        axes.legend()
        return figure


def w2_against_epsilon(
    recipe: PaperSynthesizer,
    snapshots: Snapshots,
    people: Sequence[Floats],
    *,
    epsilons: Sequence[float] = BUDGETS,
    seeds: int = 3,
) -> AgainstEpsilon:
    """How near the published algorithm comes to people (T clouds whom anybody may see), by epsilon.

    Every fit is `recipe.within(epsilon)`; without privacy the recipe runs with the noise it has.
    """
    clouds = in_box(people, snapshots)

    def seeded(each: PaperSynthesizer, seed: int) -> PaperSynthesizer:
        other = copy(each)
        other.seed = seed
        return other

    def scored(epsilon: float, particles: list[Floats]) -> Budget:
        found = [math.sqrt(average_squared_w2(list(x), clouds)) for x in particles]
        return Budget(epsilon, float(np.mean(found)), float(np.std(found)))

    rows = []
    for epsilon in epsilons:
        noisy = recipe.within(epsilon)
        models = [seeded(noisy, seed).fit(snapshots) for seed in range(seeds)]
        rows.append(scored(epsilon, [model.particles for model in models]))
    exact = [without_privacy(seeded(recipe, seed), snapshots, people) for seed in range(seeds)]
    return AgainstEpsilon((*rows, scored(NOT_PRIVATE, exact)))
