"""What a column is: its name, its public domain, and its place in the unit interval.

A column checks how its domain is declared, maps its values to [0, 1] and back, and says itself in
a certificate. Another kind of column is another class here with the same members, one more name in
`Column`, and one more case in `declared_column`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privtraj import space
from privtraj.arrays import Floats
from privtraj.errors import InputError
from privtraj.text import listed

LONGEST_NAME = 1000  # letters of a column's name in a model


@dataclass(frozen=True)
class NumberColumn:
    """Numbers in [low, high], in data units; values outside are clamped."""

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        name, low, high = self.name, self.low, self.high
        if not np.isfinite([low, high]).all() or high - low == np.inf:
            raise InputError(f"the bounds of '{name}' must be finite: ({low:g}, {high:g}) are not")
        start = f"the bounds of '{name}' are"
        if low == high:
            raise InputError(f"{start} both {low:g}: a feature that cannot vary must be left out")
        if low > high:
            raise InputError(f"{start} reversed: ({low:g}, {high:g}), low goes first")

    @property
    def domain(self) -> tuple[float, float]:
        """(low, high), public."""
        return self.low, self.high

    def to_unit(self, values: ArrayLike) -> Floats:
        """u = (y - low) / (high - low), clamped to [0, 1]; any shape."""
        return space.to_unit(values, self.domain)

    def from_unit(self, unit: ArrayLike) -> Floats:
        """y = low + u (high - low); any shape."""
        return space.from_unit(unit, self.domain)

    def public_inputs(self) -> list[float]:
        """The domain as a certificate writes it."""
        return [self.low, self.high]

    def __str__(self) -> str:
        return f"{self.name} in [{self.low:g}, {self.high:g}]"


Column = NumberColumn  # the union of all kinds


def to_unit(columns: Sequence[Column], values: Floats) -> Floats:
    """Values (n, d) in data units as points of the unit cube."""
    return np.column_stack([column.to_unit(values[:, k]) for k, column in enumerate(columns)])


def declared_columns(
    bounds: Any, features: Sequence[str] | None, n_features: int | None = None
) -> tuple[Column, ...]:
    """The d columns that the user declares: {name: (low, high)}, or d pairs and d names.

    n_features: d where it is known from points (n, d); names then default to x1, x2, ...
    """
    if bounds is None or isinstance(bounds, str):
        raise InputError(
            "bounds must be given as public limits such as {'height': (40, 220)}: limits taken "
            "from the data would reveal its most extreme people"
        )
    names = _names(bounds, features, n_features)
    domains = _domains(bounds, names)
    if len(domains) != len(names) or n_features not in (None, len(names)):
        raise InputError(
            f"there are {len(names) if n_features is None else n_features} features but bounds "
            f"for {len(domains)} and names for {len(names)}: give one (low, high) and one name each"
        )
    return tuple(map(declared_column, names, domains))


def declared_column(name: str, domain: Any) -> Column:
    """The kind of column that the form of its domain says: (low, high) is one of numbers."""
    try:
        low, high = (float(value) for value in domain)
    except (TypeError, ValueError):
        raise InputError(f"the bounds of '{name}' must be two numbers (low, high)") from None
    return NumberColumn(name, low, high)


def _names(bounds: Any, features: Sequence[str] | None, n_features: int | None) -> tuple[str, ...]:
    if features is None and isinstance(bounds, Mapping):
        features = list(bounds)
    if features is None and n_features is None:
        raise InputError("features must be named when bounds are a list of pairs without names")
    if features is None:
        features = [f"x{k + 1}" for k in range(n_features or 0)]
    names = (features,) if isinstance(features, str) else tuple(str(name) for name in features)
    if not names:
        raise InputError("there are no features: name at least one column of numbers")
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"features name {listed(repeated)} more than once: name each once")
    return names


def _domains(bounds: Any, names: tuple[str, ...]) -> list[Any]:
    if not isinstance(bounds, Mapping):
        try:
            return list(bounds)
        except TypeError:
            raise InputError("bounds must be one pair (low, high) per feature") from None
    unknown = [name for name in names if name not in bounds]
    if unknown:
        raise InputError(f"bounds are missing for {listed(unknown)}: add their public limits")
    unused = [name for name in bounds if name not in names]
    if unused:
        raise InputError(
            f"bounds are given for {listed(unused)}, not among the features: remove them, "
            "or add them to features"
        )
    return [bounds[name] for name in names]
