"""The coupling experiment: its data, each of its tables, and what it concludes from numbers."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def coupling():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "experiments")
        patch.setattr(sys, "path", sys.path[:])
        import coupling

        yield coupling
        for name in ("coupling", "common", "populations"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def tiny(coupling):
    return coupling.Sizes(
        seeds=1,
        pooled_people=60,
        pooled_times=4,
        scored=2,
        released=60,
        population=800,
        people=100,
        modes_people=100,
        times=4,
        truth=80,
        left_out=(2,),
    )


def test_the_population_is_weighted_points_where_people_are(coupling, tiny):
    found = coupling.population("three modes", tiny)
    assert len(found) == tiny.scored
    for points, weights in found:
        assert points.shape == (len(weights), 2)
        assert weights.min() > 0
        assert weights.sum() == pytest.approx(1)
    # the three modes start from one place
    assert np.average(found[0][0], axis=0, weights=found[0][1]) == pytest.approx(
        [1 / 6, 0.5], abs=0.01
    )


def test_the_paths_to_compare_with_have_the_modes_of_the_true_ones(coupling):
    true = coupling.true_paths("three modes", 300, 5, 0)
    smooth = coupling.smooth_modes(300, 5, 1)
    assert smooth.shape == true.shape == (300, 5, 2)
    for mode in range(3):
        gap = true[mode::3].mean(axis=0) - smooth[mode::3].mean(axis=0)
        assert np.abs(gap).max() < 0.01
    offsets = smooth[::3] - smooth[::3].mean(axis=0)
    assert np.allclose(offsets, offsets[:, :1])


def test_exact_coupling_follows_people_who_move_together(coupling):
    start = np.random.default_rng(0).uniform(0, 0.4, (20, 2))
    clouds = np.stack([np.roll(start + 0.1 * t, t, axis=0) for t in range(4)])
    steps = np.diff(coupling.exactly_coupled(clouds, 0), axis=1)
    assert np.allclose(steps, 0.1)


def test_pooling_is_scored_with_and_without_coupling(coupling, tiny):
    truth = coupling.population("bifurcation", tiny)
    rows = coupling.pooling("bifurcation", truth, 0, tiny)
    assert [row["row"] for row in rows] == ["without", "with"]
    assert all(0 < row["squared_w2"] < 0.5 for row in rows)


def test_paths_are_scored_between_floor_and_ceiling(coupling, tiny):
    rows = {row["row"]: row for row in coupling.paths("three modes", 0, tiny)}
    assert rows["floor"]["over_floor"] == 1
    assert rows["released, best coupling"]["w2"] <= rows["entropic"]["w2"]
    assert rows["perfect modes, smooth noise"]["w2"] < rows["ceiling"]["w2"]
    assert "Times the floor" in coupling.paths_table(list(rows.values()))


def test_a_time_is_left_out_and_predicted(coupling, tiny):
    rows = {row["row"]: row for row in coupling.held_out("three modes", 0, tiny)}
    assert set(rows) >= {"bridge", "linear", "spline", "previous", "next", "midpoint"}
    assert rows["midpoint"]["over_midpoint"] == 1
    assert rows["bridge"]["time"] == pytest.approx(2 / 3)


def test_strokes_are_seen_once_each(coupling, tmp_path):
    drawn = np.random.default_rng(0).uniform(size=(40, 10, 2)).astype(np.float32)
    np.savez(tmp_path / "strokes.npz", d3_T10=drawn)
    assert coupling.stroke_clouds(str(tmp_path / "strokes.npz"), 3, 0).shape == (10, 4, 2)


def test_the_verdict_follows_from_the_numbers(coupling):
    def rows(better):
        pair = (("without", 0.01), ("with", 0.01 * (1 - better)))
        return [
            {"data": "modes", "row": row, "seed": seed, "squared_w2": value}
            for row, value in pair
            for seed in range(2)
        ]

    assert "30.0% better (target 20%: met)" in coupling.pooling_table(rows(0.3))
    assert "10.0% better (target 20%: missed)" in coupling.pooling_table(rows(0.1))


def test_the_quick_run_prints_three_tables(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "experiments/coupling.py",
            "--quick",
            "--json",
            str(tmp_path / "all.json"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    for line in ("On average coupling is", "Times the floor", "Times the midpoint"):
        assert line in done.stdout
    assert (tmp_path / "all.json").exists()
