"""An empirical check of the guarantee: run the real pipeline, attack it, bound epsilon from below.

Half of the runs are fits in a world without the person of a canary (`canaries`), half in the other,
and attacks guess which (`scores`). Two views: "transcript", everything that left the guard, which
is what the claim is about, and the model; "released", the finished model alone, which is what the
public sees. `findings` turns the rates into bounds; `transcript` holds the noise of every
release against its entry in the ledger.

What the confidence leaves, 1 - confidence, is the chance of a false alarm of the whole audit. The
tests of the noise have `NOISE_PART` of it. The rest is shared by the canaries equally, and by the
attacks on each by their weights: so all bounds hold at once, whichever is the strongest.

An audit can refute a claim and can show that one is not far from tight. It cannot prove one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, get_args

import numpy as np

from privtraj.audit.canaries import CANARIES, columns_of, data_of, worlds_of
from privtraj.audit.findings import Audit, Finding, check_confidence, compare
from privtraj.audit.scores import ATTACKS, Attack, View, learned_scores
from privtraj.audit.transcript import NoiseTests, Run, Transcript, run_of
from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError, check_whole
from privtraj.columns.kinds import Axes
from privtraj.privacy.accounting import Tally
from privtraj.synthesizer import (
    LowBudgetWarning,
    TrajectorySynthesizer,
    WeakGuaranteeWarning,
)

Progress = Callable[[int, int], None]

RUNS: dict[View, int] = {"transcript": 2000, "released": 400}
"""For each canary, unless told otherwise: one or two minutes on two cores."""
LEAST_RUNS = 20
ALL_CANARIES = "all"
NOISE_PART = 0.2


class Scores:
    """What the attacks saw in all runs with one canary."""

    def __init__(self, canary: str, view: View) -> None:
        self.canary = canary
        self.attacks = [one for one in ATTACKS if view in ("transcript", one.view)]
        self.claims: set[Tally] = set()
        self._seen: list[tuple[list[dict[str, float]], ...]] = [([], []) for _ in self.attacks]
        self._claims_of: dict[str, set[Tally]] = {}

    def add(self, run: Run) -> None:
        """Look at one run."""
        self.claims.add(run.claim)
        for what in {one.what for one in run.transcript.answers}:
            self._claims_of.setdefault(what, set()).add(run.claim_of(what))
        for attack, seen in zip(self.attacks, self._seen, strict=True):
            seen[run.here].append(attack.look(run))

    def findings(self, delta: float, miss: float) -> tuple[Finding, ...]:
        """One for each attack, with a part of `miss` by its weight: all bounds hold at once but
        with this chance."""
        whole = largest(self.claims, delta)
        tests: list[tuple[Attack, Floats, Floats, dict[str, Any]]] = []
        for attack, seen in zip(self.attacks, self._seen, strict=True):
            names = sorted({name for world in seen for numbers in world for name in numbers})
            # numbers (names, runs), NaN where a run has none of this name
            without, present = (
                np.array([[one.get(name, np.nan) for one in world] for name in names], np.float64)
                for world in seen
            )
            if attack.learned and names:
                how: dict[str, Any] = {"claim": whole, "attack": attack.learned}
                tests.append((attack, np.nan_to_num(without.T), np.nan_to_num(present.T), how))
                continue
            for name, *scores in zip(names, without, present, strict=True):
                absent, found = (one[~np.isnan(one)] for one in scores)
                how = {"claim": whole, "attack": name, "threshold": attack.threshold}
                if name in self._claims_of:
                    claim = largest(self._claims_of[name], delta)
                    how |= {"claim": claim, "attack": f"'{name}' alone"}
                if min(len(absent), len(found)) >= LEAST_SCORES:
                    tests.append((attack, absent, found, how))
        weights, findings = sum(attack.weight for attack, *_ in tests), []
        for attack, absent, found, how in tests:
            confidence = 1 - miss * attack.weight / weights
            if attack.learned:
                absent, found, how["threshold"] = learned_scores(absent, found, confidence)
            how |= {"delta": delta, "confidence": confidence, "canary": self.canary}
            findings.append(compare(absent, found, **how))
        return tuple(findings)


LEAST_SCORES = 4  # in either world: two to find a threshold on, two to test it


def largest(claims: set[Tally], delta: float) -> Tally:
    """The largest claim of all runs: the noise a run plans for may depend on its head count."""
    return max(claims, key=lambda each: each.epsilon(delta))


def conclude(
    scores: list[Scores],
    noise: NoiseTests,
    *,
    runs: int,
    delta: float,
    confidence: float,
    view: View,
) -> Audit:
    """The audit of all runs: bounds and tests that hold at once with this confidence."""
    miss = 1 - check_confidence(confidence)
    each = (1 - NOISE_PART) * miss / len(scores)
    return Audit(
        claim=largest(set.union(*(one.claims for one in scores)), delta),
        delta=delta,
        confidence=confidence,
        view=view,
        runs=runs,
        findings=tuple(finding for one in scores for finding in one.findings(delta, each)),
        noise=noise.results(NOISE_PART * miss),
        false_alarms=NOISE_PART * miss,
        untested=tuple(sorted(noise.untested)),
    )


def audit(
    synthesizer: TrajectorySynthesizer,
    *,
    runs: int | None = None,
    confidence: float = 0.95,
    features: int = 2,
    times: int = 3,
    view: View = "transcript",
    canary: str = "alone",
    seed: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Fit `runs` times, half of them in either world, and compare what can be told with the claim.

    The claim is what the certificates of the runs state; nothing stated is a claim of epsilon 0.
    runs: for each canary, `RUNS` of the view unless given.
    synthesizer: its settings, but for the seed, and for public numbers, which are those of the
        audit's own data.  features, times: of these data.
    canary: whom to look for, a name of `canaries.CANARIES`, or "all" for all of them whose columns
        the synthesizer's measure takes.
    seed: None for the noise of real releases; a number makes the audit repeatable.
    """
    if view not in get_args(View):
        raise InputError(f"view must be 'transcript' or 'released', not '{view}'")
    if canary not in (*CANARIES, ALL_CANARIES):
        known = ", ".join(CANARIES)
        raise InputError(f"canary must be {known} or {ALL_CANARIES}, not '{canary}'")
    runs = RUNS[view] if runs is None else runs
    synthesizer.check()
    check_whole("runs", runs, LEAST_RUNS)
    check_whole("features", features, 1)
    check_whole("times", times, 3)
    check_confidence(confidence)
    columns = {name: columns_of(name, features) for name in CANARIES}
    axes = {name: Axes.of(known) for name, known in columns.items()}
    measures = {name: synthesizer.measure_for(one) for name, one in axes.items()}
    names = [canary]
    if canary == ALL_CANARIES:
        takes = {name: measures[name].takes_categories or not axes[name].mixed for name in axes}
        names = [name for name in CANARIES if takes[name]]
    total, seeds = len(names) * runs, np.random.SeedSequence(seed)
    run_seeds = iter(seeds.generate_state(total, np.uint64))
    noise = NoiseTests(np.random.default_rng(seeds.spawn(1)[0]))
    found = [Scores(name, view) for name in names]
    done = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowBudgetWarning)  # the data are meant to be few
        warnings.simplefilter("ignore", WeakGuaranteeWarning)
        for scores in found:
            worlds = worlds_of(scores.canary, synthesizer, features, times)
            own = columns[scores.canary]
            data = [data_of(worlds, person, times, own) for person in worlds[1:]]
            fitted = synthesizer
            if view == "transcript" and not measures[scores.canary].sums_every_step:
                # little post-processing of released counts: the transcript stays what it is
                little = {"particles": fitted.particles or 8, "steps": fitted.steps or 2}
                fitted = fitted.again(**little)
            if synthesizer.public_counts is not None:
                fitted = fitted.again(public_counts=worlds.people_per_time(times))
            for number in range(runs):
                run_seed = None if seed is None else int(next(run_seeds))
                here = number % 2 == 1
                transcript = Transcript(worlds)
                model = fitted.again(seed=run_seed).fit(data[here], watcher=transcript)
                run = run_of(model, transcript, here)
                scores.add(run)
                noise.add(run)
                done += 1
                if progress is not None:
                    progress(done, total)
    settings = {"delta": synthesizer.delta, "confidence": confidence}
    return conclude(found, noise, runs=total, view=view, **settings)
