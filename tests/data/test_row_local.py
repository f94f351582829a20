"""Queries are read before they are run: each row must be computed from one row of one table.

`hostile_queries.txt` has queries that are not, with the reason that must be named, and
`harmless_queries.txt` those that must pass. DuckDB runs all of them for real, on tables with and
without one person.
"""

import os
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ibis import _

from privtraj import cli
from privtraj.base.errors import InputError
from privtraj.data import row_local, sql
from privtraj.data.snapshots import ROW_BY_ROW, Snapshots
from privtraj.export import tables as export_tables
from privtraj.model.model import load as load_model
from privtraj.privacy.certificate import STATED

PEOPLE = 60
LEFT_OUT, RECORDS = "p7", 2  # the person who is missing next door, and how many records they have
COLUMNS = {"time": "t", "bounds": {"x": (0, 1)}, "time_range": (0, 9), "bins": 3}


def _lines(name):
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


HOSTILE = [tuple(line.split(" | ", 1)) for line in _lines("hostile_queries.txt")]
NO_SELECT = ("a statement other than SELECT", "more than one statement")
RUNNABLE = [query for why, query in HOSTILE if why not in NO_SELECT]
HARMLESS = _lines("harmless_queries.txt")


def test_there_are_enough_queries():
    assert len(set(HOSTILE)) == len(HOSTILE) >= 100
    assert len(set(HARMLESS)) == len(HARMLESS) >= 30


# Two houses that differ by one person ---------------------------------------------------------


def _visits():
    rng = np.random.default_rng(0)
    n = PEOPLE + 20  # the first people come twice
    days = np.datetime64("2020-01-01T08:00", "us") + rng.integers(0, 10**12, n)
    return pa.table(
        {
            "id": [f"p{k % PEOPLE}" for k in range(n)],
            "t": rng.uniform(0, 9, n).round(2),
            "x": rng.uniform(0, 1, n).round(3),
            "y": rng.normal(0, 1, n).round(3),
            "s": rng.choice(["a", "b", "c"], n),
            "d": days,
            "l": [[float(k), 1.0] for k in range(n)],
            "r": [{"a": float(k)} for k in range(n)],
            "n": [None if k % 5 == 0 else k for k in range(n)],
        }
    )


def _house(folder, table):
    flat = table.drop_columns(["l", "r"])
    export_tables.write_table(flat, folder / "visits.csv")
    export_tables.write_table(flat, folder / "visits.parquet")
    with duckdb.connect(folder / "store.db") as connection:
        connection.register("arrow", table)
        for statement in (
            "CREATE TABLE visits AS SELECT * FROM arrow",
            "CREATE TABLE sites AS SELECT unnest(['a', 'b']) AS site, unnest([0.25, 0.75]) AS z",
            "CREATE SEQUENCE numbers",
            "CREATE MACRO centred() AS TABLE SELECT id, t, x - avg(x) OVER () AS x FROM visits",
            "CREATE MACRO cot(v) AS v - (SELECT avg(x) FROM visits)",
            "CREATE MACRO centre(v) AS v - (SELECT avg(x) FROM visits)",
            "CREATE SCHEMA clinic",
            "CREATE VIEW zscored AS SELECT id, t, x - avg(x) OVER () AS x FROM visits",
            "CREATE VIEW clinic.kept AS SELECT * FROM zscored WHERE t > 1",
            "CREATE VIEW half AS SELECT * FROM visits USING SAMPLE 50%",
            "CREATE VIEW clinic.few AS SELECT * FROM visits LIMIT 20",
            "CREATE VIEW plain AS SELECT id, t, x + 1 AS x FROM visits WHERE x > 0.2",
            "CREATE VIEW clinic.simple AS SELECT * FROM plain",
        ):
            connection.execute(statement)
    return folder


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    table = _visits()
    others = table.filter(pa.array([who != LEFT_OUT for who in table["id"].to_pylist()]))
    assert table.num_rows - others.num_rows == RECORDS
    return [_house(tmp_path_factory.mktemp("house"), each) for each in (table, others)]


@pytest.fixture(scope="module")
def opened(houses):
    """A connection to each, opened once."""
    connections = [ibis.duckdb.connect(house / "store.db", read_only=True) for house in houses]
    yield dict(zip(houses, connections, strict=True))
    for connection in connections:
        connection.disconnect()


@pytest.fixture
def house(houses, opened, monkeypatch):
    """The address of the first."""
    monkeypatch.chdir(houses[0])
    monkeypatch.setattr(sql, "_connection", lambda url, scheme: opened[houses[0]])
    return f"duckdb://{houses[0] / 'store.db'}"


def _rows(house, connection, query):
    """The rows of a query, counted."""
    named = query if " " in query else f"SELECT * FROM {query}"
    back = Path.cwd()
    os.chdir(house)  # for the files that queries name
    try:
        return Counter(map(repr, connection.raw_sql(named).fetchall()))
    finally:
        os.chdir(back)


def _moved(opened, query):
    """How many rows one person's absence takes away or adds."""
    here, there = (_rows(*house, query) for house in opened.items())
    return ((here - there) + (there - here)).total()


# The tables of queries ------------------------------------------------------------------------


@pytest.mark.parametrize(("why", "query"), HOSTILE)
def test_a_hostile_query_is_refused_and_the_reason_named(why, query, house):
    with pytest.raises(InputError) as refused:
        Snapshots.from_table(house, query=query, **COLUMNS)
    said = str(refused.value)
    assert f"may depend on other people, because of {why}" in said
    assert said.endswith("or state that it is so with row_by_row=True")
    assert len(said) <= 300


def test_duckdb_would_have_run_them_and_many_move_more_than_the_person_has(opened):
    moved = {query: _moved(opened, query) for query in RUNNABLE if "nextval" not in query}
    assert sum(rows > RECORDS for rows in moved.values()) >= 40
    assert moved["SELECT id, t, x - avg(x) OVER () AS x FROM visits"] > PEOPLE


@pytest.mark.parametrize("query", HARMLESS)
def test_a_harmless_query_passes_and_one_person_moves_their_own_rows_only(query, opened, house):
    assert sql.remote_table(house, query, ["x"], {}).table.count().execute() > 0
    assert _moved(opened, query) <= RECORDS


def test_nothing_of_duckdb_passes_that_uses_other_rows_or_changes_from_call_to_call():
    """All that it has itself, by its own catalogue: aggregates, functions of tables, random()."""
    catalogue = duckdb.sql(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name != 'repeat' AND "
        "(function_type NOT IN ('scalar', 'macro') OR stability NOT IN ('CONSISTENT'))"
    ).fetchall()  # repeat(text, n) is built in beside a function of tables
    assert len(catalogue) > 200
    passed = []
    for (name,) in catalogue:
        for values in ("", "x", "x, y", "x, y, z"):
            with suppress(row_local.Unreadable):
                query = f"SELECT {name}({values}) FROM visits"
                if row_local.reason(query, "duckdb", lambda table: []) is None:
                    passed.append(query)
    assert passed == []


def test_a_query_that_cannot_be_read_is_refused(house, capfd):
    deep = "SELECT " + "(" * 1000 + "x" + ")" * 1000 + " FROM visits"
    long = "SELECT " + "x + " * 5000 + "x FROM visits"
    for query in ("SELEKT x FROM visits", "SELECT x FROM visits WHERE ((", "--", deep, long):
        with pytest.raises(InputError, match="cannot be read as a SELECT of duckdb"):
            Snapshots.from_table(house, query=query, **COLUMNS)
    assert capfd.readouterr() == ("", "")


PIECES = ["SELECT", "FROM", "visits", "x", "OVER", "WHERE", "LIMIT", "WITH", "AS", "JOIN", "CASE"]
PIECES += [*"()[]{},*+;'.:?@%1\\\0é\"", "--", "/*", "*/", "$$", "avg", "END", "NULL", "IN", "BY"]


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(st.sampled_from(PIECES), max_size=25))
def test_whatever_text_is_answered(words):
    for dialect in ("duckdb", "postgres"):
        try:
            why = row_local.reason(" ".join(words), dialect, lambda table: ())
        except row_local.Unreadable:
            continue
        assert why is None or isinstance(why, str)


def test_a_backend_without_sql_is_answered():
    pytest.importorskip("polars")
    table = ibis.polars.connect({"visits": _visits().drop_columns(["l", "r"])}).table("visits")
    with pytest.raises(InputError, match="the Ibis table cannot be read as a SELECT of polars"):
        Snapshots.from_table(table, **COLUMNS)


@pytest.mark.parametrize(
    ("why", "query"),
    [
        (
            "read_csv, which",
            "FROM read_csv('v.csv', columns = {'quote': '', 'auto_detect': 'false'})",
        ),
        ("a file in place of a table", "SELECT id, t, x FROM './visits.json'"),
        ("the table function read_json", "SELECT id, t, x FROM read_json('visits.json')"),
        ("the table function read_xlsx", "SELECT id, t, x FROM read_xlsx('visits.xlsx')"),
        ("the table function postgres_scan", "FROM postgres_scan('', 'public', 'zscored')"),
    ],
)
def test_files_that_are_guessed_at_are_refused(why, query):
    assert row_local.reason(query, "duckdb", lambda table: ()).startswith(why)


@pytest.mark.parametrize(
    ("macro", "query", "why"),
    [
        ('"+"(a, b)', "SELECT id, t, x + 0.1 AS x FROM visits", "an operator, which this database"),
        ('"-"(a, b)', "SELECT id, t, x FROM visits", "an operator, which this database defines"),
        ("floor(v)", "SELECT id, t, floor(x) AS x FROM visits", "the function floor, which this"),
        ("floor(v)", "SELECT id, t, x FROM visits", "the function floor, which this database"),
        ("isnan(v)", "visits", "the function isnan, which this database defines itself"),
    ],
)
def test_functions_and_operators_of_the_house_neither_select_nor_count(macro, query, why, tmp_path):
    """DuckDB takes those of the house first, also where we ask it to count."""
    with duckdb.connect(tmp_path / "own.db") as connection:
        connection.register("arrow", _visits().drop_columns(["l", "r"]))
        connection.execute("CREATE TABLE visits AS SELECT * FROM arrow")
        connection.execute(f"CREATE MACRO {macro} AS (SELECT avg(x) > 0 FROM visits)")

    def counted():
        source = Snapshots.from_table(f"duckdb://{tmp_path / 'own.db'}", query=query, **COLUMNS)
        return source._rows.cell_counts(source.axis.bins, (4,))

    with pytest.raises(InputError, match="may depend on other people, because of " + why):
        counted()


# Any query ------------------------------------------------------------------------------------

LEAVES = [
    "x",
    "y",
    "t",
    "n",
    "0.5",
    "2",
    "length(s)",
    "epoch(d)",
    "l[1]",
    "r.a",
    "extract(day FROM d)",
]
SHAPES = [
    "({0} + {1})",
    "({0} * {1})",
    "abs({0} - {1})",
    "CASE WHEN {0} > {1} THEN {0} ELSE 1 END",
    "coalesce({0}, {1})",
    "greatest({0}, {1})",
    "nullif({0}, {1})",
    "round({0}::DOUBLE, 1)",
    "TRY_CAST({0} AS INTEGER)",
]
TRAPS = [
    "avg({0}) OVER ()",
    "rank() OVER (ORDER BY {0})",
    "max({0})",
    "mad({0})",
    "random()",
    "(SELECT max({0}) FROM visits)",
    "rowid",
]
TAILS = [
    "",
    "",
    "ORDER BY 3",
    "LIMIT 5",
    "GROUP BY ALL",
    "USING SAMPLE 5",
    "QUALIFY count(*) OVER () > 1",
]

values = st.recursive(
    st.sampled_from(LEAVES),
    lambda part: st.builds(
        lambda shape, a, b: shape.format(a, b), st.sampled_from(SHAPES * 3 + TRAPS), part, part
    ),
    max_leaves=5,
)
sources = st.sampled_from(
    ["visits"] * 4
    + ["zscored", "plain", "(FROM visits)", "visits AS v, sites", "(FROM visits LIMIT 9)"]
)
queries = st.builds(
    "SELECT {5} id, t, {0} AS x FROM {1} WHERE {2} > {3} {4}".format,
    values,
    sources,
    values,
    values,
    st.sampled_from(TAILS),
    st.sampled_from(["", "", "", "DISTINCT"]),
)


@pytest.mark.slow
@settings(max_examples=250)
@given(query=queries)
def test_whatever_passes_is_moved_by_a_person_s_own_rows_only(opened, query):
    house, connection = next(iter(opened.items()))
    if row_local.reason(query, "duckdb", partial(row_local._views, connection)):
        return
    try:
        moved = _moved(opened, query)
    except duckdb.Error:  # a column that a source does not have
        return
    assert moved <= RECORDS
    assert _rows(house, connection, query) == _rows(house, connection, query)


# Expressions of Ibis --------------------------------------------------------------------------

EXPRESSIONS = {
    "a window (OVER)": [
        lambda t: t.mutate(x=_.x - _.x.mean()),
        lambda t: t.mutate(x=_.x.percent_rank()),
        lambda t: t.mutate(t=ibis.row_number()),
        lambda t: t.mutate(x=_.x.lag()),
        lambda t: t.mutate(x=_.x.cumsum()).filter(_.x > 0),
    ],
    "LIMIT": [lambda t: t.limit(20), lambda t: t[3:20], lambda t: t.limit(20).mutate(x=_.x + 1)],
    "a sample of the rows": [lambda t: t.sample(0.5)],
    "GROUP BY": [lambda t: t.group_by("id").aggregate(t=_.t.mean(), x=_.x.mean())],
    "DISTINCT": [lambda t: t.select("id", "t", "x").distinct()],
    "a join": [lambda t: t.join(t.view(), "id")],
    "UNION": [lambda t: t.union(t)],
    "a subquery outside FROM": [lambda t: t.filter(_.x > t.x.mean())],
    "the function rand,": [lambda t: t.mutate(x=_.x + ibis.random())],
    "the function current_timestamp,": [lambda t: t.mutate(t=ibis.now().epoch_seconds())],
    "rowid, which numbers": [lambda t: t.mutate(t=_.rowid())],
    "the function explode": [lambda t: t.mutate(x=_.l.unnest())],
    "a window (OVER) in the view 'zscored'": [lambda t: t.get_backend().table("zscored")],
}
PASSING = [
    lambda t: t,
    lambda t: t.filter(_.x > 0.1).mutate(x=_.x.log().abs() / 3, t=_.t + 1),
    lambda t: t.mutate(x=ibis.cases((_.s == "a", _.x), else_=_.y)).select("id", "t", "x"),
    lambda t: t.mutate(t=_.d.epoch_seconds(), x=_.n.fill_null(0)).order_by("x"),
    lambda t: t.drop_null().rename(z="y").mutate(x=_.x.clip(0.1, 0.9).round(1).cast("float32")),
    lambda t: ibis.memtable(t.select("t", "x").to_pandas()).mutate(x=_.x + 1),
    lambda t: t.get_backend().read_parquet("visits.parquet").filter(_.x > 0),
    lambda t: t.get_backend().table("plain"),
]


@pytest.fixture
def table(house, houses, opened):
    return opened[houses[0]].table("visits")


@pytest.mark.parametrize(
    ("why", "make"), [(why, make) for why, some in EXPRESSIONS.items() for make in some]
)
def test_a_hostile_expression_is_refused_and_the_reason_named(why, make, table):
    with pytest.raises(InputError) as refused:
        Snapshots.from_table(make(table), **COLUMNS)
    assert f"rows of the Ibis table may depend on other people, because of {why}" in str(
        refused.value
    )


@pytest.mark.parametrize("make", PASSING)
def test_a_harmless_expression_passes(make, table):
    Snapshots.from_table(make(table), **COLUMNS, missing="drop")


# The steward's word ---------------------------------------------------------------------------

JOINED = "SELECT id, t, x + 0 * z AS x FROM visits LEFT JOIN sites ON s = site"


def test_the_steward_can_state_that_rows_are_computed_one_by_one(house, table):
    for source in ({"query": JOINED}, {"query": "zscored"}, {"query": "FROM visits LIMIT 40"}):
        snapshots = Snapshots.from_table(
            house, **source, **COLUMNS, missing="drop", row_by_row=True
        )
        assert ROW_BY_ROW in snapshots.public_inputs()[STATED]
    Snapshots.from_table(table.limit(40), **COLUMNS, row_by_row=True)
    plain = Snapshots.from_table(table, **COLUMNS).public_inputs()
    assert ROW_BY_ROW not in plain.get(STATED, [])
    with pytest.raises(InputError, match="does not accept the query"):
        Snapshots.from_table(house, query="SELEKT", **COLUMNS, row_by_row=True)


@pytest.mark.slow
@pytest.mark.parametrize("given_by", ["option", "configuration"])
def test_the_statement_is_on_the_certificate(given_by, house, tmp_path, capsys):
    words = ["fit", house, "--query", JOINED, "--time", "t", "--feature", "x", "0", "1"]
    words += ["--time-range", "0", "9", "--bins", "5", "--epsilon", "1", "--delta", "1e-5"]
    words += ["--missing", "drop", "--cells", "6", "--particles", "24"]
    words += ["--out", str(tmp_path / "m.privtraj")]
    assert cli.main(words) == 2
    assert "or state that it is so with --row-by-row" in capsys.readouterr().err
    if given_by == "option":
        words += ["--row-by-row"]
    else:
        (tmp_path / "fit.toml").write_text("row_by_row = true\n")
        words += ["--config", str(tmp_path / "fit.toml")]
    assert cli.main(words) == 0
    said = f"Stated by the steward, and not checked: {ROW_BY_ROW}."
    assert said in capsys.readouterr().out
    certificate = load_model(tmp_path / "m.privtraj").certificate
    assert said in str(certificate)
    assert STATED not in str(certificate).split("Taken as public")[1].splitlines()[0]


@pytest.mark.parametrize(
    "dialect", ["postgres", "spark", "mysql", "sqlite", "bigquery", "snowflake"]
)
def test_other_dialects_are_read_by_the_same_rule(dialect):
    def why(query):
        return row_local.reason(query, dialect, lambda table: ())

    assert (
        why("SELECT id, t, CASE WHEN x > 1 THEN ln(x) ELSE 0 END AS x FROM v WHERE x < 9") is None
    )
    assert why("SELECT x - avg(x) OVER () FROM v") == "a window (OVER)"
    assert why("SELECT x FROM v LIMIT 3") == "LIMIT"
    assert "not known" in why("SELECT x FROM v WHERE x < current_timestamp")
    assert "'now', which may mean" in why("SELECT x FROM v WHERE d < CAST('now' AS TIMESTAMP)")
    assert "'today', which may mean" in why("SELECT x FROM v WHERE d < ' Today '")
