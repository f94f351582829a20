"""Many features near a subspace: its moments, its rank, the way back, and whole fits."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privtraj as pt
from privtraj.measures import subspace as moments
from privtraj.measures.base import Marginals
from privtraj.measures.subspace import (
    DISTANCES,
    MEAN,
    MOMENTS,
    REACH,
    SHARES,
    SHELL_RATIO,
    SHELLS,
    Spectrum,
    Spread,
    Subspace,
    independent,
    lifted,
    measured_spread,
    moment_events,
    within,
)
from privtraj.measures.windows import MOTION
from privtraj.motion.reference import USUAL
from privtraj.privacy.events import Person
from privtraj.privacy.guard import Guard, Projection
from privtraj.privacy.ledger import Ledger

BUDGET = (1.0, 1e-5, "add-remove")


@given(st.integers(2, 30), st.integers(0, 99))
def test_a_record_adds_vectors_of_the_norms_that_the_clips_are_made_of(d, seed):
    rng = np.random.default_rng(seed)
    points, centre = rng.random((20, d)).astype(np.float32), rng.random(d).astype(np.float32)
    away = np.linalg.norm(points - centre, axis=1)
    one = math.sqrt(d) / 4
    places = np.asarray(moments._places(points, (one,)))
    assert np.linalg.norm(places, axis=1).max() <= math.sqrt(d / 4 + one**2) + 1e-5
    edges = np.float32(math.sqrt(d) / 2 * SHELL_RATIO ** np.arange(SHELLS)[::-1])
    shells = np.asarray(moments._shells(points, (centre, edges)))
    np.testing.assert_array_equal(np.linalg.norm(shells, axis=1), 1.0)
    np.testing.assert_array_equal(shells.argmax(axis=1), (away[:, None] > edges).sum(axis=1))
    second = np.asarray(moments._moments(points, (centre, np.float32(0.3))))
    np.testing.assert_allclose(
        np.linalg.norm(second, axis=1), np.hypot(0.3 * away, away**2), rtol=1e-4
    )


def spread_of(points, snapshots_of, source, epsilon=1.0, times=2):
    """Released of points (n, d) at several times, and the ledger that paid."""
    d = points.shape[1]
    snapshots = snapshots_of(np.array_split(points, times), d)
    guard = snapshots.guarded(Guard, Ledger(epsilon, 1e-5), source)
    events = moment_events(epsilon, 1e-5, "add-remove", snapshots.shape.person)
    return measured_spread(guard, events), guard.ledger, events


def cloud(n, d, seed=0):
    rng = np.random.default_rng(seed)
    mixed = rng.standard_normal((d, d)) * 0.1 / math.sqrt(d)
    return np.clip(0.3 + rng.standard_normal((n, d)) @ mixed, 0, 1)


def test_without_noise_the_spread_is_that_of_everybody(snapshots_of, silent):
    points = cloud(3000, 7)
    spread, ledger, events = spread_of(points, snapshots_of, silent())
    np.testing.assert_allclose(spread.mean, points.mean(axis=0), atol=2e-3)
    exact = np.cov(points.T, bias=True)
    # one in ten at most is shortened to the clip: by a few percent of the variance
    np.testing.assert_allclose(spread.covariance, exact, atol=0.1 * np.abs(exact).max())
    assert [event.what for event, _ in ledger.events] == [MEAN, DISTANCES, MOMENTS]
    assert [event.ideal() for event, _ in ledger.events] == list(events.values())


def test_noise_of_the_covariance_is_as_stated(snapshots_of, silent):
    """195 numbers beside the diagonal: their mean square is within 40 % of the stated variance but
    for a chance below 1e-4, as a chi-squared of 190 degrees has."""
    from privtraj.privacy import noise

    points = cloud(2000, 20)
    exact, *_ = spread_of(points, snapshots_of, silent())
    noisy, *_ = spread_of(points, snapshots_of, noise.SeededSource(5))
    beside = np.triu_indices(20, 1)
    ratio = np.mean((noisy.covariance - exact.covariance)[beside] ** 2) / noisy.noise**2
    assert 0.6 < ratio < 1.4
    # and the clip is that of the records: a second moment of three times the farthest at most
    away = np.linalg.norm(points - points.mean(axis=0), axis=1)
    z = moment_events(*BUDGET, Person())[MOMENTS].noise_multiplier
    assert noisy.noise < 3 * np.quantile(away, 0.99) ** 2 * z / len(points)


def test_the_radius_is_that_of_all_but_a_few():
    edges = np.array([0.1, 0.2, 0.4])
    assert within(np.array([50.0, 35.0, 15.0, 0.0]), edges) == 0.4
    assert within(np.array([50.0, 46.0, 4.0, 0.0]), edges) == 0.2
    assert within(np.array([0.0, 0.0, 0.0, 9.0]), edges) == 0.4
    assert within(np.array([-3.0, 90.0, -8.0, -1.0]), edges) == 0.2
    assert within(np.zeros(4), edges) == 0.1


def test_the_sums_cost_their_shares_of_what_one_sum_could_tell():
    events = moment_events(*BUDGET, Person())
    loud = {name: event.information for name, event in events.items()}
    assert loud.keys() == SHARES.keys()
    for name, share in SHARES.items():
        assert loud[name] / share == pytest.approx(loud[MEAN] / SHARES[MEAN])
    several = moment_events(*BUDGET, Person(3, False))[MEAN]
    assert several.person == Person(3, True)  # records of one person meet in all of time
    assert several.noise_multiplier == pytest.approx(3 * events[MEAN].noise_multiplier)


def test_a_pure_guarantee_has_no_gaussian_sums():
    assert moment_events(1.0, 0.0, "add-remove", Person()) == {}


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
    """Of 200 noise matrices 7 may have a rank above 0: at 1 in 100, one seed in 900 has more."""
    found = [spectrum_of(np.zeros((d, d)), 1e-3, seed).rank for seed in range(200)]
    assert np.count_nonzero(found) <= 7


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


@pytest.mark.parametrize("d", [8, 20])
@pytest.mark.parametrize(("share", "low"), [(0.4, True), (0.6, False)])
def test_all_features_are_measured_where_noise_may_hide_most_of_their_variance(d, share, low):
    covariance, _ = planted(d, np.array([0.08, 0.007]))
    noise = share * 0.087 / (2 * (1 + d ** (-2 / 3)) * math.sqrt(d))
    spectrum = replace(spectrum_of(covariance), noise=noise)
    assert spectrum.rank == 1
    assert spectrum.edge == pytest.approx(share * 0.087)
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
    return lifted(subspace, marginals, knots, TIMES, USUAL, np.random.default_rng(2))


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


pytestmark = pytest.mark.slow

BOX = (-1.5, 1.5)


def fitted(points, times, epsilon=8.0, delta=1e-5, **options):
    """A model, and the snapshots."""
    given = options.pop("data", {})
    snapshots = pt.Snapshots.from_arrays(
        times, points, bounds=[BOX] * points.shape[1], bins=np.unique(times), **given
    )
    return pt.TrajectorySynthesizer(epsilon, delta, seed=3, **options).fit(snapshots)


def released(model):
    return [entry["what"] for entry in model.certificate.ledger]


def filling(n, d, seed=0):
    """Records that fill d features, at 3 times."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.2, 1.2, (n, d)), np.repeat([0.0, 0.5, 1.0], n // 3)


@pytest.fixture(scope="module")
def near_a_plane():
    times, points = pt.datasets.three_modes(1500, 3, 1, dimensions=20)
    return fitted(points, times)


def test_a_plane_is_found_and_measured(near_a_plane):
    model = near_a_plane
    found = model.diagnostics["subspace"]
    assert found["rank"] == found["above_noise"] == 2
    assert 0.8 < found["inside"] <= 1
    assert len(found["spectrum"]) == len(found["outside"]) == 20
    assert model.settings["measure"] == "gradients"
    assert released(model)[:3] == list(SHARES)
    assert MOTION in released(model)  # though a look in 20 features would have 2^20 cells
    assert model.verify() <= 8.0
    assert model.certificate.epsilon == pytest.approx(8.0, rel=1e-3)


def test_groups_in_the_plane_are_kept_and_the_rest_has_its_variance(near_a_plane):
    """Squared W2 to fresh people, all 20 features: that of the plane plus the variance outside,
    times 1.5. Without the plane it is three times as much."""
    model = near_a_plane
    times, points = pt.datasets.three_modes(600, 3, 99, dimensions=20)
    errors = [
        pt.metrics.wasserstein2(cloud, points[times == t]) ** 2
        for cloud, t in zip(model.marginals, np.unique(times), strict=True)
    ]
    outside = 18 * pt.datasets.THREE_MODES_VARIANCE
    assert np.mean(errors) < 1.5 * (0.003 + outside)
    people = model.sample(2000, seed=1).values
    _, axes = np.linalg.eigh(np.cov(points.T))
    off = people - people.mean(axis=0) @ axes[:, -2:] @ axes[:, -2:].T
    spread = (off @ axes[:, :-2]).var(axis=0)
    assert spread.mean() == pytest.approx(pt.datasets.THREE_MODES_VARIANCE, rel=0.3)


def test_the_model_is_a_model_like_any_other(near_a_plane, tmp_path):
    model = near_a_plane
    model.save(tmp_path / "plane.privtraj", not_private=True)
    again = pt.load(tmp_path / "plane.privtraj")
    assert again.verify() == model.certificate.epsilon
    np.testing.assert_array_equal(again.sample(5, seed=2).values, model.sample(5, seed=2).values)
    assert again.sample(5, times=[0.25, 0.6], seed=2).values.shape == (5, 2, 20)
    assert np.abs(model.sample(200, seed=1).values).max() <= 1.5


@pytest.mark.thorough
@pytest.mark.parametrize("d", [8, 16])
def test_people_who_fill_their_features_are_measured_in_all_of_them(d):
    points, times = filling(900, d)
    model = fitted(points, times, steps=4)
    assert model.diagnostics["subspace"]["rank"] is None
    assert released(model)[:3] == list(SHARES)
    assert MOTION in released(model)
    assert model.verify() <= 8.0
    assert model.certificate.epsilon == pytest.approx(8.0, rel=1e-3)


def test_axes_that_were_set_are_counted():
    times, points = pt.datasets.three_modes(300, 3, 1, dimensions=5)
    model = fitted(points, times, subspace=2)
    assert model.settings["measure"] == "counts"
    assert model.diagnostics["subspace"]["rank"] == 2
    assert model.verify() <= 8.0


@pytest.mark.parametrize(
    ("d", "options"),
    [
        pytest.param(5, {}, marks=pytest.mark.thorough),
        pytest.param(6, {"subspace": "off"}, marks=pytest.mark.thorough),
        (6, {"delta": 0.0, "cells": 2}),
        (6, {"measure": "counts", "cells": 2}),
    ],
    ids=["few features", "off", "a pure guarantee", "counts"],
)
def test_nothing_is_spent_where_nobody_looks(d, options):
    points, times = filling(300, d)
    model = fitted(points, times, steps=4, **options)
    assert not set(released(model)) & set(SHARES)
    assert "subspace" not in model.diagnostics


@pytest.mark.thorough
def test_people_with_several_records_are_paid_for_together_and_persist_in_all_features():
    times, points = pt.datasets.three_modes(1000, 3, 1, dimensions=8)
    data = {"person": np.tile(np.arange(1000), 3), "records_per_person": 3}
    model = fitted(points, times, steps=4, data=data)
    assert model.diagnostics["subspace"]["rank"] == 2
    first = model.certificate.ledger[0]
    assert (first["records"], first["together"]) == (3, True)
    assert len(model.diagnostics["persistence"]["memory"]) == 8
    assert model.verify() <= 8.0


class Fixed:
    """A guard that answers with what a test wants, and remembers what it was asked."""

    def __init__(self, d, answers):
        self.n_features, self.asked, self._answers = d, [], iter(answers)

    def in_slabs(self, windows):
        return self

    def ask(self, release):
        self.asked.append(release.question)
        return next(self._answers)[None]


def fixed_spread(d, sums, counted):
    """The spread, and the questions, of given sums of places and of a given number of records."""
    shells = np.append(np.zeros(SHELLS), [0.0])
    shells[-2] = 1.0  # all of them just inside the farthest corner
    moments = np.zeros(d + d * (d + 1) // 2)
    guard = Fixed(d, [np.append(sums, counted), shells, moments])
    return measured_spread(guard, moment_events(*BUDGET, Person())), guard.asked


@pytest.mark.parametrize("d", [6, 20])
def test_clips_are_the_largest_norms_in_the_box_or_within_the_radius(d):
    _, (mean, shells, spread) = fixed_spread(d, np.zeros(d), 1.0)
    corner = np.ones((1, d), np.float32)
    (one,), ((_, edges)) = mean.parameters, shells.parameters
    assert one[0] == pytest.approx(math.sqrt(d) / 4)
    longest = np.linalg.norm(moments._places(corner, one[None]))
    assert mean.clip[0] == pytest.approx(float(longest), rel=1e-6)
    assert shells.clip[0] == 1
    assert edges[0, -1] == pytest.approx(math.sqrt(d) / 2)  # from the middle to a corner
    centre, weight = (leaf[0] for leaf in spread.parameters)
    farthest = centre + edges[0, -1] / math.sqrt(d)
    longest = np.linalg.norm(moments._moments(np.float32(farthest)[None], (centre, weight)))
    assert spread.clip[0] == pytest.approx(float(longest), rel=1e-5)


@pytest.mark.parametrize("counted", [0.0, -50.0])
def test_a_count_that_is_all_noise_leaves_a_mean_inside_the_box(counted):
    spread, _ = fixed_spread(6, np.array([90.0, -90, 0, 0, 0, 0]), counted)
    assert np.isfinite(spread.covariance).all()
    assert spread.mean.min() == 0
    assert spread.mean.max() == 1
    assert spread.noise > 0
