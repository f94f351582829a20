"""Utility of every method over data, budgets, people, features and times.

    python benchmarks/utility.py [--quick] [--full] [--seeds 3] [--out utility]

Average over time of squared W2 (exact optimal transport, shares of the box) between 600 released
people and 1000 fresh ones per time, mean and standard deviation over seeds, add-remove, delta 1e-5;
with the wall time of a fit. Four sweeps leave the centre (epsilon 1, 300 people at each of 5 times,
2 features) one at a time: epsilon, people, features, times. `histogram, best grid` is the sceptic's
thresholded histogram at whichever grid scored best on average over the seeds, which nobody could
choose without looking: an advantage to the sceptic. Writes OUT.csv and OUT.png.
--quick takes two points of a sweep and two data sets, --full all methods on all of it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from privtraj.reproduce.parallel import in_parallel

DELTA, RELEASED, FRESH = 1e-5, 600, 1000
GRIDS = {2: (4, 6, 8, 12, 16, 24), 3: (3, 4, 6, 8, 12), 4: (2, 3, 4, 6, 8)}
COARSE_GRIDS = (2, 3, 4)  # from five features on
MOST_CELLS = 2**20


class Cell(NamedTuple):
    """One point of the grid."""

    data: str
    epsilon: float = 1.0
    people: int = 300
    features: int = 2
    times: int = 5


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


def clouds(cell: Cell, people: int, seed: int) -> np.ndarray:
    """(T, n, d) in the unit cube, fresh people at every time."""
    import privtraj as pt

    if cell.data == "growth":
        return _growth(cell, people, seed)
    if cell.data == "three modes":
        _, points = pt.datasets.three_modes(people, cell.times, seed, dimensions=cell.features)
        placed = points.reshape(cell.times, people, cell.features)
    else:
        paths = pt.datasets.process_paths(
            cell.data, people * cell.times, cell.times, seed, dimensions=cell.features
        )
        group = np.arange(people * cell.times).reshape(cell.times, people)
        placed = paths[group, np.arange(cell.times)[:, None]]
    return np.clip((placed + 1.5) / 3, 0, 1)


def _growth(cell: Cell, people: int, seed: int) -> np.ndarray:
    """Heights and weights of children of the nearest age, as shares of their bounds."""
    import privtraj as pt

    table = pt.datasets.growth_clinic(12 * people * cell.times, seed).to_pandas()
    bounds = np.array(list(pt.datasets.GROWTH_BOUNDS.values()))
    ages = np.linspace(*pt.datasets.GROWTH_TIME_RANGE, cell.times)
    nearest = np.abs(table["age"].to_numpy()[:, None] - ages).argmin(axis=1)
    points = (table[list(pt.datasets.GROWTH_BOUNDS)] - bounds[:, 0]) / np.ptp(bounds, axis=1)
    return np.stack([points.to_numpy()[nearest == i][:people] for i in range(cell.times)])


# Methods --------------------------------------------------------------------------------------


def methods(cell: Cell, seed: int, full: bool) -> dict[str, Callable[[], Any]]:
    """Name -> a synthesizer with `fit`."""
    from privtraj import TrajectorySynthesizer, baselines

    budget, seeded = (cell.epsilon, DELTA), {"seed": seed}

    def ours(measure: str) -> Callable[[], Any]:
        return lambda: TrajectorySynthesizer(*budget, measure=measure, **seeded)  # type: ignore[arg-type]

    def baseline(name: str, **settings: Any) -> Callable[[], Any]:
        return lambda: getattr(baselines, name)(*budget, **seeded, **settings)

    found = {"ours": ours("auto"), "gradients": ours("gradients")}
    if cell.features <= 4:
        found["counts"] = ours("counts")
    for cells in GRIDS.get(cell.features, COARSE_GRIDS):
        if cell.times * cells**cell.features <= MOST_CELLS:
            found[f"histogram {cells}"] = baseline("ThresholdedHistogram", cells=cells)
    found["mixture"] = baseline("ClusterMixture", k=3)
    found["uniform"] = baseline("Uniform")
    if full:
        found["histogram, rule"] = baseline("ThresholdedHistogram")
        found["measure"] = baseline("PrivateMeasure")
        found["measure, inference"] = baseline("MeasureThenInference")
        found["non-private"] = baseline("NonPrivate")
    return found


def scores(cell: Cell, seed: int, full: bool) -> list[dict[str, Any]]:
    """One row per method."""
    import privtraj as pt

    warnings.simplefilter("ignore")
    data, truth = clouds(cell, cell.people, seed), clouds(cell, FRESH, seed + 10_000)
    d = data.shape[2]
    moments = np.linspace(0, 1, cell.times)
    snapshots = pt.Snapshots.from_arrays(
        np.repeat(moments, cell.people), data.reshape(-1, d), bounds=[(0, 1)] * d, bins=moments
    )
    scored = np.unique(np.linspace(0, cell.times - 1, min(cell.times, 10)).round().astype(int))
    rows = []
    for name, make in methods(cell, seed, full).items():
        row = {**cell._asdict(), "seed": seed, "method": name}
        began = time.perf_counter()
        try:
            model = make().fit(snapshots)
        except pt.PrivtrajError as error:  # a method that refuses is a result
            rows.append({**row, "refused": str(error)})
            continue
        seconds = time.perf_counter() - began
        people = model.sample(RELEASED, times=moments[scored], seed=seed).values
        value = pt.metrics.average_squared_w2(np.swapaxes(people, 0, 1), truth[scored])
        rows.append({**row, "squared_w2": value, "seconds": seconds})
    return rows


# The grid and the table -----------------------------------------------------------------------


def cells(data: Iterable[str], sweeps: dict[str, tuple[Any, ...]]) -> list[Cell]:
    """All points, each once; growth has two features whatever is asked."""
    found: dict[Cell, None] = {}
    for name in data:
        for axis, values in sweeps.items():
            for value in values:
                if not (name == "growth" and axis == "features"):
                    found[Cell(name)._replace(**{axis: value})] = None
    return list(found)


def summary(rows: list[dict[str, Any]]) -> Any:
    """Mean and standard deviation over seeds, with the sceptic's best grid as one method."""
    import pandas as pd

    table = pd.DataFrame(rows).dropna(subset=["squared_w2"])
    point = list(Cell._fields)
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
    from matplotlib.figure import Figure

    from privtraj.report.style import decorate

    data = list(dict.fromkeys(table.data))
    plot = Figure(
        figsize=(3.3 * len(sweeps), 2.7 * len(data)), layout="constrained", facecolor="white"
    )
    axes = plot.subplots(len(data), len(sweeps), squeeze=False)
    names = list(dict.fromkeys(table.method))
    for i, name in enumerate(data):
        for j, axis in enumerate(sweeps):
            centre = Cell(name)._asdict()
            fixed = [key for key in centre if key != axis]
            mine = table[np.logical_and.reduce([table[key] == centre[key] for key in fixed])]
            for k, method in enumerate(names):
                line = mine[mine.method == method].sort_values(axis)
                style = {"color": f"C{k}", "lw": 2.2 if method == "ours" else 1.1}
                axes[i, j].errorbar(
                    line[axis],
                    line.squared_w2,
                    line.deviation,
                    marker="o",
                    ms=3,
                    label=method,
                    **style,
                )
            axes[i, j].set(xscale="log", yscale="log")
            decorate(axes[i, j], axis, f"{name}: squared W2" if j == 0 else "")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    plot.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return plot


def verdict(table: Any) -> str:
    """Ours against the sceptic's best grid and against the better of our two measures."""
    wide = table.pivot(index=list(Cell._fields), columns="method", values="squared_w2")
    ratio = wide["ours"] / wide["histogram, best grid"]
    lines = [
        f"ours / histogram at its best grid: mean {ratio.mean():.2f}, worst {ratio.max():.2f}, "
        f"at most 1.05 in {(ratio <= 1.05).mean():.0%} of {ratio.count()} cells"
    ]
    both = wide[["counts", "gradients"]].dropna()
    if len(both):
        choice = wide.loc[both.index, "ours"] / both.min(axis=1)
        lines.append(
            "automatic choice within 10 % of the better measure in "
            f"{(choice <= 1.1).mean():.0%} of {len(choice)} cells"
        )
    others = wide.drop(columns=["ours", "counts", "gradients", "non-private"], errors="ignore")
    collapse = wide["ours"] / others.min(axis=1)
    lines.append(f"ours / best baseline of any kind: worst {collapse.max():.2f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("utility"))
    args = parser.parse_args()

    data, sweeps = (QUICK_DATA, QUICK_SWEEPS) if args.quick else (DATA, SWEEPS)
    points = cells(data, sweeps)
    tasks = [(cell, seed, args.full) for cell in points for seed in range(args.seeds)]
    rows = [row for found in in_parallel(scores, tasks) for row in found]
    table = summary(rows)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(args.out.with_suffix(".csv"), index=False)
    figure(table, sweeps).savefig(args.out.with_suffix(".png"), dpi=150)
    print(table.to_string(index=False, float_format=lambda value: f"{value:.4f}"))
    print(verdict(table))
    print(f"every number: {args.out.with_suffix('.csv')}, plots: {args.out.with_suffix('.png')}")


if __name__ == "__main__":
    main()
