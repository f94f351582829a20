"""The private boundary: the only code that reads people's records after they were validated.

`Guard.ask` is the only door. A release (`questions`: a question with its noise and its name) is
recorded in the ledger before it is computed; then exact integers are summed over people, exact
integer noise is added, and the answer leaves. Nothing else leaves: whatever is computed from
answers is post-processing. `SamplingGuard` is for people who are sampled and times that are chosen,
which the published recipe needs.

Why the stated cost holds
    Each question proves, beside its code, by how much one person can move its integers, for a
    person of one row or of a public number g of them, each in a window of its own or together, and
    for both neighbouring relations. What is added for a person is a function of that person's rows
    and of public or already released numbers alone. The noise is drawn exactly as stated (`noise`),
    independently for every integer of every block and every release, also where nobody is: so each
    answer, given all earlier ones, is the mechanism of its event, with the slack of Gaussian
    integers that is charged per number drawn. Events compose adaptively (`accounting`).

    windows: time may be cut at other edges, which are public or made of released numbers. A row is
    in one window at most, by its time alone, so every proof holds with these windows for bins; but
    records of one person that were in different bins may be in one window, and are then paid for
    as if they were together (`PublicShape.in_windows`).

    projected: points may be seen along other axes, which are public or released (`rows`). A row's
    new point is a function of the row and of these numbers, so every proof holds with new points.

    sampled: every row takes part in a sum if its own fresh 64-bit word, from the source of the
    noise, is below floor(rate 2^64): an exact coin of probability at most rate. The sum is released
    as it is, never divided by the number of rows that took part; a batch without rows is noise
    alone, and is paid for like any other.

    chosen times: a uniform set of bins, drawn once, published, and paid for together with all
    releases that will be made of it; the guard that is handed out asks for no rows of other bins.
    Times that are named without looking at anybody are free: other rows merely take no part.
    Composing sampled steps anew at every one would take longer than the steps. So they are paid for
    at once, and an `Allowance` hands them out one by one; what it holds counts as spent, used or
    not.

    The number of people in the data, in a window or in a batch never enters an answer except
    through these mechanisms. Numbers that are public knowledge are given by the user, and do not
    come from here (`head_count`).

    Nothing is refused after it was paid for. Whether a question can be answered is decided by
    public and released numbers, before it is paid for, and every table that passed the checks of
    `data.records` has an answer to it: a refusal that depended on the rows would be an answer too.

    Several processes (`processes`) hold rows of different people. They add up exact integers; the
    first process alone adds noise, and the others are told its answer. Every process keeps the
    ledger.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from privtraj.base import processes
from privtraj.base.arrays import Ints
from privtraj.base.errors import BudgetError, InputError
from privtraj.base.space import Slabs
from privtraj.columns.kinds import Axes
from privtraj.privacy import noise
from privtraj.privacy.events import ChosenTimes, Event, GaussianSum, Person
from privtraj.privacy.ledger import Ledger, Payer
from privtraj.privacy.questions import Release, View, Watcher, gaussian_event
from privtraj.privacy.rows import ProjectedRows, Projection, PublicShape, Rows


class Guard:
    """Holds the rows, answers with noise, and pays for every answer."""

    def __init__(
        self,
        rows: Rows,
        shape: PublicShape,
        ledger: Ledger,
        source: noise.Source,
        *,
        watcher: Watcher | None = None,
    ) -> None:
        self.ledger = ledger
        self.shape = shape
        self._rows = rows
        self._view = View(rows, shape)
        self._payer: Payer = ledger
        self._source = source
        self._watcher = watcher

    def ask(self, release: Release) -> Any:
        """The noisy answer to a question, which is paid for first."""
        question, scale = release.question, release.noise.scale
        question.check(self.shape, scale)
        event = release.event(self.shape)
        self._payer.spend(event)
        view = self._view
        records = None if self.shape.rate == 1 else question.records_of(view)
        if records is not None:
            # a fresh word for every row, so that it takes part with probability `rate` at most
            coins = self._source.words(records) < np.uint64(math.floor(self.shape.rate * 2.0**64))
            view = view.with_coins(coins)
        blocks = question.total(view, scale)
        if processes.is_first():
            blocks = [block + release.noise.draw(self._source, block.shape) for block in blocks]
        answer = question.answer(blocks, scale)
        if isinstance(answer, list):
            answer = [processes.broadcast_first(one) for one in answer]
        else:
            answer = processes.broadcast_first(answer)
        if self._watcher is not None:
            self._watcher.released(release, self.shape, answer)
        return answer

    def in_slabs(self, windows: Slabs) -> Self:
        """The same rows in these windows, whose edges and numbers are public or released."""
        return self._showing(self._rows, self.shape.in_windows(windows))

    def projected(self, projection: Projection) -> Self:
        """The same rows seen along the axes of a projection, which are public or released."""
        return self._showing(
            ProjectedRows(self._rows, projection), self.shape.projected(projection)
        )

    def _showing(self, rows: Rows, shape: PublicShape) -> Self:
        part = copy(self)
        part.shape, part._rows, part._view = shape, rows, View(rows, shape)
        return part

    @property
    def axes(self) -> Axes:
        """The d axes of points."""
        return self.shape.axes

    @property
    def person(self) -> Person:
        """What a person may contribute."""
        return self.shape.person

    @property
    def n_features(self) -> int:
        """d."""
        return self.shape.n_features

    @property
    def n_times(self) -> int:
        """K, how many windows of time an answer has: the declared bins, unless others were cut."""
        return self.shape.windows.count

    def sum_event(self, width: int, noise_multiplier: float, what: str) -> GaussianSum:
        """What clipped sums of D = width will cost: to be reserved, or planned."""
        draws, shape = self.n_times * width, self.shape
        return gaussian_event(noise_multiplier, what, draws, shape.person, shape.rate)


class SamplingGuard(Guard):
    """A guard whose sums are over everybody, or over records that take part by chance."""

    def at_rate(self, rate: float) -> Self:
        """The same, every record taking part in a sum with this public probability."""
        if rate != 1 and processes.several():
            raise InputError("people can be sampled by one process only: use rate=1")
        return self._showing(self._rows, replace(self.shape, rate=rate))

    def at_times(self, bins: Ints) -> Self:
        """The same door to the rows of these bins alone; which ones is public, so it is free."""
        wanted = np.unique(bins)
        if len(wanted) == 0 or not (wanted[0] >= 0 and wanted[-1] < self.n_times):
            raise InputError(f"times are numbered from 0 to {self.n_times - 1}")
        row = np.append(np.full(self.n_times, -1), -1)  # the last for times that are out already
        row[wanted] = np.arange(len(wanted))
        windows = self.shape.windows
        kept = Slabs(windows.edges, row[windows.slab_of_piece])
        return self._showing(self._rows, replace(self.shape, windows=kept))

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
        event = gaussian_event(noise_multiplier, what, n * width, self.person, self.shape.rate)
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
