"""What attacks found, beside what was claimed: one attack, and a whole audit.

From how often an attack was right follows what epsilon must be at least. An attack says "present"
or "absent". FPR is how often it says present where the person is absent, TPR where the person is
present. Runs are independent, so both counts are binomial, and Clopper and Pearson bound the rates
exactly: with probability at least `confidence`, at once,
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
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri
from scipy.stats import binom

from privtraj.audit.transcript import POWER, SCALE, NoiseTest
from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError, is_number
from privtraj.privacy.accounting import Tally, bisect, tally
from privtraj.privacy.events import Adjacency, Opaque, check_budget
from privtraj.privacy.ledger import down, up


@dataclass(frozen=True, eq=False)
class Finding:
    """What one attack found.

    attack: its name.  canary: whom it looked for.  claim: all that the attack looks at.
    threshold: the attack says "present" where its score is above.  rates: how often it did.
    scores_without, scores_with: of the runs in the two worlds.
    """

    attack: str
    canary: str
    delta: float
    confidence: float
    threshold: float
    rates: Rates
    claim: Tally = field(repr=False)
    scores_without: Floats = field(repr=False)
    scores_with: Floats = field(repr=False)

    @cached_property
    def epsilon(self) -> float:
        """Claimed at delta."""
        return self.claim.epsilon(self.delta)

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """What the true rate of false positives is at most, and that of true ones at least: both,
        with this confidence."""
        return self.rates.bounds(self.confidence)

    @cached_property
    def epsilon_threshold(self) -> float:
        """Lower bound from the rates alone."""
        return epsilon_of_rates(*self.bounds, self.delta)

    @cached_property
    def epsilon_shape(self) -> float:
        """Lower bound for releases of the claimed shape."""
        return epsilon_of_shape(self.claim, *self.bounds, self.delta)

    @property
    def bound(self) -> float:
        """The better of the two lower bounds."""
        return max(self.epsilon_threshold, self.epsilon_shape)

    @property
    def violated(self) -> bool:
        """Whether a lower bound exceeds the claim: it is false, at this confidence."""
        return self.bound > self.epsilon

    @cached_property
    def could_see(self) -> float:
        """See the function of this name: what is below it may have gone unseen."""
        runs = self.rates.absent, self.rates.present
        return could_see(self.claim, *runs, self.delta, self.confidence)

    def to_dict(self, scores: bool = True) -> dict[str, Any]:
        """JSON values; None stands for an infinite epsilon."""
        names = ("scores_without", "scores_with") if scores else ()
        return {
            "attack": self.attack,
            "canary": self.canary,
            "epsilon": _finite(self.epsilon),
            "threshold": self.threshold,
            **asdict(self.rates),
            "false_positive_rate_at_most": self.bounds[0],
            "true_positive_rate_at_least": self.bounds[1],
            "epsilon_threshold": _finite(self.epsilon_threshold),
            "epsilon_shape": _finite(self.epsilon_shape),
            "could_see": _finite(self.could_see),
            "violated": self.violated,
            **{name: getattr(self, name).tolist() for name in names},
        }


@dataclass(frozen=True, eq=False)
class Audit:
    """What all attacks found, and whether the noise is as stated.

    claim: the releases that epsilon was computed from.  runs: fits in both worlds together.
    findings: one for each attack on each canary.  All of their bounds, and all tests of the noise,
    hold at once with this confidence.  noise: the tests, the oddest first.
    false_alarms: the chance that any of them fails though the noise is as stated.
    untested: releases whose noise has no test.
    """

    claim: Tally = field(repr=False)
    delta: float
    confidence: float
    view: str
    runs: int
    findings: tuple[Finding, ...]
    noise: tuple[NoiseTest, ...]
    false_alarms: float
    untested: tuple[str, ...] = ()

    @cached_property
    def epsilon(self) -> float:
        """Claimed at delta."""
        return self.claim.epsilon(self.delta)

    @property
    def adjacency(self) -> Adjacency:
        """Of the claim."""
        return self.claim.adjacency

    @property
    def strongest(self) -> Finding:
        """The attack that found most: one that refutes a claim, if any, else the largest bound."""
        return max(self.findings, key=lambda one: (one.violated, one.bound))

    @property
    def odd_noise(self) -> tuple[NoiseTest, ...]:
        """The tests that failed."""
        return tuple(test for test in self.noise if test.failed)

    @property
    def violated(self) -> bool:
        """Whether a claim is false, at this confidence: by a bound, or by odd noise."""
        return bool(self.odd_noise) or any(one.violated for one in self.findings)

    def of(self, attack: str, canary: str | None = None) -> Finding:
        """The finding of one attack, by its name."""
        return next(
            one for one in self.findings if one.attack == attack and canary in (None, one.canary)
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON values; None stands for an infinite epsilon."""
        return {
            "claim": {
                "epsilon": _finite(self.epsilon),
                "delta": self.delta,
                "adjacency": self.adjacency,
            },
            "view": self.view,
            "runs": self.runs,
            "confidence": self.confidence,
            "strongest": self.strongest.to_dict(scores=False),
            "attacks": [one.to_dict() for one in self.findings],
            "noise": {
                "false_alarm_rate": self.false_alarms,
                "tests": [{**asdict(test), "failed": test.failed} for test in self.noise],
                "not_tested": list(self.untested),
            },
            "violated": self.violated,
        }

    def __str__(self) -> str:
        most, odd = self.strongest, self.odd_noise
        several = len({one.canary for one in self.findings}) > 1

        def name(finding: Finding) -> str:
            return f"{finding.attack} ({finding.canary})" if several else finding.attack

        lines = [
            f"Privacy audit: {self.runs} runs, {_WORLDS[self.adjacency]}",
            f"Claim: epsilon = {up(self.epsilon)}, delta = {self.delta:g} ({self.adjacency}).",
            f"Attacks on {_VIEWS.get(self.view, self.view)}.",
            f"Lower bounds on epsilon, at {100 * self.confidence:g} % confidence for all together:",
            "   found   claimed  could see  by looking at",
        ]
        for one in self.findings:
            numbers = f"{down(one.bound):>6}  {up(one.epsilon):>8}  {up(one.could_see):>9}"
            lines.append(f"  {numbers}  {name(one)}{'  VIOLATED' * one.violated}")
        rates = most.rates
        lines += [
            f"Strongest: {name(most)}: right in {rates.true_positives} of {rates.present} runs "
            f"with the person, wrong in {rates.false_positives} of {rates.absent} without.",
            f"  {down(most.epsilon_threshold)}  from these rates alone",
            f"  {down(most.epsilon_shape)}  for noise of the claimed shape",
            f"Noise against the ledger: {len(self.noise)} tests, {len(odd)} failed "
            f"(false alarms in at most {100 * self.false_alarms:.3g} % of audits).",
        ]
        scales = [one.could_see for one in self.noise if one.of == SCALE and not one.failed]
        if scales:
            lines.append(
                f"  They see a standard deviation of {min(scales):.2g} to {max(scales):.2g} of the "
                "stated one, by release."
            )
        lines += [f"  Odd: {test}" for test in odd[:_MOST_ODD]]
        if self.untested:
            lines.append(f"  Not tested, as people are sampled: {', '.join(self.untested)}.")
        verdict = (
            "no violation found. An audit can refute a claim, not prove it: below what it "
            f"could see ({100 * POWER:g} % of the time) it is blind."
        )
        if self.violated:
            bound = any(one.violated for one in self.findings)
            why = "A lower bound exceeds the claim" if bound else "The noise is not as stated"
            miss = f"{100 * (1 - self.confidence):.3g} %"
            verdict = f"VIOLATED. {why}; for a true claim that happens in at most {miss} of audits."
        return "\n  ".join([*lines, f"Verdict: {verdict}"])


_MOST_ODD = 5
_WORLDS: dict[Adjacency, str] = {
    "add-remove": "half of them with one more person",
    "replace-one": "half of them with one person's records replaced",
}
_VIEWS = {
    "transcript": "everything that left the guard, and on the model",
    "released": "the released model alone",
}


def compare(
    scores_without: ArrayLike,
    scores_with: ArrayLike,
    claim: Tally,
    delta: float,
    confidence: float = 0.95,
    threshold: float | None = None,
    attack: str = "scores",
    canary: str = "",
) -> Finding:
    """Bounds from an attack's scores in independent runs without and with the person.

    threshold: fixed in advance; None chooses it on the first half of the runs and evaluates it on
    the second. For a true claim the result is `violated` with probability at most 1 - confidence.
    """
    without, present = (np.asarray(each, np.float64) for each in (scores_without, scores_with))
    for values in (without, present):
        if values.ndim != 1 or len(values) < 2 or np.isnan(values).any():
            raise InputError("scores must be a list of at least two numbers in either world")
    check_budget(1.0, delta)
    check_confidence(confidence)
    tested, detected = without, present
    if threshold is None:
        halves = len(without) // 2, len(present) // 2
        threshold = best_threshold(without[: halves[0]], present[: halves[1]], confidence)
        tested, detected = without[halves[0] :], present[halves[1] :]
    alarms, seen = (int((scores > threshold).sum()) for scores in (tested, detected))
    rates = Rates(alarms, len(tested), seen, len(detected))
    facts = (delta, confidence, threshold, rates, claim)
    return Finding(attack, canary, *facts, without, present)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


Counts = int | NDArray[np.intp]

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
    alarms, seen = (
        len(scores) - np.searchsorted(np.sort(scores), cuts, side="right")
        for scores in (without, present)
    )
    fpr = np.minimum(at_most(alarms, len(without), miss), _NEARLY_ONE)
    return float(cuts[np.argmax(ndtri(at_least(seen, len(present), miss)) - ndtri(fpr))])


def epsilon_of_rates(fpr: float, tpr: float, delta: float) -> float:
    """The least epsilon >= 0 at which (epsilon, delta) allows the rates."""
    ratios = [(tpr - delta, fpr), (1 - fpr - delta, 1 - tpr)]
    logs = [math.log(top / low) if low > 0 else math.inf for top, low in ratios if top > 0]
    return max([0.0, *logs])


def epsilon_of_shape(claim: Tally, fpr: float, tpr: float, delta: float) -> float:
    """The epsilon of the claimed releases, scaled until they allow the rates."""
    shape = _shape(claim)
    factor = scale_of_shape(shape, fpr, tpr)
    return factor if factor in (0.0, math.inf) else shape.scaled(factor).epsilon(delta)


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
    return bisect(lambda factor: not holds(factor), good / 2, good, precision)


def check_confidence(confidence: float) -> float:
    """Refuse what cannot be a confidence."""
    if not (is_number(confidence) and 0 < confidence < 1):
        raise InputError(Arg("confidence"), " must be above 0 and below 1")
    return float(confidence)
