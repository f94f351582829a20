"""Cells that divide: a population that grows, in two branches, at different known rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.datasets.times import When, unit_times

BRANCH_RATES = (2.0, 0.5)  # divisions per cell and unit of time, in the upper and lower branch

_RETURN = 6.0  # rate at which a cell returns to the middle of its branch
_SPREAD = 0.1  # standard deviation around it


@dataclass(frozen=True, eq=False)
class BranchingPopulation:
    """All N cells that were alive at each time, and who comes from whom.

    times: (N,) of the reading.  points: (N, 2).  cells: (N,) number of the cell.  branches: (N,)
    0 for the upper, 1 for the lower branch.  parents: (C,) number of the mother of each cell that
    ever lived, -1 for the first ones.  counts: (T, 2) cells alive in each branch at each time.
    expected: (T, 2) their expectation, n0/2 e^(rate t).
    """

    times: Floats
    points: Floats
    cells: Ints
    branches: Ints
    parents: Ints
    counts: Ints
    expected: Floats

    @property
    def masses(self) -> Floats:
        """(T, 2) expected share of the population in each branch."""
        return self.expected / self.expected.sum(axis=1, keepdims=True)


def branching_population(n0: int, times: When = 10, seed: int = 0) -> BranchingPopulation:
    """n0 cells at time 0, every second one bound for each branch, of increasing times.

    A cell lives an exponential time of rate 2 (upper branch) or 1/2 (lower branch), then divides in
    two: numbers grow by e^2 and e^(1/2) over [0, 1] (Yule's process). The middle of the branches is

        (1.6 t - .8, +-.7 s(t)),   s from 0 at t = 1/4 to 1 at t = 3/4, smoothly,

    around which cells follow an Ornstein-Uhlenbeck process of rate 6 and standard deviation .1;
    daughters begin where their mother ended.
    """
    u = unit_times(times)
    rng = np.random.default_rng(seed)
    rates = np.array(BRANCH_RATES)
    cells, branch = np.arange(n0), np.arange(n0) % 2
    parents = [np.full(n0, -1)]
    off, at = _SPREAD * rng.standard_normal((n0, 2)), np.zeros(n0)
    divides = rng.exponential(1 / rates[branch])
    born, seen = n0, []
    for moment in u:
        while (ready := divides < moment).any():
            ends = _returned(off[ready], (divides - at)[ready], rng)
            mothers, kind, birth = (np.repeat(v[ready], 2) for v in (cells, branch, divides))
            daughters = born + np.arange(len(mothers))
            born += len(daughters)
            parents.append(mothers)
            cells = np.concatenate([cells[~ready], daughters])
            off = np.concatenate([off[~ready], np.repeat(ends, 2, axis=0)])
            at = np.concatenate([at[~ready], birth])
            branch = np.concatenate([branch[~ready], kind])
            divides = np.concatenate([divides[~ready], birth + rng.exponential(1 / rates[kind])])
        off, at = _returned(off, moment - at, rng), np.full(len(cells), moment)
        seen.append((at, _middle(at, branch) + off, cells, branch))
    readings, points, alive, kinds = (np.concatenate(column) for column in zip(*seen, strict=True))
    counts = np.stack([np.bincount(kind, minlength=2) for *_, kind in seen])
    founders = np.bincount(np.arange(n0) % 2, minlength=2).astype(np.float64)
    expected = founders * np.exp(np.outer(u, rates))
    lineage = np.concatenate(parents)
    return BranchingPopulation(readings, points, alive, kinds, lineage, counts, expected)


def _returned(off: Floats, lags: Floats, rng: np.random.Generator) -> Floats:
    """Distances (n, 2) from the middle of the branch, a time `lags` (n,) later."""
    kept = np.exp(-_RETURN * lags)[:, None]
    return kept * off + _SPREAD * np.sqrt(1 - kept**2) * rng.standard_normal(off.shape)


def _middle(times: Floats, branch: Ints) -> Floats:
    """Middle (n, 2) of these branches (n,) at these times (n,)."""
    s = np.clip(2 * times - 0.5, 0.0, 1.0)
    side = np.where(branch == 0, 0.7, -0.7)
    return np.stack([1.6 * times - 0.8, side * s**2 * (3 - 2 * s)], axis=1)
