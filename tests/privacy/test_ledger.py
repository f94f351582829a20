"""The ledger refuses without a trace, counts without drift, and certifies in plain words."""

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.errors import BudgetError, InputError
from privtraj.privacy.accounting import (
    GaussianSum,
    LaplaceCounts,
    calibrate_gaussian,
    epsilon_at,
)
from privtraj.privacy.ledger import Certificate, Ledger, certify

ADJACENCIES = ["add-remove", "replace-one"]

events = st.one_of(
    st.builds(GaussianSum, st.floats(1, 50), st.just("sum"), st.sampled_from([0.0, 1e-9])),
    st.builds(LaplaceCounts, st.floats(0.01, 1), st.just("counts")),
)


def mixed_ledger(adjacency="add-remove"):
    ledger = Ledger(2.0, 1e-3, adjacency)
    ledger.spend(LaplaceCounts(0.3, "counts per time"))
    for _ in range(60):
        ledger.spend(GaussianSum(40.0, "clipped sums, step", slack=1e-12))
    return ledger


def test_refuses_beyond_the_budget_and_leaves_no_trace():
    ledger = Ledger(1.0, 1e-5)
    ledger.spend(GaussianSum(10.0, "first"))
    before = (ledger.events, ledger.spent(), ledger.entries(), ledger.slack)
    assert not ledger.covers(GaussianSum(1.0, "greedy"))
    with pytest.raises(BudgetError, match=r"'greedy'.*epsilon 0.\d+ of 1 is spent.*room for"):
        ledger.spend(GaussianSum(1.0, "greedy"))
    assert (ledger.events, ledger.spent(), ledger.entries(), ledger.slack) == before
    assert ledger.covers(GaussianSum(20.0, "modest"))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("steps", [1, 7, 60, 2000])
def test_calibrated_steps_fit_exactly(steps, adjacency):
    counts = LaplaceCounts(0.2, "counts")
    slack = steps * 1e-12
    mu = calibrate_gaussian(1.0, 1e-5, adjacency, [counts], slack=slack)
    ledger = Ledger(1.0, 1e-5, adjacency)
    ledger.spend(counts)
    for _ in range(steps):
        ledger.spend(GaussianSum(math.sqrt(steps) / mu, "step", slack=slack / steps))
    assert ledger.spent() == pytest.approx(1.0, abs=1e-6)
    assert ledger.spent() <= 1.0
    with pytest.raises(BudgetError, match="nothing more"):
        ledger.spend(GaussianSum(math.sqrt(steps) / mu, "one too many"))


def test_pure_budget_takes_laplace_counts_only():
    ledger = Ledger(1.0, 0.0)
    with pytest.raises(BudgetError):
        ledger.spend(GaussianSum(1e6, "sum"))
    ledger.spend(LaplaceCounts(1.0, "counts"))
    assert ledger.spent() == 1.0
    with pytest.raises(BudgetError):
        Ledger(1.0, 0.0, "replace-one").spend(LaplaceCounts(0.6, "counts"))


def test_named_remainder_really_fits():
    ledger = Ledger(2.0, 1e-4)
    ledger.spend(LaplaceCounts(0.5, "counts"))
    named = re.search(
        r"multiplier (\S+) or more or Laplace counts of epsilon (\S+) or less", ledger.remaining()
    )
    multiplier, epsilon = map(float, named.groups())
    assert ledger.covers(GaussianSum(multiplier, "the rest"))
    assert ledger.covers(LaplaceCounts(epsilon, "the rest"))
    assert not ledger.covers(GaussianSum(multiplier * 0.999, "too much"))
    assert not ledger.covers(LaplaceCounts(epsilon * 1.002, "too much"))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(events, max_size=12),
    st.floats(0.1, 8),
    st.sampled_from([1e-3, 1e-6]),
    st.sampled_from(ADJACENCIES),
)
def test_odometer_never_under_reports(asked, epsilon, delta, adjacency):
    ledger, paid = Ledger(epsilon, delta, adjacency), []
    for event in asked:
        covered = ledger.covers(event)
        try:
            ledger.spend(event)
            paid.append(event)
        except BudgetError:
            assert not covered
        else:
            assert covered
    assert ledger.events == tuple(paid)
    assert ledger.spent() >= epsilon_at(paid, delta, adjacency)
    assert ledger.spent() <= epsilon


def test_entries_merge_runs_of_identical_events():
    counts, steps = mixed_ledger().entries()
    assert counts["mechanism"] == "discrete Laplace"
    assert (counts["times"], counts["noise_epsilon"], counts["epsilon"]) == (1, 0.3, 0.3)
    assert (steps["what"], steps["mechanism"]) == ("clipped sums, step", "Gaussian")
    assert (steps["times"], steps["noise_multiplier"]) == (60, 40.0)
    assert steps["mu"] == pytest.approx(math.sqrt(60) / 40)
    assert mixed_ledger("replace-one").entries()[0]["epsilon"] == 0.6


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_certificate_states_what_the_ledger_spent(adjacency):
    ledger = mixed_ledger(adjacency)
    inputs = {"bounds": np.array([[0.0, 1.0]]), "bins": np.int64(10)}
    certificate = certify(ledger, public_inputs=inputs, private_noise=True)
    other = ADJACENCIES[1 - ADJACENCIES.index(adjacency)]
    assert certificate.epsilon == epsilon_at(ledger.events, 1e-3, adjacency)
    assert certificate.epsilon_other_adjacency == epsilon_at(ledger.events, 1e-3, other)
    assert certificate.epsilon <= certificate.target_epsilon == 2.0
    assert certificate.mu is None
    assert certificate.slack == pytest.approx(6e-11)
    assert certificate.public_inputs == {"bounds": [[0.0, 1.0]], "bins": 10}
    assert Certificate.from_dict(json.loads(certificate.to_json())) == certificate
    assert certificate.private


def test_certificate_reads_in_plain_words():
    text = str(certify(mixed_ledger(), public_inputs={"bounds": [0, 1]}, private_noise=True))
    assert "whether one person is in the data at all (add-remove)" in text
    assert "what one person's record says (replace-one)" in text
    assert "60 x clipped sums, step" in text
    assert "Taken as public: bounds." in text
    assert "NOT PRIVATE" not in text


def test_seeded_noise_is_loudly_not_private():
    certificate = certify(mixed_ledger(), public_inputs={}, private_noise=False)
    assert not certificate.private
    assert str(certificate).startswith("NOT PRIVATE")
    assert "NOT PRIVATE" in certificate.noise


def test_gaussian_only_certificate_carries_mu():
    ledger = Ledger(2.0, 1e-3, "replace-one")
    ledger.spend(GaussianSum(8.0, "sum"))
    assert certify(ledger, public_inputs={}, private_noise=True).mu == 0.25
    assert "0.25-Gaussian" in str(certify(ledger, public_inputs={}, private_noise=True))


def test_unreachable_delta_of_the_other_adjacency_survives_json():
    ledger = Ledger(3.0, 1e-6)
    ledger.spend(GaussianSum(2.0, "sum", slack=4e-8))
    certificate = certify(ledger, public_inputs={}, private_noise=True)
    assert certificate.epsilon_other_adjacency == math.inf
    assert json.loads(certificate.to_json())["epsilon_other_adjacency"] is None
    assert Certificate.from_dict(certificate.to_dict()) == certificate


def test_printed_epsilon_is_rounded_up():
    ledger = Ledger(2.0, 0.0)
    ledger.spend(LaplaceCounts(1.23411, "counts"))
    assert "epsilon = 1.235," in str(certify(ledger, public_inputs={}, private_noise=True))


def test_bad_budgets_and_certificates_are_refused():
    for epsilon, delta, adjacency in [
        (0.0, 1e-5, "add-remove"),
        (1.0, 1.0, "add-remove"),
        (1.0, 1e-5, "unbounded"),
    ]:
        with pytest.raises(InputError):
            Ledger(epsilon, delta, adjacency)
    with pytest.raises(InputError, match="lacks"):
        Certificate.from_dict({"epsilon": 1.0})
