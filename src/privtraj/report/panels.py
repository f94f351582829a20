"""Quantile bands of single features over time, as paths of static SVG.

Scripts and styles can reach them; see `assets/panels.html`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.space import from_unit
from privtraj.columns.kinds import Date
from privtraj.report.page_data import DENSITY_BINS, Sampled
from privtraj.report.ticks import Tick, number_ticks, time_label, time_ticks
from privtraj.report.worth import half_width

if TYPE_CHECKING:
    from privtraj.assess.quality import Quality
    from privtraj.model.model import TrajectoryModel


MOST_PANELS = 60
BOX = {
    "width": 380, "height": 230, "left": 48, "right": 292, "top": 10, "bottom": 200,
    "heapLeft": 304, "heapRight": 372,
}  # fmt: skip
_LETTER = 7.2  # width of one


def panels(
    model: TrajectoryModel,
    shown: Sampled,
    real: Floats | None = None,
    quality: Quality | None = None,
) -> list[dict[str, Any]]:
    """One for each of the first features; real: (d, 5, T) quantiles of records, nan if unknown.
    quality: how sure medians are."""
    count = min(len(shown.numbers), MOST_PANELS)
    return [
        _panel(model, shown, k, None if real is None else real[k], quality) for k in range(count)
    ]


def _panel(
    model: TrajectoryModel,
    shown: Sampled,
    feature: int,
    real: Floats | None,
    quality: Quality | None,
) -> dict[str, Any]:
    """Places of the marks of a feature, and the paths of its lines and areas."""
    column, bounds = shown.numbers[feature], shown.bounds[feature]
    low, high = from_unit(shown.ranges[feature], bounds).tolist()
    first, last = model.numeric_times[[0, -1]].tolist()
    x = Scale(first, last, BOX["left"], BOX["right"])
    y = Scale(low, high, BOX["bottom"], BOX["top"])
    dates = isinstance(column, Date)
    marks = time_ticks(low, high, True) if dates else number_ticks(low, high, 6)
    bands = from_unit(shown.bands[feature], bounds)
    at, lines, knots = x(shown.times), y(bands), x(model.numeric_times)
    sure = half_width(quality, column.name, shown.times)
    return {
        "name": column.name,
        "first": _said(bands[2, 0], high - low, dates),
        "last": _said(bands[2, -1], high - low, dates),
        "levels": [(float(y(value)), label) for value, label in marks],
        "times": apart(x, time_ticks(first, last, model.datetime, 4), BOX["heapRight"]),
        "most": area(at, lines[0], lines[4]),
        "half": area(at, lines[1], lines[3]),
        "median": line(at, lines[2]),
        "sure": None if sure is None else area(at, y(bands[2] - sure), y(bands[2] + sure)),
        "real": None if real is None else _records(knots, y(from_unit(real, bounds))),
        "knots": knots,
        "heap": _heap(shown.density[feature, 0]),
    }


@dataclass(frozen=True)
class Scale:
    """From values to places in the picture."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, values: Floats | float) -> Floats:
        share = (np.asarray(values, np.float64) - self.low) / ((self.high - self.low) or 1.0)
        return self.start + np.clip(share, -0.02, 1.02) * (self.end - self.start)


def _said(value: float, span: float, date: bool) -> str:
    return time_label(value, span, True) if date else f"{value:.3g}"


def apart(x: Scale, ticks: list[Tick], end: float) -> list[Tick]:
    """Labels before an end, less those that would run into the one before."""
    kept, free = [], 0.0
    for at, label in ticks:
        half = _LETTER * len(label) / 2
        middle = min(float(x(at)), end - half)
        if middle - half >= free:
            kept.append((middle, label))
            free = middle + half + _LETTER
    return kept


def _records(x: Floats, lines: Floats) -> dict[str, Any]:
    """Lines of 10 %, 50 % and 90 % of real records, with dots where the median is known."""
    low, _, median, _, high = lines
    dots = [(a, b) for a, b in zip(x, median, strict=True) if np.isfinite(b)]
    return {"low": line(x, low), "median": line(x, median), "high": line(x, high), "dots": dots}


def _heap(density: Floats) -> str:
    """Between the density and its foot, from low to high values."""
    left, right = BOX["heapLeft"], BOX["heapRight"]
    steps = (np.arange(DENSITY_BINS) + 0.5) / DENSITY_BINS
    up = BOX["bottom"] - steps * (BOX["bottom"] - BOX["top"])
    outline = line(left + density * (right - left), up)
    return f"{outline}L{left} {up[-1]:.1f}L{left} {up[0]:.1f}Z"


def line(x: Floats, y: Floats) -> str:
    """Through the points that are known."""
    known = np.isfinite(y)
    points = zip(x[known], y[known], strict=True)
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points) if known.any() else ""


def area(x: Floats, low: Floats, high: Floats) -> str:
    """Between two lines over x."""
    return f"{line(x, low)}L{line(x[::-1], high[::-1])[1:]}Z"
