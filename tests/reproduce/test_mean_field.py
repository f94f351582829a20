"""The dynamics without privacy: the gradient of the objective, and noise of the right size."""

import numpy as np
import pytest

from privtraj.measures.likelihood import Mixture
from privtraj.paper.dynamics import Weighted, at, batch_vectors
from reproduce.mean_field import FullBatch, Problem, descend, potential_gradient

pytestmark = pytest.mark.thorough

T, M, N, D = 3, 12, 7, 2


class Silent(np.random.Generator):
    """No Langevin noise."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def standard_normal(self, size, dtype):
        return np.zeros(size, dtype)


@pytest.fixture(scope="module")
def problem():
    people = np.random.default_rng(0).uniform(0.2, 0.8, size=(T, N, D))
    return Problem(people, np.array([0.2, 0.5]), lam=0.7, sigma=0.2, tau=0.3)


@pytest.fixture(scope="module")
def particles():
    return np.random.default_rng(1).uniform(0.3, 0.7, size=(T, M, D))


def test_the_drift_is_the_mean_of_the_papers_vectors(problem, particles):
    mixture = at(particles, problem.sigma).mixture
    moments, noise = FullBatch(problem, M)(mixture)
    dt = (0.2, 0.5, 0.5)
    for i in range(T):
        one = Weighted(
            Mixture(*(leaf if leaf is None else leaf[i] for leaf in mixture)),
            M * dt[i] / (0.7 * 0.2**2),
        )
        expected = np.mean(batch_vectors(problem.people[i].astype(np.float32), one), axis=0)
        np.testing.assert_allclose(moments.drift[i].ravel(), expected, atol=1e-4)
    assert not np.any(noise)


@pytest.mark.parametrize("seed", range(4))
def test_a_step_follows_the_gradient_of_the_objective(problem, particles, seed):
    """m times the directional derivative of fit + transport, by central differences.

    Gaps differ, so dt enters the fit, the regularisation and the pull of neighbours separately.
    """
    eta, h = 1e-3, 0.01
    moved = descend(problem, particles, eta=eta, steps=1, rng=Silent()).particles
    direction = np.random.default_rng(seed).normal(size=particles.shape)
    ahead, behind = (problem.objective(particles + s * h * direction) for s in (1, -1))
    difference = ahead.fit + ahead.transport - behind.fit - behind.transport
    along = ((particles - moved) / eta * direction).sum()
    assert along == pytest.approx(M * difference / (2 * h), rel=0.02)


def test_the_pull_of_neighbours_alone_is_the_gradient_of_transport(problem, particles):
    alone = Problem(problem.people, problem.gaps, lam=1e9, sigma=0.2, tau=0.3)
    eta, h = 1e-3, 0.01
    moved = descend(alone, particles, eta=eta, steps=1, rng=Silent()).particles
    direction = np.random.default_rng(5).normal(size=particles.shape)
    ahead, behind = (alone.objective(particles + s * h * direction) for s in (1, -1))
    slope = (ahead.transport - behind.transport) / (2 * h)
    along = ((particles - moved) / eta * direction).sum()
    assert along == pytest.approx(M * slope, rel=0.02)


def test_the_noise_is_that_of_the_fokker_planck_equation(problem, particles):
    """sqrt(2 eta tau), not the printed sqrt(eta tau); 2160 draws, six standard errors."""
    eta, rng = 1e-3, np.random.default_rng(0)
    quiet = descend(problem, particles, eta=eta, steps=1, rng=Silent()).particles
    noisy = [descend(problem, particles, eta=eta, steps=1, rng=rng).particles for _ in range(30)]
    expected = np.sqrt(2 * eta * problem.tau)
    assert np.std(np.stack(noisy) - quiet) == pytest.approx(expected, rel=0.09)


def test_the_potential_pulls_a_particle_as_the_dynamics_do(problem, particles):
    """V' at the particles of a time is their drift, but for the loop's unfinished Sinkhorn."""
    eta = 1e-3
    moved = descend(problem, particles, eta=eta, steps=1, rng=Silent()).particles
    drift = (particles - moved) / eta
    for i in range(T):
        found = potential_gradient(problem, particles, particles[i])[i]
        np.testing.assert_allclose(found, drift[i], atol=0.01 * np.abs(drift).max())


def test_every_step_is_seen_before_it_is_made(problem, particles):
    done = descend(problem, particles, eta=1e-3, steps=3, rng=np.random.default_rng(0))
    seen = done.seen
    assert len(seen) == 3
    np.testing.assert_allclose(seen[0], particles, atol=1e-6)
    assert not np.allclose(seen[-1], done.particles)
    assert done.plan_error < 0.01
