"""Diffusions: dX = v(X, t) dt + sqrt(D) dB, of a drift that is public or learned.

Brownian motion has no drift and is the reference of the paper: rough paths that wander. Ornstein
and Uhlenbeck's process pulls people back to a place. D is the variance per time range and
coordinate, in squared shares of the box; without any, paths are those of least action against the
drift.

`Learned` fits the drift to the model's own people. Marginals alone do not tell a turn from a trade
of places: least action pairs everybody with who is nearest. One field for all times does. It is
fitted to the paths of least action, people are coupled again against it, and so on (as in the
iterative refinement of reference processes, Shen et al. 2024): each round can only lower the action
that is left,
    sum over neighbouring times and people of  |y - flow(x)|^2 / dt.
The field is affine and the same at all times: turning, growing, shifting, and little else, so that
it cannot follow noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError, check_range, check_whole
from privtraj.base.space import from_unit, to_unit
from privtraj.motion.process import Ends, Points, Reference, Scale, follow, straight

STEPS = 32
"""Steps of Runge and Kutta's method over the whole range of time; a half turn errs by 1e-6."""
ROUNDS = 4  # of fitting and coupling; on a turning cloud the third no longer changes who is who
RIDGE = 0.01
"""Of the fit, in shares of the mean variance of the people: settles what they do not tell. A turn
is learned 6 % too slow with .03."""


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

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "diffusivity": self.diffusivity}


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

    @property
    def couples(self) -> bool:
        return True

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

    def to_dict(self) -> dict[str, Any]:
        mean = np.atleast_1d(np.asarray(self.mean, dtype=np.float64)).tolist()
        said = {"kind": self.kind, "mean": mean, "rate": self.rate}
        return {**said, "diffusivity": self.diffusivity}


class Affine(NamedTuple):
    """v(x) = x A' + b. matrix: A (d, d).  offset: b (d,)."""

    matrix: Floats
    offset: Floats

    def __call__(self, x: Floats, t: float) -> Floats:
        return np.asarray(x @ np.asarray(self.matrix).T + np.asarray(self.offset))


Velocity = Callable[[Floats, float], Floats]


@dataclass(frozen=True)
class Drift(Reference):
    """dX = v(X, t) dt + sqrt(D) dB.

    velocity: v(x, t) (n, d) of places x (n, d) at a time t, in data units per unit of the time
        column; or an affine field as a pair: A (d, d) and b (d,) of v(x) = A x + b. Only the latter
        can be written to a file.
    diffusivity: D, variance per time range and coordinate, in squared shares of the box; 0 for
        paths of least action against the drift.
    """

    kind: ClassVar[str] = "drift"
    velocity: Velocity | tuple[Any, Any]
    diffusivity: float = 0.0

    def __post_init__(self) -> None:
        check_range("diffusivity", self.diffusivity, 0.0, 1e6)
        if callable(self.velocity):
            return
        try:
            matrix, offset = (np.asarray(part, dtype=np.float64) for part in self.velocity)
            d = len(offset)
            if matrix.shape != (d, d) or offset.shape != (d,) or not np.isfinite(matrix).all():
                raise ValueError
        except (TypeError, ValueError):
            raise InputError(
                Arg("velocity"),
                " must be a function of places and time, or a pair: (d, d) and (d,)",
            ) from None
        object.__setattr__(self, "velocity", Affine(matrix, offset))

    def within(self, scale: Scale) -> Drift:
        velocity = self._field

        def unit(u: Floats, t: float) -> Floats:
            x = from_unit(u, scale.bounds)
            v = np.asarray(velocity(x, scale.start + t * scale.length), dtype=np.float64)
            if v.shape != u.shape:
                raise InputError(
                    f"the velocity must return an array {u.shape} for places of that shape"
                )
            if not np.isfinite(v).all():
                raise InputError("the velocity must be finite everywhere in the box")
            return v * scale.length / scale.widths

        return replace(self, velocity=unit)

    @property
    def _field(self) -> Velocity:
        assert callable(self.velocity)
        return self.velocity

    @property
    def couples(self) -> bool:
        return True

    def ahead(self, x: Floats, t: float, dt: float) -> Floats:
        """Along the field, by Runge and Kutta's method of fourth order."""
        v, steps = self._field, max(1, int(np.ceil(abs(dt) * STEPS)))
        h = dt / steps
        place = np.asarray(x, dtype=np.float64)
        for k in range(steps):
            s = t + k * h
            k1 = v(place, s)
            k2 = v(place + h / 2 * k1, s + h / 2)
            k3 = v(place + h / 2 * k2, s + h / 2)
            place = place + h / 6 * (k1 + 2 * k2 + 2 * k3 + v(place + h * k3, s + h))
        return place

    def variance(self, dt: Floats) -> Floats:
        """D dt; the field is taken for even over the width of the noise."""
        return self.diffusivity * dt

    def bridge(
        self, x: Points, y: Points, ends: Ends, times: Floats, rng: np.random.Generator
    ) -> Points:
        """(1 - s) (x carried on to t) + s (y carried back to t), s the share of the way, plus the
        bridge of the noise: along the field, and the rest of the way at an even pace."""
        a, b = ends
        here, there = (places.astype(np.float64) for places in (x, y))
        values = np.empty((len(times), *x.shape), x.dtype)
        for value, t in zip(values, times, strict=True):
            share = (t - a) / (b - a)
            onward, back = self.ahead(here, a, t - a), self.ahead(there, b, t - b)
            value[:] = (1 - share) * onward + share * back
        return add_bridge(values, self.diffusivity, ends, times, rng)

    @property
    def can_be_written(self) -> bool:
        return isinstance(self.velocity, Affine)

    def to_dict(self) -> dict[str, Any]:
        field = self.velocity
        if isinstance(field, Affine):
            values = {"matrix": field.matrix.tolist(), "offset": field.offset.tolist()}
        else:
            values = {"function": getattr(field, "__qualname__", type(field).__qualname__)}
        return {"kind": self.kind, **values, "diffusivity": self.diffusivity}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Drift:
        return cls((values["matrix"], values["offset"]), values["diffusivity"])


@dataclass(frozen=True)
class Learned(Reference):
    """The drift v(x) = A x + b, fitted to the released model; `fitted` makes it.

    rounds: how often it is refined.
    diffusivity: of the noise beside the drift, as for `Drift`.
    """

    kind: ClassVar[str] = "learned"
    rounds: int = ROUNDS
    diffusivity: float = 0.0

    def __post_init__(self) -> None:
        check_whole("rounds", self.rounds, 1, 100)
        check_range("diffusivity", self.diffusivity, 0.0, 1e6)

    def fitted(self, clouds: Floats, clock: Floats) -> Drift:
        field = Affine(np.zeros((clouds.shape[2],) * 2), np.zeros(clouds.shape[2]))
        for _ in range(self.rounds):
            field = fitted_field(follow(clouds, clock, Drift(field)), clock)
        return Drift(field, self.diffusivity)

    @property
    def couples(self) -> bool:
        return True

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "rounds": self.rounds, "diffusivity": self.diffusivity}


def fitted_field(paths: Floats, clock: Floats) -> Affine:
    """The affine field of paths (n, K, d) at times (K,), by ridge regression of their velocities on
    the middles between their knots, weighed by the gaps."""
    gaps = np.diff(clock)
    places = (paths[:, 1:] + paths[:, :-1]) / 2
    velocities = np.diff(paths, axis=1) / gaps[:, None]
    weights = np.tile(gaps, len(paths)) / (len(paths) * gaps.sum())
    x, v = (array.reshape(-1, paths.shape[2]) for array in (places, velocities))
    centre, mean = weights @ x, weights @ v
    spread = (x - centre) * weights[:, None]
    moments = spread.T @ (x - centre)
    ridge = RIDGE * np.trace(moments) / len(moments) + 1e-12
    matrix = np.linalg.solve(moments + ridge * np.eye(len(moments)), spread.T @ (v - mean)).T
    return Affine(matrix, mean - matrix @ centre)
