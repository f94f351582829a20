"""Batched Sinkhorn against POT in float64, and at costs that break exp-domain iterations."""

import jax.numpy as jnp
import numpy as np
import ot
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privtraj.motion import sinkhorn

B, M, D = 3, 12, 2


def problem(seed=0, spread=1.0, weighted=False):
    """x, y (B, M, D), a, b (B, M)."""
    rng = np.random.default_rng(seed)
    x, y = spread * rng.uniform(size=(2, B, M, D))
    a, b = rng.dirichlet(np.full(M, 2.0), size=(2, B)) if weighted else np.full((2, B, M), 1 / M)
    return x, y, a, b


def solve(x, y, reg, a, b, start=None, iterations=200):
    return sinkhorn.solve(
        *(jnp.asarray(v, jnp.float32) for v in (x, y, reg)),
        start or sinkhorn.cold(B, M),
        (jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32)),
        iterations=iterations,
    )


def couplings_of(x, y, reg, potentials):
    """P = exp(f + g - C) in float64, (B, M, M)."""
    cost = ((x[:, :, None] - y[:, None]) ** 2).sum(-1) / (2 * np.asarray(reg)[:, None, None])
    f, g = np.asarray(potentials.f, np.float64), np.asarray(potentials.g, np.float64)
    return np.exp(f[:, :, None] + g[:, None, :] - cost)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reg", [0.02, 0.1, 1.0])
def test_couplings_agree_with_pot(reg, weighted):
    x, y, a, b = problem(1, weighted=weighted)
    potentials = solve(x, y, np.full(B, reg), a, b)
    for k, coupling in enumerate(couplings_of(x, y, np.full(B, reg), potentials)):
        oracle = ot.sinkhorn(
            a[k],
            b[k],
            ot.dist(x[k], y[k]) / 2,
            reg,
            method="sinkhorn_log",
            numItermax=20_000,
            stopThr=1e-12,
        )
        assert np.abs(coupling - oracle).sum() < 1e-3


def test_each_problem_of_a_batch_has_its_own_regularisation():
    x, y, a, b = problem(2)
    reg = np.array([0.05, 0.2, 2.0])
    together = solve(x, y, reg, a, b)
    for k in range(B):
        alone = solve(x, y, np.full(B, reg[k]), a, b)
        np.testing.assert_allclose(together.g[k], alone.g[k], atol=1e-5)


@settings(max_examples=25)
@given(st.integers(0, 999), st.floats(-1.3, 1).map(lambda e: 10.0**e))
def test_weights_are_the_marginals_of_the_coupling(seed, reg):
    x, y, a, b = problem(seed, weighted=True)
    potentials = solve(x, y, np.full(B, reg), a, b)
    coupling = couplings_of(x, y, np.full(B, reg), potentials)
    np.testing.assert_allclose(coupling.sum(axis=1), b, atol=2e-4)
    np.testing.assert_allclose(
        np.abs(coupling.sum(axis=2) - a).sum(axis=1), potentials.error, atol=2e-4
    )
    assert np.abs(coupling.sum(axis=2) - a).sum() < 0.02


def test_uniform_weights_are_the_default():
    x, y, a, b = problem(3)
    reg = jnp.full(B, 0.1, jnp.float32)
    args = (jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), reg, sinkhorn.cold(B, M))
    plain = sinkhorn.solve(*args, iterations=200)
    np.testing.assert_allclose(plain.g, solve(x, y, np.asarray(reg), a, b).g, atol=1e-6)


@pytest.mark.slow
def test_a_warm_start_and_more_iterations_reduce_the_error():
    x, y, a, b = problem(4, weighted=True)
    reg = np.full(B, 0.01)
    cold = solve(x, y, reg, a, b, iterations=8)
    long = solve(x, y, reg, a, b, iterations=200)
    assert (np.asarray(long.error) < 0.5 * np.asarray(cold.error)).all()
    moved = x + 0.002 * np.random.default_rng(0).standard_normal(x.shape)
    warm = solve(moved, y, reg, a, b, start=long, iterations=8)
    fresh = solve(moved, y, reg, a, b, iterations=8)
    assert (np.asarray(warm.error) < 0.5 * np.asarray(fresh.error)).all()


@settings(max_examples=60)
@example(seed=0, reg=1e-7, spread=100.0, clusters=False)
@given(
    st.integers(0, 999),
    st.floats(-8, 4).map(lambda e: 10.0**e),
    st.sampled_from([1e-3, 1.0, 100.0]),
    st.booleans(),
)
def test_no_cost_produces_a_number_that_is_none(seed, reg, spread, clusters):
    x, y, a, b = problem(seed, spread, weighted=True)
    if clusters:  # far clusters whose weights do not match
        x[:, : M // 3] += 10 * spread
        y[:, : M // 2] += 10 * spread
    potentials = solve(x, y, np.full(B, reg), a, b)
    for part in potentials:
        assert np.isfinite(np.asarray(part)).all()
    args = (jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.full(B, reg, jnp.float32))
    bar = np.asarray(sinkhorn.barycentres(*args, potentials))
    assert (bar >= y.min(axis=1, keepdims=True) - 1e-3 * spread).all()
    assert (bar <= y.max(axis=1, keepdims=True) + 1e-3 * spread).all()


def some_without_weight():
    x, y, a, b = problem(5)
    a[:, 0], b[:, 1] = 0.0, 0.0
    a, b = (w / w.sum(axis=1, keepdims=True) for w in (a, b))
    return x, y, a, b


def test_points_without_weight_send_and_receive_nothing():
    x, y, a, b = some_without_weight()
    potentials = solve(x, y, np.full(B, 0.1), a, b)
    coupling = couplings_of(x, y, np.full(B, 0.1), potentials)
    assert not np.isnan(coupling).any()
    assert coupling[:, 0].sum() == pytest.approx(0.0, abs=1e-6)
    assert coupling[:, :, 1].sum() == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(coupling.sum(axis=2), a, atol=1e-3)


@pytest.mark.parametrize("reg", [0.02, 0.5])
def test_barycentres_are_the_coupling_times_the_partners(reg):
    x, y, a, b = problem(6, weighted=True)
    potentials = solve(x, y, np.full(B, reg), a, b)
    coupling = couplings_of(x, y, np.full(B, reg), potentials)
    expected = coupling @ y / coupling.sum(axis=2, keepdims=True)
    args = (jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.full(B, reg, jnp.float32))
    np.testing.assert_allclose(sinkhorn.barycentres(*args, potentials), expected, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("reg", [0.02, 0.5])
def test_projections_are_the_barycentres_of_both_directions(reg):
    x, y, _, _ = problem(7)
    args = (jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.full(B, reg, jnp.float32))
    potentials, ahead, back = sinkhorn.project(*args, sinkhorn.cold(B, M), iterations=8)
    np.testing.assert_allclose(ahead, sinkhorn.barycentres(*args, potentials), atol=1e-5)
    turned = (args[1], args[0], args[2], potentials._replace(f=potentials.g, g=potentials.f))
    np.testing.assert_allclose(back, sinkhorn.barycentres(*turned), atol=1e-5)
    np.testing.assert_allclose(
        potentials.g, solve(x, y, args[2], *problem(7)[2:], None, 8).g, atol=1e-5
    )


@pytest.mark.slow
def test_problems_solved_together_and_one_by_one_are_the_same(monkeypatch):
    x, y, a, b = problem(8, weighted=True)
    together = solve(x, y, np.full(B, 0.05), a, b)
    monkeypatch.setattr(sinkhorn, "_CACHED", 0)
    sinkhorn.jax.clear_caches()
    for one, other in zip(together, solve(x, y, np.full(B, 0.05), a, b), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    sinkhorn.jax.clear_caches()


def test_many_coordinates_cost_what_they_should():
    rng = np.random.default_rng(9)
    x, y = rng.uniform(size=(2, M, 50)).astype(np.float32)
    got = sinkhorn.scaled_cost(x, y, np.float32(0.3))
    np.testing.assert_allclose(got, ot.dist(x, y) / 0.6, rtol=1e-5)


# To the end -----------------------------------------------------------------------------------


def settle(x, y, reg, a, b, tolerance=1e-3):
    x, y, reg, a, b = (np.asarray(v, np.float32) for v in (x, y, reg, a, b))
    return sinkhorn.settle(x, y, reg, (a, b), tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reg", [1e-4, 0.003, 0.1])
def test_settled_couplings_have_the_error_they_state(reg, weighted):
    x, y, a, b = problem(1, weighted=weighted)
    potentials = settle(x, y, np.full(B, reg), a, b)
    coupling = couplings_of(x, y, np.full(B, reg), potentials)
    # in float32 the exponents, some 1 / reg, are known to 1e-7 of that
    rounding = 1e-6 / reg + 1e-5
    assert (potentials.error < 1e-3).all()
    np.testing.assert_allclose(
        np.abs(coupling.sum(axis=2) - a).sum(axis=1), potentials.error, atol=rounding
    )
    np.testing.assert_allclose(np.abs(coupling.sum(axis=1) - b).sum(axis=1), 0.0, atol=rounding)


@pytest.mark.slow
@pytest.mark.parametrize("reg", [0.003, 0.1])
def test_settled_couplings_agree_with_pot(reg):
    x, y, a, b = problem(2, weighted=True)
    potentials = settle(x, y, np.full(B, reg), a, b, 1e-5)
    for k, coupling in enumerate(couplings_of(x, y, np.full(B, reg), potentials)):
        cost = ot.dist(x[k], y[k]) / 2
        log = {"method": "sinkhorn_log", "numItermax": 100_000, "stopThr": 1e-10}
        assert np.abs(coupling - ot.sinkhorn(a[k], b[k], cost, reg, **log)).sum() < 1e-3


def test_every_problem_settles_at_its_own_regularisation():
    x, y, a, b = problem(3)
    reg = np.array([0.001, 0.02, 5.0])
    together = settle(x, y, reg, a, b)
    for k in range(B):
        alone = settle(x[k : k + 1], y[k : k + 1], reg[k : k + 1], a[k : k + 1], b[k : k + 1])
        np.testing.assert_array_equal(together.g[k], alone.g[0])


@pytest.mark.slow
def test_many_particles_begin_with_fewer_and_end_with_the_same_coupling(monkeypatch):
    rng = np.random.default_rng(4)
    x, y = rng.uniform(size=(2, B, 100, D))
    a, b = rng.dirichlet(np.full(100, 2.0), size=(2, B))
    reg = np.full(B, 0.003)
    plain = settle(x, y, reg, a, b, 1e-5)
    sinkhorn.jax.clear_caches()
    monkeypatch.setattr(sinkhorn, "_MANY", 100)
    begun = settle(x, y, reg, a, b, 1e-5)
    sinkhorn.jax.clear_caches()
    assert (begun.error < 1e-5).all()
    assert (begun.g != plain.g).any()
    one, other = (couplings_of(x, y, reg, potentials) for potentials in (plain, begun))
    assert np.abs(one - other).sum(axis=(1, 2)).max() < 2e-3


@pytest.mark.slow
def test_fewer_particles_have_all_weight_and_the_same_mean():
    rng = np.random.default_rng(5)
    x, a = rng.uniform(size=(100, D)).astype(np.float32), rng.dirichlet(np.ones(100))
    some, weights = sinkhorn._fewer(jnp.asarray(x), jnp.asarray(a, jnp.float32))
    assert some.shape == (13, D)
    assert weights.sum() == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(weights @ some, a @ x, atol=1e-6)


@pytest.mark.slow
def test_far_clusters_settle_though_mass_must_pass_between_them():
    """Kernels hold next to nothing of the way between clusters: plain sweeps need thousands."""
    rng = np.random.default_rng(1)
    x, y = 0.02 * rng.standard_normal((2, 30, 40, 2)) + 0.05
    for cloud in (x, y):
        cloud[:, 20:] += 0.9
    moved = 10 ** rng.uniform(-3, -1, (30, 1))
    reg = 10 ** rng.uniform(-4, -2, 30)
    a = np.full((30, 40), 1 / 40)
    b = a + np.where(np.arange(40) < 20, moved, -moved) / 20
    potentials = settle(x, y, reg, a, b, 2e-4)
    settled = potentials.error < 2e-4
    assert settled.mean() > 0.8
    across = couplings_of(x, y, reg, potentials)[:, 20:, :20].sum(axis=(1, 2))
    np.testing.assert_allclose(across[settled], moved[settled, 0], atol=3e-4)
    arrays = (jnp.asarray(v, jnp.float32) for v in (x, y, reg))
    weights = (jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32))
    plain = sinkhorn.solve(*arrays, sinkhorn.cold(30, 40), weights, iterations=500)
    assert (np.asarray(plain.error) < 2e-4).mean() < 0.5


@settings(max_examples=30)
@example(seed=0, reg=1e-7, spread=100.0, clusters=True)
@given(
    st.integers(0, 999),
    st.floats(-8, 4).map(lambda e: 10.0**e),
    st.sampled_from([0.0, 1e-3, 1.0, 100.0]),
    st.booleans(),
)
def test_settling_never_produces_a_number_that_is_none(seed, reg, spread, clusters):
    x, y, a, b = problem(seed, spread, weighted=True)
    if clusters:
        x[:, : M // 3] += 10 * spread
        y[:, : M // 2] += 10 * spread
    for part in settle(x, y, np.full(B, reg), a, b):
        assert np.isfinite(part).all()


def test_points_without_weight_settle_to_nothing():
    x, y, a, b = some_without_weight()
    potentials = settle(x, y, np.full(B, 0.01), a, b)
    coupling = couplings_of(x, y, np.full(B, 0.01), potentials)
    assert (potentials.error < 1e-3).all()
    assert coupling[:, 0].sum() == coupling[:, :, 1].sum() == 0
    np.testing.assert_allclose(coupling.sum(axis=2), a, atol=1e-3)
