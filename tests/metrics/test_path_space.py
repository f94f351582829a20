"""Whole paths: the distance of paths, and what it says about the coupling alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj import metrics
from privtraj.base.errors import InputError


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
def test_the_score_isolates_the_coupling(fresh):
    truth, others = branches(200, 0), branches(200, 1) if fresh else None
    right = metrics.path_score(branches(150, 2), truth, fresh=others)
    wrong = metrics.path_score(metrics.randomly_coupled(branches(150, 2)), truth, fresh=others)
    assert right.coupling > 0.9
    assert wrong.coupling < 0.1
    assert wrong.floor == right.floor < 0.5 * right.ceiling
    assert wrong.marginal == pytest.approx(right.marginal, abs=0.2)
    assert right.marginal <= right.value
    assert right.to_dict()["coupling"] == right.coupling


def test_no_room_between_floor_and_ceiling_is_said():
    still = np.zeros((10, 3, 1))
    assert np.isnan(metrics.path_score(still, still, fresh=still).coupling)


@pytest.mark.parametrize("shape", [(4, 2, 2), (4, 3, 1), (0, 3, 2), (4,), (1, 1, 1, 1)])
def test_paths_that_cannot_be_compared_are_refused(shape):
    with pytest.raises(InputError):
        metrics.path_wasserstein2(np.zeros(shape), np.zeros((4, 3, 2)))


def test_not_a_number_and_one_single_path_are_refused():
    with pytest.raises(InputError, match="finite"):
        metrics.path_wasserstein2(np.full((2, 2, 2), np.nan), np.zeros((2, 2, 2)))
    with pytest.raises(InputError, match="halves"):
        metrics.path_score(np.zeros((3, 2, 1)), np.zeros((1, 2, 1)))
