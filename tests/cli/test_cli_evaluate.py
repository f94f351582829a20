"""`privtraj evaluate`: what a user types, what comes back, and what is never quoted."""

import json
import re
import sys
import time

import numpy as np
import pyarrow as pa
import pytest

from privtraj import cli
from privtraj.export import tables as export_tables
from privtraj.model.model import TrajectoryModel
from privtraj.privacy.certificate import certify
from privtraj.privacy.events import GaussianSum
from privtraj.privacy.ledger import Ledger

NOTICE = "compares with raw data: not for release"
SECRET = "123.4567"
T, M = 3, 16
BOUNDS = np.array([[40.0, 210.0], [1.0, 140.0]])


def walks(n, seed):
    rng = np.random.default_rng(seed)
    centre = np.linspace(0.3, 0.6, T)[None, :, None]
    unit = centre + 0.1 * rng.standard_normal((n, 1, 2)) + 0.02 * rng.standard_normal((n, T, 2))
    return BOUNDS[:, 0] + (BOUNDS[:, 1] - BOUNDS[:, 0]) * np.clip(unit, 0, 1)


def write(path, paths, first=0):
    n = len(paths)
    columns = {
        "id": [f"P{k}" for k in np.repeat(np.arange(n) + first, T)],
        "age": np.tile(np.arange(float(T)), n),
        "height": paths[:, :, 0].ravel(),
        "weight": paths[:, :, 1].ravel(),
    }
    export_tables.write_table(pa.table(columns), path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    write(folder / "clinic.csv", walks(90, 0))
    write(folder / "others.parquet", walks(60, 1), first=500)
    ledger = Ledger(1.0, 1e-5)
    ledger.spend(GaussianSum(8.0, "sums", 1e-12))
    rng = np.random.default_rng(2)
    centre = np.linspace(0.3, 0.6, T)[:, None, None]
    model = TrajectoryModel(
        particles=(centre + 0.1 * rng.standard_normal((T, M, 2))).astype(np.float32).astype(float),
        weights=np.full((T, M), 1 / M),
        bandwidth=np.full(T, 0.03),
        diffusivity=0.01,
        numeric_times=np.arange(float(T)),
        bounds=BOUNDS,
        features=("height", "weight"),
        time_name="age",
        datetime=False,
        certificate=certify(ledger, public_inputs={}, private_noise=True),
    )
    model.sealed().save(folder / "growth.privtraj")
    return folder


@pytest.fixture
def words(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return ["evaluate", str(folder / "growth.privtraj"), str(folder / "clinic.csv"), "--n", "80"]


@pytest.mark.slow
def test_a_table_on_stdout_and_the_same_in_a_file(words, tmp_path, capsys):
    out = tmp_path / "scores.json"
    assert cli.main([*words, "--person", "id", "--out", str(out)]) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0] == NOTICE
    assert ["score", "model", "floor", "ceiling", "better"] in [line.split() for line in lines]
    for label in ("W2", "worth (people per time)", "path W2", "trip JSD"):
        assert sum(line.startswith(label + "  ") for line in lines) == 1
    assert "a random half of the people" in said.out
    progress = said.err.splitlines()  # of a busy machine
    assert all(line.startswith("privtraj: evaluating: ") for line in progress)
    written = json.loads(out.read_text("utf-8"))
    assert next(iter(written)) == "notice"
    assert written["notice"] == NOTICE
    assert (written["people"], written["records"], written["seed"]) == (90, 270, 0)
    for score in (*written["scores"], *written["path_scores"]):
        assert {"value", "floor", "ceiling", "better"} <= set(score)

    before = out.read_bytes()
    assert cli.main([*words, "--person", "id", "--out", str(out)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert cli.main([*words, "--person", "id", "--out", str(out), "--force", "--json"]) == 0
    assert out.read_bytes() == before  # the same seed, the same result
    shown = json.loads(capsys.readouterr().out)
    assert shown == {**written, "out": str(out)}


def test_a_hold_out_makes_the_floor(words, folder, capsys):
    assert cli.main([*words, "--holdout", str(folder / "others.parquet"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["notice"] == NOTICE
    assert shown["command"] == "evaluate"
    assert shown["holdout"].endswith("others.parquet")
    assert shown["floor"] == "other real people, from the hold-out"
    assert shown["path_scores"] == []


def test_notes_go_to_stderr(words, folder, tmp_path, capsys):
    text = (folder / "clinic.csv").read_text().splitlines()
    gaps = [*text[:-1], text[-1].rsplit(",", 1)[0] + ","]
    (tmp_path / "gaps.csv").write_text("\n".join(gaps) + "\n")
    assert cli.main([*words[:2], "gaps.csv", "--n", "20"]) == 0
    said = capsys.readouterr()
    assert said.err == "privtraj: note: 1 records with missing values are left out\n"
    assert said.out.startswith(NOTICE)


def test_help_says_that_it_is_not_for_release(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["evaluate", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "not for release" in shown
    assert "examples:" in shown


@pytest.mark.parametrize(
    ("rest", "sentence"),
    [
        (["missing.privtraj", "{clinic}"], "no file"),
        (["{model}", "missing.csv"], "no file"),
        (["{clinic}", "{clinic}"], "named twice"),
        (["{model}", "{clinic}", "--holdout", "{clinic}"], "named twice"),
        (["{clinic}", "{others}"], "not a privtraj model"),
        (["{model}", "secret.csv"], "cells of column 'height' are not numbers"),
        (["{model}", "short.csv"], "no column 'weight'"),
        (["{model}", "few.csv"], "no time of the table has"),
        (["{model}", "{clinic}", "--person", "nobody"], "no column 'nobody'"),
        (["{model}", "{clinic}", "--person", "height"], "is the person and also"),
        (["{model}", "{clinic}", "--n", "3"], "from 10"),
        (["{model}", "{clinic}", "--seed", "-1"], "at least 0"),
        (["{model}", "{clinic}", "--out", "scores.csv"], "must end in .json"),
        (["{model}", "{clinic}", "--out", "missing/scores.json"], "no directory"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_two(
    rest, sentence, folder, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"P{k},{k % 3},{SECRET},50" for k in range(12))
    (tmp_path / "few.csv").write_text(f"id,age,height,weight\n{rows}\n")
    (tmp_path / "secret.csv").write_text(f"id,age,height,weight\nP1,1,{SECRET}cm,50\n")
    (tmp_path / "short.csv").write_text(f"id,age,height\nP1,1,{SECRET}\n")
    before = set(tmp_path.iterdir())
    names = {"model": "growth.privtraj", "clinic": "clinic.csv", "others": "others.parquet"}
    files = {name: str(folder / file) for name, file in names.items()}
    assert cli.main(["evaluate", *(word.format(**files) for word in rest)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("privtraj: error: ")
    assert said.err.count("\n") == 1
    assert sentence in said.err
    assert SECRET not in said.err
    assert set(tmp_path.iterdir()) == before


def test_people_in_both_tables_are_refused(words, folder, tmp_path, capsys):
    same = write(tmp_path / "same.csv", walks(30, 5))
    assert cli.main([*words, "--holdout", str(same), "--person", "id"]) == 2
    assert "30 people are in the table and in the hold-out" in capsys.readouterr().err


@pytest.mark.thorough
def test_many_records_take_less_than_half_a_minute_and_show_how_far_it_is(
    folder, tmp_path, capsys, monkeypatch
):
    """Of two cores that have nothing else to do: the time of all cores together is measured."""
    write(tmp_path / "many.csv", walks(8334, 3))
    words = [
        "evaluate",
        str(folder / "growth.privtraj"),
        str(tmp_path / "many.csv"),
        "--person",
        "id",
    ]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    before = time.process_time()
    assert cli.main(words) == 0
    assert time.process_time() - before < 2 * 30
    shown = capsys.readouterr()
    assert f"against {3 * 8334} records of 8334 people" in shown.out
    steps = [int(step) for step in re.findall(r"(\d+)/100", shown.err)]
    assert steps == sorted(steps)
    assert len(set(steps)) > 8
    assert "s left" in shown.err
