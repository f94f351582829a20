"""Fits over sampled people: the budget is kept, and what is paid for is known in advance."""

import warnings

import numpy as np
import pytest

from privtraj import LowBudgetWarning, Snapshots
from privtraj.base.errors import InputError
from privtraj.paper import SampledSynthesizer

T = 4
SAMPLED = {"rate": 0.3}


def fit(snapshots, epsilon=0.5, delta=1e-5, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowBudgetWarning)
        return SampledSynthesizer(epsilon, delta, **options).fit(snapshots)


@pytest.fixture(scope="module")
def people(moving_blobs):
    points = moving_blobs(T, 200, 2).reshape(-1, 2)
    return Snapshots.from_arrays(
        np.repeat(np.arange(T), 200), points, bounds=[(0, 1)] * 2, bins=np.arange(float(T))
    )


@pytest.fixture(scope="module")
def sampled_fit(people):
    return fit(people, seed=1, **SAMPLED)


def test_sampled_steps_spend_the_budget_and_not_more(sampled_fit):
    for part in (sampled_fit.particles, sampled_fit.weights, sampled_fit.bandwidth):
        assert np.isfinite(part).all()
    certificate = sampled_fit.certificate
    assert 0.98 * 0.5 <= certificate.epsilon <= 0.5
    count, steps = certificate.ledger
    assert count["mechanism"] == "discrete Laplace"
    assert (steps["mechanism"], steps["times"], steps["rate"]) == ("sampled Gaussian", 30, 0.3)
    assert certificate.cost.epsilon(certificate.delta) == pytest.approx(
        certificate.epsilon, rel=1e-9
    )
    assert certificate.epsilon_clt < certificate.epsilon
    assert certificate.public_inputs["sampling rate"] == 0.3


def test_what_is_paid_for_sampled_steps_does_not_follow_from_the_data(
    moving_blobs, snapshots_of, sampled_fit
):
    """Their number and noise are fixed before: losses of other shapes must not be picked later."""
    few = snapshots_of(list(moving_blobs(T, 15, 2)))
    assert fit(few, seed=2, **SAMPLED).certificate.ledger == sampled_fit.certificate.ledger


def test_sampled_steps_need_a_delta_that_the_grid_can_tell_from_nothing(people):
    with pytest.raises(InputError, match="so small a delta"):
        fit(people, 0.5, 1e-12, seed=0, **SAMPLED)


@pytest.mark.parametrize("rate", [0, 1.5, float("nan"), None, True])
def test_bad_rates_are_refused_in_one_sentence(people, rate):
    with pytest.raises(InputError, match="rate must be") as error:
        fit(people, **{**SAMPLED, "rate": rate})
    assert "\n" not in str(error.value)
