"""Exact W2 against closed forms, and worth in people against real people."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj import metrics
from privtraj.errors import InputError


def cloud(n, d, seed):
    return np.random.default_rng(seed).standard_normal((n, d))


@settings(max_examples=30)
@given(st.integers(0, 99), st.lists(st.floats(-50, 50), min_size=1, max_size=4))
def test_a_translated_cloud_is_as_far_as_it_was_moved(seed, shift):
    x = cloud(12, len(shift), seed)
    distance = metrics.wasserstein2(x, x + np.array(shift))
    assert distance == pytest.approx(np.linalg.norm(shift), rel=1e-6, abs=1e-5)


@settings(max_examples=30)
@given(st.integers(0, 99), st.integers(1, 15), st.integers(1, 15), st.integers(1, 3))
def test_the_distance_is_symmetric_and_obeys_the_triangle(seed, n, k, d):
    x, y, z = cloud(n, d, seed), cloud(k, d, seed + 1), cloud(7, d, seed + 2)
    xy = metrics.wasserstein2(x, y)
    assert xy == pytest.approx(metrics.wasserstein2(y, x), rel=1e-7, abs=1e-9)
    assert xy <= metrics.wasserstein2(x, z) + metrics.wasserstein2(z, y) + 1e-9


def test_a_cloud_is_at_no_distance_from_itself_in_any_order():
    x = cloud(30, 3, 0)
    assert metrics.wasserstein2(x, x[::-1]) == pytest.approx(0.0, abs=1e-6)
    assert metrics.wasserstein2(x, np.repeat(x, 2, axis=0)) == pytest.approx(0.0, abs=1e-6)


@settings(max_examples=30)
@given(st.integers(0, 99), st.integers(1, 40))
def test_in_one_dimension_sorted_people_are_partners(seed, n):
    x, y = cloud(n, 1, seed), 3 + 2 * cloud(n, 1, seed + 1)
    expected = np.sqrt(np.mean((np.sort(x[:, 0]) - np.sort(y[:, 0])) ** 2))
    assert metrics.wasserstein2(x, y) == pytest.approx(expected, rel=1e-9)
    assert metrics.wasserstein2(x[:, 0], y[:, 0]) == pytest.approx(expected, rel=1e-9)


def test_gaussians_have_the_distance_of_bures():
    from scipy.stats import norm

    grid = norm.ppf((np.arange(300) + 0.5) / 300)
    distance = metrics.wasserstein2(1 + grid, -1 + 3 * grid)
    assert distance == pytest.approx(np.sqrt(2**2 + 2**2), rel=1e-2)


def test_the_squared_distance_is_the_square_and_times_are_averaged():
    x, y = cloud(9, 2, 0), cloud(5, 2, 1)
    square = metrics.squared_wasserstein2(x, y)
    assert square == pytest.approx(metrics.wasserstein2(x, y) ** 2)
    average = metrics.average_squared_w2([x, x], [y, x])
    assert average == pytest.approx(square / 2)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.zeros((3, 2)), np.zeros((3, 1))),
        (np.empty((0, 2)), np.zeros((3, 2))),
        (np.full((3, 2), np.nan), np.zeros((3, 2))),
        (np.zeros((3, 2, 1)), np.zeros((3, 2))),
    ],
)
def test_clouds_that_cannot_be_compared_are_refused(a, b):
    with pytest.raises(InputError):
        metrics.wasserstein2(a, b)


def test_different_numbers_of_times_are_refused():
    with pytest.raises(InputError):
        metrics.average_squared_w2(np.zeros((2, 3, 1)), np.zeros((3, 3, 1)))


# Worth ----------------------------------------------------------------------------------------


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
