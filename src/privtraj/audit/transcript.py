"""Everything that left the guard in one fit, beside what two worlds would have added to it.

The attacker of the claim sees every answer and knows everything but one bit: whether this person
is in the data. What everybody else adds is known and is taken off, so that of an answer remains

    rest = noise + without    or    rest = noise + present,

two arrays that the attacker can compute: what the person adds to it in either world. All three are
in units of the most that a record moves a row by: 1 for counts, the clip c for sums, and for a
table that is released with others 1 over the root of its share.

Is the noise of every release what its entry in the ledger states? Whoever audits knows the table,
so the noise of an answer is known: the answer, less its exact value. Under the stated law it is
made standard normal, number by number:

    sums     z = noise / z_j
    counts   z = Phi^-1( P(X < noise) + V P(X = noise) ),   V uniform, so z is exactly N(0, 1)

and independent numbers are then tested exactly, by two laws that need no large numbers:

    squares   sum of z^2 over n numbers                      chi^2 with n degrees of freedom
              sum of (z_1 + .. + z_m)^2 / m over n groups    the same; noise that is shared makes it
                                                             too large, that cancels out too small
    signs     how often z_i and z_j agree, over n pairs      Binomial(n, 1/2)

The pairs of signs form paths (numbers in a random order, each with the next), along which the
agreements of fair, independent signs are independent. Tests are two-sided, and each is given an
equal part of the chance of a false alarm. A release that has no entry fails outright. Sums over
people who are sampled are not tested: who takes part is drawn as well.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, groupby, pairwise, repeat
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from scipy.special import bdtr, bdtrc, chdtr, chdtrc, chdtri, ndtri, ndtri_exp

from privtraj.audit.canaries import People, Worlds
from privtraj.base.arrays import Floats
from privtraj.model.model import TrajectoryModel
from privtraj.privacy.accounting import Tally, releases, tally
from privtraj.privacy.events import ChosenTimes, Event, GaussianSum, LaplaceCounts
from privtraj.privacy.guard import (
    CellCounts,
    PublicShape,
    Question,
    Release,
    RepeatedRows,
    Table,
    Tables,
    cell_of,
    parts_of,
)
from privtraj.privacy.pairs import LagTable
from privtraj.privacy.sums import VectorSums


@dataclass(frozen=True, eq=False)
class Answer:
    """One answer (K, D)."""

    event: Event
    rest: Floats
    without: Floats
    present: Floats

    @property
    def what(self) -> str:
        """The name of the release."""
        return self.event.name

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
        event, question = release.event(shape), release.question
        units: list[Any] = [1.0]
        if isinstance(question, VectorSums):
            units = [np.asarray(question.clip)[:, None]]
        elif isinstance(question, Tables):
            scale = release.noise.scale
            units = [scale / copies for copies in question.multipliers(scale)]
        others, without, present = (added_by(one, question, shape) for one in self.worlds)
        if isinstance(question, CellCounts) and shape.person.weight:  # records of one count as one
            for person, (block,) in zip([*self.worlds][1:], (without, present), strict=True):
                block /= max(1, int(person.copies.sum()))
        if isinstance(question, LagTable):  # the others have one record each, and so no pair
            others = [np.zeros(answer.shape)]
        answers = answer if isinstance(answer, list) else [answer]
        for one, unit, other, *added in zip(answers, units, others, without, present, strict=True):
            own = (numbers / unit for numbers in (one - other, *added))
            self.answers.append(Answer(event, *own))

    def by_name(self) -> Iterator[tuple[str, list[Answer]]]:
        """The answers of each release."""
        what = attrgetter("what")
        for name, answers in groupby(sorted(self.answers, key=what), what):
            yield name, list(answers)


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
        return tally([one for one in self.stated if one[0].name == what], self.claim.adjacency)

    def entries(self) -> Iterator[tuple[Answer, Event | None]]:
        """The answers, each with its entry of the ledger, in order; None if nobody paid for it."""
        left: dict[str, Iterator[Event]] = {}
        for stated, times in self.stated:
            paid = repeat(stated, times)
            if isinstance(stated, ChosenTimes):  # one entry for all releases of its kind
                paid = repeat(stated.release, stated.times)
            left[stated.name] = chain(left.get(stated.name, ()), paid)
        event, entry = None, None
        for answer in self.transcript.answers:
            if answer.event is not event:  # tables that are released together have one entry
                event, entry = answer.event, next(left.get(answer.what, iter(())), None)
            yield answer, entry


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
        norm, clip = float(np.linalg.norm(vector)), float(question.clip[window])
        added[window] += copies * vector * (clip / norm if norm > clip else 1.0)
    return [added]


def _in_cells(people: People, table: Table, shape: PublicShape) -> Floats:
    counts = np.zeros((table.windows.count, math.prod(table.sides)))
    windows, cells = table.windows.of(people.times), cell_of(shape.seen(people.points), table.sides)
    seen = windows >= 0
    np.add.at(counts, (windows[seen], cells[seen]), people.copies[seen])
    return table.grouped(counts)


POWER = 0.9  # with which an audit sees what it says it could see
SCALE = "scale of the noise"


@dataclass(frozen=True)
class NoiseTest:
    """One test. p: the chance of anything as odd, were the noise as stated; odd if below level.

    could_see: what would have been found in nine of ten audits: for squares, noise of so many times
    the stated standard deviation; for signs, a correlation.
    """

    release: str
    of: str
    p: float
    level: float
    could_see: float

    @property
    def failed(self) -> bool:
        """Whether the noise is not as stated."""
        return self.p < self.level

    def __str__(self) -> str:
        return f"{self.of} of '{self.release}' (p = {self.p:.1g})"


@dataclass
class Squares:
    """A sum of squares that has a chi^2 law with so many degrees of freedom."""

    total: float = 0.0
    count: int = 0

    def add(self, z: Floats) -> None:
        self.total += float((z * z).sum())
        self.count += z.size

    def p(self) -> float:
        return _two_sided(chdtr(self.count, self.total), chdtrc(self.count, self.total))

    def could_see(self, level: float) -> float:
        """Share s of the standard deviation: s^2 chi^2 is below the lower end in most audits."""
        least, usual = chdtri(self.count, 1 - level / 2), chdtri(self.count, 1 - POWER)
        return math.sqrt(least / usual)


@dataclass
class Signs:
    """How many pairs have one sign; as many as a fair coin would."""

    agreeing: int = 0
    count: int = 0

    def add(self, first: Floats, second: Floats) -> None:
        agree = (first > 0) == (second > 0)
        self.agreeing += int(np.count_nonzero(agree))
        self.count += agree.size

    def p(self) -> float:
        above = bdtrc(self.agreeing - 1, self.count, 0.5) if self.agreeing else 1.0
        return _two_sided(bdtr(self.agreeing, self.count, 0.5), above)

    def could_see(self, level: float) -> float:
        """A correlation r of normal numbers, whose signs agree with chance 1/2 + arcsin(r) / pi."""
        beyond = (ndtri(POWER) - ndtri(level / 2)) / (2 * math.sqrt(self.count))
        return math.sin(math.pi * min(beyond, 0.5))


S = TypeVar("S", Squares, Signs)


class NoiseTests:
    """The noise of all runs, as far as the tests have to remember it."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._samples: dict[tuple[str, str], Squares | Signs] = {}
        self._last: dict[str, Floats] = {}
        self.unpaid: set[str] = set()
        self.untested: set[str] = set()

    def add(self, run: Run) -> None:
        """The noise of one run: of every answer, and of numbers at the same place of different
        releases, of steps of one, and of runs."""
        drawn: dict[str, list[Floats]] = defaultdict(list)
        for answer, entry in run.entries():
            what = answer.what
            if entry is None:
                self.unpaid.add(what)
                continue
            noise = answer.rest - (answer.present if run.here else answer.without)
            z = standardised(noise, entry, self._rng)
            if z is None:
                self.untested.add(what)
                continue
            drawn[what].append(z)
            self._sample(Squares, what, SCALE).add(z)
            for along, each in ((z.T, "numbers"), (z, "times")):
                count = len(along)
                if count > 1:
                    sums = along.sum(axis=0) / math.sqrt(count)
                    self._sample(Squares, what, f"sums over {each}").add(sums)
                    mixed = along[self._rng.permutation(count)]
                    self._sample(Signs, what, f"independence of {each}").add(mixed[1:], mixed[:-1])
        for what, answers in drawn.items():
            for first, second in pairwise(answers):
                self._pair(what, "independence of steps", first, second)
            if what in self._last:
                self._pair(what, "independence of runs", self._last[what], answers[0])
            self._last[what] = answers[-1]
        names = self._rng.permutation(sorted(drawn)).tolist()
        for one, other in pairwise(names):
            self._pair("all", "independence of releases", drawn[one][0], drawn[other][0])

    def _pair(self, what: str, of: str, first: Floats, second: Floats) -> None:
        size = min(first.size, second.size)
        self._sample(Signs, what, of).add(first.ravel()[:size], second.ravel()[:size])

    def _sample(self, kind: Callable[[], S], what: str, of: str) -> S:
        return cast("S", self._samples.setdefault((what, of), kind()))

    def results(self, false_alarms: float) -> tuple[NoiseTest, ...]:
        """All tests, the oddest first; if the noise is as stated, any fails with at most this
        chance."""
        level = false_alarms / max(1, len(self._samples))
        tests = [
            NoiseTest(what, of, sample.p(), level, sample.could_see(level))
            for (what, of), sample in self._samples.items()
        ]
        unpaid = [NoiseTest(what, "entry in the ledger", 0.0, level, 0.0) for what in self.unpaid]
        return tuple(sorted([*unpaid, *tests], key=lambda test: test.p))


def standardised(noise: Floats, stated: Event, rng: np.random.Generator) -> Floats | None:
    """The noise (K, D) of an answer made standard normal under the stated law, None if it has none.

    For counts, with a = e^-epsilon and x <= 0,
        P(X < x) + V P(X = x) = a^|x| (a + V (1 - a)) / (1 + a),
    and for x > 0 the mirror image: no tail is too far out for a float.
    """
    if isinstance(stated, LaplaceCounts):
        parts = 1 if np.array_equal(noise, np.rint(noise)) else parts_of(stated.epsilon)
        epsilon, noise = stated.epsilon / parts, noise * parts  # of whole numbers
        a = math.exp(-epsilon)
        log_below = np.log(a + rng.random(noise.shape) * (1 - a)) - math.log1p(a)
        z: Floats = ndtri_exp(log_below - epsilon * np.abs(noise))
        return np.where(noise > 0, -z, z)
    if isinstance(stated, GaussianSum) and stated.rate == 1:
        return noise / stated.noise_multiplier
    return None


def _two_sided(below: float, above: float) -> float:
    return float(min(1.0, 2 * min(below, above)))
