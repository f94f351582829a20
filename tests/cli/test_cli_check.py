"""`privtraj check`: what a steward sees; that it costs and leaves nothing."""

import json

import numpy as np
import pyarrow as pa
import pytest

from privtraj import cli, datasets
from privtraj.assess.look import NOTICE
from privtraj.export import tables as export_tables

PEOPLE = 300
HEIGHT = ["--feature", "height", "40", "210"]
OTHERS = ["--feature", "weight", "1", "140", "--column", "sex", "category", "values=F,M"]
WHEN = ["--time", "age", "--time-range", "0", "20", "--person", "id"]
BUDGET = ["--epsilon", "2", "--delta", "1e-4"]
SMALL = [
    "--measure",
    "counts",
    "--particles",
    "24",
    "--cells",
    "6",
    "--windows",
    "bins",
    "--bins",
    "5",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("check")
    table = datasets.growth_clinic(PEOPLE)
    for name in ("clinic.csv", "clinic.parquet"):
        export_tables.write_table(table, folder / name)
    metres = pa.array(np.asarray(table["height"]) / 100)
    wrong = table.set_column(table.schema.get_field_index("height"), "height", metres)
    export_tables.write_table(wrong, folder / "metres.csv")
    return folder


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def run(*words):
    return cli.main([*map(str, words)])


@pytest.mark.parametrize("name", ["clinic.csv", "clinic.parquet"])
def test_a_table_within_its_ranges(folder, name, capsys):
    assert run("check", folder / name, *WHEN, *HEIGHT, *OTHERS) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0] == NOTICE
    assert lines[1] == "300 records of 300 people"
    assert lines[2].startswith("  - read from ")
    assert "No range is plainly wrong." in lines
    assert shown.err == ""
    assert max(map(len, lines)) <= 100


def test_a_unit_mistake_ends_with_a_code_of_its_own(folder, capsys):
    words = ["check", folder / "metres.csv", *WHEN, *HEIGHT, *OTHERS, *BUDGET, "--json"]
    assert run(*words) == 3
    said = json.loads(capsys.readouterr().out)
    assert next(iter(said)) == "command"
    assert said["notice"] == NOTICE
    assert (said["fine"], said["privacy_spent"]) == (False, 0)
    wrong = [one for one in said["findings"] if one["level"] == "wrong"]
    assert [one["column"] for one in wrong] == ["height"]


def test_options_are_named_as_typed(folder, capsys):
    words = ["check", folder / "clinic.csv", "--time", "age", "--time-range", "0", "20", *HEIGHT]
    assert run(*words) == 0
    assert "name it with --person" in capsys.readouterr().out.replace("\n    ", " ")


def test_a_constant_is_a_column_that_is_used(folder, capsys):
    told = ["check", str(folder / "clinic.csv"), *WHEN, *HEIGHT, *OTHERS[:4], *BUDGET]
    assert cli.main(told) == 0
    assert "not used: 'sex'" in capsys.readouterr().out
    assert cli.main([*told, "--constant", "sex", "F"]) == 0
    assert "not used" not in capsys.readouterr().out


def test_a_configuration(folder, tmp_path, capsys):
    config = tmp_path / "fit.toml"
    config.write_text(
        f'data = "{folder / "clinic.csv"}"\ntime = "age"\nperson = "id"\nout = "m.privtraj"\n'
        'feature = [["height", 40, 210]]\ntime_range = [0, 20]\nepsilon = 1\ndelta = 1e-5\n'
    )
    assert run("check", "--config", config) == 0
    assert "No range is plainly wrong." in capsys.readouterr().out
    assert run("check", "--config", config, "--feature", "height", "0.4", "2.1") == 3
    assert list(tmp_path.iterdir()) == [config]


def test_no_configuration_says_yes_beforehand(folder, tmp_path, capsys):
    config = tmp_path / "fit.toml"
    config.write_text("yes = true\n")
    assert run("fit", folder / "clinic.csv", "--config", config, *WHEN, *HEIGHT, *BUDGET) == 2
    assert "has 'yes', which is not a choice of fit" in capsys.readouterr().err


def test_fit_stops_at_a_range_that_is_plainly_wrong_before_it_spends(folder, capsys):
    out = ["--out", folder / "m.privtraj", "--ledger", folder / "l.jsonl"]
    caps = ["--cap-epsilon", "5", "--cap-delta", "1e-3"]
    before = files(folder)
    words = ["fit", folder / "metres.csv", *WHEN, *HEIGHT, *BUDGET, *SMALL, *out, *caps]
    assert run(*words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert "100 % of the records have 'height' below [40, 210]" in shown.err
    assert shown.err.endswith("or go on with --yes\n")
    assert files(folder) == before


def test_fit_goes_on_when_told_and_says_nothing_more(folder, tmp_path, capsys):
    words = ["fit", folder / "metres.csv", *WHEN, *HEIGHT, *BUDGET, *SMALL]
    assert run(*words, "--out", tmp_path / "m.privtraj", "--yes", "--json") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["doubts"] == []
    assert "plainly wrong" not in shown.err


def test_what_was_released_is_looked_at_afterwards_and_written_all_the_same(
    folder, tmp_path, capsys, monkeypatch
):
    """Where nobody looked before: people of one corner are seen."""
    monkeypatch.setattr("privtraj.cli.fit.refuse_wrong", lambda found: None)
    fine = [*SMALL[:4], "--cells", "32", *SMALL[6:]]
    words = ["fit", folder / "metres.csv", *WHEN, *HEIGHT, "--epsilon", "20", "--delta", "1e-4"]
    assert run(*words, *fine, "--out", tmp_path / "m.privtraj", "--json") == 3
    shown = capsys.readouterr()
    (doubt,) = json.loads(shown.out)["doubts"]
    assert "of the released people are at the lower bound of 'height'" in doubt
    assert "the model is written, as it is paid for" in shown.err
    assert (tmp_path / "m.privtraj").exists()


def test_a_messy_file_is_shown_as_it_was_read_and_as_it_seems_to_be(tmp_path, capsys):
    path = tmp_path / "klinik.csv"
    heights = [f"{100 + k / 7:.1f}".replace(".", ",") for k in range(200)]
    days = [f"{1 + k % 28:02d}.{1 + k % 12:02d}.2019" for k in range(200)]
    rows = [
        f"{k};{day};{height}" for k, (day, height) in enumerate(zip(days, heights, strict=True))
    ]
    path.write_text("\n".join(["Patient;Datum;Größe (cm)", *rows, ""]), encoding="utf-8")
    words = ["check", path, "--time", "Datum", "--person", "Patient", "--feature", "Größe", "40"]
    words += ["210", "--time-range", "2019-01-01", "2019-12-31"]
    assert run(*words) == 3
    shown = " ".join(capsys.readouterr().out.split())
    assert "read from CSV with semicolons between cells, decimal points" in shown
    assert "it seems to have semicolons between cells, decimal commas" in shown
    assert "of column 'Größe' are not numbers: most have a decimal comma" in shown
    assert "of column 'Datum' are not dates: most are as DD.MM.YYYY" in shown
    assert run(*words, "--csv", "decimal=comma", "dates=DD.MM.YYYY") == 0
    assert "seems" not in capsys.readouterr().out
