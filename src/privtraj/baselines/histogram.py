"""Noisy counts of cells, and points inside the cells that stand out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privtraj.arguments import check_whole
from privtraj.arrays import Floats
from privtraj.baselines.base import Baseline, Release
from privtraj.clouds import systematic
from privtraj.counts.constants import MOST_CELLS_PER_TIME
from privtraj.data.snapshots import Snapshots
from privtraj.privacy import noise
from privtraj.privacy.calibration import calibrate_laplace
from privtraj.privacy.guard import Guard

Cells = NDArray[np.int64]

CELLS = "people per cell"
CROWD = 5.0  # people times epsilon that a cell should hold


@dataclass(kw_only=True)
class Counted(Baseline):
    """A baseline that counts cells. cells: per side; None chooses it from the head count."""

    cells: int | None = None

    def check(self) -> None:
        super().check()
        if self.cells is not None:
            check_whole("cells", self.cells, 2, 2**24)

    def _left(self, guard: Guard) -> float:
        """The epsilon of one more noisy count of everybody, in the noise's own units."""
        ledger = guard.ledger
        budget = (ledger.epsilon, ledger.delta, ledger.adjacency, ledger.events)
        return min(calibrate_laplace(*budget, person=guard.person), noise.EPSILON_RANGE[1])


class ThresholdedHistogram(Counted):
    """Per time a histogram on G^d cells with discrete Laplace noise; keep what stands out.

    Mechanism: noise P(x) ~ exp(-e |x|) on every count; cells with a noisy count above
    log(G^d) / e are kept, on average fewer than one of those without anybody; people are uniform
    inside the kept cells, in proportion to the noisy counts. Nothing kept: uniform on the box.
    Sensitivity: a record is in one cell of one time, so a person with one record added or removed
    moves one count by 1 (e = epsilon), a person replaced two (e = epsilon / 2). Pure: delta is not
    used. G by hand costs nothing; otherwise `grid`, from a head count that is paid for.
    """

    def _release(self, snapshots: Snapshots, guard: Guard, rng: np.random.Generator) -> Release:
        side = self.cells
        if side is None:
            people = float(np.median(self._people(guard)))
            side = grid(people, guard.n_features, self._left(guard))
        epsilon = self._left(guard)
        counts = guard.counts(side, epsilon, CELLS)
        threshold = math.log(counts.shape[1]) / epsilon
        kept = np.where(counts > threshold, counts, 0).astype(np.float64)
        return in_cells(occupied(kept, side, guard.n_features), side, self.points, rng)


def grid(people: float, dimensions: int, epsilon: float) -> int:
    """G = (N e / CROWD)^(1 / (1 + d/2)), at least 2, with at most 2^18 cells.

    Cells of CROWD / e people, if people fill a set of dimension 1 + d/2 of the box: a curve and a
    little more on a line, all of a plane, about half of the directions beyond.
    """
    wanted = (people * epsilon / CROWD) ** (1 / (1 + dimensions / 2))
    return max(2, round(min(wanted, MOST_CELLS_PER_TIME ** (1 / dimensions))))


def in_cells(
    cells: Sequence[tuple[Cells, Floats]], side: int, points: int, rng: np.random.Generator
) -> Release:
    """Points uniform inside cells drawn in proportion to their weights.

    cells: for each time, whole coordinates (J, d) and weights (J,); none: uniform on the box.
    """
    dimensions = cells[0][0].shape[1]
    clouds, sides = [], []
    for places, weights in cells:
        corner, width = np.zeros((points, dimensions)), 1.0
        if len(places):
            corner, width = places[systematic(weights, points, rng)] / side, 1 / side
        clouds.append(corner + width * rng.uniform(size=corner.shape))
        sides.append(width)
    return Release(np.stack(clouds), np.array(sides) / math.sqrt(12))


def occupied(weights: Floats, side: int, dimensions: int) -> list[tuple[Cells, Floats]]:
    """The cells of positive weight, for `in_cells`; weights (T, side ** d), last axis fastest."""
    shape = (side,) * dimensions
    cells = []
    for row in weights:
        index = np.flatnonzero(row > 0)
        cells.append((np.stack(np.unravel_index(index, shape), axis=-1), row[index]))
    return cells
