"""Couplings with exact marginals, and walks along them."""

import tracemalloc
from dataclasses import replace

import jax
import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.motion import couplings as module
from privtraj.motion import sinkhorn
from privtraj.motion.couplings import Couplings
from privtraj.motion.reference import Brownian, Reference

T, M, D = 3, 20, 2


def clouds(seed=0, weighted=True):
    """particles (T, M, D), weights (T, M)."""
    rng = np.random.default_rng(seed)
    particles = rng.uniform(size=(T, M, D))
    weights = rng.dirichlet(np.full(M, 2.0), size=T) if weighted else np.full((T, M), 1 / M)
    return particles, weights


def couple(particles, weights, reg, coupling):
    """Under Brownian motion over gaps at which it has these variances (T-1,)."""
    return module.couple(particles, weights, reg, Brownian(1.0), coupling)


def far_clusters():
    """Two clusters 0.9 apart that hold .3 and .7, then .4 and .6, then .2 and .8 of the mass."""
    rng = np.random.default_rng(1)
    particles = 0.02 * rng.standard_normal((T, M, D)) + 0.05
    particles[:, M // 2 :] += 0.9
    weights = np.empty((T, M))
    for i, share in enumerate((0.3, 0.4, 0.2)):
        weights[i, : M // 2], weights[i, M // 2 :] = share, 1 - share
    return particles, weights / (M // 2)


def pushed(weights, steps):
    """(T, M) weights of every time, of the first pushed along the couplings."""
    everywhere = [weights]
    for step in steps:
        everywhere.append(everywhere[-1] @ step)
    return np.stack(everywhere)


def marginals(couplings):
    return pushed(couplings.weights[0], couplings.matrices)


def chain(weights, steps, begin=0):
    return Couplings(pushed(weights, steps), steps.astype(np.float32), 0.0, begin)


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["entropic", "exact"])
@pytest.mark.parametrize("case", [clouds, far_clusters])
def test_couplings_are_row_stochastic_with_the_right_marginals(case, coupling):
    particles, weights = case()
    couplings = couple(particles, weights, np.full(T - 1, 0.005), coupling)
    assert couplings.matrices.shape == (T - 1, M, M)
    assert (couplings.matrices >= 0).all()
    np.testing.assert_allclose(couplings.matrices.sum(axis=2), 1.0, atol=1e-5)
    np.testing.assert_allclose(marginals(couplings), weights, atol=2e-6)


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(0, 999), st.floats(-7, 1).map(lambda e: 10.0**e), st.booleans())
def test_repaired_marginals_are_exact_at_any_regularisation(seed, reg, weighted):
    particles, weights = clouds(seed, weighted)
    couplings = couple(particles, weights, np.full(T - 1, reg), "entropic")
    np.testing.assert_allclose(couplings.matrices.sum(axis=2), 1.0, atol=1e-5)
    np.testing.assert_allclose(marginals(couplings), weights, atol=5e-6)


@pytest.fixture
def hasty(monkeypatch):
    """Sinkhorn that gives up after a sweep."""
    jax.clear_caches()
    monkeypatch.setattr(sinkhorn, "_SWEEPS", 1)
    monkeypatch.setattr(sinkhorn, "_ROUNDS", 1)
    yield
    jax.clear_caches()


def crossing(reg):
    """Mass that leaves the left cluster, that enters it, and the error of the couplings."""
    particles, weights = far_clusters()
    couplings = couple(particles, weights, np.full(T - 1, reg), "entropic")
    np.testing.assert_allclose(marginals(couplings), weights, atol=2e-6)
    left = slice(0, M // 2)
    leaves = (weights[0, left] @ couplings.matrices[0][left, M // 2 :]).sum()
    enters = (weights[0, M // 2 :] @ couplings.matrices[0][M // 2 :, left]).sum()
    return leaves, enters, couplings.error


@pytest.mark.parametrize("reg", [1e-3, 1e-6])
def test_far_clusters_exchange_only_the_mass_they_must(reg):
    leaves, enters, _ = crossing(reg)
    assert enters - leaves == pytest.approx(0.1, abs=1e-4)
    assert leaves < 0.01


@pytest.mark.slow
def test_what_sinkhorn_leaves_is_matched_and_reported(hasty):
    leaves, enters, error = crossing(1e-6)
    assert enters - leaves == pytest.approx(0.1, abs=1e-4)
    assert leaves < 0.01
    assert error > 0.1


@pytest.mark.parametrize("seed", range(3))
def test_exact_couplings_have_the_cost_of_exact_transport(seed):
    particles, weights = clouds(seed)
    couplings = couple(particles, weights, np.full(T - 1, np.nan), "exact")
    for i in range(T - 1):
        cost = ot.dist(particles[i], particles[i + 1])
        got = (weights[i][:, None] * couplings.matrices[i] * cost).sum()
        assert got == pytest.approx(ot.emd2(weights[i], weights[i + 1], cost), rel=1e-5)


def test_entropic_couplings_approach_exact_ones_as_regularisation_falls():
    particles, weights = clouds(4)
    cost = ot.dist(particles[0], particles[1])
    exact = ot.emd2(weights[0], weights[1], cost)

    def excess(reg):
        couplings = couple(particles, weights, np.full(T - 1, reg), "entropic")
        return (weights[0][:, None] * couplings.matrices[0] * cost).sum() - exact

    high, middle, low = excess(1.0), excess(0.03), excess(0.001)
    assert high > middle > low > -1e-6
    assert low < 0.1 * high


def test_entropic_couplings_agree_with_pot():
    particles, weights = clouds(5)
    couplings = couple(particles, weights, np.array([0.02, 0.1]), "entropic")
    for i, reg in enumerate((0.02, 0.1)):
        cost = ot.dist(particles[i], particles[i + 1]) / 2
        oracle = ot.sinkhorn(
            weights[i], weights[i + 1], cost, reg, method="sinkhorn_log", stopThr=1e-12
        )
        assert np.abs(weights[i][:, None] * couplings.matrices[i] - oracle).sum() < 5e-3


def test_weights_of_any_scale_mean_the_same():
    particles, weights = clouds(6)
    plain, scaled = (
        couple(particles, w, np.full(T - 1, 0.05), "entropic") for w in (weights, 1e4 * weights)
    )
    np.testing.assert_allclose(plain.matrices, scaled.matrices, atol=1e-5)


# Other references ------------------------------------------------------------------------------


class Drifting(Reference):
    """People who go half of the way to 0.5 over any gap, with variance 0.02."""

    def ahead(self, x, t, dt):
        return (x + 0.5) / 2

    def variance(self, dt):
        return np.full_like(dt, 0.02)

    def bridge(self, x, y, ends, times, rng):
        raise NotImplementedError


@pytest.mark.parametrize("coupling", ["entropic", "exact"])
def test_couplings_ask_the_reference_where_people_go_and_nothing_else(coupling):
    particles, weights = clouds(9)
    gaps = np.ones(T - 1)
    couplings = module.couple(particles, weights, gaps, Drifting(), coupling)
    np.testing.assert_allclose(marginals(couplings), weights, atol=2e-6)
    for i in range(T - 1):
        a, b, onward = weights[i], weights[i + 1], Drifting().ahead(particles[i], 0.0, 1.0)
        cost = ((onward[:, None] - particles[i + 1]) ** 2).sum(axis=-1) / (2 * 0.02)
        joint = a[:, None] * couplings.matrices[i]
        if coupling == "exact":
            assert (joint * cost).sum() == pytest.approx(ot.emd2(a, b, cost), rel=1e-5)
        else:
            oracle = ot.sinkhorn(a, b, cost, 1.0, method="sinkhorn_log", stopThr=1e-12)
            assert np.abs(joint - oracle).sum() < 5e-3


# Large couplings ------------------------------------------------------------------------------


@pytest.mark.parametrize("coupling", ["entropic", "exact"])
def test_couplings_made_when_needed_are_those_that_are_kept(coupling, monkeypatch):
    particles, weights = clouds(8)
    args = (particles, weights, np.full(T - 1, 0.02), coupling)
    kept = couple(*args)
    monkeypatch.setattr(module, "_KEPT", 0)
    monkeypatch.setattr(module, "_BLOCK", 3 * M)  # rows are searched in blocks of three
    made = couple(*args)
    assert isinstance(kept.transitions, np.ndarray)
    assert isinstance(made.transitions, list)
    np.testing.assert_array_equal(made.matrices, kept.matrices)
    begun = replace(made, begin=1)
    walks = [p.walk(500, np.random.default_rng(0)) for p in (begun, replace(kept, begin=1))]
    np.testing.assert_array_equal(*walks)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("reg", [3e-4, 1e-6])
@pytest.mark.parametrize("coupling", ["entropic", "exact"])
def test_the_couplings_of_all_times_are_never_in_memory_at_once(coupling, reg, monkeypatch):
    times, m = 30, 150
    rng = np.random.default_rng(0)
    particles = rng.uniform(size=(times, m, D))
    args = (particles, rng.dirichlet(np.ones(m), times), np.full(times - 1, reg), coupling)
    monkeypatch.setattr(module, "_KEPT", 0)
    couple(*args)  # imports and compiles
    tracemalloc.start()
    couplings = couple(*args)
    coupled = tracemalloc.get_traced_memory()[0]
    couplings.walk(100, rng)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert coupled < 20 * times * m * 8
    assert peak < 12 * m**2 * 8 < times * m**2 * 4


@given(st.integers(0, 999), st.integers(1, 9), st.integers(1, 9))
def test_masses_matched_in_order_have_the_right_marginals_and_never_cross(seed, m, n):
    rng = np.random.default_rng(seed)
    rows, columns = (rng.exponential(size=k) * (rng.random(k) < 0.7) for k in (m, n))
    rows[-1], columns[0] = 1.0, 1.0
    columns *= rows.sum() / columns.sum()
    masses = module._in_order(rows, columns)
    np.testing.assert_allclose(masses.sum(axis=1), rows, atol=1e-12)
    np.testing.assert_allclose(masses.sum(axis=0), columns, atol=1e-12)
    some = masses.data > 1e-12
    assert (np.diff(masses.row[some]) >= 0).all()
    assert (np.diff(masses.col[some]) >= 0).all()


# Walks ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def walked():
    particles, weights = clouds(7)
    particles = np.take_along_axis(
        particles, np.argsort(particles[..., 0], axis=1)[..., None], axis=1
    )
    couplings = couple(particles, weights, np.full(T - 1, 0.05), "entropic")
    return couplings, weights, couplings.walk(20_000, np.random.default_rng(0))


def test_walks_visit_particles_in_proportion_to_their_weights(walked):
    couplings, weights, walk = walked
    count = len(walk)
    assert walk.shape == (count, T)
    for i in range(T):
        seen = np.bincount(walk[:, i], minlength=M)
        deviation = np.abs(seen - count * weights[i])
        multinomial = np.sqrt(count * weights[i] * (1 - weights[i]))
        # stratified: far closer than independent draws; an independent sampler has mean ratio 0.8
        assert (deviation / multinomial).mean() < 0.4
        if i == couplings.begin:
            assert deviation.max() <= 1 + 1e-9


def test_steps_of_walks_follow_the_couplings(walked):
    couplings, weights, walk = walked
    for i in range(T - 1):
        pairs = np.zeros((M, M))
        np.add.at(pairs, (walk[:, i], walk[:, i + 1]), 1)
        expected = len(walk) * weights[i][:, None] * couplings.matrices[i]
        some = expected > 5
        z = (pairs - expected)[some] / np.sqrt(expected[some])
        # at most Poisson deviations: the largest of 400 beyond 5.5 has probability 2e-5
        assert np.abs(z).max() < 5.5
        assert pairs[expected < 1e-6].sum() <= 5


@pytest.mark.parametrize("begin", [0, 1, 2])
def test_walks_along_few_entries_are_those_along_whole_matrices(begin):
    particles, weights = clouds(4)
    steps = []
    for i in range(T - 1):
        cost = (particles[i, :, None, 0] - particles[i + 1, :, 0]) ** 2
        steps.append(module.least_cost(weights[i], weights[i + 1], cost))
    few = Couplings(weights, [module.Transition(one) for one in steps], 0.0, begin)
    whole = replace(few, transitions=few.matrices)
    walks = [one.walk(3000, np.random.default_rng(5)) for one in (few, whole)]
    assert (walks[0] == walks[1]).mean() > 0.999  # but for rounding


def test_walks_forget_where_they_came_from():
    """Within one large walk the place before and the place after are independent given a place."""
    rng = np.random.default_rng(2)
    steps = rng.dirichlet(np.ones(3), size=(4, 3))
    walk = chain(np.full(3, 1 / 3), steps).walk(20_000, rng)
    for i in range(1, 4):
        for j in range(3):
            through = walk[walk[:, i] == j]
            seen = np.zeros((3, 3))
            np.add.at(seen, (through[:, i - 1], through[:, i + 1]), 1)
            expected = np.outer(seen.sum(1), seen.sum(0)) / seen.sum()
            # 4 degrees of freedom: above 38 with probability 1e-7, nine times
            assert ((seen - expected) ** 2 / expected).sum() < 38


@pytest.mark.parametrize("begin", [0, 1, 2])
def test_triples_of_many_short_walks_have_the_law_of_the_chain(begin):
    rng = np.random.default_rng(2)
    steps = rng.dirichlet(np.ones(3), size=(2, 3))
    weights = np.full(3, 1 / 3)
    couplings = chain(weights, steps, begin)
    triples = np.zeros((3, 3, 3))
    for seed in range(300):
        walk = couplings.walk(97, np.random.default_rng(seed))
        np.add.at(triples, tuple(walk.T), 1)
    exact = triples.sum() * weights[:, None, None] * steps[0][:, :, None] * steps[1][None]
    # stratification only lowers it: 26 degrees of freedom exceed 81 with probability 2e-7
    assert ((triples - exact) ** 2 / exact).sum() < 81


def test_groups_keep_their_exact_shares_where_they_cannot_be_told_apart():
    """Two halves that part after the first time: begun there, walks would share them by chance."""
    rng = np.random.default_rng(0)
    side = np.where(np.arange(64) < 32, -0.3, 0.3)
    spread = np.array([0.0, 0.5, 1.0])[:, None] * side
    particles = 0.5 + spread[..., None] + 0.01 * rng.standard_normal((3, 64, 1))
    couplings = couple(particles, np.ones((3, 64)), np.full(2, 1e-4), "exact")
    assert couplings.begin == 2
    for seed in range(20):
        walk = couplings.walk(101, np.random.default_rng(seed))
        for i in (1, 2):
            high = (particles[i][walk[:, i], 0] > 0.5).sum()
            assert abs(high - 50.5) < 1


@pytest.mark.slow
def test_every_chain_alone_is_a_draw_of_the_markov_chain():
    rng = np.random.default_rng(3)
    steps = rng.dirichlet(np.ones(3), size=(1, 3))
    couplings = chain(np.array([0.5, 0.3, 0.2]), steps)
    first = np.stack([couplings.walk(5, np.random.default_rng(s))[0] for s in range(4000)])
    pairs = np.zeros((3, 3))
    np.add.at(pairs, tuple(first.T), 1)
    expected = 4000 * couplings.weights[0][:, None] * steps[0]
    # 8 degrees of freedom: above 47 with probability 1.5e-7
    assert ((pairs - expected) ** 2 / expected).sum() < 47


def test_the_same_generator_gives_the_same_walk(walked):
    couplings, _, walk = walked
    np.testing.assert_array_equal(walk, couplings.walk(20_000, np.random.default_rng(0)))
    assert (walk != couplings.walk(20_000, np.random.default_rng(1))).any()


@pytest.mark.slow
def test_sharp_entropic_couplings_settle_between_clusters_of_slightly_different_weights():
    """Sweeps from nothing at this regularisation wander; from blurred couplings they settle."""
    rng = np.random.default_rng(0)
    centres = np.array([[0.2, 0.5], [0.35, 0.5], [0.8, 0.5]])
    clouds = [np.repeat(centres, 20, axis=0), np.repeat(centres, [18, 22, 20], axis=0)]
    particles = np.stack([cloud + 0.02 * rng.standard_normal((60, 2)) for cloud in clouds])
    couplings = couple(particles, np.ones((2, 60)), np.array([2e-4]), "entropic")
    (rows,) = couplings.matrices.astype(np.float64)
    crossing = rows[:20, 18:].sum() / 60, rows[40:, :40].sum() / 60
    # two of twenty must go from the first to the second cluster, nobody from the third
    assert crossing[0] == pytest.approx(2 / 60, abs=0.004)
    assert crossing[1] < 1e-3


def test_particles_that_weigh_next_to_nothing_do_no_harm():
    """A weight of 1e-37 has a potential that float32 does not hold: there were paths to nowhere."""
    rng = np.random.default_rng(0)
    particles, weights = rng.random((2, 40, 2)), np.full((2, 40), 1 / 40)
    weights[0, 7] = 1e-37
    coupling = module.couple(particles, weights, np.array([0.1]), Brownian(0.02), "entropic")
    assert np.isfinite(coupling.matrices).all()
    walk = coupling.walk(400, rng)
    assert np.count_nonzero(walk[:, 0] == 7) == 0
    assert len(np.unique(walk[:, 0])) > 35
