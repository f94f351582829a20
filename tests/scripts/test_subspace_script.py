"""The experiment on subspaces, on few people."""

import pytest
from script_runs import imported, run_alone

pytestmark = pytest.mark.thorough


def test_a_fit_is_scored_in_all_features_and_in_the_plane():
    with imported("experiments", "subspace", "common") as script:
        found = script.scores("modes", 100, 2, 4.0, "auto", 0)
        assert found["all"] == pytest.approx(found["plane"])  # two features are the plane
        assert 0 < found["real"] < 0.01
        assert script.outside(50) == pytest.approx(48 * 0.005 / 9)
        assert script.plane_of("modes", 6).shape == (6, 2)


def test_what_looking_costs_is_measured_beside_a_fit_without(monkeypatch, capsys):
    with imported("experiments", "subspace", "common", "populations") as script:
        monkeypatch.setattr(script, "COST_DATA", ("groups",))
        monkeypatch.setattr(script, "COST_FEATURES", (8,))
        monkeypatch.setattr(script, "COST_PEOPLE", (40,))
        monkeypatch.setattr(
            script, "in_parallel", lambda function, jobs: [function(*j) for j in jobs]
        )
        (ratios,) = script.costs(1).values()
        assert 0.1 < ratios[0] < 10
        assert ratios[0] != 1  # looking has a price
        assert capsys.readouterr().out.startswith("8 features, 40 people: ")


def test_the_script_explains_itself():
    assert "--features" in run_alone("experiments/subspace.py", "--help")
