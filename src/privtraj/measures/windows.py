"""Which windows of time are measured, by private looks at when people are and how they move.

Listed times.  A list of times may mean "read the model then", or that people were recorded at these
times only, as cells that are sequenced on five days. One small private count tells: how many
records are close to a listed time, within `CLOSE` of the gap, and how many are not. Two integers,
and a record is in one of them (a window of the guard may have many pieces).

Windows.  A window is a run of neighbouring moments that are measured as one. Where people move at
speed v, a window of width w hides v^2 w^2 / 12 of squared W2, and costs the noise of its people,
c / (n w e) for n people per time; the sum over time is least for windows of
    density 1 / w  ~  (v^2)^(1/3):
short where people move fast. Curves through windows (`curves`) see more than that: what K windows
hide of a motion y is R y, the rest that no such curve shows, and the squared W2 to expect is
    E(K) = u tr(R Q R') / M  +  c K / (people epsilon),
with Q the second moment of the motion (`motion`) and u for motion that the look does not
show. It has its minimum at some K, which is flat: curves undo the blur of a window to second order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.space import Slabs, TimeAxis, bin_edges, hat_functions, unit_time
from privtraj.measures.curves import ACTION, knots_of, penalty
from privtraj.measures.motion import moment_paths, motion, overlooked, window_means
from privtraj.privacy.events import LaplaceCounts
from privtraj.privacy.guard import CellCounts, Guard, Laplace, Release
from privtraj.privacy.noise import laplace_variance

# Constants and what set them. "stand-ins": three modes, bifurcation, growth, double well,
# Ornstein-Uhlenbeck, a still ring, loops as of a pen and groups in three features, 500 to 30,000
# people, two or three seeds, 2026-11-16.
LISTED, LISTED_SHARE = "people at the listed times", 0.01
"""A release, and its share of epsilon: some hundred people show whether they are at these."""
CLOSE = 0.05
"""How close to a listed time, in shares of the gap; people at any time are there with a tenth."""
MOMENTS = 241
"""Moments that stand for continuous time; windows are runs of them."""
MOST_WINDOWS = 100
"""Of continuous time."""
MOTION, MOTION_SHARE = "how people move", 0.06
"""A release, and its share of epsilon: found and missed motion balanced on the stand-ins."""
LOOK_SIDES = {1: 8, 2: 4, 3: 3}
"""Cells per side of the look, by features; 2 for more. Fewest that show means and spreads: noise of
a mean grows with the square root of the number of cells."""
MOST_LOOKED = 14
"""Features up to which there is a look: 2^d cells of so many hide any motion in their noise."""
LOOK_BINS = 32
"""Most time bins of the look: enough to see motion that as many windows could follow."""
UNSEEN_MOTION = 4.0
"""Motion of people over that of the functions that the look follows, which is all it shows: pen
strokes, growth and a double well want so much, three modes and bifurcation hardly mind."""
WINDOW_NOISE = {1: 0.2, 2: 0.5, 3: 8.0}
"""c in  error of a window = c windows / (people epsilon), by features. Slopes of squared W2 against
the number of windows where people hardly move."""
WINDOW_NOISE_OF_GRADIENTS = 8.0
"""The same for more features, which gradients measure. Slopes are 1.4 to 8.6 (4 to 8 features, 440
people at 12 times, epsilon 1). Near the largest on purpose: the look at motion is noisiest here and
takes noise for motion; with 4 a third of the looks asked for 4 windows or more where 2 are best."""
HIDDEN_BENDING = 0.01
"""Bending of the curves by which the number of windows is chosen."""
MOST_READ = 33
"""Times of interest at which curves are kept; all of 600 would take a minute to couple."""
FEWEST_WINDOWS = 2  # curves need two ends


@dataclass(frozen=True, eq=False)
class Windows:
    """K windows of time, which are runs of neighbouring moments.

    moments: (M,) in data units.  listed: people are at the moments alone; otherwise they are at any
    time, and the moments, even and close together, stand for all of it.
    of_moment: (M,) 0, .., 0, 1, .., K - 1.
    choice: why so many; None if somebody set their number, or nobody could look.
    """

    moments: Floats
    listed: bool
    of_moment: Ints
    choice: WindowChoice | None = None

    @property
    def count(self) -> int:
        """K."""
        return int(self.of_moment[-1]) + 1

    @property
    def need_curves(self) -> bool:
        """Whether people of a window are of several times; else every listed time is a window."""
        return not self.listed or self.count < len(self.moments)

    @cached_property
    def unit_moments(self) -> Floats:
        """(M,) in shares of the range."""
        return unit_time(self.moments, self.moments)

    @cached_property
    def centres(self) -> Floats:
        """(K,) mean moment of each window, in shares of the range."""
        return np.bincount(self.of_moment, self.unit_moments) / np.bincount(self.of_moment)

    @property
    def middles(self) -> Floats:
        """(K,) the same in data units."""
        start, end = self.moments[[0, -1]]
        middles: Floats = start + self.centres * (end - start)
        return middles

    @property
    def lengths(self) -> Floats:
        """(K,) how much time a window covers, in data units; or how many of the listed times."""
        if self.listed:
            return np.bincount(self.of_moment).astype(np.float64)
        return np.diff(np.concatenate([self.moments[:1], self.cuts.edges, self.moments[-1:]]))

    @cached_property
    def cuts(self) -> Slabs:
        """Time cut half way between the last moment of a window and the first of the next."""
        ends = np.flatnonzero(np.diff(self.of_moment))
        return Slabs.between(bin_edges(self.moments)[ends])

    def knots(self, times: Floats) -> Floats:
        """Times of a model's curves: the ends, the edges of windows, and those of interest (T,).

        Between the edges of windows curves are straight, so of many times of interest a part will
        do. Few listed times, if people are at these alone, are all there is.
        """
        if self.listed and len(times) <= MOST_READ:
            return times
        ends, edges = self.moments[[0, -1]], self.cuts.edges
        some = np.linspace(0, len(times) - 1, min(len(times), MOST_READ)).round().astype(int)
        made, read = np.sort(np.append(edges, ends)), times[some]
        apart = np.abs(made[:, None] - read).min(axis=1) > 1e-6 * np.ptp(ends)
        return np.sort(np.append(made[apart], read))

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
    """Whether it is asked: times are listed, and fewer than those that stand for any time."""
    return axis.declared and len(axis.times) <= MOMENTS


def moments_of(
    guard: Guard, axis: TimeAxis, event: LaplaceCounts | None, whole_bins: bool
) -> tuple[Floats, bool]:
    """Moments (M,) of which windows are made, and whether people are at these alone.

    event: as which it is asked whether most people are close to a listed time; None for a budget
    that is too small to ask.  whole_bins: windows must be made of whole bins, whoever is there.
    """
    listed = False
    if event is not None:
        release = Release(CellCounts(1), Laplace(event.epsilon), event.what)
        between, close = guard.in_slabs(close_to(axis.times)).ask(release)[:, 0]
        listed = bool(close > between)
    start, end = axis.range
    even = np.linspace(start, end, MOMENTS)
    return (axis.times if listed or whole_bins else even), listed


def close_to(times: Floats) -> Slabs:
    """Window 1: all that is close to one of the times (T,); window 0: the rest."""
    gaps = np.diff(times)
    near = CLOSE * np.minimum(np.append(gaps[0], gaps), np.append(gaps, gaps[-1]))
    edges = np.stack([times - near, times + near], axis=1).ravel()
    return Slabs(edges, np.arange(len(edges) + 1) % 2)


def most_windows(moments: Floats, listed: bool) -> int:
    """One for each moment; of continuous time so many that more gain nothing."""
    return len(moments) if listed else min(len(moments), MOST_WINDOWS)


def even_windows(moments: int, windows: int) -> Ints:
    """(M,) number of the window of each moment: runs of equal length, up to one."""
    return np.arange(moments) * windows // moments


class WindowChoice(NamedTuple):
    """Windows (M,) of the moments, and why: squared W2 to expect from motion and from noise."""

    of_moment: Ints
    motion: float
    noise: float


def look_at_motion(
    guard: Guard, event: LaplaceCounts, moments: Floats, listed: bool, features: int, most: int
) -> WindowChoice:
    """The windows, `most` at most, by coarse counts over time, paid for as the event.

    features: in how many windows will be measured, which may not be those of the look.
    """
    unit = unit_time(moments, moments)
    seen = even_windows(len(moments), min(most_windows(moments, listed), LOOK_BINS))
    side = LOOK_SIDES.get(guard.n_features, 2)
    release = Release(CellCounts(side), Laplace(event.epsilon), event.what)
    counts = guard.in_slabs(Windows(moments, listed, seen).cuts).ask(release)
    people, noise = max(float(counts.sum()), float(len(counts))), laplace_variance(event.epsilon)
    paths = moment_paths(counts, side, noise, people, guard.n_features)
    moving = motion(paths, unit, seen)
    if not moving.any():
        moving = overlooked(paths, unit, seen)
    return choose_windows(moving, unit, people, guard.ledger.epsilon, features, most)


def choose_windows(
    motion: Floats, moments: Floats, people: float, epsilon: float, features: int, most: int
) -> WindowChoice:
    """The windows with the least E: all numbers up to 6, then in steps of a quarter, and the most.

    motion: Q (M, M) at the moments (M,) in [0, 1].  people: at all times together, released.
    """
    numbers = np.append(np.arange(FEWEST_WINDOWS, 6), np.round(6 * 1.25 ** np.arange(40)))
    per_window = WINDOW_NOISE.get(features, WINDOW_NOISE_OF_GRADIENTS) / (people * epsilon)
    clock = even_motion(motion, moments)
    best = None
    for wanted in np.unique(np.minimum(numbers, most)).astype(int).tolist():
        windows = windows_of(clock, wanted)
        hidden = UNSEEN_MOTION * unseen(motion, moments, windows)
        option = WindowChoice(windows, hidden, (windows[-1] + 1) * per_window)
        if best is None or option.motion + option.noise < best.motion + best.noise:
            best = option
    assert best is not None
    return best


def even_motion(motion: Floats, moments: Floats) -> Floats:
    """(M,) a clock from 0 to 1 on which windows are equally long; time itself where people rest."""
    squared_steps = np.diff(np.diff(motion, axis=0), axis=1).diagonal()  # E (y_i+1 - y_i)^2
    squared_speed = np.maximum(squared_steps, 0.0) / np.diff(moments) ** 2
    if not squared_speed.any():
        return (np.arange(len(moments)) + 0.5) / len(moments)
    density = np.cbrt(squared_speed)
    at_moment = np.append(density[:1], density) + np.append(density, density[-1:])
    passed = np.cumsum(at_moment) - at_moment / 2
    clock: Floats = passed / at_moment.sum()
    return clock


def windows_of(clock: Floats, windows: int) -> Ints:
    """(M,) number of the window of each moment, equally long on the clock; none is empty."""
    numbers = np.minimum((clock * windows).astype(np.int64), windows - 1)
    if windows >= len(clock):
        numbers = np.arange(len(clock))
    return np.unique(numbers, return_inverse=True)[1]


def unseen(motion: Floats, moments: Floats, window_of_moment: Ints) -> float:
    """tr(R Q R') / M: mean square of the motion less its curve through the means of the windows."""
    windows, count = window_of_moment[-1] + 1, len(moments)
    if windows == count or not motion.any():
        return 0.0
    means = window_means(window_of_moment)
    basis = hat_functions(moments, knots_of(moments, window_of_moment))
    in_window = means @ basis
    normal = in_window.T @ in_window + penalty(windows + 1, HIDDEN_BENDING, ACTION)
    curve = basis @ np.linalg.solve(normal, in_window.T)  # R y = y - curve of the means of y
    rest = motion - curve @ (means @ motion)  # R Q: no product is larger than (M, K) by (K, M)
    return float((np.trace(rest) - np.sum(rest @ means.T * curve)) / count)


class Ends(NamedTuple):
    """Knots of curves: the middles of windows, and both ends of time where these are farther.

    before, after: how far an end is from the nearest middle, in gaps between middles; 0 for none.
    """

    knots: Floats
    before: float
    after: float

    @classmethod
    def of(cls, windows: Windows) -> Ends:
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
