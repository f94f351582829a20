"""An empirical check of the guarantee: run the real pipeline, attack it, bound epsilon from below.

Two worlds that differ in one person; the attacker knows everybody else, so no noise but the
mechanism's own stands against an attack. The person is in a corner of the box, far from where the
particles begin, so that their vector is clipped to the full norm c (but for the first steps, whose
bandwidth of half the box clips nobody in it). The data are made here; an audit never touches a
user's rows.

    add-remove    nobody                                    against  the person, in the last bin
    replace-one   a person at the opposite corner of an     against  the person, in the last bin
                  empty first bin

(Opposite corners of the same bin are a weaker pair for clipped sums: the two vectors share the
coordinates of mass and spread and differ by about c, not by the 2 c that is paid for. In different
bins they are orthogonal and differ by sqrt(2) c.)

Half of the runs are fits in the one world, half in the other, and an attack guesses which. Two
views: "transcript", everything that left the guard, which is what the claim is about, attacked by
the best test there is (`evidence`); "released", the finished model alone, which is what the public
sees. `lower_bounds` turns the rates into bounds that hold with the stated confidence.

An audit can refute a claim and can show that one is not far from tight. It cannot prove one.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from privtraj.arguments import check_whole
from privtraj.arrays import Floats
from privtraj.audit.evidence import Canary, Crowd, Evidence, Neighbours, released_evidence
from privtraj.audit.lower_bounds import (
    Rates,
    best_threshold,
    check_confidence,
    epsilon_of_rates,
    epsilon_of_shape,
)
from privtraj.data.snapshots import Snapshots
from privtraj.errors import InputError
from privtraj.privacy.accounting import Tally
from privtraj.privacy.events import Adjacency, check_delta
from privtraj.privacy.ledger import down, up
from privtraj.synthesizer import LowBudgetWarning, TrajectorySynthesizer

View = Literal["transcript", "released"]
Progress = Callable[[int, int], None]

RUNS: dict[View, int] = {"transcript": 2000, "released": 400}
"""Unless told otherwise: two or three minutes on two cores."""
LEAST_RUNS = 20
OTHERS = 24  # people at the other times


@dataclass(frozen=True, eq=False)
class Audit:
    """What an attack found, beside what was claimed.

    epsilon: claimed at delta.  claim: the releases it was computed from.
    threshold: the attack says "present" where its score is above.  rates: how often it did.
    false_positive_rate, true_positive_rate: bounds on the true rates, at this confidence.
    epsilon_threshold: lower bound from the rates alone.  epsilon_shape: lower bound for releases of
    the claimed shape.  Both hold, at once, with this confidence.
    scores_without, scores_with: of all runs in the two worlds.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    view: str
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
    def runs(self) -> int:
        """Fits in both worlds together."""
        return len(self.scores_without) + len(self.scores_with)

    @property
    def violated(self) -> bool:
        """Whether a lower bound exceeds the claim: it is false, at this confidence."""
        return max(self.epsilon_threshold, self.epsilon_shape) > self.epsilon

    def to_dict(self, scores: bool = True) -> dict[str, Any]:
        """JSON values; None stands for an infinite epsilon."""
        claim = {"epsilon": self.epsilon, "delta": self.delta, "adjacency": self.adjacency}
        values: dict[str, Any] = {
            "claim": {**claim, "epsilon": _finite(self.epsilon)},
            "view": self.view,
            "runs": self.runs,
            "confidence": self.confidence,
            "threshold": self.threshold,
            **asdict(self.rates),
            "false_positive_rate_at_most": self.false_positive_rate,
            "true_positive_rate_at_least": self.true_positive_rate,
            "epsilon_threshold": _finite(self.epsilon_threshold),
            "epsilon_shape": _finite(self.epsilon_shape),
            "violated": self.violated,
        }
        if scores:
            values["scores_without"] = self.scores_without.tolist()
            values["scores_with"] = self.scores_with.tolist()
        return values

    def __str__(self) -> str:
        seen = f"{self.rates.true_positives} of {self.rates.present}"
        alarms = f"{self.rates.false_positives} of {self.rates.absent}"
        lines = [
            f"Privacy audit: {self.runs} runs, {_WORLDS[self.adjacency]}",
            f"Claim: epsilon = {up(self.epsilon)}, delta = {self.delta:g} ({self.adjacency}).",
            f"Attack on {_VIEWS.get(self.view, self.view)}: right in {seen} runs with the person, "
            f"wrong in {alarms} without.",
            f"Lower bounds on epsilon, at {100 * self.confidence:g} % confidence:",
            f"  {down(self.epsilon_threshold)}  from these rates alone",
            f"  {down(self.epsilon_shape)}  for noise of the claimed shape",
            f"Verdict: {self._verdict()}",
        ]
        return "\n  ".join(lines)

    def _verdict(self) -> str:
        if not self.violated:
            return "no violation found. An audit can refute a claim, not prove it."
        miss = f"{100 * (1 - self.confidence):.3g} %"
        claim = f"for a true claim that happens in at most {miss} of audits."
        return f"VIOLATED. A lower bound exceeds the claim; {claim}"


_WORLDS: dict[Adjacency, str] = {
    "add-remove": "half of them with one more person",
    "replace-one": "half of them with one person's record replaced",
}
_VIEWS = {"transcript": "everything that left the guard", "released": "the released model alone"}


def compare(
    scores_without: ArrayLike,
    scores_with: ArrayLike,
    claim: Tally,
    delta: float,
    confidence: float = 0.95,
    threshold: float | None = None,
    view: str = "scores",
) -> Audit:
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
    return Audit(
        epsilon=claim.epsilon(delta),
        delta=delta,
        adjacency=claim.adjacency,
        view=view,
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


def audit(
    synthesizer: TrajectorySynthesizer,
    *,
    runs: int | None = None,
    confidence: float = 0.95,
    features: int = 2,
    times: int = 3,
    view: View = "transcript",
    seed: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Fit `runs` times, half of them in either world, and compare what can be told with the claim.

    The claim is what the certificates of the runs state; nothing stated is a claim of epsilon 0.
    runs: `RUNS` of the view unless given.
    synthesizer: its settings, but for the seed, and for public numbers, which are those of the
        audit's own data.  features, times: of the audit's own data.
    seed: None for the noise of real releases; a number makes the audit repeatable.
    """
    if view not in get_args(View):
        raise InputError(f"view must be 'transcript' or 'released', not '{view}'")
    runs = RUNS[view] if runs is None else runs
    _check(synthesizer, runs, features, times)
    neighbours = _neighbours(synthesizer, features, times)
    crowd = _crowd(features, times)
    data = [_data(person, features, times) for person in neighbours]
    pipeline = _lean(synthesizer, features) if view == "transcript" else copy.copy(synthesizer)
    if synthesizer.public_counts is not None:
        pipeline.public_counts = _bin_counts(times)
    seeds = iter(np.random.SeedSequence(seed).generate_state(runs, np.uint64))
    scores: tuple[list[float], list[float]] = ([], [])
    claims: set[Tally] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowBudgetWarning)  # the data are meant to be few
        for done in range(runs):
            run_seed = None if seed is None else int(next(seeds))
            evidence = Evidence(neighbours, crowd)
            score, claim = _run(pipeline, data[done % 2], evidence, view, run_seed)
            scores[done % 2].append(score)
            claims.add(claim)
            if progress is not None:
                progress(done + 1, runs)
    delta = synthesizer.delta
    # the noise a run plans for may depend on its noisy head count; the claim is the largest
    claim = max(claims, key=lambda each: each.epsilon(delta))
    threshold = 0.0 if view == "transcript" else None
    return compare(*scores, claim, delta, confidence, threshold, view)


def _neighbours(synthesizer: TrajectorySynthesizer, features: int, times: int) -> Neighbours:
    """The person in whom the two worlds differ, and who is there instead."""
    person = Canary(times - 1.0, np.ones(features, np.float32))
    instead = None
    if synthesizer.adjacency == "replace-one":
        # where the numbers of people per bin are public, neighbours have the same numbers
        at = 0.0 if synthesizer.public_counts is None else person.time
        instead = Canary(at, np.zeros(features, np.float32))
    return Neighbours(instead, person)


def _crowd(features: int, times: int) -> Crowd:
    """Others in the middle of the box, at all times but the first and the last."""
    when = (1 + np.arange(OTHERS) % (times - 2)).astype(np.float64)
    return Crowd(when, np.full(features, 0.5, np.float32))


def _bin_counts(times: int) -> list[int]:
    """Everybody in each bin: the same in both worlds, where these numbers are public."""
    when = [*_crowd(1, times).times, times - 1]
    return np.bincount(np.array(when, np.int64), minlength=times).tolist()


def _data(person: Canary | None, features: int, times: int) -> Snapshots:
    """The crowd and the person."""
    crowd, extra = _crowd(features, times), [] if person is None else [person]
    when = [*crowd.times, *(one.time for one in extra)]
    where = [*np.tile(crowd.point, (OTHERS, 1)), *(one.point for one in extra)]
    box = [(0.0, 1.0)] * features
    return Snapshots.from_arrays(when, np.array(where), bounds=box, bins=np.arange(float(times)))


def _run(
    synthesizer: TrajectorySynthesizer,
    data: Snapshots,
    evidence: Evidence,
    view: View,
    seed: int | None,
) -> tuple[float, Tally]:
    """One fit: the attack's score, and what the certificate claims."""
    pipeline = copy.copy(synthesizer)
    pipeline.seed = seed
    model = pipeline.fit(data, watcher=evidence)
    claim = model.certificate.tally
    if view == "released":
        return released_evidence(model, evidence.neighbours), claim
    return evidence.log_likelihood_ratio, claim


def _lean(synthesizer: TrajectorySynthesizer, features: int) -> TrajectorySynthesizer:
    """The same, with little post-processing of released counts: the transcript stays what it is."""
    lean = copy.copy(synthesizer)
    if synthesizer.measure_for(features) == "gradients":
        return lean
    lean.particles, lean.steps = lean.particles or 8, lean.steps or 2
    return lean


def _scores(scores: ArrayLike) -> Floats:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2 or np.isnan(values).any():
        raise InputError("scores must be a list of at least two numbers in either world")
    return values


def _check(synthesizer: TrajectorySynthesizer, runs: int, features: int, times: int) -> None:
    synthesizer.check()
    check_whole("runs", runs, LEAST_RUNS)
    check_whole("features", features, 1)
    check_whole("times", times, 3)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
