"""The axes of the unit cube: which are numbers, and which are levels of a category."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtraj.base.arrays import Floats, Ints, Mask
from privtraj.columns.kinds import Column, Flag, of_tables


@dataclass(frozen=True)
class Axes:
    """d axes, one for each column, all of it public.

    levels: (d,) of a category, 0 for numbers.  ordered, fixed: (d,) as the columns say.
    flags: pairs (axis of a number, axis of its flag), of numbers that may be missing.
    """

    levels: tuple[int, ...]
    ordered: tuple[bool, ...]
    fixed: tuple[bool, ...]
    flags: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Axes:
        """Those of declared columns."""
        lacking = {one.of: k for k, one in enumerate(columns) if isinstance(one, Flag)}
        flags = (
            (k, lacking[one.of or one.name])
            for k, one in enumerate(columns)
            if not one.levels and (one.of or one.name) in lacking
        )
        levels, ordered, fixed = zip(
            *((c.levels, c.ordered, c.fixed) for c in columns), strict=True
        )
        return cls(levels, ordered, fixed, tuple(flags))

    @classmethod
    def numeric(cls, d: int) -> Axes:
        """d numbers."""
        return cls((0,) * d, (False,) * d, (False,) * d)

    @property
    def mixed(self) -> bool:
        """Whether any is no number."""
        return any(self.levels)

    @cached_property
    def numbers(self) -> Mask:
        """(d,) which are numbers."""
        return np.array(self.levels) == 0

    @property
    def categories(self) -> Mask:
        """(d,) which are levels."""
        return ~self.numbers

    @property
    def n_numbers(self) -> int:
        """p, how many are numbers."""
        return int(self.numbers.sum())

    @property
    def still_numbers(self) -> Mask:
        """(p,) which numbers never change."""
        return np.array(self.fixed)[self.numbers]

    @property
    def combinations(self) -> int:
        """L, of levels: their product over the categories; 1 where there are none."""
        return math.prod(levels or 1 for levels in self.levels)

    def sides(self, cells_per_side: int) -> tuple[int, ...]:
        """(d,) cells along each axis: so many of a number, and all levels of a category."""
        return tuple(levels or cells_per_side for levels in self.levels)

    def only_numbers(self, cells_per_side: int) -> tuple[int, ...]:
        """(d,) cells along each axis: so many of a number, and one of a category."""
        return tuple(1 if levels else cells_per_side for levels in self.levels)

    def level_of(self, unit: NDArray[Any]) -> Ints:
        """Levels (..., d) of points (..., d); 0 for numbers."""
        levels = np.array(self.levels)
        return np.clip((unit * levels).astype(np.int64), 0, np.maximum(levels - 1, 0))

    def centred(self, unit: NDArray[Any]) -> NDArray[Any]:
        """Points (..., d) whose categories are in the middle of the cell that they are in."""
        levels = np.maximum(np.array(self.levels), 1)
        middle = (self.level_of(unit) + 0.5) / levels
        return np.where(self.numbers, unit, middle)


def to_unit(columns: Sequence[Column], values: ArrayLike) -> Floats:
    """Coordinates (n, d), in data units or in levels, as points of the unit cube.

    A number that is missing, NaN, is in the middle, and its flag says so.
    """
    values = np.asarray(values, dtype=np.float64)
    parts = [column.to_unit(values[:, k]) for k, column in enumerate(columns)]
    return np.nan_to_num(np.column_stack(parts), nan=0.5)


def encoded(columns: Sequence[Column], values: Floats) -> Floats:
    """Coordinates (..., d) of values (..., e) of a table, NaN where missing."""
    known = of_tables(columns)
    parts = [column.coordinates(values[..., k]) for k, column in enumerate(known)]
    return np.stack([*(p[0] for p in parts), *(x for p in parts for x in p[1:])], axis=-1)


def decoded(columns: Sequence[Column], coordinates: Floats) -> Floats:
    """The values (..., e) of a table that have coordinates (..., d), NaN where missing."""
    known = of_tables(columns)
    if len(known) == len(columns):
        return coordinates
    behind, values = len(known), []
    for k, column in enumerate(known):
        more = range(behind, behind := behind + len(column.more))
        values.append(column.value(*(coordinates[..., j] for j in (k, *more))))
    return np.stack(values, axis=-1)


LEVEL_SCALE = 0.2
"""s. Levels differ as numbers do that are 0.28 of the box apart: more, and particles, which are
few, are spent on levels; less, and levels drown in the noise. Set by hand, 2026-11-16."""

_ROOTS = np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0])  # irrational, of different fields


@dataclass(frozen=True)
class Embedding:
    """Points of d axes as points of e coordinates: a block of C for a category of C levels.

        number      u                                     one coordinate
        category    s (1[c = 0], .., 1[c = C - 1])        C coordinates, s = `LEVEL_SCALE`

    Numbers come first, then the blocks, e = p + sum C coordinates in all. What a record becomes
    depends on that record and on public constants alone, and it is in the unit cube again, as
    0 <= s <= 1.

    For a particle whose block is s q, q a distribution over the levels, the squared distance to a
    person of level c is  s^2 (1 + |q|^2 - 2 q_c)  in the block: a Gaussian kernel of bandwidth h
    is there proportional to  exp( s^2 q_c / h^2 ), a kernel of levels, and the mean of blocks of
    people is s times the shares of their levels.
    """

    axes: Axes

    @cached_property
    def width(self) -> int:
        """e."""
        return self.axes.n_numbers + sum(self.axes.levels)

    @cached_property
    def blocks(self) -> list[tuple[int, slice]]:
        """Every category's axis, and its coordinates."""
        axes = np.flatnonzero(self.axes.categories)
        ends = self.axes.n_numbers + np.cumsum([self.axes.levels[k] for k in axes], dtype=int)
        starts = ends - [self.axes.levels[k] for k in axes]
        return [(int(k), slice(a, b)) for k, a, b in zip(axes, starts, ends, strict=True)]

    @cached_property
    def middle(self) -> Floats:
        """(e,) numbers in the middle of the box, and all levels alike."""
        middle = np.full(self.width, 0.5)
        for _, block in self.blocks:
            middle[block] = LEVEL_SCALE / (block.stop - block.start)
        return middle

    def of(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        """(n, e) of points (n, d): of each row alone."""
        made = np.zeros((len(points), self.width), np.float32)
        made[:, : self.axes.n_numbers] = points[:, self.axes.numbers]
        levels = self.axes.level_of(points.astype(np.float64))
        for axis, block in self.blocks:
            made[np.arange(len(points)), block.start + levels[:, axis]] = LEVEL_SCALE
        return made

    def shares(self, places: Floats) -> list[Floats]:
        """q (..., C) of every block of places (..., e): not negative, and of sum 1."""
        shares = []
        for _, block in self.blocks:
            kept = np.maximum(places[..., block], 0.0) + 1e-9
            shares.append(kept / kept.sum(axis=-1, keepdims=True))
        return shares

    def level_variance(self, places: Floats) -> Floats:
        """(...) of people around places (..., e): sum over blocks of s^2 (1 - |q|^2)."""
        spread: Floats = sum((1 - (q**2).sum(axis=-1) for q in self.shares(places)), np.zeros(()))
        return LEVEL_SCALE**2 * spread

    def people(self, places: Floats, rng: np.random.Generator) -> Floats:
        """(n, d) of places (n, e): numbers as they are, and a level of every category.

        Levels are drawn as the shares of the place say, by sequences that fill the unit interval
        evenly, so that many places together, and one that is repeated, have their shares.
        """
        made = np.empty((len(places), len(self.axes.levels)))
        made[:, self.axes.numbers] = places[:, : self.axes.n_numbers]
        for j, ((axis, _), share) in enumerate(zip(self.blocks, self.shares(places), strict=True)):
            steps = np.arange(len(places)) * _ROOTS[j % len(_ROOTS)] * (1 + j // len(_ROOTS))
            even = (rng.uniform() + steps) % 1.0
            level = (np.cumsum(share, axis=1) < even[:, None]).sum(axis=1)
            count = self.axes.levels[axis]
            made[:, axis] = (np.minimum(level, count - 1) + 0.5) / count
        return made
