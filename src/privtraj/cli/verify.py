"""`privtraj verify`: is a model file whole, its certificate right and its own, and whose."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.base.errors import InputError
from privtraj.cli import shared
from privtraj.cli.console import Console
from privtraj.cli.options import FILE, Option

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel
    from privtraj.privacy.certificate import Certificate

_EXAMPLE = """\
examples:
  privtraj verify growth.privtraj --certificate certificate.json
  privtraj verify growth.privtraj --key clinic.key.pub"""


def add(commands: Any) -> None:
    about = "check that a model file is whole and that its certificate belongs to it and adds up"
    usage = "privtraj verify MODEL [--certificate FILE] [--key FILE]"
    verify = shared.command(commands, "verify", about, run, usage=usage, epilog=_EXAMPLE)
    shared.add_model(verify)
    shared.add(verify, "certificate", about="certificate that came beside it, as .json")
    shared.add(verify, Option("key", FILE, "public key that must have signed it, as .pub"))
    shared.add(verify, "json")


def run(args: argparse.Namespace, console: Console) -> None:
    model, recomputed = verified(args.model, args.certificate, args.key)
    certificate = model.certificate
    values = {
        "command": "verify",
        "model": str(args.model),
        "model_sha256": model.sha256,
        "private": certificate.private,
        "epsilon": certificate.epsilon,
        "recomputed_epsilon": recomputed,
        "delta": certificate.delta,
        "adjacency": certificate.adjacency,
        "warnings": certificate.warnings,
        "signed_by": certificate.signed_by,
        "signature_checked": args.key is not None,
    }
    text = (
        f"{certificate}\n\nThe file is whole, the certificate is its own, and its epsilon follows "
        f"from what was paid for.\n{_whose_word(certificate, args.key)}"
    )
    console.result(values, text)


def verified(
    path: Path, beside: Path | None, key: Path | None = None
) -> tuple[TrajectoryModel, float]:
    """A model that may be trusted as far as its file tells, and its epsilon computed again.

    beside: a certificate that must be its own.  key: a public key that must have signed it.
    """
    from privtraj.model.model import load

    if key is not None:  # whose mistakes say nothing of the model
        from privtraj.privacy.signatures import fingerprint

        fingerprint(key)
    model = load(path)
    if beside is not None and not _is_copy(_read(beside), model.certificate):
        raise InputError(f"'{beside}' is not the certificate of '{path}': ask for the right pair")
    try:
        recomputed = model.verify(key)
    except InputError as error:
        raise InputError(f"do not trust '{path}': ", *error.args) from None
    if not model.certificate.private:
        caveat = model.certificate.caveat
        raise InputError(f"'{path}' is whole but NOT PRIVATE, as {caveat}: do not release it")
    return model, recomputed


def _is_copy(copy: Certificate, certificate: Certificate) -> bool:
    """Whether it says the same; a copy from before the signature lacks it."""
    return copy in (certificate, replace(certificate, signature=None))


def _whose_word(certificate: Certificate, key: Path | None) -> str:
    if key is not None:
        return f"The key in '{key}' has signed it; that the noise was drawn as stated is its word."
    word = "That the noise was drawn as stated is the word of whoever ran the fit"
    if certificate.signature is None:
        return f"{word}."
    return f"{word};\nthe signature was not checked: give the public key with --key FILE."


def _read(path: Path) -> Certificate:
    from privtraj.privacy.certificate import Certificate

    return Certificate.read(path)
