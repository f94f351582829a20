"""`python -m reproduce`: what it refuses, what it writes, and that a quick run concludes nothing.

The runs themselves are the other files here, which only `make test-all` runs.
"""

import importlib
import json

import pytest

from privtraj.base.errors import InputError
from reproduce.__main__ import main
from reproduce.registry import NAMES, reproduce
from reproduce.result import Options, Reproduction


@pytest.fixture
def stubbed(monkeypatch):
    """A run that takes no time and says what a full run would."""

    def run(options):
        rows = [{"what": "digit 7", "claimed": 1.28, "verdict": "holds"}]
        return Reproduction("table-budgets", {"seeds": options.seeds}, rows, "\n# Title\n\nHolds.")

    monkeypatch.setattr("reproduce.table_budgets.run", run)


def test_a_run_is_told_and_written(stubbed, tmp_path, capsys):
    assert main(["table-budgets", "--out", str(tmp_path / "out"), "--seeds", "2"]) == 0
    assert "Holds." in capsys.readouterr().out
    whole = json.loads((tmp_path / "out" / "table-budgets.json").read_text())
    assert whole["settings"] == {"seeds": 2}
    assert whole["rows"][0]["verdict"] == "holds"


def test_a_quick_run_concludes_nothing(stubbed, tmp_path, capsys):
    assert main(["table-budgets", "--quick", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("# Title\n\nA quick run:")
    files = "".join(path.read_text() for path in tmp_path.iterdir())
    assert "olds" not in printed + files
    assert "1.28" in files


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_its_module(name):
    assert callable(importlib.import_module(f"reproduce.{NAMES[name].module}").run)


def test_strokes_are_asked_for_before_anything_runs(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["all", "--out", str(out)]) == 2
    assert "table-w2 needs the pen strokes of MNIST: give --strokes" in capsys.readouterr().err
    assert not out.exists()
    assert main(["table-w2", "--strokes", str(tmp_path / "none.npz"), "--out", str(out)]) == 2
    assert "there is no file" in capsys.readouterr().err
    with pytest.raises(InputError, match="give strokes="):
        reproduce("fig-plain", Options())


def test_a_directory_that_holds_something_is_not_written_into(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["table-budgets", "--out", str(tmp_path)]) == 2
    assert "not empty" in capsys.readouterr().err


def test_help_lists_the_names(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in (*NAMES, "--strokes FILE"))
