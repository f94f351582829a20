"""Records as a fit reads them, so many at a time, and how they were read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.columns.kinds import Category
from privtraj.data import anndata, arrow, sql, tables
from privtraj.data.public import PublicInputs
from privtraj.errors import InputError
from privtraj.formats import READABLE, find_format

if TYPE_CHECKING:
    import pyarrow as pa

HEAD = 100
"""Rows of a table in memory that tell the kind of a column that nobody asked for."""

_CELLS = {",": "commas", ";": "semicolons", "\t": "tabs"}


def blocks(
    source: Any, query: str | None, public: PublicInputs, person: str | None, row_by_row: bool
) -> Iterator[pa.Table]:
    """The columns that a fit reads, of up to `sql.BATCH` records at a time.

    What a fit leaves where it is comes by pieces. Of large CSV files all cells come as text, so
    that those that cannot be read are counted, rather than the end of all reading.
    """
    import pyarrow as pa

    people = [] if person is None else [person]
    names = [public.time_name, *(column.name for column in public.asked), *people]
    exact = [column.name for column in public.asked if isinstance(column, Category)]
    remote = sql.remote_table(source, query, names, names, exact, row_by_row=row_by_row)
    if remote is None:
        table = tables.read_columns(source, names, text=people, exact=exact)
        for start in range(0, len(table), sql.BATCH):
            yield table.slice(start, sql.BATCH)
    else:
        for batch in remote.batches():
            yield pa.Table.from_batches([batch])


def how_read(source: Any, query: str | None) -> list[str]:
    """How the cells were read, in words: of what format, and in which dialect of it."""
    if query is not None:
        return [f"a database ({str(source).partition('://')[0]}), by its query"]
    files = _files(source)
    if not files:
        return [f"a table in memory ({type(source).__name__})"]
    many = "" if len(files) == 1 else f"{len(files)} files, the first of them: "
    with tables.reader_of(files[0]) as reader:
        if isinstance(reader, tables.CsvReader):
            return [f"{many}CSV, cells between {_CELLS[reader.header()[1]]}"]
    known = find_format(files[0], READABLE)
    return [f"{many}{'' if known is None else known.name}"]


def is_csv(source: Any) -> bool:
    """Whether it is a CSV file, or several: cells are text there until they are read."""
    files = _files(source)
    known = find_format(files[0], READABLE) if files else None
    return known is not None and known.name == "csv"


def unused(source: Any, query: str | None, used: Sequence[str]) -> dict[str, str]:
    """Kinds of the columns that are not used, by name, where that is known without reading all."""
    try:
        kinds = _kinds(source, query)
    except InputError:  # a table that says nothing of them can still be read
        return {}
    return {name: kind for name, kind in kinds if name not in used}


def _kinds(source: Any, query: str | None) -> list[tuple[str, str]]:
    import pyarrow as pa

    if isinstance(source, str | os.PathLike):
        return sql.columns_of(str(source) if query is not None else Path(source), query)
    ibis = sys.modules.get("ibis")
    if ibis is not None and isinstance(source, ibis.Table):
        return arrow.kinds_of(source.schema().to_pyarrow())
    if isinstance(source, pa.Table | pa.RecordBatch):
        return arrow.kinds_of(source.schema)
    if anndata.is_anndata(source) or not (isinstance(source, Mapping) or hasattr(source, "head")):
        return []
    return [(name, _kind(source, name)) for name in arrow.object_names(source)]


def _kind(source: Any, name: str) -> str:
    """Of a column in memory, by its first rows."""
    if isinstance(source, Mapping):
        source = {key: cells[:HEAD] for key, cells in source.items() if str(key) == name}
    else:
        source = source.head(HEAD)
    try:
        return arrow.kinds_of(arrow.read_object(source, [name]).schema)[0][1]
    except InputError:
        return "mixed"


def _files(source: Any) -> list[Path]:
    """The files that hold it, if any do."""
    if not isinstance(source, str | os.PathLike) or "://" in str(source):
        return []
    return sql.files_of(source) or [Path(source)]
