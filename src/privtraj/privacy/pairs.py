"""Dominating pairs: the two laws that tell a person's presence best, as composition needs them.

A release is dominated by a pair of laws (P, Q) if no test tells the two neighbouring data sets
apart better by the release than by one draw from P or Q. Pairs of composed releases multiply, so a
pair is given by its factors, of which most releases have one:

    mu                   N(mu, 1) against N(0, 1)
    responses (e, n)     n randomised responses: sign + with odds e^e : 1 against 1 : e^e
    revealed             all is told with this probability, nothing otherwise
    numeric              a pair without a closed form, on a grid of losses
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

COARSE, FINE = 1e-3, 1e-4
"""Grids of the loss: to search on, and to certify on. Both err on the safe side."""
ROUNDING = 1e-11
"""Added to every delta for the rounding of fast Fourier transforms: thirty times what was seen
against closed forms, and far below any delta that is asked of sampled steps."""


class NumericPair(Protocol):
    """A pair on a grid of losses; hashable, and equal to all that have the same losses."""

    def __hash__(self) -> int: ...

    @property
    def noise_multiplier(self) -> float:
        """z of one of its sums: how fine a grid has to be follows from it."""

    def distribution(self, interval: float) -> PrivacyLossDistribution:
        """The losses of a pair that dominates this one, at multiples of the interval."""

    def louder(self, factor: float) -> NumericPair:
        """The same with noise that is smaller by the factor."""

    def limit_mu_squared(self, times: int) -> float | None:
        """mu^2 of the Gaussian pair that `times` of it tend to, where a limit theorem says so."""


@dataclass(frozen=True)
class DominatingPair:
    """The product of its factors; those left out are absent."""

    mu: float = 0.0
    responses: tuple[float, int] | None = None
    revealed: float = 0.0
    numeric: NumericPair | None = None
