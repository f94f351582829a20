"""Few people at many times in three features, as cells under a microscope are: what fits are worth,
and how long their paths are.

    python experiments/tracks.py [--quick] [--seeds 3] [--json FILE]
                                 [--reference WORDS] [--file TRACKS.csv ...]

40 to 60 people at each of 13 to 20 listed times, every record as somebody's only one; epsilon 2,
delta 1e-5, add-remove. Means and standard deviations over seeds of

    worth     how many real people at each time would be as far from the population (500: or more)
    length    of released paths over that of true ones, read at the listed times, in the mean
    shared    the same of true paths without anybody's own way, where that is known

of nine simulated populations, which nothing was set on: groups that drift, turn or part while each
person wanders smoothly. The population is 1,500 others. --file: real tracks with columns track,
time, x, y, z; the tracks that are there at all of the 16 times at which most are, in a box a
twentieth wider than they are. They are their own population.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from common import in_parallel, spread, write_json

EPSILON, DELTA = 2.0, 1e-5
MOTIONS = ("drift", "turning", "parting")
POPULATIONS, OTHERS, RELEASED = 9, 1500, 1000
FRAMES = 16  # of a file


def simulated(population: int, seed: int) -> list[np.ndarray]:
    """Tracks (n, T, 3) in the unit cube of those who are fitted, of others, and of their groups."""
    made = np.random.default_rng([50, population])  # what the population is, not who is drawn
    times, people = int(made.integers(13, 21)), int(made.integers(40, 61))
    when, motion = np.linspace(0, 1, times), MOTIONS[population % len(MOTIONS)]
    groups, width = int(made.integers(1, 5)), made.uniform(0.02, 0.06)
    centres = made.uniform(0.3, 0.7, (groups, 3))
    ways = made.standard_normal((groups, 3))
    ways *= made.uniform(0.15, 0.4) / np.linalg.norm(ways, axis=1, keepdims=True)
    amount, rounds = made.uniform(0.02, 0.08), made.uniform(0.5, 1.5)

    def drawn(count: int, rng: np.random.Generator) -> list[np.ndarray]:
        group = rng.integers(groups, size=count)
        way = ways[group] if motion == "parting" else np.broadcast_to(ways[0], (count, 3))
        shift = way[:, None] * (when[:, None] - 0.5)
        if motion == "turning":
            angle = 2 * np.pi * rounds * when
            other = np.cross(way, np.roll(way, 1, axis=1))
            other *= np.linalg.norm(way) / np.linalg.norm(other)
            shift = 0.5 * (way[:, None] * np.cos(angle)[:, None])
            shift = shift + 0.5 * (other[:, None] * np.sin(angle)[:, None])
        waves = np.arange(1, 4)
        size = rng.standard_normal((2, count, 3, len(waves))) / waves
        own = size[0] @ np.cos(np.pi * waves[:, None] * when)
        own += size[1] @ np.sin(np.pi * waves[:, None] * when)
        start = centres[group] + width * rng.standard_normal((count, 3))
        shared = start[:, None] + shift
        return [np.clip(shared + amount * np.swapaxes(own, 1, 2), 0, 1), shared]

    ours, others = (np.random.default_rng([51, population, seed, k]) for k in range(2))
    return [drawn(people, ours)[0], *drawn(OTHERS, others)]


def read(file: str) -> list[np.ndarray]:
    """Tracks of a file, as those who are fitted and as their population."""
    places: dict[str, dict[float, list[float]]] = defaultdict(dict)
    with Path(file).open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            places[row["track"]][float(row["time"])] = [float(row[k]) for k in "xyz"]
    moments = sorted({time for one in places.values() for time in one})
    frames = max(
        (moments[k : k + FRAMES] for k in range(len(moments) - FRAMES + 1)),
        key=lambda some: sum(set(some) <= one.keys() for one in places.values()),
    )
    whole = [one for one in places.values() if set(frames) <= one.keys()]
    tracks = np.array([[one[time] for time in frames] for one in whole])
    low, high = tracks.min(axis=(0, 1)), tracks.max(axis=(0, 1))
    tracks = 0.025 + 0.95 * (tracks - low) / (high - low)
    return [tracks, tracks]


def scores(name: str, seed: int, reference: str) -> dict[str, Any]:
    """Of one fit to a file, or to a simulated population, which has a number."""
    import privtraj as pt

    warnings.simplefilter("ignore")
    tracks, others, *shared = simulated(int(name), seed) if name.isdigit() else read(name)
    people, times, _ = tracks.shape
    moments = np.linspace(0, 1, times)
    snapshots = pt.Snapshots.from_arrays(
        np.tile(moments, people), tracks.reshape(-1, 3), bounds=[(0, 1)] * 3, bins=moments
    )
    recipe = pt.TrajectorySynthesizer(EPSILON, DELTA, seed=seed, reference=reference)
    model = recipe.fit(snapshots)
    paths = model.sample(RELEASED, times=moments, seed=seed).values
    true, own, *common = (pt.metrics.path_lengths(x).mean() for x in (others, paths, *shared))
    clouds = (np.swapaxes(some, 0, 1) for some in (paths, others))
    shown = MOTIONS[int(name) % len(MOTIONS)] if name.isdigit() else Path(name).stem
    return {
        "data": f"{name} {shown}" if name.isdigit() else shown,
        "people": people,
        "times": times,
        "worth": pt.metrics.worth(*clouds, seed=seed),
        "length": float(own / true),
        "shared": float(common[0] / true) if common else np.nan,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two populations, one seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", default=None)
    parser.add_argument("--reference", default="auto")
    parser.add_argument("--file", nargs="*", default=[])
    args = parser.parse_args()
    names = [*map(str, range(2 if args.quick else POPULATIONS)), *args.file]
    seeds = range(1 if args.quick else args.seeds)
    jobs = [(name, seed, args.reference) for name in names for seed in seeds]
    rows = in_parallel(scores, jobs)
    print("| data | people x times | worth | length | shared |\n|---|---|---|---|---|")
    for data in dict.fromkeys(row["data"] for row in rows):
        own = [row for row in rows if row["data"] == data]
        size = f"{own[0]['people']} x {own[0]['times']}"
        figures = (("worth", 0), ("length", 2), ("shared", 2))
        shown = [spread([row[key] for row in own], k) for key, k in figures]
        print(f"| {data} | {size} | {' | '.join(shown)} |")
    write_json(args.json, rows)


if __name__ == "__main__":
    main()
