"""Simulated tables with columns of every kind: what is declared is there, and the truth is known.

Seeds are fixed; tolerances are four standard errors or more, so that one of these would fail at
another seed with a chance below 1e-3.
"""

import numpy as np
import pytest

import privtraj as pt
from privtraj import datasets
from privtraj.base.errors import InputError

EXAMPLES = (
    datasets.clinic_visits,
    datasets.many_columns,
    datasets.sugar_groups,
    datasets.one_long_category,
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


CODES = datasets.CLINIC_COLUMNS["diagnosis"]["values"]
RARE = [CODES.index(code) for code in datasets.CLINIC_RARE]


# The clinic -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def paths():
    return datasets.clinic_paths(40_000, [0.0, 0.5, 2.0], seed=1)


def test_shares_of_diagnoses_are_those_of_the_jump_process(paths):
    expected = datasets.clinic_shares([0.0, 0.5, 2.0])
    np.testing.assert_allclose(expected.sum(axis=1), 1)
    for codes, shares in zip(paths[:, :, 1].T, expected, strict=True):
        found = np.bincount(codes.astype(int), minlength=12) / len(codes)
        np.testing.assert_allclose(found, shares, atol=0.01)
        assert found[RARE].sum() == pytest.approx(0.05, abs=0.005)


def test_sex_stays_and_diagnoses_jump(paths):
    assert (paths[:, :, 0] == paths[:, :1, 0]).all()
    first, later = datasets.clinic_shares([0.0, 1e9])  # where people start, and where jumps lead
    seen = (paths[:, 0, 1] != paths[:, 1, 1]).mean()
    assert seen == pytest.approx((1 - np.exp(-0.25)) * (1 - first @ later), abs=0.01)


def test_visits_have_the_law_of_paths_at_their_times():
    table = datasets.clinic_visits(40_000, seed=2).table.to_pandas()
    late = table[table["time"] > 1.9]
    paths = datasets.clinic_paths(20_000, [1.95], seed=3)[:, 0]
    for k, name in enumerate(("pressure", "bmi", "hba1c"), start=3):
        spread = paths[:, k].std()
        assert late[name].mean() == pytest.approx(paths[:, k].mean(), abs=4 * spread / 40)
        assert late[name].std() == pytest.approx(spread, rel=0.1)
    ill = late[late["diagnosis"] == "E11"]
    assert ill[["bmi", "hba1c"]].corr().iloc[0, 1] == pytest.approx(0.5, abs=0.15)
    assert late["smoker"].mean() == pytest.approx(paths[:, 2].mean(), abs=0.04)


@pytest.mark.parametrize("times", [[], [1.0, 0.5], [-1.0], [3.0], [[1.0]]])
def test_years_of_the_clinic_are_checked(times):
    with pytest.raises(InputError, match="years from 0 to 2"):
        datasets.clinic_paths(5, times)


# The others -----------------------------------------------------------------------------------


def test_nearly_nobody_is_between_two_groups():
    table = datasets.sugar_groups(60_000, seed=1).table.to_pandas()
    between = table["hba1c"].between(*datasets.SUGAR_GAP)
    assert between.mean() == pytest.approx(0.014, abs=0.002)
    found = table["hba1c"].corr(table["bmi"])
    assert found == pytest.approx(datasets.SUGAR_CORRELATION, abs=0.02)
    assert (table["diabetes"] == (table["hba1c"] > 6.5)).mean() > 0.99


def test_twelve_columns_go_together_and_change():
    table = datasets.many_columns(20_000, seed=1).table.to_pandas()
    assert len(datasets.MANY_COLUMNS) == 12
    assert table["sugar"].isna().mean() == pytest.approx(0.075, abs=0.015)
    assert table["insurance"].isna().mean() == pytest.approx(0.04, abs=0.006)
    stage = table["stage"].cat.codes
    assert stage.corr(table["age"]) > 0.4
    assert stage[table["time"] > 2].mean() > stage[table["time"] < 1].mean() + 0.3
    for name in ("age", "weight", "pressure", "sugar"):
        low, high = datasets.MANY_COLUMNS[name]["bounds"]
        assert table[name].dropna().between(low, high).mean() > 0.98


def test_ranks_of_a_long_category_are_turned_over():
    table = datasets.one_long_category(200_000, seed=1).table.to_pandas()
    harmonic = (1 / np.arange(1, 201)).sum()
    for part, common in ((table["time"] < 0.05, "C000"), (table["time"] > 0.95, "C199")):
        share = (table.loc[part, "code"] == common).mean()
        assert share == pytest.approx(0.975 / harmonic, abs=0.02)
    assert table["code"].nunique() == 200
