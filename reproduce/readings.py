"""What a privacy figure of the paper should read, by each accounting it may have come from.

    CLT            mu = rho sqrt(K (e^{1 / tau^2} - 1)), the paper's Lemma 3.1, taken as if exact
    Renyi          Renyi accounting for batches drawn without replacement, replace-one, with noise
                   multiplier tau, hence with sensitivity C
    Renyi, 2 C     the same with the sensitivity that replacing a vector of norm C has
    add-remove     exact, for Poisson sampling as the paper describes it
    replace-one    exact, the same sampling, the paper's own neighbours
    per particle   exact under add-remove if "clip item-wise" means each of the 50 particles'
                   gradients, so that one person moves the sum by sqrt(50) C

Exact values are privtraj's own, those of Renyi are dp-accounting's. Where an accounting has no
answer, it is nan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from privtraj.privacy.accounting import bisect, epsilon_at, tally
from privtraj.privacy.events import (
    Adjacency,
    ChosenTimes,
    Event,
    GaussianSum,
    Opaque,
    check_adjacency,
    clt_mu,
)
from reproduce.claims import Claim, Stated, Steps

Parts = Sequence[Steps | Stated]

PARTICLES = 50
EXACT = ("add-remove", "replace-one")
READINGS = ("CLT", "Renyi", "Renyi, 2 C", *EXACT, "per particle")
COARSE, COARSER = 1e-3, 1e-2  # grids of the loss: to search on, and for epsilons in the hundreds

_MOST = 2000.0  # above any epsilon here


def epsilon_of(claim: Claim, reading: str) -> float:
    """What the figure should read under one accounting."""
    parts, delta, share = claim.parts, claim.delta, claim.share
    if claim.rule == "added up":
        return sum(cost([part], delta / len(parts), reading) for part in parts)
    if claim.rule == "rate":
        return cost([_slower(part, share) for part in parts], delta, reading)
    if claim.rule == "public choice" and reading == "add-remove":
        return _chosen_times(parts, delta, share)
    # delta = share * delta_K(epsilon): nobody changes bins between the paper's neighbours
    whole = cost(parts, delta / share, reading)
    return share * whole if claim.rule == "scaled" else whole


def largest_batch(claim: Claim, reading: str) -> int:
    """The largest batch with which phases, added up, cost no more than the figure says."""

    def total(batch: int) -> float:
        phases = [replace(part, batch=batch) for part in claim.parts if isinstance(part, Steps)]
        delta = claim.delta / len(phases)
        if reading in EXACT:
            return sum(
                _on_grid([phase], delta, check_adjacency(reading), COARSE) for phase in phases
            )
        return sum(cost([phase], delta, reading) for phase in phases)

    good, bad = 0, 128
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if total(middle) <= claim.epsilon else (good, middle)
    return good


def cost(parts: Parts, delta: float, reading: str) -> float:
    """Epsilon of the parts composed."""
    if reading in EXACT:
        adjacency = check_adjacency(reading)
        return epsilon_at([_event(part, adjacency) for part in parts], delta, adjacency)
    if reading == "per particle":
        return _per_particle(parts, delta)
    steps = [part for part in parts if isinstance(part, Steps)]
    if len(steps) < len(parts):
        return math.nan
    return _clt(steps, delta) if reading == "CLT" else _renyi(steps, delta, reading)


def _clt(parts: Sequence[Steps], delta: float) -> float:
    """Epsilon of mu-GDP, with the paper's mu for sampled steps and the exact one for full sums."""
    mus = [
        clt_mu(part.noise, part.rate, part.times) if part.batch else part.replaced / part.noise
        for part in parts
    ]
    return epsilon_at([GaussianSum(1 / math.hypot(*mus), "limit")], delta, "add-remove")


def _renyi(parts: Sequence[Steps], delta: float, reading: str) -> float:
    """dp-accounting's bound for batches of fixed size, one person replaced moving them C or 2 C."""
    import dp_accounting as dp
    from dp_accounting.rdp import RdpAccountant

    moved = 2.0 if reading == "Renyi, 2 C" else 1.0
    accountant = RdpAccountant(neighboring_relation=dp.NeighboringRelation.REPLACE_ONE)
    for part in parts:
        if part.batch:
            noise = dp.GaussianDpEvent(part.noise / moved)
            release = dp.SampledWithoutReplacementDpEvent(part.people, part.batch, noise)
        else:
            release = dp.GaussianDpEvent(part.noise / part.replaced)
        accountant.compose(release, part.times)
    return float(accountant.get_epsilon(delta))


def _per_particle(parts: Parts, delta: float) -> float:
    """Exact under add-remove, one person moving the sampled sums by sqrt(m) C."""
    moved = [
        replace(part, noise=part.noise / math.sqrt(PARTICLES))
        if isinstance(part, Steps) and part.batch
        else part
        for part in parts
    ]
    if moved == list(parts):
        return math.nan
    return _on_grid(moved, delta, "add-remove", COARSER)


def _on_grid(parts: Parts, delta: float, adjacency: Adjacency, interval: float) -> float:
    """Exact but for a coarser grid, whose error is on the safe side."""
    total = tally([_event(part, adjacency) for part in parts], adjacency)
    return bisect(lambda epsilon: total.delta(epsilon, interval) <= delta, _MOST, 0.0, 1e-5)


def _chosen_times(parts: Parts, delta: float, share: float) -> float:
    """Exact, where only the people of some publicly chosen times take part."""
    (steps,) = (part for part in parts if isinstance(part, Steps))
    choice = ChosenTimes(share, _sum(steps, "add-remove"), steps.times, "chosen")
    return epsilon_at([choice], delta, "add-remove")


def _event(part: Steps | Stated, adjacency: Adjacency) -> tuple[Event, int]:
    """The part as an event of privtraj, with how often it happens."""
    if isinstance(part, Stated):
        return Opaque(part.epsilon, part.delta, "stated", adjacency), 1
    return _sum(part, adjacency), part.times


def _sum(steps: Steps, adjacency: Adjacency) -> GaussianSum:
    # a GaussianSum takes a person replaced for a move of 2
    noise = steps.noise * (2 / steps.replaced if adjacency == "replace-one" else 1.0)
    return GaussianSum(noise, "steps", rate=steps.rate)


def _slower(part: Steps | Stated, share: float) -> Steps | Stated:
    """The steps at that share of their sampling rate."""
    if isinstance(part, Stated):
        return part
    return replace(part, people=round(part.people / share))
