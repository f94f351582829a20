"""Rows seen along a few axes: what a guard asks of people whose features hardly fill their box.

A record's point y of the unit cube becomes, along r orthonormal axes A (d, r) from a centre c,

    u = 1/2 + (y - c) A / (2 half),    clamped to [0, 1]^r and rounded to float32.

Centre, axes and half are public or released. So u is a function of the row and of released numbers
alone, and a point of a unit cube: all that is argued of rows in `guard` holds of these rows as it
stands, with r axes for d, and the sensitivity of every answer is what it was under both relations.

That a row's point does not depend on the other rows holds bit by bit. Products of matrices would
break it: a library may add up the last rows of a block in another order than the first. Here every
number is a product or a sum of two float64, feature by feature, and each of these is rounded alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats
from privtraj.base.space import Slabs
from privtraj.privacy.rows import RepeatedRows, Rows, SlabRows, cell_of


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
