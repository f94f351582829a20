"""What arithmetic may lose on the grid of losses, against integers and against 50 digits."""

import math
from itertools import pairwise

import numpy as np
import pytest
from dp_accounting.pld.pld_pmf import DensePLDPmf

from privtraj.privacy import pld
from privtraj.privacy.accounting import delta_at, tally
from privtraj.privacy.events import GaussianSum, LaplaceCounts, SampledPair
from privtraj.privacy.pld import Losses

mp = pytest.importorskip("mpmath")

FIXED = 200  # bits after the point of exact masses
INTERVAL = 0.02  # coarse, so that all of a distribution can be computed exactly
ADJACENCIES = ["add-remove", "replace-one"]


def probabilities(masses):
    """First loss, in intervals, and the masses of a distribution, as the floats they are."""
    dense = masses.to_dense_pmf()
    return dense._lower_loss, dense._probs, dense._infinity_mass


def exact_delta(first, masses, infinite, epsilon):
    """infinite + sum (1 - e^(eps - loss))_+ mass, of masses in units of 2^-FIXED."""
    with mp.workdps(50):
        losses = [INTERVAL * (first + k) for k in range(len(masses))]
        scale = mp.mpf(2) ** -FIXED
        parts = (
            -mp.expm1(mp.mpf(epsilon) - loss) * int(mass) * scale
            for loss, mass in zip(losses, masses, strict=True)
            if loss > epsilon and mass
        )
        return infinite + mp.fsum(parts)


def as_integers(masses):
    return [int(mp.mpf(float(mass)) * mp.mpf(2) ** FIXED) for mass in masses]


def convolved(a, b):
    """Exact convolution of integers that are not negative, as one product of long ones."""
    width = (2 * FIXED + 64) // 8

    def packed(parts):
        return int.from_bytes(b"".join(part.to_bytes(width, "little") for part in parts), "little")

    count = len(a) + len(b) - 1
    product = (packed(a) * packed(b)).to_bytes(width * (count + 1), "little")
    each = (product[k * width : (k + 1) * width] for k in range(count))
    return [int.from_bytes(part, "little") >> FIXED for part in each]


def power(masses, times):
    """Of masses, convolved with themselves by squaring; each product is rounded down by 2^-200."""
    result = None
    while times:
        if times & 1:
            result = masses if result is None else convolved(result, masses)
        masses, times = convolved(masses, masses), times >> 1
    return result


# Values and dots ------------------------------------------------------------------------------


def true_delta(pair, epsilon, removed):
    """Hockey-stick divergence of the mixture from N(0, 1) or its mirror image, in 50 digits."""
    sizes, chances = pair.moves()
    with mp.workdps(50):
        s = [mp.mpf(size) / mp.mpf(pair.noise_multiplier) for size in sizes]
        p = [mp.mpf(chance) for chance in chances]
        mirrored = pair.adjacency == "replace-one"
        q = [(-a, c) for a, c in zip(s, p, strict=True)] if mirrored else [(mp.mpf(0), mp.mpf(1))]
        p = list(zip(s, p, strict=True))
        first, second = (p, q) if removed else (q, p)

        def density(law, x):
            return mp.fsum(c * mp.npdf(x, a, 1) for a, c in law)

        def above(law, x):
            return mp.fsum(c * mp.ncdf(a - x) for a, c in law)

        def loss(x):
            return mp.log(density(p, x) / density(q, x)) - (epsilon if removed else -epsilon)

        low, high = mp.mpf(-60), mp.mpf(60)
        if loss(low) > 0 or loss(high) < 0:  # a loss that no x has
            return None
        for _ in range(110):  # halved to 1e-31: a slip is squared in the divergence
            middle = (low + high) / 2
            low, high = (low, middle) if loss(middle) > 0 else (middle, high)
        cut = low
        upper = [above(law, cut) for law in (first, second)]
        here, there = upper if removed else [1 - part for part in upper]
        return here - mp.exp(epsilon) * there


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("z", "rate", "records"), [(1.0, 0.1, 1), (4.0, 0.5, 3), (0.6, 0.01, 1)])
def test_the_dots_are_above_the_divergence_but_for_the_stated_error(z, rate, records, adjacency):
    """At grid points, where the dots lie on it; above it they may be by masses raised to zero."""
    event = GaussianSum(z, "", rate=rate, records=records, together=True)
    pair = SampledPair.of(event, adjacency)
    losses = pair.distribution(INTERVAL)
    assert losses.error < 2e-13
    for removed, masses in zip((True, False), losses.masses, strict=False):
        first, floats, infinite = probabilities(masses)
        whole = as_integers(floats)
        for k in range(0, len(floats), max(1, len(floats) // 9)):
            epsilon = (first + k) * INTERVAL
            true = true_delta(pair, epsilon, removed)
            if true is not None:
                stated = exact_delta(first, whole, infinite, epsilon)
                assert -losses.error <= stated - true <= 1e-9


def test_values_of_many_responses_are_within_their_stated_error():
    total = tally([(LaplaceCounts(0.01, ""), 600), (LaplaceCounts(0.2, ""), 7)], "add-remove")
    assert total.closed_error < 2e-12
    with mp.workdps(50):

        def responses(e, n):
            e = mp.mpf(e)
            each = mp.log1p(mp.exp(-e))
            return {n - 2 * i: mp.binomial(n, i) * mp.exp(-e * i - n * each) for i in range(n + 1)}

        few = responses(0.2, 7)
        for epsilon in (0.0, 0.5, 2.0):
            exact = mp.mpf(0)
            for k, chance in responses(0.01, 600).items():
                for j, other in few.items():
                    over = k * mp.mpf(0.01) + j * mp.mpf(0.2) - epsilon
                    exact += chance * other * (-mp.expm1(-over) if over > 0 else 0)
            (found,) = total.closed(np.array([epsilon]))
            assert found >= exact - total.closed_error  # losses are merged upwards: it may be above


# Composition ----------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("z", "rate", "times"), [(2.0, 0.3, 12), (8.0, 0.9, 33)])
def test_composed_masses_are_within_the_stated_error_of_exact_ones(z, rate, times, adjacency):
    one = SampledPair.of(GaussianSum(z, "", rate=rate), adjacency).distribution(INTERVAL)
    many = one.repeated(times)
    assert many.error < 1e-10
    most = 0.0
    for masses, part in zip(many.masses, one.masses, strict=True):
        first, floats, infinite = probabilities(part)
        exact = power(as_integers(floats), times)
        with mp.workdps(50):
            gone = 1 - (1 - mp.mpf(infinite)) ** times
        for epsilon in (-50.0, -1.0, 0.0, 0.3, 1.0, 3.0):
            expected = exact_delta(first * times, exact, gone, epsilon)
            off = abs(masses.get_delta_for_epsilon(epsilon) - expected)
            assert off <= many.error - times * one.error
            most = max(most, float(off))
    assert most > 1e-20  # that there is an error to bound


def test_two_kinds_together_are_within_the_stated_error():
    sampled = SampledPair.of(GaussianSum(2.0, "", rate=0.3), "add-remove").distribution(INTERVAL)
    total = tally([(LaplaceCounts(0.3, ""), 4)], "add-remove")
    counts = pld.symmetric(total.closed, total.closed_error, INTERVAL)
    both = sampled.beside(counts)
    assert both.error < 1e-11
    start, floats, infinite = probabilities(counts.masses[0])
    for masses, part in zip(both.masses, sampled.masses, strict=True):
        first, mine, gone = probabilities(part)
        exact = convolved(as_integers(mine), as_integers(floats))
        with mp.workdps(50):
            never = 1 - (1 - mp.mpf(gone)) * (1 - mp.mpf(infinite))
        for epsilon in (-50.0, 0.0, 0.5, 2.0):
            expected = exact_delta(first + start, exact, never, epsilon)
            assert abs(masses.get_delta_for_epsilon(epsilon) - expected) <= both.error


@pytest.mark.thorough
def test_one_constant_for_all_would_not_do():
    """A million steps: even the sum of all masses is off by more than the 1e-11 that were added."""
    one = SampledPair.of(GaussianSum(2000.0, "", rate=0.5), "add-remove").distribution(1e-4)
    times = 2**20
    many = one.repeated(times)
    _, floats, infinite = probabilities(one.masses[0])
    with mp.workdps(50):
        finite = mp.fsum(map(mp.mpf, floats.tolist())) ** times
        expected = finite + 1 - (1 - mp.mpf(infinite)) ** times
    off = abs(many.masses[0].get_delta_for_epsilon(-1e6) - expected)
    assert 1e-11 < off <= many.error
    assert delta_at([(GaussianSum(2000.0, "", rate=0.5), times)], 5.0, "add-remove") >= many.error


def test_masses_that_rounding_made_negative_lower_no_delta():
    rounded = DensePLDPmf(INTERVAL, 0, np.array([1.0, -1e-11]), 0.0, True)
    told = [Losses((rounded,), 1e-9, 1.0).delta(epsilon) for epsilon in (0.0, INTERVAL / 2, 1.0)]
    assert told == [1e-9] * 3


def test_a_chance_scales_the_error_and_the_norm():
    one = SampledPair.of(GaussianSum(2.0, "", rate=0.3), "add-remove").distribution(INTERVAL)
    mixed = one.repeated(5).with_chance(0.25, INTERVAL)
    scaled = one.repeated(5).error / 4 + 4 * 2.0**-53
    assert mixed.error == pytest.approx(scaled, rel=1e-9, abs=0)
    first, floats, _ = probabilities(mixed.masses[0])
    assert np.linalg.norm(floats) <= mixed.norm == pytest.approx(0.75 + one.norm / 4)
    assert floats[-first] >= 0.75
    assert math.isclose(one.with_chance(1.0, INTERVAL).error, one.error)


def test_two_directions_have_the_larger_error_and_norm_of_both():
    sizes, chances, z = [0.0, 1.0], [0.7, 0.3], 0.8
    made = pld.of_mixture(sizes, chances, z, False, INTERVAL)
    pair = pld._Pair(np.array(sizes) / z, np.array(chances), False)
    (low, high), error = pair.range, pair.error(INTERVAL)
    ways = [
        pld._dots(lambda x, s=sign: pair.divergences(s, x), error, *ends, INTERVAL)
        for sign, ends in ((1.0, (low, high)), (-1.0, (-high, -low)))
    ]
    assert made.error == max(way.error for way in ways) > min(way.error for way in ways)
    assert made.norm == max(way.norm for way in ways) > min(way.norm for way in ways)


def test_what_stands_beside_what_makes_no_difference():
    """One direction for both beside two, and a narrow distribution beside a wide one."""
    wide = tally([LaplaceCounts(1.0, "")], "add-remove")
    one = pld.symmetric(wide.closed, wide.closed_error, INTERVAL)
    two = SampledPair.of(GaussianSum(2.0, "", rate=0.3), "add-remove").distribution(INTERVAL)
    assert len(one.masses) < len(two.masses)
    assert one.norm != two.norm
    first, second = one.beside(two), two.beside(one)
    assert len(first.masses) == len(second.masses) == 2
    assert first.norm == second.norm == min(one.norm, two.norm)
    assert first.error == pytest.approx(second.error, rel=1e-12, abs=0)
    length = sum(max(masses.size for masses in each.masses) for each in (one, two))
    lost = pld._lost_by_transforms(2, length, max(one.norm, two.norm))
    assert first.error == pytest.approx(one.error + two.error + lost, rel=1e-12, abs=0)
    assert first.delta(0.5) == pytest.approx(second.delta(0.5), rel=1e-9, abs=0)


@pytest.mark.parametrize(("k", "length", "norm"), [(1, 1, 1.0), (5, 1000, 0.3)])
def test_what_transforms_lose_is_that_of_the_proof(k, length, norm):
    """(k + 1) (20 u log2 n + 8 u) sqrt(n) nu and 1 % more, n a quarter longer and at least 2."""
    n, u = max(1.25 * length, 2.0), 2.0**-53
    most = 1.01 * (k + 1) * (20 * u * math.log2(n) + 8 * u) * math.sqrt(n) * norm
    assert pld._lost_by_transforms(k, length, norm) == pytest.approx(most, rel=1e-12, abs=0)


def test_what_the_dots_lose_is_that_of_the_proof():
    """The sum over masses, one by one: 4 u (|d_i - d_{i-1}| / (e^h - 1) + |d_{i-1}|), with those
    at the ends, 2 u |d| / (e^h - 1) where values more than halve, and 8 u."""
    values, h, u = [0.9, 0.8, 0.75, 0.3, 0.29, 0.1, 0.05], 0.1, 2.0**-53
    made = pld._dots(lambda epsilons: np.array(values), 1e-17, 0.0, 0.6, h)
    d, growth = np.diff(values), math.expm1(h)
    lost = 0.0
    for before, after in pairwise(d):
        lost += 4 * (abs(after - before) / growth + abs(before))
    lost += 4 * (abs(1 - values[0] + d[0] / growth) + abs(d[0]) / growth)
    lost += 4 * (abs(d[-1]) / (1 - math.exp(-h)) + abs(d[-1]) / growth + abs(d[-1]))
    lost += sum(2 * (a - b) / growth for a, b in pairwise(values) if b < a / 2)
    assert made.error == pytest.approx(1e-17 + (lost + 8) * u * (1 + 1e-6), rel=1e-9, abs=0)
    _, floats, _ = probabilities(made.masses[0])
    assert made.norm == pytest.approx(np.linalg.norm(floats) * (1 + 1e-6), rel=1e-9, abs=0)


def test_values_that_rounding_put_beyond_a_divergence_are_taken_for_its_ends():
    values = [1 + 1e-15, 1 + 1e-15, 0.5, 1e-17, -1e-17]
    made = pld._dots(lambda epsilons: np.array(values), 0.0, 0.0, 0.4, 0.1)
    _, floats, infinite = probabilities(made.masses[0])
    assert infinite == 0
    assert floats[0] == 0
    assert (floats >= 0).all()


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize(("size", "chance"), [(5.0, 1e-6), (1.0, 0.1)])
def test_the_place_of_a_loss_is_in_its_cell_where_losses_hardly_differ_too(size, chance, mirrored):
    """The error that is charged for places is that of a cell."""
    pair = pld._Pair(np.array([0.0, size]), np.array([1 - chance, chance]), mirrored)
    nodes = np.linspace(*pair._ends, pld._NODES)
    at_nodes = pair._loss(nodes)
    losses = np.sort(pair._loss((nodes[1:] + nodes[:-1]) / 2))
    cell = np.clip(np.searchsorted(at_nodes, losses), 1, pld._NODES - 1)
    x = pair._where(losses)
    assert np.isfinite(x).all()
    assert ((x >= nodes[cell - 1]) & (x <= nodes[cell])).all()


@pytest.mark.parametrize("mirrored", [False, True])
def test_where_the_loss_is_the_same_at_many_places_its_place_is_known_all_the_same(mirrored):
    pair = pld._Pair(np.array([0.0, 40.0]), np.array([1 - 1e-6, 1e-6]), mirrored)
    assert 0 < pair.error(0.5) < 1e-6
