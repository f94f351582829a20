"""CSV files: header and delimiter, types of columns, values."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from privtraj.data.arrow import check_columns
from privtraj.data.readers import Reader, explained
from privtraj.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

_VALUE = re.compile(r"[-+]?[\d.,]*\d[\d.,]*(e[-+]?\d+)?|\d+[-/.]\d+[-/.]\d+.*", re.IGNORECASE)


class CsvReader(Reader):
    def schema(self, path: Path) -> pa.Schema:
        names = [name for name in header(path)[0] if name]
        check_columns(names, [])
        _check_header(path, names)
        return schema(path, names, ())

    def check(self, path: Path, columns: Sequence[str]) -> None:
        names = header(path)[0]
        if not set(columns) <= set(names):
            _check_header(path, names)  # or the sentence would list it
        check_columns(names, columns)

    def read(self, path: Path, columns: Sequence[str], text: Sequence[str]) -> pa.Table:
        from pyarrow import csv as arrow_csv

        return arrow_csv.read_csv(str(path), **_options(path, columns, text))


def header(path: Path) -> tuple[list[str], str]:
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


def schema(path: Path, columns: Sequence[str], text: Sequence[str]) -> pa.Schema:
    """The types of these columns, as far as the first rows of the file tell."""
    from pyarrow import csv as arrow_csv

    with (
        explained(path),
        arrow_csv.open_csv(str(path), **_options(path, columns, text)) as reader,
    ):
        return reader.schema


def _check_header(path: Path, names: Sequence[str]) -> None:
    """A first line of values is the record of a person, not to be shown."""
    odd = sum(bool(_VALUE.fullmatch(name.strip())) for name in names)
    if odd:
        raise InputError(
            f"{odd} of the {len(names)} names in the first line of '{path}' read as numbers or "
            "dates, so it may be a record: put a line with the names of the columns first"
        )


def _open_text(path: Path) -> TextIO:
    if path.name.lower().endswith(".gz"):
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _options(path: Path, columns: Sequence[str], text: Sequence[str]) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    return {
        "parse_options": arrow_csv.ParseOptions(delimiter=header(path)[1], newlines_in_values=True),
        "convert_options": arrow_csv.ConvertOptions(
            include_columns=columns,
            column_types={name: pa.string() for name in text},
            strings_can_be_null=True,
        ),
    }
