"""What noise leaves of each value of a category, before a fit and after it; no fit is made again.

A fit by tables (`measures.tables`) counts the people with each value, with noise of s_0 people, and
the people with each value in each of G parts of every number, about as many people in each, with
noise of s people. So of a value that n people have

    its share    is off by  s_0 people, and cannot be told from none where 1.64 s_0 > n
    its means    are off by  s sqrt(G) / n  standard deviations of the number in everybody

by the noise of a contrast in `measures.pairs`. A group that may as well be `APART` standard
deviations from everybody is not known beyond what everybody has: it is lost. s_0 and s follow from
the budget alone, so that plan, fit and report say the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.base.errors import about, first_few
from privtraj.columns.kinds import Axes, Category, Column
from privtraj.measures.tables import (
    FEWEST_GROUPS,
    MOST_GROUPS,
    PARTS,
    PER_CELL,
    ROUNDS,
    TABLES,
    VALUES,
    WINDOWS,
)

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

APART = 0.5
"""Standard deviations between a group and everybody that people ask about: a medium difference by
Cohen's convention."""
SURE = 1.64  # deviations to either side that hold the truth in nine cases of ten


@dataclass(frozen=True)
class GroupNoise:
    """count: s_0.  mean: s sqrt(G), 0 where there are no numbers. Both in people.  parts: G."""

    count: float
    mean: float
    parts: float

    @classmethod
    def of(cls, mu: float, columns: tuple[Column, ...], people: float) -> GroupNoise:
        """Of a fit by tables that tells mu (as 1/z) of so many people in all."""
        axes = Axes.of(columns)
        d, numbers = len(axes.levels), int(np.sum(axes.numbers))
        pairs = max(d * (d - 1) // 2, 1)
        alone = (d - numbers + len(VALUES) * numbers) / ROUNDS[0]
        over_time = WINDOWS * d / ROUNDS[1]
        cell = math.sqrt(pairs / ROUNDS[2]) / mu
        parts = np.clip(math.sqrt(people / (PER_CELL * cell)), FEWEST_GROUPS, MOST_GROUPS)
        # pairs again, in parts of time: all of them, at worst
        both = cell * (1 + ROUNDS[3] / ROUNDS[2] / PARTS) ** -0.5
        count = (1 / alone + 1 / over_time) ** -0.5 / mu
        return cls(count, both * math.sqrt(parts) if numbers else 0.0, float(parts))

    def lost(self, people: float) -> str:
        """What is lost of a value that so many have: "share", "numbers", or nothing."""
        if people <= SURE * self.count:
            return "share"
        return "numbers" if people < self.mean / APART else ""


@dataclass(frozen=True)
class Group:
    """People with one value of a category. share: of all.  off: half width of its 90 % band.
    mean_off: the same of the mean of a number, in standard deviations of it in everybody.
    lost: "share", "numbers", or nothing."""

    column: str
    value: str
    share: float
    off: float
    mean_off: float
    lost: str


def noise_of(model: TrajectoryModel) -> GroupNoise | None:
    """Of a model that was fitted by tables; None for others."""
    entries = [one for one in model.certificate.ledger if one["what"] == TABLES]
    counted = model.diagnostics.get("people_per_time")
    if not entries or not counted:
        return None
    told = sum(one.get("times", 1) / one["noise_multiplier"] ** 2 for one in entries)
    return GroupNoise.of(math.sqrt(told), model.columns, max(float(np.sum(counted)), 1.0))


def groups_of(model: TrajectoryModel) -> tuple[Group, ...]:
    """Every value of every category of a model that was fitted by tables, those lost first."""
    noise = noise_of(model)
    if noise is None:
        return ()
    people = max(float(np.sum(model.diagnostics["people_per_time"])), 1.0)
    weights = model.weights / model.weights.sum()
    levels = model.axes.level_of(model.particles)
    made = []
    for k, column in enumerate(model.columns):
        if not isinstance(column, Category) or column.of:
            continue
        for level, label in enumerate(column.labels):
            share = float(weights[levels[..., k] == level].sum())
            here = max(share * people, 1.0)
            name = "missing" if label is None else str(label)
            off, mean_off = SURE * noise.count / people, SURE * noise.mean / here
            made.append(Group(column.name, name, share, off, mean_off, noise.lost(here)))
    return tuple(sorted(made, key=lambda one: not one.lost))


def sentences(groups: Sequence[Group]) -> list[str]:
    """What is kept of each category, a sentence each."""
    made = []
    for name in dict.fromkeys(one.column for one in groups):
        mine = [one for one in groups if one.column == name]
        lost = sorted((one for one in mine if one.lost), key=lambda one: -one.share)
        if not lost:
            made.append(f"all {len(mine)} values of '{name}' keep their shares and numbers")
            continue
        held = 100 * sum(one.share for one in lost)
        made.append(
            f"{len(lost)} of {len(mine)} values of '{name}', with {about(held)} % of the people, "
            f"are lost in the noise: {first_few([one.value for one in lost])}"
        )
    return made


def outlook(noise: GroupNoise, people: float, columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    """Of each category what is lost if its values were equally frequent, for a plan."""
    return [
        {
            "column": column.name,
            "values": column.levels,
            "people_each": people / column.levels,
            "lost": noise.lost(people / column.levels),
        }
        for column in columns
        if isinstance(column, Category) and not column.of
    ]
