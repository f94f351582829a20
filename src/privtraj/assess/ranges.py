"""Signs, in released numbers alone, that a declared range misses the data.

Whatever lies beyond a range counts at its nearer end: values at a bound, records in the first or
last window of time. So a range in the wrong unit shows as nearly everybody at one end. A fit and a
report look at these signs with the same limits. They cost nothing, tell less than a look at the
records, and tell it later: the budget is gone by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from privtraj.assess.common import Finding
from privtraj.columns.kinds import Angle, Integer, Number

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

# Set by hand, 2026-11.
LIMITS = {"bounds": (0.05, 0.8), "time": (0.5, 0.8)}
"""Of `PileUp.excess` and `Timing.off`: good up to the first, plainly wrong beyond the second."""
WALL = 0.02  # how near to a bound is at it, in shares of the box, if the model resolves so much
WIDEST = 0.25  # the same where it resolves less: two such strips at each end are the whole box
COARSEST = 0.1
"""Where a model resolves less than this, no bounds are called plainly wrong: noise alone may put
everybody into one cell, and a range may be that much too wide."""
CLEAR = 2.0  # deviations of its noise below which a number of people may as well be none
CLEAR_IN_ALL = 5.0  # the same of all people together, for their times to say anything
THIN = 0.1  # of an even share of people, below which a window counts as empty


class PileUp(NamedTuple):
    """The worst pile of people at a bound. column: whose bound.  end: "lower" or "upper".
    share: of people within `wall` of it.  excess: over those in the next strip as wide."""

    column: str
    end: str
    share: float
    excess: float
    wall: float


def pile_up(model: TrajectoryModel) -> PileUp | None:
    """Of released people; None without numbers.

    A smooth density has about as many people in the strip at a bound as in the next one, so their
    difference is what was moved there, or stands there for another reason. Whole numbers do not
    count, many of which are 0 for a good reason, nor do angles, which have no ends.
    """
    places = [
        k
        for k, column in enumerate(model.columns)
        if isinstance(column, Number) and not (isinstance(column, Integer | Angle) or column.of)
    ]
    if not places:
        return None
    sides = [s for s in model.diagnostics.get("cell_side") or [] if s is not None]
    wall = float(np.clip(max(sides, default=2 * float(model.bandwidth.max())), WALL, WIDEST))
    weight = (model.weights / model.weights.sum(axis=1, keepdims=True))[..., None]
    people = model.particles[..., places]
    depth = np.stack([people, 1 - people])  # (2, K, m, k) from the lower and the upper bound
    at = (weight * (depth <= wall)).sum(axis=2).mean(axis=1)
    excess = at - (weight * ((depth > wall) & (depth <= 2 * wall))).sum(axis=2).mean(axis=1)
    upper, place = np.unravel_index(np.argmax(excess), excess.shape)
    share, most = float(at[upper, place]), float(max(excess[upper, place], 0.0))
    name = model.columns[places[int(place)]].name
    return PileUp(name, "upper" if upper else "lower", share, most, wall)


class Timing(NamedTuple):
    """How people fill the range of time. end: the window with most people beyond their even share,
    0 or -1 at an end, None inside.  share: of people in it.  crowded: that excess, 1 if everybody
    is there.  empty: share of the range in which there is next to nobody."""

    end: int | None
    share: float
    crowded: float
    empty: float

    @property
    def off(self) -> float:
        """0 for an even range, 1 where all of it but one end is empty."""
        return max(self.crowded if self.end is not None else 0.0, self.empty)


def timing(model: TrajectoryModel) -> Timing | None:
    """By released numbers of people (K,) in windows; None where these are not known, public, and
    then as somebody said, or drowned in noise."""
    people, lengths = (
        np.array([n for n in model.diagnostics.get(name) or [] if n is not None], float)
        for name in ("people_per_time", "people_lengths")
    )
    noise = float(model.diagnostics.get("people_noise") or 0.0)
    if len(people) < 2 or len(lengths) != len(people) or model.certificate.counts_are_public:
        return None
    if people.sum() < CLEAR_IN_ALL * noise * len(people) ** 0.5:
        return None
    clear = np.where(people > CLEAR * noise, people, 0.0)
    counted = clear if clear.any() else people
    share, even = counted / counted.sum(), lengths / lengths.sum()
    excess = (share - even) / np.maximum(1 - even, 1e-12)
    worst = int(np.argmax(excess))
    ends = {0: 0, len(people) - 1: -1}
    empty = float(even[share < THIN * even].sum())
    return Timing(ends.get(worst), float(share[worst]), float(max(excess[worst], 0.0)), empty)


def doubts(model: TrajectoryModel) -> tuple[Finding, ...]:
    """Ranges that the released numbers say are plainly wrong; mostly none."""
    found = []
    worst, filled = pile_up(model), timing(model)
    if worst is not None and worst.wall <= COARSEST and worst.excess > LIMITS["bounds"][1]:
        seen = f"{100 * worst.share:.0f} % of the released people are at the {worst.end} bound of "
        advice = "its bounds, or its unit, are plainly wrong"
        numbers = {"share": worst.share, "excess": worst.excess}
        name = worst.column
        found.append(Finding(name, "wrong", (f"{seen}'{name}'",), (advice,), numbers))
    if filled is not None and filled.off > LIMITS["time"][1]:
        windows = len(model.diagnostics["people_per_time"])
        seen = f"{100 * filled.share:.0f} % of the released people are in one of {windows} windows "
        advice = "the time range, or the unit of the times, is plainly wrong"
        numbers = {"share": filled.share, "off": filled.off}
        found.append(Finding(model.time_name, "wrong", (f"{seen}of time",), (advice,), numbers))
    return tuple(found)
