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
               metavar="DIR", needed="", writes=())
# fmt: on


class _Within(Console):
    """That of a command within the demo, which tells the result of all."""

    def result(self, values: dict[str, Any], text: str) -> None:
        self._ended.set()
        self.values = values


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
    from privtraj.privacy.certificate import Certificate
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
    console.wrote(files["clinic.csv"])

    def typed(*words: object) -> list[str]:  # numbers as a person would type them
        return [repr(x).removesuffix(".0") if isinstance(x, float) else str(x) for x in words]

    columns = [("--column", *words_of(*column)) for column in datasets.DIABETES_COLUMNS.items()]
    fitting = typed(
        *("fit", files["clinic.csv"], "--time", "month", "--person", "id"),
        *(word for column in columns for word in column),
        *("--time-range", *map(float, datasets.DIABETES_TIME_RANGE)),
        *("--epsilon", args.epsilon, "--delta", args.delta),
    )

    def commands(model: Path, paths: Path) -> tuple[list[str], list[str]]:
        drawing = ("sample", model, "-n", PEOPLE_DRAWN, "--at", 25, "--out", paths)
        return [*fitting, "--out", str(model)], typed(*drawing)

    fitted, drawn = commands(files["clinic.privtraj"], files["paths.csv"])
    fitted += ["--certificate", str(files["certificate.json"])]
    page = ["report", str(files["clinic.privtraj"]), "-o", str(files["report.html"])]
    within, values = _Within(console.quiet, written=console.written), dict[str, Any]()
    for command, words in ((fit.fit, fitted), (results.sample, drawn), (results.report, page)):
        quiet = ["--quiet"] * console.quiet
        command(parser(command).parse_args([*words, *quiet, *["--force"] * args.force]), within)
        values |= within.values
    mine = commands(args.out / "mine.privtraj", args.out / "mine.csv")
    by_hand = [shlex.join(["privtraj", *words]) for words in mine]
    listing = aligned([(str(files[name]), about) for name, about in _FILES.items()])
    certificate = Certificate.read(files["certificate.json"])
    text = "\n  ".join([f"{certificate}\n\nWritten:", *listing])
    text += "\n  ".join(["\n\nThe same by hand (the noise differs each time):", *by_hand])
    text += f"\n\nTo look at it, open {files['report.html']} in a browser"
    values |= {"command": "demo", "directory": str(args.out), "data": str(files["clinic.csv"])}
    values |= {"report": values.pop("out"), "commands": by_hand}
    console.result(values, text)
