"""The six handwritten digits of the paper: people, its recipes and ours, and their scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privtraj import datasets
from privtraj.base.arrays import Floats
from privtraj.data.snapshots import Snapshots
from privtraj.metrics.distances import average_squared_w2
from privtraj.model.model import TrajectoryModel
from privtraj.paper.synthesizer import PaperSynthesizer, Phase, WarmStart
from privtraj.privacy.events import Adjacency
from privtraj.synthesizer import TrajectorySynthesizer
from reproduce.drawing import dithered, thinned
from reproduce.recipes import means_noise, recipe
from reproduce.strokes import strokes
from reproduce.tables import Row

DIGITS = (1, 2, 3, 6, 7, 9)
QUICK_DIGITS = (7,)
RELEASED = 600  # people drawn from a model at each time
SHOWN = 50  # paths in a panel
SEED = 0  # of figures, which show one run

CLAIMED = {"epsilon": 2.0, "delta": 1e-3}  # of the warm-started runs
ADJACENCY: Adjacency = "replace-one"  # the paper's neighbours
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
    paths = strokes(path, digit, times).astype(np.float64)
    at, points = datasets.one_snapshot_each(paths, seed)
    return Digit(paths, snapshots_at(np.arange(float(times)), at, points), len(at) // times)


def snapshots_at(times: Floats, at: Floats, points: Floats) -> Snapshots:
    """Those of the points (n, 2), seen at (n,), that were seen at one of the times."""
    mine = np.isin(at, times)
    return Snapshots.from_arrays(at[mine], points[mine], bounds=[(0, 1), (0, 1)], bins=times)


def warm_recipe(people: int, seed: int) -> PaperSynthesizer:
    """Private means at (1, 5e-4), then 20 steps at a claimed (1, 5e-4)."""
    phases = [Phase(20, 0.001, 1.0, 20 / people)]
    start = WarmStart("means", means_noise(1.0, 5e-4), spread=1e-3)
    delta = CLAIMED["delta"]
    return recipe(phases, people, start=start, delta=delta, adjacency=ADJACENCY, seed=seed)


def plain_recipe(people: int, seed: int) -> PaperSynthesizer:
    """No warm start: 250 steps from N(1/2, .2 I)."""
    phases = [Phase(250, 0.01, 1.0, 5 / people)]
    return recipe(phases, people, delta=1e-4, adjacency=ADJACENCY, seed=seed)


def clouds(model: TrajectoryModel, seed: int) -> Floats:
    """(T, n, 2) at the model's times: the paper's particles as they are, ours as people."""
    if model.settings.get("recipe") == "paper":
        return model.marginals
    return np.swapaxes(model.sample(RELEASED, times=model.times, seed=seed).values, 0, 1)


def error(model: TrajectoryModel, truth: list[Floats], seed: int) -> float:
    """Squared W2, averaged over the model's times."""
    return average_squared_w2(clouds(model, seed), truth)


class Compared(NamedTuple):
    """A run of the paper and one of ours on a digit: numbers, and what panels show."""

    row: Row
    drawn: dict[str, Any]


def compared(
    data: Digit, published: TrajectoryModel, epsilon: float, delta: float, people: int
) -> Compared:
    """The paper's run beside ours at (epsilon, delta), drawn with `people` dots at each time."""
    ours = TrajectorySynthesizer(epsilon, delta, adjacency=ADJACENCY, seed=SEED)
    model = ours.fit(data.snapshots)
    row: Row = {"people_per_time": data.people}
    for name, each in (("recipe", published), ("ours", model)):
        row[f"{name}_squared_w2"] = error(each, data.truth, SEED)
        row[f"{name}_exact_epsilon"] = each.certificate.epsilon
    drawn = {
        "true clouds": [dithered(thinned(cloud, people)) for cloud in data.truth],
        "recipe clouds": published.marginals,
        "recipe paths": straight(published, SHOWN),
        "ours clouds": clouds(model, SEED)[:, :people],
        "ours paths": smooth(model, SHOWN, len(data.truth), SEED),
    }
    return Compared(row, drawn)


def straight(model: TrajectoryModel, count: int) -> NDArray[Any]:
    """(count, T, 2) paths of particles, as the paper draws them."""
    return model.sample(count, observation_noise=False, interpolation="linear", seed=SEED).values


def smooth(model: TrajectoryModel, count: int, times: int, seed: int) -> NDArray[Any]:
    """(count, 8 T - 7, 2) paths of people."""
    fine = np.linspace(0, times - 1, 8 * (times - 1) + 1)
    return model.sample(count, times=fine, interpolation="spline", seed=seed).values
