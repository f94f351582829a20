"""Categories of sampled people: which of their levels are drawn, in which shares, who changes.

A picture tells few levels apart. The most frequent have a colour each, missing has its own, and all
others are drawn as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.columns.kinds import Boolean, Category, Label

MOST_COLOURS = 7
"""That colour-blind readers tell apart: those of Okabe and Ito, less black."""
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
OTHERS_COLOUR = "#8a939b"
MISSING_COLOUR = "#d4d8dc"
LONGEST_LABEL = 40
"""Letters of a value on a page or a plot; more are cut."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """The levels of a category as a picture has them, L of them, from the bottom up.

    labels: (L,) what they mean.  shades: (L,) 1 to 7, "others" or "missing".
    group: (C,) where each level of the category is among them.
    """

    labels: tuple[str, ...]
    shades: tuple[str, ...]
    group: Ints

    @classmethod
    def of(cls, column: Category, shares: Floats) -> Drawn:
        """Of levels that people have in shares (C,), over all times."""
        named = [k for k, label in enumerate(column.labels) if label is not None]
        many = len(named) > MOST_COLOURS
        frequent = sorted(named, key=lambda k: -shares[k])[:MOST_COLOURS]
        kept = [k for k in named if k in frequent]
        labels = [text_label(column, k) for k in kept]
        shades = [str(k + 1) for k in range(len(kept))]
        group = np.full(column.levels, len(kept))
        group[kept] = np.arange(len(kept))
        if many:
            labels.append(f"{len(named) - len(kept)} others")
            shades.append("others")
        if column.missing:
            group[column.levels - 1] = len(labels)
            labels.append("(missing)")
            shades.append("missing")
        return cls(tuple(labels), tuple(shades), group)

    @property
    def colours(self) -> list[str]:
        """(L,) as plots use them."""
        named = {"others": OTHERS_COLOUR, "missing": MISSING_COLOUR}
        return [
            named[shade] if shade in named else COLOURS[int(shade) - 1] for shade in self.shades
        ]

    def shares(self, levels: Ints) -> Floats:
        """(Q, L) of people with levels (n, Q); -1 for who is not there."""
        return shares_of(np.where(levels < 0, -1, self.group[levels]), len(self.labels))

    def flows(self, levels: Ints) -> Floats:
        """(Q - 1, L, L) shares of people who go from one to another level between two of Q times,
        of those who are there at both."""
        size, drawn = len(self.labels), self.group[levels]
        there = levels >= 0
        tables = []
        for k in range(levels.shape[1] - 1):
            both = there[:, k] & there[:, k + 1]
            cell = drawn[both, k] * size + drawn[both, k + 1]
            tables.append(np.bincount(cell, minlength=size**2) / max(both.sum(), 1))
        return np.array(tables).reshape(-1, size, size)


def ribbons(table: Floats, thinnest: float = 0.0) -> Iterator[tuple[int, int, float, float, float]]:
    """(from, to, share, start, end) of each flow of a table (L, L) above a share.

    start, end: where its lower edge is on both sides. There flows lie in the order of levels, so
    that few cross.
    """
    leaves = np.cumsum(np.append(0.0, table.ravel()))[:-1].reshape(table.shape)
    arrives = np.cumsum(np.append(0.0, table.T.ravel()))[:-1].reshape(table.shape).T
    for i, j in np.argwhere(table > thinnest).tolist():
        yield i, j, float(table[i, j]), float(leaves[i, j]), float(arrives[i, j])


def shares_of(levels: Ints, count: int) -> Floats:
    """(Q, C) shares of people with levels (n, Q) of C; -1 for who is not there."""
    columns = [np.bincount(column[column >= 0], minlength=count) for column in levels.T]
    counts = np.array(columns, dtype=np.float64).reshape(-1, count)
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def text_label(column: Category, level: int) -> str:
    """A level in words, cut where it is long."""
    label: Label | None = column.labels[level]
    if label is None:
        return "(missing)"
    if isinstance(column, Boolean):
        return "yes" if label else "no"
    return cut(str(label))


def cut(text: str, longest: int = LONGEST_LABEL) -> str:
    """At most so many letters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def three_times(count: int) -> list[int]:
    """The first, the middle and the last of so many, less those that are the same."""
    return sorted({0, count // 2, count - 1})
