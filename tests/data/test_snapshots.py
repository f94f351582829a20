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
from scipy.stats import norm

from in_bins import rows_in_bins
from privtraj.base.errors import InputError
from privtraj.base.space import from_unit, moment, nearest_bin, to_unit
from privtraj.data.records import MIN_RECORDS
from privtraj.data.snapshots import Snapshots
from privtraj.export import tables as export_tables

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
    np.testing.assert_array_equal(rows_in_bins(a).points, rows_in_bins(b).points)
    np.testing.assert_array_equal(rows_in_bins(a).slabs, rows_in_bins(b).slabs)
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
    assert rows_in_bins(snaps).points.dtype == np.float32
    assert rows_in_bins(snaps).slabs.dtype == np.int32
    assert (np.diff(rows_in_bins(snaps).slabs) >= 0).all()
    bins = np.rint(columns["age"] / 5).astype(int)
    order = np.argsort(bins, kind="stable")
    np.testing.assert_array_equal(rows_in_bins(snaps).slabs, bins[order])
    points = np.column_stack([columns["height"], columns["weight"]])[order]
    unit = rows_in_bins(snaps).points
    np.testing.assert_allclose(from_unit(unit, snaps.bounds), points, rtol=1e-5)


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
        export_tables.write_table(table, source)
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
    assert text == ("Snapshots(age from 0.0 to 20.0; height in [40, 220], weight in [1, 150])")
    assert str(N) not in text


def test_snapshots_cannot_be_changed():
    snaps = Snapshots.from_table(_columns(), **SETTINGS)
    with pytest.raises(AttributeError):
        snaps.times = np.zeros(2)
    for array in (snaps.times, snaps.bounds, snaps._rows.points, snaps._rows.times):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_features_choose_and_order_columns():
    snaps = Snapshots.from_table(
        _columns(), **SETTINGS | {"features": ["weight"], "bounds": [(1, 150)]}
    )
    assert snaps.features == ("weight",)
    assert rows_in_bins(snaps).points.shape == (N, 1)
    flat = Snapshots.from_arrays(
        _columns()["age"], _columns()["weight"], bounds=[(1, 150)], bins=[0, 9]
    )
    assert flat.features == ("x1",)


def test_unequal_and_empty_bins():
    times = np.full(12, 0.4)
    snaps = Snapshots.from_arrays(times, np.zeros(12), bounds=[(0, 1)], bins=[0, 1, 10, 11.5])
    np.testing.assert_array_equal(rows_in_bins(snaps).slabs, 0)
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
    np.testing.assert_array_equal(np.bincount(rows_in_bins(snaps).slabs), [6, 6])


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
    np.testing.assert_array_equal(np.bincount(rows_in_bins(snaps).slabs), [6, 6])


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
        rows = Snapshots.from_arrays(times, points, **options)._rows
        return sorted(zip(rows.times.tolist(), map(tuple, rows.points.tolist()), strict=True))

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
    return np.rint(rows_in_bins(snaps).points[:, 0] * 100).astype(int)


def test_random_keeps_exactly_one_of_each_person():
    kept = _chosen(seed=None)
    assert len(kept) == 12
    assert sorted(kept // 4)[:3] == [0, 1, 2]


@pytest.mark.slow
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
    assert 0.0 in rows_in_bins(snaps).points
    assert len(rows_in_bins(snaps).points) == 12


def test_identifiers_in_csv_stay_text(tmp_path):
    known = {"time": "t", "bounds": {"y": (0, 9)}, "bins": [0, 9], "person": "id"}
    rows = [f"{'0' * k}7-1,{k},{k}" for k in range(12)]
    (tmp_path / "t.csv").write_text("id,t,y\n" + "\n".join(rows))
    assert len(rows_in_bins(Snapshots.from_table(tmp_path / "t.csv", **known)).slabs) == 12
    (tmp_path / "t.csv").write_text("id,t,y\n" + "\n".join(rows).replace("-1,", ","))
    with pytest.raises(InputError, match="1 of 1 people have more than one record"):
        Snapshots.from_table(tmp_path / "t.csv", **known)  # a number, padded


# Several records per person -------------------------------------------------------------------


def _kept(times, most, *, one_per_bin=True, seed=0, others=0, bins=6):
    """Which of one person's records, at these times, are kept: (index, bin) of each."""
    mine = [("me", time, k + 1) for k, time in enumerate(times)]
    theirs = [(f"o{k // 3}", k % bins, 0) for k in range(3 * others)]
    rows = theirs[::2] + mine + theirs[1::2] + [(f"f{k}", 0, 0) for k in range(MIN_RECORDS)]
    snaps = Snapshots.from_arrays(
        [time for _, time, _ in rows],
        [y / 100 for _, _, y in rows],
        bounds=[(0, 1)],
        bins=np.arange(float(bins)),
        person=[name for name, _, _ in rows],
        records_per_person=most,
        one_per_bin=one_per_bin,
        seed=seed,
    )
    rows = rows_in_bins(snaps)
    index = np.rint(rows.points[:, 0] * 100).astype(int) - 1
    return sorted((int(i), int(b)) for i, b in zip(index, rows.slabs, strict=True) if i >= 0)


visits = st.lists(st.floats(-2, 8), min_size=2, max_size=12)


@given(visits, st.integers(2, 8), st.booleans(), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_no_more_records_than_stated_and_no_more_than_one_per_bin(times, most, one_per_bin, seed):
    kept = _kept(times, most, one_per_bin=one_per_bin, seed=seed)
    bins = nearest_bin(times, np.arange(6.0))
    possible = len(set(bins)) if one_per_bin else len(times)
    assert len(kept) == min(most, possible)  # as many as may be
    assert all(bins[i] == b for i, b in kept)
    if one_per_bin:
        assert len({b for _, b in kept}) == len(kept)


@given(visits, st.integers(2, 5), st.booleans(), st.integers(0, 99), st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_which_records_are_kept_does_not_depend_on_others(times, most, apart, seed, others):
    alone = _kept(times, most, one_per_bin=apart, seed=seed)
    assert alone == _kept(times, most, one_per_bin=apart, seed=seed, others=others)


def _uniform(counts, chance, draws, p=1e-6):
    """Two-sided normal test of each count; p is the rate of false alarms over all of them."""
    bound = norm.isf(p / 2 / len(counts)) * np.sqrt(draws * chance * (1 - chance))
    return (np.abs(np.asarray(counts) - draws * chance) < bound).all()


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("one_per_bin", [True, False])
def test_every_record_in_a_bin_of_its_own_has_the_same_chance(one_per_bin):
    draws = 400
    kept = [_kept(np.arange(5.0), 2, one_per_bin=one_per_bin, seed=seed) for seed in range(draws)]
    counts = np.bincount([i for rows in kept for i, _ in rows], minlength=5)
    assert counts.sum() == 2 * draws
    assert _uniform(counts, 2 / 5, draws)


@pytest.mark.slow
def test_every_record_of_one_bin_has_the_same_chance():
    draws = 400
    kept = [_kept([0, 0.1, 0.2, 3], 2, seed=seed) for seed in range(draws)]
    assert all((3, 3) in rows for rows in kept)  # alone in its bin, and there is room for both
    counts = np.bincount([i for rows in kept for i, _ in rows], minlength=4)
    assert _uniform(counts[:3], 1 / 3, draws)


def test_the_choice_of_several_is_repeatable_with_a_seed_and_fresh_without():
    times = np.arange(6.0)
    assert _kept(times, 3, seed=5) == _kept(times, 3, seed=5)
    assert len({tuple(_kept(times, 3, seed=None)) for _ in range(30)}) > 1


def test_the_public_number_of_records_is_what_was_asked_for_not_what_was_found():
    """Whether anybody has several records is private; that nobody has more than T is not."""

    def snaps(names, **options):
        return Snapshots.from_arrays(
            np.arange(12.0) % 4,
            np.zeros(12),
            bounds=[(0, 1)],
            bins=4,
            time_range=(0, 3),
            person=names,
            **options,
        )

    different, few = [f"p{k}" for k in range(12)], [f"p{k // 3}" for k in range(12)]
    for names in (different, few):
        assert snaps(names, records_per_person=3).records_per_person == 3
        assert snaps(names, records_per_person=9).records_per_person == 4
        together = snaps(names, records_per_person=9, one_per_bin=False)
        assert (together.records_per_person, together.together) == (9, True)
    assert (snaps(different).records_per_person, snaps(different).together) == (1, False)
    assert not snaps(different, one_per_bin=False).together
    assert len(rows_in_bins(snaps(few, records_per_person=3)).slabs) == 12


@pytest.mark.parametrize(("bins", "together"), [(None, True), (3, False)])
def test_without_bins_several_records_of_a_person_are_together(bins, together):
    """One per bin keeps nothing apart where there are no bins: whoever pays must know."""
    made = Snapshots.from_arrays(
        np.linspace(0, 2, 24), np.full((24, 1), 0.5), bounds=[(0, 1)], time_range=(0, 2), bins=bins,
        person=np.arange(24) % 12, records_per_person=2,
    )  # fmt: skip
    assert made.together == together
    assert made.shape.person == (2, together)
    assert made.shape.windows.count == (3 if bins else 1)


@pytest.mark.parametrize("most", [0, -1, 1.5, True, "2", None])
def test_a_number_of_records_that_is_no_count_is_refused(most):
    _refused(_columns(), {"person": "id", "records_per_person": most}, "whole number of at least 1")


def test_several_records_need_a_person_and_one_way_to_choose():
    _refused(_columns(), {"records_per_person": 2}, "needs person=")
    both = {"person": "id", "records_per_person": 2, "one_per_person": "random"}
    _refused(_columns(), both, "leave out one of them")


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, dict])
def test_a_table_of_points_is_read_by_the_names_of_its_features(kind):
    rng = np.random.default_rng(0)
    times, x, y = rng.random((3, 40))
    plain = {"bounds": {"x": (0, 1), "y": (0, 2)}, "time_range": (0, 1)}
    by_name = Snapshots.from_arrays(times, kind({"z": x, "y": y, "x": x}), **plain)
    by_place = Snapshots.from_arrays(times, np.column_stack([x, y]), **plain)
    np.testing.assert_array_equal(by_name._rows.points, by_place._rows.points)
    assert by_name._digest == by_place._digest


def test_tables_take_several_records_as_arrays_do():
    columns = _columns(id=[f"p{k // 3}" for k in range(N)])
    options = {"records_per_person": 2, "seed": 3}
    table = Snapshots.from_table(columns, **SETTINGS, person="id", **options)
    direct = Snapshots.from_arrays(
        columns["age"],
        np.column_stack([columns["height"], columns["weight"]]),
        bounds=BOUNDS,
        time_range=(0, 20),
        bins=5,
        person=columns["id"],
        **options,
    )
    _same(table, direct)
    assert table._rows.digest == direct._rows.digest
    assert table.records_per_person == direct.records_per_person == 2


# The digest -----------------------------------------------------------------------------------


def _digest(columns, **changes):
    return Snapshots.from_table(columns, **SETTINGS | changes)._rows.digest


def test_the_digest_knows_the_data_whatever_is_done_with_them():
    columns = _columns()
    digest = _digest(columns)
    assert len(digest) == 32
    order = np.random.default_rng(1).permutation(N)
    shuffled = {name: np.array(values)[order].tolist() for name, values in columns.items()}
    backwards = dict(reversed(columns.items()))
    wider = {name: (low - 1, high + 1) for name, (low, high) in BOUNDS.items()}
    same = {
        "order of rows": _digest(shuffled),
        "order of columns": _digest(backwards),
        "order of features": _digest(columns, features=["weight", "height"]),
        "order of bounds": _digest(columns, bounds=dict(reversed(BOUNDS.items()))),
        "bins": _digest(columns, bins=9),
        "listed bins": _digest(columns, bins=[0, 3, 20], time_range=None),
        "time range": _digest(columns, time_range=(-5, 40)),
        "bounds": _digest(columns, bounds=wider),
        "person": _digest(columns, person="id"),
        "records": _digest(columns, person="id", records_per_person=3),
        "another column": _digest(columns | {"more": [1] * N}),
        "whole numbers as floats": _digest(columns | {"age": np.array(columns["age"])}),
    }
    assert {name for name, other in same.items() if other != digest} == set()


def test_the_digest_is_of_all_records_not_of_the_chosen_ones():
    columns = _columns(id=[f"p{k // 2}" for k in range(N)])
    chosen = [
        _digest(columns, person="id", one_per_person="random", seed=seed) for seed in range(4)
    ]
    several = _digest(columns, person="id", records_per_person=2, one_per_bin=False)
    assert set(chosen) == {several} == {_digest(columns)}


@given(
    st.sampled_from(["age", "height", "weight"]),
    st.integers(0, N - 1),
    st.sampled_from([1e-9, -1e-9, 0.1, 1e6, -1e6]),
)
@settings(max_examples=40, deadline=None)
def test_the_digest_changes_with_one_value_of_one_record(column, row, step):
    """Even where clamping hides the change from everything else."""
    values = np.array(_columns()[column])
    values[row] += step
    once = _digest(_columns(**{column: values}))
    values[row] += step
    assert len({_digest(_columns()), once, _digest(_columns(**{column: values}))}) == 3


def test_the_digest_changes_with_a_record_more_a_record_twice_or_another_name():
    columns = _columns()
    fewer = {name: values[:-1] for name, values in columns.items()}
    twice = {name: [*values, values[0]] for name, values in columns.items()}
    swapped = columns | {"height": columns["weight"], "weight": columns["height"]}
    renamed = {name.replace("height", "size"): values for name, values in columns.items()}
    names = {"bounds": {"size": (40, 220), "weight": (1, 150)}}
    found = {
        _digest(columns),
        _digest(fewer),
        _digest(twice),
        _digest(swapped),
        _digest(renamed, **names),
        _digest(columns, bounds={"height": (40, 220)}),
    }
    assert len(found) == 6


def test_zeros_of_either_sign_are_one_value():
    zeros = [np.full(12, zero) for zero in (0.0, -0.0)]
    first, second = (
        Snapshots.from_arrays(zero, zero, bounds=[(0, 1)], bins=[0, 1])._rows.digest
        for zero in zeros
    )
    assert first == second


def test_the_digest_is_not_shown():
    snaps = Snapshots.from_table(_columns(), **SETTINGS)
    assert snaps._rows.digest.hex() not in repr(snaps)
    assert "digest" not in repr(snaps)


# Missing values -------------------------------------------------------------------------------


def test_drop_leaves_out_incomplete_records():
    columns = _with("height", 3, np.nan)
    columns["age"] = [*columns["age"][:-1], None]
    snaps = Snapshots.from_table(columns, **SETTINGS, missing="drop")
    assert len(rows_in_bins(snaps).slabs) == N - 2


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
    "no times at all": ({"bins": None, "time_range": None}, "time_range must be given"),
    "bins one": ({"bins": 1}, "at least two times"),
    "bins true": ({"bins": True}, "bins must be a number of times"),
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
        "1 of 30 records do not say whose they are",
    ),
    "too few": (
        {name: values[:9] for name, values in _columns().items()},
        {},
        f"9 usable records are too few: the table must have at least {MIN_RECORDS}",
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
    "points text": (ROW, [str(SECRET)] * N, {}, "is not numeric"),
    "points objects": (ROW, np.array([SECRET, None] * 15), {}, "missing values in 'x1'"),
    "points complex": (ROW, ROW + 1j, {}, "column 'x1' mixes kinds of values"),
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
