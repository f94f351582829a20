"""People whose whole paths are known, each of them seen once: what the path experiments share.

Everything is in shares of the box, and over times from 0 to 1.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))  # for its data

BUDGET = (1.0, 1e-5)
MOMENTS = 24
"""At which people can be seen between two listed times: that many make it any time."""


def true_paths(data: str, n: int, times: Any, seed: int) -> np.ndarray:
    """(n, T, 2) at so many times, or at these."""
    from journeys import process_paths
    from privtraj import datasets

    if data == "three modes":
        paths = datasets.three_modes_paths(n, times, seed)
    else:
        paths = process_paths(data, n, times, seed)
    return np.asarray((paths + 1.5) / 3)


def seen_once(
    data: str, people: int, times: int, seed: int, anytime: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,) and points (n, 2) of n = people x times, each seen once.

    At one of so many listed times, people at each; or the same ones at any time.
    """
    moments = np.linspace(0, 1, (times - 1) * MOMENTS + 1)
    paths = true_paths(data, people * times, moments, seed)
    when = np.repeat(np.arange(times) * MOMENTS, people)
    if anytime:
        when = np.random.default_rng(seed).integers(len(moments), size=len(when))
    return moments[when], paths[np.arange(len(when)), when]


def seen_clouds(data: str, people: int, times: int, seed: int) -> np.ndarray:
    """(T, n, 2): those who are seen at each listed time."""
    return seen_once(data, people, times, seed)[1].reshape(times, people, 2)


def stroke_clouds(path: str, digit: int, seed: int) -> np.ndarray:
    """(T, n, 2): every pen path seen once."""
    from privtraj import datasets
    from reproduce.strokes import strokes

    paths = strokes(path, digit)
    _, points = datasets.one_snapshot_each(paths, seed)
    return np.asarray(points.reshape(paths.shape[1], -1, 2))


def fitted(
    when: np.ndarray, points: np.ndarray, times: np.ndarray, seed: int, **settings: Any
) -> Any:
    """The model of points (n, d) seen at times (n,), read at times (T,)."""
    import privtraj as pt

    warnings.simplefilter("ignore", pt.LowBudgetWarning)
    data = pt.Snapshots.from_arrays(
        when, points, bounds=[(0, 1)] * points.shape[1], bins=times, time_range=(0, 1)
    )
    return pt.TrajectorySynthesizer(*BUDGET, seed=seed, **settings).fit(data)


def fitted_clouds(clouds: np.ndarray, times: np.ndarray, seed: int, **settings: Any) -> Any:
    """The model of clouds (T, n, d) at times (T,)."""
    _, n, d = clouds.shape
    return fitted(np.repeat(times, n), clouds.reshape(-1, d), times, seed, **settings)


def exactly_coupled(clouds: np.ndarray) -> np.ndarray:
    """Paths (n, T, d) through clouds (T, n, d), by optimal transport from time to time."""
    from privtraj.motion.process import follow
    from privtraj.motion.reference import Inertia

    return np.asarray(follow(clouds, np.linspace(0, 1, len(clouds)), Inertia()))
