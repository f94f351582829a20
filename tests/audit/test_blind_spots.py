"""Attacks that do not know the claim, and noise held against the ledger.

Planted breaks change the noise that the real guard draws, while its ledger states what it always
does: an attack that weighs answers by their claims is misled by just that.

Rates. A break is caught in all of 300 small audits: at 95 % confidence it is in at least 99 % of
them (0.99^300 < 0.05). False alarms are counted over 300 audits of the unbroken guard, against the
upper 1e-7 point of the binomial with the stated rate. All seeds are fixed. `experiments/
audit_power.py` does the same with whole fits.
"""

import copy
import dataclasses
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom, kstest

from privtraj.audit.attack import Scores, audit, conclude
from privtraj.audit.canaries import CANARIES, People, Worlds, data_of
from privtraj.audit.findings import POWER, Rates, could_see, epsilon_of_rates
from privtraj.audit.scores import ALL, ATTACKS, Attack, learned_scores
from privtraj.audit.transcript import (
    SCALE,
    NoiseTests,
    Run,
    Signs,
    Squares,
    Transcript,
    standardised,
)
from privtraj.measures.base import HEAD_COUNT
from privtraj.privacy import noise
from privtraj.privacy.accounting import tally
from privtraj.privacy.events import GaussianSum, LaplaceCounts
from privtraj.privacy.guard import CellCounts, Guard, Laplace, Release
from privtraj.privacy.ledger import Ledger
from privtraj.synthesizer import TrajectorySynthesizer

DELTA = 1e-5
AUDITS = 300

real_noise = noise.laplace_integers


def exact_head_count(source, shape, epsilon):
    """Practically no noise where people are counted, whatever was paid."""
    return real_noise(source, shape, 64.0 if shape[1] == 1 else epsilon)


def one_vector_for_all_times(source, shape, epsilon):
    """The same noise at all times: differences between times are exact."""
    return np.broadcast_to(real_noise(source, shape[1:], epsilon), shape).copy()


def halved(source, shape, epsilon):
    return real_noise(source, shape, 2 * epsilon)


def one_number_for_all_cells(source, shape, epsilon):
    return np.broadcast_to(real_noise(source, (shape[0], 1), epsilon), shape).copy()


def cancels_out(source, shape, epsilon):
    """The sum of the cells is exact."""
    drawn = real_noise(source, shape, epsilon)
    drawn[:, 0] -= drawn.sum(axis=1)
    return drawn


def from_a_fixed_seed(source, shape, epsilon):
    return real_noise(noise.SeededSource(7), shape, epsilon)


BREAKS = {
    "head count": exact_head_count,
    "times": one_vector_for_all_times,
    "halved": halved,
    "cells": one_number_for_all_cells,
    "cancels": cancels_out,
    "seed": from_a_fixed_seed,
}


@pytest.fixture
def planted(monkeypatch):
    """Function: plant a break in the code that ships."""

    def plant(name):
        monkeypatch.setattr(noise, "laplace_integers", BREAKS[name])

    return plant


# Small audits: two questions to a real guard ----------------------------------------------------

CROWD, NOBODY = People.at(1, np.full(2, 0.5), 24), People.nobody(2)
CORNER = People.at(2, np.ones(2))
WORLDS = Worlds(CROWD, NOBODY, CORNER)
DATA = [data_of(WORLDS, person, 3) for person in WORLDS[1:]]
EVENTS = (LaplaceCounts(0.05, HEAD_COUNT), LaplaceCounts(0.8, "cells"))


class Paid(Ledger):
    """Pays without adding up, which takes longer than the answers."""

    def __init__(self):
        super().__init__(1.0, 0.0)

    def spend(self, event, times=1):
        self.events = (*self.events, (event, times))


CLAIM = tally(EVENTS, "add-remove")


def run(seed, here, guard=Guard):
    """Count people, and people in cells."""
    ledger, transcript = Paid(), Transcript(WORLDS)
    asked = DATA[here].guarded(guard, ledger, noise.SeededSource(seed), watcher=transcript)
    asked.ask(Release(CellCounts(1), Laplace(0.05), HEAD_COUNT))
    asked.ask(Release(CellCounts(4), Laplace(0.8), "cells"))
    return Run(transcript, here, ledger.events, CLAIM)


def noise_of(seeds, guard=Guard):
    found = NoiseTests(np.random.default_rng(seeds[0]))
    for seed in seeds:
        found.add(run(seed, seed % 2 == 1, guard))
    return found


def small_audit(runs, confidence=0.95, guard=Guard):
    scores, tests = Scores("corner", "transcript"), NoiseTests(np.random.default_rng(0))
    for seed in range(runs):
        one = run(seed, seed % 2 == 1, guard)
        scores.add(one)
        tests.add(one)
    settings = {"delta": 0.0, "confidence": confidence, "view": "transcript"}
    return conclude([scores], tests, runs=runs, **settings)


@pytest.mark.parametrize("name", ["head count", "times"])
def test_the_blind_spots_are_caught_in_all_of_300_audits_of_six_runs(name, planted):
    planted(name)
    caught = sum(noise_of(range(6 * k, 6 * k + 6)).results(0.01)[0].failed for k in range(AUDITS))
    assert caught == AUDITS


def test_unbroken_noise_alarms_no_oftener_than_stated():
    """At a stated rate of 30 %, over 300 audits; and it does alarm, at about that rate."""
    alarms = sum(noise_of(range(6 * k, 6 * k + 6)).results(0.3)[0].failed for k in range(AUDITS))
    assert binom.ppf(1e-7, AUDITS, 0.1) <= alarms <= binom.isf(1e-7, AUDITS, 0.3)


@pytest.mark.parametrize(
    ("name", "release", "of"),
    [
        ("head count", HEAD_COUNT, SCALE),
        ("times", "cells", "independence of times"),
        ("halved", "cells", SCALE),
        ("cells", "cells", "independence of numbers"),
        ("cancels", "cells", "sums over numbers"),
        ("seed", "cells", "independence of runs"),
    ],
)
def test_odd_noise_is_called_by_its_name(name, release, of, planted):
    planted(name)
    odd = {(test.release, test.of) for test in noise_of(range(60)).results(0.01) if test.failed}
    assert (release, of) in odd
    if name == "head count":
        assert not any(test == ("cells", of) for test in odd)


class Rewound(Guard):
    """Reads the same random words for every release of a fit."""

    def ask(self, release):
        again = copy.copy(self)
        again._view = replace(again._view, source=copy.deepcopy(self._view.source))
        return Guard.ask(again, release)


def test_noise_that_is_used_again_for_the_next_release_is_seen():
    odd = [test for test in noise_of(range(60), Rewound).results(0.01) if test.failed]
    assert [(test.release, test.of) for test in odd] == [("all", "independence of releases")]


def test_an_answer_that_nobody_paid_for_fails_outright():
    class Forgetful(Guard):
        def ask(self, release):
            self._payer = Paid() if release.what == HEAD_COUNT else self.ledger
            return super().ask(release)

    found = small_audit(40, guard=Forgetful)
    assert found.violated
    assert found.noise[0].release == HEAD_COUNT
    assert "entry in the ledger" in str(found)


# Attacks that do not know the claim -------------------------------------------------------------


def test_an_exact_head_count_misleads_only_who_believes_its_claim(planted):
    planted("head count")
    found = small_audit(100)
    alone = found.of(f"'{HEAD_COUNT}' alone")
    assert alone.violated
    assert alone.epsilon == pytest.approx(0.05)
    assert alone.bound > 1
    assert not found.of(ALL).violated
    assert not found.of("'cells' alone").violated
    assert found.strongest.violated


def test_one_noise_for_all_times_is_learned_from_the_answers(planted):
    planted("times")
    found = small_audit(200)
    assert found.of("all answers, learned").violated
    assert not found.of(ALL).violated
    assert found.violated


def test_the_unbroken_guard_passes_and_says_what_could_be_seen():
    found = small_audit(200)
    assert not found.violated
    for one in found.findings:
        assert one.bound <= one.epsilon < one.could_see
    text = str(found)
    assert "could see" in text
    assert "0 failed (false alarms in at most 1 % of audits)" in text


def test_all_confidences_together_are_that_of_the_audit():
    found = small_audit(40, confidence=0.9)
    missed = sum(1 - one.confidence for one in found.findings)
    assert missed + found.false_alarms == pytest.approx(0.1)
    assert found.noise[0].level * len(found.noise) == pytest.approx(found.false_alarms)


def test_runs_that_cannot_tell_are_left_out():
    """Somebody at no time that is counted moves no answer."""
    never = Worlds(CROWD, NOBODY, People.at(2, np.ones(2)))
    scores = Scores("never", "transcript")
    for seed in range(20):
        one = run(seed, seed % 2 == 1)
        still = [dataclasses.replace(a, present=a.without) for a in one.transcript.answers]
        transcript = Transcript(never)
        transcript.answers = still
        scores.add(one._replace(transcript=transcript))
    assert [one.attack for one in scores.findings(0.0, 0.05)] == [ALL, "all answers, learned"]


def test_a_new_attack_is_one_function(monkeypatch):
    monkeypatch.setattr("privtraj.audit.attack.ATTACKS", [*ATTACKS, Attack(answers, "transcript")])
    assert small_audit(40).of("how many answers").bound == 0


def answers(run):
    return {"how many answers": float(len(run.transcript.answers))}


# Learned scores ---------------------------------------------------------------------------------


def features(mu, runs, rng):
    """One number of the person among five of nobody."""
    without, present = rng.standard_normal((2, runs, 6))
    present[:, 3] += mu
    return without, present


def test_learned_scores_alarm_no_oftener_than_stated():
    """At confidence 60 %, of 500 true claims at most 40 % may look false; 1e-7 as above."""
    rng, alarms = np.random.default_rng(1), 0
    for _ in range(500):
        without, present, threshold = learned_scores(*features(1.0, 60, rng), 0.6)
        rates = Rates(int((without > threshold).sum()), 30, int((present > threshold).sum()), 30)
        fpr, tpr = rates.bounds(0.6)
        alarms += ndtri(tpr) - ndtri(fpr) > 1.0
    assert 0 < alarms <= binom.isf(1e-7, 500, 0.4)


def test_a_learned_score_finds_the_number_that_tells():
    rng = np.random.default_rng(2)
    without, present, threshold = learned_scores(*features(3.0, 400, rng), 0.95)
    right = np.mean(present > threshold) - np.mean(without > threshold)
    assert right > 0.8  # the best there is has 0.866


def test_what_was_learned_does_not_see_the_runs_it_is_tested_on():
    rng = np.random.default_rng(3)
    without, present = features(1.0, 40, rng)
    _, _, threshold = learned_scores(without, present, 0.95)
    without[20:], present[20:] = 0, 0
    assert learned_scores(without, present, 0.95)[2] == threshold


@pytest.mark.filterwarnings("ignore::privtraj.LowBudgetWarning")
def test_a_digest_of_the_data_in_the_model_is_learned():
    """Whatever is written in a model counts, be it a text: here a hash that knows the world."""
    model = TrajectorySynthesizer(1.0, DELTA, cells=2, particles=4, seed=1).fit(DATA[0])
    verdicts = []
    for digests in (("a0", "b1"), ("a0", "a0")):
        scores = Scores("corner", "released")
        for seed in range(200):
            here = seed % 2 == 1
            chance = {**model.diagnostics, "worth": np.random.default_rng(seed).random()}
            papers = {"settings": {"digest": digests[here]}, "diagnostics": chance}
            told = dataclasses.replace(model, **papers)
            scores.add(Run(Transcript(WORLDS), here, (), CLAIM, told))
        found = {one.attack: one.violated for one in scores.findings(0.0, 0.05)}
        verdicts.append(found["the model, learned"])
    assert verdicts == [True, False]


# The pieces of the noise tests ------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.05, 0.8, 8.0])
def test_stated_noise_becomes_standard_normal(epsilon):
    """Kolmogorov and Smirnov at 1e-4, of integers drawn by the code that ships."""
    drawn = real_noise(noise.SeededSource(1), (50, 100), epsilon).astype(float)
    rng = np.random.default_rng(1)
    z = standardised(drawn, LaplaceCounts(epsilon, "x"), rng)
    assert kstest(z.ravel(), "norm").pvalue > 1e-4
    far = standardised(np.array([[-5000.0, 5000.0]]), LaplaceCounts(epsilon, "x"), rng)
    assert np.isfinite(far).all()
    assert far[0, 0] < -10 < 10 < far[0, 1]


def test_noise_of_sums_is_measured_by_its_multiplier_and_people_who_are_sampled_are_left_out():
    noise = np.array([[2.0, -2.0]])
    assert standardised(noise, GaussianSum(2.0, "s"), None).tolist() == [[1, -1]]
    assert standardised(noise, GaussianSum(2.0, "s", rate=0.5), None) is None


@pytest.mark.parametrize("kind", [Squares, Signs])
def test_what_a_noise_test_could_see_it_sees_nine_times_in_ten(kind):
    """Of 400 samples with that scale or that correlation; the binomial's lower 1e-7 point."""
    rng, level, seen = np.random.default_rng(4), 1e-3, 0
    for _ in range(400):
        z = rng.standard_normal((2, 500))
        sample = kind()
        if kind is Squares:
            sample.add(z)
            z *= sample.could_see(level)
            sample = kind()
            sample.add(z)
        else:
            sample.add(*z)
            r = sample.could_see(level)
            sample = kind()
            sample.add(z[0], r * z[0] + math.sqrt(1 - r * r) * z[1])
        seen += sample.p() < level
    assert binom.ppf(1e-7, 400, POWER - 0.02) <= seen < 400


@pytest.mark.parametrize("claimed", [0.05, 1.0])
def test_what_an_attack_could_see_it_sees_nine_times_in_ten(claimed):
    """Randomised responses of that epsilon, 400 audits of 2 x 300 runs; 1e-7 as above."""
    rng, confidence = np.random.default_rng(5), 0.99
    claim = tally([LaplaceCounts(claimed, "count")], "add-remove")
    epsilon = could_see(claim, 300, 300, 0.0, confidence)
    assert claimed < epsilon < 3
    right = 1 / (1 + math.exp(-epsilon))
    seen = 0
    for _ in range(400):
        rates = Rates(int(rng.binomial(300, 1 - right)), 300, int(rng.binomial(300, right)), 300)
        seen += epsilon_of_rates(*rates.bounds(confidence), 0.0) > claimed
    assert binom.ppf(1e-7, 400, POWER) <= seen
    more = could_see(claim, 3000, 3000, 0.0, confidence)
    assert claimed < more < epsilon


# Whole fits -------------------------------------------------------------------------------------

FITS = {"measure": "counts", "time_coupling": 0.0}


@pytest.mark.parametrize("name", ["head count", "times"])
def test_the_blind_spots_are_caught_in_whole_fits(name, planted):
    planted(name)
    found = audit(TrajectorySynthesizer(1.0, DELTA, **FITS), runs=20, confidence=0.99, seed=1)
    assert found.violated
    assert found.noise[0].p < 1e-12  # so at nearly every other seed too
    assert "VIOLATED. The noise is not as stated" in str(found)
    assert not found.of(ALL).violated


@pytest.mark.parametrize(("adjacency", "canary"), [("add-remove", "all"), ("replace-one", "rare")])
def test_every_canary_passes_in_whole_fits(adjacency, canary):
    synthesizer = TrajectorySynthesizer(2.0, DELTA, adjacency=adjacency, windows="bins", **FITS)
    found = audit(synthesizer, runs=20, canary=canary, confidence=0.99, seed=1)
    assert not found.violated
    numbers = [name for name in CANARIES if name not in ("level", "missing")]
    canaries = numbers if canary == "all" else [canary]  # counts are of numbers alone
    assert list(dict.fromkeys(one.canary for one in found.findings)) == canaries
    assert found.runs == 20 * len(canaries)
