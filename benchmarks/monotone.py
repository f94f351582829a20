"""Does twice the budget, or twice the people, ever make the result worse?

    python benchmarks/monotone.py [--quick] [--seeds 10] [--out monotone.md]

Squared W2 as in benchmarks/slabs.py, of the default fit, along two series in which everything else
stays: epsilon doubles from 1/4 to 8 with 100 people at each of 20 times, and people double from 50
to 400 at each time with epsilon 1. One to six features. `worst` is the largest ratio of the means
over seeds after and before a doubling; its standard error, from the same seeds, tells what chance
alone would show.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduce import tables
from reproduce.parallel import in_parallel
from slabs import FRESH, QUICK_FRESH, Task, score

FIRST_SEED = 3000
PEOPLE, TIMES = 100, 20
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
CROWDS = (50, 100, 200, 400)
ALLOWED = 1.1
CASES = (
    ("ornstein-uhlenbeck", 1),
    ("double-well", 1),
    ("three modes", 2),
    ("bifurcation", 2),
    ("growth", 2),
    ("double-well", 2),
    ("ornstein-uhlenbeck", 2),
    ("still ring", 2),
    ("three features", 3),
    ("bifurcation", 3),
    ("three modes", 4),
    ("ornstein-uhlenbeck", 4),
    ("clinic", 5),
    ("three modes", 6),
    ("bifurcation", 6),
)
QUICK = (("still ring", 2),)


class Doubling(NamedTuple):
    """Mean error after over mean error before, and the standard error of that ratio."""

    ratio: float
    error: float

    @property
    def worse(self) -> bool:
        """By more than is allowed."""
        return self.ratio > ALLOWED


def doublings(errors: list[list[float]]) -> list[Doubling]:
    """Of a series, each with the same seeds."""
    return [_doubling(np.array(before), np.array(after)) for before, after in pairwise(errors)]


def _doubling(before: np.ndarray, after: np.ndarray) -> Doubling:
    ratio = after.mean() / before.mean()
    residuals = after / before.mean() - ratio * before / before.mean()
    return Doubling(float(ratio), float(residuals.std(ddof=1) / np.sqrt(len(residuals))))


def series(data: str, features: int, quick: bool) -> dict[str, list[Task]]:
    """The tasks along each axis."""
    epsilons, crowds = (EPSILONS[2:4], CROWDS[:2]) if quick else (EPSILONS, CROWDS)
    times = 4 if quick else TIMES
    more: Any = {"features": features, "fresh": QUICK_FRESH if quick else FRESH}
    return {
        "epsilon": [Task(data, PEOPLE, times, e, **more) for e in epsilons],
        "people": [Task(data, n, times, **more) for n in crowds],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one data set, two seeds")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    args = parser.parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + (2 if args.quick else args.seeds))
    cases = QUICK if args.quick else CASES
    lines = [
        (case, axis, tasks) for case in cases for axis, tasks in series(*case, args.quick).items()
    ]
    wanted = dict.fromkeys(task for _, _, tasks in lines for task in tasks)
    jobs = [(task, "auto", seed) for task in wanted for seed in seeds]
    errors: dict[Task, list[float]] = {}
    for (task, _, _), (value, _) in zip(jobs, in_parallel(score, jobs), strict=True):
        errors.setdefault(task, []).append(value)
    rows, all_of_them = [], []
    for (data, features), axis, tasks in lines:
        found = doublings([errors[task] for task in tasks])
        means = [f"{np.mean(errors[task]):.5f}".replace("0.", ".") for task in tasks]
        worst = max(found)
        rows.append(
            [data, str(features), axis, " ".join(means), f"{worst.ratio:.2f} ({worst.error:.2f})"]
        )
        all_of_them += found
    worse = sum(each.worse for each in all_of_them)
    text = tables.markdown(("data", "features", "doubled", "squared W2", "worst"), rows)
    text += f"\n\n{worse} of {len(all_of_them)} doublings are more than 10 % worse"
    print(text)
    if args.out is not None:
        args.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
