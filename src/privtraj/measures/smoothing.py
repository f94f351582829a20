"""People spread smoothly inside cells and across their borders, and particles that stand for them.

Cells tell how many people are in them, not where. People who are even inside a cell jump at its
border, and are too far apart: those of a group are at the sides of its outer cells that face its
middle. So the density of people is a mixture of normals whose width follows the cells,
    f = K_s g,      s = SMOOTHNESS h,      h = side of a cell,
g >= 0 on parts of the cells, which shows no borders, and g is what explains the masses w of the
cells, by rounds of expectation and maximisation (Richardson's and Lucy's)
    g <- g K_s B' ( w / B K_s g ),      B the sum over the parts of a cell,
from people who are even in their cells, blurred by K_s. A few ROUNDS, as more of them follow the
noise of the masses.

A model's people are particles and normal noise of its bandwidth b. Clouds of m particles overlap
when b is about the distance between them,
    b = OVERLAP (volume / m)^(1/d),      volume = h^d / sum_j w_j^2,
and s is b at least. Normals of widths b and sqrt(s^2 - b^2) make one of width s, so particles have
the density K_sqrt(s^2 - b^2) g, and people f.

With a domain, which may have walls, people stay in cells that hold some, and in the domain. All of
it is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from privtraj.base.arrays import Floats, Mask, systematic
from privtraj.domain.domain import Plot
from privtraj.measures.cells import as_reading, blocks, spread_out, stacked
from privtraj.measures.pooling import GridMeasure

MOST_CELLS_PER_TIME = 2**18  # bounds work and memory; set by hand, 2026-11
SMOOTHNESS = 0.3  # s in sides of a cell, as wide as an even cell (1 / sqrt(12)). 0.4 loses 8 % in
# squared W2 over seven cases, three seeds; 0.2 shows the cells; 2026-11-16
ROUNDS = 10  # of explaining masses. On the same cases squared W2 is 17 % lower at 8 than where
# masses agree up to noise; 30 gain no more and leave twice the gaps where people are few
OVERLAP = 0.75  # b in distances of particles: 0.5 to 1 are alike in squared W2 up to 3 %, and the
# error of the density falls from .21 to .11
PARTS = 4  # of a cell, a side, in which the density is computed; fewer where there is no room
FARTHEST = 3.0  # widths to which normals reach on the grid
LEAST_PART = 1e-7  # of the people: a part of a cell with less has nobody

Inside = Callable[[int], Mask]
"""Which cells (per_side, ...) of a grid are in the public domain, by cells per side."""
_EVERYWHERE = 1 / math.sqrt(12)  # width of people who are even in the box


def bandwidths(measure: GridMeasure, m: int) -> Floats:
    """b (T,) of m particles that stand for the measure."""
    d = measure.centres.shape[2]
    density = (measure.weights**2).sum(axis=1) / measure.sides**d  # 1 / volume
    return np.minimum(OVERLAP * (density * m) ** (-1 / d), _EVERYWHERE)


def smoothed(measure: GridMeasure, bandwidth: Floats, inside: Inside | None = None) -> GridMeasure:
    """The measure in parts of its cells, for particles that get noise of bandwidth (T,)."""
    made = []
    for t, side in enumerate(measure.sides.tolist()):  # on the part of the grid that may be reached
        some = measure.weights[t] > 0
        own = float(bandwidth[t]) / side
        width = max(SMOOTHNESS, own)  # s, in cells
        per_side, reach = round(1 / side), math.ceil(FARTHEST * width)
        places = (measure.centres[t, some] * per_side).astype(np.int64)
        corner = np.maximum(places.min(axis=0) - reach, 0)
        shape = np.minimum(places.max(axis=0) + reach + 1, per_side) - corner
        shares = np.zeros((1, *shape))
        shares[(0, *(places - corner).T)] = measure.weights[t, some]
        room = math.log2(MOST_CELLS_PER_TIME / shares.size) / len(shape)
        level = int(np.clip(room, 0, math.log2(PARTS)))  # how often cells are halved a side
        parts = 2**level
        free = None  # (1, side, ...) 1 for parts of cells with people and in the domain, else 0
        if inside is not None:
            here = (slice(parts * a, parts * (a + n)) for a, n in zip(corner, shape, strict=True))
            held = spread_out(shares > 0, level)
            free = (held & inside(per_side * parts)[tuple(here)]).astype(np.float64)
        blur = _Blur(width * parts, free)
        room_for = np.ones_like(spread_out(shares, level)) * blur.free
        even = spread_out(shares / np.maximum(blocks(room_for, level), 1.0), level) * room_for
        mixture = blur(even)  # g
        for _ in range(ROUNDS):
            ratio = shares / np.maximum(blocks(blur(mixture), level), 1e-300)
            mixture = mixture * blur.back(spread_out(ratio, level))
        in_part = parts**-2 / 12  # variance inside a part, in squared cells
        rest = math.sqrt(max(width**2 - own**2 - in_part, 0.0))
        density = _Blur(rest * parts, free)(mixture)[0]
        density[density < LEAST_PART * density.sum()] = 0.0
        made.append(as_reading(density, per_side * parts, corner * parts))
    return stacked(made, measure.significant)


class _Blur:
    """K of a width in parts: normal noise, which the walls of the box turn back.

    free: (1, side, ...) 1 where people may be, else 0; None for everywhere.
    """

    def __init__(self, width: float, free: Floats | None) -> None:
        self._width = width
        self.free: Floats | float = 1.0 if free is None else free
        self._kept: Floats | float = 1.0
        if free is not None:
            self._kept = np.maximum(self._normal(free), 1e-9)

    def __call__(self, density: Floats) -> Floats:
        """K g of g (1, side, ...), with the same sum."""
        blurred: Floats = self.free * self._normal(density / self._kept)
        return blurred

    def back(self, values: Floats) -> Floats:
        """K' of values (1, side, ...)."""
        blurred: Floats = self._normal(self.free * values) / self._kept
        return blurred

    def _normal(self, values: Floats) -> Floats:
        from scipy.ndimage import gaussian_filter

        along = (0.0,) + (self._width,) * (values.ndim - 1)
        blurred: Floats = gaussian_filter(values, along, mode="reflect", truncate=FARTHEST)
        return blurred


def placed(
    measure: GridMeasure, m: int, rng: np.random.Generator, plot: Plot | None = None
) -> tuple[Floats, Floats]:
    """Particles (T, m, d) and weights (T, m) that fill the cells evenly, with a domain its inside.

    Every cell with people has one particle and more in proportion, all of a cell of equal weight;
    if there are more cells than particles, a systematic sample of them has equal weights.
    """
    clouds, shares = [], []
    for places, weights, side in zip(measure.centres, measure.weights, measure.sides, strict=True):
        held = np.flatnonzero(weights)
        if len(held) > m:
            cell, share = systematic(weights, m, rng), np.full(m, 1 / m)
        else:
            more = systematic(weights, m - len(held), rng) if m > len(held) else held[:0]
            cell = np.sort(np.concatenate([held, more]))
            share = weights[cell] / np.bincount(cell)[cell]
        within = rng.uniform(-0.5, 0.5, size=(m, places.shape[1]))
        cloud = np.clip(places[cell] + side * within, 0, 1)
        clouds.append(cloud if plot is None else plot.settled(cloud, places[cell], side, rng))
        shares.append(share)
    return np.stack(clouds), np.stack(shares)
