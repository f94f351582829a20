"""Long tables to CSV, Parquet and Arrow files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from privtraj.files import atomic_path
from privtraj.formats import TABLES, format_of, load

if TYPE_CHECKING:
    import pyarrow as pa


def write_table(table: pa.Table, path: str | os.PathLike[str], force: bool = False) -> None:
    """Write a `pyarrow.Table` as CSV, Parquet or Arrow, by suffix; see `atomic_path`."""
    path = Path(path)
    write = load(format_of(path, TABLES).write_table)
    with atomic_path(path, force) as temporary:
        write(table, temporary)


def write_csv(table: pa.Table, path: Path) -> None:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    with pa.output_stream(str(path)) as stream:  # compresses when it ends in .gz
        arrow_csv.write_csv(table, stream)


def write_parquet(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, str(path))


def write_arrow(table: pa.Table, path: Path) -> None:
    import pyarrow as pa

    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
