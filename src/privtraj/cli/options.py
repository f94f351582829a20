"""Every choice of `privtraj fit`: those of its recipe, and those about data and files.

The command line makes its options of these, the configuration its keys and comments, and functions
of the library take theirs by name (`arguments`). Standard library only, because `privtraj --help`
reads it.
"""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from privtraj import recipe
from privtraj.base.errors import Arg, InputError
from privtraj.columns.cells import typed_column
from privtraj.measures.registry import KIND
from privtraj.recipe import BOOLEAN, NAMES, NUMBER, TEXT, Kind, Option, need, one_of, several, whole

# What a value may be, of choices that no recipe has -------------------------------------------


def _moment(value: Any) -> float | str:
    """A number, or a date as text."""
    if isinstance(value, dt.date):  # a datetime is one
        return value.isoformat()
    try:
        return NUMBER.read(value)
    except ValueError:
        dt.datetime.fromisoformat(TEXT.read(value))
        return str(value)


def _columns(value: Any) -> dict[str, Any]:
    """{name: form}: a table of settings, a list of values or bounds, or the name of a kind."""
    need(isinstance(value, dict) and value)
    return {TEXT.read(name): _form(form) for name, form in value.items()}


def _form(form: Any) -> Any:
    """Dates as text, bounds as numbers; what is no bound is explained by the column that has it."""
    if not isinstance(form, dict):
        need(isinstance(form, str | list) and form)
        return _plain(form)
    need(form and all(isinstance(word, str) for word in form))
    made = {word: _plain(part) for word, part in form.items()}
    for word in {"low", "high", "period", "offset"} & form.keys():
        if form.get("kind") == "date":  # a number, such as a year, is none
            made[word] = str(made[word]) if isinstance(made[word], int | float) else made[word]
        else:
            with suppress(ValueError):
                made[word] = NUMBER.read(form[word])
    if isinstance(codes := form.get("missing_codes"), list):
        with suppress(ValueError):
            made["missing_codes"] = [NUMBER.read(code) for code in codes]
    return made


def _plain(value: Any) -> Any:
    """Dates as text."""
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value.isoformat() if isinstance(value, dt.date) else value


def _settings(value: Any) -> dict[str, Any]:
    """{setting: text or list of texts}; what they may be is told by who uses them."""
    need(isinstance(value, dict) and value)
    need(all(isinstance(word, str) for word in value))
    return {word: x if isinstance(x, str) else NAMES.read(x) for word, x in value.items()}


def _typed_settings(typed: list[list[str]]) -> dict[str, str | list[str]]:
    """Settings that are typed as WORD=VALUE or WORD=VALUE,VALUE."""
    made: dict[str, str | list[str]] = {}
    for word, sign, value in (each.partition("=") for words in typed for each in words):
        if not (sign and value and word.isidentifier()):
            must = " must be followed by settings, each as WORD=VALUE; give DATA first"
            raise InputError(Arg("csv"), must)
        several = value.split(",") if len(value) > 1 else [value]  # a comma is one by itself
        made[word] = value if len(several) == 1 else several
    return made


def _typed_columns(typed: list[list[str]]) -> dict[str, Any]:
    """Columns that are typed as NAME KIND SETTING ..."""
    made: dict[str, Any] = {}
    for words in typed:
        try:
            name, form = typed_column(words)
            if name in made:
                raise ValueError(f"must name '{name}' once: put all of it after one --column")
        except ValueError as error:
            raise InputError(Arg("column"), f" {error}") from None
        made[name] = form
    return made


def source(name: str) -> str | Path:
    """Where the data are: a connection string stays text, all else is a path."""
    return name if "://" in name else Path(name)


# fmt: off
_MOMENT = Kind("a number or a date", plain=_moment)
FILE = Kind("the name of a file, in quotes", shape={"metavar": "FILE"},
            plain=lambda value: Path(TEXT.read(value)))
SOURCE = Kind("the name of a file, or a connection string, in quotes",
              plain=lambda value: source(TEXT.read(value)))
RANGE = Kind("two times, [start, end], numbers or dates such as 2024-01-31",
             plain=several(_MOMENT, least=2, most=2),
             shape={"nargs": 2, "metavar": ("START", "END")})
TIMES = Kind("a list of numbers or of dates such as 2024-01-31", plain=several(_MOMENT),
             shape={"nargs": "+", "metavar": "T"})
FEATURES = Kind('a list of columns with their bounds, such as [["height", 40, 210]]',
                plain=several(TEXT, NUMBER, NUMBER),
                shape={"nargs": 3, "action": "append", "metavar": ("NAME", "LOW", "HIGH")})
COLUMNS = Kind('a table for each, such as columns.sex = { kind = "category", values = ["F", "M"] }',
               plain=_columns, typed=_typed_columns,
               shape={"nargs": "+", "action": "append", "metavar": ("NAME KIND", "SETTING")})
CSV = Kind('settings of a CSV file, such as csv.decimal = ","', plain=_settings,
           typed=_typed_settings,
           shape={"nargs": "+", "action": "append", "metavar": ("SETTING", "SETTING")})
LINE = Kind("one line of text, in quotes", plain=lambda value: TEXT.read(_plain(value)))
CONDITIONS = Kind('a list of columns with their value, such as ["sex=F"]', plain=several(TEXT),
                  shape={"action": "append", "metavar": "COL=VALUE"})


# The choices ----------------------------------------------------------------------------------

_DATA = (
    Option("data", SOURCE, example="clinic.csv", metavar="DATA", placed=True, about=
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
           unless=("columns",),
           more="Take the bounds from general knowledge (a chart, a map, a device's range), never "
           "from these data: the smallest and the largest value are those of two persons, and "
           "bounds are published with the model. Wide is safe, but blurs."),
    Option("columns", COLUMNS, each="column", about=
           "column of any kind and its public domain, as in: sex category values=F,M fixed; one "
           "or more", example={"sex": {"kind": "category", "values": ["F", "M"], "fixed": True}},
           more="Kinds: category and ordered have values, boolean needs nothing, number, integer "
           "and date have low and high, angle a period. Values too are from general knowledge (a "
           "code book, a form), never from these data: a rare one may be that of one person. Each "
           "may have "
           'missing = true, if records may lack it, and fixed = true, if it never changes; other '
           '= "other" takes all values of a category that are not named.'),
    Option("time_range", RANGE, example=[0.0, 20.0], about=
           "public first and last time, numbers or dates; records outside count at its ends",
           needed="it must be public knowledge, because a range taken from the data would reveal "
           "its earliest and latest people, unless --bin-times lists all times",
           unless=("bin_times",),
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
    Option("same_person", one_of("exact", "trimmed", "folded"), default="exact", about=
           "when two identifiers are one person's: as written (exact), without blanks around them "
           "(trimmed), with capitals as small letters, too (folded)"),
    Option("missing", one_of("refuse", "drop"), default="refuse", about=
           "records with missing values: refuse them, or leave them out (drop)"),
)
_NOT_PRIVATE = Option("not_private", BOOLEAN, default=False, about=
                      "write a result that is not private all the same (needed with a seed)")
DECLARED = (
    Option("title", LINE, "name of the release", example="Growth of children, 2024"),
    Option("controller", LINE, "who is responsible for the data", example="County Clinic"),
    Option("purpose", LINE, "what the release is for", example="teaching"),
    Option("date", LINE, "date of the release", example="2026-11-30"),
    Option("contact", LINE, "whom to ask about it", example="privacy@clinic.example"),
)
_LEDGER, _PEOPLE = ("ledger",), ("people",)
LEDGER = (
    Option("ledger", FILE, example="clinic.ledger", about=
           "file that records the budget before anything is released; fits on it add up"),
    Option("cap_epsilon", NUMBER, example=3.0, otherwise="as recorded last", beside=_LEDGER, about=
           "most that everything in the ledger may spend together"),
    Option("cap_delta", NUMBER, example=1e-4, about="the same for delta", beside=_LEDGER),
    Option("window_days", NUMBER, example=30.0, otherwise="as recorded last", beside=_LEDGER, about=
           "the cap is for what records of a person within any so many days pay for, instead of "
           "all of them"),
    Option("ledger_code", TEXT, example="5-0123456789abcdef", metavar="CODE", beside=_LEDGER, about=
           "code that an earlier fit printed, from which the ledger must go on"),
    Option("new_people", BOOLEAN, default=False, beside=_LEDGER, about=
           "your word, which nothing checks, that nobody in these records is among the people of "
           "the ledger: if it is wrong, whoever is in both has the sum of what is spent"),
    Option("people", FILE, example="clinic.people", beside=("people_key", "ledger", "person"),
           about=
           "file of keyed hashes of identifiers beside the ledger, by which it is checked that "
           "nobody is in an earlier batch; each batch then has a budget of its own"),
    Option("people_key", FILE, example="clinic.key", beside=_PEOPLE, about=
           "your secret key for it, made by 'privtraj people --new-key FILE'"),
    Option("returning", one_of("refuse", "skip", "pay"), default="refuse", beside=_PEOPLE, about=
           "people of earlier batches: refuse the table, leave out their records (skip), or let "
           "them pay for each batch that they are in"),
    Option("most_batches", whole(1), default=1, beside=_PEOPLE, about=
           "with --returning pay: in how many batches, or batches of a window, a person may be; "
           "public"),
)
_OUTPUT = (
    Option("out", FILE, example="model.privtraj", about="the model, named .privtraj",
           needed="it names the file to write", writes=(".privtraj",)),
    Option("certificate", FILE, example="certificate.json", about="the certificate, as .json",
           writes=(".json",)),
    Option("force", BOOLEAN, default=False, about="replace existing files"),
    Option("json", BOOLEAN, default=False, about="print the result as one JSON object"),
    Option("quiet", BOOLEAN, default=False, about="show no progress"),
)
MODEL = Option("model", FILE, "model file that fit has written", metavar="MODEL", placed=True,
               needed="a model")
# fmt: on


@dataclass(frozen=True)
class Group:
    """Choices that belong together."""

    title: str
    options: tuple[Option, ...]
    about: str = ""


PRIVACY, MOTION, ADVANCED = map(recipe.options, ("privacy", "motion", "advanced"))
PRIVACY = tuple(replace(one, kind=KIND) if one.name == "measure" else one for one in PRIVACY)
GROUPS = (
    Group("data", _DATA, "the columns to use, and what is public about them"),
    Group("privacy", (*PRIVACY, _NOT_PRIVATE), "what the result may reveal of a person"),
    Group("declared", DECLARED, "what the certificate says in your words, signed and not checked"),
    Group("ledger", LEDGER, "for more than one fit on the same people"),
    Group("motion", MOTION, "how people move, which costs no privacy"),
    Group("output", _OUTPUT, "what to write"),
    Group("advanced", ADVANCED, "chosen from public and released numbers where left out"),
)
OPTIONS = {option.name: option for group in GROUPS for option in group.options}


def changed(name: str, about: str = "", **words: Any) -> Option:
    """A choice of fit, of which another command says something else."""
    option = OPTIONS[name]
    return replace(option, about=about or option.about, **words)


def other(groups: Iterable[Group], **changes: Mapping[str, Any] | None) -> Iterator[Group]:
    """The same groups, where some choices are said otherwise, or left out (None)."""
    for group in groups:
        kept = (option for option in group.options if changes.get(option.name, {}) is not None)
        made = (replace(option, **(changes.get(option.name) or {})) for option in kept)
        yield replace(group, options=tuple(made))


def budget() -> tuple[Option, ...]:
    """The two numbers of the guarantee, where they need not be chosen."""
    names = ("epsilon", "delta")
    return tuple(changed(name, default=OPTIONS[name].example, needed="") for name in names)


def writing(force: str = "replace an existing file") -> tuple[Option, ...]:
    """What every command can be told that writes something.  force: what that does."""
    return changed("force", force), OPTIONS["json"], OPTIONS["quiet"]


def arguments(function: Callable[..., Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Those choices that a function of the library takes by name, as far as they are made."""
    numbers, others = chosen.get("feature") or [], chosen.get("columns") or {}
    made = {
        **chosen,
        "features": [*(name for name, _, _ in numbers), *others],
        "bounds": {name: (low, high) for name, low, high in numbers},
        "bins": chosen.get("bin_times") or chosen.get("bins"),
    }
    names = inspect.signature(function).parameters
    return {name: made[name] for name in names if made.get(name) is not None}
