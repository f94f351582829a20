"""File formats: the suffixes of each, what reads it and what can be written in it, in one table.

A new format is one entry here, its reader in `data.tables`, and its writer in `export`. Models,
paths, snapshots and certificates do not know the report, which shows them: it is loaded by name.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from privtraj.base.errors import InputError

PEOPLE_DRAWN = 1000  # into a file, where nobody says how many


@dataclass(frozen=True)
class Format:
    """A format.  reads: whether `data.tables` has a reader of it.

    writes: "tables", which paths are too, or "paths" alone; see `export.tables`, `export.files`.
    """

    name: str
    suffixes: tuple[str, ...]
    reads: bool = False
    writes: str = ""


FORMATS = (
    Format("csv", (".csv", ".csv.gz"), True, "tables"),
    Format("parquet", (".parquet", ".pq"), True, "tables"),
    Format("arrow", (".arrow", ".feather"), True, "tables"),
    Format("trips", (".trips.geojson",), writes="paths"),
    Format("points", (".points.geojson",), writes="paths"),
    Format("geojson", (".geojson",), writes="paths"),
    Format("geoparquet", (".geoparquet",), writes="paths"),
    Format("h5ad", (".h5ad",), True, "paths"),
)
READABLE = tuple(known for known in FORMATS if known.reads)
TABLES = tuple(known for known in FORMATS if known.writes == "tables")
PATHS = tuple(known for known in FORMATS if known.writes)


def suffixes(formats: Sequence[Format]) -> tuple[str, ...]:
    """All suffixes of these formats."""
    return tuple(suffix for known in formats for suffix in known.suffixes)


def find_format(path: Path, formats: Sequence[Format]) -> Format | None:
    """The one of these formats that the name of a file says, if any, by its longest suffix."""
    name = path.name.lower()
    ends = [(len(s), known) for known in formats for s in known.suffixes if name.endswith(s)]
    return max(ends, key=lambda end: end[0])[1] if ends else None


def format_of(path: Path, formats: Sequence[Format]) -> Format:
    """The same, or an `InputError` that lists the suffixes."""
    known = find_format(path, formats)
    if known is None:
        raise InputError(
            f"the file type of '{path.name}' is not known: use one of the suffixes "
            + ", ".join(suffixes(formats))
        )
    return known


def load(place: str) -> Any:
    """What stands at "module:name" of a higher floor, which knows those that show it."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"privtraj.{module}"), name)


def write_page(model: object, path: Any, *, force: bool) -> None:
    """Write a model as one page to look at in a browser."""
    load("report.page:write_report")(model, path, force=force)


def extra(module: str, purpose: str, package: str) -> Any:
    """A module that comes with an extra."""
    try:
        with warnings.catch_warnings():  # about extras of its own
            warnings.simplefilter("ignore")
            return import_module(module)
    except ImportError:
        raise absent(module, purpose, package) from None


def absent(what: str, purpose: str, package: str) -> InputError:
    """The sentence about what is not installed."""
    return InputError(f"{what} is needed for {purpose}: run pip install '{package}'")
