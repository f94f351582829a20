"""The paper's multimodal data, flat and rotated into higher dimension: does any run collapse?

    python experiments/three_modes.py [--seeds 5] [--collapse-seeds 20] [--secure] [--json FILE]

3000 people at each of ten times, (1, 1e-5), add-remove, private counts. Squared W2 (exact optimal
transport), averaged over time, between 600 released people and 3000 fresh real ones per time; mean
(standard deviation) over seeds, and the worst W2, not squared, of any run. --secure takes the noise
from the operating system, as a release would, instead of from the seed.
"""

from __future__ import annotations

import argparse

import numpy as np

from common import NON_PRIVATE, error_of, in_parallel, spread, write_json

TIMES, PEOPLE = 10, 3000


def clouds(n: int, dimensions: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Times (n T,) and points (n T, d)."""
    import privtraj as pt

    return pt.datasets.three_modes(n, TIMES, seed, dimensions=dimensions)


def by_time(n: int, dimensions: int, seed: int) -> list[np.ndarray]:
    """T clouds (n, d)."""
    times, points = clouds(n, dimensions, seed)
    return [points[times == t] for t in np.unique(times)]


def fit_error(
    dimensions: int, seed: int, measure: str, epsilon: float, delta: float, secure: bool
) -> float:
    """Score of one fit."""
    import privtraj as pt

    times, points = clouds(PEOPLE, dimensions, seed)
    snapshots = pt.Snapshots.from_arrays(
        times, points, bounds=[(-1.5, 1.5)] * dimensions, bins=np.linspace(0, 1, TIMES)
    )
    noise = None if secure else seed
    synthesizer = pt.TrajectorySynthesizer(epsilon, delta, measure=measure, seed=noise)
    return error_of(synthesizer.fit(snapshots), by_time(PEOPLE, dimensions, seed + 10_000), seed)


def people_error(dimensions: int, seed: int, n: int) -> float:
    """Score of n real people per time, drawn at random whatever their mode."""
    import privtraj as pt

    truth = by_time(PEOPLE, dimensions, seed + 10_000)
    return pt.metrics.real_people_error(truth, n, repeats=1, seed=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--collapse-seeds", type=int, default=20, help="seeds of the flat private rows"
    )
    parser.add_argument("--dimensions", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--secure", action="store_true", help="noise from the operating system")
    parser.add_argument("--json", help="file for every number")
    args = parser.parse_args()

    print(f"{'d':>2} {'':26}{'squared W2':>16}{'W2':>8}{'worst W2':>10}{'seeds':>7}")
    numbers = {}
    for d in args.dimensions:
        rows = {
            "auto (1, 1e-5)": (fit_error, ("auto", 1.0, 1e-5, args.secure)),
            "gradients (1, 1e-5)": (fit_error, ("gradients", 1.0, 1e-5, args.secure)),
            "50 real people": (people_error, (50,)),
            "200 real people": (people_error, (200,)),
            "auto, non-private": (fit_error, ("auto", *NON_PRIVATE, args.secure)),
        }
        if d > 2:  # there the automatic choice is gradients
            del rows["gradients (1, 1e-5)"]
        for row, (function, settings) in rows.items():
            many = args.collapse_seeds if d == 2 and "1e-5" in row else args.seeds
            errors = in_parallel(function, [(d, seed, *settings) for seed in range(many)])
            w2 = np.sqrt(errors)
            print(
                f"{d:2} {row:26}{spread(errors):>16}{w2.mean():8.3f}{w2.max():10.3f}{many:7}",
                flush=True,
            )
            numbers[f"{d} {row}"] = errors
    write_json(args.json, numbers)


if __name__ == "__main__":
    main()
