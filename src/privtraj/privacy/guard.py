"""The private boundary: the only code that reads people's records after they were validated.

`Guard.ask` is the only door. What goes through it is a `Release`: a question with its noise and its
name. It is recorded in the ledger before it is computed; then exact integers are summed over
people, exact integer noise is added, and the answer leaves. Nothing else leaves: whatever is
computed from answers is post-processing.

    CellCounts    how many records are in each cell        + discrete Laplace noise
    Tables        the same in cells of several kinds       + discrete Gaussian noise
    ClippedSums   sum over records of clip_c( v(record) )  + discrete Gaussian noise  (`sums`)
    KernelSums    the same for the vectors of a step of the dynamics, summed faster   (`sums`)
    LagTable      how people's pairs of records agree      + discrete Laplace noise   (`pairs`)

A question is a linear statistic: integers that add up over people (`total`). Its event (`events`)
says what it costs and how far one person moves these integers, all of them together: at most
scale * sensitivity(adjacency), in the L1 norm with Laplace noise of epsilon / scale, and in the
Euclidean norm with Gaussian noise of multiplier z, where it is S / z for a standard deviation of S
on every integer (`noise`). Each question proves it beside its code, for a person of one row or of a
public number g of them, each in a window of its own or together, and for both relations.

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

    projected: points may be seen along other axes, which are public or released (`Projection`). A
    row's new point is a function of the row and of these numbers, bit by bit, so every proof holds
    with new points.

    sampled: every row takes part in a sum if its own fresh 64-bit word, from the source of the
    noise, is below floor(rate 2^64): an exact coin of probability at most rate. The sum is released
    as it is, never divided by the number of rows that took part; a batch without rows is noise
    alone, and is paid for like any other.

    chosen times: a uniform set of bins, drawn once, published, and paid for together with all
    releases that will be made of it; the guard that is handed out asks for no rows of other bins.
    Times that are named without looking at anybody are free: other rows merely take no part.

    The number of people in the data, in a window or in a batch never enters an answer except
    through these mechanisms.

    Nothing is refused after it was paid for. Whether a question can be answered is decided by
    public and released numbers, before it is paid for, and every table that passed the checks of
    `data.records` has an answer to it: a refusal that depended on the rows would be an answer too.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import BudgetError, InputError
from privtraj.base.space import Slabs
from privtraj.columns.kinds import Axes
from privtraj.privacy import noise
from privtraj.privacy.events import Event, GaussianSum, LaplaceCounts, Person
from privtraj.privacy.ledger import Allowance, Ledger
from privtraj.privacy.noise import EPSILON_RANGE

MAX_CELLS = 2**26  # noisy counts per release, over all windows
PARTS = 60  # of a person whose records are counted as one: even for up to six of them
BLOCK = 1 << 20  # rows at a time: what is computed on the way stays small beside the rows


# Rows -----------------------------------------------------------------------------------------


class SlabRows(NamedTuple):
    """Rows of K slabs. points: (n, d) in [0, 1], sorted by slab.  slabs: (n,) in 0..K-1."""

    points: NDArray[np.float32]
    slabs: NDArray[np.int32]


class RepeatedRows(NamedTuple):
    """Rows of people who have several. people: (n,) whose.  times: (n,).  points: (n, d)."""

    people: NDArray[np.int64]
    times: NDArray[np.float64]
    points: NDArray[np.float32]


class Rows(Protocol):
    """n validated records of d features, each at a time of its own, wherever they live: as arrays
    (`MemoryRows`), in a database or in files (`data.sql_rows.SqlRows`)."""

    @property
    def digest(self) -> bytes:
        """Recognises the data, whatever the order of rows; as sensitive as they are."""

    def cell_counts(self, slabs: Slabs, sides: Sequence[int]) -> NDArray[np.int64]:
        """Exact numbers of records (K, product of the sides), of sides (d,) cells per axis."""

    def in_slabs(self, slabs: Slabs) -> SlabRows:
        """The rows of these slabs; in a slab they keep their order."""

    def repeated(self) -> RepeatedRows:
        """The rows of all who have several, where it is known whose they are; else none."""


@dataclass(frozen=True, eq=False)
class Projection:
    """Points seen along a few axes only, where people's features hardly fill their box.

    centre: c (d,) in the unit cube.  axes: A (d, r), orthonormal columns.  half: of a side.

    A record's point y of the unit cube becomes  u = 1/2 + (y - c) A / (2 half), clamped to [0, 1]^r
    and rounded to float32. That it does not depend on the other rows holds bit by bit. Products of
    matrices would break it: a library may add up the last rows of a block in another order than the
    first. Here every number is a product or a sum of two float64, feature by feature, and each of
    these is rounded alone.
    """

    centre: Floats
    axes: Floats
    half: float

    @property
    def rank(self) -> int:
        """r."""
        return self.axes.shape[1]

    def __call__(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        """u (n, r) of points (n, d)."""
        along = np.zeros((len(points), self.rank))
        for column, middle, axis in zip(points.T, self.centre, self.axes, strict=True):
            along += (column.astype(np.float64) - middle)[:, None] * axis
        return np.clip(0.5 + along / (2 * self.half), 0.0, 1.0).astype(np.float32)

    def back(self, places: Floats) -> Floats:
        """(..., d) in the unit cube, or near it, of places (..., r); undoes it in the subspace."""
        return np.asarray(self.centre + 2 * self.half * (places - 0.5) @ self.axes.T)


@dataclass(frozen=True)
class PublicShape:
    """What everybody may know of rows as they are seen: windows of time, d axes, what a person has.

    projection: along whose axes points are seen, if not their own.  rate: the probability with
    which a record takes part in a sum.
    """

    windows: Slabs
    axes: Axes
    person: Person
    projection: Projection | None = None
    rate: float = 1.0

    @property
    def n_features(self) -> int:
        """d."""
        return len(self.axes.levels)

    def in_windows(self, windows: Slabs) -> PublicShape:
        """The same in other windows, whose edges and numbers are public or released.

        Records of one person in different windows may meet in one, so whoever has several is paid
        for as if they were together.
        """
        check_windows(windows)
        return replace(self, windows=windows, person=self.person.in_slabs())

    def projected(self, projection: Projection) -> PublicShape:
        """The same along the axes of a projection."""
        return replace(self, axes=Axes.numeric(projection.rank), projection=projection)

    def seen(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        """Points of the unit cube, as they are seen."""
        return points if self.projection is None else self.projection(points)


def check_windows(windows: Slabs) -> None:
    """Refuse windows in which a record might have no place: its rows alone would tell."""
    numbers, edges = windows.slab_of_piece, windows.edges
    in_use = np.unique(numbers[numbers >= 0])
    if len(numbers) != len(edges) + 1 or not (np.diff(edges) > 0).all() or len(in_use) == 0:
        raise InputError("slabs need increasing edges, and a number for each piece between")
    if not np.array_equal(in_use, np.arange(len(in_use))):
        raise InputError("slabs are numbered from 0, without gaps")


@dataclass(frozen=True, eq=False, repr=False)
class MemoryRows:
    """Rows as arrays. points: (n, d) in [0, 1].  times: (n,) in data units.

    people: (n,) whose, from 0, where people may have several; else None.
    """

    points: NDArray[np.float32]
    times: NDArray[np.float64]
    digest: bytes = field(default=b"", repr=False)
    people: NDArray[np.int64] | None = None

    def cell_counts(self, slabs: Slabs, sides: Sequence[int]) -> NDArray[np.int64]:
        cells = math.prod(sides)
        counts = np.zeros((1 + slabs.count) * cells, dtype=np.int64)  # the first for no slab
        for start in range(0, len(self.times), BLOCK):
            block = slice(start, start + BLOCK)
            place = (1 + slabs.of(self.times[block])) * np.int64(cells)
            place += cell_of(self.points[block], sides)
            counts += np.bincount(place, minlength=counts.size)
        return counts.reshape(-1, cells)[1:]

    def in_slabs(self, slabs: Slabs) -> SlabRows:
        numbers = slabs.of(self.times).astype(np.int32)
        order = np.argsort(numbers, kind="stable")[np.count_nonzero(numbers < 0) :]
        return SlabRows(self.points[order], numbers[order])

    def repeated(self) -> RepeatedRows:
        if self.people is None:
            return RepeatedRows(np.empty(0, np.int64), self.times[:0], self.points[:0])
        own = np.bincount(self.people, minlength=1)[self.people] > 1
        return RepeatedRows(self.people[own], self.times[own], self.points[own])


@dataclass(frozen=True, eq=False, repr=False)
class WithPast:
    """Records of a batch, and people who were drawn from a released model.

    The drawn are public. So whatever is asked is that of the batch and a number that everybody
    knows: a record more or less moves it by as much as without them, and no noise is spared.
    """

    rows: Rows
    past: MemoryRows

    @property
    def digest(self) -> bytes:
        return self.rows.digest

    def cell_counts(self, slabs: Slabs, sides: Sequence[int]) -> NDArray[np.int64]:
        return self.rows.cell_counts(slabs, sides) + self.past.cell_counts(slabs, sides)

    def in_slabs(self, slabs: Slabs) -> SlabRows:
        own, past = self.rows.in_slabs(slabs), self.past.in_slabs(slabs)
        numbers = np.concatenate([own.slabs, past.slabs])
        order = np.argsort(numbers, kind="stable")
        return SlabRows(np.concatenate([own.points, past.points])[order], numbers[order])

    def repeated(self) -> RepeatedRows:
        return self.rows.repeated()


@dataclass(frozen=True, eq=False, repr=False)
class ProjectedRows:
    """The same rows with the points of a projection; those in a database are brought here."""

    rows: Rows
    projection: Projection

    @property
    def digest(self) -> bytes:
        return self.rows.digest

    def cell_counts(self, slabs: Slabs, sides: Sequence[int]) -> NDArray[np.int64]:
        points, numbers = self.in_slabs(slabs)
        cells = math.prod(sides)
        place = numbers.astype(np.int64) * cells + cell_of(points, sides)
        return np.bincount(place, minlength=slabs.count * cells).reshape(-1, cells)

    def in_slabs(self, slabs: Slabs) -> SlabRows:
        points, numbers = self.rows.in_slabs(slabs)
        return SlabRows(self.projection(points), numbers)

    def repeated(self) -> RepeatedRows:
        people, times, points = self.rows.repeated()
        return RepeatedRows(people, times, self.projection(points))


def cell_of(points: NDArray[np.float32], sides: Sequence[int]) -> NDArray[np.int64]:
    """Number (n,) of the cell of each point (n, d) of the unit cube, the first feature slowest.

    sides: (d,) cells along each axis; 1 for one that does not matter.

    In float64 the product of a float32 and a number of cells is exact, so every database that knows
    both types finds the same cell.
    """
    cell = np.zeros(len(points), dtype=np.int64)
    for column, cells in zip(points.T, sides, strict=True):
        if cells > 1:
            side = np.minimum((column.astype(np.float64) * cells).astype(np.int64), cells - 1)
            cell = cell * cells + side
    return cell


# Questions, releases and the guard ------------------------------------------------------------


@dataclass(frozen=True)
class Laplace:
    """P(x) proportional to exp(-epsilon |x|), independent on every integer."""

    epsilon: float
    norm: ClassVar[int] = 1
    scale: ClassVar[float] = 1.0

    @property
    def of_parts(self) -> float:
        """The epsilon of whole counts with as much noise as those in parts of a person, whose
        variance is 2 / epsilon^2 (`CellCounts`)."""
        return math.acosh(1 + self.epsilon**2 / 2)

    def draw(self, source: noise.Source, shape: tuple[int, ...], scale: float) -> Ints:
        """Noise for integers of this shape, which are counted `scale` times."""
        return noise.laplace_integers(source, shape, self.epsilon / scale)


@dataclass(frozen=True)
class Gaussian:
    """Standard deviation S on every integer; a record moves them by S / z = `scale` at most."""

    multiplier: float  # z
    norm: ClassVar[int] = 2

    @property
    def scale(self) -> float:
        """S / z."""
        return noise.GAUSSIAN_STD / self.multiplier

    def draw(self, source: noise.Source, shape: tuple[int, ...], scale: float) -> Ints:
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

    def scale(self, noise: Any, shape: PublicShape) -> float:
        """Of the integers: public, as the noise and the shape are."""
        return float(noise.scale)

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
        self._view = View(rows, shape, source)
        self._payer: Ledger | Allowance = ledger
        self._watcher = watcher

    def ask(self, release: Release) -> Any:
        """The noisy answer to a question, which is paid for first."""
        question, scale = release.question, release.question.scale(release.noise, self.shape)
        question.check(self.shape, scale)
        event = question.event(release.noise, release.what, self.shape)
        self._payer.spend(event)
        blocks = list(question.total(self._view, scale))
        for k, block in enumerate(blocks):
            blocks[k] = block + release.noise.draw(self._view.source, block.shape, scale)
        answer = question.answer(blocks, scale)
        if self._watcher is not None:
            self._watcher.released(release, self.shape, answer)
        return answer

    def in_slabs(self, windows: Slabs) -> Self:
        """The same rows in these windows, whose edges and numbers are public or released."""
        return self._showing(self.shape.in_windows(windows))

    def projected(self, projection: Projection) -> Self:
        """The same rows seen along the axes of a projection, which are public or released."""
        return self._showing(
            self.shape.projected(projection), ProjectedRows(self._view.rows, projection)
        )

    def at_rate(self, rate: float) -> Self:
        """The same, every record taking part in a sum with this public probability."""
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
        part = self.at_rate(event.rate)
        part._payer = self.ledger.reserve(event, times)
        return part

    def choose_times(
        self, n: int, width: int, noise_multiplier: float, what: str, times: int
    ) -> tuple[Ints, Self]:
        """n random bins in order, public from now on, and a guard over their rows alone.

        It may release `times` sums of D = width, which are paid for now as one mixture. The bins
        are the first of a uniform permutation: the order of different words, drawn again if two are
        equal.
        """
        shape = self.shape
        event = gaussian_event(noise_multiplier, what, n * width, shape.person, shape.rate)
        allowance = self.ledger.reserve(event, times, share=n / self.n_times)
        words = self._view.source.words(self.n_times)
        while len(np.unique(words)) < self.n_times:
            words = self._view.source.words(self.n_times)
        chosen = np.sort(np.argsort(words)[:n])
        part = self.at_times(chosen)
        part._payer = allowance
        return chosen, part

    def sum_event(self, width: int, noise_multiplier: float, what: str) -> GaussianSum:
        """What clipped sums of D = width will cost: to be reserved, or planned."""
        draws, shape = self.n_times * width, self.shape
        return gaussian_event(noise_multiplier, what, draws, shape.person, shape.rate)

    @property
    def n_features(self) -> int:
        """d."""
        return self.shape.n_features

    @property
    def n_times(self) -> int:
        """K, how many windows of time an answer has: the declared bins, unless others were cut."""
        return self.shape.windows.count

    def _showing(self, shape: PublicShape, rows: Rows | None = None) -> Self:
        """The same rows, of which other things are public."""
        part = copy(self)
        part.shape, part._view = shape, View(rows or self._view.rows, shape, self._view.source)
        return part


# Counts ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CellCounts(Question):
    """How many records, or people, are in each cell of each window? (K, cells)

    sides: cells along every axis, or of each (d,); one cell per side counts the windows.

    A row is in exactly one cell of at most one window, so a person of g records who is added or
    removed moves the counts by g in all, and a person replaced by 2 g. Counts are integers and so
    is the noise: no floating point is involved, and nothing but the law of the source's words is
    taken on trust, with delta = 0 too. Records in different windows are in different cells, which
    costs less than g in one cell (`events.LaplaceCounts`).

    Where records of a person may be together, people are counted, each once: record j = 1..n of a
    person of n adds, of a whole number w,
        floor(w j / n) - floor(w (j - 1) / n),
    which is not negative and telescopes to w, whatever n is; whatever is in no window is left out.
    So a person added or removed moves the integers by w at most, and with noise of epsilon / w the
    price is epsilon, that of one record, in whatever order a person's rows are (`Rows.repeated`).
    The answer is in people, over w.
    """

    sides: int | tuple[int, ...]
    noise = Laplace

    def along(self, shape: PublicShape) -> tuple[int, ...]:
        """(d,) cells along each axis."""
        every = self.sides
        return (every,) * shape.n_features if isinstance(every, int) else tuple(every)

    def check(self, shape: PublicShape, scale: float) -> None:
        _check_sides(self.along(shape), shape.windows.count, shape)

    def scale(self, noise: Laplace, shape: PublicShape) -> float:
        return float(parts_of(noise.epsilon) if shape.person.weight else 1)

    def total(self, view: View, scale: float) -> list[NDArray[Any]]:
        windows, sides = view.shape.windows, self.along(view.shape)
        counts = view.rows.cell_counts(windows, sides)
        if view.shape.person.weight is None:
            return [counts]
        whole, rows = int(scale), view.rows.repeated()
        order = np.lexsort((*rows.points.T, rows.times, rows.people))  # however they are stored
        _, first, own = np.unique(rows.people[order], return_index=True, return_counts=True)
        n, rank = np.repeat(own, own), np.arange(len(order)) - np.repeat(first, own)
        parts = whole * (rank + 1) // n - whole * rank // n
        window = windows.of(rows.times[order])
        place = window * counts.shape[1] + cell_of(rows.points[order], sides)
        counts = whole * counts
        np.add.at(counts.reshape(-1), place[window >= 0], (parts - whole)[window >= 0])
        return [counts]

    def event(self, noise: Laplace, what: str, shape: PublicShape) -> LaplaceCounts:
        return LaplaceCounts(noise.epsilon, what, 0.0, *shape.person, shape.person.weight)

    def answer(self, noisy: list[NDArray[Any]], scale: float) -> NDArray[Any]:
        """Noisy counts, whole ones where records are counted."""
        (block,) = noisy
        return block if scale == 1 else block / scale


def parts_of(epsilon: float) -> int:
    """w: `PARTS`, and less where epsilon / w would be below the range of the noise."""
    return max(1, min(PARTS, math.floor(epsilon / EPSILON_RANGE[0])))


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
        for axis, of in reversed([*enumerate(self.groups, start=1)]):  # the last is in one piece
            if of is not None:
                shape = (*table.shape[:axis], int(of.max()) + 1, *table.shape[axis + 1 :])
                fewer, order = np.zeros(shape, table.dtype), np.argsort(of, kind="stable")
                there, starts = np.unique(of[order], return_index=True)
                sums = np.add.reduceat(table.take(order, axis), starts, axis)
                np.moveaxis(fewer, axis, 0)[there] = np.moveaxis(sums, axis, 0)
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
            check_windows(table.windows)
            _check_sides(table.sides, table.windows.count, shape)
            for side, of in zip(table.sides, table.groups or (), strict=False):
                if of is not None and (of.shape != (side,) or of.min() < 0):
                    raise InputError(f"groups of {side} cells need one number, from 0, for each")
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
            cells = view.rows.cell_counts(table.windows, table.sides)
            blocks.append(copies * table.grouped(cells))
        return blocks

    def event(self, noise: Gaussian, what: str, shape: PublicShape) -> GaussianSum:
        draws = sum(table.windows.count * table.cells for table in self.tables)
        return gaussian_event(noise.multiplier, what, draws, shape.person.in_slabs())

    def answer(self, noisy: list[NDArray[Any]], scale: float) -> list[Floats]:
        """Noisy counts, in people."""
        copies = self.multipliers(scale).tolist()
        return [block / times for block, times in zip(noisy, copies, strict=True)]
