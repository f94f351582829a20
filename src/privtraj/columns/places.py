"""Features that are places: which of them are longitude and latitude, or x and y, and how far apart
places on the globe are."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError, Said
from privtraj.base.text import listed

EARTH = 6371.0088  # kilometres, mean radius
KILOMETRES = EARTH * np.pi / 180  # in a degree of latitude

_NAMES = (("lon", "longitude", "lng", "long", "x"), ("lat", "latitude", "y"))
_UNIT = r"(?:[ _(\[]*(?:deg|degrees|°)[)\]]*)?"  # that a name may say, and no other
_DEGREES = tuple(  # x and y, the last names, may be of any unit
    re.compile(rf"\s*(?:{'|'.join(names[:-1])}){_UNIT}\s*", re.IGNORECASE) for names in _NAMES
)
_LIMITS = (360.0, 90.0)  # longitudes may count on beyond 180, as a box across that meridian does


def is_degrees(name: str) -> bool:
    """Whether a feature is named like a longitude or a latitude."""
    return any(pattern.fullmatch(name) for pattern in _DEGREES)


def axes(features: tuple[str, ...], x: str | None = None, y: str | None = None) -> tuple[int, int]:
    """Which features are longitude (or x) and latitude (or y): as named, else guessed by name."""
    first, second = (_axis(features, *pair) for pair in zip((x, y), "xy", _NAMES, strict=True))
    if first == second:
        raise InputError(f"x and y are both '{features[first]}': name two features")
    return first, second


def _axis(features: tuple[str, ...], given: str | None, what: str, names: tuple[str, ...]) -> int:
    if given in features:
        return features.index(given)
    if given is not None:
        raise InputError(f"{what}='{given}' is not a feature: the paths have {listed(features)}")
    lower = [name.lower() for name in features]
    named = [lower.index(name) for name in names if name in lower]
    if named:
        return named[0]
    raise InputError(
        f"no feature is named like a {names[1]} ({', '.join(names)}): ",
        Said(
            f"name one so, or say with {what}= which of {listed(features)} it is",
            f"rename one of {listed(features)}, or choose a table such as .csv",
        ),
    )


def degrees(features: tuple[str, ...], bounds: Any) -> tuple[int, int] | None:
    """Which features are longitude and latitude in degrees, if any: they are named so, and their
    public bounds (d, 2) are on the globe and at most one turn apart. Names x and y say nothing."""
    found = []
    for pattern, limit in zip(_DEGREES, _LIMITS, strict=True):
        named = (k for k, name in enumerate(features) if pattern.fullmatch(name))
        k = next(named, None)
        if k is None or not np.abs(bounds[k]).max() <= limit or np.ptp(bounds[k]) > 360:
            return None
        found.append(k)
    return found[0], found[1]


def speed_unit(time_name: str, datetime: bool) -> str:
    """Of kilometres over times, which are dates or numbers of a unit that only its name tells."""
    return "km/h" if datetime else f"km per unit of {time_name}"


def kilometres(start: Any, end: Any) -> Floats:
    """(...) great-circle distances between longitudes and latitudes (..., 2) in degrees, nan where
    a place is.

    2 R asin(sqrt(h)) by the haversine h = sin^2(dlat / 2) + cos(lat) cos(lat') sin^2(dlon / 2),
    which is exact for short ways too.
    """
    a, b = np.radians(np.asarray(start, np.float64)), np.radians(np.asarray(end, np.float64))
    half = np.sin((b - a) / 2) ** 2
    h = half[..., 1] + np.cos(a[..., 1]) * np.cos(b[..., 1]) * half[..., 0]
    return 2 * EARTH * np.arcsin(np.sqrt(np.minimum(h, 1.0)))
