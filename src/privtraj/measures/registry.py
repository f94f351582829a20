"""Every way to pay for a measurement, by the name that users write, and which "auto" takes.

Light, because `privtraj --help` reads the names: a measure itself is loaded when it is used.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from privtraj.recipe import Recipe, one_of

if TYPE_CHECKING:
    from privtraj.columns.kinds import Axes
    from privtraj.measures.base import Measure

NAMES = ("gradients", "counts", "tables")
KIND = one_of("auto", *NAMES)
"""What a user may choose."""
MOST_COUNTED = 2  # features up to which counts are chosen; by experiments/measures.py. Gradients of
# two have 3.9 (.6) times the error, counts of three 1.8 (.6)


@cache
def _loaded(name: str) -> Measure:
    """By itself: gradients and tables load JAX, which counts do without."""
    if name == "counts":
        from privtraj.measures.counts import Counts

        return Counts()
    if name == "gradients":
        from privtraj.measures.gradients import Gradients

        return Gradients()
    from privtraj.measures.tables import Tables

    return Tables()


def find(name: object) -> Measure | None:
    """The measure of this name; "marginals" are what tables were in version 0.2. None if none."""
    now = "tables" if name == "marginals" else str(name)
    return _loaded(now) if now in NAMES else None


def measure_for(recipe: Recipe, axes: Axes | int) -> Measure:
    """What the budget will buy with such columns, or with so many numbers.

    By itself, counts of one or two numbers, or without a delta, and gradients from three on; tables
    where there are categories, whose tables of two columns are few and small.

    Cells multiply with every feature while particles follow the people. The number of people could
    say more, but it is private, and which mechanism is used must not follow from a private number:
    each of them keeps to the budget, a choice between them would not.
    """
    name, features = recipe.measure, axes if isinstance(axes, int) else len(axes.levels)
    if name == "auto":
        name = "counts" if recipe.delta == 0 or features <= MOST_COUNTED else "gradients"
        if recipe.delta > 0 and not isinstance(axes, int) and axes.mixed:
            name = "tables"
    return _loaded(name)
