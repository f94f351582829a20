"""Random tables: answers of ours beside MST's, over tables that nobody chose.

    python benchmarks/random_tables.py [--quick] [--seeds 0 40] [--methods ours MST "real people"]
                                       [--jobs 2] [--seconds 600] [--out FILE.csv]

A table is drawn from a grammar: 500 to 30,000 people over time, 2 to 10 columns (numbers, skewed
numbers, constants, integers of few values, booleans, ordered and other categories with levels of 1
to 30 %, categories of 300 values, numbers that some lack), and effects of random size: of a
category or a number on a number or a category, of time on a number, the same in all groups or
another in each, and of time on shares. Bounds are wider than what people have. Those of seeds below
500 may set a constant of the package; others never do. Seeds from 1,000 on are hospitals, which
have what such tables have (`random_hospital`); from 1,500 on they set nothing.

Every method has the same records at epsilon 1, delta 1e-5, add-remove, and is scored on the answers
of `columns.py`. Methods besides "ours" and those of `columns.py`: "nothing", the table of
independent columns that do not change, without noise, and "ours NAME=VALUE", with a constant of
`privtraj.measures.tables` or `pairs` set by hand. The table has the geometric means of errors over
those of ours, the share of tables where ours is above it by 1.5, and the worst.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import columns

UNSEEN, HOSPITALS = 500, 1000  # the first seed that sets nothing, of tables and of hospitals
ADDED = 0.005  # to both errors: below it nobody sees a difference
KINDS = ("number", "skewed", "few", "boolean", "ordered", "category", "missing", "long", "constant")
CHANCES = (0.24, 0.14, 0.1, 0.12, 0.08, 0.16, 0.08, 0.04, 0.04)
FIELDS = ("seed", "method", "people", "kinds", *columns.ANSWERS, "seconds")


def random_table(seed: int) -> columns.Table:
    """The table of a seed, and others of the same kind."""
    made = np.random.default_rng([34, seed])
    kinds = ["category", str(made.choice(["number", "skewed"]))]
    kinds += map(str, made.choice(KINDS, int(made.integers(0, 9)), p=CHANCES))
    people = round(500 * 60 ** made.random())
    recipe = made.integers(2**32)
    fitted, others = (_drawn(kinds, n, recipe, [35, seed, n]) for n in (people, columns.OTHERS))
    return columns.Table(fitted.table, others.table, fitted.declared)


def random_hospital(seed: int, others: int = columns.OTHERS) -> columns.Table:
    """Visits to the hospital of a seed, and so many others of the same kind."""
    made = np.random.default_rng([36, seed])
    people, recipe = round(2000 * 10 ** made.random()), made.integers(2**32)
    fitted, fresh = (_visits(n, recipe, [37, seed, n]) for n in (people, others))
    return columns.Table(fitted.table, fresh.table, fitted.declared)


def _visits(n: int, recipe: int, seed: list[int]) -> columns.Example:
    """n visits over three years; what they are like follows from the recipe.

    Diagnoses of 3 to 20 % decide five numbers; one or two of them lie far from all others, and the
    laboratory value of some rises or falls. Half of the tables also have each of: charges, skewed;
    a constant; five grades of urgency; a number that more and more lack; a region, fixed; a ward of
    300 that goes with the diagnosis. Who comes changes: sex and region, which are fixed, too.
    """
    import pyarrow as pa

    made, rng = np.random.default_rng(recipe), np.random.default_rng(seed)
    times = 3 * rng.beta(*made.choice([[1, 1], [2, 1], [1, 2], [2, 2]]), n)
    count, years = int(made.integers(8, 15)), (times - 1.5)[:, None]
    shares = np.geomspace(0.2, 0.03, count)
    grows = _size(made) * made.normal(0, 0.4, count)
    code = columns.drawn(columns._softmax(np.log(shares) + years * grows), rng)
    far = np.isin(np.arange(count), made.choice(count, int(made.integers(1, 3)), replace=False))
    score = rng.standard_normal((6, n))
    male = rng.random(n) < made.uniform(0.3, 0.7, count)[code] + years[:, 0] * made.normal(0, 0.05)
    chance = made.uniform(0.1, 0.5, count)[code] + made.uniform(0, 0.15) * male
    smoker = rng.random(n) < chance + years[:, 0] * made.normal(0, 0.04)
    age = made.uniform(30, 72, count)[code] + 13 * score[0]
    bmi = made.normal(27, 2, count)[code] + 4 * score[1] + 0.04 * (age - 50)
    blood = made.normal(130, 9, count)[code] + 0.35 * (age - 50) + 0.5 * (bmi - 27) + 12 * score[2]
    slope = _size(made) * made.normal(0, 0.5, count) * (made.random(count) < 0.4)
    wide = np.where(far, 1.1, 0.45)[code]
    lab = (5.5 + 3 * far + made.normal(0, 0.4, count))[code] + years[:, 0] * slope[code]
    drugs = rng.poisson(made.lognormal(0.9, 0.6, count)[code] * np.exp(0.012 * (age - 50)))
    names, number = [f"D{k:02d}" for k in range(count)], {"kind": "number"}
    named: dict[str, Any] = {"time": times, "sex": columns.labelled(male * 1, ["F", "M"])}
    named |= {"diagnosis": columns.labelled(code, names), "smoker": pa.array(smoker)}
    named |= {"age": age.clip(0, 100).round(), "bmi": bmi.clip(12, 58).round(1)}
    named |= {"pressure": blood.clip(70, 230).round(), "drugs": np.minimum(drugs, 25)}
    named["lab"] = (lab + wide * score[3] + 0.04 * (bmi - 27)).clip(3.5, 14.5).round(1)
    declared: dict[str, Any] = {
        "sex": {"kind": "category", "values": ["F", "M"], "fixed": True},
        "diagnosis": {"kind": "category", "values": names},
        "smoker": {"kind": "boolean"},
        "age": number | {"bounds": [0, 110]},
        "bmi": number | {"bounds": [10, 60]},
        "pressure": number | {"bounds": [60, 240]},
        "drugs": {"kind": "integer", "low": 0, "high": 25},
        "lab": number | {"bounds": [3, 15]},
    }
    effect = made.normal(0, 0.6, (4, count))[:, code]  # of the diagnosis on all that follows
    charges, constant, urgency, lacks, region, ward = made.random(6) < 0.5
    if charges:
        named["charge"] = 20 * np.exp(effect[0] + 1.05 * score[4] + 0.15 * years[:, 0])
        declared["charge"] = number | {"bounds": [0, 5000]}
    if constant:
        named["shift"], declared["shift"] = np.full(n, 3.0), number | {"bounds": [0, 10]}
    if urgency:
        named["urgency"] = np.digitize(effect[1] + score[5], [-1.6, -0.7, 0.4, 1.3]) + 1
        declared["urgency"] = {"kind": "integer", "low": 1, "high": 5}
    if lacks:
        rises = made.uniform(-2.5, 0) + made.normal(0, 1.2) * years[:, 0] + 0.5 * effect[2]
        warm = (36.8 + 0.4 * effect[1] + 0.4 * score[5]).round(1)
        named["temperature"] = pa.array(warm, mask=rng.random(n) < columns._logistic(rises))
        declared["temperature"] = number | {"bounds": [30, 45], "missing": True}
    if region:
        near = np.log(made.dirichlet(np.full(5, 2.0))) + years * made.normal(0, 0.3, 5)
        named["region"] = columns.labelled(
            columns.drawn(columns._softmax(near), rng), list("ABCDE")
        )
        declared["region"] = {"kind": "category", "values": list("ABCDE"), "fixed": True}
    if ward:
        first, wards = 1 / np.arange(1.0, 301), [f"W{k:03d}" for k in range(300)]
        at = rng.choice(300, n, p=first / first.sum())
        own = (made.integers(0, 300, count)[code] + rng.integers(0, 4, n)) % 300
        named["ward"] = columns.labelled(np.where(rng.random(n) < 0.3, own, at), wards)
        declared["ward"] = {"kind": "category", "values": wards}
    return columns.Example(pa.table(named), declared, (0.0, 3.0))


def _drawn(kinds: list[str], n: int, recipe: int, seed: list[int]) -> columns.Example:
    """n people; what they are like follows from the recipe."""
    import pyarrow as pa

    made, rng = np.random.default_rng(recipe), np.random.default_rng(seed)
    times = rng.beta(*made.choice([[1, 1], [2, 1], [1, 2], [2, 2]]), n)
    named: dict[str, Any] = {"time": times}
    declared: dict[str, Any] = {}
    before: list[np.ndarray] = []  # of each column: a level, or a standard score
    for k, kind in enumerate(kinds):
        name = f"{kind} {k}"
        count = {"boolean": 2, "long": 300, "ordered": int(made.integers(3, 7))}.get(kind, 1)
        if kind == "category":
            count = int(made.integers(2, 21))
        shares = made.dirichlet(np.full(count, 1.5)) + 0.01
        if kind == "long":
            shares = 1 / np.arange(1.0, count + 1)
        score = np.log(shares) * (count > 1)  # (n, count), of levels, or of one number
        score = score + np.outer(times - 0.5, _size(made) * made.standard_normal(count))
        for parent in made.permutation(k)[: made.integers(1, 3)]:
            score = score + _effect(before[parent], times, count, made)
        if count > 1:
            level = columns.drawn(columns._softmax(score), rng)
            before.append(level)
            values = [f"L{j}" for j in range(count)]
            named[name] = columns.labelled(level, values)
            declared[name] = {"kind": "ordered" if kind == "ordered" else "category"}
            declared[name]["values"] = values
            declared[name]["fixed"] = bool(kind == "boolean" and made.random() < 0.3)
            continue
        z = score[:, 0] + rng.standard_normal(n)
        before.append(z)
        wide = made.uniform(4, 9)
        if kind == "skewed":
            z = np.exp(made.uniform(0.4, 1.2) * z)
            bounds = [0.0, float(made.uniform(15, 250))]
        elif kind == "few":
            most = int(made.integers(4, 20))
            z = np.round(most / 4 + most / 6 * z).clip(0, most).astype(int)
            declared[name], named[name] = {"kind": "integer", "low": 0, "high": most}, z
            continue
        else:
            bounds = [-wide, float(made.uniform(4, 9))]
        z = z.clip(*bounds) if kind != "constant" else np.full(n, 0.3)
        declared[name] = {"kind": "number", "bounds": bounds, "missing": kind == "missing"}
        lacking = rng.random(n) < columns._logistic(
            made.uniform(-2, 0) + made.normal() * score[:, 0]
        )
        named[name] = pa.array(z.round(3), mask=lacking if kind == "missing" else None)
    return columns.Example(pa.table(named), declared, (0.0, 1.0))


def _size(made: np.random.Generator) -> float:
    """Of an effect: none, or any."""
    return float(made.choice([0.0, 0.3, 0.7, 1.5], p=[0.35, 0.25, 0.25, 0.15]))


def _effect(parent: np.ndarray, times: np.ndarray, count: int, made: Any) -> np.ndarray:
    """(n, count) on a score of a parent (n,), a level or a number, which may change over time."""
    levels, size, slope = 300, _size(made) or 0.3, _size(made)
    first, later = (made.standard_normal((levels, count)) for _ in range(2))
    if parent.dtype.kind == "f":
        return parent[:, None] * (0.6 * size * first[0] + slope * np.outer(times - 0.5, later[0]))
    return size * first[parent] + slope * (times - 0.5)[:, None] * later[parent]


def scored(seed: int, method: str) -> dict[str, Any]:
    """One row of the file."""
    import privtraj as pt
    from baselines import unguarded
    from privtraj.measures import pairs, tables

    warnings.simplefilter("ignore")
    table = (random_hospital if seed >= HOSPITALS else random_table)(seed % HOSPITALS)
    others = pt.Snapshots.from_table(
        table.others, **table.declared, bins=columns.slabs_of(table.declared)
    )
    truth, start = unguarded(others), time.process_time()
    if method == "nothing":
        rng, every = np.random.default_rng(seed), np.concatenate(truth)
        released: Any = [np.stack([rng.permutation(one) for one in every.T], axis=1)] * len(truth)
    else:
        for name, value in (one.split("=") for one in method.split()[1:] if "=" in one):
            setattr(tables if hasattr(tables, name) else pairs, name, eval(value))
        released = columns.fitted(method.split()[0] if "=" in method else method, table, 0, seed)
    row = columns.answers(released, truth, others.axes) if released else {}
    about = {"seed": seed, "method": method, "people": table.fitted.num_rows}
    about["kinds"] = " ".join(name.split()[0] for name in table.declared["columns"])
    values = {name: f"{error:.5f}" for name, error in row.items()}
    return about | values | {"seconds": f"{time.process_time() - start:.1f}"}


def read(file: Path) -> dict[tuple[int, str], dict[str, str]]:
    if not file.exists():
        return {}
    with file.open(encoding="utf-8", newline="") as lines:
        return {(int(row["seed"]), row["method"]): row for row in csv.DictReader(lines)}


def table(rows: dict[tuple[int, str], dict[str, str]]) -> str:
    """Markdown: ours over the others, by answer and half."""
    lines = ["| ours over | seeds | tables | " + " | ".join(columns.ANSWERS) + " |"]
    lines.append("|---" * (3 + len(columns.ANSWERS)) + "|")
    for method in dict.fromkeys(method for _, method in rows if method != "ours"):
        for unseen, half in enumerate(("may set something", "**unseen**")):
            both = [s for s, m in rows if m == method and (s, "ours") in rows]
            both = [s for s in both if (s % HOSPITALS >= UNSEEN) == unseen]
            cells = []
            for name in columns.ANSWERS if both else ():
                found = [(rows[s, "ours"].get(name), rows[s, method].get(name)) for s in both]
                known = np.array([pair for pair in found if all(pair)], float).reshape(-1, 2)
                ratio = np.divide(*(known.T + ADDED))
                text = f"{np.exp(np.log(ratio).mean()):.2f}, {(ratio > 1.5).mean():.0%}"
                cells.append(f"{text}, {ratio.max():.1f}" if len(ratio) else "")
            if both:
                lines.append(f"| {method} | {half} | {len(both)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="four tables, without MST")
    parser.add_argument("--seeds", nargs=2, type=int, default=(500, 540), help="FROM TO")
    parser.add_argument("--methods", nargs="+", default=["ours", "MST", "nothing", "real people"])
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=1e7, help="begin no fit after these")
    parser.add_argument("--out", type=Path, help="errors, kept for the next time")
    args = parser.parse_args()
    rows = read(args.out) if args.out else {}
    methods = ["ours", "nothing"] if args.quick else args.methods
    seeds = range(4) if args.quick else range(*args.seeds)
    jobs = [(seed, method) for seed in seeds for method in methods]
    jobs = [job for job in jobs if job not in rows]
    end = time.monotonic() + args.seconds
    context = get_context("spawn")
    with ProcessPoolExecutor(args.jobs, mp_context=context, max_tasks_per_child=1) as pool:
        waiting = {pool.submit(scored, *job): job for job in jobs}
        try:
            for done in as_completed(waiting, timeout=max(end - time.monotonic(), 1.0)):
                rows[waiting[done]] = done.result()
        except TimeoutError:
            pool.shutdown(wait=True, cancel_futures=True)
    if args.out:
        with args.out.open("w", encoding="utf-8", newline="") as lines:
            writer = csv.DictWriter(lines, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows[key] for key in sorted(rows))
    print(table(rows))


if __name__ == "__main__":
    main()
