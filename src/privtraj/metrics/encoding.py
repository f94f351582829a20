"""Points of mixed columns as scores can use them: numbers alone, cells of tables, and distances.

Points (..., d) are in the unit cube, where a category is the middle of its cell and a number that
may be missing has a flag of its own (`columns.kinds`). Flags belong to their numbers here: e is
the number of the columns that a table has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privtraj.base.arrays import Floats, Ints, Mask
from privtraj.base.errors import InputError
from privtraj.columns.axes import Axes, encoded, to_unit
from privtraj.columns.kinds import Category, Column, Flag, Number

CELLS = 8
"""Of a number's public range, in tables of two columns; set by hand: two groups that are a quarter
of the range apart have an empty cell between them, and a table of two numbers has 64 cells."""


def known_columns(columns: Sequence[Column] | None, d: int) -> tuple[Column, ...]:
    """What each of d coordinates means; numbers, if nobody says."""
    if columns is None:
        return tuple(Number(0.0, 1.0, f"x{k + 1}") for k in range(d))
    if len(columns) != d:
        raise InputError(f"there are {len(columns)} columns for points of {d} coordinates")
    return tuple(columns)


def of_table(columns: Sequence[Column]) -> list[int]:
    """(e,) places of the columns that a table has: all but flags."""
    return [k for k, column in enumerate(columns) if not column.of]


def unit_points(values: Floats, columns: Sequence[Column]) -> Floats:
    """Points (..., d) of values (..., e) as tables and paths have them, NaN where missing."""
    flat = encoded(columns, values.reshape(-1, values.shape[-1]))
    return to_unit(columns, flat).reshape(*values.shape[:-1], len(columns))


def numbers_alone(points: Floats, columns: Sequence[Column]) -> Floats:
    """The coordinates of numbers; one that is missing is in the middle of its range."""
    return points[..., Axes.of(columns).numbers]


def is_missing(points: Floats, columns: Sequence[Column], place: int) -> Mask:
    """(...) where the column at a place is missing."""
    column = columns[place]
    if not column.missing:
        return np.zeros(points.shape[:-1], dtype=bool)
    if isinstance(column, Category):
        levels: Ints = Axes.of(columns).level_of(points)[..., place]
        return levels == column.levels - 1
    flag = next(k for k, c in enumerate(columns) if isinstance(c, Flag) and c.of == column.name)
    return points[..., flag] >= 0.5


def cells_of(points: Floats, columns: Sequence[Column]) -> tuple[Ints, Ints]:
    """Cells (..., e) of each column, and how many it has, (e,).

    A category has its levels; a number CELLS equal parts of its range, and one more for missing.
    """
    axes, cells, sizes = Axes.of(columns), [], []
    levels = axes.level_of(points)
    for place in of_table(columns):
        if axes.levels[place]:
            cells.append(levels[..., place])
            sizes.append(axes.levels[place])
            continue
        within = np.clip((points[..., place] * CELLS).astype(np.int64), 0, CELLS - 1)
        cells.append(np.where(is_missing(points, columns, place), CELLS, within))
        sizes.append(CELLS + columns[place].missing)
    return np.stack(cells, axis=-1), np.array(sizes)


def one_hot(points: Floats, columns: Sequence[Column]) -> Floats:
    """Points (..., p) among which two levels of a category are at distance 1, whichever they are:
    0 or 1 for two levels, else C coordinates of which one is 1 / sqrt(2)."""
    axes = Axes.of(columns)
    levels, parts = axes.level_of(points), []
    for place, count in enumerate(axes.levels):
        if count == 0:
            parts.append(points[..., [place]])
        elif count == 2:
            parts.append(levels[..., [place]].astype(np.float64))
        else:
            parts.append((levels[..., [place]] == np.arange(count)) / np.sqrt(2))
    return np.concatenate(parts, axis=-1)
