"""What one fit may spend: the list of its releases, made from public numbers before the first.

Composition is exact for events that are fixed in advance. A plan writes them down: kind, name, how
often at most, and the noise where it is known; where it is not, a bound on what such releases may
tell together. A ledger that was given a plan refuses whatever is not on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from privtraj.base.errors import BudgetError
from privtraj.privacy.events import Event

_TOLERANCE = 1e-9  # relative, for the rounding of shares that add up to the bound


@dataclass(frozen=True)
class Planned:
    """Up to `times` releases of one kind: each is the event; or, where only its kind is known in
    advance, they are `shared`: all together may tell no more than the one event."""

    event: Event
    times: int = 1
    shared: bool = False
    told: float = 0.0  # of the shared event's loudness

    def after(self, event: Event, times: int) -> Planned | None:
        """What is left after so many of the event; None if they are not covered."""
        if times > self.times:
            return None
        if not self.shared:
            same = event.ideal() == self.event.ideal()
            return replace(self, times=self.times - times) if same else None
        if event.kind != self.event.kind:
            return None
        told = self.told + times * event.loudness
        covered = told <= self.event.loudness * (1 + _TOLERANCE)
        return replace(self, times=self.times - times, told=told) if covered else None


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
