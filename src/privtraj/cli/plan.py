"""`privtraj plan`: what quality to expect, before anything is read or spent."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.cli.compiled import keep_compiled
from privtraj.cli.console import Console
from privtraj.cli.fit import BY_HAND
from privtraj.cli.options import add_common_options, at_least, check_output
from privtraj.errors import InputError

if TYPE_CHECKING:
    from privtraj.planning.forecast import Forecast

_EXAMPLE = """\
examples:
  privtraj plan --people 6000 --times 10 --features 2 --epsilon 1 --delta 1e-5
  privtraj plan --people 6000 --config fit.toml --plot plan.png"""

_SHARED = ("epsilon", "delta", "adjacency", "measure", "public_counts", "records_per_person")
_NEEDED = {
    "people": "--people N is needed: about how many people there are, at all times together",
    "times": "--times N is needed: the number of time bins, here or as bins in a --config FILE",
    "features": "--features N is needed: the number of columns to use, here or as feature in a "
    "--config FILE",
}


def add(commands: Any) -> None:
    about = "forecast the quality of a fit by simulation: no data are read, nothing is spent"
    plan = commands.add_parser("plan", help=about, description=about, epilog=_EXAMPLE)
    plan.set_defaults(run=run)
    _add_data(plan.add_argument_group("data", "what is public about them"))
    _add_privacy(plan.add_argument_group("privacy"))
    output = plan.add_argument_group("output")
    text = "draw worth against epsilon: .png, .pdf or .svg"
    output.add_argument("--plot", type=Path, metavar="FILE", help=text)
    text = "simulate again, and keep nothing for the next time"
    output.add_argument("--no-cache", action="store_true", help=text)
    add_common_options(output, "replace an existing file")


def _add_data(group: Any) -> None:
    text = "how many there are, at all times together; a round number will do (required)"
    group.add_argument("--people", type=at_least(2), metavar="N", help=text)
    group.add_argument("--times", type=at_least(2), metavar="N", help="time bins (required)")
    text = "columns of numbers, without the time (required)"
    group.add_argument("--features", type=at_least(1), metavar="N", help=text)
    text = "most records of a person that are used (default: 1)"
    group.add_argument("--records-per-person", type=at_least(1), metavar="G", help=text)
    text = "file of 'privtraj init': bins, features, budget and settings are taken from it"
    group.add_argument("--config", type=Path, metavar="FILE", help=text)


def _add_privacy(group: Any) -> None:
    add = group.add_argument
    add("--epsilon", type=float, metavar="X", help="privacy loss allowed (default: 1)")
    add("--delta", type=float, metavar="X", help="chance of a larger loss (default: 1e-5)")
    text = "what is hidden: whether a person is in the data, or what the record says"
    choices = ("add-remove", "replace-one")
    add("--adjacency", choices=choices, help=f"{text} (default: {choices[0]})")
    text = "what the budget buys: counts suit few features, gradients many (default: auto)"
    add("--measure", choices=("auto", "gradients", "counts"), help=text)
    text = "people per bin are public knowledge, so nothing is spent on them"
    add("--public-counts", action="store_true", default=None, help=text)


def run(args: argparse.Namespace, console: Console) -> None:
    asked = _asked(args)
    check_output(args.plot, (".png", ".pdf", ".svg"), args.force)
    from privtraj.planning.planner import plan

    forecast = plan(**asked, keep=not args.no_cache, progress=_when_simulating(console))
    text, files = str(forecast), {}
    if args.plot is not None:
        _draw(forecast, args.plot, args.force)
        text += f"\n\nWritten: {args.plot}"
        files["plot"] = str(args.plot)
    console.result({"command": "plan", **forecast.to_dict(), **files}, text)


def _when_simulating(console: Console) -> Callable[[int, int], None]:
    """A bar that appears, and heavy parts that are loaded, only if the answer is not known yet."""
    bar: list[Callable[[int, int], None]] = []

    def show(done: int, total: int) -> None:
        if not bar:
            keep_compiled()
            bar.append(console.progress("simulating"))
        bar[0](done, total)

    return show


def _asked(args: argparse.Namespace) -> dict[str, Any]:
    """The question: as given on the command line, else in the configuration."""
    names = ("people", "times", "features", *_SHARED)
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    asked = {} if args.config is None else _configured(args.config, given)
    asked |= given
    for name, sentence in _NEEDED.items():
        if name not in asked:
            raise InputError(sentence)
    return asked


def _configured(path: Path, given: dict[str, Any]) -> dict[str, Any]:
    """What a configuration says that the command line does not."""
    from privtraj import config

    wanted = {"bins", "bin_times", "feature", *_SHARED, *BY_HAND} - set(given)
    if "times" in given:
        wanted -= {"bins", "bin_times"}
    if "features" in given:
        wanted -= {"feature"}
    found = config.load(path, but=set(config.KEYS) - wanted)
    asked = {name: found[name] for name in (*_SHARED, *BY_HAND) if name in found}
    if "bins" in found or "bin_times" in found:
        asked["times"] = found["bins"] if "bins" in found else len(found["bin_times"])
    if "feature" in found:
        asked["features"] = len(found["feature"])
    return asked


def _draw(forecast: Forecast, path: Path, force: bool) -> None:
    from matplotlib.figure import Figure

    from privtraj import plot
    from privtraj.report.figures import save_figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained", facecolor="white")
    plot.tradeoff(forecast, ax=figure.subplots())
    save_figure(figure, path, force)
