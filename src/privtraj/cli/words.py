"""What was typed and is not understood, said plainly, with what was probably meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches


def unknown_option(typed: str, options: Iterable[str]) -> str:
    """The sentence about an option that a command does not have, or a word too many."""
    if not typed.startswith("-"):
        scheme, sign, _ = typed.partition("://")  # a connection string may hold a password
        shown = f"{scheme}://..." if sign else typed
        return f"'{shown}' is one word too many: put quotes around what has spaces"
    name, known = typed.partition("=")[0], list(options)
    longer = [option for option in known if option.startswith(name)]
    near = longer or get_close_matches(name, known, n=1, cutoff=0.75)
    return f"there is no option {name}" + (f": did you mean {near[0]}?" if near else "")


def unknown_name(what: str, typed: str, names: Collection[str]) -> str:
    """The sentence about a command, say, that does not exist."""
    near = get_close_matches(typed, names, n=1, cutoff=0.75)
    hint = f"did you mean {near[0]}?" if near else f"choose among {', '.join(names)}"
    return f"there is no {what} '{typed}': {hint}"
