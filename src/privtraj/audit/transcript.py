"""Everything that left the guard in one fit, beside what two worlds would have added to it.

The attacker of the claim sees every answer and knows everything but one bit: whether this person
is in the data. What everybody else adds is known and is taken off, so that of an answer remains

    rest = noise + without    or    rest = noise + present,

two arrays that the attacker can compute: what the person adds to it in either world.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from privtraj.audit.canaries import People, Worlds
from privtraj.base.arrays import Floats
from privtraj.model.model import TrajectoryModel
from privtraj.privacy.accounting import Tally, tally
from privtraj.privacy.events import ChosenTimes, Event
from privtraj.privacy.guarantee import releases
from privtraj.privacy.questions import CellCounts, LagTable, Question, Release, Table, Tables
from privtraj.privacy.rows import PublicShape, RepeatedRows, cell_of
from privtraj.privacy.sums import VectorSums


@dataclass(frozen=True, eq=False)
class Answer:
    """One answer (K, D). unit: (K, 1) the most that a record moves a row by: 1, or the clip c.

    Of a table that is released with others, what all of them move by together, in its own counts: 1
    over the root of its share.
    """

    event: Event
    unit: Floats
    rest: Floats
    without: Floats
    present: Floats

    @property
    def what(self) -> str:
        """The name of the release."""
        return self.event.what

    @property
    def moved(self) -> Floats:
        """(K, D) what the answer moves by from one world to the other."""
        return self.present - self.without


class Transcript:
    """A watcher that keeps the answers of a fit."""

    def __init__(self, worlds: Worlds) -> None:
        self.worlds = worlds
        self.answers: list[Answer] = []

    def released(self, release: Release, shape: PublicShape, answer: Any) -> None:
        """An answer left the guard: of several tables, one for each."""
        event, question, units = release.event(shape), release.question, [np.ones(1)]
        if isinstance(question, VectorSums):
            units = [np.asarray(question.clip)]
        elif isinstance(question, Tables):
            scale = release.noise.scale
            units = [np.full(1, scale / copies) for copies in question.multipliers(scale)]
        others, without, present = (added_by(one, question, shape) for one in self.worlds)
        if isinstance(question, LagTable):  # the others have one record each, and so no pair
            others = [np.zeros_like(answer, dtype=np.float64)]
        answers = answer if isinstance(answer, list) else [answer]
        for one, unit, *added in zip(answers, units, others, without, present, strict=True):
            own = np.broadcast_to(unit, len(one))[:, None]
            rest = np.asarray(one, dtype=np.float64) - added[0]
            self.answers.append(Answer(event, own, rest, *added[1:]))

    def by_name(self) -> Iterator[tuple[str, list[Answer]]]:
        """The answers of each release."""
        for name, answers in groupby(sorted(self.answers, key=_WHAT), _WHAT):
            yield name, list(answers)


_WHAT = attrgetter("what")


class Run(NamedTuple):
    """What one fit left behind.

    here: whether the person was present.  stated: the entries of its ledger, and how often each.
    """

    transcript: Transcript
    here: bool
    stated: tuple[tuple[Event, int], ...]
    claim: Tally
    model: TrajectoryModel | None = None

    def claim_of(self, what: str) -> Tally:
        """What the ledger says of one release: nothing, if it has no such entry."""
        return tally([one for one in self.stated if one[0].what == what], self.claim.adjacency)

    def entries(self) -> Iterator[tuple[Answer, Event | None]]:
        """The answers, each with its entry of the ledger, in order; None if nobody paid for it."""
        left = {what: self._paid(what) for what in {one.what for one in self.transcript.answers}}
        event, entry = None, None
        for answer in self.transcript.answers:
            if answer.event is not event:  # tables that are released together have one entry
                paid = left[answer.what]
                event, entry = answer.event, paid.pop(0) if paid else None
            yield answer, entry

    def _paid(self, what: str) -> list[Event]:
        events: list[Event] = []
        most = len(self.transcript.answers)
        for event, times in self.stated:
            if event.what != what:
                continue
            if isinstance(event, ChosenTimes):  # one entry for all releases of its kind
                events += [event.release] * min(event.times, most)
            else:
                events += [event] * min(times, most)
        return events


def run_of(model: TrajectoryModel, transcript: Transcript, here: bool) -> Run:
    """The run of a fit, by what its certificate states."""
    certificate = model.certificate
    stated = tuple(releases(certificate.guarantee))
    claim = replace(tally(stated, certificate.adjacency), slack=certificate.slack)
    return Run(transcript, here, stated, claim, model)


def added_by(people: People, question: Question, shape: PublicShape) -> list[Floats]:
    """What people add to the exact answer, block by block (K, D); to pairs, if they are one."""
    if isinstance(question, Tables):
        return [_in_cells(people, table, shape) for table in question.tables]
    if isinstance(question, CellCounts):
        return [_in_cells(people, Table(shape.windows, question.along(shape)), shape)]
    if isinstance(question, LagTable):
        times = np.repeat(people.times, people.copies)
        points = np.repeat(shape.seen(people.points), people.copies, axis=0)
        rows = RepeatedRows(np.zeros(len(times), np.int64), times, points)
        return [question.sum_over(rows).astype(np.float64)]
    if not isinstance(question, VectorSums):
        raise TypeError(f"an audit does not know what people add to {type(question).__name__}")
    added = np.zeros((shape.windows.count, question.width(shape)))
    windows = shape.windows.of(people.times)
    seen = windows >= 0  # those of other times add nothing
    here = windows[seen], people.points[seen], people.copies[seen]
    for window, point, copies in zip(*here, strict=True):
        vector = question.vector(shape, int(window), point)
        added[window] += copies * clip_norm(vector, float(question.clip[window]))
    return [added]


def _in_cells(people: People, table: Table, shape: PublicShape) -> Floats:
    counts = np.zeros((table.windows.count, math.prod(table.sides)))
    windows, cells = table.windows.of(people.times), cell_of(shape.seen(people.points), table.sides)
    seen = windows >= 0
    np.add.at(counts, (windows[seen], cells[seen]), people.copies[seen])
    return table.grouped(counts)


def clip_norm(vector: Floats, clip: float) -> Floats:
    """min(1, c / |v|) v."""
    norm = float(np.linalg.norm(vector))
    return vector * min(1.0, clip / norm) if norm > 0 else vector
