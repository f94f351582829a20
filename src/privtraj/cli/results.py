"""With a model: `privtraj sample` draws from it, `report` shows it, `ask` answers questions, and
`evaluate` compares it with raw data, for those who may see them."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from privtraj.base import formats
from privtraj.base.errors import Arg, InputError
from privtraj.base.formats import PEOPLE_DRAWN
from privtraj.cli import shared
from privtraj.cli.console import Console
from privtraj.cli.options import CONDITIONS, FILE, MODEL, OPTIONS, TIMES, Group, changed, writing
from privtraj.recipe import BOOLEAN, TEXT, Option, one_of, whole

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

# fmt: off
_WHICH = (
    MODEL,
    Option("n", whole(1), "number of synthetic people", otherwise=PEOPLE_DRAWN, short="-n"),
    Option("at", whole(1), "number of times, spread over the range", otherwise="the fitted times"),
    Option("times", TIMES,
           "instead of --at: the times themselves, numbers or dates inside the range"),
    Option("where", CONDITIONS,
           "only people who are so at all times: sex=F, stage=II,III, age=40..60; repeatable"),
    Option("at_start", CONDITIONS,
           "only people who are so at the first time; hb= stands for missing"),
)
_HOW = (
    changed("seed", "draw the same paths again"),
    changed("reference", default=None, otherwise="as fitted"),
    Option("interpolation", one_of("bridge", "linear", "spline"),
           "between fitted times: wander, go straight, or bend smoothly",
           otherwise="as the reference says"),
    Option("coupling", one_of("entropic", "exact"),
           "who becomes whom: likely moves, or the shortest only",
           otherwise="as the reference says"),
    Option("branching", BOOLEAN, default=False, about=
           "who is born, where the population grows, has a parent and shares its past"),
    Option("no_observation_noise", BOOLEAN, default=False, about=
           "bare particles: less spread out than the people were"),
)
_PATHS_OUT = changed("out", "file to write: .csv, .parquet, .arrow, .geojson (.trips.geojson for "
                     "kepler.gl, .points.geojson for QGIS), .geoparquet or .h5ad",
                     writes=formats.suffixes(formats.PATHS))
# fmt: on


@shared.command(
    Group("data", _WHICH),
    Group("output", (_PATHS_OUT, *writing())),
    Group("advanced", _HOW),
)
def sample(args: argparse.Namespace, console: Console) -> None:
    """Draw synthetic trajectories from a model; this costs no privacy, however often.

    examples:
      privtraj sample growth.privtraj -n 1000 --at 81 --out paths.csv
      privtraj sample visits.privtraj -n 50 --times 2024-01-31 2024-02-15 --out paths.parquet
      privtraj sample trips.privtraj --at 100 --out paths.geojson
      privtraj sample clinic.privtraj --where sex=F --at-start stage=II,III --out women.csv
    """
    if args.at is not None and args.times is not None:
        raise InputError("--at and --times exclude each other: say how many times, or which")
    model = shared.load_model(args.model, "paths", console)
    if args.reference is not None:
        model = model.with_reference(args.reference)
    from privtraj.columns.kinds import of_tables
    from privtraj.export.files import check_paths

    at = even_times(model, args.at) if args.times is None else args.times
    count = len(model.times if at is None else at)
    known = of_tables(model.columns)
    names = tuple(column.name for column in known)
    check_paths(args.out, names, [column.domain for column in known], count)
    how = {name: getattr(args, name) for name in ("seed", "interpolation", "coupling", "branching")}
    how["observation_noise"] = not args.no_observation_noise
    how |= {name: conditions(getattr(args, name), name) for name in ("where", "at_start")}
    paths = model.sample(args.n or PEOPLE_DRAWN, at, **how)
    paths.save(args.out, force=args.force)
    n, times, _ = paths.values.shape
    text = f"{n} paths at {times} times, written to {console.wrote(args.out)}"
    drawn = {"file": str(args.out), "n": n, "times": times, "features": list(paths.features)}
    values = {"model": str(args.model), "private": model.certificate.private, "paths": drawn}
    console.result({"command": "sample", **values}, text)


def conditions(given: list[str] | None, name: str) -> dict[str, str]:
    """{column: value} of texts such as sex=F."""
    pairs = [text.partition("=") for text in given or ()]
    if not all(column and equals for column, equals, _ in pairs):
        raise InputError(Arg(name), " must be COL=VALUE, a column and a value that it has")
    columns = [column for column, _, _ in pairs]
    if len(set(columns)) < len(columns):
        raise InputError(Arg(name), " names a column twice: give all its values at once, as in a,b")
    return {column: value for column, _, value in pairs}


def even_times(model: TrajectoryModel, count: int | None) -> Any:
    """That many times over the model's range; None means the fitted ones."""
    if count is None:
        return None
    from privtraj.base.space import as_user_times
    from privtraj.columns.precision import spread_times

    first, last = model.knots[[0, -1]].tolist()
    return as_user_times(spread_times(first, last, count, model.datetime), model.datetime)


@shared.command(
    *(MODEL, changed("out", "page to write: .html", short="-o", writes=(".html",))),
    *(changed("title", "name of the page", otherwise="the declared one"), *writing()),
)
def report(args: argparse.Namespace, console: Console) -> None:
    """Write a model as one page to look at in a browser; costs no privacy.

    example:
      privtraj report growth.privtraj -o report.html

    The page is one file, needs no network, and shows nothing but the released model.
    """
    model = shared.load_model(args.model, "page", console)
    from privtraj.report.page import write_report

    done = console.progress("fits made again")
    write_report(model, args.out, force=args.force, title=args.title or "", progress=done)
    values = {"model": str(args.model), "private": model.certificate.private}
    values["out"] = console.wrote(args.out)
    text = f"Written: {args.out}\nTo look at it, open {args.out} in a browser"
    console.result({"command": "report", **values}, text)


# fmt: off
_QUESTION = Option("question", TEXT, metavar="QUESTION", placed=True, needed="a question", about=
                   "in quotes: mean, median, p90, trend, share, correlation or count, by, where")
_ANSWERS = changed("out", "table to write as well: .csv, .parquet, .arrow or .json", needed="",
                   writes=(*formats.suffixes(formats.TABLES), ".json"))
# fmt: on


@shared.command(MODEL, _QUESTION, _ANSWERS, *writing())
def ask(args: argparse.Namespace, console: Console) -> None:
    """Answer a question about the people of a model, with 90 % intervals; costs no privacy.

    examples:
      privtraj ask clinic.privtraj "mean hba1c by diagnosis, year"
      privtraj ask clinic.privtraj "share smoker=true by sex where age=40..60" --out answers.csv
      privtraj ask clinic.privtraj "median weight by 4 periods"
      privtraj ask clinic.privtraj "share diagnosis by month"
      privtraj ask clinic.privtraj "trend hba1c by diagnosis"

    A group that the noise has hidden is called lost instead of getting a number.
    """
    model = shared.load_model(args.model, "answers", console)
    answer = model.ask(args.question, progress=console.progress("fits made again"))
    values = {"command": "ask", "model": str(args.model), **answer.to_dict()}
    text = repr(answer)
    if args.out is not None:
        answer.save(args.out, force=args.force)
        values["out"] = console.wrote(args.out)
        text += f"\n\nWritten: {args.out}"
    console.result(values, text)


# fmt: off
_COMPARED = (
    MODEL,
    Option("table", FILE, metavar="TABLE", placed=True, needed="a table", about=
           "file, folder or pattern of files with the model's columns: the data of the fit, "
           "usually"),
    Option("holdout", FILE, "records of other people, to see what real people score",
           otherwise="halves of TABLE", metavar="TABLE"),
    changed("person", "column that says whose record it is; several records of a person allow "
            "scores of paths"),
    OPTIONS["csv"],
    Option("config", FILE, "configuration of the fit, which may say that too"),
    Option("n", whole(10), "number of synthetic people", default=PEOPLE_DRAWN),
    changed("seed", "of all that is drawn at random", default=0),
)
_SCORES = (
    changed("out", "write everything as .json, which is not for release", needed="",
            writes=(".json",)),
    *writing(),
)
# fmt: on


@shared.command(
    Group("data", _COMPARED),
    Group("output", _SCORES),
    configured=("csv",),
)
def evaluate(args: argparse.Namespace, console: Console) -> None:
    """Compare a model with raw data, for those who may see them; not for release.

    examples:
      privtraj evaluate growth.privtraj clinic.csv --out scores.json
      privtraj evaluate growth.privtraj clinic.csv --holdout others.csv --person id

    The result compares with raw data: it is not private, and not for release.
    """
    from privtraj.metrics import evaluation as compared
    from privtraj.model.model import load

    model = load(args.model)
    chosen = {name: getattr(args, name) for name in ("holdout", "person", "csv", "n", "seed")}
    found = compared.evaluate(model, args.table, **chosen, progress=console.progress("evaluating"))
    for note in found.notes:
        console.note(note)
    read = {name: getattr(args, name) for name in ("model", "table", "holdout")}
    files = {name: str(path) for name, path in read.items() if path is not None}
    values = {"notice": compared.NOTICE, "command": "evaluate", **files, **found.to_dict()}
    if args.out is not None:
        text = json.dumps(values, indent=1, allow_nan=False) + "\n"
        values["out"] = console.write(text, args.out, args.force)
    text = str(found)
    if console.written:
        text += f"\n\nWritten, and not for release: {', '.join(map(str, console.written))}"
    console.result(values, text)
