"""The six handwritten digits of the paper: people, its recipes, and how a result is scored."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from privtraj import datasets, metrics
from privtraj.arrays import Floats
from privtraj.data.snapshots import Snapshots
from privtraj.model import TrajectoryModel
from privtraj.paper.synthesizer import PaperSynthesizer, Phase, WarmStart
from privtraj.privacy.events import Adjacency

DIGITS = (1, 2, 3, 6, 7, 9)
QUICK_DIGITS = (7,)
RELEASED = 600  # people drawn from a model at each time

CLAIMED = {"epsilon": 2.0, "delta": 1e-3}  # of the warm-started runs
UNSTATED: dict[str, Any] = {"lam": 1.0, "sigma": 0.1}  # the paper does not say: lambda, sigma
ASSUMED = (
    "The paper does not state lambda, sigma and, at some figures, tau: lambda = 1, sigma = .1 of "
    "the box and tau = 1 are ours. The clip is joint over particles and sums are divided by rho N, "
    "without which no guarantee of this size holds."
)


class Digit(NamedTuple):
    """paths: (n, T, 2) of everybody.  snapshots: each person at one time.  people: per time."""

    paths: Floats
    snapshots: Snapshots
    people: int

    @property
    def truth(self) -> list[Floats]:
        """T clouds (n, 2): where everybody was."""
        return list(np.swapaxes(self.paths, 0, 1))


def load(path: Path, digit: int, times: int, seed: int) -> Digit:
    """Pen strokes, each seen once."""
    paths = datasets.strokes(path, digit, times).astype(np.float64)
    at, points = datasets.one_snapshot_each(paths, seed)
    snapshots = Snapshots.from_arrays(
        at, points, bounds=[(0, 1), (0, 1)], bins=np.arange(float(times))
    )
    return Digit(paths, snapshots, len(at) // times)


def means_noise(epsilon: float, delta: float) -> float:
    """Noise multiplier of the paper's Proposition 4.1: sqrt(8 log(1 / delta)) / epsilon."""
    return math.sqrt(8 * math.log(1 / delta)) / epsilon


def warm_recipe(people: int, seed: int, adjacency: Adjacency = "replace-one") -> PaperSynthesizer:
    """Private means at (1, 5e-4), then 20 steps at a claimed (1, 5e-4)."""
    return PaperSynthesizer(
        [Phase(20, 0.001, 1.0, 20 / people)],
        start=WarmStart("means", means_noise(1.0, 5e-4), spread=1e-3),
        delta=CLAIMED["delta"],
        adjacency=adjacency,
        count_epsilon=None,
        seed=seed,
        **UNSTATED,
    )


def plain_recipe(people: int, seed: int, adjacency: Adjacency = "replace-one") -> PaperSynthesizer:
    """No warm start: 250 steps from N(1/2, .2 I)."""
    return PaperSynthesizer(
        [Phase(250, 0.01, 1.0, 5 / people)],
        delta=1e-4,
        adjacency=adjacency,
        count_epsilon=None,
        seed=seed,
        **UNSTATED,
    )


def clouds(model: TrajectoryModel, seed: int) -> Floats:
    """(T, n, 2) at the model's times: the paper's particles as they are, ours as people."""
    if model.settings.get("recipe") == "paper":
        return model.marginals
    return np.swapaxes(model.sample(RELEASED, times=model.times, seed=seed).values, 0, 1)


def error(model: TrajectoryModel, truth: list[Floats], seed: int) -> float:
    """Squared W2, averaged over the model's times."""
    return metrics.average_squared_w2(clouds(model, seed), truth)
