"""Reference processes by name, as in files and on the command line; and inertia, the usual one.

Inertia: smooth paths, along which people keep their place among the others, or forget it.
Without a memory everybody keeps their curve: least action. With one, where somebody is among the
others, Z_k of feature k with mean 0 and variance 1, is the sum of what lasts and of what is
forgotten with memories m_j and swings s_j, in shares w_kj of the variance:
    E Z_k(t) Z_k(t + h) = (1 - sum_j w_kj) + sum_j w_kj k_j(h),
    k(h) = exp(-h / m) (cos(s h) + sin(s h) / (s m)),   (1 + h / m) exp(-h / m) without a swing.
Each forgotten part is an inertial process: position and velocity are Markov, with a velocity that
is drawn back and shaken,
    dX = V dt,   dV = -(2 V / m + f^2 X) dt + 2 f m^(-1/2) dB,   f^2 = 1 / m^2 + s^2,
whose transitions are Gaussian in closed form; its paths are smooth, so how long they are does not
depend on how often they are read. `curves.forgetful` gives such people the model's marginals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError
from privtraj.motion.diffusions import Brownian, Drift, Learned, OrnsteinUhlenbeck
from privtraj.motion.process import Points, Reference, Scale, between

__all__ = ["Brownian", "Drift", "Inertia", "Learned", "OrnsteinUhlenbeck", "Reference", "Scale"]

MOST_MEMORIES = 64


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
        memories, shares = self.memories, self.shares(1) if np.ndim(self.share) < 2 else None
        shares = np.asarray(self.share, dtype=np.float64) if shares is None else shares
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
        if not (self.drift is None or isinstance(self.drift, Reference)):
            raise InputError(Arg("drift"), " must be a Drift or Learned, or None")

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
            return replace(self, drift=drift)
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

    def to_dict(self) -> dict[str, Any]:
        memory = None if self.memory is None else self.memories.tolist()
        share = np.asarray(self.share, dtype=np.float64).tolist()
        drift = None if self.drift is None else self.drift.to_dict()
        said = {"kind": self.kind, "memory": memory, "share": share, "drift": drift}
        return {**said, "swing": np.asarray(self.swing, dtype=np.float64).tolist()}


def kept(lags: Floats, memories: Floats, swings: Floats) -> Floats:
    """k_j(h) (..., J) at lags (...), of memories and swings (J,); 1 at 0, and 0 after it without a
    memory."""
    h = np.asarray(lags)[..., None]
    x, turn = h / np.maximum(memories, 1e-12), swings * h
    ratio = np.where(turn > 1e-9, np.sin(turn) / np.maximum(turn, 1e-300), 1.0)
    return np.asarray(np.exp(-x) * (np.cos(turn) + x * ratio))


def inertial(
    n: int,
    times: Floats,
    memory: float,
    features: int,
    rng: np.random.Generator,
    swing: float = 0.0,
) -> Floats:
    """n independent draws (n, q, d) at increasing times, of mean 0, variance 1, autocorrelation k.

    Over a gap h the state (x, v / f), f^2 = 1 / m^2 + s^2, whose law is N(0, I), goes on by
        F = exp(-h / m) [[c + a, f b], [-f b, c - a]],  c = cos(s h), b = sin(s h) / s, a = b / m,
    plus noise of covariance I - F F'.
    """
    if memory == 0:
        return rng.standard_normal((n, len(times), features))
    f = np.hypot(1 / memory, swing)
    state = rng.standard_normal((2, n, features))
    values = np.empty((len(times), n, features))
    values[0] = state[0]
    for q, h in enumerate(np.diff(times), start=1):
        c, b = np.cos(swing * h), h * np.sinc(swing * h / np.pi)
        onward = np.exp(-h / memory) * np.array([[c + b / memory, f * b], [-f * b, c - b / memory]])
        spread, axes = np.linalg.eigh(np.eye(2) - onward @ onward.T)
        noise = axes * np.sqrt(np.maximum(spread, 0.0))
        fresh = rng.standard_normal(state.shape)
        state = np.tensordot(onward, state, 1) + np.tensordot(noise, fresh, 1)
        values[q] = state[0]
    return values.swapaxes(0, 1)


# By name --------------------------------------------------------------------------------------

AUTO = "auto"
KINDS: dict[str, type[Reference]] = {
    process.kind: process for process in (Brownian, Inertia, OrnsteinUhlenbeck, Drift, Learned)
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
    process = from_words(reference) if isinstance(reference, str) else reference
    if not (process is None or isinstance(process, Reference)):
        raise InputError(
            Arg("reference"), " must be a process of privtraj.motion.reference, its name, or 'auto'"
        )
    return process


def by_itself() -> Reference:
    """Smooth paths of least action, along a drift that the released people show."""
    return Inertia(drift=Learned())


def from_words(text: str) -> Reference | None:
    """The process of words such as "learned" or "inertia memory=2 share=0.5"; None for "auto"."""
    name, *settings = text.split() or [""]
    if text.strip() == AUTO:
        return None
    if name not in KINDS:
        raise InputError(Arg("reference"), f" has no process '{name}': use {AUTO}, {_NAMES}")
    try:
        values = dict(setting.split("=") for setting in settings)
        return KINDS[name](**{key: _value(value) for key, value in values.items()})
    except (TypeError, ValueError):
        raise InputError(
            Arg("reference"),
            f" cannot be read: write the settings of {name} as in 'inertia memory=2 share=0.5', "
            "several numbers with commas",
        ) from None


def _value(text: str) -> Any:
    numbers = [float(part) if "." in part or "e" in part else int(part) for part in text.split(",")]
    return numbers if "," in text else numbers[0]
