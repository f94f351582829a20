"""Tables in memory: the wanted columns of a file, or of a table of any library, as Arrow.

Messages name columns, files and counts of rows. They never quote a cell: the texts of pyarrow and
pandas do, so they are never passed on.
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

from privtraj.columns.cells import MISSING
from privtraj.data import anndata
from privtraj.data.arrow import check_columns, is_text, kinds_of, read_object, without_missing
from privtraj.errors import InputError
from privtraj.formats import READABLE, format_of, load

if TYPE_CHECKING:
    import pyarrow as pa

_VALUE = re.compile(r"[-+]?[\d.,]*\d[\d.,]*(e[-+]?\d+)?|\d+[-/.]\d+[-/.]\d+.*", re.IGNORECASE)


def read_columns(
    source: Any, columns: Sequence[str], *, text: Sequence[str] = (), exact: Sequence[str] = ()
) -> pa.Table:
    """The named columns of a table, in the order asked for.

    source: path to a CSV, Parquet, Arrow or .h5ad file (told apart by the suffix), pyarrow Table or
        RecordBatch, pandas or polars DataFrame, AnnData, any object with `__arrow_c_stream__`, or
        a dictionary of arrays.
    columns: names to read; nothing else is read. Those of AnnData are explained in `data.anndata`.
    text: names among them that a CSV file must not turn into numbers (an identifier "007").
    exact: names of which the same holds, and that also keep texts such as "NA" (a category).
    """
    wanted, text = list(dict.fromkeys(columns)), [*text, *exact]
    if isinstance(source, str | os.PathLike):
        with reader_of(Path(source), exact) as reader:
            reader.check(wanted)
            return reader.read(wanted, text)
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
    with reader_of(path) as reader:
        return kinds_of(reader.schema())


def check_file(path: Path, columns: Sequence[str]) -> None:
    """Refuse a file that lacks one of these columns, or has two of one name."""
    with reader_of(path) as reader:
        reader.check(columns)


@contextmanager
def reader_of(path: Path, exact: Sequence[str] = ()) -> Iterator[Any]:
    """The `Reader` of a file; its errors, which may quote the data, become one that names it."""
    kind = format_of(path, READABLE)
    if not path.is_file():
        raise InputError(f"there is no file '{path}': check the path")
    try:
        yield load(kind.reader)(path, exact)
    except InputError:
        raise
    except UnicodeError:
        raise InputError(f"the file '{path}' is not text in UTF-8: save it as UTF-8") from None
    except PermissionError:
        raise InputError(f"the file '{path}' may not be read: change its permissions") from None
    except Exception:
        raise InputError(unreadable(f"the file '{path}'", kind.name)) from None


def unreadable(what: str, kind: str) -> str:
    """The sentence about what cannot be read as a file of this kind."""
    rows = " and that every row has as many cells as the header" if kind == "csv" else ""
    return f"{what} cannot be read as {kind}: check that it is complete{rows}"


# A class for each format ----------------------------------------------------------------------


class Reader:
    """Reads a file of one format. exact: columns in which no text means a missing value."""

    def __init__(self, path: Path, exact: Sequence[str] = ()) -> None:
        self.path = path
        self.exact = exact

    def schema(self) -> pa.Schema:
        """Names and types of all columns."""
        raise NotImplementedError

    def check(self, columns: Sequence[str]) -> None:
        """Refuse a file that lacks one of these columns, or has two of one name."""
        check_columns(self.schema().names, columns)

    def read(self, columns: Sequence[str], text: Sequence[str]) -> pa.Table:
        """These columns, which have been checked; those in `text` are not to become numbers."""
        raise NotImplementedError


class ParquetReader(Reader):
    def schema(self) -> pa.Schema:
        import pyarrow.parquet as pq

        return pq.read_schema(self.path)

    def read(self, columns: Sequence[str], text: Sequence[str]) -> pa.Table:
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path) as file:
            return file.read(columns=columns).select(columns)


class ArrowReader(Reader):
    def schema(self) -> pa.Schema:
        import pyarrow as pa

        with pa.ipc.open_file(str(self.path)) as file:
            return file.schema

    def read(self, columns: Sequence[str], text: Sequence[str]) -> pa.Table:
        import pyarrow as pa

        with pa.ipc.open_file(str(self.path)) as file:
            return file.read_all().select(columns)


class H5adReader(Reader):
    def schema(self) -> pa.Schema:
        """Text is looked at, as it may hold dates."""
        with anndata.opened(self.path) as data:
            return anndata.table(data, anndata.names(data)).schema

    def check(self, columns: Sequence[str]) -> None:
        """`anndata.table` does it, with the places where it looked."""

    def read(self, columns: Sequence[str], text: Sequence[str]) -> pa.Table:
        with anndata.opened(self.path) as data:
            return anndata.table(data, columns, text)


class CsvReader(Reader):
    def schema(self) -> pa.Schema:
        names = [name for name in self.header()[0] if name]
        check_columns(names, [])
        self._check_header(names)
        return self.types(names, ())

    def check(self, columns: Sequence[str]) -> None:
        names = self.header()[0]
        if not set(columns) <= set(names):
            self._check_header(names)  # or the sentence would list it
        check_columns(names, columns)

    def read(self, columns: Sequence[str], text: Sequence[str]) -> pa.Table:
        from pyarrow import csv as arrow_csv

        table = arrow_csv.read_csv(str(self.path), **self._options(columns, text))
        for k, field in enumerate(table.schema):
            if is_text(field.type) and field.name not in self.exact:
                table = table.set_column(k, field.name, without_missing(table.column(k)))
        return table

    def header(self) -> tuple[list[str], str]:
        """Column names, and the delimiter: whichever of , ; tab the first line has most of."""
        with self._open() as file:
            line = file.readline()
            if not line.strip():
                raise InputError(
                    f"the file '{self.path}' has no header: its first line must name the columns"
                )
            delimiter = max(",;\t", key=line.count)
            file.seek(0)
            return next(csv.reader(file, delimiter=delimiter)), delimiter

    def types(self, columns: Sequence[str], text: Sequence[str]) -> pa.Schema:
        """The types of these columns, as far as the first rows of the file tell."""
        from pyarrow import csv as arrow_csv

        with arrow_csv.open_csv(str(self.path), **self._options(columns, text)) as file:
            return file.schema

    def _check_header(self, names: Sequence[str]) -> None:
        """A first line of values is the record of a person, not to be shown."""
        odd = sum(bool(_VALUE.fullmatch(name.strip())) for name in names)
        if odd:
            raise InputError(
                f"{odd} of the {len(names)} names in the first line of '{self.path}' read as "
                "numbers or dates, so it may be a record: put a line with the names of the "
                "columns first"
            )

    def _open(self) -> TextIO:
        if self.path.name.lower().endswith(".gz"):
            return io.TextIOWrapper(gzip.open(self.path), encoding="utf-8-sig", newline="")
        return open(self.path, encoding="utf-8-sig", newline="")

    def _options(self, columns: Sequence[str], text: Sequence[str]) -> dict[str, Any]:
        import pyarrow as pa
        from pyarrow.csv import ConvertOptions, ParseOptions

        parse = ParseOptions(delimiter=self.header()[1], newlines_in_values=True)
        types = {name: pa.string() for name in text}
        convert = ConvertOptions(
            include_columns=columns, column_types=types, null_values=sorted(MISSING)
        )
        return {"parse_options": parse, "convert_options": convert}
