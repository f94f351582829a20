"""Numbers that users give: what counts as one, and refusals that say which range is meant."""

from __future__ import annotations

import math
from numbers import Integral, Real

from privtraj.errors import InputError


def is_number(value: object) -> bool:
    """A real number, and not True or False."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> bool:
    """A whole number, and not True or False."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_range(name: str, value: object, low: float, high: float = math.inf) -> None:
    """Refuse what is not a number in this range."""
    if not (is_number(value) and low <= value <= high):  # type: ignore[operator]
        limits = f"between {low:g} and {high:g}" if high < math.inf else f"at least {low:g}"
        raise InputError(f"{name} must be {limits}")


def check_whole(name: str, value: object, low: int, high: int) -> None:
    """Refuse what is not a whole number in this range."""
    if not (is_whole(value) and low <= value <= high):  # type: ignore[operator]
        raise InputError(f"{name} must be a whole number between {low} and {high}")
