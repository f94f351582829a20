"""Does time coupling help, are released paths right, and do people move as they do?

    python experiments/coupling.py [--quick] [--seeds 5] [--only 2 3] [--two-records]
                                   [--strokes FILE] [--digit 3] [--json FILE]

Budget (1, 1e-5), add-remove, two features, one record per person, everything in shares of the
box; mean (standard deviation) over seeds. The seeds are none that the method was tuned on.
1. Pooling over time: average squared W2 of 600 released people to the population, as set by
   default against time_coupling=0, without coupling. The population is 16,000 fresh people,
   represented by 600 weighted points: it is not the chance of another sample that is measured.
2. Paths: path-space W2 of 600 released paths to 1,200 true ones at ten times, over the floor (600
   other true paths). People are seen at ten listed times, 1,000 at each, or the same ones at any
   time. As set by default; with straight paths of least action, Inertia(); with entropic couplings
   under Brownian motion, as version 0.1 had them; where people turn, with the drift that turns
   them; and where they forget where they were, with a memory that is stated. Beside them: the best
   coupling there could be of the released marginals, real people coupled by optimal transport, and
   true marginals coupled at random.
3. How people move, 5,000 of them seen at any time: length and 95 % speed over those of true people,
   read 10, 50 and 200 times; largest error of autocorrelations over lags. Children who grow: share
   whose height falls by more than 1 cm within a year, and Spearman's correlation of height at 6 and
   at 16. With --two-records 30 % of the people are seen twice.
4. A time that is left out of ten: W1 and W2 of its prediction to its people, against the real
   people before and after it and their midpoint in the sense of optimal transport. Beside them
   what the same model scores at the neighbouring times, which it has seen.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from common import RELEASED, in_parallel, spread, write_json
from privtraj.base.errors import aligned
from reproduce.tables import Row, matching
from seen import (
    BUDGET,
    exactly_coupled,
    fitted,
    fitted_clouds,
    seen_clouds,
    seen_once,
    stroke_clouds,
    true_paths,
)

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))  # for its data

FIRST_SEED = 2000
POPULATION_SEED, PORTIONS = 90_000, 8
POOLED = ("three modes", "growth", "ornstein-uhlenbeck", "double-well", "bifurcation")
FOLLOWED = (
    "three modes",
    "ornstein-uhlenbeck",
    "double-well",
    "bifurcation",
    "rotation",
    "inertia",
    "vehicles",
)
SMOOTH = ("rotation", "inertia", "vehicles")  # paths that have a length
LEFT_OUT = ("three modes", "ornstein-uhlenbeck", "bifurcation", "rotation")
STROKES = "strokes"
WHEN = {"listed": False, "any time": True}
DEFAULT, STRAIGHT, ENTROPIC, TRUE_DRIFT = "default", "no drift", "entropic", "true drift"
STATED = "memory stated"
MEMORY = {"inertia": 0.25, "vehicles": 0.25}  # what somebody might say who knows how people move
BEST, REAL, SHUFFLED = "best coupling", "real people, OT", "coupled at random"
BESIDE = "default, at the neighbours"
READ = (10, 50, 200)
GROWN = (6.0, 16.0)  # the ages between which ranks are compared
AGES = np.linspace(0.0, 20.0, 81)  # at which children are read
KEPT = (0.6, 5.0)  # autocorrelation of children's scores where they are seen twice
TWICE = 0.3  # share of people who are seen twice
BETTER_BY, OVER_FLOOR, WITHIN, FALL, OVER_MIDPOINT = 0.2, 1.1, 0.15, 0.05, 1.1  # what we aim at
WITH_AIM = ("double-well", "bifurcation", "rotation", "inertia")  # of OVER_FLOOR


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
    times: int = 10
    truth: int = 1200  # true paths
    moving: tuple[str, ...] = SMOOTH
    moving_people: int = 5000
    held_out: tuple[str, ...] = LEFT_OUT
    left_out: tuple[int, ...] = (2, 5, 7)


QUICK = {
    "pooled": ("three modes", "bifurcation"),
    "pooled_times": 8,
    "scored": 3,
    "released": 150,
    "population": 2000,
    "followed": ("rotation",),
    "people": 200,
    "times": 5,
    "truth": 300,
    "moving": ("rotation",),
    "moving_people": 1000,
    "held_out": ("three modes",),
    "left_out": (2,),
}


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
    from populations import clouds, squared_w2

    people_seen = clouds(data, sizes.pooled_people, sizes.pooled_times, seed)
    times = np.linspace(0, 1, sizes.pooled_times)
    at = times[scored_times(sizes)]
    rows = []
    for name, pull in (("without", 0.0), ("with", None)):
        model = fitted_clouds(people_seen, times, seed, time_coupling=pull)
        people = model.sample(sizes.released, at, seed=seed, coupling="exact").values
        pairs = zip(people.swapaxes(0, 1), truth, strict=True)
        error = float(np.mean([squared_w2(cloud, *there) for cloud, there in pairs]))
        rows.append({"data": data, "row": name, "seed": seed, "squared_w2": error})
    return rows


def pooling_table(rows: list[Row]) -> str:
    """Every data set, and whether coupling is as much better on average as it should be."""
    table = [("", "pull=0", "default", "ratio")]
    ratios = []
    for data in names(rows, "data"):
        without, coupled = (column(rows, "squared_w2", data, row) for row in ("without", "with"))
        ratios.append(coupled / without)
        table.append((data, spread(without, 5), spread(coupled, 5), spread(ratios[-1], 2)))
    mean = float(np.mean(ratios))
    worst = names(rows, "data")[int(np.argmax([ratio.mean() for ratio in ratios]))]
    verdict = (
        f"On average coupling is {1 - mean:.1%} better (target {BETTER_BY:.0%}: "
        f"{_met(1 - mean >= BETTER_BY)}); least on {worst}."
    )
    return "\n".join([*aligned(table, right=(1, 2, 3)), verdict])


# 2. Paths -------------------------------------------------------------------------------------


def paths(data: str, seed: int, sizes: Sizes) -> list[Row]:
    """Path-space W2 of released paths and of what they can be compared with, for people who are
    seen at listed times and for the same ones at any time."""
    from privtraj.metrics import average_squared_w2, path_wasserstein2, randomly_coupled

    n, times = sizes.released, np.linspace(0, 1, sizes.times)
    truth = true_paths(data, sizes.truth, sizes.times, seed + 30_000)
    fresh = true_paths(data, n, sizes.times, seed + 40_000)
    real = exactly_coupled(seen_clouds(data, n, sizes.times, seed + 20_000))
    floor = path_wasserstein2(fresh, truth)
    shuffled = path_wasserstein2(randomly_coupled(fresh, seed=seed), truth)
    rows = []
    for when, anytime in WHEN.items():
        seen = seen_once(data, sizes.people, sizes.times, seed, anytime)
        sets = released_paths(data, partial(fitted, *seen, times, seed), n, seed)
        best = average_squared_w2(sets[DEFAULT].swapaxes(0, 1), truth.swapaxes(0, 1)) ** 0.5
        values = {name: path_wasserstein2(sets[name], truth) for name in sets}
        values |= {BEST: best, REAL: path_wasserstein2(real, truth)}
        values |= {"floor": floor, SHUFFLED: shuffled}
        rows += [
            {"data": data, "when": when, "row": row, "seed": seed, "w2": value}
            | {"over_floor": value / floor}
            for row, value in values.items()
        ]
    return rows


def released_paths(data: str, fit: Callable[..., Any], n: int, seed: int) -> dict[str, np.ndarray]:
    """Paths (n, T, 2) of a fit, by default and under each other reference process."""
    from privtraj.motion.reference import Drift, Inertia

    model = fit()
    sets = {
        DEFAULT: model.sample(n, seed=seed),
        STRAIGHT: fit(reference=Inertia()).sample(n, seed=seed),
        ENTROPIC: model.sample(n, seed=seed, coupling="entropic"),
    }
    if data == "rotation":
        sets[TRUE_DRIFT] = fit(reference=Drift(turning())).sample(n, seed=seed)
    if data in MEMORY:
        sets[STATED] = forgetting(model, data).sample(n, seed=seed)
    return {name: drawn.values for name, drawn in sets.items()}


def forgetting(model: Any, data: str) -> Any:
    """The same model, whose people forget where they were among the others."""
    from privtraj.motion.reference import Inertia

    return model.with_reference(Inertia(memory=MEMORY[data]))


def turning() -> tuple[np.ndarray, np.ndarray]:
    """Matrix and offset of the flow of `rotation`, about the middle of the unit square."""
    from journeys import ROTATION_ANGLE

    matrix = ROTATION_ANGLE * np.array([[0.0, -1.0], [1.0, 0.0]])
    return matrix, -matrix @ np.full(2, 0.5)


def paths_table(rows: list[Row]) -> str:
    """Every data set over its floor, and whether its paths are as near true ones as they should."""
    columns = (DEFAULT, STRAIGHT, ENTROPIC, TRUE_DRIFT, STATED, BEST, REAL, SHUFFLED)
    table = [("", "seen", *columns, "floor")]
    reached: dict[str, list[float]] = {}
    for data in names(rows, "data"):
        for when in WHEN:
            mine = matching(rows, when=when)
            over = [column(mine, "over_floor", data, row) for row in columns]
            floor = spread(column(mine, "w2", data, "floor"))
            cells = (spread(ratio, 2) if len(ratio) else "" for ratio in over)
            table.append((data, when, *cells, floor))
            reached.setdefault(data, []).append(float(over[0].mean()))
    verdicts = (
        f"{data} {' and '.join(f'{ratio:.2f}' for ratio in reached[data])} "
        f"({_met(max(reached[data]) <= OVER_FLOOR)})"
        for data in WITH_AIM
        if data in reached
    )
    verdict = f"Times the floor, target {OVER_FLOOR}: {'; '.join(verdicts)}."
    return "\n".join([*aligned(table, right=range(2, len(table[0]))), verdict])


# 3. How people move ---------------------------------------------------------------------------


def movement(data: str, seed: int, sizes: Sizes, twice: bool) -> list[Row]:
    """How far and how fast released people go over true ones, and how long their values last."""
    from privtraj import metrics

    model = seen_model(partial(true_paths, data), [(0, 1)] * 2, (0, 1), seed, sizes, twice)
    truth = {k: true_paths(data, sizes.truth, k, seed + 30_000) for k in READ}
    ways = {DEFAULT: (model, {})}
    if not twice:
        ways[ENTROPIC] = model, {"coupling": ENTROPIC}
    if data in MEMORY and not twice:
        ways[STATED] = forgetting(model, data), {}
    rows = []
    for name, (source, how) in ways.items():
        drawn = {
            k: source.sample(sizes.released, np.linspace(0, 1, k), seed=seed, **how).values
            for k in READ
        }
        row: Row = {"data": data, "row": name, "seed": seed, "twice": twice}
        for k in READ:
            row[f"length {k}"] = metrics.length_ratio(drawn[k], truth[k])
            row[f"speed {k}"] = metrics.fast_speed_ratio(drawn[k], truth[k])
        row["autocorrelation"] = metrics.autocorrelation_error(drawn[READ[0]], truth[READ[0]])
        rows.append(row)
    return rows


def falling_share(heights: np.ndarray, by: float, over: float) -> float:
    """Of people whose heights (n, T) at AGES fall by more than `by` within `over` years."""
    falls = np.zeros(len(heights), dtype=bool)
    for j in range(1, len(AGES)):
        before = heights[:, np.searchsorted(AGES, AGES[j] - over) : j]
        falls |= (before - heights[:, [j]] > by).any(axis=1)
    return float(falls.mean())


def growing(seed: int, sizes: Sizes, twice: bool) -> list[Row]:
    """Children who shrink, and whether the tall stay tall: by default, and where height is said
    never to fall. Seen once, children keep their scores; seen twice, these change."""
    from scipy.stats import spearmanr

    from privtraj import datasets

    kept = KEPT if twice else None
    children = partial(datasets.growth_paths, persistence=kept)
    bounds, limits = datasets.GROWTH_BOUNDS, datasets.GROWTH_TIME_RANGE
    model = seen_model(children, bounds, limits, seed, sizes, twice)
    true = children(sizes.truth, AGES, seed + 30_000)
    sets = {"true children": true}
    for name, rising in ((DEFAULT, None), ("monotone", ["height"])):
        drawn = model.with_constraints(monotone=rising).sample(sizes.moving_people, AGES, seed=seed)
        sets[name] = drawn.values
    ends = np.searchsorted(AGES, GROWN)
    return [
        {
            "data": "growth",
            "row": name,
            "seed": seed,
            "twice": twice,
            "falling": falling_share(paths[..., 0], 1.0, 1.0),
            "rank": float(spearmanr(*paths[:, ends, 0].T).statistic),
        }
        for name, paths in sets.items()
    ]


def seen_model(
    simulate: Callable[..., np.ndarray],
    bounds: Any,
    limits: tuple[float, float],
    seed: int,
    sizes: Sizes,
    twice: bool,
) -> Any:
    """The model of people who are seen at any time, once, or some of them twice.

    simulate(n, times, seed): their paths (n, T, d).
    """
    import privtraj as pt

    rng, n = np.random.default_rng(seed), sizes.moving_people
    moments = np.linspace(*limits, 241)
    paths = simulate(n, moments, seed)
    who = np.arange(n)
    if twice:
        who = np.append(who, rng.choice(n, int(TWICE * n), replace=False))
    when = rng.integers(len(moments), size=len(who))
    options = {"records_per_person": 2, "one_per_bin": False} if twice else {}
    data = pt.Snapshots.from_arrays(
        moments[when],
        paths[who, when],
        bounds=bounds,
        bins=10,
        time_range=limits,
        person=who,
        **options,
    )
    return pt.TrajectorySynthesizer(*BUDGET, seed=seed).fit(data)


def movement_table(rows: list[Row]) -> str:
    """Ratios to true people, and whether they are as near 1 as they should be."""
    keys = [f"{what} {k}" for what in ("length", "speed") for k in READ]
    table = [("", "", *keys, "autocorrelation")]
    verdicts = []
    for data in names(rows, "data"):
        for row in names(rows, "row", data):
            cells = [spread(column(rows, key, data, row), 2) for key in (*keys, "autocorrelation")]
            table.append((data, row, *cells))
        off = [abs(float(column(rows, key, data, DEFAULT).mean()) - 1) for key in keys]
        verdicts.append(f"{data} {max(off):.0%} ({_met(max(off) <= WITHIN)})")
    verdict = f"Off by at most, target {WITHIN:.0%}: {'; '.join(verdicts)}."
    return "\n".join([*aligned(table, right=range(2, 9)), verdict])


def growing_table(rows: list[Row]) -> str:
    """Children who shrink, and ranks that last."""
    table = [("", "shrink", "rank at 6 and 16")]
    for row in names(rows, "row"):
        values = [column(rows, key, "growth", row) for key in ("falling", "rank")]
        table.append((row, spread(values[0], 3), spread(values[1], 2)))
    true, share = (
        float(column(rows, "falling", "growth", row).mean()) for row in ("true children", DEFAULT)
    )
    if true > FALL:
        verdict = "Scores of true children change by chance here: only ranks are to be compared."
        return "\n".join([*aligned(table, right=(1, 2)), verdict])
    verdict = f"Children who shrink, target {FALL:.0%}: {share:.1%} ({_met(share <= FALL)})."
    return "\n".join([*aligned(table, right=(1, 2)), verdict])


# 4. A time that is left out -------------------------------------------------------------------


def held_out(
    data: str, seed: int, sizes: Sizes, strokes: str | None = None, digit: int = 3
) -> list[Row]:
    """W1 and W2 at every time that is left out in turn: of predictions, and of real neighbours."""
    if strokes is None:
        clouds = seen_clouds(data, sizes.people, sizes.times, seed)
    else:
        clouds = stroke_clouds(strokes, digit, seed)
    times = np.linspace(0, 1, len(clouds))
    rows = []
    for i in sizes.left_out:
        model = fitted_clouds(np.delete(clouds, i, axis=0), np.delete(times, i), seed)
        guess = model.sample(clouds.shape[1], times[[i - 1, i, i + 1]], seed=seed).values
        scores = prediction_scores({DEFAULT: guess[:, 1]}, clouds, times, i)
        beside = [w1_and_w2(guess[:, k], clouds[i - 1 + k]) for k in (0, 2)]
        scores[BESIDE] = tuple(np.mean(beside, axis=0))
        rows += held_out_rows(data, seed, float(times[i]), scores)
    return rows


def prediction_scores(
    guesses: dict[str, np.ndarray], clouds: Any, times: np.ndarray, i: int
) -> dict[str, tuple[float, float]]:
    """W1 and W2 to the people of time i: of clouds (k, d) that predict them, of the people before
    and after, and of the midpoint of these."""
    from privtraj.metrics.distances import distinct, weighted_cost
    from privtraj.motion.couplings import least_cost

    # the points (1 - s) x + s y of the optimal plan between the people before and after
    s = (times[i] - times[i - 1]) / (times[i + 1] - times[i - 1])
    (x, a), (y, b) = (distinct(np.asarray(clouds[i + step])) for step in (-1, 1))
    plan = least_cost(a, b, ((x[:, None] - y) ** 2).sum(axis=2))
    middle = (1 - s) * x[plan.row] + s * y[plan.col], plan.data / plan.data.sum()
    here = distinct(np.asarray(clouds[i]))
    scores = {name: w1_and_w2(guess, clouds[i]) for name, guess in guesses.items()}
    scores |= {"previous": w1_and_w2(clouds[i - 1], clouds[i])}
    scores |= {"next": w1_and_w2(clouds[i + 1], clouds[i])}
    w1, square = (weighted_cost(*middle, *here, cost) for cost in ("euclidean", "sqeuclidean"))
    return scores | {"midpoint": (w1, float(np.sqrt(square)))}


def w1_and_w2(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    from privtraj.metrics import wasserstein1, wasserstein2

    return wasserstein1(a, b), wasserstein2(a, b)


def held_out_rows(
    data: str, seed: int, at: float, scores: dict[str, tuple[float, float]]
) -> list[Row]:
    """One row for each score, over that of the midpoint."""
    middle = scores["midpoint"]
    return [
        {"data": data, "row": row, "seed": seed, "time": at, "w1": w1, "w2": w2}
        | {"w1_over_midpoint": w1 / middle[0], "over_midpoint": w2 / middle[1]}
        for row, (w1, w2) in scores.items()
    ]


def held_out_table(rows: list[Row]) -> str:
    """Every data set, and whether a missing time is predicted about as the midpoint does it."""
    keys, digits = ("w1", "w2", "w1_over_midpoint", "over_midpoint"), (4, 4, 2, 2)
    table = [("", "", "W1", "W2", "W1 over midpoint", "W2 over midpoint")]
    over = []
    for data in names(rows, "data"):
        for row in names(rows, "row", data):
            values = [column(rows, key, data, row) for key in keys]
            table.append((data, row, *map(spread, values, digits)))
        over.append(float(column(rows, "over_midpoint", data, DEFAULT).mean()))
    verdict = (
        f"Times the midpoint, target {OVER_MIDPOINT}: {np.mean(over):.2f} on average, "
        f"{max(over):.2f} at worst ({_met(max(over) <= OVER_MIDPOINT)})."
    )
    return "\n".join([*aligned(table, right=(2, 3, 4, 5)), verdict])


# Tables ---------------------------------------------------------------------------------------


def names(rows: list[Row], key: str, data: str | None = None) -> list[str]:
    """The different values of a key, of one data set or all, in order."""
    return list(dict.fromkeys(row[key] for row in rows if data in (None, row["data"])))


def column(rows: list[Row], key: str, data: str, row: str) -> np.ndarray:
    """(seeds,) of one line of a table, averaged over whatever else there is."""
    mine = matching(rows, data=data, row=row)
    seeds = dict.fromkeys(each["seed"] for each in mine)
    return np.array([np.mean([e[key] for e in mine if e["seed"] == seed]) for seed in seeds])


def _met(reached: bool) -> str:
    return "met" if reached else "missed"


Tasks = Iterable[tuple[Any, ...]]


class Run(NamedTuple):
    """What one run computes: the seeds of every section, one after the other or on all cores."""

    sizes: Sizes
    seeds: range
    quick: bool

    def each(self, function: Callable[..., Any], tasks: Tasks) -> list[Any]:
        # a quick run is done before other processes have started
        tasks = list(tasks)
        if self.quick:
            return [function(*task) for task in tasks]
        return in_parallel(function, tasks)

    def rows(self, function: Callable[..., Any], tasks: Tasks) -> list[Row]:
        return [row for part in self.each(function, tasks) for row in part]

    def pooling(self) -> list[Row]:
        truths = self.each(population, [(data, self.sizes) for data in self.sizes.pooled])
        known = list(zip(self.sizes.pooled, truths, strict=True))
        pooled = self.rows(
            pooling, [(*pair, seed, self.sizes) for pair in known for seed in self.seeds]
        )
        print(
            f"1. Pooling over time: squared W2 to the population, {self.sizes.pooled_people} "
            f"people at each of {self.sizes.pooled_times} times\n{pooling_table(pooled)}\n",
            flush=True,
        )
        return pooled

    def paths(self) -> list[Row]:
        tasks = [(data, seed, self.sizes) for data in self.sizes.followed for seed in self.seeds]
        followed = self.rows(paths, tasks)
        print(
            f"2. Paths over {self.sizes.times} times, {self.sizes.people} people at each: path W2 "
            f"over the floor\n{paths_table(followed)}\n",
            flush=True,
        )
        return followed

    def movement(self, twice: bool) -> list[Row]:
        sizes = self.sizes
        moved = self.rows(
            movement, [(data, seed, sizes, twice) for data in sizes.moving for seed in self.seeds]
        )
        grown = self.rows(growing, [(seed, sizes, twice) for seed in self.seeds])
        print(
            f"3. How {sizes.moving_people} people move, seen "
            f"{f'once, {TWICE:.0%} of them twice' if twice else 'once'}: over true people\n"
            f"{movement_table(moved)}\n\n{growing_table(grown)}\n",
            flush=True,
        )
        return moved + grown

    def held_out(self, strokes: str | None, digit: int) -> list[Row]:
        sizes = self.sizes
        tasks: list[tuple[Any, ...]]
        tasks = [(data, seed, sizes) for data in sizes.held_out for seed in self.seeds]
        if strokes:
            tasks += [(STROKES, seed, sizes, strokes, digit) for seed in self.seeds]
        missing = self.rows(held_out, tasks)
        print(
            f"4. A time left out of {sizes.times}, {sizes.people} people at each\n"
            f"{held_out_table(missing)}\n",
            flush=True,
        )
        return missing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smallest run, one seed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", type=int, nargs="+", default=[1, 2, 3, 4], help="these tables")
    parser.add_argument("--two-records", action="store_true", help="the third table once more")
    parser.add_argument("--strokes", help="file or folder of pen strokes, for the fourth table")
    parser.add_argument("--digit", type=int, default=3, help="of the strokes")
    parser.add_argument("--json", help="file for every number")
    args = parser.parse_args()

    began = time.perf_counter()
    sizes = Sizes(seeds=1, **QUICK) if args.quick else Sizes(args.seeds)
    run = Run(sizes, range(FIRST_SEED, FIRST_SEED + sizes.seeds), args.quick)
    wanted: dict[str, tuple[int, Callable[[], list[Row]]]] = {
        "pooling": (1, run.pooling),
        "paths": (2, run.paths),
        "movement": (3, partial(run.movement, False)),
        "held out": (4, partial(run.held_out, args.strokes, args.digit)),
    }
    if args.two_records:
        wanted["movement, two records"] = (3, partial(run.movement, True))
    found = {name: made() for name, (table, made) in wanted.items() if table in args.only}
    print(f"seeds: {sizes.seeds}, {time.perf_counter() - began:.0f} s")
    write_json(args.json, found)


if __name__ == "__main__":
    main()
