"""Growth: how many people there are over time, N(t) up to a factor, and where they come and go.

Released numbers of records are noisy, and how many fell into a window of time is chance, too. Their
logarithms y_k at the middles of the windows, of variance v_k, are smoothed: the rate of growth is a
random walk of variance A per time, so that with a constant rate, A = 0, the numbers grow evenly.
Changes of slope z = D y have the law
    z ~ N(0, A H + D V D'),     V = diag(v),  H = diag of the mean gaps,
A has the largest likelihood of them, and the posterior mean is  y - V D' (A H + D V D')^-1 z.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError, is_number
from privtraj.base.space import as_user_times, moment

Rate = Callable[[Floats, float], Floats]
"""g(x, t) (n,) per unit of time, of places x (n, d) in data units."""
RELEASED, LEARNED = "released", "learned"
MOST_SIZES = 10_000
MOST_CHANGE = 50
"""Largest over smallest size, and turnover, on the scale of logarithms: far beyond any use."""
PEOPLE, MIDDLES, LENGTHS = "people_per_time", "people_middles", "people_lengths"
NOISE = "people_noise"
"""Diagnostics of a fit: people in each window, its middle in data units, how much time it covers
(or how many listed times), and the standard deviation of the noise of a number."""
_ROUGHNESS = np.append(0.0, np.geomspace(1e-3, 1e4, 29))  # A, squared rates per range and per time


@dataclass(frozen=True)
class Growth:
    """How a population changes. All of it is public, or computed from what was released.

    size: how many people there are over time, up to a factor. "released": by the numbers of records
        in the model, for data that were sampled in proportion to the population. A rate r per unit
        of the time column (second for dates): e^(r t). A table {time: size}, in between e^(linear),
        before and after as at the ends. None where `by_place` is a function: then it follows.
    by_place: None: people are born and leave alike everywhere. A function: at rate g(x, t) (n,) for
        places x (n, d) in data units. "learned": where the model's masses change more than people
        can have moved.
    turnover: rate at which people leave, beside all that, and others come in their place.
    """

    size: Any = RELEASED
    by_place: Rate | Literal["learned"] | None = None
    turnover: float = 0.0

    def __post_init__(self) -> None:
        if not (self.by_place in (None, LEARNED) or callable(self.by_place)):
            raise InputError(
                Arg("by_place"), " must be a function g(x, t) of places, or 'learned', or None"
            )
        if not (is_number(self.turnover) and 0 <= self.turnover < np.inf):
            raise InputError(Arg("turnover"), " must be a rate, not negative")
        if isinstance(self.size, Mapping):
            rows = sorted((*moment(time, Arg("growth")), size) for time, size in self.size.items())
            if not (2 <= len(rows) <= MOST_SIZES and len({dated for _, dated, _ in rows}) == 1):
                few = f" must have two times at least, and {MOST_SIZES} at most"
                raise InputError(Arg("growth"), few)
            if not all(is_number(size) and 0 < size < np.inf for *_, size in rows):
                raise InputError(Arg("growth"), " must be a table of sizes above 0")
            table = tuple((time, float(size), dated) for time, dated, size in rows)
            object.__setattr__(self, "size", table)
        elif is_number(self.size) and np.isfinite(self.size):
            object.__setattr__(self, "size", float(self.size))
        elif not (self.size == RELEASED or (self.size is None and callable(self.by_place))):
            raise InputError(
                Arg("growth"),
                " must be 'released', a rate per unit of time, a table {time: size}, or a function "
                "g(x, t) of places (n, d)",
            )

    @classmethod
    def declared(cls, given: Any) -> Growth:
        """As users give it, or in words such as "released by_place=learned turnover=0.1"."""
        if isinstance(given, Growth):
            return given
        if callable(given):
            return cls(None, by_place=given)
        if not isinstance(given, str):
            return cls(given)
        try:
            size, *rest = given.split()
            settings = dict(setting.split("=") for setting in rest)
            turnover = float(settings.pop("turnover", 0.0))
            by_place: Any = settings.pop("by_place", None)
            if settings:
                raise ValueError("other settings")
            return cls(size if size == RELEASED else float(size), by_place, turnover)
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                Arg("growth"), " must be 'released' or a rate per unit of time, such as 0.5"
            ) from None

    def check(self, datetime: bool) -> None:
        """Refuse a table of dates for times that are numbers, and the other way round."""
        if isinstance(self.size, tuple) and any(dated != datetime for *_, dated in self.size):
            kind = "dates" if datetime else "numbers"
            raise InputError(Arg("growth"), f" must be a table of {kind}, as the model's times are")

    def sizes(self, start: float, length: float, diagnostics: Mapping[str, Any]) -> Sizes | None:
        """Over a range of time; by a model's diagnostics. None if they follow from places."""
        sizes = None
        if self.size == RELEASED:
            sizes = released_sizes(diagnostics, start, length)
        elif isinstance(self.size, float):
            sizes = Sizes(np.array([0.0, 1.0]), np.array([0.0, self.size * length]))
        elif self.size is not None:
            times, numbers, _ = zip(*self.size, strict=True)
            sizes = Sizes((np.array(times) - start) / length, np.log(numbers))
        change = self.turnover * length + (0.0 if sizes is None else sizes.change)
        if not change <= MOST_CHANGE:
            raise InputError(
                Arg("growth"),
                f" changes a population more than e^{MOST_CHANGE} times over the range of time: "
                "check the unit of time",
            )
        return sizes

    @property
    def can_be_written(self) -> bool:
        """Whether a file can hold it: a function cannot be."""
        return not callable(self.by_place)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that `from_dict` reads."""
        size: Any = self.size
        by_place: Any = self.by_place
        if isinstance(size, tuple):
            size = [[as_user_times(t, dated).tolist(), n] for t, n, dated in size]
            size = [[t if is_number(t) else t.isoformat(), n] for t, n in size]
        if callable(by_place):
            by_place = getattr(by_place, "__qualname__", type(by_place).__qualname__)
        return {"size": size, "by_place": by_place, "turnover": self.turnover}

    @classmethod
    def from_dict(cls, values: Any) -> Growth | None:
        """What `to_dict` wrote, or None for None; an `InputError` for anything else."""
        if values is None:
            return None
        try:
            size, by_place, turnover = (values[key] for key in ("size", "by_place", "turnover"))
            table = dict(map(tuple, size)) if isinstance(size, list) else size
            if len(values) != 3 or callable(by_place):
                raise ValueError("something else")
            return cls(table, by_place, turnover)
        except (KeyError, TypeError, ValueError, IndexError):
            raise InputError("the growth of a population cannot be read") from None


class Sizes(NamedTuple):
    """log N, straight between times of the clock and constant beyond. clock, log_size: (J,)."""

    clock: Floats
    log_size: Floats

    def at(self, times: Floats) -> Floats:
        """N(t) (q,) over the largest in the range."""
        return np.asarray(np.exp(np.interp(times, self.clock, self.log_size) - self._turns.max()))

    @property
    def change(self) -> float:
        """log of the largest size over the smallest in the range."""
        return float(np.ptp(self._turns))

    @property
    def _turns(self) -> Floats:
        """log N where it may be largest or smallest."""
        inside = self.clock[(self.clock > 0) & (self.clock < 1)]
        return np.interp(np.concatenate([[0.0, 1.0], inside]), self.clock, self.log_size)


def released_sizes(diagnostics: Mapping[str, Any], start: float, length: float) -> Sizes:
    """By the diagnostics of a model, growing on at the same rate from the middles of the outer
    windows to the ends of the range."""
    unknown = InputError(
        Arg("growth", "released"),
        " needs numbers of people over time, which this model does not "
        "have: give their size as a table {time: size}",
    )
    numbers, noise = [diagnostics.get(name) for name in (PEOPLE, MIDDLES, LENGTHS)], None
    if all(isinstance(n, list) and n and all(map(is_number, n)) for n in numbers):
        noise = diagnostics.get(NOISE)
    if not (is_number(noise) and len({len(n) for n in numbers if n}) == 1):
        raise unknown
    people, middles, lengths = (np.array(n, dtype=np.float64) for n in numbers)
    if not ((people > 0).all() and (lengths > 0).all() and (np.diff(middles) > 0).all()):
        raise unknown
    clock = (middles - start) / length
    variance = (float(noise or 0.0) ** 2 + people) / people**2
    log_size = smoothed(np.log(people / lengths), variance, clock)
    if len(clock) == 1:
        return Sizes(np.array([0.0, 1.0]), np.repeat(log_size, 2))
    rates = np.diff(log_size) / np.diff(clock)
    first, last = log_size[0] - rates[0] * clock[0], log_size[-1] + rates[-1] * (1 - clock[-1])
    inside = (clock > 0) & (clock < 1)
    return Sizes(
        np.concatenate([[0.0], clock[inside], [1.0]]),
        np.concatenate([[first], log_size[inside], [last]]),
    )


def smoothed(values: Floats, variance: Floats, clock: Floats) -> Floats:
    """Noisy values (K,) of these variances, at times (K,): the posterior mean above."""
    if len(values) < 3:
        return values
    gaps = np.diff(clock)
    slopes = np.diff(np.eye(len(values)), axis=0) / gaps[:, None]
    changes = np.diff(slopes, axis=0)  # D
    walk, noise = np.diag((gaps[:-1] + gaps[1:]) / 2), (changes * variance) @ changes.T
    z = changes @ values
    laws = [a * walk + noise for a in _ROUGHNESS]
    misfit = [np.linalg.slogdet(law)[1] + z @ np.linalg.solve(law, z) for law in laws]
    likely = laws[int(np.argmin(misfit))]
    return np.asarray(values - variance * (changes.T @ np.linalg.solve(likely, z)))
