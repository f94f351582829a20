"""Readers of files, a class for each format: Parquet and Arrow here, `csv_files`, `anndata`.

Messages name columns, files and counts of rows. They never quote a cell: the texts of pyarrow and
pandas do, so they are never passed on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from privtraj.data.arrow import check_columns
from privtraj.errors import InputError
from privtraj.formats import READABLE, format_of, load

if TYPE_CHECKING:
    import pyarrow as pa


class Reader:
    """Reads files of one format; call its methods inside `explained`."""

    def schema(self, path: Path) -> pa.Schema:
        """Names and types of all columns."""
        raise NotImplementedError

    def check(self, path: Path, columns: Sequence[str]) -> None:
        """Refuse a file that lacks one of these columns, or has two of one name."""
        check_columns(self.schema(path).names, columns)

    def read(self, path: Path, columns: Sequence[str], text: Sequence[str]) -> pa.Table:
        """These columns, which have been checked; those in `text` are not to become numbers."""
        raise NotImplementedError


class ParquetReader(Reader):
    def schema(self, path: Path) -> pa.Schema:
        import pyarrow.parquet as pq

        return pq.read_schema(path)

    def read(self, path: Path, columns: Sequence[str], text: Sequence[str]) -> pa.Table:
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            return file.read(columns=columns).select(columns)


class ArrowReader(Reader):
    def schema(self, path: Path) -> pa.Schema:
        import pyarrow as pa

        with pa.ipc.open_file(str(path)) as reader:
            return reader.schema

    def read(self, path: Path, columns: Sequence[str], text: Sequence[str]) -> pa.Table:
        import pyarrow as pa

        with pa.ipc.open_file(str(path)) as reader:
            return reader.read_all().select(columns)


def reader_of(path: Path) -> Reader:
    """What reads the file; refuses one of an unknown format or that is not there."""
    kind = format_of(path, READABLE)
    if not path.is_file():
        raise InputError(f"there is no file '{path}': check the path")
    reader: Reader = load(kind.reader)()
    return reader


@contextmanager
def explained(path: Path) -> Iterator[None]:
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
        kind = format_of(path, READABLE).name
        raise InputError(unreadable(f"the file '{path}'", kind)) from None


def unreadable(what: str, kind: str) -> str:
    """The sentence about what cannot be read as a file of this kind."""
    rows = " and that every row has as many cells as the header" if kind == "csv" else ""
    return f"{what} cannot be read as {kind}: check that it is complete{rows}"
