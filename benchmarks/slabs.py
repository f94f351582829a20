"""Resolution in time: slabs found by the method against every bin, and against slabs set by hand.

    python benchmarks/slabs.py [--quick] [--seeds 5] [--strokes FILE] [--out slabs.md]

Average over time of squared W2 (exact optimal transport, shares of the box) between 1,000 released
people and the population, mean (standard deviation) over seeds, add-remove, delta 1e-5. People are
at each of T times; `every bin` is `slabs="bins"`, `auto` the default, `best by hand` the lowest
mean among HAND, which nobody could choose without looking.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from privtraj.paper.reproduce import tables
from privtraj.paper.reproduce.parallel import in_parallel

DELTA, RELEASED, FRESH, POINTS = 1e-5, 1000, 8000, 600
FIRST_SEED = 2000  # none that a constant was set on
HAND = (2, 5, 10, 20, 50)
STROKE_TIMES = 10


class Task(NamedTuple):
    """One data set: people at each of T times."""

    data: str
    people: int
    times: int
    epsilon: float = 1.0
    file: str = ""


TASKS = (
    Task("three modes", 300, 100),
    Task("bifurcation", 300, 100),
    Task("growth", 300, 100),
    Task("double-well", 300, 100),
    Task("ornstein-uhlenbeck", 300, 100),
    Task("still ring", 300, 10),
    Task("still ring", 300, 100),
    Task("three features", 60, 20, 2.0),
    Task("three features", 40, 13, 2.0),
    Task("loops", 130, 8, 2.0),
)
QUICK = (Task("still ring", 60, 4),)


def clouds(task: Task, people: int, seed: int) -> np.ndarray:
    """(T, n, d) in the unit cube, fresh people at every time."""
    import privtraj as pt

    rng, u = np.random.default_rng(seed), np.linspace(0, 1, task.times)
    if task.data == "three modes":
        _, points = pt.datasets.three_modes(people, task.times, seed)
        return np.clip((points.reshape(task.times, people, 2) + 1.5) / 3, 0, 1)
    if task.data == "growth":
        return _growth(u, people, seed)
    if task.data in _MADE:
        return np.clip(_MADE[task.data](u[:, None], people, rng), 0, 1)
    paths = pt.datasets.process_paths(task.data, people * task.times, task.times, seed)
    group = np.arange(people * task.times).reshape(task.times, people)
    return np.clip((paths[group, np.arange(task.times)[:, None]] + 1.5) / 3, 0, 1)


def _ring(u: np.ndarray, people: int, rng: np.random.Generator) -> np.ndarray:
    """A ring that does not move."""
    angle = rng.uniform(0, 2 * np.pi, (len(u), people))
    radius = 0.3 + 0.03 * rng.standard_normal(angle.shape)
    return 0.5 + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


def _groups(u: np.ndarray, people: int, rng: np.random.Generator) -> np.ndarray:
    """Three groups in three features that drift apart."""
    group = rng.integers(3, size=(len(u), people))
    noise = rng.standard_normal((3, len(u), people))
    x = np.array([0.3, 0.5, 0.65])[group] + 0.15 * u * (group - 1) + 0.06 * noise[0]
    y = np.array([0.6, 0.4, 0.5])[group] + 0.1 * np.sin(2 * u) + 0.08 * noise[1]
    return np.stack([x, y, 0.3 + 0.3 * u + 0.1 * noise[2]], axis=-1)


def _loops(u: np.ndarray, people: int, rng: np.random.Generator) -> np.ndarray:
    """Fast loops, as a pen draws them: neighbouring times are far apart."""
    noise = rng.standard_normal((2, len(u), people))
    angle = 2.4 * np.pi * u
    x = 0.5 + 0.3 * np.cos(angle) + 0.05 * noise[0]
    return np.stack([x, 0.5 + 0.35 * np.sin(1.5 * angle) + 0.06 * noise[1]], axis=-1)


_MADE: dict[str, Callable[..., np.ndarray]] = {
    "still ring": _ring,
    "three features": _groups,
    "loops": _loops,
}


def _growth(u: np.ndarray, people: int, seed: int) -> np.ndarray:
    """Heights and weights of children of exactly these ages, as shares of their bounds."""
    import privtraj as pt

    low, high = pt.datasets.GROWTH_TIME_RANGE
    ages = np.repeat(low + u * (high - low), people)
    bounds = np.array(list(pt.datasets.GROWTH_BOUNDS.values()))
    values = (pt.datasets.growth_at(ages, seed) - bounds[:, 0]) / np.ptp(bounds, axis=1)
    return np.clip(values.reshape(len(u), people, 2), 0, 1)


def people_and_truth(task: Task, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(T, n, d) to be fitted and (T, N, d) to compare with; of strokes, half of the people each."""
    if not task.file:
        return clouds(task, task.people, seed), clouds(task, FRESH, seed + 10_000)
    import privtraj as pt

    paths = pt.datasets.strokes(task.file, int(task.data.split()[-1]), STROKE_TIMES)
    shuffled = np.random.default_rng(seed).permutation(paths.astype(np.float64))
    some, others = np.array_split(shuffled, 2)
    _, points = pt.datasets.one_snapshot_each(some, seed)
    return points.reshape(STROKE_TIMES, -1, 2), np.swapaxes(others, 0, 1)


def score(task: Task, slabs: int | str, seed: int) -> tuple[float, int]:
    """Squared W2, and the number of slabs that were measured."""
    import ot

    import privtraj as pt

    warnings.simplefilter("ignore")
    data, others = people_and_truth(task, seed)
    times = np.linspace(0, 1, task.times)
    snapshots = pt.Snapshots.from_arrays(
        np.repeat(times, data.shape[1]),
        data.reshape(-1, data.shape[2]),
        bounds=[(0, 1)] * data.shape[2],
        bins=times,
    )
    settings: Any = {"seed": seed, "slabs": slabs}
    model = pt.TrajectorySynthesizer(task.epsilon, DELTA, **settings).fit(snapshots)
    scored = np.unique(np.linspace(0, task.times - 1, min(task.times, 10)).round().astype(int))
    paths = model.sample(RELEASED, times=times[scored], seed=seed).values
    rng, total = np.random.default_rng(seed), 0.0
    for k, i in enumerate(scored):
        points, weights = represented(rng.permutation(others[i]))
        cost = ot.dist(paths[:, k], points)
        even = np.full(RELEASED, 1 / RELEASED)
        total += ot.emd2(even, weights, cost, numItermax=2_000_000)
    return total / len(scored), model.settings["slabs"]


def represented(people: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """POINTS points (k, d) and weights (k,) that stand for people (n, d), by Lloyd's algorithm."""
    from scipy.cluster.vq import kmeans2

    centres, label = kmeans2(people, people[:POINTS].copy(), iter=3, minit="matrix")
    held = np.bincount(label, minlength=len(centres))
    return centres[held > 0], held[held > 0] / len(people)


def line(task: Task, rows: dict[Any, list[tuple[float, int]]]) -> list[str]:
    """One row of the table."""
    mean = {slabs: np.mean([value for value, _ in scores]) for slabs, scores in rows.items()}
    by_hand = {slabs: value for slabs, value in mean.items() if slabs != "auto"}
    best = min(by_hand, key=by_hand.__getitem__)
    counts = sorted(found for _, found in rows["auto"])
    return [
        task.data,
        f"{task.people} x {task.times}",
        f"{task.epsilon:g}",
        _spread(rows["bins"]),
        _spread(rows["auto"]),
        f"{counts[0]} to {counts[-1]}" if counts[0] < counts[-1] else str(counts[0]),
        f"{_spread(rows[best])} with {'all' if best == 'bins' else best}",
        f"{mean['auto'] / mean[best]:.2f}",
    ]


def _spread(scores: list[tuple[float, int]]) -> str:
    values = [value for value, _ in scores]
    return f"{np.mean(values):.5f} ({np.std(values):.5f})".replace("0.", ".")


HEAD = ("data", "people", "epsilon", "every bin", "auto", "slabs", "best by hand", "auto / best")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small data set, one seed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--strokes", help=".npz of pen strokes, as for datasets.strokes")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    args = parser.parse_args()
    wanted = list(QUICK if args.quick else TASKS)
    if args.strokes:
        digits = (1, 2, 3, 6, 7, 9)
        wanted += [Task(f"strokes {k}", 300, STROKE_TIMES, 1.0, args.strokes) for k in digits]
    seeds = range(FIRST_SEED, FIRST_SEED + (1 if args.quick else args.seeds))
    jobs = [
        (task, slabs, seed)
        for task in wanted
        for slabs in ("bins", "auto", *(k for k in HAND if k < task.times))
        for seed in seeds
    ]
    results: dict[Task, dict[Any, list[tuple[float, int]]]] = {}
    for (task, slabs, _), scored in zip(jobs, in_parallel(score, jobs), strict=True):
        results.setdefault(task, {}).setdefault(slabs, []).append(scored)
    text = tables.markdown(HEAD, [line(task, rows) for task, rows in results.items()])
    print(text)
    if args.out is not None:
        args.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
