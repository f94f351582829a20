"""Coastlines and borders behind pictures of longitude and latitude.

They are Natural Earth's, in the public domain, and part of the package: nothing is fetched, and a
page holds only what lies in its window. See `assets/coastline.txt` for where the file is from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats

FILE = "coastline.npz"
UNITS = 200  # in a degree: points are whole numbers of them, half a kilometre each
FINEST = 0.015  # degrees of latitude, 1.7 km, by which lines are off at most

Window = tuple[float, float, float, float]  # west, east, south, north, in degrees

_DETAILS = 2500  # a line may be off by this part of the window, less than a pixel of a picture
_WORLDS = (-360.0, 0.0, 360.0)  # shifts, for windows across the edge of the world


def level_of(need: Any) -> NDArray[np.uint8]:
    """The largest k with FINEST 2^k <= need: a line may be so coarse and still has the point."""
    return np.clip(np.floor(np.log2(np.asarray(need) / FINEST)), 0, 15).astype(np.uint8)


@dataclass(frozen=True, eq=False)
class Outlines:
    """In a window. land: rings (n, 2) of longitude, latitude, to be filled by the even-odd rule,
    holes among them; along the window's edge where land goes on.  borders: open lines (n, 2)."""

    land: list[Floats]
    borders: list[Floats]

    def __bool__(self) -> bool:
        return bool(self.land or self.borders)


@dataclass(frozen=True, eq=False)
class _Lines:
    """All lines, one after the other. points: (N, 2).  levels: (N,).  starts: (L + 1,) where each
    begins.  boxes: (L, 4) west, east, south, north.  rings: so many, the first ones, are closed."""

    points: Floats
    levels: NDArray[np.uint8]
    starts: NDArray[np.intp]
    boxes: Floats
    rings: int


def outlines(window: Window) -> Outlines:
    """What lies in a window, as finely as a picture of it can show."""
    west, east, south, north = window
    known = _lines()
    degrees = min((east - west) * np.cos(np.radians((south + north) / 2)), north - south)
    coarse = level_of(max(degrees / _DETAILS, FINEST))
    found = Outlines([], [])
    for k, shift in _near(known.boxes, window):
        one = slice(known.starts[k], known.starts[k + 1])
        line = known.points[one][known.levels[one] >= coarse] + [shift, 0.0]
        if k < known.rings:
            ring = _clipped_ring(line, window)
            if len(ring) > 2:
                found.land.append(ring)
        else:
            found.borders.extend(_clipped_line(line, window))
    return found


@cache
def _lines() -> _Lines:
    with np.load(str(files("privtraj.report") / "assets" / FILE)) as stored:
        sizes, first, steps = stored["sizes"], stored["first"], stored["steps"].T
        levels, rings = stored["levels"], int(stored["rings"])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    moves = np.insert(steps.astype(np.int64), starts[:-1] - np.arange(len(sizes)), 0, axis=0)
    whole = np.cumsum(moves, axis=0)
    whole += np.repeat(first - whole[starts[:-1]], sizes, axis=0)
    points = whole / UNITS
    low, high = (f.reduceat(points, starts[:-1], axis=0) for f in (np.minimum, np.maximum))
    boxes = np.stack([low[:, 0], high[:, 0], low[:, 1], high[:, 1]], axis=1)
    return _Lines(points, levels, starts, boxes, rings)


def _near(boxes: Floats, window: Window) -> Iterator[tuple[int, float]]:
    """Lines, each with a shift, whose boxes meet the window."""
    west, east, south, north = window
    upright = (boxes[:, 2] <= north) & (boxes[:, 3] >= south)
    for shift in _WORLDS:
        across = (boxes[:, 0] + shift <= east) & (boxes[:, 1] + shift >= west)
        for k in np.flatnonzero(upright & across):
            yield int(k), shift


def _clipped_ring(ring: Floats, window: Window) -> Floats:
    """The part of a closed ring in the window, by Sutherland and Hodgman: one side at a time."""
    for axis, limit, sign in zip((0, 0, 1, 1), window, (1, -1, 1, -1), strict=True):
        if len(ring) < 3:
            break
        depth = sign * (ring[:, axis] - limit)  # at least 0 inside
        if (depth >= 0).all():
            continue
        after, next_depth = np.roll(ring, -1, axis=0), np.roll(depth, -1)
        crossing = (depth >= 0) != (next_depth >= 0)
        share = np.where(crossing, depth, 0.0) / np.where(crossing, depth - next_depth, 1.0)
        cut = ring + share[:, None] * (after - ring)
        both = np.stack([ring, cut], axis=1)
        ring = both[np.stack([depth >= 0, crossing], axis=1)]
    return ring


def _clipped_line(line: Floats, window: Window) -> list[Floats]:
    """The parts of an open line in the window, by Liang and Barsky: of each segment the shares
    from `enter` to `leave`."""
    start, way = line[:-1], np.diff(line, axis=0)
    enter, leave = np.zeros(len(way)), np.ones(len(way))
    for axis, limit, sign in zip((0, 0, 1, 1), window, (1, -1, 1, -1), strict=True):
        depth, gain = sign * (start[:, axis] - limit), sign * way[:, axis]
        at = -depth / np.where(gain == 0, 1.0, gain)
        enter = np.where(gain > 0, np.maximum(enter, at), enter)
        leave = np.where(gain < 0, np.minimum(leave, at), leave)
        leave = np.where((gain == 0) & (depth < 0), -1.0, leave)
    inside = np.flatnonzero(enter < leave)
    if not len(inside):
        return []
    head = start[inside] + enter[inside, None] * way[inside]
    tail = start[inside] + leave[inside, None] * way[inside]
    joined = (np.diff(inside) == 1) & (leave[inside][:-1] == 1) & (enter[inside][1:] == 0)
    pieces = np.split(np.arange(len(inside)), np.flatnonzero(~joined) + 1)
    return [np.concatenate([head[piece], tail[piece[-1:]]]) for piece in pieces]
