"""The experiment on counts and gradients, on few people."""

import pytest
from script_runs import imported

pytestmark = pytest.mark.thorough


def test_both_measurements_fit_the_same_people(monkeypatch, capsys):
    with imported("experiments", "measures", "common", "families", "populations") as script:
        monkeypatch.setattr(script, "PEOPLE", (300,))
        monkeypatch.setattr(script, "FRESH", 700)
        found = script.both("known", 2, 0)
        assert found["family"] == "mixture"
        assert 0 < found["counts"] != found["gradients"] > 0
        script.table([found, {**found, "gradients": 4 * found["counts"]}], "people")
        ratio = (found["gradients"] / found["counts"] * 4) ** 0.5
        assert f"{ratio:.2f}" in capsys.readouterr().out
