"""Columns in memory: tables of every library as Arrow, and columns as numbers, times and codes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types

from privtraj.base.errors import InputError, either, first_few, listed
from privtraj.columns.cells import key_of
from privtraj.data.dialect import DATE, NUMBER, PLAIN, read_cells

# Tables and the names of their columns ----------------------------------------------------------


def read_object(source: Any, columns: list[str]) -> pa.Table:
    """These columns of a table of any library, under the names asked for."""
    places = places_of(object_names(source), columns)
    arrow = isinstance(source, pa.Table | pa.RecordBatch)
    if arrow or not (isinstance(source, Mapping) or hasattr(source, "columns")):
        table = source if arrow else pa.table(source)
        return pa.table(table.select(list(places.values()))).rename_columns(columns)
    keys = {str(key): key for key in getattr(source, "columns", source)}
    # one column at a time, so that one that cannot be converted can be named
    parts = {name: to_column(source, place, keys[place]) for name, place in places.items()}
    if len({len(part) for part in parts.values()}) > 1:
        raise InputError(
            f"the columns {listed(columns)} differ in length: give every column one value per "
            "record"
        )
    return pa.table(parts)


def object_names(source: Any) -> list[str]:
    if isinstance(source, pa.Table | pa.RecordBatch):
        return list(source.schema.names)
    if isinstance(source, Mapping):
        return [str(name) for name in source]
    if hasattr(source, "__arrow_c_stream__"):
        if hasattr(source, "columns"):
            return [str(name) for name in source.columns]
        return list(pa.RecordBatchReader.from_stream(source).schema.names)
    raise InputError(
        f"an object of type {type(source).__name__} cannot be read as a table: give the path of a "
        "CSV, Parquet, Arrow or .h5ad file, an Arrow, pandas or polars table, AnnData, or a "
        "dictionary of arrays"
    )


def to_column(values: Any, name: str, key: Any = None) -> pa.ChunkedArray:
    """A sequence of values as an Arrow column; None and NaN become null.

    key: the place of the column where values are a table or a dictionary of columns.
    """
    try:
        if key is not None and not isinstance(values, Mapping):
            return pa.table(values[[key]]).column(0)
        values = values if key is None else values[key]
        if hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        if isinstance(values, pa.Array):
            return pa.chunked_array([values])
        values = np.asarray(values) if np.ndim(values) == 1 else values
        return pa.chunked_array([pa.array(values, from_pandas=True)])
    except Exception:
        raise InputError(
            f"column '{name}' mixes kinds of values or is not a plain list of them: "
            "give one number, date or text per record"
        ) from None


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
            f"the table has no column {listed(absent)}: it has {first_few(names) or 'no columns'}"
        )


_UNIT = re.compile(r"\s*(?:\[([^\[\]]*)\]|\(([^()]*)\))\s*$")


def unit_of(name: str) -> str:
    """The unit that the name of a column ends in: kg of "Weight [kg]" and of "Weight (kg)"."""
    found = _UNIT.search(name)
    return (found[1] or found[2] or "").strip() if found else ""


def without_unit(name: str) -> str:
    return _UNIT.sub("", name).strip()


def places_of(names: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    """The names in a table of wanted columns, which may be without the unit; after checks.

    Names are the schema of a table, and public.
    """
    bare: dict[str, list[str]] = {}
    for name in names:
        bare.setdefault(without_unit(name), []).append(name)
    found = {}
    for wanted in columns:
        like = [wanted] if wanted in names else bare.get(wanted, [wanted])
        if len(like) > 1:
            names_like = either(f"'{name}'" for name in like)
            raise InputError(f"'{wanted}' may be {names_like}: name it with its unit")
        found[wanted] = like[0]
    check_columns(names, list(found.values()))
    if len(set(found.values())) < len(found):
        twice = [wanted for wanted, name in found.items() if wanted != name]
        raise InputError(f"{listed(twice)} is named with its unit and without it: keep one of them")
    return found


# Types ------------------------------------------------------------------------------------------

_NUMERIC = "boolean integer floating decimal null"
_TEXT = "string large_string string_view"
_DATE = "date timestamp"
_BYTES = "binary large_binary binary_view fixed_size_binary"
_ALLOWED = {
    "number": _NUMERIC,
    "time": f"{_NUMERIC} {_DATE}",
    "date": f"{_DATE} {_TEXT} null",
    "category": f"{_NUMERIC} {_TEXT}",
    "person": f"{_NUMERIC} {_TEXT} {_BYTES}",
}
"""The types that a column may have, by what it is, as `pyarrow.types` calls them."""


def _is(kind: pa.DataType | None, names: str) -> bool:
    return kind is not None and any(getattr(types, f"is_{name}")(kind) for name in names.split())


def is_text(kind: pa.DataType | None) -> bool:
    return _is(kind, _TEXT)


def is_date(kind: pa.DataType | None) -> bool:
    return _is(kind, _DATE)


def check_type(
    kind: pa.DataType | None, name: str, role: str, cells: Iterable[pa.Scalar] = ()
) -> None:
    """Refuse a column whose type, None if nobody knows, is not one of those that `role` may have.

    cells: of text that should be numbers, to count those that are none.
    """
    if _is(kind, _ALLOWED[role]):
        return
    shown = "unknown" if kind is None else re.split(r"\W", str(kind))[0]  # no names of fields
    if role == "person":
        raise InputError(
            f"the person column '{name}' holds no plain values (their type is {shown}): "
            "give one number or text per record"
        )
    if role in ("category", "date"):
        do = "dates such as 2024-01-31" if role == "date" else "texts, whole numbers, true or false"
        raise InputError(
            f"column '{name}' is declared as a {role}, and its type is {shown}: turn it into {do}, "
            "or declare another kind"
        )
    holds = f"(its type is {kind or shown}): turn it into numbers"
    if is_text(kind):
        texts = pa.array([cell.as_py() for cell in cells], pa.string())
        wrong = read_cells(texts, NUMBER, PLAIN)[1].true_count
        holds = (
            f"(it holds text, and {wrong} of its {len(texts)} rows do not read as numbers): turn "
            "it into numbers with a decimal point"
        )
    elif _is(kind, "temporal"):
        holds = "(it holds dates or times): turn it into numbers"
    if role == "time":
        start = f"the time column '{name}' is neither numeric nor a date"
        raise InputError(f"{start} {holds} or dates such as 2024-01-31")
    other = "a category" if is_text(kind) else "a date" if is_date(kind) else None
    declare = "" if other is None else f", or declare it as {other}"
    raise InputError(f"column '{name}' is not numeric {holds}{declare}")


def kinds_of(schema: pa.Schema) -> list[tuple[str, str]]:
    """Name and kind of columns of these types: "number", "date" or "text".

    Whole numbers are "integer", flags "boolean", and codes that are numbers a "category"; whether
    text is stored as codes may depend on how often it is repeated.
    """
    finer = {"dictionary": "category", "boolean": "boolean", "integer": "integer"}
    found = []
    for field in schema:
        kind = field.type
        stored = kind.value_type if types.is_dictionary(kind) else kind
        word = "date" if is_date(stored) else "text"
        if _is(stored, _NUMERIC):
            word = next((word for name, word in finer.items() if _is(kind, name)), "number")
        found.append((field.name, word))
    return found


# Values -----------------------------------------------------------------------------------------


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values themselves, of categories, of runs and of types that stand for another."""
    kind, parts = column.type, column.chunks
    if isinstance(kind, pa.BaseExtensionType):
        return plain(pa.chunked_array([part.storage for part in parts], kind.storage_type))
    if types.is_run_end_encoded(kind):

        def decoded(part: pa.RunEndEncodedArray) -> pa.Array:
            """By number: values may be of types that pyarrow does not decode."""
            from pyarrow import compute

            numbers = pa.array(np.arange(len(part.values)))
            runs = pa.RunEndEncodedArray.from_arrays(part.run_ends, numbers)
            return part.values.take(compute.run_end_decode(runs.slice(part.offset, len(part))))

        return plain(pa.chunked_array(map(decoded, parts), kind.value_type))
    if not types.is_dictionary(kind):
        return column
    kind = kind.value_type
    if types.is_string_view(kind):  # from polars; pyarrow cannot take these by their numbers
        kind = pa.large_string()
    values = [part.dictionary.cast(kind).take(part.indices) for part in parts]
    return plain(pa.chunked_array(values, kind))


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    if types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if types.is_decimal(column.type):
        column = column.cast(pa.string())  # rounds to the nearest, which the direct cast does not
    wide = column.cast(pa.float64(), safe=False)
    parts = [wide.to_numpy()] if wide.null_count else map(np.from_dlpack, wide.chunks)  # no pandas
    return np.concatenate([np.empty(0), *parts])


def numbers(column: pa.ChunkedArray, name: str) -> NDArray[np.float64]:
    """A column as (n,) float64 with NaN for null; whole numbers, decimals, true and false count."""
    column = plain(column)
    check_type(column.type, name, "number", column)
    return _floats(column)


def moments(column: pa.ChunkedArray, name: str) -> tuple[NDArray[np.float64], bool]:
    """A time column as ((n,) float64, whether it holds dates); NaN for null.

    Numbers stay as they are. Dates and timestamps become seconds since 1970-01-01 in UTC; without
    a time zone they are read as UTC. The resolution is a microsecond.
    """
    column = plain(column)
    check_type(column.type, name, "time", column)
    if not is_date(column.type):
        return _floats(column), False
    if types.is_date(column.type):
        return _floats(column.cast(pa.date32()).cast(pa.int32())) * 86_400, True
    micros = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False)
    return _floats(micros.cast(pa.int64())) / 1e6, True


def dates(cells: pa.ChunkedArray, name: str) -> NDArray[np.float64]:
    """A column of days or moments, or of text that reads as such, as `moments`."""
    cells = plain(cells)
    check_type(cells.type, name, "date")
    if is_text(cells.type):
        read, unreadable = read_cells(cells.cast(pa.string()).combine_chunks(), DATE, PLAIN)
        wrong = unreadable.true_count
        if wrong:
            raise InputError(
                f"column '{name}' holds text, and {wrong} of its {len(cells)} rows do not read as "
                "dates: write all of them as 2024-01-31, or as 2024-01-31T12:00"
            )
        cells = pa.chunked_array([read])
    return moments(cells, name)[0]


def encoded(cells: pa.ChunkedArray) -> tuple[NDArray[np.int64], pa.Array]:
    """Codes (n,), -1 for null and NaN, and the value of each; equal values have one code, as a
    database has it: 0.0 and -0.0 are equal."""
    kind = cells.type
    if types.is_floating(kind):
        from pyarrow import compute  # which takes a tenth of a second to load

        wide = cells.cast(pa.float64())
        known = compute.if_else(compute.is_nan(wide), pa.scalar(None, pa.float64()), wide)
        cells = compute.add(known, 0.0)  # -0.0 becomes 0.0
    elif types.is_decimal(kind) and kind.bit_width < 128:
        cells = cells.cast(pa.decimal128(kind.precision, kind.scale))
    found = cells.combine_chunks().dictionary_encode()
    codes = found.indices.fill_null(-1) if found.null_count else found.indices
    return np.from_dlpack(codes).astype(np.int64), found.dictionary


def coded_keys(cells: pa.ChunkedArray, name: str) -> tuple[NDArray[np.int64], list[str | None]]:
    """Codes (n,), -1 for null, and the key of each code."""
    cells = plain(cells)
    check_type(cells.type, name, "category")
    codes, values = encoded(cells)
    return codes, [key_of(value) for value in values.to_pylist()]
