"""Shapes that noise does not change.

How many groups a column has depends on released numbers, and every other shape is compiled again.
Empty groups fill them up: no cell is in them, and their tables have precision 0. In numpy, where
nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privtraj.base.arrays import Ints
from privtraj.columns.axes import Axes
from privtraj.measures.tables.particles import Problem, Target

MULTIPLE = 8
"""Of groups of a category with many levels."""


def evened(problem: Problem, axes: Axes) -> Problem:
    """The same problem with empty groups."""
    in_time, in_pairs = (_widths(of, axes) for of in (problem.time_groups, problem.pair_groups))
    places = np.concatenate(
        [
            start + np.arange(of.shape[1])
            for start, of in zip(np.cumsum([0, *in_pairs]), problem.pair_groups, strict=False)
        ]
    )
    return problem._replace(
        over_time=tuple(
            Target(*(_filled(part, width) for part in target))
            for target, width in zip(problem.over_time, in_time, strict=True)
        ),
        pairs=_moved_apart(problem.pairs, places, sum(in_pairs)),
        parts=_moved_apart(problem.parts, places, sum(in_pairs)),
        time_groups=tuple(map(_filled, problem.time_groups, in_time)),
        pair_groups=tuple(map(_filled, problem.pair_groups, in_pairs)),
    )


def _widths(groups: Sequence[Any], axes: Axes) -> list[int]:
    """How many groups each column has then, from indicators (L_j, A_j): all numbers as many, which
    is nearly always the most that they may have."""
    most = max((of.shape[1] for of, n in zip(groups, axes.levels, strict=True) if not n), default=0)
    return [
        min(of.shape[0], -(-of.shape[1] // MULTIPLE) * MULTIPLE) if levels else most
        for of, levels in zip(groups, axes.levels, strict=True)
    ]


def _filled(table: Any, width: int) -> Any:
    """(n, A) -> (n, width), 0 in what is new."""
    return np.pad(np.asarray(table), ((0, 0), (0, width - table.shape[1])))


def _moved_apart(target: Target, places: Ints, width: int) -> Target:
    """Tables (..., C, C) -> (..., width, width): groups stand at these places (C,)."""

    def apart(table: Any) -> Any:
        made = np.zeros((*table.shape[:-2], width, width), np.float32)
        made[..., places[:, None], places] = table
        return made

    return Target(*map(apart, target))
