"""How people move, from noisy counts of coarse cells over time. All of it is post-processing.

Statistics.  Counts (F, g^d) of F windows give the paths of the means of some functions phi over the
people, each with noise of known variance v: products of cosines of the features, all of an order up
to that of the cells (and 3), so that means, spreads, correlations and turning groups are seen. A
change of such a mean by D is a squared W2 of D^2 / E |grad phi|^2 at least. Functions have mean 0
over all people together, so that people who stay show none, however many come when; where more
people come, their motion weighs more.

Motion.  A path is smooth: a constant, plus cosines over an interval twice as long as time, so that
nothing is assumed at its ends,
    y(t) = a_0 + sum_f a_f cos(pi f (t + 1/2) / 2),      a_f ~ N(0, A f^-p),
with A of each path by evidence (the likelihood of what was seen). "No motion", A = 0 for all paths,
is preferred unless the evidence of motion is larger by `STILL_PREFERENCE`: what is measured about
motion is shrunk to none by its own noise. What is returned is the second moment of the motion,
    Q(s, t) = sum over paths of  scale E[ y(s) y(t) | seen ],
in units of squared W2, which tells both how fast people move when, and what windows would hide.

Overlooked.  A look at few people shows nothing, whether they move or not, and to take them for
still costs most where they do. So where no motion is seen, Q is that of the usual motion, A =
`USUAL_MOTION` for every path, or of the largest below it that what was seen does not refute: next
to none where people are many.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints

STILL_PREFERENCE = 0.35
"""Log evidence, for each function that is followed, that motion must have over none. Too many
windows cost a factor of 2 where people are still, too few a factor of 7 where they move."""
USUAL_MOTION = 0.25
"""A of every path where a look shows nothing. That of the stand-ins that move is 0.1 to 6, 1 in the
middle; a quarter of it, as people may as well be still. With 0.5 three features lose a half."""
REFUTED = 2.0
"""Log evidence against an amplitude, all paths together, that rules it out; set by hand."""
ROUGHNESS = 4.0
"""p: the energy of a path falls with frequency as f^-p. On the stand-ins 2, as of paths with kinks,
gave twice too many windows, and 3 a third too many."""
MOST_ORDER = 3
"""Of the functions whose means are followed, together over the features; less where cells are few.
Three turning arms are seen by the third."""
SMALLEST_SLOPE = 0.05
"""Of a function, mean square over the people: flatter ones do not tell where anybody goes."""

_AMPLITUDES = np.append(0.0, np.geomspace(1e-6, 100.0, 60))  # of A: from none to the whole box
_FREQUENCIES = 64


class MomentPaths(NamedTuple):
    """S noisy paths over F windows.

    values: (S, F).  variance: (S,) of the noise of one value.  scale: (S,) squared W2 of a unit
    change.
    """

    values: Floats
    variance: Floats
    scale: Floats


def moment_paths(
    counts: Ints, cells_per_side: int, noise_variance: float, people: float, features: int
) -> MomentPaths:
    """Means of functions over the people, from noisy counts (F, cells_per_side ** d).

    noise_variance: of one count.  people: in all windows together, released.
    """
    # phi and |grad phi|^2 (S, cells) of S products of cosines, of order 1 to MOST_ORDER
    most = min(cells_per_side - 1, MOST_ORDER)
    at = (np.arange(cells_per_side) + 0.5) / cells_per_side
    turn = np.pi * np.arange(most + 1)[:, None]
    wave, slope = np.cos(turn * at), -turn * np.sin(turn * at)  # (order, cells of a side)
    cells = np.indices((cells_per_side,) * features).reshape(features, -1)
    functions, squared_slopes = [], []
    for order in product(range(most + 1), repeat=features):
        if not 0 < sum(order) <= most:
            continue
        waves = wave[np.array(order)[:, None], cells]  # (d, cells)
        slopes = slope[np.array(order)[:, None], cells]
        functions.append(np.prod(waves, axis=0))
        parts = np.empty_like(waves)
        for axis in range(features):
            parts[axis] = slopes[axis] * np.prod(np.delete(waves, axis, axis=0), axis=0)
        squared_slopes.append(np.sum(np.square(parts), axis=0))
    phi = np.array(functions)
    per_window = people / len(counts)
    in_cell = np.maximum(counts.sum(axis=0), 0.0)
    share = in_cell / max(in_cell.sum(), 1.0)
    scale = 1 / np.maximum(np.array(squared_slopes) @ share, SMALLEST_SLOPE)
    phi = phi - (phi @ share)[:, None]  # so that more people at a time are no motion
    values = counts @ phi.T / per_window  # (F, S)
    square = phi**2
    chance = square @ share / per_window
    variance = noise_variance * square.sum(axis=1) / per_window**2 + chance
    return MomentPaths(values.T, variance, scale)


def motion(paths: MomentPaths, moments: Floats, window_of_moment: Ints) -> Floats:
    """Q (M, M) at moments (M,) in [0, 1], seen as means over F windows of them; 0 for none."""
    look = _Look.at(paths, moments, window_of_moment)
    gains, waves = look.gains, look.waves
    best = gains.argmax(axis=1)
    total = np.zeros((len(moments), len(moments)))
    if gains.max(axis=1).sum() <= STILL_PREFERENCE * len(gains):
        return total
    both = waves @ look.seen.T @ look.directions  # (M, F - 1)
    each = zip(_AMPLITUDES[best], look.along.T, paths.variance, paths.scale, strict=True)
    for a, one, v, scale in each:
        kept = a / (a * look.strength + v)
        mean = both @ (kept * one)
        unknown = a * waves @ waves.T - (both * (a * kept)) @ both.T
        total += scale * (np.outer(mean, mean) + unknown)
    return total


def overlooked(paths: MomentPaths, moments: Floats, window_of_moment: Ints) -> Floats:
    """Q (M, M) of the usual motion, as far as it is not refuted by what was seen."""
    look = _Look.at(paths, moments, window_of_moment)
    gain = look.gains.sum(axis=0)
    possible = _AMPLITUDES[(gain >= -REFUTED) & (_AMPLITUDES <= USUAL_MOTION)]
    usual: Floats = possible[-1] * paths.scale.sum() * look.waves @ look.waves.T
    return usual


class _Look(NamedTuple):
    """What was seen along the axes on which noise and motion are independent.

    waves: (M, f) cosines over twice the time, weighed by how fast energy falls with frequency.
    seen: (F - 1, f) from waves to contrasts of windows.  strength: (F - 1,) of motion of A = 1
    along the directions (F - 1, F - 1).  along: (F - 1, S) of the paths.
    gains: (S, amplitudes) log evidence of every A over that of no motion.
    """

    waves: Floats
    seen: Floats
    strength: Floats
    directions: Floats
    along: Floats
    gains: Floats

    @classmethod
    def at(cls, paths: MomentPaths, moments: Floats, window_of_moment: Ints) -> _Look:
        frequency = np.arange(1.0, _FREQUENCIES + 1)
        cosines = np.cos(np.pi / 2 * np.outer(moments + 0.5, frequency))
        waves = cosines * frequency ** (-ROUGHNESS / 2)
        windows = len(paths.values[0])
        t = (np.arange(windows) + 0.5) / windows
        # orthonormal rows, orthogonal to the constant, which is left out of what is seen
        change = np.sqrt(2 / windows) * np.cos(np.pi * np.outer(np.arange(1, windows), t))
        seen = change @ window_means(window_of_moment) @ waves
        strength, directions = np.linalg.eigh(seen @ seen.T)
        along = directions.T @ change @ paths.values.T
        noise = paths.variance[:, None, None]
        total = _AMPLITUDES[None, :, None] * strength + noise
        energy = along.T[:, None, :] ** 2
        gains = 0.5 * np.sum(energy * (1 / noise - 1 / total) - np.log(total / noise), axis=2)
        return cls(waves, seen, strength, directions, along, gains)


def window_means(window_of_moment: Ints) -> Floats:
    """(F, M) the mean over the moments of each window, as a matrix."""
    windows = np.arange(window_of_moment[-1] + 1)
    inside = (window_of_moment[None] == windows[:, None]).astype(np.float64)
    means: Floats = inside / inside.sum(axis=1, keepdims=True)
    return means
