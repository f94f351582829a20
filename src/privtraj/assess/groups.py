"""What noise leaves of each value of a category, before a fit and after it; no fit is made again.

A fit by tables (`measures.tables`) counts the people with each value, with noise of s_0 people, and
those with each value in B bands of every number, about as many people in each. The contrast that
tells a mean (`measures.pairs`) has then noise of  s / N  standard deviations of the number, of a
value that N people have, and

    its share    is off by  s_0 people, and cannot be told from none where 1.64 s_0 > N
    its numbers  are lost where  s / N > APART: the group is not known beyond what everybody has.

s_0 and s follow from the budget alone, so that plan, fit and report say the same. What a model says
of n of the N people (all of them, or those of a period) is a posterior mean, of variance

    u USUAL^2 / (u + USUAL^2) + 1 / m,
    u = s^2 (BESIDE / N^2 + 1 / (N n) + HIDDEN (1 / n - 1 / N) / N) + 1 / n:

noise, which is spread over all N, and n people by chance, as far as contrasts are not shrunk to
what everybody has; m are the people who were drawn from the particles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.assess.common import SURE
from privtraj.base.arrays import Floats
from privtraj.base.errors import about, first_few
from privtraj.columns.kinds import Axes, Category, Column
from privtraj.measures.tables import ROUNDS, TABLES, VALUES, WINDOWS, Detail

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

APART = 0.5
"""Standard deviations between a group and everybody that people ask about: a medium difference by
Cohen's convention."""
BESIDE = 3.0
"""Times s^2 / N^2 that numbers in a group have beside the noise of their contrast: by contrasts of
higher order, places inside bands, and particles that explain all tables at once. Populations of
even seeds set it (those of docs/howto/answers.md are odd); 2.5 is as good."""
HIDDEN = 2.0
"""Times the noise of what changes in time that shrinkage hides of it: where noise is a third of a
trend, half of it is kept. Set on simulated hospitals of seeds 0 to 3."""
USUAL = 0.3
"""Standard deviations by which groups differ: what shrinkage hides. .25 holds 2 % fewer means."""


def off_by(noise: float, people: float, among: float, values: int = 1) -> float:
    """s / sqrt(N n): standard deviations by which noise of so many people moves a mean of people,
    who are some of those among whom it is spread, with one of so many values: it adds up."""
    return noise * math.sqrt(values / (max(among, 1.0) * max(people, 1.0)))


def half_width(noise: float, drawn: float, usual: float = USUAL) -> float:
    """Of the 90 % interval, from variances u and 1 / m, where so much is usual."""
    return SURE * math.sqrt(noise * usual**2 / (noise + usual**2) + drawn)


@dataclass(frozen=True)
class GroupNoise:
    """Of the values of one category, in people. count: s_0.  mean: that of means, times n, which is
    about twice that of a cell with another category; of a number: in everybody.
    numbers: whether there are any."""

    count: float
    mean: float
    numbers: bool = True

    def lost(self, people: float, values: int = 1) -> str:
        """What is lost of a value, or of several together, that so many have: "share", "numbers",
        or nothing."""
        if people <= SURE * self.count * values**0.5:
            return "share"
        return "numbers" if self.numbers and off_by(self.mean, people, people) > APART else ""


def group_noise(mu: float, columns: Sequence[Column], people: float) -> dict[str, GroupNoise]:
    """Of each column, in a fit by tables that tells mu (as 1/z) of so many people in all.

    In a round, a table of n cells has noise of variance  sum_m sqrt(m) / (sqrt(n) share mu^2),
    the sum over the sizes m of all its tables: bands of every two columns, time being one, and then
    whatever is chosen, at worst all groups and parts of time.
    """
    axes = Axes.of(columns)
    groups, few, parts = Detail.of(mu, len(axes.counted), people)
    lacks, numbers = dict(axes.flags), axes.numbers[axes.counted]
    bands = np.array([axes.levels[k] or few + (k in lacks) for k in axes.counted], float)
    alone = np.repeat(np.where(numbers, VALUES[0], bands), np.where(numbers, 3, 1))
    pairs = np.array([a * b for a, b in combinations(bands, 2)] or [1.0])
    first, chosen = (np.concatenate([one, pairs]) for one in (WINDOWS * bands, parts * pairs))
    in_bands, later = few / (1 - few**-2.0), sum(ROUNDS[2:])

    def variance(share: float, cells: float, sizes: Floats) -> float:
        return float(np.sqrt(sizes / cells).sum()) / (share * mu**2)

    made = {}
    for column in columns:
        if column.of:
            continue
        if not isinstance(column, Category):
            over_time = WINDOWS * in_bands * variance(ROUNDS[1], WINDOWS * few, first)
            mean = 1 / (1 / (VALUES[0] * variance(ROUNDS[0], VALUES[0], alone)) + 1 / over_time)
            made[column.name] = GroupNoise(0.0, math.sqrt(mean))
            continue
        n, cells = float(column.levels), float(column.levels * few)
        over_time = WINDOWS * variance(ROUNDS[1], WINDOWS * n, first)
        count = 1 / (1 / variance(ROUNDS[0], n, alone) + 1 / over_time)
        mean = 1 / (
            1 / (in_bands * variance(ROUNDS[1], cells, first))
            + 1 / (groups * variance(later, cells, chosen))
            + 1 / (in_bands * parts * variance(later, parts * cells, chosen))
        )
        made[column.name] = GroupNoise(math.sqrt(count), math.sqrt(mean), bool(axes.numbers.any()))
    return made


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


def told_by_tables(model: TrajectoryModel) -> tuple[float, float] | None:
    """mu (as 1/z) of a model that was fitted by tables, and its people; None for others."""
    entries = [one for one in model.certificate.ledger if one["what"].startswith(TABLES)]
    counted = model.diagnostics.get("people_per_time")
    if not entries or not counted:
        return None
    told = sum(one.get("times", 1) / one["noise_multiplier"] ** 2 for one in entries)
    return math.sqrt(told), max(float(np.sum(counted)), 1.0)


def released_people(model: TrajectoryModel) -> tuple[Floats, Floats]:
    """(K,) people of each window, none of them below 0, and how long the windows are."""
    told = model.diagnostics
    counts = np.maximum(np.asarray(told.get("people_per_time") or [1.0], float), 0)
    return counts, np.asarray(told.get("people_lengths") or np.ones(len(counts)), float)


def people_between(model: TrajectoryModel, edges: Floats) -> Floats:
    """(P,) how many people there were between these P + 1 times, by the released numbers."""
    (counts, lengths), (low, high) = released_people(model), model.knots[[0, -1]]
    ends = low + (high - low) * np.append(0.0, np.cumsum(lengths) / lengths.sum())
    return np.diff(np.interp(edges, ends, np.append(0.0, np.cumsum(counts))))


def groups_of(model: TrajectoryModel) -> tuple[Group, ...]:
    """Every value of every category of a model that was fitted by tables, those lost first."""
    told = told_by_tables(model)
    if told is None:
        return ()
    mu, people = told
    noises, made = group_noise(mu, model.columns, people), []
    weights = model.weights / model.weights.sum()
    levels = model.axes.level_of(model.particles)
    for k, column in enumerate(model.columns):
        if not isinstance(column, Category) or column.name not in noises:
            continue
        noise = noises[column.name]
        shares = np.bincount(levels[..., k].ravel(), weights.ravel(), len(column.labels))
        for share, label in zip(shares.tolist(), column.labels, strict=True):
            here = max(share * people, 1.0)
            name = "missing" if label is None else str(label)
            off = SURE * noise.count / people
            variance = noise.numbers * (1 + BESIDE) * off_by(noise.mean, here, here) ** 2
            mean_off = half_width(variance + 1 / here, people / here / model.particles.shape[1])
            made.append(Group(column.name, name, share, off, mean_off, noise.lost(here)))
    return tuple(sorted(made, key=lambda one: not one.lost))


def sentences(groups: Sequence[Group]) -> list[str]:
    """What is kept of each category, a sentence each."""
    made = []
    for name in dict.fromkeys(one.column for one in groups):
        mine = [one for one in groups if one.column == name]
        lost = sorted((one for one in mine if one.lost), key=lambda one: -one.share)
        if not lost:
            every = "both" if len(mine) == 2 else f"all {len(mine)}"
            made.append(f"{every} values of '{name}' keep their shares and numbers")
            continue
        held, are = 100 * sum(one.share for one in lost), "is" if len(lost) == 1 else "are"
        made.append(
            f"{len(lost)} of {len(mine)} values of '{name}', with {about(held)} % of the people, "
            f"{are} lost in the noise: {first_few([one.value for one in lost])}"
        )
    return made


def outlook(mu: float, people: float, columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Of each category how many people a value needs, to keep its share and the means of numbers,
    and what is lost if all were equally frequent, for a plan."""
    levels = {one.name: one.levels for one in columns if isinstance(one, Category) and not one.of}
    return [
        {
            "column": name,
            "values": levels[name],
            "fewest_for_share": SURE * noise.count,
            "fewest_for_means": noise.mean / APART * noise.numbers,
            "people_each": people / levels[name],
            "lost": noise.lost(people / levels[name]),
        }
        for name, noise in group_noise(mu, columns, people).items()
        if name in levels
    ]
