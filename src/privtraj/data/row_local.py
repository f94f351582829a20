"""Whether a query computes each of its rows from one row of one table.

The guarantee speaks of people whose rows are their own: one person fewer is that person's rows
fewer, and nothing else changes. `x - avg(x) OVER ()`, a rank, a LIMIT or a join gives others other
rows too, and a count then moves by more than it pays for. So a query is read before it is run:

    row-local  SELECT of expressions of one row FROM one table WHERE a condition on one row,
               ORDER BY, and the same of a WITH, of a nested SELECT in FROM, and of a view

Only what is known to be row-local passes: clauses, operators and functions are listed, and whatever
is not on a list is a reason to refuse. A name says little, as a database may have a round() or a -
of its own, which reads other rows. So the database is asked what it takes the names for (`own`),
and everything that is not built into it is refused. What a table was made of cannot be read from a
query.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from privtraj.base.errors import Arg, InputError


class Unreadable(Exception):
    """A query that cannot be read."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names of classes of sqlglot, as its versions differ in which they have -----------------------

_PLAIN = _words("""
    Alias All Any AtTimeZone Between BitString BitwiseNot Boolean Bracket ByteString Case Cast
    Column Exists Filter HexString Identifier If IgnoreNulls In Interval IntervalSpan JSONPath
    JSONPathKey JSONPathRoot JSONPathSubscript Literal National Neg Not Null Order Ordered Paren
    PropertyEQ RawString RespectNulls Slice Star TableAlias TryCast Tuple Var Where WithinGroup
""")
_FUNCTIONS = _words("""
    Abs Acos Acosh AddMonths Array ArrayAppend ArrayConcat ArrayContains ArrayContainsAll ArrayMax
    ArrayMin ArrayOverlaps ArrayPosition ArrayPrepend ArrayReverse ArraySize ArraySlice ArraySort
    ArraySum ArrayToString Ascii Asin Asinh Atan Atan2 Atanh BitLength BitwiseCount ByteLength
    CastToStrType Cbrt Ceil Chr Coalesce Collate Columns Concat ConcatWs Contains ConvertTimezone
    Cos Cosh Cot Date DateAdd DateBin DateDiff DateFromParts DateFromUnixDate DateStrToDate DateSub
    DateToDateStr DateToDi DateTrunc Datetime DatetimeAdd DatetimeDiff DatetimeSub DatetimeTrunc Day
    DayOfMonth DayOfWeek DayOfWeekIso DayOfYear Dayname DecodeCase Degrees DiToDate EndsWith
    EqualNull Exp Extract Factorial Floor Format FromBase64 FromISO8601Date FromISO8601Timestamp
    Greatest Hex Hour Initcap IsInf IsNan JSONExtract JSONExtractScalar JSONBExtract
    JSONBExtractScalar JSONObject JSONType LastDay Least Left Length Levenshtein Ln Log Lower
    LowerHex MD5 MakeInterval Map MapKeys MapSize Minute Month Monthname MonthsBetween Nanvl
    Negative Nullif NumberToStr Nvl2 Overlay Pad ParseDatetime ParseJSON ParseTime Pi Pow Quarter
    Radians RegexpCount RegexpExtract RegexpFullMatch RegexpILike RegexpInstr RegexpLike
    RegexpReplace RegexpSplit RegexpSubstr Repeat Replace Reverse Right Rint Round SHA SHA2 SafeAdd
    SafeDivide SafeMultiply SafeNegate SafeSubtract Second Sign Sin Sinh Soundex Split SplitPart
    Sqrt StDistance StPoint StartsWith StrPosition StrToDate StrToTime StrToUnix String
    StringToArray Struct StructExtract Substring SubstringIndex Tan Tanh Time TimeAdd TimeDiff
    TimeFromParts TimeStrToDate TimeStrToTime TimeStrToUnix TimeSub TimeToStr TimeToTimeStr
    TimeToUnix TimeTrunc Timestamp TimestampAdd TimestampDiff TimestampFromParts TimestampSub
    TimestampTrunc TimestampTzFromParts ToBase64 ToBoolean ToChar ToDays ToDouble ToNumber Translate
    Trim Trunc Try TsOrDiToDi TsOrDsAdd TsOrDsDiff TsOrDsToDate TsOrDsToDateStr TsOrDsToDatetime
    TsOrDsToTime TsOrDsToTimestamp Typeof Unhex Unicode UnixDate UnixMicros UnixMillis UnixSeconds
    UnixToStr UnixToTime UnixToTimeStr Upper Week WeekOfYear WeekStart WidthBucket Year YearOfWeek
    YearOfWeekIso
""")
_OPERATORS_BY_NAME_ONLY = ("Operator", "Match")  # whatever a database defined under that sign
_SETS = ("Union", "Except", "Intersect", "SetOperation")

# Functions that sqlglot has no class for, by name ---------------------------------------------

_NAMED_FUNCTIONS = _words("""
    array_length bit_count btrim century date_part div element_at epoch epoch_ms epoch_ns epoch_us
    even gamma hash hypot isfinite isinf isnan julian lgamma list_extract list_value make_date
    make_time make_timestamp make_timestamptz map_extract mod monthname nextafter printf signbit
    st_point st_transform st_x st_y strip_accents struct_extract struct_pack to_days to_hours
    to_microseconds to_milliseconds to_minutes to_months to_seconds to_weeks to_years xor
""")
# Table functions that give the rows of a file, or of an object of Python
_READERS = _words("""
    arrow_scan delta_scan iceberg_scan parquet_scan python_arrow_scan read_avro read_csv
    read_ndjson_objects read_parquet sqlite_scan
""")
_EXACT = {"auto_detect": "false", "quote": "''"}  # or read_csv guesses types and ends of rows
_TYPED_FILE = re.compile(r".*[.](parquet|parq|pq)", re.IGNORECASE | re.DOTALL)
# columns that say where a row is stored, beside which others
_NUMBERING = frozenset(["_rowid_", "ctid", "file_row_number", "rowid", "rownum"])
_PLACES = frozenset(["limit", "nrows", "offset", "range", "skip"])  # of rows in a file
_MOMENTS = frozenset(["now", "today", "tomorrow", "yesterday"])  # that databases read as times

# Clauses ---------------------------------------------------------------------------------------

_SELECT = ("with", "expressions", "from", "prewhere", "where", "order")
_TABLE = ("this", "alias", "db", "catalog")
_CLAUSES = {
    "distinct": "DISTINCT",
    "group": "GROUP BY",
    "joins": "a join",
    "laterals": "a join (LATERAL)",
    "pivots": "PIVOT",
    "sample": "a sample of the rows",
    "windows": "a window",
}


@dataclass(frozen=True)
class _Reader:
    """Reads queries of one dialect for reasons why their rows may depend on one another."""

    dialect: Any
    views: Callable[[Any], Iterable[str | None]]
    own: frozenset[str]
    is_table: Callable[[Any], bool]

    def query(self, sql: str, seen: tuple[str, ...] = ()) -> Iterator[str]:
        trees = _parsed(sql, self.dialect)
        yield from own_words(sql, self.own)
        if len(trees) != 1:
            yield "more than one statement"
        for tree in trees:
            made = bool(seen) and _kind(tree) == "Create"  # a view, as DuckDB describes it
            yield from self._rows(tree.expression if made else tree, (*seen, sql))

    def _rows(
        self, node: Any, seen: tuple[str, ...], named: frozenset[str] = frozenset()
    ) -> Iterator[str]:
        """Of what gives rows: a SELECT, plain or in parentheses. named: by a WITH around it."""
        kind = _kind(node)
        if kind in _SETS:
            yield kind.upper()
        elif kind == "Subquery":
            yield from _others(node, ("this", "alias"))
            yield from self._rows(node.this, seen, named)
        elif kind != "Select":
            yield "a statement other than SELECT"
        else:
            yield from _others(node, _SELECT)
            given = _clause(node, "with")
            for cte in [] if given is None else given.expressions:
                yield from _others(cte, ("this", "alias", "materialized"))
                yield from self._rows(cte.this, seen, named)
                named |= {cte.alias}
            if (source := _clause(node, "from")) is None:
                yield "a SELECT without a table"
            else:
                yield from self._source(source.this, seen, named)
            for part in (*node.expressions, *(_clause(node, name) for name in _SELECT[3:])):
                yield from _row_values(part)

    def _source(self, node: Any, seen: tuple[str, ...], named: frozenset[str]) -> Iterator[str]:
        """Of what stands in FROM."""
        if _kind(node) == "Subquery":
            yield from self._rows(node, seen, named)
        elif _kind(node) != "Table":
            yield f"{_word(_kind(node).upper())} in place of a table"
        elif _kind(node.this) != "Identifier":
            yield from _others(node, _TABLE)
            yield from _from_function(node.this)
        else:
            yield from _others(node, _TABLE)
            named_as_file = not re.fullmatch(r"[\w ]+", node.name)
            if named_as_file and not (_TYPED_FILE.fullmatch(node.name) or self.is_table(node)):
                yield "a file in place of a table, whose types are guessed from records"
            view = f"the view '{node.name}'"
            for definition in self.views(node) if node.db or node.name not in named else []:
                if definition is None:
                    yield f"{view}, whose definition you may not read"
                elif definition not in seen:
                    yield from (f"{why} in {view}" for why in self.query(definition, seen))


def check(query: Any, connection: Any, database: str, *what: str | Arg) -> frozenset[str]:
    """Refuse a query whose rows may depend on one another; names of functions that the database
    defines itself.

    what: the query, in words.  database: its name.
    """
    views, own = partial(_views, connection), own_functions(connection)
    try:
        why = reason(query, connection.dialect, views, own, partial(_is_table, connection))
    except Unreadable:
        raise InputError(
            *what,
            f" cannot be read as a SELECT of {database}, so nobody can tell whether its rows "
            "depend on other people: check its SQL, or state that each row is computed from one "
            "row with ",
            Arg("row_by_row", True),
        ) from None
    if why is None and connection.name == "pyspark":
        why = next(_in_plan(connection._session.sql(query)), None)
    refuse(why, *what)
    return own


def refuse(why: str | None, *what: str | Arg) -> None:
    if why is not None:
        raise InputError(
            "rows of ",
            *what,
            f" may depend on other people, because of {why}: compute each row from one row of one "
            "table, or state that it is so with ",
            Arg("row_by_row", True),
        )


def reason(
    sql: str,
    dialect: Any,
    views: Callable[[Any], Iterable[str | None]],
    own: frozenset[str] = frozenset(),
    is_table: Callable[[Any], bool] = lambda node: False,
) -> str | None:
    """What in a query may make a row depend on other rows, in words; None if nothing does.

    views: the definitions of those that a table may mean, None for one that may not be read.
    own: names, in lower case, of functions that the database defines itself, `abs` perhaps.
    is_table: whether what stands in FROM is a table of the database, or else the name of a file.
    Raises `Unreadable` for a query, or a view in it, that sqlglot cannot read.
    """
    try:
        return next(_Reader(dialect, views, own, is_table).query(sql), None)
    except RecursionError:
        raise Unreadable from None


def _parsed(sql: str, dialect: Any) -> list[Any]:
    from sqlglot import parse

    log = logging.getLogger("sqlglot")
    silent, log.disabled = log.disabled, True  # it would quote the query
    try:
        trees = [tree for tree in parse(sql, read=dialect) if tree is not None]
    except Exception:  # of any kind: whatever it stumbles over, it has not read
        trees = []
    finally:
        log.disabled = silent
    if not trees:
        raise Unreadable
    return trees


def _row_values(node: Any) -> Iterator[str]:
    """Of an expression, which must be one of a row."""
    from sqlglot import exp

    if node is None:
        return
    kind = _kind(node)
    if kind in ("Select", "Subquery", *_SETS):
        yield "a subquery outside FROM"
    elif kind == "Window":
        yield "a window (OVER)"
    elif isinstance(node, exp.AggFunc):
        yield f"the aggregate {_name(node)}"
    elif kind == "Pseudocolumn" or (kind == "Column" and node.name.lower() in _NUMBERING):
        yield f"{_word(node.name)}, which numbers the rows of a table"
    elif kind == "Literal" and node.is_string and node.name.strip().lower() in _MOMENTS:
        yield f"'{node.name.strip().lower()}', which may mean the time of the query"
    elif kind == "Dot" and isinstance(node.expression, exp.Func):
        yield f"the function {_name(node.expression)} of a schema or in a chain"
    else:
        known = kind in _PLAIN or kind.startswith("DataType")
        if kind == "Anonymous":
            known = _name(node) in _NAMED_FUNCTIONS
        elif isinstance(node, exp.Binary):
            known |= kind not in _OPERATORS_BY_NAME_ONLY
        elif isinstance(node, exp.Func):
            of_nothing = next(node.iter_expressions(), None) is None  # as date() of today
            known = (kind in _FUNCTIONS or kind in _PLAIN) and (kind == "Pi" or not of_nothing)
        if not known:
            function = isinstance(node, exp.Func)
            what = f"the function {_name(node)}" if function else _word(kind.upper())
            yield f"{what}, which is not known to use one row alone"
        elif kind != "DataType":
            for part in node.iter_expressions():
                yield from _row_values(part)


def _from_function(node: Any) -> Iterator[str]:
    """Of a function in FROM: only those that read a file, from its first row on."""
    from sqlglot import exp

    named = _kind(node) in ("ReadCSV", "ReadParquet") or _name(node) in _READERS
    if not (isinstance(node, exp.Func) and named):
        yield f"the table function {_name(node)}"
        return
    for option in node.find_all(exp.Identifier):
        if option.name.lower() in _NUMBERING:
            yield f"{_word(option.name)}, which numbers the rows of a table"
        if option.name.lower() in _PLACES:
            yield f"{_word(option.name)}, which chooses rows of a file by their place"
    for part in node.iter_expressions():
        yield from _row_values(part)
    if _kind(node) == "ReadCSV" or _name(node) == "read_csv":
        pairs = (part for part in node.iter_expressions() if _kind(part) in ("EQ", "PropertyEQ"))
        given = {pair.this.name.lower(): pair.expression.sql().lower() for pair in pairs}
        if "columns" not in given or any(given.get(k) != v for k, v in _EXACT.items()):
            yield (
                "read_csv, which guesses from records unless it has columns, auto_detect = false "
                "and quote = ''"
            )


def _others(node: Any, known: tuple[str, ...]) -> Iterator[str]:
    """The clauses of a node beside those that are known to be row-local."""
    for key, value in node.args.items():
        name = key.rstrip("_")
        if value and name not in known:
            yield _CLAUSES.get(name, _word(name.upper()))
    given = _clause(node, "with")
    if given is not None and given.args.get("recursive"):
        yield "a recursive WITH"


def _clause(node: Any, name: str) -> Any:
    """A clause by its name, which newer versions of sqlglot end in _ where Python has the word."""
    return node.args.get(name) or node.args.get(f"{name}_")


def _kind(node: Any) -> str:
    return type(node).__name__


def _name(node: Any) -> str:
    """Of a function, as it was written if sqlglot remembers."""
    if _kind(node) == "Anonymous":
        return _word(str(node.this)).lower()
    return _word(str(node.meta.get("name") or node.sql_name())).lower()


def _word(text: str) -> str:
    """A word that can be shown; never a text from a query."""
    return text if re.fullmatch(r"\w{1,40}", text) else "something"


# What a database tells of its views -------------------------------------------------------------


def _views(connection: Any, table: Any) -> list[str | None]:
    """The definitions of the views that a table of a query may mean, where its database tells.

    None for one that may not be read. Spark tells nothing of temporary views.
    """
    name, schema = literal(table.name), literal(table.db)
    if connection.name == "duckdb":  # in which a.b may also be the table b of the database a
        where = f"lower(view_name) = lower({name}) AND NOT internal"
        if table.db:
            where += f" AND lower({schema}) IN (lower(schema_name), lower(database_name))"
        return _first_column(connection, f"SELECT sql FROM duckdb_views() WHERE {where}")
    if connection.name == "postgres":
        where = f" AND lower(schemaname) = lower({schema})" if table.db else ""
        return _first_column(
            connection,
            f"SELECT definition FROM pg_views WHERE lower(viewname) = lower({name}){where} "
            "UNION ALL SELECT definition FROM pg_matviews "
            f"WHERE lower(matviewname) = lower({name}){where}",
        )
    if connection.name == "pyspark":
        full = ".".join(f"`{part.name}`" for part in table.parts)
        with suppress(Exception):  # of a table that is not there, as the query itself will say
            rows = connection.raw_sql(f"DESCRIBE TABLE EXTENDED {full}").collect()
            return [row[1] for row in rows if row[0] == "View Text"]
    return []


def _is_table(connection: Any, table: Any) -> bool:
    """Whether what a query names is a table: DuckDB takes other names for files, Spark what stands
    behind the name of a format."""
    if connection.name != "duckdb":
        return table.db.lower() not in _GUESSED
    names = "SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views()"
    return table.name.lower() in {str(name).lower() for name in _first_column(connection, names)}


# What a database takes the names in a query for ---------------------------------------------------


def own_functions(connection: Any) -> frozenset[str]:
    """Names, in lower case, of functions and operators that are not built in, where the names in a
    query decide: they may come before built-in ones. PostgreSQL is asked by `check_resolved`."""
    names: list[str | None] = []
    if connection.name == "duckdb":
        functions = "SELECT DISTINCT lower(function_name) FROM duckdb_functions()"
        names = _first_column(connection, f"{functions} WHERE NOT internal")
    elif connection.name == "pyspark":
        rows = connection._session.sql("SHOW USER FUNCTIONS").collect()
        names = [row[0].rpartition(".")[2].lower() for row in rows]
    return frozenset(map(str, names))


def own_words(query: str, own: frozenset[str]) -> Iterator[str]:
    """The names of functions of the house in a query."""
    words = set(re.findall(r"\w+", query.lower()))
    for name in sorted(own):
        if name in words or not re.fullmatch(r"\w+", name):
            what = f"the function {name}" if name in words else "an operator"
            yield f"{what}, which this database defines itself"


_DEPENDENCIES = """
    WITH RECURSIVE links(relation, reached) AS (
        SELECT ev_class, refobjid FROM pg_rewrite JOIN pg_depend ON objid = pg_rewrite.oid
        WHERE classid = 'pg_rewrite'::regclass AND refclassid = 'pg_class'::regclass
        UNION ALL SELECT inhparent, inhrelid FROM pg_inherits
    ), used(relation) AS (
        SELECT {view}::regclass::oid UNION SELECT reached FROM used JOIN links USING (relation)
    )
    SELECT pg_describe_object(refclassid, refobjid, 0) FROM used
    JOIN pg_rewrite ON ev_class = relation
    JOIN pg_depend ON classid = 'pg_rewrite'::regclass AND objid = pg_rewrite.oid
    WHERE refclassid NOT IN ('pg_class'::regclass, 'pg_collation'::regclass) AND NOT (
        refclassid = 'pg_type'::regclass
        AND EXISTS (SELECT FROM pg_type WHERE oid = refobjid AND typtype = 'e')
    )
    UNION ALL SELECT pg_describe_object('pg_class'::regclass, relation, 0) FROM used
    JOIN pg_class ON oid = relation WHERE relkind NOT IN ('r', 'p', 'v', 'm')
    UNION ALL SELECT 'row security of ' || pg_describe_object('pg_class'::regclass, relation, 0)
    FROM used WHERE row_security_active(relation)
"""


def check_resolved(view: str, connection: Any, *what: str | Arg) -> None:
    """Refuse a temporary view for which PostgreSQL takes something that is not built in.

    It notes on what the rule of a view depends: functions, operators, casts, types and relations as
    it has resolved them, built-in ones apart. So the views, tables and partitions that are reached
    are gone through; tables elsewhere and row security, which compute when they are asked, are
    refused too. Enumerations are texts, and collations order them.
    """
    for found in _first_column(connection, _DEPENDENCIES.format(view=literal(view))):
        shown = str(found) if re.fullmatch(r"[ -~]{1,100}", str(found)) else "something"
        refuse(f"{shown}, which is not built into PostgreSQL", *what)


_PLAN = _words("""
    Project Filter SubqueryAlias View Sort LogicalRelation LogicalRDD LocalRelation
    HiveTableRelation DataSourceV2Relation
""")
_GUESSED = ("csv", "json", "text", "xml")  # formats of files that may not say what columns are
_BUILT_IN = "org.apache.spark.sql.catalyst.expressions."
_NOT_OF_A_ROW = ("UDF", "Aggregate", "Window", "Subquery", "Generator", "ListQuery")


def _in_plan(frame: Any) -> Iterator[str]:
    """What is not row-local in a query as Spark has resolved it, its temporary views included."""

    def each(parts: Any) -> list[Any]:  # of a sequence of Scala
        return [parts.apply(k) for k in range(parts.size())]

    plans = [frame._jdf.queryExecution().analyzed()]
    while plans:
        plan = plans.pop()
        name = plan.getClass().getSimpleName()
        if name not in _PLAN:
            yield f"{_word(name)} in its plan"
        if name == "LogicalRelation" and plan.relation().toString().lower() in _GUESSED:
            yield "a file in place of a table, whose types may be guessed from records"
        plans += each(plan.children())
        values = each(plan.expressions())
        while values:
            value = values.pop()
            kind = value.getClass().getName()
            if not kind.startswith(_BUILT_IN) or any(word in kind for word in _NOT_OF_A_ROW):
                yield f"{_word(kind.rpartition('.')[2])} in its plan"
            if not value.deterministic():
                yield f"{_word(kind.rpartition('.')[2])}, which changes from one call to the next"
            values += each(value.children())


def _first_column(connection: Any, query: str) -> list[str | None]:
    return [row[0] for row in connection.raw_sql(query).fetchall()]


def literal(text: str) -> str:
    """A text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"
