"""Numbers on a log scale: a skewed laboratory value, from the table to the paths."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privtraj as pt
from privtraj.columns.declared import declared_columns
from privtraj.columns.kinds import decoded, encoded, from_dict, to_dict, to_unit
from privtraj.report.people import page_sampler, sampled

CRP = pt.LogNumber(0.1, 5000, "crp")


def people(n=4000, seed=0):
    """C-reactive protein, log-normal around 20 that doubles over time, and a weight."""
    rng = np.random.default_rng(seed)
    time = rng.uniform(0, 10, n)
    crp = np.exp(np.log(14) + 0.07 * time + 1.1 * rng.standard_normal(n))
    group = rng.choice(["a", "b"], n)
    return pd.DataFrame({"t": time, "crp": crp, "w": rng.normal(70, 10, n), "g": group})


def snapshots(table, column=CRP, **more):
    columns = {"crp": column, **more.pop("others", {})}
    return pt.Snapshots.from_table(
        table, time="t", bounds={"w": (0, 150)}, columns=columns, time_range=(0, 10), **more
    )


def fitted(**how):
    others = how.pop("others", {})
    synthesizer = pt.TrajectorySynthesizer(epsilon=2.0, delta=1e-5, seed=1, **how)
    return synthesizer.fit(snapshots(people(), bins=4, others=others))


@pytest.fixture(scope="module")
def model():
    return fitted(measure="counts")


# The axis --------------------------------------------------------------------------------------


@given(st.floats(-1e5, 1e5), st.sampled_from([0.0, 0.5]))
def test_what_is_encoded_is_decoded(value, offset):
    column = pt.LogNumber(0.1, 5000, missing=True, offset=offset)
    columns = declared_columns(None, None, columns={"crp": column})
    assert [one.name for one in columns] == ["crp", "crp missing"]
    there = encoded(columns, np.array([[value], [np.nan]]))
    unit = to_unit(columns, there)
    assert unit.min() >= 0
    assert unit.max() <= 1
    back = decoded(columns, there)
    assert back[0, 0] == pytest.approx(np.clip(value, 0.1, 5000), rel=1e-9)
    assert np.isnan(back[1, 0])


def test_equal_ratios_are_equally_far_apart():
    one, ten, hundred = CRP.to_unit(CRP.coordinates(np.array([1.0, 10.0, 100.0]))[0])
    assert ten - one == pytest.approx(hundred - ten)


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ({"low": 0, "high": 9, "scale": "log"}, "'x' on a log scale must have bounds above 0"),
        ({"low": -5, "high": 9, "scale": "log", "offset": 5}, "must have bounds above 0"),
        ({"low": 1, "high": 9, "scale": "sqrt"}, "the scale of 'x' must be 'log', or be left out"),
        ({"low": 1, "high": 9, "scale": "log", "offset": "a"}, "offset of 'x' must be a number"),
        ({"low": 1, "high": 9, "offset": 1}, "'x' has 'offset', which no number has"),
        ({"kind": "integer", "low": 1, "high": 9, "scale": "log"}, "which no integer has"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(column, sentence):
    with pytest.raises(pt.InputError, match=sentence):
        declared_columns(None, None, columns={"x": column})


def test_a_column_is_the_same_after_a_file():
    column = pt.LogNumber(0, 500, "crp", missing=True, offset=0.5)
    assert from_dict(json.loads(json.dumps(to_dict(column)))) == column
    form = {"kind": "number", "low": 0, "high": 500, "missing": True, "scale": "log", "offset": 0.5}
    assert declared_columns(None, None, columns={"crp": form})[0] == column
    assert column.public_inputs() == form
    assert str(column) == "crp in [0, 500] (log scale, offset 0.5) or missing"


def test_a_domain_has_no_log_scale():
    square = {"type": "Polygon", "coordinates": [[[1, 1], [9, 1], [9, 9], [1, 9], [1, 1]]]}
    table = pd.DataFrame({"t": [0.0, 10.0], "x": [2.0, 3.0], "y": [2.0, 3.0]})
    with pytest.raises(pt.InputError, match="'x' is a place in the domain"):
        pt.Snapshots.from_table(
            table,
            time="t",
            columns={"x": pt.LogNumber(1, 9), "y": (1, 9)},
            time_range=(0, 10),
            domain=square,
        )


# People ----------------------------------------------------------------------------------------


def _close(model, tolerance):
    """Quantiles of synthetic people are those of the others, by their ratio."""
    real, paths = people(50_000, seed=9), model.sample(4000, times=np.linspace(0, 10, 9), seed=0)
    crp = paths.values[..., paths.features.index("crp")]
    assert crp.min() >= 0.1
    assert crp.max() <= 5000
    shares = [0.1, 0.5, 0.9]
    ratio = np.log(np.quantile(crp, shares) / np.quantile(real["crp"], shares))
    assert np.abs(ratio).max() < tolerance, ratio


def test_counts_keep_the_quantiles(model):
    _close(model, 0.25)


@pytest.mark.parametrize(
    ("measure", "others"),
    [
        pytest.param("gradients", {}, marks=pytest.mark.thorough),
        ("tables", {"g": ["a", "b"]}),
    ],
)
def test_other_measures_keep_the_quantiles(measure, others):
    _close(fitted(measure=measure, others=others), 0.35)


def test_values_are_in_their_own_units(model, tmp_path):
    marginal = np.median(model.marginals[..., model.features.index("crp")], axis=1)
    assert marginal[0] == pytest.approx(15, rel=0.3)
    assert marginal[-1] == pytest.approx(26, rel=0.3)
    asked = model.sample(50, times=[5.0], where={"crp": (10, 30)}, seed=0).to_frame()
    assert asked["crp"].between(10, 30).all()
    np.testing.assert_allclose(asked["crp"], np.round(asked["crp"], 3))
    model.save(tmp_path / "m.privtraj", not_private=True)
    again = pt.load(tmp_path / "m.privtraj")
    assert again.columns == model.columns
    assert model.certificate.to_dict()["public_inputs"]["bounds"]["crp"]["scale"] == "log"
    np.testing.assert_array_equal(*(m.sample(20, seed=3).values for m in (again, model)))


def test_the_page_shows_and_draws_it_in_its_own_units(model):
    shown = sampled(model)
    assert shown.bounds.tolist() == [[0, 150], [0.1, 5000]]
    column = page_sampler(model, 0)["columns"][1]
    assert (column["offset"], column["ends"]) == (0, [0.1, 5000])
    assert np.exp([column["low"], column["high"]]) == pytest.approx([0.1, 5000])


def test_rows_are_the_same_from_every_source(tmp_path):
    table = people(200)
    table.loc[0, "crp"], table.loc[1, "crp"] = -4, 1e9  # moved to the bounds
    (tmp_path / "folder").mkdir()
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "folder" / "t.parquet")
    first = snapshots(table)._rows
    assert (first.points[0, 1], first.points[1, 1]) == (0, 1)
    for name in ("t.csv", "folder"):
        rows = snapshots(tmp_path / name)._rows
        np.testing.assert_array_equal(np.sort(rows.points, axis=0), np.sort(first.points, axis=0))
        assert rows.digest == first.digest
