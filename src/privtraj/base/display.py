"""How objects show themselves: by functions of a higher floor, loaded when they are needed.

Models, paths, snapshots and certificates do not know the report; the report knows them.
"""

from __future__ import annotations

from typing import Any

from privtraj.base.formats import load


def card(shown: object) -> str:
    """The piece of HTML that a notebook shows of an object."""
    return str(load("report.cards:card")(shown))


def write_page(model: object, path: Any, *, force: bool) -> None:
    """Write a model as one page to look at in a browser."""
    load("report.page:write_report")(model, path, force=force)
