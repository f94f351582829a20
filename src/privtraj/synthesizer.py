"""TrajectorySynthesizer: from snapshots of people to a private model, in one call.

Data flow one way: Snapshots -> Guard -> noisy answers -> curves -> TrajectoryModel. How the answers
are paid for is a `Measure` (`privtraj.measures`), which refuses, plans, asks and reconstructs.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError
from privtraj.columns.conditions import NONE, Constraints
from privtraj.columns.kinds import Axes
from privtraj.data.snapshots import Snapshots
from privtraj.measures.base import Fit, Measure, Progress, Task, public_people, reference_of
from privtraj.measures.counts import RELEASED_PARTICLES
from privtraj.measures.registry import KIND, find, measure_for
from privtraj.model.model import TrajectoryModel, assemble
from privtraj.motion.growth import Growth
from privtraj.motion.process import Scale
from privtraj.privacy import noise
from privtraj.privacy.certificate import (
    CAUTION,
    NEW_PEOPLE,
    PUBLIC_COUNTS,
    STATED,
    Certificate,
    certify,
    check_declared,
    weaknesses,
)
from privtraj.privacy.events import Adjacency
from privtraj.privacy.guard import Guard, Watcher
from privtraj.privacy.ledger import BudgetPlan, Ledger
from privtraj.privacy.ledger_file import LedgerFile
from privtraj.recipe import Recipe, check_public_counts

if TYPE_CHECKING:
    from privtraj.stream.people import People

CROWDED = 0.8  # of the people in one window of several: the time range misses them; by hand
Budget = tuple[float, float, Adjacency]
"""Epsilon, delta, and what they are about."""

LONGEST_NOTE = 1000  # letters that a ledger has about a fit
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
        return Recipe(**vars(self)) if len(fields(self)) == len(fields(Recipe)) else None

    def fit(
        self,
        snapshots: Snapshots,
        *,
        ledger: LedgerFile | None = None,
        new_people: bool = False,
        people: People | None = None,
        declared: Mapping[str, str] | None = None,
        progress: Progress | None = None,
        watcher: Watcher | None = None,
    ) -> TrajectoryModel:
        """Spend the budget on these snapshots and return the model that may be released.

        ledger: a file in which the whole budget is recorded before anything is released, so that
            repeated fits on the same people add up and stay below a cap.
        new_people: your word that nobody in these snapshots is among the people of that ledger, so
            that budgets need not add up. Nothing checks it, and the certificate says so: whoever
            is in both all the same has the sum.
        people: the file beside that ledger that knows who was in earlier batches, by keyed hashes,
            so that this is checked: `People.open(path, key)`.
        declared: what the certificate says beside its numbers, in your words: title, controller,
            purpose, date, contact.
        watcher: told of every noisy answer; it sees only what leaves the guard.
        """
        if not isinstance(snapshots, Snapshots):
            raise InputError("fit takes Snapshots, from Snapshots.from_table or from_arrays")
        measure = self.checked_for(snapshots)
        said = {} if declared is None else check_declared(declared)
        weak = []  # about epsilon and delta, by the people as far as they are public
        if self.seed is None:
            counts = self.public_counts
            count = None if counts is None else float(public_people(counts).sum())
            weak = weaknesses(self.epsilon, self.delta, count)
        for warning in weak:
            warnings.warn(warning, WeakGuaranteeWarning, stacklevel=2)
        plan = measure.plan(snapshots, self)
        entry = None
        if not (ledger is None and people is None):
            snapshots, entry = self._reserved(ledger, snapshots, new_people, people)
        spent = Ledger(*self.budget, plan)
        source = noise.source_for(self.seed)
        guard = snapshots.guarded(self.guard_class, spent, source, watcher=watcher)
        rng = np.random.default_rng(self.seed)  # of all but the guard's noise
        try:
            found = measure.fit(guard, Task(snapshots, self, plan, rng, progress))
            certificate = self.certified(snapshots, found, spent, source.private)
            certificate = replace(certificate, declared=said)
            if ledger is not None and new_people:
                stated = [*certificate.public_inputs.get(STATED, []), NEW_PEOPLE]
                public = {**certificate.public_inputs, STATED: stated}
                certificate = replace(certificate, public_inputs=public)
            model = self._assembled(snapshots, found, certificate)
        except KeyboardInterrupt as stop:
            stop.add_note(
                f"answers worth epsilon {spent.spent():.3g} of {self.epsilon:g} were discarded, "
                "and nobody has seen them"
            )
            raise
        if ledger is not None and entry is not None:
            try:
                ledger.settle(entry, spent_epsilon=certificate.epsilon, model=model.sha256)
            except InputError as error:  # the model is paid for: it must not be lost with the note
                warnings.warn(f"the reservation stands, but {error}", stacklevel=2)
        if found.worth < LOW_WORTH:
            warnings.warn(_little(found.people), LowBudgetWarning, stacklevel=2)
        if not weak and CAUTION in certificate.found and certificate.private:
            warnings.warn(certificate.found[CAUTION], WeakGuaranteeWarning, stacklevel=2)
        return model

    @property
    def budget(self) -> Budget:
        """Of which every release is paid."""
        return self.epsilon, self.delta, self.adjacency

    def planned(self, snapshots: Snapshots) -> BudgetPlan:
        """All that a fit would release, from what is public about the snapshots alone."""
        return self.checked_for(snapshots).plan(snapshots, self)

    def measure_for(self, axes: Axes | int) -> Measure:
        """What the budget will buy with such columns, or with so many numbers."""
        return measure_for(self, axes)

    def check(self) -> None:
        """Refuse settings that cannot be used; needs no data, so it can come before reading any."""
        super().check()
        if not KIND.fits(self.measure):
            raise InputError(Arg("measure"), f" must be {KIND.must}")
        chosen = find(self.measure) if self.delta == 0 else None
        if chosen is not None and chosen.needs_delta:
            raise InputError(
                f"{chosen.name} need a delta above 0: set ",
                Arg("delta="),
                ", or use ",
                Arg("measure", "counts"),
            )

    def checked_for(self, snapshots: Snapshots) -> Measure:
        """Refuse, before anything is spent, what cannot be used, or not with these snapshots;
        otherwise what measures them."""
        self.check()
        constraints = Constraints.of(self)
        if constraints != NONE:
            constraints.check(snapshots.columns)
        if self.growth is not None:
            Growth.declared(self.growth).check(snapshots.datetime)
        start, end = snapshots.axis.range
        reference_of(self).within(Scale(snapshots.bounds, start, end - start))
        if self.windows == "bins":
            snapshots.check_bins(Arg("windows", "bins"), "measures")
        if self.public_counts is not None:
            snapshots.check_bins(Arg("public_counts"), "is about")
            check_public_counts(self.public_counts, self.adjacency, snapshots.n_times)
        found = isinstance(self.subspace, str)
        measure = self.measure_for(snapshots.axes if found else int(self.subspace))
        measure.refuses(snapshots, self)
        return measure

    def _reserved(
        self,
        ledger: LedgerFile | None,
        snapshots: Snapshots,
        new_people: bool,
        people: People | None,
        kind: str = "fit",
    ) -> tuple[Snapshots, str]:
        """Those who may be in, and the entry of a ledger in which the whole budget is recorded."""
        if ledger is None:
            raise InputError(Arg("people"), " is kept beside a ledger: give ", Arg("ledger"))
        if self.seed is not None:
            raise InputError("a seeded fit is not private, so no ledger covers it: leave out seed")
        what = f"{kind} of {', '.join(snapshots.features)} over {snapshots.time_name}"
        claim = (self.epsilon, self.delta, self.adjacency, what[:LONGEST_NOTE])
        if people is not None:
            return people.admit(snapshots, ledger, *claim, new_people=new_people)
        how: dict[str, Any] = {"new_people": new_people, "span": snapshots.span}
        return snapshots, ledger.reserve(snapshots._digest, *claim, **how).id

    def certified(
        self, snapshots: Snapshots, found: Fit, ledger: Ledger, private: bool, **more: Any
    ) -> Certificate:
        """What was released, and what is wrong with delta now that people (K,) are counted.

        more: public, beside what snapshots and recipe say.
        """
        told = {"resolution in time": found.windows.describe()}
        several, people = snapshots.records_per_person > 1, float(found.people.sum()) or None
        for warning in weaknesses(0.0, ledger.delta, people, at_most=several)[:1]:
            told[CAUTION] = warning
        public = snapshots.public_inputs() | more
        if self.public_counts is not None:
            public[PUBLIC_COUNTS] = list(self.public_counts)
        return certify(ledger, public_inputs=public, private_noise=private, found=told)

    def _assembled(
        self, snapshots: Snapshots, found: Fit, certificate: Certificate
    ) -> TrajectoryModel:
        """The model of what was released."""
        windows, marginals, gaps = found.windows, found.marginals, np.diff(found.windows.centres)
        count = marginals.particles.shape[1]
        diffusivity = self.diffusivity
        if diffusivity is None:  # people move as far over a mean gap as particles resolve
            diffusivity = float(np.mean(found.resolution**2) / np.mean(gaps))
        # what is public about features and the population
        more: dict[str, Any] = {"constraints": Constraints.of(self, snapshots.zone)}
        if self.growth is not None:
            more["growth"] = Growth.declared(self.growth)
        return assemble(
            snapshots,
            marginals.particles,
            marginals.weights,
            bandwidth=marginals.bandwidth,
            knots=found.knots,
            diffusivity=diffusivity,
            reference=found.reference,
            recipe=self.recipe,
            **more,
            certificate=certificate,
            counted=found.counted,
            cloud_size=self.particles or max(count, RELEASED_PARTICLES),
            settings={
                **found.settings,
                "particles": count,
                "time_coupling": self.time_coupling,
                "windows": windows.count,
            },
            diagnostics={
                "people_per_time": found.people.tolist() or None,
                **found.diagnostics,
                **marginals.diagnostics,
                "people_middles": windows.middles.tolist(),
                "people_lengths": windows.lengths.tolist(),
                "listed_times": windows.listed,
                "hidden_motion": windows.choice and windows.choice.hidden.tolist(),
                "resolution": float(np.mean(found.resolution)),
            },
        )


def _little(people: Floats) -> str:
    """What is said of people (K,) in windows whom noise hides; about time where that is why."""
    advice = "use more people, fewer features or a larger epsilon if the result is to be useful"
    most = float(people.max() / people.sum())
    if most > CROWDED and len(people) > 2:
        advice = (
            f"one window of time holds {100 * most:.0f}% of the people counted, so look at the "
            "time range and its unit first: records beyond the range count at its ends"
        )
    return f"the noise of this budget is large beside the people counted: {advice}"
