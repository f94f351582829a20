"""Cells of one column as values, with those that cannot be read counted by reason.

A fit stops at the first cell that it cannot read; a look goes on. Reasons are told, cells never.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from privtraj.arrays import Floats, Mask
from privtraj.columns.cells import MISSING
from privtraj.columns.kinds import UNDECLARED, Category, Column, Date
from privtraj.data import arrow

if TYPE_CHECKING:
    import pyarrow as pa

_REASONS = (
    ("a decimal comma", r"[-+]?\d+,\d+(e[-+]?\d+)?"),
    ("a separator of thousands", r"[-+]?\d{1,3}([ ,.'\u00a0\u202f]\d{3})+([.,]\d+)?"),
    ("a date", r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*"),
    ("a sign such as <", r"[<>=~\u2264\u2265].*\d.*"),
    ("a unit", r"[-+]?[\d.,]*\d\s*[^\d\s].*"),
    ("a number", r"[-+]?[\d.]+(e[-+]?\d+)?"),
)
"""Why a cell cannot be read, by what all of it looks like; the first that fits."""
_WORDS = "other text"


class CellValues(NamedTuple):
    """Values (n,), NaN where missing; unreadable: (n,) which are, and why so many are."""

    values: Floats
    unreadable: Mask
    reasons: Counter[str]
    dates: bool = False  # whether values are seconds since 1970-01-01 UTC
    stored_as_text: bool = False


def number_cells(cells: pa.ChunkedArray, column: Column) -> CellValues:
    """Of a declared number or date; an `InputError` where the type of the column is another."""
    cells = arrow.plain(cells)
    if isinstance(column, Date):
        if not arrow.is_text(cells.type):
            return _whole(arrow.dates(cells, column.name), dates=True)
        return _read_text(cells, _dates, dates=True)
    if not arrow.is_text(cells.type):
        return _whole(arrow.numbers(cells, column.name))
    return _read_text(cells, _numbers)


def time_cells(cells: pa.ChunkedArray, name: str, dates: bool) -> CellValues:
    """Of the time column; dates: whether the declared range is one of dates."""
    cells = arrow.plain(cells)
    if not arrow.is_text(cells.type):
        return _whole(*arrow.moments(cells, name))
    return _read_text(cells, _dates if dates else _numbers, dates)


class LevelValues(NamedTuple):
    """Levels (n,), NaN where missing, `UNDECLARED` where nothing stands for the value.

    undeclared: how many cells have a value that is not declared, and of these, misspelt: how many
    would have, but for blanks, capitals and small letters.
    """

    values: Floats
    undeclared: int
    misspelt: int


def level_cells(cells: pa.ChunkedArray, column: Category) -> LevelValues:
    """Of a declared category; an `InputError` where the type of the column is another."""
    codes, keys = arrow.coded_keys(cells, column.name)
    told = [*keys, None]  # the last for null
    strange = np.array([_is_strange(key, column) for key in told])
    plain = {str(key).strip().lower() for key in column.keys if key is not None}
    near = np.array([str(key).strip().lower() in plain for key in told]) & strange
    levels = np.array([column.level_of(key) for key in told])
    return LevelValues(levels[codes], int(strange[codes].sum()), int(near[codes].sum()))


def _is_strange(key: str | None, column: Category) -> bool:
    return key is not None and key not in column.keys and key not in MISSING


def known_levels(levels: Floats) -> Mask:
    """Which of levels (n,) are declared ones."""
    known: Mask = np.isfinite(levels) & (levels != UNDECLARED)
    return known


def _whole(values: Floats, dates: bool = False) -> CellValues:
    return CellValues(values, np.zeros(len(values), np.bool_), Counter(), dates)


def _read_text(
    cells: pa.ChunkedArray, read: Callable[[pa.Array], Floats], dates: bool = False
) -> CellValues:
    """Text, each of its different cells once."""
    import pyarrow as pa

    encoded = cells.cast(pa.large_string()).combine_chunks().dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(-1), dtype=np.int64)
    texts = encoded.dictionary.to_pylist()
    values = np.append(read(encoded.dictionary), np.nan)
    absent = np.array([*(text.strip() in MISSING for text in texts), True])
    wrong = np.isnan(values) & ~absent
    many = np.bincount(codes[codes >= 0], minlength=len(texts))
    reasons: Counter[str] = Counter()
    for k in np.flatnonzero(wrong[:-1]):
        reasons[reason(texts[k])] += int(many[k])
    return CellValues(values[codes], wrong[codes], reasons, dates, stored_as_text=True)


def _numbers(texts: pa.Array) -> Floats:
    """NaN for what is no number; what a file would call a number counts as one."""
    return np.array([_number(text) for text in texts.to_pylist()], dtype=np.float64)


def _number(text: str) -> float:
    try:
        return float(text.replace("_", "x"))  # Python alone takes 1_000 for a number
    except ValueError:
        return np.nan


def _dates(texts: pa.Array) -> Floats:
    """Seconds, NaN for what is no date."""
    import pyarrow as pa

    read = arrow.dated(pa.chunked_array([texts]))
    if read is not None:
        return arrow.moments(read, "")[0]
    each: list[Any] = [arrow.dated(pa.chunked_array([texts[k : k + 1]])) for k in range(len(texts))]
    return np.array([np.nan if one is None else arrow.moments(one, "")[0][0] for one in each])


def reason(text: str) -> str:
    """Why it cannot be read, without showing it."""
    fitting = (why for why, form in _REASONS if re.fullmatch(form, text.strip(), re.IGNORECASE))
    return next(fitting, _WORDS)
