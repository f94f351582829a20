"""The picture of paths before and after: children who grow, and a cloud that turns.

    python experiments/paths_picture.py [--out docs/images/paths-before-after.png] [--people 25]

Left, entropic couplings under Brownian motion, as version 0.1 drew paths; right, the default. The
same two models of 5,000 people, (1, 1e-5), seeded.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

SEED, PEOPLE = 11, 5000
HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "benchmarks"))  # for its data


def children() -> Any:
    """A model of heights and weights at any age."""
    import privtraj as pt

    snapshots = pt.Snapshots.from_table(
        pt.datasets.growth_clinic(PEOPLE, SEED),
        time="age",
        bounds=pt.datasets.GROWTH_BOUNDS,
        time_range=pt.datasets.GROWTH_TIME_RANGE,
    )
    return pt.TrajectorySynthesizer(1.0, 1e-5, seed=SEED).fit(snapshots)


def turning() -> Any:
    """A model of a cloud that turns, everybody seen once."""
    import privtraj as pt
    from journeys import process_paths

    times = np.linspace(0, 1, 101)
    paths = process_paths("rotation", PEOPLE, times, SEED)
    at = np.random.default_rng(SEED).integers(101, size=PEOPLE)
    snapshots = pt.Snapshots.from_arrays(
        times[at],
        paths[np.arange(PEOPLE), at],
        bounds=[pt.datasets.PROCESS_BOUNDS] * 2,
        time_range=(0, 1),
    )
    return pt.TrajectorySynthesizer(1.0, 1e-5, seed=SEED).fit(snapshots)


def draw(out: Path, people: int) -> None:
    """Two models, before and after."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 7.5), constrained_layout=True)
    clinic, cloud = children(), turning()
    for column, (title, how) in enumerate(
        [("before: entropic, Brownian", {"coupling": "entropic"}), ("now: default", {})]
    ):
        ages, clock = np.linspace(0, 20, 161), np.linspace(0, 1, 161)
        heights = clinic.sample(people, ages, seed=SEED, **how).values[:, :, 0]
        axes[0, column].plot(ages, heights.T, lw=0.8, alpha=0.8)
        axes[0, column].set(title=title, xlabel="age", ylabel="height, cm")
        ways = cloud.sample(people, clock, seed=SEED, **how).values
        for way in ways:
            axes[1, column].plot(*way.T, lw=0.8, alpha=0.8)
        axes[1, column].plot(*ways[:, -1].T, "k.", ms=4)
        axes[1, column].set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal", xlabel="a turn")
    figure.savefig(out, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "../docs/images/paths-before-after.png")
    parser.add_argument("--people", type=int, default=25)
    args = parser.parse_args()
    draw(args.out, args.people)
    print(f"written: {args.out}")


if __name__ == "__main__":
    main()
