"""Every mistake a user can make, in two tables, with the whole message that explains it.

`mistakes/command_line.txt` holds commands, `mistakes/python.txt` holds calls of the library. A row
is a name, then a line after `$` or `>>>` that is run in the folder that `mistakes/folder.py` fills,
then the message. The last test finds every place in the library that explains a mistake, and wants
a row that ends there: whoever adds a message adds a row.
"""

import ast
import dataclasses
import pickle
import re
import shlex
import sys
from pathlib import Path
from string import Template
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import privtraj as pt
from privtraj import cli, datasets, metrics, paper, plot
from privtraj.audit import attack
from privtraj.base import errors
from privtraj.base.errors import Arg, InputError, Said
from privtraj.cli import entry
from privtraj.privacy import signatures

for package in [
    "anndata",
    "cryptography",
    "duckdb",
    "geopandas",
    "ibis",
    "movingpandas",
    "polars",
]:
    pytest.importorskip(package)  # mistakes are made with all of them

from mistakes.folder import SECRETS, fill, snapshots  # noqa: E402

SOURCE = Path(pt.__file__).parent


# The tables -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Row:
    """A mistake. without: a package that is not there."""

    name: str
    typed: str
    message: str
    without: str | None


def _rows(file, prompt):
    """Rows by name; short stands for what several rows have in common, as in a shell."""
    text = (Path(__file__).parent / "mistakes" / file).read_text(encoding="utf-8")
    short, rows = {}, {}
    for block in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in block.splitlines() if not line.startswith("#")]
        if not lines:
            continue
        if "=" in lines[0].split(" ")[0]:
            for line in lines:
                word, _, meaning = line.partition("=")
                short[word] = Template(meaning).substitute(short)
            continue
        name, typed, *message = lines
        assert typed.startswith(prompt), name
        assert name not in rows, name
        found = re.fullmatch(r"(?:WITHOUT=(\w+) )?(.*)", typed.removeprefix(prompt).strip())
        line = Template(found[2]).substitute(short)
        rows[name] = Row(name, line, " ".join(message), found[1])
    return rows


COMMANDS = _rows("command_line.txt", "$")
CALLS = _rows("python.txt", ">>>")


# One row, one test ----------------------------------------------------------------------------

REACHED = set()  # places in the library that a row ends at
DONE = set()  # rows that were run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes")
    fill(folder)
    return folder


@pytest.fixture
def made(monkeypatch):
    """The errors made while a row runs, each with the place it was made at."""
    found = []

    def remember(self, *args):
        Exception.__init__(self, *args)
        frame = sys._getframe(1)
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(SOURCE):
            found.append((self, file.relative_to(SOURCE).as_posix(), frame.f_lineno))

    monkeypatch.setattr(errors.PrivtrajError, "__init__", remember)
    return found


def _files(folder):
    return {
        path: path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if "__pycache__" not in path.parts
    }


def _reached(row, made, shown):
    """Note the place whose message was shown, not those whose error was caught on the way."""
    for error, file, line in made[::-1]:
        if shown(error) == row.message:
            REACHED.add((file, line))
            return


@pytest.mark.parametrize("name", COMMANDS)
def test_a_mistake_on_the_command_line(name, folder, made, capsys, monkeypatch):
    row = COMMANDS[name]
    DONE.add(row)
    monkeypatch.chdir(folder)
    before = _files(folder)
    if row.without:
        monkeypatch.setitem(sys.modules, row.without, None)
    code = cli.main(shlex.split(row.typed)[1:])
    shown = capsys.readouterr()
    assert shown.err == f"privtraj: error: {row.message}\n"
    assert (code, shown.out) == (2, "")
    assert not any(secret in shown.err for secret in SECRETS)
    assert _files(folder) == before
    _reached(row, made, errors.PrivtrajError.typed)


class _Names(dict):
    """What the calls may use; what takes time is made when it is first asked for."""

    def __missing__(self, name):
        return self.setdefault(name, LATER[name]())


def _forbidden(call):
    """The call, by somebody who may neither read nor write; root may do everything."""
    refuse = mock.patch("builtins.open", side_effect=PermissionError)
    with mock.patch("os.access", return_value=False), refuse:
        return call()


def _paths(*features):
    times = np.arange(0, 20.5, 5.0)
    return pt.Paths(np.ones((3, len(times), len(features))), times, features, "age", False)


LATER = {
    "model": lambda: pt.load("model.privtraj"),
    "seeded": lambda: pt.load("seeded.privtraj"),
    "certificate": lambda: pt.load("model.privtraj").certificate.to_dict(),
    "paths": lambda: _paths("height"),
    "places": lambda: _paths("lon", "lat"),
    "moving": lambda: dataclasses.replace(_paths("lon", "lat"), datetime=True),
    "reserved": lambda: pt.LedgerFile("known.ledger").summary()["entries"][0]["id"],
}


@pytest.fixture(scope="module")
def names():
    modules = (attack, dataclasses, datasets, metrics, paper, plot)
    named = {module.__name__.rpartition(".")[2]: module for module in modules}
    named["signatures"] = signatures
    return _Names(named, pt=pt, np=np, pd=pd, snapshots=snapshots, forbidden=_forbidden)


@pytest.mark.parametrize("name", CALLS)
def test_a_mistake_in_python(name, folder, names, made, monkeypatch):
    row = CALLS[name]
    DONE.add(row)
    monkeypatch.chdir(folder)
    if row.without:
        monkeypatch.setitem(sys.modules, row.without, None)
    before = _files(folder)
    with pytest.raises(errors.PrivtrajError) as refused:
        eval(row.typed, names)
    assert str(refused.value) == row.message
    assert not any(secret in row.message for secret in SECRETS)
    assert _files(folder) == before
    _reached(row, made, str)


# The words ------------------------------------------------------------------------------------

NAMED = r"--[a-z]|'[^']+'|\b(MODEL|TABLE|DATA|FILE|ACTION|NAME)\b|\bthe table\b|pip install"
START = r"-|'|\d|[a-z]|(MODEL|TABLE|DATA|FILE|ACTION|NAME|PyYAML)\b"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_message_is_one_plain_sentence_that_names_what_to_change(name):
    message = COMMANDS[name].message
    assert len(message) <= 300
    assert not re.search(r"\.$|\. [A-Z]|\n|\t|  ", message)
    assert re.match(START, message)
    assert re.search(NAMED, message)
    message = re.sub(r"--csv( \w+=\S+)+", "--csv", message)  # settings are typed so
    assert not re.search(r"[a-z]=|\bTrue\b|\bFalse\b|\bNone\b|\(\)|[Pp]ython|argument", message)


@pytest.mark.parametrize(
    ("part", "python", "typed"),
    [
        (Arg("time_range"), "time_range", "--time-range"),
        (Arg("person="), "person=", "--person"),
        (Arg("missing", "drop"), "missing='drop'", "--missing drop"),
        (Arg("rate", 1), "rate=1", "--rate 1"),
        (Arg("new_people", True), "new_people=True", "--new-people"),
        (Arg("bins", option="bin_times"), "bins", "--bin-times"),
        (Said("sample more times", "raise --at"), "sample more times", "raise --at"),
        ("'visits/new_people=True/cap_delta.csv'",) * 3,
    ],
)
def test_only_arguments_are_said_as_options(part, python, typed):
    error = InputError("use ", part, " here")
    assert (str(error), error.typed()) == (f"use {python} here", f"use {typed} here")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


# The first words ------------------------------------------------------------------------------


def test_privtraj_alone_shows_every_command_in_order_and_what_to_do_next(capsys):
    assert cli.main([]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    (commands,) = entry.full_parser()._subparsers._group_actions
    listed = [re.fullmatch(r"    ([a-z]+) +(\S.*)", line) for line in lines]
    assert [line[1] for line in listed if line] == list(commands.choices)
    assert len({line.start(2) for line in listed if line}) == 1
    assert max(map(len, lines)) <= 80
    assert lines[-3].startswith("New here? ")
    assert shown.err == ""


# The tables are complete ----------------------------------------------------------------------


def _sites():
    """(file, first line, last line, function) of every call that makes an error for the user."""
    for path in sorted(SOURCE.rglob("*.py")):
        file = path.relative_to(SOURCE).as_posix()
        yield from _sites_in(ast.parse(path.read_text(encoding="utf-8")), file, "")


def _sites_in(node, file, function):
    for child in ast.iter_child_nodes(node):
        inside = getattr(child, "name", "") if isinstance(child, ast.FunctionDef) else function
        if isinstance(child, ast.Call) and getattr(child.func, "id", "") in ERRORS:
            yield file, child.lineno, child.end_lineno, inside
        yield from _sites_in(child, file, inside)


ERRORS = ("InputError", "BudgetError")
CORE = "behind the guard, where a user's settings do not get unchecked: tests/privacy"
ELSEWHERE = {
    "motion/growth.py:from_dict": "a file, told in other words: tests/growth",
    "data/sql_rows.py:_changed": "records that change while they are read: tests/data",
    "data/sql.py:_saying": "needs a small machine: tests/data",
    "measures/tables.py:refuses": "a recipe without delta is refused before: tests/measures",
    "paper/warm_starts.py": "called by the library with what it has made: tests/paper",
    "privacy/accounting.py": CORE,
    "privacy/ledger.py": CORE,
    "privacy/events.py": CORE,
    "privacy/guard.py": CORE,
    "privacy/sums.py": CORE,
    "privacy/ledger_file.py:__post_init__": "a line of a ledger, never shown: tests/privacy",
    "privacy/ledger_file.py:_check_texts": "the same",
    "privacy/ledger_file.py:_claim": "a batch that was begun: tests/stream",
    "stream/batches.py": "needs a model and a batch: tests/stream",
    "stream/extend.py": "needs a model and a batch: tests/stream",
    "paper/trace.py": "of a run that is watched: tests/paper",
    "privacy/certificate.py:verify": CORE,
    "privacy/certificate.py:_day": CORE,
    "stream/people.py": "needs batches before it: tests/stream",
    "stream/watch.py": "needs a batch that was begun: tests/stream",
    "cli/watch.py:make": "a file that changes while it is read",
    "privacy/noise.py": CORE,
    "privacy/pairs.py": CORE,
    "privacy/certificate.py:certify_disjoint": CORE,
}


@pytest.mark.slow
def test_every_mistake_has_a_row():
    if {*COMMANDS.values(), *CALLS.values()} - DONE:
        pytest.skip("only some rows were run")
    missed = {
        f"{file}:{function}, line {first}"
        for file, first, last, function in _sites()
        if not any(file == f and first <= line <= last for f, line in REACHED)
    }
    known = {place: {site for site in missed if site.startswith(place)} for place in ELSEWHERE}
    without_row = sorted(missed - set().union(*known.values()))
    assert not without_row, "\n".join(without_row)
    assert [place for place, sites in known.items() if not sites] == []
