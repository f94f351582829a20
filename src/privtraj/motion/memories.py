"""Which memories people have: how their values at two times go together says it.

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
from privtraj.motion.reference import kept

MEMORIES = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28)  # in shares of the range of time
SWINGS = (np.pi, 2 * np.pi, 4 * np.pi)  # of memories from .16 on: half a swing, one, and two
LAGS = np.linspace(0.02, 1.0, 50)  # at which a curve is followed
NEAR_CURVE = 0.03  # how near, root mean square: a little below its errors at the usual budget
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
