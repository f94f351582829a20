"""How objects show themselves: functions that a higher floor registers for classes of a lower one.

Models, paths, snapshots and certificates do not know the report; the report knows them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

_PROVIDER = "privtraj.report.registered"  # registers everything below when it is imported
_VIEWS: dict[tuple[str, str], Callable[..., Any]] = {}


def register(view: str, kind: str, draw: Callable[..., Any]) -> None:
    """Let `draw` make this view ("card", "page") of objects of the class named `kind`."""
    _VIEWS[view, kind] = draw


def card(shown: object) -> str:
    """The piece of HTML that a notebook shows of an object."""
    return str(_view("card", shown)(shown))


def write_page(shown: object, path: Any, *, force: bool) -> None:
    """Write the object as one page to look at in a browser."""
    _view("page", shown)(shown, path, force=force)


def _view(view: str, shown: object) -> Callable[..., Any]:
    importlib.import_module(_PROVIDER)
    return _VIEWS[view, type(shown).__name__]
