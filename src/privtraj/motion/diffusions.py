"""Diffusions in closed form: dX = v(X) dt + sqrt(D) dB.

Brownian motion has no drift and is the reference of the paper: rough paths that wander. Ornstein
and Uhlenbeck's process pulls people back to a place. D is the variance per time range and
coordinate, in squared shares of the box; without any, paths are those of least action.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError, check_range
from privtraj.base.space import to_unit
from privtraj.motion.process import Ends, Points, Reference, Scale, straight


@dataclass(frozen=True)
class Brownian(Reference):
    """Brownian motion: X_(t + dt) given X_t = x is N(x, D dt I).

    diffusivity: D, variance per time range and coordinate, in squared shares of the box.
    """

    kind: ClassVar[str] = "brownian"
    diffusivity: float

    def __post_init__(self) -> None:
        check_range("diffusivity", self.diffusivity, 0.0, 1e6)

    def variance(self, dt: Floats) -> Floats:
        """D dt."""
        return self.diffusivity * dt

    def bridge(
        self, x: Points, y: Points, ends: Ends, times: Floats, rng: np.random.Generator
    ) -> Points:
        """The straight line from x to y plus a bridge from 0 to 0."""
        return add_bridge(straight(x, y, ends, times), self.diffusivity, ends, times, rng)


def add_bridge(
    values: Points, diffusivity: float, ends: Ends, times: Floats, rng: np.random.Generator
) -> Points:
    """Values (q, n, d) plus B with B_a = B_b = 0, walked from time to time, in place.

    Given B_s = v and s < t < b, B_t is normal with mean v (b - t) / (b - s) and variance
    D (t - s)(b - t) / (b - s); so the variance of B_t alone is D (t - a)(b - t) / (b - a).
    """
    number, (before, b) = values.dtype.type, ends
    away = np.zeros_like(values[0]) if len(values) else values
    for q in np.flatnonzero(times < b):
        t = times[q]
        std = np.sqrt(diffusivity * (t - before) * (b - t) / (b - before))
        away *= number((b - t) / (b - before))
        if std > 0:
            away += number(std) * rng.standard_normal(away.shape, dtype=values.dtype)
        values[q] += away
        before = t
    return values


@dataclass(frozen=True)
class OrnsteinUhlenbeck(Reference):
    """dX = rate (mean - X) dt + sqrt(D) dB, in closed form.

    mean: (d,) in data units.  rate: per unit of the time column (per second for dates).
    diffusivity: D, variance per time range and coordinate, in squared shares of the box; 0 for
        paths of least action against the pull.
    """

    kind: ClassVar[str] = "ornstein-uhlenbeck"
    couples = True
    mean: ArrayLike
    rate: float
    diffusivity: float = 0.0

    def __post_init__(self) -> None:
        check_range("rate", self.rate, 1e-12, 1e12)
        check_range("diffusivity", self.diffusivity, 0.0, 1e6)

    def within(self, scale: Scale) -> OrnsteinUhlenbeck:
        mean = np.atleast_1d(np.asarray(self.mean, dtype=np.float64))
        if mean.shape != (len(scale.bounds),):
            raise InputError(f"the mean needs {len(scale.bounds)} numbers, one for each feature")
        unit = to_unit(mean, scale.bounds, clamp=False)
        return replace(self, mean=unit, rate=self.rate * scale.length)

    def ahead(self, x: Floats, t: float, dt: float) -> Floats:
        """mean + (x - mean) exp(-rate dt)."""
        mean = np.asarray(self.mean)
        return np.asarray(mean + (x - mean) * np.exp(-self.rate * dt))

    def variance(self, dt: Floats) -> Floats:
        """D (1 - exp(-2 rate dt)) / (2 rate)."""
        return self.diffusivity * -np.expm1(-2 * self.rate * dt) / (2 * self.rate)

    def bridge(
        self, x: Points, y: Points, ends: Ends, times: Floats, rng: np.random.Generator
    ) -> Points:
        """From time to time: given X_s = v and s < t < b, X_t - mean is normal with mean
        (v - mean) sinh(r (b - t)) / sinh(r (b - s)) + (y - mean) sinh(r (t - s)) / sinh(r (b - s))
        and variance  D sinh(r (t - s)) sinh(r (b - t)) / (r sinh(r (b - s))).
        """
        mean = np.asarray(self.mean).astype(x.dtype)
        number, (before, b) = x.dtype.type, ends
        values = np.empty((len(times), *x.shape), x.dtype)
        here, there = x - mean, y - mean
        for q, t in enumerate(times):
            done, left, grown = self._shares(t - before, b - t)
            std = np.sqrt(self.variance(np.asarray(t - before)) * grown)
            here = here * number(left) + there * number(done)
            if std > 0:
                here += number(std) * rng.standard_normal(x.shape, dtype=x.dtype)
            values[q] = mean + here
            before = t
        return values

    def _shares(self, done: float, left: float) -> tuple[float, float, float]:
        """sinh(r done) / sinh(r (done + left)), the same of what is left, and that by exp(r done).

        In a form that does not overflow.
        """
        if done + left == 0:
            return 0.0, 1.0, 1.0
        r = self.rate
        whole = -np.expm1(-2 * r * (done + left))
        of_done, of_left = (-np.expm1(-2 * r * part) / whole for part in (done, left))
        return np.exp(-r * left) * of_done, np.exp(-r * done) * of_left, of_left
