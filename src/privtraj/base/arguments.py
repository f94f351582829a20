"""Checks of numbers that users give: one set of rules, one set of sentences."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from privtraj.base.errors import InputError


def is_number(value: object) -> bool:
    """A real number, and not True or False."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> bool:
    """A whole number by its type, and not True or False."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_range(name: str, value: Any, low: float, high: float = math.inf) -> None:
    """Refuse what is not a number from low to high."""
    if not (is_number(value) and low <= value <= high):
        limits = f"between {low:g} and {high:g}" if high < math.inf else f"at least {low:g}"
        raise InputError(f"{name} must be {limits}")


def check_whole(name: str, value: Any, low: int, high: float = math.inf) -> None:
    """Refuse what is not a whole number from low to high."""
    if not (is_whole(value) and low <= value <= high):
        limits = f"between {low} and {high}" if high < math.inf else f"of at least {low}"
        raise InputError(f"{name} must be a whole number {limits}")
