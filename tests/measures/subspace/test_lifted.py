"""From a subspace to all features: curves stay where they were, and everybody has an offset."""

import numpy as np
import pytest

from privtraj.measures.marginals import Marginals
from privtraj.measures.subspace.lifted import independent, lifted
from privtraj.measures.subspace.spectrum import Subspace
from privtraj.motion.reference import by_itself
from privtraj.privacy.rows import Projection

TIMES = np.array([0.0, 1.0, 3.0])


def plane(outside, d=8, half=0.4):
    axes = np.linalg.qr(np.random.default_rng(0).standard_normal((d, 2)))[0]
    return Subspace(Projection(np.full(d, 0.5), axes, half), np.full(d, outside))


def curves(m=400, bandwidth=0.0):
    """(3, m, 2) in the cube of the plane, each moving to the right."""
    start = np.random.default_rng(1).uniform(0.3, 0.6, (m, 2))
    particles = np.stack([start + np.array([0.05 * t, 0.0]) for t in TIMES])
    even = np.full((3, m), 1 / m)
    return Marginals(particles, even, np.full(3, bandwidth), np.full(3, 0.02), {})


def up(subspace, marginals, knots=TIMES):
    return lifted(subspace, marginals, knots, TIMES, by_itself(), np.random.default_rng(2))


def test_without_anything_outside_curves_are_only_turned_back():
    subspace, marginals = plane(0.0), curves()
    found, knots = up(subspace, marginals)
    np.testing.assert_array_equal(knots, TIMES)
    np.testing.assert_allclose(found.particles, subspace.projection.back(marginals.particles))
    np.testing.assert_allclose(found.resolution, 0.8 * marginals.resolution)


@pytest.mark.parametrize("bandwidth", [0.0, 0.02])
def test_particles_and_bandwidth_together_have_the_variance_outside(bandwidth):
    """Of 400 curves: a variance is within 30 % but for a chance of 3e-5, 8 features, fixed seed."""
    subspace = plane(1e-3)
    marginals = curves(bandwidth=bandwidth)
    found, _ = up(subspace, marginals)
    offsets = found.particles - subspace.projection.back(marginals.particles)
    axes = subspace.projection.axes
    outside = offsets - offsets @ axes @ axes.T
    off = np.diag(np.eye(8) - axes @ axes.T)
    total = outside.var(axis=1) + off * found.bandwidth[0] ** 2
    np.testing.assert_allclose(total, 1e-3, rtol=0.3)
    inside = (offsets @ axes).var(axis=1) + found.bandwidth[0] ** 2
    np.testing.assert_allclose(inside, max((0.8 * bandwidth) ** 2, 1e-6), rtol=0.3)


def test_everybody_keeps_their_offset_over_time():
    subspace, marginals = plane(1e-3), curves()
    found, _ = up(subspace, marginals)
    offsets = found.particles - subspace.projection.back(marginals.particles)
    np.testing.assert_allclose(offsets[0], offsets[2], atol=1e-12)


def test_particles_that_are_no_curves_become_those_of_least_action():
    subspace, marginals = plane(1e-3), curves()
    shuffled = marginals.particles.copy()
    shuffled[1] = shuffled[1][::-1]
    found, knots = up(subspace, marginals._replace(particles=shuffled), None)
    np.testing.assert_array_equal(knots, TIMES)
    steps = np.linalg.norm(np.diff(found.particles, axis=0), axis=2)
    assert steps.mean() == pytest.approx(0.8 * 0.05 * 1.5, rel=0.1)  # as little as anybody must


def test_features_are_independent_as_far_as_the_axes_allow():
    subspace = plane(1e-3)
    off = np.eye(8) - subspace.projection.axes @ subspace.projection.axes.T
    own = independent(subspace)
    assert (own >= 0).all()
    np.testing.assert_allclose(np.diag(off * own @ off), 1e-3, rtol=1e-6)
