"""A new score is one file: a function, and its entry in the table above it."""

import importlib
import sys

import numpy as np
import pytest

from privtraj import metrics
from privtraj.metrics import registry

TOY = """
import numpy as np

from privtraj.metrics.clouds import pair
from privtraj.metrics.registry import cloud_metric


@cloud_metric("mean_shift", "shift of the mean", place=15, least=3)
def mean_shift(a, b):
    x, y = pair(a, b)
    return float(np.linalg.norm(x.mean(axis=0) - y.mean(axis=0)))
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The package with one more file in it."""
    (tmp_path / "toy.py").write_text(TOY)
    package = importlib.import_module("privtraj.metrics")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "_CLOUDS", dict(registry._CLOUDS))
    yield
    sys.modules.pop("privtraj.metrics.toy", None)


def clouds(n):
    return [np.random.default_rng(k).random((n, 2)) for k in range(2)]


def test_one_file_adds_a_line_to_the_table(toy):
    real, synthetic = clouds(40), [cloud + 0.1 for cloud in clouds(40)]
    names = [row.name for row in metrics.cloud_scores(synthetic, real, fresh=real)]
    assert names[:3] == ["w2", "mean_shift", "squared_w2"]  # by their places
    rows = {row.name: row for row in metrics.cloud_scores(synthetic, real, fresh=real)}
    row = rows["mean_shift"]
    assert row.value == pytest.approx(np.hypot(0.1, 0.1))
    assert row.floor == pytest.approx(0)
    assert (row.label, row.better, len(row.per_time)) == ("shift of the mean", "lower", 2)
    few = clouds(2)
    assert "mean_shift" not in {row.name for row in metrics.cloud_scores(few, few, fresh=few)}


def test_without_the_file_the_line_is_not_there():
    assert "mean_shift" not in {metric.name for metric in registry.cloud_metrics()}


def test_a_score_gets_the_options_that_it_has():
    entry = {metric.name: metric for metric in registry.cloud_metrics()}
    given = entry["query_error"].with_options(bounds=None, seed=3)
    assert given.keywords == {"bounds": None, "seed": 3}
    assert entry["w1"].with_options(bounds=None, seed=3).keywords == {}


def test_the_root_of_w2_is_not_transported_again(monkeypatch):
    calls = []
    scored = metrics.table.Candidates.scored

    def watch(self, *rest):
        calls.append(rest)
        return scored(self, *rest)

    monkeypatch.setattr(metrics.table.Candidates, "scored", watch)
    rows = metrics.cloud_scores(clouds(9), clouds(9), fresh=clouds(9))
    assert len(calls) == len(rows) - 1
