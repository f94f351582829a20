"""Output as people write it: public steps, dates as dates, and nothing outside the bounds."""

import csv
import datetime as dt
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privtraj as pt
from mixed_models import build
from privtraj.base.space import moment
from privtraj.cli.results import even_times
from privtraj.columns.declared import declared_column
from privtraj.columns.precision import in_steps, spread_times, usual_step, written_times
from privtraj.data.public import declared_axis
from privtraj.model.paths import Paths

DAY = 86_400.0
COLUMNS = {"temp": (36, 42), "income": (0, 1_000_000), "lon": (11.42, 11.72), "lat": (48.04, 48.24)}


def seconds(text):
    return moment(text)[0]


def drawn(times=(0.0, 1.0, 2.0), datetime=False, precision=None, columns=COLUMNS, n=50):
    """People everywhere in the box, some of them on its walls, with all digits."""
    made = tuple(declared_column(name, form) for name, form in columns.items())
    unit = np.random.default_rng(0).uniform(-0.1, 1.1, (n, len(times), len(made))).clip(0, 1)
    values = np.stack([one.from_unit(unit[..., k]) for k, one in enumerate(made)], axis=-1)
    more = {"columns": made, "precision": precision or {}}
    return Paths(values, np.asarray(times, float), tuple(columns), "when", datetime, **more)


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# Steps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "step"),
    [
        (40, 210, 0.01),
        (0, 1, 1e-4),
        (0, 10, 1e-3),
        (-1.5, 1.5, 1e-4),
        (0, 1e6, 1.0),  # whole numbers, not hundreds
        (11.42, 11.72, 1e-5),
        (1, 1 + 1e-13, 0.0),  # floats have no such digits there
    ],
)
def test_the_usual_step_follows_from_the_bounds(low, high, step):
    assert usual_step(low, high) == step


BOUND = st.floats(-1e12, 1e12)


@given(BOUND, BOUND, st.floats(1e-9, 1e6), st.integers(0, 2**32 - 1))
def test_steps_never_leave_the_bounds_and_are_short(a, b, step, seed):
    low, high = min(a, b), max(a, b)
    values = np.random.default_rng(seed).uniform(low, high, 20)
    values[:3] = low, high, np.nan
    found = in_steps(values, step, low, high)
    assert math.isnan(found[2])
    kept = np.delete(found, 2)
    assert ((kept >= low) & (kept <= high)).all()
    assert (np.abs(kept - np.delete(values, 2)) <= step).all()
    twice = in_steps(kept, step, low, high)
    np.testing.assert_array_equal(twice, kept)


@given(st.integers(0, 8), st.integers(-(10**6), 10**6))
def test_a_number_in_steps_has_the_digits_of_the_step(digits, whole):
    """A file has 36.6 and not 36.599998 or 36.60000000000001."""
    step = float(f"1e-{digits}")
    noisy = np.array([whole * step * (1 + 1e-12)])
    (found,) = in_steps(noisy, step, -1e6, 1e6).tolist()
    assert found == float(f"{whole}e-{digits}")


def test_steps_that_are_no_powers_of_ten_are_decimals_too():
    assert in_steps(np.array([0.3, 0.7]), 0.25, 0, 1).tolist() == [0.25, 0.75]
    assert in_steps(np.array([7.1, 9.9]), 5.0, 0, 11).tolist() == [5.0, 10.0]
    assert in_steps(np.array([3.0, 80.0]), 100.0, 1, 50).tolist() == [3.0, 50.0]  # none inside


# Tables and maps --------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_files_have_public_steps_inside_the_bounds_and_agree_with_the_table(suffix, tmp_path):
    paths, path = drawn(), tmp_path / f"p{suffix}"
    paths.save(path)
    table = paths.to_arrow()
    if suffix == ".csv":
        found = {name: [float(row[name]) for row in rows(path)] for name in COLUMNS}
        longest = {name: max(len(row[name]) for row in rows(path)) for name in COLUMNS}
        assert longest == {"temp": 7, "income": 7, "lon": 9, "lat": 9}  # 36.1234 as 11.654321
    else:
        with pa.memory_map(str(path)) as source:
            back = pq.read_table(path) if suffix == ".parquet" else pa.ipc.open_file(source)
            back = back if suffix == ".parquet" else back.read_all()
            found = {name: back[name].to_pylist() for name in COLUMNS}
    for k, (name, (low, high)) in enumerate(COLUMNS.items()):
        assert found[name] == table[name].to_pylist()
        assert low <= min(found[name])
        assert max(found[name]) <= high
        step = 1e-6 if name in ("lon", "lat") else usual_step(low, high)
        exact = paths.values[..., k].ravel()
        assert np.abs(np.array(found[name]) - exact).max() <= step / 2 * (1 + 1e-6)
        assert (np.array(found[name]) != exact).any()


def test_a_declared_precision_counts_finer_or_coarser_than_the_usual():
    frame = drawn(precision={"temp": 0.1, "income": 0.01}).to_frame()
    assert (frame.temp == frame.temp.round(1)).all()
    assert (frame.income == frame.income.round(2)).all()
    assert (frame.income != frame.income.round()).any()


def test_a_model_writes_what_was_declared_of_it():
    model = build({"hb": (4, 15), "kids": pt.Integer(0, 10)})
    usual = model.sample(30, seed=0)
    assert usual.to_frame().hb.tolist() == usual.values[..., 0].round(3).ravel().tolist()
    told = model.with_constraints(precision={"hb": 0.5}).sample(30, seed=0)
    assert set((told.to_frame().hb % 0.5).tolist()) == {0.0}
    fine = model.with_constraints(precision={"hb": 1e-7}).sample(30, seed=0).to_frame().hb
    assert (fine != fine.round(6)).any()


def test_places_have_six_digits_in_maps_and_tables(tmp_path):
    paths = drawn()
    paths.save(tmp_path / "p.geojson")
    lines = json.loads((tmp_path / "p.geojson").read_text())["features"]
    points = np.array([line["geometry"]["coordinates"] for line in lines])
    frame = paths.to_frame()
    np.testing.assert_array_equal(points.reshape(-1, 2), frame[["lon", "lat"]])
    np.testing.assert_array_equal(points, points.round(6))
    assert (points != points.round(5)).any()
    assert lines[0]["properties"]["temp"] == frame.temp[:3].tolist()
    geopandas = pytest.importorskip("geopandas")
    assert geopandas.GeoDataFrame is type(paths.to_geopandas())
    np.testing.assert_array_equal(paths.to_geopandas().geometry.x, frame.lon)


def test_places_by_other_names_have_six_digits_on_a_map():
    columns = {"ost": (-10, 10), "nord": (40, 60)}
    line = drawn(columns=columns).to_geojson(x="ost", y="nord")["features"][0]
    points = np.array(line["geometry"]["coordinates"])
    np.testing.assert_array_equal(points, points.round(6))
    assert (points != points.round(5)).any()


def test_anndata_has_the_same_numbers():
    pytest.importorskip("anndata")
    paths = drawn(columns={"X_pca-0": (-1.5, 1.5), "X_pca-1": (-1.5, 1.5), "age": (0, 90)})
    data, frame = paths.to_anndata(), paths.to_frame()
    np.testing.assert_array_equal(data.obsm["X_pca"], frame[["X_pca-0", "X_pca-1"]])
    np.testing.assert_array_equal(data.obsm["X_features"], frame[["age"]])


# Dates ------------------------------------------------------------------------------------------

WRITTEN = {
    "days": (["2023-01-01", "2023-02-03"], ["2023-01-01", "2023-02-03"], pa.date32()),
    "seconds": (
        ["2023-01-01", "2023-02-03T08:30:00"],
        ["2023-01-01 00:00:00", "2023-02-03 08:30:00"],
        pa.timestamp("s"),
    ),
    "parts of them": (
        ["2023-01-01", "2023-02-03T08:30:00.25"],
        ["2023-01-01 00:00:00.000", "2023-02-03 08:30:00.250"],
        pa.timestamp("ms"),
    ),
}


@pytest.mark.parametrize(("times", "texts", "kind"), WRITTEN.values(), ids=WRITTEN)
def test_times_are_written_without_what_they_do_not_have(times, texts, kind, tmp_path):
    paths = drawn([*map(seconds, times)], datetime=True, n=2)
    paths.save(tmp_path / "p.csv")
    assert [row["when"] for row in rows(tmp_path / "p.csv")] == texts * 2
    assert paths.to_arrow().schema.field("when").type == kind
    asked = [dt.datetime.fromisoformat(time) for time in times]
    assert paths.to_frame().when.tolist() == asked * 2
    said = paths.to_geojson()["features"][0]["properties"]["times"]
    assert said == [text.replace(" ", "T") + "Z" * (kind != pa.date32()) for text in texts]


def test_cells_that_are_days_are_days_in_h5ad(tmp_path):
    anndata = pytest.importorskip("anndata")
    drawn([*map(seconds, WRITTEN["days"][0])], datetime=True, n=1).save(tmp_path / "p.h5ad")
    assert anndata.read_h5ad(tmp_path / "p.h5ad").obs["when"].tolist() == WRITTEN["days"][1]


def test_moments_of_a_column_are_to_the_second(tmp_path):
    columns = {"seen": pt.Date("2020-01-01T00:00:00", "2024-01-01T12:00:00"), "temp": (36, 42)}
    drawn(columns=columns, n=3).save(tmp_path / "p.csv")
    assert {len(row["seen"]) for row in rows(tmp_path / "p.csv")} == {len("2020-01-01 00:00:00")}


SPREAD = {
    "days": ("2023-01-01", "2024-12-31", 25, "datetime64[D]"),
    "days, hardly": ("2023-01-01", "2023-01-31", 25, "datetime64[D]"),
    "minutes of a day": ("2024-05-06", "2024-05-07", 81, "datetime64[s]"),
    "not at midnight": ("2024-05-06T08:30:00", "2024-06-06T17:00:00", 10, "datetime64[s]"),
}


@pytest.mark.parametrize(("start", "end", "count", "kind"), SPREAD.values(), ids=SPREAD)
def test_times_that_nobody_named_are_round_and_nearly_even(start, end, count, kind):
    first, last = seconds(start), seconds(end)
    made = spread_times(first, last, count, True)
    assert written_times(made, True).dtype == kind
    assert (np.diff(made) > 0).all()
    assert [made[0], made[-1], len(made)] == [first, last, count]
    gap = (last - first) / (count - 1)
    assert np.abs(made - np.linspace(first, last, count)).max() <= gap / 2
    if kind != "datetime64[D]":
        assert (made % 60 == 0).all()


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9), st.integers(2, 300), st.booleans())
def test_such_times_increase_from_end_to_end(start, length, count, datetime):
    made = spread_times(start, start + length, count, datetime)
    assert (np.diff(made) > 0).all()
    assert [made[0], made[-1], len(made)] == [start, start + length, count]


def test_numbers_of_time_are_short():
    assert spread_times(0.0, 20.0, 25, False)[:4].tolist() == [0.0, 0.833, 1.667, 2.5]
    assert spread_times(0.0, 20.0, 81, False).tolist() == np.linspace(0, 20, 81).tolist()
    assert spread_times(3.0, 4.0, 1, False).tolist() == [3.0]


def test_times_of_interest_and_those_of_the_command_line_are_such():
    axis = declared_axis(None, ("2023-01-01", "2024-12-31"))
    assert (axis.times % DAY == 0).all()
    days = np.array([*map(seconds, ("2023-01-01", "2023-07-01", "2023-11-30", "2024-12-31"))])
    model = build(numeric_times=days, datetime=True)
    assert model.sample(3, seed=0).to_arrow().schema.field(1).type == pa.date32()
    paths = model.sample(3, even_times(model, 81), seed=0)
    assert paths.values.shape[1] == 81
    assert paths.to_arrow().schema.field(1).type == pa.date32()
