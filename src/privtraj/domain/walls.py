"""Walls: line segments in the plane, which separate inside from outside and end what people see.

A place is inside if a ray from it crosses an odd number of walls (even-odd rule): holes, several
parts and islands in lakes need nothing else. Walls are filed by strips of y, so that a question is
asked of few of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from privtraj.base.arrays import Floats, Ints, Mask
from privtraj.domain.constants import MOST_SAMPLES, SAMPLE_STEP

_MOST_STRIPS = 256
_BLOCK = 2**16  # walls that are asked at a time: as many as a processor has at hand
_JOINT = (
    1e-9  # by which walls are longer than they are, so that nobody slips through where two meet
)


class Walls:
    """segments: (E, 4) as x0, y0, x1, y1."""

    def __init__(self, segments: Floats) -> None:
        self.segments = segments
        low, high = np.sort(segments[:, [1, 3]], axis=1).T
        strips = int(np.clip(len(segments) // 4, 1, _MOST_STRIPS))
        self._origin, reach = low.min(), max(high.max() - low.min(), 1e-300)
        self._scale, self._last = strips / reach, strips - 1
        first, last = self._strip(low), self._strip(high)
        wall, strip = spans(first, last - first + 1)
        order = np.argsort(strip, kind="stable")
        self._walls = wall[order]  # of all strips in turn
        self._begin = np.searchsorted(strip[order], np.arange(strips + 1))
        self._x, self._y = np.ascontiguousarray(segments[:, :2].T)
        self._along_x, self._along_y = np.ascontiguousarray((segments[:, 2:] - segments[:, :2]).T)
        self._west, self._east = np.ascontiguousarray(np.sort(segments[:, ::2], axis=1).T)

    def _strip(self, y: Floats) -> Ints:
        place = np.clip((y - self._origin) * self._scale, 0, self._last)
        return place.astype(np.int64)

    def inside(self, points: Floats) -> Mask:
        """Whether points (n, 2) are, by the even-odd rule."""
        strip = self._strip(points[:, 1])
        begin, end = self._begin[strip], self._begin[strip + 1]
        inside = np.zeros(len(points), bool)
        for part in _blocks(end - begin):
            inside[part] = self._inside(points[part], begin[part], end[part])
        return inside

    def _inside(self, points: Floats, begin: Ints, end: Ints) -> Mask:
        point, at = spans(begin, end - begin)
        x0, y0, x1, y1 = self.segments[self._walls[at]].T
        x, y = points[point].T
        over = (y0 <= y) != (y1 <= y)
        crossing = x0 + (y - y0) * (x1 - x0) / np.where(over, y1 - y0, 1.0)
        return np.bincount(point[over & (crossing > x)], minlength=len(points)) % 2 == 1

    def reach(self, a: Floats, b: Floats) -> Floats:
        """Share (n,) of the straight way from a (n, 2) to b (n, 2) to the first wall; inf if none.

        a + t (b - a) = p + s (q - p) for a wall from p to q.
        """
        first, last = (self._strip(f(a[:, 1], b[:, 1])) for f in (np.minimum, np.maximum))
        begin, end = self._begin[first], self._begin[last + 1]  # strips follow each other
        shares = np.full(len(a), np.inf)
        for part in _blocks(end - begin):
            shares[part] = self._reach(a[part], b[part], begin[part], end[part])
        return shares

    def _reach(self, a: Floats, b: Floats, begin: Ints, end: Ints) -> Floats:
        west, east = np.minimum(a[:, 0], b[:, 0]) - _JOINT, np.maximum(a[:, 0], b[:, 0]) + _JOINT
        way, at = spans(begin, end - begin)
        wall = self._walls[at]
        met = (self._east[wall] >= west[way]) & (self._west[wall] <= east[way])
        way, wall = way[met], wall[met]
        x, y, u, v = (column[way] for column in (*a.T, *(b - a).T))
        x, y = self._x[wall] - x, self._y[wall] - y  # from the start to the wall
        along_x, along_y = self._along_x[wall], self._along_y[wall]
        turn = u * along_y - v * along_x
        slope = np.where(turn == 0, np.inf, turn)  # who walks beside a wall does not meet it
        t, s = (x * along_y - y * along_x) / slope, (x * v - y * u) / slope
        hit = (turn != 0) & (t >= 0) & (t <= 1) & (s >= -_JOINT) & (s <= 1 + _JOINT)
        shares = np.full(len(a), np.inf)
        np.minimum.at(shares, way[hit], t[hit])
        return shares


def spans(begin: Ints, length: Ints) -> tuple[Ints, Ints]:
    """Of each i the numbers begin_i, .., begin_i + length_i - 1: whose (s,) and which (s,)."""
    owner = np.repeat(np.arange(len(begin)), length)
    before = np.cumsum(length) - length
    return owner, np.arange(len(owner)) - np.repeat(before - begin, length)


def _blocks(work: Ints) -> Iterator[slice]:
    """Slices of questions, each of as much work (n,) as fits into memory, or of one question."""
    cuts = np.flatnonzero(np.diff(np.cumsum(work) // _BLOCK)) + 1
    for first, last in pairwise([0, *cuts.tolist(), len(work)]):
        yield slice(first, last)


def clipped(segments: Floats) -> Floats:
    """The parts of segments (E, 4) inside the unit square (Liang and Barsky)."""
    start, step = segments[:, :2], segments[:, 2:] - segments[:, :2]
    first, last = np.zeros(len(segments)), np.ones(len(segments))
    for axis in (0, 1):
        flat = step[:, axis] == 0
        slope = np.where(flat, 1.0, step[:, axis])
        ends = np.sort(np.stack([-start[:, axis], 1 - start[:, axis]]) / slope, axis=0)
        away = flat & ((start[:, axis] < 0) | (start[:, axis] > 1))
        first = np.where(flat, np.where(away, 2.0, first), np.maximum(first, ends[0]))
        last = np.where(flat, last, np.minimum(last, ends[1]))
    kept = first < last
    start, step, first, last = start[kept], step[kept], first[kept, None], last[kept, None]
    return np.clip(np.hstack([start + first * step, start + last * step]), 0.0, 1.0)


class Outline:
    """Segments (E, 4) in the unit square, of which the nearest to a place can be found."""

    def __init__(self, segments: Floats) -> None:
        from scipy.spatial import cKDTree

        self.segments = segments
        lengths = np.hypot(*(segments[:, 2:] - segments[:, :2]).T)
        self.step = max(SAMPLE_STEP, float(lengths.sum()) / MOST_SAMPLES)  # between samples
        steps = np.ceil(lengths / self.step).astype(np.int64)
        owner, number = spans(np.zeros_like(steps), steps + 1)
        share = (number / np.maximum(steps[owner], 1))[:, None]
        self.samples = (1 - share) * segments[owner, :2] + share * segments[owner, 2:]
        self._owner, self._tree = owner, cKDTree(self.samples)

    def nearest(self, points: Floats, among: int = 4, off_ends: float = 0.0) -> tuple[Floats, Ints]:
        """Nearest places (n, k, 2) on the segments that seem nearest, and which these are (n, k).

        In the order of their distance to points (n, 2); a segment may be there more than once.
        off_ends: how far from the ends of a segment places have to be.
        """
        among = min(among, len(self.samples))
        found = self._owner[self._tree.query(points, among)[1].reshape(len(points), among)]
        start, end = self.segments[found, :2], self.segments[found, 2:]
        step = end - start
        square = np.maximum((step**2).sum(axis=-1), 1e-300)
        end_share = np.minimum(off_ends / np.sqrt(square), 0.5)
        share = ((points[:, None] - start) * step).sum(axis=-1) / square
        share = np.clip(share, end_share, 1 - end_share)
        places = start + share[..., None] * step
        order = np.argsort(((places - points[:, None]) ** 2).sum(axis=-1), axis=1, kind="stable")
        return (
            np.take_along_axis(places, order[..., None], axis=1),
            np.take_along_axis(found, order, axis=1),
        )
