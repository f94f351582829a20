"""The comparison with others: what paths through couplings are, and that the quick run prints."""

import numpy as np
import pytest
from script_runs import imported, run

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def peers():
    with imported("experiments", "peers", "coupling", "common", "seen") as module:
        yield module


def test_paths_follow_the_coupling_and_are_straight_in_between(peers):
    clouds = [np.array([[0.0], [1.0]]), np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]])]
    swap = np.array([[0.0, 0.5], [0.5, 0.0]])
    through = peers.Coupled(clouds, np.array([0.0, 0.5, 1.0]), [swap, swap], np.zeros(2))
    drawn = through(10, np.array([0.0, 0.25, 0.5, 1.0]), np.random.default_rng(0))
    assert drawn.shape == (10, 4, 1)
    assert np.ptp(drawn, axis=1).max() == 0  # whoever starts at 0 stays there
    assert sorted(drawn[:, 0, 0]) == [0.0] * 5 + [1.0] * 5


def test_a_bridge_has_its_variance_in_the_middle(peers):
    still = np.zeros((1, 1)), np.ones((1, 1))
    bridge = peers.Coupled([still[0]] * 2, np.array([0.0, 1.0]), [still[1]], np.array([4.0]))
    drawn = bridge(20_000, np.array([0.0, 0.5, 1.0]), np.random.default_rng(0))[:, :, 0]
    assert not drawn[:, [0, 2]].any()
    assert drawn[:, 1].var() == pytest.approx(1.0, abs=0.05)  # five standard errors


def test_exact_transport_predicts_the_midpoint_of_the_neighbours(peers):
    rng = np.random.default_rng(0)
    clouds = [rng.uniform(size=(30, 2)) + shift for shift in (0.0, 0.1, 0.2)]
    rows = peers.held_out("exact", peers.exact_transport, "shifted", clouds, 0, 1)
    assert [row["over_midpoint"] for row in rows] == pytest.approx([1.0], abs=1e-6)


def test_the_quick_run_compares_paths_and_a_time_left_out(tmp_path):
    printed = run("experiments/peers.py", "--quick", "--json", str(tmp_path / "all.json"))
    for line in ("1. Paths over 5 times", "2. A time left out", "privtraj, epsilon 1"):
        assert line in printed
    assert (tmp_path / "all.json").exists()
