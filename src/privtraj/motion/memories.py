"""Memories: inertial processes that are forgotten, and which of them people have: how their values
at two times go together says it.

An inertial process of memory m and swing s has mean 0, variance 1 and the autocorrelation
    k(h) = exp(-h / m) (cos(s h) + sin(s h) / (s m)),   (1 + h / m) exp(-h / m) without a swing.
Position and velocity are Markov, with a velocity that is drawn back and shaken,
    dX = V dt,   dV = -(2 V / m + f^2 X) dt + 2 f m^(-1/2) dB,   f^2 = 1 / m^2 + s^2,
whose transitions are Gaussian in closed form; its paths are smooth, so how long they are does not
depend on how often they are read.

Correlations are measured in a few bins of the lag, with errors. Many mixtures of inertial processes
    rho(h) = lasting c(h) + sum_j w_j k_j(h),
c(h) being that of people who keep to their curves, agree with them; that of the slowest people is
taken, of the least mean squared speed  sum_j w_j (1 / m_j^2 + s_j^2):
paths tremble, and turn back, only where records say so (`smoothest`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.space import hat_functions

MEMORIES = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28)  # in shares of the range of time
SWINGS = (np.pi, 2 * np.pi, 4 * np.pi)  # of memories from .16 on: half a swing, one, and two
LAGS = np.linspace(0.02, 1.0, 50)  # at which a curve is followed
NEAR_CURVE = 0.03  # how near at most, root mean square; else as near as pairs of such lags say
AGREES = 0.3  # mean squared distance, in squared errors, of a mixture that agrees; 1 is biased
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
    # the means over the lags of each bin, short lags being more frequent
    lags = known.edges[:, :1] + _WITHIN * (known.edges[:, 1:] - known.edges[:, :1])
    often = (1 - lags) / (1 - lags).sum(axis=1, keepdims=True)
    weights = hat_functions(np.clip(lags, LAGS[0], LAGS[-1]).ravel(), LAGS)
    kernels = np.einsum("lw,lwn,nj->lj", often, weights.reshape(*lags.shape, -1), at_lags)
    rho, error = known.measured, known.error
    if _nothing_is_forgotten(kernels[:, -1], rho, error):
        return np.zeros(len(_PROCESSES))
    if not known.smooth:
        bins = np.minimum(np.searchsorted(known.edges[:, 1], LAGS), len(error) - 1)
        kernels, rho, error = at_lags, known.curve, np.maximum(error[bins], NEAR_CURVE)
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


def _nothing_is_forgotten(along: Floats, measured: Floats, error: Floats) -> bool:
    """Whether correlations in the bins (L,) are likelier those of people who forget nothing than
    any from -1 to 1, if both were as likely: how dense they are at `along`, over 1/2 before they
    were measured (Savage and Dickey's ratio)."""
    from scipy.special import ndtr

    inside = ndtr((1 - measured) / error) - ndtr((-1 - measured) / error)
    log_density = -(((along - measured) / error) ** 2) / 2 - np.log(error * inside)
    return bool((log_density + np.log(2 / np.sqrt(2 * np.pi))).sum() >= 0)


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
