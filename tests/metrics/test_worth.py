"""Worth in people, against real people."""

import numpy as np
import pytest

from privtraj import metrics
from privtraj.base.errors import InputError


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(5)
    return [0.5 + 0.15 * rng.standard_normal((500, 2)) + 0.1 * i for i in range(4)]


def people(truth, n, seed):
    rng = np.random.default_rng(seed)
    return [y[rng.choice(len(y), n, replace=False)] for y in truth]


@pytest.mark.parametrize("n", [20, 50])
def test_n_real_people_are_worth_about_n_people(truth, n):
    worths = [metrics.worth(people(truth, n, seed), truth) for seed in (100, 101)]
    assert n / 2 < np.mean(worths) < 2 * n


@pytest.mark.slow
def test_worth_grows_with_quality(truth):
    rng = np.random.default_rng(6)
    crowd = people(truth, 100, 7)
    scores = [
        metrics.worth([x + s * rng.standard_normal(x.shape) for x in crowd], truth)
        for s in (0.0, 0.1, 0.4)
    ]
    assert scores[0] > scores[1] > scores[2]


def test_something_worse_than_one_person_is_worth_nothing(truth):
    assert metrics.worth([x + 30 for x in truth], truth) == 0.0


def test_the_truth_itself_is_worth_the_largest_number_that_can_be_told(truth):
    assert metrics.worth(truth, truth) == 200.0  # half of the synthetic people


def test_more_real_people_make_smaller_errors(truth):
    errors = [metrics.real_people_error(truth, n, repeats=2) for n in (2, 20, 200)]
    assert errors[0] > errors[1] > errors[2] > 0


# The interval ---------------------------------------------------------------------------------


def crowd(n, seed, times=6):
    """Two groups that part, (times, n, 2)."""
    rng = np.random.default_rng(seed)
    side = rng.choice([-1.0, 1.0], (times, n, 1)) * np.linspace(0.05, 0.3, times)[:, None, None]
    return 0.5 + side + 0.06 * rng.standard_normal((times, n, 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("records", "n"),
    [(40, 10), (40, 100), pytest.param(300, 60, marks=pytest.mark.thorough)],
)
def test_the_interval_holds_the_true_number_of_people_nearly_always(records, n):
    """n real people are worth n, whether or not there are as many records to compare with. Of 12
    intervals of level .9, fewer than 8 hold the truth with a probability below one in 200."""
    found = [
        metrics.worth_interval(np.repeat(crowd(n, s), -(-400 // n), 1), crowd(records, 1000 + s))
        for s in range(12)
    ]
    assert sum(w.low <= n <= w.high for w in found) >= 8
    assert all(w.low <= w.people <= w.high for w in found)
    assert n / 2 < np.exp(np.log([max(w.people, 1) for w in found]).mean()) < 2 * n


def test_more_certainty_takes_a_wider_interval():
    few, truth = np.repeat(crowd(20, 1), 20, 1), crowd(200, 2)
    narrow, wide = (metrics.worth_interval(few, truth, level=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low <= narrow.people <= narrow.high < wide.high
    assert narrow.people == wide.people


def test_the_interval_agrees_with_worth_and_reads_as_a_number(truth):
    few = [y[:60] for y in truth]
    some = people(few, 12, 1)
    found = metrics.worth_interval(some, few)
    assert float(found) == metrics.worth(some, few) == found.people
    assert found.most == 20


def test_who_is_worth_more_than_there_are_records_is_told_by_synthetic_people():
    found = metrics.worth_interval(crowd(1000, 1), crowd(40, 2))
    assert found.people > 40
    assert found.most == 500


def test_the_ends_of_the_ladder():
    truth = crowd(200, 1)
    awful = metrics.worth_interval(crowd(50, 2) + 1e3, truth)
    assert (awful.low, awful.people, awful.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("level", [0, 1.0])
def test_intervals_that_cannot_be_are_refused(truth, level):
    with pytest.raises(InputError):
        metrics.worth_interval([y[:2] for y in truth], [y[:5] for y in truth], level=level)


def test_worth_needs_two_people_on_both_sides(truth):
    with pytest.raises(InputError, match="two people at each time"):
        metrics.worth([y[:1] for y in truth], truth)
