"""Which windows of time are measured, by private looks at when people are and how they move.

Listed times.  A list of times may mean "read the model then", or that people were recorded at these
times only, as cells that are sequenced on five days. One small private count tells: how many
records are close to a listed time, within `CLOSE` of the gap, and how many are not. Two integers,
and a record is in one of them (a window of the guard may have many pieces).

Windows.  A window is a run of neighbouring moments that are measured as one. Curves through K
windows (`over_time`) hide of a motion y what no such curve shows, R y, and every window has noise.
The squared W2 to expect is
    E(K) = hidden(K)  +  c V K / (people epsilon),      hidden = tr(R Q R') / M,
V the variance of the people and Q the second moment of their motion. The windows are those with
the least expected W2: the mean of sqrt(E) over what the motion may be, given a private look. Then
the bending of the curves has the least expected W2 as well: with S (M, K), which makes curves of
the means of windows, they share |S|^2 / M of the noise, and hide more the stiffer they are. Where
every listed time is a window, nothing is hidden without curves: these join the windows only where
the noise that they share is worth more than what they hide.

The look.  Counts (F, g^d) of coarse cells over F bins of time show how means of functions phi of
the features, products of cosines, change with time. For small motion squared W2 is the largest
(change of the mean of f)^2 / E |grad f|^2 over all functions f, that is D' G^-1 D for changes D of
the means of phi and G = E grad phi . grad phi'. So the functions are turned into S others, of unit
G and with independent noise of variance v_s: a change of each of them is a distance. A function of
order k changes k times as fast as people who travel far, while their curves do not: its changes
count by k^-`DISCOUNT`. Functions have mean 0 over all people together, so that people who stay show
none, however many come when.

What the motion may be.  People rest, or each of the S paths moves with chance 1/2,
    y(t) = a_0 + sum_f a_f cos(pi f (t + 1/2) / 2),      a_f ~ N(0, A spectrum_f),
cosines over twice the time, so that nothing is assumed at its ends. Energies A, of which rest is
one, and spectra (paths that are smooth, or have kinks or jumps; oscillations of any frequency) are
equally likely before the look. Its likelihood says how likely they are after it. Where it shows
little, all stay likely, and windows that are never terrible win.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.space import Slabs, TimeAxis, bin_edges, hat_functions, unit_time
from privtraj.measures.over_time import ACTION, USUAL_BENDING, knots_of, penalty
from privtraj.privacy.events import LaplaceCounts
from privtraj.privacy.guard import CellCounts, Guard, Laplace, Release
from privtraj.privacy.noise import laplace_variance

# Constants, and the loss that each trades. "Regret" is that of benchmarks/regret.py, seeds < 300.
LISTED, LISTED_SHARE = "people at the listed times", 0.01
"""A release, and its share of epsilon: some hundred people show whether they are at these."""
CLOSE = 0.05
"""How close to a listed time, in shares of the gap; people at any time are there with a tenth."""
MOMENTS = 241
"""Moments that stand for continuous time; windows are runs of them."""
MOST_LISTED, MOST_WINDOWS = MOMENTS, 100
"""Times of interest that may be those of the people, and windows of continuous time."""
MOTION, MOTION_SHARE = "how people move", 0.12
"""A release, and its share of epsilon: noise of all that follows against windows that are wrong. .1
to .15 have the same regret, .06 has 10 % more."""
LOOK_SIDES = {1: 8, 2: 4, 3: 4}
"""Cells per side of the look, by features; 2 for more. Finer cells see smaller shapes turn, through
more noise: 6 in the plane have 8 % more regret, 3 of three features 10 %."""
MOST_LOOKED = 14
"""Features up to which there is a look: 2^d cells of so many hide any motion in their noise."""
LOOK_BINS = 32
"""Most time bins of the look: 16 miss oscillations, at 5 % more regret."""
MOST_ORDER = 4
"""Of the functions, together over the features; 2 where cells are 2 a side. 3, 6: the same."""
DISCOUNT = 0.7
"""Power of the order by which distances are divided: 0 and .5 have the same regret, 1 has 10 % more
and misses shapes that turn; three modes, which travel far, get 29 windows, 23 and 7 for 12."""
ENERGIES = np.geomspace(0.01, 1.0, 5)
"""Of motion, in shares of the variance of the people: less is as good as rest."""
POWERS, BANDS = (1.0, 2.0, 4.0), 2.0 * 1.7 ** np.arange(7)
"""Spectra f^-p, and those around a frequency, as wide as half the way to the next. Without the
bands oscillation is taken for rest."""
USUAL_VARIANCE = 0.03
"""V of people of whom the look shows nothing, in squared boxes, and how much it varies."""
WINDOW_NOISE = 0.5
"""c, for each squared feature: twice as much has 4 % more regret in the plane and 7 % in three
numbers, half as much the same. Errors over windows have slopes of 5 and 15 there, and of 30 to 100
in four to eight: a look at few people shows less motion than there is."""
BENDINGS = 4.0 ** np.arange(-5, 4)
"""Of curves, of which one is chosen."""
MOST_READ = 33
"""Times of interest at which curves are kept; all of 600 would take a minute to couple."""
_APART = 1e-6  # share of the range at which two knots are apart
FEWEST_WINDOWS = 2  # curves need two ends
LIKELY = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Quantiles of what motion may be hidden, five cases that are equally likely."""

_FREQUENCIES = np.arange(1.0, 65.0)
_HALF_WAY = (BANDS[1] / BANDS[0] - 1) / 2
_SPECTRA = [
    *(_FREQUENCIES**-p for p in POWERS),
    *(np.exp(-0.5 * ((_FREQUENCIES / f - 1) / _HALF_WAY) ** 2) for f in BANDS),
]
_RIDGE = 0.01  # of G, in its mean eigenvalue: functions that hardly vary where people are


@dataclass(frozen=True, eq=False)
class Resolution(Slabs):
    """K windows of time that are measured, each a run of neighbouring moments.

    moments: (M,) in data units.  listed: people are at the moments alone; otherwise they are at any
    time, and the moments, even and close together, stand for all of it.
    of_moment: (M,) 0, .., 0, 1, .., K - 1.
    choice: why so many; None if somebody set their number, or nobody could look.

    What follows: time is cut half way between the last moment of a window and the first of the
    next.  unit_moments: (M,) in shares of the range.  centres: (K,) mean moment of each window, in
    shares of the range.  middles: (K,) the same in data units.  lengths: (K,) how much time a
    window covers, in data units; or how many of the listed times.  need_curves: whether people of a
    window are of several times, or windows of one listed time each are better with curves.
    """

    edges: Floats = field(init=False)
    slab_of_piece: Ints = field(init=False)
    moments: Floats
    listed: bool
    of_moment: Ints
    choice: WindowChoice | None = None
    unit_moments: Floats = field(init=False)
    centres: Floats = field(init=False)
    middles: Floats = field(init=False)
    lengths: Floats = field(init=False)
    need_curves: bool = field(init=False)

    def __post_init__(self) -> None:
        moments, held = self.moments, np.bincount(self.of_moment)
        start, end = moments[[0, -1]]
        edges = bin_edges(moments)[np.flatnonzero(np.diff(self.of_moment))]
        unit = unit_time(moments, moments)
        centres = np.bincount(self.of_moment, unit) / held
        covered = np.diff(np.concatenate([moments[:1], edges, moments[-1:]]))
        follows = {
            "edges": edges,
            "slab_of_piece": np.arange(len(held)),
            "unit_moments": unit,
            "centres": centres,
            "middles": start + centres * (end - start),
            "lengths": held.astype(np.float64) if self.listed else covered,
            "need_curves": not self.listed
            or len(held) < len(moments)
            or (self.choice is not None and len(self.choice.stiffer) > 0),
        }
        for name, value in follows.items():
            object.__setattr__(self, name, value)

    def since(self, first: int) -> Resolution:
        """The windows from this one on."""
        some = self.of_moment >= first
        return replace(self, moments=self.moments[some], of_moment=self.of_moment[some] - first)

    def knots(self, times: Floats) -> Floats:
        """Times of a model's curves: the ends, the edges of windows, and those of interest (T,).

        Between the edges of windows curves are straight, so of many times of interest a part will
        do. Few listed times, if people are at these alone, are all there is.
        """
        if self.listed and len(times) <= MOST_READ:
            return times
        ends, edges = self.moments[[0, -1]], self.edges
        some = np.linspace(0, len(times) - 1, min(len(times), MOST_READ)).round().astype(int)
        made, read = np.sort(np.append(edges, ends)), times[some]
        apart = np.abs(made[:, None] - read).min(axis=1) > _APART * np.ptp(ends)
        return np.sort(np.append(made[apart], read))

    def around_edges(self) -> Floats:
        """The ends, and just before and just after the edge between two windows."""
        ends = self.moments[[0, -1]]
        both = self.edges[:, None] + _APART * np.ptp(ends) * np.array([-1, 1])
        return np.concatenate([ends[:1], both.ravel(), ends[1:]])

    def describe(self) -> str:
        """For a certificate."""
        windows = f"{self.count} windows"
        if self.choice is not None:
            hidden, noise = self.choice.motion, self.choice.noise
            windows += f", which hide a motion of {hidden:.1g} and cost a noise of {noise:.1g} "
            windows += "(expected squared W2, in shares of the box)"
        people = "at the listed times" if self.listed else "at any time"
        return f"{windows}; people are {people}"


def may_be_listed(axis: TimeAxis) -> bool:
    """Whether people may be at the times of interest alone, so that it is worth asking."""
    return axis.declared and len(axis.times) <= MOST_LISTED


def moments_of(
    guard: Guard, axis: TimeAxis, event: LaplaceCounts | None, whole_bins: bool
) -> tuple[Floats, bool, int]:
    """Moments (M,) of which windows are made, whether people are at these alone, and how many
    windows they make at most.

    event: as which it is asked whether most people are close to a listed time; None where no times
    are listed, or for a budget that is too small to ask.
    whole_bins: windows must be made of whole bins, whoever is there.
    """
    listed = False
    if event is not None:
        release = Release(CellCounts(1), Laplace(event.epsilon), event.what)
        between, close = guard.in_slabs(close_to(axis.times)).ask(release)[:, 0]
        listed = bool(close > between)
    start, end = axis.range
    moments = axis.times if listed or whole_bins else np.linspace(start, end, MOMENTS)
    return moments, listed, len(moments) if listed else min(len(moments), MOST_WINDOWS)


def close_to(times: Floats) -> Slabs:
    """Window 1: all that is close to one of the times (T,); window 0: the rest."""
    gaps = np.diff(times)
    near = CLOSE * np.minimum(np.append(gaps[0], gaps), np.append(gaps, gaps[-1]))
    edges = np.stack([times - near, times + near], axis=1).ravel()
    return Slabs(edges, np.arange(len(edges) + 1) % 2)


def even_windows(moments: int, windows: int) -> Ints:
    """(M,) number of the window of each moment: runs of equal length, up to one."""
    return np.arange(moments) * windows // moments


class WindowChoice(NamedTuple):
    """Windows (M,) of the moments, and why: squared W2 to expect from motion and from noise.

    variance: of all people, in squared boxes.  hidden: that of motion at the quantiles `LIKELY`.
    stiffer: (B, 3) of curves, the best first, as `bendings` has them; none where windows are better
    without curves.
    """

    of_moment: Ints
    motion: float
    noise: float
    variance: float
    hidden: Floats
    stiffer: Floats


class Look(NamedTuple):
    """S independent paths over F bins of time, whose unit is a distance; and what else was seen.

    values: (S, F).  noise: (S,) v_s.  people: at all times.  variance: V, of all of them.
    """

    values: Floats
    noise: Floats
    people: float
    variance: float


class Motions(NamedTuple):
    """What the motion may be: chances (H,), and Q (H, M, M) at the M moments if it is that."""

    chances: Floats
    squares: Floats


def look_at_motion(
    guard: Guard, event: LaplaceCounts, moments: Floats, listed: bool, features: int, most: int
) -> WindowChoice:
    """The windows, `most` at most, by coarse counts over time, paid for as the event.

    features: in how many windows will be measured, which may not be those of the look.
    """
    unit = unit_time(moments, moments)
    count = min(len(moments), LOOK_BINS)
    if listed:  # people of bins with one and two times by turns would seem to go to and fro
        count = -(-len(moments) // -(-len(moments) // LOOK_BINS))
    bins = even_windows(len(moments), count)
    seen = look(guard.in_slabs(Resolution(moments, listed, bins)), event)
    if listed:  # the last bins may have a time less
        times = np.bincount(bins)
        seen = seen._replace(values=seen.values * times.mean() / times)
    noise = WINDOW_NOISE * features**2 * seen.variance
    per_window = noise / (seen.people * guard.ledger.epsilon)
    motions = possible_motions(seen, unit, bins)
    choice = choose_windows(motions, unit, seen.variance, per_window, most, listed)
    each = listed and choice.of_moment[-1] + 1 == len(moments)
    if each and guard.n_features not in LOOK_SIDES:
        # two cells a side tell V, and with it noise, to a factor of ten: no reason for curves
        choice = choice._replace(stiffer=choice.stiffer[:0])
    return choice


def look(guard: Guard, event: LaplaceCounts) -> Look:
    """What coarse counts in the guard's windows show, paid for as the event."""
    side = LOOK_SIDES.get(guard.n_features, 2)
    counts = guard.ask(Release(CellCounts(side), Laplace(event.epsilon), event.what))
    return looked(counts, side, guard.n_features, laplace_variance(event.epsilon))


def looked(counts: Ints | Floats, side: int, features: int, noise_variance: float) -> Look:
    """What noisy counts (F, side ** features) show; noise_variance: of one count."""
    from scipy.linalg import eigh

    bins, cells = len(counts), np.indices((side,) * features).reshape(features, -1)
    at = (np.arange(side) + 0.5) / side
    most = MOST_ORDER if side > 2 else 2
    turn = np.pi * np.arange(min(most, side - 1) + 1)[:, None]
    wave, slope = np.cos(turn * at), -turn * np.sin(turn * at)  # (order, cells of a side)
    functions, gradients, orders = [], [], []
    for order in product(range(len(turn)), repeat=features):
        if not 0 < sum(order) <= most:
            continue
        waves = wave[np.array(order)[:, None], cells]  # (d, cells)
        slopes = slope[np.array(order)[:, None], cells]
        functions.append(np.prod(waves, axis=0))
        orders.append(sum(order))
        parts = np.empty_like(waves)
        for axis in range(features):
            parts[axis] = slopes[axis] * np.prod(np.delete(waves, axis, axis=0), axis=0)
        gradients.append(parts)

    in_cell, noise_of_cell = counts.sum(axis=0), bins * noise_variance
    people = max(float(in_cell.sum()), 2.0 * bins, 100.0)
    clear = np.maximum(in_cell - noise_of_cell**0.5, 0.0)
    share = clear / clear.sum() if clear.any() else np.full(len(clear), 1 / len(clear))
    place = at[cells]
    squared = np.sum((place - (place @ share)[:, None]) ** 2, axis=0)
    unsure = noise_of_cell * float(squared @ squared) / people**2
    known = USUAL_VARIANCE**2 / (USUAL_VARIANCE**2 + unsure)
    variance = known * float(in_cell @ squared) / people + (1 - known) * USUAL_VARIANCE

    phi, grad = np.array(functions), np.array(gradients)
    phi = phi - (phi @ share)[:, None]  # so that more people at a time are no motion
    per_bin = people / bins
    noise = (phi * (noise_variance + share * per_bin)) @ phi.T / per_bin**2
    gram = np.einsum("sdc,tdc->st", grad * share, grad)
    gram *= np.outer(orders, orders) ** DISCOUNT
    gram += _RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    of_path, turned = eigh(noise, gram)
    return Look((counts @ phi.T / per_bin @ turned).T, of_path, people, max(variance, 0.003))


def possible_motions(look: Look, moments: Floats, bin_of_moment: Ints) -> Motions:
    """Chances and second moments of motions at moments (M,) in [0, 1], given the look."""
    paths, bins = look.values.shape
    energies = 2 * ENERGIES * look.variance / paths  # of a path: half of them move
    t = (np.arange(bins) + 0.5) / bins
    # orthonormal rows, orthogonal to the constant, which is left out of what is seen
    change = np.sqrt(2 / bins) * np.cos(np.pi * np.outer(np.arange(1, bins), t))
    cosines = np.cos(np.pi / 2 * np.outer(moments + 0.5, _FREQUENCIES))
    noise = look.noise[:, None]
    evidence = [np.log(len(_SPECTRA))]  # rest is one more energy, of no spectrum
    second = [np.zeros((len(moments),) * 2)]
    for spectrum in _SPECTRA:
        waves = cosines * np.sqrt(2 * spectrum / spectrum.sum())  # of mean square 1
        seen = change @ window_means(bin_of_moment) @ waves
        strength, directions = np.linalg.eigh(seen @ seen.T)
        along = look.values @ change.T @ directions  # (S, F - 1)
        both, before = waves @ seen.T @ directions, waves @ waves.T
        for energy in energies:
            total = energy * np.maximum(strength, 0.0) + noise
            gain = 0.5 * np.sum(along**2 * (1 / noise - 1 / total) - np.log(total / noise), axis=1)
            either = np.logaddexp(0.0, gain) - np.log(2)
            moves = np.exp(gain - either)[:, None] / 2  # chance that a path does
            kept = energy / total
            mean = np.sqrt(moves) * kept * along
            less = mean.T @ mean - np.diag(energy * np.sum(moves * kept, axis=0))
            evidence.append(float(either.sum()))
            second.append(both @ less @ both.T + energy * moves.sum() * before)
    chances = np.exp(np.array(evidence) - max(evidence))
    return Motions(chances / chances.sum(), np.array(second))


def choose_windows(
    motions: Motions,
    moments: Floats,
    variance: float,
    per_window: float,
    most: int,
    listed: bool = False,
) -> WindowChoice:
    """The windows with the least expected W2: all numbers up to 6, then in steps of a quarter.

    moments: (M,) in [0, 1].  variance: of the people; no motion hides more.  per_window: noise.
    """
    numbers = np.append(np.arange(FEWEST_WINDOWS, 6), np.round(6 * 1.25 ** np.arange(40)))
    clock = even_motion(np.tensordot(motions.chances, motions.squares, 1), moments)
    best, least = None, np.inf
    for wanted in np.unique(np.minimum(numbers, most)).astype(int).tolist():
        windows = windows_of(clock, wanted)
        hidden = unseen(motions.squares, moments, windows, variance)
        noise = (windows[-1] + 1) * per_window
        loss = float(motions.chances @ np.sqrt(hidden + noise))
        if loss < least:
            best, least = (windows, noise, hidden), loss
    assert best is not None
    windows, noise, hidden = best
    mean, cases = float(motions.chances @ hidden), likely(hidden, motions.chances)
    stiffer = bendings(motions, moments, windows, variance, noise, listed)
    return WindowChoice(windows, mean, noise, variance, cases, stiffer)


def bendings(
    motions: Motions,
    moments: Floats,
    window_of_moment: Ints,
    variance: float,
    noise: float,
    listed: bool = False,
) -> Floats:
    """(B, 3) bendings of curves from the one with the least expected W2 on, each with the squared
    distance from the windows that noise explains: that of  m - S m  for means m that are noise; and
    with the share |S|^2 / M of the noise that curves have.
    None, (0, 3), where every listed time is a window and all curves are expected to hide more than
    they share of the noise.

    noise: of the windows, before curves share it.  listed: people are at the moments alone.
    """
    rows, losses, means = [], [], window_means(window_of_moment)
    for bending in BENDINGS.tolist():
        curves = curves_of_means(moments, window_of_moment, bending)
        left = noise * float(np.square(np.eye(len(means)) - means @ curves).sum()) / len(means)
        shared = float(np.square(curves).sum()) / len(moments)
        hidden = unseen(motions.squares, moments, window_of_moment, variance, curves)
        rows.append((bending, left, shared))
        losses.append(float(motions.chances @ np.sqrt(hidden + noise * shared)))
    if listed and len(means) == len(moments) and min(losses) >= noise**0.5:
        rows = []
    return np.array(rows[int(np.argmin(losses)) :]).reshape(-1, 3)


def likely(hidden: Floats, chances: Floats) -> Floats:
    """The quantiles `LIKELY` of values (H,) that have these chances."""
    order = np.argsort(hidden)
    below = np.cumsum(chances[order]) - chances[order] / 2
    return np.interp(LIKELY, below, hidden[order])


def hidden_unlooked(moments: int, windows: int) -> Floats:
    """The quantiles `LIKELY` where nobody looked, of even windows of so many moments."""
    when, bins = np.linspace(0, 1, moments), even_windows(moments, min(moments, LOOK_BINS))
    nothing = Look(np.zeros((1, int(bins[-1]) + 1)), np.full(1, 1e6), 1.0, USUAL_VARIANCE)
    motions, of_moment = possible_motions(nothing, when, bins), even_windows(moments, windows)
    return likely(unseen(motions.squares, when, of_moment, USUAL_VARIANCE), motions.chances)


def even_motion(motion: Floats, moments: Floats) -> Floats:
    """(M,) a clock from 0 to 1 on which windows are equally long, for motion Q (M, M).

    Where people move at speed v, a window of width w hides v^2 w^2 / 12 and has noise of 1 / w: the
    sum over time is least for windows of density 1 / w ~ (v^2)^(1/3). Half of the clock is time
    itself, so that no window is so narrow that it holds next to nobody.
    """
    squared_steps = np.diff(np.diff(motion, axis=0), axis=1).diagonal()  # E (y_i+1 - y_i)^2
    density = np.cbrt(np.maximum(squared_steps, 0.0) / np.diff(moments) ** 2)
    at_moment = np.append(density[:1], density) + np.append(density, density[-1:])
    at_moment = at_moment + max(float(at_moment.mean()), 1e-12)
    passed = np.cumsum(at_moment) - at_moment / 2
    clock: Floats = passed / at_moment.sum()
    return clock


def windows_of(clock: Floats, windows: int) -> Ints:
    """(M,) number of the window of each moment, equally long on the clock; none is empty."""
    numbers = np.minimum((clock * windows).astype(np.int64), windows - 1)
    if windows >= len(clock):
        numbers = np.arange(len(clock))
    return np.unique(numbers, return_inverse=True)[1]


def unseen(
    motion: Floats,
    moments: Floats,
    window_of_moment: Ints,
    variance: float,
    curves: Floats | None = None,
) -> Floats:
    """Squared W2 (...) that windows hide of motions Q (..., M, M): v h / (v + h), which is no more
    than the variance v of the people, of h = tr(R Q R') / M, the mean square of what the curves
    through the means of windows do not show.

    curves: S (M, K); None for those of `USUAL_BENDING`, by which the number of windows is chosen,
        as stiffer ones through many would have next to no noise, but people who are few in each are
        lost; or for none where every window is a moment.
    """
    count = len(moments)
    if curves is None:
        if window_of_moment[-1] + 1 == count:
            return np.zeros(motion.shape[:-2])
        curves = curves_of_means(moments, window_of_moment, USUAL_BENDING)
    rest = np.eye(count) - curves @ window_means(window_of_moment)  # R
    hidden: Floats = np.maximum(np.tensordot(motion, rest.T @ rest, 2) / count, 0.0)
    return variance * hidden / (variance + hidden)


def curves_of_means(moments: Floats, window_of_moment: Ints, bending: float) -> Floats:
    """S (M, K): curves at the moments, of the means of windows."""
    basis = hat_functions(moments, knots_of(moments, window_of_moment))
    in_window = window_means(window_of_moment) @ basis
    normal = in_window.T @ in_window + penalty(in_window.shape[1], bending, ACTION)
    curves: Floats = basis @ np.linalg.solve(normal, in_window.T)
    return curves


def window_means(window_of_moment: Ints) -> Floats:
    """(F, M) the mean over the moments of each window, as a matrix."""
    windows = np.arange(window_of_moment[-1] + 1)
    inside = (window_of_moment[None] == windows[:, None]).astype(np.float64)
    means: Floats = inside / inside.sum(axis=1, keepdims=True)
    return means


class Ends(NamedTuple):
    """Knots of curves: the middles of windows, and both ends of time where these are farther.

    before, after: how far an end is from the nearest middle, in gaps between middles; 0 for none.
    """

    knots: Floats
    before: float
    after: float

    @classmethod
    def of(cls, windows: Resolution) -> Ends:
        """In data units."""
        middles = windows.middles
        first, last = windows.moments[[0, -1]]
        before = float((middles[0] - first) / (middles[1] - middles[0]))
        after = float((last - middles[-1]) / (middles[-1] - middles[-2]))
        knots = [*([first] if before > 0 else []), *middles, *([last] if after > 0 else [])]
        return cls(np.array(knots), before, after)

    def reached(self, values: Floats) -> Floats:
        """Values (S, ...) at the middles, at all knots: they go on as between the last two."""
        parts = [values]
        if self.before > 0:
            parts.insert(0, values[:1] + self.before * (values[:1] - values[1:2]))
        if self.after > 0:
            parts.append(values[-1:] + self.after * (values[-1:] - values[-2:-1]))
        return np.concatenate(parts)
