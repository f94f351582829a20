"""`privtraj audit`: what a user types, what comes back, and the exit code that scripts rely on."""

import json

import numpy as np
import pytest

from privtraj import cli
from privtraj.audit import attack as audit_module
from privtraj.audit.attack import RUNS
from privtraj.audit.canaries import CANARIES
from privtraj.audit.findings import Audit, compare
from privtraj.cli import trust as command
from privtraj.privacy.accounting import tally
from privtraj.privacy.events import GaussianSum

RUN = ["audit", "--runs", "20", "--seed", "1"]


@pytest.fixture
def staged(monkeypatch):
    """Function: let the audit find this true mu at a claim of 1; remembers how it was asked."""
    asked = {}

    def stage(true):
        def found(synthesizer, **options):
            asked.update(options, synthesizer=synthesizer)
            draws = np.random.default_rng(0).standard_normal((2, 400)) + np.array([[0], [true]])
            claim = tally([GaussianSum(1.0, "sum")], "add-remove")
            finding = compare(*(draws - true / 2), claim, 1e-5, threshold=0.0)
            return Audit(claim, 1e-5, 0.95, "transcript", 800, (finding,), (), 0.01)

        monkeypatch.setattr(audit_module, "audit", found)
        return asked

    return stage


@pytest.mark.thorough
@pytest.mark.slow
def test_a_real_audit_end_to_end(tmp_path, capsys):
    out = tmp_path / "audit.json"
    assert cli.main([*RUN, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "Claim: epsilon = 1, delta = 1e-05 (add-remove)" in said
    assert "from these rates alone" in said
    assert "for noise of the claimed shape" in said
    assert "no violation found" in said
    written = json.loads(out.read_text())
    assert written["runs"] == 20
    assert written["claim"]["epsilon"] == pytest.approx(1, abs=1e-6)
    assert len(written["attacks"][0]["scores_with"]) == 10
    assert not any(test["failed"] for test in written["noise"]["tests"])

    before = out.read_bytes()
    assert cli.main([*RUN, "--out", str(out)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert cli.main([*RUN, "--out", str(out), "--force", "--json"]) == 0
    assert out.read_bytes() == before
    shown = json.loads(capsys.readouterr().out)
    assert shown["command"] == "audit"
    assert shown["out"] == str(out)
    assert shown.items() >= {k: v for k, v in written.items() if k != "attacks"}.items()


def test_replace_one_and_pure_budgets(capsys):
    words = ["--adjacency", "replace-one", "--delta", "0", "--measure", "counts", "--json"]
    assert cli.main([*RUN, *words]) == 0
    claim = json.loads(capsys.readouterr().out)["claim"]
    assert (claim["adjacency"], claim["delta"]) == ("replace-one", 0)


def test_a_refuted_claim_is_exit_code_one_and_is_said(staged, capsys, tmp_path):
    staged(3.0)
    assert cli.main([*RUN, "--out", str(tmp_path / "a.json")]) == 1
    assert "VIOLATED" in capsys.readouterr().out
    assert json.loads((tmp_path / "a.json").read_text())["violated"]


def test_options_reach_the_audit(staged):
    asked = staged(0.5)
    words = "--epsilon 3 --delta 1e-3 --measure gradients --features 4 --view released --canary all"
    assert cli.main(["audit", *words.split(), "--confidence", "0.9", "--runs", "77"]) == 0
    synthesizer = asked.pop("synthesizer")
    assert (synthesizer.epsilon, synthesizer.delta) == (3, 1e-3)
    assert (synthesizer.measure, synthesizer.seed) == ("gradients", None)
    asked.pop("progress")
    wanted = {"runs": 77, "confidence": 0.9, "features": 4, "view": "released", "seed": None}
    assert asked == {**wanted, "canary": "all"}


def test_the_command_knows_every_canary():
    assert list(command.CANARIES) == [*CANARIES, "all"]


def test_help_tells_the_default_numbers_of_runs(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["audit", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "example" in shown
    assert "exit codes" in shown
    assert f"default: {RUNS['transcript']}, or {RUNS['released']} for the released view" in shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--epsilon", "-1"], "epsilon must be"),
        (["--delta", "1"], "delta must be"),
        (["--confidence", "1"], "confidence must be"),
        (["--runs", "10"], "from 20"),
        (["--view", "everything"], "--view must be 'transcript' or 'released'"),
        (
            ["--canary", "yellow"],
            "--canary must be 'alone', 'corner', 'rare', 'duplicated', 'level', 'missing' or 'all'",
        ),
        (["--out", "audit.csv"], "must end in .json"),
        (["--delta", "0", "--measure", "gradients"], "--measure counts"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_two(
    words, sentence, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["audit", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("privtraj: error: ")
    assert said.err.count("\n") == 1
    assert sentence in said.err
    assert list(tmp_path.iterdir()) == []
