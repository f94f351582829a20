"""From noisy counts to a measure: exact without noise, silent on noise alone, always finite."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.ndimage import gaussian_filter
from scipy.stats import norm

from privtraj.measures import cells as constants
from privtraj.measures.cells import (
    bandwidths,
    blocks,
    estimate,
    noise_quantile,
    placed,
    reading,
    significant,
    smoothed,
    spread_out,
    without_islands,
)
from privtraj.measures.over_time import GridMeasure
from privtraj.privacy.noise import SeededSource, laplace_integers


def counts_of(points, side):
    """Exact counts (side ** d,) of points (n, d)."""
    d = points.shape[1]
    place = np.minimum((points * side).astype(int), side - 1)
    flat = np.ravel_multi_index(tuple(place.T), (side,) * d)
    return np.bincount(flat, minlength=side**d)


def noisy(exact, epsilon, seed):
    return exact + laplace_integers(SeededSource(seed), exact.shape, epsilon)


def read_once(counts, epsilon, poolings, smooth=False):
    """People (side, ...) read from counts of one time, with so many sizes of blocks, and with the
    filter or without."""
    inside, without = np.ones(counts.shape, bool), (0 * counts[None], np.ones_like(counts[None]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "MAX_POOLINGS", poolings)
        if not smooth:
            patch.setattr(constants, "filtered", lambda *_: without)
        return reading(counts[None], inside, epsilon, np.ones(1))[0][0]


def stands_out(counts, cells, epsilon):
    """Which counts (side, ...) of one time are significant, each the sum of so many cells."""
    return significant(counts[None], cells[None], np.ones((1, 1, 1)), epsilon)[0]


def mean_of(measure, i):
    return measure.weights[i] @ measure.centres[i]


@pytest.mark.parametrize(("d", "side"), [(1, 16), (2, 8), (3, 4)])
def test_without_noise_to_speak_of_the_cells_are_recovered_exactly(d, side):
    points = np.random.default_rng(0).beta(2, 5, size=(400, d))
    exact = counts_of(points, side)
    measure = estimate(exact[None], side, 50.0, np.array([400.0]), d)
    assert measure.sides[0] == 1 / side
    assert measure.significant[0] == pytest.approx(1.0)
    rebuilt = np.zeros((side,) * d)
    used = measure.weights[0] > 0
    for centre, weight in zip(measure.centres[0][used], measure.weights[0][used], strict=True):
        rebuilt[tuple((centre * side).astype(int))] += weight
    np.testing.assert_allclose(rebuilt.ravel(), exact / 400, atol=1e-12)


def test_noise_alone_is_almost_always_not_significant():
    times, side = 200, 16
    counts = noisy(np.zeros((times, side * side), dtype=np.int64), 1.0, seed=3)
    measure = estimate(counts, side, 1.0, np.full(times, 100.0), 2)
    silent = measure.significant == 0
    # false alarms are rare by design; most times must show none at all, and say so with the box
    assert silent.mean() > 0.6
    assert (measure.sides[silent] == 1.0).all()
    assert (np.count_nonzero(measure.weights[silent], axis=1) == 1).all()
    np.testing.assert_array_equal(measure.centres[silent][:, 0], 0.5)
    assert measure.significant.mean() < 0.1


def test_people_who_stand_out_are_found_in_noise():
    rng = np.random.default_rng(1)
    points = np.clip([0.3, 0.7] + 0.03 * rng.standard_normal((400, 2)), 0, 1)
    counts = noisy(np.stack([counts_of(points, 16)] * 20), 1.0, seed=5)
    measure = estimate(counts, 16, 1.0, np.full(20, 400.0), 2)
    assert (measure.significant > 0.8).all()
    for i in range(20):
        np.testing.assert_allclose(mean_of(measure, i), [0.3, 0.7], atol=0.03)


def test_concentrated_people_are_never_read_in_coarser_cells_than_people_spread_out():
    rng = np.random.default_rng(2)
    times, n, side = 10, 1500, 32
    tight = [np.clip(0.4 + 0.02 * rng.standard_normal((n, 2)), 0, 1) for _ in range(times)]
    loose = [rng.uniform(size=(n, 2)) for _ in range(times)]

    def measure_of(clouds, seed):
        counts = noisy(np.stack([counts_of(c, side) for c in clouds]), 1.0, seed)
        return estimate(counts, side, 1.0, np.full(times, float(n)), 2)

    tight, loose = measure_of(tight, 1), measure_of(loose, 2)
    assert (tight.sides == 1 / side).all()
    assert (loose.sides >= 1 / side).all()
    assert min(tight.significant.min(), loose.significant.min()) > 0.7


counts_arrays = arrays(
    np.int64, (3, 64), elements=st.sampled_from([0, -1, -(10**9), 10**9]) | st.integers(-50, 50)
)


@settings(max_examples=80)
@example(np.full((3, 64), 10**9), 1.0, 1.0)  # all of one size: nothing is in most bands
@given(counts_arrays, st.floats(1e-3, 64), st.floats(1, 1e6))
def test_any_counts_give_a_measure_in_the_box_whose_rows_sum_to_one(counts, epsilon, people):
    measure = estimate(counts, 8, epsilon, np.full(3, people), 2)
    for part in (measure.centres, measure.weights, measure.sides, measure.significant):
        assert np.isfinite(part).all()
    np.testing.assert_allclose(measure.weights.sum(axis=1), 1.0, rtol=1e-9)
    assert (measure.weights >= 0).all()
    assert ((measure.centres > 0) & (measure.centres < 1)).all()
    assert ((measure.significant >= 0) & (measure.significant <= 1)).all()
    assert ((measure.sides > 0) & (measure.sides <= 1)).all()


@pytest.mark.parametrize("value", [0, -7])
def test_counts_without_anybody_leave_the_whole_box(value):
    measure = estimate(np.full((2, 64), value), 8, 1.0, np.ones(2), 2)
    assert measure.significant.tolist() == [0, 0]
    assert measure.sides.tolist() == [1, 1]
    np.testing.assert_array_equal(measure.centres, 0.5)


@pytest.mark.parametrize("side", [1, 2, 3, 5, 6])
def test_sides_that_cannot_be_pooled_are_read_as_they_are(side):
    exact = np.full(side * side, 90)
    measure = estimate(exact[None], side, 10.0, np.array([90.0 * side**2]), 2)
    assert measure.significant[0] == pytest.approx(1.0)
    np.testing.assert_allclose(mean_of(measure, 0), 0.5)


# What noise would hardly produce --------------------------------------------------------------


def chernoff(cells, epsilon, x):
    """Least of log E exp(s (S - x)) over a fine grid of s, for a sum S of Laplace variables."""
    s = epsilon * (1 - np.geomspace(1e-9, 1, 200_000))
    return np.min(-s * x - cells * np.log1p(-((s / epsilon) ** 2)))


chances = st.floats(-60, -0.1)  # logarithms


@settings(max_examples=100)
@given(st.floats(1e-3, 64), chances)
def test_the_quantile_of_one_cell_is_exact(epsilon, log_chance):
    x = noise_quantile(1, epsilon, log_chance)
    tail = -epsilon * x - math.log(2)  # log P(Laplace > x) for x >= 0
    assert x >= 0
    assert tail == pytest.approx(log_chance, rel=1e-9) if x else tail <= log_chance


@settings(max_examples=30)
@given(st.integers(2, 4096), st.floats(1e-2, 16), chances)
def test_the_quantile_of_several_cells_is_where_chernoffs_bound_is_the_chance(
    cells, epsilon, log_chance
):
    x = noise_quantile(cells, epsilon, log_chance)
    assert chernoff(cells, epsilon, x) == pytest.approx(log_chance, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("log_chance", [-1.0, -5.0, -30.0])
def test_the_quantile_grows_with_the_cells_and_with_rarer_chances(epsilon, log_chance):
    sums = (1, 2, 3, 4, 9, 16, 64, 256, 4096, 10**6)
    by_cells = [noise_quantile(n, epsilon, log_chance) for n in sums]
    assert all(a < b for a, b in pairwise(by_cells))
    for n in sums:
        rarer = [noise_quantile(n, epsilon, k * log_chance) for k in (1, 1.1, 2, 5)]
        assert all(a < b for a, b in pairwise(rarer))
        scaled = noise_quantile(n, 1.0, log_chance) / epsilon
        assert by_cells[sums.index(n)] == pytest.approx(scaled, rel=1e-6)


@pytest.mark.parametrize("cells", [1, 2, 4, 16, 64])
def test_noise_exceeds_the_quantile_no_more_often_than_the_chance(cells):
    """False alarms are the chance itself for one cell and 1/20 to 1/6 of it for more.

    So Chernoff's bound is loose by a factor, not by orders of magnitude. The noise that counts
    really have is in whole numbers: lighter, but for one cell, where rounding can add 5 % here.
    """
    rng, many, epsilon = np.random.default_rng(cells), 200_000, 0.1
    smooth = sum(rng.laplace(scale=1 / epsilon, size=many) for _ in range(cells))
    source = SeededSource(cells)
    whole = sum(laplace_integers(source, (many // 4,), epsilon) for _ in range(cells))
    for chance in (0.1, 0.01, 0.001):
        x = noise_quantile(cells, epsilon, math.log(chance))
        error = 4.5 * math.sqrt(chance / many)
        share = (smooth > x).mean()
        assert share < chance + error
        assert (whole > x).mean() < 1.05 * chance + 2 * error
        if cells == 1:
            assert share > chance - error
        else:
            assert 0.02 * chance < share < 0.3 * chance


@pytest.mark.thorough
def test_a_field_of_noise_raises_a_false_alarm_as_rarely_as_stated():
    """Each of n cells at chance n^-STRONG / 2: some cell in n^(1 - STRONG) / 2 of the fields."""
    fields, side, epsilon = 2000, 16, 0.1
    noise = noisy(np.zeros((fields, side, side), dtype=np.int64), epsilon, seed=8)
    ones = np.ones((side, side))
    alarms = np.mean([stands_out(f, ones, epsilon).any() for f in noise])
    stated = (side * side) ** (1 - constants.SIGNIFICANCE_EXPONENT) / 2
    assert alarms < 1.05 * stated + 4.5 * math.sqrt(stated / fields)


def test_a_doubtful_cell_is_significant_next_to_a_sure_one_only():
    counts = np.zeros((16, 16))
    doubtful = noise_quantile(1, 1.0, -2 * math.log(3) - math.log(2)) + 0.1
    counts[4, 4] = 1000.0
    counts[4, 5] = counts[12, 12] = doubtful
    kept = stands_out(counts, np.ones((16, 16)), 1.0)
    assert set(map(tuple, np.argwhere(kept))) == {(4, 4), (4, 5)}


def test_sums_of_no_cells_are_not_significant():
    assert not stands_out(np.full((4, 4), 1e6), np.zeros((4, 4)), 1.0).any()
    assert stands_out(np.full((4, 4), 1e6), np.ones((4, 4)), 1.0).all()


def test_a_count_that_noise_could_produce_once_is_significant_as_an_average_of_many_draws():
    counts, ones = np.zeros((2, 16, 16)), np.ones((2, 16, 16))
    counts[:, 5, 5] = 3.0
    draws = np.array([1.0, 20.0]).reshape(2, 1, 1)
    once, often = significant(counts, ones, draws, 1.0)
    assert not once.any()
    assert np.argwhere(often).tolist() == [[5, 5]]


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_blocks_that_are_spread_out_again_hold_their_sums_in_every_cell(d, level):
    counts = np.random.default_rng(d).integers(-5, 50, size=(2, *(8,) * d)).astype(float)
    sums = spread_out(blocks(counts, level), level)
    assert sums.shape == counts.shape
    for time, *place in np.ndindex(*counts.shape):
        block = tuple(slice(p >> level << level, (p >> level) + 1 << level) for p in place)
        assert sums[(time, *place)] == counts[(time, *block)].sum()


# Blocks ---------------------------------------------------------------------------------------


def test_people_too_thin_for_single_cells_are_found_in_blocks_and_by_the_filter():
    """Three in each of 4 x 4 cells at epsilon 1: less than a cell's noise tells, 48 in a block."""
    exact = np.zeros((16, 16), dtype=np.int64)
    exact[4:8, 8:12] = 3
    alone, together, smooth, means = [], [], [], []
    for seed in range(40):
        counts = noisy(exact, 1.0, seed).astype(float)
        alone.append(read_once(counts, 1.0, poolings=0).sum() / 48)
        smooth.append(read_once(counts, 1.0, poolings=0, smooth=True).sum() / 48)
        read = read_once(counts, 1.0, poolings=2)
        together.append(read.sum() / 48)
        places = (np.argwhere(read > 0) + 0.5) / 16
        means.append(read[read > 0] @ places / max(read.sum(), 1))
    assert np.mean(alone) < 0.2
    assert np.median(together) == pytest.approx(1.0, abs=0.25)
    assert np.mean(np.array(together) > 0.5) > 0.8
    assert np.mean(np.array(smooth) > 0.5) > 0.9
    np.testing.assert_allclose(np.median(means, axis=0), [0.375, 0.625], atol=0.03)


def test_a_significant_block_shares_its_people_as_the_counts_of_its_cells_suggest():
    counts = np.zeros((8, 8))
    counts[2:4, 4:6] = [[5.0, 5.0], [5.0, -1.0]]
    assert not read_once(counts, 1.0, poolings=0).any()
    read = read_once(counts, 1.0, poolings=1)
    assert read.sum() == pytest.approx(14.0)
    assert set(map(tuple, np.argwhere(read))) == {(2, 4), (2, 5), (3, 4)}
    assert read[2, 4] == read[2, 5] == read[3, 4] > read[3, 5] == 0


def test_people_in_significant_cells_are_not_counted_again_in_blocks():
    counts = np.zeros((8, 8))
    counts[1, 1], counts[6, 6] = 500.0, 300.0
    read = read_once(counts, 1.0, poolings=2)
    np.testing.assert_allclose(sorted(read[read > 0]), [300.0, 500.0])


# Times and places where little stands out ------------------------------------------------------


def test_a_time_at_which_nothing_stands_out_is_read_as_its_nearest_neighbour():
    points = np.clip([0.3, 0.7] + 0.03 * np.random.default_rng(1).standard_normal((400, 2)), 0, 1)
    silent, seen = np.zeros(256, dtype=np.int64), counts_of(points, 16)
    measure = estimate(np.stack([silent, seen, silent, silent]), 16, 4.0, np.full(4, 400.0), 2)
    assert measure.significant.tolist()[0] == measure.significant.tolist()[2] == 0
    assert measure.significant[1] > 0.9
    for i in (0, 2, 3):
        np.testing.assert_array_equal(measure.weights[i], measure.weights[1])
        np.testing.assert_array_equal(measure.centres[i], measure.centres[1])


def test_people_who_are_mostly_missed_are_looked_for_around_those_who_are_found():
    """Many in one cell stand out; the more around them do not, but they are not forgotten."""
    counts = np.zeros((16, 16), dtype=np.int64)
    counts[:9, :9] = 2
    counts[4, 4] = 60
    measure = estimate(counts.reshape(1, -1), 16, 0.2, np.array([220.0]), 2)
    assert 0 < measure.significant[0] < 0.5
    spread = measure.weights[0] @ ((measure.centres[0] - mean_of(measure, 0)) ** 2).sum(axis=1)
    assert 0.015 < spread < 0.12
    np.testing.assert_allclose(mean_of(measure, 0), 4.5 / 16, atol=0.05)


@pytest.mark.parametrize("share", [0.0, 0.15])
def test_people_too_thin_for_any_cell_are_kept_where_they_are_clear_together(share):
    """A tenth of the people all over the box: each cell of them is noise, all together are not."""
    rng, n, times = np.random.default_rng(0), 2000, 6
    found = []
    for _ in range(times):
        points = np.clip(0.5 + 0.03 * rng.standard_normal((n, 2)), 0, 1)
        thin = rng.random(n) < share
        points[thin] = rng.random((thin.sum(), 2))
        found.append(counts_of(points, 16))
    noise = laplace_integers(SeededSource(1), (times, 256), 0.3)
    measure = estimate(np.stack(found) + noise, 16, 0.3, np.full(times, float(n)), 2)
    far = (np.abs(measure.centres - 0.5).max(axis=2) > 0.2) * measure.weights
    assert far.sum(axis=1).mean() == pytest.approx(0.8 * share, abs=0.05)


# Islands --------------------------------------------------------------------------------------


def with_islands(group, lone):
    """People (5, 16, 16): a group that stays, and one cell elsewhere at the third time."""
    people = np.zeros((5, 16, 16))
    people[:, 3:6, 3:6] = group
    people[2, 12, 12] = lone
    return people


def test_an_island_that_noise_may_have_made_is_left_out_and_others_are_kept():
    chance = -2 * math.log(5 * 256)
    most = noise_quantile(1, 1.0, chance)
    for lone, kept in ((0.9 * most, False), (1.1 * most, True)):
        people = with_islands(20.0, lone)
        found = without_islands(people, 1.0)
        assert (found[2, 12, 12] > 0) == kept
        np.testing.assert_array_equal(found[:, :8], people[:, :8])


def test_what_stays_for_a_while_is_no_island_in_time():
    people = with_islands(20.0, 6.0)
    assert without_islands(people, 1.0)[2, 12, 12] == 0
    people[:, 12, 12] = 6.0
    np.testing.assert_array_equal(without_islands(people, 1.0), people)


def test_false_islands_are_as_rare_as_they_should_be():
    """Far from one group there is noise alone. Of 60 fits with 0.01 islands each more than 4 have
    some with a chance below 5e-4; if all significant cells are kept, about 28 have."""
    exact = np.zeros((20, 16, 16), dtype=np.int64)
    exact[:, :3, :3] = 40
    flat, false = exact.reshape(20, -1), 0
    for seed in range(60):
        measure = estimate(noisy(flat, 1.0, seed), 16, 1.0, np.full(20, 360.0), 2)
        far = (measure.centres.max(axis=2) > 8 / 16) & (measure.weights > 0.01)  # no thin tail
        false += int(far.any())
    assert false <= 4


def test_people_of_whom_nothing_is_found_are_left_as_they_are():
    nobody = np.zeros((2, 8, 8))
    np.testing.assert_array_equal(without_islands(nobody, 1.0), nobody)


# Where people are in them ---------------------------------------------------------------------


def measure_of(*grids):
    """The measure with these shares (side, ...) of each time."""
    cells = np.stack([np.indices(grid.shape).reshape(grid.ndim, -1).T for grid in grids])
    side = len(grids[0])
    weights = np.stack([grid.ravel() / grid.sum() for grid in grids])
    times = len(grids)
    return GridMeasure((cells + 0.5) / side, weights, np.full(times, 1 / side), np.ones(times))


def normal_shares(side, width, d=2, middle=0.53):
    """(side, ...) of a normal group, of a width in cells."""
    edges = np.linspace(0, 1, side + 1)
    along = np.diff(norm.cdf(edges, middle, width / side))
    shares = along
    for _ in range(d - 1):
        shares = shares[..., None] * along
    return np.asarray(shares)


def released(measure, bandwidth=0.0, t=0):
    """Density of people (n, ...) on the parts of cells of the whole box, noise included."""
    fine = smoothed(measure, np.full(len(measure.sides), bandwidth))
    side = round(1 / fine.sides[t])
    grid = np.zeros((side,) * fine.centres.shape[2])
    held = fine.weights[t] > 0
    grid[tuple((fine.centres[t, held] * side).astype(int).T)] = fine.weights[t, held]
    return gaussian_filter(grid, bandwidth * side, mode="reflect")


def in_cells(fine, side):
    parts = len(fine) // side
    for axis in range(fine.ndim):
        fine = np.add.reduceat(fine, np.arange(0, fine.shape[axis], parts), axis=axis)
    return fine


def variance(grid):
    """Along the first axis, in squared shares of the box, even inside the cells of the grid."""
    along = grid.reshape(len(grid), -1).sum(axis=1)
    at = (np.arange(len(grid)) + 0.5) / len(grid)
    return along @ (at - along @ at) ** 2 + 1 / (12 * len(grid) ** 2)


@pytest.mark.parametrize(("d", "side"), [(1, 32), (2, 16), (3, 10)])
@pytest.mark.parametrize("bandwidth", [0.0, 0.2, 0.5])
def test_masses_of_cells_are_kept_whatever_the_bandwidth(d, side, bandwidth):
    shares = normal_shares(side, 1.2, d)
    found = released(measure_of(shares), bandwidth / side)
    assert found.sum() == pytest.approx(1, abs=1e-4)
    assert np.abs(in_cells(found, side) - shares).sum() < 0.03 * d + 0.05 * d * (bandwidth > 0.3)


@pytest.mark.parametrize("d", [1, 2])
def test_a_group_is_nearly_as_narrow_as_it_is(d):
    """Even in their cells, people of a group of width w have h^2 / 6 more variance."""
    side, width = 16, 0.6
    shares = normal_shares(side, width, d)
    even = variance(shares) * side**2 - width**2
    ours = variance(released(measure_of(shares))) * side**2 - width**2
    assert even == pytest.approx(1 / 6, abs=0.01)
    assert abs(ours) < even / 3


def test_borders_of_cells_cannot_be_seen():
    """Changes at one of four parts are a quarter of all; of even cells they are all of them."""
    shares = normal_shares(16, 1.5)
    even = np.repeat(np.repeat(shares, 4, axis=0), 4, axis=1) / 16
    for grid, least, most in ((even, 0.99, 1.01), (released(measure_of(shares)), 0.24, 0.285)):
        change = np.abs(np.diff(grid, axis=0)).sum(axis=1)
        assert least < change[3::4].sum() / change.sum() < most


def test_people_who_are_even_in_the_box_stay_so_up_to_its_walls():
    found = released(measure_of(np.ones((8, 8))), 0.02)
    np.testing.assert_allclose(found * found.size, 1, atol=0.02)


def test_the_density_follows_the_neighbours_inside_a_cell():
    slope = np.arange(1.0, 9)[:, None] * np.ones(8)
    found = released(measure_of(slope)).sum(axis=1)
    assert (np.diff(found) > 0).all()
    inside = np.diff(found)[8:24]  # two cells from the walls
    assert inside.max() < 1.5 * inside.min()


@pytest.mark.parametrize(("d", "side"), [(2, 9), (3, 5)])
def test_a_domain_that_is_the_box_full_of_people_changes_nothing(d, side):
    """Short matrices along the axes stand for filters, which a domain needs."""
    measure = measure_of(np.random.default_rng(0).random((side,) * d) + 0.1)
    ours = smoothed(measure, np.array([0.02]))
    filtered = smoothed(measure, np.array([0.02]), lambda n: np.ones((n,) * d, bool))
    np.testing.assert_allclose(ours.weights, filtered.weights, rtol=1e-9)
    np.testing.assert_array_equal(ours.centres, filtered.centres)


def test_times_read_in_cells_of_different_sides_are_smoothed_by_their_own():
    fine, coarse = measure_of(normal_shares(16, 1.0)), measure_of(normal_shares(8, 1.0))
    apart = [released(one) for one in (fine, coarse)]
    centres, weights = np.full((2, 256, 2), 0.5), np.zeros((2, 256))
    for t, one in enumerate((fine, coarse)):
        centres[t, : one.weights.size], weights[t, : one.weights.size] = one.centres[0], one.weights
    both = GridMeasure(centres, weights, np.array([1 / 16, 1 / 8]), np.ones(2))
    for t, one in enumerate(apart):
        np.testing.assert_allclose(released(both, t=t), one)


def test_with_a_domain_nobody_is_outside_or_in_cells_without_people():
    shares = normal_shares(8, 1.0)
    shares[6:] = 0

    def inside(per_side):
        at = (np.arange(per_side) + 0.5) / per_side
        return (at[:, None] + at[None] < 1.1) & np.ones((per_side, per_side), bool)

    shares[~inside(8)] = 0
    measure = measure_of(shares)
    fine = smoothed(measure, np.full(1, 0.02), inside)
    held = fine.weights[0] > 0
    place = (fine.centres[0, held] * 32).astype(int)
    assert inside(32)[tuple(place.T)].all()
    assert (shares[tuple(place.T // 4)] > 0).all()
    found = np.zeros((32, 32))
    found[tuple(place.T)] = fine.weights[0, held]
    # where a cell has little room in the domain, normals cannot hold its share
    assert np.abs(in_cells(found, 8) - shares / shares.sum()).sum() < 0.2


def test_fewer_particles_have_wider_bandwidths_which_no_box_exceeds():
    measure = measure_of(np.ones((4, 4)))
    few, some, many = (bandwidths(measure, m)[0] for m in (1, 16, 1600))
    assert few == pytest.approx(1 / np.sqrt(12))
    assert some == pytest.approx(1 / 4)
    assert many == pytest.approx(some / 10)


def test_smoothing_is_as_wide_as_its_bandwidth_where_particles_are_few():
    """A group as wide as the noise of a bandwidth of two thirds of a cell: most is noise."""
    shares = normal_shares(16, 2 / 3, middle=8.5 / 16)
    narrow, wide = (smoothed(measure_of(shares), np.full(1, b / 16)) for b in (0.0, 2 / 3))
    spreads = [one.weights[0] @ (16 * one.centres[0, :, 0] - 8.5) ** 2 for one in (narrow, wide)]
    assert spreads[0] == pytest.approx(4 / 9, abs=0.03)
    assert spreads[1] < spreads[0] / 2


def measure_of_cells(times, side, d, held, padding=3, seed=0):
    """`held` random cells of a grid with random weights at each time, and padding of weight 0."""
    rng = np.random.default_rng(seed)
    centres = np.full((times, held + padding, d), 0.5)
    weights = np.zeros((times, held + padding))
    for i in range(times):
        flat = rng.choice(side**d, size=held, replace=False)
        centres[i, :held] = (np.stack(np.unravel_index(flat, (side,) * d), axis=1) + 0.5) / side
        weights[i, :held] = rng.dirichlet(np.ones(held))
    return GridMeasure(centres, weights, np.full(times, 1 / side), np.ones(times))


def beyond_cells(measure, particles, shares, side):
    """Weight of the particles in every cell of the grid, less that of the measure's cells."""
    d = particles.shape[2]
    differences = np.zeros((len(particles), *(side,) * d))
    for i, row in enumerate(differences):
        np.add.at(row, tuple(np.minimum((particles[i] * side).astype(int), side - 1).T), shares[i])
        np.subtract.at(row, tuple((measure.centres[i] * side).astype(int).T), measure.weights[i])
    return differences


@pytest.mark.parametrize(
    ("d", "side", "held", "m"), [(1, 64, 20, 20), (2, 9, 30, 64), (3, 5, 2, 99)]
)
def test_particles_share_the_weights_of_their_cells_and_stay_in_them(d, side, held, m):
    measure = measure_of_cells(5, side, d, held)
    particles, shares = placed(measure, m, np.random.default_rng(1))
    assert particles.shape == (5, m, d)
    assert shares.shape == (5, m)
    assert ((particles >= 0) & (particles <= 1)).all()
    assert (shares > 0).all()
    np.testing.assert_allclose(beyond_cells(measure, particles, shares, side), 0, atol=1e-12)


@pytest.mark.parametrize(("held", "m"), [(1, 2), (40, 50), (40, 400), (60, 40)])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_particles_vary_as_uniform_places_in_their_cells(held, m, d):
    """Var of a uniform place in a cell of side h is h^2 / 12; the grid tells where each began."""
    side, times = 8 if d > 1 else 64, 8_000 // (m * d)
    measure = measure_of_cells(times, side, d, held)
    particles, _ = placed(measure, m, np.random.default_rng(2))
    offset = particles * side - np.floor(particles * side) - 0.5  # in cells
    # relative error of a mean of squares of 8,000 uniform draws: sqrt(0.8 / 8,000) = 1 %
    assert (offset**2).mean() == pytest.approx(1 / 12, rel=0.045)


def test_more_cells_than_particles_are_drawn_in_proportion_to_their_weights():
    measure = measure_of_cells(6, 16, 2, 200)
    particles, shares = placed(measure, 50, np.random.default_rng(0))
    np.testing.assert_array_equal(shares, 1 / 50)
    missed = beyond_cells(measure, particles, shares, 16)
    assert np.abs(missed).max() < 1 / 50 + 1e-12  # up to one particle more or less


def test_a_measure_of_the_whole_box_fills_it():
    silent = estimate(np.zeros((3, 64), dtype=np.int64), 8, 1.0, np.ones(3), 2)
    particles, shares = placed(silent, 500, np.random.default_rng(0))
    np.testing.assert_allclose(shares, 1 / 500)
    np.testing.assert_allclose(particles.var(axis=(0, 1)), 1 / 12, rtol=0.1)


def in_a_heavy_tail(people, side, rng):
    """Counts of people whose distance from the middle has Student's law of two degrees."""
    away = 0.03 * rng.standard_normal((people, 2)) * np.sqrt(2 / rng.chisquare(2, (people, 1)))
    cells = (np.clip(0.5 + away, 0, 1 - 1e-9) * side).astype(int)
    return np.bincount(cells[:, 0] * side + cells[:, 1], minlength=side**2)


def test_a_thin_tail_is_as_heavy_and_as_long_as_its_shells_are_together():
    """No cell of it is significant: people beyond these distances, at eight times together."""
    rng, side, people = np.random.default_rng(0), 24, 10_000
    exact = np.stack([in_a_heavy_tail(people, side, rng) for _ in range(8)])
    middle = (np.indices((side, side)).reshape(2, -1).T + 0.5) / side
    distance = np.linalg.norm(middle - 0.5, axis=1)
    made = []
    for seed in range(10):
        noisy = exact + laplace_integers(SeededSource(seed), exact.shape, 0.5)
        found = estimate(noisy, side, 0.5, np.full(8, float(people)), 2, np.ones(7))
        off = np.linalg.norm(found.centres - 0.5, axis=2)
        made.append([(found.weights * (off > r)).sum(axis=1).mean() for r in (0.15, 0.22, 0.3)])
    truth = [exact[:, distance > r].sum() / exact.sum() for r in (0.15, 0.22, 0.3)]
    np.testing.assert_allclose(np.mean(made, axis=0), truth, rtol=0.05)
    nobody = [row[0] for row in made]  # a small group has no such tail, whatever the noise
    for seed in range(10):
        one = np.zeros_like(exact)
        one[:, side * side // 2 + side // 2] = people
        noisy = one + laplace_integers(SeededSource(100 + seed), exact.shape, 0.5)
        found = estimate(noisy, side, 0.5, np.full(8, float(people)), 2, np.ones(7))
        off = np.linalg.norm(found.centres - found.centres[0, 0], axis=2)
        nobody[seed] = float((found.weights * (off > 0.15)).sum(axis=1).mean())
    assert np.mean(nobody) < 0.003


def test_a_narrow_cloud_has_no_tail_of_the_wide_ones_beside_it():
    """Four times in a few cells, four with a tail that no cell of shows: shares beyond a fifth of
    the box, each within a quarter of its truth, which is 0 for the former."""
    rng, side, people = np.random.default_rng(2), 24, 10_000
    wide = [in_a_heavy_tail(people, side, rng) for _ in range(4)]
    narrow = np.zeros((4, side * side), dtype=int)
    narrow[:, side * side // 2 + side // 2 + np.array([-1, 0, 1])] = people // 3
    exact = np.concatenate([narrow, wide])
    middle = (np.indices((side, side)).reshape(2, -1).T + 0.5) / side
    truth = exact[4:, np.linalg.norm(middle - 0.5, axis=1) > 0.2].sum() / (4 * people)
    beyond = []
    for seed in range(10):
        noisy = exact + laplace_integers(SeededSource(seed), exact.shape, 0.5)
        found = estimate(noisy, side, 0.5, np.full(8, float(people)), 2, np.ones(7))
        off = np.linalg.norm(found.centres - 0.5, axis=2)
        shares = (found.weights * (off > 0.2)).sum(axis=1)
        beyond.append([shares[:4].mean(), shares[4:].mean()])
    none, some = np.mean(beyond, axis=0)
    assert none < truth / 4
    assert some == pytest.approx(truth, rel=0.25)


def test_a_thin_tail_has_no_gap_where_noise_hides_one_of_its_shells():
    """Who is far away was near as well: the mean share between two distances, at two times, is
    that of the people within 15 %, and no draw of noise (of 24) has less than half of it."""
    rng, side, people = np.random.default_rng(1), 24, 4_000
    exact = np.stack([in_a_heavy_tail(people, side, rng) for _ in range(2)])
    middle = (np.indices((side, side)).reshape(2, -1).T + 0.5) / side
    distance = np.linalg.norm(middle - 0.5, axis=1)
    between = []
    for seed in range(24):
        noisy = exact + laplace_integers(SeededSource(seed), exact.shape, 0.7)
        found = estimate(noisy, side, 0.7, np.full(2, float(people)), 2, np.ones(1))
        off = np.linalg.norm(found.centres - 0.5, axis=2)
        between.append(float((found.weights * (off > 0.2) * (off < 0.4)).sum(axis=1).mean()))
    truth = exact[:, (distance > 0.2) & (distance < 0.4)].sum() / exact.sum()
    assert np.mean(between) == pytest.approx(truth, rel=0.15)
    assert min(between) > truth / 2
