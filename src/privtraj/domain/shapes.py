"""Line segments from what people have: GeoJSON, masks, lists and tables of edges.

Everything here may come from anybody, and is public: what cannot be used gets one sentence.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints, Mask
from privtraj.base.errors import InputError
from privtraj.base.files import MOST_BYTES, strict_json

MOST_PIXELS = 4096**2

_DEPTH = {"LineString": 0, "MultiLineString": 1, "Polygon": 1, "MultiPolygon": 2}
"""Lists around rings of polygons, and around lines."""


def geojson_segments(given: Any) -> tuple[Floats, bool]:
    """Segments (E, 4) of all polygons or of all lines, and whether they are polygons."""
    value = given
    if not isinstance(given, Mapping):
        text = isinstance(given, str) and given.lstrip().startswith("{")
        try:
            value = strict_json(given.encode() if text else read_bytes(given))
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                "the domain is no GeoJSON, or a very large one: give a file of at most 8 MB with "
                "polygons or lines, simplified if need be"
            ) from None
    shapes, left = [], [value]  # all geometries, however nested; points are passed over
    while left:
        item = left.pop()
        kind = item.get("type") if isinstance(item, Mapping) else None
        if kind in _DEPTH:
            shapes.append(item)
        elif kind == "Feature":
            left.append(item.get("geometry"))
        elif kind in ("FeatureCollection", "GeometryCollection"):
            inside = item.get("features" if kind == "FeatureCollection" else "geometries")
            left += inside if isinstance(inside, list) else []
    kinds = {shape["type"].endswith("Polygon") for shape in shapes}
    if len(kinds) != 1:
        raise InputError(
            "the GeoJSON of a domain must hold polygons, or lines for a network, and one kind only"
        )
    area, segments = kinds == {True}, [np.zeros((0, 4))]
    for shape in shapes:
        lists: list[Any] = [shape.get("coordinates")]
        try:
            for _ in range(_DEPTH[shape["type"]]):
                lists = [line for many in lists for line in many or ()]
            lines = [np.array([place[:2] for place in line], np.float64) for line in lists]
            if not all(line.ndim == 2 and line.shape[1] == 2 and len(line) >= 2 for line in lines):
                raise ValueError("no places")
        except (TypeError, ValueError, KeyError):
            raise InputError(
                "the domain has coordinates that cannot be read: every ring or line must list "
                "places of two numbers, x (or longitude) first"
            ) from None
        for line in lines:
            if area and (line[0] != line[-1]).any():  # a ring is closed
                line = np.concatenate([line, line[:1]])
            segments.append(np.hstack([line[:-1], line[1:]]))
    return np.concatenate(segments), area


def read_bytes(given: Any) -> bytes:
    """Of a file, no more than a JSON text may have."""
    try:
        path = Path(given)
    except TypeError:
        raise InputError(
            f"a domain is a file, GeoJSON or pt.Domain, not {type(given).__name__}"
        ) from None
    if not path.is_file():
        raise InputError(f"there is no file '{path}': check the path of the domain")
    with open(path, "rb") as file:
        return file.read(MOST_BYTES + 1)


def mask_segments(mask: Any, extent: Any) -> Floats:
    """The sides (E, 4) between the pixels of a mask (rows, columns) that are inside and others.

    Row 0 is the top (largest y), as of an image.  extent: (xmin, xmax, ymin, ymax) of all of it.
    """
    array = np.asarray(mask)
    if array.ndim != 2 or array.dtype.kind not in "biuf" or array.size > MOST_PIXELS:
        raise InputError(
            "the mask of a domain must be a table of true and false, one for each pixel, and of at "
            "most 4096 x 4096 of them"
        )
    try:
        x0, x1, y0, y1 = (float(value) for value in extent)
    except (TypeError, ValueError):
        x0, x1, y0, y1 = (np.nan,) * 4
    if not (np.isfinite([x0, x1, y0, y1]).all() and x0 < x1 and y0 < y1):
        raise InputError("the extent of a mask must be four numbers: (xmin, xmax, ymin, ymax)")
    (rows, columns), inside = array.shape, array != 0
    xs, ys = np.linspace(x0, x1, columns + 1), np.linspace(y1, y0, rows + 1)
    line, first, last = _sides(inside)
    upright = np.stack([xs[line], ys[first], xs[line], ys[last]], axis=1)
    line, first, last = _sides(inside.T)
    level = np.stack([xs[first], ys[line], xs[last], ys[line]], axis=1)
    return np.concatenate([upright, level])


def _sides(inside: Mask) -> tuple[Ints, Ints, Ints]:
    """Runs of upright sides between pixels that differ: column line, first and last row (s,)."""
    padded = np.pad(inside, ((0, 0), (1, 1))).astype(np.int8)
    framed = np.pad(np.diff(padded, axis=1), ((1, 1), (0, 0)))  # (rows + 2, columns + 1)
    turns = framed[1:] != framed[:-1]
    line, first = np.nonzero((turns & (framed[1:] != 0)).T)
    return line, first, np.nonzero((turns & (framed[:-1] != 0)).T)[1]


def npz_mask(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Arrays `mask` and `extent` of an .npz file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return file["mask"], file["extent"]
    except (OSError, ValueError, KeyError, EOFError):
        raise InputError(
            f"'{path}' is no mask: it must hold two arrays, mask and extent (xmin, xmax, ymin, "
            "ymax), as numpy.savez writes them"
        ) from None


def edge_segments(edges: Any) -> Floats:
    """Segments (E, 4) of a list of ((x0, y0), (x1, y1)), a table (E, 4), a .csv file or GeoJSON."""
    named = isinstance(edges, str | os.PathLike)
    table = named and str(edges).lower().endswith(".csv")
    if not table and (named or isinstance(edges, Mapping)):
        segments, area = geojson_segments(edges)
        if area:
            raise InputError(
                "a network is made of lines, and these are polygons: use Domain.polygon"
            )
        return segments
    try:
        if table:
            lines = read_bytes(edges).decode("utf-8", errors="replace").splitlines()
            return np.array([[float(x) for x in line.split(",")] for line in lines[1:] if line])
        return np.asarray(edges, np.float64).reshape(len(edges), 4)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        what = f"'{edges}'" if table else "the edges of a network"
        raise InputError(f"{what} must be pairs of places: x0, y0, x1, y1 of each edge") from None
