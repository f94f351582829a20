"""Whom an audit looks for, and among whom: two worlds that differ in one person.

The attacker knows everybody else, so no noise but the mechanism's own stands against an attack. The
data are made here; an audit never touches a user's rows.

    add-remove    nobody                                    against  the person
    replace-one   a person at the opposite corner of an     against  the person
                  empty first bin

(Opposite corners of the same bin are a weaker pair for clipped sums: the two vectors share the
coordinates of mass and spread and differ by about c, not by the 2 c that is paid for. In different
bins they are orthogonal and differ by sqrt(2) c.)

A canary is a function of the numbers of features and times that says who else is there and where
the person is; a new one is a function below with `@canary()`, which is told the last of the columns
if that is no plain number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats, Ints
from privtraj.columns.declared import declared_columns
from privtraj.columns.kinds import Axes, Category, Column, Number, decoded, of_tables
from privtraj.data.snapshots import Snapshots
from privtraj.synthesizer import TrajectorySynthesizer

OTHERS = 24  # people at the times between the first and the last
COPIES = 3  # records of a person who has several


class People(NamedTuple):
    """n places at which there are records. copies: (n,) how many of them."""

    times: Floats  # (n,)
    points: NDArray[np.float32]  # (n, d) in the unit cube
    copies: Ints  # (n,)

    @classmethod
    def at(cls, time: float, point: NDArray[np.floating[Any]], copies: int = 1) -> People:
        """So many records at one place."""
        return cls(np.array([float(time)]), point[None].astype(np.float32), np.array([copies]))

    @classmethod
    def nobody(cls, features: int) -> People:
        """No record at all."""
        return cls(np.empty(0), np.empty((0, features), np.float32), np.empty(0, np.int64))

    def joined_by(self, more: People) -> People:
        """These and those."""
        return People(
            np.append(self.times, more.times),
            np.append(self.points, more.points, axis=0),
            np.append(self.copies, more.copies),
        )

    @property
    def records(self) -> int:
        """How many there are."""
        return int(self.copies.sum())


class Worlds(NamedTuple):
    """Everybody else, and who is there besides: in the one world, and in the other."""

    others: People
    without: People
    present: People

    @property
    def records(self) -> int:
        """Most records of one person."""
        return max(1, self.without.records, self.present.records)

    def people_per_time(self, times: int) -> list[int]:
        """With the person: the same in both worlds, where these numbers are public."""
        everybody = self.others.joined_by(self.present)
        numbers = np.zeros(times, np.int64)
        np.add.at(numbers, everybody.times.astype(np.int64), everybody.copies)
        return [int(number) for number in numbers]


Canary = Callable[[int, int], tuple[People, People]]
"""Features, times -> everybody else, and the person."""
CANARIES: dict[str, Canary] = {}
LAST: dict[str, Column] = {}
"""What the last feature is for canaries among other columns than numbers."""


def canary(last: Column | None = None) -> Callable[[Canary], Canary]:
    """List a canary under the name of its function. last: what the last feature is."""

    def listed(function: Canary) -> Canary:
        CANARIES[function.__name__] = function
        if last is not None:
            LAST[function.__name__] = last
        return function

    return listed


@canary()
def alone(features: int, times: int) -> tuple[People, People]:
    """In an empty corner, and alone in the last time. Far from where particles begin, so that the
    vector of a step is clipped to the full norm c (but for the first steps, whose bandwidth of half
    the box clips nobody in it)."""
    return _crowd(features, times), People.at(times - 1, np.ones(features))


@canary()
def corner(features: int, times: int) -> tuple[People, People]:
    """In an empty corner, at a time with everybody."""
    return _crowd(features, times), People.at(1, np.ones(features))


@canary()
def rare(features: int, times: int) -> tuple[People, People]:
    """In a place where one other person is."""
    place = np.where(np.arange(features) % 2, 0.1, 0.9)
    return _crowd(features, times).joined_by(People.at(1, place)), People.at(1, place)


@canary()
def duplicated(features: int, times: int) -> tuple[People, People]:
    """As `alone`, with several records in the one place, all of which are paid for."""
    return _crowd(features, times), People.at(times - 1, np.ones(features), COPIES)


@canary(Category(tuple(range(8))))
def level(features: int, times: int) -> tuple[People, People]:
    """With a level of a category that nobody else has, at a time and in a place with everybody."""
    numbers = np.full(features - 1, 0.5)
    return _crowd(np.append(numbers, 0.5 / 8), times), People.at(1, np.append(numbers, 7.5 / 8))


@canary(Number(0.0, 1.0, missing=True))
def missing(features: int, times: int) -> tuple[People, People]:
    """Without a number that everybody else has, at a time with everybody; the flag is last."""
    here, absent = np.full(features, 0.5), np.array([0.25, 0.75])
    return _crowd(np.append(here, absent[0]), times), People.at(1, np.append(here, absent[1]))


def _crowd(place: int | Floats, times: int) -> People:
    """Others in one place, at all times but the first and the last; in the middle of so many
    features, if it is a number."""
    place = np.full(place, 0.5) if isinstance(place, int) else place
    between = np.arange(1, times - 1)
    copies = np.bincount(np.arange(OTHERS) % len(between), minlength=len(between))
    points = np.tile(place.astype(np.float32), (len(between), 1))
    return People(between.astype(np.float64), points, copies)


def columns_of(name: str, features: int) -> tuple[Column, ...]:
    """The columns of a canary's data, with a flag at the end if the last may be missing."""
    numbers: dict[str, Column] = {f"x{k + 1}": Number(0.0, 1.0) for k in range(features)}
    if name in LAST:
        numbers[f"x{features}"] = LAST[name]
    return declared_columns(None, None, columns=numbers)


def worlds_of(name: str, synthesizer: TrajectorySynthesizer, features: int, times: int) -> Worlds:
    """The two worlds of a canary under the synthesizer's neighbouring relation."""
    others, person = CANARIES[name](features, times)
    d = person.points.shape[1]
    if synthesizer.adjacency == "add-remove":
        return Worlds(others, People.nobody(d), person)
    # where the numbers of people per bin are public, neighbours have the same numbers
    at = 0.0 if synthesizer.public_counts is None else float(person.times[0])
    opposite = Axes.of(columns_of(name, features)).centred(np.zeros(d))
    return Worlds(others, People.at(at, opposite, person.records), person)


def data_of(
    worlds: Worlds, person: People, times: int, columns: Sequence[Column] | None = None
) -> Snapshots:
    """The data of one world: the others and the person, in the unit cube at times 0, 1, ...

    columns: of the points, all numbers by default.
    """
    times_of, points, copies = worlds.others.joined_by(person)
    ids = np.arange(copies.sum())
    ids[worlds.others.records :] = worlds.others.records  # the records of one person
    several = worlds.records > 1
    known = columns_of("", points.shape[1]) if columns is None else columns
    units = zip(known, points.astype(np.float64).T, strict=True)
    values = decoded(known, np.column_stack([column.from_unit(unit) for column, unit in units]))
    own = of_tables(known)
    table = values.astype(object if any(column.levels for column in own) else np.float64)
    for k, column in enumerate(own):
        if isinstance(column, Category):
            table[:, k] = [column.labels[int(level)] for level in values[:, k]]
    return Snapshots.from_arrays(
        np.repeat(times_of, copies),
        np.repeat(table, copies, axis=0),
        columns={column.name: column for column in own},
        bins=np.arange(float(times)),
        person=ids if several else None,
        records_per_person=worlds.records,
        one_per_bin=not several,
    )
