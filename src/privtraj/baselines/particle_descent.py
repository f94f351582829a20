"""PrivPGD: noisy tables of all pairs of columns, and particles that gradient descent takes to them.

Donhauser, Abad, Hulkund and Yang, "Privacy-preserving data release leveraging optimal transport and
particle gradient descent" (2024). Their package asks for one release each of Python, NumPy and
torch, so this follows the paper and, for its settings, the code (jaabmar/private-pgd):

    measure   a table for every pair of columns, Gaussian noise in all cells
    project   each signed table to the shares nearest in sliced W1, by Adam on their logarithms
    descend   on the sum over pairs of sliced W2 squared between particles and tables, by Adam, of
              which each step takes a few pairs, a few directions and a part of the coordinates

A category is places in [0, 1], as there, in the order of its levels. Different here: tables are per
time, and go through the guard, whose noise is integers and whose accountant is exact; directions of
the projection are drawn once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from privtraj.base.arrays import Floats, Mask, systematic
from privtraj.base.errors import InputError, check_whole
from privtraj.baselines.base import Baseline, Release
from privtraj.data.snapshots import Snapshots
from privtraj.measures.base import left
from privtraj.privacy import questions
from privtraj.privacy.calibration import calibrate_gaussian
from privtraj.privacy.guard import Guard
from privtraj.privacy.questions import Gaussian, Table, Tables

RATE, DECAY, DECAYS = 0.1, 0.75, 20
"""Of Adam: the first rate, its factor, and how often it is applied over all steps."""
PAIRS, DIRECTIONS, KEPT = 5, 10, 0.2
"""Of a step: pairs of columns, directions, and the share of coordinates that move."""
PROJECTION_STEPS, PROJECTION_DIRECTIONS = 500, 50


@dataclass(kw_only=True)
class PrivPGD(Baseline):
    """Particles that fit noisy tables of all pairs of columns, at each time by itself.

    Mechanism: `Guard.tables` of (time, column, column) for all pairs, with equal weights.
    Sensitivity: that of the guard; one Gaussian event, to which all of epsilon goes. Needs a delta.
    cells: per number.  steps: of the descent.
    """

    pure: ClassVar[bool] = False
    mixed: ClassVar[bool] = True

    cells: int = 8
    steps: int = 2000

    def _release(self, snapshots: Snapshots, guard: Guard, rng: np.random.Generator) -> Release:
        guard = guard.in_slabs(snapshots.axis.bins)  # as tables pay for several records
        mu = left(guard, calibrate_gaussian)
        sides = guard.axes.sides(self.cells)
        pairs: list[tuple[int, ...]] = list(combinations(range(len(sides)), 2))
        pairs = pairs or [(0,)]  # one column has a table of its own
        tables = [Table(snapshots.axis.bins, _only(sides, pair)) for pair in pairs]
        counts = guard.ask(questions.Release(Tables(tables), Gaussian(1 / mu), "pairs of columns"))
        wanted = []
        for noisy, pair in zip(shares(counts), pairs, strict=True):
            centres = _centres([sides[k] for k in pair])
            fitted = projected(noisy, centres, rng)
            drawn = [centres[systematic(row, self.points, rng)] for row in fitted]
            wanted.append(np.stack(drawn))
        start = rng.uniform(size=(guard.n_times, self.points, len(sides)))
        particles = descended(start, pairs, wanted, self.steps, rng)
        return Release(particles, np.full(guard.n_times, 1 / (self.cells * 12**0.5)))

    def check(self) -> None:
        super().check()
        check_whole("cells", self.cells, 2, 256)
        check_whole("steps", self.steps, 1, 100_000)
        if self.delta == 0:
            raise InputError("tables with Gaussian noise need a delta above 0: set one")


def _only(sides: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Cells along these axes, one along all others."""
    return tuple(side if k in axes else 1 for k, side in enumerate(sides))


def _centres(sides: Sequence[int]) -> Floats:
    """Middles (C, k) of all cells, the last axis fastest."""
    middles = [(np.arange(side) + 0.5) / side for side in sides]
    return np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1).reshape(-1, len(sides))


def shares(counts: Sequence[Floats]) -> list[Floats]:
    """Noisy counts (T, C) of each table over the number of people at each time, as all have it.

    The sum over C cells has C times the variance of a cell, so tables have the weight 1 / C.
    """
    weights = np.array([1 / table.shape[1] for table in counts])
    sums = np.stack([table.sum(axis=1) for table in counts])
    people = np.maximum(weights @ sums / weights.sum(), 1.0)
    return [table / people[:, None] for table in counts]


def projected(noisy: Floats, centres: Floats, rng: np.random.Generator) -> Floats:
    """Shares (T, C) that are nearest to signed ones (T, C) on places (C, k) in sliced W1.

    mean over directions of  sum_j gap_j | sum_{i <= j} (u - v)_i |,  places in their order there.
    """
    places = _directions(PROJECTION_DIRECTIONS, centres.shape[1], rng) @ centres.T
    order = np.argsort(places, axis=1)
    back = np.argsort(order, axis=1)
    gaps = np.diff(np.take_along_axis(places, order, axis=1), axis=1, append=np.nan)
    gaps[:, -1] = 0.0

    def gradient(u: Floats) -> Floats:
        pushed = gaps * np.sign(np.cumsum((u - noisy)[:, order], axis=2))
        later = np.cumsum(pushed[..., ::-1], axis=2)[..., ::-1]
        return np.take_along_axis(later, back[None], axis=2).mean(axis=1)

    positive = np.maximum(noisy, 0) + 1e-9
    logs = np.log(positive / positive.sum(axis=1, keepdims=True))
    adam = Adam(logs.shape)
    for step in range(PROJECTION_STEPS):
        u = _softmax(logs)
        slope = gradient(u)
        logs = logs - adam.step(
            u * (slope - (u * slope).sum(axis=1, keepdims=True)), _rate(step, PROJECTION_STEPS)
        )
    return _softmax(logs)


def descended(
    particles: Floats,
    pairs: Sequence[Sequence[int]],
    wanted: Sequence[Floats],
    steps: int,
    rng: np.random.Generator,
) -> Floats:
    """Particles (T, m, d) near the points (T, m, k) that are wanted of each pair of columns."""
    adam = Adam(particles.shape)
    for step in range(steps):
        slope = np.zeros_like(particles)
        for one in rng.choice(len(pairs), min(PAIRS, len(pairs)), replace=False):
            columns = list(pairs[one])
            slope[..., columns] += sliced_slope(particles[..., columns], wanted[one], rng)
        moving = rng.random(particles.shape) < KEPT
        particles = np.clip(particles - adam.step(slope, _rate(step, steps), moving), 0, 1)
    return particles


def sliced_slope(x: Floats, y: Floats, rng: np.random.Generator) -> Floats:
    """The gradient (T, m, k), times m, of sliced W2 squared between points (T, m, k)."""
    directions = _directions(DIRECTIONS, x.shape[2], rng)
    along, there = (np.moveaxis(points @ directions.T, 2, 0) for points in (x, y))
    order = np.argsort(along, axis=2)
    off = np.take_along_axis(along, order, axis=2) - np.sort(there, axis=2)
    back = np.take_along_axis(off, np.argsort(order, axis=2), axis=2)
    return np.einsum("ltm,lk->tmk", back, directions) * 2 / DIRECTIONS


class Adam:
    """Kingma and Ba (2015); coordinates that do not move keep their averages."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._mean, self._square, self._steps = np.zeros(shape), np.zeros(shape), 0

    def step(self, slope: Floats, rate: float, moving: Mask | None = None) -> Floats:
        """What to subtract."""
        at = np.ones(slope.shape, bool) if moving is None else moving
        self._steps += 1
        self._mean = np.where(at, 0.9 * self._mean + 0.1 * slope, self._mean)
        self._square = np.where(at, 0.999 * self._square + 0.001 * slope**2, self._square)
        scale = rate * np.sqrt(1 - 0.999**self._steps) / (1 - 0.9**self._steps)
        return np.where(at, scale * self._mean / (np.sqrt(self._square) + 1e-8), 0.0)


def _rate(step: int, steps: int) -> float:
    return RATE * DECAY ** (step * DECAYS // steps)


def _directions(count: int, dimensions: int, rng: np.random.Generator) -> Floats:
    drawn = rng.standard_normal((count, dimensions))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def _softmax(logs: Floats) -> Floats:
    raised: Floats = np.exp(logs - logs.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)
