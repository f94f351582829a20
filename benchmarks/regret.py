"""Regret: the error of what a fit decides by itself over that of the best option set by hand.

    python benchmarks/regret.py [--quick] [--decision windows cells measure ...] [--seeds 0 300]
                                [--features 1 2 3] [--runs 2] [--seconds 600] [--out FILE.csv]

Random populations are drawn from a grammar: a shape (groups, ring, bar, cross, moons, thin curve,
heavy tails) x a motion (rest, drift, turning, oscillation, parting, waiting and jumping, exchange
of mass between places that stay, wandering) x 500 to 10^5 people x listed times or any x 1 to 5
numbers. Those of seeds below 300 may set a constant of the package; others never do.

For each decision the options are fitted with that setting by hand and with "auto", add-remove,
epsilon 1, delta 1e-5. The error is squared W2 of 1,000 released people to the population (16,000
fresh people, represented by 600 weighted points; shares of the box), the mean over eight times,
less that of as many real people; 1e-4 is added to both, and runs are averaged.
The table has the geometric mean of auto over best, the share above 1.5, and the worst, of even and
odd seeds below 300 and of the unseen ones. "Best" is the least of several noisy means, so that a
perfect decision would have more than 1. Hence the last column: the geometric mean of auto over the
option that is best in the other runs of the same population, as somebody would set who knew it.

`merged` and `halves` are no decisions but other ways to windows, each with the windows that turn
out best, which nobody knows: `merged` counts people in FINE windows and then merges these, so that
k windows have the noise of epsilon sqrt(k / FINE); `halves` pays one half of epsilon for few
windows and the other for many, and reads the better one. What they lose at least is their error
over that of the best windows set by hand. `stiffness` is how stiff curves through windows are.

The file keeps every error. What is set by hand is fitted once; only "auto" is fitted again. A new
decision is an entry of DECISIONS.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from populations import represented, squared_w2

EPSILON, DELTA = 1.0, 1e-5
RELEASED, TIMES = 1000, 8  # people who are compared at each of so many times
FRESH, CROWDS = 16_000, 4  # people of the population, and crowds of other real ones
FINE = 32  # windows that may be merged
ADDED = 1e-4  # to both errors: below it nobody sees a difference
FILE = Path(__file__).parent.parent / "docs" / "results" / "regret.csv"
FIELDS = ("seed", "decision", "option", "run", "error", "chosen")
SHAPES = ("groups", "ring", "bar", "cross", "moons", "thin curve", "heavy tails")
MOTIONS = ("rest", "drift", "turning", "oscillation", "parting", "jumps", "exchange", "wandering")
UNSEEN = 300  # the first seed that sets nothing
LISTED = (5, 10, 20, 30, 50)
FEATURES, SHARES = (1, 2, 3, 4, 5), (0.15, 0.4, 0.25, 0.1, 0.1)


class Population(NamedTuple):
    """People who are drawn again and again; all that they are follows from the seed."""

    seed: int
    features: int
    shape: str
    motion: str
    people: int
    listed: int  # times at which people are, 0 for any

    @classmethod
    def of(cls, seed: int) -> Population:
        rng = np.random.default_rng([30, seed])
        features = int(rng.choice(FEATURES, p=SHARES))
        people = round(500 * 200 ** rng.random())
        shape, motion = str(rng.choice(SHAPES)), str(rng.choice(MOTIONS))
        listed = int(rng.choice(LISTED)) if rng.random() < 0.5 else 0
        if motion == "exchange":
            shape = "groups"
        return cls(seed, features, shape, motion, people, listed)

    @property
    def times(self) -> np.ndarray:
        """Declared times."""
        return np.linspace(0, 1, self.listed or 11)

    def records(self, run: int) -> tuple[np.ndarray, np.ndarray]:
        """Times (n,) and points (n, d) of the people of a run."""
        rng = np.random.default_rng([31, self.seed, run])
        when = rng.random(self.people)
        if self.listed:
            when = self.times[rng.integers(self.listed, size=self.people)]
        return when, self.drawn(when, rng)

    def drawn(self, when: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """People (n, d) in the unit cube at times when (n,)."""
        made = np.random.default_rng([32, self.seed])  # what the population is, not who is drawn
        plane, group = _shape(self.shape, when, self.motion == "exchange", made, rng)
        width = made.uniform(0.08, 0.22)
        plane = 0.5 + width * plane + _shifted(self.motion, plane * width, when, group, made)
        points = np.empty((len(when), max(self.features, 2)))
        points[:, :2] = plane
        other = 0.5 + 0.2 * made.uniform(-1, 1, points.shape[1] - 2)
        spread = made.uniform(0.02, 0.1, len(other))
        points[:, 2:] = other + spread * rng.standard_normal((len(when), len(other)))
        if self.features > 2:  # the plane is not that of two columns
            turn, _ = np.linalg.qr(made.standard_normal((self.features,) * 2))
            points = 0.5 + (points - 0.5) @ turn
        return np.clip(points[:, : self.features], 0, 1)


def _shape(
    name: str, when: np.ndarray, exchanged: bool, made: np.random.Generator, rng: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 2) about the origin, about 1 wide, and the group (n,) of each."""
    n = len(when)
    noise, along = rng.standard_normal((n, 2)), rng.random(n)
    count = int(made.integers(2, 6))
    centres = made.uniform(-1.6, 1.6, (count, 2))
    size = made.dirichlet(np.full(count, 3.0))
    if exchanged:  # the share of each group goes up and down, or from one to another
        rate, phase = made.uniform(0.5, 3), made.uniform(0, 2 * np.pi, count)
        shares = size * (1.05 + np.sin(2 * np.pi * rate * when[:, None] + phase))
        edges = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
        group = np.minimum((along[:, None] > edges).sum(axis=1), count - 1)
    else:
        group = rng.choice(count, size=n, p=size)
    turn = made.uniform(0, np.pi)
    axis = np.array([np.cos(turn), np.sin(turn)])
    across = np.array([-axis[1], axis[0]])
    angle, half = 2 * np.pi * along, group % 2
    if name == "groups":
        return centres[group] + made.uniform(0.1, 0.5) * noise, group
    if name == "ring":
        return np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.12 * noise, group
    if name == "bar":
        return np.outer(noise[:, 0], axis) + 0.12 * np.outer(noise[:, 1], across), group
    if name == "cross":
        pair = np.stack([axis, across])
        return noise[:, :1] * pair[half] + 0.1 * noise[:, 1:] * pair[1 - half], group
    if name == "moons":
        arc = np.stack([np.cos(angle / 2), np.sin(angle / 2)], axis=1)
        moon = np.where(half[:, None] == 0, arc, [0.9, 0.3] - arc)
        return moon + 0.1 * noise - [0.45, 0.15], group
    if name == "thin curve":
        wave = 0.6 * np.sin(made.uniform(3, 8) * along + made.uniform(0, 6))
        return np.outer(3 * along - 1.5, axis) + np.outer(wave, across) + 0.02 * noise, group
    tails = np.sqrt(2 / rng.chisquare(2, n))  # Student's t of two degrees
    return 0.5 * noise * tails[:, None], group


def _shifted(
    name: str, plane: np.ndarray, when: np.ndarray, group: np.ndarray, made: np.random.Generator
) -> np.ndarray:
    """How far (n, 2) people at `plane` (n, 2) about the middle were moved by their times (n,)."""
    turn = made.uniform(0, 2 * np.pi)
    axis = np.array([np.cos(turn), np.sin(turn)])
    amount, centred = made.uniform(0.1, 0.4), when[:, None] - 0.5
    if name == "drift":
        power = made.uniform(0.4, 2.5)  # fast at first, or at last
        return amount * axis * (when[:, None] ** power - 0.5)
    if name == "turning":
        angle = 2 * np.pi * made.uniform(0.25, 2) * centred[:, 0]
        cos, sin = np.cos(angle), np.sin(angle)
        x, y = plane.T
        return np.stack([cos * x - sin * y, sin * x + cos * y], axis=1) - plane
    if name == "oscillation":
        return amount / 2 * axis * np.sin(2 * np.pi * made.integers(1, 11) * when[:, None])
    if name == "parting":
        side = np.where(group % 2 == 0, 1, -1)[:, None]
        apart = np.abs(centred) * 2 if made.random() < 0.5 else when[:, None]
        return amount * axis * side * apart
    if name == "jumps":
        moments = np.sort(made.uniform(0.1, 0.9, int(made.integers(1, 4))))
        places = made.uniform(-0.25, 0.25, (len(moments) + 1, 2))
        return places[np.searchsorted(moments, when)]
    if name == "wandering":
        waves = made.standard_normal((6, 2, 3, 2)) / np.array([1, 2, 3])[:, None]  # of each group
        turns = np.pi * np.arange(1, 4) * when[:, None]
        each = waves[group]  # (n, 2, 3, 2)
        cosines = np.einsum("nf,nfd->nd", np.cos(turns), each[:, 0])
        return 0.08 * (cosines + np.einsum("nf,nfd->nd", np.sin(turns), each[:, 1]))
    return np.zeros_like(plane)  # rest, and exchange of mass


# Decisions ----------------------------------------------------------------------------------------


class Decision(NamedTuple):
    """options: by hand, of a population; none where there is no choice.

    settings: of a fit, by option.  chosen: what a model that decided by itself took.
    """

    options: Callable[[Population], Iterable[Any]]
    settings: Callable[[Any], dict[str, Any]]
    chosen: Callable[[Any], Any]


def _windows(population: Population) -> Iterator[Any]:
    yield from (k for k in (2, 4, 8, 16, 32, 64) if k < (population.listed or 65))
    if population.listed:
        yield "bins"


def _cells(population: Population) -> Iterator[Any]:
    sides = {1: (8, 16, 32, 64, 128), 2: (4, 8, 12, 16, 24, 32)}
    yield from sides.get(population.features, ())  # others are measured by gradients


def _measures(population: Population) -> Iterator[Any]:
    yield from ("counts", "gradients") if population.features in (2, 3, 4) else ()


def _merged(population: Population) -> Iterator[Any]:
    fine = min(population.listed or FINE, FINE)
    yield from (f"{k} of {fine}" for k in sorted({2, 4, 8, 16, fine}) if k <= fine)


def _halves(population: Population) -> Iterator[Any]:
    yield from (k for k in (4, 16, 32) if k < (population.listed or 65))


def _as_merged(option: str) -> dict[str, Any]:
    windows, fine = map(int, option.split(" of "))
    return {"windows": windows, "epsilon": EPSILON * (windows / fine) ** 0.5}


def _stiffness(population: Population) -> Iterator[Any]:
    yield from (4.0**-5, 4.0**-3, 4.0**-1, 4.0)


DECISIONS = {
    "windows": Decision(
        _windows, lambda option: {"windows": option}, lambda model: model.settings["windows"]
    ),
    "cells": Decision(
        _cells, lambda option: {"cells": option}, lambda model: model.settings["cells_per_side"]
    ),
    "measure": Decision(
        _measures, lambda option: {"measure": option}, lambda model: model.settings["measure"]
    ),
    "stiffness": Decision(_stiffness, lambda option: {}, lambda model: ""),
}
WAYS = {
    "merged": Decision(_merged, _as_merged, lambda model: ""),
    "halves": Decision(
        _halves, lambda option: {"windows": option, "epsilon": EPSILON / 2}, lambda model: ""
    ),
}
EVERY = DECISIONS | WAYS


# Errors -------------------------------------------------------------------------------------------


@lru_cache(maxsize=1000)
def _truth(seed: int, moment: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Points and weights that represent a population at a time, and the error of real people."""
    rng, draw = np.random.default_rng([33, seed, round(1e6 * moment)]), Population.of(seed).drawn
    points, weights = represented(draw(np.full(FRESH, moment), rng))
    crowds = draw(np.full(CROWDS * RELEASED, moment), rng).reshape(CROWDS, RELEASED, -1)
    return points, weights, float(np.mean([squared_w2(one, points, weights) for one in crowds]))


def error_of(seed: int, decision: str, option: Any, run: int) -> tuple[float, Any]:
    """Squared W2 above that of real people, and what was chosen."""
    import privtraj as pt
    from privtraj.measures import windows as curves

    warnings.simplefilter("ignore")
    population = Population.of(seed)
    when, points = population.records(run)
    d = population.features
    snapshots = pt.Snapshots.from_arrays(
        when, points, bounds=[(0, 1)] * d, bins=population.times, time_range=(0, 1)
    )
    own = 1000 * seed + run  # noise that populations share would be one draw, however many they are
    settings: Any = {"epsilon": EPSILON, "delta": DELTA, "seed": own}
    choices = curves.BENDINGS
    if option != "auto":
        settings |= EVERY[decision].settings(option)
        if decision == "stiffness":  # which is no choice of a user
            choices = np.array([option])
    with patch.object(curves, "BENDINGS", choices):
        model = pt.TrajectorySynthesizer(**settings).fit(snapshots)
    scored = (np.arange(TIMES) + 0.5) / TIMES
    if population.listed:
        scored = population.times[(scored * population.listed).astype(int)]
    people = model.sample(RELEASED, times=scored, seed=run).values
    above = []
    for released, moment in zip(people.swapaxes(0, 1), scored.tolist(), strict=True):
        points, weights, real = _truth(seed, moment)
        above.append(squared_w2(released, points, weights) - real)
    return float(np.mean(above)), EVERY[decision].chosen(model)


def _rows(jobs: list[tuple[int, str, Any, int]]) -> list[dict[str, Any]]:
    """Of one population, whose truth is made once."""
    made = []
    for job in jobs:
        error, chosen = error_of(*job)
        made.append(dict(zip(FIELDS, (*job, f"{error:.6f}", chosen), strict=True)))
    return made


def jobs_of(
    seeds: Iterable[int], decisions: list[str], features: list[int], runs: int
) -> Iterator[tuple[int, str, Any, int]]:
    """All fits that the table needs."""
    for run in range(runs):
        for population in map(Population.of, seeds):
            for decision in decisions if population.features in features else ():
                options = list(EVERY[decision].options(population))
                own = ["auto"] if options and decision in DECISIONS else []
                for option in [*options, *own]:
                    yield population.seed, decision, option, run


def measured(jobs: list[tuple[Any, ...]], seconds: float, keep: Callable[[Any], None]) -> None:
    """Rows of the jobs, in processes on all cores, as they come; no population is begun after so
    long."""
    end = time.monotonic() + seconds
    of_seeds: dict[int, list[tuple[Any, ...]]] = {}
    for job in jobs:
        of_seeds.setdefault(job[0], []).append(job)
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(_rows, some) for some in of_seeds.values()]
        try:
            for done in as_completed(waiting, timeout=max(end - time.monotonic(), 1.0)):
                keep(done.result())
        except TimeoutError:
            pool.shutdown(wait=True, cancel_futures=True)
            for late in waiting:
                if late.done() and not late.cancelled():
                    keep(late.result())


def read(file: Path) -> dict[tuple[str, ...], dict[str, str]]:
    """Rows of a file by what was fitted."""
    if not file.exists():
        return {}
    with file.open(encoding="utf-8", newline="") as lines:
        return {tuple(row[k] for k in FIELDS[:4]): row for row in csv.DictReader(lines)}


def write(file: Path, rows: dict[tuple[str, ...], dict[str, str]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as lines:
        table = csv.DictWriter(lines, FIELDS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows[key] for key in sorted(rows, key=lambda key: (int(key[0]), key[1:])))


# The table ----------------------------------------------------------------------------------------


def regrets(rows: dict[tuple[str, ...], dict[str, str]]) -> dict[tuple[str, int], list[float]]:
    """auto over best, and over what is best in other runs, by (decision, seed) where both are."""
    errors: dict[tuple[str, int], dict[str, dict[str, float]]] = {}
    for (seed, decision, option, run), row in rows.items():
        of = errors.setdefault((decision, int(seed)), {})
        of.setdefault(option, {})[run] = float(row["error"])

    def mean(of_runs: dict[str, float], without: str = "") -> float:
        return max(float(np.mean([e for k, e in of_runs.items() if k != without])), 0.0) + ADDED

    made = {}
    for key, of in errors.items():
        if key[0] in WAYS:  # beside windows by hand
            beside = errors.get(("windows", key[1]), {})
            by_hand = [mean(each) for option, each in beside.items() if option != "auto"]
            if by_hand:
                made[key] = [min(map(mean, of.values())) / min(by_hand), np.nan]
            continue
        auto = of.pop("auto", None)
        if auto is None or not of:
            continue
        best, elsewhere = min(mean(each) for each in of.values()), np.nan
        runs = set.intersection(*map(set, of.values()))
        if len(runs) > 1:
            taken = {run: min(of.values(), key=lambda each: mean(each, run))[run] for run in runs}
            elsewhere = mean(taken)
        made[key] = [mean(auto) / best, mean(auto) / elsewhere]
    return made


def table(rows: dict[tuple[str, ...], dict[str, str]]) -> str:
    """Markdown: by decision, number of features and seeds."""
    every = regrets(rows)
    lines = ["| decision | numbers | seeds | populations | geometric mean | above 1.5 | worst |"]
    lines[0] += " over the best of other runs |"
    lines.append("|---|---|---|---|---|---|---|---|")
    for decision in EVERY:
        for d in FEATURES:
            for part, name in enumerate(("even", "odd", "**unseen**")):
                some = []
                for (of, seed), values in every.items():
                    here = 2 if seed >= UNSEEN else seed % 2
                    if (of, here, Population.of(seed).features) == (decision, part, d):
                        some.append(values)
                if some:
                    regret, elsewhere = np.array(some).T
                    mean, above = np.exp(np.mean(np.log(regret))), np.mean(regret > 1.5)
                    cells = [decision, d, name, len(some), f"{mean:.2f}", f"{above:.0%}"]
                    known = np.log(elsewhere[~np.isnan(elsewhere)])
                    cells += [
                        f"{max(regret):.1f}",
                        f"{np.exp(known.mean()):.2f}" if len(known) else "",
                    ]
                    lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="six populations, one run")
    parser.add_argument("--decision", nargs="+", choices=EVERY, default=list(DECISIONS))
    parser.add_argument("--seeds", nargs="+", type=int, default=(300, 600), help="FROM TO [STEP]")
    parser.add_argument("--features", nargs="+", type=int, default=list(FEATURES))
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no fit after these")
    parser.add_argument("--hand", action="store_true", help="only what is set by hand")
    parser.add_argument("--out", type=Path, default=FILE, help="errors, kept for the next time")
    args = parser.parse_args()
    seeds = range(6) if args.quick else range(*args.seeds)
    rows = read(args.out)
    wanted = jobs_of(seeds, args.decision, args.features, 1 if args.quick else args.runs)
    jobs = []
    for job in wanted:
        auto = job[2] == "auto"
        if not args.hand if auto else tuple(map(str, job)) not in rows:
            jobs.append(job)

    def keep(some: list[dict[str, Any]]) -> None:
        rows.update({tuple(str(row[k]) for k in FIELDS[:4]): row for row in some})
        write(args.out, rows)

    if jobs:
        measured(jobs, min(args.seconds, 1e7), keep)
    print(table(rows))


if __name__ == "__main__":
    main()
