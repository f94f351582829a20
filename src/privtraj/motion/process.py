"""The reference process: how people would move if nothing but their law at each time were known.

Couplings and paths are as likely under it as the marginals allow. All that they need from it is
small: where people are after a while (`ahead`), with which variance, and how they get from one
place to another (`bridge`). A process without variance means least action: nobody moves more than
the marginals, and its drift, ask for. Equally many people at each of K times are then matched from
time to time by optimal transport, each where the process would carry them: the permutations p
minimise  sum_i |y_p(i) - ahead(x_i)|^2.

A new process is one class, and one more name in `reference`. Users give a process in data units;
`within` turns it into one of the unit cube and of time from 0 to 1, in which everything here is
computed. How many people there are is said beside it, for any process: `growth`.
"""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints, equal_weight
from privtraj.base.space import unit_time

Interpolation = Literal["bridge", "linear", "spline"]
Points = NDArray[np.floating[Any]]
Ends = tuple[float, float]

MOST_MATCHED = 512  # people at each time who are matched: they carry a model; more take minutes
FITTED = 128  # people at each time to whom a drift is fitted: a few numbers, again and again


class Scale(NamedTuple):
    """The box and the range of time in data units. bounds: (d, 2)."""

    bounds: Floats
    start: float
    length: float

    @property
    def widths(self) -> Floats:
        """(d,) of the box."""
        return np.asarray(self.bounds[:, 1] - self.bounds[:, 0])


class Reference(ABC):
    """A process whose transitions from t to t + dt are N(ahead(x, t, dt), variance(dt) I)."""

    kind: ClassVar[str]
    """Its name in files and on the command line."""
    assumed: ClassVar[str] = "that they keep their place among the others, or forget it,"

    def within(self, scale: Scale) -> Reference:
        """The same process in the unit cube and the unit range of time."""
        return self

    def fitted(self, clouds: Floats, clock: Floats) -> Reference:
        """The process that suits clouds (K, n, d) at times (K,); itself if nothing is learned."""
        return self

    def ahead(self, x: Floats, t: float, dt: float) -> Floats:
        """E[X_(t + dt) | X_t = x] for places x (n, d): (n, d). dt may be negative."""
        return x

    def variance(self, dt: Floats) -> Floats:
        """Per coordinate over gaps dt, by which entropic couplings are blurred; 0: least action."""
        return np.zeros_like(dt)

    def bridge(
        self, x: Points, y: Points, ends: Ends, times: Floats, rng: np.random.Generator
    ) -> Points:
        """Values (q, n, d) at sorted times (q,) from a to b, given x (n, d) at a and y (n, d) at b.

        One joint draw for every pair of places and every coordinate.  ends: (a, b).
        """
        return straight(x, y, ends, times)

    def through(
        self, knots: Points, clock: Floats, times: Floats, rng: np.random.Generator
    ) -> Points:
        """Values (n, q, d) at times (q,), in any order, of paths through knots (n, K, d)."""
        return between(knots, clock, times, self, "bridge", rng)

    @property
    def forgets(self) -> bool:
        """Whether people change places with each other; else everybody keeps their curve."""
        return False

    @property
    def couples(self) -> bool:
        """Whether people of a model that has curves are coupled again, as it moves them itself."""
        return False

    @property
    def can_be_written(self) -> bool:
        """Whether a file can hold it: a function cannot be."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Plain values that `reference.from_dict` reads: all of its fields."""
        said: dict[str, Any] = {"kind": self.kind}
        for name, value in vars(self).items():
            plain = isinstance(value, Reference) or value is None
            said[name] = value and value.to_dict() if plain else np.asarray(value).tolist()
        return said

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """From all but the kind."""
        return cls(**values)


def straight(x: Points, y: Points, ends: Ends, times: Floats) -> Points:
    """(1 - s) x + s y (q, n, d) at the shares s = (t - a) / (b - a) of the way, ends (a, b)."""
    a, b = ends
    number = x.dtype.type
    values = np.empty((len(times), *x.shape), x.dtype)
    for value, share in zip(values, (times - a) / (b - a), strict=True):
        np.multiply(x, number(1 - share), out=value)
        value += y * number(share)
    return values


def between(
    knots: Points,
    knot_times: Floats,
    times: Floats,
    reference: Reference,
    interpolation: Interpolation,
    rng: np.random.Generator,
) -> Points:
    """Values (n, q, d) at `times` (q,) inside the range, of paths through knots (n, K, d).

    "bridge": a bridge of the reference, joint over all times of an interval; "linear": straight;
    "spline": monotone cubic, no overshoot.
    """
    left = np.clip(np.searchsorted(knot_times, times, side="right") - 1, 0, len(knot_times) - 2)
    if interpolation == "spline":
        gaps = np.diff(knot_times)[:, None]
        slopes = monotone_slopes(knots, gaps)
        share, gap = ((times - knot_times[left])[:, None] / gaps[left]), gaps[left]
        back, square = 1 - share, share**2
        return back**2 * (
            (1 + 2 * share) * knots[:, left] + gap * share * slopes[:, left]
        ) + square * ((1 + 2 * back) * knots[:, left + 1] - gap * back * slopes[:, left + 1])
    order = np.argsort(times, kind="stable")
    places = np.ascontiguousarray(knots.swapaxes(0, 1))  # all people of one time in one piece
    values = np.empty((len(times), *places.shape[1:]), knots.dtype)
    for i in np.unique(left):
        inside = order[left[order] == i]
        pair = places[i], places[i + 1], (knot_times[i], knot_times[i + 1]), times[inside]
        bridged = interpolation == "bridge"
        values[inside] = reference.bridge(*pair, rng) if bridged else straight(*pair)
    return values.swapaxes(0, 1)


def monotone_slopes(knots: Points, gaps: Floats) -> Points:
    """Of cubics through knots (n, K, d) that are so far apart in time (K - 1, 1), for which no path
    overshoots: harmonic means of the slopes on both sides, weighted by the gaps, 0 where they have
    different signs (Fritsch and Butland, 1984); at an end, that of a parabola within limits.
    """
    chords = np.diff(knots, axis=1) / gaps
    slopes = np.zeros_like(knots, np.float64)
    if len(gaps) == 1:
        return slopes + chords
    before, after = chords[:, :-1], chords[:, 1:]
    near, far = gaps[1:] + 2 * gaps[:-1], 2 * gaps[1:] + gaps[:-1]
    alike = before * after > 0
    np.divide((near + far) * before * after, far * after + near * before,
              out=slopes[:, 1:-1], where=alike)  # fmt: skip
    for end, first, second in ((0, 0, 1), (-1, -1, -2)):
        own, next_one = chords[:, first], chords[:, second]
        a, b = gaps[first], gaps[second]
        parabola = ((2 * a + b) * own - a * next_one) / (a + b)
        parabola = np.where(parabola * own > 0, parabola, 0.0)
        most = np.where(own * next_one > 0, np.inf, 3 * np.abs(own))
        slopes[:, end] = np.clip(parabola, -most, most)
    return slopes


def follow(clouds: Floats, clock: Floats, reference: Reference) -> Floats:
    """Paths (n, K, d) through clouds (K, n, d) at times (K,)."""
    paths = [clouds[0]]
    for cloud, t, dt in zip(clouds[1:], clock, np.diff(clock), strict=False):
        paths.append(cloud[matched(reference.ahead(paths[-1], t, dt), cloud)])
    return np.stack(paths, axis=1)


def least_action(particles: Floats, weights: Floats, times: Floats, reference: Reference) -> Floats:
    """Paths (n, K, d) through particles (K, m, d) of weights (K, m) at times (K,) of any unit,
    under the reference process, in the unit cube, that suits them."""
    clock = unit_time(times, times)
    suited = reference.fitted(even_clouds(particles, weights, FITTED), clock)
    return follow(even_clouds(particles, weights), clock, suited)


def matched(x: Floats, y: Floats) -> Ints:
    """Permutation (n,) that brings x (n, d) closest to y (n, d): x_i goes to y_p(i)."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    return np.asarray(linear_sum_assignment(cdist(x, y, "sqeuclidean"))[1])


def even_clouds(particles: Floats, weights: Floats, most: int = MOST_MATCHED) -> Floats:
    """(K, n, d) people of equal weight, n at most `most`, of particles (K, m, d)."""
    return equal_weight(particles, weights, min(max(particles.shape[1], 2), most))
