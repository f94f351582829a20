"""A day in a city: do synthetic people go where people go, come home, wait, and move as fast?

    python benchmarks/mobility.py [--people 10000] [--seeds 3] [--epsilon 1] [--quick] [--json FILE]
                                  [--adatrace CHECKOUT] [--privtrace CHECKOUT PYTHON]
                                  [--cities 0 1 2 3 4 5]

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

With --cities the tables are means over random cities, by these seeds: 3 to 12 districts, 2 to 8
places of work, gravity that reaches 2 to 10 km, .5 to .95 who work, other widths, hours and speeds.

A last table is about everybody's first trip of the day, if it is of 1 km or more, as methods for
trips know no hours: AdaTrace and PrivTrace by their own code, for the same epsilon, see the whole
first trip of everybody, minute by minute, where ours sees one record of a person's day. Their code
is compiled and run from copies that somebody made of github.com/git-disl/AdaTrace (needs a JDK) and
github.com/DpTrace/PrivTrace (PYTHON has numpy < 1.24, cvxpy with ecos and scs, networkx, pandas and
matplotlib). Ways are straight between readings.

    OD           total variation of (cell where it begins, cell where it ends), cells of 5 km
    km           mean distance from begin to end; W1, of its distribution to the true one
    crossings    total variation of the borders between cells of 5 km that are crossed, each way
    streets      total variation of where ways lead, 400 cells of 1 km
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import privtraj as pt
from privtraj.base.arrays import Floats
from privtraj.metrics import randomly_coupled, wasserstein2
from privtraj.motion.process import Reference, follow

BOX = [(0.0, 20.0), (0.0, 20.0)]  # km
READ = np.linspace(0, 24, 97)  # every quarter of an hour
MINUTES = np.arange(24 * 60) / 60
STEP = READ[1] - READ[0]
STILL = 0.4  # km/h, and below
GRIDS = (6, 8, 10, 12, 16)  # of the plain histogram
COARSE, FINE = 4, 20  # cells a side
ALONG = 100  # places on a way

Numbers = dict[str, list[dict[str, float]]]
"""Of every row, by seed."""


class City(NamedTuple):
    """Where people live and work. homes, works: (k, 2) in km, with widths and shares (k,).

    reach: km, of gravity.  workers: share.  speed: km/h from door to door, median.  leave, stay:
    hours of workers, mean and deviation.
    """

    homes: Any = ((4, 4), (5, 15), (15, 16), (16, 5), (10, 10), (11, 3))
    home_widths: Any = (1.2, 1.5, 1.3, 1.6, 1.8, 1.0)
    home_shares: Any = (0.2, 0.15, 0.2, 0.15, 0.2, 0.1)
    works: Any = ((10, 10.5), (17, 11), (4, 10), (8, 17))
    work_widths: Any = (1.0, 0.7, 0.8, 0.6)
    work_pull: Any = (0.5, 0.2, 0.15, 0.15)
    reach: float = 5.0
    workers: float = 0.8
    speed: float = 15.0
    leave: tuple[float, float] = (7.6, 0.9)
    stay: tuple[float, float] = (8.6, 1.0)
    errand: float = 2.0  # km

    @classmethod
    def random(cls, seed: int) -> City:
        rng = np.random.default_rng(seed)
        k, j = rng.integers(3, 13), rng.integers(2, 9)
        return cls(
            homes=rng.uniform(2, 18, (k, 2)),
            home_widths=rng.uniform(0.6, 2.5, k),
            home_shares=rng.dirichlet(np.full(k, 3.0)),
            works=rng.uniform(2, 18, (j, 2)),
            work_widths=rng.uniform(0.4, 1.6, j),
            work_pull=rng.dirichlet(np.full(j, 2.0)),
            reach=np.exp(rng.uniform(*np.log([2, 10]))),
            workers=rng.uniform(0.5, 0.95),
            speed=np.exp(rng.uniform(*np.log([8, 30]))),
            leave=(rng.uniform(6.5, 9), rng.uniform(0.4, 1.5)),
            stay=(rng.uniform(6, 10), rng.uniform(0.5, 1.5)),
            errand=rng.uniform(1, 4),
        )

    def paths(self, n: int, times: Floats, rng: np.random.Generator) -> Floats:
        """(n, q, 2) in km at times (q,) of the day, in hours."""
        district = rng.choice(len(self.homes), n, p=self.home_shares)
        home = rng.normal(
            np.take(self.homes, district, axis=0), np.take(self.home_widths, district)[:, None]
        )
        far = np.linalg.norm(home[:, None] - np.array(self.works), axis=2)
        pull = np.array(self.work_pull) * np.exp(-far / self.reach)
        so_far = np.cumsum(pull, axis=1) / pull.sum(axis=1)[:, None]
        at = (so_far < rng.random((n, 1))).sum(axis=1)
        work = rng.normal(np.take(self.works, at, axis=0), np.take(self.work_widths, at)[:, None])
        errand = home + rng.normal(0, self.errand, (n, 2))
        works = rng.random(n) < self.workers
        goal = np.clip(np.where(works[:, None], work, errand), 0, 20)
        home = np.clip(home, 0, 20)
        leave = np.where(works, rng.normal(*self.leave, n), rng.uniform(9, 16, n))
        stay = np.where(works, rng.normal(*self.stay, n), rng.uniform(0.5, 2.5, n))
        far = np.linalg.norm(goal - home, axis=1)
        way = np.maximum(far / (self.speed * rng.lognormal(0, 0.3, n)), 1e-3)
        out = (times - leave[:, None]) / way[:, None]
        back = (times - (leave + way + np.maximum(stay, 0.5))[:, None]) / way[:, None]
        gone = np.clip(out, 0, 1) - np.clip(back, 0, 1)
        return home[:, None] + gone[..., None] * (goal - home)[:, None]


def seen(paths: Floats, rng: np.random.Generator, several: bool) -> dict[str, Any]:
    """Records of people with paths (n, 1440, 2): who, when, where; of a quarter of them two to four
    where several."""
    n = len(paths)
    records = np.where(several & (rng.random(n) < 0.25), rng.integers(2, 5, n), 1)
    who = np.repeat(np.arange(n), records)
    minute = rng.integers(0, len(MINUTES), len(who))
    places = paths[who, minute]
    return {"person": who, "hour": MINUTES[minute], "x": places[:, 0], "y": places[:, 1]}


def snapshots(table: dict[str, Any], **how: Any) -> pt.Snapshots:
    options = {"bins": None, "time_range": (0, 24)} | how
    options = {key: value for key, value in options.items() if value is not None}
    bounds = dict(zip("xy", BOX, strict=True))
    return pt.Snapshots.from_table(table, time="hour", person="person", bounds=bounds, **options)


# What is asked of paths (n, 97, 2) at READ -----------------------------------------------------


def cell(places: Floats, side: int = COARSE) -> Any:
    """Numbers (...) of the cells of places (..., 2)."""
    x, y = np.moveaxis(np.clip((places * side / 20).astype(int), 0, side - 1), -1, 0)
    return x * side + y


def flows(paths: Floats, first: float, second: float) -> Floats:
    pair = (paths[:, round(hour / STEP)] for hour in (first, second))
    a, b = map(cell, pair)
    return np.bincount(a * COARSE**2 + b, minlength=COARSE**4) / len(paths)


def trips(paths: Floats) -> Floats:
    """Kilometres from stay to stay, of those of 1 km or more."""
    moving = np.linalg.norm(np.diff(paths, axis=1), axis=2) > STILL * STEP
    edge = np.diff(np.pad(moving.astype(int), ((0, 0), (1, 1))), axis=1)
    who, start = np.nonzero(edge == 1)
    end = np.nonzero(edge == -1)[1]
    far = np.linalg.norm(paths[who, end] - paths[who, start], axis=1)
    return far[far > 1]


def asked(paths: Floats, truth: Floats) -> dict[str, float]:
    """All measures of paths, against those of many true people."""
    speed = np.linalg.norm(np.diff(paths, axis=1), axis=2) / STEP
    moving, found = speed[speed > STILL], {}
    for name, hours in {"OD day": (5, 12), "OD night": (12, 23)}.items():
        found[name] = 0.5 * np.abs(flows(paths, *hours) - flows(truth, *hours)).sum()
    ends = paths[:, round(5 / STEP)] - paths[:, round(23 / STEP)]
    found["home"] = float(np.median(np.linalg.norm(ends, axis=1)))
    found["waiting"] = float((speed <= STILL).mean())
    found["50 %"] = float(np.median(moving)) if len(moving) else 0.0
    found["99 %"] = float(np.quantile(speed, 0.99))
    long = trips(paths)
    found["trip"] = float(long.mean()) if len(long) else 0.0
    at = range(6, 97, 12)
    found["W2"] = float(np.mean([wasserstein2(paths[:1000, k], truth[:1000, k]) for k in at]))
    return found


# What is asked of first trips ------------------------------------------------------------------


def first_trips(paths: Floats, hours: Floats) -> list[Floats]:
    """Of each person with a path (n, q, 2) at hours (q,), until they stay again."""
    moving = np.linalg.norm(np.diff(paths, axis=1), axis=2) > STILL * np.diff(hours)
    begin = moving.argmax(axis=1)
    stays = ~moving & (np.arange(moving.shape[1]) > begin[:, None])
    end = np.where(stays.any(axis=1), stays.argmax(axis=1), moving.shape[1])
    going = np.flatnonzero(moving.any(axis=1))
    return [paths[i, begin[i] : end[i] + 1] for i in going]


def along(trips: list[Floats]) -> Floats:
    """ALONG places (n, ALONG, 2) on each of these ways (k, 2), if its ends are 1 km apart."""
    ways = [np.empty((0, ALONG, 2))]
    for way in trips:
        if np.linalg.norm(way[-1] - way[0]) >= 1:
            gone = np.append(0, np.cumsum(np.linalg.norm(np.diff(way, axis=0), axis=1)))
            at = np.linspace(0, gone[-1], ALONG)
            ways.append(np.stack([np.interp(at, gone, axis) for axis in way.T], axis=1)[None])
    return np.concatenate(ways)


def asked_of_trips(trips: list[Floats], truth: Floats) -> dict[str, float]:
    """All measures of first trips, against those of many true people (`along`); where nobody goes
    anywhere, as with too few people for more than two windows, none."""
    ways = along(trips)
    if len(ways) == 0:
        return dict.fromkeys(("OD", "km", "W1", "crossings", "streets"), np.nan)

    def apart(counts: Callable[[Floats], Any]) -> float:
        ours, theirs = (counts(each) / counts(each).sum() for each in (ways, truth))
        return float(0.5 * np.abs(ours - theirs).sum())

    def ends(ways: Floats) -> Any:
        return np.bincount(pairs(ways[:, [0, -1]]).ravel(), minlength=COARSE**4)

    def crossed(ways: Floats) -> Any:
        steps = pairs(ways)
        return np.bincount(steps[steps // COARSE**2 != steps % COARSE**2], minlength=COARSE**4)

    def streets(ways: Floats) -> Any:
        return np.bincount(cell(ways, FINE).ravel(), minlength=FINE**2)

    far = [np.linalg.norm(each[:, -1] - each[:, 0], axis=1) for each in (ways, truth)]
    levels = (np.arange(1000) + 0.5) / 1000
    return {
        "OD": apart(ends),
        "km": float(far[0].mean()),
        "W1": float(np.abs(np.subtract(*(np.quantile(each, levels) for each in far))).mean()),
        "crossings": apart(crossed),
        "streets": apart(streets),
    }


def pairs(ways: Floats) -> Any:
    """Numbers (n, q - 1) of the pair of cells of each step of ways (n, q, 2)."""
    at = cell(ways)
    return at[:, :-1] * COARSE**2 + at[:, 1:]


ADATRACE = """
import java.io.File;
public class Run {
  public static void main(String[] said) throws Exception {
    Main.writeToFile(Main.Synthesize_Trajectories(Main.readTrajectories(new File(said[0])),
      Double.parseDouble(said[1]), false), said[2]);
  }
}
"""

PRIVTRACE = """
import runpy, sys, types
try:
    import torch
except ImportError:  # is imported there, and used by nothing that main.py runs
    torch = sys.modules["torch"] = types.ModuleType("torch")
    torch.optim = sys.modules["torch.optim"] = types.ModuleType("torch.optim")
code = sys.argv.pop(1)
sys.path.insert(0, code)
runpy.run_path(code + "/main.py", run_name="__main__")
"""


def by_others(name: str, code: list[str], trips: list[Floats], epsilon: float) -> list[Floats]:
    """As many trips as AdaTrace or PrivTrace makes of these, by its code as it is."""
    checkout = Path(code[0]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        given, made = place / "datasets" / "trips.dat", place / "generated_tras.txt"
        given.parent.mkdir()
        rows = ("".join(f"{x:.4f},{y:.4f};" for x, y in way) for way in trips)
        given.write_text("".join(f"#{i}:\n>0:{row}\n" for i, row in enumerate(rows)))
        if name == "AdaTrace":
            (place / "Run.java").write_text(ADATRACE)
            path = [*map(str, checkout.glob("*.jar")), folder]
            sources = [*checkout.glob("src/*.java"), *checkout.glob("src/*/*.java")]
            joined = ["-cp", ":".join(path)]
            commands = [
                ["javac", "-nowarn", "-d", folder, *joined, *sources, place / "Run.java"],
                ["java", *joined, "Run", given, str(epsilon), made],
            ]
        else:
            said = ["--dataset_file_name", given.name, "--total_epsilon", str(epsilon)]
            commands = [[code[1], "-c", PRIVTRACE, checkout, *said]]
        for command in commands:
            subprocess.run(list(map(str, command)), cwd=place, check=True, capture_output=True)
        rows = (line[3:].strip().rstrip(";") for line in made.open() if line.startswith(">"))
        return [np.array([p.split(",") for p in row.split(";")], float) for row in rows]


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


def makers(
    table: dict[str, Any], epsilon: float, seed: int, town: City
) -> dict[str, Callable[[], Floats]]:
    """Paths of every row of the table."""

    def ours(reference: str, **how: Any) -> Floats:
        recipe = pt.TrajectorySynthesizer(epsilon, 1e-6, seed=seed, reference=reference)
        return recipe.fit(snapshots(table, **how)).sample(5000, READ, seed=seed).values

    rows: dict[str, Callable[[], Floats]] = {}
    day = "cycle period=24"
    if one(table):
        several = {"records_per_person": 4, "one_per_bin": False}
        rows |= {
            "default, one at random": lambda: ours("auto", **one(table)),
            "cycle, one at random": lambda: ours(day, **one(table)),
            "default": lambda: ours("auto", **several),
            "cycle": lambda: ours(day, **several),
        }
    else:
        rows |= {"default": lambda: ours("auto"), "cycle": lambda: ours(day)}
        rows |= {
            f"histogram {g}": lambda g=g: histogram(table, epsilon, g, seed)  # type: ignore
            for g in GRIDS
        }
        fresh = town.paths(1000, READ, np.random.default_rng(seed + 500))
        shuffled = randomly_coupled(fresh, seed=seed)[:, 4::8]
        rows["true marginals, linked"] = lambda: linked(shuffled.swapaxes(0, 1), READ[4::8])
        rows["other true people"] = lambda: town.paths(
            5000, READ, np.random.default_rng(seed + 600)
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--cities", type=int, nargs="+", help="random ones, by their seeds")
    parser.add_argument("--only", nargs="+", help="rows that begin so")
    parser.add_argument("--adatrace", nargs=1, metavar="CHECKOUT")
    parser.add_argument("--privtrace", nargs=2, metavar=("CHECKOUT", "PYTHON"))
    parser.add_argument("--quick", action="store_true", help="one seed, 2,000 people")
    parser.add_argument("--json", help="file for every number")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds, n = (1, 2000) if args.quick else (args.seeds, args.people)
    towns = [City()] if args.cities is None else list(map(City.random, args.cities))
    others = {"AdaTrace": args.adatrace, "PrivTrace": args.privtrace}
    tables: dict[str, Numbers] = {}
    for several, town in itertools.product((False, True), towns):
        title = "a quarter seen two to four times" if several else "seen once"
        days: Numbers = tables.setdefault(title, {})
        of_trips: Numbers = tables.setdefault("first trips", {})
        truth = town.paths(50_000, READ, np.random.default_rng(99))
        true_trips = along(first_trips(truth[:20_000], READ))
        for seed in range(seeds):
            rng = np.random.default_rng(1000 + seed)
            people = town.paths(n, MINUTES, rng)
            for row, make in makers(seen(people, rng, several), args.epsilon, seed, town).items():
                if args.only and not row.startswith(tuple(args.only)):
                    continue
                began = time.perf_counter()
                paths = make()
                took = {"seconds": time.perf_counter() - began}
                days.setdefault(row, []).append(asked(paths, truth) | took)
                if not several:
                    found = asked_of_trips(first_trips(paths, READ), true_trips)
                    of_trips.setdefault(row, []).append(found | took)
            for name, code in others.items():
                if code is None or several:
                    continue
                began = time.perf_counter()
                made = by_others(name, code, first_trips(people, MINUTES), args.epsilon)
                took = {"seconds": time.perf_counter() - began}
                of_trips.setdefault(name, []).append(asked_of_trips(made, true_trips) | took)
        if town is towns[-1]:
            print(f"{title}\n{table_of(days)}", flush=True)
    print(f"first trips\n{table_of(tables['first trips'])}")
    if not args.only and args.cities is None:
        print(table_of({"true": [asked(truth, truth)]}))
    if args.json:
        import json

        with open(args.json, "w") as file:
            json.dump(tables, file)


def table_of(numbers: Numbers) -> str:
    """Means over seeds, and standard deviations in brackets if there are several."""
    lines = []
    for row, found in numbers.items():
        if not lines:
            lines.append("| | " + " | ".join(found[0]) + " |")
            lines.append("|---" * (1 + len(found[0])) + "|")
        cells = []
        for name in found[0]:
            values = [each[name] for each in found]
            spread = f" ({np.std(values):.2f})" if len(values) > 1 else ""
            cells.append(f"{np.mean(values):.2f}{spread}")
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
