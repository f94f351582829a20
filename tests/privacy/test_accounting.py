"""Closed-form composition against mpmath, against Google's PLD accountant, and against itself."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.errors import InputError
from privtraj.privacy import accounting
from privtraj.privacy.accounting import (
    GaussianSum,
    LaplaceCounts,
    calibrate_gaussian,
    calibrate_laplace,
    delta_at,
    epsilon_at,
    gaussian_delta,
    gdp_mu,
)

ADJACENCIES = ["add-remove", "replace-one"]

slacks = st.sampled_from([0.0, 0.0, 1e-12, 1e-8])
gaussians = st.builds(GaussianSum, st.floats(0.7, 60), st.just("sum"), slacks)
laplaces = st.builds(LaplaceCounts, st.floats(0.01, 3), st.just("counts"), slacks)
event_lists = st.lists(st.one_of(gaussians, laplaces), max_size=4)
adjacencies = st.sampled_from(ADJACENCIES)
deltas = st.sampled_from([1e-3, 1e-5, 1e-6, 1e-12])


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("epsilon", [-40.0, -1.0, -1e-6, 0.0, 1e-6, 0.01, 1.0, 5.0, 50.0])
def test_gaussian_delta_against_high_precision(epsilon, mu):
    mp = pytest.importorskip("mpmath")
    with mp.workdps(60):
        e, m = mp.mpf(epsilon), mp.mpf(mu)
        exact = mp.ncdf(-e / m + m / 2) - mp.exp(e) * mp.ncdf(-e / m - m / 2)
        assert float(gaussian_delta(epsilon, mu)) == pytest.approx(float(exact), rel=1e-10)


def test_gaussian_delta_without_gaussian():
    assert gaussian_delta(np.array([-1.0, 0.0, 1.0]), 0.0) == pytest.approx(
        [1 - math.exp(-1), 0, 0]
    )


def test_laplace_loss_is_randomised_response():
    """Against the definition, E_P[(1 - e^{eps - loss})_+], summed over the integers."""
    e, x = 0.7, np.arange(-200, 201)
    p = np.tanh(e / 2) * np.exp(-e * np.abs(x))
    q = np.tanh(e / 2) * np.exp(-e * np.abs(x - 1))
    for eps in [0.0, 0.2, 0.5, 0.7, 1.0]:
        one = np.maximum(p - math.exp(eps) * q, 0).sum()
        assert delta_at([LaplaceCounts(e, "")], eps, "add-remove") == pytest.approx(one, abs=1e-14)
        both = np.maximum(np.outer(p, p) - math.exp(eps) * np.outer(q, q), 0).sum()
        assert delta_at([LaplaceCounts(e, "")], eps, "replace-one") == pytest.approx(
            both, abs=1e-13
        )


MIXTURES = {
    "one Gaussian": [GaussianSum(1.5, "")],
    "Gaussians": [GaussianSum(4.0, ""), GaussianSum(3.0, ""), GaussianSum(10.0, "")],
    "one Laplace": [LaplaceCounts(0.8, "")],
    "Laplaces": [LaplaceCounts(0.5, ""), LaplaceCounts(0.2, ""), LaplaceCounts(0.5, "")],
    "both": [LaplaceCounts(0.5, ""), GaussianSum(3.0, ""), LaplaceCounts(0.3, "")],
}


def pld_of(events, adjacency):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    grid, moved = 1e-4, 1 if adjacency == "add-remove" else 2
    total = None
    for event in events:
        if isinstance(event, GaussianSum):
            parts = [
                pld.from_gaussian_mechanism(
                    event.noise_multiplier, sensitivity=moved, value_discretization_interval=grid
                )
            ]
        else:
            one = pld.from_discrete_laplace_mechanism(
                event.epsilon, sensitivity=1, value_discretization_interval=grid
            )
            parts = [one] * moved
        for part in parts:
            total = part if total is None else total.compose(part)
    return total


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("events", MIXTURES.values(), ids=MIXTURES.keys())
def test_composition_agrees_with_pld(events, adjacency):
    pld = pld_of(events, adjacency)
    for delta in [1e-2, 1e-5, 1e-8]:
        ours, theirs = epsilon_at(events, delta, adjacency), pld.get_epsilon_for_delta(delta)
        assert ours <= theirs + 1e-8  # theirs is pessimistic by construction
        assert ours == pytest.approx(theirs, abs=1e-3)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_clt_formula_is_not_used(adjacency):
    """mu is sqrt(K) / z exactly, not the central limit formula rho sqrt(K (e^{1/z^2} - 1))."""
    steps, z = 50, 1.5
    exact = math.sqrt(steps) / z * (1 if adjacency == "add-remove" else 2)
    assert gdp_mu([GaussianSum(z, "")] * steps, adjacency) == pytest.approx(exact, rel=1e-12)
    assert exact != pytest.approx(math.sqrt(steps * math.expm1(1 / z**2)), rel=0.05)


def test_replace_one_doubles_the_sensitivity():
    for event in (GaussianSum(2.0, ""), LaplaceCounts(0.5, "")):
        assert [event.sensitivity(a) for a in ADJACENCIES] == [1, 2]
    assert gdp_mu([GaussianSum(2.0, "")], "replace-one") == 1.0
    assert gdp_mu([GaussianSum(2.0, ""), LaplaceCounts(1.0, "")], "add-remove") is None
    assert gdp_mu([], "add-remove") == 0.0


def test_pure_budgets():
    events = [LaplaceCounts(0.5, ""), LaplaceCounts(0.25, ""), LaplaceCounts(0.5, "")]
    assert epsilon_at(events, 0.0, "add-remove") == pytest.approx(1.25, rel=1e-14)
    assert epsilon_at(events, 0.0, "replace-one") == pytest.approx(2.5, rel=1e-14)
    assert epsilon_at([GaussianSum(100.0, "")], 0.0, "add-remove") == math.inf
    assert calibrate_gaussian(5.0, 0.0, "add-remove") == 0.0
    assert calibrate_laplace(1.0, 0.0, "replace-one") == pytest.approx(0.5, rel=1e-8)
    assert epsilon_at([], 0.0, "add-remove") == 0.0


def test_slack_is_charged_and_can_put_delta_out_of_reach():
    plain, slack = GaussianSum(3.0, ""), 1e-7
    event = GaussianSum(3.0, "", slack)
    for eps in [0.0, 0.5, 1.0]:
        expected = delta_at([plain], eps, "add-remove") + (1 + math.exp(eps)) * slack
        assert delta_at([event], eps, "add-remove") == pytest.approx(expected, rel=1e-12)
    assert epsilon_at([event], 1e-7, "add-remove") == math.inf
    assert epsilon_at([plain], 1e-7, "add-remove") < math.inf
    # (e, d) implies (eps, d) for eps >= e: a large epsilon must not be charged e^epsilon slack.
    assert delta_at([event], 50.0, "add-remove") < 1e-6


def test_calibration_leaves_room_for_slack():
    slack = 1e-8
    mu = calibrate_gaussian(1.0, 1e-6, "add-remove", slack=slack)
    assert mu < calibrate_gaussian(1.0, 1e-6, "add-remove")
    assert delta_at([GaussianSum(1 / mu, "", slack)], 1.0, "add-remove") <= 1e-6
    assert calibrate_gaussian(1.0, 1e-6, "add-remove", slack=1e-6) == 0.0


def test_many_different_epsilons_stay_cheap_and_conservative():
    """Beyond MAX_LOSSES losses are merged upwards: a little more than exact, never less."""
    spread = [LaplaceCounts(0.1 + 0.001 * i, "") for i in range(20)]
    exact_below = [LaplaceCounts(0.1, "")] * 20
    losses, probabilities = accounting._laplace_losses(
        accounting.tally(spread, "add-remove").shifts
    )
    assert losses.size <= accounting.MAX_LOSSES
    assert probabilities.sum() == pytest.approx(1, abs=1e-12)
    assert epsilon_at(spread, 0.0, "add-remove") == pytest.approx(sum(e.epsilon for e in spread))
    assert epsilon_at(spread, 1e-5, "add-remove") > epsilon_at(exact_below, 1e-5, "add-remove")
    pld = pld_of(spread, "add-remove")
    ours, theirs = epsilon_at(spread, 1e-5, "add-remove"), pld.get_epsilon_for_delta(1e-5)
    assert ours == pytest.approx(theirs, abs=0.02)


@settings(max_examples=60, deadline=None)
@given(event_lists, deltas, adjacencies)
def test_epsilon_and_delta_are_inverse(events, delta, adjacency):
    epsilon = epsilon_at(events, delta, adjacency)
    if math.isinf(epsilon):
        assert delta_at(events, 200.0, adjacency) > delta
        return
    assert delta_at(events, epsilon, adjacency) <= delta
    if epsilon > 1e-6:
        assert delta_at(events, epsilon * (1 - 1e-9), adjacency) > delta * (1 - 1e-9)


@settings(max_examples=60, deadline=None)
@given(event_lists, st.one_of(gaussians, laplaces), st.floats(0, 20), st.floats(0, 5), adjacencies)
def test_delta_falls_with_epsilon_and_grows_with_events(events, extra, epsilon, step, adjacency):
    delta = delta_at(events, epsilon, adjacency)
    tiny = 1e-12 * delta + 1e-18
    assert 0 <= delta <= 1
    assert delta_at(events, epsilon + step, adjacency) <= delta + tiny
    assert delta_at([*events, extra], epsilon, adjacency) >= delta - tiny
    assert (
        delta_at(events, epsilon, "replace-one") >= delta_at(events, epsilon, "add-remove") - tiny
    )


@settings(max_examples=40, deadline=None)
@given(event_lists, st.floats(0.05, 12), deltas, adjacencies)
def test_calibration_never_overshoots_and_leaves_next_to_nothing(others, epsilon, delta, adjacency):
    for calibrate, event in [
        (calibrate_gaussian, lambda x: GaussianSum(1 / x, "")),
        (calibrate_laplace, lambda x: LaplaceCounts(x, "")),
    ]:
        largest = calibrate(epsilon, delta, adjacency, others)
        if largest == 0.0:
            assert delta_at([*others, event(1e-6)], epsilon, adjacency) > delta * (1 - 1e-4)
            continue
        assert delta_at([*others, event(largest)], epsilon, adjacency) <= delta
        assert delta_at([*others, event(largest * 1.0001)], epsilon, adjacency) > delta


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: GaussianSum(0.0, ""),
        lambda: GaussianSum(math.nan, ""),
        lambda: GaussianSum(1.0, "", slack=-1.0),
        lambda: LaplaceCounts(math.inf, ""),
        lambda: delta_at([], -1.0, "add-remove"),
        lambda: delta_at([], 1.0, "add_remove"),
        lambda: epsilon_at([], 1.0, "add-remove"),
        lambda: epsilon_at([], math.nan, "add-remove"),
        lambda: calibrate_gaussian(0.0, 1e-5, "add-remove"),
        lambda: calibrate_laplace(math.inf, 1e-5, "add-remove"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(wrong):
    with pytest.raises(InputError, match=r"^[^.]*(\.\d[^.]*)*[^.]$"):
        wrong()
