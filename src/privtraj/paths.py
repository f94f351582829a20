"""Paths: synthetic people who can be read at any continuous time."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privtraj.snapshots import as_user_times

Floats = NDArray[np.floating[Any]]
Interpolation = Literal["bridge", "linear", "spline"]


@dataclass(frozen=True, eq=False)
class Paths:
    """n synthetic people at q times. values: (n, q, d) in data units, inside the public bounds."""

    values: Floats
    numeric_times: Floats  # (q,) numbers; seconds since 1970-01-01 UTC when `datetime`
    features: tuple[str, ...]
    time_name: str
    datetime: bool

    @property
    def times(self) -> NDArray[Any]:
        """(q,) in the user's form: numbers or datetime64."""
        return as_user_times(self.numeric_times, self.datetime)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        n, q, _ = self.values.shape
        return f"Paths({n} people at {q} times; {', '.join(self.features)})"

    def to_arrow(self) -> Any:
        """The long table (pyarrow): path, time, one column per feature; n q rows."""
        import pyarrow as pa

        n, q, _ = self.values.shape
        columns: dict[str, NDArray[Any]] = {"path": np.repeat(np.arange(n, dtype=np.int64), q)}
        columns[_free_name(self.time_name, columns)] = np.tile(self.times, n)
        for k, name in enumerate(self.features):
            columns[_free_name(name, columns)] = self.values[:, :, k].ravel()
        return pa.table(columns)

    def to_frame(self) -> Any:
        """The long table as a pandas DataFrame."""
        return self.to_arrow().to_pandas()


def _free_name(name: str, taken: Container[str]) -> str:
    """The name, with as many underscores behind it as it takes to be the only one."""
    while name in taken:
        name += "_"
    return name


def between(
    knots: Floats,
    knot_times: Floats,
    times: Floats,
    diffusivity: float,
    interpolation: Interpolation,
    rng: np.random.Generator,
) -> Floats:
    """Values (n, q, d) at `times` (q,) inside the range, of paths through knots (n, T, d).

    "bridge": a Brownian bridge, variance diffusivity (t - a)(b - t) / (b - a) per coordinate, joint
    over all times in the interval; "linear": straight; "spline": monotone cubic, no overshoot.
    """
    if interpolation == "spline":
        from scipy.interpolate import PchipInterpolator

        return np.asarray(PchipInterpolator(knot_times, knots, axis=1)(times))
    left = np.clip(np.searchsorted(knot_times, times, side="right") - 1, 0, len(knot_times) - 2)
    a, b = knot_times[left], knot_times[left + 1]
    share = ((times - a) / (b - a))[None, :, None].astype(knots.dtype)
    values = knots[:, left] * (1 - share) + knots[:, left + 1] * share
    if interpolation == "bridge" and diffusivity > 0:
        order = np.argsort(times, kind="stable")
        for i in np.unique(left):
            inside = order[(left[order] == i)]
            _add_bridge(values, inside, times, knot_times[i], knot_times[i + 1], diffusivity, rng)
    return values


def _add_bridge(
    values: Floats,
    inside: NDArray[np.int64],
    times: Floats,
    a: float,
    b: float,
    diffusivity: float,
    rng: np.random.Generator,
) -> None:
    """Walk the bridge from a to b through the sorted times.

    Given B_s = v and s < t < b, B_t is normal with mean v (b - t) / (b - s) and variance
    diffusivity (t - s)(b - t) / (b - s).
    """
    n, _, d = values.shape
    bridge = np.zeros((n, d), values.dtype)
    before = a
    for q in inside:
        t = times[q]
        if t >= b:
            continue
        std = np.sqrt(diffusivity * (t - before) * (b - t) / (b - before))
        bridge = bridge * values.dtype.type((b - t) / (b - before))
        if std > 0:
            bridge += values.dtype.type(std) * rng.standard_normal((n, d), dtype=values.dtype)
        values[:, q] += bridge
        before = t


def fold(values: Floats) -> Floats:
    """Reflect into [0, 1]: what leaves the box through a wall comes back from it."""
    return 1 - np.abs(1 - np.mod(values, 2.0))
