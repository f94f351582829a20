"""Trust in a model: `privtraj verify`, `sign`, `ledger` and `audit`.

What a command's docstring says is its help.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.base.errors import InputError
from privtraj.cli import shared
from privtraj.cli.console import Console
from privtraj.cli.fit import ledger_of
from privtraj.cli.options import FILE, MODEL, OPTIONS, Group, arguments, budget, changed, writing
from privtraj.recipe import NUMBER, TEXT, Option, one_of, whole

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel


@shared.command(
    MODEL,
    changed("certificate", "certificate that came beside it, as .json", writes=()),
    Option("key", FILE, "public key that must have signed it, as .pub"),
    Option("attestation", FILE, "what was tested of a version, as .json: is it the model's?"),
    Option(
        "attestation_key",
        FILE,
        "public key that must have signed that, as .pub",
        beside=("attestation",),
    ),
    OPTIONS["json"],
)
def verify(args: argparse.Namespace, console: Console) -> None:
    """Check that a model file is whole and that its certificate belongs to it and adds up.

    examples:
      privtraj verify growth.privtraj --certificate certificate.json
      privtraj verify growth.privtraj --key clinic.key.pub
    """
    model, recomputed = verified(args.model, args.certificate, args.key)
    certificate = model.certificate
    names = ("private", "epsilon", "delta", "adjacency", "warnings", "signed_by")
    values: dict[str, Any] = {name: getattr(certificate, name) for name in names}
    values |= {"command": "verify", "model": str(args.model), "model_sha256": model.sha256}
    values |= {"recomputed_epsilon": recomputed, "signature_checked": args.key is not None}
    whose = "That the noise was drawn as stated is the word of whoever ran the fit"
    if args.key is not None:
        whose = f"The key in '{args.key}' has signed it; that the noise was drawn as stated is its"
        whose += " word."
    elif certificate.signature is None:
        whose += "."
    else:
        whose += ";\nthe signature was not checked: give the public key with --key FILE."
    text = (
        f"{certificate}\n\nThe file is whole, the certificate is its own, and its epsilon follows "
        f"from what was paid for.\n{whose}"
    )
    if args.attestation is not None:
        from privtraj.privacy.signatures import read_statement

        known = read_statement(args.attestation, args.attestation_key)
        if known["source_sha256"] != certificate.source_sha256:
            raise InputError(
                f"'{args.model}' is whole, but it was made by other code than the attested one: "
                "ask which"
            )
        values |= {"attested": known, "attestation_checked": args.attestation_key is not None}
        results = (f"\n  {name}: {json.dumps(said)}" for name, said in known["results"].items())
        text += (
            f"\n\nIt was made by the code that was attested on {known['date']}, by the key of "
            f"sha256 {known['signature']['key']}:{''.join(results)}"
        )
        if args.attestation_key is None:
            text += "\nThat signature was not checked: give the key with --attestation-key FILE."
    console.result(values, text)


@shared.command(
    *(MODEL, changed("out", "page to write: .html", short="-o", writes=(".html",))),
    changed("ledger", "ledger that knows the model, for what was spent over the years"),
    *writing(),
)
def dossier(args: argparse.Namespace, console: Console) -> None:
    """Write what a data protection officer asks about a model, answered by its certificate.

    example:
      privtraj dossier growth.privtraj -o dossier.html --ledger clinic.ledger

    The page is one file, made to be printed, also to PDF. The model is verified first.
    """
    model, _ = verified(args.model, None)
    from privtraj.privacy.ledger_file import LedgerFile
    from privtraj.report.dossier import dossier

    known = None if args.ledger is None else LedgerFile(args.ledger).summary()
    dossier(model, known).write(args.out, args.force)
    values = {"command": "dossier", "model": str(args.model), "out": console.wrote(args.out)}
    console.result(values, f"Written: {args.out}\nTo keep it as PDF, print it from a browser")


def verified(
    path: Path, beside: Path | None, key: Path | None = None
) -> tuple[TrajectoryModel, float]:
    """A model that may be trusted as far as its file tells, and its epsilon computed again.

    beside: a certificate that must be its own.  key: a public key that must have signed it.
    """
    from privtraj.model.model import load
    from privtraj.privacy.certificate import Certificate

    if key is not None:  # whose mistakes say nothing of the model
        from privtraj.privacy.signatures import fingerprint

        fingerprint(key)
    model = load(path)
    unsigned = replace(model.certificate, signature=None)  # a copy from before the signature
    if beside is not None and Certificate.read(beside) not in (model.certificate, unsigned):
        raise InputError(f"'{beside}' is not the certificate of '{path}': ask for the right pair")
    try:
        recomputed = model.verify(key)
    except InputError as error:
        raise InputError(f"do not trust '{path}': ", *error.args) from None
    if not model.certificate.private:
        caveat = model.certificate.caveat
        raise InputError(f"'{path}' is whole but NOT PRIVATE, as {caveat}: do not release it")
    return model, recomputed


@shared.command(
    replace(MODEL, needed="", about=f"{MODEL.about}; the signature is put into it"),
    changed("certificate", "its certificate beside it, as .json, to sign as well", writes=()),
    Option("key", FILE, "your private key, which nobody else may read"),
    Option("new_key", FILE, "instead: make a key, in this file and, for all to have, in FILE.pub"),
    changed("force", "replace the signature of another key"),
    OPTIONS["json"],
    usage="privtraj sign MODEL --key FILE [--certificate FILE], or privtraj sign --new-key FILE",
)
def sign(args: argparse.Namespace, console: Console) -> None:
    """Sign a model and its certificate, so that nobody can change them unnoticed.

    examples:
      privtraj sign --new-key clinic.key
      privtraj sign growth.privtraj --key clinic.key --certificate certificate.json
    """
    if args.new_key is not None:
        if args.model is not None or args.key is not None or args.certificate is not None:
            raise InputError("--new-key only makes a key: sign with --key FILE afterwards")
        from privtraj.privacy.signatures import PUBLIC_SUFFIX, new_key

        made, public = new_key(args.new_key), f"{args.new_key}{PUBLIC_SUFFIX}"
        keys = {"private_key": str(args.new_key), "public_key": public, "fingerprint": made}
        text = (
            f"a key, which nobody but you may have, in {args.new_key}\n"
            f"its public part, for everybody, in {public}\n"
            f"fingerprint {made}"
        )
        console.result({"command": "sign", **keys}, text)
        return
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


_LEDGER = (
    Option(
        "ledger", FILE, "ledger that fit has written", metavar="FILE", placed=True, needed="one"
    ),
    OPTIONS["ledger_code"],
    OPTIONS["json"],
)


@shared.command(*_LEDGER)
def show(args: argparse.Namespace, console: Console) -> None:
    """Print the fits, their totals, and what the caps leave."""
    file = ledger_of(args)
    values = {"command": f"ledger {args.action}", "ledger": str(args.ledger), **file.summary()}
    console.result(values, file.describe())


@shared.command(
    *_LEDGER,
    *(OPTIONS["epsilon"], OPTIONS["delta"]),
    Option("what", TEXT, "what was released", metavar="TEXT", needed="it says what was released"),
    changed("adjacency", "the relation of the other tool's guarantee"),
    *(OPTIONS["cap_epsilon"], OPTIONS["cap_delta"]),
)
def charge(args: argparse.Namespace, console: Console) -> None:
    """Record a private release of the same people that another tool has made."""
    ledger_of(args).charge(args.epsilon, args.delta, args.adjacency, args.what)
    show.run(args, console)


@shared.command(actions=(show, charge))
def ledger(args: argparse.Namespace, console: Console) -> None:
    """Show what fits on the same people have spent, or record a release made elsewhere.

    examples:
      privtraj ledger show clinic.ledger
      privtraj ledger show clinic.ledger --ledger-code 5-0123456789abcdef
      privtraj ledger charge clinic.ledger --what "histogram in the yearly report" \\
          --epsilon 0.3 --delta 0
    """


VIOLATED = 1
LEAST_RUNS = 20
CANARIES = ("alone", "corner", "rare", "duplicated", "level", "missing", "all")
"""As in `audit.canaries`."""

# fmt: off
_ATTACK = (
    Option("features", whole(1), "features of the simulated data", default=2),
    Option("canary", one_of(*CANARIES), "whom to look for; all of them take as many runs each",
           default="alone"),
    Option("runs", whole(LEAST_RUNS), "fits, half of them with the person",
           otherwise="2000, or 400 for the released view"),
    Option("confidence", NUMBER, "chance that the bounds hold", default=0.95),
    Option("view", one_of("transcript", "released"), default="transcript", about=
           "what the attacker sees: all noisy answers, as the claim allows, or the model alone"),
    changed("seed", "the same audit again"),
)
_FOUND = (
    changed("out", "write the result as .json", needed="", writes=(".json",)),
    *writing(),
)
# fmt: on
_CLAIM = (*budget(), OPTIONS["adjacency"], OPTIONS["measure"])


@shared.command(
    Group("privacy", _CLAIM, "the claim to put to the test"),
    Group("attack", _ATTACK),
    Group("output", _FOUND),
)
def audit(args: argparse.Namespace, console: Console) -> int:
    """Attack simulated fits, and compare the privacy loss found with the one claimed.

    No data of yours are needed or read.

    examples:
      privtraj audit --epsilon 1 --delta 1e-5 --out audit.json
      privtraj audit --epsilon 4 --measure gradients --runs 4000 --out audit.json
      privtraj audit --epsilon 1 --canary all

    canaries: alone, in an empty corner and alone in a time; corner, in an empty corner of a time
    with everybody; rare, where one other person is; duplicated, three records in one place; level,
    with a level of a category that nobody else has; missing, without a number that everybody else
    has

    exit codes: 0, no violation found; 1, a lower bound exceeds the claim, or the noise is not what
    the ledger states; 2, bad input
    """
    from privtraj.audit import attack
    from privtraj.synthesizer import TrajectorySynthesizer

    claimed = {**vars(args), "seed": None}  # the seed is the attack's
    synthesizer = TrajectorySynthesizer(**arguments(TrajectorySynthesizer, claimed))
    names = ("runs", "confidence", "features", "view", "canary", "seed")
    how = {name: getattr(args, name) for name in names}
    result = attack.audit(synthesizer, **how, progress=console.progress("auditing"))
    values = {"command": "audit", **result.to_dict()}
    if args.out is not None:
        text = json.dumps(result.to_dict(), allow_nan=False) + "\n"
        values["out"] = console.write(text, args.out, args.force)
    written = (f"Written: {path}" for path in console.written)
    console.result(values, "\n".join([str(result), *written]))
    return VIOLATED if result.violated else 0
