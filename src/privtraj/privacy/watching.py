"""Watchers: told of every answer that leaves a guard, after its noise, and of nothing else.

An audit is one (`audit.transcript`). It sees what whoever asked sees, never a row: the event that
was paid for, the question, which is made of public and released numbers, and the noisy answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privtraj.arrays import Floats
from privtraj.privacy.events import Event
from privtraj.privacy.pairs import Thirds
from privtraj.privacy.projection import Projection
from privtraj.privacy.rows import cell_of
from privtraj.space import Slabs

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

    def cells(self, points: NDArray[np.float32]) -> NDArray[np.int64]:
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
    """One of several tables of counts. weight: its share of the noise budget, in proportion."""

    weight: float = 1.0


Question = CellCounts | ClippedSums | Thirds


class Watcher(Protocol):
    """Sees what leaves a guard."""

    def released(self, event: Event, question: Question, answer: NDArray[Any]) -> None:
        """An answer (K, D) was given to the question, and paid for as the event."""
