"""The guard: sensitivity, exactness without noise, the noise itself, and the ledger at the door.

Statistical tests state their false-alarm rate; their seeds are fixed.
"""

import math
import re
from collections import Counter
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import privtraj
from privtraj.base.errors import BudgetError, InputError
from privtraj.measures.likelihood import Mixture, mass_weight, person_vectors
from privtraj.privacy import noise
from privtraj.privacy import sums as sums_module
from privtraj.privacy.events import ChosenTimes
from privtraj.privacy.guard import CellCounts, Gaussian, Guard, Laplace, Release
from privtraj.privacy.ledger import Ledger
from privtraj.privacy.sums import ClippedSums, clip_to_lattice, lattice_unit

T, M, D = 3, 4, 2
WIDTH = M * D + M + 1
RICH = {"epsilon": 60.0, "delta": 1e-3}  # pays for anything these tests ask


def wild(rows, scale):
    """Vectors from denormal to overflowing, some infinite, some not numbers; of each row alone."""
    base = (rows - 0.45) @ jnp.sin(jnp.arange(D * WIDTH, dtype=jnp.float32)).reshape(D, WIDTH)
    vectors = jnp.sinh(scale * base) * jnp.where(rows[:, :1] < 0.3, 1e-37, 1.0)
    vectors = jnp.where(rows[:, 1:] > 0.8, jnp.inf, vectors)
    return jnp.where(rows[:, :1] > 0.95, jnp.nan, vectors)


def huge(rows, scale):
    """Every person far beyond the clip, in a direction of their own."""
    sign = jnp.where(rows @ jnp.cos(jnp.arange(D * WIDTH).reshape(D, WIDTH) * 1.7) > 0, 1.0, -1.0)
    return 1e6 * scale * sign


def mixture(bandwidth, seed=0):
    rng = np.random.default_rng(seed)
    return Mixture(
        jnp.asarray(rng.uniform(size=(T, M, D)), jnp.float32),
        jnp.asarray(rng.uniform(-4, 4, size=(T, M)), jnp.float32),
        jnp.full(T, bandwidth, jnp.float32),
    )


def make_guard(snapshots, source, **options):
    return snapshots.guarded(Guard, Ledger(**RICH), source, **options)


STATISTICS = {
    "person": (person_vectors, mixture),
    "wild": (wild, lambda scale: jnp.full(T, 30 * scale, jnp.float32)),
    "huge": (huge, lambda scale: jnp.full(T, scale, jnp.float32)),
}


@pytest.fixture(scope="module")
def integer_sums(snapshots_of, silent):
    """Function: the un-noised integer sums (T, WIDTH), through the guard's own door."""

    def compute(clouds, name, scale, clip, multiplier):
        statistic, parameters = STATISTICS[name]
        guard = make_guard(snapshots_of(clouds, D), silent())
        sums = guard.ask(
            Release(ClippedSums(statistic, parameters(scale), clip), Gaussian(multiplier), "test")
        )
        integers = sums / lattice_unit(clip, noise.GAUSSIAN_STD / multiplier, WIDTH)[:, None]
        assert np.isfinite(sums).all()
        np.testing.assert_allclose(integers, np.rint(integers), atol=1e-3)
        return np.rint(integers)

    return compute


# Sensitivity ----------------------------------------------------------------------------------

coordinate = st.sampled_from([0.0, 1.0, 0.5, 1e-7]) | st.floats(0, 1, width=32)
person = st.tuples(coordinate, coordinate)


@st.composite
def neighbourhoods(draw):
    """A dataset with empty, tiny and repeated bins, one bin and place in it, and two people."""
    pool = draw(st.lists(person, min_size=1, max_size=4))
    clouds = [draw(st.lists(st.sampled_from(pool), max_size=4)) for _ in range(T)]
    at = draw(st.integers(0, T - 1))
    place = draw(st.integers(0, len(clouds[at])))
    return clouds, at, place, draw(person), draw(person), draw(st.integers(0, T - 1))


def with_person(clouds, at, place, who):
    return [[*c[:place], who, *c[place:]] if i == at else c for i, c in enumerate(clouds)]


@pytest.mark.slow
@pytest.mark.parametrize("name", STATISTICS)
@settings(max_examples=40)
@given(
    neighbourhoods(),
    st.floats(-4, 1).map(lambda e: 10.0**e),
    st.floats(-0.5, 4).map(lambda e: 10.0**e),
    st.lists(st.floats(-6, 3).map(lambda e: 10.0**e), min_size=T, max_size=T).map(np.array),
)
def test_one_person_moves_the_stacked_sum_by_at_most_the_stated_bound(
    integer_sums, name, case, scale, multiplier, clip
):
    clouds, at, place, who, other, other_at = case
    bound = noise.GAUSSIAN_STD / multiplier

    def sums(data):
        return integer_sums(data, name, scale, clip, multiplier)

    without = sums(clouds)
    present = sums(with_person(clouds, at, place, who))
    instead = sums(with_person(clouds, other_at, 0, other))
    assert np.linalg.norm(present - without) <= bound
    most = 2 * bound if other_at == at else math.sqrt(2) * bound
    assert np.linalg.norm(present - instead) <= most
    untouched = [i for i in range(T) if i != at]
    np.testing.assert_array_equal(present[untouched], without[untouched])


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.floats(-300, 300),
    st.floats(-300, 300),
    st.floats(-8, 8),
    st.floats(0.01, 1e4),
    st.integers(0, 99),
)
def test_no_row_of_integers_is_longer_than_the_bound(small, large, clip, multiplier, seed):
    rng = np.random.default_rng(seed)
    exponent = rng.uniform(min(small, large), max(small, large), size=(16, WIDTH))
    vectors = rng.choice([-1.0, 0.0, 1.0], size=exponent.shape) * 10.0**exponent
    vectors[0, 0], vectors[1, 1], vectors[2, 2] = np.nan, np.inf, -np.inf
    c = np.array([10.0**clip])
    unit = lattice_unit(c, noise.GAUSSIAN_STD / multiplier, WIDTH)
    with jax.enable_x64(True):
        integers = np.asarray(clip_to_lattice(jnp.asarray(vectors), c[0], unit[0]))
    assert np.linalg.norm(integers.astype(float), axis=1).max() <= noise.GAUSSIAN_STD / multiplier
    assert not integers[:3].any()


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 5, 7, 20, 33])
def test_a_persons_integers_do_not_depend_on_their_place_among_the_rows(snapshots_of, silent, m):
    """Otherwise removing one person would move the rounding of everybody behind them."""
    rng = np.random.default_rng(m)
    rows = rng.uniform(size=(sums_module._layout().chunk, 3)).astype(np.float32)
    unit = np.full(1, 1e-7)
    parameters = Mixture(
        jnp.asarray(rng.uniform(size=(m, 3)), jnp.float32),
        jnp.zeros(m, jnp.float32),
        jnp.float32(0.1),
    )

    @jax.jit
    def integers(points):
        return clip_to_lattice(person_vectors(points, parameters), 0.1, unit[0])

    with jax.enable_x64(True):
        reference = np.asarray(integers(rows))
        for shift in (1, 3, 100):
            np.testing.assert_array_equal(
                np.asarray(integers(np.roll(rows, shift, axis=0))),
                np.roll(reference, shift, axis=0),
            )


# People with several records ------------------------------------------------------------------

values = st.sampled_from([-1e9, -2.0, 0.0, 0.5, 1.0, 3.0, 1e9]) | st.floats(-0.5, 1.5)
record = st.tuples(st.sampled_from([-7.0, 0.0, 0.4, 0.6, 1.0, 2.0, 99.0]), values, values)
CROWDS = {
    "spread": [(k % T, 0.1 * k, 1 - 0.1 * k) for k in range(10)],
    "one bin": [(1, 0.5, 0.5)] * 10,
    "one person in a bin": [(0, 0.0, 1.0), *[(2, 1.0, 0.0)] * 10],
    "outside": [(99, 1e9, -1e9)] * 5 + [(-99, -1e9, 1e9)] * 5,
}


# Clipping and the lattice ---------------------------------------------------------------------


@settings(max_examples=50)
@given(st.floats(1e-6, 1e6), st.floats(0.05, 1e3), st.integers(1, 10_000))
def test_the_lattice_unit_makes_the_bound_equal_noise_over_multiplier(clip, multiplier, width):
    unit = lattice_unit(np.array([clip]), noise.GAUSSIAN_STD / multiplier, width)[0]
    bound = clip / unit + math.sqrt(width) / 2 + 1
    assert bound == pytest.approx(noise.GAUSSIAN_STD / multiplier, rel=1e-12)


def test_a_sum_that_would_say_nothing_is_refused_before_it_is_charged(snapshots_of, silent):
    source = silent()
    guard = make_guard(snapshots_of([[(0.5, 0.5)]] * T), source)
    with pytest.raises(BudgetError, match="says nothing"):
        guard.ask(
            Release(
                ClippedSums(huge, jnp.ones(T, jnp.float32), np.ones(T)),
                Gaussian(noise.GAUSSIAN_STD),
                "test",
            )
        )
    assert guard.ledger.events == ()
    assert source.calls == 0


def test_clipping_is_joint_over_all_particles_of_a_person(integer_sums):
    """Clipped per particle, this person would weigh sqrt(M) times the clip or more."""
    clip = np.ones(T)
    sums = integer_sums([[(0.3, 0.6)], [], []], "huge", 1.0, clip, 1.0)
    length = np.linalg.norm(sums * lattice_unit(clip, noise.GAUSSIAN_STD / 1.0, WIDTH)[:, None])
    assert length == pytest.approx(1.0, rel=1e-5)
    assert np.count_nonzero(sums) == WIDTH


def test_rows_that_are_not_finite_count_as_zero_and_leave_the_others_alone(integer_sums):
    clip = np.ones(T)
    good, infinite, missing = (0.5, 0.5), (0.5, 0.9), (0.99, 0.5)
    alone = integer_sums([[good], [], []], "wild", 1.0, clip, 1.0)
    together = integer_sums([[infinite, good, missing], [], []], "wild", 1.0, clip, 1.0)
    assert alone.any()
    np.testing.assert_array_equal(alone, together)


@pytest.mark.slow
def test_integers_are_the_nearest_ones():
    vectors = np.random.default_rng(0).uniform(-1, 1, size=(50, WIDTH)) / 4
    with jax.enable_x64(True):
        integers = np.asarray(clip_to_lattice(jnp.asarray(vectors), 1.0, 1e-3))
    assert np.abs(integers - vectors / 1e-3).max() <= 0.5 + 1e-9


@pytest.mark.slow
def test_a_short_vector_is_not_stretched_to_the_clip(integer_sums):
    clip = np.full(T, 1e3)
    sums = integer_sums([[(0.3, 0.6)], [], []], "person", 0.1, clip, 1.0)
    vector = np.asarray(
        person_vectors(jnp.array([[0.3, 0.6]]), jax.tree.map(lambda a: a[0], mixture(0.1)))
    )
    unit = lattice_unit(clip, noise.GAUSSIAN_STD / 1.0, WIDTH)[0]
    np.testing.assert_allclose(sums[0] * unit, vector[0], atol=unit)


# Counts ---------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(neighbourhoods(), st.integers(1, 9))
def test_cells_of_a_bin_add_up_to_its_people(snapshots_of, silent, case, side):
    clouds = case[0]
    counts = make_guard(snapshots_of(clouds, D), silent()).ask(
        Release(CellCounts(side), Laplace(1.0), "test")
    )
    assert counts.shape == (T, side**D)
    np.testing.assert_array_equal(counts.sum(axis=1), [len(c) for c in clouds])


@pytest.mark.parametrize("side", [1, 2, 3, 7, 10, 64])
def test_the_walls_of_the_box_belong_to_its_outermost_cells(snapshots_of, silent, side):
    just_below = np.nextafter(np.float32(1), np.float32(0))
    corners = [(0, 0), (0, 1), (1, 0), (1, 1), (just_below, just_below)]
    counts = make_guard(snapshots_of([corners, []]), silent()).ask(
        Release(CellCounts(side), Laplace(1.0), "test")
    )
    grid = np.zeros((side, side), int)
    for x, y in corners:
        grid[-1 if x > 0.5 else 0, -1 if y > 0.5 else 0] += 1
    np.testing.assert_array_equal(counts[0].reshape(side, side), grid)


def test_the_first_axis_of_the_cells_is_the_first_feature(snapshots_of, silent):
    counts = make_guard(snapshots_of([[(0.9, 0.1)], []]), silent()).ask(
        Release(CellCounts(4), Laplace(1.0), "test")
    )
    assert np.argwhere(counts[0].reshape(4, 4)).tolist() == [[3, 0]]


def test_more_cells_than_can_be_counted_are_refused_before_anything_is_charged(
    snapshots_of, silent
):
    source = silent()
    guard = make_guard(snapshots_of([[(0.5,) * 10], []]), source)
    with pytest.raises(InputError, match="too many"):
        guard.ask(Release(CellCounts(100), Laplace(1.0), "test"))
    assert guard.ledger.events == ()
    assert source.calls == 0


# The ledger at the door -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def three_bins(snapshots_of):
    rng = np.random.default_rng(5)
    return snapshots_of([rng.uniform(size=(n, D)) for n in (7, 0, 1)], D)


def test_a_spent_budget_refuses_the_next_answer_and_keeps_the_first(watched, three_bins):
    guard, source = watched(three_bins, 1.0)
    guard.ask(Release(CellCounts(4), Laplace(0.9), "cells"))
    drawn = len(source.seen)
    with pytest.raises(BudgetError):
        guard.ask(Release(CellCounts(4), Laplace(0.9), "cells again"))
    assert len(source.seen) == drawn
    assert [event.what for event, _ in guard.ledger.events] == ["cells"]


def test_without_delta_counts_carry_no_slack_and_sums_are_refused(watched, three_bins):
    guard, source = watched(three_bins, 1.0, delta=0.0)
    guard.ask(Release(CellCounts(2), Laplace(0.5), "cells"))
    assert guard.ledger.tally.slack == 0
    source.seen.clear()
    with pytest.raises(BudgetError):
        guard.ask(
            Release(ClippedSums(huge, jnp.ones(T, jnp.float32), np.ones(T)), Gaussian(1e3), "sums")
        )
    assert source.seen == []


# Sampled sums ---------------------------------------------------------------------------------

ROWS = 40


class Coins:
    """Seeded words where coins are drawn, one for each of the people; no noise elsewhere."""

    private = False

    def __init__(self, people, words=None, seed=0):
        self._people, self._words, self._bits = people, words, noise.SeededSource(seed)

    def words(self, count):
        if count != self._people:
            return np.full(count, 1 << 63, dtype=np.uint64)
        return self._bits.words(count) if self._words is None else self._words


def one_hot(rows, width):
    """Which of ROWS people a row is; their places are k / ROWS."""
    return jax.nn.one_hot(jnp.rint(rows[:, 0] * ROWS).astype(int), ROWS) * width


@pytest.fixture(scope="module")
def numbered(snapshots_of):
    """ROWS people in two bins, each of whom can be told apart."""
    places = np.arange(ROWS)[:, None] / ROWS
    return snapshots_of([places[: ROWS // 4], places[ROWS // 4 :]], 1)


def batches(snapshots, source, rate, steps):
    """Who took part in each step: (steps, ROWS) of 0 and 1, from answers without noise."""
    guard = snapshots.guarded(Guard, Ledger(60.0, 1e-3), source)
    event = guard.at_rate(rate).sum_event(ROWS, 50.0, "step")
    guard, ones = guard.reserve(event, steps), np.ones(2)
    sums = [
        guard.ask(
            Release(ClippedSums(one_hot, jnp.ones(2, jnp.float32), ones), Gaussian(50.0), "step")
        ).sum(axis=0)
        for _ in range(steps)
    ]
    found = np.array(sums)
    np.testing.assert_allclose(found, np.rint(found), atol=1e-5)
    return np.rint(found).astype(int)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.05, 0.6])
def test_every_record_takes_part_by_a_coin_of_its_own(numbered, rate):
    """Frequencies, sizes of batches, and pairs of steps: each false alarm has rate 1e-6."""
    steps = 300
    part = batches(numbered, Coins(ROWS, seed=3), rate, steps)
    assert set(np.unique(part)) == {0, 1}
    variance = rate * (1 - rate)
    # each person takes part in a binomial number of steps
    people = ((part.sum(axis=0) - steps * rate) ** 2).sum() / (steps * variance)
    assert chi2.ppf(5e-7, ROWS) < people < chi2.isf(5e-7, ROWS)
    # each batch has a binomial number of people: a batch of fixed size would have no variance
    sizes = ((part.sum(axis=1) - ROWS * rate) ** 2).sum() / (ROWS * variance)
    assert chi2.ppf(5e-7, steps) < sizes < chi2.isf(5e-7, steps)
    # and who took part in the last step says nothing about this one
    centred = part - rate
    pairs = (centred[1:] * centred[:-1]).sum() / (variance * math.sqrt(ROWS * (steps - 1)))
    neighbours = (centred[:, 1:] * centred[:, :-1]).sum() / (
        variance * math.sqrt((ROWS - 1) * steps)
    )
    assert abs(pairs) < 4.9
    assert abs(neighbours) < 4.9


def words_below(rate):
    """The exact number of 64-bit words whose share is at most the rate."""
    return math.floor(Fraction(rate) * 2**64)


@pytest.mark.slow
@settings(max_examples=100)
@given(st.floats(1e-18, 1, exclude_max=True))
def test_the_coin_is_never_more_likely_than_the_rate(numbered, rate):
    most = words_below(rate)
    for word, expected in [(most, False), (most - 1, True), (2**64 - 1, False)]:
        if 0 <= word < 2**64:
            words = np.full(ROWS, word, dtype=np.uint64)
            guard = make_guard(numbered, Coins(ROWS, words)).at_rate(rate)
            guard._payer = Mock()
            question = ClippedSums(one_hot, jnp.ones(2, jnp.float32), np.ones(2))
            sums = guard.ask(Release(question, Gaussian(50.0), "coins"))
            assert np.rint(sums.sum(axis=0)).tolist() == [expected] * ROWS


def test_the_sum_is_that_of_the_batch_and_divided_by_nothing(numbered):
    words = np.random.default_rng(0).integers(0, 2**64, ROWS, dtype=np.uint64)
    expected = (words < words_below(0.3)).astype(int)
    assert 5 < expected.sum() < 20
    np.testing.assert_array_equal(batches(numbered, Coins(ROWS, words), 0.3, 1)[0], expected)
    lucky = np.where(np.arange(ROWS) == 7, 0, 2**64 - 1).astype(np.uint64)
    alone = batches(numbered, Coins(ROWS, lucky), 0.3, 1)[0]
    np.testing.assert_array_equal(alone, np.arange(ROWS) == 7)


def test_padding_never_takes_part(snapshots_of):
    """A bin that does not fill its chunk, at a rate at which every coin says yes."""
    guard = make_guard(snapshots_of([[(0.5,)] * 3, []]), Coins(3, np.zeros(3, dtype=np.uint64)))
    ones = np.ones(2)
    sums = guard.at_rate(0.999).ask(
        Release(ClippedSums(count_rows, jnp.ones(2, jnp.float32), ones), Gaussian(2.0), "rows")
    )
    np.testing.assert_allclose(sums, [[3], [0]], atol=1e-6)


def count_rows(rows, scale):
    return jnp.ones((rows.shape[0], 1)) * scale


def test_a_batch_without_people_is_noise_alone_and_paid_for(numbered):
    nobody = np.full(ROWS, 2**64 - 1, dtype=np.uint64)
    assert not batches(numbered, Coins(ROWS, nobody), 0.5, 1).any()
    ledger = Ledger(5.0, 1e-3)
    guard = numbered.guarded(Guard, ledger, noise.SeededSource(0))
    scale = jnp.ones(2, jnp.float32)
    sums = guard.at_rate(1e-9).ask(
        Release(ClippedSums(one_hot, scale, np.ones(2)), Gaussian(4.0), "step")
    )
    assert (sums != 0).all()
    # 80 draws of standard deviation 4: 25 % off is 3.2 standard errors, below 2e-3 over seeds
    assert sums.std() == pytest.approx(4.0, rel=0.25)
    ((event, times),) = ledger.events
    assert (event.rate, event.noise_multiplier, times) == (1e-9, 4.0, 1)
    assert event.slack >= sums.size * noise.GAUSSIAN_TV_PER_DRAW


def test_a_rate_that_is_no_probability_is_refused_before_anything_is_drawn(numbered, silent):
    source = silent()
    guard = make_guard(numbered, source)
    for rate in (0.0, -0.1, 1.5, math.nan):
        with pytest.raises(InputError, match="rate"):
            guard.at_rate(rate).ask(
                Release(
                    ClippedSums(one_hot, jnp.ones(2, jnp.float32), np.ones(2)),
                    Gaussian(4.0),
                    "step",
                )
            )
    assert source.calls == 0
    assert guard.ledger.events == ()


# Reserved sums and chosen times ---------------------------------------------------------------


class Generous(Ledger):
    """Pays for anything, so that many choices can be watched."""

    def spend(self, event, times=1):
        self.events = (*self.events, (event, times))


def test_a_reservation_is_paid_for_at_once_and_hands_out_exactly_that(watched, three_bins):
    guard, source = watched(three_bins, 5.0)
    event = guard.at_rate(0.5).sum_event(WIDTH, 50.0, "step")
    part = guard.reserve(event, 2)
    assert guard.ledger.events == ((event, 2),)
    assert source.seen == []
    spent = guard.ledger.spent()

    def ask(what="step", multiplier=50.0, rate=0.5):
        sampled = part.at_rate(rate)
        return sampled.ask(
            Release(
                ClippedSums(huge, jnp.ones(T, jnp.float32), np.ones(T)), Gaussian(multiplier), what
            )
        )

    for wrong in ({"what": "other"}, {"multiplier": 49.0}, {"rate": 0.4}, {"rate": 1.0}):
        with pytest.raises(BudgetError, match="only 2 more"):
            ask(**wrong)
    with pytest.raises(BudgetError, match="paid for in advance"):
        part.ask(Release(CellCounts(2), Laplace(0.01), "counts"))
    assert source.seen == []
    ask()
    ask()
    drawn = len(source.seen)
    with pytest.raises(BudgetError, match="only 0 more"):
        ask()
    assert len(source.seen) == drawn
    assert guard.ledger.spent() == spent


@pytest.mark.parametrize(("bins", "chosen"), [(5, 2), (4, 3), (3, 1)])
def test_chosen_times_are_a_uniform_set(snapshots_of, bins, chosen):
    """Chi-square over all sets, false-alarm rate 1e-6; sorted, and without repetition."""
    snapshots = snapshots_of([[(0.5,)]] * bins)
    guard = snapshots.guarded(Guard, Generous(1.0, 1e-5), noise.SeededSource(2))
    draws = 600
    sets = Counter(
        tuple(guard.choose_times(chosen, 3, 2.0, "some", 1)[0].tolist()) for _ in range(draws)
    )
    possible = list(combinations(range(bins), chosen))
    assert set(sets) == set(possible)
    expected = draws / len(possible)
    found = sum((sets[s] - expected) ** 2 / expected for s in possible)
    assert found < chi2.isf(1e-6, len(possible) - 1)


def test_the_guard_of_chosen_times_asks_for_their_rows_alone(snapshots_of, silent):
    clouds = [np.full((k + 1, 1), k / 10) for k in range(5)]
    snapshots = snapshots_of(clouds, 1)
    guard = snapshots.guarded(Guard, Generous(1.0, 1e-5), noise.SeededSource(1))
    for _ in range(10):
        chosen, part = guard.choose_times(2, 1, 2.0, "some", 1)
        assert part.n_times == 2
        rows = part._view.rows.in_slabs(part.shape.windows)
        assert rows.slabs.tolist() == [0] * (chosen[0] + 1) + [1] * (chosen[1] + 1)
        expected = np.concatenate([clouds[k] for k in chosen])
        np.testing.assert_array_equal(rows.points, expected.astype(np.float32))
    part._view.source = silent()
    sums = part.ask(
        Release(
            ClippedSums(count_rows, jnp.ones(2, jnp.float32), np.ones(2)), Gaussian(2.0), "some"
        )
    )
    np.testing.assert_allclose(sums[:, 0], chosen + 1, atol=1e-6)
    assert (
        guard._view.rows.in_slabs(guard.shape.windows).slabs.tolist().count(4) == 5
    )  # it still has all


def test_named_times_are_free_and_what_is_asked_of_them_is_not(snapshots_of, silent):
    clouds = [np.full((k + 1, 1), k / 10) for k in range(5)]
    guard = snapshots_of(clouds, 1).guarded(Guard, Ledger(20.0, 1e-5), silent())
    part = guard.at_times(np.array([4, 0]))
    assert guard.ledger.events == ()
    sums = part.ask(
        Release(
            ClippedSums(count_rows, jnp.ones(2, jnp.float32), np.ones(2)), Gaussian(2.0), "some"
        )
    )
    np.testing.assert_allclose(sums[:, 0], [1, 5], atol=1e-6)
    assert part.ask(Release(CellCounts(1), Laplace(0.5), "heads")).tolist() == [[1], [5]]
    assert [event.what for event, _ in guard.ledger.events] == ["some", "heads"]
    guard._view.source = noise.SeededSource(0)  # the silent one has no permutations
    drawn, _ = guard.at_times(np.arange(1, 4)).choose_times(2, 1, 5.0, "drawn", 1)
    assert guard.ledger.events[-1][0].share == 2 / 3  # of the three that were named
    assert drawn.max() < 3
    for wrong in ([], [-1], [5]):
        with pytest.raises(InputError, match="numbered from 0 to 4"):
            guard.at_times(np.array(wrong))


def test_chosen_times_are_paid_for_as_one_mixture_before_they_are_drawn(watched, three_bins):
    guard, source = watched(three_bins, 5.0)
    chosen, part = guard.at_rate(0.5).choose_times(2, WIDTH, 50.0, "some", 3)
    assert set(source.seen) == {1}
    ((event, times),) = guard.ledger.events
    assert isinstance(event, ChosenTimes)
    assert (event.share, event.times, event.release.rate, times) == (2 / 3, 3, 0.5, 1)
    assert event.slack == pytest.approx(3 * 2 * WIDTH * noise.GAUSSIAN_TV_PER_DRAW)
    spent = guard.ledger.spent()
    for _ in range(3):
        sums = part.ask(
            Release(ClippedSums(huge, jnp.ones(2, jnp.float32), np.ones(2)), Gaussian(50.0), "some")
        )
        assert sums.shape == (2, WIDTH)
    with pytest.raises(BudgetError, match="only 0 more"):
        part.ask(
            Release(ClippedSums(huge, jnp.ones(2, jnp.float32), np.ones(2)), Gaussian(50.0), "some")
        )
    with pytest.raises(BudgetError, match="paid for in advance"):
        part.ask(Release(CellCounts(2), Laplace(0.01), "counts"))
    assert guard.ledger.spent() == spent
    assert len(chosen) == 2


def test_no_more_times_than_there_are_can_be_chosen_and_nothing_is_charged(watched, three_bins):
    guard, source = watched(three_bins, 0.1)
    for n in (0, T + 1):
        with pytest.raises(InputError, match="share"):
            guard.at_rate(0.5).choose_times(n, WIDTH, 50.0, "some", 3)
    with pytest.raises(BudgetError):
        guard.at_rate(0.5).choose_times(2, WIDTH, 2.0, "some", 3)
    assert source.seen == []
    assert guard.ledger.events == ()


def test_equal_words_are_drawn_again(three_bins):
    """Ties would be broken by position, and favour early bins."""

    class Tied:
        def __init__(self):
            self.draws = [[7, 7, 1], [5, 9, 5], [3, 1, 2]]

        def words(self, count):
            return np.array(self.draws.pop(0), dtype=np.uint64)

    tied = Tied()
    guard = three_bins.guarded(Guard, Ledger(**RICH), tied)
    assert guard.choose_times(1, WIDTH, 20.0, "some", 3)[0].tolist() == [1]
    assert not tied.draws


@pytest.mark.parametrize(
    ("parameters", "clip"), [(T, 1), (1, T), (1, 1), (T, T + 1), (T + 1, T), (T, ()), (T, (T, 1))]
)
def test_sums_of_other_shapes_are_refused_before_they_are_charged(
    three_bins, silent, parameters, clip
):
    """Broadcast, one noise would cover several bins, and their difference would be exact."""
    source = silent()
    guard = make_guard(three_bins, source)
    with pytest.raises(InputError, match="for each"):
        guard.ask(
            Release(
                ClippedSums(huge, jnp.ones(parameters, jnp.float32), np.ones(clip)),
                Gaussian(5.0),
                "sums",
            )
        )
    assert source.calls == 0
    assert guard.ledger.events == ()


# Noise ----------------------------------------------------------------------------------------


# Exactness ------------------------------------------------------------------------------------


def reference_sums(clouds, mix, clip):
    """Clipped sums in plain NumPy float64."""
    from privtraj.measures.likelihood import KAPPA_SPREAD

    mass = np.asarray(mass_weight(mix), np.float64)
    total = []
    for i, points in enumerate(clouds):
        y = np.asarray(points, np.float32).astype(np.float64).reshape(-1, D)
        x, b = np.asarray(mix.particles[i], np.float64), np.asarray(mix.bias[i], np.float64)
        sigma = float(mix.bandwidth[i])
        distance = ((x[None] - y[:, None]) ** 2).sum(-1)
        exponent = -distance / (2 * sigma**2) + b
        w = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        w /= w.sum(axis=1, keepdims=True)
        u = (w[:, :, None] * (x[None] - y[:, None])).reshape(len(y), M * D)
        s = KAPPA_SPREAD * sigma * ((w * distance).sum(1) / (D * sigma**2) - 1)
        v = np.concatenate([u, mass[i] * w, s[:, None]], axis=1)
        norm = np.linalg.norm(v, axis=1, keepdims=True)
        total.append((v * np.minimum(1, clip[i] / norm)).sum(axis=0))
    return np.stack(total)


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(11)
    return [rng.uniform(size=(n, D)).astype(np.float32) for n in (600, 0, 257)]


def test_without_noise_the_sums_are_those_of_plain_numpy(crowd, snapshots_of, silent):
    mix, clip, multiplier = mixture(0.15), np.array([0.05, 0.1, 0.3]), 1.5
    guard = make_guard(snapshots_of(crowd, D), silent())
    sums = guard.ask(Release(ClippedSums(person_vectors, mix, clip), Gaussian(multiplier), "test"))
    unit = lattice_unit(clip, noise.GAUSSIAN_STD / multiplier, WIDTH)[:, None]
    people = np.array([len(c) for c in crowd])[:, None]
    # half a unit of rounding for each person, and float32 inside the statistic
    slack = people * (0.5 * unit + 2e-6 * clip[:, None])
    assert (np.abs(sums - reference_sums(crowd, mix, clip)) <= slack).all()


@pytest.mark.slow
def test_the_answer_does_not_depend_on_the_size_of_chunks(crowd, snapshots_of, silent, monkeypatch):
    mix, clip = mixture(0.15), np.array([0.05, 0.1, 0.3])

    def sums():
        guard = make_guard(snapshots_of(crowd, D), silent())
        return guard.ask(Release(ClippedSums(person_vectors, mix, clip), Gaussian(1.5), "test"))

    first = sums()
    assert max(len(c) for c in crowd) > sums_module._layout().chunk
    other = sums_module._Layout(100, 4, 2**10)
    monkeypatch.setattr(sums_module, "_layout", lambda: other)
    second = sums()
    # the shape of a chunk may change the last bits of float32, which is why it is always the same
    assert (np.abs(first - second) <= 600 * 1e-7 * clip[:, None]).all()


def test_the_answer_does_not_depend_on_the_order_of_people(crowd, snapshots_of, silent):
    mix, clip = mixture(0.15), np.array([0.05, 0.1, 0.3])

    def sums(clouds):
        guard = make_guard(snapshots_of(clouds, D), silent())
        return guard.ask(Release(ClippedSums(person_vectors, mix, clip), Gaussian(1.5), "test"))

    shuffled = [np.random.default_rng(1).permutation(c) for c in crowd]
    np.testing.assert_array_equal(sums(crowd), sums(shuffled))


# The only door --------------------------------------------------------------------------------


def test_no_other_module_touches_the_raw_rows():
    root = Path(privtraj.__file__).parent
    allowed = {root / "data" / "snapshots.py", root / "privacy" / "guard.py"}
    raw = re.compile(r"\.\s*_(rows|view)\b(?!\()|[\"']_(rows|view)[\"']")
    assert raw.search((root / "privacy" / "guard.py").read_text())
    offenders = [
        str(file.relative_to(root))
        for file in sorted(root.rglob("*.py"))
        if file not in allowed and raw.search(file.read_text())
    ]
    assert offenders == []


@pytest.mark.parametrize("scale", [1.0, 8.0])
def test_counts_that_are_taken_so_many_times_have_so_many_times_the_noise(scale):
    drawn = Laplace(2.0).draw(noise.SeededSource(0), (2000,), scale)
    same = noise.laplace_integers(noise.SeededSource(0), (2000,), 2.0 / scale)
    np.testing.assert_array_equal(drawn, same)
