"""Does time coupling help, and are released paths right?

    python experiments/coupling.py [--quick] [--seeds 5] [--strokes FILE] [--digit 3] [--json FILE]

Budget (1, 1e-5), add-remove, two features, one snapshot per person, everything in shares of the
box; mean (standard deviation) over seeds. The seeds are none that the engine was tuned on.
1. Pooling over time: average squared W2 of 600 released people to the population, as set by
   default against time_coupling=0, without coupling. The population is 16,000 fresh people,
   represented by 600 weighted points: it is not the chance of another sample that is measured.
2. Paths: path-space W2 of 600 released paths to true ones, for both couplings, against the floor
   (as many other true paths) and the ceiling (these, coupled at random). Beside them: real people
   at each time with optimal transport between the times, all that unpaired snapshots say without
   privacy; the released marginals with the best coupling there could be; and the true modes with
   one offset per person, as released paths have it, where true people have fresh noise every time.
3. A time that is left out: W2 of its prediction to its people, for each interpolation, against the
   real people before and after it and their midpoint in the sense of optimal transport. Beside
   them what the same model scores at the neighbouring times, which it has seen.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from common import RELEASED, in_parallel, spread, write_json
from privtraj.paper.reproduce.tables import Row, matching
from privtraj.text import aligned

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))  # for its data

BUDGET = (1.0, 1e-5)
FIRST_SEED = 2000
POPULATION_SEED, PORTIONS = 90_000, 8
POOLED = ("three modes", "growth", "ornstein-uhlenbeck", "double-well", "bifurcation")
FOLLOWED = ("three modes", "ornstein-uhlenbeck", "double-well", "bifurcation")
LEFT_OUT = ("three modes", "ornstein-uhlenbeck", "bifurcation")
STROKES = "strokes"
COUPLINGS = ("entropic", "exact")  # the default first
INTERPOLATIONS = ("bridge", "linear", "spline")
REAL, SMOOTH = "real people, exact", "perfect modes, smooth noise"
MARGINALS = "released, best coupling"
BESIDE = "released, at the neighbours"
BETTER_BY, OVER_FLOOR, OVER_MIDPOINT = 0.2, 1.5, 1.3  # what we aim at


class Sizes(NamedTuple):
    """How much of everything."""

    seeds: int
    pooled: tuple[str, ...] = POOLED
    pooled_people: int = 100
    pooled_times: int = 30
    scored: int = 10  # of these times
    released: int = RELEASED
    population: int = 16_000
    followed: tuple[str, ...] = FOLLOWED
    people: int = 1000
    modes_people: int = 3000  # of three modes, where paths are followed
    times: int = 10
    truth: int = 1200  # true paths
    held_out: tuple[str, ...] = LEFT_OUT
    left_out: tuple[int, ...] = (2, 5, 7)


QUICK = {
    "pooled": ("three modes", "bifurcation"),
    "pooled_times": 8,
    "scored": 3,
    "released": 150,
    "population": 2000,
    "followed": ("three modes", "bifurcation"),
    "people": 200,
    "modes_people": 600,
    "times": 5,
    "truth": 300,
    "held_out": ("three modes",),
    "left_out": (2,),
}


# Data and fits --------------------------------------------------------------------------------


def snapshots(data: str, people: int, times: int, seed: int) -> np.ndarray:
    """(T, n, 2) in the unit square, fresh people at every time."""
    from populations import clouds

    return clouds(data, people, times, seed)


def true_paths(data: str, n: int, times: int, seed: int) -> np.ndarray:
    """(n, T, 2) in shares of the box."""
    from privtraj import datasets

    if data == "three modes":
        paths = datasets.three_modes_paths(n, times, seed)
    else:
        paths = datasets.process_paths(data, n, times, seed)
    return (paths + 1.5) / 3


def smooth_modes(n: int, times: int, seed: int) -> np.ndarray:
    """(n, T, 2): the true modes, each person with one offset for all times."""
    from privtraj import datasets

    centres = datasets.three_modes_centres(np.linspace(0, 1, times))[:, np.arange(n) % 3]
    noise = np.random.default_rng(seed).standard_normal((n, 1, 2))
    return (centres.swapaxes(0, 1) + np.sqrt(datasets.THREE_MODES_VARIANCE) * noise + 1.5) / 3


def exactly_coupled(clouds: np.ndarray, seed: int) -> np.ndarray:
    """Paths (n, T, d) through clouds (T, n, d), by optimal transport from time to time."""
    from privtraj.reference import Brownian
    from privtraj.transport.couplings import couple

    times, n, _ = clouds.shape
    couplings = couple(
        clouds, np.full((times, n), 1 / n), np.ones(times - 1), Brownian(1.0), "exact"
    )
    return clouds[np.arange(times), couplings.walk(n, np.random.default_rng(seed))]


def fitted(clouds: np.ndarray, times: np.ndarray, seed: int, pull: float | None = None) -> Any:
    """The model of clouds (T, n, d) at times (T,)."""
    import privtraj as pt

    warnings.simplefilter("ignore", pt.LowBudgetWarning)
    _, n, d = clouds.shape
    data = pt.Snapshots.from_arrays(
        np.repeat(times, n), clouds.reshape(-1, d), bounds=[(0, 1)] * d, bins=times
    )
    return pt.TrajectorySynthesizer(*BUDGET, seed=seed, time_coupling=pull).fit(data)


# 1. Pooling over time -------------------------------------------------------------------------


def scored_times(sizes: Sizes) -> np.ndarray:
    """Indices of the times at which pooling is scored."""
    return np.linspace(0, sizes.pooled_times - 1, sizes.scored).round().astype(int)


def population(data: str, sizes: Sizes) -> list[tuple[np.ndarray, np.ndarray]]:
    """Points (k, 2) and weights (k,) that stand for everybody at every scored time."""
    from populations import clouds, represented

    scored = scored_times(sizes)
    part = sizes.population // PORTIONS  # as many fit in memory
    seeds = range(POPULATION_SEED, POPULATION_SEED + PORTIONS)
    sizes_of = part, sizes.pooled_times
    parts = [clouds(data, *sizes_of, seed, followed=True)[scored] for seed in seeds]
    return [represented(people) for people in np.concatenate(parts, axis=1)]


def pooling(
    data: str, truth: list[tuple[np.ndarray, np.ndarray]], seed: int, sizes: Sizes
) -> list[Row]:
    """Average squared W2 with and without coupling."""
    from populations import squared_w2

    clouds = snapshots(data, sizes.pooled_people, sizes.pooled_times, seed)
    times = np.linspace(0, 1, sizes.pooled_times)
    at = times[scored_times(sizes)]
    rows = []
    for name, pull in (("without", 0.0), ("with", None)):
        model = fitted(clouds, times, seed, pull)
        people = model.sample(sizes.released, at, seed=seed, coupling="exact").values
        pairs = zip(people.swapaxes(0, 1), truth, strict=True)
        error = float(np.mean([squared_w2(cloud, *there) for cloud, there in pairs]))
        rows.append({"data": data, "row": name, "seed": seed, "squared_w2": error})
    return rows


def pooling_table(rows: list[Row]) -> str:
    """Every data set, and whether coupling is as much better on average as it should be."""
    table = [("", "pull=0", "default", "ratio")]
    ratios = []
    for data in _names(rows, "data"):
        without, coupled = (_column(rows, "squared_w2", data, row) for row in ("without", "with"))
        ratios.append(coupled / without)
        table.append((data, spread(without, 5), spread(coupled, 5), spread(ratios[-1], 2)))
    mean = float(np.mean(ratios))
    worst = _names(rows, "data")[int(np.argmax([ratio.mean() for ratio in ratios]))]
    verdict = (
        f"On average coupling is {1 - mean:.1%} better (target {BETTER_BY:.0%}: "
        f"{_met(1 - mean >= BETTER_BY)}); least on {worst}."
    )
    return "\n".join([*aligned(table, right=(1, 2, 3)), verdict])


# 2. Paths -------------------------------------------------------------------------------------


def paths(data: str, seed: int, sizes: Sizes) -> list[Row]:
    """Path-space W2 of released paths and of what they can be compared with."""
    from privtraj.metrics.path_space import path_score, path_wasserstein2

    n, times = sizes.released, sizes.times
    people = sizes.modes_people if data == "three modes" else sizes.people
    model = fitted(snapshots(data, people, times, seed), np.linspace(0, 1, times), seed)
    sets = {how: model.sample(n, seed=seed, coupling=how).values for how in COUPLINGS}
    sets[REAL] = exactly_coupled(snapshots(data, n, times, seed + 20_000), seed)
    if data == "three modes":
        sets[SMOOTH] = smooth_modes(n, times, seed)
    truth = true_paths(data, sizes.truth, times, seed + 30_000)
    fresh = true_paths(data, n, times, seed + 40_000)
    score = path_score(sets[COUPLINGS[0]], truth, fresh=fresh, seed=seed)
    values = {name: path_wasserstein2(released, truth) for name, released in sets.items()}
    values |= {MARGINALS: score.marginal, "floor": score.floor, "ceiling": score.ceiling}
    return [
        {"data": data, "row": row, "seed": seed, "w2": value, "over_floor": value / score.floor}
        for row, value in values.items()
    ]


def paths_table(rows: list[Row]) -> str:
    """Every data set, and whether its paths come near true ones; if not, what does."""
    table = [("", "", "path W2", "over floor")]
    verdicts = []
    for data in _names(rows, "data"):
        over = {row: _column(rows, "over_floor", data, row) for row in _names(rows, "row", data)}
        for row, ratio in over.items():
            value = _column(rows, "w2", data, row)
            table.append((data, row, spread(value), spread(ratio, 2)))
        ours = over[COUPLINGS[0]].mean()
        verdict = f"{data} {ours:.2f} ({_met(ours <= OVER_FLOOR)})"
        if ours > OVER_FLOOR:
            others = [f"{row} {over[row].mean():.2f}" for row in (REAL, SMOOTH) if row in over]
            verdict += f", against {' and '.join(others)}"
        verdicts.append(verdict)
    verdict = f"Times the floor, target {OVER_FLOOR}: {'; '.join(verdicts)}."
    return "\n".join([*aligned(table, right=(2, 3)), verdict])


# 3. A time that is left out -------------------------------------------------------------------


def held_out(
    data: str, seed: int, sizes: Sizes, strokes: str | None = None, digit: int = 3
) -> list[Row]:
    """W2 at every time that is left out in turn: of predictions, and of real neighbours."""
    from privtraj.metrics import wasserstein2
    from privtraj.metrics.held_out import held_out_w2

    if strokes is None:
        clouds = snapshots(data, sizes.people, sizes.times, seed)
    else:
        clouds = stroke_clouds(strokes, digit, seed)
    times = np.linspace(0, 1, len(clouds))
    rows = []
    for i in sizes.left_out:
        model = fitted(np.delete(clouds, i, axis=0), np.delete(times, i), seed)
        draw = partial(model.sample, clouds.shape[1], seed=seed)
        guess = {how: draw(times[i], interpolation=how).values[:, 0] for how in INTERPOLATIONS}
        score = held_out_w2(guess[INTERPOLATIONS[0]], clouds, times, i)
        values = {how: wasserstein2(people, clouds[i]) for how, people in guess.items()}
        beside = draw(times[[i - 1, i + 1]]).values.swapaxes(0, 1)
        values[BESIDE] = float(np.mean(list(map(wasserstein2, beside, clouds[[i - 1, i + 1]]))))
        values |= {name: getattr(score, name) for name in ("previous", "next", "midpoint")}
        rows += [
            {
                "data": data,
                "row": row,
                "seed": seed,
                "time": score.time,
                "w2": value,
                "over_midpoint": value / score.midpoint,
            }
            for row, value in values.items()
        ]
    return rows


def stroke_clouds(path: str, digit: int, seed: int) -> np.ndarray:
    """(T, n, 2): every pen path seen once."""
    from privtraj import datasets

    paths = datasets.strokes(path, digit)
    _, points = datasets.one_snapshot_each(paths, seed)
    return points.reshape(paths.shape[1], -1, 2)


def held_out_table(rows: list[Row]) -> str:
    """Every data set, and whether a missing time is predicted about as the midpoint does it."""
    table = [("", "", "W2", "over midpoint")]
    over: dict[str, list[float]] = {how: [] for how in INTERPOLATIONS}
    for data in _names(rows, "data"):
        for row in _names(rows, "row", data):
            value, ratio = (_column(rows, key, data, row) for key in ("w2", "over_midpoint"))
            table.append((data, row, spread(value), spread(ratio, 2)))
            if row in over:
                over[row].append(float(ratio.mean()))
    verdicts = [
        f"{how} {np.mean(each):.2f} on average, {max(each):.2f} at worst "
        f"({_met(max(each) <= OVER_MIDPOINT)})"
        for how, each in over.items()
    ]
    verdict = f"Times the midpoint, target {OVER_MIDPOINT}: {'; '.join(verdicts)}."
    return "\n".join([*aligned(table, right=(2, 3)), verdict])


# Tables ---------------------------------------------------------------------------------------


def _names(rows: list[Row], key: str, data: str | None = None) -> list[str]:
    """The different values of a key, of one data set or all, in order."""
    return list(dict.fromkeys(row[key] for row in rows if data in (None, row["data"])))


def _column(rows: list[Row], key: str, data: str, row: str) -> np.ndarray:
    """(seeds,) of one line of a table, averaged over whatever else there is."""
    mine = matching(rows, data=data, row=row)
    seeds = dict.fromkeys(each["seed"] for each in mine)
    return np.array([np.mean([e[key] for e in mine if e["seed"] == seed]) for seed in seeds])


def _met(reached: bool) -> str:
    return "met" if reached else "missed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smallest run, one seed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--strokes", help="file or folder of pen strokes, for the third table")
    parser.add_argument("--digit", type=int, default=3, help="of the strokes")
    parser.add_argument("--json", help="file for every number")
    args = parser.parse_args()

    began = time.perf_counter()
    sizes = Sizes(seeds=1, **QUICK) if args.quick else Sizes(args.seeds)
    seeds = range(FIRST_SEED, FIRST_SEED + sizes.seeds)

    def each(function: Callable[..., Any], tasks: list[tuple[Any, ...]]) -> list[Any]:
        # a quick run is done before other processes have started
        return [function(*task) for task in tasks] if args.quick else in_parallel(function, tasks)

    def rows(function: Callable[..., Any], tasks: list[tuple[Any, ...]]) -> list[Row]:
        return [row for part in each(function, tasks) for row in part]

    truths = each(population, [(data, sizes) for data in sizes.pooled])
    known = zip(sizes.pooled, truths, strict=True)
    pooled = rows(pooling, [(*pair, seed, sizes) for pair in known for seed in seeds])
    print(
        f"1. Pooling over time: squared W2 to the population, {sizes.pooled_people} people at each "
        f"of {sizes.pooled_times} times\n{pooling_table(pooled)}\n",
        flush=True,
    )
    followed = rows(paths, [(data, seed, sizes) for data in sizes.followed for seed in seeds])
    print(
        f"2. Paths over {sizes.times} times, {sizes.people} people at each "
        f"({sizes.modes_people} of three modes)\n{paths_table(followed)}\n",
        flush=True,
    )
    tasks = [(data, seed, sizes) for data in sizes.held_out for seed in seeds]
    if args.strokes:
        tasks += [(STROKES, seed, sizes, args.strokes, args.digit) for seed in seeds]
    missing = rows(held_out, tasks)
    print(
        f"3. A time left out of {sizes.times}, {sizes.people} people at each\n"
        f"{held_out_table(missing)}\n"
    )
    print(f"seeds: {sizes.seeds}, {time.perf_counter() - began:.0f} s")
    write_json(args.json, {"pooling": pooled, "paths": followed, "held out": missing})


if __name__ == "__main__":
    main()
