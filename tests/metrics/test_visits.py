"""Places as cells: stays, visits, and how many places a person sees."""

import numpy as np
import pytest

from privtraj import metrics

A, B, C = 0.1, 0.5, 0.9  # in three of four cells: 0, 2 and 3


def walks(*rows):
    return np.array(rows, dtype=float)[..., None]


def test_a_stay_is_as_long_as_its_readings_stand_for():
    found = metrics.stays(walks([A, A, B, A], [C, C, C, C]), cells=4)
    np.testing.assert_allclose(found, [1.5, 1.0, 0.5, 3.0])  # half a gap before and after each
    times = [0.0, 1.0, 5.0, 6.0]
    found = metrics.stays(walks([A, A, B, A]), cells=4, times=times)
    np.testing.assert_allclose(found, [3.0, 2.5, 0.5])
    assert found.sum() == 6.0


def test_an_absence_ends_a_stay_and_is_none():
    found = metrics.stays(walks([A, np.nan, A, A], [np.nan] * 4), cells=4)
    np.testing.assert_allclose(found, [0.5, 1.5])


def test_dwell_tells_those_who_stay_from_those_who_go():
    stay, go = walks([A] * 4, [B] * 4), walks([A, B, A, B], [B, A, B, A])
    assert metrics.dwell_jsd(stay, stay[:1], cells=4) == 0.0
    assert metrics.dwell_jsd(stay, go, cells=4) == pytest.approx(np.log(2))
    assert metrics.dwell_jsd(stay, go, cells=4, times=[0, 1, 2, 7]) > 0
    assert metrics.density_jsd(stay, go, cells=4) == 0.0  # the places are the same


def test_visitors_count_once_per_cell():
    ours, real = walks([A, A, A, B]), walks([A, B, B, B])
    assert metrics.visits_jsd(ours, real, cells=4) == 0.0
    only = walks([A, A, A, A])
    expected = metrics.jensen_shannon([1, 0], [1, 1])
    assert metrics.visits_jsd(only, real, cells=4) == pytest.approx(expected)
    away = walks([A, np.nan, np.nan, np.nan])
    assert metrics.visits_jsd(away, real, cells=4) == pytest.approx(expected)


def test_the_number_of_cells_of_a_person():
    ours, real = walks([A, B, C, A], [A, A, A, A]), walks([C, B, A, A], [B, B, B, np.nan])
    assert metrics.range_jsd(ours, real, cells=4) == 0.0
    assert metrics.range_jsd(ours[:1], ours[1:], cells=4) == pytest.approx(np.log(2))


def test_bounds_make_the_grid():
    paths = np.random.default_rng(0).random((40, 5, 2))
    wide = [(-2.0, 2.0)] * 2
    inside = 4 * paths - 2
    for score in (metrics.dwell_jsd, metrics.visits_jsd, metrics.range_jsd):
        assert score(inside[:20], inside[20:], bounds=wide) == score(paths[:20], paths[20:])
