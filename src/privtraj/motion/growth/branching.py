"""Branching: whoever is born has a mother, and shares her past.

Everybody has a path with the right law at all times, and is there from some time on. Their mother
is who is nearest then. Before, they are their mother; afterwards the little that lay between them
fades away, so that they part smoothly, and those who are there keep the model's marginals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.columns.axes import Axes
from privtraj.motion.growth.lives import Lives

DIVISIONS = 129
"""Even moments of the range at which people are born."""
PARTING = 0.1
"""Share of the range over which a mother and her daughter part."""

_ALIKE = 1e3  # boxes that are between people who differ in what is fixed


class Family(NamedTuple):
    """values: (n, q, d) with the past of the mothers.  lives: with births at the moments.

    parent: (n,) -1 for those who are there from the start, or find nobody.
    """

    values: Floats
    lives: Lives
    parent: Ints


def moments() -> Floats:
    """At which people may be born, on the clock from 0 to 1."""
    return np.linspace(0, 1, DIVISIONS)


def family(values: Floats, times: Floats, lives: Lives, ordered: Floats, axes: Axes) -> Family:
    """Of people with these paths (n, q + DIVISIONS, d) in shares of the box, at times (q,) and then
    at the `moments`.

    ordered: (d,) whether a feature has a direction: what is between mother and daughter then stays.
    axes: levels are those of the mother before and the daughter's own from birth on; what is fixed
    is always her own, and her mother is one who has it too, if there is any.
    """
    from scipy.spatial import cKDTree

    paths, when = values.copy(), np.append(times, moments())
    step = np.rint(lives.begin * (DIVISIONS - 1)).astype(np.int64)
    begin = moments()[step]
    end = np.maximum(lives.end, begin)
    parent = np.full(len(paths), -1)
    fixed, apart_by = np.array(axes.fixed), np.where(axes.fixed, _ALIKE, 1.0)
    for k in np.unique(step[step > 0]):
        t, born = begin[step == k][0], np.flatnonzero(step == k)
        there = np.flatnonzero((step < k) & (end >= t))
        if not len(there):
            continue
        column = len(times) + k
        tree = cKDTree(apart_by * paths[there, column])
        nearest = tree.query(apart_by * paths[born, column])[1]
        mothers = parent[born] = there[nearest]
        apart = paths[mothers, column] - paths[born, column]
        after = when > t
        fade = np.where(ordered, 1.0, _fading((when[after] - t) / PARTING)[:, None])
        fade = np.where(axes.categories | fixed, 0.0, fade)
        parted = paths[np.ix_(born, after)] + apart[:, None] * fade
        paths[np.ix_(born, after)] = np.clip(parted, 0.0, 1.0)
        inherited = np.where(fixed, paths[np.ix_(born, ~after)], paths[np.ix_(mothers, ~after)])
        paths[np.ix_(born, ~after)] = inherited
    return Family(paths[:, : len(times)], Lives(begin, end), parent)


def roots(parent: Ints, born: Floats) -> Floats:
    """When the first of each one's ancestors was born (n,)."""
    root = np.arange(len(parent))
    while (up := parent[root] >= 0).any():
        root[up] = parent[root[up]]
    return born[root]


def _fading(share: Floats) -> Floats:
    """From 1 at 0 to 0 at 1 and beyond, smoothly."""
    s = np.clip(share, 0.0, 1.0)
    return np.asarray((1 - s) ** 2 * (1 + 2 * s))
