"""What the user declares as public: bounds, times, and how many records of a person are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from privtraj.arrays import Floats
from privtraj.errors import Arg, InputError
from privtraj.space import moment
from privtraj.text import listed

_WHOSE = (" needs ", Arg("person="), ", which says whose record it is")
_TIMES, _RANGE = Arg("bins", option="bin_times"), Arg("time_range")


@dataclass(frozen=True)
class TimeAxis:
    times: Floats  # (T,) increasing
    datetime: bool


@dataclass(frozen=True)
class Options:
    one_per_person: str
    records_per_person: int
    one_per_bin: bool
    missing: str
    seed: int | None
    has_person: bool

    def __post_init__(self) -> None:
        if self.missing not in ("refuse", "drop"):
            raise InputError(Arg("missing"), f" must be 'refuse' or 'drop', not '{self.missing}'")
        if self.one_per_person not in ("error", "random"):
            raise InputError(
                Arg("one_per_person"), f" must be 'error' or 'random', not '{self.one_per_person}'"
            )
        if self.one_per_person == "random" and not self.has_person:
            raise InputError(Arg("one_per_person", "random"), *_WHOSE)
        most = self.records_per_person
        if not _is_whole(most) or most < 1:
            raise InputError(Arg("records_per_person"), " must be a whole number of at least 1")
        if most > 1 and not self.has_person:
            raise InputError(Arg("records_per_person"), *_WHOSE)
        if most > 1 and self.one_per_person == "random":
            raise InputError(
                Arg("one_per_person", "random"),
                " keeps one record and ",
                Arg("records_per_person"),
                " several: leave out one of them",
            )

    @property
    def one_each(self) -> bool:
        """Whether a second record of a person is refused."""
        return self.records_per_person == 1 and self.one_per_person == "error"

    @property
    def together(self) -> bool:
        """Whether records of one person may share a bin."""
        return self.records_per_person > 1 and not self.one_per_bin

    def most(self, bins: int) -> int:
        """Records of one person that can be kept."""
        return self.records_per_person if self.together else min(self.records_per_person, bins)


@dataclass(frozen=True)
class PublicInputs:
    """All that is public about records: d names, (d, 2) bounds, times, and how they are kept."""

    names: tuple[str, ...]
    box: Floats
    axis: TimeAxis
    time_name: str
    options: Options


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def declared_box(
    bounds: Any, features: Sequence[str] | None, n_features: int | None = None
) -> tuple[tuple[str, ...], Floats]:
    """Feature names and (d, 2) bounds."""
    if bounds is None or isinstance(bounds, str):
        raise InputError(
            "bounds must be given as public limits such as {'height': (40, 220)}: limits taken "
            "from the data would reveal its most extreme people"
        )
    names = _names(bounds, features, n_features)
    pairs = _pairs(bounds, names)
    if len(pairs) != len(names) or n_features not in (None, len(names)):
        raise InputError(
            f"there are {len(names) if n_features is None else n_features} features but bounds "
            f"for {len(pairs)} and names for {len(names)}: give one (low, high) and one name each"
        )
    return names, np.array([_pair(p, name) for p, name in zip(pairs, names, strict=True)])


def _names(bounds: Any, features: Sequence[str] | None, n_features: int | None) -> tuple[str, ...]:
    if features is None and isinstance(bounds, Mapping):
        features = list(bounds)
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


def _pairs(bounds: Any, names: tuple[str, ...]) -> list[Any]:
    if not isinstance(bounds, Mapping):
        try:
            return list(bounds)
        except TypeError:
            raise InputError("bounds must be one pair (low, high) per feature") from None
    unknown = [name for name in names if name not in bounds]
    if unknown:
        raise InputError(f"bounds are missing for {listed(unknown)}: add their public limits")
    unused = [name for name in bounds if name not in names]
    if unused:
        raise InputError(
            f"bounds are given for {listed(unused)}, not among the features: remove them, "
            "or add them to features"
        )
    return [bounds[name] for name in names]


def _pair(pair: Any, name: str) -> tuple[float, float]:
    try:
        low, high = (float(value) for value in pair)
    except (TypeError, ValueError):
        raise InputError(f"the bounds of '{name}' must be two numbers (low, high)") from None
    if not np.isfinite([low, high]).all() or high - low == np.inf:
        raise InputError(f"the bounds of '{name}' must be finite: ({low:g}, {high:g}) are not")
    if low == high:
        raise InputError(
            f"the bounds of '{name}' are both {low:g}: a feature that cannot vary must be left out"
        )
    if low > high:
        raise InputError(
            f"the bounds of '{name}' are reversed: ({low:g}, {high:g}), low goes first"
        )
    return low, high


def declared_axis(bins: Any, time_range: Any) -> TimeAxis:
    """Bin times from their number and the range, or as listed."""
    if bins is None or isinstance(bins, str | bool):
        raise InputError(Arg("bins"), " must be given: a number of bins, or the list of bin times")
    ends = _time_range(time_range)
    if isinstance(bins, Integral):
        if ends is None:
            raise InputError(
                _RANGE,
                " must be given as public (start, end) with a number of bins: a range "
                "taken from the data would reveal its earliest and latest people",
            )
        if bins < 2:
            raise InputError(Arg("bins"), f" is {bins}: trajectories need at least two times")
        return TimeAxis(np.linspace(ends.times[0], ends.times[1], int(bins)), ends.datetime)
    axis = _moments(bins, _TIMES)
    if len(axis.times) < 2:
        raise InputError(_TIMES, f" lists {len(axis.times)}: trajectories need at least two times")
    if not (np.diff(axis.times) > 0).all() or np.isinf(axis.times[-1] - axis.times[0]):
        raise InputError(_TIMES, " must increase strictly: sort them and remove repeated times")
    if ends is not None:
        if ends.datetime != axis.datetime:
            raise InputError(_TIMES, " and ", _RANGE, " must both be numbers or both be dates")
        if axis.times[0] < ends.times[0] or axis.times[-1] > ends.times[1]:
            raise InputError(_TIMES, " reach outside ", _RANGE, ": widen it, or leave it out")
    return axis


def _time_range(time_range: Any) -> TimeAxis | None:
    if time_range is None:
        return None
    if isinstance(time_range, str):
        raise InputError(
            _RANGE,
            " must be public (start, end): a range taken from the data would reveal "
            "its earliest and latest people",
        )
    axis = _moments(time_range, _RANGE)
    if len(axis.times) != 2 or not 0 < axis.times[1] - axis.times[0] < np.inf:
        raise InputError(_RANGE, " must be two times (start, end), start before end")
    return axis


def _moments(values: Any, what: Arg) -> TimeAxis:
    try:
        pairs = [moment(value, what) for value in values]
    except TypeError:
        raise InputError(what, " must be a list of numbers or dates") from None
    kinds = {datetime for _, datetime in pairs}
    if len(kinds) > 1:
        raise InputError(what, " mixes numbers and dates: use one kind")
    return TimeAxis(np.array([value for value, _ in pairs], dtype=np.float64), kinds == {True})


def check_roles(time: str, names: tuple[str, ...], person: str | None) -> None:
    if time in names:
        where = Arg("features", option="feature")
        raise InputError(f"column '{time}' is the time and a feature: leave it out of ", where)
    if person is not None and person in (time, *names):
        raise InputError(f"column '{person}' is the person and also time or feature: use another")
