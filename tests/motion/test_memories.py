"""Memories from correlations: the slowest people who agree with them."""

import numpy as np
import pytest

from privtraj.motion.memories import LAGS, Correlations, correlation_along, inertial, smoothest
from privtraj.motion.reference import Inertia

EDGES = np.array([[0.0, 1 / 16], [1 / 16, 1 / 4], [1 / 4, 9 / 16], [9 / 16, 1.0]])
STEADY = np.ones_like(LAGS)


def known(process, smooth=True, along=STEADY, error=0.03):
    """What would be measured, without noise, of one feature of a process."""

    def rho(lags):
        return process.autocorrelation(np.atleast_1d(lags), 1)[:, 0]

    lags = [np.linspace(low, high, 40)[1:] for low, high in EDGES]
    measured = np.array([np.average(rho(lag), weights=1 - lag + 1e-9) for lag in lags])
    return Correlations(EDGES, measured, np.full(4, error), rho(LAGS), smooth, along)


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize(
    "process",
    [
        Inertia(memory=0.2),
        Inertia(memory=0.1, share=0.5),
        Inertia(memory=0.6, share=0.8),
    ],
)
def test_a_known_autocorrelation_is_found_again(process, smooth):
    memory, swing, share = smoothest([known(process, smooth)])
    again = Inertia(memory=memory.tolist(), share=share.tolist(), swing=swing.tolist())
    wanted = process.autocorrelation(LAGS, 1)
    assert np.abs(again.autocorrelation(LAGS, 1) - wanted).max() < 0.08
    assert not swing.any()


def test_people_who_turn_back_swing():
    process = Inertia(memory=1.0, swing=4.0)
    memory, swing, share = smoothest([known(process)])
    assert swing.any()
    again = Inertia(memory=memory.tolist(), share=share.tolist(), swing=swing.tolist())
    assert again.autocorrelation(np.array([0.75]), 1)[0, 0] < -0.15


def test_what_curves_already_show_is_no_forgetting():
    """A turn: values come back, though everybody keeps to the turning curve."""
    along = np.cos(4.0 * LAGS)
    inside = [along[(low < LAGS) & (high >= LAGS)].mean() for low, high in EDGES]
    seen = Correlations(EDGES, np.array(inside), np.full(4, 0.05), along, True, along)
    _, _, share = smoothest([seen])
    assert share.sum() < 0.15
    _, _, share = smoothest([seen._replace(along=STEADY)])
    assert share.sum() > 0.8


def test_correlations_that_nobody_forgetting_would_explain_as_well_are_not_followed():
    below = Correlations(
        EDGES, np.array([0.97, 0.95, 0.9, 0.85]), np.full(4, 0.1), STEADY, True, STEADY
    )
    assert smoothest([below])[2].sum() == 0
    assert smoothest([below._replace(error=np.full(4, 0.03))])[2].sum() > 0.05


@pytest.mark.parametrize("smooth", [True, False])
def test_who_knows_nothing_of_pairs_lets_nobody_forget(smooth):
    process = Inertia(memory=0.1)
    assert smoothest([known(process, smooth, error=30.0)])[2].sum() == 0
    assert smoothest([known(process, smooth)])[2].sum() > 0.8


def test_people_who_forget_nothing_have_no_memory_to_lose():
    memory, _, share = smoothest([known(Inertia(memory=1.0, share=0.0))])
    assert len(memory) == 0
    assert share.shape == (1, 0)


def test_features_have_shares_of_their_own():
    memory, _, share = smoothest(
        [known(Inertia(memory=0.1)), known(Inertia(memory=1.0, share=0.0))]
    )
    assert share.shape == (2, len(memory))
    assert share[0].sum() > 0.9
    assert share[1].sum() < 0.05


def test_the_correlation_along_paths_is_that_of_the_process():
    clock = np.linspace(0, 1, 26)
    paths = inertial(4000, clock, 0.3, 2, np.random.default_rng(0)) * [1.0, 5.0] + [3.0, 0.0]
    wanted = Inertia(memory=0.3).autocorrelation(LAGS, 2)
    # 4,000 people: .016 for one pair of times, some pairs for most lags; bins of .04 besides
    assert np.abs(correlation_along(paths, clock) - wanted).max() < 0.08
