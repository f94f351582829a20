"""The axes of the unit cube: which are numbers, and which are levels of a category."""

from __future__ import annotations

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

    def sides(self, cells_per_side: int) -> tuple[int, ...]:
        """(d,) cells along each axis: so many of a number, and all levels of a category."""
        return tuple(levels or cells_per_side for levels in self.levels)

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
