"""Persistence: how fast each feature of a person is forgotten, from people with several records.

What is released, and paid for (`LagTable`): for every pair of a person's records, whether a
feature is in the same outer third of its time both times, in neighbouring thirds, in opposite ones,
or in the middle both times. Summed over people this is, for each of L bins of the lag h between the
two and each of d features,

    (same, neighbouring, opposite, middle) + noise,                      L x 4 whole numbers.

All else is computed from these numbers. If the two values are jointly normal with correlation rho,
up to a monotone scale, the four shares are known functions pi(rho, m), m being the share of records
in the middle. The thirds are those of the released marginals, which are noisy, so m is not 1/3 but
as the pairs have it: (middle + neighbouring / 2) / all.

Thirds, not products of values: one pair moves one number by one, so noise is small beside it. On
5,000 people of whom 30 % have two records, at epsilon 1, products that are clipped at two standard
deviations have twice the error: most of what a person may add to them is room that few need.

Through the numbers of a feature goes a small stationary family,

    rho(h) = lasting + (1 - lasting - fresh) k(h / memory),    k(x) = exp(-x) or (1 + x) exp(-x):
    `lasting` is never forgotten, `fresh` is forgotten at once, as an error of measurement is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import is_number
from privtraj.base.space import unit_time
from privtraj.measures.base import Marginals
from privtraj.motion.memories import LAGS, Correlations, correlation_along, smoothest
from privtraj.motion.process import Reference
from privtraj.motion.reference import Inertia
from privtraj.privacy.events import Adjacency, LaplaceCounts, Person, people_moved
from privtraj.privacy.guard import Guard, Laplace, Release
from privtraj.privacy.noise import EPSILON_RANGE
from privtraj.privacy.pairs import KINDS, LagTable

PERSISTENCE = "how people persist"

SHARE = 0.15
"""Of epsilon. By simulation of nine processes of one feature, 5,000 people of whom 30 % have two
records, epsilon 1: the error of correlations, mean over lags, is .052 with .10, .044 with .15, .040
with .20 and .033 without noise. Of more features by what is lost and won, see docs/records.md: with
.25 correlations are known better, but people lose more where they are than paths gain."""
LAG_BINS = 4
"""More show faster forgetting, but each has noise of its own: 2 and 3 are alike, 8 have 1.21 (.08)
times the error."""
MOST_EACH = 64
"""Whole numbers of a person of several pairs, per feature: rounding is then far below noise."""

_GRID = (9, 9, 25)  # values that are tried of 1 - lasting, of fresh in it, and of memory
_LEAST_PRECISION = 1e-3  # of a correlation of which pairs say nothing
_PLACES = 8  # lags that stand for those of a bin


def persistence_event(
    epsilon: float, adjacency: Adjacency, person: Person, features: int
) -> LaplaceCounts | None:
    """The release that a fit of this budget makes of people with several records.

    None if nobody has two, or if the budget does not buy it.
    """
    if person.records < 2:
        return None
    spent = SHARE * epsilon / people_moved(adjacency)
    least, most = EPSILON_RANGE
    each = 1 if person.records == 2 else MOST_EACH  # of one pair nothing is rounded
    while each > 1 and spent / (each * features) < least:
        each //= 2
    noise = min(spent / (each * features), most)
    if noise < least:
        return None
    return LaplaceCounts(noise, PERSISTENCE, 0.0, *person, weight=each * features)


def measured_persistence(
    guard: Guard, event: LaplaceCounts, marginals: Marginals, times: Floats, listed: bool
) -> Persistence:
    """Released, paid for as the event, and fitted.

    times: (T,) of the marginals, in data units.  listed: whether people are at these times alone.
    """
    length, edges = times[-1] - times[0], lag_edges()
    each = (event.weight or 1) // guard.n_features
    some = np.linspace(0, len(times) - 1, min(len(times), _MOST_CUT)).round().astype(int)
    cuts = thresholds(*(of[some] for of in marginals[:3]))
    question = LagTable(times[some], cuts, edges[1:-1] * length, each)
    noisy = guard.ask(Release(question, Laplace(event.epsilon), event.what))
    counts = noisy.reshape(len(edges) - 1, guard.n_features, KINDS) / each
    moments = unit_time(times, times) if listed else None
    return fit_persistence(counts, event.noise_variance / each**2, edges, moments)


def with_memory(
    reference: Reference, found: Persistence, paths: Floats, times: Floats
) -> Reference:
    """The reference with the memory that people with several records have, if it has a memory.

    paths: (m, K, d) of people who forget nothing, at times (K,).
    """
    if not isinstance(reference, Inertia):
        return reference
    # of thirds, as pairs are counted: groups that part are no two normal values
    ranks = paths.argsort(axis=0, kind="stable").argsort(axis=0)
    thirds: Floats = np.floor(3 * ranks / len(paths))
    table = _table_of_kinds(1 / 3)  # a third has variance 2/3
    along = correlation_along(thirds, unit_time(times, times))
    along = np.interp(along, (table[:, 0] - table[:, 2]) * 1.5, _CORRELATIONS)
    memory, swing, share = smoothest(found.known(along))
    if len(memory) == 0:
        return reference
    length = float(np.ptp(times))
    lasting = {"memory": (memory * length).tolist(), "swing": (swing / length).tolist()}
    return replace(reference, share=share.tolist(), **lasting)


def lag_edges(count: int = LAG_BINS) -> Floats:
    """(L + 1,) (k / L)^2, in shares of the range: finer where lags are short."""
    return (np.arange(count + 1) / count) ** 2


def thresholds(particles: Floats, weights: Floats, bandwidth: Floats) -> Floats:
    """(T, d, 2) where marginals are cut into thirds; arguments as in `Marginals`."""
    from scipy.special import ndtr

    places, weights = particles[:, :, :, None], weights[:, :, None, None]
    width = np.maximum(bandwidth, 1e-9)[:, None, None, None]
    reach = 10 * width[:, 0]
    low, high = places.min(axis=1) - reach, places.max(axis=1) + reach
    shape = (*low.shape[:2], 2)
    low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = (weights * ndtr((middle[:, None] - places) / width)).sum(axis=1)
        low, high = (
            np.where(below < _THIRDS, middle, low),
            np.where(below < _THIRDS, high, middle),
        )
    return (low + high) / 2


_THIRDS = np.array([1 / 3, 2 / 3])
_HALVINGS = 30
_MOST_CUT = 65  # times at which marginals are cut; between them cuts are straight


@dataclass(frozen=True, eq=False)
class Persistence:
    """How fast d features forget, by lag as a share of the range of time.

    lags: (L,) middle of each bin.  pairs: (L,) noisy numbers of people's pairs.
    correlations: (L, d) measured.  error: (L, d) their standard errors, of noise and of sampling; 1
    where nothing is known.
    lasting, fresh, memory, smooth: (d,) of the fitted family; smooth if k(x) = (1 + x) exp(-x).
    """

    lags: Floats
    pairs: Floats
    correlations: Floats
    error: Floats
    lasting: Floats
    fresh: Floats
    memory: Floats
    smooth: Ints

    def correlation(self, lags: ArrayLike) -> Floats:
        """rho (n, d) of the fitted family at these lags (n,)."""
        away = np.abs(np.asarray(lags, np.float64))[:, None]
        kept = _kernel(away / self.memory, self.smooth.astype(bool))
        moving = 1 - self.lasting - self.fresh
        return np.where(away == 0, 1.0, self.lasting + moving * kept)

    def known(self, along: Floats) -> list[Correlations]:
        """What pairs alone say of each feature, for the choice of its memories: the prior of
        `correlations`, even from -1 to 1 and so of variance 1/3, is divided out, as it would have
        people forget where pairs say little.

        along: (n, d) of people who forget nothing, at `LAGS`.
        """
        edges = lag_edges()
        bins = np.searchsorted(edges, self.lags) - 1  # those in which there can be pairs
        within = np.stack([edges[bins], edges[bins + 1]], axis=1)
        curve, smooth = self.correlation(LAGS), self.smooth.astype(bool)
        precision = np.maximum(self.error**-2 - 3, _LEAST_PRECISION)
        measured = np.clip(self.correlations / self.error**2 / precision, -1, 1)
        columns = zip(measured.T, precision.T**-0.5, curve.T, smooth, along.T, strict=True)
        return [Correlations(within, *column) for column in columns]

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, for the diagnostics of a model."""
        return {name: getattr(self, name).tolist() for name in _FIELDS}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        given: dict[str, Any] = {name: np.array(values[name], np.float64) for name in _FIELDS}
        return cls(**given | {"smooth": given["smooth"].astype(np.int64)})


_FIELDS = tuple(one.name for one in fields(Persistence))


def is_persistence(value: Any, features: int) -> bool:
    """Whether this is what `to_dict` gives for so many features, whoever wrote it."""
    if not (isinstance(value, dict) and value.keys() == set(_FIELDS)):
        return False
    bins = len(value["lags"]) if isinstance(value["lags"], list) else 0
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(_FIELDS, (features,))
    shapes |= {"lags": (bins,), "pairs": (bins,)}
    shapes |= {"correlations": (bins, features), "error": (bins, features)}
    if not (1 <= bins <= 1000 and all(_has_shape(value[k], shapes[k]) for k in _FIELDS)):
        return False
    found = Persistence.from_dict(value)
    return bool(
        (found.lasting >= 0).all()
        and (found.fresh >= 0).all()
        and (found.lasting + found.fresh <= 1 + 1e-9).all()
        and (found.memory > 0).all()
    )


def _has_shape(value: Any, shape: tuple[int, ...]) -> bool:
    """Lists of finite numbers, so long."""
    if not shape:
        return is_number(value) and abs(value) < 1e300
    return (
        isinstance(value, list)
        and len(value) == shape[0]
        and all(_has_shape(item, shape[1:]) for item in value)
    )


def fit_persistence(
    counts: Floats, noise_variance: float, edges: Floats, moments: Floats | None = None
) -> Persistence:
    """From noisy numbers (L, d, 4) of pairs of each kind in bins of their lag.

    moments: times at which people are, as shares of the range, where they are at no others.
    """
    if moments is None:  # people are at any time, and lags have density 2 (1 - h)
        places = (np.arange(_PLACES) + 0.5) / _PLACES
        lags = edges[:-1, None] + np.diff(edges)[:, None] * places
        weights = 1 - lags
    else:  # all pairs count alike
        apart = np.unique(np.abs(moments[:, None] - moments).round(9), return_counts=True)
        seen, often = apart[0][1:], apart[1][1:]  # not those of a record with itself
        own = np.searchsorted(edges[1:-1], seen) == np.arange(len(edges) - 1)[:, None]
        lags, weights = np.tile(seen, (len(edges) - 1, 1)), own * often
    total = weights.sum(axis=1, keepdims=True)  # 0 of a bin that has no lags
    shares = weights / np.where(total > 0, total, 1)
    possible = shares.sum(axis=1) > 0
    counts, lags, shares = counts[possible], lags[possible], shares[possible]
    # members (C,) of the family, equally likely: what lasts, is fresh and moves is even on the
    # simplex, memory is log-even from the first bin of lags to the range; what they say at the lags
    # (C, L, n)
    even = [np.linspace(0, 1, count) for count in _GRID]
    smooth, *units = (of.ravel() for of in np.meshgrid([1, 0], *even, indexing="ij"))
    other = np.sqrt(units[0])  # 1 - lasting
    length = edges[1] ** (1 - units[2])
    members = (smooth.astype(np.int64), 1 - other, other * units[1], length)
    each, last, new, memory = (of.reshape(-1, 1, 1) for of in members)
    said = last + (1 - last - new) * _kernel(lags / memory, each == 1)
    fitted, measured, errors = [], [], []
    rho = np.linspace(-0.99, 0.99, 199)
    for seen in counts.swapaxes(0, 1):  # (L, 4) of one feature
        kinds = seen.sum(axis=0)
        middle = (kinds[3] + kinds[1] / 2) / max(float(kinds.sum()), 1.0)
        table = _table_of_kinds(float(np.clip(middle, 0.001, 0.999))).T
        pi = np.stack([np.interp(said, _CORRELATIONS, column) for column in table], axis=-1)
        mean = (pi * shares[..., None]).sum(axis=2)
        against = _unlikeliness(seen, noise_variance, mean).sum(axis=-1)
        fitted.append(_likeliest(against, *members))
        # of each bin by itself: what its numbers leave possible, all correlations alike before
        pi = np.stack([np.interp(rho, _CORRELATIONS, column) for column in table], axis=-1)
        against = _unlikeliness(seen, noise_variance, pi[:, None, :])  # (199, L)
        weights = np.exp(against.min(axis=0) - against)
        weights /= weights.sum(axis=0)
        measured.append(rho @ weights)
        off = (rho[:, None] - measured[-1]) ** 2
        errors.append(np.sqrt((off * weights).sum(axis=0)))
    found = dict(zip(("smooth", "lasting", "fresh", "memory"), np.array(fitted).T, strict=True))
    found["smooth"] = found["smooth"].astype(np.int64)
    pairs = counts.sum(axis=2).mean(axis=1)
    at = (lags * shares).sum(axis=1)
    return Persistence(at, pairs, np.stack(measured, axis=1), np.stack(errors, axis=1), **found)


def _unlikeliness(counts: Floats, noise_variance: float, pi: Floats) -> Floats:
    """Minus the log likelihood (..., L) of shares (..., L, 4), with N as it suits them best.

    counts (L, 4) are N pi, with the variance of noise and of so many pairs: Gaussian, of covariance
    A - n pi pi^T, A = s^2 + n diag(pi), n the noisy number of pairs. By Sherman and Morrison
    the least of its quadratic form over N is that of A alone; its determinant is |A| (1 - n a).
    """
    pairs = np.maximum(counts.sum(axis=-1), 1.0)
    each = noise_variance + pairs[:, None] * pi
    a, b = (pi**2 / each).sum(axis=-1), (pi * counts / each).sum(axis=-1)
    c = (counts**2 / each).sum(axis=-1)
    size = np.log(each).sum(axis=-1) + np.log(1 - pairs * a)
    doubled: Floats = c - np.maximum(b, 0.0) ** 2 / a + size
    return doubled / 2


def _likeliest(
    unlikely: Floats, smooth: Ints, lasting: Floats, fresh: Floats, memory: Floats
) -> tuple[float, float, float, float]:
    """Of members (C,), (smooth, lasting, fresh, memory): k as is likelier, means of the rest."""
    likely = np.exp(unlikely.min() - unlikely)
    best = int(likely[smooth == 1].sum() >= likely[smooth == 0].sum())
    weights = np.where(smooth == best, likely, 0.0)
    weights /= weights.sum()
    kept = math.exp(weights @ np.log(memory))
    return best, float(weights @ lasting), float(weights @ fresh), kept


_CORRELATIONS = np.sin(np.linspace(-np.pi / 2, np.pi / 2, 201))  # closer towards the ends


def _table_of_kinds(middle: float) -> Floats:
    """pi (R, 4) of `_CORRELATIONS` (R,), if a share m of all records is in the middle third.

    With a the upper threshold and t = P(X > a) = (1 - m) / 2, the two kinds in outer thirds are
        same = 2 P(X > a, Y > a),   opposite = 2 P(X > a, Y < -a),
    each t times a mean over X of the upper third, of Phi; the others follow from m.
    """
    from scipy.special import ndtr, ndtri

    rho, tail = _CORRELATIONS[1:-1], (1 - middle) / 2
    a, x = -ndtri(tail), -ndtri((np.arange(256) + 0.5) / 256 * tail)
    spread = np.sqrt(1 - rho**2)[:, None]
    same, opposite = (
        2 * tail * ndtr((sign * rho[:, None] * x - a) / spread).mean(axis=1) for sign in (1, -1)
    )
    ends = np.array([0.0, 2 * tail])
    same = np.concatenate([ends[:1], same, ends[1:]])
    opposite = np.concatenate([ends[1:], opposite, ends[:1]])
    neighbouring = 2 * (2 * tail - same - opposite)
    return np.stack([same, neighbouring, opposite, middle - neighbouring / 2], axis=1)


def _kernel(x: Floats, smooth: Any) -> Floats:
    decay: Floats = np.exp(-x)
    return np.where(smooth, (1 + x) * decay, decay)
