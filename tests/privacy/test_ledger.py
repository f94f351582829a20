"""The ledger refuses without a trace, counts without drift, and never pays back."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.base.errors import BudgetError, InputError
from privtraj.privacy import ledger as ledger_module
from privtraj.privacy.accounting import COARSE, FINE, epsilon_at, tally
from privtraj.privacy.events import ChosenTimes, GaussianSum, LaplaceCounts, Opaque
from privtraj.privacy.ledger import (
    Allowance,
    Ledger,
    calibrate_gaussian,
    calibrate_laplace,
    calibrate_scale,
    down,
    up,
)

ADJACENCIES = ["add-remove", "replace-one"]

records = st.integers(1, 3)
events = st.one_of(
    st.builds(
        GaussianSum,
        st.floats(1, 50),
        st.just("sum"),
        st.sampled_from([0.0, 1e-9]),
        records,
    ),
    st.builds(LaplaceCounts, st.floats(0.01, 1), st.just("counts"), st.just(0.0), records),
    st.builds(Opaque, st.floats(0.01, 0.5), st.sampled_from([0.0, 1e-8]), st.just("elsewhere")),
)


def test_refuses_beyond_the_budget_and_leaves_no_trace():
    ledger = Ledger(1.0, 1e-5)
    ledger.spend(GaussianSum(10.0, "first"))
    before = (ledger.events, ledger.spent(), ledger.tally, ledger.tally.slack)
    assert not ledger.covers(GaussianSum(1.0, "greedy"))
    with pytest.raises(BudgetError, match=r"'greedy'.*epsilon 0.\d+ of 1 is spent"):
        ledger.spend(GaussianSum(1.0, "greedy"))
    assert (ledger.events, ledger.spent(), ledger.tally, ledger.tally.slack) == before
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
    with pytest.raises(BudgetError, match="epsilon 1 of 1 is spent"):
        ledger.spend(GaussianSum(math.sqrt(steps) / mu, "one too many"))


def test_pure_budget_takes_laplace_counts_only():
    ledger = Ledger(1.0, 0.0)
    with pytest.raises(BudgetError):
        ledger.spend(GaussianSum(1e6, "sum"))
    ledger.spend(LaplaceCounts(1.0, "counts"))
    assert ledger.spent() == 1.0
    with pytest.raises(BudgetError):
        Ledger(1.0, 0.0, "replace-one").spend(LaplaceCounts(0.6, "counts"))


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.lists(st.tuples(events, st.integers(1, 4)), max_size=10),
    st.floats(0.1, 8),
    st.sampled_from([1e-3, 1e-6]),
    st.sampled_from(ADJACENCIES),
)
def test_odometer_never_under_reports_and_never_runs_back(asked, epsilon, delta, adjacency):
    ledger, paid, read = Ledger(epsilon, delta, adjacency), [], 0.0
    for event, times in asked:
        covered = ledger.covers(event, times)
        try:
            ledger.spend(event, times)
            paid.append((event, times))
        except BudgetError:
            assert not covered
        else:
            assert covered
        assert ledger.spent() >= read * (1 - 1e-9)
        read = ledger.spent()
    assert ledger.events == tuple(paid)
    assert read >= epsilon_at(paid, delta, adjacency) * (1 - 1e-12)
    single = [event for event, times in paid for _ in range(times)]
    assert read == pytest.approx(epsilon_at(single, delta, adjacency), rel=1e-9, abs=1e-12)
    assert read <= epsilon


# Reserved and chosen --------------------------------------------------------------------------

STEP = GaussianSum(20.0, "step", 1e-14, rate=0.2)


def test_what_is_reserved_is_spent_whether_it_is_used_or_not():
    ledger = Ledger(1.0, 1e-5)
    allowance = ledger.reserve(STEP, 30)
    spent = ledger.spent()
    assert ledger.events == ((STEP, 30),)
    assert spent == epsilon_at([(STEP, 30)], 1e-5, "add-remove")
    for _ in range(30):
        allowance.spend(STEP)
    with pytest.raises(BudgetError, match="only 0 more of 'step'"):
        allowance.spend(STEP)
    assert ledger.events == ((STEP, 30),)
    assert ledger.tally.delta(spent) <= 1e-5


@pytest.mark.parametrize(
    "other",
    [
        LaplaceCounts(1e-3, "step"),
        Opaque(1e-3, 0.0, "step"),
        ChosenTimes(0.1, STEP, 1, "step"),
        *(replace(STEP, **change) for change in ({"what": "x"}, {"slack": 0.0}, {"rate": 0.1})),
        *(replace(STEP, **change) for change in ({"records": 2}, {"noise_multiplier": 20.5})),
    ],
    ids=repr,
)
def test_an_allowance_is_for_one_kind_of_release(other):
    """Even for less: what is paid for is what happens."""
    allowance = Allowance(STEP, 3)
    with pytest.raises(BudgetError, match="only 3 more"):
        allowance.spend(other)
    allowance.spend(STEP)
    with pytest.raises(BudgetError, match="only 2 more"):
        allowance.spend(other)


def test_chosen_times_are_recorded_as_one_event():
    ledger = Ledger(1.0, 1e-5)
    allowance = ledger.reserve(STEP, 30, share=0.5)
    assert ledger.events == ((ChosenTimes(0.5, STEP, 30, "step"), 1),)
    assert ledger.tally.slack == pytest.approx(30e-14)
    allowance.spend(STEP)
    assert ledger.tally.gdp_mu is None


def test_what_does_not_fit_is_not_reserved():
    ledger = Ledger(0.1, 1e-6)
    with pytest.raises(BudgetError, match="500"):
        ledger.reserve(STEP, 500)
    with pytest.raises(BudgetError, match="500"):
        ledger.reserve(STEP, 500, share=1.0)
    assert ledger.events == ()
    assert ledger.spent() == 0


@pytest.mark.parametrize("times", [0, -1, -1000])
def test_nothing_can_be_paid_back(times):
    ledger = Ledger(1.0, 1e-5)
    ledger.spend(GaussianSum(10.0, "first"))
    spent = ledger.spent()
    for ask in (ledger.spend, ledger.reserve):
        with pytest.raises(InputError, match="at least once"):
            ask(GaussianSum(10.0, "refund"), times)
    assert ledger.spent() == spent
    assert len(ledger.events) == 1


def test_every_kind_of_event_raises_what_is_spent():
    ledger, before = Ledger(5.0, 1e-4, "replace-one"), 0.0
    for event, times in [
        (GaussianSum(30.0, "sum"), 3),
        (LaplaceCounts(0.02, "counts", records=2), 1),
        (Opaque(0.05, 1e-6, "elsewhere"), 2),
        (GaussianSum(30.0, "sampled", rate=0.3), 10),
        (ChosenTimes(0.2, GaussianSum(30.0, "chosen"), 10, "chosen"), 1),
    ]:
        ledger.spend(event, times)
        spent = ledger.spent()
        assert spent > before + 1e-4
        before = spent


def test_rounding_is_always_the_careful_way():
    assert (up(1.23411), down(1.23419)) == ("1.235", "1.234")
    assert (up(0.3), down(0.3)) == ("0.3", "0.3")
    assert (up(1e-9), up(math.inf)) == ("1e-09", "inf")
    for value in np.random.default_rng(0).lognormal(0, 5, 200):
        assert float(down(value)) <= value <= float(up(value))


def test_bad_budgets_are_refused():
    for epsilon, delta, adjacency in [
        (0.0, 1e-5, "add-remove"),
        (1.0, 1.0, "add-remove"),
        (1.0, 1e-5, "unbounded"),
    ]:
        with pytest.raises(InputError):
            Ledger(epsilon, delta, adjacency)


def test_equal_steps_share_what_one_sum_may_spend():
    one = calibrate_gaussian(1.0, 1e-5, "add-remove")
    assert calibrate_gaussian(1.0, 1e-5, "add-remove", steps=4) == one / 2


@pytest.mark.parametrize("epsilon", [0.005, 0.3, 1.0, 8.0, 60.0])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_at_any_budget_a_little_more_than_what_is_calibrated_does_not_fit(epsilon, adjacency):
    def cost(event):
        return tally([event], adjacency).delta(epsilon)

    size = calibrate_gaussian(epsilon, 1e-5, adjacency)
    assert cost(GaussianSum(1 / size, "")) <= 1e-5 < cost(GaussianSum(0.9999 / size, ""))
    size = calibrate_laplace(epsilon, 1e-5, adjacency)
    assert cost(LaplaceCounts(size, "")) <= 1e-5 < cost(LaplaceCounts(1.0001 * size, ""))
    loud = GaussianSum(3.0, "")
    factor = calibrate_scale(epsilon, 1e-5, adjacency, [loud])
    assert cost(GaussianSum(3 / factor, "")) <= 1e-5
    assert factor == pytest.approx(3 * calibrate_gaussian(epsilon, 1e-5, adjacency), rel=1e-3)


# Searches on grids ----------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0.7, 1.3, 2.9997, 3.0, 50.0])
@pytest.mark.parametrize("careful", [1.0, 1 - 1e-4, 1 - 5e-3])
def test_the_largest_that_fits_is_found_and_none_beyond_the_most_is_tried(limit, careful):
    """The coarse grid is the more careful one."""
    asked = []

    def fits(size, interval):
        asked.append(size)
        assert len(asked) < 100, "the search has no end"
        return size <= limit * (careful if interval == COARSE else 1.0)

    found = ledger_module._largest_on_grids(fits, 1.0, 3.0)
    assert max(asked) <= 3.0
    assert fits(found, FINE)
    if limit >= 3.0 and careful == 1.0:
        assert found == 3.0
    elif careful > 0.999:
        assert found >= min(limit, 3.0) * (1 - 2.1e-4)


@pytest.fixture
def searched(monkeypatch):
    """Function: the least and the most noise that a search on grids is given of a calibration."""
    seen = []

    def largest(fits, start, most):
        seen[:] = start, most
        return start

    monkeypatch.setattr(ledger_module, "_largest_on_grids", largest)
    ledger_module._largest.cache_clear()
    yield lambda found: (found, *seen)
    ledger_module._largest.cache_clear()


@pytest.mark.parametrize(("z", "start"), [(2.0, 0.5), (40.0, 1.0)])
def test_noise_is_scaled_from_where_grids_are_short_to_where_they_are_millions(z, start, searched):
    some = [GaussianSum(z, "", rate=0.1), GaussianSum(9 * z, "", rate=0.2)]
    found, first, most = searched(calibrate_scale(1.0, 1e-5, "add-remove", some))
    assert (first, most) == (start, pytest.approx(z / 0.05))
    assert found == start * (1 - 1e-9)


def test_sums_of_hardly_any_noise_are_not_put_on_grids(searched):
    loud = {"epsilon": 5000.0, "delta": 0.5, "adjacency": "add-remove"}
    for how in ({"rate": 0.5}, {"others": [GaussianSum(20.0, "", rate=0.1)]}):
        _, first, most = searched(calibrate_gaussian(**loud, **how))
        assert first == most == pytest.approx(1 / 0.05)
    quiet = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "add-remove"}
    least = calibrate_gaussian(**quiet)
    _, first, most = searched(calibrate_gaussian(**quiet, rate=0.5))
    assert (first, most) == (least, pytest.approx(1 / 0.05))
    _, first, most = searched(calibrate_gaussian(**quiet, others=[GaussianSum(9.0, "", rate=0.1)]))
    assert first == most == least
