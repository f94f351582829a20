"""How fast, as ratios against the same algorithm composed from POT and NumPy, in the same run.

    python benchmarks/speed.py [--quick] [--json FILE]

(a) a whole private fit by gradients at 626 people per time, T = 10, m = 100, K = 60, d = 2, and one
of its steps against the composition; (b) the default fit; (c) 10^5 paths at 200 times.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import ot

import privtraj as pt

T, N, D = 10, 626, 2


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """The best of several runs."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def clouds(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Times and points of a cloud that drifts through the unit square."""
    rng = np.random.default_rng(seed)
    times = np.repeat(np.arange(float(T)), N)
    points = 0.3 + 0.04 * times[:, None] + 0.1 * rng.standard_normal((T * N, D))
    return times, np.clip(points, 0, 1)


def composed_step(
    x: np.ndarray, people: np.ndarray, sigma: float, rng: np.random.Generator
) -> None:
    """One step as one would write it with POT: x (T, m, d), people (T, N, d).

    Responsibilities and clipped per-person vectors in NumPy; `ot.sinkhorn` with 100 iterations at
    most for the plans between neighbours and of each time with itself.
    """
    m = x.shape[1]
    weights = np.full(m, 1 / m)
    for i in range(T):
        distance = ot.dist(people[i], x[i])
        exponent = -distance / (2 * sigma**2)
        w = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        w /= w.sum(axis=1, keepdims=True)
        u = (w[:, :, None] * (x[i][None] - people[i][:, None])).reshape(len(people[i]), -1)
        u *= np.minimum(1, sigma / np.linalg.norm(u, axis=1, keepdims=True))
        u.sum(axis=0) + rng.standard_normal(u.shape[1])
    for i in range(T - 1):
        for a, b in ((i, i + 1), (i, i), (i + 1, i + 1)):
            cost = ot.dist(x[a], x[b]) / 2
            plan = ot.sinkhorn(weights, weights, cost, sigma**2, numItermax=100, warn=False)
            plan @ x[b]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--json", help="file for the numbers")
    args = parser.parse_args()
    m, steps, paths = (8, 4, 1000) if args.quick else (100, 60, 100_000)
    times, points = clouds()
    snapshots = pt.Snapshots.from_arrays(times, points, bounds=[(0, 1)] * D, bins=np.arange(10.0))

    def fit(**settings: Any) -> pt.TrajectoryModel:
        return pt.TrajectorySynthesizer(2.0, 1e-3, **settings).fit(snapshots)

    def gradients() -> pt.TrajectoryModel:
        return fit(measure="gradients", particles=m, steps=steps)

    cold = seconds(gradients, 1)
    warm = seconds(gradients, 1 if args.quick else 3)
    fit()
    default = seconds(fit, 1 if args.quick else 3)
    rng = np.random.default_rng(0)
    x = gradients().marginals
    composed = seconds(lambda: composed_step(x, points.reshape(T, N, D), 0.05, rng), 1)
    model = fit()
    model.sample(10)
    sampling = seconds(lambda: model.sample(paths, times=np.linspace(0, T - 1, 200)), 1)
    numbers = {
        "fit by gradients, first in the process (s)": cold,
        "fit by gradients, warm (s)": warm,
        "one step of it (ms)": 1000 * warm / steps,
        "the step composed from POT and NumPy (ms)": 1000 * composed,
        "ratio": composed * steps / warm,
        "default fit, warm (s)": default,
        f"{paths} paths at 200 times (s)": sampling,
    }
    print(f"{N} people at each of {T} times, {m} particles, {steps} steps")
    for name, value in numbers.items():
        print(f"  {name:46}{value:10.2f}")
    if args.json:
        Path(args.json).write_text(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
