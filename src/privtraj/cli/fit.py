"""`privtraj fit` and `extend`: spend a privacy budget on a table, once, and write a model."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from privtraj.base.errors import InputError
from privtraj.base.formats import PEOPLE_DRAWN
from privtraj.cli import config, shared
from privtraj.cli.console import PLAINLY_WRONG, Console
from privtraj.cli.options import (
    DECLARED,
    FILE,
    GROUPS,
    LEDGER,
    MODEL,
    OPTIONS,
    Group,
    arguments,
    changed,
    other,
)
from privtraj.recipe import BOOLEAN, Option, one_of

if TYPE_CHECKING:
    from privtraj.assess.look import TableCheck
    from privtraj.model.model import TrajectoryModel
    from privtraj.privacy.ledger_file import LedgerFile
    from privtraj.stream.people import People
    from privtraj.synthesizer import TrajectorySynthesizer

# fmt: off
CONFIG = Option("config", FILE,
                "TOML file with any of these options; those on the command line win")
_WRITE_CONFIG = Option("write_config", FILE, writes=config.SUFFIXES, about=
                       "write the file that repeats this fit: every public choice")
YES = Option("yes", BOOLEAN, "go on where a range looks plainly wrong")  # in no file: it was asked
# fmt: on


@shared.command(
    Group("configuration", (CONFIG, _WRITE_CONFIG), "all of the options below, in a file"),
    Group("before anything is spent", (YES,), "a look that only you may see"),
    *GROUPS,
)
def fit(args: argparse.Namespace, console: Console) -> int:
    """Spend a privacy budget on a table, once, and write a model that may be released.

    example:
      privtraj fit clinic.csv --time age --person id \\
          --feature height 40 210 --feature weight 1 140 --time-range 0 20 \\
          --epsilon 1 --delta 1e-5 --out growth.privtraj --certificate certificate.json

      privtraj fit visits.csv --time day --person id --time-range 0 730 \\
          --feature hba1c 4 14 --column sex category values=F,M fixed \\
          --column diagnosis ordered values=none,prediabetes,diabetes \\
          --column smoker boolean missing --epsilon 1 --delta 1e-5 --out visits.privtraj

    or write all of that to a file, fill it in, and use it:
      privtraj init clinic.csv -o fit.toml
      privtraj fit --config fit.toml
    """
    synthesizer, opened = _prepared(args)
    note(args, synthesizer, console)
    from privtraj.assess.groups import groups_of, sentences
    from privtraj.assess.ranges import doubts
    from privtraj.data.snapshots import Snapshots

    console.progress("reading the table")
    snapshots = Snapshots.from_table(args.data, **arguments(Snapshots.from_table, vars(args)))
    measure = synthesizer.checked_for(snapshots)
    if not args.yes:
        refuse_wrong(shared.looked(vars(args), snapshots.range_counts))
    if measure.sums_every_step and not args.quiet:
        import jax

        devices = f"{jax.device_count()} {jax.devices()[0].device_kind}"
        console.note(f"{measure.name} are computed on {devices}")
    show = console.progress("fitting")
    known = {"new_people": args.new_people, "declared": declared_of(args), "progress": show}
    make = partial(synthesizer.fit, snapshots, **known)
    model, values = _saved(args, console, opened, lambda: snapshots._digest.hex(), make)
    values |= {name: getattr(model, name) for name in ("settings", "diagnostics")}
    values["warnings"] = model.certificate.warnings
    if args.write_config is not None:
        text = config.text(vars(args), args.write_config)
        values["config"] = console.write(text, args.write_config, args.force)
        shared.note_left_out(args.data, args.write_config, "on the command line", console)
    groups, found = groups_of(model), () if args.yes else tuple(map(str, doubts(model)))
    values |= {"groups": [asdict(one) for one in groups], "doubts": list(found)}
    for doubt in found:
        console.note(f"{doubt}; the model is written, as it is paid for: think before you use it")
    text = _written(console, model, opened)
    if groups:
        kept = "\n  ".join(["Values of categories, by the noise:", *sentences(groups)])
        text = f"{kept}\n\n{text}"
    out = shlex.quote(str(args.out))
    text += f"\n\nNext: privtraj sample {out} -n {PEOPLE_DRAWN} --out paths.csv"
    console.result({"command": "fit", **values}, text)
    return PLAINLY_WRONG if found else 0


# fmt: off
_READ = ("person", "query", "row_by_row", "csv", "one_per_person", "records_per_person",
         "same_person", "missing")
PAST = Option("past", one_of("keep", "revise"), default="keep", about=
              "what was published: keep it to the bit, or let the new people improve it (revise)")
_BATCH = (
    changed("time_range", needed="it says when the people of the batch were recorded, as the model "
            "knows its own times only"),
    *(changed(name, needed="", otherwise="those of the fit") for name in ("epsilon", "delta")),
)
# fmt: on


@shared.command(
    *(MODEL, OPTIONS["data"], _BATCH[0], OPTIONS["bins"], OPTIONS["bin_times"]),
    Group("reading", tuple(OPTIONS[name] for name in _READ), "columns are those of the model"),
    replace(CONFIG, about="configuration of the fit: how to read, and the ledger, are its own"),
    Group("privacy", (PAST, *_BATCH[1:], OPTIONS["seed"], OPTIONS["not_private"])),
    *other([Group("ledger", LEDGER)], new_people={"beside": ()}),
    Group("declared", DECLARED),
    Group(
        "output", tuple(OPTIONS[name] for name in ("out", "certificate", "force", "json", "quiet"))
    ),
    configured=(*_READ, *(option.name for option in LEDGER)),
)
def extend(args: argparse.Namespace, console: Console) -> None:
    """Add a batch of further people to a model: later times, or more people at known times.

    What is public about columns is in the model; the range of time of the batch must be said. If
    nobody of the batch was in an earlier one, which --new-people states, everybody keeps the
    guarantee of one batch for years; without it the batches add up.

    example:
      privtraj extend january.privtraj february.csv --person id \\
          --time-range 2024-02-01 2024-03-01 --ledger clinic.ledger --new-people \\
          --out february.privtraj
    """
    opened = _opened(args)
    model = shared.load_model(args.model, "extended model", console)
    from privtraj.stream.extend import snapshots_of

    bins = args.bins if args.bin_times is None else args.bin_times
    reading = {name: getattr(args, name) for name in _READ if getattr(args, name) is not None}
    when = {"time_range": args.time_range, "bins": bins}
    snapshots = snapshots_of(model, args.data, **when, **reading)
    named = ("past", "new_people", "epsilon", "delta", "seed")
    how = {name: getattr(args, name) for name in named} | {"declared": declared_of(args) or None}
    make = partial(model.extend, snapshots, **how)
    grown, values = _saved(
        args, console, opened, lambda: f"{snapshots._digest.hex()} after {model.sha256}", make
    )
    console.result({"command": "extend", **values}, _written(console, grown, opened))


# Before anything is spent ---------------------------------------------------------------------

Opened = tuple["LedgerFile", "People | None"]


def _opened(args: argparse.Namespace) -> Opened | None:
    """Ledger and people, if there are; caps and keys are checked before anything is read."""
    return None if args.ledger is None else (ledger_of(args), people_of(args))


def _prepared(args: argparse.Namespace) -> tuple[TrajectorySynthesizer, Opened | None]:
    """What will fit, after all checks of choices that need no record, and the files of a house."""
    from privtraj.privacy.certificate import check_declared

    check_declared(declared_of(args))
    if args.seed is not None and not args.not_private:
        raise InputError(
            "--seed makes the noise predictable, and the model not private: leave it out, or add "
            "--not-private to write the model all the same, for research"
        )
    if args.ledger is not None and args.seed is not None:
        raise InputError(
            "a fit with --seed is not private, so no --ledger covers it: leave out one of them"
        )
    opened = _opened(args)
    shared.keep_compiled()
    from privtraj.data.public import PublicInputs
    from privtraj.synthesizer import TrajectorySynthesizer

    synthesizer = TrajectorySynthesizer(**arguments(TrajectorySynthesizer, vars(args)))
    synthesizer.check()
    known = arguments(PublicInputs.declared, vars(args))
    PublicInputs.declared(**known)  # refuses what does not go together
    return synthesizer, opened


def declared_of(args: argparse.Namespace) -> dict[str, str]:
    said = {option.name: getattr(args, option.name) for option in DECLARED}
    return {name: words for name, words in said.items() if words is not None}


def ledger_of(args: argparse.Namespace) -> LedgerFile:
    from privtraj.privacy.ledger_file import LedgerFile

    return LedgerFile(args.ledger, **arguments(LedgerFile, vars(args)))


def people_of(args: argparse.Namespace) -> People | None:
    """The file that knows who was in earlier batches, if there is one."""
    if args.people is None:
        return None
    from privtraj.stream.people import People

    how = {"returning": args.returning, "most_batches": args.most_batches}
    return People.open(args.people, args.people_key, **how)


def refuse_wrong(found: TableCheck) -> None:
    """Stop before anything is spent where a range is plainly wrong; nobody but the steward sees it.

    It depends on records and is not paid for, as every refusal of a table (`data.records`): so it
    comes before the ledger, and neither it nor its being overruled is written anywhere.
    """
    if found.wrong:
        more = f" (and {len(found.wrong) - 1} more)" if len(found.wrong) > 1 else ""
        raise InputError(
            f"{found.wrong[0].what}{more}: nothing was spent, so correct what is declared or the "
            "table, as 'privtraj check' shows in full, or go on with --yes"
        )


def note(args: argparse.Namespace, synthesizer: TrajectorySynthesizer, console: Console) -> None:
    """What the user should know before a fit."""
    if args.seed is not None:
        console.note(
            "NOT PRIVATE: --seed makes the noise predictable; use the result for research only and "
            "never release it"
        )
    if args.records_per_person > 1:
        # whether all records or one at random is better, as far as can be said without looking
        from privtraj.assess.plan import price
        from privtraj.columns.kinds import Axes

        measure = synthesizer.measure_for(Axes.of(shared.columns(vars(args)))).name
        most, together = args.records_per_person, synthesizer.windows != "bins"
        if not together:
            most = min(most, args.bins or len(args.bin_times or []) or most)
        budget = {"epsilon": args.epsilon, "delta": args.delta, "adjacency": args.adjacency}
        ratio = f"{float(f'{price(most, measure, together=together, **budget):.2g}'):g}"
        said = (
            "people are counted, their records in equal parts, beside a share of epsilon for how "
            "they persist: --persistence off leaves it to where people are"
        )
        if ratio != "1":
            said = (
                f"up to {most} records each need {ratio} times the noise of one ({measure}), so "
                "--one-per-person random is better if people have fewer than that on average"
            )
        console.note(said)
    if args.person is None:
        console.note(
            "without --person every row is taken to be a different person, and the guarantee holds "
            "only if that is true"
        )


# Afterwards -----------------------------------------------------------------------------------


def _saved(
    args: argparse.Namespace,
    console: Console,
    opened: Opened | None,
    content: Callable[[], str],
    make: Callable[..., TrajectoryModel],
) -> tuple[TrajectoryModel, dict[str, Any]]:
    """The model that make(ledger=, people=) gives, saved with its certificate; and what to say
    about it. With a ledger, which knows records by content(), what a kill has left is finished."""
    values: dict[str, Any] = {}
    if opened is None:
        model = make()
        model.save(args.out, force=args.force, not_private=args.not_private)
    else:
        from privtraj.stream.watch import Once

        ledger, people = opened
        console.remains = ", but what was reserved in the ledger counts: the same command goes on"
        once = Once(args.out, ledger)
        model = once.write(content(), args.force, lambda file: make(ledger=file, people=people))
        values["ledger"] = ledger.summary()
        if people is not None and people.seen:
            console.note(people.seen)
    values |= {"model": console.wrote(args.out), "certificate": model.certificate.to_dict()}
    if args.certificate is not None:
        text = model.certificate.to_json() + "\n"
        values["certificate_file"] = console.write(text, args.certificate, args.force)
    return model, values


def _written(console: Console, model: TrajectoryModel, opened: Opened | None) -> str:
    """Certificate, files and ledger in words."""
    text = "\n  ".join([f"{model.certificate}\n\nWritten:", *map(str, console.written)])
    return text if opened is None else f"{text}\n\n{opened[0].describe()}"
