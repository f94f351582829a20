"""What is known of the cells of a column, all times together, after one table and another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints


class Known(NamedTuple):
    """people: (L,) in each cell, not negative.  variance: (L,) of these numbers."""

    people: Floats
    variance: Floats

    @property
    def shares(self) -> Floats:
        """(L,) that add up to 1."""
        shares: Floats = self.people / max(float(self.people.sum()), 1e-12)
        return shares

    def told(self, of: Ints, counts: Floats, variance: float) -> Known:
        """With noisy counts (A,) of groups of the cells too, each by its variance.

        Cells of one group are multiplied by one number. All counts have their noise, and so does
        their sum, of which nothing is taken.
        """
        held, known = np.bincount(of, self.people), np.bincount(of, self.variance)
        counts = counts * held.sum() / max(float(counts.sum()), 1.0)
        weight = known / (known + variance)
        wanted = np.maximum(held + weight * (counts - held), 0.0)
        grown = wanted / np.maximum(held, 1e-12)
        return Known(self.people * grown[of], self.variance * (1 - weight)[of])
