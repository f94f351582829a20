"""People spread smoothly inside cells and across their borders. All of it is post-processing.

Cells tell how many people are in them, not where. People who are even inside a cell jump at its
border, and are too far apart: those of a narrow group crowd at the sides of its cells that face its
middle. So the density of people is a mixture of normals whose width follows the cells,
    f = K_s g,      s = SMOOTHNESS h,      h = side of a cell,
g >= 0 on parts of the cells. It cannot have edges of cells, and its masses are those of the cells:
g is the mixture that explains the masses w best, by the steps of expectation and maximisation
    g <- g K_s B' ( w / B K_s g ),      B the sum over the parts of a cell
(Richardson's and Lucy's), from people who are even in their cells. They stop after ROUNDS, as more of
them follow the noise of the masses: what many cells agree on is sharp by then.

A model's people are particles and normal noise of its bandwidth b. Clouds of m particles overlap
when b is about half their distance,
    b = OVERLAP (volume / m)^(1/d),      volume = h^d / sum_j w_j^2,
and then s is b at least. Normals of widths b and sqrt(s^2 - b^2) make one of width s, so particles
have the density K_sqrt(s^2 - b^2) g, and people f.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from privtraj.arrays import Floats, Ints, Mask
from privtraj.counts.cells import GridMeasure, Reading, as_reading, blocks, spread_out, stacked
from privtraj.counts.constants import (
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


def bandwidths(measures: list[GridMeasure], people: Floats, m: int) -> Floats:
    """b (T,) of m particles that stand for L measures together, of people (T, L) in each."""
    share = people / people.sum(axis=1, keepdims=True)
    dimensions = max(measures[0].centres.shape[2], 1)
    density = [(one.weights**2).sum(axis=1) / one.sides**dimensions for one in measures]
    together = (share**2 * np.stack(density, axis=1)).sum(axis=1)  # 1 / volume
    spacing: Floats = OVERLAP * (together * m) ** (-1 / dimensions)
    return spacing


def smoothed(
    measure: GridMeasure, bandwidth: Floats, inside: Inside | None = None
) -> GridMeasure:
    """The measure in parts of its cells, for particles that get noise of bandwidth (T,)."""
    made = []
    for t, side in enumerate(measure.sides):
        held = measure.weights[t] > 0
        cells = Reading(measure.centres[t, held], measure.weights[t, held], float(side))
        made.append(_in_parts(cells, float(bandwidth[t]), inside))
    return stacked(made, measure.significant)


def _in_parts(cells: Reading, bandwidth: float, inside: Inside | None) -> Reading:
    """One time's people in parts of cells."""
    width = max(SMOOTHNESS, bandwidth / cells.side)  # s, in cells
    per_side = round(1 / cells.side)
    places = (cells.centres * per_side).astype(np.int64)
    reach = math.ceil(FARTHEST * width)
    low = np.maximum(places.min(axis=0) - reach, 0)
    shape = np.minimum(places.max(axis=0) + reach + 1, per_side) - low
    level = _halvings(shape)
    parts = 2**level
    free = None
    if inside is not None:
        window = tuple(slice(parts * a, parts * (a + n)) for a, n in zip(low, shape, strict=True))
        free = inside(per_side * parts)[window]
    shares = np.zeros((1, *shape))
    shares[(0, *(places - low).T)] = cells.counts
    mixture = _explaining(shares, _Blur(parts * width, free), level)
    own = (bandwidth / cells.side) ** 2 + parts**-2 / 12  # of the model's noise, and of even parts
    rest = _Blur(parts * math.sqrt(max(width**2 - own, 0.0)), free)
    density = rest(mixture)[0]
    density[density < LEAST_PART * density.sum()] = 0.0
    return as_reading(density, per_side * parts, parts * low)


def _halvings(shape: Ints) -> int:
    """How often cells (d,) are cut into halves a side: as often as there is room for the parts."""
    room = math.log2(MOST_CELLS_PER_TIME / math.prod(shape.tolist())) / len(shape)
    return int(np.clip(math.floor(room), 0, math.log2(PARTS)))


def _explaining(shares: Floats, blur: _Blur, level: int) -> Floats:
    """g on parts (1, side, ...) of cells with these shares (1, side, ...)."""
    free = np.ones(spread_out(shares, level).shape) if blur.free is None else blur.free[None]
    room = np.maximum(blocks(free, level), 1.0)
    mixture = spread_out(shares / room, level) * free
    for _ in range(ROUNDS):
        reached = blocks(blur(mixture), level)
        ratio = shares / np.maximum(reached, 1e-300)
        mixture = mixture * blur.back(spread_out(ratio, level))
    return mixture


class _Blur:
    """K of a width in parts: normal noise, which walls of the box and of the domain turn back.

    free: (side, ...) parts that are in the domain; None for all.
    """

    def __init__(self, width: float, free: Mask | None) -> None:
        self._width = width
        self.free = None if free is None else free.astype(np.float64)
        self._kept = None if self.free is None else np.maximum(self._normal(self.free[None]), 1e-9)

    def __call__(self, density: Floats) -> Floats:
        """K g of g (1, side, ...), with the same sum."""
        if self._kept is None:
            return self._normal(density)
        blurred: Floats = self.free * self._normal(density / self._kept)
        return blurred

    def back(self, values: Floats) -> Floats:
        """K' of values (1, side, ...)."""
        if self._kept is None:
            return self._normal(values)
        blurred: Floats = self._normal(self.free * values) / self._kept
        return blurred

    def _normal(self, values: Floats) -> Floats:
        from scipy.ndimage import gaussian_filter

        along = (0.0,) + (self._width,) * (values.ndim - 1)
        blurred: Floats = gaussian_filter(values, along, mode="reflect", truncate=FARTHEST)
        return blurred
