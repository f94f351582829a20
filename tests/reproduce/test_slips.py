"""What docs/paper.md says of slips in the paper, where no other test shows it."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gammaln

from privtraj.motion import sinkhorn
from privtraj.paper.dynamics import objective
from privtraj.privacy.accounting import epsilon_at, gaussian_delta
from privtraj.privacy.events import ChosenTimes, GaussianSum

pytestmark = pytest.mark.thorough

# The objective --------------------------------------------------------------------------------


def data_fit(measure, data, kernel):
    """DF of equation (4) on a finite space."""
    return -float(data @ np.log(kernel @ measure))


def test_the_data_fit_is_not_jointly_convex():
    kernel = np.exp(-np.array([[0.0, 1.0], [1.0, 0.0]]) / 0.2)
    left, right = np.array([0.9, 0.1]), np.array([0.1, 0.9])
    ends = (data_fit(left, left, kernel) + data_fit(right, right, kernel)) / 2
    middle = (left + right) / 2
    assert data_fit(middle, middle, kernel) > 2 * ends
    alone = (data_fit(left, left, kernel) + data_fit(right, left, kernel)) / 2
    assert data_fit(middle, left, kernel) < alone  # in the measure alone it is convex


def test_the_data_fit_has_minus_the_negative_entropy():
    """Data N(0, s), particles N(0, r), both in one dimension; H is the integral of log density."""
    s, r, kernel = 0.7, 0.4, 0.09
    v = r + kernel
    fit = -math.log(math.sqrt(2 * math.pi * kernel)) + math.log(2 * math.pi * v) / 2 + s / (2 * v)
    relative = math.log(v / s) / 2 + s / (2 * v) - 1 / 2
    entropy = -math.log(2 * math.pi * math.e * s) / 2
    constant = -math.log(2 * math.pi * kernel) / 2
    assert fit == pytest.approx(relative - entropy + constant)
    assert fit != pytest.approx(relative + entropy + constant, abs=0.1)


def test_the_first_variation_belongs_to_transport_over_dt():
    """m times the gradient of sum T / dt is sum (x - bar) / dt, as Proposition C.2 has it."""
    gaps, tau, m = np.array([0.5, 0.5]), 0.4, 6
    x = np.random.default_rng(0).uniform(size=(3, m, 2))

    def transport(particles):
        return objective(particles, list(x), gaps, lam=1.0, sigma=0.3, tau=tau).transport

    def partners(i, j):
        a, b = (jnp.asarray(x[[k]], jnp.float32) for k in (i, j))
        reg = jnp.asarray([tau * 0.5], jnp.float32)
        found = sinkhorn.solve(a, b, reg, sinkhorn.cold(1, m), iterations=300)
        return np.asarray(sinkhorn.barycentres(a, b, reg, found))[0]

    step = np.zeros_like(x)
    for place in [(0, 1, 0), (1, 2, 1), (2, 3, 0)]:
        step[place] = 2e-3
        gradient = (transport(x + step) - transport(x - step)) / 4e-3
        i, k, axis = place
        near = [j for j in (i - 1, i + 1) if 0 <= j < 3]
        expected = sum((x[i] - partners(i, j))[k, axis] for j in near) / 0.5
        assert m * gradient == pytest.approx(expected, abs=2e-3)
        step[place] = 0.0


def test_the_noise_of_equation_10_is_half_of_what_the_objective_asks_for():
    """V = x^2 / 2: the chain with noise sqrt(eta tau) settles at tau / 2, exp(-V / tau) has tau."""
    tau, eta = 0.3, 1e-3
    settled = {factor: factor * eta * tau / (1 - (1 - eta) ** 2) for factor in (1, 2)}
    assert settled[1] == pytest.approx(tau / 2, rel=1e-3)
    assert settled[2] == pytest.approx(tau, rel=1e-3)


def test_the_entropy_sandwich_has_the_minimiser_on_its_lower_side():
    """tau KL(mu | mu*) <= F(mu) - F* <= tau KL(mu | Gibbs measure of mu), G convex quadratic."""
    rng, n, tau = np.random.default_rng(1), 6, 0.5
    square = rng.normal(size=(n, n))
    matrix, slope = square @ square.T, rng.normal(size=n)

    def gibbs(p):
        q = np.exp(-(matrix @ p + slope) / tau)
        return q / q.sum()

    def objective_of(p):
        return p @ matrix @ p / 2 + slope @ p + tau * p @ np.log(p)

    best = np.full(n, 1 / n)
    for _ in range(5000):
        best = 0.98 * best + 0.02 * gibbs(best)
    for mu in rng.dirichlet(np.ones(n), size=20):
        above = objective_of(mu) - objective_of(best)
        assert tau * mu @ np.log(mu / best) < above < tau * mu @ np.log(mu / gibbs(mu))


# Sinkhorn -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("update", "older", "right"),
    [(np.multiply, True, False), (np.divide, True, False), (np.divide, False, True)],
)
def test_sinkhorn_divides_and_takes_the_newer_vector(update, older, right):
    """Algorithm 2 as printed misses the marginals; with a quotient alone, still their mass."""
    rng = np.random.default_rng(2)
    kernel = np.exp(-rng.uniform(size=(4, 4)))
    mu, nu = rng.dirichlet(np.ones(4), size=2)
    phi, psi = np.ones(4), np.ones(4)
    for _ in range(200):
        before, psi = psi, update(nu, kernel.T @ phi)
        phi = update(mu, kernel @ (before if older else psi))
    plan = phi[:, None] * kernel * psi
    amiss = np.abs(plan.sum(axis=1) - mu).sum() + np.abs(plan.sum(axis=0) - nu).sum()
    assert bool(amiss < 1e-6) is right
    if update is np.divide:
        shape = plan / plan.sum()
        np.testing.assert_allclose(shape.sum(axis=1), mu, atol=1e-6)


# Privacy --------------------------------------------------------------------------------------


def test_private_means_hold_though_not_by_the_lemma():
    """Variance (2R/N)^2 2 log(1/delta) / epsilon^2: enough for every delta up to 0.98."""
    for delta in np.append(np.geomspace(1e-12, 0.1, 40), np.linspace(0.1, 0.98, 40)):
        for epsilon in np.linspace(0.01, 0.999, 25):
            mu = epsilon / math.sqrt(2 * math.log(1 / delta))
            assert float(gaussian_delta(epsilon, mu)) <= delta
    beyond = 10 / math.sqrt(2 * math.log(1e4))
    assert float(gaussian_delta(10, beyond)) > 3e-4  # at epsilon 10 it is not


def test_dropped_times_cost_less_only_if_nobody_changes_times():
    """Figure 2 with one person replaced: 0.392 within a time, 0.440 if the time may change too."""
    step = GaussianSum(1.0, "", rate=5 / 626)
    kept = epsilon_at([(step, 100)], 2 * 5e-4, "replace-one")
    free = epsilon_at([ChosenTimes(0.5, step, 100, "")], 5e-4, "replace-one")
    assert (kept, free) == (pytest.approx(0.392, abs=5e-4), pytest.approx(0.440, abs=5e-4))


# Sampled times --------------------------------------------------------------------------------


def mean_of_largest_gap(times, z, draws, rng):
    found = []
    for _ in range(draws):
        chosen = np.sort(rng.choice(times - 1, size=z, replace=False) + 1)
        found.append(np.diff(chosen, prepend=0, append=times).max())
    return np.mean(found)


def union_over_gaps(times, z):
    """sum_t min(1, (z + 1) P[first gap >= t]), P[first gap >= t] = C(T - t, z) / C(T - 1, z)."""
    t = np.arange(1, times - z + 1)
    log_p = gammaln(times - t + 1) - gammaln(times - t - z + 1)
    log_p -= gammaln(times) - gammaln(times - z)
    return np.minimum(1, (z + 1) * np.exp(log_p)).sum()


@pytest.mark.parametrize(("times", "z"), [(1000, 47), (1000, 177), (20_000, 98), (20_000, 1681)])
def test_the_largest_gap_is_as_claimed_but_not_by_the_printed_proof(times, z):
    claimed = times / z * math.log(z)
    measured = mean_of_largest_gap(times, z, 200, np.random.default_rng(3))
    assert 0.9 * claimed < measured < 1.25 * claimed
    # a union over z + 1 gaps instead of T blocks proves it, for any z
    assert measured < union_over_gaps(times, z) < claimed + 1.5 * times / z + 1
    # the last line of the printed proof is larger by T / (z log z), which may grow without bound
    printed = claimed + times / z / (1 - math.exp(-z / times))
    assert printed / claimed > 0.9 * (1 + times / (z * math.log(z)))
