"""The question: everything that a forecast follows from, all of it public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from privtraj.metrics.people import MOST_TOLD

if TYPE_CHECKING:  # heavy, and not needed where the answer is known already
    from privtraj.privacy.events import Adjacency
    from privtraj.synthesizer import TrajectorySynthesizer

STAND_INS = (
    "one wide group",
    "one skewed group",
    "one narrow group",
    "two groups that part",
    "three groups",
    "five groups",
)

# Set by hand, so that a forecast takes seconds.
LARGEST_WORTH = MOST_TOLD  # real people per time that synthetic ones are compared with
ENOUGH = {
    "counts": 20_000,
    "gradients": 10_000,
    "marginals": 10_000,
}  # records beyond which fewer are simulated
LARGEST_SIMULATED_EPSILON = 60.0  # with so little noise the error is that of the method alone
LARGEST_TIMES, LARGEST_FEATURES = 1000, 64  # that may be asked for


@dataclass(frozen=True)
class Question:
    """What is asked. people: at all times together.

    times: at which all records are, such as days of an experiment; None for any time.
    public_counts: whether numbers of people in time bins are public.
    settings: of the synthesizer, set by hand, as (name, value).
    """

    people: int
    times: int | None
    features: int
    epsilon: float
    delta: float
    adjacency: Adjacency = "add-remove"
    measure: str = "auto"
    public_counts: bool = False
    records_per_person: int = 1
    settings: tuple[tuple[str, Any], ...] = ()

    def synthesizer(
        self, seed: int | None = None, public_counts: Sequence[float] | None = None
    ) -> TrajectorySynthesizer:
        """The one that would be used, with the public numbers of people, if there are any."""
        from privtraj.synthesizer import TrajectorySynthesizer

        return TrajectorySynthesizer(
            self.epsilon,
            self.delta,
            adjacency=self.adjacency,
            measure=self.measure,  # type: ignore[arg-type]
            seed=seed,
            public_counts=public_counts,
            **dict(self.settings),
        )

    @property
    def weak(self) -> list[str]:
        """What is wrong with the guarantee that is asked for, in sentences."""
        from privtraj.privacy import meaning

        return meaning.warnings(self.epsilon, self.delta, self.people)

    @property
    def chosen_measure(self) -> str:
        """counts, gradients or marginals."""
        return self.synthesizer().measure_for(self.features)

    @property
    def records(self) -> int:
        """Of all people together."""
        return self.people * self.records_per_person

    def simulated(self) -> Question:
        """The question that is simulated instead, with the same noise for each person.

        Noise per person is that of N epsilon for counts, and that of N mu for all else.
        """
        factor = max(self.records / ENOUGH[self.chosen_measure], 1.0)  # so many times fewer people
        if factor == 1:
            return self
        from privtraj.privacy.accounting import epsilon_at
        from privtraj.privacy.calibration import calibrate_gaussian
        from privtraj.privacy.events import GaussianSum

        epsilon = self.epsilon * factor
        if self.chosen_measure != "counts":
            mu = calibrate_gaussian(self.epsilon, self.delta, self.adjacency)
            event = GaussianSum(1 / (mu * factor), "")
            epsilon = epsilon_at([event], self.delta, self.adjacency)
        people = round(self.people / factor)
        return replace(self, people=people, epsilon=min(epsilon, LARGEST_SIMULATED_EPSILON))
