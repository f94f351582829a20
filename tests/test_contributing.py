"""What CONTRIBUTING.md says about where to change what: its examples, put there and used."""

import importlib
import json
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import privtraj as pt
from privtraj import cli, metrics
from privtraj.audit import scores
from privtraj.audit.attack import audit
from privtraj.base import formats
from privtraj.base.formats import Format
from privtraj.cli import entry
from privtraj.cli.console import parser
from privtraj.data import tables
from privtraj.data.snapshots import Snapshots
from privtraj.metrics import registry
from privtraj.model.model import load
from privtraj.motion import reference
from privtraj.motion.couplings import couple
from privtraj.privacy import events, guard, noise
from privtraj.privacy.accounting import tally
from privtraj.privacy.ledger import Ledger

PAGE = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text("utf-8")
EXAMPLES = dict(
    re.findall(r"^```python\n# (\S+?\.py).*?\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Function: the module of an example, as if its file were where the page says."""
    made = []

    def make(path):
        package, _, name = path.removesuffix(".py").replace("/", ".").rpartition(".")
        room = importlib.import_module(f"privtraj.{package}")
        (tmp_path / f"{name}.py").write_text(EXAMPLES[path])
        monkeypatch.setattr(room, "__path__", [*room.__path__, str(tmp_path)])
        made.append(f"privtraj.{package}.{name}")
        return importlib.import_module(made[-1])

    yield make
    for name in made:
        sys.modules.pop(name, None)


def added(path, place):
    """The names of an example that is added to a module which exists."""
    names = dict(vars(place))
    exec(compile(EXAMPLES[path], path, "exec"), names)
    return types.SimpleNamespace(**{k: v for k, v in names.items() if k not in vars(place)})


@pytest.fixture
def model():
    times, points = pt.datasets.three_modes(300, times=3)
    snapshots = Snapshots.from_arrays(times, points, bounds=[(-1.5, 1.5)] * 2, bins=[0, 0.5, 1])
    return pt.TrajectorySynthesizer(8.0, 1e-4, measure="counts", seed=0).fit(snapshots)


def test_every_example_is_tried_here():
    source = Path(__file__).read_text("utf-8")
    assert len(EXAMPLES) == PAGE.count("```python")
    assert all(f'("{path}"' in source for path in EXAMPLES)


def test_every_file_that_is_named_exists():
    """Except the four that the examples add."""
    section = PAGE.split("## Where to change what")[1].split("## Rules")[0]
    below = Path(registry.__file__).parents[1]
    named = set(re.findall(r"`((?!tests)[a-z_]+(?:/[a-z_]+)*\.pyi?)`", section))
    assert len(named) > 10
    inside = [below, below / "privacy"]
    assert not [path for path in named if not any((room / path).exists() for room in inside)]
    new = {path for path in EXAMPLES if not (below / path).exists()}
    assert new == {
        "metrics/mean_shift.py",
        "cli/features.py",
        "data/json_lines.py",
        "motion/turning.py",
    }


def test_a_metric_is_one_file(module, monkeypatch):
    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))
    module("metrics/mean_shift.py")
    real = [np.random.default_rng(k).random((40, 2)) for k in range(2)]
    rows = metrics.cloud_scores([cloud + 0.1 for cloud in real], real, fresh=real)
    assert {row.name: row.value for row in rows}["mean_shift"] == pytest.approx(np.hypot(0.1, 0.1))


def test_a_command_is_a_module_and_its_entry(module, model, tmp_path, monkeypatch, capsys):
    features = module("cli/features.py")
    monkeypatch.setattr(entry, "full_parser", lambda: parser(features.features))
    model.save(tmp_path / "a.privtraj", not_private=True)
    assert cli.main(["features", str(tmp_path / "a.privtraj"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["features"] == list(model.features)
    assert cli.main(["features", "missing.privtraj"]) == 2


def test_a_format_is_an_entry_and_its_reader(module, tmp_path, monkeypatch):
    module("data/json_lines.py")
    (shown,) = re.findall(r"`(Format\(.*?\))`", PAGE)
    entry_of = eval(shown, {"Format": Format})
    monkeypatch.setattr(tables, "READABLE", (*formats.READABLE, entry_of))
    rows = [{"age": k % 3, "height": 50.0 + k} for k in range(12)]
    (tmp_path / "visits.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    snapshots = Snapshots.from_table(
        tmp_path / "visits.jsonl", time="age", bounds={"height": (40, 60)}, bins=[0, 1, 2]
    )
    assert len(snapshots._rows.points) == 12


def test_a_reference_process_is_a_class_and_its_name(model, module, tmp_path, monkeypatch):
    turning = module("motion/turning.py").Turning
    square = np.array([[0.3, 0.3], [0.7, 0.3], [0.7, 0.7], [0.3, 0.7]], np.float32)
    clouds, quarter = np.stack([square, square]), turning(np.pi / 2)
    (matrix,) = couple(clouds, np.ones((2, 4)), np.ones(1), quarter, "exact").matrices
    np.testing.assert_allclose(matrix, np.roll(np.eye(4), 1, axis=1), atol=1e-5)
    rng, ends = np.random.default_rng(0), np.array([0.0, 0.5, 1.0])
    path = quarter.bridge(square, np.roll(square, -1, axis=0), (0.0, 1.0), ends, rng)
    np.testing.assert_allclose(path[[0, 2]], [square, np.roll(square, -1, axis=0)], atol=1e-5)
    radius = np.linalg.norm(path - 0.5, axis=-1)
    np.testing.assert_allclose(radius, np.hypot(0.2, 0.2), atol=0.01)  # a circle, not a chord

    monkeypatch.setitem(reference.KINDS, turning.kind, turning)
    changed = model.with_reference(reference.from_words("turning speed=0.5"))
    changed.save(tmp_path / "turning.privtraj", not_private=True)
    again = load(tmp_path / "turning.privtraj")
    assert again.reference == turning(0.5)
    assert again.sample(20, times=[0.1, 0.6], seed=0).values.shape == (20, 2, 2)


def test_noise_of_counts_is_an_event_and_a_question(snapshots_of, monkeypatch):
    monkeypatch.setattr(events.Event, "_kinds", dict(events.Event._kinds))
    event = added("privacy/events.py", events).GaussianCounts
    monkeypatch.setattr(guard, "GaussianCounts", event, raising=False)
    monkeypatch.setattr(guard.Question, "registered", [])
    question = added("privacy/guard.py", guard).GaussianCellCounts(20)
    people = snapshots_of([np.full((50, 2), 0.1), np.full((30, 2), 0.9)])
    ledger, z = Ledger(4.0, 1e-5), 3.0
    asked = people.guarded(guard.Guard, ledger, noise.SeededSource(0))
    exact = people._rows.cell_counts(people.axis.bins, (20, 20))
    away = asked.ask(guard.Release(question, guard.Gaussian(z), "cells")) - exact
    # 800 draws: the standard error of the deviation is 2.5 %, three of them are allowed
    assert np.std(away) == pytest.approx(z, rel=0.075)
    alike = tally([events.GaussianSum(z, "")], "add-remove")
    assert ledger.tally.epsilon(1e-5) == pytest.approx(alike.epsilon(1e-5), rel=1e-6)
    ((spent, _),) = ledger.events
    for adjacency, moved in (("add-remove", 1), ("replace-one", 2)):
        assert spent.to_dict(adjacency)["mu"] == pytest.approx(np.sqrt(moved) / z)
        assert events.Event.from_dict(spent.to_dict(adjacency)) == spent.ideal()


@pytest.mark.thorough
def test_an_attack():
    attacks = list(scores.ATTACKS)
    try:
        added("audit/scores.py", scores)
        found = audit(pt.TrajectorySynthesizer(time_coupling=0.0), runs=20, seed=1)
    finally:
        scores.ATTACKS[:] = attacks
    assert found.of("the largest number").rates.absent == 5
    assert "the largest number" in str(found)
