"""What a model file must hold to be a model, and what of it must agree with its certificate.

`check` is for every file that is read: numbers that can be used, whoever wrote them.
`contradiction` is for those who were given a model and ask whether its certificate speaks of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError, is_number, is_whole
from privtraj.base.space import moment
from privtraj.columns import kinds
from privtraj.columns.conditions import Constraints
from privtraj.columns.kinds import LONGEST_NAME, Column, Number, of_tables
from privtraj.domain.domain import Domain
from privtraj.measures.persistence import PERSISTENCE, is_persistence
from privtraj.measures.registry import MEASURES
from privtraj.motion.growth import Growth
from privtraj.motion.process import Scale
from privtraj.motion.reference import from_dict
from privtraj.motion.states import number_names
from privtraj.privacy.certificate import Certificate
from privtraj.privacy.statements import DOMAIN, DRAWN_TIMES, PUBLIC_COUNTS
from privtraj.recipe import MOST_PARTICLES, Recipe

FIELDS = {
    "diffusivity",
    "cloud_size",
    "features",
    "time_name",
    "datetime",
    "settings",
    "diagnostics",
}
MOTION = "motion"
"""Optional: how people move, where it is not Brownian motion through particles."""
OPTIONAL = {MOTION, "domain", "columns", "recipe"}
LAYOUT: dict[str, tuple[str | int, ...]] = {
    "particles": ("K", "m", "d"),
    "weights": ("K", "m"),
    "bandwidth": ("K",),
    "times": ("T",),
    "knots": ("K",),
    "bounds": ("d", 2),
}

_WIDEST = 1e3  # of anything in shares of the box
_FARTHEST = 9e12  # seconds from 1970 that a date can be, in microseconds of 64 bits
_NUMBERS = ("expected_worth", "noise_over_bandwidth", "effective_temperature", "marginal_error")
_LISTS = ("people_per_time", "significant_share", "spread")


def check(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str | None:
    """What is wrong with the fields and arrays of a file, in words; None if nothing is."""
    if not all(_all_finite(array) for array in arrays.values()):
        return "some of its numbers are not finite"
    faults = chain(_array_faults(header, arrays), _field_faults(header, arrays))
    return next(filter(None, faults), None)


def _array_faults(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> Iterable[str | None]:
    weights = arrays["weights"]
    if weights.min() < 0 or np.abs(weights.sum(axis=1, dtype=np.float64) - 1).max() > 1e-3:
        yield "its weights are no shares of a whole"
    if arrays["particles"].shape[1] > 4 * MOST_PARTICLES:
        yield "it has too many particles"  # whose coupling, m x m, would fill the memory
    if np.abs(arrays["particles"] - np.float32(0.5)).max() > _WIDEST:
        yield "its particles are far outside the box"
    if arrays["bandwidth"].min() < 0 or arrays["bandwidth"].max() > _WIDEST:
        yield "its bandwidth is no share of the box"
    times, knots = arrays["times"], arrays["knots"]
    inside = knots[0] <= times[0] and times[-1] <= knots[-1]
    if not (_increasing(times) and _increasing(knots) and inside):
        yield "its times are not in order, or have no particles"
    if header["datetime"] is True and np.abs(knots).max() > _FARTHEST:
        yield "its times are no dates"


def _field_faults(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> Iterable[str | None]:
    if not (_within(header["diffusivity"], 0, _WIDEST**2) and isinstance(header["datetime"], bool)):
        yield "its diffusivity or its kind of times cannot be read"
    yield _fault_of_motion(header, arrays)
    most = 16 * arrays["particles"].shape[1] + 4096
    if not (is_whole(header["cloud_size"]) and 1 <= header["cloud_size"] <= most):
        yield "its cloud size cannot be"
    yield _fault_of_names(header["features"], header["time_name"], arrays["bounds"])
    yield _fault_of_columns(header, arrays["bounds"])
    yield _fault_of_domain(header, arrays["bounds"])
    try:
        recipe_of(header)
    except InputError:
        yield "its recipe cannot be read"
    settings, told = header["settings"], header["diagnostics"]
    yield _fault_of_growth(header, arrays["knots"])
    if not (isinstance(settings, dict) and isinstance(told, dict)):
        yield "its settings cannot be read"
    elif not (
        isinstance(settings.get("measure", ""), str)
        and all(_is_number_or_none(told.get(name)) for name in _NUMBERS)
        and all(_is_list_or_none(told.get(name)) for name in _LISTS)
        and (
            "persistence" not in told or is_persistence(told["persistence"], len(arrays["bounds"]))
        )
    ):
        yield "its diagnostics cannot be read"


def _fault_of_motion(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str | None:
    """Of the reference process, and of what is public about features."""
    if MOTION not in header:
        return None
    knots, bounds = arrays["knots"], arrays["bounds"]
    try:
        moved = motion_of(header)
        columns = columns_of(header, bounds)
        moving = [isinstance(one, Number) and not one.fixed for one in columns]
        scale = Scale(bounds[moving], float(knots[0]), float(knots[-1] - knots[0]))
        if any(moving):
            moved["reference"].within(scale)
        moved["constraints"].check(columns)
    except (InputError, AttributeError, KeyError, TypeError, ValueError):
        return "how its people move cannot be read"
    return None if isinstance(moved["curves"], bool) else "its curves cannot be read"


def motion_of(header: Mapping[str, Any]) -> dict[str, Any]:
    """What a header says of how people move, as a model takes it; nothing if it says nothing."""
    if MOTION not in header:
        return {}
    said = dict(header[MOTION])
    made = {
        "curves": said.pop("curves"),
        "reference": from_dict(said.pop("reference")),
        "constraints": Constraints.declared(**said.pop("constraints")),
        "growth": Growth.from_dict(said.pop("growth")),
    }
    if said:
        raise ValueError("other fields")
    return made


def recipe_of(header: Mapping[str, Any]) -> Recipe | None:
    """What was asked for; None where a header does not tell."""
    return Recipe.from_dict(header["recipe"]) if "recipe" in header else None


def _fault_of_names(features: Any, time_name: Any, bounds: NDArray[Any]) -> str | None:
    if not (isinstance(features, list) and len(features) == len(bounds)):
        return "it has other features than bounds"
    names = [*features, time_name]
    if not all(isinstance(name, str) and len(name) <= LONGEST_NAME for name in names):
        return "its names cannot be read"
    if len(set(features)) < len(features):
        return "two of its features have one name"
    try:
        for name, (low, high) in zip(features, bounds.tolist(), strict=True):
            Number(float(low), float(high), name)
    except InputError:
        return "its bounds are none"
    return None


def columns_of(header: Mapping[str, Any], bounds: NDArray[Any]) -> tuple[Column, ...]:
    """The columns that a header tells; plain numbers of these bounds (d, 2) if it tells none."""
    if "columns" in header:
        return tuple(kinds.from_dict(said) for said in header["columns"])
    return kinds.plain_numbers(header["features"], bounds)


def _fault_of_columns(header: Mapping[str, Any], bounds: NDArray[Any]) -> str | None:
    """Columns agree with names and bounds, and each number that may be missing has one flag, behind
    all columns of a table."""
    if "columns" not in header:
        return None
    try:
        columns = columns_of(header, bounds)
        domains = [column.domain for column in columns]
    except (InputError, AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return "its columns cannot be read"
    names = [column.name for column in columns]
    if names != header["features"] or not np.array_equal(domains, bounds):
        return "it has other columns than features and bounds"
    known = of_tables(columns)
    if columns != (*known, *(more for column in known for more in column.more)):
        return "its flags of what is missing are not those of its numbers"
    return None


def _fault_of_domain(header: Mapping[str, Any], bounds: NDArray[Any]) -> str | None:
    if "domain" not in header:
        return None
    try:
        columns = columns_of(header, bounds)
        names = number_names(columns)
        box = bounds[[column.name in names for column in columns]]
        Domain.from_dict(header["domain"]).of_features(names).check_box(names, box)
    except (InputError, KeyError, AttributeError, ValueError, TypeError, OverflowError):
        return "its domain cannot be used"
    return None


def _fault_of_growth(header: Mapping[str, Any], knots: NDArray[Any]) -> str | None:
    """Whether what is said of the population can be read, and holds for these times."""
    if MOTION not in header:
        return None
    start, length = float(knots[0]), float(knots[-1] - knots[0])
    try:
        growth = Growth.from_dict(header[MOTION]["growth"])
        if growth is not None:
            growth.check(header["datetime"])
            growth.sizes(start, length, header["diagnostics"])
    except (InputError, AttributeError, KeyError, TypeError):
        return "its growth cannot be read"
    return None


def contradiction(
    certificate: Certificate,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> str | None:
    """Where a model and what its certificate takes as public do not agree; None if they do.

    The times of the model are among the bin times, where these are public, and inside the public
    range; its columns and its domain are the public ones. Where a fit says how it measured, its
    ledger has no release that such a fit does not plan.
    """
    public, times, knots = certificate.public_inputs, arrays["times"], arrays["knots"]
    columns = columns_of(header, arrays["bounds"])
    declared = {column.name: column.public_inputs() for column in of_tables(columns)}
    if public.get("bounds") != declared:
        return f"its {'columns' if 'columns' in header else 'bounds'} are not the public ones"
    domain = header.get("domain")
    stated = None if domain is None else Domain.from_dict(domain).public_inputs()
    if public.get(DOMAIN) != stated:
        return "its domain is not the public one"
    try:
        start, end = _moments(public["time range"], 2)
        listed = public.get(DRAWN_TIMES, public.get("bin times", times.tolist()))
        bins = _moments(listed, len(times))
    except (InputError, KeyError, TypeError, ValueError):
        return "its public times cannot be read"
    near = 1e-6 * (1 + end - start)
    if not (start - near <= knots[0] and knots[-1] <= end + near):
        return "its times are outside the public range"
    if np.abs(bins - times).max() > near:
        return "its times are not the public ones"
    recipe = recipe_of(header)
    promised = certificate.target_epsilon, certificate.delta, certificate.adjacency
    if recipe is not None and (recipe.epsilon, recipe.delta, recipe.adjacency) != promised:
        return "its recipe has another guarantee"
    return _contradiction_of_settings(certificate, header, arrays)


def _contradiction_of_settings(
    certificate: Certificate,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> str | None:
    settings, told = header["settings"], header["diagnostics"]
    slabs = settings.get("slabs", len(arrays["times"]))
    if not (is_whole(slabs) and 1 <= slabs <= len(arrays["knots"])):
        return "it has fewer times than slabs"
    public = certificate.public_inputs
    declared, bins = public.get(PUBLIC_COUNTS), public.get("bin times")
    lengths = {len(arrays["times"]), slabs, len(bins) if isinstance(bins, list) else slabs}
    for people in (told.get("people_per_time"), declared):
        if people is not None and not (_is_list_or_none(people) and len(people) in lengths):
            return "its numbers of people are of other times"
    measure, steps = settings.get("measure"), settings.get("steps")
    if measure in MEASURES:
        planned = MEASURES[measure].most_releases(steps if is_whole(steps) else 0)
        for entry in certificate.ledger:
            planned_often = entry["times"] <= planned.get(entry["what"], 0)
            if not (planned_often and _weighs_all(entry, len(arrays["bounds"]))):
                return "its ledger holds what such a fit does not release"
    return None


def _weighs_all(entry: Mapping[str, Any], features: int) -> bool:
    """Whether a person of this entry moves as many numbers of each feature."""
    if entry["what"] != PERSISTENCE:
        return True
    weight: int = entry.get("weight", 0)
    return weight > 0 and weight % features == 0


def _moments(said: Any, count: int) -> Floats:
    """Public times as numbers; dates in seconds since 1970."""
    if not (isinstance(said, list) and len(said) == count):
        raise ValueError("not so many times")
    return np.array([moment(time)[0] for time in said])


def _all_finite(array: NDArray[Any]) -> bool:
    return bool(np.isfinite(array).all())


def _increasing(values: NDArray[Any]) -> bool:
    return bool((values[1:] > values[:-1]).all()) and math.isfinite(
        float(values[-1]) - float(values[0])
    )


def _within(value: Any, low: float, high: float) -> bool:
    return is_number(value) and low <= value <= high


def _is_number_or_none(value: Any) -> bool:
    return value is None or _within(value, -1e300, 1e300)


def _is_list_or_none(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(map(_is_number_or_none, value)))
