"""Columns as a steward declares them, in any of the forms that Python, files and users have.

    (40, 220)                                    numbers
    (date(2020, 1, 1), date(2024, 12, 31))       dates
    ["F", "M"]                                   a category, as is pandas.CategoricalDtype([...])
    bool                                         true or false
    pt.Category(["F", "M"], fixed=True)          any kind, with all that it can be told
    {"kind": "category", "values": ["F", "M"]}   the same as files have it

Domains are public knowledge. They are never read from data, whose extremes and rare values would
be somebody's.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any

import numpy as np

from privtraj.base.errors import Arg, InputError, either, is_number, is_whole, listed
from privtraj.columns.kinds import (
    KINDS,
    Boolean,
    Category,
    Column,
    Date,
    Number,
    Ordered,
    kind_of,
)

_DATES = (dt.date, np.datetime64)  # a datetime is a date


def declared_columns(
    bounds: Any, features: Sequence[str] | None, n_features: int | None = None, columns: Any = None
) -> tuple[Column, ...]:
    """The columns that the user declares, with a flag at the end for each number that may lack.

    bounds: {name: (low, high)}, or d pairs and d names, of numbers.
    columns: {name: form}, of any kind; names may not be in both.
    n_features: d where it is known from points (n, d); names then default to x1, x2, ...
    """
    declared = bounds
    if columns is not None:
        if not isinstance(columns, Mapping):
            raise InputError("columns must be {name: kind of column}, such as {'sex': ['F', 'M']}")
        if not isinstance(bounds, Mapping | None):
            raise InputError("bounds beside columns must have names too: {'height': (40, 220)}")
        both = [name for name in bounds or () if name in columns]
        if both:
            pair = Arg("bounds", option="feature"), " and ", Arg("columns", option="column")
            raise InputError(*pair, f" both declare {listed(both)}: keep one of them")
        declared = {**(bounds or {}), **columns}
    if declared is None or isinstance(declared, str):
        raise InputError(
            "bounds must be given as public limits such as {'height': (40, 220)}, and columns "
            "of other kinds as in columns={'sex': ['F', 'M']}: what is taken from the data would "
            "reveal its most extreme and rarest people"
        )
    if features is None and isinstance(declared, Mapping):
        features = list(declared)
    if features is None and n_features is None:
        raise InputError("features must be named when bounds are a list of pairs without names")
    if features is None:
        features = [f"x{k + 1}" for k in range(n_features or 0)]
    names = (features,) if isinstance(features, str) else tuple(str(name) for name in features)
    if not names:
        raise InputError("there are no features: name at least one column of numbers")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"features name {listed(repeated)} more than once: name each once")
    if isinstance(declared, Mapping):
        unknown = [name for name in names if name not in declared]
        if unknown:
            raise InputError(f"bounds are missing for {listed(unknown)}: add their public limits")
        unused = [name for name in declared if name not in names]
        if unused:
            raise InputError(
                f"bounds are given for {listed(unused)}, not among the features: remove them, "
                "or add them to features"
            )
        declared = [declared[name] for name in names]
    try:
        domains = list(declared)
    except TypeError:
        raise InputError("bounds must be one pair (low, high) per feature") from None
    if len(domains) != len(names) or n_features not in (None, len(names)):
        raise InputError(
            f"there are {len(names) if n_features is None else n_features} features but bounds "
            f"for {len(domains)} and names for {len(names)}: give one (low, high) and one name each"
        )
    made = tuple(
        declared_column(name, form)
        if name in (columns or {})
        else Number(*_pair(name, form, float), name)
        for name, form in zip(names, domains, strict=True)
    )
    behind = tuple(more for column in made for more in column.more)
    taken = [one for one in behind if one.name in names]
    if taken:
        raise InputError(
            f"'{taken[0].name}' is how a model calls what belongs to '{taken[0].of}': rename it"
        )
    return made + behind


def declared_column(name: str, form: Any) -> Column:
    """The column that a form says."""
    if isinstance(form, Number | Category):
        return replace(form, name=name)
    if isinstance(form, Mapping):
        return _of_words(name, form)
    if form is bool or (isinstance(form, str) and form == Boolean.kind):
        return Boolean(name=name)
    if hasattr(form, "categories"):  # a type of pandas or polars: not all of them list their values
        if not hasattr(form.categories, "to_list"):
            raise InputError(f"the type of '{name}' lists no values: declare them, they are public")
        made = Ordered if getattr(form, "ordered", False) else Category
        return made(tuple(form.categories.to_list()), name)
    values = [] if isinstance(form, str) or not np.iterable(form) else list(form)
    if len(values) == 2 and all(map(is_number, values)):
        return Number(float(values[0]), float(values[1]), name)
    if len(values) == 2 and all(isinstance(value, _DATES) for value in values):
        return Date(values[0], values[1], name)
    if len(values) >= 2 and all(isinstance(one, str | bool) or is_whole(one) for one in values):
        return Category(tuple(values), name)
    raise InputError(
        f"'{name}' must be declared as two numbers (low, high), as a list of the values of a "
        "category, or as a kind of column"
    )


def _of_words(name: str, words: Mapping[str, Any]) -> Column:
    """Of a mapping, as files have it."""
    words = dict(words)
    if "bounds" in words:
        words["low"], words["high"] = _pair(name, words.pop("bounds"))
    kind = words.pop("kind", "category" if "values" in words else "number")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"the kind of '{name}' must be {either(KINDS)}")
    made = kind_of(kind, words)
    settings = [one for one in fields(made) if one.init and one.name != "name"]
    unknown = words.keys() - {one.name for one in settings}
    if unknown:
        raise InputError(f"'{name}' has {listed(sorted(unknown))}, which no {kind} has: remove it")
    needed = [one.name for one in settings if one.default is MISSING]
    if not words.keys() >= set(needed):
        raise InputError(f"'{name}' needs {listed(sorted(needed))}, which are public")
    return made(**words, name=name)


def _pair(name: str, pair: Any, kind: Callable[[Any], Any] = lambda end: end) -> tuple[Any, Any]:
    try:
        low, high = map(kind, pair)
    except (TypeError, ValueError):
        raise InputError(f"the bounds of '{name}' must be two numbers (low, high)") from None
    return low, high
