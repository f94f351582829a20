"""Checks of records, by counts and names of columns: the same sentences wherever the records live.

Nothing here sees a record. In memory the counts come from masks, in a database from one query each.

The domain of the guarantee is the tables that pass. Whether one does is told exactly and for
nothing, and a message may count records, so it is for the steward alone: an exception while
`Snapshots` are made, before there is a ledger to pay from, a model or a certificate. Neighbours are
tables that both pass; of one that does not, nothing is ever released. Behind these checks a fit
must not stop for anything that depends on records, as that would be seen (`guard`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Mask
from privtraj.base.errors import Arg, InputError, listed
from privtraj.columns.kinds import Boolean, Category

MIN_RECORDS = 10


class FaultCount(NamedTuple):
    """How many of all records have a fault, such as a missing value, and in which columns."""

    columns: list[str]
    records: int
    total: int

    @classmethod
    def of(cls, faults: Mask, columns: Sequence[str]) -> FaultCount:
        """From the faults (n, c) of n records in c columns."""
        where = [name for name, bad in zip(columns, np.any(faults, axis=0), strict=True) if bad]
        return cls(where, int(faults.any(axis=1).sum()), len(faults))

    def __str__(self) -> str:
        return f"{self.records} of {self.total} records"


def check_same_kind(column: bool, axis: bool, time_name: str) -> None:
    """Dates with dates, numbers with numbers."""
    if column != axis:
        held, given = ("dates", "numbers") if column else ("numbers", "dates")
        raise InputError(
            f"the time column '{time_name}' holds {held} but ",
            Arg("time_range"),
            f" and bins are {given}: write them as {held}" + " such as '2024-01-31'" * column,
        )


def check_infinite(faults: FaultCount) -> None:
    if faults.columns:
        raise InputError(
            f"{faults} have infinite values in {listed(faults.columns)}: correct or remove them"
        )


def check_declared(faults: FaultCount, column: Category) -> None:
    """Of a category: its values are public, and a new one would be somebody's."""
    if faults.records and isinstance(column, Boolean):
        raise InputError(
            f"{faults} have values in {listed(faults.columns)} that are not true or false, yes or "
            "no, 1 or 0: declare a category with its public values, or correct them"
        )
    if faults.records:
        raise InputError(
            f"{faults} have values in {listed(faults.columns)} that are not declared: declare "
            "them, or an other that stands for them, or correct them"
        )


def check_whole(faults: FaultCount) -> None:
    if faults.records:
        raise InputError(
            f"{faults} have values in {listed(faults.columns)} that are not whole: round them, or "
            "declare numbers"
        )


def check_missing(faults: FaultCount, missing: str) -> None:
    if faults.columns and missing == "refuse":
        raise InputError(
            f"{faults} have missing values in {listed(faults.columns)}: fill them in, or leave "
            "these records out with ",
            Arg("missing", "drop"),
        )


def check_identified(unidentified: int, total: int) -> None:
    if unidentified:
        raise InputError(
            f"{unidentified} of {total} records do not say whose they are (",
            Arg("person="),
            "): fill it in, or remove these records",
        )


def refuse_several(several: int, people: int) -> None:
    """Somebody has several records, and the user has not said what to do about it."""
    raise InputError(
        f"{several} of {people} people have more than one record: keep one record per person, or "
        "let ",
        Arg("one_per_person", "random"),
        " choose it, or keep several of each with ",
        Arg("records_per_person="),
    )


def check_enough(usable: int) -> None:
    if usable < MIN_RECORDS:
        raise InputError(
            f"{usable} usable records are too few: the table must have at least {MIN_RECORDS}"
        )
