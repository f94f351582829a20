"""Whose word a certificate is: Ed25519 signatures, from the package `cryptography`.

Checksums find damage, not forgers: whoever changes a model can compute all of them again. A
signature they cannot. What is signed is the certificate, every field of it, in one canonical text.
It carries the hash of the whole model, so that a signature of the certificate is one of the model,
and it is part of the certificate itself: the copy inside a model file and the copy beside it carry
the same one, there is no third file to lose, and the hash of the model, by which a ledger knows it,
stays what it was.

That a signature is right says that the holder of the key signed these numbers, no more. Compare the
fingerprint of a public key over another channel before you trust it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from privtraj.base.errors import InputError
from privtraj.base.files import MOST_BYTES, check_writable, strict_json
from privtraj.base.formats import extra
from privtraj.privacy.certificate import Certificate, is_signature
from privtraj.privacy.events import is_line

PUBLIC_SUFFIX = ".pub"

ATTESTATION = "privtraj attestation"  # a field, by which such a statement is known
_PURPOSE = b"privtraj certificate\n"  # so that no signature of anything else is one of these
_ATTESTED = b"privtraj attestation\n"
_MOST_KEY_BYTES = 4096


def new_key(path: str | os.PathLike[str]) -> str:
    """Make a key: the private part, which only you may read, and FILE.pub, which everybody may.

    Returns the fingerprint. Existing files are never replaced.
    """
    keys, serialization = _cryptography()
    private, public = Path(path), Path(f"{os.fspath(path)}{PUBLIC_SUFFIX}")
    for file in (private, public):
        if file.exists():
            raise InputError(
                f"the file '{file}' already exists, and keys are never replaced: choose another "
                "name"
            )
        check_writable(file, force=False)
    key = keys.Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    shown = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    _write_new(private, secret, 0o600)
    try:
        _write_new(public, shown, 0o644)
    except BaseException:
        private.unlink()
        raise
    return _fingerprint(key.public_key())


def fingerprint(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a public key, in DER: what a certificate names the key by."""
    return _fingerprint(_key(path))


def signed(certificate: Certificate, key: str | os.PathLike[str]) -> Certificate:
    """The certificate with a signature by the private key in a file."""
    if certificate.model_sha256 is None:
        raise InputError("this certificate names no model yet: sign that of a sealed model")
    return replace(certificate, signature=_signature(_message(certificate), key))


def check_signature(certificate: Certificate, key: str | os.PathLike[str]) -> str:
    """The fingerprint of the public key in a file, if it signed this certificate; an `InputError`
    if it did not."""
    return _checked(_message(certificate), certificate.signature, key, "certificate")


def signed_statement(values: Mapping[str, Any], key: str | os.PathLike[str]) -> dict[str, Any]:
    """What was tested of a version, with a signature by the private key in a file."""
    return {**values, "signature": _signature(_message(values), key)}


def read_statement(path: str | os.PathLike[str], key: str | os.PathLike[str] | None) -> Any:
    """Such a statement, which may be anybody's: with a public key, that of its holder."""
    try:
        with open(path, "rb") as file:
            values = strict_json(file.read(MOST_BYTES + 1))
        signature = values.pop("signature")
        known = values[ATTESTATION] == 1 and isinstance(values["results"], dict)
        lines = all(is_line(values[name]) for name in ("version", "date", "source_sha256"))
        if not (known and lines and signature is not None and is_signature(signature)):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"'{path}' is no attestation: give the file of make attest") from None
    if key is not None:
        _checked(_message(values), signature, key, "attestation")
    return {**values, "signature": signature}


def _message(said: Certificate | Mapping[str, Any]) -> bytes:
    """All that is said, but for the signature, as one text."""
    values, purpose = said, _ATTESTED
    if isinstance(said, Certificate):
        values, purpose = replace(said, signature=None).to_dict(), _PURPOSE
    return purpose + json.dumps(values, sort_keys=True, allow_nan=False).encode()


def _signature(message: bytes, key: str | os.PathLike[str]) -> dict[str, str]:
    private = _key(key, private=True)
    signature = base64.b64encode(private.sign(message)).decode()
    return {"key": _fingerprint(private.public_key()), "ed25519": signature}


def _checked(
    message: bytes, signature: Mapping[str, str] | None, key: str | os.PathLike[str], what: str
) -> str:
    public = _key(key)
    if signature is None:
        raise InputError(f"the {what} is not signed: ask whoever made it to sign it")
    if signature["key"] != _fingerprint(public):
        raise InputError(
            f"the {what} is signed by another key than that in '{key}': ask whose it is, and "
            "compare fingerprints"
        )
    from cryptography.exceptions import InvalidSignature

    try:
        public.verify(base64.b64decode(signature["ed25519"], validate=True), message)
    except (InvalidSignature, binascii.Error, ValueError):
        raise InputError(
            f"the {what} was changed after it was signed: ask for the one that was signed"
        ) from None
    return _fingerprint(public)


def _fingerprint(public: Any) -> str:
    _, serialization = _cryptography()
    der = public.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(der).hexdigest()


def _key(path: str | os.PathLike[str], private: bool = False) -> Any:
    """The private or the public key in a file."""
    keys, serialization = _cryptography()
    if not Path(path).is_file():
        raise InputError(f"there is no key '{path}': check the path")
    if private and os.name == "posix" and Path(path).stat().st_mode & 0o077:
        raise InputError(f"others may read the key '{path}': run chmod 600 on it")
    with open(path, "rb") as file:
        text, key = file.read(_MOST_KEY_BYTES), None
    try:
        if private:
            key = serialization.load_pem_private_key(text, password=None)
        else:
            key = serialization.load_pem_public_key(text)
    except TypeError:
        raise InputError(
            f"the key '{path}' is locked by a passphrase: give one that is not"
        ) from None
    except Exception:  # of several kinds, by version
        pass
    if not isinstance(key, keys.Ed25519PrivateKey if private else keys.Ed25519PublicKey):
        kind, wanted = "public", f"the {PUBLIC_SUFFIX} file of whoever signed"
        if private:
            kind, wanted = "private", "one that privtraj sign --new-key has made"
        raise InputError(f"'{path}' is no {kind} key of Ed25519: give {wanted}")
    return key


def _write_new(path: Path, data: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _cryptography() -> tuple[Any, Any]:
    """What signs, and what reads and writes keys; an `InputError` where the package is missing."""
    extra("cryptography", "signatures", "privtraj[sign]")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    return ed25519, serialization
