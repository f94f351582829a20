"""Values of paths in the types that their columns have.

Number                float64, null where missing
Integer               int64
Date                  date32 if it has days, else timestamp in seconds, or finer
Boolean               bool
Category, Ordered     a dictionary of all declared values, ordered or not
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats
from privtraj.base.space import as_user_times
from privtraj.columns.kinds import Boolean, Category, Column, Date, Integer, text_of


def arrow_column(column: Column, values: Floats) -> Any:
    """The Arrow array of values (r,): numbers in data units, NaN where missing, or levels."""
    import pyarrow as pa

    if isinstance(column, Category):
        return _levels(column, values)
    gone = np.isnan(values) if column.missing else None
    if isinstance(column, Integer):
        return pa.array(np.nan_to_num(values).astype(np.int64), mask=gone)
    if isinstance(column, Date):
        moments = as_user_times(np.nan_to_num(values), True)
        unit = "D" if column.days else "s" if column.step == 1 else "us"
        return pa.array(moments.astype(f"datetime64[{unit}]"), mask=gone)
    return pa.array(values, mask=gone)


def _levels(column: Category, values: Floats) -> Any:
    import pyarrow as pa

    labels = [label for label in column.labels if label is not None]
    level = np.nan_to_num(values, nan=len(labels)).astype(np.int32)
    gone = level >= len(labels)  # None is the last level
    if isinstance(column, Boolean):
        return pa.array(level == 1, mask=gone)
    texts = len({type(label) for label in labels}) > 1 or isinstance(labels[0], bool)
    names = pa.array([text_of(label) for label in labels] if texts else labels)
    codes = pa.array(np.where(gone, 0, level), mask=gone if column.missing else None)
    return pa.DictionaryArray.from_arrays(codes, names, ordered=column.ordered)


def frame(table: Any, kinds: dict[str, Column]) -> Any:
    """The table as a pandas DataFrame; integers and booleans that may be missing stay what they
    are, and days are moments.  kinds: the columns by their names in the table."""
    import pandas as pd

    made = table.to_pandas(date_as_object=False)
    for name, column in kinds.items():
        nullable = isinstance(column, Boolean | Integer) and column.missing
        if nullable:
            kind = pd.BooleanDtype() if isinstance(column, Boolean) else pd.Int64Dtype()
            made[name] = table[name].to_pandas(types_mapper=lambda _, kind=kind: kind)
    return made


def python_values(column: Column | None, values: Floats) -> NDArray[Any]:
    """Values (...) as plain objects (...) that JSON can write: labels, numbers, dates as text, None
    where missing."""
    flat = values.ravel()
    listed: list[Any] = flat.tolist() if column is None else arrow_column(column, flat).to_pylist()
    if isinstance(column, Date):
        listed = [None if value is None else value.isoformat() for value in listed]
    plain = np.empty(flat.shape, object)
    plain[:] = listed
    return plain.reshape(values.shape)
