"""`privtraj audit`: attack the pipeline itself and set what is found beside what it claims."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.cli.console import Console
from privtraj.cli.fit import add_budget
from privtraj.cli.options import add_common_options, at_least, check_output, choice
from privtraj.errors import InputError

if TYPE_CHECKING:
    from privtraj.audit.attack import Audit

VIOLATED = 1
LEAST_RUNS = 20

_EXAMPLE = """\
examples:
  privtraj audit --epsilon 1 --delta 1e-5 --plot audit.png
  privtraj audit --epsilon 4 --measure gradients --runs 4000 --out audit.json

exit codes: 0, no violation found; 1, a lower bound exceeds the claim; 2, bad input"""


def add(commands: Any) -> None:
    about = "attack simulated fits, and compare the privacy loss found with the one claimed"
    audit = commands.add_parser(
        "audit",
        help=about,
        description=f"{about}; no data of yours are needed or read",
        epilog=_EXAMPLE,
    )
    audit.set_defaults(run=run)
    privacy = audit.add_argument_group("privacy", "the claim to put to the test")
    add_budget(privacy, epsilon=1.0, delta=1e-5)
    text = "what is hidden: whether a person is in the data, or what the record says"
    choice(privacy, "--adjacency", text, "add-remove", "replace-one")
    text = "what the budget buys: counts suit few features, gradients many"
    choice(privacy, "--measure", text, "auto", "gradients", "counts")
    _add_attack(audit.add_argument_group("attack"))
    output = audit.add_argument_group("output")
    output.add_argument("--out", type=Path, metavar="FILE", help="write the result as .json")
    text = "draw what was found: .png, .pdf or .svg"
    output.add_argument("--plot", type=Path, metavar="FILE", help=text)
    add_common_options(output, "replace existing files")


def _add_attack(group: Any) -> None:
    add = group.add_argument
    text = "features of the simulated data (default: 2)"
    add("--features", type=at_least(1), default=2, metavar="N", help=text)
    text = "fits, half of them with the person (default: 2000, or 400 for the released view)"
    add("--runs", type=at_least(LEAST_RUNS), metavar="N", help=text)
    text = "chance that the bounds hold (default: 0.95)"
    add("--confidence", type=float, default=0.95, metavar="X", help=text)
    text = "what the attacker sees: all noisy answers, as the claim allows, or the model alone"
    choice(group, "--view", text, "transcript", "released")
    add("--seed", type=at_least(0), metavar="S", help="the same audit again")


def run(args: argparse.Namespace, console: Console) -> int:
    """Exit code 1 if the claim is refuted."""
    _check(args)
    from privtraj.audit.attack import audit
    from privtraj.synthesizer import TrajectorySynthesizer

    found = audit(
        TrajectorySynthesizer(
            args.epsilon, args.delta, adjacency=args.adjacency, measure=args.measure
        ),
        runs=args.runs,
        confidence=args.confidence,
        features=args.features,
        view=args.view,
        seed=args.seed,
        progress=console.progress("auditing"),
    )
    _write(args, found, console)
    text = "\n".join([str(found), *(f"Written: {path}" for path in console.written)])
    files = {"out": args.out, "plot": args.plot}
    written = {name: str(path) for name, path in files.items() if path is not None}
    console.result({"command": "audit", **found.to_dict(scores=False), **written}, text)
    return VIOLATED if found.violated else 0


def _check(args: argparse.Namespace) -> None:
    from privtraj.audit.lower_bounds import check_confidence
    from privtraj.privacy.events import check_budget

    check_budget(args.epsilon, args.delta)
    check_confidence(args.confidence)
    if args.out is not None and args.plot is not None and args.out == args.plot:
        raise InputError("--out and --plot name the same file: give each a name of its own")
    check_output(args.out, (".json",), args.force)
    check_output(args.plot, (".png", ".pdf", ".svg"), args.force)


def _write(args: argparse.Namespace, found: Audit, console: Console) -> None:
    from privtraj.files import write_text
    from privtraj.report.audit import audit_figure
    from privtraj.report.figures import save_figure

    if args.out is not None:
        text = json.dumps(found.to_dict(), allow_nan=False) + "\n"
        write_text(text, args.out, args.force)
        console.written.append(args.out)
    if args.plot is not None:
        save_figure(audit_figure(found), args.plot, args.force)
        console.written.append(args.plot)
