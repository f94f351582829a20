"""The experiment on growing populations: its scores, and its quick run."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def growth():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "experiments")
        import growth

        yield growth
        for name in ("growth", "common"):
            sys.modules.pop(name, None)


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
    done = subprocess.run(
        [sys.executable, "experiments/growth.py", "--quick"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    for line in ("nobody comes or goes", "released, by place", "error of masses"):
        assert line in done.stdout
