"""Known stochastic differential equations, whose paths are followed through all times."""

from __future__ import annotations

import math

import numpy as np

from privtraj.base.arrays import Floats

PROCESS_BOUNDS = (-1.5, 1.5)  # of every coordinate

_FINEST = 1 / 256  # time step of a simulation
_SHAKE = 0.4  # standard deviation of the noise per unit of time


def diffusion(name: str, n: int, u: Floats, dimensions: int, rng: np.random.Generator) -> Floats:
    """Paths (n, T, D) of one of the equations of `process_paths`, by Euler's method."""
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
