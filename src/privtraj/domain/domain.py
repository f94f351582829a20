"""Domain: where people can be at all, as everybody may know: a coast, a building, streets.

It is about two features, x and y, in data units, and made of line segments: the outlines of an
area, or the edges of a network.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
import shapely

from privtraj.base.arrays import Floats, Mask, frozen
from privtraj.base.errors import InputError, listed
from privtraj.base.space import from_unit, to_unit
from privtraj.columns.precision import axes
from privtraj.domain import shapes
from privtraj.domain.region import Area, Network, Region, area_of, asked

MOST_SEGMENTS = 10_000  # of a domain: what a model file can hold and be read in seconds
MOST_MET = 1000  # sides of a domain on a line across it: what makes every question long
MOST_NODES = 4096  # of a network: all shortest ways between them fit into 200 MB
REDRAWS = 16  # of a particle's place in its cell before the nearest place inside is taken

Kind = Literal["area", "network"]

_SHOWN = {"area": "outlines", "network": "edges"}


@dataclass(frozen=True, eq=False, repr=False)
class Domain:
    """Where people can be: `polygon`, `mask` and `network` make one, `read` finds it in a file.

    segments: (E, 4) as x0, y0, x1, y1 in data units.  x, y: the features that it is about; None
    for lon and lat, x and y, or the first two.
    """

    kind: Kind
    segments: Floats = field(repr=False)
    x: str | None = None
    y: str | None = None

    def __post_init__(self) -> None:
        segments: Floats = np.array(self.segments, np.float64).reshape(-1, 4)
        if not np.isfinite(segments).all():
            raise InputError("the domain has coordinates that are not finite: correct them")
        segments = segments[(segments[:, :2] != segments[:, 2:]).any(axis=1)]
        x0, y0, x1, y1 = segments.T
        swap = (x0 > x1) | ((x0 == x1) & (y0 > y1))
        ordered = np.where(swap[:, None], segments[:, [2, 3, 0, 1]], segments)
        segments, counts = np.unique(ordered, axis=0, return_counts=True)
        if self.kind == "area":  # two equal ones are the border between two districts
            segments = segments[counts % 2 == 1]
        if len(segments) == 0:
            raise InputError("the domain is empty: give at least one polygon, pixel or edge")
        if len(segments) > MOST_SEGMENTS:
            raise InputError(
                f"the domain has {len(segments)} sides, and at most {MOST_SEGMENTS} can be used: "
                "simplify it first"
            )
        object.__setattr__(self, "segments", frozen(segments))

    @classmethod
    def polygon(cls, geojson: Any, x: str | None = None, y: str | None = None) -> Domain:
        """The polygons of a GeoJSON file, text or dict; with holes, and in several parts.

        A place is inside if it is inside an odd number of rings, so parts must not overlap.
        """
        segments, area = shapes.geojson_segments(geojson)
        if not area:
            raise InputError("these are lines and no polygons: use Domain.network")
        return cls("area", segments, x, y)

    @classmethod
    def mask(cls, mask: Any, extent: Any, x: str | None = None, y: str | None = None) -> Domain:
        """The pixels of a table (rows, columns) that are not 0; row 0 is at the top, largest y.

        extent: (xmin, xmax, ymin, ymax), the outer sides of the outermost pixels.
        """
        return cls("area", shapes.mask_segments(mask, extent), x, y)

    @classmethod
    def network(cls, edges: Any, x: str | None = None, y: str | None = None) -> Domain:
        """Edges ((x0, y0), (x1, y1)), lines of GeoJSON, or a .csv file with four columns.

        People are on the edges, and change from one to another where both have an end: two that
        only cross, as at a flyover, do not meet.
        """
        return cls("network", shapes.edge_segments(edges), x, y)

    @classmethod
    def read(cls, given: Any, x: str | None = None, y: str | None = None) -> Domain:
        """A domain as it is; of a file: .geojson with polygons or lines, .npz with a mask, .csv."""
        if isinstance(given, Domain):
            return given
        name = str(given).lower() if isinstance(given, str | Path) else ""
        if name.endswith(".npz"):
            return cls.mask(*shapes.npz_mask(Path(given)), x, y)
        if name.endswith(".csv"):
            return cls.network(given, x, y)
        segments, area = shapes.geojson_segments(given)
        return cls("area" if area else "network", segments, x, y)

    def of_features(self, features: Sequence[str]) -> Domain:
        """The same with x and y among the features."""
        names = tuple(features)
        for given in (self.x, self.y):
            if given is not None and given not in names:
                there = f"there are {listed(names)}"
                raise InputError(f"the domain is about '{given}', which is not a feature: {there}")
        if len(names) < 2:
            raise InputError("a domain is about two features: there is one")
        try:
            at = axes(names, self.x, self.y)
        except InputError:
            if self.x is not None or self.y is not None:
                raise
            at = 0, 1
        return replace(self, x=names[at[0]], y=names[at[1]])

    def ground(self, features: Sequence[str], bounds: Floats) -> Plot:
        """The domain in the unit cube of these features, of bounds (d, 2).

        Refuses a domain outside the box, and networks that are too large.
        """
        domain = self.of_features(features)
        at, unit = domain.check_box(features, bounds)
        box = np.asarray(bounds, np.float64)[list(at)]
        ground: Region
        if domain.kind == "network":
            ground = Network(unit)
        else:
            ground = Area(shapely.transform(domain.shape, lambda x: to_unit(x, box, clamp=False)))
        if ground.empty:
            raise _elsewhere(features, at)
        return Plot(ground, at, box, domain)

    def check_box(self, features: Sequence[str], bounds: Any) -> tuple[tuple[int, int], Floats]:
        """Its two axes and its segments in units of the box; refuses what lies beyond it at once.

        It costs little, whoever made the domain.
        """
        names = list(features)
        at = names.index(str(self.x)), names.index(str(self.y))
        box = np.asarray(bounds, np.float64)[list(at)]
        unit = to_unit(self.segments.reshape(-1, 2), box, clamp=False).reshape(-1, 4)
        low, high = unit.reshape(-1, 2).min(axis=0), unit.reshape(-1, 2).max(axis=0)
        if not np.isfinite(unit).all() or (high <= 0).any() or (low >= 1).any():
            raise _elsewhere(names, at)
        met = np.abs(np.clip(unit[:, :2], 0, 1) - np.clip(unit[:, 2:], 0, 1)).sum(axis=0).max()
        if met > MOST_MET:
            raise InputError(
                f"a line across the domain meets {met:.0f} of its sides on average, and at most "
                f"{MOST_MET} can be used: simplify it first"
            )
        if self.kind == "network":
            nodes = len(np.unique(unit.reshape(-1, 2), axis=0))
            if nodes > MOST_NODES:
                raise InputError(
                    f"the network has {nodes} places where edges end or bend, and at most "
                    f"{MOST_NODES} can be used: leave out small streets, or straighten them"
                )
        return at, unit

    def inside(self, points: Any) -> Mask:
        """Whether places (n, 2) in data units are inside; of a network, on an edge up to 1e-6 of
        its size."""
        places = np.asarray(points, np.float64).reshape(-1, 2)
        if self.kind == "area":
            return asked(shapely.contains_xy, self.shape, places)
        network, box = self._network
        return network.inside(to_unit(places, box, clamp=False))

    @cached_property
    def shape(self) -> Any:
        """The polygons of an area, in data units."""
        shape = area_of(self.segments)
        shapely.prepare(shape)
        return shape

    @cached_property
    def _network(self) -> tuple[Network, Floats]:
        """In units of its own box (2, 2), the limits of all segments."""
        ends = self.segments.reshape(-1, 2)
        low, high = ends.min(axis=0), ends.max(axis=0)
        box = np.stack([low, np.where(high > low, high, low + 1.0)], axis=1)
        return Network(to_unit(ends, box, clamp=False).reshape(-1, 4)), box

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"kind": self.kind, "x": self.x, "y": self.y, "segments": self.segments.tolist()}

    @classmethod
    def from_dict(cls, values: Any) -> Domain:
        """The inverse of `to_dict`; an `InputError` or `ValueError` for what it never gives."""
        if not (isinstance(values, Mapping) and values.keys() == {"kind", "x", "y", "segments"}):
            raise ValueError("other fields")
        segments = values["segments"]
        if values["kind"] not in _SHOWN or not isinstance(segments, list):
            raise ValueError("of no kind")
        if not all(isinstance(values[name], str) for name in ("x", "y")):
            raise ValueError("no names")
        if len(segments) > MOST_SEGMENTS or not all(map(_is_segment, segments)):
            raise ValueError("no segments")
        return cls(values["kind"], np.array(segments, np.float64), values["x"], values["y"])

    def public_inputs(self) -> dict[str, Any]:
        """What a certificate says of it."""
        text = json.dumps(self.to_dict(), sort_keys=True, allow_nan=False)
        return {
            "kind": self.kind,
            "features": [self.x, self.y],
            "sides": len(self.segments),
            "sha256": sha256(text.encode()).hexdigest(),
        }

    def __repr__(self) -> str:
        about = "" if self.x is None else f" of {self.x} and {self.y}"
        return f"Domain({self.kind}{about}, {len(self.segments)} {_SHOWN[self.kind]})"


@dataclass(frozen=True, eq=False, repr=False)
class Plot:
    """A domain in the unit cube of d features: the ground of two of them.

    axes: which two.  bounds: (2, 2) of these.
    """

    ground: Region
    axes: tuple[int, int]
    bounds: Floats
    domain: Domain

    def snapped(self, points: Floats) -> Floats:
        """Points (..., d) of the unit cube, each at the nearest place inside."""
        moved = points.copy()
        places = points[..., self.axes].reshape(-1, 2)
        moved[..., self.axes] = self.ground.nearest(places).reshape(*points.shape[:-1], 2)
        return moved

    def settled(
        self, points: Floats, centres: Floats, side: float, rng: np.random.Generator
    ) -> Floats:
        """Points (n, d), those outside drawn again in their cells, of this side and these centres.

        Where no draw was inside, at the nearest place inside.
        """
        points = points.copy()
        for _ in range(REDRAWS):
            wrong = np.flatnonzero(~self.ground.inside(points[:, self.axes]))
            if len(wrong) == 0:
                return points
            offsets = side * rng.uniform(-0.5, 0.5, (len(wrong), 2))
            drawn = centres[wrong][:, self.axes] + offsets
            points[wrong[:, None], self.axes] = np.clip(drawn, 0, 1)
        return self.snapped(points)

    def cells(self, per_side: int, dimensions: int) -> Mask:
        """Which cells of a grid (per_side, ...) of d axes hold any place inside."""
        touched = self.ground.touched(per_side)
        if self.axes[0] > self.axes[1]:
            touched = touched.T
        shape = [per_side if axis in self.axes else 1 for axis in range(dimensions)]
        return np.broadcast_to(touched.reshape(shape), (per_side,) * dimensions)

    def in_data_units(self, places: Floats) -> Floats:
        """Places (n, 2) of the ground in data units, where they are inside after rounding too."""
        data = np.clip(from_unit(places, self.bounds), *self.bounds.T)
        if self.domain.kind == "area":
            wrong = np.flatnonzero(~self.domain.inside(data))
            data[wrong] = from_unit(self.ground.nearest(places[wrong]), self.bounds)
        return data


def _elsewhere(features: Sequence[str], at: tuple[int, int]) -> InputError:
    return InputError(
        f"the domain and the bounds of {listed([features[k] for k in at])} have no place in "
        "common: compare their units, and the order of x and y"
    )


def _is_segment(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 4
        and all(isinstance(x, int | float) and not isinstance(x, bool) for x in value)
    )
