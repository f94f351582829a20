"""What a released model is worth, and how sure its numbers are, from fits that are made again.

The parametric bootstrap. The model stands in for the population, as many people as were counted are
drawn from it, each at a moment of their own, and the recipe of the model is fitted to them with the
same budget (`simulate`). How far the new models are from the old one tells how far the old one may
be from the truth. For refit b at time t let e_bt = W2^2(refit b, model), numbers alone, in shares
of the box. The error of the model is taken to be the mean of e_bt, so many real people of the
model's own crowd are as far from it, and `Estimate.of` says what is left of that number for
the real people. Only what was released is used: nothing is read, and it costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from privtraj.assess.common import Estimate, kept, mean_worth
from privtraj.assess.plan import Question, worth_over
from privtraj.assess.simulate import (
    POPULATION,
    RELEASED,
    Simulated,
    Yardstick,
    drawn,
    fewer,
    simulate,
)
from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import BudgetError, InputError, is_number
from privtraj.base.space import TimeAxis
from privtraj.columns.kinds import Angle, Category
from privtraj.data.snapshots import Snapshots
from privtraj.measures.base import Measure
from privtraj.measures.registry import find
from privtraj.metrics.columns import numbers_alone
from privtraj.metrics.people import meeting
from privtraj.model.model import TrajectoryModel
from privtraj.privacy.certificate import MOST_RECORDS, PUBLIC_COUNTS, SHARED_BINS
from privtraj.privacy.guard import MemoryRows
from privtraj.recipe import Recipe

REFITS = 3  # whose mean error varies little; each takes as long as the fit
READ_TIMES = 8  # when models are compared, if people are at any time or at more of them
DOUBT = 4.0
"""Half width of a band, in root mean squared changes of refits: holds the truth in nine of ten."""
LEAST_GROUP = 0.05  # share of people from which a value of a category is a group
MOST_GROUPS = 24
RESOLUTION = ("particles", "steps", "cells", "windows", "subspace", "bandwidth")
"""Settings that decide how fine a model can be; chosen by the fit itself unless set by hand."""
MOMENTS = 64  # of people who come at any time: more of them make more calls, and no other crowd
PEOPLE = 2000  # of each model, whose medians, shares and correlations are compared


@dataclass(frozen=True)
class Group:
    """People with one value of a category: their share, and what their numbers are worth."""

    column: str
    value: str
    share: float
    worth: Estimate


@dataclass(frozen=True)
class Quality:
    """What a release is worth, at all times together, at each (Q,), and in each group.

    numeric_times: (Q,).  medians: {number: (Q,) half widths of 90 % bands, in data units}.
    shares: {category: (Q, levels) half widths}.  correlation: half width, of any two numbers.
    """

    worth: Estimate
    numeric_times: tuple[float, ...]
    at_times: tuple[Estimate, ...]
    groups: tuple[Group, ...]
    medians: dict[str, tuple[float, ...]]
    shares: dict[str, tuple[tuple[float, ...], ...]]
    correlation: float | None
    refits: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Quality:
        return cls(
            Estimate(**values["worth"]),
            tuple(values["numeric_times"]),
            tuple(Estimate(**each) for each in values["at_times"]),
            tuple(Group(**{**g, "worth": Estimate(**g["worth"])}) for g in values["groups"]),
            {name: tuple(each) for name, each in values["medians"].items()},
            {name: tuple(map(tuple, each)) for name, each in values["shares"].items()},
            values["correlation"],
            values["refits"],
        )


def quality_of(
    model: TrajectoryModel, progress: Callable[[int, int], None] | None = None
) -> Quality | None:
    """The estimate for a model, kept or made now; None for one that no fit of ours has made."""
    key = {"model": model.sha256, "refits": REFITS}
    return kept(
        "quality", key, Quality.from_dict, lambda: estimated_quality(model, progress=progress)
    )


def estimated_quality(
    model: TrajectoryModel,
    *,
    refits: int = REFITS,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Quality | None:
    """By fits to people drawn from the model; None for one that no fit of ours has made, or whose
    fit, with settings that a model does not tell, is refused."""
    if not can_be_refitted(model):
        return None
    done = progress or (lambda step, steps: None)
    done(0, refits)
    times = read_times(model, READ_TIMES)
    people = [drawn(model, times, PEOPLE, seed)]
    try:
        for k in range(1, refits + 1):
            people.append(refitted(model, times, seed + k).people)
            done(k, refits)
        most = worth_of_resolution(model)
    except (InputError, BudgetError):
        return None
    numbers = [numbers_alone(each, model.columns) for each in people]
    counted = max(float(np.sum(model.diagnostics["people_per_time"])), 1.0)
    budget = counted * model.certificate.target_epsilon

    def judged(worth: float) -> Estimate:
        return Estimate.of(min(worth, most), _measure(model).optimism, budget)

    overall, at_times = Estimate(0.0, 0.0, 0.0), tuple[Estimate, ...]()
    if numbers[0].shape[2]:
        crowd = ModelCrowd(model).places(np.repeat(times, POPULATION), seed + 101)
        crowd = numbers_alone(crowd, model.columns).reshape(len(times), POPULATION, -1)
        yards = [Yardstick([cloud]) for cloud in crowd]
        releases = [each[:RELEASED] for each in numbers[1:]]
        errors = np.array(  # (B, Q)
            [[yard.error([each[:, t]]) for t, yard in enumerate(yards)] for each in releases]
        )

        def at_all_times(n: int) -> float:
            return float(np.mean([yard.errors(n) for yard in yards]))

        overall = judged(meeting(yards[0].rungs, at_all_times, float(errors.mean())))
        means = errors.mean(axis=0).tolist()
        at_times = tuple(judged(yard.worth(e)) for yard, e in zip(yards, means, strict=True))
    return Quality(
        overall,
        tuple(times.tolist()),
        at_times,
        _groups(model, people, judged),
        *_bands(model, people, numbers),
        refits,
    )


# Fits that are made again ---------------------------------------------------------------------


def can_be_refitted(model: TrajectoryModel) -> bool:
    """Whether it was made by a fit that can be made again from what it tells."""
    needed = {"people_per_time", "people_lengths", "people_middles", "listed_times"}
    return find(model.settings.get("measure")) is not None and needed <= model.diagnostics.keys()


def _measure(model: TrajectoryModel) -> Measure:
    known = find(model.settings["measure"])
    assert known is not None
    return known


def recipe_of(model: TrajectoryModel) -> Recipe:
    """The recipe that made the model, with the process by which its people move now.

    A file of version 0.2 has none: the budget, the measure and what is public of features are then
    as the model tells, and settings that it does not tell are left to the fit.
    """
    if model.recipe is not None:
        return model.recipe.again(reference=model.reference)
    certificate = model.certificate
    return Recipe(
        certificate.target_epsilon,
        certificate.delta,
        adjacency=certificate.adjacency,
        measure=model.settings["measure"],
        time_coupling=model.settings.get("time_coupling"),
        reference=model.reference,
        growth=model.growth,
        **vars(model.constraints),
    )


def worth_of_resolution(model: TrajectoryModel) -> float:
    """Worth that a resolution set by hand leaves, by fits to stand-ins; infinite where none is set.

    Refits cannot tell: people drawn from a model that is too coarse are described without error by
    one that is as coarse. Stand-ins are not drawn from it.
    """
    recipe, crowd = recipe_of(model), ModelCrowd(model)
    by_hand = {name: getattr(recipe, name) for name in RESOLUTION}
    by_hand = {name: value for name, value in by_hand.items() if is_number(value)}
    if not by_hand or model.axes.mixed:
        return math.inf
    measure = model.settings["measure"]
    plain = Recipe(
        recipe.epsilon, recipe.delta, adjacency=recipe.adjacency, measure=measure, **by_hand
    )
    features = int(model.axes.numbers.sum())
    question = Question(crowd.people, None, features, plain, records_per_person=crowd.each)
    return mean_worth(worth_over(question, np.array([recipe.epsilon]))[0])


def refitted(model: TrajectoryModel, times: Floats, seed: int) -> Simulated:
    """A fit to people drawn from the model, to fewer with less noise where they are many."""
    crowd, public = ModelCrowd(model), PUBLIC_COUNTS in model.certificate.public_inputs
    recipe, people = fewer(recipe_of(model), _measure(model), crowd.people, crowd.each)
    return simulate(recipe, crowd, people, times, seed=seed, public_counts=public, released=PEOPLE)


@dataclass(frozen=True)
class ModelCrowd:
    """The people of a released model, in its public frame."""

    model: TrajectoryModel

    @property
    def each(self) -> int:
        """The most records of one of them."""
        return int(self.model.certificate.public_inputs.get(MOST_RECORDS, 1))

    @property
    def people(self) -> int:
        """How many there were, by the released numbers."""
        records = max(float(np.sum(self.model.diagnostics["people_per_time"])), 2.0)
        return max(round(records / self.each), 2)

    def places(self, moments: Floats, seed: int) -> Floats:
        """(n, d) in the unit cube: n people drawn from the model, each at one of the moments."""
        model = self.model
        everybody = model if model.growth is None else model.with_growth(None)
        each, which = np.unique(moments, return_inverse=True)
        points = np.empty((len(moments), len(model.columns)))
        for k in range(len(each)):
            there = np.flatnonzero(which == k)
            points[there] = drawn(everybody, each[[k]], len(there), seed + 7919 * k)[:, 0]
        return points

    def recorded(self, people: int, seed: int) -> tuple[Floats, Snapshots]:
        """As the released numbers of people are spread over windows of time."""
        model, each, counted = self.model, self.each, self.model.diagnostics
        public: dict[str, Any] = model.certificate.public_inputs
        rng, n = np.random.default_rng(seed), people * each
        counts = np.maximum(np.asarray(counted["people_per_time"], float), 0)
        window = rng.choice(len(counts), n, p=counts / counts.sum() if counts.any() else None)
        if counted["listed_times"]:
            ends = np.cumsum(np.asarray(counted["people_lengths"], float)).astype(int)
            first = np.concatenate([[0], ends[:-1]])
            moments = np.sort(model.numeric_times[rng.integers(first[window], ends[window])])
        else:
            edges = model.knots[0] + np.concatenate([[0.0], np.cumsum(counted["people_lengths"])])
            at = edges[window] + rng.random(n) * np.diff(edges)[window]
            width = (edges[-1] - edges[0]) / MOMENTS
            step = np.minimum(((at - edges[0]) / width).astype(int), MOMENTS - 1)
            middles = edges[0] + (step + 0.5) * width
            moments = np.sort(np.clip(middles, *model.knots[[0, -1]]))
        listed = "bin times" in public
        axis = TimeAxis(model.numeric_times.copy(), False, model.knots[[0, -1]].copy(), listed)
        # in order of time, so that records of one person are far apart
        whose: Ints | None = np.arange(len(moments)) % people if each > 1 else None
        points = self.places(moments, seed).astype(np.float32)
        rows, together = MemoryRows(points, moments, b"", whose), SHARED_BINS in public
        frame = (axis, model.columns, model.time_name, rows, each, together, (), model.domain)
        return moments, Snapshots(*frame)


def read_times(model: TrajectoryModel, most: int) -> Floats:
    """When models are compared: the listed times, if people are at these, or even ones."""
    if model.diagnostics["listed_times"]:
        times = model.numeric_times
        return times[np.linspace(0, len(times) - 1, min(most, len(times))).round().astype(int)]
    start, end = model.knots[[0, -1]]
    return start + (end - start) * (np.arange(most) + 0.5) / most


def _groups(
    model: TrajectoryModel, people: Sequence[Floats], judged: Callable[[float], Estimate]
) -> tuple[Group, ...]:
    """Numbers within every value of a category, at all times together."""
    found: list[Group] = []
    flat = [each.reshape(-1, each.shape[2]) for each in people]
    levels = [model.axes.level_of(each) for each in flat]
    numbers = [numbers_alone(each, model.columns) for each in flat]
    if numbers[0].shape[1] == 0:
        return ()
    for k, column in enumerate(model.columns):
        if not isinstance(column, Category):
            continue
        for level, label in enumerate(column.labels):
            here = levels[0][:, k] == level
            if here.mean() < LEAST_GROUP or len(found) >= MOST_GROUPS:
                continue
            yard = Yardstick([numbers[0][here]])
            inside = [x[at[:, k] == level] for x, at in zip(numbers[1:], levels[1:], strict=True)]
            errors = [yard.error([x[:: -(-len(x) // RELEASED)]]) for x in inside if len(x)]
            worth = yard.worth(float(np.mean(errors))) if errors else 0.0
            name = "missing" if label is None else str(label)
            found.append(Group(column.name, name, float(here.mean()), judged(worth)))
    return tuple(found)


def half_widths(own: Floats, others: Floats) -> Floats:
    """(Q, ...) of statistics (Q, ...) of the model and (B, Q, ...) of refits.

    The mean squared change at a time is of few refits, so that of all times is half of it.
    """
    squares = ((others - own) ** 2).mean(axis=0)
    return DOUBT * np.sqrt((squares + squares.mean(axis=0)) / 2)


def _bands(
    model: TrajectoryModel, people: Sequence[Floats], numbers: Sequence[Floats]
) -> tuple[dict[str, tuple[float, ...]], dict[str, tuple[tuple[float, ...], ...]], float | None]:
    """Half widths: of medians, of shares of categories, and of correlations at one time, all times
    and pairs together."""
    own, *others = (np.median(each, axis=0) for each in numbers)
    places = np.flatnonzero(model.axes.numbers)
    widths = half_widths(own, np.array(others)) * np.ptp(model.bounds[places], axis=1)
    medians = {
        model.columns[k].name: tuple(widths[:, j].tolist())
        for j, k in enumerate(places.tolist())
        if not (model.columns[k].of or isinstance(model.columns[k], Angle))  # a cosine, a sine
    }
    shares, levels = {}, [model.axes.level_of(each) for each in people]
    for k, column in enumerate(model.columns):
        if isinstance(column, Category):
            every = np.arange(column.levels)
            own, *others = ((at[..., [k]] == every).mean(axis=0) for at in levels)  # (Q, levels)
            shares[column.name] = tuple(map(tuple, half_widths(own, np.array(others)).tolist()))
    if numbers[0].shape[2] < 2:
        return medians, shares, None
    own, *others = map(correlations, numbers)
    squares = float(np.mean([np.mean((each - own) ** 2) for each in others]))
    return medians, shares, DOUBT * math.sqrt(squares)


def correlations(numbers: Floats) -> Floats:
    """(Q, pairs) of (n, Q, k); 0 for a number that does not vary."""
    upper = np.triu_indices(numbers.shape[2], 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        each = [np.atleast_2d(np.corrcoef(x.T))[upper] for x in numbers.swapaxes(0, 1)]
    return np.nan_to_num(np.array(each))
