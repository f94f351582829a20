"""What the scripts of a page show and draw from, as plain JSON values.

Everything is sampled from the released model with a fixed seed, so that a page is the same every
time and costs no privacy. Numbers are whole shares of the public box, two bytes each, in base64.
"""

from __future__ import annotations

import base64
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtraj.assess.ask import Answers
from privtraj.assess.questions import Asked, Key
from privtraj.base.arrays import Floats, Ints
from privtraj.base.space import as_user_times, to_unit
from privtraj.columns.kinds import (
    Angle,
    Category,
    Column,
    Date,
    Integer,
    LogNumber,
    Number,
    of_tables,
    text_of,
)
from privtraj.columns.precision import degrees
from privtraj.model.sampler import FEWEST_PARTICLES, FEWEST_TRIED, LEAST_SHARE
from privtraj.report.labels import Drawn, cut, percent, shares_of, time_labels

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel


QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
DENSITY_BINS = 80
PERIODS = 6
"""Of answers: columns of a table."""
MOST_VALUES, MOST_ASKED = 30, 12
"""Of a category, that a table of answers has each for itself; and of numbers that it has."""
STATISTICS = (("mean", "mean", 0.5), ("median", "quantile", 0.5), ("p90", "quantile", 0.9))
SEED = 0
NUMBERS = 200_000
"""Of all curves from which a page draws people, two bytes each: 0.5 MB of text."""
CURVES = 4096
"""At most. A model has 512 of its own, or as many as particles; shares of so many people who are
drawn instead are off by 0.8 % at most, one standard deviation."""
STOPS = 65
"""Of processes that are drawn beforehand: gaps of 1.6 % of the range."""
CELLS = 10_000_000
"""Of a table that a page makes: 80 MB of numbers, and twice that of text."""

_NUMBERS = 400_000  # of all people who are drawn: about 1 MB

_MAPS = (
    (r"lon|lng|long|longitude", r"lat|latitude"),
    (r"x|pos_?x|x_?pos|x_?coord", r"y|pos_?y|y_?pos|y_?coord"),
    (r"e|east|easting", r"n|north|northing"),
)
_UNITS = r"(?:[ _(\[]*(?:m|km|deg|degrees|°|metres|meters|px|mm|cm|um)[)\]]*)?"


# People who are shown --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sampled:
    """Synthetic people at the frames of a page.

    times: (Q,).  people: (n, Q, k), shares of the box of the k numbers, to be drawn; what somebody
    lacks at times is filled in.  bands: (k, 5, Q) quantiles of many more people who have it.
    ranges: (k, 2) what an axis shows.  density: (k, Q, DENSITY_BINS) over it.
    columns: of a table, all of them.  values: (N, Q, k) of the many people, NaN where missing.
    levels: {category: (N, Q)} of them.  chosen: (n,) which of them are drawn.
    """

    times: Floats
    people: Floats
    bands: Floats
    ranges: Floats
    density: Floats
    columns: tuple[Column, ...]
    values: Floats
    levels: dict[str, Ints]
    chosen: Ints

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The k columns of numbers."""
        return tuple(column for column in self.columns if isinstance(column, Number))

    @property
    def bounds(self) -> Floats:
        """(k, 2) of the numbers."""
        return np.array([column.span for column in self.numbers]).reshape(-1, 2)

    @property
    def globe(self) -> tuple[int, int] | None:
        """Which numbers are longitude and latitude, if any."""
        return degrees(tuple(column.name for column in self.numbers), self.bounds)


def frame_times(knots: Floats, features: int) -> Floats:
    """(Q,) times between and at the fitted ones; fewer of them where there are many features."""
    most = int(np.clip(_NUMBERS // (200 * features), 5, 61))  # so that 200 people fit
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
    many = int(np.clip(4_000_000 // size, 200, 4000))
    drawn = int(np.clip(_NUMBERS // size, 10, 800))
    paths = model.sample(many, as_user_times(times, model.datetime), seed=seed)
    numbers = [isinstance(column, Number) for column in paths.columns]
    spans = [column.span for column in paths.columns if isinstance(column, Number)]
    values = to_unit(paths.values[..., numbers], np.reshape(spans, (-1, 2)))
    ranges = axis_ranges(values)
    chosen = np.random.default_rng(seed).permutation(many)
    never = np.any(np.all(np.isnan(values[chosen]), axis=1), axis=1)  # have some number
    chosen = chosen[np.argsort(never, kind="stable")][:drawn]  # they come last
    levels = {
        column.name: paths.values[..., k].astype(int)
        for k, column in enumerate(paths.columns)
        if isinstance(column, Category)
    }
    middle = np.nan_to_num(bands(values), nan=0.5)
    density = densities(values, ranges)
    # Gaps are filled between what somebody has before and after them, and by everybody's median
    # where they never have it.
    people = values[chosen]
    people = np.where(np.isnan(people).all(axis=1, keepdims=True), middle[:, 2].T, people)
    if np.isnan(people).any():
        import pandas as pd

        frames = pd.DataFrame(people.swapaxes(0, 1).reshape(len(times), -1))
        filled = frames.interpolate(limit_direction="both").to_numpy()
        people = filled.reshape(len(times), *people[:, 0].shape).swapaxes(0, 1)
    return Sampled(times, people, middle, ranges, density, paths.columns, values, levels, chosen)


def bands(values: NDArray[np.floating[Any]], shares: Sequence[float] = QUANTILES) -> Floats:
    """(d, S, Q) quantiles of those people (n, Q, d) who are there, NaN where nobody is."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
        of_known = np.nanquantile if np.isnan(values).any() else np.quantile
        return of_known(values, shares, axis=0).transpose(2, 0, 1)


def axis_ranges(values: Floats) -> Floats:
    """(d, 2) what almost all of the people (n, Q, d) are in, at each time, and a little more."""
    edges = bands(values, (0.004, 0.996))  # (d, 2, Q)
    low = np.nan_to_num(np.fmin.reduce(edges[:, 0], axis=1), nan=0.0)
    high = np.nan_to_num(np.fmax.reduce(edges[:, 1], axis=1), nan=1.0)
    room = 0.04 * np.maximum(high - low, 1e-6)
    return np.clip(np.stack([low - room, high + room], axis=1), 0, 1)


def densities(values: Floats, ranges: Floats) -> Floats:
    """(d, Q, DENSITY_BINS) smoothed histograms of people (n, Q, d), each with highest bar 1; who is
    beyond the axis is left out, not heaped at its end."""
    _, q, d = values.shape
    low, high = ranges.T
    place = (values - low) / np.maximum(high - low, 1e-12) * DENSITY_BINS
    there = (place >= 0) & (place <= DENSITY_BINS)
    bins = np.clip(np.where(there, place, 0).astype(np.int64), 0, DENSITY_BINS - 1)
    rows = np.arange(q)[None, :, None] + q * np.arange(d)
    flat = np.bincount((rows * DENSITY_BINS + bins)[there], minlength=d * q * DENSITY_BINS)
    heaps = flat.reshape(d, q, DENSITY_BINS).astype(np.float64)
    far = np.arange(-9, 10)
    kernel = np.exp(-0.5 * (far / 2.2) ** 2)  # in bins: a 36th of the axis
    beyond = np.pad(heaps, [(0, 0), (0, 0), (9, 9)], mode="edge")
    smooth = np.lib.stride_tricks.sliding_window_view(beyond, 19, axis=2) @ (kernel / kernel.sum())
    return smooth / np.maximum(smooth.max(axis=2, keepdims=True), 1e-12)


def packed(shares: Floats, kind: str = "<u2") -> str:
    """Numbers in [0, 1] as whole ones in base64: little-endian in two bytes, or "u1" in one."""
    whole = np.rint(np.clip(shares, 0, 1) * np.iinfo(kind).max).astype(kind)
    return base64.b64encode(whole.tobytes()).decode()


# Numbers and categories over time --------------------------------------------------------------


def page_data(model: TrajectoryModel, shown: Sampled, asked: Answers) -> dict[str, Any]:
    """What `assets/page.js` reads."""
    names, drawn = tuple(column.name for column in shown.numbers), categories(model, shown)
    made = answers(model, shown, drawn, asked)
    told, everybody = made["answers"], made["answers"]["by"][0]["rows"]
    doubt: list[Any] = [None] * len(names)  # half widths of the 90 % bands of medians, of the box
    for (word, k), rows in zip(told["what"], everybody, strict=True):
        if word.startswith("median ") and all(low is not None for [[_, low, _]] in rows):
            widths = [(high - low) / 2 for [[_, low, high]] in rows]
            widths = np.interp(shown.times, told["at"], widths) / np.ptp(shown.bounds[k])
            if widths.mean() < np.mean(shown.bands[k, 4] - shown.bands[k, 0]) / 2:  # says something
                doubt[k] = widths.round(5).tolist()
    return {
        "features": names,
        "dates": [isinstance(column, Date) for column in shown.numbers],
        "angles": [isinstance(column, Angle) for column in shown.numbers],
        "timeName": model.time_name,
        "datetime": model.datetime,
        "bounds": shown.bounds.tolist(),
        "ranges": shown.ranges.round(6).tolist(),
        "times": shown.times.tolist(),
        "knots": model.numeric_times.tolist(),
        "people": len(shown.people),
        "paths": packed(shown.people.transpose(2, 1, 0)),  # (k, Q, n)
        "bands": packed(shown.bands),
        "doubt": doubt,
        "density": packed(shown.density, "u1"),
        "densityBins": DENSITY_BINS,
        "lacking": lacking(shown),
        "maps": maps(names, shown.bounds),
        "categories": drawn,
        **made,
    }


def maps(features: tuple[str, ...], bounds: Floats) -> list[tuple[int, int, float]]:
    """Pairs (across, up) that are places on a map, and the length of a unit across in units up.

    By their names alone: lon and lat, x and y, east and north. A degree of longitude is
    cos(latitude) degrees of latitude long.
    """
    pairs = []
    globe = degrees(features, bounds)
    for both in _MAPS:
        patterns = [re.compile(rf"(?:{names}){_UNITS}", re.IGNORECASE) for names in both]
        named = [[k for k, name in enumerate(features) if pattern.fullmatch(name.strip())]
                 for pattern in patterns]  # fmt: skip
        if all(named):
            i, j = named[0][0], named[1][0]
            scale = float(np.cos(np.radians(bounds[j].mean()))) if (i, j) == globe else 1.0
            pairs.append((i, j, max(scale, 0.05)))
    return pairs


def lacking(shown: Sampled) -> list[str]:
    """Of each number which share of people lacks it, in words; nothing where nobody does."""
    absent = np.isnan(shown.values).mean(axis=0)  # (Q, k)
    ends = zip(absent.min(axis=0), absent.max(axis=0), strict=True)
    texts = [" to ".join(dict.fromkeys(map(percent, pair))) for pair in ends]
    return [
        f"missing in {text}" * column.missing
        for text, column in zip(texts, shown.numbers, strict=True)
    ]


def categories(model: TrajectoryModel, shown: Sampled) -> list[dict[str, Any]]:
    """Of each category: its levels as they are drawn, L of them, and who has which.

    shares: (Q, L).  people: (Q, n) of those who are drawn, or (1, n) of what never changes.
    flows: (2, L, L) between the first, the middle and the last time.
    moves: (L, L) from the first to the last.  changes: of a person, on average.
    """
    three = sorted({0, len(shown.times) // 2, len(shown.times) - 1})  # first, middle, last
    times = {"at": three, "labels": time_labels(shown.times[three], model.datetime)}
    made = []
    for column in shown.columns:
        if not isinstance(column, Category):
            continue
        levels = shown.levels[column.name]
        drawn = Drawn.of(column, shares_of(levels, column.levels).mean(axis=0))
        own = drawn.group[levels[shown.chosen]][:, : 1 if column.fixed else None]
        one = {
            "name": column.name,
            "fixed": column.fixed,
            "labels": drawn.labels,
            "shades": drawn.shades,
            "group": drawn.group.tolist(),
            "shares": drawn.shares(levels).round(5).tolist(),
            "people": packed(own.T / 255, "u1"),
            "times": times,
        }
        if not column.fixed:
            mass = model.transitions(column.name).mass
            one |= {
                "flows": drawn.flows(levels[:, three]).round(5).tolist(),
                "moves": drawn.flows(levels[:, [0, -1]])[0].round(5).tolist(),
                "changes": float(mass.sum() - np.trace(mass, axis1=1, axis2=2).sum()),
            }
        made.append(one)
    return made


def answers(
    model: TrajectoryModel, shown: Sampled, categories: Sequence[dict[str, Any]], asked: Answers
) -> dict[str, Any]:
    """What `assess.ask` answers of numbers and of people by period, for everybody and by category.

    what: pairs of words and the place of a number, None for people.
    period: in words; its texts and middles (P,).
    by: of everybody, then of each category, name, labels and shades (L,), and rows
    [what][period][group] of value, low and high, None where it is lost.
    told: which `by` and `what` to show first: the mean that differs most between groups.
    """
    known = of_tables(model.columns)
    years = asked.columns.key("year")[0].labels if model.datetime else ()
    listed = len(model.times) if model.diagnostics.get("listed_times") else PERIODS
    period = "year" if 3 < len(years) < 9 else f"{min(PERIODS, listed)} periods"
    when, edges = asked.columns.key(period)
    what: dict[tuple[str, int | None], Asked] = {}
    for place, k in enumerate(k for k, one in enumerate(known) if isinstance(one, Number)):
        if not isinstance(known[k], Angle | Date) and place < MOST_ASKED:
            for word, verb, level in STATISTICS:
                what[f"{word} {known[k].name}", place] = Asked(verb, (k,), level, edges=edges)
    for verb in ("share", "count"):
        what[verb, None] = Asked(verb, edges=edges)
    spread = np.nanstd(shown.values, axis=(0, 1)) * np.ptp(shown.bounds, axis=1)
    made: list[dict[str, Any]] = []
    best = (0.0, 0, 0)
    for one in [{"name": "", "labels": ["everybody"], "shades": ["1"]}, *categories]:
        keys: tuple[Key, ...] = (when,)
        shades = one["shades"]
        if "group" in one:
            key, group = asked.columns.category(one["name"]), np.array(one["group"])
            if len(group) > MOST_VALUES:  # rare values are merged, as in all pictures
                levels = [tuple(np.flatnonzero(group == k).tolist()) for k in range(len(shades))]
                of = partial(lambda whole, group, values: group[whole(values)], key.of, group)
                key = replace(key, labels=tuple(one["labels"]), of=of, levels=tuple(levels))
            else:
                shades = [shades[k] for k in group]
            keys = when, key
        rows: list[Any] = []
        for question in what.values():
            if len(keys) == 1 and question.verb == "share":  # of everybody
                rows.append(None)
                continue
            found = asked.ask(replace(question, keys=keys)).rows
            cells = [[row["value"], row["low"], row["high"]] for row in found]
            rows.append([cells[i : i + len(shades)] for i in range(0, len(cells), len(shades))])
            if question.verb == "mean":
                mean = np.nan_to_num(np.array([row["value"] for row in found], float))
                people = np.array([(row["people"] + 1e-3) * (not row["lost"]) for row in found])
                share = people / max(people.sum(), 1e-9)
                apart = share @ (mean - share @ mean) ** 2
                wide = spread[list(what)[len(rows) - 1][1]]
                best = max(best, (float(apart) / max(wide, 1e-12) ** 2, len(made), len(rows) - 1))
        labels = list(map(cut, keys[1].labels)) if len(keys) > 1 else one["labels"]
        made.append({"name": one["name"], "labels": labels, "shades": shades, "rows": rows})
    days = {end.split("T")[0] for label in when.labels for end in label.split("..")}
    texts = [label.replace("..", " to ") for label in when.labels]
    if len(days) == 1:  # moments of one day
        texts = [text.replace(f"{min(days)}T", "") for text in texts]
    texts = [text.replace("-", "\N{NON-BREAKING HYPHEN}") for text in texts]
    middles = (edges[1:] + edges[:-1]) / 2
    told = {"what": list(what), "period": period, "texts": texts, "at": middles.tolist()}
    return {"answers": told | {"by": made}, "told": best[1:]}


# New people ------------------------------------------------------------------------------------


def page_sampler(model: TrajectoryModel, seed: int) -> dict[str, Any]:
    """What `assets/people.js` draws new people from: the model's curves (`TrajectoryModel.carried`)
    and the public columns, with the names and types of the table that `privtraj sample` writes."""
    grown = model.growth is not None and model.growth.by_place is not None
    if grown and model.reference.forgets:  # which `sample` refuses: the page has everybody
        model = model.with_growth(None)
    carried = model.carried(NUMBERS, CURVES, STOPS, seed)
    lives = None
    if carried.lives is not None:
        begin, end = carried.lives.T  # in order, so that those who are drawn are evenly spread
        order = np.arange(len(begin)) if carried.own_lives else np.lexsort((end, begin))
        lives = {"ends": packed(carried.lives[order]), "own": carried.own_lives}
    schema = replace(model.sample(1, seed=0), constant={}, zone={}).to_arrow().schema
    return {
        "curves": len(carried.places),
        "places": packed(carried.places.transpose(2, 0, 1)),  # (d, N, S)
        "stops": carried.stops.tolist(),
        "width": carried.width.tolist(),
        **{name: getattr(carried, name) for name in ("steady", "spline", "diffusivity", "whole")},
        "inside": model.domain is not None,
        "lives": lives,
        "columns": [_column(model, k) for k in range(len(model.columns))],
        "range": model.knots[[0, -1]].tolist(),
        "times": model.numeric_times.tolist(),
        "datetime": model.datetime,
        "names": schema.names,
        "types": [str(getattr(kind, "value_type", kind)) for kind in schema.types],
        "cells": CELLS,
        "fewest": {"curves": FEWEST_PARTICLES, "tried": FEWEST_TRIED, "share": LEAST_SHARE},
    }


def _column(model: TrajectoryModel, k: int) -> dict[str, Any]:
    """One coordinate of the unit cube: what it means, and what it does along a path."""
    column, (low, high) = model.columns[k], model.bounds[k].tolist()
    common = {name: getattr(column, name) for name in ("of", "kind", "fixed", "missing")}
    common |= {"name": "" if column.of else column.name, "low": low, "high": high}
    common["way"] = float(model.constraints.directions((column.name,))[0])
    if isinstance(column, Category):
        labels = [None if label is None else text_of(label) for label in column.labels]
        return common | {"labels": labels, "ladder": len(column.values) * column.ordered}
    made = {one.kind: j for j, one in enumerate(model.columns) if one.of == column.name}
    usual = 1.0 if isinstance(column, Integer) else column.step
    step = float(model.constraints.precision.get(column.name, usual))
    return common | {
        "flag": made.get("flag"),  # the axis that says where it is missing
        "sine": made.get("sine"),  # that of an angle, which itself is its cosine
        "offset": column.offset if isinstance(column, LogNumber) else None,  # of a logarithm
        "step": step,
        "decimals": max(0, -int(Decimal(repr(step)).as_tuple().exponent)),
        "ends": [float(column.low), float(column.high)],
        "days": isinstance(column, Date) and column.days,
    }
