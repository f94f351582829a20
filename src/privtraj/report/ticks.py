"""Round numbers and whole dates to put on an axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tick = tuple[float, str]  # where, and what to write there

_DAY = 86400.0  # in seconds
_DAYS = 3 * _DAY  # a span above which a date needs no clock
_STEPS = (
    *((k, "Y") for k in (1000, 500, 200, 100, 50, 20, 10, 5, 2, 1)),
    *((k, "M") for k in (6, 3, 2, 1)),
    *((k, "D") for k in (14, 7, 4, 3, 2, 1)),
    *((k, "h") for k in (12, 6, 3, 2, 1)),
    *((k, "m") for k in (30, 15, 10, 5, 2, 1)),
    *((k, "s") for k in (30, 15, 10, 5, 2, 1)),
)


def number_ticks(low: float, high: float, most: int = 5) -> list[Tick]:
    """At most about `most` multiples of 1, 2 or 5 times a power of ten, from low to high."""
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return [(low, f"{low:.6g}")]
    rough = span / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(k * power for k in (1, 2, 5, 10) if k * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(k * step, f"{k * step:.10g}") for k in range(first, last + 1)]


def time_ticks(first: float, last: float, datetime: bool, most: int = 5) -> list[Tick]:
    """As `number_ticks`; where times are seconds since 1970 of dates, whole units of a calendar."""
    if not datetime:
        return number_ticks(first, last, most)
    ticks: list[Tick] = []
    for count, unit in _STEPS:
        ticks = _whole(first, last, count, unit)
        if len(ticks) >= min(3, most):
            return ticks
    return ticks or [(first, time_label(first, last - first, True))]


def time_labels(times: NDArray[np.floating[Any]], datetime: bool) -> list[str]:
    """Increasing times as people write them; dates with a clock where two would share a day."""
    span = float(times[-1] - times[0])
    if datetime and len(times) > 1 and np.diff(times).min() < _DAY:
        span = min(span, _DAYS)
    return [time_label(time, span, datetime) for time in times]


def time_label(time: float, span: float, datetime: bool) -> str:
    """A time among others that lie within `span` of each other, as people write it."""
    if not datetime:
        decimals = min(max(3 - math.floor(math.log10(span)), 0), 12) if span > 0 else 6
        text = f"{time:.{decimals}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    unit = "D" if span > _DAYS else "m" if span > 300 else "s"
    return str(np.datetime64(round(time), "s").astype(f"datetime64[{unit}]")).replace("T", " ")


def _whole(first: float, last: float, count: int, unit: Any) -> list[Tick]:
    """Multiples of `count` units between two times in seconds."""
    ends = np.array([math.floor(first), math.ceil(last)], dtype="datetime64[s]")
    low, high = ends.astype(f"datetime64[{unit}]").astype(np.int64)
    base = 1970 if unit == "Y" else 0  # so that years are multiples themselves
    start = (low + base) // count * count - base
    marks = np.arange(start, high + 1, count).astype(f"datetime64[{unit}]")
    seconds = marks.astype("datetime64[s]").astype(np.int64)
    return [
        (float(at), _mark(mark, unit))
        for at, mark in zip(seconds, marks, strict=True)
        if first - 1 <= at <= last + 1
    ]


def _mark(mark: Any, unit: str) -> str:
    if unit in "YMD":
        return str(mark)
    day, clock = str(mark.astype("datetime64[s]")).split("T")
    if unit == "h" and clock == "00:00:00":
        return day[-5:]
    return clock if unit == "s" else clock[:5]
