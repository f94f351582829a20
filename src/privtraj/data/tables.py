"""Tables in memory: the wanted columns of a file, or of a table of any library, as Arrow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.data import anndata
from privtraj.data.arrow import kinds_of, read_object
from privtraj.data.readers import explained, reader_of

if TYPE_CHECKING:
    import pyarrow as pa


def read_columns(source: Any, columns: Sequence[str], *, text: Sequence[str] = ()) -> pa.Table:
    """The named columns of a table, in the order asked for.

    source: path to a CSV, Parquet, Arrow or .h5ad file (told apart by the suffix), pyarrow Table or
        RecordBatch, pandas or polars DataFrame, AnnData, any object with `__arrow_c_stream__`, or
        a dictionary of arrays.
    columns: names to read; nothing else is read. Those of AnnData are explained in `data.anndata`.
    text: names among them that a CSV file must not turn into numbers (an identifier "007").
    """
    wanted = list(dict.fromkeys(columns))
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        reader = reader_of(path)
        with explained(path):
            reader.check(path, wanted)
            return reader.read(path, wanted, text)
    if anndata.is_anndata(source):
        return anndata.table(source, wanted, text)
    return read_object(source, wanted)


def column_kinds(path: Path) -> list[tuple[str, str]]:
    """Name and kind, "number", "date" or "text", of the columns of a file.

    Nothing but the schema is read, except where it does not tell: the first rows of CSV, up to a
    megabyte, and the text of .h5ad, which may be dates. The kind is then all that is learned from
    them, and it is coarse on purpose: it does not tell whole numbers from decimals, flags or a
    column without values. One odd cell can still turn "number" into "text", so a kind is for
    whoever may see the data, and is not part of a model.
    """
    reader = reader_of(path)
    with explained(path):
        return kinds_of(reader.schema(path))


def check_file(path: Path, columns: Sequence[str]) -> None:
    """Refuse a file that lacks one of these columns, or has two of one name."""
    reader = reader_of(path)
    with explained(path):
        reader.check(path, columns)
