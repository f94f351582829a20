"""Pairs of records of one person, as whole numbers that add up to a public weight.

Each of a person's records is, in every feature, in one of three thirds: below, between or above
two thresholds of its time. Each pair of records has a lag, which is in one of L bins, and in every
feature the two are in the same outer third, in neighbouring thirds, in opposite ones, or both in
the middle. A person with P pairs has, in a feature, n_c of them in each of the 4 L cells c. What
they contribute is

    r_c = round( w (n_1 + .. + n_c) / P ) - round( w (n_1 + .. + n_(c-1)) / P )

for a whole number w: their mean pair, counted w times, rounded so that nothing is lost. The r_c are
whole, not negative, and telescope to w in each of d features, whoever the person is and however
many records they have; without a pair all are 0. So a person added or removed moves the sum over
people by w d at most, in whole numbers that are counted and never rounded as floats.

Thresholds and edges are public or released. Which pairs there are, and in which cells, follows from
these and from the person's own records alone; neither their order nor whose they are matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError
from privtraj.privacy.rows import RepeatedRows

KINDS = 4  # of a pair: in the same outer third, in neighbours, in opposites, both in the middle
PEOPLE_AT_ONCE = 1 << 15  # whose numbers are in memory


@dataclass(frozen=True, eq=False)
class Thirds:
    """What is asked of pairs; all of it public or released.

    times: (q,) increasing, in data units.  thresholds: (q, d, 2) at these times, linear between.
    lag_edges: (L - 1,) increasing, in data units.  each: w, whole.
    """

    times: Floats
    thresholds: Floats
    lag_edges: Floats
    each: int = 1

    def __post_init__(self) -> None:
        numbers = (self.times, self.thresholds, self.lag_edges)
        shape = np.shape(self.thresholds)
        if not (
            all(np.isfinite(some).all() for some in numbers)
            and (np.diff(self.times) > 0).all()
            and (np.diff(self.lag_edges) > 0).all()
            and len(shape) == 3
            and shape[::2] == (len(self.times), 2)
            and self.each >= 1
        ):
            raise InputError("thirds need increasing times and lags, and two thresholds at each")

    @property
    def n_features(self) -> int:
        """d."""
        return int(self.thresholds.shape[1])

    @property
    def lag_bins(self) -> int:
        """L."""
        return len(self.lag_edges) + 1

    @property
    def weight(self) -> int:
        """w d, the most that a person moves the sum by."""
        return self.each * self.n_features

    def of(self, rows: RepeatedRows) -> Ints:
        """Third (n, d) of each record, 0 to 2."""
        third = np.zeros(rows.points.shape, np.int64)
        for k, side in np.ndindex(self.n_features, 2):
            threshold = np.interp(rows.times, self.times, self.thresholds[:, k, side])
            third[:, k] += rows.points[:, k] > threshold
        return third


def sum_over_people(rows: RepeatedRows, question: Thirds) -> Ints:
    """Exact numbers (L, 4 d): features in turn, of each the four kinds of pairs."""
    total = np.zeros((question.n_features, question.lag_bins, KINDS), np.int64)
    for some in _people_in_parts(rows):
        total += contributions(some, question).sum(axis=0)
    return total.transpose(1, 0, 2).reshape(question.lag_bins, -1)


def contributions(rows: RepeatedRows, question: Thirds) -> Ints:
    """r (people, d, L, 4) of these people, who are numbered from 0 without gaps."""
    rows = rows.by_person()
    people, n = rows.people, len(rows.people)
    shape = (int(people.max(initial=-1)) + 1, question.n_features, question.lag_bins, KINDS)
    # a record outside the range of time is taken for one at its end
    times = np.clip(rows.times, question.times[0], question.times[-1])
    third, features = question.of(rows), np.arange(question.n_features)
    counts = np.zeros(shape, np.int64)
    for ahead in range(1, n):
        first = np.flatnonzero(people[ahead:] == people[:-ahead])
        if len(first) == 0:  # nobody has so many records
            break
        second = first + ahead
        lag = np.searchsorted(question.lag_edges, np.abs(times[second] - times[first]))
        kind = np.abs(third[second] - third[first])
        kind[(third[first] == 1) & (third[second] == 1)] = KINDS - 1
        place = (people[first, None], features, lag[:, None], kind)
        counts += np.bincount(
            np.ravel_multi_index(place, shape).ravel(), minlength=counts.size
        ).reshape(shape)
    return _rounded_shares(counts.reshape(*shape[:2], -1), question.each).reshape(shape)


def _rounded_shares(counts: Ints, each: int) -> Ints:
    """r (..., c): shares of counts (..., c), times `each`, rounded so that they add up to it."""
    so_far = np.cumsum(counts, axis=-1)
    pairs = np.maximum(so_far[..., -1:], 1)
    return np.diff((2 * each * so_far + pairs) // (2 * pairs), axis=-1, prepend=0)


def _people_in_parts(rows: RepeatedRows) -> Iterator[RepeatedRows]:
    """All records of so many people at a time, who are numbered anew."""
    people = np.unique(rows.people, return_inverse=True)[1]
    for start in range(0, int(people.max(initial=-1)) + 1, PEOPLE_AT_ONCE):
        own = (people >= start) & (people < start + PEOPLE_AT_ONCE)
        yield RepeatedRows(people[own] - start, rows.times[own], rows.points[own])
