"""Paths of mixed columns in tables: every column comes back in its own type."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv as arrow_csv

import privtraj as pt
from mixed_models import CLINIC, build
from privtraj.columns.declared import declared_column
from privtraj.model.paths import Paths

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
