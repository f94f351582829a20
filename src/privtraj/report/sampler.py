"""What a page draws new people from, as plain JSON values, and what it says of that.

The page's scripts (`assets/people.js`) do with it what `TrajectoryModel.sample` does, so it has the
model's curves (`transport.carried`) and the public columns; names and types of the table are those
that `privtraj sample` writes. Everything is released already, so it costs no privacy.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.base.formats import PEOPLE_DRAWN
from privtraj.columns.kinds import Category, Column, Date, Flag, Integer, Number, text_of
from privtraj.model.sampler import FEWEST_PARTICLES, FEWEST_TRIED, LEAST_SHARE
from privtraj.report.page_data import packed
from privtraj.report.ticks import time_labels

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

NUMBERS = 200_000
"""Of all curves in a page, two bytes each: 0.5 MB of text."""
CURVES = 4096
"""At most. A model has 512 of its own, or as many as particles; shares of so many people who are
drawn instead are off by 0.8 % at most, one standard deviation."""
STOPS = 65
"""Of processes that are drawn beforehand: gaps of 1.6 % of the range."""
CELLS = 10_000_000
"""Of a table that a page makes: 80 MB of numbers, and twice that of text."""


def page_sampler(model: TrajectoryModel, seed: int) -> dict[str, Any]:
    """What `assets/people.js` reads."""
    grown = model.growth is not None and model.growth.by_place is not None
    if grown and model.reference.forgets:  # which `sample` refuses: the page has everybody
        model = model.with_growth(None)
    carried = model.carried(NUMBERS, CURVES, STOPS, seed)
    lives = None
    if carried.lives is not None:
        begin, end = carried.lives.T  # in order, so that those who are drawn are evenly spread
        order = np.arange(len(begin)) if carried.own_lives else np.lexsort((end, begin))
        lives = {"ends": packed(carried.lives[order]), "own": carried.own_lives}
    names, types = _table(model)
    return {
        "curves": len(carried.places),
        "places": packed(carried.places.transpose(2, 0, 1)),  # (d, N, S)
        "stops": carried.stops.tolist(),
        "width": carried.width.tolist(),
        "steady": carried.steady,
        "spline": carried.spline,
        "diffusivity": carried.diffusivity,
        "whole": carried.whole,
        "inside": model.domain is not None,
        "lives": lives,
        "columns": [_column(model, k) for k in range(len(model.columns))],
        "range": model.knots[[0, -1]].tolist(),
        "times": model.numeric_times.tolist(),
        "datetime": model.datetime,
        "names": names,
        "types": types,
        "cells": CELLS,
        "fewest": {"curves": FEWEST_PARTICLES, "tried": FEWEST_TRIED, "share": LEAST_SHARE},
    }


def sampler_words(model: TrajectoryModel, drawn: dict[str, Any]) -> dict[str, Any]:
    """What the section says.  drawn: of `page_sampler`."""
    first, last = time_labels(model.knots[[0, -1]], model.datetime)
    return {
        "people": PEOPLE_DRAWN,
        "first": first,
        "last": last,
        "fitted": len(drawn["times"]),
        "example": ", ".join(time_labels(model.numeric_times, model.datetime)[:2]),
        "near": _nearness(drawn),
    }


def _nearness(drawn: dict[str, Any]) -> str:
    """How near the page is to `privtraj sample`."""
    count = f"{drawn['curves']:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    if drawn["whole"]:
        said = (
            f"The page holds all {count} curves that people of the model go along, so it draws "
            "from the same distribution as privtraj sample."
        )
    elif not drawn["inside"]:
        said = (
            f"The page holds {count} curves of people drawn from the model: each new person goes "
            "along one of them, with an offset of their own. privtraj sample has no such limit."
        )
    else:
        said = (
            f"The page holds {count} people drawn from the model, who stay in its domain: when you "
            "ask for more, the same come again. privtraj sample has no such limit."
        )
    if drawn["lives"]:
        said += " People come and go: who is not there at a time has no row."
    return said


def _table(model: TrajectoryModel) -> tuple[list[str], list[str]]:
    """Names and types of all columns of the long table."""
    schema = model.sample(1, seed=0).to_arrow().schema
    types = [getattr(kind, "value_type", kind) for kind in schema.types]
    return schema.names, [str(kind) for kind in types]


def _column(model: TrajectoryModel, k: int) -> dict[str, Any]:
    """One coordinate of the unit cube: what it means, and what it does along a path."""
    column, (low, high) = model.columns[k], model.bounds[k].tolist()
    said = {
        "name": "" if column.of else column.name,
        "kind": column.kind,
        "low": low,
        "high": high,
        "fixed": column.fixed,
        "missing": column.missing,
        "way": float(model.constraints.directions((column.name,))[0]),
    }
    if isinstance(column, Category):
        labels = [None if label is None else text_of(label) for label in column.labels]
        return said | {"labels": labels, "ladder": len(column.values) * column.ordered}
    return said | {"flag": _flag(model.columns, column), **_steps(model, column)}


def _steps(model: TrajectoryModel, column: Number) -> dict[str, Any]:
    """In which steps a number is written, and from where to where."""
    usual = 1.0 if isinstance(column, Integer) else column.step
    step = float(model.constraints.precision.get(column.name, usual))
    exponent = int(Decimal(repr(step)).as_tuple().exponent)
    return {
        "step": step,
        "decimals": max(0, -exponent),
        "ends": [column.low, column.high],
        "days": isinstance(column, Date) and column.days,
    }


def _flag(columns: tuple[Column, ...], number: Number) -> int | None:
    """The axis that says where a number is missing, if it may be."""
    flags = (k for k, one in enumerate(columns) if isinstance(one, Flag) and one.of == number.name)
    return next(flags, None)
