"""Which slabs of time: motion that slabs hide against the noise of fewer people in each.

A slab is a run of neighbouring moments that are measured as one. Where people move at speed v, a
slab of width w hides v^2 w^2 / 12 of squared W2, and costs the noise of its people, c / (n w e) for
n people per time; the sum over time is least for slabs of
    density 1 / w  ~  (v^2)^(1/3):
short where people move fast. Curves through slabs (`curves`) see more than that: what K slabs hide
of a motion y is R y, the rest that no such curve shows, and the squared W2 to expect is
    E(K) = u tr(R Q R') / M  +  c K / (people epsilon),
with Q the second moment of the motion (`motion`) and u for motion that the look does not
show. It has its minimum at some K, which is flat: curves undo the blur of a slab to second order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.space import hat_functions
from privtraj.measures.windows.constants import (
    ACTION,
    HIDDEN_BENDING,
    SLAB_NOISE,
    SLAB_NOISE_OF_GRADIENTS,
    UNSEEN_MOTION,
)
from privtraj.measures.windows.curves import knots_of, penalty
from privtraj.measures.windows.motion import slab_means

FEWEST_SLABS = 2  # curves need two ends


class SlabChoice(NamedTuple):
    """Slabs (M,) of the moments, and why: squared W2 to expect from motion and from noise."""

    slab_of_moment: Ints
    motion: float
    noise: float


def choose_slabs(
    motion: Floats, moments: Floats, people: float, epsilon: float, features: int, most: int
) -> SlabChoice:
    """The slabs with the least E, `most` at most.

    motion: Q (M, M) at the moments (M,) in [0, 1].  people: at all times together, released.
    """
    per_slab = SLAB_NOISE.get(features, SLAB_NOISE_OF_GRADIENTS) / (people * epsilon)
    clock = even_motion(motion, moments)
    options = []
    for wanted in ladder(most):
        slabs = slabs_of(clock, wanted)
        hidden = UNSEEN_MOTION * unseen(motion, moments, slabs)
        options.append(SlabChoice(slabs, hidden, (slabs[-1] + 1) * per_slab))
    return min(options, key=lambda option: option.motion + option.noise)


def ladder(most: int) -> list[int]:
    """Numbers of slabs to choose among: all up to 6, then in steps of a quarter, and the most."""
    numbers = np.unique(np.round(6 * 1.25 ** np.arange(40)).astype(int))
    return [k for k in (*range(FEWEST_SLABS, 6), *numbers.tolist()) if k < most] + [most]


def even_motion(motion: Floats, moments: Floats) -> Floats:
    """(M,) a clock from 0 to 1 on which slabs are equally long; time itself for people at rest."""
    squared_steps = np.diff(np.diff(motion, axis=0), axis=1).diagonal()  # E (y_i+1 - y_i)^2
    squared_speed = np.maximum(squared_steps, 0.0) / np.diff(moments) ** 2
    if not squared_speed.any():
        return (np.arange(len(moments)) + 0.5) / len(moments)
    density = np.cbrt(squared_speed)
    at_moment = np.append(density[:1], density) + np.append(density, density[-1:])
    passed = np.cumsum(at_moment) - at_moment / 2
    clock: Floats = passed / at_moment.sum()
    return clock


def slabs_of(clock: Floats, slabs: int) -> Ints:
    """(M,) number of the slab of each moment, equally long on the clock; none is empty."""
    numbers = np.minimum((clock * slabs).astype(np.int64), slabs - 1)
    if slabs >= len(clock):
        numbers = np.arange(len(clock))
    return np.unique(numbers, return_inverse=True)[1]


def even_slabs(moments: int, slabs: int) -> Ints:
    """(M,) number of the slab of each moment: runs of equal length, up to one."""
    return np.arange(moments) * slabs // moments


def unseen(motion: Floats, moments: Floats, slab_of_moment: Ints) -> float:
    """tr(R Q R') / M: mean square of the motion less its curve through the means of the slabs."""
    slabs, count = slab_of_moment[-1] + 1, len(moments)
    if slabs == count or not motion.any():
        return 0.0
    means = slab_means(slab_of_moment)
    basis = hat_functions(moments, knots_of(moments, slab_of_moment))
    in_slab = means @ basis
    normal = in_slab.T @ in_slab + penalty(slabs + 1, HIDDEN_BENDING, ACTION)
    curve = basis @ np.linalg.solve(normal, in_slab.T)  # R y = y - curve of the means of y
    rest = motion - curve @ (means @ motion)  # R Q: no product is larger than (M, K) by (K, M)
    return float((np.trace(rest) - np.sum(rest @ means.T * curve)) / count)
