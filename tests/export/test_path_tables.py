"""Paths as tables: types of columns, public steps, dates as dates, and texts that do not run."""

import csv
import datetime as dt
import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv

import privtraj as pt
from mixed_models import CLINIC, build
from privtraj.base import formats
from privtraj.base.space import moment, written_times
from privtraj.cli.results import even_times
from privtraj.columns.declared import declared_column
from privtraj.columns.precision import in_steps, spread_times, usual_step
from privtraj.data.public import declared_axis
from privtraj.export.tables import write_table
from privtraj.model.paths import Paths

# Types -------------------------------------------------------------------------------------------

COLUMNS = {
    "hb": pt.Number(4, 15, missing=True),
    "kids": pt.Integer(0, 10),
    "steps": pt.Integer(0, 10, missing=True),
    "born": pt.Date("1950-01-01", "2010-01-01"),
    "seen": pt.Date("2020-01-01T00:00:00", "2024-01-01T12:00:00", missing=True),
    "smoker": bool,
    "asked": pt.Boolean(missing=True),
    "sex": pt.Category(["F", "M"]),
    "stage": pt.Ordered(["I", "II", "III"], missing=True),
    "site": pt.Category([1, 2, 5]),
    "mark": pt.Category([1, "x"], other="rest"),
}
DAY = 86_400.0
VALUES = np.array(
    [
        [7.5, 2, 3, 0, 1.6e9, 0, 1, 0, 2, 2, 0],
        [np.nan, 3, np.nan, DAY, np.nan, 1, 2, 1, 3, 0, 2],
    ]
)


@pytest.fixture
def paths():
    columns = tuple(declared_column(name, form) for name, form in COLUMNS.items())
    times = np.array([0.0, 1.0])
    return Paths(VALUES[None], times, tuple(COLUMNS), "year", False, columns=columns)


ROWS = {
    "hb": [7.5, None],
    "kids": [2, 3],
    "steps": [3, None],
    "born": [dt.date(1970, 1, 1), dt.date(1970, 1, 2)],
    "seen": [dt.datetime(2020, 9, 13, 12, 26, 40), None],
    "smoker": [False, True],
    "asked": [True, None],
    "sex": ["F", "M"],
    "stage": ["III", None],
    "site": [5, 1],
    "mark": ["1", "rest"],
}
TYPES = {
    "hb": pa.float64(),
    "kids": pa.int64(),
    "steps": pa.int64(),
    "born": pa.date32(),
    "seen": pa.timestamp("s"),
    "smoker": pa.bool_(),
    "asked": pa.bool_(),
    "sex": pa.dictionary(pa.int32(), pa.string()),
    "stage": pa.dictionary(pa.int32(), pa.string(), ordered=True),
    "site": pa.dictionary(pa.int32(), pa.int64()),
    "mark": pa.dictionary(pa.int32(), pa.string()),
}


def test_arrow_has_the_types_and_the_values(paths):
    table = paths.to_arrow()
    assert {name: table.schema.field(name).type for name in TYPES} == TYPES
    assert {name: table[name].to_pylist() for name in ROWS} == ROWS
    assert table["stage"].chunk(0).dictionary.to_pylist() == ["I", "II", "III"]


def test_parquet_and_arrow_files_give_the_same_table_back(paths, tmp_path):
    paths.save(tmp_path / "p.parquet")
    back = pq.read_table(tmp_path / "p.parquet")
    assert {name: back[name].to_pylist() for name in ROWS} == ROWS
    assert back.schema.field("kids").type == pa.int64()
    assert back.schema.field("born").type == pa.date32()
    paths.save(tmp_path / "p.arrow")
    with pa.memory_map(str(tmp_path / "p.arrow")) as source:
        assert pa.ipc.open_file(source).read_all().equals(paths.to_arrow())


def test_csv_has_labels_and_gaps(paths, tmp_path):
    paths.save(tmp_path / "p.csv")
    back = arrow_csv.read_csv(tmp_path / "p.csv")
    rows = {name: back[name].to_pylist() for name in ROWS}
    assert rows == ROWS | {"stage": ["III", ""], "seen": rows["seen"]}
    assert back.schema.field("kids").type == pa.int64()
    assert back.schema.field("born").type == pa.date32()
    assert (tmp_path / "p.csv").read_text().splitlines()[2].split(",")[2] == ""


def test_pandas_has_all_declared_categories_and_whole_numbers_stay_whole(paths):
    frame = paths.to_frame()
    assert frame.kids.dtype == np.int64
    assert frame.steps.dtype == pd.Int64Dtype()
    assert frame.smoker.dtype == bool
    assert frame.asked.dtype == pd.BooleanDtype()
    assert frame.born.dtype.kind == "M"
    assert list(frame.stage.cat.categories) == ["I", "II", "III"]
    assert frame.stage.cat.ordered
    assert not frame.sex.cat.ordered
    assert frame.stage.isna().tolist() == [False, True]
    assert frame.steps.tolist() == [3, pd.NA]


def test_polars_has_them_too(paths):
    frame = paths.to_polars()
    assert frame.schema["stage"] == pl.Enum(["I", "II", "III"])
    assert frame.schema["sex"] == pl.Enum(["F", "M"])
    assert frame.schema["site"] == pl.Int64
    assert frame.schema["born"] == pl.Date
    assert {name: frame[name].to_list() for name in ROWS} == ROWS


def test_anndata_keeps_numbers_apart_from_the_rest(paths, tmp_path):
    anndata = pytest.importorskip("anndata")
    data = paths.to_anndata()
    assert data.uns["privtraj_features"] == {"X_features": ["hb"]}
    np.testing.assert_array_equal(data.obsm["X_features"], VALUES[:, :1])
    assert list(data.obs["stage"].cat.categories) == ["I", "II", "III"]
    paths.save(tmp_path / "p.h5ad")
    back = anndata.read_h5ad(tmp_path / "p.h5ad")
    assert back.obs["sex"].tolist() == ["F", "M"]
    assert back.obs["kids"].tolist() == [2, 3]
    assert back.obs["born"].tolist() == ["1970-01-01", "1970-01-02"]


def test_paths_without_numbers_are_anndata_too():
    model = build({"sex": CLINIC["sex"], "stage": CLINIC["stage"]})
    data = model.sample(5, seed=0).to_anndata()
    assert data.shape[0] == 20
    assert data.uns["privtraj_features"] == {}


def test_geojson_has_labels_dates_as_text_and_no_places_that_are_missing(tmp_path):
    columns = {"lon": pt.Number(-10, 10, missing=True), "lat": (40, 60), **COLUMNS}
    made = tuple(declared_column(name, form) for name, form in columns.items())
    places = np.array([[1.0, 50.0], [2.0, 51.0], [np.nan, 52.0]])
    values = np.concatenate([places, VALUES[[0, 1, 0]]], axis=1)[None]
    paths = Paths(values, np.arange(3.0), tuple(columns), "year", False, columns=made)
    paths.save(tmp_path / "p.geojson")
    (line,) = json.loads((tmp_path / "p.geojson").read_text())["features"]
    assert line["geometry"]["coordinates"] == [[1.0, 50.0], [2.0, 51.0]]
    said = line["properties"]
    assert said["stage"] == ["III", None]
    assert said["born"] == ["1970-01-01", "1970-01-02"]
    assert said["hb"] == [7.5, None]
    assert said["smoker"] == [False, True]
    assert said["times"] == [0.0, 1.0]


def test_people_of_a_model_come_in_types():
    frame = build().sample(20, seed=0).to_frame()
    assert list(frame.columns[2:]) == list(CLINIC)
    assert list(frame.code.cat.categories) == ["a", "b", "c", "rest"]
    assert frame.kids.dtype == np.int64


# Steps and times ---------------------------------------------------------------------------------

DAY = 86_400.0
BOXES = {"temp": (36, 42), "income": (0, 1_000_000), "lon": (11.42, 11.72), "lat": (48.04, 48.24)}


def seconds(text):
    return moment(text)[0]


def drawn(times=(0.0, 1.0, 2.0), datetime=False, precision=None, columns=BOXES, n=50):
    """People everywhere in the box, some of them on its walls, with all digits."""
    made = tuple(declared_column(name, form) for name, form in columns.items())
    unit = np.random.default_rng(0).uniform(-0.1, 1.1, (n, len(times), len(made))).clip(0, 1)
    values = np.stack([one.from_unit(unit[..., k]) for k, one in enumerate(made)], axis=-1)
    more = {"columns": made, "precision": precision or {}}
    return Paths(values, np.asarray(times, float), tuple(columns), "when", datetime, **more)


def csv_rows(path):
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
        found = {name: [float(row[name]) for row in csv_rows(path)] for name in BOXES}
        longest = {name: max(len(row[name]) for row in csv_rows(path)) for name in BOXES}
        assert longest == {"temp": 7, "income": 7, "lon": 9, "lat": 9}  # 36.1234 as 11.654321
    else:
        with pa.memory_map(str(path)) as source:
            back = pq.read_table(path) if suffix == ".parquet" else pa.ipc.open_file(source)
            back = back if suffix == ".parquet" else back.read_all()
            found = {name: back[name].to_pylist() for name in BOXES}
    for k, (name, (low, high)) in enumerate(BOXES.items()):
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
    assert [row["when"] for row in csv_rows(tmp_path / "p.csv")] == texts * 2
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
    assert {len(row["seen"]) for row in csv_rows(tmp_path / "p.csv")} == {
        len("2020-01-01 00:00:00")
    }


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


# Formats and spreadsheets ------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", formats.suffixes(formats.FORMATS))
def test_a_suffix_belongs_to_one_format(suffix):
    path = Path(f"a.b{suffix.upper()}")
    claims = [known for known in formats.FORMATS if suffix in known.suffixes]
    assert claims == [formats.format_of(path, formats.FORMATS)]
    assert claims == [formats.format_of(path, formats.FORMATS[::-1])]


def test_paths_can_be_written_in_these_formats():
    tables = (".csv", ".csv.gz", ".parquet", ".pq", ".arrow", ".feather")
    lines = (".trips.geojson", ".points.geojson", ".geojson")
    assert formats.suffixes(formats.PATHS) == (*tables, *lines, ".geoparquet", ".h5ad")


# Spreadsheets ---------------------------------------------------------------------------------

BEGINNINGS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"


def _read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_names_of_columns_are_no_formulas(tmp_path):
    names = ('=HYPERLINK("http://evil")', "-2+3", "height")
    paths = Paths(np.full((2, 3, 3), -1.5), np.arange(3.0), names, "@SUM(A1)", False)
    paths.save(tmp_path / "p.csv")
    first, second, *_ = _read(tmp_path / "p.csv")
    assert first == ["path", "'@SUM(A1)", '\'=HYPERLINK("http://evil")', "'-2+3", "height"]
    assert second == ["0", "0", "-1.5", "-1.5", "-1.5"]  # numbers are numbers
    assert paths.to_arrow().column_names[1:] == ["@SUM(A1)", *names]  # elsewhere nothing runs


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), "string")]
)
def test_texts_and_categories_are_no_formulas(kind, tmp_path):
    texts = pa.array(["=1+1", "'=1+1", "it's", "a=b", None, "-", ""]).cast(kind)
    write_table(pa.table({"who": texts, "what": np.arange(-3, 4)}), tmp_path / "t.csv")
    shown = [who for who, _ in _read(tmp_path / "t.csv")[1:]]
    assert shown == ["'=1+1", "''=1+1", "it's", "a=b", "", "'-", ""]
    assert [what for _, what in _read(tmp_path / "t.csv")[1:]] == [str(k) for k in range(-3, 4)]


@given(st.lists(st.text("='-@+a\t\uff1d", max_size=4), min_size=1, max_size=5, unique=True))
def test_every_name_can_be_read_back(tmp_path_factory, names):
    """By taking one apostrophe away where some stand before such a beginning."""
    path = tmp_path_factory.mktemp("names") / "t.csv"
    write_table(pa.table({name: [1] for name in names}), path)
    (written, _) = _read(path)
    assert not any(name.startswith(tuple(BEGINNINGS)) for name in written)
    assert [re.sub(f"^'('*[{re.escape(BEGINNINGS)}])", r"\1", name) for name in written] == names
