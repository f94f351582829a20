"""The experiment on how smooth the estimate is: its scores, and its quick run."""

import json

import numpy as np
import pytest
from script_runs import imported, run

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def script():
    with imported("experiments", "smoothness", "common", "populations") as module:
        yield module


def test_people_who_are_even_in_cells_jump_at_the_borders(script):
    rng = np.random.default_rng(0)
    truth = rng.normal(0.5, 0.1, (40_000, 2))
    blocky = (np.floor(truth * 16) + rng.random(truth.shape)) / 16
    smooth = script.smoothness(truth[:20_000], truth[20_000:], 16)
    rough = script.smoothness(blocky[:20_000], truth[20_000:], 16)
    assert smooth[0] == pytest.approx(1, abs=0.15)
    assert rough[0] > 1.3
    assert smooth[1] < 0.01 < rough[1]


def test_islands_and_gaps_are_found(script):
    rng = np.random.default_rng(0)
    truth = rng.normal(0.4, 0.05, (20_000, 2))
    ours = truth[:10_000].copy()
    assert script.smoothness(ours, truth[10_000:], 16)[2:] == (0, pytest.approx(0, abs=0.002))
    ours[:200] = rng.uniform(0.9, 0.92, (200, 2))
    ours[ours[:, 0] < 0.4] = 0.45
    _, _, islands, gaps = script.smoothness(ours, truth[10_000:], 16)
    assert islands == 1
    assert 0.2 < gaps < 0.6


def test_the_quick_run_is_smooth(tmp_path):
    """People who are even in cells have jumps of 2.08 and an error of .56 in the same fit."""
    printed = run("experiments/smoothness.py", "--quick", "--json", str(tmp_path / "out.json"))
    assert "| three modes | 1 | 300 | 2 |" in printed
    ((found,),) = json.loads((tmp_path / "out.json").read_text()).values()
    assert found["jumps"] < 1.5
    assert found["error"] < 0.4
    assert found["squared_w2"] < 0.0015
