"""Model files: a zip of plain arrays and one JSON header, in which every part has its checksum.

particles.npy, weights.npy, ...   one array each, without pickles
model.json                        the fields of the model, the SHA-256 of every array, and the
                                  certificate, which carries the digest of the whole model
model.sha256                      of model.json
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.errors import InputError
from privtraj.files import atomic_path

FORMAT = 3

Fields = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def digest(fields: Fields, arrays: Arrays, certificate: Fields) -> str:
    """SHA-256 of all that a file holds."""
    header = _header(fields, _members(arrays), certificate)
    return _sha256(json.dumps(header, sort_keys=True, allow_nan=False).encode())


def write(
    path: str | Path, fields: Fields, arrays: Arrays, certificate: Fields, *, force: bool
) -> None:
    """Write a file, whole or not at all; the same content gives the same bytes."""
    members = _members(arrays)
    text = json.dumps(_header(fields, members, certificate), indent=1, allow_nan=False).encode()
    members |= {"model.json": text, "model.sha256": _sha256(text).encode()}
    with atomic_path(path, force=force) as temporary, zipfile.ZipFile(temporary, "w") as file:
        for name, data in members.items():
            file.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def read(path: str | Path) -> tuple[Fields, Arrays]:
    """The header, with the fields and the certificate, and the arrays of a file that is whole."""
    members = _read_members(Path(path))
    try:
        header = json.loads(members["model.json"])
        version = header["format"]
    except (KeyError, ValueError, TypeError, RecursionError):
        raise InputError(
            f"'{path}' is not a privtraj model: give a file that fit has written"
        ) from None
    if version != FORMAT:
        raise InputError(
            f"'{path}' has model format {version}, and this privtraj reads format {FORMAT}: "
            "install the version that wrote it"
        )
    _check_digests(path, members, header)
    try:
        return header, {
            name.removesuffix(".npy"): np.load(io.BytesIO(data), allow_pickle=False)
            for name, data in members.items()
            if name.endswith(".npy")
        }
    except ValueError:
        raise damaged(path) from None


def damaged(path: str | Path) -> InputError:
    """What to say of a file whose checksums are right and whose parts are not."""
    return InputError(f"'{path}' is damaged, as a part is missing or unreadable: copy it again")


def _header(fields: Fields, members: dict[str, bytes], certificate: Fields) -> Fields:
    digests = {name: _sha256(data) for name, data in members.items()}
    return {"format": FORMAT, **fields, "sha256": digests, "certificate": certificate}


def _members(arrays: Arrays) -> dict[str, bytes]:
    buffers = {f"{name}.npy": io.BytesIO() for name in arrays}
    for buffer, array in zip(buffers.values(), arrays.values(), strict=True):
        np.save(buffer, array, allow_pickle=False)
    return {name: buffer.getvalue() for name, buffer in buffers.items()}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read_members(path: Path) -> dict[str, bytes]:
    if not path.exists():
        raise InputError(f"there is no file '{path}': check the path")
    try:
        with zipfile.ZipFile(path) as file:
            return {name: file.read(name) for name in file.namelist()}
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError):
        raise InputError(
            f"'{path}' is not a privtraj model, or is cut short: give a file that fit has written, "
            "or copy it again"
        ) from None
    except zlib.error:
        raise InputError(
            f"'{path}' is damaged, as its contents do not unpack: copy it again"
        ) from None


def _check_digests(path: str | Path, members: dict[str, bytes], header: dict[str, Any]) -> None:
    written = members.get("model.sha256", b"").decode(errors="replace")
    parts = header.get("sha256")
    digests = {**(parts if isinstance(parts, dict) else {}), "model.json": written}
    for name, digest in digests.items():
        if name not in members or _sha256(members[name]) != digest:
            raise InputError(
                f"'{path}' was changed or damaged, as {name} does not match its checksum: do not "
                "trust it, and copy it again"
            )
    extra = set(members) - set(digests) - {"model.sha256"}
    if extra:
        raise InputError(
            f"'{path}' was changed, as it holds what no model has ({len(extra)} parts): do not "
            "trust it"
        )
