"""Known stochastic differential equations, whose paths are followed through all times."""

from __future__ import annotations

import math

import numpy as np

from privtraj.arrays import Floats
from privtraj.datasets.times import When, unit_times
from privtraj.errors import InputError

PROCESS_BOUNDS = (-1.5, 1.5)  # of every coordinate
PROCESSES = ("ornstein-uhlenbeck", "double-well", "bifurcation")

_FINEST = 1 / 256  # time step of a simulation
_SHAKE = 0.4  # standard deviation of the noise per unit of time


def process_paths(
    name: str, n: int, times: When = 10, seed: int = 0, *, dimensions: int = 2
) -> Floats:
    """Paths (n, T, D) of a stochastic differential equation over [0, 1], by Euler's method.

        ornstein-uhlenbeck   dx = 6 (c(t) - x) dt + .4 dB,  c = (1.6 t - .8, .6 sin 2 pi t)
        double-well          dx_1 = 6 (x_1 - x_1^3) dt + .4 dB, from the ridge: half fall either way
        bifurcation          dx_1 = 1.6 dt,  dx_2 = 12 (a(t) x_2 - x_2^3) dt, a from -1 to 1 at 1/3

    Coordinates without an equation of their own return to 0 like the first. Paths are followed
    through all times, so true trajectories are known.
    """
    if name not in PROCESSES:
        raise InputError(f"there is no process '{name}': use one of {', '.join(PROCESSES)}")
    if dimensions < 2:
        raise InputError(f"dimensions is {dimensions}: the processes need at least two")
    u = unit_times(times)
    rng = np.random.default_rng(seed)
    x = 0.15 * rng.standard_normal((n, dimensions))
    if name != "double-well":
        x[:, 0] -= 0.8
    seen, now = [], 0.0
    for moment in u:
        grid = np.linspace(now, moment, math.ceil((moment - now) / _FINEST) + 1)
        for t, dt in zip(grid[:-1], np.diff(grid), strict=True):
            noise = math.sqrt(dt) * _SHAKE * rng.standard_normal(x.shape)
            x = np.clip(x + dt * _drift(name, t, x) + noise, *PROCESS_BOUNDS)
        now = float(moment)
        seen.append(x)
    return np.stack(seen, axis=1)


def _drift(name: str, t: float, x: Floats) -> Floats:
    drift = -6 * x
    if name == "ornstein-uhlenbeck":
        drift[:, 0] += 6 * (1.6 * t - 0.8)
        drift[:, 1] += 6 * 0.6 * math.sin(2 * math.pi * t)
    elif name == "double-well":
        drift[:, 0] = 6 * (x[:, 0] - x[:, 0] ** 3)
    else:
        drift[:, 0] = 1.6
        drift[:, 1] = 12 * (min(3 * t - 1, 1.0) * x[:, 1] - x[:, 1] ** 3)
    return drift
