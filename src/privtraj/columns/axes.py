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
from privtraj.columns.kinds import Category, Column, Flag


@dataclass(frozen=True)
class Axes:
    """d axes, one for each column, all of it public.

    levels: (d,) of a category, 0 for numbers.  ordered, fixed: (d,) as the columns say.
    flags: {number: axis of its flag}, of those that may be missing, as pairs.
    """

    levels: tuple[int, ...]
    ordered: tuple[bool, ...]
    fixed: tuple[bool, ...]
    flags: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Axes:
        """Those of declared columns."""
        ordered = (isinstance(one, Category) and one.ordered for one in columns)
        levels = (column.levels for column in columns)
        fixed = (column.fixed for column in columns)
        names = [column.name for column in columns]
        flags = [(names.index(one.of), k) for k, one in enumerate(columns) if isinstance(one, Flag)]
        return cls(tuple(levels), tuple(ordered), tuple(fixed), tuple(flags))

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
    """Values (n, d) as points of the unit cube: numbers in data units, levels of categories.

    A number that is missing, NaN, is in the middle, and its flag says so.
    """
    values = np.asarray(values, dtype=np.float64)
    parts = [column.to_unit(values[:, k]) for k, column in enumerate(columns)]
    return np.nan_to_num(np.column_stack(parts), nan=0.5)


def with_flags(columns: Sequence[Column], values: Floats) -> Floats:
    """Values (n, e) of the columns that a table has, with the levels of flags, (n, d)."""
    names = [column.name for column in columns if not isinstance(column, Flag)]
    flags = [column for column in columns if isinstance(column, Flag)]
    absent = [np.isnan(values[:, names.index(flag.of)]) for flag in flags]
    return np.column_stack([values, *absent]) if flags else values
