"""Columns in memory: tables of every library as Arrow, and columns as numbers, times and codes."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, types
from pyarrow.types import is_boolean, is_dictionary, is_integer

from privtraj.base.errors import InputError, either, first_few, listed
from privtraj.columns.cells import key_of
from privtraj.data.dialect import DATE, PLAIN, read_cells

_UNSEEN = "0-1f 7f-9f ad-ad 200b-200f 2028-202e 2060-2064 feff-feff"


def invisible(database: str = "") -> str:
    """Pattern of control characters and of those without width, for RE2, Java or PostgreSQL."""
    form = "\\u{:04x}" if database == "postgres" else "\\x{{{:x}}}"
    first = int(database == "postgres")  # which has no 0 in texts
    ends = [[max(int(end, 16), first) for end in one.split("-")] for one in _UNSEEN.split()]
    return "[" + "".join(f"{form.format(low)}-{form.format(high)}" for low, high in ends) + "]"


_IDENTIFIERS = """
    boolean integer floating decimal null date time timestamp string large_string string_view
    binary large_binary binary_view fixed_size_binary
"""


def read_object(source: Any, columns: list[str]) -> pa.Table:
    places = places_of(object_names(source), columns)
    names = list(places.values())
    if isinstance(source, pa.Table | pa.RecordBatch):
        return pa.table(source.select(names)).rename_columns(columns)
    if not isinstance(source, Mapping) and not hasattr(source, "columns"):
        return pa.table(source).select(names).rename_columns(columns)
    in_dictionary = isinstance(source, Mapping)
    keys = {str(key): key for key in (source if in_dictionary else source.columns)}
    parts = {}
    for name, place in places.items():
        if in_dictionary:
            parts[name] = to_column(source[keys[place]], place)
            continue
        try:  # one column at a time, so that one that cannot be converted can be named
            parts[name] = pa.table(source[[keys[place]]]).column(0)
        except Exception:
            raise _mixed(place) from None
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
    if hasattr(source, "__arrow_c_stream__") and hasattr(source, "columns"):
        return [str(name) for name in source.columns]
    if hasattr(source, "__arrow_c_stream__"):
        return list(pa.RecordBatchReader.from_stream(source).schema.names)
    raise InputError(
        f"an object of type {type(source).__name__} cannot be read as a table: give the path of a "
        "CSV, Parquet, Arrow or .h5ad file, an Arrow, pandas or polars table, AnnData, or a "
        "dictionary of arrays"
    )


def to_column(values: Any, name: str) -> pa.ChunkedArray:
    """A sequence of values as an Arrow column; None and NaN become null."""
    try:
        if hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        if isinstance(values, pa.Array):
            return pa.chunked_array([values])
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


def numbers(column: pa.ChunkedArray, name: str) -> NDArray[np.float64]:
    """A column as (n,) float64 with NaN for null; whole numbers, decimals, true and false count."""
    column = plain(column)
    check_numeric(column.type, name, column)
    return _floats(column)


def coded_keys(cells: pa.ChunkedArray, name: str) -> tuple[NDArray[np.int64], list[str | None]]:
    """Codes (n,), -1 for null, and the key of each code."""
    cells = _stored(cells)
    check_category(cells.type, name)
    encoded = _comparable(cells).combine_chunks().dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(-1), dtype=np.int64)
    return codes, [key_of(value) for value in encoded.dictionary.to_pylist()]


def check_category(kind: pa.DataType | None, name: str) -> None:
    """Refuse a column of dates, lists and the like as a category.

    kind: None if nobody knows.
    """
    if kind is None or not (is_numeric(kind) or is_text(kind)):
        raise InputError(
            f"column '{name}' is declared as a category, and its type is {_outermost(kind)}: turn "
            "it into texts, whole numbers, true or false, or declare another kind"
        )


def dates(cells: pa.ChunkedArray, name: str) -> NDArray[np.float64]:
    """A column of days or moments, or of text that reads as such, as `moments`."""
    cells = plain(cells)
    check_dates(cells.type, name)
    if not is_text(cells.type):
        return moments(cells, name)[0]
    read, unreadable = read_cells(cells.cast(pa.string()).combine_chunks(), DATE, PLAIN)
    wrong = unreadable.true_count
    if wrong:
        raise InputError(
            f"column '{name}' holds text, and {wrong} of its {len(cells)} rows do not read as "
            "dates: write all of them as 2024-01-31, or as 2024-01-31T12:00"
        )
    return moments(pa.chunked_array([read]), name)[0]


def check_dates(kind: pa.DataType, name: str) -> None:
    """Refuse a column that has neither dates nor text."""
    if not (_is_date(kind) or is_text(kind) or types.is_null(kind)):
        raise InputError(
            f"column '{name}' is declared as a date, and its type is {_outermost(kind)}: turn it "
            "into dates such as 2024-01-31, or declare another kind"
        )


def moments(column: pa.ChunkedArray, name: str) -> tuple[NDArray[np.float64], bool]:
    """A time column as ((n,) float64, whether it holds dates); NaN for null.

    Numbers stay as they are. Dates and timestamps become seconds since 1970-01-01 in UTC; without
    a time zone they are read as UTC. The resolution is a microsecond.
    """
    column = plain(column)
    if not is_moment(column.type, name, column):
        return _floats(column), False
    if pa.types.is_date(column.type):
        return _floats(column.cast(pa.date32()).cast(pa.int32())) * 86_400, True
    micros = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False)
    return _floats(micros.cast(pa.int64())) / 1e6, True


def check_numeric(kind: pa.DataType, name: str, cells: Iterable[pa.Scalar]) -> None:
    """Refuse a column that is not numeric; its cells are looked at if they are text."""
    if not is_numeric(kind):
        other = "a category" if is_text(kind) else "a date" if _is_date(kind) else None
        declare = "" if other is None else f", or declare it as {other}"
        raise InputError(f"column '{name}' is not numeric {_holds(kind, cells)}{declare}")


def is_moment(kind: pa.DataType, name: str, cells: Iterable[pa.Scalar]) -> bool:
    """Whether a time column holds dates; refuses one that holds no numbers either."""
    dates = _is_date(kind)
    if not dates and not is_numeric(kind):
        raise InputError(
            f"the time column '{name}' is neither numeric nor a date {_holds(kind, cells)} "
            "or dates such as 2024-01-31"
        )
    return dates


def identities(
    column: pa.ChunkedArray, name: str, same: str = "exact"
) -> tuple[NDArray[np.int64], pa.Array]:
    """A column of identifiers as codes (n,), -1 for missing, and the identifier of each code.

    Equal values are one person, as a database has it: 0.0 and -0.0 are equal, NaN is missing. The
    identifiers are whole numbers, floats, decimals, text or bytes; times are whole numbers.
    same: of texts, "exact", "trimmed" without the blanks around, or "folded" to small letters too.
    """
    try:
        column = _stored(column)
        check_identifier(column.type, name)
        encoded = _comparable(column).combine_chunks().dictionary_encode()
    except pa.ArrowException:  # of a type that it cannot compare
        raise _no_identifier(column.type, name) from None
    codes, ids = np.asarray(encoded.indices.fill_null(-1), dtype=np.int64), encoded.dictionary
    if not is_text(ids.type):
        return codes, ids
    odd = np.asarray(compute.match_substring_regex(ids.cast(pa.large_string()), invisible()))
    check_visible(int(np.append(odd, False)[codes].sum()), len(codes), name)
    if same == "exact":
        return codes, ids
    people: dict[str, int] = {}
    for text in ids.to_pylist():
        people.setdefault(_same(text, same), len(people))
    merged = [people[_same(text, same)] for text in ids.to_pylist()]
    return np.array([*merged, -1])[codes], pa.array(list(people), pa.string())


def _same(text: str, same: str) -> str:
    text = text.strip()
    return unicodedata.normalize("NFKC", text).casefold() if same == "folded" else text


def check_visible(odd: int, total: int, name: str) -> None:
    """Refuse identifiers that nobody can tell apart by looking at them."""
    if odd:
        raise InputError(
            f"{odd} of {total} records have control or invisible characters in the person column "
            f"'{name}', which make two people of one: remove them"
        )


def check_identifier(kind: pa.DataType | None, name: str) -> None:
    """Refuse a column of lists, structs and the like as one that says whose a record is.

    kind: None if nobody knows.
    """
    if kind is None or not _is(kind, _IDENTIFIERS):
        raise _no_identifier(kind, name)


def _no_identifier(kind: pa.DataType | None, name: str) -> InputError:
    return InputError(
        f"the person column '{name}' holds no plain values (their type is {_outermost(kind)}): "
        "give one number, date or text per record"
    )


def _outermost(kind: Any) -> str:
    """A type in one word, without the names of fields."""
    return "unknown" if kind is None else re.split(r"\W", str(kind))[0]


def _stored(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values themselves, of categories, of runs and of types that stand for another."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        parts = [part.storage for part in column.chunks]
        return _stored(pa.chunked_array(parts, kind.storage_type))
    if pa.types.is_run_end_encoded(kind):
        parts = []
        for part in column.chunks:  # the run that each value is in
            places = part.offset + np.arange(len(part))
            runs = np.searchsorted(np.asarray(part.run_ends), places, side="right")
            parts.append(part.values.take(pa.array(runs)))
        return _stored(pa.chunked_array(parts, kind.value_type))
    return _stored(plain(column)) if pa.types.is_dictionary(kind) else column


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values of which equal ones have equal bits."""
    kind = column.type
    if types.is_floating(kind):
        wide = column.cast(pa.float64())
        known = compute.if_else(compute.is_nan(wide), pa.scalar(None, pa.float64()), wide)
        return compute.add(known, 0.0)  # -0.0 becomes 0.0
    if types.is_decimal(kind) and kind.bit_width < 128:
        return column.cast(pa.decimal128(kind.precision, kind.scale))
    if types.is_date32(kind) or types.is_time32(kind):
        return column.cast(pa.int32())
    if types.is_temporal(kind):
        return column.cast(pa.int64())
    return column


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values themselves of a column of categories."""
    if not pa.types.is_dictionary(column.type):
        return column
    kind = column.type.value_type
    if pa.types.is_string_view(kind):  # from polars; pyarrow cannot take these by their numbers
        kind = pa.large_string()
    parts = [part.dictionary.cast(kind).take(part.indices) for part in column.chunks]
    return pa.chunked_array(parts, kind)


def _is(kind: pa.DataType, names: str) -> bool:
    """Whether a type is one of those that `pyarrow.types` calls so."""
    return any(getattr(types, f"is_{name}")(kind) for name in names.split())


def is_numeric(kind: pa.DataType) -> bool:
    return _is(kind, "boolean integer floating decimal null")


def is_text(kind: pa.DataType) -> bool:
    return _is(kind, "string large_string string_view")


def _is_date(kind: pa.DataType) -> bool:
    return _is(kind, "date timestamp")


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())  # rounds to the nearest, which the direct cast does not
    return np.array(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def _holds(kind: pa.DataType, cells: Iterable[pa.Scalar]) -> str:
    if is_text(kind):
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


def kinds_of(schema: pa.Schema, coarse: bool = False) -> list[tuple[str, str]]:
    """Name and kind of columns of these types: "number", "date" or "text".

    Unless `coarse`, whole numbers are "integer", flags "boolean", and codes that are numbers a
    "category"; whether text is stored as codes may depend on how often it is repeated.
    """

    def kind_of(kind: pa.DataType) -> str:
        stored = kind.value_type if is_dictionary(kind) else kind
        if _is_date(stored) or not is_numeric(stored):
            return "date" if _is_date(stored) else "text"
        finer = {"category": is_dictionary, "boolean": is_boolean, "integer": is_integer}
        fitting = [name for name, fits in finer.items() if fits(kind) and not coarse]
        return fitting[0] if fitting else "number"

    return [(field.name, kind_of(field.type)) for field in schema]
