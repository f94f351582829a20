"""Choices: what a user may choose, declared once for Python, the command line and files.

The fields of a `Recipe` are choices, and so is all else that the command line asks for. Standard
library only, because `privtraj --help` reads it.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from privtraj.base.errors import either, is_number, is_whole, short

# What a value may be --------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """What values a choice takes.

    must: in words.  fits: whether a value is one.  typed: what argparse is to know of it.
    plain: makes one of what a file has, if it can.
    """

    must: str
    fits: Callable[[Any], bool] = lambda value: True
    typed: Mapping[str, Any] = field(default_factory=dict, hash=False)
    plain: Callable[[Any], Any] = lambda value: value

    def read(self, value: Any) -> Any:
        """A value of a file made plain; a ValueError if it is none of this kind."""
        value = self.plain(value)
        need(self.fits(value))
        return value


def need(condition: object) -> None:
    """A ValueError: the kind says what a value must be."""
    if not condition:
        raise ValueError


def whole(least: int, most: float = 10**9, *words: str) -> Kind:
    """Whole numbers in a range, or one of these words."""
    limits = f"of at least {least}" if most == math.inf else f"from {least} to {most}"
    must = either([*(f"'{word}'" for word in words), f"a whole number {limits}"])

    def fits(value: Any) -> bool:
        if isinstance(value, str):
            return value in words
        return is_whole(value) and least <= value <= most

    def typed(text: str) -> str | int:
        try:
            value = text if text in words else int(text)
            need(fits(value))
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be {must}") from None
        return value

    return Kind(must, fits, {"type": typed, "metavar": "N"})


def number(low: float = -math.inf, high: float = math.inf) -> Kind:
    """Numbers in a range."""
    must = "a number" if high == math.inf else f"between {low:g} and {high:g}"
    typed = {"type": _typed_number, "metavar": "X"}
    return Kind(must, lambda value: is_number(value) and low <= value <= high, typed, finite)


def one_of(*choices: str, renamed: Mapping[str, str] = MappingProxyType({})) -> Kind:
    """One of these words.  renamed: old words for some of them, which are still understood."""
    must = either([f"'{choice}'" for choice in choices])

    def plain(value: Any) -> Any:
        return renamed.get(value, value) if isinstance(value, str) else value

    typed = {"choices": choices, **({"type": plain} if renamed else {})}
    return Kind(must, lambda value: value in choices, typed, plain)


def finite(value: Any) -> float:
    """A number, or text that reads as one: YAML takes 1e-5, without a point, for text."""
    need(isinstance(value, int | float | str) and not isinstance(value, bool))
    try:
        made = float(value)
    except OverflowError:
        raise ValueError from None
    need(math.isfinite(made))
    return made


def _typed_number(text: str) -> float:
    """A number on the command line."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, not '{text}'") from None


def text(value: Any) -> str:
    """Text that is not empty."""
    need(isinstance(value, str) and value)
    return str(value)


def names(value: Any) -> list[str]:
    """A list of texts."""
    need(isinstance(value, list) and value)
    return [text(name) for name in value]


NUMBER = number()
TEXT = Kind("text, in quotes", plain=text)
NAMES = Kind("a list of names, in quotes", typed={"nargs": "+", "metavar": "COL"}, plain=names)
BOOLEAN = Kind("true or false", lambda value: isinstance(value, bool), {"action": "store_true"})


# The choices ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """One choice: its name, what it may be, and what it means, in a few words.

    more: sentences that a configuration adds.  default: what holds where it is not given.
    otherwise: that in words, where it is not known beforehand.  example: shown by a configuration
    where there is no default.  needed: why a command cannot do without it.
    each: what the command line calls one of several that a configuration has in one place.
    placed: whether the command line knows it by its place, without a flag.
    """

    name: str
    kind: Kind
    about: str
    more: str = ""
    default: Any = None
    otherwise: object = None
    example: Any = None
    needed: str = ""
    metavar: str | None = None
    short: str | None = None
    each: str | None = None
    placed: bool = False

    @property
    def flag(self) -> str:
        return f"--{(self.each or self.name).replace('_', '-')}"

    @property
    def help(self) -> str:
        """What the command line says of it."""
        if self.needed:
            return f"{self.about} (required)"
        if self.kind is BOOLEAN or self.default is self.otherwise is None:
            return self.about
        shown = self.default if self.otherwise is None else self.otherwise
        shown = short(shown) if isinstance(shown, float) else shown
        return f"{self.about} (default: {shown})"

    @property
    def comment(self) -> str:
        """What a configuration says of it."""
        known = "" if self.otherwise is None else f" (default: {self.otherwise})"
        return f"{self.about[0].upper()}{self.about[1:]}{known}. {self.more}".rstrip()
