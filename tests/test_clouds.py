"""Equal-weight clouds from weighted ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.base.arrays import along_main_axis, along_z_curve, equal_weight, systematic

weight_lists = st.lists(st.floats(0, 10), min_size=1, max_size=30).filter(lambda w: sum(w) > 1e-3)


@settings(max_examples=100)
@given(weight_lists, st.integers(1, 200), st.none() | st.integers(0, 99))
def test_every_index_is_drawn_its_share_of_times_up_to_one(weights, count, seed):
    weights = np.array(weights)
    rng = None if seed is None else np.random.default_rng(seed)
    index = systematic(weights, count, rng)
    assert index.shape == (count,)
    drawn = np.bincount(index, minlength=len(weights))
    assert len(drawn) == len(weights)
    assert np.abs(drawn - count * weights / weights.sum()).max() < 1 + 1e-6


@settings(max_examples=50)
@given(weight_lists.map(lambda w: [*w, 0.0]), st.integers(0, 99))
def test_what_has_no_weight_is_not_drawn(weights, seed):
    weights = np.array([0.0, *weights])
    index = systematic(weights, 50, np.random.default_rng(seed))
    # the very last index may catch the rounding of the cumulative sum
    assert (weights[index[index < len(weights) - 1]] > 0).all()
    assert 0 not in index


def test_expected_draws_are_the_weights():
    weights = np.array([0.05, 0.15, 0.8])
    drawn = [
        np.bincount(systematic(weights, 7, np.random.default_rng(s)), minlength=3)
        for s in range(3000)
    ]
    # each mean has a standard error below .5 / sqrt(3000) = .0091; 5.5 of them, rate below 2e-7
    np.testing.assert_allclose(np.mean(drawn, axis=0), 7 * weights, atol=0.05)


def test_without_a_generator_the_answer_is_always_the_same():
    weights = np.random.default_rng(0).uniform(size=20)
    np.testing.assert_array_equal(systematic(weights, 64), systematic(weights, 64))


def test_equal_clouds_repeat_heavy_particles():
    particles = np.arange(6.0).reshape(1, 3, 2)
    cloud = equal_weight(particles, np.array([[0.5, 0.25, 0.25]]), 8)
    assert cloud.shape == (1, 8, 2)
    repeats = [(cloud[0] == particle).all(axis=1).sum() for particle in particles[0]]
    assert repeats == [4, 2, 2]


@pytest.mark.parametrize("d", [1, 2, 5])
def test_particles_are_ordered_along_the_direction_they_spread_in(d):
    rng = np.random.default_rng(d)
    axis = rng.standard_normal(d)
    axis /= np.linalg.norm(axis)
    along = rng.standard_normal((2, 30))
    particles = along[..., None] * axis + 1e-3 * rng.standard_normal((2, 30, d))
    for order, position in zip(along_main_axis(particles), along, strict=True):
        ordered = position[order] if position[order][0] < 0 else position[order][::-1]
        assert (np.diff(ordered) > -0.02).all()
        assert sorted(order) == list(range(30))


def test_particles_in_one_place_still_have_an_order():
    order = along_main_axis(np.full((2, 4, 3), 0.5))
    assert [sorted(row) for row in order] == [[0, 1, 2, 3]] * 2


def test_a_systematic_sample_along_the_z_curve_is_spread_evenly_in_the_plane():
    """In rows, 64 of 4,096 equal cells miss whole columns; along the curve each block has one."""
    places = np.argwhere(np.ones((64, 64)))
    order = along_z_curve(places)
    assert sorted(order) == list(range(4096))
    picked = places[order][systematic(np.ones(4096), 64)]
    blocks = np.bincount((picked // 8) @ [8, 1], minlength=64)
    assert (blocks == 1).all()
    assert along_z_curve(np.zeros((1, 3), int)).tolist() == [0]
