"""How cost grows with people, particles, times and features, on whatever device JAX finds.

    python benchmarks/scale.py [--quick] [--json FILE] [--answers FILE]

Needs numpy, scipy and jax only, so that it runs on a bare accelerator. Times are the best of
several runs after compilation. The two hot kernels are `sums.kernel_sums` (people against
particles) and `sinkhorn.solve` (particles against particles); each is held against its floor, the
bytes and operations that no implementation can avoid, and against what the device does in the same
run on a copy and on matrix products. --answers writes what was computed, to compare devices.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from privtraj.measures import langevin, likelihood
from privtraj.motion import sinkhorn
from privtraj.privacy import noise, sums

SWEEPS = 100


class Size(NamedTuple):
    """N people at all T times together, m particles, d features."""

    people: int = 100_000
    times: int = 10
    particles: int = 100
    features: int = 2


FULL = {
    "people": [Size(people=n) for n in (10**4, 10**5, 10**6, 10**7)],
    "particles": [Size(particles=m) for m in (50, 100, 200, 400, 800, 1600)],
    "times": [Size(times=t) for t in (5, 10, 20, 40, 80)],
    "features": [Size(features=d) for d in (1, 2, 4, 8, 16, 32, 50)],
}
SMALL = Size(people=10**3, particles=8)
QUICK = {
    "people": [SMALL, SMALL._replace(people=10**4)],
    "particles": [SMALL],
    "times": [SMALL],  # most of a quick run is compiling, which is done again for every shape
    "features": [SMALL._replace(features=8)],
}
ACCELERATED = [
    *(Size(people=10**7, particles=m) for m in (100, 400, 1600)),
    Size(people=10**8),
]
CLOUDS = [(9, 100), (9, 500), (19, 2000)]  # problems, particles


PATIENCE, QUICK_PATIENCE = 2.0, 0.05  # seconds that the runs of one work may take together


def seconds(work: Callable[[], Any], most: float) -> float:
    """The best of up to 20 runs, or of as many as fit into so many seconds."""
    best, begun = np.inf, time.perf_counter()
    for _ in range(20):
        start = time.perf_counter()
        jax.block_until_ready(work())
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() - begun > most:
            break
    return best


def people_of(size: Size) -> tuple[np.ndarray, np.ndarray]:
    """Points (N, d) and bins (N,) of a cloud that drifts through the box."""
    rng = np.random.default_rng(0)
    bins = np.sort(np.arange(size.people, dtype=np.int32) % size.times)
    points = rng.standard_normal((size.people, size.features), dtype=np.float32)
    points = 0.1 * points + (0.3 + 0.4 * bins / size.times).astype(np.float32)[:, None]
    return np.clip(points, 0, 1), bins


class Step:
    """One private step, in its parts."""

    def __init__(self, size: Size) -> None:
        rng = np.random.default_rng(1)
        self.rng = rng
        points, bins = people_of(size)
        self.chunks = sums.chunked(points, bins, size.times)
        self.there = self.chunks.held
        self.state = langevin.middle(size.times, size.particles, size.features)
        mixture = self.state.mixture
        self.state = self.state._replace(
            mixture=mixture._replace(bandwidth=jnp.full(size.times, 0.1, jnp.float32))
        )
        self.people = np.full(size.times, size.people / size.times)
        self.multiplier = 5.0
        gaps = jnp.ones(size.times - 1, jnp.float32)
        self.fixed = langevin.Fixed(gaps, jnp.zeros(size.times))
        self.stride = langevin.stride(langevin.gradient_schedule(20, 0.1), 10)

    def clip(self) -> np.ndarray:
        return likelihood.typical_norm(self.state.mixture, self.rng, 0.97)

    def integers(self, clip: np.ndarray) -> np.ndarray:
        mixture = self.state.mixture
        pull = sums.KernelSum(mixture.particles, likelihood.mass_weight(mixture), mixture)
        centres = np.asarray(mixture.particles)
        lattice = sums.kernel_lattice(clip, noise.GAUSSIAN_STD / self.multiplier, centres)
        weight_fn = likelihood.weights_and_residual
        return sums.kernel_sums(weight_fn, self.chunks, self.there, pull, clip, lattice)

    def move(self, integers: np.ndarray, clip: np.ndarray) -> Any:
        """The rest of a step, with the guard's noise."""
        mixture = self.state.mixture
        drawn = noise.gaussian_integers(noise.SecureSource(), integers.shape)
        released = np.float32(
            (integers + drawn) * (clip * self.multiplier / noise.GAUSSIAN_STD)[:, None]
        )
        moments = likelihood.moments(released, np.float32(self.people), mixture)
        kicks = self.rng.standard_normal(mixture.particles.shape, dtype=np.float32)
        quiet = np.zeros(len(self.people), np.float32)
        return langevin.langevin_step(self.state, moments, quiet, kicks, self.stride, self.fixed)

    def whole(self) -> Any:
        clip = self.clip()
        return self.move(self.integers(clip), clip)


def pull_floor(size: Size) -> dict[str, float]:
    """Bytes to read once, and operations on every pair of person and particle of a time."""
    n, m, d = size.people, size.particles, size.features
    read = 4.0 * d * n + 4.0 * size.times * m * d
    # distance 3 d; exponential counted as one, softmax 5, clip 4, check 4; products 2 (d + 1)
    return {"bytes": read, "operations": float(n * m * (3 * d + 14 + 2 * (d + 1)))}


def sinkhorn_floor(problems: int, m: int, sweeps: int) -> dict[str, float]:
    """A sweep reads the kernel twice if it does not fit into cache, and multiplies it twice."""
    return {
        "bytes": 2.0 * sweeps * problems * m * m * 4,
        "operations": 4.0 * sweeps * problems * m * m,
    }


def ceilings(most: float) -> dict[str, float]:
    """What the device reaches on a copy (bytes/s) and on matrix products (operations/s)."""
    big = jax.device_count() and jax.default_backend() != "cpu"
    length, side = (2**29, 8192) if big else (2**25, 1024)
    x = jnp.ones(length, jnp.float32)
    copy = jax.jit(lambda x: x + 1)
    rates = {"copy": 8.0 * length / _warm(lambda: copy(x), most)}
    for name, kind in (("float32", jnp.float32), ("float64", jnp.float64)):
        with jax.enable_x64(True):
            a = jnp.ones((side, side), kind)
            product = jax.jit(lambda a: jnp.matmul(a, a, precision="highest"))
            rates[f"product {name}"] = 2.0 * side**3 / _warm(lambda p=product, a=a: p(a), most)
    return rates


def _warm(work: Callable[[], Any], most: float) -> float:
    jax.block_until_ready(work())
    return seconds(work, most)


def rows_of(sizes: dict[str, list[Size]], most: float) -> Iterator[dict[str, Any]]:
    for axis, some in sizes.items():
        for size in some:
            step = Step(size)
            clip = step.clip()
            begun = time.perf_counter()
            jax.block_until_ready(step.whole())
            first = time.perf_counter() - begun
            pulls = seconds(lambda s=step, c=clip: s.integers(c), most)
            yield {
                "axis": axis,
                **size._asdict(),
                "first": first,
                "pulls": pulls,
                "step": seconds(step.whole, most),
                **{f"floor {k}": v for k, v in pull_floor(size).items()},
            }


def plans(sizes: list[tuple[int, int]], most: float) -> Iterator[dict[str, Any]]:
    """Sinkhorn sweeps between neighbouring clouds."""
    for problems, m in sizes:
        rng = np.random.default_rng(2)
        x = jnp.asarray(rng.uniform(size=(problems + 1, m, 2)), jnp.float32)
        reg = jnp.full(problems, 0.002, jnp.float32)
        given = (x[:-1], x[1:], reg, sinkhorn.cold(problems, m))
        work = partial(sinkhorn.solve, *given, iterations=SWEEPS)
        jax.block_until_ready(work())
        yield {
            "problems": problems,
            "m": m,
            "sweeps": SWEEPS,
            "seconds": seconds(work, most),
            **{f"floor {k}": v for k, v in sinkhorn_floor(problems, m, SWEEPS).items()},
        }


def answers() -> dict[str, np.ndarray]:
    """Small results that every device should agree on."""
    step = Step(Size(people=20_000, times=5, particles=64, features=3))
    clip = np.full(5, 0.08)
    x = np.random.default_rng(3).uniform(size=(3, 200, 2)).astype(np.float32)
    reg = jnp.full(2, 0.002, jnp.float32)
    plan = sinkhorn.solve(x[:-1], x[1:], reg, sinkhorn.cold(2, 200), iterations=500)
    mean = sinkhorn.barycentres(x[:-1], x[1:], reg, plan)
    return {"integers": step.integers(clip), "barycentres": np.asarray(mean)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--json", help="file for the numbers")
    parser.add_argument("--answers", help="file (.npz) for what was computed")
    parser.add_argument("--axes", nargs="*", help="only these: people particles times features")
    args = parser.parse_args()
    sizes = dict(QUICK if args.quick else FULL)
    if args.axes is not None:
        sizes = {axis: sizes[axis] for axis in args.axes}
    device = jax.devices()[0]
    accelerated = jax.default_backend() != "cpu" and not args.quick
    if accelerated:
        sizes["large"] = ACCELERATED
    measured: dict[str, Any] = {"device": device.device_kind, "backend": jax.default_backend()}
    most = QUICK_PATIENCE if args.quick else PATIENCE
    measured["ceilings"] = ceilings(most)
    print(measured, flush=True)
    measured["steps"] = []
    for row in rows_of(sizes, most):
        measured["steps"].append(row)
        print(row, flush=True)
    measured["plans"] = list(plans(CLOUDS[:1] if args.quick else CLOUDS, most))
    for row in measured["plans"]:
        print(row, flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(measured, indent=1))
    if args.answers:
        np.savez(args.answers, **answers())


if __name__ == "__main__":
    main()
