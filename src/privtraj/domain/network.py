"""A network in the unit square: people are on its edges, and change edge where two share an end."""

from __future__ import annotations

import numpy as np

from privtraj.base.arrays import Floats, Ints, Mask
from privtraj.domain.constants import ON_EDGE
from privtraj.domain.ground import Ground, Seen
from privtraj.domain.walls import Outline, clipped

_SAME = 1e-9  # ends so close are one


class Network(Ground):
    """segments: (E, 4) edges in units of the box; what reaches beyond it is cut off."""

    def __init__(self, segments: Floats) -> None:
        within = clipped(segments)
        ends = np.round(within.reshape(-1, 2) / _SAME) * _SAME
        self.nodes, number = np.unique(ends, axis=0, return_inverse=True)
        self._ends = number.reshape(-1, 2)
        joined = self.nodes[self._ends].reshape(-1, 4)
        self._outline = Outline(joined) if len(joined) else None

    @property
    def empty(self) -> bool:
        """Whether no edge is in the box."""
        return len(self.nodes) == 0

    def _on(self, points: Floats) -> tuple[Floats, Ints]:
        """Nearest places (n, 2) on edges, and the edges (n,)."""
        assert self._outline is not None
        places, edges = self._outline.nearest(points, among=8)
        return places[:, 0], edges[:, 0]

    def inside(self, points: Floats) -> Mask:
        """On an edge, up to rounding."""
        inside: Mask = np.hypot(*(points - self._on(points)[0]).T) <= ON_EDGE
        return inside

    def nearest(self, points: Floats) -> Floats:
        """On the nearest edge."""
        return self._on(points)[0]

    def moved(self, places: Floats, offsets: Floats) -> Floats:
        """To the edge that is nearest then."""
        return self.nearest(places + offsets)

    def touched(self, per_side: int) -> Mask:
        """By the edges that cross a cell."""
        assert self._outline is not None
        touched = np.zeros((per_side, per_side), bool)
        cells = np.clip(self._outline.samples * per_side, 0, per_side - 1).astype(np.int64)
        touched[cells[:, 0], cells[:, 1]] = True
        return touched

    def sees(self, a: Floats, b: Floats) -> Mask:
        """On the same edge."""
        same: Mask = self._on(a)[1] == self._on(b)[1]
        return same

    def sees_each(self, x: Floats, y: Floats) -> Mask:
        same: Mask = self._on(x)[1][:, None] == self._on(y)[1]
        return same

    def seen(self, places: Floats) -> Seen:
        """Both ends of the edge."""
        on, edge = self._on(places)
        nodes = self._ends[edge]
        lengths = np.linalg.norm(self.nodes[nodes] - on[:, None], axis=-1)
        return Seen(nodes, lengths)

    def _links(self) -> tuple[Ints, Ints]:
        """The edges; of two between the same nodes, one."""
        apart = self._ends[self._ends[:, 0] != self._ends[:, 1]]
        i, j = np.unique(np.sort(apart, axis=1), axis=0).T
        return i, j
