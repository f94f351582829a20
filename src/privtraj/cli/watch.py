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
from privtraj.cli.options import FILE, GROUPS, OPTIONS, Group, arguments
from privtraj.recipe import BOOLEAN, TEXT, Option

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel
    from privtraj.privacy.ledger_file import LedgerFile

# fmt: off
_WHEN = (
    Option("every", TEXT, "look for new batches so often: 30m, 12h, 1d", metavar="TIME"),
    Option("once", BOOLEAN, "instead: one step, as from cron or Airflow"),
    Option("no_report", BOOLEAN, "write no page for each batch"),
    *(fit.EXTEND[0], fit.LOOKS[0]),
)
_PEOPLE = Option("people", FILE, "file of people that fits have kept", metavar="PEOPLE",
                 placed=True)
# fmt: on


@shared.command(
    _PEOPLE,
    Option("new_key", FILE, "instead: make a secret key for such a file"),
    OPTIONS["json"],
    usage="privtraj people PEOPLE, or privtraj people --new-key FILE",
)
def people(args: argparse.Namespace, console: Console) -> None:
    """Make the key for a file of people, or show how many such a file knows, for your eyes only.

    examples:
      privtraj people --new-key clinic.key
      privtraj people clinic.people
    """
    from privtraj.stream.people import People, new_key

    if (args.people is None) == (args.new_key is None):
        raise InputError("give PEOPLE, a file that fits have kept, or --new-key FILE to make a key")
    if args.new_key is not None:
        new_key(args.new_key)
        text = f"Written: {args.new_key}\nKeep it secret, and with the ledger: nothing replaces it"
        console.result({"command": "people", "key": console.wrote(args.new_key)}, text)
        return
    known = People(args.people, b"").summary()
    text = (
        f"{known['people']} people in {known['batches']} batches, {known['in_several']} of them in "
        "several.\nThese numbers are exact: they are for your eyes only"
    )
    console.result({"command": "people", **known}, text)


@shared.command(
    Group("when", _WHEN),
    Group("configuration", fit.FILES[:1], "all of the options below, in a file"),
    *GROUPS,
    configured=True,
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
    every, step, past = args.every, args.once, args.past or "keep"
    args = fit.settled(args)
    args.past = past
    console.quiet, console.json = args.quiet, args.json
    typed = re.fullmatch("([1-9][0-9]{0,3})([smhd])", every or "")
    if bool(typed) == bool(step):
        raise InputError("give --every TIME, such as 30m, 12h or 1d, or --once for one step")
    fit.check_table(args)
    shared.require(vars(args), "epsilon", "delta", "out", "ledger")
    if not args.out.is_dir():
        raise InputError(f"there is no directory '{args.out}': create it first")
    pause = int(typed[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[typed[2]] if typed else 0
    from privtraj.report.page import write_report
    from privtraj.stream.watch import Stream

    page = None if args.no_report else partial(write_report, force=True)
    stream = Stream(args.out, fit.ledger_of(args), page)  # type: ignore[arg-type]
    with stream.alone() as alone:
        if not alone:
            console.note(f"another copy works with '{args.ledger}': nothing is done")
            return 0
        while True:
            released, refused = [], {}
            for name, content, make in _batches(args, console):
                try:
                    folder = stream.take(name, content, make)
                except InputError as error:
                    refused[name] = error.typed()
                    console.note(f"'{name}' is refused, and nothing released: {refused[name]}")
                    if stream.unfinished() is not None:  # nothing may come before it
                        break
                    continue
                released += [] if folder is None else [console.wrote(folder)]
            text = "\n".join(["Released:", *released]) if released else "No new batch"
            console.result({"command": "watch", "released": released, "refused": refused}, text)
            if not pause:
                return 2 if refused else 0
            time.sleep(pause)


def _batches(args: argparse.Namespace, console: Console) -> Iterator[tuple[str, str, Any]]:
    """Name, content and what makes the model, of all files there are, or of the query."""
    from privtraj.data.snapshots import Snapshots
    from privtraj.stream.watch import content_of

    def snapshots(data: str | Path) -> tuple[dict[str, Any], Snapshots]:
        chosen = {**vars(args), "data": data}
        beside = Path(data).with_suffix(".toml")
        if isinstance(data, Path) and beside.is_file():
            chosen |= config.load(beside)
        return chosen, Snapshots.from_table(data, **shared.table(chosen, Snapshots.from_table))

    if isinstance(args.data, str):
        chosen, found = snapshots(args.data)
        yield args.query, found._digest.hex(), partial(_made, console, chosen, found)
        return
    suffixes = formats.suffixes(formats.READABLE)
    for file in sorted(args.data.iterdir()):
        if file.is_file() and file.name.endswith(suffixes) and not file.name.startswith("."):
            content = content_of(file)

            def make(
                earlier: TrajectoryModel | None,
                ledger: LedgerFile,
                file: Path = file,
                content: str = content,
            ) -> TrajectoryModel:
                chosen, found = snapshots(file)
                if content_of(file) != content:
                    raise InputError(f"'{file}' changes while it is read: move it there when whole")
                if not args.yes:
                    fit.refuse_wrong(shared.looked(chosen, ranges_only=True))
                return _made(console, chosen, found, earlier, ledger)

            yield file.name, content, make


def _made(
    console: Console,
    chosen: dict[str, Any],
    snapshots: Any,
    earlier: TrajectoryModel | None,
    ledger: LedgerFile,
) -> TrajectoryModel:
    """The first model, or the earlier one with these people, too."""
    from privtraj.synthesizer import TrajectorySynthesizer

    args = argparse.Namespace(**chosen)
    people = fit.people_of(args)
    how: dict[str, Any] = {"ledger": ledger, "people": people, "new_people": args.new_people}
    if earlier is None:
        maker = TrajectorySynthesizer(**arguments(TrajectorySynthesizer, chosen))
        model = maker.fit(snapshots, declared=fit.declared_of(args), **how)
    else:
        budget = {"epsilon": args.epsilon, "delta": args.delta, "past": args.past}
        model = earlier.extend(snapshots, declared=fit.declared_of(args) or None, **how, **budget)
    if people is not None and people.seen:
        console.note(people.seen)
    return model
