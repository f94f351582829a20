"""What is public about features: never falling, written in steps, marginals kept."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import privtraj as pt
from privtraj.columns.conditions import Constraints, in_order
from privtraj.columns.kinds import Number
from privtraj.metrics import wasserstein2

ALL = arrays(np.float64, (7, 5, 2), elements=st.floats(0, 1))


@given(ALL)
def test_rising_features_never_fall_and_falling_ones_never_rise(paths):
    ordered = in_order(paths, np.array([1.0, -1.0]))
    assert (np.diff(ordered[:, :, 0], axis=1) >= 0).all()
    assert (np.diff(ordered[:, :, 1], axis=1) <= 0).all()


@given(ALL)
def test_others_are_as_they_were_and_the_ordered_stay_within_what_there_was(paths):
    ordered = in_order(paths, np.array([1.0, 0.0]))
    np.testing.assert_array_equal(ordered[:, :, 1], paths[:, :, 1])
    assert ordered[:, :, 0].min() >= paths[:, :, 0].min()
    assert ordered[:, :, 0].max() <= paths[:, :, 0].max()


def test_marginals_that_rise_are_kept():
    """Everybody grows, but shakes: the shaking goes, the law at each time remains."""
    rng = np.random.default_rng(0)
    rank, time = rng.standard_normal((800, 1)), np.linspace(0, 1, 12)
    paths = 0.3 + 0.4 * time + 0.06 * rank + 0.02 * rng.standard_normal((800, 12))
    ordered = in_order(paths[:, :, None], np.ones(1))[:, :, 0]
    assert (np.diff(paths, axis=1) < 0).any(axis=1).mean() > 0.5
    errors = [wasserstein2(ordered[:, [i]], paths[:, [i]]) for i in range(12)]
    assert max(errors) < 0.012  # a fifth of the spread
    assert np.corrcoef(ordered[:, 0], ordered[:, -1])[0, 1] > 0.8


def test_values_are_written_in_steps_inside_the_bounds():
    values = np.array([[0.0, 3.14159], [9.99, 2.71828]])
    columns = Number(0.3, 9.7, "visits"), Number(0.0, 5.0, "dose")
    made = Constraints.declared(None, {"visits": 1, "dose": 0.25})
    rounded = made.rounded(values, columns)
    np.testing.assert_array_equal(rounded, [[1.0, 3.25], [9.0, 2.75]])


def test_a_list_means_rising():
    made = Constraints.declared(["height"], None)
    assert made.monotone == {"height": "rising"}
    assert Constraints.declared("height", None) == made
    np.testing.assert_array_equal(made.directions(("weight", "height")), [0.0, 1.0])


def test_what_ages_goes_with_time_and_keeps_its_place():
    rng, clock = np.random.default_rng(0), np.array([0.0, 0.3, 1.0])
    paths = rng.uniform(0.2, 0.8, (50, 3, 2))
    aged = in_order(paths, np.array([1.0, 0.0]), clock, np.array([0.1, 0.0]))
    steps = np.diff(aged[:, :, 0], axis=1)
    np.testing.assert_allclose(steps, np.broadcast_to(0.1 * np.diff(clock), steps.shape))
    np.testing.assert_array_equal(aged[:, :, 1], paths[:, :, 1])
    assert abs(aged[:, :, 0].mean() - paths[:, :, 0].mean()) < 0.01


@pytest.fixture(scope="module")
def ward():
    """A fit of visits at a clinic of one site, with times that have a zone."""
    rng, n = np.random.default_rng(1), 2000
    days = pd.to_timedelta(rng.integers(0, 731, n), unit="D")
    table = pd.DataFrame(
        {
            "when": pd.Timestamp("2020-01-01", tz="Europe/Berlin") + days,
            "age_years": rng.uniform(20, 80, n),
            "site": "A",
        }
    )
    seen = pt.Snapshots.from_table(
        table,
        time="when",
        time_range=("2020-01-01", "2021-12-31"),
        bounds={"age_years": (0, 100)},
    )
    recipe = pt.TrajectorySynthesizer(8.0, seed=0, ageing=["age_years"], constant={"site": "A"})
    return recipe.fit(seen)


def test_ages_constants_and_time_zones_come_back_from_a_fit_and_its_file(ward, tmp_path):
    ward.save(tmp_path / "a.privtraj", not_private=True)
    times = ["2020-03-01", "2021-03-01T06:30"]
    for model in (ward, pt.load(tmp_path / "a.privtraj")):
        paths = model.sample(40, times, seed=3)
        frame = paths.to_frame()
        assert list(frame.columns) == ["path", "when", "site", "age_years"]
        assert str(frame["when"].dt.tz) == "Europe/Berlin"
        assert set(frame["site"]) == {"A"}
        assert frame["when"][1] == pd.Timestamp("2021-03-01T06:30", tz="UTC")
        older = np.diff(paths.values[:, :, 0], axis=1)
        inside = paths.values[:, 1, 0] < 100  # where ages end
        np.testing.assert_allclose(older[inside], 365.27 / 365.2425, atol=1e-3)
        paths.save(tmp_path / "a.csv", force=True)
        assert "07:30:00+0100" in (tmp_path / "a.csv").read_text()
    named = ward.with_constraints(zone={"when": "UTC"})
    assert str(named.sample(1, seed=0).to_frame()["when"].dt.tz) == "UTC"
    assert set(named.sample(1, seed=0).to_frame()["site"]) == {"A"}
