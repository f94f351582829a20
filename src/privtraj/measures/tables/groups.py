"""Cells of a column put together, so that what is counted stands out from its noise.

Groups follow from released shares of all times together. Whether a record is in a group is then a
function of that record and of released numbers.
"""

from __future__ import annotations

import numpy as np

from privtraj.base.arrays import Floats, Ints


def of_number(people: Floats, count: int) -> Ints:
    """(L,) the group of each cell: at most `count` runs of cells with about as many people (L,)."""
    share = people / people.sum()
    middle = np.cumsum(share) - share / 2
    numbers = np.minimum((middle * count).astype(np.int64), count - 1)
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64)


def of_category(people: Floats, least: float) -> Ints:
    """(L,) the group of each level: one of its own for `least` people, all others are one."""
    rare = people < least
    if np.count_nonzero(rare) < 2:
        return np.arange(len(people))
    numbers = np.cumsum(~rare) - 1
    return np.where(rare, numbers[-1] + 1, numbers)


def of_ordered(people: Floats, least: float) -> Ints:
    """(L,) the group of each level: neighbours together until they have `least` people."""
    groups, held, number = np.zeros(len(people), np.int64), 0.0, 0
    for level, here in enumerate(people.tolist()):
        if held >= least:
            held, number = 0.0, number + 1
        groups[level] = number
        held += here
    return groups


def middles(cells: int) -> Floats:
    """(L,) of cells of equal size in the unit interval."""
    middle: Floats = (np.arange(cells) + 0.5) / cells
    return middle


def scores(grouped: Ints) -> Floats:
    """(A,) mean number of the cells of each group."""
    return np.bincount(grouped, np.arange(len(grouped))) / np.bincount(grouped)


def count(grouped: Ints) -> int:
    """A, how many groups there are."""
    return int(grouped.max()) + 1


def indicator(grouped: Ints) -> Floats:
    """(L, A) 1 where a cell is in a group."""
    return np.eye(count(grouped))[grouped]
