"""Times left out: references in closed form, and predictions from functions and models."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj import metrics
from privtraj.base.errors import InputError

STEP = np.array([3.0, 4.0])


def moving(times, n=20, seed=0):
    """A cloud that moves by STEP per unit of time."""
    x = np.random.default_rng(seed).standard_normal((n, 2))
    return [x + t * STEP for t in times]


def test_neighbours_and_their_midpoint_in_closed_form():
    times = [0.0, 1.0, 4.0, 5.0]
    clouds = moving(times)
    found = metrics.held_out_w2(clouds[1] + [0, 2], clouds, times, 1)
    assert found.time == 1.0
    assert found.value == pytest.approx(2.0)
    assert found.previous == pytest.approx(5.0)
    assert found.next == pytest.approx(15.0)
    assert found.midpoint == pytest.approx(0.0, abs=1e-6)  # a quarter of the way, not half
    assert found.to_dict()["value"] == found.value


def test_every_interior_time_is_left_out_once():
    times = np.arange(5.0)
    clouds = moving(times)
    asked = []

    def straight(rest, when, at):
        asked.append((len(rest), at))
        assert at not in when
        before = np.searchsorted(when, at) - 1
        return (rest[before] + rest[before + 1]) / 2

    scores = metrics.leave_one_out(straight, clouds, times)
    assert asked == [(4, 1.0), (4, 2.0), (4, 3.0)]
    assert [s.value for s in scores] == pytest.approx([0, 0, 0], abs=1e-6)
    assert all(s.previous == pytest.approx(5) for s in scores)


@pytest.mark.parametrize("unit", [None, "D"])
def test_a_model_is_sampled_at_the_time_as_it_was_given(unit):
    times = np.arange(3) if unit is None else np.datetime64("2024-01-01") + np.arange(3)
    clouds = moving(np.arange(3.0))
    asked = {}

    def sample(n, when, *, seed):
        asked.update(n=n, when=when, seed=seed)
        return SimpleNamespace(values=np.broadcast_to(clouds[1][0], (n, 1, 2)))

    found = metrics.held_out_w2(SimpleNamespace(sample=sample), clouds, times, 1, n=7, seed=5)
    assert (asked["n"], asked["seed"]) == (7, 5)
    np.testing.assert_array_equal(asked["when"], times[1:2])
    assert found.value == pytest.approx(metrics.wasserstein2(clouds[1][:1], clouds[1]))


@settings(max_examples=25)
@given(st.integers(0, 99), st.integers(1, 9), st.integers(1, 9), st.floats(0, 1))
def test_displacement_interpolation_walks_the_straight_line_of_w2(seed, n, k, share):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((n, 2)), 2 + rng.standard_normal((k, 2))
    points, mass = metrics.displacement_interpolation(a, b, share)
    assert len(points) <= n + k - 1
    assert mass.sum() == pytest.approx(1)
    whole = metrics.wasserstein2(a, b)
    from privtraj.metrics.clouds import distinct
    from privtraj.metrics.transport import weighted_cost

    part = np.sqrt(weighted_cost(*distinct(a), points, mass, "sqeuclidean"))
    assert part == pytest.approx(share * whole, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(
    ("times", "left_out"), [([0, 1, 2], 0), ([0, 1, 2], 2), ([0, 1], 1), ([0, 2, 1], 1)]
)
def test_times_that_cannot_be_left_out_are_refused(times, left_out):
    with pytest.raises(InputError):
        metrics.held_out_w2(np.zeros((2, 2)), moving([0, 1, 2]), times, left_out)


def test_a_share_beyond_the_way_is_refused():
    with pytest.raises(InputError):
        metrics.displacement_interpolation([[0.0]], [[1.0]], 1.5)
