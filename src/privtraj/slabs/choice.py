"""How many slabs of time: motion that slabs hide against the noise of fewer people in each.

A slab is a run of neighbouring time bins that are measured as one. Curves through K slabs
(`curves`) show a motion of frequency f but for a share r_K(f) of its energy, and every slab is
measured with the noise of people / K, so that the squared W2 to expect is
    E(K) = u sum_f energy_f r_K(f)  +  c K / (people epsilon),
with u for motion that the means and spreads do not show.
It has its minimum at some K, which is flat: curves undo the blur of a slab to second order.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from privtraj.arrays import Floats, Ints
from privtraj.slabs.constants import (
    ACTION,
    BENDING,
    SLAB_NOISE,
    SLAB_NOISE_OF_GRADIENTS,
    UNSEEN_MOTION,
)
from privtraj.slabs.curves import hat_functions, knots_of, penalty
from privtraj.slabs.motion import cosines


class SlabChoice(NamedTuple):
    """The number of slabs, and why: squared W2 to expect from motion and from noise."""

    slabs: int
    motion: float
    noise: float


def choose_slabs(
    energy: Floats, people: float, epsilon: float, features: int, bins: int
) -> SlabChoice:
    """The number of slabs of `bins` time bins with the least E.

    energy: (F - 1,) of the motion, seen in F bins.  people: in all bins together, released.
    """
    seen = len(energy) + 1
    moving = UNSEEN_MOTION * energy
    per_slab = SLAB_NOISE.get(features, SLAB_NOISE_OF_GRADIENTS) / (people * epsilon)
    options = [
        SlabChoice(slabs, float(moving @ unseen(seen, slabs, bins)), slabs * per_slab)
        for slabs in ladder(bins)
    ]
    return min(options, key=lambda option: option.motion + option.noise)


def ladder(bins: int) -> list[int]:
    """Numbers of slabs to choose among: all up to 6, then in steps of a quarter, and all bins."""
    numbers = np.unique(np.round(6 * 1.25 ** np.arange(40)).astype(int))
    return [k for k in (*range(2, 6), *numbers.tolist()) if k < bins] + [bins]


def slab_of_bin(bins: int, slabs: int) -> Ints:
    """(bins,) number of the slab of each bin: runs of equal length, up to one."""
    return np.arange(bins) * slabs // bins


@lru_cache(maxsize=512)
def unseen(seen: int, slabs: int, bins: int) -> Floats:
    """r_K(f) (F - 1,): mean square of sqrt(2) cos(pi f t) less its curve through K slab means."""
    if slabs >= bins:
        return np.zeros(seen - 1)
    grid = max(seen, 4 * slabs)
    t = (np.arange(grid) + 0.5) / grid
    of_bin = slab_of_bin(grid, slabs)
    means = (of_bin[None] == np.arange(slabs)[:, None]).astype(np.float64)
    means /= means.sum(axis=1, keepdims=True)
    basis = hat_functions(t, knots_of(t, of_bin))
    slab_basis = means @ basis
    normal = slab_basis.T @ slab_basis + penalty(slabs + 1, BENDING / 5, ACTION)
    curve = basis @ np.linalg.solve(normal, slab_basis.T) @ means
    waves = cosines(grid)[:, : seen - 1]
    share: Floats = np.mean((waves - curve @ waves) ** 2, axis=0)
    return share
