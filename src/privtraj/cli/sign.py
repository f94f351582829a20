"""`privtraj sign`: put a signature on a model and its certificate, or make the key for it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from privtraj.base.errors import InputError
from privtraj.cli import shared
from privtraj.cli.console import Console
from privtraj.cli.options import FILE, Option
from privtraj.cli.verify import verified

_EXAMPLE = """\
examples:
  privtraj sign --new-key clinic.key
  privtraj sign growth.privtraj --key clinic.key --certificate certificate.json"""


def add(commands: Any) -> None:
    about = "sign a model and its certificate, so that nobody can change them unnoticed"
    usage = "privtraj sign MODEL --key FILE [--certificate FILE], or privtraj sign --new-key FILE"
    sign = shared.command(commands, "sign", about, run, usage=usage, epilog=_EXAMPLE)
    text = "model file that fit has written; the signature is put into it"
    sign.add_argument("model", metavar="MODEL", type=Path, nargs="?", help=text)
    text = "its certificate beside it, as .json, to sign as well"
    shared.add(sign, "certificate", about=text)
    shared.add(sign, Option("key", FILE, "your private key, which nobody else may read"))
    text = "instead: make a key, in this file and, for everybody to have, in FILE.pub"
    shared.add(sign, Option("new_key", FILE, text))
    shared.add(sign, "force", about="replace the signature of another key")
    shared.add(sign, "json")


def run(args: argparse.Namespace, console: Console) -> None:
    if args.new_key is not None:
        return _new_key(args, console)
    if args.model is None or args.key is None:
        raise InputError(
            "MODEL and --key FILE are needed: name what to sign and your key, or make one with "
            "--new-key FILE"
        )
    model, _ = verified(args.model, args.certificate)
    signed = model.signed(args.key)
    key, before = signed.certificate.signed_by, model.certificate.signed_by
    if before not in (None, key) and not args.force:
        raise InputError(
            f"'{args.model}' is signed by another key: replace that signature with --force"
        )
    signed.save(args.model, force=True)
    console.written.append(args.model)
    if args.certificate is not None:
        console.write(signed.certificate.to_json(), args.certificate, force=True)
    files = [str(path) for path in console.written]
    values = {"command": "sign", "signed": files, "key": key, "model_sha256": signed.sha256}
    console.result(values, f"signed {' and '.join(files)}\nby the key {key}")
    return None


def _new_key(args: argparse.Namespace, console: Console) -> None:
    if args.model is not None or args.key is not None or args.certificate is not None:
        raise InputError("--new-key only makes a key: sign with --key FILE afterwards")
    from privtraj.privacy.signatures import PUBLIC_SUFFIX, new_key

    made, public = new_key(args.new_key), f"{args.new_key}{PUBLIC_SUFFIX}"
    values = {"command": "sign", "private_key": str(args.new_key), "public_key": public}
    text = (
        f"a key, which nobody but you may have, in {args.new_key}\n"
        f"its public part, for everybody, in {public}\n"
        f"fingerprint {made}"
    )
    console.result({**values, "fingerprint": made}, text)
