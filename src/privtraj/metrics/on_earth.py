"""How far and how fast people go on the ground, in kilometres, where they have longitudes and
latitudes. Ratios of `movement` count shares of the box, in which a degree is what the box says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.space import from_unit
from privtraj.columns.axes import Axes
from privtraj.columns.kinds import Column
from privtraj.columns.precision import degrees, speed_unit
from privtraj.metrics.encoding import numbers_alone
from privtraj.metrics.movement import FAST, path_lengths, speeds


@dataclass(frozen=True)
class Ground:
    """Of synthetic people and of real ones: median length of a path, median and 95 % speed."""

    length: tuple[float, float]  # km
    speed: tuple[float, float]
    fast: tuple[float, float]
    unit: str  # of speeds

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        words = ("a path has", "usual speed", "fast, at 95 %")
        units = ("km", self.unit, self.unit)
        pairs = (self.length, self.speed, self.fast)
        told = [
            f"{word} {ours:.2g} {unit} ({theirs:.2g} of real people)"
            for word, unit, (ours, theirs) in zip(words, units, pairs, strict=True)
        ]
        return f"On the ground: {', '.join(told)}."


def ground(
    synthetic: Floats,
    real: Floats,
    columns: Sequence[Column],
    times: Floats,
    time_name: str,
    datetime: bool,
) -> Ground | None:
    """Of paths (n, T, d), (k, T, d) in the unit cube of the columns; None if those are no places
    on the globe, or some are missing.  times: (T,) of the readings, as numbers."""
    pairs = zip(columns, Axes.of(columns).numbers, strict=True)
    numbers = [column for column, number in pairs if number]
    bounds = np.array([column.domain for column in numbers]).reshape(-1, 2)
    globe = degrees(tuple(column.name for column in numbers), bounds)
    if globe is None or any(numbers[k].missing for k in globe):
        return None
    sides = [from_unit(numbers_alone(side, columns), bounds) for side in (synthetic, real)]
    hours = times / 3600 if datetime else times
    lengths = [float(np.nanmedian(path_lengths(side, globe=globe))) for side in sides]
    found = [np.quantile(speeds(side, times=hours, globe=globe), (0.5, FAST)) for side in sides]
    (usual, fast), (real_usual, real_fast) = (pair.tolist() for pair in found)
    unit = speed_unit(time_name, datetime)
    return Ground((lengths[0], lengths[1]), (usual, real_usual), (fast, real_fast), unit)
