"""`privtraj demo`: fit and sample a simulated diabetes clinic."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from privtraj.base.errors import InputError, aligned
from privtraj.base.formats import PEOPLE_DRAWN
from privtraj.cli import fit, results, shared
from privtraj.cli.console import Console, parser
from privtraj.cli.options import Group, budget, changed, writing
from privtraj.columns.cells import words_of
from privtraj.recipe import Option, whole

_EXAMPLE = "example:\n  privtraj demo --epsilon 0.5 --out half"

_FILES = {
    "clinic.csv": "the sensitive table (simulated): one visit per person",
    "clinic.privtraj": "the private model: may be released",
    "certificate.json": "the privacy guarantee, for the record",
    "paths.csv": "1000 synthetic people at 25 times: may be released",
    "overview.png": "a picture of them: may be released",
    "report.html": "the model as a page to look at: may be released",
}


def add(commands: Any) -> None:
    about = "fit a simulated diabetes clinic and write everything to a directory"
    text = "people in the clinic; more of them, sharper result"
    people = Option("people", whole(100), text, default=6000)
    where = {"default": Path("privtraj-demo"), "metavar": "DIR", "needed": ""}
    out = changed("out", "directory to write to, made if missing", **where)
    files = Group("output", (out, *writing("write into a directory that is not empty")))
    has = Group("data", (people,)), Group("privacy", budget()), files
    shared.command(commands, "demo", about, run, *has, epilog=_EXAMPLE)


def run(args: argparse.Namespace, console: Console) -> None:
    """Write the table, then run the very commands that are printed at the end."""
    from privtraj import datasets
    from privtraj.export.tables import write_table
    from privtraj.plot import overview, save_figure
    from privtraj.report.page import write_report
    from privtraj.synthesizer import TrajectorySynthesizer

    TrajectorySynthesizer(args.epsilon, args.delta).check()
    if args.out.exists() and not args.out.is_dir():
        raise InputError(f"'{args.out}' is a file: give --out the name of a directory")
    if args.out.is_dir() and any(args.out.iterdir()) and not args.force:
        raise InputError(
            f"the directory '{args.out}' is not empty: choose another with --out, or write into it "
            "with --force"
        )
    args.out.mkdir(parents=True, exist_ok=True)
    files = {name: args.out / name for name in _FILES}
    write_table(datasets.diabetes_clinic(args.people), files["clinic.csv"], args.force)
    console.written.append(files["clinic.csv"])
    rest = ["--certificate", str(files["certificate.json"]), *(["--force"] * args.force)]
    fitting = _fit_words(args, files["clinic.privtraj"])
    typed = parser(fit.add).parse_args([*fitting, *rest])
    _, fitted = fit.fitted(fit.settled(typed), console)
    drawing = _sample_words(files["clinic.privtraj"], files["paths.csv"])
    draw = parser(results.add_sample).parse_args([*drawing, *(["--force"] * args.force)])
    model, paths, drawn = results.sampled(draw, console)
    save_figure(overview(model, paths), files["overview.png"], args.force)
    console.written.append(files["overview.png"])
    write_report(model, files["report.html"], force=args.force)
    mine = args.out / "mine.privtraj"
    by_hand = [_fit_words(args, mine), _sample_words(mine, args.out / "mine.csv")]
    commands = [shlex.join(["privtraj", *words]) for words in by_hand]
    rows = aligned([(str(files[name]), about) for name, about in _FILES.items()])
    listing = "\n".join(f"  {row}" for row in rows)
    to_type = "\n".join(f"  {command}" for command in commands)
    text = (
        f"{model.certificate}\n\nWritten:\n{listing}\n\n"
        f"The same by hand (the noise differs each time):\n{to_type}\n\n"
        f"To look at it, open {files['report.html']} in a browser"
    )
    values = {"command": "demo", "directory": str(args.out), "data": str(files["clinic.csv"])}
    values |= {**fitted, **drawn, "overview": str(files["overview.png"])}
    console.result({**values, "report": str(files["report.html"]), "commands": commands}, text)


def _fit_words(args: argparse.Namespace, model: Path) -> list[str]:
    from privtraj.datasets import DIABETES_COLUMNS, DIABETES_TIME_RANGE

    columns: list[str] = []
    for name, form in DIABETES_COLUMNS.items():
        columns += ["--column", *words_of(name, form)]
    who = ["--time", "month", "--person", "id"]
    times = ["--time-range", *map(_typed, DIABETES_TIME_RANGE)]
    budget = ["--epsilon", _typed(args.epsilon), "--delta", _typed(args.delta)]
    table = str(args.out / "clinic.csv")
    return ["fit", table, *who, *columns, *times, *budget, "--out", str(model)]


def _sample_words(model: Path, paths: Path) -> list[str]:
    return ["sample", str(model), "-n", str(PEOPLE_DRAWN), "--at", "25", "--out", str(paths)]


def _typed(number: float) -> str:
    """The number as a person would type it."""
    return repr(float(number)).removesuffix(".0")
