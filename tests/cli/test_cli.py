"""The command line: what a user types, what comes back, and that mistakes cost nothing."""

import datetime as dt
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import privtraj as pt
from privtraj import cli, datasets
from privtraj.cli import console, fit
from privtraj.cli.console import Console
from privtraj.data import arrow, tables
from privtraj.data.dialect import DATE
from privtraj.export import tables as export_tables
from privtraj.measures import counts as counts_fit

PEOPLE = 400

# One small shape for every fit: compiling is what takes time.
SHAPE = ["--measure", "counts", "--particles", "24", "--steps", "4", "--cells", "6"]
START = dt.date(2020, 1, 1)
SEEDED = {"seed": ["3"], "not_private": []}


def _clinic() -> pa.Table:
    """The growth clinic with a date of visit, one day per week of age."""
    table = datasets.growth_clinic(PEOPLE)
    days = (np.asarray(table["age"]) * 52).astype("timedelta64[D]")
    return table.append_column("visit", pa.array(np.datetime64(START) + days))


def _fit_words(data, out, /, **changes):
    """The words of a good fit; a change replaces an option's words, or removes it with None."""
    options = {
        "time": ["age"],
        "person": ["id"],
        "feature": ["height", "40", "210", "--feature", "weight", "1", "140"],
        "time_range": ["0", "20"],
        "bins": ["5"],
        "epsilon": ["2"],
        "delta": ["1e-4"],
        "out": [str(out)],
    } | changes
    flags = [
        [f"--{name.replace('_', '-')}", *words]
        for name, words in options.items()
        if words is not None
    ]
    return ["fit", str(data), *(word for words in flags for word in words), *SHAPE]


def _files(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "clinic.csv"
    export_tables.write_table(_clinic(), path)
    export_tables.write_table(_clinic(), path.with_suffix(".parquet"))
    return path


@pytest.fixture(scope="module")
def model(clinic, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "growth.privtraj"
    assert cli.main(_fit_words(clinic, path)) == 0
    return path


@pytest.fixture(scope="module")
def seeded(clinic, tmp_path_factory):
    path = tmp_path_factory.mktemp("seeded") / "growth.privtraj"
    assert cli.main(_fit_words(clinic, path, **SEEDED)) == 0
    return path


# First steps ----------------------------------------------------------------------------------


def test_the_bare_command_says_what_to_do_next(capsys):
    assert cli.main([]) == 0
    assert "privtraj demo" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        (
            [],
            [
                "privtraj demo",
                "demo",
                "fit",
                "sample",
                "verify",
                "ledger",
                "audit",
                "evaluate",
            ],
        ),
        (["demo"], ["example:", "--people", "--epsilon", "--out"]),
        (["fit"], ["example:", "data:", "privacy:", "ledger:", "output:", "advanced:"]),
        (["fit"], ["before anything is spent:", "--yes"]),
        (["check"], ["examples:", "never for release", "exit codes:", "data:", "privacy:"]),
        (["sample"], ["example", "data:", "output:", "advanced:"]),
        (["verify"], ["examples:", "MODEL", "--certificate FILE", "--key FILE"]),
        (["sign"], ["examples:", "MODEL", "--key FILE", "--new-key FILE"]),
        (["ledger"], ["example", "show", "charge"]),
        (["ledger", "show"], ["FILE"]),
        (["ledger", "charge"], ["FILE", "--what TEXT", "--epsilon", "--adjacency"]),
        (["evaluate"], ["example", "output"]),
        (["audit"], ["example", "exit codes:", "privacy:", "attack:", "output:"]),
    ],
)
def test_help(command, parts, capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main([*command, "--help"])
    shown = capsys.readouterr().out
    assert [part for part in parts if part not in shown] == []


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"privtraj {pt.__version__}\n"


def test_the_parser_imports_nothing_heavy():
    code = (
        "import sys, privtraj.cli.entry; privtraj.cli.entry.full_parser();"
        "print([m for m in ('numpy', 'jax', 'scipy', 'pyarrow', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_runs_as_a_module():
    command = [sys.executable, "-m", "privtraj", "fit"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("privtraj: error: DATA is needed")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_sentence():
    command = [sys.executable, "-m", "privtraj"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "privtraj: error: the system refused: No space left on device\n"


def test_a_reader_who_has_seen_enough_is_no_error():
    command = [sys.executable, "-m", "privtraj"]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


# Demo -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_demo_end_to_end(tmp_path, capsys):
    folder = tmp_path / "new" / "demo"
    words = [
        "demo",
        "--out",
        str(folder),
        "--people",
        "3000",
    ]  # of fewer, changes are lost in noise
    assert cli.main([*words, "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    names = {"clinic.csv", "clinic.privtraj", "paths.csv", "certificate.json"}
    names.add("report.html")
    assert {path.name for path in folder.iterdir()} == names
    drawn = pd.read_csv(folder / "paths.csv", keep_default_na=False)
    assert len(drawn) == 1000 * 25
    assert set(drawn["sex"]) == {"F", "M"}
    assert (drawn.groupby("path")["sex"].nunique() == 1).all(), "nobody changes it"
    assert set(drawn["diagnosis"]) <= set(datasets.DIAGNOSES)
    assert (drawn.groupby("path")["diagnosis"].nunique() > 1).any(), "some people's changes"
    assert set(drawn["smoker"]) == {False, True}
    assert Path(out["report"]).read_text("utf-8").startswith("<!doctype html>")
    certificate = json.loads((folder / "certificate.json").read_text())
    assert certificate == out["certificate"] == pt.load(out["model"]).certificate.to_dict()
    assert certificate["private"]
    assert certificate["epsilon"] <= 1
    assert [command.split()[1] for command in out["commands"]] == ["fit", "sample"]

    before = (folder / "clinic.privtraj").read_bytes()
    assert cli.main(words) == 2
    assert "is not empty" in capsys.readouterr().err
    assert (folder / "clinic.privtraj").read_bytes() == before


def test_demo_refuses_before_making_the_directory(tmp_path, capsys):
    assert cli.main(["demo", "--out", str(tmp_path / "d"), "--epsilon", "-1"]) == 2
    assert "epsilon must be" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert cli.main(["demo", "--out", str(tmp_path / "file")]) == 2
    assert "is a file" in capsys.readouterr().err
    assert _files(tmp_path) == {tmp_path / "file"}


# Fit and sample -------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_round_trip_with_dates(clinic, tmp_path, capsys, suffix):
    out, paths = tmp_path / "m.privtraj", tmp_path / f"p{suffix}"
    dates = {"time": ["visit"], "time_range": ["2020-01-01", "2022-11-01"]}
    words = _fit_words(clinic.with_suffix(suffix), out, **dates)
    assert cli.main([*words, "--certificate", str(tmp_path / "c.json"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    drawing = ["sample", str(out), "-n", "7", "--at", "9", "--out", str(paths), "--json"]
    assert cli.main(drawing) == 0
    assert json.loads(capsys.readouterr().out)["paths"] == {
        "file": str(paths),
        "n": 7,
        "times": 9,
        "features": ["height", "weight"],
    }
    assert result["certificate"] == json.loads((tmp_path / "c.json").read_text())
    drawn = tables.read_columns(paths, ["visit", "height", "weight"], {"visit": DATE})
    assert len(drawn) == 63
    assert arrow.moments(drawn["visit"], "visit")[1]

    some = tmp_path / "some.arrow"
    at = ["--times", "2020-02-29", "2021-06-01T12:00"]
    assert cli.main(["sample", str(out), "-n", "3", *at, "--out", str(some)]) == 0
    visits = tables.read_columns(some, ["visit"])["visit"].to_pylist()
    assert visits[:2] == [dt.datetime(2020, 2, 29), dt.datetime(2021, 6, 1, 12)]
    assert capsys.readouterr().out == f"3 paths at 2 times, written to {some}\n"


def test_fit_prints_the_certificate_and_what_comes_next(clinic, tmp_path, capsys):
    out = tmp_path / "m.privtraj"
    bins = {"bins": None, "time_range": None, "bin_times": ["0", "2", "6", "12", "20"]}
    assert cli.main(_fit_words(clinic, out, **bins, person=None)) == 0
    shown = capsys.readouterr()
    assert "Privacy certificate" in shown.out
    assert f"privtraj sample {out}" in shown.out
    assert "without --person" in shown.err
    assert "Traceback" not in shown.err


def test_a_seed_is_repeatable_and_loudly_not_private(clinic, seeded, tmp_path, capsys):
    again = tmp_path / "again.privtraj"
    assert cli.main(_fit_words(clinic, again, **SEEDED)) == 0
    shown = capsys.readouterr()
    assert "privtraj: note: NOT PRIVATE" in shown.err
    assert shown.out.startswith("NOT PRIVATE")
    assert again.read_bytes() == seeded.read_bytes()
    assert cli.main(["sample", str(again), "--json", "--out", str(tmp_path / "p.csv")]) == 0
    shown = capsys.readouterr()
    assert "NOT PRIVATE" in shown.err
    assert json.loads(shown.out)["private"] is False


def test_a_low_budget_is_a_note(clinic, tmp_path, capsys):
    out = tmp_path / "m.privtraj"
    words = _fit_words(clinic, out, epsilon=["0.01"], **SEEDED)  # chance may count many people
    assert cli.main(words) == 0
    notes = capsys.readouterr().err.splitlines()
    assert any(line.startswith("privtraj: note: the noise of this budget") for line in notes)
    assert all(line.startswith("privtraj: note: ") for line in notes)


def test_several_records_of_a_person_are_kept_and_paid_for(tmp_path, capsys):
    table = datasets.growth_clinic(300)
    ids = pa.array([f"p{row // 3}" for row in range(300)])
    data, out = tmp_path / "visits.csv", tmp_path / "m.privtraj"
    export_tables.write_table(table.set_column(table.column_names.index("id"), "id", ids), data)
    words = _fit_words(data, out)
    assert cli.main(words) == 2
    assert cli.main([*words, "--records-per-person", "3", "--json"]) == 0
    shown = capsys.readouterr()
    certificate = json.loads(shown.out)["certificate"]
    assert "times the noise" not in shown.err
    assert "--persistence off leaves it to where people are" in shown.err
    assert {entry["records"] for entry in certificate["ledger"]} == {3}
    assert certificate["public_inputs"]["most records of one person"] == 3
    assert certificate["epsilon"] <= 2
    assert cli.main(["verify", str(out)]) == 0


def test_an_interrupted_fit_says_what_was_spent(clinic, tmp_path, capsys, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(counts_fit, "estimate", stop)  # all counts have been answered by then
    assert cli.main(_fit_words(clinic, tmp_path / "m.privtraj")) == 130
    said = capsys.readouterr().err.splitlines()[-1]
    assert "answers worth epsilon 2 of 2 were discarded, and nobody has seen them" in said
    assert _files(tmp_path) == set()


def test_gradients_say_where_they_are_computed(clinic, tmp_path, capsys, monkeypatch):
    def fit(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(pt.TrajectorySynthesizer, "fit", fit)
    cli.main([*_fit_words(clinic, tmp_path / "m.privtraj"), "--measure", "gradients"])
    assert "privtraj: note: gradients are computed on 1 cpu" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("elapsed", "done", "total", "said"),
    [
        (5.0, 1, 60, ""),
        (1.0, 2, 60, ""),
        (9.0, 10, 60, ", about 50 s left"),
        (90.0, 10, 60, ", about 8 min left"),
        (9000.0, 10, 60, ", about 14 h left"),
        (60.0, 59, 60, ", about 1 s left"),
        (60.0, 60, 60, ""),
    ],
)
def test_what_is_left_follows_from_what_was_done(elapsed, done, total, said):
    assert console.remaining(elapsed, done, total) == said


@pytest.mark.thorough
@pytest.mark.slow
def test_compiled_code_is_kept_where_caches_belong(tmp_path):
    """What is compiled after a command that fits or draws has begun, be it as small as this."""
    code = "from privtraj.cli import shared; shared.keep_compiled(); " + (
        "import jax; jax.jit(lambda x: 2 * x)(1.0)"
    )
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    (folder,) = (tmp_path / "cache" / "privtraj" / "compiled").iterdir()
    assert any(folder.iterdir())
    assert folder.stat().st_mode & 0o077 == 0


def test_every_setting_reaches_the_fit(clinic, tmp_path, monkeypatch):
    seen = {}

    def fit(self, snapshots, **how):
        seen.update(vars(self), records=snapshots.records_per_person, **how)
        raise KeyboardInterrupt

    monkeypatch.setattr(pt.TrajectorySynthesizer, "fit", fit)
    given = {
        "particles": 24,
        "steps": 4,
        "cells": 6,
        "bandwidth": 0.1,
        "time_coupling": 0.2,
        "diffusivity": 0.5,
        "adjacency": "replace-one",
    }
    changes = {name: [str(value)] for name, value in given.items()}
    more = {"records_per_person": ["2"], "public_counts": ["80", "80", "80", "80", "81.5"]}
    words = _fit_words(clinic, tmp_path / "m.privtraj", **changes, **more)
    assert cli.main(words) == 130
    told = {**given, "epsilon": 2, "delta": 1e-4, "measure": "counts", "seed": None, "records": 2}
    assert {name: seen[name] for name in told} == told
    assert seen["public_counts"] == [80, 80, 80, 80, 81.5]
    assert (seen.get("ledger"), seen["new_people"]) == (None, False)


def test_sampling_options(model, tmp_path, capsys):
    def drawn(*options):
        out = tmp_path / "p.parquet"
        words = ["sample", str(model), "-n", "20", "--at", "11", "--seed", "1", "--force"]
        assert cli.main([*words, "--out", str(out), *options]) == 0
        return np.asarray(tables.read_columns(out, ["height"])["height"])

    plain = drawn()
    assert (plain == drawn()).all()
    for options in (
        ["--interpolation", "linear"],
        ["--interpolation", "bridge"],
        ["--coupling", "exact"],
        ["--reference", "inertia memory=3"],
        ["--no-observation-noise"],
    ):
        assert not np.array_equal(drawn(*options), plain)


def test_negative_numbers_are_values(clinic, tmp_path, capsys):
    words = _fit_words(clinic, tmp_path / "m.privtraj", feature=["height", "-1e-3", "-2E+4"])
    assert cli.main(words) == 2
    assert "reversed" in capsys.readouterr().err


# Mistakes; test_mistakes has the table of them ------------------------------------------------


def _assert_refused(words, said, folder, capsys):
    before = {path: path.read_bytes() for path in _files(folder) if path.is_file()}
    assert cli.main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err
    assert shown.err.splitlines()[-1].startswith("privtraj: error: ")
    assert said is None or said in shown.err
    assert before == {path: path.read_bytes() for path in _files(folder) if path.is_file()}


def test_damaged_models_are_refused(model, tmp_path, capsys):
    bad = tmp_path / "bad.privtraj"
    bad.write_bytes(model.read_bytes()[:-40])
    for path in (bad, tmp_path / "none.privtraj"):
        words = ["sample", str(path), "--out", str(tmp_path / "p.csv")]
        _assert_refused(words, None, tmp_path, capsys)


@pytest.mark.parametrize("option", ["out", "certificate"])
def test_existing_files_are_refused_before_the_data_are_read(option, tmp_path, capsys):
    names = {"out": "m.privtraj", "certificate": "c.json"}
    kept = tmp_path / names[option]
    kept.write_text("precious")
    changes = {option: [str(kept)]}
    words = _fit_words(tmp_path / "none.csv", tmp_path / "m.privtraj", **changes)
    _assert_refused(words, "already exists", tmp_path, capsys)


def test_no_file_is_named_twice(clinic, tmp_path, capsys):
    data = tmp_path / "data.csv"
    data.write_bytes(clinic.read_bytes())
    words = _fit_words(
        data, tmp_path / "m.privtraj", write_config=[str(tmp_path / "." / "data.csv")]
    )
    _assert_refused([*words, "--force"], "named twice", tmp_path, capsys)


def test_force_replaces(clinic, model, tmp_path, capsys):
    out = tmp_path / "m.privtraj"
    out.write_bytes(model.read_bytes())
    _assert_refused(_fit_words(clinic, out), "--force", tmp_path, capsys)
    assert cli.main([*_fit_words(clinic, out), "--force"]) == 0
    assert out.read_bytes() != model.read_bytes()
    assert _files(tmp_path) == {out}


# When things go wrong on the way --------------------------------------------------------------


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (PermissionError(13, "Permission denied", "x.csv"), 2, "Permission denied ('x.csv')"),
    ],
)
def test_what_the_system_throws(raised, code, said, tmp_path, capsys, monkeypatch):
    def fail(*_):
        raise raised

    monkeypatch.setattr(fit, "_prepared", fail)
    assert cli.main(_fit_words("data.csv", tmp_path / "m.privtraj")) == code
    error = capsys.readouterr().err
    assert error.startswith("privtraj: error: ")
    assert error.count("\n") == 1
    assert said in error


def test_where_nobody_looks_on_progress_is_a_line_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr("privtraj.cli.console.LINE_EVERY", 0.01)
    for quiet in (True, False):
        console = Console(quiet=quiet)
        console.progress("reading")  # whose lines end where the next begin
        show = console.progress("fitting")
        show(3, 7)
        time.sleep(0.1)
        console.result({}, "")
        said = capsys.readouterr().err
        assert said.endswith(" s so far\n") != quiet
        assert ("privtraj: fitting: 3/7, about" in said) != quiet
        time.sleep(0.03)
        assert capsys.readouterr().err == ""


def test_progress_is_for_people_only(capsys, monkeypatch):
    Console().progress("fitting")(1, 2)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    Console(quiet=True).progress("fitting")(1, 2)
    assert capsys.readouterr().err == ""
    show = Console().progress("fitting")
    show(1, 2)
    show(2, 2)
    shown = capsys.readouterr().err
    assert shown.rstrip(" \n").endswith("2/2")
    assert shown.count("\n") == 1
    console = Console()
    console.progress("fitting")
    console.note("by the way")
    assert capsys.readouterr().err.splitlines()[-1] == "privtraj: note: by the way"


def test_names_in_a_message_do_not_steer_the_terminal(capsys):
    Console().note("'he\x1b[2Kight\u202e' and\nmore")
    assert capsys.readouterr().err == "privtraj: note: 'he?[2Kight?' and more\n"


def test_a_population_that_grows_is_fitted_and_sampled_with_families(tmp_path, capsys):
    cells = datasets.branching_population(40, 5, seed=0)
    x, y = cells.points.T
    export_tables.write_table(pa.table({"day": cells.times, "x": x, "y": y}), tmp_path / "c.csv")
    box = ["x", "-1.3", "1.3", "--feature", "y", "-1.3", "1.3"]
    changes = {"time": ["day"], "person": None, "feature": box, "time_range": ["0", "1"]}
    growth = {"growth": ["released"], "write_config": [str(tmp_path / "c.toml")]}
    model = tmp_path / "m.privtraj"
    assert cli.main(_fit_words(tmp_path / "c.csv", model, **changes, **growth)) == 0
    assert 'growth = "released"' in (tmp_path / "c.toml").read_text()
    out = tmp_path / "paths.csv"
    words = ["sample", str(model), "--out", str(out), "-n", "60", "--seed", "1", "--branching"]
    assert cli.main(words) == 0
    capsys.readouterr()
    table = tables.read_columns(out, ["path", "day", "parent", "x", "y"])
    assert 60 <= table.num_rows < 300
    assert pt.load(model).growth == pt.Growth("released")
