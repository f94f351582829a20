"""What planning, checking and quality share: a finding, an estimate of worth, public crowds that
forecasts are made on, a cache."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from privtraj.base import __version__, files
from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError, PrivtrajError, Said, about
from privtraj.metrics.people import MOST_TOLD

Found = TypeVar("Found")
Words = tuple[str | Arg | Said, ...]

LEVELS = ("refused", "wrong", "doubtful", "note")
"""Verdicts on a table, the gravest first: a fit refuses it, in these very words; a range is plainly
wrong, so that `privtraj fit` stops unless told to go on; look at it before the budget is gone; good
to know."""
GRADES = ("good", "look closer", "poor")
"""Verdicts on a released model."""
FORMAT = 8  # of the kept files
UNKNOWN = 0.9
"""Standard deviation of the logarithm of worth that no simulated case knows of, as of groups that
exchange people where they stay: intervals of .8 held the truth of 86 % of the even populations of
experiments/quality.py, of 1.0 that of 95 %."""
LEAST_WORTH = 0.5  # people: as what counts that is worse than one of them
SURE = 1.64  # deviations to either side that hold the truth in nine cases of ten


@dataclass(frozen=True)
class Finding:
    """One thing that was found. name: of the check, or of the column it is about, if about one.

    verdict: one of `LEVELS` or `GRADES`.  seen: what was seen, and advice: what to do about it, in
    words of which some are typed otherwise on the command line.  numbers: that it was found by;
    value: the main one of them, in words.
    """

    name: str | None
    verdict: str
    seen: Words
    advice: Words = ()
    numbers: Mapping[str, float] = field(default_factory=dict)
    value: str = ""

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


@dataclass(frozen=True)
class Estimate:
    """Worth in people per time, and the numbers between which it is in nine cases of ten.

    or_more: simulated people were as good as can be told, so that it may be any number above.
    """

    worth: float
    low: float
    high: float
    or_more: bool = False

    @classmethod
    def of(cls, worths: Sequence[float] | Floats) -> Estimate:
        """Of worths (...) that are equally likely: their geometric mean, and as far from it as they
        vary, and `UNKNOWN` beside. What is worse than one person counts as half a person."""
        logs = np.log(np.maximum(worths, LEAST_WORTH))
        middle, away = float(logs.mean()), SURE * math.hypot(float(logs.std()), UNKNOWN)
        most = float(MOST_TOLD)
        people, low, high = (float(np.exp(middle + k * away)) for k in (0, -1, 1))
        return cls(min(people, most), min(low, most), min(high, most), people >= 0.98 * most)

    def __str__(self) -> str:
        if self.worth < 1:
            return "less than one person"
        if self.worth < 1.5:
            return "about one person"
        return f"about {about(self.worth)} people{' or more' * self.or_more}"


class Shape(NamedTuple):
    """Of a stand-in crowd. groups: their number.  spread: standard deviation of a group.  motion:
    how far one goes.  way: along a "line"; in a "swing", there and back; in a "jump", waiting in
    between; groups that stay "exchange" people; people on a line "turn" by half a circle.
    skew: of features, as of exp(skew z). All in shares of the box."""

    groups: int
    spread: float
    motion: float
    way: str = "line"
    skew: float = 0.0


STAND_INS = {
    "one skewed group": Shape(1, 0.07, 0.2, skew=0.6),
    "one group that jumps": Shape(1, 0.04, 0.3, "jump"),
    "two groups that part": Shape(2, 0.06, 0.3),
    "groups that exchange people": Shape(3, 0.05, 0.0, "exchange", 0.3),
    "five groups that swing": Shape(5, 0.05, 0.2, "swing"),
    "a thin line that turns": Shape(1, 0.12, 0.1, "turn"),
}
"""Public crowds that forecasts are made on. Set by hand, so that shapes, spreads and motions span
those of ordinary tables with sensible bounds; docs/planning.md says how well they foretell
others."""


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
