"""`privtraj report`: a model as one page to look at."""

from __future__ import annotations

import argparse
from typing import Any

from privtraj.base.errors import InputError
from privtraj.cli import shared
from privtraj.cli.console import Console

_EXAMPLE = """\
example:
  privtraj report growth.privtraj -o report.html

The page is one file, needs no network, and shows nothing but the released model."""


def add(commands: Any) -> None:
    about = "write a model as one page to look at in a browser; costs no privacy"
    usage = "privtraj report MODEL -o FILE.html [options]"
    report = shared.command(commands, "report", about, run, usage=usage, epilog=_EXAMPLE)
    shared.add_model(report.add_argument_group("data"))
    output = report.add_argument_group("output")
    shared.add(output, "out", about="page to write: .html", short="-o")
    shared.add_common_options(output, "replace an existing file")


def run(args: argparse.Namespace, console: Console) -> None:
    shared.require(vars(args), "out")
    shared.check_output(args.out, (".html",), args.force)
    if args.out.resolve() == args.model.resolve():
        raise InputError("--out names the model itself: give the page a name of its own")
    model = shared.load_model(args.model, "page", console)
    from privtraj.report.page import write_report

    write_report(model, args.out, force=args.force, progress=console.progress("fits made again"))
    console.written.append(args.out)
    values = {
        "command": "report",
        "model": str(args.model),
        "private": model.certificate.private,
        "out": str(args.out),
    }
    console.result(values, f"Written: {args.out}\nTo look at it, open {args.out} in a browser")
