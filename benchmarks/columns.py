"""Columns of every kind: tables of numbers and categories over time, against AIM, MST and PrivPGD.

    python benchmarks/columns.py [--quick] [--seeds 5] [--jobs 2] [--only NAME] [--out columns.md]

Every method is given the same records at epsilon 1, delta 1e-5, add-remove. It is scored in SLABS
equal slabs of time against others of the same kind (OTHERS fresh people of a simulation, the half
of a real table that was not fitted), and so are as many real people as were fitted ("real people"),
which is as good as it gets. `ours` is read at READ times in each slab; others release a cloud for
each slab. `ours, no noise` is the same fit at epsilon 100. Mean (standard deviation) over seeds of

    pairs     total variation of pairs of columns: numbers in SIDE equal cells, categories by level,
              a missing number by its flag; mean over pairs and slabs
    within    squared W2 of the numbers, in shares of the box, among the people of one level of one
              category, for levels that LEAST or more of the others have; mean by their shares
    together  error of the correlations of numbers, mean over pairs and slabs
    AUC       of a classifier that tells them from others, levels as columns of 0 and 1: .5 is best
    gap       share of the people inside SUGAR_GAP, where it applies
    seconds, MB   of a fit, and most memory of its process beyond what it has before

AIM and MST are run with time as one column and, AIM, with a run for each slab; 8 cells per number.
They need the extra `privtraj[aim]`, and are left out without it. Two real tables (`real_tables`)
come from a package, and are left out where it is not installed.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from real_tables import REAL
from reproduce import tables

EPSILON, DELTA, NO_NOISE = 1.0, 1e-5, 100.0
SLABS, READ, SIDE, LEAST = 4, 3, 8, 0.05
OTHERS, RELEASED, CLOUD, MATCHED = 20_000, 2000, 600, 300
FIRST_SEED = 3000  # none that a constant was set on
SCORES = ("pairs", "within", "together", "AUC", "gap", "seconds", "MB")


class Table(NamedTuple):
    """A table to fit, what is declared of it, and others of the same kind."""

    fitted: Any
    others: Any
    declared: dict[str, Any]


class Task(NamedTuple):
    """A data set. people: of a simulation.  methods: besides ours, by name.

    steps: of PrivPGD.
    """

    data: str
    people: int = 0
    methods: tuple[str, ...] = ("AIM", "AIM per slab", "MST", "PrivPGD")
    steps: int = 2000


TASKS = (
    Task("clinic", 6000),
    Task("twelve columns", 20_000, ("AIM", "MST", "PrivPGD")),
    Task("gap", 5300),
    Task("long category", 1_000_000, ()),
    *(Task(name) for name in REAL),
)
QUICK = (Task("gap", 400, ("PrivPGD",), steps=50),)


def simulated(data: str) -> Callable[..., Any]:
    """The data set of this name."""
    import mixed_tables

    return {
        "clinic": mixed_tables.clinic_visits,
        "twelve columns": mixed_tables.many_columns,
        "gap": mixed_tables.sugar_groups,
        "long category": mixed_tables.one_long_category,
    }[data]


def table_of(task: Task, seed: int) -> Table | None:
    """The table of a task; None where its package is not installed."""
    if task.data in REAL:
        return _halves(task.data, seed)
    make = simulated(task.data)
    example = make(task.people, seed)
    return Table(example.table, make(OTHERS, seed + 10_000).table, example.declared)


def _halves(data: str, seed: int) -> Table | None:
    """A real table, one half to fit and one to compare with."""
    try:
        table, declared = REAL[data]()
    except ImportError:
        return None
    order = np.random.default_rng(seed).permutation(table.num_rows)
    some, others = np.array_split(order, 2)
    return Table(table.take(some), table.take(others), declared)


def slabs_of(declared: dict[str, Any]) -> list[float]:
    """Middles of equal slabs of time: what is nearest to them are the slabs."""
    low, high = declared["time_range"]
    return [low + (high - low) * (k + 0.5) / SLABS for k in range(SLABS)]


def fitted(method: str, table: Table, steps: int, seed: int) -> list[np.ndarray] | None:
    """Released people of each slab, (n, d) in the unit cube; None if it cannot be run."""
    import privtraj as pt
    from privtraj.baselines.base import unguarded

    if method.startswith("ours"):  # which needs no slabs
        people = pt.Snapshots.from_table(table.fitted, **table.declared)
        return _ours(people, NO_NOISE if "no noise" in method else EPSILON, table.declared, seed)
    people = pt.Snapshots.from_table(table.fitted, **table.declared, bins=slabs_of(table.declared))
    if method == "real people":
        return unguarded(people)
    made: Any = pt.baselines.PrivPGD(EPSILON, DELTA, points=CLOUD, steps=steps, seed=seed)
    if method != "PrivPGD":
        times = "each" if method.endswith("per slab") else "column"
        made = pt.baselines.MarginalSynthesizer(
            EPSILON, DELTA, algorithm=method.split()[0], times=times, points=RELEASED
        )
    try:
        return list(made.fit(people).particles)
    except pt.PrivtrajError:
        return None


def _ours(people: Any, epsilon: float, declared: dict[str, Any], seed: int) -> list[np.ndarray]:
    import privtraj as pt
    from privtraj.columns.kinds import encoded, to_unit

    model = pt.TrajectorySynthesizer(epsilon, DELTA, measure="auto", seed=seed).fit(people)
    low, high = declared["time_range"]
    read = low + (high - low) * (np.arange(SLABS * READ) + 0.5) / (SLABS * READ)
    values = model.sample(RELEASED, times=read, seed=seed).values
    columns = people.columns
    units = [to_unit(columns, encoded(columns, at)) for at in np.swapaxes(values, 0, 1)]
    return [np.concatenate(units[k * READ : (k + 1) * READ]) for k in range(SLABS)]


def scores(task: Task, method: str, seed: int) -> dict[str, Any] | None:
    """One row of results."""
    import privtraj as pt
    from privtraj.baselines.base import unguarded

    warnings.simplefilter("ignore")
    table = table_of(task, seed)
    if table is None:
        return None
    before, start = _megabytes(), time.perf_counter()
    released = fitted(method, table, task.steps, seed)
    if released is None:
        return None
    seconds, memory = time.perf_counter() - start, _megabytes() - before
    others = pt.Snapshots.from_table(table.others, **table.declared, bins=slabs_of(table.declared))
    rng = np.random.default_rng(seed)
    at_slabs = list(zip(released, unguarded(others), strict=True))
    row = _mean([_slab_scores(a, b, others.axes, rng) for a, b in at_slabs])
    if task.data == "gap":
        row["gap"] = float(np.mean([_in_gap(cloud, others) for cloud in released]))
    row |= {"seconds": seconds, "MB": memory}
    return {"data": task.data, "method": method, "seed": seed, **row}


def _slab_scores(
    people: np.ndarray, others: np.ndarray, axes: Any, rng: np.random.Generator
) -> dict[str, float]:
    """Scores of people against others, (n, d) and (k, d), in one slab."""
    from privtraj.metrics import two_sample_auc

    found = {"pairs": pair_error(people, others, axes)}
    numbers = axes.numbers
    if numbers.any():
        found["within"] = within_groups(people, others, axes, rng)
    if numbers.sum() > 1:
        found["together"] = correlation_error(people[:, numbers], others[:, numbers])
    coded = [one_hot(cloud, axes) for cloud in (people, others)]
    found["AUC"] = two_sample_auc(*coded)
    return found


def pair_error(people: np.ndarray, others: np.ndarray, axes: Any) -> float:
    """Mean over pairs of columns, or over single ones if there is one, of total variation."""
    sides = np.array(axes.sides(SIDE))
    cells = [np.minimum((cloud * sides).astype(int), sides - 1) for cloud in (people, others)]
    errors = []
    for pair in list(combinations(range(len(sides)), 2)) or [(0,)]:
        size = sides[list(pair)]
        weights = np.append(np.cumprod(size[:0:-1])[::-1], 1)
        one, other = (
            np.bincount(cell[:, list(pair)] @ weights, minlength=size.prod()) / len(cell)
            for cell in cells
        )
        errors.append(np.abs(one - other).sum() / 2)
    return float(np.mean(errors))


def within_groups(
    people: np.ndarray, others: np.ndarray, axes: Any, rng: np.random.Generator
) -> float:
    """Squared W2 of numbers among those of one level, over levels of all categories.

    Where hardly anybody is released of a level, all who are released stand for it.
    """
    levels = [axes.level_of(cloud) for cloud in (people, others)]
    costs, weights = [], []
    for axis in np.flatnonzero(axes.categories):
        for level in range(axes.levels[axis]):
            mine, theirs = (of[:, axis] == level for of in levels)
            share = theirs.mean()
            if share < LEAST or theirs.sum() < 10:
                continue
            group = people[mine] if mine.sum() >= 5 else people
            costs.append(_squared_w2(group, others[theirs], axes.numbers, rng))
            weights.append(share)
    return float(np.average(costs, weights=weights))


def _squared_w2(a: np.ndarray, b: np.ndarray, numbers: np.ndarray, rng: Any) -> float:
    import ot

    some = [cloud[rng.permutation(len(cloud))[:MATCHED]][:, numbers] for cloud in (a, b)]
    return float(ot.emd2([], [], ot.dist(*some)))


def correlation_error(people: np.ndarray, others: np.ndarray) -> float:
    """Mean over pairs of columns of the difference of their correlations."""
    pairs = np.triu_indices(others.shape[1], 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = [np.nan_to_num(np.corrcoef(cloud.T)) for cloud in (people, others)]
    return float(np.abs(found[0] - found[1])[pairs].mean())


def one_hot(cloud: np.ndarray, axes: Any) -> np.ndarray:
    """Numbers as they are, and a column of 0 and 1 for each level."""
    levels = axes.level_of(cloud)
    parts = [cloud[:, axes.numbers]]
    for axis in np.flatnonzero(axes.categories):
        parts.append((levels[:, [axis]] == np.arange(axes.levels[axis])).astype(float))
    return np.concatenate(parts, axis=1)


def _in_gap(cloud: np.ndarray, people: Any) -> float:
    from mixed_tables import SUGAR_GAP

    at = people.features.index("hba1c")
    low, high = people.columns[at].to_unit(np.array(SUGAR_GAP))
    return float(((cloud[:, at] > low) & (cloud[:, at] < high)).mean())


def _mean(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(tasks: list[Task], seeds: range, jobs: int, quick: bool) -> list[dict[str, Any]]:
    """Rows of all tasks, methods and seeds, each in a process of its own."""
    own = ("real people", "ours") if quick else ("real people", "ours", "ours, no noise")
    wanted = [
        (task, method, seed) for task in tasks for method in (*own, *task.methods) for seed in seeds
    ]
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, max_tasks_per_child=1) as pool:
        rows = list(pool.map(scores, *zip(*wanted, strict=True)))
    return [row for row in rows if row is not None]


def markdown(rows: list[dict[str, Any]]) -> str:
    """One line for each data set and method: mean (standard deviation) over seeds."""
    lines = []
    for data, method in dict.fromkeys((row["data"], row["method"]) for row in rows):
        found = tables.matching(rows, data=data, method=method)
        lines.append([data, method, *(_cell([row.get(name) for row in found]) for name in SCORES)])
    return tables.markdown(("data", "method", *SCORES), lines)


def _cell(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    mean, spread = np.mean(known), np.std(known)
    return f"{mean:.0f} ({spread:.0f})" if mean >= 10 else f"{mean:.4f} ({spread:.4f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small data set, one seed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--only", help="the data set of this name")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    parser.add_argument("--json", type=Path, help="write every run to this file")
    args = parser.parse_args()
    tasks = [task for task in (QUICK if args.quick else TASKS) if args.only in (None, task.data)]
    seeds = range(FIRST_SEED, FIRST_SEED + (1 if args.quick else args.seeds))
    rows = run(tasks, seeds, args.jobs, args.quick)
    text = markdown(rows)
    print(text)
    if args.out is not None:
        args.out.write_text(text + "\n", encoding="utf-8")
    if args.json is not None:
        args.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
