"""`privtraj init`: a configuration from names and kinds of columns, and from nothing else."""

import datetime as dt
import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj import cli, datasets
from privtraj.base.errors import InputError
from privtraj.cli import config, prepare
from privtraj.cli.options import OPTIONS
from privtraj.data import sql
from privtraj.data import sql as sources
from privtraj.export import tables as export_tables

ROWS = 60
COLUMNS = {"patient": "text", "visit": "date", "sex": "text", "height": "number", "bmi z": "number"}


def clinic(seed=0, rows=ROWS):
    rng = np.random.default_rng(seed)
    days = rng.integers(0, 3000, rows).astype("timedelta64[D]")
    return pa.table(
        {
            "patient": [f"SECRET{k}" for k in rng.permutation(rows)],
            "visit": pa.array(np.datetime64("2011-01-01") + days),
            "sex": rng.choice(["zebra", "quagga"], rows),
            "height": np.round(rng.uniform(777, 778, rows), 4),
            "bmi z": np.round(rng.uniform(-889, -888, rows), 4),
        }
    )


def _table(name):
    def make(folder, table):
        export_tables.write_table(table, folder / name)
        return [folder / name]

    return make


def _folder(folder, table):
    (folder / "visits").mkdir()
    for k in range(2):
        export_tables.write_table(table, folder / "visits" / f"{k}.parquet")
    return folder / "visits"


def _duckdb(folder, table):
    duckdb = pytest.importorskip("duckdb", reason="needs pip install 'privtraj[sql]'")
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        connection.register("source", table)
        connection.sql("CREATE TABLE visits AS SELECT * FROM source")
    return [f"duckdb://{folder}/clinic.duckdb", "--query", "SELECT * FROM visits"]


def _h5ad(folder, table):
    anndata = pytest.importorskip("anndata", reason="needs pip install 'privtraj[anndata]'")
    frame = table.to_pandas()
    frame["visit"] = frame["visit"].astype(str)
    frame.index = frame.index.astype(str)
    anndata.AnnData(obs=frame).write_h5ad(folder / "clinic.h5ad")
    return [folder / "clinic.h5ad"]


SOURCES = {
    **{name: _table(name) for name in ("t.csv", "t.csv.gz", "t.parquet", "t.arrow", "t.feather")},
    "folder": lambda folder, table: [_folder(folder, table)],
    "pattern": lambda folder, table: [_folder(folder, table) / "*.parquet"],
    "database": _duckdb,
    "h5ad": _h5ad,
}


def run(*words):
    return cli.main(["init", *map(str, words)])


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_every_source_by_names_and_kinds(make, tmp_path, capsys):
    out = tmp_path / "fit.toml"
    assert run(*make(tmp_path, clinic()), "-o", out, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["columns"] == COLUMNS
    assert (said["time"], said["person"]) == ("visit", "patient")
    assert said["features"] == ["height", "bmi z"]
    assert said["kinds"] == {"sex": "category"}
    assert 'out = "model.privtraj"' in out.read_text(), "beside the configuration"
    with pytest.raises(InputError, match=r"feature in .*fit.toml' is still to be filled in"):
        config.load(out)


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_other_values_in_the_same_columns_change_nothing(make, tmp_path, capsys):
    texts = []
    for k, table in enumerate([clinic(1), clinic(2, rows=3 * ROWS)]):
        folder = tmp_path / str(k)
        folder.mkdir()
        assert run(*make(folder, table), "-o", folder / "fit.toml") == 0
        shown = capsys.readouterr()
        texts.append(
            [text.replace(str(folder), "") for text in (*shown, (folder / "fit.toml").read_text())]
        )
    assert texts[0] == texts[1]
    for secret in ("SECRET", "777", "888", "889", "zebra", "quagga", "2011", "2012"):
        assert not any(secret in text for text in texts[0])


CELLS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**9), 10**9).map(str),
    st.sampled_from(["", "true", "false", "NA"]),
)


@settings(max_examples=40)
@given(cells=st.lists(CELLS, min_size=1, max_size=8))
def test_numbers_of_all_forms_are_of_one_kind(cells):
    booleans = {"true", "false"} & set(cells)
    if booleans and set(cells) - {"true", "false", "", "NA"}:
        return  # a mixture is text
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text("x,y\n" + "".join(f"{cell},1\n" for cell in cells))
        assert sql.columns_of(path, None) == [("x", "number"), ("y", "number")]


@pytest.mark.parametrize(
    "line", ["123.4567,2", "1,x", "-5;x", "name,2024-01-31", "31/01/2024,x", '"1.5e3",x', "12,5;x"]
)
def test_a_first_line_of_values_is_not_shown(line, tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text(f"{line}\n{line}\n")
    assert run(path, "-o", tmp_path / "fit.toml") == 2
    said = capsys.readouterr().err
    assert "names of the columns first" in said
    assert not any(cell in said for cell in ("123.4567", "2024-01-31", "31/01", "1.5e3"))
    assert not (tmp_path / "fit.toml").exists()


@pytest.mark.parametrize("name", ["dose 2", "x1", "2m height", "a", "2020-cohort", "t.1", "é"])
def test_names_with_digits_are_names(name, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f'"{name}",y\n1,2\n')
    assert sql.columns_of(path, None)[0] == (name, "number")


ROLES = {
    "growth clinic": (["id:t", "age:n", "height:n"], ("age", "id", ("height",))),
    "dates first": (["t:n", "x:n", "day_of_visit:d"], ("day_of_visit", None, ("x",))),
    "camel case": (["patientId:n", "visitDate:d", "hb:n"], ("visitDate", "patientId", ("hb",))),
    "mobility": (
        ["user_id:n", "timestamp:n", "lon:n", "lat:n"],
        ("timestamp", "user_id", ("lon", "lat")),
    ),
    "cells": (
        ["day:n", "donor:t", "X_pca-0:n", "X_pca-1:n"],
        ("day", "donor", ("X_pca-0", "X_pca-1")),
    ),
    "nothing to go by": (["a:n", "b:t"], (None, None, ("a",))),
    "two ids": (["subject:n", "sample_id:n", "time:n", "w:n"], ("time", "subject", ("w",))),
    "ids of records": (["visit_id:n", "sampleId:t", "t:n", "x:n"], ("t", None, ("x",))),
    "a letter of a word": (["t_cells:n", "x:n"], (None, None, ("t_cells", "x"))),
    "an index of pandas": (["__index_level_0__:n", "age:n"], ("age", None, ("__index_level_0__",))),
    "part of a word": (["timid:n", "aged:n", "idea:t"], (None, None, ("timid", "aged"))),
    "no columns": ([], (None, None, ())),
    "a birthday is no time": (["born:d", "visit:d", "x:n"], ("visit", None, ("x",))),
    "lengths of time are numbers": (
        ["stay_days:n", "admitted:d", "sleep_hours:n"],
        ("admitted", None, ("stay_days", "sleep_hours")),
    ),
    "days say when": (["days:n", "stay_days:n"], ("days", None, ("stay_days",))),
    "whole numbers": (["id:i", "day:i", "kids:i", "x:n"], ("day", "id", ("x",))),
}


@pytest.mark.parametrize(("columns", "expected"), ROLES.values(), ids=ROLES)
def test_roles_are_guessed_by_name_and_kind(columns, expected):
    kinds = {"n": "number", "d": "date", "t": "text", "i": "integer"}
    pairs = [(name, kinds[kind]) for name, kind in (column.rsplit(":", 1) for column in columns)]
    roles = prepare.guess_roles(pairs)
    assert (roles.time, roles.person, roles.features) == expected


def _of_every_type():
    return pa.table(
        {
            "patient": ["SECRET"],
            "born": pa.array([dt.date(1950, 1, 1)]),
            "visit": pa.array([dt.date(2020, 1, 1)]),
            "sex": ["zebra"],
            "smoker": [True],
            "kids": pa.array([888], pa.int16()),
            "hb": [777.5],
            "region": pa.array([889]).dictionary_encode(),
            "stage": pa.array(["quagga"]).dictionary_encode(),
        }
    )


def test_columns_have_the_kind_of_their_type_and_a_domain_to_fill_in(tmp_path, capsys):
    export_tables.write_table(_of_every_type(), tmp_path / "t.arrow")
    assert run(tmp_path / "t.arrow", "-o", tmp_path / "fit.toml", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["time"], said["person"], said["features"]) == ("visit", "patient", ["hb"])
    kinds = {"born": "date", "sex": "category", "smoker": "boolean", "kids": "integer"}
    assert said["kinds"] == {**kinds, "region": "category", "stage": "category"}
    text = (tmp_path / "fit.toml").read_text()
    assert not any(s in text for s in ("SECRET", "1950", "zebra", "777", "888", "889", "quagga"))
    rest = ("feature", "time_range", "epsilon", "delta")
    with pytest.raises(InputError, match="filled in for 'born', 'sex', 'kids', 'region', 'stage':"):
        config.load(tmp_path / "fit.toml", set(OPTIONS) - set(rest))
    for old, new in {"<low>": "2001-01-01", "<high>": "2002-01-01"}.items():
        text = text.replace(old, new)
    (tmp_path / "fit.toml").write_text(text.replace('"<values>"', '["a", "b"]'))
    found = config.load(tmp_path / "fit.toml", set(OPTIONS) - set(rest))["columns"]
    assert found["smoker"] == {"kind": "boolean"}
    assert found["sex"] == {"kind": "category", "values": ["a", "b"], "fixed": True}
    ends = {"low": "2001-01-01", "high": "2002-01-01"}
    assert found["born"] == {"kind": "date", **ends, "fixed": True}


def test_csv_does_not_tell_flags_and_whole_numbers_from_other_numbers(tmp_path, capsys):
    export_tables.write_table(_of_every_type(), tmp_path / "t.csv")
    assert run(tmp_path / "t.csv", "-o", tmp_path / "fit.toml", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["features"] == ["smoker", "kids", "hb", "region"]
    assert said["kinds"] == {"born": "date", "sex": "category", "stage": "category"}


def test_odd_names_of_columns_survive(tmp_path):
    odd = ["größe (cm)", 'a "quoted" one', "back\\slash", "two\nlines", "# hash: yes", "x.y", "<x>"]
    path = tmp_path / "t.parquet"
    export_tables.write_table(pa.table({"time": [1.0], **{column: [1.0] for column in odd}}), path)
    assert run(path, "-o", tmp_path / "fit.toml") == 0
    text = (tmp_path / "fit.toml").read_text().replace('"<low>"', "0").replace('"<high>"', "1")
    (tmp_path / "fit.toml").write_text(text)
    found = config.load(
        tmp_path / "fit.toml", OPTIONS.keys() - {"time_range", "bins", "epsilon", "delta"}
    )
    assert [column for column, _, _ in found["feature"]] == odd


def test_from_data_to_model_by_files_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    export_tables.write_table(datasets.growth_clinic(400), "clinic.csv")
    assert cli.main(["init", "clinic.csv"]) == 0
    assert "privtraj fit --config privtraj.toml" in capsys.readouterr().out
    text = Path("privtraj.toml").read_text()
    for old, new in {
        '["height", "<low>", "<high>"]': '["height", 40, 210]',
        '["weight", "<low>", "<high>"]': '["weight", 1, 140]',
        'values = "<values>", fixed = true': 'values = ["F", "M"], fixed = true',
        '["<start>", "<end>"]': "[0, 20]",
        '"<epsilon>"': "2",
        '"<delta>"': "1e-4",
        "# particles = 64": "particles = 64",
    }.items():
        assert old in text
        text = text.replace(old, new)
    Path("privtraj.toml").write_text(text)
    assert cli.main(["fit", "--config", "privtraj.toml", "--write-config", "again.toml"]) == 0
    assert Path("model.privtraj").exists()
    assert Path("certificate.json").exists()
    assert config.load("again.toml") == config.load("privtraj.toml")
    assert cli.main(["fit", "--config", "again.toml", "--force", "--quiet"]) == 0


def test_a_seed_in_the_file_is_not_private_all_the_same(tmp_path, capsys):
    path = tmp_path / "fit.toml"
    path.write_text(
        "data = 'clinic.csv'\ntime = 'age'\nfeature = [['height', 40, 210]]\nbin_times = [0, 20]\n"
        "epsilon = 1\ndelta = 1e-5\nout = 'm.privtraj'\nseed = 3\n"
    )
    assert cli.main(["fit", "--config", str(path)]) == 2
    assert "not private" in capsys.readouterr().err


def test_an_existing_configuration_is_kept(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("time,x\n1,2\n")
    kept = tmp_path / "fit.toml"
    kept.write_text("mine")
    assert run(path, "-o", kept) == 2
    assert kept.read_text() == "mine"
    assert "--force" in capsys.readouterr().err
    assert run(path, "-o", kept, "--force") == 0
    assert "data = " in kept.read_text()
    assert {file.name for file in tmp_path.iterdir()} == {"t.csv", "fit.toml"}


def test_passwords_are_not_written(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sources, "columns_of", lambda data, query: [("age", "number")])
    out = tmp_path / "fit.toml"
    assert run("postgresql://me:hunter2@host/db", "--query", "visits", "-o", out) == 0
    assert "hunter2" not in out.read_text()
    assert "hunter2" not in "".join(capsys.readouterr())
    assert 'query = "visits"' in out.read_text()


MISTAKES = {
    "no such file": (["none.csv"], "there is no file"),
    "unknown data": (["t.xlsx"], "file type of 't.xlsx' is not known"),
    "unknown configuration": (["t.csv", "-o", "fit.json"], "must end in .toml"),
    "query without database": (["t.csv", "--query", "x"], "--query goes with"),
    "database without query": (["duckdb://x.duckdb"], "needs --query"),
    "repeated names": (["twice.csv"], "more than one column named 'x'"),
    "no data": ([], "this command needs DATA"),
}


@pytest.mark.parametrize(("words", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("time,x\n1,2\n")
    Path("twice.csv").write_text("x,x\n1,2\n")
    assert cli.main(["init", *words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_dates_in_the_template_need_no_quotes():
    text = prepare.template([("when", "date")], {}, "fit.toml")
    assert 'time = "when"' in text
    assert dt.date(2024, 1, 31).isoformat() in text


def test_newcomers_are_told_about_it(capsys):
    assert cli.main([]) == 0
    assert "privtraj init" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="0"):
        cli.main(["init", "--help"])
    shown = capsys.readouterr().out
    assert all(part in shown for part in ("example", "data:", "output:", "--query SQL"))


def _hospital(n=400, seed=0):
    rng = np.random.default_rng(seed)
    days = rng.integers(0, 900, n).astype("timedelta64[D]")
    return pa.table(
        {
            "patient": np.arange(n),
            "visit": pa.array(np.datetime64("2020-01-01") + days),
            "age": rng.integers(20, 90, n),
            "hb": np.where(rng.random(n) < 0.1, -99, rng.normal(13, 1.5, n).round(1)),
            "weight": pa.array(rng.normal(70, 9, n).round(1), mask=rng.random(n) < 0.1),
            "crp": np.exp(3 + rng.standard_normal(n)).round(2),
            "eosinophils": np.where(rng.random(n) < 0.2, 0, np.exp(rng.standard_normal(n))),
            "score": rng.choice([1.0, 99.0, 100.0], n),  # a value, as others are near
            "clinic": np.full(n, 4.0),
            "zip_code": rng.choice([10115, 80331], n),
        }
    )


def test_the_form_offers_what_columns_seem_to_need_and_a_fit_knows_the_file_alone(tmp_path, capsys):
    export_tables.write_table(_hospital(), tmp_path / "visits.csv")
    out = tmp_path / "fit.toml"
    assert cli.main(["init", str(tmp_path / "visits.csv"), "-o", str(out)]) == 0
    notes = capsys.readouterr().err
    assert "'weight': some cells are missing: with missing = true nobody is left out" in notes
    assert "'clinic' seems to have one value" in notes
    text = out.read_text(encoding="utf-8")
    number = 'kind = "number", low = "<low>", high = "<high>"'
    for line in (
        f"columns.hb = {{ {number}, missing = true, missing_codes = [-99] }}",
        f"columns.weight = {{ {number}, missing = true }}",
        f'columns.crp = {{ {number}, scale = "log" }}',
        f'columns.eosinophils = {{ {number}, scale = "log", offset = "<offset>" }}',
        'columns.zip_code = { kind = "category", values = "<values>" }',
        'monotone = ["age"]',
    ):
        assert line in text.splitlines()
    assert '["score", "<low>", "<high>"]' in text
    out.write_text("".join(x for x in text.splitlines(True) if x.startswith("columns.eos")))
    with pytest.raises(InputError, match="still to be filled in for 'eosinophils'"):
        config.load(out)
