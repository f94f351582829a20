"""Pulls: the sums of the dynamics as exact integers. Sensitivity, exactness, noise, and chunks.

Statistical tests state their false-alarm rate; their seeds are fixed.
"""

import inspect
import math
import re
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.base.errors import BudgetError, InputError
from privtraj.measures.likelihood import KAPPA_SPREAD, Mixture, mass_weight, weights_and_residual
from privtraj.privacy import noise
from privtraj.privacy import sums as sums_module
from privtraj.privacy.guard import Gaussian, Guard, Release
from privtraj.privacy.ledger import Ledger
from privtraj.privacy.sums import (
    GRID,
    REACH,
    WEIGHT_BITS,
    ClippedSums,
    KernelSum,
    KernelSums,
    chunked,
    kernel_lattice,
    kernel_sums,
    kernel_vector,
)

T = 3
SHAPES = [(4, 2), (9, 8)]  # m, d: distances by differences, and by products
S = noise.GAUSSIAN_STD


def power_of_ten(low, high):
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


# Weighers -------------------------------------------------------------------------------------


def wild(distance, scale):
    """Weights and s from denormal to overflowing, of both signs, some infinite, some not numbers"""
    first, k = distance[:, :1], jnp.arange(distance.shape[-1])
    weight = jnp.sinh(scale * jnp.sin(40 * distance + k))
    weight = jnp.where((jnp.sin(97 * first) > 0.9) & (k == 1), jnp.nan, weight)
    weight = jnp.where((jnp.sin(89 * first) > 0.9) & (k == 2), -jnp.inf, weight)
    rest = jnp.sinh(scale * jnp.cos(31 * first[:, 0]))
    return weight, jnp.where(jnp.sin(83 * first[:, 0]) > 0.9, jnp.nan, rest)


def heavy(distance, sign):
    """Every weight far beyond any clip."""
    return 1e6 * sign * jnp.ones_like(distance), jnp.zeros(len(distance))


def spread_only(distance, sign):
    """No weights, and an s far beyond any clip."""
    return jnp.zeros_like(distance), 1e9 * sign * jnp.ones(len(distance))


def nothing(distance, scale):
    return jnp.zeros_like(distance) * scale, jnp.zeros(len(distance))


def centres(m, d, seed=0, at=None):
    """(T, m, d), some outside the box; the first centre of each time on a given person."""
    found = np.random.default_rng(seed).uniform(-0.4, 1.4, size=(T, m, d)).astype(np.float32)
    if at is not None:
        found[:, 0] = at
    return found


def likelihood_pull(m, d, bandwidth, seed=0, at=None, times=T):
    bias = np.random.default_rng(seed + 1).uniform(-4, 4, size=(times, m)).astype(np.float32)
    mixture = Mixture(
        centres(m, d, seed, at)[:times], bias, np.broadcast_to(np.float32(bandwidth), times)
    )
    return KernelSum(mixture.particles, np.asarray(mass_weight(mixture)), mixture)


def wild_pull(m, d, scale, seed=0, at=None):
    rng = np.random.default_rng(seed)
    mass = np.rint(GRID * 10 ** rng.uniform(-3, 0.3, size=T)) / GRID * (rng.uniform(size=T) > 0.3)
    return KernelSum(centres(m, d, seed, at), mass, np.full(T, 3 * scale, np.float32))


def plain_pull(m, d):
    """For weighers that know nothing but one number."""
    return KernelSum(centres(m, d), np.full(T, 0.25), np.ones(T, np.float32))


WEIGHERS = {"likelihood": (weights_and_residual, likelihood_pull), "wild": (wild, wild_pull)}


# Sums -----------------------------------------------------------------------------------------


class Generous(Ledger):
    """Pays for anything."""

    def spend(self, event, times=1):
        self.events = (*self.events, (event, times))


def make_guard(snapshots, source):
    return snapshots.guarded(Guard, Generous(1.0, 1e-5), source)


def stacked(clouds, d):
    """Points (n, d) and bins (n,)."""
    clouds = [np.asarray(cloud, np.float32).reshape(-1, d) for cloud in clouds]
    sizes = [len(cloud) for cloud in clouds]
    return np.concatenate(clouds), np.repeat(np.arange(len(clouds), dtype=np.int32), sizes)


def exact_sums(clouds, weight_fn, pull, clip, lattice):
    """Integer sums of everybody."""
    points, bins = stacked(clouds, pull.centres.shape[2])
    chunks = chunked(points, bins, len(clouds))
    return kernel_sums(weight_fn, chunks, sums_module._spread(chunks.row >= 0), pull, clip, lattice)


def unshifted(lattice):
    """The same lattice, with people's own integers as the released ones."""
    return lattice._replace(shift=0 * lattice.shift, limit=lattice.limit * 2.0**lattice.shift)


def fine_sums(clouds, weight_fn, pull, clip, multiplier=1.0):
    """Sums of people's own integers, before the one rounding of a bin."""
    lattice = kernel_lattice(clip, S / multiplier, pull.centres)
    return exact_sums(clouds, weight_fn, pull, clip, unshifted(lattice))


@pytest.fixture(scope="module")
def released(snapshots_of, silent):
    """Function: the integers that would be released, without noise, through the guard's door."""

    def compute(clouds, weight_fn, pull, clip, multiplier):
        guard = make_guard(snapshots_of(clouds, pull.centres.shape[2]), silent())
        sums = guard.ask(Release(KernelSums(weight_fn, pull, clip), Gaussian(multiplier), "test"))
        integers = sums / kernel_lattice(clip, S / multiplier, pull.centres).unit[:, None]
        assert np.isfinite(sums).all()
        np.testing.assert_allclose(integers, np.rint(integers), atol=1e-3)
        return np.rint(integers)

    return compute


def length(integers):
    return np.linalg.norm(integers.astype(np.float64))


# Sensitivity ----------------------------------------------------------------------------------

coordinate = st.sampled_from([0.0, 1.0, 0.5, 1e-7]) | st.floats(0, 1, width=32)


@st.composite
def neighbourhoods(draw, d):
    """A dataset with empty, tiny and repeated bins, one bin and place in it, and two people."""
    person = st.tuples(*[coordinate] * d)
    pool = draw(st.lists(person, min_size=1, max_size=4))
    clouds = [
        draw(st.lists(st.sampled_from(pool), max_size=5)) * draw(st.sampled_from([1, 40]))
        for _ in range(T)
    ]
    at = draw(st.integers(0, T - 1))
    place = draw(st.integers(0, len(clouds[at])))
    who, other = draw(st.sampled_from(pool) | person), draw(person)
    return clouds, at, place, who, other, draw(st.integers(0, T - 1))


def with_person(clouds, at, place, who):
    return [[*c[:place], who, *c[place:]] if i == at else c for i, c in enumerate(clouds)]


def check_sensitivity(sums, case, bound):
    """sums: of clouds, (T, D) integers. Add, remove and replace one person."""
    clouds, at, place, who, other, other_at = case
    without = sums(clouds)
    present = sums(with_person(clouds, at, place, who))
    instead = sums(with_person(clouds, other_at, 0, other))
    assert length(present - without) <= bound
    assert length(present - instead) <= (2 if other_at == at else math.sqrt(2)) * bound
    untouched = [i for i in range(T) if i != at]
    np.testing.assert_array_equal(present[untouched], without[untouched])


@pytest.mark.parametrize(("m", "d"), SHAPES)
@pytest.mark.parametrize("name", WEIGHERS)
@settings(max_examples=30)
@given(
    st.data(),
    power_of_ten(-3, 1.5),
    st.integers(0, 99),
    st.booleans(),
    power_of_ten(-2, 6),
    st.lists(power_of_ten(-6, 1.8), min_size=T, max_size=T).map(np.array),
)
def test_one_person_moves_the_released_integers_by_at_most_the_stated_bound(
    released, name, m, d, data, scale, seed, on_a_centre, multiplier, clip
):
    """S / z for a person added or removed; replaced in the same bin, twice that."""
    case = data.draw(neighbourhoods(d))
    weight_fn, make = WEIGHERS[name]
    pull = make(m, d, scale, seed, case[3] if on_a_centre else None)
    check_sensitivity(
        lambda clouds: released(clouds, weight_fn, pull, clip, multiplier), case, S / multiplier
    )


def outcast(pull, d):
    """A person whose vector is not finite, and one whose vector is."""
    people = np.random.default_rng(0).uniform(size=(100, d)).astype(np.float32)
    here = jax.tree.map(lambda leaf: leaf[0], pull)
    with np.errstate(invalid="ignore"):
        finite = [np.isfinite(kernel_vector(wild, here, person)).all() for person in people]
    return people[np.argmin(finite)], people[np.argmax(finite)]


def unmeasured():
    """The contribution of a chunk, whatever a person's integers weigh."""
    source = inspect.getsource(sums_module._kernel_chunk)
    changed = re.sub(r"kept = mine & .*", "kept = mine", source)
    assert changed != source
    scope = dict(vars(sums_module))
    exec(changed, scope)
    return scope["_kernel_chunk"]


@pytest.mark.slow
@pytest.mark.parametrize(("m", "d"), SHAPES)
def test_without_the_measured_norm_the_bound_would_not_hold(monkeypatch, m, d):
    """So the test above is able to fail."""
    pull, clip = wild_pull(m, d, 0.01), np.ones(T)
    bad, good = outcast(pull, d)
    case = [[good] * 100, [], []], 0, 2, bad, good, 0
    lattice = kernel_lattice(clip, S, pull.centres)

    def sums(clouds):
        return exact_sums(clouds, wild, pull, clip, lattice)

    check_sensitivity(sums, case, S)
    assert not sums([[bad], [], []]).any()
    monkeypatch.setattr(sums_module, "_kernel_chunk", unmeasured())
    with pytest.raises(AssertionError):
        check_sensitivity(sums, case, S)


@pytest.mark.parametrize(("m", "d"), SHAPES)
def test_weights_without_lever_do_not_leave_the_range_of_exact_integers(m, d):
    """A person on a centre, with masses of weight zero: |V| = 0 whatever the weight is."""
    person = np.full(d, 1.0, np.float32)
    pull = KernelSum(centres(m, d, at=person), np.zeros(T), np.ones(T, np.float32))
    clip = np.ones(T)
    with_them = fine_sums([[person], [], []], only_the_first, pull, clip)
    lattice = kernel_lattice(clip, S, pull.centres)
    assert length(with_them) <= lattice.limit * 2.0 ** lattice.shift[0]


def only_the_first(distance, sign):
    return jnp.where(jnp.arange(distance.shape[-1]) == 0, 1e12, 0.0) * sign, 0 * distance[:, 0]


@pytest.mark.parametrize(("weight_fn", "m", "d"), [(heavy, 9, 8), (spread_only, 4, 2)])
def test_the_bound_is_attained_up_to_rounding(released, weight_fn, m, d):
    """Rounding towards zero loses |x_k - y| / A of about clip / m for each centre."""
    clip, multiplier = np.array([1e-1, 1.0, 3.0]), 2.0
    for at in range(T):
        one = [[(0.2,) * d] if i == at else [] for i in range(T)]
        moved = length(released(one, weight_fn, plain_pull(m, d), clip, multiplier))
        assert S / multiplier * (1 - 1e-4) <= moved <= S / multiplier


def test_opposite_people_attain_the_bound_of_a_replacement(released):
    def sums(x):
        return released([[(x,)], [], []], signed, plain_pull(3, 1), np.ones(T), 2.0)

    assert S * (1 - 1e-4) <= length(sums(0.0) - sums(1.0)) <= S


def signed(distance, sign):
    """s of two signs, on the two sides of the box: the first centre is nearer to one of them."""
    side = jnp.where(distance[:, 0] < 0.3, 1.0, -1.0)
    return jnp.zeros_like(distance), 1e9 * sign * side


def test_who_is_not_finite_counts_as_zero_and_leaves_the_others_alone():
    pull, clip = wild_pull(4, 2, 0.01), np.ones(T)
    bad, good = outcast(pull, 2)
    alone = fine_sums([[good], [], []], wild, pull, clip)
    assert alone.any()
    np.testing.assert_array_equal(fine_sums([[bad, good, bad], [], []], wild, pull, clip), alone)


# Whoever else is there ------------------------------------------------------------------------


def crowd(n, d, seed=0):
    return np.random.default_rng(seed).uniform(size=(n, d)).astype(np.float32)


def brim(d):
    """As many people in one of T bins as there is room for before the arrays grow."""
    layout = sums_module._layout()
    return crowd((layout.most - (T - 1)) * layout.chunk, d, seed=9)


@pytest.mark.slow
@pytest.mark.parametrize(("m", "d"), [(5, 1), (20, 6), (33, 7)])
def test_the_order_of_people_changes_nothing(m, d):
    pull, clip = likelihood_pull(m, d, 0.1 * math.sqrt(d)), np.array([0.05, 0.1, 0.3])
    clouds = [crowd(700, d, 1), crowd(0, d), crowd(129, d, 2)]
    shuffled = [np.random.default_rng(3).permutation(cloud) for cloud in clouds]
    sums = [fine_sums(c, weights_and_residual, pull, clip) for c in (clouds, shuffled)]
    assert sums[0].any(axis=1).tolist() == [True, False, True]
    np.testing.assert_array_equal(*sums)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "m", "d"), [("likelihood", 4, 2), ("likelihood", 33, 7), ("wild", 9, 8)]
)
def test_a_person_adds_the_same_integers_to_any_crowd(name, m, d):
    """Crowds that fill chunks, groups and arrays, and that the person makes overflow."""
    weight_fn, make = WEIGHERS[name]
    pull, clip = make(m, d, 0.1 * math.sqrt(d)), np.array([0.05, 0.1, 0.3])
    people, full = crowd(3, d, seed=5), brim(d)

    def sums(others):
        return fine_sums([crowd(5, d), others, crowd(0, d)], weight_fn, pull, clip)

    alone = [sums([person]) - sums([]) for person in people]
    assert np.any(alone)
    for size in (1, 127, 128, 129, 1000, 4095, len(full)):
        before = sums(full[:size])
        for person, integers in zip(people, alone, strict=True):
            after = sums(np.insert(full[:size], size // 2, person, axis=0))
            np.testing.assert_array_equal(after - before, integers)


@pytest.mark.slow
@pytest.mark.parametrize("layout", [(128, 64, 2**15), (8, 4, 64)])
@pytest.mark.parametrize(("m", "d"), SHAPES)
def test_every_place_gives_a_person_the_same_integers(monkeypatch, layout, m, d):
    """n copies are n times one: in every row of a chunk, chunk of a group, and group."""
    monkeypatch.setattr(sums_module, "_layout", lambda: sums_module._Layout(*layout))
    pull, clip = likelihood_pull(m, d, 0.1 * math.sqrt(d)), np.array([0.05, 0.1, 0.3])
    place = sums_module._layout().chunk
    for person in (crowd(1, d, seed=4), np.ones((1, d), np.float32)):

        def sums(n, person=person):
            clouds = [[], np.repeat(person, n, axis=0), []]
            return fine_sums(clouds, weights_and_residual, pull, clip)

        one = sums(1)
        assert one.any()
        for n in (2, place, place + 1, 5 * place, 9 * place + 1):
            np.testing.assert_array_equal(sums(n), n * one)


@pytest.mark.slow
@pytest.mark.parametrize(("m", "d"), SHAPES)
def test_one_time_alone_is_summed_like_one_of_several(m, d):
    """jaxlib 0.10.2 may multiply wrongly by a matrix that all chunks share (jax issue 39103)."""
    pull, clip = likelihood_pull(m, d, 0.1 * math.sqrt(d)), np.array([0.05])
    here, people = jax.tree.map(lambda leaf: leaf[:1], pull), crowd(40, d)
    pair = jax.tree.map(lambda leaf: leaf[[0, 0]], pull)
    alone = fine_sums([people], weights_and_residual, here, clip)
    several = fine_sums([people, people[:3]], weights_and_residual, pair, clip[[0, 0]])
    np.testing.assert_array_equal(alone[0], several[0])


@settings(max_examples=60)
@given(st.integers(0, 2**40), st.integers(-(2**40), 2**40), st.integers(-20, 30))
def test_the_one_rounding_moves_a_sum_by_less_than_one_more_than_the_person(total, person, shift):
    before, after = sums_module._shifted(np.array([total, total + person]), np.array([shift] * 2))
    assert before == math.floor(Fraction(total) / Fraction(2) ** shift + Fraction(1, 2))
    assert abs(after - before - Fraction(person) / Fraction(2) ** shift) < 1


# The lattice ----------------------------------------------------------------------------------


@settings(max_examples=100)
@given(power_of_ten(-8, 4), power_of_ten(-9, 6), st.integers(1, 5000), st.integers(1, 60))
def test_the_lattice_pays_for_rounding_and_has_weights_of_twenty_bits(clip, multiplier, m, d):
    lattice = kernel_lattice(np.array([clip]), S / multiplier, np.empty((1, m, d)))
    assert lattice.limit + math.sqrt(m * d + m + 1) == pytest.approx(S / multiplier, rel=1e-12)
    assert 2 ** (WEIGHT_BITS - 1) <= lattice.weight[0] <= 2**WEIGHT_BITS
    # one step of the grid, weighed by 1 / A, is the unit of people's own integers
    own = lattice.unit[0] * 2.0 ** -lattice.shift[0]
    assert own == pytest.approx(1 / (GRID * lattice.weight[0]), rel=1e-12)
    # a vector at the clip is within the limit, with a little room for floats
    assert 1 - 1e-2 < clip / lattice.unit[0] / lattice.limit < 1


# Exactness ------------------------------------------------------------------------------------


def on_grid(values):
    return np.rint(np.asarray(values, np.float64) * GRID) / GRID


def reference_sums(clouds, pull, clip):
    """Clipped sums (T, m d + m + 1) in plain NumPy float64, of places on the grid."""
    total = []
    for i, cloud in enumerate(clouds):
        x = on_grid(np.clip(pull.centres[i], -REACH, REACH))
        away = x[None] - on_grid(cloud)[:, None]
        distance, sigma = (away**2).sum(-1), float(pull.parameters.bandwidth[i])
        exponent = -distance / (2 * sigma**2) + pull.parameters.bias[i]
        w = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        w /= w.sum(axis=1, keepdims=True)
        s = KAPPA_SPREAD * sigma * ((w * distance).sum(1) / (x.shape[1] * sigma**2) - 1)
        u = (w[:, :, None] * away).reshape(len(cloud), x.size)
        v = np.concatenate([u, float(pull.mass[i]) * w, s[:, None]], axis=1)
        total.append((v * np.minimum(1, clip[i] / np.linalg.norm(v, axis=1))[:, None]).sum(axis=0))
    return np.stack(total)


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 8, 50])
@pytest.mark.parametrize("share", [0.3, 1.0, 8.0])
def test_without_noise_the_sums_are_those_of_plain_numpy(released, d, share):
    """Clips below, at and above what people weigh."""
    pull, multiplier = likelihood_pull(4, d, 0.15 * math.sqrt(d)), 1.5
    clip = share * np.array([0.1, 0.15, 0.2]) * math.sqrt(d)
    clouds = [crowd(300, d, 1), crowd(0, d), crowd(150, d, 2)]
    lattice = kernel_lattice(clip, S / multiplier, pull.centres)
    sums = released(clouds, weights_and_residual, pull, clip, multiplier) * lattice.unit[:, None]
    wanted = reference_sums(clouds, pull, clip)
    people = np.array([len(cloud) for cloud in clouds])
    # each person: one step of a weight, for a lever of at most 1.4, and float32 within the
    # weight_fn, whose numbers are at most of the size of a typical vector; each bin: one rounding
    size = np.minimum(clip, math.sqrt(d))
    slack = people * (1.4 / lattice.weight + 5e-6 * size) + lattice.unit
    assert (np.abs(sums - wanted) <= slack[:, None]).all()
    assert (np.abs(wanted[[0, 2]]).max(axis=1) > 100 * slack[[0, 2]]).all()


@pytest.mark.slow
@pytest.mark.parametrize(("m", "d"), [(4, 2), (100, 8)])
def test_masses_lose_at_most_one_step_of_a_weight_for_each_centre(m, d):
    pull, clip = likelihood_pull(m, d, 0.2 * math.sqrt(d)), np.full(T, 3.0)
    weight = kernel_lattice(clip, S, pull.centres).weight[1]
    for person in crowd(10, d):
        fine = fine_sums([[], [person], []], weights_and_residual, pull, clip)[1]
        a = fine[m * d : m * (d + 1)] / (pull.mass[1] * GRID)
        np.testing.assert_array_equal(a, np.rint(a))
        # float32 weights add up to 1 within 2^-20
        assert weight * (1 - 2.0**-20) - m <= a.sum() <= weight * (1 + 2.0**-20)
        assert (a >= 0).all()


def test_pulls_are_whole_numbers_of_steps_of_the_grid():
    """a (X - Y), with the place and the centre at the nearest points of the grid, within reach."""
    pull = likelihood_pull(4, 2, 1.0)
    pull.centres[:, 3] = 5.0, -5.0
    mass = np.rint(pull.mass[1] * GRID)
    whole = np.rint(np.clip(pull.centres[1], -REACH, REACH).astype(np.float64) * GRID)
    for person in crowd(20, 2):
        fine = fine_sums([[], [person], []], weights_and_residual, pull, np.full(T, 9.0))[1]
        places, a = fine[:8].reshape(4, 2), fine[8:12] / mass
        assert (a > 0).all()
        wanted = a[:, None] * (whole - np.rint(person.astype(np.float64) * GRID))
        np.testing.assert_array_equal(places, wanted)


def test_the_vector_of_a_person_is_what_the_sums_are_made_of():
    pull, clip = likelihood_pull(4, 2, 0.2), np.full(T, 3.0)
    lattice = kernel_lattice(clip, S, pull.centres)
    person = on_grid(crowd(1, 2))[0]
    here = jax.tree.map(lambda leaf: leaf[1], pull._replace(centres=on_grid(pull.centres)))
    fine = fine_sums([[], [person], []], weights_and_residual, pull, clip)[1]
    step = lattice.unit[1] * 2.0 ** -lattice.shift[1]
    vector = kernel_vector(weights_and_residual, here, person)
    np.testing.assert_allclose(fine * step, vector, atol=1.4 / lattice.weight[1] + 1e-6)


def test_the_largest_sums_are_exact_integers():
    """In whole numbers: everything a person adds is at most the clip in units of 2^-36 or more."""
    weight = 2**WEIGHT_BITS
    layouts = [sums_module._Layout(128, 64, 2**15), sums_module._Layout(1024, 512, 2**26)]
    for layout in layouts:  # in float64, over a chunk: a Y, and s
        assert layout.chunk * weight * GRID < 2**53
        assert layout.chunk * sums_module.MOST_CLIP * weight * GRID <= 2**53
    # places and centres apart may wrap around: only their difference has to fit
    assert REACH * GRID * weight < 2**53


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_every_layout_has_chunks_whose_sums_are_exact(monkeypatch, backend):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    rows = sums_module._layout().chunk
    assert rows * sums_module.MOST_CLIP * 2**WEIGHT_BITS * GRID <= 2**53


@pytest.mark.parametrize("bits", [38, 41, 44])
def test_no_number_of_people_is_too_large_to_be_summed(snapshots_of, silent, monkeypatch, bits):
    """With fewer bits for sums on a device, the same integers, and nothing depends on how many."""
    monkeypatch.setattr(sums_module, "_layout", lambda: sums_module._Layout(16, 2, 2))
    clouds = [crowd(50, 2, 1), crowd(300, 2, 2), crowd(3, 2, 3)]
    weigher, pull = WEIGHERS["likelihood"]
    kernel, clip = pull(4, 2, 0.2), np.full(T, 1.5)

    def answers():
        guard = make_guard(snapshots_of(clouds, 2), silent())
        return (
            guard.ask(Release(KernelSums(weigher, kernel, clip), Gaussian(2.0), "step")),
            guard.ask(
                Release(ClippedSums(places, jnp.ones(T, jnp.float32), clip), Gaussian(2.0), "sums")
            ),
        )

    whole = answers()
    monkeypatch.setattr(sums_module, "SUM_BITS", bits)
    calls, once = [], sums_module._all_devices
    monkeypatch.setattr(sums_module, "_all_devices", lambda *parts: calls.append(1) or once(*parts))
    for part, all_at_once in zip(answers(), whole, strict=True):
        np.testing.assert_array_equal(part, all_at_once)
    assert len(calls) > 2


def places(points, scale):
    """A vector of two numbers for each row."""
    return points * scale


def test_sums_beyond_64_bits_stay_exact():
    """2^30 people with the largest numbers, in as many parts as their sums need."""
    part = np.full((T, 3), 2**62 - 5, dtype=np.int64)
    total = np.sum([part.astype(object)] * 5, axis=0)
    assert total[0, 0] == 5 * (2**62 - 5)
    shifted = sums_module._shifted(total, np.full((T, 1), 20))
    assert shifted[0, 0] == (5 * (2**62 - 5) + 2**19) >> 20


def test_too_many_features_are_told_before_anything_is_paid_for(snapshots_of, silent):
    guard = make_guard(snapshots_of([crowd(5, 2)] * T, 2), silent())
    with pytest.raises(InputError, match="too many features"):
        guard.ask(
            Release(KernelSums(nothing, plain_pull(2, 2), np.full(T, 65.0)), Gaussian(2.0), "step")
        )
    assert guard.ledger.events == ()


@pytest.mark.parametrize("multiplier", [1e-9, 1e-3, 1.0, 1e6])
def test_shifts_of_either_sign_and_any_size_are_exact(multiplier):
    pull, clip = likelihood_pull(4, 2, 0.2), np.array([1e-4, 0.1, 50.0])
    lattice = kernel_lattice(clip, S / multiplier, pull.centres)
    clouds = [crowd(50, 2, 1), crowd(300, 2, 2), crowd(3, 2, 3)]
    fine = fine_sums(clouds, weights_and_residual, pull, clip, multiplier)
    sums = exact_sums(clouds, weights_and_residual, pull, clip, lattice)
    assert (lattice.shift[0] < 0) == (multiplier <= 1)
    for i, shift in enumerate(lattice.shift.tolist()):
        exact = [Fraction(int(value)) / Fraction(2) ** shift for value in fine[i]]
        assert [int(value) for value in sums[i]] == [
            math.floor(value + Fraction(1, 2)) for value in exact
        ]


def test_a_very_small_multiplier_gives_the_sum_itself(snapshots_of):
    """Integers beyond 64 bits, with real noise, which is then far below the unit of weights."""
    pull, clip = likelihood_pull(4, 2, 0.2), np.array([1e-4, 0.1, 1.0])
    clouds = [crowd(50, 2, 1), crowd(300, 2, 2), crowd(3, 2, 3)]
    guard = make_guard(snapshots_of(clouds), noise.SeededSource(0))
    sums = guard.ask(Release(KernelSums(weights_and_residual, pull, clip), Gaussian(1e-9), "step"))
    lattice = kernel_lattice(clip, S / 1e-9, pull.centres)
    assert np.abs(sums / lattice.unit[:, None]).max() > 2.0**63
    fine = fine_sums(clouds, weights_and_residual, pull, clip, 1e-9)
    expected = fine * (lattice.unit * 2.0**-lattice.shift)[:, None]
    # noise of standard deviation clip z: 7 of them (rate 1e-10 for 39 numbers), and float64
    assert (np.abs(sums - expected) <= 7e-9 * clip[:, None] + 1e-13 * np.abs(expected)).all()


# Noise ----------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(power_of_ten(-6, 1.8), power_of_ten(-2, 3), st.integers(1, 300), st.integers(1, 50))
def test_the_unit_of_the_noise_is_clip_times_multiplier_but_for_rounding(clip, multiplier, m, d):
    lattice = kernel_lattice(np.array([clip]), S / multiplier, np.empty((1, m, d)))
    assert lattice.unit[0] * S == pytest.approx(clip * multiplier, rel=1e-3)
    assert lattice.unit[0] * S >= clip * multiplier


# The ledger at the door -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def three_bins(snapshots_of):
    return snapshots_of([crowd(n, 2, n) for n in (7, 0, 1)], 2)


@pytest.mark.parametrize("leaf", ["centres", "mass", "particles", "bias", "bandwidth", "clip"])
@pytest.mark.parametrize("break_", [lambda a: a[0], lambda a: a[:1], lambda a: a[[0, 0, 0, 0]]])
def test_shapes_without_the_times_are_refused_before_they_are_charged(
    three_bins, silent, leaf, break_
):
    """Broadcast, one noise would cover several bins, and their difference would be exact."""
    source = silent()
    guard = make_guard(three_bins, source)
    pull, clip = likelihood_pull(4, 2, 0.1), np.ones(T)
    if leaf == "clip":
        clip = break_(clip)
    elif leaf in KernelSum._fields:
        pull = pull._replace(**{leaf: break_(getattr(pull, leaf))})
    else:
        mixture = pull.parameters
        pull = pull._replace(parameters=mixture._replace(**{leaf: break_(getattr(mixture, leaf))}))
    with pytest.raises(InputError, match="for each"):
        guard.ask(Release(KernelSums(weights_and_residual, pull, clip), Gaussian(5.0), "step"))
    assert source.calls == 0
    assert guard.ledger.events == ()


class Coins:
    """Given words where coins are drawn, one for each of the people; no noise elsewhere."""

    private = False

    def __init__(self, coins):
        self._coins = coins

    def words(self, count):
        return self._coins if count == len(self._coins) else np.full(count, 2**63, dtype=np.uint64)


def test_a_sampled_pull_is_that_of_those_who_take_part_and_divided_by_nothing(snapshots_of):
    clouds = [crowd(201, 2, 1), crowd(0, 2), crowd(150, 2, 2)]
    words = np.random.default_rng(0).integers(0, 2**64, 351, dtype=np.uint64)
    pull, clip = likelihood_pull(4, 2, 0.1), np.full(T, 0.1)

    def sums(clouds, rate):
        guard = make_guard(snapshots_of(clouds, 2), Coins(words))
        return guard.at_rate(rate).ask(
            Release(KernelSums(weights_and_residual, pull, clip), Gaussian(2.0), "step")
        )

    part = words < 0.3 * 2.0**64
    batch = [clouds[0][part[:201]], clouds[1], clouds[2][part[201:]]]
    assert 60 < part.sum() < 150
    np.testing.assert_array_equal(sums(clouds, 0.3), sums(batch, 1.0))


# Chunks and compilation -----------------------------------------------------------------------


@settings(max_examples=50)
@given(st.lists(st.integers(0, 900), min_size=1, max_size=5))
def test_every_row_is_in_one_chunk_of_its_bin(sizes):
    points, bins = stacked([crowd(n, 2, k) for k, n in enumerate(sizes)], 2)
    chunks = chunked(points, bins, len(sizes))
    there = chunks.row >= 0
    np.testing.assert_array_equal(np.sort(chunks.row[there]), np.arange(len(bins)))
    np.testing.assert_array_equal(np.asarray(chunks.points)[there], points[chunks.row[there]])
    assert not np.asarray(chunks.points)[~there].any()
    number = np.broadcast_to(np.asarray(chunks.bin)[:, None], chunks.row.shape)
    np.testing.assert_array_equal(number[there], bins[chunks.row[there]])
    assert not there[chunks.used :].any()


@settings(max_examples=50)
@given(st.integers(1, 2000), st.integers(1, 5))
def test_dealt_chunks_are_all_there_in_the_first_places_of_the_devices(n, devices):
    chunks, count = np.arange(1, n + 1), -(-n // devices)
    dealt = sums_module._dealt(chunks, devices, count, -1).reshape(devices, -1)
    assert dealt[:, :count].ravel()[:n].tolist() == chunks.tolist()
    assert (dealt.ravel() > 0).sum() == n
    assert dealt.shape[1] % sums_module._layout().most == 0


def test_lengths_are_few_and_a_quarter_longer_than_needed_at_most():
    most = sums_module._layout().most
    counts = np.unique(np.geomspace(1, 10**5, 300).astype(int))
    lengths = {n: len(sums_module._dealt(np.zeros(n, np.int8), 1, n, 0)) for n in counts.tolist()}
    assert all(n <= length <= 1.25 * n + most for n, length in lengths.items())
    assert len(set(lengths.values())) <= 4 * math.log2(10**5 / most)


@pytest.fixture
def compilations():
    """A list that grows with every compilation."""
    seen = []

    def listen(event, duration, **_):
        if event.endswith("backend_compile_duration"):
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seen
    jax.monitoring.unregister_event_duration_listener(listen)


@pytest.mark.slow
@pytest.mark.parametrize(("m", "d"), [(6, 3), (6, 9)])
def test_neither_the_next_step_nor_a_few_people_more_compile_anything(
    snapshots_of, silent, compilations, m, d
):
    def step(sizes, bandwidth, clip, multiplier, seed):
        guard = make_guard(snapshots_of([crowd(n, d, n) for n in sizes], d), silent())
        pull = likelihood_pull(m, d, bandwidth, seed)
        guard.ask(
            Release(
                KernelSums(weights_and_residual, pull, np.full(T, clip)),
                Gaussian(multiplier),
                "step",
            )
        )

    step((150, 0, 30), 0.1, 0.2, 2.0, 0)
    assert compilations  # they are noticed
    compilations.clear()
    before = sums_module._all_devices._cache_size()
    for seed in range(3):
        step((150, 0, 30), 0.2, 0.3 + seed, 3.0, seed)
    for sizes in ((151, 0, 30), (0, 0, 0), (1, 2000, 700)):
        step(sizes, 0.1, 0.2, 2.0, 0)
    assert sums_module._all_devices._cache_size() == before
    assert compilations == []


# What 64 bits hold ------------------------------------------------------------------------------


@pytest.fixture
def bounds_of(monkeypatch):
    """Function: the bound on a person's numbers with which a question is summed."""

    def asked(question, snapshots, multiplier):
        told = []

        def summed(contribution, width, chunks, taking_part, parameters, columns, largest):
            told.append(float(largest))
            return np.zeros((T, width), np.int64)

        monkeypatch.setattr(sums_module, "_summed", summed)
        make_guard(snapshots, noise.SeededSource(0)).ask(
            Release(question, Gaussian(multiplier), "sums")
        )
        return told[0]

    return asked


def test_the_bound_of_clipped_sums_is_the_norm_that_noise_is_for(snapshots_of, bounds_of):
    clip = np.array([0.5, 2.0, 8.0])
    question = ClippedSums(lambda points, _: jnp.tile(points, 8), np.ones((T, 1)), clip)
    found = bounds_of(question, snapshots_of([np.zeros((1, 2))] * T, 2), 2.0)
    assert found == pytest.approx(S / 2, rel=1e-12)


@pytest.mark.parametrize(("mass", "clip", "most"), [(0.25, 8.0, 8.0), (5.0, 0.5, 5.0), (0, 0.5, 2)])
def test_the_bound_of_kernel_sums_is_that_of_clip_mass_and_places(
    snapshots_of, bounds_of, mass, clip, most
):
    pull = KernelSum(centres(4, 2), np.full(T, mass), np.ones(T, np.float32))
    question = KernelSums(nothing, pull, np.full(T, clip))
    found = bounds_of(question, snapshots_of([np.zeros((1, 2))] * T, 2), 2.0)
    assert found == 2.0**WEIGHT_BITS * GRID * most


@pytest.mark.parametrize("devices", [1, 4])
@pytest.mark.parametrize("largest", [2.0**20, 2.0**50, 2.0**60])
def test_sums_never_wrap_around_and_hold_every_group_once(monkeypatch, devices, largest):
    """Groups that are added up at a time, as many as 64 bits hold with so many devices."""
    asked = []

    def all_devices(*arguments):
        *how, first, last, _ = arguments
        asked.append((how[3], int(first), int(last)))
        return np.full((T, 1), last - first, np.int64)

    monkeypatch.setattr(sums_module, "_all_devices", all_devices)
    monkeypatch.setattr(sums_module.jax, "device_count", lambda: devices)
    chunks = sums_module.Chunks(None, None, None, 1000, None)
    total = sums_module._summed(
        sums_module.partial(nothing, None), 1, chunks, None, None, 64, largest
    )
    (group,) = {one for one, _, _ in asked}
    chunk = sums_module._layout().chunk
    assert group == max(sums_module._layout().at_once // (chunk * 64), 2)  # numbers in the cache
    groups, one = -(-1000 // group), group * chunk * devices * largest
    ends = sorted((first, last) for _, first, last in asked)
    assert [first for first, _ in ends] == [0, *(last for _, last in ends[:-1])]
    assert ends[-1][1] == groups == total[0, 0]
    most = int(2.0**sums_module.SUM_BITS / one)
    if most >= groups:
        assert len(asked) <= (sums_module.os.cpu_count() or 1)
    else:
        assert max(last - first for first, last in ends) == max(most, 1)
        assert total.dtype == object


@pytest.mark.parametrize(("above", "kept"), [(-1e-3, False), (0.5, False), (1.5, True)])
def test_who_is_longer_than_the_limit_contributes_nothing(above, kept):
    """The limit is that many relative errors of a measured |V|^2 above |V|: of one and a half the
    two that are left out are below it, of half a one not."""
    m, d = 200, 2
    rng = np.random.default_rng(3)
    places, grid = np.rint(rng.random((1, d)) * GRID), np.rint(rng.random((m, d)) * GRID)
    weights, mass = np.float32(rng.integers(1, 9, m)), 1000.0
    apart = ((grid - places) ** 2).sum(axis=1)
    size = math.sqrt(float((weights.astype(float) ** 2 * (apart + mass**2)).sum()))
    off = above * sums_module._rounding(m, d) if above > 0 else above
    numbers = [grid, mass, 1e30, 1.0, size * (1 + off), GRID]
    bin_ = sums_module._Scaled(*map(np.float32, numbers), None)
    with jax.enable_x64(True):
        found = sums_module._kernel_chunk(
            lambda apart, _: (jnp.asarray(weights)[None], jnp.zeros(1, jnp.float32)),
            jnp.float32(places / GRID),
            jnp.array([True]),
            bin_,
        )
    expected = np.append(np.append(np.outer(places, weights), weights), 0) * kept
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("what", ["clip", "mass"])
def test_what_chunks_could_not_sum_exactly_is_refused(snapshots_of, what):
    values = {"clip": 1.0, "mass": 1.0, what: 65.0}
    pull = KernelSum(centres(4, 2), np.full(T, values["mass"]), np.ones(T, np.float32))
    question = KernelSums(nothing, pull, np.full(T, values["clip"]))
    with pytest.raises(InputError, match="too many features"):
        make_guard(snapshots_of([np.zeros((1, 2))] * T, 2), noise.SeededSource(0)).ask(
            Release(question, Gaussian(2.0), "sums")
        )


def test_noise_that_leaves_a_sum_no_room_is_refused_at_its_border(snapshots_of):
    """A person's norm has to be sqrt(D) at least: S / z >= 3/2 sqrt(D) + 1."""
    shape = snapshots_of([np.zeros((1, 2))] * T, 2).shape
    question = ClippedSums(lambda points, _: points, np.ones((T, 1)), np.ones(T))
    border = 1.5 * math.sqrt(2) + 1
    question.check(shape, border * (1 + 1e-9))
    with pytest.raises(BudgetError, match="says nothing"):
        question.check(shape, border * (1 - 1e-9))
