"""Paths between knots: the law of the bridge, the other interpolations, the box, the table."""

import os
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from in_bins import rows_in_bins
from privtraj.base.errors import InputError
from privtraj.base.space import fold
from privtraj.data import tables
from privtraj.data.dialect import DATE
from privtraj.data.snapshots import Snapshots
from privtraj.model.paths import Paths, fill_in_blocks
from privtraj.synthesizer import TrajectorySynthesizer

# The box --------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(arrays(np.float64, 5, elements=st.floats(-1e6, 1e6)))
def test_folding_lands_in_the_box(values):
    folded = fold(values)
    assert ((folded >= 0) & (folded <= 1)).all()


@settings(max_examples=200)
@given(st.floats(0, 1), st.integers(-5, 5))
def test_folding_is_reflection_at_the_walls(x, k):
    assert fold(np.array(x)) == pytest.approx(x, abs=1e-12)
    assert fold(np.array(x + 2 * k)) == pytest.approx(x, abs=1e-12)
    assert fold(np.array(2 * k - x)) == pytest.approx(x, abs=1e-12)


# Blocks of people -----------------------------------------------------------------------------


@pytest.mark.parametrize(("people", "numbers"), [(1, 5), (10, 1), (1000, 300), (7, 10**9)])
def test_everybody_is_in_one_block_and_a_block_fits_the_cache(people, numbers):
    seen, sizes = np.zeros(people, int), []

    def fill(block, rng):
        seen[block] += 1
        sizes.append(block.stop - block.start)

    fill_in_blocks(fill, people, numbers, np.random.default_rng(0))
    assert (seen == 1).all()
    assert max(sizes) * numbers <= max(2**19, numbers)


def test_blocks_have_generators_of_their_own_whatever_the_cores(monkeypatch):
    def drawn(cores):
        values = np.zeros(40)

        def fill(block, rng):
            values[block] = rng.standard_normal(block.stop - block.start)

        monkeypatch.setattr(os, "cpu_count", lambda: cores)
        fill_in_blocks(fill, len(values), 2**17, np.random.default_rng(5))
        return values

    np.testing.assert_array_equal(drawn(1), drawn(4))
    assert len(set(drawn(2))) == 40


# The table ------------------------------------------------------------------------------------


def made(datetime=False, features=("a", "b"), time_name="age"):
    values = np.arange(12.0).reshape(2, 3, 2)
    times = np.array([0.0, 86_400.0, 172_800.5]) if datetime else np.array([0.0, 1.5, 2.0])
    return Paths(values, times, features, time_name, datetime)


def test_the_long_table_has_one_row_for_every_path_and_time():
    frame = made().to_frame()
    assert list(frame.columns) == ["path", "age", "a", "b"]
    assert len(frame) == 6
    assert frame["path"].tolist() == [0, 0, 0, 1, 1, 1]
    assert frame["age"].tolist() == [0.0, 1.5, 2.0] * 2
    assert frame["a"].tolist() == [0, 2, 4, 6, 8, 10]
    assert frame["b"].tolist() == [1, 3, 5, 7, 9, 11]


def test_dates_come_back_as_dates():
    paths = made(datetime=True)
    assert paths.times.dtype == np.dtype("datetime64[us]")
    frame = paths.to_frame()
    assert frame["age"].dtype.kind == "M"
    assert str(frame["age"].iloc[2]) == "1970-01-03 00:00:00.500000"


@pytest.mark.parametrize(
    ("features", "time_name"),
    [
        (("path", "b"), "age"),
        (("a", "b"), "path"),
        (("a", "b"), "a"),
        (("a", "a_"), "a"),
        (("path", "path_"), "age"),
    ],
)
def test_names_that_clash_still_give_every_column(features, time_name):
    frame = made(features=features, time_name=time_name).to_frame()
    assert frame.shape == (6, 4)
    assert len(set(frame.columns)) == 4
    assert frame["path"].tolist() == [0, 0, 0, 1, 1, 1]


def test_length_and_repr_speak_of_people_and_times():
    assert len(made()) == 2
    assert "2 people at 3 times" in repr(made())


# Out and back ---------------------------------------------------------------------------------


ODD = ("height (cm)", "größe.2")


def drawn(datetime):
    values = np.random.default_rng(4).normal(size=(5, 3, 2))
    times = np.array([1.7e9, 1.7e9 + 0.123456, 1.8e9]) if datetime else np.array([0.1, 1 / 3, 2e5])
    return Paths(values, times, ODD, "when seen", datetime)


READERS = {
    "paths.csv": lambda path: pl.read_csv(path, try_parse_dates=True),
    "paths.csv.gz": lambda path: pl.from_pandas(
        _dated(pd.read_csv(path, float_precision="round_trip"))
    ),
    "paths.parquet": pl.read_parquet,
    "paths.arrow": pl.read_ipc,
    "paths.feather": lambda path: pl.from_pandas(pd.read_feather(path)),
}


def _dated(frame):
    if not pd.api.types.is_numeric_dtype(frame["when seen"]):
        frame["when seen"] = pd.to_datetime(frame["when seen"])
    return frame


@pytest.mark.parametrize("datetime", [False, True])
@pytest.mark.parametrize(("name", "read"), READERS.items(), ids=READERS)
def test_what_is_saved_reads_back_in_other_libraries(name, read, datetime, tmp_path):
    paths = drawn(datetime)
    paths.save(tmp_path / name)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    for frame in (read(tmp_path / name), paths.to_polars()):
        assert frame.columns == ["path", "when seen", *ODD]
        assert frame["path"].to_list() == [k for k in range(5) for _ in range(3)]
        times = frame["when seen"].to_numpy()
        np.testing.assert_array_equal(times.astype(paths.times.dtype), np.tile(paths.times, 5))
        for k, feature in enumerate(ODD):
            np.testing.assert_array_equal(frame[feature], paths.values[:, :, k].ravel())


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kolkata", "America/New_York"])
def test_dates_with_time_zones_come_back_as_the_same_moments(zone, tmp_path):
    """Through the door for tables, a model, sampling and a file: moments in UTC."""
    rng = np.random.default_rng(0)
    moments = np.datetime64("2024-03-01", "us") + rng.integers(0, 30 * 86400 * 10**6, 300)
    utc = pa.array(moments, pa.timestamp("us", "UTC"))
    when = pa.array(moments) if zone is None else utc.cast(pa.timestamp("us", zone))
    bins = np.array(["2024-03-01T00:00", "2024-03-16T12:30:15.5", "2024-03-31T00:00"], "M8[us]")
    snapshots = Snapshots.from_table(
        pa.table({"when": when, "x y": rng.uniform(size=300)}),
        time="when",
        bounds={"x y": (0, 1)},
        bins=list(bins),
    )
    edges = moments <= bins[0] + (bins[1] - bins[0]) / 2
    assert (rows_in_bins(snapshots).slabs == 0).sum() == edges.sum()
    shape = {"measure": "counts", "particles": 24, "steps": 4, "cells": 6, "seed": 1}
    model = TrajectorySynthesizer(2.0, 1e-4, **shape).fit(snapshots)
    paths = model.sample(3, seed=2)
    np.testing.assert_array_equal(paths.times, bins)
    paths.save(tmp_path / "paths.csv")
    again = tables.read_columns(tmp_path / "paths.csv", ["when"], {"when": DATE}).column("when")
    np.testing.assert_array_equal(again.to_numpy().astype("M8[us]"), np.tile(bins, 3))


def test_a_name_that_says_no_format_is_refused(tmp_path):
    with pytest.raises(InputError, match="is not known: use one of"):
        drawn(False).save(tmp_path / "paths.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_without_polars_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(InputError, match="pip install polars"):
        drawn(False).to_polars()
