"""Does a released population grow as the cells did, and keep its branches?

    python experiments/growth.py [--quick] [--seeds 3] [--json FILE]

`branching_population`: dividing cells in two branches with different rates, 3,000 readings at 10
times, budget (1, 1e-5), add-remove. 6,000 cells are drawn, with branching. Of each way to say how
the population grows, mean (standard deviation) over seeds:
    masses     mean and largest error of a branch's share of those who are there, once it is apart
    numbers    root mean square of the error of the number at a time, in shares of the mean number
    its noise  standard deviation of a released number by privacy noise alone, the same
    crossing   share of cells that are in the other branch at the end than when they parted
    W2         mean squared W2 of those who are there to the cells
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any, NamedTuple

import numpy as np

from common import in_parallel, spread, write_json
from privtraj.base.errors import aligned

BUDGET = (1.0, 1e-5)
FIRST_SEED = 3000
TIMES = np.linspace(0, 1, 10)
BOX = [(-1.3, 1.3), (-1.3, 1.3)]
APART = 6  # the time from which the branches are apart
WAYS = {
    "nobody comes or goes": None,
    "released": "released",
    "released, by place": "released by_place=learned",
}
MASSES_WITHIN = 0.02  # what we aim at


class Sizes(NamedTuple):
    """How much of everything."""

    seeds: int
    founders: int = 130  # who are 3,000 readings in the end
    drawn: int = 6000
    compared: int = 600


def rows_of(seed: int, sizes: Sizes) -> list[dict[str, Any]]:
    """Scores of every way on one population."""
    import privtraj as pt

    cells = pt.datasets.branching_population(sizes.founders, TIMES, seed)
    snaps = pt.Snapshots.from_arrays(cells.times, cells.points, bounds=BOX, bins=TIMES)
    rows = []
    for name, growth in WAYS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = pt.TrajectorySynthesizer(*BUDGET, seed=seed, growth=growth)
            model = fit.fit(snaps)
        paths = model.sample(sizes.drawn, seed=seed, branching=growth is not None)
        rows.append({"row": name, "seed": seed, **scores(paths, cells, model, sizes)})
    return rows


def scores(paths: Any, cells: Any, model: Any, sizes: Sizes) -> dict[str, float]:
    """What the header says, of paths at the ten times."""
    from privtraj.metrics import wasserstein2

    there = [paths.values[paths.present[:, k], k] for k in range(len(TIMES))]
    upper = np.array([(points[:, 1] > 0).mean() for points in there])
    total = cells.counts.sum(axis=1)
    error = np.abs(upper - cells.counts[:, 0] / total)[APART:]
    off = paths.numbers / paths.numbers.mean() - total / total.mean()
    stay = paths.present[:, APART] & paths.present[:, -1]
    sides = paths.values[stay][:, [APART, -1], 1] > 0
    rng = np.random.default_rng(0)
    squares = []
    for points, time in zip(there, TIMES, strict=True):
        real = cells.points[cells.times == time]
        some = (rng.permutation(cloud)[: sizes.compared] for cloud in (points, real))
        squares.append(wasserstein2(*some) ** 2)
    return {
        "masses": float(error.mean()),
        "at most": float(error.max()),
        "numbers": float(np.sqrt(np.mean(off**2))),
        "its noise": float(model.diagnostics["people_noise"] / total.mean()),
        "crossing": float(np.mean(sides[:, 0] != sides[:, 1])),
        "W2": float(np.mean(squares)),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """One line for each way, and the verdict."""
    names = ["masses", "at most", "numbers", "its noise", "crossing", "W2"]
    lines = [["growth", *names]]
    for way in WAYS:
        mine = [row for row in rows if row["row"] == way]
        lines.append([way, *(spread([row[name] for row in mine]) for name in names)])
    grown = [row for row in rows if row["row"] != next(iter(WAYS))]
    verdicts = []
    for name, what in (("masses", "mean over times"), ("at most", "at the worst time")):
        worst = max(row[name] for row in grown)
        met = "met" if worst <= MASSES_WITHIN else "missed"
        verdicts.append(f"error of masses, {what}, worst seed: {worst:.3f} (target .02: {met})")
    return "\n".join([*aligned(lines), *verdicts])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    sizes = Sizes(1, 40, 300, 100) if args.quick else Sizes(args.seeds)
    tasks = [(FIRST_SEED + k, sizes) for k in range(sizes.seeds)]
    rows = [row for part in in_parallel(rows_of, tasks) for row in part]
    print(table(rows))
    write_json(args.json, rows)


if __name__ == "__main__":
    main()
