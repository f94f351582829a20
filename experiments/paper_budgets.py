"""W2 of the published algorithm against epsilon on two moons that turn: two clips.

The clip bounds how far people together move a particle: on average eta C / (side sqrt(m)) in a
step. With the first clip that is hardly anything in all steps, so that W2 is that of the start and
of the transport, whatever epsilon; with the second W2 falls as epsilon grows.

    python experiments/paper_budgets.py [--figure FILE.png]
"""

import argparse

import numpy as np

import privtraj as pt
from privtraj.paper import PaperSynthesizer, Phase, w2_against_epsilon

TIMES, PEOPLE, TURN = 8, 400, 1.2
EPSILONS = (0.25, 1.0, 4.0, 16.0)


def moons(n: int, t: float, rng: np.random.Generator) -> np.ndarray:
    """(n, 2) in the unit square, turned by `TURN` times t."""
    second = rng.integers(0, 2, n)
    angle = np.pi * (rng.random(n) + second)
    points = np.stack([np.cos(angle) + second, np.sin(angle) + second / 2], axis=1)
    points += rng.normal(0, 0.06, (n, 2)) - [0.5, 0.25]
    c, s = np.cos(TURN * t), np.sin(TURN * t)
    return points @ np.array([[c, s], [-s, c]]) / 4 + 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--figure", help="where to draw the second table")
    asked = parser.parse_args()
    rng, times = np.random.default_rng(0), np.linspace(0, 1, TIMES)
    people = np.concatenate([moons(PEOPLE, t, rng) for t in times])
    snapshots = pt.Snapshots.from_arrays(
        np.repeat(times, PEOPLE), people, bounds=[(0, 1)] * 2, bins=TIMES, time_range=(0, 1)
    )
    others = [moons(1000, t, rng) for t in times]
    for clip in (1.0, 1000.0):
        recipe = PaperSynthesizer([Phase(300, 0.02)], m=100, C=clip, lam=0.005, sigma=2.0, side=20)
        found = w2_against_epsilon(recipe, snapshots, others, epsilons=EPSILONS, seeds=2)
        print(f"C = {clip:g}\n{found}", flush=True)
    if asked.figure:
        found.figure().savefig(asked.figure)


if __name__ == "__main__":
    main()
