"""The step and the loop of the dynamics, and the schedule that they follow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baselines import exact_moments
from privtraj.measures.cells import estimate
from privtraj.measures.langevin import (
    Fixed,
    Schedule,
    State,
    gradient_schedule,
    langevin_step,
    middle,
    run,
    state,
)
from privtraj.measures.langevin import (
    stride as stride_of,
)
from privtraj.measures.likelihood import KAPPA_SPREAD, Mixture, Moments
from privtraj.metrics import average_squared_w2
from privtraj.motion import sinkhorn

T, M, D = 3, 40, 2


def state_of(particles, bandwidth=0.1, bias=0.0, mass=1.0):
    shape = particles.shape[:2]
    mixture = Mixture(
        jnp.asarray(particles, jnp.float32),
        jnp.full(shape, bias, jnp.float32),
        jnp.broadcast_to(jnp.asarray(bandwidth, jnp.float32), shape[:1]),
    )
    return State(mixture, jnp.full(shape, mass, jnp.float32), sinkhorn.cold(3 * (T - 1), M))


def quiet_moments(drift=0.0, mass=1.0, spread=1.0):
    return Moments(
        jnp.broadcast_to(jnp.asarray(drift, jnp.float32), (T, M, D)),
        jnp.broadcast_to(jnp.asarray(mass, jnp.float32), (T, M)),
        jnp.full(T, spread, jnp.float32),
    )


def stride(**changes):
    values = {
        "step_size": 0.5,
        "time_coupling": 0.0,
        "temperature": 0.0,
        "noise_limit": np.inf,
        "relocate": 0.0,
        "shrink": 1.0,
        "grow": 1.0,
    }
    return Schedule(**{k: jnp.float32(v) for k, v in {**values, **changes}.items()})


def fixed(gaps=(1.0, 1.0), target=0.0):
    return Fixed(
        jnp.asarray(gaps, jnp.float32),
        jnp.full(T, target, jnp.float32),
    )


NO_NOISE = jnp.zeros(T, jnp.float32)


def kicks(seed=0):
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.standard_normal((T, M, D)), jnp.float32)


def move(state, moments=None, noise=NO_NOISE, by=None, around=None, seed=0):
    return langevin_step(
        state, moments or quiet_moments(), noise, kicks(seed), by or stride(), around or fixed()
    )


def cloud(seed=0):
    return np.random.default_rng(seed).uniform(0.2, 0.8, size=(M, D))


# Safety ---------------------------------------------------------------------------------------

extreme = st.sampled_from([0.0, 1.0, -1.0, 1e4, -1e4, 1e12, -1e12, 1e30, -1e30])


@pytest.mark.slow
@settings(max_examples=60)
@given(
    drift=extreme,
    mass=st.sampled_from([0.0, 1.0, -5.0, 1e12]),
    spread=st.sampled_from([1.0, 0.0, -1e12, 1e12]),
    noise=st.sampled_from([0.0, 1e-3, 1.0, 1e12, 1e30]),
    bandwidth=st.sampled_from([1e-4, 0.004, 0.1, 0.5]),
    corner=st.sampled_from([None, 0.0, 1.0]),
    gaps=st.sampled_from([(1.0, 1.0), (1e-3, 1.999), (1.999, 1e-3)]),
    limit=st.sampled_from([0.3, np.inf]),
)
def test_a_step_stays_in_the_box_and_finite_whatever_it_is_told(
    drift, mass, spread, noise, bandwidth, corner, gaps, limit
):
    particles = np.stack([cloud(i) for i in range(T)])
    if corner is not None:
        particles[:] = corner
    by = stride(
        time_coupling=0.1,
        temperature=0.25,
        noise_limit=limit,
        relocate=1,
        shrink=0.1,
        grow=1.1,
    )
    wavy = drift * np.cos(np.arange(T * M * D)).reshape(T, M, D)
    state = state_of(particles, bandwidth)
    for _ in range(2):
        state, trace = move(
            state, quiet_moments(wavy, mass, spread), jnp.full(T, noise), by, fixed(gaps)
        )
    for leaf in jax.tree.leaves((state, trace)):
        assert np.isfinite(np.asarray(leaf)).all()
    x = np.asarray(state.mixture.particles)
    assert x.min() >= 0
    assert x.max() <= 1
    sigma = np.asarray(state.mixture.bandwidth)
    assert (sigma > 0).all()
    assert (sigma <= 0.5).all()


@pytest.mark.slow
def test_a_noisy_step_is_shortened_to_the_noise_limit():
    loud = jnp.asarray([0.01, 1.0, 100.0], jnp.float32)
    _, trace = move(state_of(np.stack([cloud()] * T)), noise=loud, by=stride(noise_limit=0.3))
    relative = np.asarray(trace.noise) * np.sqrt(D)
    assert (relative <= 0.3 * (1 + 1e-5)).all()
    assert float(trace.alpha[0]) == pytest.approx(0.5)
    assert float(trace.alpha[2]) < float(trace.alpha[1]) < 0.5


@pytest.mark.slow
def test_privacy_noise_replaces_langevin_noise():
    clouds = np.stack([cloud()] * T)
    noise = jnp.asarray([0.0, 0.02, 1.0], jnp.float32)  # the drift itself is quiet here
    state, trace = move(state_of(clouds, 0.1), noise=noise, by=stride(temperature=0.25))
    moved = (np.asarray(state.mixture.particles) - clouds).std(axis=(1, 2))
    wanted = np.asarray(trace.alpha) * np.sqrt(np.maximum(0.025**2 - np.asarray(noise) ** 2, 0))
    # standard error of a standard deviation of 80 draws: 8 %; 4.5 of them
    np.testing.assert_allclose(moved, wanted, rtol=0.36, atol=1e-6)
    assert moved[2] < 1e-6


# The drift ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_without_neighbours_and_noise_a_step_follows_the_drift():
    clouds = np.stack([cloud(i) for i in range(T)])
    drift = 0.05 * np.sin(np.arange(T * M * D)).reshape(T, M, D)
    state, _ = move(state_of(clouds), quiet_moments(drift))
    np.testing.assert_allclose(state.mixture.particles, clouds - 0.5 * drift, atol=1e-6)


def test_particles_that_attract_too_many_people_lose_bias():
    mass = np.ones((T, M))
    mass[:, 0], mass[:, 1] = 3.0, 0.2
    state, _ = move(state_of(np.stack([cloud()] * T)), quiet_moments(mass=mass))
    bias = np.asarray(state.mixture.bias)
    assert (bias[:, 0] < bias[:, 2]).all()
    assert (bias[:, 1] > bias[:, 2]).all()
    assert (np.asarray(state.mass)[:, 0] > 1).all()


def test_a_light_particle_moves_next_to_a_heavy_one_and_only_where_allowed():
    mass = np.ones((T, M))
    mass[:, 0], mass[:, 1] = 0.0, 5.0
    clouds = np.stack([cloud()] * T)
    far = np.abs(clouds[:, 0] - clouds[:, 1]).max()
    begun = state_of(clouds, 0.01)._replace(mass=jnp.asarray(mass, jnp.float32))
    for allowed in (0.0, 1.0):
        state, _ = move(begun, quiet_moments(mass=mass), by=stride(relocate=allowed))
        x = np.asarray(state.mixture.particles)
        apart = np.abs(x[:, 0] - x[:, 1]).max()
        assert (apart < 0.08) == bool(allowed)
        assert far > 0.08
        np.testing.assert_allclose(x[:, 2:], clouds[:, 2:], atol=1e-6)
    # the mass of the heavy particle is shared, not doubled
    np.testing.assert_allclose(np.asarray(state.mass)[:, :2].sum(axis=1), 5.0, rtol=1e-5)


@pytest.mark.parametrize(("spread", "grows"), [(4.0, True), (0.25, False)])
def test_the_bandwidth_follows_the_spread_within_the_limits_of_the_step(spread, grows):
    by = stride(step_size=1.0, shrink=0.8, grow=1.1)
    state, _ = move(state_of(np.stack([cloud()] * T), 0.1), quiet_moments(spread=spread), by=by)
    np.testing.assert_allclose(state.mixture.bandwidth, 0.11 if grows else 0.08, rtol=1e-5)


@pytest.mark.parametrize(("noise", "share"), [(0.0, 1.0), (1.0, 0.5), (100.0, 0.0)])
def test_the_bandwidth_follows_a_noisy_spread_less(noise, share):
    """Noise of the drift, m KAPPA_SPREAD sigma times that of the spread, tells how much."""
    by, sigma = stride(step_size=1.0, shrink=0.1, grow=10.0), 0.1
    told = jnp.full(T, noise * M * KAPPA_SPREAD * sigma, jnp.float32)
    begun = state_of(np.stack([cloud()] * T), sigma)
    state, _ = move(begun, quiet_moments(spread=0.5), told, by)
    wanted = sigma * np.sqrt(1 - 0.5 * share)
    np.testing.assert_allclose(state.mixture.bandwidth, wanted, rtol=1e-4)


def test_a_bandwidth_set_by_hand_is_reached_and_kept():
    by = stride(step_size=1.0, shrink=0.5, grow=1.1)
    state = state_of(np.stack([cloud()] * T), 0.4)
    for _ in range(12):
        state, _ = move(state, quiet_moments(spread=0.1), by=by, around=fixed(target=0.07))
    np.testing.assert_allclose(state.mixture.bandwidth, 0.07, rtol=1e-5)


# The drift between times ----------------------------------------------------------------------


def biased_step(x, bandwidth, time_coupling):
    """The plain drift bar_ij(x) - x, as an implementation without self-transport would do it."""
    reg = jnp.full(T - 1, bandwidth**2, jnp.float32)
    ahead = sinkhorn.solve(x[:-1], x[1:], reg, sinkhorn.cold(T - 1, M), iterations=50)
    behind = sinkhorn.solve(x[1:], x[:-1], reg, sinkhorn.cold(T - 1, M), iterations=50)
    forth = sinkhorn.barycentres(x[:-1], x[1:], reg, ahead) - x[:-1]
    back = sinkhorn.barycentres(x[1:], x[:-1], reg, behind) - x[1:]
    return x + time_coupling * jnp.zeros_like(x).at[:-1].add(forth).at[1:].add(back)


@pytest.mark.slow
def test_the_transport_drift_vanishes_and_never_shrinks_where_all_times_agree():
    begun = np.stack([cloud()] * T)
    state, biased = state_of(begun, 0.2), jnp.asarray(begun, jnp.float32)
    first, _ = move(state, by=stride(time_coupling=0.1))
    plain = np.asarray(biased_step(biased, 0.2, 0.1)) - begun
    debiased = np.asarray(first.mixture.particles) - begun
    assert np.abs(debiased).max() < 0.05 * np.abs(plain).max()
    for _ in range(60):
        state, _ = move(state, by=stride(time_coupling=0.1))
        biased = biased_step(biased, 0.2, 0.1)
    variance = np.asarray(state.mixture.particles).var(axis=1).sum(axis=-1)
    shrunk = np.asarray(biased).var(axis=1).sum(axis=-1)
    true = begun.var(axis=1).sum(axis=-1)
    np.testing.assert_allclose(variance, true, rtol=0.03)
    assert (shrunk < 0.5 * true).all()


def test_the_transport_drift_carries_neighbouring_clouds_towards_each_other():
    offsets = np.array([-0.1, 0.0, 0.1])[:, None, None]
    begun = np.stack([cloud()] * T) + offsets
    state, _ = move(state_of(begun, 0.1), by=stride(time_coupling=0.1))
    shift = (np.asarray(state.mixture.particles) - begun).mean(axis=(1, 2))
    assert shift[0] > 0.003
    assert shift[2] < -0.003
    assert abs(shift[1]) < 0.2 * shift[0]


def test_a_longer_gap_draws_less():
    offsets = np.array([-0.1, 0.0, 0.1])[:, None, None]
    begun = np.stack([cloud()] * T) + offsets
    state, _ = move(state_of(begun, 0.1), by=stride(time_coupling=0.1), around=fixed((0.5, 1.5)))
    shift = (np.asarray(state.mixture.particles) - begun).mean(axis=(1, 2))
    assert shift[0] > 2 * abs(shift[2]) > 0
    assert shift[1] < -0.2 * shift[0]  # the near neighbour wins


# The loop -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def known():
    """Exact counts of a moving two-mode mixture, and the people themselves."""
    rng = np.random.default_rng(0)
    side, n = 16, 500
    clouds = []
    for i in range(T):
        centre = np.where(rng.random((n, 1)) < 0.5, [0.25, 0.3 + 0.1 * i], [0.75, 0.6])
        clouds.append(np.clip(centre + 0.05 * rng.standard_normal((n, D)), 0, 0.999))
    counts = np.zeros((T, side, side), dtype=np.int64)
    for i, points in enumerate(clouds):
        np.add.at(counts[i], tuple((points * side).astype(int).T), 1)
    measure = estimate(counts.reshape(T, -1), side, 20.0, np.full(T, float(n)), D)
    return measure, clouds


def test_annealing_from_the_middle_finds_both_modes_when_moments_are_exact(known):
    measure, clouds = known
    rng = np.random.default_rng(4)
    begun = middle(T, M, D)
    ended, trace = run(
        begun,
        exact_moments(measure.centres, measure.weights),
        gradient_schedule(40, 0.05),
        fixed(),
        rng,
    )
    x = np.asarray(ended.mixture.particles)
    before = average_squared_w2(np.asarray(begun.mixture.particles), clouds)
    after = average_squared_w2(x, clouds)
    assert after < 0.2 * before
    right = (x[..., 0] > 0.5).mean(axis=1)
    np.testing.assert_allclose(right, 0.5, atol=0.2)
    assert trace.bandwidth.shape == (40, T)
    assert np.isfinite(trace.marginal_error).all()


def test_particles_begin_where_they_are_put_with_equal_masses():
    clouds = np.stack([cloud(i) for i in range(T)])
    for begun, where, width in (
        (state(clouds, np.full(T, 0.07), 1), clouds, 0.07),
        (middle(T, M, D), 0.5, 12**-0.5),
    ):
        np.testing.assert_allclose(begun.mixture.particles - where, 0, atol=1e-7)
        np.testing.assert_allclose(begun.mixture.bandwidth, np.full(T, width), rtol=1e-6)
        np.testing.assert_array_equal(begun.mass, np.ones((T, M)))
    put = state(clouds, np.full(T, 0.07), 1).mixture.particles
    np.testing.assert_allclose(put, clouds, rtol=1e-6)


@pytest.mark.slow
def test_nothing_is_compiled_again_between_steps(known):
    measure, _ = known
    rng = np.random.default_rng(5)
    moments = exact_moments(measure.centres, measure.weights)
    begun = middle(T, 9, D)  # a size that no other test uses
    before = langevin_step._cache_size()
    run(begun, moments, gradient_schedule(5, 0.05), fixed(), rng)
    assert langevin_step._cache_size() - before == 1
    run(begun, moments, gradient_schedule(7, 0.1), fixed((0.5, 1.5), 0.1), rng)
    assert langevin_step._cache_size() - before == 1


def test_progress_counts_every_step(known):
    measure, _ = known
    rng = np.random.default_rng(6)
    told = []
    run(
        middle(T, M, D),
        exact_moments(measure.centres, measure.weights),
        gradient_schedule(4, 0.05),
        fixed(),
        rng,
        lambda *done: told.append(done),
    )
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


@settings(max_examples=60)
@given(st.integers(2, 100), st.floats(0, 10))
def test_a_schedule_has_one_sound_number_per_step(steps, time_coupling):
    made = gradient_schedule(steps, time_coupling)
    for name, values in made._asdict().items():
        assert values.shape == (steps,), name
        assert np.isfinite(values).all(), name
        assert (values >= 0).all(), name
    assert (made.noise_limit > 0).all()
    assert (made.step_size > 0).all()
    assert (made.step_size <= 1).all()
    assert (made.time_coupling <= time_coupling).all()
    assert (made.shrink <= made.grow).all()
    assert (made.shrink > 0).all()


def test_a_stride_is_one_step_of_a_schedule():
    made = gradient_schedule(5, 0.1)
    one = stride_of(made, 3)
    assert one._fields == made._fields
    np.testing.assert_array_equal(one, np.float32([row[3] for row in made]))


def test_a_schedule_settles_with_smaller_steps():
    made = gradient_schedule(40, 0.1)
    assert made.step_size[-1] < made.step_size[0]
    assert (np.diff(made.step_size) <= 1e-12).all()
