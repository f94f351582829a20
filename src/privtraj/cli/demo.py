"""`privtraj demo`: fit and sample a simulated diabetes clinic."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from privtraj.base.errors import InputError, aligned
from privtraj.base.formats import PEOPLE_DRAWN
from privtraj.cli import fit, results, shared
from privtraj.cli.console import Console, parser
from privtraj.cli.options import Group, budget, changed, writing
from privtraj.columns.cells import words_of
from privtraj.recipe import Option, whole

_FILES = {
    "clinic.csv": "the sensitive table (simulated): one visit per person",
    "clinic.privtraj": "the private model: may be released",
    "certificate.json": "the privacy guarantee, for the record",
    "paths.csv": "1000 synthetic people at 25 times: may be released",
    "report.html": "the model as a page to look at: may be released",
}
# fmt: off
_PEOPLE = Option("people", whole(100), "people in the clinic; more of them, sharper result",
                 default=6000)
_OUT = changed("out", "directory to write to, made if missing", default=Path("privtraj-demo"),
               metavar="DIR", needed="")
# fmt: on


@shared.command(
    Group("data", (_PEOPLE,)),
    Group("privacy", budget()),
    Group("output", (_OUT, *writing("write into a directory that is not empty"))),
)
def demo(args: argparse.Namespace, console: Console) -> None:
    """Fit a simulated diabetes clinic and write everything to a directory.

    example:
      privtraj demo --epsilon 0.5 --out half
    """
    from privtraj import datasets
    from privtraj.export.tables import write_table
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
    files, force = {name: args.out / name for name in _FILES}, ["--force"] * args.force
    write_table(datasets.diabetes_clinic(args.people), files["clinic.csv"], args.force)
    console.wrote(files["clinic.csv"])

    def typed(*words: object) -> list[str]:  # numbers as a person would type them
        return [repr(x).removesuffix(".0") if isinstance(x, float) else str(x) for x in words]

    columns = [("--column", *words_of(*column)) for column in datasets.DIABETES_COLUMNS.items()]
    told = typed(
        *("fit", files["clinic.csv"], "--time", "month", "--person", "id"),
        *(word for column in columns for word in column),
        *("--time-range", *map(float, datasets.DIABETES_TIME_RANGE)),
        *("--epsilon", args.epsilon, "--delta", args.delta),
    )

    def commands(model: Path, paths: Path) -> tuple[list[str], list[str]]:
        drawn = ("sample", model, "-n", PEOPLE_DRAWN, "--at", 25, "--out", paths)
        return [*told, "--out", str(model)], typed(*drawn)

    fitting, drawing = commands(files["clinic.privtraj"], files["paths.csv"])
    rest = ["--certificate", str(files["certificate.json"]), *force]
    _, fitted = fit.fitted(fit.settled(parser(fit.fit).parse_args([*fitting, *rest])), console)
    draw = parser(results.sample).parse_args([*drawing, *force])
    model, _, drawn = results.sampled(draw, console)
    write_report(model, files["report.html"], force=args.force)
    mine = commands(args.out / "mine.privtraj", args.out / "mine.csv")
    by_hand = [shlex.join(["privtraj", *words]) for words in mine]
    listing = aligned([(str(files[name]), about) for name, about in _FILES.items()])
    text = "\n  ".join([f"{model.certificate}\n\nWritten:", *listing])
    text += "\n  ".join(["\n\nThe same by hand (the noise differs each time):", *by_hand])
    text += f"\n\nTo look at it, open {files['report.html']} in a browser"
    values = {"command": "demo", "directory": str(args.out), "data": str(files["clinic.csv"])}
    values |= {**fitted, **drawn}
    console.result({**values, "report": str(files["report.html"]), "commands": by_hand}, text)
