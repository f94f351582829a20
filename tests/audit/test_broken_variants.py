"""Deliberately broken mechanisms: each trap by its name, caught, beside the correct one, passed.

The audits here have confidence 99 %: over seeds, a correct mechanism would be called broken in at
most 1 % of them. All seeds are fixed, so a test passes always or never; the broken ones are caught
with room to spare, so that they would be at nearly every other seed too. How many runs it takes to
see how much is counted by `experiments/audit_power.py`.
"""

import math
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from privtraj.audit.attack import audit
from privtraj.audit.canaries import People, Worlds
from privtraj.audit.findings import compare
from privtraj.audit.scores import ALL, log_likelihood_ratio
from privtraj.audit.transcript import Transcript
from privtraj.base.errors import BudgetError
from privtraj.base.space import Slabs
from privtraj.data.snapshots import Snapshots
from privtraj.measures.base import HEAD_COUNT
from privtraj.measures.windows import LISTED, MOTION
from privtraj.privacy import noise
from privtraj.privacy.accounting import tally
from privtraj.privacy.events import GaussianSum, LaplaceCounts
from privtraj.privacy.guard import Gaussian, Guard, Laplace, Release
from privtraj.privacy.ledger import Ledger
from privtraj.privacy.sums import ClippedSums
from privtraj.synthesizer import TrajectorySynthesizer

DELTA = 1e-5
CONFIDENCE = 0.99


class Broken(Guard):
    """A guard with another beside it that nobody has to pay: what a broken one asks in secret."""

    def __init__(self, rows, shape, ledger, source, **options):
        super().__init__(rows, shape, ledger, source, **options)
        self._unpaid = Guard(rows, shape, Ledger(60.0, 0.1, ledger.adjacency), source, **options)

    def in_slabs(self, slabs):
        part = super().in_slabs(slabs)
        part._unpaid = self._unpaid.in_slabs(slabs)
        return part


def audited(guard, runs):
    """The audit of real fits that use this kind of guard."""

    class Pipeline(TrajectorySynthesizer):
        guard_class = guard

    # the attacker sees the answers, not what is made of them
    synthesizer = Pipeline(1.0, DELTA, measure="counts", time_coupling=0.0)
    return audit(synthesizer, runs=runs, confidence=CONFIDENCE, seed=1)


@pytest.fixture(scope="module")
def unbroken():
    """The audit of real fits with the guard that ships, as many as the most of a broken one."""
    return audited(Guard, 60)


# Releases without a fit: one question to a guard, many times ----------------------------------

NOBODY, CORNER = People.nobody(2), People.at(1, np.ones(2))
WORLDS = Worlds(NOBODY, NOBODY, CORNER)
CROWD = [[0.5, 0.5]] * 12
PARTICLES = jnp.asarray(np.random.default_rng(0).uniform(0.4, 0.6, (2, 16, 2)), jnp.float32)


def pulls(points, particles):
    """(x_k - y) for all of 16 particles: (n, 32)."""
    return (particles[None] - points[:, None]).reshape(len(points), -1)


def each_clipped(points, parameters):
    """The same, every particle's part clipped to c for itself."""
    particles, clip = parameters
    parts = particles[None] - points[:, None]
    norm = jnp.linalg.norm(parts, axis=-1, keepdims=True)
    return (parts * jnp.minimum(1, clip / jnp.maximum(norm, 1e-9))).reshape(len(points), -1)


def released(guard, snapshots_of, score, clip, runs=100, noise_multiplier=1.0):
    """The audit of one noisy sum, with the person of CORNER and without."""
    worlds = [snapshots_of([CROWD, []], 2), snapshots_of([CROWD, CORNER.points], 2)]
    scores = ([], [])
    for run in range(2 * runs):
        ledger = Ledger(20.0, DELTA)
        transcript, source = Transcript(WORLDS), noise.SeededSource(run)
        asked = worlds[run % 2].guarded(guard, ledger, source, watcher=transcript)
        answer = asked.ask(
            Release(
                ClippedSums(pulls, PARTICLES, np.full(2, clip)), Gaussian(noise_multiplier), "pulls"
            )
        )
        scores[run % 2].append(score(transcript, answer))
    return compare(*scores, ledger.tally, DELTA, CONFIDENCE, 0.0)


def likelihood(transcript, answer):
    return log_likelihood_ratio(transcript.answers)


# 1 --------------------------------------------------------------------------------------------


class ClipsEachParticle(Broken):
    """Clipped per particle, with noise for a joint norm of c: sqrt(m) c is the truth."""

    def ask(self, release):
        question, z = release.question, release.noise.multiplier
        root = math.sqrt(question.parameters.shape[1])
        own = (question.parameters, jnp.asarray(question.clip, jnp.float32))
        each = ClippedSums(each_clipped, own, root * question.clip * (1 + 1e-5))
        answer = self._unpaid.ask(Release(each, Gaussian(z / root), release.what))
        self.ledger.spend(release.event(self.shape))
        return answer


def test_trap_per_particle_clipping_accounted_at_the_clip(snapshots_of):
    assert released(ClipsEachParticle, snapshots_of, likelihood, clip=0.1).violated
    assert not released(Guard, snapshots_of, likelihood, clip=0.1).violated


# 2 --------------------------------------------------------------------------------------------

RATE, STEPS, NOISE = 0.9, 4, 2.0
# Sampling costs less than taking everybody, so what refutes this claim refutes the sampled one too;
# at this rate they hardly differ, and full sums have a closed form.
FULL = tally([(GaussianSum(NOISE, "step"), STEPS)], "add-remove")


def batch_scores(runs, realised, rng):
    """Log-likelihood ratios of STEPS sampled means of 40 people at +c, the person at -c.

    The denominator is the realised batch, which the level of the noise then tells (here it is told
    outright), or the public rate * 40; in that case the attacker is told how many others took part.
    """
    worlds = []
    for there in (0, 1):
        shape = (runs, STEPS)
        others = rng.binomial(40, RATE, shape)
        person = there * (rng.random(shape) < RATE)
        total = others - person + NOISE * rng.standard_normal(shape)
        batch = others + person
        # mean * batch - batch is -2 if the person takes part: they pull, and they are counted
        seen, shift = (total - batch, -2.0) if realised else (total - others, -1.0)
        ratio = (shift * seen - shift**2 / 2) / NOISE**2
        worlds.append(np.logaddexp(math.log(1 - RATE), math.log(RATE) + ratio).sum(axis=1))
    return worlds


def test_trap_realised_batch_size_as_the_denominator():
    rng = np.random.default_rng(2)
    for realised in (True, False):
        scores = batch_scores(2000, realised, rng)
        assert compare(*scores, FULL, DELTA, CONFIDENCE, 0.0).violated == realised


# 3 --------------------------------------------------------------------------------------------


class TooQuiet(Broken):
    """The noise of everything smaller by sqrt(2) than what is in the ledger."""

    def ask(self, release):
        spread = release.noise
        if isinstance(spread, Laplace):
            less = Laplace(spread.epsilon * math.sqrt(2))
        else:
            less = Gaussian(spread.multiplier / math.sqrt(2))
        answer = self._unpaid.ask(replace(release, noise=less))
        self.ledger.spend(release.event(self.shape))
        return answer


def odd_noise(found):
    """Whether tests of the noise would see it at nearly every seed."""
    return found.violated and found.noise[0].p < 1e-12


def test_trap_noise_too_small_by_the_root_of_two_in_a_fit(unbroken):
    assert odd_noise(audited(TooQuiet, 40))
    assert not unbroken.violated


@pytest.mark.parametrize("guard", [TooQuiet, Guard])
def test_trap_noise_too_small_by_the_root_of_two_in_a_sum(guard, snapshots_of):
    found = released(guard, snapshots_of, likelihood, clip=0.1, runs=300, noise_multiplier=0.5)
    assert found.violated == (guard is TooQuiet)


# 4 --------------------------------------------------------------------------------------------


@pytest.fixture
def unnoised(silent):
    class Unnoised(Guard):
        """Exact counts, paid for as noisy ones."""

        def __init__(self, rows, shape, ledger, source, **options):
            super().__init__(rows, shape, ledger, silent(), **options)

    return Unnoised


def test_trap_unnoised_counts(unnoised, unbroken):
    assert odd_noise(audited(unnoised, 20))
    assert not unbroken.violated


# 5 --------------------------------------------------------------------------------------------


def upper_bound(points, bounds, seed):
    """Released with the model: the upper end of the first feature."""
    times = np.arange(len(points)) % 2
    snapshots = Snapshots.from_arrays(times, points, bounds=bounds(points), bins=[0.0, 1.0])
    settings = {"measure": "counts", "particles": 4, "steps": 2, "cells": 2}
    model = TrajectorySynthesizer(1.0, DELTA, seed=seed, **settings).fit(snapshots)
    return model.bounds[0, 1]


def from_the_data(points):
    return list(zip(points.min(axis=0), points.max(axis=0), strict=True))


def public(points):
    return [(0.0, 1.0), (0.0, 1.0)]


@pytest.mark.filterwarnings("ignore::privtraj.LowBudgetWarning")
@pytest.mark.parametrize("bounds", [from_the_data, public])
def test_trap_bounds_taken_from_data(bounds):
    crowd = np.random.default_rng(3).uniform(0.4, 0.6, (20, 2))
    joined = np.append(crowd, [[0.9, 0.9]], axis=0)
    scores = [
        [upper_bound(points, bounds, seed) for seed in range(25)] for points in (crowd, joined)
    ]
    claim = tally([LaplaceCounts(1.0, "all")], "add-remove")
    found = compare(*scores, claim, DELTA, CONFIDENCE, threshold=0.8)
    assert found.violated == (bounds is from_the_data)


# 6 --------------------------------------------------------------------------------------------


class ClipsAtTheLargestNorm(Broken):
    """c is the largest norm that anybody's vector has."""

    def ask(self, release):
        question = release.question
        rows = zip(*self._view.rows.in_slabs(self.shape.windows), strict=True)
        largest = max(float(np.linalg.norm(question.vector(self.shape, i, row))) for row, i in rows)
        wide = replace(question, clip=np.full_like(question.clip, largest))
        return super().ask(replace(release, question=wide))


def loudness(transcript, answer):
    """How loud the noise is where nobody differs: 32 coordinates of the crowd's bin.

    Zero lies between the norm of somebody in the crowd, 0.1 sqrt(16) at most, and the corner's.
    """
    crowd = pulls(jnp.asarray(CROWD, jnp.float32), PARTICLES[0]).sum(axis=0)
    return float(np.std(answer[0] - np.asarray(crowd))) - 1.2


def test_trap_clip_threshold_taken_from_data(snapshots_of):
    assert released(ClipsAtTheLargestNorm, snapshots_of, loudness, clip=1.2, runs=40).violated
    for score in (loudness, likelihood):
        assert not released(Guard, snapshots_of, score, clip=1.2, runs=40).violated


# 7 --------------------------------------------------------------------------------------------


class Forgetful(Broken):
    """Answers by the book how many people there are, and when; counts of cells past the ledger."""

    def ask(self, release):
        paid = release.what in (HEAD_COUNT, LISTED)
        return (super() if paid else self._unpaid).ask(release)


class Silent(Broken):
    """Pays for nothing at all."""

    def ask(self, release):
        return self._unpaid.ask(release)


@pytest.mark.parametrize(("guard", "claimed"), [(Forgetful, 0.06), (Silent, 0.0)])
def test_trap_a_release_that_skips_the_ledger(guard, claimed, unbroken):
    found = audited(guard, 60)
    assert found.epsilon == pytest.approx(claimed, abs=1e-4)
    assert found.violated
    assert unbroken.epsilon == pytest.approx(1.0, abs=1e-4)
    assert not unbroken.violated


# 9 --------------------------------------------------------------------------------------------


class CutsByTheData(Guard):
    """Ends the last slab but one at the time of the last person, whatever was asked for."""

    def in_slabs(self, slabs):
        edges = slabs.edges.copy()
        edges[-1] = max(self._view.rows.times.max() - 0.5, edges[-1])
        return super().in_slabs(Slabs(edges, slabs.slab_of_piece))


def last_person_by_edges(guard, last, seed):
    """What the edges of the slabs, which are published as knots, say of the last person."""
    asked = []

    class Pipeline(TrajectorySynthesizer):
        guard_class = guard

    class Watch:
        def released(self, release, shape, answer):
            asked.append(shape.windows.edges[-1])

    times = np.append(np.linspace(0, 5, 40), last)
    snapshots = Snapshots.from_arrays(
        times, np.full((len(times), 1), 0.5), bounds=[(0, 1)], time_range=(0, 10)
    )
    Pipeline(1.0, DELTA, seed=seed, windows=2, cells=2, particles=4).fit(snapshots, watcher=Watch())
    return max(asked)


@pytest.mark.filterwarnings("ignore::privtraj.LowBudgetWarning")
@pytest.mark.parametrize("guard", [CutsByTheData, Guard])
def test_trap_slabs_cut_by_the_data(guard):
    scores = [[last_person_by_edges(guard, last, k) for k in range(25)] for last in (5.0, 9.0)]
    claim = tally([LaplaceCounts(1.0, "all")], "add-remove")
    found = compare(*scores, claim, DELTA, CONFIDENCE, threshold=7.0)
    assert found.violated == (guard is CutsByTheData)


# 10 -------------------------------------------------------------------------------------------


class LooksTooClosely(Broken):
    """The looks at when and how people move have less noise than was paid for."""

    def ask(self, release):
        if release.what not in (LISTED, MOTION):
            return super().ask(release)
        self.ledger.spend(release.event(self.shape))
        return self._unpaid.ask(replace(release, noise=Laplace(8.0)))


class LooksForFree(Broken):
    """Nobody pays for the looks at all."""

    def ask(self, release):
        free = release.what in (LISTED, MOTION)
        return (self._unpaid if free else super()).ask(release)


def test_trap_looks_at_motion_with_less_noise_than_was_paid_for(unbroken):
    found = audited(LooksTooClosely, 40)
    assert odd_noise(found)
    assert found.of(ALL).violated
    assert not unbroken.violated


def test_trap_looks_that_nobody_pays_for_are_stopped_by_the_plan():
    """What is left over would go to the cells, and they are then louder than was planned."""
    with pytest.raises(BudgetError, match="is not on the plan"):
        audited(LooksForFree, 20)
