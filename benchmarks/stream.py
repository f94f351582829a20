"""A stream of people: a model that is extended month by month, beside one fit of everybody.

    python benchmarks/stream.py [--quick] [--data NAME ...] [--seeds 0 2] [--time]

300 people a month for 24 months, each once, epsilon 1, delta 1e-5, add-remove. The error is squared
W2 to the population (shares of the box), the mean over 25 times, after the last month:

    one fit     of all 7,200 people at once, as somebody could who had waited two years
    keep        extended every month; what was published stays
    revise      the same, every month improves what it can of the past
    alone       one fit per month, without a prior; the models stand beside each other

`--time`: 10^5 people a batch, 100 batches: seconds that the first and the last extension take.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np

DATA = ("three modes", "still ring", "loops", "bifurcation", "ornstein-uhlenbeck", "double-well")
MONTHS, PEOPLE, MOMENTS, READ = 24, 300, 10, 25
EPSILON, DELTA = 1.0, 1e-5
BOUNDS = [(0, 1)] * 2


def snapshots(times: np.ndarray, points: np.ndarray, start: float, end: float) -> Any:
    """Of people (n, d) at times (n,) from start to end."""
    import privtraj as pt

    return pt.Snapshots.from_arrays(times, points, bounds=BOUNDS, time_range=(start, end))


def months_of(data: str, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Times (n,) and people (n, 2) of every month; the time is in months."""
    from populations import clouds

    fine = MONTHS * MOMENTS
    points = clouds(data, PEOPLE // MOMENTS, fine, seed)
    times = np.repeat(np.linspace(0, MONTHS, fine), PEOPLE // MOMENTS).reshape(fine, -1)
    shape = (MONTHS, -1)
    return list(zip(times.reshape(shape), points.reshape(*shape, 2), strict=True))


def error(models: list[Any], truth: list[Any], seed: int) -> float:
    """Squared W2 of people drawn from a model, or from one for each month, at READ times."""
    from populations import squared_w2

    found = []
    for when, (points, weights) in zip(np.linspace(0, MONTHS, READ), truth, strict=True):
        one = models[min(int(when), len(models) - 1)]
        people = one.sample(500, [when], seed=seed).values[:, 0]
        found.append(squared_w2(people, points, weights))
    return float(np.mean(found))


def compared(data: str, seed: int) -> dict[str, float]:
    """Errors of all ways, after the last month."""
    import privtraj as pt
    from populations import clouds, represented

    truth = [represented(cloud) for cloud in clouds(data, 4000, READ, 1000 + seed)]
    months = months_of(data, seed)
    fit = pt.TrajectorySynthesizer(EPSILON, DELTA, seed=seed).fit
    whole = fit(snapshots(*map(np.concatenate, zip(*months, strict=True)), 0, MONTHS))
    batches = [snapshots(*month, k, k + 1) for k, month in enumerate(months)]
    made: dict[str, list[Any]] = {"one fit": [whole], "alone": [fit(one) for one in batches]}
    for past in ("keep", "revise"):
        model = made["alone"][0]
        for k, one in enumerate(batches[1:], start=1):
            model = model.extend(one, past=past, new_people=True, seed=1000 * seed + k)
        made[past] = [model]
    return {way: error(models, truth, seed) for way, models in made.items()}


def times(batches: int = 100, people: int = 100_000) -> list[float]:
    """Seconds of every extension."""
    import privtraj as pt

    rng, seconds, model = np.random.default_rng(0), [], None
    for k in range(batches):
        when = k + rng.random(people)
        x = 0.5 + 0.3 * np.cos(0.3 * when)[:, None] * [1, 0.5] + 0.05 * rng.normal(size=(people, 2))
        one = snapshots(when, np.clip(x, 0, 1), k, k + 1)
        start = time.perf_counter()
        if model is None:
            model = pt.TrajectorySynthesizer(EPSILON, DELTA, seed=0).fit(one)
        else:
            model = model.extend(one, new_people=True, seed=k)
        seconds.append(time.perf_counter() - start)
    return seconds


def main() -> None:
    about = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    about.add_argument("--quick", action="store_true", help="three data sets, one seed")
    about.add_argument("--data", nargs="+", default=DATA)
    about.add_argument("--seeds", nargs=2, type=int, default=(0, 2))
    about.add_argument("--time", action="store_true", help="seconds of 100 batches instead")
    args = about.parse_args()
    warnings.simplefilter("ignore")
    if args.time:
        seconds = times(12 if args.quick else 100)
        first, last = np.median(seconds[1:6]), np.median(seconds[-5:])
        print(f"fit {seconds[0]:.2f} s, first {first:.2f} s, last {last:.2f} s: {last / first:.2f}")
        return
    data, seeds = (args.data[:3], (0, 1)) if args.quick else (args.data, args.seeds)
    ratios: dict[str, list[float]] = {}
    for name in data:
        rows = [compared(name, seed) for seed in range(*seeds)]
        mean = {way: float(np.mean([row[way] for row in rows])) for way in rows[0]}
        for way, value in mean.items():
            ratios.setdefault(way, []).append(value / mean["one fit"])
        shown = ", ".join(f"{way} {value:.5f}" for way, value in mean.items())
        print(f"{name:20s} {shown}", flush=True)
    for way, values in ratios.items():
        print(f"{way:10s} over one fit: {np.exp(np.mean(np.log(values))):.2f} ({max(values):.2f})")


if __name__ == "__main__":
    main()
