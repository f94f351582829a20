"""Strength from neighbouring times: masses that travel little."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.special import logsumexp, rel_entr

import privtraj as pt
from privtraj.measures import over_time
from privtraj.measures.over_time import GridMeasure, pooled_over_time

J = 15  # cells of a group
PEOPLE = 150.0  # effective


def measure_of(centres, weights):
    centres, weights = np.asarray(centres, float), np.asarray(weights, float)
    times = len(weights)
    return GridMeasure(centres, weights, np.full(times, 0.02), np.linspace(0.5, 1, times))


def two_groups(shares, apart):
    """The same cells at all times, in two groups; shares (T,) are those of the second group."""
    rng = np.random.default_rng(0)
    around = 0.5 + np.repeat([[-apart / 2, 0], [apart / 2, 0]], J, axis=0)
    centres = around + 0.04 * rng.uniform(-1, 1, size=(2 * J, 2))
    inside = rng.dirichlet(5 * np.ones(J), size=2)
    weights = np.stack([np.r_[(1 - s) * inside[0], s * inside[1]] for s in shares])
    return measure_of(np.tile(centres, (len(shares), 1, 1)), weights)


def shares_of(measure):
    return measure.weights[:, J:].sum(axis=1)


def pooled_shares(shares, apart, gaps=None, time_coupling=1.0, people=PEOPLE):
    gaps = np.ones(len(shares) - 1) if gaps is None else np.asarray(gaps, float)
    return shares_of(pooled_over_time(two_groups(shares, apart), gaps, people, time_coupling))


def anything(rng, times, held, d):
    """Cells that differ from time to time, weights over many orders of magnitude, padding."""
    centres = np.concatenate([rng.uniform(size=(times, held, d)), np.full((times, 2, d), 0.5)], 1)
    weights = np.concatenate(
        [rng.uniform(size=(times, held)) ** 8 + 1e-12, np.zeros((times, 2))], 1
    )
    return measure_of(centres, weights / weights.sum(axis=1, keepdims=True))


def assert_sound(before, after):
    np.testing.assert_array_equal(after.centres, before.centres)
    np.testing.assert_array_equal(after.sides, before.sides)
    np.testing.assert_array_equal(after.significant, before.significant)
    assert np.isfinite(after.weights).all()
    assert (after.weights >= 0).all()
    assert (after.weights[before.weights == 0] == 0).all()
    np.testing.assert_allclose(after.weights.sum(axis=1), 1.0, rtol=1e-9)


# Always ---------------------------------------------------------------------------------------


def test_no_time_coupling_changes_nothing():
    measure = anything(np.random.default_rng(0), 4, 9, 2)
    assert pooled_over_time(measure, np.ones(3), PEOPLE, 0) is measure


@pytest.mark.parametrize("times", [2, 3, 9])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_weights_stay_a_distribution_on_the_same_cells(times, d):
    measure = anything(np.random.default_rng(d), times, 40, d)
    before = measure.weights.copy()
    for time_coupling in (0.1, 1.0, 10.0):
        assert_sound(measure, pooled_over_time(measure, np.ones(times - 1), PEOPLE, time_coupling))
    np.testing.assert_array_equal(measure.weights, before)


@st.composite
def measures(draw):
    times, held, d = draw(st.integers(2, 5)), draw(st.integers(1, 8)), draw(st.integers(1, 3))
    place = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0])
    weight = st.floats(1e-12, 1) | st.sampled_from([1e-12, 1.0])
    gap = st.sampled_from([1e-9, 1e-3, 1.0, 1e3])
    centres = draw(arrays(np.float64, (times, held, d), elements=place))
    weights = draw(arrays(np.float64, (times, held), elements=weight))
    measure = measure_of(centres, weights / weights.sum(axis=1, keepdims=True))
    return measure, draw(arrays(np.float64, times - 1, elements=gap))


@settings(max_examples=60)
@given(measures(), st.floats(1, 1e7), st.floats(1e-3, 10))
def test_any_measure_and_any_gaps_give_finite_distributions(drawn, people, time_coupling):
    measure, gaps = drawn
    assert_sound(measure, pooled_over_time(measure, gaps, people, time_coupling))


@pytest.mark.parametrize("seed", range(40))
def test_no_product_of_scalings_vanishes(seed):
    """Shares and gaps that differ by twelve digits, in few cells, on either side of the box."""
    rng = np.random.default_rng(seed)
    times, held = rng.integers(3, 6), rng.integers(2, 9)
    centres = rng.choice([0.0, 0.5, 1.0, 0.3], (times, held, 2))
    weights = rng.choice([1e-12, 1e-6, 1.0], (times, held))
    measure = measure_of(centres, weights / weights.sum(axis=1, keepdims=True))
    gaps = rng.choice([1e-9, 1e-3, 1.0, 1e3], times - 1)
    assert_sound(measure, pooled_over_time(measure, gaps, 10 ** rng.uniform(0, 7), 3.0))


@pytest.mark.parametrize("gaps", [[1e-9, 1, 1, 1], [1, 1e-3, 40, 1e-6], [1e-9] * 4, [1e9] * 4])
def test_unequal_gaps_and_tiny_ones_are_no_trouble(gaps):
    measure = two_groups(np.array([0.3, 0.35, 0.25, 0.6, 0.55]), 0.4)
    assert_sound(measure, pooled_over_time(measure, np.array(gaps), PEOPLE))


def test_the_unit_of_time_does_not_matter():
    measure, gaps = anything(np.random.default_rng(1), 5, 20, 2), np.array([1.0, 3.0, 0.2, 1.0])
    days, seconds = (pooled_over_time(measure, unit * gaps, PEOPLE) for unit in (1, 86_400))
    np.testing.assert_allclose(days.weights, seconds.weights, rtol=1e-9)


# What changes and what does not ---------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize(("time_coupling", "moved"), [(0.1, 0.01), (1.0, 0.03), (5.0, 0.1)])
def test_measures_that_agree_at_all_times_hardly_change(d, time_coupling, moved):
    one = anything(np.random.default_rng(d), 1, 60, d)
    same = measure_of(np.tile(one.centres, (8, 1, 1)), np.tile(one.weights, (8, 1)))
    after = pooled_over_time(same, np.ones(7), PEOPLE, time_coupling)
    assert np.abs(after.weights - same.weights).sum(axis=1).max() / 2 < moved


@pytest.mark.slow
def test_shares_that_fluctuate_by_noise_get_closer_to_the_truth():
    """Mean absolute errors of 15 series of 12 times about the same share: at least halved."""
    rng = np.random.default_rng(4)
    noisy = 0.3 + 0.06 * rng.standard_normal((15, 12))
    people = 0.3 * 0.7 / 0.06**2
    smooth = np.stack([pooled_shares(row, apart=0.5, people=people) for row in noisy])
    assert np.abs(smooth - 0.3).mean() < 0.5 * np.abs(noisy - 0.3).mean()
    assert abs(smooth.mean() - noisy.mean()) < 0.01


def test_a_share_that_leaves_for_one_time_only_is_brought_back():
    shares = np.array([0.3, 0.3, 0.3, 0.45, 0.3, 0.3, 0.3])  # two deviations of 50 people
    assert pooled_shares(shares, apart=0.5, people=50)[3] < 0.34


@pytest.mark.parametrize("times", [4, 8, 14])
def test_a_lasting_change_of_shares_is_kept(times):
    late = np.arange(times) >= times // 2
    after = pooled_shares(np.where(late, 0.7, 0.2), apart=0.3, people=1000)
    assert after[~late].max() < 0.25
    assert after[late].min() > 0.65


def test_two_times_move_towards_each_other_and_further_the_more_time_coupling():
    shares = np.array([0.4, 0.5])
    apart = [np.diff(pooled_shares(shares, 0.3, time_coupling=s))[0] for s in (0.1, 0.5, 2.0)]
    assert 0.1 > apart[0] > apart[1] > apart[2] > -1e-3
    assert pooled_shares(shares, 0.3).mean() == pytest.approx(0.45, abs=0.01)


@pytest.mark.parametrize("far", [0.2, 0.6])
def test_people_who_move_are_not_outweighed_by_people_who_stay(far):
    still = two_groups(np.full(8, 0.5), 0.8)
    centres = still.centres.copy()
    centres[:, J:, 1] += np.linspace(-far / 2, far / 2, 8)[:, None]
    after = shares_of(pooled_over_time(measure_of(centres, still.weights), np.ones(7), PEOPLE))
    np.testing.assert_allclose(after, 0.5, atol=0.06)


def test_near_times_share_more_than_distant_ones():
    first, middle, last = pooled_shares(np.array([0.3, 0.5, 0.7]), 0.4, gaps=[0.2, 1.8], people=30)
    assert abs(middle - first) < 0.8 * (last - middle)


@pytest.mark.parametrize("apart", [0.3, 0.8])
def test_time_has_no_direction_and_a_step_stays_a_step(apart):
    shares = np.array([0.3] * 6 + [0.6] * 6)
    after = pooled_shares(shares, apart)
    back = pooled_shares(shares[::-1], apart)[::-1]
    np.testing.assert_allclose(after, back, atol=0.03)
    assert (np.diff(after) > -0.03).all()


def test_the_more_people_the_less_is_pooled():
    shares = np.array([0.3, 0.3, 0.3, 0.45, 0.3, 0.3, 0.3])
    bumps = [pooled_shares(shares, 0.5, people=n)[3] for n in (50, 500, 50_000)]
    assert bumps == sorted(bumps)
    assert bumps[0] < 0.34
    assert bumps[-1] > 0.41


@pytest.mark.parametrize("seed", range(5))
def test_people_who_go_to_and_fro_are_not_smoothed_away(seed):
    """A swing far beyond chance comes back; as much noise around no swing is smoothed as before."""
    rng, people = np.random.default_rng(seed), 600
    swing = 0.5 + 0.4 * np.sin(np.arange(20) * 2 * np.pi / 7)
    left = []
    for truth in (swing, np.full(20, 0.5)):
        noisy = rng.binomial(people, truth) / people
        after = pooled_shares(noisy, apart=0.4, people=people)
        left.append(np.mean((after - truth) ** 2) / np.mean((noisy - truth) ** 2))
    assert left[0] < 2.5  # with the price for a share that stays, 26 to 62
    assert left[1] < 0.5


@pytest.mark.parametrize("d", [1, 2, 3])
def test_details_inside_a_block_keep_their_proportions(d):
    rng = np.random.default_rng(d)
    side = over_time.BLOCKS_PER_SIDE[d]
    middles = (rng.choice(side, size=(6, d)) + 0.5) / side
    centres = np.repeat(np.unique(middles, axis=0), 4, axis=0)
    centres = centres + 0.4 / side * rng.uniform(-1, 1, size=centres.shape)
    weights = rng.dirichlet(np.ones(len(centres)), size=5)
    measure = measure_of(np.tile(centres, (5, 1, 1)), weights)
    factor = pooled_over_time(measure, np.ones(4), PEOPLE).weights / weights
    by_block = factor.reshape(5, -1, 4)
    np.testing.assert_allclose(by_block, np.repeat(by_block[:, :, :1], 4, axis=2), rtol=1e-9)
    assert np.ptp(factor) > 1e-3  # and yet something was pooled


# The solution ---------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [2, 3])
def test_marginals_are_those_of_the_least_objective(times):
    """sum_t KL(a_t | noisy_t) + s KL(R | prod K_t) over chains R with marginals a_t; s = 1/p - 1.

    The oracle minimises over all of R, (3,) * T numbers, without scalings or messages.
    """
    rng, power = np.random.default_rng(times), 0.6
    noisy = list(rng.dirichlet(np.ones(3), size=times))
    kernels = [np.exp(-rng.uniform(0, 3, size=(3, 3))) for _ in range(times - 1)]
    reference = np.ones((3,) * times)
    for t, kernel in enumerate(kernels):
        reference = reference * kernel.reshape((1,) * t + (3, 3) + (1,) * (times - t - 2))

    def marginals(logits):
        chain = np.exp(logits - logsumexp(logits)).reshape(reference.shape)
        axes = range(times)
        return chain, [chain.sum(axis=tuple(k for k in axes if k != t)) for t in axes]

    def objective(logits):
        chain, sums = marginals(logits)
        fit = sum(rel_entr(a, b).sum() for a, b in zip(sums, noisy, strict=True))
        return fit + (1 / power - 1) * rel_entr(chain, reference).sum()

    best = minimize(objective, np.zeros(reference.size), method="BFGS").x
    ones = [np.ones(3) for _ in noisy]
    solved = over_time._scaled(noisy, kernels, power, ones, 200)
    np.testing.assert_allclose(solved, marginals(best)[1], atol=1e-4)


def test_people_who_are_one_to_a_cell_are_seen_to_move_in_blocks():
    """Groups in three features and much budget: with cells alone both halves were one cloud."""
    rng, n = np.random.default_rng(0), 2000
    when, group = rng.random(n), rng.integers(3, size=n)
    middle = np.stack([0.3 + 0.17 * group, 0.6 - 0.1 * group, 0.3 + 0.3 * when], axis=1)
    places = np.clip(middle + rng.normal(size=(n, 3)) * [0.06, 0.08, 0.1], 0, 1)
    snapshots = pt.Snapshots.from_arrays(when, places, bounds=[(0, 1)] * 3, time_range=(0, 1))
    model = pt.TrajectorySynthesizer(8.0, 1e-5, seed=1, windows=2).fit(snapshots)
    ends = model.sample(1000, times=[0, 1], seed=1).values[:, :, 2].mean(axis=0)
    np.testing.assert_allclose(ends, [0.3, 0.6], atol=0.07)
