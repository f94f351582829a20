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
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from privtraj.base.errors import Arg, InputError, either, is_number, listed
from privtraj.columns.kinds import KINDS, Angle, Boolean, Category, Column, Date, Number, Ordered
from privtraj.columns.kinds import is_level as _is_level

_DATES = (dt.date, np.datetime64)  # a datetime is a date


def declared_columns(
    bounds: Any,
    features: Sequence[str] | None,
    n_features: int | None = None,
    columns: Any = None,
) -> tuple[Column, ...]:
    """The columns that the user declares, with a flag at the end for each number that may lack.

    bounds: {name: (low, high)}, or d pairs and d names, of numbers.
    columns: {name: form}, of any kind; names may not be in both.
    n_features: d where it is known from points (n, d); names then default to x1, x2, ...
    """
    declared = _forms(bounds, columns)
    if declared is None or isinstance(declared, str):
        raise InputError(
            "bounds must be given as public limits such as {'height': (40, 220)}, and columns "
            "of other kinds as in columns={'sex': ['F', 'M']}: what is taken from the data would "
            "reveal its most extreme and rarest people"
        )
    names = _names(declared, features, n_features)
    domains = _domains(declared, names)
    if len(domains) != len(names) or n_features not in (None, len(names)):
        raise InputError(
            f"there are {len(names) if n_features is None else n_features} features but bounds "
            f"for {len(domains)} and names for {len(names)}: give one (low, high) and one name each"
        )
    kinds = columns or {}
    made = tuple(
        declared_column(name, form) if name in kinds else _bounded(name, form)
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
    if hasattr(form, "categories"):
        return _of_type(name, form)
    return _of_values(name, form)


def _of_type(name: str, kind: Any) -> Column:
    """A type of pandas or polars, if it lists its values: not all of them do."""
    values = kind.categories
    if not hasattr(values, "to_list"):
        raise InputError(f"the type of '{name}' lists no values: declare them, they are public")
    made = Ordered if getattr(kind, "ordered", False) else Category
    return made(tuple(values.to_list()), name)


def _bounded(name: str, pair: Any) -> Column:
    """A number, by its bounds."""
    try:
        low, high = (float(value) for value in pair)
    except (TypeError, ValueError):
        raise InputError(f"the bounds of '{name}' must be two numbers (low, high)") from None
    return Number(low, high, name)


def _of_values(name: str, form: Any) -> Column:
    """Of a pair or a list."""
    values = [] if isinstance(form, str) or not np.iterable(form) else list(form)
    if len(values) == 2 and all(isinstance(value, _DATES) for value in values):
        return Date(values[0], values[1], name)
    if len(values) >= 2 and all(map(_is_level, values)) and not _is_pair(values):
        return Category(tuple(values), name)
    if not _is_pair(values):
        raise InputError(
            f"'{name}' must be declared as two numbers (low, high), as a list of the values of a "
            "category, or as a kind of column"
        )
    return Number(float(values[0]), float(values[1]), name)


def _is_pair(values: Sequence[Any]) -> bool:
    return len(values) == 2 and all(map(is_number, values))


def _of_words(name: str, words: Mapping[str, Any]) -> Column:
    """Of a mapping, as files have it."""
    words = dict(words)
    if "bounds" in words:
        words["low"], words["high"] = _two(name, words.pop("bounds"))
    kind = words.pop("kind", "category" if "values" in words else "number")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"the kind of '{name}' must be {either(KINDS)}")
    made = KINDS[kind]
    known = {field.name for field in fields(made)} - {"name"}
    unknown = [word for word in words if word not in known]
    if unknown:
        raise InputError(f"'{name}' has {listed(unknown)}, which no {kind} has: remove it")
    needed = {"values"} if issubclass(made, Category) else {"low", "high"}
    needed = {"period"} if issubclass(made, Angle) else needed
    if made is not Boolean and not needed <= words.keys():
        raise InputError(f"'{name}' needs {listed(sorted(needed))}, which are public")
    return made(**words, name=name)


def _two(name: str, pair: Any) -> tuple[Any, Any]:
    try:
        low, high = pair
    except (TypeError, ValueError):
        raise InputError(f"the bounds of '{name}' must be two numbers (low, high)") from None
    return low, high


def _forms(bounds: Any, columns: Any) -> Any:
    """Bounds and columns together."""
    if columns is None:
        return bounds
    if not isinstance(columns, Mapping):
        raise InputError("columns must be {name: kind of column}, such as {'sex': ['F', 'M']}")
    if bounds is None:
        return columns
    if not isinstance(bounds, Mapping):
        raise InputError("bounds beside columns must have names too: {'height': (40, 220)}")
    both = [name for name in bounds if name in columns]
    if both:
        pair = Arg("bounds", option="feature"), " and ", Arg("columns", option="column")
        raise InputError(*pair, f" both declare {listed(both)}: keep one of them")
    return {**bounds, **columns}


def _names(
    declared: Any, features: Sequence[str] | None, n_features: int | None
) -> tuple[str, ...]:
    if features is None and isinstance(declared, Mapping):
        features = list(declared)
    if features is None and n_features is None:
        raise InputError("features must be named when bounds are a list of pairs without names")
    if features is None:
        features = [f"x{k + 1}" for k in range(n_features or 0)]
    names = (features,) if isinstance(features, str) else tuple(str(name) for name in features)
    if not names:
        raise InputError("there are no features: name at least one column of numbers")
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"features name {listed(repeated)} more than once: name each once")
    return names


def _domains(declared: Any, names: tuple[str, ...]) -> list[Any]:
    if not isinstance(declared, Mapping):
        try:
            return list(declared)
        except TypeError:
            raise InputError("bounds must be one pair (low, high) per feature") from None
    unknown = [name for name in names if name not in declared]
    if unknown:
        raise InputError(f"bounds are missing for {listed(unknown)}: add their public limits")
    unused = [name for name in declared if name not in names]
    if unused:
        raise InputError(
            f"bounds are given for {listed(unused)}, not among the features: remove them, "
            "or add them to features"
        )
    return [declared[name] for name in names]
