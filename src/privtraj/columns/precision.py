"""How numbers, times and places are written: in public steps, as people write them; which features
are longitude and latitude, or x and y, and how far apart places on the globe are.

Bounds, the range of time and the times asked for are public, so steps that follow from them reveal
nothing. Whoever knows better says so: see `Constraints.precision`.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError, Said, listed

SHARE = 1e-4  # of the range, the coarsest step: far below what any budget resolves, and few digits
DEGREES = 1e-6  # of longitudes and latitudes, a tenth of a metre: RFC 7946 advises no more digits
_CALENDAR = (86_400.0, 3600.0, 60.0, 1.0)  # seconds of a day, an hour, a minute, a second


def usual_step(low: float, high: float) -> float:
    """The power of ten at or below `SHARE` of the range, and 1 at most; 0 for no steps at all,
    where numbers of this size hardly have so many digits."""
    step = _power_of_ten(SHARE * high - SHARE * low)
    return min(step, 1.0) if step > _resolution(low, high) else 0.0


def in_steps(values: Floats, step: float, low: float, high: float) -> Floats:
    """The nearest multiples of a step that lie in [low, high]; any shape, NaN stays.

    Every number is the float nearest to its decimals, so that 36.6 is written so. Where no multiple
    is between the bounds, or floats are coarser than the step, values are left inside the bounds.
    """
    first, last = -math.inf, math.inf
    if step > _resolution(low, high):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if not math.isfinite(first) or first > last:
        return np.clip(values, low, high)
    exponent = Decimal(repr(float(step))).as_tuple().exponent
    scale = 10.0 ** max(0, -int(exponent))
    whole = float(round(step * scale))  # the step, in units of its last digit
    steps = np.clip(np.rint(values / step), first, last)
    return np.clip(steps * whole / scale, low, high)


def spread_times(start: float, end: float, count: int, datetime: bool) -> Floats:
    """(count,) times from start to end, as even as people write them.

    Dates are at whole days, hours, minutes or seconds: the largest unit that is no longer than the
    gap and that both ends are multiples of. Numbers have two digits more than the gap.
    """
    even = np.linspace(start, end, count)
    gap = (end - start) / max(count - 1, 1)
    if datetime:
        fitting = (u for u in _CALENDAR if u <= gap and start % u == 0 and end % u == 0)
        step = next(fitting, 0.0)
        made = np.floor(even / step + 0.5) * step if step else even
    else:
        made = in_steps(even, _power_of_ten(gap / 100), start, end)
    made[:1], made[1:][-1:] = start, end
    return made


def _power_of_ten(size: float) -> float:
    """At most this size; 0 for what has none."""
    if not 1e-300 < size < np.inf:
        return 0.0
    return float(f"1e{math.floor(math.log10(size) + 1e-9)}")


def _resolution(low: float, high: float) -> float:
    """Below which floats between these bounds are no decimals any more."""
    return float(4 * np.spacing(max(abs(low), abs(high), 1e-290)))


# Places -----------------------------------------------------------------------------------------

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
    lower, known = [name.lower() for name in features], listed(features)
    found: list[int] = []
    for given, what, names in zip((x, y), "xy", _NAMES, strict=True):
        named = [lower.index(name) for name in names if name in lower]
        if given is not None and given not in features:
            raise InputError(f"{what}='{given}' is not a feature: the paths have {known}")
        if given is None and not named:
            raise InputError(
                f"no feature is named like a {names[1]} ({', '.join(names)}): ",
                Said(
                    f"name one so, or say with {what}= which of {known} it is",
                    f"rename one of {known}, or choose a table such as .csv",
                ),
            )
        found.append(named[0] if given is None else features.index(given))
    first, second = found
    if first == second:
        raise InputError(f"x and y are both '{features[first]}': name two features")
    return first, second


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
