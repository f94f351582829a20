"""A day in a city: do synthetic people go where people go, come home, wait, and move as fast?

    python benchmarks/mobility.py [--people 10000] [--seeds 3] [--epsilon 1] [--quick] [--json FILE]

Simulated people, each seen once at any time of one day; in a second table a quarter of them two to
four times. They sleep at home, in one of six districts; four in five leave for work in the morning,
by gravity to one of four places, others run an errand; everybody waits where they are in between,
and at night is at home again. Delta is 1e-6. Rows are fits by default, with `Cycle`, the plain
histogram (12 times, its best grid by hand) whose neighbouring times are linked by optimal
transport, true marginals so linked, and 5,000 other true people; `one at random` keeps one record
of each person.

    OD day       total variation of (cell at 5:00, cell at 12:00), 4 x 4 cells of 5 km
    OD night     the same of 12:00 and 23:00
    home         kilometres between the places at 5:00 and at 23:00, median
    waiting      share of quarters of an hour in which people go less than 100 m
    50, 99 %     quantiles of the speed of those who move, and of all, in km/h
    trip         mean kilometres from one stay to the next, of trips of 1 km or more
    W2           kilometres, mean over eight times
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import privtraj as pt
from privtraj.base.arrays import Floats
from privtraj.metrics import randomly_coupled, wasserstein2
from privtraj.motion.process import Reference, follow

BOX = [(0.0, 20.0), (0.0, 20.0)]  # km
READ = np.linspace(0, 24, 97)  # every quarter of an hour
STEP = READ[1] - READ[0]
HOMES = np.array([[4, 4], [5, 15], [15, 16], [16, 5], [10, 10], [11, 3]], float)
HOME_WIDTHS, HOME_SHARES = (1.2, 1.5, 1.3, 1.6, 1.8, 1.0), (0.2, 0.15, 0.2, 0.15, 0.2, 0.1)
WORKS = np.array([[10, 10.5], [17, 11], [4, 10], [8, 17]], float)
WORK_WIDTHS, WORK_PULL = (1.0, 0.7, 0.8, 0.6), (0.5, 0.2, 0.15, 0.15)
REACH = 5.0  # km, of gravity
WORKERS = 0.8
SPEED = 15.0  # km/h from door to door, median
GRIDS = (6, 8, 10, 12, 16)  # of the plain histogram
COARSE = 4


def city(n: int, times: Floats, rng: np.random.Generator) -> Floats:
    """Paths (n, q, 2) in km at times (q,) of the day, in hours."""
    district = rng.choice(len(HOMES), n, p=HOME_SHARES)
    home = rng.normal(HOMES[district], np.take(HOME_WIDTHS, district)[:, None])
    far = np.linalg.norm(home[:, None] - WORKS, axis=2)
    pull = np.array(WORK_PULL) * np.exp(-far / REACH)
    at = (np.cumsum(pull, axis=1) / pull.sum(axis=1)[:, None] < rng.random((n, 1))).sum(axis=1)
    work = rng.normal(WORKS[at], np.take(WORK_WIDTHS, at)[:, None])
    errand = home + rng.normal(0, 2.0, (n, 2))
    works = rng.random(n) < WORKERS
    goal = np.clip(np.where(works[:, None], work, errand), 0, 20)
    home = np.clip(home, 0, 20)
    leave = np.where(works, rng.normal(7.6, 0.9, n), rng.uniform(9, 16, n))
    stay = np.where(works, rng.normal(8.6, 1.0, n), rng.uniform(0.5, 2.5, n))
    way = np.linalg.norm(goal - home, axis=1) / (SPEED * rng.lognormal(0, 0.3, n))
    out = (times - leave[:, None]) / way[:, None]
    back = (times - (leave + way + np.maximum(stay, 0.5))[:, None]) / way[:, None]
    gone = np.clip(out, 0, 1) - np.clip(back, 0, 1)
    return home[:, None] + gone[..., None] * (goal - home)[:, None]


def seen(n: int, rng: np.random.Generator, several: bool) -> dict[str, Any]:
    """Records of n people: who, when, where; of a quarter of them two to four where several."""
    records = np.where(several & (rng.random(n) < 0.25), rng.integers(2, 5, n), 1)
    who = np.repeat(np.arange(n), records)
    quarters = rng.integers(0, 24 * 60, len(who)) / 60  # to the minute
    paths = city(n, np.arange(24 * 60) / 60, np.random.default_rng(rng.integers(2**32)))
    places = paths[who, np.rint(quarters * 60).astype(int)]
    return {"person": who, "hour": quarters, "x": places[:, 0], "y": places[:, 1]}


def snapshots(table: dict[str, Any], **how: Any) -> pt.Snapshots:
    options = {"bins": None, "time_range": (0, 24)} | how
    options = {key: value for key, value in options.items() if value is not None}
    bounds = dict(zip("xy", BOX, strict=True))
    return pt.Snapshots.from_table(table, time="hour", person="person", bounds=bounds, **options)


# What is asked of paths (n, 97, 2) at READ -----------------------------------------------------


def cell(places: Floats) -> Any:
    x, y = np.clip((places * COARSE / 20).astype(int), 0, COARSE - 1).T
    return x * COARSE + y


def flows(paths: Floats, first: float, second: float) -> Floats:
    pair = (paths[:, round(hour / STEP)] for hour in (first, second))
    a, b = map(cell, pair)
    return np.bincount(a * COARSE**2 + b, minlength=COARSE**4) / len(paths)


def trips(paths: Floats) -> Floats:
    """Kilometres from stay to stay, of those of 1 km or more."""
    moving = np.linalg.norm(np.diff(paths, axis=1), axis=2) > 0.1
    edge = np.diff(np.pad(moving.astype(int), ((0, 0), (1, 1))), axis=1)
    who, start = np.nonzero(edge == 1)
    end = np.nonzero(edge == -1)[1]
    far = np.linalg.norm(paths[who, end] - paths[who, start], axis=1)
    return far[far > 1]


def asked(paths: Floats, truth: Floats) -> dict[str, float]:
    """All measures of paths, against those of many true people."""
    speed = np.linalg.norm(np.diff(paths, axis=1), axis=2) / STEP
    moving, found = speed[speed > 0.4], {}
    for name, hours in {"OD day": (5, 12), "OD night": (12, 23)}.items():
        found[name] = 0.5 * np.abs(flows(paths, *hours) - flows(truth, *hours)).sum()
    ends = paths[:, round(5 / STEP)] - paths[:, round(23 / STEP)]
    found["home"] = float(np.median(np.linalg.norm(ends, axis=1)))
    found["waiting"] = float((speed <= 0.4).mean())
    found["50 %"] = float(np.median(moving)) if len(moving) else 0.0
    found["99 %"] = float(np.quantile(speed, 0.99))
    long = trips(paths)
    found["trip"] = float(long.mean()) if len(long) else 0.0
    at = range(6, 97, 12)
    found["W2"] = float(np.mean([wasserstein2(paths[:1000, k], truth[:1000, k]) for k in at]))
    return found


# Who makes paths -------------------------------------------------------------------------------


def linked(clouds: Floats, clock: Floats) -> Floats:
    """Paths (n, 97, 2) through clouds (K, n, 2), linked by optimal transport, straight between."""
    paths = follow(clouds, clock, Reference())
    return np.stack([[np.interp(READ, clock, x) for x in person.T] for person in paths]).swapaxes(
        1, 2
    )


def histogram(table: dict[str, Any], epsilon: float, cells: int, seed: int) -> Floats:
    """The sceptic's: 12 listed times, Laplace noise, a threshold, links by optimal transport."""
    from baselines import ThresholdedHistogram

    clock = np.linspace(1, 23, 12)
    snaps = snapshots(table, bins=clock, time_range=None, **one(table))
    made = ThresholdedHistogram(epsilon, 1e-6, seed=seed, cells=cells).fit(snaps)
    rng = np.random.default_rng(seed)
    clouds = np.stack([cloud[rng.integers(len(cloud), size=1000)] for cloud in made.marginals])
    return linked(clouds, clock)


def one(table: dict[str, Any]) -> dict[str, Any]:
    several = len(np.unique(table["person"])) < len(table["person"])
    return {"one_per_person": "random", "seed": 0} if several else {}


def makers(table: dict[str, Any], epsilon: float, seed: int) -> dict[str, Callable[[], Floats]]:
    """Paths of every row of the table."""
    fits: dict[str, Any] = {}

    def ours(reference: str, **how: Any) -> Floats:
        said = {} if reference == "default" else {"reference": reference}
        if "records_per_person" in how or not fits:
            recipe = pt.TrajectorySynthesizer(epsilon, 1e-6, seed=seed, **said)
            fits["model"] = recipe.fit(snapshots(table, **how))
        model = fits["model"].with_reference(reference) if said else fits["model"]
        return model.sample(5000, READ, seed=seed).values

    rows: dict[str, Callable[[], Floats]] = {}
    if one(table):
        several = {"records_per_person": 4, "one_per_bin": False}
        rows |= {
            "default, one at random": lambda: ours("default", **one(table)),
            "cycle, one at random": lambda: ours("cycle period=24", **one(table)),
            "default": lambda: ours("default", **several),
            "cycle": lambda: ours("cycle period=24", **several),
        }
    else:
        rows |= {
            "default": lambda: ours("default"),
            "cycle": lambda: ours("cycle period=24"),
        }
        rows |= {
            f"histogram {g}": lambda g=g: histogram(table, epsilon, g, seed)  # type: ignore
            for g in GRIDS
        }
        fresh = city(1000, READ, np.random.default_rng(seed + 500))
        shuffled = randomly_coupled(fresh, seed=seed)[:, 4::8]
        rows["true marginals, linked"] = lambda: linked(shuffled.swapaxes(0, 1), READ[4::8])
        rows["other true people"] = lambda: city(5000, READ, np.random.default_rng(seed + 600))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--only", nargs="+", help="rows that begin so")
    parser.add_argument("--quick", action="store_true", help="one seed, 2,000 people")
    parser.add_argument("--json", help="file for every number")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds, n = (1, 2000) if args.quick else (args.seeds, args.people)
    truth = city(50_000, READ, np.random.default_rng(99))
    numbers: dict[str, Any] = {}
    for several in (False, True):
        print("a quarter seen two to four times" if several else "seen once", flush=True)
        for seed in range(seeds):
            rng = np.random.default_rng(1000 + seed)
            for row, make in makers(seen(n, rng, several), args.epsilon, seed).items():
                if args.only and not row.startswith(tuple(args.only)):
                    continue
                began = time.perf_counter()
                found = asked(make(), truth) | {"seconds": time.perf_counter() - began}
                numbers.setdefault(f"{row}{', several' * several}", []).append(found)
        print(table_of({k: v for k, v in numbers.items() if k.endswith("several") == several}))
    if not args.only:
        print(table_of({"true": [asked(truth, truth)]}))
    if args.json:
        import json

        with open(args.json, "w") as file:
            json.dump(numbers, file)


def table_of(numbers: dict[str, list[dict[str, float]]]) -> str:
    """Means over seeds."""
    lines = []
    for row, found in numbers.items():
        if not lines:
            lines.append("| | " + " | ".join(found[0]) + " |")
            lines.append("|---" * (1 + len(found[0])) + "|")
        means = (np.mean([each[name] for each in found]) for name in found[0])
        lines.append(f"| {row} | " + " | ".join(f"{mean:.2f}" for mean in means) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
