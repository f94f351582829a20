"""What the answers of a guard say about one person: the attack of an audit.

The attacker of the claim sees every answer and knows everything but one bit: whether this person
is in the data. What everybody else adds is known and is taken off; what is left of an answer is
noise, or noise plus the person, and its log-likelihood ratio has a closed form:

    counts   epsilon (|x| - |x - 1|)                         x the answer at the person's cell
    sums     l = <R, v> / s^2 - |v|^2 / (2 s^2)              v = clip_c( v(person) ),  s = c z
    sampled  log(1 - q + q e^l)                              at rate q

Parameters and clips follow from earlier answers and public coins, so the ratios of adaptive answers
add up to that of the whole transcript. No test on the transcript is better than a threshold on the
sum (Neyman and Pearson), and zero is the threshold of equal odds: nothing has to be tuned on runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from privtraj.arrays import Floats
from privtraj.model import TrajectoryModel
from privtraj.privacy.events import Event, GaussianSum, LaplaceCounts
from privtraj.privacy.rows import cell_of
from privtraj.privacy.watching import CellCounts, ClippedSums


class Canary(NamedTuple):
    """The one person in question."""

    time: float
    point: NDArray[np.float32]  # (d,) in the unit cube


class Crowd(NamedTuple):
    """Everybody else, all at one point (d,), at times (n,): whoever attacks knows them."""

    times: Floats
    point: NDArray[np.float32]


class Neighbours(NamedTuple):
    """What differs between two worlds: who is in the data besides everybody else."""

    without: Canary | None  # None: nobody
    present: Canary | None


class Evidence:
    """A watcher that logs what each answer says for `present` and against `without`."""

    def __init__(self, neighbours: Neighbours, crowd: Crowd | None = None) -> None:
        self.log: list[float] = []
        self.neighbours = neighbours
        self._crowd = crowd

    @property
    def log_likelihood_ratio(self) -> float:
        """Of all answers so far, `present` over `without`."""
        return math.fsum(self.log)

    def released(
        self, event: Event, question: CellCounts | ClippedSums, answer: NDArray[Any]
    ) -> None:
        """An answer left the guard."""

        def of(person: Canary) -> float:
            row = int(question.slabs.of([person.time])[0])
            if row < 0:  # of other times, it says nothing
                return 0.0
            rest = np.asarray(answer[row], dtype=np.float64) - self._crowded(question, row)
            return _row_evidence(event, question, rest, row, person.point)

        self.log.append(_between(self.neighbours, of))

    def _crowded(self, question: CellCounts | ClippedSums, row: int) -> Floats | float:
        """What everybody else adds to one row of an answer."""
        if self._crowd is None:
            return 0.0
        together = int(np.count_nonzero(question.slabs.of(self._crowd.times) == row))
        if together == 0:
            return 0.0
        point = self._crowd.point
        if isinstance(question, CellCounts):
            counts = np.zeros(question.cells_per_side ** len(point))
            counts[cell_of(point[None], question.cells_per_side)] = together
            return counts
        return together * clip_norm(question.vector(row, point), float(question.clip[row]))


def _row_evidence(
    event: Event,
    question: CellCounts | ClippedSums,
    answer: Floats,
    row: int,
    point: NDArray[np.float32],
) -> float:
    """Log-likelihood ratio of one row of an answer, a record at the point over nobody."""
    if isinstance(question, CellCounts):
        assert isinstance(event, LaplaceCounts)
        return count_evidence(answer, question.cells_per_side, event.epsilon, point)
    assert isinstance(event, GaussianSum)
    bound = float(question.clip[row])
    clipped = clip_norm(question.vector(row, point), bound)
    return sum_evidence(answer, clipped, bound * event.noise_multiplier, event.rate)


def count_evidence(
    answer: Floats, cells_per_side: int, epsilon: float, point: NDArray[np.float32]
) -> float:
    """epsilon (|x| - |x - 1|) at the cell of the point; answer: (cells_per_side ** d,)."""
    x = float(answer[int(cell_of(point[None], cells_per_side)[0])])
    return epsilon * (abs(x) - abs(x - 1))


def sum_evidence(answer: Floats, vector: Floats, noise: float, rate: float = 1.0) -> float:
    """log(1 - q + q e^l), l = <R, v> / s^2 - |v|^2 / (2 s^2), for answer R (D,) and noise s."""
    ratio = float(answer @ vector - vector @ vector / 2) / noise**2
    if rate == 1:
        return ratio
    return float(np.logaddexp(math.log1p(-rate), math.log(rate) + ratio))


def clip_norm(vector: Floats, clip: float) -> Floats:
    """min(1, c / |v|) v."""
    norm = float(np.linalg.norm(vector))
    return vector * min(1.0, clip / norm) if norm > 0 else vector


def released_evidence(model: TrajectoryModel, neighbours: Neighbours) -> float:
    """What the released model alone says: its log density at `present`, less that at `without`."""
    return _between(neighbours, lambda person: _log_density(model, person))


def _between(neighbours: Neighbours, of: Callable[[Canary], float]) -> float:
    """What speaks for `present`, less what speaks for `without`; nothing speaks for nobody."""
    without, present = (0.0 if person is None else of(person) for person in neighbours)
    return present - without


def _log_density(model: TrajectoryModel, person: Canary) -> float:
    """Of the people that the model would sample: log sum_k w_k N(y; x_k, sigma^2 I)."""
    at = int(np.argmin(np.abs(model.knots - person.time)))
    particles, weights, sigma = model.particles[at], model.weights[at], float(model.bandwidth[at])
    distance = ((particles - person.point) ** 2).sum(axis=1)
    kernel = logsumexp(-distance / (2 * sigma**2), b=weights)
    return float(kernel) - particles.shape[1] * math.log(sigma * math.sqrt(2 * math.pi))
