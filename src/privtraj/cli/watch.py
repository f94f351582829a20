"""Batches of people: `privtraj people` makes the key and shows what the file of them knows."""

from __future__ import annotations

import argparse

from privtraj.base.errors import InputError
from privtraj.cli import shared
from privtraj.cli.console import Console
from privtraj.cli.options import FILE, OPTIONS
from privtraj.recipe import Option

# fmt: off
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
