"""Curves that carry people: who keeps their rank, who forgets, and what stays the law."""

from dataclasses import replace

import numpy as np
import pytest

from privtraj.columns.kinds import plain_numbers
from privtraj.metrics import autocorrelation, wasserstein2
from privtraj.motion.curves import Curves
from privtraj.motion.reference import Inertia
from privtraj.motion.states import Parts

CLOCK = np.linspace(0, 1, 6)
FREE = np.zeros(2)
PLAIN = Parts(plain_numbers(("x", "y"), np.array([[0.0, 1.0]] * 2)))


@pytest.fixture(scope="module")
def curves():
    """300 curves of a cloud that moves and is not round."""
    rng = np.random.default_rng(0)
    start = 0.4 + np.array([0.08, 0.05]) * rng.standard_normal((300, 1, 2))
    start[::3, :, 1] += 0.15
    return Curves((start + 0.2 * CLOCK[:, None]).astype(np.float32), CLOCK, PLAIN)


def people(curves, n, times, reference, directions=FREE, width=0.01):
    rng = np.random.default_rng(1)
    curves = replace(curves, process=reference, directions=directions)
    read = curves.people(n, times, np.full(6, width), None, rng)
    return np.asarray(read(slice(0, n), rng), dtype=np.float64)


def test_who_forgets_nothing_keeps_their_curve(curves):
    times = np.linspace(0, 1, 21)
    paths = people(curves, 900, times, Inertia())
    assert autocorrelation(paths)[-1].min() > 0.999
    for i in (0, 7, 20):
        true = curves.knots[:, 0] + np.float32(0.2 * times[i])
        assert wasserstein2(paths[:, i], true) < 0.02


@pytest.mark.thorough
@pytest.mark.parametrize("share", [0.4, 1.0])
def test_who_forgets_has_the_autocorrelation_that_was_asked_for(curves, share):
    process, times = Inertia(memory=0.25, share=share), np.linspace(0, 1, 11)
    paths = people(curves, 3000, times, process)
    got = autocorrelation(paths)
    wanted = process.autocorrelation(times[1:], 2)
    # 3,000 people: a standard error of .02 for one pair of times, less for several
    assert np.abs(got - wanted).max() < 0.06
    still = people(curves, 3000, times, Inertia())
    for i in (0, 4, 10):
        assert wasserstein2(paths[:1500, i], still[1500:, i]) < 0.015


def test_the_length_of_a_forgetful_path_does_not_depend_on_how_often_it_is_read(curves):
    process = Inertia(memory=0.3)
    lengths = [
        np.linalg.norm(np.diff(people(curves, 400, np.linspace(0, 1, q), process), axis=1), axis=2)
        .sum(axis=1)
        .mean()
        for q in (25, 200)
    ]
    assert lengths[1] == pytest.approx(lengths[0], rel=0.1)


@pytest.mark.parametrize("reference", [Inertia(), Inertia(memory=0.3, share=0.3)])
def test_a_feature_with_a_direction_never_turns_back(curves, reference):
    directions = np.array([1.0, 0.0])
    paths = people(curves, 500, np.linspace(0, 1, 101), reference, directions)
    assert np.diff(paths[:, :, 0], axis=1).min() >= -1e-6
    assert np.diff(people(curves, 500, CLOCK, Inertia(memory=0.3))[:, :, 0], axis=1).min() < 0


def test_a_direction_holds_at_the_walls_too():
    """Curves that end at the upper wall, with people who would be reflected there."""
    rng = np.random.default_rng(0)
    start = 0.75 + 0.1 * rng.random((200, 1, 2))
    wall = Curves(np.minimum(start + 0.2 * CLOCK[:, None], 1.0).astype(np.float32), CLOCK, PLAIN)
    for reference in (Inertia(), Inertia(memory=0.2)):
        paths = people(wall, 800, np.linspace(0, 1, 60), reference, np.array([1.0, 0.0]), 0.05)
        assert np.diff(paths[:, :, 0], axis=1).min() >= -1e-6
        assert paths.max() <= 1 + 1e-6
