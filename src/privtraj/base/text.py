"""Names in sentences, numbers in few letters, rows in columns."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

MOST_LISTED = 12  # names in a message


def listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def first_few(names: Sequence[str]) -> str:
    """The first of perhaps many names."""
    more = len(names) - MOST_LISTED
    return listed(names[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def either(names: Iterable[str]) -> str:
    """ "a, b or c"."""
    *rest, last = names
    return f"{', '.join(rest)} or {last}" if rest else last


def free_name(name: str, taken: Container[str]) -> str:
    """The name, with as many underscores behind it as it takes to be the only one."""
    while name in taken:
        name += "_"
    return name


def masked(word: str) -> str:
    """The word; of a connection string, which may hold a password, its beginning."""
    scheme, sign, _ = word.partition("://")
    return f"{scheme}://..." if sign else word


def short(value: float) -> str:
    """1e-5, not 1e-05."""
    return f"{value:g}".replace("e-0", "e-")


_ROUND = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)


def about(people: float) -> str:
    """A number of people that is known within a factor of two or so, without false precision."""
    if people < 1:
        return "0"
    if people < 10:
        return f"{people:.0f}"
    power = 10 ** (len(f"{people:.0f}") - 1)
    return f"{min(_ROUND, key=lambda r: abs(r * power / people - 1)) * power:,.0f}"


def aligned(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """Lines of a table: columns as wide as their widest cell, those named in `right` to the right.

    All rows have the same number of cells; two blanks stand between columns, none at the end.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(_padded(row, widths, right)).rstrip() for row in rows]


def _padded(row: Sequence[str], widths: Sequence[int], right: Container[int]) -> list[str]:
    pairs = enumerate(zip(row, widths, strict=True))
    return [cell.rjust(n) if k in right else cell.ljust(n) for k, (cell, n) in pairs]
