"""Six handwritten digits, one point of the pen per person: released people against real ones.

    python experiments/strokes.py STROKES.npz [--seeds 5] [--digits 1 2 3 6 7 9] [--json FILE]
        [--secure]

Average over ten times of squared W2 (exact optimal transport) between 600 released people per time
and all pen paths of the digit. Mean (standard deviation) over seeds. Counts of people are private,
adjacency is add-remove. The seed fixes the noise so that anybody gets the same table; --secure
takes it from the operating system instead, as a release would: the same table up to chance.
"""

from __future__ import annotations

import argparse

import numpy as np

from common import NON_PRIVATE, error_of, in_parallel, spread, write_json

TIMES = 10
ROWS = {
    "auto (2, 1e-3)": ("auto", 2.0, 1e-3),
    "gradients (2, 1e-3)": ("gradients", 2.0, 1e-3),
    "auto (1, 1e-5)": ("auto", 1.0, 1e-5),
    "gradients (1, 1e-5)": ("gradients", 1.0, 1e-5),
    "auto, non-private": ("auto", *NON_PRIVATE),
    "gradients, non-private": ("gradients", *NON_PRIVATE),
}
PEOPLE = (50, 200)


def fit_error(
    path: str,
    digit: int,
    seed: int,
    measure: str,
    epsilon: float,
    delta: float,
    secure: bool = False,
) -> float:
    """Score of one fit."""
    import privtraj as pt
    from reproduce.strokes import strokes

    paths = strokes(path, digit, TIMES)
    times, points = pt.datasets.one_snapshot_each(paths, seed)
    snapshots = pt.Snapshots.from_arrays(
        times, points, bounds=[(0, 1), (0, 1)], bins=np.arange(float(TIMES))
    )
    noise = None if secure else seed
    synthesizer = pt.TrajectorySynthesizer(epsilon, delta, measure=measure, seed=noise)
    return error_of(synthesizer.fit(snapshots), list(paths.transpose(1, 0, 2)), seed)


def people_error(path: str, digit: int, seed: int, people: int) -> float:
    """Score of real people's raw records."""
    import privtraj as pt
    from reproduce.strokes import strokes

    truth = list(strokes(path, digit, TIMES).transpose(1, 0, 2))
    return pt.metrics.real_people_error(truth, people, repeats=1, seed=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("strokes", help="mnist_strokes_dejong.npz, or a folder of stroke files")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--digits", type=int, nargs="+", default=[1, 2, 3, 6, 7, 9])
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--secure", action="store_true", help="noise from the operating system")
    parser.add_argument("--json", help="file for every number")
    args = parser.parse_args()

    print("average over time of squared W2, mean (sd) over seeds")
    print(f"{'':24}" + "".join(f"{digit:>14}" for digit in args.digits) + f"{'average':>10}")
    numbers = {}
    rows = {row: (fit_error, (*ROWS[row], args.secure)) for row in args.rows}
    rows |= {f"{n} real people": (people_error, (n,)) for n in PEOPLE}
    for row, (function, settings) in rows.items():
        tasks = [(args.strokes, d, s, *settings) for d in args.digits for s in range(args.seeds)]
        errors = np.reshape(in_parallel(function, tasks), (len(args.digits), args.seeds))
        cells = "".join(f"{spread(per_digit):>14}" for per_digit in errors)
        print(f"{row:24}{cells}{errors.mean():10.4f}", flush=True)
        numbers[row] = dict(zip(map(str, args.digits), errors.tolist(), strict=True))
    write_json(args.json, numbers)


if __name__ == "__main__":
    main()
