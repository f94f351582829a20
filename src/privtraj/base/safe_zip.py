"""The members of a small zip that somebody else made, or a `BadZipFile`; no file is extracted.

A zip says how large its members are, and may lie: a few kilobytes can unpack to all the memory
there is. So the directory is measured before it is read, all sizes before anything is unpacked, and
a member is unpacked no further than to its stated size. Together they may have `FREE` bytes, and
`RATIO` for each byte of the file: what honest arrays need, and no bomb has. `write` keeps to it.
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO


class Hostile(zipfile.BadZipFile):
    """A zip that is not damaged but made to do harm, or by another program; says why."""


FREE = 2**24
RATIO = 16
MOST_MEMBERS = 64

_END = struct.Struct("<4s4H2LH")  # the end of the central directory, without a comment
_MOST_PER_MEMBER = 256  # bytes of its line in the directory


def write(path: Path, members: Mapping[str, bytes]) -> None:
    """The same members give the same bytes: no dates, and deflated unless that might look like a
    bomb."""
    small = sum(map(len, members.values())) <= FREE
    method = zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w") as file:
        for name, data in members.items():
            file.writestr(zipfile.ZipInfo(name), data, method)


def read(path: Path) -> dict[str, bytes]:
    """The members by name."""
    try:
        with open(path, "rb") as raw:
            _check_directory(raw)
            with zipfile.ZipFile(raw) as file:
                _check_members(file.infolist(), os.fstat(raw.fileno()).st_size)
                return {info.filename: _unpacked(file, info) for info in file.infolist()}
    except (zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, struct.error):
        raise zipfile.BadZipFile("damaged") from None


def _check_directory(raw: BinaryIO) -> None:
    """Refuse a directory that is long, or is of the kind for files beyond 4 GiB."""
    size = raw.seek(0, os.SEEK_END)
    raw.seek(max(0, size - _END.size - 20))
    before, end = raw.read(20), raw.read()
    if len(end) < _END.size:
        raise zipfile.BadZipFile("too short")
    magic, _, _, _, members, length, _, comment = _END.unpack(end)
    if magic != b"PK\x05\x06" or comment or before.startswith(b"PK\x06\x07"):
        raise zipfile.BadZipFile("no directory")
    if members > MOST_MEMBERS or length > members * _MOST_PER_MEMBER:
        raise Hostile("it has too many parts")


def _check_members(infos: list[zipfile.ZipInfo], size: int) -> None:
    if len({info.filename for info in infos}) < len(infos):
        raise Hostile("two of its parts have one name")
    for info in infos:
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise Hostile("one of its parts is no file")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Hostile("it is packed in another way")  # of which some need much memory
    if sum(info.file_size for info in infos) > FREE + RATIO * size:
        raise Hostile("it unpacks to far more than its own size")


def _unpacked(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    with file.open(info) as member:
        data = member.read(info.file_size)  # unpacks no more, whatever there is
    if len(data) < info.file_size:
        raise zipfile.BadZipFile("another size than stated")
    return data
