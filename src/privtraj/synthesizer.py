"""TrajectorySynthesizer: from snapshots of people to a private model, in one call.

Data flow one way: Snapshots -> Guard -> noisy answers -> dynamics -> TrajectoryModel.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from privtraj import processes
from privtraj.arrays import Floats
from privtraj.clouds import shrunk_masses
from privtraj.counts import cells as histogram
from privtraj.counts import pooling, survey
from privtraj.data.snapshots import Snapshots
from privtraj.errors import Arg, InputError
from privtraj.gradients import schedule, start
from privtraj.gradients.langevin import Fixed, Trace, run
from privtraj.gradients.likelihood import Mixture, kappa_mass
from privtraj.gradients.moments import STEP, PrivateGradients
from privtraj.gradients.schedule import SETTLING_SHARE, Plan
from privtraj.model import TrajectoryModel, assemble, diffusivity_or
from privtraj.privacy import noise, pld
from privtraj.privacy.calibration import calibrate_gaussian, calibrate_laplace, calibrate_noise
from privtraj.privacy.certificate import certify
from privtraj.privacy.events import Adjacency, LaplaceCounts, check_adjacency, check_budget
from privtraj.privacy.guard import MAX_CELLS, Guard
from privtraj.privacy.ledger import Ledger
from privtraj.privacy.ledger_file import LedgerFile

Progress = Callable[[int, int], None]

LOW_WORTH = 5
SMALLEST_BANDWIDTH = 0.004
SMALLEST_EPSILON = 5e-3
LARGEST_EPSILON = 100.0  # beyond it nobody is protected, and the noise would be none
HEAD_COUNT = "people per time"
SURVEY = "how concentrated people are"
SURVEY_SHARE = 0.06  # of epsilon
GRADIENT_PULL = 0.1
SLACK_RESERVE = 1e-12  # for the integer noise of the main release: 10^9 draws
SMALLEST_DELTA = 1e-20  # below it, only a pure guarantee: the error of the noise has to fit


_RANGES = (
    ("count_share", 0.01, 0.9),
    ("rate", 1e-4, 1.0),
    ("particles", 2, schedule.MOST_PARTICLES),
    ("steps", 2, 10_000),
    ("cells", 2, 2**24),
    ("bandwidth", SMALLEST_BANDWIDTH, 0.5),
    ("pull", 0.0, 10.0),
    ("diffusivity", 1e-9, 100.0),
)


class LowBudgetWarning(UserWarning):
    """The budget buys little for so few people."""


class TrajectorySynthesizer:
    """Settings of a fit. The constructor only stores them; `fit` spends the budget.

    epsilon, delta: the guarantee.  adjacency: "add-remove" or "replace-one".
    measure: "gradients" (private mean-field Langevin dynamics), "counts" (a private histogram per
        time stands in for the people), or "auto".
    seed: None for private noise from the operating system; a number makes the run repeatable, for
        research, and the result NOT PRIVATE.
    public_counts: True if the number of people per bin is public knowledge.
    count_share: share of epsilon that the private number of people per bin may cost.
    rate: probability with which each record takes part in a step of private gradients (Poisson
        sampling). 1, everybody in every step, costs least for what it gives.
    particles, steps, cells, bandwidth, pull, diffusivity: set by hand what is otherwise chosen from
        public and released numbers. steps are those of private gradients; bandwidth is in shares
        of the box. pull says how strongly neighbouring times share what they know, 0 for not at
        all: in units of the default for counts, and 0.1 by default for gradients. diffusivity is
        variance, in squared shares of the box, per time range.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        adjacency: Adjacency = "add-remove",
        measure: Literal["auto", "gradients", "counts"] = "auto",
        seed: int | None = None,
        public_counts: bool = False,
        count_share: float = 0.05,
        rate: float = 1.0,
        particles: int | None = None,
        steps: int | None = None,
        cells: int | None = None,
        bandwidth: float | None = None,
        pull: float | None = None,
        diffusivity: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.measure = measure
        self.seed = seed
        self.public_counts = public_counts
        self.count_share = count_share
        self.rate = rate
        self.particles = particles
        self.steps = steps
        self.cells = cells
        self.bandwidth = bandwidth
        self.pull = pull
        self.diffusivity = diffusivity

    def fit(
        self,
        snapshots: Snapshots,
        *,
        ledger: LedgerFile | None = None,
        new_people: bool = False,
        progress: Progress | None = None,
    ) -> TrajectoryModel:
        """Spend the budget on these snapshots and return the model that may be released.

        ledger: a file in which the whole budget is recorded before anything is released, so that
            repeated fits on the same people add up and stay below a cap.
        new_people: states that nobody in these snapshots is among the people of that ledger.
        """
        if not isinstance(snapshots, Snapshots):
            raise InputError("fit takes Snapshots, from Snapshots.from_table or from_arrays")
        self.check()
        self._check_for(snapshots)
        if self.rate < 1 and processes.several():
            raise InputError("people can be sampled by one process only: use ", Arg("rate", 1))
        if ledger is None:
            return self._fitted(snapshots, progress)
        if processes.several():
            raise InputError("a ledger is kept by one process: fit in one, or without a ledger")
        if self.seed is not None:
            raise InputError("a seeded fit is not private, so no ledger covers it: leave out seed")
        entry = ledger.reserve(
            snapshots._digest,
            self.epsilon,
            self.delta,
            self.adjacency,
            f"fit of {', '.join(snapshots.features)} over {snapshots.time_name}",
            new_people=new_people,
        )
        model = self._fitted(snapshots, progress)
        spent = model.certificate.epsilon
        try:
            ledger.settle(entry.id, spent_epsilon=spent, model=model.sha256)
        except InputError as error:  # the model is paid for: it must not be lost with the note
            warnings.warn(f"the reservation stands, but {error}", stacklevel=2)
        return model

    def _guard(self, snapshots: Snapshots, ledger: Ledger, source: noise.Source) -> Guard:
        """The only holder of rows; an audit puts one here that watches what leaves."""
        return Guard(snapshots, ledger, source, public_counts=self.public_counts)

    def _fitted(self, snapshots: Snapshots, progress: Progress | None) -> TrajectoryModel:
        ledger = Ledger(self.epsilon, self.delta, self.adjacency)
        try:
            return self._released(snapshots, ledger, progress)
        except KeyboardInterrupt as stop:
            stop.add_note(
                f"answers worth epsilon {ledger.spent():.3g} of {self.epsilon:g} were discarded, "
                "and nobody has seen them"
            )
            raise

    def _released(
        self, snapshots: Snapshots, ledger: Ledger, progress: Progress | None
    ) -> TrajectoryModel:
        source = noise.source_for(self.seed)
        guard = self._guard(snapshots, ledger, source)
        people = self._people(guard)
        plan = self._plan(people, guard)
        _warn_if_little(plan)
        spend = self._by_counts if plan.measure == "counts" else self._by_gradients
        rng = np.random.default_rng(processes.shared_seed(self.seed))
        task = _Task(rng, snapshots.gaps, progress)
        found = spend(guard, people, plan, task)
        return self._model(snapshots, ledger, source, plan, people, found)

    def _people(self, guard: Guard) -> Floats:
        return head_count(guard, count_epsilon(guard, self.count_share))

    def _area(self, people: Floats, guard: Guard) -> float:
        """Share of the box that people occupy, from a survey that is released and paid for."""
        side, epsilon = survey.SIDES.get(guard.n_features, 2), count_epsilon(guard, SURVEY_SHARE)
        if epsilon == noise.EPSILON_RANGE[0]:  # too small a budget to look first
            return 1.0
        counts = guard.counts(side, epsilon, SURVEY)
        return survey.occupied_area(counts, epsilon, people, guard.n_features)

    def _plan(self, people: Floats, guard: Guard) -> Plan:
        """What to do with the budget that is left.

        What the main release may spend is fixed here from the budget alone, with a reserve for the
        slack of its noise; only how it is spent follows from the released number of people.
        """
        measure, middle = self.measure_for(guard.n_features), float(np.median(people))
        area = 1.0
        if measure == "counts" and self.cells is None:
            area = self._area(people, guard)
        budget = (self.epsilon, self.delta, self.adjacency, guard.ledger.events)
        reserve = min(SLACK_RESERVE, self.delta / 100)
        limits: dict[str, Any] = {"slack": reserve, **guard.person._asdict()}
        mu = calibrate_gaussian(*budget, **limits)
        epsilon = min(calibrate_laplace(*budget, **limits), noise.EPSILON_RANGE[1])
        plan = partial(
            schedule.plan,
            middle,
            guard.n_features,
            measure=measure,
            times=guard.n_times,
            epsilon=epsilon,
            area=area,
            particles=self.particles,
            cells=self.cells,
        )
        full = plan(mu=mu, steps=self.steps)
        if self.rate == 1 or full.measure == "counts":
            return full
        # Sampled steps of different numbers have loss curves of different shapes, so their number
        # must not follow from the released counts, as the number of full steps may.
        steps = self.steps or schedule.SAMPLED_STEPS
        z = calibrate_noise(*budget[:3], steps=steps, rate=self.rate, others=budget[3], **limits)
        if math.isinf(z):
            raise InputError(
                f"sampled steps need a delta above {pld.ROUNDING:g}: raise ",
                Arg("delta="),
                ", or use ",
                Arg("rate", 1),
            )
        # as much noise, against the sum over everybody, as full steps of this mu would have
        return plan(mu=self.rate * math.sqrt(steps) / z, steps=steps)

    def _by_counts(self, guard: Guard, people: Floats, plan: Plan, task: _Task) -> _Found:
        """One private histogram per time; the times then share what they know."""
        counts = guard.counts(plan.cells_per_side, plan.epsilon, "people per cell")
        total = people
        if not self.public_counts:
            head_epsilon = count_epsilon(guard, self.count_share)
            total = _combined(people, counts, head_epsilon, plan.epsilon)
        measure = histogram.estimate(
            counts, plan.cells_per_side, plan.epsilon, total, guard.n_features
        )
        known = _effective_people(float(total.mean()), measure, plan.epsilon)
        strength = 1.0 if self.pull is None else self.pull
        measure = pooling.pooled_over_time(measure, task.gaps, known, strength)
        return _Found(
            *histogram.placed(measure, plan.particles, task.rng, self.bandwidth),
            resolution=measure.sides / math.sqrt(12),
            diagnostics={
                "significant_share": measure.significant.tolist(),
                "cell_side": measure.sides.tolist(),
            },
        )

    def _by_gradients(self, guard: Guard, people: Floats, plan: Plan, task: _Task) -> _Found:
        """Private gradients at every step of the dynamics, all of the same noise multiplier."""
        state = start.middle(guard.n_times, plan.particles, guard.n_features, task.rng)
        pull = GRADIENT_PULL if self.pull is None else self.pull
        steps = schedule.gradient_schedule(plan.steps, pull, guard.n_features)
        z = self.rate * math.sqrt(plan.steps) / plan.mu
        if self.rate < 1:
            width = plan.particles * (guard.n_features + 1) + 1
            event = guard.sum_event(width, z, STEP, self.rate)
            guard = guard.reserve(event, plan.steps)
        gradients = PrivateGradients(guard, people, z, task.rng, self.rate)
        fixed = _fixed(task.gaps, self.bandwidth)
        state, trace = run(state, gradients, steps, fixed, task.rng, task.progress)
        mixture = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), state.mixture)
        mass = shrunk_masses(np.asarray(state.mass, np.float64), _mass_noise(trace, mixture))
        return _Found(
            mixture.particles,
            mass / mass.sum(axis=1, keepdims=True),
            mixture.bandwidth,
            resolution=mixture.bandwidth,
            diagnostics={
                "marginal_error": float(trace.marginal_error[-1]),
                "noise_over_bandwidth": float(trace.noise[-1].max()),
                "effective_temperature": _effective_temperature(trace, steps),
            },
        )

    def _model(
        self,
        snapshots: Snapshots,
        ledger: Ledger,
        source: noise.Source,
        plan: Plan,
        people: Floats,
        found: _Found,
    ) -> TrajectoryModel:
        return assemble(
            snapshots,
            found.particles,
            found.weights,
            bandwidth=found.bandwidth,
            diffusivity=diffusivity_or(self.diffusivity, found.resolution, snapshots.gaps),
            certificate=certify(
                ledger,
                public_inputs=self._public_inputs(snapshots, people, plan),
                private_noise=source.private,
            ),
            cloud_size=self.particles or max(plan.particles, schedule.RELEASED_PARTICLES),
            settings={
                "measure": plan.measure,
                "particles": plan.particles,
                "steps": plan.steps,
                "cells_per_side": plan.cells_per_side or None,
                "pull": self.pull,
            },
            diagnostics={
                "people_per_time": people.tolist(),
                "expected_worth": plan.worth,
                **found.diagnostics,
            },
        )

    def _public_inputs(self, snapshots: Snapshots, people: Floats, plan: Plan) -> dict[str, Any]:
        public = snapshots.public_inputs()
        if self.rate < 1 and plan.measure == "gradients":
            public["sampling rate"] = self.rate
        if self.public_counts:
            public["people per time (declared public)"] = people.tolist()
        return public

    def _check_for(self, snapshots: Snapshots) -> None:
        """Refuse, before anything is spent, what these snapshots cannot be counted with."""
        if self.cells is None or self.measure_for(snapshots.n_features) == "gradients":
            return
        cells = snapshots.n_times * self.cells**snapshots.n_features
        if cells > MAX_CELLS:
            raise InputError(
                Arg("cells", self.cells),
                f" makes {cells} cells in {snapshots.n_features} dimensions at "
                f"{snapshots.n_times} times: use fewer cells, or ",
                Arg("measure", "gradients"),
            )

    def measure_for(self, features: int) -> schedule.MeasureName:
        """What the budget will buy with so many features."""
        if self.measure == "auto":
            return "counts" if self.delta == 0 else schedule.choose_measure(features)
        return self.measure

    def check(self) -> None:
        """Refuse settings that cannot be used; needs no data, so it can come before reading any."""
        check_budget(self.epsilon, self.delta)
        check_adjacency(self.adjacency)
        if self.delta == 0 and self.measure == "gradients":
            raise InputError(
                "gradients need a delta above 0: set ",
                Arg("delta="),
                ", or use ",
                Arg("measure", "counts"),
            )
        if 0 < self.delta < SMALLEST_DELTA:
            raise InputError(Arg("delta"), f" must be 0 or at least {SMALLEST_DELTA:g}")
        if self.measure not in ("auto", "gradients", "counts"):
            raise InputError(
                Arg("measure"), f" must be 'auto', 'gradients' or 'counts', not '{self.measure}'"
            )
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if value is None and name not in ("count_share", "rate"):
                continue
            if not (_is_number(value) and low <= value <= high):
                raise InputError(Arg(name), f" must be between {low:g} and {high:g}")
            if isinstance(low, int) and not isinstance(value, int | np.integer):
                raise InputError(Arg(name), " must be a whole number")
        if self.epsilon < SMALLEST_EPSILON:
            raise InputError(
                Arg("epsilon"),
                f" must be at least {SMALLEST_EPSILON:g}: less does not buy a head count",
            )
        if self.epsilon > LARGEST_EPSILON:
            raise InputError(
                Arg("epsilon"), f" must be at most {LARGEST_EPSILON:g}: more protects nobody"
            )


class _Task(NamedTuple):
    rng: np.random.Generator  # public randomness, for everything after the guard's noise
    gaps: Floats  # (T - 1,) between the times
    progress: Progress | None


class _Found(NamedTuple):
    """What a measurement bought: weighted particles (T, m, d), and how finely it sees (T,)."""

    particles: Floats
    weights: Floats
    bandwidth: Floats
    resolution: Floats
    diagnostics: dict[str, Any]


def count_epsilon(guard: Guard, share: float) -> float:
    """Epsilon of the noise of counts that may cost this share of the ledger's epsilon.

    A person moves counts by 1 for each record if added or removed, and by 2 if replaced.
    """
    event = LaplaceCounts(1.0, "", records=guard.person.records)
    moves = event.sensitivity(guard.ledger.adjacency)
    return float(np.clip(share * guard.ledger.epsilon / moves, *noise.EPSILON_RANGE))


def head_count(guard: Guard, epsilon: float) -> Floats:
    """People per bin (T,): as declared public, or noisy, paid for, and steadied."""
    declared = guard.declared_counts()
    if declared is not None:
        return np.maximum(declared, 1.0)
    counts = guard.counts(1, epsilon, HEAD_COUNT)[:, 0]
    return steadied_counts(counts.astype(np.float64), 2 / epsilon**2)


def steadied_counts(counts: Floats, noise_variance: float) -> Floats:
    """Noisy counts (T,) shrunk to their mean by the share of their variance that is noise, >= 1."""
    mean = counts.mean()
    variance = max(counts.var(ddof=1), 1e-12)
    steady = mean + (counts - mean) * max(0.0, 1 - noise_variance / variance)
    return np.maximum(steady, max(1.0, 0.05 * mean))


def _combined(
    people: Floats, counts: NDArray[np.int64], head_epsilon: float, epsilon: float
) -> Floats:
    """People per time (T,), steadier: the head count and the sum of all cells, by their noise."""
    cells = counts.shape[1]
    in_cells = cells * noise.laplace_variance(epsilon)
    in_head = noise.laplace_variance(head_epsilon)
    summed = steadied_counts(counts.sum(axis=1).astype(np.float64), in_cells)
    return (people * in_cells + summed * in_head) / (in_cells + in_head)


def _effective_people(people: float, measure: histogram.GridMeasure, epsilon: float) -> float:
    """People whose shares chance alone would make as uncertain: N / (1 + cells variance / N)."""
    held = float(np.count_nonzero(measure.weights, axis=1).mean())
    return people / (1 + held * noise.laplace_variance(epsilon) / people)


def _effective_temperature(trace: Trace, steps: schedule.Schedule) -> float:
    """Temperature of the dynamics over the one asked for; above 1, privacy noise is the larger.

    A temperature is a variance: mean over steps of max(1, (privacy noise / Langevin noise)^2).
    """
    hot = steps.temperature > 0
    ratio = np.asarray(trace.noise / trace.alpha)[hot] / steps.temperature[hot, None]
    return float(np.maximum(ratio**2, 1.0).mean())


def _mass_noise(trace: Trace, mixture: Mixture) -> Floats:
    """Variance (T,) of the privacy noise in the running masses.

    One step's masses carry the noise of a full step, in bandwidths, over kappa; the running average
    over the settling steps, of gains 1/3, 1/4, ..., keeps one part in their number.
    """
    last = np.asarray(trace.noise)[-1] / np.maximum(np.asarray(trace.alpha)[-1], 1e-9)
    kept = 1 / (SETTLING_SHARE * len(np.asarray(trace.noise)) + 2)
    variance: Floats = (
        kept * (last.astype(np.float64) / kappa_mass(mixture.particles.shape[2])) ** 2
    )
    return variance


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _fixed(gaps: Floats, bandwidth: float | None) -> Fixed:
    target = np.full(len(gaps) + 1, bandwidth or 0.0)
    return Fixed(
        jnp.asarray(np.float32(gaps / gaps.mean())),
        jnp.asarray(np.float32(target)),
        jnp.asarray(np.float32(SMALLEST_BANDWIDTH)),
        jnp.zeros(len(gaps), jnp.float32),
    )


def _warn_if_little(plan: Plan) -> None:
    if plan.worth < LOW_WORTH:
        warnings.warn(
            f"this budget buys about {max(plan.worth, 0):.0f} people's worth per time: use fewer "
            "time bins, fewer features or a larger epsilon if the result is to be useful",
            LowBudgetWarning,
            stacklevel=3,
        )
