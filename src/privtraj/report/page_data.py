"""What a page shows of a model, as plain JSON values: sampled people, bands, densities.

Everything is drawn from the released model, with a fixed seed, so that a page is the same every
time. Numbers are whole shares of the public box, two bytes each, in base64.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtraj.arrays import Floats
from privtraj.report.ticks import time_labels, time_ticks
from privtraj.space import as_user_times, to_unit

if TYPE_CHECKING:
    from privtraj.model import TrajectoryModel


QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
DENSITY_BINS = 40
SEED = 0

_PEOPLE = 800  # who are drawn
_FEWEST = 10
_MANY = 4000  # of whom bands and densities are made
_NUMBERS = 400_000  # of all people who are drawn: about 1 MB
_MANY_NUMBERS = 4_000_000
_FRAMES = 61
_FEWEST_FRAMES = 5
_EDGES = (0.002, 0.998)  # quantiles over all times that an axis reaches

_MAPS = (
    (r"lon|lng|long|longitude", r"lat|latitude"),
    (r"x|pos_?x|x_?pos|x_?coord", r"y|pos_?y|y_?pos|y_?coord"),
    (r"e|east|easting", r"n|north|northing"),
)
_UNITS = r"(?:[ _(\[]*(?:m|km|deg|degrees|metres|meters|px|mm|cm|um)[)\]]*)?"


@dataclass(frozen=True, eq=False)
class Sampled:
    """Synthetic people at the frames of a page.

    times: (Q,).  people: (n, Q, d), shares of the box, to be drawn.  bands: (d, 5, Q) quantiles of
    many more people.  ranges: (d, 2) what an axis shows.  density: (d, Q, DENSITY_BINS) over it.
    """

    times: Floats
    people: Floats
    bands: Floats
    ranges: Floats
    density: Floats


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
    numbers = len(times) * len(model.features)
    many = int(np.clip(_MANY_NUMBERS // numbers, 200, _MANY))
    drawn = int(np.clip(_NUMBERS // numbers, _FEWEST, _PEOPLE))
    at = as_user_times(times, model.datetime)
    values = to_unit(model.sample(many, at, seed=seed).values, model.bounds)
    ranges = axis_ranges(values)
    chosen = np.random.default_rng(seed).permutation(many)[:drawn]
    return Sampled(times, values[chosen], bands(values), ranges, densities(values, ranges))


def bands(values: NDArray[np.floating[Any]]) -> Floats:
    """(d, 5, Q) quantiles of people (n, Q, d), NaN where they are not there."""
    quantiles = np.nanquantile if np.isnan(values).any() else np.quantile
    return quantiles(values, QUANTILES, axis=0).transpose(2, 0, 1)


def axis_ranges(values: Floats) -> Floats:
    """(d, 2) what almost all of the people (n, Q, d) are in, at all times, and a little more."""
    low, high = np.quantile(values, _EDGES, axis=(0, 1))
    room = 0.04 * np.maximum(high - low, 1e-6)
    return np.clip(np.stack([low - room, high + room], axis=1), 0, 1)


def densities(values: Floats, ranges: Floats) -> Floats:
    """(d, Q, DENSITY_BINS) smoothed histograms of people (n, Q, d), each with highest bar 1."""
    from scipy.ndimage import gaussian_filter1d

    _, q, d = values.shape
    low, high = ranges.T
    place = (values - low) / np.maximum(high - low, 1e-12) * DENSITY_BINS
    bins = np.clip(place.astype(np.int64), 0, DENSITY_BINS - 1)
    rows = np.arange(q)[None, :, None] + q * np.arange(d)
    flat = np.bincount((rows * DENSITY_BINS + bins).ravel(), minlength=d * q * DENSITY_BINS)
    smooth = gaussian_filter1d(flat.reshape(d, q, -1).astype(np.float64), 1.0, mode="nearest")
    return smooth / smooth.max(axis=2, keepdims=True)


def page_data(model: TrajectoryModel, shown: Sampled) -> dict[str, Any]:
    """What the scripts of a page read."""
    first, last = model.numeric_times[[0, -1]].tolist()
    return {
        "features": list(model.features),
        "timeName": model.time_name,
        "datetime": model.datetime,
        "bounds": model.bounds.tolist(),
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
        "maps": maps(model.features, model.bounds),
    }


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
    for across, up in _MAPS:
        i, j = (_first_named(features, names) for names in (across, up))
        if i is None or j is None:
            continue
        degrees = across.startswith("lon") and np.abs(bounds[j]).max() <= 90
        scale = float(np.cos(np.radians(bounds[j].mean()))) if degrees else 1.0
        pairs.append((i, j, max(scale, 0.05)))
    return pairs


def _first_named(features: tuple[str, ...], names: str) -> int | None:
    pattern = re.compile(rf"(?:{names}){_UNITS}", re.IGNORECASE)
    return next((k for k, name in enumerate(features) if pattern.fullmatch(name.strip())), None)
