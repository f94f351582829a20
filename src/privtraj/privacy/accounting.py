"""What a sequence of releases costs: exact composition, in closed form wherever there is one.

Every event is dominated by a pair of laws (P, Q) (`events`), whose privacy loss is log P/Q under P.
Losses of adaptively composed events add up as independent variables, and
    delta(eps) = E_P[ (1 - e^{eps - loss})_+ ].
Gaussian sums together are mu-GDP, mu^2 = sum (sensitivity / noise multiplier)^2, and
    delta_mu(eps) = Phi(-eps / mu + mu / 2) - e^eps Phi(-eps / mu - mu / 2),   any real eps.
Laplace counts and opaque events come down to randomised responses, with a loss of +e with
probability e^e / (1 + e^e), else -e. With L running over the sums of their losses, p_L their
probabilities, and d the probability that some event reveals all, 1 - d = prod (1 - d_i):
    delta(eps) = d + (1 - d) sum_L p_L delta_mu(eps - L).
With delta = 0 nothing may be lost to rounding: whether eps covers all responses, sum n_i e_i, is
decided on the very rationals that the floats are. Pairs without a closed form, those of sampled
sums and chosen times, are put on a grid, with all of the above as one more distribution beside them
(`pld`). Its error is on the safe side.

Slack.  An event whose noise is drawn within total variation s of the stated noise adds s to the
distance between the real transcript and the ideal one, whatever the data and adaptively. For real
laws P', Q' and ideal P, Q within s:  P'(A) <= P(A) + s <= e^eps Q(A) + delta + s
<= e^eps Q'(A) + delta + (1 + e^eps) s. As (e, d) implies (eps, d) for every eps >= e, what is
reported is the least of delta(e) + (1 + e^e) s over e <= eps.

A guarantee is a tree: an event with how often; `Sequential`, whose parts are about the same people,
so that their losses add up; `Parallel`, whose branches are about people of their own.

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

People who return.  A person may be in at most k branches (`most`), or in at most k of those that
any w days touch (`days`); then the guarantee is about the records of one person within w days:
neighbours are streams that differ by one person's records whose times are less than w days apart.
A branch has people of its span [a, b] of time alone (times are clamped to it). So the differing
records are in branches of one set T = {j : a_j < t + w, b_j >= t}, for some t; as t grows to the
next end b_i in T it loses no branch, so that the sets of t = b_i are all that count (`together`).
Given the past, all other branches have the same law in both worlds, and of T at most k lose
anything: losses of any k add up, as above. With replace-one at most k branches had the person and
at most k have: of each of them the way is replacing (both), removing or adding.

So a guarantee has *ways* in which a person can matter, each an ordinary sequence of events, and
what holds of all ways holds: delta is the largest over the ways at every epsilon. Ways that are no
worse than another in every part are left out. The noise of other branches, and its slack, is drawn
alike in both worlds, so it is no part of a way.

That people are disjoint, or in at most k, is the word of whoever makes the tree: nothing here can
check it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial, reduce
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError, is_number, is_whole
from privtraj.privacy import pld
from privtraj.privacy.events import Adjacency, Event, SampledPair, check_adjacency, check_budget

COARSE, FINE = 1e-3, 1e-4
"""Grids of the loss: to search on, and to certify on. Both err on the safe side."""
MAX_LOSSES = 4096
"""Distinct Laplace losses kept; beyond it, losses are merged upwards (never under-reporting)."""

MOST_POINTS, MOST_PAIRS = 1_500_000, 6_000_000
"""Of `is_modest`: points of all grids, and losses that are combined at once. Far beyond any fit."""

PARALLEL = "parallel"  # the mechanism of an entry that has branches
MOST_WAYS = 1000  # in which a person matters: more than any tree of months has
MOST_ENTRIES = 1000  # of a ledger: more than any fit has kinds of releases
DEEPEST = 8  # branches in branches

MOST_STEPS = 200_000  # of choosing the branches of a person who returns

_FEW_RUNGS, _MANY_RUNGS = 97, 513  # epsilons at which a whole curve is read


@dataclass(frozen=True)
class Tally:
    """All that composition needs to remember of a sequence of events under one adjacency.

    mu_squared: sum of (sensitivity / noise multiplier)^2 of full sums. shifts: (epsilon, number of
    unit shifts) of randomised responses, by increasing epsilon. revealed: the probability that an
    opaque event revealed everything. sampled: what needs a grid, with how often. slack: summed.
    """

    adjacency: Adjacency
    mu_squared: float = 0.0
    shifts: tuple[tuple[float, int], ...] = ()
    revealed: float = 0.0
    sampled: tuple[tuple[SampledPair, int], ...] = ()
    slack: float = 0.0

    def add(self, event: Event, times: int = 1) -> Tally:
        """The tally with `times` more of an event, at a cost that does not grow with the past."""
        if times < 1:
            raise InputError("an event happens at least once")
        pair = event.pair(self.adjacency)
        epsilon, responses = pair.responses or (0.0, 0)
        revealed = pair.revealed
        if times > 1 and 0 < revealed < 1:  # 1 - (1 - revealed)^times, of small chances too
            revealed = -math.expm1(times * math.log1p(-revealed))
        more = Tally(
            self.adjacency,
            times * pair.mu * pair.mu,
            ((epsilon, times * responses),) if responses else (),
            revealed,
            ((pair.sampled, times),) if pair.sampled else (),
            times * event.slack,
        )
        return self.beside(more)

    def beside(self, other: Tally) -> Tally:
        """The tally of both sequences, one after the other."""
        shifts, sampled = Counter(dict(self.shifts)), Counter(dict(self.sampled))
        shifts.update(dict(other.shifts))
        sampled.update(dict(other.sampled))
        return Tally(
            self.adjacency,
            self.mu_squared + other.mu_squared,
            tuple(sorted(shifts.items())),
            self.revealed + (1 - self.revealed) * other.revealed,
            tuple(sampled.items()),
            self.slack + other.slack,
        )

    def scaled(self, factor: float) -> Tally:
        """The tally of the same releases, every loss scaled as if noise were smaller by factor."""
        louder = [
            (replace(pair, noise_multiplier=pair.noise_multiplier / factor), times)
            for pair, times in self.sampled
        ]
        return replace(
            self,
            mu_squared=self.mu_squared * factor**2,
            shifts=tuple((epsilon * factor, times) for epsilon, times in self.shifts),
            sampled=tuple(louder),
        )

    @property
    def mu(self) -> float:
        """The GDP parameter of the full Gaussian sums."""
        return math.sqrt(self.mu_squared)

    @property
    def gdp_mu(self) -> float | None:
        """mu if only full Gaussian sums were released (then all is exactly mu-GDP), else None."""
        return None if self.shifts or self.revealed or self.sampled else self.mu

    def delta(self, epsilon: float, interval: float = FINE) -> float:
        """The smallest delta proven at this epsilon >= 0, slack included; never increasing."""
        return self._at(self._best_epsilon(epsilon) if self.slack else epsilon, interval)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon >= 0 with `delta(epsilon) <= delta`, rounded up; inf if none."""
        enough = self._enough() if self.sampled else self._enough(delta)
        enough = self._best_epsilon(enough) if self.slack else enough
        if self._at(enough) > delta:
            return math.inf
        if self._at(0.0) <= delta:
            return 0.0
        return bisect(lambda x: self._at(x) <= delta, enough, 0.0, 1e-9 if self.sampled else 1e-13)

    def true_positive_rates(self, false_positive_rates: Floats) -> Floats:
        """The most of the members that any attack can find at these rates of false alarms.

        (eps, delta) bounds every test by TPR <= delta + e^eps FPR and, with the roles exchanged,
        1 - FPR <= delta + e^eps (1 - TPR). The least over a ladder of eps; any ladder is a bound.
        """
        fpr = np.asarray(false_positive_rates, dtype=np.float64)[..., None]
        # beyond the eps where delta is below any rate of interest, nothing is gained
        rungs = _FEW_RUNGS if self.sampled else _MANY_RUNGS
        ladder = np.linspace(0.0, 1.0, rungs) ** 2 * min(self._enough(), 200.0)
        # (e, d) implies (eps, d) for every eps >= e
        delta, growth = np.minimum.accumulate(self._at(ladder)), np.exp(ladder)
        bounds = np.minimum(delta + growth * fpr, 1 - (1 - delta - fpr) / growth)
        return np.clip(bounds.min(axis=-1), 0.0, 1.0)

    def clt_epsilon(self, delta: float) -> float | None:
        """epsilon if sampled steps had reached their limit; None without them, or without one."""
        limit = self.mu_squared
        for pair, times in self.sampled:
            more = pair.limit_mu_squared(times)
            if more is None:
                return None
            limit += more
        return replace(self, sampled=(), mu_squared=limit).epsilon(delta) if self.sampled else None

    @property
    def closed_error(self) -> float:
        """Of `closed`: its terms are rounded relative to 1, and the logarithms of binomials."""
        return (64 + 4 * sum(times for _, times in self.shifts)) * 2.0**-52

    def closed(self, epsilons: Floats) -> Floats:
        """d + (1 - d) sum_L p_L delta_mu(eps - L) at any real epsilons (n,), without slack."""
        total = np.zeros_like(epsilons)
        for loss, probability in zip(*_laplace_losses(self.shifts)[:2], strict=True):
            total += probability * gaussian_delta(epsilons - loss, self.mu)
        return self.revealed + (1 - self.revealed) * total

    def _at(self, epsilon: Any, interval: float = FINE) -> Any:
        """delta + (1 + e^epsilon) slack at this very epsilon, or at each of (n,): in closed form,
        or on the grid."""
        epsilons = np.atleast_1d(epsilon)
        delta = np.empty(len(epsilons))
        if self.sampled:
            grid = _distribution(replace(self, slack=0.0), interval)
            for k, one in enumerate(epsilons.tolist()):
                delta[k] = grid.delta(one)
        else:  # as in `closed`, a block of epsilons with all losses at once
            losses, probabilities, largest = _laplace_losses(self.shifts)
            rows = max(2**16 // losses.size, 1)
            for start in range(0, len(epsilons), rows):
                some = slice(start, start + rows)
                apart = np.subtract.outer(epsilons[some], losses)
                delta[some] = gaussian_delta(apart, self.mu) @ probabilities
            delta = self.revealed + (1 - self.revealed) * delta
            # a delta that is not zero must not look like it, whatever floats lose
            below = float(largest)  # and then the last float that is
            below = math.nextafter(below, -math.inf) if Fraction(below) >= largest else below
            least = math.nextafter(self.revealed, 1.0)
            hidden = (delta <= self.revealed) & ((self.mu_squared > 0) | (epsilons <= below))
            delta = np.where(hidden, least, delta)
        if self.slack > 0:
            with np.errstate(over="ignore"):  # then nothing is promised
                delta = delta + (1 + np.exp(epsilons)) * self.slack
        delta = np.minimum(delta, 1.0)
        return delta if np.ndim(epsilon) else float(delta[0])

    def _enough(self, delta: float = 1e-12) -> float:
        """An epsilon that reaches delta if any does: P(loss > it) <= delta, or <= slack if any.

        Phi(-t) <= delta at t = sqrt(2 log(1 / delta)), and the Laplace losses at their largest. On
        a grid, one beyond which delta does not fall by anything that counts.
        """
        if self.sampled:
            grid, enough = _distribution(replace(self, slack=0.0), COARSE), 0.25
            floor = grid.delta(1e6) + grid.error
            while grid.delta(enough) > floor:
                enough *= 2
            return enough
        losses, _, exact = _laplace_losses(self.shifts)
        most = math.nextafter(exact, math.inf) if Fraction(float(exact)) < exact else float(exact)
        most, reach = max(most, float(losses.max())), self.slack or delta - self.revealed
        if self.mu_squared > 0 and reach > 0:
            most += (self.mu_squared / 2 + self.mu * math.sqrt(-2 * math.log(reach))) * (1 + 1e-9)
        return most

    def _best_epsilon(self, most: float) -> float:
        """Where delta + (1 + e^epsilon) slack is least on [0, most], or next to it and below.

        It is convex in e^epsilon with derivative slack - Q(loss > epsilon), so that is where the
        tail of the loss under Q falls to the slack.
        """
        if self.sampled:
            return min(most, _turning_point(self))
        if self._tail(most) >= self.slack:
            return most
        if self._tail(0.0) <= self.slack:
            return 0.0
        return bisect(lambda eps: self._tail(eps) <= self.slack, good=most, bad=0.0)

    def _tail(self, epsilon: float) -> float:
        """Q(loss > epsilon) = (1 - d) sum_L p_L e^{-L} Phi(-(epsilon - L) / mu - mu / 2)."""
        from scipy.special import ndtr

        losses, probabilities, _ = _laplace_losses(self.shifts)
        over = losses - epsilon
        tail = ndtr(over / self.mu - self.mu / 2) if self.mu_squared > 0 else over > 0
        of_losses = float((probabilities * np.exp(-np.maximum(losses, -700.0))) @ tail)
        return (1 - self.revealed) * of_losses


@lru_cache(maxsize=64)
def _turning_point(total: Tally) -> float:
    """An epsilon on the grid up to which delta + (1 + e^epsilon) slack falls."""
    from scipy.optimize import minimize_scalar

    lost = _distribution(replace(total, slack=0.0), COARSE).error
    high = min(total._enough(), -math.log(total.slack), 700.0)  # where slack alone is a delta of 1
    if (1 + math.exp(high)) * total.slack < lost / 100:
        return high  # beyond it delta does not fall by anything that counts, but slack grows
    how = {"bounds": (0.0, high), "method": "bounded", "options": {"xatol": 1e-9 * high}}
    least = minimize_scalar(total._at, args=(COARSE,), **how)
    return float(least.x) * (1 - 1e-6)


@lru_cache(maxsize=16)
def _distribution(total: Tally, interval: float) -> pld.Losses:
    """The losses of all of it on the grid: of each kind that is sampled, and of the rest."""
    if not total.sampled:
        return pld.symmetric(total.closed, total.closed_error, interval)
    parts = [_repeated(pair, times, interval) for pair, times in total.sampled]
    plain = replace(total, sampled=())
    if plain != Tally(total.adjacency):
        parts.append(_distribution(plain, interval))
    return reduce(lambda composed, part: composed.beside(part), parts)


@lru_cache(maxsize=16)
def _repeated(pair: SampledPair, times: int, interval: float) -> pld.Losses:
    return pair.distribution(interval).repeated(times)


Events = Iterable[Event | tuple[Event, int]]
"""What happened: single events, or pairs of an event and how often."""


def tally(events: Events, adjacency: Adjacency, before: Tally | None = None) -> Tally:
    """The tally of a sequence of events, after what was before."""
    total = before or Tally(check_adjacency(adjacency))
    for item in events:
        event, times = item if isinstance(item, tuple) else (item, 1)
        total = total.add(event, times)
    return total


def is_modest(total: Cost) -> bool:
    """Whether composing it takes seconds rather than hours, told from its numbers alone.

    Counted are the points of the grids of what is sampled, and the losses that are combined with
    each other, or with the points of a grid. Whoever reads a ledger of somebody else asks first.
    """
    if isinstance(total, Worst):
        return all(map(is_modest, total.ways))
    points = sum(pair.points(times, FINE) for pair, times in total.sampled)
    if not points <= MOST_POINTS:
        return False
    losses, work, reach = 1, 0.0, total.mu_squared / 2 + 10 * total.mu
    for epsilon, times in total.shifts:  # of which half as many are kept, where they are too many
        combined = losses * (times + 1 if times < MAX_LOSSES else MAX_LOSSES // 2)
        if combined > MOST_PAIRS:
            return False
        losses = combined if combined <= MAX_LOSSES else MAX_LOSSES // 2
        work, reach = work + combined + times * times / 64, reach + epsilon * times
    on_grid = 4 * min(reach, 1e3) / FINE if total.sampled else 0.0
    return work + losses * on_grid <= 8 * MOST_PAIRS


def delta_at(events: Events, epsilon: float, adjacency: Adjacency) -> float:
    """The delta at which the events together are (epsilon, delta)-differentially private."""
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InputError("epsilon must be a finite number that is not negative")
    return tally(events, adjacency).delta(epsilon)


def epsilon_at(events: Events, delta: float, adjacency: Adjacency) -> float:
    """The smallest epsilon at this delta, rounded up: delta_at(result) <= delta. inf if none."""
    check_budget(1.0, delta)
    return tally(events, adjacency).epsilon(delta)


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
    from scipy.special import erfcx, ndtr

    size = np.abs(eps)
    with np.errstate(over="ignore"):  # far beyond any tail: exp(-inf) is the right zero
        near, far = mu / 2 - size / mu, mu / 2 + size / mu
        scale = np.exp(-near * near / 2) / 2
    first = np.where(near > 0, ndtr(near), scale * erfcx(np.maximum(-near, 0) / math.sqrt(2)))
    ahead = np.maximum(first - scale * erfcx(far / math.sqrt(2)), 0.0)
    return np.asarray(np.where(eps < 0, -np.expm1(-size) + np.exp(-size) * ahead, ahead))


@lru_cache(maxsize=256)
def _laplace_losses(shifts: tuple[tuple[float, int], ...]) -> tuple[Floats, Floats, Fraction]:
    """Sums of the Laplace losses and their probabilities under P, shapes (n,), n <= MAX_LOSSES; and
    the largest loss, exactly.

    n responses of e lose (n - 2 i) e if i of their signs are negative, which has the probability
    C(n, i) e^{-e i} / (1 + e^{-e})^n, with C(n, i + 1) = C(n, i) (n - i) / (i + 1) in integers.
    """
    losses, probabilities, largest = np.zeros(1), np.ones(1), Fraction(0)
    for epsilon, times in shifts:
        largest += Fraction(epsilon) * times
        half, choose = [], 1
        for i in range(times // 2 + 1):
            half.append(math.log(choose))
            choose = choose * (times - i) // (i + 1)
        log_choose = half + half[: (times + 1) // 2][::-1]
        negative = np.arange(times + 1, dtype=np.float64)
        log_odds = -np.logaddexp(0.0, -epsilon) * times - epsilon * negative
        step, chance = epsilon * (times - 2.0 * negative), np.exp(log_choose + log_odds)
        if step.size > MAX_LOSSES:
            step, chance = _merge_upwards(step, chance)
        losses = np.add.outer(losses, step).ravel()
        probabilities = np.multiply.outer(probabilities, chance).ravel()
        if losses.size > MAX_LOSSES:
            losses, probabilities = _merge_upwards(losses, probabilities)
    return losses, probabilities, largest


def _merge_upwards(losses: Floats, probabilities: Floats) -> tuple[Floats, Floats]:
    """At most MAX_LOSSES / 2 groups, each moved to its largest loss: that can only raise delta."""
    low, high, groups = losses.min(), losses.max(), MAX_LOSSES // 2
    cells = ((losses - low) / (high - low) * (groups - 1)).astype(np.int64)
    largest = np.full(groups, -np.inf)
    np.maximum.at(largest, cells, losses)
    together: Floats = np.bincount(cells, probabilities, groups).astype(np.float64)
    some = largest > -np.inf
    return largest[some], together[some]


def bisect(
    holds: Callable[[float], bool], good: float, bad: float, precision: float = 1e-13
) -> float:
    """A point that satisfies a monotone predicate, as `good` does and `bad` does not, next to the
    last one that does."""
    while abs(good - bad) > precision * max(good, bad):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


# Guarantees -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sequential:
    """All parts are about the same people. slack: of their noise, beside that of the events."""

    parts: tuple[Guarantee, ...] = ()
    slack: float = 0.0


@dataclass(frozen=True)
class Parallel:
    """Every branch is about people of its own, or nobody is in more than `most` of those that so
    many `days` touch (None: in any of them): that is the word of whoever makes it.

    spans: from when to when the people of each branch are, in days; none where days are all.
    """

    branches: tuple[Guarantee, ...]
    most: int | None = 1
    days: float = math.inf
    spans: tuple[tuple[float, float], ...] = ()


Guarantee = tuple[Event, int] | Sequential | Parallel


@dataclass(frozen=True)
class Worst:
    """The tallies of several ways in which a person can matter: the worst counts, everywhere."""

    ways: tuple[Tally, ...]

    @property
    def slack(self) -> float:
        """The largest total variation of the noise from the stated."""
        return max(way.slack for way in self.ways)

    @property
    def gdp_mu(self) -> float | None:
        """mu if all of it is exactly mu-GDP, else None."""
        return _largest_known([way.gdp_mu for way in self.ways])

    def delta(self, epsilon: float) -> float:
        """The smallest delta proven at this epsilon."""
        return max(way.delta(epsilon) for way in self.ways)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at this delta, rounded up; inf if none."""
        return max(way.epsilon(delta) for way in self.ways)

    def true_positive_rates(self, false_positive_rates: Floats) -> Floats:
        """The most that any attack on one person can achieve."""
        each = [way.true_positive_rates(false_positive_rates) for way in self.ways]
        return np.asarray(np.max(each, axis=0))

    def clt_epsilon(self, delta: float) -> float | None:
        """epsilon if sampled steps had reached their limit, where one is known for all of them."""
        if not any(way.sampled for way in self.ways):
            return None
        return _largest_known(
            [way.clt_epsilon(delta) if way.sampled else way.epsilon(delta) for way in self.ways]
        )


def _largest_known(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if len(known) == len(values) else None


Cost = Tally | Worst


def cost(guarantee: Guarantee, adjacency: Adjacency, slack: float | None = None) -> Cost:
    """What it costs under this relation. slack: of every way, where it is stated as one number."""
    ways = _ways(guarantee, check_adjacency(adjacency))
    if slack is not None:
        ways = tuple(map(partial(replace, slack=slack), ways))
    return ways[0] if len(ways) == 1 else Worst(ways)


def _ways(guarantee: Guarantee, adjacency: Adjacency) -> tuple[Tally, ...]:
    """Ways in which one person can matter to it, none of them no worse than another."""
    match guarantee:
        case Sequential(parts, slack):
            own, trees = Tally(adjacency, slack=slack), []
            for part in parts:
                if isinstance(part, tuple):
                    own = own.add(*part)
                else:
                    trees.append(part)
            ways: tuple[Tally, ...] = (own,)
            for tree in trees:
                here = _ways(tree, adjacency)
                ways = _worst(one.beside(other) for one in ways for other in here)
            return ways
        case Parallel(branches, most, days, spans):
            known: dict[Guarantee, _Uses] = {}
            for branch in dict.fromkeys(branches):  # batches alike, of which there may be hundreds
                # who is in it once more, or once less; or both, replaced
                once = tuple(replace(x, adjacency=adjacency) for x in _ways(branch, "add-remove"))
                known[branch] = (((1, 0), once),)
                if adjacency == "replace-one":
                    both = (((1, 1), _ways(branch, adjacency)),)
                    known[branch] = (*both, *known[branch], ((0, 1), once))
            unlike = sorted(set(known.values()), key=repr)
            number = {uses: k for k, uses in enumerate(unlike)}
            numbers = [number[known[branch]] for branch in branches]
            sets = together(spans, days) if spans else [range(len(branches))]
            each = dict.fromkeys(tuple(sorted(numbers[k] for k in some)) for some in sets)
            most = len(branches) if most is None else most
            steps = MOST_STEPS // max(len(each), 1)
            of_each = ([unlike[k] for k in some] for some in each)
            return _worst(way for some in of_each for way in _chosen(some, most, adjacency, steps))
        case event:
            return (Tally(adjacency).add(*event),)


_Uses = tuple[tuple[tuple[int, int], tuple[Tally, ...]], ...]
"""Of a branch: by how much each way to matter raises the numbers of branches that had a person, and
that have."""


def together(spans: Sequence[tuple[float, float]], days: float) -> list[frozenset[int]]:
    """The largest sets of spans [a, b] that times less than so many days apart can be in."""
    sets: list[frozenset[int]] = [frozenset()]
    for end in sorted({b for _, b in spans}):  # one is part of another only if of the one before
        here = frozenset(k for k, (a, b) in enumerate(spans) if a < end + days and b >= end)
        sets += [here] if not here <= sets[-1] else []
    return sets[1:]


def _chosen(
    branches: Sequence[_Uses], most: int, adjacency: Adjacency, steps: int
) -> tuple[Tally, ...]:
    """Ways of a person who is in at most so many of the branches.

    Of equal branches more than a person can be in, before and after, make no difference. Who is
    replaced, and in one branch at most, is in one before and after.
    """
    most = min(most, len(branches))
    free = most == len(branches) > 1
    kept: list[_Uses] = []
    for one in branches:
        if free or kept.count(one) < 2 * most:
            kept.append(one)
    states = 1 if free else (most + 1) ** (1 + (adjacency == "replace-one"))
    if len(kept) * states > steps:
        raise InputError("a guarantee has too many different branches to be computed")
    reached: dict[tuple[int, int], tuple[Tally, ...]] = {(0, 0): (Tally(adjacency),)}
    for one in kept:
        after = dict(reached)
        for (had, has), ways in reached.items():
            for (less, more), costs in one:
                state = (0, 0) if free else (had + less, has + more)
                if max(state) <= most:
                    sums = (way.beside(also) for way in ways for also in costs)
                    after[state] = _worst((*after.get(state, ()), *sums))
        reached = after
    if adjacency == "replace-one" and most == 1:
        return reached[1, 1]
    return _worst(way for ways in reached.values() for way in ways)


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
    """Whether `one` tells at least as much in every part: its losses dominate. A randomised
    response of less epsilon can be made from one of more."""

    def responses(way: Tally, least: float) -> int:
        return sum(times for epsilon, times in way.shifts if epsilon >= least)

    return (
        one.mu_squared >= other.mu_squared
        and one.revealed >= other.revealed
        and one.slack >= other.slack
        and all(responses(one, e) >= responses(other, e) for e, _ in other.shifts)
        and all(dict(one.sampled).get(pair, 0) >= n for pair, n in other.sampled)
    )


def releases(guarantee: Guarantee) -> Iterator[tuple[Event, int]]:
    """All events, each with how often, in order."""
    match guarantee:
        case Sequential(parts) | Parallel(branches=parts):
            for part in parts:
                yield from releases(part)
        case event:
            yield event


def to_entries(guarantee: Guarantee, adjacency: Adjacency) -> tuple[dict[str, Any], ...]:
    """The ledger of a certificate: events as a flat list, branches as lists in it.

    Runs of identical events are merged and counted. Their slack, which is stated as one sum, makes
    no difference.
    """
    entries: list[dict[str, Any]] = []
    last, run, ahead = None, 0, [guarantee]
    while ahead:
        part = ahead.pop()
        if isinstance(part, Sequential):
            ahead += part.parts[::-1]
        elif isinstance(part, Parallel):
            lists = [[*to_entries(branch, adjacency)] for branch in part.branches]
            what = f"{len(lists)} groups of {'different ' * (part.most == 1)}people"
            entry = {"what": what, "times": 1, "mechanism": PARALLEL, "branches": lists}
            if part.most != 1:
                entry["most"] = part.most
            if part.spans:
                entry |= {"days": part.days, "spans": [list(span) for span in part.spans]}
            entries.append(entry)
            last = None
        else:
            event, times = part[0].ideal(), part[1]
            if event == last:
                entries.pop()
                times += run
            entries.append(event.to_dict(adjacency, times))
            last, run = event, times
    return tuple(entries)


def from_entries(entries: Sequence[Any], slack: float = 0.0, depth: int = 0) -> Sequential:
    """The inverse of `to_entries`, with the slack that is stated beside it.

    The entries may be anybody's: an `InputError` if one of them is none, or if they are too many.
    """
    try:
        if depth > DEEPEST or not isinstance(entries, list | tuple):
            raise TypeError
        parts: list[Guarantee] = []
        for entry in entries:
            if entry["mechanism"] == PARALLEL:
                inside = (from_entries(branch, 0.0, depth + 1) for branch in entry["branches"])
                parts.append(_parallel(tuple(inside), entry))
            else:
                parts.append((Event.from_dict(entry), entry["times"]))
        made = Sequential(tuple(parts), slack)
        if depth or sum(1 for _ in releases(made)) <= MOST_ENTRIES:
            return made
    except (LookupError, TypeError, ValueError):
        pass
    raise InputError("the certificate is damaged: its ledger cannot be read")


def _parallel(branches: tuple[Guarantee, ...], entry: Mapping[str, Any]) -> Parallel:
    most, days, given = entry.get("most", 1), entry.get("days", math.inf), entry.get("spans", [])
    ends = [(a, b) for a, b in given if is_number(a) and is_number(b) and a <= b]
    known = most is None or (is_whole(most) and most >= 1)
    apart = len(branches) if "days" in entry else 0  # spans are there with days, and only then
    if not (known and is_number(days) and days > 0 and len(given) == len(ends) == apart):
        raise TypeError
    return Parallel(branches, most, float(days), tuple((float(a), float(b)) for a, b in ends))
