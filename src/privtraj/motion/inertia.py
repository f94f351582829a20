"""Inertia: smooth paths, along which people keep their place among the others, or forget it.

Without a memory everybody keeps their curve: least action. With one, where somebody is among the
others, Z_k of feature k with mean 0 and variance 1, is the sum of what lasts and of what is
forgotten with memories m_j and swings s_j, in shares w_kj of the variance:
    E Z_k(t) Z_k(t + h) = (1 - sum_j w_kj) + sum_j w_kj k_j(h),
    k(h) = exp(-h / m) (cos(s h) + sin(s h) / (s m)),   (1 + h / m) exp(-h / m) without a swing.
Each forgotten part is an inertial process: position and velocity are Markov, with a velocity that
is drawn back and shaken,
    dX = V dt,   dV = -(2 V / m + f^2 X) dt + 2 f m^(-1/2) dB,   f^2 = 1 / m^2 + s^2,
whose transitions are Gaussian in closed form; its paths are smooth, so how long they are does not
depend on how often they are read. `forgetting` gives such people the model's marginals.

Which memories people have is told by how their values at two times go together (`smoothest`).
Correlations are measured in a few bins of the lag, with errors. Many mixtures of inertial processes
    rho(h) = lasting c(h) + sum_j w_j k_j(h),
c(h) being that of people who keep to their curves, agree with them; that of the slowest people is
taken, of the least mean squared speed  sum_j w_j (1 / m_j^2 + s_j^2):
paths tremble, and turn back, only where records say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError
from privtraj.base.space import hat_functions
from privtraj.motion.diffusions import Learned
from privtraj.motion.process import Points, Reference, Scale, between

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


MEMORIES = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28)  # in shares of the range of time
SWINGS = (np.pi, 2 * np.pi, 4 * np.pi)
"""Radians per range of time, of memories from .16 on: half a swing, one and two over the range."""
LAGS = np.linspace(0.02, 1.0, 50)  # at which a curve is followed
NEAR_CURVE = 0.03
"""How near to it, root mean square: a little below what its errors are at the usual budget."""
AGREES = 0.3
"""Mean squared distance, in squared errors, at which a mixture agrees; at 1 it is biased."""
TURNED_BACK = 1.5  # errors below 0 that a correlation must be for people to swing
AT_ONCE = 0.01  # memory, for the speed, of what is forgotten at once: the last to be believed

_STRENGTHS = np.geomspace(1e2, 1e-8, 51)  # of slowness against nearness, the slowest first
_LEAST = 0.02  # share that is worth a process of its own
_PROCESSES = np.array(
    [(0.0, 0.0), *((m, 0.0) for m in MEMORIES)]
    + [(m, s) for m, s in product(MEMORIES, SWINGS) if m >= 0.16]
)  # memory and swing of each
_WITHIN = (np.arange(12) + 0.5) / 12  # places within a bin of the lag
_LAG_BINS = 25  # of the lags between times of a model
_WHOLE = 1e4  # weight of the shares' being all there is


class Correlations(NamedTuple):
    """What is known of one feature.

    edges: (L, 2) of bins of the lag, in shares of the range.  measured, error: (L,) in the bins.
    curve: (n,) at `LAGS`, of a family that goes through them.  smooth: whether paths are.
    along: (n,) at `LAGS`, of people who forget nothing (`correlation_along`).
    """

    edges: Floats
    measured: Floats
    error: Floats
    curve: Floats
    smooth: bool
    along: Floats


def smoothest(features: Sequence[Correlations]) -> tuple[Floats, Floats, Floats]:
    """Memories (J,), swings (J,) and shares (d, J) of the slowest mixtures that agree.

    Of smooth paths with what was measured in the bins, of rough ones with the curve through them.
    """
    shares = np.stack([_shares(feature) for feature in features])
    used = shares.max(axis=0) > _LEAST
    memory, swing = _PROCESSES.T
    return memory[used], swing[used], shares[:, used]


def _shares(known: Correlations) -> Floats:
    """(J,) of one feature: slow, and as near as its errors on average, or as near as can be."""
    from scipy.optimize import nnls

    at_lags = np.column_stack([kept(LAGS, *_PROCESSES.T), known.along])  # the last one lasts
    if known.smooth:
        # the means over the lags of each bin, short lags being more frequent
        lags = known.edges[:, :1] + _WITHIN * (known.edges[:, 1:] - known.edges[:, :1])
        often = (1 - lags) / (1 - lags).sum(axis=1, keepdims=True)
        weights = hat_functions(np.clip(lags, LAGS[0], LAGS[-1]).ravel(), LAGS)
        weights = weights.reshape(*lags.shape, -1)
        kernels = np.einsum("lw,lwn,nj->lj", often, weights, at_lags)
        rho, error = known.measured, known.error
    else:
        kernels, rho, error = at_lags, known.curve, np.full(len(LAGS), NEAR_CURVE)
    near = kernels / error[:, None]
    memory, swing = _PROCESSES.T
    squared_speed = np.append(np.maximum(memory, AT_ONCE) ** -2.0 + swing**2, 0.0)
    turns_back = (known.measured < -TURNED_BACK * known.error).any()
    near[:, :-1][:, (swing > 0) & (not turns_back)] = 0.0
    whole = np.where(near.any(axis=0), _WHOLE, 0.0)
    best, least = np.zeros_like(squared_speed), np.inf
    wanted = np.concatenate([rho / error, [_WHOLE, 0.0]])
    for strength in _STRENGTHS:
        found, _ = nnls(np.vstack([near, whole, strength * squared_speed]), wanted)
        off = float(np.mean((near @ found - rho / error) ** 2))
        if off < 0.9 * least:
            best, least = found, off
        if off <= AGREES:
            break
    return np.asarray(best[:-1] / max(best.sum(), 1e-9))


def correlation_along(paths: Floats, clock: Floats) -> Floats:
    """(n, d) at `LAGS`, of where people on paths (m, K, d) at times (K,) are among the others.

    The mean over pairs of times, in bins of their lag, and straight between the bins.
    """
    scores = paths - paths.mean(axis=0)
    scores = scores / np.maximum(paths.std(axis=0), 1e-9)
    first, second = np.triu_indices(len(clock), 1)
    products = np.einsum("mpd,mpd->pd", scores[:, first], scores[:, second]) / len(paths)
    lags = clock[second] - clock[first]
    place = np.minimum((lags * _LAG_BINS).astype(int), _LAG_BINS - 1)
    pairs = np.bincount(place, minlength=_LAG_BINS)
    at = np.append(0.0, np.bincount(place, lags, _LAG_BINS)[pairs > 0] / pairs[pairs > 0])
    columns = []
    for product_of in products.T:
        mean = np.bincount(place, product_of, _LAG_BINS)[pairs > 0] / pairs[pairs > 0]
        columns.append(np.interp(LAGS, at, np.append(1.0, mean)))
    return np.stack(columns, axis=1)
