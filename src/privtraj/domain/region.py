"""Regions of the unit square where people can be, and the shortest ways inside them.

An area is polygons with holes, in several parts; a network is edges, which people change where two
share an end. Shapely answers what is inside, nearest and in the way. Shortest ways turn only at
corners that stick out into an area, so these are the nodes of its graph, moved inside by `MARGIN`;
if there are many, near ones only are linked, over places in between, and ways are straightened
afterwards. The box needs no walls: it is convex, and who goes straight between two places of it
stays in it. All places are (n, 2).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import shapely

from privtraj.base.arrays import Floats, Ints, Mask

# Lengths are in sides of the box
MARGIN = 1e-6  # by which places keep off walls: far above rounding, far below what anybody measures
_SAME = 1e-9  # ends of edges so close are one
MOST_EXACT = 300  # corners up to which all that see each other are linked, and ways are shortest
_SIDE = 40  # else: places a side between the corners,
_RADIUS = 1.8 / _SIDE  # how far apart those are that are linked, and
_NEAR = 4.0  # in these radii: as far it is asked who sees whom
_PULLS = 12  # rounds in which ways are straightened; set by time to build, 2026-11-16
_SEEN = 24, 4  # nearest corners and nearest other nodes that are tried from a place
_LOCK = Lock()  # GEOS keeps notes in a prepared shape while it answers: one thread at a time


def asked(question: Callable[..., Any], *about: Any) -> Mask:
    """The answer of shapely to a question about a prepared shape, in any thread."""
    with _LOCK:
        return np.asarray(question(*about))


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


class Walkable:
    """A graph of nodes (N, 2), all of them inside, and the shortest ways by them.

    sees: whether the straight way from a to b, both inside, is.  each_sees: of each of x (n, 2) and
    each of y (m, 2), (n, m).  seen: nodes that places inside see.  links: pairs of nodes that do.
    """

    nodes: Floats
    pulls = 0  # rounds in which ways by the nodes are straightened, each of which may halve one
    sees: Callable[[Floats, Floats], Mask]
    each_sees: Callable[[Floats, Floats], Mask]
    seen: Callable[[Floats], Seen]
    links: Callable[[], tuple[Ints, Ints]]

    @cached_property
    def _graph(self) -> Any:
        from scipy.sparse import coo_array

        i, j = self.links()
        lengths = np.maximum(np.hypot(*(self.nodes[i] - self.nodes[j]).T), 1e-12)  # 0 is no link
        return coo_array((lengths, (i, j)), shape=(len(self.nodes),) * 2).tocsr()

    @cached_property
    def _table(self) -> tuple[Floats, Ints]:
        """Lengths (N, N) of the shortest ways between nodes, and the node before the last."""
        from scipy.sparse.csgraph import dijkstra

        return dijkstra(self._graph, directed=False, return_predecessors=True)

    def distances(self, x: Floats, y: Floats) -> Floats:
        """Lengths (n, m) of the shortest ways from x (n, 2) to y (m, 2); inf if there is none."""
        from scipy.spatial.distance import cdist

        lengths = np.where(self.each_sees(x, y), cdist(x, y), np.inf)
        if np.isfinite(lengths).all() or len(self.nodes) == 0:
            return lengths
        from_x, from_y = self.seen(x), self.seen(y)
        near, row = np.unique(from_x.nodes, return_inverse=True)
        table, rest = self._table[0][near], np.full((len(near), len(y)), np.inf)
        for node, length in zip(from_y.nodes.T, from_y.lengths.T, strict=True):
            np.minimum(rest, table[:, node] + length, out=rest)
        for node, length in zip(row.reshape(from_x.nodes.shape).T, from_x.lengths.T, strict=True):
            np.minimum(lengths, length[:, None] + rest[node], out=lengths)
        return lengths

    def ways(self, x: Floats, y: Floats) -> Ways:
        """The shortest way of each from x (n, 2) to y (n, 2)."""
        apart = ~self.sees(x, y)
        corners, around = np.stack([x, y], axis=1), np.flatnonzero(apart)
        if len(around) == 0 or len(self.nodes) == 0:
            return Ways(corners, apart)
        nodes, found = self._nodes_between(self.seen(x[around]), self.seen(y[around]))
        around, nodes = around[found], nodes[found]
        apart[around] = False
        detours = np.concatenate([x[around, None], self.nodes[nodes], y[around, None]], axis=1)
        detours = _compact(detours, np.any(np.diff(detours, axis=1) != 0, axis=2))
        for odd in range(2 * self.pulls):  # without the corners that need not be gone by
            inner = np.arange(1 + odd % 2, detours.shape[1] - 1, 2)
            if len(inner) == 0:
                continue
            before, after = detours[:, inner - 1], detours[:, inner + 1]
            free = self.sees(before.reshape(-1, 2), after.reshape(-1, 2))
            kept = np.ones(detours.shape[:2], bool)
            kept[:, inner] = ~free.reshape(len(detours), -1)
            detours = _compact(detours, kept[:, 1:])
        corners = np.concatenate([x[:, None], np.repeat(y[:, None], detours.shape[1] - 1, 1)], 1)
        corners[around] = detours
        return Ways(corners, apart)

    def _nodes_between(self, x: Seen, y: Seen) -> tuple[Ints, Mask]:
        """Nodes (n, L) of the shortest ways, the first one repeated, and whether there is a way."""
        table, before = self._table
        best = np.full(len(x.nodes), np.inf)
        first, last = (np.zeros(len(x.nodes), np.int64) for _ in range(2))
        for a, to_a in zip(x.nodes.T, x.lengths.T, strict=True):
            total = to_a[:, None] + table[a[:, None], y.nodes] + y.lengths
            k = total.argmin(axis=1)[:, None]
            length = np.take_along_axis(total, k, axis=1)[:, 0]
            better = length < best
            best, first = np.where(better, length, best), np.where(better, a, first)
            last = np.where(better, np.take_along_axis(y.nodes, k, axis=1)[:, 0], last)
        here, steps = last, [last]
        while (here != first).any():
            here = np.where(here == first, first, before[first, here])
            steps.append(here)
        return np.stack(steps[::-1], axis=1), np.isfinite(best)


def _compact(corners: Floats, kept: Mask) -> Floats:
    """Ways (n, L, 2) with their first corner and those kept of the others (n, L - 1)."""
    kept = np.concatenate([np.ones((len(kept), 1), bool), kept], axis=1)
    longest = max(int(kept.sum(axis=1).max(initial=0)), 2)
    order = np.argsort(~kept, axis=1, kind="stable")[:, :longest]
    number = np.minimum(np.arange(longest), kept.sum(axis=1, keepdims=True) - 1)
    return np.take_along_axis(corners, np.take_along_axis(order, number, 1)[..., None], axis=1)


class Area(Walkable):
    """shape: polygons in units of the box; they may reach beyond it."""

    def __init__(self, shape: Any) -> None:
        self._shape = shapely.intersection(shape, shapely.box(-1, -1, 2, 2))
        box = shapely.box(0, 0, 1, 1)
        # mitred corners stay corners; what is narrower than two margins is closed
        within = shapely.intersection(shapely.buffer(self._shape, -MARGIN, join_style="mitre"), box)
        self._parts = _polygons(within)
        self.empty = len(self._parts) == 0
        self._within = shapely.multipolygons(self._parts)
        self._walls = _segments(shapely.get_rings(_polygons(self._shape)))
        self._edges = _segments(shapely.get_rings(self._parts))
        self._wall_tree = shapely.STRtree(shapely.linestrings(self._walls.reshape(-1, 2, 2)))
        self._edge_tree = shapely.STRtree(shapely.linestrings(self._edges.reshape(-1, 2, 2)))
        self._part_tree = shapely.STRtree(self._parts)
        shapely.prepare([self._shape, self._within])
        turning = [np.zeros((0, 2))]
        # corners stick out where a way round turns left, the inside being on the right
        for ring in shapely.get_rings(shapely.normalize(self._parts)):
            here = shapely.get_coordinates(ring)[:-1]
            before, after = here - np.roll(here, 1, axis=0), np.roll(here, -1, axis=0) - here
            turning.append(here[_cross(before, after) > 0])
        corners = np.concatenate(turning)
        self._turns, self._radius = len(corners), np.inf
        self.nodes, self.pulls = corners, 1
        if len(corners) > MOST_EXACT:
            cells = (corners * 4 * _SIDE).astype(np.int64)
            corners = corners[np.unique(cells, axis=0, return_index=True)[1]]
            places = (np.indices((_SIDE, _SIDE)).reshape(2, -1).T + 0.5) / _SIDE
            places = places[shapely.contains_xy(self._within, places)]
            self._turns, self._radius, self.pulls = len(corners), _RADIUS, _PULLS
            self.nodes = np.concatenate([corners, places])
        for tree in (self._wall_tree, self._edge_tree, self._part_tree):
            tree.query(shapely.box(0, 0, 1, 1))  # which builds them, before threads ask

    def inside(self, points: Floats) -> Mask:
        """Whether places are: not on a wall, and in the box."""
        box = ((points >= 0) & (points <= 1)).all(axis=1)
        return asked(shapely.contains_xy, self._shape, points) & box

    def nearest(self, points: Floats) -> Floats:
        """The place inside that is nearest, off the walls by `MARGIN`, also for who stands in one;
        places inside as they are."""
        points = np.clip(points, 0.0, 1.0)
        wrong = np.flatnonzero(~asked(shapely.intersects_xy, self._within, points))
        edges = self._edges[self._edge_tree.nearest(shapely.points(points[wrong]))]
        points[wrong] = _on_edges(points[wrong], edges)
        return points

    def moved(self, places: Floats, offsets: Floats) -> Floats:
        """Places inside, moved by offsets (n, 2): what would leave through a wall comes back from
        it, the way it came, as `space.fold`.

        Who goes from x by u meets a wall from p by w where x + t u = p + s w.
        """
        lines = shapely.linestrings(np.stack([places, places + offsets], axis=1))
        way, wall = self._wall_tree.query(lines)
        p, u = self._walls[wall, :2] - places[way], offsets[way]
        w = self._walls[wall, 2:] - self._walls[wall, :2]
        turn = _cross(u, w)
        slope = np.where(turn == 0, np.inf, turn)  # who walks beside a wall does not meet it
        t, s = _cross(p, w) / slope, _cross(p, u) / slope
        joint = 1e-9  # walls are longer than they are, so that nobody slips through where two meet
        hit = (turn != 0) & (t >= 0) & (t <= 1) & (s >= -joint) & (s <= 1 + joint)
        reach = np.full(len(places), np.inf)
        np.minimum.at(reach, way[hit], t[hit])
        reach = np.minimum(reach, 1.0 / (1 - 1e-3))
        with np.errstate(divide="ignore", invalid="ignore"):
            to_box = (np.where(offsets > 0, 1.0, 0.0) - places) / offsets
        to_box = np.where(offsets == 0, np.inf, to_box).min(axis=1)
        reach = np.minimum(reach, np.maximum(to_box, 0.0)) * (1 - 1e-3)
        back = 2 * np.clip(reach, 1e-12, 1.0)
        share = np.where(reach >= 1 - 1e-3, 1.0, np.abs(1 - back * np.rint(1 / back)))
        moved: Floats = places + share[:, None] * offsets
        left = ~self.inside(moved)  # rounding, of somebody who stood in a wall
        moved[left] = places[left]
        return moved

    def touched(self, per_side: int) -> Mask:
        """Which cells of a grid (per_side, per_side) hold any place inside; first axis x."""
        touched = asked(shapely.intersects, self._shape, _cells(per_side))
        return touched.reshape(per_side, per_side)

    def sees(self, a: Floats, b: Floats) -> Mask:
        same = (a == b).all(axis=1)
        lines = shapely.linestrings(np.stack([a, np.where(same[:, None], a + _SAME, b)], axis=1))
        return asked(shapely.contains_properly, self._shape, lines) | same

    def each_sees(self, x: Floats, y: Floats) -> Mask:
        """Where corners are many, of those alone that are near: to others nodes lead as well; those
        who are nearer than both walls around them together are not asked about.

        Else nobody sees through a wall from p to q if x and y are on two sides of its line, and p
        and q on two sides of theirs: (y - x) x (p - x) = x x y + y x p - x x p tells on which.
        """
        if np.isfinite(self._radius):
            from scipy.spatial.distance import cdist

            near = partial(self._wall_tree.query_nearest, all_matches=False, return_distance=True)
            lengths, free = cdist(x, y), np.add.outer(*(near(shapely.points(z))[1] for z in (x, y)))
            sees = lengths <= _NEAR * self._radius
            i, j = np.nonzero(sees & (lengths >= (1 - _SAME) * free))
            sees[i, j] = self.sees(x[i], y[j])
            return sees
        sees, turn = np.ones((len(x), len(y)), bool), _cross(x[:, None], y)
        for wall in self._walls.reshape(-1, 2, 2):
            left_x, left_y = (_cross(wall[1] - wall[0], z - wall[0]) > 0 for z in (x, y))
            for a, b in ((left_x, ~left_y), (~left_x, left_y)):
                if a.any() and b.any():
                    here = np.ix_(a, b)
                    p, q = (turn[here] + _cross(y[b], e) - _cross(x[a], e)[:, None] for e in wall)
                    sees[here] &= (p > 0) == (q > 0)
        return sees

    def seen(self, places: Floats) -> Seen:
        """Among the nearest corners and the nearest other nodes; all nodes if none of these."""
        from scipy.spatial import cKDTree, distance

        if np.isinf(self._radius):  # few: the nearest of all that are seen
            sees = self.each_sees(places, self.nodes)
            lengths = np.where(sees, distance.cdist(places, self.nodes), np.inf)
            nodes = np.argsort(lengths, axis=1)[:, : _SEEN[0]]
            return Seen(nodes, np.take_along_axis(lengths, nodes, axis=1))
        near, ends = [], (0, self._turns, len(self.nodes))
        for first, last, most in zip(ends[:2], ends[1:], _SEEN, strict=True):
            if first < last:
                most = min(most, last - first)
                found = cKDTree(self.nodes[first:last]).query(places, most)[1]
                near.append(first + found.reshape(len(places), most))
        nodes = np.hstack(near)
        lengths = self._lengths(places, nodes)
        for i in np.flatnonzero(np.isinf(lengths).all(axis=1)):
            row = self._lengths(places[[i]], np.arange(len(self.nodes))[None])[0]
            order = np.argsort(row)[: nodes.shape[1]]
            nodes[i], lengths[i] = order, row[order]
        return Seen(nodes, lengths)

    def _lengths(self, places: Floats, nodes: Ints) -> Floats:
        """(n, k) of the straight ways to nodes (n, k), inf to those that are not seen."""
        start, end = np.repeat(places, nodes.shape[1], axis=0), self.nodes[nodes.ravel()]
        lengths = np.where(self.sees(start, end), np.hypot(*(end - start).T), np.inf)
        return np.asarray(lengths.reshape(nodes.shape))

    def part(self, places: Floats) -> Ints:
        """Number (n,) of the connected part that a place is in."""
        return np.asarray(self._part_tree.nearest(shapely.points(places)))

    def links(self) -> tuple[Ints, Ints]:
        from scipy.spatial import cKDTree

        if np.isinf(self._radius):
            i, j = np.triu_indices(len(self.nodes), 1)
        else:
            i, j = cKDTree(self.nodes).query_pairs(self._radius, output_type="ndarray").T
        free = self.sees(self.nodes[i], self.nodes[j])
        return i[free], j[free]


class Network(Walkable):
    """segments: (E, 4) edges in units of the box; what reaches beyond it is cut off."""

    def __init__(self, segments: Floats) -> None:
        lines = shapely.linestrings(segments.reshape(-1, 2, 2))
        within = shapely.get_parts(shapely.intersection(lines, shapely.box(0, 0, 1, 1)))
        within = within[shapely.get_type_id(within) == shapely.GeometryType.LINESTRING]
        ends = np.round(shapely.get_coordinates(within) / _SAME) * _SAME
        self.nodes, number = np.unique(ends, axis=0, return_inverse=True)
        self._ends = number.reshape(-1, 2)
        self.empty = len(self._ends) == 0
        self._edges = self.nodes[self._ends].reshape(-1, 4)
        self._tree = shapely.STRtree(shapely.linestrings(self._edges.reshape(-1, 2, 2)))
        self._tree.query(shapely.box(0, 0, 1, 1))  # which builds it, before threads ask

    def _on(self, points: Floats) -> tuple[Floats, Ints]:
        """Nearest places (n, 2) on edges, and the edges (n,)."""
        edges = self._tree.nearest(shapely.points(points))
        return _on_edges(points, self._edges[edges]), edges

    def inside(self, points: Floats) -> Mask:
        """On an edge, up to rounding."""
        inside: Mask = np.hypot(*(points - self._on(points)[0]).T) <= MARGIN
        return inside

    def nearest(self, points: Floats) -> Floats:
        return self._on(points)[0]

    def moved(self, places: Floats, offsets: Floats) -> Floats:
        """To the edge that is nearest then."""
        return self.nearest(places + offsets)

    def touched(self, per_side: int) -> Mask:
        touched = np.zeros(per_side**2, bool)
        touched[self._tree.query(_cells(per_side), predicate="intersects")[0]] = True
        return touched.reshape(per_side, per_side)

    def sees(self, a: Floats, b: Floats) -> Mask:
        """On the same edge."""
        return np.asarray(self._on(a)[1] == self._on(b)[1])

    def each_sees(self, x: Floats, y: Floats) -> Mask:
        return np.asarray(self._on(x)[1][:, None] == self._on(y)[1])

    def seen(self, places: Floats) -> Seen:
        """Both ends of the edge."""
        on, edge = self._on(places)
        nodes = self._ends[edge]
        return Seen(nodes, np.linalg.norm(self.nodes[nodes] - on[:, None], axis=-1))

    def part(self, places: Floats) -> Ints:
        from scipy.sparse.csgraph import connected_components

        parts = connected_components(self._graph, directed=False)[1]
        return np.asarray(parts[self._ends[self._on(places)[1], 0]], np.int64)

    def links(self) -> tuple[Ints, Ints]:
        """The edges; of two between the same nodes, one."""
        i, j = np.unique(np.sort(self._ends, axis=1), axis=0).T
        return i, j


Region = Area | Network


def area_of(segments: Floats) -> Any:
    """The polygons between segments (E, 4): places from which a ray crosses an odd number of them
    (even-odd rule), so that holes, several parts and islands in lakes need nothing else."""
    lines = shapely.linestrings(segments.reshape(-1, 2, 2))
    faces = shapely.get_parts(shapely.polygonize([shapely.union_all(lines)]))
    x0, y0, x1, y1 = segments.T
    odd = np.zeros(len(faces), bool)
    for k, (x, y) in enumerate(shapely.get_coordinates(shapely.point_on_surface(faces))):
        over = np.flatnonzero((y0 <= y) != (y1 <= y))
        crossing = x0[over] + (y - y0[over]) * (x1 - x0)[over] / (y1 - y0)[over]
        odd[k] = (crossing > x).sum() % 2
    return shapely.union_all(faces[odd])


def _polygons(shape: Any) -> Any:
    """Those of a geometry that has any."""
    parts = shapely.get_parts(shape)
    polygons = shapely.get_type_id(parts) == shapely.GeometryType.POLYGON
    return parts[polygons & ~shapely.is_empty(parts)]


def _segments(rings: Any) -> Floats:
    """(E, 4) of rings."""
    places, ring = shapely.get_coordinates(rings, return_index=True)
    return np.hstack([places[:-1], places[1:]])[ring[:-1] == ring[1:]]


def _cross(a: Floats, b: Floats) -> Floats:
    """a × b of places (..., 2)."""
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])


def _cells(per_side: int) -> Any:
    """The cells of a grid, the first axis slowest; their upper sides are the next one's."""
    low = np.indices((per_side, per_side)).reshape(2, -1) / per_side
    high = low + (1 - 1e-9) / per_side
    return shapely.box(*low, *np.where(high > 1 - 1.5e-9 / per_side, 1.0, high))


def _on_edges(points: Floats, edges: Floats) -> Floats:
    """The place of each edge (n, 4) that is nearest to a point (n, 2)."""
    start, step = edges[:, :2], edges[:, 2:] - edges[:, :2]
    square = np.maximum((step**2).sum(axis=1), 1e-300)
    share = np.clip(((points - start) * step).sum(axis=1) / square, 0.0, 1.0)
    return np.asarray(start + share[:, None] * step)
