"""Composition against mpmath, against Google's PLD accountant, other closed forms, and itself.

Losses on a grid, and what they agree with, are in test_pld.py.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from privtraj.base.errors import InputError
from privtraj.privacy import accounting
from privtraj.privacy.accounting import (
    COARSE,
    delta_at,
    epsilon_at,
    gaussian_delta,
    tally,
)
from privtraj.privacy.events import (
    ChosenTimes,
    GaussianSum,
    LaplaceCounts,
    Opaque,
    Person,
    SampledPair,
    clt_mu,
)
from privtraj.privacy.ledger import (
    calibrate_gaussian,
    calibrate_laplace,
    calibrate_noise,
    calibrate_scale,
)

ADJACENCIES = ["add-remove", "replace-one"]

slacks = st.sampled_from([0.0, 0.0, 1e-12, 1e-8])
person = {"records": st.integers(1, 3), "together": st.booleans()}
gaussians = st.builds(GaussianSum, st.floats(0.7, 60), st.just("sum"), slacks, **person)
laplaces = st.builds(LaplaceCounts, st.floats(0.01, 3), st.just("counts"), slacks, **person)
opaques = st.builds(
    Opaque,
    st.floats(0.01, 2),
    st.sampled_from([0.0, 1e-15, 1e-9, 1e-6]),
    st.just("other"),
    st.just("add-remove"),
)
closed = st.one_of(gaussians, laplaces, opaques)
event_lists = st.lists(closed, max_size=4)
adjacencies = st.sampled_from(ADJACENCIES)
deltas = st.sampled_from([1e-3, 1e-5, 1e-6, 1e-12])

rates = st.floats(0.001, 0.9)
sums = st.builds(GaussianSum, st.floats(2, 20), st.just("sum"), rate=rates, **person)
chosen = st.builds(ChosenTimes, st.floats(0.05, 1), sums, st.integers(1, 20), st.just("some"))
sampled = st.tuples(st.one_of(sums, chosen), st.integers(1, 30))


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
    grid, moved = 1e-3, 1 if adjacency == "add-remove" else 2
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
    assert tally([GaussianSum(z, "")] * steps, adjacency).gdp_mu == pytest.approx(exact, rel=1e-12)
    assert exact != pytest.approx(math.sqrt(steps * math.expm1(1 / z**2)), rel=0.05)


def test_replace_one_doubles_the_sensitivity():
    assert tally([GaussianSum(2.0, "")], "replace-one").gdp_mu == 1.0
    assert tally([GaussianSum(2.0, ""), LaplaceCounts(1.0, "")], "add-remove").gdp_mu is None
    assert tally([], "add-remove").gdp_mu == 0.0


@pytest.mark.parametrize(
    "event",
    [
        GaussianSum(4.0, "", slack=1e-9),
        LaplaceCounts(0.3, "", slack=1e-9),
        LaplaceCounts(0.1, "", 0.0, 3, True),
        Opaque(0.2, 1e-4, ""),
    ],
    ids=repr,
)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_so_many_at_once_cost_what_they_cost_one_by_one(event, adjacency):
    at_once, one_by_one = tally([(event, 5)], adjacency), tally([event] * 5, adjacency)
    single = tally([event], adjacency)
    for epsilon in (0.0, 0.4, 1.0):
        delta = at_once.delta(epsilon)
        assert delta == pytest.approx(one_by_one.delta(epsilon), rel=1e-9)
        assert delta > 1.5 * single.delta(epsilon) or delta == 0


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


def test_merged_losses_are_never_below_the_exact_ones():
    """Responses of whole multiples of 1e-4, no two alike: their losses add up on a fine lattice.

    delta(eps) = sum_L p_L (1 - e^{eps - L})_+, p the convolution of two points for each response.
    """
    sizes = [3000 + k * k for k in range(20)]
    law = np.ones(1)
    for size in sizes:
        up = 1 / (1 + math.exp(-1e-4 * size))
        law, below = np.zeros(len(law) + 2 * size), law
        law[: len(below)] += (1 - up) * below
        law[2 * size :] += up * below
    losses = 1e-4 * (np.arange(len(law)) - sum(sizes))
    events = [LaplaceCounts(1e-4 * size, "") for size in sizes]
    assert 2 ** len(events) > accounting.MAX_LOSSES
    for epsilon in (0.003, 1.0, 4.0):
        exact = float(law @ np.maximum(-np.expm1(epsilon - losses), 0.0))
        assert exact <= delta_at(events, epsilon, "add-remove") <= 1.3 * exact


def test_many_different_epsilons_stay_cheap_and_conservative():
    """Beyond MAX_LOSSES losses are merged upwards: a little more than exact, never less."""
    spread = [LaplaceCounts(0.1 + 0.001 * i, "") for i in range(20)]
    exact_below = [LaplaceCounts(0.1, "")] * 20
    losses, probabilities, _ = accounting._laplace_losses(
        accounting.tally(spread, "add-remove").shifts
    )
    assert losses.size <= accounting.MAX_LOSSES
    assert probabilities.sum() == pytest.approx(1, abs=1e-12)
    assert epsilon_at(spread, 0.0, "add-remove") == pytest.approx(sum(e.epsilon for e in spread))
    assert epsilon_at(spread, 1e-5, "add-remove") > epsilon_at(exact_below, 1e-5, "add-remove")
    pld = pld_of(spread, "add-remove")
    ours, theirs = epsilon_at(spread, 1e-5, "add-remove"), pld.get_epsilon_for_delta(1e-5)
    assert ours == pytest.approx(theirs, abs=0.02)


# Properties -----------------------------------------------------------------------------------


@settings(max_examples=60)
@given(event_lists, deltas, adjacencies)
def test_epsilon_and_delta_are_inverse(events, delta, adjacency):
    epsilon = epsilon_at(events, delta, adjacency)
    if math.isinf(epsilon):
        assert delta_at(events, 200.0, adjacency) > delta
        return
    assert delta_at(events, epsilon, adjacency) <= delta
    if epsilon > 1e-6:
        assert delta_at(events, epsilon * (1 - 1e-9), adjacency) > delta * (1 - 1e-9)


@settings(max_examples=60)
@given(event_lists, st.floats(0, 8), adjacencies)
def test_epsilon_of_delta_of_epsilon_is_no_more(events, epsilon, adjacency):
    delta = delta_at(events, epsilon, adjacency) * (1 + 1e-12)  # no equality of floats is asked for
    if 0 < delta < 1:
        assert epsilon_at(events, delta, adjacency) <= epsilon * (1 + 1e-9) + 1e-12


@settings(max_examples=60)
@given(event_lists, closed, st.floats(0, 20), st.floats(0, 5), deltas, adjacencies)
def test_delta_falls_with_epsilon_and_grows_with_events(
    events, extra, epsilon, step, target, adjacency
):
    delta = delta_at(events, epsilon, adjacency)
    tiny = 1e-12 * delta + 1e-18
    assert 0 <= delta <= 1
    assert delta_at(events, epsilon + step, adjacency) <= delta + tiny
    assert delta_at([*events, extra], epsilon, adjacency) >= delta - tiny
    assert (
        delta_at(events, epsilon, "replace-one") >= delta_at(events, epsilon, "add-remove") - tiny
    )
    before = epsilon_at(events, target, adjacency)
    assert epsilon_at([*events, extra], target, adjacency) >= before * (1 - 1e-9)


@pytest.mark.slow
@settings(max_examples=12)
@given(sampled, event_lists, st.one_of(closed, sums, chosen), st.floats(0, 4), adjacencies)
def test_on_the_grid_too_delta_falls_with_epsilon_and_grows_with_events(
    first, others, extra, epsilon, adjacency
):
    """On the coarse grid, whose care differs with the shape of what is on it, by less than 1e-8."""
    events = [first, *others]
    total, more = tally(events, adjacency), tally([*events, extra], adjacency)
    if more.mu > 4 or sum(e * n for e, n in more.shifts) > 12:
        return  # losses of hundreds: a long grid, and nobody's budget
    delta = total.delta(epsilon, COARSE)
    assert 0 <= delta <= 1
    if total.slack == 0:
        assert total.delta(epsilon + 0.5, COARSE) <= delta + 1e-15
    assert more.delta(epsilon, COARSE) >= delta - 1e-8
    twice = total.add(*first)
    assert twice.delta(epsilon, COARSE) >= delta - 1e-8
    without = tally(others, adjacency)  # in closed form: the grid is never below that
    assert delta >= without.delta(epsilon) - 1e-15


def test_epsilon_on_the_grid_is_the_smallest_that_fits():
    total = tally(
        [(GaussianSum(9.0, "", 1e-13, rate=0.2), 40), LaplaceCounts(0.1, "")], "add-remove"
    )
    epsilon = total.epsilon(1e-6)
    assert total.delta(epsilon) <= 1e-6 < total.delta(epsilon - 1e-6)
    assert total.epsilon(total.delta(0.4)) <= 0.4 + 1e-9
    assert total.epsilon(1e-12) == math.inf
    assert total.epsilon(0.9) == 0


def test_delta_falls_with_epsilon_even_where_slack_grows():
    total = tally([(GaussianSum(2.0, "", 1e-9, rate=0.1), 20)], "add-remove")
    found = [total.delta(epsilon, COARSE) for epsilon in np.arange(0.0, 30.0)]
    assert (np.diff(found) <= 1e-15).all()


@pytest.mark.slow
@settings(max_examples=40)
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


# Sampled sums ---------------------------------------------------------------------------------

PLANS = {
    "one record": ("add-remove", {"rate": 0.1, "steps": 50}, []),
    "replaced": ("replace-one", {"rate": 0.3, "steps": 20}, []),
    "three records": ("add-remove", {"rate": 0.1, "steps": 20, "person": Person(3)}, []),
    "together": ("add-remove", {"rate": 0.1, "steps": 20, "person": Person(2, True)}, []),
    "beside counts": ("replace-one", {"rate": 0.2, "steps": 10}, [LaplaceCounts(0.1, "")]),
    "with slack": ("add-remove", {"rate": 0.1, "steps": 50, "slack": 1e-9}, []),
    "everybody": ("add-remove", {"rate": 1.0, "steps": 50, "person": Person(2)}, []),
}


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("rate", [0.05, 1.0])
def test_noise_is_divided_by_as_much_as_the_budget_allows(adjacency, rate):
    events = [(GaussianSum(9.0, "a", rate=rate), 20), (GaussianSum(6.0, "b"), 1)]
    counts = [(LaplaceCounts(0.1, "c"), 1)]

    def cost(factor):
        quieter = [(replace(e, noise_multiplier=e.noise_multiplier / factor), k) for e, k in events]
        return epsilon_at([*quieter, *counts], 1e-4, adjacency)

    factor = calibrate_scale(1.5, 1e-4, adjacency, events, counts)
    assert cost(factor) <= 1.5 < cost(factor * 1.002)
    assert calibrate_scale(0.05, 1e-9, adjacency, events, counts) == 0.0


@pytest.mark.slow
def test_noise_of_chosen_times_is_divided_too():
    event = ChosenTimes(0.5, GaussianSum(1.0, "a", rate=0.1), 10, "chosen")
    factor = calibrate_scale(1.0, 1e-4, "add-remove", [event])
    quieter = replace(event, release=replace(event.release, noise_multiplier=1 / factor))
    assert 0.99 < epsilon_at([quieter], 1e-4, "add-remove") <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("adjacency", "plan", "others"), PLANS.values(), ids=PLANS)
def test_calibrated_noise_fits_and_a_little_less_does_not(adjacency, plan, others):
    z = calibrate_noise(1.0, 1e-5, adjacency, others=others, **plan)
    person, steps = plan.get("person", Person()), plan["steps"]

    def delta(z):
        full = GaussianSum(z, "", plan.get("slack", 0.0) / steps, *person)
        release = replace(full, rate=plan["rate"])
        return delta_at([*others, (release, steps)], 1.0, adjacency)

    assert delta(z) <= 1e-5 < delta(z * (1 - 2e-3))


@pytest.mark.slow
def test_sampling_buys_less_noise_and_records_need_more():
    def noise(**plan):
        return calibrate_noise(0.3, 1e-5, "add-remove", steps=5, **plan)

    everybody, some = noise(rate=1.0), noise(rate=0.2)
    assert 0.2 * everybody < some < everybody  # but not in proportion to the share
    apart, together = (noise(rate=0.2, person=Person(2, shared)) for shared in (False, True))
    assert some < apart < together < 2 * some


@pytest.mark.parametrize("delta", [1e-14, 1e-13])
def test_where_the_error_of_the_grid_is_more_than_delta_nothing_fits(delta):
    assert calibrate_noise(1.0, delta, "add-remove", steps=10, rate=0.1) == math.inf
    assert calibrate_noise(1.0, delta, "add-remove", steps=10) < math.inf


def test_much_noise_beside_sampled_sums_is_accounted_for():
    """A full sum of mu = 25 beside them: delta is 1 at zero and falls only at hundreds."""
    total = tally([(GaussianSum(3.0, "", rate=0.1), 10), GaussianSum(1 / 25, "")], "add-remove")
    grid = 10 * COARSE
    assert total.delta(0.0, grid) == pytest.approx(1)
    exact = float(gaussian_delta(312.5, 25.0))
    assert exact <= total.delta(312.5, grid) <= exact + 0.05
    assert total.delta(512.0, grid) < 1e-9


@pytest.mark.slow
def test_a_full_sum_can_be_calibrated_beside_sampled_ones():
    others = [(GaussianSum(20.0, "", rate=0.1), 20)]
    largest = calibrate_gaussian(1.0, 1e-5, "add-remove", others)
    assert 0 < largest < calibrate_gaussian(1.0, 1e-5, "add-remove")
    for size, fits in ((largest, True), (1.001 * largest, False)):
        total = tally([*others, GaussianSum(1 / size, "")], "add-remove")
        assert (total.delta(1.0) <= 1e-5) == fits


def test_the_central_limit_is_the_chi_square_divergence_of_a_step():
    """mu^2 = K int (P - Q)^2 / Q of P = (1 - q) N(0, z^2) + q N(1, z^2) from Q = N(0, z^2)."""
    q, z, steps = 0.3, 1.3, 7
    x = np.linspace(-14, 14, 20_001) * z
    none, one = (np.exp(-(((x - c) / z) ** 2) / 2) / (z * math.sqrt(2 * math.pi)) for c in (0, 1))
    with np.errstate(under="ignore"):
        divergence = np.trapezoid(q**2 * (one - none) ** 2 / none, x)
    assert clt_mu(z, q, steps) == pytest.approx(math.sqrt(steps * divergence), rel=1e-9)


# Opaque events --------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 7, 30])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-6), (0.05, 0.0), (1.0, 1e-3)])
def test_opaque_events_compose_as_kairouz_oh_and_viswanath_prove(epsilon, delta, k):
    """k-fold (e, d): ((k - 2 i) e, 1 - (1 - d)^k (1 - d_i)) for all i <= k / 2, and no better."""
    for i in range(k // 2 + 1):
        below = sum(
            math.comb(k, j) * (math.exp((k - j) * epsilon) - math.exp((k - 2 * i + j) * epsilon))
            for j in range(i)
        )
        d_i = below / (1 + math.exp(epsilon)) ** k
        exact = 1 - (1 - delta) ** k * (1 - d_i)
        ours = delta_at([(Opaque(epsilon, delta, ""), k)], (k - 2 * i) * epsilon, "add-remove")
        assert ours == pytest.approx(exact, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-6, 1e-9, 1e-17, 1e-300])
def test_one_opaque_event_is_what_it_says_however_small_its_delta(delta):
    event = Opaque(1.0, delta, "")
    assert epsilon_at([event], delta, "add-remove") == 1.0
    assert epsilon_at([event], delta * (1 - 1e-9), "add-remove") == math.inf
    assert epsilon_at([event], 0.0, "add-remove") == math.inf
    many = delta_at([(event, 50)], 50.0, "add-remove")
    assert min(50 * delta, 1) * 0.97 <= many <= 50 * delta


def test_the_rest_of_delta_after_an_opaque_event_is_used():
    """9e-6 of 9.001e-6 is gone: a large epsilon reaches the rest, and none reaches all."""
    events = [Opaque(1.0, 9e-6, ""), GaussianSum(5.0, "")]
    epsilon = epsilon_at(events, 9.001e-6, "add-remove")
    assert 2.0 < epsilon < 2.2
    assert delta_at(events, epsilon, "add-remove") <= 9.001e-6
    assert epsilon_at(events, 9e-6, "add-remove") == math.inf
    assert delta_at(events, 9.0, "add-remove") > 9e-6  # by one float, though it is far less


def test_a_guarantee_for_replacing_is_none_for_adding():
    assert epsilon_at([Opaque(0.1, 0.0, "", "replace-one")], 0.5, "add-remove") == math.inf
    assert epsilon_at([Opaque(0.1, 0.0, "")], 0.0, "replace-one") == pytest.approx(0.2)


# Attackers ------------------------------------------------------------------------------------

FALSE_ALARMS = np.array([0.0, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0])


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_the_best_attack_on_gaussian_sums_is_known(mu):
    """Phi(Phi^-1(a) + mu); the bound is never below it, and above by little."""
    exact = ndtr(ndtri(FALSE_ALARMS) + mu)
    found = tally([GaussianSum(1 / mu, "")], "add-remove").true_positive_rates(FALSE_ALARMS)
    assert (found >= exact - 1e-12).all()
    np.testing.assert_allclose(found, exact, atol=2e-3)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_the_best_attack_on_randomised_response_is_known(epsilon):
    """min(e^eps a, 1 - e^-eps (1 - a)), exactly."""
    growth = math.exp(epsilon)
    exact = np.minimum(growth * FALSE_ALARMS, 1 - (1 - FALSE_ALARMS) / growth)
    for event in (LaplaceCounts(epsilon, ""), Opaque(epsilon, 0.0, "")):
        found = tally([event], "add-remove").true_positive_rates(FALSE_ALARMS)
        np.testing.assert_allclose(found, exact, atol=1e-12)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_attack_on_a_sampled_sum_beats_the_bound(adjacency):
    """All thresholds on the released number, both ways round."""
    q, z = 0.3, 5.0
    t = np.linspace(-8, 8, 200)

    def above(centre):
        return (1 - q) * ndtr(-t) + q * ndtr(centre / z - t)

    present, other = above(1), above(-1) if adjacency == "replace-one" else ndtr(-t)
    total = tally([GaussianSum(z, "", rate=q)], adjacency)
    for alarms, hits in [(other, present), (1 - present, 1 - other)]:
        bound = total.true_positive_rates(alarms)
        assert (hits <= bound + 1e-9).all()
        assert np.abs(hits - bound).max() < 5e-3


def test_advantage_is_the_total_variation_distance():
    gaussian = tally([GaussianSum(2.0, "")], "add-remove")
    assert gaussian.delta(0.0) == pytest.approx(2 * ndtr(0.25) - 1)
    counts = tally([LaplaceCounts(0.8, "")], "add-remove")
    assert counts.delta(0.0) == pytest.approx(math.tanh(0.4))
    some = tally([GaussianSum(2.0, "", rate=0.3)], "add-remove")
    assert some.delta(0.0) == pytest.approx(0.3 * (2 * ndtr(0.25) - 1), rel=1e-4)


# Tallies --------------------------------------------------------------------------------------


def test_scaling_a_tally_is_dividing_its_noise():
    def of(f):
        step = GaussianSum(6.0 / f, "", 1e-9, rate=0.1)
        return tally(
            [
                GaussianSum(4.0 / f, ""),
                (LaplaceCounts(0.2 * f, "", records=2), 3),
                (step, 20),
                ChosenTimes(0.5, step, 4, ""),
            ],
            "replace-one",
        )

    one, scaled = of(1.0), of(1.0).scaled(1.5)
    assert one.scaled(1.0) == one
    assert scaled.mu_squared == pytest.approx(of(1.5).mu_squared)
    np.testing.assert_allclose(scaled.shifts, of(1.5).shifts)
    assert scaled.sampled == of(1.5).sampled
    assert scaled.slack == one.slack == pytest.approx(24e-9)
    assert scaled.delta(2.0, COARSE) > one.delta(2.0, COARSE)


def test_events_with_equal_losses_are_tallied_together_whatever_their_names():
    a, b = (GaussianSum(5.0, name, slack, rate=0.1) for name, slack in (("a", 1e-12), ("b", 0.0)))
    total = tally([(a, 3), b, (a, 2)], "add-remove")
    assert total.sampled == ((SampledPair(5.0, 0.1, 1, False, "add-remove"), 6),)
    assert total.slack == pytest.approx(5e-12)
    assert total.gdp_mu is None
    assert tally([a], "add-remove").gdp_mu is None


@pytest.mark.parametrize("times", [0, -1])
def test_nothing_can_be_taken_back(times):
    """A negative number of events would be a refund."""
    for event in (GaussianSum(2.0, ""), LaplaceCounts(1.0, ""), GaussianSum(2.0, "", rate=0.5)):
        with pytest.raises(InputError, match="at least once"):
            tally([(event, times)], "add-remove")


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


# How long it would take -----------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 11, 500, 501])
def test_binomials_one_from_the_other_are_those_of_the_formula(n):
    epsilon, i = 0.3, np.arange(n + 1)
    losses, chances, largest = accounting._laplace_losses(((epsilon, n),))
    exact = np.array([math.comb(n, int(k)) for k in i], dtype=float)
    exact *= np.exp(-epsilon * i) / (1 + math.exp(-epsilon)) ** n
    np.testing.assert_allclose(chances, exact, rtol=1e-10)
    np.testing.assert_allclose(losses, (n - 2 * i) * epsilon)
    assert largest == n * Fraction(epsilon)


MODEST = {
    "a fit by counts": [LaplaceCounts(0.05, "few"), LaplaceCounts(0.8, "many")],
    "of people with 1,000 records": [LaplaceCounts(e, "x", 0.0, 1000) for e in (1e-3, 2e-3, 3e-3)],
    "2,000 steps": [(GaussianSum(100.0, "step"), 2000)],
    "sampled steps": [(GaussianSum(2.0, "step", rate=0.1), 2000), LaplaceCounts(0.1, "x")],
    "few sampled records": [(GaussianSum(0.79, "step", rate=0.01), 250)],
    "sampled records together": [(GaussianSum(6.39, "step", 0.0, 10, True, 0.1), 100)],
}
NOT_MODEST = {
    "many counts of many kinds": [(LaplaceCounts(e / 10, "x"), 20_000) for e in range(1, 9)],
    "endless counts": [(LaplaceCounts(0.1, "x"), 10**9)],
    "endless sampled steps": [(GaussianSum(2.0, "step", rate=0.1), 10**9)],
    "sampled steps without noise": [GaussianSum(1e-3, "step", rate=0.1)],
    "endless records": [GaussianSum(1e9, "step", 0.0, 10**6, True, 0.1)],
    "endless chosen steps": [ChosenTimes(0.5, GaussianSum(2.0, "step", rate=0.1), 10**9, "x")],
    "a grid beside many losses": [GaussianSum(2.0, "x", rate=0.1), (LaplaceCounts(1.0, "x"), 3000)],
}


@pytest.mark.parametrize("name", [*MODEST, *NOT_MODEST])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_what_a_fit_releases_is_modest_and_what_takes_hours_is_not(name, adjacency):
    total = tally({**MODEST, **NOT_MODEST}[name], adjacency)
    assert accounting.is_modest(total) == (name in MODEST)


@pytest.mark.parametrize("epsilons", [[0.1] * 10, [0.1, 0.2, 0.3], [1 / 3] * 3, [2.0**-60, 1.0]])
def test_without_delta_the_sum_is_exact_and_rounded_up(epsilons):
    """Of floats, the rationals they are: a sum that was rounded down would promise too much."""
    exact = sum(map(Fraction, epsilons))
    total = tally([LaplaceCounts(epsilon, "") for epsilon in epsilons], "add-remove")
    epsilon = total.epsilon(0.0)
    assert exact <= Fraction(epsilon)
    assert Fraction(math.nextafter(epsilon, 0)) < exact
    assert total.delta(epsilon) == 0 < total.delta(math.nextafter(epsilon, 0))


SAMPLED = ((SampledPair.of(GaussianSum(5.0, "", rate=0.1), "add-remove"), 1),)


@pytest.mark.parametrize(
    ("parts", "modest"),
    [
        ({"shifts": ((0.1, 55_400),)}, True),  # t^2 / 64 of 48 million
        ({"shifts": ((0.1, 55_450),)}, False),
        ({"shifts": ((0.1, 4000), (0.2, 1400))}, True),  # losses of both, up to 6 million
        ({"shifts": ((0.1, 4000), (0.2, 1600))}, False),
        ({"mu_squared": 25.0**2, "shifts": ((1.0, 1),), "sampled": SAMPLED}, True),
        ({"mu_squared": 26.5**2, "shifts": ((1.0, 1),), "sampled": SAMPLED}, False),
        ({"shifts": ((190.0, 2),), "sampled": SAMPLED}, True),  # three losses times 4e4 * 400
        ({"shifts": ((210.0, 2),), "sampled": SAMPLED}, False),
        ({"mu_squared": 1e6, "sampled": SAMPLED}, True),  # a grid ends at a loss of a thousand
    ],
)
def test_what_is_modest_has_a_border(parts, modest):
    assert accounting.is_modest(accounting.Tally("add-remove", **parts)) == modest


def test_rounding_of_the_closed_form_is_charged_for_every_response():
    total = tally([(LaplaceCounts(0.1, ""), 100), (LaplaceCounts(0.2, ""), 7)], "replace-one")
    assert total.closed_error == (64 + 4 * 214) * 2.0**-52


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
@pytest.mark.parametrize(
    "parts",
    [
        {"mu_squared": 1.0, "shifts": ((0.3, 4),), "revealed": 0.2, "slack": 1e-3},
        {"mu_squared": 0.3, "shifts": ((1.5, 1),), "revealed": 0.9, "slack": 1e-2},
    ],
)
def test_slack_is_charged_where_it_costs_least(parts, epsilon):
    total = accounting.Tally("add-remove", **parts)
    least = min(total._at(one) for one in np.linspace(0, epsilon, 301).tolist())
    assert total.delta(epsilon) <= least * (1 + 1e-4)


def test_delta_is_a_chance():
    assert accounting.Tally("add-remove", slack=0.9).delta(0.0) == 1


def test_the_bound_on_attacks_is_a_chance_however_little_is_protected():
    some = (GaussianSum(1.0, ""), GaussianSum(0.02, ""), Opaque(0.1, 0.01, ""))
    for event in (*some, LaplaceCounts(1000.0, "")):
        found = tally([event], "add-remove").true_positive_rates(FALSE_ALARMS)
        assert np.isfinite(found).all()
        assert ((found >= FALSE_ALARMS) & (found <= 1)).all()
    assert found[1] == 1


@pytest.mark.parametrize(
    "counts",
    [
        ((1.34, 3), (2.6, 4), (2.71, 2), (2.8, 1)),
        ((0.64, 5), (0.98, 1), (1.38, 3), (1.4, 1), (1.94, 2)),
    ],
)
def test_without_delta_losses_that_rounding_has_raised_are_covered(counts):
    """Their sum in floats is above the exact one: where no epsilon covered it, nothing would."""
    total = accounting.Tally("add-remove", shifts=counts)
    exact = sum(n * Fraction(epsilon) for epsilon, n in counts)
    assert accounting._laplace_losses(counts)[0].max() > exact
    assert exact <= Fraction(total.epsilon(0.0)) <= exact * (1 + Fraction(1, 10**14))


@pytest.mark.parametrize("slack", [1e-9, 5e-324])
def test_slack_is_charged_where_it_costs_least_on_long_grids_too(slack, monkeypatch):
    """Where the grid ends at losses of which e^epsilon is beyond all floats."""
    total = tally([GaussianSum(5.0, "", slack, rate=0.1)], "add-remove")
    known = total.delta(1.0, COARSE)
    monkeypatch.setattr(accounting.Tally, "_enough", lambda self: 1000.0)
    accounting._turning_point.cache_clear()
    try:
        assert all(total.delta(epsilon, COARSE) <= known * (1 + 1e-3) for epsilon in (1.0, 50.0))
    finally:
        accounting._turning_point.cache_clear()
