"""Does anybody ever leave a domain, and how much better are marginals that know it?

    python benchmarks/domains.py [--people 6000] [--paths 100000] [--times 200] [--seeds 3]

Commuters who walk the shortest way from one end of a domain to the other; default fits, epsilon 1,
delta 1e-6. `outside`: places of all paths at all times that are not inside, in data units; with
shapely, by its own judgement too. `W2`: mean over five times and all seeds of the distance to fresh
people, with the domain and without it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from itertools import pairwise

import numpy as np

import privtraj as pt
from privtraj.base.arrays import Floats
from privtraj.metrics import squared_wasserstein2

BOX = np.array([[11.4, 11.8], [48.0, 48.2]])
READ = (0.0, 0.25, 0.5, 0.75, 1.0)


def _data(unit: object) -> Floats:
    """Shares of the box in data units."""
    return BOX[:, 0] + np.asarray(unit) * (BOX[:, 1] - BOX[:, 0])


def _ring(west: float, east: float, south: float, north: float) -> list[list[float]]:
    corners = [(west, south), (east, south), (east, north), (west, north), (west, south)]
    return _data(corners).tolist()


def river() -> pt.Domain:
    """Two banks, two bridges of 3 % of the box."""
    water = [_ring(left, right, 0.45, 0.55) for left, right in ((0, 0.25), (0.28, 0.7), (0.73, 1))]
    return pt.Domain.polygon({"type": "Polygon", "coordinates": [_ring(0, 1, 0, 1), *water]})


def bay() -> pt.Domain:
    """A crescent of a quarter of the box."""
    angle = np.linspace(0, np.pi, 60)
    turn = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    ring = np.concatenate([(0.5, 0.1) + turn * (0.45, 0.8), (0.5, 0.1) + turn[::-1] * (0.33, 0.6)])
    return pt.Domain.polygon({"type": "Polygon", "coordinates": [_data(ring).tolist()]})


def lakes() -> pt.Domain:
    """A mask with a ragged shore and lakes."""
    y, x = np.mgrid[0:192, 0:192] / 192
    waves = np.sin(9 * x) + np.cos(7 * y + 3 * x) + 0.6 * np.sin(31 * x * y) + 0.4 * np.cos(40 * y)
    return pt.Domain.mask(waves > -0.4, BOX.ravel())


def streets() -> pt.Domain:
    """A grid of 10 x 10 blocks."""
    at = np.linspace(0.05, 0.95, 11)
    edges = [_data([(a, k), (b, k)]) for k in at for a, b in pairwise(at)]
    edges += [_data([(k, a), (k, b)]) for k in at for a, b in pairwise(at)]
    return pt.Domain.network(edges)


DOMAINS: tuple[Callable[[], pt.Domain], ...] = (river, bay, lakes, streets)


class Commuters:
    """People of a domain who walk from around one place to around another."""

    def __init__(self, domain: pt.Domain, n: int, rng: np.random.Generator) -> None:
        ground = domain.ground(("lon", "lat"), BOX).ground
        home = ground.nearest(rng.normal((0.2, 0.25), 0.07, (n, 2)))
        work = ground.nearest(rng.normal((0.75, 0.75), 0.07, (n, 2)))
        self._read = ground.ways(home, work).at(np.linspace(0, 1, 101))

    def at(self, times: Floats) -> Floats:
        """Where each is at a time of their own, all on the way from 0.2 to 0.8."""
        share = np.clip((times - 0.2) / 0.6, 0, 1)
        return _data(self._read[np.arange(len(times)), np.rint(100 * share).astype(int)])


def fit(
    domain: pt.Domain | None, people: Commuters, times: Floats, seed: int
) -> pt.TrajectoryModel:
    snapshots = pt.Snapshots.from_arrays(
        times,
        people.at(times),
        features=("lon", "lat"),
        bounds=BOX,
        time_range=(0, 1),
        domain=domain,
    )
    return pt.TrajectorySynthesizer(1.0, 1e-6, seed=seed).fit(snapshots)


def error(model: pt.TrajectoryModel, domain: pt.Domain) -> float:
    """Root of the mean squared W2 to fresh people."""
    fresh = Commuters(domain, 1000, np.random.default_rng(99))
    squares = []
    for t in READ:
        found = model.sample(1000, [t], seed=7).values[:, 0]
        true = fresh.at(np.full(1000, t))
        squares.append(
            squared_wasserstein2(*((p - BOX[:, 0]) / np.ptp(BOX, axis=1) for p in (found, true)))
        )
    return float(np.sqrt(np.mean(squares)))


def by_shapely(domain: pt.Domain, places: Floats) -> str:
    """How many of some of the places are outside by another library's judgement."""
    try:
        import shapely
    except ImportError:
        return "-"
    if domain.kind == "network":
        return "-"
    lines = shapely.linestrings(domain.segments.reshape(-1, 2, 2))
    area = shapely.build_area(shapely.union_all(lines))
    shapely.prepare(area)
    return str(
        int((~shapely.covers(area, shapely.points(places[:: max(1, len(places) // 10**6)]))).sum())
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=6000)
    parser.add_argument("--paths", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| domain | sides | outside | of | by shapely, of 10^6 | seconds | W2 with | W2 without |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for make in DOMAINS:
        domain, errors = make(), []
        for seed in range(args.seeds):
            rng = np.random.default_rng(seed)
            people, times = Commuters(domain, args.people, rng), rng.uniform(size=args.people)
            models = [fit(known, people, times, seed) for known in (domain, None)]
            errors.append([error(model, domain) for model in models])
        begun = time.perf_counter()
        paths = models[0].sample(args.paths, np.linspace(0, 1, args.times), seed=0).values
        seconds = time.perf_counter() - begun
        places = paths.reshape(-1, 2)
        blocks = range(0, len(places), 10**6)
        outside = sum(int((~domain.inside(places[i : i + 10**6])).sum()) for i in blocks)
        bounded, free = np.mean(errors, axis=0)
        print(
            f"| {make.__name__} | {len(domain.segments)} | {outside} | {len(places)} | "
            f"{by_shapely(domain, places)} | {seconds:.0f} | {bounded:.4f} | {free:.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
