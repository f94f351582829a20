"""A steward's look depends on the records and is not paid for: no file knows of it.

With a guard that answers the same whatever the data, a fit of a table that passed the look, one of
the same table that nobody looked at, and one of a table that did not pass, but was fitted all the
same, write the same files to the last byte.
"""

import json

import numpy as np
import pandas as pd
import pytest

from privtraj import cli
from privtraj.privacy.ledger_file import LedgerFile
from privtraj.synthesizer import TrajectorySynthesizer

FIT = ["fit", "t.csv", "--time", "t", "--feature", "x", "0", "1", "--person", "id"]
FIT += ["--time-range", "0", "10", "--bins", "3", "--epsilon", "0.5", "--delta", "1e-5"]
FIT += ["--measure", "counts", "--windows", "bins", "--cells", "4", "--particles", "16"]
OUT = ["--out", "m.privtraj", "--certificate", "c.json", "--write-config", "fit.toml"]
OTHERWISE = ("id", "time", "model", "fingerprint")


@pytest.fixture
def write(tmp_path, monkeypatch, blindfold):
    """Function: what a blindfolded fit of a table writes, by file, and its exit code."""
    monkeypatch.setattr(TrajectorySynthesizer, "guard_class", blindfold)

    def write(name, scale, *words):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        rng = np.random.default_rng(len(name))
        table = {
            "id": np.arange(60),
            "t": rng.uniform(0, 10, 60),
            "x": scale * rng.uniform(size=60),
        }
        pd.DataFrame(table).to_csv("t.csv", index=False)
        code = cli.main([*FIT, *OUT, *words])
        paths = [path for path in folder.iterdir() if path.name != "t.csv"]
        return code, {path.name: path.read_bytes() for path in paths}

    return write


def test_files_do_not_know_whether_a_range_was_wrong_or_the_steward_said_yes(write, capsys):
    seeded = ["--seed", "5", "--not-private"]
    passed = write("passed", 1.0, *seeded)
    unseen = write("unseen", 1.0, *seeded, "--yes")
    wrong = write("wrong", 100.0, *seeded, "--yes")
    assert set(passed[1]) == {"m.privtraj", "c.json", "fit.toml"}
    assert passed[0] == unseen[0] == wrong[0] == 0
    assert passed[1] == unseen[1] == wrong[1]
    assert write("stopped", 100.0, *seeded) == (2, {})


def test_nor_does_a_ledger(write, tmp_path, capsys):
    caps = ["--ledger", "l.jsonl", "--cap-epsilon", "5", "--cap-delta", "1e-3"]
    write("passed", 1.0, *caps)
    write("wrong", 100.0, *caps, "--yes")
    assert write("stopped", 100.0, *caps) == (2, {})
    told = []
    for name in ("passed", "wrong"):
        entries = LedgerFile(tmp_path / name / "l.jsonl").summary()["entries"]
        told.append([{k: v for k, v in one.items() if k not in OTHERWISE} for one in entries])
    assert told[0] == told[1]
    assert "yes" not in json.dumps(told)
