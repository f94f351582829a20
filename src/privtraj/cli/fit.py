"""`privtraj fit`: spend a privacy budget on a table, once, and write a model."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj import config
from privtraj.cli.compiled import keep_compiled
from privtraj.cli.console import Console
from privtraj.cli.options import add_common_options, at_least, check_output, choice, require
from privtraj.cli.sample import PEOPLE, add_sampling_size, even_times, write_paths
from privtraj.errors import InputError

if TYPE_CHECKING:
    from privtraj.data.snapshots import Snapshots
    from privtraj.model import TrajectoryModel
    from privtraj.privacy.ledger_file import LedgerFile
    from privtraj.synthesizer import TrajectorySynthesizer

BY_HAND = ("particles", "steps", "cells", "rate", "bandwidth", "pull", "diffusivity")

_EXAMPLE = """\
example:
  privtraj fit clinic.csv --time age --person id \\
      --feature height 40 210 --feature weight 1 140 --time-range 0 20 --bins 12 \\
      --epsilon 1 --delta 1e-5 --out growth.privtraj --certificate certificate.json

or write all of that to a file, fill it in, and use it:
  privtraj init clinic.csv -o fit.toml
  privtraj fit --config fit.toml"""


def add(commands: Any) -> None:
    about = "spend a privacy budget on a table, once, and write a model that may be released"
    usage = "privtraj fit DATA [options]"
    fit = commands.add_parser(
        "fit", help=about, description=about, usage=usage, epilog=_EXAMPLE, configured=True
    )
    fit.set_defaults(run=run)
    _add_config(fit.add_argument_group("configuration", "all of the options below, in a file"))
    _add_data(fit.add_argument_group("data", "the columns to use, and what is public about them"))
    privacy = fit.add_argument_group("privacy")
    add_budget(privacy)
    _add_privacy(privacy)
    _add_processes(fit.add_argument_group("several processes", "each with records of other people"))
    _add_ledger(fit.add_argument_group("ledger", "for more than one fit on the same people"))
    _add_output(fit.add_argument_group("output"))
    _add_advanced(
        fit.add_argument_group("advanced", "chosen from public and released numbers by default")
    )


def _add_config(group: Any) -> None:
    text = "TOML or YAML file with any of these options; those on the command line win"
    group.add_argument("--config", type=Path, metavar="FILE", help=text)
    text = "write the file that repeats this fit: every public choice"
    group.add_argument("--write-config", type=Path, metavar="FILE", help=text)


def _add_data(group: Any) -> None:
    add = group.add_argument
    text = "CSV, Parquet, Arrow or .h5ad file; folder or pattern of files; connection string"
    add("data", nargs="?", metavar="DATA", type=config.source, help=text)
    add("--query", metavar="SQL", help="what to read from a database: a SELECT, or a table's name")
    add("--time", metavar="COL", help="column of numbers or dates (required)")
    text = "column of numbers and its public bounds, values outside are clamped; repeat (required)"
    add("--feature", nargs=3, action="append", metavar=("NAME", "LOW", "HIGH"), help=text)
    text = "public range, numbers or dates such as 2024-01-31; records outside count at its ends"
    add("--time-range", nargs=2, metavar=("START", "END"), help=text)
    text = "times to fit, spread over the range; more bins, fewer people in each"
    add("--bins", type=at_least(2), metavar="N", help=text)
    text = "times to fit, listed; each record goes to the nearest"
    add("--bin-times", nargs="+", metavar="T", help=text)
    add("--person", metavar="COL", help="column that says whose record it is: one each is checked")
    text = "several records of a person: refuse them, or keep one at random"
    choice(group, "--one-per-person", text, "error", "random")
    text = "instead, keep up to so many records of a person, one per bin, and pay for all of them"
    add("--records-per-person", type=at_least(1), default=1, metavar="G", help=text)
    text = "records with missing values: refuse them, or leave them out"
    choice(group, "--missing", text, "refuse", "drop")


def add_budget(group: Any, epsilon: float | None = None, delta: float | None = None) -> None:
    """The two numbers of the guarantee, required unless given here."""
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
    choice(group, "--adjacency", text, "add-remove", "replace-one")
    text = "what the budget buys: counts suit few features, gradients many"
    choice(group, "--measure", text, "auto", "gradients", "counts")
    text = "people per bin are public knowledge, so nothing is spent on them"
    group.add_argument("--public-counts", action="store_true", help=text)
    add_seed(group)


def add_seed(group: Any) -> None:
    """Repeatable noise, and the consent that it takes to write the result."""
    text = "repeatable noise, for research: the result is NOT PRIVATE"
    group.add_argument("--seed", type=at_least(0), metavar="S", help=text)
    text = "write a result that is not private all the same (needed with --seed)"
    group.add_argument("--not-private", action="store_true", help=text)


def _add_processes(group: Any) -> None:
    add = group.add_argument
    text = "join the processes that Slurm, Open MPI or Kubernetes started"
    add("--distributed", action="store_true", help=text)
    text = "instead, address of the first process, the same in all of them"
    add("--coordinator", metavar="HOST:PORT", help=text)
    add("--processes", type=at_least(1), metavar="P", help="with it, how many there are")
    add("--process", type=at_least(0), metavar="I", help="and the number of this one, from 0")


def _add_ledger(group: Any) -> None:
    add = group.add_argument
    text = "file that records the budget before anything is released; fits on it add up"
    add("--ledger", type=Path, metavar="FILE", help=text)
    text = "most that all fits in the ledger may spend together (default: as recorded last)"
    add("--cap-epsilon", type=float, metavar="E", help=text)
    add("--cap-delta", type=float, metavar="D", help="the same for delta")
    text = "nobody in these records is among the people of the ledger, so they need not add up"
    add("--new-people", action="store_true", help=text)


def _add_output(group: Any) -> None:
    add = group.add_argument
    add("--out", type=Path, metavar="MODEL", help="model file, named .privtraj (required)")
    add("--certificate", type=Path, metavar="FILE", help="also write the certificate, as .json")
    add("--paths", type=Path, metavar="FILE", help="also draw paths: .csv, .parquet, .geojson, ...")
    add_sampling_size(group, " in --paths")
    add_common_options(group, "replace existing files")


def _add_advanced(group: Any) -> None:
    for flag, kind, text in (
        ("--particles", at_least(2), "points that carry each time: more is finer, and noisier"),
        ("--steps", at_least(2), "moves of the particles; gradients share the budget among them"),
        (
            "--cells",
            at_least(2),
            "cells per feature of the private counts: more is finer, and noisier",
        ),
        ("--rate", float, "share of the people in each step of gradients, drawn by coins"),
        ("--bandwidth", float, "width of a person around a particle, as a share of the box"),
        ("--pull", float, "how strongly neighbouring times share what they know, 0 for not at all"),
        ("--diffusivity", float, "how much single paths wander: variance, in boxes, per range"),
    ):
        group.add_argument(flag, type=kind, metavar="X", help=text)


def run(args: argparse.Namespace, console: Console) -> None:
    from privtraj import processes

    together = (args.coordinator, args.processes, args.process)
    if args.distributed or together != (None, None, None):
        processes.start(*together)
    model, values = fitted(args, console)
    if not processes.is_first():
        return
    text = f"{model.certificate}\n\nWritten:\n{_listed(console.written)}"
    if (ledger := _ledger(args)) is not None:
        text += f"\n\n{ledger.describe()}"
    if args.paths is None:
        hint = shlex.join(
            ["privtraj", "sample", str(args.out), "-n", str(PEOPLE), "--out", "paths.csv"]
        )
        text += f"\n\nNext: {hint}"
    console.result({"command": "fit", **values}, text)


def fitted(args: argparse.Namespace, console: Console) -> tuple[TrajectoryModel, dict[str, Any]]:
    """The model, saved with all that was asked for, and what to say about it."""
    _check(args)
    keep_compiled()
    from privtraj import processes
    from privtraj.synthesizer import TrajectorySynthesizer

    synthesizer = TrajectorySynthesizer(
        args.epsilon,
        args.delta,
        adjacency=args.adjacency,
        measure=args.measure,
        seed=args.seed,
        public_counts=args.public_counts,
        **{name: getattr(args, name) for name in BY_HAND if getattr(args, name) is not None},
    )
    synthesizer.check()
    _check_records(args)
    _note(args, synthesizer, console)
    snapshots = _snapshots(args)
    if synthesizer.measure_for(len(args.feature)) == "gradients" and not args.quiet:
        console.note(f"gradients are computed on {processes.device()}")
    if args.ledger is not None:
        console.remains = ", but what was reserved in the ledger counts"
    model = synthesizer.fit(
        snapshots,
        ledger=_ledger(args),
        new_people=args.new_people,
        progress=console.progress("fitting"),
    )
    if not processes.is_first():  # every process has the model now; the first one writes it
        return model, {}
    # The budget is spent now: the model goes to disk before anything else can fail.
    model.save(args.out, force=args.force, not_private=args.not_private)
    console.written.append(args.out)
    return model, _extras(args, model, console)


def _check(args: argparse.Namespace) -> None:
    from privtraj.privacy.events import check_budget

    require(args, "data", "time", "feature")
    _check_time_options(args)
    require(args, "epsilon", "delta", "out")
    check_budget(args.epsilon, args.delta)
    if args.paths is None and (args.n is not None or args.at is not None):
        raise InputError("-n and --at say how many paths to draw: add --paths FILE, or remove them")
    if args.seed is not None and not args.not_private:
        raise InputError(
            "--seed makes the noise predictable, and the model not private: leave it out, or add "
            "--not-private to write the model all the same, for research"
        )
    _check_ledger(args)
    data = args.data if isinstance(args.data, Path) else None
    files = ("out", "certificate", "paths", "ledger", "config", "write_config")
    _check_distinct([data, *(getattr(args, name) for name in files)])
    check_output(args.out, (".privtraj",), args.force)
    check_output(args.certificate, (".json",), args.force)
    check_output(args.paths, None, args.force)
    _check_paths(args)
    check_output(args.write_config, config.SUFFIXES, args.force)


def _check_paths(args: argparse.Namespace) -> None:
    """Whether the paths can be written that way, before anything is spent on them."""
    from privtraj.paths import check_format

    if args.paths is not None:
        names, *bounds = zip(*args.feature, strict=True)
        if all(isinstance(bound, float) for pair in bounds for bound in pair):  # else see Snapshots
            check_format(args.paths, names, list(zip(*bounds, strict=True)), args.at or 2)


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


def _check_records(args: argparse.Namespace) -> None:
    """Refuse what does not go together, before there is anything to note about it."""
    from privtraj.data.public import Options

    has_person = args.person is not None
    kept = (args.one_per_person, args.records_per_person)
    Options(*kept, True, args.missing, args.seed, has_person)


def _note(args: argparse.Namespace, synthesizer: TrajectorySynthesizer, console: Console) -> None:
    if args.seed is not None:
        console.note(
            "NOT PRIVATE: --seed makes the noise predictable; use the result for research only and "
            "never release it"
        )
    if args.records_per_person > 1 and args.rate is None:
        console.note(_price_of_records(args, synthesizer))
    if args.person is None:
        console.note(
            "without --person every row is taken to be a different person, and the guarantee holds "
            "only if that is true"
        )


def _check_ledger(args: argparse.Namespace) -> None:
    caps = (args.cap_epsilon, args.cap_delta)
    if args.ledger is None and (args.new_people or caps != (None, None)):
        raise InputError(
            "--cap-epsilon, --cap-delta and --new-people need --ledger FILE: name the file in "
            "which the fits add up"
        )
    if args.ledger is not None and args.seed is not None:
        raise InputError(
            "a fit with --seed is not private, so no --ledger covers it: leave out one of them"
        )
    _ledger(args)  # its caps are checked before anything is read


def _ledger(args: argparse.Namespace) -> LedgerFile | None:
    if args.ledger is None:
        return None
    from privtraj.privacy.ledger_file import LedgerFile

    return LedgerFile(args.ledger, cap_epsilon=args.cap_epsilon, cap_delta=args.cap_delta)


def _price_of_records(args: argparse.Namespace, synthesizer: TrajectorySynthesizer) -> str:
    """Whether all records or one at random is better, as far as can be said without looking."""
    from privtraj.planning.records import price

    measure = synthesizer.measure_for(len(args.feature))
    most = min(args.records_per_person, args.bins or len(args.bin_times))
    budget = {"epsilon": args.epsilon, "delta": args.delta, "adjacency": args.adjacency}
    ratio = price(most, measure, **budget)
    return (
        f"up to {most} records of a person need {ratio:.3g} times the noise of "
        f"one ({measure}): if people have fewer than {ratio:.3g} records on average, "
        "--one-per-person random is better"
    )


def _snapshots(args: argparse.Namespace) -> Snapshots:
    from privtraj.data.snapshots import Snapshots

    return Snapshots.from_table(
        args.data,
        query=args.query,
        time=args.time,
        features=[name for name, _, _ in args.feature],
        bounds=[(low, high) for _, low, high in args.feature],
        time_range=args.time_range,
        bins=args.bins if args.bin_times is None else args.bin_times,
        person=args.person,
        one_per_person=args.one_per_person,
        records_per_person=args.records_per_person,
        missing=args.missing,
        seed=args.seed,
    )


def _extras(args: argparse.Namespace, model: TrajectoryModel, console: Console) -> dict[str, Any]:
    from privtraj.files import write_text

    values = {
        "model": str(args.out),
        "certificate": model.certificate.to_dict(),
        "settings": model.settings,
        "diagnostics": model.diagnostics,
    }
    if args.certificate is not None:
        write_text(model.certificate.to_json() + "\n", args.certificate, args.force)
        console.written.append(args.certificate)
        values["certificate_file"] = str(args.certificate)
    if args.paths is not None:
        paths = model.sample(args.n or PEOPLE, even_times(model, args.at), seed=args.seed)
        values["paths"] = write_paths(paths, args.paths, args.force, console)
    if args.write_config is not None:
        write_text(config.text(vars(args), args.write_config), args.write_config, args.force)
        console.written.append(args.write_config)
        values["config"] = str(args.write_config)
        if not config.is_public_source(args.data):
            console.note(
                f"the connection string may hold a password and is not in '{args.write_config}': "
                "give it on the command line"
            )
    if (ledger := _ledger(args)) is not None:
        values["ledger"] = ledger.summary()
    return values


def _listed(paths: Sequence[Path]) -> str:
    return "\n".join(f"  {path}" for path in paths)
