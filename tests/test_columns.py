"""Columns: what a number is in the unit interval, and what Snapshots say through them."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import privtraj as pt
from privtraj.base.errors import InputError
from privtraj.base.space import Slabs
from privtraj.base.space import to_unit as to_unit_cube
from privtraj.cli.options import OPTIONS
from privtraj.columns.cells import typed_column
from privtraj.columns.declared import declared_column, declared_columns
from privtraj.columns.kinds import (
    MOST_LEVELS,
    Axes,
    Category,
    Date,
    Integer,
    Number,
    from_dict,
    to_dict,
    to_unit,
)
from privtraj.data.snapshots import Snapshots
from privtraj.privacy.guard import cell_of

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


# Levels ---------------------------------------------------------------------------------------


@given(st.integers(2, MOST_LEVELS))
def test_levels_come_back_from_single_precision_and_are_the_cells_of_counts(count):
    column = Category(range(count), "x")
    levels = np.arange(count)
    unit = column.to_unit(levels).astype(np.float32)
    np.testing.assert_array_equal(column.from_unit(unit), levels)
    np.testing.assert_array_equal(cell_of(unit[:, None], (count,)), levels)
    axes = Axes.of([column])
    np.testing.assert_array_equal(axes.level_of(unit[:, None])[:, 0], levels)
    np.testing.assert_array_equal(axes.centred(unit[:, None]).astype(np.float32)[:, 0], unit)


def test_levels_come_back_for_every_number_of_them():
    """c, C -> (c + 1/2) / C in float32 -> floor(C u), at both ends and in the middle."""
    counts = np.arange(2, MOST_LEVELS + 1)
    for levels in (np.zeros_like(counts), counts // 2, counts - 1):
        unit = ((levels + 0.5) / counts).astype(np.float32)
        np.testing.assert_array_equal((unit.astype(np.float64) * counts).astype(int), levels)


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**4), st.integers(-10, 2 * 10**4))
def test_whole_numbers_come_back_and_have_cells_of_equal_size(low, width, beyond):
    column = Integer(low, low + width, "x")
    value = low + beyond
    unit = np.float32(column.to_unit(value))
    inside = np.clip(value, low, low + width)
    assert column.from_unit(unit) == inside
    assert cell_of(np.array([[unit]]), (width + 1,))[0] == inside - low


@given(arrays(np.int64, 7, elements=st.integers(0, 4)), st.integers(0, 6))
def test_a_row_is_a_function_of_its_own_record(levels, one):
    values = np.column_stack([levels, np.linspace(0, 9, 7)])
    columns = Category(range(5), "c"), Number(0, 9, "x")
    alone = to_unit(columns, values[one : one + 1])
    np.testing.assert_array_equal(to_unit(columns, values)[one : one + 1], alone)


@pytest.mark.parametrize(
    "column",
    [
        Number(0, 1, "x", missing=True),
        Integer(0, 9, "x", fixed=True),
        Date("2020-01-01", "2024-01-01", "x"),
        Date("2020-01-01T10:00", "2024-01-01", "x", missing=True),
        Category(["F", "M", 3, True], "x", other="rest", missing=True),
    ],
)
def test_a_column_comes_back_from_a_file_and_from_its_public_inputs(column):
    assert from_dict(to_dict(column)) == column
    public = column.public_inputs()
    assert declared_columns(None, None, columns={"x": public})[0] == column


def test_dates_know_whether_they_are_days():
    assert Date("2020-01-01", "2024-01-01").days
    assert not Date("2020-01-01", "2024-01-01T00:00").days
    assert not Date("2020-01-01T12:00", "2024-01-01").days


# Codes for missing values ------------------------------------------------------------------------


def test_codes_mean_missing_in_every_source(tmp_path):
    table = pd.DataFrame({"t": np.arange(40.0), "hb": np.arange(40.0) / 4})
    table.loc[:9, "hb"], table.loc[10:11, "hb"], table.loc[12, "hb"] = -99, 999, np.nan
    (tmp_path / "folder").mkdir()
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "folder" / "t.parquet")
    codes = pt.Number(0, 20, missing=True, missing_codes=[-99, 999])
    how = {"time": "t", "time_range": (0, 40)}
    rows = [
        pt.Snapshots.from_table(source, columns={"hb": codes}, **how)._rows
        for source in (table, tmp_path / "t.csv", tmp_path / "folder")
    ]
    points = [np.sort(one.in_slabs(Slabs.between(np.empty(0))).points, axis=0) for one in rows]
    assert (points[0][:, 1] > 0.5).sum() == 13
    for other, own in zip(rows[1:], points[1:], strict=True):
        np.testing.assert_array_equal(own, points[0])
        assert other.digest == rows[0].digest
    strict = pt.Number(0, 20, missing_codes=[-99, 999])
    with pytest.raises(pt.InputError, match="13 of 40 records have missing values in 'hb'"):
        pt.Snapshots.from_table(table, columns={"hb": strict}, **how)


def test_codes_are_public_and_written():
    column = pt.Number(0, 20, "hb", missing=True, missing_codes=[-99, 999])
    assert from_dict(json.loads(json.dumps(to_dict(column)))) == column
    assert column.public_inputs()["missing_codes"] == [-99, 999]
    typed = ["hb", "number", "low=0", "high=20", "missing", "missing_codes=-99,999"]
    name, form = typed_column(typed)
    assert declared_column(name, OPTIONS["columns"].kind.read({name: form})["hb"]) == column
    assert pt.Angle(24, missing_codes=[99]).missing_codes == (99,)
    for wrong in (-99, ["a"], "99"):
        with pytest.raises(pt.InputError, match="missing_codes of a number must be a list"):
            pt.Number(0, 1, missing_codes=wrong)
    with pytest.raises(pt.InputError, match="a date has no missing_codes"):
        pt.Date("2020-01-01", "2021-01-01", missing_codes=[-99])
