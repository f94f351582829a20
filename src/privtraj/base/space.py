"""Where and when: the public box and the unit cube, slabs of time, reflection at the walls."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtraj.base.arrays import Floats, Ints, Mask, frozen
from privtraj.base.errors import Arg, InputError

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def to_unit(values: ArrayLike, bounds: ArrayLike, clamp: bool = True) -> Floats:
    """u = (y - low) / (high - low), for values (..., d) and bounds (d, 2); clamped to [0, 1]."""
    low, high = np.asarray(bounds, dtype=np.float64).T
    values = np.asarray(values, dtype=np.float64)
    if clamp:  # before the subtraction, which could overflow
        values = np.clip(values, low, high)
    unit = (values - low) / (high - low)
    return np.clip(unit, 0.0, 1.0) if clamp else unit


def from_unit(values: ArrayLike, bounds: ArrayLike) -> Floats:
    """y = low + u (high - low), for values (..., d) and bounds (d, 2); the inverse of `to_unit`."""
    low, high = np.asarray(bounds, dtype=np.float64).T
    return low + np.asarray(values, dtype=np.float64) * (high - low)


def fold(values: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Reflect into [0, 1]: what leaves the box through a wall comes back from it."""
    nearest_even = 2 * np.rint(values / 2)
    return np.abs(values - nearest_even)


def unit_time(times: Floats, knots: Floats) -> Floats:
    """Times as shares of the range of the knots."""
    return (times - knots[0]) / (knots[-1] - knots[0])


def hat_functions(times: Floats, knots: Floats) -> Floats:
    """B_k(t) (q, K + 1), linear between the knots (K + 1,), for times (q,) within them."""
    left = np.clip(np.searchsorted(knots, times, side="right") - 1, 0, len(knots) - 2)
    share = (times - knots[left]) / (knots[left + 1] - knots[left])
    basis = np.zeros((len(times), len(knots)))
    rows = np.arange(len(times))
    basis[rows, left], basis[rows, left + 1] = 1 - share, share
    return basis


def nearest_bin(values: ArrayLike, times: ArrayLike) -> NDArray[np.int32]:
    """i = argmin_i |t_i - v| for values (n,) and increasing times (T,); the earlier on a tie."""
    return np.searchsorted(bin_edges(times), np.asarray(values, np.float64)).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Slabs:
    """Time cut at edges into pieces, each of them part of one of K slabs, or of none.

    edges: (E,) increasing, in data units; a time is in piece i if i edges are below it.
    slab_of_piece: (E + 1,) number of the slab, 0 to K - 1, or -1 for none.
    """

    edges: Floats
    slab_of_piece: Ints

    @classmethod
    def between(cls, edges: Floats) -> Slabs:
        """Every piece a slab of its own: K = E + 1, in the order of time."""
        return cls(edges, np.arange(len(edges) + 1))

    @classmethod
    def around(cls, times: Floats) -> Slabs:
        """A slab of all that is nearest to each of these times (T,): time bins."""
        return cls.between(bin_edges(times))

    @property
    def count(self) -> int:
        """K."""
        return int(self.slab_of_piece.max()) + 1

    def of(self, times: ArrayLike) -> Ints:
        """Number of the slab of each time (n,), -1 for none."""
        numbers: Ints = self.slab_of_piece[np.searchsorted(self.edges, times)]
        return numbers


@dataclass(frozen=True)
class TimeAxis:
    """Public times, numbers or dates as seconds since 1970-01-01 UTC.

    times: (T,) increasing, those of interest.  range: (2,) from when to when people are recorded.
    declared: whether somebody named the times, so that they may be taken for time bins.
    bins: all that is nearest to each time; one bin for all time if no times were named.
    """

    times: Floats
    datetime: bool
    range: Floats
    declared: bool = True
    bins: Slabs = field(init=False, compare=False)

    def __post_init__(self) -> None:
        frozen(self.times)
        frozen(self.range)
        bins = Slabs.around(self.times) if self.declared else Slabs.between(self.times[:0])
        object.__setattr__(self, "bins", bins)


def bin_edges(times: ArrayLike) -> Floats:
    """(T - 1,) e_i, the largest value nearer to t_i than to t_(i+1), or as near, in float64.

    So the bin of v is the number of edges below v, with nothing but comparisons.
    """
    times = np.asarray(times, dtype=np.float64)
    before, after = times[:-1], times[1:]
    return largest(lambda value: after - value >= value - before, before, after)


def largest(holds: Callable[[Floats], Mask], low: Floats, high: Floats) -> Floats:
    """Largest float that satisfies a monotone predicate, true at low and false at high; (k,) each.

    Monotone: true up to some float, false above it.
    """
    below, above = _in_order((low + 0.0).view(np.int64)), _in_order((high + 0.0).view(np.int64))
    for _ in range(64):
        middle = (below & above) + ((below ^ above) >> 1)  # the mean, rounded down, no overflow
        held = holds(_in_order(middle).view(np.float64))
        below, above = np.where(held, middle, below), np.where(held, above, middle)
    return _in_order(below).view(np.float64)


def _in_order(bits: Ints) -> Ints:
    """Bits of floats as integers in the same order, without gaps, both zeros 0; and back again."""
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def as_user_times(times: ArrayLike, datetime: bool) -> NDArray[Any]:
    """Times in seconds since 1970-01-01 as datetime64[us] when `datetime`, else unchanged."""
    times = np.asarray(times, dtype=np.float64)
    return np.rint(times * 1e6).astype("datetime64[us]") if datetime else times


def written_times(times: ArrayLike, datetime: bool) -> NDArray[Any]:
    """Times (q,) as tables have them: dates in days, seconds or parts of them, in the coarsest that
    tells them all exactly; numbers as they are."""
    if not datetime:
        return np.asarray(times, dtype=np.float64)
    exact = as_user_times(times, datetime)
    coarser = (exact.astype(f"datetime64[{unit}]") for unit in ("D", "s", "ms"))
    return next((made for made in coarser if (made == exact).all()), exact)


def moment(value: Any, what: str | Arg = "the time") -> tuple[float, bool]:
    """One public time as (number, False) or, for a date in any form, (UTC seconds, True)."""
    if isinstance(value, str):
        value = _parsed(value, what)
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return (aware - _EPOCH).total_seconds(), True
    if isinstance(value, dt.date):
        return (value - _EPOCH.date()).total_seconds(), True
    dates = isinstance(value, np.datetime64)
    if not dates and not isinstance(value, Real):
        raise InputError(what, f" must be made of numbers or dates, not of {type(value).__name__}")
    number = float(utc_seconds(np.asarray(value)).item() if dates else value)
    if not np.isfinite(number):
        raise InputError(what, " must be finite")
    return number, dates


def _parsed(text: str, what: str | Arg) -> float | dt.datetime:
    readers: tuple[Callable[[str], float | dt.datetime], ...] = (float, dt.datetime.fromisoformat)
    for read in readers:
        try:
            return read(text)
        except ValueError:
            continue
    raise InputError(what, f" has '{text}', which is neither a number nor a date like 2024-01-31")


def utc_seconds(array: NDArray[Any]) -> Floats:
    """Dates of any NumPy unit as seconds since 1970-01-01 UTC; NaN where there is none."""
    micros = array.astype("datetime64[us]")
    return np.where(np.isnat(micros), np.nan, micros.astype(np.int64) / 1e6)
