"""States of mixed columns along a path: numbers move, categories jump, fixed columns stay.

A curve has a point of the unit cube at every knot. Its numbers go on as the reference process says.
A category is constant between jumps: where the levels of two neighbouring knots differ there is one
jump, at a time that is uniform over the interval, each person's own, so that shares of the levels
go straight from knot to knot. A fixed column has the value of one knot of the curve at all times,
of a knot drawn for each person: a population whose noisy shares differ from knot to knot has their
mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints, Mask, systematic
from privtraj.columns.kinds import Axes, Category, Column, Flag, Label, Number
from privtraj.motion.process import MOST_MATCHED, Points, Reference, matched

CODED = 64
"""Levels up to which each has a coordinate of its own; above, distances are right within an eighth.
"""
MOST_ALIKE = 64
"""Groups within which people who forget change places: of the 2,048 who are carried together, 32
each on average."""
NEVER = 8.0
"""Jumps that a change of a fixed category counts for where couplings are computed, so that their
potentials are those of groups that are apart; it has no chance at all in what comes out."""


@dataclass(frozen=True, eq=False)
class Parts:
    """What d columns do along a path."""

    columns: tuple[Column, ...]

    @cached_property
    def axes(self) -> Axes:
        return Axes.of(self.columns)

    @cached_property
    def fixed(self) -> Mask:
        """(d,) those that never change."""
        return np.array(self.axes.fixed)

    @cached_property
    def moving(self) -> Mask:
        """(d,) numbers that change."""
        return self.axes.numbers & ~self.fixed

    @property
    def plain(self) -> bool:
        """Whether all are numbers that change."""
        return bool(self.moving.all())

    @cached_property
    def jumping(self) -> Mask:
        """(d,) categories that change."""
        return self.axes.categories & ~self.fixed

    @cached_property
    def ladder(self) -> Ints:
        """(d,) levels from 0 that are in order; 0 where there is none."""
        steps = (
            len(column.values) if isinstance(column, Category) and column.ordered else 0
            for column in self.columns
        )
        return np.array(list(steps))

    def absent(self, unit: NDArray[Any]) -> Mask:
        """(..., d) which numbers of points (..., d) are missing."""
        absent = np.zeros(unit.shape, bool)
        for number, flag in self.axes.flags:
            absent[..., number] = unit[..., flag] > 0.5
        return absent

    def numbers(self, particles: Floats, weights: Floats) -> Floats:
        """The numbers that move (K, m, dm), of particles (K, m, d) and weights (K, m).

        What is missing is at the mean of what is not, where it draws nobody anywhere.
        """
        if not self.axes.flags:
            return np.asarray(particles[..., self.moving])
        there = np.where(self.absent(particles), 0.0, weights[..., None])
        mass = there.sum(axis=1, keepdims=True)
        mean = (there * particles).sum(axis=1, keepdims=True) / np.where(mass > 0, mass, 1.0)
        mean = np.where(mass > 0, mean, 0.5)
        return np.asarray(np.where(self.absent(particles), mean, particles)[..., self.moving])

    def groups(self, particles: Floats) -> Ints:
        """Which combination of fixed categories (K, m) particles (K, m, d) have, from 0."""
        same = self.fixed & self.axes.categories
        if not same.any():
            return np.zeros(particles.shape[:2], np.int64)
        rows = self.axes.level_of(particles)[..., same].reshape(-1, int(same.sum()))
        return np.unique(rows, axis=0, return_inverse=True)[1].reshape(particles.shape[:2])

    def alike(self, knots: Points) -> Ints:
        """Groups (N, K) of knots (N, K, d) whose people may change places: equal levels of as many
        categories, fixed ones first, as leave enough people in each group."""
        order = [k for k in np.argsort(~self.fixed, kind="stable") if self.axes.levels[k]]
        levels, group, count = self.axes.level_of(knots), np.zeros(knots.shape[:2], np.int64), 1
        for k in order:
            more = self.axes.levels[k]
            if count * more <= MOST_ALIKE and not isinstance(self.columns[k], Flag):
                group, count = group * more + levels[..., k], count * more
        return group

    def codes(self, particles: Floats) -> Floats:
        """Coordinates (K, m, e) whose squared distance is the number of jumps between two points.

        A level is a corner of a simplex, a level that is in order a number of steps. Fixed ones
        are `NEVER` apart, and fixed numbers are there in shares of the box.
        """
        levels = self.axes.level_of(particles)
        far = np.where(self.fixed, math.sqrt(NEVER), 1.0)
        parts = [particles[..., self.fixed & self.axes.numbers]]
        for k in np.flatnonzero(self.axes.categories):
            level, ladder = levels[..., k], self.ladder[k]
            steps = min(ladder, CODED)
            climbed = level * steps // max(ladder, 1)
            stairs = climbed[..., None] > np.arange(max(steps - 1, 0))
            off = np.maximum(level - ladder, -1)  # -1: in order
            rest = max(self.axes.levels[k] - ladder, 1)
            corners = np.eye(rest) / np.sqrt(2)  # at squared distance 1; of many, nearly
            if rest > CODED:
                signs = np.random.default_rng(0).choice([-1.0, 1.0], (rest, CODED))
                corners = signs / np.sqrt(2 * CODED)
            corner = np.where(off[..., None] >= 0, corners[off], 0.0)
            parts.append(far[k] * np.concatenate([stairs, corner], axis=-1))
        return np.concatenate(parts, axis=-1)


def jumped(
    levels: Ints, clock: Floats, ladder: Ints, times: Floats, rng: np.random.Generator
) -> Ints:
    """Levels (b, q, c) of b people at times (q,), in any order, who have levels (b, K, c) at the
    knots (K,).  ladder: (c,), see `Parts`.

    Of a jump that has not come by the share s of the interval, the chance that it comes by s' is
    (s' - s) / (1 - s). Levels in order that are r apart are r steps, each at its own time.
    """
    values = np.empty((len(levels), len(times), levels.shape[2]), levels.dtype)
    order = np.argsort(times, kind="stable")
    knot = np.clip(np.searchsorted(clock, times, side="right") - 1, 0, len(clock) - 2)
    for k in np.unique(knot):
        a, b = levels[:, k], levels[:, k + 1]
        rows, columns = np.nonzero(a != b)
        here, there = (side[rows, columns].astype(np.int64) for side in (a, b))
        stairs = np.maximum(here, there) < ladder[columns]
        left, before = np.where(stairs, np.abs(there - here), 1), 0.0
        for q in order[knot[order] == k]:
            share = (times[q] - clock[k]) / (clock[k + 1] - clock[k])
            due = (share - before) / (1 - before) if before < 1 else 1.0
            left, before = left - rng.binomial(left, min(max(due, 0.0), 1.0)), share
            climbed = there - np.sign(there - here) * left
            values[:, q] = a
            values[rows, q, columns] = np.where(stairs, climbed, np.where(left > 0, here, there))
    return values


class Transitions(NamedTuple):
    """How people go from level to level of one category.

    labels: (C,) what the levels mean, None for missing.  times: (K,) of the knots, in data units.
    mass: (K-1, C, C) share of all people who go from one level to another between two knots.
    """

    labels: tuple[Label | None, ...]
    times: NDArray[Any]
    mass: Floats

    @property
    def shares(self) -> Floats:
        """(K, C) of people at each level at the knots; straight between them."""
        return np.concatenate([self.mass.sum(axis=2), self.mass[-1:].sum(axis=1)])

    @property
    def rates(self) -> Floats:
        """(K-1, C, C) jumps per person at a level and unit of time: a day where times are dates.

        mass / (gap * share at the beginning), 0 on the diagonal and where there is nobody.
        """
        gaps = np.diff(self.times)
        gaps = gaps / np.timedelta64(1, "D") if gaps.dtype.kind == "m" else gaps
        before = self.mass.sum(axis=2, keepdims=True)
        rates = self.mass / np.where(before > 0, before, 1.0) / gaps[:, None, None]
        rates[:, np.arange(len(self.labels)), np.arange(len(self.labels))] = 0.0
        return np.asarray(rates)


@dataclass(frozen=True, eq=False)
class OnNumbers(Reference):
    """A process of the numbers that move, among all columns: the others stay."""

    process: Reference
    moving: Mask

    def ahead(self, x: Floats, t: float, dt: float) -> Floats:
        onward = x.copy()
        onward[:, self.moving] = self.process.ahead(x[:, self.moving], t, dt)
        return onward


def filled(knots: Points, clock: Floats, parts: Parts) -> Points:
    """Knots (N, K, d) whose missing numbers are on the line between those before and after."""
    absent = parts.absent(knots)
    if not absent.any():
        return knots
    knots, number = knots.copy(), np.arange(len(clock))
    for axis in np.flatnonzero(absent.any(axis=(0, 1))):
        gone = absent[:, :, axis]
        before = np.maximum.accumulate(np.where(gone, -1, number), axis=1)
        after = np.minimum.accumulate(np.where(gone, len(clock), number)[:, ::-1], axis=1)[:, ::-1]
        late = after == len(clock)
        before, after = np.where(before < 0, after, before), np.where(late, before, after)
        known = (before >= 0) & (before < len(clock))  # else it is missing all the time
        first, last = (np.where(known, side, 0) for side in (before, after))
        gap = clock[last] - clock[first]
        share = np.where(gap > 0, (clock - clock[first]) / np.where(gap > 0, gap, 1.0), 0.0)
        rows = np.arange(len(knots))[:, None]
        start, end = knots[rows, first, axis], knots[rows, last, axis]
        line = start + share * (end - start)
        knots[:, :, axis] = np.where(gone & known, line, knots[:, :, axis])
    return knots


def least_action_of(
    particles: Floats, weights: Floats, groups: Ints, clock: Floats, ways: Parts, process: Reference
) -> Floats:
    """Paths (n, K, d) through particles (K, m, d) of weights (K, m) at times (K,).

    As `reference.least_action`, within each group (K, m), whose shares are the same at all times,
    where a jump counts like a number that crosses the whole box.
    process: of the numbers that move, in the unit cube, fitted.
    """
    count = min(max(particles.shape[1], 2), MOST_MATCHED)
    numbers, codes = ways.numbers(particles, weights), ways.codes(particles)
    shares = np.asarray(np.bincount(groups[0], weights[0]), np.float64)
    paths = []
    for group, people in enumerate(np.bincount(systematic(shares, count), minlength=len(shares))):
        if people == 0:
            continue
        members = [np.flatnonzero(row == group) for row in groups]
        some = [mine[systematic(weights[k, mine], people)] for k, mine in enumerate(members)]
        who = [some[0]]
        for k, (t, dt) in enumerate(zip(clock, np.diff(clock), strict=False)):
            x = np.hstack([process.ahead(numbers[k, who[-1]], t, dt), codes[k, who[-1]]])
            y = np.hstack([numbers[k + 1, some[k + 1]], codes[k + 1, some[k + 1]]])
            who.append(some[k + 1][matched(x, y)])
        paths.append(particles[np.arange(len(clock)), np.stack(who, axis=1)])
    return np.concatenate(paths)


def number_names(columns: Sequence[Column]) -> tuple[str, ...]:
    """Of the numbers that move: those that a reference process and constraints are about."""
    return tuple(
        column.name for column in columns if isinstance(column, Number) and not column.fixed
    )
