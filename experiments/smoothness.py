"""How smooth the estimate of a fit by counts is, and what that costs in distance from the people.

    python experiments/smoothness.py [--quick] [--seeds 5] [--data NAME ...] [--json FILE]

People of known populations at five listed times, or at any time; epsilon .5 to 4, two to four
features. Means over times and seeds of

    squared W2      between 500 released people and the population, in shares of the box
    jumps           of the density over the borders of the counted cells, over those inside them: 1
                    where cells cannot be seen
    error           squared, of the density in parts of cells, in shares of that of the population
    false islands   groups of cells with people, apart from others, where the population has hardly
                    anybody; in all a time
    gaps            share of the population in places where hardly anybody is released
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from common import in_parallel, write_json

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))  # for its data

TIMES, FRESH, RELEASED, MANY = 5, 16_000, 500, 40_000
MOMENTS = 60  # of people at any time
HARDLY = 0.1  # of the other density: "hardly anybody"
LEAST_MASS = 5e-4  # of a cell that is part of an island


class Case(NamedTuple):
    """people: per time.  anytime: the same number in all, at any time."""

    data: str
    epsilon: float = 1.0
    people: int = 600
    features: int = 2
    anytime: bool = False


DATA = ("three modes", "bifurcation", "growth", "still ring", "ornstein-uhlenbeck", "double-well")
CASES = (
    *(Case(data, epsilon) for data in DATA for epsilon in (0.5, 1.0, 4.0)),
    *(Case(data, anytime=True) for data in ("three modes", "growth", "still ring")),
    Case("ornstein-uhlenbeck", people=200, features=1),
    Case("three modes", people=3000),
    Case("three features", people=600, features=3),
    Case("three modes", people=3000, features=3),
    Case("three modes", people=3000, features=4),
)


class Found(NamedTuple):
    """What is printed about a fit."""

    squared_w2: float
    jumps: float
    error: float
    false_islands: float
    gaps: float


def score(case: Case, seed: int) -> Found:
    """One fit."""
    import privtraj as pt
    from populations import clouds, represented, squared_w2

    warnings.simplefilter("ignore")
    listed, any_time = np.linspace(0, 1, TIMES), np.linspace(0, 1, MOMENTS)
    moments = any_time if case.anytime else listed
    each = case.people * TIMES // len(moments)
    space = {"features": case.features}
    some = clouds(case.data, each, len(moments), seed, **space)
    others = clouds(case.data, FRESH, TIMES, seed + 10_000, followed=True, **space)
    snapshots = pt.Snapshots.from_arrays(
        np.repeat(moments, each),
        some.reshape(-1, some.shape[2]),
        bounds=[(0, 1)] * some.shape[2],
        bins=listed,
    )
    model = pt.TrajectorySynthesizer(case.epsilon, measure="counts", seed=seed).fit(snapshots)
    few, many = (
        np.swapaxes(model.sample(n, listed, seed=seed).values, 0, 1) for n in (RELEASED, MANY)
    )
    side = model.settings["cells_per_side"]
    distance = np.mean([squared_w2(a, *represented(b)) for a, b in zip(few, others, strict=True)])
    seen = [smoothness(a, b, side) for a, b in zip(many, others, strict=True)]
    return Found(float(distance), *np.mean(seen, axis=0).tolist())


def smoothness(released: np.ndarray, truth: np.ndarray, side: int) -> tuple[float, ...]:
    """Jumps, error, false islands and gaps of people (n, d) beside the population (k, d)."""
    d = released.shape[1]
    parts = 4 if d < 3 else 2
    ours, theirs = (density(people, parts * side) for people in (released, truth))
    chance = 1 / len(released) + 1 / len(truth)
    error = (((ours - theirs) ** 2).sum() - chance) / ((theirs**2).sum() - 1 / len(truth))
    coarse = [density(people, side) for people in (released, truth)]
    empty = coarse[0] < HARDLY * coarse[1]
    gaps = coarse[1][empty].sum()
    return jumps(ours, parts), float(error), false_islands(*coarse), float(gaps)


def density(people: np.ndarray, side: int) -> np.ndarray:
    """(side, ...) shares of people (n, d) in the cells of a grid."""
    d = people.shape[1]
    counts, _ = np.histogramdd(people, bins=side, range=[(0, 1)] * d)
    shares: np.ndarray = counts / len(people)
    return shares


def jumps(shares: np.ndarray, parts: int) -> float:
    """Mean change of shares (side, ...) between neighbours across a border of cells of so many
    parts a side, over that of other neighbours."""
    across, inside = [], []
    for axis in range(shares.ndim):
        change = np.abs(np.diff(shares, axis=axis)).sum(
            axis=tuple(k for k in range(shares.ndim) if k != axis)
        )
        border = np.arange(1, len(change) + 1) % parts == 0
        across.append(change[border].sum() / border.sum())
        inside.append(change[~border].sum() / (~border).sum())
    return float(np.sum(across) / np.sum(inside))


def false_islands(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Groups of touching cells of shares (side, ...), without any that the population is in."""
    from scipy.ndimage import label, sum_labels

    number, count = label(ours > LEAST_MASS, np.ones((3,) * ours.ndim))
    mass, true = (sum_labels(one, number, np.arange(1, count + 1)) for one in (ours, theirs))
    return float(np.count_nonzero(true < HARDLY * mass))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", nargs="+", default=None, help="only these")
    parser.add_argument("--quick", action="store_true", help="one case and seed, few people")
    parser.add_argument("--json", help="file for every number")
    args = parser.parse_args()
    cases = [case for case in CASES if args.data is None or case.data in args.data]
    seeds = args.seeds
    if args.quick:
        cases, seeds = [Case("three modes", people=300)], 1
    print(f"| data | epsilon | people | d | {' | '.join(Found._fields)} |".replace("_", " "))
    print("|---" * (4 + len(Found._fields)) + "|")
    numbers: dict[str, Any] = {}
    tasks = [(case, seed) for case in cases for seed in range(seeds)]
    scores = in_parallel(score, tasks)
    for k, case in enumerate(cases):
        found = scores[k * seeds : (k + 1) * seeds]
        mean = Found(*np.mean(found, axis=0))
        name = f"{case.data}, any time" if case.anytime else case.data
        row = f"{name} | {case.epsilon:g} | {case.people} | {case.features}"
        print(
            f"| {row} | {mean.squared_w2:.5f} | {mean.jumps:.2f} | {mean.error:.3f} | "
            f"{mean.false_islands:.2f} | {mean.gaps:.3f} |"
        )
        numbers[row] = [one._asdict() for one in found]
    write_json(args.json, numbers)


if __name__ == "__main__":
    main()
