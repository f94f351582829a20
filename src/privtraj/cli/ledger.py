"""`privtraj ledger`: what was spent on the same people so far, and what is left."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from privtraj.cli.console import Console
from privtraj.cli.fit import add_budget
from privtraj.cli.options import choice, require

_EXAMPLE = """\
examples:
  privtraj ledger show clinic.ledger
  privtraj ledger charge clinic.ledger --what "histogram in the yearly report" \\
      --epsilon 0.3 --delta 0"""


def add(commands: Any) -> None:
    about = "show what fits on the same people have spent, or record a release made elsewhere"
    ledger = commands.add_parser("ledger", help=about, description=about, epilog=_EXAMPLE)
    actions = ledger.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_show(actions)
    _add_charge(actions)


def _add_show(actions: Any) -> None:
    about = "print the fits, their totals, and what the caps leave"
    show = actions.add_parser("show", help=about, description=about)
    show.set_defaults(run=_show)
    _add_common(show)


def _add_charge(actions: Any) -> None:
    about = "record a private release of the same people that another tool has made"
    charge = actions.add_parser("charge", help=about, description=about)
    charge.set_defaults(run=_charge)
    _add_common(charge)
    add_budget(charge)
    charge.add_argument("--what", metavar="TEXT", help="what was released (required)")
    text = "the neighbouring relation of the other tool's guarantee"
    choice(charge, "--adjacency", text, "add-remove", "replace-one")
    text = "most that everything in the ledger may spend (default: as recorded last)"
    charge.add_argument("--cap-epsilon", type=float, metavar="E", help=text)
    charge.add_argument("--cap-delta", type=float, metavar="D", help="the same for delta")


def _add_common(parser: Any) -> None:
    parser.add_argument("ledger", metavar="FILE", type=Path, help="ledger that fit has written")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.set_defaults(quiet=False)


def _show(args: argparse.Namespace, console: Console) -> None:
    from privtraj.privacy.ledger_file import LedgerFile

    file = LedgerFile(args.ledger)
    values = {"command": "ledger show", "ledger": str(args.ledger), **file.summary()}
    console.result(values, file.describe())


def _charge(args: argparse.Namespace, console: Console) -> None:
    require(args, "epsilon", "delta", "what")
    from privtraj.privacy.ledger_file import LedgerFile

    file = LedgerFile(args.ledger, cap_epsilon=args.cap_epsilon, cap_delta=args.cap_delta)
    file.charge(args.epsilon, args.delta, args.adjacency, args.what)
    values = {"command": "ledger charge", "ledger": str(args.ledger), **file.summary()}
    console.result(values, file.describe())
