"""Longitude and latitude as people know them: a map behind the picture, ways in kilometres.

Both follow from public bounds and from sampled people alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.space import from_unit
from privtraj.columns.precision import degrees, kilometres, speed_unit
from privtraj.report.coastline import Outlines, Window, outlines
from privtraj.report.page_data import Sampled, maps, packed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privtraj.model.paths import Paths

LAND, SEA, COAST = "#f3f0e7", "#e6eff4", "#a9a48f"  # of figures; pages have their own in page.css

_MARGIN = 2.0  # a page's window over the box: pictures twice as wide as high are filled
_FAST = 0.95  # quantile of speeds


def window(bounds: Floats) -> Window:
    """Around public bounds (2, 2) of longitude and latitude, about as wide as high in kilometres,
    so that it fills a picture of any shape."""
    (west, east), (south, north) = bounds.tolist()
    shrink = max(float(np.cos(np.radians((south + north) / 2))), 0.05)
    half = _MARGIN * max((east - west) * shrink, north - south) / 2
    across, up = min(half / shrink, 180.0), half
    x, y = (west + east) / 2, (south + north) / 2
    return x - across, x + across, max(y - up, -90.0), min(y + up, 90.0)


def backdrop(shown: Sampled) -> dict[str, Any] | None:
    """The map of a page, if its people have longitude and latitude: two bytes for each number."""
    at = degrees(tuple(column.name for column in shown.numbers), shown.bounds)
    if at is None:
        return None
    seen = window(shown.bounds[list(at)])
    found = outlines(seen)
    return {
        "axes": at,
        "window": seen,
        "land": _packed(found.land, seen),
        "borders": _packed(found.borders, seen),
    }


def _packed(lines: list[Floats], seen: Window) -> dict[str, Any]:
    """Points of all lines, as shares of the window, and how many each line has."""
    low, size = np.array(seen[::2]), np.array([seen[1] - seen[0], seen[3] - seen[2]])
    points = np.concatenate(lines) if lines else np.empty((0, 2))
    return {"points": packed((points - low) / size), "sizes": [len(line) for line in lines]}


def draw_map(axes: Axes, paths: Paths, across: str, up: str) -> None:
    """The proportions of a map where two features are places, and what is behind them if those are
    longitude and latitude."""
    rows = paths.rows(paths.values)
    bounds = np.stack([np.nanmin(rows, axis=0), np.nanmax(rows, axis=0)], axis=1)
    drawn = tuple(paths.features.index(name) for name in (across, up))
    for i, j, unit in maps(paths.features, bounds):
        if (i, j) == drawn:
            axes.set_aspect(1 / unit)
    if degrees(paths.features, bounds) == drawn:
        draw_backdrop(axes)


def draw_backdrop(axes: Axes) -> None:
    """Sea, land and borders behind what axes of longitude and latitude show."""
    from matplotlib.collections import LineCollection

    limits = axes.get_xlim(), axes.get_ylim()
    (west, east), (south, north) = map(sorted, limits)
    found = outlines((west, east, south, north))
    axes.set_facecolor(SEA)
    if found.land:
        axes.add_patch(_land(found))
    axes.add_collection(LineCollection(found.borders, color=COAST, lw=0.8, ls="--", zorder=0.2))
    axes.set(xlim=limits[0], ylim=limits[1])


def _land(found: Outlines) -> Any:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    rings = [Path(np.concatenate([ring, ring[:1]]), closed=True) for ring in found.land]
    whole = Path.make_compound_path(*rings)
    return PathPatch(whole, facecolor=LAND, edgecolor=COAST, lw=0.8, zorder=0.1)


@dataclass(frozen=True)
class Ways:
    """Of synthetic people on the globe, in words: how far they go, and how fast."""

    unit: str  # of speeds
    usual: str
    low: str
    high: str
    speed: str
    fast: str


def ways(shown: Sampled, time_name: str, datetime: bool) -> Ways | None:
    """Lengths, of half of the people, and speeds, usual and fast, from frame to frame of a page."""
    at = degrees(tuple(column.name for column in shown.numbers), shown.bounds)
    if at is None:
        return None
    places = from_unit(shown.people, shown.bounds)[..., list(at)]
    steps = kilometres(places[:, :-1], places[:, 1:])
    low, usual, high = np.quantile(steps.sum(axis=1), (0.25, 0.5, 0.75))
    hours = np.diff(shown.times) / (3600 if datetime else 1)
    speed, fast = np.quantile(steps / hours, (0.5, _FAST))
    words = (two_digits(value) for value in (usual, low, high, speed, fast))
    return Ways(speed_unit(time_name, datetime), *words)


def two_digits(value: float) -> str:
    """As it is known from a sample: 14, 0.37, 1200."""
    return f"{float(f'{value:.2g}'):g}"
