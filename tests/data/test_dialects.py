"""CSV files in every dialect: each cell is read by itself, by its column's kind and what is
declared; what is unreadable is counted, and no message quotes a cell."""

import codecs
import csv
import datetime as dt
import gzip
import io
import math
import time
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj import cli
from privtraj.base.errors import InputError
from privtraj.columns.kinds import Category, Date
from privtraj.data import detection, sql, tables
from privtraj.data.dialect import (
    DATE,
    DELIMITERS,
    NUMBER,
    PLAIN,
    TEXT,
    CellKind,
    Dialect,
    Readings,
    read_cells,
)
from privtraj.data.snapshots import QUOTED, Snapshots
from privtraj.privacy.certificate import STATED

SECRET = "123,4567"
MARKS = [
    (".", ""),
    (",", ""),
    (".", ","),
    (",", "."),
    (".", " "),
    (",", " "),
    (".", "'"),
    (",", "'"),
]


def numbers(cells, **declared):
    values, odd = read_cells(pa.array(cells, pa.string()), NUMBER, Dialect.of(declared))
    return values.to_pylist(), odd.to_pylist()


def days(cells, **declared):
    values, odd = read_cells(pa.array(cells, pa.string()), DATE, Dialect.of(declared))
    return values.to_pylist(), odd.to_pylist()


# Numbers --------------------------------------------------------------------------------------


def written(value, decimal, thousands, blank=" "):
    """A number as people of a country write it."""
    text = f"{value:,.6f}".replace(",", "\0").replace(".", decimal)
    return text.replace("\0", blank if thousands == " " else thousands)


@settings(max_examples=60)
@given(
    values=st.lists(st.floats(-1e12, 1e12).map(lambda x: round(x, 6)), min_size=1, max_size=6),
    marks=st.sampled_from(MARKS),
    blank=st.sampled_from(" \u00a0\u202f\u2009"),
)
def test_numbers_of_every_dialect_come_back(values, marks, blank):
    decimal, thousands = marks
    cells = [written(value, decimal, thousands, blank) for value in values]
    plain = [f"{value:.6f}".replace(".", decimal) for value in values]  # thousands may be left out
    for texts in (cells, plain, [f" {cell}\u00a0" for cell in cells]):
        found, odd = numbers(texts, decimal=decimal, thousands=thousands)
        assert found == [float(f"{value:.6f}") for value in values]
        assert not any(odd)


@pytest.mark.parametrize(
    ("cell", "declared", "expected"),
    [
        ("1.234,5", {"decimal": ",", "thousands": "."}, 1234.5),
        ("1,234.5", {"thousands": ","}, 1234.5),
        ("1 234,5", {"decimal": ",", "thousands": " "}, 1234.5),
        ("1\u2019234.5", {"thousands": "'"}, 1234.5),
        ("1.23,4", {"decimal": ",", "thousands": "."}, None),
        ("1,5", {"thousands": ","}, None),
        ("1,5", {}, None),
        ("1.5", {"decimal": ","}, None),
        ("\u22123,5", {"decimal": "comma"}, -3.5),
        ("+7", {}, 7),
        ("1.5e3", {}, 1500),
        ("1,5E-3", {"decimal": ","}, 0.0015),
        (".5", {}, 0.5),
        ("5.", {}, 5),
        ("TRUE", {}, 1),
        ("false", {}, 0),
        ("-inf", {}, -math.inf),
        ("72 kg", {}, None),
        ("1_000", {}, None),
        ("0x10", {}, None),
        ("\u0661", {}, None),
    ],
)
def test_numbers(cell, declared, expected):
    found, odd = numbers([cell], **declared)
    assert found == [expected]
    assert odd == [expected is None]


@pytest.mark.parametrize("cell", ["", " ", "NA", "n/a", "NULL", "null", "NaN", "-", " NA ", "k.A."])
def test_what_is_missing_is_not_unreadable(cell):
    for kind in (NUMBER, DATE, TEXT):
        values, odd = read_cells(pa.array([cell]), kind, Dialect(missing=("k.A.",)))
        assert values.null_count == 1
        assert odd.true_count == 0


def test_a_declared_value_of_a_category_is_never_missing():
    cells = pa.array(["none", "-", "k.A.", "x"])
    kind = CellKind.of(Category(["none", "x"], missing=True))
    values, _ = read_cells(cells, kind, Dialect(missing=("none", "k.A.")))
    assert values.to_pylist() == ["none", "-", None, "x"]


# Dates ----------------------------------------------------------------------------------------

FORMS = {
    "DD.MM.YYYY": "%d.%m.%Y",
    "DD/MM/YYYY": "%d/%m/%Y",
    "MM/DD/YYYY": "%m/%d/%Y",
    "DD-MM-YYYY": "%d-%m-%Y",
    "YYYY/MM/DD": "%Y/%m/%d",
    "YYYYMMDD": "%Y%m%d",
    "YYYY-DD-MM": "%Y-%d-%m",
}


@settings(max_examples=60)
@given(
    moments=st.lists(
        st.datetimes(dt.datetime(1000, 1, 1), dt.datetime(9999, 12, 31)), min_size=1, max_size=5
    ),
    form=st.sampled_from(sorted(FORMS)),
)
def test_dates_of_every_form_come_back(moments, form):
    as_days = [moment.strftime(FORMS[form]) for moment in moments]
    assert days(as_days, dates=form) == (
        [dt.datetime(m.year, m.month, m.day) for m in moments],
        [False] * len(moments),
    )
    full = [f"{day} {m.time().isoformat()}" for day, m in zip(as_days, moments, strict=True)]
    assert days(full, dates=FORMS[form])[0] == moments, "as strptime writes the form, too"


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("1.2.2019", dt.datetime(2019, 2, 1)),
        ("31.04.2019", None),
        ("29.02.2020", dt.datetime(2020, 2, 29)),
        ("29.02.2019", None),
        ("31.01.2019 14:30", dt.datetime(2019, 1, 31, 14, 30)),
        ("31.01.2019T14:30:05.25+02:00", dt.datetime(2019, 1, 31, 12, 30, 5, 250000)),
        ("31.01.1969 23:30 -01", dt.datetime(1969, 2, 1, 0, 30)),
        ("31.01.2019 24:00", None),
        ("31.01.19", None),
        ("01/31/2019", None),
        ("2019-01-31", dt.datetime(2019, 1, 31)),
        ("2019-01-31T12", dt.datetime(2019, 1, 31, 12)),
        ("2019-01-31T12:00:00.123456789Z", dt.datetime(2019, 1, 31, 12, 0, 0, 123456)),
    ],
)
def test_dates_as_germans_write_them_and_iso(cell, expected):
    assert days([cell], dates="DD.MM.YYYY") == ([expected], [expected is None])


# Files ----------------------------------------------------------------------------------------

HEAD = ["id", "day", "Weight [kg]", "Größe (cm)"]
ROWS = [["007", "31.01.2019", "1.072,5", "180"], ["7", "01.02.2019", "", '"65,25"']]
GERMAN = {"decimal": ",", "thousands": ".", "dates": "DD.MM.YYYY"}
KINDS = {"id": TEXT, "day": DATE, "Weight": NUMBER, "Größe": NUMBER}


def save(path, delimiter=";", encoding="utf-8", rows=ROWS):
    text = "\r\n".join(delimiter.join(row) for row in [HEAD, *rows]) + "\r\n"
    data = text.encode(encoding)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("delimiter", [*DELIMITERS.values()])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "windows-1252", "latin-1"])
def test_every_delimiter_and_encoding(name, delimiter, encoding, tmp_path):
    rows = [
        [f'"{cell}"' if "," in cell and '"' not in cell else cell for cell in row] for row in ROWS
    ]
    path = save(tmp_path / name, delimiter, encoding, rows)
    needs = encoding in ("windows-1252", "latin-1")
    dialect = Dialect.of(GERMAN | ({"encoding": encoding} if needs else {}))
    table = tables.read_columns(path, list(KINDS), KINDS, dialect)
    assert table.to_pydict() == {
        "id": ["007", "7"],
        "day": [dt.datetime(2019, 1, 31), dt.datetime(2019, 2, 1)],
        "Weight": [1072.5, None],
        "Größe": [180, 65.25],
    }


def test_columns_are_named_with_or_without_their_unit(tmp_path):
    path = save(tmp_path / "t.csv")
    for name in ("Weight", "Weight [kg]"):
        read = tables.read_columns(path, [name], {name: NUMBER}, Dialect.of(GERMAN))
        assert read.column(name).to_pylist() == [1072.5, None]
    for source in ({"Weight [kg]": [1.0]}, pa.table({"Weight [kg]": [1.0]})):
        assert tables.read_columns(source, ["Weight"]).column_names == ["Weight"]
    both = {"w [kg]": [1], "w [lb]": [2]}
    with pytest.raises(InputError, match=r"'w' may be 'w \[kg\]' or 'w \[lb\]'"):
        tables.read_columns(both, ["w"])
    assert tables.read_columns({"w": [3], "w [lb]": [2]}, ["w"])["w"].to_pylist() == [3]
    with pytest.raises(InputError, match="with its unit and without it"):
        tables.read_columns({"w [kg]": [1]}, ["w [kg]", "w"])


def test_commas_in_quoted_names_delimit_nothing(tmp_path):
    (tmp_path / "t.csv").write_text('"a, in m, or so";b\n1;2\n')
    assert tables.read_columns(tmp_path / "t.csv", ["b"])["b"].to_pylist() == [2]


# One cell -------------------------------------------------------------------------------------

ODD = ["", "x", "1,5", "1.5", "1.234", "01/02/2019", "13/01/2019", "2019-01-31", "NA", '"', "1;2"]
CELLS = st.sampled_from(ODD) | st.text("0123456789.,-/ kgNA'", max_size=10)


@settings(max_examples=150)
@given(
    cells=st.lists(CELLS, min_size=2, max_size=8),
    other=CELLS,
    place=st.integers(0, 7),
    marks=st.sampled_from(MARKS),
    form=st.sampled_from(sorted(FORMS)),
    kind=st.sampled_from([NUMBER, DATE, TEXT]),
)
def test_changing_one_cell_changes_only_how_its_own_row_is_read(
    cells, other, place, marks, form, kind
):
    """Or one person would change what others contribute, and a count move by more than it pays."""
    dialect = Dialect.of({"decimal": marks[0], "thousands": marks[1], "dates": form})
    place %= len(cells)
    changed = [*cells[:place], other, *cells[place + 1 :]]
    before, after = (
        read_cells(pa.array(texts, pa.string()), kind, dialect) for texts in (cells, changed)
    )
    for old, new in zip(before, after, strict=True):
        old, new = old.to_pylist(), new.to_pylist()
        del old[place], new[place]
        assert old == new


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(
    "cell", ["", "x", "13/01/2019", "1.234", "1,5", "7.5", "2019-05-01", "true"]
)
@pytest.mark.parametrize("column", ["t", "x"])
def test_the_same_of_a_file_that_is_fitted(large, cell, column, tmp_path, monkeypatch):
    """Whatever one person's cell is, the rows of all others are the very same."""
    if large:
        pytest.importorskip("duckdb")
        monkeypatch.setattr(sql, "LARGE_FILE", 0)
    rows = {
        "t": [f"{k % 28 + 1:02d}/02/2019" for k in range(20)],
        "x": [f"{k},5" for k in range(20)],
    }

    def read(name):
        lines = [";".join((str(k), *row)) for k, row in enumerate(zip(*rows.values(), strict=True))]
        (tmp_path / name).write_text("\n".join(["id;t;x", *lines, ""]))
        csv = {"decimal": ",", "dates": "DD/MM/YYYY", "unreadable": "missing"}
        how = {"time": "t", "bounds": {"x": (0, 30)}, "time_range": ("2019-02-01", "2019-03-01")}
        found = Snapshots.from_table(tmp_path / name, **how, person="id", missing="drop", csv=csv)
        rows_read = found._rows.in_slabs(found.axis.bins)
        return sorted(rows_read.points[:, 0].tolist()), found

    before, _ = read("before.csv")
    mine = float(np.float32(19.5 / 30))
    rows[column][19] = cell
    after, _ = read("after.csv")
    before.remove(mine)
    extra = list(after)
    for value in before:
        extra.remove(value)  # all others are there, as they were
    assert len(extra) <= 1


# What is unreadable ---------------------------------------------------------------------------

REASONS = {
    "a decimal comma": ([SECRET, "1,5", "2"], NUMBER, 2, "csv={'decimal': ','}"),
    "thousands": (["1,234.5", "1,000.25"], NUMBER, 2, "csv={'thousands': ','}"),
    "both": (["1.234,5", "1.000,25"], NUMBER, 2, "csv={'decimal': ',', 'thousands': '.'}"),
    "nobody can tell": (["1,234", "2,345"], NUMBER, 2, "which only you can tell"),
    "words": (["tall", "7"], NUMBER, 1, "declare another kind or column"),
    "dates": (["31.12.2019", "1.1.2019"], NUMBER, 2, "declare the column as a date"),
    "german dates": (["31.12.2019"], DATE, 1, "csv={'dates': 'DD.MM.YYYY'}"),
    "american dates": (["12/31/2019", "01/02/2019"], DATE, 2, "csv={'dates': 'MM/DD/YYYY'}"),
    "either": (["01/02/2019"], DATE, 1, "DD/MM/YYYY or MM/DD/YYYY, which only you can tell"),
    "numbers": (["5", "7"], DATE, 2, "most are numbers"),
    "no dates": (["tall"], DATE, 1, "they should be as YYYY-MM-DD"),
}


@pytest.mark.parametrize("why", REASONS)
def test_a_refusal_counts_cells_and_says_what_to_declare(why):
    cells, kind, count, said = REASONS[why]
    column = Readings("x", kind, PLAIN)
    for cell in cells:  # however they come
        column.read(pa.array([cell]))
    with pytest.raises(InputError) as error:
        column.check()
    start = f"{count} of {len(cells)} cells of column 'x' are not {kind.word}s: "
    assert str(error.value).startswith(start)
    assert said in str(error.value)
    assert not any(cell in str(error.value) for cell in cells if len(cell) > 2)


def test_one_bad_cell_is_named_by_its_column_and_count(tmp_path):
    lines = [f"{k},{k}.5" for k in range(5299)]
    (tmp_path / "t.csv").write_text("\n".join(["t,weight", *lines, "3,12.5kg", ""]))
    how = {"time": "t", "bounds": {"weight": (0, 100)}, "time_range": (0, 100)}
    with pytest.raises(InputError, match=r"^1 of 5300 cells of column 'weight' are not numbers: "):
        Snapshots.from_table(tmp_path / "t.csv", **how)
    csv = {"unreadable": "missing"}
    with pytest.raises(InputError, match="1 of 5300 records have missing values in 'weight'"):
        Snapshots.from_table(tmp_path / "t.csv", **how, csv=csv)
    kept = Snapshots.from_table(tmp_path / "t.csv", **how, csv=csv, missing="drop")
    assert len(kept._rows.times) == 5299


def test_columns_of_every_kind_in_a_dialect(tmp_path):
    lines = [f"{k};{k % 12 + 1}.3.2019;{k},5;{'ja' if k % 2 else 'nein'};k.A." for k in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["t;born;x [m];smoker;code", *lines, ""]))
    columns = {
        "born": Date("2019-01-01", "2020-01-01"),
        "x": (0, 20),
        "smoker": ["ja", "nein"],
        "code": Category(["a", "b"], missing=True),
    }
    csv = GERMAN | {"thousands": "none", "missing": "k.A."}
    found = Snapshots.from_table(
        tmp_path / "t.csv", time="t", columns=columns, time_range=(0, 20), csv=csv
    )
    assert found.features == ("born", "x", "smoker", "code")
    np.testing.assert_allclose(found._rows.points[:, 1], (np.arange(20) + 0.5) / 20, atol=1e-7)
    assert (found._rows.points[:, 3] > 2 / 3).all(), "the level of what is missing"


# What is declared -----------------------------------------------------------------------------

WRONG = {
    "no settings": (",", "must be settings"),
    "unknown": ({"decimals": ","}, "has no 'decimals'"),
    "delimiter": ({"delimiter": "::"}, "this delimiter: .* sign itself"),
    "decimal": ({"decimal": ";"}, "this decimal"),
    "the same": ({"decimal": ",", "thousands": ","}, "must differ"),
    "encoding": ({"encoding": "klingon"}, "encoding that is not known"),
    "no encoding of text": ({"encoding": "base64"}, "encoding that is not known"),
    "dates": ({"dates": "DD.MM.YY"}, "no form that is known"),
    "twice the month": ({"dates": "MM.MM.YYYY"}, "no form that is known"),
    "both orders": ({"dates": ["DD/MM/YYYY", "MM/DD/YYYY"]}, "no cell tells apart"),
    "missing": ({"missing": 999}, "missing as a text or a list"),
    "unreadable": ({"unreadable": "drop"}, "this unreadable: it must be refuse or missing$"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_dialect_that_cannot_be(what):
    declared, message = WRONG[what]
    with pytest.raises(InputError, match=message):
        Dialect.of(declared)


@given(
    marks=st.sampled_from(MARKS),
    delimiter=st.sampled_from([None, *DELIMITERS.values()]),
    dates=st.sampled_from([("YYYY-MM-DD",), ("DD.MM.YYYY",), ("DD.MM.YYYY", "MM/DD/YYYY")]),
    missing=st.sampled_from([(), ("k.A.",), ("k.A.", "999")]),
)
def test_settings_make_the_same_dialect_again(marks, delimiter, dates, missing):
    dialect = Dialect(delimiter, None, *marks, dates, missing)
    assert Dialect.of(dialect.settings() or None) == dialect
    assert Dialect.of(dialect) == dialect


def test_a_file_of_another_delimiter_is_told(tmp_path):
    path = save(tmp_path / "t.csv")
    with pytest.raises(InputError, match=r"one name, with a semicolon in it: declare csv=") as said:
        tables.read_columns(path, ["id"], {"id": TEXT}, Dialect(delimiter=","))
    assert "007" not in str(said.value)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("command", ["init", "check", "fit"])
@pytest.mark.parametrize("name", ["wide", "endless"])
def test_a_million_columns_are_refused_soon(name, command, large, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sql, "LARGE_FILE", -1 if large else 2**40)
    monkeypatch.chdir(tmp_path)
    names = ",".join(f"c{k}" for k in range(1_000_000)) if name == "wide" else "c" * 20_000_000
    text = f"t,{names}\n" if name == "wide" else f"t,{names}"
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    declared = ["--time", "t", "--feature", "c1", "0", "1", "--time-range", "0", "1"]
    budget = ["--epsilon", "1", "--delta", "1e-5", "--out", "m.privtraj"]
    options = {"init": [], "check": declared, "fit": [*declared, *budget]}
    start = time.process_time()
    assert cli.main([command, "t.csv", *options[command]]) == 2
    assert time.process_time() - start < 5
    assert capsys.readouterr().err.count("has more than 100000 names, or is endless") == 1


# Guesses --------------------------------------------------------------------------------------


def detected(tmp_path, cells, encoding="utf-8", delimiter=";"):
    path = tmp_path / "t.csv"
    lines = [f"{k}{delimiter}{cell}" for k, cell in enumerate(cells)]
    path.write_bytes("\n".join([f"id{delimiter}größe", *lines, ""]).encode(encoding))
    return detection.detect(path)


GUESSES = {
    "plain": (["1.5", "2"], {}, "number"),
    "comma": (["1,5", "2"], {"decimal": ","}, "number"),
    "german": (["1.234,5", "2,5"], {"decimal": ",", "thousands": "."}, "number"),
    "swiss": (["1'234.5", "2.5"], {"thousands": "'"}, "number"),
    "english": (["1,234.5", "2.5"], {"thousands": ","}, "number"),
    "french": (["1\u202f234,5", "2,5"], {"decimal": ",", "thousands": " "}, "number"),
    "most cells": (["1.5", "2.5", "3.25", "4,5"], {}, "number"),
    "marks": (["1.5", "2.5", "k.A.", "?"], {"missing": ["?", "k.A."]}, "number"),
    "day first": (["31/01/2019", "02/03/2019"], {"dates": "DD/MM/YYYY"}, "date"),
    "month first": (["01/31/2019", "02/03/2019"], {"dates": "MM/DD/YYYY"}, "date"),
    "dots": (["01.02.2019"], {"dates": "DD.MM.YYYY"}, "date"),
    "iso": (["2019-01-31", "2019-02-01"], {}, "date"),
    "words": (["tall", "small", "7"], {}, "text"),
    "nothing": (["", "NA"], {}, "number"),
}


@pytest.mark.parametrize("what", GUESSES)
def test_dialects_are_guessed_by_most_cells(what, tmp_path):
    cells, expected, kind = GUESSES[what]
    found = detected(tmp_path, cells)
    assert found.settings == {"delimiter": ";", **expected}
    assert found.kinds == [("id", "number"), ("größe", kind)]
    assert found.whole


@pytest.mark.parametrize("sign", "/-")
def test_days_and_months_that_no_cell_tells_apart_are_asked_for(sign, tmp_path):
    found = detected(tmp_path, [f"01{sign}02{sign}2019", f"03{sign}04{sign}2019"])
    assert found.settings["dates"] == "<dates>"
    assert found.questions["dates"] == (f"DD{sign}MM{sign}YYYY", f"MM{sign}DD{sign}YYYY")
    assert f"dates may be DD{sign}MM{sign}YYYY or MM{sign}DD{sign}YYYY" in found.notes()[0]


def test_commas_that_may_be_either_are_asked_for(tmp_path):
    assert detected(tmp_path, ["1,234", "5,678"]).settings["decimal"] == "<decimal>"


@pytest.mark.parametrize(
    ("encoding", "found"),
    [("windows-1252", "windows-1252"), ("utf-8-sig", None), ("utf-16", "utf-16")],
)
def test_encodings_are_guessed(encoding, found, tmp_path):
    assert detected(tmp_path, ["1"], encoding).dialect.encoding == found
    assert codecs.lookup(found or "utf-8")


def test_notes_count_what_is_unreadable_and_quote_nothing(tmp_path):
    found = detected(tmp_path, ["1.5"] * 20 + ["12.5kg", SECRET])
    notes = found.notes()
    assert notes[-1].startswith("2 of 22 cells of column 'größe' are not numbers: ")
    assert not any(value in note for note in notes for value in (SECRET, "12.5kg"))


def test_readings_are_those_of_a_fit(tmp_path):
    path = save(tmp_path / "t.csv", rows=[*ROWS, ["8", "x", "NA", "y"]])
    dialect = Dialect.of(GERMAN)
    found = {name: Readings(name, kind, dialect) for name, kind in KINDS.items()}
    list(tables.CsvReader(path, dialect).batches(found))
    counts = {name: (c.cells, c.missing, c.unreadable) for name, c in found.items()}
    assert counts == {"id": (3, 0, 0), "day": (3, 0, 1), "Weight": (3, 2, 0), "Größe": (3, 0, 1)}


# Neighbouring tables --------------------------------------------------------------------------

_LINES = [f"p{k},{k % 9},2024-03-{1 + k % 28:02},0.{k % 10},{'ab'[k % 2]}" for k in range(30)]
_HEAD = "id,t,day,x,s"
_STRAY = st.text(st.sampled_from('""\'\\,;|\t #0/-.:ab1\0\x0b\x1c\u2028\xa0é'), max_size=12)
_ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_DATES = st.sampled_from(["02/28/2024", "28.02.2024", "2024-02-30", "2024-02-28T12:00Z", "NA", ""])
_CELLS = st.lists(st.one_of(_STRAY, _ANYTHING, _DATES), min_size=5, max_size=5)


def _counted(path, stated, monkeypatch, large):
    """The rows that a guard sees, sorted; None where the table is refused."""
    monkeypatch.setattr(sql, "LARGE_FILE", -1 if large else 2**40)
    try:
        snapshots = Snapshots.from_table(
            path,
            time="t",
            bounds={"x": (0, 1)},
            columns={"day": Date("2024-01-01", "2024-12-31"), "s": Category(["a", "b"], other="c")}
            if stated
            else {"s": ["a", "b"]},
            time_range=(0, 9),
            person="id",
            missing="drop",
            csv={"unreadable": "missing"} if stated else None,
        )
    except InputError:
        return None
    rows = snapshots._rows
    cells = rows.in_slabs(snapshots.axis.bins)
    return sorted(map(repr, cells.points.tolist()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "large",
    [pytest.param(False, id="memory"), pytest.param(True, id="duckdb", marks=pytest.mark.thorough)],
)
@settings(max_examples=40, deadline=None)
@given(cells=_CELLS, raw=st.booleans(), stated=st.booleans(), place=st.integers(0, 30))
def test_one_more_person_is_at_most_one_more_row(
    large, cells, raw, stated, place, tmp_path_factory
):
    """Whatever their cells hold, stray quotes and strange dates included: the rows of all others
    are what they were, or the whole table is refused."""
    line = ",".join(cells).replace("\r", "").replace("\n", "")
    if not raw:
        file = io.StringIO()
        csv.writer(file).writerow(cells)
        line = file.getvalue().removesuffix("\r\n")
    folder = tmp_path_factory.mktemp("houses")
    lines = [*_LINES[:place], line, *_LINES[place:]]
    (folder / "one.csv").write_text("\n".join([_HEAD, *_LINES, ""]), encoding="utf-8")
    with open(folder / "more.csv", "w", encoding="utf-8", newline="") as file:
        file.write("\n".join([_HEAD, *lines, ""]))
    with pytest.MonkeyPatch.context() as patch:
        before, after = (
            _counted(folder / name, stated, patch, large) for name in ("one.csv", "more.csv")
        )
    assert before is not None
    if after is not None:
        assert len(before) <= len(after) <= len(before) + 1
        assert not Counter(before) - Counter(after)


@pytest.mark.parametrize("large", [False, True], ids=["memory", "duckdb"])
def test_a_stray_quote_does_not_swallow_the_records_behind_it(large, tmp_path, monkeypatch):
    monkeypatch.setattr(sql, "LARGE_FILE", -1 if large else 2**40)
    path = tmp_path / "t.csv"
    path.write_text("\n".join([_HEAD, *_LINES[:15], '"q,1,2024-01-01,0.5,a', *_LINES[15:], ""]))
    with pytest.raises(InputError, match=r"1 lines of .*t.csv' end inside quotation marks"):
        Snapshots.from_table(path, time="t", bounds={"x": (0, 1)}, time_range=(0, 9))
    path.write_text("\n".join([_HEAD, *_LINES, 'q,1,2024-01-01,0.5,"a\nb"', ""]))
    declared = {"time": "t", "bounds": {"x": (0, 1)}, "time_range": (0, 9)}
    with pytest.raises(InputError, match="end inside quotation marks"):
        Snapshots.from_table(path, **declared)
    snapshots = Snapshots.from_table(path, **declared, csv={"newlines": "quoted"})
    assert QUOTED in snapshots.public_inputs()[STATED]
