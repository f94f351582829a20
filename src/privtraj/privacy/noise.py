"""Exact integer noise: the only noise that protects people.

Noise in floating point leaks through the gaps between floats, so every draw here is an integer
and no float takes part in a probability.

A distribution is a `Table` of cumulative probabilities in 128-bit fixed point. A draw is a uniform
128-bit integer U, located among the thresholds; `Table.tv_error` bounds the total variation between
what is drawn and what is meant. Three facts carry the proofs, with a = exp(-epsilon):

1. Discrete Laplace. P(x) = (1 - a) / (1 + a) a^|x| on the integers, from one table.
   `laplace_tv_per_draw(epsilon)` is below 2^-108 for every epsilon accepted here.

2. Convolution. X from D_Z(s), P(x) proportional to exp(-x^2 / 2 s^2), and Y from D_Z(r),
   independent. Then
       P(X + k Y = x)  is proportional to  sum_j exp(-(x - k j)^2 / 2 s^2 - j^2 / 2 r^2)
                              = exp(-x^2 / 2 S^2) sum_j exp(-(j - c_x)^2 / 2 t^2)
   with S^2 = s^2 + k^2 r^2, t = s r / S, c_x = k r^2 x / S^2. By Poisson summation the last sum is
   sqrt(2 pi) t (1 + h), |h| <= eta = 2 sum_{n >= 1} exp(-2 pi^2 t^2 n^2), for every x. So the law
   of X + k Y is D_Z(S) up to factors within (1 - eta) / (1 + eta) and its inverse, and their total
   variation is at most eta / (1 - eta). It is used twice, X1 + k (X2 + k X3), all three from
   D_Z(s): both times t > 3.99 and eta < 1e-135.

3. Rounding. Let f be the density of N(0, S^2). For an integer x (Peano kernel of the midpoint rule)
       P(round N(0, S^2) = x) - f(x) = int_{-1/2}^{1/2} (1/2 - |v|)^2 / 2 f''(x + v) dv,
   the kernel integrates to 1/24, and sum_x |f''(x + v)| <= int |f''| + int |f'''| for every v, as a
   unit interval holds one of the points. int |f''| = 4 phi(1) / S^2 = 0.96789 / S^2 and
   int |f'''| = (8 e^{-3/2} + 2) phi(0) / S^3 < 1.52 / S^3. Half the sum of the differences is
       TV( round N(0, S^2), D_Z(S) ) <= (0.96789 / S^2 + 1.52 / S^3) / 48 + 2 exp(-2 pi^2 S^2),
   the last term for the normaliser of D_Z(S), which is 1 up to twice that.

For integers q, q + round(g) = round(q + g): releasing q + X is therefore post-processing of
q + N(0, S^2), up to `GAUSSIAN_TV_PER_DRAW` per coordinate.

Not promised: constant time. Whoever can time single draws on the machine itself is not covered.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from privtraj.arguments import is_whole
from privtraj.arrays import frozen
from privtraj.errors import InputError

Shape = int | tuple[int, ...]

BASE_STD = 2**12  # s
STRIDE = 2**10  # k
GAUSSIAN_STD = math.sqrt(BASE_STD**2 * (1 + STRIDE**2 + STRIDE**4))
"""S = s sqrt(1 + k^2 + k^4), about 2^32: the standard deviation of `gaussian_integers`."""
GAUSSIAN_TV_PER_DRAW = 1.1e-21
"""Total variation between one draw of `gaussian_integers` and round(N(0, GAUSSIAN_STD^2)):
1.0932e-21 of rounding (fact 3), below 1e-134 of convolution (fact 2), below 1e-33 of the tables."""
EPSILON_RANGE = (1e-3, 64.0)
"""The Laplace parameters that have a table of sensible length (about 2 * 89 / epsilon entries)."""

_WORK_BITS = 256
_ONE = 1 << _WORK_BITS
_CHUNK = 1 << 16  # draws at a time: the working set stays in cache


class Source(Protocol):
    """A supply of uniform 64-bit words."""

    @property
    def private(self) -> bool:
        """Whether nobody can predict or replay the words."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """`count` independent uniform words, shape (count,)."""


@dataclass(frozen=True)
class SecureSource:
    """The operating system's generator. Holds no state, so there is nothing to replay."""

    private: ClassVar[bool] = True

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class SeededSource:
    """Philox from a seed: reproducible, so whoever knows the seed can take the noise off again."""

    private: ClassVar[bool] = False

    def __init__(self, seed: int) -> None:
        if not is_whole(seed) or seed < 0:
            raise InputError("the seed must be a non-negative integer")
        self._bits = np.random.Philox(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        return self._bits.random_raw(count)


def source_for(seed: int | None) -> Source:
    """The operating system's entropy, unless a seed asks for reproducible (not private) noise."""
    return SecureSource() if seed is None else SeededSource(seed)


@dataclass(frozen=True)
class Table:
    """A distribution on the integers first, first + 1, ..., first + n, drawn exactly.

    Threshold i is floor(2^128 P(X <= first + i)) = 2^64 high[i] + low[i], for i < n. A uniform
    128-bit U gives first + #{i : threshold_i <= U}, so X = first + i has probability
    (threshold_i - threshold_{i-1}) / 2^128.
    """

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    first: int
    tv_error: float

    def draw(self, source: Source, count: int) -> NDArray[np.int64]:
        """`count` independent draws, shape (count,)."""
        drawn = np.empty(count, dtype=np.int64)
        for start in range(0, count, _CHUNK):
            part = drawn[start : start + _CHUNK]
            part[:] = self._draw_chunk(source, part.size)
        return drawn

    def _draw_chunk(self, source: Source, count: int) -> NDArray[np.int64]:
        upper = source.words(count)
        below = self._located(upper)
        tied = np.flatnonzero(self.high.take(below, mode="clip") == upper)
        # U's low word is independent of its high word, so it is drawn only where it decides.
        for at, lower in zip(tied, source.words(tied.size), strict=True):
            end = int(np.searchsorted(self.high, upper[at], side="right"))
            below[at] += np.count_nonzero(self.low[below[at] : end] <= lower)
        return below + self.first

    def _located(self, words: NDArray[np.uint64]) -> NDArray[np.intp]:
        """np.searchsorted(high, words), sooner: most leading 16 bits leave one answer or two."""
        lead = (words >> np.uint64(48)).astype(np.intp)
        below, most = self._guide[lead], self._guide[lead + 1]
        below += (most > below) & (self.high.take(below, mode="clip") < words)
        open_ = np.flatnonzero(most - below > 0)
        below[open_] = np.searchsorted(self.high, words[open_])
        return below

    @cached_property
    def _guide(self) -> NDArray[np.intp]:
        """(2^16 + 1,) how many thresholds are below each number that ends in 48 zeros."""
        starts = np.arange(2**16, dtype=np.uint64) << np.uint64(48)
        return np.append(np.searchsorted(self.high, starts), len(self.high))


@lru_cache(maxsize=32)
def discrete_laplace(epsilon: float) -> Table:
    """P(x) proportional to exp(-epsilon |x|), epsilon taken as the exact rational the float is."""
    least, most = EPSILON_RANGE
    if not least <= epsilon <= most:
        raise InputError(f"Laplace noise needs an epsilon between {least:g} and {most:g}")
    return _table(_exp_minus(*float(epsilon).as_integer_ratio()), _ONE)


@lru_cache(maxsize=8)
def discrete_gaussian(std: int) -> Table:
    """P(x) proportional to exp(-x^2 / (2 std^2)), for an integer std from 1 to 2^14."""
    if not 1 <= std <= 2**14:
        raise InputError("a Gaussian table needs an integer standard deviation from 1 to 16384")
    return _table(_exp_minus(1, 2 * std**2), _exp_minus(1, std**2))


def laplace_integers(source: Source, shape: Shape, epsilon: float) -> NDArray[np.int64]:
    """Independent discrete Laplace noise, P(x) proportional to exp(-epsilon |x|): integer counts of
    L1 sensitivity 1 plus it are epsilon-DP, up to `laplace_tv_per_draw(epsilon)` for each cell."""
    return discrete_laplace(epsilon).draw(source, int(np.prod(shape))).reshape(shape)


def gaussian_integers(source: Source, shape: Shape) -> NDArray[np.int64]:
    """X1 + k (X2 + k X3) of fact 2, of standard deviation `GAUSSIAN_STD`: integer sums of L2
    sensitivity D plus it are (D / GAUSSIAN_STD)-GDP, up to `GAUSSIAN_TV_PER_DRAW` per coordinate.
    """
    table, size = discrete_gaussian(BASE_STD), int(np.prod(shape))
    fine, middle, coarse = (table.draw(source, size) for _ in range(3))
    return (fine + STRIDE * (middle + STRIDE * coarse)).reshape(shape)


def laplace_variance(epsilon: float) -> float:
    """Variance of one draw: 2 e^-epsilon / (1 - e^-epsilon)^2."""
    return 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2


def laplace_tv_per_draw(epsilon: float) -> float:
    """Total variation between one draw of `laplace_integers` and the discrete Laplace law."""
    return discrete_laplace(epsilon).tv_error


def _table(ratio: int, ratio_of_ratios: int) -> Table:
    """The symmetric table with weights w_0 = 1, w_{x+1} = w_x r_x, r_{x+1} = r_x q.

    Thresholds are floored below 0 and mirrored above, so positive and negative draws have equal
    probability. Error, in units of 2^-128, n weights on each side: a probability is a difference
    of two floors, off by less than 1 (the middle one by less than 2), so n + 1 in total variation;
    the two tails, less than 2; fixed-point truncation, less than 2^-60, as each of at most 2^19
    weights is off by less than 2^44 2^-256.
    """
    half = list(_weights(ratio, ratio_of_ratios))
    tail = list(accumulate(reversed(half)))
    total = tail.pop() + tail[-1]
    lower = [t for t in ((mass << 128) // total for mass in tail) if t]
    thresholds = lower + [(1 << 128) - t for t in reversed(lower)]
    word = (1 << 64) - 1
    return Table(
        high=frozen(np.array([t >> 64 for t in thresholds], dtype=np.uint64)),
        low=frozen(np.array([t & word for t in thresholds], dtype=np.uint64)),
        first=-len(lower),
        tv_error=(len(half) + 3) * 2.0**-128,
    )


def _weights(ratio: int, ratio_of_ratios: int) -> Iterator[int]:
    """w_0, w_1, ... until what follows has mass below 2^-128 w_0.

    The ratios never grow, so sum_{y >= x} w_y <= w_x / (1 - r_x).
    """
    weight = _ONE
    while weight << 128 >= _ONE - ratio:
        yield weight
        weight = weight * ratio >> _WORK_BITS
        ratio = ratio * ratio_of_ratios >> _WORK_BITS


def _exp_minus(numerator: int, denominator: int) -> int:
    """exp(-numerator / denominator) in fixed point: the inverse of a Taylor sum without signs.

    Each truncation is carried on by factors that add up to at most exp(x), so the relative error is
    below (number of terms) 2^-256 before the inverse and the same after it.
    """
    term, total, order = _ONE, 0, 0
    while term:
        total += term
        order += 1
        term = term * numerator // (denominator * order)
    return _ONE * _ONE // total
