"""Talking to the user: results, progress, notes, and the sentence about what went wrong."""

from __future__ import annotations

import json
import os
import sys
import time
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privtraj.base.files import write_text

BAD_INPUT = 2
PLAINLY_WRONG = 3  # a range, as a look at the records or at what was released says
INTERRUPTED = 130
UNREAD = 141


@dataclass
class Console:
    """Where a command says things, and what it has written so far."""

    quiet: bool = False
    json: bool = False
    written: list[Path] = field(default_factory=list)
    remains: str = ""  # what an interruption does not undo
    _line: bool = False  # whether the last line on stderr is a progress line

    def progress(self, label: str) -> Callable[[int, int], None]:
        """A bar on stderr that the returned function moves; nothing unless a person looks on."""
        begun = 0.0

        def show(done: int, total: int) -> None:
            nonlocal begun
            if self.quiet or not sys.stderr.isatty():
                return
            if done == 1:  # what came before was compiling, which says nothing about the rest
                begun = time.monotonic()
            filled = 30 * done // max(total, 1)
            bar = "#" * filled + "." * (30 - filled)
            state = f"{done}/{total}" if done else "preparing"
            left = remaining(time.monotonic() - begun, done, total)
            self._line = done < total
            end = "" if self._line else "\n"
            print(f"\r{label} [{bar}] {state}{left:<22}", end=end, file=sys.stderr, flush=True)

        show(0, 1)
        return show

    def write(self, text: str, path: Path, force: bool) -> None:
        """A file of text, among those written."""
        write_text(text, path, force)
        self.written.append(path)

    def note(self, text: object) -> None:
        """One line that the user should know."""
        self._say(f"note: {text}")

    def result(self, values: dict[str, Any], text: str) -> None:
        """The result on stdout: one JSON object, or text."""
        print(json.dumps(values, allow_nan=False) if self.json else text)

    def fail(self, sentence: str, code: int = BAD_INPUT) -> int:
        """The one sentence about what went wrong; returns the exit code."""
        kept = ", ".join(str(path) for path in self.written)
        kept = f" (written before that, and complete: {kept})" if kept else ""
        self._say(f"error: {sentence.removesuffix('.')}{kept}")
        return code

    def _say(self, text: str) -> None:
        start = "\n" if self._line else ""  # leave the progress line as it is
        self._line = False
        print(f"{start}privtraj: {_plain(' '.join(text.split()))}", file=sys.stderr)


def _plain(text: str) -> str:
    """Without what would steer a terminal: names in a message may be somebody else's."""
    return "".join("?" if unicodedata.category(letter)[0] == "C" else letter for letter in text)


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


def os_sentence(error: OSError) -> str:
    """What the system refused, without Python's numbers."""
    reason = error.strerror or str(error) or type(error).__name__
    where = f" ('{error.filename}')" if error.filename else ""
    return f"the system refused: {reason}{where}"


def give_up_stdout_if_broken() -> None:
    """Keep Python from trying again, and complaining, when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
