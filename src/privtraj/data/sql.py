"""Records that stay where they are: databases, folders of files, files too large for memory.

Each becomes an Ibis table expression: of a database or a cluster that the user names, or of DuckDB,
embedded, for files. Nothing is read here but names and types of columns.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
import tempfile
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from glob import escape, glob, has_magic
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

from privtraj.base.errors import Arg, InputError
from privtraj.base.formats import TABLES, absent, extra, find_format
from privtraj.data import arrow, detection, row_local, tables
from privtraj.data.dialect import PLAIN, CellKind, Dialect, Readings
from privtraj.data.row_local import literal

LARGE_FILE = 512 * 2**20  # bytes on disk from which a file is not read into memory
BATCH = 1 << 17  # rows that come back at a time
MEMORY_LIMIT = "1GB"  # of DuckDB where it may write to a temporary directory beyond it

_PACKAGES = {
    "duckdb": "privtraj[sql]",
    "postgres": "privtraj[postgres]",
    "postgresql": "privtraj[postgres]",
    "pyspark": "privtraj[spark]",
}
_STAYING = "records that stay where they are"


@dataclass(frozen=True, repr=False)
class RemoteTable:
    """An Ibis table, and the sentence to say when its database fails.

    own: names of functions that its database defines itself, and may take for built-in ones.
    ours: whether the database is a DuckDB of this process, of which nobody else knows.

    The database's own words, errors and warnings, are never passed on: they quote the address, the
    query or the data.
    """

    table: Any
    complaint: str
    own: frozenset[str] = frozenset()
    ours: bool = False

    def with_table(self, table: Any) -> RemoteTable:
        """Another table of the same database."""
        return replace(self, table=table)

    def _asked(self, question: str = "{}") -> tuple[Any, str]:
        """The database, and the SQL of a question about the table; refused where the database takes
        a word of it for a function of its own."""
        backend = self.table.get_backend()
        query = question.format(backend.compile(self.table))
        row_local.refuse(
            next(row_local.own_words(query, self.own), None), "what is asked about the records"
        )
        return backend, query

    def stored(self) -> RemoteTable:
        """The same rows as a table of the database."""
        name = f"privtraj_{secrets.token_hex(6)}"
        with _saying(self.complaint), _silence():
            backend, query = self._asked(f"CREATE TABLE {name} AS {{}}")
            backend.raw_sql(query)
            return self.with_table(backend.table(name))

    def different(self, low: int, high: int) -> int:
        """How many different whole numbers from low to high a column has, alone in a table of
        DuckDB, which sets a bit for each."""
        (name,) = self.table.columns
        bits = f"bitstring_agg(({name} - {low})::BIGINT, 0, {high - low})"
        with _saying(self.complaint):
            backend, query = self._asked(f"SELECT bit_count({bits}) FROM ({{}})")
            ((count,),) = backend.raw_sql(query).fetchall()
            return int(count)

    def read(self) -> pa.Table:
        """All rows, in memory."""
        with _saying(self.complaint):
            return self._reader().read_all()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, so many at a time."""
        with _saying(self.complaint):
            yield from self._reader()

    def _reader(self) -> pa.RecordBatchReader:
        from ibis.expr.operations import AggUDF, InMemoryTable, ScalarUDF

        with _silence():
            backend, query = self._asked()
            if backend.name != "duckdb" or hasattr(backend.con, "fetch_record_batch"):
                return self.table.to_pyarrow_batches(chunk_size=BATCH)
            # DuckDB 2, which Ibis 12 asks by a name that it had in DuckDB 1, and by way of pandas
            if self.table.op().find((AggUDF, InMemoryTable, ScalarUDF)):
                self.table.limit(0).to_pyarrow()  # tells DuckDB about what lives in Python
            return backend.con.sql(query).to_arrow_reader(BATCH)


def read_columns(
    source: Any, columns: Sequence[str], kinds: Mapping[str, CellKind], dialect: Dialect = PLAIN
) -> pa.Table:
    """The named columns in memory, of what `tables.read_columns` reads and of what stays."""
    # nothing is released
    remote = remote_table(source, None, columns, kinds, dialect, row_by_row=True)
    return tables.read_columns(source, columns, kinds, dialect) if remote is None else remote.read()


def remote_table(
    source: Any,
    query: str | None,
    columns: Sequence[str],
    kinds: Mapping[str, CellKind],
    dialect: Dialect = PLAIN,
    *,
    row_by_row: bool = False,
) -> RemoteTable | None:
    """The source as an Ibis table of these columns; None if it is one to read into memory.

    kinds, dialect: of CSV files, as `tables.read_columns` has them; all columns have one.
    row_by_row: somebody states that a query computes each row from one row, so it is not read.
    """
    if isinstance(source, str) and "://" in source:
        return _selected(_connected(source, query, row_by_row), columns)
    _refuse_query(query)
    ibis = sys.modules.get("ibis")  # whoever has an expression has imported it
    if ibis is not None and isinstance(source, ibis.Table):
        return _selected(_of_expression(source, row_by_row), columns)
    files = _files(source) if isinstance(source, str | os.PathLike) else None
    if files is None:
        return None
    return _in_duckdb(files, str(source), {name: kinds[name] for name in columns}, dialect)


def columns_of(source: str | Path, query: str | None) -> list[tuple[str, str]]:
    """Name and kind of the columns of a file, folder, pattern or database.

    Of several files, those of the first.
    """
    if isinstance(source, str):
        remote = _connected(source, query, row_by_row=True)  # no row is read
        with _saying(remote.complaint):
            return arrow.kinds_of(remote.table.schema().to_pyarrow())
    _refuse_query(query)
    return detection.column_kinds(files_of(source)[0])


def files_of(source: Path) -> list[Path]:
    """The files that a file, folder or pattern means."""
    return _files(source) or [source]


def _refuse_query(query: str | None) -> None:
    if query is not None:
        raise InputError(
            Arg("query="),
            " goes with a connection string such as postgresql://host/database: leave it "
            "out, or give one",
        )


def _selected(remote: RemoteTable, columns: Sequence[str]) -> RemoteTable:
    table = remote.table
    places = arrow.places_of(table.columns, columns)
    return remote.with_table(table.select(**{name: table[at] for name, at in places.items()}))


def _failure(database: str) -> str:
    return (
        f"{database} could not answer a question about the records: check that it runs, that you "
        "may read them and that the query selects what it should"
    )


@contextmanager
def _saying(*sentence: str | Arg) -> Iterator[None]:
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        if type(error).__name__ == "OutOfMemoryException":
            raise InputError(
                "DuckDB has too little memory for the records, and writes them to the disk only "
                "encrypted: run INSTALL httpfs in DuckDB, which brings the cipher, or use a "
                "machine with more memory"
            ) from None
        raise InputError(*sentence) from None


@contextmanager
def _silence() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# Databases ------------------------------------------------------------------------------------


def _connected(url: str, query: str | None, row_by_row: bool) -> RemoteTable:
    if query is None or not query.strip():
        raise InputError(
            "a connection string needs ",
            Arg("query="),
            ", which is a SELECT or the name of a table",
        )
    scheme = re.split(r"\W", url)[0]
    connection = _connection(url, scheme)
    query = query.strip().rstrip(";")
    what = ("the query (", Arg("query="), ")")
    names = query.split(".") if re.fullmatch(r"\w+(\.\w+){0,2}", query) else []
    if names:
        from sqlglot import exp

        parts: list[Any] = [exp.to_identifier(name, quoted=True) for name in reversed(names)]
        query = exp.select("*").from_(exp.table_(*parts)).sql(connection.dialect)
    if not row_by_row:
        with _saying(_failure(scheme)), _silence():
            row_local.check(query, connection.dialect, connection, scheme, *what)
    with _saying(
        f"{scheme} does not accept the query (",
        Arg("query="),
        "): check its SQL and the names in it, and that you may read what it selects",
    ):
        if connection.name == "postgres":
            table = _resolved(connection, query, row_by_row, *what)
        elif connection.name not in ("duckdb", "pyspark"):
            table = connection.sql(query)
        else:  # Ibis 12 finds columns by statements that new DuckDB and sqlglot do not take
            table = connection.table(_view(connection, query))
    own = frozenset() if row_by_row else row_local.own_functions(connection)
    return RemoteTable(table, _failure(scheme), own)


def _of_expression(source: Any, row_by_row: bool) -> RemoteTable:
    """An Ibis table; of PostgreSQL by a connection of our own, for a transaction of our own."""
    try:
        name = str(source.get_backend().name)
    except Exception:
        name = "the database of the table"
    with _saying(_failure(name)), _silence():
        backend, own = source.get_backend(), frozenset[str]()
        if not row_by_row:
            query = backend.compile(source)
            row_local.check(query, backend.dialect, backend, name, "the Ibis table")
            own = row_local.own_functions(backend)
        if name == "postgres" and not row_by_row:
            import psycopg

            info = backend.con.info
            mine = psycopg.connect(info.dsn, password=info.password or None, autocommit=True)
            ((path,),) = backend.raw_sql("SHOW search_path").fetchall()
            mine.execute("SELECT set_config('search_path', %s, false)", [path])
            connection = type(backend).from_connection(mine)
            source = _resolved(connection, query, row_by_row, "the Ibis table")
    return RemoteTable(source, _failure(name), own)


def _resolved(connection: Any, query: str, row_by_row: bool, *what: str | Arg) -> Any:
    """A query of PostgreSQL, after a look at what it takes the names in it for.

    The look and all questions are one transaction, which sees the records of one moment, and locks
    what the query names against other definitions. Then only built-in functions and operators are
    found: those that count, too, are PostgreSQL's own.
    """
    connection.raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ")
    view = _view(connection, query)
    connection.raw_sql(f"SELECT FROM {view} LIMIT 0")  # locks what is reached through views
    if not row_by_row:
        row_local.check_resolved(view, connection, *what)
    table = connection.table(view)
    connection.raw_sql("SET LOCAL search_path = pg_catalog")
    return table


def _connection(url: str, scheme: str) -> Any:
    package = _PACKAGES.get(scheme, f"ibis-framework[{scheme}]")
    ibis = extra("ibis", _STAYING, package)
    try:
        if scheme != "duckdb":
            return ibis.connect(url)
        # A file is only read, so that one that is not there is an error; memory has to be written.
        in_memory = url.removeprefix("duckdb://").split("?")[0] in ("", ":memory:")
        return _frugal(ibis.connect(url, **({} if in_memory else {"read_only": True})))
    except ImportError:
        raise absent(f"the driver of {scheme}", _STAYING, package) from None
    except Exception:
        raise InputError(
            f"there is no connection to '{scheme}://...': check the address, the user and the "
            "password, and that the server runs"
        ) from None


# Files ----------------------------------------------------------------------------------------


def _files(source: str | os.PathLike[str]) -> list[Path] | None:
    """The files of a folder, of a pattern, or a large file; None for a file to be read at once."""
    path = Path(source)
    if path.is_dir():
        # A dot or an underscore begins what is hidden, or what a cluster writes beside its data.
        inside = {file: file.relative_to(path).parts for file in path.rglob("*")}
        there = [file for file, parts in inside.items() if not any(p[0] in "._" for p in parts)]
        where = f"the folder '{path}'"
    elif has_magic(str(source)) and not path.exists():
        there, where = list(map(Path, glob(str(source), recursive=True))), f"'{path}'"
    else:
        large = path.is_file() and path.stat().st_size > LARGE_FILE
        installed = all(find_spec(package) for package in ("ibis", "duckdb"))
        return [path] if large and installed and _kind(path) in ("csv", "parquet") else None
    files = sorted(file for file in there if file.is_file() and _kind(file) in ("csv", "parquet"))
    if not files:
        raise InputError(f"there is no CSV or Parquet file in {where}: check the path")
    if len({_kind(file) for file in files}) > 1:
        raise InputError(
            f"there are CSV and Parquet files in {where}: give a pattern such as "
            "'visits/*.parquet' that takes one kind"
        )
    return files


def _kind(path: Path) -> str:
    """The name of its format, or "" if no table has it."""
    known = find_format(path, TABLES)
    return known.name if known else ""


def _in_duckdb(
    files: list[Path], source: str, kinds: Mapping[str, CellKind], dialect: Dialect
) -> RemoteTable:
    ibis, _ = (extra(module, _STAYING, _PACKAGES["duckdb"]) for module in ("ibis", "duckdb"))
    places = []
    for path in files:  # each by itself, because DuckDB would fill in columns that one lacks
        with tables.reader_of(path, dialect) as reader:
            places.append(reader.check(list(kinds)))
    if any(found != places[0] for found in places):
        raise InputError(
            f"the files of '{source}' name columns with different units: make them the same"
        )
    kind = _kind(files[0])
    what = f"the file '{source}'" if len(files) == 1 else f"'{source}'"
    complaint = tables.unreadable(what, kind)
    with _saying(complaint):
        connection = _frugal(ibis.duckdb.connect())
        if kind == "csv":
            _copy(files, kinds, dialect, connection.con)
            return RemoteTable(connection.table("records"), complaint, ours=True)
        names = [escape(str(path)) for path in files]  # DuckDB takes them for patterns
        table = connection.read_parquet(names, union_by_name=True)
        return _selected(RemoteTable(table, complaint, ours=True), list(kinds))


def _copy(
    files: Sequence[Path], kinds: Mapping[str, CellKind], dialect: Dialect, connection: Any
) -> None:
    """Rows of CSV files into a table of DuckDB, read and refused as they are in memory, by the very
    same code: once, as text takes longer to read than to count."""
    columns = {name: Readings(name, kind, dialect) for name, kind in kinds.items()}

    def batches() -> Iterator[pa.RecordBatch]:
        for path in files:
            with tables.reader_of(path, dialect) as reader:
                yield from reader.batches(columns)

    for k, batch in enumerate(batches()):
        connection.register("batch", batch)
        into = "INSERT INTO records" if k else "CREATE TABLE records AS"
        connection.execute(f"{into} SELECT * FROM batch")
        connection.unregister("batch")
    for column in columns.values():
        column.check()


def _view(connection: Any, query: str) -> str:
    name = f"privtraj_{secrets.token_hex(6)}"
    connection.raw_sql(f"CREATE TEMPORARY VIEW {name} AS {query}")
    return name


def _frugal(connection: Any) -> Any:
    """A DuckDB that writes no record to the disk in the clear.

    It keeps to a limit of memory and writes what exceeds it to a directory of its own, encrypted
    and removed when it is closed. The cipher for that comes with its extension httpfs, which is
    loaded if it is installed and never fetched. Without it, or in versions that do not encrypt,
    nothing is written at all and memory is all there is. (The cipher that is built in is for
    reading: DuckDB calls writing with it unsafe, as its keys are not random enough.)
    """
    try:
        connection.raw_sql("LOAD httpfs")
        connection.raw_sql("SET temp_file_encryption = true")
    except Exception:
        connection.raw_sql("SET temp_directory = ''")
        return connection
    directory = tempfile.TemporaryDirectory(prefix="privtraj-")
    weakref.finalize(connection, directory.cleanup)
    connection.raw_sql(f"SET memory_limit = '{MEMORY_LIMIT}'")
    connection.raw_sql(f"SET temp_directory = {literal(directory.name)}")
    return connection
