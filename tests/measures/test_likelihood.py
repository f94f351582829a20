"""Responsibilities, the per-person vector and its moments, against autodiff and plain formulas."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.measures.likelihood import (
    Mixture,
    moments,
    person_vectors,
    squared_distances,
    typical_norm,
    weights,
)

N, M, D = 12, 5, 3
decades = st.floats(-4, 1).map(lambda e: 10.0**e)
seeds = st.integers(0, 999)

vectors_of = jax.jit(person_vectors)


@jax.jit
def responsibilities_of(points, mixture):
    distance = squared_distances(points, mixture.particles)
    return weights(distance, mixture), distance


def problem(seed, bandwidth, reach=1.0, bias=0.0):
    """People (N, D) and a mixture of M particles, spread over [0, reach]^D."""
    rng = np.random.default_rng(seed)
    points = jnp.asarray(reach * rng.uniform(size=(N, D)), jnp.float32)
    mixture = Mixture(
        jnp.asarray(rng.uniform(size=(M, D)), jnp.float32),
        jnp.asarray(bias * rng.standard_normal(M), jnp.float32),
        jnp.float32(bandwidth),
    )
    return points, mixture


def timed(mixture):
    return jax.tree.map(lambda leaf: leaf[None], mixture)


def moments_of(points, mixture):
    sums = vectors_of(points, mixture).sum(axis=0)[None]
    return moments(sums, jnp.array([float(len(points))]), timed(mixture))


def log_fit(particles, bandwidth, points):
    """-DF^sigma of the paper: mean over people of log mean_k exp(-|x_k - y|^2 / 2 sigma^2)."""
    square = jnp.sum((particles[None] - points[:, None]) ** 2, axis=-1)
    return jnp.mean(
        jax.nn.logsumexp(-square / (2 * bandwidth**2), axis=1) - jnp.log(particles.shape[0])
    )


@settings(max_examples=60)
@given(seeds, decades, st.sampled_from([1.0, 1e3]), st.floats(0, 4))
def test_responsibilities_are_probabilities_at_any_bandwidth_and_distance(
    seed, bandwidth, reach, bias
):
    points, mixture = problem(seed, bandwidth, reach, bias)
    w, distance = (np.asarray(a) for a in responsibilities_of(points, mixture))
    assert (w >= 0).all()
    np.testing.assert_allclose(w.sum(axis=1), 1.0, atol=1e-5)
    expected = ((np.asarray(points)[:, None] - np.asarray(mixture.particles)) ** 2).sum(-1)
    np.testing.assert_allclose(distance, expected, rtol=1e-5)


@settings(max_examples=60)
@given(seeds, decades, st.floats(0, 4))
def test_vectors_of_people_in_the_box_are_finite_at_any_bandwidth(seed, bandwidth, bias):
    points, mixture = problem(seed, bandwidth, 1.0, bias)
    assert np.isfinite(np.asarray(vectors_of(points, mixture))).all()


def test_a_person_far_from_everybody_belongs_to_the_nearest_particle():
    _, mixture = problem(3, 1e-4)
    far = jnp.full((1, D), 50.0)
    w, distance = responsibilities_of(far, mixture)
    assert np.argmax(w) == np.argmin(distance)
    assert float(w.max()) == pytest.approx(1.0)


def test_a_larger_bias_draws_more_people():
    points, mixture = problem(0, 0.3)
    raised = mixture._replace(bias=mixture.bias.at[2].add(1.0))
    before, after = (responsibilities_of(points, m)[0] for m in (mixture, raised))
    assert (after[:, 2] > before[:, 2]).all()
    assert (np.delete(after, 2, axis=1) < np.delete(before, 2, axis=1)).all()


@pytest.mark.slow
@pytest.mark.parametrize("bandwidth", [0.05, 0.2, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_drift_is_the_gradient_of_the_papers_data_fit(seed, bandwidth):
    points, mixture = problem(seed, bandwidth)
    gradient = jax.grad(lambda x: -log_fit(x, bandwidth, points))(mixture.particles)
    drift = moments_of(points, mixture).drift[0]
    np.testing.assert_allclose(drift / (M * bandwidth**2), gradient, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("bandwidth", [0.05, 0.2, 1.0])
def test_the_spread_is_one_exactly_where_the_likelihood_of_the_bandwidth_is_stationary(bandwidth):
    """d/d log(sigma) of mean log density = d (spread - 1)."""
    points, mixture = problem(1, bandwidth)

    def log_density(log_sigma):
        return log_fit(mixture.particles, jnp.exp(log_sigma), points) - D * log_sigma

    slope = jax.grad(log_density)(jnp.log(jnp.float32(bandwidth)))
    spread = moments_of(points, mixture).spread[0]
    assert float(D * (spread - 1)) == pytest.approx(float(slope), rel=1e-3, abs=1e-3)


@pytest.mark.slow
def test_the_spread_is_one_at_the_maximum_likelihood_bandwidth():
    points, mixture = problem(2, 0.5)
    grid = np.exp(np.linspace(np.log(0.02), np.log(1.0), 4000))
    fits = jax.vmap(lambda s: log_fit(mixture.particles, s, points) - D * jnp.log(s))(
        jnp.asarray(grid, jnp.float32)
    )
    best = mixture._replace(bandwidth=jnp.float32(grid[int(np.argmax(fits))]))
    assert float(moments_of(points, best).spread[0]) == pytest.approx(1.0, abs=0.02)
    wide = best._replace(bandwidth=2 * best.bandwidth)
    narrow = best._replace(bandwidth=best.bandwidth / 2)
    assert float(moments_of(points, wide).spread[0]) < 0.7
    assert float(moments_of(points, narrow).spread[0]) > 1.4


@settings(max_examples=30)
@given(seeds, st.floats(0.03, 2))
def test_masses_average_one_and_are_mean_responsibilities(seed, bandwidth):
    points, mixture = problem(seed, bandwidth, bias=1.0)
    w, _ = responsibilities_of(points, mixture)
    mass = moments_of(points, mixture).mass[0]
    np.testing.assert_allclose(mass, M * np.asarray(w).mean(axis=0), rtol=1e-3, atol=1e-5)
    assert float(mass.mean()) == pytest.approx(1.0, abs=1e-4)


def test_a_vector_depends_on_its_own_person_alone():
    points, mixture = problem(4, 0.2)
    changed = points.at[1:].set(0.99)
    np.testing.assert_array_equal(vectors_of(points, mixture)[0], vectors_of(changed, mixture)[0])


# Typical norm ---------------------------------------------------------------------------------


def several_times(seed=0):
    rng = np.random.default_rng(seed)
    return Mixture(
        jnp.asarray(rng.uniform(size=(2, M, D)), jnp.float32),
        jnp.zeros((2, M), jnp.float32),
        jnp.asarray([0.1, 0.2], jnp.float32),
    )


def test_the_typical_norm_asks_for_the_mixture_and_public_randomness_only():
    names = list(inspect.signature(typical_norm).parameters)
    assert names[0] == "mixture"
    assert not {"points", "people", "guard", "snapshots"} & set(names)


def test_the_typical_norm_is_positive_and_grows_with_the_quantile():
    mixture = several_times()
    low, high = (
        np.asarray(typical_norm(mixture, np.random.default_rng(1), q)) for q in (0.5, 0.95)
    )
    assert low.shape == (2,)
    assert (low > 0).all()
    assert (low < high).all()


@pytest.mark.parametrize("scale", [0.01, 0.5, 3.0])
def test_the_typical_norm_scales_with_particles_and_bandwidth_together(scale):
    mixture = several_times()
    scaled = mixture._replace(
        particles=scale * mixture.particles, bandwidth=scale * mixture.bandwidth
    )
    plain, other = (typical_norm(m, np.random.default_rng(2), 0.9) for m in (mixture, scaled))
    # but for the weight of the masses, which is a multiple of 2^-16
    np.testing.assert_allclose(np.asarray(other), scale * np.asarray(plain), rtol=3e-3)


@pytest.mark.slow
def test_the_typical_norm_is_the_quantile_of_people_whom_the_mixture_draws():
    mixture = several_times()
    clip = np.asarray(typical_norm(mixture, np.random.default_rng(3), 0.9, 4000))
    rng = np.random.default_rng(4)
    for i in range(2):
        one = jax.tree.map(lambda leaf, i=i: leaf[i], mixture)
        centres = np.asarray(one.particles)[rng.integers(M, size=4000)]
        people = centres + float(one.bandwidth) * rng.standard_normal(centres.shape)
        length = np.linalg.norm(person_vectors(jnp.asarray(people, jnp.float32), one), axis=1)
        # share below the clip: standard error sqrt(.09 (1/4000 + 1/4000)) = .0067; 5.3 of them
        # are a false-alarm rate of 1e-7
        assert (length <= clip[i]).mean() == pytest.approx(0.9, abs=0.036)
