"""Every way to pay for a measurement, by the name that users write, and which "auto" takes."""

from __future__ import annotations

from privtraj.columns.axes import Axes
from privtraj.measures.base import Measure
from privtraj.measures.counts import Counts
from privtraj.measures.gradients import Gradients
from privtraj.measures.tables import Tables
from privtraj.recipe import Recipe

COUNTS, GRADIENTS, TABLES = Counts(), Gradients(), Tables()
MEASURES: dict[str, Measure] = {one.name: one for one in (GRADIENTS, COUNTS, TABLES)}
MOST_COUNTED = 2  # features up to which counts are chosen; experiments/measures.py, 2026-11-17


def measure_for(recipe: Recipe, axes: Axes | int) -> Measure:
    """What the budget will buy with such columns, or with so many numbers."""
    if recipe.measure != "auto":
        return MEASURES[recipe.measure]
    return choose_measure(axes) if recipe.delta > 0 else COUNTS


def choose_measure(axes: Axes | int) -> Measure:
    """Of numbers, counts of one or two and gradients from three on; tables where there are
    categories, whose tables of two columns are few and small.

    Cells multiply with every feature while particles follow the people. The number of people could
    say more, but it is private, and which mechanism is used must not follow from a private number:
    each of them keeps to the budget, a choice between them would not.
    """
    if isinstance(axes, Axes) and axes.mixed:
        return TABLES
    features = len(axes.levels) if isinstance(axes, Axes) else axes
    return COUNTS if features <= MOST_COUNTED else GRADIENTS
