"""The private boundary: the only code that reads people's records after they were validated.

`Guard.ask` is the only door. A release (`questions`: a question with its noise and its name) is
recorded in the ledger before it is computed; then exact integers are summed over people, exact
integer noise is added, and the answer leaves. Nothing else leaves: whatever is computed from
answers is post-processing. (`sampling` has a guard for people who are sampled and times that are
chosen; this one asks everybody.)

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
from typing import Any, Self

import numpy as np

from privtraj.base import processes
from privtraj.base.space import Slabs
from privtraj.columns.axes import Axes
from privtraj.privacy import noise
from privtraj.privacy.events import GaussianSum, Person
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
