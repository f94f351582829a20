"""Ground: where people can be in the unit square of two features, and the shortest ways there.

What an area and a network have in common: nodes, links between nodes that see each other, and ways
from place to node to .. to node to place. All places are (n, 2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints, Mask

_BLOCK = 2**12  # pairs of places at a time


class Seen(NamedTuple):
    """The nodes that n places see. nodes: (n, k).  lengths: (n, k) how far they are, inf if not."""

    nodes: Ints
    lengths: Floats


class Ways(NamedTuple):
    """Ways of n people as corners (n, L, 2), the last one repeated as often as needed.

    apart: (n,) whether there is no way, as the ends are in parts that are not connected.
    """

    corners: Floats
    apart: Mask

    def at(self, shares: Floats) -> Floats:
        """Places (n, q, 2) at shares (q,) of the length of each way.

        Who has no way stays where they are, and is in the other part from half time on.
        """
        steps = np.diff(self.corners, axis=1)
        lengths = np.hypot(steps[..., 0], steps[..., 1])
        passed = np.cumsum(lengths, axis=1)
        gone = shares * passed[:, -1:]
        leg = (passed[:, None, :-1] < gone[:, :, None]).sum(axis=-1)
        before = np.take_along_axis(passed - lengths, leg, axis=1)
        length = np.take_along_axis(lengths, leg, axis=1)
        share = np.clip((gone - before) / np.where(length > 0, length, 1.0), 0.0, 1.0)[..., None]
        start = np.take_along_axis(self.corners[:, :-1], leg[..., None], axis=1)
        end = np.take_along_axis(self.corners[:, 1:], leg[..., None], axis=1)
        places: Floats = (1 - share) * start + share * end
        late = shares[None, :, None] >= 0.5
        stay = np.where(late, self.corners[:, -1:], self.corners[:, :1])
        return np.where(self.apart[:, None, None], stay, places)


class Ground(ABC):
    """nodes: (N, 2), all of them inside."""

    nodes: Floats
    pulls = 0  # rounds in which ways by the nodes are straightened, each of which may halve one

    @abstractmethod
    def inside(self, points: Floats) -> Mask:
        """Whether places are."""

    @abstractmethod
    def nearest(self, points: Floats) -> Floats:
        """The place inside that is nearest; places inside as they are."""

    @abstractmethod
    def moved(self, places: Floats, offsets: Floats) -> Floats:
        """Places inside, moved by offsets (n, 2) as far as they stay inside."""

    @abstractmethod
    def touched(self, per_side: int) -> Mask:
        """Which cells of a grid (per_side, per_side) hold any place inside; first axis x."""

    @abstractmethod
    def sees(self, a: Floats, b: Floats) -> Mask:
        """Whether the straight way from a to b, both inside, is."""

    def off_wall(self, points: Floats) -> Floats:
        """Places that rounding has put on the wrong side of a wall, `MARGIN` inside."""
        return self.nearest(points)

    def beside_wall(self, points: Floats) -> Mask:
        """Which places are so close to a wall that rounding might matter."""
        return np.zeros(len(points), bool)

    def sees_each(self, x: Floats, y: Floats) -> Mask:
        """Whether each of x (n, 2) sees each of y (m, 2): (n, m)."""
        i, j = np.divmod(np.arange(len(x) * len(y)), len(y))
        return self.sees(x[i], y[j]).reshape(len(x), len(y))

    @abstractmethod
    def seen(self, places: Floats) -> Seen:
        """Nodes that places inside see."""

    @abstractmethod
    def _links(self) -> tuple[Ints, Ints]:
        """Pairs of nodes that see each other."""

    @cached_property
    def _graph(self) -> Any:
        from scipy.sparse import coo_array

        i, j = self._links()
        lengths = np.hypot(*(self.nodes[i] - self.nodes[j]).T)
        # a length of 0 is no link to scipy
        shape = (len(self.nodes),) * 2
        return coo_array((np.maximum(lengths, 1e-12), (i, j)), shape=shape).tocsr()

    @cached_property
    def _table(self) -> tuple[Floats, Ints]:
        """Lengths (N, N) of the shortest ways between nodes, and the node before the last."""
        from scipy.sparse.csgraph import dijkstra

        lengths, before = dijkstra(self._graph, directed=False, return_predecessors=True)
        return lengths, before

    @cached_property
    def _parts(self) -> Ints:
        from scipy.sparse.csgraph import connected_components

        return connected_components(self._graph, directed=False)[1].astype(np.int64)

    def part(self, places: Floats) -> Ints:
        """Number (n,) of the connected part that a place is in; -1 for one too small for a node."""
        seen = self.seen(places)
        first = np.take_along_axis(seen.nodes, seen.lengths.argmin(axis=1)[:, None], axis=1)[:, 0]
        return np.where(np.isinf(seen.lengths.min(axis=1)), -1, self._parts[first])

    def distances(self, x: Floats, y: Floats) -> Floats:
        """Lengths (n, m) of the shortest ways from x (n, 2) to y (m, 2); inf if there is none."""
        straight = np.linalg.norm(x[:, None] - y, axis=-1)
        lengths = np.where(self.sees_each(x, y), straight, np.inf)
        if np.isfinite(lengths).all():
            return lengths
        from_x, from_y = self.seen(x), self.seen(y)
        rest = np.full((len(self.nodes), len(y)), np.inf)
        table = self._table[0]
        for node, length in zip(from_y.nodes.T, from_y.lengths.T, strict=True):
            np.minimum(rest, table[:, node] + length, out=rest)
        for node, length in zip(from_x.nodes.T, from_x.lengths.T, strict=True):
            np.minimum(lengths, length[:, None] + rest[node], out=lengths)
        return lengths

    def ways(self, x: Floats, y: Floats) -> Ways:
        """The shortest way of each from x (n, 2) to y (n, 2)."""
        parts = [self._ways(x[i : i + _BLOCK], y[i : i + _BLOCK]) for i in range(0, len(x), _BLOCK)]
        longest = max(part.corners.shape[1] for part in parts)
        corners = [_padded(part.corners, longest) for part in parts]
        return Ways(np.concatenate(corners), np.concatenate([part.apart for part in parts]))

    def _ways(self, x: Floats, y: Floats) -> Ways:
        direct = self.sees(x, y)
        corners = np.stack([x, y], axis=1)
        apart = np.zeros(len(x), bool)
        around = np.flatnonzero(~direct)
        if len(around) == 0:
            return Ways(corners, apart)
        nodes, found = self._nodes_between(self.seen(x[around]), self.seen(y[around]))
        apart[around[~found]] = True
        around, nodes = around[found], nodes[found]
        ends = x[around, None], y[around, None]
        detours = np.concatenate([ends[0], self.nodes[nodes], ends[1]], axis=1)
        detours = self._pulled(detours)
        corners = _padded(corners, detours.shape[1])
        corners[around] = detours
        return Ways(corners, apart)

    def _nodes_between(self, x: Seen, y: Seen) -> tuple[Ints, Mask]:
        """Nodes (n, L) of the shortest ways, the last one repeated, and whether there is a way."""
        table, before = self._table
        best, first, last = (np.full(len(x.nodes), fill) for fill in (np.inf, -1, -1))
        first, last = first.astype(np.int64), last.astype(np.int64)
        for a, to_a in zip(x.nodes.T, x.lengths.T, strict=True):
            total = to_a[:, None] + table[a[:, None], y.nodes] + y.lengths
            k = total.argmin(axis=1)
            length = np.take_along_axis(total, k[:, None], axis=1)[:, 0]
            better = length < best
            best = np.where(better, length, best)
            first = np.where(better, a, first)
            last = np.where(better, np.take_along_axis(y.nodes, k[:, None], axis=1)[:, 0], last)
        found = np.isfinite(best)
        here, steps = np.where(found, last, 0), []
        start = np.where(found, first, 0)
        steps.append(here)
        while (here != start).any():
            here = np.where(here == start, start, before[start, here])
            steps.append(here)
        backwards = np.stack(steps[::-1], axis=1)  # the first one repeated
        return backwards, found

    def _pulled(self, corners: Floats) -> Floats:
        """Ways (n, L, 2) without the corners that need not be gone by."""
        corners = _compact(corners, np.any(np.diff(corners, axis=1) != 0, axis=2))
        for odd in range(2 * self.pulls):
            inner = np.arange(1 + odd % 2, corners.shape[1] - 1, 2)
            if len(inner) == 0:
                continue
            before, after = corners[:, inner - 1], corners[:, inner + 1]
            free = self.sees(before.reshape(-1, 2), after.reshape(-1, 2))
            free = free.reshape(len(corners), -1)
            kept = np.ones(corners.shape[:2], bool)
            kept[:, inner] = ~free
            corners = _compact(corners, kept[:, 1:])
        return corners


def _compact(corners: Floats, kept: Mask) -> Floats:
    """Ways (n, L, 2) with their first corner and those kept of the others (n, L - 1)."""
    kept = np.concatenate([np.ones((len(kept), 1), bool), kept], axis=1)
    longest = max(int(kept.sum(axis=1).max(initial=0)), 2)
    order = np.argsort(~kept, axis=1, kind="stable")[:, :longest]
    number = np.minimum(np.arange(longest), kept.sum(axis=1, keepdims=True) - 1)
    return np.take_along_axis(corners, np.take_along_axis(order, number, 1)[..., None], axis=1)


def _padded(corners: Floats, length: int) -> Floats:
    more = length - corners.shape[1]
    return np.concatenate([corners, np.repeat(corners[:, -1:], more, axis=1)], axis=1)
