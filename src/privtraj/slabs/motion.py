"""How people move, from noisy counts of coarse cells over time. All of it is post-processing.

Statistics.  Counts (F, g^d) of F time bins give, for every feature, the path of the mean and of the
second moment, each with noise of known variance. A change of a mean by D is a squared W2 of D^2, a
change of the second moment by D is one of (D / 2 s)^2 for people of standard deviation s.

Energy.  A path is  y(t) = a_0 + sum_f a_f sqrt(2) cos(pi f t) + noise,  and motion is smooth:
    a_f ~ N(0, A f^-p),      a_f hat ~ N(0, A f^-p + v / F),
with A of each path by evidence (the likelihood of the a_f hat). "No motion", A = 0 for all
paths, is preferred unless the evidence of motion is larger by `STILL_PREFERENCE`: what is measured
about motion is shrunk to none by its own noise. What is returned is the posterior mean of a_f^2,
summed over the paths in units of squared W2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privtraj.arrays import Floats, Ints
from privtraj.slabs.constants import ROUGHNESS, SMALLEST_SPREAD, STILL_PREFERENCE

_AMPLITUDES = np.geomspace(1e-6, 1.0, 40)  # of A: from nothing visible to the whole box


class MomentPaths(NamedTuple):
    """S noisy paths over F time bins.

    values: (S, F).  variance: (S,) of the noise of one value.  scale: (S,) squared W2 of a unit
    change.
    """

    values: Floats
    variance: Floats
    scale: Floats


def moment_paths(
    counts: Ints, cells_per_side: int, noise_variance: float, people: float, features: int
) -> MomentPaths:
    """Means and second moments of every feature, from noisy counts (F, cells_per_side ** d).

    noise_variance: of one count.  people: in all bins together, released.
    """
    bins = len(counts)
    per_bin = people / bins
    place = (np.arange(cells_per_side) + 0.5) / cells_per_side - 0.5
    square = place**2 - np.mean(place**2)
    grid = counts.astype(np.float64).reshape(bins, *(cells_per_side,) * features)
    in_margin = noise_variance * cells_per_side ** (features - 1)
    values, variance, scale = [], [], []
    for feature in range(features):
        others = tuple(1 + k for k in range(features) if k != feature)
        margin = grid.sum(axis=others)
        mean, second = margin @ place / per_bin, margin @ square / per_bin
        spread = second.mean() + np.mean(place**2) - mean.mean() ** 2
        values += [mean, second]
        # the last terms: chance, of people spread over a third of the box
        variance += [
            in_margin * np.sum(place**2) / per_bin**2 + 0.05 / per_bin,
            in_margin * np.sum(square**2) / per_bin**2 + 0.01 / per_bin,
        ]
        scale += [1.0, 1 / (4 * max(spread, SMALLEST_SPREAD**2))]
    return MomentPaths(np.array(values), np.array(variance), np.array(scale))


def motion_energy(paths: MomentPaths) -> Floats:
    """(F - 1,) squared W2 of the motion at frequencies 1, 2, ..., posterior mean; 0 for none."""
    bins = paths.values.shape[1]
    basis = cosines(bins)
    amplitude = paths.values @ basis / bins  # (S, F - 1)
    noise = paths.variance / bins
    fits = [_fitted(a, v) for a, v in zip(amplitude, noise, strict=True)]
    if sum(gain for gain, _ in fits) <= STILL_PREFERENCE:
        return np.zeros(bins - 1)
    energy = np.zeros(bins - 1)
    for (_, prior), a, v, scale in zip(fits, amplitude, noise, paths.scale, strict=True):
        kept = prior / (prior + v)
        energy += scale * ((kept * a) ** 2 + kept * v)
    return energy


def cosines(bins: int) -> Floats:
    """sqrt(2) cos(pi f t) at the middles t of the bins: (F, F - 1), orthogonal columns."""
    t = (np.arange(bins) + 0.5) / bins
    return np.sqrt(2) * np.cos(np.pi * np.outer(t, np.arange(1, bins)))


def _fitted(amplitude: Floats, noise: float) -> tuple[float, Floats]:
    """Gain in log evidence over no motion, and the prior variances (F - 1,) that reach it."""
    frequency = np.arange(1.0, len(amplitude) + 1)
    priors = _AMPLITUDES[:, None] * frequency**-ROUGHNESS
    total = priors + noise
    gain = 0.5 * np.sum(amplitude**2 * (1 / noise - 1 / total) - np.log(total / noise), axis=1)
    best = int(np.argmax(gain))
    if gain[best] <= 0:
        return 0.0, np.zeros(len(amplitude))
    return float(gain[best]), priors[best]
