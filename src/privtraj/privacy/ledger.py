"""The budget of one fit and what was spent of it.

A `Ledger` is the one place where privacy is spent: an event that does not fit raises `BudgetError`
and leaves no trace.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Protocol

from privtraj.errors import BudgetError
from privtraj.privacy.accounting import Tally
from privtraj.privacy.calibration import calibrate_gaussian, calibrate_laplace
from privtraj.privacy.events import (
    Adjacency,
    ChosenTimes,
    Event,
    GaussianSum,
    LaplaceCounts,
    check_adjacency,
    check_budget,
)

_WORTH_NAMING = 1e-3  # less privacy loss than this buys nothing: call it spent


class Payer(Protocol):
    """Whoever can pay for a release: a ledger, or an allowance from one."""

    delta: float

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
    """

    def __init__(self, epsilon: float, delta: float, adjacency: Adjacency = "add-remove") -> None:
        check_budget(epsilon, delta)
        self.epsilon = float(epsilon)
        self.delta = float(delta)
        self.adjacency = check_adjacency(adjacency)
        self._events: list[tuple[Event, int]] = []
        self._tally = Tally(self.adjacency)

    @property
    def events(self) -> tuple[tuple[Event, int], ...]:
        """What happened, in order, and how often each."""
        return tuple(self._events)

    @property
    def tally(self) -> Tally:
        """What composition remembers of it."""
        return self._tally

    @property
    def mu(self) -> float | None:
        """The GDP parameter if only full Gaussian sums were released, else None."""
        return self._tally.gdp_mu

    @property
    def slack(self) -> float:
        """Total variation between the noise drawn and the noise stated, over all events."""
        return self._tally.slack

    def covers(self, event: Event, times: int = 1) -> bool:
        """Whether the event would fit beside what was spent."""
        return self._tally.add(event, times).delta(self.epsilon) <= self.delta

    def spend(self, event: Event, times: int = 1) -> None:
        """Record the event, or raise `BudgetError` and record nothing."""
        after = self._tally.add(event, times)
        if after.delta(self.epsilon) > self.delta:
            raise BudgetError(
                f"the budget does not cover {_describe(event, times)}: {self.remaining(event)}"
            )
        self._tally = after
        self._events.append((event, times))

    def reserve(self, event: GaussianSum, times: int) -> Allowance:
        """Pay for `times` equal releases at once; the allowance then hands them out one by one.

        What is reserved counts as spent, used or not. Grids need it: composing sampled steps anew
        at every one of them would take longer than the steps.
        """
        self.spend(event, times)
        return Allowance(event, times, self.delta)

    def choose_times(self, share: float, event: GaussianSum, times: int) -> Allowance:
        """`reserve`, for releases on a random, published share of the time bins."""
        self.spend(ChosenTimes(share, event, times, event.what))
        return Allowance(event, times, self.delta)

    def spent(self) -> float:
        """The smallest epsilon, at the budget's delta, of everything recorded so far."""
        return self._tally.epsilon(self.delta)

    def remaining(self, like: Event | None = None) -> str:
        """What is left, in words: the budget used, and the largest single release that fits.

        like: a release of people who have as many records.
        """
        used = f"epsilon {up(self.spent())} of {self.epsilon:g} is spent at delta {self.delta:g}"
        if self._tally.sampled:  # no closed form to calibrate in
            return used
        budget = (self.epsilon, self.delta, self.adjacency, self._events)
        records, together = getattr(like, "records", 1), getattr(like, "together", False)
        inverse = calibrate_gaussian(*budget, records=records, together=together)
        laplace = calibrate_laplace(*budget, records=records, together=together)
        options = []
        if inverse > _WORTH_NAMING:
            options.append(f"a Gaussian sum of noise multiplier {up(1 / inverse)} or more")
        if laplace > _WORTH_NAMING:
            options.append(f"Laplace counts of epsilon {down(laplace)} or less")
        return f"{used}, which leaves room for {' or '.join(options) or 'nothing more'}"

    def __repr__(self) -> str:
        return (
            f"Ledger(epsilon={self.epsilon:g}, delta={self.delta:g}, "
            f"adjacency={self.adjacency!r}, "
            f"events={sum(times for _, times in self._events)})"
        )


class Allowance:
    """So many releases of one kind, paid for in advance; anything else is refused."""

    def __init__(self, event: GaussianSum, times: int, delta: float) -> None:
        self.delta = delta
        self._event = event
        self._left = times

    def spend(self, event: Event) -> None:
        """Take one of the releases, or raise `BudgetError`."""
        if event != self._event or self._left < 1:
            raise BudgetError(
                f"only {self._left} more of {_describe(self._event)} were paid for in advance, not "
                f"{_describe(event)}"
            )
        self._left -= 1


def _describe(event: Event, times: int = 1) -> str:
    many = f"{times} x " if times > 1 else ""
    return f"{many}{event.what!r} ({_of(event)})"


def _of(event: Event) -> str:
    if isinstance(event, GaussianSum):
        return f"a Gaussian sum of noise multiplier {event.noise_multiplier:.4g}"
    if isinstance(event, LaplaceCounts):
        return f"Laplace counts of epsilon {event.epsilon:.4g}"
    if isinstance(event, ChosenTimes):
        return f"{event.times} releases on a share {event.share:.4g} of the times"
    return f"epsilon {event.epsilon:.4g} and delta {event.delta:.4g}"


def up(value: float) -> str:
    """Four digits, rounded up: what is printed never promises more than was proven."""
    return _rounded(value, ROUND_CEILING)


def down(value: float) -> str:
    """Four digits, rounded down: what is said to be left is there."""
    return _rounded(value, ROUND_FLOOR)


def _rounded(value: float, towards: str) -> str:
    shortest = repr(float(value))  # the decimal a person typed, where one did
    return f"{float(Context(prec=4, rounding=towards).create_decimal(shortest)):.4g}"
