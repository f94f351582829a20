"""`privtraj report`: a model as one page to look at."""

from __future__ import annotations

import argparse
from typing import Any

from privtraj.cli.compiled import keep_compiled
from privtraj.cli.console import Console
from privtraj.cli.options import add as add_options
from privtraj.cli.options import add_common_options, add_model, check_output, command, require
from privtraj.errors import InputError

_EXAMPLE = """\
example:
  privtraj report growth.privtraj -o report.html

The page is one file, needs no network, and shows nothing but the released model."""


def add(commands: Any) -> None:
    about = "write a model as one page to look at in a browser; costs no privacy"
    usage = "privtraj report MODEL -o FILE.html [options]"
    report = command(commands, "report", about, run, usage=usage, epilog=_EXAMPLE)
    add_model(report.add_argument_group("data"))
    output = report.add_argument_group("output")
    add_options(output, "out", about="page to write: .html", short="-o")
    add_common_options(output, "replace an existing file")


def run(args: argparse.Namespace, console: Console) -> None:
    require(vars(args), "out")
    check_output(args.out, (".html",), args.force)
    if args.out.resolve() == args.model.resolve():
        raise InputError("--out names the model itself: give the page a name of its own")
    keep_compiled()
    from privtraj.model import load
    from privtraj.report.page import write_report

    model = load(args.model)
    if not model.certificate.private:
        console.note(f"NOT PRIVATE: {model.certificate.caveat}; do not release the page")
    write_report(model, args.out, force=args.force)
    console.written.append(args.out)
    values = {
        "command": "report",
        "model": str(args.model),
        "private": model.certificate.private,
        "out": str(args.out),
    }
    console.result(values, f"Written: {args.out}\nTo look at it, open {args.out} in a browser")
