"""An area of the unit square: polygons with holes, in several parts, or the cells of a mask.

Shortest ways turn only at corners that stick out into the area, so these are the nodes, moved
inside by `MARGIN`; if there are many, near ones only are linked, over places in between, and ways
are straightened afterwards. The box needs no walls: it is convex, and who goes straight between two
places of it stays in it.
"""

from __future__ import annotations

import numpy as np

from privtraj.base.arrays import Floats, Ints, Mask
from privtraj.domain.constants import (
    CLEAR_SIDE,
    CORNERS_SEEN,
    DIRECTIONS,
    FEW_PULLS,
    FEW_SIDE,
    LINK_RADIUS,
    MANY_PULLS,
    MANY_SIDE,
    MARGIN,
    MOST_EXACT,
    MOST_LOOKED,
    NEAR,
    PLACES_SEEN,
    SUBCELLS,
)
from privtraj.domain.ground import Ground, Seen
from privtraj.domain.walls import Outline, Walls, clipped


class Area(Ground):
    """segments: (E, 4) walls in units of the box; they may reach beyond it."""

    def __init__(self, segments: Floats) -> None:
        self._walls = Walls(segments)
        within = clipped(segments)
        self._outline = Outline(within) if len(within) else None
        self._clear = self._clearance()
        corners, reflex = self._corners(np.unique(segments.reshape(-1, 2), axis=0))
        many = int(reflex.sum()) > MOST_EXACT
        side, self.pulls = (MANY_SIDE, MANY_PULLS) if many else (FEW_SIDE, FEW_PULLS)
        places = _centres(side)
        places = places[self.inside(places)]
        if many:
            along = self._outline.samples if self._outline is not None else corners[:0]
            more, _ = self._corners(along[_one_per_cell(along, 2 * side)])
            corners, reflex = corners[reflex], reflex[reflex]
            corners = corners[_one_per_cell(corners, 4 * side)]
            places = np.concatenate([places, more])
        else:
            places = np.concatenate([places, corners[~reflex]])
            corners = corners[reflex]
        self._radius = LINK_RADIUS / side if many else np.inf
        self._turns = len(corners)
        self.nodes = np.concatenate([corners, places])

    @property
    def empty(self) -> bool:
        """Whether nothing of it is in the box."""
        return len(self.nodes) == 0

    def inside(self, points: Floats) -> Mask:
        """By the even-odd rule, and in the box."""
        known = self._clear[_cell(points, CLEAR_SIDE)]
        inside: Mask = known > 0
        unsure = np.flatnonzero(known == 0)
        inside[unsure] = self._walls.inside(points[unsure])
        return inside & ((points >= 0) & (points <= 1)).all(axis=1)

    def _clearance(self) -> Floats:
        """(side, side) distance from every place of a cell to any wall at least; below 0 outside.

        0 for what cells near a wall cannot tell.
        """
        from scipy.ndimage import distance_transform_edt

        walled = np.zeros((CLEAR_SIDE, CLEAR_SIDE), bool)
        if self._outline is not None:
            walled[_cell(self._outline.samples, CLEAR_SIDE)] = True
        far = np.full(walled.shape, np.inf)
        if walled.any():
            far = distance_transform_edt(~walled)
        step = 0.0 if self._outline is None else self._outline.step
        # less two half cells, and as far as the next sample may be
        lower = np.maximum(far - 3 - step * CLEAR_SIDE, 0) / CLEAR_SIDE
        lower = np.minimum(lower, 2.0)
        signs = np.where(self._walls.inside(_centres(CLEAR_SIDE)), 1.0, -1.0)
        clear: Floats = lower * signs.reshape(walled.shape)
        return clear

    def _corners(self, points: Floats) -> tuple[Floats, Mask]:
        """Points of the walls moved inside, as far as they can be, and which of them stick out.

        The way inside is the middle of the longest run of directions that are; it is more than half
        of them where a corner of the wall sticks out into the area.
        """
        points = points[((points >= 0) & (points <= 1)).all(axis=1)]
        directions = int(np.clip(MOST_LOOKED // max(len(points), 1), 16, DIRECTIONS))
        angle = 2 * np.pi * (np.arange(directions) + 0.5) / directions
        around = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        near = points[:, None] + MARGIN * around
        inside = self._walls.inside(near.reshape(-1, 2)).reshape(len(points), directions)
        length, end = _longest_run(inside)
        middle = angle[0] + 2 * np.pi * (end - (length - 1) / 2) / directions
        moved = points + MARGIN * np.stack([np.cos(middle), np.sin(middle)], axis=1)
        good = (length > 0) & self.inside(moved)
        return moved[good], (2 * length > directions)[good]

    def nearest(self, points: Floats) -> Floats:
        """Off the wall by `MARGIN`, also for who stands in one; a node where that is not inside."""
        points = np.clip(points, 0.0, 1.0)
        wrong = ~self.inside(points)
        if self._outline is not None:
            close = np.flatnonzero(self.beside_wall(points))
            on_wall = self._outline.nearest(points[close])[0][:, 0]
            wrong[close] |= np.hypot(*(points[close] - on_wall).T) < MARGIN / 2
        if wrong.any():
            points[wrong] = self.off_wall(points[wrong])
        return points

    def off_wall(self, points: Floats) -> Floats:
        """`MARGIN` off the nearest wall, on its inner side."""
        from scipy.spatial import cKDTree

        snapped = self.nodes[cKDTree(self.nodes).query(points)[1]]
        if self._outline is None:
            return snapped
        places, which = self._outline.nearest(points, off_ends=MARGIN)
        walls = self._outline.segments[which]
        normal = np.stack([walls[..., 1] - walls[..., 3], walls[..., 2] - walls[..., 0]], axis=-1)
        normal *= MARGIN / np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-300)
        for k in reversed(range(places.shape[1])):
            for side in (normal[:, k], -normal[:, k]):
                tried = places[:, k] + side
                fits = self.inside(tried)
                snapped[fits] = tried[fits]
        return snapped

    def moved(self, places: Floats, offsets: Floats) -> Floats:
        """What would leave through a wall comes back from it, the way it came: as `space.fold`."""
        moved = places + offsets
        near = np.hypot(*offsets.T) >= self._clear[_cell(places, CLEAR_SIDE)]
        near |= ((moved < 0) | (moved > 1)).any(axis=1)
        near_places, near_offsets = places[near], offsets[near]
        reach = self._walls.reach(near_places, near_places + near_offsets)
        with np.errstate(divide="ignore", invalid="ignore"):
            to_box = (np.where(near_offsets > 0, 1.0, 0.0) - near_places) / near_offsets
        to_box = np.where(near_offsets == 0, np.inf, to_box).min(axis=1)
        reach = np.minimum(reach, np.maximum(to_box, 0.0)) * (1 - 1e-3)
        back = 2 * np.clip(reach, 1e-12, 1.0)
        share = np.where(reach >= 1 - 1e-3, 1.0, np.abs(1 - back * np.rint(1 / back)))
        moved[near] = near_places + share[:, None] * near_offsets
        left = ~self.inside(moved)  # rounding, of somebody who stood in a wall
        moved[left] = places[left]
        return moved

    def beside_wall(self, points: Floats) -> Mask:
        known: Mask = self._clear[_cell(points, CLEAR_SIDE)] == 0
        return known

    def touched(self, per_side: int) -> Mask:
        """By places in every cell, and by the walls that cross it."""
        points = _centres(SUBCELLS * per_side)
        inside = self.inside(points).reshape(per_side, SUBCELLS, per_side, SUBCELLS)
        touched: Mask = inside.max(axis=(1, 3))
        if self._outline is not None:
            touched[_cell(self._outline.samples, per_side)] = True
        return touched

    def sees(self, a: Floats, b: Floats) -> Mask:
        sees = np.hypot(*(b - a).T) < self._clear[_cell(a, CLEAR_SIDE)]
        unsure = np.flatnonzero(~sees)
        sees[unsure] = np.isinf(self._walls.reach(a[unsure], b[unsure]))
        return sees

    def sees_each(self, x: Floats, y: Floats) -> Mask:
        """Where corners are many, of those alone that are near: to others nodes lead as well."""
        sees = np.zeros((len(x), len(y)), bool)
        i, j = np.nonzero(np.linalg.norm(x[:, None] - y, axis=-1) <= NEAR * self._radius)
        sees[i, j] = self.sees(x[i], y[j])
        return sees

    def seen(self, places: Floats) -> Seen:
        """Among the nearest corners and the nearest other nodes; all nodes if none of these."""
        corners, others = self.nodes[: self._turns], self.nodes[self._turns :]
        near = _nearest_of(corners, places, CORNERS_SEEN), _nearest_of(others, places, PLACES_SEEN)
        seen = self._seen_of(places, np.hstack([near[0], near[1] + self._turns]))
        blind = np.flatnonzero(np.isinf(seen.lengths).all(axis=1))
        for i in blind:
            row = self._seen_of(
                np.repeat(places[i : i + 1], len(self.nodes), axis=0),
                np.arange(len(self.nodes))[:, None],
            )
            order = np.argsort(row.lengths[:, 0])[: seen.nodes.shape[1]]
            seen.nodes[i, : len(order)] = order
            seen.lengths[i, : len(order)] = row.lengths[order, 0]
        return seen

    def _seen_of(self, places: Floats, nodes: Ints) -> Seen:
        k = nodes.shape[1]
        start, end = np.repeat(places, k, axis=0), self.nodes[nodes.ravel()]
        lengths = np.where(self.sees(start, end), np.hypot(*(end - start).T), np.inf)
        return Seen(nodes, lengths.reshape(len(places), k))

    def _links(self) -> tuple[Ints, Ints]:
        from scipy.spatial import cKDTree

        if np.isinf(self._radius):
            i, j = np.triu_indices(len(self.nodes), 1)
        else:
            i, j = cKDTree(self.nodes).query_pairs(self._radius, output_type="ndarray").T
        free = self.sees(self.nodes[i], self.nodes[j])
        return i[free], j[free]


def _centres(side: int) -> Floats:
    """(side ** 2, 2) of the cells of a grid, the first axis slowest."""
    return (np.indices((side, side)).reshape(2, -1).T + 0.5) / side


def _cell(points: Floats, side: int) -> tuple[Ints, Ints]:
    """Cells of a grid that points (n, 2) are in, as two indices."""
    cells = np.clip(points * side, 0, side - 1).astype(np.int64)
    return cells[:, 0], cells[:, 1]


def _one_per_cell(points: Floats, side: int) -> Ints:
    x, y = _cell(points, side)
    return np.unique(x * side + y, return_index=True)[1]


def _nearest_of(nodes: Floats, places: Floats, most: int) -> Ints:
    from scipy.spatial import cKDTree

    most = min(most, len(nodes))
    if most == 0:
        return np.zeros((len(places), 0), np.int64)
    return cKDTree(nodes).query(places, most)[1].reshape(len(places), most)


def _longest_run(rows: Mask) -> tuple[Ints, Ints]:
    """Length (n,) of the longest run of each row (n, k) of a circle, and where it ends (n,)."""
    n, k = rows.shape
    run, longest, end = (np.zeros(n, np.int64) for _ in range(3))
    for turn in range(2 * k):
        run = np.where(rows[:, turn % k], run + 1, 0)
        better = np.minimum(run, k) > longest
        longest, end = np.where(better, run, longest), np.where(better, turn, end)
    return longest, end
