"""Integer noise against exact probabilities and against OpenDP's samplers.

Seeded tests are deterministic. OpenDP draws from the operating system: those tests, and only
those, can fail by chance, each with probability 1e-6 (`FALSE_ALARM`).
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privtraj.base.errors import InputError
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


@pytest.mark.thorough
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


LAWS = {
    "laplace 0.75": (noise.discrete_laplace(0.75), lambda mp, x: -mp.mpf("0.75") * x),
    "laplace 3": (noise.discrete_laplace(3.0), lambda mp, x: -3 * mp.mpf(x)),
    "laplace 64": (noise.discrete_laplace(64.0), lambda mp, x: -64 * mp.mpf(x)),
    "gaussian 5": (noise.discrete_gaussian(5), lambda mp, x: -(mp.mpf(x) ** 2) / 50),
}


def tails_of(log_weight, bits):
    """floor(2^bits P(X <= -k)), k = 1, 2, ..., to the first 0, by mpmath with bits to spare."""
    mp = pytest.importorskip("mpmath")
    with mp.workprec(4 * bits + 256):
        weights = []
        while not weights or weights[-1] > mp.mpf(2) ** (-4 * bits):
            weights.append(mp.exp(log_weight(mp, len(weights))))
        total = 2 * mp.fsum(weights[1:]) + 1
        floors = []
        while not floors or floors[-1]:
            tail = mp.fsum(weights[len(floors) + 1 :]) / total
            floors.append(int(mp.floor(tail * mp.mpf(2) ** bits)))
        return floors


@pytest.mark.parametrize("bits", [64, 128, 192])
@pytest.mark.parametrize("name", LAWS)
def test_tails_are_exact_to_the_last_bit(name, bits):
    table, log_weight = LAWS[name]
    assert table.tails(bits) == tails_of(log_weight, bits)


@pytest.mark.parametrize("epsilon", [0.02, 0.7, 64.0])
def test_bounds_that_disagree_are_made_finer(epsilon, monkeypatch):
    """With hardly any bits to spare they do disagree, and the floors stay the same."""
    law = noise.discrete_laplace(epsilon)
    expected = law.tails(64)
    low, high = law._bounds(64, 65)
    assert low != high
    assert all(a <= b for a, b in zip(low, expected, strict=False))
    monkeypatch.setattr(noise, "_SPARE", 1)
    assert law.tails(64) == expected


def words_of(number, words):
    """A number of so many words, as a source would give it."""
    return [(number >> 64 * k) & (2**64 - 1) for k in reversed(range(words))]


@pytest.mark.parametrize("words", [2, 3, 4])
@pytest.mark.parametrize("name", LAWS)
def test_a_number_next_to_a_threshold_is_settled_by_all_the_bits_it_takes(name, words):
    """U agrees with a threshold in all but its last word: one unit there decides between two x."""
    table, log_weight = LAWS[name]
    tails = tails_of(log_weight, 64 * words)
    for k in {1, len(tails) // 2}:  # P(X <= -k)
        for near, size in [(tails[k - 1] - 1, k), (tails[k - 1] + 1, k - 1)]:
            assert table.draw(ScriptedSource(words_of(near, words)), 1)[0] == -size
            mirrored = 2 ** (64 * words) - 1 - near
            assert table.draw(ScriptedSource(words_of(mirrored, words)), 1)[0] == size


@pytest.mark.parametrize("size", [40, 100, 300, 600])
def test_no_integer_is_too_large_to_be_drawn(size):
    """A count plus noise of bounded support can tell two tables apart for certain: delta > 0."""
    chance = math.exp(-size) / (1 + math.exp(-1.0))  # P(X <= -size), which begins with zeros
    words = int(-math.log2(chance)) // 64 + 2
    below = int(Fraction(chance) * (1 - Fraction(1, 1000)) * 2 ** (64 * words))
    table = noise.discrete_laplace(1.0)
    assert table.draw(ScriptedSource(words_of(below, words)), 1)[0] == -size


def test_a_draw_of_a_whole_table_reads_on_only_where_it_must():
    table = noise.discrete_laplace(1.0)
    tie, plain = int(table.high[30]), int(table.high[30]) + 1
    source = ScriptedSource([plain, tie, tie + 1, 0])
    drawn = table.draw(source, 3)
    assert drawn[0] == drawn[2] == 31 - len(table.high) // 2
    assert drawn[1] == 30 - len(table.high) // 2  # below all that follows


@pytest.mark.parametrize("name", LAWS)
def test_words_beside_thresholds_and_their_first_bits_are_counted_one_by_one(name):
    """A guide by first bits finds what a search of all thresholds finds, whatever lies between."""
    table = LAWS[name][0]
    borders = np.arange(2**16, dtype=np.uint64) << np.uint64(48)
    near = np.concatenate([table.high[::7], borders, borders - np.uint64(1)])
    words = np.unique(np.concatenate([near + np.uint64(1), near - np.uint64(1), near]))
    words = words[~np.isin(words, table.high)]
    drawn = table.draw(ScriptedSource(words), len(words))
    assert np.array_equal(drawn, np.searchsorted(table.high, words) - len(table.high) // 2)


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
    assert rounding + convolution <= noise.GAUSSIAN_TV_PER_DRAW


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

    monkeypatch.setattr(noise.os, "urandom", urandom)
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


@pytest.mark.parametrize("bits", [8, 16, 40])
def test_bounds_of_the_exponential_hold_it_at_any_precision(bits):
    one = 1 << bits
    with localcontext() as context:
        context.prec = 60
        for k in range(90):
            low, high = noise._exp_minus(Fraction(k, 9), one)
            exact = (-Decimal(k) / 9).exp() * one
            assert low <= exact <= high
