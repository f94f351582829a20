"""Tables in memory: the wanted columns of a file, or of a table of any library, as Arrow.

Messages name columns, files and counts of rows. They never quote a cell: the texts of pyarrow and
pandas do, so they are never passed on.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv
from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions

from privtraj.base.errors import InputError, Said, first_few, listed
from privtraj.base.formats import READABLE, extra, format_of
from privtraj.data.arrow import is_text, places_of, plain, read_object, to_column, without_unit
from privtraj.data.dialect import (
    DATE,
    DELIMITERS,
    EXACT,
    NUMBER,
    PLAIN,
    TEXT,
    CellKind,
    Dialect,
    Readings,
    read_cells,
)

MOST_COLUMNS = 100_000  # of a CSV file, and
MOST_HEADER = 1 << 24  # letters of its first line, before anything is made of it

_VALUE = re.compile(r"[-+]?[\d.,]*\d[\d.,]*(e[-+]?\d+)?|\d+[-/.]\d+[-/.]\d+.*", re.IGNORECASE)


def read_columns(
    source: Any,
    columns: Sequence[str],
    kinds: Mapping[str, CellKind] | None = None,
    dialect: Dialect = PLAIN,
) -> pa.Table:
    """The named columns of a table, in the order asked for.

    source: path to a CSV, Parquet, Arrow or .h5ad file (told apart by the suffix), pyarrow Table or
        RecordBatch, pandas or polars DataFrame, AnnData, any object with `__arrow_c_stream__`, or
        a dictionary of arrays.
    columns: names to read, with or without the unit that a name in the table ends in; nothing else
        is read. Those of AnnData are explained below.
    kinds: of columns of CSV files, as `dialect` has them: each of their cells is read as such, or
        is unreadable. Columns that are not there are numbers.
    dialect: of CSV files.
    """
    wanted, kinds = list(dict.fromkeys(columns)), kinds or {}
    if isinstance(source, str | os.PathLike):
        with reader_of(Path(source), dialect) as reader:
            return reader.read(wanted, kinds)
    if is_anndata(source):
        return _anndata_table(source, wanted, kinds)
    return read_object(source, wanted)


@contextmanager
def reader_of(path: Path, dialect: Dialect = PLAIN) -> Iterator[Any]:
    """The `Reader` of a file; its errors, which may quote the data, become one that names it."""
    kind = format_of(path, READABLE)
    if not path.is_file():
        raise InputError(f"there is no file '{path}': check the path")
    try:
        yield Reader.known[kind.name](path, dialect)
    except InputError:
        raise
    except PermissionError:
        raise InputError(f"the file '{path}' may not be read: change its permissions") from None
    except Exception as error:
        if not isinstance(error, UnicodeError) and "invalid UTF8" not in str(error):  # of Arrow
            raise InputError(unreadable(f"the file '{path}'", kind.name)) from None
        if dialect.encoding not in (None, "utf-8"):
            raise InputError(
                f"the file '{path}' is not text in {dialect.encoding}: declare its encoding"
            ) from None
        raise InputError(
            f"the file '{path}' is not text in UTF-8: save it as UTF-8, or declare its encoding, "
            "as ",
            Said("csv={'encoding': 'windows-1252'}", "--csv encoding=windows-1252"),
        ) from None


def unreadable(what: str, kind: str) -> str:
    """The sentence about what cannot be read as a file of this kind."""
    rows = " and that every row has as many cells as the header" if kind == "csv" else ""
    return f"{what} cannot be read as {kind}: check that it is complete{rows}"


# A class for each format ----------------------------------------------------------------------


class Reader:
    """Reads a file of one format. dialect: how its cells are written, if it is text."""

    known: ClassVar[dict[str, type[Reader]]] = {}
    """The reader of every format, by its name in `base.formats`."""

    def __init_subclass__(cls, format: str) -> None:
        Reader.known[format] = cls

    def __init__(self, path: Path, dialect: Dialect = PLAIN) -> None:
        self.path = path
        self.dialect = dialect

    def schema(self) -> pa.Schema:
        """Names and types of all columns."""
        raise NotImplementedError

    def check(self, columns: Sequence[str]) -> dict[str, str]:
        """Refuse a file that lacks one of these columns, or has two of one name.

        {wanted: name in the file}, which may have a unit behind it.
        """
        return places_of(self.schema().names, columns)

    def read(self, columns: Sequence[str], kinds: Mapping[str, CellKind]) -> pa.Table:
        """These columns, once they are checked, under the names asked for."""
        names = list(self.check(columns).values())
        return self.stored(names).select(names).rename_columns(columns)

    def stored(self, names: list[str]) -> pa.Table:
        """These columns of the file, at least, where they have types."""
        raise NotImplementedError


class ArrowReader(Reader, format="arrow"):
    @cached_property
    def _file(self) -> Any:
        return pa.ipc.open_file(pa.memory_map(str(self.path)))

    def schema(self) -> pa.Schema:
        return self._file.schema

    def stored(self, names: list[str]) -> pa.Table:
        return self._file.read_all()


class ParquetReader(Reader, format="parquet"):
    @cached_property
    def _file(self) -> Any:
        from pyarrow.parquet import ParquetFile

        return ParquetFile(self.path)

    def schema(self) -> pa.Schema:
        return self._file.schema_arrow

    def stored(self, names: list[str]) -> pa.Table:
        return self._file.read(names)


class H5adReader(Reader, format="h5ad"):
    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Its AnnData; the matrix stays in the file until columns of it are asked for."""
        with warnings.catch_warnings():  # its words are not ours, and may quote names of records
            warnings.simplefilter("ignore")
            data = anndata_needed().read_h5ad(self.path, backed="r")
            try:
                yield data
            finally:
                data.file.close()

    def schema(self) -> pa.Schema:
        """Text is looked at, as it may hold dates."""
        with self._opened() as data:
            return _anndata_table(data, _names(data)).schema

    def check(self, columns: Sequence[str]) -> dict[str, str]:
        """`_anndata_table` does it, with the places where it looked."""
        return {name: name for name in columns}

    def read(self, columns: Sequence[str], kinds: Mapping[str, CellKind]) -> pa.Table:
        with self._opened() as data:
            return _anndata_table(data, columns, kinds)


class CsvReader(Reader, format="csv"):
    def check(self, columns: Sequence[str]) -> dict[str, str]:
        names, delimiter = self.header
        if not set(columns) <= {*names, *map(without_unit, names)}:
            self.check_header(names)  # or the sentence would list it
            for word, sign in DELIMITERS.items():  # another one may have been declared
                if sign != delimiter and len(names) == 1 and sign in names[0]:
                    raise InputError(
                        f"the first line of '{self.path}' has one name, with a {word} in it: "
                        "declare ",
                        Said(f"csv={{'delimiter': {sign!r}}}", f"--csv delimiter={word}"),
                    )
        return places_of(names, columns)

    def read(self, columns: Sequence[str], kinds: Mapping[str, CellKind]) -> pa.Table:
        readings = {name: Readings(name, kinds.get(name, NUMBER), self.dialect) for name in columns}
        table = pa.Table.from_batches(self.batches(readings))
        for column in readings.values():
            column.check()
        return table

    def batches(self, columns: Mapping[str, Readings]) -> Iterator[pa.RecordBatch]:
        """Values of columns, which count what they read; no more than a block of text is held."""
        lines, rows = self.check_lines(), 0
        for texts in self.texts(list(self.check(list(columns)).values())):
            values = [
                column.read(cells) for column, cells in zip(columns.values(), texts, strict=True)
            ]
            yield pa.record_batch(values, names=list(columns))
            rows += len(values[0])
        if lines not in (None, rows):
            raise self._torn(abs(lines - rows))

    def check_lines(self) -> int | None:
        """Refuse a line that ends in quotes, or the records behind it would become one cell.

        How many lines have a record, unless line breaks inside of cells are declared.
        """
        if self.dialect.newlines == "quoted":
            return None
        delimiter, torn, lines = self.header[1], 0, 0
        with self.text() as file:
            next(csv.reader(file, delimiter=delimiter))
            for line in file:
                lines += line != "\n"
                if '"' in line:  # all quotes that it opens must be closed on it
                    torn += len(list(csv.reader([line, "next"], delimiter=delimiter))) != 2
        if torn:
            raise self._torn(torn)
        return lines

    def _torn(self, count: int) -> InputError:
        return InputError(
            f"{count} lines of '{self.path}' end inside quotation marks, and would hide the "
            "records behind them: close the quotes or, if cells really have line breaks, declare ",
            Said("csv={'newlines': 'quoted'}", "--csv newlines=quoted"),
        )

    def texts(self, names: Sequence[str]) -> Iterator[list[pa.Array]]:
        """The cells of these columns of the file, as text, so many rows at a time."""
        convert = ConvertOptions(
            include_columns=names, column_types=dict.fromkeys(names, pa.string())
        )
        parse = ParseOptions(delimiter=self.header[1], newlines_in_values=True)
        read = ReadOptions(encoding=self.encoding)
        with arrow_csv.open_csv(str(self.path), read, parse, convert) as file:
            yield [pa.nulls(0, pa.string()) for _ in names]  # of a file without rows
            for batch in file:
                yield list(batch.columns)

    @cached_property
    def header(self) -> tuple[list[str], str]:
        """Column names, and the delimiter: whichever of , ; tab | the first line has most of."""
        with self.text() as file:
            line = file.readline(MOST_HEADER)
            if not line.strip():
                raise InputError(
                    f"the file '{self.path}' has no header: its first line must name the columns"
                )
            bare = re.sub('"[^"]*"', "", line)  # what is in quotes delimits nothing
            delimiter = self.dialect.delimiter or max(DELIMITERS.values(), key=bare.count)
            if len(line) == MOST_HEADER or bare.count(delimiter) >= MOST_COLUMNS:
                raise InputError(
                    f"the first line of '{self.path}' has more than {MOST_COLUMNS} names, or is "
                    "endless: keep the columns that are wanted"
                )
            file.seek(0)
            return next(csv.reader(file, delimiter=delimiter)), delimiter

    @property
    def encoding(self) -> str:
        """As declared, or as a byte order mark says, which is before all records."""
        if self.dialect.encoding is not None:
            return self.dialect.encoding
        with self.bytes() as file:
            start = file.read(2)
        return "utf-16" if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8"

    def check_header(self, names: Sequence[str]) -> None:
        """A first line of values is the record of a person, not to be shown."""
        odd = sum(bool(_VALUE.fullmatch(name.strip())) for name in names)
        if odd:
            raise InputError(
                f"{odd} of the {len(names)} names in the first line of '{self.path}' read as "
                "numbers or dates, so it may be a record: put a line with the names of the "
                "columns first"
            )

    def bytes(self) -> Any:
        """The file, unpacked."""
        zipped = self.path.name.lower().endswith(".gz")
        return gzip.open(self.path) if zipped else open(self.path, "rb")

    def text(self) -> Any:
        """The file, decoded, with line breaks of any kind as newlines."""
        encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        return io.TextIOWrapper(self.bytes(), encoding=encoding)


# AnnData, in memory and in .h5ad files ----------------------------------------------------------
#
# Names are scanpy's: a column of obs by its name, coordinate k of obsm["X_pca"] as "X_pca-k", a
# gene by its name in var.

COORDINATE = re.compile(r"([^/]+)-(\d+)")  # HDF5 takes a slash for a folder


def is_anndata(source: Any) -> bool:
    """Whether it is an AnnData object; whoever has one has imported anndata."""
    anndata = sys.modules.get("anndata")
    return anndata is not None and isinstance(source, anndata.AnnData)


def anndata_needed() -> Any:
    """The module anndata."""
    return extra("anndata", "AnnData and .h5ad files", "privtraj[anndata]")


def _names(data: Any) -> list[str]:
    """Columns of obs and coordinates of obsm. Genes, which are many, are not listed."""
    tables = {key: values for key, values in data.obsm.items() if values.ndim == 2}
    coordinates = [f"{key}-{k}" for key, x in tables.items() for k in range(x.shape[1])]
    return [*map(str, data.obs.columns), *coordinates]


def _anndata_table(
    data: Any, columns: Sequence[str], kinds: Mapping[str, CellKind] | None = None
) -> pa.Table:
    """These columns, in their order.

    A file has no dates: text that reads as dates becomes dates, unless its kind is text or a
    category, of which an identifier "007" is one.
    """
    known = _names(data)
    for name in columns:
        places = known.count(name) + int((data.var_names == name).sum())
        if places > 1:
            raise InputError(
                f"obs, obsm and var have more than one column named '{name}': rename them"
            )
        if places == 0:
            raise InputError(
                f"there is no column '{name}' in obs or obsm and no gene of that name in var: obs "
                f"and obsm have {first_few(known) or 'no columns'}"
            )

    def dense(values: Any) -> NDArray[Any]:
        return np.asarray(values.toarray() if hasattr(values, "toarray") else values)

    genes = [name for name in columns if name not in known]
    parts: dict[str, Any] = {}
    if genes:  # all at once: a matrix on disk is read through for any of them
        try:
            empty = data.X is None
        except KeyError:  # a file without one
            empty = True
        if empty:
            raise InputError(
                f"there are no values of the genes {listed(genes)}, as X is empty: fill it in, "
                "or use columns of obs or obsm"
            )
        part = data[:, genes]
        values = dense((part.to_memory() if data.isbacked else part).X)
        parts = {gene: to_column(values[:, k], gene) for k, gene in enumerate(genes)}
    for name in (name for name in columns if name in known):
        if name not in data.obs.columns:
            key, _, k = name.rpartition("-")
            values = data.obsm[key]
            values = values.iloc if hasattr(values, "iloc") else values
            parts[name] = to_column(dense(values[:, [int(k)]])[:, 0], name)
            continue
        parts[name] = read_object(data.obs, [name]).column(0)
        words, kind = plain(parts[name]), (kinds or {}).get(name, DATE)
        exact = kind.word in (TEXT.word, EXACT.word)
        if is_text(words.type) and not exact and words.null_count < len(words):
            dates, odd = read_cells(words.cast(pa.string()).combine_chunks(), DATE, PLAIN)
            parts[name] = parts[name] if odd.true_count else pa.chunked_array([dates])
    return pa.table({name: parts[name] for name in columns})
