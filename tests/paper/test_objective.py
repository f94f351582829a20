"""The paper's objective against closed forms and against POT."""

import math

import numpy as np
import ot
import pytest

from privtraj.paper.dynamics import objective

SETTINGS = {"lam": 0.5, "sigma": 0.2, "tau": 0.1}


def of(particles, data=None, **changes):
    gaps = np.full(len(particles) - 1, 0.5)
    data = list(particles) if data is None else data
    return objective(particles, data, gaps, **{**SETTINGS, **changes})


def test_the_parts_add_up_to_the_objective():
    found = of(np.random.default_rng(0).uniform(size=(3, 20, 2)))
    assert found.total == found.fit + found.transport + found.entropy


def test_the_fit_of_one_particle_is_a_gaussian_likelihood():
    particles, data = np.zeros((2, 1, 2)), [np.array([[0.3, 0.4]])] * 2
    x = np.concatenate([particles, particles + 1e-3], axis=1)  # two, so that there is an entropy
    expected = 2 * 0.5 / 0.5 * 0.25 / (2 * 0.2**2)
    assert of(x, data).fit == pytest.approx(expected, rel=1e-2)


def test_the_fit_is_best_where_people_are():
    rng = np.random.default_rng(1)
    people = rng.normal(0.5, 0.05, size=(2, 300, 2))
    there, away = (rng.normal(place, 0.05, size=(2, 50, 2)) for place in (0.5, 0.8))
    assert of(there, list(people)).fit < of(away, list(people)).fit


def test_the_transport_is_pots():
    rng = np.random.default_rng(2)
    x, y = rng.uniform(size=(2, 30, 2))
    reg, weights = 0.05, np.full(30, 1 / 30)
    cost = ot.dist(x, y) / 2
    plan = ot.sinkhorn(weights, weights, cost, reg, method="sinkhorn_log", numItermax=5000)
    entropic = (plan * cost).sum() + reg * (plan * np.log(plan * 900)).sum()
    found = of(np.stack([x, y]), tau=reg / 0.5).transport
    assert found == pytest.approx(entropic / 0.5, rel=1e-3)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_entropy_of_a_normal_cloud(d):
    """Of 4000 points the estimate is within a few hundredths; seeded."""
    cloud = np.random.default_rng(3).normal(0.0, 0.3, size=(2, 4000, d))
    exact = d / 2 * math.log(2 * math.pi * math.e * 0.3**2)
    from privtraj.paper import dynamics as module

    for x in cloud:
        assert -module._negative_entropy(x) == pytest.approx(exact, abs=0.06 * d)


def test_equal_particles_do_not_break_it():
    assert math.isfinite(of(np.full((2, 5, 2), 0.5)).total)
