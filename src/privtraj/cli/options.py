"""Options: what the commands share, and the checks before anything is read or spent."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from privtraj import config, files
from privtraj.cli import words
from privtraj.config import LARGEST_NUMBER
from privtraj.errors import InputError
from privtraj.text import either
from privtraj.version import __version__


class _Parser(argparse.ArgumentParser):
    """A parser that explains mistakes; if `configured`, --config may name a file with options.

    What is wrong is told by data, never read off argparse's sentences, which change with Python.
    """

    def __init__(self, configured: bool = False, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, exit_on_error=False, **options)
        self._configured = configured
        self._needed: list[argparse.Action] = []
        # Without this, argparse takes a bound such as -1e-3 for an option.
        self._negative_number_matcher = re.compile(r"^-\.?\d")
        self.register("type", float, _number)

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see '{self.prog} --help')")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._needed += [action for action in self._actions if action.required]
        for action in self._needed:
            action.required = False  # we say what is missing
        with _defaults_aside(self._actions if self._configured else []) as defaults:
            try:
                values, rest = super().parse_known_args(args, namespace)
            except argparse.ArgumentError as error:
                # ours begin with "must": else argparse complains of a value, such as --force=yes
                ours = error.message.startswith("must ")
                why = error.message if ours else "takes no value: leave it out"
                self.error(f"{error.argument_name} {why}")
        self._check_complete(values)
        self._check_known(rest)
        if not self._configured:
            return values, rest
        given = {name: value for name, value in vars(values).items() if value is not None}
        return argparse.Namespace(**_settled(given, defaults)), rest

    def _check_complete(self, values: argparse.Namespace) -> None:
        absent = [action for action in self._needed if getattr(values, action.dest) is None]
        if absent:
            self.error(f"this command needs {', '.join(str(action.metavar) for action in absent)}")

    def _check_known(self, rest: list[str]) -> None:
        if rest and self._subparsers is not None:
            self.error(f"{rest[0]} must come after the command that it is for")
        if rest:
            self.error(words.unknown_option(rest[0], self._option_string_actions))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        names = [str(choice) for choice in action.choices]
        if not action.option_strings:
            self.error(words.unknown_name(str(action.metavar).lower(), str(value), names))
        raise argparse.ArgumentError(action, f"must be {either(names)}, not '{value}'")

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError:
            wanted = self._get_formatter()._format_args(action, action.dest.upper())
            raise argparse.ArgumentError(action, f"must be followed by {wanted}") from None


@contextmanager
def _defaults_aside(actions: list[argparse.Action]) -> Iterator[dict[str, Any]]:
    """The defaults of options, out of the way: what is given can be told from what is not."""
    options = [action for action in actions if action.option_strings and action.dest != "help"]
    defaults = {action: action.default for action in options}
    try:
        for action in options:
            action.default = argparse.SUPPRESS
        yield {action.dest: None for action in actions if action.dest != "help"} | {
            action.dest: default for action, default in defaults.items()
        }
    finally:
        for action, default in defaults.items():
            action.default = default


def _settled(given: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """What is given on the command line, else in the configuration, else by default."""
    if "bins" in given and "bin_times" in given:
        raise InputError("--bins and --bin-times exclude each other: give one of them")
    if "config" not in given:
        return config.plain(defaults | given)
    decided = set(given)
    if decided & {"bins", "bin_times"}:  # one stands for the other
        decided |= {"bins", "bin_times"}
    return config.plain(defaults | config.load(given["config"], but=decided) | given)


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


def choice(group: Any, flag: str, text: str, *choices: str) -> None:
    """An option whose first choice is the default."""
    text = f"{text} (default: {choices[0]})"
    group.add_argument(flag, choices=choices, default=choices[0], help=text)


def add_common_options(group: Any, force: str) -> None:
    """The options that every command has."""
    group.add_argument("--force", action="store_true", help=force)
    group.add_argument("--json", action="store_true", help="print the result as one JSON object")
    group.add_argument("--quiet", action="store_true", help="show no progress")


def _number(text: str) -> float:
    """What `float` is as the type of an option."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, not '{text}'") from None


def at_least(smallest: int) -> Callable[[str], int]:
    """The type of an option that takes a whole number."""

    def whole(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = smallest - 1
        if not smallest <= value <= LARGEST_NUMBER:
            raise argparse.ArgumentTypeError(
                f"must be a whole number of at least {smallest} and at most {LARGEST_NUMBER}"
            )
        return value

    return whole


_NEEDED = {
    "data": "this command needs DATA, which names the records, here or as data in a --config FILE",
    "time": "--time COL is needed: it names the column that says when each record was taken",
    "feature": "--feature NAME LOW HIGH is needed for every column to use: the bounds must be "
    "public knowledge, because bounds taken from the data would reveal its most extreme people",
    "epsilon": "--epsilon is needed: how much privacy loss to allow is your decision "
    "(1 is a common choice, smaller is more private)",
    "delta": "--delta is needed: choose it well below one over the number of people, such as 1e-5",
    "out": "--out is needed: it names the file to write",
    "what": "--what is needed: it says what was released",
}


def require(args: argparse.Namespace, *names: str) -> None:
    """Refuse a command that lacks one of these options."""
    for name in names:
        if getattr(args, name) is None:
            raise InputError(_NEEDED[name])


def check_output(path: Path | None, suffixes: tuple[str, ...] | None, force: bool) -> None:
    """Refuse a file that could not be written; `suffixes` None means any that paths can have."""
    if path is None:
        return
    from privtraj import paths

    known = paths.SUFFIXES if suffixes is None else suffixes
    if not path.name.lower().endswith(known):
        raise InputError(f"the name '{path.name}' must end in {either(known)}")
    files.check_writable(path, force)


def make_directory(path: Path, force: bool) -> None:
    """Make it if missing; one that holds something is refused unless forced."""
    if path.exists() and not path.is_dir():
        raise InputError(f"'{path}' is a file: give --out the name of a directory")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise InputError(
            f"the directory '{path}' is not empty: choose another with --out, or write into it "
            "with --force"
        )
    path.mkdir(parents=True, exist_ok=True)
