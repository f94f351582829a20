"""People who are sampled, and times that are chosen at random: what the published recipe needs.

Sampled: a row takes part in a sum by a coin of its own (`guard`, `events`).

Chosen times: a uniform set of bins, drawn once, published, and paid for together with all releases
that will be made of it; the guard that is handed out asks for no rows of other bins. Times that are
named without looking at anybody are free: other rows merely take no part.

Composing sampled steps anew at every one would take longer than the steps. So they are paid for at
once, and an `Allowance` hands them out one by one; what it holds counts as spent, used or not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np

from privtraj.base import processes
from privtraj.base.arrays import Ints
from privtraj.base.errors import BudgetError, InputError
from privtraj.base.space import Slabs
from privtraj.privacy import noise
from privtraj.privacy.events import ChosenTimes, Event, GaussianSum
from privtraj.privacy.guard import Guard, gaussian_event
from privtraj.privacy.ledger import Ledger, Payer


class SamplingGuard(Guard):
    """A guard whose sums are over everybody, or over records that take part by chance."""

    def at_rate(self, rate: float) -> Self:
        """The same, every record taking part in a sum with this public probability."""
        if rate != 1 and processes.several():
            raise InputError("people can be sampled by one process only: use rate=1")
        return self._showing(replace(self.shape, rate=rate))

    def at_times(self, bins: Ints) -> Self:
        """The same door to the rows of these bins alone; which ones is public, so it is free."""
        wanted = np.unique(bins)
        if len(wanted) == 0 or not (wanted[0] >= 0 and wanted[-1] < self.n_times):
            raise InputError(f"times are numbered from 0 to {self.n_times - 1}")
        row = np.append(np.full(self.n_times, -1), -1)  # the last for times that are out already
        row[wanted] = np.arange(len(wanted))
        windows = self.shape.windows
        kept = Slabs(windows.edges, row[windows.slab_of_piece])
        return self._showing(replace(self.shape, windows=kept))

    def reserve(self, event: GaussianSum, times: int) -> Self:
        """The same rows, for exactly `times` of these sums, which are paid for now."""
        return self._paid(reserve(self.ledger, event, times), event.rate)

    def choose_times(
        self, n: int, width: int, noise_multiplier: float, what: str, times: int
    ) -> tuple[Ints, Self]:
        """n random bins in order, public from now on, and a guard over their rows alone.

        It may release `times` sums of D = width, which are paid for now as one mixture.
        """
        if processes.several():
            raise InputError("times can be drawn by one process only")
        event = gaussian_event(
            noise_multiplier, what, n * width, self.shape.person, self.shape.rate
        )
        allowance = reserve(self.ledger, event, times, share=n / self.n_times)
        chosen = np.sort(_without_ties(self._source, self.n_times)[:n])
        return chosen, self.at_times(chosen)._paid(allowance, event.rate)

    def _paid(self, payer: Payer, rate: float) -> Self:
        """The same rows for sums at this rate, which somebody else pays for."""
        part = self.at_rate(rate)
        part._payer = payer
        return part


class Allowance:
    """So many releases of one kind, paid for in advance; anything else is refused."""

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


def reserve(
    ledger: Ledger, event: GaussianSum, times: int, share: float | None = None
) -> Allowance:
    """Pay for `times` equal releases at once; the allowance then hands them out one by one.

    share: of the time bins, random and published, that they are made on; None for all bins.
    """
    if share is None:
        ledger.spend(event, times)
    else:
        ledger.spend(ChosenTimes(share, event, times, event.what))
    return Allowance(event, times)


def _without_ties(source: noise.Source, n: int) -> Ints:
    """A uniform permutation of n: the order of n different words, drawn again if two are equal."""
    words = source.words(n)
    while len(np.unique(words)) < n:
        words = source.words(n)
    return np.argsort(words)
