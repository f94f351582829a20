"""Records that stay in their database: the numbers, the models and the sentences of memory.

PostgreSQL is a server that is started here, Spark runs in this process's own Java; tests skip what
is not installed.
"""

import datetime as dt
import gc
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from unittest import mock

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from in_bins import rows_in_bins
from privtraj import cli, datasets
from privtraj.base.errors import InputError
from privtraj.base.space import Slabs, bin_edges
from privtraj.columns.kinds import Boolean, Category, Date, Integer, Number, Ordered
from privtraj.data import sql
from privtraj.data.snapshots import Snapshots
from privtraj.data.sql_rows import SqlRows
from privtraj.export import tables as export_tables
from privtraj.model.model import load as load_model
from privtraj.privacy.guard import MemoryRows
from privtraj.synthesizer import TrajectorySynthesizer

SECRET = "123.4567"
N = 600
POSTGRES, SPARK = (
    pytest.param(name, marks=pytest.mark.thorough) for name in ("postgres", "pyspark")
)
ENGINES = ["duckdb", POSTGRES, SPARK]
BOUNDS = {"x": (0.0, 0.3), "y": (-1e3 / 3, 1e-7)}
SETTINGS = {"time": "t", "bounds": BOUNDS, "time_range": (-1.1, 7.3), "bins": 9}
_NAMES = (f"t{k}" for k in itertools.count())


# Engines --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def duckdb():
    return ibis.duckdb.connect()


@pytest.fixture(scope="module")
def server():
    """Connection string of a PostgreSQL server of our own."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = shutil.which("initdb") or (programs and programs[-1] / "initdb")
    if not found:
        pytest.skip("no PostgreSQL server is installed")
    # for another user, who has to get there: every run of pytest locks the folders of all others
    home = Path(tempfile.mkdtemp(prefix="privtraj-postgres-"))
    home.chmod(0o777)
    who = {"user": "nobody"} if os.getuid() == 0 else {}  # it refuses to run as root
    data, password = home / "data", home / "password"
    password.write_text(SECRET)
    login = ["-U", "clerk", "-A", "scram-sha-256", f"--pwfile={password}"]
    command = [found, "-D", data, *login, "-E", "UTF8", "--no-sync"]
    subprocess.run(command, cwd=home, check=True, capture_output=True, **who)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = ["-k", home, "-p", str(port), "-h", "127.0.0.1", "-c", "fsync=off"]
    with subprocess.Popen(
        [Path(found).with_name("postgres"), "-D", data, *settings],
        cwd=home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **who,
    ) as running:
        url = f"postgresql://clerk:{SECRET}@127.0.0.1:{port}/postgres"
        try:
            _wait_for(url)
            yield url
        finally:
            running.send_signal(signal.SIGINT)  # does not wait for connections that are open
            running.wait()
            shutil.rmtree(home, ignore_errors=True)


def _wait_for(url):
    import psycopg

    for _ in range(200):
        try:
            return psycopg.connect(url).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
    return pytest.fail("PostgreSQL does not start")


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed")
    if shutil.which("java") is None:
        pytest.skip("no Java is installed")
    settings = {
        "spark.ui.enabled": False,
        "spark.sql.shuffle.partitions": 1,
        "spark.sql.adaptive.enabled": False,
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.warehouse.dir": tmp_path_factory.mktemp("warehouse"),
    }
    builder = pyspark.sql.SparkSession.builder.master("local[1]")
    for key, value in settings.items():
        builder = builder.config(key, str(value))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield ibis.pyspark.connect(session)
    session.stop()


@pytest.fixture
def load(request, tmp_path):
    """Function: an Arrow table in the database that is the parameter, as an Ibis table."""

    def in_duckdb(table):
        connection, name = request.getfixturevalue("duckdb"), next(_NAMES)
        connection.con.register(f"{name}_arrow", table)
        connection.raw_sql(f"CREATE TABLE {name} AS SELECT * FROM {name}_arrow")
        return connection.table(name)

    def in_postgres(table):
        url, name = request.getfixturevalue("server"), next(_NAMES)
        _copy_to_postgres(table, url, name)
        return ibis.connect(url).table(name)

    def in_spark(table):
        connection = request.getfixturevalue("spark")
        pq.write_table(table, tmp_path / "t.parquet")
        return connection.read_parquet(tmp_path / "t.parquet")

    return {"duckdb": in_duckdb, "postgres": in_postgres, "pyspark": in_spark}[request.param]


EXACT = pa.decimal128(12, 4)
POSTGRES_TYPES = {
    EXACT: "numeric(12, 4)",
    pa.float64(): "double precision",
    pa.float32(): "real",
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
    pa.string(): "text",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamptz",
}


def _copy_to_postgres(table, url, name):
    import psycopg

    columns = ", ".join(f'"{f.name}" {POSTGRES_TYPES[f.type]}' for f in table.schema)
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} ({columns})")
        with cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copy.write_row(row)


everywhere = pytest.mark.parametrize("load", ENGINES, indirect=True)
in_duckdb = pytest.mark.parametrize("load", ["duckdb"], indirect=True)


# The same numbers -----------------------------------------------------------------------------


def _awkward(low, high, cells=(2, 7, 64)):
    """Values at, beside and between the ends of a range and of its cells, outside it, and tiny."""
    marks = [low, high, *(low + (high - low) * j / k for k in cells for j in range(k + 1))]
    beside = [np.nextafter(m, side) for m in marks for side in (-np.inf, np.inf)]
    tiny = [0.0, -0.0, 5e-324, 1e-310, 2.0**-150, 2.0**-149, 1e-46, 1e-45, 1e-40, 1e-30]
    far = [-1.7e308, 1.7e308, -1.0, 1e6]
    return np.array([*marks, *beside, *tiny, *(-np.array(tiny)), *far])


def _drawn(rng, values, low, high):
    """(N,) every awkward value once, the rest at random around the range."""
    wide = rng.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low), N - len(values))
    return rng.permutation(np.append(values, wide))


def _numbers(seed=0):
    rng = np.random.default_rng(seed)
    edges = bin_edges(np.linspace(-1.1, 7.3, 9))
    beside = [np.nextafter(edges, side) for side in (-np.inf, np.inf)]
    columns = {"t": _drawn(rng, np.concatenate([edges, *beside, [-1e300, 1e300]]), -1.1, 7.3)}
    for name, (low, high) in BOUNDS.items():
        columns[name] = _drawn(rng, _awkward(low, high), low, high)
    return pa.table(columns | {"id": [f"p{k}" for k in rng.permutation(N)]})


def _same(here, there):
    """There is the same as here, though it is held by a database."""
    mine, theirs = here._rows, there._rows
    assert isinstance(mine, MemoryRows)
    assert isinstance(theirs, SqlRows)
    np.testing.assert_array_equal(here.times, there.times)
    np.testing.assert_array_equal(here.bounds, there.bounds)
    assert (here.features, here.datetime) == (there.features, there.datetime)
    for slabs, cells in zip(_cuts(here), (64 if here.n_features < 3 else 2, 7, 2), strict=True):
        sides = (cells,) * here.n_features
        counts = theirs.cell_counts(slabs, sides)
        np.testing.assert_array_equal(mine.cell_counts(slabs, sides), counts)
        _same_rows(mine, theirs, slabs)  # which counts with one cell
    assert mine.digest == theirs.digest


def _same_rows(mine, theirs, slabs):
    my_rows, their_rows = mine.in_slabs(slabs), theirs.in_slabs(slabs)
    np.testing.assert_array_equal(my_rows.slabs, their_rows.slabs)
    np.testing.assert_array_equal(_sorted(my_rows), _sorted(their_rows))
    assert (their_rows.points.dtype, their_rows.slabs.dtype) == (np.float32, np.int32)


def _same_source(here, there):
    """There the same records are read as here; what becomes of them is the question of `_same`."""
    assert isinstance(there._rows, SqlRows)
    assert (here.features, here.datetime) == (there.features, there.datetime)
    _same_rows(here._rows, there._rows, here.axis.bins)
    assert here._rows.digest == there._rows.digest


def _cuts(snapshots):
    """The bins; four slabs cut elsewhere; and every third piece, of which the last is in none."""
    edges = np.linspace(*snapshots.axis.range, 5)[1:-1]
    some = Slabs(snapshots.axis.bins.edges, np.arange(snapshots.n_times) % 3 - 1)
    return snapshots.axis.bins, Slabs.between(edges), some


def _sorted(rows):
    return np.array(sorted(zip(rows.slabs.tolist(), *rows.points.T.tolist(), strict=True)))


@everywhere
def test_the_same_numbers_as_in_memory(load, monkeypatch):
    monkeypatch.setattr(sql, "BATCH", 250)
    table = _numbers()
    _same(
        Snapshots.from_table(table, **SETTINGS, person="id"),
        Snapshots.from_table(load(table), **SETTINGS, person="id"),
    )


MICROSECONDS = np.array([0, 1, -1, 1_700_000_000_123_456, -86_400_000_001, 4_102_444_799_999_999])
TIMES = {
    "timestamps": pa.timestamp("us"),
    "timestamps with a zone": pa.timestamp("us", "UTC"),
    "dates": pa.date32(),
    "whole numbers": pa.int64(),
    "single precision": pa.float32(),
}


def _timed(kind):
    """Records at, beside and far from the middle between two times, and the times."""
    rng = np.random.default_rng(1)
    steps = np.array([-(10**6), -2, -1, 0, 1, 2, 10**6])
    if kind == pa.date32():
        bins = np.array(["1931-05-04", "1970-01-01", "1970-01-04", "2024-02-29"], "datetime64[D]")
        values = (bins[:, None] + steps % 1000).ravel()
    elif pa.types.is_timestamp(kind):
        bins = np.sort(MICROSECONDS).astype("datetime64[us]")
        middle = np.sort(MICROSECONDS)
        middle = np.append(middle, (middle[1:] + middle[:-1]) // 2)
        values = (middle[:, None] + steps).ravel().astype("datetime64[us]")
    else:
        bins, values = [-3, 0, 1, 2**21], (np.array([0, 2**20])[:, None] + steps).ravel()
    table = {"t": pa.array(values).cast(kind), "y": rng.uniform(size=len(values))}
    return pa.table(table), list(bins)


@everywhere
@pytest.mark.parametrize("kind", TIMES.values(), ids=TIMES)
def test_the_same_bins_for_every_kind_of_time(load, kind):
    table, bins = _timed(kind)
    settings = {"time": "t", "bounds": {"y": (0, 1)}, "bins": bins}
    here, there = (Snapshots.from_table(each, **settings) for each in (table, load(table)))
    np.testing.assert_array_equal(rows_in_bins(here).slabs, rows_in_bins(there).slabs)
    assert here._rows.digest == there._rows.digest
    assert len(set(rows_in_bins(here).slabs)) == len(bins)


@in_duckdb
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_same_bins_for_every_resolution(load, unit):
    micros = np.append(MICROSECONDS, [] if unit == "ns" else [10**16 + 1]).astype(np.int64)
    factor = {"s": 1e-6, "ms": 1e-3, "us": 1, "ns": 1e3}[unit]
    values = (micros[:, None] * factor + np.array([-999, -1, 0, 1, 999])).ravel()
    column = pa.array(values.astype(np.int64), pa.timestamp(unit))
    table = pa.table({"t": column, "y": np.zeros(len(values))})
    bins = np.sort(micros).astype("datetime64[us]")
    settings = {"time": "t", "bounds": {"y": (0, 1)}, "bins": bins}
    here, there = (Snapshots.from_table(each, **settings) for each in (table, load(table)))
    np.testing.assert_array_equal(rows_in_bins(here).slabs, rows_in_bins(there).slabs)
    assert here._rows.digest == there._rows.digest


@everywhere
def test_numbers_of_every_kind(load):
    rng = np.random.default_rng(2)
    table = pa.table(
        {
            "t": pa.array(rng.integers(0, 9, N)),
            "real": pa.array(rng.uniform(size=N), pa.float32()),
            "whole": pa.array(rng.integers(-(2**60), 2**60, N)),
            "exact": pa.array(
                [Decimal(int(k)).scaleb(-4) for k in rng.integers(0, 10**9, N)], EXACT
            ),
            "flag": pa.array(rng.uniform(size=N) < 0.5),
            "id": pa.array(rng.permutation(N)),
        }
    )
    bounds = {"real": (0.1, 0.7), "whole": (-(2**59), 2**58), "flag": (0, 1)}
    bounds["exact"] = (10.1, 80_000)
    settings = {"time": "t", "bounds": bounds, "bins": [0, 4, 8], "person": "id"}
    _same(*(Snapshots.from_table(each, **settings) for each in (table, load(table))))


@everywhere
def test_records_with_missing_values_are_left_out(load):
    table = _numbers()
    columns = {name: table[name].to_pylist() for name in table.column_names}
    columns["t"][3] = columns["x"][4] = columns["x"][5] = columns["id"][6] = None
    columns["y"][5] = columns["t"][6] = float("nan")
    table = pa.table(columns)
    settings = SETTINGS | {"person": "id", "missing": "drop"}
    here, there = (Snapshots.from_table(each, **settings) for each in (table, load(table)))
    assert there._rows.count == N - 4
    _same(here, there)


# Columns of every kind ------------------------------------------------------------------------

ODD = ["it's", 'a"b', "back\\slash", "ä ß", "e\u0301", "NA", "%s", ":x"]
TRUTHS = ["true", "TRUE", "True", "fALSE", "1", "1.0", "0", "0.0"]
DECLARED = {
    "number": Number(4, 15, missing=True),
    "plain": ["F", "M"],
    "odd": Category([*ODD[::-1], 1], other="rest", missing=True),
    "flag": Boolean(missing=True),
    "told": bool,
    "whole": Ordered([-2, -1, 0, 1, 2], other="many", missing=True),
    "real": Category([0, 1, "2.5"], other="1", missing=True),
    "short": [1, "2.5", 2],
    "exact": ["1", "2.5", "3"],
    "kids": Integer(0, 10, missing=True),
    "grade": Integer(1, 3),
    "day": Date("1950-01-01", "1990-01-01", missing=True),
    "moment": Date("1950-01-01", "1990-01-01T12:30"),
}


def _mixed(n=200):
    """Cells of every type, some of them missing, most of them awkward."""
    rng = np.random.default_rng(4)

    def drawn(values, kind, missing=0.2):
        cells = [values[k] for k in rng.integers(0, len(values), n)]
        return pa.array([None if rng.uniform() < missing else c for c in cells], kind)

    whole = list(range(-4, 14))
    exact = [Decimal(k).scaleb(-4) for k in (10_000, 25_000, 30_000)]
    micros = rng.integers(-9 * 10**14, 9 * 10**14, n)
    return pa.table(
        {
            "t": rng.uniform(-1, 7, n),
            "number": drawn([3.0, 4.0, 7.7, 15.0, 99.0, float("nan")], pa.float64()),
            "plain": drawn(["F", "M"], pa.string(), 0),
            "odd": drawn([*ODD, "", "null", "x", *TRUTHS], pa.string()),
            "flag": drawn([True, False], pa.bool_()),
            "told": drawn([*TRUTHS, "yes", "No", "N", "y", "T", "f"], pa.string(), 0),
            "whole": drawn(whole, pa.int64()),
            "real": drawn([0.0, -0.0, 1.0, 2.5, 1e300, float("nan")], pa.float64()),
            "short": drawn([1.0, 2.0, 2.5], pa.float32(), 0),
            "exact": drawn(exact, EXACT, 0),
            "kids": drawn(whole, pa.int64()),
            "grade": drawn([1.0, 2.0, 3.0, 4.0], pa.float64(), 0),
            "day": pa.array((micros // 86_400_000_000).tolist(), pa.int32()).cast(pa.date32()),
            "moment": pa.array(micros.tolist(), pa.timestamp("us")),
            "id": [f"p{k}" for k in range(n)],
        }
    )


def _both(table, there, **more):
    settings = {"time": "t", "time_range": (-1.1, 7.3), "bins": 4, "columns": DECLARED} | more
    return [Snapshots.from_table(each, **settings) for each in (table, there)]


def _same_mixed(here, there):
    mine, theirs = here._rows, there._rows
    assert isinstance(theirs, SqlRows)
    assert here.columns == there.columns
    full, slabs = here.axes.sides(4), here.axis.bins
    _same_rows(mine, theirs, slabs)
    for first in range(0, here.n_features, 2):
        sides = [full[k] if k // 2 == first // 2 else 1 for k in range(here.n_features)]
        counts = theirs.cell_counts(slabs, sides)
        np.testing.assert_array_equal(mine.cell_counts(slabs, sides), counts)
    assert mine.digest == theirs.digest


@everywhere
def test_columns_of_every_kind_are_the_same_as_in_memory(load):
    table = _mixed()
    there = load(table)
    kinds = dict(DECLARED)
    if there.get_backend().name == "pyspark":
        del kinds["moment"]  # see the next test
    here, there = _both(table, there, columns=kinds, person="id")
    assert {"number missing", "kids missing", "day missing"} < set(here.features)
    _same_mixed(here, there)


TEXT_DATES = pa.array(["1960-01-31", None, "", "1988-12-01T10:00:00.5"] * 5)
NEEDED_HERE = {
    "text": TEXT_DATES,
    "zone": pa.array([*range(19), None], pa.timestamp("us", "UTC")),
    "nanoseconds": pa.array(list(range(-19, 1)), pa.timestamp("ns")),
}


@in_duckdb
@pytest.mark.parametrize("kind", NEEDED_HERE)
def test_dates_that_databases_read_in_their_own_ways_are_read_here(load, kind):
    table = pa.table({"t": np.arange(20.0), "born": NEEDED_HERE[kind]})
    declared = {"born": Date("1950-01-01", "1990-01-01", missing=True)}
    here, there = _both(table, load(table), columns=declared)
    assert isinstance(there._rows, MemoryRows)
    np.testing.assert_array_equal(here._rows.points, there._rows.points)
    assert here._rows.digest == there._rows.digest


@in_duckdb
def test_records_that_lack_what_they_must_have_are_left_out(load):
    table = _mixed()
    kinds = DECLARED | {"flag": bool, "kids": Integer(0, 10)}
    here, there = _both(table, load(table), columns=kinds, missing="drop")
    lacking = (table["flag"].is_valid(), table["kids"].is_valid())
    complete = np.logical_and(*(np.array(each.to_pylist()) for each in lacking))
    assert there._rows.count == len(here._rows.times) == complete.sum() < len(table)
    _same_mixed(here, there)


@in_duckdb
def test_an_enumeration_is_read_as_its_texts(load, duckdb):
    there = load(pa.table({"t": np.arange(20.0), "sex": ["F", "M"] * 10}))
    duckdb.raw_sql("CREATE TYPE sex AS ENUM ('F', 'M', 'X')")
    duckdb.raw_sql(f"CREATE TABLE enumerated AS SELECT t, sex::sex AS sex FROM {there.get_name()}")
    kinds = {"sex": Category(["M", "W"], other="rest")}
    _same_mixed(*_both(there.to_pyarrow(), duckdb.table("enumerated"), columns=kinds))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_large_files_are_read_as_small_ones(kind, tmp_path, monkeypatch):
    table = _mixed().drop_columns(["exact", "odd", "id"])
    codes = ["01", "1", "NA", "", "null", "yes", "1.0", "2020-01-31", "true", "x y"] * 20
    path = tmp_path / f"t.{kind}"
    export_tables.write_table(table.append_column("code", pa.array(codes)), path)
    values = ["01", 1, "NA", "yes", "2020-01-31", "x y"]
    kinds = {name: DECLARED[name] for name in table.column_names[1:]}
    kinds |= {"code": Category(values, missing=True)}
    here, _ = _both(path, path, columns=kinds)
    monkeypatch.setattr(sql, "LARGE_FILE", 0)
    _, there = _both(path, path, columns=kinds)
    _same_mixed(here, there)


# The same models ------------------------------------------------------------------------------

PEOPLE = 400
GROWTH = {
    "time": "age",
    "bounds": datasets.GROWTH_BOUNDS,
    "time_range": datasets.GROWTH_TIME_RANGE,
    "bins": 5,
    "person": "id",
}
COUNTS = {"measure": "counts", "particles": 24, "steps": 4, "cells": 6}
GRADIENTS = {"measure": "gradients", "particles": 8, "steps": 3}


@pytest.fixture(scope="module")
def clinic():
    return datasets.growth_clinic(PEOPLE)


def _fit(source, options, **more):
    snapshots = Snapshots.from_table(source, **GROWTH | more)
    return TrajectorySynthesizer(2.0, 1e-4, seed=3, **options).fit(snapshots)


@pytest.fixture(scope="module")
def counted(clinic):
    return _fit(clinic, COUNTS).sha256


@everywhere
def test_a_seed_gives_the_same_model_and_no_record_is_fetched(load, clinic, counted, monkeypatch):
    def refused(self, *slabs):
        raise AssertionError("a fit by counts fetches no records")

    monkeypatch.setattr(SqlRows, "in_slabs", refused)
    monkeypatch.setattr(SqlRows, "digest", property(refused))
    assert _fit(load(clinic), COUNTS).sha256 == counted


@pytest.mark.thorough
@in_duckdb
def test_gradients_give_the_same_model(load, clinic):
    there = load(clinic.take(np.random.default_rng(0).permutation(PEOPLE)))
    assert _fit(there, GRADIENTS).sha256 == _fit(clinic, GRADIENTS).sha256


# The same checks ------------------------------------------------------------------------------


def _with(column, row, value):
    columns = {name: values.to_pylist() for name, values in _few().items()}
    columns[column][row] = value
    return columns


def _few():
    rng = np.random.default_rng(0)
    return {
        "id": pa.array([f"p{k}" for k in range(30)]),
        "t": pa.array(rng.uniform(0, 7, 30)),
        "x": pa.array(np.append(float(SECRET), rng.uniform(0, 1, 29))),
        "y": pa.array(rng.uniform(-1, 0, 30)),
    }


DAY = dt.date(2024, 1, 31)
REPEATED = {"id": ["p1", "p1", "p2", "p2", *map(str, range(26))]}
MISTAKES = {
    "no column": ({}, {"time": "when"}),
    "no columns": ({}, {"time": "when", "person": "whose"}),
    "text": ({"x": ["1", SECRET + " kg", *["2"] * 28]}, {}),
    "text with missing": ({"x": [None, SECRET + " kg", *["2"] * 28]}, {}),
    "dates as feature": ({"x": [DAY] * 30}, {}),
    "lists": ({"x": [[1.5]] * 30}, {}),
    "text as time": ({"t": ["noon"] * 30}, {}),
    "clock as time": ({"t": [dt.time(12)] * 30}, {}),
    "dates against numbers": ({"t": [DAY] * 30}, {}),
    "numbers against dates": ({}, {"time_range": ("2024-01-01", "2024-02-01")}),
    "infinite": (_with("x", 3, np.inf), {}),
    "infinite in two": (_with("x", 3, -np.inf) | {"t": _with("t", 3, np.inf)["t"]}, {}),
    "infinite and missing": (_with("x", 3, -np.inf) | {"y": _with("y", 4, None)["y"]}, {}),
    "missing": (_with("y", 4, None), {}),
    "not a number": (_with("y", 4, np.nan), {}),
    "missing in three": (
        _with("y", 4, np.nan) | {"t": _with("t", 4, None)["t"], "x": _with("x", 5, None)["x"]},
        {},
    ),
    "no person": (_with("id", 3, None), {}),
    "no person, several dropped": (
        _with("id", 3, None) | {"x": _with("x", 5, None)["x"]},
        {"missing": "drop"},
    ),
    "two records": (REPEATED, {}),
    "no person and two records": ({"id": [None, *REPEATED["id"][1:]]}, {}),
    "few": ({name: values[:9] for name, values in _few().items()}, {}),
    "few after dropping": ({"x": [None] * 21 + [0.5] * 9}, {"missing": "drop"}),
    "none": ({name: values[:0] for name, values in _few().items()}, {}),
    "a role twice": ({}, {"person": "t"}),
    "not declared": ({"c": ["F", "M", SECRET] * 10}, {"columns": {"c": ["F", "M"]}}),
    "not true": ({"c": ["yes", "maybe", "no"] * 10}, {"columns": {"c": bool}}),
    "missing category": ({"c": ["F", "", None] * 10}, {"columns": {"c": ["F", "M"]}}),
    "missing date": ({"c": [DAY, None] * 15}, {"columns": {"c": Date("2020-01-01", "2025-01-01")}}),
    "not whole": ({"c": [1.5, 2.0, None] * 10}, {"columns": {"c": Integer(0, 9, missing=True)}}),
    "infinite whole": ({"c": [1.0, np.inf] * 15}, {"columns": {"c": Integer(0, 9)}}),
    "dates as category": ({"c": [DAY] * 30}, {"columns": {"c": ["F", "M"]}}),
    "lists as category": ({"c": [["F"]] * 30}, {"columns": {"c": ["F", "M"]}}),
    "numbers as dates": ({"c": [1.5] * 30}, {"columns": {"c": Date("2020-01-01", "2025-01-01")}}),
    "text as dates": ({"c": ["noon"] * 30}, {"columns": {"c": Date("2020-01-01", "2025-01-01")}}),
}


def _message(source, options):
    with pytest.raises(InputError) as error:
        Snapshots.from_table(source, **SETTINGS | {"person": "id"} | options)
    assert SECRET not in str(error.value)
    assert error.value.__suppress_context__ or error.value.__context__ is None
    return str(error.value)


@in_duckdb
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained_as_in_memory(load, mistake):
    changes, options = MISTAKES[mistake]
    table = pa.table(_few() | changes)
    assert _message(load(table), options) == _message(table, options)


@pytest.mark.parametrize("load", [POSTGRES, SPARK], indirect=True)
@pytest.mark.parametrize("mistake", ["text", "infinite in two", "missing in three", "two records"])
def test_mistakes_are_explained_by_every_database(load, mistake):
    changes, options = MISTAKES[mistake]
    table = pa.table(_few() | changes)
    assert _message(load(table), options) == _message(table, options)


UUIDS = ["A" * 32, f"{'a' * 8}-aaaa-aaaa-aaaa-{'a' * 12}"]


@everywhere
def test_numbers_and_uuids_say_who_however_they_are_written(load):
    def table(ids):
        return pa.table({"id": ids, **{k: [0.1 * j for j in range(len(ids))] for k in "txy"}})

    padded = [f"00{k}" for k in range(20, 40)]
    several = table(["7", "007", "7.0", " +7.", "0", "00", "0.0", *UUIDS, *padded])
    said = _message(load(several), {})
    assert said.startswith("3 of 23 people have more than one record")
    assert said == _message(several, {})
    once = table([" 007.0", "00", UUIDS[1], "p 1", *padded])
    both = [Snapshots.from_table(one, **SETTINGS, person="id") for one in (load(once), once)]
    assert isinstance(both[0]._rows, SqlRows)
    there, here = (sorted(itertools.chain(*one._rows.identifiers())) for one in both)
    assert there == here
    assert {b"7", b"0", b"20", b"a" * 32, b"p 1"} < {*here}
    odd = load(table(["-07", "1.50", "1e5", *padded]))
    assert not isinstance(Snapshots.from_table(odd, **SETTINGS, person="id")._rows, SqlRows)
    assert "were rounded" in _message(load(table(["9007199254740993.0", *padded])), {})
    large = table([2.0**53, *map(float, range(20))])
    assert "1 of 21 records have numbers in the person column" in _message(load(large), {})


@in_duckdb
@pytest.mark.parametrize("start", [0, -300, 2**62, -(2**63), 2**64 - 2 * N])
def test_whole_numbers_are_told_apart_by_a_bit_for_each(load, start):
    kind = pa.uint64() if start >= 2**63 else pa.int64()
    ids = [start + k for k in range(N)]
    alone = _numbers().set_column(3, "id", pa.array(ids, kind))
    assert isinstance(Snapshots.from_table(load(alone), **SETTINGS, person="id")._rows, SqlRows)
    for wrong, said in (
        (ids[0], "1 of 599 people have more"),
        (None, "1 of 600 records do not say"),
    ):
        table = alone.set_column(3, "id", pa.array([*ids[:-1], wrong], kind))
        for source in (table, load(table)):
            assert said in _message(source, {"person": "id"})


@in_duckdb
def test_records_that_change_after_the_checks_are_refused(load, duckdb):
    there = load(_numbers())
    snapshots = Snapshots.from_table(there, **SETTINGS)
    rows, bins = snapshots._rows, snapshots.axis.bins
    assert len(rows.in_slabs(bins).slabs) == N
    duckdb.raw_sql(f"INSERT INTO {there.get_name()} SELECT * FROM {there.get_name()} LIMIT 1")
    for read in (
        lambda: rows.cell_counts(bins, (2,) * len(snapshots.columns)),
        lambda: rows.in_slabs(bins),
    ):
        with pytest.raises(InputError, match="have changed since they were checked"):
            read()


# Several records of a person ------------------------------------------------------------------

CHOICES = {
    "one at random": {"one_per_person": "random", "seed": 5},
    "two, one per bin": {"records_per_person": 2, "seed": 5},
    "two anywhere": {"records_per_person": 2, "one_per_bin": False, "seed": 5},
}


@in_duckdb
@pytest.mark.parametrize("choice", CHOICES)
def test_records_are_chosen_in_memory(load, choice):
    table = _numbers()
    table = table.set_column(3, "id", pa.array([f"p{k // 3}" for k in range(N)]))
    settings = SETTINGS | {"person": "id"} | CHOICES[choice]
    here, there = (Snapshots.from_table(each, **settings) for each in (table, load(table)))
    assert isinstance(there._rows, MemoryRows)
    np.testing.assert_array_equal(rows_in_bins(here).points, rows_in_bins(there).points)
    assert here._rows.digest == there._rows.digest
    assert here.records_per_person == there.records_per_person


@in_duckdb
@pytest.mark.parametrize("choice", CHOICES)
def test_nothing_is_fetched_where_nothing_is_to_be_chosen(load, choice):
    table, options = _numbers(), SETTINGS | {"person": "id"} | CHOICES[choice]
    here, there = (Snapshots.from_table(each, **options) for each in (table, load(table)))
    _same(here, there)
    assert (here.records_per_person, here.together) == (there.records_per_person, there.together)


def _repeated():
    """Every third person has two records, in different time bins."""
    table = _numbers()
    bins = Slabs.around(np.linspace(*SETTINGS["time_range"], SETTINGS["bins"]))
    slab = bins.of(np.asarray(table["t"], np.float64))
    ids = np.arange(N)
    for k in range(0, N - 1, 3):
        ids[k + 1] = k if slab[k] != slab[k + 1] else k + 1
    assert 50 < N - len(np.unique(ids)) < N / 3
    return table.set_column(3, "id", pa.array([f"p{k}" for k in ids]))


@pytest.mark.parametrize("load", ENGINES, indirect=True)
@pytest.mark.parametrize("choice", ["two, one per bin", "two anywhere"])
def test_people_with_several_records_are_matched_in_memory(load, choice):
    table, options = _repeated(), SETTINGS | {"person": "id"} | CHOICES[choice]
    here, there = (Snapshots.from_table(each, **options) for each in (table, load(table)))
    assert isinstance(there._rows, MemoryRows)
    order = [np.lexsort((*rows.points.T, rows.times)) for rows in (here._rows, there._rows)]
    own = [len(np.unique(each._rows.people)) for each in (here, there)]
    assert own[0] == own[1] < N - 50
    for name in ("times", "points"):
        mine, theirs = (
            getattr(each._rows, name)[k] for each, k in zip((here, there), order, strict=True)
        )
        np.testing.assert_array_equal(mine, theirs)


@in_duckdb
@pytest.mark.slow
def test_a_seed_gives_one_model_of_people_with_two_records(load):
    table, options = _repeated(), SETTINGS | {"person": "id", "records_per_person": 2}
    models = [
        TrajectorySynthesizer(2.0, 1e-5, cells=4, particles=8, windows="bins", seed=1).fit(
            Snapshots.from_table(each, **options)
        )
        for each in (table, load(table))
    ]
    assert models[0].diagnostics["persistence"] == models[1].diagnostics["persistence"]
    assert models[0].sha256 == models[1].sha256


# Files ----------------------------------------------------------------------------------------


def _pieces(folder, suffix, table=None):
    """The table in three files, the columns of each in another order."""
    folder.mkdir(exist_ok=True)
    table = _numbers() if table is None else table
    for k in range(3):
        names = np.roll(table.column_names, k).tolist()
        export_tables.write_table(
            table.slice(k * N // 3, N // 3).select(names), folder / f"part {k}{suffix}"
        )
    return folder


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_folders_and_patterns(suffix, tmp_path):
    folder = _pieces(tmp_path / "visits [2024]", suffix)
    (folder / "_SUCCESS").touch()
    (folder / ".part 0.csv.crc").touch()
    (folder / "_temporary").mkdir()
    export_tables.write_table(_numbers(), folder / "_temporary" / f"more{suffix}")
    here = Snapshots.from_table(_numbers(), **SETTINGS, person="id")
    for source in (folder, str(folder), str(tmp_path / f"visits*/p*{suffix}"), tmp_path):
        _same_source(here, Snapshots.from_table(source, **SETTINGS, person="id"))


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t [1]*.csv"])
def test_large_files_are_not_read_into_memory(name, tmp_path, monkeypatch):
    export_tables.write_table(_numbers(), tmp_path / name)
    here = Snapshots.from_table(tmp_path / name, **SETTINGS, person="id")
    monkeypatch.setattr(sql, "LARGE_FILE", 1000)
    _same_source(here, Snapshots.from_table(tmp_path / name, **SETTINGS, person="id"))
    monkeypatch.setattr(sql, "find_spec", lambda name: None)
    there = Snapshots.from_table(tmp_path / name, **SETTINGS, person="id")
    assert isinstance(there._rows, MemoryRows)


CSV_TIMES = {
    "dates": ["2024-01-31", "2024-03-01"],
    "timestamps": ["2024-01-31 23:00:00.5", "2024-03-01T00:00:00"],
    "zones": ["2024-01-31T23:00:00+02:00", "2024-03-01T00:00:00Z"],
}


@pytest.mark.parametrize("kind", CSV_TIMES)
def test_a_csv_means_the_same_to_both_readers(kind, tmp_path, monkeypatch):
    """Text ids, signs for missing values, quotes, semicolons, and numbers that begin whole."""
    ids = [*(f"{'0' * k}7-1" for k in range(15)), *(f'"{k}; x"' for k in range(15))]
    values = [*range(25), "NA", "", "nan", "1e-3", 0.1]
    times = CSV_TIMES[kind] * 15
    lines = [f'{i};{t};{x};"two\nlines"' for i, t, x in zip(ids, times, values, strict=True)]
    path = tmp_path / "t.csv"
    path.write_text("\ufeff" + "\n".join(["the id;t;x;note", *lines, ""]), encoding="utf-8")
    settings = {"time": "t", "bounds": {"x": (0, 30)}, "bins": ["2024-02-01", "2024-02-29"]}
    settings |= {"person": "the id", "missing": "drop", "csv": {"newlines": "quoted"}}
    here = Snapshots.from_table(path, **settings)
    monkeypatch.setattr(sql, "LARGE_FILE", 0)
    _same_source(here, Snapshots.from_table(path, **settings))


def test_whole_numbers_may_be_followed_by_others(tmp_path):
    rows = 30_000  # more than DuckDB looks at to guess the type
    lines = [f"{k},{k % 7},{k % 3}" for k in range(rows)]
    (tmp_path / "a.csv").write_text("\n".join(["id,t,x", *lines, f"{rows},0.5,0.25", ""]))
    there = Snapshots.from_table(
        tmp_path, time="t", bounds={"x": (0, 2)}, bins=[0, 3, 6], person="id"
    )
    assert there._rows.count == rows + 1


BAD_FILES = {
    "empty": "",
    "header only": "id,t,x,y\n",
    "ragged": f"id,t,x,y\na,1,{SECRET}\nb,1,2,3,4\n",
    "no column": f"id,t,x\na,1,{SECRET}\n",
    "a column twice": f"id,t,x,y,y\na,1,2,3,{SECRET}\n",
    "text": "id,t,x,y\n" + f"a,1,{SECRET},x{SECRET}\n" * 20,
    "american dates": "id,t,x,y\n" + "".join(f"{k},01/31/2024,2,3\n" for k in range(20)),
    "missing": "id,t,x,y\n" + "".join(f"{k},1,{SECRET},\n" for k in range(20)),
    "infinite": "id,t,x,y\n" + "".join(f"{k},1,{SECRET},inf\n" for k in range(20)),
    "repeated people": "id,t,x,y\n" + f"{SECRET},1,2,3\n" * 20,
}


@pytest.mark.parametrize("bad", BAD_FILES)
def test_bad_files_are_explained_as_in_memory(bad, tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text(BAD_FILES[bad])
    said = _message(path, {})
    monkeypatch.setattr(sql, "LARGE_FILE", -1)
    assert _message(path, {}) == said


def test_text_among_numbers_far_down(tmp_path):
    """No cell decides what its column holds: it is the one that is unreadable."""
    lines = (f"{k},1,2,3\n" for k in range(200_000))
    (tmp_path / "t.csv").write_text("id,t,x,y\n" + "".join(lines) + f"a,1,2,{SECRET} kg\n")
    assert _message(tmp_path, {}).startswith("1 of 200001 cells of column 'y' are not numbers: ")


def test_folders_and_patterns_that_cannot_be_used(tmp_path):
    assert "no CSV or Parquet file in the folder" in _message(tmp_path, {})
    assert "no CSV or Parquet file in '" in _message(str(tmp_path / "*.csv"), {})
    _pieces(tmp_path, ".csv")
    assert "query= goes with" in _message(tmp_path, {"query": f"select {SECRET}"})
    export_tables.write_table(pa.table({"x": [1]}), tmp_path / "part 3.csv")
    assert "has no column 't', 'y', 'id': it has 'x'" in _message(tmp_path, {"person": "id"})
    export_tables.write_table(_numbers(), tmp_path / "more.parquet")
    assert "CSV and Parquet files in the folder" in _message(tmp_path, {})


WITH_CIPHER, WITHOUT_CIPHER = "SET force_mbedtls_unsafe = true", "LOAD nothing_of_that_name"


def _duckdb(instead, memory=None):
    """A connection as `sql` makes it, where httpfs stands for another statement.

    The extension is fetched from the net, so DuckDB's own cipher is in its place, which encrypts as
    well but draws its keys carelessly; or none.
    """
    connection = ibis.duckdb.connect()
    ask = connection.raw_sql
    other = lambda query: ask(instead if query == "LOAD httpfs" else query)  # noqa: E731
    with mock.patch.object(connection, "raw_sql", other):
        sql._frugal(connection)
    connection.raw_sql("SET threads = 2")
    if memory:
        connection.raw_sql(f"SET memory_limit = '{memory}'")
    return connection


def _settings(connection):
    names = ("memory_limit", "temp_directory", "temp_file_encryption")
    query = ", ".join(f"current_setting('{name}')" for name in names)
    return connection.raw_sql(f"SELECT {query}").fetchone()


def test_duckdb_keeps_to_its_memory_and_has_a_place_to_write_to_encrypted():
    connection = _duckdb(WITH_CIPHER)
    limit, place, encrypted = _settings(connection)
    assert (limit, encrypted) == ("953.6 MiB", True)  # 1 GB
    assert Path(place).is_dir()
    del connection
    gc.collect()
    assert not Path(place).exists()


def _count_people(connection):
    """More names than fit into memory; how many of them were seen on the disk meanwhile."""
    place, done, seen = _settings(connection)[1], threading.Event(), []

    def watch():
        while not done.wait(0.01):
            for file in Path(place).rglob("*.tmp"):
                with suppress(OSError):
                    seen.append(file.read_bytes().count(b"Ottoline-"))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        people = "SELECT 'Ottoline-and-all-her-names-' || hash(range) AS who FROM range(600000)"
        each = f"SELECT who, count(*) AS n FROM ({people}) GROUP BY who"
        assert connection.raw_sql(f"SELECT max(n) FROM ({each})").fetchone() == (1,)
    finally:
        done.set()
        watching.join()
    assert seen
    return sum(seen)


@pytest.mark.thorough
def test_what_duckdb_writes_to_the_disk_is_encrypted():
    assert _count_people(_duckdb(WITH_CIPHER, "40MB")) == 0
    plain = _duckdb(WITH_CIPHER, "40MB")
    plain.raw_sql("SET temp_file_encryption = false")
    assert _count_people(plain) > 1000  # the test can see them


def test_without_a_cipher_duckdb_writes_nothing_and_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert _settings(_duckdb(WITHOUT_CIPHER))[1] == ""
    folder, n = tmp_path / "visits", 300_000
    folder.mkdir()
    numbers = np.arange(n)
    names = pa.array([f"Ottoline-and-all-her-names-{k * 7919}" for k in range(n)])
    columns = {"id": names, "t": numbers % 7, "x": numbers / n, "y": -numbers / n}
    pq.write_table(pa.table(columns), folder / "a.parquet")
    small = _duckdb(WITHOUT_CIPHER, "25MB")
    monkeypatch.setattr(sql, "_frugal", lambda connection: small)
    before = set(tmp_path.rglob("*"))
    said = _message(folder, {})
    assert "DuckDB has too little memory for the records, and writes them to the disk only" in said
    assert "run INSTALL httpfs in DuckDB" in said
    assert set(tmp_path.rglob("*")) == before


# Connections ----------------------------------------------------------------------------------


RANKED = "SELECT id, age, rank() OVER (ORDER BY height) AS height, weight FROM {}"


@pytest.fixture
def urls(request, tmp_path):
    """Function: the growth clinic as the table clinic.visits behind a connection string."""

    def in_duckdb(table):
        path = tmp_path / "store.db"
        with ibis.duckdb.connect(path).con as connection:
            connection.register("arrow", table)
            connection.execute("CREATE SCHEMA clinic")
            connection.execute("CREATE TABLE clinic.visits AS SELECT * FROM arrow")
            connection.execute("CREATE VIEW clinic.ranked AS " + RANKED.format("clinic.visits"))
        return f"duckdb://{path}"

    def in_postgres(table):
        import psycopg

        url = request.getfixturevalue("server")
        with psycopg.connect(url) as connection:
            connection.execute("DROP SCHEMA IF EXISTS clinic CASCADE")
            connection.execute("CREATE SCHEMA clinic")
        _copy_to_postgres(table, url, "clinic.visits")
        with psycopg.connect(url) as connection:
            connection.execute("CREATE VIEW clinic.ranked AS " + RANKED.format("clinic.visits"))
        return url

    def in_spark(table):
        session = request.getfixturevalue("spark")._session
        pq.write_table(table, tmp_path / "t.parquet")
        session.read.parquet(str(tmp_path / "t.parquet")).createOrReplaceTempView("arrow")
        session.sql("CREATE OR REPLACE TEMP VIEW visits AS SELECT * FROM arrow")
        return "pyspark://"

    return {"duckdb": in_duckdb, "postgres": in_postgres, "pyspark": in_spark}[request.param]


@pytest.mark.parametrize("urls", ENGINES, indirect=True)
def test_a_connection_string_and_a_query_give_the_same_model(urls, clinic, counted):
    url = urls(clinic)
    table = "visits" if url == "pyspark://" else "clinic.visits"
    for query in (table, f"SELECT id, age, height, weight FROM {table} WHERE age > -1 ;"):
        assert _fit(url, COUNTS, query=query).sha256 == counted


@pytest.mark.parametrize("urls", ["duckdb", POSTGRES], indirect=True)
@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("nowhere", "does not accept the query"),
        (f"SELECT '{SECRET}' / agee FROM clinic.visits", "does not accept the query"),
        (f"SELECT {SECRET} FROM", "cannot be read as a SELECT"),
        (f"SELECT '{SECRET}' / age", "a SELECT without a table"),
        (f"SELECT * FROM clinic.visits LIMIT {SECRET}", "because of LIMIT"),
        (f"SELECT {SECRET}, * FROM clinic.ranked", "a window (OVER) in the view 'ranked'"),
        ("clinic.ranked", "a window (OVER) in the view 'ranked'"),
    ],
)
def test_a_bad_query_is_explained_without_quoting_it(urls, query, why, clinic):
    assert why in _message(urls(clinic), {"query": query})


OWN = """
CREATE SCHEMA own;
CREATE TABLE own.visits AS SELECT 'p' || g AS id, g % 10 + 0.5::float8 AS t,
    g % 7 / 7.0::float8 AS x, g % 3 || '' AS s, '1'::text AS o FROM generate_series(1, 400) AS g;
CREATE FUNCTION own.mean(float8, int) RETURNS float8
    LANGUAGE sql AS 'SELECT avg(x) FROM own.visits';
CREATE FUNCTION own.mean(text) RETURNS float8
    LANGUAGE sql AS 'SELECT avg(x) FROM own.visits';
CREATE FUNCTION own.mean(text, text) RETURNS float8
    LANGUAGE sql AS 'SELECT avg(x) FROM own.visits';
CREATE FUNCTION own.round(float8, int) RETURNS float8 LANGUAGE sql AS 'SELECT own.mean($1, $2)';
CREATE FUNCTION own.abs(text) RETURNS float8 LANGUAGE sql AS 'SELECT own.mean($1)';
CREATE FUNCTION own.zx(own.visits) RETURNS float8
    LANGUAGE sql AS 'SELECT avg(x) FROM own.visits';
CREATE OPERATOR own.- (LEFTARG = text, RIGHTARG = text, FUNCTION = own.mean);
CREATE OPERATOR own.* (LEFTARG = float8, RIGHTARG = int, FUNCTION = own.mean);
CREATE CAST (text AS float8) WITH FUNCTION own.mean(text);
CREATE DOMAIN own.small AS float8 CHECK (VALUE < 1e9);
CREATE TYPE own.site AS ENUM ('0', '1', '2');
CREATE VIEW own.plain AS SELECT id, t, x FROM own.visits;
CREATE VIEW own.rounded AS SELECT id, t, own.round(x, 2) AS x FROM own.visits;
CREATE VIEW own.nested AS SELECT * FROM own.rounded WHERE t > 1;
CREATE MATERIALIZED VIEW own.stored AS SELECT * FROM own.nested;
CREATE TABLE own.parts (LIKE own.visits) PARTITION BY LIST (s);
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE own.part PARTITION OF own.parts FOR VALUES IN ('0')
    SERVER files OPTIONS (filename '/dev/null');
"""
NOT_BUILT_IN = {
    "function own.round(double precision,integer)": "SELECT id, t, round(x, 2) AS x FROM visits",
    "function own.abs(text)": "SELECT id, t, abs(s) AS x FROM visits",
    "operator own.-(text,text)": "SELECT id, t, s - o AS x FROM visits",
    "operator own.*(double precision,integer)": "SELECT id, t, x * 2 AS x FROM visits",
    "function own.zx(own.visits)": "SELECT id, t, visits.zx AS x FROM visits",
    "function own.mean(text)": "SELECT id, t, CAST(s AS double precision) AS x FROM visits",
    "type own.small": "SELECT id, t, CAST(x AS small) AS x FROM visits",
    "foreign table own.part": "SELECT id, t, x FROM parts",
}


@pytest.fixture(scope="module")
def own(server):
    """Address of a database that defines functions and operators, and finds them."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE house")
    url = server.removesuffix("postgres") + "house"
    with psycopg.connect(url) as connection:
        connection.execute(OWN)
        connection.execute("ALTER DATABASE house SET search_path = own, public")
    return url


@pytest.mark.thorough
@pytest.mark.parametrize("why", NOT_BUILT_IN)
def test_postgres_says_what_is_not_built_in(why, own):
    settings = {"time": "t", "bounds": {"x": (0, 1)}, "time_range": (0, 10)}
    with pytest.raises(InputError, match="may depend on other people, because of ") as refused:
        Snapshots.from_table(own, query=NOT_BUILT_IN[why], **settings)
    said = str(refused.value).replace("own.", "")
    assert f"because of {why.replace('own.', '')}, which is not built into PostgreSQL" in said


@pytest.mark.thorough
@pytest.mark.parametrize("view", ["rounded", "nested", "stored"])
def test_postgres_says_what_its_views_take_from_elsewhere(view, own):
    visits = ibis.connect(own).table("visits")
    doubled = visits.mutate(x=visits.x * ibis.literal(2, "int32"))
    expression = {"rounded": ibis.connect(own).table("rounded"), "nested": doubled}.get(view)
    for source, query in ((own, view), (expression, None)):
        if source is not None:
            with pytest.raises(InputError, match="may depend on other people, because of "):
                Snapshots.from_table(
                    source, query=query, time="t", bounds={"x": (0, 1)}, time_range=(0, 10)
                )


@pytest.mark.thorough
def test_postgres_counts_by_its_own_operators_in_one_transaction(own):
    """Not by those of the house, which fit better; and no view becomes another meanwhile."""
    import psycopg

    settings = {"time": "t", "bounds": {"x": (0, 1)}, "time_range": (0, 10), "bins": 2}
    there = Snapshots.from_table(own, query="plain", **settings)
    table = ibis.connect(own).table("visits").filter(ibis._.t > -1)
    here = Snapshots.from_table(table.to_pyarrow(), **settings)
    for cells in (2, 8):
        mine = here._rows.cell_counts(here.axis.bins, (cells,))
        for rows in (there._rows, Snapshots.from_table(table, **settings)._rows):
            assert isinstance(rows, SqlRows)
            np.testing.assert_array_equal(rows.cell_counts(here.axis.bins, (cells,)), mine)
    with psycopg.connect(own, autocommit=True) as other:
        other.execute("SET lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute(
                "CREATE OR REPLACE VIEW own.plain AS SELECT id, t, x * 2 AS x FROM visits"
            )
        other.execute("DELETE FROM own.visits WHERE id = 'p7'")
    np.testing.assert_array_equal(
        there._rows.cell_counts(there.axis.bins, (8,)), here._rows.cell_counts(here.axis.bins, (8,))
    )


@pytest.mark.parametrize("urls", [SPARK], indirect=True)
def test_spark_refuses_functions_of_the_house_and_temporary_views_of_windows(
    urls, clinic, spark, tmp_path
):
    urls(clinic)
    session = spark._session
    session.udf.register("shift", lambda v: v, "double")
    session.table("visits").selectExpr(
        "id", "age", "weight", "rank() OVER (ORDER BY height) AS height"
    ).createOrReplaceTempView("hidden")
    said = _message("pyspark://", {"query": "SELECT id, age, shift(height) AS height FROM visits"})
    assert "because of the function shift, which this database defines itself" in said
    for source in ("pyspark://", spark.table("hidden")):
        query = {"query": "hidden"} if source == "pyspark://" else {}
        assert "Window in its plan" in _message(source, query)
    session.sql("DROP TEMPORARY FUNCTION shift")
    clinic.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    guessed = session.read.csv(str(tmp_path / "t.csv"), header=True, inferSchema=True)
    guessed.createOrReplaceTempView("guessed")
    for query in ("guessed", f"SELECT * FROM csv.`{tmp_path / 't.csv'}`"):
        assert "a file in place of a table" in _message("pyspark://", {"query": query})


@pytest.mark.parametrize("urls", [SPARK], indirect=True)
def test_spark_says_what_its_views_are(urls, clinic, spark):
    urls(clinic)
    spark._session.sql("CREATE TABLE kept USING parquet AS SELECT * FROM visits")
    spark._session.sql("CREATE VIEW ranked AS " + RANKED.format("kept"))
    for source in ({"query": "ranked"}, {"query": "SELECT * FROM ranked WHERE age > 3"}):
        said = _message("pyspark://", source)
        assert "a window (OVER) in the view 'ranked'" in said
    assert "in the view 'ranked'" in _message(spark.table("ranked"), {})


@pytest.mark.parametrize("urls", ["duckdb", POSTGRES], indirect=True)
def test_an_error_on_the_way_is_explained_without_quoting_data(urls, clinic):
    query = "SELECT 't' || id AS id, CAST('x' || id AS BIGINT) AS t, height AS x, weight AS y "
    said = _message(urls(clinic), {"query": query + "FROM clinic.visits"})
    assert "could not answer a question about the records" in said


@pytest.mark.parametrize("urls", [POSTGRES], indirect=True)
def test_a_wrong_password_is_not_repeated(urls, clinic):
    url = urls(clinic).replace(SECRET, SECRET * 2)
    assert "no connection to 'postgresql://...'" in _message(url, {"query": "clinic.visits"})


CONNECTIONS = {
    "postgres": (
        f"postgresql://clerk:{SECRET}@localhost:1/x",
        "no connection to 'postgresql://...'",
    ),
    "duckdb": (f"duckdb:///nowhere/{SECRET}.db", "no connection to 'duckdb://...'"),
    "unknown": (f"nonsense://{SECRET}", "no connection to 'nonsense://...'"),
    "no scheme": (f"clerk:{SECRET}@host://x", "no connection to 'clerk://...'"),
}


@pytest.mark.parametrize("wrong", CONNECTIONS)
def test_a_failed_connection_is_explained_without_the_password(wrong):
    url, said = CONNECTIONS[wrong]
    assert said in _message(url, {"query": "visits"})
    assert "needs query=" in _message(url, {})


@pytest.mark.parametrize(
    ("source", "package"),
    [
        ("duckdb://", "privtraj[sql]"),
        ("postgresql://host/db", "privtraj[postgres]"),
        ("pyspark://", "privtraj[spark]"),
        ("mysql://host/db", "ibis-framework[mysql]"),
        (None, "privtraj[sql]"),
    ],
)
def test_what_to_install(source, package, tmp_path, monkeypatch):
    options = {} if source is None else {"query": "visits"}
    source = source or str(_pieces(tmp_path, ".csv"))
    monkeypatch.setitem(sys.modules, "ibis", None)
    assert f"pip install '{package}'" in _message(source, options)
    monkeypatch.undo()
    if options:
        monkeypatch.setattr(ibis, "connect", lambda *_, **__: exec("import not_there"))
        assert f"pip install '{package}'" in _message(source, options)


# The command line -----------------------------------------------------------------------------


def _words(data, out, *more):
    bounds = [
        word
        for name, pair in datasets.GROWTH_BOUNDS.items()
        for word in ("--feature", name, *map(str, pair))
    ]
    ages = ["--time-range", *map(str, datasets.GROWTH_TIME_RANGE), "--bins", "5"]
    shape = [word for name, value in COUNTS.items() for word in (f"--{name}", str(value))]
    columns = ["--time", "age", "--person", "id"]
    budget = ["--epsilon", "2", "--delta", "1e-4", "--seed", "3", "--not-private"]
    return ["fit", str(data), *columns, *bounds, *ages, *budget, *shape, "--out", str(out), *more]


@pytest.mark.parametrize("urls", [POSTGRES], indirect=True)
def test_the_command_line_takes_connections_folders_and_patterns(
    urls, clinic, counted, tmp_path, capsys
):
    (tmp_path / "visits").mkdir()
    export_tables.write_table(clinic.slice(0, 100), tmp_path / "visits" / "a.parquet")
    export_tables.write_table(clinic.slice(100), tmp_path / "visits" / "b.parquet")
    url = urls(clinic)
    for data, *more in (
        (tmp_path / "visits",),
        (tmp_path / "visits" / "*.parquet",),
        (url, "--query", "clinic.visits"),
    ):
        out = tmp_path / "m.privtraj"
        assert cli.main([*_words(data, out, *more), "--force"]) == 0
        assert load_model(out).sha256 == counted
        shown = capsys.readouterr()
        assert SECRET not in shown.out + shown.err
    assert cli.main(_words(url, tmp_path / "n.privtraj")) == 2
    assert "needs --query" in capsys.readouterr().err
    words = ["evaluate", str(out), str(tmp_path / "visits"), "--n", "50"]
    assert cli.main(words) == 0
    assert "400 people" in capsys.readouterr().out
