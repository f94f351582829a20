"""Cells of text as numbers and moments in DuckDB: `text_cells`, in SQL, with the same patterns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from privtraj.data.dialect import BLANKS, Dialect
from privtraj.data.text_cells import DATE, EXACT, NUMBER, CellKind

_PARTS = "abcdefgh"  # of a date and a time, in the order of the pattern


def values(table: str, kinds: Mapping[str, CellKind], dialect: Dialect) -> str:
    """The query for the values of cells of a table."""
    parts = (f"{_value(name, kind, dialect)} AS {_quoted(name)}" for name, kind in kinds.items())
    return f"SELECT {', '.join(parts)} FROM {_with_parts(table, kinds, dialect)}"


def unreadable(table: str, kinds: Mapping[str, CellKind], dialect: Dialect) -> str:
    """The query for how many cells of each column are neither missing nor of its kind."""
    parts = (_count(name, kind, dialect) for name, kind in kinds.items())
    return f"SELECT {', '.join(parts)} FROM {_with_parts(table, kinds, dialect)}"


def _with_parts(table: str, kinds: Mapping[str, CellKind], dialect: Dialect) -> str:
    """The table, and the parts of its dates as each form has them: a, b, ... h, empty for none."""
    letters = f"[{_listed(_PARTS)}]"
    found = [
        f"regexp_extract({_trimmed(name, DATE, dialect)}, {_literal(pattern)}, {letters}) "
        f"AS {_parts_of(name, k)}"
        for name, kind in kinds.items()
        for k, (pattern, _) in enumerate(dialect.moments)
        if kind == DATE
    ]
    return f"(SELECT {', '.join(['*', *found])} FROM {table})"


def _parts_of(name: str, k: int) -> str:
    return _quoted(f"{name}\x1f{k}")


def _count(name: str, kind: CellKind, dialect: Dialect) -> str:
    if kind not in (NUMBER, DATE):
        return "0"
    present = f"{_present(name, kind, dialect)} IS NOT NULL"
    return f"count(*) FILTER (WHERE {present} AND {_value(name, kind, dialect)} IS NULL)"


def _value(name: str, kind: CellKind, dialect: Dialect) -> str:
    if kind == NUMBER:
        return _number(_trimmed(name, kind, dialect), dialect)
    if kind != DATE:
        return _present(name, kind, dialect)
    forms = enumerate(places for _, places in dialect.moments)
    moments = (_moment(_parts_of(name, k), places) for k, places in forms)
    return f"coalesce({', '.join(moments)}, NULL::TIMESTAMP)"


def _trimmed(name: str, kind: CellKind, dialect: Dialect) -> str:
    return f"trim({_present(name, kind, dialect)}, {_literal(BLANKS)})"


def _present(name: str, kind: CellKind, dialect: Dialect) -> str:
    """The text, null where it means a missing value."""
    exact = kind.word == EXACT.word
    signs = set(dialect.missing) - kind.values if exact else dialect.signs
    cell = _quoted(name)
    if not signs:
        return cell
    trimmed = cell if exact else f"trim({cell}, {_literal(BLANKS)})"
    return f"CASE WHEN {trimmed} IN ({_listed(sorted(signs))}) THEN NULL ELSE {cell} END"


def _number(text: str, dialect: Dialect) -> str:
    plain = f"replace({text}, {_literal(chr(0x2212))}, '-')"
    number = plain
    if dialect.thousands:
        number = f"regexp_replace({number}, {_literal(dialect.grouping)}, '', 'g')"
    if dialect.decimal != ".":
        number = f"replace({number}, {_literal(dialect.decimal)}, '.')"
    return (
        f"CASE WHEN lower({plain}) = 'true' THEN 1.0::DOUBLE "
        f"WHEN lower({plain}) = 'false' THEN 0.0::DOUBLE "
        f"WHEN regexp_matches({plain}, {_literal(dialect.number)}) "
        f"THEN CAST({number} AS DOUBLE) END"
    )


def _moment(parts: str, places: tuple[int, int, int]) -> str:
    """Null for what is no date, such as the 31st of April."""
    year, month, day = (f"{parts}.{_PARTS[k]}" for k in places)
    hour, minute, second = (f"lpad({parts}.{part}, 2, '0')" for part in "def")
    fraction = f"rpad(substr({parts}.g, 1, 6), 6, '0')"
    date = f"{year} || '-' || {month} || '-' || {day}"
    moment = f"{date} || ' ' || {hour} || ':' || {minute} || ':' || {second} || '.' || {fraction}"
    zone = f"replace(replace({parts}.h, ':', ''), 'Z', '')"
    hours, minutes = (
        f"coalesce(try_cast(substr({zone}, {start}, 2) AS INTEGER), 0)" for start in (2, 4)
    )
    ahead = f"(CASE WHEN {zone} LIKE '-%' THEN -1 ELSE 1 END) * (60 * {hours} + {minutes})"
    return f"(try_cast({moment} AS TIMESTAMP) - to_minutes({ahead}))"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(map(_literal, texts))
