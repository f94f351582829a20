"""Counts averaged over time, as far as the counts themselves say that people stay.

A cell's people over T times are a level and a random walk about it, in shares of each time's
people; for all cells of one size the walk has one amplitude A, in units of their noise:
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
and b^2 times the squared change, so A of the cells is at least that of the blocks over b. All of it
is post-processing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from privtraj.base.arrays import Floats
from privtraj.measures.counts.constants import CAUTION, SHORTEST_GAP

_AMPLITUDES = np.append(0.0, np.geomspace(1e-2, 1e6, 25))  # of the slowest mode, in its noise


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


def no_average(times: int) -> TimeAverage:
    """Every time by itself."""
    return TimeAverage(np.eye(times), np.ones(times))


def time_average(
    counts: Floats, noise_variance: float, people: Floats, gaps: Floats, least: float = 0.0
) -> TimeAverage:
    """The average that noisy counts (T, n) of people (T,) suggest, `gaps` (T - 1,) apart.

    noise_variance: of one count; chance adds the cell's mean count to it.  gaps: in any unit.
    least: amplitude that blocks of these cells have shown.
    """
    if len(counts) == 1:
        return no_average(1)
    size = people / people.mean()
    steps = np.diff(np.eye(len(people)), axis=0)
    form = steps.T @ (steps / np.maximum(gaps / gaps.mean(), SHORTEST_GAP)[:, None])
    rates, modes = eigh(form, np.diag(size**2))
    found = modes.T @ (size[:, None] * counts)  # modes of c_t / size_t, weighed by l_t
    level = found[0] / np.sqrt((size**2).sum()) * np.sign(modes[0, 0])
    energy = found[1:] ** 2 / (noise_variance + np.maximum(level, 0.0))
    weights = level if level.sum() > 0 else np.ones_like(level)
    slowness = rates[1] / rates[1:]
    amplitude = max(_likely_amplitude(slowness, energy @ weights, weights.sum()), least)
    signal = CAUTION * amplitude * slowness
    kept = (modes * np.append(1.0, signal / (1 + signal))) @ modes.T
    return TimeAverage(size[:, None] * kept * size, 1 / (np.diag(kept) * size**2), amplitude)


def _likely_amplitude(slowness: Floats, energy: Floats, weight: float) -> float:
    """A of the slowest mode, from the energy (T - 1,) of the modes and the weight of all cells."""
    signal = _AMPLITUDES[:, None] * slowness
    evidence = (energy * signal / (1 + signal) - weight * np.log1p(signal)).sum(axis=1)
    return float(_AMPLITUDES[np.argmax(evidence)])
