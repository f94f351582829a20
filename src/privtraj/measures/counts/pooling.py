"""Strength from neighbouring times: masses that agree with the counts and travel little.

Noise and chance move the share of people in a place up and down from time to time; people do not
jump to and fro. So the masses a_t of T noisy measures are replaced by the solution of
    min over a   sum_t KL(a_t | noisy_t)  +  price sum_t (mean dt / dt_t) OT_t(a_t, a_{t+1}),
the paper's objective with the noisy measure for the data and the transport between times on cells
instead of particles: a share that leaves one group of cells at one time only to come back at the
next costs transport twice and is smoothed away, one that stays away is kept. OT_t is entropic, eta
dt_t of regularisation. The problem is convex and solved by alternating scalings along the
chain, as Sinkhorn's algorithm, with the marginals raised to a power below one because they are only
asked to be near. All of it is post-processing.

The price.  For two groups a distance D apart this is total-variation smoothing of a share whose
noise has variance p (1 - p) / n, n the effective number of people behind a measure; that wants a
weight of sqrt(T / n) against the variance p (1 - p) D^2 of the whole cloud:
    price = sqrt(T / n) / variance.
Transport also charges people who really move, and would tilt the masses towards those who move
less, so the median motion between times may cost MOTION_PRICE at most.

Where people come and go, a share that changes need not have travelled: it costs no more than going
as far as `reach`, whoever vanishes here and appears there (partial transport).

Masses are pooled in blocks of a box cut `BLOCKS_PER_SIDE` ways a side, and every cell of a block
takes part in the block's factor: details smaller than a block stay as counted, and the work stays
bounded.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, total_variance
from privtraj.measures.counts.cells import GridMeasure
from privtraj.measures.counts.constants import (
    BLOCKS_PER_SIDE,
    BLOCKS_PER_SIDE_BEYOND,
    BLURS,
    CONVERGED,
    MOTION_PRICE,
    SHORTEST_GAP,
    SWEEPS,
    TIME_COUPLING,
    TRANSPORT_BLUR,
)

_TINY, _FAR = 1e-300, 1e-200  # least scaling, least kernel: never 0


class _Blocks(NamedTuple):
    """The blocks of one time that hold people: centres of mass (B, d) and masses (B,)."""

    centres: Floats
    masses: Floats
    of_cell: NDArray[np.int64]  # (J,) for the J cells with people


def pooled_over_time(
    measure: GridMeasure,
    gaps: Floats,
    effective_people: float,
    time_coupling: float = TIME_COUPLING,
    reach: float = np.inf,
) -> GridMeasure:
    """The same cells with pooled masses; gaps (T - 1,) between the times, any unit.

    effective_people: whose shares would by chance be as uncertain as these.  time_coupling: in
    units of the price above, 0 for none.  reach: in shares of the box.
    """
    if time_coupling == 0:
        return measure
    per_side = BLOCKS_PER_SIDE.get(measure.centres.shape[2], BLOCKS_PER_SIDE_BEYOND)
    times = [
        _in_blocks(centres[weights > 0], weights[weights > 0], per_side)
        for centres, weights in zip(measure.centres, measure.weights, strict=True)
    ]
    variance = float(np.mean([total_variance(one.centres, one.masses) for one in times]))
    price = np.sqrt(len(times) / effective_people) / max(variance, 1e-12)
    price = time_coupling * min(price, MOTION_PRICE / max(_motion(times), 1e-12))
    masses = _solved(times, gaps / gaps.mean(), price, TRANSPORT_BLUR / per_side**2, reach)
    weights = measure.weights.copy()
    for row, one, mass in zip(weights, times, masses, strict=True):
        row[row > 0] *= (mass / one.masses)[one.of_cell]
    return replace(measure, weights=weights / weights.sum(axis=1, keepdims=True))


def _motion(times: list[_Blocks]) -> float:
    """Mean over the gaps of the median squared distance that people move, under optimal transport.

    The median, because the few whom noise alone makes move between groups move farthest.
    """
    import ot

    medians = []
    for a, b in pairwise(times):
        cost = ot.dist(a.centres, b.centres)
        carried = ot.emd(a.masses, b.masses, cost).ravel()
        order = np.argsort(cost, axis=None)
        middle = np.searchsorted(np.cumsum(carried[order]), carried.sum() / 2)
        medians.append(cost.ravel()[order[min(middle, len(order) - 1)]])
    return float(np.mean(medians))


def _in_blocks(centres: Floats, weights: Floats, per_side: int) -> _Blocks:
    place = np.minimum((centres * per_side).astype(np.int64), per_side - 1)
    _, of_cell = np.unique(place, axis=0, return_inverse=True)
    of_cell = of_cell.ravel()
    masses: Floats = np.bincount(of_cell, weights).astype(np.float64)
    middle = [np.bincount(of_cell, weights * axis) / masses for axis in centres.T]
    return _Blocks(np.stack(middle, axis=1), masses, of_cell)


def _solved(
    times: list[_Blocks], gaps: Floats, price: float, blur: float, reach: float
) -> list[Floats]:
    """Pooled masses of every time; gaps (T - 1,), mean 1; blur: eta of a mean gap."""
    noisy = [one.masses for one in times]
    scaling = [np.ones_like(mass) for mass in noisy]
    for factor, sweeps in zip(BLURS, SWEEPS, strict=True):
        etas = factor * blur * np.maximum(gaps, SHORTEST_GAP)
        edges = zip(pairwise(times), etas, strict=True)
        kernels = [_kernel(a.centres, b.centres, eta, reach) for (a, b), eta in edges]
        power = 1 / (1 + price * factor * blur)
        masses, scaling = _scaled(noisy, kernels, power, scaling, sweeps)
        # a scaling is exp(potential / eta), and the next eta is a quarter
        scaling = [np.maximum(u, 1e-75) ** 4 for u in scaling]
    return masses


def _kernel(a: Floats, b: Floats, eta: float, reach: float) -> Floats:
    """exp(-min(|a_i - b_j|, reach)^2 / eta) (n, m) up to a factor, and never 0: far is far."""
    cost = np.minimum(((a[:, None] - b[None]) ** 2).sum(axis=2), reach**2)
    kernel: Floats = np.maximum(np.exp(-(cost - cost.min()) / eta), _FAR)
    return kernel


def _scaled(
    noisy: list[Floats], kernels: list[Floats], power: float, scaling: list[Floats], sweeps: int
) -> tuple[list[Floats], list[Floats]]:
    """Marginals of the chain  prod_t u_t prod_t K_t  whose u_t = (noisy_t / rest_t)^power, and u.

    One sweep passes messages back from the last time and then updates every time in order. Scales
    of messages and scalings are free, since marginals are normalised; they are kept near 1.
    """
    last = len(noisy) - 1
    scaling, marginals = list(scaling), list(noisy)
    back = [np.ones_like(mass) for mass in noisy]
    for sweep in range(sweeps):
        before = list(marginals)
        for t in range(last, 0, -1):
            back[t - 1] = _from_one(kernels[t - 1] @ (scaling[t] * back[t]))
        ahead = np.ones_like(noisy[0])
        for t in range(last + 1):
            rest = _from_one(ahead * back[t])
            scaling[t] = _from_one((noisy[t] / rest) ** power)
            marginals[t] = scaling[t] * rest / (scaling[t] @ rest)
            if t < last:
                ahead = _from_one((scaling[t] * ahead) @ kernels[t])
        if sweep % 4 == 3 and all(map(_settled, marginals, before)):
            break
    return marginals, scaling


def _settled(masses: Floats, before: Floats) -> bool:
    return bool(np.abs(masses - before).max() < CONVERGED)


def _from_one(values: Floats) -> Floats:
    """Values above 0, the largest 1."""
    scaled: Floats = np.maximum(values / values.max(), _TINY)
    return scaled
