"""What noisy counts say of each other, over time and over space, before any of them is taken for
people. Everything here is post-processing of released numbers.

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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats

CAUTION = 4.0  # times the estimated motion: 1 blurs people who move, 4, 8 and 32 do not, and 4
# averages most; on stand-ins, three or four seeds, 2026-11-16
_AMPLITUDES = np.append(0.0, np.geomspace(1e-2, 1e6, 25))  # of the slowest mode, in its noise


class TimeModes(NamedTuple):
    """Modes of counts (T, ...) over time, in which noise is independent and of one variance.

    size: (T,) people of each time over their mean.  modes: (T, T), from the level, which has every
    time's share, to what changes fastest.  rates: (T,) w_f.
    """

    size: Floats
    modes: Floats
    rates: Floats

    @classmethod
    def of(cls, people: Floats, gaps: Floats | None) -> TimeModes:
        """Of people (T,) at times `gaps` (T - 1,) apart, in any unit; None: each time by itself."""
        size = people / people.mean()
        if gaps is None or len(people) == 1:
            return cls(np.ones(len(people)), np.eye(len(people)), np.zeros(len(people)))
        from scipy.linalg import eigh

        steps = np.diff(np.eye(len(people)), axis=0)
        form = steps.T @ (steps / (gaps / gaps.mean())[:, None])
        rates, modes = eigh(form, np.diag(size**2))
        return cls(size, modes, rates)

    def seen(self, counts: Floats) -> Floats:
        """Counts (T, ...) in the modes: those of c_t / size_t, weighed by l_t."""
        return np.tensordot(self.modes.T * self.size, counts, 1)

    def back(self, found: Floats) -> Floats:
        """Counts of what is in the modes (T, ...)."""
        return np.tensordot(self.size[:, None] * self.modes, found, 1)


class TimeAverage(NamedTuple):
    """matrix: (T, T) from counts to averages.  draws: (T,) of noise, averaged in each of them.

    amplitude: A of the slowest mode, in its noise.
    """

    matrix: Floats
    draws: Floats
    amplitude: float = 0.0


def time_average(
    counts: Floats, noise_variance: float, over_time: TimeModes, least: float = 0.0
) -> TimeAverage:
    """The average that noisy counts (T, n) suggest.

    noise_variance: of one count; chance adds the cell's mean count to it.  least: amplitude that
    blocks of these cells have shown.
    """
    size, modes, rates = over_time
    if not rates.any():
        return TimeAverage(np.eye(len(counts)), np.ones(len(counts)))
    found = over_time.seen(counts)
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


class Filtered(NamedTuple):
    """counts: (T, side, ...) filtered.  draws: (T, side, ...) of noise averaged in each of them."""

    counts: Floats
    draws: Floats


def filtered(counts: Floats, noise_variance: float, over_time: TimeModes) -> Filtered:
    """Noisy counts (T, side, ...) as Wiener's filter has them.

    noise_variance: of one count; chance adds the mean count of all cells to it.
    """
    from scipy.fft import dct, dctn, idctn

    space, side = tuple(range(1, counts.ndim)), counts.shape[1]
    found = over_time.seen(dctn(counts, axes=space, norm="ortho"))
    frequency = np.sqrt(sum(np.square(along) for along in np.indices(counts.shape[1:])))
    of_time = np.arange(len(counts)) if over_time.rates.any() else np.zeros(len(counts))
    octaves = np.frexp(of_time)[1].reshape(-1, *(1,) * len(space)), np.frexp(frequency)[1]
    band = (octaves[0] * (octaves[1].max() + 1) + octaves[1]).ravel()
    squares = np.bincount(band, found.ravel() ** 2) / np.maximum(np.bincount(band), 1)
    variance = noise_variance + max(float(counts.mean()), 0.0)
    shares = np.maximum(1 - variance / np.maximum(squares, 1e-300), 0.0)
    kept = shares[band].reshape(counts.shape)
    kept[(of_time == 0, *(0,) * len(space))] = 1.0
    # of one draw in every cell:  sum over modes and frequencies of the squared basis and shares
    noise = np.tensordot(np.square(over_time.size[:, None] * over_time.modes), kept**2, 1)
    basis = np.square(dct(np.eye(side), axis=0, norm="ortho"))  # (frequency, cell)
    for _ in space:  # each product moves its axis to the end
        noise = np.tensordot(noise, basis, (1, 0))
    values = idctn(over_time.back(kept * found), axes=space, norm="ortho")
    return Filtered(values, 1 / np.maximum(noise, 1e-300))
