"""`privtraj audit`: attack the pipeline itself and set what is found beside what it claims."""

from __future__ import annotations

import argparse
import json
from typing import Any

from privtraj.base.errors import InputError
from privtraj.cli import shared
from privtraj.cli.console import Console
from privtraj.cli.options import FILE, NUMBER, Option, arguments, one_of, whole

VIOLATED = 1
LEAST_RUNS = 20
CANARIES = ("alone", "corner", "rare", "duplicated", "level", "missing", "all")
"""As in `audit.canaries`."""

_EXAMPLE = """\
examples:
  privtraj audit --epsilon 1 --delta 1e-5 --plot audit.png
  privtraj audit --epsilon 4 --measure gradients --runs 4000 --out audit.json
  privtraj audit --epsilon 1 --canary all

canaries: alone, in an empty corner and alone in a time; corner, in an empty corner of a time with
everybody; rare, where one other person is; duplicated, three records in one place; level, with a
level of a category that nobody else has; missing, without a number that everybody else has

exit codes: 0, no violation found; 1, a lower bound exceeds the claim, or the noise is not what the
ledger states; 2, bad input"""


def add(commands: Any) -> None:
    about = "attack simulated fits, and compare the privacy loss found with the one claimed"
    text = f"{about}; no data of yours are needed or read"
    audit = shared.command(commands, "audit", about, run, description=text, epilog=_EXAMPLE)
    privacy = audit.add_argument_group("privacy", "the claim to put to the test")
    shared.add_budget(privacy)
    shared.add(privacy, "adjacency", "measure")
    attack = audit.add_argument_group("attack")
    shared.add(attack, Option("features", whole(1), "features of the simulated data", default=2))
    text = "whom to look for; all of them take as many runs each"
    shared.add(attack, Option("canary", one_of(*CANARIES), text, default="alone"))
    text, known = "fits, half of them with the person", "2000, or 400 for the released view"
    shared.add(attack, Option("runs", whole(LEAST_RUNS), text, otherwise=known))
    shared.add(attack, Option("confidence", NUMBER, "chance that the bounds hold", default=0.95))
    text = "what the attacker sees: all noisy answers, as the claim allows, or the model alone"
    views = one_of("transcript", "released")
    shared.add(attack, Option("view", views, text, default="transcript"))
    shared.add(attack, "seed", about="the same audit again")
    output = audit.add_argument_group("output")
    shared.add(output, "out", about="write the result as .json", needed="")
    shared.add(output, Option("plot", FILE, "draw what was found: .png, .pdf or .svg"))
    shared.add_common_options(output, "replace existing files")


def run(args: argparse.Namespace, console: Console) -> int:
    """Exit code 1 if the claim is refuted."""
    _check(args)
    from privtraj import plot
    from privtraj.audit.attack import audit
    from privtraj.report.style import save_figure
    from privtraj.synthesizer import TrajectorySynthesizer

    claimed = {**vars(args), "seed": None}  # the seed is the attack's
    names = ("runs", "confidence", "features", "view", "canary")
    attack = {name: getattr(args, name) for name in names}
    result = audit(
        TrajectorySynthesizer(**arguments(TrajectorySynthesizer, claimed)),
        **attack,
        seed=args.seed,
        progress=console.progress("auditing"),
    )
    values = {"command": "audit", **result.to_dict(scores=False)}
    if args.out is not None:
        text = json.dumps(result.to_dict(), allow_nan=False) + "\n"
        console.write(text, args.out, args.force)
        values["out"] = str(args.out)
    if args.plot is not None:
        save_figure(plot.audit(result), args.plot, args.force)
        console.written.append(args.plot)
        values["plot"] = str(args.plot)
    written = (f"Written: {path}" for path in console.written)
    console.result(values, "\n".join([str(result), *written]))
    return VIOLATED if result.violated else 0


def _check(args: argparse.Namespace) -> None:
    from privtraj.audit.lower_bounds import check_confidence
    from privtraj.privacy.events import check_budget

    check_budget(args.epsilon, args.delta)
    check_confidence(args.confidence)
    if args.out is not None and args.plot is not None and args.out == args.plot:
        raise InputError("--out and --plot name the same file: give each a name of its own")
    shared.check_output(args.out, (".json",), args.force)
    shared.check_output(args.plot, shared.PICTURES, args.force)
