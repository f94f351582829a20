"""The table: every score between its floor and its ceiling, all from equally many people; and a new
score is one file."""

import importlib
import sys

import numpy as np
import pytest

from privtraj import metrics
from privtraj.base.errors import InputError
from privtraj.metrics import registry
from privtraj.metrics.registry import all_metrics
from privtraj.metrics.table import Score, layout

BOUNDS = np.array([[0.0, 10.0], [-1.0, 1.0]])


def crowd(n, seed, noise=0.0, times=3):
    rng = np.random.default_rng(seed)
    side = np.where(np.arange(n) % 2, 0.35, 0.65)[:, None, None]
    steps = np.linspace(-0.15, 0.15, times)[None, :, None]
    points = side + steps + (0.04 + noise) * rng.standard_normal((n, times, 2))
    low, high = BOUNDS.T
    return low + (high - low) * np.clip(points, 0, 1)


def clouds(paths):
    return list(paths.swapaxes(0, 1))


@pytest.fixture(scope="module")
def rows():
    real, fresh = crowd(160, 0), crowd(120, 1)
    synthetic = crowd(200, 2, noise=0.05)
    points = metrics.cloud_scores(
        clouds(synthetic), clouds(real), fresh=clouds(fresh), bounds=BOUNDS
    )
    paths = metrics.path_scores(synthetic, real, fresh=fresh, bounds=BOUNDS)
    return {row.name: row for row in (*points, *paths)}


def test_every_score_is_there(rows):
    assert list(rows) == [
        *("w2", "density_jsd", "path_w2"),
        *("length_ratio", "speed_ratio", "fast_speed_ratio", "autocorrelation_error"),
        *("trip_jsd", "dwell_jsd"),
    ]


def test_the_synthetic_people_lie_between_fresh_people_and_no_knowledge(rows):
    coupled = {metric.name for metric in all_metrics(paths=True) if metric.coupled}
    assert {"path_w2", "length_ratio", "autocorrelation_error", "dwell_jsd"} <= coupled
    for row in rows.values():
        if row.name in coupled:  # the ceiling is about the coupling alone
            assert row.floor < row.value + 1e-3
        elif row.better == "higher":
            assert row.floor > row.ceiling
            assert row.value >= row.ceiling
        else:
            assert row.floor < row.value < row.ceiling


def test_scores_carry_their_times_and_agree_with_each_other(rows):
    assert len(rows["w2"].per_time) == 3
    assert rows["path_w2"].per_time == ()
    assert rows["w2"].value == pytest.approx(np.mean(rows["w2"].per_time))
    assert rows["w2"].to_dict()["per_time"] == list(rows["w2"].per_time)


def test_without_fresh_people_halves_stand_in():
    real = clouds(crowd(100, 0))
    found = {row.name: row for row in metrics.cloud_scores(real, real, bounds=BOUNDS)}
    assert found["w2"].floor > 0  # a half is not the other half
    again = {row.name: row for row in metrics.cloud_scores(real, real, bounds=BOUNDS)}
    assert found == again
    paths = metrics.path_scores(crowd(50, 1), crowd(60, 0), bounds=BOUNDS)
    assert paths[0].floor > 0


def test_candidates_are_equally_many(monkeypatch):
    many, few = clouds(crowd(90, 0, times=2)), [crowd(30, 1)[:, 0], crowd(45, 1)[:, 0]]
    given = {}

    def compare(a, b):
        given.setdefault(len(b), []).append(len(a))
        return 0.0

    monkeypatch.setattr(registry, "_METRICS", {"sizes": registry.Metric("sizes", "", compare)})
    metrics.cloud_scores(many, [many[0], many[1][:80]], fresh=few, bounds=BOUNDS)
    assert given == {90: [30] * 3, 80: [45] * 3}


def test_many_features_get_the_scores_that_make_sense():
    wide = [np.random.default_rng(0).random((12, 13))]
    names = {row.name for row in metrics.cloud_scores(wide, wide, fresh=wide)}
    assert "w2" in names
    assert "density_jsd" not in names
    broad = np.random.default_rng(0).random((12, 2, 13))
    names = {row.name for row in metrics.path_scores(broad, broad, fresh=broad)}
    assert "length_ratio" in names
    assert "trip_jsd" not in names


def test_the_gap_and_the_layout():
    row = Score("w2", "W2", 3.0, 1.0, 5.0, "lower")
    assert row.gap == 0.5
    assert np.isnan(Score("w2", "W2", 3.0, 1.0, 1.0, "lower").gap)
    head, line = layout([Score("w2", "W2", 0.12345, float("nan"), 5.0, "lower")]).splitlines()
    assert head.split() == ["score", "model", "floor", "ceiling", "better"]
    assert line.split() == ["W2", "0.123", "-", "5", "lower"]


def test_times_that_do_not_match_are_refused():
    x = clouds(crowd(20, 0))
    with pytest.raises(InputError):
        metrics.cloud_scores(x, x[:2])
    with pytest.raises(InputError):
        metrics.cloud_scores(x, x, fresh=x[:2])
    with pytest.raises(InputError):
        metrics.path_scores(crowd(9, 0), crowd(9, 0)[:, :2])


def test_paths_with_absences_have_the_scores_that_know_about_them():
    real, ours = crowd(120, 0, times=4), crowd(120, 1, times=4)
    for paths in (real, ours):
        paths[:40, 0] = np.nan  # they begin late
        paths[80:, 3] = np.nan  # they end early
    found = {row.name: row for row in metrics.path_scores(ours, real, bounds=BOUNDS)}
    assert {"length_ratio", "autocorrelation_error", "dwell_jsd"} <= set(found)
    assert not {"path_w2", "trip_jsd"} & set(found)
    for row in found.values():
        assert np.isfinite([row.value, row.floor, row.ceiling]).all()
    assert found["autocorrelation_error"].ceiling > 2 * found["autocorrelation_error"].floor
    mixed = metrics.randomly_coupled(real)
    np.testing.assert_array_equal(np.isnan(mixed), np.isnan(real))


def test_paths_of_one_time_have_no_steps_and_times_are_passed_on():
    one = crowd(40, 0, times=1)
    names = {row.name for row in metrics.path_scores(one, one, fresh=one)}
    assert "trip_jsd" in names
    assert not {"length_ratio", "dwell_jsd"} & names
    three, slow = crowd(40, 0), np.array([0.0, 1.0, 10.0])
    rows = metrics.path_scores(three, crowd(40, 1), fresh=crowd(40, 2), times=slow)
    ratio = {row.name: row.value for row in rows}["speed_ratio"]
    assert ratio == pytest.approx(metrics.speed_ratio(three, crowd(40, 1), times=slow))
    with pytest.raises(InputError, match="one time per reading"):
        metrics.path_scores(three, three, times=[0, 1])


# A new score -----------------------------------------------------------------------------------


TOY = """
import numpy as np

from privtraj.metrics.registry import cloud_metric, pair


@cloud_metric("mean_shift", "shift of the mean", better="lower")
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
    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))
    yield
    sys.modules.pop("privtraj.metrics.toy", None)


def uniform(n):
    return [np.random.default_rng(k).random((n, 2)) for k in range(2)]


def test_one_file_adds_a_line_to_the_table(toy):
    real, synthetic = uniform(40), [cloud + 0.1 for cloud in uniform(40)]
    names = [row.name for row in metrics.cloud_scores(synthetic, real, fresh=real)]
    assert names == ["w2", "density_jsd", "mean_shift"]  # by module and line
    rows = {row.name: row for row in metrics.cloud_scores(synthetic, real, fresh=real)}
    row = rows["mean_shift"]
    assert row.value == pytest.approx(np.hypot(0.1, 0.1))
    assert row.floor == pytest.approx(0)
    assert (row.label, row.better, len(row.per_time)) == ("shift of the mean", "lower", 2)


def test_without_the_file_the_line_is_not_there():
    assert "mean_shift" not in {metric.name for metric in all_metrics(paths=False)}


def test_a_score_gets_the_options_that_it_has():
    entry = {metric.name: metric for metric in all_metrics(paths=False)}
    given = entry["density_jsd"].with_options(bounds=None, seed=3)
    assert given.keywords == {"bounds": None}
    assert entry["w2"].with_options(bounds=None, seed=3).keywords == {}
