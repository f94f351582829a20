"""`privtraj init`: write a configuration for `privtraj fit` to fill in.

Only names and kinds of columns and, of CSV, how cells are written are looked for, and only they are
written: no value, no count, no range, no category, nor how many there are. `data.detection` says
how a CSV file is guessed. Its notes, which count cells, are for the terminal of whoever may see the
data.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.base.errors import aligned
from privtraj.cli import config, shared
from privtraj.cli.console import Console
from privtraj.cli.options import OPTIONS, source

if TYPE_CHECKING:
    from privtraj.data.detection import Detected

_EXAMPLE = """\
examples:
  privtraj init clinic.csv -o fit.toml
  privtraj init postgresql://host/clinic --query visits -o fit.yaml

then fill in the file and run:
  privtraj fit --config fit.toml"""


def add(commands: Any) -> None:
    about = "write a commented configuration for fit to fill in, without showing any of the data"
    usage = "privtraj init DATA [-o FILE] [options]"
    init = shared.command(commands, "init", about, run, usage=usage, epilog=_EXAMPLE)
    about = "names and kinds of columns and, of CSV, how numbers and dates are written"
    data = init.add_argument_group("data", about)
    data.add_argument("data", metavar="DATA", type=source, help=OPTIONS["data"].about)
    shared.add(data, "query")
    output = init.add_argument_group("output")
    text = "file to write, .toml or .yaml"
    shared.add(output, "out", about=text, needed="", default=Path("privtraj.toml"), short="-o")
    shared.add_common_options(output, "replace an existing file")


def run(args: argparse.Namespace, console: Console) -> None:
    shared.check_output(args.out, config.SUFFIXES, args.force)
    from privtraj.data import sql

    named = isinstance(args.data, Path) and args.query is None
    found = _written_as(args.data) if named else None
    columns = sql.columns_of(args.data, args.query) if found is None else found.kinds
    known = {"data": args.data, "query": args.query, "csv": (found and found.settings) or None}
    for note in found.notes() if found else ():
        console.note(note)
    shared.note_left_out(args.data, args.out, "to fit on the command line", console)
    console.write(template(columns, known, args.out), args.out, args.force)
    roles = guess_roles(columns)
    values = {
        "command": "init",
        "config": str(args.out),
        "columns": dict(columns),
        **({} if found is None else {"csv": found.settings, "units": found.units}),
        **asdict(roles),
    }
    shown = "" if found is None else f"{args.data} has {found.dialect}\n"
    text = (
        f"{shown}{len(columns)} columns, by name and kind, in {args.out}: fill in what is in "
        "<angle brackets>, check what is guessed\n\n"
        f"Next: privtraj fit --config {shlex.quote(str(args.out))}"
    )
    console.result(values, text)


def _written_as(path: Path) -> Detected | None:
    """How the first of the files that a path means is written, if it is CSV."""
    from privtraj.data import detection, sql

    first = sql.files_of(path)[0]
    return detection.detect(first) if detection.is_csv(first) else None


def template(columns: Sequence[tuple[str, str]], known: Mapping[str, Any], path: str | Path) -> str:
    """A configuration to fill in, made from names and kinds of columns alone.

    columns: (name, kind), the kind as `arrow.kinds_of` has it.
    known: choices that are made already, such as the data file.
    """
    from privtraj.data.arrow import unit_of

    roles = guess_roles(columns)
    head = [
        f"Every public choice of a fit. Fill in what is in <angle brackets>, check what is guessed "
        f"from names, remove the columns that are not wanted, then run: privtraj fit --config "
        f"{Path(path).name}",
        "A choice is public if you would have made the same one had any one person stayed away. "
        "Bounds, values, times and budget are published with the model, so none may be read off "
        "the data. Options on the command line win over this file, and files are found from its "
        "folder.",
        "The columns, by name, kind and unit; no value of the data is in this file:",
    ]
    names = [name if name.isprintable() else config.quoted(name) for name, _ in columns]
    units = (f"in {unit}" if unit else "" for unit in (unit_of(name) for name, _ in columns))
    kinds = [(kind, roles.of(name)) for name, kind in columns]
    rows = [
        (s, kind, unit, role) for s, unit, (kind, role) in zip(names, units, kinds, strict=True)
    ]
    listing = [f"#   {line}" for line in aligned(rows)]
    numbers = roles.features or (() if roles.kinds else ("<column>",))
    guessed = {
        "time": roles.time or "<column>",
        "person": roles.person,
        "feature": [[name, "<low>", "<high>"] for name in numbers] or None,
        "columns": {name: _form(name, kind) for name, kind in roles.kinds.items()} or None,
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
    "time", "date", "datetime", "timestamp", "day", "days", "hour", "hours", "week", "month",
    "months", "year", "years", "age", "when", "pseudotime", "timepoint",
}  # fmt: skip
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
_KINDS = {"text": "category"}  # of a table, by the name that a configuration has


@dataclass(frozen=True)
class Roles:
    """Guesses: the columns that say when and who, and those that are left.

    features: numbers.  kinds: {name: kind} of the others, as the configuration has it.
    """

    time: str | None
    person: str | None
    features: tuple[str, ...]
    kinds: dict[str, str] = field(default_factory=dict)

    def of(self, name: str) -> str:
        known = {self.time: "time?", self.person: "person?"}
        known |= {column: f"{kind}?" for column, kind in self.kinds.items()}
        return known.get(name, "feature?" if name in self.features else "")


def guess_roles(columns: Sequence[tuple[str, str]]) -> Roles:
    """By name and kind: a date, or a number named like a time, says when; "id" says who."""
    dates = [n for n, kind in columns if kind == "date" and not _words(n) & _FIXED_NAMES]
    numbers = [name for name, kind in columns if kind in ("number", "integer")]
    times = dates + [name for name in numbers if _is_time(name)]
    time = times[0] if times else None
    ids = [n for n, kind in columns if kind != "date" and n != time and _words(n) & _PERSON_NAMES]
    people = [name for name in ids if not _words(name) & _RECORD_NAMES]
    used = {time, *ids, *(name for name in times if name in numbers)}
    left = {name: kind for name, kind in columns if name not in used}
    features = tuple(name for name, kind in left.items() if kind == "number")
    others = {name: _KINDS.get(kind, kind) for name, kind in left.items() if name not in features}
    return Roles(time, people[0] if people else None, features, others)


def _is_time(name: str) -> bool:
    return bool(_words(name) & _TIME_NAMES) or name.lower() == "t"


def _words(name: str) -> set[str]:
    """ "patientId" and "patient_id" are patient and id."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return set(re.split(r"[^a-z]+", spaced.lower()))
