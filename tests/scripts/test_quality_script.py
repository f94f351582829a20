"""The experiment on estimates of quality, on one case."""

import numpy as np
import pytest
from script_runs import imported, run_alone

pytestmark = pytest.mark.thorough


def test_every_family_is_in_the_box():
    with imported("experiments", "quality", "common") as script:
        for which, families in script.FAMILIES.items():
            for number in range(len(families)):
                one = script.case(number, which, None)
                points = one.draw(np.linspace(0, 1, 200), np.random.default_rng(0))
                assert points.shape == (200, one.features)
                assert points.min() >= 0
                assert points.max() <= 1


def test_what_is_said_is_held_against_the_truth():
    with imported("experiments", "quality", "common") as script:
        rows = [
            {
                "true": true,
                **{who: [said, said / 3, 3 * said] for who in script.SAYS},
                "medians_inside": 0.9,
            }
            for true, said in ((100, 110), (100, 350), (50, 40), (10, 9))
        ]
        found = script.summary(rows)["plan"]
    assert found["within a factor of two"] == 0.75
    assert found["inside the 90 % interval"] == 0.75


def test_the_script_explains_itself():
    assert "--families" in run_alone("experiments/quality.py", "--help")
