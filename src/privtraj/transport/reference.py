"""The reference process: how people would move if nothing but their law at each time were known.

Couplings and paths are as likely under it as the marginals allow. All that they need from it is
where people are after a while, with which variance, and how they get from one place to another; a
new process is one more class below `Brownian`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privtraj.arrays import Floats

Interpolation = Literal["bridge", "linear", "spline"]
Points = NDArray[np.floating[Any]]
Ends = tuple[float, float]


class Reference(ABC):
    """A process whose transitions over a gap dt are N(ahead(x, dt), regularisation(dt) I)."""

    @abstractmethod
    def ahead(self, x: Floats, dt: float) -> Floats:
        """E[X_(t + dt) | X_t = x] for places x (n, d): (n, d)."""

    @abstractmethod
    def regularisation(self, gaps: Floats) -> Floats:
        """Variance per coordinate over gaps (T-1,), by which entropic couplings are blurred."""

    @abstractmethod
    def bridge(
        self, x: Points, y: Points, ends: Ends, times: Floats, rng: np.random.Generator
    ) -> Points:
        """Values (q, n, d) at sorted times (q,) from a to b, given x (n, d) at a and y (n, d) at b.

        One joint draw for every pair of places and every coordinate.  ends: (a, b).
        """

    def cost(self, x: Floats, y: Floats, dt: float) -> Floats:
        """-log of the transition density from x (n, d) to y (m, d), up to a constant: (n, m).

        |ahead(x, dt) - y|^2 / (2 regularisation(dt)): what an entropic coupling minimises, blurred
        by its entropy; an exact one minimises it alone.
        """
        from_x = self.ahead(x, dt)
        squares = ((from_x[:, None] - y[None]) ** 2).sum(axis=-1)
        return np.asarray(squares / (2 * self.regularisation(np.asarray(dt))))


@dataclass(frozen=True)
class Brownian(Reference):
    """Brownian motion: X_(t + dt) given X_t = x is N(x, D dt I).

    diffusivity: D, the variance per unit of time and coordinate.
    """

    diffusivity: float

    def ahead(self, x: Floats, dt: float) -> Floats:
        """x: it has no drift."""
        return x

    def regularisation(self, gaps: Floats) -> Floats:
        """D dt."""
        return self.diffusivity * gaps

    def bridge(
        self, x: Points, y: Points, ends: Ends, times: Floats, rng: np.random.Generator
    ) -> Points:
        """The straight line from x to y plus B with B_a = B_b = 0, walked from time to time.

        Given B_s = v and s < t < b, B_t is normal with mean v (b - t) / (b - s) and variance
        D (t - s)(b - t) / (b - s); so the variance of B_t alone is D (t - a)(b - t) / (b - a).
        """
        values = straight(x, y, ends, times)
        number, (before, b) = x.dtype.type, ends
        away = np.zeros_like(x)
        for q in np.flatnonzero(times < b):
            t = times[q]
            std = np.sqrt(self.diffusivity * (t - before) * (b - t) / (b - before))
            away *= number((b - t) / (b - before))
            if std > 0:
                away += number(std) * rng.standard_normal(away.shape, dtype=x.dtype)
            values[q] += away
            before = t
        return values


def straight(x: Points, y: Points, ends: Ends, times: Floats) -> Points:
    """(1 - s) x + s y (q, n, d) at the shares s = (t - a) / (b - a) of the way, ends (a, b)."""
    a, b = ends
    number = x.dtype.type
    values = np.empty((len(times), *x.shape), x.dtype)
    for value, share in zip(values, (times - a) / (b - a), strict=True):
        np.multiply(x, number(1 - share), out=value)
        value += y * number(share)
    return values


def between(
    knots: Points,
    knot_times: Floats,
    times: Floats,
    reference: Reference,
    interpolation: Interpolation,
    rng: np.random.Generator,
) -> Points:
    """Values (n, q, d) at `times` (q,) inside the range, of paths through knots (n, T, d).

    "bridge": a bridge of the reference, joint over all times of an interval; "linear": straight;
    "spline": monotone cubic, no overshoot.
    """
    if interpolation == "spline":
        from scipy.interpolate import PchipInterpolator

        return np.asarray(PchipInterpolator(knot_times, knots, axis=1)(times))
    left = np.clip(np.searchsorted(knot_times, times, side="right") - 1, 0, len(knot_times) - 2)
    order = np.argsort(times, kind="stable")
    places = np.ascontiguousarray(knots.swapaxes(0, 1))  # all people of one time in one piece
    values = np.empty((len(times), *places.shape[1:]), knots.dtype)
    for i in np.unique(left):
        inside = order[left[order] == i]
        pair = places[i], places[i + 1], (knot_times[i], knot_times[i + 1]), times[inside]
        bridged = interpolation == "bridge"
        values[inside] = reference.bridge(*pair, rng) if bridged else straight(*pair)
    return values.swapaxes(0, 1)
