"""What planning, checking and quality share: a finding, and a cache of what was found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from privtraj.base import __version__, files
from privtraj.base.errors import Arg, InputError, PrivtrajError, Said

Found = TypeVar("Found")
Words = tuple[str | Arg | Said, ...]

LEVELS = ("refused", "wrong", "doubtful", "note")
"""Verdicts on a table, the gravest first: a fit refuses it, in these very words; a range is plainly
wrong, so that `privtraj fit` stops unless told to go on; look at it before the budget is gone; good
to know."""
FORMAT = 4  # of the kept files


@dataclass(frozen=True)
class Finding:
    """One thing that was found. name: of the column it is about, if about one.

    verdict: one of `LEVELS`.  seen: what was seen, and advice: what to do about it, in words of
    which some are typed otherwise on the command line.  numbers: that it was found by.
    """

    name: str | None
    verdict: str
    seen: Words
    advice: Words = ()
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """What was seen, and what to do about it."""
        return str(self._error)

    def __str__(self) -> str:
        return self.sentence

    def typed(self) -> str:
        """The sentence in the words of the command line."""
        return self._error.typed()

    @property
    def what(self) -> str:
        """What was seen, alone, as it is typed."""
        return PrivtrajError(*self.seen).typed()

    @property
    def _error(self) -> PrivtrajError:
        return PrivtrajError(*self.seen, *((": ", *self.advice) if self.advice else ()))


def kept_file(kind: str, key: Mapping[str, Any]) -> Path:
    """Where an answer is kept, by all that it follows from and the version that made it."""
    text = _text({"kind": kind, "key": key, "format": FORMAT, "version": __version__})
    return files.cache_folder("assessed") / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def kept(
    kind: str,
    key: Mapping[str, Any],
    read: Callable[[dict[str, Any]], Found],
    make: Callable[[], Found | None],
) -> Found | None:
    """The answer of an earlier run, or one that is made now and kept for the next, if it is any.

    key: all that the answer follows from, public or released: a question with its recipe, the hash
    of a model. A file holds it beside the answer (`to_dict`, which `read` undoes). Without a place
    for files, or where one is damaged, the answer is made again.
    """
    try:
        held = json.loads(kept_file(kind, key).read_text("utf-8"))
        if held["key"] == json.loads(_text(key)):
            return read(held["answer"])
    except (OSError, RuntimeError, KeyError, TypeError, ValueError, AttributeError):
        pass
    answer: Any = make()
    if answer is not None:
        try:
            path = kept_file(kind, key)
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            text = _text({"key": key, "answer": answer.to_dict()})
            files.write_text(f"{text}\n", path, force=True)
        except (OSError, RuntimeError, InputError):
            pass
    return answer


def _text(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, allow_nan=False, default=str)
