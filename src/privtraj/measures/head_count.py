"""How many people there are at each time: given as public, or counted with noise and steadied.

Public numbers are given by the user, as numbers. They are never read from the records nor compared
with them, so that whatever is done with them is a function of released and public numbers alone.

They are for replace-one only. If the numbers of a table are public and true, so are those of its
neighbour, and two tables of which one has a person more do not have the same numbers: whoever knows
everybody else's records knows whether the person is there, and an epsilon for membership would be
true of no table at all. Neighbours that differ in what one person's records say can have the same
numbers, and have, if the records stay in their time bins: that is what remains protected, at the
cost of replace-one, which is paid for all neighbours. In which bins a person is, is not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.privacy import noise
from privtraj.privacy.events import Adjacency, LaplaceCounts, Person
from privtraj.privacy.guard import Guard
from privtraj.privacy.questions import CellCounts, Laplace, Release

HEAD_COUNT = "people per time"
LEAST_OF_MEAN = 0.05  # share of the mean below which no count falls; set by hand, 2026-11


def count_epsilon(guard: Guard, share: float) -> float:
    """Epsilon of the noise of counts that may cost this share of the ledger's epsilon.

    A person moves counts by 1 for each record if added or removed, and by 2 if replaced.
    """
    return epsilon_of_counts(share * guard.ledger.epsilon, guard.ledger.adjacency, guard.person)


def epsilon_of_counts(epsilon: float, adjacency: Adjacency, person: Person) -> float:
    """Epsilon of the noise of counts that cost `epsilon` together, within the noise's range."""
    moves = LaplaceCounts(1.0, "", records=person.records).sensitivity(adjacency)
    return float(np.clip(epsilon / moves, *noise.EPSILON_RANGE))


def head_count(guard: Guard, epsilon: float) -> Floats:
    """People per bin (T,): noisy, paid for, and steadied."""
    counts = guard.ask(Release(CellCounts(1), Laplace(epsilon), HEAD_COUNT))[:, 0]
    return steadied_counts(counts.astype(np.float64), continuous_laplace_variance(epsilon))


def public_people(counts: Sequence[float]) -> Floats:
    """People per bin (T,): as they were given, one at least."""
    return np.maximum(np.asarray(counts, np.float64), 1.0)


def steadied_counts(counts: Floats, noise_variance: float) -> Floats:
    """Noisy counts (T,) shrunk to their mean by the share of their variance that is noise, >= 1."""
    mean = counts.mean()
    variance = max(counts.var(ddof=1), 1e-12)
    steady = mean + (counts - mean) * max(0.0, 1 - noise_variance / variance)
    return np.maximum(steady, max(1.0, LEAST_OF_MEAN * mean))


def continuous_laplace_variance(epsilon: float) -> float:
    """2 / epsilon^2, a little above `noise.laplace_variance` of the integer noise that is added.

    The head count was steadied by it: elsewhere it is the exact one.
    """
    return 2 / epsilon**2
