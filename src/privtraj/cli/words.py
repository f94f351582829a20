"""What was typed and is not understood, said plainly, with what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches

# What argparse says, and what we say: an option is named as it is typed, and called an option.
_SAID = (
    (r"^argument (\S+): (?=must )", r"\1 "),
    (
        r"^argument (\S+): not allowed with argument (\S+)$",
        r"\1 and \2 exclude each other: give one of them",
    ),
    (r"^argument (\S+): ignored explicit argument .*", r"\1 takes no value: leave it out"),
    (r"^the following arguments are required: ", "this command needs "),
)


def plain(message: str) -> str:
    """A message of argparse in words of ours, the same with every version of Python."""
    for theirs, ours in _SAID:
        message = re.sub(theirs, ours, message)
    return message


def unknown_option(typed: str, options: Iterable[str]) -> str:
    """The sentence about an option that a command does not have, or a word too many."""
    if not typed.startswith("-"):
        shown = re.sub("://.*", "://...", typed)  # a connection string may hold a password
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
