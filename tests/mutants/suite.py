"""The planted breaks: what they are, and how they are applied.

A mutant is the shipped source with one privacy guarantee broken on purpose. Each is an entry of a
*.toml file beside this one: a name, what is broken in one sentence, the file below src/privtraj,
the text that is replaced (it must stand there exactly once) and the tests that must fail.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCE = ROOT / "src" / "privtraj"
PAGE = ROOT / "docs" / "privacy.md"
FAST = ("tests/privacy", "tests/measures", "tests/data", "tests/motion", "tests/test_*.py")


class StaleMutant(Exception):
    """The source has changed: the text to replace is no longer there, or no longer once."""


@dataclass(frozen=True)
class Mutant:
    """One break. old, new: a text, or as many texts as there are places to change."""

    name: str
    breaks: str
    file: str
    old: str | list[str]
    new: str | list[str]
    caught_by: list[str]

    @cached_property
    def edits(self) -> list[tuple[str, str]]:
        """Pairs of what is replaced and by what."""
        old, new = ([texts] if isinstance(texts, str) else texts for texts in (self.old, self.new))
        return list(zip(old, new, strict=True))

    def applied(self, text: str) -> str:
        """The broken text of its file."""
        for old, new in self.edits:
            if text.count(old) != 1:
                raise StaleMutant(
                    f"{self.name}: {self.file} has {text.count(old)} times, not once: {old!r}"
                )
            text = text.replace(old, new)
        return text

    def plant(self, package: Path) -> None:
        """Break a copy of the package."""
        path = package / self.file
        path.write_text(self.applied(path.read_text("utf-8")), encoding="utf-8")


def load() -> dict[str, Mutant]:
    """All mutants by name, in the order of their files."""
    entries = [
        entry
        for path in sorted(HERE.glob("[0-9]_*.toml"))
        for entry in tomllib.loads(path.read_text("utf-8"))["mutant"]
    ]
    mutants = [Mutant(**entry) for entry in entries]
    if len({mutant.name for mutant in mutants}) < len(mutants):
        raise ValueError("two mutants have one name")
    return {mutant.name: mutant for mutant in mutants}


def fast_tier() -> list[str]:
    """The fast tests of the rooms in which a break may show."""
    paths = [path for pattern in FAST for path in sorted(ROOT.glob(pattern))]
    return ["-m", "not slow and not thorough", *(str(path.relative_to(ROOT)) for path in paths)]
