"""Watchers: told of every answer that leaves a guard, after its noise, and of nothing else.

An audit is one (`audit.transcript`). It sees what whoever asked sees, never a row: the event that
was paid for, the question, which is made of public and released numbers, and the noisy answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError
from privtraj.base.space import Slabs
from privtraj.privacy.events import Event
from privtraj.privacy.pairs import Thirds
from privtraj.privacy.projection import Projection
from privtraj.privacy.rows import cell_of

RecordVector = Callable[[int, NDArray[np.float32]], Floats]
"""v (D,) of a record, before it is clipped: row of the answer, point (d,) of the unit cube."""


@dataclass(frozen=True, eq=False)
class CellCounts:
    """How many records are in each cell? slabs: K of time, one row of the answer for each.

    sides: (d,) cells along each axis.  seen: along which axes these are, if not the features.
    """

    slabs: Slabs
    sides: tuple[int, ...]
    seen: Projection | None = field(default=None, kw_only=True)

    def cell_of(self, points: NDArray[np.float32]) -> NDArray[np.int64]:
        """Number (n,) of the cell of each point of the unit cube."""
        return cell_of(points if self.seen is None else self.seen(points), self.sides)


@dataclass(frozen=True, eq=False)
class ClippedSums:
    """What is the sum of clip_c( v(record) )? slabs as above; clip: (K,) c."""

    slabs: Slabs
    vector: RecordVector
    clip: Floats


@dataclass(frozen=True, eq=False)
class Table(CellCounts):
    """One of several tables of counts. weight: its share of the noise budget, in proportion.

    groups: for each axis the group (side,) of each of its cells, 0, 1, ...; None leaves cells as
    they are. Groups are public or released.
    """

    weight: float = 1.0
    groups: tuple[Ints | None, ...] | None = None

    def check(self) -> None:
        """Refuse groups that leave out a cell."""
        if self.groups is None:
            return
        for side, of in zip(self.sides, self.groups, strict=True):
            if of is not None and (of.shape != (side,) or of.min() < 0):
                raise InputError(f"groups of {side} cells need one number, from 0, for each")

    @property
    def cells(self) -> int:
        """Of one slab."""
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


Question = CellCounts | ClippedSums | Thirds


class Watcher(Protocol):
    """Sees what leaves a guard."""

    def released(self, event: Event, question: Question, answer: NDArray[Any]) -> None:
        """An answer (K, D) was given to the question, and paid for as the event."""
