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
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import lru_cache, partial
from typing import Any

from privtraj.base.errors import BudgetError
from privtraj.privacy.accounting import COARSE, FINE, Events, Tally, bisect, tally
from privtraj.privacy.events import (
    Adjacency,
    ChosenTimes,
    Event,
    GaussianSum,
    LaplaceCounts,
    Person,
    check_adjacency,
    check_budget,
)


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
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        adjacency: Adjacency = "add-remove",
        plan: BudgetPlan | None = None,
    ) -> None:
        check_budget(epsilon, delta)
        self.epsilon = float(epsilon)
        self.delta = float(delta)
        self.adjacency = check_adjacency(adjacency)
        self.events: tuple[tuple[Event, int], ...] = ()  # what happened, in order, and how often
        self.tally = Tally(self.adjacency)  # of these events
        self._plan = plan

    def covers(self, event: Event, times: int = 1) -> bool:
        """Whether the event would fit beside what was spent."""
        return self.tally.add(event, times).delta(self.epsilon) <= self.delta

    def spend(self, event: Event, times: int = 1) -> None:
        """Record the event, or raise `BudgetError` and record nothing."""
        plan = self._plan and self._plan.after(event, times)
        if not self.covers(event, times):
            raise BudgetError(
                f"the budget does not cover {event.describe(times)}: epsilon {up(self.spent())} of "
                f"{self.epsilon:g} is spent at delta {self.delta:g}"
            )
        self.tally = self.tally.add(event, times)
        self.events = (*self.events, (event, times))
        self._plan = plan

    def reserve(self, event: GaussianSum, times: int, share: float | None = None) -> Allowance:
        """Pay for `times` equal releases at once; the allowance then hands them out one by one.

        share: of the time bins, random and published, that they are made on; None for all bins.
        """
        if share is None:
            self.spend(event, times)
        else:
            self.spend(ChosenTimes(share, event, times, event.what))
        return Allowance(event, times)

    def spent(self) -> float:
        """The smallest epsilon, at the budget's delta, of everything recorded so far."""
        return self.tally.epsilon(self.delta)


class Allowance:
    """So many releases of one kind, paid for in advance; anything else is refused.

    Composing sampled steps anew at every one would take longer than the steps. So they are paid for
    at once, and handed out one by one; what is left counts as spent, used or not.
    """

    def __init__(self, event: GaussianSum, times: int) -> None:
        self._event = event
        self._left = times

    def spend(self, event: Event) -> None:
        """Take one of the releases, or raise `BudgetError`."""
        if event != self._event or self._left < 1:
            raise BudgetError(
                f"only {self._left} more of {self._event.describe()} were paid for in advance, not "
                f"{event.describe()}"
            )
        self._left -= 1


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


@dataclass(frozen=True)
class BudgetPlan:
    """The releases that may still be made."""

    releases: tuple[Planned, ...] = ()

    def after(self, event: Event, times: int = 1) -> BudgetPlan:
        """The plan that is left, or a `BudgetError` if the event is not on it."""
        for k, planned in enumerate(self.releases):
            used = planned.used
            if not planned.shared:
                covered = event.ideal() == planned.event.ideal()
            elif covered := event.kind == planned.event.kind:
                used += times * event.information
                covered = used <= planned.event.information * (1 + _TOLERANCE)
            if covered and times <= planned.times:
                left = replace(planned, times=planned.times - times, used=used)
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


def calibrate(
    kind: type[GaussianSum | LaplaceCounts],
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    others: Events = (),
    *,
    slack: float = 0.0,
    person: Person = ONE_RECORD,
    steps: int = 1,
    rate: float = 1.0,
) -> float:
    """The largest size of a release that fits into (epsilon, delta) beside the others, so many
    times; 0.0 if nothing fits. size: e of LaplaceCounts(e), 1/z of a GaussianSum(z).

    slack: what the new noise will add.  rate: at which the people of a sum are sampled.
    """
    check_budget(epsilon, delta)
    spent, budget = tally(others, adjacency), (epsilon, delta)
    spent = replace(spent, slack=spent.slack + slack)
    size = _largest(kind, spent, budget, person) / math.sqrt(steps)
    if size and rate != 1:  # sampling never costs more than taking everybody
        size = _largest(kind, spent, budget, person, steps, rate, size)
    return size


calibrate_gaussian = partial(calibrate, GaussianSum)
"""The largest 1/z. K equal steps may share it: each of noise multiplier z sqrt(K)."""
calibrate_laplace = partial(calibrate, LaplaceCounts)
"""The largest e."""


def calibrate_noise(epsilon: float, delta: float, adjacency: Adjacency, **plan: Any) -> float:
    """The smallest z for which `steps` sums of people sampled at a `rate` fit. inf if nothing."""
    inverse = calibrate(GaussianSum, epsilon, delta, adjacency, **plan)
    return 1 / inverse if inverse else math.inf


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
    found = _largest_on_grids(fits, min(1.0, least / _QUIET), least / _LEAST_NOISE)
    return found * (1 - CALIBRATION_MARGIN)


@lru_cache(maxsize=256)
def _largest(
    kind: type[GaussianSum | LaplaceCounts],
    spent: Tally,
    budget: tuple[float, float],
    person: Person,
    steps: int = 1,
    rate: float = 1.0,
    start: float = _LARGEST,
) -> float:
    """The largest size that fits, less the margin, where all smaller ones fit too; 0.0 if none.

    size: epsilon of counts, 1 / z of a sum.  budget: (epsilon, delta).
    """
    epsilon, delta = budget

    def fits(size: float, interval: float = FINE) -> bool:
        if kind is LaplaceCounts:
            event: Event = LaplaceCounts(size, "", 0.0, *person, person.weight)
        else:
            event = GaussianSum(1 / size, "", 0.0, *person, rate)
        return spent.add(event, steps).delta(epsilon, interval) <= delta

    if spent.sampled or rate != 1:
        if rate == 1:  # no more than without what is sampled, which needs no grid
            start = _largest(kind, replace(spent, sampled=()), budget, person)
        most = 1 / _LEAST_NOISE if rate != 1 else min(start, 1 / _LEAST_NOISE)
        good = start and _largest_on_grids(fits, min(start, most), most)
    else:
        good = start
        while good and not fits(good):
            good = good / 2 if good / 2 >= _SMALLEST else 0.0
        if 0 < good < start:
            good = bisect(fits, good=good, bad=2 * good)
    return good * (1 - CALIBRATION_MARGIN)


def _largest_on_grids(fits: Callable[[float, float], bool], start: float, most: float) -> float:
    """The largest x up to `most` that fits, by fits(x, grid); 0.0 if none from the start down."""
    good = start
    while not fits(good, FINE):
        good /= 2
        if good < _SMALLEST:
            return 0.0
    while good < most and fits(min(2 * good, most), COARSE):
        good = min(2 * good, most)
    good = bisect(lambda x: fits(x, COARSE), good, min(2 * good, most), 5e-4)
    while not fits(good, FINE):
        good *= 1 - 1e-3
    return bisect(lambda x: fits(x, FINE), good, min(good * (1 + 1e-3), most), 2e-4)
