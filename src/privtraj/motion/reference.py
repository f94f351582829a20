"""Reference processes by name, as in files and on the command line; and the usual one, inertia
along a learned drift.

Inertia: smooth paths, along which people keep their place among the others, or forget it.
Without a memory everybody keeps their curve: least action. With one, where somebody is among the
others, Z_k of feature k with mean 0 and variance 1, is the sum of what lasts and of what is
forgotten with memories m_j and swings s_j, in shares w_kj of the variance (`memories`):
    E Z_k(t) Z_k(t + h) = (1 - sum_j w_kj) + sum_j w_kj k_j(h).
`curves.forgetful` gives such people the model's marginals.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError, check_range, check_whole
from privtraj.base.space import from_unit
from privtraj.motion.cycle import Cycle
from privtraj.motion.diffusions import Brownian, OrnsteinUhlenbeck, add_bridge
from privtraj.motion.memories import inertial, kept
from privtraj.motion.process import Ends, Points, Reference, Scale, between, follow

__all__ = [
    "Brownian",
    "Cycle",
    "Drift",
    "Inertia",
    "Learned",
    "OrnsteinUhlenbeck",
    "Reference",
    "Scale",
]

MOST_MEMORIES = 64
STEPS = 32  # of Runge and Kutta's method over the range of time; a half turn errs by 1e-6
ROUNDS = 4  # of fitting and coupling; on a turning cloud the third no longer changes who is who
RIDGE = 0.01
"""Of the fit, in shares of the mean variance of the people: settles what they do not tell. A turn
is learned 6 % too slow with .03."""


@dataclass(frozen=True)
class Inertia(Reference):
    """Smooth paths of people who keep their rank, or forget it with some memory.

    memory: after which time where somebody was among the others is forgotten by a quarter, (1 + h)
        exp(-h) = .74 at one memory; in units of the time column (seconds for dates). One, or
        several. 0 is forgotten at once. None: nothing is forgotten.
    share: of the variance that is forgotten with each memory, at most 1 together; the rest lasts.
        One row for all features, or one for each.
    drift: along which people move, `Drift` or `Learned`; None for straight ahead.
    swing: radians per unit of time in which people swing back and forth, one for each memory.
    """

    kind: ClassVar[str] = "inertia"
    memory: float | Sequence[float] | None = None
    share: Any = 1.0
    drift: Reference | None = None
    swing: float | Sequence[float] = 0.0

    def __post_init__(self) -> None:
        if not (self.drift is None or isinstance(self.drift, Reference)):
            raise InputError(Arg("drift"), " must be a Drift or Learned, or None")
        if self.memory is None:
            return
        memories, shares = self.memories, np.asarray(self.share, dtype=np.float64)
        shares = shares if shares.ndim == 2 else self.shares(1)
        if len(memories) > MOST_MEMORIES or not ((memories >= 0) & (memories < np.inf)).all():
            raise InputError(Arg("memory"), " must be a time, or a few of them, not negative")
        if (
            shares.ndim != 2
            or shares.shape[1] != len(memories)
            or not ((shares >= 0).all() and (shares.sum(axis=1) <= 1 + 1e-9).all())
        ):
            raise InputError(
                Arg("share"), " must be one share for each memory, not negative, at most 1 together"
            )
        if not ((self.swings >= 0) & (self.swings < np.inf)).all():
            raise InputError(Arg("swing"), " must be a number for each memory, not negative")

    @property
    def memories(self) -> Floats:
        """(J,)"""
        return np.atleast_1d(np.asarray([] if self.memory is None else self.memory, np.float64))

    @property
    def swings(self) -> Floats:
        """(J,)"""
        try:
            return np.broadcast_to(np.asarray(self.swing, np.float64), self.memories.shape)
        except ValueError:
            return np.array([-1.0])  # not as many as memories

    def shares(self, features: int) -> Floats:
        """(d, J) of the variance of each feature, forgotten with each memory."""
        if self.memory is None:
            return np.zeros((features, 0))
        rows = np.atleast_1d(np.asarray(self.share, dtype=np.float64))
        if rows.ndim == 2 and len(rows) not in (1, features):
            raise InputError(Arg("share"), f" needs a row for each of the {features} features")
        return np.broadcast_to(rows, (features, rows.shape[-1]))

    @property
    def forgets(self) -> bool:
        return self.memory is not None and bool(np.any(np.asarray(self.share) > 0))

    @property
    def couples(self) -> bool:
        return self.drift is not None and not isinstance(self.drift, Learned)

    @property
    def can_be_written(self) -> bool:
        return self.drift is None or self.drift.can_be_written

    def within(self, scale: Scale) -> Inertia:
        drift = self.drift and self.drift.within(scale)
        if self.memory is None:
            return self if drift is self.drift else replace(self, drift=drift)
        self.shares(len(scale.bounds))  # as many as there are features
        memory, swing = self.memories / scale.length, self.swings * scale.length
        return replace(self, memory=memory.tolist(), swing=swing.tolist(), drift=drift)

    def fitted(self, clouds: Floats, clock: Floats) -> Inertia:
        return replace(self, drift=self.drift and self.drift.fitted(clouds, clock))

    def ahead(self, x: Floats, t: float, dt: float) -> Floats:
        return x if self.drift is None else self.drift.ahead(x, t, dt)

    def through(
        self, knots: Points, clock: Floats, times: Floats, rng: np.random.Generator
    ) -> Points:
        """Cubic, once differentiable, between neighbours: no overshoot."""
        return between(knots, clock, times, self, "spline", rng)

    def autocorrelation(self, lags: Floats, features: int) -> Floats:
        """(L, d) of where somebody is among the others, at lags (L,) in units of the memories."""
        shares = self.shares(features)
        return 1 - shares.sum(axis=1) + kept(lags, self.memories, self.swings) @ shares.T

    def deviations(self, n: int, times: Floats, features: int, rng: np.random.Generator) -> Floats:
        """What is forgotten, sum_j sqrt(w_kj) X_j: (n, q, d) at increasing times (q,)."""
        total = np.zeros((n, len(times), features))
        parts = zip(self.memories, self.swings, self.shares(features).T, strict=True)
        for memory, swing, share in parts:
            if share.any():
                total += np.sqrt(share) * inertial(n, times, memory, features, rng, swing)
        return total


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
    couples = True
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
        velocity = self.velocity
        assert callable(velocity)

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

    def ahead(self, x: Floats, t: float, dt: float) -> Floats:
        """Along the field, by Runge and Kutta's method of fourth order."""
        v, steps = self.velocity, max(1, int(np.ceil(abs(dt) * STEPS)))
        assert callable(v)
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
    couples = True
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


def fitted_field(paths: Floats, clock: Floats) -> Affine:
    """The affine field of paths (n, K, d) at times (K,), by ridge regression of their velocities on
    the middles between their knots, weighed by the gaps."""
    gaps = np.diff(clock)
    places = (paths[:, 1:] + paths[:, :-1]) / 2
    velocities = np.diff(paths, axis=1) / gaps[:, None]
    weights = np.tile(gaps, len(paths)) / (len(paths) * gaps.sum())
    x, v = places.reshape(-1, paths.shape[2]), velocities.reshape(-1, paths.shape[2])
    centre, mean = weights @ x, weights @ v
    spread = (x - centre) * weights[:, None]
    moments = spread.T @ (x - centre)
    ridge = RIDGE * np.trace(moments) / len(moments) + 1e-12
    matrix = np.linalg.solve(moments + ridge * np.eye(len(moments)), spread.T @ (v - mean)).T
    return Affine(matrix, mean - matrix @ centre)


# By name --------------------------------------------------------------------------------------

AUTO, USUAL = "auto", Inertia(drift=Learned())
"""Unless somebody says: smooth paths of least action, along a drift that released people show."""
KINDS: dict[str, type[Reference]] = {
    process.kind: process
    for process in (Brownian, Inertia, OrnsteinUhlenbeck, Drift, Learned, Cycle)
}
_NAMES = ", ".join(KINDS)


def from_dict(values: Any) -> Reference:
    """The process that `Reference.to_dict` wrote; an `InputError` for anything else."""
    try:
        rest = dict(values)
        kind = KINDS[rest.pop("kind")]
        if rest.get("drift") is not None:
            rest["drift"] = from_dict(rest["drift"])
        return kind.from_dict(rest)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise InputError(f"the reference process cannot be read: give one of {_NAMES}") from None


def declared(reference: Any) -> Reference | None:
    """A process, given itself or by words; None for "auto"."""
    if isinstance(reference, str):
        return None if reference.strip() == AUTO else from_words(reference)
    if not isinstance(reference, Reference):
        raise InputError(
            Arg("reference"), " must be a process of privtraj.motion.reference, its name, or 'auto'"
        )
    return reference


def from_words(text: str) -> Reference:
    """The process of words such as "learned" or "inertia memory=2 share=0.5"."""
    name, *settings = text.split() or [""]
    if name not in KINDS:
        raise InputError(Arg("reference"), f" has no process '{name}': use {AUTO}, {_NAMES}")
    try:
        values: dict[str, Any] = {}
        for key, given in (setting.split("=") for setting in settings):
            parts = [float(x) if "." in x or "e" in x else int(x) for x in given.split(",")]
            values[key] = parts if "," in given else parts[0]
        return KINDS[name](**values)
    except (TypeError, ValueError):
        raise InputError(
            Arg("reference"),
            f" cannot be read: write the settings of {name} as in 'inertia memory=2 share=0.5', "
            "several numbers with commas",
        ) from None
