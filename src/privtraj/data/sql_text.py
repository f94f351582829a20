"""Cells of text as numbers and moments in DuckDB: `text_cells`, in SQL, with the same patterns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from privtraj.data.dialect import BLANKS, Dialect
from privtraj.data.text_cells import DATE, EXACT, NUMBER, CellKind

_PARTS = "abcdefgh"  # of a date and a time, in the order of the pattern
_MINUS = "\u2212"  # of typesetters


def values(table: str, kinds: Mapping[str, CellKind], dialect: Dialect) -> str:
    """The query for the values of cells of a table, null where missing or unreadable."""
    parts = [f"{_value(name, kind, dialect)} AS {_quoted(name)}" for name, kind in kinds.items()]
    return f"SELECT {', '.join(parts)} FROM {_prepared(table, kinds, dialect)}"


def unreadable(table: str, kinds: Mapping[str, CellKind], dialect: Dialect) -> str:
    """The query for how many cells of each column are neither missing nor of its kind."""
    counts = [
        f"count({_quoted(name)}) - count({_value(name, kind, dialect)})"
        for name, kind in kinds.items()
    ]
    return f"SELECT {', '.join(counts)} FROM {_prepared(table, kinds, dialect)}"


def _prepared(table: str, kinds: Mapping[str, CellKind], dialect: Dialect) -> str:
    """The texts, null where they mean a missing value, and the parts of dates in each form."""
    texts = [f"{_present(name, kind, dialect)} AS {_quoted(name)}" for name, kind in kinds.items()]
    letters = f"[{_listed(_PARTS)}]"
    dates = [
        f"regexp_extract({_quoted(name)}, {_literal(pattern)}, {letters}) AS {_parts_of(name, k)}"
        for name, kind in kinds.items()
        for k, (pattern, _) in enumerate(dialect.moments)
        if kind == DATE
    ]
    texts_alone = f"(SELECT {', '.join(texts)} FROM {table})"
    return f"(SELECT {', '.join(['*', *dates])} FROM {texts_alone})"


def _present(name: str, kind: CellKind, dialect: Dialect) -> str:
    """The text, without blanks around a number or a date; null where it means a missing value."""
    exact = kind.word == EXACT.word
    signs = set(dialect.missing) - kind.values if exact else dialect.signs
    cell = _quoted(name)
    if not signs:
        return cell
    trimmed = cell if exact else f"trim({cell}, {_literal(BLANKS)})"
    shown = cell if kind not in (NUMBER, DATE) else trimmed
    if kind == NUMBER:
        shown = f"replace({shown}, {_literal(_MINUS)}, '-')"
    return f"CASE WHEN {trimmed} NOT IN ({_listed(sorted(signs))}) THEN {shown} END"


def _value(name: str, kind: CellKind, dialect: Dialect) -> str:
    if kind == NUMBER:
        return _number(_quoted(name), dialect)
    if kind != DATE:
        return _quoted(name)
    forms = enumerate(places for _, places in dialect.moments)
    moments = (_moment(_parts_of(name, k), places) for k, places in forms)
    return f"coalesce({', '.join(moments)}, NULL::TIMESTAMP)"


def _number(text: str, dialect: Dialect) -> str:
    number = text
    if dialect.thousands:
        number = f"regexp_replace({number}, {_literal(dialect.grouping)}, '', 'g')"
    if dialect.decimal != ".":
        number = f"replace({number}, {_literal(dialect.decimal)}, '.')"
    return (
        f"CASE WHEN regexp_matches({text}, {_literal(dialect.number)}) THEN {number}::DOUBLE "
        f"WHEN lower({text}) = 'true' THEN 1 WHEN lower({text}) = 'false' THEN 0 END"
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


def _parts_of(name: str, k: int) -> str:
    return _quoted(f"{name}\x1f{k}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(map(_literal, texts))
