"""Newcomers: a hospital, a fleet, a laboratory, an analyst. From README to a published table.

Each of the first three starts from README alone, with a fresh copy of what is in the repository and
an empty folder, follows the link to the guide, and runs it as it stands, top to bottom.
"""

import csv
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import doc_blocks
import privtraj as pt
from doc_blocks import blocks
from privtraj import cli
from privtraj.assess import quality

ROOT = Path(__file__).resolve().parents[1]
RUN = ("python", "sh")
TEN_MINUTES = 600  # seconds of all cores together: other work on the machine does not count
GUIDES = {name: f"docs/howto/{name}.md" for name in ("clinic", "mobility", "single-cell")}


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """What the repository tracks: a file that nobody added is not there."""
    folder = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a checkout: what is tracked is not known")
    for name in filter(None, listed.stdout.split("\0")):
        if name.startswith(("README", "docs/", "src/")) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def followed(clone, name):
    """The guide that README, and the home page that it names, link to."""
    assert f"({GUIDES[name]})" in (clone / "README.md").read_text("utf-8")
    assert f"(howto/{name}.md)" in (clone / "docs" / "index.md").read_text("utf-8")
    return (clone / GUIDES[name]).read_text("utf-8")


def travelled(clone, name, room):
    """What the blocks said, run one after the other in the room, in a process of their own."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PYTHONPATH": str(clone / "src"), "PATH": path, "MPLBACKEND": "agg"}
    before = _seconds()
    done = subprocess.run(
        [sys.executable, doc_blocks.__file__],
        input=json.dumps([pair for pair in blocks(followed(clone, name)) if pair[0] in RUN]),
        cwd=room,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert _seconds() - before < TEN_MINUTES
    return json.loads(done.stdout)


def _seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.thorough
def test_the_journey_of_a_hospital_with_a_messy_file(clone, tmp_path):
    said = travelled(clone, "clinic", tmp_path)
    raw = (tmp_path / "visits.csv").read_bytes()
    assert b"Gyn\xe4kologie" in raw  # no UTF-8
    assert re.search(rb";\d+,\d;", raw)
    assert "semicolons between cells, decimal commas, dates as DD.MM.YYYY" in said[1]
    form, filled = (tomllib.loads((tmp_path / f).read_text()) for f in ("form.toml", "fit.toml"))
    assert form["csv"] == filled["csv"]  # the guide has what init finds
    assert (form["time"], form["person"]) == ("Datum", "Patient")
    assert pt.load(tmp_path / "pressure.privtraj").verify() <= 1
    found = rows(tmp_path / "patients.csv")
    assert len(found) == 2000 * 25
    for row in found:
        assert re.fullmatch(r"202[34]-\d\d-\d\d", row["Datum"])  # days, no microseconds
        assert re.fullmatch(r"\d{2,3}", row["RR systolisch (mmHg)"])
        assert re.fullmatch(r"\d{2,3}(\.\d)?", row["Gewicht (kg)"])
        assert 70 <= float(row["RR systolisch (mmHg)"]) <= 230
        assert 30 <= float(row["Gewicht (kg)"]) <= 180
    frame = pd.DataFrame(found)
    pressure = frame["RR systolisch (mmHg)"].astype(float).groupby(frame["Datum"]).median()
    assert 143 < pressure.iloc[0] < 157  # 150 as the truth; it falls by 15
    assert 8 < pressure.iloc[0] - pressure.iloc[-1] < 22
    assert "RR systolisch (mmHg)" in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.thorough
def test_the_journey_of_a_fleet(clone, tmp_path):
    travelled(clone, "mobility", tmp_path)
    lines = json.loads((tmp_path / "trips.geojson").read_text())["features"]
    places = np.array([line["geometry"]["coordinates"] for line in lines])
    assert places.shape == (300, 73, 2)
    np.testing.assert_array_equal(places, places.round(6))
    low, high = (11.42, 48.04), (11.72, 48.24)
    assert ((places >= low) & (places <= high)).all()
    times = lines[0]["properties"]["times"]
    assert times[:2] == ["2024-05-06T06:00:00Z", "2024-05-06T06:05:00Z"]
    found = rows(tmp_path / "trips.csv")
    assert len(found) == 300 * 73
    assert found[1]["time"] == "2024-05-06 06:05:00"
    assert max(len(row["lon"]) for row in found) == len("11.575123")
    spread = places.std(axis=0).sum(axis=-1)
    assert spread[-1] < spread[0] / 2  # from three suburbs to one place of work
    assert np.linalg.norm(places[:, -1].mean(axis=0) - (11.575, 48.137)) < 0.02
    assert (tmp_path / "trips.html").stat().st_size > 100_000


@pytest.mark.thorough
def test_the_journey_of_a_laboratory(clone, tmp_path):
    anndata = pytest.importorskip("anndata", reason="needs privtraj[anndata]")
    travelled(clone, "single-cell", tmp_path)
    cells = anndata.read_h5ad(tmp_path / "synthetic.h5ad")
    assert cells.obsm["X_pca"].shape == (400 * 15, 5)
    assert sorted(set(cells.obs["day"])) == np.linspace(0, 7, 15).tolist()
    assert (np.abs(cells.obsm["X_pca"]) <= 1.5).all()
    real = anndata.read_h5ad(tmp_path / "cells.h5ad")
    for day in (0.0, 7.0):
        ours, theirs = (np.asarray(x[x.obs["day"] == day].obsm["X_pca"]) for x in (cells, real))
        assert np.abs(ours.mean(axis=0) - theirs.mean(axis=0)).max() < 0.2
    assert (tmp_path / "cells.html").stat().st_size > 100_000


@pytest.mark.thorough
def test_the_journey_of_an_analyst_whose_table_has_codes_and_ages(tmp_path, capsys, monkeypatch):
    """What `init` finds is filled in and fitted; answers and the report tell the truth of it."""
    monkeypatch.chdir(tmp_path)
    rng, n = np.random.default_rng(7), 6000
    year, code = 3 * rng.random(n), rng.choice(6, n, p=[0.3, 0.3, 0.2, 0.15, 0.045, 0.005])
    codes = ["diabetes", "hypertension", "copd", "asthma", "gout", "lupus"]
    sugar = (rng.normal(5.6, 0.4, n) + 1.8 * (code == 0)).round(1)
    when = pd.Timestamp("2022-01-01") + pd.to_timedelta((year * 365 * 86400).astype(int), "s")
    table = pd.DataFrame(
        {
            "patient": [f"P{k:05d}" for k in range(n)],
            "visit": [f"{moment:%Y-%m-%dT%H:%M:%S}+01:00" for moment in when],
            "age": (rng.integers(20, 85, n) + year).astype(int),
            "postcode": rng.choice(["01067", "01069", "04103"], n),
            "hba1c": np.where(rng.random(n) < 0.08, -99, sugar),
            "crp": np.exp(rng.normal(1.2, 1.1, n)).round(1),
            "sysbp": np.where(rng.random(n) < 0.05, 999, rng.normal(130, 15, n).round()),
            "diagnosis": np.array(codes)[code],
            "site": "A",
        }
    )
    table.to_csv("hospital.csv", index=False)
    assert cli.main(["init", "hospital.csv", "-o", "form.toml"]) == 0
    text = Path("form.toml").read_text()
    filled = {
        '["age", "<low>", "<high>"]': '["age", 0, 110]',
        'monotone = ["age"]': "",
        '# ageing = ["age"]': 'ageing = ["age"]',
        '["site", "<value>"]': '["site", "A"]',
        '# zone = [["visit"': 'zone = [["visit"',
        '["<start>", "<end>"]': '["2022-01-01", "2025-01-01"]',
        'epsilon = "<epsilon>"': "epsilon = 1",
        'delta = "<delta>"': "delta = 1e-5",
    }
    known = [("hba1c", "3", "16", "-99"), ("sysbp", "60", "260", "999")]
    for name, low, high, missing in known:
        line = f'columns.{name} = {{ kind = "number", low = "<low>", high = "<high>", missing = '
        assert f"{line}true, missing_codes = [{missing}] }}" in text
        filled[line] = line.replace('"<low>"', low).replace('"<high>"', high)
    line = 'columns.crp = { kind = "number", low = "<low>", high = "<high>", scale = "log"'
    filled[line] = line.replace('"<low>"', "0").replace('"<high>"', "500")
    filled['offset = "<offset>"'] = "offset = 0.1"
    for name, values in (("postcode", ["01067", "01069", "04103"]), ("diagnosis", codes)):
        filled[f'columns.{name} = {{ kind = "category", values = "<values>"'] = (
            f'columns.{name} = {{ kind = "category", values = {json.dumps(values)}'
        )
    for before, after in filled.items():
        assert before in text, before
        text = text.replace(before, after)
    Path("fit.toml").write_text(text)
    capsys.readouterr()
    assert cli.main(["check", "--config", "fit.toml"]) == 0
    assert "not used" not in capsys.readouterr().out
    assert cli.main(["plan", "--people", str(n), "--config", "fit.toml"]) == 0
    planned = " ".join(capsys.readouterr().out.split())
    assert cli.main(["fit", "--config", "fit.toml"]) == 0
    told = capsys.readouterr()
    assert "'lupus'" in told.err + told.out
    model = pt.load("model.privtraj")
    right = re.search(r"at most ([\d.]+)% of cases", planned)
    assert float(right[1]) == pytest.approx(100 * model.certificate.chance_right, abs=0.11)
    assert quality.quality_of(model).worth.worth > 20  # of ages that go with dates, too
    rows = {row["diagnosis"]: row for row in model.ask("mean hba1c by diagnosis").rows}
    assert rows["lupus"]["lost"]
    # twice as far as an interval of 90 % reaches: of draws of noise one in 1,000 is
    known = rows["diabetes"]
    assert abs(known["value"] - 7.4) < known["high"] - known["low"]
    people = model.sample(300, times=["2022-01-01", "2024-01-01"], seed=0).to_frame()
    assert set(people["site"]) == {"A"}
    assert str(people["visit"].dtype.tz) == "Europe/Berlin"
    older = people.groupby("path")["age"].diff().dropna()  # but at a bound
    assert (abs(older - 2) < 0.02).mean() > 0.98


# The same table in other hands ------------------------------------------------------------------

NAMES = {"height": (40, 210), "weight": (1, 140)}
WRITTEN = {
    "Germany": {"sep": ";", "decimal": ",", "date_format": "%d.%m.%Y", "encoding": "cp1252"},
    "Excel": {"sep": ";", "decimal": ",", "date_format": "%d.%m.%Y", "encoding": "utf-8-sig"},
    "England": {"sep": ",", "date_format": "%d/%m/%Y", "na_rep": "NULL", "quoting": csv.QUOTE_ALL},
    "a tab": {"sep": "\t", "date_format": "%Y-%m-%d", "na_rep": "NA", "encoding": "utf-16"},
}


def visits():
    rng = np.random.default_rng(5)
    n = 400
    made = pd.DataFrame(
        {
            "patient": [f"Müller {k}" for k in range(n)],
            "date": pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D"),
            "height": rng.normal(150, 20, n).round(1),
            "weight": rng.normal(60, 15, n).round(1),
        }
    )
    made.loc[::50, "weight"] = np.nan
    return made


def fitted(path, **read):
    snaps = pt.Snapshots.from_table(
        path,
        time="date",
        person="patient",
        bounds=NAMES,
        time_range=("2023-01-01", "2024-12-31"),
        missing="drop",
        seed=1,
        **read,
    )
    return pt.TrajectorySynthesizer(epsilon=4.0, delta=1e-5, seed=1, particles=32).fit(snaps)


@pytest.mark.filterwarnings("ignore::privtraj.synthesizer.LowBudgetWarning")
@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_however_a_table_is_written_the_form_reads_it(written, tmp_path, capsys):
    """`init` finds the dialect, and the model is that of the plain table, to the last bit."""
    visits().to_csv(tmp_path / "plain.csv", index=False)
    visits().to_csv(tmp_path / "messy.csv", index=False, **written)
    assert cli.main(["init", str(tmp_path / "messy.csv"), "-o", str(tmp_path / "f.toml")]) == 0
    capsys.readouterr()
    form = tomllib.loads((tmp_path / "f.toml").read_text())
    found = fitted(tmp_path / "messy.csv", csv=form.get("csv"))
    np.testing.assert_array_equal(found.particles, fitted(tmp_path / "plain.csv").particles)
