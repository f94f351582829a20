"""`privtraj ledger`: what was spent on the same people so far, and what is left."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from privtraj.cli import shared
from privtraj.cli.console import Console
from privtraj.cli.options import TEXT, Option, arguments

_EXAMPLE = """\
examples:
  privtraj ledger show clinic.ledger
  privtraj ledger show clinic.ledger --ledger-code 5-0123456789abcdef
  privtraj ledger charge clinic.ledger --what "histogram in the yearly report" \\
      --epsilon 0.3 --delta 0"""
_WHAT = Option(
    "what", TEXT, "what was released", metavar="TEXT", needed="it says what was released"
)


def add(commands: Any) -> None:
    about = "show what fits on the same people have spent, or record a release made elsewhere"
    ledger = commands.add_parser("ledger", help=about, description=about, epilog=_EXAMPLE)
    actions = ledger.add_subparsers(dest="action", metavar="ACTION", required=True)
    about = "print the fits, their totals, and what the caps leave"
    _add_ledger(shared.command(actions, "show", about, run))
    about = "record a private release of the same people that another tool has made"
    charge = shared.command(actions, "charge", about, run)
    _add_ledger(charge)
    shared.add(charge, "epsilon", "delta", _WHAT)
    shared.add(charge, "adjacency", about="the relation of the other tool's guarantee")
    shared.add(charge, "cap_epsilon", "cap_delta")


def _add_ledger(parser: Any) -> None:
    parser.add_argument("ledger", metavar="FILE", type=Path, help="ledger that fit has written")
    shared.add(parser, "ledger_code", "json")


def run(args: argparse.Namespace, console: Console) -> None:
    if args.action == "charge":
        shared.require(vars(args), "epsilon", "delta", _WHAT)
    from privtraj.privacy.ledger_file import LedgerFile

    file = LedgerFile(args.ledger, **arguments(LedgerFile, vars(args)))
    if args.action == "charge":
        file.charge(args.epsilon, args.delta, args.adjacency, args.what)
    values = {"command": f"ledger {args.action}", "ledger": str(args.ledger), **file.summary()}
    console.result(values, file.describe())
