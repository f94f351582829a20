"""Particles and steps chosen from public numbers: within limits, and in the right direction."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.measures import gradients as module
from privtraj.measures.gradients import LEAST_PARTICLES, MAX_PARTICLES, STEPS
from privtraj.measures.langevin import middle
from privtraj.measures.likelihood import typical_norm
from privtraj.recipe import Recipe

PEOPLE = (40, 130, 600, 3000, 20_000, 100_000)
BUDGETS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # mu

sizes = st.floats(40, 1e5)
dimensions = st.integers(1, 10)


def gradient_settings(people, d, times, mu, steps=STEPS, **settings):
    """For as many people at each time."""
    recipe = Recipe(steps=steps, **settings)
    return module.gradient_settings(np.full(times, people), d, mu, steps, recipe)


@settings(max_examples=100)
@given(sizes, dimensions, st.floats(0.125, 2))
def test_all_settings_are_within_the_limits(people, d, mu):
    made = gradient_settings(people, d, 10, mu)
    assert isinstance(made.particles, int)
    assert isinstance(made.steps, int)
    assert LEAST_PARTICLES <= made.particles <= MAX_PARTICLES
    assert made.steps == STEPS
    assert np.isfinite(made.worth)
    assert made.worth >= 0


@settings(max_examples=50)
@given(sizes, dimensions, st.floats(0.125, 8))
def test_the_steps_spend_what_there_is(people, d, mu):
    made = gradient_settings(people, d, 1, mu)
    assert np.sqrt(made.steps) / made.noise_multiplier == pytest.approx(mu)


@pytest.mark.parametrize("mu", [0.25, 1.0, 2.0])
@pytest.mark.parametrize("people", [130, 600, 3000])
def test_particles_shrink_with_dimension(people, mu):
    particles = [gradient_settings(people, d, 1, mu).particles for d in (1, 2, 4, 8)]
    assert particles == sorted(particles, reverse=True)
    assert particles[0] > particles[-1] or particles[0] == LEAST_PARTICLES


@pytest.mark.parametrize("d", [1, 2, 3, 6, 10])
@pytest.mark.parametrize("mu", BUDGETS)
def test_fewer_people_never_get_more_particles_or_steps(d, mu, monkeypatch):
    monkeypatch.setattr(module, "MOST_WORK", np.inf)  # the limit on time has a test of its own
    made = [gradient_settings(people, d, 1, mu) for people in PEOPLE]
    assert all(a.particles <= b.particles for a, b in pairwise(made))
    assert all(a.steps <= b.steps for a, b in pairwise(made))
    assert all(a.worth <= b.worth for a, b in pairwise(made))


@pytest.mark.parametrize("d", [1, 2, 3, 6, 10])
@pytest.mark.parametrize("people", PEOPLE)
def test_more_budget_never_buys_less(d, people):
    made = [gradient_settings(people, d, 1, mu) for mu in BUDGETS]
    assert all(a.particles <= b.particles for a, b in pairwise(made))
    assert all(a.worth <= b.worth for a, b in pairwise(made))


def test_a_hundred_times_the_people_get_more_particles():
    few, many = (gradient_settings(people, 2, 1, 1.0).particles for people in (100, 1e4))
    assert many > few


@settings(max_examples=50)
@given(sizes, dimensions, st.floats(0.5, 8), st.integers(2, 700), st.integers(2, 200))
def test_forced_particles_and_steps_are_honoured(people, d, mu, particles, steps):
    made = gradient_settings(people, d, 1, mu, particles=particles, steps=steps)
    assert (made.particles, made.steps) == (particles, steps)


def test_many_people_at_many_times_do_not_make_a_fit_take_hours():
    chosen = gradient_settings(1e5, 6, 100, 2.0)
    assert 16 <= chosen.particles < gradient_settings(1e5, 6, 1, 2.0).particles


def test_a_step_is_clipped_and_its_noise_stated_by_the_same_clip():
    asked, people = [], np.array([50.0, 80.0])

    def ask(release):
        asked.append(release)
        return np.zeros((2, 4 * 3 + 1))

    gradients = module.PrivateGradients(ask, people, 3.0, np.random.default_rng(0))
    mixture = middle(2, 4, 2).mixture
    _, drift = gradients(mixture)
    (release,), (step,) = asked, gradients.releases
    clip = typical_norm(mixture, np.random.default_rng(0), 1 - module.CLIPPED)
    np.testing.assert_array_equal(release.question.clip, clip)
    np.testing.assert_array_equal(step.clip, clip)
    np.testing.assert_allclose(step.noise, clip * 3 / people)
    np.testing.assert_allclose(drift, 4 * step.noise, rtol=1e-6)
    assert release.noise.multiplier == 3
