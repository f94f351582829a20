"""`privtraj sample`: draw synthetic trajectories from a model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.base.errors import Arg, InputError
from privtraj.base.formats import PEOPLE_DRAWN
from privtraj.cli import shared
from privtraj.cli.console import Console
from privtraj.cli.options import BOOLEAN, CONDITIONS, TIMES, Option, one_of

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

_EXAMPLE = """\
examples:
  privtraj sample growth.privtraj -n 1000 --at 81 --out paths.csv
  privtraj sample visits.privtraj -n 50 --times 2024-01-31 2024-02-15 --out paths.parquet
  privtraj sample trips.privtraj --at 100 --out paths.geojson
  privtraj sample clinic.privtraj --where sex=F --at-start stage=II,III --out women.csv"""


def add(commands: Any) -> None:
    about = "draw synthetic trajectories from a model; this costs no privacy, however often"
    usage = "privtraj sample MODEL --out FILE [options]"
    sample = shared.command(commands, "sample", about, run, usage=usage, epilog=_EXAMPLE)
    data = sample.add_argument_group("data")
    shared.add_model(data)
    shared.add(data, "n", about="number of synthetic people")
    shared.add(data, "at", about="number of times, spread over the range")
    text = "instead of --at: the times themselves, numbers or dates inside the range"
    shared.add(data, Option("times", TIMES, text))
    text = "only people who are so at all times: sex=F, stage=II,III, age=40..60; repeatable"
    shared.add(data, Option("where", CONDITIONS, text))
    text = "only people who are so at the first time; hb= stands for missing"
    shared.add(data, Option("at_start", CONDITIONS, text))
    output = sample.add_argument_group("output")
    text = (
        "file to write: .csv, .parquet, .arrow, .geojson (.trips.geojson for kepler.gl, "
        ".points.geojson for QGIS), .geoparquet or .h5ad"
    )
    shared.add(output, "out", about=text)
    shared.add_common_options(output, "replace an existing file")
    group = sample.add_argument_group("advanced")
    shared.add(group, "seed", about="draw the same paths again")
    between, whom = one_of("bridge", "linear", "spline"), one_of("entropic", "exact")
    shared.add(group, "reference", default=None, otherwise="as fitted")
    text = "between fitted times: wander, go straight, or bend smoothly"
    shared.add(group, Option("interpolation", between, text, otherwise="as the reference says"))
    text = "who becomes whom: likely moves, or the shortest only"
    shared.add(group, Option("coupling", whom, text, otherwise="as the reference says"))
    text = "who is born, where the population grows, has a parent and shares its past"
    shared.add(group, Option("branching", BOOLEAN, text, default=False))
    text = "bare particles: less spread out than the people were"
    shared.add(group, Option("no_observation_noise", BOOLEAN, text, default=False))


def run(args: argparse.Namespace, console: Console) -> None:
    _, _, values = sampled(args, console)
    drawn = values["paths"]
    text = f"{drawn['n']} paths at {drawn['times']} times, written to {drawn['file']}"
    console.result({"command": "sample", **values}, text)


def sampled(
    args: argparse.Namespace, console: Console
) -> tuple[TrajectoryModel, Any, dict[str, Any]]:
    """The model, the paths drawn from it and written, and what to say about them."""
    if args.at is not None and args.times is not None:
        raise InputError("--at and --times exclude each other: say how many times, or which")
    shared.require(vars(args), "out")
    shared.check_output(args.out, None, args.force)
    model = shared.load_model(args.model, "paths", console)
    if args.reference is not None:
        model = model.with_reference(args.reference)
    from privtraj.export.files import check_paths

    at = even_times(model, args.at) if args.times is None else args.times
    count = len(model.times if at is None else at)
    shown = [not column.of for column in model.columns]
    names = tuple(name for name, kept in zip(model.features, shown, strict=True) if kept)
    check_paths(args.out, names, model.bounds[shown], count)
    how = {name: getattr(args, name) for name in ("seed", "interpolation", "coupling", "branching")}
    how["observation_noise"] = not args.no_observation_noise
    how |= {name: conditions(getattr(args, name), name) for name in ("where", "at_start")}
    paths = model.sample(args.n or PEOPLE_DRAWN, at, **how)
    values = {
        "model": str(args.model),
        "private": model.certificate.private,
        "paths": write_paths(paths, args.out, args.force, console),
    }
    return model, paths, values


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


def write_paths(paths: Any, path: Path, force: bool, console: Console) -> dict[str, Any]:
    """Write the paths, as the name says; returns what to say about them."""
    paths.save(path, force=force)
    console.written.append(path)
    people, times, _ = paths.values.shape
    return {"file": str(path), "n": people, "times": times, "features": list(paths.features)}
