"""People who return: a day is a cycle of stays and trips, not a flow.

Least action moves everybody a little all the time. People wait, go, and come home. The process here
is a chain over n places, the same at all stops: between two stops s < t somebody with the home h
stays where they are, or goes, home in `HOMEWARD` of all trips from elsewhere, else anywhere by
gravity (Wilson's entropy-maximising model of trips),
    P(x, y) = (1 - l) [x = y] + l (r [y = h] + (1 - r) exp(-|x - y| / reach) / Z(x)),
    l = 1 - exp(-trips (a(t) - a(s))),    a(t) = t / period - sin(2 pi t / period) / (2 pi),
r being 0 at home: trips are rare when a period ends, and most frequent in its middle. Whenever a
period ends, from the start of the range on, everybody is at home. That people return, and when they
rest, are assumptions: records of one time each cannot show them.

The law of paths is the likeliest one under this process with the released marginals w_k: a product
of P's and of factors u_k = w_k / rest_k of the stops, found by sweeps as in Sinkhorn's algorithm;
messages (n, n) go to and fro for every home at once.

Stops are windows, as windows are what was counted: curves between them are in places where nobody
is. Somebody who goes from one stop to the next sets out between them, at a time that is random as
trips are frequent, and goes at the pace at which a mean trip takes `trip`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from privtraj.base.arrays import Floats, Ints, Mask, along_z_curve
from privtraj.base.errors import Arg, InputError, check_range
from privtraj.base.space import hat_functions
from privtraj.motion.process import Points, Reference, Scale

PLACES = 160  # n; a sweep takes n^3: .02 s for 12 windows
SWEEPS = 50
DRAWN = 4096  # people, who carry a model
MOMENTS = 1025  # of the range, at which it is known how many trips were made
READINGS = 8  # of a curve in a window
HOMEWARD = 0.5
"""Of trips from elsewhere: out and back, as in surveys; .4 to .7 is much the same, 0 and 1 are not:
.20 of flows amiss, with 0 .26, with 1 .22 (benchmarks/mobility.py, also --cities 0 2 4)."""


@dataclass(frozen=True)
class Cycle(Reference):
    """People who wait, go, and are back where they were after every period.

    period: in units of the time column (seconds for dates), from the start of the range on.
    trip: how long a mean trip takes, in the same units; by default a 48th of the period.
    trips: of a person in a period, if nothing else were known; surveys find three or four a day.
    reach: how far people go, exp(-distance / reach), in shares of the box.
    """

    kind: ClassVar[str] = "cycle"
    assumed: ClassVar[str] = (
        "that they are back after every period, rest then, and wait between trips,"
    )
    couples = True
    period: float
    trip: float | None = None
    trips: float = 4.0
    reach: float = 0.25

    def __post_init__(self) -> None:
        check_range("period", self.period, 1e-9, 1e15)
        check_range("trips", self.trips, 1e-3, 1e3)
        check_range("reach", self.reach, 1e-3, 1e3)
        if self.trip is not None:
            check_range("trip", self.trip, 0.0, self.period)

    def within(self, scale: Scale) -> Cycle:
        period = self.period / scale.length
        if period > 1 + 1e-6:
            raise InputError(Arg("reference"), " has a period longer than the range of time")
        trip = self.period / 48 if self.trip is None else self.trip
        return replace(self, period=period, trip=min(trip / scale.length, period))

    def made(self, t: Floats) -> Floats:
        """a(t): share of the trips of a period that people make until t, and of those before."""
        periods = t / self.period
        return np.asarray(periods - np.sin(2 * np.pi * periods) / (2 * np.pi))

    def through(
        self, knots: Points, clock: Floats, times: Floats, rng: np.random.Generator
    ) -> Points:
        """Each step between two knots in one go, at a random time between them, as trips are."""
        steps, gaps = np.diff(knots, axis=1), np.diff(clock)
        far = np.linalg.norm(steps, axis=2)
        pace = (self.trip or 0.0) / max(float(far[far > 0].mean()) if far.any() else 1.0, 1e-9)
        lasts = np.minimum(pace * far, gaps)
        made, fine = self.made(clock), np.linspace(0, 1, MOMENTS)
        when = made[:-1] + rng.uniform(size=far.shape) * np.diff(made)
        middle = np.interp(when, self.made(fine), fine)
        begin = np.clip(middle - lasts / 2, clock[:-1], clock[1:] - lasts)
        left = np.clip(np.searchsorted(clock, times, side="right") - 1, 0, len(gaps) - 1)
        share = (times - begin[:, left]) / np.maximum(lasts[:, left], 1e-9)
        gone = np.clip(share, 0, 1).astype(knots.dtype)[..., None]
        return np.asarray(knots[:, left] + gone * steps[:, left])

    def rounds(self, clouds: Floats, clock: Floats, edges: Floats | None) -> tuple[Floats, Floats]:
        """Paths (N, S, d), and their stops (S,), of clouds (K, m, d) at times (K,) from 0 to 1.

        edges: of windows, where particle i is a curve and what was counted lies between two edges.
        """
        from scipy.spatial import cKDTree

        stops = clock
        if edges is not None:
            shares = (np.arange(READINGS) + 0.5) / READINGS
            read = (edges[:-1, None] + shares * np.diff(edges)[:, None]).ravel()
            clouds = np.einsum("qk,kmd->qmd", hat_functions(read, clock), clouds)
            clouds = clouds.reshape(len(edges) - 1, -1, clouds.shape[2])
            stops = (edges[:-1] + edges[1:]) / 2
        everybody = clouds.reshape(-1, clouds.shape[2])
        order = along_z_curve((everybody * 64).astype(np.int64))
        spread = np.linspace(0, len(order) - 1, min(PLACES, len(order))).astype(int)
        places = np.unique(everybody[order[spread]], axis=0)
        place = cKDTree(places).query(everybody)[1]
        stop = np.repeat(np.arange(len(clouds)), clouds.shape[1])
        masses = np.zeros((len(clouds), len(places)))
        np.add.at(masses, (stop, place), 1 / clouds.shape[1])
        # a stop is home if a period ends in it, or at the end of the range
        ends = np.arange(0, 1 + 1e-6, self.period)
        home = np.zeros(len(stops), bool)
        home[[int(np.argmin(np.abs(stops - end))) for end in ends]] = True
        masses[home] = masses[home].mean(axis=0)
        rng = np.random.default_rng(0)
        leaving = 1 - np.exp(-self.trips * np.diff(self.made(stops)))
        chain = self._drawn(places, masses + 1e-6, home, leaving, rng)
        # whoever is in a place is always with the same one of its people
        people, own = np.bincount(place, minlength=len(places)), rng.uniform(size=(len(chain), 1))
        member = (np.cumsum(people) - people)[chain] + (own * people[chain]).astype(int)
        paths = everybody[np.argsort(place, kind="stable")[member]]
        if len(stops) == 1:
            return np.repeat(paths, 2, axis=1), np.array([0.0, 1.0])
        return paths, stops

    def _drawn(
        self, places: Floats, masses: Floats, home: Mask, leaving: Floats, rng: np.random.Generator
    ) -> Ints:
        """Chains (N, K) of places (n, d), by masses (K, n); home: (K,), leaving: l (K - 1,)."""
        from scipy.spatial.distance import cdist

        one, last = np.eye(len(places)), len(masses) - 1
        gravity = np.exp(-cdist(places, places) / self.reach)
        gravity /= gravity.sum(axis=1, keepdims=True)
        homeward = HOMEWARD * (1 - one)  # r, (homes, places)
        masses = masses / masses.sum(axis=1, keepdims=True)
        factors = np.ones_like(masses)
        back = np.empty((last + 1, *one.shape))  # messages from later stops, (homes, places)

        def at(k: int, message: Floats) -> Floats:
            kept = message * one if home[k] else message
            return np.asarray(kept / kept.max())

        def before(later: Floats, leaving: float) -> Floats:
            goes = homeward * np.diag(later)[:, None] + (1 - homeward) * (later @ gravity.T)
            return np.asarray((1 - leaving) * later + leaving * goes)

        def after(now: Floats, leaving: float) -> Floats:
            goes = ((1 - homeward) * now) @ gravity + one * (homeward * now).sum(axis=1)
            return np.asarray((1 - leaving) * now + leaving * goes)

        for sweep in range(SWEEPS + 1):
            back[last] = at(last, np.ones_like(one))
            for k in range(last, 0, -1):
                back[k - 1] = at(k - 1, before(back[k] * factors[k], leaving[k - 1]))
            if sweep == SWEEPS:
                break
            ahead = one
            for k, mass in enumerate(masses):
                ahead = at(k, after(ahead * factors[k - 1], leaving[k - 1])) if k else ahead
                rest = np.maximum((ahead * back[k]).sum(axis=0), 1e-200)
                factors[k] = mass / rest
                factors[k] /= factors[k].max()
        chain = np.empty((DRAWN, last + 1), np.int64)
        chances = np.broadcast_to(factors[0] * np.diag(back[0]), (DRAWN, len(places)))
        for k in range(last + 1):
            if k:
                of, was, chance = chain[:, 0], chain[:, k - 1], leaving[k - 1]
                goes = homeward[of, was][:, None]
                goes = goes * one[of] + (1 - goes) * gravity[was]
                onward = (1 - chance) * one[was] + chance * goes
                chances = onward * factors[k] * back[k][of]
            so_far = np.cumsum(chances, axis=1)
            drawn = rng.uniform(size=(DRAWN, 1)) * so_far[:, -1:]
            chain[:, k] = np.minimum((so_far <= drawn).sum(axis=1), len(places) - 1)
        return chain
