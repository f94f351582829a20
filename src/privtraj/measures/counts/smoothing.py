"""People spread smoothly inside cells and across their borders. All of it is post-processing.

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

With a domain, which may have walls, people stay in cells that hold some, and in the domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints, Mask
from privtraj.measures.counts.cells import (
    GridMeasure,
    Reading,
    as_reading,
    blocks,
    spread_out,
    stacked,
)
from privtraj.measures.counts.constants import (
    FARTHEST,
    LEAST_PART,
    MOST_CELLS_PER_TIME,
    OVERLAP,
    PARTS,
    ROUNDS,
    SMOOTHNESS,
)

Inside = Callable[[int], Mask]
"""Which cells (per_side, ...) of a grid are in the public domain, by cells per side."""
_EVERYWHERE = 1 / math.sqrt(12)  # width of people who are even in the box


def bandwidths(measures: list[GridMeasure], people: Floats, m: int) -> Floats:
    """b (T,) of m particles that stand for L measures together, of people (T, L) in each."""
    share = people / people.sum(axis=1, keepdims=True)
    dimensions = max(measures[0].centres.shape[2], 1)
    density = [(one.weights**2).sum(axis=1) / one.sides**dimensions for one in measures]
    together = (share**2 * np.stack(density, axis=1)).sum(axis=1)  # 1 / volume
    distance = (together * m) ** (-1 / dimensions)
    return np.minimum(OVERLAP * distance, _EVERYWHERE)


def smoothed(measure: GridMeasure, bandwidth: Floats, inside: Inside | None = None) -> GridMeasure:
    """The measure in parts of its cells, for particles that get noise of bandwidth (T,)."""
    made = []
    for t, side in enumerate(measure.sides):
        held = measure.weights[t] > 0
        cells = Reading(measure.centres[t, held], measure.weights[t, held], float(side))
        made.append(_in_parts(cells, float(bandwidth[t]), inside))
    return stacked(made, measure.significant)


def _in_parts(cells: Reading, bandwidth: float, inside: Inside | None) -> Reading:
    """One time's people in parts of cells."""
    own = bandwidth / cells.side
    width = max(SMOOTHNESS, own)  # s, in cells
    window = _Window.around(cells, math.ceil(FARTHEST * width))
    free = None if inside is None else window.free(inside)
    mixture = _explaining(window.shares, _Blur(width * window.parts, free), window.level)
    even = window.parts**-2 / 12  # variance inside a part, in squared cells
    rest = math.sqrt(max(width**2 - own**2 - even, 0.0))
    density = _Blur(rest * window.parts, free)(mixture)[0]
    density[density < LEAST_PART * density.sum()] = 0.0
    return as_reading(density, window.per_side * window.parts, window.corner * window.parts)


class _Window(NamedTuple):
    """The part of a grid of per_side cells that holds people, from the cell `corner` (d,) on.

    shares: (1, side, ...) of people in its cells.  level: how often these are halved a side.
    """

    per_side: int
    corner: Ints
    shares: Floats
    level: int

    @classmethod
    def around(cls, cells: Reading, reach: int) -> _Window:
        """With so many cells on every side, as far as the box goes."""
        per_side = round(1 / cells.side)
        places = (cells.centres * per_side).astype(np.int64)
        corner = np.maximum(places.min(axis=0) - reach, 0)
        shape = np.minimum(places.max(axis=0) + reach + 1, per_side) - corner
        shares = np.zeros((1, *shape))
        shares[(0, *(places - corner).T)] = cells.counts
        room = math.log2(MOST_CELLS_PER_TIME / shares.size) / len(shape)
        return cls(per_side, corner, shares, int(np.clip(room, 0, math.log2(PARTS))))

    @property
    def parts(self) -> int:
        """Of a cell, a side."""
        return 2**self.level

    def free(self, inside: Inside) -> Floats:
        """(1, side, ...) 1 for the parts of cells with people that are in the domain, else 0."""
        ends = zip(self.corner, self.shares.shape[1:], strict=True)
        mine = tuple(slice(self.parts * a, self.parts * (a + n)) for a, n in ends)
        held = spread_out(self.shares > 0, self.level)
        free: Floats = (held & inside(self.per_side * self.parts)[mine]).astype(np.float64)
        return free


def _explaining(shares: Floats, blur: _Blur, level: int) -> Floats:
    """g on parts (1, side, ...) of cells with these shares (1, side, ...)."""
    free = np.ones_like(spread_out(shares, level)) * blur.free
    mixture = blur(spread_out(shares / np.maximum(blocks(free, level), 1.0), level) * free)
    for _ in range(ROUNDS):
        ratio = shares / np.maximum(blocks(blur(mixture), level), 1e-300)
        mixture = mixture * blur.back(spread_out(ratio, level))
    return mixture


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
