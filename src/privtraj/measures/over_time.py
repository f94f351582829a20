"""What neighbouring times know of each other: counts are averaged, masses travel little, and curves
pass through windows. Everything here is post-processing of released numbers.

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

Filter.  People who move leave their cells, but crowds of them are smooth in space and time
together. In cosines over space and the modes over time noise has the same variance v everywhere,
and people are in few: of a band with mean square e is kept the share that noise does not explain,
    (e - v)+ / e,
Wiener's filter with the spectrum that was seen. A band is an octave of the frequency over space by
one of the mode over time; all people together are kept. Filtered counts tell where people are:
crowds stand out of the noise that no cell does. How many there are is told by the averages, which
do not blur edges.

Masses.  Noise and chance move the share of people in a place up and down from time to time; people
do not jump to and fro. So the masses a_t of T noisy measures are replaced by the solution of
    min over a   sum_t KL(a_t | noisy_t)  +  price sum_t (mean dt / dt_t) OT_t(a_t, a_{t+1}),
the paper's objective with the noisy measure for the data and the transport between times on cells
instead of particles: a share that leaves one group of cells at one time only to come back at the
next costs transport twice and is smoothed away, one that stays away is kept. OT_t is entropic, eta
dt_t of regularisation, that of a mean gap being a squared block. The problem is convex and solved
by alternating scalings along the chain, as Sinkhorn's algorithm, with the marginals raised to a
power below one because they are only asked to be near.

The price.  For two groups a distance D apart this is total-variation smoothing of a share whose
noise has variance p (1 - p) / n, n the effective number of people behind a measure; that wants a
weight of sqrt(T / n) against the variance p (1 - p) D^2 of the whole cloud:
    price = sqrt(T / n) / variance.
Transport also charges people who really move, and would tilt the masses towards those who move
less: their motion, T times the median between two times, is part of the variance. And masses that
do change, as when people leave one place for another, would be smoothed away: the price is halved
as long as masses move farther than noise explains. With D the distances between blocks, the energy
distance of masses a from the noisy ones p is -(a - p)' D (a - p), that of n people from those they
are drawn of is p' D p / n in the mean, and the sum over time of the former may be that of the
latter.

Where people come and go, a share that changes need not have travelled: it costs no more than going
as far as `reach`, whoever vanishes here and appears there (partial transport).

Masses are pooled in blocks of a box cut `BLOCKS_PER_SIDE` ways a side, and every cell of a block
takes part in the block's factor: details smaller than a block stay as counted, and the work stays
bounded.

Curves.  Particle i is a curve  x_i(t) = sum_k B_k(t) c_ik  with hat functions B_k at K + 1 knots:
the first and the last time, and the edges between windows. The people of a window were there at all
its times, so a window shows the curves blurred by their own motion, and that blur is undone by
asking that the curves, read at J times of the window, together look like its people:
    min over c   sum_k W2^2( {x_i(t_kj)}_ij , people of window k )
                 + bending |second differences of c|^2 + action |first differences of c|^2.
Supple curves follow what people do between windows, and the noise of windows, which makes them
tremble. Where there was a look at motion, the bending has the least expected W2 (`windows`), and is
more as long as curves are no farther from the people of windows than their noise explains.
One round transports the m J readings of every window towards its people along a random orthonormal
basis, one coordinate at a time by sorting (exact in one dimension; repeated, it carries any cloud
to any other), and puts the nearest curves through where they arrived, by least squares.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints, Mask, systematic, total_variance
from privtraj.base.space import hat_functions
from privtraj.motion.process import matched

CAUTION = 4.0  # times the estimated motion: 1 blurs people who move, 4, 8 and 32 do not, and 4
# averages most; on stand-ins, three or four seeds, 2026-11-16
FOLLOWED = 256  # people at each time whose motion is measured: a median, within a few percent
BLOCKS_PER_SIDE = {1: 20, 2: 10, 3: 6}  # by d; bounds the work; set by hand, 2026-11
BLOCKS_PER_SIDE_BEYOND = 4  # for more features
BLURS = (64.0, 16.0, 4.0, 1.0)  # from blurred transport, which settles at once, to the wanted one
SWEEPS = (30, 30, 30, 150)  # at most, of each blur
HALVINGS = 8  # of the price, at most: then next to nothing is smoothed
CONVERGED = 1e-12  # largest change of a share in a sweep after which none is needed
ROUNDS = 10
"""Rounds of fitting; 30 and 60 change squared W2 by less than 4 % on the stand-ins."""
USUAL_BENDING = 0.05
"""Where nobody looked at motion, and of curves by which windows are chosen; in the plane, a quarter
or four times as much has 4 or 6 % more error (benchmarks/regret.py, even seeds below 300)."""
ACTION = 1e-4
"""Of the squared first differences: settles what windows cannot tell."""

_AMPLITUDES = np.append(0.0, np.geomspace(1e-2, 1e6, 25))  # of the slowest mode, in its noise
_TINY, _FAR = 1e-150, 1e-200  # least scaling or message, least kernel: no product of two is 0


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

    def since(self, first: int) -> GridMeasure:
        """From this time on."""
        return GridMeasure(*(getattr(self, one.name)[first:] for one in fields(self)))


class TimeAverage(NamedTuple):
    """matrix: (T, T) from counts to averages.  draws: (T,) of noise, averaged in each of them.

    amplitude: A of the slowest mode, in its noise.  modes: (T, T) an orthonormal basis over time of
    noise, from the level to what changes fastest, as columns times l_t^(1/2).
    """

    matrix: Floats
    draws: Floats
    amplitude: float
    modes: Floats


def time_average(
    counts: Floats, noise_variance: float, people: Floats, gaps: Floats | None, least: float = 0.0
) -> TimeAverage:
    """The average that noisy counts (T, n) of people (T,) suggest, `gaps` (T - 1,) apart.

    noise_variance: of one count; chance adds the cell's mean count to it.  gaps: in any unit; None
    leaves every time by itself.  least: amplitude that blocks of these cells have shown.
    """
    if gaps is None or len(counts) == 1:
        alone = np.eye(len(counts))
        return TimeAverage(alone, np.ones(len(counts)), 0.0, alone)
    size = people / people.mean()
    steps = np.diff(np.eye(len(people)), axis=0)
    form = steps.T @ (steps / (gaps / gaps.mean())[:, None])
    from scipy.linalg import eigh

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
    modes = size[:, None] * modes
    matrix = (modes * np.append(1.0, signal / (1 + signal))) @ modes.T
    return TimeAverage(matrix, 1 / np.diag(matrix), amplitude, modes)


def filtered(
    counts: Floats, noise_variance: float, modes: Floats, together: bool = True
) -> tuple[Floats, Floats]:
    """Noisy counts (T, side, ...) as Wiener's filter has them, and of how many draws of noise each
    of them is the average, (T, side, ...).

    noise_variance: of one count; chance adds the mean count of all cells to it.  modes: (T, T) of
    the average.  together: whether these are of times that know of each other.
    """
    from scipy.fft import dct, dctn, idctn

    space, side = tuple(range(1, counts.ndim)), counts.shape[1]
    found = np.tensordot(modes.T, dctn(counts, axes=space, norm="ortho"), 1)
    of_space = np.frexp(np.linalg.norm(np.indices(counts.shape[1:]), axis=0))[1]  # octaves
    of_time = np.frexp(np.arange(len(counts)) * together)[1].reshape(-1, *(1,) * len(space))
    band = (of_time * (of_space.max() + 1) + of_space).ravel()
    squares = np.bincount(band, found.ravel() ** 2) / np.maximum(np.bincount(band), 1)
    variance = noise_variance + max(float(counts.mean()), 0.0)
    shares = np.maximum(squares - variance, 0.0) / np.maximum(squares, 1e-300)
    kept = shares[band].reshape(counts.shape)
    kept[(of_time.ravel() == 0, *(0,) * len(space))] = 1.0
    # of one draw in every cell:  sum over modes and frequencies of the squared basis and shares
    noise = np.tensordot(np.square(modes), kept**2, 1)
    basis = np.square(dct(np.eye(side), axis=0, norm="ortho"))  # (frequency, cell)
    for _ in space:  # each product moves its axis to the end
        noise = np.tensordot(noise, basis, (1, 0))
    values = idctn(np.tensordot(modes, kept * found, 1), axes=space, norm="ortho")
    return values, 1 / np.maximum(noise, 1e-300)


def pooled_over_time(
    measure: GridMeasure,
    gaps: Floats,
    effective_people: float,
    time_coupling: float = 1.0,
    reach: float = np.inf,
) -> GridMeasure:
    """The same cells with pooled masses; gaps (T - 1,) between the times, any unit.

    effective_people: whose shares would by chance be as uncertain as these.  time_coupling: in
    units of the price above and of what noise explains, 0 for none.  reach: in shares of the box.
    """
    if time_coupling == 0:
        return measure
    per_side = BLOCKS_PER_SIDE.get(measure.centres.shape[2], BLOCKS_PER_SIDE_BEYOND)
    centres, noisy, block_of_cell = [], [], []  # of each time: centres of mass and masses of blocks
    followed, variances = [], []
    for cells, weights in zip(measure.centres, measure.weights, strict=True):
        cells, weights = cells[weights > 0], weights[weights > 0]
        place = np.minimum((cells * per_side).astype(np.int64), per_side - 1)
        number = np.ravel_multi_index(tuple(place.T), (per_side,) * place.shape[1])
        block = np.unique(number, return_inverse=True)[1]
        mass: Floats = np.bincount(block, weights).astype(np.float64)
        centre = np.empty((len(mass), cells.shape[1]))
        for axis, along in enumerate(cells.T):
            centre[:, axis] = np.bincount(block, weights * along) / mass
        centres.append(centre)
        noisy.append(mass)
        block_of_cell.append(block)
        followed.append(centre[systematic(mass, FOLLOWED)])
        variances.append(total_variance(centre, mass))
    # how far people move under optimal transport: the median of squares, because the few whom
    # noise alone makes move between groups move farthest
    moved = []
    for a, b in pairwise(followed):
        moved.append(np.median(((a - b[matched(a, b)]) ** 2).sum(axis=1)))
    variance = float(np.mean(variances)) + len(noisy) * float(np.mean(moved))
    price = time_coupling * np.sqrt(len(noisy) / effective_people) / max(variance, 1e-12)

    costs = []  # min(|a_i - b_j|, reach)^2 between neighbouring times, the least being 0
    for a, b in pairwise(centres):
        cost = np.minimum(((a[:, None] - b[None]) ** 2).sum(axis=2), reach**2)
        costs.append(cost - cost.min())
    stages = []  # of blurred transport: eta of a mean gap, sweeps, kernels, which are never 0
    for factor, sweeps in zip(BLURS, SWEEPS, strict=True):
        blur, kernels = factor / per_side**2, []
        for cost, gap in zip(costs, gaps / gaps.mean(), strict=True):
            kernels.append(np.maximum(np.exp(-cost / (blur * gap)), _FAR))
        stages.append((blur, sweeps, kernels))
    apart, by_chance = [], 0.0  # D of each time, and what noise explains
    for centre, mass in zip(centres, noisy, strict=True):
        apart.append(np.sqrt(((centre[:, None] - centre) ** 2).sum(axis=2)))
        by_chance += time_coupling * float(mass @ apart[-1] @ mass) / effective_people
    for _ in range(HALVINGS):
        masses, scaling = list(noisy), list(map(np.ones_like, noisy))
        for blur, sweeps, kernels in stages:
            masses = _scaled(noisy, kernels, 1 / (1 + price * blur), scaling, sweeps)
            # a scaling is exp(potential / eta), and the next eta is a quarter
            for t, u in enumerate(scaling):
                scaling[t] = np.maximum(u, _TINY**0.25) ** 4
        changed = 0.0
        for after, before, between in zip(masses, noisy, apart, strict=True):
            changed -= float((after - before) @ between @ (after - before))
        if changed <= by_chance:
            break
        price /= 2
    weights = measure.weights.copy()
    for row, before, after, block in zip(weights, noisy, masses, block_of_cell, strict=True):
        row[row > 0] *= (after / before)[block]
    return replace(measure, weights=weights / weights.sum(axis=1, keepdims=True))


def _scaled(
    noisy: list[Floats], kernels: list[Floats], power: float, scaling: list[Floats], sweeps: int
) -> list[Floats]:
    """Marginals of the chain  prod_t u_t prod_t K_t,  u_t = (noisy_t / rest_t)^power; scalings u
    are brought up to date in place.

    One sweep passes messages back from the last time and then updates every time in order. Scales
    of messages and scalings are free, since marginals are normalised; they are kept near 1.
    """
    last, marginals = len(noisy) - 1, list(noisy)
    back = list(map(np.ones_like, noisy))
    for sweep in range(sweeps):
        before = np.concatenate(marginals)
        for t in range(last, 0, -1):
            back[t - 1] = _from_one(kernels[t - 1] @ _from_one(scaling[t] * back[t]))
        ahead = np.ones_like(noisy[0])
        for t in range(last + 1):
            rest = _from_one(ahead * back[t])
            scaling[t] = _from_one((noisy[t] / rest) ** power)
            marginals[t] = scaling[t] * rest / (scaling[t] @ rest)
            if t < last:
                ahead = _from_one(_from_one(scaling[t] * ahead) @ kernels[t])
        if sweep % 4 == 3 and np.abs(np.concatenate(marginals) - before).max() < CONVERGED:
            break
    return marginals


def _from_one(values: Floats) -> Floats:
    """Values above 0, the largest 1."""
    return np.maximum(values / values[values.argmax()], _TINY)  # faster than max, of so few


def smooth_curves(
    clouds: Floats,
    moments: Floats,
    window_of_moment: Ints,
    start: Floats,
    bending: float,
    rng: np.random.Generator,
    still: Mask | None = None,
) -> tuple[Floats, float]:
    """Control points (m, K + 1, d) of m curves through the windows, and their squared distance from
    the people there: how far a round would carry the readings, the mean over the windows.

    clouds: (K, m J, d) people of each window, equally many: curves are read at J times of it, which
    are spread evenly over its moments.  start: (m, K, d) where each curve is there, roughly.
    bending: weight of squared second differences.
    still: (d,) coordinates that never change: curves are constant there.
    """
    windows, total, d = clouds.shape
    readings = total // len(start)
    shares, times = (np.arange(readings) + 0.5) / readings, np.empty((windows, readings))
    for k, row in enumerate(times):
        inside = moments[window_of_moment == k]
        row[:] = np.interp(shares * len(inside) - 0.5, np.arange(len(inside)), inside)
    knots = knots_of(moments, window_of_moment)
    basis, middle = hat_functions(times.ravel(), knots), hat_functions(times.mean(axis=1), knots)
    rigid = penalty(windows + 1, bending, ACTION)
    smooth = np.linalg.solve(basis.T @ basis / readings + rigid, basis.T / readings)
    first = np.linalg.solve(middle.T @ middle + rigid, middle.T)
    control, distances = first @ start, []
    for _ in range(ROUNDS):
        points = np.tensordot(basis, control, (1, 1)).reshape(windows, total, d)
        # margins along a random basis become those of the clouds
        axes, _ = np.linalg.qr(rng.standard_normal((windows, d, d)))
        along, wanted = points @ axes, np.sort(clouds @ axes, axis=1)
        reached = np.empty_like(along)
        np.put_along_axis(reached, np.argsort(along, axis=1), wanted, axis=1)
        carried = points + (reached - along) @ np.swapaxes(axes, 1, 2)
        distances.append(np.mean(np.sum((carried - points) ** 2, axis=2)))
        at_readings = carried.reshape(windows * readings, total // readings, d)
        control = np.tensordot(smooth, at_readings, 1).swapaxes(0, 1)
        if still is not None:
            control[:, :, still] = control[:, :, still].mean(axis=1, keepdims=True)
    return np.clip(control, 0.0, 1.0), float(np.mean(distances[ROUNDS // 2 :]))


def knots_of(moments: Floats, window_of_moment: Ints) -> Floats:
    """(K + 1,) the first moment, the middle between neighbouring windows, the last moment."""
    cuts = np.flatnonzero(np.diff(window_of_moment))
    middles = (moments[cuts] + moments[cuts + 1]) / 2
    return np.concatenate([moments[:1], middles, moments[-1:]])


def penalty(knots: int, bending: float, action: float) -> Floats:
    """Quadratic form (knots, knots) of weighted squared second and first differences."""
    first = np.diff(np.eye(knots), axis=0)
    second = np.diff(np.eye(knots), 2, axis=0)
    form: Floats = bending * second.T @ second + action * first.T @ first
    return form
