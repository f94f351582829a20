"""What scores are given, and how a score enters the tables.

A score is a function of two clouds of people (n, d), (k, d), or of their paths (n, T, d),
(k, T, d), synthetic people first, with an entry above it that checks what it is given; what its
docstring says before the first colon are its plain words on a page.

    @cloud_metric("w2", "W2", most=MOST)
    def wasserstein2(a, b): ...

Every module of this package is looked through for such entries, so nothing else has to be told.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Literal, TypeVar, cast

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError
from privtraj.base.space import utc_seconds

Better = Literal["lower", "higher", "1"]
Compared = TypeVar("Compared", bound=Callable[..., float])
Made = TypeVar("Made")

# How many people of a cloud are compared, so that the slowest score takes seconds.
MOST = 1000  # in exact transport, whose time grows with their square and more
MANY = 10 * MOST  # in what takes n log n

# Entries --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Metric:
    """One line of a table, which is left out where the score is nan or refuses what it is given.

    compare: function of (synthetic, real) clouds, or paths; the options `bounds` and `seed`, and of
    paths `times`, are given to it if it has them. Of mixed columns it is given the numbers alone,
    unless it has the option `columns`.  most: people that are compared.  coupled: the ceiling is
    true marginals, coupled at random, instead of uniform points.  least_times: the line is left out
    for paths of fewer times.  mixed: likewise where all columns are numbers.  paths: of paths.
    absence: people of paths may be absent, where they are nan.
    """

    name: str
    label: str
    compare: Callable[..., float]
    better: Better = "lower"
    most: int = MANY
    coupled: bool = False
    least_times: int = 1
    mixed: bool = False
    paths: bool = False
    absence: bool = False

    @property
    def words(self) -> str:
        """What it says, in plain words."""
        whole = inspect.getdoc(self.compare) or ""
        return " ".join(re.split(r"[:.;]\s", whole)[0].removesuffix(".").split())

    def with_options(self, **options: Any) -> partial[float]:
        """`compare` with those of the options that it has."""
        known = inspect.signature(self.compare).parameters
        return partial(self.compare, **{k: v for k, v in options.items() if k in known})


_METRICS: dict[str, Metric] = {}


def cloud_metric(name: str, label: str, **entry: Any) -> Callable[[Compared], Compared]:
    """Enter a function of two clouds (n, d), (k, d) into the table; `entry`: see `Metric`."""

    def enter(compare: Compared) -> Compared:
        @wraps(compare)
        def checked(synthetic: Any, real: Any, **options: Any) -> float:
            sides = metric.paths and path_pair(synthetic, real, absence=metric.absence)
            return compare(*(sides or pair(synthetic, real)), **options)

        metric = _METRICS[name] = Metric(name, label, checked, **entry)
        return cast(Compared, checked)

    return enter


def path_metric(name: str, label: str, **entry: Any) -> Callable[[Compared], Compared]:
    """Enter a function of paths (n, T, d), (k, T, d) into the table; `entry`: see `Metric`."""
    return cloud_metric(name, label, **entry, paths=True)


def all_metrics(*, paths: bool) -> list[Metric]:
    """Those of clouds or of paths, in the order of modules, and of lines in these."""
    for module in pkgutil.iter_modules(sys.modules[__package__].__path__):
        importlib.import_module(f"{__package__}.{module.name}")

    def place(metric: Metric) -> tuple[str, int]:
        written: Any = inspect.unwrap(metric.compare)
        return written.__module__, written.__code__.co_firstlineno

    return sorted((each for each in _METRICS.values() if each.paths == paths), key=place)


# Clouds and paths -----------------------------------------------------------------------------


def cloud(points: Any) -> Floats:
    """Points as (n, d) float64; a list of n numbers has one feature."""
    return _checked(points, "a cloud of people", ("n", "d"))


def pair(a: Any, b: Any) -> tuple[Floats, Floats]:
    """Two clouds with the same features."""
    x, y = cloud(a), cloud(b)
    if x.shape[1] != y.shape[1]:
        raise InputError(f"clouds of {x.shape[1]} and {y.shape[1]} features cannot be compared")
    return x, y


def each_time(clouds: Any, truth: Any) -> list[tuple[Any, Any]]:
    """The clouds of each time, side by side."""
    if len(clouds) != len(truth):
        raise InputError(f"{len(clouds)} times cannot be compared with {len(truth)}")
    return list(zip(clouds, truth, strict=True))


def partial_paths(paths: Any) -> Floats:
    """Paths (n, T, d) of people who may be absent: there all features are nan."""
    array = _checked(paths, "paths", ("n", "T", "d"), absence=True)
    return np.where(np.isnan(array).any(axis=2, keepdims=True), np.nan, array)


def path_pair(a: Any, b: Any, *, absence: bool = False) -> tuple[Floats, Floats]:
    """Two sets of paths (n, T, d) with the same times and features; (n, T) has one feature."""
    read = partial_paths if absence else partial(_checked, what="paths", axes=("n", "T", "d"))
    x, y = read(a), read(b)
    if x.shape[1:] != y.shape[1:]:
        raise InputError(
            f"paths of {x.shape[1]} times and {x.shape[2]} features cannot be compared with paths "
            f"of {y.shape[1]} times and {y.shape[2]} features"
        )
    return x, y


def reading_times(times: Any, count: int, of: str = "reading") -> Floats:
    """Times (T,) as numbers, 0, 1, .., T - 1 unless given; dates count in seconds."""
    given = np.arange(count) if times is None else np.asarray(times)
    at: Floats = utc_seconds(given) if given.dtype.kind == "M" else given.astype(np.float64)
    if at.shape != (count,) or not (np.diff(at) > 0).all():
        raise InputError(f"give one time per {of}, in increasing order")
    return at


def halves(n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """The indices 0..n-1 in two random halves."""
    if n < 2:
        raise InputError("one person alone cannot be split in halves: give at least two")
    order = rng.permutation(n)
    return order[: n // 2], order[n // 2 :]


def on_all_cores(make: Callable[..., Made], cases: Iterable[tuple[Any, ...]]) -> Iterator[Made]:
    """make(*case) of each case, in their order: exact transport and NumPy leave Python to others.

    What comes out does not depend on the number of cores if `make` has no state.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(lambda case: make(*case), cases)


def _checked(values: Any, what: str, axes: tuple[str, ...], absence: bool = False) -> Floats:
    """Finite float64 with these axes; the last, of features, may be left out if there is one."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == len(axes) - 1:
        array = array[..., None]
    if array.ndim != len(axes) or 0 in array.shape:
        raise InputError(f"{what} must have shape ({', '.join(axes)}) with at least one person")
    if not (np.isfinite(array) | (absence & np.isnan(array))).all():
        raise InputError(f"{what} must be finite")
    return array
