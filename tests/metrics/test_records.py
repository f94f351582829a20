"""Copies are found and fresh people not accused."""

import numpy as np
import pytest

from privtraj import metrics


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
