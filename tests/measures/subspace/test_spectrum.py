"""The rank of a noisy covariance, and what is left outside. False-alarm rates are stated."""

import math

import numpy as np
import pytest

from privtraj.measures.subspace.constants import REACH
from privtraj.measures.subspace.moments import Spread
from privtraj.measures.subspace.spectrum import Spectrum


def noisy(covariance, noise, seed):
    """With the noise of a Gaussian orthogonal ensemble."""
    draw = np.random.default_rng(seed).standard_normal(covariance.shape) * noise
    return covariance + (draw + draw.T) / math.sqrt(2)


def spectrum_of(covariance, noise=0.0, seed=0):
    d = len(covariance)
    return Spectrum.of(Spread(np.full(d, 0.5), noisy(covariance, noise, seed), noise))


def planted(d, values, rest=0.0, seed=0):
    axes = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, len(values))))[0]
    return axes * values @ axes.T + rest * np.eye(d), axes


@pytest.mark.parametrize("d", [6, 20, 50])
def test_noise_alone_hardly_ever_looks_like_a_direction(d):
    """Of 200 noise matrices 9 may have a rank above 0: at 1 in 80, one seed in 1,000 has more."""
    found = [spectrum_of(np.zeros((d, d)), 1e-3, seed).rank for seed in range(200)]
    assert np.count_nonzero(found) <= 9


@pytest.mark.parametrize(("d", "noise"), [(8, 1e-4), (20, 3e-4), (50, 3e-4), (50, 2e-5)])
def test_a_plane_is_found_under_noise_and_beside_little_variance(d, noise):
    covariance, axes = planted(d, np.array([0.05, 0.037]), rest=5e-4)
    spectrum = spectrum_of(covariance, noise)
    assert spectrum.rank == 2
    assert spectrum.is_low
    found = spectrum.subspace(2).projection
    assert found.half == pytest.approx(REACH * math.sqrt(0.0505), rel=0.1)
    assert np.linalg.svd(found.axes.T @ axes)[1].min() > 1 - 20 * d * (noise / 0.037) ** 2 - 1e-9


def test_the_variance_outside_is_what_the_axes_leave():
    covariance, _ = planted(12, np.array([0.05, 0.03]))
    own = np.linspace(0, 4e-4, 12)
    subspace = spectrum_of(covariance + np.diag(own)).subspace(2)
    off = np.eye(12) - subspace.projection.axes @ subspace.projection.axes.T
    np.testing.assert_allclose(
        subspace.outside, np.diag(off @ (covariance + np.diag(own)) @ off), atol=1e-12
    )
    assert (spectrum_of(covariance, 1e-3).subspace(2).outside >= 0).all()


def test_under_noise_people_are_as_wide_in_all_directions_outside_and_not_along_the_axes():
    """Axes along two features: nothing of these is outside. Noise moves a variance by 2e-4, and in
    the mean of six by less than that but for a chance of 1 in 70."""
    covariance = np.diag([0.05, 0.037] + [5e-4] * 6)
    outside = spectrum_of(covariance, 1.4e-4).subspace(2).outside
    assert (outside[:2] < 2e-5).all()
    np.testing.assert_allclose(outside[2:], outside[2:].mean(), rtol=0.05)
    assert outside[2:].mean() == pytest.approx(5e-4, abs=2e-4)


@pytest.mark.parametrize(("d", "low"), [(8, False), (20, True)])
def test_few_features_are_measured_all_where_noise_may_hide_a_direction(d, low):
    covariance, _ = planted(d, np.array([0.05, 0.037]))
    spectrum = spectrum_of(covariance, 0.022 / (2.4 * math.sqrt(d)))  # hides .25 of the variance
    assert 1 <= spectrum.rank <= 2
    assert spectrum.edge == pytest.approx(0.25 * 0.087, rel=0.02)
    assert spectrum.is_low == low


def test_a_subspace_has_at_least_four_features_for_an_axis():
    for d, low in ((7, False), (8, True)):
        covariance, _ = planted(d, np.array([0.05, 0.037]))
        assert spectrum_of(covariance, 1e-5).is_low == low


@pytest.mark.parametrize(
    "values",
    [[0.01] * 8, [0.05, 0.02, 0.015, 0.01, 0.008, 0.006, 0.003, 0.002], [1e-9] * 8],
    ids=["round", "falling slowly", "nothing"],
)
def test_people_who_fill_their_features_are_in_no_subspace(values):
    spectrum = spectrum_of(np.diag(values), 1e-5)
    assert not spectrum.is_low
    assert spectrum.describe(None)["rank"] is None
    assert 1 <= spectrum.looked_along.rank <= 3
    assert spectrum.looked_along.half > 0
