"""Templates of pages and cards, in `report/assets`: markup there, values from here.

Everything that a template prints is escaped, and a name it does not know is an error. Numbers are
written by the filters below, the same on every page.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from privtraj.privacy.ledger import up
from privtraj.report.numbers import percent, percent_up, round_number
from privtraj.text import short

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
    environment.filters |= {
        "percent": percent,
        "percent_up": percent_up,
        "place": lambda pixels: f"{pixels:.1f}",
        "round_number": round_number,
        "short": short,
        "up": up,
    }
    return environment
