"""Fits near a subspace, and fits that look for one in vain: both within one plan."""

import numpy as np
import pytest

import privtraj as pt
from privtraj.measures.subspace.moments import SHARES
from privtraj.measures.windows.fit import MOTION

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


@pytest.mark.parametrize("d", [6, 16])
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
        (5, {}),
        (6, {"subspace": "off"}),
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


def test_people_with_several_records_are_paid_for_together_and_persist_in_all_features():
    times, points = pt.datasets.three_modes(1000, 3, 1, dimensions=8)
    data = {"person": np.tile(np.arange(1000), 3), "records_per_person": 3}
    model = fitted(points, times, steps=4, data=data)
    assert model.diagnostics["subspace"]["rank"] == 2
    first = model.certificate.ledger[0]
    assert (first["records"], first["together"]) == (3, True)
    assert len(model.diagnostics["persistence"]["memory"]) == 8
    assert model.verify() <= 8.0
