"""Quantile bands of single features over time, as paths of static SVG.

Scripts and styles can reach them; see `assets/panels.html`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.arrays import Floats
from privtraj.report.page_data import DENSITY_BINS, Sampled
from privtraj.report.ticks import Tick, number_ticks, time_ticks
from privtraj.space import from_unit

if TYPE_CHECKING:
    from privtraj.model import TrajectoryModel


MOST_PANELS = 60
BOX = {
    "width": 380, "height": 230, "left": 48, "right": 292, "top": 10, "bottom": 200,
    "heapLeft": 304, "heapRight": 372,
}  # fmt: skip
_LETTER = 7.2  # width of one


def panels(
    model: TrajectoryModel, shown: Sampled, real: Floats | None = None
) -> list[dict[str, Any]]:
    """One for each of the first features; real: (d, 5, T) quantiles of records, nan if unknown."""
    count = min(len(model.features), MOST_PANELS)
    return [_panel(model, shown, k, None if real is None else real[k]) for k in range(count)]


def _panel(
    model: TrajectoryModel, shown: Sampled, feature: int, real: Floats | None
) -> dict[str, Any]:
    """Places of the marks of a feature, and the paths of its lines and areas."""
    bounds = model.bounds[feature]
    low, high = from_unit(shown.ranges[feature], bounds).tolist()
    first, last = model.numeric_times[[0, -1]].tolist()
    x = _Scale(first, last, BOX["left"], BOX["right"])
    y = _Scale(low, high, BOX["bottom"], BOX["top"])
    bands = from_unit(shown.bands[feature], bounds)
    at, lines, knots = x(shown.times), y(bands), x(model.numeric_times)
    return {
        "name": model.features[feature],
        "first": bands[2, 0],
        "last": bands[2, -1],
        "levels": [(float(y(value)), label) for value, label in number_ticks(low, high, 6)],
        "times": _apart(x, time_ticks(first, last, model.datetime, 4)),
        "most": _area(at, lines[0], lines[4]),
        "half": _area(at, lines[1], lines[3]),
        "median": _line(at, lines[2]),
        "real": None if real is None else _records(knots, y(from_unit(real, bounds))),
        "knots": knots,
        "heap": _heap(shown.density[feature, 0]),
    }


@dataclass(frozen=True)
class _Scale:
    """From values to places in the picture."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, values: Floats | float) -> Floats:
        share = (np.asarray(values, np.float64) - self.low) / ((self.high - self.low) or 1.0)
        return self.start + np.clip(share, -0.02, 1.02) * (self.end - self.start)


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


def _records(x: Floats, lines: Floats) -> dict[str, Any]:
    """Lines of 10 %, 50 % and 90 % of real records, with dots where the median is known."""
    low, _, median, _, high = lines
    dots = [(a, b) for a, b in zip(x, median, strict=True) if np.isfinite(b)]
    return {"low": _line(x, low), "median": _line(x, median), "high": _line(x, high), "dots": dots}


def _heap(density: Floats) -> str:
    """Between the density and its foot, from low to high values."""
    left, right = BOX["heapLeft"], BOX["heapRight"]
    steps = (np.arange(DENSITY_BINS) + 0.5) / DENSITY_BINS
    up = BOX["bottom"] - steps * (BOX["bottom"] - BOX["top"])
    outline = _line(left + density * (right - left), up)
    return f"{outline}L{left} {up[-1]:.1f}L{left} {up[0]:.1f}Z"


def _line(x: Floats, y: Floats) -> str:
    """Through the points that are known."""
    known = np.isfinite(y)
    points = zip(x[known], y[known], strict=True)
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points) if known.any() else ""


def _area(x: Floats, low: Floats, high: Floats) -> str:
    """Between two lines over x."""
    return f"{_line(x, low)}L{_line(x[::-1], high[::-1])[1:]}Z"
