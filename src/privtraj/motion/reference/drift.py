"""Drift: people are carried by a velocity field, public or fitted to released people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError, check_range
from privtraj.base.space import from_unit
from privtraj.motion.reference.base import Ends, Points, Reference, Scale
from privtraj.motion.reference.brownian import add_bridge

STEPS = 32
"""Steps of Runge and Kutta's method over the whole range of time; a half turn errs by 1e-6."""


class Affine(NamedTuple):
    """v(x) = x A' + b. matrix: A (d, d).  offset: b (d,)."""

    matrix: Floats
    offset: Floats

    def __call__(self, x: Floats, t: float) -> Floats:
        velocity: Floats = x @ np.asarray(self.matrix).T + np.asarray(self.offset)
        return velocity


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
        if not callable(self.velocity):
            object.__setattr__(self, "velocity", _affine(self.velocity))

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


def _affine(pair: Any) -> Affine:
    try:
        matrix, offset = (np.asarray(part, dtype=np.float64) for part in pair)
        d = len(offset)
        if matrix.shape != (d, d) or offset.shape != (d,) or not np.isfinite(matrix).all():
            raise ValueError
    except (TypeError, ValueError):
        raise InputError(
            Arg("velocity"), " must be a function of places and time, or a pair: (d, d) and (d,)"
        ) from None
    return Affine(matrix, offset)
