"""The command line: `privtraj demo`, `fit` and `sample`.

Results go to stdout, progress and notes to stderr; whatever a user can put right ends in one
sentence and exit code 2. Nothing beyond the standard library is imported before a command runs,
so that help answers at once.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from privtraj import __version__
from privtraj.errors import InputError, PrivtrajError

if TYPE_CHECKING:
    from privtraj.model import TrajectoryModel
    from privtraj.snapshots import Snapshots

PEOPLE = 1000  # drawn unless told otherwise
LARGEST_NUMBER = 10**9
BAD_INPUT = 2
INTERRUPTED = 130

WELCOME = """\
privtraj makes private synthetic trajectories from one time-stamped record per person.

  privtraj demo            see it work on a simulated growth clinic (about half a minute)
  privtraj fit --help      make a private model from your own CSV, Parquet or Arrow file
  privtraj sample --help   draw synthetic trajectories from a model, at any time

New here? Run: privtraj demo"""

_FIT_EXAMPLE = """\
example:
  privtraj fit clinic.csv --time age --person id \\
      --feature height 40 210 --feature weight 1 140 --time-range 0 20 --bins 12 \\
      --epsilon 1 --delta 1e-5 --out growth.privtraj --certificate certificate.json"""

_SAMPLE_EXAMPLE = """\
examples:
  privtraj sample growth.privtraj -n 1000 --at 81 --out paths.csv
  privtraj sample visits.privtraj -n 50 --times 2024-01-31 2024-02-15 --out paths.parquet"""

_DEMO_EXAMPLE = """\
example:
  privtraj demo --epsilon 0.5 --out half"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    console = _Console()
    try:
        with _notes(console):
            _run(_parser().parse_args(argv), console)
            sys.stdout.flush()
    except PrivtrajError as error:
        return console.fail(_in_options(str(error)))
    except MemoryError:
        return console.fail("there is not enough memory: ask for fewer paths or fewer times")
    except OSError as error:
        _give_up_stdout_if_broken()
        return console.fail(_os_sentence(error))
    except KeyboardInterrupt:
        return console.fail("interrupted: nothing is left half-written", INTERRUPTED)
    return 0


def _run(args: argparse.Namespace, console: _Console) -> None:
    if args.command is None:
        print(WELCOME)
        return
    console.quiet, console.json = args.quiet, args.json
    args.run(args, console)


# Talking to the user --------------------------------------------------------------------------


@dataclass
class _Console:
    """Where a command says things, and what it has written so far."""

    quiet: bool = False
    json: bool = False
    written: list[Path] = field(default_factory=list)
    _line: bool = False  # whether the last line on stderr is a progress line

    def progress(self, label: str) -> Callable[[int, int], None]:
        """A bar on stderr that the returned function moves; nothing unless a person looks on."""

        def show(done: int, total: int) -> None:
            if self.quiet or not sys.stderr.isatty():
                return
            filled = 30 * done // max(total, 1)
            bar = "#" * filled + "." * (30 - filled)
            state = f"{done}/{total}" if done else "preparing"
            self._line = done < total
            end = "" if self._line else "\n"
            print(f"\r{label} [{bar}] {state:<11}", end=end, file=sys.stderr, flush=True)

        show(0, 1)
        return show

    def note(self, text: object) -> None:
        """One line that the user should know."""
        self._say(f"note: {text}")

    def result(self, values: dict[str, Any], text: str) -> None:
        """The result on stdout: one JSON object, or text."""
        print(json.dumps(values, allow_nan=False) if self.json else text)

    def fail(self, sentence: str, code: int = BAD_INPUT) -> int:
        """The one sentence about what went wrong; returns the exit code."""
        kept = ", ".join(str(path) for path in self.written)
        kept = f" (written before that, and complete: {kept})" if kept else ""
        self._say(f"error: {sentence.removesuffix('.')}{kept}")
        return code

    def _say(self, text: str) -> None:
        start = "\n" if self._line else ""  # leave the progress line as it is
        self._line = False
        print(f"{start}privtraj: {' '.join(text.split())}", file=sys.stderr)


@contextmanager
def _notes(console: _Console) -> Iterator[None]:
    """Show warnings that are meant for users as one line each."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, UserWarning):
                console.note(message)
            else:
                usual(message, category, *rest, **more)

        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


# The library explains itself in Python's terms; on the command line these are options.
_OPTIONS = {
    "missing='drop'": "--missing drop",
    "one_per_person='random' needs person=": "--one-per-person random needs --person",
    "one_per_person='random'": "--one-per-person random",
    "measure='counts'": "--measure counts",
    "measure='gradients'": "--measure gradients",
    " (force=True in Python)": "",
}


def _in_options(message: str) -> str:
    for python, option in _OPTIONS.items():
        message = message.replace(python, option)
    return message


def _os_sentence(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    where = f" ('{error.filename}')" if error.filename else ""
    return f"the system refused: {reason}{where}"


def _give_up_stdout_if_broken() -> None:
    """Keep Python from trying again, and complaining, when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# Options --------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)
        # Without this, argparse takes a bound such as -1e-3 for an option.
        self._negative_number_matcher = re.compile(r"^-\.?\d")

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see '{self.prog} --help')")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="privtraj",
        description="Private synthetic trajectories from one time-stamped record per person.",
        epilog="New here? Run: privtraj demo",
    )
    parser.add_argument("--version", action="version", version=f"privtraj {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    _add_demo(commands)
    _add_fit(commands)
    _add_sample(commands)
    return parser


def _add_demo(commands: Any) -> None:
    about = "fit a simulated growth clinic and write everything to a directory"
    demo = commands.add_parser("demo", help=about, description=about, epilog=_DEMO_EXAMPLE)
    demo.set_defaults(run=_demo)
    text = "children in the clinic; more people, sharper result (default: 6000)"
    data = demo.add_argument_group("data")
    data.add_argument("--people", type=_at_least(100), default=6000, metavar="N", help=text)
    _add_budget(demo.add_argument_group("privacy"), epsilon=1.0, delta=1e-5)
    output = demo.add_argument_group("output")
    text = "directory to write to, made if missing (default: privtraj-demo)"
    output.add_argument("--out", type=Path, default="privtraj-demo", metavar="DIR", help=text)
    _add_manners(output, "write into a directory that is not empty")


def _add_fit(commands: Any) -> None:
    about = "spend a privacy budget on a table, once, and write a model that may be released"
    usage = "privtraj fit DATA [options]"
    fit = commands.add_parser(
        "fit", help=about, description=about, usage=usage, epilog=_FIT_EXAMPLE
    )
    fit.set_defaults(run=_fit)
    _add_data(fit.add_argument_group("data", "the columns to use, and what is public about them"))
    privacy = fit.add_argument_group("privacy")
    _add_budget(privacy)
    _add_privacy(privacy)
    _add_fit_output(fit.add_argument_group("output"))
    _add_advanced(
        fit.add_argument_group("advanced", "chosen from public and released numbers by default")
    )


def _add_data(group: Any) -> None:
    add = group.add_argument
    add("data", metavar="DATA", type=Path, help="CSV, Parquet or Arrow file")
    add("--time", metavar="COL", help="column of numbers or dates (required)")
    text = "column of numbers and its public bounds, values outside are clamped; repeat (required)"
    add("--feature", nargs=3, action="append", metavar=("NAME", "LOW", "HIGH"), help=text)
    text = "public range, numbers or dates such as 2024-01-31; records outside count at its ends"
    add("--time-range", nargs=2, metavar=("START", "END"), help=text)
    bins = group.add_mutually_exclusive_group()
    text = "times to fit, spread over the range; more bins, fewer people in each"
    bins.add_argument("--bins", type=_at_least(2), metavar="N", help=text)
    text = "times to fit, listed; each record goes to the nearest"
    bins.add_argument("--bin-times", nargs="+", metavar="T", help=text)
    add("--person", metavar="COL", help="column that says whose record it is: one each is checked")
    text = "several records of a person: refuse them, or keep one at random"
    _choice(group, "--one-per-person", text, "error", "random")
    text = "records with missing values: refuse them, or leave them out"
    _choice(group, "--missing", text, "refuse", "drop")


def _choice(group: Any, flag: str, text: str, *choices: str) -> None:
    """An option whose first choice is the default."""
    text = f"{text} (default: {choices[0]})"
    group.add_argument(flag, choices=choices, default=choices[0], help=text)


def _add_budget(group: Any, epsilon: float | None = None, delta: float | None = None) -> None:
    for flag, value, text in (
        (
            "--epsilon",
            epsilon,
            "privacy loss allowed: smaller is more private and blurs the result",
        ),
        ("--delta", delta, "chance of a larger loss: far below one over the number of people"),
    ):
        text += " (required)" if value is None else f" (default: {value:g})"
        group.add_argument(flag, type=float, default=value, metavar="X", help=text)


def _add_privacy(group: Any) -> None:
    text = "what is hidden: whether a person is in the data, or what the record says"
    _choice(group, "--adjacency", text, "add-remove", "replace-one")
    text = "what the budget buys: counts suit few features, gradients many"
    _choice(group, "--measure", text, "auto", "gradients", "counts")
    text = "people per bin are public knowledge, so nothing is spent on them"
    group.add_argument("--public-counts", action="store_true", help=text)
    text = "repeatable noise, for research: the result is NOT PRIVATE"
    group.add_argument("--seed", type=_at_least(0), metavar="S", help=text)


def _add_fit_output(group: Any) -> None:
    add = group.add_argument
    add("--out", type=Path, metavar="MODEL", help="model file, named .privtraj (required)")
    add("--certificate", type=Path, metavar="FILE", help="also write the certificate, as .json")
    add("--paths", type=Path, metavar="FILE", help="also draw paths: .csv, .parquet or .arrow")
    _add_sampling_size(group, " in --paths")
    _add_manners(group, "replace existing files")


def _add_sampling_size(group: Any, where: str = "") -> None:
    text = f"number of synthetic people{where} (default: {PEOPLE})"
    group.add_argument("-n", "--n", type=_at_least(1), metavar="N", help=text)
    text = f"number of times{where}, spread over the range (default: the fitted times)"
    group.add_argument("--at", type=_at_least(1), metavar="N", help=text)


def _add_advanced(group: Any) -> None:
    for flag, kind, text in (
        ("--particles", _at_least(2), "points that carry each time: more is finer, and noisier"),
        ("--steps", _at_least(2), "moves of the particles; gradients share the budget among them"),
        (
            "--cells",
            _at_least(2),
            "cells per feature of the private counts: more is finer, and noisier",
        ),
        ("--bandwidth", float, "width of a person around a particle, as a share of the box"),
        ("--pull", float, "how strongly neighbouring times draw each other, 0 to 0.5"),
        ("--diffusivity", float, "how much single paths wander: variance, in boxes, per range"),
    ):
        group.add_argument(flag, type=kind, metavar="X", help=text)


def _add_sample(commands: Any) -> None:
    about = "draw synthetic trajectories from a model; this costs no privacy, however often"
    usage = "privtraj sample MODEL --out FILE [options]"
    sample = commands.add_parser(
        "sample", help=about, description=about, usage=usage, epilog=_SAMPLE_EXAMPLE
    )
    sample.set_defaults(run=_sample)
    data = sample.add_argument_group("data")
    data.add_argument("model", metavar="MODEL", type=Path, help="model file that fit has written")
    _add_sampling_size(data)
    text = "instead of --at: the times themselves, numbers or dates inside the range"
    data.add_argument("--times", nargs="+", metavar="T", help=text)
    output = sample.add_argument_group("output")
    text = "table to write: .csv, .parquet or .arrow (required)"
    output.add_argument("--out", type=Path, metavar="FILE", help=text)
    _add_manners(output, "replace an existing file")
    _add_path_options(sample.add_argument_group("advanced"))


def _add_path_options(group: Any) -> None:
    group.add_argument("--seed", type=_at_least(0), metavar="S", help="draw the same paths again")
    text = "between fitted times: wander, go straight, or bend smoothly"
    _choice(group, "--interpolation", text, "bridge", "linear", "spline")
    text = "who becomes whom: likely moves, or the shortest only"
    _choice(group, "--coupling", text, "entropic", "exact")
    text = "bare particles: less spread out than the people were"
    group.add_argument(
        "--no-observation-noise", dest="observation_noise", action="store_false", help=text
    )


def _add_manners(group: Any, force: str) -> None:
    group.add_argument("--force", action="store_true", help=force)
    group.add_argument("--json", action="store_true", help="print the result as one JSON object")
    group.add_argument("--quiet", action="store_true", help="show no progress")


def _at_least(smallest: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = smallest - 1
        if not smallest <= value <= LARGEST_NUMBER:
            raise argparse.ArgumentTypeError(
                f"must be a whole number of at least {smallest} and at most {LARGEST_NUMBER}"
            )
        return value

    return whole


# Checks before anything is read or spent ------------------------------------------------------

_NEEDED = {
    "time": "--time COL is needed: it names the column that says when each record was taken",
    "feature": "--feature NAME LOW HIGH is needed for every column to use: the bounds must be "
    "public knowledge, because bounds taken from the data would reveal its most extreme people",
    "epsilon": "--epsilon is needed: how much privacy loss to allow is your decision "
    "(1 is a common choice, smaller is more private)",
    "delta": "--delta is needed: choose it well below one over the number of people, such as 1e-5",
    "out": "--out is needed: it names the file to write",
}


def _require(args: argparse.Namespace, *names: str) -> None:
    for name in names:
        if getattr(args, name) is None:
            raise InputError(_NEEDED[name])


def _check_fit(args: argparse.Namespace) -> None:
    from privtraj.privacy.accounting import check_budget

    _require(args, "time", "feature")
    _check_time_options(args)
    _require(args, "epsilon", "delta", "out")
    check_budget(args.epsilon, args.delta)
    if args.paths is None and (args.n is not None or args.at is not None):
        raise InputError("-n and --at say how many paths to draw: add --paths FILE, or remove them")
    _check_distinct([args.data, args.out, args.certificate, args.paths])
    _check_output(args.out, (".privtraj",), args.force)
    _check_output(args.certificate, (".json",), args.force)
    _check_output(args.paths, None, args.force)


def _check_time_options(args: argparse.Namespace) -> None:
    if args.bins is None and args.bin_times is None:
        raise InputError(
            "--bins N or --bin-times T1 T2 ... is needed: it says at which times to fit, and is "
            "public knowledge"
        )
    if args.time_range is None and args.bin_times is None:
        raise InputError(
            "--time-range START END is needed with --bins: the range must be public knowledge, "
            "because a range taken from the data would reveal its earliest and latest people"
        )


def _check_distinct(paths: Sequence[Path | None]) -> None:
    given = [path.resolve() for path in paths if path is not None]
    for path in given:
        if given.count(path) > 1:
            raise InputError(f"'{path.name}' is named twice: give every file a name of its own")


def _check_output(path: Path | None, suffixes: tuple[str, ...] | None, force: bool) -> None:
    """Refuse a file that could not be written; `suffixes` None means that of any table."""
    from privtraj import tables

    if path is None:
        return
    known = tuple(tables.FORMATS) if suffixes is None else suffixes
    if not path.name.lower().endswith(known):
        raise InputError(f"the name '{path.name}' must end in {' or '.join(known)}")
    tables.check_writable(path, force)


# Commands -------------------------------------------------------------------------------------


def _fit(args: argparse.Namespace, console: _Console) -> None:
    model, values = _fitted(args, console)
    text = f"{model.certificate}\n\nWritten:\n{_listed(console.written)}"
    if args.paths is None:
        hint = shlex.join(
            ["privtraj", "sample", str(args.out), "-n", str(PEOPLE), "--out", "paths.csv"]
        )
        text += f"\n\nNext: {hint}"
    console.result({"command": "fit", **values}, text)


def _fitted(args: argparse.Namespace, console: _Console) -> tuple[TrajectoryModel, dict[str, Any]]:
    """The model, saved with all that was asked for, and what to say about it."""
    _check_fit(args)
    _note_fit(args, console)
    from privtraj.synthesizer import TrajectorySynthesizer

    chosen = ("particles", "steps", "cells", "bandwidth", "pull", "diffusivity")
    synthesizer = TrajectorySynthesizer(
        args.epsilon,
        args.delta,
        adjacency=args.adjacency,
        measure=args.measure,
        seed=args.seed,
        public_counts=args.public_counts,
        **{name: getattr(args, name) for name in chosen if getattr(args, name) is not None},
    )
    synthesizer.check()
    model = synthesizer.fit(_snapshots(args), progress=console.progress("fitting"))
    # The budget is spent now: the model goes to disk before anything else can fail.
    model.save(args.out, force=args.force)
    console.written.append(args.out)
    return model, _fit_extras(args, model, console)


def _fit_extras(
    args: argparse.Namespace, model: TrajectoryModel, console: _Console
) -> dict[str, Any]:
    values = {
        "model": str(args.out),
        "certificate": model.certificate.to_dict(),
        "settings": model.settings,
        "diagnostics": model.diagnostics,
    }
    if args.certificate is not None:
        _write_text(args.certificate, model.certificate.to_json() + "\n", args.force)
        console.written.append(args.certificate)
        values["certificate_file"] = str(args.certificate)
    if args.paths is not None:
        paths = model.sample(args.n or PEOPLE, _even_times(model, args.at), seed=args.seed)
        values["paths"] = _write_paths(paths, args.paths, args.force, console)
    return values


def _note_fit(args: argparse.Namespace, console: _Console) -> None:
    if args.seed is not None:
        console.note(
            "NOT PRIVATE: --seed makes the noise predictable; use the result for research only and "
            "never release it"
        )
    if args.person is None:
        console.note(
            "without --person every row is taken to be a different person, and the guarantee holds "
            "only if that is true"
        )


def _snapshots(args: argparse.Namespace) -> Snapshots:
    from privtraj.snapshots import Snapshots

    return Snapshots.from_table(
        args.data,
        time=args.time,
        features=[name for name, _, _ in args.feature],
        bounds=[(low, high) for _, low, high in args.feature],
        time_range=args.time_range,
        bins=args.bins if args.bin_times is None else args.bin_times,
        person=args.person,
        one_per_person=args.one_per_person,
        missing=args.missing,
        seed=args.seed,
    )


def _sample(args: argparse.Namespace, console: _Console) -> None:
    _, _, values = _sampled(args, console)
    drawn = values["paths"]
    text = f"{drawn['n']} paths at {drawn['times']} times, written to {drawn['file']}"
    console.result({"command": "sample", **values}, text)


def _sampled(
    args: argparse.Namespace, console: _Console
) -> tuple[TrajectoryModel, Any, dict[str, Any]]:
    """The model, the paths drawn from it and written, and what to say about them."""
    if args.at is not None and args.times is not None:
        raise InputError("--at and --times exclude each other: say how many times, or which")
    _require(args, "out")
    _check_output(args.out, None, args.force)
    from privtraj.model import load

    model = load(args.model)
    if not model.certificate.private:
        console.note("NOT PRIVATE: the model was fitted with a seed; do not release the paths")
    paths = model.sample(
        args.n or PEOPLE,
        _even_times(model, args.at) if args.times is None else args.times,
        seed=args.seed,
        interpolation=args.interpolation,
        coupling=args.coupling,
        observation_noise=args.observation_noise,
    )
    values = {
        "model": str(args.model),
        "private": model.certificate.private,
        "paths": _write_paths(paths, args.out, args.force, console),
    }
    return model, paths, values


def _even_times(model: TrajectoryModel, count: int | None) -> Any:
    if count is None:
        return None
    import numpy as np

    from privtraj.snapshots import as_user_times

    first, last = model.numeric_times[[0, -1]]
    return as_user_times(np.linspace(first, last, count), model.datetime)


def _write_paths(paths: Any, path: Path, force: bool, console: _Console) -> dict[str, Any]:
    from privtraj.tables import write_table

    write_table(paths.to_arrow(), path, force)
    console.written.append(path)
    people, times, _ = paths.values.shape
    return {"file": str(path), "n": people, "times": times, "features": list(paths.features)}


def _write_text(path: Path, text: str, force: bool) -> None:
    from privtraj.tables import atomic_path

    with atomic_path(path, force) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _listed(paths: Sequence[Path]) -> str:
    return "\n".join(f"  {path}" for path in paths)


# Demo -----------------------------------------------------------------------------------------

_DEMO_FILES = {
    "clinic.csv": "the sensitive table (simulated): one visit per child",
    "growth.privtraj": "the private model: may be released",
    "certificate.json": "the privacy guarantee, for the record",
    "paths.csv": "1000 synthetic children at 81 ages: may be released",
    "overview.png": "a picture of them: may be released",
}


def _demo(args: argparse.Namespace, console: _Console) -> None:
    """Write the table, then run the very commands that are printed at the end."""
    from privtraj import datasets, tables
    from privtraj.privacy.accounting import check_budget
    from privtraj.report.figures import overview, save_figure

    check_budget(args.epsilon, args.delta)
    _make_directory(args.out, args.force)
    files = {name: args.out / name for name in _DEMO_FILES}
    tables.write_table(datasets.growth_clinic(args.people), files["clinic.csv"], args.force)
    console.written.append(files["clinic.csv"])
    rest = ["--certificate", str(files["certificate.json"]), *(["--force"] * args.force)]
    fit = _demo_fit(args, files["growth.privtraj"])
    _, fitted = _fitted(_parser().parse_args([*fit, *rest]), console)
    sample = _demo_sample(files["growth.privtraj"], files["paths.csv"])
    draw = _parser().parse_args([*sample, *(["--force"] * args.force)])
    model, paths, drawn = _sampled(draw, console)
    save_figure(overview(model, paths), files["overview.png"], args.force)
    _demo_result(args, {**fitted, **drawn, "overview": str(files["overview.png"])}, model, console)


def _make_directory(path: Path, force: bool) -> None:
    if path.exists() and not path.is_dir():
        raise InputError(f"'{path}' is a file: give --out the name of a directory")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise InputError(
            f"the directory '{path}' is not empty: choose another with --out, or write into it "
            "with --force"
        )
    path.mkdir(parents=True, exist_ok=True)


def _demo_fit(args: argparse.Namespace, model: Path) -> list[str]:
    from privtraj.datasets import GROWTH_BOUNDS, GROWTH_TIME_RANGE

    bounds = [
        word
        for name, (low, high) in GROWTH_BOUNDS.items()
        for word in ("--feature", name, _typed(low), _typed(high))
    ]
    ages = [_typed(age) for age in GROWTH_TIME_RANGE]
    budget = ["--epsilon", _typed(args.epsilon), "--delta", _typed(args.delta)]
    columns = ["--time", "age", "--person", "id"]
    times = ["--time-range", *ages, "--bins", "12"]
    table = str(args.out / "clinic.csv")
    return ["fit", table, *columns, *bounds, *times, *budget, "--out", str(model)]


def _demo_sample(model: Path, paths: Path) -> list[str]:
    return ["sample", str(model), "-n", str(PEOPLE), "--at", "81", "--out", str(paths)]


def _demo_result(
    args: argparse.Namespace, values: dict[str, Any], model: TrajectoryModel, console: _Console
) -> None:
    mine = args.out / "mine.privtraj"
    by_hand = [_demo_fit(args, mine), _demo_sample(mine, args.out / "mine.csv")]
    commands = [shlex.join(["privtraj", *words]) for words in by_hand]
    width = max(len(str(args.out / name)) for name in _DEMO_FILES)
    files = "\n".join(
        f"  {args.out / name!s:<{width}}  {about}" for name, about in _DEMO_FILES.items()
    )
    text = (
        f"{model.certificate}\n\nWritten:\n{files}\n\n"
        "The same by hand (the noise differs each time):\n" + "\n".join(f"  {c}" for c in commands)
    )
    about = {"command": "demo", "directory": str(args.out), "data": str(args.out / "clinic.csv")}
    console.result({**about, **values, "commands": commands}, text)


def _typed(number: float) -> str:
    """The number as a person would type it."""
    return repr(float(number)).removesuffix(".0")


if __name__ == "__main__":
    sys.exit(main())
