"""Reference processes: transitions that compose, bridges with the law of the process, names."""

import numpy as np
import pytest

from privtraj.base.errors import InputError
from privtraj.motion import reference as words
from privtraj.motion.memories import inertial
from privtraj.motion.process import follow, matched
from privtraj.motion.reference import (
    Brownian,
    Cycle,
    Drift,
    Inertia,
    Learned,
    OrnsteinUhlenbeck,
    Scale,
)

TURN = 1.5 * np.pi
TURNING = ([[0.0, -TURN], [TURN, 0.0]], [TURN / 2, -TURN / 2])  # about the centre of the square
UNIT = Scale(np.array([[0.0, 1.0], [0.0, 1.0]]), 0.0, 1.0)
PULLED = OrnsteinUhlenbeck([0.3, 0.6], 2.5, 0.04)
N = 40_000


def turned(x, angle):
    c, s = np.cos(angle), np.sin(angle)
    return (x - 0.5) @ np.array([[c, s], [-s, c]]) + 0.5


# Transitions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "process", [Brownian(0.04), PULLED, Drift(TURNING), Inertia(drift=Drift(TURNING))]
)
def test_two_steps_are_one(process):
    x = np.random.default_rng(0).uniform(size=(20, 2))
    halfway = process.ahead(x, 0.1, 0.3)
    np.testing.assert_allclose(
        process.ahead(halfway, 0.4, 0.2), process.ahead(x, 0.1, 0.5), atol=1e-4
    )
    np.testing.assert_allclose(process.ahead(halfway, 0.4, -0.3), x, atol=1e-4)


def test_variances_of_mean_reversion_compose():
    short, long = PULLED.variance(np.array([0.3, 0.5]))
    rest = PULLED.variance(np.array(0.2))
    assert short * np.exp(-2 * PULLED.rate * 0.2) + rest == pytest.approx(long)


def test_a_drift_turns_people():
    x = np.random.default_rng(0).uniform(size=(20, 2))
    np.testing.assert_allclose(Drift(TURNING).ahead(x, 0.0, 1.0), turned(x, TURN), atol=1e-4)


def test_a_drift_in_data_units_is_one_of_the_box():
    scale = Scale(np.array([[-10.0, 10.0], [100.0, 300.0]]), 5.0, 4.0)
    seen = []

    def velocity(x, t):
        seen.append(t)
        return np.broadcast_to([5.0, 10.0], x.shape)

    unit = Drift(velocity).within(scale)
    np.testing.assert_allclose(unit.ahead(np.zeros((3, 2)), 0.0, 1.0), [[1.0, 0.2]] * 3)
    assert min(seen) == pytest.approx(5.0)
    assert max(seen) == pytest.approx(9.0)


# Bridges --------------------------------------------------------------------------------------


def test_the_bridge_of_mean_reversion_has_the_law_of_the_process_between_its_ends():
    """Means and covariances from those of three transitions, by conditioning."""
    ends, times = (0.2, 1.0), np.array([0.4, 0.7])
    x, y = np.full((N, 2), 0.9), np.full((N, 2), 0.1)
    values = PULLED.bridge(x, y, ends, times, np.random.default_rng(0))
    at = np.array([0.4, 0.7, 1.0])
    decay = np.exp(-PULLED.rate * np.abs(at[:, None] - at))
    joint = PULLED.variance(np.minimum(at[:, None], at) - 0.2) * decay  # from the first end on
    mean = np.array([PULLED.ahead(np.full((1, 2), 0.9), 0.2, t - 0.2)[0] for t in at])
    gain = joint[:2, 2] / joint[2, 2]
    expected = mean[:2] + gain[:, None] * (0.1 - mean[2])
    covariance = joint[:2, :2] - np.outer(gain, joint[2, :2])
    std = np.sqrt(np.diag(covariance))
    # 4 means and 6 entries of covariances, 5 standard errors each: false-alarm rate below 1e-5
    assert (np.abs(values.mean(axis=1) - expected) < 5 * std[:, None] / np.sqrt(N)).all()
    for k in range(2):
        got = np.cov(values[:, :, k])
        assert (np.abs(got - covariance) < 5 * np.sqrt(2 / N) * np.outer(std, std)).all()


def test_a_bridge_of_fast_mean_reversion_does_not_overflow():
    fast = OrnsteinUhlenbeck([0.5], 1e6, 1.0)
    ends = np.array([[0.0]]), np.array([[1.0]])
    values = fast.bridge(*ends, (0.0, 1.0), np.array([0.0, 0.5, 1.0]), np.random.default_rng(0))
    np.testing.assert_allclose(values[:, 0, 0], [0.0, 0.5, 1.0], atol=0.01)


def test_people_on_a_drift_follow_it_between_their_knots():
    x = np.random.default_rng(0).uniform(0.3, 0.7, size=(20, 2))
    times, there = np.linspace(0, 0.5, 7), turned(x, TURN / 2)
    path = Drift(TURNING).bridge(x, there, (0.0, 0.5), times, np.random.default_rng(0))
    for value, t in zip(path, times, strict=True):
        np.testing.assert_allclose(value, turned(x, TURN * t), atol=1e-3)


# Inertia --------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [0.05, 0.4, 3.0])
def test_an_inertial_process_has_its_autocorrelation(memory):
    times = np.array([0.0, 0.01, 0.1, 0.35, 1.0])
    values = inertial(N, times, memory, 1, np.random.default_rng(3))[:, :, 0]
    lag = np.abs(times[:, None] - times) / memory
    # 15 entries, 5.5 standard errors of a covariance of unit variables: false-alarm rate 1e-6
    assert np.abs(values.T @ values / N - (1 + lag) * np.exp(-lag)).max() < 5.5 * np.sqrt(2 / N)


def test_the_length_of_an_inertial_path_does_not_depend_on_how_often_it_is_read():
    fine = inertial(500, np.linspace(0, 1, 401), 0.3, 2, np.random.default_rng(0))
    long, short = (
        np.linalg.norm(np.diff(fine[:, ::step], axis=1), axis=2).sum(axis=1).mean()
        for step in (1, 8)
    )
    assert short == pytest.approx(long, rel=0.02)


def test_the_stated_autocorrelation_mixes_what_lasts_and_what_is_forgotten():
    process = Inertia(memory=[0.2, 0.0], share=[[0.5, 0.1], [0.0, 0.0]])
    rho = process.autocorrelation(np.array([0.0, 0.2, 50.0]), 2)
    np.testing.assert_allclose(rho[0], 1.0)
    assert rho[1, 0] == pytest.approx(0.4 + 0.5 * 2 * np.exp(-1))
    assert rho[2, 0] == pytest.approx(0.4)
    np.testing.assert_allclose(rho[:, 1], 1.0)
    assert process.forgets
    assert not Inertia().forgets
    assert not Inertia(memory=1.0, share=0.0).forgets


# Least action and a learned drift -------------------------------------------------------------


def test_nobody_moves_more_than_they_must():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(40, 2))
    shuffled = (x + 0.01)[rng.permutation(40)]
    np.testing.assert_allclose(shuffled[matched(x, shuffled)], x + 0.01)


def test_a_turn_is_learned_where_straight_ways_swap_people():
    """Two groups that turn by half a circle and more, fresh people at each of ten times."""
    rng, clock = np.random.default_rng(0), np.linspace(0, 1, 10)

    def people(n):
        first = (rng.random(n) < 0.7)[:, None]
        spread = np.where(first, [0.05, 0.08], [0.04, 0.04])
        return np.where(first, [0.7, 0.5], [0.33, 0.6]) + spread * rng.standard_normal((n, 2))

    clouds = np.stack([turned(people(120), TURN * t) for t in clock])

    def lost(reference):
        """Mean squared distance between where people end and where the turn leads them."""
        paths = follow(clouds, clock, reference)
        return np.mean(np.sum((paths[:, -1] - turned(paths[:, 0], TURN)) ** 2, axis=1))

    learned = Learned().fitted(clouds, clock)
    np.testing.assert_allclose(learned.velocity.matrix, TURNING[0], atol=0.6)
    straight = lost(Inertia())
    assert lost(learned) < 0.25 * straight
    assert lost(Inertia(drift=learned)) < 0.25 * straight


def test_people_at_rest_teach_no_drift():
    rng, clock = np.random.default_rng(0), np.linspace(0, 1, 8)
    still = 0.5 + 0.1 * rng.standard_normal((8, 128, 2))
    field = Learned().fitted(still, clock).velocity
    speed = np.linalg.norm(field(still[0], 0.0), axis=1)
    assert speed.max() < 0.25  # over the whole range; chance moves the means by 0.1 / sqrt(128)


# Names ----------------------------------------------------------------------------------------

EVERY = [
    Brownian(0.3),
    OrnsteinUhlenbeck([1.0, 2.0], 0.5),
    Drift(TURNING, 0.1),
    Learned(2),
    Inertia(),
    Inertia(memory=[1.0, 2.0], share=[0.1, 0.3], drift=Learned()),
    Inertia(drift=Drift(TURNING)),
    Cycle(0.5, trips=2.0),
]


@pytest.mark.parametrize("process", EVERY)
def test_a_process_is_read_as_it_was_written(process):
    again = words.from_dict(process.to_dict())
    assert again.to_dict() == process.to_dict()
    assert type(again) is type(process)


def test_a_process_can_be_said_in_words():
    assert words.declared("auto") is None
    assert words.from_words("learned rounds=2") == Learned(2)
    assert words.from_words("inertia memory=2 share=0.5") == Inertia(memory=2, share=0.5)
    said = words.from_words("ornstein-uhlenbeck mean=1,2 rate=0.5")
    assert said == OrnsteinUhlenbeck([1, 2], 0.5)


@pytest.mark.parametrize(
    "values",
    [
        None,
        3,
        {},
        {"kind": "flying"},
        {"kind": "brownian"},
        {"kind": "brownian", "diffusivity": "x"},
        {"kind": "inertia", "memory": None, "share": 1.0, "drift": {"kind": []}},
        {"kind": "drift", "function": "f", "diffusivity": 0.0},
    ],
)
def test_what_is_no_process_is_refused(values):
    with pytest.raises(InputError):
        words.from_dict(values)


def test_every_process_fits_the_box():
    for process in EVERY:
        assert process.within(UNIT).ahead(np.full((3, 2), 0.4), 0.2, 0.1).shape == (3, 2)
