"""Features that are places: which of them are longitude and latitude, or x and y."""

from __future__ import annotations

from privtraj.errors import InputError, Said
from privtraj.text import listed

_NAMES = (("lon", "longitude", "lng", "long", "x"), ("lat", "latitude", "y"))
_PLANE = ("x", "y")  # of any unit; all other names are of degrees


def is_degrees(name: str) -> bool:
    """Whether a feature is named like a longitude or a latitude."""
    return name.lower() in {*_NAMES[0], *_NAMES[1]} - {*_PLANE}


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
