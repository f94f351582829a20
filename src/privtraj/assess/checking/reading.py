"""Records as a fit reads them, so many at a time, and how they were read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.base.errors import InputError
from privtraj.base.formats import READABLE, find_format
from privtraj.columns.kinds import Category
from privtraj.data import arrow, detection, sql, tables
from privtraj.data.detection import Detected
from privtraj.data.dialect import TEXT, CellKind, Dialect
from privtraj.data.public import PublicInputs

if TYPE_CHECKING:
    import pyarrow as pa

HEAD = 100
"""Rows of a table in memory that tell the kind of a column that nobody asked for."""
_GUESSED = ("decimal", "thousands", "dates")


def blocks(
    source: Any,
    query: str | None,
    public: PublicInputs,
    person: str | None,
    dialect: Dialect,
    row_by_row: bool,
) -> Iterator[pa.Table]:
    """The columns that a fit reads, of up to `sql.BATCH` records at a time.

    What a fit leaves where it is comes by pieces. Cells of CSV files come as text, so that those
    that cannot be read are counted, rather than the end of all reading.
    """
    import pyarrow as pa

    kinds = {
        public.time_name: TEXT,
        **{c.name: CellKind.of(c) if isinstance(c, Category) else TEXT for c in public.asked},
        **({} if person is None else {person: TEXT}),
    }
    names = list(kinds)
    remote = sql.remote_table(source, query, names, kinds, dialect, row_by_row=row_by_row)
    if remote is None:
        table = sql.read_into_memory(source, names, kinds, dialect)
        for start in range(0, len(table), sql.BATCH):
            yield table.slice(start, sql.BATCH)
    else:
        for batch in remote.batches():
            yield pa.Table.from_batches([batch])


def guessed(source: Any) -> Detected | None:
    """How the first of CSV files seems to be written; None for all else."""
    if not is_csv(source):
        return None
    try:
        return detection.detect(_files(source)[0])
    except InputError:  # of a file that tells too little
        return None


def how_read(
    source: Any, query: str | None, dialect: Dialect, guess: Detected | None = None
) -> list[str]:
    """How the cells were read, in words, and how CSV seems to be written if that is otherwise."""
    if query is not None:
        return [f"read from a database ({str(source).partition('://')[0]}), by its query"]
    files = _files(source)
    if not files:
        return [f"read from a table in memory ({type(source).__name__})"]
    many = "" if len(files) == 1 else f"{len(files)} files, the first of them: "
    if not detection.is_csv(files[0]):
        known = find_format(files[0], READABLE)
        return [f"read from {many}{'' if known is None else known.name}"]
    with tables.reader_of(files[0], dialect) as reader:
        used = replace(dialect, delimiter=reader.header()[1], encoding=reader.encoding)
    lines = [f"read from {many}CSV with {used}"]
    seems = used if guess is None else guess.dialect
    if any(getattr(seems, word) != getattr(used, word) for word in _GUESSED):
        lines.append(f"it seems to have {seems}, which was not declared")
    return lines


def is_csv(source: Any) -> bool:
    """Whether it is a CSV file, or several: cells are text there until they are read."""
    files = _files(source)
    return bool(files) and detection.is_csv(files[0])


def unused(
    source: Any, query: str | None, used: Sequence[str], guess: Detected | None = None
) -> dict[str, str]:
    """Kinds of the columns that are not used, by name, where that is known without reading all."""
    try:
        kinds = _kinds(source, query) if guess is None else guess.kinds
    except InputError:  # a table that says nothing of them can still be read
        return {}
    return {
        name: kind
        for name, kind in kinds
        if name not in used and arrow.without_unit(name) not in used
    }


def _kinds(source: Any, query: str | None) -> list[tuple[str, str]]:
    import pyarrow as pa

    if isinstance(source, str | os.PathLike):
        return sql.columns_of(str(source) if query is not None else Path(source), query)
    ibis = sys.modules.get("ibis")
    if ibis is not None and isinstance(source, ibis.Table):
        return arrow.kinds_of(source.schema().to_pyarrow())
    if isinstance(source, pa.Table | pa.RecordBatch):
        return arrow.kinds_of(source.schema)
    if tables.is_anndata(source) or not (isinstance(source, Mapping) or hasattr(source, "head")):
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
    return sql.files_of(Path(source))
