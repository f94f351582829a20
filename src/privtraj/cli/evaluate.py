"""`privtraj evaluate`: compare a model with raw data, for those who may see them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from privtraj.base.errors import InputError
from privtraj.base.formats import PEOPLE_DRAWN
from privtraj.cli import shared
from privtraj.cli.console import Console
from privtraj.cli.options import FILE, Option, whole

LEAST_PEOPLE = 10

_EXAMPLE = """\
examples:
  privtraj evaluate growth.privtraj clinic.csv --out scores.json
  privtraj evaluate growth.privtraj clinic.csv --holdout others.csv --person id
  privtraj evaluate growth.privtraj clinic.csv --report compare.html

The result compares with raw data: it is not private, and not for release."""


def add(commands: Any) -> None:
    about = "compare a model with raw data, for those who may see them; not for release"
    usage = "privtraj evaluate MODEL TABLE [options]"
    evaluate = shared.command(commands, "evaluate", about, run, usage=usage, epilog=_EXAMPLE)
    data = evaluate.add_argument_group("data")
    shared.add_model(data)
    text = "file, folder or pattern of files with the model's columns: the data of the fit, usually"
    data.add_argument("table", metavar="TABLE", type=Path, help=text)
    text = "records of other people, to see what real people score"
    shared.add(data, Option("holdout", FILE, text, otherwise="halves of TABLE", metavar="TABLE"))
    text = "column that says whose record it is; several records of a person allow scores of paths"
    shared.add(data, "person", about=text)
    shared.add_csv(data)
    text = "number of synthetic people"
    shared.add(data, Option("n", whole(LEAST_PEOPLE), text, default=PEOPLE_DRAWN))
    shared.add(data, "seed", about="of all that is drawn at random", default=0)
    output = evaluate.add_argument_group("output")
    text = "write everything as .json, which is not for release"
    shared.add(output, "out", about=text, needed="")
    text = "write a .html page of real beside synthetic people; holds raw data, not for release"
    shared.add(output, Option("report", FILE, text))
    shared.add_common_options(output, "replace an existing file")


def run(args: argparse.Namespace, console: Console) -> None:
    _check(args)
    from privtraj.metrics.evaluation import NOTICE, evaluate
    from privtraj.metrics.records import read_records
    from privtraj.model.model import load
    from privtraj.report.comparison import write_comparison

    model = load(args.model)
    chosen = {name: getattr(args, name) for name in ("holdout", "person", "n", "seed")}
    chosen["csv"] = shared.csv_of(args)
    show = console.progress("evaluating")
    evaluation = evaluate(model, args.table, **chosen, progress=show)
    for note in evaluation.notes:
        console.note(note)
    read = {"model": args.model, "table": args.table, "holdout": args.holdout}
    files = {name: str(path) for name, path in read.items() if path is not None}
    values = {"notice": NOTICE, "command": "evaluate", **files, **evaluation.to_dict()}
    if args.out is not None:
        console.write(json.dumps(values, indent=1, allow_nan=False) + "\n", args.out, args.force)
        values["out"] = str(args.out)
    if args.report is not None:
        records = read_records(args.table, model, args.person, chosen["csv"])
        write_comparison(model, evaluation, records, args.report, force=args.force)
        console.written.append(args.report)
        values["report"] = str(args.report)
    text = str(evaluation)
    if console.written:
        text += f"\n\nWritten, and not for release: {', '.join(map(str, console.written))}"
    console.result(values, text)


def _check(args: argparse.Namespace) -> None:
    shared.check_output(args.out, (".json",), args.force)
    shared.check_output(args.report, (".html",), args.force)
    inputs = [path.resolve() for path in (args.model, args.table, args.holdout) if path is not None]
    if len(set(inputs)) < len(inputs):
        raise InputError("MODEL, TABLE and --holdout must be different files")
    for name, path in (("--out", args.out), ("--report", args.report)):
        if path is not None and path.resolve() in inputs:
            raise InputError(f"{name} names a file that is read: give it a name of its own")
