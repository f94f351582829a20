"""Counts or gradients? Squared W2 of both on public stand-in data, over features and people.

    python experiments/choice.py [--quick]

The automatic choice of `dynamics.schedule.choose_measure` is read off this table. Stand-ins: three
modes (concentrated, low-dimensional) and one broad cloud that drifts (spread out in every feature).
Errors are in squared shares of the box.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import privtraj as pt
from privtraj.dynamics.schedule import choose_measure

TIMES = 6


def three_modes(n: int, dimensions: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,) and points (n, d) of the paper's multimodal data, inside the unit cube."""
    if dimensions == 1:
        times, points = pt.datasets.three_modes(n, TIMES, seed)
        points = points[:, 1:]
    else:
        times, points = pt.datasets.three_modes(n, TIMES, seed, dimensions=dimensions)
    return times, np.clip((points + 1.5) / 3, 0, 1)


def broad_cloud(n: int, dimensions: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A Gaussian of standard deviation .15 whose mean moves from .35 to .65 in every feature."""
    times = np.repeat(np.linspace(0, 1, TIMES), n)
    centre = 0.35 + 0.3 * times[:, None]
    noise = 0.15 * np.random.default_rng(seed).standard_normal((len(times), dimensions))
    return times, np.clip(centre + noise, 0, 1)


DATA = {"three modes": three_modes, "broad cloud": broad_cloud}


def by_time(times: np.ndarray, points: np.ndarray) -> list[np.ndarray]:
    """One cloud per time."""
    return [points[times == t] for t in np.unique(times)]


def error(data: str, measure: str, n: int, dimensions: int, epsilon: float, seed: int) -> float:
    """Average squared W2 of 600 released people to a fresh real sample."""
    times, points = DATA[data](n, dimensions, seed)
    snapshots = pt.Snapshots.from_arrays(
        times, points, bounds=[(0, 1)] * dimensions, bins=np.linspace(0, 1, TIMES)
    )
    model = pt.TrajectorySynthesizer(epsilon, 1e-5, measure=measure, seed=seed).fit(snapshots)
    people = model.sample(600, seed=seed).values
    truth = by_time(*DATA[data](1000, dimensions, seed + 1000))
    chosen = range(0, TIMES, 2)
    return pt.metrics.average_squared_w2([people[:, i] for i in chosen], [truth[i] for i in chosen])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small cell of the grid")
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    warnings.simplefilter("ignore", pt.LowBudgetWarning)
    dimensions = (2,) if args.quick else (1, 2, 3, 4, 6)
    settings = (
        [(100, 1.0)]
        if args.quick
        else [(60, 1.0), (200, 1.0), (600, 0.5), (600, 1.0), (600, 4.0), (3000, 1.0)]
    )
    seeds = range(1 if args.quick else args.seeds)
    print(
        f"{'data':12} {'d':>2} {'people':>7} {'eps':>4} {'counts':>8} {'gradients':>9}  "
        f"{'better':9} chosen"
    )
    for d in dimensions:
        for data in DATA:
            for n, epsilon in settings:
                start = time.perf_counter()
                counts, gradients = (
                    np.mean([error(data, m, n, d, epsilon, s) for s in seeds])
                    for m in ("counts", "gradients")
                )
                chosen = choose_measure(d)
                better = "counts" if counts < gradients else "gradients"
                print(
                    f"{data:12} {d:2} {n:7} {epsilon:4} {counts:8.4f} {gradients:9.4f}  {better:9} "
                    f"{chosen:9} {time.perf_counter() - start:5.1f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
