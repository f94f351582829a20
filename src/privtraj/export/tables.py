"""Paths as long tables, in memory and in files: Arrow, pandas, CSV, Parquet.

Values have the types of their columns:

Number                float64, null where missing
Integer               int64
Date                  date32 if it has days, else timestamp in seconds, or finer
Boolean               bool
Category, Ordered     a dictionary of all declared values, ordered or not
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints, Mask
from privtraj.base.errors import free_name
from privtraj.base.files import atomic_path
from privtraj.base.formats import TABLES, format_of
from privtraj.base.space import as_user_times, written_times
from privtraj.columns.kinds import Boolean, Category, Column, Date, Integer, Number, text_of

if TYPE_CHECKING:
    import pyarrow as pa

    from privtraj.domain.domain import Plot


# What begins like this is run by spreadsheets, or would be if it had one apostrophe less: so that
# taking one away where it stands before such a beginning gives back every text.
_FORMULA = re.compile("^('*[=+\\-@\\t\\r\\n\uff1d\uff0b\uff0d\uff20])")


@dataclass(frozen=True, eq=False)
class PathRows:
    """n synthetic people at q times. values: (n, q, d) in data units, inside the public bounds.

    Tables, maps and files have values in public steps (see `precision`), and dates as dates; these
    arrays have all digits.
    precision: {feature: step} where somebody said; else steps follow from the bounds.
    constant: {column: value} that tables have in every row.  zone: {column: time zone} of moments.
    columns: d of them, what the values are; () for plain numbers. A category's values are levels,
    which tables write as what they mean; a number that is missing is NaN.
    present: (n, q) whether they are there; everybody always, unless the population changes. Values
    are NaN where nobody is, and tables have no row.
    lives: (n, 2) first and last time of each, as numbers; None if all are there all the time.
    ground: where people can be, if that is declared: lines between two times go by its corners.
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
    constant: Mapping[str, Any] = field(default_factory=dict)
    zone: Mapping[str, str] = field(default_factory=dict)
    ground: Plot | None = None

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
        values, column = self.values[..., k], self.columns[k] if self.columns else None
        if isinstance(column, Number):
            return column.written(values, self.precision.get(self.features[k]))
        return values

    def to_arrow(self) -> Any:
        """The long table (pyarrow): path, time, one column per feature, of its type; a row for each
        path and time at which it is there. With branching, `parent` comes after the time; columns
        that are constant come before the others."""
        import pyarrow as pa

        n, q, _ = self.values.shape
        who = np.broadcast_to(np.arange(n, dtype=np.int64)[:, None], (n, q))
        columns: dict[str, Any] = {"path": self.rows(who)}
        when = free_name(self.time_name, columns)
        times = written_times(self.numeric_times, self.datetime)
        columns[when] = self._in_zone(self.time_name, self.rows(np.broadcast_to(times, (n, q))))
        if self.parent is not None:
            columns[free_name("parent", columns)] = self.parent[columns["path"]]
        for name, value in self.constant.items():
            columns[free_name(name, columns)] = pa.repeat(value, len(columns["path"]))
        for k, name in enumerate(self.features):
            values = self.rows(self.written(k))
            typed = arrow_column(self.columns[k], values) if self.columns else values
            columns[free_name(name, columns)] = self._in_zone(name, typed)
        arrays = [arrow_array(x) if isinstance(x, np.ndarray) else x for x in columns.values()]
        return pa.table(arrays, names=list(columns))

    def _in_zone(self, name: str, values: Any) -> Any:
        """Values of a column, moments in their time zone if there is one."""
        import pyarrow as pa

        if name not in self.zone:
            return values
        moments = arrow_array(values) if isinstance(values, np.ndarray) else values
        if pa.types.is_date(moments.type):
            moments = moments.cast(pa.timestamp("s"))
        return moments.cast(pa.timestamp(moments.type.unit, self.zone[name]))

    def to_frame(self) -> Any:
        """The long table as a pandas DataFrame."""
        import pandas as pd

        table = self.to_arrow()
        frame = table.to_pandas(date_as_object=False)  # days are moments
        for name, column in self.kinds(table).items():
            if isinstance(column, Boolean | Integer) and column.missing:  # stay what they are
                kind = pd.BooleanDtype() if isinstance(column, Boolean) else pd.Int64Dtype()
                frame[name] = table[name].to_pandas(types_mapper=lambda _, kind=kind: kind)
        return frame

    def kinds(self, table: Any) -> dict[str, Column]:
        """The columns by their names in the long table."""
        names = table.column_names[-len(self.features) :]
        return dict(zip(names, self.columns, strict=bool(self.columns)))


def arrow_column(column: Column, values: Floats) -> Any:
    """The Arrow array of values (r,): numbers in data units, NaN where missing, or levels."""
    import pyarrow as pa

    if isinstance(column, Category):
        labels = [label for label in column.labels if label is not None]
        level = np.nan_to_num(values, nan=len(labels)).astype(np.int32)
        gone = level >= len(labels)  # None is the last level
        if isinstance(column, Boolean):
            return arrow_array(level == 1, gone)
        whole = {type(label) for label in labels} == {int}
        names = arrow_array(np.array(labels)) if whole else arrow_texts([*map(text_of, labels)])
        codes = arrow_array(np.where(gone, 0, level), gone if column.missing else None)
        return pa.DictionaryArray.from_arrays(codes, names, ordered=column.ordered)
    missing = np.isnan(values) if column.missing else None
    if isinstance(column, Integer):
        return arrow_array(np.nan_to_num(values).astype(np.int64), missing)
    if isinstance(column, Date):
        moments = as_user_times(np.nan_to_num(values), True)
        unit = "D" if column.days else "s" if column.step == 1 else "us"
        return arrow_array(moments.astype(f"datetime64[{unit}]"), missing)
    return arrow_array(values, missing)


def arrow_array(values: NDArray[Any], missing: Mask | None = None) -> Any:
    """`pa.array` of numbers, booleans or moments (r,), none of them NaT, without loading pandas."""
    import pyarrow as pa

    kind = pa.from_numpy_dtype(values.dtype)
    if values.dtype.kind == "M":
        values = values.view(np.int64).astype(np.int32 if pa.types.is_date(kind) else np.int64)
    there = None if missing is None else ~missing
    bits = [np.packbits(x, bitorder="little") if x is not None and x.dtype == bool else x
            for x in (there, values)]  # fmt: skip
    buffers = [x if x is None else pa.py_buffer(np.ascontiguousarray(x)) for x in bits]
    return pa.Array.from_buffers(kind, len(values), buffers)


def arrow_texts(texts: Sequence[str]) -> Any:
    """`pa.array` of texts, without pandas."""
    import pyarrow as pa

    written = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, written)], dtype=np.int32)
    return pa.StringArray.from_buffers(
        len(texts), pa.py_buffer(ends), pa.py_buffer(b"".join(written))
    )


def write_table(table: pa.Table, path: str | os.PathLike[str], force: bool = False) -> None:
    """Write a `pyarrow.Table` as CSV, Parquet or Arrow, by suffix; see `atomic_path`."""
    kind = format_of(Path(path), TABLES).name
    with atomic_path(path, force) as temporary:
        write_as(kind, table, temporary)


def write_as(kind: str, table: pa.Table, path: Path) -> None:
    """Write a table in one of the formats of tables.

    In CSV, names and texts that a spreadsheet would take for formulas get an apostrophe in front.
    """
    import pyarrow as pa
    from pyarrow import compute, csv, parquet

    if kind == "parquet":
        parquet.write_table(table, str(path))
        return
    if kind == "arrow":
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
        return
    columns = []
    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = compute.replace_substring_regex(column, _FORMULA.pattern, r"'\1")
        columns.append(column)
    names = [_FORMULA.sub(r"'\1", name) for name in table.column_names]
    with pa.output_stream(str(path)) as stream:  # compresses when it ends in .gz
        csv.write_csv(pa.Table.from_arrays(columns, names), stream)
