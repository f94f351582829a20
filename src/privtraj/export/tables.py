"""Paths and other long tables to files, in the format that the name of the file says."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import free_name
from privtraj.base.files import atomic_path
from privtraj.base.formats import PATHS, TABLES, format_of, load
from privtraj.base.space import as_user_times
from privtraj.columns.kinds import Column, Number
from privtraj.columns.precision import written_times

if TYPE_CHECKING:
    import pyarrow as pa


# What begins like this is run by spreadsheets, or would be if it had one apostrophe less: so that
# taking one away where it stands before such a beginning gives back every text.
_FORMULA = re.compile("^('*[=+\\-@\\t\\r\\n\uff1d\uff0b\uff0d\uff20])")


@dataclass(frozen=True, eq=False)
class PathRows:
    """n synthetic people at q times. values: (n, q, d) in data units, inside the public bounds.

    Tables, maps and files have values in public steps (see `precision`), and dates as dates; these
    arrays have all digits.
    precision: {feature: step} where somebody said; else steps follow from the bounds.
    columns: d of them, what the values are; () for plain numbers. A category's values are levels,
    which tables write as what they mean; a number that is missing is NaN.
    present: (n, q) whether they are there; everybody always, unless the population changes. Values
    are NaN where nobody is, and tables have no row.
    lives: (n, 2) first and last time of each, as numbers; None if all are there all the time.
    parent: (n,) with branching: from which path it parted at lives[:, 0], -1 for the first ones;
    values before that time are the parent's, whose rows they are in tables.
    """

    values: Floats
    numeric_times: Floats  # (q,) numbers; seconds since 1970-01-01 UTC when `datetime`
    features: tuple[str, ...]
    time_name: str
    datetime: bool
    present: Any = None  # (n, q) Mask, always there
    lives: Floats | None = None
    parent: Ints | None = None
    columns: tuple[Column, ...] = ()
    precision: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.present is None:
            everybody = np.broadcast_to(np.True_, self.values.shape[:2])
            object.__setattr__(self, "present", everybody)

    @property
    def times(self) -> NDArray[Any]:
        """(q,) in the user's form: numbers or datetime64."""
        return as_user_times(self.numeric_times, self.datetime)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def numbers(self) -> Ints:
        """(q,) how many are there at each time."""
        return np.count_nonzero(self.present, axis=0)

    def rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """(r, ...) of the r rows of the long table, from values (n, q, ...)."""
        if self.numbers.min() == len(self):
            return values.reshape(-1, *values.shape[2:])
        return values[self.present]

    def written(self, k: int) -> Floats:
        """(n, q) values of feature k as tables have them."""
        if not self.columns:
            return self.values[..., k]
        column, step = self.columns[k], self.precision.get(self.features[k])
        values = self.values[..., k]
        return column.written(values, step) if isinstance(column, Number) else values

    def to_arrow(self) -> Any:
        """The long table (pyarrow): path, time, one column per feature, of its type; a row for each
        path and time at which it is there. With branching, `parent` comes after the time."""
        import pyarrow as pa

        from privtraj.export.typed import arrow_column

        n, q, _ = shape = self.values.shape
        who = np.broadcast_to(np.arange(n, dtype=np.int64)[:, None], (n, q))
        columns: dict[str, Any] = {"path": self.rows(who)}
        when = free_name(self.time_name, columns)
        times = written_times(self.numeric_times, self.datetime)
        columns[when] = self.rows(np.broadcast_to(times, shape[:2]))
        if self.parent is not None:
            columns[free_name("parent", columns)] = self.parent[columns["path"]]
        for k, name in enumerate(self.features):
            values = self.rows(self.written(k))
            typed = arrow_column(self.columns[k], values) if self.columns else values
            columns[free_name(name, columns)] = typed
        return pa.table(columns)

    def to_frame(self) -> Any:
        """The long table as a pandas DataFrame."""
        from privtraj.export.typed import frame

        table = self.to_arrow()
        return frame(table, self.kinds(table))

    def kinds(self, table: Any) -> dict[str, Column]:
        """The columns by their names in the long table."""
        names = table.column_names[-len(self.features) :]
        return dict(zip(names, self.columns, strict=bool(self.columns)))


def write_table(table: pa.Table, path: str | os.PathLike[str], force: bool = False) -> None:
    """Write a `pyarrow.Table` as CSV, Parquet or Arrow, by suffix; see `atomic_path`."""
    path = Path(path)
    write = load(format_of(path, TABLES).write_table)
    with atomic_path(path, force) as temporary:
        write(table, temporary)


def write_paths(paths: PathRows, path: str | os.PathLike[str], force: bool = False) -> None:
    """See `Paths.save`."""
    path = Path(path)
    kind = format_of(path, PATHS)
    with atomic_path(path, force) as temporary:
        if kind.write_paths:
            load(kind.write_paths)(paths, temporary)
        else:
            load(kind.write_table)(paths.to_arrow(), temporary)


def check_paths(path: Path, features: tuple[str, ...], bounds: Any, times: int) -> None:
    """Refuse now what `write_paths` would refuse later: a map without places, a missing package.

    bounds: (d, 2) public limits of the features.  times: how many there are on each path.
    """
    check = format_of(path, PATHS).check_paths
    if check:
        load(check)(features, bounds, times)


def write_csv(table: pa.Table, path: Path) -> None:
    """Names and texts that a spreadsheet would take for formulas get an apostrophe in front."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    columns = [_without_formulas(column) for column in table.columns]
    names = [_FORMULA.sub(r"'\1", name) for name in table.column_names]
    table = pa.Table.from_arrays(columns, names)
    with pa.output_stream(str(path)) as stream:  # compresses when it ends in .gz
        arrow_csv.write_csv(table, stream)


def _without_formulas(column: Any) -> Any:
    """Texts, and names of categories; numbers and dates are none, whatever they begin with."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    return compute.replace_substring_regex(column, _FORMULA.pattern, r"'\1")


def write_parquet(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, str(path))


def write_arrow(table: pa.Table, path: Path) -> None:
    import pyarrow as pa

    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
