"""What is public about features: never falling, written in steps, marginals kept."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privtraj.columns.conditions import Constraints, in_order
from privtraj.columns.kinds import Number
from privtraj.metrics import wasserstein2

ALL = arrays(np.float64, (7, 5, 2), elements=st.floats(0, 1))


@given(ALL)
def test_rising_features_never_fall_and_falling_ones_never_rise(paths):
    ordered = in_order(paths, np.array([1.0, -1.0]))
    assert (np.diff(ordered[:, :, 0], axis=1) >= 0).all()
    assert (np.diff(ordered[:, :, 1], axis=1) <= 0).all()


@given(ALL)
def test_others_are_as_they_were_and_the_ordered_stay_within_what_there_was(paths):
    ordered = in_order(paths, np.array([1.0, 0.0]))
    np.testing.assert_array_equal(ordered[:, :, 1], paths[:, :, 1])
    assert ordered[:, :, 0].min() >= paths[:, :, 0].min()
    assert ordered[:, :, 0].max() <= paths[:, :, 0].max()


def test_marginals_that_rise_are_kept():
    """Everybody grows, but shakes: the shaking goes, the law at each time remains."""
    rng = np.random.default_rng(0)
    rank, time = rng.standard_normal((800, 1)), np.linspace(0, 1, 12)
    paths = 0.3 + 0.4 * time + 0.06 * rank + 0.02 * rng.standard_normal((800, 12))
    ordered = in_order(paths[:, :, None], np.ones(1))[:, :, 0]
    assert (np.diff(paths, axis=1) < 0).any(axis=1).mean() > 0.5
    errors = [wasserstein2(ordered[:, [i]], paths[:, [i]]) for i in range(12)]
    assert max(errors) < 0.012  # a fifth of the spread
    assert np.corrcoef(ordered[:, 0], ordered[:, -1])[0, 1] > 0.8


def test_values_are_written_in_steps_inside_the_bounds():
    values = np.array([[0.0, 3.14159], [9.99, 2.71828]])
    columns = Number(0.3, 9.7, "visits"), Number(0.0, 5.0, "dose")
    made = Constraints.declared(None, {"visits": 1, "dose": 0.25})
    rounded = made.rounded(values, columns)
    np.testing.assert_array_equal(rounded, [[1.0, 3.25], [9.0, 2.75]])


def test_a_list_means_rising():
    made = Constraints.declared(["height"], None)
    assert made.monotone == {"height": "rising"}
    assert Constraints.declared("height", None) == made
    np.testing.assert_array_equal(made.directions(("weight", "height")), [0.0, 1.0])
