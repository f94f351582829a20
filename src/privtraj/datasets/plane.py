"""Paths in the plane that are known: three modes that part and meet again, as in the paper;
diffusions; cells that divide. And snapshots of paths: everybody seen once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError

When = int | ArrayLike  # so many times spread over [0, 1], or the times themselves


def unit_times(times: When) -> Floats:
    """The times (T,) themselves."""
    u = np.linspace(0.0, 1.0, times) if isinstance(times, int) else np.asarray(times, np.float64)
    if u.ndim != 1 or len(u) == 0 or not ((u >= 0) & (u <= 1)).all():
        raise InputError("times must be a number of times, or times between 0 and 1")
    return u


def one_snapshot_each(
    paths: ArrayLike, seed: int = 0, times: ArrayLike | None = None
) -> tuple[Floats, NDArray[Any]]:
    """Times (n,) and points (n, d) in which every path (.., T, d) is seen at most once.

    The paths are shuffled once and cut into T groups of floor(n / T), and of group i only the
    points at time i are kept. times: (T,), by default 0, 1, .., T - 1.
    """
    paths = np.asarray(paths)
    if paths.ndim != 3 or paths.shape[1] > len(paths):
        raise InputError("paths must have shape (n, T, d) with at least as many paths as times")
    n, n_times, _ = paths.shape
    at = np.arange(n_times) if times is None else np.asarray(times)
    if at.shape != (n_times,):
        raise InputError(f"times must list {n_times} times, as many as each path has")
    size = n // n_times
    groups = np.random.default_rng(seed).permutation(n)[: size * n_times].reshape(n_times, size)
    points = paths[groups, np.arange(n_times)[:, None]]
    return np.repeat(at.astype(np.float64), size), points.reshape(n_times * size, -1)


# Three modes ----------------------------------------------------------------------------------

THREE_MODES_BOUNDS = ((-1.5, 1.5), (-1.5, 1.5))
THREE_MODES_VARIANCE = 0.005


def three_modes(
    n_per_time: int, times: When = 10, seed: int = 0, *, dimensions: int = 2, rotation_seed: int = 0
) -> tuple[Floats, Floats]:
    """Times (n,) and points (n, D), n = n_per_time T: independent people at each time u.

        upper (-cos pi u, sin pi u)    line (2u - 1, 0)    lower (-cos pi u, -sin pi u)

    One third of the people are on each mode, with N(0, .005 I) noise. times: T times spread over
    [0, 1], or the times themselves. dimensions: D > 2 places the plane in R^D by a random
    orthonormal map, which depends on `rotation_seed` alone, and the noise fills all D dimensions;
    every coordinate has the bounds (-1.5, 1.5) in any D.
    """
    u = unit_times(times)
    # Shifting the modes by one at each time spreads the remainder of n_per_time / 3.
    modes = (np.arange(n_per_time)[None, :] + np.arange(len(u))[:, None]) % 3
    centres = three_modes_centres(u)[np.arange(len(u))[:, None], modes]
    points = _noisy(centres, seed, dimensions, rotation_seed)
    return np.repeat(u, n_per_time), points.reshape(-1, dimensions)


def three_modes_paths(
    n: int, times: When = 10, seed: int = 0, *, dimensions: int = 2, rotation_seed: int = 0
) -> Floats:
    """Paths (n, T, D) of the people of `three_modes`: each stays on its mode, with fresh noise."""
    centres = three_modes_centres(unit_times(times))[:, np.arange(n) % 3].swapaxes(0, 1)
    return _noisy(centres, seed, dimensions, rotation_seed)


def three_modes_centres(u: Floats) -> Floats:
    """Centres (T, 3, 2) of the three modes."""
    x, y, zero = -np.cos(np.pi * u), np.sin(np.pi * u), np.zeros_like(u)
    return np.stack([[x, y], [2 * u - 1, zero], [x, -y]]).transpose(2, 0, 1)


def _noisy(centres: Floats, seed: int, dimensions: int, rotation_seed: int) -> Floats:
    """Centres (..., 2) mapped to R^D by two orthonormal rows, plus noise."""
    if dimensions < 2:
        raise InputError(f"dimensions is {dimensions}: the three modes need at least two")
    if dimensions > 2:
        turn = np.random.default_rng(rotation_seed).standard_normal((dimensions, 2))
        centres = centres @ np.linalg.qr(turn)[0].T
    noise = np.random.default_rng(seed).standard_normal(centres.shape)
    return centres + np.sqrt(THREE_MODES_VARIANCE) * noise


# Diffusions -----------------------------------------------------------------------------------

PROCESSES = ("ornstein-uhlenbeck", "double-well", "bifurcation")
PROCESS_BOUNDS = (-1.5, 1.5)  # of every coordinate

_FINEST = 1 / 256  # time step of a simulation
_SHAKE = 0.4  # standard deviation of the noise per unit of time


def process_paths(
    name: str, n: int, times: When = 10, seed: int = 0, *, dimensions: int = 2
) -> Floats:
    """Paths (n, T, D) of a known process over [0, 1], of increasing times, by Euler's method.

        ornstein-uhlenbeck   dx = 6 (c(t) - x) dt + .4 dB,  c = (1.6 t - .8, .6 sin 2 pi t)
        double-well          dx_1 = 6 (x_1 - x_1^3) dt + .4 dB, from the ridge: half fall either way
        bifurcation          dx_1 = 1.6 dt,  dx_2 = 12 (a(t) x_2 - x_2^3) dt, a from -1 to 1 at 1/3

    Coordinates without an equation of their own return to 0 like the first. Paths are followed
    through all times, so true trajectories are known. Every coordinate has the bounds (-1.5, 1.5).
    """
    if name not in PROCESSES:
        raise InputError(f"there is no process '{name}': use one of {', '.join(PROCESSES)}")
    if dimensions < 2:
        raise InputError(f"dimensions is {dimensions}: the processes need at least two")
    rng = np.random.default_rng(seed)
    x = 0.15 * rng.standard_normal((n, dimensions))
    if name != "double-well":
        x[:, 0] -= 0.8
    seen, now = [], 0.0
    for moment in unit_times(times):
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


# Cells that divide ----------------------------------------------------------------------------

BRANCH_RATES = (2.0, 0.5)  # divisions per cell and unit of time, in the upper and lower branch

_RETURN = 6.0  # rate at which a cell returns to the middle of its branch
_SPREAD = 0.1  # standard deviation around it


@dataclass(frozen=True, eq=False)
class BranchingPopulation:
    """All N cells that were alive at each time, and who comes from whom.

    times: (N,) of the reading.  points: (N, 2).  cells: (N,) number of the cell.  branches: (N,)
    0 for the upper, 1 for the lower branch.  parents: (C,) number of the mother of each cell that
    ever lived, -1 for the first ones.  counts: (T, 2) cells alive in each branch at each time.
    expected: (T, 2) their expectation, n0/2 e^(rate t).
    """

    times: Floats
    points: Floats
    cells: Ints
    branches: Ints
    parents: Ints
    counts: Ints
    expected: Floats

    @property
    def masses(self) -> Floats:
        """(T, 2) expected share of the population in each branch."""
        return self.expected / self.expected.sum(axis=1, keepdims=True)


def branching_population(n0: int, times: When = 10, seed: int = 0) -> BranchingPopulation:
    """n0 cells at time 0, every second one bound for each branch, of increasing times.

    A cell lives an exponential time of rate 2 (upper branch) or 1/2 (lower branch), then divides in
    two: numbers grow by e^2 and e^(1/2) over [0, 1] (Yule's process). The middle of the branches is

        (1.6 t - .8, +-.7 s(t)),   s from 0 at t = 1/4 to 1 at t = 3/4, smoothly,

    around which cells follow an Ornstein-Uhlenbeck process of rate 6 and standard deviation .1;
    daughters begin where their mother ended.
    """
    u = unit_times(times)
    rng = np.random.default_rng(seed)
    rates = np.array(BRANCH_RATES)
    cells, branch = np.arange(n0), np.arange(n0) % 2
    parents = [np.full(n0, -1)]
    off, at = _SPREAD * rng.standard_normal((n0, 2)), np.zeros(n0)
    divides = rng.exponential(1 / rates[branch])
    born, seen = n0, []
    for moment in u:
        while (ready := divides < moment).any():
            ends = _returned(off[ready], (divides - at)[ready], rng)
            mothers, kind, birth = (np.repeat(v[ready], 2) for v in (cells, branch, divides))
            daughters = born + np.arange(len(mothers))
            born += len(daughters)
            parents.append(mothers)
            cells = np.concatenate([cells[~ready], daughters])
            off = np.concatenate([off[~ready], np.repeat(ends, 2, axis=0)])
            at = np.concatenate([at[~ready], birth])
            branch = np.concatenate([branch[~ready], kind])
            divides = np.concatenate([divides[~ready], birth + rng.exponential(1 / rates[kind])])
        off, at = _returned(off, moment - at, rng), np.full(len(cells), moment)
        s = np.clip(2 * moment - 0.5, 0.0, 1.0)
        rise = np.where(branch == 0, 0.7, -0.7) * s**2 * (3 - 2 * s)
        middle = np.stack([1.6 * at - 0.8, rise], axis=1)
        seen.append((at, middle + off, cells, branch))
    readings, points, alive, kinds = (np.concatenate(column) for column in zip(*seen, strict=True))
    counts = np.stack([np.bincount(kind, minlength=2) for *_, kind in seen])
    founders = np.bincount(np.arange(n0) % 2, minlength=2).astype(np.float64)
    expected = founders * np.exp(np.outer(u, rates))
    lineage = np.concatenate(parents)
    return BranchingPopulation(readings, points, alive, kinds, lineage, counts, expected)


def _returned(off: Floats, lags: Floats, rng: np.random.Generator) -> Floats:
    """Distances (n, 2) from the middle of the branch, a time `lags` (n,) later."""
    kept = np.exp(-_RETURN * lags)[:, None]
    return kept * off + _SPREAD * np.sqrt(1 - kept**2) * rng.standard_normal(off.shape)
