"""How features vary together: what a record adds, what noise it has, when it is asked at all."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privtraj.measures.subspace import moments
from privtraj.measures.subspace.constants import SHELL_RATIO, SHELLS
from privtraj.measures.subspace.moments import (
    DISTANCES,
    MEAN,
    MOMENTS,
    SHARES,
    measured_spread,
    moment_events,
    within,
)
from privtraj.privacy.events import Person
from privtraj.privacy.guard import Guard
from privtraj.privacy.ledger import Ledger

BUDGET = (1.0, 1e-5, "add-remove")


@given(st.integers(2, 30), st.integers(0, 99))
def test_a_record_adds_vectors_of_the_norms_that_the_clips_are_made_of(d, seed):
    rng = np.random.default_rng(seed)
    points, centre = rng.random((20, d)).astype(np.float32), rng.random(d).astype(np.float32)
    away = np.linalg.norm(points - centre, axis=1)
    one = math.sqrt(d) / 4
    places = np.asarray(moments._places(points, (one,)))
    assert np.linalg.norm(places, axis=1).max() <= math.sqrt(d / 4 + one**2) + 1e-5
    edges = np.float32(math.sqrt(d) / 2 * SHELL_RATIO ** np.arange(SHELLS)[::-1])
    shells = np.asarray(moments._shells(points, (centre, edges)))
    np.testing.assert_array_equal(np.linalg.norm(shells, axis=1), 1.0)
    np.testing.assert_array_equal(shells.argmax(axis=1), (away[:, None] > edges).sum(axis=1))
    second = np.asarray(moments._moments(points, (centre, np.float32(0.3))))
    np.testing.assert_allclose(
        np.linalg.norm(second, axis=1), np.hypot(0.3 * away, away**2), rtol=1e-4
    )


def spread_of(points, snapshots_of, source, epsilon=1.0, times=2):
    """Released of points (n, d) at several times, and the ledger that paid."""
    d = points.shape[1]
    snapshots = snapshots_of(np.array_split(points, times), d)
    guard = snapshots.guarded(Guard, Ledger(epsilon, 1e-5), source)
    events = moment_events(epsilon, 1e-5, "add-remove", snapshots.shape.person)
    return measured_spread(guard, events), guard.ledger, events


def cloud(n, d, seed=0):
    rng = np.random.default_rng(seed)
    mixed = rng.standard_normal((d, d)) * 0.1 / math.sqrt(d)
    return np.clip(0.3 + rng.standard_normal((n, d)) @ mixed, 0, 1)


def test_without_noise_the_spread_is_that_of_everybody(snapshots_of, silent):
    points = cloud(3000, 7)
    spread, ledger, events = spread_of(points, snapshots_of, silent())
    np.testing.assert_allclose(spread.mean, points.mean(axis=0), atol=2e-3)
    exact = np.cov(points.T, bias=True)
    # one in twenty at most is shortened to the clip: by a few percent of the variance
    np.testing.assert_allclose(spread.covariance, exact, atol=0.1 * np.abs(exact).max())
    assert [event.what for event, _ in ledger.events] == [MEAN, DISTANCES, MOMENTS]
    assert [event.ideal() for event, _ in ledger.events] == list(events.values())


def test_noise_of_the_covariance_is_as_stated(snapshots_of, silent):
    """195 numbers beside the diagonal: their mean square is within 40 % of the stated variance but
    for a chance below 1e-4, as a chi-squared of 190 degrees has."""
    from privtraj.privacy import noise

    points = cloud(2000, 20)
    exact, *_ = spread_of(points, snapshots_of, silent())
    noisy, *_ = spread_of(points, snapshots_of, noise.SeededSource(5))
    beside = np.triu_indices(20, 1)
    ratio = np.mean((noisy.covariance - exact.covariance)[beside] ** 2) / noisy.noise**2
    assert 0.6 < ratio < 1.4
    # and the clip is that of the records: a second moment of three times the farthest at most
    away = np.linalg.norm(points - points.mean(axis=0), axis=1)
    z = moment_events(*BUDGET, Person())[MOMENTS].noise_multiplier
    assert noisy.noise < 3 * np.quantile(away, 0.99) ** 2 * z / len(points)


def test_the_radius_is_that_of_all_but_a_few():
    edges = np.array([0.1, 0.2, 0.4])
    assert within(np.array([50.0, 40.0, 10.0, 0.0]), edges) == 0.4
    assert within(np.array([50.0, 46.0, 4.0, 0.0]), edges) == 0.2
    assert within(np.array([0.0, 0.0, 0.0, 9.0]), edges) == 0.4
    assert within(np.array([-3.0, 90.0, -8.0, -1.0]), edges) == 0.2
    assert within(np.zeros(4), edges) == 0.1


def test_the_sums_cost_their_shares_of_what_one_sum_could_tell():
    events = moment_events(*BUDGET, Person())
    loud = {name: event.loudness for name, event in events.items()}
    assert loud.keys() == SHARES.keys()
    for name, share in SHARES.items():
        assert loud[name] / share == pytest.approx(loud[MEAN] / SHARES[MEAN])
    several = moment_events(*BUDGET, Person(3, False))[MEAN]
    assert several.person == Person(3, True)  # records of one person meet in all of time
    assert several.noise_multiplier == pytest.approx(3 * events[MEAN].noise_multiplier)


def test_a_pure_guarantee_has_no_gaussian_sums():
    assert moment_events(1.0, 0.0, "add-remove", Person()) == {}
