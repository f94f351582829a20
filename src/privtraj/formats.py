"""File formats: the suffixes of each, what reads it and what writes it, in one table.

A new format is one entry here and the reader or writer that it names, as "module:name". They are
imported when a file needs them, because some need packages that come with an extra.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from privtraj.errors import InputError


@dataclass(frozen=True)
class Format:
    """A format; what it cannot do is "".

    reader: a `data.readers.Reader`.
    write_table: function (pyarrow.Table, Path), for any table.
    write_paths: function (export.rows.PathRows, Path), for paths alone.
    check_paths: function (features, bounds, times) that refuses early what `write_paths` would.
    """

    name: str
    suffixes: tuple[str, ...]
    reader: str = ""
    write_table: str = ""
    write_paths: str = ""
    check_paths: str = ""


FORMATS = (
    Format(
        "csv",
        (".csv", ".csv.gz"),
        reader="privtraj.data.csv_files:CsvReader",
        write_table="privtraj.export.tables:write_csv",
    ),
    Format(
        "parquet",
        (".parquet", ".pq"),
        reader="privtraj.data.readers:ParquetReader",
        write_table="privtraj.export.tables:write_parquet",
    ),
    Format(
        "arrow",
        (".arrow", ".feather"),
        reader="privtraj.data.readers:ArrowReader",
        write_table="privtraj.export.tables:write_arrow",
    ),
    Format(
        "geojson",
        (".geojson",),
        write_paths="privtraj.export.geo:write_geojson",
        check_paths="privtraj.export.geo:check_geojson",
    ),
    Format(
        "geoparquet",
        (".geoparquet",),
        write_paths="privtraj.export.geo:write_geoparquet",
        check_paths="privtraj.export.geo:check_geoparquet",
    ),
    Format(
        "h5ad",
        (".h5ad",),
        reader="privtraj.data.anndata:H5adReader",
        write_paths="privtraj.export.anndata:write_h5ad",
        check_paths="privtraj.export.anndata:check_h5ad",
    ),
)
READABLE = tuple(known for known in FORMATS if known.reader)
TABLES = tuple(known for known in FORMATS if known.write_table)
PATHS = tuple(known for known in FORMATS if known.write_table or known.write_paths)


def suffixes(formats: Sequence[Format]) -> tuple[str, ...]:
    """All suffixes of these formats."""
    return tuple(suffix for known in formats for suffix in known.suffixes)


def format_of(path: Path, formats: Sequence[Format]) -> Format:
    """The format that the name of a file says, or an `InputError` that lists the suffixes."""
    for known in formats:
        if path.name.lower().endswith(known.suffixes):
            return known
    raise InputError(
        f"the file type of '{path.name}' is not known: use one of the suffixes "
        + ", ".join(suffixes(formats))
    )


def load(place: str) -> Any:
    """What stands at "module:name"."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
