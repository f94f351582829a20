"""Does `privtraj plan` foresee what a fit then reaches, on data that it has never seen?

    python experiments/forecast.py [--seeds 3] [--strokes FILE] [--cells FILE] [--only N ...]
        [--scaling] [--json FILE]

For each data set, none of them a stand-in of the forecast, the quality that `plan` forecasts from
their public shape is set beside what fits reach, at three epsilons: worth of 500 released people
at each of five times, measured against thousands of other people; geometric mean over seeds.
--strokes and --cells take the files of pen strokes and single cells; half of their people are
fitted, the other half is the truth, against which real people of the first half are held too.
--scaling instead compares the simulation of fewer people with less noise each with that of all.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from common import write_json

RELEASED, TRUTH, SCORED = 500, 8000, 5
LADDER = (1, 2, 5, 10, 20, 50, 100, 200, 500)
CELL_BOX = (-1.6, 1.6)

Clouds = list[np.ndarray]


class Setting(NamedTuple):
    """people: at each time.  draw: (people per time, seed) -> T clouds (n, d) in the unit cube."""

    name: str
    people: int
    times: int
    features: int
    draw: Callable[[int, int], Clouds]
    epsilon: float = 1.0


# Data that are no stand-ins -------------------------------------------------------------------


def process(name: str, times: int, features: int) -> Callable[[int, int], Clouds]:
    """A known process; fresh people at every time."""

    def draw(n: int, seed: int) -> Clouds:
        import privtraj as pt

        paths = pt.datasets.process_paths(name, n * times, times, seed, dimensions=features)
        _, points = pt.datasets.one_snapshot_each(paths, seed)
        return list(np.clip((points.reshape(times, n, features) + 1.5) / 3, 0, 1))

    return draw


def ring(times: int) -> Callable[[int, int], Clouds]:
    """People on a ring that widens and turns from round to flat."""

    def draw(n: int, seed: int) -> Clouds:
        rng = np.random.default_rng(seed)
        clouds = []
        for u in np.linspace(0, 1, times):
            angle = rng.uniform(0, 2 * np.pi, n)
            shape = np.array([0.1 + 0.3 * u, 0.1 + 0.1 * u])
            at = 0.5 + shape * np.column_stack([np.cos(angle), np.sin(angle)])
            clouds.append(np.clip(at + 0.02 * rng.standard_normal((n, 2)), 0, 1))
        return clouds

    return draw


def marker(times: int) -> Callable[[int, int], Clouds]:
    """One skewed number per person, such as a blood marker, that rises and spreads."""

    def draw(n: int, seed: int) -> Clouds:
        rng = np.random.default_rng(seed)
        return [
            np.clip(0.1 * np.exp((0.3 + 0.3 * u) * rng.standard_normal((n, 1)) + 0.8 * u), 0, 1)
            for u in np.linspace(0, 1, times)
        ]

    return draw


def drifting_groups(times: int, features: int, groups: int = 4) -> Callable[[int, int], Clouds]:
    """Groups of unequal size and skew shape, each on its own way through the box."""
    rng = np.random.default_rng(77)
    ends = 0.25 + 0.5 * rng.random((2, groups, features))
    shapes = rng.standard_normal((groups, features, features)) * 0.06 / np.sqrt(features)
    shares = rng.dirichlet(np.full(groups, 3.0))

    def draw(n: int, seed: int) -> Clouds:
        rng = np.random.default_rng(seed)
        clouds = []
        for u in np.linspace(0, 1, times):
            group = rng.choice(groups, n, p=shares)
            centres = (1 - u) * ends[0] + u * ends[1]
            own = np.einsum("nd,nde->ne", rng.standard_normal((n, features)), shapes[group])
            clouds.append(np.clip(centres[group] + own, 0, 1))
        return clouds

    return draw


def halves(paths: np.ndarray) -> Callable[[int, int], Clouds]:
    """Pen strokes (n, T, 2): an even seed draws from one half of the people, an odd one others."""
    some, others = np.array_split(np.random.default_rng(0).permutation(paths), 2)

    def draw(n: int, seed: int) -> Clouds:
        import privtraj as pt

        half = others if seed % 2 else some
        if seed % 2:
            chosen = np.random.default_rng(seed).permutation(half)[:n]
            return list(chosen.swapaxes(0, 1).astype(np.float64))
        _, points = pt.datasets.one_snapshot_each(half, seed)
        return list(points.reshape(paths.shape[1], -1, 2).astype(np.float64))

    return draw


def cells_of(file: str) -> tuple[int, Callable[[int, int], Clouds]]:
    """Single cells, in halves as above, and how many are in half a time."""
    with np.load(file) as arrays:
        points, time_of = arrays["X"].astype(np.float64), arrays["t_index"]
    placed = np.clip((points - CELL_BOX[0]) / (CELL_BOX[1] - CELL_BOX[0]), 0, 1)
    mine = np.random.default_rng(0).random(len(placed)) < 0.5

    def draw(n: int, seed: int) -> Clouds:
        half = ~mine if seed % 2 else mine
        return [placed[half & (time_of == t)] for t in np.unique(time_of)]

    return len(placed) // 2 // len(np.unique(time_of)), draw


def settings(strokes: str | None, cells: str | None) -> list[Setting]:
    """Simulated data that no stand-in is made from, and real ones where they are at hand."""
    asked = [
        Setting("double well", 300, 10, 2, process("double-well", 10, 2)),
        Setting("ring", 200, 8, 2, ring(8), 2.0),
        Setting("ring, few people", 60, 8, 2, ring(8), 2.0),
        Setting("skewed marker", 150, 6, 1, marker(6)),
        Setting("drifting groups", 1000, 20, 2, drifting_groups(20, 2), 0.5),
        Setting("drifting groups", 20_000, 5, 2, drifting_groups(5, 2), 0.1),
        Setting("double well", 1000, 5, 3, process("double-well", 5, 3)),
        Setting("drifting groups", 1000, 6, 4, drifting_groups(6, 4)),
        Setting("drifting groups", 2000, 5, 8, drifting_groups(5, 8), 2.0),
    ]
    if strokes:
        import privtraj as pt

        for digit in (1, 3, 7):
            paths = pt.datasets.strokes(strokes, digit, 10)
            asked.append(Setting(f"strokes {digit}", len(paths) // 20, 10, 2, halves(paths)))
    if cells:
        people, draw = cells_of(cells)
        asked.append(Setting("single cells", people, 5, 3, draw))
    return asked


# Forecast and fact ----------------------------------------------------------------------------


def actual(setting: Setting, epsilons: list[float], seeds: int) -> list[list[float]]:
    """Worth of fits to these data, for every epsilon one for each seed."""
    import privtraj as pt
    from privtraj.planning.standins import Yardstick

    moments = np.linspace(0, 1, setting.times)
    parts = np.array_split(np.arange(setting.times), SCORED)
    scored = [int(part[len(part) // 2]) for part in parts]
    everybody = setting.draw(TRUTH, 1)
    draws = [setting.draw(300, 200 + 2 * k) for k in range(1 if "cells" in setting.name else 4)]
    others = [np.concatenate([draw[i] for draw in draws]) for i in scored]
    yardstick = Yardstick([everybody[i] for i in scored], others)
    yardstick.rungs = [n for n in LADDER if n <= min(map(len, others))]
    worths: list[list[float]] = [[] for _ in epsilons]
    for seed in range(seeds):
        clouds = setting.draw(setting.people, 100 + 2 * seed)
        snapshots = pt.Snapshots.from_arrays(
            np.repeat(moments, [len(cloud) for cloud in clouds]),
            np.concatenate(clouds),
            bounds=[(0, 1)] * setting.features,
            bins=moments,
        )
        for each, epsilon in zip(worths, epsilons, strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = pt.TrajectorySynthesizer(epsilon, 1e-5, seed=500 + seed).fit(snapshots)
            people = model.sample(RELEASED, times=moments[scored], seed=seed).values
            each.append(yardstick.worth(yardstick.error(people.swapaxes(0, 1))))
    return worths


def compared(setting: Setting, seeds: int) -> list[dict[str, float | str]]:
    """One row for each of three epsilons of the curve."""
    import privtraj as pt
    from privtraj.planning.forecast import level_of

    forecast = pt.plan(
        setting.people * setting.times,
        times=setting.times,
        features=setting.features,
        epsilon=setting.epsilon,
    )
    middle = len(forecast.epsilons) // 2
    chosen = [middle - 1, middle, middle + 1]
    fits = actual(setting, [float(forecast.epsilons[k]) for k in chosen], seeds)
    return [
        {
            "data": setting.name,
            "people per time": setting.people,
            "times": setting.times,
            "features": setting.features,
            "epsilon": float(forecast.epsilons[k]),
            "forecast": expected.worth,
            "low": expected.low,
            "high": expected.high,
            "actual": level_of(worths).worth,
            "ratio": max(expected.worth, 1.0) / max(level_of(worths).worth, 1.0),
        }
        for k, worths in zip(chosen, fits, strict=True)
        for expected in [forecast.curve[k]]
    ]


def line(row: dict[str, float | str]) -> str:
    shown = [f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()]
    return "| " + " | ".join(shown) + " |"


def summary(rows: list[dict[str, float | str]]) -> str:
    """Geometric mean and spread of the ratio, and how often the forecast is within bounds."""
    logs = np.log2([float(row["ratio"]) for row in rows])
    inside = [float(r["low"]) <= float(r["actual"]) <= float(r["high"]) for r in rows]
    return (
        f"forecast over actual, {len(rows)} comparisons: geometric mean {2 ** logs.mean():.2f}, "
        f"standard deviation a factor {2 ** logs.std():.2f}; within a factor of two "
        f"{np.mean(np.abs(logs) <= 1):.0%}, of four {np.mean(np.abs(logs) <= 2):.0%}; "
        f"actual between lowest and highest {np.mean(inside):.0%}"
    )


def scaling() -> list[dict[str, float]]:
    """The same questions, simulated with all people and with fewer: worth of each."""
    from privtraj.planning import question, trials

    rows = []
    for features, people, epsilon in ((2, 6000, 0.2), (2, 20_000, 0.06), (4, 4000, 0.5)):
        asked = question.Question(people * 5, 5, features, epsilon, 1e-5)
        row = {"features": float(features), "people per time": people, "epsilon": epsilon}
        enough = dict(question.ENOUGH)
        row["fewer people"] = trials.worth_once(asked)
        try:
            question.ENOUGH.update(counts=10**9, gradients=10**9)
            row["all people"] = trials.worth_once(asked)
        finally:
            question.ENOUGH.update(enough)
        print(line(row), flush=True)
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--strokes", metavar="FILE", help=".npz of pen strokes")
    parser.add_argument("--cells", metavar="FILE", help=".npz of single cells")
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="settings, from 0")
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--json", help="file for every number")
    args = parser.parse_args()
    if args.scaling:
        write_json(args.json, scaling())
        return
    rows: list[dict[str, float | str]] = []
    asked = settings(args.strokes, args.cells)
    for k in args.only or range(len(asked)):
        for row in compared(asked[k], args.seeds):
            if not rows:
                print("| " + " | ".join(row) + " |\n|" + "---|" * len(row))
            rows.append(row)
            print(line(row), flush=True)
    print(summary(rows))
    write_json(args.json, rows)


if __name__ == "__main__":
    main()
