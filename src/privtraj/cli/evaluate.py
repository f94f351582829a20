"""`privtraj evaluate`: compare a model with raw data, for those who may see them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.cli import shared
from privtraj.cli.console import Console
from privtraj.errors import InputError
from privtraj.options import FILE, PEOPLE_DRAWN, Option, whole

if TYPE_CHECKING:
    from privtraj.metrics.evaluation import Evaluation
    from privtraj.model import TrajectoryModel

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
    _add_data(evaluate.add_argument_group("data"))
    output = evaluate.add_argument_group("output")
    text = "write everything as .json, which is not for release"
    shared.add(output, "out", about=text, needed="")
    text = "write a .html page of real beside synthetic people; holds raw data, not for release"
    shared.add(output, Option("report", FILE, text))
    shared.add_common_options(output, "replace an existing file")


def _add_data(group: Any) -> None:
    shared.add_model(group)
    text = "file, folder or pattern of files with the model's columns: the data of the fit, usually"
    group.add_argument("table", metavar="TABLE", type=Path, help=text)
    text = "records of other people, to see what real people score"
    shared.add(group, Option("holdout", FILE, text, otherwise="halves of TABLE", metavar="TABLE"))
    text = "column that says whose record it is; several records of a person allow scores of paths"
    shared.add(group, "person", about=text)
    people = Option("n", whole(LEAST_PEOPLE), "number of synthetic people", default=PEOPLE_DRAWN)
    shared.add(group, people)
    shared.add(group, "seed", about="of all that is drawn at random", default=0)


def run(args: argparse.Namespace, console: Console) -> None:
    _check(args)
    from privtraj.metrics.evaluation import NOTICE, evaluate
    from privtraj.model import load

    model = load(args.model)
    evaluation = evaluate(
        model,
        args.table,
        holdout=args.holdout,
        person=args.person,
        n=args.n,
        seed=args.seed,
        progress=console.progress("evaluating"),
    )
    for note in evaluation.notes:
        console.note(note)
    files = {"model": str(args.model), "table": str(args.table)}
    if args.holdout is not None:
        files["holdout"] = str(args.holdout)
    values = {"notice": NOTICE, "command": "evaluate", **files, **evaluation.to_dict()}
    if args.out is not None:
        console.write(json.dumps(values, indent=1, allow_nan=False) + "\n", args.out, args.force)
        values["out"] = str(args.out)
    if args.report is not None:
        _write_page(args, model, evaluation)
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


def _write_page(args: argparse.Namespace, model: TrajectoryModel, evaluation: Evaluation) -> None:
    from privtraj.metrics.records import read_records
    from privtraj.report.comparison import write_comparison

    records = read_records(args.table, model, args.person)
    write_comparison(model, evaluation, records, args.report, force=args.force)
