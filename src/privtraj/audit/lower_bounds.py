"""From how often an attack was right to what epsilon must be at least.

An attack says "present" or "absent". FPR is how often it says present where the person is absent,
TPR where the person is present. Runs are independent, so both counts are binomial, and Clopper and
Pearson bound the rates exactly: with probability at least `confidence`, at once,
    FPR <= fpr   and   TPR >= tpr,
each bound with half of what the confidence leaves. On that event, all of these hold.

From the rates alone.  (epsilon, delta) implies TPR <= e^epsilon FPR + delta and, for saying absent,
1 - FPR <= e^epsilon (1 - TPR) + delta. So
    epsilon >= max( log (tpr - delta) / fpr,  log (1 - fpr - delta) / (1 - tpr) ).

With the shape of the claim.  No attack on releases of the claimed noise reaches (fpr, tpr) outside
the region that their trade-off allows. Let s be the least factor for which the same releases, with
noise smaller by s, would allow it: then the noise is at most 1 / s of the claimed one, if it has
the claimed shape, and epsilon is at least that of the scaled releases. For Gaussian sums this is
mu >= Phi^-1(tpr) - Phi^-1(fpr). The conclusion "s > 1, so the claim is false" needs no such if.

Several attacks.  Each is given a part of what the confidence leaves; the parts add up to it, so all
bounds hold at once with the confidence of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri
from scipy.stats import binom

from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError, is_number
from privtraj.privacy.accounting import Tally, tally
from privtraj.privacy.events import Opaque

Counts = int | NDArray[np.intp]

POWER = 0.9  # with which an audit sees what it says it could see

_NEARLY_ONE = 1 - 1e-12
_SMALLEST, _LARGEST = 2.0**-12, 2.0**12
_PRECISION, _ON_GRID = 1e-3, 0.03  # of the factor; on grids every trial takes seconds
_ROUGHLY = 0.02  # of what could be seen


@dataclass(frozen=True)
class Rates:
    """How often an attack said present: `false_positives` of `absent` runs, and so on."""

    false_positives: int
    absent: int
    true_positives: int
    present: int

    def bounds(self, confidence: float) -> tuple[float, float]:
        """(fpr, tpr): above and below the true rates, both, with this confidence."""
        miss = (1 - check_confidence(confidence)) / 2
        fpr = at_most(self.false_positives, self.absent, miss)
        return float(fpr), float(at_least(self.true_positives, self.present, miss))


def at_most(successes: Counts, trials: int, miss: float) -> Floats:
    """Clopper-Pearson, elementwise: the true rate is above with probability at most `miss`."""
    failures = trials - np.asarray(successes, dtype=np.float64)
    bound = betaincinv(trials - failures + 1, np.maximum(failures, 1), 1 - miss)
    return np.where(failures > 0, bound, 1.0)


def at_least(successes: Counts, trials: int, miss: float) -> Floats:
    """Clopper-Pearson, elementwise: the true rate is below with probability at most `miss`."""
    return 1 - at_most(trials - np.asarray(successes), trials, miss)


def best_threshold(without: Floats, present: Floats, confidence: float) -> float:
    """The one among the scores with the largest Phi^-1(tpr) - Phi^-1(fpr), bounds on both rates.

    These hold for all thresholds at once: the best is not just the luckiest. Test on other runs.
    """
    cuts = np.unique(np.concatenate([without, present]))
    miss = (1 - check_confidence(confidence)) / 2 / len(cuts)
    fpr = at_most(_above(without, cuts), len(without), miss)
    tpr = at_least(_above(present, cuts), len(present), miss)
    return float(cuts[np.argmax(ndtri(tpr) - ndtri(np.minimum(fpr, _NEARLY_ONE)))])


def _above(scores: Floats, cuts: Floats) -> NDArray[np.intp]:
    return len(scores) - np.searchsorted(np.sort(scores), cuts, side="right")


def epsilon_of_rates(fpr: float, tpr: float, delta: float) -> float:
    """The least epsilon >= 0 at which (epsilon, delta) allows the rates."""
    ratios = [(tpr - delta, fpr), (1 - fpr - delta, 1 - tpr)]
    logs = [math.log(top / low) if low > 0 else math.inf for top, low in ratios if top > 0]
    return max([0.0, *logs])


def epsilon_of_shape(claim: Tally, fpr: float, tpr: float, delta: float) -> float:
    """The epsilon of the claimed releases, scaled until they allow the rates."""
    shape = _shape(claim)
    factor = scale_of_shape(shape, fpr, tpr)
    if factor in (0.0, math.inf):
        return factor
    return shape.scaled(factor).epsilon(delta)


def could_see(claim: Tally, absent: int, present: int, delta: float, confidence: float) -> float:
    """The least epsilon that so many runs would refute, with chance `POWER` or more, if releases of
    the claimed shape had it and the attack were as good as any: what they could have seen."""
    shape = _shape(claim)
    if shape.sampled:  # every trial on a grid takes seconds: an opaque release takes its place
        shape = tally([Opaque(shape.epsilon(delta), delta, "")], shape.adjacency)
    rates = np.linspace(0.0, 1.0, 401)
    allowed, claimed = claim.true_positive_rates(rates), claim.epsilon(delta)

    def refuted(factor: float) -> bool:
        reached = shape.scaled(factor).true_positive_rates(rates)
        best = int(np.argmax(reached - rates))
        miss = (1 - POWER) / 2
        alarms = int(binom.ppf(1 - miss, absent, rates[best]))
        seen = int(binom.ppf(miss, present, reached[best]))
        fpr, tpr = Rates(alarms, absent, seen, present).bounds(confidence)
        if epsilon_of_rates(fpr, tpr, delta) > claimed:
            return True
        return tpr > float(np.interp(fpr, rates, allowed))

    factor = _least(refuted, _ROUGHLY)
    return factor if factor == math.inf else shape.scaled(factor).epsilon(delta)


def _shape(claim: Tally) -> Tally:
    """Where nothing is claimed to have been released, one Gaussian sum takes its place."""
    return Tally(claim.adjacency, mu_squared=1.0) if claim.gdp_mu == 0 else claim


def scale_of_shape(claim: Tally, fpr: float, tpr: float) -> float:
    """The least factor by which the claimed noise must be too large, from below: 0.0 if the rates
    say nothing, inf if no factor allows them."""
    if tpr <= fpr:
        return 0.0

    def allows(factor: float) -> bool:
        highest = claim.scaled(factor).true_positive_rates(np.array([fpr]))
        return bool(highest[0] >= tpr)

    return _least(allows, _ON_GRID if claim.sampled else _PRECISION)


def _least(holds: Callable[[float], bool], precision: float) -> float:
    """A factor just below the least one that holds, where all larger ones hold too."""
    good = 1.0  # from here outwards: the grids of sampled sums grow with the factor
    if holds(good):
        while holds(good / 2):
            good /= 2
            if good < _SMALLEST:
                return 0.0
    else:
        good = 2.0
        while not holds(good):
            good *= 2
            if good > _LARGEST:
                return math.inf
    bad = good / 2
    while good - bad > precision * bad:
        middle = (good + bad) / 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return bad


def check_confidence(confidence: float) -> float:
    """Refuse what cannot be a confidence."""
    if not (is_number(confidence) and 0 < confidence < 1):
        raise InputError(Arg("confidence"), " must be above 0 and below 1")
    return float(confidence)
