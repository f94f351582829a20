"""Three modes in a plane of many features, and groups that fill theirs: what a subspace is worth.

    python experiments/subspace.py [--features 2 8 16 20 50] [--epsilons 1 8] [--seeds 3]
                                   [--people 3000] [--off] [--cost] [--json FILE]

`people` at each of 5 times, delta 1e-5, add-remove. Squared W2 (exact optimal transport, mean over
times) in shares of the squared box, between the particles of a model and as many fresh people:

    all features     beside it that of as many real people, which in many features is far from 0
    in the plane     the same after both are projected to the true plane

The target of a fit in d features is 1.5 times ( that of d = 2 + the variance outside the plane ).
"groups": three groups that move along ways of their own in 8 features, with features that vary
together in each: no subspace holds them, so what was spent on looking for one is lost. --off also
fits without looking. --cost compares these two alone, where people are few and most data fill their
features: squared W2 of 500 released people to 8,000 fresh ones, geometric mean and worst of the
ratios over data and seeds. Without looking, more than 14 features cannot have their motion looked
at either: there each listed time is measured by itself.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from pathlib import Path

import numpy as np

from common import in_parallel, spread, write_json

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))  # for its data

TIMES, SIDE, GROUPS = 5, 3.0, 8
COST_DATA = ("three modes", "double-well", "bifurcation", "ornstein-uhlenbeck", "groups")
COST_FEATURES, COST_PEOPLE, FIRST_SEED = (8, 12, 20), (300, 1000), 21


def people_of(data: str, n: int, features: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Times (n T,) and points (n T, d) in a box of (-1.5, 1.5) per feature."""
    import privtraj as pt

    if data == "modes":
        return pt.datasets.three_modes(n, TIMES, seed, dimensions=features)
    shape, rng = np.random.default_rng(0), np.random.default_rng(seed)
    start, way = shape.uniform(-0.9, 0.9, (3, features)), shape.uniform(-0.6, 0.6, (3, features))
    within = shape.standard_normal((3, features, features)) * 0.25 / np.sqrt(features)
    u, group = np.repeat(np.linspace(0, 1, TIMES), n), rng.integers(3, size=n * TIMES)
    noise = np.einsum("nij,nj->ni", within[group], rng.standard_normal((n * TIMES, features)))
    return u, start[group] + way[group] * u[:, None] + noise


def plane_of(data: str, features: int) -> np.ndarray:
    """(d, 2) axes of the plane that the modes are in."""
    import privtraj as pt

    if data != "modes":
        return np.eye(features)
    _, points = pt.datasets.three_modes(3000, TIMES, 1, dimensions=features)
    return np.linalg.eigh(np.cov(points.T))[1][:, -2:]


def scores(
    data: str, people: int, features: int, epsilon: float, subspace: str, seed: int
) -> dict[str, float]:
    """Of one fit."""
    import privtraj as pt

    times, points = people_of(data, people, features, seed)
    at = np.unique(times)
    snapshots = pt.Snapshots.from_arrays(
        times, points, bounds=[(-SIDE / 2, SIDE / 2)] * features, bins=at
    )
    model = pt.TrajectorySynthesizer(epsilon, 1e-5, seed=seed, subspace=subspace).fit(snapshots)
    released, axes = model.marginals, plane_of(data, features)
    count = released.shape[1]
    fresh, others = (
        [cloud[then == t] for t in at]
        for then, cloud in (people_of(data, count, features, seed + k) for k in (10_000, 20_000))
    )

    def error(clouds: list[np.ndarray], project: np.ndarray) -> float:
        pairs = zip(clouds, fresh, strict=True)
        squared = [pt.metrics.wasserstein2(a @ project, b @ project) ** 2 for a, b in pairs]
        return float(np.mean(squared)) / SIDE**2

    found = model.diagnostics.get("subspace") or {}
    everything = np.eye(features)
    return {
        "all": error(list(released), everything),
        "plane": error(list(released), axes),
        "real": error(others, everything),
        "rank": found.get("rank") or 0,
        "inside": found.get("inside", np.nan),
        "windows": model.settings["windows"],
    }


def outside(features: int) -> float:
    """Variance outside the plane of the modes, in shares of the squared box."""
    import privtraj as pt

    return (features - 2) * pt.datasets.THREE_MODES_VARIANCE / SIDE**2


# What looking costs ------------------------------------------------------------------------------


def crowds(data: str, people: int, features: int, seed: int) -> np.ndarray:
    """(T, people, d) in the unit cube."""
    from populations import clouds

    if data != "groups":
        return np.asarray(clouds(data, people, TIMES, seed, features=features, followed=True))
    _, points = people_of(data, people, features, seed)
    return np.clip(points / SIDE + 0.5, 0, 1).reshape(TIMES, people, features)


def fit_error(data: str, features: int, people: int, subspace: str, seed: int) -> float:
    """Squared W2 of one fit at epsilon 1, mean over times."""
    import privtraj as pt
    from populations import represented, squared_w2
    from privtraj.measures.windows import MOST_LOOKED

    times = np.linspace(0, 1, TIMES)
    some = crowds(data, people, features, seed)
    others = crowds(data, 8000, features, seed + 10_000)
    snapshots = pt.Snapshots.from_arrays(
        np.repeat(times, people), np.concatenate(list(some)), bounds=[(0, 1)] * features, bins=times
    )
    slabs = "bins" if subspace == "off" and features > MOST_LOOKED else "auto"
    fit = pt.TrajectorySynthesizer(1.0, 1e-5, seed=seed, subspace=subspace, windows=slabs)
    released = fit.fit(snapshots).sample(500, times=times, seed=seed).values.swapaxes(0, 1)
    pairs = zip(released, others, strict=True)
    return float(np.mean([squared_w2(a, *represented(b)) for a, b in pairs]))


def costs(seeds: int) -> dict[str, list[float]]:
    """Ratios with and without looking, by features and people."""
    seen = range(FIRST_SEED, FIRST_SEED + seeds)
    jobs = list(product(COST_DATA, COST_FEATURES, COST_PEOPLE, ("auto", "off"), seen))
    errors = dict(zip(jobs, in_parallel(fit_error, jobs), strict=True))
    found: dict[str, list[float]] = {}
    for data, d, people, how, seed in jobs:
        if how == "auto":
            ratio = errors[data, d, people, how, seed] / errors[data, d, people, "off", seed]
            found.setdefault(f"{d} features, {people} people", []).append(ratio)
    for name, ratios in found.items():
        print(f"{name}: {np.exp(np.mean(np.log(ratios))):.2f} ({max(ratios):.2f})")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, nargs="+", default=[2, 8, 16, 20, 50])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 8.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--people", type=int, default=3000)
    parser.add_argument("--off", action="store_true", help="also without looking for a subspace")
    parser.add_argument("--cost", action="store_true", help="what looking costs, and no more")
    parser.add_argument("--json", help="file for every number")
    args = parser.parse_args()
    if args.cost:
        write_json(args.json, costs(args.seeds))
        return

    cases = [("modes", d) for d in sorted({2, *args.features})] + [("groups", GROUPS)]
    hows = ["auto", "off"] if args.off else ["auto"]
    title = f"{'data':>7} {'d':>3} {'epsilon':>7} {'':>5} {'all features':>18} {'real':>8}"
    print(f"{title} {'in the plane':>18} {'outside':>8} {'over target':>12} {'rank':>5}")
    numbers: dict[str, list[dict[str, float]]] = {}
    for epsilon in args.epsilons:
        flat = np.nan
        for data, d in cases:
            for how in hows:
                jobs = [(data, args.people, d, epsilon, how, seed) for seed in range(args.seeds)]
                runs = in_parallel(scores, jobs)
                numbers[f"{data} {d} {epsilon:g} {how}"] = runs
                mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
                flat = mean["all"] if (data, d) == ("modes", 2) else flat
                rest = outside(d) if data == "modes" else np.nan
                all_, plane = ([run[key] for run in runs] for key in ("all", "plane"))
                over = mean["all"] / (flat + rest)
                print(
                    f"{data:>7} {d:>3} {epsilon:>7g} {how:>5} {spread(all_, 5):>18} "
                    f"{mean['real']:>8.5f} {spread(plane, 5):>18} {rest:>8.5f} {over:>12.2f} "
                    f"{mean['rank']:>5.1f}",
                    flush=True,
                )
    write_json(args.json, numbers)


if __name__ == "__main__":
    main()
