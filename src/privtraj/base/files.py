"""Reading and writing files: files that appear whole or not at all, the folder of what can be made
again, and zips and JSON that somebody else made, which may be hostile."""

from __future__ import annotations

import json
import math
import os
import secrets
import stat
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from platformdirs import user_cache_path

from privtraj.base.errors import Arg, InputError


def cache_folder(name: str) -> Path:
    """Where one kind of what can be made again is kept between runs; it may not exist yet.

    Below `$XDG_CACHE_HOME/privtraj` (`~/.cache/privtraj`) on Linux, `~/Library/Caches/privtraj` on
    macOS, `%LOCALAPPDATA%\\privtraj\\Cache` on Windows.
    """
    return user_cache_path("privtraj", appauthor=False) / name


def write_text(text: str, path: str | os.PathLike[str], force: bool = False) -> None:
    """Write text in UTF-8; see `atomic_path`."""
    with atomic_path(path, force) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def atomic_path(path: str | os.PathLike[str], force: bool = False) -> Iterator[Path]:
    """A temporary path beside `path`; it becomes `path` when the block ends without an error.

    The temporary file has the same directory and suffix. It is flushed to disk and renamed, so a
    reader sees the old file or the new one, never a part; after an error it is removed and an
    existing `path` is as it was. An existing `path` is refused unless `force`.
    """
    path = Path(path)
    check_writable(path, force)
    temporary = path.with_name(f".{secrets.token_hex(6)}.{path.name}")
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def flush_folder(folder: Path) -> None:
    """Names of files are on the disk when this returns, where a system can tell."""
    if sys.platform != "win32":  # which has no such call
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def check_writable(path: Path, force: bool) -> None:
    if not path.parent.is_dir():
        raise InputError(f"there is no directory '{path.parent}': create it first")
    if path.is_dir():
        raise InputError(f"'{path}' is a directory: give the name of a file")
    if path.exists() and not force:
        raise InputError(
            f"the file '{path}' already exists: choose another name, or replace it with ",
            Arg("force", True),
        )
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"the directory '{path.parent}' cannot be written to: choose another one")


# Zips -------------------------------------------------------------------------------------------


class Hostile(zipfile.BadZipFile):
    """A zip that is not damaged but made to do harm, or by another program; says why."""


FREE = 2**24
RATIO = 16
MOST_MEMBERS = 64
LARGE, BEGIN = 2**20, 2**16
LEVEL = 4
"""Of deflate: noisy counts take a third of the time that 6 takes, and a seventh more room."""

_END = struct.Struct("<4s4H2LH")  # the end of the central directory, without a comment
_MOST_PER_MEMBER = 256  # bytes of its line in the directory


def write_zip(path: Path, members: Mapping[str, bytes]) -> None:
    """The same members give the same bytes: no dates, and deflated unless that might look like a
    bomb to `read_zip`, or would take long and gain little: a large member that begins with digits
    as good as random, such as the particles of a model that grew for years."""
    small = sum(map(len, members.values())) <= FREE
    with zipfile.ZipFile(path, "w") as file:
        for name, data in members.items():
            long = len(data) > LARGE and len(zlib.compress(data[:BEGIN], 1)) > BEGIN // 4
            method = zipfile.ZIP_DEFLATED if small and not long else zipfile.ZIP_STORED
            file.writestr(zipfile.ZipInfo(name), data, method, LEVEL)


def read_zip(path: Path) -> dict[str, bytes]:
    """The members by name, or a `BadZipFile`; no file is extracted.

    A zip says how large its members are, and may lie: a few kilobytes can unpack to all the memory
    there is. So the directory is measured before it is read, all sizes before anything is unpacked,
    and a member is unpacked no further than to its stated size. Together they may have `FREE`
    bytes, and `RATIO` for each byte of the file: what honest arrays need, and no bomb has.
    """
    try:
        with open(path, "rb") as raw:
            _check_directory(raw)
            with zipfile.ZipFile(raw) as file:
                _check_members(file.infolist(), os.fstat(raw.fileno()).st_size)
                members = {}
                for info in file.infolist():
                    with file.open(info) as member:
                        data = member.read(info.file_size)  # unpacks no more, whatever there is
                    if len(data) < info.file_size:
                        raise zipfile.BadZipFile("another size than stated")
                    members[info.filename] = data
                return members
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


# Text -------------------------------------------------------------------------------------------

MOST_BYTES = 2**23
MOST_VALUES = 300_000
DEEPEST = 32
LONGEST_TEXT = 10_000
LARGEST_WHOLE = 10**20


def strict_json(data: bytes) -> Any:
    """The value of JSON in UTF-8 that somebody else wrote: small, shallow, or a `ValueError`.

    What is read here is shown to people and compared with hashes, so one text must have one
    meaning: no key twice, no NaN or Infinity, no number of a thousand digits. Size and the number
    of values are counted in the bytes, before anything is made of them.
    """
    values = sum(map(data.count, (b",", b"[", b"{")))  # one of them before all but the first
    if len(data) > MOST_BYTES or values > MOST_VALUES:
        raise ValueError("too large")
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_number,
            parse_float=_number,
            parse_int=_number,
        )
    except RecursionError:
        raise ValueError("too deep") from None
    return bounded(value)


def bounded(value: Any) -> Any:
    """The value that somebody else's file holds, if it is shallow, with numbers of few digits and
    no long texts; else a `ValueError`. Whoever walks through it, or shows it, has an end."""
    layer = [value]
    for _ in range(DEEPEST):
        inside: list[Any] = []
        for item in layer:
            if isinstance(item, dict):
                inside += [*item, *item.values()]
            elif isinstance(item, list):
                inside += item
            elif isinstance(item, str) and len(item) > LONGEST_TEXT:
                raise ValueError("too long a text")
            elif isinstance(item, int) and abs(item) >= LARGEST_WHOLE:
                raise ValueError("too large a number")
        if len(inside) > MOST_VALUES:
            raise ValueError("too large")
        if not inside:
            return value
        layer = inside
    raise ValueError("too deep")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key is there twice")
    return made


def _number(text: str) -> int | float:
    whole = text.lstrip("-").isdigit()
    if whole and len(text) <= 20:
        return int(text)
    value = float(text)
    if whole or not math.isfinite(value):
        raise ValueError("too large a number, or none")
    return value
