"""The scores of the tables. A score is a function with an entry above it:

    @cloud_metric("energy", "energy distance", place=50, most=2 * MOST)
    def energy_distance(a, b): ...

Every module of this package is looked through for such entries, so nothing else has to be told.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, Literal, TypeVar

from privtraj.base.arrays import Floats

Better = Literal["lower", "higher", "0.5", "1"]
Compare = Callable[[Any, Any], float]
Compared = TypeVar("Compared", bound=Callable[..., float])

# How many people of a cloud are compared, so that the slowest score takes seconds.
MOST = 1000  # in exact transport, whose time grows with their square and more
MANY = 10 * MOST  # in what takes n log n


@dataclass(frozen=True)
class Metric:
    """One line of a table.

    compare: function of (synthetic, real) clouds, or paths; the options `bounds` and `seed`, and of
    paths `times`, are given to it if it has them. Of mixed columns it is given the numbers alone,
    unless it has the option `columns`.  place: lines are in this order.  most: people
    that are compared.  least: with fewer the line is left out.  on_grid: likewise where the usual
    grid of the box has too many cells.  least_times: likewise for paths of fewer times.  absence:
    paths may be nan where a person is absent; without, the line is left out where some are.
    finish: of the (T,) values.  coupled: the ceiling is true marginals, coupled at random, instead
    of uniform points.  mixed: the line is left out where all columns are numbers, or it is nan.
    """

    name: str
    label: str
    compare: Callable[..., float]
    place: int
    better: Better = "lower"
    most: int = MANY
    least: int = 1
    on_grid: bool = False
    finish: Callable[[Floats], Floats] | None = None
    coupled: bool = False
    least_times: int = 1
    absence: bool = False
    mixed: bool = False

    def with_options(self, **options: Any) -> Compare:
        """`compare` with those of the options that it has."""
        known = self._options
        return partial(self.compare, **{k: v for k, v in options.items() if k in known})

    @property
    def takes_columns(self) -> bool:
        """Whether it makes sense of categories."""
        return "columns" in self._options

    @property
    def _options(self) -> Collection[str]:
        return signature(self.compare).parameters


_CLOUDS: dict[str, Metric] = {}
_PATHS: dict[str, Metric] = {}


def cloud_metric(name: str, label: str, **entry: Any) -> Callable[[Compared], Compared]:
    """Enter a function of two clouds (n, d), (k, d) into the table; `entry`: see `Metric`."""
    return partial(_enter, _CLOUDS, name, label, entry)


def path_metric(name: str, label: str, **entry: Any) -> Callable[[Compared], Compared]:
    """Enter a function of paths (n, T, d), (k, T, d) into the table; `entry`: see `Metric`."""
    return partial(_enter, _PATHS, name, label, entry)


def cloud_metrics() -> list[Metric]:
    """All scores of clouds, in order."""
    return _in_order(_CLOUDS)


def path_metrics() -> list[Metric]:
    """All scores of paths, in order."""
    return _in_order(_PATHS)


def _enter(
    table: dict[str, Metric], name: str, label: str, entry: dict[str, Any], compare: Compared
) -> Compared:
    table[name] = Metric(name, label, compare, **entry)
    return compare


def _in_order(table: dict[str, Metric]) -> list[Metric]:
    package = sys.modules[__package__]
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{__package__}.{module.name}")
    return sorted(table.values(), key=lambda metric: metric.place)
