"""Strength from neighbouring times, twice: counts are averaged, then masses travel little.

Everything here is post-processing of released counts.

Averages.  A cell's people over T times are a level and a random walk about it, in shares of each
time's people; for all cells of one size the walk has one amplitude A, in units of their noise:
    c_t = N_t (level + walk_t) + noise_t,      walk ~ N(0, A v L^+),      noise_t ~ N(0, v / l_t),
L the quadratic form  sum_t (x_{t+1} - x_t)^2 / dt_t  with mean dt 1, v the variance of a count of
mean size, l_t = (N_t / mean N)^2. In the modes of L against l, of rates w_f, this reads
    a_f ~ N(0, (1 + s_f) v),      s_f = A / w_f,
and the posterior mean keeps s_f / (1 + s_f) of mode f and all of the level. A has the largest
evidence, each cell's weighed by the people in it,
    sum_j m_j sum_f [ a_fj^2 / v_j  s_f / (1 + s_f) - log(1 + s_f) ] / 2,
m_j the cell's mean count, signed: noise moves the level and the modes independently, so that empty
cells, which are many and do not change, add up to no opinion. Where people stay A is 0 and T times
count as one; where they move all is left as counted. `CAUTION` times A is used, for to average
people who move blurs them, and squared W2 minds that more than noise.

Cells so small that one person is in each cannot tell who moves from who is there by chance, but
blocks of them can, and who leaves a block leaves the cell: a block of b cells has b times the noise
and b^2 times the squared change, so A of the cells is at least that of the blocks over b.

Masses.  Noise and chance move the share of people in a place up and down from time to time; people
do not jump to and fro. So the masses a_t of T noisy measures are replaced by the solution of
    min over a   sum_t KL(a_t | noisy_t)  +  price sum_t (mean dt / dt_t) OT_t(a_t, a_{t+1}),
the paper's objective with the noisy measure for the data and the transport between times on cells
instead of particles: a share that leaves one group of cells at one time only to come back at the
next costs transport twice and is smoothed away, one that stays away is kept. OT_t is entropic, eta
dt_t of regularisation. The problem is convex and solved by alternating scalings along the
chain, as Sinkhorn's algorithm, with the marginals raised to a power below one because they are only
asked to be near.

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

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from privtraj.base.arrays import Floats, Ints, systematic, total_variance
from privtraj.motion.process import matched

CAUTION = 4.0  # times the estimated motion: 1 blurs people who move, 4, 8 and 32 do not, and 4
# averages most; on stand-ins, three or four seeds, 2026-11-16
SHORTEST_GAP = 0.5  # in mean gaps: below, transport is as between these; set by hand, 2026-11
TIME_COUPLING = 1.0  # the price as derived above
FOLLOWED = 256  # people at each time whose motion is measured: a median, within a few percent
MOTION_PRICE = 0.03  # most that the median motion may cost; set by hand on stand-ins, 2026-11
BLOCKS_PER_SIDE = {1: 20, 2: 10, 3: 6}  # by d; bounds the work; set by hand, 2026-11
BLOCKS_PER_SIDE_BEYOND = 4  # for more features
BLURS = (64.0, 16.0, 4.0, 1.0)  # from blurred transport, which settles at once, to the wanted one
SWEEPS = (30, 30, 30, 150)  # at most, of each blur
TRANSPORT_BLUR = 0.5  # eta of a mean gap, in squared blocks; set by hand, 2026-11
CONVERGED = 1e-12  # largest change of a share in a sweep after which none is needed

_AMPLITUDES = np.append(0.0, np.geomspace(1e-2, 1e6, 25))  # of the slowest mode, in its noise
_TINY, _FAR = 1e-300, 1e-200  # least scaling, least kernel: never 0


@dataclass(frozen=True)
class GridMeasure:
    """A private measure at each time: cells that hold people, padded to equal length J.

    centres: (T, J, d) in the unit cube.  weights: (T, J), rows sum to 1, padding has weight 0.
    sides: (T,) side of the cells read at that time.  significant: (T,) share of people in them.
    """

    centres: Floats
    weights: Floats
    sides: Floats
    significant: Floats


class TimeAverage(NamedTuple):
    """matrix: (T, T) from counts to averages.  draws: (T,) of noise, averaged in each of them.

    amplitude: A of the slowest mode, in its noise.
    """

    matrix: Floats
    draws: Floats
    amplitude: float = 0.0

    def __call__(self, counts: Floats) -> Floats:
        """Averages (T, ...) of counts (T, ...)."""
        flat: Floats = self.matrix @ counts.reshape(len(counts), -1)
        return flat.reshape(counts.shape)


def time_average(
    counts: Floats, noise_variance: float, people: Floats, gaps: Floats | None, least: float = 0.0
) -> TimeAverage:
    """The average that noisy counts (T, n) of people (T,) suggest, `gaps` (T - 1,) apart.

    noise_variance: of one count; chance adds the cell's mean count to it.  gaps: in any unit; None
    leaves every time by itself.  least: amplitude that blocks of these cells have shown.
    """
    if gaps is None or len(counts) == 1:
        return TimeAverage(np.eye(len(counts)), np.ones(len(counts)))
    size = people / people.mean()
    steps = np.diff(np.eye(len(people)), axis=0)
    form = steps.T @ (steps / np.maximum(gaps / gaps.mean(), SHORTEST_GAP)[:, None])
    rates, modes = eigh(form, np.diag(size**2))
    found = modes.T @ (size[:, None] * counts)  # modes of c_t / size_t, weighed by l_t
    level = found[0] / np.sqrt((size**2).sum()) * np.sign(modes[0, 0])
    energy = found[1:] ** 2 / (noise_variance + np.maximum(level, 0.0))
    weights = level if level.sum() > 0 else np.ones_like(level)
    slowness = rates[1] / rates[1:]
    tried = _AMPLITUDES[:, None] * slowness  # s_f of every A
    evidence = (energy @ weights) * tried / (1 + tried) - weights.sum() * np.log1p(tried)
    amplitude = max(float(_AMPLITUDES[np.argmax(evidence.sum(axis=1))]), least)
    signal = CAUTION * amplitude * slowness
    kept = (modes * np.append(1.0, signal / (1 + signal))) @ modes.T
    return TimeAverage(size[:, None] * kept * size, 1 / (np.diag(kept) * size**2), amplitude)


class _Blocks(NamedTuple):
    """The blocks of one time that hold people: centres of mass (B, d) and masses (B,)."""

    centres: Floats
    masses: Floats
    of_cell: Ints  # (J,) for the J cells with people


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
    times, variances = [], []
    for cells, weights in zip(measure.centres, measure.weights, strict=True):
        cells, weights = cells[weights > 0], weights[weights > 0]
        place = np.minimum((cells * per_side).astype(np.int64), per_side - 1)
        of_cell = np.unique(place, axis=0, return_inverse=True)[1].ravel()
        mass: Floats = np.bincount(of_cell, weights).astype(np.float64)
        centres = np.empty((len(mass), cells.shape[1]))
        for axis, along in enumerate(cells.T):
            centres[:, axis] = np.bincount(of_cell, weights * along) / mass
        times.append(_Blocks(centres, mass, of_cell))
        variances.append(total_variance(centres, mass))
    variance = float(np.mean(variances))
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
    people = [one.centres[systematic(one.masses, FOLLOWED)] for one in times]
    medians = [np.median(((a - b[matched(a, b)]) ** 2).sum(axis=1)) for a, b in pairwise(people)]
    return float(np.mean(medians))


def _solved(
    times: list[_Blocks], gaps: Floats, price: float, blur: float, reach: float
) -> list[Floats]:
    """Pooled masses of every time; gaps (T - 1,), mean 1; blur: eta of a mean gap.

    They are the marginals of the chain  prod_t u_t prod_t K_t  whose scalings are u_t = (noisy_t /
    rest_t)^power, with K = exp(-min(|a_i - b_j|, reach)^2 / eta), up to a factor, and never 0.
    """
    noisy = [one.masses for one in times]
    marginals, scaling = list(noisy), list(map(np.ones_like, noisy))
    for factor, sweeps in zip(BLURS, SWEEPS, strict=True):
        kernels = []
        for (a, b), gap in zip(pairwise(times), gaps, strict=True):
            cost = ((a.centres[:, None] - b.centres[None]) ** 2).sum(axis=2)
            cost = np.minimum(cost, reach**2)
            eta = factor * blur * np.maximum(gap, SHORTEST_GAP)
            kernels.append(np.maximum(np.exp(-(cost - cost.min()) / eta), _FAR))
        power = 1 / (1 + price * factor * blur)
        marginals = _scaled(noisy, kernels, power, scaling, sweeps)
        # a scaling is exp(potential / eta), and the next eta is a quarter
        for t, u in enumerate(scaling):
            scaling[t] = np.maximum(u, 1e-75) ** 4
    return marginals


def _scaled(
    noisy: list[Floats], kernels: list[Floats], power: float, scaling: list[Floats], sweeps: int
) -> list[Floats]:
    """Marginals of the chain, whose scalings are brought up to date in place.

    One sweep passes messages back from the last time and then updates every time in order. Scales
    of messages and scalings are free, since marginals are normalised; they are kept near 1.
    """
    last, marginals = len(noisy) - 1, list(noisy)
    back = list(map(np.ones_like, noisy))
    for sweep in range(sweeps):
        before = np.concatenate(marginals)
        for t in range(last, 0, -1):
            back[t - 1] = _from_one(kernels[t - 1] @ (scaling[t] * back[t]))
        ahead = np.ones_like(noisy[0])
        for t in range(last + 1):
            rest = _from_one(ahead * back[t])
            scaling[t] = _from_one((noisy[t] / rest) ** power)
            marginals[t] = scaling[t] * rest / (scaling[t] @ rest)
            if t < last:
                ahead = _from_one((scaling[t] * ahead) @ kernels[t])
        if sweep % 4 == 3 and np.abs(np.concatenate(marginals) - before).max() < CONVERGED:
            break
    return marginals


def _from_one(values: Floats) -> Floats:
    """Values above 0, the largest 1."""
    scaled: Floats = np.maximum(values / values.max(), _TINY)
    return scaled
