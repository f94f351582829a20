"""Everything that left the guard in one fit, beside what two worlds would have added to it.

The attacker of the claim sees every answer and knows everything but one bit: whether this person
is in the data. What everybody else adds is known and is taken off, so that of an answer remains

    rest = noise + without    or    rest = noise + present,

two arrays that the attacker can compute: what the person adds to it in either world.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privtraj.audit.canaries import People, Worlds
from privtraj.base.arrays import Floats
from privtraj.model.model import TrajectoryModel
from privtraj.privacy.accounting import Tally, tally
from privtraj.privacy.events import Event
from privtraj.privacy.pairs import Thirds, sum_over_people
from privtraj.privacy.rows import RepeatedRows
from privtraj.privacy.sampled_events import ChosenTimes
from privtraj.privacy.watching import CellCounts, ClippedSums, Question, Table


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

    def released(self, event: Event, question: Question, answer: NDArray[Any]) -> None:
        """An answer left the guard."""
        if isinstance(question, Thirds):  # the others have one record each, and so no pair
            others = np.zeros(answer.shape)
            without, present = (added_by_one(person, question) for person in self.worlds[1:])
        else:
            others, without, present = (
                added_by(people, question, answer.shape[1]) for people in self.worlds
            )
        unit = np.ones(len(answer))
        if isinstance(question, ClippedSums):
            unit = question.clip
        elif isinstance(question, Table):
            unit = unit / question.weight
        rest = np.asarray(answer, dtype=np.float64) - others
        self.answers.append(Answer(event, np.asarray(unit)[:, None], rest, without, present))

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
    stated = [(Event.from_dict(entry), int(entry["times"])) for entry in certificate.ledger]
    return Run(transcript, here, tuple(stated), certificate.tally, model)


def added_by(people: People, question: CellCounts | ClippedSums, width: int) -> Floats:
    """What people add to the exact answer (K, D)."""
    table = question if isinstance(question, Table) else None
    added = np.zeros((question.slabs.count, math.prod(table.sides) if table else width))
    rows = question.slabs.of(people.times)
    seen = rows >= 0  # those of other times add nothing
    if isinstance(question, CellCounts):
        cells = question.cell_of(people.points)
        np.add.at(added, (rows[seen], cells[seen]), people.copies[seen])
        return added if table is None else table.grouped(added)
    here = rows[seen], people.points[seen], people.copies[seen]
    for row, point, copies in zip(*here, strict=True):
        vector = question.vector(int(row), point)
        added[row] += copies * clip_norm(vector, float(question.clip[row]))
    return added


def added_by_one(person: People, question: Thirds) -> Floats:
    """What all of these records add, if they are one person's, (L, 4 d)."""
    times = np.repeat(person.times, person.copies)
    points = np.repeat(person.points, person.copies, axis=0)
    rows = RepeatedRows(np.zeros(len(times), np.int64), times, points)
    return sum_over_people(rows, question).astype(np.float64)


def clip_norm(vector: Floats, clip: float) -> Floats:
    """min(1, c / |v|) v."""
    norm = float(np.linalg.norm(vector))
    return vector * min(1.0, clip / norm) if norm > 0 else vector
