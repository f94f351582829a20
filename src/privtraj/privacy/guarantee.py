"""What releases promise together: one after the other, or beside each other on disjoint people.

    Released     an event (`events`), so many times
    Sequential   every part is about the same people: their losses add up (`accounting`)
    Parallel     every branch is about people of its own: a person is in one branch only

A guarantee is a tree of these. A flat list of releases is Sequential.

Why Parallel costs the dearest branch.  Let branch b be about the people D_b, all D_b disjoint, and
let the releases y_1, y_2, ... be made in any order, each by a kernel K_t( . | y_1 .. y_{t-1}, D_b)
of one branch. Which branch comes next, what it asks and with how much noise may depend on all that
was released before, by other branches too: given y_1 .. y_{t-1}, a release of branch b is a
mechanism on the people of branch b alone.

    add-remove: a person comes to D_b or leaves it. Given the past, the kernels of all other
    branches are the same in both worlds, and their privacy loss is 0. What is lost in all is what
    the releases of branch b lose, and what the releases around the Parallel lose, which are about
    everybody: the worst over b is a bound for whoever is looked at.

    replace-one: a person whose records change stays in D_b, which costs what replacing costs there;
    or the new records belong to another branch c. Then one person less is in D_b and one more in
    D_c: the releases of b lose what removing costs, those of c what adding costs, and no other
    branch loses anything. All of these ways are bounded, and the worst counts. (For Gaussian sums
    and Laplace counts, moving never costs more than replacing in the dearer of the two branches.)

So a guarantee has *ways* in which a person can matter, each an ordinary sequence of events, and
what holds of all ways holds: delta is the largest over the ways at every epsilon. Ways that are no
worse than another in every part are left out. The noise of other branches, and its slack, is drawn
alike in both worlds, so it is no part of a way.

That people are disjoint is the word of whoever makes the tree: nothing here can check it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement, groupby
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError
from privtraj.privacy.accounting import Tally, is_modest, tally
from privtraj.privacy.events import Adjacency, Event, check_adjacency

PARALLEL = "parallel"  # the mechanism of an entry that has branches
MOST_WAYS = 1000  # in which a person matters: more than any tree of months has
DEEPEST = 8  # trees in trees


@dataclass(frozen=True)
class Released:
    """A leaf: an event, so many times."""

    event: Event
    times: int = 1


@dataclass(frozen=True)
class Sequential:
    """All parts are about the same people. slack: of their noise, beside that of the events."""

    parts: tuple[Guarantee, ...] = ()
    slack: float = 0.0

    @classmethod
    def of(cls, events: Iterable[tuple[Event, int]]) -> Sequential:
        """A flat list."""
        return cls(tuple(Released(event, times) for event, times in events))


@dataclass(frozen=True)
class Parallel:
    """Every branch is about people of its own."""

    branches: tuple[Guarantee, ...]


Guarantee = Released | Sequential | Parallel


@dataclass(frozen=True)
class Cost:
    """The tallies of all ways in which a person can matter to a guarantee: the worst counts."""

    ways: tuple[Tally, ...]

    @property
    def adjacency(self) -> Adjacency:
        """The neighbouring relation."""
        return self.ways[0].adjacency

    @cached_property
    def slack(self) -> float:
        """The largest total variation of the noise from the stated."""
        return max(way.slack for way in self.ways)

    @property
    def is_modest(self) -> bool:
        """Whether it can be computed in seconds."""
        return all(map(is_modest, self.ways))

    @property
    def gdp_mu(self) -> float | None:
        """mu if all of it is exactly mu-GDP, else None."""
        each = [way.gdp_mu for way in self.ways]
        known = [mu for mu in each if mu is not None]
        return max(known) if len(known) == len(each) else None

    def with_slack(self, slack: float) -> Cost:
        """The same with noise that is at most this far from the stated, in every way."""
        return Cost(tuple(replace(way, slack=slack) for way in self.ways))

    def delta(self, epsilon: float) -> float:
        """The smallest delta proven at this epsilon."""
        return max(way.delta(epsilon) for way in self.ways)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at this delta, rounded up; inf if none."""
        return max(way.epsilon(delta) for way in self.ways)

    def true_positive_rates(self, false_positive_rates: Floats) -> Floats:
        """The most that any attack on one person can achieve."""
        rates: Floats = np.max(
            [way.true_positive_rates(false_positive_rates) for way in self.ways], axis=0
        )
        return rates

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR of any attack."""
        return self.delta(0.0)

    def clt_epsilon(self, delta: float) -> float | None:
        """epsilon if sampled steps had reached their limit, where one is known for all of them."""
        reached = []
        for way in self.ways:
            limits = [pair.limit_mu_squared(times) for pair, times in way.sampled]
            known = [limit for limit in limits if limit is not None]
            if len(known) < len(limits):
                return None
            limit = replace(way, sampled=(), mu_squared=way.mu_squared + sum(known))
            reached.append(limit.epsilon(delta))
        return max(reached) if any(way.sampled for way in self.ways) else None


def cost(guarantee: Guarantee, adjacency: Adjacency) -> Cost:
    """What it costs under this relation."""
    return Cost(_ways(guarantee, check_adjacency(adjacency)))


def _ways(guarantee: Guarantee, adjacency: Adjacency) -> tuple[Tally, ...]:
    """Ways in which one person can matter to it, none of them no worse than another."""
    match guarantee:
        case Released(event, times):
            return (tally([(event, times)], adjacency),)
        case Sequential(parts, slack):
            single = [part for part in parts if isinstance(part, Released)]
            events = [(leaf.event, leaf.times) for leaf in single]
            ways: tuple[Tally, ...] = (tally(events, adjacency, Tally(adjacency, slack=slack)),)
            for part in parts:
                if not isinstance(part, Released):
                    here = _ways(part, adjacency)
                    ways = _worst(one.beside(other) for one in ways for other in here)
            return ways
        case Parallel(branches):
            inside = [way for branch in branches for way in _ways(branch, adjacency)]
            if adjacency == "replace-one" and len(branches) > 1:
                once = _worst(way for one in branches for way in _ways(one, "add-remove"))
                pairs = combinations_with_replacement(once, 2)
                moved = [replace(one.beside(other), adjacency=adjacency) for one, other in pairs]
                inside += moved
            return _worst(inside or [Tally(adjacency)])


def _worst(ways: Iterable[Tally]) -> tuple[Tally, ...]:
    """Without those that are no worse than another one in every part."""
    kept: list[Tally] = []
    for way in dict.fromkeys(ways):
        if not any(_covers(other, way) for other in kept):
            kept = [other for other in kept if not _covers(way, other)] + [way]
        if len(kept) > MOST_WAYS:
            raise InputError("a guarantee has too many different branches to be computed")
    return tuple(kept)


def _covers(one: Tally, other: Tally) -> bool:
    """Whether `one` tells at least as much in every part: its losses dominate."""
    numbers = (one.mu_squared, one.revealed, one.slack)
    fewer = (other.mu_squared, other.revealed, other.slack)
    return all(map(float.__ge__, map(float, numbers), map(float, fewer))) and all(
        dict(has).get(item, 0) >= times
        for has, wants in ((one.shifts, other.shifts), (one.sampled, other.sampled))
        for item, times in wants
    )


# Entries of a certificate ---------------------------------------------------------------------


def releases(guarantee: Guarantee) -> Iterator[tuple[Event, int]]:
    """All leaves, in order."""
    match guarantee:
        case Released(event, times):
            yield event, times
        case Sequential(parts) | Parallel(parts):
            for part in parts:
                yield from releases(part)


def to_entries(guarantee: Guarantee, adjacency: Adjacency) -> tuple[dict[str, Any], ...]:
    """For people to read, and for `from_entries`: leaves as a flat list, branches as lists in it.

    Runs of identical events are merged and counted. Their slack, which is stated as one sum, makes
    no difference.
    """
    entries: list[dict[str, Any]] = []
    for event, run in groupby(_flat(guarantee), key=_unlike):
        if isinstance(event, Event):
            entries.append(event.to_dict(adjacency, sum(times for _, times in run)))
            continue
        for _, parallel in run:
            lists = [[*to_entries(branch, adjacency)] for branch in parallel.branches]
            what = f"{len(lists)} groups of different people"
            line = {"what": what, "times": 1, "mechanism": PARALLEL, "branches": lists}
            entries.append(line)
    return tuple(entries)


def _flat(guarantee: Guarantee) -> Iterator[tuple[Event | None, Any]]:
    """Leaves as (event, times), and what is parallel as (None, node)."""
    match guarantee:
        case Released(event, times):
            yield event, times
        case Parallel():
            yield None, guarantee
        case Sequential(parts):
            for part in parts:
                yield from _flat(part)


def _unlike(item: tuple[Event | None, Any]) -> Event | None:
    return item[0] and item[0].ideal()


def from_entries(entries: Sequence[Mapping[str, Any]]) -> Sequential:
    """The inverse of `to_entries`, but for the slack; a flat list is Sequential."""
    parts: list[Guarantee] = []
    for entry in entries:
        if entry["mechanism"] == PARALLEL:
            parts.append(Parallel(tuple(map(from_entries, entry["branches"]))))
        else:
            parts.append(Released(Event.from_dict(entry), entry["times"]))
    return Sequential(tuple(parts))


def leaves(entries: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """All entries of events, in order."""
    for entry in entries:
        if entry["mechanism"] == PARALLEL:
            for branch in entry["branches"]:
                yield from leaves(branch)
        else:
            yield entry


def count_entries(value: Any, is_leaf: Callable[[Any], bool], depth: int = 0) -> float:
    """How many entries these are, branches and all; inf if any of them is none."""
    if not isinstance(value, list | tuple) or depth > DEEPEST:
        return math.inf
    total: float = len(value)
    for entry in value:
        if isinstance(entry, dict) and entry.get("mechanism") == PARALLEL:
            branches = entry.get("branches")
            if not isinstance(branches, list):
                return math.inf
            total += sum(count_entries(branch, is_leaf, depth + 1) for branch in branches)
        elif not is_leaf(entry):
            return math.inf
    return total
