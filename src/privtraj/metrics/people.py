"""Worth n people: quality in a unit that everybody understands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from privtraj.arrays import Floats
from privtraj.errors import InputError
from privtraj.metrics.clouds import cloud
from privtraj.metrics.transport import average_squared_w2

_LADDER = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def real_people_error(truth: Any, n: int, *, repeats: int = 4, seed: int = 0) -> float:
    """What n real people per time score: mean over `repeats` draws from the truth, without
    replacement, of the average squared W2."""
    return float(np.mean(Panels(truth, repeats, seed).errors(n)))


def worth(marginals: Any, truth: Any, *, repeats: int = 4, seed: int = 0) -> float:
    """Worth n people: the number of real people per time whose raw records would score the same.

    marginals: T clouds (n, d), such as (T, m, d); truth: T clouds of many real people. The error of
    n real people is measured on a ladder of n and interpolated between rungs, both in logarithms.
    0.0 means worse than one person; the largest rung is reported where even that is beaten.
    """
    panels = Panels(truth, repeats, seed)
    return panels.worth(panels.error(marginals))


def worth_interval(
    marginals: Any, truth: Any, *, level: float = 0.95, repeats: int = 12, seed: int = 0
) -> Worth:
    """Worth n people, and the numbers of people that cannot be ruled out.

    One panel of n real people scores better or worse than the next, by luck. The interval holds
    every n for which the score of the marginals is an ordinary one among panels of n real people:
    it lies in the `level` prediction interval of one more panel, given `repeats` of them (log
    errors taken as normal, Student's t for their few). Below `low` almost every panel is worse,
    above `high` almost every one is better. If the marginals were themselves n real people drawn
    at random, the interval would hold n in a share `level` of cases.

    It is about the luck of drawing people from this truth, which is taken as exact. It says nothing
    about another fit with other noise: fit again for that.
    """
    panels = Panels(truth, repeats, seed)
    return panels.interval(panels.error(marginals), level)


@dataclass(frozen=True)
class Worth:
    """people: as `worth` says.  low, high: see `worth_interval`.  error: average squared W2.

    most: the largest number of people that this truth can tell, about half of its people per time;
    `people` or `high` equal to it means that many or more.
    """

    people: float
    low: float
    high: float
    level: float
    error: float
    most: int

    def __float__(self) -> float:
        return self.people

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


class Panels:
    """Draws of n real people per time from one truth, and their errors, each measured once."""

    def __init__(self, truth: Any, repeats: int, seed: int) -> None:
        if repeats < 1:
            raise InputError("worth needs at least one draw of real people")
        self._truth = [cloud(y) for y in truth]
        self._repeats, self._seed = repeats, seed
        self._known: dict[int, Floats] = {}
        most = min(len(y) for y in self._truth) // 2
        self.rungs = [n for n in _LADDER if n <= max(most, 1)]

    def error(self, clouds: Any) -> float:
        """Average squared W2 of T clouds (k, d)."""
        return average_squared_w2(clouds, self._truth)

    def errors(self, n: int) -> Floats:
        """(repeats,) errors of panels of n people."""
        if n not in self._known:
            rng = self._generator(n)
            draws = [[_some(y, n, rng) for y in self._truth] for _ in range(self._repeats)]
            self._known[n] = np.array([self.error(draw) for draw in draws])
        return self._known[n]

    def worth(self, error: float) -> float:
        """The number of people whose mean error is this one."""
        return self._meeting(error, lambda n: float(np.mean(self.errors(n))))

    def interval(self, error: float, level: float) -> Worth:
        """`worth`, and the numbers of people whose panels may well score this error."""
        from scipy.stats import t

        if self._repeats < 2 or not 0 < level < 1:
            raise InputError("an interval needs at least two draws and a level between 0 and 1")
        factor = t.ppf((1 + level) / 2, self._repeats - 1) * np.sqrt(1 + 1 / self._repeats)

        def bound(n: int, side: float) -> float:
            logs = np.log(np.maximum(self.errors(n), 1e-300))
            return float(np.exp(logs.mean() + side * factor * logs.std(ddof=1)))

        people = self.worth(error)
        low = self._meeting(error, lambda n: bound(n, -1.0))
        high = self._meeting(error, lambda n: bound(n, 1.0))
        return Worth(
            people, min(low, people), max(high, people), level, float(error), self.rungs[-1]
        )

    def _generator(self, n: int) -> np.random.Generator:
        return np.random.default_rng(self._seed)

    def _meeting(self, target: float, curve: Callable[[int], float]) -> float:
        """n at which a falling curve first meets the target."""
        above: tuple[int, float] | None = None
        for n in self.rungs:
            error = curve(n)
            if error <= target:
                return _between(above, (n, error), target)
            above = (n, error)
        return float(self.rungs[-1])


def _some(people: Floats, n: int, rng: np.random.Generator) -> Floats:
    """n of the people (k, d), or all if there are fewer."""
    return people[rng.choice(len(people), min(n, len(people)), replace=False)]


def _between(above: tuple[int, float] | None, below: tuple[int, float], target: float) -> float:
    """n at which the straight line through two (n, error) points, in logarithms, meets target."""
    if above is None:
        return 0.0 if target > below[1] else float(below[0])
    (n0, e0), (n1, e1) = above, below
    share = (np.log(e0) - np.log(max(target, 1e-300))) / (np.log(e0) - np.log(max(e1, 1e-300)))
    return float(np.exp(np.log(n0) + np.clip(share, 0, 1) * (np.log(n1) - np.log(n0))))
