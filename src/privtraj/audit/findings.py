"""What attacks found, beside what was claimed: one attack, and a whole audit."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privtraj.audit.lower_bounds import (
    POWER,
    Rates,
    best_threshold,
    check_confidence,
    could_see,
    epsilon_of_rates,
    epsilon_of_shape,
)
from privtraj.audit.noise_tests import SCALE, NoiseTest
from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError
from privtraj.privacy.accounting import Tally
from privtraj.privacy.events import Adjacency, check_delta
from privtraj.privacy.ledger import down, up


@dataclass(frozen=True, eq=False)
class Finding:
    """What one attack found.

    attack: its name.  canary: whom it looked for.
    epsilon: claimed at delta, for all that the attack looks at.  claim: what that follows from.
    threshold: the attack says "present" where its score is above.  rates: how often it did.
    false_positive_rate, true_positive_rate: bounds on the true rates, at this confidence.
    epsilon_threshold: lower bound from the rates alone.  epsilon_shape: lower bound for releases of
    the claimed shape.  Both hold, at once, with this confidence.
    scores_without, scores_with: of the runs in the two worlds.
    """

    attack: str
    canary: str
    epsilon: float
    delta: float
    confidence: float
    threshold: float
    rates: Rates
    false_positive_rate: float
    true_positive_rate: float
    epsilon_threshold: float
    epsilon_shape: float
    claim: Tally = field(repr=False)
    scores_without: Floats = field(repr=False)
    scores_with: Floats = field(repr=False)

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
        """The least epsilon that so many runs would have refuted in nine of ten audits, had the
        attack been as good as any: what is below it may have gone unseen."""
        runs = self.rates.absent, self.rates.present
        return could_see(self.claim, *runs, self.delta, self.confidence)

    def to_dict(self, scores: bool = True) -> dict[str, Any]:
        """JSON values; None stands for an infinite epsilon."""
        values: dict[str, Any] = {
            "attack": self.attack,
            "canary": self.canary,
            "epsilon": _finite(self.epsilon),
            "threshold": self.threshold,
            **asdict(self.rates),
            "false_positive_rate_at_most": self.false_positive_rate,
            "true_positive_rate_at_least": self.true_positive_rate,
            "epsilon_threshold": _finite(self.epsilon_threshold),
            "epsilon_shape": _finite(self.epsilon_shape),
            "could_see": _finite(self.could_see),
            "violated": self.violated,
        }
        if scores:
            values["scores_without"] = self.scores_without.tolist()
            values["scores_with"] = self.scores_with.tolist()
        return values


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
        """The neighbouring relation of the claim."""
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

    def to_dict(self, scores: bool = True) -> dict[str, Any]:
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
            "attacks": [one.to_dict(scores) for one in self.findings],
            "noise": {
                "false_alarm_rate": self.false_alarms,
                "tests": [{**asdict(test), "failed": test.failed} for test in self.noise],
                "not_tested": list(self.untested),
            },
            "violated": self.violated,
        }

    def __str__(self) -> str:
        most = self.strongest
        seen = f"{most.rates.true_positives} of {most.rates.present}"
        alarms = f"{most.rates.false_positives} of {most.rates.absent}"
        lines = [
            f"Privacy audit: {self.runs} runs, {_WORLDS[self.adjacency]}",
            f"Claim: epsilon = {up(self.epsilon)}, delta = {self.delta:g} ({self.adjacency}).",
            f"Attacks on {_VIEWS.get(self.view, self.view)}.",
            f"Lower bounds on epsilon, at {100 * self.confidence:g} % confidence for all together:",
            "   found   claimed  could see  by looking at",
            *(f"  {_row(one, self._many)}" for one in self.findings),
            f"Strongest: {_name(most, self._many)}: right in {seen} runs with the person, wrong in "
            f"{alarms} without.",
            f"  {down(most.epsilon_threshold)}  from these rates alone",
            f"  {down(most.epsilon_shape)}  for noise of the claimed shape",
            *self._about_noise(),
            f"Verdict: {self._verdict()}",
        ]
        return "\n  ".join(lines)

    @property
    def _many(self) -> bool:
        return len({one.canary for one in self.findings}) > 1

    def _about_noise(self) -> list[str]:
        scales = [one.could_see for one in self.noise if one.of == SCALE and not one.failed]
        lines = [
            f"Noise against the ledger: {len(self.noise)} tests, {len(self.odd_noise)} failed "
            f"(false alarms in at most {100 * self.false_alarms:.3g} % of audits)."
        ]
        if scales:
            lines.append(
                f"  They see a standard deviation of {min(scales):.2g} to {max(scales):.2g} of the "
                "stated one, by release."
            )
        lines += [f"  Odd: {test}" for test in self.odd_noise[:_MOST_ODD]]
        if self.untested:
            lines.append(f"  Not tested, as people are sampled: {', '.join(self.untested)}.")
        return lines

    def _verdict(self) -> str:
        if not self.violated:
            return (
                "no violation found. An audit can refute a claim, not prove it: below what it "
                f"could see ({100 * POWER:g} % of the time) it is blind."
            )
        miss = f"{100 * (1 - self.confidence):.3g} %"
        claim = f"for a true claim that happens in at most {miss} of audits."
        if any(one.violated for one in self.findings):
            return f"VIOLATED. A lower bound exceeds the claim; {claim}"
        return f"VIOLATED. The noise is not what the ledger states; {claim}"


_MOST_ODD = 5
_WORLDS: dict[Adjacency, str] = {
    "add-remove": "half of them with one more person",
    "replace-one": "half of them with one person's records replaced",
}
_VIEWS = {
    "transcript": "everything that left the guard, and on the model",
    "released": "the released model alone",
}


def _name(finding: Finding, with_canary: bool) -> str:
    return f"{finding.attack} ({finding.canary})" if with_canary else finding.attack


def _row(finding: Finding, with_canary: bool) -> str:
    numbers = (down(finding.bound), up(finding.epsilon), up(finding.could_see))
    mark = "  VIOLATED" if finding.violated else ""
    return "{:>6}  {:>8}  {:>9}  ".format(*numbers) + _name(finding, with_canary) + mark


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
    without, present = _scores(scores_without), _scores(scores_with)
    check_delta(delta)
    check_confidence(confidence)
    tested, detected = without, present
    if threshold is None:
        halves = len(without) // 2, len(present) // 2
        threshold = best_threshold(without[: halves[0]], present[: halves[1]], confidence)
        tested, detected = without[halves[0] :], present[halves[1] :]
    alarms, seen = (int((scores > threshold).sum()) for scores in (tested, detected))
    rates = Rates(alarms, len(tested), seen, len(detected))
    fpr, tpr = rates.bounds(confidence)
    return Finding(
        attack=attack,
        canary=canary,
        epsilon=claim.epsilon(delta),
        delta=delta,
        confidence=confidence,
        threshold=threshold,
        rates=rates,
        false_positive_rate=fpr,
        true_positive_rate=tpr,
        epsilon_threshold=epsilon_of_rates(fpr, tpr, delta),
        epsilon_shape=epsilon_of_shape(claim, fpr, tpr, delta),
        claim=claim,
        scores_without=without,
        scores_with=present,
    )


def _scores(scores: ArrayLike) -> Floats:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2 or np.isnan(values).any():
        raise InputError("scores must be a list of at least two numbers in either world")
    return values


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
