"""Weights that explain every release: the minimum they claim, and what people they bring back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.base.arrays import systematic
from privtraj.measures.base import Marginals
from privtraj.measures.likelihood import Mixture, person_vectors
from privtraj.measures.reweighting import (
    GROUPS,
    KERNEL_KEPT,
    POINTS,
    StepRelease,
    explaining_weights,
    normal_equations,
    reweighted,
)

PEOPLE = 4000


def release_of(people, mixture, clip=10.0, noise=1e-4):
    """What a step without noise would tell of people (N, d), with this much noise declared."""
    one = jax.tree.map(lambda leaf: leaf[0], mixture)
    vectors = np.asarray(person_vectors(np.float32(people), one), np.float64)
    vectors *= np.minimum(1, clip / np.linalg.norm(vectors, axis=1))[:, None]
    return StepRelease(mixture, np.array([clip]), vectors.sum(axis=0)[None], np.array([noise]))


def mixture_at(places, bandwidth=0.05):
    """One time, a particle at each place (m, d)."""
    places = np.float32(places)[None]
    return Mixture(places, np.zeros(places.shape[:2], np.float32), np.float32([bandwidth]))


def weights_of(points, releases):
    """Of single points (n, d), given releases at one time."""
    stacked = jax.tree.map(lambda *rows: np.float32(np.stack(rows))[:, 0], *releases)
    return explaining_weights(*normal_equations(np.float32(points)[:, None], stacked, PEOPLE))


def groups(shares, d=5, seed=0, apart=0.4):
    """People in two tight groups of these shares, at 0.3 and 0.3 + apart in every feature."""
    rng = np.random.default_rng(seed)
    sizes = np.round(PEOPLE * np.asarray(shares)).astype(int)
    centres = np.repeat([0.3, 0.3 + apart], sizes)[:, None]
    return centres + 0.05 * rng.standard_normal((PEOPLE, d))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 999), st.floats(0.0, 10.0), st.floats(1, 1e3))
def test_the_weights_are_the_minimum(seed, strength, worth):
    """At it, all slopes of the objective are equal: no weight gains by taking from another.

    strength: of the answers, in priors. With 30 and more some of the best weights are below e^-150,
    and Newton's steps end before they are there."""
    rng = np.random.default_rng(seed)
    strength *= worth
    part = rng.standard_normal((40, 6))
    gram, known = strength * part @ part.T, strength * part @ rng.standard_normal(6)
    weights = explaining_weights(gram, known, worth)
    assert weights.sum() == pytest.approx(1)
    assert (weights > 0).all()
    slopes = worth * np.log(40 * weights) + gram @ weights - known
    assert np.ptp(slopes) < 1e-3 * (10 * worth + strength)


def test_who_knows_nothing_changes_nothing():
    weights = explaining_weights(np.zeros((20, 20)), np.zeros(20))
    np.testing.assert_allclose(weights, 1 / 20)


@pytest.mark.parametrize("clip", [10.0, 0.3])
def test_shares_of_groups_come_back_even_where_people_were_clipped(clip):
    """Particles stand at both groups alike, but four people in five are in the first. With the
    small clip everybody's vector is cut, as the points' are."""
    mixture = mixture_at([[0.3] * 5, [0.7] * 5], bandwidth=0.2)
    release = release_of(groups((0.8, 0.2)), mixture, clip, noise=1e-3)
    points = groups((0.5, 0.5), seed=1)[:: PEOPLE // 400]
    weights = weights_of(points, [release] * 20)
    assert weights[points[:, 0] < 0.5].sum() == pytest.approx(0.8, abs=0.02)


def test_noise_that_hides_everything_leaves_the_weights_equal():
    mixture = mixture_at([[0.3] * 5, [0.7] * 5])
    release = release_of(groups((0.8, 0.2)), mixture, noise=10.0)
    points = groups((0.5, 0.5), seed=1)[::40]
    weights = weights_of(points, [release])
    np.testing.assert_allclose(weights * len(points), 1, atol=0.01)


def test_an_early_release_still_counts():
    """What the first step told is not lost when the last one tells nothing of it."""
    people = groups((0.8, 0.2))
    early = release_of(people, mixture_at([[0.3] * 5, [0.7] * 5], 0.2), noise=1e-3)
    late = release_of(people, mixture_at([[0.5] * 5, [0.5] * 5], 0.2), noise=10.0)
    points = groups((0.5, 0.5), seed=1)[::10]
    for order in ([early] * 20 + [late], [late] + [early] * 20):
        weights = weights_of(points, order)
        assert weights[points[:, 0] < 0.5].sum() == pytest.approx(0.8, abs=0.02)


def test_a_group_weighs_what_its_points_weigh_together():
    """Four points at one place are one weight, whether they are told apart or not."""
    release = release_of(groups((0.8, 0.2)), mixture_at([[0.3] * 5, [0.7] * 5], 0.2), noise=1e-3)
    stacked = jax.tree.map(lambda *rows: np.float32(np.stack(rows))[:, 0], *[release] * 5)
    places = np.repeat(np.float32(groups((0.5, 0.5), seed=1)[::80])[:, None], 4, axis=1)
    together = explaining_weights(*normal_equations(places, stacked, PEOPLE))
    apart = weights_of(places.reshape(-1, 5), [release] * 5).reshape(-1, 4)
    np.testing.assert_allclose(together, apart.sum(axis=1), rtol=0.02)
    np.testing.assert_allclose(apart, np.repeat(apart[:, :1], 4, axis=1), rtol=1e-3)


def found(bandwidth=0.1, times=2, m=6, d=4):
    """Marginals as the dynamics leave them, and a release that tells what they already say."""
    particles = np.random.default_rng(3).uniform(0.2, 0.8, (times, m, d))
    sigma = np.full(times, bandwidth)
    marginals = Marginals(particles, np.full((times, m), 1 / m), sigma, sigma, {"kept": 1})
    bias = jnp.zeros((times, m), jnp.float32)
    mixture = Mixture(particles.astype(np.float32), bias, sigma.astype(np.float32))
    sums = np.zeros((times, m * d + m + 1))
    return marginals, StepRelease(mixture, np.ones(times), sums, np.full(times, 100.0))


def test_points_and_the_noise_around_them_are_as_wide_as_the_mixture():
    marginals, release = found()
    made = reweighted(marginals, [release], np.full(2, 100.0), np.random.default_rng(0))
    np.testing.assert_allclose(made.bandwidth, 0.1 * KERNEL_KEPT)
    np.testing.assert_allclose(made.weights.sum(axis=1), 1)
    assert made.diagnostics == marginals.diagnostics
    np.testing.assert_array_equal(made.resolution, marginals.resolution)
    wanted = marginals.particles.var(axis=1) + 0.1**2
    spread = made.particles.var(axis=1) + made.bandwidth[:, None] ** 2
    np.testing.assert_allclose(spread, wanted, rtol=0.2)


def test_a_bandwidth_that_is_kept_whole_leaves_the_particles_where_they_are():
    marginals, release = found()
    rng = np.random.default_rng(0)
    made = reweighted(marginals, [release], np.full(2, 100.0), rng, whole=True)
    np.testing.assert_array_equal(made.bandwidth, marginals.bandwidth)
    for ours, theirs in zip(made.particles, marginals.particles, strict=True):
        np.testing.assert_array_equal(ours[np.lexsort(ours.T)], theirs[np.lexsort(theirs.T)])
    np.testing.assert_allclose(made.weights, marginals.weights, atol=0.01)


@pytest.mark.parametrize("whole", [False, True])
def test_a_few_of_equal_weight_keep_the_shares_of_groups(whole):
    """Three groups in any order: a systematic sample is off by a person a group, not by chance."""
    rng = np.random.default_rng(5)
    group = rng.integers(3, size=(2, 600))
    middles = np.array([[0.2, 0.2], [0.8, 0.3], [0.4, 0.8]])
    marginals, release = found(bandwidth=0.02, m=600, d=2)
    particles = middles[group] + 0.02 * rng.standard_normal((2, 600, 2))
    made = reweighted(
        marginals._replace(particles=particles), [release], np.full(2, 100.0), rng, whole=whole
    )
    for cloud, weights in zip(made.particles, made.weights, strict=True):
        nearest = ((cloud[:, None] - middles) ** 2).sum(axis=2).argmin(axis=1)
        shares = np.bincount(nearest, weights)
        few = np.bincount(nearest[systematic(weights, 100)]) / 100
        assert np.abs(few - shares).max() <= 0.015


def test_more_particles_than_points_are_left_as_they_are():
    marginals, release = found(m=POINTS + 1)
    rng = np.random.default_rng(0)
    assert reweighted(marginals, [release], np.full(2, 100.0), rng) is marginals


def test_the_prior_is_in_people():
    """A measured share, of variance p (1 - p) / N people, moves weights by N / (N + worth)."""
    inside = np.repeat([1.0, 0.0], 200)
    people, seen = GROUPS, 0.55
    precision = people / 0.25
    weights = explaining_weights(precision * np.outer(inside, inside), precision * inside * seen)
    assert weights @ inside == pytest.approx(0.525, abs=0.001)
