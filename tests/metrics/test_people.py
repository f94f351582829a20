"""Worth in people, against real people."""

import numpy as np
import pytest

from privtraj import metrics
from privtraj.errors import InputError
from privtraj.metrics.people import Panels


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
    assert metrics.worth(truth, truth) == 200.0


def test_more_real_people_make_smaller_errors(truth):
    errors = [metrics.real_people_error(truth, n, repeats=2) for n in (2, 20, 200)]
    assert errors[0] > errors[1] > errors[2] > 0


# The interval ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def panels(truth):
    return Panels(truth, 10, 3)


@pytest.mark.slow
def test_the_interval_holds_the_true_number_of_real_people_nearly_always(truth, panels):
    errors = [metrics.average_squared_w2(people(truth, 20, s), truth) for s in range(40, 70)]
    found = [panels.interval(error, 0.9) for error in errors]
    covered = np.mean([w.low <= 20 <= w.high for w in found])
    assert covered >= 0.8
    assert all(w.low <= w.people <= w.high for w in found)
    assert np.median([w.high / w.low for w in found]) < 3  # and it says something


def test_more_certainty_takes_a_wider_interval(panels):
    error = float(np.mean(panels.errors(20)))
    narrow, wide = (panels.interval(error, level) for level in (0.5, 0.99))
    assert wide.low < narrow.low <= 20 <= narrow.high < wide.high
    assert narrow.people == pytest.approx(20)


def test_the_interval_agrees_with_worth_and_reads_as_a_number(truth):
    few = [y[:60] for y in truth]
    crowd = people(few, 12, 1)
    found = metrics.worth_interval(crowd, few, repeats=4)
    assert float(found) == metrics.worth(crowd, few) == found.to_dict()["people"]
    assert found.error == metrics.average_squared_w2(crowd, few)
    assert found.most == 20


@pytest.mark.slow
def test_the_ends_of_the_ladder(truth, panels):
    awful = panels.interval(1e3, 0.95)
    assert (awful.low, awful.people, awful.high) == (0.0, 0.0, 0.0)
    perfect = panels.interval(0.0, 0.95)
    assert (perfect.low, perfect.people, perfect.high) == (200.0, 200.0, 200.0)
    assert perfect.most == 200


@pytest.mark.parametrize("options", [{"repeats": 0}, {"repeats": 1}, {"level": 1.0}, {"level": 0}])
def test_intervals_that_cannot_be_are_refused(truth, options):
    with pytest.raises(InputError):
        metrics.worth_interval([y[:2] for y in truth], [y[:5] for y in truth], **options)
