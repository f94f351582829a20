"""Scores of places, by hand where it can be done and by brute force elsewhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj import metrics
from privtraj.base.errors import InputError
from privtraj.metrics.movement import grid_cells

LN2 = np.log(2)


def walks(n, seed, d=2, times=5):
    return np.random.default_rng(seed).random((n, times, d))


def at(*counts):
    """People on a line of four cells, so many in each."""
    return np.repeat((np.arange(4) + 0.5) / 4, counts)[:, None]


# Cells and divergence -------------------------------------------------------------------------


def test_cells_are_equal_parts_of_the_box_and_walls_belong_inside():
    place, total = grid_cells(np.array([[0.0, 0.0], [0.99, 0.0], [0.0, 0.99], [1.0, 1.0]]), None, 2)
    assert (place.tolist(), total) == ([0, 1, 2, 3], 4)
    wide, _ = grid_cells(np.array([[-9.0], [10.0], [19.0], [99.0]]), [(0, 20)], 4)
    assert wide.tolist() == [0, 2, 3, 3]


def test_the_usual_grid_has_about_36_cells():
    totals = [grid_cells(np.zeros((1, d)), None, None)[1] for d in (1, 2, 3, 4, 12)]
    assert totals == [36, 36, 27, 16, 4096]
    with pytest.raises(InputError):
        grid_cells(np.zeros((3, 13)), None, None)
    with pytest.raises(InputError):
        grid_cells(np.zeros((3, 2)), None, 65)


def test_divergence_by_hand():
    assert metrics.jensen_shannon([3, 0], [0, 5]) == pytest.approx(LN2)
    assert metrics.jensen_shannon([1, 2], [10, 20]) == pytest.approx(0)
    expected = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25)) - LN2 / 2
    assert metrics.jensen_shannon([1, 0], [1, 1]) == pytest.approx(expected)


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=6).filter(any),
    st.integers(0, 99),
)
def test_divergence_is_symmetric_and_bounded_and_scipys(p, seed):
    from scipy.spatial.distance import jensenshannon

    q = np.random.default_rng(seed).integers(1, 9, len(p))
    value = metrics.jensen_shannon(p, q)
    assert 0 <= value <= LN2
    assert value == pytest.approx(metrics.jensen_shannon(q, p))
    assert value == pytest.approx(jensenshannon(p, q) ** 2, abs=1e-9)


@pytest.mark.parametrize(("p", "q"), [([1], [1, 2]), ([0, 0], [1, 2]), ([[1]], [[1]])])
def test_histograms_that_cannot_be_compared_are_refused(p, q):
    with pytest.raises(InputError):
        metrics.jensen_shannon(p, q)


# All of them ----------------------------------------------------------------------------------

SCORES = {
    metrics.density_jsd: 2,
    metrics.trip_jsd: 3,
    metrics.dwell_jsd: 3,
}


@pytest.mark.parametrize(("score", "axes"), SCORES.items())
def test_order_and_units_do_not_matter_and_equal_people_score_best(score, axes):
    x, y = (side if axes == 3 else side[:, 0] for side in (walks(40, 0), walks(30, 1) ** 2))
    plain = score(x, y)
    assert score(x[::-1], np.roll(y, 3, axis=0)) == pytest.approx(plain)
    bounds = np.array([[-5.0, 5.0], [100.0, 300.0]])
    low, high = bounds.T
    scaled = [low + (high - low) * points for points in (x, y)]
    assert score(*scaled, bounds=bounds) == pytest.approx(plain, abs=1e-9)
    assert plain > 0
    assert score(x, x) == pytest.approx(0, abs=1e-12)


# Points ---------------------------------------------------------------------------------------


def test_density_by_hand():
    assert metrics.density_jsd(at(2, 0, 0, 0), at(1, 1, 0, 0), cells=4) == pytest.approx(
        metrics.jensen_shannon([2, 0], [1, 1])
    )


# Paths ----------------------------------------------------------------------------------------


def test_trips_see_both_ends_together_and_nothing_else():
    there = np.array([[[0.1], [0.5], [0.9]]])
    detour = np.array([[[0.1], [0.2], [0.9]]])
    back = there[:, ::-1]
    assert metrics.trip_jsd(detour, there) == pytest.approx(0)
    assert metrics.trip_jsd(back, there) == pytest.approx(LN2)
    crossing = np.array([[[0.1], [0.1]], [[0.9], [0.9]]])
    swapped = np.array([[[0.1], [0.9]], [[0.9], [0.1]]])  # the same starts, the same ends
    assert metrics.trip_jsd(swapped, crossing) == pytest.approx(LN2)


# Stays ------------------------------------------------------------------------------


A, B, C = 0.1, 0.5, 0.9  # in three of four cells: 0, 2 and 3


def seen_at(*rows):
    return np.array(rows, dtype=float)[..., None]


def test_a_stay_is_as_long_as_its_readings_stand_for():
    found = metrics.stays(seen_at([A, A, B, A], [C, C, C, C]), cells=4)
    np.testing.assert_allclose(found, [1.5, 1.0, 0.5, 3.0])  # half a gap before and after each
    times = [0.0, 1.0, 5.0, 6.0]
    found = metrics.stays(seen_at([A, A, B, A]), cells=4, times=times)
    np.testing.assert_allclose(found, [3.0, 2.5, 0.5])
    assert found.sum() == 6.0


def test_an_absence_ends_a_stay_and_is_none():
    found = metrics.stays(seen_at([A, np.nan, A, A], [np.nan] * 4), cells=4)
    np.testing.assert_allclose(found, [0.5, 1.5])


def test_dwell_tells_those_who_stay_from_those_who_go():
    stay, go = seen_at([A] * 4, [B] * 4), seen_at([A, B, A, B], [B, A, B, A])
    assert metrics.dwell_jsd(stay, stay[:1], cells=4) == 0.0
    assert metrics.dwell_jsd(stay, go, cells=4) == pytest.approx(np.log(2))
    assert metrics.dwell_jsd(stay, go, cells=4, times=[0, 1, 2, 7]) > 0
    assert metrics.density_jsd(stay.reshape(-1, 1), go.reshape(-1, 1), cells=4) == 0.0
