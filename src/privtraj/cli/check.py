"""`privtraj check`: the steward's own look at a table against what is declared, before any fit."""

from __future__ import annotations

import argparse
from typing import Any

from privtraj.cli import fit, shared
from privtraj.cli.console import PLAINLY_WRONG, Console
from privtraj.cli.options import FILE, GROUPS, Option, arguments

_EXAMPLE = """\
examples:
  privtraj check clinic.csv --time age --person id \\
      --feature height 40 210 --feature weight 1 140 --time-range 0 20
  privtraj check --config fit.toml

It counts records outside the ranges, cells that cannot be read, people who are there twice, and
says what fit would do. What it prints is about raw records: never for release.

exit codes: 0, fit would take the table and no range is plainly wrong; 3, one is, or fit would not;
2, bad input"""

_TITLES = ("data", "privacy", "advanced")
_LEFT_OUT = ("seed", "not_private")  # nothing is drawn


def add(commands: Any) -> None:
    about = "look at your own table before anything is spent; never for release"
    usage = "privtraj check DATA [options]"
    check = shared.command(commands, "check", about, run, usage=usage, epilog=_EXAMPLE)
    text = "TOML or YAML file of a fit; options on the command line win"
    shared.add(
        check.add_argument_group("configuration", "all of the options below, in a file"),
        Option("config", FILE, text),
    )
    for group in GROUPS:
        if group.title in _TITLES:
            options = [option for option in group.options if option.name not in _LEFT_OUT]
            titled = check.add_argument_group(group.title, group.about)
            shared.add(titled, *options, configured=True)
    shared.add(check.add_argument_group("output"), "json")


def run(args: argparse.Namespace, console: Console) -> int:
    """Exit code 3 if a fit would stop at the table."""
    args = fit.settled(args)
    console.json = args.json
    fit.check_table(args)
    synthesizer = None
    if args.epsilon is not None and args.delta is not None:
        from privtraj.synthesizer import TrajectorySynthesizer

        synthesizer = TrajectorySynthesizer(**arguments(TrajectorySynthesizer, vars(args)))
    found = shared.looked(vars(args), synthesizer)
    text = found.text(typed=True)
    if synthesizer is None:
        text += "\nAdd --epsilon and --delta to see what fit would do."
    console.result({"command": "check", **found.to_dict(typed=True)}, text)
    return 0 if found.fine else PLAINLY_WRONG
