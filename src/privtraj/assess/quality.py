"""What a released model is worth, and how sure its numbers are, by what the truth may be.

A model is what noise and cells let through. People drawn from it are smoother than the people it
was made of, so that fits to them are too good: so coarse a model fits itself again without error.
Given what was released, the truth may have in addition

    shape    whatever is finer than the resolution r of the measurement. The sharpest such crowd:
             everybody stands where the nearest of k people of the model stands, k so few that this
             moves people by d r^2 in mean square (`PossibleCrowd`).
    motion   whatever the windows of time hide: a squared distance h, which is one of five that are
             equally likely given the private look at motion (`windows.LIKELY`).

As many people as were counted are drawn from the crowd, and the recipe of the model is fitted to
them with the same budget (`simulate`). For refit b at time t let e_bt = W2^2(refit b, crowd),
numbers alone, in shares of the box. The model is then off by e_bt + h, and so many real people of
the crowd are as far from it. All b and h are equally likely (`Estimate.of`). Only what was released
is used: nothing is read, and it costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.assess.common import LEAST_WORTH, UNKNOWN, Estimate, kept, kept_file
from privtraj.assess.groups import Group, groups_of, told_by_tables
from privtraj.assess.simulate import (
    POPULATION,
    RELEASED,
    Yardstick,
    drawn,
    fewer,
    simulate,
)
from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import BudgetError, InputError
from privtraj.base.space import TimeAxis
from privtraj.measures.registry import find
from privtraj.measures.tables import Detail
from privtraj.measures.windows import hidden_unlooked
from privtraj.metrics.columns import numbers_alone
from privtraj.metrics.people import meeting
from privtraj.model.model import TrajectoryModel, load
from privtraj.privacy.certificate import MOST_RECORDS, PUBLIC_COUNTS, SHARED_BINS
from privtraj.privacy.guard import MemoryRows
from privtraj.recipe import Recipe

if TYPE_CHECKING:
    from privtraj.data.snapshots import Snapshots

REFITS, MOST_REFITS = 2, 4
"""Of which each takes as long as the fit; more than the first two only where these are further
apart than half of `UNKNOWN`, which intervals have in any case. One of a fit by tables, whose
answers need none; intervals then have `OF_ONE` beside."""
OF_ONE = 0.5
"""Standard deviation of the logarithm of worth from one refit by tables to the next: of 12 random
tables and hospitals of benchmarks/random_tables.py it was .02 to .4, and 1.3 of one; intervals held
11 of 12 of them (`python experiments/quality.py --tables`)."""
READ_TIMES = 8  # when models are compared, if people are at any time or at more of them
MOMENTS = 64  # of people who come at any time: more of them make more calls, and no other crowd
MOST_STANDS = 256  # of a crowd; more are no other crowd than the model's own


@dataclass(frozen=True)
class Quality:
    """What a release is worth, at all times together and at each (Q,).

    numeric_times: (Q,).  groups: what is known of each value of a category, those lost first.
    """

    worth: Estimate
    numeric_times: tuple[float, ...]
    at_times: tuple[Estimate, ...]
    groups: tuple[Group, ...]
    refits: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Quality:
        made = {
            "worth": Estimate(**values["worth"]),
            "numeric_times": tuple(values["numeric_times"]),
            "at_times": tuple(Estimate(**each) for each in values["at_times"]),
            "groups": tuple(Group(**each) for each in values["groups"]),
        }
        return cls(**{**values, **made})


def quality_of(
    model: TrajectoryModel, progress: Callable[[int, int], None] | None = None
) -> Quality | None:
    """The estimate for a model, kept or made now; None for one that no fit of ours has made."""
    key = {"model": model.sha256, "refits": (REFITS, MOST_REFITS)}
    return kept(
        "quality", key, Quality.from_dict, lambda: estimated_quality(model, progress=progress)
    )


def estimated_quality(
    model: TrajectoryModel,
    *,
    refits: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Quality | None:
    """By fits to people who may be the truth; None for a model that no fit of ours has made, or
    whose fit, with settings that a model does not tell, is refused.

    refits: as many, and up to `MOST_REFITS` as long as these differ by more than what is unknown
    anyway; `REFITS`, or one of a fit by tables, if not given.
    """
    if not can_be_refitted(model):
        return None
    refits = refits or (1 if told_by_tables(model) else REFITS)
    times, crowd = read_times(model, READ_TIMES), PossibleCrowd(model, seed)
    truth = crowd.places(np.repeat(times, POPULATION), seed + 101)
    numbers = numbers_alone(truth.reshape(len(times), POPULATION, -1), model.columns)
    if not numbers.shape[2]:
        return Quality(Estimate(0.0, 0.0, 0.0), tuple(times.tolist()), (), groups_of(model), 0)
    yards = [Yardstick([cloud]) for cloud in numbers]
    hidden = model.diagnostics.get("hidden_motion")
    if not hidden:  # nobody looked
        moments = len(model.numeric_times) if model.diagnostics["listed_times"] else MOMENTS
        windows = min(len(model.diagnostics["people_lengths"]), moments)
        hidden = [0.0] if windows == moments else hidden_unlooked(moments, windows).tolist()
    side = recipe_of(model).cells
    if side is not None:  # set by hand: what cells hide, as `measures.counts` has it
        hidden = [h + numbers.shape[2] / (24 * side**2) for h in hidden]

    def worths(errors: Floats, at: Sequence[Yardstick]) -> Floats:
        """(B, h) by errors (B,) of refits, of these times together."""

        def curve(n: int) -> float:
            return float(np.mean([yard.error_of(n) for yard in at]))

        return np.array([[meeting(at[0].rungs, curve, e + h) for h in hidden] for e in errors])

    errors, overall = np.empty((0, len(times))), np.empty((0, len(hidden)))
    done = progress or (lambda step, steps: None)
    for k in range(1, MOST_REFITS + 1):
        done(k - 1, max(refits, k))
        try:
            people = drawn(refitted(model, seed + k, crowd)[0], times, RELEASED, seed + k)
        except (InputError, BudgetError):
            return None
        clouds = numbers_alone(people.swapaxes(0, 1), model.columns)
        own = [yard.error([x]) for yard, x in zip(yards, clouds, strict=True)]
        errors = np.append(errors, [own], axis=0)
        overall = worths(errors.mean(axis=1), yards)
        if (
            k >= refits
            and np.ptp(np.log(np.maximum(overall, LEAST_WORTH)).mean(axis=1)) < UNKNOWN / 2
        ):
            break
    done(k, k)
    at_times = (worths(errors[:, t], [yard]) for t, yard in enumerate(yards))
    unknown = OF_ONE if k == 1 else 0.0
    return Quality(
        Estimate.of(overall, unknown),
        tuple(times.tolist()),
        tuple(Estimate.of(each, unknown) for each in at_times),
        groups_of(model),
        k,
    )


# Fits that are made again ---------------------------------------------------------------------


def can_be_refitted(model: TrajectoryModel) -> bool:
    """Whether it was made by a fit that can be made again from what it tells."""
    needed = {"people_per_time", "people_lengths", "people_middles", "listed_times"}
    return find(model.settings.get("measure")) is not None and needed <= model.diagnostics.keys()


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


@lru_cache(MOST_REFITS)
def refitted(
    model: TrajectoryModel, seed: int, crowd: PossibleCrowd | None = None
) -> tuple[TrajectoryModel, int]:
    """A fit to people of the crowd, and to how many: to fewer with less noise where they are many.

    Kept in the user's cache, so that a report and all answers (`ask`) share it, and at hand.
    """
    crowd, measure = crowd or PossibleCrowd(model), find(model.settings["measure"])
    assert measure is not None
    recipe, people = fewer(recipe_of(model), measure, crowd.people, crowd.each)
    key = {"model": model.sha256, "seeds": (seed, crowd.seed), "budget": (recipe.epsilon, people)}
    try:
        path = kept_file("refit", key).with_suffix(".privtraj")
        return load(path), people
    except (OSError, RuntimeError, InputError):
        pass
    public = PUBLIC_COUNTS in model.certificate.public_inputs
    made = simulate(recipe, crowd, people, seed=seed, public_counts=public)
    with suppress(OSError, RuntimeError, InputError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        made.save(path, force=True, not_private=True)
    return made, people


@dataclass(frozen=True)
class PossibleCrowd:
    """The sharpest people, in the public frame of a model, of whom it may have been made."""

    model: TrajectoryModel
    seed: int = 0

    @property
    def each(self) -> int:
        """The most records of one of them."""
        return int(self.model.certificate.public_inputs.get(MOST_RECORDS, 1))

    @property
    def people(self) -> int:
        """How many there were, by the released numbers."""
        records = max(float(np.sum(self.model.diagnostics["people_per_time"])), 2.0)
        return max(round(records / self.each), 2)

    @cached_property
    def stands(self) -> int:
        """k, the number of people in whose place all others stand."""
        from scipy.spatial import cKDTree

        model, middle = self.model, self.model.knots[[0, -1]].mean(keepdims=True)
        some = drawn(model, middle, 1000, self.seed)[:, 0, model.axes.numbers]
        tables, told = told_by_tables(model), model.diagnostics
        if tables is not None:  # a number is cut into so many parts of equal shares
            parts = Detail.of(tables[0], len(model.axes.counted), tables[1]).groups
            finest = float(np.sqrt(some.var(axis=0).mean())) / parts
        else:
            sides = [side for side in told.get("cell_side") or [] if side is not None]
            width = float(np.mean(sides)) / math.sqrt(12) if sides else 0.0
            finest = max(told.get("resolution", width), float(model.bandwidth.mean()))
        count = 1
        while count < MOST_STANDS:
            moved = cKDTree(some[:count]).query(some[len(some) // 2 :])[0]
            if np.mean(moved**2) <= some.shape[1] * finest**2:
                break
            count = math.ceil(1.3 * count)
        return count

    def places(self, moments: Floats, seed: int) -> Floats:
        """(n, d) in the unit cube: n people, each at one of the moments."""
        from scipy.spatial import cKDTree

        numbers = np.flatnonzero(self.model.axes.numbers)
        each, which = np.unique(moments, return_inverse=True)
        points = np.empty((len(moments), len(self.model.columns)))
        stands = drawn(self.model, each, self.stands, self.seed)[..., numbers]
        for k in range(len(each)):
            there = np.flatnonzero(which == k)
            points[there] = drawn(self.model, each[[k]], len(there), seed + 7919 * k)[:, 0]
            if len(numbers):
                nearest = cKDTree(stands[:, k]).query(points[np.ix_(there, numbers)])[1]
                points[np.ix_(there, numbers)] = stands[nearest, k]
        return points

    def recorded(self, people: int, seed: int) -> tuple[Floats, Snapshots]:
        """As the released numbers of people are spread over windows of time."""
        from privtraj.data.snapshots import Snapshots

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
        times, ends = model.numeric_times.copy(), model.knots[[0, -1]].copy()
        axis = TimeAxis(times, model.datetime, ends, "bin times" in public)
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
