"""Detail that a model by counts shows and nobody measured: gaps between cells, groups of noise.

From the released model alone: its people, the side of its cells and the noise of its counts.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats

BORDER = 0.125
"""Of a cell, from either side: a quarter of it, where gaps between cells are."""
FALSE_ALARMS = 0.05
"""Cells, of all that were counted, in which noise alone is expected to reach `fewest_told`."""
PARTICLES = 1.5
"""Fewer cannot be a group: whether a thin place gets one particle or none is chance."""


def gap(people: Floats, sides: Floats) -> float:
    """Share of people that the borders of cells lack, for the feature with most of that.

    people: (n, Q, k), k > 0, at times at which cells have these sides (Q,). If density is smooth,
    people are anywhere in their cells, and a quarter of them within an eighth of a border:

        1 - P(phase is near 0 or 1) / (2 BORDER),    phase = x / side mod 1.
    """
    phase = people / sides[None, :, None] % 1
    near = (phase < BORDER) | (phase > 1 - BORDER)
    return float(max(1 - near.mean(axis=(0, 1)).min() / (2 * BORDER), 0.0))


def fewest_told(epsilon: float, cells: int) -> float:
    """People that noise would hardly make up in any of so many cells: n with

    cells e^(-epsilon n) / 2 = FALSE_ALARMS,    as discrete Laplace noise is n or more.
    """
    return math.log(cells / (2 * FALSE_ALARMS)) / epsilon


class Groups(NamedTuple):
    """Groups too small to be told. share: of people in them, mean over times.
    worst: the same at the time with most.  fewest: people that a group must have."""

    share: float
    worst: float
    fewest: float


def small_groups(
    particles: Floats, weights: Floats, sides: Floats, people: Floats, fewest: float
) -> Groups:
    """Of particles (K, m, d) with weights (K, m), for people (K,), in cells of these sides (K,).

    A group is all that is connected through neighbouring cells, corners included.
    """
    least = np.maximum(fewest, PARTICLES * people / particles.shape[1])
    shares = [
        _in_small(cloud, mass / mass.sum(), side, few / total)
        for cloud, mass, side, few, total in zip(
            particles, weights, sides, least, np.maximum(people, 1.0), strict=True
        )
    ]
    return Groups(float(np.mean(shares)), float(max(shares)), float(np.median(least)))


def _in_small(cloud: Floats, mass: Floats, side: float, least: float) -> float:
    """Mass in groups that have less than `least`, beside the largest."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    cells, of_cell = np.unique(np.floor(cloud / side), axis=0, return_inverse=True)
    pairs = cKDTree(cells).query_pairs(1.0, p=np.inf, output_type="ndarray")
    ones = np.ones(len(pairs))
    linked = coo_matrix((ones, (pairs[:, 0], pairs[:, 1])), shape=(len(cells), len(cells)))
    _, group_of_cell = connected_components(linked, directed=False)
    groups = np.bincount(group_of_cell[of_cell.ravel()], mass)
    small = groups[(groups < least) & (groups < groups.max())]
    return float(small.sum())
