"""Angles: hours of the day, as a column whose ends meet, from the table to the paths."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privtraj as pt
from privtraj.columns.declared import declared_columns
from privtraj.columns.kinds import (
    Angle,
    decoded,
    encoded,
    from_dict,
    to_dict,
    to_unit,
)
from privtraj.metrics.columns import unit_points
from privtraj.report.people import page_sampler, sampled

HOUR = Angle(24, "hour")
finite = st.floats(-1e6, 1e6)


def people(n=4000, seed=0):
    """Who come at nine in the evening at first, and at three in the night at last."""
    rng = np.random.default_rng(seed)
    time = rng.uniform(0, 10, n)
    hour = (21 + 0.6 * time + 0.7 * rng.standard_normal(n)) % 24
    return pd.DataFrame({"t": time, "hour": hour, "w": 50 + 2 * time + rng.standard_normal(n)})


def snapshots(table, angle=None, **more):
    columns = {"hour": angle or Angle(24)}
    return pt.Snapshots.from_table(
        table, time="t", bounds={"w": (0, 100)}, columns=columns, time_range=(0, 10), **more
    )


@pytest.fixture(scope="module")
def model():
    synthesizer = pt.TrajectorySynthesizer(epsilon=4.0, delta=1e-5, seed=1)
    return synthesizer.fit(snapshots(people(), bins=6))


# The circle ------------------------------------------------------------------------------------


def way(start, end):
    """The short way round, with a sign."""
    return np.mod(np.asarray(end) - start + 12, 24) - 12


def mean(hours, axis=None):
    turns = np.exp(2j * np.pi * np.asarray(hours) / 24).mean(axis=axis)
    return np.mod(np.angle(turns) * 12 / np.pi, 24)


@given(finite)
def test_what_is_encoded_is_decoded(value):
    columns = declared_columns(None, None, columns={"hour": Angle(24, missing=True)})
    assert [column.name for column in columns] == ["hour", "hour sine", "hour missing"]
    there = encoded(columns, np.array([[value], [np.nan]]))
    unit = to_unit(columns, there)
    assert unit.min() >= 0
    assert unit.max() <= 1
    back = decoded(columns, there)
    assert abs(way(back[0, 0], value)) < 1e-6
    assert np.isnan(back[1, 0])


def test_scores_measure_around_the_circle():
    columns = declared_columns(None, None, columns={"hour": Angle(24)})
    late, early, noon = (unit_points(np.full((50, 1), h), columns) for h in (23.5, 0.5, 12.0))
    near, far = pt.metrics.wasserstein2(late, early), pt.metrics.wasserstein2(late, noon)
    assert near < 0.15 * far


@pytest.mark.parametrize("period", [0, -24, np.inf, np.nan, "24", True])
def test_a_period_is_a_positive_number(period):
    with pytest.raises(pt.InputError, match="the period of an angle must be a number above 0"):
        Angle(period)


def test_a_column_is_the_same_after_a_file():
    for column in (*declared_columns(None, None, columns={"hour": Angle(24, missing=True)}),):
        assert from_dict(json.loads(json.dumps(to_dict(column)))) == column
    form = {"hour": {"kind": "angle", "period": 24}}
    assert declared_columns(None, None, columns=form) == declared_columns(
        None, None, columns={"hour": Angle(24)}
    )
    with pytest.raises(pt.InputError, match="needs 'period'"):
        declared_columns(None, None, columns={"hour": {"kind": "angle"}})


# People ----------------------------------------------------------------------------------------


def test_paths_go_through_midnight(model):
    at = np.linspace(0, 10, 21)
    paths = model.sample(500, times=at, seed=0)
    assert paths.features == ("w", "hour")
    hours = paths.values[..., 1]
    assert hours.min() >= 0
    assert hours.max() < 24
    assert np.abs(way(hours[:, :-1], hours[:, 1:])).max() < 3  # nobody passes noon
    assert np.abs(way(21 + 0.6 * at, mean(hours, axis=0))).max() < 0.5
    marginal = mean(model.marginals[..., 1], axis=1)
    assert np.abs(way(21 + 0.6 * model.times, marginal)).max() < 0.5


def test_conditions_go_through_midnight(model):
    hours = model.sample(50, times=[4.0, 6.0], where={"hour": (22, 3)}, seed=0).values[..., 1]
    assert ((hours >= 22) | (hours <= 3)).all()


def test_hours_are_written_below_the_period(model):
    paths = model.with_constraints(precision={"hour": 1}).sample(300, times=[5.0], seed=0)
    hours = set(paths.to_frame()["hour"])
    assert 0 in hours
    assert hours <= set(range(24))
    with pytest.raises(pt.InputError, match="'hour', which is an angle"):
        model.with_constraints(monotone=["hour"])


def test_a_model_with_an_angle_is_the_same_after_a_file(model, tmp_path):
    model.save(tmp_path / "m.privtraj", not_private=True)
    again = pt.load(tmp_path / "m.privtraj")
    assert again.columns == model.columns
    at = [0.0, 5.0]
    np.testing.assert_array_equal(
        again.sample(20, times=at, seed=3).values, model.sample(20, times=at, seed=3).values
    )
    assert model.certificate.to_dict()["public_inputs"]["bounds"]["hour"] == {
        "kind": "angle",
        "period": 24,
    }


# Tables ----------------------------------------------------------------------------------------


def test_rows_are_the_same_from_every_source(tmp_path):
    table = people(200)
    table.loc[3, "hour"] += 48  # the same hour of another day
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "folder").mkdir()
    table.to_parquet(tmp_path / "folder" / "t.parquet")
    first = snapshots(table)._rows
    for name in ("t.csv", "t.parquet", "folder"):
        rows = snapshots(tmp_path / name)._rows
        np.testing.assert_array_equal(np.sort(rows.points, axis=0), np.sort(first.points, axis=0))
        assert rows.digest == first.digest


def test_an_hour_may_be_missing():
    table = people(300)
    table.loc[:99, "hour"] = np.nan
    with pytest.raises(pt.InputError, match="100 of 300 records have missing values in 'hour'"):
        snapshots(table)
    rows = snapshots(table, Angle(24, missing=True))._rows
    assert (rows.points[:100, 1:3] == 0.5).all()
    assert (rows.points[:, 3] > 0.5).sum() == 100


def test_the_page_shows_hours_and_can_draw_them(model):
    shown = sampled(model)
    assert shown.bounds.tolist() == [[0, 100], [0, 24]]
    hours = 24 * shown.people[:, 0, 1]  # at the start, around nine in the evening
    assert abs(way(21, mean(hours))) < 0.5
    hour, sine = page_sampler(model, 0)["columns"][1:]
    assert (hour["sine"], hour["flag"], hour["ends"]) == (2, None, [0, 24])
    assert (sine["name"], sine["of"]) == ("", "hour")
