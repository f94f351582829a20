"""The experiment on estimates of quality."""

import numpy as np
import pytest
from script_runs import imported, run_alone

pytestmark = pytest.mark.thorough


def test_every_family_is_in_the_box():
    with imported("experiments", "families", "common") as script:
        for families in script.FAMILIES.values():
            for name, family in families.items():
                d = 2 if name in script.IN_THE_PLANE else 3
                points = family(1000, d)(np.linspace(0, 1, 200), np.random.default_rng(0))
                assert points.shape == (200, d)
                assert points.min() >= 0
                assert points.max() <= 1


def test_what_is_said_is_held_against_the_truth():
    with imported("experiments", "quality", "common") as script:
        rows = [
            {"seed": 1, "epsilon": 1.0, "true": true, "plan": said, "plan_low": said / 3,
             "plan_high": 3 * said}
            for true, said in ((100, 110), (100, 350), (50, 40), (10, 9))
        ]  # fmt: skip
        found, lines = script.summary(rows, "plan"), list(script.table(rows))
    assert found["off by more than 3"] == 0.25
    assert found["inside the 90 % interval"] == 0.75
    assert len(lines) == 4
    assert "unseen" in lines[2]


def test_the_script_explains_itself():
    assert "--seeds" in run_alone("experiments/quality.py", "--help")
