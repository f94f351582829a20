"""Lists of names in sentences."""

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
