"""Lengths, speeds and turns, on paths whose answers are known."""

import numpy as np
import pytest

from privtraj import metrics
from privtraj.metrics.table import Score

BOUNDS = [(-1.5, 1.5)] * 2


def lines(n, times, seed=0):
    """Paths (n, T, 2) along straight lines, with the lengths (n,) of their velocities."""
    velocity = np.random.default_rng(seed).standard_normal((n, 2))
    return np.asarray(times)[None, :, None] * velocity[:, None], np.linalg.norm(velocity, axis=1)


def circle(times, angle):
    """One path (1, T, 2) on the unit circle, that turns by `angle` at each time."""
    at = angle * np.arange(times)
    return np.stack([np.cos(at), np.sin(at)], axis=1)[None]


def test_straight_lines_have_their_lengths_and_speeds_at_any_times():
    times = np.array([0.0, 0.5, 2.0, 3.0])
    paths, speed = lines(7, times)
    np.testing.assert_allclose(metrics.path_lengths(paths), 3 * speed)
    np.testing.assert_allclose(metrics.speeds(paths, times=times), np.repeat(speed, 3))
    np.testing.assert_allclose(metrics.turning_angles(paths), 0.0, atol=1e-7)


def test_a_circle_turns_by_its_angle_and_has_the_length_of_its_chords():
    paths = circle(9, np.pi / 6)
    np.testing.assert_allclose(metrics.turning_angles(paths), np.pi / 6)
    assert metrics.path_lengths(paths)[0] == pytest.approx(8 * 2 * np.sin(np.pi / 12))


def test_distances_are_in_shares_of_the_box_where_there_is_one():
    paths, speed = lines(5, [0.0, 0.1])
    np.testing.assert_allclose(metrics.path_lengths(paths, bounds=BOUNDS), speed / 10 / 3)
    wide = [(-15.0, 15.0), (-1.5, 1.5)]
    stretched = paths * np.array([10.0, 1.0])
    np.testing.assert_allclose(
        metrics.path_lengths(stretched, bounds=wide), metrics.path_lengths(paths, bounds=BOUNDS)
    )


def test_dates_count_in_seconds():
    days = np.array(["2024-01-01", "2024-01-02"], "datetime64[D]")
    assert metrics.speeds(np.array([[0.0, 86400.0]]), times=days) == pytest.approx([1.0])


def test_ratios_are_those_of_scaled_paths():
    paths = np.random.default_rng(0).standard_normal((50, 6, 2)).cumsum(axis=1)
    for ratio in (metrics.length_ratio, metrics.speed_ratio, metrics.fast_speed_ratio):
        assert ratio(paths, paths) == pytest.approx(1.0)
        assert ratio(3 * paths, paths) == pytest.approx(3.0)
        assert ratio(paths, 3 * paths) == pytest.approx(1 / 3)


def test_speed_quantiles_are_of_all_steps():
    real = np.stack([np.zeros(101), np.arange(101.0)], axis=1)  # 95 % of 101 steps: up to 95
    ours = real.copy()
    ours[95:, 1] *= 2
    assert metrics.speed_ratio(ours, real) == 1.0
    assert metrics.fast_speed_ratio(ours, real) == 2.0
    assert metrics.speed_ratio(ours, real, quantile=1.0) == 2.0
    assert metrics.speed_ratio(ours, real, quantile=0.94) == 1.0


def test_still_people_have_numbers():
    still, moving = np.ones((4, 3, 2)), lines(4, [0.0, 1.0, 2.0])[0]
    for ratio in (metrics.length_ratio, metrics.speed_ratio, metrics.fast_speed_ratio):
        assert ratio(still, still) == 1.0
        assert ratio(moving, still) == 1000.0
        assert ratio(still, moving) == 1 / 1000
    assert len(metrics.turning_angles(still)) == 0
    assert metrics.turning_w1(still, still) == 0.0
    assert metrics.turning_w1(still, moving) == metrics.turning_w1(moving, still) == 1.0
    pause = np.array([[[0.0, 0], [1, 0], [1, 0], [1, 1], [1, 2]]])  # no turn next to the pause
    np.testing.assert_allclose(metrics.turning_angles(pause), [0.0], atol=1e-12)


def test_turning_w1_is_the_difference_of_two_angles():
    value = metrics.turning_w1(circle(8, 0.5), circle(8, 0.2))
    assert value == pytest.approx(0.3 / np.pi)
    there = np.tile([0.0, 1.0], 4)[None, :, None]  # one feature: back at every step
    onward = np.arange(8.0)[None, :, None]
    assert metrics.turning_w1(there, onward) == pytest.approx(1.0)


def test_steps_from_and_to_an_absence_do_not_count():
    times = np.arange(6.0)
    paths, speed = lines(3, times)
    paths[1, 2] = np.nan
    paths[2, :5, 1] = np.nan  # absent in one feature is absent
    lengths = metrics.path_lengths(paths)
    np.testing.assert_allclose(lengths[:2], [5 * speed[0], 3 * speed[1]])
    assert np.isnan(lengths[2])
    np.testing.assert_allclose(metrics.speeds(paths), np.repeat(speed[:2], [5, 3]))
    assert len(metrics.turning_angles(paths)) == 4 + 1
    whole, _ = lines(2, times)
    assert metrics.length_ratio(paths, whole) == pytest.approx(
        (5 * speed[0] + 3 * speed[1]) / (5 * speed[0] + 5 * speed[1])
    )
    assert metrics.speed_ratio(np.full((2, 6, 2), np.nan), whole) == 1 / 1000


def test_the_gap_of_a_ratio_does_not_depend_on_its_side():
    high, low = (Score("r", "r", v, 1.0, 4.0, "1").gap for v in (2.0, 0.5))
    assert high == low == pytest.approx(0.5)


def test_on_the_globe_lengths_and_speeds_are_kilometres():
    ways = np.array([[[0.0, 0.0, 5.0], [1.0, 0.0, 9.0], [1.0, 1.0, 1.0]]])  # a degree each
    degree = 6371.0088 * np.pi / 180
    np.testing.assert_allclose(metrics.path_lengths(ways, globe=(0, 1)), [2 * degree])
    found = metrics.speeds(ways, times=[0.0, 1.0, 3.0], globe=(0, 1))
    np.testing.assert_allclose(found, [degree, degree / 2])
    north = ways + np.array([0.0, 60.0, 0.0])  # where meridians are half as far apart
    assert metrics.path_lengths(north, globe=(0, 1))[0] == pytest.approx(1.5 * degree, rel=1e-4)
    swapped = metrics.path_lengths(ways[:, :, [1, 0, 2]], globe=(1, 0))
    np.testing.assert_allclose(swapped, [2 * degree])
    gone = np.where(np.arange(3)[:, None] == 2, np.nan, ways)
    assert metrics.path_lengths(gone, globe=(0, 1))[0] == pytest.approx(degree)
