"""Which memories people have, from how their values at two times go together.

Correlations are measured in a few bins of the lag, with errors. Many mixtures of inertial
processes,
    rho(h) = lasting + sum_j w_j k_j(h),      k_j of memory m_j and swing s_j (`inertia`),
agree with them; that of the slowest people is taken, of the least mean squared speed
    sum_j w_j (1 / m_j^2 + s_j^2):
paths tremble, and turn back, only where records say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from privtraj.arrays import Floats
from privtraj.reference.inertia import kept

MEMORIES = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28)
"""In shares of the range of time."""
SWINGS = (np.pi, 2 * np.pi, 4 * np.pi)
"""Radians per range of time, of memories from .16 on: half a swing, one and two over the range."""
LAGS = np.linspace(0.02, 1.0, 50)
"""At which a curve is followed."""
NEAR_CURVE = 0.03
"""How near to it, root mean square: a little below what its errors are at the usual budget."""
AGREES = 0.3
"""Mean squared distance, in squared errors, at which a mixture agrees; at 1 it is biased."""
TURNED_BACK = 1.5
"""Errors below 0 that a correlation must be for people to swing."""
AT_ONCE = 0.01
"""Memory, for the speed, of what is forgotten at once: the last to be believed."""

_STRENGTHS = np.geomspace(1e2, 1e-8, 51)  # of slowness against nearness, the slowest first
_LEAST = 0.02  # share that is worth a process of its own
_PROCESSES = np.array(
    [(0.0, 0.0), *((m, 0.0) for m in MEMORIES)]
    + [(m, s) for m, s in product(MEMORIES, SWINGS) if m >= 0.16]
)  # memory and swing of each
_WITHIN = (np.arange(12) + 0.5) / 12  # places within a bin of the lag
_WHOLE = 1e4  # weight of the shares' being all there is


class Correlations(NamedTuple):
    """What is known of one feature.

    edges: (L, 2) of bins of the lag, in shares of the range.  measured, error: (L,) in the bins.
    curve: (n,) at `LAGS`, of a family that goes through them.  smooth: whether paths are.
    """

    edges: Floats
    measured: Floats
    error: Floats
    curve: Floats
    smooth: bool


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

    if known.smooth:
        kernels, rho, error = _in_bins(known.edges), known.measured, known.error
    else:
        kernels = kept(LAGS, *_PROCESSES.T)
        rho, error = known.curve, np.full(len(LAGS), NEAR_CURVE)
    near = np.hstack([kernels, np.ones((len(kernels), 1))]) / error[:, None]  # the last one lasts
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
    shares: Floats = best[:-1] / max(best.sum(), 1e-9)
    return shares


def _in_bins(edges: Floats) -> Floats:
    """(L, J) the mean of each kernel over the lags of a bin, short ones being more frequent."""
    lags = edges[:, :1] + _WITHIN * (edges[:, 1:] - edges[:, :1])
    often = 1 - lags
    kernels: Floats = (kept(lags, *_PROCESSES.T) * often[..., None]).sum(axis=1)
    return kernels / often.sum(axis=1)[:, None]
