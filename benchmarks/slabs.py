"""Resolution in time: slabs found by the method against every bin, and against slabs set by hand.

    python benchmarks/slabs.py [--quick] [--seeds 5] [--strokes FILE] [--out slabs.md]

Average over time of squared W2 (exact optimal transport, shares of the box) between 1,000 released
people and the population (50,000 others, represented by 600 weighted points), mean (standard
deviation) over seeds, add-remove, delta 1e-5. People are at each of T times; `every bin` is
`windows="bins"`, `auto` the default, `best by hand` the lowest mean among HAND, which nobody could
choose without looking.

A second table has columns that go together, five of them in two groups: every bin, `auto` and AIM
(`privtraj[aim]`, left out without it), each with squared W2 / mean error of correlations / total
variation of 8 x 8 histograms of pairs of columns, averages over time.

A third table has the error of `auto` against the number of times, with as many people at each, and
its slope: log error over log T.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from populations import clouds, represented, squared_w2
from reproduce import tables
from reproduce.parallel import in_parallel

DELTA, RELEASED = 1e-5, 1000
FRESH, QUICK_FRESH = 50_000, 2000  # others, who are the truth
FIRST_SEED = 2000  # none that a constant was set on
HAND = (2, 5, 10, 20, 50)
STROKE_TIMES = 10


class Task(NamedTuple):
    """One data set: people at each of T times."""

    data: str
    people: int
    times: int
    epsilon: float = 1.0
    file: str = ""
    features: int = 2  # of data that may have any number
    fresh: int = FRESH


TASKS = (
    Task("three modes", 300, 100),
    Task("bifurcation", 300, 100),
    Task("growth", 300, 100),
    Task("double-well", 300, 100),
    Task("ornstein-uhlenbeck", 300, 100),
    Task("still ring", 300, 10),
    Task("still ring", 300, 100),
    Task("three features", 60, 20, 2.0),
    Task("three features", 40, 13, 2.0),
    Task("loops", 130, 8, 2.0),
)
QUICK = (Task("still ring", 60, 4, fresh=QUICK_FRESH),)
AIMS = {
    ("three modes", 100): ".00025",
    ("bifurcation", 100): ".0004",
    ("growth", 100): ".0003",
    ("double-well", 100): ".0004",
    ("ornstein-uhlenbeck", 100): ".0002",
    ("still ring", 10): ".0009",
    ("still ring", 100): ".0002",
}  # squared W2 by data and number of times, set before anything was built
SLOPES = ("three modes", "ornstein-uhlenbeck", "growth", "bifurcation", "still ring")
SLOPE_TIMES, QUICK_TIMES = (10, 30, 100), (3, 6)
COLUMNS = (Task("clinic", 440, 12), Task("skewed", 440, 12), Task("parting", 440, 12))
QUICK_COLUMNS = (Task("clinic", 60, 3, fresh=QUICK_FRESH),)
COLUMN_METHODS = ("every bin", "auto", "AIM")
AIM_CELLS = SIDE = 8  # per column: 16 for AIM are worse in all three numbers; of the histograms
SCORED = 4  # times at which columns are compared


def people_and_truth(task: Task, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(T, n, d) to be fitted and (T, N, d) to compare with; of strokes, half of the people each."""
    if not task.file:
        features = task.features
        data = clouds(task.data, task.people, task.times, seed, features=features)
        others = task.fresh, task.times, seed + 10_000
        return data, clouds(task.data, *others, features=features, followed=True)
    import privtraj as pt

    paths = pt.datasets.strokes(task.file, int(task.data.split()[-1]), STROKE_TIMES)
    shuffled = np.random.default_rng(seed).permutation(paths.astype(np.float64))
    some, others = np.array_split(shuffled, 2)
    _, points = pt.datasets.one_snapshot_each(some, seed)
    return points.reshape(STROKE_TIMES, -1, 2), np.swapaxes(others, 0, 1)


def score(task: Task, slabs: int | str, seed: int) -> tuple[float, int]:
    """Squared W2, and the number of slabs that were measured."""
    import privtraj as pt

    warnings.simplefilter("ignore")
    data, others = people_and_truth(task, seed)
    settings: Any = {"seed": seed, "windows": slabs}
    model = pt.TrajectorySynthesizer(task.epsilon, DELTA, **settings).fit(snapshots_of(data))
    scored = _spread_out(task.times, 10)
    paths = model.sample(RELEASED, times=scored / (task.times - 1), seed=seed).values
    pairs = zip(np.swapaxes(paths, 0, 1), others[scored], strict=True)
    values = [squared_w2(people, *represented(truth)) for people, truth in pairs]
    return float(np.mean(values)), model.settings["windows"]


def columns_score(task: Task, method: str, seed: int) -> tuple[float, float, float] | None:
    """Squared W2, error of correlations and of pairs; None for AIM if it is not installed."""
    import privtraj as pt

    warnings.simplefilter("ignore")
    data, others = people_and_truth(task, seed)
    scored = _spread_out(task.times, SCORED)
    made: Any = pt.TrajectorySynthesizer(
        task.epsilon, DELTA, seed=seed, windows="auto" if method == "auto" else "bins"
    )
    if method == "AIM":
        made = pt.baselines.MarginalSynthesizer(
            task.epsilon, DELTA, cells=AIM_CELLS, points=RELEASED
        )
    try:
        model = made.fit(snapshots_of(data))
    except pt.PrivtrajError:
        return None
    if method == "AIM":
        at_times = model.particles[scored]
    else:
        paths = model.sample(RELEASED, times=scored / (task.times - 1), seed=seed).values
        at_times = np.swapaxes(paths, 0, 1)
    values = []
    for people, truth in zip(at_times, others[scored], strict=True):
        cost = squared_w2(people, *represented(truth))
        values.append((cost, correlation_error(people, truth), pair_error(people, truth)))
    w2, correlations, pairs = np.mean(values, axis=0)
    return w2, correlations, pairs


def snapshots_of(data: np.ndarray) -> Any:
    """Snapshots of people (T, n, d) at T evenly spaced times."""
    import privtraj as pt

    count, people, d = data.shape
    times = np.linspace(0, 1, count)
    records = np.repeat(times, people), data.reshape(-1, d)
    return pt.Snapshots.from_arrays(*records, bounds=[(0, 1)] * d, bins=times)


def correlation_error(people: np.ndarray, truth: np.ndarray) -> float:
    """Mean over pairs of columns of the difference of their correlations."""
    pairs = np.triu_indices(truth.shape[1], 1)
    return float(np.abs(np.corrcoef(people.T) - np.corrcoef(truth.T))[pairs].mean())


def pair_error(people: np.ndarray, truth: np.ndarray) -> float:
    """Mean over pairs of columns of the total variation of their SIDE x SIDE histograms."""
    d = truth.shape[1]
    errors = []
    for i, j in zip(*np.triu_indices(d, 1), strict=True):
        shares = []
        for cloud in (people, truth):
            cells = np.minimum((cloud[:, [i, j]] * SIDE).astype(int), SIDE - 1)
            count = np.bincount(cells @ [SIDE, 1], minlength=SIDE**2)
            shares.append(count / len(cloud))
        errors.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(errors))


def _spread_out(times: int, most: int) -> np.ndarray:
    """Whole numbers of at most so many times, the first and the last among them."""
    return np.unique(np.linspace(0, times - 1, min(times, most)).round().astype(int))


def line(task: Task, rows: dict[Any, list[tuple[float, int]]]) -> list[str]:
    """One row of the table."""
    mean = {slabs: np.mean([value for value, _ in scores]) for slabs, scores in rows.items()}
    by_hand = {slabs: value for slabs, value in mean.items() if slabs != "auto"}
    best = min(by_hand, key=by_hand.__getitem__)
    counts = sorted(found for _, found in rows["auto"])
    return [
        task.data,
        f"{task.people} x {task.times}",
        f"{task.epsilon:g}",
        _spread(rows["bins"]),
        _spread(rows["auto"]),
        f"{counts[0]} to {counts[-1]}" if counts[0] < counts[-1] else str(counts[0]),
        f"{_spread(rows[best])} with {'all' if best == 'bins' else best}",
        f"{mean['auto'] / mean[best]:.2f}",
        AIMS.get((task.data, task.times), ""),
    ]


def _spread(scores: list[tuple[float, int]]) -> str:
    values = [value for value, _ in scores]
    return f"{np.mean(values):.5f} ({np.std(values):.5f})".replace("0.", ".")


def columns_line(task: Task, rows: dict[str, list[tuple[float, float, float] | None]]) -> list[str]:
    """One row of the table of columns."""
    cells = []
    for method in COLUMN_METHODS:
        scores = [score for score in rows.get(method, []) if score is not None]
        numbers = zip(np.mean(scores, axis=0), (4, 3, 3), strict=True) if scores else ()
        cells.append(" / ".join(f"{value:.{digits}f}"[1:] for value, digits in numbers) or "-")
    return [task.data, f"{task.people} x {task.times}", f"{task.epsilon:g}", *cells]


COLUMNS_HEAD = ("data", "people", "epsilon", *COLUMN_METHODS)
HEAD = (
    "data",
    "people",
    "epsilon",
    "every bin",
    "auto",
    "slabs",
    "best by hand",
    "auto / best",
    "aim",
)


def columns_table(tasks: tuple[Task, ...], seeds: range, quick: bool) -> str:
    """The table of columns, in markdown; without AIM, which takes a minute, where it is quick."""
    methods = [name for name in COLUMN_METHODS if not (quick and name == "AIM")]
    jobs = [(task, method, seed) for task in tasks for method in methods for seed in seeds]
    results: dict[Task, dict[str, Any]] = {}
    for (task, method, _), scored in zip(jobs, in_parallel(columns_score, jobs), strict=True):
        results.setdefault(task, {}).setdefault(method, []).append(scored)
    return tables.markdown(
        COLUMNS_HEAD, [columns_line(task, rows) for task, rows in results.items()]
    )


def slopes_table(seeds: range, quick: bool) -> str:
    """Error against the number of times, in markdown."""
    numbers = QUICK_TIMES if quick else SLOPE_TIMES
    people, fresh = (60, QUICK_FRESH) if quick else (300, FRESH)
    data = SLOPES[-1:] if quick else SLOPES
    tasks = [Task(name, people, n, fresh=fresh) for name in data for n in numbers]
    jobs = [(task, "auto", seed) for task in tasks for seed in seeds]
    errors: dict[str, dict[int, list[float]]] = {}
    for (task, _, _), (value, _) in zip(jobs, in_parallel(score, jobs), strict=True):
        errors.setdefault(task.data, {}).setdefault(task.times, []).append(value)
    rows = []
    for name, by_times in errors.items():
        means = [float(np.mean(by_times[n])) for n in numbers]
        slope = np.log(means[-1] / means[0]) / np.log(numbers[-1] / numbers[0])
        cells = [f"{mean:.5f}".replace("0.", ".") for mean in means]
        rows.append([name, *cells, f"{slope:.2f}"])
    return tables.markdown(("data", *(f"T = {n}" for n in numbers), "slope in T"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small data set, one seed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--strokes", help=".npz of pen strokes, as for datasets.strokes")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    args = parser.parse_args()
    wanted = list(QUICK if args.quick else TASKS)
    if args.strokes:
        digits = (1, 2, 3, 6, 7, 9)
        wanted += [Task(f"strokes {k}", 300, STROKE_TIMES, 1.0, args.strokes) for k in digits]
    seeds = range(FIRST_SEED, FIRST_SEED + (1 if args.quick else args.seeds))
    jobs = [
        (task, slabs, seed)
        for task in wanted
        for slabs in ("bins", "auto", *(k for k in HAND if k < task.times))
        for seed in seeds
    ]
    results: dict[Task, dict[Any, list[tuple[float, int]]]] = {}
    for (task, slabs, _), scored in zip(jobs, in_parallel(score, jobs), strict=True):
        results.setdefault(task, {}).setdefault(slabs, []).append(scored)
    text = tables.markdown(HEAD, [line(task, rows) for task, rows in results.items()])
    text += "\n\n" + columns_table(QUICK_COLUMNS if args.quick else COLUMNS, seeds, args.quick)
    text += "\n\n" + slopes_table(seeds, args.quick)
    print(text)
    if args.out is not None:
        args.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
