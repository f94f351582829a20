"""Quantile bands of single features over time, as static SVG that scripts and styles can reach."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from privtraj.arrays import Floats
from privtraj.report.page_data import DENSITY_BINS, Sampled
from privtraj.report.ticks import number_ticks, time_ticks

if TYPE_CHECKING:
    from privtraj.model import TrajectoryModel


MOST_PANELS = 60
_LETTER = 7.2  # width of one
PANEL = {
    "width": 380,
    "height": 230,
    "left": 48,
    "right": 292,
    "top": 10,
    "bottom": 200,
    "heapLeft": 304,
    "heapRight": 372,
}


@dataclass(frozen=True, eq=False)
class RealBands:
    """Quantiles of real records at the fitted times: (d, 5, T), nan where there are too few."""

    times: Floats
    values: Floats


def panels(model: TrajectoryModel, shown: Sampled, real: RealBands | None = None) -> str:
    """One figure for each of the first features."""
    count = min(len(model.features), MOST_PANELS)
    figures = "\n".join(_panel(model, shown, k, real) for k in range(count))
    rest = len(model.features) - count
    more = f"<p class='note'>{rest} more features can be chosen on the axes above.</p>" * (rest > 0)
    return f"{_legend(real is not None)}<div class='panels'>{figures}</div>{more}"


def _panel(model: TrajectoryModel, shown: Sampled, feature: int, real: RealBands | None) -> str:
    name = model.features[feature]
    low, high = (float(v) for v in _in_units(model, feature, shown.ranges[feature]))
    first, last = (float(t) for t in model.numeric_times[[0, -1]])
    x = _Scale(first, last, PANEL["left"], PANEL["right"])
    y = _Scale(low, high, PANEL["bottom"], PANEL["top"])
    marks = [_grid(y, low, high), _times(x, time_ticks(first, last, model.datetime, 4))]
    lines = [y(_in_units(model, feature, row)) for row in shown.bands[feature]]
    at = x(shown.times)
    marks += [
        f'<path class="b80" d="{_area(at, lines[0], lines[4])}"/>',
        f'<path class="b50" d="{_area(at, lines[1], lines[3])}"/>',
        f'<path class="mid" d="{_line(at, lines[2])}"/>',
    ]
    if real is not None:
        marks.append(_real_lines(model, feature, real, x, y))
    marks.append(_knots(x(model.numeric_times)))
    marks.append(_heap(shown.density[feature, 0]))
    start, end = (_in_units(model, feature, shown.bands[feature][2, k]) for k in (0, -1))
    alt = f"{name} over {model.time_name}: median from {start:.3g} to {end:.3g}"
    return (
        f"<figure class='card'><figcaption>{escape(name)}</figcaption>"
        f'<svg class="band{" both" if real else ""}" data-feature="{feature}" role="img" '
        f'aria-label="{escape(alt)}" viewBox="0 0 {PANEL["width"]} {PANEL["height"]}">'
        f"{''.join(marks)}</svg></figure>"
    )


class _Scale:
    """From values to places in the picture."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high, self.start, self.end = low, high, start, end

    def __call__(self, values: Floats | float) -> Floats:
        share = (np.asarray(values, np.float64) - self.low) / ((self.high - self.low) or 1.0)
        places: Floats = self.start + np.clip(share, -0.02, 1.02) * (self.end - self.start)
        return places


def _in_units(model: TrajectoryModel, feature: int, shares: Floats) -> Floats:
    low, high = model.bounds[feature]
    values: Floats = low + shares * (high - low)
    return values


def _grid(y: _Scale, low: float, high: float) -> str:
    left, right = PANEL["left"], PANEL["heapRight"]
    return "".join(
        f'<line class="grid" x1="{left}" x2="{right}" y1="{y(at):.1f}" y2="{y(at):.1f}"/>'
        f'<text x="{left - 7}" y="{y(at) + 4:.1f}" text-anchor="end">{label}</text>'
        for at, label in number_ticks(low, high, 6)
    )


def _times(x: _Scale, ticks: list[tuple[float, str]]) -> str:
    """Labels below the picture, less those that would run into the one before."""
    marks, free = [], 0.0
    for at, label in ticks:
        half = _LETTER * len(label) / 2
        middle = min(float(x(at)), PANEL["heapRight"] - half)
        if middle - half >= free:
            place = f'x="{middle:.1f}" y="{PANEL["bottom"] + 20}"'
            marks.append(f'<text {place} text-anchor="middle">{label}</text>')
            free = middle + half + _LETTER
    return "".join(marks)


def _knots(places: Floats) -> str:
    low = PANEL["bottom"]
    return "".join(
        f'<line class="knot" x1="{x:.1f}" x2="{x:.1f}" y1="{low}" y2="{low + 5}"/>' for x in places
    )


def _heap(density: Floats) -> str:
    """The density at the first time, lying on its side."""
    left, right = PANEL["heapLeft"], PANEL["heapRight"]
    steps = (np.arange(DENSITY_BINS) + 0.5) / DENSITY_BINS
    up = PANEL["bottom"] - steps * (PANEL["bottom"] - PANEL["top"])
    return f'<path class="density" d="{_area(left + density * (right - left), up, up, left)}"/>'


def _real_lines(model: TrajectoryModel, feature: int, real: RealBands, x: _Scale, y: _Scale) -> str:
    marks = []
    for row, kind in ((0, "real-thin"), (2, "real-line"), (4, "real-thin")):
        values = real.values[feature, row]
        seen = np.isfinite(values)
        places = x(real.times[seen]), y(_in_units(model, feature, values[seen]))
        marks.append(f'<path class="{kind}" d="{_line(*places)}"/>')
        marks += [f'<circle class="real-dot" r="2.2" cx="{a:.1f}" cy="{b:.1f}"/>'
                  for a, b in zip(*places, strict=True) if row == 2]  # fmt: skip
    return "".join(marks)


def _line(x: Floats, y: Floats) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True)) if len(x) else ""


def _area(x: Floats, low: Floats, high: Floats, back: float | None = None) -> str:
    """Between two lines over x; or, with `back`, between one line and the place x = back."""
    if back is not None:
        return f"{_line(x, low)}L{back} {low[-1]:.1f}L{back} {low[0]:.1f}Z"
    return f"{_line(x, low)}L{_line(x[::-1], high[::-1])[1:]}Z"


def _legend(real: bool) -> str:
    swatch = "<svg viewBox='0 0 24 12' aria-hidden='true'>{}</svg>"
    box = "<rect class='{}' width='24' height='12' rx='2'/>"
    line = "<path class='{}' d='M0 6H24'/>"
    kinds = [
        (box.format("b80"), "middle 80 % of people"),
        (box.format("b50"), "middle half"),
        (line.format("mid"), "median"),
    ]
    if real:
        kinds += [
            (line.format("real-line"), "median of real records"),
            (line.format("real-thin"), "middle 80 % of real records, and how many where"),
        ]
    else:
        kinds.append(
            ("<path class='knot' d='M12 1V11'/>", "fitted times; between them, interpolated")
        )
    rows = "".join(f"<li>{swatch.format(mark)} {text}</li>" for mark, text in kinds)
    return f"<ul class='legend{' both' if real else ''}'>{rows}</ul>"
