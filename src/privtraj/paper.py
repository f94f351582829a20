"""The published algorithm, as written, wherever its guarantee allows.

Particles of all times move at once (the paper's Algorithm 1 with its Proposition B.2):

    x <- x - eta [ (sum_batch clip_C( v(y) ) + C tau xi) / (rho N) + sum_j (x - bar_ij) / dt ]
    v(y)_k = m (dt / (lambda sigma^2)) w_k(y) (x_k - y),         xi standard normal,

with Poisson batches of rate rho, responsibilities w of a kernel of width sigma, and bar_ij the mean
partner under the entropic plan of regularisation tau dt between neighbouring times. Time runs from
0 to 1, space is the unit cube. Phases (iterations, eta, tau, rho) follow each other.

Three readings without which no guarantee of this size holds: a person's vector is clipped over all
particles jointly, the sum is divided by rho N with N public or released, not by the batch that
happened, and the noise has standard deviation C tau. What such a run costs is not chosen but
follows: `PaperSynthesizer.epsilon` tells it in advance, the certificate afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtraj.dynamics import start, warm
from privtraj.dynamics.langevin import Fixed, State, run
from privtraj.dynamics.likelihood import Mixture, Moments, responsibilities
from privtraj.dynamics.schedule import Schedule
from privtraj.errors import InputError
from privtraj.model import TrajectoryModel
from privtraj.paths import fold
from privtraj.privacy import noise
from privtraj.privacy.accounting import epsilon_at
from privtraj.privacy.certificate import certify
from privtraj.privacy.events import Adjacency, Event, GaussianSum, LaplaceCounts, check_adjacency
from privtraj.privacy.guard import Guard
from privtraj.privacy.ledger import Ledger
from privtraj.resample import along_main_axis
from privtraj.snapshots import Snapshots, to_unit
from privtraj.synthesizer import HEAD_COUNT, head_count

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]

STEP = "clipped batch sums of a step"
_ROOM = 1 + 1e-3  # of the ledger's cap above what the plan costs: slack of the noise


@dataclass(frozen=True)
class Phase:
    """`iterations` steps of size eta with noise tau, on Poisson batches of rate rho."""

    iterations: int
    eta: float
    tau: float = 1.0
    rho: float = 1.0

    def event(self) -> GaussianSum:
        """One of its steps, for the accountant."""
        return GaussianSum(self.tau, STEP, rate=self.rho)


@dataclass(frozen=True)
class WarmStart:
    """Begin where people are: `steps` private sums of noise multiplier `noise` find it.

    kind: "means" (one step), "medians", or "clusters" (k of them, with their weights).
    spread: of the particles around a mean or median, as a share of the box; clusters bring theirs.
    """

    kind: Literal["means", "medians", "clusters"]
    noise: float
    steps: int = 1
    k: int = 3
    spread: float = 0.05

    def check(self) -> None:
        """Refuse settings that cannot be used."""
        if self.kind not in ("means", "medians", "clusters"):
            raise InputError(f"a warm start is by means, medians or clusters, not '{self.kind}'")
        if self.kind == "means" and self.steps != 1:
            raise InputError("private means take one step: leave out steps")

    def event(self) -> GaussianSum:
        """One of its steps, for the accountant."""
        names = {"means": warm.MEANS, "medians": warm.MEDIANS, "clusters": warm.CLUSTERS}
        return GaussianSum(self.noise, names[self.kind])

    def particles(self, guard: Guard, people: Floats, m: int, rng: np.random.Generator) -> Floats:
        """(T, m, d) in the unit cube."""
        if self.kind == "means":
            place = warm.private_means(guard, people, self.noise)
            return warm.mixture_particles(place, m, self.spread, rng)
        if self.kind == "medians":
            place = warm.private_medians(guard, people, self.noise, self.steps)
            return warm.mixture_particles(place, m, self.spread, rng)
        found = warm.private_clusters(guard, people, self.k, self.noise, self.steps)
        return warm.mixture_particles(found, m, found.spread, rng)


Start = Literal["normal", "uniform"] | WarmStart | TrajectoryModel | ArrayLike


class PaperSynthesizer:
    """The paper's parameters by name. The constructor only stores them; `fit` runs the phases.

    phases: in order.  m: particles.  C: clip.  lam: lambda, weight of the transport against the
        data fit.  sigma: kernel of the data fit, as a share of the box.
    start: "normal", N(1/2, 0.2 I) folded into the box; "uniform"; a `WarmStart`, which is paid for;
        a model that was released before; or public points (n, d) in data units, of which particles
        are drawn at every time.
    delta, adjacency: of the guarantee, whose epsilon follows.
    count_epsilon: paid for the number of people per time; None if that is public knowledge.
    seed: as in `TrajectorySynthesizer`.
    """

    def __init__(
        self,
        phases: Sequence[Phase],
        *,
        m: int = 50,
        C: float = 1.0,
        lam: float = 1.0,
        sigma: float = 0.1,
        start: Start = "normal",
        delta: float = 1e-5,
        adjacency: Adjacency = "add-remove",
        count_epsilon: float | None = 0.05,
        seed: int | None = None,
    ) -> None:
        self.phases = tuple(phases)
        self.m = m
        self.C = C
        self.lam = lam
        self.sigma = sigma
        self.start = start
        self.delta = delta
        self.adjacency = check_adjacency(adjacency)
        self.count_epsilon = count_epsilon
        self.seed = seed

    def events(self, records: int = 1, together: bool = False) -> list[tuple[Event, int]]:
        """What a fit will release, and how often, of people with up to so many records."""
        released: list[tuple[GaussianSum | LaplaceCounts, int]] = []
        if self.count_epsilon is not None:
            released.append((LaplaceCounts(self.count_epsilon, HEAD_COUNT), 1))
        if isinstance(self.start, WarmStart):
            released.append((self.start.event(), self.start.steps))
        released += [(phase.event(), phase.iterations) for phase in self.phases]
        return [
            (replace(event, records=records, together=together), times) for event, times in released
        ]

    @property
    def epsilon(self) -> float:
        """What a fit will cost at `delta`, everything composed exactly, for one record each."""
        return epsilon_at(self.events(), self.delta, self.adjacency)

    def added_epsilon(self) -> float:
        """The same by adding up, each part at its share of delta, as the paper adds them."""
        parts = self.events()
        share = self.delta / len(parts)
        return sum(epsilon_at([part], share, self.adjacency) for part in parts)

    def fit(
        self,
        snapshots: Snapshots,
        *,
        progress: Progress | None = None,
        watch: Callable[[Floats], None] | None = None,
    ) -> TrajectoryModel:
        """Run the phases on these snapshots and return the model, certified at what it cost.

        watch: called with the particles (T, m, d) in the unit cube before every step. They are
            released numbers; what is compared with the data, such as the objective, is not.
        """
        self.check()
        planned = self.events(snapshots.records_per_person, snapshots.together)
        cost = epsilon_at(planned, self.delta, self.adjacency)
        if not math.isfinite(cost):
            raise InputError(f"these phases cannot be accounted at delta {self.delta:g}: raise it")
        ledger = Ledger(cost * _ROOM, self.delta, self.adjacency)
        source = noise.source_for(self.seed)
        guard = Guard(snapshots, ledger, source, public_counts=self.count_epsilon is None)
        people = head_count(guard, self.count_epsilon or 0.0)
        rng = np.random.default_rng(self.seed)
        state = start.at(self._begin(guard, people, snapshots, rng), self.sigma)
        for phase in self.phases:
            state = self._run(phase, guard, people, state, snapshots, rng, progress, watch)
        return self._model(snapshots, ledger, source, people, state)

    def _begin(
        self, guard: Guard, people: Floats, snapshots: Snapshots, rng: np.random.Generator
    ) -> Floats:
        """Particles (T, m, d) in the unit cube."""
        shape = (guard.n_times, self.m, guard.n_features)
        if isinstance(self.start, WarmStart):
            return self.start.particles(guard, people, self.m, rng)
        if isinstance(self.start, TrajectoryModel):
            seed = int(rng.integers(2**31))
            paths = self.start.sample(self.m, times=snapshots.bin_times, seed=seed).values
            return to_unit(np.swapaxes(paths, 0, 1), snapshots.bounds)
        if isinstance(self.start, str):
            if self.start == "uniform":
                return rng.uniform(size=shape)
            return np.asarray(fold(rng.normal(0.5, 0.2**0.5, size=shape)), np.float64)
        points = to_unit(self.start, snapshots.bounds)
        return points[rng.integers(len(points), size=shape[:2])]

    def _run(
        self,
        phase: Phase,
        guard: Guard,
        people: Floats,
        state: State,
        snapshots: Snapshots,
        rng: np.random.Generator,
        progress: Progress | None = None,
        watch: Callable[[Floats], None] | None = None,
    ) -> State:
        gaps = snapshots.gaps
        weight = self.m * np.append(gaps, gaps[-1]) / (self.lam * self.sigma**2)
        if phase.rho < 1:
            event = guard.sum_event(self.m * guard.n_features, phase.tau, STEP, phase.rho)
            guard = guard.reserve(event, phase.iterations)
        gradients = BatchGradients(guard, people, weight, self.C, phase, watch)
        fixed = Fixed(
            jnp.asarray(np.float32(gaps / gaps.mean())),
            jnp.asarray(np.full(len(gaps) + 1, self.sigma, np.float32)),
            jnp.float32(0.0),
            jnp.asarray(np.float32(phase.tau * gaps)),
        )
        steps = _schedule(phase, float(gaps.mean()))
        return run(state, gradients, steps, fixed, rng, progress)[0]

    def _model(
        self,
        snapshots: Snapshots,
        ledger: Ledger,
        source: noise.Source,
        people: Floats,
        state: State,
    ) -> TrajectoryModel:
        particles = np.asarray(state.mixture.particles, dtype=np.float64)
        order = along_main_axis(particles)
        public: dict[str, Any] = snapshots.public_inputs()
        if self.count_epsilon is None:
            public["people per time (declared public)"] = people.tolist()
        return TrajectoryModel(
            particles=np.take_along_axis(particles, order[..., None], axis=1),
            weights=np.full(particles.shape[:2], 1 / self.m),
            bandwidth=np.full(len(particles), self.sigma),
            diffusivity=self.phases[-1].tau,
            numeric_times=snapshots.times,
            bounds=snapshots.bounds,
            features=snapshots.features,
            time_name=snapshots.time_name,
            datetime=snapshots.datetime,
            certificate=certify(ledger, public_inputs=public, private_noise=source.private),
            cloud_size=self.m,
            settings={
                "recipe": "paper",
                "phases": [asdict(phase) for phase in self.phases],
                **{name: getattr(self, name) for name in ("m", "C", "lam", "sigma")},
            },
            diagnostics={"people_per_time": people.tolist()},
        ).sealed()

    def check(self) -> None:
        """Refuse settings that cannot be used."""
        if not self.phases:
            raise InputError("the paper's recipe needs at least one phase")
        if isinstance(self.start, str) and self.start not in ("normal", "uniform"):
            raise InputError(f"start must be 'normal' or 'uniform', not '{self.start}'")
        if isinstance(self.start, WarmStart):
            self.start.check()
        for name in ("m", "C", "lam", "sigma"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive")


class BatchGradients:
    """The paper's gradients, from sampled, clipped and noisy sums: a measurement of the loop."""

    def __init__(
        self,
        guard: Guard,
        people: Floats,
        weight: Floats,
        clip: float,
        phase: Phase,
        watch: Callable[[Floats], None] | None = None,
    ) -> None:
        self._guard = guard
        self._batch = phase.rho * people
        self._weight = jnp.asarray(np.float32(weight))
        self._clip = np.full(guard.n_times, float(clip))
        self._phase = phase
        self._watch = watch

    def __call__(self, mixture: Mixture) -> tuple[Moments, jax.Array]:
        """Drift (T, m, d), and the standard deviation (T,) of the noise in it."""
        phase = self._phase
        if self._watch is not None:
            self._watch(np.asarray(mixture.particles, dtype=np.float64))
        sums = self._guard.sums(
            batch_vectors, _Weighted(mixture, self._weight), self._clip, phase.tau, STEP, phase.rho
        )
        times, m, d = mixture.particles.shape
        drift = np.float32(sums / self._batch[:, None]).reshape(times, m, d)
        deviation = np.float32(self._clip * phase.tau / self._batch)
        ones = jnp.ones((times, m)), jnp.ones(times)
        return Moments(jnp.asarray(drift), *ones), jnp.asarray(deviation)


class _Weighted(NamedTuple):
    mixture: Mixture
    weight: jax.Array  # (T,) m dt / (lambda sigma^2)


def batch_vectors(points: jax.Array, parameters: _Weighted) -> jax.Array:
    """v(y) of each point, flattened: (n, m d). A function of each point alone."""
    w, _ = responsibilities(points, parameters.mixture)
    away = parameters.mixture.particles[None] - points[:, None, :]
    return (parameters.weight * w[:, :, None] * away).reshape(len(points), -1)


def _schedule(phase: Phase, gap: float) -> Schedule:
    """Steps of size eta, the pull of neighbours eta / dt, and nothing that the paper lacks."""
    same, none = np.ones(phase.iterations), np.zeros(phase.iterations)
    return Schedule(
        step_size=phase.eta * same,
        pull=phase.eta / gap * same,
        debias=none,
        balance=none,
        temperature=none,
        noise_limit=np.inf * same,
        mass_rate=none,
        relocate=none,
        learn=none,
        shrink=same,
        grow=same,
    )
