"""How many people there are: N(t), up to a factor, on a clock from 0 to 1.

Released numbers of records are noisy, and how many fell into a slab of time is chance, too. Their
logarithms y_k at the middles of the slabs, of variance v_k, are smoothed: the rate of growth is a
random walk of variance A per time, so that with a constant rate, A = 0, the numbers grow evenly.
Changes of slope z = D y have the law
    z ~ N(0, A H + D V D'),     V = diag(v),  H = diag of the mean gaps,
A has the largest likelihood of them, and the posterior mean is  y - V D' (A H + D V D')^-1 z.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError, is_number

PEOPLE, MIDDLES, LENGTHS, NOISE = (
    "people_per_time",
    "people_middles",
    "people_lengths",
    "people_noise",
)
"""Diagnostics of a fit: people in each slab, its middle in data units, how much time it covers (or
how many listed times), and the standard deviation of the noise of a number."""
GRID = 2049
"""Even moments at which births and departures are added up."""
_ROUGHNESS = np.append(0.0, np.geomspace(1e-3, 1e4, 29))  # A, squared rates per range and per time


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


def released_sizes(told: Mapping[str, Any], start: float, length: float) -> Sizes:
    """By the diagnostics of a model."""
    numbers = [told.get(name) for name in (PEOPLE, MIDDLES, LENGTHS)]
    noise = told.get(NOISE)
    lists = all(isinstance(n, list) and n and all(map(is_number, n)) for n in numbers)
    if not (lists and is_number(noise) and len({len(n) for n in numbers if n}) == 1):
        raise _unknown()
    people, middles, lengths = (np.array(n, dtype=np.float64) for n in numbers)
    if not ((people > 0).all() and (lengths > 0).all() and (np.diff(middles) > 0).all()):
        raise _unknown()
    clock = (middles - start) / length
    variance = (float(noise or 0.0) ** 2 + people) / people**2
    return _to_the_ends(clock, smoothed(np.log(people / lengths), variance, clock))


def _unknown() -> InputError:
    return InputError(
        Arg("growth", "released"),
        " needs numbers of people over time, which this model does not "
        "have: give their size as a table {time: size}",
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


def _to_the_ends(clock: Floats, log_size: Floats) -> Sizes:
    """Growing on at the same rate from the middles of the outer slabs to the ends of the range."""
    if len(clock) == 1:
        return Sizes(np.array([0.0, 1.0]), np.repeat(log_size, 2))
    rates = np.diff(log_size) / np.diff(clock)
    first, last = log_size[0] - rates[0] * clock[0], log_size[-1] + rates[-1] * (1 - clock[-1])
    inside = (clock > 0) & (clock < 1)
    return Sizes(
        np.concatenate([[0.0], clock[inside], [1.0]]),
        np.concatenate([[first], log_size[inside], [last]]),
    )
