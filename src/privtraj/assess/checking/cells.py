"""Cells of one column as values, with those that cannot be read counted.

A fit stops at cells that it cannot read; a look goes on, and says of them what the fit would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Mask
from privtraj.columns.cells import MISSING
from privtraj.columns.kinds import UNDECLARED, Category, Column, Date
from privtraj.data import arrow
from privtraj.data.dialect import DATE, Readings, read_cells

if TYPE_CHECKING:
    import pyarrow as pa


class CellValues(NamedTuple):
    """Values (n,), NaN where missing.  unreadable: (n,) which are."""

    values: Floats
    unreadable: Mask
    dates: bool = False  # whether values are seconds since 1970-01-01 UTC
    stored_as_text: bool = False


def number_cells(cells: pa.ChunkedArray, column: Column, readings: Readings) -> CellValues:
    """Of a declared number or date; an `InputError` where the type of the column is another.

    readings: of cells of text, which are counted there.
    """
    cells = arrow.plain(cells)
    if arrow.is_text(cells.type):
        return _read_text(cells, readings)
    if isinstance(column, Date):
        return _whole(arrow.dates(cells, column.name), dates=True)
    return _whole(arrow.numbers(cells, column.name))


def time_cells(cells: pa.ChunkedArray, readings: Readings) -> CellValues:
    """Of the time column; readings: as those of `number_cells`."""
    cells = arrow.plain(cells)
    if arrow.is_text(cells.type):
        return _read_text(cells, readings)
    return _whole(*arrow.moments(cells, readings.name))


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
    return CellValues(values, np.zeros(len(values), np.bool_), dates)


def _read_text(cells: pa.ChunkedArray, readings: Readings) -> CellValues:
    """Text, each cell by itself; those that are unreadable are kept in mind for their reason."""
    import pyarrow as pa

    texts = cells.cast(pa.string()).combine_chunks()
    values, odd = read_cells(texts, readings.kind, readings.dialect)
    unreadable: Mask = np.asarray(odd.fill_null(False), dtype=np.bool_)
    readings.read(texts.filter(odd))
    readings.cells += int((~unreadable).sum())
    found = arrow.moments(pa.chunked_array([values]), readings.name)[0]
    return CellValues(found, unreadable, readings.kind == DATE, stored_as_text=True)
