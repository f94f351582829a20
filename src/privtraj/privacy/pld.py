"""Privacy loss distributions on a grid, for events whose losses have no closed form.

The dominating pair of a sampled Gaussian sum.  One person's records in one time bin, those of a
sampled set S of probability p_S, add v_S to the sum, of norm at most s_j = j c where j are in S.
With unit noise the two laws of the release are, up to a common shift,
    P = sum_S p_S N(v_S, I)    and    Q = N(0, I)                (add-remove)
                               or     Q = sum_S p_S N(v'_S, I)   (replace-one).
Claim: nothing is worse than all v_S along one line, of full length, and all v'_S against it,
    P = sum_j p_j N(s_j, 1)    and    Q = N(0, 1)    or    Q = sum_j p_j N(-s_j, 1).
Proof. With x from N(0, I) and X_S = <v_S, x>, Y_S = <v'_S, x>, every hockey-stick divergence, in
either direction, is the expectation of a convex function of
    sum_S p_S e^{X_S - |v_S|^2 / 2} - a sum_S p_S e^{Y_S - |v'_S|^2 / 2},       a > 0,
(for add-remove the second sum is a constant). A convex function of a sum of increasing functions of
the X_S and the -Y_S is supermodular in them, so among all joint laws with the same normal margins
its expectation is largest for the comonotone one (Lorentz; Tchen): X_S = |v_S| Z, Y_S = -|v'_S| Z.
Shorter vectors are no worse: lengthen each by coordinates of its own, which whoever sees them may
drop again, then apply the same argument.  QED.
Records in different bins have coins and blocks of noise of their own, so their pairs multiply: g of
them are g compositions of one. Where a record of bin i is replaced by one of bin j, the same
argument holds with v and v' in different blocks, and the pair of one bin is the worse.

On the line the loss l(x) = log P(x) / Q(x) increases with x, so with l(x_eps) = eps
    delta(eps) = P(x > x_eps) - e^eps Q(x > x_eps).
These values at the grid points, joined by the pessimistic "connect the dots" rule (Doroshenko et
al., 2022), give a distribution that dominates the true one; composition is dp-accounting's.

What arithmetic may lose.  `Losses.error` bounds by how much a computed delta can be below that of a
distribution that dominates, at any epsilon; it is added to every delta. u = 2^-53.

1. Values.  v_i is within e of the hockey-stick divergence at grid point i: e follows from relative
   errors of exp and of the normal distribution function (`_Pair.error`, `accounting`), and from
   where the best test is cut off: P(A) - e^eps Q(A) for the set A = {x > x'} instead of
   {x > x_eps} is less by at most |x' - x_eps| times |l(x') - eps|, as a density is below one.
2. Dots.  With d_i = v_{i+1} - v_i the mass of point i is (d_i - d_{i-1}) / (e^h - 1) - d_{i-1}. The
   difference of floats within a factor of two of each other is exact (Sterbenz), so each mass is
   off by less than 4 u (|d_i - d_{i-1}| / (e^h - 1) + |d_{i-1}|), and where that factor is exceeded
   by another 2 u |d| / (e^h - 1). The sum of all this is computed (`_dots`). Masses below zero are
   raised to it, and to raise a mass raises delta.
3. Composition.  delta of a composition is the mean of delta_1(eps - loss_2), so errors of all parts
   add up, whatever their size, as often as a part is repeated.
4. Transforms.  A discrete Fourier transform of n numbers, n a product of factors up to 11, has a
   relative error of at most phi = 20 u log2(n) in Euclidean norm. For a factor p replaces p numbers
   by p sums of p products with numbers of modulus one: each sum is off by (p + 3) u times at most
   sqrt(p) times the norm of the p numbers, all of them by sqrt(p) (p + 3) u relative to the norm of
   the sums, and another 4 u for the products between factors: less than 15 u per factor of two.
   Of masses with sum 1 and norm nu no coefficient is above 1, so that products and powers of k
   transforms are off by at most k (phi + 8 u) sqrt(n) nu, the 8 u for the powers themselves; the
   transform back divides this by sqrt(n) and adds phi nu. The sum of n numbers is at most sqrt(n)
   times their norm: all masses together are off by at most (k + 1) (phi + 8 u) sqrt(n) nu, and so
   is delta; 1 % more is charged for errors of errors. The norm of a composition is at most that of
   each part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

import numpy as np

from privtraj.base.arrays import Floats

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import PLDPmf

_REACH = 10.0  # standard deviations beyond which mass counts as an infinite loss: 1e-23
_NODES = 8193
_UNIT = 2.0**-53  # u
_TRUNCATED = 1e-15  # mass that dp-accounting may count as an infinite loss when it composes


@dataclass(frozen=True, eq=False)
class Losses:
    """Losses at multiples of an interval, of a pair that dominates.

    masses: distributions of dp-accounting, one for each direction, or one for both if they are
    alike. error: by how much arithmetic may have lowered delta. norm: of the masses, at most.
    """

    masses: tuple[PLDPmf, ...]
    error: float
    norm: float

    def delta(self, epsilon: float) -> float:
        """At least the hockey-stick divergence of the pair at any real epsilon, both ways.

        A divergence is not negative; a sum of masses that transforms have rounded can be.
        """
        found = (masses.get_delta_for_epsilon(epsilon) for masses in self.masses)
        return float(max(0.0, *found)) + self.error

    def repeated(self, times: int) -> Losses:
        """Of so many such pairs."""
        if times == 1:
            return self
        composed = tuple(masses.self_compose(times, _TRUNCATED) for masses in self.masses)
        length = max(masses.size for masses in (*self.masses, *composed))
        lost = _lost_by_transforms(times, length, self.norm)
        return Losses(composed, times * self.error + lost, self.norm)

    def beside(self, other: Losses) -> Losses:
        """Of both pairs."""
        from dp_accounting.pld.pld_pmf import compose_pmfs

        ways = max(len(self.masses), len(other.masses))  # one mass stands for both directions
        mine, theirs = (each.masses * (ways // len(each.masses)) for each in (self, other))
        composed = tuple(compose_pmfs(*each, _TRUNCATED) for each in zip(mine, theirs, strict=True))
        length = sum(max(masses.size for masses in each.masses) for each in (self, other))
        lost = _lost_by_transforms(2, length, max(self.norm, other.norm))
        return Losses(composed, self.error + other.error + lost, min(self.norm, other.norm))

    def with_chance(self, chance: float, interval: float) -> Losses:
        """With this chance, else none, and it is known which."""
        from dp_accounting.pld.pld_pmf import create_pmf

        if chance == 1:
            return self
        nothing = create_pmf({0: 1.0}, interval, 0.0, pessimistic_estimate=True)
        mixed = tuple(masses.compute_mixture(nothing, chance) for masses in self.masses)
        norm = chance * self.norm + 1 - chance
        return Losses(mixed, chance * self.error + 4 * _UNIT, norm)


def _lost_by_transforms(k: int, length: int, norm: float) -> float:
    """What k transforms of so many masses may have lost, by 4."""
    n = max(1.25 * length, 2.0)  # the next length that has small factors is below
    phi = 20 * _UNIT * math.log2(n)
    return 1.01 * (k + 1) * (phi + 8 * _UNIT) * math.sqrt(n) * norm


def symmetric(closed: Callable[[Floats], Floats], value_error: float, interval: float) -> Losses:
    """From delta at any real epsilons, within an error, for pairs that mirror themselves."""
    reach, (floor,) = interval, closed(np.array([1e3]))
    while closed(np.array([reach]))[0] - floor > 1e-20 and reach < 1e3:
        reach *= 2
    return _dots(closed, value_error, -reach, reach, interval)


def of_mixture(
    sizes: Sequence[float],
    chances: Sequence[float],
    noise_multiplier: float,
    mirrored: bool,
    interval: float,
) -> Losses:
    """Of sum_j p_j N(s_j / z, 1) against N(0, 1), or against its mirror image: one bin's losses."""
    s, p = np.array(sizes), np.array(chances)
    pair = _Pair(s[p > 0] / noise_multiplier, p[p > 0], mirrored)
    (low, high), error = pair.range, pair.error(interval)
    gone = _dots(partial(pair.divergences, 1.0), error, low, high, interval)
    if mirrored:
        return gone
    come = _dots(partial(pair.divergences, -1.0), error, -high, -low, interval)
    return Losses(
        (*gone.masses, *come.masses), max(gone.error, come.error), max(gone.norm, come.norm)
    )


def _dots(
    deltas: Callable[[Floats], Floats],
    value_error: float,
    low: float,
    high: float,
    interval: float,
) -> Losses:
    """Connect the dots between delta at the multiples of the interval from low to high."""
    from dp_accounting.pld.pld_pmf import create_pmf

    first, last = math.floor(low / interval), math.ceil(high / interval)
    values = deltas(np.arange(first, last + 1, dtype=np.float64) * interval)
    # a hockey-stick divergence never increases, and is between 0 and 1; floats may not be
    values = np.minimum.accumulate(np.clip(values, 0.0, 1.0))
    d, growth = np.diff(values), math.expm1(interval)
    bends = np.diff(d) / growth
    ends = [1 - values[0] + d[0] / growth, -d[-1] / -math.expm1(-interval)]
    probabilities = np.maximum(0.0, [ends[0], *(bends - d[:-1]), ends[1]])
    apart = values[1:] < values[:-1] / 2
    lost = np.abs(bends).sum() - d.sum() + np.abs(ends).sum() - (d[0] + d[-1]) / growth
    lost = 4 * lost - 2 * d[apart].sum() / growth
    masses = dict(zip(range(first, last + 1), probabilities, strict=True))
    made = create_pmf(masses, interval, float(values[-1]), pessimistic_estimate=True)
    error = value_error + (lost + 8) * _UNIT * (1 + 1e-6)
    return Losses((made,), float(error), float(np.linalg.norm(probabilities)) * (1 + 1e-6))


class _Pair:
    """P = sum_j p_j N(s_j, 1) against Q = N(0, 1), or its mirror image sum_j p_j N(-s_j, 1)."""

    def __init__(self, sizes: Floats, chances: Floats, mirrored: bool) -> None:
        self._p = (sizes, chances)
        self._q = (-sizes, chances) if mirrored else (np.zeros(1), np.ones(1))
        self._ends = (self._q[0].min() - _REACH, sizes.max() + _REACH)

    @property
    def range(self) -> tuple[float, float]:
        """Losses at the two ends of all that is likely under P or Q."""
        low, high = self._loss(np.array(self._ends))
        return float(low), float(high)

    def error(self, interval: float) -> float:
        """Of the `divergences` on a grid of losses.

        Of exp(-x^2 / 2) and exp(eps), whose arguments are rounded, relative to probabilities of at
        most 1; and of the places x, which are in one of the cells of `_where`.
        """
        low, high = self.range
        grid = np.clip(np.arange(low, high + interval, interval), low, high)
        off = float(np.abs(self._loss(self._where(grid)) - grid).max())
        largest = max(map(abs, (*self._ends, low, high)))
        cell = (self._ends[1] - self._ends[0]) / (_NODES - 1)
        rounded = 2 * (largest**2 + largest + 32) * _UNIT
        return rounded + cell * (off + 8 * (largest**2 + 1) * _UNIT) + 1e-22

    def divergences(self, sign: float, epsilons: Floats) -> Floats:
        """Hockey-stick divergences: of P from Q, P(x > x_eps) - e^eps Q(x > x_eps), if the sign is
        1, and of Q from P, Q(x < x_-eps) - e^eps P(x < x_-eps), if it is -1."""
        first, second = (self._p, self._q) if sign > 0 else (self._q, self._p)
        x = self._where(sign * epsilons)
        return _beyond(first, x, sign) - np.exp(epsilons) * _beyond(second, x, sign)

    def _where(self, losses: Floats) -> Floats:
        """The x of each loss: read off a table, then two steps of Newton inside its cell."""
        nodes = np.linspace(*self._ends, _NODES)
        at_nodes = self._loss(nodes)
        cell = np.clip(np.searchsorted(at_nodes, losses), 1, _NODES - 1)
        x = np.interp(losses, at_nodes, nodes)
        for _ in range(2):
            slope = np.maximum(_slope(self._p, x) - _slope(self._q, x), 1e-12)
            x = np.clip(x + (losses - self._loss(x)) / slope, nodes[cell - 1], nodes[cell])
        return x

    def _loss(self, x: Floats) -> Floats:
        return _log_density(self._p, x) - _log_density(self._q, x)


_Law = tuple[Floats, Floats]  # centres and chances of a mixture of unit normals


def _beyond(law: _Law, x: Floats, sign: float) -> Floats:
    """Probability of what is above x if the sign is 1, below if it is -1."""
    from scipy.special import ndtr

    return sum((p * ndtr(sign * (s - x)) for s, p in zip(*law, strict=True)), np.zeros_like(x))


def _log_density(law: _Law, x: Floats) -> Floats:
    """Up to the factor N(x; 0) that cancels in ratios."""
    parts = (s * x - s * s / 2 + math.log(p) for s, p in zip(*law, strict=True))
    return reduce(np.logaddexp, parts)


def _slope(law: _Law, x: Floats) -> Floats:
    """Derivative of `_log_density`."""
    whole = _log_density(law, x)
    return sum(
        (s * p * np.exp(s * x - s * s / 2 - whole) for s, p in zip(*law, strict=True)),
        np.zeros_like(x),
    )
