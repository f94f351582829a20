"""How fast, as ratios against what one would otherwise run, in the same run on the same machine.

    python benchmarks/speed.py [--quick] [--json FILE]

(a) entropic transport against POT and OTT; (b) a private step and a whole fit against the same
algorithm composed from POT and NumPy; (c) cold starts, each in a new process; (d) sampling of
paths; (e) accounting and calibration; (f) peak memory. Every row has its target and whether it was
reached. Compilation is not in the times of (a), (b) and (d); (c) has it, and says how much it is.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import ot

import privtraj as pt
import transport
from privtraj.privacy.ledger import calibrate_gaussian, calibrate_laplace, calibrate_noise
from transport import seconds

T, N, D = 10, 626, 2
BUDGET = (2.0, 1e-3)


class Row(NamedTuple):
    """One line of the table; a target is at least a ratio, or at most so many seconds or MB."""

    what: str
    ours: float
    unit: str
    peer: float | None = None
    target: float | None = None

    @property
    def ratio(self) -> float | None:
        return None if self.peer is None else self.peer / self.ours

    @property
    def reached(self) -> bool | None:
        if self.target is None:
            return None
        return self.ours <= self.target if self.ratio is None else self.ratio >= self.target

    def __str__(self) -> str:
        peer = "" if self.peer is None else f"{self.peer:.3g} {self.unit}"
        ratio = "" if self.ratio is None else f"{self.ratio:.1f}"
        aim = "" if self.target is None else ("≥ " if self.peer else "≤ ") + f"{self.target:g}"
        verdict = {None: "", True: "yes", False: "NO"}[self.reached]
        ours = f"{self.ours:.3g} {self.unit}"
        return f"{self.what:58}{ours:>12}{peer:>12}{ratio:>8}{aim:>8}  {verdict}"


def clouds(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Times and points of a cloud that drifts through the unit square."""
    rng = np.random.default_rng(seed)
    times = np.repeat(np.arange(float(T)), N)
    points = 0.3 + 0.04 * times[:, None] + 0.1 * rng.standard_normal((T * N, D))
    return times, np.clip(points, 0, 1)


def snapshots() -> pt.Snapshots:
    times, points = clouds()
    return pt.Snapshots.from_arrays(times, points, bounds=[(0, 1)] * D, bins=np.arange(10.0))


# (a) transport ------------------------------------------------------------------------------------


def transport_rows(quick: bool) -> Iterator[Row]:
    """Potentials of all neighbouring clouds, at one marginal error, against the best peer."""
    easy: Any = {"reg": 0.01, "repeats": 1} if quick else {}  # few iterations for every peer
    for times, m in ((4, 20),) if quick else transport.SIZES:
        ours = transport.entropic(times, m, **easy)
        what = f"entropic plans, T = {times}, m = {m} (best peer: {ours['best peer']})"
        best = ours["peers"][ours["best peer"]]["s"]
        yield Row(what, 1e3 * ours["s"], "ms", 1e3 * best, 5)


# (b) steps ------------------------------------------------------------------------------------


def composed_step(
    x: np.ndarray, people: np.ndarray, sigma: float, rng: np.random.Generator
) -> None:
    """One step as one would write it with POT: x (T, m, d), people (T, N, d).

    Responsibilities and clipped per-person vectors in NumPy; `ot.sinkhorn` with 100 iterations at
    most for the plans between neighbours and of each time with itself.
    """
    m = x.shape[1]
    weights = np.full(m, 1 / m)
    for i in range(T):
        distance = ot.dist(people[i], x[i])
        exponent = -distance / (2 * sigma**2)
        w = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        w /= w.sum(axis=1, keepdims=True)
        u = (w[:, :, None] * (x[i][None] - people[i][:, None])).reshape(len(people[i]), -1)
        u *= np.minimum(1, sigma / np.linalg.norm(u, axis=1, keepdims=True))
        u.sum(axis=0) + rng.standard_normal(u.shape[1])
    for i in range(T - 1):
        for a, b in ((i, i + 1), (i, i), (i + 1, i + 1)):
            cost = ot.dist(x[a], x[b]) / 2
            plan = ot.sinkhorn(weights, weights, cost, sigma**2, numItermax=100, warn=False)
            plan @ x[b]


def steps(quick: bool) -> Iterator[Row]:
    m, count = (8, 4) if quick else (100, 60)
    data = snapshots()

    def gradients() -> pt.TrajectoryModel:
        fit = pt.TrajectorySynthesizer(*BUDGET, measure="gradients", particles=m, steps=count)
        return fit.fit(data)

    model = gradients()
    rng = np.random.default_rng(0)
    people = clouds()[1].reshape(T, N, D)
    x, sigma = model.marginals, float(model.bandwidth.mean())
    size = f"N = {N}, T = {T}, m = {m}"
    for clock, of_what in ((time.perf_counter, ""), (time.process_time, ", of CPU")):
        warm = seconds(gradients, 1 if quick else 5, clock)
        composed = seconds(lambda: composed_step(x, people, sigma, rng), 1 if quick else 3, clock)
        yield Row(f"private step, {size}{of_what}", 1e3 * warm / count, "ms", 1e3 * composed, 15)
        yield Row(f"private fit of {count} such steps{of_what}", warm, "s", count * composed, 15)
    default = pt.TrajectorySynthesizer(*BUDGET)
    default.fit(data)
    again = seconds(lambda: default.fit(data), 1 if quick else 3)
    yield Row("default fit of the same people, warm", again, "s", None, 1)


# (c) cold starts ------------------------------------------------------------------------------


def run(words: list[str], **environment: str) -> tuple[float, float, float]:
    """Seconds, peak MB and seconds of CPU of a new process."""
    before = time.perf_counter()
    process = subprocess.Popen(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{words[:4]} failed")
    work = usage.ru_utime + usage.ru_stime
    return time.perf_counter() - before, usage.ru_maxrss / 1024, work


def table(path: Path, features: int, rows: int = 6000) -> None:
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 10, rows)
    drift = 0.3 + 0.03 * t[:, None] + 0.1 * rng.standard_normal((rows, features))
    header = ",".join(["id", "t", *(f"x{k}" for k in range(features))])
    numbers = np.column_stack([np.arange(rows), t, np.clip(drift, 0, 1)])
    np.savetxt(path, numbers, delimiter=",", header=header, comments="", fmt="%.6f")


def fit_words(data: Path, features: int, out: Path) -> list[str]:
    box = [word for k in range(features) for word in ("--feature", f"x{k}", "0", "1")]
    public = ["--time", "t", "--person", "id", "--time-range", "0", "10", "--bins", "10"]
    budget = ["--epsilon", "1", "--delta", "1e-5", "--out", str(out), "--force", "--quiet"]
    return [sys.executable, "-m", "privtraj", "fit", str(data), *box, *public, *budget]


def cold_starts(quick: bool) -> Iterator[Row]:
    yield Row("import privtraj", run([sys.executable, "-c", "import privtraj"])[0], "s")
    bare = run([sys.executable, "-c", "pass"])[0]
    yield Row("python itself", bare, "s")
    yield Row(
        "privtraj --help", run([sys.executable, "-m", "privtraj", "--help"])[0], "s", None, 0.5
    )
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for features in (2,) if quick else (2, 5):
            data = place / f"{features}.csv"
            table(data, features)
            words = fit_words(data, features, place / "m.privtraj")
            measure = "counts" if features == 2 else "gradients"
            what = f"privtraj fit, 6,000 rows, {features} features ({measure})"
            cold, memory, work = run(words, XDG_CACHE_HOME=folder)
            again, *_ = run(words, XDG_CACHE_HOME=folder)
            yield Row(f"{what}, new process to files", cold, "s", None, 8)
            yield Row("  of CPU", work, "s", None, 1.5 if features == 2 else None)
            yield Row(f"{what}, second time", again, "s")
            yield Row("  of which compiling, at most", max(cold - again, 0.0), "s", None, 2)
            yield Row("  peak memory", memory, "MB")


# (d), (e), (f) --------------------------------------------------------------------------------


def sampling(quick: bool) -> Iterator[Row]:
    paths, times = (1000, 20) if quick else (100_000, 200)
    drawn = transport.sampling(paths, times)
    yield Row(f"{paths} paths at {times} times", drawn["s"], "s", None, 3)
    yield Row("  drawing as many normal numbers", drawn["normal numbers s"], "s")
    yield Row("  the plans, once for a model", drawn["coupling s"], "s")


def accounting(quick: bool) -> Iterator[Row]:
    budget = (1.0, 1e-5, "add-remove", ())
    yield Row(
        "calibrate Gaussian sums", seconds(lambda: calibrate_gaussian(*budget), 1), "s", None, 3
    )
    yield Row(
        "calibrate Laplace counts", seconds(lambda: calibrate_laplace(*budget), 1), "s", None, 3
    )
    sampled = {"steps": 5 if quick else 30, "rate": 0.2, "others": ()}
    work = seconds(lambda: calibrate_noise(*budget[:3], **sampled), 1)
    yield Row(f"calibrate {sampled['steps']} sampled sums (loss distributions)", work, "s", None, 3)


def memory() -> Iterator[Row]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield Row("peak memory of this benchmark", peak, "MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--json", help="file for the numbers")
    args = parser.parse_args()
    print(f"{'':58}{'ours':>12}{'peer':>12}{'ratio':>8}{'target':>8}  reached")
    rows = []
    for part in (cold_starts, transport_rows, steps, sampling, accounting):
        for row in part(args.quick):
            rows.append(row)
            print(row, flush=True)
    for row in memory():
        rows.append(row)
        print(row)
    if args.json:
        numbers = [{**row._asdict(), "ratio": row.ratio, "reached": row.reached} for row in rows]
        Path(args.json).write_text(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
