"""Pairs of records: the one question about people who have several, summed by person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError
from privtraj.privacy.events import LaplaceCounts
from privtraj.privacy.guard import Laplace, PublicShape, Question, RepeatedRows, View

KINDS = 4  # of a pair: in the same outer third, in neighbours, in opposites, both in the middle
PEOPLE_AT_ONCE = 1 << 15  # whose pairs are in memory


@dataclass(frozen=True, eq=False)
class LagTable(Question):
    """How do people's pairs of records agree, by the time between them? (L, 4 d)

    times: (q,) increasing, in data units.  thresholds: (q, d, 2) at these times, linear between.
    lag_edges: (L - 1,) increasing, in data units.  each: w, whole.  All of it public or released.

    Here a person is summed, not a row. Each of a person's records is, in every feature, in one of
    three thirds: below, between or above two thresholds of its time. Each pair of records has a
    lag, which is in one of L bins, and in every feature the two are in the same outer third, in
    neighbouring thirds, in opposite ones, or both in the middle. A person with P pairs has, in a
    feature, n_c of them in each of the 4 L cells c. What they contribute is

        r_c = round( w (n_1 + .. + n_c) / P ) - round( w (n_1 + .. + n_(c-1)) / P )

    for a whole number w: their mean pair, counted w times, rounded so that nothing is lost. The r_c
    are whole, not negative, and telescope to w in each of d features, whoever the person is and
    however many records they have, in bins or together; without a pair all are 0. So a person added
    or removed moves the answer by w d in all, and a person replaced by 2 w d, in whole numbers that
    are counted and never rounded as floats: with exact integer noise delta is 0
    (`events.LaplaceCounts`, `weight`). The number g of records does not matter.

    Which pairs there are, and in which cells, follows from the thresholds and from the person's own
    records alone: the rows know whose they are, and at most g of a person were kept, by that
    person's records alone (`data.records`). Neither order nor whose they are matters.
    """

    times: Floats
    thresholds: Floats
    lag_edges: Floats
    each: int = 1
    noise = Laplace

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

    def check(self, shape: PublicShape, scale: float) -> None:
        if self.n_features != shape.n_features:
            raise InputError(f"thirds of {shape.n_features} features need thresholds for each")

    def total(self, view: View, scale: float) -> list[NDArray[Any]]:
        return [self.sum_over(view.rows.repeated())]

    def event(self, noise: Laplace, what: str, shape: PublicShape) -> LaplaceCounts:
        return LaplaceCounts(noise.epsilon, what, 0.0, *shape.person, weight=self.weight)

    def sum_over(self, rows: RepeatedRows) -> Ints:
        """Exact numbers (L, 4 d): features in turn, of each the four kinds of pairs."""
        total = np.zeros((self.n_features, self.lag_bins, KINDS), np.int64)
        people = np.unique(rows.people, return_inverse=True)[1]
        for start in range(0, int(people.max(initial=-1)) + 1, PEOPLE_AT_ONCE):
            own = (people >= start) & (people < start + PEOPLE_AT_ONCE)
            some = RepeatedRows(people[own] - start, rows.times[own], rows.points[own])
            total += self.contributions(some).sum(axis=0)
        return total.transpose(1, 0, 2).reshape(self.lag_bins, -1)

    def contributions(self, rows: RepeatedRows) -> Ints:
        """r (people, d, L, 4) of these people, who are numbered from 0 without gaps."""
        order = np.argsort(rows.people, kind="stable")  # those of one person together
        rows = RepeatedRows(rows.people[order], rows.times[order], rows.points[order])
        people, n = rows.people, len(rows.people)
        shape = (int(people.max(initial=-1)) + 1, self.n_features, self.lag_bins, KINDS)
        # a record outside the range of time is taken for one at its end
        times = np.clip(rows.times, self.times[0], self.times[-1])
        third, features = np.zeros(rows.points.shape, np.int64), np.arange(self.n_features)
        for k, side in np.ndindex(self.n_features, 2):
            threshold = np.interp(rows.times, self.times, self.thresholds[:, k, side])
            third[:, k] += rows.points[:, k] > threshold
        counts = np.zeros(shape, np.int64)
        for ahead in range(1, n):
            first = np.flatnonzero(people[ahead:] == people[:-ahead])
            if len(first) == 0:  # nobody has so many records
                break
            second = first + ahead
            lag = np.searchsorted(self.lag_edges, np.abs(times[second] - times[first]))
            kind = np.abs(third[second] - third[first])
            kind[(third[first] == 1) & (third[second] == 1)] = KINDS - 1
            place = (people[first, None], features, lag[:, None], kind)
            counts += np.bincount(
                np.ravel_multi_index(place, shape).ravel(), minlength=counts.size
            ).reshape(shape)
        so_far = np.cumsum(counts.reshape(*shape[:2], -1), axis=-1)
        pairs = np.maximum(so_far[..., -1:], 1)
        shares = (2 * self.each * so_far + pairs) // (2 * pairs)  # rounded to the nearest
        return np.diff(shares, axis=-1, prepend=0).reshape(shape)
