"""A simulated table and all that a steward would declare of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints, Mask

if TYPE_CHECKING:
    import pyarrow as pa


class Example(NamedTuple):
    """Use as `Snapshots.from_table(example.table, **example.declared)`.

    table: one record per person.
    columns: kinds and domains by name, as files have them.
    time_range: of the column "time".
    """

    table: pa.Table
    columns: dict[str, Any]
    time_range: tuple[float, float]

    @property
    def declared(self) -> dict[str, Any]:
        """All that is public of it: arguments of `Snapshots.from_table`."""
        person = "id" if "id" in self.table.column_names else None
        said = {"time": "time", "columns": self.columns, "time_range": self.time_range}
        return said if person is None else {**said, "person": person}


def drawn(shares: Floats, rng: np.random.Generator) -> Ints:
    """Levels (...) drawn by shares (..., C) that sum to 1."""
    below = np.cumsum(shares, axis=-1)
    at = rng.random((*shares.shape[:-1], 1)) * below[..., -1:]
    return (at >= below).sum(axis=-1)


def labelled(levels: Ints | Mask, values: list[Any]) -> pa.Array:
    """An Arrow dictionary of levels (n,), null beyond the last of the values."""
    import pyarrow as pa

    indices = pa.array(levels.astype(np.int16), mask=levels >= len(values))
    return pa.DictionaryArray.from_arrays(indices, pa.array(values))
