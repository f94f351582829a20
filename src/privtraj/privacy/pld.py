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
These values at the grid points, joined by the pessimistic "connect the dots" rule of dp-accounting,
give a distribution that dominates the true one; composition is dp-accounting's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from privtraj.arrays import Floats

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

_REACH = 10.0  # standard deviations beyond which mass counts as an infinite loss: 1e-23
_NODES = 8193


def symmetric(closed: Callable[[Floats], Floats], interval: float) -> PrivacyLossDistribution:
    """From delta at any real epsilons, for pairs that are their own mirror image."""
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    reach, (floor,) = interval, closed(np.array([1e3]))
    while closed(np.array([reach]))[0] - floor > 1e-20 and reach < 1e3:
        reach *= 2
    return PrivacyLossDistribution(_dots(closed, -reach, reach, interval))


def of_mixture(
    sizes: Sequence[float],
    chances: Sequence[float],
    noise_multiplier: float,
    mirrored: bool,
    interval: float,
) -> PrivacyLossDistribution:
    """Of sum_j p_j N(s_j / z, 1) against N(0, 1), or against its mirror image: one bin's losses."""
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    s, p = np.array(sizes), np.array(chances)
    pair = _Pair(s[p > 0] / noise_multiplier, p[p > 0], mirrored)
    low, high = pair.range
    gone = _dots(pair.removed, low, high, interval)
    if mirrored:
        return PrivacyLossDistribution(gone)
    return PrivacyLossDistribution(gone, _dots(pair.added, -high, -low, interval))


def with_chance(
    losses: PrivacyLossDistribution, chance: float, interval: float
) -> PrivacyLossDistribution:
    """The losses with this chance, else none, and it is known which."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    return losses.compute_mixture(pld.identity(interval), chance) if chance < 1 else losses


def _dots(
    deltas: Callable[[Floats], Floats], low: float, high: float, interval: float
) -> Any:  # a PLDPmf
    """Connect the dots between delta at the multiples of the interval from low to high."""
    from dp_accounting.pld import pld_pmf

    first, last = math.floor(low / interval), math.ceil(high / interval)
    values = deltas(np.arange(first, last + 1, dtype=np.float64) * interval)
    # a hockey-stick divergence never increases and never falls below 1 - e^eps; floats may
    values = np.minimum.accumulate(np.clip(values, 0.0, 1.0))
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, first, last, values)


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

    def removed(self, epsilons: Floats) -> Floats:
        """Hockey-stick divergences of P from Q: P(x > x_eps) - e^eps Q(x > x_eps)."""
        x = self._where(epsilons)
        return _above(self._p, x) - np.exp(epsilons) * _above(self._q, x)

    def added(self, epsilons: Floats) -> Floats:
        """Hockey-stick divergences of Q from P: Q(x < x_-eps) - e^eps P(x < x_-eps)."""
        x = self._where(-epsilons)
        return _below(self._q, x) - np.exp(epsilons) * _below(self._p, x)

    def _where(self, losses: Floats) -> Floats:
        """The x of each loss: read off a table, then two steps of Newton inside its cell.

        A slip dx costs delta only dx^2, and what is left here is below 1e-10.
        """
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


def _above(law: _Law, x: Floats) -> Floats:
    return sum((p * ndtr(s - x) for s, p in zip(*law, strict=True)), np.zeros_like(x))


def _below(law: _Law, x: Floats) -> Floats:
    return sum((p * ndtr(x - s) for s, p in zip(*law, strict=True)), np.zeros_like(x))


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
