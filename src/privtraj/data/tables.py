"""Tables in and out: CSV, Parquet, Arrow, pandas, polars, AnnData, dictionaries of arrays.

Everything read becomes a `pyarrow.Table` that holds the wanted columns only; everything written
appears under its final name complete or not at all. Messages name columns, files and counts of
rows. They never quote a cell: the texts of pyarrow and pandas do, so they are never passed on.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from privtraj.data import anndata as single_cells
from privtraj.data.arrow import check_columns, kinds_of, object_names, read_object
from privtraj.errors import InputError
from privtraj.formats import READABLE, format_of

if TYPE_CHECKING:
    import pyarrow as pa


_VALUE = re.compile(r"[-+]?[\d.,]*\d[\d.,]*(e[-+]?\d+)?|\d+[-/.]\d+[-/.]\d+.*", re.IGNORECASE)


# Reading ------------------------------------------------------------------------------------


def read_columns(source: Any, columns: Sequence[str], *, text: Sequence[str] = ()) -> pa.Table:
    """The named columns of a table, in the order asked for.

    source: path to a CSV, Parquet, Arrow or .h5ad file (told apart by the suffix), pyarrow Table or
        RecordBatch, pandas or polars DataFrame, AnnData, any object with `__arrow_c_stream__`, or
        a dictionary of arrays.
    columns: names to read; nothing else is read. Those of AnnData are explained in `single_cells`.
    text: names among them that a CSV file must not turn into numbers (an identifier "007").
    """
    wanted = list(dict.fromkeys(columns))
    if isinstance(source, str | os.PathLike):
        return _read_file(Path(source), wanted, text)
    if single_cells.is_anndata(source):
        return single_cells.table(source, wanted, text)
    return read_object(source, wanted)


def column_names(source: Any) -> tuple[str, ...]:
    """The names of all columns of a file or a table."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        kind = _readable_format(path)
        with _explained(path):
            return tuple(_file_names(path, kind))
    if single_cells.is_anndata(source):
        return tuple(single_cells.names(source))
    return tuple(object_names(source))


def column_kinds(path: Path) -> list[tuple[str, str]]:
    """Name and kind, "number", "date" or "text", of the columns of a file.

    Nothing but the schema is read, except where it does not tell: the first rows of CSV, up to a
    megabyte, and the text of .h5ad, which may be dates. The kind is then all that is learned from
    them, and it is coarse on purpose: it does not tell whole numbers from decimals, flags or a
    column without values. One odd cell can still turn "number" into "text", so a kind is for
    whoever may see the data, and is not part of a model.
    """
    kind = _readable_format(path)
    with _explained(path):
        if kind != "csv":
            return kinds_of(_schema(path, kind))
        names = [name for name in csv_header(path)[0] if name]
    check_columns(names, [])
    _check_header(path, names)
    return kinds_of(csv_schema(path, names, ()))


def _schema(path: Path, kind: str) -> pa.Schema:
    if kind == "h5ad":
        with single_cells.opened(path) as data:
            return single_cells.kinds(data)
    if kind == "parquet":
        import pyarrow.parquet as pq

        return pq.read_schema(path)
    import pyarrow as pa

    with pa.ipc.open_file(str(path)) as reader:
        return reader.schema


def _check_header(path: Path, names: Sequence[str]) -> None:
    """A first line of values is the record of a person, not to be shown."""
    odd = sum(bool(_VALUE.fullmatch(name.strip())) for name in names)
    if odd:
        raise InputError(
            f"{odd} of the {len(names)} names in the first line of '{path}' read as numbers or "
            "dates, so it may be a record: put a line with the names of the columns first"
        )


def _read_file(path: Path, columns: list[str], text: Sequence[str]) -> pa.Table:
    kind = _readable_format(path)
    if kind == "h5ad":
        with _explained(path), single_cells.opened(path) as data:
            return single_cells.table(data, columns, text)
    check_file(path, columns)
    with _explained(path):
        if kind == "csv":
            return _read_csv(path, columns, text)
        if kind == "parquet":
            import pyarrow.parquet as pq

            with pq.ParquetFile(path) as file:
                return file.read(columns=columns).select(columns)
        import pyarrow as pa

        with pa.ipc.open_file(str(path)) as reader:
            return reader.read_all().select(columns)


def check_file(path: Path, columns: Sequence[str]) -> None:
    """`check_columns` of a file."""
    kind = _readable_format(path)
    with _explained(path):
        names = _file_names(path, kind)
    if kind == "csv" and not set(columns) <= set(names):
        _check_header(path, names)  # or the sentence would list it
    check_columns(names, columns)


def _readable_format(path: Path) -> str:
    kind = format_of(path, READABLE)
    if not path.is_file():
        raise InputError(f"there is no file '{path}': check the path")
    return kind


def _file_names(path: Path, kind: str) -> list[str]:
    return csv_header(path)[0] if kind == "csv" else list(_schema(path, kind).names)


def csv_header(path: Path) -> tuple[list[str], str]:
    """Column names and the delimiter, which is whichever of , ; tab the first line has most of."""
    with _open_text(path) as file:
        line = file.readline()
        if not line.strip():
            raise InputError(
                f"the file '{path}' has no header: its first line must name the columns"
            )
        delimiter = max(",;\t", key=line.count)
        file.seek(0)
        return next(csv.reader(file, delimiter=delimiter)), delimiter


def _open_text(path: Path) -> TextIO:
    if path.name.lower().endswith(".gz"):
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _read_csv(path: Path, columns: Sequence[str], text: Sequence[str]) -> pa.Table:
    from pyarrow import csv as arrow_csv

    return arrow_csv.read_csv(str(path), **_csv_options(path, columns, text))


def csv_schema(path: Path, columns: Sequence[str], text: Sequence[str]) -> pa.Schema:
    """The types of these columns, as far as the first rows of the file tell."""
    from pyarrow import csv as arrow_csv

    with (
        _explained(path),
        arrow_csv.open_csv(str(path), **_csv_options(path, columns, text)) as reader,
    ):
        return reader.schema


def _csv_options(path: Path, columns: Sequence[str], text: Sequence[str]) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    return {
        "parse_options": arrow_csv.ParseOptions(
            delimiter=csv_header(path)[1], newlines_in_values=True
        ),
        "convert_options": arrow_csv.ConvertOptions(
            include_columns=columns,
            column_types={name: pa.string() for name in text},
            strings_can_be_null=True,
        ),
    }


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Replace a reader's own error, which may quote the data, by one that names the file."""
    try:
        yield
    except InputError:
        raise
    except UnicodeError:
        raise InputError(f"the file '{path}' is not text in UTF-8: save it as UTF-8") from None
    except PermissionError:
        raise InputError(f"the file '{path}' may not be read: change its permissions") from None
    except Exception:
        raise InputError(unreadable(f"the file '{path}'", format_of(path, READABLE))) from None


def unreadable(what: str, kind: str) -> str:
    rows = " and that every row has as many cells as the header" if kind == "csv" else ""
    return f"{what} cannot be read as {kind}: check that it is complete{rows}"


# Columns ------------------------------------------------------------------------------------


# Writing ------------------------------------------------------------------------------------
