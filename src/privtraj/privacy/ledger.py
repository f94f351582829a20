"""The budget of one fit and what was spent of it.

A `Ledger` is the one place where privacy is spent: an event that does not fit, or is not on the
plan that the ledger was given, raises `BudgetError` and leaves no trace.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Protocol

from privtraj.base.errors import BudgetError
from privtraj.privacy.accounting import Tally
from privtraj.privacy.budget_plan import BudgetPlan
from privtraj.privacy.calibration import ONE_RECORD, calibrate_gaussian, calibrate_laplace
from privtraj.privacy.events import Adjacency, Event, check_adjacency, check_budget
from privtraj.privacy.guarantee import Cost, Guarantee, Parallel, Sequential, cost

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
    it together is then Parallel (`guarantee`), and has to keep to the budget together.
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
        self._events: list[tuple[Event, int]] = []
        self._tally = Tally(self.adjacency)
        self._plan = plan

    @property
    def events(self) -> tuple[tuple[Event, int], ...]:
        """What happened, in order, and how often each."""
        return tuple(self._events)

    @property
    def tally(self) -> Tally:
        """What composition remembers of its own events: their cost, mu, and slack."""
        return self._tally

    @property
    def guarantee(self) -> Guarantee:
        """Its own events, and beside them what is about other people."""
        own = Sequential.of(self._events)
        return own if self.others is None else Parallel((self.others, own))

    @property
    def cost(self) -> Cost:
        """What everything costs that the certificate will tell of."""
        return self._cost(self._tally, self._events)

    def _cost(self, own: Tally, events: list[tuple[Event, int]]) -> Cost:
        if self.others is None:
            return Cost((own,))
        return cost(Parallel((self.others, Sequential.of(events))), self.adjacency)

    def covers(self, event: Event, times: int = 1) -> bool:
        """Whether the event would fit beside what was spent."""
        after = self._cost(self._tally.add(event, times), [*self._events, (event, times)])
        return after.delta(self.epsilon) <= self.delta

    def spend(self, event: Event, times: int = 1) -> None:
        """Record the event, or raise `BudgetError` and record nothing."""
        after = self._tally.add(event, times)
        plan = self._plan and self._plan.after(event, times)
        if not self.covers(event, times):
            raise BudgetError(
                f"the budget does not cover {event.describe(times)}: {self.remaining(event)}"
            )
        self._tally, self._plan = after, plan
        self._events.append((event, times))

    def spent(self) -> float:
        """The smallest epsilon, at the budget's delta, of everything recorded so far."""
        return self.cost.epsilon(self.delta)

    def remaining(self, like: Event | None = None) -> str:
        """What is left, in words: the budget used, and the largest single release that fits, of
        people who have as many records as those of `like`."""
        used = f"epsilon {up(self.spent())} of {self.epsilon:g} is spent at delta {self.delta:g}"
        if self._tally.sampled:  # no closed form to calibrate in
            return used
        budget = (self.epsilon, self.delta, self.adjacency, self._events)
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
        events = sum(times for _, times in self._events)
        budget = f"epsilon={self.epsilon:g}, delta={self.delta:g}, adjacency={self.adjacency!r}"
        return f"Ledger({budget}, events={events})"


def up(value: float) -> str:
    """Four digits, rounded up: what is printed never promises more than was proven."""
    return _rounded(value, ROUND_CEILING)


def down(value: float) -> str:
    """Four digits, rounded down: what is said to be left is there."""
    return _rounded(value, ROUND_FLOOR)


def _rounded(value: float, towards: str) -> str:
    shortest = repr(float(value))  # the decimal a person typed, where one did
    return f"{float(Context(prec=4, rounding=towards).create_decimal(shortest)):.4g}"
