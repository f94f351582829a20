"""What a page shows of a model, as plain JSON values: sampled people, bands, densities.

Everything is drawn from the released model, with a fixed seed, so that a page is the same every
time. Numbers are whole shares of the public box, two bytes each, in base64.
"""

from __future__ import annotations

import base64
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints
from privtraj.base.space import as_user_times, to_unit
from privtraj.columns.axes import Axes
from privtraj.columns.kinds import Category, Column, Date, Number
from privtraj.columns.precision import degrees
from privtraj.report.ticks import Tick, time_labels, time_ticks

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel


QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
DENSITY_BINS = 80
SEED = 0

_PEOPLE = 800  # who are drawn
_FEWEST = 10
_MANY = 4000  # of whom bands and densities are made
_NUMBERS = 400_000  # of all people who are drawn: about 1 MB
_MANY_NUMBERS = 4_000_000
_FRAMES = 61
_FEWEST_FRAMES = 5
_EDGES = (0.004, 0.996)  # quantiles at each time that an axis reaches
_SMOOTHING = 2.2  # bins of a density, standard deviation: a 36th of the axis

_MAPS = (
    (r"lon|lng|long|longitude", r"lat|latitude"),
    (r"x|pos_?x|x_?pos|x_?coord", r"y|pos_?y|y_?pos|y_?coord"),
    (r"e|east|easting", r"n|north|northing"),
)
_UNITS = r"(?:[ _(\[]*(?:m|km|deg|degrees|°|metres|meters|px|mm|cm|um)[)\]]*)?"


@dataclass(frozen=True, eq=False)
class Sampled:
    """Synthetic people at the frames of a page.

    times: (Q,).  people: (n, Q, k), shares of the box of the k numbers, to be drawn; what somebody
    lacks at times is filled in.  bands: (k, 5, Q) quantiles of many more people who have it.
    ranges: (k, 2) what an axis shows.  density: (k, Q, DENSITY_BINS) over it.
    columns: of a table, all of them.  levels: {category: (N, Q)} of the many people.
    missing: {number: (Q,)} share of people who lack it, where somebody may.
    """

    times: Floats
    people: Floats
    bands: Floats
    ranges: Floats
    density: Floats
    columns: tuple[Column, ...]
    levels: dict[str, Ints]
    missing: dict[str, Floats]

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The k columns of numbers."""
        return tuple(column for column in self.columns if isinstance(column, Number))

    @property
    def bounds(self) -> Floats:
        """(k, 2) of the numbers."""
        return np.array([column.domain for column in self.numbers]).reshape(-1, 2)


def frame_times(knots: Floats, features: int) -> Floats:
    """(Q,) times between and at the fitted ones; fewer of them where there are many features."""
    few = _NUMBERS // (200 * features)  # so that 200 people fit
    most = int(np.clip(few, _FEWEST_FRAMES, _FRAMES))
    if len(knots) > most:
        return np.linspace(knots[0], knots[-1], most)
    parts = max(1, (most - 1) // (len(knots) - 1))
    place = np.arange((len(knots) - 1) * parts + 1) / parts
    return np.interp(place, np.arange(len(knots)), knots)


def sampled(model: TrajectoryModel, seed: int = SEED) -> Sampled:
    """Many people of the model for the bands, the first of whom are drawn.

    Everybody is there all the time: who comes and goes does not change the marginals.
    """
    model = model if model.growth is None else model.with_growth(None)
    times = frame_times(model.numeric_times, len(model.features))
    size = len(times) * len(model.features)
    many = int(np.clip(_MANY_NUMBERS // size, 200, _MANY))
    drawn = int(np.clip(_NUMBERS // size, _FEWEST, _PEOPLE))
    at = as_user_times(times, model.datetime)
    paths = model.sample(many, at, seed=seed)
    numbers = [isinstance(column, Number) for column in paths.columns]
    values = to_unit(paths.values[..., numbers], model.bounds[Axes.of(model.columns).numbers])
    ranges = axis_ranges(values)
    chosen = np.random.default_rng(seed).permutation(many)
    never = np.any(np.all(np.isnan(values[chosen]), axis=1), axis=1)  # have some number
    chosen = chosen[np.argsort(never, kind="stable")][:drawn]  # they come last
    each = list(enumerate(paths.columns))
    return Sampled(
        times,
        _filled(values[chosen]),
        np.nan_to_num(bands(values), nan=0.5),
        ranges,
        densities(values, ranges),
        paths.columns,
        {c.name: paths.values[..., k].astype(int) for k, c in each if isinstance(c, Category)},
        {
            c.name: np.isnan(paths.values[..., k]).mean(axis=0)
            for k, c in each
            if isinstance(c, Number) and c.missing
        },
    )


def _filled(values: Floats) -> Floats:
    """People (n, Q, k) without gaps: between what somebody has before and after it, as everybody's
    median where they never have it."""
    if not np.isnan(values).any():
        return values
    middle = np.nan_to_num(bands(values)[:, 2].T, nan=0.5)  # (Q, k)
    full = np.where(np.isnan(values).all(axis=1, keepdims=True), middle, values)
    frames = np.arange(values.shape[1])
    for person, _, k in np.argwhere(np.isnan(full).any(axis=1, keepdims=True)):
        mine = full[person, :, k]
        known = ~np.isnan(mine)
        full[person, :, k] = np.interp(frames, frames[known], mine[known])
    return full


def bands(values: NDArray[np.floating[Any]]) -> Floats:
    """(d, 5, Q) quantiles of people (n, Q, d), NaN where they are not there."""
    return quantiles(values, QUANTILES).transpose(2, 0, 1)


def quantiles(values: NDArray[np.floating[Any]], shares: tuple[float, ...]) -> Floats:
    """(len(shares), Q, d) of those people (n, Q, d) who are there, NaN where nobody is."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
        found = np.nanquantile if np.isnan(values).any() else np.quantile
        return found(values, shares, axis=0)


def axis_ranges(values: Floats) -> Floats:
    """(d, 2) what almost all of the people (n, Q, d) are in, at each time, and a little more."""
    edges = quantiles(values, _EDGES)  # (2, Q, d)
    known = np.isfinite(edges)
    low = np.min(edges[0], axis=0, where=known[0], initial=1.0)
    high = np.max(edges[1], axis=0, where=known[1], initial=0.0)
    low, high = np.where(known[0].any(axis=0), (low, high), [[0.0], [1.0]])
    room = 0.04 * np.maximum(high - low, 1e-6)
    return np.clip(np.stack([low - room, high + room], axis=1), 0, 1)


def densities(values: Floats, ranges: Floats) -> Floats:
    """(d, Q, DENSITY_BINS) smoothed histograms of people (n, Q, d), each with highest bar 1; who is
    beyond the axis is left out, not heaped at its end."""
    from scipy.ndimage import gaussian_filter1d

    _, q, d = values.shape
    low, high = ranges.T
    place = (values - low) / np.maximum(high - low, 1e-12) * DENSITY_BINS
    there = (place >= 0) & (place <= DENSITY_BINS)
    bins = np.clip(np.where(there, place, 0).astype(np.int64), 0, DENSITY_BINS - 1)
    rows = np.arange(q)[None, :, None] + q * np.arange(d)
    flat = np.bincount((rows * DENSITY_BINS + bins)[there], minlength=d * q * DENSITY_BINS)
    heaps = flat.reshape(d, q, DENSITY_BINS).astype(np.float64)
    smooth = gaussian_filter1d(heaps, _SMOOTHING, mode="nearest")
    return smooth / np.maximum(smooth.max(axis=2, keepdims=True), 1e-12)


def page_data(model: TrajectoryModel, shown: Sampled) -> dict[str, Any]:
    """What the scripts of a page read."""
    first, last = model.numeric_times[[0, -1]].tolist()
    return {
        "features": [column.name for column in shown.numbers],
        "dates": _date_ticks(shown),
        "timeName": model.time_name,
        "datetime": model.datetime,
        "bounds": shown.bounds.tolist(),
        "ranges": shown.ranges.round(6).tolist(),
        "times": shown.times.tolist(),
        "knots": model.numeric_times.tolist(),
        "knotLabels": time_labels(model.numeric_times, model.datetime),
        "timeTicks": time_ticks(first, last, model.datetime),
        "people": len(shown.people),
        "paths": packed(shown.people.transpose(2, 1, 0)),  # (d, Q, n)
        "bands": packed(shown.bands),
        "density": packed(shown.density, "u1"),
        "densityBins": DENSITY_BINS,
        "maps": maps(tuple(column.name for column in shown.numbers), shown.bounds),
    }


def _date_ticks(shown: Sampled) -> dict[int, list[Tick]]:
    """Of each number that is a date, by its place: marks in shares of its bounds."""
    found = {}
    for k, (column, (low, high)) in enumerate(zip(shown.numbers, shown.bounds, strict=True)):
        if isinstance(column, Date):
            start, end = low + shown.ranges[k] * (high - low)
            marks = time_ticks(float(start), float(end), True)
            found[k] = [((at - low) / (high - low), label) for at, label in marks]
    return found


def packed(shares: Floats, kind: str = "<u2") -> str:
    """Numbers in [0, 1] as whole ones in base64: little-endian in two bytes, or "u1" in one."""
    whole = np.rint(np.clip(shares, 0, 1) * np.iinfo(kind).max).astype(kind)
    return base64.b64encode(whole.tobytes()).decode()


def maps(features: tuple[str, ...], bounds: Floats) -> list[tuple[int, int, float]]:
    """Pairs (across, up) that are places on a map, and the length of a unit across in units up.

    By their names alone: lon and lat, x and y, east and north. A degree of longitude is
    cos(latitude) degrees of latitude long.
    """
    pairs = []
    globe = degrees(features, bounds)
    for across, up in _MAPS:
        i, j = (_first_named(features, names) for names in (across, up))
        if i is None or j is None:
            continue
        scale = float(np.cos(np.radians(bounds[j].mean()))) if (i, j) == globe else 1.0
        pairs.append((i, j, max(scale, 0.05)))
    return pairs


def _first_named(features: tuple[str, ...], names: str) -> int | None:
    pattern = re.compile(rf"(?:{names}){_UNITS}", re.IGNORECASE)
    return next((k for k, name in enumerate(features) if pattern.fullmatch(name.strip())), None)
