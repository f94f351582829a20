"""Talking to the user: what was typed, results, progress, notes, and what went wrong."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from privtraj.base import __version__
from privtraj.base.errors import InputError, masked, printable
from privtraj.base.files import write_text

PLAINLY_WRONG = 3  # a range, as a look at the records or at what was released says
INTERRUPTED = 130
UNREAD = 141
LINE_EVERY = 5.0  # seconds


@dataclass
class Console:
    """Where a command says things, and what it has written so far."""

    quiet: bool = False
    json: bool = False
    written: list[Path] = field(default_factory=list)
    remains: str = ""  # what an interruption does not undo
    alone: bool = False  # whether the process is this command's own
    _line: bool = False  # whether the last line on stderr is a progress line
    _ended: threading.Event = field(default_factory=threading.Event)  # no more lines of progress

    def progress(self, label: str) -> Callable[[int, int], None]:
        """A bar on stderr that the returned function moves, until the next one or the result; a
        line every `LINE_EVERY` seconds where nobody looks on."""
        begun, state, left = 0.0, "preparing", ""
        started, looked_on = time.monotonic(), sys.stderr.isatty()
        self._ended.set()
        self._ended = ended = threading.Event()

        mine = weakref.ref(self)  # a console that is gone says nothing more

        def lines() -> None:
            while not ended.wait(LINE_EVERY) and (console := mine()) is not None:
                seconds = time.monotonic() - started
                console._say(f"{label}: {state}{left}, for {seconds:.0f} s so far")

        def show(done: int, total: int) -> None:
            nonlocal begun, state, left
            if done == 1:  # what came before was compiling, which says nothing about the rest
                begun = time.monotonic()
            state = f"{done}/{total}" if done else "preparing"
            left = remaining(time.monotonic() - begun, done, total)
            if self.quiet or not looked_on:
                return
            filled = 30 * done // max(total, 1)
            bar = "#" * filled + "." * (30 - filled)
            self._line = done < total
            end = "" if self._line else "\n"
            print(f"\r{label} [{bar}] {state}{left:<22}", end=end, file=sys.stderr, flush=True)

        if not (self.quiet or looked_on):
            threading.Thread(target=lines, daemon=True).start()
        show(0, 1)
        return show

    def write(self, text: str, path: Path, force: bool) -> str:
        """A file of text, among those written; its name."""
        write_text(text, path, force)
        return self.wrote(path)

    def wrote(self, path: Path) -> str:
        """A file that is written now; its name."""
        self.written.append(path)
        return str(path)

    def note(self, text: object) -> None:
        """One line that the user should know."""
        self._say(f"note: {text}")

    def result(self, values: dict[str, Any], text: str) -> None:
        """The result on stdout: one JSON object, or text."""
        self._ended.set()
        print(json.dumps(values, allow_nan=False) if self.json else printable(text))

    def fail(self, sentence: str, code: int = 2) -> int:
        """The one sentence about what went wrong; returns the exit code."""
        self._ended.set()
        kept = ", ".join(str(path) for path in self.written)
        kept = f" (written before that, and complete: {kept})" if kept else ""
        self._say(f"error: {sentence.removesuffix('.')}{kept}")
        return code

    def _say(self, text: str) -> None:
        start = "\n" if self._line else ""  # leave the progress line as it is
        self._line = False
        print(f"{start}privtraj: {printable(' '.join(text.split()))}", file=sys.stderr)


def remaining(elapsed: float, done: int, total: int) -> str:
    """How long the rest will take if it goes on as since the first of `total`; silent at first."""
    if not 2 < done < total:
        return ""
    seconds = elapsed / (done - 1) * (total - done)
    if seconds < 90:
        return f", about {max(seconds, 1):.0f} s left"
    if seconds < 5400:
        return f", about {seconds / 60:.0f} min left"
    return f", about {seconds / 3600:.0f} h left"


@contextmanager
def notes(console: Console) -> Iterator[None]:
    """Show warnings that are meant for users as one line each."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, UserWarning):
                console.note(message)
            else:
                usual(message, category, *rest, **more)

        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def give_up_stdout_if_broken() -> None:
    """Keep Python from trying again, and complaining, when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# What was typed -------------------------------------------------------------------------------


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
            # ours begins with "must": else argparse complains of a value, such as --force=yes
            ours = error.message.startswith("must ")
            why = error.message if ours else "takes no value: leave it out"
            self.error(f"{error.argument_name} {why}")
        absent = [a.metavar for a in self._needed if getattr(values, a.dest) is None]
        if absent:
            self.error(f"this command needs {', '.join(map(str, absent))}")
        if rest and self._subparsers is not None:
            self.error(f"{rest[0]} must come after the command that it is for")
        if rest and not rest[0].startswith("-"):
            typed = masked(rest[0])
            self.error(f"'{typed}' is one word too many: put quotes around what has spaces")
        if rest:
            name, known = rest[0].partition("=")[0], list(self._option_string_actions)
            longer = [option for option in known if option.startswith(name)]
            near = longer or get_close_matches(name, known, n=1, cutoff=0.75)
            hint = f": did you mean {near[0]}?" if near else ""
            self.error(f"there is no option {name}{hint}")
        return values, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:  # commands alone have them
            names = list(map(str, action.choices))
            near = get_close_matches(str(value), names, n=1, cutoff=0.75)
            hint = f"did you mean {near[0]}?" if near else f"choose among {', '.join(names)}"
            self.error(f"there is no {str(action.metavar).lower()} '{value}': {hint}")

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError:
            wanted = self._get_formatter()._format_args(action, action.dest.upper())
            raise argparse.ArgumentError(action, f"must be followed by {wanted}") from None


_NEXT = """\
Each command explains its options with --help, such as: privtraj fit --help

New here? Run:     privtraj demo
Your own data?     privtraj init visits.csv -o fit.toml
then, filled in:   privtraj fit --config fit.toml"""


def parser(*known: Any) -> argparse.ArgumentParser:
    """The parser of `privtraj` with these commands (`shared.Command`)."""
    top = _Parser(
        prog="privtraj",
        description="Private synthetic trajectories from one time-stamped record per person.",
        epilog=_NEXT,
    )
    top.add_argument("--version", action="version", version=f"privtraj {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for command in known:
        command.add(commands)
    return top
