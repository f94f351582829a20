"""Simulated people of the benchmarks, and how far released people are from them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

POINTS, ROUNDS = 600, 2  # that represent a population, and how often they are moved to its middle


def clouds(
    data: str, people: int, times: int, seed: int, *, features: int = 2, followed: bool = False
) -> np.ndarray:
    """(T, n, d) in the unit cube, fresh people at every time unless they are followed.

    features: of three modes and the processes; others have their own.
    """
    import privtraj as pt
    from journeys import process_paths

    rng, u = np.random.default_rng(seed), np.linspace(0, 1, times)
    if data == "growth":
        return _growth(u, people, seed)
    if data in _MADE:
        return np.clip(_MADE[data](u[:, None], people, rng), 0, 1)
    space = {"dimensions": max(features, 2)}
    if data == "three modes":
        _, points = pt.datasets.three_modes(people, times, seed, **space)
        placed = points.reshape(times, people, -1)
    elif followed:
        placed = np.swapaxes(process_paths(data, people, times, seed, **space), 0, 1)
    else:
        paths = process_paths(data, people * times, times, seed, **space)
        group = np.arange(people * times).reshape(times, people)
        placed = paths[group, np.arange(times)[:, None]]
    return np.clip((placed[..., :features] + 1.5) / 3, 0, 1)


def squared_w2(people: np.ndarray, points: np.ndarray, weights: np.ndarray) -> float:
    """Squared W2 between people (n, d) of equal weight and weighted points (k, d)."""
    from privtraj.metrics.distances import weighted_cost

    even = np.full(len(people), 1 / len(people))
    return weighted_cost(people, even, points, weights, "sqeuclidean")


def represented(people: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """POINTS points (k, d) and weights (k,) that stand for people (n, d), by Lloyd's algorithm."""
    from scipy.spatial import cKDTree

    centres = people[:POINTS].copy()
    for _ in range(ROUNDS):
        nearest = cKDTree(centres).query(people)[1]
        held = np.bincount(nearest, minlength=len(centres))
        sums = [np.bincount(nearest, axis, minlength=len(centres)) for axis in people.T]
        centres[held > 0] = (np.stack(sums, axis=1) / np.maximum(held, 1)[:, None])[held > 0]
    held = np.bincount(cKDTree(centres).query(people)[1], minlength=len(centres))
    return centres[held > 0], held[held > 0] / len(people)


def _ring(u: np.ndarray, people: int, rng: np.random.Generator) -> np.ndarray:
    """A ring that does not move."""
    angle = rng.uniform(0, 2 * np.pi, (len(u), people))
    radius = 0.3 + 0.03 * rng.standard_normal(angle.shape)
    return 0.5 + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


def _groups(u: np.ndarray, people: int, rng: np.random.Generator) -> np.ndarray:
    """Three groups in three features that drift apart."""
    group = rng.integers(3, size=(len(u), people))
    noise = rng.standard_normal((3, len(u), people))
    x = np.array([0.3, 0.5, 0.65])[group] + 0.15 * u * (group - 1) + 0.06 * noise[0]
    y = np.array([0.6, 0.4, 0.5])[group] + 0.1 * np.sin(2 * u) + 0.08 * noise[1]
    return np.stack([x, y, 0.3 + 0.3 * u + 0.1 * noise[2]], axis=-1)


def _loops(u: np.ndarray, people: int, rng: np.random.Generator) -> np.ndarray:
    """Fast loops, as a pen draws them: neighbouring times are far apart."""
    noise = rng.standard_normal((2, len(u), people))
    angle = 2.4 * np.pi * u
    x = 0.5 + 0.3 * np.cos(angle) + 0.05 * noise[0]
    return np.stack([x, 0.5 + 0.35 * np.sin(1.5 * angle) + 0.06 * noise[1]], axis=-1)


def _clinic(u: np.ndarray, people: int, rng: np.random.Generator) -> np.ndarray:
    """Like blood pressure, BMI, HbA1c (two modes and a gap), cholesterol and age; slow drift."""
    first = rng.random((len(u), people)) < 0.6
    means = [[0.38, 0.40, 0.25, 0.42, 0.40], [0.55, 0.52, 0.62, 0.55, 0.60]]
    drift = [[0.05, 0.03, 0.01, 0.02, 0.08], [0.08, 0.05, 0.06, -0.03, 0.08]]
    spread = [[0.09, 0.10, 0.05, 0.10, 0.13], [0.11, 0.11, 0.06, 0.11, 0.11]]
    together = _correlations({(0, 1): 0.5, (0, 2): 0.2, (0, 3): 0.3, (0, 4): 0.5, (1, 2): 0.4})
    together += _correlations({(1, 3): 0.35, (1, 4): 0.1, (2, 3): 0.2, (2, 4): 0.2, (3, 4): 0.25})
    return _two_groups(u, first, means, drift, spread, together - np.eye(5), rng)


def _skewed(u: np.ndarray, people: int, rng: np.random.Generator) -> np.ndarray:
    """70 / 30, two strong pairs, a skewed column, one nearly uniform; groups approach."""
    first = rng.random((len(u), people)) < 0.7
    means = [[0.30, 0.55, 0.35, 0.50, 0.0], [0.60, 0.35, 0.45, 0.70, 0.0]]
    drift = [[0.10, -0.05, 0.0, 0.03, 0.0], [-0.06, 0.05, 0.1, 0.0, 0.0]]
    spread = [[0.08, 0.09, 0.10, 0.09, 0.1], [0.06, 0.10, 0.08, 0.07, 0.1]]
    together = _correlations({(0, 1): -0.7, (2, 3): 0.8, (0, 3): -0.2})
    x = _two_groups(u, first, means, drift, spread, together, rng)
    x[..., 2] = 0.2 * np.exp(2.2 * (x[..., 2] - 0.3))
    x[..., 4] = 0.15 + 0.7 * rng.random(first.shape) + 0.1 * (x[..., 0] - 0.4)
    return x


def _parting(u: np.ndarray, people: int, rng: np.random.Generator) -> np.ndarray:
    """Two groups that part, a curved dependence, a column near a wall."""
    first = rng.random((len(u), people)) < 0.5
    noise = rng.standard_normal((5, len(u), people))
    a = 0.5 + np.where(first, 1, -1) * (0.08 + 0.14 * u) + 0.06 * noise[0]
    b = 0.45 + 0.5 * (a - 0.5) + 0.10 * noise[1]
    c = 0.2 + 1.6 * (b - 0.45) ** 2 + 0.07 * noise[2] + 0.1 * u
    d = 0.10 + 0.06 * np.abs(noise[3]) + 0.1 * first
    e = 0.5 - 0.6 * (b - 0.45) + 0.4 * (d - 0.15) + 0.09 * noise[4]
    return np.stack([a, b, c, d, e], axis=-1)


def _correlations(pairs: dict[tuple[int, int], float]) -> np.ndarray:
    """(5, 5) with these correlations and no others."""
    matrix = np.eye(5)
    for (i, j), value in pairs.items():
        matrix[i, j] = matrix[j, i] = value
    return matrix


def _two_groups(
    u: np.ndarray,
    first: np.ndarray,
    means: list[list[float]],
    drift: list[list[float]],
    spread: list[list[float]],
    together: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """(T, n, 5) normal people of the first or the second group (T, n), each moving evenly."""
    group = np.where(first, 0, 1)
    noise = rng.standard_normal((*group.shape, 5)) @ np.linalg.cholesky(together).T
    middle = np.array(means)[group] + np.array(drift)[group] * u[..., None]
    return middle + np.array(spread)[group] * noise


def _growth(u: np.ndarray, people: int, seed: int) -> np.ndarray:
    """Heights and weights of children of exactly these ages, as shares of their bounds."""
    import privtraj as pt

    low, high = pt.datasets.GROWTH_TIME_RANGE
    ages = np.repeat(low + u * (high - low), people)
    bounds = np.array(list(pt.datasets.GROWTH_BOUNDS.values()))
    values = (pt.datasets.growth_at(ages, seed) - bounds[:, 0]) / np.ptp(bounds, axis=1)
    return np.clip(values.reshape(len(u), people, 2), 0, 1)


_MADE: dict[str, Callable[..., np.ndarray]] = {
    "clinic": _clinic,
    "skewed": _skewed,
    "parting": _parting,
    "still ring": _ring,
    "three features": _groups,
    "loops": _loops,
}
