"""The coupling experiment: its data, each of its tables, and what it concludes from numbers."""

import numpy as np
import pytest
from script_runs import imported, run

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def coupling():
    with imported("experiments", "coupling", "common", "populations", "seen") as module:
        yield module


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
        times=4,
        truth=80,
        moving_people=400,
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


def test_the_same_people_are_seen_at_listed_times_and_at_any(coupling):
    times, points = coupling.seen_once("rotation", 50, 4, 3)
    at_any, elsewhere = coupling.seen_once("rotation", 50, 4, 3, anytime=True)
    assert np.unique(times) == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert len(np.unique(at_any)) > 20
    # turned back by the flow, both are where they started
    matrix, offset = coupling.turning()
    assert matrix @ [0.5, 0.5] + offset == pytest.approx([0, 0])
    turn = matrix[1, 0]

    def start(points, times):
        x, y = (points - 0.5).T
        c, s = np.cos(turn * times), np.sin(turn * times)
        return np.stack([c * x + s * y, c * y - s * x], axis=1)

    assert start(points, times) == pytest.approx(start(elsewhere, at_any), abs=1e-9)


def test_exact_coupling_follows_people_who_move_together(coupling):
    start = np.random.default_rng(0).uniform(0, 0.4, (20, 2))
    clouds = np.stack([np.roll(start + 0.1 * t, t, axis=0) for t in range(4)])
    steps = np.diff(coupling.exactly_coupled(clouds), axis=1)
    assert np.allclose(steps, 0.1)


def test_pooling_is_scored_with_and_without_coupling(coupling, tiny):
    truth = coupling.population("bifurcation", tiny)
    rows = coupling.pooling("bifurcation", truth, 0, tiny)
    assert [row["row"] for row in rows] == ["without", "with"]
    assert all(0 < row["squared_w2"] < 0.5 for row in rows)


def test_paths_are_scored_for_both_kinds_of_times_over_one_floor(coupling, tiny):
    rows = coupling.paths("rotation", 0, tiny)
    for when in coupling.WHEN:
        found = {row["row"]: row for row in rows if row["when"] == when}
        assert set(found) > {"default", "no drift", "entropic", "true drift", "real people, OT"}
        assert found["floor"]["over_floor"] == 1
        assert found["best coupling"]["w2"] <= found["default"]["w2"]
        assert found["best coupling"]["w2"] <= found["entropic"]["w2"]
    assert "Times the floor, target 1.1: rotation" in coupling.paths_table(rows)


@pytest.mark.parametrize("twice", [False, True])
def test_movement_is_read_at_every_number_of_times(coupling, tiny, twice):
    (row, *others) = coupling.movement("rotation", 0, tiny, twice)
    assert row["row"] == "default"
    assert len(others) == (0 if twice else 1)
    most = 30 if twice else 3  # few pairs of few people: they may be taken for quick to forget
    ratios = [row[f"{what} {k}"] for what in ("length", "speed") for k in coupling.READ]
    assert all(0.3 < ratio < most for ratio in ratios)
    assert 0 <= row["autocorrelation"] <= 2
    assert "Off by at most, target 15%: rotation" in coupling.movement_table([row, *others])


def test_children_are_compared_with_true_ones(coupling, tiny):
    rows = {row["row"]: row for row in coupling.growing(0, tiny, False)}
    assert rows["true children"]["falling"] == 0
    assert rows["true children"]["rank"] == pytest.approx(1)
    assert rows["monotone"]["falling"] == 0
    assert "Children who shrink" in coupling.growing_table(list(rows.values()))


def test_a_time_is_left_out_and_predicted(coupling, tiny):
    rows = {row["row"]: row for row in coupling.held_out("three modes", 0, tiny)}
    assert set(rows) == {"default", "default, at the neighbours", "previous", "next", "midpoint"}
    assert rows["midpoint"]["over_midpoint"] == rows["midpoint"]["w1_over_midpoint"] == 1
    assert rows["default"]["time"] == pytest.approx(2 / 3)
    assert all(row["w1"] <= row["w2"] for row in rows.values())


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


def test_the_quick_run_prints_four_tables(tmp_path):
    printed = run(
        "experiments/coupling.py",
        "--quick",
        "--json",
        str(tmp_path / "all.json"),
    )
    for line in (
        "On average coupling is",
        "Times the floor",
        "Off by at most",
        "Children who shrink",
        "Times the midpoint",
    ):
        assert line in printed
    assert (tmp_path / "all.json").exists()
