"""The scripts behind the published figures still run, on the smallest input that exercises them."""

import json

import numpy as np
import pytest
from script_runs import run

pytestmark = pytest.mark.thorough


@pytest.fixture
def strokes(tmp_path):
    """A file of simulated strokes of the digits 1 and 7."""
    rng = np.random.default_rng(0)
    paths = np.cumsum(rng.uniform(0, 0.1, size=(400, 10, 2)), axis=1).astype(np.float32)
    np.savez(tmp_path / "strokes.npz", d1_T10=paths, d7_T10=1 - paths)
    return str(tmp_path / "strokes.npz")


def test_the_strokes_experiment_scores_every_digit_it_is_given(strokes, tmp_path):
    output = run(
        *("experiments/strokes.py", strokes, "--seeds", "1"),
        *("--digits", "1", "7", "--rows", "auto (1, 1e-5)", "--json", str(tmp_path / "out.json")),
    )
    assert "50 real people" in output
    assert (tmp_path / "out.json").exists()


def test_the_benchmark_prints_ratios_and_writes_them(tmp_path):
    assert "ratio" in run("benchmarks/speed.py", "--quick", "--json", str(tmp_path / "speed.json"))
    rows = json.loads((tmp_path / "speed.json").read_text())
    assert any(row["what"].startswith("private step") and row["ratio"] > 0 for row in rows)


def test_the_benchmark_of_scale_can_be_drawn(tmp_path):
    found, picture = tmp_path / "cpu.json", tmp_path / "scaling.png"
    run("benchmarks/scale.py", "--quick", "--json", str(found))
    run("benchmarks/scale_plot.py", str(picture), str(found))
    assert picture.stat().st_size > 10_000


def test_the_records_experiment_compares_the_exact_with_the_generic_bound():
    assert "| 20 full steps | 2 | 12.6 | 8.92 | 1.41 | 3" in run(
        "experiments/records.py", "--quick"
    )


def test_the_experiment_on_the_audit_counts_what_was_caught():
    printed = run("experiments/audit_power.py", "--quick", "--break", "exact head count")
    assert "| exact head count | 20 | 2 of 2 | at least" in printed


def test_the_picture_of_paths_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    run("experiments/paths_picture.py", "--out", str(tmp_path / "paths.png"), "--people", "4")
    assert (tmp_path / "paths.png").stat().st_size > 10_000


def test_a_day_in_a_city_is_measured(tmp_path):
    output = run("benchmarks/mobility.py", "--quick", "--only", "cycle", "other")
    assert "| cycle |" in output
    assert "OD day" in output
