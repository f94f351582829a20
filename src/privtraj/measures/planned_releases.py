"""All that a fit may release, from public numbers alone: the plan that its ledger holds it to."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from privtraj.measures.counts.constants import SURVEY_SHARE
from privtraj.measures.counts.fit import CELLS
from privtraj.measures.counts.survey import SURVEY
from privtraj.measures.gradients.constants import STEPS
from privtraj.measures.gradients.moments import STEP
from privtraj.measures.head_count import HEAD_COUNT, epsilon_of_counts
from privtraj.measures.persistence import PERSISTENCE, persistence_event
from privtraj.measures.subspace.moments import SHARES, moment_events
from privtraj.measures.tables.constants import ROUNDS
from privtraj.measures.tables.fit import TABLES
from privtraj.measures.windows.constants import LISTED_SHARE, PROBE_SHARE
from privtraj.measures.windows.fit import MOTION
from privtraj.measures.windows.timeline import LISTED
from privtraj.privacy import noise
from privtraj.privacy.events import (
    Adjacency,
    GaussianSum,
    LaplaceCounts,
    LaplaceShares,
    sum_at_rate,
)
from privtraj.privacy.ledger import (
    BudgetPlan,
    Planned,
    calibrate_gaussian,
    calibrate_laplace,
    calibrate_noise,
)
from privtraj.privacy.rows import PublicShape

SLACK_RESERVE = 1e-12  # of delta, for the integer noise of the main release: 10^9 draws


class Budget(NamedTuple):
    """What a fit is asked to spend, and on what; rate and steps are those of gradients."""

    epsilon: float
    delta: float
    adjacency: Adjacency
    measure: Literal["gradients", "counts", "marginals"]
    head_share: float | None  # of epsilon, for the number of people; None where that is public
    look_first: bool  # whether cells are chosen by a survey
    steps: int | None = None
    rate: float = 1.0
    slabs: bool = False  # whether slabs are measured, in which a person's records may meet
    ask_when: bool = False  # whether people may be at the listed times alone
    look_at_motion: bool = False  # whether the number of slabs is found first
    persistence: bool = False  # whether it is asked how people with several records persist
    subspace: bool = False  # whether it is asked how features vary together

    @property
    def reserve(self) -> float:
        """Of delta, for the slack of the main release's noise. Laplace noise is drawn exactly and
        has none, while e^epsilon times a reserve is more than any delta at a large epsilon."""
        return 0.0 if self.measure == "counts" else min(SLACK_RESERVE, self.delta / 100)


def planned_persistence(budget: Budget, shape: PublicShape) -> LaplaceShares | None:
    """The release after the main one, where there is one."""
    if not budget.persistence:
        return None
    person = shape.person.in_slabs() if budget.slabs else shape.person
    return persistence_event(budget.epsilon, budget.adjacency, person, shape.n_features)


def planned_moments(budget: Budget, shape: PublicShape) -> dict[str, GaussianSum]:
    """The releases before all others where people may be near a subspace, by name."""
    if not budget.subspace:
        return {}
    return moment_events(*budget[:3], shape.person)


def planned_releases(budget: Budget, shape: PublicShape) -> BudgetPlan:
    """Of the main release, the bound: what its cells, or all its steps together, may tell."""
    if budget.slabs:
        shape = replace(shape, person=shape.person.in_slabs())
    first, person = _first_counts(budget, shape), shape.person
    last = planned_persistence(budget, shape)
    rest: list[LaplaceCounts] = [] if last is None else [last]
    moments = list(planned_moments(budget, shape).values())
    limits: Any = {"others": [*moments, *first, *rest], "slack": budget.reserve, "person": person}
    main: list[Planned] = []
    if budget.measure == "counts":
        epsilon = calibrate_laplace(*budget[:3], **limits)
        if epsilon > 0:
            cells = LaplaceCounts(min(epsilon, noise.EPSILON_RANGE[1]), CELLS, 0.0, *person)
            main = [Planned(cells, shared=True)]
    elif budget.measure == "marginals":
        mu = calibrate_gaussian(*budget[:3], **limits)
        if mu > 0:
            tables = GaussianSum(1 / mu, TABLES, 0.0, *person)
            main = [Planned(tables, len(ROUNDS), shared=True)]
    else:
        steps = budget.steps or STEPS
        z = calibrate_noise(*budget[:3], steps=steps, rate=budget.rate, **limits)
        if z < math.inf:
            whole = GaussianSum(z / math.sqrt(steps), STEP, 0.0, *person)
            main = [Planned(sum_at_rate(whole, budget.rate), steps, shared=True)]
    return BudgetPlan((*map(Planned, [*moments, *first]), *main, *map(Planned, rest)))


def most_releases(measure: str, steps: object) -> dict[str, int]:
    """Every release that a fit by this measure may plan, by name, and how often at most."""
    count = steps if isinstance(steps, int) else 0
    main = {"counts": {SURVEY: 1, CELLS: 1}, "marginals": {TABLES: len(ROUNDS)}}.get(
        measure, {STEP: count}
    )
    moments = dict.fromkeys(SHARES, 1)
    return {**moments, LISTED: 1, MOTION: 1, HEAD_COUNT: 1, **main, PERSISTENCE: 1}


def _first_counts(budget: Budget, shape: PublicShape) -> list[LaplaceCounts]:
    """What is counted before the main release: when people are, how they move, how many, where."""

    def counts(share: float, what: str) -> LaplaceCounts:
        epsilon = epsilon_of_counts(share * budget.epsilon, budget.adjacency, shape.person)
        return LaplaceCounts(epsilon, what, 0.0, *shape.person)

    planned = []
    if budget.ask_when:
        planned.append(counts(LISTED_SHARE, LISTED))
    if budget.look_at_motion:
        planned.append(counts(PROBE_SHARE, MOTION))
    if budget.head_share is not None:
        planned.append(counts(budget.head_share, HEAD_COUNT))
    if budget.look_first:
        planned.append(counts(SURVEY_SHARE, SURVEY))
    looks = (LISTED, MOTION, SURVEY)  # which a budget that is too small does without
    least = noise.EPSILON_RANGE[0]
    return [one for one in planned if one.epsilon > least or one.what not in looks]
