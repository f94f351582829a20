"""A hospital's messy CSV, from init to synthetic patients: nobody edits the file itself."""

import json
import warnings
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

from privtraj import cli
from privtraj.cli import config
from privtraj.data import detection
from privtraj.data.dialect import DATE, NUMBER, Dialect, Readings
from privtraj.data.snapshots import Snapshots
from privtraj.data.tables import CsvReader

N = 300
HEAD = "Patient;Datum der Messung;Größe (cm);Gewicht [kg];Leukozyten [1/µl];Geschlecht"
FILLED = {
    '["Größe (cm)", "<low>", "<high>"]': '["Größe (cm)", 100, 230]',
    '["Gewicht [kg]", "<low>", "<high>"]': '["Gewicht", 20, 200]',
    '["Leukozyten [1/µl]", "<low>", "<high>"]': '["Leukozyten", 0, 20000]',
    '"<values>"': '["w", "m"]',
    '["<start>", "<end>"]': '["2019-01-01", "2023-01-01"]',
    '"<epsilon>"': "4",
    '"<delta>"': "1e-4",
    'missing = "refuse"': 'missing = "drop"',
    "# particles = 64": "particles = 16",
    "# steps = 30": "steps = 3",
    "# cells = 12": "cells = 4",
}


def german(value, digits):
    return f"{value:,.{digits}f}".translate(str.maketrans(",.", ".,"))


@pytest.fixture
def hospital(tmp_path, monkeypatch):
    """Semicolons, decimal commas, 31.01.2019, umlauts in Windows-1252, thousands, NA and k.A."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = [HEAD]
    for k, day in enumerate(rng.integers(0, 1400, N)):
        year, month, day = str(np.datetime64("2019-01-31") + day).split("-")
        weight = {3: "NA", 5: "k.A.", 7: ""}.get(k, german(rng.normal(75, 10), 1))
        weight = f'"{weight}"' if k % 3 == 0 else weight
        cells = "-" if k == 9 else german(rng.normal(7000, 900), 0)
        height = german(rng.normal(170, 9), 1)
        lines.append(f"{k:05d};{day}.{month}.{year};{height};{weight};{cells};{'wm'[k % 2]}")
    Path("klinik.csv").write_bytes("\r\n".join([*lines, ""]).encode("windows-1252"))
    return Path("klinik.csv")


def test_from_init_to_synthetic_patients(hospital, capsys):
    assert cli.main(["init", str(hospital), "-o", "fit.toml"]) == 0
    said = capsys.readouterr()
    for words in (
        "semicolons between cells",
        "decimal commas",
        "points between thousands",
        "dates as DD.MM.YYYY",
        "text in windows-1252",
        "'k.A.' for missing values",
    ):
        assert words in said.out
    text = Path("fit.toml").read_text(encoding="utf-8")
    assert "#   Gewicht [kg]       number  in kg    feature?" in text
    for old, new in FILLED.items():
        assert old in text, old
        text = text.replace(old, new)
    Path("fit.toml").write_text(text, encoding="utf-8")
    assert config.load("fit.toml")["csv"] == {
        "delimiter": ";",
        "encoding": "windows-1252",
        "decimal": ",",
        "thousands": ".",
        "dates": "DD.MM.YYYY",
        "missing": "k.A.",
    }
    assert cli.main(["fit", "--config", "fit.toml", "--write-config", "again.toml", "--quiet"]) == 0
    assert config.load("again.toml")["csv"] == config.load("fit.toml")["csv"]
    assert "csv" not in Path("certificate.json").read_text()
    assert cli.main(["sample", "model.privtraj", "-n", "200", "--out", "paths.csv"]) == 0
    paths = pyarrow.csv.read_csv("paths.csv").to_pandas()
    assert list(paths)[1:] == [
        "Datum der Messung", "Größe (cm)", "Gewicht", "Leukozyten", "Geschlecht"
    ]  # fmt: skip
    # a slip of a decimal sign or of thousands would be off by a factor of ten at least
    assert 140 < paths["Größe (cm)"].mean() < 200
    assert 40 < paths["Gewicht"].mean() < 120
    assert 3000 < paths["Leukozyten"].mean() < 12_000
    capsys.readouterr()
    words = ["evaluate", "model.privtraj", str(hospital), "--n", "100", "--json", "--quiet"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cli.main([*words, "--config", "fit.toml"]) == 0
        first = json.loads(capsys.readouterr().out)
        typed = ["delimiter=semicolon", "encoding=windows-1252", "decimal=comma"]
        typed += ["thousands=point", "dates=DD.MM.YYYY", "missing=k.A."]
        assert cli.main([*words, "--csv", *typed]) == 0
    assert json.loads(capsys.readouterr().out) == first


def test_every_record_is_read_as_it_was_meant(hospital):
    rng = np.random.default_rng(0)
    found = detection.detect(hospital)
    snapshots = Snapshots.from_table(
        hospital,
        time="Datum der Messung",
        person="Patient",
        bounds={"Größe": (0, 1000), "Leukozyten": (0, 100_000)},
        time_range=("2019-01-31", "2023-01-31"),
        missing="drop",
        csv=found.dialect,
    )
    days = rng.integers(0, 1400, N)
    times = snapshots._rows.times
    assert len(times) == N - 1  # one has no leukocytes
    start = np.datetime64("2019-01-31").astype("datetime64[s]").astype(np.int64)
    np.testing.assert_array_equal((times - start) / 86_400, np.delete(days, 9))


def _readings(path, kinds, dialect):
    columns = {name: Readings(name, kind, dialect) for name, kind in kinds.items()}
    list(CsvReader(path, dialect).batches(columns))
    return list(columns.values())


def test_what_check_can_show(hospital):
    """How the cells would be read, with what was found and with nothing declared."""
    kinds = {"Datum der Messung": DATE, "Gewicht": NUMBER}
    dialect = detection.detect(hospital).dialect
    good = _readings(hospital, kinds, dialect)
    assert [(c.cells, c.missing, c.unreadable) for c in good] == [(N, 0, 0), (N, 3, 0)]
    plain = Dialect(encoding="windows-1252")
    bad = _readings(hospital, kinds, plain)
    assert [c.unreadable for c in bad] == [N, N - 2]
    assert "declare --csv decimal=comma" in bad[1].error().typed()


def test_a_fit_without_the_dialect_says_what_to_declare(hospital, capsys):
    words = ["fit", str(hospital), "--time", "Datum der Messung", "--person", "Patient"]
    words += ["--feature", "Gewicht", "20", "200", "--time-range", "2019-01-01", "2023-01-01"]
    words += ["--epsilon", "1", "--delta", "1e-5", "--out", "m.privtraj", "--quiet"]
    told = []
    for said in ("--csv encoding=windows-1252", "--csv dates=DD.MM.YYYY", "--csv decimal=comma"):
        assert cli.main([*words, *told]) == 2
        shown = capsys.readouterr().err
        assert said in shown
        assert shown.count("\n") == 1
        told += said.split()
    assert not Path("m.privtraj").exists()


def test_days_or_months_are_asked_for_before_anything_is_read(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{k % 9 + 1:02d}/05/2019,{k}.5\n" for k in range(20))
    Path("t.csv").write_text(f"day,x\n{rows}")
    assert cli.main(["init", "t.csv"]) == 0
    assert "dates may be DD/MM/YYYY or MM/DD/YYYY" in capsys.readouterr().err
    assert cli.main(["fit", "--config", "privtraj.toml"]) == 2
    assert "csv in 'privtraj.toml' is still to be filled in for 'dates'" in capsys.readouterr().err
