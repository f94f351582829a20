"""`privtraj sample`: draw synthetic trajectories from a model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.cli.compiled import keep_compiled
from privtraj.cli.console import Console
from privtraj.cli.options import add_common_options, at_least, check_output, choice, require
from privtraj.errors import InputError

if TYPE_CHECKING:
    from privtraj.model import TrajectoryModel

PEOPLE = 1000  # drawn unless told otherwise

_EXAMPLE = """\
examples:
  privtraj sample growth.privtraj -n 1000 --at 81 --out paths.csv
  privtraj sample visits.privtraj -n 50 --times 2024-01-31 2024-02-15 --out paths.parquet
  privtraj sample trips.privtraj --at 100 --out paths.geojson"""


def add(commands: Any) -> None:
    about = "draw synthetic trajectories from a model; this costs no privacy, however often"
    usage = "privtraj sample MODEL --out FILE [options]"
    sample = commands.add_parser(
        "sample", help=about, description=about, usage=usage, epilog=_EXAMPLE
    )
    sample.set_defaults(run=run)
    data = sample.add_argument_group("data")
    data.add_argument("model", metavar="MODEL", type=Path, help="model file that fit has written")
    add_sampling_size(data)
    text = "instead of --at: the times themselves, numbers or dates inside the range"
    data.add_argument("--times", nargs="+", metavar="T", help=text)
    output = sample.add_argument_group("output")
    text = "file to write: .csv, .parquet, .arrow, .geojson, .geoparquet or .h5ad (required)"
    output.add_argument("--out", type=Path, metavar="FILE", help=text)
    add_common_options(output, "replace an existing file")
    _add_path_options(sample.add_argument_group("advanced"))


def add_sampling_size(group: Any, where: str = "") -> None:
    """How many paths to draw, and at how many times."""
    text = f"number of synthetic people{where} (default: {PEOPLE})"
    group.add_argument("-n", "--n", type=at_least(1), metavar="N", help=text)
    text = f"number of times{where}, spread over the range (default: the fitted times)"
    group.add_argument("--at", type=at_least(1), metavar="N", help=text)


def _add_path_options(group: Any) -> None:
    group.add_argument("--seed", type=at_least(0), metavar="S", help="draw the same paths again")
    text = "between fitted times: wander, go straight, or bend smoothly"
    choice(group, "--interpolation", text, "bridge", "linear", "spline")
    text = "who becomes whom: likely moves, or the shortest only"
    choice(group, "--coupling", text, "entropic", "exact")
    text = "bare particles: less spread out than the people were"
    group.add_argument(
        "--no-observation-noise", dest="observation_noise", action="store_false", help=text
    )


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
    require(args, "out")
    check_output(args.out, None, args.force)
    keep_compiled()
    from privtraj.export.writers import check_paths
    from privtraj.model import load

    model = load(args.model)
    at = even_times(model, args.at) if args.times is None else args.times
    count = len(model.times if at is None else at)
    check_paths(args.out, model.features, model.bounds, count)
    if not model.certificate.private:
        console.note(f"NOT PRIVATE: {model.certificate.caveat}; do not release the paths")
    paths = model.sample(
        args.n or PEOPLE,
        at,
        seed=args.seed,
        interpolation=args.interpolation,
        coupling=args.coupling,
        observation_noise=args.observation_noise,
    )
    values = {
        "model": str(args.model),
        "private": model.certificate.private,
        "paths": write_paths(paths, args.out, args.force, console),
    }
    return model, paths, values


def even_times(model: TrajectoryModel, count: int | None) -> Any:
    """That many times over the model's range; None means the fitted ones."""
    if count is None:
        return None
    import numpy as np

    from privtraj.space import as_user_times

    first, last = model.numeric_times[[0, -1]]
    return as_user_times(np.linspace(first, last, count), model.datetime)


def write_paths(paths: Any, path: Path, force: bool, console: Console) -> dict[str, Any]:
    """Write the paths, as the name says; returns what to say about them."""
    paths.save(path, force=force)
    console.written.append(path)
    people, times, _ = paths.values.shape
    return {"file": str(path), "n": people, "times": times, "features": list(paths.features)}
