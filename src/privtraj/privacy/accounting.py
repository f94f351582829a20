"""What a sequence of releases costs: exact composition in closed form, without grids or limits.

Events say what happened; the functions here say what it costs. Two neighbouring relations:
"add-remove", the data with and without one person, and "replace-one", one person's record changed.

Every event is dominated by a pair of laws (P, Q), whose privacy loss is log P/Q under P. Losses of
adaptively composed events add up as independent variables, and
    delta(eps) = E_P[ (1 - e^{eps - loss})_+ ].

Gaussian sums.  Together they are mu-GDP, mu^2 = sum (sensitivity / noise multiplier)^2, and
    delta_mu(eps) = Phi(-eps / mu + mu / 2) - e^eps Phi(-eps / mu - mu / 2),   any real eps.

Discrete Laplace counts.  P(x) = (1 - a) / (1 + a) a^|x| with a = e^{-e}, and Q is P shifted by one,
Q(x) = P(x - 1). Then log P(x) / Q(x) = e (|x - 1| - |x|) is +e for x <= 0 and -e for x >= 1, and
    P(loss = +e) = sum_{x <= 0} P(x) = (1 - a) / (1 + a) * 1 / (1 - a) = 1 / (1 + a):
a cell that moves by one is exactly randomised response, and so it is backwards, as x -> 1 - x
swaps P and Q.

Both together, with L running over the sums of the Laplace losses and p_L their probabilities:
    delta(eps) = sum_L p_L delta_mu(eps - L).

Slack.  An event whose noise is drawn within total variation s of the stated noise adds s to the
distance between the real transcript and the ideal one, whatever the data and adaptively. For real
laws P', Q' and ideal P, Q within s:  P'(A) <= P(A) + s <= e^eps Q(A) + delta + s
<= e^eps Q'(A) + delta + (1 + e^eps) s. As (e, d) implies (eps, d) for every eps >= e, what is
reported is the least of delta(e) + (1 + e^e) s over e <= eps.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Real
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, ndtr

from privtraj.errors import InputError

Adjacency = Literal["add-remove", "replace-one"]
Floats = NDArray[np.float64]

MAX_LOSSES = 4096
"""Distinct Laplace losses kept; beyond it, losses are merged upwards (never under-reporting)."""
CALIBRATION_MARGIN = 1e-9
"""Relative amount by which calibrated values stay inside the budget: more than the rounding of
thousands of added steps, far less than anyone could notice."""
_SMALLEST, _LARGEST = 2.0**-40, 2.0**40


def check_adjacency(adjacency: str) -> Adjacency:
    """The neighbouring relation, or an `InputError` that names the two there are."""
    if adjacency not in get_args(Adjacency):
        raise InputError(f"adjacency must be 'add-remove' or 'replace-one', not {adjacency!r}")
    return cast(Adjacency, adjacency)


def check_budget(epsilon: float, delta: float) -> None:
    """Refuse an epsilon that is not positive and finite, or a delta outside [0, 1)."""
    if not (_is_number(epsilon) and math.isfinite(epsilon) and epsilon > 0):
        raise InputError("epsilon must be a positive, finite number")
    _check_delta(delta)


@dataclass(frozen=True)
class GaussianSum:
    """A sum of per-person vectors of L2 norm at most c, released with N(0, (c z)^2 I) added.

    noise_multiplier is z. One person added or removed moves the sum by at most c, one person
    replaced by at most 2 c. slack: total variation of all the noise drawn from the stated noise.
    """

    noise_multiplier: float
    what: str
    slack: float = 0.0

    def __post_init__(self) -> None:
        _check_positive(self.noise_multiplier, "a noise multiplier")
        _check_slack(self.slack)

    def sensitivity(self, adjacency: Adjacency) -> int:
        """Largest move of the sum, in units of c."""
        return _people_moved(adjacency)


@dataclass(frozen=True)
class LaplaceCounts:
    """Counts of people over cells, each person in exactly one, with discrete Laplace noise added.

    The noise has P(x) proportional to exp(-epsilon |x|), independent in every cell. One person
    added or removed shifts one cell by one; one person replaced shifts two cells by one.
    """

    epsilon: float
    what: str
    slack: float = 0.0

    def __post_init__(self) -> None:
        _check_positive(self.epsilon, "the epsilon of Laplace counts")
        _check_slack(self.slack)

    def sensitivity(self, adjacency: Adjacency) -> int:
        """Largest number of cells that move, each by one: the L1 sensitivity."""
        return _people_moved(adjacency)


Event = GaussianSum | LaplaceCounts


@dataclass(frozen=True)
class Tally:
    """All that composition needs to remember of a sequence of events under one adjacency.

    mu_squared: sum of (sensitivity / noise multiplier)^2. shifts: (epsilon, number of unit shifts)
    of the Laplace counts, by increasing epsilon. slack: summed.
    """

    adjacency: Adjacency
    mu_squared: float = 0.0
    shifts: tuple[tuple[float, int], ...] = ()
    slack: float = 0.0

    def add(self, event: Event) -> Tally:
        """The tally with one more event; its cost does not depend on how many came before."""
        moved, slack = event.sensitivity(self.adjacency), self.slack + event.slack
        if isinstance(event, GaussianSum):
            mu = moved / event.noise_multiplier
            return replace(self, mu_squared=self.mu_squared + mu * mu, slack=slack)
        shifts = dict(self.shifts)
        shifts[event.epsilon] = shifts.get(event.epsilon, 0) + moved
        return replace(self, shifts=tuple(sorted(shifts.items())), slack=slack)

    @property
    def mu(self) -> float:
        """The GDP parameter of the Gaussian part."""
        return math.sqrt(self.mu_squared)

    def delta(self, epsilon: float) -> float:
        """The smallest delta proven at this epsilon >= 0, slack included; never increasing."""
        return self._plain_delta(self._best_epsilon(epsilon))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon >= 0 with `delta(epsilon) <= delta`, rounded up; inf if none."""
        enough = self._best_epsilon(self._enough(delta))
        if self._plain_delta(enough) > delta:
            return math.inf
        if self._plain_delta(0.0) <= delta:
            return 0.0
        return _bisect(lambda eps: self._plain_delta(eps) <= delta, good=enough, bad=0.0)

    def _plain_delta(self, epsilon: float) -> float:
        """sum_L p_L delta_mu(epsilon - L) + (1 + e^epsilon) slack."""
        losses, probabilities = _laplace_losses(self.shifts)
        delta = float(probabilities @ gaussian_delta(epsilon - losses, self.mu))
        if self.mu_squared > 0:  # a Gaussian's delta is never zero, though floats underflow
            delta = max(delta, sys.float_info.min)
        if self.slack > 0:
            delta += (1 + math.exp(epsilon)) * self.slack if epsilon < 700 else 1.0
        return min(delta, 1.0)

    def _enough(self, delta: float) -> float:
        """An epsilon that reaches delta if any does: P(loss > it) <= delta, or <= slack if any.

        Phi(-t) <= delta at t = sqrt(2 log(1 / delta)), and the Laplace losses at their largest.
        """
        most = max(0.0, float(_laplace_losses(self.shifts)[0].max()))
        reach = self.slack or delta
        if self.mu_squared > 0 and reach > 0:
            most += (self.mu_squared / 2 + self.mu * math.sqrt(-2 * math.log(reach))) * (1 + 1e-9)
        return most

    def _best_epsilon(self, most: float) -> float:
        """Where `_plain_delta` is least on [0, most].

        It is convex in e^eps with derivative slack - Q(loss > eps), so that is where the tail of
        the loss under Q falls to the slack.
        """
        if self.slack == 0 or self._tail(most) >= self.slack:
            return most
        if self._tail(0.0) <= self.slack:
            return 0.0
        return _bisect(lambda eps: self._tail(eps) <= self.slack, good=most, bad=0.0)

    def _tail(self, epsilon: float) -> float:
        """Q(loss > epsilon) = sum_L p_L e^{-L} Phi(-(epsilon - L) / mu - mu / 2)."""
        losses, probabilities = _laplace_losses(self.shifts)
        over = losses - epsilon
        tail = ndtr(over / self.mu - self.mu / 2) if self.mu_squared > 0 else over > 0
        return float((probabilities * np.exp(-np.maximum(losses, -700.0))) @ tail)


def tally(events: Iterable[Event], adjacency: Adjacency) -> Tally:
    """The tally of a sequence of events."""
    total = Tally(check_adjacency(adjacency))
    for event in events:
        total = total.add(event)
    return total


def delta_at(events: Iterable[Event], epsilon: float, adjacency: Adjacency) -> float:
    """The delta at which the events together are (epsilon, delta)-differentially private."""
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InputError("epsilon must be a finite number that is not negative")
    return tally(events, adjacency).delta(epsilon)


def epsilon_at(events: Iterable[Event], delta: float, adjacency: Adjacency) -> float:
    """The smallest epsilon at this delta, rounded up: delta_at(result) <= delta. inf if none."""
    _check_delta(delta)
    return tally(events, adjacency).epsilon(delta)


def gdp_mu(events: Iterable[Event], adjacency: Adjacency) -> float | None:
    """mu if the events are Gaussian sums only (then they are exactly mu-GDP), else None."""
    total = tally(events, adjacency)
    return None if total.shifts else total.mu


def calibrate_gaussian(
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    others: Iterable[Event] = (),
    *,
    slack: float = 0.0,
) -> float:
    """The largest 1/z for which GaussianSum(z) fits into (epsilon, delta) beside the others.

    K equal steps may share it: each of noise multiplier z sqrt(K). slack is what the new noise will
    add. 0.0 if nothing fits.
    """
    spent = _spent(epsilon, delta, adjacency, others, slack)
    return _largest(lambda x: spent.add(GaussianSum(1 / x, "")).delta(epsilon) <= delta)


def calibrate_laplace(
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    others: Iterable[Event] = (),
    *,
    slack: float = 0.0,
) -> float:
    """The largest e for which LaplaceCounts(e) fits into (epsilon, delta) beside the others.

    slack is what the new noise will add. 0.0 if nothing fits.
    """
    spent = _spent(epsilon, delta, adjacency, others, slack)
    return _largest(lambda x: spent.add(LaplaceCounts(x, "")).delta(epsilon) <= delta)


def gaussian_delta(epsilon: float | Floats, mu: float) -> Floats:
    """delta_mu(epsilon) for any real epsilon, elementwise, to full relative precision when tiny.

    With A = mu/2 - eps/mu and B = -mu/2 - eps/mu, e^eps phi(B) = phi(A); so if eps >= 0 >= A,
        delta = phi(A) (M(-A) - M(-B)),   M(x) = Phi(-x) / phi(x) = sqrt(pi/2) erfcx(x / sqrt 2),
    which never subtracts numbers of different size; for A > 0 the first term is Phi(A) itself.
    For eps < 0 the pair (P, Q) is symmetric: delta(eps) = 1 - e^eps + e^eps delta(-eps).
    """
    eps = np.asarray(epsilon, dtype=np.float64)
    if mu == 0:
        return np.asarray(-np.expm1(np.minimum(eps, 0.0)))
    size = np.abs(eps)
    with np.errstate(over="ignore"):  # far beyond any tail: exp(-inf) is the right zero
        near, far = mu / 2 - size / mu, mu / 2 + size / mu
        scale = np.exp(-near * near / 2) / 2
    first = np.where(near > 0, ndtr(near), scale * erfcx(np.maximum(-near, 0) / math.sqrt(2)))
    ahead = np.maximum(first - scale * erfcx(far / math.sqrt(2)), 0.0)
    return np.asarray(np.where(eps < 0, -np.expm1(-size) + np.exp(-size) * ahead, ahead))


@lru_cache(maxsize=256)
def _laplace_losses(shifts: tuple[tuple[float, int], ...]) -> tuple[Floats, Floats]:
    """Sums of the Laplace losses and their probabilities under P: shapes (n,), n <= MAX_LOSSES."""
    losses, probabilities = np.zeros(1), np.ones(1)
    for epsilon, times in shifts:
        step, chance = _repeated_response(epsilon, times)
        losses = np.add.outer(losses, step).ravel()
        probabilities = np.multiply.outer(probabilities, chance).ravel()
        losses, probabilities = _merge_upwards(losses, probabilities)
    return losses, probabilities


def _repeated_response(epsilon: float, times: int) -> tuple[Floats, Floats]:
    """Losses (times - 2 i) epsilon, with i of `times` signs negative: a binomial."""
    negative = np.arange(times + 1, dtype=np.float64)
    log_choose = [math.log(math.comb(times, int(i))) for i in negative]
    log_odds = -np.logaddexp(0.0, -epsilon) * times - epsilon * negative
    return _merge_upwards(epsilon * (times - 2.0 * negative), np.exp(log_choose + log_odds))


def _merge_upwards(losses: Floats, probabilities: Floats) -> tuple[Floats, Floats]:
    """At most MAX_LOSSES / 2 groups of neighbours, each moved to its largest loss.

    Moving losses up can only raise delta, and the largest loss of all stays what it is.
    """
    if losses.size <= MAX_LOSSES:
        return losses, probabilities
    order = np.argsort(losses)
    losses, probabilities = losses[order], probabilities[order]
    cells = np.floor((losses - losses[0]) / (losses[-1] - losses[0]) * (MAX_LOSSES // 2 - 1))
    starts = np.flatnonzero(np.diff(cells, prepend=-1.0))
    return np.maximum.reduceat(losses, starts), np.add.reduceat(probabilities, starts)


def _largest(fits: Callable[[float], bool]) -> float:
    """The largest x that fits, less the margin, where all smaller ones fit too; 0.0 if none."""
    good = _LARGEST
    while not fits(good):
        good /= 2
        if good < _SMALLEST:
            return 0.0
    if good < _LARGEST:
        good = _bisect(fits, good=good, bad=2 * good)
    return good * (1 - CALIBRATION_MARGIN)


def _bisect(holds: Callable[[float], bool], good: float, bad: float) -> float:
    """The last point found to hold, next to the boundary between good and bad (to 1e-13)."""
    while abs(good - bad) > 1e-13 * max(good, bad):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def _spent(
    epsilon: float, delta: float, adjacency: Adjacency, others: Iterable[Event], slack: float
) -> Tally:
    check_budget(epsilon, delta)
    _check_slack(slack)
    spent = tally(others, adjacency)
    return replace(spent, slack=spent.slack + slack)


def _people_moved(adjacency: Adjacency) -> int:
    return 1 if check_adjacency(adjacency) == "add-remove" else 2


def _check_positive(value: float, name: str) -> None:
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name} must be a positive, finite number")


def _check_slack(slack: float) -> None:
    if not 0 <= slack < 1:
        raise InputError("slack is a total variation distance: it must be at least 0 and below 1")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_delta(delta: float) -> None:
    if not (_is_number(delta) and 0 <= delta < 1):
        raise InputError("delta must be at least 0 and below 1")
