"""The paper's theorems as measurements on simulated people: a function for each, giving rows.

All are in one dimension. Theorem 3.2 and its corollary are measured on a moving process whose law
is known (`known_process`). The others ask nothing of the data, so there they are a steady law,
N(1/2, WIDTH^2) at every time, seen with noise, by people at its quantiles: no chance in the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from privtraj.base.arrays import Floats
from privtraj.metrics.distances import average_squared_w2
from privtraj.motion.couplings import Couplings
from reproduce.known_process import Process, coupled, path_error
from reproduce.mean_field import Problem, descend, potential_gradient
from reproduce.tables import Row

SIGMA = 0.05  # of the observation noise, and of the fit's kernel
WIDTH = 0.09  # standard deviation of the steady law
BLOCKS = 60  # of steps, over each of which the objective is averaged
KEPT = 40  # iterates over which an estimate is averaged
PATHS = 20_000  # from which the cost of a law of paths is read
PEOPLE = 100  # at the quantiles of the steady law
CLOUD = (0.01, 0.99)  # where particles may start


# Theorem C.3: the objective falls exponentially -------------------------------------------------


def convergence(
    times: int, lam: float, tau: float, shift: float, eta: float, steps: int, m: int, seed: int
) -> list[Row]:
    """F along a descent that starts `shift` beside the people, averaged over a few steps a row.

    widest: the largest variance of a marginal at the end.  shift_rate: that of a small shift of all
    times together, which neither transport nor entropy notice; F is then quadratic in the shift and
    falls at 2 dt / (lambda (sigma^2 + variance)), were the marginals normal.
    """
    problem, rng = steady(times, lam, tau), np.random.default_rng(seed)
    start = np.clip(rng.normal(0.5 - shift, WIDTH, (times, m, 1)), *CLOUD)
    seen, _, plan_error = descend(problem, start, eta=eta, steps=steps, rng=rng)
    variance = np.mean([x.var(axis=1)[:, 0] for x in seen[2 * steps // 3 :]], axis=0)
    settings = {"T": times, "lam": lam, "tau": tau, "shift": shift, "eta": eta, "m": m}
    end = {
        "widest": float(variance.max()),
        "shift_rate": float(2 * np.mean(problem.gaps[0] / lam / (SIGMA**2 + variance))),
        "plan_error": plan_error,
    }
    rows = []
    for block in np.array_split(np.arange(steps), min(steps, BLOCKS)):
        F = np.mean([problem.objective(seen[step]).total for step in block])
        at = {"t": float(eta * block.mean()), "F": float(F)}
        rows.append({"check": "convergence", **settings, "seed": seed, **at, **end})
    return rows


def curvature(
    times: int, lam: float, tau: float, eta: float, steps: int, m: int, seed: int
) -> list[Row]:
    """The least second derivative of V at the settled particles, over all times and places.

    By Bakry and Emery the minimiser, exp(-V / tau), has tau C_LSI >= that if it is positive. V' is
    averaged over iterates and, as the data are symmetric, over mirror images in space and in time.
    """
    problem, rng = steady(times, lam, tau), np.random.default_rng(seed)
    start = np.clip(rng.normal(0.5, WIDTH, (times, m, 1)), *CLOUD)
    seen = descend(problem, start, eta=eta, steps=steps, rng=rng).seen
    places = np.linspace(0, 1, 51)
    late = seen[steps // 4 :: max(1, steps // 120)]
    each = [potential_gradient(problem, x, places[:, None])[..., 0] for x in late]
    slope = np.mean(each, axis=0)
    slope = (slope - slope[:, ::-1]) / 2
    slope = (slope + slope[::-1]) / 2
    least = float(np.gradient(slope, places, axis=1).min())
    return [{"check": "curvature", "T": times, "lam": lam, "tau": tau, "m": m, "least": least}]


def steady(times: int, lam: float, tau: float) -> Problem:
    """The steady law, seen by people at its quantiles."""
    quantiles = ndtri((np.arange(PEOPLE) + 0.5) / PEOPLE)
    cloud = 0.5 + np.hypot(WIDTH, SIGMA) * quantiles
    people = np.tile(cloud[None, :, None], (times, 1, 1))
    return Problem(people, np.diff(np.linspace(0, 1, times)), lam, SIGMA, tau)


# Theorem 3.2 and Corollary 4.3: how far the estimate is from the truth --------------------------


def statistics(
    times: int,
    people: int,
    m: int,
    steps: int,
    seed: int,
    kept: int | None = None,
    noise: bool = True,
    factor: float = 1.0,
) -> list[Row]:
    """Integrated squared Hellinger distance to the known process.

    factor: of the penalty lambda.
    kept: so many of the times, drawn at random between the first and the last, are used.
    noise: False shows people as they are, though the data fit is for people seen with noise.
    """
    process, rng = Process(), np.random.default_rng(seed)
    clock = np.linspace(0, 1, times)
    seen = process.people(clock, people, SIGMA if noise else 0.0, rng)
    if kept is not None:
        drawn = rng.choice(np.arange(1, times - 1), size=kept - 2, replace=False)
        used = np.sort(np.concatenate([[0], drawn, [times - 1]]))
        clock, seen = clock[used], seen[used]
    lam = factor * penalty(len(clock), people)
    problem = Problem(seen, np.diff(clock), lam, SIGMA, process.tau)
    iterates, plan_error = settle(problem, m, steps, rng)
    error, floor = path_error(process, clock, iterates, SIGMA)
    settings: Row = {"T": times, "N": people, "m": m, "seed": seed, "used": len(clock)}
    settings |= {"noise": noise, "factor": factor, "lam": lam}
    errors = {"error": error, "floor": floor, "plan_error": plan_error}
    return [{"check": "statistics" if kept is None else "some times", **settings, **errors}]


def interpolation(times: int, m: int) -> list[Row]:
    """The error of marginals that are exact at the times: what bridges between them leave."""
    process, clock = Process(), np.linspace(0, 1, times)
    quantiles = ndtri((np.arange(m) + 0.5) / m)
    clouds = process.mean(clock)[:, None] + np.sqrt(process.variance(clock))[:, None] * quantiles
    error, _ = path_error(process, clock, [clouds[..., None]] * 2, SIGMA)
    return [{"check": "interpolation", "T": times, "m": m, "error": error}]


def penalty(times: int, people: int) -> float:
    """lambda = N^(-2/3) T^(-1/3) / energy: what the truth pays is the bound's statistical term."""
    return float(people ** (-2 / 3) * times ** (-1 / 3) / Process().energy())


def settle(
    problem: Problem, m: int, steps: int, rng: np.random.Generator
) -> tuple[list[Floats], float]:
    """Iterates of the second half of a descent from points of any time; error of its couplings."""
    shape = (len(problem.people), m, 1)
    start = np.clip(rng.choice(problem.people.ravel(), size=shape), *CLOUD)
    done = descend(problem, start, eta=step_size(problem), steps=steps, rng=rng)
    late = done.seen[steps // 2 :]
    return late[:: max(1, len(late) // KEPT)], done.plan_error


def step_size(problem: Problem) -> float:
    """A step of EM, or a fifth of the smallest gap where the pull of neighbours is stiffer."""
    gaps = problem.gaps
    return float(min(0.2 * gaps.min(), problem.lam * problem.sigma**2 / gaps.max()))


# Theorem C.1: paths have the marginals, and the value of the objective --------------------------


def representer(
    times: int, people: int, m: int, steps: int, counts: Sequence[int], seed: int
) -> list[Row]:
    """Marginals of sampled chains, and what laws of paths cost with several couplings."""
    process, rng = Process(), np.random.default_rng(seed)
    seen = process.people(np.linspace(0, 1, times), people, SIGMA, rng)
    gaps = np.full(times - 1, 1 / (times - 1))
    problem = Problem(seen, gaps, penalty(times, people), SIGMA, process.tau)
    particles = np.sort(settle(problem, m, steps, rng)[0][-1], axis=1)
    settings = {"T": times, "N": people, "m": m, "seed": seed}
    entropic = coupled(particles, gaps, problem.tau, "entropic")
    exact = coupled(particles, gaps, problem.tau, "exact")
    independent = Couplings(exact.weights, np.full_like(exact.matrices, 1 / m), 0.0)
    couplings = {"entropic": entropic, "exact": exact, "independent": independent}
    rows = [_marginals(particles, entropic, count, rng) for count in counts]
    value = problem.objective(particles).transport
    rows += [
        {"coupling": name, **_path_cost(problem, particles, plan, rng), "transport": value}
        for name, plan in couplings.items()
    ]
    return [{"check": "paths", **settings, **row} for row in rows]


def _marginals(
    particles: Floats, couplings: Couplings, count: int, rng: np.random.Generator
) -> Row:
    """Squared W2, mean over times, of `count` paths to the particles; that of independent draws."""
    times, m, _ = particles.shape
    row = np.arange(times)[:, None]
    paths = particles[row, couplings.walk(count, rng).T]
    draws = particles[row, rng.integers(m, size=(times, count))]
    errors = (average_squared_w2(clouds, particles) for clouds in (paths, draws))
    return {"paths": count, **dict(zip(("squared_w2", "draws_squared_w2"), errors, strict=True))}


def _path_cost(
    problem: Problem, particles: Floats, couplings: Couplings, rng: np.random.Generator
) -> Row:
    """tau H(R | W) of the chains, without the entropy of each marginal and constants, by sampling.

    A path x_1..x_T has sum_i |x_i - x_{i+1}|^2 / (2 dt_i) + tau log( m P_i(x_{i+1} | x_i) ), whose
    mean is sum_i T_i / dt_i if the theorem is right.
    """
    chains = couplings.walk(PATHS, rng)
    m = particles.shape[1]
    costs = np.zeros(len(chains))
    for i, gap in enumerate(problem.gaps):
        here, there = chains[:, i], chains[:, i + 1]
        move = particles[i + 1, there, 0] - particles[i, here, 0]
        odds = m * couplings.matrices[i, here, there].astype(np.float64)
        costs += move**2 / (2 * gap) + problem.tau * np.log(odds)
    return {"cost": float(costs.mean()), "cost_error": float(costs.std() / np.sqrt(len(costs)))}


# Appendix C.4: finitely many particles, steps of finite size ------------------------------------


class _Coarser(np.random.Generator):
    """Standard normals as sums of `ratio` finer ones: steps that much longer on the same path."""

    def __init__(self, seed: int, ratio: int) -> None:
        super().__init__(np.random.PCG64(seed))
        self._ratio = ratio

    def standard_normal(self, *args: Any, **named: Any) -> Any:
        draws = [super(_Coarser, self).standard_normal(*args, **named) for _ in range(self._ratio)]
        return sum(draws) / np.float32(np.sqrt(self._ratio))


def discretisation(
    what: str, m: int, eta: float, ratio: int, length: float, seed: int
) -> list[Row]:
    """Mean of G, the objective without entropy, once the dynamics have settled.

    Steps have size ratio * eta and the Brownian path is that of steps of size eta with the same
    seed, so that the difference of two step sizes is not lost in noise.
    """
    problem = steady(3, 1.0, 0.04)
    size = ratio * eta
    start = np.clip(np.random.default_rng([seed, 1]).normal(0.5, WIDTH, (3, m, 1)), *CLOUD)
    steps = round(length / size)
    seen = descend(problem, start, eta=size, steps=steps, rng=_Coarser(seed, ratio)).seen
    parts = [problem.objective(x) for x in seen[steps // 5 :: max(1, round(0.02 / size))]]
    value = float(np.mean([part.fit + part.transport for part in parts]))
    return [{"check": what, "T": 3, "m": m, "eta": size, "seed": seed, "G": value}]
