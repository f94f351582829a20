"""The guard: sensitivity, exactness without noise, the noise itself, and the ledger at the door."""

import math
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privtraj
from privtraj.dynamics.likelihood import Mixture, person_vectors
from privtraj.errors import BudgetError, InputError
from privtraj.privacy import guard as guard_module
from privtraj.privacy import noise
from privtraj.privacy.accounting import GaussianSum, LaplaceCounts
from privtraj.privacy.guard import Guard, clip_to_lattice, lattice_unit
from privtraj.privacy.ledger import Ledger

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


def wide(rows, scale):
    """Two thousand coordinates, all zero."""
    return jnp.zeros((rows.shape[0], 2000)) * scale


def mixture(bandwidth, seed=0):
    rng = np.random.default_rng(seed)
    return Mixture(
        jnp.asarray(rng.uniform(size=(T, M, D)), jnp.float32),
        jnp.asarray(rng.uniform(-4, 4, size=(T, M)), jnp.float32),
        jnp.full(T, bandwidth, jnp.float32),
    )


def make_guard(snapshots, source, **options):
    return Guard(snapshots, Ledger(**RICH), source, **options)


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
        sums = guard.sums(statistic, parameters(scale), clip, multiplier, "test")
        integers = sums / lattice_unit(clip, multiplier, WIDTH)[:, None]
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


def test_the_bound_is_attained_up_to_rounding_by_a_person_beyond_the_clip(integer_sums):
    clip = np.array([1e-3, 1.0, 50.0])
    for at in range(T):
        one = [[(0.2, 0.4)] if i == at else [] for i in range(T)]
        moved = np.linalg.norm(integer_sums(one, "huge", 1.0, clip, 2.0))
        bound = noise.GAUSSIAN_STD / 2.0
        assert bound - 2 * (math.sqrt(WIDTH) + 1) <= moved <= bound


def test_opposite_people_attain_the_replace_one_bound_of_twice_as_much(snapshots_of, silent):
    clip = np.ones(T)

    def sums(x):
        guard = make_guard(snapshots_of([[(x, 0.5)], [], []]), silent())
        scale = jnp.ones(T, jnp.float32)
        return guard.sums(_signed, scale, clip, 2.0, "test") / lattice_unit(clip, 2.0, 3)[:, None]

    moved = np.linalg.norm(sums(0.0) - sums(1.0))
    bound = noise.GAUSSIAN_STD / 2.0
    assert 2 * bound - 10 <= moved <= 2 * bound


def _signed(rows, scale):
    return 1e9 * scale * jnp.where(rows[:, :1] > 0.5, 1.0, -1.0) * jnp.ones((1, 3))


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
    unit = lattice_unit(c, multiplier, WIDTH)
    with jax.enable_x64(True):
        integers = np.asarray(clip_to_lattice(jnp.asarray(vectors), c[0], unit[0]))
    assert np.linalg.norm(integers.astype(float), axis=1).max() <= noise.GAUSSIAN_STD / multiplier
    assert not integers[:3].any()


@pytest.mark.parametrize("m", [2, 5, 7, 20, 33])
def test_a_persons_integers_do_not_depend_on_their_place_among_the_rows(snapshots_of, silent, m):
    """Otherwise removing one person would move the rounding of everybody behind them."""
    rng = np.random.default_rng(m)
    rows = rng.uniform(size=(guard_module.CHUNK, 3)).astype(np.float32)
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


# Clipping and the lattice ---------------------------------------------------------------------


@settings(max_examples=50)
@given(st.floats(1e-6, 1e6), st.floats(0.05, 1e3), st.integers(1, 10_000))
def test_the_lattice_unit_makes_the_bound_equal_noise_over_multiplier(clip, multiplier, width):
    unit = lattice_unit(np.array([clip]), multiplier, width)[0]
    bound = clip / unit + math.sqrt(width) / 2 + 1
    assert bound == pytest.approx(noise.GAUSSIAN_STD / multiplier, rel=1e-12)


def test_a_sum_that_would_say_nothing_is_refused_before_it_is_charged(snapshots_of, silent):
    source = silent()
    guard = make_guard(snapshots_of([[(0.5, 0.5)]] * T), source)
    with pytest.raises(BudgetError, match="says nothing"):
        guard.sums(huge, jnp.ones(T, jnp.float32), np.ones(T), noise.GAUSSIAN_STD, "test")
    assert guard.ledger.events == ()
    assert source.calls == 0


def test_clipping_is_joint_over_all_particles_of_a_person(integer_sums):
    """Clipped per particle, this person would weigh sqrt(M) times the clip or more."""
    clip = np.ones(T)
    sums = integer_sums([[(0.3, 0.6)], [], []], "huge", 1.0, clip, 1.0)
    length = np.linalg.norm(sums * lattice_unit(clip, 1.0, WIDTH)[:, None])
    assert length == pytest.approx(1.0, rel=1e-5)
    assert np.count_nonzero(sums) == WIDTH


def test_rows_that_are_not_finite_count_as_zero_and_leave_the_others_alone(integer_sums):
    clip = np.ones(T)
    good, infinite, missing = (0.5, 0.5), (0.5, 0.9), (0.99, 0.5)
    alone = integer_sums([[good], [], []], "wild", 1.0, clip, 1.0)
    together = integer_sums([[infinite, good, missing], [], []], "wild", 1.0, clip, 1.0)
    assert alone.any()
    np.testing.assert_array_equal(alone, together)


def test_integers_are_the_nearest_ones():
    vectors = np.random.default_rng(0).uniform(-1, 1, size=(50, WIDTH)) / 4
    with jax.enable_x64(True):
        integers = np.asarray(clip_to_lattice(jnp.asarray(vectors), 1.0, 1e-3))
    assert np.abs(integers - vectors / 1e-3).max() <= 0.5 + 1e-9


def test_a_short_vector_is_not_stretched_to_the_clip(integer_sums):
    clip = np.full(T, 1e3)
    sums = integer_sums([[(0.3, 0.6)], [], []], "person", 0.1, clip, 1.0)
    vector = np.asarray(
        person_vectors(jnp.array([[0.3, 0.6]]), jax.tree.map(lambda a: a[0], mixture(0.1)))
    )
    unit = lattice_unit(clip, 1.0, WIDTH)[0]
    np.testing.assert_allclose(sums[0] * unit, vector[0], atol=unit)


# Counts ---------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(neighbourhoods(), st.integers(1, 9))
def test_one_person_moves_exactly_one_cell_by_one(snapshots_of, silent, case, side):
    clouds, at, place, who, *_ = case

    def counts(data):
        return make_guard(snapshots_of(data, D), silent()).counts(side, 1.0, "test")

    change = counts(with_person(clouds, at, place, who)) - counts(clouds)
    assert np.abs(change).sum() == 1
    assert change[at].sum() == 1


@settings(max_examples=40)
@given(neighbourhoods(), st.integers(1, 9))
def test_cells_of_a_bin_add_up_to_its_people(snapshots_of, silent, case, side):
    clouds = case[0]
    counts = make_guard(snapshots_of(clouds, D), silent()).counts(side, 1.0, "test")
    assert counts.shape == (T, side**D)
    np.testing.assert_array_equal(counts.sum(axis=1), [len(c) for c in clouds])


@pytest.mark.parametrize("side", [1, 2, 3, 7, 10, 64])
def test_the_walls_of_the_box_belong_to_its_outermost_cells(snapshots_of, silent, side):
    just_below = np.nextafter(np.float32(1), np.float32(0))
    corners = [(0, 0), (0, 1), (1, 0), (1, 1), (just_below, just_below)]
    counts = make_guard(snapshots_of([corners, []]), silent()).counts(side, 1.0, "test")
    grid = np.zeros((side, side), int)
    for x, y in corners:
        grid[-1 if x > 0.5 else 0, -1 if y > 0.5 else 0] += 1
    np.testing.assert_array_equal(counts[0].reshape(side, side), grid)


def test_the_first_axis_of_the_cells_is_the_first_feature(snapshots_of, silent):
    counts = make_guard(snapshots_of([[(0.9, 0.1)], []]), silent()).counts(4, 1.0, "test")
    assert np.argwhere(counts[0].reshape(4, 4)).tolist() == [[3, 0]]


def test_more_cells_than_can_be_counted_are_refused_before_anything_is_charged(
    snapshots_of, silent
):
    source = silent()
    guard = make_guard(snapshots_of([[(0.5,) * 10], []]), source)
    with pytest.raises(InputError, match="too many"):
        guard.counts(100, 1.0, "test")
    assert guard.ledger.events == ()
    assert source.calls == 0


def test_counts_of_people_are_exact_only_when_declared_public(snapshots_of, silent):
    clouds = [[(0.1, 0.2)] * 5, [], [(0.3, 0.3)]]
    snapshots = snapshots_of(clouds)
    assert make_guard(snapshots, silent()).declared_counts() is None
    public = make_guard(snapshots, silent(), public_counts=True)
    assert public.declared_counts().tolist() == [5, 0, 1]
    assert public.ledger.events == ()


# The ledger at the door -----------------------------------------------------------------------


class Watching:
    """Seeded noise that remembers how many events the ledger held at each draw."""

    private = False

    def __init__(self, ledger):
        self.ledger, self.seen, self._bits = ledger, [], noise.SeededSource(3)

    def words(self, count):
        self.seen.append(len(self.ledger.events))
        return self._bits.words(count)


def watched(snapshots, epsilon, delta=1e-5):
    ledger = Ledger(epsilon, delta)
    source = Watching(ledger)
    return Guard(snapshots, ledger, source), source


@pytest.fixture(scope="module")
def three_bins(snapshots_of):
    rng = np.random.default_rng(5)
    return snapshots_of([rng.uniform(size=(n, D)) for n in (7, 0, 1)], D)


def test_every_answer_is_in_the_ledger_before_its_noise_is_drawn(three_bins):
    guard, source = watched(three_bins, 20.0)
    guard.counts(4, 0.5, "cells")
    assert source.seen
    assert set(source.seen) == {1}
    source.seen.clear()
    guard.sums(huge, jnp.ones(T, jnp.float32), np.ones(T), 3.0, "sums")
    assert set(source.seen) == {2}
    cells, sums = guard.ledger.events
    assert isinstance(cells, LaplaceCounts)
    assert (cells.epsilon, cells.what) == (0.5, "cells")
    assert cells.slack >= 4**D * noise.laplace_tv_per_draw(0.5)
    assert isinstance(sums, GaussianSum)
    assert (sums.noise_multiplier, sums.what) == (3.0, "sums")
    assert sums.slack >= T * WIDTH * noise.GAUSSIAN_TV_PER_DRAW
    assert guard.ledger.slack == pytest.approx(cells.slack + sums.slack)


def test_what_the_budget_does_not_cover_is_neither_drawn_nor_recorded(three_bins):
    guard, source = watched(three_bins, 1.0)
    with pytest.raises(BudgetError):
        guard.counts(4, 1.5, "cells")
    with pytest.raises(BudgetError):
        guard.sums(huge, jnp.ones(T, jnp.float32), np.ones(T), 0.5, "sums")
    assert source.seen == []
    assert guard.ledger.events == ()


def test_a_spent_budget_refuses_the_next_answer_and_keeps_the_first(three_bins):
    guard, source = watched(three_bins, 1.0)
    guard.counts(4, 0.9, "cells")
    drawn = len(source.seen)
    with pytest.raises(BudgetError):
        guard.counts(4, 0.9, "cells again")
    assert len(source.seen) == drawn
    assert [event.what for event in guard.ledger.events] == ["cells"]


def test_without_delta_counts_carry_no_slack_and_sums_are_refused(three_bins):
    guard, source = watched(three_bins, 1.0, delta=0.0)
    guard.counts(2, 0.5, "cells")
    assert guard.ledger.slack == 0
    source.seen.clear()
    with pytest.raises(BudgetError):
        guard.sums(huge, jnp.ones(T, jnp.float32), np.ones(T), 1e3, "sums")
    assert source.seen == []


# Noise ----------------------------------------------------------------------------------------


def test_empty_bins_get_as_much_noise_as_full_ones(snapshots_of):
    rng = np.random.default_rng(0)
    snapshots = snapshots_of([rng.uniform(size=(50, D)), np.empty((0, D)), np.empty((0, D))], D)
    guard = make_guard(snapshots, noise.SeededSource(1))
    counts = guard.counts(16, 0.5, "cells")
    # 76 % of discrete Laplace draws at epsilon 1/2 are not zero: that in one of two bins of 256
    # cells at most 100 are not zero has probability below 1e-12.
    assert (np.count_nonzero(counts[1:], axis=1) > 100).all()
    sums = guard.sums(huge, jnp.ones(T, jnp.float32), np.ones(T), 1.0, "sums")
    assert (sums[1:] != 0).all()


@pytest.mark.parametrize("multiplier", [0.7, 40.0])
def test_the_noise_of_a_sum_has_standard_deviation_clip_times_multiplier(snapshots_of, multiplier):
    guard = make_guard(snapshots_of([[(0.5, 0.5)], [], []]), noise.SeededSource(7))
    clip = np.array([0.01, 1.0, 30.0])
    sums = guard.sums(wide, jnp.ones(T, jnp.float32), clip, multiplier, "noise")
    scaled = sums / (clip * multiplier)[:, None]
    # standard error of a standard deviation of n = 6000 normal draws: 1 / sqrt(2 n) = 0.0091;
    # 5.3 of them are a false-alarm rate of 1e-7 over seeds (and none at this seed). The lattice
    # adds less than one part in a thousand.
    assert scaled.std() == pytest.approx(1.0, abs=5.3 / math.sqrt(2 * scaled.size) + 1e-3)
    assert abs(scaled.mean()) < 5.3 / math.sqrt(scaled.size)
    per_bin = 5.6 / math.sqrt(2 * scaled.shape[1])  # the same rate for the three bins together
    np.testing.assert_allclose(scaled.std(axis=1), 1.0, atol=per_bin + 1e-3)


def test_the_noise_of_counts_has_the_scale_of_discrete_laplace(snapshots_of):
    guard = make_guard(snapshots_of([[(0.5, 0.5)], [], []]), noise.SeededSource(8))
    exact = np.zeros((T, 64 * 64))
    exact[0, 32 * 64 + 32] = 1
    drawn = guard.counts(64, 0.4, "cells") - exact
    a = math.exp(-0.4)
    std = math.sqrt(2 * a) / (1 - a)
    # a variance of n = 12288 Laplace-like draws (kurtosis 6) has relative error sqrt(5 / n) = 2 %;
    # 11 % is 5.4 of them, a false-alarm rate of 1e-7.
    assert drawn.var() == pytest.approx(std**2, rel=0.11)


def test_two_answers_to_the_same_question_have_independent_noise(snapshots_of):
    guard = make_guard(snapshots_of([[(0.5, 0.5)], [], []]), noise.SeededSource(9))
    ask = [guard.sums(wide, jnp.ones(T, jnp.float32), np.ones(T), 2.0, "n").ravel() for _ in "ab"]
    # correlation of 6000 pairs: standard error 0.013, 5.3 of them (rate 1e-7) are 0.07
    assert abs(np.corrcoef(ask)[0, 1]) < 0.07


# Exactness ------------------------------------------------------------------------------------


def reference_sums(clouds, mix, clip):
    """Clipped sums in plain NumPy float64."""
    from privtraj.dynamics.likelihood import KAPPA_SPREAD, kappa_mass

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
        v = np.concatenate([u, kappa_mass(D) * sigma * w, s[:, None]], axis=1)
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
    sums = guard.sums(person_vectors, mix, clip, multiplier, "test")
    unit = lattice_unit(clip, multiplier, WIDTH)[:, None]
    people = np.array([len(c) for c in crowd])[:, None]
    # half a unit of rounding for each person, and float32 inside the statistic
    slack = people * (0.5 * unit + 2e-6 * clip[:, None])
    assert (np.abs(sums - reference_sums(crowd, mix, clip)) <= slack).all()


def test_the_answer_does_not_depend_on_the_size_of_chunks(crowd, snapshots_of, silent, monkeypatch):
    mix, clip = mixture(0.15), np.array([0.05, 0.1, 0.3])

    def sums():
        guard = make_guard(snapshots_of(crowd, D), silent())
        return guard.sums(person_vectors, mix, clip, 1.5, "test")

    first = sums()
    assert max(len(c) for c in crowd) > guard_module.CHUNK
    monkeypatch.setattr(guard_module, "CHUNK", 100)
    second = sums()
    # the shape of a chunk may change the last bit of float32: at most a unit or so per person
    unit = lattice_unit(clip, 1.5, WIDTH)[:, None]
    assert (np.abs(first - second) <= 0.05 * 600 * unit + 1e-12).all()


def test_the_answer_does_not_depend_on_the_order_of_people(crowd, snapshots_of, silent):
    mix, clip = mixture(0.15), np.array([0.05, 0.1, 0.3])

    def sums(clouds):
        guard = make_guard(snapshots_of(clouds, D), silent())
        return guard.sums(person_vectors, mix, clip, 1.5, "test")

    shuffled = [np.random.default_rng(1).permutation(c) for c in crowd]
    np.testing.assert_array_equal(sums(crowd), sums(shuffled))


# The only door --------------------------------------------------------------------------------


def test_no_other_module_touches_the_raw_rows():
    root = Path(privtraj.__file__).parent
    allowed = {root / "snapshots.py", root / "privacy" / "guard.py"}
    raw = re.compile(r"\.\s*_(points|bins)\b|[\"']_(points|bins)[\"']")
    assert raw.search((root / "privacy" / "guard.py").read_text())
    offenders = [
        str(file.relative_to(root))
        for file in sorted(root.rglob("*.py"))
        if file not in allowed and raw.search(file.read_text())
    ]
    assert offenders == []
