"""The mistakes privtraj explains instead of crashing on; the command line exits with 2 on each.

Messages are one sentence: what is wrong, where (a column, a count of rows, never a raw value),
and what to do about it. They are made of parts: what they say about an argument is data, so that
Python's users read `missing='drop'` and those of the command line `--missing drop`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Arg:
    """An argument that a message names, with the value that it should have, if any.

    name: as Python shows it, `person` or `person=`.  option: the option, if named otherwise.
    """

    name: str
    value: object = None
    option: str | None = None

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value!r}"

    @property
    def typed(self) -> str:
        """The same on the command line."""
        option = "--" + (self.option or self.name).removesuffix("=").replace("_", "-")
        return option if self.value is None or self.value is True else f"{option} {self.value}"


@dataclass(frozen=True)
class Said:
    """Words for Python's users, and others for those of the command line."""

    python: str
    typed: str

    def __str__(self) -> str:
        return self.python


class PrivtrajError(Exception):
    """Base of every error that a user can put right; its arguments are the parts of a sentence."""

    def __init__(self, *parts: str | Arg | Said) -> None:
        super().__init__(*parts)

    def __str__(self) -> str:
        return "".join(map(str, self.args))

    def typed(self) -> str:
        """The sentence in the words of the command line."""
        return "".join(part if isinstance(part, str) else part.typed for part in self.args)


class InputError(PrivtrajError, ValueError):
    """A table, an option or a file that cannot be used as given."""


class BudgetError(PrivtrajError):
    """A release that the privacy budget does not cover; nothing was released."""
