"""What all baselines share: settings, the way through the guard, the head count, the model."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from privtraj.arrays import Floats
from privtraj.data.snapshots import Snapshots
from privtraj.errors import InputError
from privtraj.head_count import count_epsilon, head_count
from privtraj.model import TrajectoryModel, assemble, diffusivity_or
from privtraj.privacy import noise
from privtraj.privacy.certificate import Certificate, certify
from privtraj.privacy.events import (
    Adjacency,
    check_adjacency,
    check_budget,
    is_number,
)
from privtraj.privacy.guard import Guard
from privtraj.privacy.ledger import Ledger
from privtraj.synthesizer import SMALLEST_EPSILON


class Release(NamedTuple):
    """What a baseline makes of its noisy answers.

    particles: (T, m, d) in the unit cube.
    spread: (T,) standard deviation, per coordinate, of a person around the place that stands for
        them; a person may move as far over a mean time gap, which sets the diffusivity.
    bandwidth: (T,) what of the spread is not in the particles yet; None for nothing.
    weights: (T, m), rows sum to 1; None for equal ones.
    """

    particles: Floats
    spread: Floats
    bandwidth: Floats | None = None
    weights: Floats | None = None


@dataclass
class Baseline(ABC):
    """Settings of a fit. The constructor only stores them; `fit` spends the budget.

    epsilon, delta: the guarantee. Baselines that are `pure` spend nothing of delta.
    adjacency: "add-remove" or "replace-one".
    seed: None for private noise; a number makes the run repeatable and the model NOT PRIVATE.
    public_counts: True if the number of people per bin is public knowledge.
    count_share: share of epsilon for the private number of people per bin, where it is needed.
    points: particles per time.
    diffusivity: variance, in squared shares of the box, per time range; None follows the spread.
    """

    pure: ClassVar[bool] = True

    epsilon: float = 1.0
    delta: float = 1e-5
    _: KW_ONLY
    adjacency: Adjacency = "add-remove"
    seed: int | None = None
    public_counts: bool = False
    count_share: float = 0.05
    points: int = 600
    diffusivity: float | None = None

    def fit(self, snapshots: Snapshots) -> TrajectoryModel:
        """Spend the budget on these snapshots and return the model that may be released."""
        if not isinstance(snapshots, Snapshots):
            raise InputError("fit takes Snapshots, from Snapshots.from_table or from_arrays")
        self.check()
        ledger, source = self._ledger(), noise.source_for(self.seed)
        guard = self._guard(snapshots, ledger, source)
        made = self._release(snapshots, guard, np.random.default_rng(self.seed))
        times, m, _ = made.particles.shape
        return assemble(
            snapshots,
            made.particles,
            np.full((times, m), 1 / m) if made.weights is None else made.weights,
            bandwidth=np.zeros(times) if made.bandwidth is None else made.bandwidth,
            diffusivity=diffusivity_or(self.diffusivity, made.spread, snapshots.gaps),
            certificate=self._certificate(ledger, self._public_inputs(snapshots, guard), source),
            cloud_size=m,
            settings={"baseline": type(self).__name__},
            diagnostics={"spread": made.spread.tolist()},
        )

    @abstractmethod
    def _release(self, snapshots: Snapshots, guard: Guard, rng: np.random.Generator) -> Release:
        """Ask the guard, then post-process. Of the snapshots, only what is public may be used."""

    def check(self) -> None:
        """Refuse settings that cannot be used; needs no data."""
        check_budget(self.epsilon, self.delta)
        check_adjacency(self.adjacency)
        check_range("epsilon", self.epsilon, SMALLEST_EPSILON, math.inf)
        check_range("count_share", self.count_share, 0.01, 0.9)
        check_whole("points", self.points, 2, 4096)
        if self.diffusivity is not None:
            check_range("diffusivity", self.diffusivity, 1e-9, 100.0)

    def _ledger(self) -> Ledger:
        return Ledger(self.epsilon, 0.0 if self.pure else self.delta, self.adjacency)

    def _guard(self, snapshots: Snapshots, ledger: Ledger, source: noise.Source) -> Guard:
        """The only holder of rows; a test puts one here that watches what leaves."""
        return Guard(snapshots, ledger, source, public_counts=self.public_counts)

    def _people(self, guard: Guard) -> Floats:
        """People per bin (T,): declared public, or released for count_share of epsilon."""
        return head_count(guard, count_epsilon(guard, self.count_share))

    def _public_inputs(self, snapshots: Snapshots, guard: Guard) -> dict[str, Any]:
        public = snapshots.public_inputs()
        if self.public_counts:
            public["people per time (declared public)"] = guard.declared_counts()
        return public

    def _certificate(
        self, ledger: Ledger, public_inputs: dict[str, Any], source: noise.Source
    ) -> Certificate:
        return certify(ledger, public_inputs=public_inputs, private_noise=source.private)


def check_range(name: str, value: Any, low: float, high: float) -> None:
    """Refuse what is not a number in this range."""
    if not (is_number(value) and low <= value <= high):
        limits = f"between {low:g} and {high:g}" if high < math.inf else f"at least {low:g}"
        raise InputError(f"{name} must be {limits}")


def check_whole(name: str, value: Any, low: int, high: int) -> None:
    """Refuse what is not a whole number in this range."""
    whole = is_number(value) and isinstance(value, int | np.integer)
    if not (whole and low <= value <= high):
        raise InputError(f"{name} must be a whole number between {low} and {high}")
