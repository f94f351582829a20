"""Sums over people who are sampled, and over times that are chosen: events of the paper's recipe.

Sampled sums.  Every record takes part with a public probability q, by a coin of its own (Poisson
sampling). Of g records of one person in one bin, j take part with probability p_j, binomial:
    sum_j p_j N(j / z, 1)    against    N(0, 1),    or its mirror image where one is replaced,
dominates, as `pld` proves. Records in g different bins are g compositions of one.

Chosen times.  A set of time bins, drawn at random once for everybody, and published. Whoever reads
the result knows it, so it is no sampling rate of the single steps: either the person's bin was
dropped and nothing happened, or it was chosen and all steps count in full. That is a mixture whose
component everybody knows,
    delta = chance * delta(all steps) + (1 - chance) * delta(nothing).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from privtraj.base.errors import InputError
from privtraj.privacy.events import (
    Adjacency,
    DominatingPair,
    Event,
    GaussianSum,
    Person,
    check_share,
    people_moved,
)

if TYPE_CHECKING:
    from privtraj.privacy.pld import Losses

MOST_TOGETHER = 1000  # records of a person in one bin, of which a binomial is taken
MOST_LOSS = 1e4  # of one sampled sum: far beyond what protects anybody


@dataclass(frozen=True)
class SampledSum(GaussianSum):
    """A Gaussian sum in which every record takes part with probability `rate`, not divided by
    anything that depends on the coins."""

    mechanism: ClassVar[str] = "sampled Gaussian"

    rate: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share(self.rate, "a sampling rate")

    def pair(self, adjacency: Adjacency) -> DominatingPair:
        return DominatingPair(numeric=SampledPair.of(self, adjacency))

    @property
    def numbers(self) -> dict[str, float]:
        return {**super().numbers, "sampling rate": self.rate}

    def cost(self, adjacency: Adjacency, times: int) -> dict[str, float]:
        """No one number says it."""
        return {}


def sum_at_rate(release: GaussianSum, rate: float) -> GaussianSum:
    """The sum with every record taking part with probability `rate`; as it is at rate 1."""
    if rate == 1 and not isinstance(rate, bool):
        return release
    return SampledSum(release.noise_multiplier, release.what, release.slack, *release.person, rate)


@dataclass(frozen=True)
class ChosenTimes(Event):
    """`times` releases of one kind, on the people of a random, published set of time bins only."""

    mechanism: ClassVar[str] = "Gaussian on chosen times"

    share: float  # the probability that a given bin is chosen
    release: GaussianSum
    times: int
    what: str

    def __post_init__(self) -> None:
        check_share(self.share, "the share of chosen times")
        if self.times < 1:
            raise InputError("chosen times need at least one release")

    @property
    def slack(self) -> float:  # type: ignore[override]
        """Of all its releases."""
        return self.times * self.release.slack

    @property
    def person(self) -> Person:
        return self.release.person

    def chance(self, adjacency: Adjacency) -> float:
        """At most this is the probability that any bin of the person's records was chosen: a union
        bound over the bins of all records, old and new where one is replaced."""
        return min(1.0, self.share * people_moved(adjacency) * self.release.records)

    def pair(self, adjacency: Adjacency) -> DominatingPair:
        step = SampledPair.of(self.release, adjacency)
        return DominatingPair(numeric=ChosenPair(self.chance(adjacency), step, self.times))

    def ideal(self) -> Self:
        return replace(self, release=self.release.ideal())

    @property
    def in_words(self) -> str:
        return f"{self.times} releases on a share {self.share:.4g} of the times"

    @property
    def numbers(self) -> dict[str, float]:
        return {**self.release.numbers, "share of the times": self.share, "steps": self.times}

    def fields(self) -> dict[str, Any]:
        return {"share": self.share, "steps": self.times, **self.release.fields()}

    @classmethod
    def _of(cls, entry: Mapping[str, Any]) -> Self:
        release = SampledSum._of(entry) if "rate" in entry else GaussianSum._of(entry)
        return cls(entry["share"], release, entry["steps"], entry["what"])


@dataclass(frozen=True)
class SampledPair:
    """In every bin, sum_j p_j N(j / z, 1) against N(0, 1), or against its mirror image."""

    noise_multiplier: float
    rate: float
    records: int
    together: bool
    adjacency: Adjacency

    @classmethod
    def of(cls, event: GaussianSum, adjacency: Adjacency) -> SampledPair:
        """The pair of a sum, over everybody too."""
        return cls(event.noise_multiplier, event.rate, *event.person, adjacency)

    def moves(self) -> tuple[list[float], list[float]]:
        """Sizes j, in units of c, of the move that j sampled records of one bin make; chances."""
        g, q = (self.records if self.together else 1), self.rate
        chances = [math.comb(g, j) * q**j * (1 - q) ** (g - j) for j in range(g + 1)]
        return [float(j) for j in range(g + 1)], chances

    def distribution(self, interval: float) -> Losses:
        from privtraj.privacy import pld

        mirrored = self.adjacency == "replace-one"
        one_bin = pld.of_mixture(*self.moves(), self.noise_multiplier, mirrored, interval)
        return one_bin.repeated(1 if self.together else self.records)

    def points(self, times: int, interval: float) -> float:
        """Those of one, within ten deviations, and of all together: 20 times their deviation, or
        what all at once could reach."""
        together = self.records if self.together else 1
        size, n = together / self.noise_multiplier, times * (self.records // together)
        sides = 2 if self.adjacency == "replace-one" else 1
        one = sides * (size * size / 2 + 10 * size)
        if together > MOST_TOGETHER or one > MOST_LOSS:
            return math.inf
        return (one + min(n * one, 20 * sides * math.sqrt(n * self._variance()))) / interval

    def _variance(self) -> float:
        """About that of one loss: E_Q[(P / Q)^2] - 1 = E[e^{j j' / z^2}] - 1, j and j' two numbers
        of sampled records; of one record q^2 (e^{1 / z^2} - 1), as in `clt_mu`."""
        sizes, chances = self.moves()
        inverse, q = self.noise_multiplier**-2, self.rate
        logs = (
            (len(sizes) - 1) * math.log1p(q * math.expm1(min(j * inverse, 700.0))) for j in sizes
        )
        mean = sum(p * math.expm1(min(x, 700.0)) for p, x in zip(chances, logs, strict=True))
        return max(mean, 0.0)

    def louder(self, factor: float) -> SampledPair:
        return replace(self, noise_multiplier=self.noise_multiplier / factor)

    def limit_mu_squared(self, times: int) -> float | None:
        """By the central limit theorem, which is known for add-remove and separate records."""
        if self.together or self.adjacency == "replace-one":
            return None
        return clt_mu(self.noise_multiplier, self.rate, times * self.records) ** 2


@dataclass(frozen=True)
class ChosenPair:
    """With this chance all the steps, else nothing; and which of the two is known."""

    chance: float
    step: SampledPair
    times: int

    @property
    def noise_multiplier(self) -> float:
        return self.step.noise_multiplier

    def distribution(self, interval: float) -> Losses:
        steps = self.step.distribution(interval).repeated(self.times)
        return steps.with_chance(self.chance, interval)

    def points(self, times: int, interval: float) -> float:
        return self.step.points(times * self.times, interval)

    def louder(self, factor: float) -> ChosenPair:
        return replace(self, step=self.step.louder(factor))

    def limit_mu_squared(self, times: int) -> None:
        """No limit theorem is known."""


def clt_mu(noise_multiplier: float, rate: float, steps: int) -> float:
    """mu = rate sqrt(K (e^{1 / z^2} - 1)): the limit that sampled steps tend to.

    Not a guarantee: at every setting tried, the epsilon it gives is below the true one.
    """
    return rate * math.sqrt(steps * math.expm1(noise_multiplier**-2))
