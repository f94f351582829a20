"""People of the benchmarks: what is declared of tables is there, and the truth is known.

Seeds are fixed; tolerances are four standard errors or more, so that one of these would fail at
another seed with a chance below 1e-3.
"""

import numpy as np
import pytest
from script_runs import imported

import privtraj as pt

pytestmark = pytest.mark.thorough

with (
    imported("benchmarks", "columns") as tables,
    imported("benchmarks", "journeys") as journeys,
):
    EXAMPLES = (
        tables.clinic_visits,
        tables.many_columns,
        tables.sugar_groups,
        tables.one_long_category,
        tables.hospital_visits,
        tables.emergency_stays,
    )


@pytest.mark.parametrize("make", EXAMPLES)
def test_a_table_can_be_declared_as_it_says(make):
    example = make(500, seed=1)
    snapshots = pt.Snapshots.from_table(example.table, **example.declared, bins=4)
    names = [name for name in snapshots.features if not name.endswith(" missing")]
    assert names == list(example.columns)
    assert snapshots.axes.mixed
    assert example.table.num_rows == 500


@pytest.mark.parametrize("make", EXAMPLES)
def test_the_same_seed_has_the_same_people(make):
    assert make(50, seed=3).table.equals(make(50, seed=3).table)
    assert not make(50, seed=3).table.equals(make(50, seed=4).table)


CODES = tables.CLINIC_COLUMNS["diagnosis"]["values"]
RARE = [CODES.index(code) for code in tables.CLINIC_RARE]


# The clinic -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def paths():
    return tables.clinic_paths(40_000, [0.0, 0.5, 2.0], seed=1)


def test_shares_of_diagnoses_are_those_of_the_jump_process(paths):
    expected = tables.clinic_shares([0.0, 0.5, 2.0])
    np.testing.assert_allclose(expected.sum(axis=1), 1)
    for codes, shares in zip(paths[:, :, 1].T, expected, strict=True):
        found = np.bincount(codes.astype(int), minlength=12) / len(codes)
        np.testing.assert_allclose(found, shares, atol=0.01)
        assert found[RARE].sum() == pytest.approx(0.05, abs=0.005)


def test_sex_stays_and_diagnoses_jump(paths):
    assert (paths[:, :, 0] == paths[:, :1, 0]).all()
    first, later = tables.clinic_shares([0.0, 1e9])  # where people start, and where jumps lead
    seen = (paths[:, 0, 1] != paths[:, 1, 1]).mean()
    assert seen == pytest.approx((1 - np.exp(-0.25)) * (1 - first @ later), abs=0.01)


def test_visits_have_the_law_of_paths_at_their_times():
    table = tables.clinic_visits(40_000, seed=2).table.to_pandas()
    late = table[table["time"] > 1.9]
    paths = tables.clinic_paths(20_000, [1.95], seed=3)[:, 0]
    for k, name in enumerate(("pressure", "bmi", "hba1c"), start=3):
        spread = paths[:, k].std()
        assert late[name].mean() == pytest.approx(paths[:, k].mean(), abs=4 * spread / 40)
        assert late[name].std() == pytest.approx(spread, rel=0.1)
    ill = late[late["diagnosis"] == "E11"]
    assert ill[["bmi", "hba1c"]].corr().iloc[0, 1] == pytest.approx(0.5, abs=0.15)
    assert late["smoker"].mean() == pytest.approx(paths[:, 2].mean(), abs=0.04)


@pytest.mark.parametrize("times", [[], [1.0, 0.5], [-1.0], [3.0], [[1.0]]])
def test_years_of_the_clinic_are_checked(times):
    with pytest.raises(ValueError, match="years from 0 to 2"):
        tables.clinic_paths(5, times)


# The others -----------------------------------------------------------------------------------


def test_nearly_nobody_is_between_two_groups():
    table = tables.sugar_groups(60_000, seed=1).table.to_pandas()
    between = table["hba1c"].between(*tables.SUGAR_GAP)
    assert between.mean() == pytest.approx(0.014, abs=0.002)
    found = table["hba1c"].corr(table["bmi"])
    assert found == pytest.approx(tables.SUGAR_CORRELATION, abs=0.02)
    assert (table["diabetes"] == (table["hba1c"] > 6.5)).mean() > 0.99


def test_twelve_columns_go_together_and_change():
    table = tables.many_columns(20_000, seed=1).table.to_pandas()
    assert len(tables.MANY_COLUMNS) == 12
    assert table["sugar"].isna().mean() == pytest.approx(0.075, abs=0.015)
    assert table["insurance"].isna().mean() == pytest.approx(0.04, abs=0.006)
    stage = table["stage"].cat.codes
    assert stage.corr(table["age"]) > 0.4
    assert stage[table["time"] > 2].mean() > stage[table["time"] < 1].mean() + 0.3
    for name in ("age", "weight", "pressure", "sugar"):
        low, high = tables.MANY_COLUMNS[name]["bounds"]
        assert table[name].dropna().between(low, high).mean() > 0.98


def test_ranks_of_a_long_category_are_turned_over():
    table = tables.one_long_category(200_000, seed=1).table.to_pandas()
    harmonic = (1 / np.arange(1, 201)).sum()
    for part, common in ((table["time"] < 0.05, "C000"), (table["time"] > 0.95, "C199")):
        share = (table.loc[part, "code"] == common).mean()
        assert share == pytest.approx(0.975 / harmonic, abs=0.02)
    assert table["code"].nunique() == 200


# Smooth journeys ------------------------------------------------------------------------------


def test_a_rotation_is_rigid_and_its_cloud_is_not_round():
    times = np.array([0.0, 1 / 3, 1.0])
    paths = journeys.process_paths("rotation", 20_000, times, seed=1, dimensions=3)
    start, third, end = np.moveaxis(paths, 1, 0)
    np.testing.assert_allclose(start.mean(axis=0), [0.7, 0, 0], atol=0.006)  # four standard errors
    np.testing.assert_allclose(start.std(axis=0), [0.2, 0.1, 0.15], rtol=0.02)
    np.testing.assert_allclose(third[:, :2], np.column_stack([-start[:, 1], start[:, 0]]))
    np.testing.assert_allclose(end[:, :2], np.column_stack([start[:, 1], -start[:, 0]]))
    np.testing.assert_array_equal(end[:, 2], start[:, 2])
    assert np.linalg.norm(paths[..., :2], axis=2).max() <= 1.5


def test_inertia_has_the_moments_of_its_exact_transitions():
    times = np.array([0.1, 0.25, 0.7])
    paths = journeys.process_paths("inertia", 40_000, times, seed=2)
    for i, t in enumerate(times):
        mean = journeys.INERTIA_START * journeys.inertia_transition(t)[0, 0]
        np.testing.assert_allclose(paths[:, i].mean(axis=0), [mean, 0], atol=0.004)
    np.testing.assert_allclose(paths.std(axis=0), journeys.INERTIA_SPREAD, rtol=0.015)
    for i, j in ((0, 1), (1, 2), (0, 2)):
        expected = journeys.inertia_transition(times[j] - times[i])[0, 0]
        for k in range(2):
            found = np.corrcoef(paths[:, i, k], paths[:, j, k])[0, 1]
            assert found == pytest.approx(expected, abs=0.02)


def test_the_transition_of_inertia_is_the_damped_oscillation():
    """x(h) = e^(-h) (cos wh + sin(wh) / w) from rest, w^2 = 16 - 1."""
    w = np.sqrt(15.0)
    for h in (0.0, 0.3, 1.0):
        expected = np.exp(-h) * (np.cos(w * h) + np.sin(w * h) / w)
        assert journeys.inertia_transition(h)[0, 0] == pytest.approx(expected)


def test_inertia_is_smooth():
    """Steps of a smooth path shrink with the lag, those of Brownian motion with its root."""
    paths = journeys.process_paths("inertia", 3000, [0.5, 0.501, 0.51], seed=3)
    short, long = (np.abs(paths[:, i] - paths[:, 0]).mean() for i in (1, 2))
    assert long / short == pytest.approx(10, rel=0.1)


def test_vehicles_move_while_their_population_does_not():
    paths = journeys.process_paths("vehicles", 8000, [0.0, 0.5, 1.0], seed=4)
    assert np.ptp(paths.mean(axis=0), axis=0).max() < 0.03  # four standard errors
    assert np.ptp(paths.std(axis=0), axis=0).max() < 0.03
    assert np.linalg.norm(paths[:, 2] - paths[:, 0], axis=1).mean() > 0.7


def test_vehicles_ease_in_and_out_and_stop():
    times = np.linspace(0, 1, 2001)
    paths = journeys.process_paths("vehicles", 50, times, seed=5)
    velocity = np.diff(paths, axis=1) * 2000
    speed = np.linalg.norm(velocity, axis=2)
    assert 0.2 < (speed < 1e-9).mean() < 0.9  # some of the time they stand
    # Velocity is continuous: acceleration of a leg is at most 6 l / (l / speed)^2 = 6 speed^2 / l.
    jump = np.linalg.norm(np.diff(velocity, axis=1), axis=2)
    assert np.quantile(jump, 0.999) < 0.05 * speed.max()
    on_the_way = speed > 0.5 * speed.max(axis=1, keepdims=True)
    heading = velocity / np.maximum(speed, 1e-12)[..., None]
    turn = np.linalg.norm(np.diff(heading, axis=1), axis=2)
    assert turn[on_the_way[:, 1:] & on_the_way[:, :-1]].max() < 1e-6  # straight
