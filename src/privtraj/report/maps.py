"""Longitude and latitude as people know them: coasts and borders behind pictures, ways in
kilometres. All of it follows from public bounds and from sampled people.

Coasts and borders are Natural Earth's, in the public domain, and part of the package: nothing is
fetched, and a page holds only what lies in its window. See `assets/coastline.txt` for where the
file is from.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats
from privtraj.base.space import from_unit
from privtraj.columns.precision import degrees, kilometres, speed_unit
from privtraj.report.people import Sampled, maps, packed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privtraj.domain.domain import Domain
    from privtraj.model.paths import Paths

FILE = "coastline.npz"
UNITS = 200  # in a degree: points are whole numbers of them, half a kilometre each
FINEST = 0.015  # degrees of latitude, 1.7 km, by which lines are off at most
LAND, SEA, COAST = "#f3f0e7", "#e6eff4", "#a9a48f"  # of figures; pages have their own in page.css
EDGE = "#6f6a55"  # of a domain

Window = tuple[float, float, float, float]  # west, east, south, north, in degrees

_FRAME = 0.125  # margin around a window, as a share of it


# On a page -------------------------------------------------------------------------------------


def window(bounds: Floats) -> Window:
    """Around public bounds (2, 2) of longitude and latitude, about as wide as high in kilometres,
    so that it fills a picture of any shape."""
    (west, east), (south, north) = bounds.tolist()
    shrink = max(float(np.cos(np.radians((south + north) / 2))), 0.05)
    # 2: a page's window over the box, so that pictures twice as wide as high are filled
    half = 2.0 * max((east - west) * shrink, north - south) / 2
    across, up = min(half / shrink, 180.0), half
    x, y = (west + east) / 2, (south + north) / 2
    return x - across, x + across, max(y - up, -90.0), min(y + up, 90.0)


def backdrops(shown: Sampled, domain: Domain | None) -> list[dict[str, Any]]:
    """What lies behind two numbers of a page: land and borders if they are longitude and latitude,
    and the domain that people stay in.

    axes: which numbers.  window: outside of it nothing is true.  layers: by name, all points as
    shares of the frame, and how many each line has.
    """
    made = []

    def add(axes: tuple[int, int], frame: Window, **more: Any) -> None:
        low, size = np.array(frame[::2]), np.array([frame[1] - frame[0], frame[3] - frame[2]])
        layers = {
            kind: {
                "points": packed((np.concatenate([np.empty((0, 2)), *lines]) - low) / size),
                "sizes": [len(line) for line in lines],
            }
            for kind, lines in more.pop("layers").items()
        }
        made.append({"axes": axes, "frame": frame, "layers": layers, **more})

    if shown.globe is not None:
        seen = window(shown.bounds[list(shown.globe)])
        layers = dict(zip(("land", "border"), outlines(seen), strict=True))
        add(shown.globe, framed(seen), window=seen, layers=layers, globe=True)
    if domain is not None:
        names = [column.name for column in shown.numbers]
        axes = names.index(str(domain.x)), names.index(str(domain.y))
        box: Any = tuple(shown.bounds[list(axes)].ravel().tolist())
        add(axes, box, window=box, layers={domain.kind: domain_lines(domain, box)}, globe=False)
    return made


def domain_lines(domain: Domain, box: Window) -> list[Floats]:
    """Rings of an area, to be filled by the even-odd rule, or edges of a network, in a box."""
    import shapely

    west, east, south, north = box
    edges = domain.segments.reshape(-1, 2, 2)
    area = domain.kind == "area"
    shape = domain.shape if area else shapely.line_merge(shapely.multilinestrings(edges))
    parts = shapely.get_parts(shapely.clip_by_rect(shape, west, south, east, north))
    return [*map(shapely.get_coordinates, shapely.get_rings(parts) if area else parts)]


def ways(shown: Sampled, time_name: str, datetime: bool) -> dict[str, str] | None:
    """How far people go, half of them between low and high, and how fast, in kilometres."""
    if shown.globe is None:
        return None
    places = from_unit(shown.people, shown.bounds)[..., list(shown.globe)]
    steps = kilometres(places[:, :-1], places[:, 1:])
    low, usual, high = np.quantile(steps.sum(axis=1), (0.25, 0.5, 0.75))
    hours = np.diff(shown.times) / (3600 if datetime else 1)
    speed, fast = np.quantile(steps / hours, (0.5, 0.95))
    numbers = {"low": low, "usual": usual, "high": high, "speed": speed, "fast": fast}
    texts = {name: f"{float(f'{value:.2g}'):g}" for name, value in numbers.items()}
    return texts | {"unit": speed_unit(time_name, datetime)}


# In a figure -----------------------------------------------------------------------------------


def draw_map(axes: Axes, paths: Paths, across: str, up: str, domain: Domain | None = None) -> None:
    """The proportions of a map where two features are places, and behind them sea, land and borders
    if those are longitude and latitude, and the domain."""
    rows = paths.rows(paths.values)
    bounds = np.stack([np.nanmin(rows, axis=0), np.nanmax(rows, axis=0)], axis=1)
    drawn = tuple(paths.features.index(name) for name in (across, up))
    for i, j, unit in maps(paths.features, bounds):
        if (i, j) == drawn:
            axes.set_aspect(1 / unit)
    if degrees(paths.features, bounds) == drawn:
        draw_backdrop(axes)
    if domain is not None and (domain.x, domain.y) == (across, up):
        (west, east), (south, north) = limits = axes.get_xlim(), axes.get_ylim()
        _fill(axes, domain_lines(domain, (west, east, south, north)), domain.kind == "area", EDGE)
        axes.set(xlim=limits[0], ylim=limits[1])


def draw_backdrop(axes: Axes) -> None:
    """Sea, land and borders behind what axes of longitude and latitude show."""
    from matplotlib.collections import LineCollection

    limits = axes.get_xlim(), axes.get_ylim()
    (west, east), (south, north) = map(sorted, limits)
    land, borders = outlines((west, east, south, north))
    axes.set_facecolor(SEA)
    _fill(axes, land, True, COAST)
    axes.add_collection(LineCollection(borders, color=COAST, lw=0.8, ls="--", zorder=0.2))
    axes.set(xlim=limits[0], ylim=limits[1])


def _fill(axes: Axes, lines: list[Floats], closed: bool, edge: str) -> None:
    """Areas between rings, or lines, behind everything else."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if lines:
        whole = Path.make_compound_path(*(Path(line, closed=closed) for line in lines))
        face = LAND if closed else "none"
        axes.add_patch(PathPatch(whole, facecolor=face, edgecolor=edge, lw=0.8, zorder=0.1))


# Coasts and borders ----------------------------------------------------------------------------


def level_of(need: Any) -> NDArray[np.uint8]:
    """The largest k with FINEST 2^k <= need: a line may be so coarse and still has the point."""
    return np.clip(np.floor(np.log2(np.asarray(need) / FINEST)), 0, 15).astype(np.uint8)


@cache
def _lines() -> tuple[Floats, NDArray[np.uint8], NDArray[np.intp], Floats, int]:
    """All lines, one after the other: points (N, 2), their levels (N,), where each line starts
    (L + 1,), boxes (L, 4) west, east, south, north, and how many, the first ones, are closed."""
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
    return points, levels, starts, boxes, rings


def outlines(window: Window) -> tuple[list[Floats], list[Floats]]:
    """Land and borders in a window, as finely as a picture of it can show, cut off at the `framed`
    one around it: where that runs through land it looks like a coast, outside the window.

    Land: rings (n, 2) of longitude, latitude, to be filled by the even-odd rule, holes among them.
    Borders: open lines (n, 2).
    """
    import shapely

    west, east, south, north = window
    points, levels, starts, boxes, rings = _lines()
    size = min((east - west) * np.cos(np.radians((south + north) / 2)), north - south)
    coarse = level_of(max(size / 2500, FINEST))  # off by less than a pixel of a picture
    left, right, bottom, top = framed(window)
    land: list[Floats] = []
    borders: list[Floats] = []
    upright = (boxes[:, 2] <= north) & (boxes[:, 3] >= south)
    for shift in (-360.0, 0.0, 360.0):  # for windows across the edge of the world
        across = (boxes[:, 0] + shift <= east) & (boxes[:, 1] + shift >= west)
        for k in np.flatnonzero(upright & across):
            one, ring = slice(starts[k], starts[k + 1]), k < rings
            line = points[one][levels[one] >= coarse] + [shift, 0.0]
            if len(line) < 2 + ring:  # too small to be seen
                continue
            shape = shapely.Polygon(line) if ring else shapely.LineString(line)
            inside = shapely.get_parts(shapely.clip_by_rect(shape, left, bottom, right, top))
            parts = shapely.get_rings(inside) if ring else inside
            (land if ring else borders).extend(map(shapely.get_coordinates, parts))
    return land, borders


def framed(window: Window) -> Window:
    """A little wider and higher."""
    west, east, south, north = window
    x, y = _FRAME * (east - west), _FRAME * (north - south)
    return west - x, east + x, south - y, north + y
