"""Processes with known paths, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError
from privtraj.datasets.diffusions import diffusion
from privtraj.datasets.journeys import inertia, rotation, vehicles
from privtraj.datasets.times import When, unit_times

Simulate = Callable[[int, Floats, int, np.random.Generator], Floats]

_DIFFUSIONS = ("ornstein-uhlenbeck", "double-well", "bifurcation")
_SIMULATED: dict[str, Simulate] = {
    **{name: partial(diffusion, name) for name in _DIFFUSIONS},
    "rotation": rotation,
    "inertia": inertia,
    "vehicles": vehicles,
}
PROCESSES = tuple(_SIMULATED)


def process_paths(
    name: str, n: int, times: When = 10, seed: int = 0, *, dimensions: int = 2
) -> Floats:
    """Paths (n, T, D) of a known process over [0, 1], of increasing times.

        ornstein-uhlenbeck   dx = 6 (c(t) - x) dt + .4 dB,  c = (1.6 t - .8, .6 sin 2 pi t)
        double-well          dx_1 = 6 (x_1 - x_1^3) dt + .4 dB, from the ridge: half fall either way
        bifurcation          dx_1 = 1.6 dt,  dx_2 = 12 (a(t) x_2 - x_2^3) dt, a from -1 to 1 at 1/3
        rotation             x(t) = R(3/2 pi t) x(0): a flow turns a cloud that is not round
        inertia              dx = v dt,  dv = -(2 v + 16 x) dt + s dB: smooth, swings through 0
        vehicles             driving between places of a city, with stops: C1 paths in the plane

    The first three are simulated by Euler's method, the others are exact at any times. Coordinates
    without an equation of their own return to 0 like the first; those of the rotation stay. Paths
    are followed through all times, so true trajectories are known. Every coordinate has the bounds
    (-1.5, 1.5).
    """
    if name not in PROCESSES:
        raise InputError(f"there is no process '{name}': use one of {', '.join(PROCESSES)}")
    if dimensions < 2:
        raise InputError(f"dimensions is {dimensions}: the processes need at least two")
    return _SIMULATED[name](n, unit_times(times), dimensions, np.random.default_rng(seed))
