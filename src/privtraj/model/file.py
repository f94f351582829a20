"""Model files: a zip of plain arrays and one JSON header, in which every part has its checksum.

particles.npy, weights.npy, ...   one array each, without pickles
model.json                        the fields of the model, the SHA-256 of every array, and the
                                  certificate, which carries the digest of the whole model
model.sha256                      of model.json

A file may come from anybody. It is read within the bounds of `read_zip` and `strict_json`, nothing
in it is evaluated, and what is not as it should be is answered by one sentence.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.errors import InputError
from privtraj.base.files import Hostile, atomic_path, read_zip, strict_json, write_zip

FORMAT = 3

Fields = dict[str, Any]
Arrays = dict[str, NDArray[Any]]
Layout = Mapping[str, tuple[str | int, ...]]
"""Of arrays: names of dimensions, which are as long wherever they are, or lengths."""

_NPY = re.compile(  # as numpy.save writes it; its own reader evaluates what it finds here
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|][fiu][1248])', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,12},? ?){1,4})\), \} *\n",
    re.DOTALL,
)


def digest(fields: Fields, arrays: Arrays, certificate: Fields) -> str:
    """SHA-256 of all that a file holds."""
    digests = {}
    for name, array in arrays.items():
        member = _Hashed()  # as the array would be, and never in memory
        np.save(member, array, allow_pickle=False)
        digests[f"{name}.npy"] = member.sha256.hexdigest()
    header = _header(fields, digests, certificate)
    return _sha256(json.dumps(header, sort_keys=True, allow_nan=False).encode())


def write(
    path: str | Path, fields: Fields, arrays: Arrays, certificate: Fields, *, force: bool
) -> None:
    """Write a file, whole or not at all; the same content gives the same bytes."""
    members = {}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        members[f"{name}.npy"] = buffer.getvalue()
    digests = {name: _sha256(data) for name, data in members.items()}
    text = json.dumps(_header(fields, digests, certificate), indent=1, allow_nan=False).encode()
    members |= {"model.json": text, "model.sha256": _sha256(text).encode()}
    with atomic_path(path, force=force) as temporary:
        write_zip(temporary, members)


def read(
    path: str | Path, fields: set[str], optional: set[str], layout: Layout
) -> tuple[Fields, Arrays]:
    """The header, with these fields and the certificate, and the arrays of a file that is whole.

    optional: fields that files may lack, of which they speak only where there is something to say.
    """
    members = _read_members(Path(path))
    try:
        header = strict_json(members["model.json"])
        version = header["format"]
    except (KeyError, ValueError, TypeError):
        what = f"'{path}' is not a privtraj model"
        raise InputError(f"{what}: give a file that fit has written") from None
    if version != FORMAT or isinstance(version, bool):
        shown = version if isinstance(version, int) else "of another kind"
        raise InputError(
            f"'{path}' has model format {shown}, and this privtraj reads format {FORMAT}: "
            "install the version that wrote it"
        )
    written = members.get("model.sha256", b"").decode(errors="replace")
    parts = header.get("sha256")
    digests = {**(parts if isinstance(parts, dict) else {}), "model.json": written}
    for name, stated in digests.items():
        if name not in members or _sha256(members[name]) != stated:
            what = name if name in members else "a part that is not there"
            raise InputError(
                f"'{path}' was changed or damaged, as {what} does not match its checksum: do not "
                "trust it, and copy it again"
            )
    extra = set(members) - set(digests) - {"model.sha256"}
    if extra:
        raise InputError(
            f"'{path}' was changed, as it holds what no model has ({len(extra)} parts): do not "
            "trust it"
        )
    try:
        if header.keys() - optional != {"format", "sha256", "certificate", *fields}:
            raise ValueError("other fields")
        return header, _arrays(members, layout)
    except (KeyError, ValueError, TypeError):
        raise damaged(path) from None


def damaged(path: str | Path, why: str = "a part is missing or unreadable") -> InputError:
    """What to say of a file whose checksums are right and whose parts are not."""
    return InputError(f"'{path}' is damaged, as {why}: copy it again")


def _header(fields: Fields, digests: dict[str, str], certificate: Fields) -> Fields:
    return {"format": FORMAT, **fields, "sha256": digests, "certificate": certificate}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class _Hashed:
    """A file of which only the hash is kept."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()

    def write(self, data: bytes) -> None:
        self.sha256.update(data)


def _read_members(path: Path) -> dict[str, bytes]:
    if not path.exists():
        raise InputError(f"there is no file '{path}': check the path")
    try:
        if not path.is_file():
            raise zipfile.BadZipFile("a folder, or a device that never ends")
        return read_zip(path)
    except Hostile as error:
        raise InputError(
            f"'{path}' is no file that privtraj has written, as {error}: do not trust it"
        ) from None
    except (zipfile.BadZipFile, OSError):
        raise InputError(
            f"'{path}' is not a privtraj model, or is damaged: give a file that fit has written, "
            "or copy it again"
        ) from None


def _arrays(members: dict[str, bytes], layout: Layout) -> Arrays:
    """The arrays, if they are all there are and fit each other; a `ValueError` otherwise."""
    if members.keys() != {*(f"{name}.npy" for name in layout), "model.json", "model.sha256"}:
        raise ValueError("other arrays")
    arrays = {name: _array(members[f"{name}.npy"]) for name in layout}
    lengths: dict[str | int, int] = {}
    for name, dimensions in layout.items():
        if arrays[name].ndim != len(dimensions):
            raise ValueError("another number of dimensions")
        for dimension, length in zip(dimensions, arrays[name].shape, strict=True):
            known = dimension if isinstance(dimension, int) else length
            if length == 0 or lengths.setdefault(dimension, known) != length:
                raise ValueError("lengths that do not fit")
    return arrays


def _array(data: bytes) -> NDArray[Any]:
    """An array of numbers that fills its member exactly."""
    said = _NPY.match(data)
    if said is None or said.end() != 10 + int.from_bytes(data[8:10], "little"):
        raise ValueError("not an array of numbers")
    dtype = np.dtype(said[1].decode())
    shape = tuple(int(length) for length in said[3].split(b",") if length.strip())
    if math.prod(shape) * dtype.itemsize != len(data) - said.end():
        raise ValueError("another size than stated")
    values = np.frombuffer(data, dtype, offset=said.end())
    return values.reshape(shape, order="F" if said[2] == b"True" else "C").copy("K")
