"""The experiment on growing populations: its scores, and its quick run."""

import numpy as np
import pytest
from script_runs import imported, run

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def growth():
    with imported("experiments", "growth", "common") as module:
        yield module


def test_the_verdict_follows_from_the_numbers(growth):
    def rows(error):
        scores = {"at most": 0.1, "numbers": 0.1, "its noise": 0.1, "crossing": 0.1, "W2": 0.1}
        ways = [{"row": way, "seed": 0, "masses": error, **scores} for way in growth.WAYS]
        ways[0]["masses"] = 0.5  # nobody comes or goes: what it is compared with
        return ways

    said = growth.table(rows(0.01))
    assert "mean over times, worst seed: 0.010 (target .02: met)" in said
    assert "at the worst time, worst seed: 0.100 (target .02: missed)" in said
    assert "worst seed: 0.030 (target .02: missed)" in growth.table(rows(0.03))


def test_the_quick_run_prints_every_way():
    printed = run("experiments/growth.py", "--quick")
    for line in ("nobody comes or goes", "released, by place", "error of masses", "0.3 apart"):
        assert line in printed


def test_unbalanced_transport_of_cells_knows_who_crossed(growth):
    rng = np.random.default_rng(0)
    here, there = ((0.5, y) + 0.02 * rng.standard_normal((50, 2)) for y in (0.2, 0.8))
    few, many = np.concatenate([here, there[:10]]), np.concatenate([here, there])
    assert growth.from_over_there([few, many]) < 1e-3
    assert growth.from_over_there([here, here + np.array([0.0, 0.45])]) > 0.999
