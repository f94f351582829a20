"""Do plans, reports and evaluations say the same of quality, and is it true?

    python experiments/quality.py [--seeds 0 60] [--also 5] [--jobs 2] [--out FILE.csv]
    python experiments/quality.py --tables [--seeds 0 6] [--jobs 2]

Random populations of the grammar of benchmarks/regret.py, each with 500 to 10^4 people, fitted at
epsilon .05, .2, 1 and 4. True worth is measured against 8,000 people at each of eight times. Beside
it stand what `model.quality()` says from the released model alone and, of every --also th
population, what `plan` says of its public shape, and what `metrics.worth_interval`, by which
`evaluate` speaks, says from the records of as many other people; and how often the intervals of
answers of `model.ask`, by which a page has its bands, hold the truth.

Populations of even seeds have set two constants, `assess.common.UNKNOWN` and
`assess.ask.REFITS_OFF`; odd ones nothing but the latter, which was set when both had been seen.

--tables: fits by tables, of the random tables and hospitals of benchmarks/random_tables.py, what
three single refits say of each, and how far these are apart (`assess.quality.OF_ONE`).
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))  # for its populations

EPSILONS, DELTA = (0.05, 0.2, 1.0, 4.0), 1e-5
POPULATION, RELEASED, TOLD = 8000, 500, 490
SAYS = ("report", "plan", "evaluate")
ROWS = ("seed", "epsilon", "features", "shape", "motion", "people", "listed", "measure", "true")
FIELDS = (*ROWS, *(f"{who}{end}" for who in SAYS for end in ("", "_low", "_high")))
INSIDE = ("answers_inside",)
FIELDS = (*FIELDS, *INSIDE)
QUESTIONS = (
    "mean x1 by 4 periods",
    "median x1",
    "p90 x1 by 4 periods",
    "trend x1",
    "share x1=0.5..1 by 4 periods",
    "count by 4 periods",
    "correlation x1, x2",
    "correlation x1, x2 by 4 periods",
    "mean x2 by 3 parts of x1",
)


def population(seed: int) -> Any:
    """Of the grammar, with 500 to 10^4 people."""
    from regret import Population

    people = round(500 * 20 ** np.random.default_rng([77, seed]).random())
    return Population.of(seed)._replace(people=people)


def fitted(seed: int, epsilon: float) -> Any:
    """The model of one case."""
    import privtraj as pt

    one = population(seed)
    when, points = one.records(0)
    bounds = [(0.0, 1.0)] * one.features
    snapshots = pt.Snapshots.from_arrays(
        when, points, bounds=bounds, bins=one.times, time_range=(0.0, 1.0)
    )
    return pt.TrajectorySynthesizer(epsilon, DELTA, seed=seed).fit(snapshots)


def told(seed: int, epsilon: float, model: Any) -> dict[str, Any]:
    """What is said of one case, and what is true."""
    from privtraj.assess.quality import estimated_quality
    from privtraj.assess.simulate import Yardstick

    one, rng = population(seed), np.random.default_rng([5, seed])
    quality = estimated_quality(model)
    at = np.array(quality.numeric_times)
    everybody = [one.drawn(np.full(POPULATION, t), rng) for t in at]
    yardstick = Yardstick(everybody)
    released = model.sample(RELEASED, times=at, seed=seed).values
    true, worth = yardstick.worth(yardstick.error(list(released.swapaxes(0, 1)))), quality.worth
    return {
        **dict(zip(ROWS, (seed, epsilon, *one[1:6], model.settings["measure"], true), strict=True)),
        **_said("report", worth.worth, worth.low, worth.high),
        "answers_inside": answered(seed, model),
    }


def answered(seed: int, model: Any) -> float:
    """Which share of the intervals of answers holds the truth; those that are lost have none."""
    from privtraj.assess.ask import Answers, Crowd, statistics

    one, rng, people = population(seed), np.random.default_rng([9, seed]), 200_000
    when = rng.random(people)
    if one.listed:
        when = one.times[rng.integers(one.listed, size=people)]
    rows = np.column_stack([one.drawn(when, rng), when])
    everybody, answers, held = Crowd(rows, np.full(people, one.people / people)), Answers(model), []
    for question in (text for text in QUESTIONS if one.features > 1 or "x2" not in text):
        truth = statistics(answers.columns.asked(question), everybody, everybody.spread)[:, 1]
        for row, true in zip(answers.ask(question).rows, truth.tolist(), strict=True):
            if row["low"] is not None and np.isfinite(true):
                held.append(row["low"] <= true <= row["high"])
    return float(np.mean(held)) if held else np.nan


def evaluated(seed: int, model: Any) -> dict[str, float]:
    """What an evaluation says by as many other people."""
    from privtraj.assess.quality import read_times
    from privtraj.metrics.people import worth_interval

    when, others = population(seed).records(1)
    at = read_times(model, 8)
    nearest = np.abs(when[:, None] - at).argmin(axis=1)
    known = [k for k in range(len(at)) if (nearest == k).sum() > 1]
    people = model.sample(1000, times=at[known], seed=seed).values.swapaxes(0, 1)
    found = worth_interval(list(people), [others[nearest == k] for k in known], seed=seed)
    return _said("evaluate", found.people, found.low, found.high)


def planned(seed: int) -> dict[float, dict[str, float]]:
    """What the plan says of a population, at each epsilon."""
    from privtraj.assess.common import Estimate
    from privtraj.assess.plan import Question, worth_over
    from privtraj.recipe import Recipe

    one = population(seed)
    asked = Question(one.people, one.listed or None, one.features, Recipe(1.0, DELTA))
    levels = map(Estimate.of, worth_over(asked, np.array(EPSILONS))[0].T)
    return {
        epsilon: _said("plan", level.worth, level.low, level.high)
        for epsilon, level in zip(EPSILONS, levels, strict=True)
    }


def _said(who: str, *numbers: float) -> dict[str, float]:
    return {f"{who}{end}": x for end, x in zip(("", "_low", "_high"), numbers, strict=True)}


def cases(seed: int, also: bool) -> list[dict[str, Any]]:
    """All of one population. also: what plan and evaluate say."""
    warnings.simplefilter("ignore")
    plans, rows = planned(seed) if also else {}, []
    for epsilon in EPSILONS:
        model = fitted(seed, epsilon)
        more = evaluated(seed, model) if also else {}
        rows.append({**told(seed, epsilon, model), **more, **plans.get(epsilon, {})})
    return rows


def of_table(seed: int) -> tuple[int, float, list[Any]]:
    """True worth of a fit to the table of a seed, and what one refit says, three times."""
    import privtraj as pt
    import random_tables
    from privtraj.assess.quality import estimated_quality
    from privtraj.assess.simulate import Yardstick, drawn
    from privtraj.metrics.columns import numbers_alone

    warnings.simplefilter("ignore")
    hospital = seed >= random_tables.HOSPITALS
    table = (random_tables.random_hospital if hospital else random_tables.random_table)(seed)
    snapshots = pt.Snapshots.from_table(table.fitted, **table.declared)
    model = pt.TrajectorySynthesizer(1.0, DELTA, seed=seed).fit(snapshots)
    others = pt.Snapshots.from_table(table.others, **table.declared)._rows
    said = [estimated_quality(model, refits=1, seed=k) for k in (1, 2, 3)]
    at, width = np.array(said[0].numeric_times), 0.025 * np.ptp(model.knots[[0, -1]])
    there = [others.points[np.abs(others.times - t) < width].astype(float) for t in at]
    yardstick = Yardstick([numbers_alone(people[None], model.columns)[0] for people in there])
    released = numbers_alone(drawn(model, at, RELEASED, seed).swapaxes(0, 1), model.columns)
    return seed, yardstick.worth(yardstick.error(list(released))), [one.worth for one in said]


def of_tables(seeds: Sequence[int], jobs: int) -> None:
    """A line for each, and all together."""
    held, apart = [], []
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for seed, true, said in pool.map(of_table, seeds):
            held += [one.low <= true <= one.high for one in said]
            apart.append(np.var(np.log([one.worth for one in said]), ddof=1))
            print(seed, f"true {true:.0f}, said", *(f"{one.worth:.0f}" for one in said), flush=True)
    print(
        f"{np.mean(held):.0%} inside; one from another: {np.mean(apart) ** 0.5:.2f} in logarithms"
    )


# All of them -------------------------------------------------------------------------------------


def summary(rows: Sequence[dict[str, Any]], who: str) -> dict[str, float]:
    """Said over true, of the cases whose true worth can be told, and shares inside the interval."""
    mine = [row for row in rows if row.get(who) not in (None, "")]
    numbers = [[float(row[key]) for key in ("true", who, f"{who}_low", f"{who}_high")]
               for row in mine]  # fmt: skip
    true, said, low, high = np.log(np.maximum(np.reshape(numbers, (-1, 4)), 0.5)).T
    off = (said - true)[true < np.log(TOLD)]  # of better ones only that they are
    inside = (low <= true + 1e-6) & ((high >= true - 1e-6) | (high >= np.log(TOLD)))
    return {
        "cases": len(mine),
        "said / true, geometric mean": float(np.exp(off.mean())),
        "its deviation, a factor": float(np.exp(off.std())),
        "off by more than 3": float((np.abs(off) > np.log(3)).mean()),
        "inside the 90 % interval": float(inside.mean()),
        "interval, high over low": float(np.exp(np.median(high - low))),
    }


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Markdown: by who says it, half, and epsilon."""
    names = "populations | epsilon | cases | geometric mean | deviation | off 3 | inside"
    yield f"| who says it | {names} |"
    yield "|---|---|---|---|---|---|---|---|"
    for who in SAYS:
        for half, name in enumerate(("may set something", "**unseen**")):
            for epsilon in (None, *EPSILONS):
                some = [
                    row
                    for row in rows
                    if int(row["seed"]) % 2 == half
                    and (epsilon is None or float(row["epsilon"]) == epsilon)
                    and row.get(who) not in (None, "")
                ]
                if some:
                    n, mean, deviation, off, inside, _ = summary(some, who).values()
                    when = "all" if epsilon is None else f"{epsilon:g}"
                    cells = f"{n} | {mean:.2f} | {deviation:.1f} | {off:.0%} | {inside:.0%}"
                    yield f"| {who} | {name} | {when} | {cells} |"
    for what in INSIDE:
        for half, name in enumerate(("may set something", "unseen")):
            some = [row for row in rows if int(row["seed"]) % 2 == half]
            held = [float(row[what]) for row in some if row.get(what) not in (None, "")]
            if held:
                yield f"{what}, {name}: {np.nanmean(held):.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs=2, type=int, default=(0, 60), metavar=("FROM", "TO"))
    parser.add_argument("--also", type=int, default=5, help="every so many populations; 0: none")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tables", action="store_true", help="fits by tables instead")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    seeds, rows = range(*args.seeds), []
    if args.tables:
        of_tables(seeds, args.jobs)
        return
    also = [bool(args.also) and seed // 2 % args.also == 0 for seed in seeds]
    with ProcessPoolExecutor(args.jobs, get_context("spawn")) as pool:
        for some in pool.map(cases, seeds, also):
            rows += some
            if args.out is not None:
                write(args.out, rows)
    print("\n".join(table(rows)))


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as lines:
        file = csv.DictWriter(lines, FIELDS, lineterminator="\n")
        file.writeheader()
        for row in rows:
            file.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})


if __name__ == "__main__":
    main()
