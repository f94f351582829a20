"""The budget of one fit: what may be spent of it, what was spent, and how much noise it buys.

A `Ledger` is the one place where privacy is spent: an event that does not fit, or is not on the
plan that the ledger was given, raises `BudgetError` and leaves no trace.

A `BudgetPlan` is the list of all releases of a fit, made from public numbers before the first.
Composition is exact for events that are fixed in advance. A plan writes them down: kind, name, how
often at most, and the noise where it is known; where it is not, a bound on what such releases may
tell together.

Calibration is the inverse of `accounting`, and never beyond the target: what is returned was found
to fit. Where a grid of privacy losses is needed the search is on the coarse one, and the result
certified on the fine one. Results are remembered: every fit of an audit asks the same questions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import lru_cache
from typing import Protocol, Self

from privtraj.base.errors import BudgetError
from privtraj.privacy.accounting import (
    COARSE,
    FINE,
    Cost,
    Events,
    Guarantee,
    Parallel,
    Sequential,
    Tally,
    bisect,
    cost,
    tally,
)
from privtraj.privacy.events import (
    Adjacency,
    Event,
    GaussianSum,
    LaplaceCounts,
    Person,
    check_adjacency,
    check_budget,
    check_slack,
)

_WORTH_NAMING = 1e-3  # less privacy loss than this buys nothing: call it spent


class Payer(Protocol):
    """Whoever can pay for a release: a ledger, or an allowance from one."""

    def spend(self, event: Event) -> None:
        """Pay for the event, or raise `BudgetError`."""


class Ledger:
    """An (epsilon, delta) budget under one adjacency, and the events that were paid from it.

    The running `Tally` makes `spend` cost the same at the first step and at the two-thousandth.

    What may be chosen on the way: the noise multipliers of Gaussian sums may depend on earlier
    releases, because the sum of mu^2 that fits beside given counts is one fixed number, and
    stopping at it is sound however the steps share it. Which counts are released, and their
    epsilons, belong to the plan: fix them in advance, or release them before any multiplier is
    chosen on the way. So do noise, rate and number of sampled sums, whose losses are no Brownian
    path: all that satisfy one budget do not satisfy it when one is picked by what was seen.
    A `plan` holds a fit to that: every release is one of those it lists.

    others: what was released about other people, none of whom is among those of this ledger. All of
    it together is then `Parallel`, and has to keep to the budget together.
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        adjacency: Adjacency = "add-remove",
        plan: BudgetPlan | None = None,
        others: Guarantee | None = None,
    ) -> None:
        check_budget(epsilon, delta)
        self.epsilon = float(epsilon)
        self.delta = float(delta)
        self.adjacency = check_adjacency(adjacency)
        self.others = others
        self.events: tuple[tuple[Event, int], ...] = ()  # what happened, in order, and how often
        self.tally = Tally(self.adjacency)  # of these events
        self._plan = plan

    @property
    def guarantee(self) -> Guarantee:
        """Its own events, and beside them what is about other people."""
        own = Sequential(self.events)
        if self.others is None:
            return own
        return Parallel((self.others, own)) if self.events else self.others

    @property
    def cost(self) -> Cost:
        """What everything costs that the certificate will tell of."""
        if self.others is None:
            return self.tally
        return cost(self.guarantee, self.adjacency)

    def covers(self, event: Event, times: int = 1) -> bool:
        """Whether the event would fit beside what was spent."""
        after = copy(self)
        after._add(event, times)
        return after.cost.delta(self.epsilon) <= self.delta

    def spend(self, event: Event, times: int = 1) -> None:
        """Record the event, or raise `BudgetError` and record nothing."""
        plan = self._plan and self._plan.after(event, times)
        if not self.covers(event, times):
            raise BudgetError(
                f"the budget does not cover {event.describe(times)}: {self.remaining(event)}"
            )
        self._add(event, times)
        self._plan = plan

    def _add(self, event: Event, times: int) -> None:
        self.tally = self.tally.add(event, times)
        self.events = (*self.events, (event, times))

    def spent(self) -> float:
        """The smallest epsilon, at the budget's delta, of everything recorded so far."""
        return self.cost.epsilon(self.delta)

    def remaining(self, like: Event | None = None) -> str:
        """What is left, in words: the budget used, and the largest single release that fits, of
        people who have as many records as those of `like`."""
        used = f"epsilon {up(self.spent())} of {self.epsilon:g} is spent at delta {self.delta:g}"
        if self.tally.sampled:  # no closed form to calibrate in
            return used
        budget = (self.epsilon, self.delta, self.adjacency, self.events)
        person = ONE_RECORD if like is None else like.person
        inverse = calibrate_gaussian(*budget, person=person)
        laplace = calibrate_laplace(*budget, person=person)
        options = []
        if inverse > _WORTH_NAMING:
            options.append(f"a Gaussian sum of noise multiplier {up(1 / inverse)} or more")
        if laplace > _WORTH_NAMING:
            options.append(f"Laplace counts of epsilon {down(laplace)} or less")
        return f"{used}, which leaves room for {' or '.join(options) or 'nothing more'}"

    def __repr__(self) -> str:
        events = sum(times for _, times in self.events)
        budget = f"epsilon={self.epsilon:g}, delta={self.delta:g}, adjacency={self.adjacency!r}"
        return f"Ledger({budget}, events={events})"


def up(value: float, digits: int = 4) -> str:
    """Rounded up: what is printed never promises more than was proven."""
    return _rounded(value, ROUND_CEILING, digits)


def down(value: float, digits: int = 4) -> str:
    """Rounded down: what is said to be left is there."""
    return _rounded(value, ROUND_FLOOR, digits)


def _rounded(value: float, towards: str, digits: int) -> str:
    shortest = repr(float(value))  # the decimal a person typed, where one did
    rounded = Context(prec=digits, rounding=towards).create_decimal(shortest)
    return f"{float(rounded):.{digits}g}"


_TOLERANCE = 1e-9  # relative, for the rounding of shares that add up to the bound


@dataclass(frozen=True)
class Planned:
    """Up to `times` releases of one kind: each is the event; or, where only its kind is known in
    advance, they are `shared`: all together may tell no more than the one event."""

    event: Event
    times: int = 1
    shared: bool = False
    used: float = 0.0  # of the shared event's information

    def after(self, event: Event, times: int) -> Planned | None:
        """What is left after so many of the event; None if they are not covered."""
        used = self.used
        if self.shared:
            covered = event.kind == self.event.kind
            if covered:
                used += times * event.information
                covered = used <= self.event.information * (1 + _TOLERANCE)
        else:
            covered = event.ideal() == self.event.ideal()
        if times > self.times or not covered:
            return None
        return replace(self, times=self.times - times, used=used)


@dataclass(frozen=True)
class BudgetPlan:
    """The releases that may still be made."""

    releases: tuple[Planned, ...] = ()

    @classmethod
    def of(cls, events: Iterable[tuple[Event, int]]) -> Self:
        """A plan of events that are all known in advance, each so many times."""
        return cls(tuple(Planned(event, times) for event, times in events))

    def after(self, event: Event, times: int = 1) -> BudgetPlan:
        """The plan that is left, or a `BudgetError` if the event is not on it."""
        for k, planned in enumerate(self.releases):
            left = planned.after(event, times)
            if left is not None:
                return BudgetPlan((*self.releases[:k], left, *self.releases[k + 1 :]))
        raise BudgetError(
            f"{event.describe(times)} is not on the plan of this fit, or no more of it: "
            "plan every release before the first"
        )


CALIBRATION_MARGIN = 1e-9
"""Relative amount by which calibrated values stay inside the budget: more than the rounding of
thousands of added steps, far less than anyone could notice."""

ONE_RECORD = Person()

_SMALLEST, _LARGEST = 2.0**-40, 2.0**40
_LEAST_NOISE = 0.05  # sampled sums of less noise have losses of hundreds, and grids of millions
_QUIET = 4.0  # noise at which the grids of sampled sums are still short
_ON_GRIDS = 1e-6  # precision beside sampled sums


def calibrate_gaussian(
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    others: Events = (),
    *,
    slack: float = 0.0,
    person: Person = ONE_RECORD,
) -> float:
    """The largest 1/z for which GaussianSum(z) fits into (epsilon, delta) beside the others.

    K equal steps may share it: each of noise multiplier z sqrt(K). slack: what the new noise will
    add, here and below. 0.0 if nothing fits.
    """
    spent = _spent(epsilon, delta, adjacency, others, slack)
    return _largest_release(GaussianSum, spent, epsilon, delta, person)


def calibrate_laplace(
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    others: Events = (),
    *,
    slack: float = 0.0,
    person: Person = ONE_RECORD,
) -> float:
    """The largest e for which LaplaceCounts(e) fits beside the others. 0.0 if nothing fits."""
    spent = _spent(epsilon, delta, adjacency, others, slack)
    return _largest_release(LaplaceCounts, spent, epsilon, delta, person)


def calibrate_noise(
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    *,
    steps: int,
    rate: float = 1.0,
    person: Person = ONE_RECORD,
    others: Events = (),
    slack: float = 0.0,
) -> float:
    """The smallest z for which `steps` sampled sums fit beside the others. inf if nothing fits."""
    spent = _spent(epsilon, delta, adjacency, others, slack)
    return _least_noise(spent, epsilon, delta, steps, rate, person)


@lru_cache(maxsize=256)
def _largest_release(
    kind: type[GaussianSum | LaplaceCounts],
    spent: Tally,
    epsilon: float,
    delta: float,
    person: Person,
) -> float:
    """The largest size that fits, less the margin, where all smaller ones fit too; 0.0 if none.

    size: epsilon of counts, 1 / z of a sum.
    """

    def fits(size: float) -> bool:
        event = kind(size if kind is LaplaceCounts else 1 / size, "", 0.0, *person)
        return spent.add(event).delta(epsilon) <= delta

    most, precision = _LARGEST, 1e-13
    if spent.sampled:  # no more than without them, which needs no grid
        alone = _largest_release(kind, replace(spent, sampled=()), epsilon, delta, person)
        most, precision = min(alone, 1 / _LEAST_NOISE), _ON_GRIDS
    good = _halved_until(fits, most) if most else 0.0
    if 0 < good < most:
        good = bisect(fits, good=good, bad=2 * good, precision=precision)
    return good * (1 - CALIBRATION_MARGIN)


def _halved_until(fits: Callable[[float], bool], x: float) -> float:
    """The first of x, x / 2, x / 4, ... that fits; 0.0 if none does."""
    while not fits(x):
        x /= 2
        if x < _SMALLEST:
            return 0.0
    return x


@lru_cache(maxsize=64)
def _least_noise(
    spent: Tally, epsilon: float, delta: float, steps: int, rate: float, person: Person
) -> float:
    start = _largest_release(GaussianSum, spent, epsilon, delta, person) / math.sqrt(steps)
    if start == 0 or rate == 1:
        return 1 / start if start else math.inf

    def fits(inverse: float, interval: float) -> bool:
        event = GaussianSum(1 / inverse, "", 0.0, *person, rate)
        return spent.add(event, steps).delta(epsilon, interval) <= delta

    if not fits(_SMALLEST, FINE):  # the error of the grid alone may be more than delta
        return math.inf
    # Sampling never costs more than taking everybody, but for the error of the grid.
    start = min(start * (1 - 1e-3), 1 / _LEAST_NOISE)
    return 1 / _largest_on_grids(fits, start, 1 / _LEAST_NOISE)


def calibrate_scale(
    epsilon: float, delta: float, adjacency: Adjacency, events: Events, others: Events = ()
) -> float:
    """The largest factor by which the noise of all the events may be divided, beside the others.
    0.0 if nothing fits."""
    check_budget(epsilon, delta)
    base, others = tally(events, adjacency), tuple(others)

    def fits(factor: float, interval: float) -> bool:
        total = tally(others, adjacency, base.scaled(factor))
        return total.delta(epsilon, interval) <= delta

    least = min((pair.noise_multiplier for pair, _ in base.sampled), default=_LARGEST)
    start = _halved_until(lambda factor: fits(factor, FINE), min(1.0, least / _QUIET))
    if start == 0:
        return 0.0
    return _largest_on_grids(fits, start, least / _LEAST_NOISE) * (1 - CALIBRATION_MARGIN)


def _largest_on_grids(fits: Callable[[float, float], bool], good: float, most: float) -> float:
    """The largest x up to `most` that fits, from a good one; fits(x, grid)."""
    while good < most and fits(min(2 * good, most), COARSE):
        good = min(2 * good, most)
    good = bisect(lambda x: fits(x, COARSE), good, min(2 * good, most), 5e-4)
    while not fits(good, FINE):
        good *= 1 - 1e-3
    return bisect(lambda x: fits(x, FINE), good, good * (1 + 1e-3), 2e-4)


def _spent(
    epsilon: float, delta: float, adjacency: Adjacency, others: Events, slack: float
) -> Tally:
    check_budget(epsilon, delta)
    check_slack(slack)
    spent = tally(others, adjacency)
    return replace(spent, slack=spent.slack + slack)
