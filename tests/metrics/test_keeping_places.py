"""Who stays who: correlations by lag, where they are known, and children who shrink."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from privtraj import datasets, metrics


def autoregressive(n, times, keep, seed=0):
    """Paths (n, T, 1) with corr(x_i, x_j) = keep^|i - j| and a mean and spread of each time."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, times))
    for i in range(1, times):
        x[:, i] = keep * x[:, i - 1] + np.sqrt(1 - keep**2) * x[:, i]
    return (x * (1 + np.arange(times)) + 100 * np.arange(times))[..., None]


def test_an_autoregressive_process_has_its_powers():
    found = metrics.autocorrelation(autoregressive(40_000, 5, 0.8))
    assert found.shape == (4, 1)
    np.testing.assert_allclose(found[:, 0], 0.8 ** np.arange(1, 5), atol=0.02)  # 4 standard errors
    ranks = metrics.rank_persistence(autoregressive(40_000, 5, 0.8))[:, 0]
    np.testing.assert_allclose(ranks, 6 / np.pi * np.arcsin(0.8 ** np.arange(1, 5) / 2), atol=0.02)


def test_it_is_the_mean_of_pearsons_and_spearmans_correlations():
    paths = np.random.default_rng(1).standard_normal((30, 4, 2)).cumsum(axis=1)
    for found, corr in (
        (metrics.autocorrelation(paths), lambda x: np.corrcoef(x.T)),
        (metrics.rank_persistence(paths), lambda x: spearmanr(x).statistic),
    ):
        for k in range(2):
            expected = [np.diagonal(corr(paths[:, :, k]), h).mean() for h in (1, 2, 3)]
            np.testing.assert_allclose(found[:, k], expected)


def test_uneven_times_are_compared_by_time():
    x = autoregressive(500, 4, 0.5)[..., 0]
    times = [0.0, 1.0, 2.0, 6.0]  # a mean gap of 2: lags 1, 1, 1, 2, 2 and 3 of it, rounded
    found = metrics.autocorrelation(x, times=times)[:, 0]
    corr = np.corrcoef(x.T)
    np.testing.assert_allclose(
        found,
        [
            np.mean([corr[0, 1], corr[1, 2], corr[0, 2]]),
            np.mean([corr[2, 3], corr[1, 3]]),  # 5 / 2 is rounded to the even 2
            corr[0, 3],
        ],
    )
    far = metrics.autocorrelation(x, times=[0.0, 0.1, 0.2, 9.0])
    assert np.isnan(far[1, 0])  # a mean gap of 3, and no lag near 6
    assert np.isfinite(metrics.autocorrelation_error(x, x[::2], times=[0.0, 0.1, 0.2, 9.0]))


def test_children_who_keep_their_scores_have_correlation_one_and_shuffled_ones_none():
    children = datasets.growth_paths(2000, [2.0, 6.0, 10.0, 14.0], seed=0)
    np.testing.assert_allclose(metrics.rank_persistence(children), 1.0)
    shuffled = metrics.randomly_coupled(children)
    assert np.abs(metrics.autocorrelation(shuffled)).max() < 0.1  # four standard errors
    assert metrics.rank_persistence_error(children, children) == 0.0
    assert metrics.rank_persistence_error(shuffled, children) > 0.9
    assert metrics.autocorrelation_error(shuffled, children) > 0.9
    largest, mean = (
        score(shuffled, children)
        for score in (metrics.autocorrelation_error, metrics.mean_autocorrelation_error)
    )
    expected = np.abs(metrics.autocorrelation(shuffled) - metrics.autocorrelation(children))
    assert (largest, mean) == pytest.approx((expected.max(), expected.mean()))


def test_still_people_and_people_who_do_not_differ():
    own = np.random.default_rng(0).random((20, 1, 1)).repeat(3, axis=1)
    np.testing.assert_allclose(metrics.autocorrelation(own), 1.0)  # everybody stays where they are
    same = np.full((20, 3, 1), 0.1)
    np.testing.assert_array_equal(metrics.autocorrelation(same), 0.0)
    np.testing.assert_array_equal(metrics.rank_persistence(same), 0.0)
    assert metrics.autocorrelation_error(same, own) == pytest.approx(1.0)


def test_large_values_lose_nothing():
    x = autoregressive(300, 3, 0.7)
    np.testing.assert_allclose(
        metrics.autocorrelation(x + 1e9), metrics.autocorrelation(x), atol=1e-6
    )


def test_pairs_of_times_are_judged_by_the_people_who_are_there_at_both():
    x = autoregressive(400, 3, 0.6, seed=2)
    x[:150, 0] = np.nan
    x[350:, 2] = np.nan
    values = x[..., 0]
    both = [np.isfinite(values[:, [i, j]]).all(axis=1) for i, j in ((0, 1), (1, 2), (0, 2))]
    near = [
        np.corrcoef(values[some][:, [i, j]].T)[0, 1]
        for some, (i, j) in zip(both, ((0, 1), (1, 2), (0, 2)), strict=True)
    ]
    weights = [250, 350]
    expected = [np.average(near[:2], weights=weights), near[2]]
    np.testing.assert_allclose(metrics.autocorrelation(x)[:, 0], expected)
    ends = values[both[2]]
    there = [values[np.isfinite(values[:, k]), k] for k in (0, 2)]
    ranks = [
        np.searchsorted(np.sort(all_), ends[:, k]) for all_, k in zip(there, (0, 2), strict=True)
    ]
    found = metrics.rank_persistence(x)[1, 0]
    assert found == pytest.approx(np.corrcoef(ranks)[0, 1])
    nobody = np.full((5, 3, 1), np.nan)
    assert metrics.autocorrelation_error(nobody, x) == 0.0  # nothing to compare
    assert np.isfinite(metrics.rank_persistence_error(nobody, x))


def test_who_falls_by_how_much_within_what_time():
    times = [0.0, 1.0, 3.0]
    x = np.array([[5.0, 5, 5], [5, 4, 5], [5, 5, 4], [5, 4.5, 3.9], [np.nan, np.nan, 0]])[..., None]
    share = metrics.falling_share
    assert share(x, 0, 0.9, 1.0, times=times) == 1 / 4  # the fifth was not seen twice
    assert share(x, 0, 0.9, 2.0, times=times) == 2 / 4
    assert share(x, 0, 0.9, 3.0, times=times) == 3 / 4
    assert share(x, 0, 1.0, 1.0, times=times) == 0.0  # by more than


def test_children_do_not_shrink_and_badly_coupled_ones_do():
    ages = np.arange(2.0, 18.0)
    children = datasets.growth_paths(500, ages, seed=0)
    assert metrics.falling_share(children, 0, 0.5, 1.0, times=ages) == 0.0
    shuffled = metrics.randomly_coupled(children)
    assert metrics.falling_share(shuffled, 0, 0.5, 1.0, times=ages) > 0.9
