"""Counts or gradients: which is nearer to the population, by features, people, epsilon and layout.

    python experiments/measures.py [--families known|second|unseen] [--cases 96] [--features 2 3 4]
        [--json FILE]

Cases are random populations of experiments/families.py, with so many features, 300 to 30,000 people
at five listed times or at any time, epsilon .5, 1 or 4, delta 1e-5. Both measurements fit the same
records. Squared W2 (exact optimal transport, mean over five times) between 500 released people and
600 points that represent 16,000 others. Printed is gradients / counts: the geometric mean, and in
how many cases it is below 1. `measure_for` draws its line where the known families cross 1, and
the others had no part in it.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from common import in_parallel, write_json
from families import FAMILIES, IN_THE_PLANE

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))

PEOPLE, EPSILONS, TIMES = (300, 1000, 3000, 30_000), (0.5, 1.0, 4.0), 5
FRESH, RELEASED, DELTA = 16_000, 500, 1e-5


def both(which: str, features: int, number: int) -> dict[str, Any]:
    """Squared W2 of both measurements in one case, the same for the same number."""
    import privtraj as pt
    from populations import represented, squared_w2

    warnings.simplefilter("ignore")
    rng = np.random.default_rng([number, features])
    families = [name for name in FAMILIES[which] if features == 2 or name not in IN_THE_PLANE]
    name = families[number % len(families)]
    people, epsilon = int(rng.choice(PEOPLE)), float(rng.choice(EPSILONS))
    listed, at = bool(rng.integers(2)), np.linspace(0, 1, TIMES)
    draw = FAMILIES[which][name](5000 + number, features)
    moments = np.repeat(at, people // TIMES) if listed else np.sort(rng.uniform(size=people))
    data = pt.Snapshots.from_arrays(
        moments,
        draw(moments, rng),
        bounds=[(0, 1)] * features,
        **({"bins": at} if listed else {"time_range": (0, 1)}),
    )
    truth = [represented(draw(np.full(FRESH, t), rng)) for t in at]
    found: dict[str, Any] = {
        "family": name,
        "features": features,
        "people": people,
        "epsilon": epsilon,
        "times": "listed" if listed else "any",
    }
    for measure in ("counts", "gradients"):
        model = pt.TrajectorySynthesizer(epsilon, DELTA, measure=measure, seed=number).fit(data)
        released = model.sample(RELEASED, times=at, seed=number).values.swapaxes(0, 1)
        pairs = zip(released, truth, strict=True)
        found[measure] = float(np.mean([squared_w2(cloud, *points) for cloud, points in pairs]))
    return found


def table(rows: list[dict[str, Any]], by: str) -> None:
    """gradients / counts for each number of features and each value of one more thing."""
    print(f"\n{'features':>8} {by:>20} {'cases':>6} {'gradients / counts':>19} {'below 1':>8}")
    for features in sorted({row["features"] for row in rows}):
        for value in sorted({row[by] for row in rows}):
            mine = [row for row in rows if row["features"] == features and row[by] == value]
            if mine:
                ratios = np.array([row["gradients"] / row["counts"] for row in mine])
                mean, share = np.exp(np.log(ratios).mean()), np.mean(ratios < 1)
                print(f"{features:8} {value!s:>20} {len(mine):6} {mean:19.2f} {share:8.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", choices=FAMILIES, default="known")
    parser.add_argument("--cases", type=int, default=96)
    parser.add_argument("--features", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--json")
    args = parser.parse_args()
    cases = [(args.families, d, number) for number in range(args.cases) for d in args.features]
    rows = in_parallel(both, cases)
    for by in ("people", "epsilon", "times", "family"):
        table(rows, by)
    write_json(args.json, rows)


if __name__ == "__main__":
    main()
