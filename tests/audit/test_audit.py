"""The audit: bounds hold at their stated confidence, are close with many runs, and the real
pipeline stays below its claim.

False alarms. A bound at confidence p is above the truth with probability at most 1 - p over seeds;
every seed here is fixed, so a test passes always or never. Where many trials must all hold, p is
chosen so that the probability of a single failure over all of them is at most 2 %.
"""

import json
import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from in_bins import rows_in_bins
from privtraj.audit.attack import audit
from privtraj.audit.canaries import (
    CANARIES,
    COPIES,
    LAST,
    OTHERS,
    People,
    Worlds,
    data_of,
    worlds_of,
)
from privtraj.audit.findings import (
    Audit,
    Rates,
    at_least,
    at_most,
    best_threshold,
    compare,
    epsilon_of_rates,
    epsilon_of_shape,
    scale_of_shape,
)
from privtraj.audit.scores import ALL, log_density, log_likelihood_ratio
from privtraj.audit.transcript import Answer, Transcript
from privtraj.base.errors import InputError
from privtraj.base.space import Slabs
from privtraj.columns.kinds import Axes
from privtraj.measures import reweighting
from privtraj.measures.persistence import PERSISTENCE
from privtraj.privacy import noise
from privtraj.privacy.accounting import Tally, tally
from privtraj.privacy.events import GaussianSum, LaplaceCounts, Person
from privtraj.privacy.guard import CellCounts, Gaussian, Guard, Laplace, PublicShape, Release
from privtraj.privacy.ledger import Ledger
from privtraj.privacy.pairs import LagTable
from privtraj.privacy.sums import ClippedSums
from privtraj.synthesizer import TrajectorySynthesizer

DELTA = 1e-5


def gaussian_claim(mu):
    return tally([GaussianSum(1 / mu, "sum")], "add-remove")


def response_claim(epsilon):
    return tally([LaplaceCounts(epsilon, "count")], "add-remove")


def gaussian_scores(mu, runs, rng):
    """Log-likelihood ratios of N(mu, 1) over N(0, 1), without and with the person."""
    noise = rng.standard_normal((2, runs))
    return mu * noise[0] - mu**2 / 2, mu * (noise[1] + mu) - mu**2 / 2


def response_scores(epsilon, runs, rng):
    """Randomised response: the truth with probability e^epsilon / (1 + e^epsilon)."""
    honest = rng.random((2, runs)) < 1 / (1 + math.exp(-epsilon))
    return np.where(honest[0], -epsilon, epsilon), np.where(honest[1], epsilon, -epsilon)


# Rates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("trials", [1, 7, 50])
@pytest.mark.parametrize("miss", [0.2, 0.025, 1e-4])
def test_clopper_pearson_misses_no_oftener_than_stated_whatever_the_true_rate(trials, miss):
    counts = np.arange(trials + 1)
    upper = np.array([at_most(int(k), trials, miss) for k in counts])
    lower = np.array([at_least(int(k), trials, miss) for k in counts])
    assert (lower <= counts / trials).all()
    assert (counts / trials <= upper).all()
    for rate in np.linspace(0, 1, 101):
        chances = binom.pmf(counts, trials, rate)
        assert chances[upper < rate].sum() <= miss * (1 + 1e-9)
        assert chances[lower > rate].sum() <= miss * (1 + 1e-9)


def test_no_alarm_in_n_runs_is_the_rule_of_three():
    assert at_most(0, 60, 0.05) == pytest.approx(1 - 0.05 ** (1 / 60))
    fpr, tpr = Rates(0, 60, 60, 60).bounds(0.9)
    assert fpr == pytest.approx(1 - 0.05 ** (1 / 60))
    assert tpr == pytest.approx(1 - fpr)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_rates_on_the_edge_of_a_guarantee_give_its_epsilon(epsilon, delta):
    fpr = 0.05
    tpr = math.exp(epsilon) * fpr + delta
    if tpr < 1:
        assert epsilon_of_rates(fpr, tpr, delta) == pytest.approx(epsilon)
        assert epsilon_of_rates(1 - tpr, 1 - fpr, delta) == pytest.approx(epsilon)
    assert epsilon_of_rates(0.5, 0.5, delta) == 0
    assert epsilon_of_rates(0.6, 0.4, delta) == 0


# The shape of the claim -----------------------------------------------------------------------


@pytest.mark.parametrize("claimed", [0.27, 1.0, 3.0])
@pytest.mark.parametrize(("fpr", "tpr"), [(0.45, 0.55), (0.2, 0.3), (0.02, 0.6), (0.3, 0.99)])
def test_for_gaussian_sums_it_is_the_difference_of_normal_quantiles(claimed, fpr, tpr):
    found = claimed * scale_of_shape(gaussian_claim(claimed), fpr, tpr)
    assert found == pytest.approx(ndtri(tpr) - ndtri(fpr), rel=3e-3)
    assert found <= ndtri(tpr) - ndtri(fpr)


@pytest.mark.parametrize("true", [0.2, 1.0, 3.0])
def test_for_one_count_it_is_the_log_odds(true):
    right = 1 / (1 + math.exp(-true))
    found = epsilon_of_shape(response_claim(1.0), 1 - right, right, 0.0)
    assert found == pytest.approx(true, rel=3e-3)
    assert found <= true


def test_the_shape_of_a_mixed_claim_is_its_own():
    claim = tally([LaplaceCounts(0.05, "n"), (GaussianSum(30.0, "s"), 64)], "add-remove")
    truth = claim.scaled(2.0)
    fpr = 0.3
    tpr = float(truth.true_positive_rates(np.array([fpr]))[0])
    assert scale_of_shape(claim, fpr, tpr) == pytest.approx(2.0, rel=3e-3)
    found = epsilon_of_shape(claim, fpr, tpr, DELTA)
    assert found == pytest.approx(truth.epsilon(DELTA), rel=5e-3)


def test_rates_that_say_nothing_give_nothing():
    assert scale_of_shape(gaussian_claim(1.0), 0.5, 0.5) == 0
    assert epsilon_of_shape(gaussian_claim(1.0), 0.6, 0.2, DELTA) == 0


# Whole comparisons ----------------------------------------------------------------------------

KNOWN = {
    "gaussian": (gaussian_claim, gaussian_scores, 1.0),
    "randomised response": (response_claim, response_scores, 1.0),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("threshold", [0.0, None])
def test_bounds_are_below_the_truth_in_all_trials(name, threshold):
    """Ten trials at confidence 1 - 2e-3: all hold with probability 98 % over seeds."""
    claim, scores, truth = KNOWN[name]
    for seed in range(10):
        rng = np.random.default_rng(seed)
        found = compare(*scores(truth, 300, rng), claim(truth), DELTA, 1 - 2e-3, threshold)
        assert not found.violated
        assert max(found.epsilon_threshold, found.epsilon_shape) <= found.epsilon


@pytest.mark.parametrize("name", KNOWN)
def test_false_alarms_are_no_oftener_than_stated(name):
    """At confidence 60 %, of 3000 true claims at most 40 % may look false.

    A claim is refuted where (fpr, tpr) is outside what it allows: for these two, where
    Phi^-1(tpr) - Phi^-1(fpr) > mu, or a log ratio > epsilon.
    """
    _, scores, truth = KNOWN[name]
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(3000):
        without, present = scores(truth, 50, rng)
        rates = Rates(int((without > 0).sum()), 50, int((present > 0).sum()), 50)
        fpr, tpr = rates.bounds(0.6)
        gaussian = ndtri(tpr) - ndtri(fpr)
        alarms += (gaussian if name == "gaussian" else epsilon_of_rates(fpr, tpr, 0.0)) > truth
    # the binomial's upper 1e-7 point; the bounds are conservative, so far fewer are expected
    assert alarms <= binom.isf(1e-7, 3000, 0.4)
    assert alarms > 0  # and it is not that nothing could ever alarm


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("threshold", [0.0, None])
def test_bounds_are_close_to_the_truth_with_many_runs(name, threshold):
    claim, scores, truth = KNOWN[name]
    found = compare(
        *scores(truth, 50_000, np.random.default_rng(0)), claim(truth), DELTA, 0.95, threshold
    )
    assert 0.93 * found.epsilon < found.epsilon_shape <= found.epsilon
    if name == "randomised response":
        assert 0.93 * found.epsilon < found.epsilon_threshold <= found.epsilon


@pytest.mark.parametrize("name", KNOWN)
def test_a_claim_half_as_large_as_the_truth_is_refuted(name):
    claim, scores, truth = KNOWN[name]
    found = compare(
        *scores(2 * truth, 400, np.random.default_rng(1)), claim(truth), DELTA, 0.99, 0.0
    )
    assert found.violated
    assert "VIOLATED" in str(whole(found))


def test_a_threshold_that_was_looked_for_is_tested_on_other_runs():
    rng = np.random.default_rng(2)
    without, present = rng.standard_normal(41), rng.standard_normal(61) + 1
    found = compare(without, present, gaussian_claim(1.0), DELTA)
    assert (found.rates.absent, found.rates.present) == (21, 31)
    assert len(found.scores_without) + len(found.scores_with) == 102
    assert found.threshold == best_threshold(without[:20], present[:30], 0.95)
    # it does not see the second half
    without[20:], present[30:] = 0, 0
    assert compare(without, present, gaussian_claim(1.0), DELTA).threshold == found.threshold


def test_looking_for_a_threshold_finds_the_one_that_tells():
    without = np.append(np.zeros(50), np.full(50, 2.0))
    present = np.append(np.full(50, 1.0), np.full(50, 2.0))
    assert best_threshold(without, present, 0.95) == 0.0


def test_nothing_recorded_is_a_claim_of_nothing():
    rng = np.random.default_rng(3)
    nothing = Tally("add-remove")
    found = compare(*gaussian_scores(1.0, 300, rng), nothing, DELTA, 0.95, 0.0)
    assert found.epsilon == 0
    assert found.violated
    assert min(found.epsilon_threshold, found.epsilon_shape) > 0
    silent = compare(np.zeros(50), np.zeros(50), nothing, DELTA, 0.95, 0.0)
    assert not silent.violated


def whole(*findings):
    """The audit of these findings."""
    first = findings[0]
    runs = len(first.scores_without) + len(first.scores_with)
    settings = {"delta": DELTA, "confidence": first.confidence, "view": "transcript", "runs": runs}
    return Audit(first.claim, findings=findings, noise=(), false_alarms=0.01, **settings)


def test_the_record_is_plain_json_and_reads_as_text():
    finding = compare(
        *gaussian_scores(1.0, 100, np.random.default_rng(4)), gaussian_claim(1.0), DELTA, 0.9, 0.0
    )
    found = whole(finding)
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert values["claim"] == {
        "epsilon": found.epsilon,
        "delta": DELTA,
        "adjacency": "add-remove",
    }
    assert values["runs"] == 200
    (one,) = values["attacks"]
    assert one["could_see"] == finding.could_see > found.epsilon
    assert values["strongest"].items() <= one.items()
    text = str(found)
    assert "Lower bounds on epsilon, at 90 % confidence" in text
    assert "no violation found" in text
    assert f"{finding.epsilon_shape:.3f}"[:4] in text


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (([], [1.0, 2.0]), {}, "at least two"),
        (([0.0, math.nan], [1.0, 2.0]), {}, "at least two"),
        (([0.0, 1.0], [1.0, 2.0]), {"confidence": 1.0}, "confidence"),
        (([0.0, 1.0], [1.0, 2.0]), {"delta": 1.0}, "delta"),
    ],
)
def test_what_cannot_be_compared_is_refused(scores, options, message):
    with pytest.raises(InputError, match=message):
        compare(*scores, gaussian_claim(1.0), **({"delta": DELTA} | options))


# Evidence -------------------------------------------------------------------------------------


def person_at(time, point, copies=1):
    return People.at(time, np.asarray(point, np.float32), copies)


def pair(present, without=None, others=None):
    nobody = People.nobody(present.points.shape[1])
    return Worlds(others or nobody, without or nobody, present)


@pytest.mark.parametrize("copies", [1, 3])
def test_the_evidence_of_a_count_is_its_log_likelihood_ratio(copies):
    present = np.zeros((2, 16))
    present[1, 3] = copies
    rest = np.arange(32.0).reshape(2, 16) % 5 - 2
    law = {k: math.exp(-0.7 * abs(k)) for k in range(-9, 10)}
    expected = math.log(law[rest[1, 3] - copies] / law[rest[1, 3]])
    event = LaplaceCounts(0.7, "cells")
    answer = Answer(event, rest, np.zeros((2, 16)), present)
    assert log_likelihood_ratio([answer]) == pytest.approx(expected)


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_the_evidence_of_a_sum_is_its_log_likelihood_ratio(rate):
    rng = np.random.default_rng(0)
    rest, vector = rng.standard_normal((1, 5)), rng.standard_normal((1, 5))
    clip, z = 0.85, 2.0

    def density(centre):
        return math.exp(-((rest - centre) ** 2).sum() / (2 * (clip * z) ** 2))

    present = (1 - rate) * density(0) + rate * density(vector)
    event = GaussianSum(z, "sum", rate=rate)
    answer = Answer(event, rest / clip, np.zeros((1, 5)), vector / clip)
    assert log_likelihood_ratio([answer]) == pytest.approx(math.log(present / density(0)))


def push(points, parameters):
    """Far beyond the clip, in a direction of the point."""
    return 100 * (points - 0.5) @ parameters


class Generous(Ledger):
    """Pays for everything, without counting: grids of sampled sums take seconds."""

    def __init__(self):
        super().__init__(1.0, 1e-3)

    def spend(self, event, times=1):
        pass


@pytest.mark.thorough
@pytest.mark.parametrize(("rate", "replace"), [(1.0, False), (0.5, False), (0.5, True)])
def test_the_evidence_of_real_answers_is_calibrated(snapshots_of, rate, replace):
    """E[e^LLR] = 1 without the person, E[e^-LLR] = 1 with, over adaptive answers of a real guard.

    Each mean of 100 runs within 4.5 standard errors of 1: false-alarm rate below 1e-5 each.
    """
    corner, opposite = person_at(2, np.ones(2)), person_at(0, np.zeros(2))
    worlds = pair(corner, opposite if replace else None)
    crowd = [[0.5, 0.5]] * 12
    data_of_worlds = [
        snapshots_of([opposite.points if replace else [], crowd, []], 2),
        snapshots_of([[], crowd, corner.points], 2),
    ]
    parameters = jnp.asarray(np.random.default_rng(1).standard_normal((3, 2, 4)), jnp.float32)
    for sign, data in zip((1, -1), data_of_worlds, strict=True):
        ratios = []
        for seed in range(100):
            transcript, source = Transcript(worlds), noise.SeededSource(seed)
            guard = data.guarded(Guard, Generous(), source, watcher=transcript)
            guard.ask(Release(CellCounts(2), Laplace(0.3), "cells"))
            answer = guard.at_rate(rate).ask(
                Release(ClippedSums(push, parameters, np.full(3, 0.2)), Gaussian(3.0), "first")
            )
            clip = 0.1 + np.abs(answer[:, 0])  # depends on what was released
            guard.at_rate(rate).ask(
                Release(ClippedSums(push, parameters, clip), Gaussian(3.0), "second")
            )
            ratios.append(math.exp(sign * log_likelihood_ratio(transcript.answers)))
        error = np.std(ratios) / math.sqrt(len(ratios))
        assert abs(np.mean(ratios) - 1) < 4.5 * error
        assert 0.01 < error < 0.1


def test_the_evidence_of_slabs_that_a_person_shares_with_a_crowd_is_calibrated(snapshots_of):
    """What the crowd adds is known and taken off: as above, in one slab with twelve others."""
    corner, place = person_at(2, np.ones(2)), np.full(2, 0.5, np.float32)
    worlds = pair(corner, others=person_at(1, place, 12))
    together = Slabs.between(np.array([0.5]))
    parameters = jnp.asarray(np.random.default_rng(1).standard_normal((2, 2, 4)), jnp.float32)
    for sign, extra in ((1, []), (-1, corner.points)):
        data, ratios = snapshots_of([[], [place] * 12, extra], 2), []
        for seed in range(100):
            transcript, source = Transcript(worlds), noise.SeededSource(seed)
            guard = data.guarded(Guard, Generous(), source, watcher=transcript)
            guard = guard.in_slabs(together)
            guard.ask(Release(CellCounts(1), Laplace(0.3), "people"))
            guard.ask(Release(CellCounts(2), Laplace(0.3), "cells"))
            guard.ask(
                Release(ClippedSums(push, parameters, np.full(2, 0.2)), Gaussian(3.0), "sums")
            )
            ratios.append(math.exp(sign * log_likelihood_ratio(transcript.answers)))
        error = np.std(ratios) / math.sqrt(len(ratios))
        assert abs(np.mean(ratios) - 1) < 4.5 * error
        assert 0.01 < error < 0.1


def test_reserved_answers_and_chosen_times_are_watched_too(snapshots_of):
    person = person_at(2, np.ones(2))
    data = snapshots_of([[[0.5, 0.5]] * 12, [], person.points], 2)
    parameters = jnp.ones((3, 2, 4), jnp.float32)
    transcript = Transcript(pair(person))
    guard = data.guarded(Guard, Generous(), noise.SeededSource(0), watcher=transcript)
    part = guard.reserve(guard.at_rate(0.5).sum_event(4, 1.0, "step"), 2)
    for _ in range(2):
        part.ask(Release(ClippedSums(push, parameters, np.ones(3)), Gaussian(1.0), "step"))
    assert len(transcript.answers) == 2
    seen = set()
    for _ in range(8):
        chosen, part = guard.choose_times(2, 4, 0.3, "step", 1)
        part.ask(Release(ClippedSums(push, parameters[chosen], np.ones(2)), Gaussian(0.3), "step"))
        seen.add(2 in chosen)
        # at this noise the person is seen for certain where the bin was chosen: mu^2 / 2 = 5.6
        assert (log_likelihood_ratio(transcript.answers[-1:]) != 0) == (2 in chosen)
    assert seen == {True, False}


@pytest.mark.filterwarnings("ignore::privtraj.LowBudgetWarning")
def test_watching_changes_nothing():
    synthesizer = TrajectorySynthesizer(
        2.0, 1e-3, measure="gradients", particles=2, steps=2, seed=5
    )
    worlds = worlds_of("alone", synthesizer, 2, 3)
    data = data_of(worlds, worlds.present, 3)
    plain = synthesizer.fit(data)
    transcript = Transcript(worlds)
    watched = synthesizer.fit(data, watcher=transcript)
    np.testing.assert_array_equal(watched.particles, plain.particles)
    assert len(transcript.answers) == 5  # when people are, how they move, how many, and two steps


@pytest.mark.filterwarnings("ignore::privtraj.LowBudgetWarning")
def test_the_released_view_is_the_density_that_people_are_sampled_from():
    worlds = worlds_of("alone", TrajectorySynthesizer(), 1, 3)
    model = TrajectorySynthesizer(
        2.0, 1e-3, measure="counts", particles=4, steps=2, cells=2, seed=1
    ).fit(data_of(worlds, worlds.present, 3))
    axis = np.linspace(-8, 9, 20_001, dtype=np.float32)
    density = [math.exp(log_density(model, person_at(2, [y]))) for y in axis[::20]]
    assert np.trapezoid(density, axis[::20]) == pytest.approx(1, abs=1e-3)


# The data of an audit -------------------------------------------------------------------------


def rows_of(data):
    """Bin and point of every record, in order."""
    world = rows_in_bins(data)
    return sorted(np.column_stack([world.slabs, world.points]).tolist())


@pytest.mark.parametrize("name", [name for name in CANARIES if name not in LAST])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_two_worlds_differ_in_the_records_of_one_person(name, adjacency):
    worlds = worlds_of(name, TrajectorySynthesizer(adjacency=adjacency), 3, 4)
    others = rows_of(data_of(worlds, People.nobody(3), 4))
    assert len(others) == OTHERS + (name == "rare")
    for person in worlds[1:]:
        places = zip(*person, strict=True)
        extra = [[time, *point] for time, point, copies in places for _ in range(copies)]
        data = data_of(worlds, person, 4)
        assert rows_of(data) == sorted(others + np.array(extra).tolist())
        assert data.records_per_person == (COPIES if name == "duplicated" else 1)
        assert data.together == (name == "duplicated")
    assert len(worlds.without.times) == (adjacency == "replace-one")


def test_canaries_are_where_they_say():
    def beside(name):
        """Others at the person's time, and others in the person's place."""
        others, _, person = worlds_of(name, TrajectorySynthesizer(), 2, 3)
        then = others.times == person.times[0]
        there = then & (others.points == person.points[0]).all(axis=1)
        return others.copies[then].sum(), others.copies[there].sum(), person.records

    assert beside("alone") == (0, 0, 1)
    assert beside("corner") == (OTHERS, 0, 1)
    assert beside("rare") == (OTHERS + 1, 1, 1)
    assert beside("duplicated") == (0, 0, COPIES)


def test_public_counts_keep_the_person_in_the_bin():
    synthesizer = TrajectorySynthesizer(adjacency="replace-one", public_counts=[310, 305])
    _, without, present = worlds_of("alone", synthesizer, 2, 3)
    assert without.times == present.times
    assert not audit(synthesizer, runs=20, seed=1).violated  # at the numbers of its own data
    with pytest.raises(InputError, match="replace-one"):
        audit(TrajectorySynthesizer(public_counts=[310, 305]), runs=20)


# The real pipeline ----------------------------------------------------------------------------


@pytest.mark.parametrize(("adjacency", "epsilon"), [("add-remove", 4.0), ("replace-one", 8.0)])
def test_private_counts_are_within_their_claim_and_well_above_zero(adjacency, epsilon):
    """ "Above zero" holds at all but one seed in 1000 where the attack has rates of 0.9 and 0.1,
    by 25 runs in either world at 98 % confidence; 60 runs found 1.0 and 0.1 or less."""
    # answers are what is attacked: what is made of them afterwards, at length, may be left out
    synthesizer = TrajectorySynthesizer(epsilon, DELTA, adjacency=adjacency, time_coupling=0.0)
    whole = audit(synthesizer, runs=50, seed=1)
    assert whole.view == "transcript"
    assert whole.adjacency == adjacency
    found = whole.of(ALL)
    assert 0.99 * epsilon < found.epsilon <= epsilon
    assert 0 < found.epsilon_threshold <= found.epsilon
    assert 0 < found.epsilon_shape <= found.epsilon
    assert not whole.violated


def test_the_noise_of_pairs_is_tested_and_their_person_is_within_the_claim():
    """Somebody with three records in one place has three pairs, which move one number by all of
    their weight. Chance: 1 % of audits are wrongly called violated."""
    synthesizer = TrajectorySynthesizer(1.0, DELTA, time_coupling=0.0, windows="bins", cells=2)
    whole = audit(synthesizer, runs=20, seed=1, canary="duplicated")
    assert PERSISTENCE in {test.release for test in whole.noise}
    assert not whole.violated


def test_what_a_person_adds_to_the_answer_about_pairs_is_known():
    question = LagTable(np.arange(2.0), np.full((2, 2, 2), [0.4, 0.6]), np.array([0.5]), 64)
    transcript = Transcript(pair(person_at(1, [1.0, 0.5], 3)))
    answer = np.zeros((2, 8), np.int64)
    answer[0, [0, 7]] = 64
    shape = PublicShape(Slabs.between(np.empty(0)), Axes.numeric(2), Person(3, True))
    transcript.released(Release(question, Laplace(0.1), PERSISTENCE), shape, answer)
    (told,) = transcript.answers
    np.testing.assert_array_equal(told.present, answer)
    assert not told.without.any()
    assert log_likelihood_ratio([told]) == pytest.approx(12.8)


GRADIENTS = {"measure": "gradients", "particles": 2, "steps": 4}


@pytest.fixture
def few_points(monkeypatch):
    """Marginals that are made of the answers coarsely: it is the answers that are attacked."""
    monkeypatch.setattr(reweighting, "POINTS", 64)


@pytest.mark.thorough
def test_private_gradients_at_epsilon_twelve_are_within_their_claim_and_well_above_zero(few_points):
    whole = audit(TrajectorySynthesizer(12.0, DELTA, **GRADIENTS), runs=50, seed=1)
    assert not whole.violated
    found = whole.of(ALL)
    assert 11.9 < found.epsilon <= 12
    assert 0 < found.epsilon_threshold <= found.epsilon
    assert 0 < found.epsilon_shape <= found.epsilon
    # the person uses most of what is paid for: E[LLR | with] - E[LLR | without] = mu^2 if all
    used = found.scores_with.mean() - found.scores_without.mean()
    assert used > 0.5 * found.claim.mu_squared


def test_private_gradients_at_epsilon_one_are_within_their_claim(few_points):
    found = audit(TrajectorySynthesizer(1.0, DELTA, **GRADIENTS), runs=20, seed=1)
    assert not found.violated
    assert found.strongest.bound <= found.epsilon <= 1


def test_the_released_model_tells_less_than_the_claim_allows():
    settings = {"measure": "counts", "particles": 8, "steps": 2}
    told = []
    synthesizer = TrajectorySynthesizer(4.0, DELTA, **settings)
    found = audit(
        synthesizer, runs=40, view="released", seed=2, progress=lambda *at: told.append(at)
    )
    assert not found.violated
    assert [one.rates.absent for one in found.findings] == [10, 10]
    assert told == [(k, 40) for k in range(1, 41)]
    assert (synthesizer.seed, synthesizer.particles) == (None, 8)


def test_an_audit_repeats_with_its_seed_and_only_then():
    synthesizer = TrajectorySynthesizer(1.0, DELTA, windows="bins", cells=2)

    def scores(seed):
        found = audit(synthesizer, runs=20, seed=seed)
        return [*found.of(ALL).scores_without, *found.of(ALL).scores_with]

    assert scores(7) == scores(7) != scores(8)
    assert scores(None) != scores(None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runs": 19}, "runs"),
        ({"runs": 20.0}, "runs"),
        ({"features": 0}, "features"),
        ({"times": 2}, "times"),
        ({"view": "both"}, "view"),
        (
            {"canary": "yellow"},
            "canary must be alone, corner, rare, duplicated, level, missing or all",
        ),
        ({"runs": 20, "confidence": 0.0}, "confidence"),
    ],
)
def test_bad_settings_of_an_audit_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        audit(TrajectorySynthesizer(), **options)


def test_more_noise_than_claimed_is_never_refuted():
    """Half the loss that is claimed: over 10 audits at 95 % confidence none alarms."""
    for seed in range(10):
        scores = gaussian_scores(0.5, 200, np.random.default_rng(seed))
        found = compare(*scores, gaussian_claim(1.0), DELTA, 0.95, 0.0)
        assert not found.violated
        assert ndtr(0.25) > found.bounds[1]
