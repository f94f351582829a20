"""Rows: validated records, wherever they live, as times and points of the unit cube.

A guard holds rows and asks three things of them: how many are in each cell of each slab of time;
where the budget buys gradients, the rows themselves; and, where people may have several, the rows
of those who have. `MemoryRows` has them as arrays;
`data.sql_rows.SqlRows` leaves them in the database or the files and asks there.

Rows may be seen along a few axes only, where people's features hardly fill their box. A record's
point y of the unit cube becomes, along r orthonormal axes A (d, r) from a centre c,

    u = 1/2 + (y - c) A / (2 half),    clamped to [0, 1]^r and rounded to float32.

Centre, axes and half are public or released. So u is a function of the row and of released numbers
alone, and a point of a unit cube: all that is argued of rows holds of these rows as it stands, with
r axes for d, and the sensitivity of every answer is what it was under both relations. That a row's
point does not depend on the other rows holds bit by bit. Products of matrices would break it: a
library may add up the last rows of a block in another order than the first. Here every number is a
product or a sum of two float64, feature by feature, and each of these is rounded alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError
from privtraj.base.space import Slabs
from privtraj.columns.kinds import Axes
from privtraj.privacy.events import Person

BLOCK = 1 << 20  # rows at a time: what is computed on the way stays small beside the rows

_LANES = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03))


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
    """n records with d features, each at a time of its own."""

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
    """centre: (d,) in the unit cube.  axes: (d, r), orthonormal columns.  half: of a side."""

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
        lifted: Floats = self.centre + 2 * self.half * (places - 0.5) @ self.axes.T
        return lifted


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


def digest_of(names: Sequence[str], batches: Iterable[NDArray[np.float64]]) -> bytes:
    """Digest of records (n, 1 + e), time and named features, in any order of rows and features.

    A feature is a number in data units, NaN where it is missing, or the fingerprint of a category's
    text: nothing that depends on what is declared of it.

    sha256 of the names and of the sum over records of two 64-bit hashes. It has to tell tables
    apart, not to withstand somebody who builds two alike on purpose.
    """
    order = [0, *(1 + k for k in sorted(range(len(names)), key=lambda k: names[k]))]
    totals = np.zeros(len(_LANES), dtype=np.uint64)
    count = 0
    for batch in batches:
        count += len(batch)
        words = [_plain_bits(batch[:, k]) for k in order]
        for lane, key in enumerate(_LANES):
            hashed = np.full(len(batch), key)
            for column in words:
                hashed = _mixed(hashed ^ column) + key
            totals[lane : lane + 1] += hashed.sum(dtype=np.uint64)  # an array wraps around silently
    text = repr((sorted(names), count, totals.tolist()))
    return sha256(text.encode()).digest()


def _plain_bits(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Of numbers: a zero has one sign only, and what is missing one NaN."""
    return np.where(np.isnan(values), np.nan, values + 0.0).view(np.uint64)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64: every bit of the result depends on every bit of the word."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
