"""Particles that stand for the people of cells: every cell filled, by its weight."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints, systematic
from privtraj.domain.domain import Plot
from privtraj.measures.counts.cells import GridMeasure


def placed(
    measure: GridMeasure, m: int, rng: np.random.Generator, plot: Plot | None = None
) -> tuple[Floats, Floats]:
    """Particles (T, m, d) and weights (T, m) that fill the cells evenly.

    With a domain, particles are in the part of a cell that is inside.
    """
    clouds, shares = [], []
    for places, weights, side in zip(measure.centres, measure.weights, measure.sides, strict=True):
        put = filled(places, weights, np.full(len(weights), side), m, rng)
        at = places[put.cell]
        clouds.append(put.places if plot is None else plot.settled(put.places, at, side, rng))
        shares.append(put.weights)
    return np.stack(clouds), np.stack(shares)


class Filled(NamedTuple):
    """m particles in cells: places (m, d), weights (m,), the cell (m,) of each."""

    places: Floats
    weights: Floats
    cell: Ints


def filled(
    centres: Floats, weights: Floats, sides: Floats, m: int, rng: np.random.Generator
) -> Filled:
    """One time's cells (J, d), of weights and sides (J,), with m particles in them."""
    cell, share = _shared_out(weights, m, rng)
    inside = rng.uniform(-0.5, 0.5, size=(m, centres.shape[1]))
    return Filled(np.clip(centres[cell] + sides[cell, None] * inside, 0, 1), share, cell)


def _shared_out(weights: Floats, m: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Cells (m,) of m particles and their weights (m,), which add up to the cells' where they can.

    Every cell with people has one particle and more in proportion, all of a cell of equal weight;
    if there are more cells than particles, a systematic sample of them has equal weights.
    """
    held = np.flatnonzero(weights)
    if len(held) > m:
        return systematic(weights, m, rng), np.full(m, 1 / m)
    more = systematic(weights, m - len(held), rng) if m > len(held) else held[:0]
    index = np.sort(np.concatenate([held, more]))
    return index, weights[index] / np.bincount(index)[index]
