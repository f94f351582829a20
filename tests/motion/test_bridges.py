"""The reference process: its transitions, the law of its bridge, the other interpolations."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import PchipInterpolator
from scipy.stats import multivariate_normal

from privtraj.motion import sinkhorn
from privtraj.motion.diffusions import Brownian
from privtraj.motion.process import between

KNOT_TIMES = np.array([0.0, 0.25, 1.0])
TAU = 0.3
N = 40_000


def flat_knots(n=N, d=1):
    return np.zeros((n, len(KNOT_TIMES), d))


def bridge(times, knots=None, seed=0, tau=TAU):
    knots = flat_knots() if knots is None else knots
    rng = np.random.default_rng(seed)
    return between(knots, KNOT_TIMES, np.asarray(times, float), Brownian(tau), "bridge", rng)


def law(s, t):
    """Covariance of the bridges of KNOT_TIMES at s and t."""
    s, t = min(s, t), max(s, t)
    for a, b in pairwise(KNOT_TIMES):
        if a <= s <= b and a <= t <= b:
            return TAU * (s - a) * (b - t) / (b - a)
    return 0.0


# Unsorted, repeated, several to an interval, and the knots themselves.
TIMES = [0.9, 0.1, 0.5, 0.5, 0.0, 0.2, 0.3, 0.25, 1.0, 0.1]


def test_the_covariance_of_a_bridge_is_that_of_brownian_motion_between_its_knots():
    values = bridge(TIMES)[:, :, 0]
    expected = np.array([[law(s, t) for t in TIMES] for s in TIMES])
    got = values.T @ values / len(values)
    deviation = np.sqrt(np.diag(expected))
    # a covariance of n draws has standard error at most sqrt(2) s_i s_j / sqrt(n); 5.8 of them for
    # 55 entries: false-alarm rate below 1e-6
    limit = 5.8 * np.sqrt(2 / N) * np.outer(deviation, deviation)
    assert (np.abs(got - expected) <= limit + 1e-12).all()
    assert (np.abs(values.mean(axis=0)) <= 5.8 * deviation / np.sqrt(N) + 1e-12).all()


def test_repeated_times_give_the_same_place():
    values = bridge(TIMES)
    np.testing.assert_array_equal(values[:, 2], values[:, 3])
    np.testing.assert_array_equal(values[:, 1], values[:, 9])


@pytest.mark.parametrize("interpolation", ["bridge", "linear", "spline"])
def test_paths_go_through_their_knots(interpolation):
    knots = np.random.default_rng(1).uniform(size=(50, 3, 2))
    rng = np.random.default_rng(2)
    values = between(knots, KNOT_TIMES, KNOT_TIMES[[2, 0, 1]], Brownian(TAU), interpolation, rng)
    np.testing.assert_allclose(values, knots[:, [2, 0, 1]], atol=1e-12)


def test_the_mean_of_a_bridge_is_the_straight_line():
    knots = np.tile(np.array([0.0, 1.0, -1.0])[None, :, None], (N, 1, 1))
    times = np.array([0.1, 0.6])
    values = bridge(times, knots)
    straight = between(knots, KNOT_TIMES, times, Brownian(TAU), "linear", np.random.default_rng(0))
    np.testing.assert_allclose(straight[0, :, 0], [0.4, 1 - 2 * 0.35 / 0.75])
    # standard error at most sqrt(TAU * .1875 / N) = .0012; 5.3 of them, rate 1e-7
    np.testing.assert_allclose(values.mean(axis=0), straight[0], atol=0.0064)


def test_people_and_coordinates_have_independent_bridges():
    values = bridge([0.6], flat_knots(d=2))[:, 0]
    correlations = [np.corrcoef(values.T)[0, 1], np.corrcoef(values[:-1, 0], values[1:, 0])[0, 1]]
    assert np.abs(correlations).max() < 5.3 / np.sqrt(N - 1)


def test_without_diffusivity_a_bridge_is_straight():
    knots = np.random.default_rng(1).uniform(size=(5, 3, 2))
    times = np.linspace(0, 1, 11)
    args = (knots, KNOT_TIMES, times, Brownian(0.0))
    np.testing.assert_array_equal(
        between(*args, "bridge", np.random.default_rng(0)),
        between(*args, "linear", np.random.default_rng(1)),
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 9), st.integers(0, 999))
def test_splines_are_the_monotone_cubics_of_scipy(count, seed):
    rng = np.random.default_rng(seed)
    knots = rng.uniform(size=(20, count, 2))
    knots = np.where(rng.random(knots.shape) < 0.3, np.round(3 * knots) / 3, knots)  # equal ones
    clock = np.cumsum(rng.uniform(0.1, 1, count))
    times = np.append(rng.uniform(clock[0], clock[-1], 20), clock)
    values = between(knots, clock, times, Brownian(TAU), "spline", rng)
    np.testing.assert_allclose(values, PchipInterpolator(clock, knots, axis=1)(times), atol=1e-12)


def test_splines_do_not_overshoot_their_knots():
    knots = np.random.default_rng(3).uniform(size=(30, 3, 2))
    times = np.linspace(0, 1, 101)
    values = between(knots, KNOT_TIMES, times, Brownian(TAU), "spline", np.random.default_rng(0))
    low = np.minimum(knots[:, :-1], knots[:, 1:])
    high = np.maximum(knots[:, :-1], knots[:, 1:])
    part = (times > 0.25).astype(int)
    assert (values >= low[:, part] - 1e-12).all()
    assert (values <= high[:, part] + 1e-12).all()
    straight = between(knots, KNOT_TIMES, times, Brownian(TAU), "linear", np.random.default_rng(0))
    assert np.abs(values - straight).max() > 0.01


def test_paths_of_single_precision_stay_in_single_precision():
    knots = np.zeros((4, 3, 2), np.float32)
    for interpolation in ("bridge", "linear"):
        values = between(
            knots,
            KNOT_TIMES,
            np.array([0.4]),
            Brownian(TAU),
            interpolation,
            np.random.default_rng(0),
        )
        assert values.dtype == np.float32


# Transitions ----------------------------------------------------------------------------------


def test_sinkhorn_costs_minus_the_log_of_the_density_of_brownian_motion_up_to_a_constant():
    rng = np.random.default_rng(4)
    x, y = rng.uniform(size=(2, 6, 3)).astype(np.float32)
    cost = np.asarray(sinkhorn.scaled_cost(x, y, np.float32(Brownian(TAU).variance(np.array(0.4)))))
    density = [multivariate_normal(place, TAU * 0.4).logpdf(y) for place in x]
    constants = cost + np.array(density)
    np.testing.assert_allclose(constants, constants[0, 0], rtol=1e-4)


def test_bridges_of_an_interval_have_the_shape_and_the_ends_they_are_given():
    x, y = np.random.default_rng(6).uniform(size=(2, 9, 2))
    at = np.array([0.5, 0.5, 0.7, 1.5])
    values = Brownian(TAU).bridge(x, y, (0.5, 1.5), at, np.random.default_rng(0))
    assert values.shape == (4, 9, 2)
    np.testing.assert_array_equal(values[0], x)
    np.testing.assert_array_equal(values[1], x)
    np.testing.assert_array_equal(values[3], y)
