"""`privtraj plan`: what quality to expect, before anything is read or spent."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from privtraj.base.errors import InputError
from privtraj.cli import shared
from privtraj.cli.console import Console
from privtraj.cli.options import ADVANCED, BOOLEAN, FILE, OPTIONS, Option, whole

_EXAMPLE = """\
examples:
  privtraj plan --people 6000 --features 2 --epsilon 1 --delta 1e-5
  privtraj plan --people 6000 --config fit.toml --plot plan.png
  privtraj plan --people 6000 --features 2 --column sex category values=F,M fixed \\
      --column smoker boolean --epsilon 1 --delta 1e-5"""

_SHARED = ("epsilon", "delta", "adjacency", "measure", "public_counts", "records_per_person")
# fmt: off
_COUNTS = (
    Option("people", whole(2), "how many there are, at all times together; a round number will do",
           needed="about how many people there are, at all times together"),
    Option("features", whole(1), "columns of numbers, without the time and those of --column",
           needed="the number of columns to use, here or as feature or columns in a --config FILE"),
)
_TIMES = Option("times", whole(2), otherwise="any time", about=
                "at how many times all records are, such as days of an experiment")
# fmt: on


def add(commands: Any) -> None:
    about = "forecast the quality of a fit by simulation: no data are read, nothing is spent"
    plan = shared.command(commands, "plan", about, run, epilog=_EXAMPLE)
    data = plan.add_argument_group("data", "what is public about them")
    shared.add(data, *_COUNTS, "columns", _TIMES)
    text = "most records of a person that are used"
    shared.add(data, "records_per_person", about=text, configured=True)
    text = "file of 'privtraj init': features, budget and settings are taken from it"
    shared.add(data, Option("config", FILE, text))
    privacy = plan.add_argument_group("privacy")
    shared.add_budget(privacy, configured=True)
    shared.add(privacy, "adjacency", "measure", configured=True)
    text = "the number of people in each bin is public knowledge; only with replace-one"
    shared.add(privacy, Option("public_counts", BOOLEAN, text), configured=True)
    output = plan.add_argument_group("output")
    text = "draw worth against epsilon: .png, .pdf or .svg"
    shared.add(output, Option("plot", FILE, text))
    text = "simulate again, and keep nothing for the next time"
    shared.add(output, Option("no_cache", BOOLEAN, text, default=False))
    shared.add_common_options(output, "replace an existing file")


def run(args: argparse.Namespace, console: Console) -> None:
    asked = _asked(args)
    shared.check_output(args.plot, shared.PICTURES, args.force)
    from privtraj.assess.planning.forecast import Forecast
    from privtraj.assess.planning.planner import plan

    forecast = plan(**asked, keep=not args.no_cache, progress=_when_simulating(console))
    text, files = str(forecast), {}
    if args.plot is not None:
        if not isinstance(forecast, Forecast):
            raise InputError("--plot draws a simulation, and categories have none: leave it out")
        from matplotlib.figure import Figure

        from privtraj import plot
        from privtraj.report.style import save_figure

        figure = Figure(figsize=(6.4, 4.2), layout="constrained", facecolor="white")
        plot.tradeoff(forecast, ax=figure.subplots())
        save_figure(figure, args.plot, args.force)
        text += f"\n\nWritten: {args.plot}"
        files["plot"] = str(args.plot)
    console.result({"command": "plan", **forecast.to_dict(), **files}, text)


def _when_simulating(console: Console) -> Callable[[int, int], None]:
    """A bar that appears, and heavy parts that are loaded, only if the answer is not known yet."""

    @cache
    def bar() -> Callable[[int, int], None]:
        shared.keep_compiled()
        return console.progress("simulating")

    return lambda done, total: bar()(done, total)


def _asked(args: argparse.Namespace) -> dict[str, Any]:
    """The question: as given on the command line, else in the configuration."""
    names = [*(option.name for option in _COUNTS), "columns", "times", *_SHARED]
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    asked = given if args.config is None else _configured(args.config, given) | given
    needed = _COUNTS[:1] if "columns" in asked else _COUNTS
    shared.require(dict.fromkeys(names) | asked, *needed)
    return asked


def _configured(path: Path, given: dict[str, Any]) -> dict[str, Any]:
    """What a configuration says that the command line does not."""
    from privtraj.cli import config

    wanted = {*_SHARED, *ADVANCED} - set(given)
    if not given.keys() & {"features", "columns"}:
        wanted |= {"feature", "columns"}
    chosen = config.load(path, but=set(OPTIONS) - wanted)
    asked = {name: chosen[name] for name in (*_SHARED, *ADVANCED) if name in chosen}
    if "public_counts" in asked:  # there, the numbers themselves
        asked["public_counts"] = True
    if "columns" in chosen:
        asked["columns"] = shared.columns(chosen)
    elif "feature" in chosen:
        asked["features"] = len(shared.columns(chosen))
    return asked
