"""How often answers about hospitals hold: means, trends, shares, and those that stand out.

    python benchmarks/answers.py [--seeds 1500 1505] [--epsilon 1]

Hospitals are those of `random_tables.py`; from seed 1,500 on they have set nothing. Each is fitted
once, at delta 1e-5, and asked for the mean and the trend of four numbers, and the share of men and
of smokers. An answer holds if its 90 % interval has what 100,000 others of the same kind have. An
answer stands out if the truth is further than its interval is wide from what everybody has, or, of
trends, from none; of these the table has the median share that comes back.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np

import privtraj as pt
import random_tables

OTHERS = 100_000
NUMBERS, SHARES = ("age", "bmi", "pressure", "lab"), ("sex=M", "smoker=true")
BY = {
    "mean": ("", " by diagnosis", " by 3 periods", " by diagnosis, 3 periods"),
    "trend": ("", " by diagnosis"),
    "share": ("", " by diagnosis", " by 3 periods", " by diagnosis, 3 periods"),
}


def held(seed: int, epsilon: float, rows: dict[str, list[tuple[float, ...]]]) -> None:
    """Into rows by question: whether an answer holds, stands out, and what came back of it."""
    table = random_tables.random_hospital(seed, OTHERS)
    snapshots = pt.Snapshots.from_table(table.fitted, **table.declared)
    model = pt.TrajectorySynthesizer(epsilon, 1e-5, seed=seed).fit(snapshots)
    others = table.others.to_pandas()
    others["year"] = others["time"].astype(int).clip(0, 2)
    for share in SHARES:
        name, value = share.split("=")
        others[share] = others[name].astype(str).str.lower() == value.lower()
    for verb, every in BY.items():
        for by in every:
            keys = [key for key in ("diagnosis", "year") if key.replace("year", "periods") in by]
            for number in SHARES if verb == "share" else NUMBERS:

                def truth(some, of=verb, number=number):
                    if of == "trend":
                        return np.polyfit(some["time"], some[number], 1)[0]
                    return some[number].mean()

                whole = 0.0 if verb == "trend" else truth(others)
                groups = others.groupby(keys, observed=True) if keys else [((), others)]
                true = {key: truth(some) for key, some in groups}
                for row in model.ask(f"{verb} {number}{by}").rows:
                    year = int(float(row["time"].split("..")[0])) if "time" in row else 0
                    key = tuple({**row, "year": year}[name] for name in keys)
                    if row["value"] is not None and key in true:
                        half, away = (row["high"] - row["low"]) / 2, true[key] - whole
                        inside = row["low"] <= true[key] <= row["high"]
                        back = (row["value"] - whole) / (away or 1.0)
                        rows[verb + by].append((inside, abs(away) > half, back))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs=2, type=int, default=(1500, 1505), help="FROM TO")
    parser.add_argument("--epsilon", type=float, default=1.0)
    asked = parser.parse_args()
    rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for seed in range(*asked.seeds):
        held(seed, asked.epsilon, rows)
    print(
        "| question | answers | held | stand out | held | of it back |\n|---|---|---|---|---|---|"
    )
    for question, found in rows.items():
        inside, out, back = np.array(found, float).T
        few = f"{out.sum():.0f} | | |"
        if out.any():
            out = out.astype(bool)
            few = f"{out.sum()} | {inside[out].mean():.0%} | {np.median(back[out]):.2f} |"
        print(f"| {question} | {len(found)} | {inside.mean():.0%} | {few}", flush=True)


if __name__ == "__main__":
    main()
