"""Batches of people: `privtraj watch` releases them as they come, and `privtraj people` makes the
key of the file that knows who was in them, and shows how many."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.base import formats
from privtraj.base.errors import InputError
from privtraj.cli import config, fit, shared
from privtraj.cli.console import Console
from privtraj.cli.options import FILE, GROUPS, OPTIONS, Group, arguments, other
from privtraj.recipe import BOOLEAN, TEXT, Option

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel
    from privtraj.privacy.ledger_file import LedgerFile
    from privtraj.stream.watch import Stream

# fmt: off
_WHEN = (
    Option("every", TEXT, "look for new batches so often: 30m, 12h, 1d", metavar="TIME"),
    Option("once", BOOLEAN, "instead: one step, as from cron or Airflow"),
    Option("no_report", BOOLEAN, "write no page for each batch"),
    *(fit.PAST, fit.YES),
)
_GROUPS = other(
    GROUPS,
    out={"about": "folder of what is released", "writes": ()},
    ledger={"needed": "it names the file in which batches add up"},
)
_PEOPLE = Option("people", FILE, "file of people that fits have kept", metavar="PEOPLE",
                 placed=True)
# fmt: on


@shared.command(
    _PEOPLE,
    Option("new_key", FILE, "instead: make a secret key for such a file"),
    Option(
        "withdraw",
        FILE,
        "identifiers, one a line, of people who have withdrawn their consent",
        beside=("people_key", "ledger"),
    ),
    *(OPTIONS[name] for name in ("people_key", "ledger", "json")),
    usage="privtraj people PEOPLE [options], or privtraj people --new-key FILE",
)
def people(args: argparse.Namespace, console: Console) -> None:
    """Make the key for a file of people, show how many such a file knows, or withdraw some.

    examples:
      privtraj people --new-key clinic.key
      privtraj people clinic.people
      privtraj people clinic.people --people-key clinic.key --ledger clinic.ledger \\
          --withdraw gone.txt

    What was released of somebody who withdraws stays, with its guarantee, and what was spent stays
    spent; every batch that begins later, or revises the past, leaves their records out.
    """
    from privtraj.stream.people import People, new_key

    if (args.people is None) == (args.new_key is None):
        raise InputError("give PEOPLE, a file that fits have kept, or --new-key FILE to make a key")
    if args.new_key is not None:
        new_key(args.new_key)
        text = f"Written: {args.new_key}\nKeep it secret, and with the ledger: nothing replaces it"
        console.result({"command": "people", "key": console.wrote(args.new_key)}, text)
        return
    if args.withdraw is not None:
        try:
            ids = args.withdraw.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            raise InputError(f"'{args.withdraw}' cannot be read: give a text file of ids") from None
        from privtraj.privacy.ledger_file import LedgerFile

        file = People.open(args.people, args.people_key)
        done = file.withdraw([one for one in ids if one.strip()], LedgerFile(args.ledger))
        text = (
            f"{done['withdrawn']} people are left out of every batch that begins from now on; "
            f"{done['in_what_was_released']} of them are in what was\nreleased, which cannot be "
            "called back. These numbers are exact: they are for your eyes only"
        )
        console.result({"command": "people", **done}, text)
        return
    known = People(args.people, b"").summary()
    text = (
        f"{known['people']} people in {known['batches']} batches, {known['in_several']} of them in "
        "several.\nThese numbers are exact: they are for your eyes only"
    )
    console.result({"command": "people", **known}, text)


@shared.command(
    Group("when", _WHEN),
    Group("configuration", (fit.CONFIG,), "all of the options below, in a file"),
    *_GROUPS,
)
def watch(args: argparse.Namespace, console: Console) -> int:
    """Release every new file of a folder, or what is new in a query, as a batch of a growing model.

    example:
      privtraj watch incoming --config fit.toml --ledger clinic.ledger --people clinic.people \\
          --people-key clinic.key --out released --every 1d

    A file is taken once, in the order of names; move it into the folder when it is whole. What is
    public about one batch, such as its time_range, may stand beside it: february.toml for
    february.csv. The first batch is fitted, later ones extend the model. Each is released as a
    folder, OUT/0001 and so on, whole or not at all; a step that was killed is finished by the next.
    """
    typed = re.fullmatch("([1-9][0-9]{0,3})([smhd])", args.every or "")
    if bool(typed) == bool(args.once):
        raise InputError("give --every TIME, such as 30m, 12h or 1d, or --once for one step")
    for folder in (args.data, args.out):
        if isinstance(folder, Path) and not folder.is_dir():
            raise InputError(f"there is no directory '{folder}': create it first")
    pause = int(typed[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[typed[2]] if typed else 0
    from privtraj.report.page import write_report
    from privtraj.stream.watch import Stream

    page = None if args.no_report else partial(write_report, force=True)
    stream = Stream(args.out, fit.ledger_of(args), page)
    with stream.alone() as alone:
        if not alone:
            console.note(f"another copy works with '{args.ledger}': nothing is done")
            return 0
        while True:
            released, refused = [], {}
            for name, source in _sources(args):
                try:
                    taken = _taken(stream, args, console, name, source)
                except InputError as error:
                    refused[name] = error.typed()
                    console.note(f"'{name}' is refused, and nothing released: {refused[name]}")
                    if stream.unfinished() is not None:  # nothing may come before it
                        break
                    continue
                released += [] if taken is None else [console.wrote(taken)]
            text = "\n".join(["Released:", *released]) if released else "No new batch"
            console.result({"command": "watch", "released": released, "refused": refused}, text)
            if not pause:
                return 2 if refused else 0
            time.sleep(pause)


def _sources(args: argparse.Namespace) -> Iterator[tuple[str, str | Path]]:
    """Name and place of every file there is, in the order of names, or of the query."""
    if isinstance(args.data, str):
        yield args.query, args.data
        return
    suffixes = formats.suffixes(formats.READABLE)
    for file in sorted(args.data.iterdir()):
        if file.is_file() and file.name.endswith(suffixes) and not file.name.startswith("."):
            yield file.name, file


def _taken(
    stream: Stream, args: argparse.Namespace, console: Console, name: str, source: str | Path
) -> Path | None:
    """The folder of what was released, unless that was done before."""
    from privtraj.data.snapshots import Snapshots
    from privtraj.stream.watch import content_of
    from privtraj.synthesizer import TrajectorySynthesizer

    chosen = {**vars(args), "data": source}
    if isinstance(source, Path) and source.with_suffix(".toml").is_file():
        chosen |= config.load(source.with_suffix(".toml"))

    def read() -> Snapshots:
        return Snapshots.from_table(source, **arguments(Snapshots.from_table, chosen))

    if isinstance(source, Path):
        found, content = None, content_of(source)
    else:
        found = read()
        content = found._digest.hex()

    def make(earlier: TrajectoryModel | None, ledger: LedgerFile) -> TrajectoryModel:
        snapshots = read() if found is None else found
        if isinstance(source, Path) and content_of(source) != content:
            raise InputError(f"'{source}' changes while it is read: move it there when it is whole")
        if not args.yes:
            fit.refuse_wrong(shared.looked(chosen, snapshots.range_counts))
        people, said = fit.people_of(args), fit.declared_of(args)
        how: dict[str, Any] = {"ledger": ledger, "people": people, "new_people": args.new_people}
        if earlier is None:
            maker = TrajectorySynthesizer(**arguments(TrajectorySynthesizer, chosen))
            model = maker.fit(snapshots, declared=said, **how)
        else:
            how |= {name: chosen[name] for name in ("epsilon", "delta", "past")}
            model = earlier.extend(snapshots, declared=said or None, **how)
        if people is not None and people.seen:
            console.note(people.seen)
        return model

    return stream.take(name, content, make)
