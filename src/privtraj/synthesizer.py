"""TrajectorySynthesizer: from snapshots of people to a private model, in one call.

Data flow one way: Snapshots -> Guard -> noisy answers -> marginals -> TrajectoryModel. There are
three ways to pay for the answers, each a folder of its own: `counts`, `gradients` and
`marginal_tables`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

from privtraj.base import processes
from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError
from privtraj.base.space import unit_time
from privtraj.columns.axes import Axes
from privtraj.columns.conditions import Constraints
from privtraj.data.snapshots import Snapshots
from privtraj.domain.domain import Plot
from privtraj.domain.walking import within
from privtraj.measures.counts.constants import MOST_CELLS_PER_TIME, RELEASED_PARTICLES
from privtraj.measures.counts.fit import fit_counts
from privtraj.measures.counts.settings import CountsSettings, counts_settings
from privtraj.measures.counts.survey import surveyed_area
from privtraj.measures.gradients.constants import MOST_COORDINATES
from privtraj.measures.gradients.fit import fit_gradients
from privtraj.measures.gradients.settings import GradientSettings, free_features, gradient_settings
from privtraj.measures.head_count import (
    count_epsilon,
    head_count,
    public_people,
)
from privtraj.measures.marginals import Marginals, Progress
from privtraj.measures.persistence import Persistence, measured_persistence
from privtraj.measures.planned_releases import (
    SLACK_RESERVE,
    Budget,
    planned_moments,
    planned_persistence,
    planned_releases,
)
from privtraj.measures.subspace.constants import LEAST_FEATURES
from privtraj.measures.subspace.lifted import lifted
from privtraj.measures.subspace.moments import measured_spread, moment_events
from privtraj.measures.subspace.spectrum import Spectrum, Subspace
from privtraj.measures.tables.constants import PEOPLE
from privtraj.measures.tables.fit import TablesSettings, fit_tables
from privtraj.measures.tables.slabs import even_resolution
from privtraj.measures.windows.constants import CURVES, PARTICLES_PER_CURVE
from privtraj.measures.windows.fit import Resolution, can_look, resolution, through_slabs
from privtraj.measures.windows.timeline import may_be_listed
from privtraj.model.model import TrajectoryModel, assemble, diffusivity_or
from privtraj.motion.diffusions import Brownian
from privtraj.motion.growth import Growth
from privtraj.motion.inertia import Inertia, correlation_along, smoothest
from privtraj.motion.population import APART
from privtraj.motion.process import Reference, Scale, least_action
from privtraj.motion.reference import by_itself, declared
from privtraj.privacy import meaning, noise
from privtraj.privacy.budget_plan import BudgetPlan
from privtraj.privacy.calibration import calibrate_gaussian, calibrate_laplace
from privtraj.privacy.certificate import CAUTION, certify
from privtraj.privacy.events import Event, GaussianSum
from privtraj.privacy.guard import Guard
from privtraj.privacy.ledger import Ledger
from privtraj.privacy.ledger_file import LedgerFile
from privtraj.privacy.questions import MAX_CELLS, Watcher
from privtraj.privacy.statements import PUBLIC_COUNTS
from privtraj.recipe import MeasureName, Recipe, check_public_counts

Settings = CountsSettings | GradientSettings

MOST_COUNTED = 2  # features up to which counts are chosen; experiments/measures.py, 2026-11-17
CROWDED = 0.8  # of the people in one slab of several: the time range misses them; by hand, 2026-11
LOW_WORTH = 5  # people per time below which a fit warns; set by hand, 2026-11


class LowBudgetWarning(UserWarning):
    """The budget buys little for so few people."""


class WeakGuaranteeWarning(UserWarning):
    """The guarantee that was asked for promises little to a person."""


@dataclass(frozen=True, repr=False)
class TrajectorySynthesizer(Recipe):
    """A recipe that can be fitted. The constructor only stores it; `fit` spends the budget."""

    guard_class: ClassVar[type[Guard]] = Guard
    """Holds the rows of a fit; tests of the audit put broken ones here."""

    @classmethod
    def of(cls, recipe: Recipe) -> Self:
        """That of a recipe, such as `model.recipe`."""
        return cls(**{each.name: getattr(recipe, each.name) for each in fields(Recipe)})

    @property
    def recipe(self) -> Recipe | None:
        """The settings alone, as a model carries them; None for a kind that has more of them."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return Recipe(**own) if len(own) == len(fields(Recipe)) else None

    def fit(
        self,
        snapshots: Snapshots,
        *,
        ledger: LedgerFile | None = None,
        new_people: bool = False,
        progress: Progress | None = None,
        watcher: Watcher | None = None,
    ) -> TrajectoryModel:
        """Spend the budget on these snapshots and return the model that may be released.

        ledger: a file in which the whole budget is recorded before anything is released, so that
            repeated fits on the same people add up and stay below a cap.
        new_people: states that nobody in these snapshots is among the people of that ledger.
        watcher: told of every noisy answer; it sees only what leaves the guard.
        """
        if not isinstance(snapshots, Snapshots):
            raise InputError("fit takes Snapshots, from Snapshots.from_table or from_arrays")
        self.check()
        self._check_for(snapshots)
        weak = [] if self.seed is not None else meaning.warnings(*self._promise())
        for said in weak:
            warnings.warn(said, WeakGuaranteeWarning, stacklevel=2)
        model = self._paid(snapshots, ledger, new_people, progress, watcher)
        if not weak and CAUTION in model.certificate.found and model.certificate.private:
            warnings.warn(model.certificate.found[CAUTION], WeakGuaranteeWarning, stacklevel=2)
        return model

    def _promise(self) -> tuple[float, float, float | None]:
        """epsilon, delta and the number of people, as far as it is public."""
        counts = self.public_counts
        people = None if counts is None else float(public_people(counts).sum())
        return self.epsilon, self.delta, people

    def _paid(
        self,
        snapshots: Snapshots,
        ledger: LedgerFile | None,
        new_people: bool,
        progress: Progress | None,
        watcher: Watcher | None,
    ) -> TrajectoryModel:
        """The model, entered in the ledger if there is one."""
        if ledger is None:
            return self._fitted(snapshots, progress, watcher)
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
        model = self._fitted(snapshots, progress, watcher)
        spent = model.certificate.epsilon
        try:
            ledger.settle(entry.id, spent_epsilon=spent, model=model.sha256)
        except InputError as error:  # the model is paid for: it must not be lost with the note
            warnings.warn(f"the reservation stands, but {error}", stacklevel=3)
        return model

    def _fitted(
        self, snapshots: Snapshots, progress: Progress | None, watcher: Watcher | None
    ) -> TrajectoryModel:
        plan = self._plan(snapshots)
        ledger = Ledger(self.epsilon, self.delta, self.adjacency, plan)
        source = noise.source_for(self.seed)
        guard = snapshots.guarded(self.guard_class, ledger, source, watcher=watcher)
        try:
            return self._released(snapshots, guard, source, progress)
        except KeyboardInterrupt as stop:
            stop.add_note(
                f"answers worth epsilon {ledger.spent():.3g} of {self.epsilon:g} were discarded, "
                "and nobody has seen them"
            )
            raise

    def planned(self, snapshots: Snapshots) -> BudgetPlan:
        """All that a fit would release, from what is public about the snapshots alone."""
        self.check()
        self._check_for(snapshots)
        return self._plan(snapshots)

    def _plan(self, snapshots: Snapshots) -> BudgetPlan:
        """Refused where nothing is left for the main release."""
        plan = planned_releases(self._budget(snapshots), snapshots.shape)
        if not any(planned.shared for planned in plan.releases):
            raise self._nothing_left()
        return plan

    def _nothing_left(self) -> InputError:
        """Of noise that is rounded to integers: that costs e^epsilon times a tiny delta, which is
        too much at a very large epsilon."""
        return InputError(
            Arg("epsilon"),
            " is so large that rounding its noise takes all of delta: use a smaller one, or ",
            Arg("measure", "counts"),
        )

    def _budget(self, snapshots: Snapshots) -> Budget:
        axes, subspace = snapshots.axes, self._subspace_asked(snapshots)
        measure = self.measure_of(snapshots)
        counted = self.public_counts is None and measure != "marginals"
        return Budget(
            self.epsilon,
            self.delta,
            self.adjacency,
            measure,
            head_share=self.count_share if counted else None,
            look_first=self.cells is None and measure == "counts" and axes.n_numbers > 0,
            steps=self.steps,
            slabs=self.slabs != "bins",
            ask_when=self.slabs != "bins" and may_be_listed(snapshots.axis),
            look_at_motion=self.slabs == "auto"
            and measure != "marginals"
            and (can_look(axes.n_numbers) or subspace),
            persistence=self.persistence == "auto" and measure != "marginals" and not axes.mixed,
            subspace=subspace,
        )

    def _released(
        self,
        snapshots: Snapshots,
        guard: Guard,
        source: noise.Source,
        progress: Progress | None,
    ) -> TrajectoryModel:
        axes, budget = snapshots.axes, self._budget(snapshots)
        if budget.measure == "marginals":
            return self._released_tables(snapshots, guard, source, progress)
        plot = snapshots.plot
        spectrum = self._spectrum(guard, planned_moments(budget, snapshots.shape))
        plane = None if spectrum is None else self._plane(spectrum)
        looking = guard
        if spectrum is not None and (plane is not None or not can_look(axes.n_numbers)):
            looking = guard.projected(spectrum.looked_along)
        if plane is not None:
            axes = Axes.numeric(plane.projection.rank)
        features = None if spectrum is None else axes.n_numbers
        most = MAX_CELLS // math.prod(axes.sides(self.cells or 1))
        whole_bins = self.public_counts is not None
        measured = resolution(looking, snapshots.axis, self.slabs, most, whole_bins, features)
        if self.slabs != "bins":
            guard = guard.in_slabs(measured.timeline.slabs(measured.slab_of_moment))
        everywhere = guard
        if plane is not None:
            guard = guard.projected(plane.projection)
        gaps = np.diff(measured.centres)
        people = self._people(guard, measured)
        later = planned_persistence(budget, snapshots.shape)
        curves = measured.needs_curves
        settings = self._settings(guard, people, curves, later, plot, budget.measure)
        _warn_if_little(settings.worth, people)
        rng = np.random.default_rng(processes.shared_seed(self.seed))  # all but the guard's noise
        marginals = self._spend(guard, people, settings, rng, gaps, progress, plot)
        diffusivity = diffusivity_or(self.diffusivity, marginals.resolution, gaps)
        reference, times = self._reference(), snapshots.times
        bounds = snapshots.bounds[snapshots.axes.numbers]
        unit = reference.within(Scale(bounds, *_start_and_length(measured)))
        inside = unit if plane is None else by_itself()
        marginals, knots = through_slabs(
            marginals, measured, times, rng, inside, self.particles, axes
        )
        if plane is not None:
            marginals, knots = lifted(plane, marginals, knots, times, inside, rng)
        if plot is not None:
            marginals = within(plot, marginals)
        told: dict[str, Any] = {"people_noise": self._people_noise(guard)}
        if spectrum is not None:
            told["subspace"] = spectrum.describe(plane)
        if later is not None:
            when = times if knots is None else knots
            found = measured_persistence(
                everywhere, later, marginals, when, measured.timeline.listed
            )
            told["persistence"] = found.to_dict()
            paths = marginals.particles.swapaxes(0, 1)
            if knots is None:
                paths = least_action(marginals.particles, marginals.weights, when, unit)
            reference = self._remembering(reference, found, paths, when)
        return self._assembled(
            snapshots,
            guard,
            source,
            measured,
            settings,
            marginals,
            knots,
            diffusivity=diffusivity,
            reference=reference,
            people=people,
            told=told,
        )

    def _released_tables(
        self,
        snapshots: Snapshots,
        guard: Guard,
        source: noise.Source,
        progress: Progress | None,
    ) -> TrajectoryModel:
        """By marginal tables, whose particles are curves from the start."""
        measured = even_resolution(guard, snapshots.axis, self.slabs)
        guard = guard.in_slabs(measured.timeline.slabs(measured.slab_of_moment))
        settings = TablesSettings(left(guard, calibrate_gaussian), self.particles or PEOPLE)
        rng = np.random.default_rng(processes.shared_seed(self.seed))
        marginals, knots = fit_tables(guard, measured, settings, rng, progress)
        people = np.array(marginals.diagnostics["people_per_time"])
        settings = settings._replace(worth=marginals.diagnostics.pop("worth"))
        _warn_if_little(settings.worth, people)
        gaps = np.diff(measured.centres)
        diffusivity = diffusivity_or(self.diffusivity, marginals.resolution, gaps)
        return self._assembled(
            snapshots,
            guard,
            source,
            measured,
            settings,
            marginals,
            knots,
            diffusivity=diffusivity,
            reference=self._reference(),
            people=people,
        )

    def _assembled(
        self,
        snapshots: Snapshots,
        guard: Guard,
        source: noise.Source,
        measured: Resolution,
        settings: Settings | TablesSettings,
        marginals: Marginals,
        knots: Floats | None,
        *,
        diffusivity: float,
        reference: Reference,
        people: Floats,
        told: Mapping[str, Any] = MappingProxyType({}),
    ) -> TrajectoryModel:
        """The model of what was released."""
        certificate = certify(
            guard.ledger,
            public_inputs=self._public_inputs(snapshots),
            private_noise=source.private,
            found={"resolution in time": measured.describe(), **self._caution(snapshots, people)},
        )
        return assemble(
            snapshots,
            marginals.particles,
            marginals.weights,
            bandwidth=marginals.bandwidth,
            knots=knots,
            diffusivity=diffusivity,
            reference=reference,
            constraints=Constraints.declared(self.monotone, self.precision),
            growth=Growth.declared(self.growth),
            recipe=self.recipe,
            certificate=certificate,
            cloud_size=self.particles or max(marginals.particles.shape[1], RELEASED_PARTICLES),
            settings={
                **settings.summary(),
                "particles": marginals.particles.shape[1],
                "time_coupling": self.time_coupling,
                "slabs": measured.slabs,
            },
            diagnostics={
                "people_per_time": people.tolist(),
                **told,
                **marginals.diagnostics,
                "people_middles": measured.middles.tolist(),
                "people_lengths": measured.lengths.tolist(),
                "listed_times": measured.timeline.listed,
            },
        )

    def _caution(self, snapshots: Snapshots, people: Floats) -> dict[str, str]:
        """What is wrong with delta, now that people (K,) are counted."""
        several = snapshots.records_per_person > 1
        said = meaning.warnings(0.0, self.delta, float(people.sum()), at_most=several)
        return {CAUTION: said[0]} if said else {}

    def measure_of(self, snapshots: Snapshots) -> MeasureName:
        """What the budget will buy: by the features, or by the axes that somebody set."""
        set_by_hand = not isinstance(self.subspace, str)
        return self.measure_for(int(self.subspace) if set_by_hand else snapshots.axes)

    def _subspace_asked(self, snapshots: Snapshots) -> bool:
        """Whether it is asked how features vary together, from public numbers alone.

        What is measured then follows from the answer, but never by which noise: of what a release
        may tell, the plan knows the kind and the amount whatever the answer is.
        """
        if self.subspace == "off" or snapshots.axes.mixed or snapshots.domain is not None:
            return False
        many = snapshots.n_features >= LEAST_FEATURES
        if self.subspace == "auto" and not (many and self.measure_of(snapshots) == "gradients"):
            return False
        budget = self.epsilon, self.delta, self.adjacency
        return bool(moment_events(*budget, snapshots.shape.person))

    def _spectrum(self, guard: Guard, asked: dict[str, GaussianSum]) -> Spectrum | None:
        """How features vary together, released; None where it is not asked."""
        return Spectrum.of(measured_spread(guard, asked)) if asked else None

    def _plane(self, spectrum: Spectrum) -> Subspace | None:
        """The subspace to measure in; None for all features."""
        if not isinstance(self.subspace, str):
            return spectrum.subspace(int(self.subspace))
        return spectrum.subspace(spectrum.rank) if spectrum.is_low else None

    def _reference(self) -> Reference:
        """As given; "auto": least action along a learned drift, or as a diffusivity says."""
        given = declared(self.reference)
        if given is not None:
            return given
        return by_itself() if self.diffusivity is None else Brownian(self.diffusivity)

    def _remembering(
        self, reference: Reference, found: Persistence, paths: Floats, times: Floats
    ) -> Reference:
        """The reference with the memory that people with several records have, if none was given.

        paths: (m, K, d) of people who forget nothing, at times (K,).
        """
        if declared(self.reference) is not None or not isinstance(reference, Inertia):
            return reference
        along = correlation_along(paths, unit_time(times, times))
        memory, swing, share = smoothest(found.known(along))
        if len(memory) == 0:
            return reference
        length = float(np.ptp(times))
        lasting = {"memory": (memory * length).tolist(), "swing": (swing / length).tolist()}
        return replace(reference, share=share.tolist(), **lasting)

    def _people(self, guard: Guard, measured: Resolution) -> Floats:
        """People in each slab (K,): public, where slabs are made of whole bins, or counted."""
        if self.public_counts is None:
            return head_count(guard, count_epsilon(guard, self.count_share))
        people = public_people(self.public_counts)
        return np.bincount(measured.slab_of_moment, people).astype(np.float64)

    def _people_noise(self, guard: Guard) -> float:
        """Standard deviation of a number of people."""
        if self.public_counts is not None:
            return 0.0
        return noise.laplace_variance(count_epsilon(guard, self.count_share)) ** 0.5

    def _settings(
        self,
        guard: Guard,
        people: Floats,
        curves: bool,
        later: Event | None,
        plot: Plot | None,
        measure: MeasureName,
    ) -> Settings:
        """What to do with the budget that is left.

        What the main release may spend is fixed here from the budget alone; only how it is spent
        follows from the released number of people.
        """
        middle, axes = float(np.median(people)), guard.axes
        if measure == "gradients":
            mu = left(guard, calibrate_gaussian, later)
            return self._gradient_settings(guard, middle, mu, self.steps)
        area = surveyed_area(guard, people, plot) if self.cells is None else 1.0
        counted = self.public_counts is None
        head_epsilon = count_epsilon(guard, self.count_share) if counted else None
        released = (self.particles or CURVES) if curves else None
        return counts_settings(
            middle,
            axes.n_numbers,
            min(left(guard, calibrate_laplace, later), noise.EPSILON_RANGE[1]),
            levels=axes.combinations,
            area=area,
            cells=self.cells,
            particles=PARTICLES_PER_CURVE * released if released else self.particles,
            released=released,
            time_coupling=self.time_coupling,
            bandwidth=self.bandwidth,
            head_epsilon=head_epsilon,
        )

    def _gradient_settings(
        self, guard: Guard, people: float, mu: float, steps: int | None
    ) -> GradientSettings:
        return gradient_settings(
            people,
            free_features(guard.axes),
            guard.n_times,
            mu,
            particles=self.particles,
            steps=steps,
            time_coupling=self.time_coupling,
            bandwidth=self.bandwidth,
        )

    def _spend(
        self,
        guard: Guard,
        people: Floats,
        settings: Settings,
        rng: np.random.Generator,
        gaps: Floats,
        progress: Progress | None,
        plot: Plot | None = None,
    ) -> Marginals:
        if isinstance(settings, CountsSettings):
            reach = np.inf if self.growth is None else APART
            return fit_counts(guard, people, settings, rng, gaps, progress, plot, reach)
        return fit_gradients(guard, people, settings, rng, gaps, progress)

    def _public_inputs(self, snapshots: Snapshots) -> dict[str, Any]:
        public = snapshots.public_inputs()
        if self.public_counts is not None:
            public[PUBLIC_COUNTS] = list(self.public_counts)
        return public

    def _check_for(self, snapshots: Snapshots) -> None:
        """Refuse, before anything is spent, what these snapshots cannot be fitted with."""
        Constraints.declared(self.monotone, self.precision).check(snapshots.columns)
        growth = Growth.declared(self.growth)
        if growth is not None:
            growth.check(snapshots.datetime)
        start, end = snapshots.axis.range
        self._reference().within(Scale(snapshots.bounds, start, end - start))
        if self.slabs == "bins":
            snapshots.check_bins(Arg("slabs", "bins"), "measures")
        if self.public_counts is not None:
            snapshots.check_bins(Arg("public_counts"), "is about")
            check_public_counts(self.public_counts, self.adjacency, snapshots.n_times)
        self._check_levels(snapshots.axes)
        self._check_subspace(snapshots)
        measure = self.measure_of(snapshots)
        if measure == "marginals" and self.public_counts is not None:
            raise InputError(
                Arg("public_counts"), " is not used by ", Arg("measure", "marginals"), ": remove it"
            )
        if self.cells is None or measure != "counts":
            return
        least = snapshots.n_times if self.slabs == "bins" else 2
        cells = least * math.prod(snapshots.axes.sides(self.cells))
        if cells > MAX_CELLS:
            raise InputError(
                Arg("cells", self.cells),
                f" makes {cells} cells in {snapshots.n_features} dimensions at "
                f"{least} times: use fewer cells, or ",
                Arg("measure", "gradients"),
            )

    def _check_subspace(self, snapshots: Snapshots) -> None:
        """Refuse axes that these snapshots, or this budget, do not have."""
        if isinstance(self.subspace, str):
            return
        d = snapshots.n_features
        if self.subspace >= d:
            raise InputError(
                Arg("subspace"), f" must be below {d}, the number of features: leave it out"
            )
        if snapshots.axes.mixed or snapshots.domain is not None:
            raise InputError(
                Arg("subspace"), " is for columns of numbers without a domain: leave it out"
            )
        if not self._subspace_asked(snapshots):
            raise InputError(Arg("subspace"), " needs a delta above 0: leave it out")

    def _check_levels(self, axes: Axes) -> None:
        """Refuse tables that have too many levels for what is measured."""
        measure, instead = self.measure_for(axes), Arg("measure", "marginals")
        width = axes.n_numbers + sum(axes.levels)
        if measure == "gradients" and axes.mixed and width > MOST_COORDINATES:
            raise InputError(
                f"gradients are for {MOST_COORDINATES} numbers and levels of categories at most, "
                f"not {width}: use ",
                instead,
            )
        cells = math.prod(axes.sides(2))
        if measure == "counts" and axes.mixed and cells > MOST_CELLS_PER_TIME:
            raise InputError(
                f"these columns have {axes.combinations} combinations of levels, too many to "
                "count in cells of the numbers: use ",
                instead,
            )

    def measure_for(self, axes: Axes | int) -> MeasureName:
        """What the budget will buy with such columns, or with so many numbers."""
        if self.measure == "auto":
            return "counts" if self.delta == 0 else choose_measure(axes)
        return self.measure


def choose_measure(axes: Axes | int) -> MeasureName:
    """Of numbers, counts of one or two and gradients from three on; marginals where there are
    categories, whose tables of two columns are few and small.

    Cells multiply with every feature while particles follow the people. The number of people could
    say more, but it is private, and which mechanism is used must not follow from a private number:
    each of them keeps to the budget, a choice between them would not.
    """
    if isinstance(axes, Axes) and axes.mixed:
        return "marginals"
    features = len(axes.levels) if isinstance(axes, Axes) else axes
    return "counts" if features <= MOST_COUNTED else "gradients"


def left(guard: Guard, calibrate: Callable[..., float], later: Event | None = None) -> float:
    """What one more release may spend, with a reserve of delta for the slack of its noise, which
    Laplace noise does not have, and of the budget for what comes later."""
    ledger = guard.ledger
    exact = calibrate is calibrate_laplace
    return calibrate(
        ledger.epsilon,
        ledger.delta,
        ledger.adjacency,
        others=ledger.events if later is None else (*ledger.events, (later, 1)),
        slack=0.0 if exact else min(SLACK_RESERVE, ledger.delta / 100),
        person=guard.person,
    )


def _start_and_length(measured: Resolution) -> tuple[float, float]:
    first, last = measured.timeline.moments[[0, -1]]
    return float(first), float(last - first)


def _warn_if_little(worth: float, people: Floats) -> None:
    """people: (K,) in slabs; the advice is about time where these are the reason."""
    if worth >= LOW_WORTH:
        return
    advice = "use more people, fewer features or a larger epsilon if the result is to be useful"
    most = float(people.max() / people.sum())
    if most > CROWDED and len(people) > 2:
        advice = (
            f"one slab of time holds {100 * most:.0f}% of the people counted, so look at the time "
            "range and its unit first: records beyond the range count at its ends"
        )
    warnings.warn(
        f"the noise of this budget is large beside the people counted: {advice}",
        LowBudgetWarning,
        stacklevel=3,
    )
