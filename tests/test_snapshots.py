"""Snapshots: what each record becomes, and every mistake a user can make on the way there."""

import datetime as dt
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privtraj import tables
from privtraj.errors import InputError
from privtraj.snapshots import MIN_RECORDS, Snapshots, from_unit, moment, nearest_bin, to_unit

SECRET = 123.4567
N = 30
BOUNDS = {"height": (40, 220), "weight": (1, 150)}
SETTINGS = {"time": "age", "bounds": BOUNDS, "time_range": (0, 20), "bins": 5}


def _columns(**changes):
    rng = np.random.default_rng(0)
    columns = {
        "id": [f"p{k}" for k in range(N)],
        "age": rng.uniform(0, 20, N).round(3),
        "height": rng.uniform(50, 200, N).round(1),
        "weight": rng.uniform(3, 100, N).round(1),
    }
    columns["height"][0] = SECRET
    return columns | changes


def _with(column, row, value):
    values = np.array(_columns()[column], dtype=object if isinstance(value, str) else None)
    values[row] = value
    return _columns(**{column: values.tolist()})


def _same(a, b):
    np.testing.assert_array_equal(a.times, b.times)
    np.testing.assert_array_equal(a._points, b._points)
    np.testing.assert_array_equal(a._bins, b._bins)
    assert a.features == b.features


# What comes out -------------------------------------------------------------------------------


def test_the_record_of_every_person():
    columns = _columns()
    snaps = Snapshots.from_table(columns, **SETTINGS, person="id")
    assert snaps.features == ("height", "weight")
    assert (snaps.n_times, snaps.n_features, snaps.time_name) == (5, 2, "age")
    np.testing.assert_array_equal(snaps.times, [0, 5, 10, 15, 20])
    np.testing.assert_array_equal(snaps.bin_times, snaps.times)
    np.testing.assert_array_equal(snaps.bounds, [[40, 220], [1, 150]])
    assert snaps._points.dtype == np.float32
    assert snaps._bins.dtype == np.int32
    assert (np.diff(snaps._bins) >= 0).all()
    bins = np.rint(columns["age"] / 5).astype(int)
    order = np.argsort(bins, kind="stable")
    np.testing.assert_array_equal(snaps._bins, bins[order])
    points = np.column_stack([columns["height"], columns["weight"]])[order]
    np.testing.assert_allclose(from_unit(snaps._points, snaps.bounds), points, rtol=1e-5)


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "pandas", "polars", "table"])
@pytest.mark.parametrize("dates", [False, True], ids=["numbers", "dates"])
def test_every_source_gives_the_same_snapshots(kind, dates, tmp_path):
    options = dict(SETTINGS)
    columns = _columns()
    if dates:
        days = np.datetime64("2020-01-01") + np.round(columns["age"] * 365).astype(int)
        columns["age"] = days.astype("datetime64[us]")
        options["time_range"] = ("2020-01-01", dt.date(2040, 1, 1))
    table = pa.table(columns)
    source = {"pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table)}.get(kind)
    source = source() if source else table
    if kind in ("csv", "parquet", "arrow"):
        source = tmp_path / f"t.{kind}"
        tables.write_table(table, source)
    snaps = Snapshots.from_table(source, **options, person="id")
    direct = Snapshots.from_arrays(
        columns["age"],
        np.column_stack([columns["height"], columns["weight"]]),
        bounds=BOUNDS,
        time_range=options["time_range"],
        bins=5,
        person=columns["id"],
    )
    _same(snaps, direct)
    assert snaps.datetime == direct.datetime == dates


def test_repr_shows_public_settings_only():
    text = repr(Snapshots.from_table(_columns(), **SETTINGS))
    assert text == (
        "Snapshots(age: 5 bins from 0.0 to 20.0; height in [40, 220], weight in [1, 150])"
    )
    assert str(N) not in text


def test_snapshots_cannot_be_changed():
    snaps = Snapshots.from_table(_columns(), **SETTINGS)
    with pytest.raises(AttributeError):
        snaps.times = np.zeros(2)
    for array in (snaps.times, snaps.bounds, snaps._points, snaps._bins):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_features_choose_and_order_columns():
    snaps = Snapshots.from_table(
        _columns(), **SETTINGS | {"features": ["weight"], "bounds": [(1, 150)]}
    )
    assert snaps.features == ("weight",)
    assert snaps._points.shape == (N, 1)
    flat = Snapshots.from_arrays(
        _columns()["age"], _columns()["weight"], bounds=[(1, 150)], bins=[0, 9]
    )
    assert flat.features == ("x1",)


def test_unequal_and_empty_bins():
    times = np.full(12, 0.4)
    snaps = Snapshots.from_arrays(times, np.zeros(12), bounds=[(0, 1)], bins=[0, 1, 10, 11.5])
    np.testing.assert_array_equal(snaps._bins, 0)
    np.testing.assert_array_equal(snaps.times, [0, 1, 10, 11.5])


def test_time_range_may_be_wider_than_bins():
    options = SETTINGS | {"bins": [2, 4], "time_range": (0, 20)}
    np.testing.assert_array_equal(Snapshots.from_table(_columns(), **options).times, [2, 4])


def test_datetimes_round_trip_to_the_microsecond():
    bins = np.array(["1850-03-01T00:00:00.000001", "2024-02-29T23:59:59.999999"], "datetime64[us]")
    snaps = Snapshots.from_arrays(np.repeat(bins, 6), np.zeros(12), bounds=[(0, 1)], bins=bins)
    assert snaps.datetime
    np.testing.assert_array_equal(snaps.bin_times, bins)
    assert snaps.bin_times.dtype == bins.dtype
    np.testing.assert_array_equal(np.bincount(snaps._bins), [6, 6])


@pytest.mark.parametrize(
    "value",
    [
        "2024-01-31",
        "2024-01-31T02:00:00+02:00",
        "2024-01-31T00:00:00Z",
        dt.date(2024, 1, 31),
        dt.datetime(2024, 1, 31),
        dt.datetime(2024, 1, 31, tzinfo=dt.UTC),
        np.datetime64("2024-01-31"),
        np.datetime64("2024-01-31T00:00:00", "ns"),
        pd.Timestamp("2024-01-31"),
    ],
)
def test_dates_in_every_form(value):
    assert moment(value) == (dt.datetime(2024, 1, 31, tzinfo=dt.UTC).timestamp(), True)


def test_times_as_python_dates():
    days = [dt.date(2024, 1, 1 + k) for k in range(12)]
    snaps = Snapshots.from_arrays(days, np.zeros(12), bounds=[(0, 1)], bins=[days[0], days[-1]])
    np.testing.assert_array_equal(np.bincount(snaps._bins), [6, 6])


# Properties of the map from a record to (bin, point) --------------------------------------------

finite = st.floats(-1e300, 1e300)


def _distances(values, times):
    inside = np.clip(values, times[0], times[-1])
    return np.abs(inside[:, None] - np.array(times))


@given(
    times=st.lists(finite, min_size=2, max_size=6, unique=True).map(sorted),
    values=arrays(float, 7, elements=finite),
)
@settings(max_examples=60, deadline=None)
def test_the_bin_is_the_nearest(times, values):
    distances = _distances(values, times)
    chosen = distances[np.arange(7), nearest_bin(values, times)]
    np.testing.assert_array_equal(chosen, distances.min(axis=1))


@given(
    times=st.lists(st.integers(-9, 9), min_size=2, max_size=6, unique=True).map(sorted),
    values=arrays(float, 7, elements=st.integers(-24, 24).map(lambda k: k / 2)),
)
@settings(max_examples=60, deadline=None)
def test_the_bin_is_the_earlier_on_a_tie(times, values):
    np.testing.assert_array_equal(nearest_bin(values, times), _distances(values, times).argmin(1))


def test_ties_go_to_the_earlier_bin_and_outsiders_to_the_ends():
    assert nearest_bin([-9, 0.5, 0.6, 1.5, 99], [0, 1, 2]).tolist() == [0, 0, 1, 1, 2]


@given(
    values=arrays(float, (5, 1), elements=st.floats(allow_nan=False, allow_infinity=False)),
    ends=st.tuples(finite, finite).filter(lambda e: e[0] < e[1]),
)
@settings(max_examples=60, deadline=None)
def test_points_are_clamped_to_the_unit_box_in_float32(values, ends):
    unit = to_unit(values, [ends])
    single = unit.astype(np.float32)
    assert ((single >= 0) & (single <= 1)).all()
    assert (unit[values <= ends[0]] == 0).all()
    assert (unit[values >= ends[1]] == 1).all()


@given(unit=arrays(float, (4, 2), elements=st.floats(0, 1)))
@settings(max_examples=30, deadline=None)
def test_unit_and_data_units_are_inverse(unit):
    bounds = [(-3.0, 5.0), (100.0, 100.5)]
    np.testing.assert_allclose(to_unit(from_unit(unit, bounds), bounds), unit, atol=1e-12)


def test_to_unit_can_leave_values_outside():
    np.testing.assert_array_equal(to_unit([[3.0]], [(0, 2)], clamp=False), [[1.5]])


@given(row=st.integers(0, N - 1), value=finite, age=finite)
@settings(max_examples=25, deadline=None)
def test_one_record_changes_nothing_for_the_others(row, value, age):
    columns = _columns()
    points = np.column_stack([columns["height"], columns["weight"]])
    options = {"bounds": BOUNDS, "time_range": (0, 20), "bins": 5}

    def pairs(times, points):
        snaps = Snapshots.from_arrays(times, points, **options)
        return sorted(zip(snaps._bins.tolist(), map(tuple, snaps._points.tolist()), strict=True))

    before = pairs(np.delete(columns["age"], row), np.delete(points, row, axis=0))
    times = columns["age"].copy()
    times[row], points[row] = age, value
    after = pairs(times, points)
    for pair in before:
        after.remove(pair)
    assert len(after) == 1


# One record per person ------------------------------------------------------------------------


def _visits(extra=0):
    """Twelve people: three with four records each, the others with one; y tells the record."""
    person = np.repeat(["a", "b", "c"], 4).tolist() + [f"p{k}" for k in range(9 + extra)]
    return person, np.arange(len(person)) / 100


def _chosen(seed, extra=0):
    person, y = _visits(extra)
    snaps = Snapshots.from_arrays(
        np.zeros(len(y)),
        y,
        bounds=[(0, 1)],
        bins=[0, 1],
        person=person,
        one_per_person="random",
        seed=seed,
    )
    return np.rint(snaps._points[:, 0] * 100).astype(int)


def test_random_keeps_exactly_one_of_each_person():
    kept = _chosen(seed=None)
    assert len(kept) == 12
    assert sorted(kept // 4)[:3] == [0, 1, 2]


def test_random_is_uniform_and_repeatable():
    first = np.array([_chosen(seed)[0] for seed in range(400)])
    assert np.bincount(first, minlength=4).min() > 65
    np.testing.assert_array_equal(_chosen(7), _chosen(7))
    assert len({tuple(_chosen(None)) for _ in range(20)}) > 1


def test_the_choice_for_one_person_does_not_depend_on_others():
    for seed in range(10):
        assert set(_chosen(seed)) <= set(_chosen(seed, extra=5))


def test_dropping_comes_before_the_choice():
    person, y = _visits()
    y[1:4] = np.nan
    snaps = Snapshots.from_arrays(
        np.zeros(len(y)),
        y,
        bounds=[(0, 1)],
        bins=[0, 1],
        person=person,
        one_per_person="random",
        missing="drop",
    )
    assert 0.0 in snaps._points
    assert len(snaps._points) == 12


def test_identifiers_in_csv_stay_text(tmp_path):
    rows = [f"{'0' * k}7,{k},{k}" for k in range(12)]
    (tmp_path / "t.csv").write_text("id,t,y\n" + "\n".join(rows))
    snaps = Snapshots.from_table(
        tmp_path / "t.csv", time="t", bounds={"y": (0, 9)}, bins=[0, 9], person="id"
    )
    assert len(snaps._bins) == 12


# Missing values -------------------------------------------------------------------------------


def test_drop_leaves_out_incomplete_records():
    columns = _with("height", 3, np.nan)
    columns["age"] = [*columns["age"][:-1], None]
    snaps = Snapshots.from_table(columns, **SETTINGS, missing="drop")
    assert len(snaps._bins) == N - 2


def test_count_of_incomplete_records_and_their_columns():
    columns = _with("height", 3, np.nan)
    columns["age"] = [*columns["age"][:-1], None]
    with pytest.raises(InputError, match="2 of 30 records have missing values in 'age', 'height'"):
        Snapshots.from_table(columns, **SETTINGS)


# Mistakes -------------------------------------------------------------------------------------

PUBLIC = "would reveal its"

TABLE_MISTAKES = {
    "bounds none": ({"bounds": None}, PUBLIC),
    "bounds auto": ({"bounds": "auto"}, PUBLIC),
    "bounds constant": ({"bounds": BOUNDS | {"weight": (5, 5)}}, "'weight' are both 5"),
    "bounds reversed": ({"bounds": BOUNDS | {"weight": (9, 1)}}, "'weight' are reversed"),
    "bounds infinite": ({"bounds": BOUNDS | {"weight": (0, np.inf)}}, "'weight' must be finite"),
    "bounds nan": ({"bounds": BOUNDS | {"weight": (0, np.nan)}}, "'weight' must be finite"),
    "bounds too wide": ({"bounds": BOUNDS | {"weight": (-1.5e308, 1.5e308)}}, "must be finite"),
    "bounds triple": ({"bounds": BOUNDS | {"weight": (0, 1, 2)}}, "two numbers"),
    "bounds number": ({"bounds": BOUNDS | {"weight": 7}}, "two numbers"),
    "bounds text": ({"bounds": BOUNDS | {"weight": ("a", "b")}}, "two numbers"),
    "bounds missing": ({"features": ["height", "weight", "age2"]}, "missing for 'age2'"),
    "bounds unused": ({"features": ["height"]}, "given for 'weight', not among"),
    "bounds unnamed": ({"bounds": [(0, 1)]}, "features must be named"),
    "bounds short": ({"bounds": [(0, 1)], "features": ["height", "weight"]}, "bounds for 1"),
    "features empty": ({"features": []}, "no features"),
    "bounds empty": ({"bounds": {}}, "no features"),
    "features repeated": ({"features": ["height", "height"]}, "'height' more than once"),
    "time as feature": ({"bounds": {"age": (0, 1)}}, "'age' is the time and a feature"),
    "person as feature": ({"person": "height"}, "'height' is the person and also"),
    "no such column": ({"bounds": {"hight": (0, 1)}}, "no column 'hight': it has 'id', 'age'"),
    "no time column": ({"time": "when"}, "no column 'when'"),
    "bins none": ({"bins": None}, "bins must be given"),
    "bins one": ({"bins": 1}, "at least two times"),
    "bins true": ({"bins": True}, "bins must be given"),
    "bins listed once": ({"bins": [3]}, "at least two times"),
    "bins empty": ({"bins": []}, "at least two times"),
    "bins decreasing": ({"bins": [3, 2]}, "increase strictly"),
    "bins repeated": ({"bins": [2, 2]}, "increase strictly"),
    "bins infinite": ({"bins": [2, np.inf]}, "bins must be finite"),
    "bins outside": ({"bins": [2, 21]}, "outside time_range"),
    "bins fraction": ({"bins": 2.5}, "list of numbers or dates"),
    "bins of objects": ({"bins": [{}, []]}, "not of dict"),
    "bins mixed": ({"bins": [1, "2024-01-31"]}, "mixes numbers and dates"),
    "bins and range differ": ({"bins": ["2024-01-30", "2024-01-31"]}, "both be numbers or both"),
    "range none": ({"time_range": None}, PUBLIC),
    "range auto": ({"time_range": "auto"}, PUBLIC),
    "range reversed": ({"time_range": (20, 0)}, "start before end"),
    "range triple": ({"time_range": (0, 1, 2)}, "start before end"),
    "range words": ({"time_range": ("birth", "now")}, "neither a number nor a date"),
    "range nat": ({"time_range": (np.datetime64("NaT"), 1)}, "must be finite"),
    "range of dates": ({"time_range": ("2024-01-01", "2025-01-01")}, "holds numbers but"),
    "missing option": ({"missing": "fill"}, "'refuse' or 'drop'"),
    "person option": ({"one_per_person": "first"}, "'error' or 'random'"),
    "random without person": ({"one_per_person": "random"}, "needs person="),
}


@pytest.mark.parametrize(("changes", "message"), TABLE_MISTAKES.values(), ids=TABLE_MISTAKES)
def test_mistakes_in_public_inputs(changes, message):
    _refused(_columns(), changes, message)


def _dates(**changes):
    return _columns(age=[dt.date(2024, 1, 1 + k) for k in range(N)], **changes)


DATA_MISTAKES = {
    "missing": (_with("height", 3, np.nan), {}, "1 of 30 records have missing values in 'height'"),
    "infinite": (
        _with("weight", 3, np.inf),
        {},
        "1 of 30 records have infinite values in 'weight'",
    ),
    "infinite time": (_with("age", 3, -np.inf), {"missing": "drop"}, "infinite values in 'age'"),
    "text": (_with("weight", 3, "123.4567 kg"), {}, "column 'weight'"),
    "text time": (
        _columns(age=["2024-01-31 or 123.4567"] * N),
        {},
        "time column 'age' is neither numeric nor a date",
    ),
    "dates with a range of numbers": (_dates(), {}, "holds dates but time_range and bins are num"),
    "dates as feature": (
        _columns(height=[dt.date(2024, 1, 31)] * N),
        {},
        "column 'height' is not numeric",
    ),
    "second record": (
        _columns(id=["123.4567"] * 2 + [f"p{k}" for k in range(N - 2)]),
        {"person": "id"},
        "1 of 29 people have more than one record: .*one_per_person='random'",
    ),
    "no identifier": (
        _columns(id=[None, *(f"123.4567-{k}" for k in range(N - 1))]),
        {"person": "id"},
        "1 of 30 records have no person id",
    ),
    "too few": (
        {name: values[:9] for name, values in _columns().items()},
        {},
        f"9 usable records are too few: at least {MIN_RECORDS}",
    ),
    "none": ({name: values[:0] for name, values in _columns().items()}, {}, "0 usable records"),
    "all dropped": (_columns(height=[None] * N), {"missing": "drop"}, "0 usable records"),
}


@pytest.mark.parametrize(
    ("columns", "changes", "message"), DATA_MISTAKES.values(), ids=DATA_MISTAKES
)
def test_mistakes_in_the_data(columns, changes, message):
    _refused(columns, changes, message)


def _refused(columns, changes, message):
    with pytest.raises(InputError, match=message) as error:
        Snapshots.from_table(columns, **SETTINGS | changes)
    _assert_silent(error)


def _assert_silent(error):
    assert str(SECRET) not in str(error.value)
    assert not re.search(r"\. [A-Z]", str(error.value)), "one sentence"
    assert error.value.__suppress_context__ or error.value.__context__ is None


ROW = np.full(N, SECRET)
ARRAYS = {"bounds": [(0, 1)], "bins": [0, 1]}

ARRAY_MISTAKES = {
    "lengths": (ROW, ROW[:-1], {}, "30 times and 29 points"),
    "person length": (ROW, ROW, {"person": ["a"]}, "30 times and 1 person ids"),
    "times 2-d": (ROW[:, None], ROW, {}, "times must have shape"),
    "times scalar": (SECRET, ROW, {}, "times must have shape"),
    "times text": ([str(SECRET) + " h"] * N, ROW, {}, "neither numeric nor a date"),
    "times mixed": ([SECRET, "x", {}] * 10, ROW, {}, "column 'time' mixes"),
    "times ragged": ([[SECRET], [1, 2]], ROW, {}, "times must be a list"),
    "points 3-d": (ROW, ROW[:, None, None], {}, "shape"),
    "points scalar": (ROW, SECRET, {}, "shape"),
    "points text": (ROW, [str(SECRET)] * N, {}, "points must be numbers"),
    "points objects": (ROW, np.array([SECRET, None] * 15), {}, "points must be numbers"),
    "points complex": (ROW, ROW + 1j, {}, "points must be numbers"),
    "points ragged": (ROW, [[SECRET], [1, 2]], {}, "rows of equal length"),
    "bounds for another d": (ROW, ROW, {"bounds": [(0, 1)] * 2}, "1 features but bounds for 2"),
    "names for another d": (ROW, ROW, {"features": ["a", "b"]}, "names for 2"),
    "no features": (ROW, np.zeros((N, 0)), {"bounds": []}, "no features"),
    "no bounds": (ROW, ROW, {"bounds": None}, PUBLIC),
    "bounds shape": (ROW, ROW, {"bounds": 1}, "bounds must be"),
    "person mixed": (ROW, ROW, {"person": [SECRET, "x", {}] * 10}, "column 'person' mixes"),
    "missing": (ROW, np.where(np.arange(N) < 2, np.nan, ROW), {}, "2 of 30 records have missing"),
    "missing date": (
        np.array(["NaT"] + ["2024-01-31"] * (N - 1), "datetime64[D]"),
        ROW,
        {"bins": ["2024-01-01", "2025-01-01"]},
        "1 of 30 records have missing values in 'time'",
    ),
}


@pytest.mark.parametrize(
    ("times", "points", "changes", "message"), ARRAY_MISTAKES.values(), ids=ARRAY_MISTAKES
)
def test_mistakes_in_arrays(times, points, changes, message):
    with pytest.raises(InputError, match=message) as error:
        Snapshots.from_arrays(times, points, **ARRAYS | changes)
    _assert_silent(error)
