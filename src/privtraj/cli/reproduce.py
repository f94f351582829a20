"""`privtraj reproduce`: the paper's tables and figures, ours beside them."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from privtraj.cli.console import Console
from privtraj.cli.options import add_common_options, at_least, make_directory
from privtraj.paper.reproduce.registry import NAMES, Options, check_strokes, reproduce

_EXAMPLE = """\
example:
  privtraj reproduce table-budgets --out paper
  privtraj reproduce all --out paper --strokes mnist_strokes_dejong.npz"""


def add(commands: Any) -> None:
    about = "the paper's tables and figures again, with its settings and with ours"
    names = "\n".join(f"  {name:<15} {entry.about}" for name, entry in NAMES.items())
    text = f"{about}\n\nnames:\n{names}\n  {'all':<15} everything, about 13 minutes on two cores"
    command = commands.add_parser("reproduce", help=about, description=text, epilog=_EXAMPLE)
    command.set_defaults(run=run)
    command.add_argument("name", metavar="NAME", choices=[*NAMES, "all"], help="what to reproduce")
    data = command.add_argument_group("data")
    text = "pen strokes of MNIST (E. de Jong): an .npz file or the folder of text files"
    data.add_argument("--strokes", type=Path, metavar="FILE", help=text)
    text = "repetitions behind every mean (default: 3)"
    data.add_argument("--seeds", type=at_least(1), default=3, metavar="N", help=text)
    text = "smallest run of everything: shows that it works, its numbers mean nothing"
    data.add_argument("--quick", action="store_true", help=text)
    output = command.add_argument_group("output")
    text = "directory to write to, made if missing (default: privtraj-paper)"
    output.add_argument("--out", type=Path, default="privtraj-paper", metavar="DIR", help=text)
    add_common_options(output, "write into a directory that is not empty")


def run(args: argparse.Namespace, console: Console) -> None:
    """Each name in turn; what is finished stays if a later one fails."""
    names = list(NAMES) if args.name == "all" else [args.name]
    for name in names:
        check_strokes(name, args.strokes)
    make_directory(args.out, args.force)
    reports: list[dict[str, Any]] = []
    for name in names:
        began = time.monotonic()
        found = reproduce(
            name, Options(args.strokes, args.seeds, args.quick, console.progress(name))
        )
        files = [str(path) for path in found.write(args.out, force=True)]
        console.written += map(Path, files)
        seconds = round(time.monotonic() - began, 1)
        reports.append({"name": name, "seconds": seconds, "files": files, "text": found.text})
    texts = "\n\n".join(report["text"].rstrip() for report in reports)
    written = "\n".join(f"  {path}" for report in reports for path in report["files"])
    console.result({"command": "reproduce", "results": reports}, f"{texts}\n\nWritten:\n{written}")
