"""Line segments from what people have: GeoJSON, masks, lists and tables of edges.

Everything here may come from anybody, and is public: what cannot be used gets one sentence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Mask
from privtraj.base.errors import InputError
from privtraj.base.files import MOST_BYTES, strict_json

MOST_PIXELS = 4096**2

_LINES, _AREAS = ("LineString", "MultiLineString"), ("Polygon", "MultiPolygon")


def geojson_segments(given: Any) -> tuple[Floats, bool]:
    """Segments (E, 4) of all polygons or of all lines, and whether they are polygons."""
    shapes = list(_geometries(_parsed(given)))
    kinds = {shape.get("type") in _AREAS for shape in shapes}
    if len(kinds) != 1:
        raise InputError(
            "the GeoJSON of a domain must hold polygons, or lines for a network, and one kind only"
        )
    rings = [line for shape in shapes for line in _lines(shape)]
    area = kinds == {True}
    pieces = [_joined(ring, closed=area) for ring in rings]
    return np.concatenate(pieces) if pieces else np.zeros((0, 4)), area


def _parsed(given: Any) -> Any:
    if isinstance(given, Mapping):
        return given
    if isinstance(given, str) and given.lstrip().startswith("{"):
        data = given.encode()
    else:
        data = read_bytes(given)
    try:
        return strict_json(data)
    except ValueError:
        raise InputError(
            "the domain is no GeoJSON, or a very large one: give a file of at most 8 MB with "
            "polygons or lines, simplified if need be"
        ) from None


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


def _geometries(value: Any) -> Iterator[dict[str, Any]]:
    """All geometries of a GeoJSON object, however nested; points are passed over."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind == "FeatureCollection":
        inside = value.get("features")
    elif kind == "GeometryCollection":
        inside = value.get("geometries")
    elif kind == "Feature":
        inside = [value.get("geometry")]
    else:
        inside = None
    if isinstance(inside, list):
        for item in inside:
            yield from _geometries(item)
    elif kind in (*_LINES, *_AREAS):
        yield dict(value)


def _lines(shape: Mapping[str, Any]) -> list[Floats]:
    """Rings of polygons, or lines, each (p, 2)."""
    depth = {"LineString": 0, "MultiLineString": 1, "Polygon": 1, "MultiPolygon": 2}
    lists: list[Any] = [shape.get("coordinates")]
    try:
        for _ in range(depth[shape["type"]]):
            lists = [line for many in lists for line in many or ()]
        lines = [np.array([place[:2] for place in line], np.float64) for line in lists]
    except (TypeError, ValueError, KeyError):
        raise _no_places() from None
    if not all(line.ndim == 2 and line.shape[1] == 2 and len(line) >= 2 for line in lines):
        raise _no_places()
    return lines


def _no_places() -> InputError:
    return InputError(
        "the domain has coordinates that cannot be read: every ring or line must list places of "
        "two numbers, x (or longitude) first"
    )


def _joined(line: Floats, closed: bool) -> Floats:
    """Segments from place to place (p, 2), and from the last to the first if closed."""
    if closed and (line[0] != line[-1]).any():
        line = np.concatenate([line, line[:1]])
    return np.hstack([line[:-1], line[1:]])


def mask_segments(mask: Any, extent: Any) -> Floats:
    """The sides (E, 4) between the pixels of a mask (rows, columns) that are inside and others.

    Row 0 is the top (largest y), as of an image.  extent: (xmin, xmax, ymin, ymax) of all of it.
    """
    inside = _mask(mask)
    try:
        x0, x1, y0, y1 = (float(value) for value in extent)
    except (TypeError, ValueError):
        x0, x1, y0, y1 = (np.nan,) * 4
    if not (np.isfinite([x0, x1, y0, y1]).all() and x0 < x1 and y0 < y1):
        raise InputError("the extent of a mask must be four numbers: (xmin, xmax, ymin, ymax)")
    rows, columns = inside.shape
    upright, level = _sides(inside), _sides(inside.T)  # (s, 3): line, from, to
    xs, ys = np.linspace(x0, x1, columns + 1), np.linspace(y1, y0, rows + 1)
    vertical = np.stack(
        [xs[upright[:, 0]], ys[upright[:, 1]], xs[upright[:, 0]], ys[upright[:, 2]]], axis=1
    )
    horizontal = np.stack(
        [xs[level[:, 1]], ys[level[:, 0]], xs[level[:, 2]], ys[level[:, 0]]], axis=1
    )
    return np.concatenate([vertical, horizontal])


def _mask(mask: Any) -> Mask:
    array = np.asarray(mask)
    if array.ndim != 2 or array.dtype.kind not in "biuf" or array.size > MOST_PIXELS:
        raise InputError(
            "the mask of a domain must be a table of true and false, one for each pixel, and of at "
            "most 4096 x 4096 of them"
        )
    inside: Mask = array != 0
    return inside


def _sides(inside: Mask) -> NDArray[np.int64]:
    """Runs (s, 3) of upright sides between pixels that differ: column line, first and last row."""
    padded = np.pad(inside, ((0, 0), (1, 1))).astype(np.int8)
    change = np.diff(padded, axis=1)  # (rows, columns + 1)
    framed = np.pad(change, ((1, 1), (0, 0)))
    begins = (framed[1:] != framed[:-1]) & (framed[1:] != 0)
    ends = (framed[1:] != framed[:-1]) & (framed[:-1] != 0)
    line, first = np.nonzero(begins.T)
    last = np.nonzero(ends.T)[1]
    return np.stack([line, first, last], axis=1)


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
    if isinstance(edges, str | os.PathLike) and str(edges).lower().endswith(".csv"):
        return _csv_edges(Path(edges))
    if isinstance(edges, str | os.PathLike | Mapping):
        segments, area = geojson_segments(edges)
        if area:
            raise InputError(
                "a network is made of lines, and these are polygons: use Domain.polygon"
            )
        return segments
    try:
        return np.asarray(edges, np.float64).reshape(len(edges), 4)
    except (TypeError, ValueError):
        raise _no_edges("the edges of a network") from None


def _csv_edges(path: Path) -> Floats:
    lines = read_bytes(path).decode("utf-8", errors="replace").splitlines()
    try:
        return np.array([[float(cell) for cell in line.split(",")] for line in lines[1:] if line])
    except ValueError:
        raise _no_edges(f"'{path}'") from None


def _no_edges(what: str) -> InputError:
    return InputError(f"{what} must be pairs of places: x0, y0, x1, y1 of each edge")


def as_text(value: Mapping[str, Any]) -> str:
    """JSON of which a hash can be taken."""
    return json.dumps(value, sort_keys=True, allow_nan=False)
