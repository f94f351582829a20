"""The measured theorems: every ruler against a closed form, and a small run of everything."""

import json
import math

import numpy as np
import pytest

from reproduce import fits, rates, theorems
from reproduce.known_process import (
    GRID,
    Process,
    estimate,
    mismatch,
    normal,
    path_error,
    squared_hellinger,
)
from reproduce.result import Options

pytestmark = pytest.mark.thorough

STEP = GRID[1] - GRID[0]


def normal_hellinger(m1, v1, m2, v2):
    """Closed form of d_H^2 between two normal laws, which is 2 where they do not overlap."""
    overlap = math.sqrt(2 * math.sqrt(v1 * v2) / (v1 + v2))
    return 2 - 2 * overlap * math.exp(-((m1 - m2) ** 2) / (4 * (v1 + v2)))


# Rulers -----------------------------------------------------------------------------------------


def test_hellinger_of_normal_laws():
    p, q = normal(GRID - 0.4, 0.01), normal(GRID - 0.6, 0.02)
    assert squared_hellinger(p, q) == pytest.approx(
        normal_hellinger(0.4, 0.01, 0.6, 0.02), rel=1e-4
    )
    assert squared_hellinger(p, p) == 0


def test_the_process_has_the_marginals_it_says():
    """Euler steps of the equation in the docstring; 20 000 paths, standard errors below 1 %."""
    process, rng = Process(), np.random.default_rng(0)
    steps, n = 400, 20_000
    dt = 1 / steps
    x = process.mean(np.array(0.0)) + math.sqrt(process.first) * rng.standard_normal(n)
    for k in range(steps):
        t = np.array(k * dt)
        velocity = (process.mean(t + 1e-5) - process.mean(t - 1e-5)) / 2e-5
        drift = velocity - process.theta * (x - process.mean(t))
        x = x + drift * dt + math.sqrt(process.tau * dt) * rng.standard_normal(n)
    assert x.mean() == pytest.approx(float(process.mean(np.array(1.0))), abs=0.003)
    assert x.var() == pytest.approx(float(process.variance(np.array(1.0))), rel=0.04)


def test_people_are_seen_with_noise():
    times = np.array([0.0, 1.0])
    seen = Process().people(times, 20_000, 0.05, np.random.default_rng(0))
    assert seen.shape == (2, 20_000, 1)
    np.testing.assert_allclose(
        seen[..., 0].var(axis=1), Process().variance(times) + 0.05**2, rtol=0.05
    )


def test_an_estimate_between_times_is_a_mixture_of_bridges():
    x, y = np.array([0.2, 0.4]), np.array([0.6, 0.8])
    plan = np.array([[0.25, 0.75], [1.0, 0.0]])
    found = estimate([(x, y)], [plan], share=0.25, variance=0.01)
    places, weights = (0.3, 0.35, 0.45), (0.125, 0.375, 0.5)
    expected = sum(w * normal(GRID - at, 0.01) for w, at in zip(weights, places, strict=True))
    np.testing.assert_allclose(found, expected, atol=0.01)
    assert found.sum() * STEP == pytest.approx(1, abs=1e-3)


def test_the_error_of_the_truth_is_the_particles_alone():
    """Clouds drawn from the process: what is left is their floor, far below a wrong variance."""
    process, rng, times = Process(), np.random.default_rng(0), np.linspace(0, 1, 17)
    clouds = [process.people(times, 40, 0.0, rng) for _ in range(10)]
    error, floor = path_error(process, times, clouds, 0.05)
    assert error < 0.005
    assert floor == pytest.approx(error, rel=0.5)


def test_the_error_of_a_shift_is_its_hellinger_distance():
    """Many particles at the quantiles of the truth, moved aside: the closed form at every time."""
    process, times = Process(swing=0.0, first=0.04 / 5), np.linspace(0, 1, 5)
    quantiles = theorems.ndtri((np.arange(100) + 0.5) / 100)
    cloud = 0.55 + math.sqrt(process.first) * quantiles
    clouds = [np.tile(cloud[None, :, None], (5, 1, 1))] * 2
    error, floor = path_error(process, times, clouds, 0.05)
    variance = process.first + 0.05**2
    expected = normal_hellinger(0.5, variance, 0.55, variance)
    assert error == pytest.approx(expected, rel=0.03)
    assert floor == pytest.approx(0, abs=1e-12)


def test_people_seen_without_noise_leave_the_kernel_as_error():
    process = Process(swing=0.0, first=0.04 / 5)
    v = process.first
    assert mismatch(process, 0.05) == pytest.approx(
        normal_hellinger(0, v, 0, v + 0.05**2), rel=1e-4
    )


# Fits -------------------------------------------------------------------------------------------


def test_a_decay_is_found_in_noise():
    t = np.linspace(0, 3, 150)
    noise = 0.002 * np.random.default_rng(0).standard_normal(150)
    found = fits.decay(t, 5 + 2 * np.exp(-4 * t) + 3 * np.exp(-40 * t) + noise)
    assert found.rate == pytest.approx(4, rel=0.05)
    assert found.limit == pytest.approx(5, abs=1e-3)


def test_a_power_is_found_with_its_limit():
    x = 1 / np.array([8.0, 16, 32, 64, 128])
    found = fits.power(x, 1.5 + 0.4 * x**1.3)
    assert found.exponent == pytest.approx(1.3, abs=1e-3)
    assert found.limit == pytest.approx(1.5, abs=1e-5)
    np.testing.assert_allclose(found(x), 1.5 + 0.4 * x**1.3, atol=1e-6)


def test_slopes_are_those_of_the_logarithms():
    assert fits.slope([1, 10, 100], [3, 0.3, 0.03]) == pytest.approx(-1)


def test_the_bound_changes_where_people_are_as_many_as_times():
    assert fits.bound(16, 2) == pytest.approx(2 ** (-2 / 3) * 16 ** (-1 / 3))
    assert fits.bound(16, 16) == pytest.approx(1 / 16)
    assert fits.bound(16, 1000) == 1 / 16


# Measurements -----------------------------------------------------------------------------------


def test_longer_steps_take_the_same_brownian_path():
    fine, coarse = theorems._Coarser(3, 1), theorems._Coarser(3, 4)
    four = [fine.standard_normal((2, 5), dtype=np.float32) for _ in range(4)]
    long = coarse.standard_normal((2, 5), dtype=np.float32)
    assert long.dtype == np.float32
    np.testing.assert_allclose(long, sum(four) / 2, rtol=1e-5)


def test_random_times_keep_the_first_and_the_last():
    row = theorems.statistics(times=8, people=3, m=8, steps=10, seed=0, kept=4)[0]
    assert row["used"] == 4
    assert row["check"] == "some times"
    assert row["lam"] == pytest.approx(theorems.penalty(4, 3))


def test_the_objective_over_paths_is_that_over_marginals():
    """Theorem C.1: within 5 standard errors of the sampled paths, and cheaper than other plans."""
    rows = theorems.representer(times=4, people=10, m=8, steps=60, counts=(50, 5000), seed=0)
    costs = {row["coupling"]: row for row in rows if "coupling" in row}
    own = costs["entropic"]
    assert own["cost"] == pytest.approx(own["transport"], abs=5 * own["cost_error"])
    assert own["cost"] < min(costs["exact"]["cost"], costs["independent"]["cost"])
    few, many = (row for row in rows if "paths" in row)
    assert many["squared_w2"] < few["squared_w2"]
    assert many["squared_w2"] < many["draws_squared_w2"]


def test_the_quick_run_makes_every_row_figure_and_section(tmp_path):
    found = rates.run(Options(seeds=1, quick=True))
    checks = {row["check"] for row in found.rows}
    assert {"convergence", "decay", "statistics", "some times", "paths", "power"} <= checks
    assert set(found.figures) == {
        f"rates-{name}" for name in ("convergence", "statistics", "paths", "discretisation")
    }
    for statement in ("Theorem C.3", "Theorem 3.2", "Corollary 4.3", "Theorem C.1", "Appendix C.4"):
        assert f"## {statement}" in found.text
    assert "nan" not in found.text
    written = found.write(tmp_path)
    assert all(path.exists() for path in written)
    again = json.loads((tmp_path / "rates.json").read_text())
    assert again["settings"]["seeds"] == 1
