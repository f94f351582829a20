"""Templates of pages and cards, in `report/assets`: markup there, values from here.

Everything that a template prints is escaped, and a name it does not know is an error. Numbers are
written by the functions below, the same on every page.
"""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from privtraj.base.errors import short
from privtraj.privacy.ledger import up

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: Any) -> str:
    """A template of `report/assets` with these values in it."""
    return _environment().get_template(template).render(values)


@cache
def asset(name: str) -> str:
    """A file of `report/assets`."""
    return (files("privtraj.report") / "assets" / name).read_text("utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("privtraj.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    written = (percent, percent_up, place, round_number, sentence, short, up, whole_number)
    environment.filters |= {function.__name__: function for function in written}
    return environment


def percent(share: float) -> str:
    """At most two digits below 10 %."""
    value = 100 * share
    if 0 < value < 0.1:
        return "less than 0.1\N{NO-BREAK SPACE}%"
    digits = f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.2g}"
    return f"{digits}\N{NO-BREAK SPACE}%"


def percent_up(share: float) -> str:
    """Percent with one decimal, never less than it is."""
    return f"{min(math.ceil(share * 1000 - 1e-9) / 10, 100):g}\N{NO-BREAK SPACE}%"


def round_number(value: Any) -> str:
    """At most three digits, two below 10, with a narrow space between thousands."""
    value = float(value)
    if abs(value) < 1000:
        return f"{value:.2g}" if abs(value) < 10 else f"{value:.0f}"
    return f"{float(f'{value:.3g}'):,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def whole_number(value: Any) -> str:
    """A count, to the last digit, with a narrow space between thousands."""
    return f"{float(value):,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def sentence(text: str) -> str:
    """With a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def place(pixels: float) -> str:
    return f"{pixels:.1f}"
