"""`privtraj verify`: whether a model file is whole, and its certificate its own and right."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.cli import shared
from privtraj.cli.console import Console
from privtraj.errors import InputError

if TYPE_CHECKING:
    from privtraj.privacy.certificate import Certificate

_EXAMPLE = """\
example:
  privtraj verify growth.privtraj --certificate certificate.json"""


def add(commands: Any) -> None:
    about = "check that a model file is whole and that its certificate belongs to it and adds up"
    usage = "privtraj verify MODEL [--certificate FILE]"
    verify = shared.command(commands, "verify", about, run, usage=usage, epilog=_EXAMPLE)
    shared.add_model(verify)
    shared.add(verify, "certificate", about="certificate that came beside it, as .json")
    shared.add(verify, "json")


def run(args: argparse.Namespace, console: Console) -> None:
    from privtraj.model import load

    model = load(args.model)
    certificate = model.certificate
    if args.certificate is not None and _read(args.certificate) != certificate:
        raise InputError(
            f"'{args.certificate}' is not the certificate of '{args.model}': ask for the right pair"
        )
    try:
        recomputed = certificate.verify()
    except InputError as error:
        raise InputError(f"do not trust '{args.model}': ", *error.args) from None
    if not certificate.private:
        raise InputError(
            f"'{args.model}' is whole but NOT PRIVATE, as {certificate.caveat}: do not release it"
        )
    values = {
        "command": "verify",
        "model": str(args.model),
        "model_sha256": model.sha256,
        "private": certificate.private,
        "epsilon": certificate.epsilon,
        "recomputed_epsilon": recomputed,
        "delta": certificate.delta,
        "adjacency": certificate.adjacency,
    }
    text = (
        f"{certificate}\n\nThe file is whole, the certificate is its own, and its epsilon follows "
        "from what was paid for.\nThat the noise was drawn as stated is the word of whoever ran "
        "the fit."
    )
    console.result(values, text)


def _read(path: Path) -> Certificate:
    from privtraj.privacy.certificate import Certificate

    if not path.is_file():
        raise InputError(f"there is no file '{path}': check the path")
    try:
        return Certificate.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise InputError(
            f"'{path}' is not a certificate: give the .json file that fit has written"
        ) from None
