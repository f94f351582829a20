"""W1, W2, sliced W2 and energy distance against closed forms, oracles and what a distance obeys."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj import metrics
from privtraj.base.errors import InputError
from privtraj.metrics import transport
from privtraj.metrics.transport import quantile_partners

DISTANCES = [
    metrics.wasserstein1,
    metrics.wasserstein2,
    metrics.sliced_wasserstein2,
    metrics.energy_distance,
]
each_distance = pytest.mark.parametrize("distance", DISTANCES)


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
    slices = metrics.sliced_wasserstein2(x, y)
    assert slices == pytest.approx(far / np.sqrt(len(shift)), rel=1e-6, abs=1e-5)


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


# Large sets -----------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(0, 99), st.integers(1, 12), st.integers(1, 12), st.integers(1, 4))
def test_slices_never_exceed_their_share_of_w2(seed, n, k, d):
    x, y = cloud(n, d, seed), 1 + 2 * cloud(k, d, seed + 1)
    limit = metrics.wasserstein2(x, y) / np.sqrt(d)
    assert metrics.sliced_wasserstein2(x, y, directions=8) <= limit * (1 + 1e-9)
    if d == 1:
        assert metrics.sliced_wasserstein2(x, y) == pytest.approx(limit)


@settings(max_examples=40)
@given(st.integers(1, 30), st.integers(1, 30))
def test_quantiles_meet_with_all_their_mass(n, k):
    i, j, mass = quantile_partners(n, k)
    np.testing.assert_allclose(np.bincount(i, mass), np.full(n, 1 / n))
    np.testing.assert_allclose(np.bincount(j, mass), np.full(k, 1 / k))


def test_slices_of_gaussians_come_close_to_the_closed_form():
    x, y = cloud(4000, 3, 0), 2 * cloud(3000, 3, 1)
    assert metrics.sliced_wasserstein2(x, y) == pytest.approx(1.0, abs=0.06)


@settings(max_examples=25)
@given(st.integers(0, 99), st.integers(1, 20), st.integers(1, 20))
def test_energy_distance_is_scipys_on_a_line(seed, n, k):
    from scipy.stats import energy_distance

    x, y = cloud(n, 1, seed)[:, 0], 1 + cloud(k, 1, seed + 1)[:, 0]
    assert metrics.energy_distance(x, y) == pytest.approx(energy_distance(x, y), abs=1e-6)


def test_energy_distance_of_two_points():
    assert metrics.energy_distance([[0, 0]], [[3, 4]]) == pytest.approx(np.sqrt(2 * 5))


def test_little_memory_changes_nothing(monkeypatch):
    x, y = cloud(50, 3, 0), cloud(31, 3, 1)
    whole = metrics.sliced_wasserstein2(x, y), metrics.energy_distance(x, y)
    monkeypatch.setattr(transport, "ENTRIES", 200)
    parts = metrics.sliced_wasserstein2(x, y), metrics.energy_distance(x, y)
    assert parts == pytest.approx(whole)


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


def test_no_direction_is_refused():
    with pytest.raises(InputError):
        metrics.sliced_wasserstein2([0.0], [1.0], directions=0)


def test_different_numbers_of_times_are_refused():
    with pytest.raises(InputError):
        metrics.average_squared_w2(np.zeros((2, 3, 1)), np.zeros((3, 3, 1)))


def test_many_cores_say_what_one_says(monkeypatch):
    rng = np.random.default_rng(0)
    clouds, truth = (list(rng.random((6, 40, 2))) for _ in range(2))
    many = metrics.cloud_scores(clouds, truth)
    monkeypatch.setattr("privtraj.metrics.cores.os.cpu_count", lambda: 1)
    assert metrics.cloud_scores(clouds, truth) == many
    alone = [metrics.squared_wasserstein2(x, y) for x, y in zip(clouds, truth, strict=True)]
    assert metrics.squared_w2_per_time(clouds, truth).tolist() == alone
