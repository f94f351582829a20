"""Exact transport, paths, a time left out and the classifier: closed forms, oracles, and what a
distance obeys."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj import metrics
from privtraj.base.errors import InputError

each_distance = pytest.mark.parametrize("distance", [metrics.wasserstein1, metrics.wasserstein2])
STEP = np.array([3.0, 4.0])


def cloud(n, d, seed):
    return np.random.default_rng(seed).standard_normal((n, d))


# What every distance obeys --------------------------------------------------------------------


@each_distance
@settings(max_examples=25)
@given(st.integers(0, 99), st.integers(1, 15), st.integers(1, 15), st.integers(1, 3))
def test_symmetric_obeys_the_triangle_and_sees_no_order(distance, seed, n, k, d):
    x, y, z = cloud(n, d, seed), cloud(k, d, seed + 1), cloud(7, d, seed + 2)
    xy = distance(x, y)
    assert xy == pytest.approx(distance(y, x), rel=1e-7, abs=1e-7)
    assert xy == pytest.approx(distance(x[::-1], np.roll(y, 1, axis=0)), rel=1e-7, abs=1e-7)
    assert xy <= distance(x, z) + distance(z, y) + 1e-7


@each_distance
@settings(max_examples=25)
@given(st.integers(0, 99), st.integers(1, 20), st.integers(1, 4))
def test_a_cloud_is_at_no_distance_from_itself_in_any_order(distance, seed, n, d):
    x = cloud(n, d, seed)
    assert distance(x, x[::-1]) == pytest.approx(0.0, abs=1e-6)
    assert distance(x, np.repeat(x, 2, axis=0)) == pytest.approx(0.0, abs=1e-6)
    assert distance(x, x + 0.1) > 0.01


@settings(max_examples=30)
@given(st.integers(0, 99), st.lists(st.floats(-50, 50), min_size=1, max_size=4))
def test_a_translated_cloud_is_as_far_as_it_was_moved(seed, shift):
    x = cloud(12, len(shift), seed)
    y, far = x + np.array(shift), np.linalg.norm(shift)
    assert metrics.wasserstein1(x, y) == pytest.approx(far, rel=1e-6, abs=1e-5)
    assert metrics.wasserstein2(x, y) == pytest.approx(far, rel=1e-6, abs=1e-5)


# Exact transport ------------------------------------------------------------------------------


@settings(max_examples=20)
@given(st.integers(0, 99), st.integers(2, 12), st.integers(1, 3))
def test_stretching_is_optimal_transport(seed, n, d):
    x, factor = cloud(n, d, seed), np.arange(2, d + 2)  # a convex map, so nobody should swap
    expected = np.sqrt(np.mean(((factor - 1) ** 2 * x**2).sum(axis=1)))
    assert metrics.wasserstein2(x, factor * x) == pytest.approx(expected, rel=1e-9)
    assert metrics.wasserstein1(x, factor * x) <= expected


def test_people_on_a_grid_are_merged_and_the_distance_stays_the_same():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 3, (40, 2)), rng.integers(0, 3, (30, 2))
    nudged = x + 1e-9 * rng.standard_normal(x.shape)  # no two alike any more
    assert metrics.wasserstein2(x, y) == pytest.approx(metrics.wasserstein2(nudged, y), abs=1e-6)


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


# Mistakes -------------------------------------------------------------------------------------


@each_distance
@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.zeros((3, 2)), np.zeros((3, 1))),
        (np.empty((0, 2)), np.zeros((3, 2))),
        (np.full((3, 2), np.nan), np.zeros((3, 2))),
        (np.zeros((3, 2, 1)), np.zeros((3, 2))),
    ],
)
def test_clouds_that_cannot_be_compared_are_refused(distance, a, b):
    with pytest.raises(InputError):
        distance(a, b)


def test_different_numbers_of_times_are_refused():
    with pytest.raises(InputError):
        metrics.average_squared_w2(np.zeros((2, 3, 1)), np.zeros((3, 3, 1)))


def test_many_cores_say_what_one_says(monkeypatch):
    rng = np.random.default_rng(0)
    clouds, truth = (list(rng.random((6, 40, 2))) for _ in range(2))
    many = metrics.cloud_scores(clouds, truth)
    monkeypatch.setattr("privtraj.metrics.registry.os.cpu_count", lambda: 1)
    assert metrics.cloud_scores(clouds, truth) == many
    alone = [metrics.squared_wasserstein2(x, y) for x, y in zip(clouds, truth, strict=True)]
    assert metrics.squared_w2_per_time(clouds, truth).tolist() == alone


# Whole paths -----------------------------------------------------------------------------------


def wander(n, times, d, seed):
    return np.random.default_rng(seed).standard_normal((n, times, d)).cumsum(axis=1)


def branches(n, seed):
    """Half of the people go up, half go down, and each stays on its branch."""
    rng = np.random.default_rng(seed)
    side = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None, None]
    return side + 0.05 * rng.standard_normal((n, 4, 1))


@settings(max_examples=20)
@given(st.integers(0, 99), st.integers(1, 10), st.integers(1, 5), st.integers(1, 3))
def test_paths_have_a_distance(seed, n, times, d):
    x, y, z = (wander(k, times, d, seed + k) for k in (n, 6, 7))
    xy = metrics.path_wasserstein2(x, y)
    assert xy == pytest.approx(metrics.path_wasserstein2(y[::-1], x), rel=1e-7, abs=1e-7)
    assert xy <= metrics.path_wasserstein2(x, z) + metrics.path_wasserstein2(z, y) + 1e-7
    assert metrics.path_wasserstein2(x, x[::-1]) == pytest.approx(0, abs=1e-6)
    marginal = metrics.average_squared_w2(x.swapaxes(0, 1), y.swapaxes(0, 1))
    assert xy >= np.sqrt(marginal) - 1e-7


@pytest.mark.parametrize("times", [1, 2, 9])
def test_a_shift_counts_the_same_for_any_number_of_times(times):
    x = wander(8, times, 2, 0)
    assert metrics.path_wasserstein2(x, x + np.array([3.0, 4.0])) == pytest.approx(5.0)


def test_one_time_is_the_distance_of_clouds_and_one_feature_needs_no_axis():
    x, y = wander(5, 1, 2, 0), wander(7, 1, 2, 1)
    assert metrics.path_wasserstein2(x, y) == pytest.approx(metrics.wasserstein2(x[:, 0], y[:, 0]))
    x, y = wander(5, 3, 1, 0), wander(7, 3, 1, 1)
    flat = metrics.path_wasserstein2(x[:, :, 0], y[:, :, 0])
    assert flat == metrics.path_wasserstein2(x, y)


def test_random_coupling_keeps_every_marginal_and_no_path():
    x = wander(200, 4, 2, 0)
    mixed = metrics.randomly_coupled(x, seed=1)
    for i in range(4):
        np.testing.assert_array_equal(np.sort(mixed[:, i], axis=0), np.sort(x[:, i], axis=0))
    assert abs(np.corrcoef(mixed[:, 2, 0], mixed[:, 3, 0])[0, 1]) < 0.2
    assert np.corrcoef(x[:, 2, 0], x[:, 3, 0])[0, 1] > 0.7


@pytest.mark.parametrize("fresh", [True, False])
def test_the_line_of_paths_isolates_the_coupling(fresh):
    """Its gap is 0 for true paths, 1 for true marginals coupled at random."""
    truth, others = branches(200, 0), branches(200, 1) if fresh else None
    crowds = branches(150, 2), metrics.randomly_coupled(branches(150, 2))
    right, wrong = (metrics.path_scores(crowd, truth, fresh=others)[0] for crowd in crowds)
    assert (right.name, wrong.floor) == ("path_w2", right.floor)
    assert right.gap < 0.1
    assert wrong.gap > 0.9
    assert right.floor < 0.6 * right.ceiling


@pytest.mark.parametrize("shape", [(4, 2, 2), (4, 3, 1), (0, 3, 2), (4,), (1, 1, 1, 1)])
def test_paths_that_cannot_be_compared_are_refused(shape):
    with pytest.raises(InputError):
        metrics.path_wasserstein2(np.zeros(shape), np.zeros((4, 3, 2)))


def test_not_a_number_is_refused():
    with pytest.raises(InputError, match="finite"):
        metrics.path_wasserstein2(np.full((2, 2, 2), np.nan), np.zeros((2, 2, 2)))
