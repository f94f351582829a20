"""Before a fit: `privtraj init`, `check` and `plan`.

`init` writes a configuration to fill in. Only names and kinds of columns and, of CSV, how cells are
written are looked for, and only they are written: no count, no range, no category, nor how many
there are, and no value but codes of a public list that seem to mean missing. The steward keeps or
removes what is guessed, and a fit knows nothing but the file. `data.detection` says how a CSV file
is guessed. Its notes, which count cells, are for the terminal of whoever may see the data. `check`
is the steward's own look at a table against what is declared, and `plan` says what quality to
expect before anything is read.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from privtraj import recipe
from privtraj.base.errors import InputError, aligned
from privtraj.cli import config, fit, shared
from privtraj.cli.console import PLAINLY_WRONG, Console
from privtraj.cli.options import FILE, GROUPS, OPTIONS, Group, budget, changed, other, writing
from privtraj.recipe import BOOLEAN, NUMBER, TEXT, Option, one_of, whole

# A configuration to fill in -------------------------------------------------------------------

_OUT = changed("out", "file to write, .toml", needed="", default=Path("privtraj.toml"), short="-o",
               writes=config.SUFFIXES)  # fmt: skip
_LOOKED = "names and kinds of columns and, of CSV, how numbers and dates are written"


@shared.command(
    Group("data", (OPTIONS["data"], OPTIONS["query"]), _LOOKED),
    Group("output", (_OUT, *writing())),
)
def init(args: argparse.Namespace, console: Console) -> None:
    """Write a commented configuration for fit to fill in, without showing any of the data.

    examples:
      privtraj init clinic.csv -o fit.toml
      privtraj init postgresql://host/clinic --query visits -o fit.toml

    then fill in the file and run:
      privtraj fit --config fit.toml
    """
    from privtraj.data import detection, sql

    found = None  # how the first of the files that a path means is written, if it is CSV
    if isinstance(args.data, Path) and args.query is None:
        first = sql.files_of(args.data)[0]
        found = detection.detect(first) if detection.is_csv(first) else None
    columns = sql.columns_of(args.data, args.query) if found is None else found.kinds
    known = {"data": args.data, "query": args.query, "csv": (found and found.settings) or None}
    for note in found.notes() if found else ():
        console.note(note)
    shared.note_left_out(args.data, args.out, "to fit on the command line", console)
    forms = found.forms if found else {}
    if found and found.constant:
        known["constant"] = [[name, "<value>"] for name in found.constant]
    console.write(template(columns, known, args.out, forms), args.out, args.force)
    values: dict[str, Any] = {"config": str(args.out), "columns": dict(columns)}
    shown = ""
    if found is not None:
        values |= {"csv": found.settings, "units": found.units}
        shown = f"{args.data} has {found.dialect}\n"
    text = (
        f"{shown}{len(columns)} columns, by name and kind, in {args.out}: fill in what is in "
        "<angle brackets>, check what is guessed\n\n"
        f"Next: privtraj fit --config {shlex.quote(str(args.out))}"
    )
    console.result({"command": "init", **values} | asdict(guess_roles(columns)), text)


def template(
    columns: Sequence[tuple[str, str]],
    known: Mapping[str, Any],
    path: str | Path,
    forms: Mapping[str, dict[str, Any]] = MappingProxyType({}),
) -> str:
    """A configuration to fill in, made from names and kinds of columns, and settings of some.

    columns: (name, kind), the kind as `arrow.kinds_of` has it.
    known: choices that are made already, such as the data file.
    forms: {name: settings}, such as {"missing": True}, of columns that seem to need them.
    """
    from privtraj.data.arrow import unit_of

    alike = [name for name, _ in known.get("constant", ())]
    roles = guess_roles([one for one in columns if one[0] not in alike])
    head = [
        f"Every public choice of a fit. Fill in what is in <angle brackets>, check what is guessed "
        f"from names, remove the columns that are not wanted, then run: privtraj fit --config "
        f"{Path(path).name}",
        "A choice is public if you would have made the same one had any one person stayed away. "
        "Bounds, values, times and budget are published with the model, so none may be read off "
        "the data. Options on the command line win over this file, and files are found from its "
        "folder.",
        "The columns, by name, kind and unit; no value of the data is in this file but codes of a "
        "public list that seem to mean missing:",
    ]
    forms = {name: forms[name] for name in (*roles.features, *roles.kinds) if name in forms}
    kinds = {name: "number" for name in roles.features if name in forms} | roles.kinds
    guesses = {roles.time: "time?", roles.person: "person?"}
    guesses |= dict.fromkeys(alike, "constant?")
    guesses |= {
        name: " ".join(f"{w}?" for w in (k, *forms.get(name, {}))) for name, k in kinds.items()
    }
    rows = []
    for name, kind in columns:
        shown = name if name.isprintable() else config.quoted(name)
        unit, guess = unit_of(name), "feature?" if name in roles.features else ""
        rows.append((shown, kind, f"in {unit}" if unit else "", guesses.get(name, guess)))
    listing = [f"#   {line}" for line in aligned(rows)]
    numbers = [name for name in roles.features if name not in kinds]
    if not (numbers or kinds):
        numbers = ["<column>"]
    guessed = {
        "time": roles.time or "<column>",
        "person": roles.person,
        "feature": [[name, "<low>", "<high>"] for name in numbers] or None,
        "columns": {n: _form(n, kind) | forms.get(n, {}) for n, kind in kinds.items()} or None,
        "monotone": list(roles.rising) or None,
        "time_range": ["<start>", "<end>"],
        "epsilon": "<epsilon>",
        "delta": "<delta>",
        "out": "model.privtraj",
        "certificate": "certificate.json",
    }
    lines = [line for paragraph in head for line in config.comment(paragraph)]
    return config.page([*lines, *listing], {**guessed, **known}, path)


def _form(name: str, kind: str) -> dict[str, Any]:
    """A column of this kind, its domain to be filled in."""
    domains = {"boolean": (), "category": ("values",)}
    form = {word: f"<{word}>" for word in domains.get(kind, ("low", "high"))}
    return {"kind": kind, **form, **({"fixed": True} if _words(name) & _FIXED_NAMES else {})}


# Guessing by name -----------------------------------------------------------------------------

_TIME_NAMES = {
    "time", "date", "datetime", "timestamp", "day", "hour", "week", "month", "year", "age", "when",
    "since", "pseudotime", "timepoint",
}  # fmt: skip
_UNIT_NAMES = {"days", "hours", "months", "years"}  # "stay_days" is a length, "days" says when
_PERSON_NAMES = {
    "id", "person", "patient", "subject", "participant", "individual", "user", "userid", "donor",
    "child", "pid", "uid", "uuid", "mrn", "member", "customer", "device", "animal", "mouse",
}  # fmt: skip
_RECORD_NAMES = {  # an id of these is another one in every record, whoever it is about
    "visit", "record", "sample", "row", "event", "encounter", "admission", "order", "trip",
    "measurement", "observation", "cell", "index", "session",
}  # fmt: skip
_FIXED_NAMES = {  # what never changes, so that a date of these does not say when a record was taken
    "sex", "gender", "birth", "birthday", "birthdate", "dob", "born", "ethnicity", "race",
}  # fmt: skip


_CODE_NAMES = {  # numbers of which no sum means anything
    "zip", "zipcode", "postcode", "postal", "plz", "cap", "ward", "icd", "fips",
}  # fmt: skip


@dataclass(frozen=True)
class Roles:
    """Guesses: the columns that say when and who, and those that are left.

    features: numbers.  kinds: {name: kind} of the others, as the configuration has it.
    rising: ages beside another time, which never fall.
    """

    time: str | None
    person: str | None
    features: tuple[str, ...]
    kinds: dict[str, str] = field(default_factory=dict)
    rising: tuple[str, ...] = ()


def guess_roles(columns: Sequence[tuple[str, str]]) -> Roles:
    """By name and kind: a date, or a number named like a time, says when; "id" says who."""
    dates = [n for n, kind in columns if kind == "date" and not _words(n) & _FIXED_NAMES]
    numbers = [name for name, kind in columns if kind in ("number", "integer")]
    times = dates + [n for n in numbers if _says_when(n)]
    time = times[0] if times else None
    ids = [n for n, kind in columns if kind != "date" and n != time and _words(n) & _PERSON_NAMES]
    people = [name for name in ids if not _words(name) & _RECORD_NAMES]
    rising = tuple(name for name in numbers if "age" in _words(name) and name != time)
    used = {time, *ids, *(name for name in times if name in numbers and name not in rising)}
    left = {name: kind for name, kind in columns if name not in used}
    codes = {name for name in left if _words(name) & _CODE_NAMES}
    features = tuple(name for name, kind in left.items() if kind == "number" and name not in codes)
    named = {"text": "category"} | dict.fromkeys(codes, "category")  # as a configuration has it
    others = {
        name: named.get(name) or named.get(kind, kind)
        for name, kind in left.items()
        if name not in features
    }
    return Roles(time, people[0] if people else None, features, others, rising)


def _says_when(number: str) -> bool:
    words = _words(number)
    return bool(words & _TIME_NAMES) or words <= _UNIT_NAMES | {"t"}


def _words(name: str) -> set[str]:
    """ "patientId" and "patient_id" are patient and id."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return set(re.split(r"[^a-z]+", spaced.lower()))


# A look at the table --------------------------------------------------------------------------

_LOOK = [each for each in GROUPS if each.title in ("data", "privacy", "motion", "advanced")]


@shared.command(
    Group("configuration", (fit.CONFIG,), "all of the options below, in a file"),
    *other(_LOOK, epsilon={"needed": ""}, delta={"needed": ""}, seed=None, not_private=None),
    Group("output", (OPTIONS["json"],)),
)
def check(args: argparse.Namespace, console: Console) -> int:
    """Look at your own table before anything is spent; never for release.

    examples:
      privtraj check clinic.csv --time age --person id \\
          --feature height 40 210 --feature weight 1 140 --time-range 0 20
      privtraj check --config fit.toml

    It counts records outside the ranges, cells that cannot be read, people who are there twice.
    What it prints is about raw records: never for release.

    exit codes: 0, fit would take the table and no range is plainly wrong; 3, one is, or fit would
    not; 2, bad input
    """
    found = shared.looked(vars(args))
    console.result({"command": "check", **found.to_dict(typed=True)}, found.text(typed=True))
    return 0 if found.fine else PLAINLY_WRONG


# A forecast -----------------------------------------------------------------------------------

_SHARED = ("epsilon", "delta", "adjacency", "measure", "public_counts", "records_per_person")
_SET = tuple(option.name for option in recipe.options("advanced"))
_COLUMNS = ("features", "columns", "feature")
# fmt: off
_DATA = (
    Option("people", whole(2), "how many there are, at all times together; a round number will do",
           needed="about how many people there are, at all times together"),
    Option("features", whole(1), "columns of numbers, without the time and those of --column",
           needed="the number of columns to use, here or as feature or columns in a --config FILE",
           unless=_COLUMNS[1:]),
    OPTIONS["columns"],
    Option("times", whole(2), otherwise="any time", about=
           "at how many times all records are, such as days of an experiment"),
    changed("records_per_person", "most records of a person that are used"),
    Option("config", FILE,
           "file of 'privtraj init': features, budget and settings are taken from it"),
)
_BATCHES = (
    Option("every", one_of("day", "week", "month", "quarter", "year"),
           "plan a batch of --people so often, instead of one fit"),
    Option("for", TEXT, "for how long: 3y, 18m, 8w or 90d", metavar="TIME", beside=("every",)),
    Option("budget", NUMBER, "epsilon of all batches of a year, or of --window-days, together, at "
           "delta", otherwise="--epsilon for each", beside=("every",)),
    changed("window_days", otherwise="", beside=("every",)),
    changed("most_batches", otherwise="", default=None, beside=("every",)),
)
_PRIVACY = (
    *budget(), OPTIONS["adjacency"], OPTIONS["measure"],
    Option("public_counts", BOOLEAN,
           "the number of people in each bin is public knowledge; only with replace-one"),
)
_OUTPUT = (
    Option("no_cache", BOOLEAN, "simulate again, and keep nothing for the next time"),
    *writing()[1:],
)
# fmt: on


@shared.command(
    Group("data", _DATA, "what is public about them"),
    Group("batches", _BATCHES, "of people who come later"),
    Group("privacy", _PRIVACY),
    Group("output", _OUTPUT),
    configured=(*_SHARED, *_SET, *_COLUMNS, "data", "query", "time", "person"),
    instead=_COLUMNS,
)
def plan(args: argparse.Namespace, console: Console) -> None:
    """Forecast the quality of a fit by simulation: no data are read, nothing is spent.

    examples:
      privtraj plan --people 6000 --features 2 --epsilon 1 --delta 1e-5
      privtraj plan --people 6000 --config fit.toml
      privtraj plan --people 6000 --features 2 --column sex category values=F,M fixed \\
          --column smoker boolean --epsilon 1 --delta 1e-5
      privtraj plan --people 300 --features 2 --every month --for 3y --budget 2
    """
    from privtraj.assess import plan as plans

    asked = forecast_of(vars(args))

    @cache  # a bar, and heavy parts that are loaded, only if the answer is not known yet
    def bar() -> Callable[[int, int], None]:
        shared.keep_compiled()
        return console.progress("simulating")

    asked |= {"keep": not args.no_cache, "progress": lambda done, total: bar()(done, total)}
    later = {"days": args.window_days, "most": args.most_batches, "budget": args.budget}
    if args.every is None:
        forecast: Any = plans.plan(**asked)
    else:
        typed = re.fullmatch("([1-9][0-9]{0,2})([dwmy])", getattr(args, "for") or "")
        if typed is None:
            raise InputError("--every needs --for TIME, such as 3y, 18m, 8w or 90d")
        unit = {"d": "day", "w": "week", "m": "month", "y": "year"}[typed[2]]
        batches = round(int(typed[1]) * plans.PERIODS[unit] / plans.PERIODS[args.every])
        later = {name: value for name, value in later.items() if value is not None}
        forecast = plans.horizon(every=args.every, batches=max(batches, 1), **later, **asked)
    console.result({"command": "plan", **forecast.to_dict()}, str(forecast))


def forecast_of(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked of a plan: people, times and columns, budget and settings of a fit."""
    names = ("people", "features", "times", *_SHARED, *_SET)
    asked = {name: chosen[name] for name in names if chosen.get(name) is not None}
    if "public_counts" in asked:  # in a configuration, the numbers themselves
        asked["public_counts"] = True
    if chosen["columns"]:
        asked["columns"] = shared.columns(chosen)
    elif chosen.get("feature"):
        asked["features"] = len(chosen["feature"])
    return asked
