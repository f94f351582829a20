"""What can be released, as frozen records: the mechanism, its noise, and how far a person moves it.

Events say what happened; `accounting` says what it costs. Two neighbouring relations: "add-remove",
the data with and without one person, and "replace-one", one person's records changed.

A person has at most `records` records. Unless they may be `together` in a time bin, each is in a
bin of its own (`Snapshots` sees to it), and vectors of norm c of the same person stand in
orthogonal blocks of the stacked sum: g of them have norm sqrt(g) c, not g c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from privtraj.errors import Arg, InputError

Adjacency = Literal["add-remove", "replace-one"]


def check_adjacency(adjacency: str) -> Adjacency:
    """The neighbouring relation, or an `InputError` that names the two there are."""
    if adjacency not in get_args(Adjacency):
        raise InputError(
            Arg("adjacency"), f" must be 'add-remove' or 'replace-one', not {adjacency!r}"
        )
    return cast(Adjacency, adjacency)


def check_budget(epsilon: float, delta: float, prefix: str = "") -> None:
    """Refuse an epsilon that is not positive and finite, or a delta outside [0, 1).

    prefix: of the names that the user knows them by, "cap_" for example.
    """
    if not (is_number(epsilon) and math.isfinite(epsilon) and epsilon > 0):
        raise InputError(Arg(f"{prefix}epsilon"), " must be a positive, finite number")
    check_delta(delta, prefix)


def check_delta(delta: float, prefix: str = "") -> None:
    """Refuse a delta outside [0, 1)."""
    if not (is_number(delta) and 0 <= delta < 1):
        raise InputError(Arg(f"{prefix}delta"), " must be at least 0 and below 1")


@dataclass(frozen=True)
class GaussianSum:
    """A sum of per-record vectors of L2 norm at most c, released with N(0, (c z)^2 I) added.

    noise_multiplier is z. rate: every record takes part with this public probability, by a coin of
    its own (Poisson sampling); the released sum is not divided by anything that depends on the
    coins. records: most records of one person; together: whether they may share a time bin. slack:
    total variation of all the noise drawn from the stated noise.
    """

    noise_multiplier: float
    what: str
    slack: float = 0.0
    rate: float = 1.0
    records: int = 1
    together: bool = False

    def __post_init__(self) -> None:
        _check_positive(self.noise_multiplier, "a noise multiplier")
        check_slack(self.slack)
        _check_share(self.rate, "a sampling rate")
        check_records(self.records)

    def sensitivity(self, adjacency: Adjacency) -> float:
        """Largest move of the sum, in units of c, if all records take part."""
        size = self.records if self.together else math.sqrt(self.records)
        return people_moved(adjacency) * size

    def moves(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Sizes j, in units of c, of the move that j sampled records of one bin make; chances."""
        g, q = (self.records if self.together else 1), self.rate
        chances = [math.comb(g, j) * q**j * (1 - q) ** (g - j) for j in range(g + 1)]
        return np.arange(g + 1.0), np.array(chances)


@dataclass(frozen=True)
class LaplaceCounts:
    """Counts of records over cells, each record in exactly one, with discrete Laplace noise added.

    The noise has P(x) proportional to exp(-epsilon |x|), independent in every cell. Records of a
    person in different time bins are in different cells: each one added or removed shifts one cell
    by one, each one replaced shifts two. Records that may be together may be in one cell.
    """

    epsilon: float
    what: str
    slack: float = 0.0
    records: int = 1
    together: bool = False

    def __post_init__(self) -> None:
        _check_positive(self.epsilon, "the epsilon of Laplace counts")
        check_slack(self.slack)
        check_records(self.records)

    def sensitivity(self, adjacency: Adjacency) -> int:
        """Largest sum of the moves of all cells: the L1 sensitivity."""
        return people_moved(adjacency) * self.records

    def responses(self, adjacency: Adjacency) -> tuple[float, int]:
        """(e, n): dominated by n independent randomised responses of e.

        A cell that moves by one is exactly one of epsilon. Cells that move by g altogether are g
        epsilon differentially private, which one response of g epsilon dominates.
        """
        people = people_moved(adjacency)
        if self.together:
            return self.records * self.epsilon, people
        return self.epsilon, people * self.records


@dataclass(frozen=True)
class Opaque:
    """A release of which only its (epsilon, delta) under one adjacency is known.

    Its dominating pair: with probability delta everything is revealed, else the answer is
    randomised response of epsilon.
    """

    epsilon: float
    delta: float
    what: str
    adjacency: Adjacency = "add-remove"
    slack: float = 0.0

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta)
        check_adjacency(self.adjacency)

    def under(self, adjacency: Adjacency) -> tuple[float, float]:
        """(epsilon, delta) under the adjacency asked for.

        To replace is to remove and to add: (2 epsilon, (1 + e^epsilon) delta). A guarantee for
        replacing says nothing about adding or removing: delta is 1 then.
        """
        if adjacency == self.adjacency:
            return self.epsilon, self.delta
        if adjacency == "add-remove":
            return self.epsilon, 1.0
        factor = 1 + math.exp(self.epsilon) if self.epsilon < 700 else math.inf
        return 2 * self.epsilon, min(1.0, factor * self.delta if self.delta else 0.0)


@dataclass(frozen=True)
class ChosenTimes:
    """`times` releases of one kind, on the people of a random, published set of time bins only.

    share: the probability that a given bin is chosen. The choice is made once for everybody, and
    whoever reads the result knows it, so it is no sampling rate of the single steps: either the
    person's bin was dropped and nothing happened, or it was chosen and all steps count in full.
    """

    share: float
    release: GaussianSum
    times: int
    what: str

    def __post_init__(self) -> None:
        _check_share(self.share, "the share of chosen times")
        if self.times < 1:
            raise InputError("chosen times need at least one release")

    @property
    def slack(self) -> float:
        """Of all its releases."""
        return self.times * self.release.slack

    def chance(self, adjacency: Adjacency) -> float:
        """At most this is the probability that any bin of the person's records was chosen.

        Union bound over the bins concerned: those of all records, old and new where one is
        replaced by one in another bin.
        """
        return min(1.0, self.share * people_moved(adjacency) * self.release.records)


Event = GaussianSum | LaplaceCounts | Opaque | ChosenTimes


def bare(event: GaussianSum | ChosenTimes) -> GaussianSum | ChosenTimes:
    """The event without its name and slack: equal for all that have the same losses."""
    if isinstance(event, ChosenTimes):
        return replace(event, what="", release=replace(event.release, what="", slack=0.0))
    return replace(event, what="", slack=0.0)


def people_moved(adjacency: Adjacency) -> int:
    """1 if a person comes or goes, 2 if one goes and another comes."""
    return 1 if check_adjacency(adjacency) == "add-remove" else 2


def check_slack(slack: float) -> None:
    """Refuse what cannot be a total variation distance."""
    if not 0 <= slack < 1:
        raise InputError("slack is a total variation distance: it must be at least 0 and below 1")


def check_records(records: int) -> None:
    """Refuse what cannot be a number of records of one person."""
    if isinstance(records, bool) or not isinstance(records, int | np.integer) or records < 1:
        raise InputError("the records of one person must be a whole number of at least 1")


def is_number(value: object) -> bool:
    """A real number, and not True or False."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_positive(value: float, name: str) -> None:
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name} must be a positive, finite number")


def _check_share(value: float, name: str) -> None:
    if not (is_number(value) and 0 < value <= 1):
        raise InputError(f"{name} must be above 0 and at most 1")
