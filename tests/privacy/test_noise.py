"""Integer noise against exact probabilities and against OpenDP's samplers.

Seeded tests are deterministic. OpenDP draws from the operating system: those tests, and only
those, can fail by chance, each with probability 1e-6 (`FALSE_ALARM`).
"""

import math
import os
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from privtraj.errors import InputError
from privtraj.privacy import noise
from privtraj.privacy.noise import SecureSource, SeededSource

FALSE_ALARM = 1e-6


def laplace_pmf(x, epsilon):
    return np.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(x))


def gaussian_pmf(x, std):
    support = np.arange(-math.ceil(40 * std), math.ceil(40 * std) + 1)
    return np.exp(-(x**2) / (2 * std**2)) / np.exp(-(support**2) / (2 * std**2)).sum()


def binned(draws, reach):
    """Counts of -reach..reach, both tails folded into the ends: shape (2 reach + 1,)."""
    return np.bincount(np.clip(draws, -reach, reach) + reach, minlength=2 * reach + 1)


def p_value(draws, pmf, reach):
    """Chi-square p-value of draws against a symmetric pmf."""
    probabilities = pmf(np.arange(-reach, reach + 1))
    inner = probabilities[1:-1].sum()
    probabilities[[0, -1]] = (1 - inner) / 2
    return stats.chisquare(binned(draws, reach), len(draws) * probabilities).pvalue


def two_sample_p_value(a, b, reach):
    counts = np.stack([binned(a, reach), binned(b, reach)])
    return stats.chi2_contingency(counts[:, counts.sum(0) > 0]).pvalue


def table_probabilities(table):
    """Every probability of a table as an exact integer over 2^128."""
    thresholds = [(int(h) << 64) + int(lo) for h, lo in zip(table.high, table.low, strict=True)]
    ends = [0, *thresholds, 1 << 128]
    return [b - a for a, b in pairwise(ends)]


class ScriptedSource:
    """Words given one by one."""

    private = False

    def __init__(self, words):
        self._words = list(words)

    def words(self, count):
        taken, self._words = self._words[:count], self._words[count:]
        return np.array(taken, dtype=np.uint64)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_laplace_has_its_exact_probabilities(epsilon):
    draws = noise.laplace_integers(SeededSource(1), 400_000, epsilon)
    reach = math.ceil(4 / epsilon)
    assert p_value(draws, lambda x: laplace_pmf(x, epsilon), reach) > FALSE_ALARM
    assert p_value(draws, lambda x: laplace_pmf(x, epsilon * 1.02), reach) < FALSE_ALARM


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 30.0])
def test_laplace_has_the_variance_it_states(epsilon):
    x = np.arange(-8000, 8001)
    assert noise.laplace_variance(epsilon) == pytest.approx((x**2 * laplace_pmf(x, epsilon)).sum())


def test_small_gaussian_has_its_exact_probabilities():
    draws = noise.discrete_gaussian(4).draw(SeededSource(2), 400_000)
    assert p_value(draws, lambda x: gaussian_pmf(x, 4.0), 12) > FALSE_ALARM
    assert p_value(draws, lambda x: gaussian_pmf(x, 4.08), 12) < FALSE_ALARM
    assert p_value(draws, lambda x: gaussian_pmf(x, 3.92), 12) < FALSE_ALARM


@pytest.fixture(scope="module")
def opendp():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    integers = dp.vector_domain(dp.atom_domain(T=int))

    def draw(mechanism, scale, count):
        if mechanism == "laplace":
            measure = dp.m.make_laplace(integers, dp.l1_distance(T=int), scale=scale)
        else:
            measure = dp.m.make_gaussian(integers, dp.l2_distance(T=float), scale=scale)
        return np.array(measure([0] * count))

    return draw


def test_laplace_agrees_with_opendp(opendp):
    ours = noise.laplace_integers(SeededSource(3), 200_000, 0.5)
    assert two_sample_p_value(ours, opendp("laplace", 2.0, 40_000), 12) > FALSE_ALARM


@pytest.mark.slow
def test_small_gaussian_agrees_with_opendp(opendp):
    ours = noise.discrete_gaussian(4).draw(SeededSource(4), 200_000)
    assert two_sample_p_value(ours, opendp("gaussian", 4.0, 40_000), 12) > FALSE_ALARM


@pytest.mark.slow
def test_two_percent_of_scale_would_show_against_opendp(opendp):
    """Ratio of mean squares: 2 % of scale is 10 standard errors, the threshold 4.9."""
    theirs = opendp("gaussian", 50.0, 150_000).astype(float)
    threshold = stats.norm.isf(FALSE_ALARM / 2)
    for std, same in [(50, True), (51, False), (49, False)]:
        ours = noise.discrete_gaussian(std).draw(SeededSource(std), 1_000_000).astype(float)
        error = math.sqrt(2 / theirs.size + 2 / ours.size)
        z = math.log(np.mean(ours**2) / np.mean(theirs**2)) / error
        assert (abs(z) < threshold) == same


def test_big_gaussian_is_normal_at_its_scale():
    draws = noise.gaussian_integers(SeededSource(5), (1000, 400)).ravel() / noise.GAUSSIAN_STD
    assert stats.kstest(draws, "norm").pvalue > 1e-3
    assert stats.kstest(draws, "norm", args=(0, 1.02)).pvalue < FALSE_ALARM
    assert draws.mean() == pytest.approx(0, abs=4 / math.sqrt(draws.size))
    assert draws.var() == pytest.approx(1, abs=4 * math.sqrt(2 / draws.size))


def test_a_table_states_exact_laplace_probabilities():
    """At epsilon = log 2, up to its rounding, P(x) halves with each step away from 1/3."""
    table = noise.discrete_laplace(math.log(2))
    inside = [Fraction(p, 1 << 128) for p in table_probabilities(table)]
    middle = -table.first
    for x in range(20):
        assert float(inside[middle + x]) == pytest.approx(2.0**-x / 3, rel=1e-14)
        assert inside[middle + x] == inside[middle - x]


@pytest.mark.parametrize(
    ("table", "log_weight"),
    [
        (noise.discrete_laplace(0.25), lambda mp, x: -mp.mpf("0.25") * abs(x)),
        (noise.discrete_laplace(64.0), lambda mp, x: -mp.mpf(64) * abs(x)),
        (noise.discrete_gaussian(16), lambda mp, x: -(mp.mpf(x) ** 2) / 512),
    ],
)
def test_table_is_within_its_stated_total_variation(table, log_weight):
    mp = pytest.importorskip("mpmath")
    with mp.workdps(90):
        reach = 3 * abs(table.first) + 10
        weights = {x: mp.exp(log_weight(mp, x)) for x in range(-reach, reach + 1)}
        total = mp.fsum(weights.values())
        drawn = dict(enumerate(table_probabilities(table), start=table.first))
        differences = [
            abs(weight / total - mp.mpf(drawn.get(x, 0)) / (1 << 128))
            for x, weight in weights.items()
        ]
        assert mp.fsum(differences) / 2 <= table.tv_error
    assert table.tv_error < 2.0**-108


def test_ties_on_the_high_word_are_settled_by_the_low_word():
    table = noise.discrete_laplace(1.0)
    at = len(table.high) // 2
    threshold, low = int(table.high[at]), int(table.low[at])
    for lower, drawn in [(low - 1, at), (low, at + 1), (low + 1, at + 1)]:
        assert table.draw(ScriptedSource([threshold, lower]), 1)[0] == table.first + drawn


def test_tails_where_many_thresholds_share_a_high_word():
    table = noise.discrete_laplace(1.0)
    assert table.draw(ScriptedSource([0, 0]), 1)[0] == table.first
    assert table.draw(ScriptedSource([2**64 - 1, 2**64 - 1]), 1)[0] == -table.first
    shared = int(np.count_nonzero(table.high == 0))
    assert shared > 10
    for i in range(1, shared):
        lower = int(table.low[i - 1])
        assert table.draw(ScriptedSource([0, lower]), 1)[0] == table.first + i


def test_convolution_error_is_the_poisson_bound():
    """Fact 2, scaled down to s = k = 2 where the error is large enough to see."""
    s, k = 2, 2
    x, j = np.arange(-30, 31)[:, None], np.arange(-60, 61)[None, :]
    law = np.exp(-((x - k * j) ** 2 + j**2) / (2 * s**2)).sum(1)
    shape = np.exp(-(x[:, 0] ** 2) / (2 * s**2 * (1 + k**2)))
    t = s / math.sqrt(1 + k**2)
    off = law / shape / (math.sqrt(2 * math.pi) * t) - 1
    eta = 2 * sum(math.exp(-2 * math.pi**2 * t**2 * n**2) for n in range(1, 5))
    assert eta / 2 < np.abs(off).max() <= eta * (1 + 1e-6)


@pytest.mark.parametrize("std", [2.0, 5.0, 20.0])
def test_rounding_error_is_the_midpoint_bound(std):
    """Fact 3: round(N(0, S^2)) against D_Z(S)."""
    x = np.arange(-math.ceil(12 * std), math.ceil(12 * std) + 1)
    rounded = stats.norm.cdf(x + 0.5, scale=std) - stats.norm.cdf(x - 0.5, scale=std)
    distance = np.abs(rounded - gaussian_pmf(x, std)).sum() / 2
    bound = (0.96789 / std**2 + 1.52 / std**3) / 48
    assert bound / 2 < distance <= bound + 2 * math.exp(-2 * math.pi**2 * std**2)


def test_stated_gaussian_slack_covers_all_its_parts():
    std, t = noise.GAUSSIAN_STD, noise.BASE_STD / math.sqrt(1 + noise.STRIDE**2)
    rounding = (0.96789 / std**2 + 1.52 / std**3) / 48
    convolution = 3 * math.exp(-2 * math.pi**2 * t**2)
    tables = 2 * noise.discrete_gaussian(noise.BASE_STD).tv_error
    assert rounding + convolution + tables <= noise.GAUSSIAN_TV_PER_DRAW


def test_sources_say_whether_they_are_private():
    assert noise.source_for(None).private
    assert not noise.source_for(0).private
    assert noise.source_for(7).words(3).tolist() == SeededSource(7).words(3).tolist()
    a, b = SecureSource().words(8), SecureSource().words(8)
    assert a.dtype == np.uint64
    assert a.tolist() != b.tolist()


def test_private_words_are_those_of_the_operating_system(monkeypatch):
    """Each asked for anew, none kept, and nothing made of them."""
    asked = []

    def urandom(count):
        asked.append(count)
        return bytes((37 * len(asked) + k) % 256 for k in range(count))

    monkeypatch.setattr(os, "urandom", urandom)
    words = [SecureSource().words(3), SecureSource().words(3)]
    assert asked == [24, 24]
    for number, drawn in enumerate(words, start=1):
        given = bytes((37 * number + k) % 256 for k in range(24))
        assert drawn.tolist() == np.frombuffer(given, np.uint64).tolist()


def test_all_digits_of_the_big_gaussian_are_random_and_independent():
    """Its integers leave no residue to be told apart: every digit to the base 2^10 is uniform."""
    draws = noise.gaussian_integers(SeededSource(6), 200_000)
    assert draws.dtype == np.int64
    first, second = ((draws >> shift) % noise.STRIDE // 128 for shift in (0, 10))
    joint = np.bincount(8 * first + second, minlength=64)
    assert stats.chisquare(joint).pvalue > FALSE_ALARM
    last = np.bincount(draws % 128, minlength=128)
    assert stats.chisquare(last).pvalue > FALSE_ALARM


def test_shapes_and_reproducibility():
    draws = noise.laplace_integers(SeededSource(8), (3, 4, 5), 1.0)
    assert draws.shape == (3, 4, 5)
    assert draws.dtype == np.int64
    assert noise.gaussian_integers(SecureSource(), (0, 2)).shape == (0, 2)
    again = noise.gaussian_integers(SeededSource(9), (2, 2))
    assert np.array_equal(again, noise.gaussian_integers(SeededSource(9), (2, 2)))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e-4, 65.0, math.nan, math.inf])
def test_parameters_without_a_table_are_refused(epsilon):
    with pytest.raises(InputError):
        noise.discrete_laplace(epsilon)
    with pytest.raises(InputError):
        noise.discrete_gaussian(0)
    with pytest.raises(InputError):
        SeededSource(-1)


@pytest.mark.parametrize(
    "table",
    [noise.discrete_gaussian(noise.BASE_STD), noise.discrete_gaussian(1)]
    + [noise.discrete_laplace(epsilon) for epsilon in (0.01, 1.0, 20.0)],
    ids=lambda table: str(len(table.high)),
)
def test_a_word_is_located_where_a_plain_search_finds_it(table):
    words = np.random.default_rng(0).integers(0, 2**64, 20_000, dtype=np.uint64)
    one, shift = np.uint64(1), np.uint64(20)
    ends = np.array([0, 2**64 - 1], dtype=np.uint64)
    tails = [words >> shift, ~(words >> shift)]
    words = np.concatenate([words, table.high, table.high + one, table.high - one, ends, *tails])
    np.testing.assert_array_equal(table._located(words), np.searchsorted(table.high, words))
