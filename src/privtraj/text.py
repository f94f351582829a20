"""Lists of names in sentences, and tables of text."""

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


def short(value: float) -> str:
    """1e-5, not 1e-05."""
    return f"{value:g}".replace("e-0", "e-")


def aligned(rows: Iterable[Iterable[str]], gap: str = "  ") -> list[str]:
    """Lines of a table: the cells of each column as wide as its widest."""
    cells = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [gap.join(map(str.ljust, row, widths)).rstrip() for row in cells]
