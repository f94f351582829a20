"""Exact integer noise: the only noise that protects people.

Noise in floating point leaks through the gaps between floats, so every draw here is an integer
and no float takes part in a probability.

A draw is a uniform real number U of [0, 1], of which only as many bits are drawn as decide where it
is among the thresholds P(X <= x). A `Law` keeps the first 64 bits of the thresholds that are not
all zeros there or all ones, and these settle all but one in 10^14 draws. Where U and a threshold
agree in all bits drawn, both are continued, 64 bits at a time (`Law.tails`: bounds from below and
from above that agree). So nothing is cut off and nothing is rounded: if the words of the source are
uniform and independent, a draw has exactly the law that is stated. Three facts carry the proofs,
with a = exp(-epsilon):

1. Discrete Laplace. P(x) = (1 - a) / (1 + a) a^|x| on all integers, exactly: counts with this noise
   are differentially private with delta = 0, and no total variation is charged for it.

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
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import frozen
from privtraj.base.errors import InputError, is_whole

Shape = int | tuple[int, ...]

BASE_STD = 2**12  # s
STRIDE = 2**10  # k
GAUSSIAN_STD = math.sqrt(BASE_STD**2 * (1 + STRIDE**2 + STRIDE**4))
"""S = s sqrt(1 + k^2 + k^4), about 2^32: the standard deviation of `gaussian_integers`."""
GAUSSIAN_TV_PER_DRAW = 1.1e-21
"""Total variation between one draw of `gaussian_integers` and round(N(0, GAUSSIAN_STD^2)):
1.0932e-21 of rounding (fact 3) and below 1e-134 of convolution (fact 2)."""
EPSILON_RANGE = (1e-3, 64.0)
"""The Laplace parameters that have a table of sensible length (about 2 * 45 / epsilon entries)."""

_WORD = 64  # bits of a source's words
_GUIDE = 16  # bits of a word by which thresholds near it are found
_SPARE = 96  # bits beyond those that are wanted, so that bounds hardly ever disagree in these
_CHUNK = 1 << 16  # draws at a time: the working set stays in cache


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


Source = SecureSource | SeededSource
"""A supply of uniform 64-bit words: words(count), shape (count,), independent. private: whether
nobody can predict or replay them."""


def source_for(seed: int | None) -> Source:
    """The operating system's entropy, unless a seed asks for reproducible (not private) noise."""
    return SecureSource() if seed is None else SeededSource(seed)


@dataclass(frozen=True)
class Law:
    """P(x) proportional to w_|x| on the integers, w_0 = 1, w_{x+1} = w_x r_x, r_{x+1} = r_x q.

    r_0 = exp(-rate), q = exp(-bend): rationals, rate > 0 and bend >= 0, so that tails shrink.
    """

    rate: Fraction
    bend: Fraction = Fraction(0)

    @cached_property
    def high(self) -> NDArray[np.uint64]:
        """(2 n,) floor(2^64 P(X <= x)) from x = -n to -1, the first of them 0, and the complements
        in 64 bits of the same, in reverse. A word that is none of these leaves no other x than
        -n + #{i : high_i < word}, whatever bits follow."""
        lower = np.array(self.tails(_WORD)[::-1], dtype=np.uint64)
        return frozen(np.concatenate([lower, ~lower[::-1]]))

    @cached_property
    def guide(self) -> NDArray[np.int64]:
        """(2^16 + 1,) how many of `high` are below the words that begin with 0, 1, ... in 16 bits,
        and at the end how many there are."""
        first = np.arange(2**_GUIDE, dtype=np.uint64) << _WORD - _GUIDE
        return frozen(np.append(np.searchsorted(self.high, first), len(self.high)))

    def draw(self, source: Source, count: int) -> NDArray[np.int64]:
        """`count` independent draws, shape (count,).

        U < 1/2 gives -k for the number k of tails P(X <= -1), P(X <= -2), ... that are above U, and
        U >= 1/2 gives +k for that of 1 - U: as U and 1 - U have the same law, that is P(x) for
        every x.
        """
        drawn = np.empty(count, dtype=np.int64)
        for start in range(0, count, _CHUNK):
            part = drawn[start : start + _CHUNK]
            words = source.words(part.size)
            begin = (words >> _WORD - _GUIDE).view(np.int64)
            below, most = self.guide.take(begin), self.guide.take(begin + 1)
            among = np.flatnonzero(most > below + 1)  # few: most cells hold one threshold at most
            below += (below < most) & (self.high.take(below, mode="clip") < words)
            below[among] = np.searchsorted(self.high, words[among])
            part[:] = below - len(self.high) // 2
            for at in np.flatnonzero(self.high.take(below, mode="clip") == words):
                part[at] = self._settled(int(words[at]), source)
        return drawn

    def _settled(self, word: int, source: Source) -> int:
        """The draw of a U that begins like a threshold: by as many more words as it takes."""
        bits = _WORD
        while True:  # ends with probability one: U is no threshold
            bits += _WORD
            word = word << _WORD | int(source.words(1)[0])
            upper = word >> bits - 1
            near = (1 << bits) - 1 - word if upper else word  # U or 1 - U
            tails = self.tails(bits)
            if near not in tails:
                size = sum(tail > near for tail in tails)
                return size if upper else -size

    def tails(self, bits: int) -> list[int]:
        """floor(2^bits P(X <= -k)) for k = 1, 2, ..., as far as the first 0; P(X <= -1) < 1/2.

        Exact: bounds from below and above in fixed point, finer until all of their floors agree.
        """
        precision = bits
        while True:
            precision += _SPARE
            low, high = self._bounds(bits, precision)
            if low == high:
                return low

    def _bounds(self, bits: int, precision: int) -> tuple[list[int], list[int]]:
        """Floors of bounds from below and above; in units of 2^-precision, each w, r, q and sum is
        between its `low` and its `high`: products are rounded down in the one and up in the other.
        """
        one = 1 << precision
        floors: list[list[int]] = []
        low, high = [one], [one]
        (r, r_high), (q, q_high) = _exp_minus(self.rate, one), _exp_minus(self.bend, one)
        while low[-1]:
            low.append(low[-1] * r >> precision)
            high.append((high[-1] * r_high >> precision) + 1)
            r, r_high = r * q >> precision, (r_high * q_high >> precision) + 1
        # r never grows, so sum_{y > x} w_y <= w_x r_x / (1 - r_x)
        high.append(high[-1] * one // (one - r_high) + 1)
        low, high = list(accumulate(low[:0:-1]))[::-1], list(accumulate(high[:0:-1]))[::-1]
        for sums, total in ((low, one + 2 * high[0]), (high, one + 2 * low[0])):
            floors.append([])
            for mass in sums:
                floors[-1].append((mass << bits) // total)
                if not floors[-1][-1]:
                    break
        return floors[0], floors[1]


@lru_cache(maxsize=32)
def discrete_laplace(epsilon: float) -> Law:
    """P(x) proportional to exp(-epsilon |x|), epsilon taken as the exact rational the float is."""
    least, most = EPSILON_RANGE
    if not least <= epsilon <= most:
        raise InputError(f"Laplace noise needs an epsilon between {least:g} and {most:g}")
    return Law(Fraction(float(epsilon)))


@lru_cache(maxsize=8)
def discrete_gaussian(std: int) -> Law:
    """P(x) proportional to exp(-x^2 / (2 std^2)), for an integer std from 1 to 2^14."""
    if not 1 <= std <= 2**14:
        raise InputError("a Gaussian table needs an integer standard deviation from 1 to 16384")
    return Law(Fraction(1, 2 * std**2), Fraction(1, std**2))


def laplace_integers(source: Source, shape: Shape, epsilon: float) -> NDArray[np.int64]:
    """Independent discrete Laplace noise, P(x) proportional to exp(-epsilon |x|): integer counts of
    L1 sensitivity 1 plus it are epsilon-DP, with delta = 0."""
    return discrete_laplace(epsilon).draw(source, int(np.prod(shape))).reshape(shape)


def gaussian_integers(source: Source, shape: Shape) -> NDArray[np.int64]:
    """X1 + k (X2 + k X3) of fact 2, of standard deviation `GAUSSIAN_STD`: integer sums of L2
    sensitivity D plus it are (D / GAUSSIAN_STD)-GDP, up to `GAUSSIAN_TV_PER_DRAW` per coordinate.
    """
    table, size = discrete_gaussian(BASE_STD), int(np.prod(shape))
    fine, middle, coarse = table.draw(source, 3 * size).reshape(3, size)
    return (fine + STRIDE * (middle + STRIDE * coarse)).reshape(shape)


def laplace_variance(epsilon: float) -> float:
    """Variance of one draw: 2 e^-epsilon / (1 - e^-epsilon)^2."""
    return 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2


def _exp_minus(x: Fraction, one: int) -> tuple[int, int]:
    """Bounds of exp(-x), x >= 0, in units of 1 / one: inverses of those of a Taylor sum for exp(x).

    Each of N terms is rounded down by less than a unit, which later terms carry on by factors
    x^j k! / (k + j)! that add up to at most exp(x). The first term that is left out is below exp(x)
    units, for the same reason, and each one after it below half of the one before: N > 2 x.
    """
    term, total, order = one, 0, 0
    while term or order < 2 * x:
        total += term
        order += 1
        term = term * x.numerator // (x.denominator * order)
    above = total + (order + 4) * (total // one + 2) if x else one
    return one * one // above, -(-one * one // total)
