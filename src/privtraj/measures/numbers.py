"""A fit of columns of numbers: what private counts and private gradients have in common.

    look        when people are, how features vary together, how they move: which windows to measure
    count       how many people are in each window
    measure     the main release, each its own (`counts`, `gradients`)
    curves      through the clouds of the windows; back from a subspace, and into a domain
    persist     how fast features of people with several records are forgotten

Every step asks for the release that the plan has for it, and does without where there is none.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Mask, equal_weight
from privtraj.base.errors import Arg, InputError
from privtraj.base.space import hat_functions, unit_time
from privtraj.domain.walking import within
from privtraj.measures.base import (
    HEAD_COUNT,
    NOT_COUNTED,
    Fit,
    Marginals,
    Measure,
    Public,
    Task,
    counts_event,
    head_count,
    planned_event,
    public_people,
    reference_of,
)
from privtraj.measures.over_time import USUAL_BENDING, knots_of, smooth_curves
from privtraj.measures.persistence import (
    PERSISTENCE,
    measured_persistence,
    persistence_event,
    with_memory,
)
from privtraj.measures.subspace import (
    FEATURES_PER_AXIS,
    MOMENTS,
    SHARES,
    Spectrum,
    Subspace,
    lifted,
    measured_spread,
    moment_events,
)
from privtraj.measures.windows import (
    FEWEST_WINDOWS,
    LISTED,
    LISTED_SHARE,
    MOST_LOOKED,
    MOTION,
    MOTION_SHARE,
    Resolution,
    even_windows,
    look_at_motion,
    may_be_listed,
    moments_of,
)
from privtraj.motion.cycle import Cycle
from privtraj.motion.growth import Growth
from privtraj.motion.population import APART
from privtraj.motion.process import FITTED, Reference, Scale, follow, least_action
from privtraj.motion.reference import USUAL, Inertia, declared
from privtraj.privacy import noise
from privtraj.privacy.events import Person
from privtraj.privacy.guard import MAX_CELLS, Guard
from privtraj.privacy.ledger import BudgetPlan, Planned
from privtraj.recipe import Recipe

CURVES = 512
"""Curves that carry the people; the error of so many points is below that of 5,000 people."""
PARTICLES_PER_CURVE = 2
"""Of a window, which curves are fitted to and which are not released: 256 leave a still ring of
30,000 people at .0004 of squared W2, 1,024 at .0002."""
STARTS = 256
"""Particles of a window that are coupled with those of the next to begin with; more take longer."""
READINGS = 4
"""Times within a window at which curves are compared with its people."""
FARTHER = 2.0
"""How much farther from the windows stiffer curves may be, in what noise explains of it: with 1 one
in 17 children shrinks within a year, with 2 one in 40; steps that hide the turns of fast loops,
which have twice the error then, are nearly 4 times as far."""


class View(NamedTuple):
    """What is measured of whom, once people were looked at.

    guard: in the windows, along the axes of a subspace if there is one.  everywhere: the same in
    all features.  spectrum: how features vary together, where it was asked.
    """

    guard: Guard
    everywhere: Guard
    windows: Resolution
    spectrum: Spectrum | None
    subspace: Subspace | None


class Measured(NamedTuple):
    """What the main release gave: a cloud in each window, and what the model says about it."""

    marginals: Marginals
    worth: float
    steps: int = 0
    cells_per_side: int | None = None
    counted: Floats = NOT_COUNTED


class Numbers(Measure):
    """A measure of columns of numbers. seeks_subspace: whether many features are looked at first,
    as few directions of them may hold most of the variance."""

    seeks_subspace = False

    def looks(self, recipe: Recipe) -> dict[str, float]:
        """Looks of its own before the main release, and their shares of epsilon."""
        return {}

    @abstractmethod
    def main(self, recipe: Recipe, person: Person, others: list[Any]) -> Planned | None:
        """The bound of the main release beside the others; None if nothing is left for it."""

    @abstractmethod
    def main_releases(self, steps: int) -> dict[str, int]:
        """As `most_releases`, of the main release and the looks of its own."""

    @abstractmethod
    def measured(self, view: View, people: Floats, task: Task) -> Measured:
        """The main release, and the clouds that it shows, of people (K,) in the windows."""

    def refuses(self, public: Public, recipe: Recipe) -> None:
        axes, needed = public.axes, "" if recipe.delta > 0 else " and a delta above 0"
        if axes.mixed:
            raise InputError(
                f"{self.name} are of numbers alone: for columns with categories or missing values "
                "use ",
                Arg("measure", "tables"),
                needed,
            )
        if isinstance(recipe.subspace, str):
            return
        if recipe.subspace >= len(axes.levels):
            raise InputError(
                Arg("subspace"),
                f" must be below {len(axes.levels)}, the number of features: leave it out",
            )
        if public.plot is not None:
            raise InputError(
                Arg("subspace"), " is for columns of numbers without a domain: leave it out"
            )
        if not self._moment_events(public, recipe):
            raise InputError(Arg("subspace"), " needs a delta above 0: leave it out")

    # Plan -----------------------------------------------------------------------------------------

    def plan(self, public: Public, recipe: Recipe) -> BudgetPlan:
        person, d = public.shape.person, public.shape.n_features
        if recipe.windows != "bins":  # in windows a person's records may meet
            person = person.in_slabs()
        moments = []
        if self.seeks_subspace or recipe.subspace != "auto":
            moments = list(self._moment_events(public, recipe).values())
        shares: dict[str, float] = {}
        if recipe.windows != "bins" and may_be_listed(public.axis):
            shares[LISTED] = LISTED_SHARE
        if recipe.windows == "auto" and (d <= MOST_LOOKED or moments):
            shares[MOTION] = MOTION_SHARE
        if recipe.public_counts is None:
            shares[HEAD_COUNT] = recipe.count_share
        shares |= self.looks(recipe)
        first = []
        for what, share in shares.items():
            event = counts_event(recipe, share, what, person)
            if event.epsilon > noise.EPSILON_RANGE[0] or what == HEAD_COUNT:
                first.append(event)  # a budget that is too small does without looks
        last = []
        has_memory = isinstance(reference_of(recipe), Inertia)
        if recipe.persistence == "auto" and has_memory and person.records > 1:
            asked = persistence_event(recipe.epsilon, recipe.adjacency, person, d)
            last = [] if asked is None else [asked]
        main = self.main(recipe, person, [*moments, *first, *last])
        if main is None:
            raise self.nothing_left()
        return BudgetPlan((*map(Planned, [*moments, *first]), main, *map(Planned, last)))

    def most_releases(self, steps: int) -> dict[str, int]:
        looks = dict.fromkeys([*SHARES, LISTED, MOTION, HEAD_COUNT], 1)
        return {**looks, **self.main_releases(steps), PERSISTENCE: 1}

    def _moment_events(self, public: Public, recipe: Recipe) -> dict[str, Any]:
        """As which it is asked how features vary together, by name; none where it is not.

        What is measured then follows from the answer, but never by which noise: of what a release
        may tell, the plan knows the kind and the amount whatever the answer is.
        """
        if recipe.subspace == "off" or public.plot is not None:
            return {}
        if recipe.subspace == "auto" and len(public.axes.levels) < 2 * FEATURES_PER_AXIS:
            return {}
        person = public.shape.person
        return moment_events(recipe.epsilon, recipe.delta, recipe.adjacency, person)

    # Ask, and reconstruct -------------------------------------------------------------------------

    def fit(self, guard: Guard, task: Task) -> Fit:
        recipe, public, times = task.recipe, task.public, task.public.axis.times
        view = self._looked(guard, task)
        windows, subspace = view.windows, view.subspace
        head = planned_event(task.plan, HEAD_COUNT)
        if head is not None:
            people = head_count(view.guard, head.epsilon)
        else:  # public, and windows are made of whole bins
            of_bins = public_people(recipe.public_counts or ())
            people = np.bincount(windows.of_moment, of_bins).astype(np.float64)
        cloud = self.measured(view, people, task)

        reference, moments = reference_of(recipe), windows.moments
        scale = Scale(public.bounds, float(moments[0]), float(moments[-1] - moments[0]))
        unit = reference.within(scale)
        along = unit if subspace is None else USUAL  # in the cube of what was measured
        still = np.array(public.axes.fixed) if subspace is None else None
        marginals, knots = through_windows(cloud.marginals, windows, task, along, still)
        if subspace is not None:
            marginals, knots = lifted(subspace, marginals, knots, times, along, task.rng)
        if public.plot is not None:
            marginals = within(public.plot, marginals)

        told: dict[str, Any] = {"people_noise": 0.0}
        if head is not None:
            told["people_noise"] = noise.laplace_variance(head.epsilon) ** 0.5
        if view.spectrum is not None:
            told["subspace"] = view.spectrum.describe(subspace)
        asked = planned_event(task.plan, PERSISTENCE)
        if asked is not None:
            when = times if knots is None else knots
            found = measured_persistence(view.everywhere, asked, marginals, when, windows.listed)
            told["persistence"] = found.to_dict()
            if declared(recipe.reference) is None:
                paths = marginals.particles.swapaxes(0, 1)
                if knots is None:
                    paths = least_action(marginals.particles, marginals.weights, when, unit)
                reference = with_memory(reference, found, paths, when)
        return Fit(
            marginals,
            knots,
            windows,
            people,
            cloud.marginals.resolution,
            reference,
            cloud.worth,
            {"measure": self.name, "steps": cloud.steps, "cells_per_side": cloud.cells_per_side},
            told,
            cloud.counted if subspace is None else NOT_COUNTED,
        )

    def _looked(self, guard: Guard, task: Task) -> View:
        """Which windows, in which features."""
        recipe, axis = task.recipe, task.public.axis
        spectrum, subspace, looking = None, None, guard
        if planned_event(task.plan, MOMENTS) is not None:
            sums = {name: planned_event(task.plan, name) for name in SHARES}
            spectrum = Spectrum.of(measured_spread(guard, sums))
            subspace = spectrum.chosen(recipe.subspace)
            if subspace is not None or guard.n_features > MOST_LOOKED:
                looking = guard.projected(spectrum.looked_along)
        features = guard.n_features if subspace is None else subspace.projection.rank
        if recipe.windows == "bins":
            windows = Resolution(axis.times, True, np.arange(len(axis.times)))
        else:  # as many as somebody set, or as suit how people move
            whole_bins = recipe.public_counts is not None  # the numbers of people are those of bins
            asked = planned_event(task.plan, LISTED)
            moments, listed, most = moments_of(looking, axis, asked, whole_bins)
            most = min(MAX_CELLS // (recipe.cells or 1) ** features, most)
            asked = planned_event(task.plan, MOTION)
            if asked is not None:
                choice = look_at_motion(looking, asked, moments, listed, features, most)
                windows = Resolution(moments, listed, choice.of_moment, choice)
            else:
                wanted = FEWEST_WINDOWS if recipe.windows == "auto" else int(recipe.windows)
                windows = Resolution(moments, listed, even_windows(len(moments), min(wanted, most)))
            guard = guard.in_slabs(windows)
        part = guard if subspace is None else guard.projected(subspace.projection)
        return View(part, guard, windows, spectrum, subspace)


def through_windows(
    marginals: Marginals,
    windows: Resolution,
    task: Task,
    reference: Reference,
    still: Mask | None,
) -> tuple[Marginals, Floats | None]:
    """Curves through the marginals of the K windows, at knots, which are in data units.

    Particle i of all knots is one of them.  reference: along which people move from window to
    window, in the unit cube.  still: (d,) coordinates that never change. Where every listed time is
    a window and better without curves, its marginal is what it is: no knots. Where people come and
    go by place, curves through all windows would carry to one place what another has lost:
    `reborn`. People who wait are where a window shows them until it ends: curves would be in places
    where nobody is.
    """
    if not windows.need_curves:
        return marginals, None
    rng, m = task.rng, task.recipe.particles or CURVES
    centres, clouds, weights = windows.centres, marginals.particles, marginals.weights
    waits, growth = isinstance(reference, Cycle), task.recipe.growth
    knots = windows.around_edges() if waits else windows.knots(task.public.axis.times)
    at = unit_time(knots, windows.moments)
    at_knots = marginals._replace(
        weights=np.full((len(knots), m), 1 / m),
        bandwidth=np.interp(at, centres, marginals.bandwidth),
    )
    by_place = growth is not None and Growth.declared(growth).by_place is not None
    if by_place or waits:
        paths = follow(equal_weight(clouds, weights, m, rng), centres, reference)
        if by_place:
            return at_knots._replace(particles=reborn(paths, centres, at, rng)), knots
        held = paths[:, np.searchsorted(windows.edges, knots)].swapaxes(0, 1)
        return at_knots._replace(particles=held), knots
    few = equal_weight(clouds, weights, min(STARTS, m), rng)
    paths = follow(few, centres, reference.fitted(few[:, :: max(1, STARTS // FITTED)], centres))
    clouds = equal_weight(clouds, weights, m * READINGS, rng)
    start = paths[np.arange(m) % len(paths)]
    runs = windows.unit_moments, windows.of_moment
    fixed = still if still is not None and still.any() else None
    choice = windows.choice
    stiffer = [(USUAL_BENDING, 0.0, 1.0)] if choice is None else choice.stiffer.tolist()
    bending, explained, _ = stiffer[0]
    curves, distance = smooth_curves(clouds, *runs, start, bending, rng, fixed)
    for bending, left, _ in stiffer[1:]:
        stiff, farther = smooth_curves(clouds, *runs, start, bending, rng, fixed)
        if farther - distance > FARTHER * (left - explained):
            break
        curves, distance, explained = stiff, farther, left
    read = hat_functions(at, knots_of(*runs))
    return at_knots._replace(particles=np.tensordot(read, curves, (1, 1))), knots


def reborn(paths: Floats, clock: Floats, times: Floats, rng: np.random.Generator) -> Floats:
    """Where paths (m, K, d) through clouds at times (K,) are at others (q,): (q, m, d).

    Straight on, but who would go `APART` farther than a quarter of the people does not go: they end
    where they were and begin over there, at any moment in between.
    """
    way = np.linalg.norm(np.diff(paths, axis=1), axis=2)
    far, when = way > np.quantile(way, 0.25, axis=0) + APART, rng.uniform(size=way.shape)
    left = np.clip(np.searchsorted(clock, times, side="right") - 1, 0, len(clock) - 2)
    share = np.clip((times - clock[left]) / np.diff(clock)[left], 0.0, 1.0)
    share = np.where(far[:, left], when[:, left] < share, share)[..., None]
    return np.swapaxes((1 - share) * paths[:, left] + share * paths[:, left + 1], 0, 1)
