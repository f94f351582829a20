"""Columns: what a number is in the unit interval, and what Snapshots say through them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privtraj.columns.axes import to_unit
from privtraj.columns.declared import declared_columns
from privtraj.columns.kinds import Number
from privtraj.data.snapshots import Snapshots
from privtraj.errors import InputError
from privtraj.space import to_unit as to_unit_cube

HEIGHT, WEIGHT = Number(40.0, 220.0, name="height"), Number(1.0, 150.0, name="weight")
BOUNDS = {"height": (40, 220), "weight": (1, 150)}
finite = st.floats(allow_nan=False, allow_infinity=False)
ends = st.tuples(finite, finite).filter(lambda e: e[0] < e[1] and np.isfinite(e[1] - e[0]))


def _snapshots():
    points = np.column_stack([np.linspace(30, 230, 12), np.linspace(1, 150, 12)])
    return Snapshots.from_arrays(np.arange(12.0), points, bounds=BOUNDS, bins=[0.0, 11.0])


def test_snapshots_are_made_of_columns():
    snapshots = _snapshots()
    assert snapshots.columns == declared_columns(BOUNDS, None) == (HEIGHT, WEIGHT)
    assert snapshots.features == ("height", "weight")
    assert snapshots.n_features == 2
    np.testing.assert_array_equal(snapshots.bounds, [(40, 220), (1, 150)])
    assert not snapshots.bounds.flags.writeable
    assert snapshots.public_inputs()["bounds"] == {"height": [40.0, 220.0], "weight": [1.0, 150.0]}
    assert repr(snapshots).endswith(f"; {HEIGHT}, {WEIGHT})")


def test_a_value_outside_the_domain_becomes_its_nearest_bound():
    values = [-np.finfo(float).max, 39.9, 40.0, 130.0, 220.0, 220.1, np.finfo(float).max]
    assert HEIGHT.to_unit(values).tolist() == [0, 0, 0, 0.5, 1, 1, 1]
    rows = _snapshots()._rows
    assert rows.points.min() == 0.0
    assert rows.points.max() == 1.0


@given(ends)
def test_both_bounds_are_exact_in_the_unit_interval(pair):
    column = Number(*pair, name="x")
    assert column.to_unit(column.domain).tolist() == [0.0, 1.0]
    assert column.from_unit(0.0) == column.low
    size = np.abs(pair).max()
    np.testing.assert_allclose(column.from_unit(1.0), column.high, rtol=0, atol=4e-16 * size)


@given(arrays(float, (6, 2), elements=finite), ends, ends)
def test_columns_one_by_one_are_the_box_at_once_to_the_last_bit(values, first, second):
    columns = Number(*first, name="x"), Number(*second, name="y")
    np.testing.assert_array_equal(to_unit(columns, values), to_unit_cube(values, [first, second]))


@pytest.mark.parametrize("domain", [(0, np.inf), (np.nan, 1), (2, 2), (3, 1), (-1.7e308, 1.7e308)])
def test_a_domain_is_checked_however_a_column_is_made(domain):
    with pytest.raises(InputError, match="the bounds of 'x'"):
        Number(*domain, name="x")
