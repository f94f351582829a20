"""What a released model is worth, and how sure its numbers are, from fits that are made again.

For refit b at time t let e_bt = W2^2(refit b, model), numbers alone, in shares of the box. The
error of the model is taken to be the mean of e_bt, so many real people of the model's own crowd are
as far from it, and `calibration` says what is left of that number for the real people.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from privtraj.assess.planning.standins import Yardstick
from privtraj.assess.quality.refits import (
    can_be_refitted,
    people_at,
    read_times,
    refitted,
    worth_of_resolution,
)
from privtraj.base.arrays import Floats
from privtraj.base.errors import BudgetError, InputError
from privtraj.base.space import as_user_times
from privtraj.columns.kinds import Category
from privtraj.metrics.encoding import numbers_alone, unit_points
from privtraj.metrics.optimism import Estimate, estimated
from privtraj.model.model import TrajectoryModel

REFITS = 3
"""Fits that are made again: their mean error varies little, and each takes as long as the fit."""
READ_TIMES = 8
"""Times at which models are compared, where people are at any time or at more of them."""
DOUBT = 4.0
"""Half width of a band, in root mean squared changes of refits: holds the truth in nine of ten."""
LEAST_GROUP = 0.05
"""Share of people from which a value of a category is a group."""
MOST_GROUPS = 24
_PEOPLE = 2000  # of each model, whose medians, shares and correlations are compared
_POPULATION, _RELEASED = 8000, 500  # as in plans


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
        """For JSON; `from_dict` undoes it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Quality:
        """What `to_dict` wrote."""
        return cls(
            Estimate(**told["worth"]),
            tuple(told["numeric_times"]),
            tuple(Estimate(**each) for each in told["at_times"]),
            tuple(Group(**{**g, "worth": Estimate(**g["worth"])}) for g in told["groups"]),
            {name: tuple(each) for name, each in told["medians"].items()},
            {name: tuple(map(tuple, each)) for name, each in told["shares"].items()},
            told["correlation"],
            told["refits"],
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
    times = read_times(model, READ_TIMES)
    done(0, refits)
    people, others = _drawn(model, times, seed), []
    for k in range(refits):
        try:
            again = refitted(model, seed + 1 + k)
        except (InputError, BudgetError):
            return None
        others.append(_drawn(again, times, seed + 1 + k))
        done(k + 1, refits)
    most = worth_of_resolution(model)
    numbers = [numbers_alone(each, model.columns) for each in (people, *others)]
    worth = _Worths(model, times, numbers[1:], seed, most) if numbers[0].shape[2] else None
    return Quality(
        worth.overall() if worth else Estimate(0.0, 0.0, 0.0),
        tuple(times.tolist()),
        worth.at_times() if worth else (),
        _groups(model, people, others),
        _median_bands(model, numbers),
        _share_bands(model, people, others),
        _correlation_band(numbers),
        refits,
    )


def judged_by(model: TrajectoryModel) -> Callable[[float], Estimate]:
    """From the worth of refits to that of the model."""
    people = max(float(np.sum(model.diagnostics["people_per_time"])), 1.0)
    budget = people * model.certificate.target_epsilon
    return lambda refits: estimated(refits, model.settings["measure"], budget)


def _drawn(model: TrajectoryModel, times: Floats, seed: int) -> Floats:
    """(n, Q, d) people in the unit cube."""
    everybody = model if model.growth is None else model.with_growth(None)
    values = everybody.sample(_PEOPLE, times=as_user_times(times, model.datetime), seed=seed).values
    return unit_points(values, model.columns)


class _Worths:
    """Errors of refits, and what they are worth among people of the model."""

    def __init__(
        self,
        model: TrajectoryModel,
        times: Floats,
        refits: Sequence[Floats],
        seed: int,
        most: float,
    ) -> None:
        judged = judged_by(model)
        self._judged = lambda worth: judged(min(worth, most))
        moments = np.repeat(times, _POPULATION)
        crowd = numbers_alone(people_at(model, moments, seed + 101), model.columns)
        self._yards = [Yardstick([cloud]) for cloud in crowd.reshape(len(times), _POPULATION, -1)]
        self._errors = np.array(
            [
                [yard.error([each[:_RELEASED, t]]) for t, yard in enumerate(self._yards)]
                for each in refits
            ]
        )  # (B, Q)

    def overall(self) -> Estimate:
        together = _Together(self._yards)
        return self._judged(together.worth(float(self._errors.mean())))

    def at_times(self) -> tuple[Estimate, ...]:
        means = self._errors.mean(axis=0)
        return tuple(
            self._judged(yard.worth(float(e))) for yard, e in zip(self._yards, means, strict=True)
        )


class _Together(Yardstick):
    """The yardstick of all times, from those of each."""

    def __init__(self, yards: Sequence[Yardstick]) -> None:
        self._yards, self.rungs = yards, yards[0].rungs

    def errors(self, n: int) -> Floats:
        return np.mean([yard.errors(n) for yard in self._yards], axis=0)


def _groups(model: TrajectoryModel, people: Floats, others: Sequence[Floats]) -> tuple[Group, ...]:
    """Numbers within every value of a category, at all times together."""
    axes, judged = model.axes, judged_by(model)
    found: list[Group] = []
    flat = [each.reshape(-1, each.shape[2]) for each in (people, *others)]
    levels = [axes.level_of(each) for each in flat]
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
            errors = [yard.error([x[:: -(-len(x) // _RELEASED)]]) for x in inside if len(x)]
            worth = yard.worth(float(np.mean(errors))) if errors else 0.0
            name = "missing" if label is None else str(label)
            found.append(
                Group(
                    column.name,
                    name,
                    float(here.mean()),
                    judged(worth),
                )
            )
    return tuple(found)


def half_widths(own: Floats, others: Floats) -> Floats:
    """(Q, ...) of statistics (Q, ...) of the model and (B, Q, ...) of refits.

    The mean squared change at a time is of few refits, so that of all times is half of it.
    """
    squares = ((others - own) ** 2).mean(axis=0)
    return DOUBT * np.sqrt((squares + squares.mean(axis=0)) / 2)


def _median_bands(
    model: TrajectoryModel, numbers: Sequence[Floats]
) -> dict[str, tuple[float, ...]]:
    own, *others = (np.median(each, axis=0) for each in numbers)
    widths = half_widths(own, np.array(others))
    kept = np.flatnonzero(model.axes.numbers)
    sizes = np.ptp(model.bounds[kept], axis=1)
    return {
        model.columns[k].name: tuple((widths[:, j] * sizes[j]).tolist()) for j, k in enumerate(kept)
    }


def _share_bands(
    model: TrajectoryModel, people: Floats, others: Sequence[Floats]
) -> dict[str, tuple[tuple[float, ...], ...]]:
    bands = {}
    for k, column in enumerate(model.columns):
        if isinstance(column, Category):
            own, *rest = (_shares(model, each, k, column.levels) for each in (people, *others))
            bands[column.name] = tuple(map(tuple, half_widths(own, np.array(rest)).tolist()))
    return bands


def _shares(model: TrajectoryModel, people: Floats, place: int, levels: int) -> Floats:
    """(Q, levels)."""
    at = model.axes.level_of(people)[..., place]
    return np.array([(at == level).mean(axis=0) for level in range(levels)]).T


def _correlation_band(numbers: Sequence[Floats]) -> float | None:
    """Of correlations at one time, all times and pairs together."""
    if numbers[0].shape[2] < 2:
        return None
    own, *others = (_correlations(each) for each in numbers)
    return DOUBT * math.sqrt(float(np.mean([np.mean((each - own) ** 2) for each in others])))


def _correlations(numbers: Floats) -> Floats:
    """(Q, pairs) of (n, Q, k); 0 for a number that does not vary."""
    upper = np.triu_indices(numbers.shape[2], 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        each = [np.atleast_2d(np.corrcoef(x.T))[upper] for x in numbers.swapaxes(0, 1)]
    return np.nan_to_num(np.array(each))
