"""Columns of every kind in memory: one table, whatever types and files it comes in."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privtraj.base.errors import InputError
from privtraj.columns.cells import MISSING, fingerprint, key_of, spellings
from privtraj.columns.kinds import Boolean, Category, Date, Integer, Number, Ordered
from privtraj.data.records import Cells, digest_of
from privtraj.data.snapshots import Snapshots
from privtraj.export import tables as export_tables

N = 24
HOW = {"time": "t", "time_range": (0, 1)}
COLUMNS = {
    "hb": Number(4, 15, missing=True),
    "sex": Category(["F", "M"], fixed=True),
    "smoker": Boolean(missing=True),
    "stage": Ordered(["I", "II", "III"]),
    "kids": Integer(0, 10),
    "born": Date("1950-01-01", "2010-01-01", missing=True),
    "code": Category(["01", "1", "NA"], other="other", missing=True),
}


def frame():
    """A clinic as pandas has it."""
    days = pd.Timestamp("1970-01-01") + pd.to_timedelta(np.arange(N) * 400, unit="D")
    return pd.DataFrame(
        {
            "t": np.linspace(0, 1, N),
            "hb": np.resize([3.0, 5.5, np.nan, 16.0], N),
            "sex": np.resize(["F", "M", "M"], N),
            "smoker": np.resize(np.array([True, False, None], dtype=object), N),
            "stage": pd.Categorical(np.resize(["III", "I"], N), ["III", "II", "I"]),
            "kids": pd.array(np.resize([0, 3, 12], N), dtype="Int64"),
            "born": days.where(np.arange(N) % 5 > 0),
            "code": np.resize(np.array(["01", "1", "NA", "zz", None], dtype=object), N),
        }
    )


EXPECTED = {
    "hb": [0, 1.5 / 11, 0.5, 1],
    "sex": [0.25, 0.75, 0.75],
    "smoker": [0.5, 1 / 6, 5 / 6],
    "stage": [5 / 6, 1 / 6],
    "kids": [0.5 / 11, 3.5 / 11, 10.5 / 11],
    "code": [0.1, 0.3, 0.5, 0.7, 0.9],
    "hb missing": [0.25, 0.25, 0.75, 0.25],
}


def read(source, columns=COLUMNS, **more):
    return Snapshots.from_table(source, **HOW | {"columns": columns} | more)


def written(path):
    export_tables.write_table(pa.Table.from_pandas(frame(), preserve_index=False), path)
    return path


def with_types(**types):
    return frame().astype(types)


SOURCES = {
    "pandas": lambda _: frame(),
    "nullable": lambda _: with_types(smoker="boolean", sex="string", kids="Float64"),
    "categories": lambda _: with_types(sex="category", code="category", smoker="category"),
    "numbers": lambda _: with_types(smoker=float, kids=float),
    "polars": lambda _: pl.from_pandas(frame()),
    "polars categories": lambda _: pl.from_pandas(frame()).with_columns(
        pl.col("sex").cast(pl.Categorical), pl.col("stage").cast(pl.Enum(["II", "I", "III"]))
    ),
    "arrow": lambda _: pa.Table.from_pandas(frame()),
    "dictionary": lambda _: {name: list(column) for name, column in frame().items()},
    "runs": lambda _: {
        **{name: list(column) for name, column in frame().items()},
        "sex": pa.compute.run_end_encode(pa.array(frame()["sex"])),
    },
    "texts": lambda _: with_types(smoker="str", born="str", kids=float).replace(
        {"smoker": {"None": ""}, "born": {"NaT": "NaN"}}
    ),
    "csv": lambda folder: written(folder / "t.csv"),
    "csv.gz": lambda folder: written(folder / "t.csv.gz"),
    "parquet": lambda folder: written(folder / "t.parquet"),
    "feather": lambda folder: written(folder / "t.feather"),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_rows_and_the_same_digest(source, tmp_path):
    found, expected = read(SOURCES[source](tmp_path)), read(frame())
    for name, units in EXPECTED.items():
        column = found._rows.points[:, found.features.index(name)]
        np.testing.assert_array_equal(column, np.resize(units, N).astype(np.float32))
    np.testing.assert_array_equal(found._rows.points, expected._rows.points)
    assert found._digest == expected._digest


def test_a_csv_file_written_by_pandas_is_the_same_table(tmp_path):
    """Floats and truths become "1.0" and "True" there, missing ones empty."""
    frame().astype({"kids": float}).to_csv(tmp_path / "t.csv", index=False)
    np.testing.assert_array_equal(
        read(tmp_path / "t.csv")._rows.points[:, :6], read(frame())._rows.points[:, :6]
    )


def test_days_are_those_of_the_calendar():
    born = read(frame())._rows.points[:, 5]
    ends = [(dt.date(year, 1, 1) - dt.date(1970, 1, 1)).days for year in (1950, 2010)]
    days = (np.arange(N) * 400 - ends[0]) / (ends[1] - ends[0])
    missing = np.arange(N) % 5 == 0
    np.testing.assert_array_equal(born, np.where(missing, 0.5, days).astype(np.float32))


ARRAYS = {
    "frame": lambda: frame().drop(columns="t"),
    "frame in another order": lambda: frame()[list(COLUMNS)[::-1]],
    "frame of other names": lambda: frame().drop(columns="t").rename(columns=str.upper),
    "objects": lambda: frame()[list(COLUMNS)].to_numpy(dtype=object),
    "rows": lambda: list(frame()[list(COLUMNS)].astype(object).itertuples(index=False, name=None)),
    "records": lambda: frame().astype(object).to_records(index=False),
    "table": lambda: pa.Table.from_pandas(frame().drop(columns="t")),
    "dictionary": lambda: {name: column.tolist() for name, column in frame().items()},
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_of_objects_and_tables_give_the_same_rows(kind):
    found = Snapshots.from_arrays(frame()["t"], ARRAYS[kind](), columns=COLUMNS, time_range=(0, 1))
    np.testing.assert_array_equal(found._rows.points, read(frame())._rows.points)
    assert found._digest == read(frame())._digest


@pytest.mark.parametrize("points", [frame()["sex"], list(frame()["sex"]), np.array(frame()["sex"])])
def test_one_column_may_be_a_list(points):
    found = Snapshots.from_arrays(
        frame()["t"], points, columns={"sex": ["F", "M"]}, time_range=(0, 1)
    )
    np.testing.assert_array_equal(found._rows.points[:, 0], np.resize([0.25, 0.75, 0.75], N))


def test_points_with_a_column_too_many_are_refused():
    with pytest.raises(InputError, match="there are 2 features but bounds for 1"):
        Snapshots.from_arrays(
            frame()["t"], frame()[["sex", "hb"]].to_numpy(), columns={"x": bool}, time_range=(0, 1)
        )


# Forms ----------------------------------------------------------------------------------------

SAME = {
    "list": ["F", "M"],
    "object": Category(["F", "M"]),
    "pandas": pd.CategoricalDtype(["F", "M"]),
    "polars": pl.Enum(["F", "M"]),
    "words": {"kind": "category", "values": ["F", "M"]},
    "values alone": {"values": ("F", "M")},
    "array": np.array(["F", "M"]),
}


@pytest.mark.parametrize("form", SAME)
def test_a_category_in_every_form(form):
    found = read(frame(), {"sex": SAME[form]})
    assert found.columns == (Category(("F", "M"), "sex"),)


def test_an_ordered_type_of_pandas_keeps_its_order():
    kind = pd.CategoricalDtype(["I", "II", "III"], ordered=True)
    assert read(frame(), {"stage": kind}).columns == (Ordered(("I", "II", "III"), "stage"),)


def test_a_polars_type_without_values_is_refused():
    with pytest.raises(InputError, match="lists no values"):
        read(frame(), {"sex": pl.Categorical()})


def test_bounds_and_columns_go_together():
    both = read(frame(), {"sex": ["F", "M"]}, bounds={"kids": (0, 12)})
    assert both.features == ("kids", "sex")
    assert both.columns == (Number(0, 12, "kids"), Category(("F", "M"), "sex"))


# What is missing ------------------------------------------------------------------------------


@pytest.mark.parametrize("word", sorted(MISSING))
def test_a_text_means_missing_unless_it_is_declared(word):
    cells = pa.chunked_array([["F", word, None]])
    assert Cells.read(cells, Category(["F", "M"], missing=True)).values.tolist() == [0, 2, 2]
    assert np.isnan(Cells.read(cells, Category(["F", "M"], other="M")).values[1:]).all()
    if word:
        told = Category(["F", word], missing=True)
        assert Cells.read(cells, told).values.tolist() == [0, 1, 2]


def test_missing_drops_only_what_must_be_there():
    table = frame()
    assert len(read(table)._rows.times) == N
    strict = COLUMNS | {"smoker": bool}
    with pytest.raises(InputError, match=r"^8 of 24 records have missing values in 'smoker'"):
        read(table, strict)
    dropped = read(table, strict, missing="drop")
    keep = table["smoker"].notna().to_numpy()
    np.testing.assert_array_equal(
        np.delete(dropped._rows.points, 2, axis=1),
        np.delete(read(table)._rows.points[keep], 2, axis=1),
    )


# Keys -----------------------------------------------------------------------------------------

KEYS = [
    (
        [1, 1.0, True, np.float32(1).item(), Decimal("1.00"), "1", "1.0", "true", "True", "tRUE"],
        "1",
    ),
    ([0, -0.0, False, "0", "0.0", "FALSE"], "0"),
    ([-3, -3.0, "-3", "-3.0"], "-3"),
    ([2.5, Decimal("2.5"), "2.5"], "2.5"),
    (["01"], "01"),
    (["1.00"], "1.00"),
    (["yes"], "yes"),
    (["-0.0"], "-0.0"),
    ([None, float("nan")], None),
]


@pytest.mark.parametrize(("values", "key"), KEYS)
def test_a_value_has_one_key_in_every_type(values, key):
    assert {key_of(value) for value in values} == {key}


@given(st.text(max_size=8) | st.integers().map(str) | st.floats().map(repr))
def test_spellings_are_the_texts_of_a_key(text):
    key = key_of(text)
    assert text in spellings(key)
    assert {key_of(spelled) for spelled in spellings(key)} == {key}
    assert len(set(spellings(key))) == len(spellings(key))


def test_whole_numbers_and_truths_stand_for_declared_texts_and_the_reverse():
    cells = pa.chunked_array([pa.array([1.0, 0.0, 2.0])])
    assert Cells.read(cells, Category(["0", "1", "2"])).values.tolist() == [1, 0, 2]
    assert Cells.read(cells.slice(0, 2), Boolean()).values.tolist() == [1, 0]
    assert Cells.read(pa.chunked_array([["2.0", "1"]]), Category([1, 2])).values.tolist() == [1, 0]
    with pytest.raises(InputError, match="1 of 2 records have values in 'x' that are not declared"):
        Cells.read(pa.chunked_array([["yes", "1"]]), Category([0, 1], name="x"))


def test_booleans_take_answers_as_people_write_them():
    said = ["yes", "No", "Y", "n", "T", "f", "TRUE", "0", "NO", "yEs"]
    found = Cells.read(pa.chunked_array([said]), Boolean()).values
    assert found.tolist() == [1, 0, 1, 0, 1, 0, 1, 0, 0, 1]
    for other in ("ja", "2", "yes ", "-1"):
        with pytest.raises(InputError, match="'x' that are not true or false, yes or no, 1 or 0"):
            Cells.read(pa.chunked_array([[other]]), Boolean(name="x"))
    with pytest.raises(InputError, match="1 of 1 records have missing"):
        Snapshots.from_table({"t": [0.0], "x": ["NA"]}, **HOW, columns={"x": bool})


# Digests --------------------------------------------------------------------------------------


def test_the_digest_of_numbers_is_what_it_was():
    """Ledgers on disk know it."""
    table = {"t": np.arange(12) / 12, "x": np.arange(12.0), "y": np.r_[-0.0, np.arange(11) / 7]}
    found = Snapshots.from_table(table, **HOW, bounds={"x": (0, 9), "y": (0, 1)})
    known = "f6a9163066af5560f92e6c3afc6b0e7cc3ca4917cab0a94b82c4e867a132d945"
    assert found._digest.hex() == known


DECLARED = {
    "another order": Category(["NA", "1", "01"], other="other", missing=True),
    "more values": Category(["01", "1", "NA", "zz"], missing=True),
    "fewer values": Category(["01"], other="rest", missing=True),
    "ordered": Ordered(["01", "1", "NA"], other="other", missing=True),
}


@pytest.mark.parametrize("change", DECLARED)
def test_the_digest_knows_texts_and_not_what_is_declared_of_them(change):
    known = read(frame())
    assert read(frame(), COLUMNS | {"code": DECLARED[change]})._digest == known._digest


def test_the_digest_knows_every_cell():
    known = read(frame())._digest
    for name, cell in {"code": "z", "sex": "M", "smoker": False, "hb": 7.0, "kids": 4}.items():
        table = frame()
        table.loc[0, name] = cell
        assert read(table)._digest != known


def test_missing_cells_are_one_in_a_digest():
    odd = np.array([0x7FF8000000000001], np.uint64).view(np.float64)
    batches = [np.array([[0.5, x]]) for x in (np.nan, -np.nan, odd[0])]
    assert len({digest_of(["x"], [batch]) for batch in batches}) == 1
    assert {fingerprint(key) != fingerprint(key) for key in (None, "", "NA")} == {True}
    assert fingerprint("F") == int(fingerprint("F")) < 2**53


# What is said of them -------------------------------------------------------------------------


def test_a_certificate_says_what_was_declared_and_no_flag():
    assert read(frame()).public_inputs()["bounds"] == {
        "hb": {"kind": "number", "low": 4, "high": 15, "missing": True},
        "sex": {"kind": "category", "values": ["F", "M"], "fixed": True},
        "smoker": {"kind": "boolean", "values": [False, True], "missing": True},
        "stage": {"kind": "ordered", "values": ["I", "II", "III"]},
        "kids": {"kind": "integer", "low": 0, "high": 10},
        "born": {"kind": "date", "low": "1950-01-01", "high": "2010-01-01", "missing": True},
        "code": {
            "kind": "category",
            "values": ["01", "1", "NA"],
            "other": "other",
            "missing": True,
        },
    }


def test_snapshots_show_their_columns():
    assert repr(read(frame())) == (
        "Snapshots(t from 0.0 to 1.0; hb in [4, 15] or missing, sex in {F, M} (fixed), "
        "smoker true or false or missing, stage in {I < II < III}, kids in {0, ..., 10}, "
        "born in [1950-01-01, 2010-01-01] or missing, code in {01, 1, NA, other} or missing)"
    )
    many = Category([f"c{k}" for k in range(300)], "code", other="rest")
    assert str(many) == "code in {c0, c1, c2, c3, c4, 295 more, rest}"


# A row is its own -----------------------------------------------------------------------------


@given(st.lists(st.integers(0, N - 1), min_size=10, max_size=30))
def test_what_a_person_contributes_does_not_depend_on_others(who):
    """The row of a record is the same in every table that has it."""
    whole = read(frame())._rows.points
    some = read(frame().iloc[who])._rows.points
    np.testing.assert_array_equal(some, whole[who])
