"""From noisy counts to a measure: exact without noise, silent on noise alone, always finite."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privtraj.dynamics.histogram import estimate, pooled
from privtraj.privacy.noise import SeededSource, laplace_integers


def counts_of(points, side):
    """Exact counts (side ** d,) of points (n, d)."""
    d = points.shape[1]
    place = np.minimum((points * side).astype(int), side - 1)
    flat = np.ravel_multi_index(tuple(place.T), (side,) * d)
    return np.bincount(flat, minlength=side**d)


def noisy(exact, epsilon, seed):
    return exact + laplace_integers(SeededSource(seed), exact.shape, epsilon)


def mean_of(measure, i):
    return measure.weights[i] @ measure.centres[i]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_pooling_adds_up_blocks_of_two_cells_a_side(d):
    counts = np.random.default_rng(d).integers(-5, 50, size=(8,) * d).astype(float)
    coarse = pooled(counts)
    assert coarse.shape == (4,) * d
    assert coarse.sum() == counts.sum()
    for place in np.ndindex(*coarse.shape):
        block = tuple(slice(2 * p, 2 * p + 2) for p in place)
        assert coarse[place] == counts[block].sum()


@pytest.mark.parametrize(("d", "side"), [(1, 16), (2, 8), (3, 4)])
def test_without_noise_to_speak_of_the_cells_are_recovered_exactly(d, side):
    points = np.random.default_rng(0).beta(2, 5, size=(400, d))
    exact = counts_of(points, side)
    measure = estimate(exact[None], side, 50.0, np.array([400.0]), d)
    assert measure.sides[0] == 1 / side
    assert measure.believed[0] == pytest.approx(1.0)
    rebuilt = np.zeros((side,) * d)
    used = measure.weights[0] > 0
    for centre, weight in zip(measure.centres[0][used], measure.weights[0][used], strict=True):
        rebuilt[tuple((centre * side).astype(int))] += weight
    np.testing.assert_allclose(rebuilt.ravel(), exact / 400, atol=1e-12)


def test_noise_alone_is_almost_always_not_believed():
    times, side = 200, 16
    counts = noisy(np.zeros((times, side * side), dtype=np.int64), 1.0, seed=3)
    measure = estimate(counts, side, 1.0, np.full(times, 100.0), 2)
    silent = measure.believed == 0
    # false alarms are rare by design; most times must show none at all, and say so with the box
    assert silent.mean() > 0.6
    assert (measure.sides[silent] == 1.0).all()
    assert (np.count_nonzero(measure.weights[silent], axis=1) == 1).all()
    np.testing.assert_array_equal(measure.centres[silent][:, 0], 0.5)
    assert measure.believed.mean() < 0.1


def test_people_who_stand_out_are_found_in_noise():
    rng = np.random.default_rng(1)
    points = np.clip([0.3, 0.7] + 0.03 * rng.standard_normal((400, 2)), 0, 1)
    counts = noisy(np.stack([counts_of(points, 16)] * 20), 1.0, seed=5)
    measure = estimate(counts, 16, 1.0, np.full(20, 400.0), 2)
    assert (measure.believed > 0.8).all()
    for i in range(20):
        np.testing.assert_allclose(mean_of(measure, i), [0.3, 0.7], atol=0.03)


def test_concentrated_people_are_read_in_finer_cells_than_people_spread_out():
    rng = np.random.default_rng(2)
    times, n, side = 10, 600, 32
    tight = [np.clip(0.4 + 0.02 * rng.standard_normal((n, 2)), 0, 1) for _ in range(times)]
    loose = [rng.uniform(size=(n, 2)) for _ in range(times)]

    def sides(clouds, seed):
        counts = noisy(np.stack([counts_of(c, side) for c in clouds]), 1.0, seed)
        return estimate(counts, side, 1.0, np.full(times, float(n)), 2).sides

    assert sides(tight, 1).max() < sides(loose, 2).min()


counts_arrays = arrays(
    np.int64, (3, 64), elements=st.sampled_from([0, -1, -(10**9), 10**9]) | st.integers(-50, 50)
)


@settings(max_examples=80)
@given(counts_arrays, st.floats(1e-3, 64), st.floats(1, 1e6))
def test_any_counts_give_a_measure_in_the_box_whose_rows_sum_to_one(counts, epsilon, people):
    measure = estimate(counts, 8, epsilon, np.full(3, people), 2)
    for part in (measure.centres, measure.weights, measure.sides, measure.believed):
        assert np.isfinite(part).all()
    np.testing.assert_allclose(measure.weights.sum(axis=1), 1.0, rtol=1e-9)
    assert (measure.weights >= 0).all()
    assert ((measure.centres > 0) & (measure.centres < 1)).all()
    assert ((measure.believed >= 0) & (measure.believed <= 1)).all()
    assert ((measure.sides > 0) & (measure.sides <= 1)).all()


@pytest.mark.parametrize("value", [0, -7])
def test_counts_without_anybody_leave_the_whole_box(value):
    measure = estimate(np.full((2, 64), value), 8, 1.0, np.ones(2), 2)
    assert measure.believed.tolist() == [0, 0]
    assert measure.sides.tolist() == [1, 1]
    np.testing.assert_array_equal(measure.centres, 0.5)


@pytest.mark.parametrize("side", [1, 2, 3, 5, 6])
def test_sides_that_cannot_be_pooled_are_read_as_they_are(side):
    exact = np.full(side * side, 90)
    measure = estimate(exact[None], side, 10.0, np.array([90.0 * side**2]), 2)
    assert measure.believed[0] == pytest.approx(1.0)
    np.testing.assert_allclose(mean_of(measure, 0), 0.5)
