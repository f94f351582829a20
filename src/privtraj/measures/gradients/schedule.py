"""The numbers that change from step to step: search, anneal the bandwidth, settle."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.measures.gradients.constants import (
    ANNEALED_TO,
    HOT_SHARE,
    LAST_STEP_SIZE,
    LEAST_ANNEALING,
    MASS_RATE,
    NOISE_LIMIT,
    SEARCH_SHRINK,
    SEARCH_STEPS,
    SETTLING_GROW,
    SETTLING_MASSES,
    SETTLING_SHARE,
    SETTLING_SHRINK,
    STEP_SIZE,
    TEMPERATURE,
)


class Schedule(NamedTuple):
    """Numbers (K,) of all steps; those of one step (`stride`) are arrays too, compiled once."""

    step_size: Floats  # alpha
    time_coupling: Floats  # weight of the neighbours
    temperature: Floats  # standard deviation of a unit step's noise, in bandwidths
    noise_limit: Floats  # largest noise of one step, in bandwidths over all coordinates
    mass_rate: Floats  # gain of the running masses
    relocate: Floats  # 1 while light particles may move, else 0
    learn: Floats  # exponent of the bandwidth's move to its estimate
    shrink: Floats  # smallest factor of the bandwidth in one step
    grow: Floats  # largest

    @property
    def steps(self) -> int:
        """K."""
        return len(self.step_size)


def gradient_schedule(steps: int, time_coupling: float, features: int = 2) -> Schedule:
    """Find the people's place and scale, anneal the bandwidth, then settle with smaller steps.

    Langevin noise moves a particle by as many bandwidths in all d coordinates together as in two:
    responsibilities follow the distance, and a particle that is kicked further each time the more
    coordinates there are loses its people, and then its way.
    """
    s = np.arange(steps)
    annealed = max(LEAST_ANNEALING, round((1 - SETTLING_SHARE) * steps))
    searching, settling, hot = s < SEARCH_STEPS, s >= annealed, s < HOT_SHARE * steps
    into = np.clip((s - annealed + 1) / max(steps - annealed, 1), 0.0, 1.0)
    step_size = STEP_SIZE * (LAST_STEP_SIZE / STEP_SIZE) ** into
    annealing = ANNEALED_TO ** (1 / max(annealed - SEARCH_STEPS, 1))
    averaging = 1 / (np.maximum(s - annealed, 0) + SETTLING_MASSES)
    return Schedule(
        step_size=step_size,
        time_coupling=np.where(searching, 0.0, time_coupling * step_size),
        temperature=np.where(hot, TEMPERATURE * math.sqrt(2 / max(features, 2)), 0.0),
        noise_limit=np.full(steps, NOISE_LIMIT),
        mass_rate=np.where(searching, 0.0, np.where(settling, averaging, MASS_RATE)),
        relocate=(~searching & hot).astype(float),
        learn=np.where(settling, step_size, 1.0),
        shrink=np.where(searching, SEARCH_SHRINK, np.where(settling, SETTLING_SHRINK, annealing)),
        grow=np.where(settling, SETTLING_GROW, 1.0),
    )
