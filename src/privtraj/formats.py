"""File formats by the suffix of a name: one table for reading and for writing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from privtraj.errors import InputError

TABLES = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
READABLE = TABLES | {".h5ad": "h5ad"}
WRITABLE = TABLES | {".geojson": "geojson", ".geoparquet": "geoparquet", ".h5ad": "h5ad"}


def format_of(path: Path, known: Mapping[str, str]) -> str:
    """The format that the name of a file says, or an `InputError` that lists the suffixes."""
    for suffix, kind in known.items():
        if path.name.lower().endswith(suffix):
            return kind
    raise InputError(
        f"the file type of '{path.name}' is not known: use one of the suffixes {', '.join(known)}"
    )
