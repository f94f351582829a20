"""Copies are found and fresh people not accused; repeated records have known correlations."""

import numpy as np
import pytest

from privtraj import datasets, metrics
from privtraj.base.errors import InputError
from privtraj.metrics.records import Records, Repeated, compare_repeated


def people(n, seed, times=3):
    return list(np.random.default_rng(seed).random((times, n, 2)))


def test_distances_to_the_nearest_by_brute_force():
    x, y = people(8, 0)[0], people(9, 1)[0]
    expected = np.linalg.norm(x[:, None] - y[None], axis=2).min(axis=1)
    np.testing.assert_allclose(metrics.nearest_distances(x, y), expected)


def test_fresh_people_are_not_accused():
    found = metrics.memorisation(people(400, 0), people(300, 1), people(300, 2))
    assert found.ratio == pytest.approx(1, abs=0.12)
    assert found.share_close == pytest.approx(0.05, abs=0.03)
    assert found.share_expected == pytest.approx(0.05, abs=0.01)


def test_copies_are_found():
    training = people(300, 1)
    found = metrics.memorisation(training, training, people(300, 2))
    assert (found.ratio, found.share_close, found.median_synthetic) == (0, 1, 0)


def test_a_few_copies_show_in_the_share():
    training = people(300, 1)
    mixed = [
        np.concatenate([x[:60], y[:240]]) for x, y in zip(training, people(300, 0), strict=True)
    ]
    found = metrics.memorisation(mixed, training, people(300, 2))
    assert found.share_close > 0.2
    assert found.ratio > 0.7


def test_the_same_place_at_another_time_is_no_copy():
    times = [np.zeros((5, 2)), np.ones((5, 2))]
    found = metrics.memorisation(times[::-1], times, [t + 0.1 for t in times])
    assert found.share_close == 0
    assert found.ratio == pytest.approx(10)


def test_rounded_records_repeat_without_being_memorised():
    rounded = [[np.round(x, 1) for x in people(300, seed)] for seed in range(3)]
    found = metrics.memorisation(*rounded)
    assert np.isnan(found.ratio)  # most real people have a twin already
    assert found.close == 0
    assert found.share_close == pytest.approx(found.share_expected, abs=0.05)


def test_whole_paths():
    rng = np.random.default_rng(0)
    training, holdout = rng.random((2, 50, 4, 2))
    found = metrics.path_memorisation(training[::-1], training, holdout)
    assert found.share_close == 1
    assert found.median_synthetic == 0
    shifted = metrics.path_memorisation(training + np.array([0.003, 0.004]), training, holdout)
    assert shifted.median_synthetic == pytest.approx(0.005)


# Repeated records ------------------------------------------------------------------------------


AGES = np.linspace(0, 20, 201)
KEPT, TAU = 0.4, 3.0


def visits(n, seed, persistence=(KEPT, TAU)):
    """Ages (N,), heights and weights (N, 2), people (N,): one to four visits of n boys."""
    rng = np.random.default_rng(seed)
    paths = datasets.growth_paths(n, AGES, seed, persistence=persistence)
    people = np.repeat(np.arange(n), rng.integers(1, 5, n))
    at = rng.integers(0, len(AGES), len(people))
    return AGES[at], paths[people, at], people


def records(n, seed, persistence=(KEPT, TAU)):
    ages, values, people = visits(n, seed, persistence)
    values = values / [210.0, 140.0]
    bins = np.zeros(len(ages), dtype=np.int64)
    return Records(bins, ages, values, people, (), 1, 0)


def drawn(n, seed, readings, persistence=(KEPT, TAU)):
    return datasets.growth_paths(n, readings, seed, persistence=persistence) / [210.0, 140.0]


def test_the_autocorrelation_of_children_is_found_in_their_visits():
    """Though height and its spread triple. 8,000 boys: four standard errors are .05."""
    found = metrics.pair_autocorrelation(*visits(8000, 1), cuts=[1.0, 2.0, 4.0, 8.0])
    middle = np.array([0.5, 1.5, 3.0, 6.0])
    expected = KEPT + (1 - KEPT) * np.exp(-middle / TAU)
    assert found.shape == (5, 2)
    np.testing.assert_allclose(found[:4], np.repeat(expected[:, None], 2, axis=1), atol=0.05)


def test_it_is_pearsons_correlation_where_times_are_few():
    x = np.random.default_rng(0).standard_normal((200, 2)).cumsum(axis=1)
    moments, people = np.tile([0.0, 1.0], 200), np.repeat(np.arange(200), 2)
    order = np.random.default_rng(1).permutation(400)  # rows in any order
    found = metrics.pair_autocorrelation(moments[order], x.ravel()[order], people[order], cuts=[])
    assert found[0, 0] == pytest.approx(np.corrcoef(x.T)[0, 1])


def test_pairs_need_time_between_them_and_people_who_differ():
    moments, people = np.array([0.0, 0.0, 1.0, 5.0]), np.array([0, 0, 1, 2])
    found = metrics.pair_autocorrelation(moments, np.arange(4.0), people, cuts=[2.0])
    assert np.isnan(found).all()
    moments, people = np.tile([0.0, 1.0], 5), np.repeat(np.arange(5), 2)
    same = metrics.pair_autocorrelation(moments, np.full(10, 0.1), people, cuts=[])
    assert same.tolist() == [[0.0]]
    with pytest.raises(InputError, match="each record"):
        metrics.pair_autocorrelation(moments[1:], np.ones(10), people, cuts=[])


@pytest.mark.parametrize(("persistence", "low", "high"), [((KEPT, TAU), 0, 0.2), (None, 0.5, 2)])
def test_a_true_model_is_like_fresh_people_and_one_of_too_much_memory_is_not(
    persistence, low, high
):
    readings = AGES[1::4]
    synthetic = drawn(1500, 7, readings, persistence)
    sides = records(3000, 1), records(3000, 2)
    found = compare_repeated(synthetic, readings, sides, ("height", "weight"), False)
    assert len(found.lags) == 4
    assert (np.diff(found.lags) > 0).all()
    assert found.score.floor < 0.1
    assert low <= max(found.score.gap, 0) < high
    text = str(found).splitlines()
    assert text[0].split() == ["time", "between", "records", "feature", "model", "real", "floor"]
    assert len(text) == 1 + 4 * 2


def test_too_few_people_and_too_few_pairs_say_nothing():
    readings = AGES[1::4]
    synthetic = drawn(50, 7, readings)
    names = ("height", "weight")
    few = records(300, 1), records(15, 2)
    assert compare_repeated(synthetic, readings, few, names, False) is None
    once = AGES[[100]]  # all records are nearest to the same reading
    assert compare_repeated(synthetic[:, :1], once, [records(300, 1)] * 2, names, False) is None


def test_lags_of_dates_are_in_days():
    found = Repeated(
        (86400.0,), ("x",), *np.array([[[0.5]], [[0.7]], [[0.8]]]), 20, 40, datetime=True
    )
    assert str(found).splitlines()[1].split() == ["1", "days", "x", "0.50", "0.70", "0.80"]
    assert (found.score.value, found.score.floor) == pytest.approx((0.2, 0.1))
    assert found.score.ceiling == pytest.approx(0.7)
