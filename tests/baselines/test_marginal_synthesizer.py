"""AIM and MST by OpenDP: run where they are installed, explained where they are not."""

import sys

import numpy as np
import pytest

import methods
from methods import MarginalSynthesizer, in_cells, places_of
from mixed_clinic import two_groups
from privtraj.base.errors import InputError
from privtraj.columns.kinds import Axes

pytestmark = pytest.mark.thorough


def test_a_missing_package_is_named_in_one_sentence(monkeypatch, snapshots_of, moving_blobs):
    monkeypatch.setitem(sys.modules, "mbi", None)
    with pytest.raises(InputError, match=r"pip install 'privtraj\[aim\]'$"):
        MarginalSynthesizer().fit(snapshots_of(list(moving_blobs(3, 20, 2))))


@pytest.mark.parametrize(("adjacency", "delta"), [("add-remove", 1e-5), ("replace-one", 0.0)])
def test_a_fit_says_that_it_was_outside_the_guard(adjacency, delta, snapshots_of, moving_blobs):
    pytest.importorskip("mbi")
    clouds = moving_blobs(3, 200, 2)
    model = MarginalSynthesizer(
        2.0, delta, adjacency=adjacency, algorithm="MST", cells=5, points=100
    ).fit(snapshots_of(list(clouds)))
    certificate = model.certificate
    assert certificate.verify() <= 2
    (entry,) = certificate.ledger
    assert entry["mechanism"] == "opaque"
    assert "outside the guard" in entry["what"]
    assert "OpenDP" in certificate.noise
    np.testing.assert_allclose(model.marginals.mean(axis=1), clouds.mean(axis=1), atol=0.15)


def test_mst_divides_its_budget_without_going_beyond_it(snapshots_of, moving_blobs):
    """Nine columns: OpenDP's own shares for eight selections add up to one ulp more than it has."""
    pytest.importorskip("mbi")
    clouds = list(moving_blobs(2, 30, 8))
    settings = {"algorithm": "MST", "cells": 2, "points": 20}
    model = MarginalSynthesizer(1.0, 1e-5, **settings).fit(snapshots_of(clouds))
    assert model.particles.shape == (2, 20, 8)


def test_shares_of_mst_are_as_they_were_afterwards():
    pytest.importorskip("mbi")
    dp, _ = methods._opendp()
    theirs = sys.modules[dp.mbi.MST.__module__]
    before = theirs.prior
    with methods._room_to_round(dp):
        assert before(1.0) * (1 - 1e-11) < theirs.prior(1.0) < before(1.0)
    assert theirs.prior is before


@pytest.mark.parametrize("times", ["column", "each"])
def test_rows_of_mixed_columns_keep_their_levels(times):
    pytest.importorskip("mbi")
    snapshots = two_groups(1500)
    settings = {"algorithm": "MST", "times": times, "cells": 5, "points": 200}
    model = MarginalSynthesizer(30.0, 1e-5, **settings).fit(snapshots)
    ill = model.particles[..., 1] > 0.5
    assert set(np.unique(model.particles[..., 1])) == {0.25, 0.75}
    assert ill.mean() == pytest.approx(0.39, abs=0.06)
    sugar = model.particles[..., 0] * 10 + 3.5
    assert sugar[ill].mean() - sugar[~ill].mean() == pytest.approx(3.2, abs=0.6)


def test_places_and_points_of_mixed_columns_agree():
    """Needs no OpenDP: cells of five and levels of three, there and back."""
    axes = Axes((0, 3), (False, False), (False, False))
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.random(50), (rng.integers(3, size=50) + 0.5) / 3])
    places = places_of(points, axes.sides(5))
    back = in_cells([(places, np.ones(50))], 5, 50, rng, axes)
    found = places_of(back.particles[0], axes.sides(5))
    np.testing.assert_array_equal(np.sort(found @ [10, 1]), np.sort(places @ [10, 1]))
    assert back.resolution == pytest.approx(0.2 / 12**0.5)


@pytest.mark.slow
def test_what_three_columns_have_in_common_is_kept(snapshots_of):
    """AIM that has measured all pairs of a time and two columns, with hardly any noise.

    2,000 drawn people in 32 cells are off by .05 or so; OpenDP's rounded rows would be by more.
    """
    pytest.importorskip("mbi")
    rng = np.random.default_rng(0)
    means = 0.3 + 0.4 * rng.random((2, 1500, 1))
    clouds = np.clip(means + 0.1 * rng.standard_normal((2, 1500, 2)), 0, 0.999)
    clouds[1] = 1 - clouds[1]
    settings = {"cells": 4, "points": 2000, "options": {"queries": 2, "rounds": 8}}
    model = MarginalSynthesizer(50.0, 1e-5, **settings).fit(snapshots_of(list(clouds)))
    for made, real in zip(model.particles, clouds, strict=True):
        found, truth = (
            np.bincount(places_of(x, (4, 4)) @ [4, 1], minlength=16) / len(x) for x in (made, real)
        )
        assert np.abs(found - truth).sum() / 2 < 0.08
