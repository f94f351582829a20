"""Random populations of nine kinds, for experiments: each a function of (moments, generator)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))  # for its data

Draw = Callable[[np.ndarray, np.random.Generator], np.ndarray]
"""(moments (n,), generator) -> points (n, d) of the unit cube."""


# Populations that the constants were measured on ------------------------------------------------


def mixture(seed: int, d: int) -> Draw:
    """One to five groups of any covariance that move, swing, and change their shares."""
    r = np.random.default_rng(seed)
    k = int(r.integers(1, 6))
    start, end = r.uniform(0.15, 0.85, (2, k, d))
    way = r.choice([0.0, 0.3, 1.0]) * (end - start)
    swing, phase = r.uniform(0, 0.1, (k, d)), r.uniform(0, 6, (k, d))
    first, last = r.dirichlet(np.full(k, 2.0), 2)
    shapes = np.array(
        [
            r.standard_normal((d, d)) * r.uniform(0.02, 0.08) / np.sqrt(d)
            + np.eye(d) * r.uniform(0.01, 0.06)
            for _ in range(k)
        ]
    )

    def draw(t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        shares = np.cumsum((1 - t)[:, None] * first + t[:, None] * last, axis=1)
        group = np.minimum((rng.uniform(size=len(t))[:, None] > shares).sum(axis=1), k - 1)
        turn = np.sin(2 * np.pi * t[:, None] + phase[group])
        centres = start[group] + way[group] * t[:, None] + swing[group] * turn
        own = rng.standard_normal((len(t), d))
        return np.clip(centres + np.einsum("nij,nj->ni", shapes[group], own), 0, 1)

    return draw


def factors(seed: int, d: int) -> Draw:
    """Skewed columns that hang together through two hidden factors, and drift."""
    r = np.random.default_rng(seed)
    loads = r.standard_normal((min(d, 2), d))
    loads /= np.linalg.norm(loads, axis=0)
    own, skew = r.uniform(0.1, 0.6, d), r.choice([-1.0, 1.0], d) * r.uniform(0.05, 0.8, d)
    drift, scale, middle = r.uniform(-0.8, 0.8, d), r.uniform(0.05, 0.16, d), r.uniform(0.3, 0.7, d)

    def draw(t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        hidden = rng.standard_normal((len(t), len(loads))) @ loads
        z = (hidden + own * rng.standard_normal((len(t), d))) / np.sqrt(1 + own**2)
        skewed = np.expm1(skew * z) / skew
        return np.clip(middle + scale * (skewed + drift * (2 * t[:, None] - 1)), 0, 1)

    return draw


def ring(seed: int, d: int) -> Draw:
    """On an arc of a circle that widens and turns."""
    r = np.random.default_rng(seed)
    first, last, turn = r.uniform(0.1, 0.35), r.uniform(0.1, 0.4), r.uniform(0, 6)
    width, arc = r.uniform(0.005, 0.04), r.uniform(2, 2 * np.pi)

    def draw(t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        angle = rng.uniform(0, arc, len(t)) + turn * t
        radius = np.column_stack([first + (last - first) * t] * 2 + [np.full(len(t), 0.3)] * d)
        phases = np.array([0.0, -np.pi / 2, *range(2, d + 2)])[:d]
        at = 0.5 + radius[:, :d] * np.cos(angle[:, None] + phases)
        return np.clip(at + width * rng.standard_normal(at.shape), 0, 1)

    return draw


# Populations after which intervals were widened ---------------------------------------------------


def heaped(seed: int, d: int) -> Draw:
    """Numbers that people round: to one of 8 to 40 values."""
    steps, exact = np.random.default_rng(seed).integers(8, 40, d), factors(seed + 1, d)
    return lambda t, rng: np.round(exact(t, rng) * steps) / steps


def streets(seed: int, d: int) -> Draw:
    """On a few straight streets of a town, drawn to its centre."""
    r = np.random.default_rng(seed)
    lines = r.uniform(0.1, 0.9, int(r.integers(3, 8)))

    def draw(t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        n = len(t)
        street, along = lines[rng.integers(0, len(lines), n)], rng.beta(2, 2, n)
        along = along + (0.5 + 0.3 * np.sin(2 * t) - along) * 0.3 * t
        across = (rng.uniform(size=n) < 0.5)[:, None]
        at = np.where(across, np.column_stack([along, street]), np.column_stack([street, along]))
        more = 0.3 + 0.3 * t[:, None] + 0.1 * rng.standard_normal((n, max(d - 2, 0)))
        return np.clip(np.hstack([at + 0.004 * rng.standard_normal((n, 2)), more])[:, :d], 0, 1)

    return draw


def branches(seed: int, d: int) -> Draw:
    """A crowd that parts into three."""
    r = np.random.default_rng(seed)
    ways = r.standard_normal((3, d))
    ways *= 0.36 / np.linalg.norm(ways, axis=1, keepdims=True)
    shares, when, spread = r.dirichlet([2, 2, 1]), r.uniform(0.1, 0.5), r.uniform(0.02, 0.07)

    def draw(t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        way = ways[rng.choice(3, len(t), p=shares)]
        late = np.clip((t - when) / (1 - when), 0, 1)[:, None]
        noise = (spread * (1 + t))[:, None] * rng.standard_normal((len(t), d))
        return np.clip(0.5 + late * way + 0.1 * (t[:, None] - 0.5) + noise, 0, 1)

    return draw


# Populations that had no part in any constant -----------------------------------------------------


def process(name: str) -> Callable[[int, int], Draw]:
    """A stochastic process of `benchmarks/journeys.py`, each person seen once."""

    def of(seed: int, d: int) -> Draw:
        from journeys import BOUNDS, process_paths

        def draw(t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            low, high = BOUNDS
            points = np.empty((len(t), d))
            for start in range(0, len(t), 2048):
                block = slice(start, start + 2048)
                step = np.round(t[block] * 64).astype(int)
                grid = np.unique(np.append(step, [0, 64]))
                paths = process_paths(
                    name, len(step), grid / 64, int(rng.integers(2**31)), dimensions=d
                )
                points[block] = paths[np.arange(len(step)), np.searchsorted(grid, step)]
            return np.clip((points - low) / (high - low), 0, 1)

        return draw

    return of


def boys(seed: int, d: int) -> Draw:
    """Heights and weights of boys, whose ages fill the range."""
    from privtraj import datasets

    low, high = np.array(list(datasets.GROWTH_BOUNDS.values()), float).T

    def draw(t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        found = datasets.growth_at(t * datasets.GROWTH_TIME_RANGE[1], int(rng.integers(2**31)))
        return np.clip((found - low) / (high - low), 0, 1)

    return draw


FAMILIES: dict[str, dict[str, Callable[[int, int], Draw]]] = {
    "known": {"mixture": mixture, "factors": factors, "ring": ring},
    "second": {"heaped": heaped, "streets": streets, "branches": branches},
    "unseen": {
        "double-well": process("double-well"),
        "bifurcation": process("bifurcation"),
        "ornstein-uhlenbeck": process("ornstein-uhlenbeck"),
        "rotation": process("rotation"),
        "boys": boys,
    },
}
IN_THE_PLANE = {"boys", "bifurcation", "rotation"}
