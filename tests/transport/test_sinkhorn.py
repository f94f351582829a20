"""Batched Sinkhorn against POT in float64, and at costs that break exp-domain iterations."""

import jax.numpy as jnp
import numpy as np
import ot
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privtraj.transport import sinkhorn

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


def plans_of(x, y, reg, coupling):
    """P = exp(f + g - C) in float64, (B, M, M)."""
    cost = ((x[:, :, None] - y[:, None]) ** 2).sum(-1) / (2 * np.asarray(reg)[:, None, None])
    f, g = np.asarray(coupling.f, np.float64), np.asarray(coupling.g, np.float64)
    return np.exp(f[:, :, None] + g[:, None, :] - cost)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reg", [0.02, 0.1, 1.0])
def test_plans_agree_with_pot(reg, weighted):
    x, y, a, b = problem(1, weighted=weighted)
    coupling = solve(x, y, np.full(B, reg), a, b)
    for k, plan in enumerate(plans_of(x, y, np.full(B, reg), coupling)):
        oracle = ot.sinkhorn(
            a[k],
            b[k],
            ot.dist(x[k], y[k]) / 2,
            reg,
            method="sinkhorn_log",
            numItermax=20_000,
            stopThr=1e-12,
        )
        assert np.abs(plan - oracle).sum() < 1e-3


def test_each_problem_of_a_batch_has_its_own_regularisation():
    x, y, a, b = problem(2)
    reg = np.array([0.05, 0.2, 2.0])
    together = solve(x, y, reg, a, b)
    for k in range(B):
        alone = solve(x, y, np.full(B, reg[k]), a, b)
        np.testing.assert_allclose(together.g[k], alone.g[k], atol=1e-5)


@settings(max_examples=25)
@given(st.integers(0, 999), st.floats(-1.3, 1).map(lambda e: 10.0**e))
def test_weights_are_the_marginals_of_the_plan(seed, reg):
    x, y, a, b = problem(seed, weighted=True)
    coupling = solve(x, y, np.full(B, reg), a, b)
    plan = plans_of(x, y, np.full(B, reg), coupling)
    np.testing.assert_allclose(plan.sum(axis=1), b, atol=2e-4)
    np.testing.assert_allclose(np.abs(plan.sum(axis=2) - a).sum(axis=1), coupling.error, atol=2e-4)
    assert np.abs(plan.sum(axis=2) - a).sum() < 0.02


def test_uniform_weights_are_the_default():
    x, y, a, b = problem(3)
    reg = jnp.full(B, 0.1, jnp.float32)
    args = (jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), reg, sinkhorn.cold(B, M))
    plain = sinkhorn.solve(*args, iterations=200)
    np.testing.assert_allclose(plain.g, solve(x, y, np.asarray(reg), a, b).g, atol=1e-6)


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
    coupling = solve(x, y, np.full(B, reg), a, b)
    for part in coupling:
        assert np.isfinite(np.asarray(part)).all()
    args = (jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.full(B, reg, jnp.float32))
    bar = np.asarray(sinkhorn.barycentres(*args, coupling))
    assert (bar >= y.min(axis=1, keepdims=True) - 1e-3 * spread).all()
    assert (bar <= y.max(axis=1, keepdims=True) + 1e-3 * spread).all()


def test_points_without_weight_send_and_receive_nothing():
    x, y, a, b = problem(5)
    a[:, 0], b[:, 1] = 0.0, 0.0
    a, b = (w / w.sum(axis=1, keepdims=True) for w in (a, b))
    coupling = solve(x, y, np.full(B, 0.1), a, b)
    plan = plans_of(x, y, np.full(B, 0.1), coupling)
    assert not np.isnan(plan).any()
    assert plan[:, 0].sum() == pytest.approx(0.0, abs=1e-6)
    assert plan[:, :, 1].sum() == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(plan.sum(axis=2), a, atol=1e-3)


@pytest.mark.parametrize("reg", [0.02, 0.5])
def test_barycentres_are_the_plan_times_the_partners(reg):
    x, y, a, b = problem(6, weighted=True)
    coupling = solve(x, y, np.full(B, reg), a, b)
    plan = plans_of(x, y, np.full(B, reg), coupling)
    expected = plan @ y / plan.sum(axis=2, keepdims=True)
    args = (jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.full(B, reg, jnp.float32))
    np.testing.assert_allclose(sinkhorn.barycentres(*args, coupling), expected, atol=1e-4)
