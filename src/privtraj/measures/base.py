"""What every way to pay for a measurement shares: the protocol, what it is given, what it gives.

A `Measure` says which tables it refuses, plans all that a fit may release from public numbers
alone, and then asks a guard for it. What it makes of the noisy answers is a `Fit`.

People per time are public, or counted with noise. Public numbers are given by the user, as numbers.
They are never read from the records nor compared with them, so that whatever is done with them is a
function of released and public numbers alone. They are for replace-one only. If the numbers of a
table are public and true, so are those of its neighbour, and two tables of which one has a person
more do not have the same numbers: whoever knows everybody else's records knows whether the person
is there, and an epsilon for membership would be true of no table at all. Neighbours that differ in
what one person's records say can have the same numbers, and have, if the records stay in their time
bins: that is what remains protected, at the cost of replace-one, which is paid for all neighbours.
In which bins a person is, is not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError
from privtraj.base.space import TimeAxis
from privtraj.columns.kinds import Axes, Column
from privtraj.domain.domain import Plot
from privtraj.measures.windows import Resolution
from privtraj.motion.diffusions import Brownian
from privtraj.motion.process import Reference
from privtraj.motion.reference import USUAL, declared
from privtraj.privacy import noise
from privtraj.privacy.events import Event, LaplaceCounts, Person
from privtraj.privacy.guard import CellCounts, Guard, Laplace, PublicShape, Release
from privtraj.privacy.ledger import BudgetPlan, Ledger, calibrate_laplace
from privtraj.recipe import Recipe

HEAD_COUNT = "people per time"
NOT_COUNTED: Floats = np.empty((0, 0))
CLIPPED = 0.1
"""Share of vectors that are longer than a clip, and are cut to it: noise against what is cut. .2 is
as good and .05 2 % worse for gradients, whose reweighting knows the clip; of a subspace .05 has 5 %
more error."""
SLACK_RESERVE = 1e-12  # of delta, for the integer noise of the main release: 10^9 draws

Progress = Callable[[int, int], None]  # told how many steps are done, and of how many


class Public(Protocol):
    """What is public of snapshots: all that may be used of them before anything is paid for."""

    @property
    def axis(self) -> TimeAxis:
        """Times."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """As they are declared."""

    @property
    def axes(self) -> Axes:
        """Columns, as axes of the unit cube."""

    @property
    def bounds(self) -> Floats:
        """(d, 2) of the columns, in data units."""

    @property
    def shape(self) -> PublicShape:
        """Declared bins of time, axes, and how many records a person may have."""

    @property
    def plot(self) -> Plot | None:
        """The domain in the unit cube, if there is one."""


class Marginals(NamedTuple):
    """A cloud at each of T times, in the unit cube, made of released numbers only.

    particles: (T, m, d).  weights: (T, m), rows sum to 1.
    bandwidth: (T,) standard deviation, per coordinate, of a person around their particle.
    resolution: (T,) how finely the measurement sees, as a standard deviation per coordinate.
    """

    particles: Floats
    weights: Floats
    bandwidth: Floats
    resolution: Floats
    diagnostics: dict[str, Any]


class Task(NamedTuple):
    """What a measure is given beside the guard. rng: for all but the noise, which is the guard's.

    plan: all that may be released, as the measure planned it.
    """

    public: Public
    recipe: Recipe
    plan: BudgetPlan
    rng: np.random.Generator
    progress: Progress | None = None


class Fit(NamedTuple):
    """What a measure makes of its releases.

    marginals: at the knots, in data units, of curves: particle i of all knots is one; where knots
    are None, at every listed time by itself.
    people: (K,) in each window; empty where nobody counted them.
    resolution: (K,) how finely each window was seen.
    worth: rough number of people per time that this budget buys.
    settings, diagnostics: what the model says about itself.
    counted: the counts themselves, where later ones can be combined with them (`Record.counted`).
    """

    marginals: Marginals
    knots: Floats | None
    windows: Resolution
    people: Floats
    resolution: Floats
    reference: Reference
    worth: float
    settings: dict[str, Any]
    diagnostics: dict[str, Any]
    counted: Floats = NOT_COUNTED


class Measure(ABC):
    """A way to pay. A new one is a class of its own and a line of the `registry`.

    name: as users write it.  words: what it does, in a phrase.
    needs_delta: whether its noise is Gaussian, whose guarantee has a delta above 0.
    takes_categories: whether columns may be categories, or numbers that may be missing.
    sums_every_step: whether every step of the particles is a sum over people. Then particles and
        steps are part of what is released; else they are post-processing, which can be cut short.
    quick: whether a fit takes less than a second, so that more of them are simulated.
    """

    name: ClassVar[str]
    words: ClassVar[str]
    needs_delta: ClassVar[bool]
    takes_categories: ClassVar[bool] = False
    sums_every_step: ClassVar[bool] = False
    quick: ClassVar[bool] = False

    @abstractmethod
    def refuses(self, public: Public, recipe: Recipe) -> None:
        """Refuse, before anything is spent, a table or a recipe that it cannot measure."""

    @abstractmethod
    def plan(self, public: Public, recipe: Recipe) -> BudgetPlan:
        """All that a fit may release, from public numbers alone: its ledger holds it to that.

        Of the main release this is a bound: what its cells, or all its steps, may tell together.
        """

    @abstractmethod
    def most_releases(self, steps: int) -> dict[str, int]:
        """Every release that a fit of so many steps may plan, by name, and how often at most."""

    @abstractmethod
    def fit(self, guard: Guard, task: Task) -> Fit:
        """Ask, and make curves of the answers. Of the rows, only what the guard answers is used."""

    def nothing_left(self) -> InputError:
        """Refuses a budget that leaves nothing for the main release: noise that is rounded to
        integers costs e^epsilon times a tiny delta, which is too much at a very large epsilon."""
        return InputError(
            Arg("epsilon"),
            " is so large that rounding its noise takes all of delta: use a smaller one, or ",
            Arg("measure", "counts"),
        )


def reference_of(recipe: Recipe) -> Reference:
    """As given; "auto": least action along a learned drift, or as a diffusivity says."""
    given = declared(recipe.reference)
    if given is not None:
        return given
    return USUAL if recipe.diffusivity is None else Brownian(recipe.diffusivity)


# Shares of the budget -----------------------------------------------------------------------------


def counts_event(budget: Recipe | Ledger, share: float, what: str, person: Person) -> LaplaceCounts:
    """Counts that cost this share of epsilon together, within the range of the noise.

    A person moves counts by 1 for each record if added or removed, and by 2 if replaced; by as much
    as one record does where these may be together.
    """
    moves = LaplaceCounts(1.0, "", 0.0, *person, person.weight).sensitivity(budget.adjacency)
    epsilon = float(np.clip(share * budget.epsilon / moves, *noise.EPSILON_RANGE))
    return LaplaceCounts(epsilon, what, 0.0, *person, person.weight)


def planned_event(plan: BudgetPlan, what: str) -> Any:
    """The event of this name that is on the plan; None if there is none."""
    for planned in plan.releases:
        if planned.event.what == what:
            return planned.event
    return None


def slack_reserve(delta: float) -> float:
    """Of delta, for the slack of the main release's noise."""
    return min(SLACK_RESERVE, delta / 100)


def left(guard: Guard, calibrate: Callable[..., float], later: Event | None = None) -> float:
    """What one more release may spend, with a reserve of the budget for what comes later, and of
    delta for the slack of its noise. Laplace noise is drawn exactly and has none, while e^epsilon
    times a reserve is more than any delta at a large epsilon."""
    ledger = guard.ledger
    return calibrate(
        ledger.epsilon,
        ledger.delta,
        ledger.adjacency,
        others=ledger.events if later is None else (*ledger.events, (later, 1)),
        slack=0.0 if calibrate is calibrate_laplace else slack_reserve(ledger.delta),
        person=guard.shape.person,
    )


# People per time ----------------------------------------------------------------------------------


def head_count(guard: Guard, epsilon: float) -> Floats:
    """People in each window (K,): noisy, paid for, and shrunk to their mean.

    2 / epsilon^2 is a little above the exact variance of the integer noise.
    """
    counts = guard.ask(Release(CellCounts(1), Laplace(epsilon), HEAD_COUNT))[:, 0]
    return shrunk_counts(counts.astype(np.float64), 2 / epsilon**2)


def public_people(counts: Sequence[float]) -> Floats:
    """People per bin (T,): as they were given, one at least."""
    return np.maximum(np.asarray(counts, np.float64), 1.0)


def shrunk_counts(counts: Floats, noise_variance: float) -> Floats:
    """Noisy counts (T,) shrunk to their mean by the share of their variance that is noise, >= 1."""
    mean = counts.mean()
    variance = max(counts.var(ddof=1), 1e-12)
    steady = mean + (counts - mean) * max(0.0, 1 - noise_variance / variance)
    return np.maximum(steady, 1.0)
