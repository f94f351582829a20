"""Every choice of a fit, declared once.

The command line makes its options of this list, the configuration its keys and comments, and the
functions of the library take theirs by name (`arguments`). Standard library only, because
`privtraj --help` reads it.
"""

from __future__ import annotations

import argparse
import datetime as dt
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privtraj.base.errors import short
from privtraj.base.formats import PEOPLE_DRAWN
from privtraj.columns.cells import typed_column

LARGEST_NUMBER = 10**9


# What a value may be --------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """What values a choice takes.

    must: in words.  read: a value of a configuration made plain, or a ValueError.
    typed: what argparse is to know of it.
    """

    must: str
    read: Callable[[Any], Any]
    typed: Mapping[str, Any] = field(default_factory=dict, hash=False)


def _need(condition: object) -> None:
    if not condition:
        raise ValueError  # the kind says what it must be


def _text(value: Any) -> str:
    _need(isinstance(value, str) and value)
    return str(value)


def _boolean(value: Any) -> bool:
    _need(isinstance(value, bool))
    return bool(value)


def _number(value: Any) -> float:
    """A number, or text that reads as one: YAML takes 1e-5, without a point, for text."""
    _need(isinstance(value, int | float | str) and not isinstance(value, bool))
    try:
        number = float(value)
    except OverflowError:
        raise ValueError from None
    _need(math.isfinite(number))
    return number


def _typed_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, not '{text}'") from None


def _number_or_text(value: Any) -> float | str:
    try:
        return _number(value)
    except ValueError:
        return _text(value)


def _moment(value: Any) -> float | str:
    """A number, or a date as text."""
    if isinstance(value, dt.date):  # a datetime is one
        return value.isoformat()
    try:
        return _number(value)
    except ValueError:
        dt.datetime.fromisoformat(_text(value))
        return str(value)


def _moments(least: int, most: int | None = None) -> Callable[[Any], list[float | str]]:
    def read(value: Any) -> list[float | str]:
        _need(isinstance(value, list) and least <= len(value) <= (most or len(value)))
        return [_moment(time) for time in value]

    return read


def _counts(value: Any) -> list[float]:
    _need(isinstance(value, list) and len(value) >= 2)
    numbers = [_number(count) for count in value]
    _need(min(numbers) >= 0)
    return numbers


def _features(value: Any) -> list[list[Any]]:
    _need(isinstance(value, list) and value)
    _need(all(isinstance(item, list) and len(item) == 3 for item in value))
    return [[_text(name), _number(low), _number(high)] for name, low, high in value]


def _names(value: Any) -> list[str]:
    _need(isinstance(value, list) and value)
    return [_text(name) for name in value]


def _steps(value: Any) -> list[list[Any]]:
    _need(isinstance(value, list) and value)
    _need(all(isinstance(item, list) and len(item) == 2 for item in value))
    return [[_text(name), _number(step)] for name, step in value]


def _columns(value: Any) -> dict[str, Any]:
    """{name: form}: a table of settings, a list of values or bounds, or the name of a kind."""
    _need(isinstance(value, dict) and value)
    return {_text(name): _form(form) for name, form in value.items()}


def _form(form: Any) -> Any:
    if not isinstance(form, dict):
        _need(isinstance(form, str | list) and form)
        return _plain(form)
    _need(form and all(isinstance(word, str) for word in form))
    end = _date if form.get("kind") == "date" else _end
    ends = ("low", "high", "period")
    return {word: end(part) if word in ends else _plain(part) for word, part in form.items()}


def _end(bound: Any) -> Any:
    """A bound as a number; what is none is explained by the column that has it."""
    try:
        return _number(bound)
    except ValueError:
        return _plain(bound)


def _date(bound: Any) -> Any:
    """A bound as text: a number, such as a year, is no date."""
    return str(bound) if isinstance(bound, int | float) else _plain(bound)


def _plain(value: Any) -> Any:
    """Dates as text."""
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value.isoformat() if isinstance(value, dt.date) else value


def _settings(value: Any) -> dict[str, Any]:
    """{setting: text or list of texts}; what they may be is told by who uses them."""
    _need(isinstance(value, dict) and value)
    _need(all(isinstance(word, str) for word in value))
    for setting in value.values():
        _need(isinstance(setting, str) or _names(setting))
    return dict(value)


class _Settings(argparse.Action):
    """Adds settings that are typed as WORD=VALUE or WORD=VALUE,VALUE to those typed before."""

    def __call__(self, parser: Any, space: Any, words: Any, option: Any = None) -> None:
        known = dict(getattr(space, self.dest) or {})
        for word, sign, text in (each.partition("=") for each in words):
            if not (sign and text and word.isidentifier()):
                raise argparse.ArgumentError(
                    self, "must be followed by settings, each as WORD=VALUE; give DATA first"
                )
            several = text.split(",") if len(text) > 1 else [text]  # a comma is a sign by itself
            known[word] = text if len(several) == 1 else several
        setattr(space, self.dest, known)


class _OneMore(argparse.Action):
    """Adds the column that is typed as NAME KIND SETTING ... to those typed before."""

    def __call__(self, parser: Any, space: Any, words: Any, option: Any = None) -> None:
        known = getattr(space, self.dest) or {}
        try:
            name, form = typed_column(words)
            if name in known:
                raise ValueError(f"must name '{name}' once: put all of it after one --column")
        except ValueError as error:
            raise argparse.ArgumentError(self, str(error)) from None
        setattr(space, self.dest, {**known, name: _form(form)})


def whole(least: int) -> Kind:
    """Whole numbers from `least` on."""
    must = f"a whole number of at least {least} and at most {LARGEST_NUMBER}"

    def read(value: Any) -> int:
        _need(isinstance(value, int) and not isinstance(value, bool))
        _need(least <= value <= LARGEST_NUMBER)
        return int(value)

    def typed(text: str) -> int:
        try:
            return read(int(text))
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be {must}") from None

    return Kind(must, read, {"type": typed, "metavar": "N"})


def word_or_whole(*words: str, least: int) -> Kind:
    """One of these words, or whole numbers from `least` on."""
    number = whole(least)
    must = ", ".join(f'"{word}"' for word in words) + f", or {number.must}"

    def read(value: Any) -> str | int:
        return str(value) if value in words else int(number.read(value))

    def typed(text: str) -> str | int:
        try:
            return read(text if text in words else int(text))
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be {must}") from None

    return Kind(must, read, {"type": typed, "metavar": "N"})


def one_of(*choices: str) -> Kind:
    """One of these words."""

    def read(value: Any) -> str:
        _need(value in choices)
        return str(value)

    return Kind(" or ".join(f'"{choice}"' for choice in choices), read, {"choices": choices})


def source(text: str) -> str | Path:
    """Where the data are: a connection string stays text, all else is a path."""
    return text if "://" in text else Path(text)


# fmt: off
TEXT = Kind("text, in quotes", _text)
FILE = Kind("the name of a file, in quotes",
            lambda value: Path(_text(value)), {"type": Path, "metavar": "FILE"})
SOURCE = Kind("the name of a file, or a connection string, in quotes",
              lambda value: source(_text(value)), {"type": source})
NUMBER = Kind("a number", _number, {"type": _typed_number, "metavar": "X"})
BOOLEAN = Kind("true or false", _boolean, {"action": "store_true"})
RANGE = Kind("two times, [start, end], numbers or dates such as 2024-01-31",
             _moments(2, 2), {"nargs": 2, "metavar": ("START", "END")})
TIMES = Kind("a list of numbers or of dates such as 2024-01-31",
             _moments(1), {"nargs": "+", "metavar": "T"})
GROWTH = Kind('"released" or a rate per unit of time, with settings such as "by_place=learned"',
              _number_or_text)
COUNTS = Kind("a list of numbers that are not negative, one for each time bin",
              _counts, {"nargs": "+", "type": _typed_number, "metavar": "N"})
NAMES = Kind("a list of names, in quotes", _names, {"nargs": "+", "metavar": "COL"})
STEPS = Kind('a list of columns with their step, such as [["height", 0.1]]', _steps,
             {"nargs": 2, "action": "append", "metavar": ("NAME", "STEP")})
FEATURES = Kind('a list of columns with their bounds, such as [["height", 40, 210]]', _features,
                {"nargs": 3, "action": "append", "metavar": ("NAME", "LOW", "HIGH")})
COLUMNS = Kind('a table for each, such as columns.sex = { kind = "category", values = ["F", "M"] }',
               _columns, {"nargs": "+", "action": _OneMore, "metavar": ("NAME KIND", "SETTING")})
CSV = Kind('settings of a CSV file, such as csv.decimal = ","', _settings,
           {"nargs": "+", "action": _Settings, "metavar": ("SETTING", "SETTING")})
CONDITIONS = Kind('a list of columns with their value, such as ["sex=F"]', _names,
                  {"action": "append", "metavar": "COL=VALUE"})
# fmt: on


# The choices ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """One choice: its name, what it may be, and what it means, in a few words.

    more: sentences that a configuration adds.  default: what holds where it is not given.
    otherwise: that in words, where it is not known beforehand.  example: shown by a configuration
    where there is no default.  needed: why a command cannot do without it.
    each: what the command line calls one of several that a configuration has in one place.
    """

    name: str
    kind: Kind
    about: str
    more: str = ""
    default: Any = None
    otherwise: object = None
    example: Any = None
    needed: str = ""
    metavar: str | None = None
    short: str | None = None
    each: str | None = None

    @property
    def flag(self) -> str:
        return f"--{(self.each or self.name).replace('_', '-')}"

    @property
    def help(self) -> str:
        """What the command line says of it."""
        if self.needed:
            return f"{self.about} (required)"
        if self.kind is BOOLEAN or self.default is self.otherwise is None:
            return self.about
        shown = self.default if self.otherwise is None else self.otherwise
        shown = short(shown) if isinstance(shown, float) else shown
        return f"{self.about} (default: {shown})"

    @property
    def comment(self) -> str:
        """What a configuration says of it."""
        known = "" if self.otherwise is None else f" (default: {self.otherwise})"
        return f"{self.about[0].upper()}{self.about[1:]}{known}. {self.more}".rstrip()


@dataclass(frozen=True)
class Group:
    """Choices that belong together."""

    title: str
    about: str
    options: tuple[Option, ...]


# fmt: off
_DATA = (
    Option("data", SOURCE, example="clinic.csv", metavar="DATA", about=
           "CSV, Parquet, Arrow or .h5ad file; folder or pattern of files; connection string",
           needed="it names the records, here or as data in a --config FILE",
           more="A connection string of a database is best without a password."),
    Option("query", TEXT, example="SELECT * FROM visits", metavar="SQL", about=
           "what to read from a database: a SELECT, or the name of a table",
           more="It must compute each row from one row of one table."),
    Option("row_by_row", BOOLEAN, default=False, about=
           "you state that it does, where that cannot be read from it; the certificate says so"),
    Option("csv", CSV, example={"decimal": ",", "dates": "DD.MM.YYYY"}, about=
           "how a CSV file is written, as in: delimiter=semicolon decimal=comma thousands=point "
           "dates=DD.MM.YYYY encoding=windows-1252 missing=k.A.,999 unreadable=missing",
           otherwise="decimal point, dates as YYYY-MM-DD, UTF-8",
           more="It is declared and never found by looking at records, so that no person's record "
           "changes how those of others are read. The delimiter (comma, semicolon, tab, pipe) is "
           "that of the first line. Empty cells, -, NA, n/a, NULL and NaN are missing, too. "
           "Cells that are no number or date where one belongs are refused, with their number, or "
           "taken as missing (unreadable)."),
    Option("time", TEXT, example="age", metavar="COL", about=
           "column that says when: numbers or dates",
           needed="it names the column that says when each record was taken"),
    Option("person", TEXT, example="id", metavar="COL", about=
           "column that says whose record it is, not which record",
           more="Without it every row is taken to be a different person, and the guarantee holds "
           "only if that is true."),
    Option("feature", FEATURES, example=[["height", 40.0, 210.0]], about=
           "column of numbers and its public bounds, to which values are clamped; one or more",
           needed="it names a column to use and its bounds, which must be public knowledge, "
           "because bounds taken from the data would reveal its most extreme people",
           more="Take the bounds from general knowledge (a chart, a map, a device's range), never "
           "from these data: the smallest and the largest value are those of two persons, and "
           "bounds are published with the model. Wide is safe, but blurs."),
    Option("columns", COLUMNS, each="column", about=
           "column of any kind and its public domain, as in: sex category values=F,M fixed; one "
           "or more", example={"sex": {"kind": "category", "values": ["F", "M"], "fixed": True}},
           more="Kinds: category and ordered have values, boolean needs nothing, number, integer "
           "and date have low and high, angle has period (24, 360). Values too are from general "
           "knowledge (a code book, a form), never from these data: a rare one may be that of one "
           "person. Each may have "
           'missing = true, if records may lack it, and fixed = true, if it never changes; other '
           '= "other" takes all values of a category that are not named.'),
    Option("time_range", RANGE, example=[0.0, 20.0], about=
           "public first and last time, numbers or dates; records outside count at its ends",
           more="For the same reason not taken from the data. Dates in quotes: 2024-01-31."),
    Option("bins", whole(2), example=12, about=
           "how many times you care about, spread evenly over the range; no resolution, which is "
           "found", otherwise=25),
    Option("bin_times", TIMES, example=[0.0, 1.0, 5.0, 20.0], about=
           "instead of bins: the times themselves, or all times at which people were recorded"),
    Option("domain", FILE, example="city.geojson", about=
           "public, where people can be at all: polygons or lines (.geojson), or a mask (.npz)",
           more="No mass and no path leaves it. It is about the features called lon and lat, or x "
           "and y, else about the first two."),
    Option("one_per_person", one_of("error", "random"), default="error", about=
           "several records of a person: refuse them (error), or keep one at random"),
    Option("records_per_person", whole(1), default=1, about=
           "or keep up to so many records of a person, one per bin, and pay for all of them"),
    Option("missing", one_of("refuse", "drop"), default="refuse", about=
           "records with missing values: refuse them, or leave them out (drop)"),
)
_PRIVACY = (
    Option("epsilon", NUMBER, example=1.0, about=
           "privacy loss allowed: smaller is more private and blurs the result",
           needed="how much privacy loss to allow is your decision (1 is a common choice, smaller "
           "is more private)",
           more="1 is a common choice."),
    Option("delta", NUMBER, example=1e-5, about=
           "chance of a larger loss: far below one over the number of people",
           needed="choose it well below one over the number of people, such as 1e-5",
           more="1e-5 is a common choice."),
    Option("adjacency", one_of("add-remove", "replace-one"), default="add-remove", about=
           "what is hidden: whether a person is in the data (add-remove), or what the record says"),
    Option("measure", one_of("auto", "gradients", "counts", "marginals"), default="auto", about=
           "what the budget buys: counts suit few features, gradients many; auto chooses"),
    Option("persistence", one_of("auto", "off"), default="auto", about=
           "whether to spend on how fast people change, where they may have several records"),
    Option("public_counts", COUNTS, example=[310.0, 305.0, 298.0], about=
           "the number of people in each bin, if these are public knowledge; only with replace-one",
           more="Nothing is spent on them then. Type them from where they are published, never "
           "count them in these data: they are taken as known to everybody, so whether a person is "
           "there, and in which bin, is not protected."),
    Option("seed", whole(0), example=3, about=
           "repeatable noise, for research: the result is NOT PRIVATE"),
    Option("not_private", BOOLEAN, default=False, about=
           "write a result that is not private all the same (needed with a seed)"),
)
_LEDGER = (
    Option("ledger", FILE, example="clinic.ledger", about=
           "file that records the budget before anything is released; fits on it add up"),
    Option("cap_epsilon", NUMBER, example=3.0, otherwise="as recorded last", about=
           "most that everything in the ledger may spend together"),
    Option("cap_delta", NUMBER, example=1e-4, about="the same for delta"),
    Option("ledger_code", TEXT, example="5-0123456789abcdef", metavar="CODE", about=
           "code that an earlier fit printed, from which the ledger must go on"),
    Option("new_people", BOOLEAN, default=False, about=
           "nobody in these records is among the people of the ledger, so they need not add up"),
)
_OUTPUT = (
    Option("out", FILE, example="model.privtraj", about="the model, named .privtraj",
           needed="it names the file to write"),
    Option("certificate", FILE, example="certificate.json", about="the certificate, as .json"),
    Option("paths", FILE, example="paths.csv", about=
           "synthetic paths too, as a table or a map: .csv, .parquet, .geojson, ..."),
    Option("n", whole(1), example=1000, otherwise=PEOPLE_DRAWN, short="-n", about=
           "number of synthetic people in the paths"),
    Option("at", whole(1), example=81, otherwise="the fitted times", about=
           "number of times in the paths, spread over the range"),
    Option("force", BOOLEAN, default=False, about="replace existing files"),
    Option("json", BOOLEAN, default=False, about="print the result as one JSON object"),
    Option("quiet", BOOLEAN, default=False, about="show no progress"),
)
_MOTION = (
    Option("reference", TEXT, default="auto", example="inertia memory=2", metavar="PROCESS", about=
           "how people move in between: auto, brownian, inertia, ornstein-uhlenbeck, drift or "
           "learned, with its settings, as in 'inertia memory=2 share=0.5'",
           more="It costs nothing and can be changed later. By itself: smooth paths of least "
           "action along a drift that the released people show."),
    Option("monotone", NAMES, example=["height"], about=
           "features that never fall along a path, from general knowledge"),
    Option("precision", STEPS, example=[["height", 0.1]], about=
           "step in which a feature is written, 1 for integers, from general knowledge"),
)
_PROCESSES = (
    Option("distributed", BOOLEAN, default=False, about=
           "join the processes that Slurm, Open MPI or Kubernetes started"),
    Option("coordinator", TEXT, example="host:1234", metavar="HOST:PORT", about=
           "instead: address of the first process, the same in all of them"),
    Option("processes", whole(1), example=2, about="with it: how many there are"),
    Option("process", whole(0), example=0, about="and the number of this one, from 0"),
)
_ADVANCED = (
    Option("particles", whole(2), example=64, about=
           "points that carry each time: more is finer, and noisier"),
    Option("steps", whole(2), example=30, about=
           "moves of the particles; gradients share the budget among them"),
    Option("cells", whole(2), example=12, about=
           "cells per feature of the private counts: more is finer, and noisier"),
    Option("slabs", word_or_whole("auto", "bins", least=2), example="auto", about=
           "slabs of time that are measured, with curves through them: how many, or every bin by "
           "itself (bins)", otherwise="as many as suit how people move"),
    Option("subspace", word_or_whole("auto", "off", least=1), example="auto", about=
           "axes along which many numeric features are measured, the rest as variance: how many, "
           "or never (off)", otherwise="found from six features on"),
    Option("bandwidth", NUMBER, example=0.05, about=
           "width of a person around a particle, as a share of the box"),
    Option("time_coupling", NUMBER, example=0.03, about=
           "how strongly neighbouring times share what they know, 0 for not at all"),
    Option("growth", GROWTH, example="released", metavar="HOW", about=
           "a population that changes, so that paths begin late or end early: by the private "
           "numbers of records over time (released), or at a public rate per unit of time",
           otherwise="everybody is there all the time"),
    Option("diffusivity", NUMBER, example=0.01, about=
           "how much single paths wander, as Brownian motion: variance, in boxes, per range"),
)
# fmt: on

GROUPS = (
    Group("data", "the columns to use, and what is public about them", _DATA),
    Group("privacy", "what the result may reveal of a person", _PRIVACY),
    Group("ledger", "for more than one fit on the same people", _LEDGER),
    Group("motion", "how people move, which costs no privacy", _MOTION),
    Group("output", "what to write", _OUTPUT),
    Group("several processes", "each with records of other people", _PROCESSES),
    Group("advanced", "chosen from public and released numbers where left out", _ADVANCED),
)
OPTIONS = {option.name: option for group in GROUPS for option in group.options}
ADVANCED = tuple(option.name for option in _ADVANCED)


def arguments(function: Callable[..., Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Those choices that a function of the library takes by name, as far as they are made."""
    taken = inspect.signature(function).parameters
    made = {name: chosen.get(name) for name in OPTIONS if name in taken}
    return {name: value for name, value in made.items() if value is not None}
