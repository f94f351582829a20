"""The parser: what was typed and is not understood is said plainly, with what was meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, NoReturn

from privtraj.base import __version__
from privtraj.base.errors import InputError, either, masked


class _Parser(argparse.ArgumentParser):
    """A parser that explains mistakes.

    What is wrong is told by data, never read off argparse's sentences, which change with Python.
    """

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, exit_on_error=False, **options)
        self._needed: list[argparse.Action] = []
        # Without this, argparse takes a bound such as -1e-3 for an option.
        self._negative_number_matcher = re.compile(r"^-\.?\d")

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see '{self.prog} --help')")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._needed += [action for action in self._actions if action.required]
        for action in self._needed:
            action.required = False  # we say what is missing
        try:
            values, rest = super().parse_known_args(args, namespace)
        except argparse.ArgumentError as error:
            # ours begin with "must": else argparse complains of a value, such as --force=yes
            ours = error.message.startswith("must ")
            why = error.message if ours else "takes no value: leave it out"
            self.error(f"{error.argument_name} {why}")
        absent = [a.metavar for a in self._needed if getattr(values, a.dest) is None]
        if absent:
            self.error(f"this command needs {', '.join(map(str, absent))}")
        if rest and self._subparsers is not None:
            self.error(f"{rest[0]} must come after the command that it is for")
        if rest:
            self.error(_unknown_option(rest[0], self._option_string_actions))
        return values, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        names = [str(choice) for choice in action.choices]
        if not action.option_strings:
            near = get_close_matches(str(value), names, n=1, cutoff=0.75)
            hint = f"did you mean {near[0]}?" if near else f"choose among {', '.join(names)}"
            self.error(f"there is no {str(action.metavar).lower()} '{value}': {hint}")
        raise argparse.ArgumentError(action, f"must be {either(names)}, not '{value}'")

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError:
            wanted = self._get_formatter()._format_args(action, action.dest.upper())
            raise argparse.ArgumentError(action, f"must be followed by {wanted}") from None


def parser(*adds: Callable[[Any], None]) -> argparse.ArgumentParser:
    """The parser of `privtraj`, with the commands that these functions add."""
    top = _Parser(
        prog="privtraj",
        description="Private synthetic trajectories from one time-stamped record per person.",
        epilog="New here? Run: privtraj demo",
    )
    top.add_argument("--version", action="version", version=f"privtraj {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for add in adds:
        add(commands)
    return top


def _unknown_option(typed: str, options: Iterable[str]) -> str:
    """The sentence about an option that a command does not have, or a word too many."""
    if not typed.startswith("-"):
        return f"'{masked(typed)}' is one word too many: put quotes around what has spaces"
    name, known = typed.partition("=")[0], list(options)
    longer = [option for option in known if option.startswith(name)]
    near = longer or get_close_matches(name, known, n=1, cutoff=0.75)
    return f"there is no option {name}" + (f": did you mean {near[0]}?" if near else "")
