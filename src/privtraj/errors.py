"""The mistakes privtraj explains instead of crashing on; the command line exits with 2 on each.

Messages are one sentence: what is wrong, where (a column, a count of rows, never a raw value),
and what to do about it.
"""


class PrivtrajError(Exception):
    """Base of every error that a user can put right."""


class InputError(PrivtrajError, ValueError):
    """A table, an option or a file that cannot be used as given."""


class BudgetError(PrivtrajError):
    """A release that the privacy budget does not cover; nothing was released."""
