"""The mobility field's scores, by hand where it can be done and by brute force elsewhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj import metrics
from privtraj.base.errors import InputError
from privtraj.metrics import mobility
from privtraj.metrics.mobility import grid_cells, usual_cells

LN2 = np.log(2)
OF_POINTS = [
    metrics.range_query_error,
    metrics.density_jsd,
    metrics.hotspot_ndcg,
    metrics.kendall_tau,
]
OF_PATHS = [metrics.trip_jsd, metrics.length_jsd, metrics.diameter_jsd, metrics.pattern_f1]


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
    assert [usual_cells(d) for d in (1, 2, 3, 4, 12)] == [36, 6, 3, 2, 2]
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


@pytest.mark.parametrize("score", [*OF_POINTS, *OF_PATHS])
def test_the_order_of_people_and_the_units_of_the_box_do_not_matter(score):
    x, y = walks(40, 0), walks(30, 1)
    plain = score(x, y)
    assert score(x[::-1], np.roll(y, 3, axis=0)) == pytest.approx(plain)
    bounds = np.array([[-5.0, 5.0], [100.0, 300.0]])
    low, high = bounds.T
    scaled = [low + (high - low) * paths for paths in (x, y)]
    assert score(*scaled, bounds=bounds) == pytest.approx(plain, abs=1e-9)


@pytest.mark.parametrize("score", [*OF_POINTS, *OF_PATHS])
def test_equal_people_score_best(score):
    x = walks(60, 0)
    same, other = score(x, x), score(walks(60, 1) ** 4, x)
    if score in (metrics.hotspot_ndcg, metrics.pattern_f1):
        assert same == pytest.approx(1)
        assert 0 <= other < 1
    elif score is metrics.kendall_tau:
        assert 0.8 < same <= 1
        assert other < same
    else:
        assert same == pytest.approx(0, abs=1e-12)
        assert other > 0


@pytest.mark.parametrize("score", OF_POINTS[:3])
def test_paths_are_pooled_points(score):
    x, y = walks(40, 0), walks(30, 1)
    assert score(x, y) == pytest.approx(score(x.reshape(-1, 2), y.reshape(-1, 2)))


# Points ---------------------------------------------------------------------------------------


def test_query_error_by_brute_force(monkeypatch):
    x, y = walks(50, 0)[:, 0], walks(70, 1)[:, 0] ** 3
    centres, half = np.random.default_rng(4).random((30, 2)), np.sqrt(1 / 9) / 2
    errors = []
    for centre in centres:
        q, p = (np.mean([max(abs(point - centre)) <= half for point in side]) for side in (x, y))
        errors.append(abs(p - q) / max(p, 0.01))
    found = metrics.range_query_error(x, y, queries=30, seed=4)
    assert found == pytest.approx(np.mean(errors))
    monkeypatch.setattr(mobility, "ENTRIES", 500)
    assert metrics.range_query_error(x, y, queries=30, seed=4) == pytest.approx(found)


def test_the_sanity_bound_keeps_empty_boxes_finite():
    assert metrics.range_query_error(at(0, 0, 0, 9), at(9, 0, 0, 0)) <= 100


def test_density_by_hand():
    assert metrics.density_jsd(at(2, 0, 0, 0), at(1, 1, 0, 0), cells=4) == pytest.approx(
        metrics.jensen_shannon([2, 0], [1, 1])
    )


def test_ndcg_by_hand():
    real, swapped = at(5, 3, 1, 0), at(3, 5, 1, 0)
    discount = 1 / np.log2([2, 3, 4])
    expected = discount @ [1 / 2, 1, 1 / 3] / (discount @ [1, 1 / 2, 1 / 3])
    assert metrics.hotspot_ndcg(swapped, real, cells=4) == pytest.approx(expected)
    assert metrics.hotspot_ndcg(at(0, 0, 0, 4), real, cells=4) == 0
    assert metrics.hotspot_ndcg(swapped, real, cells=4, k=1) == 0


def test_tau_by_hand_and_ties_are_neither():
    real = at(4, 3, 2, 1)
    assert metrics.kendall_tau(real, real, cells=4) == 1
    assert metrics.kendall_tau(at(1, 2, 3, 4), real, cells=4) == -1
    assert metrics.kendall_tau(at(5, 0, 0, 0), at(5, 0, 0, 0), cells=4) == pytest.approx(3 / 6)


@settings(max_examples=20)
@given(st.permutations(range(1, 10)), st.permutations(range(1, 10)))
def test_tau_is_scipys_where_nothing_ties(p, q):
    from scipy.stats import kendalltau

    centres = (np.arange(9) + 0.5) / 9
    x, y = (np.repeat(centres, counts)[:, None] for counts in (p, q))
    assert metrics.kendall_tau(x, y, cells=9) == pytest.approx(kendalltau(p, q).statistic)


def test_tau_counts_people_not_their_points():
    stays = np.full((1, 50, 1), 0.1)
    passing = np.array([[[0.9]] * 50, [[0.9]] * 50])
    real = np.concatenate([stays, passing])
    assert metrics.kendall_tau(real, np.concatenate([passing, stays]), cells=2) == 1
    assert metrics.kendall_tau(np.repeat(stays, 3, axis=0), real, cells=2) == -1


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


def test_lengths_and_diameters_are_told_apart():
    zigzag = np.array([[[0.0], [0.5], [0.0], [0.5]]])
    straight = np.array([[[0.0], [0.2], [0.4], [0.5]]])
    assert metrics.diameter_jsd(zigzag, straight) == pytest.approx(0)
    assert metrics.length_jsd(zigzag, straight) == pytest.approx(LN2)
    assert metrics.length_jsd(zigzag, straight, edges=[0, 2, 4]) == pytest.approx(0)
    assert metrics.diameter_jsd(zigzag, straight / 2, edges=[0, 0.4, 1]) == pytest.approx(LN2)


def test_diameters_by_brute_force(monkeypatch):
    x = walks(7, 0)
    expected = [max(np.linalg.norm(a - b) for a in path for b in path) for path in x]
    np.testing.assert_allclose(mobility._diameters(x), expected)
    monkeypatch.setattr(mobility, "ENTRIES", 60)
    np.testing.assert_allclose(mobility._diameters(x), expected)


def test_patterns_by_hand():
    def walk(*cells):
        return (np.array(cells) + 0.5)[None, :, None] / 4

    real = np.concatenate([walk(0, 0, 1, 2), walk(0, 1, 1, 1)])  # 01 twice, 12 and 012 once
    assert mobility._top_patterns(grid_cells(real, None, 4)[0], 9, 8) == {(0, 1), (1, 2), (0, 1, 2)}
    assert mobility._top_patterns(grid_cells(real, None, 4)[0], 1, 8) == {(0, 1)}
    one = metrics.pattern_f1(walk(0, 0, 0, 1), real, cells=4)
    assert one == pytest.approx(2 * 1 / (1 + 3))
    assert metrics.pattern_f1(walk(3, 2, 1, 0), real, cells=4) == 0
    still = walk(2, 2, 2, 2)
    assert metrics.pattern_f1(still, still, cells=4) == 1
    assert metrics.pattern_f1(still, real, cells=4) == 0
