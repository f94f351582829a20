"""What the answers of a guard say about one person: the attack of an audit.

The attacker of the claim sees every answer and knows everything but one bit: whether this person
is in the data. Here the person is alone in their time bin, so in that bin an answer is noise, or
noise plus the person, and its log-likelihood ratio has a closed form:

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
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from privtraj.arrays import Floats
from privtraj.model import TrajectoryModel
from privtraj.privacy.events import GaussianSum
from privtraj.privacy.guard import Guard
from privtraj.privacy.rows import cell_of
from privtraj.privacy.sums import KernelSum, Statistic, WeightFn, kernel_vector


class Canary(NamedTuple):
    """The one person in question: a record that is alone in its bin."""

    bin: int
    point: NDArray[np.float32]  # (d,) in the unit cube


class Neighbours(NamedTuple):
    """What differs between two worlds: who is in the data besides everybody else."""

    without: Canary | None  # None: nobody
    present: Canary | None


class WatchedGuard(Guard):
    """Any guard, with a log of what its answers say for `present` and against `without`.

    It asks the guard that it is given and hands on the answers; rows it has none.
    """

    def __init__(
        self, guard: Guard, neighbours: Neighbours, evidence: list[float] | None = None
    ) -> None:
        self.ledger = guard.ledger
        self.n_times, self.n_features = guard.n_times, guard.n_features
        self.person = guard.person
        self.evidence: list[float] = [] if evidence is None else evidence
        self._inner = guard
        self._neighbours = neighbours

    @property
    def log_likelihood_ratio(self) -> float:
        """Of all answers so far, `present` over `without`."""
        return math.fsum(self.evidence)

    def declared_counts(self) -> NDArray[np.int64] | None:
        return self._inner.declared_counts()

    def counts(self, cells_per_side: int, epsilon: float, what: str) -> NDArray[np.int64]:
        answer = self._inner.counts(cells_per_side, epsilon, what)
        self._log(lambda person: count_evidence(answer, cells_per_side, epsilon, person))
        return answer

    def sums(
        self,
        statistic: Statistic,
        parameters: Any,
        clip: Floats,
        noise_multiplier: float,
        what: str,
        rate: float = 1.0,
    ) -> Floats:
        answer = self._inner.sums(statistic, parameters, clip, noise_multiplier, what, rate)
        self._log_sums(
            answer,
            lambda person: _person_vector(statistic, parameters, person.bin, person.point),
            clip,
            noise_multiplier,
            rate,
        )
        return answer

    def kernel_sums(
        self,
        weight_fn: WeightFn,
        pull: KernelSum,
        clip: Floats,
        noise_multiplier: float,
        what: str,
        rate: float = 1.0,
    ) -> Floats:
        answer = self._inner.kernel_sums(weight_fn, pull, clip, noise_multiplier, what, rate)

        def vector(person: Canary) -> Floats:
            here = jax.tree.map(lambda leaf: leaf[person.bin], pull)
            return kernel_vector(weight_fn, here, person.point)

        self._log_sums(answer, vector, clip, noise_multiplier, rate)
        return answer

    def _log_sums(
        self,
        answer: Floats,
        vector: Callable[[Canary], Any],
        clip: Floats,
        noise_multiplier: float,
        rate: float,
    ) -> None:
        def of(person: Canary) -> float:
            bound = clip[person.bin]
            clipped = clip_norm(np.asarray(vector(person), dtype=np.float64), bound)
            return sum_evidence(answer[person.bin], clipped, bound * noise_multiplier, rate)

        self._log(of)

    def sum_event(
        self,
        width: int,
        noise_multiplier: float,
        what: str,
        rate: float = 1.0,
        n_times: int | None = None,
    ) -> GaussianSum:
        return self._inner.sum_event(width, noise_multiplier, what, rate, n_times)

    def reserve(self, event: GaussianSum, times: int) -> Guard:
        return WatchedGuard(self._inner.reserve(event, times), self._neighbours, self.evidence)

    def choose_times(
        self, n: int, width: int, noise_multiplier: float, what: str, rate: float, times: int
    ) -> tuple[NDArray[np.int64], Guard]:
        chosen, part = self._inner.choose_times(n, width, noise_multiplier, what, rate, times)
        neighbours = Neighbours(*(_among(chosen, person) for person in self._neighbours))
        return chosen, WatchedGuard(part, neighbours, self.evidence)

    def _log(self, of: Callable[[Canary], float]) -> None:
        self.evidence.append(_between(self._neighbours, of))


def count_evidence(
    answer: NDArray[np.int64], cells_per_side: int, epsilon: float, person: Canary
) -> float:
    """epsilon (|x| - |x - 1|) at the cell of the person; answer: (T, cells_per_side ** d)."""
    cell = int(cell_of(person.point[None], cells_per_side)[0])
    x = float(answer[person.bin, cell])
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
    """What the released model alone says: its log density at `present`, less that at `without`.

    The density is that of the people it would sample: sum_k w_k N(y; x_k, sigma^2 I).
    """
    return _between(neighbours, lambda person: _log_density(model, person))


def _between(neighbours: Neighbours, of: Callable[[Canary], float]) -> float:
    """What speaks for `present`, less what speaks for `without`; nothing speaks for nobody."""
    without, present = (0.0 if person is None else of(person) for person in neighbours)
    return present - without


def _among(chosen: NDArray[np.int64], person: Canary | None) -> Canary | None:
    """The person with the bin as it is numbered among the chosen ones; None if it is not."""
    if person is None or person.bin not in chosen:
        return None
    return person._replace(bin=int(np.searchsorted(chosen, person.bin)))


def _log_density(model: TrajectoryModel, person: Canary) -> float:
    particles, weights = model.particles[person.bin], model.weights[person.bin]
    sigma = float(model.bandwidth[person.bin])
    distance = ((particles - person.point) ** 2).sum(axis=1)
    kernel = logsumexp(-distance / (2 * sigma**2), b=weights)
    return float(kernel) - particles.shape[1] * math.log(sigma * math.sqrt(2 * math.pi))


@partial(jax.jit, static_argnums=0)
def _person_vector(
    statistic: Statistic, parameters: Any, index: jax.Array, point: jax.Array
) -> jax.Array:
    """v(person) (D,) at the parameters of the person's bin."""
    return statistic(point[None], jax.tree.map(lambda leaf: leaf[index], parameters))[0]
