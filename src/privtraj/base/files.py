"""Files that appear whole or not at all, and the folder of what can be made again."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
        _flush(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


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


def _flush(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
