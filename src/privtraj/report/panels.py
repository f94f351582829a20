"""Quantile bands of single features over time, as paths of static SVG.

Scripts and styles can reach them; see `assets/panels.html`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privtraj.arrays import Floats
from privtraj.report.page_data import DENSITY_BINS, Sampled
from privtraj.report.ticks import Tick, number_ticks, time_ticks
from privtraj.space import from_unit

if TYPE_CHECKING:
    from privtraj.model import TrajectoryModel


MOST_PANELS = 60
BOX = {
    "width": 380,
    "height": 230,
    "left": 48,
    "right": 292,
    "top": 10,
    "bottom": 200,
    "heapLeft": 304,
    "heapRight": 372,
}
_LETTER = 7.2  # width of one
_REAL = {0: "real-thin", 2: "real-line", 4: "real-thin"}  # which quantiles are drawn, and how


@dataclass(frozen=True, eq=False)
class RealBands:
    """Quantiles of real records at the fitted times: (d, 5, T), nan where there are too few."""

    times: Floats
    values: Floats


@dataclass(frozen=True)
class Panel:
    """One feature: places of its marks, and the paths of its lines and areas.

    first, last: median at the ends.  values, times: ticks.  most, half: areas of 80 % and half of
    the people.  real: kind and path of the lines of real records.  dots: on their median.
    knots: the fitted times.  heap: density at the first time, lying on its side.
    """

    name: str
    first: float
    last: float
    values: list[Tick]
    times: list[Tick]
    most: str
    half: str
    median: str
    real: list[tuple[str, str]]
    dots: list[tuple[float, float]]
    knots: list[float]
    heap: str


def panels(model: TrajectoryModel, shown: Sampled, real: RealBands | None = None) -> list[Panel]:
    """One for each of the first features."""
    count = min(len(model.features), MOST_PANELS)
    return [_panel(model, shown, k, real) for k in range(count)]


def _panel(model: TrajectoryModel, shown: Sampled, feature: int, real: RealBands | None) -> Panel:
    bounds = model.bounds[feature]
    low, high = from_unit(shown.ranges[feature], bounds).tolist()
    first, last = model.numeric_times[[0, -1]].tolist()
    x = _Scale(first, last, BOX["left"], BOX["right"])
    y = _Scale(low, high, BOX["bottom"], BOX["top"])
    bands = from_unit(shown.bands[feature], bounds)
    at, lines = x(shown.times), y(bands)
    median = (np.empty(0), np.empty(0))
    others: list[tuple[str, str]] = []
    if real is not None:
        drawn = [_seen(real.times, from_unit(row, bounds), x, y) for row in real.values[feature]]
        median, others = drawn[2], [(kind, _line(*drawn[k])) for k, kind in _REAL.items()]
    return Panel(
        name=model.features[feature],
        first=float(bands[2, 0]),
        last=float(bands[2, -1]),
        values=[(float(y(value)), label) for value, label in number_ticks(low, high, 6)],
        times=_apart(x, time_ticks(first, last, model.datetime, 4)),
        most=_area(at, lines[0], lines[4]),
        half=_area(at, lines[1], lines[3]),
        median=_line(at, lines[2]),
        real=others,
        dots=list(zip(*median, strict=True)),
        knots=x(model.numeric_times).tolist(),
        heap=_heap(shown.density[feature, 0]),
    )


@dataclass(frozen=True)
class _Scale:
    """From values to places in the picture."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, values: Floats | float) -> Floats:
        share = (np.asarray(values, np.float64) - self.low) / ((self.high - self.low) or 1.0)
        places: Floats = self.start + np.clip(share, -0.02, 1.02) * (self.end - self.start)
        return places


def _apart(x: _Scale, ticks: list[Tick]) -> list[Tick]:
    """Labels in the picture, less those that would run into the one before."""
    kept, free = [], 0.0
    for at, label in ticks:
        half = _LETTER * len(label) / 2
        middle = min(float(x(at)), BOX["heapRight"] - half)
        if middle - half >= free:
            kept.append((middle, label))
            free = middle + half + _LETTER
    return kept


def _heap(density: Floats) -> str:
    """Between the density and its foot, from low to high values."""
    left, right = BOX["heapLeft"], BOX["heapRight"]
    steps = (np.arange(DENSITY_BINS) + 0.5) / DENSITY_BINS
    up = BOX["bottom"] - steps * (BOX["bottom"] - BOX["top"])
    outline = _line(left + density * (right - left), up)
    return f"{outline}L{left} {up[-1]:.1f}L{left} {up[0]:.1f}Z"


def _seen(times: Floats, values: Floats, x: _Scale, y: _Scale) -> tuple[Floats, Floats]:
    """Places of the values that are known."""
    known = np.isfinite(values)
    return x(times[known]), y(values[known])


def _line(x: Floats, y: Floats) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True)) if len(x) else ""


def _area(x: Floats, low: Floats, high: Floats) -> str:
    """Between two lines over x."""
    return f"{_line(x, low)}L{_line(x[::-1], high[::-1])[1:]}Z"
