"""The private boundary: the only code that reads people's records after they were validated.

`Guard.ask` is the only door. What goes through it is a `Release`: a question with its noise and its
name. It is recorded in the ledger before it is computed; then exact integers are summed over
people, exact integer noise is added, and the answer leaves. Nothing else leaves: whatever is
computed from answers is post-processing.

    CellCounts    how many records are in each cell        + discrete Laplace noise
    Tables        the same in cells of several kinds       + discrete Gaussian noise
    ClippedSums   sum over records of clip_c( v(record) )  + discrete Gaussian noise  (`sums`)
    KernelSums    the same for the vectors of a step of the dynamics, summed faster   (`sums`)
    LagTable      how people's pairs of records agree      + discrete Laplace noise

A question is a linear statistic: integers that add up over people (`total`). Its event (`events`)
says what it costs and how far one person moves these integers, all of them together: at most
scale * sensitivity(adjacency), in the L1 norm where the noise is Laplace and in the Euclidean norm
where it is Gaussian. The scale is that of the noise: 1 for Laplace, where people are counted; S / z
for Gaussian noise of multiplier z, which has standard deviation S on every integer (`noise`). Each
question proves it beside its code, for a person of one row or of a public number g of them, each in
a window of its own or together, and for both neighbouring relations.

Why the stated cost holds
    A row is one record, a time and one point of the unit cube. What is added for a row, or for all
    rows of one person, is a function of these and of public or already released numbers alone. The
    noise is drawn exactly as stated (`noise`), independently for every integer of every block and
    every release, also where nobody is: so each answer, given all earlier ones, is the mechanism of
    its event, with the slack of Gaussian integers that is charged per number drawn. Events compose
    adaptively (`accounting`).

    windows: time may be cut at other edges, which are public or made of released numbers. A row is
    in one window at most, by its time alone, so every proof holds with these windows for bins; but
    records of one person that were in different bins may be in one window, and are then paid for
    as if they were together (`PublicShape.in_windows`).

    projected: points may be seen along other axes, which are public or released (`rows`). A row's
    new point is a function of the row and of these numbers, so every proof holds with new points.

    sampled: every row takes part in a sum if its own fresh 64-bit word, from the source of the
    noise, is below floor(rate 2^64): an exact coin of probability at most rate. The sum is released
    as it is, never divided by the number of rows that took part; a batch without rows is noise
    alone, and is paid for like any other (`sampling`).

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
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from privtraj.base import processes
from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import BudgetError, InputError
from privtraj.base.space import Slabs
from privtraj.privacy import noise
from privtraj.privacy.events import Event, GaussianSum, LaplaceCounts, Person
from privtraj.privacy.ledger import Ledger, Payer
from privtraj.privacy.rows import (
    ProjectedRows,
    Projection,
    PublicShape,
    RepeatedRows,
    Rows,
    check_windows,
)

MAX_CELLS = 2**26  # noisy counts per release, over all windows
KINDS = 4  # of a pair: in the same outer third, in neighbours, in opposites, both in the middle
PEOPLE_AT_ONCE = 1 << 15  # whose pairs are in memory


@dataclass(frozen=True)
class Laplace:
    """P(x) proportional to exp(-epsilon |x|), independent on every integer."""

    epsilon: float
    norm: ClassVar[int] = 1
    scale: ClassVar[float] = 1.0

    def draw(self, source: noise.Source, shape: tuple[int, ...]) -> Ints:
        """Noise for integers of this shape."""
        return noise.laplace_integers(source, shape, self.epsilon)


@dataclass(frozen=True)
class Gaussian:
    """Standard deviation S on every integer; a record moves them by S / z = `scale` at most."""

    multiplier: float  # z
    norm: ClassVar[int] = 2

    @property
    def scale(self) -> float:
        """S / z."""
        return noise.GAUSSIAN_STD / self.multiplier

    def draw(self, source: noise.Source, shape: tuple[int, ...]) -> Ints:
        """Noise for integers of this shape."""
        return noise.gaussian_integers(source, shape)


def gaussian_event(
    noise_multiplier: float, what: str, draws: int, person: Person, rate: float = 1.0
) -> GaussianSum:
    """A Gaussian release of so many numbers, each of which adds to the slack of integer noise."""
    slack = draws * noise.GAUSSIAN_TV_PER_DRAW
    return GaussianSum(noise_multiplier, what, slack, *person, rate)


@dataclass
class View:
    """Rows as a guard shows them to a question, and what is public of them."""

    rows: Rows
    shape: PublicShape
    source: noise.Source = field(default_factory=noise.SecureSource)  # of coins
    chunks: Any = None  # kept by `sums`, which asks for the same rows at every step

    def coins(self, records: int) -> NDArray[np.bool_] | None:
        """Which of so many rows take part, each with probability `rate` at most, by a fresh word of
        its own; None for all."""
        if self.shape.rate == 1:
            return None
        return self.source.words(records) < np.uint64(math.floor(self.shape.rate * 2.0**64))


class Question(ABC):
    """A linear statistic of people, in integers."""

    noise: ClassVar[type[Laplace | Gaussian]]
    registered: ClassVar[list[type[Question]]] = []

    def __init_subclass__(cls, *, abstract: bool = False) -> None:
        if not abstract:
            Question.registered.append(cls)

    @abstractmethod
    def check(self, shape: PublicShape, scale: float) -> None:
        """Refuse, by public and released numbers alone, what has no answer."""

    @abstractmethod
    def total(self, view: View, scale: float) -> list[NDArray[Any]]:
        """Exact integers over everybody in blocks (K, D); of any size, so they may be Python's."""

    @abstractmethod
    def event(self, noise: Any, what: str, shape: PublicShape) -> Event:
        """What the answer with this noise costs, and by how much a person moves the integers."""

    def answer(self, noisy: list[NDArray[Any]], scale: float) -> Any:
        """The answer, in the units of who asks, from noisy integers: one block as they are."""
        (block,) = noisy
        return block


@dataclass(frozen=True, eq=False)
class Release:
    """A question with its noise and its name."""

    question: Question
    noise: Laplace | Gaussian
    what: str

    def __post_init__(self) -> None:
        if not isinstance(self.noise, self.question.noise):
            raise InputError(f"{self.what!r} needs {self.question.noise.__name__} noise")

    def event(self, shape: PublicShape) -> Event:
        """Its entry in ledger, plan and certificate."""
        return self.question.event(self.noise, self.what, shape)


class Watcher(Protocol):
    """Told of every answer that leaves a guard, after its noise, and of nothing else.

    An audit is one (`audit.transcript`). It sees what whoever asked sees, never a row: the release,
    what is public of the rows, and the noisy answer.
    """

    def released(self, release: Release, shape: PublicShape, answer: Any) -> None:
        """An answer was given, and paid for as the release's event."""


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
        self._view = View(rows, shape, source)
        self._payer: Payer = ledger
        self._source = source
        self._watcher = watcher

    def ask(self, release: Release) -> Any:
        """The noisy answer to a question, which is paid for first."""
        question, scale = release.question, release.noise.scale
        question.check(self.shape, scale)
        event = release.event(self.shape)
        self._payer.spend(event)
        blocks = question.total(self._view, scale)
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
        return self._showing(self.shape.in_windows(windows))

    def projected(self, projection: Projection) -> Self:
        """The same rows seen along the axes of a projection, which are public or released."""
        part = self._showing(self.shape.projected(projection))
        part._rows = part._view.rows = ProjectedRows(self._rows, projection)
        return part

    def _showing(self, shape: PublicShape) -> Self:
        """The same rows, of which other things are public."""
        part = copy(self)
        part.shape, part._view = shape, View(self._rows, shape, self._source)
        return part

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


# Counts ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CellCounts(Question):
    """How many records are in each cell of each window? (K, cells)

    sides: cells along every axis, or of each (d,); one cell per side counts the windows.

    A row is in exactly one cell of at most one window, so a person of g records who is added or
    removed moves the counts by g in all, and a person replaced by 2 g. Counts are integers and so
    is the noise, which is drawn exactly as stated: no floating point is involved, and nothing but
    the law of the source's words is taken on trust, with delta = 0 too. Records in different
    windows are in different cells, which costs less than g in one cell (`events.LaplaceCounts`).
    """

    sides: int | tuple[int, ...]
    noise = Laplace

    def along(self, shape: PublicShape) -> tuple[int, ...]:
        """(d,) cells along each axis."""
        every = self.sides
        return (every,) * shape.n_features if isinstance(every, int) else tuple(every)

    def check(self, shape: PublicShape, scale: float) -> None:
        _check_sides(self.along(shape), shape.windows.count, shape)

    def total(self, view: View, scale: float) -> list[NDArray[Any]]:
        counts = view.rows.cell_counts(view.shape.windows, self.along(view.shape))
        return [processes.total(counts)]

    def event(self, noise: Laplace, what: str, shape: PublicShape) -> LaplaceCounts:
        return LaplaceCounts(noise.epsilon, what, 0.0, *shape.person)


def _check_sides(sides: Sequence[int], windows: int, shape: PublicShape) -> None:
    if len(sides) != shape.n_features or min(sides) < 1:
        raise InputError(f"cells along {shape.n_features} axes need a number for each")
    if windows * math.prod(sides) > MAX_CELLS:
        raise InputError(
            f"{math.prod(sides)} cells in {shape.n_features} dimensions are too many to "
            "count: use fewer cells"
        )


@dataclass(frozen=True, eq=False)
class Table:
    """One of several tables of counts. windows: K of time.  sides: (d,) cells along each axis.

    weight: its share of the noise budget, in proportion.  groups: for each axis the group (side,)
    of each of its cells, 0, 1, ...; None leaves cells as they are.
    """

    windows: Slabs
    sides: tuple[int, ...]
    weight: float = 1.0
    groups: tuple[Ints | None, ...] | None = None

    def check(self) -> None:
        """Refuse windows that lack a piece of time, and groups that leave out a cell."""
        check_windows(self.windows)
        for side, of in zip(self.sides, self.groups or (None,) * len(self.sides), strict=True):
            if of is not None and (of.shape != (side,) or of.min() < 0):
                raise InputError(f"groups of {side} cells need one number, from 0, for each")

    @property
    def cells(self) -> int:
        """Of one window."""
        if self.groups is None:
            return math.prod(self.sides)
        kept = zip(self.sides, self.groups, strict=True)
        return math.prod(side if of is None else int(of.max()) + 1 for side, of in kept)

    def grouped(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Counts (K, cells) of groups, from those (K, product of the sides) of cells."""
        if self.groups is None:
            return counts
        table = counts.reshape(len(counts), *self.sides)
        for axis, of in enumerate(self.groups, start=1):
            if of is not None:
                shape = (*table.shape[:axis], int(of.max()) + 1, *table.shape[axis + 1 :])
                fewer = np.zeros(shape, table.dtype)
                np.add.at(np.moveaxis(fewer, axis, 0), of, np.moveaxis(table, axis, 0))
                table = fewer
        return table.reshape(len(counts), -1)


@dataclass(frozen=True, eq=False)
class Tables(Question):
    """How many records are in each cell of these tables? (K_q, cells_q) for each

    A row is in at most one cell of each of Q tables. Table q is multiplied by the whole number L_q,
    the largest for which  sum_q L_q^2 <= (S / z)^2  in the stated proportions, so the integers of a
    row, one L_q in each table, have norm at most S / z: all tables together are one Gaussian
    mechanism with noise multiplier z. A table may be over other windows than the guard's, in which
    a person's records may meet: g records have norm g S / z, not sqrt(g) S / z. Nothing is rounded,
    as counts are integers; where 64 bits are too few they wrap around, noise and all, which is a
    function of the noisy integers. Cells that are put into groups are disjoint, so that a row is in
    one group. Sides, groups, windows and proportions are public or released.

    A table that has the share p of the noise budget, its `weight` squared over all, has noise of
    standard deviation z / sqrt(p).
    """

    tables: Sequence[Table]
    noise = Gaussian

    def check(self, shape: PublicShape, scale: float) -> None:
        for table in self.tables:
            table.check()
            _check_sides(table.sides, table.windows.count, shape)
        self.multipliers(scale)

    def multipliers(self, scale: float) -> Ints:
        """(Q,) whole numbers L_q = floor( S / z  w_q / |w| ), by which tables are multiplied."""
        weights = [table.weight for table in self.tables]
        shares = np.asarray(weights, np.float64) / math.hypot(*weights)
        times = np.floor(scale * shares * (1 - 1e-9)).astype(np.int64)
        if times.min() < 1:
            raise BudgetError(
                f"{len(weights)} tables with noise multiplier {noise.GAUSSIAN_STD / scale:.3g} say "
                "nothing: use a larger epsilon, or fewer columns"
            )
        return times

    def total(self, view: View, scale: float) -> list[NDArray[Any]]:
        blocks = []
        for table, copies in zip(self.tables, self.multipliers(scale).tolist(), strict=True):
            cells = processes.total(view.rows.cell_counts(table.windows, table.sides))
            blocks.append(copies * table.grouped(cells))
        return blocks

    def event(self, noise: Gaussian, what: str, shape: PublicShape) -> GaussianSum:
        draws = sum(table.windows.count * table.cells for table in self.tables)
        return gaussian_event(noise.multiplier, what, draws, shape.person.in_slabs())

    def answer(self, noisy: list[NDArray[Any]], scale: float) -> list[Floats]:
        """Noisy counts, in people."""
        copies = self.multipliers(scale).tolist()
        return [block / times for block, times in zip(noisy, copies, strict=True)]


# Pairs of records -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LagTable(Question):
    """How do people's pairs of records agree, by the time between them? (L, 4 d)

    times: (q,) increasing, in data units.  thresholds: (q, d, 2) at these times, linear between.
    lag_edges: (L - 1,) increasing, in data units.  each: w, whole.  All of it public or released.

    Here a person is summed, not a row. Each of a person's records is, in every feature, in one of
    three thirds: below, between or above two thresholds of its time. Each pair of records has a
    lag, which is in one of L bins, and in every feature the two are in the same outer third, in
    neighbouring thirds, in opposite ones, or both in the middle. A person with P pairs has, in a
    feature, n_c of them in each of the 4 L cells c. What they contribute is

        r_c = round( w (n_1 + .. + n_c) / P ) - round( w (n_1 + .. + n_(c-1)) / P )

    for a whole number w: their mean pair, counted w times, rounded so that nothing is lost. The r_c
    are whole, not negative, and telescope to w in each of d features, whoever the person is and
    however many records they have, in bins or together; without a pair all are 0. So a person added
    or removed moves the answer by w d in all, and a person replaced by 2 w d, in whole numbers that
    are counted and never rounded as floats: with exact integer noise delta is 0
    (`events.LaplaceCounts`, `weight`). The number g of records does not matter.

    Which pairs there are, and in which cells, follows from the thresholds and from the person's own
    records alone: the rows know whose they are, and at most g of a person were kept, by that
    person's records alone (`data.records`). Neither order nor whose they are matters.
    """

    times: Floats
    thresholds: Floats
    lag_edges: Floats
    each: int = 1
    noise = Laplace

    def __post_init__(self) -> None:
        numbers = (self.times, self.thresholds, self.lag_edges)
        shape = np.shape(self.thresholds)
        if not (
            all(np.isfinite(some).all() for some in numbers)
            and (np.diff(self.times) > 0).all()
            and (np.diff(self.lag_edges) > 0).all()
            and len(shape) == 3
            and shape[::2] == (len(self.times), 2)
            and self.each >= 1
        ):
            raise InputError("thirds need increasing times and lags, and two thresholds at each")

    @property
    def n_features(self) -> int:
        """d."""
        return int(self.thresholds.shape[1])

    @property
    def lag_bins(self) -> int:
        """L."""
        return len(self.lag_edges) + 1

    @property
    def weight(self) -> int:
        """w d, the most that a person moves the sum by."""
        return self.each * self.n_features

    def check(self, shape: PublicShape, scale: float) -> None:
        if self.n_features != shape.n_features:
            raise InputError(f"thirds of {shape.n_features} features need thresholds for each")

    def total(self, view: View, scale: float) -> list[NDArray[Any]]:
        return [processes.total(self.sum_over(view.rows.repeated()))]

    def event(self, noise: Laplace, what: str, shape: PublicShape) -> LaplaceCounts:
        return LaplaceCounts(noise.epsilon, what, 0.0, *shape.person, weight=self.weight)

    def sum_over(self, rows: RepeatedRows) -> Ints:
        """Exact numbers (L, 4 d): features in turn, of each the four kinds of pairs."""
        total = np.zeros((self.n_features, self.lag_bins, KINDS), np.int64)
        for some in _people_in_parts(rows):
            total += self.contributions(some).sum(axis=0)
        return total.transpose(1, 0, 2).reshape(self.lag_bins, -1)

    def contributions(self, rows: RepeatedRows) -> Ints:
        """r (people, d, L, 4) of these people, who are numbered from 0 without gaps."""
        order = np.argsort(rows.people, kind="stable")  # those of one person together
        rows = RepeatedRows(rows.people[order], rows.times[order], rows.points[order])
        people, n = rows.people, len(rows.people)
        shape = (int(people.max(initial=-1)) + 1, self.n_features, self.lag_bins, KINDS)
        # a record outside the range of time is taken for one at its end
        times = np.clip(rows.times, self.times[0], self.times[-1])
        third, features = self._thirds(rows), np.arange(self.n_features)
        counts = np.zeros(shape, np.int64)
        for ahead in range(1, n):
            first = np.flatnonzero(people[ahead:] == people[:-ahead])
            if len(first) == 0:  # nobody has so many records
                break
            second = first + ahead
            lag = np.searchsorted(self.lag_edges, np.abs(times[second] - times[first]))
            kind = np.abs(third[second] - third[first])
            kind[(third[first] == 1) & (third[second] == 1)] = KINDS - 1
            place = (people[first, None], features, lag[:, None], kind)
            counts += np.bincount(
                np.ravel_multi_index(place, shape).ravel(), minlength=counts.size
            ).reshape(shape)
        so_far = np.cumsum(counts.reshape(*shape[:2], -1), axis=-1)
        pairs = np.maximum(so_far[..., -1:], 1)
        shares = (2 * self.each * so_far + pairs) // (2 * pairs)  # rounded to the nearest
        return np.diff(shares, axis=-1, prepend=0).reshape(shape)

    def _thirds(self, rows: RepeatedRows) -> Ints:
        """Third (n, d) of each record, 0 to 2."""
        third = np.zeros(rows.points.shape, np.int64)
        for k, side in np.ndindex(self.n_features, 2):
            threshold = np.interp(rows.times, self.times, self.thresholds[:, k, side])
            third[:, k] += rows.points[:, k] > threshold
        return third


def _people_in_parts(rows: RepeatedRows) -> Iterator[RepeatedRows]:
    """All records of so many people at a time, who are numbered anew."""
    people = np.unique(rows.people, return_inverse=True)[1]
    for start in range(0, int(people.max(initial=-1)) + 1, PEOPLE_AT_ONCE):
        own = (people >= start) & (people < start + PEOPLE_AT_ONCE)
        yield RepeatedRows(people[own] - start, rows.times[own], rows.points[own])
