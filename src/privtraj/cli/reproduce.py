"""`privtraj reproduce`: the paper's tables and figures, ours beside them."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from privtraj.base.errors import aligned
from privtraj.cli import shared
from privtraj.cli.console import Console
from privtraj.cli.options import BOOLEAN, FILE, Option, whole
from privtraj.paper.reproduce.registry import NAMES, Options, check_strokes
from privtraj.paper.reproduce.registry import reproduce as reproduction

_EXAMPLE = """\
example:
  privtraj reproduce table-budgets --out paper
  privtraj reproduce all --out paper --strokes mnist_strokes_dejong.npz"""


def add(commands: Any) -> None:
    about = "the paper's tables and figures again, with its settings and with ours"
    rows = [(name, entry.about) for name, entry in NAMES.items()]
    names = aligned([*rows, ("all", "everything, about 13 minutes on two cores")])
    text = "\n  ".join([f"{about}\n\nnames:", *names])
    reproduce = shared.command(commands, "reproduce", about, run, description=text, epilog=_EXAMPLE)
    known = {"metavar": "NAME", "choices": [*NAMES, "all"], "help": "what to reproduce"}
    reproduce.add_argument("name", **known)
    text = "pen strokes of MNIST (E. de Jong): an .npz file or the folder of text files"
    quick = "smallest run of everything: shows that it works, its numbers mean nothing"
    shared.add(
        reproduce.add_argument_group("data"),
        Option("strokes", FILE, text),
        Option("seeds", whole(1), "repetitions behind every mean", default=3),
        Option("quick", BOOLEAN, quick, default=False),
    )
    shared.add_directory(reproduce.add_argument_group("output"), "privtraj-paper")


def run(args: argparse.Namespace, console: Console) -> None:
    """Each name in turn; what is finished stays if a later one fails."""
    names = list(NAMES) if args.name == "all" else [args.name]
    for name in names:
        check_strokes(name, args.strokes)
    shared.make_directory(args.out, args.force)
    reports: list[dict[str, Any]] = []
    for name in names:
        began = time.monotonic()
        options = Options(args.strokes, args.seeds, args.quick, console.progress(name))
        result = reproduction(name, options)
        files = [str(path) for path in result.write(args.out, force=True)]
        console.written += map(Path, files)
        seconds = round(time.monotonic() - began, 1)
        reports.append({"name": name, "seconds": seconds, "files": files, "text": result.text})
    texts = "\n\n".join(report["text"].rstrip() for report in reports)
    written = "\n".join(f"  {path}" for report in reports for path in report["files"])
    console.result({"command": "reproduce", "results": reports}, f"{texts}\n\nWritten:\n{written}")
