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
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from numpy.typing import NDArray

from . import single_cells
from .checks import listed, some
from .errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
READABLE = FORMATS | {".h5ad": "h5ad"}

_SECONDS_PER_DAY = 86_400
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
    return _read_object(source, wanted)


def column_names(source: Any) -> tuple[str, ...]:
    """The names of all columns of a file or a table."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        kind = _readable_format(path)
        with _explained(path):
            return tuple(_file_names(path, kind))
    if single_cells.is_anndata(source):
        return tuple(single_cells.names(source))
    return tuple(_object_names(source))


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


def kinds_of(schema: pa.Schema) -> list[tuple[str, str]]:
    """Name and kind, "number", "date" or "text", of columns of these types."""
    return [(field.name, _kind(field.type)) for field in schema]


def _kind(kind: pa.DataType) -> str:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "date"
    return "number" if is_numeric(kind) else "text"


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
    kind = _format(path, READABLE)
    if not path.is_file():
        raise InputError(f"there is no file '{path}': check the path")
    return kind


def _format(path: Path, known: Mapping[str, str] = FORMATS) -> str:
    for suffix, kind in known.items():
        if path.name.lower().endswith(suffix):
            return kind
    raise InputError(
        f"the file type of '{path.name}' is not known: use one of the suffixes {', '.join(known)}"
    )


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
        raise InputError(unreadable(f"the file '{path}'", _format(path, READABLE))) from None


def unreadable(what: str, kind: str) -> str:
    rows = " and that every row has as many cells as the header" if kind == "csv" else ""
    return f"{what} cannot be read as {kind}: check that it is complete{rows}"


def _read_object(source: Any, columns: list[str]) -> pa.Table:
    import pyarrow as pa

    check_columns(_object_names(source), columns)
    if isinstance(source, pa.Table | pa.RecordBatch):
        return pa.table(source.select(columns))
    if not isinstance(source, Mapping) and not hasattr(source, "columns"):
        return pa.table(source).select(columns)
    parts = {name: _object_column(source, name) for name in columns}
    if len({len(part) for part in parts.values()}) > 1:
        raise InputError(
            "the columns "
            + listed(columns)
            + " differ in length: give every column one value per record"
        )
    return pa.table(parts)


def _object_names(source: Any) -> list[str]:
    import pyarrow as pa

    if isinstance(source, pa.Table | pa.RecordBatch):
        return list(source.schema.names)
    if isinstance(source, Mapping):
        return [str(name) for name in source]
    if hasattr(source, "__arrow_c_stream__") and hasattr(source, "columns"):
        return [str(name) for name in source.columns]
    if hasattr(source, "__arrow_c_stream__"):
        return list(pa.RecordBatchReader.from_stream(source).schema.names)
    raise InputError(
        f"an object of type {type(source).__name__} cannot be read as a table: give the path of a "
        "CSV, Parquet, Arrow or .h5ad file, an Arrow, pandas or polars table, AnnData, or a "
        "dictionary of arrays"
    )


def _object_column(source: Any, name: str) -> pa.ChunkedArray:
    import pyarrow as pa

    keys = source if isinstance(source, Mapping) else source.columns
    key = next(key for key in keys if str(key) == name)
    if isinstance(source, Mapping):
        return to_column(source[key], name)
    # One column at a time, so that a column that cannot be converted can be named.
    try:
        return pa.table(source[[key]]).column(0)
    except Exception:
        raise _mixed(name) from None


def to_column(values: Any, name: str) -> pa.ChunkedArray:
    """A sequence of values as an Arrow column; None and NaN become null."""
    import pyarrow as pa

    try:
        if hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        values = np.asarray(values) if np.ndim(values) == 1 else values
        return pa.chunked_array([pa.array(values, from_pandas=True)])
    except Exception:
        raise _mixed(name) from None


def _mixed(name: str) -> InputError:
    return InputError(
        f"column '{name}' mixes kinds of values or is not a plain list of them: "
        "give one number, date or text per record"
    )


def check_columns(names: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse a table with two columns of one name, or without one that is wanted."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(
            f"the table has more than one column named {listed(repeated)}: rename them"
        )
    absent = [name for name in columns if name not in names]
    if absent:
        raise InputError(
            f"the table has no column {listed(absent)}: it has {some(names) or 'no columns'}"
        )


# Columns ------------------------------------------------------------------------------------


def numbers(column: pa.ChunkedArray, name: str) -> NDArray[np.float64]:
    """A column as (n,) float64 with NaN for null; whole numbers, decimals, true and false count."""
    column = plain(column)
    check_numeric(column.type, name, column)
    return _floats(column)


def moments(column: pa.ChunkedArray, name: str) -> tuple[NDArray[np.float64], bool]:
    """A time column as ((n,) float64, whether it holds dates); NaN for null.

    Numbers stay as they are. Dates and timestamps become seconds since 1970-01-01 in UTC; without
    a time zone they are read as UTC. The resolution is a microsecond.
    """
    import pyarrow as pa

    column = plain(column)
    if not is_moment(column.type, name, column):
        return _floats(column), False
    if pa.types.is_date(column.type):
        return _floats(column.cast(pa.date32()).cast(pa.int32())) * _SECONDS_PER_DAY, True
    micros = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False)
    return _floats(micros.cast(pa.int64())) / 1e6, True


def check_numeric(kind: pa.DataType, name: str, cells: Iterable[pa.Scalar]) -> None:
    """Refuse a column that is not numeric; its cells are looked at if they are text."""
    if not is_numeric(kind):
        raise InputError(f"column '{name}' is not numeric {_holds(kind, cells)}")


def is_moment(kind: pa.DataType, name: str, cells: Iterable[pa.Scalar]) -> bool:
    """Whether a time column holds dates; refuses one that holds no numbers either."""
    import pyarrow as pa

    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return True
    if not is_numeric(kind):
        raise InputError(
            f"the time column '{name}' is neither numeric nor a date {_holds(kind, cells)} "
            "or dates such as 2024-01-31"
        )
    return False


def identities(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], pa.Array]:
    """A column of identifiers as codes (n,), -1 for missing, and the identifier of each code."""
    encoded = plain(column).combine_chunks().dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(-1), dtype=np.int64)
    return codes, encoded.dictionary


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values themselves of a column of categories."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return column
    kind = column.type.value_type
    if pa.types.is_string_view(kind):  # from polars; pyarrow cannot take these by their numbers
        kind = pa.large_string()
    parts = [part.dictionary.cast(kind).take(part.indices) for part in column.chunks]
    return pa.chunked_array(parts, kind)


def is_numeric(kind: pa.DataType) -> bool:
    from pyarrow import types

    tests = (
        types.is_boolean,
        types.is_integer,
        types.is_floating,
        types.is_decimal,
        types.is_null,
    )
    return any(test(kind) for test in tests)


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())  # rounds to the nearest, which the direct cast does not
    return np.array(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def _holds(kind: pa.DataType, cells: Iterable[pa.Scalar]) -> str:
    import pyarrow as pa

    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        read = Counter(_reads_as_number(cell.as_py()) for cell in cells)
        return (
            f"(it holds text, and {read[False]} of its {read.total()} rows do not read as "
            "numbers): turn it into numbers with a decimal point"
        )
    if pa.types.is_temporal(kind):
        return "(it holds dates or times): turn it into numbers"
    return f"(its type is {kind}): turn it into numbers"


def _reads_as_number(cell: str | None) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True


# Writing ------------------------------------------------------------------------------------


def write_table(table: pa.Table, path: str | os.PathLike[str], force: bool = False) -> None:
    """Write a `pyarrow.Table` as CSV, Parquet or Arrow, by suffix; see `atomic_path`."""
    path = Path(path)
    kind = _format(path)
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


def write_text(text: str, path: str | os.PathLike[str], force: bool = False) -> None:
    """Write text in UTF-8; see `atomic_path`."""
    with atomic_path(path, force) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def atomic_path(path: str | os.PathLike[str], force: bool = False) -> Iterator[Path]:
    """A temporary path beside `path`; it becomes `path` when the block ends without an error.

    The temporary file has the same directory and suffix. It is flushed to disk and renamed, so a
    reader sees the old file or the new one, never a part; after an error it is removed and an
    existing `path` is as it was. An existing `path` is refused unless `force`.
    """
    path = Path(path)
    check_writable(path, force)
    temporary = path.with_name(f".{secrets.token_hex(6)}.{path.name}")
    try:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: Path, force: bool) -> None:
    if not path.parent.is_dir():
        raise InputError(f"there is no directory '{path.parent}': create it first")
    if path.is_dir():
        raise InputError(f"'{path}' is a directory: give the name of a file")
    if path.exists() and not force:
        raise InputError(
            f"the file '{path}' already exists: choose another name, or replace it with --force "
            "(force=True in Python)"
        )
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"the directory '{path.parent}' cannot be written to: choose another one")


def _flush(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
