"""Strength from neighbouring times: masses that agree with the counts and travel little.

Noise and chance move the share of people in a place up and down from time to time; people do not
jump to and fro. So the masses a_t of T noisy measures are replaced by the solution of
    min over a   sum_t KL(a_t | noisy_t)  +  sum_t (price / dt_t) OT_{eta dt_t}(a_t, a_{t+1}),
the paper's objective with the noisy measure for the data and the transport between times on cells
instead of particles: a share that leaves one group of cells at one time only to come back at the
next costs transport twice and is smoothed away, one that stays away is believed. It is convex and
solved by alternating scalings along the chain, as Sinkhorn's algorithm, with the marginals raised
to a power below one because they are only asked to be near. All of it is post-processing.

Transport also charges people who really move, and would tilt the masses towards those who move
less: the price is STRENGTH, but so low that the motion seen between times costs TILT at most.

Masses are pooled in blocks of a box cut `BLOCKS` ways a side, and every cell of a block takes part
in the block's factor: details smaller than a block stay as counted, and the work stays bounded.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privtraj.dynamics.histogram import Measure

Floats = NDArray[np.float64]

STRENGTH = 0.5  # with times in shares of the range and distances in shares of the box
TILT = 0.05  # price times mean squared motion over a gap: masses are tilted by no more
SWEEPS = 200
BLOCKS = {1: 32, 2: 16, 3: 8, 4: 6}  # per side, by the number of features; 4 for more
_BLUR = 0.5  # eta of a mean gap, in squared blocks
_SHORTEST = 0.1  # gaps, in mean gaps, below which transport is as between these
_TINY = 1e-280


class _Blocks(NamedTuple):
    """The blocks of one time that hold people: centres of mass (B, d) and masses (B,)."""

    centres: Floats
    masses: Floats
    of_cell: NDArray[np.int64]  # (J,) for the J cells with people


def pooled_over_time(measure: Measure, gaps: Floats, strength: float | None = None) -> Measure:
    """The same cells with pooled masses; gaps (T - 1,) between the times, any unit.

    strength: 0 for none, None for the price above.
    """
    if strength == 0:
        return measure
    per_side = BLOCKS.get(measure.centres.shape[2], 4)
    times = [
        _in_blocks(centres[weights > 0], weights[weights > 0], per_side)
        for centres, weights in zip(measure.centres, measure.weights, strict=True)
    ]
    blur = _BLUR / per_side**2
    etas = blur * np.maximum(gaps / gaps.mean(), _SHORTEST)
    edges = zip(pairwise(times), etas, strict=True)
    kernels = [_kernel(a.centres, b.centres, eta) for (a, b), eta in edges]
    price = (STRENGTH if strength is None else strength) * gaps.sum() / gaps.mean()
    if strength is None:
        price = min(price, TILT / max(_motion(times), 1e-12))
    power = 1 / (1 + price * blur)
    masses = _scaled([one.masses for one in times], kernels, power)
    weights = measure.weights.copy()
    for row, one, mass in zip(weights, times, masses, strict=True):
        row[row > 0] *= (mass / one.masses)[one.of_cell]
    return replace(measure, weights=weights / weights.sum(axis=1, keepdims=True))


def _motion(times: list[_Blocks]) -> float:
    """Mean over the gaps of the squared distance that people move at least, W2^2."""
    import ot

    costs = [ot.emd2(a.masses, b.masses, ot.dist(a.centres, b.centres)) for a, b in pairwise(times)]
    return float(np.mean(costs))


def _in_blocks(centres: Floats, weights: Floats, per_side: int) -> _Blocks:
    place = np.minimum((centres * per_side).astype(np.int64), per_side - 1)
    _, of_cell = np.unique(place, axis=0, return_inverse=True)
    of_cell = of_cell.ravel()
    masses: Floats = np.bincount(of_cell, weights).astype(np.float64)
    middle = [np.bincount(of_cell, weights * axis) / masses for axis in centres.T]
    return _Blocks(np.stack(middle, axis=1), masses, of_cell)


def _kernel(a: Floats, b: Floats, eta: float) -> Floats:
    """exp(-|a_i - b_j|^2 / eta) (n, m), every row and column rescaled so that its largest is 1.

    A rescaled row is a rescaled marginal potential, which the solution does not depend on.
    """
    cost = ((a[:, None] - b[None]) ** 2).sum(axis=2)
    cost -= cost.min(axis=1, keepdims=True)
    cost -= cost.min(axis=0, keepdims=True)
    kernel: Floats = np.exp(-cost / eta)
    return kernel


def _scaled(noisy: list[Floats], kernels: list[Floats], power: float) -> list[Floats]:
    """Marginals of the chain  prod_t u_t prod_t K_t  whose u_t = (noisy_t / rest_t)^power.

    One sweep passes messages back from the last time and then updates every time in order.
    """
    last = len(noisy) - 1
    scaling = list(noisy)
    back = [np.ones_like(mass) for mass in noisy]
    marginals = list(noisy)
    for _ in range(SWEEPS):
        for t in range(last, 0, -1):
            message = kernels[t - 1] @ (scaling[t] * back[t])
            back[t - 1] = message / message.max()
        ahead = np.ones_like(noisy[0])
        for t in range(last + 1):
            rest = np.maximum(ahead * back[t], _TINY)
            scaling[t] = (noisy[t] / rest) ** power
            scaling[t] /= scaling[t].max()
            marginal = scaling[t] * rest
            marginals[t] = marginal / marginal.sum()
            if t < last:
                message = (scaling[t] * ahead) @ kernels[t]
                ahead = message / message.max()
    return marginals
