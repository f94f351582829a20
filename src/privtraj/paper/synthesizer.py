"""The published algorithm, as written, wherever its guarantee allows.

Particles of all times move at once (the paper's Algorithm 1 with its Proposition C.2):

    x <- x - eta [ (sum_batch clip_C( v(y) ) + C tau xi) / (rho N) + sum_j (x - bar_ij) / dt ]
    v(y)_k = m (dt / (lambda sigma^2)) w_k(y) (x_k - y),         xi standard normal,

with Poisson batches of rate rho, responsibilities w of a kernel of width sigma, and bar_ij the mean
partner under the entropic plan of regularisation tau dt between neighbouring times. Time runs from
0 to 1, and a side of the box has the length `side` in the units of C, lambda, sigma and tau. Phases
(iterations, eta, tau, rho) follow each other.

Three readings without which no guarantee of this size holds: a person's vector is clipped over all
particles jointly, the sum is divided by rho N with N public or released, not by the batch that
happened, and the noise has standard deviation C tau. What such a run costs is not chosen but
follows: `PaperSynthesizer.epsilon` tells it in advance, the certificate afterwards, and
`PaperSynthesizer.within` finds the noise for a budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError, is_number
from privtraj.base.space import fold, to_unit
from privtraj.columns.kinds import encoded
from privtraj.data.snapshots import Snapshots
from privtraj.measures.base import HEAD_COUNT, Progress, head_count, public_people
from privtraj.measures.langevin import State, run
from privtraj.model.model import TrajectoryModel, assemble
from privtraj.paper import warm_starts as warm
from privtraj.paper.dynamics import (
    STEP,
    Batch,
    BatchGradients,
    PlainFixed,
    PlainSchedule,
    at,
    plain_step,
)
from privtraj.privacy import noise
from privtraj.privacy.accounting import epsilon_at
from privtraj.privacy.certificate import DRAWN_TIMES, PUBLIC_COUNTS, certify
from privtraj.privacy.events import (
    Adjacency,
    ChosenTimes,
    Event,
    GaussianSum,
    LaplaceCounts,
    Person,
    check_adjacency,
)
from privtraj.privacy.guard import Guard
from privtraj.privacy.ledger import BudgetPlan, Ledger, Planned, calibrate_scale
from privtraj.recipe import check_public_counts

Watch = Callable[[Floats], None]

START_VARIANCE = 0.2  # of the normal start around the middle of the box: the paper's N(1/2, 0.2 I)

# The ledger of a recipe, whose cost follows
LEAST_EPSILON, MOST_EPSILON = 1e-6, 25.0  # of its cap: above, the slack of the noise shows
SLACK_ROOM = 1 + 1e-3  # of the cap above what the phases cost, for the slack of the noise


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
        if self.kind == "clusters":
            clusters = warm.private_clusters(guard, people, self.k, self.noise, self.steps)
            return warm.mixture_particles(clusters, m, clusters.spread, rng)
        if self.kind == "means":
            places = warm.private_means(guard, people, self.noise)
        else:
            places = warm.private_medians(guard, people, self.noise, self.steps)
        return warm.mixture_particles(places, m, self.spread, rng)


@dataclass(frozen=True)
class TimeSample:
    """Only n times, drawn at random of `of` and published, take part: the others' people stay out.

    ends: also release the first and the last time, which then are not among those drawn: what this
        warm start finds there stands in for their people. Without, paths begin at the first time
        that was drawn.
    """

    n: int
    of: int
    ends: WarmStart | None = None

    def check(self, n_times: int) -> None:
        """Refuse what does not suit so many times."""
        drawn_from = n_times - 2 * (self.ends is not None)
        if self.of != drawn_from:
            raise InputError(f"a sample of these times is drawn of {drawn_from}, not of {self.of}")
        if not 2 - (self.ends is not None) <= self.n <= self.of:
            raise InputError(f"{self.n} of {self.of} times cannot be drawn, or make no path")


Start = Literal["normal", "uniform"] | WarmStart | TrajectoryModel | ArrayLike


@dataclass(eq=False, repr=False)
class PaperSynthesizer:
    """The paper's parameters by name. The constructor only stores them; `fit` runs the phases.

    phases: in order.  m: particles.  C: clip.  lam: lambda, weight of the transport against the
        data fit.  sigma: kernel of the data fit.  side: of the box, in the units of all these.
    start: "normal", N(1/2, 0.2 I) folded into the box; "uniform"; a `WarmStart`, which is paid for;
        a model that was released before; or public points (n, d) in data units, of which particles
        are drawn at every time.
    delta, adjacency: of the guarantee, whose epsilon follows.
    count_epsilon: paid for the number of people per time, unless that is public.
    public_counts: the number of people at each time, or one number for every time, if they are
        public knowledge; a fit needs "replace-one" then, as in `TrajectorySynthesizer`.
    times: a `TimeSample`, for which there must be one phase; None takes all times.
    seed: as in `TrajectorySynthesizer`.
    """

    phases: Sequence[Phase]
    _: KW_ONLY
    m: int = 50
    C: float = 1.0
    lam: float = 1.0
    sigma: float = 0.1
    side: float = 1.0
    start: Start = "normal"
    delta: float = 1e-5
    adjacency: Adjacency = "add-remove"
    count_epsilon: float = 0.05
    public_counts: float | Sequence[float] | None = None
    times: TimeSample | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        self.phases = tuple(self.phases)
        check_adjacency(self.adjacency)

    def events(self, records: int = 1, together: bool = False) -> list[tuple[Event, int]]:
        """What a fit will release, and how often, of people with up to so many records."""
        person: dict[str, Any] = {"records": records, "together": together}
        released: list[tuple[Event, int]] = []
        if self.public_counts is None:
            counted = {"weight": Person(records, together).weight, **person}
            released.append((LaplaceCounts(self.count_epsilon, HEAD_COUNT, **counted), 1))
        for part in self._warm_starts():
            released.append((replace(part.event(), **person), part.steps))
        for phase in self.phases:
            step = replace(phase.event(), **person)
            if self.times is None:
                released.append((step, phase.iterations))
            else:
                share = self.times.n / self.times.of
                released.append((ChosenTimes(share, step, phase.iterations, STEP), 1))
        return released

    def _warm_starts(self) -> list[WarmStart]:
        ends = self.times.ends if self.times is not None else None
        return [part for part in (self.start, ends) if isinstance(part, WarmStart)]

    @property
    def epsilon(self) -> float:
        """What a fit will cost at `delta`, everything composed exactly, for one record each."""
        return epsilon_at(self.events(), self.delta, self.adjacency)

    def added_epsilon(self) -> float:
        """The same by adding up, each part at its share of delta, as the paper adds them."""
        parts = self.events()
        share = self.delta / len(parts)
        return sum(epsilon_at([part], share, self.adjacency) for part in parts)

    def within(self, epsilon: float, shares: Sequence[float] | None = None) -> PaperSynthesizer:
        """The same recipe with the noise that makes everything compose to epsilon.

        shares: of the warm start, if there is one, and of every phase: K rho^2 / tau^2, its part of
            the squared loss, is in proportion to them. Without, noises keep their ratios.
        """
        quiet = self
        if shares is not None:
            parts = [(part.steps, 1.0) for part in self._warm_starts()]
            parts += [(phase.iterations, phase.rho) for phase in self.phases]
            if len(shares) != len(parts) or not all(share > 0 for share in shares):
                raise InputError(f"{len(parts)} positive shares are needed: warm starts, phases")
            pairs = zip(parts, shares, strict=True)
            quiet = self._with_noise([rho * math.sqrt(k / share) for (k, rho), share in pairs])
        released = quiet.events()
        counts = [part for part in released if isinstance(part[0], LaplaceCounts)]
        sums = [part for part in released if part not in counts]
        factor = calibrate_scale(epsilon / SLACK_ROOM, self.delta, self.adjacency, sums, counts)
        if factor == 0:
            raise InputError(f"epsilon {epsilon:g} does not cover the counts of people")
        noises = [part.noise for part in quiet._warm_starts()]
        noises += [phase.tau for phase in quiet.phases]
        return quiet._with_noise([each / factor for each in noises])

    def _with_noise(self, noises: Sequence[float]) -> PaperSynthesizer:
        """A copy with these noises of warm starts, then of phases."""
        other, rest = copy(self), iter(noises)
        if isinstance(self.start, WarmStart):
            other.start = replace(self.start, noise=next(rest))
        if self.times is not None and self.times.ends is not None:
            other.times = replace(self.times, ends=replace(self.times.ends, noise=next(rest)))
        other.phases = tuple(replace(phase, tau=next(rest)) for phase in self.phases)
        return other

    def fit(
        self,
        snapshots: Snapshots,
        *,
        progress: Progress | None = None,
        watch: Watch | None = None,
        trace: Tracer | None = None,
    ) -> TrajectoryModel:
        """Run the phases on these snapshots and return the model, certified at what it cost.

        watch: called with the particles (T, m, d) in the unit cube before every step. They are
            released numbers; what is compared with the data, such as the objective, is not.
        trace: objective, clipped share, temperature and distance to people whom anybody may see, of
            every step. It takes the place of `watch`.
        """
        self.check()
        snapshots.check_bins("the paper's recipe")
        if snapshots.axes.mixed:
            raise InputError(
                "the paper's recipe is about numbers that nobody lacks: leave out the other "
                "columns, or use TrajectorySynthesizer"
            )
        if self.times is not None:
            self.times.check(snapshots.n_times)
        if trace is not None:
            trace.begin(self, snapshots)
        given: Any = self.public_counts  # one for each time
        if is_number(given):
            given = [given] * snapshots.n_times
        if given is not None:
            check_public_counts(given, self.adjacency, snapshots.n_times)
        events = self.events(snapshots.records_per_person, snapshots.together)
        cost = epsilon_at(events, self.delta, self.adjacency)
        if not math.isfinite(cost):
            raise InputError(f"these phases cannot be accounted at delta {self.delta:g}: raise it")
        if cost > MOST_EPSILON:
            raise InputError(
                f"these phases cost an epsilon of {cost:.3g}: raise tau, take fewer, or ask "
                "within(epsilon) for the tau of a budget"
            )
        budget = (max(cost, LEAST_EPSILON) * SLACK_ROOM, self.delta, self.adjacency)
        plan = BudgetPlan(tuple(Planned(*event) for event in events))
        ledger = Ledger(*budget, plan)
        source = noise.source_for(self.seed)
        guard = snapshots.guarded(Guard, ledger, source)
        counted = given is None
        people = head_count(guard, self.count_epsilon) if counted else public_people(given)
        rng = np.random.default_rng(self.seed)
        begin = self._begin(guard, people, snapshots, rng)
        part = self._taking_part(guard, people, rng)
        state = at(begin[part.times], self.sigma / self.side)
        if trace is not None:
            trace.people_per_time, watch = part.people, trace
        for phase in self.phases:
            state = self._run(phase, part, state, snapshots, rng, progress, watch)
        public: dict[str, Any] = snapshots.public_inputs()
        if given is not None:
            public[PUBLIC_COUNTS] = given
        if self.times is not None:
            public[DRAWN_TIMES] = [str(t) for t in snapshots.bin_times[part.times]]
        particles = np.asarray(state.mixture.particles, dtype=np.float64)
        return assemble(
            snapshots,
            particles,
            np.full(particles.shape[:2], 1 / self.m),
            times=snapshots.times[part.times],
            bandwidth=np.full(len(particles), self.sigma / self.side),
            diffusivity=self.phases[-1].tau / self.side**2,
            certificate=certify(ledger, public_inputs=public, private_noise=source.private),
            cloud_size=self.m,
            settings={
                "recipe": "paper",
                "phases": [asdict(phase) for phase in self.phases],
                **{name: getattr(self, name) for name in ("m", "C", "lam", "sigma", "side")},
            },
            diagnostics={"people_per_time": people.tolist()},
        )

    def _begin(
        self, guard: Guard, people: Floats, snapshots: Snapshots, rng: np.random.Generator
    ) -> Floats:
        """Particles (T, m, d) in the unit cube."""
        if isinstance(self.start, WarmStart):
            return self.start.particles(guard, people, self.m, rng)
        return self.public_start(snapshots, rng)

    def public_start(self, snapshots: Snapshots, rng: np.random.Generator) -> Floats:
        """Particles (T, m, d) in the unit cube that nobody pays for; "normal" for a warm start."""
        shape = (snapshots.n_times, self.m, snapshots.n_features)
        if isinstance(self.start, TrajectoryModel):
            seed = int(rng.integers(2**31))
            paths = self.start.sample(self.m, times=snapshots.bin_times, seed=seed).values
            places = encoded(snapshots.columns, np.swapaxes(paths, 0, 1))
            return to_unit(places, snapshots.bounds)
        if isinstance(self.start, str | WarmStart):
            if self.start == "uniform":
                return rng.uniform(size=shape)
            return np.asarray(fold(rng.normal(0.5, START_VARIANCE**0.5, size=shape)), np.float64)
        start = encoded(snapshots.columns, np.asarray(self.start, np.float64))
        points = to_unit(start, snapshots.bounds)
        return points[rng.integers(len(points), size=shape[:2])]

    def _taking_part(self, guard: Guard, people: Floats, rng: np.random.Generator) -> TakingPart:
        """Everybody, or a sample of the times, which is drawn and paid for here."""
        every = np.arange(guard.n_times)
        if self.times is None:
            return TakingPart(every, guard, people)
        (phase,), ends, pool = self.phases, None, every
        if self.times.ends is not None:
            outer = every[[0, -1]]
            ends = self.times.ends.particles(guard.at_times(outer), people[outer], self.m, rng)
            pool = every[1:-1]
        width = self.m * guard.n_features
        sampled = guard.at_times(pool).at_rate(phase.rho)
        drawn, theirs = sampled.choose_times(self.times.n, width, phase.tau, STEP, phase.iterations)
        inner = pool[drawn]
        times = inner if ends is None else np.concatenate([every[:1], inner, every[-1:]])
        return TakingPart(times, theirs, people[inner], ends)

    def _run(
        self,
        phase: Phase,
        part: TakingPart,
        state: State,
        snapshots: Snapshots,
        rng: np.random.Generator,
        progress: Progress | None = None,
        watch: Watch | None = None,
    ) -> State:
        clock = np.append(0.0, np.cumsum(snapshots.gaps))
        gaps = np.diff(clock[part.times])
        weight = self.m * np.append(gaps, gaps[-1]) / (self.lam * self.sigma**2)
        guard = part.guard
        if phase.rho < 1 and self.times is None:
            sampled = guard.at_rate(phase.rho)
            event = sampled.sum_event(self.m * guard.n_features, phase.tau, STEP)
            guard = guard.reserve(event, phase.iterations)
        batch = Batch(self.C / self.side, phase.tau, phase.rho)
        gradients = BatchGradients(guard, part.people, weight, batch, part.ends, watch)
        fixed = PlainFixed(
            jnp.asarray(np.float32(gaps / gaps.mean())),
            jnp.asarray(np.float32(phase.tau / self.side**2 * gaps)),
        )
        steps = plain_schedule(phase, float(gaps.mean()))
        return run(state, gradients, steps, fixed, rng, progress, plain_step)[0]

    def check(self) -> None:
        """Refuse settings that cannot be used."""
        if not self.phases:
            raise InputError("the paper's recipe needs at least one phase")
        if isinstance(self.start, str) and self.start not in ("normal", "uniform"):
            raise InputError(f"start must be 'normal' or 'uniform', not '{self.start}'")
        if isinstance(self.start, WarmStart):
            self.start.check()
        if self.times is not None and len(self.phases) != 1:
            raise InputError("a sample of the times is accounted for one phase: give one")
        for name in ("m", "C", "lam", "sigma", "side"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive")


class Tracer(Protocol):
    """What follows a run: `privtraj.paper.Trace`. people_per_time: (T,), which it divides by."""

    people_per_time: Floats

    def begin(self, recipe: PaperSynthesizer, snapshots: Snapshots) -> None:
        """Refuse what does not suit the run, before anything is paid for."""

    def __call__(self, particles: Floats) -> None:
        """Particles (T, m, d) before a step."""


class TakingPart(NamedTuple):
    """The times of the model, the guard over those whose people take part, and how many they are.

    ends: (2, m, d) released points that stand in for the people of the first and the last time.
    """

    times: NDArray[np.int64]
    guard: Guard
    people: Floats
    ends: Floats | None = None


def plain_schedule(phase: Phase, gap: float) -> PlainSchedule:
    """Steps of size eta, the drift to neighbours eta / dt, no noise beyond that of privacy."""
    same = np.ones(phase.iterations)
    return PlainSchedule(phase.eta * same, phase.eta / gap * same, 0 * same)
