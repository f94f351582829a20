"""Anchors: how far a ledger file had come, kept where a change to the file does not reach it.

The lines of a ledger are a chain: each has the hash of the line before it. A chain says whether its
middle was changed, but not whether its end was cut off, or all of it put back to an older copy. Who
remembers the number of lines and the hash of the last can tell: a ledger that only grew since still
has that line at that place.

Two remember. A small file beside the ledger, its *seal*, which every new line replaces; it notices
accidents: an emptied file, a restored backup, a cut end. And the steward, who may note the *code*
that each fit prints, somewhere else; it notices whatever happened to both files.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_DIGITS = 16  # of a sha256, in hex


@dataclass(frozen=True)
class Anchor:
    """So many lines, and the first digits of the sha256 of the last of them."""

    lines: int
    digits: str

    @classmethod
    def of(cls, hashes: Sequence[str]) -> Anchor:
        """Of a ledger whose lines have these sha256."""
        return cls(len(hashes), hashes[-1][:_DIGITS])

    @classmethod
    def parsed(cls, text: str) -> Anchor:
        """The inverse of `str`; a ValueError if it is none."""
        found = re.fullmatch(rf"([1-9][0-9]{{0,8}})-([0-9a-f]{{{_DIGITS}}})", text.strip())
        if found is None:
            raise ValueError
        return cls(int(found[1]), found[2])

    def is_in(self, hashes: Sequence[str]) -> bool:
        """Whether a ledger whose lines have these sha256 goes on from here."""
        return self.lines <= len(hashes) and hashes[self.lines - 1].startswith(self.digits)

    def __str__(self) -> str:
        return f"{self.lines}-{self.digits}"


def seal_of(ledger: Path) -> Path:
    """The file beside a ledger that remembers its end; one for all links to it."""
    real = ledger.resolve()
    return real.with_name(f"{real.name}.seal")


def read_seal(ledger: Path) -> Anchor | None:
    """What the seal of a ledger remembers; None where there is none that can be read."""
    path = seal_of(ledger)
    with suppress(OSError, ValueError):
        if stat.S_ISREG(path.stat().st_mode):
            return Anchor.parsed(path.read_text(encoding="ascii"))
    return None


def write_seal(ledger: Path, anchor: Anchor) -> None:
    """Replace the seal at once, after the line that it remembers is on the disk.

    A crash before leaves the old seal, which the longer ledger still holds. Where nothing can be
    written the ledger has no seal, and the line counts all the same.
    """
    path = seal_of(ledger)
    draft = path.with_name(f"{path.name}.new")  # one name: what a crash leaves is written over
    with suppress(OSError):
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(f"{anchor}\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
