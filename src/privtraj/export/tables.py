"""Long tables to CSV, Parquet and Arrow files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from privtraj.files import atomic_path
from privtraj.formats import TABLES, format_of

if TYPE_CHECKING:
    import pyarrow as pa


def write_table(table: pa.Table, path: str | os.PathLike[str], force: bool = False) -> None:
    """Write a `pyarrow.Table` as CSV, Parquet or Arrow, by suffix; see `atomic_path`."""
    path = Path(path)
    kind = format_of(path, TABLES)
    with atomic_path(path, force) as temporary:
        if kind == "csv":
            import pyarrow as pa
            from pyarrow import csv as arrow_csv

            with pa.output_stream(str(temporary)) as stream:  # compresses when it ends in .gz
                arrow_csv.write_csv(table, stream)
        elif kind == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, str(temporary))
        else:
            import pyarrow as pa

            with pa.ipc.new_file(str(temporary), table.schema) as writer:
                writer.write_table(table)
