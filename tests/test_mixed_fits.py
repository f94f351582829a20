"""Tables with numbers, categories and flags, from Snapshots to a model, by private tables."""

import numpy as np
import pandas as pd
import pytest

import privtraj as pt
from privtraj.base.errors import InputError
from privtraj.columns.kinds import Category, Number

pytestmark = pytest.mark.slow

COLUMNS = {
    "sex": Category(("F", "M"), fixed=True),
    "diagnosis": ["well", "ill", "cured"],
    "marker": Number(0, 100, missing=True),
    "smoker": bool,
}
"""diagnosis decides the marker: 20 where well, 80 where ill; nobody is cured."""


def clinic(n, seed=0):
    rng = np.random.default_rng(seed)
    time = rng.uniform(0, 10, n)
    ill = rng.random(n) < 0.2 + 0.05 * time
    marker = np.where(ill, 80, 20) + rng.normal(0, 4, n)
    marker[rng.random(n) < 0.15] = np.nan
    return pd.DataFrame(
        {
            "time": time,
            "sex": rng.choice(["F", "M"], n, p=[0.7, 0.3]),
            "diagnosis": np.where(ill, "ill", "well"),
            "marker": marker,
            "smoker": rng.random(n) < 0.25,
        }
    )


def snapshots(n, columns=COLUMNS, seed=0):
    return pt.Snapshots.from_table(
        clinic(n, seed), time="time", columns=columns, bins=np.linspace(0, 10, 6)
    )


def shares(model, axes, column, level):
    """(K,) of people at that level of a column, at every knot."""
    at = axes.level_of(model.particles)[:, :, column] == level
    return np.where(at, model.weights, 0.0).sum(axis=1)


@pytest.fixture(scope="module")
def fitted():
    """One fit for all."""
    data = snapshots(4000)
    return data, pt.TrajectorySynthesizer(4.0, seed=3).fit(data)


def test_the_model_has_curves_of_all_columns_with_definite_levels(fitted):
    data, model = fitted
    assert model.particles.shape[2] == 5  # with the flag of what is missing
    assert model.features == data.features
    np.testing.assert_allclose(data.axes.centred(model.particles), model.particles, atol=1e-6)
    np.testing.assert_allclose(model.weights.sum(axis=1), 1)
    assert model.certificate.epsilon <= 4.0


def test_shares_of_levels_over_time_are_those_of_the_people(fitted):
    """Each is off by noise and by blur of a slab; 0.1 is more than both reach at this budget."""
    data, model = fitted
    ill = shares(model, data.axes, 1, 1)
    np.testing.assert_allclose(ill, 0.2 + 0.05 * model.knots, atol=0.1)
    np.testing.assert_allclose(shares(model, data.axes, 0, 0), 0.7, atol=0.05)
    np.testing.assert_allclose(shares(model, data.axes, 3, 1), 0.25, atol=0.08)
    np.testing.assert_allclose(shares(model, data.axes, 4, 1), 0.15, atol=0.08)
    assert shares(model, data.axes, 1, 2).max() < 0.05


def test_groups_with_different_numbers_do_not_mix(fitted):
    data, model = fitted
    levels, marker = data.axes.level_of(model.particles), model.particles[:, :, 2]
    present = levels[:, :, 4] == 0
    weight = np.where(present, model.weights, 0.0)
    between = (marker > 0.35) & (marker < 0.65)
    assert weight[between].sum() < 0.05 * weight.sum()
    wrong = (marker > 0.5) != (levels[:, :, 1] == 1)
    assert weight[wrong].sum() < 0.06 * weight.sum()


def test_fixed_columns_are_constant_along_every_curve(fitted):
    data, model = fitted
    assert model.curves
    sex = data.axes.level_of(model.particles)[:, :, 0]
    assert (np.ptp(sex, axis=0) == 0).all()


def test_several_records_do_not_pay_for_persistence_of_levels():
    table = clinic(2000)
    table["who"] = np.arange(2000) // 2
    data = pt.Snapshots.from_table(
        table,
        time="time",
        columns=COLUMNS,
        bins=np.linspace(0, 10, 6),
        person="who",
        records_per_person=2,
        one_per_bin=False,
    )
    model = pt.TrajectorySynthesizer(4.0, seed=1).fit(data)
    assert "how people persist" not in [entry["what"] for entry in model.certificate.ledger]
    assert model.certificate.epsilon <= 4.0


@pytest.mark.parametrize("measure", ["counts", "gradients"])
def test_what_measures_numbers_alone_refuses_levels_before_anything_is_spent(measure):
    data = snapshots(50)
    with pytest.raises(InputError, match=f"{measure} are of numbers alone: .* measure='tables'"):
        pt.TrajectorySynthesizer(measure=measure).fit(data)


def test_without_a_delta_levels_have_no_measure():
    with pytest.raises(InputError, match="use measure='tables' and a delta above 0"):
        pt.TrajectorySynthesizer(1.0, 0.0).fit(snapshots(50))
