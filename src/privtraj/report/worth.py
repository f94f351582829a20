"""What a model is worth, in the words and tables of its page: over all, at each time, by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import about
from privtraj.report.ticks import time_labels
from privtraj.report.verdicts import Verdict, judged

if TYPE_CHECKING:
    from privtraj.assess.common import Estimate
    from privtraj.assess.quality import Quality
    from privtraj.model.model import TrajectoryModel

LOST = 5
"""People below which most of the structure at a time is taken to be lost, as a poor worth is."""
BELOW = 4
"""How many times less than over all a time is worth that is marked."""


def in_people(worth: Estimate) -> str:
    """About so many."""
    return f"{about(worth.people)}{' or more' * worth.or_more}"


def between(worth: Estimate) -> str:
    """In nine cases of ten."""
    return f"{about(worth.low)} to {about(worth.high)}"


def worth_verdicts(model: TrajectoryModel, quality: Quality | None) -> list[Verdict]:
    """On positions over all, and at the time where they are known worst."""
    if quality is None or not quality.at_times:
        return []
    worth = quality.worth
    words = {"people": in_people(worth), "between": between(worth), "refits": str(quality.refits)}
    worst = int(np.argmin([each.people for each in quality.at_times]))
    there = quality.at_times[worst]
    when = _when(model, quality)[worst]
    return [
        judged("worth", worth.people, **words),
        judged("worst_time", there.people, people=in_people(there), time=when),
    ]


def worth_tables(model: TrajectoryModel, quality: Quality | None) -> dict[str, Any] | None:
    """Rows (when or who, about how many people, marked), for the page."""
    if quality is None or not quality.at_times:
        return None
    whole = quality.worth.people
    times = [
        (when, in_people(each), between(each), is_lost(each, whole))
        for when, each in zip(_when(model, quality), quality.at_times, strict=True)
    ]
    groups = [
        (f"{g.column}: {g.value}", in_people(g.worth), between(g.worth), is_lost(g.worth, whole))
        for g in quality.groups
    ]
    correlation = None if quality.correlation is None else f"{quality.correlation:.2f}"
    shares = [
        (name, f"{max(100 * float(np.max(widths)), 1):.0f}")
        for name, widths in quality.shares.items()
    ]
    return {"times": times, "groups": groups, "correlation": correlation, "shares": shares}


def is_lost(worth: Estimate, whole: float) -> bool:
    """Whether a time or a group is to be marked."""
    return worth.people < LOST or worth.people < whole / BELOW


def half_width(quality: Quality | None, name: str, times: Floats) -> Floats | None:
    """Of the 90 % band of a feature's median at these times (Q,), in data units."""
    if quality is None or name not in quality.medians:
        return None
    return np.interp(times, quality.numeric_times, quality.medians[name])


def _when(model: TrajectoryModel, quality: Quality) -> list[str]:
    return time_labels(np.array(quality.numeric_times), model.datetime)
