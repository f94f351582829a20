"""Utility of every method over data, budgets, people, features and times.

    python benchmarks/utility.py [--quick] [--full] [--people N ...] [--seeds 2] [--real FILE ...]
                                 [--out utility]

Average over time of squared W2 (exact optimal transport, shares of the box) between 500 released
people and the population, mean and standard deviation over seeds, add-remove, delta 1e-5; with the
wall time of a fit. The population is 16,000 fresh people, represented by 600 weighted points: it
is not the chance of another sample that is measured. Four sweeps leave the centre (epsilon 1, 300
people at each of 5 times, 2 features) one at a time: epsilon, people, features, times.
`histogram, best grid` is the sceptic's thresholded histogram at whichever grid scored best on
average over the seeds, which nobody could choose without looking: an advantage to the sceptic.
Writes OUT.csv, OUT.md and OUT.png.
--quick takes two points of a sweep and two data sets, --full all methods on all of it. --real adds
files: pen strokes (.npz of `reproduce.strokes`) or single cells (.npz with X, t_index); half of the
people are fitted, the other half is the truth.
The engine's constants were set on the simulated data, with seeds below FIRST_SEED.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from populations import clouds, represented, squared_w2
from reproduce import tables
from reproduce.parallel import in_parallel
from reproduce.strokes import strokes

DELTA, RELEASED = 1e-5, 500
FRESH = 16_000  # people of the population
FIRST_SEED = 1000
DIGITS, STROKE_TIMES = (3, 7), 10
CELL_BOX = (-1.6, 1.6)  # of every coordinate of single cells
REAL_EPSILONS = (1.0, 4.0)
GRIDS = {2: (4, 6, 8, 12, 16, 24), 3: (3, 4, 6, 8, 12), 4: (2, 3, 4, 6, 8)}
COARSE_GRIDS = (2, 3, 4)  # from five features on
MOST_CELLS = 2**20


class Cell(NamedTuple):
    """One point of the grid; file: of real data."""

    data: str
    epsilon: float = 1.0
    people: int = 300
    features: int = 2
    times: int = 5
    file: str = ""


POINT = Cell._fields[:-1]
SWEEPS: dict[str, tuple[Any, ...]] = {
    "epsilon": (0.5, 1.0, 2.0, 4.0, 8.0),
    "people": (50, 100, 300, 1000, 3000, 10_000),
    "features": (2, 3, 4, 8, 16),
    "times": (5, 10, 30, 100),
}
QUICK_SWEEPS = {"epsilon": (1.0, 4.0), "people": (300, 1000)}
DATA = ("three modes", "growth", "ornstein-uhlenbeck", "double-well", "bifurcation")
QUICK_DATA = ("three modes", "bifurcation")


# Data -----------------------------------------------------------------------------------------


def people_and_truth(cell: Cell, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """T clouds (n, d) of people to be fitted, and T clouds of others to compare with."""
    if not cell.file:
        some = clouds(cell.data, cell.people, cell.times, seed, features=cell.features)
        others = clouds(
            cell.data, FRESH, cell.times, seed + 10_000, features=cell.features, followed=True
        )
        return list(some), list(others)
    import privtraj as pt

    rng = np.random.default_rng(seed)
    if cell.data == "single cells":
        with np.load(cell.file) as file:
            points, time_of = file["X"].astype(np.float64), file["t_index"]
        placed = (points - CELL_BOX[0]) / (CELL_BOX[1] - CELL_BOX[0])
        ours = rng.random(len(placed)) < 0.5
        return tuple(
            [placed[half & (time_of == t)] for t in range(cell.times)] for half in (ours, ~ours)
        )  # type: ignore[return-value]
    paths = strokes(cell.file, int(cell.data.split()[-1]), STROKE_TIMES)
    some, others = np.array_split(rng.permutation(paths.astype(np.float64)), 2)
    _, points = pt.datasets.one_snapshot_each(some, seed)
    return list(points.reshape(STROKE_TIMES, -1, 2)), list(np.swapaxes(others, 0, 1))


# Methods --------------------------------------------------------------------------------------


def methods(cell: Cell, seed: int, full: bool) -> dict[str, Callable[[], Any]]:
    """Name -> a synthesizer with `fit`."""
    import baselines
    from methods import PrivateMeasure
    from privtraj import TrajectorySynthesizer

    budget, seeded = (cell.epsilon, DELTA), {"seed": seed}

    def ours(measure: str) -> Callable[[], Any]:
        return lambda: TrajectorySynthesizer(*budget, measure=measure, **seeded)  # type: ignore[arg-type]

    def baseline(name: str, **settings: Any) -> Callable[[], Any]:
        return lambda: getattr(baselines, name)(*budget, **seeded, **settings)

    made = {"gradients": ours("gradients")}
    if cell.features <= 4:
        made["counts"] = ours("counts")
    for cells in GRIDS.get(cell.features, COARSE_GRIDS):
        if cell.times * cells**cell.features <= MOST_CELLS:
            made[f"histogram {cells}"] = baseline("ThresholdedHistogram", cells=cells)
    made["mixture"] = baseline("ClusterMixture", k=3)
    made["uniform"] = baseline("Uniform")
    if full:
        made["histogram, rule"] = baseline("ThresholdedHistogram")
        made["measure"] = lambda: PrivateMeasure(*budget, **seeded)
        made["non-private"] = baseline("NonPrivate")
    return made


def scores(cell: Cell, seed: int, full: bool) -> list[dict[str, Any]]:
    """One row per method; ours is whichever measurement the engine chooses."""
    import privtraj as pt
    from privtraj.measures.registry import measure_for
    from privtraj.recipe import Recipe

    warnings.simplefilter("ignore")
    data, others = people_and_truth(cell, seed)
    d = data[0].shape[1]
    moments = np.linspace(0, 1, cell.times)
    snapshots = pt.Snapshots.from_arrays(
        np.repeat(moments, [len(cloud) for cloud in data]),
        np.concatenate(data),
        bounds=[(0, 1)] * d,
        bins=moments,
    )
    scored = np.unique(np.linspace(0, cell.times - 1, min(cell.times, 10)).round().astype(int))
    truth = [represented(others[i]) for i in scored]
    rows = []
    for name, make in methods(cell, seed, full).items():
        point = {key: getattr(cell, key) for key in POINT}
        row = {**point, "seed": seed, "method": name}
        began = time.perf_counter()
        try:
            model = make().fit(snapshots)
        except pt.PrivtrajError as refusal:  # a method that refuses is a result
            rows.append({**row, "refused": str(refusal)})
            continue
        seconds = time.perf_counter() - began
        paths = model.sample(RELEASED, times=moments[scored], seed=seed).values
        pairs = zip(np.swapaxes(paths, 0, 1), truth, strict=True)
        value = np.mean([squared_w2(people, *points) for people, points in pairs])
        rows.append({**row, "squared_w2": value, "seconds": seconds})
        if name == measure_for(Recipe(), d).name:
            rows.append({**rows[-1], "method": "ours"})
    return rows


# The grid and the table -----------------------------------------------------------------------


def cells(data: Iterable[str], sweeps: dict[str, tuple[Any, ...]]) -> list[Cell]:
    """All points, each once; growth has two features whatever is asked."""
    points: dict[Cell, None] = {}
    for name in data:
        for axis, values in sweeps.items():
            for value in values:
                if not (name == "growth" and axis == "features"):
                    points[Cell(name)._replace(**{axis: value})] = None
    return list(points)


def real_cells(file: str) -> list[Cell]:
    """Points of a file: some digits of pen strokes, or single cells."""
    with np.load(file) as arrays:
        single = "X" in arrays.files
    if single:
        return [Cell("single cells", epsilon, 300, 3, 5, file) for epsilon in REAL_EPSILONS]
    return [
        Cell(f"strokes {digit}", epsilon, 300, 2, STROKE_TIMES, file)
        for digit in DIGITS
        for epsilon in REAL_EPSILONS
    ]


def summary(rows: list[dict[str, Any]]) -> Any:
    """Mean and standard deviation over seeds, with the sceptic's best grid as one method."""
    import pandas as pd

    table = pd.DataFrame(rows).dropna(subset=["squared_w2"])
    point = list(POINT)
    by = table.groupby([*point, "method"], as_index=False)
    means = by.agg(
        squared_w2=("squared_w2", "mean"),
        deviation=("squared_w2", "std"),
        seconds=("seconds", "mean"),
        seeds=("seed", "count"),
    )
    grids = means[means.method.str.match(r"histogram \d")]
    best = grids.loc[grids.groupby(point).squared_w2.idxmin()].assign(method="histogram, best grid")
    rest = means[~means.method.str.match(r"histogram \d")]
    return pd.concat([rest, best]).sort_values([*point, "method"]).reset_index(drop=True)


def figure(table: Any, sweeps: dict[str, tuple[Any, ...]]) -> Any:
    """Error against each axis, one row of panels per data set."""
    from reproduce.drawing import blank

    data = [name for name in dict.fromkeys(table.data) if name in DATA]
    plot = blank(3.3 * len(sweeps), 2.7 * len(data))
    panels = plot.subplots(len(data), len(sweeps), squeeze=False)
    for name, row in zip(data, panels, strict=True):
        for axes, axis in zip(row, sweeps, strict=True):
            _panel(axes, table, Cell(name), axis, sweeps[axis])
        row[0].set_ylabel(f"{name}: squared W2")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    plot.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return plot


def _panel(axes: Any, table: Any, centre: Cell, axis: str, values: tuple[Any, ...]) -> None:
    """Every method as one value of the centre changes."""
    from privtraj.plot import decorate

    fixed = [key for key in POINT if key != axis]
    mine = table[np.logical_and.reduce([table[key] == getattr(centre, key) for key in fixed])]
    names = [name for name in SHOWN if name != "counts" and (table.method == name).any()]
    for k, method in enumerate(names):
        line = mine[mine.method == method].sort_values(axis)
        style = {"color": f"C{k}", "lw": 2.2 if method == "ours" else 1.1, "marker": "o", "ms": 3}
        axes.errorbar(line[axis], line.squared_w2, line.deviation, label=method, **style)
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(values, [f"{value:g}" for value in values], fontsize=8)
    axes.minorticks_off()
    axes.set_visible(len(mine[axis].unique()) > 1)
    decorate(axes, axis, "")


SHOWN = ("ours", "counts", "gradients", "histogram, best grid", "mixture", "uniform")


def markdown(table: Any) -> str:
    """Every point of the grid as a row: squared W2, mean (standard deviation), of SHOWN methods."""
    lines = []
    for point, rows in table.groupby(list(POINT), sort=False):
        scored = {row.method: row for row in rows.itertuples()}
        scores = [_score(scored[name]) if name in scored else "-" for name in SHOWN]
        ratio = scored["ours"].squared_w2 / scored["histogram, best grid"].squared_w2
        cells = [str(part) if isinstance(part, str) else f"{part:g}" for part in point]
        lines.append((*cells, *scores, f"{ratio:.2f}"))
    return tables.markdown((*POINT, *SHOWN, "ratio"), lines)


def _score(row: Any) -> str:
    return f"{row.squared_w2:.4f} ({row.deviation:.4f})".replace("0.", ".")


def verdict(table: Any) -> str:
    """What the issue of the sceptic asks, in numbers."""
    wide = table.pivot(index=list(POINT), columns="method", values="squared_w2").reset_index()
    ratio = wide["ours"] / wide["histogram, best grid"]
    low = (wide.features <= 3) & (wide.people >= 100)
    lines = [
        _ratios("up to 3 features, 100 people or more", ratio[low]),
        _ratios("4 features", ratio[wide.features == 4]),
        _ratios("6 features or more", ratio[wide.features >= 6]),
    ]
    both = wide[["counts", "gradients"]].dropna() if "counts" in wide else wide[[]]
    if len(both):
        choice = wide.loc[both.index, "ours"] / both.min(axis=1)
        lines.append(
            "automatic choice within 10 % of the better measure in "
            f"{(choice <= 1.1).mean():.0%} of {len(choice)} cells"
        )
    ours = ["ours", "counts", "gradients", "non-private"]
    others = wide.drop(columns=[*POINT, *ours], errors="ignore")
    collapse = wide["ours"] / others.min(axis=1)
    lines.append(
        f"ours / best baseline of any kind: worst {collapse.max():.2f}, above 2 in "
        f"{(collapse > 2).sum()} of {len(collapse)} cells"
    )
    return "\n".join(line for line in lines if line)


def _ratios(where: str, ratio: Any) -> str:
    if len(ratio.dropna()) == 0:
        return ""
    return (
        f"ours / histogram at its best grid, {where}: mean {ratio.mean():.2f}, worst "
        f"{ratio.max():.2f}, at most 1.05 in {(ratio <= 1.05).mean():.0%} of {ratio.count()} cells"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--people", type=int, nargs="*", help="of this sweep alone")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--real", type=Path, nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=Path("utility"))
    args = parser.parse_args()

    data, sweeps = (QUICK_DATA, QUICK_SWEEPS) if args.quick else (DATA, SWEEPS)
    sweeps = {"people": tuple(args.people)} if args.people else sweeps
    points = cells(data, sweeps)
    points += [cell for file in args.real for cell in real_cells(str(file))]
    seeds = range(FIRST_SEED, FIRST_SEED + args.seeds)
    tasks = [(cell, seed, args.full) for cell in points for seed in seeds]
    rows = [row for each in in_parallel(scores, tasks) for row in each]
    table = summary(rows)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(args.out.with_suffix(".csv"), index=False)
    figure(table, sweeps).savefig(args.out.with_suffix(".png"), dpi=150)
    args.out.with_suffix(".md").write_text(f"{verdict(table)}\n\n{markdown(table)}\n")
    print(table.to_string(index=False, float_format=lambda value: f"{value:.4f}"))
    print(verdict(table))
    print(f"every number: {args.out.with_suffix('.csv')}, plots: {args.out.with_suffix('.png')}")


if __name__ == "__main__":
    main()
