"""Reading and writing tables: every source gives the same columns, no message quotes a cell."""

import ast
import datetime as dt
import decimal
import gzip
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privtraj import columns, datasets
from privtraj.base import errors, files
from privtraj.base.errors import InputError
from privtraj.cli import config
from privtraj.data import (
    arrow,
    records,
    snapshots,
    sql,
    tables,
)
from privtraj.data.dialect import DATE, TEXT, Dialect
from privtraj.export import tables as export_tables
from privtraj.privacy import guard

SECRET = "123.4567"
ROWS = {"id": ["007", "7", "c"], "age": [1.5, None, 3.0], "visits": [1, 2, 3]}


def _write(tmp_path, name):
    path = tmp_path / name
    export_tables.write_table(pa.table(ROWS), path)
    return path


SOURCES = {
    "csv": lambda p: _write(p, "t.csv"),
    "csv.gz": lambda p: _write(p, "t.csv.gz"),
    "path as text": lambda p: str(_write(p, "t.CSV")),
    "parquet": lambda p: _write(p, "t.parquet"),
    "pq": lambda p: _write(p, "t.pq"),
    "arrow": lambda p: _write(p, "t.arrow"),
    "feather": lambda p: _write(p, "t.feather"),
    "arrow table": lambda p: pa.table(ROWS),
    "record batch": lambda p: pa.RecordBatch.from_pydict(ROWS),
    "record batch reader": lambda p: pa.table(ROWS).to_reader(),
    "pandas": lambda p: pd.DataFrame(ROWS, index=[5, 6, 7]),
    "polars": lambda p: pl.DataFrame(ROWS),
    "dictionary": lambda p: ROWS,
    "dictionary of arrays": lambda p: {k: np.array(v) for k, v in ROWS.items()},
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_source_gives_the_same_columns(source, tmp_path):
    table = tables.read_columns(source(tmp_path), ["age", "id"], {"id": TEXT})
    assert table.column_names == ["age", "id"]
    np.testing.assert_array_equal(arrow.numbers(table.column("age"), "age"), [1.5, np.nan, 3])
    assert table.column("id").to_pylist() == ROWS["id"]


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_missing_column_is_answered_with_those_there_are(source, tmp_path):
    with pytest.raises(InputError, match=r"it has 'id', 'age', 'visits'$"):
        tables.read_columns(source(tmp_path), ["none"])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_delimiters_quotes_and_byte_order_mark(delimiter, tmp_path):
    path = tmp_path / "t.csv"
    rows = [['"a b"', "note", "x"], ["1", '"two\nlines"', "2.5"], ["", "", "NA"]]
    text = "\n".join(delimiter.join(row) for row in rows) + "\n"
    path.write_text("\ufeff" + text, encoding="utf-8")
    with pytest.raises(InputError, match=r"1 lines of .* end inside quotation marks"):
        tables.read_columns(path, ["x", "a b"])
    table = tables.read_columns(path, ["x", "a b"], {}, Dialect(newlines="quoted"))
    np.testing.assert_array_equal(arrow.numbers(table.column("x"), "x"), [2.5, np.nan])
    np.testing.assert_array_equal(arrow.numbers(table.column("a b"), "a b"), [1, np.nan])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([True, None, False]), [1, np.nan, 0]),
        (pa.array([1, None, 3], pa.int8()), [1, np.nan, 3]),
        (pa.array([2**60 + 1]), [2.0**60]),
        (pa.array([1.5, None], pa.float32()), [1.5, np.nan]),
        (pa.array([decimal.Decimal("1.25"), None]), [1.25, np.nan]),
        (pa.array([decimal.Decimal("10.008")]), [10.008]),
        (pa.array([decimal.Decimal("-1E-12"), decimal.Decimal(0)]), [-1e-12, 0]),
        (pa.array([2.5, None, 2.5]).dictionary_encode(), [2.5, np.nan, 2.5]),
        (pa.array([None, None]), [np.nan, np.nan]),
        (pa.array([], pa.int64()), []),
    ],
)
def test_numbers_of_every_kind(values, expected):
    result = arrow.numbers(pa.chunked_array([values]), "x")
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, expected)


NOON = dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([NOON.replace(tzinfo=None), None]),
        pa.array([NOON.replace(tzinfo=None), None], pa.timestamp("ns")),
        pa.array([NOON.replace(tzinfo=None), None], pa.timestamp("s")),
        pa.array([NOON.astimezone(dt.timezone(dt.timedelta(hours=5))), None]),
        pa.array([NOON, None], pa.timestamp("ms", "Europe/Helsinki")),
    ],
)
def test_moments_are_utc_seconds(values):
    seconds, datetime = arrow.moments(pa.chunked_array([values]), "t")
    assert datetime
    np.testing.assert_array_equal(seconds, [NOON.timestamp(), np.nan])


FRAMES = {
    "pandas categories": pd.DataFrame({"x": pd.Categorical([2.5, None, 1])}),
    "pandas Float64": pd.DataFrame({"x": pd.array([2.5, None, 1], "Float64")}),
    "pandas on pyarrow": pd.DataFrame({"x": pd.array([2.5, None, 1], "double[pyarrow]")}),
    "pandas objects": pd.DataFrame({"x": np.array([2.5, None, 1], object)}),
    "a series of categories": {"x": pd.Series(pd.Categorical([2.5, None, 1]))},
    "polars decimals": pl.DataFrame({"x": pl.Series(["2.5", None, "1"]).cast(pl.Decimal(9, 1))}),
    "polars single": pl.DataFrame({"x": pl.Series([2.5, None, 1], dtype=pl.Float32)}),
    "a polars series": {"x": pl.Series([2.5, None, 1])},
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_numbers_of_frames(frame):
    column = tables.read_columns(frame, ["x"]).column("x")
    np.testing.assert_array_equal(arrow.numbers(column, "x"), [2.5, np.nan, 1])


_HELSINKI = pd.Series([NOON, None]).dt.tz_convert("Europe/Helsinki")
DATED = {
    "pandas": pd.DataFrame({"x": _HELSINKI}),
    "pandas without a zone": pd.DataFrame(
        {"x": _HELSINKI.dt.tz_convert("UTC").dt.tz_localize(None)}
    ),
    "pandas categories": pd.DataFrame({"x": pd.Categorical(_HELSINKI)}),
    "pandas on pyarrow": pd.DataFrame(
        {"x": _HELSINKI.astype("timestamp[ns, Asia/Tokyo][pyarrow]")}
    ),
    "pandas objects": pd.DataFrame({"x": np.array([NOON, None], object)}),
    "polars": pl.DataFrame({"x": pl.Series([NOON, None]).dt.convert_time_zone("Europe/Helsinki")}),
    "polars without a zone": pl.DataFrame({"x": [NOON.replace(tzinfo=None), None]}),
    "a series": {"x": _HELSINKI},
}


@pytest.mark.parametrize("frame", DATED.values(), ids=DATED)
def test_dates_of_frames_are_utc_seconds(frame):
    seconds, dated = arrow.moments(tables.read_columns(frame, ["x"]).column("x"), "x")
    assert dated
    np.testing.assert_array_equal(seconds, [NOON.timestamp(), np.nan])


WORDS = ["b", None, "a", "b"]
NAMED = {
    "pandas categories": pd.DataFrame({"x": pd.Categorical(WORDS)}),
    "pandas strings": pd.DataFrame({"x": pd.array(WORDS, "string")}),
    "polars categories": pl.DataFrame({"x": pl.Series(WORDS, dtype=pl.Categorical)}),
    "polars enumeration": pl.DataFrame({"x": pl.Series(WORDS, dtype=pl.Enum(["a", "b"]))}),
    "polars strings": pl.DataFrame({"x": WORDS}),
}


@pytest.mark.parametrize("frame", NAMED.values(), ids=NAMED)
def test_words_of_frames(frame):
    column = tables.read_columns(frame, ["x"]).column("x")
    codes, ids = records.identities(column, "id")
    assert [None if code < 0 else ids[code].as_py() for code in codes] == WORDS
    with pytest.raises(InputError, match="holds text, and 3 of its 4 rows do not read as numbers"):
        arrow.numbers(column, "x")


def test_moments_of_dates_and_numbers():
    days = pa.chunked_array([pa.array([dt.date(1970, 1, 2), None, dt.date(1969, 12, 31)])])
    seconds, datetime = arrow.moments(days, "t")
    assert datetime
    np.testing.assert_array_equal(seconds, [86400, np.nan, -86400])
    assert arrow.moments(pa.chunked_array([[1, 2]]), "t")[1] is False


def test_csv_dates_are_read_where_they_are_declared(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("day,at,zone\n2024-01-31,2024-01-31T12:00:00.5,2024-01-31T14:00:00+02:00\n")
    names = ("day", "at", "zone")
    table = tables.read_columns(path, names, dict.fromkeys(names, DATE))
    found = [arrow.moments(table.column(name), name)[0][0] for name in names]
    assert found == [NOON.timestamp() - 43200, NOON.timestamp() + 0.5, NOON.timestamp()]


def test_identities_mark_missing():
    codes, ids = records.identities(pa.chunked_array([["a", None], ["b", "a"]]), "id")
    assert codes.tolist() == [0, -1, 1, 0]
    assert ids.to_pylist() == ["a", "b"]


# Mistakes -----------------------------------------------------------------------------------


def _text(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


MISTAKES = {
    "no such file": (lambda p: p / "none.csv", "there is no file"),
    "a directory": (lambda p: _dir(p / "d.csv"), "there is no file"),
    "unknown suffix": (lambda p: _text(p / "t.xlsx", SECRET), "file type of 't.xlsx' is not known"),
    "empty csv": (lambda p: _text(p / "t.csv", ""), "has no header"),
    "ragged csv": (lambda p: _text(p / "t.csv", f"x,y\n1,2,{SECRET}\n"), "cannot be read as csv"),
    "latin-1 csv": (lambda p: _text(p / "t.csv", b"x,\xe9\n1,2\n"), "not text in UTF-8"),
    "latin-1 cell": (lambda p: _text(p / "t.csv", b"x\n\xe9123.4567\n"), "not text in UTF-8"),
    "broken gzip": (lambda p: _text(p / "t.csv.gz", f"x\n{SECRET}\n"), "cannot be read"),
    "cut gzip": (
        lambda p: _text(p / "t.csv.gz", gzip.compress(b"x\n" + b"123.4567\n" * 9)[:-12]),
        "cannot be read",
    ),
    "broken parquet": (lambda p: _text(p / "t.pq", SECRET), "cannot be read as parquet"),
    "broken arrow": (lambda p: _text(p / "t.arrow", SECRET), "cannot be read as arrow"),
    "missing column": (lambda p: {"y": [SECRET], "z": [1]}, "no column 'x': it has 'y', 'z'"),
    "missing in csv": (lambda p: _text(p / "t.csv", f"y\n{SECRET}\n"), "no column 'x': it has 'y'"),
    "missing in pandas": (lambda p: pd.DataFrame({"y": [SECRET]}), "no column 'x'"),
    "missing in parquet": (lambda p: _parquet(p, {"y": [SECRET]}), "no column 'x'"),
    "no header in csv": (
        lambda p: _text(p / "t.csv", f"{SECRET},b\n{SECRET},c\n"),
        "1 of the 2 names in the first line",
    ),
    "repeated column": (
        lambda p: _text(p / "t.csv", f"x,x\n1,{SECRET}\n"),
        "more than one column named 'x'",
    ),
    "repeated in pandas": (
        lambda p: pd.DataFrame([[1, SECRET]], columns=["x", "x"]),
        "more than one column named 'x'",
    ),
    "text": (lambda p: {"x": ["1", SECRET + " kg"]}, "holds text, and 1 of its 2 rows"),
    "text in csv": (
        lambda p: _text(p / "t.csv", f"x\n1\n{SECRET}kg\n"),
        "1 of 2 cells of column 'x' are",
    ),
    "decimal comma": (lambda p: _text(p / "t.csv", "x;y\n1,5;123,4567\n"), "decimal comma"),
    "dates": (lambda p: {"x": [dt.date(2024, 1, 31)]}, "holds dates or times"),
    "lists": (lambda p: {"x": pa.array([[1.0, 123.4567]])}, "its type is list"),
    "mixed": (lambda p: {"x": [1, SECRET, {}]}, "column 'x' mixes kinds of values"),
    "mixed in pandas": (lambda p: pd.DataFrame({"x": [1.5, SECRET, {}]}), "column 'x' mixes"),
    "lengths": (lambda p: {"x": [123.4567], "y": [1, 2]}, "differ in length"),
    "not a table": (lambda p: 123.4567, "type float cannot be read as a table"),
}


def _dir(path):
    path.mkdir()
    return path


def _parquet(directory, columns):
    pq.write_table(pa.table(columns), directory / "t.parquet")
    return directory / "t.parquet"


@pytest.mark.parametrize(("make", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_explained_without_quoting_cells(make, message, tmp_path):
    source = make(tmp_path)
    wanted = ["x", "y"] if message == "differ in length" else ["x"]
    with pytest.raises(InputError, match=message) as error:
        arrow.numbers(tables.read_columns(source, wanted).column("x"), "x")
    _assert_silent(error)


def test_text_times_are_refused():
    with pytest.raises(InputError, match="neither numeric nor a date") as error:
        arrow.moments(pa.chunked_array([[SECRET + " o'clock"]]), "t")
    _assert_silent(error)


def _assert_silent(error):
    """No cell in the message, nor in an error chained to it that a traceback would show."""
    assert "123.4567" not in str(error.value)
    assert "123,4567" not in str(error.value)
    assert error.value.__suppress_context__ or error.value.__context__ is None
    assert str(error.value).count(". ") == 0, "one sentence"


# Writing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.pq", "t.arrow", "t.feather"])
def test_write_then_read(name, tmp_path):
    path = _write(tmp_path, name)
    table = tables.read_columns(path, list(ROWS), {"id": TEXT})
    assert table.to_pydict() == ROWS
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_an_existing_file_is_kept_unless_forced(tmp_path):
    path = _write(tmp_path, "t.csv")
    before = path.read_bytes()
    with pytest.raises(InputError, match="force=True"):
        export_tables.write_table(pa.table({"x": [1]}), path)
    assert path.read_bytes() == before
    export_tables.write_table(pa.table({"x": [1]}), path, force=True)
    assert path.read_text() == '"x"\n1\n'


def _write_half(path, error):
    with files.atomic_path(path, force=True) as temporary:
        assert temporary.parent == path.parent
        assert temporary.suffix == path.suffix
        temporary.write_text("half")
        raise error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failed_write_leaves_no_trace(error, tmp_path):
    path = tmp_path / "model.bin"
    path.write_text("old")
    with pytest.raises(error):
        _write_half(path, error)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_where_writing_is_refused(tmp_path):
    with pytest.raises(InputError, match="create it first"):
        export_tables.write_table(pa.table(ROWS), tmp_path / "none" / "t.csv")
    with pytest.raises(InputError, match="is a directory"):
        export_tables.write_table(pa.table(ROWS), _dir(tmp_path / "d.csv"), force=True)
    with pytest.raises(InputError, match="not known"):
        export_tables.write_table(pa.table(ROWS), tmp_path / "t.docx")
    assert list(tmp_path.iterdir()) == [tmp_path / "d.csv"]


@pytest.mark.parametrize(
    "module",
    [
        columns,
        config,
        datasets,
        errors,
        records,
        guard,
        snapshots,
        sql,
        tables,
    ],
)
def test_importing_needs_arrays_and_arrow_only(module):
    tree = ast.parse(Path(module.__file__).read_text())
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    roots = {
        name.split(".")[0]
        for node in imports
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
        )
        if name
    }
    assert roots - set(sys.stdlib_module_names) <= {"lazy_loader", "numpy", "privtraj", "pyarrow"}
