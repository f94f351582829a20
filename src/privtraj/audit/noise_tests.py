"""Is the noise of every release what its entry in the ledger states?

Whoever audits knows the table, so the noise of an answer is known: the answer, less its exact
value. Under the stated law it is made standard normal, number by number:

    sums     z = noise / (c z_j)
    counts   z = Phi^-1( P(X < noise) + V P(X = noise) ),   V uniform, so z is exactly N(0, 1)

and independent numbers are then tested exactly, by two laws that need no large numbers:

    squares   sum of z^2 over n numbers                      chi^2 with n degrees of freedom
              sum of (z_1 + .. + z_m)^2 / m over n groups    the same; noise that is shared makes it
                                                             too large, that cancels out too small
    signs     how often z_i and z_j agree, over n pairs      Binomial(n, 1/2)

The pairs of signs form paths (numbers in a random order, each with the next), along which the
agreements of fair, independent signs are independent. Tests are two-sided, and each is given an
equal part of the chance of a false alarm. A release that has no entry fails outright. Sums over
people who are sampled are not tested: who takes part is drawn as well.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import bdtr, bdtrc, chdtr, chdtrc, chdtri, ndtri, ndtri_exp

from privtraj.audit.lower_bounds import POWER
from privtraj.audit.transcript import Answer, Run
from privtraj.base.arrays import Floats
from privtraj.privacy.events import Event, GaussianSum, LaplaceCounts

SCALE = "scale of the noise"


@dataclass(frozen=True)
class NoiseTest:
    """One test. p: the chance of anything as odd, were the noise as stated; odd if below level.

    could_see: what would have been found in nine of ten audits: for squares, noise of so many times
    the stated standard deviation; for signs, a correlation.
    """

    release: str
    of: str
    p: float
    level: float
    could_see: float

    @property
    def failed(self) -> bool:
        """Whether the noise is not as stated."""
        return self.p < self.level

    def __str__(self) -> str:
        return f"{self.of} of '{self.release}' (p = {self.p:.1g})"


@dataclass
class Squares:
    """A sum of squares that has a chi^2 law with so many degrees of freedom."""

    total: float = 0.0
    count: int = 0

    def add(self, z: Floats) -> None:
        self.total += float((z * z).sum())
        self.count += z.size

    def p(self) -> float:
        return _two_sided(chdtr(self.count, self.total), chdtrc(self.count, self.total))

    def could_see(self, level: float) -> float:
        """Share s of the standard deviation: s^2 chi^2 is below the lower end in most audits."""
        least, usual = chdtri(self.count, 1 - level / 2), chdtri(self.count, 1 - POWER)
        return math.sqrt(least / usual)


@dataclass
class Signs:
    """How many pairs have one sign; as many as a fair coin would."""

    agreeing: int = 0
    count: int = 0

    def add(self, first: Floats, second: Floats) -> None:
        agree = (first > 0) == (second > 0)
        self.agreeing += int(np.count_nonzero(agree))
        self.count += agree.size

    def p(self) -> float:
        above = bdtrc(self.agreeing - 1, self.count, 0.5) if self.agreeing else 1.0
        return _two_sided(bdtr(self.agreeing, self.count, 0.5), above)

    def could_see(self, level: float) -> float:
        """A correlation r of normal numbers, whose signs agree with chance 1/2 + arcsin(r) / pi."""
        beyond = (ndtri(POWER) - ndtri(level / 2)) / (2 * math.sqrt(self.count))
        return math.sin(math.pi * min(beyond, 0.5))


Sample = Squares | Signs


class NoiseTests:
    """The noise of all runs, as far as the tests have to remember it."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._samples: dict[tuple[str, str], Sample] = {}
        self._last: dict[str, Floats] = {}
        self.unpaid: set[str] = set()
        self.untested: set[str] = set()

    def add(self, run: Run) -> None:
        """The noise of one run."""
        drawn: dict[str, list[Floats]] = defaultdict(list)
        for answer, entry in run.entries():
            if entry is None:
                self.unpaid.add(answer.what)
                continue
            noise = answer.rest - (answer.present if run.here else answer.without)
            z = standardised(noise, entry, answer, self._rng)
            if z is None:
                self.untested.add(answer.what)
                continue
            drawn[answer.what].append(z)
            self._within(answer.what, z)
        self._between(drawn)

    def _within(self, what: str, z: Floats) -> None:
        rows, columns = z.shape
        self._squares(what, SCALE).add(z)
        if columns > 1:
            self._squares(what, "sums over numbers").add(z.sum(axis=1) / math.sqrt(columns))
            mixed = z[:, self._rng.permutation(columns)]
            self._signs(what, "independence of numbers").add(mixed[:, 1:], mixed[:, :-1])
        if rows > 1:
            self._squares(what, "sums over times").add(z.sum(axis=0) / math.sqrt(rows))
            mixed = z[self._rng.permutation(rows)]
            self._signs(what, "independence of times").add(mixed[1:], mixed[:-1])

    def _between(self, drawn: dict[str, list[Floats]]) -> None:
        """Numbers at the same place of different releases, of steps of one, and of runs."""
        for what, answers in drawn.items():
            for first, second in pairwise(answers):
                self._pair(what, "independence of steps", first, second)
            if what in self._last:
                self._pair(what, "independence of runs", self._last[what], answers[0])
            self._last[what] = answers[-1]
        names = self._rng.permutation(sorted(drawn)).tolist()
        for one, other in pairwise(names):
            self._pair("all", "independence of releases", drawn[one][0], drawn[other][0])

    def _pair(self, what: str, of: str, first: Floats, second: Floats) -> None:
        size = min(first.size, second.size)
        self._signs(what, of).add(first.ravel()[:size], second.ravel()[:size])

    def _squares(self, what: str, of: str) -> Squares:
        sample = self._samples.setdefault((what, of), Squares())
        assert isinstance(sample, Squares)
        return sample

    def _signs(self, what: str, of: str) -> Signs:
        sample = self._samples.setdefault((what, of), Signs())
        assert isinstance(sample, Signs)
        return sample

    def results(self, false_alarms: float) -> tuple[NoiseTest, ...]:
        """All tests, the oddest first; if the noise is as stated, any fails with at most this
        chance."""
        level = false_alarms / max(1, len(self._samples))
        tests = [
            NoiseTest(what, of, sample.p(), level, sample.could_see(level))
            for (what, of), sample in self._samples.items()
        ]
        unpaid = [NoiseTest(what, "entry in the ledger", 0.0, level, 0.0) for what in self.unpaid]
        return tuple(sorted([*unpaid, *tests], key=lambda test: test.p))


def standardised(
    noise: Floats, stated: Event, answer: Answer, rng: np.random.Generator
) -> Floats | None:
    """The noise (K, D) of an answer made standard normal under the stated law, None if it has none.

    For counts, with a = e^-epsilon and x <= 0,
        P(X < x) + V P(X = x) = a^|x| (a + V (1 - a)) / (1 + a),
    and for x > 0 the mirror image: no tail is too far out for a float.
    """
    if isinstance(stated, LaplaceCounts):
        a = math.exp(-stated.epsilon)
        log_below = np.log(a + rng.random(noise.shape) * (1 - a)) - math.log1p(a)
        z: Floats = ndtri_exp(log_below - stated.epsilon * np.abs(noise))
        return np.where(noise > 0, -z, z)
    if isinstance(stated, GaussianSum) and stated.rate == 1:
        return noise / (answer.unit * stated.noise_multiplier)
    return None


def _two_sided(below: float, above: float) -> float:
    return float(min(1.0, 2 * min(below, above)))
