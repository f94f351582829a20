"""People on modes that move: which one each is on, how many are on each, who changes.

Centres are (T, k, d). Modes closer than `APART` standard deviations of their people cannot be told
apart by the nearest centre, so weights and jumps are defined at the other times only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privtraj.arrays import Mask

Values = NDArray[np.floating[Any]]
Modes = NDArray[np.intp]

APART = 4.0


class Jumps(NamedTuple):
    """Share of (path, consecutive times) pairs that change mode; share of paths that ever do."""

    per_transition: float
    per_path: float


def times_apart(centres: Values, deviation: float) -> Mask:
    """(T,) whether all modes are more than APART standard deviations from each other."""
    k = centres.shape[1]
    one, other = np.triu_indices(k, 1)
    distances = np.linalg.norm(centres[:, one] - centres[:, other], axis=-1)
    return np.asarray(distances.min(axis=1) > APART * deviation)


def nearest_mode(values: Values, centres: Values) -> Modes:
    """Index (n, T) of the centre (T, k, d) nearest to each path's value (n, T, d) at each time."""
    squared = ((values[:, :, None, :] - centres[None]) ** 2).sum(axis=-1)
    return np.asarray(squared.argmin(axis=-1))


def mode_weights(modes: Modes, k: int) -> Values:
    """Share (T, k) of people on each mode, modes (n, T)."""
    return np.stack([(modes == j).mean(axis=0) for j in range(k)], axis=1)


def unevenness(weights: Values) -> Values:
    """(T,) largest distance of a weight (T, k) from 1/k."""
    return np.asarray(np.abs(weights - 1 / weights.shape[1]).max(axis=1))


def jumps(modes: Modes) -> Jumps:
    """How often paths, modes (n, T), change mode."""
    changed = modes[:, 1:] != modes[:, :-1]
    return Jumps(float(changed.mean()), float(changed.any(axis=1).mean()))


def forced_jumps(weights: Values) -> float:
    """Share of transitions that jump, at least, if paths change to a neighbouring mode only.

    weights: (T, k), modes in order. Between modes j and j + 1 the change of w_1 + .. + w_j must
    cross, whatever the plan. Cheapest plans do jump to neighbours: two short moves cost less than a
    long one.
    """
    crossing = np.cumsum(np.diff(weights, axis=0), axis=1)[:, :-1]
    return float(np.abs(crossing).sum(axis=1).mean())
